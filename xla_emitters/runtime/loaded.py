"""A program with unknown sizes that is ready to run: its steps are bound at the first call of each set of sizes, and kept.

    program = LoadedProgram(steps_of_buffers(module), platform)
    program.run([x])                    the results; arguments fit the program's parameters
    program.memory([x])                 what happens to its memory
    program.dispatches([x])             the kernels, functions and copies of a run

Threads may call it at once: a call has a frame of its own.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from xla_emitters.errors import InternalError
from xla_emitters.library.arguments import Array
from xla_emitters.program.bind import STAGE, BoundSteps, bind
from xla_emitters.program.executable import Executable
from xla_emitters.program.steps import ArrayPlace, Call, Launch, Recurrence
from xla_emitters.runtime.numpy_calls import NumpyCalls
from xla_emitters.runtime.walk import Frame, Frames, HostMemory, Idle, Platform, Run

if TYPE_CHECKING:
    from xla_emitters.runtime.memory_history import MemoryHistory

FrameT = TypeVar("FrameT", bound=Frame)
MOST_BINDINGS = 64
"""Sets of sizes whose bound steps are kept; the least recently used goes first."""


Watch: TypeAlias = Callable[[Frame, Call | Launch, Run], Run]
"""(frame, step, its run) -> what runs instead"""


class LoadedProgram:
    """See the file's head.

    made      the program's steps
    platform  computes them
    memory    holds its arrays
    runs      calls that succeeded so far
    bindings  sets of sizes that were bound so far
    """

    def __init__(
        self,
        made: Executable,
        platform: NumpyCalls,
        memory: HostMemory | None = None,
    ) -> None:
        self.made, self.platform = made, platform
        self._memory = memory or HostMemory()
        self._idle = Idle()
        self._kept = OrderedDict[tuple[tuple[int, ...], ...], Frames]()
        self._lock = Lock()
        self.runs = self.bindings = 0

    @property
    def donated(self) -> frozenset[int]:
        """Indices of the arguments whose memory a run may take for its results."""
        return self.made.donated

    def bind(self, sizes: Sequence[Sequence[int]]) -> BoundSteps:
        """The steps at these sizes of the arguments. raises DataError where the program refuses them"""
        made = self.made
        with np.errstate(all="ignore"):
            return bind(
                made.steps, made.parameters, made.results, sizes, made.constants, self.platform.evaluate, made.alignment
            )

    def prepare(self, sizes: Sequence[tuple[int, ...]]) -> None:
        """Binds the steps at these sizes of the arguments, for the calls that follow. raises like `bind`"""
        if (key := tuple(sizes)) not in self._kept:
            self._frames(key)

    def run(self, inputs: Sequence[Any], queue: Any = None) -> list[Any]:
        """The results. raises DataError, ExecutionError

        queue  what orders the work of the call, as for `Frames.run`

        They may take the memory of donated arguments: the caller must not need these arrays afterwards.
        """
        key = tuple([array.shape for array in inputs])
        frames = self._kept.get(key)
        if frames is None:
            frames = self._frames(key)
        else:
            try:
                self._kept.move_to_end(key)
            except KeyError:
                pass  # another thread has dropped it; this call still has it
        with np.errstate(all="ignore"):
            found = frames.run(inputs, queue)
        self.runs += 1
        return found

    def _frames(self, key: tuple[tuple[int, ...], ...]) -> Frames:
        bound = self.bind(key)
        frames = Frames(lambda: self.frame(bound), self._idle)
        with self._lock:
            self.bindings += 1
            self._kept[key] = frames
            while len(self._kept) > MOST_BINDINGS:
                self._kept.popitem(last=False)[1].drop()
        return frames

    def frame(self, bound: BoundSteps) -> Frame:
        """Memory and steps of one call at a time."""
        return Frame(bound, self.made, self.platform, self._memory)

    def _run_once(
        self,
        kind: type[FrameT],
        inputs: Sequence[Any],
        platform: Platform | None = None,
        memory: HostMemory | None = None,
    ) -> tuple[FrameT, list[Any]]:
        """A frame of this class, on another platform and in other memory if these are given, and its results."""
        bound = self.bind([array.shape for array in inputs])
        frame = kind(bound, self.made, platform or self.platform, memory or self._memory)
        with np.errstate(all="ignore"):
            return frame, frame.run(inputs)

    def memory(self, inputs: Sequence[Array]) -> MemoryHistory:
        """What a run on these arguments does to its memory. raises like `run`"""
        from xla_emitters.runtime.memory_history import WatchedFrame  # imported here: few runs are watched

        return self._run_once(WatchedFrame, inputs)[0].memory()

    def run_watched(self, inputs: Sequence[Any], watch: Watch, memory: HostMemory | None = None) -> list[Any]:
        """Like `run`, in memory of its own, with each call and launch replaced by what `watch` makes of it."""
        return self._run_once(Frame, inputs, _Watched(self.platform, watch), memory)[1]

    def run_in(self, kind: type[Frame], inputs: Sequence[Any]) -> list[Any]:
        """Like `run`, once, in a frame of another class."""
        return self._run_once(kind, inputs)[1]

    def dispatches(self, inputs: Sequence[Array]) -> list[Dispatch]:
        """What a run on these arguments launches, calls and copies, in order; without arithmetic of the host. raises like `run`"""
        log, start = list[Dispatch](), time.perf_counter()

        def watch(frame: Frame, step: Call | Launch, run: Run) -> Run:
            arguments = (*step.reads, *step.writes) if isinstance(step, Call) else step.arguments
            places = [value for value in arguments if isinstance(value, ArrayPlace)]
            if isinstance(step, Call) and not any(place.on_device for place in places):
                return run
            operands = frame.operands(places)
            op = self.made.ops[step.op] if isinstance(step, Call) else None
            call = "launch" if op is None else op.name.rpartition(".")[2]
            name = step.name if isinstance(step, Call) else step.kernel
            grid = frame.values(step.grid) if isinstance(step, Launch) else tuple[int, ...]

            def logged() -> None:
                arrays = operands()
                shown = (
                    f"{place.dtype}[{','.join(map(str, array.shape))}]"
                    for place, array in zip(places, arrays, strict=True)
                )
                size = sum(array.nbytes for array in arrays)
                began = time.perf_counter()
                run()
                took = time.perf_counter() - began
                log.append(Dispatch(call, name, tuple(shown), size, grid(), op, began - start, took))

            return logged

        self.run_watched(inputs, watch)
        return log

    def run_on_garbage(self, inputs: Sequence[Array]) -> list[Array]:
        """Like `run`, on memory in which nothing is right by chance: NaN, -1, True.

        For checks: memory that was just freed may contain the very numbers that a wrong program forgets to write.
        """
        from xla_emitters.runtime.memory_history import WatchedFrame  # imported here: few runs are watched

        frame, found = self._run_once(WatchedFrame, inputs, memory=HostMemory(garbage))
        if left := frame.left():
            raise InternalError(f"{len(left)} buffers were not freed, the first of {list(left[0].shape)}", stage=STAGE)
        return found


@dataclass(frozen=True)
class Dispatch:
    """One launch, or one call of a function.

    call    "launch", or the opcode of what is called: "dot", "copy", "d2h"
    name    of the kernel or the instruction
    arrays  "f32[2,3]", in the order of the arguments
    bytes   of all of them
    grid    blocks in x, y, z of a launch
    op      of a call
    start   seconds since the run began, and `seconds` that it took, here on the CPU
    """

    call: str
    name: str
    arrays: tuple[str, ...]
    bytes: int
    grid: tuple[int, ...] = ()
    op: Any = None
    start: float = field(default=0.0, compare=False)
    seconds: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        return " ".join((self.call, self.name, *self.arrays))


@dataclass(frozen=True)
class _Watched(Platform):
    """Another platform; what it computes is watched, each step alone."""

    platform: Platform
    watch: Watch

    def call(self, frame: Frame, step: Call) -> Run:
        return self.watch(frame, step, self.platform.call(frame, step))

    def launch(self, frame: Frame, step: Launch) -> Run:
        return self.watch(frame, step, self.platform.launch(frame, step))

    def outlasts(self, ends: Recurrence, state: Sequence[Any], most: int) -> bool:
        return self.platform.outlasts(ends, state, most)


def garbage(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Memory with all bits set: NaN in floats, -1 in integers; True for pred."""
    buffer: Array = np.empty(shape, dtype)
    buffer.reshape(-1).view(np.uint8)[...] = 1 if dtype == np.bool_ else 0xFF
    return buffer
