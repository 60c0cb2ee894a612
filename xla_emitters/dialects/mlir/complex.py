"""The `complex` dialect: xDSL's and `powi`.

    %r = complex.powi %z, %n : complex<f32>, i32        %z to the power of an integer

Source: MLIR 22, complex dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects import complex as upstream
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import ComplexType, IntegerType
from xdsl.dialects.complex import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
from xdsl.irdl import (
    VarConstraint,
    base,
    operand_def,
    opt_prop_def,
    result_def,
)

from xla_emitters.dialects.completion import dialect_of
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp


@op_definition
class PowiOp(PureOp):
    """A complex number to the power of an integer."""

    name = "complex.powi"

    T: ClassVar = VarConstraint("T", base(ComplexType))

    lhs = operand_def(T)
    rhs = operand_def(IntegerType)
    result = result_def(T)
    fastmath = opt_prop_def(FastMathFlagsAttr)

    assembly_format = "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result) `,` type($rhs)"


COMPLEX = dialect_of(upstream.Complex, names=globals())
