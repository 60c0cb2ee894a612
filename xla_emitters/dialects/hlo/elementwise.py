"""The elementwise HLO ops: one row each, which defines the op's class, its verification, its meaning and its code.

    opcode   operands   takes            meaning (NumPy)      code: float, signed, unsigned, pred
    add      lhs, rhs   every type       np.add               arith.addf, addi, addi, ori
    tanh     operand    float, complex   np.tanh              math.tanh

All operands have one shape, which is the result's; clamp's bounds and select's predicate may be scalars. The deciding type, that of the
first operand (for select, of the second), selects the computation. Meaning: f16, bf16 and narrower floats are computed in float32 and
rounded once to their own type; integers wrap; pred is a truth value. Code: the same op in the same type, so that both agree bit for bit
where the function is not transcendental; floats of eight bits or fewer are extended to f32 and rounded back. Complex numbers are computed
in complex128, and ordered by the real part, then by the imaginary one.
A type without code (asin of a complex number) is refused by name.

A function of real numbers has a row in `functions.py`, with its names and the ops that compute it, and a row here: its value where
NumPy has no such function, and the code of kinds other than floats and complex numbers.

To add an op: one row; a function in `elementwise_meaning.py` or `elementwise_code.py` if no single NumPy function or op does it.
Source: docs/reference/1 5.2-5.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, TypeGuard

import numpy as np
from xdsl.dialects.builtin import AnyFloat, ComplexType, IntegerAttr, IntegerType, StringAttr, f32, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import opt_prop_def, prop_def

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.build import constant_index
from xla_emitters.dialects.hlo import complex_meaning
from xla_emitters.dialects.hlo import elementwise_code as code
from xla_emitters.dialects.hlo import elementwise_meaning as meaning
from xla_emitters.dialects.hlo.base import Call, ElementContext, HloOp, RuleBroken, class_for
from xla_emitters.dialects.hlo.convert import (
    at_least_f16,
    constant,
    convert_array,
    emit_convert,
    emit_float_cast,
    extend_i1,
    low_bit,
    round_once,
    widen,
    wrap,
)
from xla_emitters.dialects.hlo.elementwise_code import Code, op
from xla_emitters.dialects.hlo.elementwise_meaning import Meaning, numpy, ufunc_of
from xla_emitters.dialects.hlo.implicit_broadcast import (
    BROADCAST,
    DONE,
    broadcast_arrays,
    implicit_shape,
    verify_broadcast,
    verify_one_shape,
)
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing, same_axes
from xla_emitters.dialects.hlo.types import (
    array_type,
    dims_of,
    element_of,
    has_dynamic_dims,
    is_array,
    same_dims,
    type_text,
)
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir.math import CountLeadingZerosOp, CtPopOp
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array, DType, Kind, dtype, dtype_of
from xla_emitters.errors import UsageError
from xla_emitters.functions import ADDED, BY_OPCODE
from xla_emitters.support.late_dataclass import dataclass

FLOAT, SIGNED, UNSIGNED, PRED, COMPLEX = Kind.FLOAT, Kind.SIGNED, Kind.UNSIGNED, Kind.PRED, Kind.COMPLEX
INTEGERS = (SIGNED, UNSIGNED)
NUMBERS = (FLOAT, SIGNED, UNSIGNED, COMPLEX)
WITH_SIGN = (FLOAT, SIGNED, COMPLEX)
BITS = (SIGNED, UNSIGNED, PRED)
REAL = (FLOAT, COMPLEX)
EVERY = tuple(Kind)


def same_type(deciding: DType) -> DType:
    return deciding


def real_part(deciding: DType) -> DType:
    return deciding.part


def complex_of(part: DType) -> DType:
    """The complex type with parts of this type; the type itself if there is none."""
    return {"f32": dtype("c64"), "f64": dtype("c128")}.get(part.name, part)


def truth(_: DType) -> DType:
    return dtype("pred")


COMPUTED_IN = frozenset(map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")))
"""NumPy types in which elementwise functions compute without widening, and round or wrap once."""


@dataclass(frozen=True)
class ElementwiseRow:
    """The definition of one op.

    operands  their names in HLO
    takes     kinds that HLO allows for the deciding type
    means     (deciding type, operands widened) -> result, to be rounded or wrapped into the result's type
    code      by kind, the ops of one element; HLO allows some kinds that have no code yet
    result    the result's element type, from the deciding one
    deciding  number of the operand with the deciding type
    scalars   numbers of the operands that may be scalars whatever the result's shape
    """

    opcode: str
    operands: tuple[str, ...]
    takes: tuple[Kind, ...]
    means: Meaning
    code: Mapping[Kind, Code]
    result: Callable[[DType], DType] = same_type
    deciding: int = 0
    scalars: tuple[int, ...] = ()

    @property
    def count(self) -> range:
        """The only number of operands."""
        return range(len(self.operands), len(self.operands) + 1)


def _integer(signed: Code, unsigned: Code | None = None) -> dict[Kind, Code]:
    return {SIGNED: signed, UNSIGNED: unsigned or signed}


X, XY = ("operand",), ("lhs", "rhs")


def _function(
    opcode: str,
    means: Meaning | None = None,
    codes: Mapping[Kind, Code] | None = None,
    *,
    float_code: Callable[[str], Code] = op,
    result: Callable[[DType], DType] = same_type,
) -> ElementwiseRow:
    """The row of a real function, from the row of `functions.py` with that opcode.

    means       by default the function that NumPy has, for every type
    codes       code of kinds other than floats and complex numbers, or of a function without an op
    float_code  makes the code of a float from the name of the function's op
    """
    if (row := BY_OPCODE.get(opcode)) is None:
        raise UsageError(
            f"HLO op '{opcode}' has a row in ROWS of dialects/hlo/elementwise.py, but no real function has this opcode",
            stage="hlo",
            help=f'add RealFunction("{opcode}", ...) to FUNCTIONS of xla_emitters/functions.py',
        )
    found = dict(codes or {})
    if row.op:
        found[FLOAT] = float_code(row.op)
    if row.complex_op:
        found[COMPLEX] = op(row.complex_op)
    if means is None:
        if not row.numpy:
            raise UsageError(
                f"NumPy has no function for HLO op '{opcode}', and its row in ROWS of dialects/hlo/elementwise.py has no formula",
                stage="hlo",
                help=f'_function("{opcode}", formula), with the formula in dialects/hlo/elementwise_meaning.py',
            )
        means = numpy(getattr(np, row.numpy))
    kinds = {FLOAT, *found, *([COMPLEX] if row.takes_complex else [])}
    takes = tuple(kind for kind in NUMBERS if kind in kinds)
    return ElementwiseRow(opcode, X if row.operands == 1 else XY, takes, means, found, result)


# fmt: off
ROWS: tuple[ElementwiseRow, ...] = (
    # arithmetic
    ElementwiseRow("add", XY, (*NUMBERS, PRED), numpy(np.add),
        {FLOAT: op(arith.AddfOp), **_integer(op(arith.AddiOp)), PRED: op(arith.OrIOp),
         COMPLEX: op("complex.add")}),
    ElementwiseRow("subtract", XY, NUMBERS, numpy(np.subtract),
        {FLOAT: op(arith.SubfOp), **_integer(op(arith.SubiOp)), COMPLEX: op("complex.sub")}),
    ElementwiseRow("multiply", XY, (*NUMBERS, PRED), meaning.multiply,
        {FLOAT: op(arith.MulfOp), **_integer(op(arith.MuliOp)), PRED: op(arith.AndIOp),
         COMPLEX: op("complex.mul")}),
    _function("divide", meaning.divide, _integer(code.divide)),
    _function("remainder", meaning.remainder, _integer(code.remainder)),
    _function("power", meaning.power, _integer(code.power)),
    ElementwiseRow("mulhi", XY, INTEGERS, meaning.multiply_high, _integer(code.multiply_high)),
    _function("atan2", meaning.arc_tangent_of_quotient),
    ElementwiseRow("negate", X, NUMBERS, numpy(np.negative),
        {FLOAT: op(arith.NegfOp), **_integer(code.negate), COMPLEX: op("complex.neg")}),
    _function("abs", None, {SIGNED: code.absolute}, result=real_part),
    ElementwiseRow("sign", X, WITH_SIGN, meaning.sign,
        {FLOAT: code.sign_of_float, SIGNED: code.sign_of_integer, COMPLEX: op("complex.sign")}),

    # order
    ElementwiseRow("maximum", XY, (*NUMBERS, PRED), meaning.maximum,
        {FLOAT: op(arith.MaximumfOp), **_integer(op(arith.MaxSIOp), op(arith.MaxUIOp)), PRED: op(arith.OrIOp),
         COMPLEX: code.extreme_complex("GE")}),
    ElementwiseRow("minimum", XY, (*NUMBERS, PRED), meaning.minimum,
        {FLOAT: op(arith.MinimumfOp), **_integer(op(arith.MinSIOp), op(arith.MinUIOp)), PRED: op(arith.AndIOp),
         COMPLEX: code.extreme_complex("LE")}),
    ElementwiseRow("clamp", ("min", "operand", "max"), EVERY, meaning.clamp,
        {FLOAT: code.clamp(arith.MaximumfOp, arith.MinimumfOp),
         **_integer(code.clamp(arith.MaxSIOp, arith.MinSIOp), code.clamp(arith.MaxUIOp, arith.MinUIOp)),
         PRED: code.clamp(arith.OrIOp, arith.AndIOp), COMPLEX: code.clamp_complex},
        deciding=1, scalars=(0, 2)),
    ElementwiseRow("is-finite", X, (FLOAT,), numpy(np.isfinite), {FLOAT: code.is_finite}, result=truth),

    # parts of complex numbers
    ElementwiseRow("real", X, REAL, numpy(np.real), {FLOAT: code.operand, COMPLEX: op("complex.re")},
        result=real_part),
    ElementwiseRow("imag", X, REAL, numpy(np.imag), {FLOAT: code.zero, COMPLEX: op("complex.im")},
        result=real_part),

    # bits and truth values
    ElementwiseRow("and", XY, BITS, numpy(np.bitwise_and), dict.fromkeys(BITS, op(arith.AndIOp))),
    ElementwiseRow("or", XY, BITS, numpy(np.bitwise_or), dict.fromkeys(BITS, op(arith.OrIOp))),
    ElementwiseRow("xor", XY, BITS, numpy(np.bitwise_xor), dict.fromkeys(BITS, op(arith.XOrIOp))),
    ElementwiseRow("not", X, BITS, numpy(np.invert), {**_integer(code.complement), PRED: code.logical_not}),
    ElementwiseRow("shift-left", XY, INTEGERS, meaning.shift_left, _integer(code.shift_left)),
    ElementwiseRow("shift-right-logical", XY, INTEGERS, meaning.shift_right_logical, _integer(code.shift_right_logical)),
    ElementwiseRow("shift-right-arithmetic", XY, INTEGERS, meaning.shift_right_arithmetic, _integer(code.shift_right_arithmetic)),
    ElementwiseRow("popcnt", X, INTEGERS, meaning.population_count, _integer(op(CtPopOp))),
    ElementwiseRow("count-leading-zeros", X, INTEGERS, meaning.count_leading_zeros, _integer(op(CountLeadingZerosOp))),

    # rounding
    _function("ceil"),
    _function("floor"),
    _function("round-nearest-afz", meaning.round_half_away),
    _function("round-nearest-even"),

    # functions
    _function("exponential", float_code=code.approximate),
    _function("exponential-minus-one", meaning.exp_minus_one),
    _function("log", float_code=code.approximate),
    _function("log-plus-one", meaning.log_plus_one),
    _function("logistic", meaning.logistic, {FLOAT: code.logistic, COMPLEX: code.logistic_of_complex}),
    _function("sqrt"),
    _function("rsqrt", meaning.reciprocal_sqrt),
    _function("cbrt"),
    _function("erf", meaning.error_function),
    _function("sine"),
    _function("cosine"),
    _function("tan"),
    _function("sinh"),
    _function("cosh"),
    _function("tanh"),
    _function("asin"),
    _function("acos"),
    _function("asinh"),
    _function("acosh"),
    _function("atanh"),
    *(_function(row.opcode) for row in ADDED if row.opcode),
)
# fmt: on


class ElementwiseOp(HloOp):
    """An op of the table; its definition is `ROW`."""

    ROW: ClassVar[ElementwiseRow]

    @property
    def deciding(self) -> DType:
        """The deciding type, see the head."""
        return element_of(self.operands[self.ROW.deciding])

    def types_wanted(self, deciding: DType) -> tuple[DType, ...]:
        return (deciding,) * len(self.ROW.operands)

    def result_type(self, deciding: DType) -> DType:
        return self.ROW.result(deciding)

    # ------------------------------------------------------------------------------------------- rule

    def infer_type(self) -> Attribute | None:
        return array_type(self.result_type(self.deciding).ir_type, dims_of(self.operands[self.ROW.deciding]))

    def verify_(self) -> None:
        super().verify_()
        if self._is_of_one_type():
            return
        self._verify_shapes()
        row, deciding = self.ROW, self.deciding
        if deciding.kind not in row.takes:
            raise RuleBroken(
                f"'{row.opcode}' does not take {deciding.name}", f"it takes {_kinds(row.takes)}", operand=row.deciding
            )
        for i, (operand, wanted) in enumerate(zip(self.operands, self.types_wanted(deciding), strict=True)):
            if element_of(operand) != wanted:
                raise RuleBroken(
                    "elementwise operands differ in type",
                    f"operand {i} is {type_text(operand.type)}; '{row.opcode}' needs {wanted.name} here",
                    operand=i,
                    help=f"convert(%{_name(operand)})",
                )
        self.expect_type(array_type(self.result_type(deciding).ir_type, dims_of(self.result)), "it must be")

    def _is_of_one_type(self) -> bool:
        """Whether operands and result have one array type object that the op allows: a fast path for most ops of a module."""
        shared = self.results[0].type
        if self.ROW.result is not same_type or any(operand.type is not shared for operand in self.operands):
            return False
        if not is_array(shared):
            return False
        deciding = dtype_of(shared.element_type)
        return deciding.kind in self.ROW.takes and all(wanted is deciding for wanted in self.types_wanted(deciding))

    def _verify_shapes(self) -> None:
        if BROADCAST in self.attributes:
            return verify_broadcast(self)
        rank = len(dims_of(self.operands[self.ROW.deciding]))
        if any(len(dims_of(self.operands[i])) != rank for i in self._arrays()):
            raise self._differ()
        self.expect_dims(self.inferred_dims(), "its operands have")

    def _arrays(self) -> list[int]:
        """The operands that have the result's shape, the deciding one first: those that may be scalars need not."""
        row = self.ROW
        others = (i for i in range(len(self.operands)) if i != row.deciding)
        return [row.deciding, *(i for i in others if i not in row.scalars or dims_of(self.operands[i]))]

    def _differ(self) -> RuleBroken:
        """The message for operands of different shapes: for the first that differs from the result, if one has its shape."""
        shapes = [dims_of(operand) for operand in self.operands]
        wanted = dims_of(self.result) if dims_of(self.result) in shapes else shapes[self.ROW.deciding]
        i = next(i for i in sorted(self._arrays()) if not same_dims(shapes[i], wanted))
        needed = type_text(array_type(element_of(self.operands[i]).ir_type, wanted))
        axes = _broadcast_dimensions(shapes[i], wanted)
        return RuleBroken(
            "elementwise operands differ in shape",
            f"operand {i} is {type_text(self.operands[i].type)}; '{self.opcode}' needs {needed}",
            operand=i,
            help="" if axes is None else f"{needed} broadcast(%{_name(self.operands[i])}), dimensions={{{axes}}}",
        )

    def shapes(self, s: Sizing) -> Sequence[Shape] | None:
        if BROADCAST in self.attributes and DONE not in self.attributes:
            return [implicit_shape(self, s)]
        return [same_axes(s, self._arrays(), lambda i: self._differ())]

    # ------------------------------------------------------------------------------------------- meaning

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        if BROADCAST in self.attributes:
            operands = broadcast_arrays(self, operands)
        elif has_dynamic_dims(self.result.type):
            verify_one_shape(self, operands, self.ROW.scalars)
        with np.errstate(all="ignore"):
            values = [widen(np.asarray(operand)) for operand in operands]
            if self.deciding.kind is COMPLEX:
                values = [value.astype(np.complex128) for value in values]
            value = self.ROW.means(self.deciding, *values)
            return fit(value, element_of(self.result))

    def ufunc(self) -> np.ufunc | None:
        """The NumPy function that computes the value into an array of the result's type with the same bits; None if one is not enough."""
        types = [element_of(value) for value in (*self.operands, self.result)]
        if BROADCAST in self.attributes or any(held.numpy not in COMPUTED_IN for held in types):
            return None
        return ufunc_of(self.ROW.means, self.deciding)

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        identity, scalar = _maps_over(dims_of(self.result))
        return tuple(scalar if self._is_scalar(i) else identity for i in range(len(self.operands)))

    def _is_scalar(self, i: int) -> bool:
        return i in self.ROW.scalars and not dims_of(self.operands[i])

    # ------------------------------------------------------------------------------------------- code

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        deciding, result = self.deciding, element_of(self.result)
        emit = self.ROW.code.get(deciding.kind)
        if emit is None:
            raise self.unsupported(
                f"no code in {deciding.name}",
                help=f"'{self.opcode}' has code for: {_kinds(tuple(self.ROW.code)) or 'no type'}",
            )
        values = [e.operand(i, () if self._is_scalar(i) else None) for i in range(len(self.operands))]
        in_f32 = deciding.is_narrow_float
        if in_f32:
            values = [emit_float_cast(e, value, f32) for value in values]
        elif deciding.significant_bits == 1:
            values = [low_bit(e, value) for value in values]
        value = emit(e, deciding, *values)
        if value.type == i1:
            value = extend_i1(e, value)
        elif in_f32:
            value = emit_float_cast(e, value, result.storage_type)
        return (value,)


