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
from xla_emitters.buffers.disc_fold_transposes import DiscFoldTransposesPass
from xla_emitters.buffers.disc_free_in_branches import DiscFreeInBranchesPass
from xla_emitters.buffers.disc_fuse_middle_reductions import DiscFuseMiddleReductionsPass
from xla_emitters.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.buffers.disc_legalize_to_lhlo import DiscLegalizeToLhloPass
from xla_emitters.buffers.disc_localize_small_cpu_buffer import DiscLocalizeSmallCpuBufferPass
from xla_emitters.buffers.disc_lower_to_buffer_alias import DiscLowerToBufferAliasPass
from xla_emitters.buffers.disc_placement_fixer import DiscPlacementFixerPass
from xla_emitters.buffers.disc_remove_dead_buffer import DiscRemoveDeadBufferPass
from xla_emitters.buffers.disc_specialize_fusion_with_speculation import DiscSpecializeFusionWithSpeculationPass
from xla_emitters.buffers.disc_unify_sizes import DiscUnifySizesPass
from xla_emitters.buffers.disc_update_in_place import DiscUpdateInPlacePass
from xla_emitters.graph.disc_base_gemm import DiscBaseGemmPass
from xla_emitters.graph.disc_broadcast_simplifier import DiscBroadcastSimplifierPass
from xla_emitters.graph.disc_canonicalize_reduction import DiscCanonicalizeReductionPass
from xla_emitters.graph.disc_check_numbers import DiscCheckNumbersPass
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
from xla_emitters.lowering.block_sums import BlockSumsPass
from xla_emitters.lowering.blocks_to_loop import BlocksToLoopPass
from xla_emitters.lowering.convert_complex_to_standard import ConvertComplexToStandardPass
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass
from xla_emitters.lowering.convert_math_to_libdevice import ConvertMathToLibdevicePass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.lowering.hoist_divisions import HoistDivisionsPass
from xla_emitters.lowering.host_cpu import host_cpu
from xla_emitters.lowering.host_entry import HostEntryPass
from xla_emitters.lowering.lower_affine import LowerAffinePass
from xla_emitters.lowering.lower_linear_indices import LowerLinearIndicesPass
from xla_emitters.lowering.lower_memrefs import LowerMemrefsPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.prefer_wide_vectors import PreferWideVectorsPass
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
        "all other passes, and the reference, see the program with the requested types",
    ),
)

# A program (StableHLO, unknown sizes): HLO to HLO, up to the placement of ops. The stages of a program are named by its own rows.
PROGRAM_GRAPH: tuple[Row, ...] = (
    _row(DiscInlinerPass, "JAX exports a function for each jit; later passes see one function"),
    _row(DiscNumberRandomOpsPass, "calls are inlined, so each random op occurs once, and none has been removed yet"),
    _row(DiscUnusedFunctionRemovalPass, "removes inlined functions, and checks that only the entry is left", "hlo"),
    _row(
        RemoveNoOpsPass,
        "analyses of sizes and loops then need not handle ops that do nothing; unused functions are gone",
    ),
    _row(DiscLoopInvariantPass, "sizes and weights are moved out of loops while they are still tensors"),
    _row(
        DiscBroadcastSimplifierPass,
        "operands of elementwise ops get one shape, from which later passes learn equal sizes",
    ),
    _row(DiscBaseGemmPass, "transposes are merged into dots before they get a device or a kernel"),
    _row(
        DiscCanonicalizeReductionPass,
        "kernels reduce rows and columns of matrices; the new reshapes need sizes, which are placed below",
    ),
    _row(DiscSplitLargeOpsPass, "a kernel's parameters are limited; the parts are placed like any op"),
    _row(DiscShapeOptimizationPass, "all shape arithmetic exists; it is deduplicated before it is placed", "graph"),
    _row(DiscGatherSlicesPass, "sizes are simplified; starts that are data are then placed on the device"),
    _row(DiscCheckNumbersPass, "the ops that take numbers are final; the new assertions are then placed on the host"),
    _row(DiscPlacerPass, "shape arithmetic is complete; from here on every op has a device"),
    _row(DiscElementTypeConverterPass, "reductions are of matrices by now; the new conversions are on the device"),
    Row(lambda o: DiscConvRewriterPass(o.device), "the layout depends on where the convolution runs"),
    _row(DiscTransposeSimplifierPass, "all transposes exist, and no paddings are between them yet"),
    _row(DiscGpuConvPaddingPass, "padding is an operand by now, and only the GPU's library restricts it", "placed"),
)

