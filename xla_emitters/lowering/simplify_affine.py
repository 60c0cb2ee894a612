"""Lowers index maps to unsigned arithmetic if the known ranges allow it.

    %i = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x)       // (th_x, bl_x) -> (th_x * 4 + bl_x * 512)
->
    %0 = arith.muli %thread_id_x, %c4 overflow<nsw> : index
    %1 = arith.muli %block_id_x, %c512 overflow<nsw> : index
    %i = arith.addi %0, %1 overflow<nsw> : index

mod becomes remui, floordiv divui, ceildiv ceildivui, max and min maxui and minui: one op each, and right only for nonnegative numbers.
If the ranges do not prove that, the op is left for xla-lower-affine, whose code is longer and always right; `--remarks` tells.
affine.apply is lowered likewise if the ranges of all its operands are known. The map is simplified first, with the operands' ranges
where they are tighter than the map's.
Source: docs/reference/2 3.3 "xla-simplify-affine"; XLA simplify_affine.cc.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.algebra.interval import Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.locations import replace_by
from xla_emitters.dialects.mlir import affine
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.ranges import range_of_value
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp
from xla_emitters.lowering.index_arithmetic import (
    ExpressionLowering,
    SharedOps,
    expressions_of,
    is_unsigned,
    map_of_apply_indexing,
    overflowing_part,
)
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_pass import KernelPass


class SimplifyAffinePass(KernelPass):
    name = "xla-simplify-affine"

    def apply_to(self, op: ModuleOp) -> None:
        shared = SharedOps()
        for found in list(walk(op)):
            if isinstance(found, ApplyIndexingOp):
                self._lower(found, map_of_apply_indexing(found), shared)
            elif isinstance(found, affine.ApplyOp):
                self._lower(found, _map_of_affine_apply(found), shared)

    def _lower(self, op: Operation, indexing_map: IndexingMap | None, shared: SharedOps) -> None:
        if indexing_map is None:
            return self.skip(op, "the range of an operand is not known")
        if indexing_map.is_known_empty:
            return self.skip(op, "its domain is empty")
        indexing_map = indexing_map.simplify()
        if not all(is_unsigned(expr, indexing_map.range_of) for expr in indexing_map.results):
            return self.skip(op, "a dividend, or an operand of max or min, may be negative")
        width = index_width(op)
        if any(overflowing_part(expr, indexing_map.range_of, width, unsigned=True) for expr in indexing_map.results):
            return self.skip(op, "a dividend, or an operand of max or min, may not fit an index")
        lowering = ExpressionLowering(op, op.operands, indexing_map.range_of, unsigned=True, shared=shared)
        replace_by(op, [lowering.value(expr) for expr in indexing_map.results])


def _map_of_affine_apply(op: affine.ApplyOp) -> IndexingMap | None:
    """The op's map over its operands with their ranges; None if a range is unknown."""
    ranges = [range_of_value(operand) for operand in op.operands]
    known = [Variable(found) for found in ranges if found is not None]
    if len(known) != len(ranges):
        return None
    return IndexingMap(expressions_of(op), tuple(known), (), (), ())
