"""The `arith` dialect: xDSL's, with ops that it lacks, and with completed ones in place of some of its own.

    %b = arith.index_castui %a : index to i32                      unsigned: extended by zeros
    %c = arith.remf %a, %b : f32                                   the remainder with the sign of %a, as C's fmod
    %d = arith.scaling_extf %a, %s : f4E2M1FN, f8E8M0FNU to f32    %a * %s: the scale is a power of two
    %e = arith.scaling_truncf %a, %s : f32, f8E8M0FNU to f4E2M1FN  %a / %s

Completed, with the reason:
  shrsi, shrui, divsi, divui    no `exact`
  cmpi, cmpf                    one i1 for vectors, no attributes, any predicate
  select                        one i1 for vectors, no attributes
  ext.., trunc.., sitofp ...    no vectors; trunci no overflow flags, truncf no rounding mode, both floats' no fastmath
Source: MLIR 22, arith dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from xdsl.dialects import arith as upstream
from xdsl.dialects.arith import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
    UnitAttr,
    container_of,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    VarConstraint,
    eq,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self, have_compatible_shape

from xla_emitters.dialects.attributes import integer
from xla_emitters.dialects.completion import completed, completed_by, dialect_of
from xla_emitters.dialects.mlir.directives import Derived, numbered_word, truth_type
from xla_emitters.dialects.mlir.op_rows import op_of_row
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp

_NO_OVERFLOW = IntegerOverflowAttr("none")

BOOL_LIKE = container_of(IntegerType(1))
INTEGER_LIKE = container_of(IntegerType)
INTEGER_OR_INDEX_LIKE = container_of(IntegerType | IndexType)
FLOAT_LIKE = container_of(AnyFloat)

# ---- integers ---------------------------------------------------------------------------------------------------------------------------

_EXACT: dict[str, Any] = {
    "isExact": opt_prop_def(UnitAttr),
    "assembly_format": "$lhs `,` $rhs (`exact` $isExact^)? attr-dict `:` type($result)",
}
"""`exact`: no set bit is shifted out, there is no remainder."""

ShRSIOp = completed_by(upstream.ShRSIOp, **_EXACT)
ShRUIOp = completed_by(upstream.ShRUIOp, **_EXACT)
DivSIOp = completed_by(upstream.DivSIOp, **_EXACT)
DivUIOp = completed_by(upstream.DivUIOp, **_EXACT)

# ---- comparisons and select -------------------------------------------------------------------------------------------------------------


def _init_comparison(
    op: CmpiOp | CmpfOp,
    one: Operation | SSAValue,
    other: Operation | SSAValue,
    predicate: int | str,
    words: Sequence[str],
    **more: Attribute | None,
) -> None:
    lhs, rhs = SSAValue.get(one), SSAValue.get(other)
    if lhs.type != rhs.type:
        raise TypeError(f"{op.name} of {lhs.type} and {rhs.type}")
    number = words.index(predicate) if isinstance(predicate, str) else predicate
    QuickOp.__init__(
        op,
        operands=[lhs, rhs],
        result_types=[truth_type(lhs.type)],
        properties={"predicate": integer(number, 64), **more},
    )


def _predicate(words: Sequence[str]) -> type[CustomDirective]:
    return numbered_word("Predicate", dict(enumerate(words)), "expected one of {words}")


def _itself(compared: Attribute) -> Attribute:
    return compared


def _verify_comparison(op: CmpiOp | CmpfOp, words: Sequence[str]) -> None:
    if op.lhs.type != op.rhs.type or not have_compatible_shape(op.lhs.type, op.result.type):
        raise VerifyException(f"compares {op.lhs.type} with {op.rhs.type} to {op.result.type}")
    verify_number("predicate", op.predicate, words)


def verify_number(what: str, attribute: IntegerAttr, words: Sequence[str]) -> None:
    """Whether `words` has an entry of that number."""
    if not 0 <= (number := attribute.value.data) < len(words):
        raise VerifyException(f"there is no {what} {number}: they are 0 ({words[0]}) to {len(words) - 1} ({words[-1]})")


@completed
class CmpiOp(upstream.CmpiOp, QuickOp):
    """`arith.cmpi slt, %a, %b {note} : vector<4xi32>`: the result is vector<4xi1>."""

    lhs = operand_def(VarConstraint("T", INTEGER_OR_INDEX_LIKE))
    rhs = operand_def(Derived("T", _itself, INTEGER_OR_INDEX_LIKE))
    result = result_def(Derived("T", truth_type, BOOL_LIKE))
    assembly_format = "custom<Predicate>($predicate) `,` $lhs `,` $rhs attr-dict `:` type($lhs)"
    custom_directives = (_predicate(upstream.CMPI_COMPARISON_OPERATIONS),)

    def __init__(self, operand1: Operation | SSAValue, operand2: Operation | SSAValue, arg: int | str):
        _init_comparison(self, operand1, operand2, arg, upstream.CMPI_COMPARISON_OPERATIONS)

    def verify_(self) -> None:
        _verify_comparison(self, upstream.CMPI_COMPARISON_OPERATIONS)


@completed
class CmpfOp(upstream.CmpfOp, QuickOp):
    """`arith.cmpf olt, %a, %b fastmath<nnan> {note} : vector<4xf32>`: the result is vector<4xi1>."""

    lhs = operand_def(VarConstraint("T", FLOAT_LIKE))
    rhs = operand_def(Derived("T", _itself, FLOAT_LIKE))
    result = result_def(Derived("T", truth_type, BOOL_LIKE))
    assembly_format = (
        "custom<Predicate>($predicate) `,` $lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs)"
    )
    custom_directives = (_predicate(upstream.CMPF_COMPARISON_OPERATIONS),)

    def __init__(
        self,
        operand1: SSAValue | Operation,
        operand2: SSAValue | Operation,
        arg: int | str,
        fastmath: FastMathFlagsAttr | None = None,
    ):
        _init_comparison(self, operand1, operand2, arg, upstream.CMPF_COMPARISON_OPERATIONS, fastmath=fastmath)

    def verify_(self) -> None:
        _verify_comparison(self, upstream.CMPF_COMPARISON_OPERATIONS)


@completed
class SelectOp(upstream.SelectOp, QuickOp):
    """`arith.select %c, %a, %b : vector<4xi1>, vector<4xf32>`: the condition's type is written where it is not i1."""

    cond = operand_def(BOOL_LIKE)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        selected = parser.parse_type()
        condition: Attribute = i1
        if parser.parse_optional_punctuation(","):
            condition, selected = selected, parser.parse_type()
        op = cls(*parser.resolve_operands(operands, [condition, selected, selected], start))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if self.cond.type != i1:
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if isinstance(self.cond.type, ShapedType) and not have_compatible_shape(self.cond.type, self.result.type):
            raise VerifyException(f"{self.cond.type} and {self.result.type} differ in shape")


