"""Ops that take random numbers from a hidden state say how many numbers the ops before them take. On HLO.

    %a = rng(%low, %high), distribution=rng_uniform                   {disc.numbers_before = 0}
    %b = rng(%low, %high), distribution=rng_uniform            ->     {disc.numbers_before = 4294967296}

StableHLO's `rng` has no key and no defined bits. Here it takes its own part of the numbers of one generator, which part the ops before it
decide. On buffers, or after a pass removed an op, they could no longer be counted, so that two ops would take the same numbers or a later
stage others than an earlier one. The number is constant: each run gives the same values, and so does each iteration of a loop.
Left alone: ops that have a number.
Source: StableHLO's specification of `rng`, whose values are implementation defined.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64

from xla_emitters.dialects.hlo.library_calls import NUMBERS_BEFORE, numbers_before
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.rewrite.kernel_pass import KernelPass

_WITH_STATE = ("rng", "rng-get-and-update-state")


@dataclass(frozen=True)
class DiscNumberRandomOpsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "disc-number-random-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [inner for inner in op.walk() if isinstance(inner, RuleOp) and inner.opcode in _WITH_STATE]
        numbers = {inner: numbers_before(inner) for inner in found}
        for inner, number in numbers.items():
            if NUMBERS_BEFORE in inner.attributes:
                self.skip(inner, "it has a number")
                continue
            inner.attributes[NUMBERS_BEFORE] = IntegerAttr(number, i64)
