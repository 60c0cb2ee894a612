"""The `llvm` dialect's plain values: constants, elements of vectors, comparisons, choices, casts.

    %c = llvm.mlir.constant(dense<0.0> : vector<4xbf16>) : vector<4xbf16>
    %e = llvm.extractelement %v[%i : i32] : vector<4xbf16>
    %m = llvm.fcmp "olt" %e, %f : bf16

Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from xdsl.dialects import llvm as upstream
from xdsl.dialects.builtin import (
    I1,
    I32,
    AnyFloat,
    AnyFloatConstr,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    SignlessIntegerConstraint,
    StringAttr,
    UnitAttr,
    VectorType,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMPointerType, OverflowAttr
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    irdl_attr_definition,
    irdl_to_attr_constraint,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self, have_compatible_shape

from xla_emitters.dialects.attributes import integer
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.directives import Derived, numbered_word, truth_type
from xla_emitters.dialects.mlir.op_rows import op_of_family
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp

FLOAT = AnyFloatConstr | VectorType.constr(AnyFloatConstr)
"""A float or a vector of floats."""

INTEGER = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
"""A signless integer or a vector of such."""

POINTER = base(LLVMPointerType) | VectorType.constr(LLVMPointerType)
"""A pointer or a vector of pointers."""

NO_FLAGS = FastMathAttr(None)
"""No fastmath flag."""


@irdl_attr_definition
class ConstantRangeAttr(ParametrizedAttribute):
    """`#llvm.constant_range<i32, 0, 128>`: the values lower <= v < upper."""

    name = "llvm.constant_range"

    lower: IntegerAttr
    upper: IntegerAttr

    @staticmethod
    @lru_cache(4096)
    def of(width: int, lower: int, upper: int) -> ConstantRangeAttr:
        """The range of an integer of `width` bits; `upper` is not in it."""
        return ConstantRangeAttr(integer(lower, width), integer(upper, width))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            integer = parser.parse_type()
            if not isa(integer, IntegerType):
                parser.raise_error("a range is of integers", start, parser.pos)
            parser.parse_punctuation(",")
            lower = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(",")
            upper = parser.parse_integer(allow_boolean=False)
        return [IntegerAttr(lower, integer), IntegerAttr(upper, integer)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.lower.type)
            printer.print_string(f", {self.lower.value.data}, {self.upper.value.data}")


@op_definition
class ConstantOp(QuickOp, HasFolderInterface):
    """`llvm.mlir.constant(dense<0.0> : vector<4xbf16>) : vector<4xbf16>`; the value of a struct or an array is a list of its parts."""

    name = "llvm.mlir.constant"

    value = prop_def(IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr | StringAttr | ArrayAttr)
    result = result_def()

    assembly_format = "`(` $value `)` attr-dict `:` type($result)"

    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: Attribute, value_type: Attribute):
        super().__init__(properties={"value": value}, result_types=[value_type])

    def fold(self) -> Sequence[Attribute]:
        return (self.value,)


class SourceOp(PureOp):
    """`llvm.mlir.poison : vector<4xbf16>`: a value that is given by its type."""

    res = result_def()

    assembly_format = "attr-dict `:` type($res)"

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])


ZeroOp = op_of_family(SourceOp, "llvm.mlir.zero")
PoisonOp = op_of_family(SourceOp, "llvm.mlir.poison")


@op_definition
class FreezeOp(PureOp):
    """`llvm.freeze %x : f32`: the value, or an arbitrary fixed one if it is poison."""

    name = "llvm.freeze"

    T: ClassVar = VarConstraint("T", AnyAttr())
    val = operand_def(T)
    res = result_def(T)

    assembly_format = "$val attr-dict `:` type($val)"

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value], result_types=[SSAValue.get(value).type])


@op_definition
class ExtractElementOp(PureOp):
    """`llvm.extractelement %v[%i : i32] : vector<4xbf16>`"""

    name = "llvm.extractelement"

    ELEMENT: ClassVar = VarConstraint("ELEMENT", AnyAttr())
    vector = operand_def(VectorType.constr(ELEMENT))
    position = operand_def(SignlessIntegerConstraint)
    res = result_def(ELEMENT)

    assembly_format = "$vector `[` $position `:` type($position) `]` attr-dict `:` type($vector)"

    def __init__(self, vector: SSAValue | Operation, position: SSAValue | Operation):
        vector_type = SSAValue.get(vector).type
        assert isa(vector_type, VectorType), "extractelement of a value that is not a vector"
        super().__init__(operands=[vector, position], result_types=[vector_type.element_type])


def _predicate(words: Sequence[str]) -> type[CustomDirective]:
    return numbered_word(
        "Predicate", dict(enumerate(words)), "unknown predicate '{word}'; one of: {words}", is_quoted=True
    )


class CompareOp(PureOp):
    """`llvm.icmp "slt" %a, %b : i32`: the predicate is stored as its number."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    predicate = prop_def(IntegerAttr)
    res = result_def(Derived("T", truth_type, irdl_to_attr_constraint(I1 | VectorType[I1])))

    PREDICATES: ClassVar[tuple[str, ...]]

    assembly_format = "custom<Predicate>($predicate) $lhs `,` $rhs attr-dict `:` type($lhs)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, predicate: str):
        super().__init__(
            operands=[lhs, rhs],
            result_types=[truth_type(SSAValue.get(lhs).type)],
            properties={"predicate": IntegerAttr(self.PREDICATES.index(predicate), i64)},
        )

    @property
    def predicate_name(self) -> str:
        """`slt`, `oeq` ..."""
        return self.PREDICATES[self.predicate.value.data]

    def verify_(self) -> None:
        wanted = truth_type(self.lhs.type)
        if self.res.type != wanted:
            raise VerifyException(f"comparing {self.lhs.type} gives {wanted}, not {self.res.type}")
        if not 0 <= self.predicate.value.data < len(self.PREDICATES):
            raise VerifyException(f"there is no predicate {self.predicate.value.data}")


