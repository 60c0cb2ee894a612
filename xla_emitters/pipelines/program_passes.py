"""THE MAP, second sheet: the lists of passes that a program with unknown sizes goes through, in order, each with the reason for its place.

    StableHLO ─parse_stablehlo─> hlo ─PROGRAM_FUSED─> fusions on buffers ─PROGRAM_LOOPS─> launches ─PROGRAM_HOST─> host program
                                                               each kernel ─PROGRAM_KERNEL─> llvm-dialect ─FOR_TOOLS, LLVM─> ptx
                                     a CPU: fusions ─CPU_LOOPS, PROGRAM_HOST─> host program, each kernel ─CPU_KERNEL─> LLVM

`programs.py`, `program_kernels.py` and `program_host.py` run these lists. The first sheet, for fusions, is `passes.py`; it also has the
last passes of a kernel, which both systems share.
Source: BladeDISC's pass pipeline (docs/reference/4-dynamic-shapes.md).
"""

from __future__ import annotations

from xla_emitters.buffers.disc_buffer_optimization import DiscBufferOptimizationPass
from xla_emitters.buffers.disc_dead_temp_buffer_removal import DiscDeadTempBufferRemovalPass
from xla_emitters.buffers.disc_dissolve_fusion import DiscDissolveFusionPass
from xla_emitters.buffers.disc_fold_conv_transposes import DiscFoldConvTransposesPass
from xla_emitters.buffers.disc_free_in_branches import DiscFreeInBranchesPass
from xla_emitters.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.buffers.disc_legalize_to_lhlo import DiscLegalizeToLhloPass
from xla_emitters.buffers.disc_localize_small_cpu_buffer import DiscLocalizeSmallCpuBufferPass
from xla_emitters.buffers.disc_lower_to_buffer_alias import DiscLowerToBufferAliasPass
from xla_emitters.buffers.disc_placement_fixer import DiscPlacementFixerPass
from xla_emitters.buffers.disc_remove_dead_buffer import DiscRemoveDeadBufferPass
from xla_emitters.buffers.disc_specialize_fusion_on_heat import DiscSpecializeFusionOnHeatPass
from xla_emitters.buffers.disc_specialize_fusion_with_speculation import DiscSpecializeFusionWithSpeculationPass
from xla_emitters.buffers.disc_unify_sizes import DiscUnifySizesPass
from xla_emitters.buffers.disc_update_in_place import DiscUpdateInPlacePass
from xla_emitters.graph.disc_base_gemm import DiscBaseGemmPass
from xla_emitters.graph.disc_broadcast_simplifier import DiscBroadcastSimplifierPass
from xla_emitters.graph.disc_canonicalize_reduction import DiscCanonicalizeReductionPass
from xla_emitters.graph.disc_check_windows import DiscCheckWindowsPass
from xla_emitters.graph.disc_conv_rewriter import DiscConvRewriterPass
from xla_emitters.graph.disc_element_type_converter import DiscElementTypeConverterPass
from xla_emitters.graph.disc_gather_slices import DiscGatherSlicesPass
from xla_emitters.graph.disc_gpu_conv_padding import DiscGpuConvPaddingPass
from xla_emitters.graph.disc_inliner import DiscInlinerPass
from xla_emitters.graph.disc_loop_invariant import DiscLoopInvariantPass
from xla_emitters.graph.disc_number_random_ops import DiscNumberRandomOpsPass
from xla_emitters.graph.disc_placer import DiscPlacerPass
from xla_emitters.graph.disc_shape_optimization import DiscShapeOptimizationPass
from xla_emitters.graph.disc_split_large_ops import DiscSplitLargeOpsPass
from xla_emitters.graph.disc_transpose_simplifier import DiscTransposeSimplifierPass
from xla_emitters.graph.disc_unused_function_removal import DiscUnusedFunctionRemovalPass
from xla_emitters.graph.remove_no_ops import RemoveNoOpsPass
from xla_emitters.host.disc_convert_const_to_ral import DiscConvertConstToRalPass
from xla_emitters.host.disc_convert_memory_marker import DiscConvertMemoryMarkerPass
from xla_emitters.host.disc_direct_calls import DiscDirectCallsPass
from xla_emitters.host.disc_gpu_launch_func_to_ral import DiscGpuLaunchFuncToRalPass
from xla_emitters.host.disc_inject_execution_context import DiscInjectExecutionContextPass
from xla_emitters.host.disc_insert_memory_marker import DiscInsertMemoryMarkerPass
from xla_emitters.host.disc_legalize_lhlo_control_flow import DiscLegalizeLhloControlFlowPass
from xla_emitters.host.disc_lower_host_memrefs import DiscLowerHostMemrefsPass
from xla_emitters.host.disc_lower_to_library_calls import DiscLowerToLibraryCallsPass
from xla_emitters.host.disc_rewrite_ral_api import DiscRewriteRalApiPass
from xla_emitters.loops.disc_flatten_memref import DiscFlattenMemrefPass
from xla_emitters.loops.disc_fuse_for_cpu import DiscFuseForCpuPass
from xla_emitters.loops.disc_gpu_kernel_outlining import DiscGpuKernelOutliningPass
from xla_emitters.loops.disc_input_inline_fusion import DiscInputInlineFusionPass
from xla_emitters.loops.disc_lhlo_legalize_to_loop import DiscLhloLegalizeToLoopPass
from xla_emitters.loops.disc_loop_split import DiscLoopSplitPass
from xla_emitters.loops.disc_merge_equal_kernels import DiscMergeEqualKernelsPass
from xla_emitters.loops.disc_nest_loops import DiscNestLoopsPass
from xla_emitters.loops.disc_revise_gpu_kernel_outlining import DiscReviseGpuKernelOutliningPass
from xla_emitters.loops.disc_vectorize_accesses import DiscVectorizeAccessesPass
from xla_emitters.loops.disc_widen_half_products import DiscWidenHalfProductsPass
from xla_emitters.lowering.blocks_to_loop import BlocksToLoopPass
from xla_emitters.lowering.convert_complex_to_standard import ConvertComplexToStandardPass
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass
from xla_emitters.lowering.convert_math_to_libdevice import ConvertMathToLibdevicePass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.lowering.host_entry import HostEntryPass
from xla_emitters.lowering.lower_affine import LowerAffinePass
from xla_emitters.lowering.lower_linear_indices import LowerLinearIndicesPass
from xla_emitters.lowering.lower_memrefs import LowerMemrefsPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.reassociate_reductions import ReassociateReductionsPass
from xla_emitters.lowering.step_pointers import StepPointersPass
from xla_emitters.lowering.unpack_narrow_buffers import UnpackNarrowBuffersPass
from xla_emitters.lowering.widen_half_floats import WidenHalfFloatsPass
from xla_emitters.pipelines.passes import TO_LLVM, Row
from xla_emitters.transforms.canonicalize import CanonicalizePass
from xla_emitters.transforms.cse import CsePass
from xla_emitters.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass
from xla_emitters.transforms.optimize_loops import OptimizeLoopsPass
from xla_emitters.transforms.simplify_arith import SimplifyArithPass

