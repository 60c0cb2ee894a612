"""`call` becomes the instructions of the computation that it calls. On HLO.

    g { x = f32[8] parameter(0)
        ROOT s = f32[8] sine(x) }                                 ENTRY main {
    ENTRY main {                                            ->      a = f32[8] parameter(0)
      a = f32[8] parameter(0)                                       ROOT s = f32[8] sine(a) }
      ROOT c = f32[8] call(a), to_apply=g }

Everywhere: on the host, in fusions, and in what reductions apply. Calls that come with what is called are inlined in their turn, so the
work is what it makes; a computation that only calls refer to is erased. A computation that runs itself is an error: HLO has no recursion.
Calls only group instructions: XLA keeps them where a frontend marked a composite, or where it is given HLO before optimization.
Source: XLA call_inliner.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.computation import CallingOp, CallOp, ComputationOp, find_computation
from xla_emitters.fusions.host import runs_itself
from xla_emitters.graph.inlining import inline
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
    _refuse_circles(module)
    called = {find_computation(op, op.to_apply) for op in calls}
    others = (op for op in module.walk() if isinstance(op, CallingOp) and not isinstance(op, CallOp))
    kept = {callee.symbol.root_reference.data for op in others for callee in op.callees()}
    gone = {op for op in called if not op.is_entry and op.sym_name.data not in kept}
    for computation in module.ops:
        if isinstance(computation, ComputationOp) and computation not in gone:
            _inline_into(computation)
    for computation in gone:
        Rewriter.erase_op(computation)


def _refuse_circles(module: ModuleOp) -> None:
    """raises VerifyError for a computation that runs itself by calls."""
    done = set[ComputationOp]()
    for root in module.ops:
        # The way from a computation to what is looked at now; pairs, so that it may be longer than Python's stack.
        path = {root: _called(root)} if isinstance(root, ComputationOp) and root not in done else {}
        while path:
            current = next(reversed(path))
            callee = next((other for other in path[current] if other not in done), None)
            if callee is None:
                done.add(current)
                del path[current]
            elif callee in path:
                raise runs_itself((*path, callee))
            else:
                path[callee] = _called(callee)


def _called(computation: ComputationOp) -> list[ComputationOp]:
    return [find_computation(op, op.to_apply) for op in computation.instructions if isinstance(op, CallOp)]


def _inline_into(computation: ComputationOp) -> None:
    """Inlines the calls in a computation, and those that come with what they call, in program order."""
    pending = [op for op in computation.instructions if isinstance(op, CallOp)][::-1]
    names = {op.instruction_name.data for op in computation.instructions if not isinstance(op, CallOp)}
    inner = set[CallOp]()
    while pending:
        call = pending.pop()
        if call in inner:
            names.discard(call.instruction_name.data)
        before = call.prev_op
        made = inline(call, find_computation(call, call.to_apply), call.operands, call.result.type, names)
        first = before.next_op if before is not None else computation.body.block.first_op
        came = list(_calls_between(first, call))
        inner.update(came)
        pending += reversed(came)
        Rewriter.replace_op(call, (), [made])


def _calls_between(first: Operation | None, end: Operation) -> Iterator[CallOp]:
    while first is not None and first is not end:
        if isinstance(first, CallOp):
            yield first
        first = first.next_op
