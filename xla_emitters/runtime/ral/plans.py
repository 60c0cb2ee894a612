"""Plans: repeat a program's call at sizes that it has seen, without running the host program.

    plans = Plans(kernels, steps, record)
    plans.run([x], context)          the results; None if there is no plan, or none that can be used now

The second call at the same sizes is recorded (`recording`); from the third on a call is

    results = [empty(...), ...]
    replay(header)                   all kernels, one after the other, in one call of machine code

A kernel's arguments are words in memory, prepared once; addresses of the caller's arrays are written in each call. Buffers belong to the
plan and are reused; a donated argument is written, and is the result, if the program does so. Ops that are not kernels are called from
Python in between; so is a kernel with arrays so large that threads share its blocks. Where the program reads an element of a buffer, the
plan continues with the segment for that value. If there is none, the host program runs, and its recording adds the segment.

While fusions are counted (`heat`), plans count too. A plan repeats the kernels that ran when it was recorded: if one was installed or
removed since, the host program runs, and after `wait` calls, in which kernels are timed, the plan is recorded anew.

Each read of data costs some microseconds of Python between two segments. Calls with more than FEW_READS of them are counted, so that the
program can be made machine code; with `limit_reads` there are no plans for such calls.

Plans are kept for the MOST_PLANS sizes that were called last, as long as their buffers, and EVENT_BYTES for each event, take at most
MOST_BYTES. One call at a time uses them: while another thread does, the host program runs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.ral.context import Context
from xla_emitters.runtime.ral.host_kernels import ALIGNMENT, HostKernels
from xla_emitters.runtime.ral.hot_spots import Spot
from xla_emitters.runtime.ral.recording import FEW_READS, MOST_EVENTS, MOST_SEGMENTS, Recording, Unplanned
from xla_emitters.runtime.ral.segment_code import SegmentCode, Steps
from xla_emitters.runtime.ral.segments import Plan, Segment

MOST_PLANS, MOST_BYTES = 1024, 1 << 28
EVENT_BYTES = 512
"""About the memory of an event's code, and of a segment without events."""
AGAIN = 16
"""Calls after which sizes whose plan was dropped for its memory are recorded again: recording takes about as long as a call."""
Key: TypeAlias = tuple[Any, ...]
Recorder: TypeAlias = Callable[[Recording], list[Array]]
"""Runs the host program as this call."""
Owner: TypeAlias = Callable[[list[Array]], list[Array]]
"""Returns the arguments with copies of donated ones that the caller still needs: the program may overwrite the rest."""


