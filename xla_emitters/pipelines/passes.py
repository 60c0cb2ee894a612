"""THE MAP: the lists of passes that a fusion goes through, in order, each with the reason for its place.

    HLO text ─parse_hlo─> hlo ─GRAPH─> hlo, one fusion a kernel ─emit_fusion─> xla_gpu ─KERNEL─> llvm-dialect
                                                                                       ─FOR_TOOLS, LLVM─> ptx

`compiler.py` runs these lists. The lists of programs with unknown sizes are the map's second sheet, `program_passes.py`. Rows name their
passes, which are loaded when a compilation makes them: a command loads the passes that it runs. The order of passes is written nowhere
else; `pass_lists.py` inserts those of plugins. A stage (`--stage scf`) is the boundary after one of the rows.
Source: seed document, "Compilation pipeline"; XLA emitter_base.cc; the stages are those of `docs/walk.md`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xla_emitters.dialects.quick_op import walk
from xla_emitters.pipelines.options import TOOL_STAGES, CompileOptions
from xla_emitters.rewrite.pass_table import made
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from xla_emitters.pipelines.recorder import Recorder

Wanted = Callable[[CompileOptions, ModuleOp], bool]
"""Whether a pass has anything to do in a module."""


@dataclass(frozen=True)
class PassRow:
    """One pass of the pipeline: how to make it for a compilation, why it is at this place, and the stage that it ends.

    how     the pass for these options, but for `CompileOptions.pass_options`, which `make` adds
    wanted  the pass changes no module, and says nothing of any, for which this is False: it is then neither loaded nor run, but recorded
            under its `name`. None: it always runs
    """

    how: Callable[[CompileOptions], ModulePass]
    reason: str
    stage: str | None = None
    wanted: Wanted | None = None
    name: str = ""

    def make(self, options: CompileOptions) -> ModulePass:
        """The pass for these options."""
        made = self.how(options)
        given = {field: value for name, field, value in options.pass_options if name == made.name}
        return replace(made, **given) if given else made

    def run(self, options: CompileOptions, recorder: Recorder, context: Context, module: ModuleOp) -> None:
        """Runs the pass on a module, or records that there was nothing to do."""
        start = time.perf_counter()
        has_options = any(name == self.name for name, _, _ in options.pass_options)
        if self.wanted is None or has_options or self.wanted(options, module):
            recorder.run(self.make(options), self.stage, context, module)
        else:
            recorder.pass_over(self.name, self.stage, module, time.perf_counter() - start)

    @staticmethod
    def plain(name: str, reason: str, stage: str | None = None, wanted: Wanted | None = None) -> PassRow:
        """The row of the pass of that name, without options. Its file is loaded when the row is made."""
        return PassRow(lambda _: made(name), reason, stage, wanted, name)


_row = PassRow.plain


def with_ops(*names: str) -> Wanted:
    """Modules with an op of one of these names, or of a dialect: "complex."."""
    ops, dialects = frozenset(names), tuple(name for name in names if name.endswith("."))

    def has_some(_: CompileOptions, module: ModuleOp) -> bool:
        found = {op.name for op in walk(module)}
        return not ops.isdisjoint(found) or any(name.startswith(dialects) for name in found)

    return has_some


def _of_several(_: CompileOptions, module: ModuleOp) -> bool:
    """Modules whose ENTRY is not one kernel."""
    # Imported here, so that a program compiled before is found without it.
    from xla_emitters.graph.control_computations import is_one_kernel
    from xla_emitters.graph.entry import entry_of

    return not is_one_kernel(entry_of(module))


def _of_more_than_fusions(_: CompileOptions, module: ModuleOp) -> bool:
    """Modules whose ENTRY is not one kernel, with an instruction that neither is a step of a program nor renames one's results."""
    from xla_emitters.dialects.hlo.rule_ops import RuleOp
    from xla_emitters.graph.control_computations import is_one_kernel, run_by
    from xla_emitters.graph.entry import entry_of

    entry = entry_of(module)
    steps = ("hlo.fusion", "hlo.get_tuple_element", "hlo.parameter", "hlo.tuple")
    instructions = (op for computation in run_by(entry) for op in computation.instructions)
    return not is_one_kernel(entry) and any(op.name not in steps and not isinstance(op, RuleOp) for op in instructions)