# ---- conversions ------------------------------------------------------------------------------------------------------------------------

ROUNDING_MODES = ("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away")
"""Word of a rounding mode, by number."""

RoundingMode = numbered_word("RoundingMode", dict(enumerate(ROUNDING_MODES)), width=32)


def rounds_to_nearest_even(op: Operation) -> bool:
    """Whether a conversion rounds to nearest even, explicitly or by default."""
    mode = op.properties.get("roundingmode")
    return mode is None or mode == integer(ROUNDING_MODES.index("to_nearest_even"), i32)


def _element_bits(value_type: Attribute) -> int:
    element = get_element_type_or_self(value_type)
    return element.bitwidth if isinstance(element, FixedBitwidthType) else 0


def _verify_cast(self: Any) -> None:
    if not have_compatible_shape(self.input.type, self.result.type):
        raise VerifyException(f"{self.input.type} and {self.result.type} differ in shape")


def _verify_widening(self: Any) -> None:
    _verify_cast(self)
    if _element_bits(self.result.type) <= _element_bits(self.input.type):
        raise VerifyException(f"{self.result.type} is not wider than {self.input.type}")


def _verify_narrowing(self: Any) -> None:
    _verify_cast(self)
    if _element_bits(self.result.type) >= _element_bits(self.input.type):
        raise VerifyException(f"{self.result.type} is not narrower than {self.input.type}")


def _verify_index_cast(self: Any) -> None:
    """One side's elements are indices, the other's integers."""
    _verify_cast(self)
    sides = [isinstance(get_element_type_or_self(value.type), IndexType) for value in (self.input, self.result)]
    if sides[0] == sides[1]:
        raise VerifyException(f"casts between index and integers, not {self.input.type} to {self.result.type}")


_CAST = "$input attr-dict `:` type($input) `to` type($result)"


def _casts(source: Any, target: Any, verify: Callable[[Any], None]) -> dict[str, Any]:
    """Vectors too."""
    return {
        "input": operand_def(source),
        "result": result_def(target),
        "assembly_format": _CAST,
        "verify_": verify,
    }


@completed
class ExtSIOp(upstream.ExtSIOp, QuickOp):
    """Vectors too."""

    input = operand_def(INTEGER_LIKE)
    result = result_def(INTEGER_LIKE)
    assembly_format = _CAST
    verify_ = _verify_widening

    def __init__(self, op: SSAValue | Operation, target_type: Attribute):
        QuickOp.__init__(self, operands=[op], result_types=[target_type])


@completed
class ExtUIOp(upstream.ExtUIOp, QuickOp):
    """Vectors too."""

    input = operand_def(INTEGER_LIKE)
    result = result_def(INTEGER_LIKE)
    assembly_format = _CAST
    verify_ = _verify_widening

    def __init__(self, op: SSAValue | Operation, target_type: Attribute):
        QuickOp.__init__(self, operands=[op], result_types=[target_type])


@completed
class TruncIOp(upstream.TruncIOp, QuickOp):
    """`arith.trunci %a overflow<nsw> : vector<4xi32> to vector<4xi8>`"""

    input = operand_def(INTEGER_LIKE)
    result = result_def(INTEGER_LIKE)
    overflowFlags = prop_def(IntegerOverflowAttr, default_value=IntegerOverflowAttr("none"))
    assembly_format = "$input (`overflow` `` $overflowFlags^)? attr-dict `:` type($input) `to` type($result)"
    verify_ = _verify_narrowing

    def __init__(self, op: SSAValue | Operation, target_type: Attribute):
        QuickOp.__init__(self, operands=[op], result_types=[target_type])


