"""Rewrites dots to the form of a library's matrix products. On HLO.

    t = transpose(a), dimensions={1,0}                     dot(a, b), lhs_contracting_dims={0}
    d = dot(t, b), lhs_contracting_dims={1}        ->      the transpose is erased if nothing else uses it

    dot(v[k], m[k,n])                              ->      reshape(dot(reshape(v, [1,k]), m), [n])

A transpose is folded if batch dimensions keep their places and the free dimensions their order, so that the result is the same array.
With `multiple=8` a dot of matrices is padded with zeros to sizes that suit tensor cores, in one branch of a conditional that only large
dots take (at least `least` in each of the three sizes); the result is cut to its true size. Zeros add nothing, and NaN and infinity
are never multiplied by the padding. (A sum that was -0 becomes +0.) Off by default: cuBLASLt pads by itself.
Source: seed document, "DhloBaceGemm"; BladeDISC dot_rewriter.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, i64
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.computation import ComputationOp, GetTupleElementOp, ParameterOp, ReturnOp, TupleOp
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.shape_ops import TransposeOp
from xla_emitters.dialects.hlo.shape_rule import TypeSizing, spelled
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of, element_of, tuple_type
from xla_emitters.dtypes import dtype
from xla_emitters.dynamic.passes.shape_code import Number, ShapeCode
from xla_emitters.errors import UsageError
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscBaseGemmPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    multiple   divides the padded sizes; 0: no padding
    least      sizes below are not padded
    """

    name = "disc-base-gemm"

    multiple: int = 0
    least: int = 512

    def apply_to(self, op: ModuleOp) -> None:
        if self.multiple < 0:
            raise UsageError(f"{self.name}: multiple={self.multiple}", help="0 for no padding")
        names = Names(op)
        for dot in [inner for inner in op.walk() if isinstance(inner, DotOp)]:
            for operand in (0, 1):
                while self._fold_transpose(dot, operand):
                    pass
            if 1 in (len(dims_of(value)) for value in dot.operands):
                _as_matrices(dot, names)
            elif self.multiple:
                self._pad(dot, names)

    def _fold_transpose(self, dot: DotOp, operand: int) -> bool:
        """Folds the operand if it is a transpose; returns whether it did."""
        transpose = dot.operands[operand].owner
        if not isinstance(transpose, TransposeOp):
            return False
        order, pairing = integers(transpose.dimensions), dot.pairing
        batch, contracting = (
            (pairing.lhs_batch, pairing.lhs_contracting)
            if operand == 0
            else (pairing.rhs_batch, pairing.rhs_contracting)
        )
        free = [order[dim] for dim in range(len(order)) if dim not in (*batch, *contracting)]
        if any(order[dim] != dim for dim in batch):
            self.skip(dot, f"the transpose of operand {operand} moves a batch dimension")
            return False
        if free != sorted(free):
            self.skip(dot, f"the transpose of operand {operand} changes the order of dimensions that the result has")
            return False
        side = "lhs" if operand == 0 else "rhs"
        dot.properties[f"{side}_contracting_dims"] = integer_array([order[dim] for dim in contracting])
        dot.operands[operand] = transpose.operands[0]
        if transpose.result.first_use is None:
            Rewriter.erase_op(transpose)
        return True

    def _pad(self, dot: DotOp, names: Names) -> None:
        pairing = dot.pairing
        if any(len(dims_of(value)) != 2 for value in dot.operands) or len(pairing.lhs_contracting) != 1:
            return self.skip(dot, "only products of two matrices are padded")
        sizes = [dim for value in dot.operands for dim in dims_of(value)]
        if not any(size < 0 or size % self.multiple for size in sizes):
            return self.skip(dot, f"its sizes are multiples of {self.multiple}")
        code = ShapeCode(names, dot)
        around = dot.parent_op()
        assert isinstance(around, ComputationOp)
        operands = code.names.add(
            TupleOp(list(dot.operands), tuple_type([value.type for value in dot.operands]), "operands"), dot
        )
        branches = list[SymbolRefAttr]()
        for name, is_padded in (("padded_dot", True), ("plain_dot", False)):
            made = self._branch(dot, operands, name, is_padded=is_padded)
            names.add_computation(made, around)
            branches.append(SymbolRefAttr(made.sym_name.data))
            if is_padded:
                self._fill(made, dot, names)
        chosen = code.add(
            "conditional",
            [self._is_large(code, dot), operands, operands],
            dot.result.type,
            {"true_computation": branches[0], "false_computation": branches[1]},
            dot.instruction_name.data,
        )
        names.replace(dot, chosen)
        return None

    def _is_large(self, code: ShapeCode, dot: DotOp) -> SSAValue:
        """A scalar pred: whether all three sizes are at least `least`."""
        pred = array_type(dtype("pred").ir_type, ())
        found: SSAValue | None = None
        contracted = dot.pairing.rhs_contracting[0]
        for value, axis in ((dot.operands[0], 0), (dot.operands[0], 1), (dot.operands[1], 1 - contracted)):
            enough = code.add(
                "compare",
                [code.scalar(code.size(value, axis)), code.scalar(self.least)],
                pred,
                {"direction": StringAttr("GE"), "type": StringAttr("SIGNED")},
            )
            found = enough if found is None else code.add("and", [found, enough], pred)
        assert found is not None
        return found

    @staticmethod
    def _branch(dot: DotOp, operands: SSAValue, name: str, *, is_padded: bool) -> ComputationOp:
        """A computation of the dot on a tuple of its operands."""
        parameter = ParameterOp(0, operands.type, "operands")
        parts = [
            GetTupleElementOp([parameter.result], value.type, side, {"index": IntegerAttr(index, i64)})
            for index, (side, value) in enumerate(zip(("lhs", "rhs"), dot.operands, strict=True))
        ]
        inner = dot.clone()
        inner.operands = [part.result for part in parts]
        made = ComputationOp(name, Block([parameter, *parts, inner, ReturnOp(inner.result)]))
        for op in (made, parameter, *parts, inner):
            op.location = dot.location
        return made

    def _fill(self, padded: ComputationOp, dot: DotOp, names: Names) -> None:
        """Pads the operands of the dot in `padded`, and cuts its result."""
        (inner,) = (op for op in padded.instructions if isinstance(op, DotOp))
        code = ShapeCode(names, inner)
        lhs, rhs = inner.operands
        pairing = inner.pairing
        results = [code.size(lhs, 1 - pairing.lhs_contracting[0]), code.size(rhs, 1 - pairing.rhs_contracting[0])]
        element = as_array(dot.result.type).element_type
        wide = array_type(element, (UNBOUNDED, UNBOUNDED))
        padded_operands = [self._padded(code, value) for value in (lhs, rhs)]
        value = names.add(
            DotOp(padded_operands, wide, "wide", dict(inner.properties) | {"name": StringAttr("wide")}), inner
        )
        zero, one = code.constant([0, 0]), code.constant([1, 1])
        cut = code.add("real-dynamic-slice", [value, zero, code.shape(results), one], dot.result.type)
        names.replace(inner, cut)

    def _padded(self, code: ShapeCode, value: SSAValue) -> SSAValue:
        """A matrix padded with zeros to the next multiples."""
        edges = list[Number]()
        for axis in (0, 1):
            size = code.size(value, axis)
            if isinstance(size, int):
                edges.append(-size % self.multiple)
            else:
                rest = code.binary("remainder", size, self.multiple)
                edges.append(code.binary("remainder", code.binary("subtract", self.multiple, rest), self.multiple))
        element = as_array(value.type).element_type
        zero = code.constant(0, element_of(value).name, "zero")
        none = code.constant([0, 0])
        ir_type = array_type(element, (UNBOUNDED, UNBOUNDED))
        return code.add("dynamic-pad", [value, zero, none, code.shape(edges), none], ir_type)