@lru_cache(maxsize=1024)
def _maps_over(dims: tuple[int, ...]) -> tuple[IndexingMap, IndexingMap]:
    """The identity over an array, and the map of a scalar; cached, because a computation has thousands of ops of one shape."""
    identity = identity_map(dims)
    return identity, replace(identity, results=())


def fit(value: Array, target: DType) -> Array:
    """A result in NumPy's type converted to the HLO type `target`: rounded once, or wrapped."""
    match target.kind:
        case Kind.FLOAT:
            return round_once(value, target.numpy)
        case Kind.SIGNED | Kind.UNSIGNED:
            return wrap(value, target)
        case _:
            return value.astype(target.numpy)


def _kinds(kinds: Sequence[Kind]) -> str:
    return ", ".join(kind.value for kind in kinds)


def _name(value: SSAValue) -> str:
    return value.owner.instruction_name.data if isinstance(value.owner, HloOp) else value.name_hint or "operand"


def _broadcast_dimensions(dims: Sequence[int], wanted: Sequence[int]) -> str | None:
    """HLO's `dimensions` of the broadcast from `dims` to `wanted`, preferring minor dimensions; None if there is none."""
    axes, left = list[int](), len(wanted)
    for dim in reversed(dims):
        left = next((axis for axis in range(left - 1, -1, -1) if wanted[axis] == dim), -1)
        if left < 0:
            return None
        axes.insert(0, left)
    return ",".join(map(str, axes))


