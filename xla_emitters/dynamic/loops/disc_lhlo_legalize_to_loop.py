"""Lowers a fusion's roots to loops; the kinds of the roots determine the schedule.

    lmhlo.fusion {                                         lmhlo.fusion {
      lmhlo.abs %x -> %t                                     lmhlo.abs %x -> %t
      lmhlo.add %t, %y -> %z                        ->       scf.parallel (%i) = (0) to (%n) step (1) {
    }                                                          %0 = memref.load %t[%i]
                                                               %1 = memref.load %y[%i]
                                                               %2 = arith.addf %0, %1
                                                               memref.store %2, %z[%i]
                                                             } {disc.schedule = "loop"}
                                                           }

    row reductions   column reductions   others   schedule
    some             any                 any      "row1", a block per row, "row2", a warp, or "row3", eight lanes, by `disc.row_schedule`
    none             some                any      "column"
    none             none                some     "loop"; "tiles" where `disc.tiles` asks for it
    kind "kStitch", whatever its roots: "stitch"; "kMiddleReduction", for a CPU: "middle"; "kSingleOp": the op's own

For a CPU (`target=cpu`) a block is one thread: a row of a row reduction ("row") or of a stitched fusion, a strip of columns. The
schedules of single ops are in `single_op_schedules`.

Loops run one after the other, before the fusion's terminator. A root with readers in the fusion stays until
these have been replaced by code (`disc-input-inline-fusion`); all other roots are erased. Fusions on the host are not changed.
Source: seed document, "LhloLegalizeToLoop"; docs/reference/4 3.4 and 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.placement import is_on_host
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import reads
from xla_emitters.dynamic.buffers.fusion_rules import MIDDLE, ROW_SCHEDULE, SINGLE, STITCH
from xla_emitters.dynamic.buffers.tiled_transposes import TILES
from xla_emitters.dynamic.loops.column_reduction_schedule import ATOMICS, emit_column_reduction_schedule
from xla_emitters.dynamic.loops.combine import reduces_rows
from xla_emitters.dynamic.loops.element_code import has_element_code
from xla_emitters.dynamic.loops.loop_schedule import emit_loop_schedule
from xla_emitters.dynamic.loops.roots import roots_of
from xla_emitters.dynamic.loops.row_loop import ROW_SCHEDULES
from xla_emitters.dynamic.loops.schedule import THREADS_HINT, FusionLoops, Schedule
from xla_emitters.dynamic.loops.single_op_schedules import SINGLE_OP_SCHEDULES, schedule_in
from xla_emitters.errors import UsageError
from xla_emitters.rewrite.kernel_pass import KernelPass

OF_KINDS = {STITCH: "stitch", MIDDLE: "middle", SINGLE: SINGLE}
"""Kind of a fusion -> its schedule, whatever its roots."""
HINTED = ("loop", "row1", "row2", "row3")
"""The schedules that ask for the threads that `disc.thread_per_block_hint` says."""

SCHEDULES: Mapping[str, Schedule] = {
    "column": emit_column_reduction_schedule,
    "loop": emit_loop_schedule,
    "middle": schedule_in("middle_reduction", "emit_middle_reduction_schedule"),
    **ROW_SCHEDULES,
    "stitch": schedule_in("stitch", "emit_stitch_schedule"),
    "tiles": schedule_in("tile", "emit_tile_schedule"),
}


@dataclass(frozen=True)
class DiscLhloLegalizeToLoopPass(KernelPass):
    """See the file's head.

    atomics  reduce columns by atomic updates where there is an instruction: no fixed order
    target   "gpu" or "cpu"
    thread_per_block   threads of a block of the schedules "loop", "row1", "row2" and "row3", for fusions without
             `disc.thread_per_block_hint`, which says the same; 0: 256. The other schedules have threads of their own
    """

    name = "disc-lhlo-legalize-to-loop"

    atomics: bool = False
    target: str = "gpu"
    thread_per_block: int = 0

    def apply_to(self, op: ModuleOp) -> None:
        if self.target not in ("gpu", "cpu"):
            raise UsageError(f"{self.name}: no target '{self.target}'", help="gpu or cpu")
        for fusion in [inner for inner in op.walk() if isinstance(inner, FusionOp)]:
            roots = roots_of(fusion)
            if is_on_host(fusion):
                self.skip(fusion, "it runs on the host")
            elif not roots:
                self.skip(fusion, "nothing uses its results")
            else:
                self._legalize(fusion, roots)

    def _legalize(self, fusion: FusionOp, roots: Sequence[BufferOp]) -> None:
        is_cpu = self.target == "cpu"
        name = schedule_of(fusion, roots, is_cpu=is_cpu)
        emit = SCHEDULES.get(name)
        if name == SINGLE:
            emit = SINGLE_OP_SCHEDULES.get(roots[0].HLO.name)
        if emit is None:
            raise self.refuse(fusion, f"no schedule '{name}'", f"schedules: {', '.join(SCHEDULES)}")
        if self.atomics:
            fusion.attributes[ATOMICS] = UnitAttr()
        if self.thread_per_block:
            fusion.attributes.setdefault(THREADS_HINT, IntegerAttr(self.thread_per_block, i64))
        if THREADS_HINT in fusion.attributes and name not in HINTED and not is_cpu:
            self.remark(fusion, f"the schedule '{name}' has threads of its own; it ignores {THREADS_HINT}")
        emit(FusionLoops(fusion, roots, is_cpu=is_cpu))
        for root in reversed(roots):
            if not _is_needed(root, fusion):
                Rewriter.erase_op(root)


def schedule_of(fusion: FusionOp, roots: Sequence[BufferOp], *, is_cpu: bool = False) -> str:
    """The name of a fusion's schedule: see the file's head."""
    if (name := OF_KINDS.get(fusion.kind_text)) is not None:
        return name
    if TILES in fusion.attributes and not is_cpu:
        return "tiles"
    if any(map(reduces_rows, roots)):
        if is_cpu:
            return "row"
        hint = fusion.attributes.get(ROW_SCHEDULE)
        return f"row{hint.value.data}" if isinstance(hint, IntegerAttr) else "row1"
    # "column" refuses reductions that are not of matrices.
    return "column" if any(root.HLO is ReduceOp for root in roots) else "loop"


def _is_needed(root: BufferOp, fusion: FusionOp) -> bool:
    """Whether a loop or a remaining op reads the root's result. A reduction's own loops may read what they wrote, a scatter's update it."""
    readers = [
        use.operation
        for buffer in root.outputs
        for use in buffer.uses
        if fusion.is_ancestor(use.operation) and reads(use)
    ]
    return any(
        has_element_code(root) if isinstance(reader, memref.LoadOp | memref.AtomicRMWOp) else reader is not root
        for reader in readers
    )
