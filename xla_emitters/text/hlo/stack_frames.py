"""The lines of Python that instructions come from: the stack frames in a module's tables, and which frame of a stack is shown.

    FileNames        1 "/home/me/train.py"     2 ".../site-packages/flax/linen/linear.py"
    FunctionNames    1 "step"    2 "Dense.__call__"
    FileLocations    1 {file_name_id=1 function_name_id=1 line=22 ...}    2 {file_name_id=2 function_name_id=2 line=271 ...}
    StackFrames      1 {file_location_id=1 parent_frame_id=1}             2 {file_location_id=2 parent_frame_id=2}

    %dot = f32[8,8] dot(...), metadata={op_name="jit(step)/dot_general" stack_frame_id=2}       train.py:22 in step

Frame 2 is called by frame 1. XLA prints a parent as its number + 1, and 1 for a frame without one; a table in which no frame
seems to be its own parent has the numbers themselves, and 0 for none. Without frames, metadata may have `source_file` and `source_line`.

The frame that is shown is the innermost one of the user's own code: not of a package (site-packages, dist-packages), of Python's
library, or of code without a file (`<string>`). If all frames are such, it is the innermost one. An instruction without frames has
those of the instructions that run its computation: a call, a loop, a fusion. Where several lines call one function, each gets an
equal part.

Locations of StableHLO (`text/stablehlo/stablehlo_locations.py`) become the same tables. Instructions are found again by their places in the
text, which all passes keep, so a kernel's ops and a fusion's instructions are both looked up here.
Source: XLA hlo_module.cc and stack_frames.cc; the tables that jaxlib 0.10 prints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import PurePath
from typing import Any, NamedTuple, cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, ModuleOp, NameLoc, StringAttr
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import CallingOp, ComputationOp
from xla_emitters.support.late_dataclass import dataclass

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
STACK_TABLES = "hlo.stack_tables"
"""Attribute of a module: the text of these tables."""

_NUMBER = r"(\d{1,18})(?!\d)"
_ROW = re.compile(rf'^\s*{_NUMBER}\s+(?:"((?:[^"\\]|\\.)*)"|\{{(.*)\}})\s*$')
_FIELD = re.compile(rf"(\w+)={_NUMBER}")
_FRAME_ID = re.compile(rf"\bstack_frame_id={_NUMBER}")
_SOURCE = re.compile(rf'\bsource_file=("(?:[^"\\]|\\.)*")(?:\s+source_line={_NUMBER})?')
_NOT_OWN = re.compile(
    r"[/\\](?:site-packages|dist-packages)[/\\]|[/\\]lib[/\\]python\d[\d.]*[/\\]|^<(?!ipython|stdin)", re.IGNORECASE
)
NO_WORK = frozenset(
    "parameter constant tuple get-tuple-element bitcast broadcast dynamic-broadcast-in-dim reshape dynamic-reshape copy iota".split()
)
"""Opcodes of instructions that only name or repeat values: their lines count only for a kernel that has no others."""


class PythonFrame(NamedTuple):
    """A line of Python. `function` is "" where the text has none."""

    file: str
    line: int
    function: str = ""


class CountedFrame(NamedTuple):
    """A line of Python with the number of a kernel's instructions that come from it, which may be a fraction."""

    frame: PythonFrame
    instructions: float


def own_frame(stack: Sequence[PythonFrame]) -> PythonFrame | None:
    """The frame to show, of a stack whose innermost frame is first; None for an empty one.

    >>> flax, mine = PythonFrame("/usr/lib/python3/site-packages/flax/linear.py", 271), PythonFrame("/home/me/train.py", 22, "step")
    >>> own_frame([flax, mine]).line, own_frame([flax]).line
    (22, 271)
    """
    return next((frame for frame in stack if not _NOT_OWN.search(frame.file)), next(iter(stack), None))


# ---------------------------------------------------------------------------------------------------------------- tables


