"""Fusions that no emitter takes, whatever they compute: fusions for other compilers, tuples inside, dimensions only known at run time.

Passes on HLO leave such fusions as they are (`supported_view`); emission refuses them by name and place (`refuse_unsupported`).
Source: docs/reference/2 1.2, 1.3 point 1; seed document, "Tuples".
"""

from __future__ import annotations

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import has_dynamic_dims, is_array, leaf_types, type_text
from xla_emitters.errors import Unsupported
from xla_emitters.fusions.view import FusionView, HloFusion, view_of


def supported_view(source: FusionOp | ComputationOp) -> HloFusion | None:
    """The view of a fusion that becomes a kernel; None for one that `refuse_unsupported` refuses."""
    view = view_of(source)
    try:
        refuse_unsupported(view)
    except Unsupported:
        return None
    return view


def refuse_unsupported(view: FusionView) -> None:
    """raises Unsupported, with its place, for fusions that no emitter here compiles."""
    if view.other_compiler is not None:
        raise Unsupported(
            f"fusion %{view.name} is of kind '{view.other_compiler}'",
            stage="emit",
            place=view.place,
            help="fusions for Triton, cuDNN, custom kernels and XLA:CPU's libraries are not compiled; all others are",
        )
    _refuse_values(view)


def _refuse_values(view: FusionView) -> None:
    for op in (*view.instructions, *(parameter for parameter in view.parameters if parameter not in view.users)):
        leaves = leaf_types(op.result.type)
        if not leaves or not all(map(is_array, leaves)):
            raise op.unsupported(f"no code for {type_text(op.result.type)}")
        if has_dynamic_dims(op.result.type):
            raise op.unsupported(f"no code for dimensions only known at run time ({type_text(op.result.type)})")
        if isinstance(op, ParameterOp | ConstantOp) and not is_array(op.result.type):
            raise op.unsupported("no code inside a fusion", help="only the root of a fusion may be a tuple")
        for user in view.users.get(op, ()):
            if isinstance(op, TupleOp) and not isinstance(user, TupleOp):
                raise user.unsupported("no code for a tuple", help="only the root of a fusion may be a tuple")
    for leaf in leaf_types(view.computation.root.type):
        if not is_array(leaf):
            raise Unsupported(
                f"a result of fusion %{view.name} is {type_text(leaf)}",
                stage="emit",
                place=written_at(view.computation.root.owner)
                if isinstance(view.computation.root.owner, HloOp)
                else None,
                help="results must be arrays",
            )