@op_definition
class ICmpOp(CompareOp):
    name = "llvm.icmp"
    PREDICATES: ClassVar = tuple(str(flag) for flag in upstream.ALL_ICMP_FLAGS)
    custom_directives = (_predicate(PREDICATES),)

    def verify_(self) -> None:
        super().verify_()
        if not isinstance(get_element_type_or_self(self.lhs.type), IntegerType | LLVMPointerType):
            raise VerifyException(f"compares integers or pointers, not {self.lhs.type}")


@op_definition
class FCmpOp(CompareOp):
    name = "llvm.fcmp"
    PREDICATES: ClassVar = tuple(str(flag) for flag in upstream.ALL_FCMP_FLAGS)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)

    custom_directives = (_predicate(PREDICATES),)
    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        super().verify_()
        if not isinstance(get_element_type_or_self(self.lhs.type), AnyFloat):
            raise VerifyException(f"compares floats, not {self.lhs.type}")


@op_definition
class SelectOp(PureOp):
    """`llvm.select %c, %a, %b : i1, f32`"""

    name = "llvm.select"

    T: ClassVar = VarConstraint("T", AnyAttr())
    cond = operand_def(I1 | VectorType[I1])
    lhs = operand_def(T)
    rhs = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)
    res = result_def(T)

    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($res)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, cond: SSAValue | Operation, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[cond, lhs, rhs], result_types=[SSAValue.get(lhs).type])


@irdl_custom_directive
class Overflow(CustomDirective):
    """`overflow<nsw, nuw>`, or nothing."""

    flags: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.flags.set(state, IntegerAttr(OverflowAttr.parse(parser).to_int(), 32))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        assert isinstance(op, TruncOp)
        OverflowAttr.from_int(op.overflowFlags.value.data).print(printer)


@op_definition
class TruncOp(PureOp):
    """`llvm.trunc %a overflow<nsw> : i32 to i16`; nsw is flag 1, nuw 2."""

    name = "llvm.trunc"

    arg = operand_def(INTEGER)
    overflowFlags = prop_def(IntegerAttr[I32], default_value=IntegerAttr(0, 32))
    res = result_def(INTEGER)

    assembly_format = "$arg custom<Overflow>($overflowFlags) attr-dict `:` type($arg) `to` type($res)"
    custom_directives = (Overflow,)

    def __init__(self, arg: SSAValue | Operation, res_type: Attribute, overflow: OverflowAttr | None = None):
        super().__init__(
            operands=[arg],
            result_types=[res_type],
            properties={"overflowFlags": IntegerAttr(overflow.to_int() if overflow else 0, 32)},
        )

    def verify_(self) -> None:
        verify_same_shape(self.arg.type, self.res.type)
        if _bits(self.arg.type) <= _bits(self.res.type):
            raise VerifyException(f"cannot truncate {self.arg.type} to {self.res.type}")


