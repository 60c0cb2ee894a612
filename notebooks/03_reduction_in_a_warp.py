import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="A reduction in a warp")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A reduction in a warp

    To sum a row, many threads sum a part each and then have to meet. The 32 lanes of a warp hand values to each other by *shuffles*,
    from register to register; warps meet in shared memory. This notebook takes one fusion, `examples/row_sum.hlo`, from HLO text to
    PTX: a residual is added and the sum kept, and of each row comes one over its length, as normalisation wants it.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import xla_emitters as xe

    row_sum = mo.notebook_dir().parent / "examples" / "row_sum.hlo"
    program = xe.compile(row_sum, target="h200", record="passes")
    program.trace.show()
    return mo, np, program, row_sum, xe


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The hero is the `reduce`. What it reads, the square of `%added`, is computed as it is read; what is made of its result, `rsqrt`, is
    the *epilogue*. `%added` is a result too: as large as what is reduced, it is written in the loop that reads it, a *side output*.
    """)
    return


@app.cell
def _(mo, program):
    decisions = [decision for decision in program.trace.decisions if decision.topic != "partition"]
    mo.plain_text("\n".join(f"{decision.topic:10} {decision.text}" for decision in decisions))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Who reads what

    The plan is made of maps: from thread and block to what is read, to what is put into shared memory and taken from it, to what is
    written.
    """)
    return


@app.cell
def _(mo, row_sum):
    from xla_emitters.device import device
    from xla_emitters.dialects.hlo.computation import FusionOp
    from xla_emitters.emitters.reduction_plans import plan_for
    from xla_emitters.graph.reduction_kinds import find_reductions
    from xla_emitters.graph.view import view_of
    from xla_emitters.pipelines.compiler import read_module

    (fusion,) = [op for op in read_module(row_sum).walk() if isinstance(op, FusionOp)]
    plan = plan_for(find_reductions(view_of(fusion)), device("h200"))
    maps = {"read": plan.input, "put": plan.shared.write, "take": plan.shared.read, "write": plan.output}
    lines = [f"{name:6}{map}" for name, map in maps.items()]
    mo.plain_text("\n\n".join(lines).replace(", domain:", "\n      domain:"))
    return maps, plan


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    128 threads share a row of 2048, and two rows share a block. These are the first elements of the first row, with the thread that reads
    them in its first step; it takes two neighbours, in one access. Its second step is 256 elements further on.
    """)
    return


@app.cell
def _(maps):
    from xla_emitters.explore.plots import access_pattern, combined_lanes, shuffle_tree

    access_pattern(maps["read"], [512 * 2048, 2048, 2, 1], elements=64, first={"bl_x": 1, "step": 1}, number="th_x")
    return access_pattern, combined_lanes, shuffle_tree


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## The tree of a warp

    After the loop each of the 32 lanes holds a sum. `xla_gpu.shuffle_reduce` becomes five `gpu.shuffle down`: lane *l* takes what lane
    *l* + 16 holds and adds it to its own, then *l* + 8, and so on. Read from the IR, before and after the barrier:
    """)
    return


@app.cell
def _(mo, program):
    from xla_emitters.dialects.context import parse_ir
    from xla_emitters.dialects.mlir.gpu import ShuffleOp
    from xla_emitters.dialects.xla_gpu import SyncThreadsOp

    def distances_in(trace):
        """Of the shuffles before the first barrier, after it ..."""
        found = [[]]
        for op in parse_ir(trace["inlined"].ir).walk():
            if isinstance(op, SyncThreadsOp):
                found.append([])
            if isinstance(op, ShuffleOp):
                found[-1].append(op.offset.owner.value.value.data)
        return found

    before_barrier, after_barrier = distances_in(program.trace)
    mo.plain_text(f"before the barrier: {before_barrier}\nafter the barrier:  {after_barrier}")
    return after_barrier, before_barrier, distances_in, parse_ir


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    A number says how many lanes' values a lane has added up. Empty squares go on adding too, a warp has one instruction for all its lanes,
    but nothing comes of it. Five steps instead of 31, and lane 0 has them all, each once:
    """)
    return


@app.cell
def _(before_barrier, combined_lanes, shuffle_tree):
    assert sorted(combined_lanes(before_barrier)[-1][0]) == list(range(32))
    shuffle_tree(before_barrier)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Four warps, one row

    A shuffle does not leave its warp. The first lane of each warp puts its sum into a tile of 2 x 4, a row of it for each row of the block:
    """)
    return


@app.cell
def _(access_pattern, maps, mo, plan):
    put, take = (access_pattern(maps[name], [4, 1], elements=8, columns=4, number="th_x") for name in ("put", "take"))
    assert plan.shared.tile == (2, 4)
    mo.hstack([mo.vstack(["put by thread", put]), mo.vstack(["taken by thread", take])], justify="start", gap=4)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    After the barrier four lanes of one warp take them and shuffle again. All lanes come along, since a shuffle wants the whole warp; those
    without a sum bring zero, which the initial value of this reduction is. The first thread of each row writes its result:
    """)
    return


@app.cell
def _(access_pattern, maps):
    access_pattern(maps["write"], [1], elements=8, columns=8, first={"bl_x": 4}, number="th_x")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Down to PTX

    `shuffle_reduce` and the predicated accesses become plain ones:
    """)
    return


