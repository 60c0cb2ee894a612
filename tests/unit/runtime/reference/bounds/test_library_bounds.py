"""Bounds of library calls: right results are within, wrong ones are not."""

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.text.hlo.hlo_parser import parse_hlo

F32 = np.float32


def drawn(*shape: int, seed: int = 0, kind: Any = F32) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(kind)


def gemm(epilogue: str, kind: str = "f32", first: str = "negate") -> str:
    pairing = {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}
    config = {"alpha_real": 1.5, "beta": 0, "dot_dimension_numbers": pairing, "epilogue": epilogue}
    rest = f'custom_call_target="__cublas$lt$matmul", backend_config={json.dumps({"gemm_backend_config": config})}'
    return f"""HloModule m

ENTRY e {{
  x = {kind}[8,64] parameter(0)
  y = {kind}[64,4] parameter(1)
  b = {kind}[4] parameter(2)
  s = {kind}[8,64] {first}(x)
  ROOT g = ({kind}[8,4], s8[16]) custom-call(s, y, b), {rest}
}}
"""


@pytest.mark.parametrize("epilogue", ["BIAS", "BIAS_RELU", "BIAS_GELU", "BIAS_SILU"])
@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("first", ["negate", "tanh"])
def test_products_with_epilogues(epilogue: str, kind: str, first: str) -> None:
    """Of known operands and of ones that are not; float64's value is within, and a product without a term is not."""
    numpy: Any = {"f32": F32, "bf16": ml_dtypes.bfloat16}[kind]
    x, y, b = drawn(8, 64, kind=numpy), drawn(64, 4, seed=1, kind=numpy), drawn(4, seed=2, kind=numpy)
    entry = entry_of(parse_hlo(gemm(epilogue, kind, first)))
    known, _ = evaluate_bounds(entry, [x, y, b])
    assert known.admits(evaluate(entry, [x, y, b])[0]).all()
    left = (-x if first == "negate" else np.tanh(x.astype(float)).astype(numpy)).astype(float)
    formula: Any = {
        "BIAS": lambda v: v,
        "BIAS_RELU": lambda v: np.maximum(v, 0),
        "BIAS_GELU": lambda v: 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))),
        "BIAS_SILU": lambda v: v / (1 + np.exp(-v)),
    }[epilogue]
    exact = 1.5 * (left @ y.astype(float)) + b.astype(float)
    assert known.admits(formula(exact).astype(F32).astype(numpy)).all()
    short = exact - 1.5 * left[:, :1] * y[:1].astype(float)
    assert not known.admits(formula(short).astype(F32).astype(numpy)).all()
    width = (known.high.astype(float) - known.low.astype(float)).max()
    assert width < (0.6 if kind == "bf16" else 2e-3)


def test_sums_in_another_order_are_within() -> None:
    """4096 terms one after the other in f32, in two orders, are off by more than the roundings of the exact sum."""
    pairing = {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}
    config = json.dumps({"gemm_backend_config": {"dot_dimension_numbers": pairing}})
    text = (
        "HloModule m\n\nENTRY e {\n  x = f32[8,4096] parameter(0)\n  y = f32[4096,4] parameter(1)\n"
        f'  ROOT g = f32[8,4] custom-call(x, y), custom_call_target="__cublas$gemm", backend_config={config}\n}}\n'
    )
    x, y = np.abs(drawn(8, 4096)), np.abs(drawn(4096, 4, seed=1))
    (known,) = evaluate_bounds(entry_of(parse_hlo(text)), [x, y])
    terms = x.T[:, :, None] * y[:, None, :]
    exact = x.astype(float) @ y
    for way in (terms, terms[::-1]):
        summed = np.add.accumulate(way, axis=0)[-1]
        assert known.admits(summed).all()
        assert (np.abs(summed - exact) > 4 * np.spacing(exact.astype(F32))).any()
    assert not known.admits((exact * 1.01).astype(F32)).any()


def test_infinite_operands_are_not_a_failure() -> None:
    x, y, b = drawn(8, 64), drawn(64, 4, seed=1), drawn(4)
    x[0, 0] = np.inf
    entry = entry_of(parse_hlo(gemm("BIAS", first="negate")))
    known, _ = evaluate_bounds(entry, [x, y, b])
    assert known.admits(evaluate(entry, [x, y, b])[0]).all()
    assert not known.is_unknown[1:].any()


SORT = """HloModule m

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT, type=TOTALORDER
}

ENTRY e {
  x = f32[50] parameter(0)
  i = s32[50] iota(), iota_dimension=0
  k = f32[50] OF(x)
  ROOT s = (f32[50], s32[50]) sort(k, i), dimensions={0}, to_apply=less
}
"""


def test_a_sort_of_known_keys_is_known() -> None:
    values, places = evaluate_bounds(entry_of(parse_hlo(SORT.replace("OF", "negate"))), [drawn(50)])
    assert values.low.tolist() == np.sort(-drawn(50)).tolist()
    assert places.is_point


def test_a_sort_of_rounded_keys_keeps_their_order() -> None:
    """Which one is where is not known, but what is at each place nearly is."""
    values, places = evaluate_bounds(entry_of(parse_hlo(SORT.replace("OF", "exponential"))), [drawn(50)])
    exact = np.sort(np.exp(drawn(50).astype(float)))
    assert values.admits(exact.astype(F32)).all()
    assert not values.admits((exact * 1.001).astype(F32)).any()
    assert (int(places.low.min()), int(places.high.max())) == (0, 49)


def test_of_a_transform_nothing_is_known() -> None:
    text = "HloModule m\n\nENTRY e {\n  x = c64[8] parameter(0)\n  ROOT f = c64[8] fft(x), fft_type=FFT, fft_length={8}\n}\n"
    (known,) = evaluate_bounds(entry_of(parse_hlo(text)), [drawn(8).astype(np.complex64)])
    assert known.is_unknown.all()
