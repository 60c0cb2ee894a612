"""The drawings of the tours: which thread touches which element, tiles and their banks, shuffles, buffers over time.

Each is made of the maps in the compiled kernel's IR or plan, or of a run, so it changes with the code; the counts of accesses in a caption
are computed from the same map. The SVG is drawn by `xla_emitters.explore.plots` and `memory_plot`.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

import xla_emitters as xe
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import row_major_strides
from xla_emitters.device import device
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.dialects.mlir.gpu import ShuffleOp
from xla_emitters.dialects.xla_gpu import LoopOp, SyncThreadsOp
from xla_emitters.emitters.reduction_plans import plan_for
from xla_emitters.emitters.transpose_tiles import plain_tiles
from xla_emitters.explore.memory_plot import memory_plot
from xla_emitters.explore.plots import (
    access_pattern,
    bank_pattern,
    bank_ways,
    combined_lanes,
    places_of_warp,
    sectors,
    shuffle_tree,
)
from xla_emitters.graph.heroes import find_transposes
from xla_emitters.graph.reduction_kinds import find_reductions
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.program import Program
from xla_emitters.trace.html import Html

TARGET = device("h200")


def figure(drawing: Html, caption: str) -> str:
    """The drawing, which scrolls where the screen is narrow, above its caption; `code` in the caption is code."""
    pieces = [
        f"<code>{escape(piece)}</code>" if odd % 2 else escape(piece) for odd, piece in enumerate(caption.split("`"))
    ]
    return f'<figure class="drawing"><div>{drawing.text}</div><figcaption>{"".join(pieces)}</figcaption></figure>\n'


def gelu(program: Program) -> str:
    """What the loop's map makes of threads, and what a warp reads at once before and after vectorization."""
    (loop,) = loops(program, "xla_gpu")
    strides = [512 * 4096, 4096, 1]
    few = {name: 1 for name in ("bl_x",)}
    one_step = places_of_warp(loop, strides)
    return "\n".join(
        [
            "## Which thread computes which element\n",
            f"The map of the loop, `{loop}`, drawn over the first 64 elements in the order of memory. Colours are threads.\n",
            figure(
                access_pattern(loop, strides, 64, first=few, number="th_x"),
                "The number is the thread, `th_x`: four neighbours each.",
            ),
            figure(
                access_pattern(loop, strides, 64, first=few),
                "The number is the step of the thread's loop, `vector_index`.",
            ),
            figure(
                access_pattern(loop, strides, 64, first=few | {"vector_index": 1}, number="th_x"),
                f"One step alone, before `xla-vectorize-loads-stores`: a warp's {len(one_step)} lanes touch every fourth element, "
                f"{sectors(one_step, 2)} sectors of 32 bytes for {len(one_step) * 2} bytes, and each of the four steps moves the same "
                "sectors. Afterwards one access of 8 bytes a lane has all four.",
            ),
        ]
    )


def transpose(program: Program) -> str:
    """Reads, the tile, its banks with and without padding, writes."""
    tiles = plain_tiles(find_transposes(view("examples/transpose.hlo")).first, 1, TARGET)
    read, write = [160 * 170, 170, 1], [160 * 20, 20, 1]
    padded, bare = (places_of_warp(tiles.put, [width, width, 1]) for width in (33, 32))
    writing = places_of_warp(tiles.write, write)
    taken = {lane: place for lane, place in places_of_warp(tiles.take, [33, 33, 1]).items() if lane in writing}
    turn = IndexingMap.parse("(a, b, c) -> (c, b, a), domain: a in [0, 169], b in [0, 159], c in [0, 19]")
    without = places_of_warp(tiles.write.compose(turn), read)
    return "\n".join(
        [
            "## Which thread touches what\n",
            figure(
                access_pattern(tiles.read, read, 64, first={"bl_x": 2, "i": 1}, number="th_x"),
                "The input, first 64 elements: the thread that reads each in its first step. Neighbouring lanes read neighbours; an "
                f"access of a warp is {sectors(places_of_warp(tiles.read, read), 4)} sectors. If the thread that writes an element read it "
                f"itself, it would be {sectors(without, 4)} for {len(without)} lanes.",
            ),
            figure(
                access_pattern(tiles.put, [33, 33, 1], 8 * 33, columns=33, first={"bl_x": 1, "i": 5}, number="th_x"),
                "The tile in shared memory, 8 of its 32 rows of 33, and the thread that fills each place. A row of the input is a column "
                "here. The input has 20 rows, so 20 columns are filled; the 33rd is padding.",
            ),
            figure(
                bank_pattern(padded, 4),
                f"The banks that the first warp writes in one access, with the lane's number; a row is a cycle. Rows of 33 words: "
                f"{bank_ways(padded, 4)} cycle.",
            ),
            figure(
                bank_pattern(bare, 4),
                f"The same without the padding, rows of 32 words: one bank, {bank_ways(bare, 4)} cycles.",
            ),
            figure(
                bank_pattern(taken, 4),
                f"On the way out a warp takes a row of the tile, as far as it is filled: {bank_ways(taken, 4)} cycle.",
            ),
            figure(
                access_pattern(tiles.write, write, 64, first={"bl_x": 1}, number="th_x"),
                "The output, first 64 elements: the thread that writes each. Block 0 writes 32 rows of 20 elements, 3200 elements apart; "
                "the first of them is here, and a row of another block follows.",
            ),
        ]
    )