_row = Row.plain

# Mixed precision, if requested: before all other passes, so that the reference computes the program that is compiled.
PROGRAM_PRECISION: tuple[Row, ...] = (
    Row(
        lambda o: DiscElementTypeConverterPass(o.mixed_precision),
        "the program that the rest is about is the one with these types",
    ),
)

# A program (StableHLO, unknown sizes): HLO to HLO, up to the placement of ops. The stages of a program are named by its own rows.
PROGRAM_GRAPH: tuple[Row, ...] = (
    _row(DiscInlinerPass, "JAX exports a function for each jit; passes that follow see one function"),
    _row(
        DiscNumberRandomOpsPass, "calls are inlined: each op with a hidden state is there once, and none is removed yet"
    ),
    _row(DiscUnusedFunctionRemovalPass, "what was inlined everywhere; it checks that the entry alone is left", "hlo"),
    _row(RemoveNoOpsPass, "analyses of sizes and loops need not know ops that do nothing; unused functions are gone"),
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
    _row(DiscCheckWindowsPass, "which ops have windows is final; what it asserts is then placed on the host"),
    _row(DiscPlacerPass, "shape arithmetic is complete: from here every op says where it runs"),
    _row(DiscElementTypeConverterPass, "reductions are of matrices by now; its conversions are data"),
    Row(lambda o: DiscConvRewriterPass(o.device), "the layout depends on where the convolution runs"),
    _row(DiscTransposeSimplifierPass, "transposes are all there; paddings would be between them"),
    _row(DiscGpuConvPaddingPass, "padding is an operand by now, and only the GPU's library is particular", "placed"),
)

