"""Functions that the entry does not reach are erased; afterwards the entry is the only function. On HLO.

    f { ... }   g { ... }   ENTRY main { ... }           ->           ENTRY main { ... }

The following passes assume one function: one that is still called is an error that names the pass to run first. Computations of loops,
branches, reductions and sorts are regions in all but spelling: they are kept if an instruction that is kept refers to them.
Source: seed document, "UnusedFunctionRemovalPass".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    reached_from,
)
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscUnusedFunctionRemovalPass(KernelPass):
    name = "disc-unused-function-removal"

    def apply_to(self, op: ModuleOp) -> None:
        computations = [computation for computation in op.ops if isinstance(computation, ComputationOp)]
        entries = [computation for computation in computations if computation.is_entry]
        if not entries:
            raise self.refuse(op, "no computation is the entry: all would be unused")
        reached = set(reached_from(entries))
        for inner in (op for computation in computations for op in computation.instructions if computation in reached):
            if isinstance(inner, CallOp):
                name = inner.to_apply.root_reference.data
                raise self.refuse(
                    inner, f"'{name}' is still called: the entry is not the only function", "run disc-inliner first"
                )
        for computation in computations:
            if computation not in reached:
                Rewriter.erase_op(computation)
