"""Each `arith` op through a kernel, against Python's integers or NumPy's wider floats; 8-bit integers exhaustively."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import execute

BYTES = np.arange(256, dtype=np.uint8).view(np.int8)
LEFT, RIGHT = (grid.reshape(-1) for grid in np.meshgrid(BYTES, BYTES, indexing="ij"))


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def rules(bits: int) -> dict[str, Callable[[int, int], int]]:
    """What each op of two integers, given as signed ones, computes; not yet wrapped to their width."""

    def u(n: int) -> int:
        return n % (1 << bits)

    return {
        "addi": lambda a, b: a + b,
        "subi": lambda a, b: a - b,
        "muli": lambda a, b: a * b,
        "andi": lambda a, b: a & b,
        "ori": lambda a, b: a | b,
        "xori": lambda a, b: a ^ b,
        "shli": lambda a, b: a << u(b) if u(b) < bits else 0,
        "shrui": lambda a, b: u(a) >> u(b),
        "shrsi": lambda a, b: a >> u(b),
        "maxsi": max,
        "minsi": min,
        "maxui": lambda a, b: max(u(a), u(b)),
        "minui": lambda a, b: min(u(a), u(b)),
        "divsi": toward_zero,
        "remsi": lambda a, b: a - b * toward_zero(a, b),
        "floordivsi": lambda a, b: a // b,
        "ceildivsi": lambda a, b: -(-a // b),
        "divui": lambda a, b: u(a) // u(b),
        "remui": lambda a, b: u(a) % u(b),
        "ceildivui": lambda a, b: -(-u(a) // u(b)),
        "cmpi eq,": lambda a, b: a == b,
        "cmpi ne,": lambda a, b: a != b,
        "cmpi slt,": lambda a, b: a < b,
        "cmpi sle,": lambda a, b: a <= b,
        "cmpi sgt,": lambda a, b: a > b,
        "cmpi sge,": lambda a, b: a >= b,
        "cmpi ult,": lambda a, b: u(a) < u(b),
        "cmpi ule,": lambda a, b: u(a) <= u(b),
        "cmpi ugt,": lambda a, b: u(a) > u(b),
        "cmpi uge,": lambda a, b: u(a) >= u(b),
    }


DEFINED_SIGNED = ["divsi", "remsi", "floordivsi", "ceildivsi"]
DIVISIONS = [*DEFINED_SIGNED, "divui", "remui", "ceildivui"]


def check(name: str, ir_type: str, left: np.ndarray, right: np.ndarray, threads: int = 32) -> None:
    """An op, of the pairs for which it is defined."""
    info = np.iinfo(left.dtype)
    if name in DIVISIONS:
        defined = (right != 0) & ~((left == info.min) & (right == -1) & (name in DEFINED_SIGNED))
        left, right = left[defined], right[defined]
    inputs = {"a": (ir_type, left), "b": (ir_type, right)}
    result_type = "i1" if name.startswith("cmpi") else ir_type
    got = per_thread(f"%r = arith.{name} %a, %b : {ir_type}", result_type, threads=threads, **inputs)
    rule = rules(info.bits)[name]
    exact = [rule(int(a), int(b)) for a, b in zip(left, right, strict=True)]
    assert got.tolist() == [(n - info.min) % (1 << info.bits) + info.min for n in exact]


@pytest.mark.parametrize("name", rules(8))
def test_all_pairs_of_8_bit_integers(name):
    check(name, "i8", LEFT, RIGHT, threads=256)


@pytest.mark.parametrize("width", ["i16", "i32", "i64", "index"])
@pytest.mark.parametrize("name", rules(8))
def test_wider_integers(name, width):
    info = np.iinfo({"i16": np.int16, "i32": np.int32}.get(width, np.int64))
    numbers = [0, 1, -1, -3, 7, info.max, info.min, info.max // 3, 12345, info.bits, info.bits - 1]
    left, right = (grid.reshape(-1).astype(info.dtype) for grid in np.meshgrid(numbers, numbers))
    check(name, width, left, right)


@pytest.mark.parametrize("name", DIVISIONS)
def test_division_by_zero_names_the_thread(name):
    divisors = np.ones(64, np.int32)
    divisors[37] = 0
    with pytest.raises(ExecutionError, match=rf"arith\.{name} in block 1, thread 5 divides by zero"):
        per_thread(f"%r = arith.{name} %a, %a : i32", "i32", a=("i32", divisors))


@pytest.mark.parametrize("name", DEFINED_SIGNED)
def test_dividing_the_least_integer_by_minus_one_is_an_error(name):
    a, b = np.full(32, -(2**31), np.int32), np.full(32, -1, np.int32)
    with pytest.raises(ExecutionError, match="divides the least integer by -1"):
        per_thread(f"%r = arith.{name} %a, %b : i32", "i32", a=("i32", a), b=("i32", b))


def test_inactive_threads_divide_by_zero_without_harm():
    values = np.array([0, 1, 2, 4] * 8, np.int32)
    ops = """
    %zero = arith.constant 0 : i32
    %hundred = arith.constant 100 : i32
    %safe = arith.cmpi ne, %a, %zero : i32
    %r = scf.if %safe -> (i32) {
      %q = arith.divsi %hundred, %a : i32
      scf.yield %q : i32
    } else {
      scf.yield %zero : i32
    }"""
    assert per_thread(ops, "i32", a=("i32", values)).tolist() == [0, 100, 50, 25] * 8


def test_i4_wraps_at_four_bits():
    values = np.array([n - 8 for n in range(16)] * 16)
    others = np.repeat([n - 8 for n in range(16)], 16)
    ops = """
    %x = arith.trunci %a : i8 to i4
    %y = arith.trunci %b : i8 to i4
    %z = arith.muli %x, %y : i4
    %r = arith.extsi %z : i4 to i8"""
    got = per_thread(ops, "i8", a=("i8", values), b=("i8", others))
    assert got.tolist() == [(int(a) * int(b) + 8) % 16 - 8 for a, b in zip(values, others, strict=True)]


def test_i1_is_a_number_of_one_bit():
    a, b = np.array([False, False, True, True] * 8), np.array([False, True] * 16)
    results = {
        "addi": a ^ b,
        "subi": a ^ b,
        "muli": a & b,
        "andi": a & b,
        "ori": a | b,
        "xori": a ^ b,
        "maxsi": a & b,  # true is -1
        "maxui": a | b,
    }
    for name, wanted in results.items():
        got = per_thread(f"%r = arith.{name} %a, %b : i1", "i1", a=("i1", a), b=("i1", b))
        np.testing.assert_array_equal(got, wanted, name)


def test_unsigned_high_half_of_a_64_bit_product():
    values = np.array([0, 1, -1, 2**63 - 1, -(2**63), 0x123456789ABCDEF] * 6, np.int64)
    ops = """
    %x = arith.extui %a : i64 to i128
    %y = arith.extui %b : i64 to i128
    %z = arith.muli %x, %y : i128
    %shift = arith.constant 64 : i128
    %high = arith.shrui %z, %shift : i128
    %r = arith.trunci %high : i128 to i64"""
    others = np.repeat(values[:6], 6)
    got = per_thread(ops, "i64", a=("i64", values), b=("i64", others))
    exact = [(int(a) % 2**64) * (int(b) % 2**64) >> 64 for a, b in zip(values, others, strict=True)]
    assert [int(n) % 2**64 for n in got] == exact


@pytest.mark.parametrize("ir_type", ["bf16", "f32", "f64", "f8E4M3FN"])
def test_comparing_floats_by_every_predicate(ir_type):
    """Each predicate is a set of the four outcomes less, equal, greater, unordered."""
    accepted = {
        **{"false": "", "oeq": "=", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "one": "<>", "ord": "<=>"},
        **{"ueq": "=?", "ugt": ">?", "uge": ">=?", "ult": "<?", "ule": "<=?", "une": "<>?", "uno": "?"},
        "true": "<=>?",
    }
    values = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.nan])
    a, b = (grid.reshape(-1) for grid in np.meshgrid(values, values))

    def outcome(x, y):
        return "?" if np.isnan(x) or np.isnan(y) else "<" if x < y else ">" if x > y else "="

    for predicate, outcomes in accepted.items():
        got = per_thread(f"%r = arith.cmpf {predicate}, %a, %b : {ir_type}", "i1", a=(ir_type, a), b=(ir_type, b))
        assert got.tolist() == [outcome(x, y) in outcomes for x, y in zip(a, b, strict=True)], predicate


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    3.14159,
    1e-3,
    65504.0,
    1e38,
    -1e-38,
    2.0**-126,
    2.0**-140,
    np.inf,
    -np.inf,
    np.nan,
]


@pytest.mark.parametrize("ir_type", ["bf16", "f16", "f32", "f64", "f8E5M2", "f8E4M3FN"])
@pytest.mark.parametrize("name", ["addf", "subf", "mulf", "divf"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float_arithmetic_rounds_after_each_op(ir_type, name):
    """Against the op in float64 (float64 itself for f64; more than twice the digits for the others), rounded by ml_dtypes."""
    numpy_type = {
        **{"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64},
        **{"f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3FN": ml_dtypes.float8_e4m3fn},
    }[ir_type]
    values = np.array([*SPECIAL, *np.random.default_rng(3).standard_normal(25)]).astype(numpy_type)
    a, b = (grid.reshape(-1) for grid in np.meshgrid(values, values))
    wide = np.float64 if ir_type in ("f32", "f64") else np.float32
    operation = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}[name]
    wanted = operation(a.astype(wide), b.astype(wide)).astype(numpy_type)
    got = per_thread(f"%r = arith.{name} %a, %b : {ir_type}", ir_type, a=(ir_type, a), b=(ir_type, b))
    assert_same_floats(got, wanted)


def assert_same_floats(got, wanted):
    """Same values and signs of zero; any NaN equals any NaN."""
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(got, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(wanted[number]))


def test_a_chain_in_bf16_rounds_in_between():
    """1 + 2**-9 is lost in bf16 at once; in float32 it would come back."""
    one, small = np.full(32, 1.0), np.full(32, 2.0**-9)
    ops = """
    %s = arith.addf %a, %b : bf16
    %r = arith.subf %s, %a : bf16"""
    assert per_thread(ops, "bf16", a=("bf16", one), b=("bf16", small)).tolist() == [0.0] * 32


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_conversions_between_floats_and_integers():
    numbers = np.array([0.0, -0.0, 1.9, -1.9, 127.0, -128.0, 40000.0, 3e9, -3e9, np.inf, -np.inf, np.nan] * 3)
    got = per_thread("%r = arith.fptosi %a : f32 to i32", "i32", a=("f32", numbers))
    clamp = [0, 0, 1, -1, 127, -128, 40000, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0]
    assert got.tolist() == clamp * 3
    got = per_thread("%r = arith.fptoui %a : f32 to i32", "i32", a=("f32", numbers))
    assert [int(n) % 2**32 for n in got] == [0, 0, 1, 0, 127, 0, 40000, 3 * 10**9, 0, 2**32 - 1, 0, 0] * 3
    integers = np.array([0, 1, -1, 127, -128], np.int8)
    assert per_thread("%r = arith.sitofp %a : i8 to f32", "f32", a=("i8", integers)).tolist() == [0, 1, -1, 127, -128]
    assert per_thread("%r = arith.uitofp %a : i8 to f32", "f32", a=("i8", integers)).tolist() == [0, 1, 255, 127, 128]
    assert per_thread("%r = arith.uitofp %a : i1 to bf16", "bf16", a=("i1", np.array([False, True]))).tolist() == [0, 1]


def test_casts_of_integers():
    values = np.array([0, 1, -1, 127, -128, 5], np.int8)
    assert per_thread("%r = arith.extsi %a : i8 to i32", "i32", a=("i8", values)).tolist() == values.tolist()
    assert per_thread("%r = arith.extui %a : i8 to i32", "i32", a=("i8", values)).tolist() == [0, 1, 255, 127, 128, 5]
    assert per_thread("%r = arith.index_castui %a : i8 to index", "index", a=("i8", values)).tolist()[2] == 255
    assert per_thread("%r = arith.index_cast %a : i8 to index", "index", a=("i8", values)).tolist()[2] == -1
    wide = np.array([2**40 + 7, -1, 2**31], np.int64)
    assert per_thread("%r = arith.trunci %a : i64 to i32", "i32", a=("i64", wide)).tolist() == [7, -1, -(2**31)]
    assert per_thread("%r = arith.trunci %a : i64 to i1", "i1", a=("i64", wide)).tolist() == [True, True, False]


def test_bitcast_keeps_every_pattern():
    patterns = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    for name in ("bf16", "f16"):
        ops = f"""
        %x = arith.bitcast %a : i16 to {name}
        %r = arith.bitcast %x : {name} to i16"""
        np.testing.assert_array_equal(per_thread(ops, "i16", threads=256, a=("i16", patterns)), patterns)
    floats = np.array([1.0, -0.0, np.inf], np.float32)
    got = per_thread("%r = arith.bitcast %a : f32 to i32", "i32", a=("f32", floats))
    assert got.tolist() == floats.view(np.int32).tolist()


def test_select_takes_whole_values():
    condition = np.array([True, False] * 16)
    ops = """
    %x = arith.constant dense<[1.0, 2.0]> : vector<2xf32>
    %y = arith.constant dense<[3.0, 4.0]> : vector<2xf32>
    %v = arith.select %a, %x, %y : vector<2xf32>
    %r = vector.extract %v[1] : f32 from vector<2xf32>"""
    assert per_thread(ops, "f32", a=("i1", condition)).tolist() == [2.0, 4.0] * 16


def test_constants_of_bf16_are_rounded():
    got = per_thread("%r = arith.constant 4.470800e-02 : bf16", "bf16")
    assert got[0] == ml_dtypes.bfloat16(0.044708)
    assert per_thread("%r = arith.constant 0x7F80 : bf16", "bf16")[0] == np.inf


def test_constant_tensors_are_read_only_memory():
    ops = """
    %table = arith.constant dense<[10, 20, 30, 40]> : tensor<4xi32>
    %r = tensor.extract %table[%a] : tensor<4xi32>"""
    assert per_thread(ops, "i32", a=("index", np.array([3, 0, 2]))).tolist() == [40, 10, 30]
    ops = """
    %table = arith.constant dense<0> : tensor<4xi32>
    %zero = arith.constant 0 : i32
    %changed = tensor.insert %zero into %table[%a] : tensor<4xi32>
    %r = tensor.extract %changed[%a] : tensor<4xi32>"""
    with pytest.raises(ExecutionError, match="read-only"):
        per_thread(ops, "i32", a=("index", np.array([0])))


def test_bitcast_to_another_width_is_refused():
    module = parse_ir(
        """func.func @main(%a: f32) attributes {xla.entry, gpu.known_block_size = array<i32: 1, 1, 1>,
               gpu.known_grid_size = array<i32: 1, 1, 1>} {
             %r = arith.bitcast %a : f32 to i64
             return
           }""",
        verify=False,
    )
    with pytest.raises(Unsupported, match="another width"):
        execute(module, [np.zeros(1, np.float32)])


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_results_of_two_words(bits):
    draw = np.random.default_rng(0)
    limits, numpy_type = np.iinfo(f"i{bits // 8}"), np.dtype(f"i{bits // 8}")
    a, b = draw.integers(limits.min, limits.max, (2, 64), numpy_type, endpoint=True)
    a[:2], b[:2] = limits.min, [limits.min, -1]
    given = {"a": (f"i{bits}", a), "b": (f"i{bits}", b)}

    def unsigned(values):
        return [int(value) % (1 << bits) for value in values]

    def words(numbers, shift):
        return [(number >> shift) % (1 << bits) for number in numbers]

    signed_products = [int(x) * int(y) for x, y in zip(a, b, strict=True)]
    products = [x * y for x, y in zip(unsigned(a), unsigned(b), strict=True)]
    sums = [x + y for x, y in zip(unsigned(a), unsigned(b), strict=True)]
    for op, numbers in (("mulsi_extended", signed_products), ("mului_extended", products)):
        low = per_thread(f"%r, %high = arith.{op} %a, %b : i{bits}", f"i{bits}", **given)
        high = per_thread(f"%low, %r = arith.{op} %a, %b : i{bits}", f"i{bits}", **given)
        assert (unsigned(low), unsigned(high)) == (words(numbers, 0), words(numbers, bits))
    total = per_thread(f"%r, %carry = arith.addui_extended %a, %b : i{bits}, i1", f"i{bits}", **given)
    carry = per_thread(f"%sum, %r = arith.addui_extended %a, %b : i{bits}, i1", "i1", **given)
    assert unsigned(total) == words(sums, 0)
    assert carry.tolist() == [number >> bits == 1 for number in sums]


def test_results_of_two_words_of_vectors():
    ops = """
    %v = vector.from_elements %a, %b : vector<2xi8>
    %low, %high = arith.mulsi_extended %v, %v : vector<2xi8>
    %r = vector.extract %high[1] : i8 from vector<2xi8>"""
    b = np.arange(-16, 16, dtype=np.int8)
    got = per_thread(ops, "i8", a=("i8", b[::-1].copy()), b=("i8", b))
    assert got.tolist() == [int(n) * int(n) >> 8 for n in b]


# ---- conversions that round otherwise ----------------------------------------------------------------------------------------------------


def rounded(value: float, candidates: np.ndarray, mode: str) -> float:
    """Which of the sorted `candidates` `value` becomes, by the definition of the mode."""
    below, above = candidates[candidates <= value].max(), candidates[candidates >= value].min()
    if below == above:
        return float(below)
    match mode:
        case "downward":
            return float(below)
        case "upward":
            return float(above)
        case "toward_zero":
            return float(below if value > 0 else above)
        case _:
            if value - below == above - value:
                return float(above if value > 0 else below)
            return float(below if value - below < above - value else above)


@pytest.mark.parametrize("mode", ["downward", "upward", "toward_zero", "to_nearest_away"])
@pytest.mark.parametrize(("ir_type", "numpy_type"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_rounding_modes(mode: str, ir_type: str, numpy_type: type):
    """Ties, subnormal numbers and what lies beyond the greatest number are among the values."""
    with np.errstate(invalid="ignore"):
        every = np.arange(1 << 16, dtype=np.uint16).view(numpy_type).astype(np.float64)
    candidates = np.unique(every[~np.isnan(every)])
    finite = candidates[np.isfinite(candidates)]
    draw = np.random.default_rng(0)
    picked = draw.choice(finite.size - 1, 300)
    middle = (finite[picked] + finite[picked + 1]) / 2
    values = np.concatenate([middle, finite[picked], middle * (1 + 2.0**-20), draw.normal(size=200)])
    smallest = finite[finite > 0].min()
    values = np.concatenate(
        [values, smallest * np.array([0.25, 0.5, 0.75, 1.5, -0.25, -0.5]), finite.max() * np.array([1.0, -1.0])]
    )
    values = values.astype(np.float32)
    got = per_thread(f"%r = arith.truncf %a {mode} : f32 to {ir_type}", ir_type, a=("f32", values)).astype(np.float64)
    np.testing.assert_array_equal(got, [rounded(float(value), candidates, mode) for value in values])


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("downward", [65504, -np.inf, np.inf, -np.inf, -(2.0**-24)]),
        ("upward", [np.inf, -65504, np.inf, -np.inf, -0.0]),
        ("toward_zero", [65504, -65504, np.inf, -np.inf, -0.0]),
        ("to_nearest_away", [np.inf, -np.inf, np.inf, -np.inf, -0.0]),
    ],
)
def test_rounding_modes_at_the_ends(mode: str, wanted: list[float]):
    values = np.array([70000, -70000, np.inf, -np.inf, -1e-30, np.nan], np.float32)
    got = per_thread(f"%r = arith.truncf %a {mode} : f32 to f16", "f16", a=("f32", values))
    np.testing.assert_array_equal(got[:-1].view(np.uint16), np.array(wanted, np.float16).view(np.uint16))
    assert np.isnan(got[-1])


def test_other_ways_to_round_to_a_type_without_infinity_are_refused():
    ops = "%n = arith.truncf %a upward : f32 to f8E4M3FN\n%r = arith.extf %n : f8E4M3FN to f32"
    with pytest.raises(Unsupported, match="does not round upward to f8e4m3fn"):
        per_thread(ops, "f32", a=("f32", np.zeros(4)))


@pytest.mark.parametrize(
    ("ir_type", "numpy_type"), [("f32", np.float32), ("f64", np.float64), ("bf16", ml_dtypes.bfloat16)]
)
def test_remainders_of_floats(ir_type: str, numpy_type: type):
    a, b = (
        each.reshape(-1).astype(numpy_type) for each in np.meshgrid([-7.5, -2, -0.0, 3, 1e6], [2, -2, 0.75, np.inf])
    )
    got = per_thread(f"%r = arith.remf %a, %b : {ir_type}", ir_type, a=(ir_type, a), b=(ir_type, b))
    wanted = np.fmod(a.astype(np.float64), b.astype(np.float64)).astype(numpy_type)
    np.testing.assert_array_equal(got, wanted)
    assert np.signbit(got.astype(np.float64)).tolist() == np.signbit(a.astype(np.float64)).tolist()


def test_conversions_take_vectors():
    ops = """
    %v = vector.from_elements %a, %b : vector<2xi8>
    %w = arith.extui %v : vector<2xi8> to vector<2xi32>
    %x = arith.index_cast %w : vector<2xi32> to vector<2xindex>
    %y = arith.index_castui %x : vector<2xindex> to vector<2xi32>
    %f = arith.sitofp %y : vector<2xi32> to vector<2xf32>
    %i = arith.fptosi %f : vector<2xf32> to vector<2xi16>
    %t = arith.trunci %i overflow<nuw> : vector<2xi16> to vector<2xi8>
    %s = arith.shrui %t, %v exact : vector<2xi8>
    %r = vector.extract %t[1] : i8 from vector<2xi8>"""
    got = per_thread(ops, "i8", a=("i8", BYTES), b=("i8", BYTES[::-1].copy()))
    np.testing.assert_array_equal(got, BYTES[::-1])
