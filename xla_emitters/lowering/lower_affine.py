"""Lowers the index maps that xla-simplify-affine left to arithmetic that is also right for negative values.

    %i = xla_gpu.apply_indexing #map(%x)        // (d0) -> (d0 mod 8), domain: d0 in [-3, 7]
->
    %rest = arith.remsi %x, %c8 : index
    %negative = arith.cmpi slt, %rest, %c0 : index
    %up = arith.addi %rest, %c8 : index
    %i = arith.select %negative, %up, %rest : index

floordiv and ceildiv likewise, by a division with a nonnegative dividend; max and min are maxsi and minsi. A sum or product has nsw
if the map's ranges prove it. affine.apply is lowered too, without known ranges. The pass refuses a divisor that is not a positive constant
and a dividend that may overflow the index type. After this pass there is no apply_indexing and no affine.apply.
xDSL's own lower-affine emits a bare remsi for mod, which is wrong below zero; hence this pass.
Source: docs/reference/2 3.1 (lower-affine, rows 34 and 40), docs/reference/3 trap 3; MLIR's documentation of the affine dialect.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.locations import replace_by
from xla_emitters.dialects.mlir import affine
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp
from xla_emitters.lowering.index_arithmetic import (
    ExpressionLowering,
    SharedOps,
    expressions_of,
    map_of_apply_indexing,
    overflowing_part,
)
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_pass import KernelPass

WIDER = "say that index has 64 bits: dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>"


class LowerAffinePass(KernelPass):
    name = "xla-lower-affine"

    def apply_to(self, op: ModuleOp) -> None:
        shared = SharedOps()
        for found in list(walk(op)):
            if isinstance(found, ApplyIndexingOp):
                indexing_map = map_of_apply_indexing(found)
                self._refuse_overflow(found, indexing_map)
                expressions, range_of = indexing_map.results, indexing_map.range_of
            elif isinstance(found, affine.ApplyOp):
                expressions, range_of = expressions_of(found), None
            else:
                continue
            lowering = ExpressionLowering(found, found.operands, range_of, unsigned=False, shared=shared)
            replace_by(found, [lowering.value(expr) for expr in expressions])

    def _refuse_overflow(self, op: ApplyIndexingOp, indexing_map: IndexingMap) -> None:
        width = index_width(op)
        for expr in indexing_map.results:
            if (part := overflowing_part(expr, indexing_map.range_of, width, unsigned=False)) is not None:
                why = f"'{part}', which {op.name} divides or compares, may overflow an index of {width} bits"
                raise self.refuse(op, why, WIDER if width < 64 else "")
