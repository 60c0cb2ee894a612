"""Options of XLA that leave out its Triton fusions."""

from typing import Any

OFF: dict[str, Any] = {
    "xla_disable_hlo_passes": "triton-softmax-rewriter,fusion-block-level-rewriter",
    "xla_gpu_enable_triton_gemm": False,
    "xla_gpu_experimental_enable_fusion_block_level_rewriter": False,
    "xla_gpu_experimental_enable_triton_heroless_priority_fusion": False,
    "xla_gpu_unsupported_enable_triton_multi_output_fusion": False,
    "xla_gpu_experimental_enable_fusion_autotuner": False,
}
