"""Which computations of a module run on the host: ENTRY, and those that its loops, branches, calls and asynchronous ops run.

    ENTRY main                     host
      %w = while(%s), condition=c, body=b      c and b: host, and what they run
      %f = fusion(%x), calls=g                 g: one kernel, not host
      %r = reduce(%x, %z), to_apply=add        add: part of a kernel, not host

Passes on HLO treat each of these as they treat ENTRY: its fusions become kernels, the rest becomes other steps of the program.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import CallingOp, ComputationOp, find_computation
from xla_emitters.fusions.program_plan import entry_of

CONTROL = frozenset({"while", "conditional", "call", "async-start"})
"""Opcodes of instructions that run other computations on the host."""

HOST_ONLY = CONTROL | {
    "custom-call",
    "sort",
    "top-k",
    "fft",
    "cholesky",
    "triangular-solve",
    "rng",
    "rng-bit-generator",
    "rng-get-and-update-state",
    "batch-norm-training",
    "batch-norm-inference",
    "batch-norm-grad",
}
"""Opcodes of instructions that no kernel computes."""


def host_computations(module: ModuleOp) -> tuple[ComputationOp, ...]:
    """The computations that run on the host, each once, callees before their callers; ENTRY is the last. raises VerifyError without one."""
    found = dict[ComputationOp, None]()

    def visit(computation: ComputationOp) -> None:
        for callee in called_on_host(computation):
            if callee not in found:
                visit(callee)
        found[computation] = None

    visit(entry_of(module))
    return tuple(found)


def called_on_host(computation: ComputationOp) -> Iterator[ComputationOp]:
    """The computations that a host computation's own instructions run, in program order."""
    for op in computation.instructions:
        if is_control(op):
            assert isinstance(op, CallingOp)
            for callee in op.callees():
                yield find_computation(op, callee.symbol)


def is_control(op: HloOp) -> bool:
    """Whether an instruction runs other computations on the host."""
    return op.opcode in CONTROL


def is_host_only(op: HloOp) -> bool:
    """Whether no kernel can compute an instruction."""
    return op.opcode in HOST_ONLY
