"""The schedule of a fusion with a transpose: blocks read tiles of 32 by 32 elements along the operand's rows, and write along the result's.

    lmhlo.transpose %x -> %t             scf.parallel (%block, %thread) = (0, 0) to (%tiles, 256) step (1, 1) {
                                           %tile = memref.alloc() : memref<1056xf32, #gpu.address_space<workgroup>>      32 rows of 33
                                   ->      four times: memref.load %x[%row, %column]; memref.store %tile[...]
                                           gpu.barrier
                                           four times: memref.load %tile[...]; memref.store %t[%column, %row]
                                         } {disc.schedule = "tiles"}

The two dimensions of a tile are the operand's last one and the one that is last in the result; the others are coordinates of the block. A
warp reads 32 elements of a row and writes 32 of a column; with a padded row no two of them are in one bank. Loads are kept in private
values first, since those at the edge are in branches, in which each would wait for the one before. Ops that read the transpose are
computed at the elements that are written (`dynamic/buffers/tiled_transposes`).
Source: docs/reference/2, "transpose emitter".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.buffers.tiled_transposes import tiled_transpose
from xla_emitters.dynamic.loops.element_code import Computed, KnownProducer
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.row_rounds import private_array, shared_array
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.rewrite.kernel_pass import refusal

NAME = "tiles"
SIDE, ROWS = 32, 8
"""Elements of a tile's side; rows that the 256 threads of a block take at once."""
STEPS, PITCH = SIDE // ROWS, SIDE + 1


def emit_tile_schedule(fusion: FusionLoops) -> None:
    """The loop of a fusion whose results depend on one transpose. raises Unsupported if there is none"""
    ops = fusion.op.ops
    transpose = tiled_transpose(ops, fusion.roots)
    if isinstance(transpose, str):
        raise refusal("loops", fusion.op, f"no tiles: {transpose}", "leave out disc.tiles")
    (source,), (result,) = transpose.inputs, transpose.outputs
    order, sizes = integers(transpose.properties["dimensions"]), fusion.numbers.sizes(source)
    stored = dtype_of(tensor_of(source.type).element_type).storage_type
    down, along = order[-1], len(order) - 1
    others = [dim for dim in range(len(order)) if dim not in (down, along)]
    host = fusion.numbers.code
    tiles = [host.divide(host.add(sizes[dim], SIDE - 1), SIDE) for dim in (down, along)]
    grid: list[Number] = [*(sizes[dim] for dim in others), *tiles]

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        block, thread = variables
        *place, tile_down, tile_along = code.index.delinearize(block, grid)
        at = dict(zip(others, place, strict=True))
        row, lane = code.index.delinearize(thread, (ROWS, SIDE))
        first = {down: code.index.multiply(tile_down, SIDE), along: code.index.multiply(tile_along, SIDE)}
        tile = shared_array(code, SIDE * PITCH, stored)
        held = private_array(code, STEPS, stored)

        def element(step: int, slow: int, fast: int) -> tuple[list[SSAValue], SSAValue]:
            """The operand's indices of a thread's element, `slow` the dimension of its rows; and whether there is one."""
            inside = {
                slow: code.index.value(code.index.add(code.index.add(first[slow], row), step * ROWS)),
                fast: code.index.value(code.index.add(first[fast], lane)),
            }
            is_there = code.index.every([code.index.compare("ult", inside[dim], sizes[dim]) for dim in (slow, fast)])
            return [inside.get(dim) or at[dim] for dim in range(len(order))], is_there

        for step in range(STEPS):
            indices, is_there = element(step, down, along)
            with code.where(is_there) as inner:
                inner.store(inner.load(source, indices), held, [inner.index.value(step)])
        line = code.index.add(code.index.multiply(row, PITCH), lane)
        for step in range(STEPS):
            value = code.load(held, [code.index.value(step)])
            code.store(value, tile, [code.index.value(code.index.add(line, step * ROWS * PITCH))])
        code.insert(gpu.BarrierOp())
        column = code.index.add(code.index.multiply(lane, PITCH), row)
        for step in range(STEPS):
            indices, is_there = element(step, along, down)
            with code.where(is_there) as inner:
                value = inner.load(tile, [inner.index.value(inner.index.add(column, step * ROWS))])
                computed = {buffer: Computed(op) for op in ops if op is not transpose for buffer in op.outputs}
                inner.producers = {**computed, result: KnownProducer(value)}
                there = [indices[dim] for dim in order]
                for root in fusion.roots:
                    (buffer,) = root.outputs
                    with inner.located(root.location):
                        inner.store(inner.load(buffer, there), buffer, there)

    fusion.parallel(NAME, [host.product(grid), ROWS * SIDE], [1, 1], body)
    for op in reversed(ops):
        if op not in fusion.roots:
            Rewriter.erase_op(op)
