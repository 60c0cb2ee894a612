"""Finds endless loops: a round that begins in exactly the state of an earlier round proves that the loop never ends.

    scf.while in block 0, thread 3 never ends: round 128 begins with the values of round 64, and nothing was written between them

Lanes run in lockstep and nothing else changes their memory, so a round is determined by the values that it begins with, by which lanes are
active, and by memory. A loop that ends is never refused; one that waits for what other lanes write, such as a lock, lets them run first:
when its state comes again, or if it changes memory itself, now and then. An
endless loop whose values keep changing, such as a counter, is found only by a limit of rounds, which the caller may set:
`execute(..., max_rounds=...)`.
Source: Brent, "An improved Monte Carlo factorization algorithm" (1980), cycle detection: compare with the last power of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.locations import place_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt.machine import WARP_SIZE, Machine, Value
from xla_emitters.runtime.simt.shared_calls import integers_of

UNWATCHED = 64
"""Rounds of a loop before comparisons begin: most loops have fewer. Also after how many a loop with atomic accesses lets others run."""

QUIET = 1 << 9
"""Rounds in which memory does not change, after which blocks seem to wait for others."""

State: TypeAlias = Value | int | None

_ALL_LANES = np.ones((1, 1), np.bool_)


class Rounds:
    """The rounds of one loop that is running.

    op      names the loop in messages
    _age    rounds since lanes were last sent to wait
    _quiet  `Memory.changes` when it was seen to change last, and the round
    """

    def __init__(self, machine: Machine, op: Operation) -> None:
        self.machine = machine
        self.op = op
        self.count = 0
        self._saved_at = 0
        self._saved: Sequence[State] = ()
        self._saved_lanes: Sequence[Array | None] = ()
        self._saved_changes = -1
        self._age = 0
        self._quiet = (-1, 0)

    def begin(
        self,
        state: Sequence[State],
        waiting: Sequence[Array | None] = (),
        others_can_run: Callable[[], bool] = lambda: False,
        *,
        is_asking: bool = False,
    ) -> bool:
        """Called when another round begins for the machine's active lanes.

        state    the values that it begins with: arrays, tuples, tensors, None; those most likely to differ first
        waiting  for each other block, the lanes that will continue there
        others_can_run  whether some of these may end the loop by what they write
        is_asking  whether the last round had atomic accesses: it may look for what others write
        returns  whether the lanes should wait for those: the state is that of an earlier round, or it is their turn
        raises   ExecutionError if it is and nobody else can run, or the caller's limit is exceeded
        """
        machine = self.machine
        machine.known.begin_round()
        self.count += 1
        self._age += 1
        if machine.max_rounds is not None and self.count > machine.max_rounds:
            raise ExecutionError(
                f"{self.op.name} goes on for more than {machine.max_rounds} rounds",
                stage="simt",
                details=(f"at {place_of(self.op) or str(self.op).splitlines()[0]}",),
                help="raise max_rounds if it ends",
            )
        if self.count < UNWATCHED:
            return False
        if machine.may_restart:
            if self._quiet[0] != machine.memory.changes:
                self._quiet = machine.memory.changes, self.count
            elif self.count - self._quiet[1] > QUIET:
                raise ExecutionError(f"{self.op.name} waits for blocks that do not run yet", stage="simt")
        if is_asking and self.count % UNWATCHED == 0 and self._are_whole_warps(waiting) and others_can_run():
            return True
        places = [machine.active, *waiting]
        lanes = (
            None if machine.active is None else reduce(np.logical_or, [place for place in places if place is not None])
        )
        if (
            machine.memory.changes == self._saved_changes
            and all(_same(now, then, None) for now, then in zip(places, self._saved_lanes, strict=True))
            and all(_same(now, then, lanes) for now, then in zip(state, self._saved, strict=True))
        ):
            self._age = 0
            if others_can_run():
                return True
            rounds = f"round {self.count} begins with the values of round {self._saved_at}"
            ran, of = len(machine.blocks), machine.launch.blocks
            alone = "" if ran == of else f"; only {ran} of the grid's {of} blocks run at once here"
            machine.refuse(self.op, _ALL_LANES, f"never ends: {rounds}, and nothing was written between them{alone}")
        if self._age & (self._age - 1) == 0:
            self._saved_at, self._saved, self._saved_lanes = self.count, list(state), places
            self._saved_changes = machine.memory.changes
        return False

    def _are_whole_warps(self, waiting: Sequence[Array | None]) -> bool:
        """Whether no lane that waits is of a warp with active lanes: those of a warp should meet again, for shuffles."""
        shape = self.machine.shape
        active = np.broadcast_to(True if self.machine.active is None else self.machine.active, shape)
        others = reduce(np.logical_or, (lanes for lanes in waiting if lanes is not None), np.zeros(shape, np.bool_))
        starts = np.arange(0, shape[1], WARP_SIZE)
        of_warps = (np.logical_or.reduceat(lanes, starts, axis=1) for lanes in (active, others))
        return not np.logical_and(*of_warps).any()


def _same(now: State, then: State, lanes: Array | None) -> bool:
    """Whether two values have the same bits in all those lanes."""
    if now is then:
        return True
    if isinstance(now, np.ndarray) and isinstance(then, np.ndarray):
        if now.dtype != then.dtype or now.shape != then.shape:
            return False
        differs = [one != two for one, two in zip(integers_of(now), integers_of(then), strict=True)]
        return not any((part if lanes is None else part & lanes).any() for part in differs)
    if isinstance(now, tuple) and isinstance(then, tuple):
        return all(_same(one, two, lanes) for one, two in zip(now, then, strict=True))
    return bool(now == then) if type(now) is type(then) else False
