"""Merges equal ops; see `rewrite/common_subexpressions.py`."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.rewrite.common_subexpressions import cse
from xla_emitters.rewrite.kernel_pass import KernelPass


class CsePass(KernelPass):
    """Merges equal ops and erases dead ones, also across blocks. Like MLIR's `cse`, but the remaining op gets both locations."""

    name = "xla-cse"

    def apply_to(self, op: ModuleOp) -> None:
        cse(op)
