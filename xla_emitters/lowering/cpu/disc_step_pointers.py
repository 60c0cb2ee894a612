"""A loop that reads or writes every n-th row steps a pointer from row to row, and multiplies nothing.

    scf.for %r = %lb to %ub step %c8 {                     %p = llvm.getelementptr %x[%lb * %cols + %j]
      %m = arith.muli %r, %cols                            %d = 4 * (%cols * 8)                                 in bytes
      %i = arith.addi %m, %j                         ->    scf.for %r = %lb to %ub step %c8 iter_args(%a = %p) {
      %0 = arith.index_castui %i : index to i32              llvm.load %a
      %1 = llvm.getelementptr %x[%0]                         %n = llvm.getelementptr %a[%d]
      llvm.load %1                                           scf.yield %n
    }                                                      }

Several accesses of an iteration to one buffer, in rows %r, %r + 8 ..., follow one another: each address is the one before plus what the
indices differ by. To add such a distance to an address is one instruction; an address from an index takes two. Indices that rise by a
known number are left to LLVM: their difference becomes an offset of the instruction that loads.

Only addresses that an iteration is sure to access: two indices of elements differ by less than 2^31 where indices have 32 bits, so the
difference in 32 bits is the difference. The address of an iteration that is not run may be any.
Source: strength reduction (F. E. Allen, J. Cocke, K. Kennedy: Reduction of operator strength, 1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import ModuleOp, VectorType, i8, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.size import Size, split_constant, sum_of_terms
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, llvm, scf
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dtypes import dtype_of
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.index_sums import Sums
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscStepPointersPass(KernelPass):
    """See the file's head. On kernels with pointers, while indices have the type `index`."""

    name = "disc-step-pointers"

    def apply_to(self, op: ModuleOp) -> None:
        for loop in [found for found in op.walk() if isinstance(found, scf.ForOp)]:
            sums, rows = Sums(loop.body.block), dict[tuple[SSAValue, Size], list[SteppedAddress]]()
            for found in loop.body.block.ops:
                if isinstance(found, llvm.GEPOp) and (access := SteppedAddress.of(loop, found, sums)) is not None:
                    rows.setdefault((found.ptr, access.stride), []).append(access)
            if rows:
                _step(loop, sums, rows)


@dataclass(frozen=True)
class SteppedAddress:
    """An address that a loop's iterations compute: of the element at index `first` + `stride` * the loop's variable."""

    address: llvm.GEPOp
    first: Size
    stride: Size

    @staticmethod
    def of(loop: scf.ForOp, address: llvm.GEPOp, sums: Sums) -> SteppedAddress | None:
        """None where the stride is known, or the address is to be left alone."""
        body, variable = loop.body.block, loop.body.block.args[0]
        users = [use.operation for use in address.result.uses]
        is_accessed = any(isinstance(user, llvm.LoadOp | llvm.StoreOp) and user.parent is body for user in users)
        if not is_accessed or body.is_ancestor(address.ptr.owner) or len(address.rawConstantIndices) != 1:
            return None
        if not (address.ssa_indices and isinstance(cast := address.ssa_indices[0].owner, IndexCastUIOp)):
            return None
        first, stride, along = sums.of(cast.input), Size.constant(0), sums.of(variable)
        for factors, coefficient in first.terms:
            rest = tuple(factor for factor in factors if factor[0] is not along)
            terms = [sums.terms[atom] for atom, _ in rest]
            if any(not isinstance(term, SSAValue) or body.is_ancestor(term.owner) for term in terms):
                return None
            match dict(factors).get(along, 0):
                case 0:
                    continue
                case 1:
                    stride += sum_of_terms({rest: coefficient})
                case _:
                    return None
        return SteppedAddress(address, first - stride * along, stride) if stride.value is None else None


def _step(loop: scf.ForOp, sums: Sums, rows: Mapping[tuple[SSAValue, Size], Sequence[SteppedAddress]]) -> None:
    """Replaces the loop by one that carries an address for each buffer and stride."""
    body, before = loop.body.block, located_builder(InsertPoint.before(loop), loop)
    last = body.last_op
    assert isinstance(last, scf.YieldOp)
    starts, following = list[SSAValue](), list[SSAValue]()
    for (buffer, stride), accesses in rows.items():
        one, reached = accesses[0].address, accesses[0].first
        start = _number(before, sums, reached + stride * sums.of(loop.lb), one)
        starts.append(before.insert(llvm.GEPOp(buffer, [start], one.elem_type)).result)
        address: SSAValue = body.insert_arg(buffer.type, len(body.args))
        for access in accesses:
            if (distance := access.first - reached) != 0:
                bytes_ = _bytes_of(before, sums, distance, one)
                place = located_builder(InsertPoint.before(access.address), access.address)
                address = place.insert(llvm.GEPOp(address, [bytes_], i8)).result
            reached = access.first
            Rewriter.replace_op(access.address, [], [address])
        bytes_ = _bytes_of(before, sums, accesses[0].first + stride * sums.of(loop.step) - reached, one)
        place = located_builder(InsertPoint.before(last), last)
        following.append(place.insert(llvm.GEPOp(address, [bytes_], i8)).result)
    Rewriter.replace_op(last, scf.YieldOp(*last.operands, *following))
    made = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *starts], loop.detach_region(loop.body))
    made.properties |= {name: value for name, value in loop.properties.items() if name not in made.properties}
    made.attributes |= loop.attributes
    made.location = loop.location
    Rewriter.replace_op(loop, made, made.results[: len(loop.results)])


def _number(builder: Builder, sums: Sums, total: Size, like: llvm.GEPOp) -> SSAValue:
    """The sum as an integer as wide as the index of an address."""
    return builder.insert(IndexCastUIOp(_value(builder, sums, total), like.ssa_indices[0].type)).result


def _bytes_of(builder: Builder, sums: Sums, elements: Size, like: llvm.GEPOp) -> SSAValue:
    """So many elements in bytes, in 64 bits. LLVM would take the product into the loop, were it the address's own."""
    found = _number(builder, sums, elements, like)
    if found.type != i64:
        found = builder.insert(arith.ExtSIOp(found, i64)).result
    size = literal(builder, _bytes(like.elem_type), i64)
    return builder.insert(arith.MuliOp(found, size)).result


def _bytes(element: Attribute) -> int:
    """Of an element that addresses count; the two parts of a complex number are a vector."""
    if isa(element, VectorType[Attribute]):
        return element.get_shape()[0] * _bytes(element.element_type)
    return dtype_of(element).bits // 8


def _value(builder: Builder, sums: Sums, total: Size) -> SSAValue:
    """The sum as an index."""
    parts = list[SSAValue]()
    for (first, *others), coefficient in sums.in_order(total):
        product = first
        for other in others:
            product = builder.insert(arith.MuliOp(product, other)).result
        parts.append(
            product if coefficient == 1 else builder.insert(arith.MuliOp(product, literal(builder, coefficient))).result
        )
    if (left := split_constant(total)[1]) or not parts:
        parts.append(literal(builder, left))
    found, *rest = parts
    for part in rest:
        found = builder.insert(arith.AddiOp(found, part)).result
    return found
