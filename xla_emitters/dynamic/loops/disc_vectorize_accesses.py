"""Combines loads and stores of adjacent elements, which a thread accesses one by one, into vector accesses.

    scf.for %v = 0 to 4 {                                  %a = vector.load %x[%i] {alignment = 16} : memref<?xf32>, vector<4xf32>
      %j = arith.addi %i, %v                               %0 = vector.extract %a[0]
      %0 = memref.load %x[%j]                              %1 = arith.negf %0
      %1 = arith.negf %0                           ->      ... three times more
      memref.store %1, %y[%j]                              %b = vector.from_elements %1, %3, %5, %7
    } {disc.vector}                                        vector.store %b, %y[%i] {alignment = 16} : memref<?xf32>, vector<4xf32>

A schedule marks the loop over such elements (`disc.vector`); this pass unrolls it. Accesses to one buffer at indices i, i + 1
... become one of up to 16 bytes if i is provably a multiple of their number: buffers are aligned to 16 bytes. An index is
analysed as a sum of products: sizes that a loop marks as multiples (`%m = arith.andi %size, -4`) divide the products that contain them, and
for a number divisible by 4, the next three have the same coordinates but for the last one, if 4 divides the last size.

Loads move up to the first of them, stores down to the last, but not over other accesses to the same buffer. Accesses in branches
are not changed, nor are elements of less than a byte, complex ones and eight-bit floats, nor a loop that would become too long.
Source: docs/reference/2 3.3 (vectorize-loads-stores, for tensors); BladeDISC's disc-loop vectorization
(https://github.com/alibaba/BladeDISC).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.size import Size, split_constant
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.locations import locate
from xla_emitters.dialects.mlir import memref, scf, vector
from xla_emitters.dialects.mlir.vector import FromElementsOp
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.fusion_rules import VECTOR
from xla_emitters.rewrite.captures import loops_of, written_buffer
from xla_emitters.rewrite.index_sums import Sums
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.unrolling import unroll_fully

MOST_OPS = 4000
"""Limit of ops of a loop that is unrolled."""
ACCESS_BYTES = 16
Access: TypeAlias = memref.LoadOp | memref.StoreOp
AccessT = TypeVar("AccessT", bound=Access)


class DiscVectorizeAccessesPass(KernelPass):
    name = "disc-vectorize-accesses"

    def apply_to(self, op: ModuleOp) -> None:
        for fusion in [found for found in op.walk() if isinstance(found, FusionOp)]:
            for loop in loops_of(fusion):
                for inner in [found for found in loop.walk(region_first=True) if _is_marked(found)]:
                    assert isinstance(inner, scf.ForOp)
                    self.vectorize(inner)

    def vectorize(self, loop: scf.ForOp) -> None:
        """Unrolls the loop and combines its accesses."""
        width = constant_of(loop.ub) or 0
        if width * sum(1 for _ in loop.body.walk()) > MOST_OPS:
            return self.skip(loop, f"{width} copies of it are more than {MOST_OPS} ops")
        before, after = loop.prev_op, loop.next_op
        block = loop.parent_block()
        assert block is not None
        unroll_fully(loop, width)
        op, ops = (block.first_op if before is None else before.next_op), list[Operation]()
        while op is not None and op is not after:
            ops.append(op)
            op = op.next_op
        sums = Sums()
        _join_loads(ops, sums)
        _join_stores(ops, sums)
        return None


def _is_marked(op: Operation) -> bool:
    return isinstance(op, scf.ForOp) and VECTOR in op.attributes


# --- accesses ------------------------------------------------------------------------------------------------------------------------


def _join_loads(ops: Iterable[Operation], sums: Sums) -> None:
    open_ones = dict[tuple[SSAValue, Size], list[memref.LoadOp]]()
    for op in ops:
        if isinstance(op, memref.LoadOp) and _elements_an_access(op) > 1:
            key = (op.memref, split_constant(sums.of(op.indices[0]))[0])
            group = open_ones.setdefault(key, [])
            group.append(op)
        else:
            _close(open_ones, op, sums)
    for group in open_ones.values():
        _load_together(group, sums)


def _close(open_ones: dict[tuple[SSAValue, Size], list[memref.LoadOp]], op: Operation, sums: Sums) -> None:
    """Ends the groups of loads that may not move over an op, because it (or an op in it) writes their buffer."""
    written = {written_buffer(inner) for inner in op.walk()}
    for key in [key for key in open_ones if key[0] in written]:
        _load_together(open_ones.pop(key), sums)


def _join_stores(ops: Iterable[Operation], sums: Sums) -> None:
    open_ones = dict[tuple[SSAValue, Size], list[memref.StoreOp]]()
    for op in ops:
        if op.parent is None:
            continue  # a load that is combined with others
        accessed = {buffer for inner in op.walk() for buffer in inner.operands if isinstance(buffer.type, MemRefType)}
        own = None
        if isinstance(op, memref.StoreOp) and _elements_an_access(op) > 1:
            own = (op.memref, split_constant(sums.of(op.indices[0]))[0])
            open_ones.setdefault(own, []).append(op)
        for key in [key for key in open_ones if key[0] in accessed and key != own]:
            _store_together(open_ones.pop(key), sums)
    for group in open_ones.values():
        _store_together(group, sums)


def _elements_an_access(op: Access) -> int:
    """How many elements one access can have; 1 for elements that cannot be combined."""
    element = op.value.type if isinstance(op, memref.StoreOp) else op.res.type
    return ACCESS_BYTES * 8 // _bits(element) if len(op.indices) == 1 and _is_plain(element) else 1


def _is_plain(element: Attribute) -> bool:
    if isa(element, IntegerType):
        return element.signedness.data == Signedness.SIGNLESS and element.width.data >= 8
    return isa(element, BFloat16Type | Float16Type | Float32Type | Float64Type)


def _bits(element: Attribute) -> int:
    return dtype_of(element).bits


def _rows(group: Sequence[AccessT], sums: Sums) -> Iterable[list[AccessT]]:
    """The accesses of one buffer, at indices with constant differences, in runs that become one access each."""
    places = dict[int, AccessT]()
    for op in group:
        places.setdefault(split_constant(sums.of(op.indices[0]))[1], op)
    divisor = sums.divisor(split_constant(sums.of(group[0].indices[0]))[0])
    width = _elements_an_access(group[0])
    while width > 1:
        if divisor % width == 0:
            for start in [place for place in places if place % width == 0]:
                if all(start + number in places for number in range(width)):
                    yield [places.pop(start + number) for number in range(width)]
        width //= 2


def _load_together(group: Sequence[memref.LoadOp], sums: Sums) -> None:
    order = {op: number for number, op in enumerate(group)}
    for row in _rows(group, sums):
        first = min(row, key=lambda op: order[op])
        if first is not row[0]:
            continue
        element = first.res.type
        made = vector.LoadOp(first.memref, list(first.indices), VectorType(element, [len(row)]))
        _insert(made, first, InsertPoint.before(first), element, len(row))
        taken = dict[int, SSAValue]()
        for number in range(len(row)):
            extract = vector.ExtractOp(made.result, [number], element)
            locate(extract, first.location)
            Rewriter.insert_op(extract, InsertPoint.before(first))
            taken[split_constant(sums.of(row[number].indices[0]))[1]] = extract.result
        for op in group:
            if op.parent is not None and (value := taken.get(split_constant(sums.of(op.indices[0]))[1])) is not None:
                Rewriter.replace_op(op, [], [value])


def _store_together(group: Sequence[memref.StoreOp], sums: Sums) -> None:
    if len({split_constant(sums.of(op.indices[0]))[1] for op in group}) < len(group):
        return  # of two stores to one index, the later one counts
    for row in _rows(group, sums):
        last = max(row, key=group.index)
        first = row[0]
        element = first.value.type
        values = [op.value for op in row]
        joined = FromElementsOp.create(operands=values, result_types=[VectorType(element, [len(row)])])
        locate(joined, last.location)
        Rewriter.insert_op(joined, InsertPoint.before(last))
        made = vector.StoreOp(joined.results[0], first.memref, list(first.indices))
        _insert(made, first, InsertPoint.before(last), element, len(row))
        for op in row:
            Rewriter.erase_op(op)


def _insert(
    made: vector.LoadOp | vector.StoreOp, like: Operation, place: InsertPoint, element: Attribute, count: int
) -> None:
    made.properties["alignment"] = IntegerAttr(count * _bits(element) // 8, i64)
    locate(made, like.location)
    Rewriter.insert_op(made, place)
