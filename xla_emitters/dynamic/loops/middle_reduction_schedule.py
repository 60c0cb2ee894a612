"""The schedule of reductions of dimensions in the middle of an array, for a CPU.

    lmhlo.transpose %x -> %t {dimensions = [0, 2, 1]}        scf.parallel for each %a, and each strip of 512 columns:
    lmhlo.reshape %t -> %m                                     %sums[0 .. 512] = -0.0
    lmhlo.reduce %m, %zero -> %r {dimensions = [1]}    ->      for %k = 0 to K, %c = 0 to 512:  %sums[%c] += %x[%a, %k, %c]
                                                               %r[%a * C + %c] = %zero + %sums[%c]

%x is A matrices of K rows and C columns each. The loops are those of column reductions on a CPU, with tiles of K rows and no second pass;
neighbours in memory are added at once. Neither the transpose nor the matrix is computed.
Source: docs/reference/4 3.4 (the column schedule).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dynamic.buffers.fusion_rules import middle_of
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.column_reduction_schedule import STRIP, Tiles
from xla_emitters.dynamic.loops.combine import Reducer, parts_of, store_results
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.schedule import FusionLoops


def emit_middle_reduction_schedule(fusion: FusionLoops) -> None:
    """The loops of a fusion of one transpose and the reductions that read it."""
    reducers = [Reducer.of(root, by_row=True, is_cpu=fusion.is_cpu) for root in fusion.roots]
    transpose = _writer(fusion, _writer(fusion, reducers[0].arrays[0]).inputs[0])
    (source,), middle = transpose.inputs, middle_of(integers(transpose.properties["dimensions"]))
    assert middle is not None
    host, sizes = fusion.numbers.code, fusion.numbers.sizes(source)
    of_rows, of_columns = sizes[: middle[1]], sizes[middle[1] :]
    height, columns = host.product(of_rows[middle[0] :]), host.product(of_columns)
    matrices = host.product(of_rows[: middle[0]])

    def element(code: KernelCode, carried: Sequence[SSAValue], row: SSAValue, column: SSAValue) -> list[SSAValue]:
        indices = [*code.index.delinearize(row, of_rows), *code.index.delinearize(column, of_columns)]
        found = list[SSAValue]()
        for reducer, own in zip(reducers, parts_of(reducers, carried), strict=True):
            found += reducer.with_element(code, own, [code.load(source, indices)])
        return found

    def store(code: KernelCode, totals: Sequence[Sequence[SSAValue]], matrix: SSAValue, column: SSAValue) -> None:
        place: Number = code.index.add(code.index.multiply(matrix, columns), column)
        store_results(code, reducers, totals, code.index.value(place))

    tiles = Tiles(STRIP, height, (host.multiply(matrices, height), columns), matrices)
    tiles.emit(fusion, reducers, element, store)


def _writer(fusion: FusionLoops, buffer: SSAValue) -> BufferOp:
    """The op of the fusion that writes a buffer."""
    return next(op for op in fusion.op.body.block.ops if isinstance(op, BufferOp) and buffer in op.outputs)
