"""The `math` dialect: xDSL's, with ops that it lacks.

    %e = math.erfc %a : f32                       1 - erf, without cancellation
    %s, %c = math.sincos %a : f32
    %x = math.clampf %a to [%low, %high] : f32
    %n = math.isnan %a : f32                      also isinf, isfinite, isnormal; vectors give vectors of i1

Source: MLIR 22, math dialect.
"""

from __future__ import annotations

from xdsl.dialects import math as upstream
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.math import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
from xdsl.irdl import (
    VarConstraint,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure, SameOperandsAndResultType
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.completion import dialect_of
from xla_emitters.dialects.mlir.arith import BOOL_LIKE, FLOAT_LIKE
from xla_emitters.dialects.mlir.directives import Derived, truth_type
from xla_emitters.dialects.mlir.op_rows import op_of_family, op_of_row
from xla_emitters.dialects.quick_op import PureOp, QuickOp
from xla_emitters.functions import BY_OP


class RealFunctionOp(upstream.FloatingPointLikeUnaryMathOperation, QuickOp):
    """A function of one float in `functions.py` for which xDSL has no op."""

    traits = traits_def(Pure(), SameOperandsAndResultType())


class BinaryRealFunctionOp(upstream.FloatingPointLikeBinaryMathOperation, QuickOp):
    """A function of two floats in `functions.py` for which xDSL has no op."""

    traits = traits_def(Pure(), SameOperandsAndResultType())


_FLOATS = VarConstraint("T", FLOAT_LIKE)
_FASTMATH = {"fastmath": prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))}

SincosOp = op_of_row(
    "math.sincos",
    "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($operand)",
    properties=_FASTMATH,
    traits=(Pure(),),
    operand=operand_def(_FLOATS),
    sin=result_def(_FLOATS),
    cos=result_def(_FLOATS),
)

# minimumf(maximumf(value, min), max): NaN stays NaN.
ClampFOp = op_of_row(
    "math.clampf",
    "$value `to` `[` $min `,` $max `]` (`fastmath` `` $fastmath^)? attr-dict `:` type($result)",
    properties=_FASTMATH,
    traits=(Pure(),),
    value=operand_def(_FLOATS),
    min=operand_def(_FLOATS),
    max=operand_def(_FLOATS),
    result=result_def(_FLOATS),
)


class ClassificationOp(PureOp):
    """Whether a float is of some kind."""

    operand = operand_def(VarConstraint("T", FLOAT_LIKE))
    result = result_def(Derived("T", truth_type, BOOL_LIKE))
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))

    assembly_format = "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($operand)"

    def verify_(self) -> None:
        if self.result.type != (wanted := truth_type(self.operand.type)):
            raise VerifyException(f"the result for {self.operand.type} is {self.result.type}; it must be {wanted}")


IsFiniteOp = op_of_family(ClassificationOp, "math.isfinite")
IsInfOp = op_of_family(ClassificationOp, "math.isinf")
IsNaNOp = op_of_family(ClassificationOp, "math.isnan")
IsNormalOp = op_of_family(ClassificationOp, "math.isnormal")

_UPSTREAM = {op.name for op in upstream.Math.operations}
ADDED_FUNCTIONS = tuple(
    op_of_family(RealFunctionOp if row.operands == 1 else BinaryRealFunctionOp, op)
    for op, row in BY_OP.items()
    if op.startswith("math.") and op not in _UPSTREAM
)

MATH = dialect_of(upstream.Math, ADDED_FUNCTIONS, names=globals())
