"""Lower loops over maps to loop nests with a bounds check inside.

    %r = xla_gpu.loop (%t, %b)[%v] -> (%i) in #map iter_args(%a = %x) -> (T) {      scf.for %v = %c0 to %c4 step %c1 iter_args(%a = %x) {
      BODY; xla_gpu.yield %n                                                          %inside = bounds of %t and %b, #map's constraints
    }                                                                        ->       %s = scf.if %inside -> (T) {
                                                                                        %i = apply_indexing #map(%t, %b)[%v]
                                                                                        BODY; scf.yield %n
                                                                                      } else { scf.yield %a }
                                                                                      scf.yield %s
                                                                                    }

There is one `scf.for` per range variable, the first outermost, and the variable's bounds become the loop's. An iteration outside the map's
domain yields its carried values unchanged. The check compares the map's constraints first, then each dim's bounds, all signed. A loop whose
map is known empty becomes its initial values; a loop over a map without variables becomes its body. Each map result that the body uses
becomes one `apply_indexing` with all of the map's variables and bounds: flatten-tensors composes these later, and range analysis decides
the checks. Constants are placed at the function's entry.
Source: seed document, "xla_gpu to scf conversion"; XLA lower_xla_loops_to_scf.cc; docs/reference/1 5.6.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.build import apply_indexing, loop_nest
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.xla_gpu import LoopOp
from xla_emitters.rewrite.constants import hoist_constants
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.unrolling import inline_body


class LowerXlaLoopsToScfPass(KernelPass):
    name = "xla-lower-xla-loops-to-scf"

    def apply_to(self, op: ModuleOp) -> None:
        # Inner loops first: their nests then move with the body of the outer loop.
        for loop in [inner for inner in op.walk(region_first=True) if isinstance(inner, LoopOp)]:
            _lower(loop)
        hoist_constants(op)


def _lower(loop: LoopOp) -> None:
    if loop.map.is_known_empty:
        Rewriter.replace_op(loop, (), loop.inits)
        return

    def body(builder: Builder, ivs: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return _move_body(loop, builder, ivs, carried)

    builder = located_builder(InsertPoint.before(loop), loop)
    if loop.map.range_vars or loop.dims or loop.map.constraints:
        results = loop_nest(builder, loop.map, loop.dims, loop.inits, body)
    else:
        results = body(builder, (), loop.inits)
    Rewriter.replace_op(loop, (), results)


def _move_body(
    loop: LoopOp, builder: Builder, ivs: Sequence[SSAValue], carried: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Moves the loop's body to the builder's insertion point; returns the values that it yields."""
    indices: list[SSAValue] = []
    for number, argument in enumerate(loop.map_results):
        if argument.first_use is None:
            indices.append(argument)  # unused
            continue
        [index] = apply_indexing(builder, loop.map.submap(number), [*loop.dims, *ivs])
        index.name_hint = index.name_hint or argument.name_hint
        indices.append(index)
    return inline_body(loop.body.block, builder.insertion_point, (*ivs, *indices, *carried))
