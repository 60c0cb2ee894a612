"""The names that ops had in other years and projects, and their names here.

    mhlo.add   xla_hlo.add   hlo.add      stablehlo.add           MHLO was xla_hlo in 2020
    mhlo.erf                              chlo.erf
    mhlo.topk                             mhlo.topk               StableHLO has no such op: `mhlo` has its rule
    mhlo.dynamic-slice   xla_hlo.d_pad    stablehlo.dynamic_slice, stablehlo.dynamic_pad
    xla_chlo.broadcast_add                chlo.broadcast_add
    addi   std.addi   tensor_from_elements    arith.addi, tensor.from_elements      MLIR's `std` had no prefix in pretty form

Source: seed document (xla_hlo, d_reshape); the op lists of MLIR-HLO and of MLIR's standard dialect as they were from 2020 to 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

MHLO = ("mhlo", "xla_hlo", "hlo")
"""The names of one dialect over the years."""
_CHLO = ("xla_chlo", "hlo_client")
_IN_CHLO = frozenset(("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "erf_inv", "ragged_dot", "sinh"))
OWN = frozenset(
    (
        "add_dependency", "async_done", "async_start", "async_update", "bitcast", "copy", "cross-replica-sum", "domain", "fusion",
        "minimum_broadcast_shapes", "print", "rng_normal", "rng_uniform", "sparse_dot", "stochastic_convert", "topk", "trace",
        "xla.rng_get_and_update_state",
    )
)  # fmt: skip
"""Ops of MHLO that StableHLO and CHLO lack; all others have the name, operands and attributes of StableHLO's."""
_ABBREVIATED = {"concat": "concatenate", "mul": "multiply", "sub": "subtract", "div": "divide"}
_STD = {
    "fptosi": "arith.fptosi",
    "shift_left": "arith.shli",
    "shift_right_signed": "arith.shrsi",
    "shift_right_unsigned": "arith.shrui",
    "dim": "tensor.dim",
    "tensor_cast": "tensor.cast",
    "tensor_from_elements": "tensor.from_elements",
    "extract_element": "tensor.extract",
}
_PLAIN = ("return", "call")
"""Ops that texts of all years write without a dialect."""


REGIONS = ("mhlo.fusion", "sdy.named_computation", "sdy.manual_computation")
"""Ops whose region is the program's: its arguments are the operands."""
BROADCASTING = (
    "add", "and", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
)  # fmt: skip
"""Ops of two operands that XLA's builders broadcast, besides `compare`."""


@cache
def _older() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The names of older texts, of MHLO's ops and of std's."""
    from xla_emitters.dialects.other_spelling import DYNAMIC, STD  # imported here: today's programs have other names

    return {**DYNAMIC, **_ABBREVIATED}, {**STD, **_STD}


def may_broadcast(name: str) -> bool:
    """Whether an op of a text broadcasts its operands without saying so: xla_hlo's of two operands did."""
    dialect, _, opcode = name.partition(".")
    return dialect in ("xla_hlo", "hlo") and _older()[0].get(opcode, opcode) in (*BROADCASTING, "compare")


def renamed(name: str) -> str:
    """The name here of an op that a text calls `name`.

    >>> renamed("xla_hlo.d_reshape"), renamed("mhlo.erf"), renamed("std.addi"), renamed("arith.addi")
    ('stablehlo.dynamic_reshape', 'chlo.erf', 'arith.addi', 'arith.addi')
    """
    if name == "memref.dim":  # of a tensor, for some months of 2021: between std.dim and tensor.dim
        return "tensor.dim"
    dialect, dot, opcode = name.partition(".")
    if (opcode if dot else name) in _PLAIN and dialect in ("std", name):
        return opcode or name
    if not dot or dialect == "std":
        return _older()[1].get(opcode if dot else name, name)
    if dialect in _CHLO:
        return f"chlo.{opcode}"
    if dialect not in MHLO:
        return name
    if opcode in OWN:
        return f"mhlo.{opcode}"
    opcode = _older()[0].get(opcode, opcode.replace("-", "_"))
    return f"{'chlo' if opcode in _IN_CHLO else 'stablehlo'}.{opcode}"
