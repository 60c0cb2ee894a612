"""CSE of shape arithmetic: equal lists of sizes become one value, known ones constants, unused ones are erased. On HLO.

    r = reshape(b), c = concatenate(r, four)                    r = reshape(b), c = concatenate(r, four)
    q = reshape(b), d = concatenate(q, four)            ->      y = dynamic_broadcast_in_dim(x, c)
    y = dynamic_broadcast_in_dim(x, d)

JAX computes the sizes again for every op: 122 instructions in one layer of a transformer. Two small integer arrays of one type are one
value if their elements are equal as sizes (`sizes`), however they are computed: s // 2 * 2 is s if s is known to be even. This holds
if the program's guards hold. Operands of `shape_assertion`s are not changed, so that the program still checks the guards' conditions.
A value is replaced by an earlier one of the same computation. Values of data are not compared.
Source: docs/reference/4 1.1 (BladeDISC's shape optimization, run after nearly every pass of its graph), 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, GetTupleElementOp, ParameterOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.dtypes import Kind
from xla_emitters.dynamic.sizes import Sizes, sizes_of
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

ERASED = frozenset(
    ("constant", "iota", "reshape", "concatenate", "slice", "broadcast", "dynamic-broadcast-in-dim", "get-dimension-size", "tuple",
     "get-tuple-element")
)  # fmt: skip

Key: TypeAlias = tuple[Attribute, tuple[Size, ...]]


class DiscShapeOptimizationPass(KernelPass):
    name = "disc-shape-optimization"

    def apply_to(self, op: ModuleOp) -> None:
        computations = [computation for computation in op.ops if isinstance(computation, ComputationOp)]
        if not any(computation.is_entry for computation in computations):
            raise self.refuse(op, "no computation is the entry: nothing says what sizes are")
        names, sizes = Names(op), sizes_of(op)
        for computation in computations:
            _replace_equal(computation, names, sizes)
            for inner in reversed(list(computation.instructions)):
                if inner.result.first_use is None and (is_elementwise(inner) or inner.opcode in ERASED):
                    Rewriter.erase_op(inner)


def _replace_equal(computation: ComputationOp, names: Names, sizes: Sizes) -> None:
    asserted = set(_asserted(computation))
    first = dict[Key, SSAValue]()
    for op in list(computation.instructions):
        key = _key(op, sizes)
        if key is None:
            continue
        if op in asserted:
            first.setdefault(key, op.result)
        elif key in first and isinstance(op, ParameterOp):
            op.result.replace_all_uses_with(first[key])
        elif key in first:
            names.replace(op, first[key])
        elif not isinstance(op, ConstantOp | ParameterOp | GetTupleElementOp) and all(
            size.value is not None for size in key[1]
        ):
            element = element_of(op.result)
            array = np.array([size.value for size in key[1]], element.numpy).reshape(dims_of(op.result))
            constant = ConstantOp.from_array(array, element, op.instruction_name.data)
            first[key] = names.add(constant, op)
            names.replace(op, first[key])
        else:
            first[key] = op.result


def _key(op: HloOp, sizes: Sizes) -> Key | None:
    """Type and elements of a small integer array whose elements are known as sizes; None for others."""
    if not is_array(op.result.type) or element_of(op.result).kind not in (Kind.SIGNED, Kind.UNSIGNED):
        return None
    numbers = sizes.numbers(op.result)
    if numbers is None:
        return None
    known = tuple(number for number in numbers if number is not None)
    return (op.result.type, known) if len(known) == len(numbers) else None


def _asserted(computation: ComputationOp) -> Iterator[HloOp]:
    """The ops that assertions depend on."""
    pending: list[HloOp] = [op for op in computation.instructions if op.opcode == "shape-assertion"]
    seen = set(pending)
    while pending:
        for operand in pending.pop().operands:
            owner = operand.owner
            if isinstance(owner, HloOp) and owner not in seen:
                seen.add(owner)
                pending.append(owner)
                yield owner
