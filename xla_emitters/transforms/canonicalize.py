"""The pass `xla-canonicalize`: everything folded and in canonical form; see `rewrite/canonicalize.py`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.rewrite.canonicalize import canonicalize
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class CanonicalizePass(KernelPass):
    """Ops folded, branches decided, constants once per function. Like MLIR's `canonicalize`, but every op keeps a location."""

    name = "xla-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        canonicalize(op, ctx)
