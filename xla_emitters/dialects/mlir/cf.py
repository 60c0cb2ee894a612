"""The `cf` dialect: xDSL's, with branch weights.

    cf.cond_br %c weights([1, 2000]), ^bb1, ^bb2

Source: MLIR 22, cf dialect.
"""

from __future__ import annotations

from xdsl.dialects import cf as upstream
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.dialects.cf import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.irdl import opt_prop_def

from xla_emitters.dialects.completion import completed, dialect_of
from xla_emitters.dialects.quick_op import QuickOp


@completed
class ConditionalBranchOp(upstream.ConditionalBranchOp, QuickOp):
    """See the file's head."""

    branch_weights = opt_prop_def(DenseArrayBase.constr(i32))
    assembly_format = (
        "$cond (`weights` `(` $branch_weights^ `)`)? `,`"
        "$then_block (`(` $then_arguments^ `:` type($then_arguments) `)`)? `,`"
        "$else_block (`(` $else_arguments^ `:` type($else_arguments) `)`)? attr-dict"
    )


CF = dialect_of(upstream.Cf, names=globals())