# Programs with unknown sizes: StableHLO to buffers; each fusion will become one or more kernels.
PROGRAM_FUSED: tuple[Row, ...] = (
    *PROGRAM_GRAPH,
    _row(DiscLegalizeToLhloPass, "every value gets a buffer; sizes of results become code"),
    _row(DiscPlacementFixerPass, "copies that legalising added have no device yet", "lmhlo"),
    _row(DiscFreeInBranchesPass, "the owner of a buffer is explicit, and nothing is an alias yet"),
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

# Gives hot fusions kernels of their own (`runtime/ral/heat`), before fusions become kernels.
PROGRAM_HEAT: tuple[Row, ...] = (
    _row(DiscSpecializeFusionOnHeatPass, "fusions are final, and one choice is before all that variants add"),
)

# Fusions to kernels. The NumPy program of the CPU skips this list: there the ops of a fusion are executed one by one by NumPy.
PROGRAM_LOOPS: tuple[Row, ...] = (
    _row(
        DiscSpecializeFusionWithSpeculationPass,
        "fusions are final, and in none of their variants are there loops yet; NumPy has no use for them",
    ),
    _row(DiscUnifySizesPass, "loops are written over sizes; what said that they are equal goes with dead buffers"),
    _row(DiscLhloLegalizeToLoopPass, "which ops return something is final: what is fused stays fused"),
    _row(DiscInputInlineFusionPass, "loops are there to compute in what they read"),
    _row(DiscRemoveDeadBufferPass, "buffers between the ops of one kernel"),
    _row(DiscDeadTempBufferRemovalPass, "and those that only such ops wrote"),
    _row(DiscFlattenMemrefPass, "loads that are left are memory accesses: an index says where"),
    _row(
        DiscVectorizeAccessesPass,
        "an index says which elements are neighbours, and bounds of loops what divides it",
        "loops",
    ),
    Row(lambda o: DiscLoopSplitPass(o.device), "loops are as they will be: they become blocks and threads"),
    _row(DiscGpuKernelOutliningPass, "a launch's body is complete; the host only passes values to it"),
    _row(DiscReviseGpuKernelOutliningPass, "arguments are explicit now: only what a kernel can use"),
    _row(
        DiscMergeEqualKernelsPass, "arguments are as they will be; each kernel is compiled once behind this", "kernels"
    ),
)

# The CPU's list, in place of the one above.
PROGRAM_OPS: tuple[Row, ...] = (
    _row(DiscDissolveFusionPass, "fusions are for kernels: what is between two of their ops need not live as long"),
    _row(DiscBufferOptimizationPass, "buffers inside of fusions, which were one use"),
)

# The host program, for GPU and CPU.
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

# Each kernel of a program, on buffers of unknown size, to the LLVM dialect: the first rows, then the same passes as for fusions.
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
    _row(StepPointersPass, "indices are all arithmetic by now, and still without a width"),
    _row(ConvertIndexTypePass, "index arithmetic in the width that the host chose"),
    _row(LoopInvariantCodeMotionPass, "partial sums of addresses leave loops"),
    _row(CsePass, "index arithmetic is explicit only now"),
    *TO_LLVM,
)

# The same for a CPU, by LLVM: a block is one thread, and each call of a kernel runs a range of its blocks.
CPU_LOOPS: tuple[Row, ...] = (
    _row(DiscFoldConvTransposesPass, "lifetimes are set; what it leaves of fusions gets loops"),
    _row(
        DiscWidenHalfProductsPass, "no later pass adds or removes products and convolutions; its conversions get loops"
    ),
    _row(DiscFuseForCpuPass, "which ops are left to the runtime is final; some are loops that a CPU runs well"),
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
    _row(DiscMergeEqualKernelsPass, "arguments are as they will be; each kernel is compiled once behind this"),
)
CPU_KERNEL: tuple[Row, ...] = (
    _row(BlocksToLoopPass, "what follows sees blocks as the loop that they are"),
    _row(ReassociateReductionsPass, "sums are still loops with what they carry"),
    _row(CanonicalizePass, "folds what schedules wrote naively"),
    _row(CsePass, "one copy of each index"),
    _row(LowerLinearIndicesPass, "quotients are shared by what follows"),
    _row(CanonicalizePass, "products with known sizes"),
    _row(UnpackNarrowBuffersPass, "accesses are to buffers still, whose types say how elements are stored"),
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

# The host program as machine code: after PROGRAM_HOST, on its function alone.
HOST_BY_LLVM: tuple[Row, ...] = (
    _row(
        lambda: DiscConvertMemoryMarkerPass(cpu_too=True),
        "the host's buffers are passed to the runtime like all others",
    ),
    _row(ConvertScfToCfPass, "a call that fails leaves the function, which no region does"),
    _row(DiscDirectCallsPass, "calls still have their types, and what is left of them after it needs the runtime"),
    _row(
        DiscRewriteRalApiPass,
        "all calls of the runtime are there; their arguments are taken apart while they are buffers",
    ),
    _row(DiscLowerHostMemrefsPass, "no op takes a buffer any more but those that compute with its parts"),
    Row(lambda o: LowerToLlvmGpuPass(o.device), "one dialect for LLVM to take"),
)

PROGRAM: tuple[Row, ...] = (*PROGRAM_FUSED, *PROGRAM_LOOPS, *PROGRAM_HOST)
RUN_ON_KERNELS: tuple[str, ...] = ("loops", "kernels", "host", "llvm-dialect")
"""The stages of programs that a CPU executes and in which fusions are kernels, or are being turned into kernels."""
CODE_STAGES: tuple[str, ...] = ("ptx", "sass")
"""The stages of programs that are code for a GPU; a compilation stops at the first of them unless another stage is requested."""
ON_KERNELS: tuple[str, ...] = (*RUN_ON_KERNELS, *CODE_STAGES)
EXECUTABLE_PROGRAM_STAGES: tuple[str, ...] = (
    "stablehlo",
    *(row.stage for row in (*PROGRAM, *PROGRAM_KERNEL) if row.stage),
)
PROGRAM_STAGES: tuple[str, ...] = (*EXECUTABLE_PROGRAM_STAGES, *CODE_STAGES)
ON_TENSORS = frozenset(("stablehlo", "hlo", "graph", "placed"))
"""The stages of programs that are computations on tensors: the NumPy reference runs them."""
