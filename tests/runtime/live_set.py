"""The least memory that a run of a program needs in its order: each buffer lives from the first statement that uses it to the last.

    program.memory(inputs).peak       the most bytes of buffers that the runtime has at once
    live_set(program, inputs)         the most bytes of buffers that are used before and after one moment

An allocation is not a use, nor is an alias of the buffer or its release. A returned buffer is in use until the end. The host program runs
under a Python trace function, which records for each statement the buffers that it names: the count does not depend on when the runtime
allocates and frees them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache
from types import FrameType
from typing import Any

import numpy as np

from xla_emitters.pipelines.programs import DynamicProgram
from xla_emitters.runtime.ral.memory import HOST_PROGRAM

_NO_USE = re.compile(r"\s*(\w+ = (alloc|inc_ref)\w*\(|dealloc\w*\(|\w+ = empty\()")
_CALL = re.compile(r"\s*(\w+ = )?\w+\(")
_ALLOC = re.compile(r"\s*(\w+) = (?:alloc\w*|ctx\.alloc)\(")


def live_set(program: DynamicProgram, inputs: Sequence[Any]) -> int:
    """Bytes, for these arguments."""
    loaded = program.loaded
    lines = loaded.source.splitlines()
    uses, sizes, alive = dict[int, tuple[int, int]](), dict[int, int](), list[Any]()
    moment, last = 0, 0

    @cache
    def names_in(line: int) -> tuple[str, ...]:
        text = lines[line - 1]
        return (
            ()
            if _NO_USE.match(text) or not _CALL.match(text)
            else tuple(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text)))
        )

    @cache
    def made_in(line: int) -> str | None:
        found = _ALLOC.match(lines[line - 1])
        return found.group(1) if found else None

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal moment, last
        if frame.f_code.co_filename != HOST_PROGRAM:
            return None
        if event in ("line", "return") and last:
            known = frame.f_locals if made_in(last) or names_in(last) else {}
            if (name := made_in(last)) is not None:
                sizes[id(_root(known[name]))] = known[name].nbytes
                alive.append(known[name])  # so that its id stays its own
            for name in names_in(last):
                value = known.get(name)
                if isinstance(value, np.ndarray) and id(root := _root(value)) in sizes:
                    first, _ = uses.get(id(root), (moment, moment))
                    uses[id(root)] = first, moment
            moment += 1
        last = frame.f_lineno if event == "line" else 0 if event == "return" else last
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        # Not `run`, which may repeat a plan, without the host program.
        results = loaded.run_seen(program.checked(inputs), lambda _, function: function)
    finally:
        sys.settrace(before)
    for result in results:
        if id(root := _root(result)) in sizes:
            uses[id(root)] = uses.get(id(root), (moment, moment))[0], moment
    changes = [(first, sizes[buffer]) for buffer, (first, _) in uses.items()]
    changes += [(end + 1, -sizes[buffer]) for buffer, (_, end) in uses.items()]
    live = most = 0
    for _, change in sorted(changes):
        live += change
        most = max(most, live)
    return most


def _root(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
