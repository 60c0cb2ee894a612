"""Splits a fusion whose results need several kernels, one fusion for each group of results. On HLO, before kernels are planned.

    t = f32[40] reduce(p, z)                      fusion.0:  t = f32[40] reduce(p, z)
    m = f32[40] multiply(t, k)                               n = f32[40,300] negate(p)
    n = f32[40,300] negate(p)               ->    fusion.1:  t = f32[40] reduce(p, z)
    ROOT all = tuple(t, m, n)                                m = f32[40] multiply(t, k)

One kernel computes results of equal size, optionally followed by some of one element; reductions of one shape with results of the size
of their input; transposes of one kind; or updates in place. XLA fuses nothing else; given such a fusion, it fails or omits
indices. Instructions that several parts need are computed in each of them.
Source: docs/reference/2 1.3; the real XLA on such fusions.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp
from xla_emitters.dialects.hlo.types import elements_of
from xla_emitters.errors import UsageError
from xla_emitters.graph.control_computations import fusions_of, fusions_run_by, is_one_kernel
from xla_emitters.graph.entry import computation_of, entry_of
from xla_emitters.graph.fusion_parts import Part, Parting, wrap_entry
from xla_emitters.graph.heroes import find_non_trivial_hero, find_transposes
from xla_emitters.graph.in_place_updates import find_in_place_updates
from xla_emitters.graph.kinds import kind_of
from xla_emitters.graph.names import Names
from xla_emitters.graph.reduction_kinds import Reduction, find_reductions, shared_reduction
from xla_emitters.graph.refusals import supported_view
from xla_emitters.graph.view import FusionView, is_scheduled
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class SplitResultsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    hero_rules  as in `CompileOptions`: by the seed document's rules one kernel writes slices of any sizes, and nothing is split
    """

    name = "xla-split-results"

    hero_rules: str = "current"

    def apply_to(self, op: ModuleOp) -> None:
        if self.hero_rules not in ("current", "seed"):
            raise UsageError(f"{self.name}: no rules '{self.hero_rules}'", help="current or seed")
        if self.hero_rules == "seed":
            return
        entry = entry_of(op)
        if is_one_kernel(entry):
            if parts := parts_of(entry):
                (fusion,) = fusions_of(wrap_entry(entry))
                _split(Parting(Names(op), fusion, entry), parts)
            return
        names = Names(op)
        for fusion in fusions_run_by(entry):
            if parts := parts_of(fusion):
                _split(Parting(names, fusion, computation_of(fusion)), parts)


def parts_of(source: FusionOp | ComputationOp) -> tuple[tuple[HloOp, ...], ...]:
    """The roots in groups, one per kernel; () if one kernel computes all."""
    if (view := supported_view(source)) is None or is_scheduled(view):
        return ()
    roots = view.roots
    if len({elements_of(root) for root in roots}) == 1 or _share_a_kernel(view):
        return ()
    shapes = [shared_reduction(find_non_trivial_hero(view, root)) for root in roots]
    read = {math.prod(shape.dims): shape for shape in reversed(shapes) if shape is not None}
    groups = dict[Reduction | int, list[HloOp]]()
    for root, shape in zip(roots, shapes, strict=True):
        count = elements_of(root)
        groups.setdefault(shape or read.get(count) or count, []).append(root)
    first, *_ = groups
    if 1 in groups and first != 1 and all(kind_of(view, root) == "loop" for root in groups[first]):
        groups[first] += groups.pop(1)
    return tuple(map(tuple, groups.values())) if len(groups) > 1 else ()


def _share_a_kernel(view: FusionView) -> bool:
    """Whether an emitter supports these roots of different sizes."""
    found = (find_reductions(view, are_split=True), find_transposes(view), find_in_place_updates(view))
    return any(not isinstance(each, str) for each in found)


def _split(parting: Parting, parts: tuple[tuple[HloOp, ...], ...]) -> None:
    name, found = parting.callee.sym_name.data, list[tuple[HloOp, SSAValue]]()
    for number, roots in enumerate(parts):
        part = Part(parting.callee)
        results = [part.take(root.result) for root in roots]
        call = parting.call(part, f"{name}.{number}", results, [], f".{number}")
        values = parting.elements(call.result) if len(roots) > 1 else [call.result]
        found += zip(roots, values, strict=True)
    parting.replace(found)
