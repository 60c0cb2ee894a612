"""The kind of a root: the emitter that takes a fusion with this root alone.

    reduction, transpose         its hero is a reduce, or a transpose, that benefits from shared work or shared memory
    scatter                      it is a scatter whose updates have code
    concatenate                  its hero is a concatenate of a few operands
    dynamic_update_slice         it is an update that can go in place, if its array's buffer is given
    loop                         everything else, copies too

Emitters use the same functions in `applies`, so a root that an HLO pass separates for an emitter is one that the emitter takes.
"""

from __future__ import annotations

from collections.abc import Callable

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.fusions.heroes import find_non_trivial_hero
from xla_emitters.fusions.in_place_updates import why_no_update
from xla_emitters.fusions.reductions import why_not_hero
from xla_emitters.fusions.scatters import scatter_at
from xla_emitters.fusions.transposes import describe_transpose
from xla_emitters.fusions.view import FusionView

CONCATENATED_MAX = 4
"""The most operands of a concatenate for which each thread runs a loop per operand."""


def kind_of(view: FusionView, root: HloOp) -> str:
    """The name of the emitter for a root of the fusion, if it were alone: a key of WHY_NOT, or "loop"."""
    return next((kind for kind, why_not in WHY_NOT.items() if why_not(view, root) is None), "loop")


def why_no_reduction(view: FusionView, root: HloOp) -> str | None:
    """None where the hero of `root` is a reduction that gets one or several kernels; else the reason."""
    return why_not_hero(find_non_trivial_hero(view, root), are_split=True)


def why_no_transpose(view: FusionView, root: HloOp) -> str | None:
    """None where the hero of `root` is a transpose through shared memory; else the reason."""
    found = describe_transpose(find_non_trivial_hero(view, root))
    return found if isinstance(found, str) else None


def why_no_scatter(view: FusionView, root: HloOp) -> str | None:
    """None where `root` is a scatter whose updates have code; else the reason."""
    found = scatter_at(view, root)
    return found if isinstance(found, str) else None


def why_no_concatenate(view: FusionView, root: HloOp) -> str | None:
    """None where the hero of `root` is a concatenate whose operands get a loop each; else the reason."""
    hero = find_non_trivial_hero(view, root)
    if hero.opcode != "concatenate":
        return f"the hero of %{root.instruction_name.data} is %{hero.instruction_name.data}, a '{hero.opcode}'"
    if len(hero.operands) > CONCATENATED_MAX:
        return f"{len(hero.operands)} operands; the concatenate emitter takes at most {CONCATENATED_MAX}, with a loop for each"
    return None


WHY_NOT: dict[str, Callable[[FusionView, HloOp], str | None]] = {
    "reduction": why_no_reduction,
    "transpose": why_no_transpose,
    "scatter": why_no_scatter,
    "concatenate": why_no_concatenate,
    "dynamic_update_slice": why_no_update,
}
"""Name of an emitter -> a function: None for a root of its kind, else the reason. In the order of selection."""
