"""Turns fusions that read row reductions again into one kernel that reads each row once. On HLO.

    f = f32[512,2048] fusion(x), kind=kCustom              f = f32[512,2048] fusion(x), kind=kInput, calls=c.rows
        backend_config: "kind":"__triton"           ->         c.rows: the same instructions {xla.stitched = {form = [256, ...]}}
        max, exp(x - max), sum, divide                                      instead of three fusions that read x three times

A candidate is a fusion for Triton, or a chain of fusions (`row_groups`), in which the result of a reduction is needed for more elements
again. By price, also a fusion that one of XLA's emitters would compile, and an ENTRY that is one kernel. The rules of stitched fusions of
programs decide whether its ops stay in their rows (`stitched_kernel`). `by` decides whether one kernel is faster, and with how many
threads per row: by rule, from the sizes alone (docs/decisions/26), or by the cost model, which needs the tools (`tuning/`). A candidate
that is not stitched gets a remark with the reason. The chosen way is an attribute of the kernel's computation, which is not split later.
Source: docs/reference/4 3.3; Zheng et al., "AStitch" (ASPLOS 2022).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.device import DEFAULT_DEVICE, device
from xla_emitters.dialects.hlo.computation import CallOp, ComputationOp, FusionOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import dims_of, is_array
from xla_emitters.errors import UsageError
from xla_emitters.graph.control_computations import fusions_run_by, is_one_kernel, run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.fusion_parts import Part, Parting, is_fusible_bitcast, taken_inside
from xla_emitters.graph.names import Names
from xla_emitters.graph.refusals import is_splittable_kind
from xla_emitters.graph.view import STITCHED, FusionView, is_scheduled, view_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.row_groups import RowGroup, erase_fusion, groups_in
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.notes import decide
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from xla_emitters.pipelines.stitched_kernel import RowWay, StitchedFusion

BY = ("rule", "price", "no")
AGAIN = "one kernel; rows do not fit a block, and are read again"


@dataclass(frozen=True)
class StitchRowsPass(KernelPass):
    """The pass of this file, on a module of the `hlo` dialect.

    target  the device that prices are for
    by      "rule", "price", or "no": makes no kernel of rows
    every   whether by rule, too, what one of XLA's emitters would compile is a candidate
    """

    name = "xla-stitch-rows"

    target: str = DEFAULT_DEVICE
    by: str = BY[0]
    every: bool = False

    def apply_to(self, op: ModuleOp) -> None:
        if self.by not in BY:
            raise UsageError(f"{self.name}: no choice by '{self.by}'", help=f"one of: {', '.join(BY)}")
        if self.by == "no":
            return
        entry, every = entry_of(op), self.every or self.by == "price"
        if is_one_kernel(entry):
            if every and reads_rows_again(view := view_of(entry)) and (way := self._way(view, op)) is not None:
                entry.attributes[STITCHED] = way.to_attr()
            return
        self.stitch_chains(op, entry)
        names = Names(op)
        for fusion in fusions_run_by(entry):
            view = view_of(fusion)
            if is_scheduled(view) or not (every or is_splittable_kind(view.other_compiler)):
                continue
            if reads_rows_again(view):
                self._fusion(names, fusion)

    def stitch_chains(self, module: ModuleOp, entry: ComputationOp) -> None:
        """Makes one fusion of each chain of fusions that reads its rows again, if that is cheaper."""
        names = Names(module)
        for computation in run_by(entry):
            for group in groups_in(computation):
                self._group(names, group)

    def _fusion(self, names: Names, fusion: FusionOp) -> None:
        """Replaces a fusion by a stitched one, if it can be computed row by row and that is cheaper."""
        view = view_of(fusion)
        if (why := _why_not(view)) is not None:
            return self.skip(fusion, why)
        before = names.module.clone()
        parting, part, given = Parting(names, fusion, view.computation), Part(view.computation), list[SSAValue]()
        for parameter, operand in zip(view.parameters, view.operands, strict=True):
            # Another pass inlines these, which changes the computation.
            if isinstance(operand.owner, ConstantOp) or is_fusible_bitcast(operand.owner):
                part.taken[parameter.result] = taken_inside(part, operand, given)
        name = f"{view.computation.sym_name.data}.rows"
        made = parting.call(part, name, [part.take(view.computation.root)], given, "")
        callee = view_of(made).computation
        if (way := self._way(view_of(made), before, fusion)) is None:
            Rewriter.erase_op(made)
            Rewriter.erase_op(callee)
            return None
        callee.attributes[STITCHED] = way.to_attr()
        names.replace(fusion, made.result)
        names.erase_uncalled(view.computation)
        return None

    def _group(self, names: Names, group: RowGroup) -> None:
        """Replaces several fusions by one stitched fusion, if that is cheaper."""
        alone, made = group.alone(names.module), group.merged(names)
        view = view_of(made)
        if not reads_rows_again(view) or (way := self._way(view, alone, group.last, "")) is None:
            erase_fusion(names, made)
            return
        view.computation.attributes[STITCHED] = way.to_attr()
        group.replace(names, made)

    def _way(
        self, view: FusionView, module: ModuleOp, fusion: FusionOp | None = None, name: str | None = None
    ) -> RowWay | None:
        """The way in which a fusion is stitched; None if it is not, with a remark that has the reason.

        view    of the future kernel
        module  with the original fusion or fusions
        fusion  None: ENTRY is one kernel itself
        name    of the fusion in the module; "": everything in the module
        """
        op = fusion or view.computation
        if fusion is not None and name is None:
            name = fusion.instruction_name.data
        # Imported here, so that compilations without candidates load neither the loops of programs nor the cost model.
        from xla_emitters.pipelines.stitched_kernel import rule_of, stitched

        found = stitched(view)
        if isinstance(found, str):
            self.skip(op, f"its rows are not read once: {found}")
            return None
        if self.by == "price":
            return self._cheapest(op, view, found, module, name)
        if isinstance(way := rule_of(found, device(self.target).cores), str):
            self.skip(op, f"its rows are not read once: {way}")
            return None
        how = "rows are read once, by one kernel" if way.keeps_rows else AGAIN
        self.remark(op, f"%{view.name}: {how}: {way}")
        return way

    def _cheapest(
        self, op: Operation, view: FusionView, found: StitchedFusion, module: ModuleOp, name: str | None
    ) -> RowWay | None:
        """The cheapest way; None if XLA's plan is expected to be as fast."""
        from xla_emitters.pipelines.tuned import cheapest_rows

        choice = cheapest_rows(
            view, found, module, CompileOptions(target=self.target, fusion=name or None, record="none")
        )
        decide("tune", f"%{view.name}: {choice}", chosen=str(choice.way or ""), candidates=choice.figures)
        if choice.way is None:
            self.skip(op, f"its rows are not read once: XLA's plan is expected to be as fast ({choice})")
            return None
        once = "rows are read once, by one kernel"
        if not choice.way.keeps_rows:
            once = AGAIN
        self.remark(op, f"%{view.name}: {once}; {choice.summary}")
        return choice.way


def _why_not(view: FusionView) -> str | None:
    """What in a fusion instruction prevents stitching, or None."""
    assert view.call is not None
    if view.other_compiler is not None and not is_splittable_kind(view.other_compiler):
        return f"its rows are not read once: it is for another compiler ({view.other_compiler})"
    if any(isinstance(op, FusionOp | CallOp) for op in view.computation.instructions):
        return "its rows are not read once: it holds other fusions"
    if view.call.output_to_operand_aliasing is not None:
        return "its rows are not read once: a result is in the buffer of an operand"
    return None


def reads_rows_again(view: FusionView) -> bool:
    """Whether the result of a reduction is needed for more elements than it has."""
    reduced = set[SSAValue]()
    for op in view.instructions:
        if isinstance(op, ReduceOp):
            reduced.add(op.result)
            continue
        after = [operand for operand in op.operands if operand in reduced]
        if not after:
            continue
        if any(_elements(op.result) > _elements(operand) for operand in after):
            return True
        reduced.add(op.result)
    return False


def _elements(value: SSAValue) -> int:
    return prod(dims_of(value)) if is_array(value.type) else 0
