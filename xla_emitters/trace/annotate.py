"""PTX and SASS with the HLO instruction beside each line.

    mul.rn.bf16 	%rs5, %rs3, %rs3;                       // %square = bf16[6,512,4096] multiply(%param, %param)
    mul.rn.bf16 	%rs6, %rs3, %rs5;                       // %cube = bf16[6,512,4096] multiply(%square, %param)

For a program, each line shows the line of StableHLO on which the instruction starts, as it is in the file. Several instructions on one
line are separated by ` | `; of more than MOST_WHOLE only the results are printed. Where the text has them, the lines of Python follow:
`at train.py:14 in model`. The text before the `//` is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from xla_emitters.trace.records import Step

MOST_WHOLE = 2
_COLUMN = 72
_TAB = 8
_DEFINITION = re.compile(r"\s*(?:ROOT )?(%[\w.\-]+) = (.*)$")
_MLIR_LOCATION = re.compile(r"\s+loc\((?:#\w+|unknown|\".*)\)$")
_LAYOUT = re.compile(r"\]\{(\d+(?:,\d+)*)\}")
_NOT_SHOWN = re.compile(r", (?:metadata|backend_config|frontend_attributes|sharding)=\{.*$")


def annotated(steps: Sequence[Step], definitions: Mapping[str, str], lines: Mapping[str, str] | None = None) -> str:
    """The text of one stage of all kernels of a program, each line with its HLO.

    steps        this stage's step of each kernel's trace, recorded with `sources`; all have the same text, each its own kernel's sources
    definitions  instruction name -> the printed text; a name without an entry is printed itself
    lines        instruction name -> its line of Python
    """
    text = (steps[0].ir or "").split("\n")
    rows: list[dict[str, None]] = [{} for _ in text]
    for step in steps:
        for row, names in zip(rows, step.sources, strict=False):
            row |= dict.fromkeys(names)
    return "\n".join(
        _beside(line, _described(row, definitions, lines or {})) for line, row in zip(text, rows, strict=True)
    )


def hlo_definitions(hlo: str) -> dict[str, str]:
    """HLO text: name -> the instruction, without attributes that do not affect its value."""
    found = (_DEFINITION.match(line) for line in hlo.split("\n"))
    return {each[1].removeprefix("%"): f"{each[1]} = {_shortened(each[2])}" for each in found if each}


def stablehlo_definitions(text: str, lines: Mapping[str, int]) -> dict[str, str]:
    """Text of a program: name -> its line of StableHLO, without its location. `lines` are counted from 1."""
    found = text.split("\n")
    return {name: _MLIR_LOCATION.sub("", found[line - 1].strip()) for name, line in lines.items() if line <= len(found)}


def _shortened(instruction: str) -> str:
    """The instruction without attributes that do not affect its value and without row-major layouts."""
    return _LAYOUT.sub(lambda found: "]" if _is_row_major(found[1]) else found[0], _NOT_SHOWN.sub("", instruction))


def _is_row_major(layout: str) -> bool:
    dimensions = [int(number) for number in layout.split(",")]
    return dimensions == sorted(dimensions, reverse=True)


def _described(names: Collection[str], instructions: Mapping[str, str], lines: Mapping[str, str]) -> str:
    found = [instructions.get(name, f"%{name}") for name in names]
    python = ", ".join(dict.fromkeys(lines[name] for name in names if name in lines))
    shown = " | ".join(found if len(found) <= MOST_WHOLE else (each.partition(" = ")[0] for each in found))
    return f"{shown}  at {python}" if python else shown


def _beside(line: str, comment: str) -> str:
    if not comment:
        return line
    width = len(line.expandtabs(_TAB))
    return f"{line}{' ' * max(1, _COLUMN - width)}// {comment}"
