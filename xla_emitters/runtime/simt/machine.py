"""The lanes of one chunk of blocks: how a value is held, which lanes are active, and how the paths of a branch are merged.

                      thread 0   1   2 ... 127
    block 0              ┌─────────────────┐        every value is an array whose axes are (block, thread), either of extent 1
    block 1              │  one lane each  │        where the value does not depend on it: a constant is (1, 1), a block id
    ...                  └─────────────────┘        (blocks, 1), a thread id (1, threads), their sum (blocks, threads)

    scalar       such an array (see `scalars` for its type)
    vector       tuple of arrays, row major: taking or replacing one element costs nothing
    struct       tuple of values
    tensor       `Tensor`: a buffer, and the stamp of one of its successive values

Structured control flow runs both regions under masks and merges the results; where all lanes agree there is no mask. Tensors are
updated in place, which is right as long as only the newest value of a buffer is used. `Machine` checks that: each insert makes a
new stamp, and using a value whose stamp is not its buffer's newest is an ExecutionError. Each path of a branch starts from the
stamp at the branch; after the join there is a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, Union

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.simt.memory import Buffer, Memory, bounds
from xla_emitters.runtime.simt.scalars import Form, chosen
from xla_emitters.runtime.simt.shared_calls import KnownResults

WARP_SIZE = 32


@dataclass(frozen=True)
class Tensor:
    """One value of a tensor: the contents of its buffer while `stamp` is the newest.

    strides   elements between neighbours along each dimension: the tensor's layout
    """

    buffer: Buffer
    element: Form
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    stamp: int


Value: TypeAlias = Union[Array, Tensor, "tuple[Value, ...]"]
Frame: TypeAlias = list[Any]
"""The values of one activation of a function, by slot; a slot is None before its value exists and after its last use."""


@dataclass
class Machine:
    """The state that ops act on.

    active         lanes that run now, bool (blocks or 1, threads or 1); None: all. At least one lane is always active.
    max_rounds     limit of the rounds of a loop without a known trip count; None: no limit
    checks_stamps  whether using a tensor that was overwritten is an error
    known          results of calls, so that equal ones are computed once
    calls          how many calls run, one in another
    may_stall      whether the op that runs may leave lanes behind: it waits, at the start of a block
    may_hold       whether a barrier of whole blocks may: a thread that it misses may wait for another block
    retried        lanes that it left behind before
    stalled        lanes that it leaves behind: they run it again when memory has changed
    gives_up       whether it must not leave any behind: nothing else can run
    may_restart    whether the launch begins anew, with more blocks at once, where these seem to wait for others
    """

    launch: LaunchDimensions
    blocks: Array
    memory: Memory
    max_rounds: int | None = None
    active: Array | None = None
    checks_stamps: bool = True
    last_stamp: int = 0
    known: KnownResults = field(default_factory=KnownResults)
    calls: int = 0
    may_stall: bool = False
    may_hold: bool = False
    retried: Array | None = None
    stalled: Array | None = None
    gives_up: bool = False
    may_restart: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """(blocks, threads) of this chunk."""
        return len(self.blocks), self.launch.threads

    @property
    def lanes(self) -> Array:
        """The lanes that run now, bool (blocks, threads)."""
        return np.broadcast_to(np.True_ if self.active is None else self.active, self.shape)

    def block_id(self, dimension: int) -> Array:
        """Coordinate `dimension` (0 = x) of each lane's block, int64 (blocks, 1)."""
        return self._coordinate(self.blocks, self.launch.grid, dimension)[:, None]

    def thread_id(self, dimension: int) -> Array:
        """Coordinate `dimension` (0 = x) of each lane's thread, int64 (1, threads)."""
        return self._coordinate(np.arange(self.launch.threads), self.launch.block, dimension)[None, :]

    @staticmethod
    def _coordinate(numbers: Array, extents: tuple[int, int, int], dimension: int) -> Array:
        for extent in extents[:dimension]:
            numbers = numbers // extent
        return numbers % extents[dimension]

    # ------------------------------------------------------------------------------------------ masks

    def split(self, condition: Array) -> bool | tuple[Array, Array]:
        """True or False when all active lanes agree on `condition`; else two masks: where it holds, and where it does not."""
        if self.active is None:
            if condition.all():
                return True
            return (condition, ~condition) if condition.any() else False
        yes = condition & self.active
        if not yes.any():
            return False
        no = self.active & ~condition
        return (yes, no) if no.any() else True

    @contextmanager
    def only(self, lanes: Array | None) -> Generator[None]:
        """Runs the body of the `with` for `lanes` only."""
        before, self.active = self.active, lanes
        try:
            yield
        finally:
            self.active = before

    def choose(
        self, condition: Array, then: Callable[[], list[Value]], otherwise: Callable[[], list[Value]]
    ) -> list[Value]:
        """The values of `then()` where `condition` holds, elsewhere those of `otherwise()`; each is called only if a lane needs it.

        A tensor that is the newest value at the end of both paths is the newest after the join; another one stays stale.
        """
        parts = self.split(condition)
        if isinstance(parts, bool):
            return then() if parts else otherwise()
        yes, no = parts
        fork = self._stamps()
        with self.only(yes):
            ones = then()
        after_then = self._stamps()
        for buffer, stamp in zip(self.memory.buffers, fork, strict=False):
            buffer.newest = stamp
        with self.only(no):
            others = otherwise()
        after_else = self._stamps()
        for buffer, one, other in zip(self.memory.buffers, after_then, after_else, strict=False):
            if one != other:
                self._renew(buffer)
        joined: list[Value] = []
        for one, other in zip(ones, others, strict=True):
            value = merge(yes, one, other)
            if isinstance(one, Tensor) and isinstance(other, Tensor):
                number = one.buffer.number
                if one.stamp != after_then[number]:
                    value = one
                elif other.stamp != after_else[number]:
                    value = other
            joined.append(value)
        return joined

    def _stamps(self) -> list[int]:
        return [buffer.newest for buffer in self.memory.buffers]

    # ------------------------------------------------------------------------------------------ tensors

    def tensor(self, buffer: Buffer, element: Form, shape: Sequence[int], strides: Sequence[int]) -> Tensor:
        """The newest value of `buffer` as a tensor."""
        return Tensor(buffer, element, tuple(shape), tuple(strides), buffer.newest)

    def _renew(self, buffer: Buffer) -> int:
        self.last_stamp += 1
        buffer.newest = self.last_stamp
        return self.last_stamp

    def updated(self, tensor: Tensor) -> Tensor:
        """The value of a tensor after a write to its buffer."""
        return Tensor(tensor.buffer, tensor.element, tensor.shape, tensor.strides, self._renew(tensor.buffer))

    def check_newest(self, op: Operation, value: Value) -> None:
        """raises ExecutionError when `value` is a tensor whose buffer was overwritten since."""
        if self.checks_stamps and isinstance(value, Tensor) and value.stamp != value.buffer.newest:
            raise ExecutionError(
                f"{op.name} uses a value of {value.buffer.name} from before a later write to it",
                stage="simt",
                details=("tensors are updated in place: only the newest value of a buffer can be used", str(op)),
            )

    # ------------------------------------------------------------------------------------------ checks

    def refuse(self, op: Operation, bad: Array, what: str) -> None:
        """raises ExecutionError naming the first active lane in `bad`, if there is one. `what` is the message's verb phrase."""
        self.memory.refuse(op, bad, self.active, what)

    def uniform(self, value: Array) -> int | None:
        """The one value that all active lanes have, or None."""
        if value.size == 1:
            return int(value[0, 0])
        low, high = bounds(value, self.active)
        return low if low == high else None


def merge(lanes: Array, new: Value, old: Value | None) -> Value:
    """`new` in `lanes` and `old` elsewhere; two values of one tensor become its newest.

    raises Unsupported for tensors of different buffers
    """
    if old is None or new is old:
        return new
    match new, old:
        case tuple(), tuple():
            return tuple(merge(lanes, one, other) for one, other in zip(new, old, strict=True))
        case np.ndarray(), np.ndarray():
            return chosen(lanes, new, old)
        case Tensor(), Tensor() if new.buffer is old.buffer:
            return replace(new, stamp=new.buffer.newest)
        case _:
            raise Unsupported("a value that is in different buffers for different threads", stage="simt")
