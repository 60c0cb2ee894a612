"""Fold ops whose value is known: `arith` ops on constants, and ops whose result is one of their operands.

    arith.addi  %c3, %c4 : index                ->  %c7
    arith.mulf  %cst, %cst_0 : bf16             ->  a bf16 constant, rounded once, as the op itself would
    arith.xori  %x, %x : i1                     ->  %false
    arith.trunci (arith.extui %x : i1 to i8)    ->  %x
    vector.extract (vector.insert %x, %v [0]) [0]  ->  %x

Only exact folds are done. Integers wrap. Floats are folded in the four types that hardware computes in, with one rounding to the op's own
type: products, sums and quotients of f16, bf16 and f32 are computed in f64, which has more than twice their bits, so that rounding its
result again is innocuous (Figueroa 1995). x + 0.0 stays (it turns -0.0 into 0.0); x * 1.0, x + -0.0 and x - 0.0 become x. Ops of `math`
are not folded, because libm's results differ from the GPU's. The width of `index`, 32 or 64 bits, is not known here, so folds that
depend on it are not done.

Ops of other dialects have their own folders (xDSL's `HasFolder`). The ones of `complex` products and quotients are not used: they compute
in Python's complex numbers, but the op rounds each product of parts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.traits import HasFolder

from xla_emitters.dialects.completion import adopt
from xla_emitters.dialects.float_bits import float_attr
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, vector
from xla_emitters.dialects.mlir.arith import IndexCastUIOp, rounds_to_nearest_even
from xla_emitters.dialects.quick_accessors import item
from xla_emitters.dialects.quick_op import operands_of
from xla_emitters.dtypes import WIDE_FLOATS
from xla_emitters.functions import FUNCTIONS
from xla_emitters.rewrite.constants import (
    AnyInteger,
    ConstantPool,
    constant_integer,
    constant_op,
    constant_value,
    entry_block,
    integer_attr,
    is_constant_value,
    signed_of,
    width,
    wrap,
)
from xla_emitters.rewrite.effects import has_trait_type

Constants = Sequence[Attribute | None]
Folder = Callable[[Any, Constants], SSAValue | Attribute | None]


def constant_to_the_right(op: Operation) -> bool:
    """Rewrites `%c + %x` to `%x + %c`, so that folders check only one side; returns whether it did. `op` commutes."""
    operands = operands_of(op)
    if len(operands) != 2 or not is_constant_value(item(operands, 0)) or is_constant_value(item(operands, 1)):
        return False
    left, right = operands
    op.operands = (right, left)
    return True


ROUND_BETWEEN = frozenset(("complex.mul", *(row.complex_op for row in FUNCTIONS)))
"""Names of ops that round more than once; xDSL's folders for them do not, so they are not used."""


@cache
def has_folder(op_type: type[Operation]) -> bool:
    """Whether `fold_op` may fold ops of `op_type`."""
    if op_type in FOLDERS:
        return True
    return (
        has_trait_type(op_type, HasFolder) and op_type.dialect_name() != "arith" and op_type.name not in ROUND_BETWEEN
    )


def fold_op(op: Operation, pool: ConstantPool, ctx: Context | None) -> list[SSAValue] | None:
    """The values that `op`'s results always have, or None. `op` itself is not changed."""
    folded: Sequence[SSAValue | Attribute] | None
    if (folder := FOLDERS.get(type(op))) is not None:
        if (only := folder(op, [constant_value(operand) for operand in operands_of(op)])) is None:
            return None
        folded = (only,)
    elif not has_folder(type(op)):
        return None
    else:
        trait = op.get_trait(HasFolder)
        folded = trait.fold(op) if trait is not None else None
    if folded is None:
        return None
    values: list[SSAValue] = []
    for value, result in zip(folded, op.results, strict=True):
        if isinstance(value, SSAValue):
            values.append(value)
        elif (constant := materialize(value, result.type, op, ctx)) is not None:
            constant.location = op.location
            values.append(pool.unique(constant, entry_block(op)).results[0])
        else:
            return None
    return values


