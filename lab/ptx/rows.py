"""A row of the tables of `lab.ptx`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """counted: words for the last line, each counted once."""

    text: str
    ok: bool
    counted: tuple[str, ...]