def _reads_a_fusion(_: CompileOptions, module: ModuleOp) -> bool:
    """Modules with a fusion that reads the result of another one."""
    return any(
        isinstance(operand.owner, Operation) and operand.owner.name == op.name
        for op in walk(module)
        if op.name == "hlo.fusion"
        for operand in op.operands
    )


def _takes_tuples(_: CompileOptions, module: ModuleOp) -> bool:
    """Modules whose ENTRY has a parameter that is a tuple."""
    from xla_emitters.graph.entry import entry_of

    return any(isinstance(parameter.result.type, TupleType) for parameter in entry_of(module).parameters)


def _by_rules(options: CompileOptions, module: ModuleOp) -> bool:
    """Modules of several kernels, unless XLA's choices are asked for."""
    return options.tune != "xla" and _of_several(options, module)


def _may_be_for_others(_: CompileOptions, module: ModuleOp) -> bool:
    """Modules with a fusion that says what compiles it, or that has an op that only a library computes."""
    from xla_emitters.dialects.hlo.computation import FusionOp
    from xla_emitters.dialects.hlo.rule_ops import RuleOp
    from xla_emitters.graph.control_computations import control_computations

    found = list(walk(module))
    holders = {op.parent_op() for op in found if isinstance(op, RuleOp)}
    if any(isinstance(op, FusionOp) and "backend_config" in op.attributes for op in found):
        return True
    return bool(holders) and not holders.issubset(control_computations(module))


def _converts_narrow_floats(_: CompileOptions, module: ModuleOp) -> bool:
    """Kernels with a conversion from or to floats of at most eight bits."""
    from xla_emitters.lowering.narrow_floats import is_narrow

    return any(
        is_narrow(op.operands[0].type) or is_narrow(op.results[0].type)
        for op in walk(module)
        if op.name in ("arith.extf", "arith.truncf")
    )


def _of_several_symbols(_: CompileOptions, module: ModuleOp) -> bool:
    """Kernels with more than their entry."""
    return module.body.block.first_op is not module.body.block.last_op


WITH_MAPS = with_ops("affine.apply", "xla_gpu.apply_indexing")
_CALLS = with_ops("func.call", "xla_gpu.pure_call")
_STARTS = ("async", "copy", "all_reduce", "all_gather", "collective_permute")


