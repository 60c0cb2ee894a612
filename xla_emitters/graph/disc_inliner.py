"""Calls of a program become the instructions of what they call, so that its entry is one computation. On HLO.

    f { x = f32[?] parameter(0)                                        ENTRY main {
        ROOT y = f32[?] abs(x) }                               ->        p = f32[?] parameter(0)
    ENTRY main { p = f32[?] parameter(0)                                 ROOT y = f32[?] abs(p) }
                 ROOT c = f32[?] call(p), to_apply=f }

JAX exports at least two functions (`main` calls `_wrapped_jax_export_main`), and one for each `jit` inside. What loops, branches and
reductions run stays a computation, with its own calls inlined. A tuple that only was the result of a call is taken apart again.
A function that calls itself is an error. This is `xla-inline-calls` under the name that it has in a program's pipeline.
Source: seed document, "Inliner".
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.computation import GetTupleElementOp, TupleOp
from xla_emitters.graph.inlining import inline_calls
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscInlinerPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "disc-inliner"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_calls(op)
        take_tuples_apart(op)


def take_tuples_apart(module: ModuleOp) -> None:
    """Uses a value instead of the element of a tuple that was just made of it; erases tuples that nothing uses then."""
    for op in list(module.walk()):
        if not isinstance(op, GetTupleElementOp) or not isinstance(made := op.operands[0].owner, TupleOp):
            continue
        Rewriter.replace_op(op, (), [made.operands[op.index.value.data]])
        if made.result.first_use is None:
            Rewriter.erase_op(made)
