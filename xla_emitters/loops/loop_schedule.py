"""LoopSchedule: one iteration of a parallel loop for each element of the roots, or for a few that follow each other.

    lmhlo.add %x, %y -> %z                         scf.parallel (%i) = (0) to (%n) step (1) {
                                                     %d:2 = affine.delinearize_index %i into (%b, 32)
                                            ->       %0 = memref.load %x[%d#0, %d#1]
                                                     %1 = memref.load %y[%d#0, %d#1]
                                                     %2 = arith.addf %0, %1
                                                     memref.store %2, %z[%d#0, %d#1]
                                                   } {disc.schedule = "loop"}

All roots have as many elements, maybe in other shapes: roots of one shape share the coordinates. A root that reads another one at its own
place takes the value, not the buffer. With `disc.vector = 4` the step is 4, and a loop inside visits the four elements; the fusion was
chosen for a number of elements that 4 divides, so nothing is checked.
Source: seed document, "LhloLegalizeToLoop"; docs/reference/4 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xla_emitters.loops.kernel_code import KernelCode
from xla_emitters.loops.schedule import FusionLoops

NAME = "loop"


def emit_loop_schedule(fusion: FusionLoops) -> None:
    """The loop of a fusion without reductions."""
    numbers, width = fusion.numbers, fusion.vector

    def visit(code: KernelCode, linear: SSAValue) -> None:
        for root in fusion.roots:
            (buffer,) = root.outputs
            indices = code.index.delinearize(linear, numbers.sizes(buffer))
            value = fusion.element(code, root, indices)
            code.store(value, buffer, indices)
            code.keep(buffer, indices, value)

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        (first,) = variables
        if width == 1:
            return visit(code, first)

        def step(inner: KernelCode, number: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            visit(inner, inner.index.value(inner.index.add(first, number)))
            return ()

        code.loop(0, width, 1, (), step)
        return None

    fusion.parallel(NAME, [numbers.count(fusion.roots[0].outputs[0])], [width], body)