def _bits(converted: Attribute) -> int:
    if isa(converted, VectorType):
        converted = converted.element_type
    assert isinstance(converted, IntegerType)
    return converted.bitwidth


class CastOp(PureOp):
    """A conversion of scalars or vectors: `llvm.fptosi %x : f32 to i32`"""

    assembly_format = "$arg attr-dict `:` type($arg) `to` type($result)"

    def __init__(self, arg: SSAValue | Operation, res_type: Attribute):
        super().__init__(operands=[arg], result_types=[res_type])

    def verify_(self) -> None:
        verify_same_shape(self.operands[0].type, self.results[0].type)


def verify_same_shape(source: Attribute, target: Attribute) -> None:
    """raises VerifyException unless both types are scalars, or vectors of one shape"""
    if not have_compatible_shape(source, target):
        raise VerifyException(f"cannot convert {source} to {target}: they differ in shape")


class FloatToIntegerCastOp(CastOp):
    """`llvm.fptosi %x : f32 to i32`"""

    arg = operand_def(FLOAT)
    result = result_def(INTEGER)


class PointerCastOp(CastOp):
    """`llvm.addrspacecast %p : !llvm.ptr<3> to !llvm.ptr`"""

    arg = operand_def(POINTER)
    result = result_def(POINTER)


@op_definition
class UIToFPOp(CastOp):
    """`llvm.uitofp nneg %i : i32 to f32`; `nneg`: the integer is not negative when read as signed."""

    name = "llvm.uitofp"

    arg = operand_def(INTEGER)
    nonNeg = opt_prop_def(UnitAttr)
    result = result_def(FLOAT)

    assembly_format = "(`nneg` $nonNeg^)? $arg attr-dict `:` type($arg) `to` type($result)"


def _verify_conversion(op: upstream.GenericCastOp, source: str, target: str, direction: int) -> None:
    """`direction`: 1 to a wider type, -1 to a narrower one, 0 to either."""
    one, other = op.arg.type, op.result.type
    (kind, bits), (other_kind, other_bits) = _kind_and_bits(one), _kind_and_bits(other)
    if (kind, other_kind) != (source, target) or not have_compatible_shape(one, other):
        raise VerifyException(f"converts {source}s to {target}s of the same shape, not {one} to {other}")
    if (other_bits - bits) * direction < 0 or (direction and other_bits == bits):
        raise VerifyException(f"{other} is not {'wider' if direction > 0 else 'narrower'} than {one}")


def _kind_and_bits(value_type: Attribute) -> tuple[str, int]:
    element = get_element_type_or_self(value_type)
    if isinstance(element, AnyFloat):
        return "float", element.bitwidth
    if isinstance(element, IntegerType):
        return "integer", element.bitwidth
    return "other", 0


class FPExtOp(upstream.FPExtOp, QuickOp):
    """`llvm.fpext %x : f16 to f32`"""

    def verify_(self) -> None:
        super().verify_()
        _verify_conversion(self, "float", "float", 1)


class FPTruncOp(upstream.FPTruncOp, QuickOp):
    """`llvm.fptrunc %x : f32 to f16`"""

    def verify_(self) -> None:
        super().verify_()
        _verify_conversion(self, "float", "float", -1)


class SIToFPOp(upstream.SIToFPOp, QuickOp):
    """`llvm.sitofp %x : i32 to f32`"""

    def verify_(self) -> None:
        super().verify_()
        _verify_conversion(self, "integer", "float", 0)


FPToSIOp = op_of_family(FloatToIntegerCastOp, "llvm.fptosi")
FPToUIOp = op_of_family(FloatToIntegerCastOp, "llvm.fptoui")
AddrSpaceCastOp = op_of_family(PointerCastOp, "llvm.addrspacecast")
