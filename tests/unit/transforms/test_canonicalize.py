"""Canonical forms of `arith` against NumPy, over every value of the operands."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from long_lists import but_long
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import OpResult, SSAValue

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import arith
from xla_emitters.rewrite.constants import constant_integer
from xla_emitters.transforms.canonicalize import canonicalize

COMPARE = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.greater, np.greater_equal),
)
"""By predicate: eq ne slt sle sgt sge ult ule ugt uge."""
FIRST_UNSIGNED = 6
NUMPY = {"addi": np.add, "subi": np.subtract}


@pytest.mark.parametrize("inner", NUMPY)
@pytest.mark.parametrize("outer", NUMPY)
def test_sums_and_differences_with_constants_become_one_sum(inner: str, outer: str):
    """(x + c) - d is one addition, equal to NumPy's answer for all 256 values of x, also where it wraps."""
    x = np.arange(-128, 128).astype(np.int8)
    for c, d in itertools.product((-128, -3, 1, 5, 127), repeat=2):
        module = parse_ir(f"""
            func.func @f(%x: i8) -> i8 {{
              %c = arith.constant {c} : i8
              %d = arith.constant {d} : i8
              %0 = arith.{inner} %x, %c : i8
              %1 = arith.{outer} %0, %d : i8
              return %1 : i8
            }}""")
        canonicalize(module)
        sums = [op for op in module.walk() if isinstance(op, arith.AddiOp | arith.SubiOp)]
        assert [type(op) for op in sums] in ([], [arith.AddiOp])
        total = constant_integer(sums[0].rhs) if sums else 0
        wanted = NUMPY[outer](NUMPY[inner](x, np.int8(c)), np.int8(d))
        assert np.array_equal(x + np.int8(total), wanted), (c, d)


def returned(module: ModuleOp) -> SSAValue:
    """The only value that the module's only function returns."""
    *_, end = module.walk()
    (value,) = end.operands
    return value


def computed(module: ModuleOp) -> OpResult:
    """As `returned`, of an op."""
    value = returned(module)
    assert isinstance(value, OpResult)
    return value


PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


def canonical_comparison(text: str) -> arith.CmpiOp:
    """The comparison that is left of an i1 computed from two i8, %x and %y, or from %x and the constant %c, which is 3."""
    module = parse_ir(f"""
        func.func @f(%x: i8, %y: i8) -> i1 {{
          %c = arith.constant 3 : i8
          %true = arith.constant true
          {text}
          return %1 : i1
        }}""")
    canonicalize(module)
    value = computed(module)
    assert isinstance(value.op, arith.CmpiOp)
    return value.op


