"""Replace the contiguous, aligned accesses of a short loop by one vector access outside it.

    scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) {     %b = apply_indexing #map(%t, %c0)
      %i = apply_indexing #map(%t, %v)   // t * 4 + v              %r = vector.transfer_read %in[%b], %zero
      %x = tensor.extract %in[%i]                                  %l:2 = scf.for %v ... iter_args(%iter = %out, %vec = %zeros) {
      %y = f(%x)                                             ->      %x = vector.extract %r[%v]
      %n = tensor.insert %y into %iter[%i]                           %y = f(%x)
      scf.yield %n                                                   %n = vector.insert %y, %vec [%v]
    }                                                                scf.yield %iter, %n
                                                                   }
                                                                   %w = vector.transfer_write %l#1, %out[%b]

The loop runs from 0 by 1 to a constant n, a power of two from 2 to 32. An access in it is vectorised if

* it is directly in the body, so that it runs in every iteration;
* n elements take at most 256 bits and whole bytes, and n divides the size of the (one-dimensional) tensor;
* its index is the induction variable, or an apply_indexing of it and of values from outside the loop, grows by exactly 1 in each
  iteration and starts, with the induction variable at 0, at a multiple of n. Buffers start at a multiple of 16 bytes, so a vector of up
  to 16 bytes is aligned; one of 32 bytes is two aligned halves;
* a read is from a tensor made outside the loop; a write is into a tensor that the loop carries and that has no other uses in the loop;
* moving it does not change what other accesses of the loop to the same buffer see: vector reads run before all of the loop's iterations,
  vector writes after them. This matters for in-place kernels (two arguments with one slice index);
* an atomic update adds to a float of a kernel's argument, its body holds nothing but the addition, and the GPU has an
  instruction that adds to n of them (`dialects/mlir/ptx_atomics.py`). The loop then carries the vector of addends. XLA uses only f32
  instructions; an update with the attribute `packed` may also use those of f16 and bf16.

Buffers and elements are compared by `rewrite/accesses.py`. A loop that only copies needs no vector.insert: it writes the vector that was
read. Every other access is left alone, and a remark gives the reason.

Before sm_100 an access carries at most 128 bits. A loop whose accesses all take 256 bits is therefore split into two halves, one after
the other:

    scf.for %half = %c0 to %c2 step %c1 iter_args(%iter = %out) {
      %b = apply_indexing #map(%t, %half, %c0)   // t * 4 + half * 2
      ... as above, with vectors of two and a loop to %c2

The number of accesses is the same, but the operands of the second half do not take up registers during the first. This gains nothing if
the second half's reads must wait for the first half's writes to the same memory, so the loop is split only if the tensors that it reads
never change.
Source: seed document, "Vectorization"; XLA vectorize_loads_stores.cc; the last condition and the split in two are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import cache
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    BoolAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    NoneAttr,
    TensorType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.device import Device
from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.attributes import vector_type
from xla_emitters.dialects.build import constant_index
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import (
    block_like,
    copy_names,
    fuse_locations,
    located_builder,
    place_of,
    replace_alike,
)
from xla_emitters.dialects.mlir import arith, func, scf, tensor, vector
from xla_emitters.dtypes import Kind, dtype_of
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.accesses import (
    TensorAccess,
    accesses_in,
    accesses_of,
    are_disjoint,
    argument_attribute,
    by_buffer,
    root_of,
    subscript,
)
from xla_emitters.rewrite.effects import may_write
from xla_emitters.rewrite.kernel_entry import INVARIANT
from xla_emitters.rewrite.kernel_pass import DevicePass
from xla_emitters.rewrite.notes import decide
from xla_emitters.rewrite.unrolling import trip_count_of_plain_loop
from xla_emitters.support.late_dataclass import dataclass

WIDTHS = (2, 4, 8, 16, 32)
BITS_MAX = 256
ACCESS_BITS_MAX = 128  # of one instruction
WIDE_ACCESSES_FROM = (10, 0)  # compute capability from which one instruction accesses 256 bits
IN_BOUNDS = ArrayAttr([BoolAttr.from_bool(True)])
IDENTITY = AffineMapAttr(AffineMap.identity(1))


class VectorizeLoadsStoresPass(DevicePass):
    """See the head of the file. `device`: the GPU model, which determines the vector types with atomic updates."""

    name = "xla-vectorize-loads-stores"

    def apply_to(self, op: ModuleOp) -> None:
        # Innermost loops first: a vector access moved out of an inner loop becomes an access of the loop around it.
        for loop in [found for found in op.walk(region_first=True) if isinstance(found, scf.ForOp)]:
            self.vectorize(loop)

    def vectorize(self, loop: scf.ForOp) -> None:
        """Vectorises every access of `loop` that meets the conditions; adds a remark for each other access."""
        accesses = accesses_in(loop)
        scalar = [access for access in accesses if type(access.op) in SCALAR and access.elements == 1]
        if not scalar:
            return
        if isinstance(width := width_of(loop), str):
            return self.skip(loop, width)
        for op in loop.body.walk():
            if may_write(op) and not any(True for _ in accesses_of(op)) and not isinstance(op, CONTROL_FLOW):
                return self.skip(loop, f"{op.name} inside it may synchronize or write memory")
        taken: list[TensorAccess] = []
        refused: list[tuple[TensorAccess, str]] = []
        sharing = by_buffer(accesses)
        for access in scalar:
            buffer = access.buffer
            others = accesses if buffer is None else [*sharing[buffer], *sharing.get(None, ())]
            if (reason := refusal(access, loop, width, others, self.device)) is None:
                taken.append(access)
            else:
                refused.append((access, reason))
        if _is_split_in_two(taken, width, self.device):
            return self.vectorize(_halved(loop, width))
        for access, reason in refused:
            self.skip(access.op, reason)
        for access in taken:
            _decide(access, width)
        if taken:
            _Rewrite(loop, width).run(taken)


def _decide(access: TensorAccess, width: int) -> None:
    kind, buffer = SCALAR[type(access.op)], access.tensor.type
    assert isa(buffer, TensorType)
    element = buffer.element_type
    size = width * dtype_of(element).bits // 8
    name = _name_of(element)
    text = f"{kind}s {width} x {name} ({size} bytes) at once: {place_of(access.op)}"
    decide("access", text, op=kind, elements=width, type=name, bytes=size)


@cache
def _name_of(element: Attribute) -> str:
    return str(element)


SCALAR: dict[type[Operation], str] = {
    tensor.ExtractOp: "read",
    tensor.InsertOp: "write",
    xla_gpu.AtomicRMWOp: "update",
}
"""Ops that access one element, with the verb for messages."""
CONTROL_FLOW = (scf.ForOp, scf.IfOp, scf.IndexSwitchOp)


# --- conditions ------------------------------------------------------------------------------------------------------------------


def width_of(loop: scf.ForOp) -> int | str:
    """Elements per vector, else a string: why the loop has no vectors."""
    trips = trip_count_of_plain_loop(loop)
    if isinstance(trips, int) and trips not in WIDTHS:
        return f"{trips} iterations are not a power of two from 2 to 32"
    return trips


def refusal(
    access: TensorAccess, loop: scf.ForOp, width: int, sharing: Sequence[TensorAccess], chip: Device
) -> str | None:
    """Why `access` stays scalar, or None.

    sharing  the loop's accesses that may be to the same buffer, including `access`
    """
    if access.op.parent_block() is not loop.body.block:
        parent = access.op.parent_op()
        return f"it is inside {parent.name if parent else 'another op'}, not directly in the loop"
    return (
        _type_refusal(access.tensor.type, width)
        or _index_refusal(access.index, loop, width)
        or (_write_refusal if access.is_write else _read_refusal)(access, loop)
        or (_update_refusal(access.op, width, chip) if isinstance(access.op, xla_gpu.AtomicRMWOp) else None)
        or _order_refusal(access, loop, sharing)
    )


def _type_refusal(type_: Attribute, width: int) -> str | None:
    if not isa(type_, TensorType) or type_.get_num_dims() != 1:
        return "the tensor is not one-dimensional"
    if not isinstance(type_.encoding, NoneAttr):
        return "the tensor has an encoding"
    (elements,) = type_.get_shape()
    try:
        stored = dtype_of(type_.element_type)
    except Unsupported as error:
        return error.message
    if stored.kind is Kind.COMPLEX or (stored.storage_type != type_.element_type and type_.element_type != i1):
        return f"there are no vectors of {type_.element_type}"
    if stored.bits * width > BITS_MAX:
        return f"{width} x {type_.element_type} is more than {BITS_MAX} bits"
    if stored.bits * width % 8:
        return f"{width} x {type_.element_type} does not fill whole bytes"
    if elements % width:
        return f"{width} does not divide the tensor's {elements} elements"
    return None


def _index_refusal(index: SSAValue | None, loop: scf.ForOp, width: int) -> str | None:
    variable = loop.body.block.args[0]
    if index is None:
        return "it does not have one index"
    if index is not variable:
        applied = index.owner
        if not isinstance(applied, xla_gpu.ApplyIndexingOp) or len(applied.results) != 1:
            return "its index is not an apply_indexing"
        if any(operand is not variable and loop.is_ancestor(operand.owner) for operand in applied.operands):
            return "its index depends on another value computed in the loop"
    position = subscript(index)
    if (stride := position.stride(variable)) is None:
        return "its index is not linear in the induction variable"
    if stride != 1:
        return f"its stride is {stride}, not 1"
    if (multiple := position.without(variable).divisor()) % width:
        return f"it starts at a multiple of {multiple}, not of {width}"
    return None


def _read_refusal(access: TensorAccess, loop: scf.ForOp) -> str | None:
    if loop.is_ancestor(access.tensor.owner):
        return "the tensor is made inside the loop"
    return None


def _write_refusal(access: TensorAccess, loop: scf.ForOp) -> str | None:
    carried = loop.body.block.args[1:]
    if access.tensor not in carried:
        return "the tensor is not carried by the loop"
    if len(tuple(access.tensor.uses)) != 1:
        return "the tensor has other uses in the loop"
    uses = tuple(access.op.results[0].uses)
    position = carried.index(access.tensor)
    if len(uses) != 1 or not isinstance(uses[0].operation, scf.YieldOp) or uses[0].index != position:
        return "its result is used for more than the next iteration's tensor"
    return None


def _update_refusal(op: xla_gpu.AtomicRMWOp, width: int, chip: Device) -> str | None:
    if _added(op) is None:
        return "it does more than add a float"
    from xla_emitters.dialects.mlir.ptx_atomics import addition_to  # imported here: few kernels have atomic updates

    addition = addition_to(VectorType(op.current.type, [width]), chip)
    if addition is None:
        return f"{chip.architecture} has no atomic addition to {width} x {op.current.type}"
    if addition.is_packed and xla_gpu.PACKED not in op.attributes:
        return f"updates of {op.current.type} are single as XLA's are; the attribute '{xla_gpu.PACKED}' allows words of two"
    root = root_of(op.input)
    if not isinstance(root, BlockArgument) or not isinstance(root.owner.parent_op(), func.FuncOp):
        return "the tensor is not known to be in global memory"
    return None


def _added(op: xla_gpu.AtomicRMWOp) -> SSAValue | None:
    """The addend of `op`, if `op` does nothing but add a float to the old value."""
    match list(op.body.block.ops):
        case [arith.AddfOp(result=total) as addition, end] if total in end.operands and isinstance(
            total.type, AnyFloat
        ):
            others = [operand for operand in addition.operands if operand is not op.current]
            return others[0] if len(others) == 1 else None
        case _:
            return None


def _order_refusal(access: TensorAccess, loop: scf.ForOp, sharing: Sequence[TensorAccess]) -> str | None:
    """Why `access` must not move. A read moves before the loop's writes to its buffer, a write after all of the loop's accesses to it."""
    for other in sharing:
        if other.op is access.op:
            continue
        if not access.is_write and not other.is_write:
            continue
        if not are_disjoint(*((access, other) if access.is_write else (other, access)), within=loop):
            order = "after" if access.is_write else "before"
            return f"{other.op.name} in the same loop may access the same element of its buffer {order} it"
    return None


# --- two halves ------------------------------------------------------------------------------------------------------------------


def _is_split_in_two(taken: Sequence[TensorAccess], width: int, chip: Device) -> bool:
    """Whether to split the loop in two: each access to `width` elements takes two instructions, and no read waits for a write."""
    return (
        chip.compute_capability < WIDE_ACCESSES_FROM
        and bool(taken)
        and all(width * _element_bits(access.tensor) > ACCESS_BITS_MAX for access in taken)
        and all(access.is_write or _never_changes(access.tensor) for access in taken)
    )


def _element_bits(buffer: SSAValue) -> int:
    assert isa(buffer.type, TensorType)
    return dtype_of(buffer.type.element_type).bits


def _never_changes(buffer: SSAValue) -> bool:
    root = root_of(buffer)
    return root is not None and argument_attribute(root, INVARIANT) is not None


def _halved(loop: scf.ForOp, width: int) -> scf.ForOp:
    """Wraps `loop`, of `width` iterations, in a loop over two halves; returns the inner loop, over the elements of one half."""
    count = width // 2
    before = located_builder(InsertPoint.before(loop), loop)
    halves, elements = constant_index(before, 2), constant_index(before, count)
    block = block_like(loop.body.block)
    half = block.args[0]
    half.name_hint = "half"
    outer = scf.ForOp(loop.lb, halves, loop.step, loop.iter_args, block)
    inner = scf.ForOp(loop.lb, elements, loop.step, block.args[1:], loop.detach_region(0))
    inner.attributes, inner.properties = loop.attributes.copy(), loop.properties.copy()
    inner.location = outer.location = loop.location
    inside = located_builder(InsertPoint.at_end(block), loop)
    inside.insert(inner)
    inside.insert(scf.YieldOp(*inner.results))
    copy_names(loop.results, outer.results)
    Rewriter.replace_op(loop, outer)
    _count_in_half(inner, half, count)
    return inner


def _count_in_half(loop: scf.ForOp, half: SSAValue, count: int) -> None:
    """In the body, replaces the induction variable by `half * count + variable`: inside maps that take it, else as a value."""
    variable = loop.body.block.args[0]
    half_dim, in_half = Variable(Interval(0, 1), "half"), Interval(0, count - 1)
    number: SSAValue | None = None
    for op in dict.fromkeys(use.operation for use in tuple(variable.uses)):
        if isinstance(op, xla_gpu.ApplyIndexingOp):
            old = op.map.symbols_to_dims()
            is_variable = [operand is variable for operand in op.operands]
            first = Expr.variable(len(is_variable)) * count
            elements = [Expr.variable(dim) + (first if here else 0) for dim, here in enumerate(is_variable)]
            dims = [replace(d, bounds=in_half) if here else d for d, here in zip(old.dims, is_variable, strict=True)]
            new = old.with_variables_replaced(elements, dims=[*dims, half_dim]).simplify()
            replace_alike(op, xla_gpu.ApplyIndexingOp([*op.operands, half], new))
        else:
            if number is None:
                element = Expr.variable(0) * count + Expr.variable(1)
                position = IndexingMap((element,), (half_dim, Variable(in_half)))
                start = located_builder(InsertPoint.at_start(loop.body.block), loop)
                number = start.insert(xla_gpu.ApplyIndexingOp([half, variable], position)).results[0]
            op.operands = [number if operand is variable else operand for operand in op.operands]


# --- rewriting -------------------------------------------------------------------------------------------------------------------


@dataclass
class _Rewrite:
    """Rewrites one loop, given the accesses to vectorise."""

    loop: scf.ForOp
    width: int
    bases: dict[tuple[IndexingMap, tuple[SSAValue, ...]], SSAValue] = field(
        default_factory=dict[tuple[IndexingMap, tuple[SSAValue, ...]], SSAValue]
    )
    zeros: dict[Attribute, SSAValue] = field(default_factory=dict[Attribute, SSAValue])

    def run(self, taken: list[TensorAccess]) -> None:
        for access in taken:
            if isinstance(access.op, tensor.ExtractOp):
                self._read(access.op)
        writes = [access.op for access in taken if isinstance(access.op, tensor.InsertOp | xla_gpu.AtomicRMWOp)]
        if writes:
            self._write(writes)

    def _read(self, op: tensor.ExtractOp) -> None:
        row = vector_type(op.result.type, (self.width,))
        base, pad = self._base(op.indices[0]), self._zero(op.result.type, op)
        before = located_builder(InsertPoint.before(self.loop), op)
        read = before.insert(vector.TransferReadOp(op.tensor, [base], pad, row, IN_BOUNDS, IDENTITY))
        here = located_builder(InsertPoint.before(op), op)
        element = here.insert(vector.ExtractOp(read.result, [self.loop.body.block.args[0]], op.result.type)).result
        element.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(element)
        self._erase(op, op.indices[0])

    def _write(self, writes: list[tensor.InsertOp | xla_gpu.AtomicRMWOp]) -> None:
        """Replaces the loop by one that carries a vector for each write or update, and writes or adds the vectors after it."""
        block, old = self.loop.body.block, self.loop
        terminator = block.last_op
        assert isinstance(terminator, scf.YieldOp)
        bases = [self._base(op.indices[0]) for op in writes]
        # The vector of each write: a value from before the loop, or a result of the new loop.
        sources: list[SSAValue | int] = []
        inits, yielded = list(old.iter_args), list[SSAValue]()
        for op in writes:
            element = _element_of(op)
            if (copied := self._copied(element)) is not None:
                sources.append(copied)
                continue
            vector_type = VectorType(element.type, [self.width])
            carried = block.insert_arg(vector_type, len(block.args), op.location)
            carried.name_hint = "iter_vector"
            here = located_builder(InsertPoint.before(op), op)
            yielded.append(here.insert(vector.InsertOp(element, carried, [block.args[0]])).result)
            sources.append(len(inits))
            inits.append(self._zero(vector_type, op))
        for op in writes:
            op.result.replace_all_uses_with(_tensor_of(op))
        terminator.operands = [*terminator.arguments, *yielded]

        loop = scf.ForOp(old.lb, old.ub, old.step, inits, old.detach_region(0))
        loop.attributes, loop.properties, loop.location = old.attributes.copy(), old.properties.copy(), old.location
        Rewriter.insert_op(loop, InsertPoint.before(old))
        for before, after in zip(old.results, loop.results[: len(old.results)], strict=True):
            after.name_hint = before.name_hint
            before.replace_all_uses_with(after)
        last: Operation = loop
        for op, base, source in zip(writes, bases, sources, strict=True):
            position = block.args.index(_tensor_of(op)) - 1
            value = loop.results[source] if isinstance(source, int) else source
            write = _written_at_once(op, loop.iter_args[position], base, value)
            loop.results[position].replace_all_uses_with(write.results[0])
            Rewriter.insert_op(write, InsertPoint.after(last))
            last = write
            self._erase(op, op.indices[0])
        Rewriter.erase_op(old)

    @staticmethod
    def _erase(op: Operation, index: SSAValue) -> None:
        """Erases an access, and the apply_indexing of its index if that has no other use."""
        Rewriter.erase_op(op)
        if isinstance(index.owner, xla_gpu.ApplyIndexingOp) and index.first_use is None:
            Rewriter.erase_op(index.owner)

    def _copied(self, element: SSAValue) -> SSAValue | None:
        """The vector `v`, computed before the loop, if `element` is `vector.extract v[induction variable]`."""
        match element.owner:
            case vector.ExtractOp() as extract if (
                extract.vector.type == VectorType(element.type, [self.width])
                and extract.get_mixed_position() == [self.loop.body.block.args[0]]
                and not self.loop.is_ancestor(extract.vector.owner)
            ):
                return extract.vector
            case _:
                return None

    def _base(self, index: SSAValue) -> SSAValue:
        """`index` with the induction variable at 0, computed before the loop, once per distinct index."""
        variable, zero = self.loop.body.block.args[0], self.loop.lb
        if index is variable:
            return zero
        applied = index.owner
        assert isinstance(applied, xla_gpu.ApplyIndexingOp)
        operands = tuple(zero if operand is variable else operand for operand in applied.operands)
        key = (applied.map, operands)
        if (base := self.bases.get(key)) is None:
            before = located_builder(InsertPoint.before(self.loop), applied)
            base = self.bases[key] = before.insert(xla_gpu.ApplyIndexingOp(operands, applied.map)).results[0]
        elif isinstance(base.owner, Operation):
            base.owner.location = fuse_locations(base.owner.location, applied.location)
        return base

    def _zero(self, type_: Attribute, op: Operation) -> SSAValue:
        """A constant of zeros; one per type."""
        if (zero := self.zeros.get(type_)) is None:
            before = located_builder(InsertPoint.before(self.loop), op)
            zero = self.zeros[type_] = before.insert(arith.ConstantOp(zero_of(type_))).result
        return zero


def _tensor_of(op: tensor.InsertOp | xla_gpu.AtomicRMWOp) -> SSAValue:
    """The tensor that `op` writes to."""
    return op.dest if isinstance(op, tensor.InsertOp) else op.input


def _element_of(op: tensor.InsertOp | xla_gpu.AtomicRMWOp) -> SSAValue:
    """The value that `op` writes or adds."""
    if isinstance(op, tensor.InsertOp):
        return op.scalar
    added = _added(op)
    assert added is not None
    return added


def _written_at_once(
    op: tensor.InsertOp | xla_gpu.AtomicRMWOp, target: SSAValue, base: SSAValue, value: SSAValue
) -> vector.TransferWriteOp | xla_gpu.AtomicRMWOp:
    """The vector form of `op`: the same access with the vector `value` at `base` and the elements after it."""
    assert isa(target.type, TensorType)
    if isinstance(op, tensor.InsertOp):
        write = vector.TransferWriteOp(value, target, [base], IN_BOUNDS, None, IDENTITY, target.type)
    else:
        body = Block(arg_types=[value.type])
        write = xla_gpu.AtomicRMWOp(target, [base], Region(body), op.attributes.copy())
        write.current.name_hint = op.current.name_hint
        scalar = op.body.block.first_op
        assert isinstance(scalar, arith.AddfOp)
        inside = located_builder(InsertPoint.at_end(body), scalar)
        total = inside.insert(arith.AddfOp(write.current, value, scalar.fastmath)).result
        inside.insert(xla_gpu.YieldOp(total))
    write.location = op.location
    return write


@cache
def zero_of(type_: Attribute) -> IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr:
    """Zero of an integer, float or vector type."""
    if isa(type_, VectorType):
        if isinstance(type_.element_type, IntegerType):
            return DenseIntOrFPElementsAttr.from_list(cast("VectorType[IntegerType]", type_), [0])
        return DenseIntOrFPElementsAttr.from_list(cast("VectorType[AnyFloat]", type_), [0.0])
    if isa(type_, IntegerType):
        return IntegerAttr(0, type_)
    assert isinstance(type_, AnyFloat)
    return FloatAttr(0.0, type_)
