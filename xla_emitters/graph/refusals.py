"""Fusions that no emitter takes, regardless of the emitter: for other compilers, with inner tuples, with dimensions known only at run time.

Passes on HLO leave such fusions as they are (`supported_view`); emission refuses them by name and place (`refuse_unsupported`).
Source: docs/reference/2 1.2, 1.3 point 1; seed document, "Tuples".
"""

from __future__ import annotations

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import CallOp, ComputationOp, FusionOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.types import has_dynamic_dims, is_array, leaf_types, type_text
from xla_emitters.errors import Unsupported
from xla_emitters.graph.view import FusionView, view_of


def supported_view(source: FusionOp | ComputationOp) -> FusionView | None:
    """The view of a fusion that becomes a kernel; None for a fusion that `refuse_unsupported` refuses."""
    view = view_of(source)
    try:
        refuse_unsupported(view)
    except Unsupported:
        return None
    return view


def refuse_unsupported(view: FusionView) -> None:
    """raises Unsupported, with its place, for fusions that no emitter here compiles."""
    if view.other_compiler is not None:
        raise _for_other_compiler(view, view.other_compiler)
    refuse_values(view)


def is_splittable_kind(kind: str | None) -> bool:
    """Whether fusions of a kind are completely described by their HLO, so that other fusions can be made of them."""
    return kind is not None and kind.startswith(("__triton", "__cudnn"))


def has_code(op: type[HloOp]) -> bool:
    """Whether a fusion may contain instructions of a class; some have code for certain types only and refuse others."""
    if issubclass(op, ElementwiseOp) and op.emit_element is ElementwiseOp.emit_element:
        return bool(op.ROW.code)
    return op in (ParameterOp, TupleOp) or op.emit_element is not HloOp.emit_element


def without_code(view: FusionView) -> list[HloOp]:
    """The instructions of a fusion, and of the computations that it calls, that no emitter has code for after inlining nested fusions."""
    called = (op for computation in view.called for op in computation.instructions)
    return [
        op for op in (*view.instructions, *called) if not isinstance(op, FusionOp | CallOp) and not has_code(type(op))
    ]


def _for_other_compiler(view: FusionView, kind: str) -> Unsupported:
    wrong = without_code(view) if is_splittable_kind(kind) else []
    if wrong:
        what = f": no code for HLO op '{wrong[0].opcode}' (instruction %{wrong[0].instruction_name.data}) in it"
        help = "a fusion for Triton or cuDNN is split into others if there is code for all that it holds"
    elif is_splittable_kind(kind):
        what, help = "", "--triton=split splits it into fusions that are compiled here, and dots"
    else:
        what, help = "", "fusions for custom kernels and XLA:CPU's libraries are not compiled; all others are"
    place = written_at(wrong[0]) if wrong else None
    return Unsupported(
        f"fusion %{view.name} is of kind '{kind}'{what}", stage="emit", place=place or view.place, help=help
    )


def refuse_values(view: FusionView) -> None:
    """raises Unsupported, with its place, for value types that no emitter takes."""
    needed = frozenset(view.instructions)
    for op in (*view.instructions, *(parameter for parameter in view.parameters if parameter not in needed)):
        if is_array(op.result.type) and not has_dynamic_dims(op.result.type):
            continue
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