def materialize(value: Attribute, result_type: Attribute, op: Operation, ctx: Context | None) -> Operation | None:
    """A constant op of `value`: `arith.constant`, or the constant op of `op`'s dialect; None if neither can hold it."""
    if isinstance(value, IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr):
        held = cast("AnyInteger | FloatAttr", value)
        return constant_op(held) if held.get_type() == result_type else None
    if ctx is None or not isinstance(result_type, TypeAttribute):
        return None
    interface = ctx.get_dialect(op.dialect_name()).get_interface(ConstantMaterializationInterface)
    made = None if interface is None else interface.materialize_constant(value, result_type)
    return None if made is None else adopt(made)  # xDSL's dialects make ops of xDSL's classes


# Integers ----------------------------------------------------------------------------------------------------------------


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def _divide_towards_zero(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


# The low bits of the result depend on the low bits of the operands only: good for an index of any width.
WRAPPING: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
}
SIGNED: dict[type[Operation], Callable[[int, int], int]] = {
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}
UNSIGNED: dict[type[Operation], Callable[[int, int], int]] = {
    arith.MinUIOp: min,
    arith.MaxUIOp: max,
}
SIGNED_DIVISIONS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.DivSIOp: _divide_towards_zero,
    arith.RemSIOp: lambda a, b: a - b * _divide_towards_zero(a, b),
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.CeilDivSIOp: _ceildiv,
}
UNSIGNED_DIVISIONS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.DivUIOp: lambda a, b: a // b,
    arith.RemUIOp: lambda a, b: a % b,
    arith.CeilDivUIOp: _ceildiv,
}
SHIFTS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.ShLIOp: lambda a, b: a << b,
    arith.ShRSIOp: lambda a, b: a >> b,
    arith.ShRUIOp: lambda a, b: a >> b,
}
# x op unit = x, by the unit's unsigned value; -1 means all ones.
RIGHT_UNIT: dict[type[Operation], int] = {
    **dict.fromkeys((arith.AddiOp, arith.SubiOp, arith.OrIOp, arith.XOrIOp, *SHIFTS), 0),
    **dict.fromkeys(
        (arith.MuliOp, arith.DivUIOp, arith.CeilDivUIOp, arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp), 1
    ),
    arith.AndIOp: -1,
}
# x op zero = zero.
RIGHT_ZERO: dict[type[Operation], int] = {arith.MuliOp: 0, arith.AndIOp: 0, arith.OrIOp: -1}
SAME_IS_OPERAND = (arith.AndIOp, arith.OrIOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp)
SAME_IS_ZERO = (arith.SubiOp, arith.XOrIOp)


def _fold_integer(op: arith.SignlessIntegerBinaryOperation, constants: Constants) -> SSAValue | Attribute | None:
    result_type = op.result.type
    if (bits := width(result_type)) is None:
        return None
    op_type = type(op)
    if op.lhs is op.rhs:
        if op_type in SAME_IS_OPERAND:
            return op.lhs
        if op_type in SAME_IS_ZERO:
            return integer_attr(0, result_type)
    if (right := signed_of(constants[1])) is None:
        return None
    if (left := signed_of(constants[0])) is not None:
        value = _compute_integer(op_type, left, right, bits, isinstance(result_type, IndexType))
        return None if value is None else integer_attr(value, result_type)
    if bits == 1 and op_type in SIGNED_DIVISIONS:
        return None  # the only signed i1 beside 0 is -1
    if op_type in RIGHT_UNIT and wrap(RIGHT_UNIT[op_type], bits) == right:
        return op.lhs
    if op_type in RIGHT_ZERO and wrap(RIGHT_ZERO[op_type], bits) == right:
        return integer_attr(right, result_type)
    if op_type in (arith.RemUIOp, arith.RemSIOp) and right == 1:
        return integer_attr(0, result_type)
    return None


