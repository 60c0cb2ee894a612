"""Calls with equal arguments are computed once, as LLVM merges them. Else 40 functions, each calling the one before twice, run 2**40 times.

    %a = xla_gpu.pure_call @f(%in, %i)        computes, and keeps results, arguments and the lanes that were active
    %b = xla_gpu.pure_call @f(%in, %i)        reuses those results; lanes that were inactive then are computed now, and kept too
    %c = xla_gpu.pure_call @f(%in, %j)        computes, unless every lane of %j has the bits of %i

Functions that share results (`may_be_shared`): those that compute each lane by itself and change nothing, whatever op calls them; not those
that exchange values between lanes, have barriers, write, or make tensors. Not worth it: functions with one call site, and
small ones without calls, which run at most as often as their callers.

Validity of a kept result, by the memory that it read: read-only memory: always; other memory: until the next write or barrier
(`Memory.changes`). A tensor argument is one value of its buffer: after an insert it is another argument.

Lifetime of kept results. They are ordered by their last use, and the oldest are dropped first: beyond KEPT_BYTES, those from before the
current round of the innermost loop; beyond a quarter of the machine's memory, any. So a loop does not accumulate results that later rounds
do not use, and within a round useful results stay while memory lasts. Loops report where their rounds begin; a call ends its own rounds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, SymbolRefAttr, TensorType
from xdsl.ir import Operation

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.mlir import arith, func, llvm, scf
from xla_emitters.dtypes import Array
from xla_emitters.rewrite.effects import is_pure, is_read_only, is_terminator
from xla_emitters.support.limits import memory_limit

FunctionOp: TypeAlias = func.FuncOp | llvm.FuncOp

KEPT_BYTES = 64 << 20
"""Limit in bytes of results kept from earlier rounds of a loop."""

SMALL = 16
"""Largest number of ops of a function without calls and loops for which a lookup costs as much as running it."""

# ---------------------------------------------------------------------------------------------- which functions

_CALLS = (func.CallOp, llvm.CallOp, xla_gpu.PureCallOp)
_LOOPS = (scf.ForOp, scf.WhileOp, xla_gpu.LoopOp)
_REGIONS = (*_LOOPS, scf.IfOp, scf.IndexSwitchOp, scf.ExecuteRegionOp)
_EXCHANGES = (xla_gpu.ShuffleReduceOp,)


def callee_of(op: Operation) -> str | None:
    """The function that a call names; None for another op, and for a call through a pointer."""
    callee = op.properties.get("callee") if isinstance(op, _CALLS) else None
    return callee.root_reference.data if isinstance(callee, SymbolRefAttr) else None


@dataclass
class SharedFunctions:
    """Decides which functions of a module keep their results, if they have two call sites.

    functions   the functions that have a body
    """

    functions: Mapping[str, FunctionOp]
    _by_name: dict[str, bool] = field(default_factory=dict[str, bool])

    def __contains__(self, name: str) -> bool:
        return self._is_worth_it(name) and self.may_be_shared(name)

    def may_be_shared(self, name: str) -> bool:
        """Whether the function, and all that it calls, computes each lane by itself and changes nothing. Not if it calls itself."""
        waiting = [] if name in self._by_name else [name]
        while waiting:
            op = self.functions[waiting[-1]]
            if waiting[-1] not in self._by_name:
                self._by_name[waiting[-1]] = (
                    False  # while it is being computed, and so for a function that calls itself
                )
                callees = dict.fromkeys(callee for inner in op.body.walk() if (callee := callee_of(inner)) is not None)
                waiting += (callee for callee in callees if callee in self.functions and callee not in self._by_name)
                continue
            results = op.function_type.outputs.data if isinstance(op, func.FuncOp) else ()
            is_lanes = not any(isinstance(result, TensorType | MemRefType) for result in results)
            self._by_name[waiting.pop()] = is_lanes and all(self._is_by_lane(inner) for inner in op.body.walk())
        return self._by_name[name]

    def _is_by_lane(self, op: Operation) -> bool:
        if isinstance(op, _CALLS):
            callee = callee_of(op)
            # A function without a body is libdevice's.
            return callee is not None and (callee not in self.functions or self._by_name[callee])
        if isinstance(op, _EXCHANGES) or (op.regions and not isinstance(op, _REGIONS)):
            return False
        if not isinstance(op, arith.ConstantOp) and any(isinstance(result.type, TensorType) for result in op.results):
            return False
        return bool(op.regions) or is_terminator(op) or is_pure(op) or is_read_only(op)

    def _is_worth_it(self, name: str) -> bool:
        op = self.functions[name]
        inside = list(op.body.walk())
        return (
            len(inside) > SMALL
            or len(op.body.blocks) > 1
            or any(isinstance(inner, _LOOPS) or callee_of(inner) in self.functions for inner in inside)
        )


# ---------------------------------------------------------------------------------------------- results

Key: TypeAlias = tuple[Any, ...]
"""A function's name and its arguments; each array of lanes is replaced by the equal `KeptArray`."""


@dataclass(eq=False)
class KeptArray:
    """Lanes that are an argument of kept results: equal arrays are one object. `users`: results and running calls that refer to it."""

    array: Array
    sketch: tuple[Any, ...]
    users: int = 0