# Programs with unknown sizes: StableHLO to buffers; each fusion will become one or more kernels.
PROGRAM_FUSED: tuple[Row, ...] = (
    *PROGRAM_GRAPH,
    _row(DiscLegalizeToLhloPass, "every value gets a buffer; sizes of results become code"),
    _row(DiscPlacementFixerPass, "new copies have no device yet", "lmhlo"),
    _row(DiscFreeInBranchesPass, "each buffer has an explicit owner, and no aliases yet"),
    _row(
        DiscUpdateInPlacePass,
        "a branch may own the buffer that it updates by now; an update in place is fused as a loop over its window",
    ),
    _row(DiscFuseOnBufferPass, "each op has its device and its buffers; later passes see a kernel as one op"),
    _row(DiscLowerToBufferAliasPass, "copies and reshapes that were not fused need no buffer of their own"),
    _row(DiscLocalizeSmallCpuBufferPass, "the remaining lists of sizes move to the stack; aliases are final"),
    _row(DiscBufferOptimizationPass, "uses and aliases are final: each buffer lives as short as possible"),
    _row(DiscRemoveDeadBufferPass, "buffers that aliases and fusions left without a use"),
    _row(DiscDeadTempBufferRemovalPass, "buffers that are written but never read", "fused"),
)

# Fusions to kernels. The NumPy program of the CPU skips this list: there the ops of a fusion are executed one by one by NumPy.
PROGRAM_LOOPS: tuple[Row, ...] = (
    _row(
        DiscSpecializeFusionWithSpeculationPass,
        "fusions are final, and are not loops yet",
    ),
    _row(
        DiscUnifySizesPass,
        "loops are written over sizes; the buffers that show which sizes are equal are removed below",
    ),
    _row(DiscLhloLegalizeToLoopPass, "the results of fusions are final"),
    _row(DiscInputInlineFusionPass, "loops exist, so what they read can be computed inside them"),
    _row(DiscRemoveDeadBufferPass, "buffers between the ops of one kernel"),
    _row(DiscDeadTempBufferRemovalPass, "buffers that only such ops wrote"),
    _row(DiscFlattenMemrefPass, "the remaining loads are memory accesses; an index becomes a position"),
    _row(
        DiscVectorizeAccessesPass,
        "positions show which elements are adjacent, and the loops' bounds what divides them",
        "loops",
    ),
    Row(lambda o: DiscLoopSplitPass(o.device), "loops are final; they become blocks and threads"),
    _row(DiscGpuKernelOutliningPass, "a launch's body is complete, and only uses values of the host"),
    _row(DiscReviseGpuKernelOutliningPass, "arguments are explicit; those that a kernel cannot use are replaced"),
    _row(DiscMergeEqualKernelsPass, "arguments are final; each kernel that is left is compiled once", "kernels"),
)

# The CPU's list, in place of the one above.
PROGRAM_OPS: tuple[Row, ...] = (
    _row(
        DiscDissolveFusionPass, "NumPy computes op by op, so buffers between the ops of a fusion can be freed earlier"
    ),
    _row(DiscBufferOptimizationPass, "buffers inside fusions, which were one use until now"),
)

# The host program, for GPU and CPU.
PROGRAM_HOST: tuple[Row, ...] = (
    _row(
        DiscLegalizeLhloControlFlowPass, "lifetimes were set while a region was one block; a host program has branches"
    ),
    _row(DiscInsertMemoryMarkerPass, "before passes that may drop memory spaces from types"),
    _row(DiscInjectExecutionContextPass, "all calls of the runtime take the context"),
    _row(DiscLowerToLibraryCallsPass, "ops that no kernel computes; constants are still ops, which gemm's flag needs"),
    Row(
        lambda o: DiscConvertConstToRalPass(o.constants),
        "the readers of constants are final; their buffers are still allocations",
    ),
    _row(DiscGpuLaunchFuncToRalPass, "launches are calls of the runtime too, and need the context"),
    _row(DiscConvertMemoryMarkerPass, "last, because the passes above erase and make allocations", "host"),
)

# Each kernel of a program, on buffers of unknown size, to the LLVM dialect: the first rows, then the same passes as for fusions.
PROGRAM_KERNEL: tuple[Row, ...] = (
    _row(CanonicalizePass, "folds the naive code of schedules"),
    _row(CsePass, "one copy of each index"),
    _row(OptimizeLoopsPass, "loops over the elements of a vector become straight-line code"),
    _row(LowerLinearIndicesPass, "later passes share quotients, and move them out of loops"),
    _row(CanonicalizePass, "folds products with known sizes"),
    Row(
        lambda o: LowerMemrefsPass(o.device),
        "loads and stores on pointers; indices have one dimension since flattening",
    ),
    _row(ConvertComplexToStandardPass, "complex numbers become two floats, which all later passes handle"),
    _row(CanonicalizePass, "folds casts of indices, and parts of complex numbers"),
    _row(CsePass, "addresses shared by loads and stores"),
    _row(SimplifyArithPass, "ranges of thread ids decide comparisons"),
    _row(CanonicalizePass, "removes branches on decided conditions"),
    _row(LowerAffinePass, "maps in schedules become arithmetic"),
    _row(StepPointersPass, "all indices are arithmetic by now, and have no width yet"),
    _row(ConvertIndexTypePass, "index arithmetic in the width that the host chose"),
    _row(LoopInvariantCodeMotionPass, "partial sums of addresses are moved out of loops"),
    _row(CsePass, "index arithmetic is explicit only now"),
    *TO_LLVM,
)

