"""The expected cost of each line of Python: the times of kernels and library calls, divided among the lines that they compute.

    jit_step on h200: expected times by line of Python
    share     time  line                     kernels and calls
      35%  24.9 us  train.py:14 in model     loop_add_fusion, loop_multiply_fusion and 6 more
       ...

A kernel's time is divided in proportion to the numbers of its instructions from each line (`text/hlo/stack_frames.py`): a kernel may
compute several lines, and a line needs several kernels. Kernels and library calls are priced by the model of
`cost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from xla_emitters.pricing.report import ProgramCost
from xla_emitters.program.outline import Work, work_named
from xla_emitters.support.columns import aligned
from xla_emitters.support.units import microseconds

NO_LINE = "no line of Python"


@dataclass(frozen=True)
class LineCost:
    """A line of Python.

    text      "train.py:14 in model", or NO_LINE for work without one
    file, line, function   "" and 0 for NO_LINE
    time      expected microseconds in one run
    work      names of the kernels and calls that compute it, dearest first
    """

    text: str
    file: str
    line: int
    function: str
    time: float
    work: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def by_source(cost: ProgramCost, works: Sequence[Work]) -> list[LineCost]:
    """The lines of a priced program, dearest first.

    works  the program's kernels (of one with unknown sizes: its fusions) and calls, from its outline
    """
    known = {work.name: work for work in works}
    times = dict[str, float]()
    for call in cost.calls:
        times[call.instruction] = times.get(call.instruction, 0.0) + call.time * call.launches
    for kernel in cost.kernels:
        name = work.name if (work := work_named(works, kernel.name)) else kernel.name
        times[name] = times.get(name, 0.0) + kernel.time * kernel.launches
    parts = dict[str, dict[str, float]]()
    lines = dict[str, Mapping[str, Any]]()
    for name, time in times.items():
        source = known[name].source if name in known else ()
        whole = sum(line["instructions"] for line in source)
        for line in source or ({"text": NO_LINE, "file": "", "line": 0, "function": "", "instructions": 1},):
            lines[line["text"]] = line
            share = line["instructions"] / whole if whole else 1.0
            parts.setdefault(line["text"], {})[name] = time * share
    found = list[LineCost]()
    for text, own in parts.items():
        line, dearest = lines[text], sorted(own, key=lambda name: -own[name])
        found.append(LineCost(text, line["file"], line["line"], line["function"], sum(own.values()), tuple(dearest)))
    return sorted(found, key=lambda each: -each.time)


def source_table(name: str, target: str, lines: Sequence[LineCost]) -> str:
    """See the file's head."""
    total = sum(each.time for each in lines)
    rows = [("share", "time", "line", "kernels and calls")]
    for each in lines:
        others = f" and {len(each.work) - 2} more" if len(each.work) > 2 else ""
        rows.append(
            (f"{each.time / total:.0%}", microseconds(each.time), each.text, f"{', '.join(each.work[:2])}{others}")
        )
    head, end = f"{name} on {target}: expected times by line of Python", f"in all: {microseconds(total)}"
    return "\n".join([head, *aligned(rows, right={0, 1}), end])
