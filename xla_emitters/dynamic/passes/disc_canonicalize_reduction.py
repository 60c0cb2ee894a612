"""Reductions become reductions of the rows or the columns of a matrix. On HLO.

    a) reduce(x[a,b,c], dims {0})         x' = reshape(x, [a, b*c]);  r = reduce(x', dims {0});  reshape(r, [b, c])
    b) reduce(x[a,b,c], dims {2})         x' = reshape(x, [a*b, c]);  r = reduce(x', dims {1});  reshape(r, [a, b])
    c) reduce(x[a,b,c], dims {0,1,2})     x' = reshape(x, [a*b*c, 1]); r = reduce(x', dims {0}); reshape(r, [])
    d) reduce(x[a,b,c], dims {1})         t = transpose(x, {0,2,1}), and then as b
    e) reduce(x[a,1], dims {1}) by add    add(broadcast(init), reshape(x, [a])): there is one element to combine, as in JAX's gradients
    f) reduce(x[a,b], dims {}) by add     add(broadcast(init), x); by a computation that is not a single op as a, of one row

Sizes that are not known are read and multiplied in 64 bits. A matrix whose rows or columns are reduced already and an array of rank 1
are left. All arrays of a reduction of several (argmax) are reshaped alike.

Elements are combined in the same order as before, and the initial value once for each result, so the result has the same bits. This
is why case d is a transpose and not two reductions one after the other, as in BladeDISC: there the initial value counts twice.
The option `transpose=false` leaves case d, for a target with kernels of its own for it.
Source: seed document, "DhloCanonicalizeReductionPass"; docs/decisions/14-where-the-passes-of-programs-differ.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.called import FOLDS
from xla_emitters.dialects.hlo.computation import GetTupleElementOp, ParameterOp, TupleOp, find_computation
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of, leaf_types, tuple_type
from xla_emitters.dynamic.passes.shape_code import Number, ShapeCode
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscCanonicalizeReductionPass(KernelPass):
    name = "disc-canonicalize-reduction"

    transpose: bool = True

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for reduction in list(op.walk()):
            if isinstance(reduction, ReduceOp):
                self._canonicalize(reduction, names)

    def _canonicalize(self, reduction: ReduceOp, names: Names) -> None:
        reduced = sorted(integers(reduction.dimensions))
        rank = len(dims_of(reduction.arrays[0]))
        kept = [dim for dim in range(rank) if dim not in reduced]
        if all(dims_of(reduction.arrays[0])[dim] == 1 for dim in reduced) and self._combine(reduction, names):
            return None
        if (reduced and rank == 1) or (rank == 2 and len(reduced) == 1):
            return self.skip(reduction, "it is a reduction of rows or columns already")
        code = ShapeCode(names, reduction)
        is_leading, is_trailing = reduced == list(range(len(reduced))), kept == list(range(len(kept)))
        arrays = list(reduction.arrays)
        if not is_leading and not is_trailing:
            if not self.transpose:
                return self.skip(reduction, f"dimensions {reduced} are neither the first nor the last ones")
            arrays = [code.transposed(array, [*kept, *reduced]) for array in arrays]
        sizes = [code.size(reduction.arrays[0], dim) for dim in range(rank)]
        rows, columns = code.product([sizes[dim] for dim in kept]), code.product([sizes[dim] for dim in reduced])
        shape: list[Number] = [columns, rows] if is_leading else [rows, columns]
        flat = [code.reshaped(array, shape, f"{reduction.instruction_name.data}.flat") for array in arrays]
        return self._replace(reduction, code, flat, 0 if is_leading else 1, [sizes[dim] for dim in kept], rows)

    @staticmethod
    def _combine(reduction: ReduceOp, names: Names) -> bool:
        """Case e: replaces the reduction by one op on the initial value and the array; returns whether it did."""
        step = find_computation(reduction, reduction.to_apply).root.owner
        if not isinstance(step, HloOp) or step.opcode not in FOLDS or len(reduction.arrays) != 1:
            return False
        numbers = [value.owner.number.value.data for value in step.operands if isinstance(value.owner, ParameterOp)]
        if sorted(numbers) != [0, 1]:
            return False
        code, array = ShapeCode(names, reduction), reduction.arrays[0]
        kept = [dim for dim in range(len(dims_of(array))) if dim not in integers(reduction.dimensions)]
        sizes = [code.size(array, dim) for dim in kept]
        name = reduction.instruction_name.data
        operands = [
            code.spread(reduction.inits[0], sizes, f"{name}.init"),
            code.reshaped(array, sizes, f"{name}.flat"),
        ]
        made = code.add(step.opcode, [operands[number] for number in numbers], operands[1].type, name=f"{name}.one")
        code.names.replace(reduction, made)
        return True

    @staticmethod
    def _replace(
        reduction: ReduceOp, code: ShapeCode, flat: list[SSAValue], dim: int, sizes: list[Number], rows: Number
    ) -> None:
        """Reduces the matrices, and gives the results their shape."""
        name, length = reduction.instruction_name.data, rows if isinstance(rows, int) else UNBOUNDED
        types = [array_type(as_array(part).element_type, (length,)) for part in leaf_types(reduction.result.type)]
        made = ReduceOp(
            [*flat, *reduction.inits],
            types[0] if len(types) == 1 else tuple_type(types),
            name,
            {"dimensions": integer_array([dim]), "to_apply": reduction.to_apply},
        )
        made.attributes |= reduction.attributes
        value = code.names.add(made, reduction)
        if len(types) == 1:
            code.names.replace(reduction, code.reshaped(value, sizes, f"{name}.shaped"))
            return
        parts = list[SSAValue]()
        for index, part in enumerate(types):
            element = GetTupleElementOp([value], part, f"{name}.{index}", {"index": IntegerAttr(index, i64)})
            parts.append(code.reshaped(code.names.add(element, reduction), sizes, f"{name}.shaped"))
        whole = TupleOp(parts, tuple_type([part.type for part in parts]), f"{name}.tuple")
        code.names.replace(reduction, code.names.add(whole, reduction))
