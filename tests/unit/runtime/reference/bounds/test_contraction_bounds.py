"""Bounds of dot and convolution: any order of the terms, products rounded or not, operands anywhere within their bounds."""

import ml_dtypes
import numpy as np
import pytest
from long_lists import but_long

from xla_emitters.dtypes import Array, dtype
from xla_emitters.explore.check.check import check
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.reference.tolerance import Bounds
from xla_emitters.text.hlo import parse_hlo

F32 = np.float32

DOT = """
ENTRY e {{
  a = {type}[16,64] parameter(0)
  b = {type}[64,16] parameter(1)
  t = {type}[16,64] {of}(a)
  ROOT d = {type}[16,16] dot(t, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


def bounds(text: str, *inputs: Array) -> Bounds:
    (found,) = evaluate_bounds(entry_of(parse_hlo(text, "x.hlo")), inputs)
    return found


def drawn(type: str, *dims: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(dims).astype(dtype(type).numpy)


@pytest.mark.parametrize("type", ["f32", "bf16", "f16", "f64"])
def test_any_order_and_either_rounding_of_products_is_within(type: str) -> None:
    """Narrow floats are summed in f32. A dot without its largest term is not within."""
    a, b = drawn(type, 16, 64), drawn(type, 64, 16, seed=1)
    found = bounds(DOT.format(type=type, of="copy"), a, b)
    held = np.float64 if type == "f64" else F32
    terms = a.astype(held)[:, :, None] * b.astype(held)[None]
    rng = np.random.default_rng(2)
    for order in (np.arange(64), np.arange(64)[::-1], rng.permutation(64), rng.permutation(64)):
        total = np.zeros((16, 16), held)
        fused = np.zeros((16, 16), held)
        for k in order:
            total = total + terms[:, k]
            exact = a[:, k, None].astype(np.longdouble) * b[None, k].astype(np.longdouble)
            fused = (fused + exact).astype(held)
        assert found.admits(total.astype(a.dtype)).all()
        assert found.admits(fused.astype(a.dtype)).all()
    missing = terms.copy()
    largest = np.abs(terms).argmax(1)
    np.put_along_axis(missing, largest[:, None], 0, 1)
    assert not found.admits(missing.sum(1).astype(a.dtype)).any()


@pytest.mark.parametrize(("type", "ulps"), [("f32", 5), ("bf16", 1)])
def test_operands_that_are_off_against_each_other(type: str, ulps: int) -> None:
    """tanh some ulps up where b is positive and down where it is negative: further than any corner of the two arrays goes."""
    a, b = drawn(type, 16, 64), drawn(type, 64, 16, seed=1)
    found = bounds(DOT.format(type=type, of="tanh"), a, b)
    middle = np.tanh(a.astype(np.float64)).astype(a.dtype)
    for column in range(16):
        for sign in (1, -1):
            t = middle
            for _ in range(ulps):
                t = np.nextafter(t, np.where(b[:, column] > 0, sign, -sign).astype(a.dtype) * np.ones_like(t))
            value = (t.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)
            assert found.admits(value)[:, column].all()


def test_what_is_not_finite_stays() -> None:
    a, b = drawn("f32", 4, 8), drawn("f32", 8, 3, seed=1)
    a[0, 1], a[1, 2], a[2, 0], a[2, 1], b[:, 2] = np.inf, np.nan, 3e38, 3e38, 1e38
    text = DOT.replace("16,64", "4,8").replace("64,16", "8,3").replace("16,16", "4,3").format(type="f32", of="copy")
    found = bounds(text, a, b)
    infinite = np.where(b[1] > 0, np.inf, -np.inf)
    assert np.array_equal(found.low[0, :2], infinite[:2])
    assert np.isnan(found.low[1]).all()
    assert found.admits(np.full((4, 3), np.inf, F32))[2, 2]
    assert not found.admits(np.full((4, 3), np.inf, F32))[3, :2].any()


def test_a_complex_dot() -> None:
    a, b = (drawn("f32", 5, 9, seed=s) + 1j * drawn("f32", 5, 9, seed=s + 1) for s in (0, 2))
    a, b = a.astype(np.complex64), np.ascontiguousarray(b.T).astype(np.complex64)
    text = DOT.replace("16,64", "5,9").replace("64,16", "9,5").replace("16,16", "5,5").format(type="c64", of="copy")
    found = bounds(text, a, b)
    assert found.admits((a.astype(np.complex128) @ b).astype(np.complex64)).all()
    assert found.admits(np.add.reduce([a[:, k, None] * b[None, k] for k in reversed(range(9))])).all()
    assert not found.admits(((a.astype(np.complex128) @ b) * (1 + 1e-4)).astype(np.complex64)).any()


def test_integers_are_exact() -> None:
    a, b = np.arange(12, dtype=np.int32).reshape(3, 4), np.arange(20, dtype=np.int32).reshape(4, 5)
    text = DOT.replace("16,64", "3,4").replace("64,16", "4,5").replace("16,16", "3,5").format(type="s32", of="copy")
    found = bounds(text, a, b)
    assert found.is_point
    assert np.array_equal(found.low, a @ b)


def test_a_convolution() -> None:
    """Over four features and three places, with padding: against float64, and the largest term of each left out."""
    text = """
    ENTRY e {
      x = f32[2,10,4] parameter(0)
      w = f32[3,4,5] parameter(1)
      t = f32[2,10,4] tanh(x)
      ROOT c = f32[2,10,5] convolution(t, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
    }"""
    x, w = drawn("f32", 2, 10, 4), drawn("f32", 3, 4, 5, seed=1)
    found = bounds(text, x, w)
    padded = np.zeros((2, 12, 4))
    padded[:, 1:-1] = np.tanh(x.astype(np.float64))
    terms = np.stack([padded[:, at : at + 10, :, None] * w[at].astype(np.float64) for at in range(3)])
    assert found.admits(terms.sum((0, 3)).astype(F32)).all()
    flat = np.moveaxis(terms, 0, 2).reshape(2, 10, 12, 5)
    without = flat.sum(2) - np.take_along_axis(flat, np.abs(flat).argmax(2)[:, :, None], 2)[:, :, 0]
    assert not found.admits(without.astype(F32)).any()


# ------------------------------------------------------------------------------------------- whole programs, by the executor

BODIES = """
sum { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }
largest { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] maximum(a, b) }
"""
ATTENTION = (
    BODIES
    + """
