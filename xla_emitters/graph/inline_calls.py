"""`call` becomes the instructions of the computation that it calls. On HLO.

    g { x = f32[8] parameter(0)
        ROOT s = f32[8] sine(x) }                                 ENTRY main {
    ENTRY main {                                            ->      a = f32[8] parameter(0)
      a = f32[8] parameter(0)                                       ROOT s = f32[8] sine(a) }
      ROOT c = f32[8] call(a), to_apply=g }

Everywhere: on the host, in fusions, and in what reductions apply. A computation is inlined after those that it calls, so each is copied
once for each call; one that nothing refers to any more is erased. A computation that runs itself is an error: HLO has no recursion.
Calls only group instructions: XLA keeps them where a frontend marked a composite, or where it is given HLO before optimization.
Source: XLA call_inliner.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.computation import CallOp, ComputationOp, find_computation
from xla_emitters.fusions.host import runs_itself
from xla_emitters.graph.inlining import erase_unused, inline
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class InlineCallsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "xla-inline-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_calls(op)


def inline_calls(module: ModuleOp) -> None:
    """See the file's head. raises VerifyError for computations that call each other in a circle."""
    calls = [op for op in module.walk() if isinstance(op, CallOp)]
    if not calls:
        return
    called = {find_computation(op, op.to_apply): None for op in calls}
    for computation in _callees_first(module):
        _inline_into(computation)
    erase_unused(module, called)


def _callees_first(module: ModuleOp) -> list[ComputationOp]:
    """The module's computations, each after those that its `call`s name."""
    done = dict[ComputationOp, None]()
    for root in module.ops:
        # The way from a computation to what is looked at now; pairs, so that it may be longer than Python's stack.
        path = {root: _called(root)} if isinstance(root, ComputationOp) and root not in done else {}
        while path:
            current = next(reversed(path))
            callee = next((other for other in path[current] if other not in done), None)
            if callee is None:
                done[current] = None
                del path[current]
            elif callee in path:
                raise runs_itself((*path, callee))
            else:
                path[callee] = _called(callee)
    return list(done)


def _called(computation: ComputationOp) -> list[ComputationOp]:
    return [find_computation(op, op.to_apply) for op in computation.instructions if isinstance(op, CallOp)]


def _inline_into(computation: ComputationOp) -> None:
    calls = [op for op in computation.instructions if isinstance(op, CallOp)]
    names = {op.instruction_name.data for op in computation.instructions if not isinstance(op, CallOp)}
    for call in calls:
        callee = find_computation(call, call.to_apply)
        made = inline(call, callee, call.operands, call.result.type, names)
        Rewriter.replace_op(call, (), [made])