def _compute_integer(op_type: type[Operation], left: int, right: int, bits: int, is_index: bool) -> int | None:
    """The result for two constants, not yet wrapped; None where it is undefined or depends on the width of index."""
    if (operation := WRAPPING.get(op_type)) is not None:
        return operation(left, right)
    known_bits = 32 if is_index else bits
    if is_index and not (_fits(left, 32) and _fits(right, 32)):
        return None
    if (operation := SIGNED.get(op_type)) is not None:
        return operation(left, right)
    if (operation := SHIFTS.get(op_type)) is not None:
        if not 0 <= right < known_bits:
            return None
        if op_type is arith.ShRUIOp:
            if is_index and left < 0:
                return None
            left &= (1 << bits) - 1
        return operation(left, right)
    if (operation := SIGNED_DIVISIONS.get(op_type)) is not None:
        if right == 0 or (right == -1 and left == -(1 << (known_bits - 1))):
            return None
        return operation(left, right)
    if is_index and (left < 0 or right < 0):
        return None
    left, right = left & ((1 << bits) - 1), right & ((1 << bits) - 1)
    if (operation := UNSIGNED.get(op_type)) is not None:
        return operation(left, right)
    if (operation := UNSIGNED_DIVISIONS.get(op_type)) is not None:
        return None if right == 0 else operation(left, right)
    return None


def _fits(value: int, bits: int) -> bool:
    return wrap(value, bits) == value


# eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge
CMPI: tuple[Callable[[int, int], bool], ...] = (
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.lt, operator.le, operator.gt, operator.ge),
)
FIRST_UNSIGNED = 6


def _fold_cmpi(op: arith.CmpiOp, constants: Constants) -> SSAValue | Attribute | None:
    if (bits := width(op.lhs.type)) is None:
        return None
    predicate = op.predicate.value.data
    if op.lhs is op.rhs:
        return integer_attr(CMPI[predicate](0, 0), i1)
    left, right = signed_of(constants[0]), signed_of(constants[1])
    if right is None:
        return None
    if left is None:
        # x == true, x != false
        is_identity = (predicate == 0 and right) or (predicate == 1 and not right)
        return op.lhs if bits == 1 and is_identity else None
    if isinstance(op.lhs.type, IndexType):
        if not (_fits(left, 32) and _fits(right, 32)):
            return None
    if predicate >= FIRST_UNSIGNED:
        # Negative indices extend to ones: their unsigned order is the same in 32 and 64 bits.
        left, right = left & ((1 << bits) - 1), right & ((1 << bits) - 1)
    return integer_attr(CMPI[predicate](left, right), i1)


def _fold_select(op: arith.SelectOp, constants: Constants) -> SSAValue | Attribute | None:
    if op.lhs is op.rhs:
        return op.lhs
    if (condition := signed_of(constants[0])) is not None and op.cond.type == i1:
        return op.lhs if condition else op.rhs
    if op.result.type == i1 and op.cond.type == i1:
        if (signed_of(constants[1]), signed_of(constants[2])) == (-1, 0):
            return op.cond
    return None


# Casts between integers --------------------------------------------------------------------------------------------------


def _fold_trunci(op: arith.TruncIOp, constants: Constants) -> SSAValue | Attribute | None:
    if (value := signed_of(constants[0])) is not None:
        return integer_attr(value, op.result.type)
    producer = op.input.owner
    if isinstance(producer, arith.ExtUIOp | arith.ExtSIOp) and producer.input.type == op.result.type:
        return producer.input
    return None


def _fold_extsi(op: arith.ExtSIOp, constants: Constants) -> SSAValue | Attribute | None:
    value = signed_of(constants[0])
    return None if value is None else integer_attr(value, op.result.type)


def _fold_extui(op: arith.ExtUIOp, constants: Constants) -> SSAValue | Attribute | None:
    value, bits = signed_of(constants[0]), width(op.input.type)
    return None if value is None or bits is None else integer_attr(value & ((1 << bits) - 1), op.result.type)


