"""`func`: calls, each in a frame of its own, under the caller's mask."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import func
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt.code import FrameSlots, Rules, Step, write
from xla_emitters.runtime.simt.machine import Frame, Machine
from xla_emitters.runtime.simt.math_rules import libdevice

RULES = Rules()


@RULES.control(func.CallOp)
def call(op: func.CallOp, scope: FrameSlots) -> Step:
    return call_step(scope, op.callee.string_value(), op.arguments, op.res)


def call_step(scope: FrameSlots, callee: str, arguments: Iterable[SSAValue], results: Iterable[SSAValue]) -> Step:
    """A call of a function of the module or of libdevice. raises Unsupported when neither defines it."""
    inputs, outputs = scope.slots(arguments), scope.slots(results)
    if not scope.compiler.has_body(callee):
        if (kernel := libdevice(callee)) is None:
            raise Unsupported(f"call of @{callee}, which neither the module nor libdevice defines", stage="simt")
        (output,) = outputs

        def of_libdevice(machine: Machine, frame: Frame) -> None:
            frame[output] = kernel(*[frame[slot] for slot in inputs])

        return of_libdevice
    function = scope.compiler.function(callee)

    def run(machine: Machine, frame: Frame) -> None:
        write(frame, outputs, function.call(machine, [frame[slot] for slot in inputs]))

    return run
