"""The code of elements: it computes what the op means (run on the CPU executor), is not duplicated, and has locations."""

from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from xla_emitters.device import device
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.complex_meaning import from_parts
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp
from xla_emitters.dialects.hlo.elementwise import OPS, ElementwiseOp, ElementwiseRow
from xla_emitters.dialects.hlo.types import type_text
from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import arith, func, tensor
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp, PureCallOp
from xla_emitters.dtypes import DTYPES, Array, DType, Kind, dtype
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.errors import Unsupported
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import view_of
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.simt.execute import execute
from xla_emitters.text.hlo import parse_hlo

CORPUS = Path(__file__).parents[2] / "corpus"


def fused(body: str) -> tuple[ComputationOp, FusionOp]:
    """A fusion of the computation with that body, called with parameters of its own."""
    computation = entry_of(parse_hlo(f"ENTRY f {{\n{body}\n}}"))
    parameters = [f"p{i} = {text_of(op)} parameter({i})" for i, op in enumerate(computation.parameters)]
    call = ", ".join(f"p{i}" for i in range(len(parameters)))
    root = text_of(computation.root.owner)
    entry = "\n".join([*parameters, f"ROOT fusion = {root} fusion({call}), kind=kLoop, calls=f"])
    module = parse_hlo(f"f {{\n{body}\n}}\n\nENTRY main {{\n{entry}\n}}", "test.hlo")
    first = next(op for op in module.ops if isinstance(op, ComputationOp))
    fusion = next(op for op in module.walk() if isinstance(op, FusionOp))
    return first, fusion


def text_of(op: object) -> str:
    assert isinstance(op, HloOp)
    return type_text(op.result.type, True)


def emitted(body: str) -> ModuleOp:
    module = emit_fusion(view_of(fused(body)[1]), device("h200"))
    module.verify()
    return module


def run(body: str, *inputs: Array) -> tuple[list[Array], list[Array]]:
    """(what the code computes, what the ops mean)."""
    computation, fusion = fused(body)
    module = emit_fusion(view_of(fusion), device("h200"))
    module.verify()
    want = evaluate(computation, inputs)
    outputs = [np.zeros_like(array) for array in want]
    return execute(module, [*inputs, *outputs]), want


def assert_same(body: str, *inputs: Array, names: Sequence[str] = ()) -> None:
    """Bit for bit, any NaN equal to any NaN. `names` say what the results are."""
    got, want = run(body, *inputs)
    parts = [(number, *part) for number, pair in enumerate(zip(got, want, strict=True)) for part in parts_of(*pair)]
    for number, one, other in parts:
        assert one.dtype == other.dtype
        bits = np.dtype(f"u{one.dtype.itemsize}")
        different = np.ascontiguousarray(one).view(bits) != np.ascontiguousarray(other).view(bits)
        if one.dtype.kind not in "biu" and not one.dtype.name.startswith(("int", "uint")):
            with np.errstate(all="ignore"):
                different &= ~(np.isnan(one.astype(np.float64)) & np.isnan(other.astype(np.float64)))
        if different.any():
            shown = [x[different][:4] for x in inputs if x.shape == different.shape]
            raise AssertionError((*names[number : number + 1], one[different][:4], other[different][:4], shown))


def parts_of(got: Array, want: Array) -> list[tuple[Array, Array]]:
    if want.dtype.kind != "c":
        return [(got, want)]
    return [(np.real(got), np.real(want)), (np.imag(got), np.imag(want))]


# ------------------------------------------------------------------------------------------- every op in every type


def samples(type: str, count: int, seed: int) -> Array:
    """Random bit patterns, and every pair of special values: 0, -0, 1, -1, the extremes, infinities, NaN."""
    dt = dtype(type)
    rng = np.random.default_rng(seed)
    if dt.kind is Kind.PRED:
        return rng.integers(0, 2, count).astype(bool)
    if dt.kind is Kind.COMPLEX:
        part = {"c64": "f32", "c128": "f64"}[type]
        return from_parts(samples(part, count, seed), rng.permutation(samples(part, count, seed)))
    if dt.is_integer:
        bits = dt.significant_bits
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dt.kind is Kind.SIGNED else (0, (1 << bits) - 1)
        wide = np.int64 if dt.kind is Kind.SIGNED else np.uint64
        special = [low, low + 1, 0, 1, 2, 3, high - 1, high, *([-1, -2] if low else [bits, bits - 1])]
        values = np.array(special, object).astype(wide)
        rest = rng.integers(low, high, count - len(special) ** 2, dtype=wide, endpoint=True)
    else:
        patterns = np.dtype(f"u{dt.numpy.itemsize}")
        values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.0, np.inf, -np.inf, np.nan]).astype(dt.numpy)
        rest = rng.integers(0, 1 << dt.bits, count - len(values) ** 2, dtype=np.uint64).astype(patterns).view(dt.numpy)
    spread = np.tile(values, len(values)) if seed % 2 else np.repeat(values, len(values))
    return np.concatenate([spread.astype(dt.numpy), rest.astype(dt.numpy)])


