"""Emits one element of a buffer op's result from elements of the buffers that it reads.

    element(code, lmhlo.add %x, %y -> %z, [%i, %j])
        %0 = memref.load %x[%i, %j]
        %1 = memref.load %y[%i, %j]
        %2 = arith.addf %0, %1 : f32

An elementwise op emits itself (`emit_element` of its class in `hlo`); an op that moves elements has a rule in `index_rules`, because its
indices depend on sizes that are known only at run time. Operands are read by `KernelCode.load`, which loads them, or computes them if it
knows their producer.
Source: docs/reference/4 1.3 and 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.called import MapOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp, is_elementwise
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dynamic.buffers.fusion_rules import computation_of
from xla_emitters.dynamic.loops.element_context import BufferElement
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.operand_indices import ELEMENTS, MOVES, read
from xla_emitters.dynamic.loops.scalar_code import emit_scalars
from xla_emitters.rewrite.kernel_pass import refusal

Read: TypeAlias = tuple[SSAValue, tuple[SSAValue, ...]]
"""A buffer, and the indices of one of its elements."""

ELSEWHERE = {
    "dot": "a library's product",
    "convolution": "a library's convolution",
    "dynamic-conv": "a library's convolution",
    "reduce": "a schedule of reductions",
    "scatter": "the runtime's scatter",
    "sort": "the runtime's sort",
}
"""Opcode without element code -> what computes it; others: the runtime."""


def has_element_code(op: BufferOp) -> bool:
    """Whether one element of the op's result can be computed on its own, in a loop."""
    return len(op.outputs) == 1 and (
        issubclass(op.HLO, ElementwiseOp | MapOp) or op.HLO.name in MOVES or op.HLO.name in ELEMENTS
    )


def element(code: KernelCode, op: BufferOp, indices: Sequence[SSAValue]) -> SSAValue:
    """Emits one element of the result of `op`, in the types that kernels compute with.

    raises   Unsupported for an op without code of one element; it names what computes that op
    """
    with code.located(op.location):
        e = BufferElement(code, op, indices)
        if (move := MOVES.get(op.HLO.name)) is not None:
            return read(e, 0, move(e))
        if (emit := ELEMENTS.get(op.HLO.name)) is not None:
            return emit(e)
        if isinstance(e.hlo, ElementwiseOp):
            return e.hlo.emit_element(e)[0]
        if isinstance(e.hlo, MapOp):
            arguments = [e.operand(i) for i in range(len(op.inputs))]
            return emit_scalars(code, computation_of(op), arguments)[0]
        by = ELSEWHERE.get(e.hlo.opcode, "the runtime")
        raise refusal(
            "loops",
            op,
            f"'{e.hlo.opcode}' (instruction %{op.instruction_name}) has no code of one element",
            f"leave it outside of fusions: it is computed by {by}",
        )


@dataclass(frozen=True)
class KnownProducer:
    """A `Producer` of an existing value: the buffer has one element per row, or is read at one index only."""

    value: SSAValue

    def __call__(self, code: KernelCode, indices: Sequence[SSAValue]) -> SSAValue:
        return self.value


@dataclass(frozen=True)
class Computed:
    """A `Producer` that computes an element of the buffer that `op` writes.

    Elements that are always read are computed first, from a list and not by recursion: a chain of ops may be longer than Python's stack.
    """

    op: BufferOp

    def __call__(self, code: KernelCode, indices: Sequence[SSAValue]) -> SSAValue:
        pending = list[tuple[Computed, tuple[SSAValue, ...]]]([(self, tuple(indices))])
        while pending:
            producer, at = pending[-1]
            (buffer,) = producer.op.outputs
            if code.known(buffer, at) is not None:
                pending.pop()
            elif missing := producer.missing(code, at):
                pending += reversed(missing)
            else:
                code.keep(buffer, at, element(code, producer.op, at))
                pending.pop()
        value = code.known(self.op.outputs[0], indices)
        assert value is not None
        return value

    def missing(self, code: KernelCode, indices: tuple[SSAValue, ...]) -> list[tuple[Computed, tuple[SSAValue, ...]]]:
        """The elements that must be computed before this one."""
        found = list[tuple[Computed, tuple[SSAValue, ...]]]()
        for buffer, at in _reads(code, self.op, indices):
            producer = code.producers.get(buffer)
            if isinstance(producer, Computed) and code.known(buffer, at) is None:
                found.append((producer, at))
        return found


def _reads(code: KernelCode, op: BufferOp, indices: tuple[SSAValue, ...]) -> list[Read]:
    """Elements that an element of `op` always reads, if their indices depend on no other element."""
    with code.located(op.location):
        e = BufferElement(code, op, indices)
        if is_elementwise(e.hlo) or isinstance(e.hlo, MapOp):
            return [
                (buffer, indices if dims_of(operand) else ())
                for buffer, operand in zip(op.inputs, e.hlo.operands, strict=True)
            ]
        if op.HLO.name in MOVES and len(op.inputs) == 1:
            return [(op.inputs[0], tuple(e.index.value(index) for index in MOVES[op.HLO.name](e)))]
        return []