@dataclass
class KnownResult:
    """The results of a call.

    lanes     the lanes that were computed; None: all
    changes   `Memory.changes` at the time, where the function read memory that can be written; else None
    last_use  number of the use, counted over all results
    """

    results: list[Any]
    lanes: Array | None
    changes: int | None
    size: int
    last_use: int

    def missing(self, active: Array | None) -> Array | None:
        """The lanes among `active` that were not computed; None if there are none."""
        if self.lanes is None or self.lanes is active:
            return None
        missing = ~self.lanes if active is None else active & ~self.lanes
        return missing if missing.any() else None


@dataclass
class KnownResults:
    """Results of calls in one chunk; see the head of the file.

    round_start   number of the first use in the current round of the innermost loop
    """

    kept_bytes: int = KEPT_BYTES
    most_bytes: int = field(default_factory=lambda: memory_limit() // 3)
    bytes: int = 0
    uses: int = 0
    round_start: int = 0
    arrays: dict[tuple[Any, ...], list[KeptArray]] = field(default_factory=dict[tuple[Any, ...], list[KeptArray]])
    results: OrderedDict[Key, KnownResult] = field(default_factory=OrderedDict[Key, KnownResult])

    def begin_round(self) -> None:
        """A round of a loop begins."""
        self.round_start = self.uses

    def key(self, function: str, arguments: Sequence[Any]) -> Key:
        """The call as a comparable key; its arrays stay until `release`."""
        return (function, *[self._held(argument) for argument in arguments])

    def release(self, key: Key) -> None:
        """Forgets the arrays in `key` that have no other user."""
        for part in key:
            if isinstance(part, KeptArray):
                part.users -= 1
                if part.users == 0:
                    self.bytes -= part.array.nbytes
                    same = self.arrays[part.sketch]
                    same.remove(part)
                    if not same:
                        del self.arrays[part.sketch]
            elif isinstance(part, tuple):
                self.release(cast(Key, part))

    def find(self, key: Key, changes: int) -> KnownResult | None:
        """The result of an equal call, if it is known and memory did not change under it."""
        found = self.results.get(key)
        if found is None:
            return None
        if found.changes is not None and found.changes != changes:
            self._forget(key)
            return None
        self.uses += 1
        found.last_use = self.uses
        self.results.move_to_end(key)
        return found

    def keep(self, key: Key, results: list[Any], lanes: Array | None, changes: int | None) -> None:
        """Keeps the results of a call, in place of those known before. The result holds `key` as long as it is kept."""
        if key in self.results:
            self._forget(key)
        self.uses += 1
        size = size_of(results)
        self.bytes += size
        self.results[key] = KnownResult(results, lanes, changes, size, self.uses)
        while self.bytes > self.kept_bytes:
            oldest, found = next(iter(self.results.items()))
            if found.last_use > self.round_start and self.bytes <= self.most_bytes:
                break
            self._forget(oldest)
            if not self.results:
                break

    def _forget(self, key: Key) -> None:
        self.bytes -= self.results.pop(key).size
        self.release(key)

    def _held(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([self._held(part) for part in cast(Key, value)])
        if not isinstance(value, np.ndarray):
            return value
        array = cast(Array, value)
        sketch = sketch_of(array)
        same = self.arrays.setdefault(sketch, [])
        for kept in same:
            if kept.array is array or same_bits(kept.array, array):
                kept.users += 1
                return kept
        same.append(KeptArray(array, sketch, 1))
        self.bytes += array.nbytes
        return same[-1]


# ---------------------------------------------------------------------------------------------- lanes as bits

_SAMPLED = 4, 8
"""Approximate number of blocks and of threads of an array in its sketch."""


def sketch_of(array: Array) -> tuple[Any, ...]:
    """Equal for arrays of equal bits, different for nearly all others: type, shape, some elements, and the sum of all as integers."""
    head = (array.dtype, array.shape)
    if array.dtype == object:
        return (*head, tuple(array.reshape(-1).tolist()))
    if array.size <= _SAMPLED[0] * _SAMPLED[1]:
        return (*head, array.tobytes())
    steps = [slice(None, None, -(-extent // count)) for extent, count in zip(array.shape, _SAMPLED, strict=True)]
    total = sum(int(np.add.reduce(part, axis=None)) for part in integers_of(array))
    return (*head, array[tuple(steps)].tobytes(), total)


def same_bits(one: Array, two: Array) -> bool:
    """Whether two arrays of one type and shape have the same bits."""
    return all(np.array_equal(left, right) for left, right in zip(integers_of(one), integers_of(two), strict=True))


def integers_of(array: Array) -> list[Array]:
    """The bits of each element as an unsigned integer; a complex array gives two, real part first. Integers above 64 bits stay."""
    if array.dtype == object:
        return [array]
    parts = [np.real(array), np.imag(array)] if array.dtype.kind == "c" else [array]
    return [part.view(f"u{part.itemsize}") for part in parts]


def size_of(values: Iterable[Any]) -> int:
    """Total bytes of the arrays in some values."""
    return sum(value.nbytes if isinstance(value, np.ndarray) else size_of(value) for value in values)
