"""The schedule of the k largest of each row on a CPU: the sort of `sort_schedule` on copies, of which the first k are taken.

    lmhlo.dynamic_top_k %x, %k -> %values, %places

      %v, %p, and two more = alloc: as %x; those of places have i32
      parallel for each row:
        %v[...] = %x[...];  %p[...] = 0, 1 ...
        sort %v, %p together, the largest first
        %values, %places [0 .. k] = %v, %p [0 .. k]

Floats are in their total order, so NaN is the largest; of equal ones the earlier is first, since the sort is stable. `topk` has a k that
is known, and may ask for the smallest. That k is at most the size of a row is checked before a run (`sizes`).
Source: StableHLO's "chlo.top_k"; `library/sort`, which has the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.convert import at_least_f16
from xla_emitters.dialects.hlo.elementwise_code import compare_floats, compare_integers
from xla_emitters.dialects.lmhlo import BufferOp, tensor_of
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import Kind, dtype_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.dynamic.loops.sort_schedule import NAME, SortedRow, buffer_like


def has_top_k_schedule(op: BufferOp) -> bool:
    """Whether its elements are numbers, and all sizes are known to fit: loops do not check it, the runtime does."""
    sizes = BufferSizes()
    *rows, size = sizes.of(op.inputs[0])
    values, places = map(sizes.of, op.outputs)
    is_checked = values[-1] == size or (sizes.is_named(values[-1]) and sizes.is_named(size))
    is_number = dtype_of(tensor_of(op.inputs[0].type).element_type).kind is not Kind.COMPLEX
    return is_number and is_checked and values == places and list(values[:-1]) == rows


def emit_top_k(fusion: FusionLoops) -> None:
    """The loops of a fusion that is one op."""
    (root,) = fusion.roots
    array, element = root.inputs[0], dtype_of(tensor_of(root.inputs[0].type).element_type)
    direction = "LT" if root.properties.get("largest") == IntegerAttr.from_bool(False) else "GT"

    def before(code: KernelCode, arguments: Sequence[SSAValue]) -> SSAValue:
        one, other = arguments[:2]
        if element.kind is Kind.FLOAT:
            return compare_floats(code, direction, True, at_least_f16(code, one), at_least_f16(code, other))
        return compare_integers(code, direction, element.kind is not Kind.SIGNED, one, other)

    *others, size = fusion.numbers.sizes(array)
    row = SortedRow(size, len(others), before)
    runs, copies = ([buffer_like(fusion, array), buffer_like(fusion, array, i32)] for _ in range(2))

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        row.others = code.index.delinearize(variables[0], others)
        code.written |= {*runs, *copies}
        with code.each(0, size) as (inner, place):
            row.move(inner, [array], place, runs[:1], place)
            inner.store(inner.insert(arith.IndexCastOp(place, i32)).result, runs[1], row.at(place))
        row.sort(code, runs, copies)
        with code.each(0, fusion.numbers.sizes(root.outputs[0])[-1]) as (inner, place):
            row.move(inner, runs, place, root.outputs, place)

    fusion.parallel(NAME, [fusion.numbers.code.product(others)], [1], body)
