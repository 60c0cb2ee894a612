"""Elementwise ops that broadcast their operands implicitly get operands of one shape. On HLO.

    add(a[?,?], b[?]) {broadcast_dimensions = [1]}      s = sizes of the result; a' = dynamic_broadcast_in_dim(a, s), {0,1}
                                                  ->    b' = dynamic_broadcast_in_dim(b, s), {1}; add(a', b') {disc.no_implicit_broadcast}

An op has the attribute `broadcast_dimensions` if its frontend leaves the broadcast to the compiler: it maps the dimensions of the operand
of lower rank to the result's, none for a scalar. A size 1 is repeated (a and b may each have some). HLO's and StableHLO's own ops have
operands of one shape; they have no such attribute and are not changed.

A size of the result is `select(l == 1, r, l)` of the two operands' sizes: not their maximum, because 0 and 1 give 0. Where the sizes are
known to be equal, or an operand has the result's shape already, nothing is inserted for it. If it is unknown whether a size is 1, both
operands are broadcast. Known sizes that differ, neither of them 1, are an error that names both shapes. An op with
`disc.no_implicit_broadcast` is left untouched.
Source: seed document, "DhloBroadcastSimplifierPass".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.implicit_broadcast import BROADCAST, DONE, broadcast_axes
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of
from xla_emitters.dtypes import dtype
from xla_emitters.dynamic.passes.shape_code import SCALAR, Number, ShapeCode
from xla_emitters.dynamic.sizes import sizes_of
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscBroadcastSimplifierPass(KernelPass):
    name = "disc-broadcast-simplifier"

    def apply_to(self, op: ModuleOp) -> None:
        names, candidates = Names(op), list(op.walk())
        if not any(BROADCAST in inner.attributes for inner in candidates):
            return
        has_entry = any(isinstance(inner, ComputationOp) and inner.is_entry for inner in op.ops)
        sizes = sizes_of(op) if has_entry else None
        for inner in candidates:
            if not isinstance(inner, ElementwiseOp) or BROADCAST not in inner.attributes:
                continue
            if DONE in inner.attributes:
                self.skip(inner, "its operands have one shape: it was here before")
                continue
            first = inner.operands[0]
            if sizes is not None and all(sizes.same(first, operand) for operand in inner.operands):
                inner.attributes[DONE] = UnitAttr()
                continue
            _broadcast(inner, names)


def _broadcast(op: HloOp, names: Names) -> None:
    code = ShapeCode(names, op)
    rank = len(dims_of(op.result))
    axes = [broadcast_axes(op, number) for number in range(len(op.operands))]
    sizes = [_size(code, op, axes, dim) for dim in range(rank)]
    dims = [size if isinstance(size, int) else UNBOUNDED for size in sizes]
    shape: SSAValue | None = None
    for number, operand in enumerate(op.operands):
        if axes[number] == tuple(range(rank)) and all(
            size >= 0 and size == wanted for size, wanted in zip(dims_of(operand), dims, strict=True)
        ):
            continue
        if shape is None:
            shape = code.shape(sizes)
        ir_type = array_type(as_array(operand.type).element_type, dims)
        properties = {"dimensions": integer_array(axes[number])}
        op.operands[number] = code.add("dynamic-broadcast-in-dim", [operand, shape], ir_type, properties)
    op.attributes[DONE] = UnitAttr()


def _size(code: ShapeCode, op: HloOp, axes: Sequence[Sequence[int]], dim: int) -> Number:
    """The size of the result in one dimension: the operand's size that is not 1."""
    found: Number = 1
    for operand, places in zip(op.operands, axes, strict=True):
        if dim not in places:
            continue
        axis = places.index(dim)
        known = dims_of(operand)[axis]
        if known == 1 or (isinstance(found, int) and found not in (1, UNBOUNDED)):
            continue
        size = code.size(operand, axis)
        if isinstance(size, int) or (isinstance(found, int) and found == 1):
            found = size
            continue
        assert not isinstance(found, int)
        pred = array_type(dtype("pred").ir_type, ())
        comparison = {"direction": StringAttr("EQ"), "type": StringAttr("SIGNED")}
        is_one = code.add("compare", [found, code.constant(1)], pred, comparison)
        found = code.add("select", [is_one, size, found], SCALAR)
    return found
