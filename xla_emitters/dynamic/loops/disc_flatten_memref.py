"""Makes accesses of a fusion's loops one-dimensional: an index is the element's position in its buffer.

    lmhlo.fusion {                                            %flat = memref.collapse_shape %x [[0, 1]]     before the fusion
      scf.parallel (%i) = (0) to (%n) step (1) {              lmhlo.fusion {
        %j, %k = affine.delinearize_index %i into (%d, 32)      scf.parallel (%i) = (0) to (%n) step (1) {
        %v = memref.load %x[%j, %k]                     ->        %v = memref.load %flat[%i]
        %w = memref.load %y[%k, %j]                               %l = affine.linearize_index [%k, %j] by (%d)
                                                                  %w = memref.load %flat_y[%l]

Buffers are row major without gaps, so the flat view is the same memory. A linearization that undoes a delinearization is not computed:
coordinates from a delinearization over equal sizes give back its operand, its first k coordinates that operand divided by the other sizes.
Two sizes are equal if they are the same number, the same value, or the same expression of the program's symbols (`disc.sizes`). If a loop
marks a size as a multiple of a number (`%m = arith.andi %size, -4`), all indices use the marked value, so that later passes see which
addresses are aligned. Memory of a block or a thread, which is allocated in the loop, becomes one-dimensional too.
Buffers of one dimension or none are not changed. Source: docs/reference/4 1.1, row 9; BladeDISC's disc-flatten-memref-access
(https://github.com/alibaba/BladeDISC).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IndexType, IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.locations import located_builder, replace_alike
from xla_emitters.dialects.mlir import arith, memref, scf, vector
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp, LinearizeIndexOp
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.index_code import IndexCode, Number
from xla_emitters.rewrite.captures import captured_by, loops_of
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscFlattenMemrefPass(KernelPass):
    name = "disc-flatten-memref"

    def apply_to(self, op: ModuleOp) -> None:
        sizes = BufferSizes(from_allocations=True)
        for fusion in [found for found in op.walk() if isinstance(found, FusionOp)]:
            if loops_of(fusion):
                _Flattening(self, fusion, sizes).run()
            else:
                self.skip(fusion, "it has no loops")


class _Flattening:
    """Flattens the accesses of one fusion."""

    def __init__(self, owner: DiscFlattenMemrefPass, fusion: FusionOp, sizes: BufferSizes) -> None:
        self.owner = owner
        self.fusion = fusion
        self.sizes = sizes
        self.host = IndexCode(QuickBuilder(InsertPoint.before(fusion)), fusion.location)
        self.by_size = dict[Size, SSAValue]()

    def run(self) -> None:
        captured = captured_by(self.fusion)
        for value in captured:
            if isinstance(value.type, IndexType):
                self.by_size.setdefault(self.sizes.number(value), value)
        uses = dict[SSAValue, list[Use]]()
        for op in self.fusion.body.walk():
            for number, operand in enumerate(op.operands):
                uses.setdefault(operand, []).append(Use(op, number))
        for buffer in captured:
            if _has_coordinates(buffer.type):
                self.flatten(buffer, self.flat_view(buffer), uses[buffer])
        for op in list(self.fusion.walk()):
            if isinstance(op, memref.AllocOp | memref.AllocaOp) and _has_coordinates(op.memref.type):
                self.flatten_allocation(op)
        for loop in loops_of(self.fusion):
            _take_multiples(loop, set(captured))
        self.simplify_coordinates()

    def flat_view(self, buffer: SSAValue) -> SSAValue:
        """The buffer as one dimension; the view is created on the host."""
        assert isa(buffer.type, MemRefType[Attribute])
        groups = ArrayAttr([ArrayAttr([IntegerAttr(dim, i64) for dim in range(buffer.type.get_num_dims())])])
        made = memref.CollapseShapeOp.create(
            operands=[buffer], result_types=[_flat(buffer.type)], properties={"reassociation": groups}
        )
        view = self.host.insert(made)
        view.name_hint = buffer.name_hint
        return view

    def flatten_allocation(self, op: memref.AllocOp | memref.AllocaOp) -> None:
        assert isa(op.memref.type, MemRefType[Attribute])
        if DYNAMIC_INDEX in op.memref.type.get_shape():
            raise self.owner.refuse(op, f"memory of a block or a thread of unknown size: {op.memref.type}")
        made = op.clone()
        Rewriter.insert_op(made, InsertPoint.before(op))
        flat = Rewriter.replace_value_with_new_type(made.memref, _flat(op.memref.type))
        flat.name_hint = op.memref.name_hint
        self.flatten(op.memref, flat, list(op.memref.uses))
        Rewriter.erase_op(op)

    # ------------------------------------------------------------------------------------------------ accesses

    def flatten(self, buffer: SSAValue, flat: SSAValue, uses: Sequence[Use]) -> None:
        """Converts every access to a buffer inside the fusion to its flat view; `uses`: those inside."""
        inner = self.inner_sizes(buffer)
        for use in uses:
            op = use.operation
            if not isinstance(op, Access) or op.operands[use.index] is not _accessed(op):
                raise self.owner.refuse(op, f"'{op.name}' of a buffer of several dimensions in a loop")
            first = use.index + 1
            indices = op.operands[first : first + len(inner) + 1]
            builder = located_builder(InsertPoint.before(op), op)
            index = self.linear(builder, indices, inner)
            op.operands[use.index] = flat
            _replace_indices(op, index)

    def inner_sizes(self, buffer: SSAValue) -> list[Number]:
        """The sizes of all dimensions but the first, each as a value that the fusion has already, if there is one."""
        found = list[Number]()
        for dim, size in enumerate(self.sizes.of(buffer)[1:], 1):
            known = self.by_size.get(size) if size.value is None else size.value
            if known is None:
                known = self.host.dim(buffer, dim)
                if isinstance(known, SSAValue):
                    self.by_size[size] = known
            found.append(known)
        return found

    def linear(self, builder: Builder, indices: Sequence[SSAValue], inner: Sequence[Number]) -> SSAValue:
        """The number of the element at these coordinates."""
        kept = [number for number, size in enumerate([0, *inner]) if size != 1]
        while len(kept) > 1 and constant_of(indices[kept[0]]) == 0:
            del kept[0]
        indices, inner = [indices[number] for number in kept], [inner[number - 1] for number in kept[1:]]
        while len(indices) > 1:
            merged = self.merged(builder, indices, inner)
            if merged is None:
                made = LinearizeIndexOp(indices, list(inner), disjoint=True)
                return builder.insert(made).linear_index
            index, count = merged
            indices, inner = [index, *indices[count:]], inner[count - 1 :]
        return indices[0]

    def merged(
        self, builder: Builder, indices: Sequence[SSAValue], inner: Sequence[Number]
    ) -> tuple[SSAValue, int] | None:
        """One number for the leading coordinates, and their count; None unless at least two come from one delinearization."""
        source = indices[0].owner
        if not isinstance(source, DelinearizeIndexOp) or source.multi_index[0] is not indices[0]:
            return None
        extents = source.basis[len(source.basis) - len(source.multi_index) + 1 :]
        count = 1
        while (
            count < min(len(indices), len(source.multi_index))
            and indices[count] is source.multi_index[count]
            and self.is_same(extents[count - 1], inner[count - 1])
        ):
            count += 1
        if count == 1:
            return None
        if not (rest := extents[count - 1 :]):
            return source.linear_index, count
        made = DelinearizeIndexOp(source.linear_index, rest, len(rest) + 1)
        return builder.insert(made).multi_index[0], count

    def is_same(self, one: Number, other: Number) -> bool:
        return self.size(one) == self.size(other)

    def size(self, number: Number) -> Size:
        return Size.constant(number) if isinstance(number, int) else self.sizes.number(number)

    def simplify_coordinates(self) -> None:
        """Erases unused delinearizations, and the first size of the others, which has no effect."""
        for op in list(self.fusion.walk(reverse=True)):
            if not isinstance(op, DelinearizeIndexOp):
                continue
            if not any(result.first_use for result in op.results):
                Rewriter.erase_op(op)
            elif len(op.basis) == len(op.multi_index) > 1:
                made = DelinearizeIndexOp(op.linear_index, op.basis[1:], len(op.multi_index))
                replace_alike(op, made)


def _take_multiples(loop: scf.ParallelOp, captured: set[SSAValue]) -> None:
    """Replaces a size in a loop by its marked value `and %size, -4` (equal to it), which shows that 4 divides addresses."""
    for op in list(loop.walk()):
        if isinstance(op, arith.AndIOp) and op.lhs in captured and isinstance(op.rhs.owner, arith.ConstantOp):
            for moved in (op, op.rhs.owner):
                moved.detach()
                Rewriter.insert_op(moved, InsertPoint.at_start(loop.body.block))
            # Shared memory is allocated with the host's value of the size; the loop's own bounds are the host's too.
            users = [
                inner for inner in loop.walk() if inner not in (op, loop) and not isinstance(inner, memref.AllocOp)
            ]
            op.lhs.replace_uses_with_if(op.result, lambda use, users=frozenset(users): use.operation in users)


Access: TypeAlias = memref.LoadOp | memref.StoreOp | memref.AtomicRMWOp | vector.LoadOp | vector.StoreOp


def _accessed(op: Access) -> SSAValue:
    """The buffer that an access reads or writes."""
    return op.base if isinstance(op, vector.LoadOp | vector.StoreOp) else op.memref


def _replace_indices(op: Access, index: SSAValue) -> None:
    """Replaces an access's indices, its last operands, by one."""
    count = len(op.indices)
    op.operands = [*op.operands[: len(op.operands) - count], index]


def _has_coordinates(ir_type: Attribute) -> bool:
    return isinstance(ir_type, MemRefType) and ir_type.get_num_dims() > 1


def _flat(ir_type: MemRefType[Attribute]) -> MemRefType[Attribute]:
    """The one-dimensional type with the same number of elements."""
    shape = ir_type.get_shape()
    count = DYNAMIC_INDEX if DYNAMIC_INDEX in shape else prod(shape)
    return MemRefType(ir_type.element_type, [count], memory_space=ir_type.memory_space)
