"""One element of a buffer op: its indices, its operands' elements, and the sizes that its indices depend on.

    e.indices, e.operand(0, [%i])       as every `ElementContext`, for the code of elementwise ops
    e.result_sizes, e.sizes(0)          numbers, or `index` values of the host
    e.held(2, 1)                        element 1 of operand 2, a list of sizes, starts ...

Source: docs/reference/4 5, "seams".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.base import Emit, EmitStep, OperationT, integers
from xla_emitters.dialects.hlo.placement import HOST
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp, space_of
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.kernel_code import KernelCode, KernelIndex


class BufferElement:
    """The element of the result of `op` at `indices`, written by `code`."""

    def __init__(self, code: KernelCode, op: BufferOp, indices: Sequence[SSAValue]) -> None:
        self.code = code
        self.op = op
        self.hlo = code.hlo_of(op)
        self.indices = tuple(indices)

    # ---------------------------------------------------------------------------------------- as every ElementContext

    @property
    def builder(self) -> Builder:
        return self.code.builder

    def operand(self, i: int, indices: Sequence[SSAValue] | None = None) -> SSAValue:
        return self.code.load(self.op.inputs[i], self.indices if indices is None else indices)

    def elements(self, i: int, indices: Sequence[SSAValue] | None = None) -> Sequence[SSAValue]:
        return (self.operand(i, indices),)

    def insert(self, op: OperationT, /) -> OperationT:
        return self.code.insert(op)

    def branch(self, condition: SSAValue, then: Emit, otherwise: Emit) -> Sequence[SSAValue]:
        outer = self.code

        def within(emit: Emit, inner: KernelCode) -> Sequence[SSAValue]:
            self.code = inner
            try:
                return emit()
            finally:
                self.code = outer

        types = [element_of(self.hlo.result).storage_type]
        return outer.branch(condition, types, lambda code: within(then, code), lambda code: within(otherwise, code))

    def loop(self, index_map: IndexingMap, inits: Sequence[SSAValue], body: EmitStep) -> Sequence[SSAValue]:
        raise self.hlo.unsupported("no loop inside one element on buffers")

    def call(self, computation: str, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        raise self.hlo.unsupported("no call of a computation for one element on buffers")

    # --------------------------------------------------------------------------------------------------------- sizes

    @property
    def index(self) -> KernelIndex:
        return self.code.index

    @property
    def result_sizes(self) -> tuple[Number, ...]:
        return self.code.numbers.sizes(self.op.outputs[0])

    def sizes(self, i: int) -> tuple[Number, ...]:
        """The sizes of operand `i`."""
        return self.code.numbers.sizes(self.op.inputs[i])

    def lists(self, name: str) -> tuple[int, ...]:
        """The list of numbers in the property `name`."""
        return integers(self.hlo.properties.get(name))

    def held(self, i: int, *indices: int) -> Number:
        """An element of operand `i`, an integer list in the host's or the device's memory, as a number."""
        buffer = self.op.inputs[i]
        if space_of(buffer.type) == HOST:
            return self.code.numbers.held(buffer, *indices)
        places = [self.index.value(index) for index in indices]
        return self.index.of(self.operand(i, places), element_of(self.hlo.operands[i]))