@completed
class ExtFOp(upstream.ExtFOp, QuickOp):
    """`arith.extf %a fastmath<nnan> : bf16 to f32`"""

    input = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    fastmath = opt_prop_def(FastMathFlagsAttr)
    assembly_format = "$input (`fastmath` `` $fastmath^)? attr-dict `:` type($input) `to` type($result)"
    verify_ = _verify_widening


@completed
class TruncFOp(upstream.TruncFOp, QuickOp):
    """`arith.truncf %a toward_zero fastmath<nnan> : f32 to bf16`"""

    input = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    roundingmode = opt_prop_def(IntegerAttr.constr(type=eq(i32)))
    fastmath = opt_prop_def(FastMathFlagsAttr)
    assembly_format = "$input custom<RoundingMode>($roundingmode) (`fastmath` `` $fastmath^)? attr-dict `:` type($input) `to` type($result)"
    custom_directives = (RoundingMode,)
    verify_ = _verify_narrowing


SIToFPOp = completed_by(upstream.SIToFPOp, **_casts(INTEGER_LIKE, FLOAT_LIKE, _verify_cast))
UIToFPOp = completed_by(upstream.UIToFPOp, **_casts(INTEGER_LIKE, FLOAT_LIKE, _verify_cast))
FPToSIOp = completed_by(upstream.FPToSIOp, **_casts(FLOAT_LIKE, INTEGER_LIKE, _verify_cast))
FPToUIOp = completed_by(upstream.FPToUIOp, **_casts(FLOAT_LIKE, INTEGER_LIKE, _verify_cast))
IndexCastOp = completed_by(
    upstream.IndexCastOp, **_casts(INTEGER_OR_INDEX_LIKE, INTEGER_OR_INDEX_LIKE, _verify_index_cast)
)


@op_definition
class IndexCastUIOp(PureOp):
    """`arith.index_castui %a : index to i32`, or the other way round."""

    name = "arith.index_castui"

    input = operand_def(INTEGER_OR_INDEX_LIKE)
    result = result_def(INTEGER_OR_INDEX_LIKE)

    assembly_format = _CAST

    def __init__(self, op: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[op], result_types=[target_type])

    verify_ = _verify_index_cast


@op_definition
class RemfOp(upstream.FloatingPointLikeBinaryOperation, QuickOp):
    """The remainder of a division of floats."""

    name = "arith.remf"

    traits = traits_def(Pure())


def _verify_scaling(op: Any) -> None:
    for other in (op.scale.type, op.result.type):
        if not have_compatible_shape(op.input.type, other):
            raise VerifyException(f"{op.input.type} and {other} differ in shape")


_SCALED: dict[str, Any] = {
    "input": operand_def(FLOAT_LIKE),
    "scale": operand_def(FLOAT_LIKE),
    "result": result_def(FLOAT_LIKE),
    "traits": (Pure(),),
    "verify": _verify_scaling,
}
"""A conversion with a scale, a power of two as f8E8M0FNU or another float."""

ScalingExtFOp = op_of_row(
    "arith.scaling_extf",
    "$input `,` $scale (`fastmath` `` $fastmath^)? attr-dict `:` type($input) `,` type($scale) `to` type($result)",
    properties={"fastmath": opt_prop_def(FastMathFlagsAttr)},
    **_SCALED,
)

ScalingTruncFOp = op_of_row(
    "arith.scaling_truncf",
    "$input `,` $scale custom<RoundingMode>($roundingmode) (`fastmath` `` $fastmath^)? attr-dict"
    " `:` type($input) `,` type($scale) `to` type($result)",
    properties={
        "roundingmode": opt_prop_def(IntegerAttr.constr(type=eq(i32))),
        "fastmath": opt_prop_def(FastMathFlagsAttr),
    },
    directives=(RoundingMode,),
    **_SCALED,
)


class _MayOverflow:
    """The constructor of ops with overflow flags. That of xDSL's class calls `IRDLOperation.__init__` by name, past `QuickOp`'s."""

    def __init__(
        self: Any,
        operand1: SSAValue | Operation,
        operand2: SSAValue | Operation,
        result_type: Attribute | None = None,
        overflow: IntegerOverflowAttr = _NO_OVERFLOW,
    ) -> None:
        QuickOp.__init__(
            self,
            operands=[operand1, operand2],
            properties={"overflowFlags": overflow},
            result_types=[SSAValue.get(operand1).type if result_type is None else result_type],
        )


class AddiOp(_MayOverflow, upstream.AddiOp, QuickOp):
    """See `_MayOverflow`; likewise the next ones."""


class SubiOp(_MayOverflow, upstream.SubiOp, QuickOp):
    pass


class MuliOp(_MayOverflow, upstream.MuliOp, QuickOp):
    pass


class ShLIOp(_MayOverflow, upstream.ShLIOp, QuickOp):
    pass


ARITH = dialect_of(upstream.Arith, names=globals())