def compared(predicate: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    kind = np.int8 if predicate < FIRST_UNSIGNED else np.uint8
    return COMPARE[predicate](x.astype(kind), y.astype(kind))


@pytest.mark.parametrize("predicate", PREDICATES)
def test_the_negation_of_a_comparison_is_the_opposite_one(predicate: str):
    x, y = np.meshgrid(np.arange(-128, 128).astype(np.int8), np.arange(-128, 128).astype(np.int8))
    found = canonical_comparison(f"%0 = arith.cmpi {predicate}, %x, %y : i8\n%1 = arith.xori %0, %true : i1")
    wanted = ~compared(PREDICATES.index(predicate), x, y)
    assert np.array_equal(compared(found.predicate.value.data, x, y), wanted)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_constant_is_compared_on_the_right(predicate: str):
    x = np.arange(-128, 128).astype(np.int8)
    found = canonical_comparison(f"%1 = arith.cmpi {predicate}, %c, %x : i8")
    assert constant_integer(found.rhs) == 3
    wanted = compared(PREDICATES.index(predicate), np.full_like(x, 3), x)
    assert np.array_equal(compared(found.predicate.value.data, x, np.full_like(x, 3)), wanted)


@pytest.mark.parametrize(
    ("kind", "true", "false", "ops"),
    [
        ("i1", "true", "false", []),
        ("i1", "false", "true", ["arith.constant", "arith.xori"]),
        ("i8", "1", "0", ["arith.extui"]),
        ("i8", "0", "1", ["arith.constant", "arith.xori", "arith.extui"]),
        ("i8", "-1", "0", ["arith.constant", "arith.constant", "arith.select"]),
        ("i8", "2", "0", ["arith.constant", "arith.constant", "arith.select"]),
    ],
)
def test_select_of_zero_and_one_is_the_condition(kind: str, true: str, false: str, ops: list[str]):
    """Of an i1 the number that is not zero is printed as true; of a wider type 1, with zeros before it."""
    module = parse_ir(f"""
        func.func @f(%c: i1) -> {kind} {{
          %t = arith.constant {true}{" : i8" if kind == "i8" else ""}
          %f = arith.constant {false}{" : i8" if kind == "i8" else ""}
          %0 = arith.select %c, %t, %f : {kind}
          return %0 : {kind}
        }}""")
    canonicalize(module)
    names = [op.name for op in module.walk()]
    assert names[2:-1] == ops
    assert (returned(module).type == i1) == (kind == "i1")


FLOATS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
HEX = {"bf16": "0xFF80", "f16": "0xFC00", "f32": "0xFF800000", "f64": "0xFFF0000000000000"}
"""-inf."""
ORDERED = {
    **{"oeq": np.equal, "ogt": np.greater, "oge": np.greater_equal},
    **{"olt": np.less, "ole": np.less_equal, "one": np.not_equal},
}
# No converted integer is NaN.
FLOAT = {**ORDERED, **{f"u{name[1:]}": rule for name, rule in ORDERED.items()}}
NUMBERS = (0.0, -0.0, 1.0, 2.5, -2.5, -1.0, 127.0, 128.0, -128.0, -129.5, 255.0, 256.0, 0.5, 2.0**15, 2.0**16, 3.0e4)


def integers(bits: int, is_signed: bool) -> np.ndarray:
    return np.arange(1 << bits, dtype=np.int64) - (1 << (bits - 1) if is_signed else 0)


def comparison(conversion: str, bits: int, kind: str, predicate: str, number: str) -> OpResult:
    module = parse_ir(f"""
        func.func @f(%x: i{bits}) -> i1 {{
          %c = arith.constant {number} : {kind}
          %0 = arith.{conversion} %x : i{bits} to {kind}
          %1 = arith.cmpf {predicate}, %0, %c : {kind}
          return %1 : i1
        }}""")
    canonicalize(module)
    return computed(module)


def answers(found: OpResult, x: np.ndarray, bits: int) -> np.ndarray:
    """What the comparison that is left says of each integer."""
    if isinstance(found.op, arith.ConstantOp):
        return np.full(x.shape, constant_integer(found) != 0)
    assert isinstance(found.op, arith.CmpiOp)
    bound, predicate = constant_integer(found.op.rhs), found.op.predicate.value.data
    assert bound is not None
    mask = (1 << bits) - 1
    if predicate < FIRST_UNSIGNED:
        half = 1 << (bits - 1)
        return COMPARE[predicate](((x & mask) ^ half) - half, bound)
    return COMPARE[predicate](x & mask, bound & mask)


@pytest.mark.parametrize("conversion", ["sitofp", "uitofp"])
# Where all integers are exact in the float, the width of the float changes nothing.
@pytest.mark.parametrize(
    ("bits", "kind"),
    but_long([(2, "f32"), (8, "bf16"), (8, "f32"), (16, "bf16"), (16, "f16"), (16, "f64")], [(8, "bf16"), (16, "f64")]),
)
def test_a_converted_integer_is_compared_as_an_integer(conversion: str, bits: int, kind: str) -> None:
    """For all integers, also those that bf16 and f16 round, or make infinite."""
    x = integers(bits, conversion == "sitofp")
    with np.errstate(over="ignore"):
        converted = x.astype(np.float64).astype(FLOATS[kind]).astype(np.float64)
        numbers = [number for number in NUMBERS if float(FLOATS[kind](number)) == number]
    folded = 0
    for number in (*numbers, None):
        for predicate, rule in FLOAT.items():
            found = comparison(conversion, bits, kind, predicate, HEX[kind] if number is None else repr(number))
            if isinstance(found.op, arith.CmpfOp):
                assert bits > 8
                continue
            folded += 1
            wanted = rule(converted, -np.inf if number is None else number)
            assert np.array_equal(answers(found, x, bits), wanted), (number, predicate)
    assert folded >= 12 * 6


@pytest.mark.parametrize(
    ("bits", "kind", "number", "is_folded"),
    [
        # 257 becomes 256 in bf16: x > 256 of integers is another comparison.
        (16, "bf16", "256.0", False),
        (16, "bf16", "255.0", True),
        # 16777217 becomes 16777216.0
        (32, "f32", "16777216.0", False),
        (32, "f32", "1.0", True),
        (24, "f32", "8388608.0", True),
        (64, "f64", "9007199254740992.0", False),
        (8, "f32", "0x7FC00000", False),
    ],
)
def test_a_comparison_that_rounding_may_change_stays(bits: int, kind: str, number: str, is_folded: bool) -> None:
    found = comparison("uitofp", bits, kind, "ogt", number)
    assert isinstance(found.op, arith.CmpiOp) == is_folded
    assert isinstance(found.op, arith.CmpfOp) != is_folded


@pytest.mark.parametrize("inner", ["extui", "extsi"])
@pytest.mark.parametrize("outer", ["extui", "extsi", "uitofp", "sitofp"])
def test_an_extension_of_an_extension_is_one(inner: str, outer: str) -> None:
    """i4 to i8 to i32, or to f32: one op where it says the same of all 16 values, else both stay."""
    kind = "f32" if outer.endswith("fp") else "i32"
    module = parse_ir(f"""
        func.func @f(%x: i4) -> {kind} {{
          %0 = arith.{inner} %x : i4 to i8
          %1 = arith.{outer} %0 : i8 to {kind}
          return %1 : {kind}
        }}""")
    canonicalize(module)
    names = [op.name for op in module.walk()][2:-1]
    x = np.arange(16)
    narrow = {"s": (x ^ 8) - 8, "u": x}
    middle = narrow["s" if inner == "extsi" else "u"] & 255
    wanted = (middle ^ 128) - 128 if outer in ("extsi", "sitofp") else middle
    if len(names) == 1:
        assert np.array_equal(narrow["s" if names[0] in ("arith.extsi", "arith.sitofp") else "u"], wanted)
    else:
        assert names == [f"arith.{inner}", f"arith.{outer}"]
    assert len(names) == (2 if inner == "extsi" and outer in ("extui", "uitofp") else 1)
