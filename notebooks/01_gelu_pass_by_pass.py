import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="GELU, pass by pass")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # GELU, pass by pass

    XLA cuts a model into *fusions*: groups of operations that become one GPU kernel. This notebook takes one fusion, GELU over
    `bf16[6,512,4096]`, from HLO text to PTX, looks at it after every step, runs every step on the CPU, and writes a pass of its own.
    It needs no GPU. Read it from top to bottom; every cell can be changed.
    """)
    return


@app.cell
def _():
    import marimo as mo
    import ml_dtypes
    import numpy as np

    import xla_emitters as xe

    gelu = mo.notebook_dir().parent / "examples" / "gelu.hlo"
    return gelu, ml_dtypes, mo, np, xe


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## All passes

    `compile` takes HLO text and gives a *program*: one or more kernels, and a *trace* of how they came to be. On the left is the
    fusion, on the right the kernel at each stage; choose one above it. Put the mouse on an HLO instruction and see what became of
    it: `%tanh_0` is one op at first, four when the loop is unrolled, and calls of libdevice's `__nv_tanhf` in the end.
    """)
    return


@app.cell
def _(gelu, xe):
    program = xe.compile(gelu, target="h200", stage="llvm-dialect", record="passes")
    program.trace.show()
    return (program,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    What was decided on the way, and why:
    """)
    return


@app.cell
def _(mo, program):
    mo.plain_text(program.explain())
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Who computes what

    The loop's *indexing map* is the heart of the kernel. It says which element a thread computes in which step, and over which
    values its variables run: `th_x` is the thread, `bl_x` the block, `vector_index` the step.
    """)
    return


@app.cell
def _(program):
    from xla_emitters.dialects.context import make_context, parse_ir
    from xla_emitters.dialects.xla_gpu import LoopOp

    emitted = parse_ir(program.trace["xla_gpu"].ir)
    (loop,) = [op for op in emitted.walk() if isinstance(op, LoopOp)]
    loop_map = loop.map
    loop_map
    return loop_map, make_context, parse_ir


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Below are the first 64 elements in the order of memory. A colour is a thread, the number is its step. Each thread takes four
    neighbours, so its four reads become one of eight bytes.
    """)
    return


@app.cell
def _(loop_map):
    from xla_emitters.explore.plots import access_pattern

    access_pattern(loop_map, strides=[512 * 4096, 4096, 1], elements=64, first={"bl_x": 1})
    return (access_pattern,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    It could be otherwise. With this map each thread still takes four elements, but neighbours in memory belong to neighbouring
    threads: no access is wider than one element, while a warp's accesses still touch whole lines.
    """)
    return


@app.cell
def _(access_pattern, xe):
    other_map = xe.IndexingMap.parse("(th_x)[step] -> (step * 16 + th_x), domain: th_x in [0, 15], step in [0, 3]")
    access_pattern(other_map, strides=[1], elements=64)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## One step at a time

    Choose any two points of the trace; the difference between them is what the passes between did. To begin with: how tensors
    become one-dimensional and the three indices of the map become one.
    """)
    return


@app.cell
def _(mo, program):
    steps = {f"{number:2} {step.name}": number for number, step in enumerate(program.trace) if step.ir is not None}
    points = {number: label for label, number in steps.items()}
    flatten = next(number for number, step in enumerate(program.trace) if step.name == "xla-flatten-tensors")
    before = mo.ui.dropdown(steps, value=points[flatten - 1], label="before")
    after = mo.ui.dropdown(steps, value=points[flatten], label="after")
    mo.hstack([before, after], justify="start")
    return after, before


@app.cell
def _(after, before, program):
    program.trace.show_diff(before.value, after.value)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Right at every step

    The CPU executor runs the IR of any stage: every value is a NumPy array over all threads. Here are eight blocks of the grid,
    at every stage, against the reference that evaluates the HLO op by op.
    """)
    return


@app.cell
def _(gelu, mo, xe):
    report = xe.check(gelu, blocks=8)
    report.raise_if_different()
    mo.plain_text(report.summary)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## A pass of your own

    A pass is a Python class. This one contracts a multiplication and an addition into one fused operation, which rounds once
    instead of twice. GPUs are quicker at that, and C compilers do it without asking. XLA does not: the numbers would depend on
    what the compiler happened to see.
    """)
    return


@app.cell
def _(make_context, mo, parse_ir, program):

    from xdsl.pattern_rewriter import (
        GreedyRewritePatternApplier,
        PatternRewriter,
        PatternRewriteWalker,
        RewritePattern,
        op_type_rewrite_pattern,
    )

    from xla_emitters.dialects.mlir import arith, math
    from xla_emitters.dialects.mlir_printer import print_ir
    from xla_emitters.rewrite.kernel_pass import KernelPass

    class MultiplyThenAdd(RewritePattern):
        @op_type_rewrite_pattern
        def match_and_rewrite(self, op: arith.AddfOp, rewriter: PatternRewriter) -> None:
            for product, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                multiply = product.owner
                if isinstance(multiply, arith.MulfOp) and product.has_one_use():
                    rewriter.replace(op, math.FmaOp(multiply.lhs, multiply.rhs, other))
                    rewriter.erase(multiply)
                    return

    class ContractPass(KernelPass):
        name = "contract"

        def apply_to(self, op) -> None:
            PatternRewriteWalker(GreedyRewritePatternApplier([MultiplyThenAdd()])).rewrite_module(op)

    flat = parse_ir(program.trace["flat"].ir)
    contracted = parse_ir(program.trace["flat"].ir)
    ContractPass().apply(make_context(), contracted)
    mo.show_code(position="above")
    return contracted, flat, print_ir


@app.cell
def _(contracted, flat, print_ir):
    from xla_emitters.trace.html import diff_html

    assert "math.fma" in print_ir(contracted)
    diff_html(print_ir(flat), print_ir(contracted), names=("flat", "contracted"))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Does it matter? Both modules run over the same four blocks of random numbers. The passes before this kept every bit; this one
    does not.
    """)
    return


@app.cell
def _(contracted, flat, ml_dtypes, mo, np):
    from xla_emitters.runtime.simt import execute

    x = np.random.default_rng(0).standard_normal((6, 512, 4096), np.float32).astype(ml_dtypes.bfloat16)
    answers = []
    for module in (flat, contracted):
        result = np.zeros_like(x)
        execute(module, [x.reshape(-1), result.reshape(-1)], blocks=range(4))
        answers.append(result.reshape(-1)[: 4 * 512].view(np.uint16))
    different = int((answers[0] != answers[1]).sum())
    assert different > 0
    mo.md(f"**{different} of {4 * 512}** results have other bits.")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Where to go on

    `xla_emitters/pipelines/passes.py` lists all passes, each with the reason for its place. `xla-emitters compile FILE.hlo
    --print-ir-tree-dir DIR` writes what you saw here as files; `xla-emitters-opt -p PASS` runs one pass alone. The next notebooks look at
    kernels whose threads work together: a transpose through shared memory (02), and a reduction in a warp (03).
    """)
    return


if __name__ == "__main__":
    app.run()
