"""Folds ops and rewrites them to canonical form; see `rewrite/canonicalize.py`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.rewrite.canonicalize import canonicalize
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class CanonicalizePass(KernelPass):
    """Folds ops, decides constant branches, keeps one copy of a constant per function. Like MLIR's `canonicalize`, with locations kept."""

    name = "xla-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        canonicalize(op, ctx)