# ------------------------------------------------------------------------------------------- ops with classes of their own


def _no_meaning(_: DType, *__: Array) -> Array:
    raise NotImplementedError("the op evaluates itself")


def _row(opcode: str, operands: tuple[str, ...], takes: tuple[Kind, ...], **rest: Any) -> ElementwiseRow:
    """The row of an op whose class overrides `evaluate` and `emit_element`; it only has the rule."""
    return ElementwiseRow(opcode, operands, takes, _no_meaning, {}, **rest)


@op_definition
class CopyOp(ElementwiseOp):
    """The same array, perhaps in another layout; or the same tuple of them."""

    name = "hlo.copy"
    READS_ONCE: ClassVar = True
    ROW: ClassVar[ElementwiseRow] = _row("copy", X, EVERY)
    OPERANDS: ClassVar[range | None] = range(1, 2)

    def infer_type(self) -> Attribute:
        return self.operands[0].type

    def verify_(self) -> None:
        self.expect_type(self.infer_type(), "its operand is")

    def shapes(self, s: Sizing) -> Sequence[Shape] | None:
        return super().shapes(s) if is_array(self.operands[0].type) else None

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return operands[0]

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        return (e.operand(0),)


@op_definition
class SelectOp(ElementwiseOp):
    """`on_true` where the predicate holds, else `on_false`."""

    name = "hlo.select"
    ROW: ClassVar[ElementwiseRow] = _row("select", ("pred", "on_true", "on_false"), EVERY, deciding=1, scalars=(0,))
    OPERANDS: ClassVar[range | None] = range(3, 4)

    def types_wanted(self, deciding: DType) -> tuple[DType, ...]:
        return (dtype("pred"), deciding, deciding)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        predicate, then, otherwise = (np.asarray(operand) for operand in operands)
        return np.where(predicate, then, otherwise)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        predicate = e.operand(0, () if self._is_scalar(0) else None)
        return (code.select(e, self.deciding, predicate, e.operand(1), e.operand(2)),)


