"""`call` becomes the instructions of the computation that it calls. On HLO.

    g { x = f32[8] parameter(0)
        ROOT s = f32[8] sine(x) }                                 ENTRY main {
    ENTRY main {                                            ->      a = f32[8] parameter(0)
      a = f32[8] parameter(0)                                       ROOT s = f32[8] sine(a) }
      ROOT c = f32[8] call(a), to_apply=g }

Applies everywhere: on the host, in fusions, and in bodies of reductions. Calls in inlined computations are inlined too; a computation
that only calls refer to is erased. A computation that calls itself is an error: HLO has no recursion.
Calls only group instructions: XLA keeps them for composites that a frontend marked, and in HLO before optimization.
Source: XLA call_inliner.cc.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.graph.inlining import inline_calls
from xla_emitters.rewrite.kernel_pass import KernelPass


class InlineCallsPass(KernelPass):
    name = "xla-inline-calls"

    def apply_to(self, op: ModuleOp) -> None:
        inline_calls(op)