class Plans:
    """The plans of one program.

    kernels  of the program
    steps    machine code for all programs, and the entries of this program's kernels
    record   runs the host program as a call that is recorded
    donated  indices of the arguments whose memory a run may take
    wait     number of calls at the same sizes before recording
    most_reads  reads of data in a call that has a plan
    """

    def __init__(
        self,
        kernels: HostKernels,
        steps: Steps,
        record: Recorder,
        donated: frozenset[int] = frozenset(),
        wait: int = 1,
        most_reads: int = MOST_EVENTS,
    ) -> None:
        self._kernels = kernels
        self._steps = steps
        self._record = record
        self._donated = donated
        self._wait = wait
        self._most_reads = most_reads
        self.slow_reads = 0
        """Elements that were read in repeated calls with more than FEW_READS of them."""
        self._known = OrderedDict[Key, Plan]()
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Memory of the buffers and the code that plans keep."""
        return sum(plan.bytes for plan in self._known.values() if plan.is_recorded)

    def run(self, inputs: Sequence[Any], context: Context, own: Owner | None = None) -> list[Array] | None:
        """The results of a call at known sizes; None: the host program must run. The inputs need not have been checked.

        own  makes the arguments the program's own; None: they are
        """
        for array in inputs:
            if type(array) is not np.ndarray:
                return None
        key = _key(inputs)
        plan = self._known.get(key)
        if plan is None or not plan.is_recorded or not self._lock.acquire(blocking=False):
            return None
        try:
            if key in self._known:
                self._known.move_to_end(key)
            if plan.takes:
                owned = list(inputs) if own is None else own(list(inputs))
                inputs = [_aligned(array) for array in owned]  # before the first step: no step is done twice
            return self._replay(plan, inputs, context)
        finally:
            self._lock.release()

    def record(self, inputs: Sequence[Array], context: Context, *, may_stop: bool = False) -> list[Array] | None:
        """The results of a call, which is recorded; None: the host program must run as usual.

        raises  like the program; if the recording may stop, Unplanned for a call that cannot be repeated
        """
        key = _key(inputs)
        if not self._lock.acquire(blocking=False):
            return None
        try:
            plan = self._known.get(key)
            if plan is None:
                plan = self._known[key] = Plan()
                while len(self._known) > MOST_PLANS:
                    self._known.popitem(last=False)
            plan.calls += not plan.is_recorded
            if plan.calls <= self._wait or not plan.usable or plan.refuses(inputs):
                return None
            recording = Recording(context, inputs, plan, self._donated, may_stop=may_stop, most_reads=self._most_reads)
            return self._recorded(plan, recording)
        finally:
            self._lock.release()

    def limit_reads(self) -> None:
        """From now on calls with more than FEW_READS reads of data have no plan: machine code is faster."""
        self._most_reads, self.slow_reads = FEW_READS, 0

    def _recorded(self, plan: Plan, recording: Recording) -> list[Array]:
        """Runs the host program, and makes a plan of its events. raises like `record`"""
        found, results = (len(plan.deciding), plan.has_constants), None
        try:
            results = self._record(recording)
            recording.finish()
            self._compile(plan, len(recording.inputs))
        except Unplanned:
            recording.refuse()
            if results is None:
                raise
        except BaseException:
            plan.root, plan.is_recorded = Segment(), False
            raise
        finally:
            if (len(plan.deciding), plan.has_constants) != found:
                # The next recording reads the deciding arguments first, or has no constants.
                plan.root, plan.is_recorded, plan.usable = Segment(), False, True
        return results

    def _compile(self, plan: Plan, inputs: int) -> None:
        """Compiles the segments that have no code; if they are too many, or need too much memory, calls are not repeated."""
        segments, level, longest = list[Segment](), [plan.root], 0
        while level:
            segments += level
            level, longest = [child for segment in level for child in segment.children.values()], longest + 1
        memory = {id(slot.memory): slot.memory.nbytes for segment in segments for slot in segment.slots}
        plan.bytes = sum(memory.values()) + EVENT_BYTES * sum(1 + segment.count for segment in segments)
        if len(segments) > MOST_SEGMENTS + longest or plan.bytes > MOST_BYTES:
            plan.root, plan.is_recorded, plan.usable = Segment(), False, False
            return
        for segment in segments:
            if segment.code is None and not segment.refused:
                segment.code = SegmentCode(segment, inputs, self._kernels, self._steps)
                segment.events.clear()
        plan.is_recorded = True
        left = self.bytes - MOST_BYTES
        for old in self._known.values():
            if left <= 0:
                break
            if old is not plan and old.is_recorded:
                left -= old.bytes
                old.root, old.is_recorded, old.calls = Segment(), False, -AGAIN

    def _replay(self, plan: Plan, inputs: Sequence[Array], context: Context) -> list[Array] | None:
        segment, replay, spots = plan.root, self._steps.replay, list[tuple[tuple[Spot, object], int]]()
        reads = 0
        while True:
            code: SegmentCode | None = segment.code
            if code is None:
                return None
            if segment.spots:
                if segment.is_stale:
                    plan.root, plan.is_recorded, plan.calls = Segment(), False, 0
                    return None
                spots += segment.spots.items()
            results = [
                np.empty(shape, dtype) if number is None else inputs[number].reshape(shape)
                for shape, dtype, number in code.results
            ]
            if not code.is_empty:
                code.pack(code.objects, 0, *map(id, inputs), *map(id, results))
                if replay(code.header) if code.header else not code.run(inputs, results, replay):
                    return self._replay(plan, [_aligned(array) for array in inputs], context)
            if segment.read is None:
                context.count(segment.allocations, segment.peak_bytes)
                if context.heat is not None:
                    for (spot, kernel), times in spots:
                        context.heat.repeated(spot, times, is_hot=kernel is not None)
                if reads > FEW_READS:
                    self._has_read(plan, reads)
                return results
            reads += 1
            value = code.read(inputs)
            following = segment.children.get(value if value == value else "nan")
            if following is None:
                return None
            segment = following

    def _has_read(self, plan: Plan, reads: int) -> None:
        """Counts the reads of a call with many; the call is the last by its plan if there are more than allowed."""
        self.slow_reads += reads
        if reads > self._most_reads:
            plan.root, plan.is_recorded, plan.usable = Segment(), False, False


def _key(inputs: Sequence[Array]) -> Key:
    return tuple([(array.shape, array.strides, array.dtype) for array in inputs])


def _aligned(array: Array) -> Array:
    return array.copy() if array.ctypes.data % ALIGNMENT else array