@op_definition
class CompareOp(ElementwiseOp):
    """Whether `lhs` compares as `direction` to `rhs`.

    direction  EQ, NE, GE, GT, LE or LT
    type       FLOAT, TOTALORDER, SIGNED or UNSIGNED; by default that of the operands' type. FLOAT: NaN is unequal to all
               values and unordered. TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < NaN.
    """

    name = "hlo.compare"
    ROW: ClassVar[ElementwiseRow] = _row("compare", XY, EVERY, result=truth)
    OPERANDS: ClassVar[range | None] = range(2, 3)

    direction = prop_def(StringAttr)
    comparison = opt_prop_def(StringAttr, prop_name="type")

    TYPES: ClassVar[Mapping[Kind, tuple[str, ...]]] = {
        FLOAT: ("FLOAT", "TOTALORDER"),
        SIGNED: ("SIGNED",),
        UNSIGNED: ("UNSIGNED",),
        PRED: ("UNSIGNED",),
        COMPLEX: ("FLOAT",),
    }
    FUNCTIONS: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {
        "EQ": np.equal,
        "NE": np.not_equal,
        "GE": np.greater_equal,
        "GT": np.greater,
        "LE": np.less_equal,
        "LT": np.less,
    }

    @property
    def is_total_order(self) -> bool:
        return self.comparison is not None and self.comparison.data == "TOTALORDER"

    def verify_(self) -> None:
        super().verify_()
        allowed = self.TYPES[self.deciding.kind]
        if self.comparison is not None and self.comparison.data not in allowed:
            raise RuleBroken(
                f"comparison type {self.comparison.data} does not fit {self.deciding.name}",
                f"for {self.deciding.name} it is {' or '.join(allowed)}",
            )
        if self.direction.data not in self.FUNCTIONS:
            raise RuleBroken(f"no comparison '{self.direction.data}'", f"there are {', '.join(self.FUNCTIONS)}")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        x, y = (widen(np.asarray(operand)) for operand in operands)
        if self.is_total_order:
            x, y = meaning.total_order(x), meaning.total_order(y)
        elif self.deciding.kind is COMPLEX and self.direction.data not in ("EQ", "NE"):
            strictly = self.FUNCTIONS[self.direction.data.replace("E", "T")]
            return np.asarray(complex_meaning.stands(strictly, self.FUNCTIONS[self.direction.data], x, y))
        return np.asarray(self.FUNCTIONS[self.direction.data](x, y))

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        deciding, direction = self.deciding, self.direction.data
        x, y = e.operand(0), e.operand(1)
        if deciding.significant_bits == 1:
            x, y = low_bit(e, x), low_bit(e, y)
        if deciding.kind is COMPLEX:
            return (extend_i1(e, code.compare_complex(e, direction, x, y)),)
        if deciding.kind is FLOAT:
            x, y = at_least_f16(e, x), at_least_f16(e, y)
            return (extend_i1(e, code.compare_floats(e, direction, self.is_total_order, x, y)),)
        return (extend_i1(e, code.compare_integers(e, direction, deciding.kind is UNSIGNED, x, y)),)


