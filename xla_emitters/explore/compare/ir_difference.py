"""How far two kernel modules are the same: the IR after a pass of XLA's against that after ours.

    equal     in one spelling: values renumbered, thread ids for scf.forall, without discardable attributes, names of variables of maps,
              names and order of functions, places of constants and ids
    differs   else: with the ops that one side has more often

"differs" says nothing of numbers: that both are right is shown by `check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import make_context
from xla_emitters.explore.compare.ir_listing import count_ops, listing
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.rewrite.pass_table import made

VERDICTS = ("equal", "differs")


@dataclass(frozen=True)
class Difference:
    """verdict  one of VERDICTS
    ops      op -> (how many ours, how many XLA's) where they differ; empty for "equal"
    """

    verdict: str
    ops: dict[str, tuple[int, int]]


class KernelIr:
    """One side at one point, and the form in which it is compared; `module` is not changed."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.ops = sum(1 for op in module.walk() if op is not module)

    @cached_property
    def spelled(self) -> ModuleOp:
        """In our spelling, without casts there and back, which XLA keeps until its last pass."""
        copy = self.module.clone()
        run_pass(made("xla-from-upstream-spelling"), make_context(), copy)
        _without_casts_back(copy)
        return copy

    @cached_property
    def lines(self) -> list[str]:
        """In the spelling that both sides have."""
        return listing(self.spelled)


def difference(ours: KernelIr, theirs: KernelIr) -> Difference:
    """The difference between the two sides."""
    if ours.lines == theirs.lines:
        return Difference("equal", {})
    counts = count_ops(ours.spelled), count_ops(theirs.spelled)
    names = dict.fromkeys((*counts[0], *counts[1]))
    ops = {name: (counts[0][name], counts[1][name]) for name in names if counts[0][name] != counts[1][name]}
    return Difference("differs", ops)


def _without_casts_back(module: ModuleOp) -> None:
    """`unrealized_conversion_cast` of a cast, or of casts of it, of a value of the same type -> that value."""
    casts = [op for op in module.walk() if isinstance(op, UnrealizedConversionCastOp) and len(op.operands) == 1]
    for op in casts:
        value = op.operands[0]
        while value.type != op.results[0].type and isinstance(inner := value.owner, UnrealizedConversionCastOp):
            value = inner.operands[0]
        if value.type == op.results[0].type:
            op.results[0].replace_all_uses_with(value)
    for op in reversed(casts):
        if op.results[0].first_use is None:
            Rewriter.erase_op(op)
