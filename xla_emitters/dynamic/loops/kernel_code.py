"""Code inside a loop of a fusion: index arithmetic, loads and stores, branches and loops.

    code.load(%x, [%i, %j])          -> memref.load %x[%i, %j] : memref<?x4xf32, "gpu">, converted to the type that kernels compute with
    code.index.add(%i, 1)            -> arith.addi %i, %c1 : index
    code.branch(%c, [f32], f, g)     -> scf.if %c -> (f32) { f } else { g }
    with code.where(%c) as inner:    -> scf.if %c { what `inner` emits }

Code is emitted with CSE: an op without effects with the same operands, in the same block or an enclosing one, is reused;
so is a load of a buffer that the fusion does not write. Elements are loaded and stored in the type of their buffer; kernels
compute with pred as a byte 0 or 1 and with signless integers, so a load is followed by a conversion, and a store preceded by its inverse:

    %l = memref.load %p[%i] : memref<?xi1, "gpu">            %l = memref.load %u[%i] : memref<?xui32, "gpu">
    %v = arith.extui %l : i1 to i8                           %v = builtin.unrealized_conversion_cast %l : ui32 to i32

A buffer in the host's memory is read on the host: at constant indices, before the fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeAlias, TypeVar

from xdsl.builder import Builder
from xdsl.dialects.builtin import IntegerAttr, LocationAttr, UnitAttr, UnrealizedConversionCastOp, i1, i8, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.attributes import index_number
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.placement import HOST
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, space_of, tensor_of
from xla_emitters.dialects.locations import locate
from xla_emitters.dialects.mlir import arith, memref, scf
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp, LinearizeIndexOp
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.mlir.memref import ATOMIC_KINDS
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dtypes import DType, Kind, dtype_of
from xla_emitters.dynamic.buffers.fusion_rules import VECTOR
from xla_emitters.dynamic.buffers.index_code import INDEX, IndexCode, Number
from xla_emitters.dynamic.loops.buffer_numbers import BufferNumbers
from xla_emitters.rewrite.effects import is_pure
from xla_emitters.rewrite.kernel_pass import refusal

MOST_OPS = 50_000
"""Limit of ops in one loop. An element that two branches need is computed in both, so a chain of such ops doubles the code each time."""

OperationT = TypeVar("OperationT", bound=Operation)
Key: TypeAlias = tuple[Any, ...]
Body: TypeAlias = Callable[["KernelCode"], Sequence[SSAValue]]
"""Emits a region's code; returns the values that it yields."""
LoopBody: TypeAlias = Callable[["KernelCode", SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""(code inside, induction variable, carried values) -> the next carried values."""


class KernelIndex(IndexCode):
    """Builder of index arithmetic in a kernel, with CSE, for nonnegative numbers."""

    def __init__(self, code: KernelCode) -> None:
        super().__init__(code.builder, code.location)
        self._code = code

    def insert(self, op: Operation) -> SSAValue:
        return self._code.insert(op).results[0]

    def value(self, number: Number) -> SSAValue:
        """The number as an `index` value."""
        if isinstance(number, SSAValue):
            return number
        made = self._code.insert(arith.ConstantOp(index_number(number))).result
        made.name_hint = f"c{number}" if number >= 0 else f"cm{-number}"
        return made

    def binary(
        self,
        op: type[arith.SignlessIntegerBinaryOperation],
        fold: Callable[[int, int], int],
        a: Number,
        b: Number,
        unit: int | None = None,
    ) -> Number:
        """Operations on host values only are computed on the host."""
        is_outside = all(isinstance(number, int) or not self._code.is_inside(number) for number in (a, b))
        if is_outside and not (isinstance(a, int) and isinstance(b, int)):
            return self._code.numbers.code.binary(op, fold, a, b, unit)
        return super().binary(op, fold, a, b, unit)

    def quotient(self, a: Number, b: Number) -> Number:
        """a / b for nonnegative a and positive b."""
        return a if b == 1 else self.binary(arith.DivUIOp, lambda x, y: x // y, a, b)

    def remainder(self, a: Number, b: Number) -> Number:
        """a mod b for nonnegative a and positive b."""
        return 0 if b == 1 else self.binary(arith.RemUIOp, lambda x, y: x % y, a, b)

    def multiple(self, number: Number, of: int) -> Number:
        """A host number that the power of two `of` divides, masked so that later passes see that it does."""
        if of == 1 or isinstance(number, int):
            return number
        return self.insert(arith.AndIOp(number, self.value(-of)))

    def clamp(self, value: SSAValue, element: DType, high: Number) -> Number:
        """An integer of that type as an index in [0, high], where `high` is not negative.

        A value that a 32-bit index may not hold is clamped before the conversion.
        """
        is_unsigned, is_wide = element.kind is Kind.UNSIGNED, element.bits > 32
        if (known := constant_of(value)) is not None:
            known = known % (1 << element.bits) if is_unsigned else known
            if known <= 0 or isinstance(high, int):
                return 0 if known <= 0 or not isinstance(high, int) else min(known, high)
        limit = self.value(high)
        if is_wide:
            limit = self.insert(arith.IndexCastOp(limit, value.type))
        else:
            value = self.insert(IndexCastUIOp(value, INDEX) if is_unsigned else arith.IndexCastOp(value, INDEX))
        value = self.insert((arith.MinUIOp if is_unsigned else arith.MinSIOp)(value, limit))
        if not is_unsigned:
            zero = self.insert(arith.ConstantOp(IntegerAttr(0, value.type)))  # pyright: ignore[reportArgumentType, reportCallIssue]
            value = self.insert(arith.MaxSIOp(value, zero))
        return self.insert(arith.IndexCastOp(value, INDEX)) if is_wide else value

    def of(self, value: SSAValue, element: DType) -> SSAValue:
        """An integer of that type as an index."""
        cast = IndexCastUIOp if element.kind is Kind.UNSIGNED else arith.IndexCastOp
        return self.insert(cast(value, INDEX))

    def delinearize(self, linear: SSAValue, sizes: Sequence[Number]) -> list[SSAValue]:
        """The coordinates of element `linear` of an array of these sizes."""
        own = [size for size in sizes if size != 1]
        if len(own) <= 1:
            made = [linear] * len(own) if own or not sizes else [self.value(0)]
        else:
            made = list(self._code.insert(DelinearizeIndexOp(linear, own, len(own))).multi_index)
        places = iter(made)
        return [self.value(0) if size == 1 else next(places) for size in sizes]

    def linearize(self, indices: Sequence[SSAValue], sizes: Sequence[Number]) -> SSAValue:
        """The number of the element at these coordinates; folds with a `delinearize` over equal sizes."""
        if not indices:
            return self.value(0)
        if len(indices) == 1:
            return indices[0]
        owner = indices[0].owner
        if (
            isinstance(owner, DelinearizeIndexOp)
            and list(owner.multi_index) == list(indices)
            and owner.basis == list(sizes)
        ):
            return owner.linear_index
        return self._code.insert(LinearizeIndexOp(indices, sizes, disjoint=True)).linear_index


class KernelCode:
    """Emits code at the insertion point of `builder`, in a loop of `fusion`.

    numbers    host values
    producers  buffer -> emitter of its elements, used in place of loads
    """

    def __init__(
        self,
        builder: Builder,
        fusion: FusionOp,
        numbers: BufferNumbers,
        producers: Mapping[SSAValue, Producer] | None = None,
    ) -> None:
        self.builder = builder
        self.fusion = fusion
        self.location: LocationAttr = fusion.location
        self.numbers = numbers
        self.producers: Mapping[SSAValue, Producer] = producers or {}
        self.written = {use for op in fusion.walk() for use in _written_by(op)}
        self._counted = [0]
        self._hlo = dict[BufferOp, HloOp]()
        self._made = dict[object, Operation]()
        self._elements = dict[Key, SSAValue]()
        self.index = KernelIndex(self)

    def inside(self, block: Block) -> KernelCode:
        """The same at the end of an inner block: values made here are visible there, values made there are not visible here."""
        made = copy(self)
        made.builder = QuickBuilder(InsertPoint.at_end(block))
        made._made, made._elements = self._made.copy(), self._elements.copy()
        made.index = KernelIndex(made)
        return made

    def insert(self, op: OperationT, /) -> OperationT:
        """Inserts an op, or returns an equal one that is visible."""
        locate(op, self.location)
        self._count()
        if op.regions or not is_pure(op):
            return self.builder.insert(op)
        key = _key(op)
        if (known := self._made.get(key)) is not None:
            op.erase()
            return known  # pyright: ignore[reportReturnType]
        self._made[key] = op
        return self.builder.insert(op)

    def hlo_of(self, op: BufferOp) -> HloOp:
        """The op on tensors; cached."""
        if op not in self._hlo:
            self._hlo[op] = op.as_hlo()
        return self._hlo[op]

    def _count(self) -> None:
        self._counted[0] += 1
        if self._counted[0] > MOST_OPS:
            why = f"the code of one loop of {self.fusion.label} is longer than {MOST_OPS} ops: elements are computed again and again"
            raise refusal("loops", self.fusion, why, "make smaller fusions")

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is defined in the fusion, not on the host."""
        holder = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
        return holder is not None and self.fusion.is_ancestor(holder)

    def note(self, op: Operation) -> None:
        """Records that an op exists at the current insertion point."""
        if not op.regions and is_pure(op):
            self._made.setdefault(_key(op), op)

    @contextmanager
    def located(self, location: LocationAttr) -> Generator[None]:
        """Within the context, new ops get this location."""
        before, self.location = self.location, location
        yield
        self.location = before

    # ------------------------------------------------------------------------------------------------------ accesses

    def is_shared(self, buffer: SSAValue) -> bool:
        """Whether equal loads may be merged: an outside buffer that the fusion does not write."""
        return not (buffer in self.written or self.is_inside(buffer))

    def known(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> SSAValue | None:
        """An element that was computed or loaded before, and is still valid."""
        return self._elements.get((buffer, tuple(indices)))

    def keep(self, buffer: SSAValue, indices: Sequence[SSAValue], value: SSAValue) -> None:
        """Records `value` as the element of a buffer for later loads."""
        self._elements[buffer, tuple(indices)] = value

    def load(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """An element of a buffer, converted to the type that kernels compute with: loaded, or computed if a producer is known."""
        if (known := self.known(buffer, indices)) is not None:
            return known
        if (producer := self.producers.get(buffer)) is not None:
            value = producer(self, indices)
        else:
            value = self._loaded(buffer, indices)
            if not self.is_shared(buffer):
                return value
        self.keep(buffer, indices, value)
        return value

    def _loaded(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        if space_of(buffer.type) == HOST:
            dims = tensor_of(buffer.type).get_shape()
            places = [0 if size == 1 else constant_of(index) for index, size in zip(indices, dims, strict=True)]
            known = [place for place in places if place is not None]
            if len(known) < len(places):
                why = f"a kernel reads {buffer.type}, a list of the host, at an index that is not constant"
                raise refusal("loops", self.fusion, why, "copy it to the device outside of the fusion")
            raw = self.numbers.raw(buffer, known)
        else:
            raw = self.insert(memref.LoadOp.get(buffer, list(indices))).res
        return self.insert(converted).results[0] if (converted := to_storage(raw)) else raw

    def store(self, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        """Writes an element; `value` has the type that kernels compute with."""
        self.written.add(buffer)
        if converted := from_storage(value, tensor_of(buffer.type).element_type):
            value = self.insert(converted).results[0]
        self.insert(memref.StoreOp.get(value, buffer, list(indices)))

    def update(self, kind: str, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        """Changes an element by an atomic instruction, one of `ATOMIC_KINDS`."""
        self.written.add(buffer)
        number = IntegerAttr(ATOMIC_KINDS.index(kind), i64)
        operands = [value, buffer, list(indices)]
        self.insert(memref.AtomicRMWOp(operands=operands, properties={"kind": number}, result_types=[value.type]))

    # -------------------------------------------------------------------------------------------------- control flow

    def branch(
        self, condition: SSAValue, types: Sequence[Attribute], then: Body, otherwise: Body | None = None
    ) -> Sequence[SSAValue]:
        """`scf.if`: the results of its two bodies; none without `otherwise`."""
        regions = [Region(Block()), Region(Block()) if otherwise else Region()]
        # Inserted first, so that values made inside are known to be in the fusion.
        made = self.insert(scf.IfOp(condition, types, regions[0], regions[1]))
        for body, region in zip((then, otherwise), regions, strict=True):
            if body:
                inside = self.inside(region.block)
                inside.insert(scf.YieldOp(*body(inside)))
        return made.results

    @contextmanager
    def where(self, condition: SSAValue) -> Generator[KernelCode]:
        """Within the context, the code of an `scf.if` without results."""
        block = Block()
        self.insert(scf.IfOp(condition, [], Region(block), Region()))
        inside = self.inside(block)
        yield inside
        inside.insert(scf.YieldOp())

    @contextmanager
    def each(self, lower: Number, upper: Number, step: Number = 1) -> Generator[tuple[KernelCode, SSAValue]]:
        """Within the context, the code of an `scf.for` that carries nothing, and its induction variable."""
        block = Block(arg_types=[INDEX])
        first, end, stride = (self.index.value(number) for number in (lower, upper, step))
        self.insert(scf.ForOp(first, end, stride, (), Region(block)))
        inside = self.inside(block)
        yield inside, block.args[0]
        inside.insert(scf.YieldOp())

    def neighbours(self, count: int, inits: Sequence[SSAValue], body: LoopBody) -> Sequence[SSAValue]:
        """A loop over adjacent elements: `disc-vectorize-accesses` combines their loads and stores."""
        return self.loop(0, count, 1, inits, body, {VECTOR: UnitAttr()})

    def loop(
        self,
        lower: Number,
        upper: Number,
        step: Number,
        inits: Sequence[SSAValue],
        body: LoopBody,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Sequence[SSAValue]:
        """`scf.for`: the final carried values."""
        block = Block(arg_types=[INDEX, *(value.type for value in inits)])
        first, end, stride = (self.index.value(number) for number in (lower, upper, step))
        made = self.insert(scf.ForOp(first, end, stride, inits, Region(block)))
        made.attributes |= attributes or {}
        inside = self.inside(block)
        inside.insert(scf.YieldOp(*body(inside, block.args[0], block.args[1:])))
        return made.results


Producer = Callable[[KernelCode, Sequence[SSAValue]], SSAValue]
"""(code, indices) -> the element of a buffer, in the type that kernels compute with."""


def _key(op: Operation) -> Key:
    named = (*sorted(op.properties.items()), *sorted(op.attributes.items()))
    return (op.name, *op.operands, *named, *op.result_types)


def _written_by(op: Operation) -> Sequence[SSAValue]:
    match op:
        case BufferOp():
            return op.outputs
        case memref.StoreOp() | memref.AtomicRMWOp():
            return (op.memref,)
        case _:
            return ()


def to_storage(value: SSAValue) -> Operation | None:
    """The conversion of a loaded element to the type that kernels compute with; None if it has that type."""
    element = dtype_of(value.type)
    if element.kind is Kind.PRED:
        return arith.ExtUIOp(value, i8)
    return _cast(value, element.storage_type)


def from_storage(value: SSAValue, element: Attribute) -> Operation | None:
    """The inverse of `to_storage`, for a buffer of that element type."""
    if value.type != element and dtype_of(element).kind is Kind.PRED:
        return arith.TruncIOp(value, i1)
    return _cast(value, element)


def _cast(value: SSAValue, target: Attribute) -> Operation | None:
    if value.type == target:
        return None
    return UnrealizedConversionCastOp(operands=[[value]], result_types=[[target]])