@dataclass
class StackTables:
    """Makes the tables of a module from stacks."""

    _files: dict[str, int] = field(default_factory=dict[str, int])
    _functions: dict[str, int] = field(default_factory=dict[str, int])
    _places: dict[tuple[int, int, int], int] = field(default_factory=dict[tuple[int, int, int], int])
    _frames: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def add(self, stack: Sequence[PythonFrame]) -> int:
        """The number of the innermost frame of a stack, which is the first one."""
        parent = 0
        for frame in reversed(stack):
            file = self._files.setdefault(frame.file, len(self._files) + 1)
            function = self._functions.setdefault(frame.function, len(self._functions) + 1)
            place = self._places.setdefault((file, function, frame.line), len(self._places) + 1)
            parent = self._frames.setdefault((place, parent), len(self._frames) + 1)
        return parent

    def text(self) -> str:
        """The tables as XLA prints them; "" if there are no frames."""
        if not self._frames:
            return ""
        named = [
            [f"{number} {json.dumps(name, ensure_ascii=False)}" for name, number in names.items()]
            for names in (self._files, self._functions)
        ]
        places = [
            f"{number} {{file_name_id={file} function_name_id={function} line={line}}}"
            for (file, function, line), number in self._places.items()
        ]
        frames = [
            f"{number} {{file_location_id={place} parent_frame_id={parent + 1}}}"
            for (place, parent), number in self._frames.items()
        ]
        return "\n\n".join(
            "\n".join([name, *rows]) for name, rows in zip(TABLES, [*named, places, frames], strict=True)
        )


def stacks_of(tables: str) -> dict[int, tuple[PythonFrame, ...]]:
    """Number of a frame -> its stack, innermost frame first. Rows that refer to missing rows, or in a circle, end a stack."""
    rows: dict[str, dict[int, tuple[str, dict[str, int]]]] = {name: {} for name in TABLES}
    current = TABLES[0]
    for line in tables.splitlines():
        if line.strip() in rows:
            current = line.strip()
        elif found := _ROW.match(line):
            values = {name: int(value) for name, value in _FIELD.findall(found[3] or "")}
            rows[current][int(found[1])] = ("" if found[2] is None else _unquoted(found[2]), values)
    files, functions, places, frames = rows.values()
    is_shifted = any(values.get("parent_frame_id") == number for number, (_, values) in frames.items())
    stacks = dict[int, tuple[PythonFrame, ...]]()
    for number in frames:
        stack, at, seen = list[PythonFrame](), number, set[int]()
        while at in frames and at not in seen:
            seen.add(at)
            values = frames[at][1]
            place = places.get(values.get("file_location_id", 0), ("", {}))[1]
            file, function = place.get("file_name_id", 0), place.get("function_name_id", 0)
            if file in files:
                stack.append(PythonFrame(files[file][0], place.get("line", 0), functions.get(function, ("", {}))[0]))
            at = values.get("parent_frame_id", 0) - is_shifted
        stacks[number] = tuple(stack)
    return stacks


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


# ---------------------------------------------------------------------------------------------------------------- look-up

_Place = tuple[str, int, int]