def _as_matrices(dot: DotOp, names: Names) -> None:
    """Vectors become matrices of one row or one column; the result is reshaped to drop that dimension."""
    code, pairing = ShapeCode(names, dot), dot.pairing
    sizes = [code.size(value, axis) for value, axis in _free(dot)]
    vectors = [len(dims_of(value)) == 1 for value in dot.operands]
    lhs, rhs = dot.operands
    if vectors[0] and pairing.lhs_contracting:
        lhs = code.reshaped(lhs, [1, code.size(lhs, 0)], "row")
        pairing = replace(pairing, lhs_contracting=(1,))
    if vectors[1] and pairing.rhs_contracting:
        rhs = code.reshaped(rhs, [code.size(rhs, 0), 1], "column")
    shape = spelled(pairing.shape(dot, TypeSizing([lhs, rhs])))
    properties = dict(dot.properties) | {
        "lhs_contracting_dims": integer_array(pairing.lhs_contracting),
        "rhs_contracting_dims": integer_array(pairing.rhs_contracting),
    }
    if [lhs, rhs] == list(dot.operands):
        return
    name = dot.instruction_name.data
    made = DotOp([lhs, rhs], array_type(as_array(dot.result.type).element_type, shape), name, properties)
    made.attributes |= dot.attributes
    names.replace(dot, code.reshaped(names.add(made, dot), sizes, f"{name}.shaped"))


def _free(dot: DotOp) -> list[tuple[SSAValue, int]]:
    """The origin of each size of a dot's result: (operand, axis)."""
    pairing, (lhs, rhs) = dot.pairing, dot.operands
    left = [dim for dim in range(len(dims_of(lhs))) if dim not in (*pairing.lhs_batch, *pairing.lhs_contracting)]
    right = [dim for dim in range(len(dims_of(rhs))) if dim not in (*pairing.rhs_batch, *pairing.rhs_contracting)]
    return [*((lhs, dim) for dim in (*pairing.lhs_batch, *left)), *((rhs, dim) for dim in right)]
