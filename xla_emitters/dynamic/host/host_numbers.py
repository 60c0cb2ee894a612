"""Small arrays of integers in the host's memory as numbers: their elements are extents, and ops on them compute numbers.

    %s = lmhlo.concatenate %i, %c0 -> %s             (n3, 0)
    %t = lmhlo.clamp %low, %s, %high -> %t           n4 = maximum n3, 0;  n5 = minimum n4, n1;  (n5, 0)

Programs compute sizes, starts of slices and counters of loops this way. As arrays each of these ops is a call of NumPy, which takes longer
than the few numbers are worth.
Source: docs/reference/4 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.hlo.base import no_call, opcode_of
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.elementwise import CompareOp
from xla_emitters.dialects.lmhlo import BufferOp, space_of, tensor_of
from xla_emitters.dialects.mlir import gpu, memref
from xla_emitters.dtypes import dtype_of
from xla_emitters.program.integer_forms import PRED, Compute, computed
from xla_emitters.program.steps import INTEGERS, Extent
from xla_emitters.rewrite.captures import loops_of

MOST_ELEMENTS = 16
"""Of an array that is held as numbers: a shape, or the starts of a slice."""


def is_small(ir_type: Attribute) -> bool:
    """Whether a buffer of this type holds few integers, in the host's memory."""
    if not issubclass(type(ir_type), MemRefType) or space_of(ir_type) != "cpu":
        return False
    element, shape = tensor_of(ir_type).element_type, tensor_of(ir_type).get_shape()
    if not issubclass(type(element), IntegerType | IndexType):
        return False
    return min(shape, default=0) >= 0 and prod(shape) <= MOST_ELEMENTS and dtype_of(element).name in (PRED, *INTEGERS)


def is_local(buffer: SSAValue) -> bool:
    """Whether a buffer, and each other name of it, is written in its own block alone, and by no kernel."""
    home = _home(buffer.owner) if isinstance(buffer.owner, Operation) else buffer.owner
    return all(_is_written_here(name, home) for name in _names(buffer))


def _names(buffer: SSAValue) -> list[SSAValue]:
    found = [buffer]
    for name in found:
        found += [
            use.operation.results[0]
            for use in name.uses
            if isinstance(use.operation, lmhlo.IncRefOp | memref.CollapseShapeOp)
        ]
    return found


def _is_written_here(name: SSAValue, home: Any) -> bool:
    for use in name.uses:
        match user := use.operation:
            case gpu.LaunchFuncOp():
                return False
            case BufferOp() if name in user.outputs and _home(user) is not home:
                return False
            case memref.StoreOp() if user.memref is name and _home(user) is not home:
                return False
            case _ if _in_loops(user):
                return False
            case _:
                pass
    return True


def _home(op: Operation) -> Any:
    """The block of an op; of one in a fusion, the block of the fusion."""
    block: Any = op.parent
    while isinstance(around := block.parent_op(), lmhlo.FusionOp):
        block = around.parent
    return block


def _in_loops(op: Operation) -> bool:
    """Whether an op is inside of the loops of a fusion."""
    around: Any = op
    while around is not None:
        if isinstance(around, lmhlo.FusionOp):
            return bool(loops_of(around))
        around = around.parent_op()
    return False


def results_of(op: BufferOp, inputs: Sequence[Sequence[Extent]], compute: Compute) -> list[Extent] | None:
    """The elements of the op's result, whose type `is_small`, from those of its inputs; None for an op without a row."""
    if len(op.outputs) != 1:
        return None
    made, opcode = op.as_hlo(), opcode_of(op.HLO)
    result = dtype_of(tensor_of(op.outputs[0].type).element_type).name
    if opcode == "constant":
        value = op.properties.get("value")
        return [int(element) for element in undense(value).reshape(-1)] if is_dense(value) else None
    if (moved := elements_moved(op)) is not None:
        every = [extent for part in inputs for extent in part]
        return [every[number] for number in moved]
    types = [dtype_of(tensor_of(value.type).element_type).name for value in op.inputs]
    count = prod(tensor_of(op.outputs[0].type).get_shape())
    if any(len(part) not in (1, count) for part in inputs):
        return None
    rows = [tuple(part[0 if len(part) == 1 else i] for part in inputs) for i in range(count)]
    if isinstance(made, CompareOp):
        name = made.direction.data.lower()
        return [compute(name, row) for row in rows]
    found = [computed(opcode, types, result, row, compute) for row in rows]
    return [value for value in found if value is not None] if None not in found else None


def elements_moved(op: BufferOp) -> list[int] | None:
    """The elements of the result, row major, by their numbers among those of all operands; None for an op that computes."""
    if opcode_of(op.HLO) not in MOVING:
        return None
    arrays, first = list[Any](), 0
    for value in op.inputs:
        shape = tensor_of(value.type).get_shape()
        arrays.append(np.arange(first, first + prod(shape), dtype=np.int64).reshape(shape))
        first += prod(shape)
    return [int(number) for number in np.asarray(op.as_hlo().evaluate(arrays, no_call)).reshape(-1)]


MOVING = frozenset(("broadcast", "concatenate", "copy", "reshape", "reverse", "slice", "transpose"))