@op_definition
class ConvertOp(ElementwiseOp):
    """The same value in another type; see `convert.py`."""

    name = "hlo.convert"
    ROW: ClassVar[ElementwiseRow] = _row("convert", X, EVERY)
    OPERANDS: ClassVar[range | None] = range(1, 2)

    def result_type(self, deciding: DType) -> DType:
        return element_of(self.result)

    def infer_type(self) -> Attribute | None:
        return None

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return convert_array(np.asarray(operands[0]), self.deciding, element_of(self.result))

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        return (emit_convert(e, e.operand(0), self.deciding, element_of(self.result)),)


@op_definition
class BitcastConvertOp(ElementwiseOp):
    """The same bits read as another type; where widths differ, the most minor dimension holds the parts of one wide element."""

    name = "hlo.bitcast_convert"
    ROW: ClassVar[ElementwiseRow] = _row("bitcast-convert", X, EVERY)
    OPERANDS: ClassVar[range | None] = range(1, 2)

    def verify_(self) -> None:
        source, target = self.deciding, element_of(self.result)
        if target.bits > source.bits and not dims_of(self.operands[0]):
            raise self._no_parts()
        why = "its operand has"
        if target.bits < source.bits:
            why = f"{source.name} is {self.parts} of {target.name}, so it must be"
        elif target.bits > source.bits:
            why = f"{self.parts} of {source.name} are one {target.name}, so it must be"
        self.expect_dims(self.inferred_dims(), why)

    def _no_parts(self) -> RuleBroken:
        return RuleBroken(
            "bitcast-convert to a wider type needs a minor dimension that holds its parts",
            f"operand 0 is {type_text(self.operands[0].type)}; its last dimension must be {self.parts}",
            operand=0,
        )

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        """The parts of a wide element are the last dimension of the narrow array."""
        source, target, sizes = self.deciding, element_of(self.result), s.axes(0)
        if target.bits > source.bits:
            s.same(sizes[-1], self.parts, self._no_parts)
        wide = sizes[:-1] if target.bits > source.bits else sizes
        return [[*wide, self.parts] if target.bits < source.bits else wide]

    @property
    def parts(self) -> int:
        """The number of narrow elements in a wide one; 1 where both have the same width."""
        widths = self.deciding.bits, element_of(self.result).bits
        return max(widths) // min(widths)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        source, target = self.deciding, element_of(self.result)
        x = np.asarray(operands[0], order="C")
        if self.parts == 1:
            return bits_as(x, source, target)
        self._only_real_numbers()
        narrow = min(source.bits, target.bits)
        places = np.arange(self.parts, dtype=np.uint64) * np.uint64(narrow)
        of_source, of_target = dtype(f"u{source.bits}"), dtype(f"u{target.bits}")
        bits = bits_as(x, source, of_source).astype(np.uint64)
        if target.bits > narrow:
            found = (bits << places).sum(-1, dtype=np.uint64)
        else:
            found = (bits[..., np.newaxis] >> places) & np.uint64((1 << narrow) - 1)
        return bits_as(found.astype(of_target.numpy), of_target, target)

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        """A narrow element is part of the wide one at its indices without the last; a wide one consists of those along one more dim."""
        if self.parts == 1:
            return super().output_to_input()
        whole = identity_map(dims_of(self.result))
        if element_of(self.result).bits < self.deciding.bits:
            return (IndexingMap(whole.results[:-1], whole.dims),)
        part = Variable(Interval(0, self.parts - 1))
        return (IndexingMap((*whole.results, Expr.variable(len(whole.dims))), whole.dims, (part,)),)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        source, target = self.deciding, element_of(self.result)
        self._only_real_numbers()
        if self.parts == 1:
            return (_as(e, e.operand(0), target.storage_type),)
        narrow, wide = sorted((source.bits, target.bits))
        wide_type = IntegerType(wide)
        width = constant(e, narrow, wide_type)
        if target.bits == wide:
            bits = constant(e, 0, wide_type)
            for number in reversed(range(self.parts)):
                value = e.operand(0, [*e.indices, constant_index(e.builder, number)])
                part = e.insert(arith.ExtUIOp(_as(e, value, IntegerType(narrow)), wide_type)).result
                bits = e.insert(arith.OrIOp(e.insert(arith.ShLIOp(bits, width)).result, part)).result
            return (_as(e, bits, target.storage_type),)
        *indices, number = e.indices
        bits = _as(e, e.operand(0, indices), wide_type)
        place = e.insert(arith.MuliOp(e.insert(arith.IndexCastOp(number, wide_type)).result, width)).result
        part = e.insert(arith.TruncIOp(e.insert(arith.ShRUIOp(bits, place)).result, IntegerType(narrow))).result
        return (_as(e, part, target.storage_type),)

    def _only_real_numbers(self) -> None:
        source, target = self.deciding, element_of(self.result)
        kinds = {source.kind, target.kind}
        if COMPLEX in kinds or (PRED in kinds and self.parts > 1):
            raise self.unsupported(
                f"no code from {source.name} to {target.name}", help="supported: integers and floats"
            )


