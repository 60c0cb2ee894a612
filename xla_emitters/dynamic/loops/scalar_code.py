"""Emits a computation of scalars that another op calls for elements: the body of a reduction, of `map`.

    hlo.computation @add {                                   emit_scalars(code, @add, [%a, %b])
      %p0 = hlo.parameter 0 ...                                  -> %s = arith.addf %a, %b : f32
      %p1 = hlo.parameter 1 ...
      hlo.return (hlo.add %p0, %p1)
    }

Values have the types that kernels compute with: pred is a byte, integers are signless. Calls are inlined. Instructions that the results
do not need have no code.
Source: docs/reference/1 5.5 "map", "reduce".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.base import Emit, EmitStep, HloOp, OperationT
from xla_emitters.dialects.hlo.called import needed_by
from xla_emitters.dialects.hlo.computation import CallOp, ComputationOp, ParameterOp, TupleOp, find_computation
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.kernel_pass import refusal

Values = dict[SSAValue, Sequence[SSAValue]]
"""Value of a computation -> its SSA values in the code: one, or one per leaf of a tuple."""


def emit_scalars(code: KernelCode, computation: ComputationOp, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """The results of a computation of scalars: one value per leaf of its root.

    arguments   one for each parameter
    raises      Unsupported, with its place, for an instruction that is not on scalars
    """
    values: Values = {}
    needed = needed_by(computation)
    for op in computation.instructions:
        if op not in needed:
            continue
        if isinstance(op, ParameterOp):
            values[op.result] = (arguments[op.number.value.data],)
        elif isinstance(op, CallOp):
            given = [leaf for operand in op.operands for leaf in values[operand]]
            values[op.result] = emit_scalars(code, find_computation(op, op.to_apply), given)
        elif isinstance(op, TupleOp):
            values[op.result] = [leaf for operand in op.operands for leaf in values[operand]]
        else:
            values[op.result] = op.emit_element(ScalarContext(code, op, values))
    return list(values[computation.root])


@dataclass(frozen=True, eq=False)
class ScalarContext:
    """The `ElementContext` of one instruction of a computation of scalars.

    values   of the earlier instructions
    """

    code: KernelCode
    op: HloOp
    values: Mapping[SSAValue, Sequence[SSAValue]]

    @property
    def builder(self) -> Builder:
        return self.code.builder

    @property
    def indices(self) -> tuple[SSAValue, ...]:
        return ()

    def operand(self, i: int, indices: Sequence[SSAValue] | None = None) -> SSAValue:
        (value,) = self.elements(i, indices)
        return value

    def elements(self, i: int, indices: Sequence[SSAValue] | None = None) -> Sequence[SSAValue]:
        return self.values[self.op.operands[i]]

    def insert(self, op: OperationT, /) -> OperationT:
        return self.code.insert(op)

    def branch(self, condition: SSAValue, then: Emit, otherwise: Emit) -> Sequence[SSAValue]:
        raise self._refused()

    def loop(self, index_map: IndexingMap, inits: Sequence[SSAValue], body: EmitStep) -> Sequence[SSAValue]:
        raise self._refused()

    def _refused(self) -> Unsupported:
        """The error for branches and loops, which ops on scalars do not need."""
        return refusal("loops", self.op, f"'{self.op.opcode}' is part of a computation that is called for elements")

    def call(self, computation: str, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return emit_scalars(self.code, find_computation(self.op, computation), arguments)
