"""Rename our ops to the names of today's XLA, so that any printer writes IR that the real XLA reads.

    xla_gpu.loop (%t, %b)[%i] -> (%x) in #xla_gpu.indexing_map<"... floordiv 8 ...">  ->  xla.loop ... in #xla.indexing_map<"... / 8 ...">

The renamed ops are subclasses of ours, so every pass treats them alike (see `dialects/xla_gpu/xla.py`). Thread and block ids stay: XLA
reads both these and its xla.workgroup_id. Our own printer does not need this pass: it has `--spelling upstream`.
Source: docs/reference/1 section 0 "Spelling policy".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.xla_gpu.xla import UPSTREAM_OPS, UpstreamIndexingMapAttr
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.transforms.respelling import respell


class ToUpstreamSpellingPass(KernelPass):
    name = "xla-to-upstream-spelling"

    def apply_to(self, op: ModuleOp) -> None:
        for inner in [inner for inner in op.walk() if type(inner) in UPSTREAM_OPS]:
            respell(inner, UPSTREAM_OPS[type(inner)], UpstreamIndexingMapAttr)
