"""PTX and SASS with the HLO instruction beside each line.

    mul.rn.bf16 	%rs5, %rs3, %rs3;                       // %square = bf16[6,512,4096] multiply(%param, %param)
    mul.rn.bf16 	%rs6, %rs3, %rs5;                       // %cube = bf16[6,512,4096] multiply(%square, %param)

Several instructions on one line are separated by ` | `. The text before the `//` is what it is without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from xla_emitters.trace.records import Step

_COLUMN = 72
_TAB = 8
_DEFINITION = re.compile(r"\s*(?:ROOT )?(%[\w.\-]+) = (.*)$")
_LAYOUT = re.compile(r"\]\{(\d+(?:,\d+)*)\}")
_NOT_SHOWN = re.compile(r", (?:metadata|backend_config|frontend_attributes|sharding)=\{.*$")


def annotated(steps: Sequence[Step], hlo: str) -> str:
    """The text of one stage of all kernels of a program, each line with its HLO.

    steps  the stage in each kernel's trace, recorded with `sources`; they hold the same text, and each the sources of its own kernel
    hlo    the text that defines the instructions
    """
    instructions = _definitions(hlo)
    text = (steps[0].ir or "").split("\n")
    rows: list[dict[str, None]] = [{} for _ in text]
    for step in steps:
        for row, names in zip(rows, step.sources, strict=False):
            row |= dict.fromkeys(names)
    return "\n".join(_beside(line, _told(row, instructions)) for line, row in zip(text, rows, strict=True))


def _definitions(hlo: str) -> dict[str, str]:
    """name -> the instruction without what it is not computed from."""
    found = (_DEFINITION.match(line) for line in hlo.split("\n"))
    return {each[1].removeprefix("%"): f"{each[1]} = {_shortened(each[2])}" for each in found if each}


def _shortened(instruction: str) -> str:
    """Without what the value does not depend on, and without layouts that are row major."""
    return _LAYOUT.sub(lambda found: "]" if _is_row_major(found[1]) else found[0], _NOT_SHOWN.sub("", instruction))


def _is_row_major(layout: str) -> bool:
    dimensions = [int(number) for number in layout.split(",")]
    return dimensions == sorted(dimensions, reverse=True)


def _told(names: Iterable[str], instructions: Mapping[str, str]) -> str:
    return " | ".join(instructions.get(name, f"%{name}") for name in names)


def _beside(line: str, comment: str) -> str:
    if not comment:
        return line
    width = len(line.expandtabs(_TAB))
    return f"{line}{' ' * max(1, _COLUMN - width)}// {comment}"