@app.cell
def _(program):
    lowered = next(number for number, step in enumerate(program.trace) if step.name == "xla-lower-xla-to-scf")
    program.trace.show_diff(lowered - 1, lowered)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    And in the end: what touches memory, and the shuffles. Loads and stores are two elements wide; the result is one store.
    """)
    return


@app.cell
def _(mo, program):
    import re

    telling = re.compile(r"\.shared|bar\.sync|(ld|st)\.global|shfl|rsqrt")
    ptx = program.kernels[0].ptx
    assert [ptx.count(text) for text in ("ld.global.nc.v2.b32", "st.global.v2.b32", "st.global.b32")] == [16, 8, 1]
    mo.plain_text("\n".join(line.strip() for line in ptx.splitlines() if telling.search(line)))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## The same bits, by hand

    Floating-point addition is not associative: the numbers depend on who meets whom. With the maps and the tree the order is known, so
    NumPy can add in the same one. The kernel is run at one stage; its bits are these bits.
    """)
    return


@app.cell
def _(after_barrier, before_barrier, mo, np, parse_ir, program):
    from xla_emitters.runtime.simt import execute

    def shuffled(values, distances):
        """float32[..., 32] -> float32[...]: what lane 0 has in the end."""
        lanes = np.arange(32)
        for distance in distances:
            values = values + values[..., np.where(lanes + distance < 32, lanes + distance, lanes)]
        return values[..., 0]

    random = np.random.default_rng(0)
    x, residual = (random.standard_normal((512, 2048), np.float32) for _ in range(2))
    squares = (x + residual) ** 2

    parts = squares.reshape(512, 8, 128, 2)  # row, step, thread, neighbour
    sums = np.zeros((512, 128), np.float32)
    for step in range(8):
        for neighbour in range(2):
            sums = sums + parts[:, step, :, neighbour]
    warps = np.zeros((512, 32), np.float32)
    warps[:, :4] = shuffled(sums.reshape(512, 4, 32), before_barrier)
    by_hand = shuffled(warps, after_barrier)

    added, factor = np.zeros((512, 2048), np.float32), np.zeros(512, np.float32)
    execute(parse_ir(program.trace["vectorized"].ir), [x, residual, added, factor])
    np.testing.assert_array_equal(added, x + residual)
    np.testing.assert_array_equal(factor, (1 / np.sqrt(by_hand.astype(np.float64))).astype(np.float32))
    mo.md(f"All {factor.size} factors and all {added.size:,} sums have the same bits.")
    return by_hand, squares


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Adding one after the other rounds 2047 times along one chain; here no element goes through more than 15 additions in its thread and
    ten in trees. That is quicker, and closer to the truth:
    """)
    return


@app.cell
def _(by_hand, mo, np, squares):
    exact = squares.sum(axis=1, dtype=np.float64)
    one_by_one = np.cumsum(squares, axis=1, dtype=np.float32)[:, -1]
    errors = {name: np.abs(sums / exact - 1) for name, sums in (("the kernel", by_hand), ("one by one", one_by_one))}
    assert errors["the kernel"].max() < errors["one by one"].max()
    table = "\n".join(f"| {name} | {error.mean():.1e} | {error.max():.1e} |" for name, error in errors.items())
    mo.md(f"| order | relative error, mean | worst |\n|---|---|---|\n{table}")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Try it

    Other shapes have other trees. Choose one, or write another into the cell below: `(rows, columns, dimension that goes)`. Rows of eight
    elements are so short that a warp holds eight of them; a column's elements are not neighbours, so lanes do not meet before the
    barrier has turned them.
    """)
    return


@app.cell
def _(mo):
    shapes = {
        "rows of 8": (4096, 8, 1),
        "rows of 64": (4096, 64, 1),
        "rows of 512": (4096, 512, 1),
        "rows of 16384": (4096, 16384, 1),
        "columns of 512": (512, 4096, 0),
    }
    shape = mo.ui.dropdown(shapes, value="rows of 8", label="reduce")
    shape
    return (shape,)


@app.cell
def _(distances_in, mo, shape, shuffle_tree, xe):
    rows, columns, gone = shape.value
    other = xe.compile(
        f"""
        add {{
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT sum = f32[] add(a, b)
        }}
        ENTRY main {{
          x = f32[{rows},{columns}] parameter(0)
          zero = f32[] constant(0)
          ROOT total = f32[{(columns, rows)[gone]}] reduce(x, zero), dimensions={{{gone}}}, to_apply=add
        }}
        """,
        stage="inlined",
    )
    chosen = [decision.text for decision in other.trace.decisions if decision.topic in ("reduction", "launch")]
    trees = [[f"distances {tree}", shuffle_tree(tree)] for tree in distances_in(other.trace) if tree]
    mo.vstack(["; ".join(chosen), *(part for tree in trees for part in tree)])
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Right at every step

    Sixteen blocks at every stage, against bounds that follow from the ops: a sum of *n* elements may differ by what *n* - 1 roundings can
    do, in whatever order.
    """)
    return


@app.cell
def _(mo, row_sum, xe):
    report = xe.check(row_sum, blocks=16)
    report.raise_if_different()
    mo.plain_text(report.summary)
    return


if __name__ == "__main__":
    app.run()
