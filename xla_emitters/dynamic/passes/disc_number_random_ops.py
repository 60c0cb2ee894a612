"""Numbers the `rng` ops, which share one hidden state: each records how many random numbers the ops before it take. On HLO.

    %a = rng(%low, %high), distribution=rng_uniform                   {disc.numbers_before = 0}
    %b = rng(%low, %high), distribution=rng_uniform            ->     {disc.numbers_before = 4294967296}

StableHLO's `rng` has no key and no defined bits. Here each op takes its own part of one generator's sequence; the part starts after the
numbers of the ops before it. On buffers, or after a pass removed an op, these could no longer be counted: two ops would take the same
numbers, or a later stage other numbers. The number is constant: each run, and each iteration of a loop, gives the same values.
Ops that have a number are not changed.
Source: StableHLO's specification of `rng`, whose values are implementation defined.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.rewrite.kernel_pass import KernelPass

WITH_STATE = frozenset(("rng", "dynamic-rng", "rng-get-and-update-state"))
"""Opcodes of the ops with a hidden state."""


@dataclass(frozen=True)
class DiscNumberRandomOpsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    seed   recorded on the `rng` ops; another one gives other numbers
    """

    name = "disc-number-random-ops"

    seed: int = 0

    def apply_to(self, op: ModuleOp) -> None:
        found = [inner for inner in op.walk() if isinstance(inner, HloOp) and inner.opcode in WITH_STATE]
        if not found:
            return
        # Imported here: few programs have such an op.
        from xla_emitters.dialects.hlo.library_calls import NUMBERS_BEFORE, RANDOM_SEED, numbers_before

        numbers = {inner: numbers_before(inner) for inner in found}
        for inner, number in numbers.items():
            if self.seed and inner.opcode in ("rng", "dynamic-rng"):
                inner.attributes[RANDOM_SEED] = IntegerAttr(self.seed, i64)
            if NUMBERS_BEFORE in inner.attributes:
                self.skip(inner, "it has a number")
                continue
            inner.attributes[NUMBERS_BEFORE] = IntegerAttr(number, i64)
