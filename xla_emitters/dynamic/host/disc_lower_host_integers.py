"""Ops on a few integers of the host become code: the runtime of a program for C has no functions for them.

    lmhlo.compare %a, %b -> %p {direction = "GE"}          %0 = memref.load %a[]
                                                           %1 = memref.load %b[]
                                                   ->      %2 = arith.cmpi sge, %0, %1 : i32
                                                           memref.store %2, %p[]

Each element of the result is the op's own code of one element, or, of an op that only moves elements, a load. What has no code (other
types, unknown sizes, more than MOST_ELEMENTS) stays, and becomes a call by name.
Source: docs/reference/4 4.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp, i1, i8, i64
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.base import Emit, EmitStep, OperationT
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.lmhlo import BufferOp, space_of
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, memref
from xla_emitters.dynamic.host.host_numbers import elements_moved
from xla_emitters.dynamic.host.memref_descriptors import memref_type
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.kernel_pass import KernelPass

MOST_ELEMENTS = 16
"""Most elements of a result that is computed element by element."""
INTEGERS = frozenset((i1, IntegerType(32), i64))
Place: TypeAlias = Sequence[int]


class DiscLowerHostIntegersPass(KernelPass):
    name = "disc-lower-host-integers"

    def apply_to(self, op: ModuleOp) -> None:
        for inner in [found for found in op.walk() if isinstance(found, BufferOp)]:
            if (reason := _lower(inner)) is not None:
                self.skip(inner, reason)


def _lower(op: BufferOp) -> str | None:
    """Replaces an op by code, or returns why not."""
    if any(space_of(value.type) != "cpu" for value in op.operands):
        return "it is not the host's"
    shapes = [memref_type(value).get_shape() for value in op.operands]
    if any(size < 0 for shape in shapes for size in shape):
        return "it has a size that is not known"
    if len(op.outputs) != 1 or any(_element(value) not in INTEGERS for value in op.operands):
        return "it is not on integers with signs"
    places = list(product(*map(range, shapes[-1])))
    if len(places) > MOST_ELEMENTS:
        return f"its result has more than {MOST_ELEMENTS} elements"
    # Built apart first: if an op has no code, the program stays unchanged.
    block, values = Block(), list[SSAValue]()
    with suppress(Unsupported):
        values = _elements(op, places, located_builder(InsertPoint.at_end(block), op))
    if len(values) != len(places) or len(block.ops) == 0:
        for inner in reversed(list(block.ops)):
            inner.detach()
            inner.drop_all_references()
        return "it has no code of one element here"
    for inner in list(block.ops):
        inner.detach()
        Rewriter.insert_op(inner, InsertPoint.before(op))
    # All are computed before the first is stored: the result may alias an operand.
    builder = located_builder(InsertPoint.before(op), op)
    for place, value in zip(places, values, strict=True):
        builder.insert(memref.StoreOp.get(value, op.outputs[0], _indices(builder, place)))
    Rewriter.erase_op(op)
    return None


def _elements(op: BufferOp, places: Sequence[Place], builder: Builder) -> list[SSAValue]:
    """The elements of the result; none for an op that is neither elementwise nor moves elements. raises Unsupported"""
    if (moved := elements_moved(op)) is not None:
        sources = [(value, at) for value in op.inputs for at in product(*map(range, memref_type(value).get_shape()))]
        found = (sources[number] for number in moved)
        return [builder.insert(memref.LoadOp.get(value, _indices(builder, at))).res for value, at in found]
    made, values = op.as_hlo(), list[SSAValue]()
    for place in places if is_elementwise(made) else ():
        (value,) = made.emit_element(_HostElement(builder, op, place))
        is_truth = _element(op.outputs[0]) == i1
        values.append(builder.insert(arith.TruncIOp(value, i1)).result if is_truth else value)
    return values


def _element(value: SSAValue) -> Attribute:
    return memref_type(value).element_type


def _indices(builder: Builder, place: Place) -> list[SSAValue]:
    return [builder.insert(arith.ConstantOp(IntegerAttr(index, IndexType()))).result for index in place]


class _HostElement:
    """An element at a known index: an `ElementContext`."""

    def __init__(self, builder: Builder, op: BufferOp, place: Place) -> None:
        self.builder = builder
        self._op = op
        self.indices = tuple(_indices(builder, place))

    def operand(self, i: int, indices: Sequence[SSAValue] | None = None) -> SSAValue:
        buffer = self._op.inputs[i]
        at = self.indices if indices is None else indices
        value = self.builder.insert(memref.LoadOp.get(buffer, at if memref_type(buffer).get_shape() else ())).res
        # Ops represent truth values as bytes.
        return self.builder.insert(arith.ExtUIOp(value, i8)).result if value.type == i1 else value

    def elements(self, i: int, indices: Sequence[SSAValue] | None = None) -> Sequence[SSAValue]:
        return (self.operand(i, indices),)

    def insert(self, op: OperationT, /) -> OperationT:
        return self.builder.insert(op)

    def branch(self, condition: SSAValue, then: Emit, otherwise: Emit, /) -> Sequence[SSAValue]:
        raise self._op.as_hlo().unsupported("no branch inside one element on the host")

    def loop(self, index_map: IndexingMap, inits: Sequence[SSAValue], body: EmitStep, /) -> Sequence[SSAValue]:
        raise self._op.as_hlo().unsupported("no loop inside one element on the host")

    def call(self, computation: str, arguments: Sequence[SSAValue], /) -> Sequence[SSAValue]:
        raise self._op.as_hlo().unsupported("no call of a computation for one element on the host")
