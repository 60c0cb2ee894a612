"""Code inside a loop of a fusion: index arithmetic, loads and stores, branches and loops.

    code.load(%x, [%i, %j])          -> memref.load %x[%i, %j] : memref<?x4xf32, "gpu">, in the form in which kernels compute
    code.index.add(%i, 1)            -> arith.addi %i, %c1 : index
    code.branch(%c, [f32], f, g)     -> scf.if %c -> (f32) { f } else { g }

A value is computed once: an op without effects that was inserted with the same operands, in the same block or one around it, is taken
again; so is a load of a buffer that the fusion does not write. Elements are loaded and stored in the type of their buffer; kernels
compute with pred as a byte 0 or 1 and with integers without a sign, so a load is followed by a conversion, and a store by its inverse:

    %l = memref.load %p[%i] : memref<?xi1, "gpu">            %l = memref.load %u[%i] : memref<?xui32, "gpu">
    %v = arith.extui %l : i1 to i8                           %v = builtin.unrealized_conversion_cast %l : ui32 to i32

A buffer in the host's memory is read on the host: at constant indices, before the fusion.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeAlias, TypeVar

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr, LocationAttr, UnitAttr, UnrealizedConversionCastOp, i1, i8
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from xla_emitters.buffers.fusion_rules import VECTOR
from xla_emitters.buffers.index_code import INDEX, IndexCode, Number
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.placement import HOST
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, space_of, tensor_of
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp, LinearizeIndexOp
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dtypes import DType, Kind, dtype_of
from xla_emitters.loops.buffer_numbers import BufferNumbers, number_of
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.rewrite.locations import locate

MOST_OPS = 50_000
"""In one loop. An element that two branches need is computed in both, so a chain of such ops doubles the code each time."""

OperationT = TypeVar("OperationT", bound=Operation)
Key: TypeAlias = tuple[Any, ...]
Body: TypeAlias = Callable[["KernelCode"], Sequence[SSAValue]]
"""Writes the code of a region; returns what it yields."""
LoopBody: TypeAlias = Callable[["KernelCode", SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""(code inside, induction variable, carried values) -> the next carried values."""