def _as(e: ElementContext, value: SSAValue, target: Attribute) -> SSAValue:
    """The bits of `value` as another type of the same width."""
    return value if value.type == target else e.insert(arith.BitcastOp(value, target)).result


def is_elementwise(op: object) -> TypeGuard[ElementwiseOp]:
    """Whether an element of the result is computed from the operands' elements at the same indices, and from scalars."""
    return isinstance(op, ElementwiseOp) and not (isinstance(op, BitcastConvertOp) and op.parts > 1)


def is_elementwise_or_map(op: HloOp) -> bool:
    """Whether `op` is what XLA calls elementwise."""
    return is_elementwise(op) or op.opcode == "map"


def bits_as(x: Array, source: DType, target: DType) -> Array:
    """The bits of `x`, of type `source`, as `target`, a type of the same width. One byte per element below eight bits; pred is 0 or 1."""
    if target.kind is PRED:
        return x.view(np.uint8) != 0
    if source.bits >= 8:
        return x.view(target.numpy)
    low = x.view(np.uint8) & np.uint8((1 << source.bits) - 1)
    return wrap(low, target) if target.is_integer else low.view(target.numpy)


@op_definition
class ComplexOp(ElementwiseOp):
    """A complex number from its real and imaginary part."""

    name = "hlo.complex"
    ROW: ClassVar[ElementwiseRow] = _row("complex", XY, (FLOAT,), result=complex_of)
    OPERANDS: ClassVar[range | None] = range(2, 3)

    def verify_(self) -> None:
        super().verify_()
        if self.deciding.name not in ("f32", "f64"):
            raise RuleBroken(
                f"no complex type with parts of {self.deciding.name}",
                "complex numbers have parts of f32 or f64",
                operand=0,
            )

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        real, imag = operands
        value = np.empty(np.shape(real), element_of(self.result).numpy)
        value.real, value.imag = real, imag
        return value

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        result_type = element_of(self.result).ir_type
        assert isa(result_type, ComplexType[AnyFloat])
        from xla_emitters.dialects.mlir import complex  # imported here: few kernels have complex numbers

        return (e.insert(complex.CreateOp(e.operand(0), e.operand(1), result_type)).complex,)


