"""Every pass by its name, and the file that has it: a pass is loaded when it is first made.

made("xla-select-fusion", "fusion.3")        the pass; its class is the file's stem in CamelCase with `Pass` at its end
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from xdsl.passes import ModulePass

# name on the command line -> (room, stem), the name without `xla-` and `gpu-`; the class is the stem in CamelCase with `Pass` at its end.
PASSES: dict[str, tuple[str, str]] = {
    "convert-complex-to-standard": ("lowering", "convert_complex_to_standard"),
    "disc-algebraic-simplifier": ("dynamic.passes", "disc_algebraic_simplifier"),
    "disc-base-gemm": ("dynamic.passes", "disc_base_gemm"),
    "disc-block-sums": ("lowering.cpu", "disc_block_sums"),
    "disc-blocks-to-loop": ("lowering.cpu", "disc_blocks_to_loop"),
    "disc-broadcast-simplifier": ("dynamic.passes", "disc_broadcast_simplifier"),
    "disc-buffer-optimization": ("dynamic.buffers", "disc_buffer_optimization"),
    "disc-canonicalize-reduction": ("dynamic.passes", "disc_canonicalize_reduction"),
    "disc-check-numbers": ("dynamic.passes", "disc_check_numbers"),
    "disc-compute-once": ("dynamic.buffers", "disc_compute_once"),
    "disc-conv-rewriter": ("dynamic.passes", "disc_conv_rewriter"),
    "disc-convert-const-to-ral": ("dynamic.host", "disc_convert_const_to_ral"),
    "disc-convert-memory-marker": ("dynamic.host", "disc_convert_memory_marker"),
    "disc-dead-temp-buffer-removal": ("dynamic.buffers", "disc_dead_temp_buffer_removal"),
    "disc-dissolve-fusion": ("dynamic.buffers", "disc_dissolve_fusion"),
    "disc-element-type-converter": ("dynamic.passes", "disc_element_type_converter"),
    "disc-flatten-memref": ("dynamic.loops", "disc_flatten_memref"),
    "disc-fuse-single-ops": ("dynamic.loops", "disc_fuse_single_ops"),
    "disc-fold-transposes": ("dynamic.buffers", "disc_fold_transposes"),
    "disc-free-in-branches": ("dynamic.buffers", "disc_free_in_branches"),
    "disc-fuse-middle-reductions": ("dynamic.buffers", "disc_fuse_middle_reductions"),
    "disc-fuse-on-buffer": ("dynamic.buffers", "disc_fuse_on_buffer"),
    "disc-gather-slices": ("dynamic.passes", "disc_gather_slices"),
    "disc-gpu-conv-padding": ("dynamic.passes", "disc_gpu_conv_padding"),
    "disc-gpu-kernel-outlining": ("dynamic.loops", "disc_gpu_kernel_outlining"),
    "disc-gpu-launch-func-to-ral": ("dynamic.host", "disc_gpu_launch_func_to_ral"),
    "disc-hoist-divisions": ("lowering.cpu", "disc_hoist_divisions"),
    "disc-cpu-entry": ("lowering.cpu", "disc_cpu_entry"),
    "disc-input-inline-fusion": ("dynamic.loops", "disc_input_inline_fusion"),
    "disc-inject-execution-context": ("dynamic.host", "disc_inject_execution_context"),
    "disc-inliner": ("dynamic.passes", "disc_inliner"),
    "disc-insert-memory-marker": ("dynamic.host", "disc_insert_memory_marker"),
    "disc-legalize-lhlo-control-flow": ("dynamic.host", "disc_legalize_lhlo_control_flow"),
    "disc-legalize-to-lhlo": ("dynamic.buffers", "disc_legalize_to_lhlo"),
    "disc-lhlo-legalize-to-loop": ("dynamic.loops", "disc_lhlo_legalize_to_loop"),
    "disc-localize-small-cpu-buffer": ("dynamic.buffers", "disc_localize_small_cpu_buffer"),
    "disc-loop-invariant": ("dynamic.passes", "disc_loop_invariant"),
    "disc-loop-split": ("dynamic.loops", "disc_loop_split"),
    "disc-lower-host-integers": ("dynamic.host", "disc_lower_host_integers"),
    "disc-lower-host-memrefs": ("dynamic.host", "disc_lower_host_memrefs"),
    "disc-lower-linear-indices": ("lowering", "disc_lower_linear_indices"),
    "disc-lower-memrefs": ("lowering", "disc_lower_memrefs"),
    "disc-lower-to-buffer-alias": ("dynamic.buffers", "disc_lower_to_buffer_alias"),
    "disc-lower-to-library-calls": ("dynamic.host", "disc_lower_to_library_calls"),
    "disc-merge-equal-kernels": ("dynamic.loops", "disc_merge_equal_kernels"),
    "disc-nest-loops": ("dynamic.loops", "disc_nest_loops"),
    "disc-number-random-ops": ("dynamic.passes", "disc_number_random_ops"),
    "disc-placement-fixer": ("dynamic.buffers", "disc_placement_fixer"),
    "disc-placer": ("dynamic.passes", "disc_placer"),
    "disc-prefer-wide-vectors": ("lowering.cpu", "disc_prefer_wide_vectors"),
    "disc-reassociate-reductions": ("lowering.cpu", "disc_reassociate_reductions"),
    "disc-remove-dead-buffer": ("dynamic.buffers", "disc_remove_dead_buffer"),
    "disc-revise-gpu-kernel-outlining": ("dynamic.loops", "disc_revise_gpu_kernel_outlining"),
    "disc-rewrite-ral-api": ("dynamic.host", "disc_rewrite_ral_api"),
    "disc-shape-optimization": ("dynamic.passes", "disc_shape_optimization"),
    "disc-size-cse": ("dynamic.passes", "disc_size_cse"),
    "disc-specialize-fusion-with-speculation": ("dynamic.buffers", "disc_specialize_fusion_with_speculation"),
    "disc-split-large-ops": ("dynamic.passes", "disc_split_large_ops"),
    "disc-step-pointers": ("lowering.cpu", "disc_step_pointers"),
    "disc-transpose-simplifier": ("dynamic.passes", "disc_transpose_simplifier"),
    "disc-unify-sizes": ("dynamic.buffers", "disc_unify_sizes"),
    "disc-update-in-place": ("dynamic.buffers", "disc_update_in_place"),
    "disc-widen-half-floats": ("lowering.cpu", "disc_widen_half_floats"),
    "disc-unpack-narrow-buffers": ("lowering.cpu", "disc_unpack_narrow_buffers"),
    "disc-unused-function-removal": ("dynamic.passes", "disc_unused_function_removal"),
    "disc-vectorize-accesses": ("dynamic.loops", "disc_vectorize_accesses"),
    "disc-widen-half-products": ("dynamic.loops", "disc_widen_half_products"),
    "inline": ("transforms", "inline"),
    "symbol-dce": ("transforms", "symbol_dce"),
    "xla-add-line-info": ("lowering", "add_line_info"),
    "xla-canonicalize": ("transforms", "canonicalize"),
    "xla-convert-ids-to-calls": ("lowering", "convert_ids_to_calls"),
    "xla-convert-math-to-libdevice": ("lowering", "convert_math_to_libdevice"),
    "xla-convert-pure-call-ops": ("lowering", "convert_pure_call_ops"),
    "xla-convert-scf-to-cf": ("lowering", "convert_scf_to_cf"),
    "xla-cse": ("transforms", "cse"),
    "xla-erase-dead-functions": ("transforms", "erase_dead_functions"),
    "xla-expand-float-ops": ("lowering", "expand_float_ops"),
    "xla-flatten-parameters": ("graph", "flatten_parameters"),
    "xla-flatten-tensors": ("transforms", "flatten_tensors"),
    "xla-from-upstream-spelling": ("transforms", "from_upstream_spelling"),
    "xla-fuse-entry": ("graph", "fuse_entry"),
    "xla-fuse-loops": ("graph", "fuse_loops"),
    "xla-gpu-convert-float-nvidia": ("lowering", "convert_float_nvidia"),
    "xla-gpu-convert-index-type": ("lowering", "convert_index_type"),
    "xla-gpu-insert-pdl": ("transforms", "insert_pdl"),
    "xla-gpu-optimize-loops": ("transforms", "optimize_loops"),
    "xla-inline-calls": ("graph", "inline_calls"),
    "xla-insert-copies": ("graph", "insert_copies"),
    "xla-fuse-scans": ("pipelines", "fuse_scans"),
    "xla-merge-fusions": ("pipelines", "merge_fusions"),
    "xla-loop-invariant-code-motion": ("transforms", "loop_invariant_code_motion"),
    "xla-limit-inlining": ("lowering", "limit_inlining"),
    "xla-lower-affine": ("lowering", "lower_affine"),
    "xla-lower-pdl-wait": ("lowering", "lower_pdl_wait"),
    "xla-lower-tensors": ("lowering", "lower_tensors"),
    "xla-lower-to-llvm-gpu": ("lowering", "lower_to_llvm_gpu"),
    "xla-remove-no-ops": ("graph", "remove_no_ops"),
    "xla-replace-kernel": ("transforms", "replace_kernel"),
    "xla-select-fusion": ("graph", "select_fusion"),
    "xla-split-sorts": ("pipelines", "split_sorts"),
    "xla-split-reductions": ("graph", "split_reductions"),
    "xla-split-results": ("graph", "split_results"),
    "xla-split-scatters": ("graph", "split_scatters"),
    "xla-split-triton-fusions": ("graph", "split_triton_fusions"),
    "xla-gpu-peel-loops": ("transforms", "peel_loops"),
    "xla-lower-xla-to-scf": ("transforms", "lower_xla_to_scf"),
    "xla-lower-xla-loops-to-scf": ("transforms", "lower_xla_loops_to_scf"),
    "xla-merge-pointers": ("lowering", "merge_pointers"),
    "xla-propagate-slice-indices": ("transforms", "propagate_slice_indices"),
    "xla-simplify-affine": ("lowering", "simplify_affine"),
    "xla-simplify-arith": ("transforms", "simplify_arith"),
    "xla-stitch-rows": ("pipelines", "stitch_rows"),
    "xla-to-upstream-spelling": ("transforms", "to_upstream_spelling"),
    "xla-unswitch-loops": ("transforms", "unswitch_loops"),
    "xla-unwrap-async": ("graph", "unwrap_async"),
    "xla-vectorize-loads-stores": ("transforms", "vectorize_loads_stores"),
    "xla-warn-recomputation": ("graph", "warn_recomputation"),
    "xla-wrap-instructions": ("graph", "wrap_instructions"),
}


@cache
def pass_class(name: str) -> type[ModulePass]:
    """The class of a pass. raises KeyError for an unknown name"""
    room, stem = PASSES[name]
    module = import_module(f"xla_emitters.{room}.{stem}")
    return getattr(module, "".join(word.capitalize() for word in stem.split("_")) + "Pass")


def made(name: str, *arguments: Any, **options: Any) -> ModulePass:
    """A pass of that name. raises KeyError for an unknown name, TypeError for options that it does not have"""
    return pass_class(name)(*arguments, **options)