class PythonLines:
    """The lines of Python of a module's instructions, found by the instructions' places in the module's text; see the file's head."""

    def __init__(self, module: ModuleOp) -> None:
        tables = module.attributes.get(STACK_TABLES)
        self._stacks = stacks_of(tables.data) if isinstance(tables, StringAttr) else {}
        self._own = dict[str, PythonFrame | None]()
        computations = [op for op in module.ops if isinstance(op, ComputationOp)]
        without, self._found = list[tuple[_Place, str]](), dict[_Place, tuple[PythonFrame, ...]]()
        runs = dict[str, dict[HloOp, str]]()
        for computation in computations:
            around = computation.sym_name.data
            for op in computation.instructions:
                if (place := next(_places(op.location), None)) is None:
                    continue
                if frame := self._frame_of(op):
                    self._found[place] = (frame,)
                else:
                    without.append((place, around))
                if isinstance(op, CallingOp):
                    for callee in op.callees():
                        runs.setdefault(callee.symbol.root_reference.data, {})[op] = around
        self._runs = runs
        if self._found:
            asked = dict[str, tuple[PythonFrame, ...]]()
            for place, around in without:
                if lines := self._callers_of(around, asked):
                    self._found[place] = lines
        names = dict[str, set[str]]()
        for frames in self._found.values():
            for frame in frames:
                names.setdefault(PurePath(frame.file).name, set()).add(frame.file)
        self._ambiguous = frozenset(file for files in names.values() if len(files) > 1 for file in files)

    def __bool__(self) -> bool:
        return bool(self._found)

    def of(self, ops: Iterable[Operation]) -> list[CountedFrame]:
        """The lines that these ops come from, the ones with most instructions first; instructions are counted once."""
        places = dict[_Place, Operation]()
        for op in ops:
            for place in _places(op.location):
                places.setdefault(place, op)
        known = {place: op for place, op in places.items() if place in self._found}
        working = [place for place, op in known.items() if not (isinstance(op, HloOp) and op.opcode in NO_WORK)]
        counts = dict[PythonFrame, float]()
        for place in working or known:
            frames = self._found[place]
            for frame in frames:
                counts[frame] = counts.get(frame, 0.0) + 1 / len(frames)
        return [CountedFrame(*pair) for pair in sorted(counts.items(), key=lambda pair: -pair[1])]

    def data_of(self, ops: Iterable[Operation]) -> tuple[dict[str, Any], ...]:
        """`of` as plain data: `text`, file, line, function, and the number of instructions."""
        return tuple(
            {"text": self.shown(frame), **frame._asdict(), "instructions": round(count, 3)}
            for frame, count in self.of(ops)
        )

    def by_name(self, module: ModuleOp) -> dict[str, str]:
        """Name of each instruction of the module -> its line as text, for those that have one."""
        found = dict[str, str]()
        for op in module.walk():
            if isinstance(op, HloOp) and (frames := self._found.get(next(_places(op.location), ("", 0, 0)))):
                found[op.instruction_name.data] = " or ".join(map(self.shown, frames))
        return found

    def shown(self, frame: PythonFrame) -> str:
        """ "train.py:22 in step"; with the folder where the module has two files of that name. "f.<locals>.g" is "f.g"."""
        path = PurePath(frame.file)
        name = str(PurePath(*path.parts[-2:])) if frame.file in self._ambiguous else path.name
        return f"{name}:{frame.line}" + (f" in {frame.function.replace('.<locals>.', '.')}" if frame.function else "")

    def _frame_of(self, op: HloOp) -> PythonFrame | None:
        metadata = op.attributes.get("metadata")
        if not isinstance(metadata, StringAttr):
            return None
        if metadata.data not in self._own:
            self._own[metadata.data] = self._read(metadata.data)
        return self._own[metadata.data]

    def _read(self, metadata: str) -> PythonFrame | None:
        if (number := _FRAME_ID.search(metadata)) and (frame := own_frame(self._stacks.get(int(number[1]), ()))):
            return frame
        if (named := _SOURCE.search(metadata)) is None:
            return None
        return PythonFrame(_unquoted(named[1][1:-1]), int(named[2] or 0))

    def _callers_of(self, computation: str, asked: dict[str, tuple[PythonFrame, ...]]) -> tuple[PythonFrame, ...]:
        """The frames of the instructions that run a computation, or of those that run the computations around them."""
        pending, seen, found = [computation], set[str](), dict[PythonFrame, None]()
        if computation not in asked:
            while pending:
                if (name := pending.pop()) in seen:
                    continue
                seen.add(name)
                for op, around in self._runs.get(name, {}).items():
                    if frame := self._frame_of(op):
                        found[frame] = None
                    else:
                        pending.append(around)
            asked[computation] = tuple(found)
        return asked[computation]


def _places(location: Attribute) -> Iterator[_Place]:
    """The places in the module's text that a location names."""
    match location:
        case NameLoc():
            yield from _places(location.location)
        case FileLineColLoc():
            yield location.filename.data, location.line.data, location.column.data
        case FusedLoc():
            for part in cast(ArrayAttr[Attribute], location.locations):  # as in `dialects/locations.py`
                yield from _places(part)
        case CallSiteLoc():
            yield from _places(location.callee)
        case _:
            pass