def _fold_index_cast(op: Any, constants: Constants) -> SSAValue | Attribute | None:
    if width(op.result.type) is None:
        return None
    if (value := signed_of(constants[0])) is not None:
        return integer_attr(value, op.result.type) if _fits(value, 32) else None
    producer = op.input.owner
    if isinstance(producer, arith.IndexCastOp) and producer.input.type == op.result.type:
        # iN -> index -> iN loses nothing if an index holds iN whatever its width.
        bits = width(op.result.type)
        if isinstance(op.result.type, IntegerType) and bits is not None and bits <= 32:
            return producer.input
    return None


def _fold_index_castui(op: IndexCastUIOp, constants: Constants) -> SSAValue | Attribute | None:
    bits, value = width(op.operands[0].type), signed_of(constants[0])
    if value is None or bits is None or width(op.results[0].type) is None:
        return None
    if not isinstance(op.operands[0].type, IndexType):
        value &= (1 << bits) - 1
    return integer_attr(value, op.results[0].type) if 0 <= value < 1 << 31 else None


# Floats ------------------------------------------------------------------------------------------------------------------


def _float_of(attribute: Attribute | None) -> float | None:
    return attribute.value.data if attribute is not None and isinstance(attribute, FloatAttr) else None


def _divide(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _maximum(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b:
        return a if math.copysign(1.0, a) > 0 else b
    return max(a, b)


def _minimum(a: float, b: float) -> float:
    return -_maximum(-a, -b)


FLOAT_BINARY: dict[type[Operation], Callable[[float, float], float]] = {
    arith.AddfOp: lambda a, b: a + b,
    arith.SubfOp: lambda a, b: a - b,
    arith.MulfOp: lambda a, b: a * b,
    arith.DivfOp: _divide,
    arith.MaximumfOp: _maximum,
    arith.MinimumfOp: _minimum,
    arith.MaxnumfOp: lambda a, b: b if math.isnan(a) else a if math.isnan(b) else _maximum(a, b),
    arith.MinnumfOp: lambda a, b: b if math.isnan(a) else a if math.isnan(b) else _minimum(a, b),
}
# x op unit = x for every x, zeros and infinities too.
FLOAT_UNIT: dict[type[Operation], float] = {
    **{arith.AddfOp: -0.0, arith.SubfOp: 0.0, arith.MulfOp: 1.0, arith.DivfOp: 1.0},
    **{arith.MaximumfOp: -math.inf, arith.MinimumfOp: math.inf},
}


def _fold_float(op: arith.FloatingPointLikeBinaryOperation, constants: Constants) -> SSAValue | Attribute | None:
    right = _float_of(constants[1])
    if right is None or not isinstance(op.result.type, WIDE_FLOATS):
        return None
    if (left := _float_of(constants[0])) is not None:
        return float_attr(FLOAT_BINARY[type(op)](left, right), op.result.type)
    unit = FLOAT_UNIT.get(type(op))
    if unit is not None and right == unit and math.copysign(1.0, right) == math.copysign(1.0, unit):
        return op.lhs
    return None


def _fold_negf(op: arith.NegfOp, constants: Constants) -> SSAValue | Attribute | None:
    value = _float_of(constants[0])
    if value is None or not isinstance(op.result.type, WIDE_FLOATS):
        return None
    return float_attr(-value, op.result.type)


def compare_floats(predicate: int, a: float, b: float) -> bool:
    """`arith.cmpf` by predicate number: false oeq ogt oge olt ole one ord, ueq ugt uge ult ule une uno true."""
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in (0, 15):
        return predicate == 15
    if predicate in (7, 14):
        return unordered == (predicate == 14)
    if unordered:
        return predicate >= 8
    return (a == b, a > b, a >= b, a < b, a <= b, a != b)[(predicate - 1) % 7]


def _fold_cmpf(op: arith.CmpfOp, constants: Constants) -> SSAValue | Attribute | None:
    predicate = op.predicate.value.data
    if predicate in (0, 15) and op.result.type == i1:
        return integer_attr(predicate == 15, i1)
    left, right = _float_of(constants[0]), _float_of(constants[1])
    if left is None or right is None:
        return None
    return integer_attr(compare_floats(predicate, left, right), i1)


def _fold_extf(op: arith.ExtFOp, constants: Constants) -> SSAValue | Attribute | None:
    value = _float_of(constants[0])
    return None if value is None or not isinstance(op.result.type, WIDE_FLOATS) else float_attr(value, op.result.type)


def _fold_truncf(op: arith.TruncFOp, constants: Constants) -> SSAValue | Attribute | None:
    producer = op.input.owner
    if isinstance(producer, arith.ExtFOp) and producer.input.type == op.result.type:
        return producer.input
    if not rounds_to_nearest_even(op):
        return None
    value = _float_of(constants[0])
    return None if value is None or not isinstance(op.result.type, WIDE_FLOATS) else float_attr(value, op.result.type)


def _fold_integer_to_float(op: Any, constants: Constants) -> SSAValue | Attribute | None:
    value, bits = signed_of(constants[0]), width(op.input.type)
    if value is None or bits is None or not isinstance(op.result.type, WIDE_FLOATS):
        return None
    if isinstance(op, arith.UIToFPOp):
        value &= (1 << bits) - 1
    # Above 2^53 the value would be rounded to f64 first, and then again.
    return float_attr(float(value), op.result.type) if abs(value) <= 1 << 53 else None


def _fold_float_to_integer(op: Any, constants: Constants) -> SSAValue | Attribute | None:
    value, bits = _float_of(constants[0]), width(op.result.type)
    if value is None or bits is None or not math.isfinite(value):
        return None
    whole = math.trunc(value)
    smallest, largest = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if isinstance(op, arith.FPToUIOp):
        smallest, largest = 0, (1 << bits) - 1
    return integer_attr(whole, op.result.type) if smallest <= whole <= largest else None


# Vectors -------------------------------------------------------------------------------------------------------------------


def _fold_extract(op: vector.ExtractOp, constants: Constants) -> SSAValue | Attribute | None:
    """`extract(insert(x, v)[k])[k]` → `x`, also through insertions at other positions; `extract(broadcast x)` → `x`."""
    wanted = _place(op)
    source = op.vector
    while wanted is not None and isinstance(producer := source.owner, vector.InsertOp):
        if (place := _place(producer)) is None:
            return None
        if place == wanted:
            return producer.source
        source = producer.dest
    if wanted is not None and isinstance(producer := source.owner, vector.BroadcastOp):
        return producer.source if producer.source.type == op.result.type else None
    return None


def _place(op: vector.ExtractOp | vector.InsertOp) -> int | None:
    """The position that is read or replaced in a 1-d vector, if it is known."""
    positions = op.get_mixed_position()
    whole = op.vector.type if isinstance(op, vector.ExtractOp) else op.dest.type
    if len(positions) != 1 or not isa(whole, VectorType) or whole.get_num_dims() != 1:
        return None
    return constant_integer(positions[0]) if isinstance(positions[0], SSAValue) else positions[0]


FOLDERS: dict[type[Operation], Folder] = {
    **dict.fromkeys(
        (*WRAPPING, *SIGNED, *UNSIGNED, *SIGNED_DIVISIONS, *UNSIGNED_DIVISIONS, *SHIFTS),
        _fold_integer,
    ),
    arith.CmpiOp: _fold_cmpi,
    arith.SelectOp: _fold_select,
    arith.TruncIOp: _fold_trunci,
    arith.ExtSIOp: _fold_extsi,
    arith.ExtUIOp: _fold_extui,
    arith.IndexCastOp: _fold_index_cast,
    IndexCastUIOp: _fold_index_castui,
    **dict.fromkeys(FLOAT_BINARY, _fold_float),
    arith.NegfOp: _fold_negf,
    arith.CmpfOp: _fold_cmpf,
    arith.ExtFOp: _fold_extf,
    arith.TruncFOp: _fold_truncf,
    arith.SIToFPOp: _fold_integer_to_float,
    arith.UIToFPOp: _fold_integer_to_float,
    arith.FPToSIOp: _fold_float_to_integer,
    arith.FPToUIOp: _fold_float_to_integer,
    vector.ExtractOp: _fold_extract,
}