queries { x = f32[16,32] parameter(0)
          w = f32[32,32] parameter(1)
          ROOT q = f32[16,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
weights {
  q = f32[16,32] parameter(0)
  k = f32[16,32] parameter(1)
  d0 = f32[16,16] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  s = f32[16,16] tanh(d0)
  low = f32[] constant(-inf)
  m = f32[16] reduce(s, low), dimensions={1}, to_apply=largest
  mb = f32[16,16] broadcast(m), dimensions={0}
  d = f32[16,16] subtract(s, mb)
  ROOT e = f32[16,16] exponential(d)
}
results {
  e = f32[16,16] parameter(0)
  v = f32[16,32] parameter(1)
  zero = f32[] constant(0)
  t = f32[16] reduce(e, zero), dimensions={1}, to_apply=sum
  tb = f32[16,16] broadcast(t), dimensions={0}
  p = f32[16,16] divide(e, tb)
  ROOT o = f32[16,32] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY attention {
  x = f32[16,32] parameter(0)
  wq = f32[32,32] parameter(1)
  wk = f32[32,32] parameter(2)
  wv = f32[32,32] parameter(3)
  q = f32[16,32] fusion(x, wq), kind=kLoop, calls=queries
  k = f32[16,32] fusion(x, wk), kind=kLoop, calls=queries
  v = f32[16,32] fusion(x, wv), kind=kLoop, calls=queries
  e = f32[16,16] fusion(q, k), kind=kLoop, calls=weights
  ROOT o = f32[16,32] fusion(e, v), kind=kLoop, calls=results
}
"""
)
MLP = """
ENTRY mlp {
  x = f32[16,32] parameter(0)
  w1 = f32[32,64] parameter(1)
  w2 = f32[64,32] parameter(2)
  h = f32[16,64] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  half = f32[] constant(0.5)
  one = f32[] constant(1)
  halves = f32[16,64] broadcast(half), dimensions={}
  ones = f32[16,64] broadcast(one), dimensions={}
  t = f32[16,64] tanh(h)
  u = f32[16,64] add(t, ones)
  g = f32[16,64] multiply(h, halves)
  a = f32[16,64] multiply(g, u)
  o = f32[16,32] dot(a, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[16,32] tanh(o)
}
"""


@pytest.mark.parametrize("name", but_long(["dot of tanh", "attention", "mlp"], ["attention"]))
def test_right_kernels_are_right(name: str) -> None:
    """As far from float64 as NumPy's f32 is, so none is called wrong. Scores are capped by tanh, whose code differs from NumPy's."""
    text = {"dot of tanh": DOT.format(type="f32", of="tanh"), "attention": ATTENTION, "mlp": MLP}[name]
    verdict = check(text, target="t4", stages="xla_gpu,llvm-dialect", verify=False)
    assert verdict.ok, verdict.details


@pytest.mark.parametrize("name", but_long(["attention", "mlp"], ["attention"]))
def test_a_wrong_weight_is_wrong(name: str) -> None:
    """One weight off by 5 %: the results of the reference with it are not within the bounds of that without."""
    text = {"attention": ATTENTION, "mlp": MLP}[name]
    entry = entry_of(parse_hlo(text, "x.hlo"))
    shapes = [(16, 32), (32, 32), (32, 32), (32, 32)] if name == "attention" else [(16, 32), (32, 64), (64, 32)]
    inputs = [drawn("f32", *dims, seed=at) / F32(3) for at, dims in enumerate(shapes)]
    (found,) = evaluate_bounds(entry, inputs)
    inputs[1] = inputs[1].copy()
    inputs[1][3, 4] *= F32(1.05)
    (wrong,) = evaluate_bounds(entry, inputs)
    assert not found.admits(((wrong.low + wrong.high) / 2).astype(F32)).all()


def test_narrow_floats_without_infinity() -> None:
    """Beyond the last number of f8e4m3fn there is NaN; f32, in which it is summed, still has the sum."""
    kind = ml_dtypes.float8_e4m3fn
    a, b = np.full((16, 64), 8, kind), np.full((64, 16), 1, kind)
    found = bounds(DOT.format(type="f8e4m3fn", of="copy"), a, b)
    assert np.isnan(found.low.astype(F32)).all()
    b[60:] = 0
    b[8:60] = 0
    assert (bounds(DOT.format(type="f8e4m3fn", of="copy"), a, b).low == kind(64)).all()


def to_tf32(array: Array, rounding: int) -> Array:
    """f32 with 10 bits of the fraction: cut off (0), or rounded to the nearest (1)."""
    return ((array.view(np.uint32) + np.uint32(rounding << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


# {} is what the module asks for.
GEMM = """
  r = (f32[6,5], s8[0]) custom-call(x, y), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"alpha_real":1,
    "alpha_imag":0,"beta":0,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]},
    "precision_config":{"operand_precision":["PRECISION","PRECISION"],"algorithm":"ALG_UNSET"},"epilogue":"DEFAULT"}}
  ROOT d = f32[6,5] get-tuple-element(r), index=0"""
OF_F32 = """
  ROOT d = f32[6,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={PRECISION,PRECISION}"""


@pytest.mark.parametrize("rounding", [0, 1], ids=["cut", "nearest"])
@pytest.mark.parametrize("product", [OF_F32, GEMM], ids=["dot", "gemm"])
def test_factors_on_a_gpu_are_rounded_to_tf32_where_the_module_lets_them(product: str, rounding: int) -> None:
    x, y = drawn("f32", 6, 40), drawn("f32", 40, 5, seed=1)
    rounded = to_tf32(x, rounding).astype(np.float64) @ to_tf32(y, rounding).astype(np.float64)
    by_gpu = rounded.astype(np.float32)

    def found(precision: str, *, tf32: bool) -> Bounds:
        text = f"ENTRY e {{ x = f32[6,40] parameter(0)\n y = f32[40,5] parameter(1){product} }}"
        return evaluate_bounds(entry_of(parse_hlo(text.replace("PRECISION", precision))), [x, y], tf32=tf32)[0]

    default = "default" if product is OF_F32 else "DEFAULT"
    highest = "highest" if product is OF_F32 else "HIGHEST"
    assert found(default, tf32=True).admits(by_gpu).all()
    assert not found(default, tf32=True).admits(by_gpu * np.float32(1.01)).all()
    assert not found(default, tf32=False).admits(by_gpu).all()
    assert not found(highest, tf32=True).admits(by_gpu).all()