def rows(dt: DType) -> list[ElementwiseRow]:
    """Those that have code for the type, transcendental functions left out: NumPy stands for those in the executor too."""
    rows = [cls.ROW for cls in OPS if issubclass(cls, ElementwiseOp)]
    return [row for row in rows if dt.kind in row.code and row.opcode not in TRANSCENDENTAL]


UNCOMPUTED = ("f8e8m0fnu", "f4e2m1fn", "f6e3m2fn", "f6e2m3fn")
"""Types of which NumPy's random bit patterns need care; they are converted only."""
TRANSCENDENTAL = frozenset(
    """acos acosh asin asinh atan2 atanh cbrt cosh cosine erf exponential exponential-minus-one log log-plus-one logistic power rsqrt sine
    sinh tan tanh""".split()
)


@pytest.mark.parametrize("type", [dt.name for dt in DTYPES if dt.name not in UNCOMPUTED and rows(dt)])
def test_code_computes_what_the_ops_mean(type: str):
    """All ops of a type in one fusion, a result each."""
    ops = [(row, f"{row.result(dtype(type)).name}[600]") for row in rows(dtype(type))]
    inputs = [samples(type, 600, seed) for seed in range(max(len(row.operands) for row, _ in ops))]
    lines = [f"x{i} = {type}[600] parameter({i})" for i in range(len(inputs))]
    for number, (row, result) in enumerate(ops):
        operands = ", ".join(f"x{i}" for i in range(len(row.operands)))
        lines.append(f"r{number} = {result} {row.opcode}({operands})")
    results = ", ".join(result for _, result in ops)
    lines.append(f"ROOT all = ({results}) tuple({', '.join(f'r{number}' for number in range(len(ops)))})")
    assert_same("\n".join(lines), *inputs, names=[row.opcode for row, _ in ops])


@pytest.mark.parametrize(
    "type", ["s1", "s2", "s4", "s8", "s16", "s32", "s64", "u1", "u2", "u4", "u8", "u16", "u32", "u64"]
)
def test_integer_power(type: str):
    x, y = samples(type, 400, 0), samples(type, 400, 1)
    assert_same(f"x = {type}[400] parameter(0)\ny = {type}[400] parameter(1)\nROOT r = {type}[400] power(x, y)", x, y)


CONVERTED = [dt.name for dt in DTYPES]


@pytest.mark.parametrize(
    "source", ["pred", "s8", "u64", "bf16", "f64", "f8e8m0fnu", "f6e3m2fn", "f6e2m3fn", "c64", "c128"]
)
def test_convert_to_every_type(source: str):
    """From what tests/runtime/test_conversions.py does not convert, and from a few of each kind to these."""
    x = samples(source, 500, 0)
    lines = [f"x = {source}[500] parameter(0)"]
    lines += [f"c{i} = {target}[500] convert(x)" for i, target in enumerate(CONVERTED)]
    results = ", ".join(f"{target}[500]" for target in CONVERTED)
    lines.append(f"ROOT t = ({results}) tuple({', '.join(f'c{i}' for i in range(len(CONVERTED)))})")
    assert_same("\n".join(lines), x)


