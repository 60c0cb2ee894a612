"""The `arith` dialect: xDSL's, with ops that it lacks. Incomplete ops of xDSL's are completed in `xdsl_patches/definitions.py`.

    %b = arith.index_castui %a : index to i32                      unsigned: extended by zeros
    %c = arith.remf %a, %b : f32                                   the remainder with the sign of %a, as C's fmod
    %d = arith.scaling_extf %a, %s : f4E2M1FN, f8E8M0FNU to f32    %a * %s: the scale is a power of two
    %e = arith.scaling_truncf %a, %s : f32, f8E8M0FNU to f4E2M1FN  %a / %s

Source: MLIR 22, arith dialect.
"""

from __future__ import annotations

from xdsl.dialects import arith as upstream
from xdsl.dialects.arith import (
    AddfOp,
    AddiOp,
    AddUIExtendedOp,
    AndIOp,
    BitcastOp,
    CeilDivSIOp,
    CeilDivUIOp,
    CmpfOp,
    CmpiOp,
    ConstantOp,
    DivfOp,
    DivSIOp,
    DivUIOp,
    ExtFOp,
    ExtSIOp,
    ExtUIOp,
    FastMathFlagsAttr,
    FloorDivSIOp,
    FPToSIOp,
    FPToUIOp,
    IndexCastOp,
    IntegerOverflowAttr,
    MaximumfOp,
    MaxnumfOp,
    MaxSIOp,
    MaxUIOp,
    MinimumfOp,
    MinnumfOp,
    MinSIOp,
    MinUIOp,
    MulfOp,
    MuliOp,
    MulSIExtendedOp,
    MulUIExtendedOp,
    NegfOp,
    OrIOp,
    RemSIOp,
    RemUIOp,
    SelectOp,
    ShLIOp,
    ShRSIOp,
    ShRUIOp,
    SIToFPOp,
    SubfOp,
    SubiOp,
    TruncFOp,
    TruncIOp,
    UIToFPOp,
    XOrIOp,
)
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, eq, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import have_compatible_shape

from xla_emitters.dialects.xdsl_patches.definitions import FLOAT_LIKE, INTEGER_OR_INDEX_LIKE, verify_index_cast
from xla_emitters.dialects.xdsl_patches.syntax import ROUNDING_MODES, RoundingMode


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """`arith.index_castui %a : index to i32`, or the other way round."""

    name = "arith.index_castui"

    input = operand_def(INTEGER_OR_INDEX_LIKE)
    result = result_def(INTEGER_OR_INDEX_LIKE)

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[operand], result_types=[target_type])

    def verify_(self) -> None:
        verify_index_cast(self)


@irdl_op_definition
class RemfOp(upstream.FloatingPointLikeBinaryOperation):
    """The remainder of a division of floats."""

    name = "arith.remf"

    traits = traits_def(Pure())


class _Scaling(IRDLOperation):
    """A conversion with a scale, a power of two as f8E8M0FNU or another float."""

    input = operand_def(FLOAT_LIKE)
    scale = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    fastmath = opt_prop_def(FastMathFlagsAttr)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        for other in (self.scale.type, self.result.type):
            if not have_compatible_shape(self.input.type, other):
                raise VerifyException(f"{self.input.type} and {other} differ in shape")


@irdl_op_definition
class ScalingExtFOp(_Scaling):
    """The scaled input in a wider type."""

    name = "arith.scaling_extf"

    assembly_format = (
        "$input `,` $scale (`fastmath` `` $fastmath^)? attr-dict `:` type($input) `,` type($scale) `to` type($result)"
    )


@irdl_op_definition
class ScalingTruncFOp(_Scaling):
    """The input divided by the scale, in a narrower type."""

    name = "arith.scaling_truncf"

    roundingmode = opt_prop_def(IntegerAttr.constr(type=eq(i32)))

    assembly_format = (
        "$input `,` $scale custom<RoundingMode>($roundingmode) (`fastmath` `` $fastmath^)? attr-dict"
        " `:` type($input) `,` type($scale) `to` type($result)"
    )
    custom_directives = (RoundingMode,)


def rounds_to_nearest_even(op: Operation) -> bool:
    """Whether a conversion rounds to nearest even, explicitly or by default."""
    mode = op.properties.get("roundingmode")
    return mode is None or mode == IntegerAttr(ROUNDING_MODES.index("to_nearest_even"), i32)


ARITH = Dialect(
    "arith",
    [*upstream.Arith.operations, IndexCastUIOp, RemfOp, ScalingExtFOp, ScalingTruncFOp],
    list(upstream.Arith.attributes),
    upstream.Arith._interfaces,  # pyright: ignore[reportPrivateUsage]  # a Dialect has no other way to list them
)

__all__ = [
    "ARITH",
    "AddUIExtendedOp",
    "AddfOp",
    "AddiOp",
    "AndIOp",
    "BitcastOp",
    "CeilDivSIOp",
    "CeilDivUIOp",
    "CmpfOp",
    "CmpiOp",
    "ConstantOp",
    "DivSIOp",
    "DivUIOp",
    "DivfOp",
    "ExtFOp",
    "ExtSIOp",
    "ExtUIOp",
    "FPToSIOp",
    "FPToUIOp",
    "FastMathFlagsAttr",
    "FloorDivSIOp",
    "IndexCastOp",
    "IndexCastUIOp",
    "IntegerOverflowAttr",
    "MaxSIOp",
    "MaxUIOp",
    "MaximumfOp",
    "MaxnumfOp",
    "MinSIOp",
    "MinUIOp",
    "MinimumfOp",
    "MinnumfOp",
    "MulSIExtendedOp",
    "MulUIExtendedOp",
    "MulfOp",
    "MuliOp",
    "NegfOp",
    "OrIOp",
    "RemSIOp",
    "RemUIOp",
    "RemfOp",
    "SIToFPOp",
    "ScalingExtFOp",
    "ScalingTruncFOp",
    "SelectOp",
    "ShLIOp",
    "ShRSIOp",
    "ShRUIOp",
    "SubfOp",
    "SubiOp",
    "TruncFOp",
    "TruncIOp",
    "UIToFPOp",
    "XOrIOp",
    "rounds_to_nearest_even",
]
