"""A program with unknown sizes that is ready to run: its steps are bound at the first call of each set of sizes, and kept.

    program = LoadedProgram(steps_of_buffers(module), platform)
    program.run([x])                    the results; arguments fit the program's parameters
    program.memory([x])                 what happens to its memory
    program.calls([x])                  the kernels, functions and copies of a run

Threads may call it at once: a call has a frame of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.host.steps_of_buffers import SizedSteps
from xla_emitters.program.bind import Bound, bind
from xla_emitters.program.sized import Call, Launch
from xla_emitters.runtime.memory import Memory, WatchedFrame
from xla_emitters.runtime.numpy_platform import NumpyPlatform
from xla_emitters.runtime.steps import MOST_ITERATIONS
from xla_emitters.runtime.walk import Frame, FrameArguments, Frames, Run

MOST_BINDINGS = 64
"""Sets of sizes whose bound steps are kept; the least recently used goes first."""
ALIGNMENT = 16
"""Bytes: the alignment of each array that a kernel takes."""


@dataclass(frozen=True)
class Counters:
    """Counts since the program was loaded.

    runs      calls that succeeded
    bindings  sets of sizes that were bound
    """

    runs: int = 0
    bindings: int = 0


class LoadedProgram:
    """See the file's head.

    made      the program's steps
    platform  computes them
    """

    def __init__(self, made: SizedSteps, platform: NumpyPlatform, *, most_iterations: int = MOST_ITERATIONS) -> None:
        self.made, self.platform, self._most_iterations = made, platform, most_iterations
        self._kept = OrderedDict[tuple[tuple[int, ...], ...], Frames]()
        self._lock = Lock()
        self._runs = self._bindings = 0

    @property
    def counters(self) -> Counters:
        return Counters(self._runs, self._bindings)

    def bind(self, sizes: Sequence[Sequence[int]]) -> Bound:
        """The steps at these sizes of the arguments. raises DataError where the program refuses them"""
        made = self.made
        with np.errstate(all="ignore"):
            return bind(made.steps, made.parameters, made.results, sizes, made.constants, self.platform.evaluate)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The results. raises DataError, ExecutionError

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
            found = frames.run([array if array.ctypes.data % ALIGNMENT == 0 else array.copy() for array in inputs])
        self._runs += 1
        return found

    def _frames(self, key: tuple[tuple[int, ...], ...]) -> Frames:
        bound = self.bind(key)
        frames = Frames(lambda: self.frame(bound))
        with self._lock:
            self._bindings += 1
            self._kept[key] = frames
            while len(self._kept) > MOST_BINDINGS:
                self._kept.popitem(last=False)
        return frames

    def frame(self, bound: Bound, *, empty: Callable[[tuple[int, ...], Any], Array] = np.empty) -> Frame:
        """Memory and steps of one call at a time."""
        return Frame(bound, *self._arguments._replace(empty=empty))

    @property
    def _arguments(self) -> FrameArguments:
        made = self.made
        return FrameArguments(
            made.parameters, made.slots, made.numbers, made.constants, self.platform, self._most_iterations
        )

    def memory(self, inputs: Sequence[Array]) -> Memory:
        """What a run on these arguments does to its memory. raises like `run`"""
        frame = WatchedFrame(self.bind([array.shape for array in inputs]), self.made.names, self._arguments)
        with np.errstate(all="ignore"):
            frame.run(inputs)
        return frame.memory()

    def calls(self, inputs: Sequence[Array]) -> list[str]:
        """The kernels that a run on these arguments launches, and the ops that it calls, in order; without arithmetic of the host."""
        log = list[str]()
        arguments = self._arguments._replace(platform=LoggingPlatform(self.platform, log))
        with np.errstate(all="ignore"):
            Frame(self.bind([array.shape for array in inputs]), *arguments).run(inputs)
        return log

    def run_on_garbage(self, inputs: Sequence[Array]) -> list[Array]:
        """Like `run`, on memory in which nothing is right by chance: NaN, -1, True.

        For checks: memory that was just freed may contain the very numbers that a wrong program forgets to write.
        """
        bound = self.bind([array.shape for array in inputs])
        with np.errstate(all="ignore"):
            return self.frame(bound, empty=garbage).run(inputs)


class LoggingPlatform:
    """Another platform, which writes down what it computes on the device."""

    def __init__(self, platform: NumpyPlatform, log: list[str]) -> None:
        self._platform, self._log = platform, log

    def call(self, frame: Frame, step: Call) -> Run:
        run, name = self._platform.call(frame, step), self._platform.name_of(step)
        if not any(place.on_device for place in (*step.reads, *step.writes)):
            return run
        return lambda: (self._log.append(name), run())[1]

    def launch(self, frame: Frame, step: Launch) -> Run:
        run = self._platform.launch(frame, step)
        return lambda: (self._log.append(step.kernel), run())[1]


def garbage(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Memory with all bits set: NaN in floats, -1 in integers; True for pred."""
    buffer: Array = np.empty(shape, dtype)
    buffer.reshape(-1).view(np.uint8)[...] = 1 if dtype == np.bool_ else 0xFF
    return buffer
