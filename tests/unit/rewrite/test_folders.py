"""Folds against NumPy, by enumeration: a fold is what the op computes, or there is none."""

import itertools
import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    ComplexType,
    DenseIntOrFPElementsAttr,
    Float8E4M3FNType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    VectorType,
    f32,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.mlir import arith, cf, complex, func, vector
from xla_emitters.rewrite.constants import ConstantPool, constant_op, constant_value, integer_attr
from xla_emitters.rewrite.folders import float_attr, fold_op

I4, I8, I32 = IntegerType(4), IntegerType(8), IntegerType(32)
INDEX = IndexType()


def in_function(*ops: Operation, block: Block | None = None) -> None:
    """A function of these ops (in `block`, where they read its arguments): a fold has an entry to put constants at."""
    block = block or Block()
    block.add_ops([*ops, func.ReturnOp()])
    ModuleOp([func.FuncOp("f", (block.arg_types, ()), Region(block))])


def fold(op_type: type[Operation], constants: list[Attribute], *more: object) -> Attribute | SSAValue | None:
    """What `op_type` of these constants folds to: an attribute, one of the operands, or None."""
    operands = [arith.ConstantOp(value) for value in constants]
    op = op_type(*operands, *more)
    in_function(*operands, op)
    folded = fold_op(op, ConstantPool(), None)
    return None if folded is None else constant_value(folded[0])


def wrapped(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


INTERESTING = [-128, -127, -3, -1, 0, 1, 2, 7, 126, 127]
NUMPY_INTEGER = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.MinSIOp: np.minimum,
    arith.MaxSIOp: np.maximum,
}


def divided(a: int, b: int, rounded) -> int | None:
    return None if b == 0 or (a, b) == (-8, -1) else rounded(Fraction(a, b))


def shifted(a: int, b: int, shift) -> int | None:
    return shift(a, b) if 0 <= b < 4 else None


