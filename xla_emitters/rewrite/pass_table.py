"""Every pass by its name, and the folder of its file: a pass is loaded when it is first made.

made("xla-select-fusion", "fusion.3")        SelectFusionPass of graph/select_fusion.py: the file's name in CamelCase, and `Pass`
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from xdsl.passes import ModulePass

_IN_ROOMS = {
    "dynamic.buffers": """
        disc-buffer-optimization disc-compute-once disc-dead-temp-buffer-removal disc-dissolve-fusion
        disc-fold-transposes disc-free-in-branches disc-fuse-middle-reductions disc-fuse-on-buffer disc-legalize-to-lhlo
        disc-localize-small-cpu-buffer disc-lower-to-buffer-alias disc-placement-fixer disc-remove-dead-buffer
        disc-specialize-fusion-with-speculation disc-unify-sizes disc-update-in-place
    """,
    "dynamic.host": """
        disc-convert-const-to-ral disc-convert-memory-marker disc-gpu-launch-func-to-ral disc-inject-execution-context
        disc-insert-memory-marker disc-legalize-lhlo-control-flow disc-lower-host-integers disc-lower-host-memrefs
        disc-lower-to-library-calls disc-rewrite-ral-api
    """,
    "dynamic.loops": """
        disc-flatten-memref disc-fuse-single-ops disc-gpu-kernel-outlining disc-input-inline-fusion
        disc-lhlo-legalize-to-loop disc-loop-split disc-merge-equal-kernels disc-nest-loops
        disc-revise-gpu-kernel-outlining disc-vectorize-accesses disc-widen-half-products
    """,
    "dynamic.passes": """
        disc-algebraic-simplifier disc-base-gemm disc-broadcast-simplifier disc-canonicalize-reduction
        disc-check-numbers disc-conv-rewriter disc-element-type-converter disc-gather-slices disc-gpu-conv-padding
        disc-inliner disc-loop-invariant disc-number-random-ops disc-placer disc-shape-optimization disc-size-cse
        disc-split-large-ops disc-transpose-simplifier disc-unused-function-removal
    """,
    "graph": """
        xla-flatten-parameters xla-fuse-entry xla-fuse-loops xla-inline-calls xla-insert-copies xla-remove-no-ops
        xla-select-fusion xla-split-reductions xla-split-results xla-split-scatters xla-split-triton-fusions
        xla-unwrap-async xla-warn-recomputation xla-wrap-instructions
    """,
    "lowering": """
        convert-complex-to-standard disc-lower-linear-indices disc-lower-memrefs xla-add-line-info
        xla-convert-ids-to-calls xla-convert-math-to-libdevice xla-convert-pure-call-ops xla-convert-scf-to-cf
        xla-expand-float-ops xla-gpu-convert-float-nvidia xla-gpu-convert-index-type xla-limit-inlining xla-lower-affine
        xla-lower-pdl-wait xla-lower-tensors xla-lower-to-llvm-gpu xla-merge-pointers xla-simplify-affine
    """,
    "lowering.cpu": """
        disc-block-sums disc-blocks-to-loop disc-cpu-entry disc-hoist-divisions disc-prefer-wide-vectors
        disc-reassociate-reductions disc-step-pointers disc-unpack-narrow-buffers disc-widen-half-floats
    """,
    "pipelines": """
        xla-fuse-scans xla-merge-fusions xla-split-sorts xla-stitch-rows
    """,
    "transforms": """
        inline symbol-dce xla-canonicalize xla-cse xla-erase-dead-functions xla-flatten-tensors
        xla-from-upstream-spelling xla-gpu-insert-pdl xla-gpu-optimize-loops xla-gpu-peel-loops
        xla-loop-invariant-code-motion xla-lower-xla-loops-to-scf xla-lower-xla-to-scf xla-propagate-slice-indices
        xla-replace-kernel xla-simplify-arith xla-to-upstream-spelling xla-unswitch-loops xla-vectorize-loads-stores
    """,
}
PASSES = {name: room for room, names in _IN_ROOMS.items() for name in names.split()}
"""Name on the command line -> the folder of the file, whose name is that of the pass without `xla-` and `gpu-`."""


@cache
def pass_class(name: str) -> type[ModulePass]:
    """The class of a pass. raises KeyError for an unknown name"""
    stem = name.removeprefix("xla-").removeprefix("gpu-").replace("-", "_")
    module = import_module(f"xla_emitters.{PASSES[name]}.{stem}")
    return getattr(module, "".join(word.capitalize() for word in stem.split("_")) + "Pass")


def made(name: str, *arguments: Any, **options: Any) -> ModulePass:
    """A pass of that name. raises KeyError for an unknown name, TypeError for options that it does not have"""
    return pass_class(name)(*arguments, **options)