@pytest.mark.parametrize(
    "type", ["pred", "s1", "u1", "s4", "u4", "s32", "u32", "u64", "bf16", "f32", "f64", "f8e4m3fn", "c64"]
)
def test_compare(type: str):
    x, y = samples(type, 400, 0), samples(type, 400, 1)
    orders = ("", ", type=TOTALORDER") if dtype(type).kind is Kind.FLOAT else ("",)
    names = [f"{direction}{order}" for direction in ("EQ", "NE", "GE", "GT", "LE", "LT") for order in orders]
    lines = [f"x = {type}[400] parameter(0)", f"y = {type}[400] parameter(1)"]
    lines += [f"r{number} = pred[400] compare(x, y), direction={name}" for number, name in enumerate(names)]
    results = ", ".join(f"r{number}" for number in range(len(names)))
    lines.append(f"ROOT all = ({', '.join(['pred[400]'] * len(names))}) tuple({results})")
    assert_same("\n".join(lines), x, y, names=names)


@pytest.mark.parametrize("type", ["pred", "s1", "s4", "s32", "bf16", "f64", "f8e5m2", "c64"])
def test_select_and_clamp(type: str):
    p, x, y = samples("pred", 300, 5), samples(type, 300, 0), samples(type, 300, 1)
    body = f"p = pred[300] parameter(0)\nx = {type}[300] parameter(1)\ny = {type}[300] parameter(2)\n"
    assert_same(f"{body}ROOT r = {type}[300] select(p, x, y)", p, x, y)
    scalar = f"p = pred[] parameter(0)\nx = {type}[300] parameter(1)\ny = {type}[300] parameter(2)\n"
    assert_same(f"{scalar}ROOT r = {type}[300] select(p, x, y)", np.array(True), x, y)
    bounds = f"a = {type}[] parameter(0)\nx = {type}[300] parameter(1)\nb = {type}[] parameter(2)\n"
    low, high = (np.array(v).astype(dtype(type).numpy) for v in (-2, 3))
    assert_same(f"{bounds}ROOT r = {type}[300] clamp(a, x, b)", low, x, high)


def reduced(type: str, count: int, bits: Sequence[tuple[int, int]]) -> str:
    """reduce-precision of `count` elements to each of these bits of exponent and mantissa, a result each."""
    shape = f"{type}[{count}]"
    parts = [
        f"r{number} = {shape} reduce-precision(x), exponent_bits={exponent}, mantissa_bits={mantissa}"
        for number, (exponent, mantissa) in enumerate(bits)
    ]
    results = ", ".join(f"r{number}" for number in range(len(bits)))
    root = f"ROOT all = ({', '.join([shape] * len(bits))}) tuple({results})"
    return "\n".join([f"x = {shape} parameter(0)", *parts, root])


@pytest.mark.parametrize("type", ["f8e5m2", "f8e4m3", "f8e3m4", "f16", "bf16", "f32", "f64"])
def test_reduce_precision(type: str):
    bits = [(8, 7), (5, 10), (4, 3), (11, 52), (5, 52), (8, 2), (3, 1), (2, 0)]
    assert_same(reduced(type, 3000, bits), samples(type, 3000, 0), names=[str(pair) for pair in bits])


