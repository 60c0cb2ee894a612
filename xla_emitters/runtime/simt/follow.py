"""Watchers that also see the results of ops: the values of one thread, in the order in which it computes them.

    lane = LaneValues(block=0, thread=17)
    execute(module, arrays, blocks=[0], watchers=[lane])
    lane.computed     [(arith.muli, (17,)), (tensor.extract, (0.25,)), ...]

An op is seen each time that the thread runs it, ops in loops and called functions too. A call whose result is known from an equal call
is not run again, so its ops are seen once. A run without followers costs nothing: only then are rules wrapped.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.code import FrameSlots, Rules, Step, StepRule
from xla_emitters.runtime.simt.machine import Frame, Machine
from xla_emitters.runtime.simt.memory import Access, Memory, Watcher

MOST_VALUES = 200_000
"""Most values that are recorded of a thread."""


class Follower(Watcher):
    """A watcher that also gets the results of each op."""

    @abstractmethod
    def follow(self, machine: Machine, op: Operation, values: Sequence[Any]) -> None:
        """The active lanes have computed the results of `op`."""


def followed(rules: Rules, watchers: Sequence[Watcher]) -> Rules:
    """Rules whose steps report results to the followers among `watchers`; `rules` itself if there are no followers."""
    if not (followers := [watcher for watcher in watchers if isinstance(watcher, Follower)]):
        return rules
    return _Followed(rules, followers)


class _Followed(Rules):
    """Rules whose steps report results."""

    def __init__(self, rules: Rules, followers: Sequence[Follower]) -> None:
        super().__init__(rules)
        self._followers = followers

    def step_of(self, name: str) -> StepRule | None:
        rule = super().step_of(name)
        return _reporting(rule, self._followers) if rule is not None else None


def _reporting(
    rule: Callable[[Any, FrameSlots], Step], followers: Sequence[Follower]
) -> Callable[[Any, FrameSlots], Step]:
    def reporting_rule(op: Any, scope: FrameSlots) -> Step:
        step, results = rule(op, scope), scope.slots(op.results)

        def run(machine: Machine, frame: Frame) -> None:
            step(machine, frame)
            for follower in followers:
                follower.follow(machine, op, [frame[slot] for slot in results])

        return run

    return reporting_rule


Number = float | int | complex
"""One lane's value of a scalar, as a Python number."""


@dataclass
class LaneValues(Follower):
    """Records the values that one thread computes.

    block, thread  linear numbers
    computed       op, and the numbers among its results; a vector's elements one by one
    """

    block: int
    thread: int
    computed: list[tuple[Operation, tuple[Number, ...]]] = field(
        default_factory=list[tuple[Operation, tuple[Number, ...]]]
    )

    def restart(self) -> None:
        self.computed.clear()

    def follow(self, machine: Machine, op: Operation, values: Sequence[Any]) -> None:
        if len(self.computed) >= MOST_VALUES or not (rows := np.flatnonzero(machine.memory.blocks == self.block)).size:
            return
        lane = (int(rows[0]), self.thread)
        if machine.active is None or np.broadcast_to(machine.active, machine.shape)[lane]:
            self.computed.append((op, tuple(number for value in values for number in _numbers(value, machine, lane))))


def _numbers(value: Any, machine: Machine, lane: tuple[int, int]) -> Sequence[Number]:
    """A lane's part of a value; nothing for a tensor."""
    match value:
        case tuple():
            return [number for part in cast("tuple[Any, ...]", value) for number in _numbers(part, machine, lane)]
        case np.ndarray():
            array = cast(Array, value)
        case _:
            return ()
    # Python's integers (above 64 bits) have no dtype; the array has.
    number: Any = np.broadcast_to(array, machine.shape)[lane]
    if "float" in array.dtype.name:
        return (float(number),)
    return (complex(number),) if array.dtype.kind == "c" else (int(number),)


@dataclass
class LastWriter(Watcher):
    """Finds the last thread that writes an element of an argument.

    numbers     of the buffers that belong to the argument
    element     flat, in memory
    bytes_each  of an element; 0.5 where two are in a byte
    found       (block, thread), linear; None: no thread writes the element
    op          the op that writes it
    """

    numbers: frozenset[int]
    element: int
    bytes_each: float
    found: tuple[int, int] | None = None
    op: Operation | None = None

    def access(self, memory: Memory, access: Access) -> None:
        if not access.is_store or access.buffer.number not in self.numbers:
            return
        first = int(self.element * self.bytes_each)
        last = max(first, int((self.element + 1) * self.bytes_each) - 1)
        hit: Array = (access.offsets <= last) & (access.offsets + access.size > first)
        if access.active is not None:
            hit = hit & access.active
        if hit.any():
            lanes = np.argwhere(np.broadcast_to(hit, (len(memory.blocks), memory.launch.threads)))
            row, thread = (int(number) for number in lanes[-1])
            self.found, self.op = (int(memory.blocks[row]), thread), access.op
