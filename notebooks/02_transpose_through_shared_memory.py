import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="A transpose through shared memory")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A transpose through shared memory

    A transpose reads rows and writes columns. Memory moves in pieces of 32 bytes, so whoever goes down a column moves eight times
    what it needs. XLA's way out is a *tile* in shared memory: rows come in, rows go out, and the turn is made where it is cheap. This
    notebook takes `f32[20,160,170]`, turned to `f32[170,160,20]`, from HLO text to PTX and draws who touches what.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import xla_emitters as xe

    transpose = mo.notebook_dir().parent / "examples" / "transpose.hlo"
    program = xe.compile(transpose, target="h200", record="passes")
    program.trace.show()
    return mo, np, program, transpose, xe


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The transpose is the fusion's *hero*: it decides how the work is spread. What it reads (`exp`) is computed on the way into the
    tile, what is made of it (`abs`, the *epilogue*) on the way out.
    """)
    return


@app.cell
def _(mo, program):
    decisions = [decision for decision in program.trace.decisions if decision.topic != "partition"]
    mo.plain_text("\n".join(f"{decision.topic:8} {decision.text}" for decision in decisions))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Four maps are the kernel

    Which element of the input a thread reads, where in the tile it puts it, from where it takes another after the barrier, and
    where that goes in the output. `th_x floordiv 32` is the warp, `th_x mod 32` the lane in it.
    """)
    return


@app.cell
def _(mo, transpose):
    from xla_emitters.device import device
    from xla_emitters.dialects.hlo.computation import FusionOp
    from xla_emitters.emitters.transpose_tiles import plain_tiles
    from xla_emitters.graph.heroes import find_transposes
    from xla_emitters.graph.view import view_of
    from xla_emitters.pipelines.compiler import read_module

    (fusion,) = [op for op in read_module(transpose).walk() if isinstance(op, FusionOp)]
    tiles = plain_tiles(find_transposes(view_of(fusion)).first, 1, device("h200"))
    maps = [f"{name:6}{getattr(tiles, name)}" for name in ("read", "put", "take", "write")]
    mo.plain_text("\n\n".join(maps).replace(", domain:", "\n      domain:"))
    return (tiles,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The first elements of the input, in the order of memory, with the thread that reads each. A warp's lanes are neighbours:
    """)
    return


@app.cell
def _(tiles):
    from xla_emitters.explore.plots import access_pattern, bank_pattern, bank_ways, places_of_warp, sectors

    input_strides, output_strides = [160 * 170, 170, 1], [160 * 20, 20, 1]
    access_pattern(tiles.read, input_strides, elements=64, first={"bl_x": 2, "i": 1}, number="th_x")
    return access_pattern, bank_pattern, bank_ways, input_strides, output_strides, places_of_warp, sectors


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    What would it cost without the tile? The thread that writes an element would have to read it itself. Below: the pieces of 32 bytes
    that the first warp moves in its first access, each way.
    """)
    return


@app.cell
def _(input_strides, mo, output_strides, places_of_warp, sectors, tiles, xe):
    turn = xe.IndexingMap.parse("(a, b, c) -> (c, b, a), domain: a in [0, 169], b in [0, 159], c in [0, 19]")
    rows = []
    for what, who, strides in (
        ("reads, by the tile's map", tiles.read, input_strides),
        ("writes, by the tile's map", tiles.write, output_strides),
        ("reads, by who writes", tiles.write.compose(turn), input_strides),
    ):
        places = places_of_warp(who, strides)
        moved = sectors(places, 4) * 32
        rows.append(f"| {what} | {len(places)} | {sectors(places, 4)} | {len(places) * 4 / moved:.0%} |")
    assert sectors(places_of_warp(tiles.read, input_strides), 4) == 4
    mo.md("| the first warp | elements | pieces | of them used |\n|---|---|---|---|\n" + "\n".join(rows))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## The tile

    Eight of its 32 rows, with the thread that fills each place. What was a row of the input is a column here: a warp's lanes are below each
    other. The input has 20 rows, so 20 columns are filled; in a larger one it would be 32. The 33rd is never filled. What is it for?
    """)
    return


@app.cell
def _(access_pattern, tiles):
    access_pattern(tiles.put, [33, 33, 1], elements=8 * 33, columns=33, first={"bl_x": 1, "i": 5}, number="th_x")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Shared memory has 32 *banks*: word *i* is in bank *i* mod 32, and a bank serves one word in a cycle. Here are the words that the first
    warp writes in its first step, each below its bank, with the lane's number. Rows of 33 shift each lane's word by one bank:
    """)
    return


@app.cell
def _(bank_pattern, places_of_warp, tiles):
    padded = places_of_warp(tiles.put, [33, 33, 1])
    bank_pattern(padded, 4)
    return (padded,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    With rows of 32, a column of the tile is a column of banks, one bank that is asked 32 times:
    """)
    return


@app.cell
def _(bank_pattern, bank_ways, padded, places_of_warp, tiles):
    bare = places_of_warp(tiles.put, [32, 32, 1])
    assert (bank_ways(padded, 4), bank_ways(bare, 4)) == (1, 32)
    bank_pattern(bare, 4)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Try it

    Choose how many columns of padding the tile gets. Its size is changed in the emitted IR, and eight blocks run on the CPU. Every tile
    gives the right numbers; not every tile is quick. Cycles are counted twice: by walking the maps, and by watching the run.
    """)
    return


@app.cell
def _(mo, np):
    from xla_emitters.dialects.context import parse_ir
    from xla_emitters.runtime.simt import execute
    from xla_emitters.runtime.simt.access_counts import AccessCounter

    x = np.random.default_rng(0).standard_normal((20, 160, 170), np.float32)
    expected = np.abs(np.exp(x)).transpose(2, 1, 0)

    padding = mo.ui.slider(0, 8, value=0, label="padding", show_value=True)
    padding
    return AccessCounter, execute, expected, padding, parse_ir, x