@pytest.mark.parametrize("type", ["f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "f8e8m0fnu", "f4e2m1fn"])
def test_reduce_precision_of_all_floats_without_infinities(type: str):
    count = 1 << dtype(type).bits
    values = np.arange(count, dtype=np.uint8).view(dtype(type).numpy)
    assert_same(reduced(type, count, [(3, 1), (2, 0), (5, 2), (8, 0)]), values)


@pytest.mark.parametrize("pair", ["f32 u32", "s16 bf16", "f16 u16", "u8 s8", "f64 s64", "s4 u4"])
def test_bitcast_convert(pair: str):
    source, target = pair.split()
    assert_same(f"x = {source}[300] parameter(0)\nROOT r = {target}[300] bitcast-convert(x)", samples(source, 300, 0))


@pytest.mark.parametrize("pair", ["f32 bf16 2", "f64 u8 8", "s16 u4 4", "s8 s2 4", "f8e5m2 s4 2"])
def test_bitcast_convert_between_widths(pair: str):
    """A wide element is its parts along one more dimension, and the parts are it again, also in the middle of a fusion."""
    wide, narrow, parts = pair.split()
    assert_same(
        f"x = {wide}[300] parameter(0)\nROOT r = {narrow}[300,{parts}] bitcast-convert(x)", samples(wide, 300, 0)
    )
    x = samples(narrow, 300 * int(parts), 0).reshape(300, int(parts))
    assert_same(
        f"x = {narrow}[300,{parts}] parameter(0)\nw = {wide}[300] bitcast-convert(x)\nROOT r = {wide}[300] reverse(w), dimensions={{0}}",
        x,
    )


@pytest.mark.parametrize("opcode", sorted(TRANSCENDENTAL - {"atan2", "power"}))
@pytest.mark.parametrize("type", ["bf16", "f32", "f64"])
def test_functions_have_code(opcode: str, type: str):
    """Both sides call NumPy, so this only says that it is the right function of the right operand."""
    x = np.linspace(0.05, 0.95, 64).astype(dtype(type).numpy) + (1 if opcode == "acosh" else 0)
    x = x.astype(dtype(type).numpy)
    got, want = run(f"x = {type}[64] parameter(0)\nROOT r = {type}[64] {opcode}(x)", x)
    np.testing.assert_allclose(
        got[0].astype(np.float64), want[0].astype(np.float64), rtol=float(ml_dtypes.finfo(x.dtype).eps) * 4
    )


# ------------------------------------------------------------------------------------------- indices


def test_moves_read_where_the_maps_say():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert_same("x = f32[3,4] parameter(0)\nROOT t = f32[4,3] transpose(x), dimensions={1,0}", x)
    assert_same("x = f32[3,4] parameter(0)\nROOT t = f32[2,6] reshape(x)", x)
    assert_same("x = f32[3,4] parameter(0)\nROOT t = f32[3,5,4] broadcast(x), dimensions={0,2}", x)
    assert_same("x = f32[3,4] parameter(0)\nROOT t = f32[2,2] slice(x), slice={[1:3], [0:4:2]}", x)
    assert_same("x = f32[3,4] parameter(0)\nROOT t = f32[3,4] reverse(x), dimensions={1}", x)


def test_an_operand_read_at_two_indices_is_called_twice():
    x = np.linspace(1, 2, 144, dtype=np.float32).reshape(12, 12)
    body = """
      x = f32[12,12] parameter(0)
      n = f32[12,12] negate(x)
      t = f32[12,12] transpose(n), dimensions={1,0}
      ROOT add = f32[12,12] add(n, t)
    """
    assert_same(body, x)
    calls = [op.callee for op in emitted(body).walk() if isinstance(op, PureCallOp)]
    assert calls == ["f_add", "f_n", "f_n"]


def test_results_of_other_shapes_are_written_at_the_same_place():
    x = np.arange(512, dtype=np.float32).reshape(8, 64)
    assert_same(
        """
      x = f32[8,64] parameter(0)
      n = f32[8,64] negate(x)
      flat = f32[512] reshape(x)
      a = f32[512] abs(flat)
      ROOT t = (f32[8,64], f32[512]) tuple(n, a)
    """,
        x,
    )


def test_scalars_and_single_elements():
    assert_same("x = f32[] parameter(0)\nROOT r = f32[] negate(x)", np.float32(3).reshape(()))
    assert_same("x = f32[1,1] parameter(0)\nROOT r = f32[1,1] negate(x)", np.float32(3).reshape(1, 1))


# ------------------------------------------------------------------------------------------- sharing


def ops_of(module: ModuleOp, kind: type[Operation]) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, kind)]


def test_an_element_is_read_once():
    body = "x = f32[8] parameter(0)\na = f32[8] multiply(x, x)\nb = f32[8] add(a, x)\nROOT r = f32[8] subtract(b, x)"
    assert len(ops_of(emitted(body), tensor.ExtractOp)) == 1


def test_index_computations_and_constants_are_shared():
    body = """
      x = f32[4,6] parameter(0)
      a = f32[24] reshape(x)
      b = f32[24] reshape(x)
      one = f32[] constant(1)
      uno = f32[] constant(1)
      m = f32[24] broadcast(one), dimensions={}
      n = f32[24] broadcast(uno), dimensions={}
      s = f32[24] add(a, m)
      t = f32[24] add(b, n)
      ROOT r = f32[24] multiply(s, t)
    """
    module = emitted(body)
    assert len(ops_of(module, ApplyIndexingOp)) == 2
    assert len(ops_of(module, arith.ConstantOp)) == 1
    assert len(ops_of(module, tensor.ExtractOp)) == 1