class KernelIndex(IndexCode):
    """Index arithmetic in a kernel: each result once, and on numbers that are not negative."""

    def __init__(self, code: KernelCode) -> None:
        super().__init__(code.builder, code.location)
        self._code = code

    def insert(self, op: Operation) -> SSAValue:
        return self._code.insert(op).results[0]

    def value(self, number: Number) -> SSAValue:
        """The number as an `index` value."""
        if isinstance(number, SSAValue):
            return number
        made = self._code.insert(arith.ConstantOp.from_int_and_width(number, INDEX)).result
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
        """What depends on nothing in the kernel is computed on the host."""
        is_outside = all(isinstance(number, int) or not self._code.is_inside(number) for number in (a, b))
        if is_outside and not (isinstance(a, int) and isinstance(b, int)):
            return self._code.numbers.code.binary(op, fold, a, b, unit)
        return super().binary(op, fold, a, b, unit)

    def quotient(self, a: Number, b: Number) -> Number:
        """Of a number that is not negative by a positive one."""
        return a if b == 1 else self.binary(arith.DivUIOp, lambda x, y: x // y, a, b)

    def remainder(self, a: Number, b: Number) -> Number:
        """Of a number that is not negative by a positive one."""
        return 0 if b == 1 else self.binary(arith.RemUIOp, lambda x, y: x % y, a, b)

    def multiple(self, number: Number, of: int) -> Number:
        """A number of the host that a power of two divides, so that what follows sees that it does."""
        if of == 1 or isinstance(number, int):
            return number
        return self.insert(arith.AndIOp(number, self.value(-of)))

    def compare(self, predicate: str, a: Number, b: Number) -> SSAValue:
        """i1: `a` compared with `b`, as `arith.cmpi` names it."""
        return self.insert(arith.CmpiOp(self.value(a), self.value(b), predicate))

    def select(self, condition: SSAValue, then: Number, otherwise: Number) -> SSAValue:
        return self.insert(arith.SelectOp(condition, self.value(then), self.value(otherwise)))

    def every(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """i1: whether all of one or more hold."""
        first, *rest = conditions
        for other in rest:
            first = self.insert(arith.AndIOp(first, other))
        return first

    def clamp(self, value: SSAValue, element: DType, high: Number) -> Number:
        """An integer of that type as an index in [0, high], where `high` is not negative.

        What an index of 32 bits may not hold is clamped before it becomes one.
        """
        is_unsigned, is_wide = element.kind is Kind.UNSIGNED, element.bits > 32
        if (known := number_of(value)) is not None:
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
        if len(sizes) <= 1:
            return [linear] * len(sizes)
        return list(self._code.insert(DelinearizeIndexOp(linear, sizes, len(sizes))).multi_index)

    def linearize(self, indices: Sequence[SSAValue], sizes: Sequence[Number]) -> SSAValue:
        """The number of the element at these coordinates; the inverse of `delinearize`, which it undoes."""
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
    """Writes code where `builder` inserts, in a loop of `fusion`.

    numbers    of the host
    producers  what is computed in place of a load: for each buffer, the code of one of its elements
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
        self._made = ChainMap[object, Operation]()
        self._elements = ChainMap[Key, SSAValue]()
        self.index = KernelIndex(self)

    def inside(self, block: Block) -> KernelCode:
        """The same at the end of a block that is inside: it sees what was made here; what it makes is not seen here."""
        made = copy(self)
        made.builder = Builder(InsertPoint.at_end(block))
        made._made, made._elements = self._made.new_child(), self._elements.new_child()
        made.index = KernelIndex(made)
        return made

    def insert(self, op: OperationT, /) -> OperationT:
        """Adds an op, or returns the same op that is there already."""
        locate(op, self.location)
        self._count()
        if op.regions or not is_side_effect_free(op):
            return self.builder.insert(op)
        key = _key(op)
        if (known := self._made.get(key)) is not None:
            op.erase()
            return known  # pyright: ignore[reportReturnType]
        self._made[key] = op
        return self.builder.insert(op)

    def hlo_of(self, op: BufferOp) -> HloOp:
        """The op on tensors, made once."""
        if op not in self._hlo:
            self._hlo[op] = op.as_hlo()
        return self._hlo[op]

    def _count(self) -> None:
        self._counted[0] += 1
        if self._counted[0] > MOST_OPS:
            name = self.fusion.fusion_name.data if self.fusion.fusion_name else "the fusion"
            why = f"the code of one loop of {name} is longer than {MOST_OPS} ops: elements are computed again and again"
            raise refusal("loops", self.fusion, why, "make smaller fusions")

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is made in the fusion, and not on the host."""
        holder = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
        return holder is not None and self.fusion.is_ancestor(holder)

    def note(self, op: Operation) -> None:
        """Says that an op is there, at the place where code is inserted."""
        if not op.regions and is_side_effect_free(op):
            self._made.setdefault(_key(op), op)

    @contextmanager
    def located(self, location: LocationAttr) -> Generator[None]:
        """Within the context, new ops get this location."""
        before, self.location = self.location, location
        yield
        self.location = before

    # ------------------------------------------------------------------------------------------------------ accesses

    def is_shared(self, buffer: SSAValue) -> bool:
        """Whether a load may be taken for another one: a buffer of the outside that the fusion does not write."""
        return not (buffer in self.written or self.is_inside(buffer))

    def known(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> SSAValue | None:
        """An element that was computed or loaded before, and is still that of the buffer."""
        return self._elements.get((buffer, tuple(indices)))

    def keep(self, buffer: SSAValue, indices: Sequence[SSAValue], value: SSAValue) -> None:
        """Says that `value` is the element of a buffer: what is loaded there from now on."""
        self._elements[buffer, tuple(indices)] = value

    def load(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """An element of a buffer, in the form in which kernels compute: loaded, or computed where a producer is known."""
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
            places = [0 if size == 1 else number_of(index) for index, size in zip(indices, dims, strict=True)]
            known = [place for place in places if place is not None]
            if len(known) < len(places):
                why = f"a kernel reads {buffer.type}, a list of the host, at an index that is not constant"
                raise refusal("loops", self.fusion, why, "copy it to the device outside of the fusion")
            raw = self.numbers.raw(buffer, known)
        else:
            raw = self.insert(memref.LoadOp.get(buffer, list(indices))).res
        return self.insert(converted).results[0] if (converted := to_storage(raw)) else raw

    def store(self, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        """Writes an element; `value` is in the form in which kernels compute."""
        self.written.add(buffer)
        if converted := from_storage(value, tensor_of(buffer.type).element_type):
            value = self.insert(converted).results[0]
        self.insert(memref.StoreOp.get(value, buffer, list(indices)))

    # -------------------------------------------------------------------------------------------------- control flow

    def branch(
        self, condition: SSAValue, types: Sequence[Attribute], then: Body, otherwise: Body | None = None
    ) -> Sequence[SSAValue]:
        """`scf.if`: the values of one of two bodies. Without `otherwise` there are none."""
        regions = [Region(Block()), Region(Block()) if otherwise else Region()]
        # First of all, so that what is made inside is seen to be in the fusion.
        made = self.insert(scf.IfOp(condition, types, regions[0], regions[1]))
        for body, region in zip((then, otherwise), regions, strict=True):
            if body:
                inside = self.inside(region.block)
                inside.insert(scf.YieldOp(*body(inside)))
        return made.results

    def neighbours(self, count: int, inits: Sequence[SSAValue], body: LoopBody) -> Sequence[SSAValue]:
        """A loop over elements beside each other: `disc-vectorize-accesses` loads and stores them together."""
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
        """`scf.for`: what the carried values are in the end."""
        block = Block(arg_types=[INDEX, *(value.type for value in inits)])
        first, end, stride = (self.index.value(number) for number in (lower, upper, step))
        made = self.insert(scf.ForOp(first, end, stride, inits, Region(block)))
        made.attributes |= attributes or {}
        inside = self.inside(block)
        inside.insert(scf.YieldOp(*body(inside, block.args[0], block.args[1:])))
        return made.results


Producer = Callable[[KernelCode, Sequence[SSAValue]], SSAValue]
"""(code, indices) -> the element of a buffer, in the form in which kernels compute."""


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
    """The conversion of a loaded element to the form in which kernels compute; None where it has that form."""
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