@app.cell
def _(AccessCounter, bank_ways, execute, expected, mo, np, padding, parse_ir, places_of_warp, program, tiles, x):
    width = 32 + padding.value
    changed = program.trace["xla_gpu"].ir.replace("tensor<32x1x33xf32>", f"tensor<32x1x{width}xf32>")
    some = np.zeros(expected.shape, np.float32)
    counter = AccessCounter()
    execute(parse_ir(changed), [x, some], blocks=range(8), watchers=[counter])
    written = some != 0  # an exponential is not zero
    np.testing.assert_array_equal(some[written], expected[written])

    def cycles(map, steps):
        accesses = [(step, warp) for step in range(steps) for warp in range(4)]
        return max(bank_ways(places_of_warp(map, [width, width, 1], {"i": i}, warp=w), 4) for i, w in accesses)

    way_in, way_out = cycles(tiles.put, 5), cycles(tiles.take, 8)
    seen = {count.is_store: count.worst_bank_ways for count in counter.counts() if count.space == "shared"}
    assert seen == {True: way_in, False: way_out}
    mo.md(f"""
    Rows of {width}: **{way_in}** cycles for an access on the way in, **{way_out}** on the way out.
    {written.sum():,} elements were written, all equal to NumPy's.
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    And without the barrier? Here, where all threads go in step, the numbers come out right; on a GPU they would sometimes. The executor
    remembers who wrote each byte since the last barrier, and says what it sees:
    """)
    return


@app.cell
def _(execute, expected, mo, np, parse_ir, program, x):
    from xla_emitters.errors import ExecutionError
    from xla_emitters.runtime.simt.sanitizer import Sanitizer

    lines = program.trace["xla_gpu"].ir.splitlines()
    racing = "\n".join(line for line in lines if "xla_gpu.sync_threads" not in line)
    racing = racing.replace("%synced_tensor", "%xla_loop")
    unordered = np.zeros(expected.shape, np.float32)
    execute(parse_ir(racing), [x, unordered])
    np.testing.assert_array_equal(unordered, expected)
    try:
        execute(parse_ir(racing), [x, unordered], watchers=[Sanitizer()])
        raise AssertionError("nothing was found")
    except ExecutionError as error:
        message = str(error)
    mo.plain_text(message)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Narrow types: words that go round

    For bf16 a lane moves a word of two elements and turns 2 x 2 of them in registers. Padding would break the words' alignment, so
    rows are *rotated* instead: word *w* of the *r*-th pair of rows lies at (*w* + *r*) mod 32. On the way out a warp goes down a column
    of words, which are in as many banks:
    """)
    return


@app.cell
def _(bank_pattern, bank_ways, mo, parse_ir, places_of_warp, xe):
    from xla_emitters.dialects.xla_gpu import LoopOp

    narrow = xe.compile(
        """
        ENTRY main {
          x = bf16[4096,4096] parameter(0)
          ROOT turned = bf16[4096,4096] transpose(x), dimensions={1,0}
        }
        """,
        stage="xla_gpu",
    )
    emitted = parse_ir(narrow.trace["xla_gpu"].ir)
    corner = [op for op in emitted.walk() if isinstance(op, LoopOp)][1].map
    straight = xe.IndexingMap.parse(
        "(th_x)[i] -> ((th_x mod 32) * 2, (i * 4 + th_x floordiv 32) * 2), domain: th_x in [0, 127], i in [0, 7]"
    )
    with_rotation, without = (places_of_warp(map, [64, 1], {"i": 3}) for map in (corner, straight))
    assert (bank_ways(with_rotation, 2), bank_ways(without, 2)) == (1, 32)
    mo.vstack(
        [
            mo.plain_text(str(corner)),
            bank_pattern(with_rotation, 2),
            f"Without the rotation it would take {bank_ways(without, 2)} cycles.",
        ]
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Down to PTX

    Flattening makes one index of three. The padding becomes a factor, `(th_x mod 32) * 33`:
    """)
    return


@app.cell
def _(program):
    def change(name):
        number = next(number for number, step in enumerate(program.trace) if step.name == name)
        return program.trace.show_diff(number - 1, number)

    change("xla-flatten-tensors")
    return (change,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Lowering tensors makes a global of address space 3 of the tile, loads and stores of accesses, and a `gpu.barrier` of the
    synchronisation, which until then was a value that the second loop needed, so that nothing could pass it:
    """)
    return


@app.cell
def _(change):
    change("xla-lower-tensors")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    In PTX: five times from global to shared memory, the barrier, eight times back.
    """)
    return


@app.cell
def _(mo, program):
    import re

    touching = re.compile(r"\.shared|bar\.sync|(ld|st)\.global")
    ptx = program.kernels[0].ptx
    assert (ptx.count("st.shared"), ptx.count("bar.sync"), ptx.count("ld.shared")) == (5, 1, 8)
    mo.plain_text("\n".join(line.strip() for line in ptx.splitlines() if touching.search(line)))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Right at every step

    Sixteen blocks at every stage against the reference that evaluates the HLO op by op; and the whole grid of one stage against NumPy.
    """)
    return


@app.cell
def _(execute, expected, mo, np, parse_ir, program, transpose, x, xe):
    report = xe.check(transpose, blocks=16)
    report.raise_if_different()
    whole = np.zeros(expected.shape, np.float32)
    execute(parse_ir(program.trace["llvm-dialect"].ir), [x, whole])
    np.testing.assert_array_equal(whole, expected)
    mo.plain_text(report.summary)
    return


if __name__ == "__main__":
    app.run()
