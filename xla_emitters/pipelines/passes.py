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
from dataclasses import dataclass

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
    """One pass of the pipeline: how to make it for a compilation, why it is at this place, and the stage that it ends."""

    make: Callable[[CompileOptions], ModulePass]
    reason: str
    stage: str | None = None

    @staticmethod
    def plain(make: Callable[[], KernelPass], reason: str, stage: str | None = None) -> Row:
        """The row of a pass without options."""
        return Row(lambda _: make(), reason, stage)


_row = Row.plain


# HLO to HLO: afterwards each fusion of ENTRY, and of computations that it runs on the host, is one kernel.
GRAPH: tuple[Row, ...] = (
    _row(FlattenParametersPass, "kernels take arrays: everything after knows parameters by number", "hlo"),
    Row(lambda o: SelectFusionPass(o.fusion or ""), "of what was not asked for, nothing is looked at or refused"),
    _row(RemoveNoOpsPass, "barriers and markers are between what the rows below must see side by side"),
    _row(UnwrapAsyncPass, "what is started runs in place; it may be a call"),
    _row(
        InlineCallsPass, "a host computation is then run by a loop or a branch alone: known is what it may write over"
    ),
    Row(
        lambda o: SplitTritonFusionsPass(o.triton),
        "what XLA gives to Triton becomes fusions as all others, which the rows below then split further",
    ),
    _row(WrapInstructionsPass, "each step is a fusion or has no kernel; constants then have fusions to go into"),
    _row(FuseEntryPass, "constants, bitcasts and copies go into fusions, so that only fusions are left to split"),
    _row(WarnRecomputationPass, "whether ENTRY is one kernel is known, and it is not yet in parts"),
    Row(lambda o: SplitResultsPass(o.hero_rules), "results that no one kernel makes; what is left has one hero"),
    Row(
        lambda o: SplitReductionsPass(o.splits or ()),
        "a reduction that one block cannot do, in two; its parts are as the rows above leave them",
    ),
    _row(SplitScattersPass, "a scatter needs its array in place: another kernel writes it there"),
    _row(InsertCopiesPass, "last, for the rows above decide which fusion makes each result", "graph"),
)

# The last passes of a kernel, shared by both systems: floats, branches, LLVM.
TO_LLVM: tuple[Row, ...] = (
    Row(lambda o: ConvertFloatNvidiaPass(o.device), "instructions for eight-bit floats, where the chip has them"),
    _row(ExpandFloatOpsPass, "integers for narrow floats, f32 tanh and erf as polynomials; libdevice takes the rest"),
    _row(ConvertMathToLibdevicePass, "the rest of `math` calls libdevice; narrow floats go through f32"),
    _row(CsePass, "conversions to f32 of one value"),
    _row(ConvertScfToCfPass, "LLVM has branches only"),
    Row(lambda o: LowerToLlvmGpuPass(o.device), "one dialect for the tools to take", "llvm-dialect"),
)

# xla_gpu to the LLVM dialect, one kernel per module.
KERNEL: tuple[Row, ...] = (
    # One function: subgraphs are inlined into the entry, so that later passes see the whole kernel.
    _row(SimplifyArithPass, "annotates ranges and decides comparisons before anything is moved"),
    _row(CanonicalizePass, "folds what the elemental emitter wrote naively"),
    _row(CsePass, "one load per element, one copy of each index"),
    _row(EraseDeadFunctionsPass, "functions of subgraphs that the hero replaced would block inlining"),
    _row(LowerXlaToScfPass, "combining over a warp becomes calls, which the inliner must count"),
    _row(InlinePass, "single callers and movers of data go into the entry; a function called twice stays"),
    _row(CanonicalizePass, "call boundaries are gone: fold across them"),
    _row(CsePass, "arguments that became equal", "inlined"),
    # Loops become explicit, tensors one-dimensional.
    _row(PeelLoopsPass, "only the last iteration is checked, the others have accesses that vectorise"),
    _row(LowerXlaLoopsToScfPass, "a loop over a map's symbols with its bounds check inside", "scf"),
    _row(PropagateSliceIndicesPass, "callees learn which buffer each tensor is, while arguments still correspond"),
    _row(FlattenTensorsPass, "an index now says where an element lies, which vectorising needs"),
    _row(LoopInvariantCodeMotionPass, "bounds checks that do not depend on the loop leave it, so that ..."),
    _row(UnswitchLoopsPass, "... the branch can go outside: accesses then stand directly in the loop body"),
    _row(LoopInvariantCodeMotionPass, "what the branch held back", "flat"),
    Row(
        lambda o: VectorizeLoadsStoresPass(o.device), "contiguous, aligned accesses of a loop become one", "vectorized"
    ),
    Row(
        lambda _: OptimizeLoopsPass(unroll_in_llvm=True),
        "straight-line code hides latency; it must know the vectors' loops are short. All rows below see a long loop's body once",
    ),
    _row(CanonicalizePass, "the induction variable is constant in each copy"),
    _row(CsePass, "copies of one computation", "unrolled"),
    # Tensors are replaced by pointers; then integers, LLVM.
    _row(ConvertPureCallOpsPass, "calls are no longer free to move: their tensors become memory"),
    Row(lambda o: LowerTensorsPass(o.device), "extract is a load, insert is a store in place"),
    _row(ConvertComplexToStandardPass, "complex numbers become their two parts, which all that follows knows"),
    _row(MergePointersToSameSlicePass, "two names for one buffer become one; then noalias is true"),
    _row(CanonicalizePass, "results of tensor type left empty loops and branches"),
    _row(CsePass, "addresses shared by loads and stores"),
    _row(SimplifyArithPass, "ranges decide what is left of the bounds checks"),
    _row(SimplifyAffinePass, "maps become arithmetic, unsigned where ranges allow"),
    _row(LowerAffinePass, "maps whose sign is not known, with the signed fix-up"),
    _row(ConvertIndexTypePass, "index arithmetic in the width that the module needs: 32 bits nearly always"),
    _row(LoopInvariantCodeMotionPass, "partial sums of addresses leave loops"),
    _row(SymbolDcePass, "functions that were inlined everywhere"),
    _row(CsePass, "index arithmetic is explicit only now"),
    *TO_LLVM,
)


def line_info(kernel: int) -> Row:
    """The row that adds line information to one kernel; `kernel` is its number in the program."""
    return _row(
        lambda: AddLineInfoPass(kernel),
        "the text that it numbers is final, and the kernel not yet in one module with others",
    )


# Needed only by the tools after the last stage; runs on all kernels of a program together.
FOR_TOOLS: tuple[Row, ...] = (
    _row(
        ConvertIdsToCallsPass,
        "MLIR writes ranges of ids as attributes, with which LLVM divides in 16 bits; XLA's are metadata",
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
