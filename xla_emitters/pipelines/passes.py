"""THE MAP: the lists of passes that a fusion goes through, in order, each with the reason for its place.

    HLO text ─parse_hlo─> hlo ─GRAPH─> hlo, one fusion a kernel ─emit_fusion─> xla_gpu ─KERNEL─> llvm-dialect
                                                                                       ─FOR_TOOLS, LLVM─> ptx

`compiler.py` runs these lists. No other file knows the order of passes. A stage (`--stage scf`) is the boundary after one of the rows.
Source: seed document, "Compilation pipeline"; XLA emitter_base.cc; the stages are those of `docs/walk.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from xdsl.passes import ModulePass

from xla_emitters.buffers.disc_buffer_optimization import DiscBufferOptimizationPass
from xla_emitters.buffers.disc_dead_temp_buffer_removal import DiscDeadTempBufferRemovalPass
from xla_emitters.buffers.disc_dissolve_fusion import DiscDissolveFusionPass
from xla_emitters.buffers.disc_free_in_branches import DiscFreeInBranchesPass
from xla_emitters.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.buffers.disc_legalize_to_lhlo import DiscLegalizeToLhloPass
from xla_emitters.buffers.disc_localize_small_cpu_buffer import DiscLocalizeSmallCpuBufferPass
from xla_emitters.buffers.disc_lower_to_buffer_alias import DiscLowerToBufferAliasPass
from xla_emitters.buffers.disc_placement_fixer import DiscPlacementFixerPass
from xla_emitters.buffers.disc_remove_dead_buffer import DiscRemoveDeadBufferPass
from xla_emitters.buffers.disc_specialize_fusion_with_speculation import DiscSpecializeFusionWithSpeculationPass
from xla_emitters.buffers.disc_unify_sizes import DiscUnifySizesPass
from xla_emitters.buffers.disc_update_in_place import DiscUpdateInPlacePass
from xla_emitters.errors import UsageError
from xla_emitters.graph.disc_base_gemm import DiscBaseGemmPass
from xla_emitters.graph.disc_broadcast_simplifier import DiscBroadcastSimplifierPass
from xla_emitters.graph.disc_canonicalize_reduction import DiscCanonicalizeReductionPass
from xla_emitters.graph.disc_conv_rewriter import DiscConvRewriterPass
from xla_emitters.graph.disc_element_type_converter import DiscElementTypeConverterPass
from xla_emitters.graph.disc_gather_slices import DiscGatherSlicesPass
from xla_emitters.graph.disc_gpu_conv_padding import DiscGpuConvPaddingPass
from xla_emitters.graph.disc_inliner import DiscInlinerPass
from xla_emitters.graph.disc_loop_invariant import DiscLoopInvariantPass
from xla_emitters.graph.disc_placer import DiscPlacerPass
from xla_emitters.graph.disc_shape_optimization import DiscShapeOptimizationPass
from xla_emitters.graph.disc_split_large_ops import DiscSplitLargeOpsPass
from xla_emitters.graph.disc_transpose_simplifier import DiscTransposeSimplifierPass
from xla_emitters.graph.disc_unused_function_removal import DiscUnusedFunctionRemovalPass
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
from xla_emitters.host.disc_convert_const_to_ral import DiscConvertConstToRalPass
from xla_emitters.host.disc_convert_memory_marker import DiscConvertMemoryMarkerPass
from xla_emitters.host.disc_gpu_launch_func_to_ral import DiscGpuLaunchFuncToRalPass
from xla_emitters.host.disc_inject_execution_context import DiscInjectExecutionContextPass
from xla_emitters.host.disc_insert_memory_marker import DiscInsertMemoryMarkerPass
from xla_emitters.host.disc_legalize_lhlo_control_flow import DiscLegalizeLhloControlFlowPass
from xla_emitters.host.disc_lower_to_library_calls import DiscLowerToLibraryCallsPass
from xla_emitters.loops.disc_flatten_memref import DiscFlattenMemrefPass
from xla_emitters.loops.disc_gpu_kernel_outlining import DiscGpuKernelOutliningPass
from xla_emitters.loops.disc_input_inline_fusion import DiscInputInlineFusionPass
from xla_emitters.loops.disc_lhlo_legalize_to_loop import DiscLhloLegalizeToLoopPass
from xla_emitters.loops.disc_loop_split import DiscLoopSplitPass
from xla_emitters.loops.disc_nest_loops import DiscNestLoopsPass
from xla_emitters.loops.disc_revise_gpu_kernel_outlining import DiscReviseGpuKernelOutliningPass
from xla_emitters.lowering.add_line_info import AddLineInfoPass
from xla_emitters.lowering.blocks_to_loop import BlocksToLoopPass
from xla_emitters.lowering.convert_complex_to_standard import ConvertComplexToStandardPass
from xla_emitters.lowering.convert_float_nvidia import ConvertFloatNvidiaPass
from xla_emitters.lowering.convert_ids_to_calls import ConvertIdsToCallsPass
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass
from xla_emitters.lowering.convert_math_to_libdevice import ConvertMathToLibdevicePass
from xla_emitters.lowering.convert_pure_call_ops import ConvertPureCallOpsPass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.lowering.host_entry import HostEntryPass
from xla_emitters.lowering.lower_affine import LowerAffinePass
from xla_emitters.lowering.lower_linear_indices import LowerLinearIndicesPass
from xla_emitters.lowering.lower_memrefs import LowerMemrefsPass
from xla_emitters.lowering.lower_tensors import LowerTensorsPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.merge_pointers_to_same_slice import MergePointersToSameSlicePass
from xla_emitters.lowering.reassociate_reductions import ReassociateReductionsPass
from xla_emitters.lowering.simplify_affine import SimplifyAffinePass
from xla_emitters.lowering.widen_half_floats import WidenHalfFloatsPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.plugins import load, note, refuse_double
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
    """One pass of the pipeline: how to make it for a compilation, why it is at this place, and the stage that ends with it."""

    make: Callable[[CompileOptions], ModulePass]
    reason: str
    stage: str | None = None


def _row(make: Callable[[], KernelPass], reason: str, stage: str | None = None) -> Row:
    return Row(lambda _: make(), reason, stage)


# HLO to HLO: afterwards each fusion of ENTRY, and of what that runs on the host, is one kernel.
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
    _row(
        SplitReductionsPass, "a reduction that one block cannot do, in two; its parts are as the rows above leave them"
    ),
    _row(SplitScattersPass, "a scatter needs its array in place: another kernel writes it there"),
    _row(InsertCopiesPass, "last, for the rows above decide which fusion makes each result", "graph"),
)

# The end of a kernel's road, of both systems: floats, branches, LLVM.
TO_LLVM: tuple[Row, ...] = (
    Row(lambda o: ConvertFloatNvidiaPass(o.device), "instructions for eight-bit floats, where the chip has them"),
    _row(ExpandFloatOpsPass, "integers for narrow floats, f32 tanh and erf as polynomials; libdevice takes the rest"),
    _row(ConvertMathToLibdevicePass, "the rest of `math` calls libdevice; narrow floats go through f32"),
    _row(CsePass, "conversions to f32 of one value"),
    _row(ConvertScfToCfPass, "LLVM has branches only"),
    Row(lambda o: LowerToLlvmGpuPass(o.device), "one dialect for the tools to take", "llvm-dialect"),
)

# xla_gpu to the LLVM dialect, one kernel a module.
KERNEL: tuple[Row, ...] = (
    # One function: subgraphs go into the entry, so that everything after sees the whole kernel.
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
    _row(OptimizeLoopsPass, "straight-line code hides latency; it must know the vectors' loops are short"),
    _row(CanonicalizePass, "the induction variable is constant in each copy"),
    _row(CsePass, "copies of one computation", "unrolled"),
    # Tensors leave: pointers, integers, LLVM.
    _row(ConvertPureCallOpsPass, "calls are no longer free to move: their tensors become memory"),
    Row(lambda o: LowerTensorsPass(o.device), "extract is a load, insert is a store in place"),
    _row(ConvertComplexToStandardPass, "complex numbers become their two parts, which all that follows knows"),
    _row(MergePointersToSameSlicePass, "two names for one buffer become one; then noalias is true"),
    _row(CanonicalizePass, "results of tensor type left empty loops and branches"),
    _row(CsePass, "addresses shared by loads and stores"),
    _row(SimplifyArithPass, "ranges decide what is left of the bounds checks"),
    _row(CanonicalizePass, "branches on decided conditions"),
    _row(SimplifyAffinePass, "maps become arithmetic, unsigned where ranges allow"),
    _row(LowerAffinePass, "maps whose sign is not known, with the signed fix-up"),
    _row(ConvertIndexTypePass, "index arithmetic in the width that the module needs: 32 bits nearly always"),
    _row(LoopInvariantCodeMotionPass, "partial sums of addresses leave loops"),
    _row(SymbolDcePass, "functions that were inlined everywhere"),
    _row(CsePass, "index arithmetic is explicit only now"),
    *TO_LLVM,
)


def line_info(kernel: int) -> Row:
    """Where lines are asked for: on each kernel by itself; `kernel` is its number in the program."""
    return _row(
        lambda: AddLineInfoPass(kernel),
        "the text that it numbers is final, and the kernel not yet in one module with others",
    )


# What only the tools behind the last stage need; on all kernels of a program together.
FOR_TOOLS: tuple[Row, ...] = (
    _row(
        ConvertIdsToCallsPass,
        "MLIR writes ranges of ids as attributes, with which LLVM divides in 16 bits; XLA's are metadata",
    ),
)

# Mixed precision, where it is asked for: before all others, so that the reference computes what is compiled.
PROGRAM_PRECISION: tuple[Row, ...] = (
    Row(
        lambda o: DiscElementTypeConverterPass(o.mixed_precision),
        "the program that the rest is about is the one with these types",
    ),
)

# A program (StableHLO, sizes unknown): HLO to HLO, up to what runs where. Stages of a program are named by its own rows.
PROGRAM_GRAPH: tuple[Row, ...] = (
    _row(DiscInlinerPass, "JAX exports a function for each jit; passes that follow see one function"),
    _row(DiscUnusedFunctionRemovalPass, "what was inlined everywhere; it checks that the entry alone is left", "hlo"),
    _row(DiscLoopInvariantPass, "sizes and weights leave loops while they are still tensors without buffers"),
    _row(DiscBroadcastSimplifierPass, "elementwise operands have one shape: what follows joins their sizes"),
    _row(DiscBaseGemmPass, "transposes go into dots before a transpose is given a place or a kernel"),
    _row(
        DiscCanonicalizeReductionPass, "kernels know rows and columns of matrices; its reshapes need sizes on the host"
    ),
    _row(DiscSplitLargeOpsPass, "a kernel's parameters are limited; its halves are placed like any op"),
    _row(
        DiscShapeOptimizationPass, "all shape arithmetic is there: computed once, before it is given a place", "graph"
    ),
    _row(DiscGatherSlicesPass, "sizes are simple by now; what it leaves to data is then placed on the device"),
    _row(DiscPlacerPass, "shape arithmetic is complete: from here every op says where it runs"),
    _row(DiscElementTypeConverterPass, "reductions are of matrices by now; its conversions are data"),
    Row(lambda o: DiscConvRewriterPass(o.device), "the layout depends on where the convolution runs"),
    _row(DiscTransposeSimplifierPass, "transposes are all there; paddings would be between them"),
    _row(DiscGpuConvPaddingPass, "padding is an operand by now, and only the GPU's library is particular", "placed"),
)

# Programs with unknown sizes: StableHLO to buffers, of which each fusion will be a kernel or several.
PROGRAM_FUSED: tuple[Row, ...] = (
    *PROGRAM_GRAPH,
    _row(DiscLegalizeToLhloPass, "every value gets a buffer; sizes of results become code"),
    _row(DiscPlacementFixerPass, "copies that legalising added have no device yet", "lmhlo"),
    _row(DiscFreeInBranchesPass, "who owns a buffer is explicit, and nothing is an alias yet"),
    _row(
        DiscUpdateInPlacePass,
        "a branch may own what it updates by now; a fusion of an update is a loop over its window",
    ),
    _row(DiscFuseOnBufferPass, "each op has its device and its buffers; what follows sees a kernel as one op"),
    _row(DiscLowerToBufferAliasPass, "what still copies or reshapes alone needs no buffer of its own"),
    _row(DiscLocalizeSmallCpuBufferPass, "what is left of the lists of sizes; names are final"),
    _row(DiscBufferOptimizationPass, "uses are final, names of one buffer known: each lives as short as can be"),
    _row(DiscRemoveDeadBufferPass, "buffers that aliases and fusions left without a use"),
    _row(DiscDeadTempBufferRemovalPass, "and those that are written but never read", "fused"),
)

# Fusions to kernels. The host program of the CPU's fast road goes without: there a fusion is its ops, each by NumPy.
PROGRAM_LOOPS: tuple[Row, ...] = (
    _row(
        DiscSpecializeFusionWithSpeculationPass,
        "fusions are final, and in none of their variants are there loops yet; NumPy has no use for them",
    ),
    _row(DiscUnifySizesPass, "loops are written over sizes; what said that they are equal goes with dead buffers"),
    _row(DiscLhloLegalizeToLoopPass, "which ops return something is final: what is fused stays fused"),
    _row(DiscInputInlineFusionPass, "loops are there to compute in what they read"),
    _row(DiscRemoveDeadBufferPass, "buffers between the ops of one kernel"),
    _row(DiscDeadTempBufferRemovalPass, "and those that only such ops wrote", "loops"),
    _row(DiscFlattenMemrefPass, "loads that are left are memory accesses: an index says where"),
    Row(lambda o: DiscLoopSplitPass(o.device), "loops are as they will be: they become blocks and threads"),
    _row(DiscGpuKernelOutliningPass, "a launch's body is complete; the host only passes values to it"),
    _row(DiscReviseGpuKernelOutliningPass, "arguments are explicit now: only what a kernel can use", "kernels"),
)

# What the fast road of the CPU has in their place.
PROGRAM_OPS: tuple[Row, ...] = (
    _row(DiscDissolveFusionPass, "fusions are for kernels: what is between two of their ops need not live as long"),
    _row(DiscBufferOptimizationPass, "buffers inside of fusions, which were one use"),
)

# The host program, of both roads.
PROGRAM_HOST: tuple[Row, ...] = (
    _row(DiscLegalizeLhloControlFlowPass, "lifetimes are set while a region is one block; a host program branches"),
    _row(DiscInsertMemoryMarkerPass, "before passes that may drop memory spaces from types"),
    _row(DiscInjectExecutionContextPass, "every call of the runtime takes the context"),
    _row(DiscLowerToLibraryCallsPass, "what no kernel computes; constants are still known by their op"),
    Row(
        lambda o: DiscConvertConstToRalPass(o.constants),
        "the last readers of constants are known; allocations are still theirs",
    ),
    _row(DiscGpuLaunchFuncToRalPass, "launches are library calls by another name, and need the context"),
    _row(DiscConvertMemoryMarkerPass, "last: the passes above erase and make allocations", "host"),
)

# Each kernel of a program, on buffers of unknown size, to the LLVM dialect: what is after its first rows is as for fusions.
PROGRAM_KERNEL: tuple[Row, ...] = (
    _row(CanonicalizePass, "folds what schedules wrote naively"),
    _row(CsePass, "one copy of each index"),
    _row(OptimizeLoopsPass, "the elements of a vector's loop become straight-line code"),
    _row(LowerLinearIndicesPass, "quotients are shared by what follows, and leave loops"),
    _row(CanonicalizePass, "products with known sizes"),
    Row(
        lambda o: LowerMemrefsPass(o.device),
        "loads and stores on pointers; indices have one dimension since flattening",
    ),
    _row(ConvertComplexToStandardPass, "complex numbers become their two parts, which all that follows knows"),
    _row(CanonicalizePass, "casts of indices, parts of numbers just made"),
    _row(CsePass, "addresses shared by loads and stores"),
    _row(SimplifyArithPass, "ranges of thread ids decide comparisons"),
    _row(CanonicalizePass, "branches on decided conditions"),
    _row(LowerAffinePass, "what schedules wrote as maps"),
    _row(ConvertIndexTypePass, "index arithmetic in the width that the host chose"),
    _row(LoopInvariantCodeMotionPass, "partial sums of addresses leave loops"),
    _row(CsePass, "index arithmetic is explicit only now"),
    *TO_LLVM,
)

# The same for a CPU, by LLVM: a block is one thread, and a kernel runs a range of its blocks.
CPU_LOOPS: tuple[Row, ...] = (
    _row(DiscUnifySizesPass, "loops are written over sizes; what said that they are equal goes with dead buffers"),
    _row(lambda: DiscLhloLegalizeToLoopPass(target="cpu"), "which ops return something is final"),
    _row(DiscInputInlineFusionPass, "loops are there to compute in what they read"),
    _row(DiscNestLoopsPass, "all coordinates that elements are computed from are known"),
    _row(DiscRemoveDeadBufferPass, "buffers between the ops of one kernel"),
    _row(DiscDeadTempBufferRemovalPass, "and those that only such ops wrote"),
    _row(DiscFlattenMemrefPass, "loads that are left are memory accesses: an index says where"),
    Row(lambda o: DiscLoopSplitPass(o.device), "loops are as they will be: their iterations become blocks"),
    _row(DiscGpuKernelOutliningPass, "a launch's body is complete; the host only passes values to it"),
    _row(DiscReviseGpuKernelOutliningPass, "arguments are explicit now: only what a kernel can use"),
)
CPU_KERNEL: tuple[Row, ...] = (
    _row(BlocksToLoopPass, "what follows sees blocks as the loop that they are"),
    _row(ReassociateReductionsPass, "sums are still loops with what they carry"),
    _row(CanonicalizePass, "folds what schedules wrote naively"),
    _row(CsePass, "one copy of each index"),
    _row(LowerLinearIndicesPass, "quotients are shared by what follows"),
    _row(CanonicalizePass, "products with known sizes"),
    Row(lambda o: LowerMemrefsPass(o.device), "loads and stores on pointers"),
    _row(ConvertComplexToStandardPass, "complex numbers become their two parts"),
    _row(CanonicalizePass, "casts of indices, parts of numbers just made"),
    _row(CsePass, "addresses shared by loads and stores"),
    _row(LowerAffinePass, "what schedules wrote as maps"),
    _row(ConvertIndexTypePass, "index arithmetic in 64 bits"),
    _row(ExpandFloatOpsPass, "integers for narrow floats, f32 tanh and erf as polynomials"),
    _row(ConvertMathToLibdevicePass, "the rest of `math` becomes calls, which `lowering/host_functions` has for a CPU"),
    _row(WidenHalfFloatsPass, "conversions around functions are there; LLVM would call what is in no library"),
    _row(CsePass, "conversions to f32 of one value"),
    _row(ConvertScfToCfPass, "LLVM has branches only"),
    Row(lambda o: LowerToLlvmGpuPass(o.device), "one dialect for LLVM to take"),
    _row(HostEntryPass, "variables of blocks are globals by now"),
)

PROGRAM: tuple[Row, ...] = (*PROGRAM_FUSED, *PROGRAM_LOOPS, *PROGRAM_HOST)
ON_KERNELS: tuple[str, ...] = ("loops", "kernels", "host", "llvm-dialect", "ptx")
"""The stages of programs in which fusions are kernels, or on their way."""
PROGRAM_STAGES: tuple[str, ...] = (
    "stablehlo",
    *(row.stage for row in (*PROGRAM, *PROGRAM_KERNEL) if row.stage),
    "ptx",
)
ON_TENSORS = frozenset(("stablehlo", "hlo", "graph", "placed"))
"""The stages of programs that are computations of tensors: the NumPy reference runs them."""

# Stages in order; `partition` comes before emission, `llvm`, `ptx` and `sass` after the last pass.
STAGES: tuple[str, ...] = (
    *(row.stage for row in GRAPH if row.stage),
    "partition",
    "xla_gpu",
    *(row.stage for row in KERNEL if row.stage),
    "llvm",
    "ptx",
    "sass",
)
TOOL_STAGES = ("llvm", "ptx", "sass")
"""Those that external tools make, of all kernels together."""
EXECUTABLE_STAGES: tuple[str, ...] = tuple(stage for stage in STAGES if stage not in ("partition", *TOOL_STAGES))


# ------------------------------------------------------------------------------------------------------ passes from outside

LISTS: dict[str, tuple[Row, ...]] = {
    "graph": GRAPH,
    "kernel": KERNEL,
    "program": PROGRAM_FUSED,
    "program-loops": PROGRAM_LOOPS,
    "program-host": PROGRAM_HOST,
    "program-kernel": PROGRAM_KERNEL,
}
"""The lists by name, with the passes of plugins in their places."""


def register_pass(
    make: Callable[[CompileOptions], KernelPass] | type[KernelPass],
    *,
    after: str = "",
    before: str = "",
    of: str = "kernel",
    reason: str = "",
) -> None:
    """Adds a pass from outside the package to a list, beside the pass of that name, or at the boundary of a stage.

    make     the pass's class, or what makes the pass for a compilation
    after    name of a pass that the list has once, or of a stage: "xla-flatten-tensors", "flat"; or else
    before   likewise
    of       the list: "graph" (HLO to HLO), "kernel" (xla_gpu to the LLVM dialect); where sizes are unknown "program" (up to fusions),
             "program-loops" (fusions to launches), "program-host" or "program-kernel" (each kernel, to the LLVM dialect)
    reason   why it is there, for listings
    raises   UsageError for a list or a neighbour that there is not, or that is there more than once
    """
    if of not in LISTS:
        raise UsageError(f"no list of passes '{of}'", stage="plugins", help=f"one of: {', '.join(LISTS)}")
    if bool(after) == bool(before):
        raise UsageError("a pass is placed either after= or before= another", stage="plugins")
    rows, options = LISTS[of], CompileOptions()
    row = Row(lambda o: make() if isinstance(make, type) else make(o), reason)
    added, names = row.make(options), [known.make(options).name for known in rows]
    refuse_double("pass", added.name, names)
    number = _number_of(after or before, rows, names, of) + bool(after)
    if number == len(rows):
        # The last boundary is behind all passes.
        *others, last = rows
        LISTS[of] = (*others, replace(last, stage=None), replace(row, stage=last.stage))
    else:
        LISTS[of] = (*rows[:number], row, *rows[number:])
    note("pass", added.name, added)


def _number_of(neighbour: str, rows: Sequence[Row], names: Sequence[str], of: str) -> int:
    """Which row is the pass, or ends in the stage, of that name. raises UsageError unless it is one"""
    found = [i for i, (row, name) in enumerate(zip(rows, names, strict=True)) if neighbour in (name, row.stage)]
    if not found:
        near = get_close_matches(neighbour, [*names, *(row.stage for row in rows if row.stage)], n=1)
        stages = ", ".join(row.stage for row in rows if row.stage)
        raise UsageError(
            f"no pass or stage '{neighbour}' in the list '{of}'",
            stage="plugins",
            help=f"did you mean '{near[0]}'?" if near else f"its stages: {stages}",
        )
    if len(found) > 1:
        raise UsageError(
            f"the list '{of}' has '{neighbour}' {len(found)} times",
            stage="plugins",
            help="name a stage, or a pass that is there once",
        )
    return found[0]


def rows_of(name: str) -> tuple[Row, ...]:
    """A list with the passes of plugins."""
    load()
    return LISTS[name]


def kernel_rows(options: CompileOptions) -> tuple[Row, ...]:
    """The list "kernel" with the passes of plugins, or the passes that `options.pipeline` has in its place.

    raises  UsageError for a stage that is no boundary of that pipeline
    """
    if options.pipeline is None:
        rows = rows_of("kernel")
    else:
        rows = tuple(Row(lambda _, each=each: each, "asked for") for each in options.pipeline)
        if rows:
            rows = (*rows[:-1], replace(rows[-1], stage="llvm-dialect"))
        kept = [stage for stage in STAGES if stage not in {row.stage for row in KERNEL[:-1]}]
        if options.stage not in kept:
            raise UsageError(
                f"the pipeline has no stage '{options.stage}'", stage="compile", help=f"one of: {', '.join(kept)}"
            )
    ends = [number for number, row in enumerate(rows, 1) if row.stage == options.stage]
    return rows[: ends[0]] if ends else rows if options.stage in TOOL_STAGES else ()
