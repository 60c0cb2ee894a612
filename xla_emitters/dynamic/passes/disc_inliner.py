"""Inlines a program's calls, so that its entry is one computation. On HLO.

    f { x = f32[?] parameter(0)                                        ENTRY main {
        ROOT y = f32[?] abs(x) }                               ->        p = f32[?] parameter(0)
    ENTRY main { p = f32[?] parameter(0)                                 ROOT y = f32[?] abs(p) }
                 ROOT c = f32[?] call(p), to_apply=f }

JAX exports at least two functions (`main` calls `_wrapped_jax_export_main`), and one for each `jit` inside. Computations of loops, branches
and reductions stay, with their own calls inlined. A tuple that was only the result of a call is replaced by its elements.
A function that calls itself is an error. This is `xla-inline-calls` under its name in the pipeline of programs.
Source: seed document, "Inliner".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.computation import GetTupleElementOp, TupleOp
from xla_emitters.graph.inlining import inline_calls
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscInlinerPass(KernelPass):
    name = "disc-inliner"

    def apply_to(self, op: ModuleOp) -> None:
        inline_calls(op)
        forward_tuple_elements(op)


def forward_tuple_elements(module: ModuleOp) -> None:
    """Replaces `get-tuple-element(tuple(...))` by the element; erases tuples that are then unused."""
    for op in list(module.walk()):
        if not isinstance(op, GetTupleElementOp) or not isinstance(made := op.operands[0].owner, TupleOp):
            continue
        Rewriter.replace_op(op, (), [made.operands[op.index.value.data]])
        if made.result.first_use is None:
            Rewriter.erase_op(made)