OF_FOUR_BITS = {
    **{op: (lambda a, b, f=f: int(f(np.int64(a), np.int64(b)))) for op, f in NUMPY_INTEGER.items()},
    arith.MinUIOp: lambda a, b: min(a % 16, b % 16),
    arith.MaxUIOp: lambda a, b: max(a % 16, b % 16),
    arith.DivUIOp: lambda a, b: a % 16 // (b % 16) if b else None,
    arith.CeilDivUIOp: lambda a, b: -(-(a % 16) // (b % 16)) if b else None,
    arith.RemUIOp: lambda a, b: a % 16 % (b % 16) if b else None,
    arith.DivSIOp: lambda a, b: divided(a, b, math.trunc),
    arith.FloorDivSIOp: lambda a, b: divided(a, b, math.floor),
    arith.CeilDivSIOp: lambda a, b: divided(a, b, math.ceil),
    arith.RemSIOp: lambda a, b: None if b == 0 or (a, b) == (-8, -1) else int(math.fmod(a, b)),
    arith.ShLIOp: lambda a, b: shifted(a, b, lambda a, b: a << b),
    arith.ShRSIOp: lambda a, b: shifted(a, b, lambda a, b: a >> b),
    arith.ShRUIOp: lambda a, b: shifted(a, b, lambda a, b: a % 16 >> b),
}
"""What every op of two integers computes, not yet wrapped to four bits; None where it is undefined."""


@pytest.mark.parametrize("op_type", OF_FOUR_BITS, ids=lambda op: op.name)
def test_an_op_of_two_constants(op_type: type[Operation]):
    """All 256 pairs; what is undefined is left for the program to meet."""
    for a, b in itertools.product(range(-8, 8), repeat=2):
        wanted = OF_FOUR_BITS[op_type](a, b)
        found = fold(op_type, [IntegerAttr(a, I4), IntegerAttr(b, I4)])
        assert found == (None if wanted is None else IntegerAttr(wrapped(wanted, 4), I4)), (a, b)


SIGNED_PREDICATES = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
}
UNSIGNED_PREDICATES = {"ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal}


@pytest.mark.parametrize("predicate", [*SIGNED_PREDICATES, *UNSIGNED_PREDICATES])
def test_cmpi(predicate: str):
    for a, b in itertools.product(INTERESTING, repeat=2):
        if predicate in SIGNED_PREDICATES:
            wanted = SIGNED_PREDICATES[predicate](np.int8(a), np.int8(b))
        else:
            wanted = UNSIGNED_PREDICATES[predicate](np.uint8(a % 256), np.uint8(b % 256))
        assert fold(arith.CmpiOp, [IntegerAttr(a, I8), IntegerAttr(b, I8)], predicate) == integer_attr(bool(wanted), i1)


def test_index_folds_only_what_does_not_depend_on_its_width():
    """2^31 + 1 is negative in a 32-bit index and positive in a 64-bit one."""
    large, one = IntegerAttr(2**31 + 1, INDEX), IntegerAttr(1, INDEX)
    assert fold(arith.AddiOp, [large, one]) == IntegerAttr(2**31 + 2, INDEX)
    assert fold(arith.CmpiOp, [large, one], "slt") is None
    assert fold(arith.DivUIOp, [IntegerAttr(-8, INDEX), IntegerAttr(2, INDEX)]) is None
    assert fold(arith.ShRUIOp, [IntegerAttr(-8, INDEX), one]) is None
    assert fold(arith.CmpiOp, [IntegerAttr(-1, INDEX), one], "ugt") == integer_attr(1, i1)
    assert fold(arith.IndexCastOp, [large], I32) is None
    assert fold(arith.IndexCastOp, [IntegerAttr(7, INDEX)], I8) == IntegerAttr(7, I8)
    assert fold(arith.IndexCastOp, [IntegerAttr(-3, I8)], INDEX) == IntegerAttr(-3, INDEX)
    for op_type in (arith.MinSIOp, arith.MaxSIOp, arith.MaxUIOp, arith.DivSIOp, arith.DivUIOp, arith.ShRSIOp):
        assert fold(op_type, [large, one]) is None
        assert fold(op_type, [IntegerAttr(5, INDEX), one]) is not None


@pytest.mark.parametrize(("bits", "folds"), [(8, True), (32, True), (33, False), (64, False)])
def test_an_integer_goes_through_index_and_back_where_every_index_holds_it(bits: int, folds: bool):
    value_type = IntegerType(bits)
    block = Block(arg_types=[value_type])
    there = arith.IndexCastOp(block.args[0], INDEX)
    back = arith.IndexCastOp(there.result, value_type)
    other = arith.IndexCastOp(there.result, IntegerType(16))
    in_function(there, back, other, block=block)
    assert (fold_op(back, ConstantPool(), None) == [block.args[0]]) == folds
    assert fold_op(other, ConstantPool(), None) is None


def test_integer_casts():
    for a in INTERESTING:
        constant = IntegerAttr(a, I8)
        assert fold(arith.ExtSIOp, [constant], I32) == IntegerAttr(a, I32)
        assert fold(arith.ExtUIOp, [constant], I32) == IntegerAttr(a % 256, I32)
        assert fold(arith.TruncIOp, [constant], I4) == IntegerAttr(wrapped(a, 4), I4)
    assert fold(arith.ExtUIOp, [integer_attr(1, i1)], I32) == IntegerAttr(1, I32)


# Floats ------------------------------------------------------------------------------------------------------------------

FLOATS = {
    "f16": (Float16Type(), np.float16),
    "bf16": (BFloat16Type(), ml_dtypes.bfloat16),
    "f32": (Float32Type(), np.float32),
    "f64": (Float64Type(), np.float64),
}
VALUES = [0.0, -0.0, 1.0, -1.0, 0.1, 1.1, 3.0, -2.5, 65504.0, 3e38, 1e-40, 6e-8, 1e-45, math.inf, -math.inf, math.nan]
NUMPY_FLOAT = {arith.AddfOp: np.add, arith.SubfOp: np.subtract, arith.MulfOp: np.multiply, arith.DivfOp: np.divide}


def same_bits(attribute: object, wanted: np.generic) -> bool:
    """Equal including the sign of zero; any NaN equals any NaN."""
    assert isinstance(attribute, FloatAttr)
    value, reference = attribute.value.data, float(wanted)
    if math.isnan(reference):
        return math.isnan(value)
    return value == reference and math.copysign(1, value) == math.copysign(1, reference)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op_type", NUMPY_FLOAT, ids=lambda op: op.name)
def test_float_arithmetic_rounds_once_in_its_own_type(name: str, op_type: type[Operation]):
    float_type, dtype = FLOATS[name]
    rng = np.random.default_rng(0)
    bits = np.dtype(dtype).itemsize * 8
    drawn = rng.integers(0, 1 << bits, 300, dtype=np.uint64).astype(f"u{bits // 8}").view(dtype)
    with np.errstate(all="ignore"):
        values = np.concatenate([np.array(VALUES).astype(dtype), drawn])
        for a, b in zip(values, rng.permutation(values), strict=True):
            folded = fold(op_type, [FloatAttr(float(a), float_type), FloatAttr(float(b), float_type)])
            assert same_bits(folded, NUMPY_FLOAT[op_type](a, b)), (a, b)


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
def test_truncation_rounds_to_nearest_even_once(name: str):
    """Against exact rational arithmetic: ties, and values that two roundings would get wrong."""
    float_type, dtype = FLOATS[name]
    rng = np.random.default_rng(1)
    bits = np.dtype(dtype).itemsize * 8
    with np.errstate(invalid="ignore"):
        drawn = rng.integers(0, 1 << bits, 200, dtype=np.uint64).astype(f"u{bits // 8}").view(dtype).astype(np.float64)
    for value in drawn[np.isfinite(drawn)]:
        above = float(np.nextafter(dtype(value), dtype(np.inf)))
        if not math.isfinite(above):
            continue
        middle = (float(value) + above) / 2  # exact: f64 has bits to spare
        even = middle_even(float(value), above, dtype)
        assert float_attr(middle, float_type).value.data == even
        assert float_attr(math.nextafter(middle, math.inf), float_type).value.data == above
        assert float_attr(math.nextafter(middle, -math.inf), float_type).value.data == float(value)


def middle_even(lower: float, upper: float, dtype) -> float:
    """Which of two neighbours has an even last bit."""
    last = np.array(lower, dtype).view(f"u{np.dtype(dtype).itemsize}") & 1
    return upper if last else lower


def test_truncation_beyond_the_largest_value_is_infinity():
    assert float_attr(65520.0, Float16Type()).value.data == math.inf
    assert float_attr(65519.9, Float16Type()).value.data == 65504.0
    assert float_attr(-1e39, Float32Type()).value.data == -math.inf
    assert float_attr(3.4e38, BFloat16Type()).value.data == math.inf


def test_truncf_and_extf_of_constants():
    third = FloatAttr(1 / 3, Float32Type())
    assert fold(arith.TruncFOp, [third], BFloat16Type()) == FloatAttr(0.333984375, BFloat16Type())
    assert fold(arith.ExtFOp, [FloatAttr(0.5, BFloat16Type())], Float32Type()) == FloatAttr(0.5, Float32Type())


@pytest.mark.parametrize(
    ("op_type", "nan_wins"),
    [(arith.MaximumfOp, True), (arith.MinimumfOp, True), (arith.MaxnumfOp, False), (arith.MinnumfOp, False)],
)
def test_extrema(op_type: type[Operation], nan_wins: bool):
    larger = op_type in (arith.MaximumfOp, arith.MaxnumfOp)
    f32 = Float32Type()

    def value(a: float, b: float) -> float:
        found = fold(op_type, [FloatAttr(a, f32), FloatAttr(b, f32)])
        assert isinstance(found, FloatAttr)
        return found.value.data

    for a, b in ((1.0, 2.0), (2.0, 1.0)):
        assert value(a, b) == (2.0 if larger else 1.0)
    assert math.copysign(1, value(0.0, -0.0)) == (1 if larger else -1)
    assert math.copysign(1, value(-0.0, 0.0)) == (1 if larger else -1)
    for a, b in ((math.nan, 1.0), (1.0, math.nan)):
        assert math.isnan(value(a, b)) == nan_wins


PREDICATES = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()


@pytest.mark.parametrize("predicate", PREDICATES)
def test_cmpf(predicate: str):
    """Ordered predicates are false with a NaN, unordered ones true."""
    ordinary = {
        "eq": np.equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "lt": np.less,
        "le": np.less_equal,
        "ne": np.not_equal,
    }
    for a, b in itertools.product([0.0, -0.0, 1.0, math.inf, math.nan], repeat=2):
        unordered = math.isnan(a) or math.isnan(b)
        match predicate:
            case "false" | "true":
                wanted = predicate == "true"
            case "ord" | "uno":
                wanted = unordered == (predicate == "uno")
            case _:
                wanted = predicate[0] == "u" if unordered else bool(ordinary[predicate[1:]](a, b))
        f32 = Float32Type()
        assert fold(arith.CmpfOp, [FloatAttr(a, f32), FloatAttr(b, f32)], predicate) == integer_attr(wanted, i1), (a, b)


def test_conversions_between_integers_and_floats():
    assert fold(arith.SIToFPOp, [IntegerAttr(-3, I8)], Float32Type()) == FloatAttr(-3.0, Float32Type())
    assert fold(arith.UIToFPOp, [IntegerAttr(-3, I8)], Float32Type()) == FloatAttr(253.0, Float32Type())
    assert fold(arith.FPToSIOp, [FloatAttr(-3.9, Float32Type())], I8) == IntegerAttr(-3, I8)
    assert fold(arith.FPToUIOp, [FloatAttr(253.9, Float32Type())], I8) == IntegerAttr(-3, I8)
    for inside in (-128.9, -128.0, 127.9):
        assert fold(arith.FPToSIOp, [FloatAttr(inside, Float32Type())], I8) == IntegerAttr(math.trunc(inside), I8)
    for outside in (-129.0, 128.0, math.nan, math.inf):
        assert fold(arith.FPToSIOp, [FloatAttr(outside, Float32Type())], I8) is None
    assert fold(arith.FPToUIOp, [FloatAttr(-0.9, Float32Type())], I8) == IntegerAttr(0, I8)
    for outside in (-1.0, 256.0):
        assert fold(arith.FPToUIOp, [FloatAttr(outside, Float32Type())], I8) is None
    # 2^60 + 1 to f32 would be rounded twice
    assert fold(arith.SIToFPOp, [IntegerAttr(2**60 + 1, IntegerType(64))], Float32Type()) is None


# What only hands an operand on -------------------------------------------------------------------------------------------


def folded_with(
    op_type: type[Operation], value_type: Attribute, constant: Attribute, *more: object
) -> str | Attribute | None:
    """What `op_type %x, constant` is: "x", an attribute, or None."""
    block = Block(arg_types=[value_type])
    right = arith.ConstantOp(constant)
    op = op_type(block.args[0], right, *more)
    in_function(right, op, block=block)
    if (folded := fold_op(op, ConstantPool(), None)) is None:
        return None
    return "x" if folded[0] is block.args[0] else constant_value(folded[0])


NOT_FOLDED = {(arith.MinSIOp, 7), (arith.MaxSIOp, -8), (arith.MinUIOp, -1), (arith.MaxUIOp, 0)}


@pytest.mark.parametrize("op_type", OF_FOUR_BITS, ids=lambda op: op.name)
def test_an_op_of_a_value_and_a_constant(op_type: type[Operation]):
    """All 16 constants on the right: what it folds to is right for all 16 values, and no fold to %x is missed but with extrema."""
    for constant in range(-8, 8):
        folded = folded_with(op_type, I4, IntegerAttr(constant, I4))
        computed = [OF_FOUR_BITS[op_type](x, constant) for x in range(-8, 8)]
        results = [None if result is None else wrapped(result, 4) for result in computed]
        if results == list(range(-8, 8)):
            assert folded == "x" or (folded is None and (op_type, constant) in NOT_FOLDED), constant
        elif isinstance(folded, IntegerAttr):
            assert results == [folded.value.data] * 16, constant
        else:
            assert folded is None, constant


@pytest.mark.parametrize("op_type", OF_FOUR_BITS, ids=lambda op: op.name)
def test_an_op_of_a_value_and_itself(op_type: type[Operation]):
    """It folds to the value or to zero only where it is that for all 16 values."""
    block = Block(arg_types=[I4])
    (x,) = block.args
    op = op_type(x, x)
    in_function(op, block=block)
    folded = fold_op(op, ConstantPool(), None)
    results = [OF_FOUR_BITS[op_type](a, a) for a in range(-8, 8)]
    if folded is not None:
        value = constant_value(folded[0])
        wanted = range(-8, 8) if folded[0] is x else [0] * 16
        assert value is None or value == IntegerAttr(0, I4)
        assert [None if r is None else wrapped(r, 4) for r in results] == list(wanted)
    else:
        assert op_type not in (arith.SubiOp, arith.XOrIOp, arith.AndIOp, arith.OrIOp, arith.MinSIOp, arith.MaxUIOp)


def test_constants_stand_first_in_the_function():
    """A fold in a later block is a constant of the first: it is there for all blocks below."""
    first, later = Block(), Block()
    a, b = arith.ConstantOp(IntegerAttr(3, I8)), arith.ConstantOp(IntegerAttr(4, I8))
    op = arith.AddiOp(a, b)
    first.add_ops([a, b, cf.BranchOp(later)])
    later.add_ops([op, func.ReturnOp()])
    ModuleOp([func.FuncOp("f", ((), ()), Region([first, later]))])
    folded = fold_op(op, ConstantPool(), None)
    assert constant_value(folded[0]) == IntegerAttr(7, I8)
    assert folded[0].owner is first.first_op


def test_constants_before_what_they_are_taken_from_stay():
    """0 - x is not x."""
    block = Block(arg_types=[I32])
    zero = arith.ConstantOp(IntegerAttr(0, I32))
    negated = arith.SubiOp(zero, block.args[0])
    in_function(zero, negated, block=block)
    assert fold_op(negated, ConstantPool(), None) is None


@pytest.mark.parametrize(
    ("op_type", "unit", "near"),
    [(arith.AddfOp, -0.0, 0.0), (arith.SubfOp, 0.0, -0.0), (arith.MulfOp, 1.0, -1.0), (arith.DivfOp, 1.0, 2.0)],
)
def test_float_units_are_exact_for_every_value(op_type: type[Operation], unit: float, near: float):
    """-0.0 + 0.0 is 0.0, so x + 0.0 is not x; x + -0.0 is."""
    f32 = Float32Type()
    assert folded_with(op_type, f32, FloatAttr(unit, f32)) == "x"
    assert folded_with(op_type, f32, FloatAttr(near, f32)) is None
    values = np.array([0.0, -0.0, 1.5, -np.inf, np.inf], np.float32)
    exact = NUMPY_FLOAT[op_type](values, np.float32(unit))
    assert [struct.pack("<f", x) for x in exact] == [struct.pack("<f", x) for x in values]


def test_narrow_floats_are_not_computed():
    """f8 arithmetic is expanded by a later pass, which says how it rounds."""
    a = FloatAttr(1.0, Float8E4M3FNType())
    assert fold(arith.AddfOp, [a, a]) is None


def test_negation_changes_the_sign_alone():
    for name, (float_type, dtype) in FLOATS.items():
        for value in np.array([0.0, -0.0, 1.5, -2.0, math.inf, math.nan], dtype):
            assert same_bits(fold(arith.NegfOp, [FloatAttr(float(value), float_type)]), -value), name


def test_vectors_of_constants_are_not_computed():
    a = DenseIntOrFPElementsAttr.from_list(VectorType(Float32Type(), [2]), [1.0, 2.0])
    assert fold(arith.AddfOp, [a, a]) is None
    assert fold(arith.NegfOp, [a]) is None


@pytest.mark.parametrize(("shape", "folds"), [([3], True), ([2, 3], False)])
def test_elements_of_vectors_of_one_dimension_are_looked_up(shape: list[int], folds: bool):
    """Rows of a matrix are left alone."""
    whole = VectorType(Float32Type(), shape)
    part = Float32Type() if len(shape) == 1 else VectorType(Float32Type(), shape[1:])
    block = Block(arg_types=[whole, part])
    vectors, element = block.args
    put = vector.InsertOp(element, vectors, [1])
    taken = vector.ExtractOp(put.result, [1], part)
    in_function(put, taken, block=block)
    assert (fold_op(taken, ConstantPool(), None) == [element]) == folds


@pytest.mark.parametrize("predicate", [*SIGNED_PREDICATES, *UNSIGNED_PREDICATES])
@pytest.mark.parametrize("constant", [0, 1])
def test_a_truth_value_compared_with_a_constant(predicate: str, constant: int):
    """It is folded to itself where that is so for both of its values: x == true, x != false."""
    is_itself = (predicate, constant) in (("eq", 1), ("ne", 0))
    assert (folded_with(arith.CmpiOp, i1, integer_attr(constant, i1), predicate) == "x") == is_itself


@pytest.mark.parametrize(("true", "false"), list(itertools.product((0, 1), repeat=2)))
def test_a_select_of_truth_values(true: int, false: int):
    """select(c, true, false) is c; equal sides are a matter of equal operands."""
    block = Block(arg_types=[i1])
    sides = [arith.ConstantOp(integer_attr(value, i1)) for value in (true, false)]
    op = arith.SelectOp(block.args[0], *sides)
    in_function(*sides, op, block=block)
    assert (fold_op(op, ConstantPool(), None) == [block.args[0]]) == ((true, false) == (1, 0))


def test_vectors_of_integers_are_left_alone():
    whole = VectorType(I32, [2])
    block = Block(arg_types=[whole])
    op = arith.SubiOp(block.args[0], block.args[0])
    in_function(op, block=block)
    assert fold_op(op, ConstantPool(), None) is None


def test_constants_have_the_names_of_mlir():
    values = {
        "c7": IntegerAttr(7, INDEX),
        "c-3_i32": IntegerAttr(-3, I32),
        "true": integer_attr(1, i1),
        "false": integer_attr(0, i1),
        "cst": FloatAttr(1.0, Float32Type()),
    }
    assert [constant_op(value).result.name_hint for value in values.values()] == list(values)


def test_a_folded_complex_number_is_a_constant_that_our_passes_lower() -> None:
    """xDSL's dialect makes it, of xDSL's class, which our passes do not know."""
    number = complex.ConstantOp(ArrayAttr([FloatAttr(-1.5, f32), FloatAttr(4, f32)]), ComplexType(f32))
    double = complex.AddOp(number, number)
    in_function(number, double)
    folded = fold_op(double, ConstantPool(), make_context())
    constant = folded[0].owner
    assert isinstance(constant, complex.ConstantOp)
    assert constant.value == ArrayAttr([FloatAttr(-3, f32), FloatAttr(8, f32)])
