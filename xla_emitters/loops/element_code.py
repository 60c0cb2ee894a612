"""The code of one element of a buffer op: what it computes from elements of the buffers that it reads.

    element(code, lmhlo.add %x, %y -> %z, [%i, %j])
        %0 = memref.load %x[%i, %j]
        %1 = memref.load %y[%i, %j]
        %2 = arith.addf %0, %1 : f32

An elementwise op emits itself (`emit_element` of its class in `hlo`); an op that moves elements has a rule in `index_rules`, because its
indices depend on sizes that are known only at run time. Operands are read by `KernelCode.load`, which loads or computes them. Operands
whose indices are known beforehand are computed first, from a list and not by recursion: a chain may be longer than Python's stack.
Source: docs/reference/4 1.3 and 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import Emit, EmitStep, HloOp, OperationT
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.elementwise import BitcastConvertOp, ElementwiseOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, leaf_types
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.indexing import IndexingMap
from xla_emitters.loops.index_rules import MOVES, VALUES, Reading
from xla_emitters.loops.kernel_code import KernelCode
from xla_emitters.rewrite.kernel_pass import refusal

Read: TypeAlias = tuple[SSAValue, tuple[SSAValue, ...]]
"""A buffer, and the indices of one of its elements."""


def has_element_code(op: BufferOp) -> bool:
    """Whether an op may be part of a loop: one element can be computed on its own."""
    return len(op.outputs) == 1 and (_is_by_class(op.as_hlo()) or op.HLO.name in MOVES or op.HLO.name in VALUES)