# HLO to HLO: afterwards each fusion of ENTRY, and of computations that it runs on the host, is one kernel.
GRAPH: tuple[PassRow, ...] = (
    _row(
        "xla-flatten-parameters",
        "kernels take arrays; all later passes refer to parameters by number",
        "hlo",
        wanted=_takes_tuples,
    ),
    PassRow(
        lambda o: made("xla-select-fusion", o.fusion or ""),
        "first, so that the other fusions are neither analysed nor refused",
        wanted=lambda o, _: bool(o.fusion),
        name="xla-select-fusion",
    ),
    _row(
        "xla-unwrap-async",
        "asynchronous instructions become plain ones, among them calls",
        wanted=with_ops(*(f"hlo.{name}_start" for name in _STARTS)),
    ),
    _row(
        "xla-inline-calls",
        "only loops and branches run control computations then, so it is known what each may overwrite",
        wanted=with_ops("hlo.call"),
    ),
    _row(
        "xla-remove-no-ops", "barriers, markers and tuples separate instructions that the rows below must see together"
    ),
    PassRow(
        lambda o: made(
            "xla-stitch-rows", o.target, "no" if o.triton != "rows" else "price" if o.tune == "price" else "rule"
        ),
        "calls are inlined, and nothing is split yet that one kernel reads once",
        wanted=lambda o, module: with_ops("hlo.reduce")(o, module) and (o.tune == "price" or _of_several(o, module)),
        name="xla-stitch-rows",
    ),
    PassRow(
        lambda o: made("xla-split-triton-fusions", o.triton),
        "fusions for Triton become ordinary fusions, which the rows below may split further",
        wanted=_may_be_for_others,
        name="xla-split-triton-fusions",
    ),
    _row(
        "xla-split-sorts",
        "sorts inside of fusions are instructions of their own by now; their kernels are fusions",
        wanted=with_ops("hlo.sort"),
    ),
    _row(
        "xla-wrap-instructions",
        "each step is then a fusion or has no kernel, and constants have fusions to move into",
        wanted=_of_more_than_fusions,
    ),
    _row(
        "xla-fuse-entry",
        "constants, bitcasts and copies move into fusions, so that only fusions are left to split",
        wanted=_of_more_than_fusions,
    ),
    PassRow(
        lambda _: made("xla-fuse-loops"),
        "a loop's body holds nothing but fusions, and its initial arrays are the results of some",
        wanted=lambda o, module: _by_rules(o, module) and with_ops("hlo.while")(o, module),
        name="xla-fuse-loops",
    ),
    PassRow(
        lambda o: made("xla-fuse-scans", o.target),
        "fusions have the constants and bitcasts that they read, and the windows of a scan are not merged with others",
        wanted=lambda o, module: (
            _by_rules(o, module) and with_ops("hlo.pad", "hlo.reduce_window", "hlo.slice")(o, module)
        ),
        name="xla-fuse-scans",
    ),
    PassRow(
        lambda o: made("xla-merge-fusions", o.target, o.hero_rules),
        "each fusion has the constants and bitcasts that it reads, and none is split yet that another joins",
        wanted=lambda o, module: _by_rules(o, module) and _reads_a_fusion(o, module),
        name="xla-merge-fusions",
    ),
    _row(
        "xla-warn-recomputation",
        "it is known whether ENTRY is one kernel, and no fusion is split yet",
        wanted=lambda o, module: not _of_several(o, module),
    ),
    PassRow(
        lambda o: made("xla-split-results", o.hero_rules),
        "results that one kernel cannot make are separated; each fusion then has one hero",
        wanted=lambda o, module: o.hero_rules not in ("current", "seed") or with_ops("hlo.tuple")(o, module),
        name="xla-split-results",
    ),
    PassRow(
        lambda o: made("xla-split-reductions", o.splits or ()),
        "a reduction that is too large for a block becomes two; their parts need none of the rows above",
        wanted=lambda o, module: bool(o.splits) or with_ops("hlo.reduce")(o, module),
        name="xla-split-reductions",
    ),
    PassRow(
        lambda o: made("xla-split-results", o.hero_rules),
        "the first part of a reduction may not be a kernel together with the results beside it",
        wanted=lambda o, module: with_ops("hlo.reduce")(o, module) and with_ops("hlo.tuple")(o, module),
        name="xla-split-results",
    ),
    _row(
        "xla-split-scatters",
        "a scatter updates its array in place: another kernel writes the array first",
        wanted=with_ops("hlo.scatter"),
    ),
    _row("xla-insert-copies", "last, because the rows above decide which fusion makes each result", "graph"),
)

# The last passes of a kernel, shared by both systems: floats, branches, LLVM.
TO_LLVM: tuple[PassRow, ...] = (
    PassRow(
        lambda o: made("xla-gpu-convert-float-nvidia", o.device),
        "instructions for eight-bit floats, where the chip has them",
        wanted=_converts_narrow_floats,
        name="xla-gpu-convert-float-nvidia",
    ),
    _row(
        "xla-expand-float-ops",
        "narrow floats become integers, f32 tanh and erf polynomials; libdevice computes the rest",
    ),
    _row("xla-convert-math-to-libdevice", "the rest of `math` calls libdevice; narrow floats go through f32"),
    _row("xla-cse", "equal conversions to f32"),
    _row("xla-convert-scf-to-cf", "LLVM has only branches", wanted=with_ops("scf.")),
    PassRow(lambda o: made("xla-lower-to-llvm-gpu", o.device), "the tools read one dialect", "llvm-dialect"),
)

