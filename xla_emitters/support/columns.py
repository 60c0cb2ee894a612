"""Tables as text."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence


def aligned(rows: Iterable[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """A line for each row, with two spaces between columns; those without any text are left out.

    right  numbers of the columns that are aligned on the right

    >>> aligned([("pass", "ops"), ("xla-cse", "24")], right={1})
    ['pass     ops', 'xla-cse   24']
    """
    cells = [*rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            f"{cell:>{width}}" if number in right else f"{cell:<{width}}"
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        ).rstrip()
        for row in cells
    ]