# The same for a CPU, by LLVM: a block is one thread, and each call of a kernel runs a range of its blocks.
CPU_LOOPS: tuple[Row, ...] = (
    _row(DiscFoldTransposesPass, "lifetimes are set, and the transposes that remain get loops below"),
    _row(
        DiscFuseMiddleReductionsPass, "transposes that a product reads are gone; those before reductions get no loops"
    ),
    _row(DiscWidenHalfProductsPass, "products and convolutions are final; the new conversions get loops"),
    _row(DiscFuseForCpuPass, "the ops for the runtime are final; some of them are fast as loops on a CPU"),
    _row(
        DiscUnifySizesPass,
        "loops are written over sizes; the buffers that show which sizes are equal are removed below",
    ),
    _row(lambda: DiscLhloLegalizeToLoopPass(target="cpu"), "the results of fusions are final"),
    _row(DiscInputInlineFusionPass, "loops exist, so what they read can be computed inside them"),
    _row(DiscNestLoopsPass, "all coordinates that elements depend on are known"),
    _row(DiscRemoveDeadBufferPass, "buffers between the ops of one kernel"),
    _row(DiscDeadTempBufferRemovalPass, "buffers that only such ops wrote"),
    _row(DiscFlattenMemrefPass, "the remaining loads are memory accesses; an index becomes a position"),
    Row(lambda o: DiscLoopSplitPass(o.device), "loops are final; their iterations become blocks"),
    _row(DiscGpuKernelOutliningPass, "a launch's body is complete, and only uses values of the host"),
    _row(DiscReviseGpuKernelOutliningPass, "arguments are explicit; those that a kernel cannot use are replaced"),
    _row(DiscMergeEqualKernelsPass, "arguments are final; each kernel that is left is compiled once"),
)
CPU_KERNEL: tuple[Row, ...] = (
    _row(BlocksToLoopPass, "blocks become a loop, which the passes below optimize"),
    _row(ReassociateReductionsPass, "sums are still loops that carry values"),
    _row(BlockSumsPass, "additions within a block may be reassociated by now, those of its result may not"),
    _row(CanonicalizePass, "folds the naive code of schedules"),
    _row(CsePass, "one copy of each index"),
    _row(LowerLinearIndicesPass, "later passes share quotients"),
    _row(CanonicalizePass, "folds products with known sizes"),
    _row(UnpackNarrowBuffersPass, "buffers still have types, which tell how elements are stored"),
    Row(lambda o: LowerMemrefsPass(o.device), "loads and stores on pointers"),
    _row(ConvertComplexToStandardPass, "complex numbers become two floats"),
    _row(CanonicalizePass, "folds casts of indices, and parts of complex numbers"),
    _row(CsePass, "addresses shared by loads and stores"),
    _row(LowerAffinePass, "maps in schedules become arithmetic"),
    _row(HoistDivisionsPass, "all divisions exist, and branches are still regions"),
    _row(ConvertIndexTypePass, "index arithmetic in 64 bits"),
    _row(ExpandFloatOpsPass, "narrow floats become integers, f32 tanh and erf polynomials"),
    _row(
        ConvertMathToLibdevicePass,
        "the rest of `math` becomes calls of functions that `lowering/host_functions` has for a CPU",
    ),
    Row(
        lambda o: WidenHalfFloatsPass(f16=not host_cpu(o.cpu_features).converts_f16),
        "conversions around functions exist; LLVM would call functions that no library has",
    ),
    _row(CsePass, "equal conversions to f32"),
    _row(ConvertScfToCfPass, "LLVM has only branches"),
    Row(lambda o: LowerToLlvmGpuPass(o.device), "LLVM reads one dialect"),
    _row(HostEntryPass, "variables of blocks are globals by now"),
    _row(PreferWideVectorsPass, "what a kernel computes is final"),
)

# The host program as machine code: after PROGRAM_HOST, on its function alone.
HOST_BY_LLVM: tuple[Row, ...] = (
    _row(
        lambda: DiscConvertMemoryMarkerPass(cpu_too=True),
        "the runtime allocates the host's buffers too",
    ),
    _row(ConvertScfToCfPass, "a call that fails leaves the function, which is not possible in a region"),
    _row(DiscDirectCallsPass, "calls still have their types; those that remain need the runtime"),
    _row(
        DiscRewriteRalApiPass,
        "all calls of the runtime exist; their arguments are taken apart while they are buffers",
    ),
    _row(DiscLowerHostMemrefsPass, "the ops that still take buffers only compute with their parts"),
    Row(lambda o: LowerToLlvmGpuPass(o.device), "LLVM reads one dialect"),
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