def test_constants_stand_at_the_top_of_the_function():
    body = """
      x = f32[8] parameter(0)
      one = f32[] constant(1)
      b = f32[8] broadcast(one), dimensions={}
      ROOT r = f32[8] add(x, b)
    """
    function = ops_of(emitted(body), func.FuncOp)[1]
    assert [op.name for op in function.walk()][1] == "arith.constant"


XLAS_ORDER = {
    "loop/act_gelu_float64.54a7c9c6.hlo": "mulf mulf mulf addf mulf tanh mulf addf mulf",
    "loop/act_mish_f32.c03110cc.hlo": "absf negf exp maximumf log1p cmpf extui addf select tanh mulf",
    "loop/int_arith_uint64.4d09cea9.hlo": "muli addi subi maxui cmpi select divui select",
}
"""What the real XLA emits for the root's function, in order: arith and math without constants and casts of i8 to i1."""


@pytest.mark.parametrize("name", XLAS_ORDER)
def test_operands_come_in_xlas_order(name: str):
    module = read_module(CORPUS / name)
    fusion = next(op for op in module.walk() if isinstance(op, FusionOp))
    function = ops_of(emit_fusion(view_of(fusion), device("h200")), func.FuncOp)[1]
    made = [op.name.split(".") for op in function.walk()]
    ops = [op for dialect, op in made if dialect in ("arith", "math") and op not in ("constant", "trunci")]
    assert ops == XLAS_ORDER[name].split()


def test_a_chain_that_a_longer_one_needs_late_does_not_recurse():
    """The root asks for both: the sum's end is nearer to the root than what needs it."""
    near = ["n0 = f32[8] parameter(0)", *(f"n{i + 1} = f32[8] negate(n{i})" for i in range(1200))]
    far = ["m0 = f32[8] abs(n1200)", *(f"m{i + 1} = f32[8] negate(m{i})" for i in range(1200))]
    module = emitted("\n".join([*near, *far, "ROOT r = f32[8] add(n1200, m1200)"]))
    assert len(ops_of(module, arith.NegfOp)) == 2400


def test_two_thousand_ops_in_a_row_do_not_recurse():
    lines = ["x0 = f32[8] parameter(0)", *(f"x{i + 1} = f32[8] negate(x{i})" for i in range(1999))]
    module = emitted("\n".join([*lines, "ROOT r = f32[8] abs(x1999)"]))
    assert len(ops_of(module, arith.NegfOp)) == 1999


def test_a_long_chain_of_moves_does_not_recurse():
    lines = ["x0 = f32[8,4] parameter(0)"]
    for i in range(0, 1200, 2):
        lines.append(f"x{i + 1} = f32[4,8] transpose(x{i}), dimensions={{1,0}}")
        lines.append(f"x{i + 2} = f32[8,4] reshape(x{i + 1})")
    module = emitted("\n".join([*lines, "ROOT r = f32[8,4] abs(x1200)"]))
    assert len(ops_of(module, tensor.ExtractOp)) == 1


# ------------------------------------------------------------------------------------------- provenance, refusals


def test_every_op_is_located():
    body = """
      x = f32[20,20] parameter(0)
      y = s32[20,20] parameter(1)
      c = f32[20,20] convert(y)
      p = s32[20,20] power(y, y)
      d = s32[20,20] divide(p, y)
      e = f32[20,20] convert(d)
      l = f32[20,20] logistic(x)
      t = f32[20,20] transpose(l), dimensions={1,0}
      s = f32[20,20] add(l, t)
      u = f32[20,20] multiply(s, c)
      ROOT r = f32[20,20] add(u, e)
    """
    for op in emitted(body).walk():
        if not op.has_trait(IsTerminator) and not isinstance(op, arith.ConstantOp | ModuleOp):
            assert not isinstance(op.location, UnknownLoc), op
    (division,) = ops_of(emitted(body), arith.DivSIOp)
    assert place_of(division) == "d (test.hlo:7:7)"


def refusal(body: str) -> Unsupported:
    with pytest.raises(Unsupported) as caught:
        emitted(body)
    return caught.value


def test_an_op_without_code_is_refused_by_name_and_place():
    error = refusal("x = c64[8] parameter(0)\nROOT it = c64[8] asin(x)")
    assert "no code in c64 for HLO op 'asin' (instruction %it)" in error.message
    assert (error.place.file, error.place.line) == ("test.hlo", 3)
    assert "'asin' has code for: float" in error.help
