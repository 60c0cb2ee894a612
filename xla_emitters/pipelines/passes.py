"""THE MAP: the lists of passes that a fusion goes through, in order, each with the reason for its place.

    HLO text ─parse_hlo─> hlo ─GRAPH─> hlo, one fusion a kernel ─emit_fusion─> xla_gpu ─KERNEL─> llvm-dialect
                                                                                       ─FOR_TOOLS, LLVM─> ptx

`compiler.py` runs these lists. The lists of programs with unknown sizes are the map's second sheet, `program_passes.py`: a command on HLO
does not load their passes. The order of passes is written nowhere else; `pass_lists.py` inserts those of plugins. A stage
(`--stage scf`) is the boundary after one of the rows.
Source: seed document, "Compilation pipeline"; XLA emitter_base.cc; the stages are those of `docs/walk.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.passes import ModulePass

from xla_emitters.graph.flatten_parameters import FlattenParametersPass
from xla_emitters.graph.fuse_entry import FuseEntryPass
from xla_emitters.graph.inline_calls import InlineCallsPass
from xla_emitters.graph.insert_copies import InsertCopiesPass
from xla_emitters.graph.remove_no_ops import RemoveNoOpsPass
from xla_emitters.graph.select_fusion import SelectFusionPass
from xla_emitters.graph.split_reductions import SplitReductionsPass
from xla_emitters.graph.split_results import SplitResultsPass
from xla_emitters.graph.split_scatters import SplitScattersPass
from xla_emitters.graph.split_triton_fusions import SplitTritonFusionsPass
from xla_emitters.graph.unwrap_async import UnwrapAsyncPass
from xla_emitters.graph.warn_recomputation import WarnRecomputationPass
from xla_emitters.graph.wrap_instructions import WrapInstructionsPass
from xla_emitters.lowering.add_line_info import AddLineInfoPass
from xla_emitters.lowering.convert_complex_to_standard import ConvertComplexToStandardPass
from xla_emitters.lowering.convert_float_nvidia import ConvertFloatNvidiaPass
from xla_emitters.lowering.convert_ids_to_calls import ConvertIdsToCallsPass
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass
from xla_emitters.lowering.convert_math_to_libdevice import ConvertMathToLibdevicePass
from xla_emitters.lowering.convert_pure_call_ops import ConvertPureCallOpsPass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.lowering.limit_inlining import LimitInliningPass
from xla_emitters.lowering.lower_affine import LowerAffinePass
from xla_emitters.lowering.lower_tensors import LowerTensorsPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.merge_pointers_to_same_slice import MergePointersToSameSlicePass
from xla_emitters.lowering.simplify_affine import SimplifyAffinePass
from xla_emitters.pipelines.options import TOOL_STAGES, CompileOptions
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.transforms.canonicalize import CanonicalizePass
from xla_emitters.transforms.cse import CsePass
from xla_emitters.transforms.erase_dead_functions import EraseDeadFunctionsPass
from xla_emitters.transforms.flatten_tensors import FlattenTensorsPass
from xla_emitters.transforms.inline import InlinePass
from xla_emitters.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass
from xla_emitters.transforms.lower_xla_loops_to_scf import LowerXlaLoopsToScfPass
from xla_emitters.transforms.lower_xla_to_scf import LowerXlaToScfPass
from xla_emitters.transforms.optimize_loops import OptimizeLoopsPass
from xla_emitters.transforms.peel_loops import PeelLoopsPass
from xla_emitters.transforms.propagate_slice_indices import PropagateSliceIndicesPass
from xla_emitters.transforms.simplify_arith import SimplifyArithPass
from xla_emitters.transforms.symbol_dce import SymbolDcePass
from xla_emitters.transforms.unswitch_loops import UnswitchLoopsPass
from xla_emitters.transforms.vectorize_loads_stores import VectorizeLoadsStoresPass


@dataclass(frozen=True)
class Row:
    """One pass of the pipeline: how to make it for a compilation, why it is at this place, and the stage that it ends.

    how   the pass for these options, but for `CompileOptions.pass_options`, which `make` adds
    """

    how: Callable[[CompileOptions], ModulePass]
    reason: str
    stage: str | None = None

    def make(self, options: CompileOptions) -> ModulePass:
        """The pass for these options."""
        made = self.how(options)
        given = {field: value for name, field, value in options.pass_options if name == made.name}
        return replace(made, **given) if given else made

    @staticmethod
    def plain(make: Callable[[], KernelPass], reason: str, stage: str | None = None) -> Row:
        """The row of a pass without options."""
        return Row(lambda _: make(), reason, stage)


_row = Row.plain


# HLO to HLO: afterwards each fusion of ENTRY, and of computations that it runs on the host, is one kernel.
GRAPH: tuple[Row, ...] = (
    _row(FlattenParametersPass, "kernels take arrays; all later passes refer to parameters by number", "hlo"),
    Row(
        lambda o: SelectFusionPass(o.fusion or ""), "first, so that the other fusions are neither analysed nor refused"
    ),
    _row(UnwrapAsyncPass, "asynchronous instructions become plain ones, among them calls"),
    _row(InlineCallsPass, "only loops and branches run host computations then, so it is known what each may overwrite"),
    _row(RemoveNoOpsPass, "barriers, markers and tuples separate instructions that the rows below must see together"),
    Row(
        lambda o: SplitTritonFusionsPass(o.triton),
        "fusions for Triton become ordinary fusions, which the rows below may split further",
    ),
    _row(WrapInstructionsPass, "each step is then a fusion or has no kernel, and constants have fusions to move into"),
    _row(FuseEntryPass, "constants, bitcasts and copies move into fusions, so that only fusions are left to split"),
    _row(WarnRecomputationPass, "it is known whether ENTRY is one kernel, and no fusion is split yet"),
    Row(
        lambda o: SplitResultsPass(o.hero_rules),
        "results that one kernel cannot make are separated; each fusion then has one hero",
    ),
    Row(
        lambda o: SplitReductionsPass(o.splits or ()),
        "a reduction that is too large for a block becomes two; their parts need none of the rows above",
    ),
    _row(SplitScattersPass, "a scatter updates its array in place: another kernel writes the array first"),
    _row(InsertCopiesPass, "last, because the rows above decide which fusion makes each result", "graph"),
)

# The last passes of a kernel, shared by both systems: floats, branches, LLVM.
TO_LLVM: tuple[Row, ...] = (
    Row(lambda o: ConvertFloatNvidiaPass(o.device), "instructions for eight-bit floats, where the chip has them"),
    _row(
        ExpandFloatOpsPass, "narrow floats become integers, f32 tanh and erf polynomials; libdevice computes the rest"
    ),
    _row(ConvertMathToLibdevicePass, "the rest of `math` calls libdevice; narrow floats go through f32"),
    _row(CsePass, "equal conversions to f32"),
    _row(ConvertScfToCfPass, "LLVM has only branches"),
    Row(lambda o: LowerToLlvmGpuPass(o.device), "the tools read one dialect", "llvm-dialect"),
)

# xla_gpu to the LLVM dialect, one kernel per module.
KERNEL: tuple[Row, ...] = (
    # One function: subgraphs are inlined into the entry, so that later passes see the whole kernel.
    _row(SimplifyArithPass, "annotates ranges and decides comparisons before anything is moved"),
    _row(CanonicalizePass, "folds the naive code of the elemental emitter"),
    _row(CsePass, "one load per element, one copy of each index"),
    _row(EraseDeadFunctionsPass, "functions of subgraphs that the hero replaced would block inlining"),
    _row(LowerXlaToScfPass, "shuffles over a warp become calls, which the inliner must count"),
    _row(
        InlinePass,
        "functions with one caller, and those that only move data, are inlined; one that is called twice stays",
    ),
    _row(CanonicalizePass, "call boundaries are gone: fold across them"),
    _row(CsePass, "arguments that became equal", "inlined"),
    # Loops become explicit, tensors one-dimensional.
    _row(PeelLoopsPass, "only the last iteration needs bounds checks; the accesses of the others can be vectorised"),
    _row(LowerXlaLoopsToScfPass, "a loop over a map's symbols with its bounds check inside", "scf"),
    _row(PropagateSliceIndicesPass, "callees learn which buffer each tensor is, while arguments still correspond"),
    _row(FlattenTensorsPass, "an index then is an element's position, which vectorising needs"),
    _row(LoopInvariantCodeMotionPass, "bounds checks that do not depend on the loop are moved out of it, so that ..."),
    _row(UnswitchLoopsPass, "... the branch can be moved out too: accesses are then directly in the loop's body"),
    _row(LoopInvariantCodeMotionPass, "values that the branch kept in the loop", "flat"),
    Row(
        lambda o: VectorizeLoadsStoresPass(o.device), "contiguous, aligned accesses of a loop become one", "vectorized"
    ),
    Row(
        lambda _: OptimizeLoopsPass(unroll_in_llvm=True),
        "straight-line code hides latency; vectorised loops are short by now. The rows below see the body of a long loop once",
    ),
    _row(CanonicalizePass, "the induction variable is constant in each copy"),
    _row(CsePass, "equal computations in the copies", "unrolled"),
    # Tensors are replaced by pointers; then integers, LLVM.
    _row(ConvertPureCallOpsPass, "calls are no longer free to move: their tensors become memory"),
    Row(lambda o: LowerTensorsPass(o.device), "extract is a load, insert is a store in place"),
    _row(ConvertComplexToStandardPass, "complex numbers become two floats, which all later passes handle"),
    _row(MergePointersToSameSlicePass, "two names for one buffer become one; then noalias is true"),
    _row(CanonicalizePass, "loops and branches without their tensor results may be empty"),
    _row(CsePass, "addresses shared by loads and stores"),
    _row(SimplifyArithPass, "ranges decide the remaining bounds checks"),
    _row(SimplifyAffinePass, "maps become arithmetic, unsigned where ranges allow"),
    _row(LowerAffinePass, "the other maps, with a correction for negative operands"),
    _row(ConvertIndexTypePass, "index arithmetic in the width that the module needs, nearly always 32 bits"),
    _row(LoopInvariantCodeMotionPass, "partial sums of addresses are moved out of loops"),
    _row(SymbolDcePass, "functions that were inlined everywhere"),
    _row(CsePass, "index arithmetic is explicit only now"),
    _row(LimitInliningPass, "what is called how often is final, and LLVM would inline it all"),
    *TO_LLVM,
)


def line_info(kernel: int) -> Row:
    """The row that adds line information to one kernel; `kernel` is its number in the program."""
    return _row(
        lambda: AddLineInfoPass(kernel),
        "the text whose lines it numbers is final, and the kernel is not yet merged with others",
    )


# Needed only by the tools after the last stage; runs on all kernels of a program together.
FOR_TOOLS: tuple[Row, ...] = (
    _row(
        ConvertIdsToCallsPass,
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
