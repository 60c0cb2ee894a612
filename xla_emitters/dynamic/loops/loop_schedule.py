"""LoopSchedule: one iteration of a parallel loop for each element of the roots, or for a few adjacent ones.

    lmhlo.add %x, %y -> %z                         scf.parallel (%i) = (0) to (%n) step (1) {
                                                     %d:2 = affine.delinearize_index %i into (%b, 32)
                                            ->       %0 = memref.load %x[%d#0, %d#1]
                                                     %1 = memref.load %y[%d#0, %d#1]
                                                     %2 = arith.addf %0, %1
                                                     memref.store %2, %z[%d#0, %d#1]
                                                   } {disc.schedule = "loop"}

All roots have equally many elements, perhaps in different shapes: roots of one shape share coordinates. A root that reads another one at
the same index takes the value, not the buffer. With `disc.vector = 4` the step is 4, and an inner loop visits the four elements; the fusion
variant runs only if 4 divides the number of elements, so no bounds are checked.

A `dynamic_update_slice` with its result in the operand's buffer writes only the window: its elements are those of the update.
Source: seed document, "LhloLegalizeToLoop"; docs/reference/4 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dynamic.buffers.buffer_uses import updated_in_place
from xla_emitters.dynamic.loops.element_code import element
from xla_emitters.dynamic.loops.element_context import BufferElement
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.operand_indices import updated
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.rewrite.kernel_pass import refusal

NAME = "loop"


def emit_loop_schedule(fusion: FusionLoops) -> None:
    """The loop of a fusion without reductions."""
    emit_loop(fusion, fusion.roots)


def emit_loop(fusion: FusionLoops, roots: Sequence[BufferOp]) -> None:
    """The loop of some roots."""
    numbers, width = fusion.numbers, fusion.vector
    if any(map(_is_in_place, roots)):
        _refuse_readers(fusion)
        width = 1

    def visit(code: KernelCode, linear: SSAValue) -> None:
        for root in roots:
            (buffer,) = root.outputs
            indices = code.index.delinearize(linear, numbers.sizes(_visited(root)))
            if _is_in_place(root):
                e = BufferElement(code, root, indices)
                value, indices = e.operand(1), [code.index.value(index) for index in updated(e)]
            else:
                value = element(code, root, indices)
            with code.located(root.location):
                code.store(value, buffer, indices)
            code.keep(buffer, indices, value)

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        (first,) = variables
        if width == 1:
            return visit(code, first)

        def step(inner: KernelCode, number: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            visit(inner, inner.index.value(inner.index.add(first, number)))
            return ()

        code.neighbours(width, (), step)
        return None

    fusion.parallel(NAME, [numbers.count(_visited(roots[0]))], [width], body)


def _is_in_place(root: BufferOp) -> bool:
    return root.name == "lmhlo.dynamic_update_slice" and bool(updated_in_place(root))


def _visited(root: BufferOp) -> SSAValue:
    """The buffer whose elements are visited: the result, or the update of an update in place."""
    return root.inputs[1] if _is_in_place(root) else root.outputs[0]


def _refuse_readers(fusion: FusionLoops) -> None:
    """raises Unsupported if an op reads a buffer that another op of the fusion updates in place: their order is undefined."""
    updated_ones = {root.outputs[0]: root for root in fusion.roots if _is_in_place(root)}
    for op in fusion.op.body.block.ops:
        for buffer in op.inputs if isinstance(op, BufferOp) else ():
            root = updated_ones.get(buffer)
            if root is not None and (op is not root or buffer in root.inputs[1:]):
                why = f"{op.name} reads the buffer that %{root.instruction_name} updates in place, in one fusion"
                raise refusal("loops", op, why, "leave the update outside, or give it a buffer of its own")
