"""Plans: what a program does at sizes that it has seen, without the host program between.

    plans = Plans(kernels, steps, record)
    plans.run([x], context)          the results; None where there is no plan, or none can be used now

The second call at the same sizes is recorded (`recording`); from the third on a call is

    results = [empty(...), ...]
    replay(header)                   all kernels, one after the other, by one call of machine code

A kernel's arguments are words in memory, prepared once; those that are arrays of the caller are written anew in each call. Buffers are the
plan's own, and are used again. What is no kernel is called from Python between; so is a kernel whose arrays are so large that threads share
its blocks. Where the program reads an element of a buffer, a plan goes on with the segment that the value has, or ends: then the host
program runs, and its recording adds the segment.

Plans are kept for the last MOST_PLANS sizes, as long as their memory is not more than MOST_BYTES. One call at a time uses them: where
another thread is at it, the host program runs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.ral.context import Context
from xla_emitters.runtime.ral.host_kernels import ALIGNMENT, HostKernels
from xla_emitters.runtime.ral.recording import MOST_SEGMENTS, Recording, Unplanned
from xla_emitters.runtime.ral.segment_code import SegmentCode, Steps
from xla_emitters.runtime.ral.segments import Segment

MOST_PLANS, MOST_BYTES = 64, 1 << 28
Key: TypeAlias = tuple[Any, ...]
Recorder: TypeAlias = Callable[[Sequence[Array], Segment, bool], tuple[list[Array], Recording]]
"""Runs the host program and records it; with a flag whether it may stop by Unplanned."""


@dataclass(eq=False)
class Plan:
    """What a program does at some sizes.

    root   its first segment
    runs   how many calls were at these sizes before it was recorded
    usable whether calls can be recorded and repeated
    """

    root: Segment = field(default_factory=Segment)
    is_recorded: bool = False
    usable: bool = True
    bytes: int = 0


class Plans:
    """The plans of one program.

    kernels  of the program
    steps    machine code for all programs, and the entries of this one's kernels
    record   runs the host program and records it
    """

    def __init__(self, kernels: HostKernels, steps: Steps, record: Recorder) -> None:
        self._kernels = kernels
        self._steps = steps
        self._record = record
        self._known = OrderedDict[Key, Plan]()
        self._lock = Lock()

    def run(self, inputs: Sequence[Any], context: Context) -> list[Array] | None:
        """The results of a call at sizes that are known; None: the program is to run. The inputs need not have been checked."""
        for array in inputs:
            if type(array) is not np.ndarray:
                return None
        plan = self._known.get(_key(inputs))
        if plan is None or not plan.is_recorded or not self._lock.acquire(blocking=False):
            return None
        try:
            return self._replay(plan, inputs, context)
        finally:
            self._lock.release()

    def record(self, inputs: Sequence[Array], *, may_stop: bool = False) -> list[Array] | None:
        """The results of a call that is recorded; None: the program is to run as usual.

        raises  as the program; Unplanned if the recording may stop, where the call cannot be repeated
        """
        key = _key(inputs)
        if not self._lock.acquire(blocking=False):
            return None
        try:
            plan = self._known.get(key)
            if plan is None:
                self._known[key] = Plan()
                while len(self._known) > MOST_PLANS:
                    self._known.popitem(last=False)
                return None
            return self._recorded(key, plan, inputs, may_stop) if plan.usable else None
        finally:
            self._lock.release()

    def _recorded(self, key: Key, plan: Plan, inputs: Sequence[Array], may_stop: bool) -> list[Array]:
        """Runs the host program, and makes a plan of what it does."""
        plan.is_recorded = plan.usable = False  # should the call fail
        try:
            results, recording = self._record(inputs, plan.root, may_stop)
        except BaseException:
            del self._known[key]
            raise
        try:
            recording.finish()
            self._compile(plan, len(inputs))
            plan.is_recorded = plan.usable = True
        except Unplanned:
            plan.root = Segment()
        return results

    def _compile(self, plan: Plan, inputs: int) -> None:
        """Code for the segments that have none. raises Unplanned where there are too many, or they need too much memory"""
        segments = [plan.root]
        for segment in segments:
            segments += segment.children.values()
        memory = {id(slot.memory): slot.memory.nbytes for segment in segments for slot in segment.slots}
        plan.bytes = sum(memory.values())
        if len(segments) > MOST_SEGMENTS or plan.bytes > MOST_BYTES:
            raise Unplanned("too many segments, or too much memory")
        for segment in segments:
            if segment.code is None:
                segment.code = SegmentCode(segment, inputs, self._kernels, self._steps)
                segment.events.clear()
        total = sum(other.bytes for other in self._known.values())
        for other, old in list(self._known.items()):
            if total <= MOST_BYTES:
                break
            if old is not plan:
                del self._known[other]
                total -= old.bytes

    def _replay(self, plan: Plan, inputs: Sequence[Array], context: Context) -> list[Array] | None:
        segment, replay = plan.root, self._steps.replay
        while True:
            code: SegmentCode = segment.code
            results = [np.empty(shape, dtype) for shape, dtype in code.results]
            code.pack(code.objects, 0, *map(id, inputs), *map(id, results))
            if code.header:
                if replay(code.header):
                    return self._replay(plan, [_aligned(array) for array in inputs], context)
            elif not code.run(inputs, results, replay):
                return self._replay(plan, [_aligned(array) for array in inputs], context)
            if segment.read is None:
                context.count(segment.allocations, segment.peak_bytes)
                return results
            value = code.read(inputs)
            following = segment.children.get(value if value == value else "nan")
            if following is None:
                return None
            segment = following


def _key(inputs: Sequence[Array]) -> Key:
    return tuple([(array.shape, array.strides, array.dtype) for array in inputs])


def _aligned(array: Array) -> Array:
    return array.copy() if array.ctypes.data % ALIGNMENT else array