# xla_gpu to the LLVM dialect, one kernel per module.
KERNEL: tuple[PassRow, ...] = (
    # One function: subgraphs are inlined into the entry, so that later passes see the whole kernel.
    _row("xla-simplify-arith", "annotates ranges and decides comparisons before anything is moved"),
    _row("xla-canonicalize", "folds the naive code of the elemental emitter"),
    _row("xla-cse", "one load per element, one copy of each index"),
    _row("xla-erase-dead-functions", "functions of subgraphs that the hero replaced would block inlining"),
    _row(
        "xla-lower-xla-to-scf",
        "shuffles over a warp become calls, which the inliner must count",
        wanted=with_ops("xla_gpu.predicated_extract", "xla_gpu.predicated_insert", "xla_gpu.shuffle_reduce"),
    ),
    _row(
        "inline",
        "functions with one caller, and those that only move data, are inlined; one that is called twice stays",
    ),
    _row("xla-canonicalize", "call boundaries are gone: fold across them"),
    _row("xla-cse", "arguments that became equal", "inlined"),
    # Loops become explicit, tensors one-dimensional.
    _row(
        "xla-gpu-peel-loops",
        "only the last iteration needs bounds checks; the accesses of the others can be vectorised",
    ),
    _row("xla-lower-xla-loops-to-scf", "a loop over a map's symbols with its bounds check inside", "scf"),
    _row(
        "xla-propagate-slice-indices",
        "callees learn which buffer each tensor is, while arguments still correspond",
        wanted=_CALLS,
    ),
    _row("xla-flatten-tensors", "an index then is an element's position, which vectorising needs"),
    _row(
        "xla-loop-invariant-code-motion",
        "bounds checks that do not depend on the loop are moved out of it, so that ...",
    ),
    _row("xla-unswitch-loops", "... the branch can be moved out too: accesses are then directly in the loop's body"),
    _row("xla-loop-invariant-code-motion", "values that the branch kept in the loop", "flat"),
    PassRow(
        lambda o: made("xla-vectorize-loads-stores", o.device),
        "contiguous, aligned accesses of a loop become one",
        "vectorized",
    ),
    PassRow(
        lambda _: made("xla-gpu-optimize-loops", unroll_in_llvm=True),
        "straight-line code hides latency; vectorised loops are short by now. The rows below see the body of a long loop once",
    ),
    _row("xla-canonicalize", "the induction variable is constant in each copy"),
    _row("xla-cse", "equal computations in the copies", "unrolled"),
    # Tensors are replaced by pointers; then integers, LLVM.
    _row(
        "xla-convert-pure-call-ops",
        "calls are no longer free to move: their tensors become memory",
        wanted=with_ops("xla_gpu.pure_call"),
    ),
    PassRow(lambda o: made("xla-lower-tensors", o.device), "extract is a load, insert is a store in place"),
    _row(
        "convert-complex-to-standard",
        "complex numbers become two floats, which all later passes handle",
        wanted=with_ops("complex."),
    ),
    _row("xla-merge-pointers", "two names for one buffer become one; then noalias is true"),
    _row("xla-canonicalize", "loops and branches without their tensor results may be empty"),
    _row("xla-cse", "addresses shared by loads and stores"),
    _row("xla-simplify-arith", "ranges decide the remaining bounds checks"),
    _row("xla-simplify-affine", "maps become arithmetic, unsigned where ranges allow"),
    _row(
        "xla-lower-affine",
        "the other maps, with a correction for negative operands",
        wanted=WITH_MAPS,
    ),
    _row("xla-gpu-convert-index-type", "index arithmetic in the width that the module needs, nearly always 32 bits"),
    _row("xla-loop-invariant-code-motion", "partial sums of addresses are moved out of loops"),
    _row("symbol-dce", "functions that were inlined everywhere", wanted=_of_several_symbols),
    _row("xla-cse", "index arithmetic is explicit only now"),
    _row("xla-limit-inlining", "what is called how often is final, and LLVM would inline it all", wanted=_CALLS),
    *TO_LLVM,
)


def line_info(kernel: int) -> PassRow:
    """The row that adds line information to one kernel; `kernel` is its number in the program."""
    return PassRow(
        lambda _: made("xla-add-line-info", kernel),
        "the text whose lines it numbers is final, and the kernel is not yet merged with others",
    )


# Needed only by the tools after the last stage; runs on all kernels of a program together.
FOR_TOOLS: tuple[PassRow, ...] = (
    _row(
        "xla-convert-ids-to-calls",
        "MLIR writes ranges of ids as attributes, which make LLVM divide in 16 bits; XLA's are metadata",
    ),
)

# Stages in order; `partition` comes before emission, `llvm`, `ptx` and `sass` after the last pass.
STAGES: tuple[str, ...] = (
    *(row.stage for row in GRAPH if row.stage),
    "partition",
    "xla_gpu",
    *(row.stage for row in KERNEL if row.stage),
    *TOOL_STAGES,
)
EXECUTABLE_STAGES: tuple[str, ...] = tuple(stage for stage in STAGES if stage not in ("partition", *TOOL_STAGES))
"""The stages of IR that the CPU executes; `RUNNABLE_STAGES` has LLVM IR and PTX too, which are read back into IR."""
BY_LLVM = ("llvm", "ptx")
"""The stages whose text LLVM writes, and which a CPU executes."""
RUNNABLE_STAGES: tuple[str, ...] = (*EXECUTABLE_STAGES, *BY_LLVM)
