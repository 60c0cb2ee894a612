import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="A program of any size")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A program of any size, pass by pass

    `jax.export` writes a function with symbolic sizes as StableHLO. Here it is one head of causal attention, with a batch of `b` and `s`
    tokens. It is compiled once: the passes ask what every size is, where each op runs, and which buffers are needed when.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import xla_emitters as xe

    attention = mo.notebook_dir().parent / "examples" / "causal_attention.mlir"
    program = xe.compile(attention, record="passes")
    program
    return attention, mo, np, program, xe


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Sizes

    Every dimension of every value is a polynomial in the program's symbols. Where a symbol comes from, and what a call checks before it
    computes anything:
    """)
    return


@app.cell
def _(mo, program):
    mo.plain_text(program.compilation.sizes.report())
    return


@app.cell
def _(mo, program):
    from xla_emitters.pipelines.program_listing import list_program

    listing = list_program(program.compilation.at("placed"))
    mo.ui.table(
        [{"op": op.name, "type": op.type, "runs on": op.device, "by": op.function or op.reason} for op in listing.ops],
        selection=None,
    )
    return (listing,)


@app.cell(hide_code=True)
def _(listing, mo):
    mo.md(f"""
    ## Placement

    The table above is the stage `placed`: {len(listing.ops)} ops work on data, on the device. {listing.of_sizes} more compute sizes, on the
    host: a size is needed there, where buffers are allocated and kernels are launched.
    """)
    return


@app.cell
def _(mo, program):
    counts = [(step.name, sum(step.op_counts.values())) for step in program.trace.steps]
    widest = max(count for _, count in counts)
    rows = [f"{name:34} {count:4} {'#' * (60 * count // widest)}" for name, count in counts]
    mo.plain_text("ops after each pass\n" + "\n".join(rows))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## The same bits after every pass

    The IR after any pass runs. This runs all of them, one after the other, and would name the pass that changes a bit.
    """)
    return


@app.cell
def _(np, program, xe):
    rng = np.random.default_rng(0)

    def inputs(b, s):
        """Arrays for the parameters, of this batch and length."""
        sizes = {"b": b, "s": s}
        shapes = [[size.evaluate(sizes) for size in p.shape] for p in program.compilation.sizes.guards.parameters]
        return [rng.standard_normal(shape, np.float32) for shape in shapes]

    verdict = xe.check(program, inputs=inputs(2, 5), stages="passes")
    verdict.raise_if_different()
    verdict.summary
    return (inputs,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## The host program

    What is left at the end calls the runtime by name: it allocates, launches, and frees. A call of the program walks its steps
    instead; this form is what `bundle --abi c` compiles.
    """)
    return


@app.cell
def _(mo, program):
    mo.plain_text(program.compilation.lowering.code("host"))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Buffers over time

    Choose sizes. The program is not compiled again; it runs, and each buffer is a rectangle from the step that makes it to the step that
    frees it. Those that make the peak are orange. Scores are `s` by `s`: twice the tokens are four times their memory.
    """)
    return


@app.cell
def _(mo):
    batch = mo.ui.slider(1, 16, value=2, label="b")
    tokens = mo.ui.slider(1, 64, value=16, label="s")
    mo.hstack([batch, tokens], justify="start")
    return batch, tokens


@app.cell
def _(batch, inputs, mo, program, tokens):
    from xla_emitters.explore.memory_plot import memory_plot

    memory = program.memory(inputs(batch.value, tokens.value))
    mo.vstack([memory_plot(memory), mo.plain_text("\n".join(memory.peak_lines()))])
    return


@app.cell
def _(attention, inputs, program, xe):
    # Peaks at other sizes, of the one compilation. Without the passes that shorten lives all buffers live until the end.
    peaks = {s: program.memory(inputs(2, s)).peak for s in (8, 16, 32, 64)}
    before = xe.compile(attention, stage="lmhlo").memory(inputs(2, 64)).peak
    assert peaks[64] < before
    peaks, before
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Kernels

    A fusion becomes loops over sizes that the host computes. Which of its kernels is launched depends on the sizes: here, on whether
    vectors divide the columns, and on how long a row is.
    """)
    return


@app.cell
def _(mo, program):
    mo.plain_text("\n".join(map(str, program.kernels)))
    return


@app.cell
def _(mo, program):
    mo.plain_text(str(program.compilation.at("loops")))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    All kernels are one PTX module. `program.on("gpu")` runs it through CuPy.
    """)
    return


@app.cell
def _(mo, program):
    mo.plain_text(program.compilation.lowering.ptx)
    return


if __name__ == "__main__":
    app.run()
