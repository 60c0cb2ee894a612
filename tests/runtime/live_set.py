"""The least memory that a run of a program needs in its order: each buffer lives from the first step that uses it to the last.

    program.memory(inputs).peak       the most bytes of buffers that have memory at once
    live_set(program, inputs)         the most bytes of buffers that are used before and after one moment

An allocation is not a use, nor is a second name of the buffer or its release. A returned buffer is in use until the end. The count does
not depend on when the program allocates and frees its buffers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xla_emitters.program import Program
from xla_emitters.program.steps import ArrayPlace, Call, Launch
from xla_emitters.runtime.walk import Frame, HostMemory, Platform, Run


class _Watching(Platform):
    """Another platform, which notes the arrays that each step uses on the device."""

    def __init__(self, platform: Platform, seen: list[list[Any]]) -> None:
        self._platform, self._seen = platform, seen

    def call(self, frame: Frame, step: Call) -> Run:
        return self._watched(frame, self._platform.call(frame, step), (*step.reads, *step.writes))

    def launch(self, frame: Frame, step: Launch) -> Run:
        places = [value for value in step.arguments if isinstance(value, ArrayPlace)]
        return self._watched(frame, self._platform.launch(frame, step), places)

    def _watched(self, frame: Frame, run: Run, places: Sequence[ArrayPlace]) -> Run:
        operands = frame.operands([place for place in places if place.on_device])

        def watched() -> None:
            self._seen.append([_root(array) for array in operands()])
            run()

        return watched


def live_set(program: Program, inputs: Sequence[Any]) -> int:
    """Bytes, for these arguments."""
    loaded, arrays, seen = program.compilation.loaded, program.compilation.checked(inputs), list[list[Any]]()
    made = loaded.made
    bound = replace(loaded.bind([array.shape for array in arrays]), offsets={}, arena_bytes=0)
    platform = _Watching(loaded.platform, seen)
    results = Frame(bound, made, platform, HostMemory()).run(arrays)
    outside = {id(_root(array)) for array in (*arrays, *(array for _, array in made.constants))}
    uses, sizes = dict[int, tuple[int, int]](), dict[int, int]()
    for moment, used in enumerate([*seen, [_root(result) for result in results]]):
        for array in used:  # `seen` keeps all of them, so that each id stays its own
            if id(array) not in outside:
                uses[id(array)] = uses.get(id(array), (moment, moment))[0], moment
                sizes[id(array)] = array.nbytes
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
