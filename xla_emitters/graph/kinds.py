"""The kind of a root: the emitter for a fusion with this root alone.

    reduction, transpose         its hero is a reduce, or a transpose, that benefits from shared work or shared memory
    scatter                      it is a scatter whose updates have code
    concatenate                  its hero is a concatenate of a few operands
    dynamic_update_slice         it is an update that can be done in place if it gets the buffer of its array
    loop                         everything else, including copies

Emitters use the same functions in `applies`, so an HLO pass that separates a root for an emitter agrees with that emitter.
"""

from __future__ import annotations

from collections.abc import Callable

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.graph.heroes import find_non_trivial_hero
from xla_emitters.graph.in_place_updates import why_no_update
from xla_emitters.graph.reduction_kinds import why_not_hero
from xla_emitters.graph.scatters import scatter_at
from xla_emitters.graph.transposes import describe_transpose
from xla_emitters.graph.view import FusionView

CONCATENATED_MAX = 4
"""The most operands of a concatenate for which each thread runs a loop per operand."""


def kind_of(view: FusionView, root: HloOp) -> str:
    """The name of the emitter for a root of the fusion, if it were the only one: a key of WHY_NOT, or "loop"."""
    return next((kind for kind, why_not in WHY_NOT.items() if why_not(view, root) is None), "loop")


def why_no_reduction(view: FusionView, root: HloOp) -> str | None:
    """None if the hero of `root` is a reduction that gets one or several kernels; otherwise the reason."""
    return why_not_hero(find_non_trivial_hero(view, root), are_split=True)


def why_no_transpose(view: FusionView, root: HloOp) -> str | None:
    """None if the hero of `root` is a transpose through shared memory; otherwise the reason."""
    found = describe_transpose(find_non_trivial_hero(view, root))
    return found if isinstance(found, str) else None


def why_no_scatter(view: FusionView, root: HloOp) -> str | None:
    """None if `root` is a scatter whose updates have code; otherwise the reason."""
    found = scatter_at(view, root)
    return found if isinstance(found, str) else None


def why_no_concatenate(view: FusionView, root: HloOp) -> str | None:
    """None if the hero of `root` is a concatenate whose operands get a loop each; otherwise the reason."""
    hero = find_non_trivial_hero(view, root)
    if hero.opcode != "concatenate":
        return f"the hero of %{root.instruction_name.data} is %{hero.instruction_name.data}, a '{hero.opcode}'"
    if len(hero.operands) > CONCATENATED_MAX:
        return f"{len(hero.operands)} operands; the concatenate emitter takes at most {CONCATENATED_MAX}, with a loop for each"
    return None


def why_no_lone_concatenate(view: FusionView) -> str | None:
    """None if the hero of the only result is a concatenate of few operands; else why not."""
    root, *others = view.roots
    return f"{1 + len(others)} results" if others else why_no_concatenate(view, root)


WHY_NOT: dict[str, Callable[[FusionView, HloOp], str | None]] = {
    "reduction": why_no_reduction,
    "transpose": why_no_transpose,
    "scatter": why_no_scatter,
    "concatenate": why_no_concatenate,
    "dynamic_update_slice": why_no_update,
}
"""Name of an emitter -> a function: None for a root of its kind, otherwise the reason. In the order of selection."""