@op_definition
class ReducePrecisionOp(ElementwiseOp):
    """A float rounded to fewer exponent and mantissa bits, in its own type."""

    name = "hlo.reduce_precision"
    ROW: ClassVar[ElementwiseRow] = _row("reduce-precision", X, (FLOAT,))
    OPERANDS: ClassVar[range | None] = range(1, 2)

    exponent_bits = prop_def(IntegerAttr)
    mantissa_bits = prop_def(IntegerAttr)

    @property
    def kept_bits(self) -> tuple[int, int]:
        """Number of exponent bits and of mantissa bits."""
        return self.exponent_bits.value.data, self.mantissa_bits.value.data

    def verify_(self) -> None:
        super().verify_()
        exponent, mantissa = self.kept_bits
        if exponent < 1 or mantissa < 0:
            raise RuleBroken(
                f"no float has {exponent} exponent and {mantissa} mantissa bits",
                "exponent_bits is at least 1, mantissa_bits at least 0",
            )

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return meaning.reduce_precision(np.asarray(operands[0]), self.deciding, *self.kept_bits)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        return (code.reduce_precision(e, self.deciding, *self.kept_bits, e.operand(0)),)


OPS: tuple[type[HloOp], ...] = (
    *(class_for(ElementwiseOp, row.opcode, __name__, {"ROW": row, "OPERANDS": row.count}) for row in ROWS),
    CopyOp,
    SelectOp,
    CompareOp,
    ConvertOp,
    BitcastConvertOp,
    ComplexOp,
    ReducePrecisionOp,
)
"""Every elementwise op, one class per opcode."""
