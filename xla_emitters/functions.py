"""Real functions, one row each: their names in every layer, how a GPU computes them, the allowed error.

    HLO      %y = f32[8] exponential(%x)             opcode
    MLIR     %y = math.exp %x : f32                  op
    PTX      call @__nv_expf(%x)                     libdevice, where `gpu` is LIBDEVICE
    NumPy    np.exp                                  numpy

A function that NumPy lacks (erf), or has for some types only, is computed by the reference and by the executor with a separate formula
each, so that one checks the other; its row has no `numpy`. This file computes nothing.

Users: HLO's rows (`dialects/hlo/elementwise.py`), the `math` dialect's ops that xDSL lacks, the passes that call libdevice, unroll loops
and rename ops for LLVM, the executor's rules, and the bounds that results are compared within.
Source: docs/reference/contracts "Numbers"; NVIDIA's libdevice user guide; MLIR 22, math and LLVM dialects; XLA's optimize_loops.cc for
`size`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import Enum
from pathlib import Path

from xla_emitters.errors import UsageError
from xla_emitters.plugins import functions_of_entry_points, note, refuse_double
from xla_emitters.support.late_dataclass import dataclass


class Gpu(Enum):
    """How a GPU computes a function."""

    LIBDEVICE = "libdevice"
    INSTRUCTIONS = "instructions"


class CodeSize(Enum):
    """Code size of one use of a function.

    SMALL   an instruction or two
    MEDIUM  a call that is inlined, or a polynomial
    LARGE   so large that a loop that contains it is not unrolled
    """

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


@dataclass(frozen=True)
class Ulps:
    """Largest error of a result, in units in the last place of its type, against the exact value rounded. narrow: 16 bits or fewer."""

    f64: int
    f32: int
    narrow: int

    def of(self, bits: int) -> int:
        """The limit for a float type of that many bits."""
        return {64: self.f64, 32: self.f32}.get(bits, self.narrow)


EXACT, ROOT, TRANSCENDENTAL = Ulps(0, 0, 0), Ulps(2, 2, 2), Ulps(4, 6, 1)


@dataclass(frozen=True)
class RealFunction:
    """One function of real numbers; None where a name does not exist.

    libdevice      the name without `__nv_` before it and f32's `f` after it
    op             MLIR's op, of the dialect `math` or `arith`
    opcode         HLO's opcode
    numpy          the function of `numpy` that both the reference and the executor use
    ulps           allowed error of the HLO op
    operands       number of operands
    gpu            how `op` is computed
    has_fast       libdevice has a `__nv_fast_` variant for f32
    size           code size of `op`
    intrinsics     LLVM's ops that compute it; the first is used if `gpu` is INSTRUCTIONS, or for vectors
    takes_complex  whether HLO has it for complex numbers too
    complex_op     MLIR's op for complex numbers
    """

    libdevice: str | None = None
    op: str | None = None
    opcode: str | None = None
    numpy: str | None = None
    ulps: Ulps = TRANSCENDENTAL
    operands: int = 1
    gpu: Gpu = Gpu.LIBDEVICE
    has_fast: bool = False
    size: CodeSize = CodeSize.MEDIUM
    intrinsics: tuple[str, ...] = ()
    takes_complex: bool = False
    complex_op: str | None = None


LIBDEVICE, INSTRUCTIONS = Gpu.LIBDEVICE, Gpu.INSTRUCTIONS
SMALL, MEDIUM, LARGE = CodeSize.SMALL, CodeSize.MEDIUM, CodeSize.LARGE
# fmt: off
FUNCTIONS: tuple[RealFunction, ...] = (
    # exponentials and logarithms
    RealFunction("exp", "math.exp", "exponential", "exp", has_fast=True, intrinsics=("llvm.intr.exp",),
                 takes_complex=True, complex_op="complex.exp"),
    RealFunction("expm1", "math.expm1", "exponential-minus-one", "expm1", takes_complex=True, complex_op="complex.expm1"),
    RealFunction("exp2", "math.exp2", None, "exp2", intrinsics=("llvm.intr.exp2",)),
    RealFunction("exp10", intrinsics=("llvm.intr.exp10",)),
    RealFunction("log", "math.log", "log", "log", has_fast=True, intrinsics=("llvm.intr.log",),
                 takes_complex=True, complex_op="complex.log"),
    RealFunction("log1p", "math.log1p", "log-plus-one", "log1p", takes_complex=True, complex_op="complex.log1p"),
    RealFunction("log2", "math.log2", None, "log2", has_fast=True, intrinsics=("llvm.intr.log2",)),
    RealFunction("log10", "math.log10", None, "log10", has_fast=True, intrinsics=("llvm.intr.log10",)),
    RealFunction(opcode="logistic", takes_complex=True),

    # powers and roots
    RealFunction("pow", "math.powf", "power", "power", operands=2, has_fast=True, intrinsics=("llvm.intr.pow",),
                 takes_complex=True, complex_op="complex.pow"),
    RealFunction("powi", "math.fpowi", operands=2),
    RealFunction("sqrt", "math.sqrt", "sqrt", "sqrt", ROOT, size=SMALL, intrinsics=("llvm.intr.sqrt",),
                 takes_complex=True, complex_op="complex.sqrt"),
    RealFunction("rsqrt", "math.rsqrt", "rsqrt", None, ROOT, size=SMALL, takes_complex=True, complex_op="complex.rsqrt"),
    RealFunction("cbrt", "math.cbrt", "cbrt", "cbrt"),

    # trigonometry
    RealFunction("sin", "math.sin", "sine", "sin", has_fast=True, intrinsics=("llvm.intr.sin",),
                 takes_complex=True, complex_op="complex.sin"),
    RealFunction("cos", "math.cos", "cosine", "cos", has_fast=True, intrinsics=("llvm.intr.cos",),
                 takes_complex=True, complex_op="complex.cos"),
    RealFunction("tan", "math.tan", "tan", "tan", has_fast=True, intrinsics=("llvm.intr.tan",),
                 takes_complex=True, complex_op="complex.tan"),
    RealFunction("asin", "math.asin", "asin", "arcsin", size=LARGE, intrinsics=("llvm.intr.asin",), takes_complex=True),
    RealFunction("acos", "math.acos", "acos", "arccos", size=LARGE, intrinsics=("llvm.intr.acos",), takes_complex=True),
    RealFunction("atan", "math.atan", None, "arctan", intrinsics=("llvm.intr.atan",)),
    RealFunction("atan2", "math.atan2", "atan2", "arctan2", operands=2, intrinsics=("llvm.intr.atan2",),
                 takes_complex=True, complex_op="complex.atan2"),

    # hyperbolic functions
    RealFunction("sinh", "math.sinh", "sinh", "sinh", size=LARGE, intrinsics=("llvm.intr.sinh",), takes_complex=True),
    RealFunction("cosh", "math.cosh", "cosh", "cosh", intrinsics=("llvm.intr.cosh",), takes_complex=True),
    RealFunction("tanh", "math.tanh", "tanh", "tanh", intrinsics=("llvm.intr.tanh",),
                 takes_complex=True, complex_op="complex.tanh"),
    RealFunction("asinh", "math.asinh", "asinh", "arcsinh", size=LARGE, takes_complex=True),
    RealFunction("acosh", "math.acosh", "acosh", "arccosh", size=LARGE, takes_complex=True),
    RealFunction("atanh", "math.atanh", "atanh", "arctanh", size=LARGE, takes_complex=True),

    # error functions
    RealFunction("erf", "math.erf", "erf"),
    RealFunction("erfc", "math.erfc"),

    # rounding to integers
    RealFunction("ceil", "math.ceil", "ceil", "ceil", EXACT, gpu=INSTRUCTIONS, size=SMALL, intrinsics=("llvm.intr.ceil",)),
    RealFunction("floor", "math.floor", "floor", "floor", EXACT, gpu=INSTRUCTIONS, size=SMALL, intrinsics=("llvm.intr.floor",)),
    RealFunction("round", "math.round", "round-nearest-afz", None, EXACT, size=SMALL, intrinsics=("llvm.intr.round",)),
    RealFunction("rint", "math.roundeven", "round-nearest-even", "rint", EXACT, gpu=INSTRUCTIONS, size=SMALL,
                 intrinsics=("llvm.intr.roundeven", "llvm.intr.rint")),
    RealFunction("nearbyint", None, None, "rint", EXACT, intrinsics=("llvm.intr.nearbyint",)),
    RealFunction("trunc", "math.trunc", None, "trunc", EXACT, gpu=INSTRUCTIONS, size=SMALL, intrinsics=("llvm.intr.trunc",)),

    # signs, quotients, order
    RealFunction("fabs", "math.absf", "abs", "abs", EXACT, gpu=INSTRUCTIONS, size=SMALL, intrinsics=("llvm.intr.fabs",),
                 takes_complex=True, complex_op="complex.abs"),
    RealFunction("copysign", "math.copysign", None, "copysign", EXACT, operands=2, gpu=INSTRUCTIONS, size=SMALL,
                 intrinsics=("llvm.intr.copysign",)),
    RealFunction("fma", "math.fma", None, None, EXACT, operands=3, gpu=INSTRUCTIONS, size=SMALL,
                 intrinsics=("llvm.intr.fma", "llvm.intr.fmuladd")),
    RealFunction(None, "arith.divf", "divide", None, ROOT, operands=2, gpu=INSTRUCTIONS, size=SMALL,
                 takes_complex=True, complex_op="complex.div"),
    RealFunction("fmod", "arith.remf", "remainder", "fmod", EXACT, operands=2),
    RealFunction("fmax", None, None, "fmax", EXACT, operands=2),
    RealFunction("fmin", None, None, "fmin", EXACT, operands=2),
)
# fmt: on

BY_OPCODE: dict[str, RealFunction] = {row.opcode: row for row in FUNCTIONS if row.opcode}
BY_OP: dict[str, RealFunction] = {row.op: row for row in FUNCTIONS if row.op}
BY_LIBDEVICE: dict[str, RealFunction] = {row.libdevice: row for row in FUNCTIONS if row.libdevice}

READERS = (
    "xla_emitters.dialects.hlo.elementwise",
    "xla_emitters.dialects.mlir.math",
    "xla_emitters.runtime.simt.math_rules",
)
"""The modules that build tables from these rows when they are imported."""


def register_function(row: RealFunction) -> None:
    """Adds a function from outside the package, as an op of HLO and of MLIR's dialect `math`; before anything is read or compiled.

    row     with all four names: it is computed by libdevice, and by NumPy in the reference. For an op of the table, which has these names,
            `RealFunction(op="math.atan", opcode="arctan")` is enough: the op gets an opcode, or a second one
    raises  UsageError for a row without a name, or with one that is taken, and if the tables are built already
    """
    if late := [name for name in READERS if name in sys.modules]:
        raise UsageError(
            f"function '{row.opcode}' comes too late: {late[0]} has been imported",
            stage="plugins",
            help="an entry point of the group xla_emitters.functions, or the call before anything is read or compiled",
        )
    _add(row, None)


def _add(row: RealFunction, file: Path | None) -> None:
    if not isinstance(row, RealFunction):  # pyright: ignore[reportUnnecessaryIsInstance]  (from outside)
        raise UsageError(f"{row!r} is not a RealFunction", stage="plugins")
    known = BY_OP.get(row.op or "")
    if known is not None:
        row = _named(row, known)
    if not (row.opcode and row.op and row.libdevice and row.numpy):
        raise UsageError("a function is given with opcode, op, libdevice and numpy", stage="plugins")
    if not row.op.startswith("math."):
        raise UsageError(f"'{row.op}' is not an op of the dialect math", stage="plugins", help=f"math.{row.libdevice}")
    # Imported here: rows of this package need no check.
    import numpy as np

    if not hasattr(np, row.numpy):
        raise UsageError(f"function '{row.opcode}': NumPy has no '{row.numpy}'", stage="plugins")
    refuse_double("function", row.opcode, BY_OPCODE)
    BY_OPCODE[row.opcode] = row
    if known is None:
        BY_OP[row.op] = BY_LIBDEVICE[row.libdevice] = row
    ADDED.append(row)
    note("function", row.opcode, file=file)


def _named(row: RealFunction, known: RealFunction) -> RealFunction:
    """The known function under the opcode of `row`. raises UsageError if `row` has another name or number of operands for the same op"""
    for name in ("libdevice", "numpy", "operands"):
        given, has = getattr(row, name), getattr(known, name)
        if has is not None and given not in (None, 1, has):  # 1: operands that are not given
            raise UsageError(f"{name} of '{row.op}' is {has!r}, not {given!r}", stage="plugins")
    return replace(known, opcode=row.opcode, numpy=known.numpy or row.numpy)


ADDED: list[RealFunction] = []
"""The functions from outside the package."""

functions_of_entry_points(_add)