def reduction(program: Program) -> str:
    """Reads, the trees of shuffles, the shared words between the warps, and writes."""
    plan = plan_for(find_reductions(view("examples/row_sum.hlo")), TARGET)
    before, after = distances(program)
    assert plan.shared is not None
    assert sorted(combined_lanes(before)[-1][0]) == list(range(32))
    put, take = plan.shared.write, plan.shared.read
    return "\n".join(
        [
            "## Which thread reads what, and which lanes combine\n",
            figure(
                access_pattern(plan.input, [512 * 2048, 2048, 2, 1], 64, first={"bl_x": 1, "step": 1}, number="th_x"),
                "The first 64 elements of a row: the thread that reads each in its first step, two neighbours in one access. Its second "
                "step is 256 elements further on.",
            ),
            figure(
                shuffle_tree(before),
                f"Shuffles of a warp before the barrier, distances {before}: a number says how many lanes' sums a lane has added. Empty "
                "squares add too, and their result is not used. Lane 0 has all 32.",
            ),
            figure(
                access_pattern(put, list(row_major_strides(plan.shared.tile)), 8, columns=8, number="th_x"),
                "Shared memory: the first lane of each of the eight warps stores a sum; the number is the thread. Four words belong to one "
                "row of the input, the next four to the block's other row.",
            ),
            figure(
                access_pattern(take, list(row_major_strides(plan.shared.tile)), 8, columns=8, number="th_x"),
                f"After the barrier: four lanes of one warp of each row take the words. The same shuffles follow, distances {after}; "
                "the warp's other lanes bring the initial value, zero.",
            ),
            figure(
                bank_pattern(places_of_warp(take, list(row_major_strides(plan.shared.tile))), 4),
                "Their banks: each word is in a bank of its own, one cycle.",
            ),
            figure(
                access_pattern(plan.output, [1], 8, columns=8, first={"bl_x": 4}, number="th_x"),
                "The result: one thread for each row writes, two rows a block.",
            ),
        ]
    )


def buffers(program: Program, before: Program, *sizes: dict[str, int]) -> str:
    """Buffers of the finished program at each of `sizes`, then those of `before`, whose buffers were not yet shortened."""
    parts = list[str]()
    for at in sizes:
        memory = program.memory(inputs(program, at))
        parts.append(figure(memory_plot(memory), f"At {named(at)}: {memory.peak:,} bytes at the peak."))
    last = before.memory(inputs(before, sizes[-1]))
    parts.append(
        figure(
            memory_plot(last),
            f"At {named(sizes[-1])} before the passes on buffers (stage `lmhlo`): nothing is freed before the end, {last.peak:,} bytes.",
        )
    )
    return "\n".join(parts)


def named(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def inputs(program: Program, sizes: dict[str, int]) -> list[Any]:
    """Random arrays for the parameters."""
    draw = np.random.default_rng(0)
    shapes = [[size.evaluate(sizes) for size in p.shape] for p in program.compilation.sizes.guards.parameters]
    return [draw.standard_normal(shape, np.float32) for shape in shapes]


def view(file: str) -> FusionView:
    (fusion,) = [op for op in read_module(file).walk() if isinstance(op, FusionOp)]
    return view_of(fusion)


def loops(program: Program, stage: str) -> list[IndexingMap]:
    """The maps of the stage's loops, in order."""
    return [op.map for op in parse_ir(program.trace[stage].ir or "").walk() if isinstance(op, LoopOp)]


def distances(program: Program) -> list[list[int]]:
    """Distances of the shuffles before the first barrier, after it ..."""
    found: list[list[int]] = [[]]
    for op in parse_ir(program.trace["inlined"].ir or "").walk():
        if isinstance(op, SyncThreadsOp):
            found.append([])
        if isinstance(op, ShuffleOp):
            found[-1].append(op.offset.owner.value.value.data)
    return found


def program_of_any_size(stage: str = "host", **options: Any) -> Program:
    compiled = xe.compile("examples/causal_attention.mlir", stage=stage, **options)
    assert isinstance(compiled, Program)
    return compiled
