"""THE MAP, second sheet: the lists of passes that a program with unknown sizes goes through, in order, each with the reason for its place.

    StableHLO ─parse_stablehlo─> hlo ─PROGRAM_FUSED─> fusions on buffers ─PROGRAM_LOOPS─> launches ─PROGRAM_HOST─> host program
                                                               each kernel ─PROGRAM_KERNEL─> llvm-dialect ─FOR_TOOLS, LLVM─> ptx
                                     a CPU: fusions ─CPU_LOOPS, PROGRAM_HOST─> host program, each kernel ─CPU_KERNEL─> LLVM

`programs.py`, `program_kernels.py` and `cpu_lowering.py` run these lists. The first sheet, for fusions, is `passes.py`; it also has the
last passes of a kernel, which both systems share.
Source: BladeDISC's pass pipeline (docs/reference/4-dynamic-shapes.md).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.lowering.cpu.cpu_target import cpu_target
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import TO_LLVM, WITH_MAPS, PassRow, with_ops
from xla_emitters.rewrite.pass_table import made

_row = PassRow.plain

_SINGLE_OPS = ("sort", "topk", "reduce_window", "rng_bit_generator", "scatter", "select_and_scatter")
_HAVE_LOOPS = with_ops(*(f"lmhlo.{prefix}{name}" for name in (*_SINGLE_OPS, "top_k") for prefix in ("", "dynamic_")))
"""Programs with an op that may be alone in a kernel (`dynamic/loops/single_op_schedules`)."""


def _has_several_kernels(_: CompileOptions, module: ModuleOp) -> bool:
    """Programs with several modules of a GPU."""
    return sum(op.name == "gpu.module" for op in module.ops) > 1


# Mixed precision, if requested: before all other passes, so that the reference computes the program that is compiled.
PROGRAM_PRECISION: tuple[PassRow, ...] = (
    PassRow(
        lambda o: made("disc-element-type-converter", o.mixed_precision),
        "all other passes, and the reference, see the program with the requested types",
    ),
)

# A program (StableHLO, unknown sizes): HLO to HLO, up to the placement of ops. The stages of a program are named by its own rows.
PROGRAM_GRAPH: tuple[PassRow, ...] = (
    _row("disc-size-cse", "a call that is not made needs not be inlined"),
    _row("disc-inliner", "JAX exports a function for each jit; later passes see one function"),
    _row("disc-number-random-ops", "calls are inlined, so each random op occurs once, and none has been removed yet"),
    _row("disc-unused-function-removal", "removes inlined functions, and checks that only the entry is left", "hlo"),
    _row(
        "xla-remove-no-ops",
        "analyses of sizes and loops then need not handle ops that do nothing; unused functions are gone",
    ),
    _row(
        "disc-loop-invariant",
        "sizes and weights are moved out of loops while they are still tensors",
        wanted=with_ops("hlo.while"),
    ),
    _row(
        "disc-broadcast-simplifier",
        "operands of elementwise ops get one shape, from which later passes learn equal sizes",
    ),
    _row("disc-algebraic-simplifier", "all broadcasts of constants are explicit; no op has a device or a kernel yet"),
    _row(
        "disc-base-gemm",
        "transposes are merged into dots before they get a device or a kernel",
        wanted=with_ops("hlo.dot"),
    ),
    _row(
        "disc-canonicalize-reduction",
        "kernels reduce rows and columns of matrices; the new reshapes need sizes, which are placed below",
        wanted=with_ops("hlo.reduce"),
    ),
    _row(
        "disc-split-large-ops",
        "a kernel's parameters are limited; the parts are placed like any op",
        wanted=with_ops("hlo.concatenate"),
    ),
    _row("disc-shape-optimization", "all shape arithmetic exists; it is deduplicated before it is placed", "graph"),
    _row(
        "disc-gather-slices",
        "sizes are simplified; starts that are data are then placed on the device",
        wanted=with_ops("hlo.real_dynamic_slice"),
    ),
    _row("disc-check-numbers", "the ops that take numbers are final; the new assertions are then placed on the host"),
    _row("disc-placer", "shape arithmetic is complete; from here on every op has a device"),
    _row("disc-element-type-converter", "reductions are of matrices by now; the new conversions are on the device"),
    PassRow(
        lambda o: made("disc-conv-rewriter", o.device),
        "the layout depends on where the convolution runs",
        wanted=with_ops("hlo.convolution", "hlo.dynamic_conv"),
        name="disc-conv-rewriter",
    ),
    _row(
        "disc-transpose-simplifier",
        "all transposes exist, and no paddings are between them yet",
        wanted=with_ops("hlo.dynamic_conv"),
    ),
    _row(
        "disc-gpu-conv-padding",
        "padding is an operand by now, and only the GPU's library restricts it",
        "placed",
        with_ops("hlo.dynamic_conv"),
    ),
)

# Programs with unknown sizes: StableHLO to buffers; each fusion will become one or more kernels.
PROGRAM_FUSED: tuple[PassRow, ...] = (
    *PROGRAM_GRAPH,
    _row("disc-legalize-to-lhlo", "every value gets a buffer; sizes of results become code"),
    _row("disc-placement-fixer", "new copies have no device yet", "lmhlo"),
    _row(
        "disc-free-in-branches",
        "each buffer has an explicit owner, and no aliases yet",
        wanted=with_ops("lmhlo.case"),
    ),
    _row(
        "disc-update-in-place",
        "a branch may own the buffer that it updates by now; an update in place is fused as a loop over its window",
        wanted=with_ops("lmhlo.dynamic_update_slice", "lmhlo.scatter"),
    ),
    _row("disc-fuse-on-buffer", "each op has its device and its buffers; later passes see a kernel as one op"),
    _row(
        "disc-fuse-single-ops",
        "fusions of several ops are final; ops that have loops of their own are in none of them",
        wanted=_HAVE_LOOPS,
    ),
    _row("disc-lower-to-buffer-alias", "copies and reshapes that were not fused need no buffer of their own"),
    _row("disc-localize-small-cpu-buffer", "the remaining lists of sizes move to the stack; aliases are final"),
    _row("disc-buffer-optimization", "uses and aliases are final: each buffer lives as short as possible"),
    _row("disc-remove-dead-buffer", "buffers that aliases and fusions left without a use"),
    _row("disc-dead-temp-buffer-removal", "buffers that are written but never read", "fused"),
)

# Fusions to kernels. The NumPy program of the CPU skips this list: there the ops of a fusion are executed one by one by NumPy.
PROGRAM_LOOPS: tuple[PassRow, ...] = (
    _row(
        "disc-specialize-fusion-with-speculation",
        "fusions are final, and are not loops yet",
    ),
    _row(
        "disc-unify-sizes",
        "loops are written over sizes; the buffers that show which sizes are equal are removed below",
    ),
    _row("disc-lhlo-legalize-to-loop", "the results of fusions are final"),
    _row("disc-input-inline-fusion", "loops exist, so what they read can be computed inside them"),
    _row("disc-remove-dead-buffer", "buffers between the ops of one kernel"),
    _row("disc-dead-temp-buffer-removal", "buffers that only such ops wrote"),
    _row("disc-flatten-memref", "the remaining loads are memory accesses; an index becomes a position"),
    _row(
        "disc-vectorize-accesses",
        "positions show which elements are adjacent, and the loops' bounds what divides them",
        "loops",
    ),
    PassRow(lambda o: made("disc-loop-split", o.device), "loops are final; they become blocks and threads"),
    _row("disc-gpu-kernel-outlining", "a launch's body is complete, and only uses values of the host"),
    _row("disc-revise-gpu-kernel-outlining", "arguments are explicit; those that a kernel cannot use are replaced"),
    _row("disc-merge-equal-kernels", "arguments are final; each kernel that is left is compiled once", "kernels"),
)

# The CPU's list, in place of the one above.
PROGRAM_OPS: tuple[PassRow, ...] = (
    _row(
        "disc-dissolve-fusion", "NumPy computes op by op, so buffers between the ops of a fusion can be freed earlier"
    ),
    _row("disc-buffer-optimization", "buffers inside fusions, which were one use until now"),
)

# The host program, for GPU and CPU.
PROGRAM_HOST: tuple[PassRow, ...] = (
    _row(
        "disc-legalize-lhlo-control-flow",
        "lifetimes were set while a region was one block; a host program has branches",
    ),
    _row("disc-insert-memory-marker", "before passes that may drop memory spaces from types"),
    _row("disc-inject-execution-context", "all calls of the runtime take the context"),
    _row(
        "disc-lower-to-library-calls", "ops that no kernel computes; constants are still ops, which gemm's flag needs"
    ),
    PassRow(
        lambda o: made("disc-convert-const-to-ral", o.constants),
        "the readers of constants are final; their buffers are still allocations",
    ),
    _row("disc-gpu-launch-func-to-ral", "launches are calls of the runtime too, and need the context"),
    _row("disc-convert-memory-marker", "last, because the passes above erase and make allocations", "host"),
)

# Each kernel of a program, on buffers of unknown size, to the LLVM dialect: the first rows, then the same passes as for fusions.
PROGRAM_KERNEL: tuple[PassRow, ...] = (
    _row("xla-canonicalize", "folds the naive code of schedules"),
    _row("xla-cse", "one copy of each index"),
    _row("xla-gpu-optimize-loops", "loops over the elements of a vector become straight-line code"),
    _row("disc-lower-linear-indices", "later passes share quotients, and move them out of loops"),
    _row("xla-canonicalize", "folds products with known sizes"),
    PassRow(
        lambda o: made("disc-lower-memrefs", o.device),
        "loads and stores on pointers; indices have one dimension since flattening",
    ),
    _row(
        "convert-complex-to-standard",
        "complex numbers become two floats, which all later passes handle",
        wanted=with_ops("complex."),
    ),
    _row("xla-canonicalize", "folds casts of indices, and parts of complex numbers"),
    _row("xla-cse", "addresses shared by loads and stores"),
    _row("xla-simplify-arith", "ranges of thread ids decide comparisons"),
    _row("xla-canonicalize", "removes branches on decided conditions"),
    _row("xla-lower-affine", "maps in schedules become arithmetic", wanted=WITH_MAPS),
    _row("disc-step-pointers", "all indices are arithmetic by now, and have no width yet"),
    _row("xla-gpu-convert-index-type", "index arithmetic in the width that the host chose"),
    _row("xla-loop-invariant-code-motion", "partial sums of addresses are moved out of loops"),
    _row("xla-cse", "index arithmetic is explicit only now"),
    *TO_LLVM,
)

# The same for a CPU, by LLVM: a block is one thread, and each call of a kernel runs a range of its blocks.
CPU_LOOPS: tuple[PassRow, ...] = (
    _row(
        "disc-fold-transposes",
        "lifetimes are set, and the transposes that remain get loops below",
        wanted=with_ops("lmhlo.transpose"),
    ),
    _row(
        "disc-fuse-middle-reductions",
        "transposes that a product reads are gone; those before reductions get no loops",
        wanted=with_ops("lmhlo.transpose"),
    ),
    _row("disc-compute-once", "what else a fusion computes is final; what is taken out of it gets loops as well"),
    _row(
        "disc-widen-half-products",
        "products and convolutions are final; the new conversions get loops",
    ),
    PassRow(
        lambda _: made("disc-fuse-single-ops", target="cpu"),
        "the ops for the runtime are final; some of them are fast as loops on a CPU",
        wanted=_HAVE_LOOPS,
        name="disc-fuse-single-ops",
    ),
    _row(
        "disc-unify-sizes",
        "loops are written over sizes; the buffers that show which sizes are equal are removed below",
    ),
    PassRow(lambda _: made("disc-lhlo-legalize-to-loop", target="cpu"), "the results of fusions are final"),
    _row("disc-input-inline-fusion", "loops exist, so what they read can be computed inside them"),
    _row("disc-nest-loops", "all coordinates that elements depend on are known"),
    _row("disc-remove-dead-buffer", "buffers between the ops of one kernel"),
    _row("disc-dead-temp-buffer-removal", "buffers that only such ops wrote"),
    _row("disc-flatten-memref", "the remaining loads are memory accesses; an index becomes a position"),
    PassRow(lambda o: made("disc-loop-split", o.device), "loops are final; their iterations become blocks"),
    _row("disc-gpu-kernel-outlining", "a launch's body is complete, and only uses values of the host"),
    _row("disc-revise-gpu-kernel-outlining", "arguments are explicit; those that a kernel cannot use are replaced"),
    _row(
        "disc-merge-equal-kernels",
        "arguments are final; each kernel that is left is compiled once",
        wanted=_has_several_kernels,
    ),
)
CPU_KERNEL: tuple[PassRow, ...] = (
    _row("disc-blocks-to-loop", "blocks become a loop, which the passes below optimize"),
    _row("disc-reassociate-reductions", "sums are still loops that carry values"),
    _row("disc-block-sums", "additions within a block may be reassociated by now, those of its result may not"),
    _row("xla-canonicalize", "folds the naive code of schedules"),
    _row("xla-cse", "one copy of each index"),
    _row("disc-lower-linear-indices", "later passes share quotients"),
    _row("xla-canonicalize", "folds products with known sizes"),
    _row("disc-unpack-narrow-buffers", "buffers still have types, which tell how elements are stored"),
    PassRow(lambda o: made("disc-lower-memrefs", o.device), "loads and stores on pointers"),
    _row("convert-complex-to-standard", "complex numbers become two floats", wanted=with_ops("complex.")),
    _row("xla-canonicalize", "folds casts of indices, and parts of complex numbers"),
    _row("xla-cse", "addresses shared by loads and stores"),
    _row("xla-lower-affine", "maps in schedules become arithmetic", wanted=WITH_MAPS),
    _row("disc-hoist-divisions", "all divisions exist, and branches are still regions"),
    _row("xla-gpu-convert-index-type", "index arithmetic in 64 bits"),
    PassRow(
        lambda _: made("xla-expand-float-ops", halves=True),
        "narrow floats become integers, tanh and erf polynomials, of halves too",
    ),
    _row(
        "xla-convert-math-to-libdevice",
        "the rest of `math` becomes calls of functions that `lowering/cpu/cpu_functions` has for a CPU",
    ),
    PassRow(
        lambda o: made("disc-widen-half-floats", f16=not cpu_target(o.asked_cpu).converts_f16),
        "conversions around functions exist; LLVM would call functions that no library has",
    ),
    _row("xla-cse", "equal conversions to f32"),
    _row("xla-convert-scf-to-cf", "LLVM has only branches", wanted=with_ops("scf.")),
    PassRow(lambda o: made("xla-lower-to-llvm-gpu", o.device), "LLVM reads one dialect"),
    _row("disc-cpu-entry", "variables of blocks are globals by now"),
    _row("disc-prefer-wide-vectors", "what a kernel computes is final"),
)

# The host program as machine code: after PROGRAM_HOST, on its function alone.
HOST_BY_LLVM: tuple[PassRow, ...] = (
    PassRow(
        lambda _: made("disc-convert-memory-marker", cpu_too=True),
        "the runtime allocates the host's buffers too",
    ),
    _row("xla-convert-scf-to-cf", "a call that fails leaves the function, which is not possible in a region"),
    _row("disc-lower-host-integers", "every other op on buffers becomes a call by name, for which C has no function"),
    _row(
        "disc-rewrite-ral-api",
        "all calls of the runtime exist; their arguments are taken apart while they are buffers",
    ),
    _row("disc-lower-host-memrefs", "the ops that still take buffers only compute with their parts"),
    PassRow(lambda o: made("xla-lower-to-llvm-gpu", o.device), "LLVM reads one dialect"),
)

PROGRAM: tuple[PassRow, ...] = (*PROGRAM_FUSED, *PROGRAM_LOOPS, *PROGRAM_HOST)
RUN_ON_KERNELS: tuple[str, ...] = ("loops", "kernels", "host", "llvm-dialect")
"""The stages of programs that a CPU executes and in which fusions are kernels, or are being turned into kernels."""
CODE_STAGES: tuple[str, ...] = ("ptx", "sass")
"""The stages of programs that are code for a GPU; a compilation stops at the first of them unless another stage is requested."""
ON_KERNELS: tuple[str, ...] = (*RUN_ON_KERNELS, "llvm", *CODE_STAGES)
EXECUTABLE_PROGRAM_STAGES: tuple[str, ...] = (
    "stablehlo",
    *(row.stage for row in (*PROGRAM, *PROGRAM_KERNEL) if row.stage),
)
PROGRAM_STAGES: tuple[str, ...] = (*EXECUTABLE_PROGRAM_STAGES, "llvm", *CODE_STAGES)
ON_TENSORS = frozenset(("stablehlo", "hlo", "graph", "placed"))
KEPT_STAGES = frozenset(("hlo", "placed"))
"""Stages on tensors whose IR is kept beside its text: the graph of a page is that of the first, explanations list the ops of the last."""
"""The stages of programs that are computations on tensors: the NumPy reference runs them."""
