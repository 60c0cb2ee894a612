"""Matrix products with cuBLASLt's prologues and epilogues, against formulas in float64."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.errors import Unsupported
from xla_emitters.library import call

BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


def config(operands: str = "lhs rhs", types: str = "f32 f32", **changes: Any) -> dict[str, Any]:
    plain = {"lhs_batch": [], "rhs_batch": [], "lhs_contracting": [1], "rhs_contracting": [0], "rounds": None}
    rest = {"alpha": [1, 0], "beta": 0, "epilogue": "DEFAULT", "outputs": ["d"]}
    return {"operands": operands.split(), "types": types.split(), **plain, **rest, **changes}


def drawn(*shape: int, kind: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(kind)


@pytest.mark.tiny
def test_alpha_beta_and_a_workspace() -> None:
    a, b, c = drawn(3, 5), drawn(5, 4, seed=1), drawn(3, 4, seed=2)
    with_c = config("lhs rhs c", "f32 f32 f32", alpha=[2.5, 0], beta=-3.0, outputs=["d", "workspace"])
    got, workspace = call("gemm", with_c, [a, b, c], [("f32", (3, 4)), ("s8", (7,))])
    assert np.allclose(got, 2.5 * (a.astype(float) @ b) - 3.0 * c, rtol=1e-5, atol=1e-6)
    assert not workspace.any()
    assert workspace.dtype == np.int8


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("epilogue", "formula"),
    [
        ("BIAS", lambda y: y),
        ("BIAS_RELU", lambda y: np.maximum(y, 0)),
        ("BIAS_GELU", gelu),
        ("BIAS_SILU", lambda y: y / (1 + np.exp(-y))),
    ],
)
def test_an_epilogue_is_computed_in_f32_and_rounded_once(epilogue: str, formula: Any) -> None:
    a, b, bias = drawn(6, 8, kind=BF16), drawn(8, 4, kind=BF16, seed=1), drawn(4, kind=BF16, seed=2)
    exact = a.astype(float) @ b.astype(float) + bias.astype(float)
    with_bias = config("lhs rhs bias", "bf16 bf16 bf16", epilogue=epilogue)
    (got,) = call("gemm", with_bias, [a, b, bias], [("bf16", (6, 4))])
    assert got.dtype == BF16
    unit = np.abs(formula(exact)) * 2.0**-8 + 1e-6
    assert (np.abs(got.astype(float) - formula(exact)) <= unit).all()


def test_an_auxiliary_output_holds_what_the_activation_took() -> None:
    a, b = drawn(3, 5), drawn(5, 4, seed=1)
    got, aux = call("gemm", config(epilogue="GELU_AUX", outputs=["d", "aux"]), [a, b], [("f32", (3, 4))] * 2)
    assert np.allclose(aux, a @ b, rtol=1e-5)
    assert np.allclose(got, gelu(aux.astype(float)), rtol=1e-5, atol=1e-6)


def test_batches_and_transposed_operands() -> None:
    """Batch dimensions anywhere: the result has them first, then lhs's own, then rhs's."""
    a, b = drawn(5, 2, 3), drawn(4, 5, 2, seed=1)
    dims = {"lhs_batch": [1], "rhs_batch": [2], "lhs_contracting": [0], "rhs_contracting": [1]}
    (got,) = call("gemm", config(**dims), [a, b], [("f32", (2, 3, 4))])
    assert np.allclose(got, np.einsum("kbm,nkb->bmn", a, b), rtol=1e-5, atol=1e-6)


def test_scales_and_saturation_of_8_bit_results() -> None:
    """d = clip(d_scale * relu(lhs_scale * rhs_scale * product + bias)); the largest size is taken before d_scale."""
    a, b, bias = drawn(3, 8, kind=F8), drawn(8, 4, kind=F8, seed=1), drawn(4, kind=BF16, seed=2)
    scales = [np.float32(2), np.float32(0.5), np.float32(300)]
    roles = "lhs rhs lhs_scale rhs_scale bias d_scale"
    with_scales = config(roles, "f8e4m3fn f8e4m3fn f32 f32 bf16 f32", epilogue="BIAS_RELU", outputs=["d", "amax"])
    results = [("f8e4m3fn", (3, 4)), ("f32", ())]
    got, largest = call("gemm", with_scales, [a, b, scales[0], scales[1], bias, scales[2]], results)
    value = np.maximum(a.astype(float) @ b.astype(float) + bias.astype(float), 0)
    assert np.allclose(largest, np.abs(value).max(), rtol=1e-5)
    wanted = np.clip(300 * value, -448, 448).astype(np.float32).astype(F8)
    assert (got == wanted).all()
    assert (got.astype(float) == 448).any()


def test_integers_are_exact_and_wrap() -> None:
    a = np.full((2, 70_000), -128, np.int8)
    (got,) = call("gemm", config(types="s8 s8"), [a, a.T], [("s32", (2, 2))])
    assert (got == 70_000 * 16384).all()
    wide = np.full((1, 4), 1 << 30, np.int32)
    (got,) = call("gemm", config(types="s32 s32"), [wide, wide.T], [("s32", (1, 1))])
    assert got[0, 0] == 0  # 2^62 modulo 2^32
    big = np.array([[(1 << 62) + 1]])
    (got,) = call("gemm", config(types="s64 s64"), [big, big], [("s64", (1, 1))])
    assert got[0, 0] == ((((1 << 62) + 1) ** 2 + (1 << 63)) % (1 << 64)) - (1 << 63)


def test_predicates_or_their_ands() -> None:
    a, b = np.array([[True, False]]), np.array([[True], [True]])
    assert call("gemm", config(types="pred pred"), [a, b], [("pred", (1, 1))])[0].tolist() == [[True]]


def test_complex_factors_are_not_conjugated() -> None:
    a, b = (drawn(3, 5) + 1j * drawn(3, 5, seed=3)).astype(np.complex64), drawn(5, 2, kind=np.complex64, seed=1)
    (got,) = call("gemm", config(types="c64 c64", alpha=[0, 2]), [a, b], [("c64", (3, 2))])
    assert np.allclose(got, 2j * (a @ b), rtol=1e-5)


def test_factors_may_be_rounded_first() -> None:
    a = np.array([[1 + 2.0**-10]], np.float32)
    (got,) = call("gemm", config(rounds="bf16"), [a, a], [("f32", (1, 1))])
    assert got[0, 0] == 1


def test_an_empty_sum_is_zero() -> None:
    a, b = np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)
    assert call("gemm", config(), [a, b], [("f32", (2, 3))])[0].tolist() == [[0.0] * 3] * 2


def test_an_unknown_epilogue_and_an_unknown_function_are_named() -> None:
    a = drawn(2, 2)
    with pytest.raises(Unsupported, match="no epilogue 'TANH'"):
        call("gemm", config(epilogue="TANH"), [a, a], [("f32", (2, 2))])
    with pytest.raises(Unsupported, match="no library function 'gem'"):
        call("gem", {}, [], [])
