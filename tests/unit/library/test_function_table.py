"""The table of functions; and the code for a GPU's arrays, run on NumPy's."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.library.other_numpy import OTHER, called_elsewhere

from xla_emitters.errors import InternalError, Unsupported
from xla_emitters.library import FUNCTIONS, call, cublas, function_table

BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
PRODUCT = {"lhs_batch": [0], "rhs_batch": [0], "lhs_contracting": [2], "rhs_contracting": [1], "rounds": None}
PRODUCT |= {"operands": ["lhs", "rhs"], "outputs": ["d"], "alpha": [1, 0], "beta": 0, "epilogue": "GELU"}


def test_the_room_needs_numpy_and_ml_dtypes_alone() -> None:
    """A bundle carries it to where xDSL is not."""
    code = "import sys, xla_emitters.library; print([m for m in ('xdsl', 'platformdirs', 'cupy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_every_function_has_a_row_and_every_file_a_function() -> None:
    rows = {row.compute.__module__.rpartition(".")[2] for row in FUNCTIONS.values()}
    files = {path.stem for path in Path(function_table.__file__).parent.glob("*.py")}
    of_gpus = {"cublas", "cublaslt", "cudnn", "kept_plans"}
    assert files - rows == {"__init__", "arguments", "devices", "function_table", "packing", *of_gpus}


def test_what_a_gpu_lacks_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin's function, say: CuPy has all of ours but one, which JAX computes on the host too."""
    assert [name for name, row in FUNCTIONS.items() if row.lacks] == ["eig"]
    monkeypatch.setitem(FUNCTIONS, "lu", replace(FUNCTIONS["lu"], lacks="it is slow"))
    with pytest.raises(Unsupported, match="no library function 'lu' on a GPU: it is slow"):
        call("lu", {}, [], [], OTHER)


def test_what_a_function_returns_is_checked() -> None:
    with pytest.raises(InternalError, match="'pass_through' returned"):
        call("pass_through", {"types": ["f32"]}, [np.zeros(2, np.float32)], [("f32", (3,))])


def test_tensor_cores_get_bit_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """bf16 factors as they are, 8-bit ones as f16; sums in float32, rounded to patterns once."""

    def product(left: Any, right: Any, names: list[str], xp: Any) -> Any:
        assert left.dtype == right.dtype == (np.uint16 if names[0] == "bf16" else np.float16)
        kind = BF16 if names[0] == "bf16" else np.float16
        return left.view(kind).astype(np.float32) @ right.view(kind).astype(np.float32)

    monkeypatch.setattr(cublas, "product", product)
    random = np.random.default_rng(0)
    for name, kind in (("bf16", BF16), ("f8e4m3fn", F8)):
        a, b = random.normal(size=(2, 3, 8)).astype(kind), random.normal(size=(2, 8, 4)).astype(kind)
        for result in ("bf16", "f32", "f8e5m2"):
            config = {**PRODUCT, "types": [name, name]}
            here = call("gemm", config, [a, b], [(result, (2, 3, 4))])
            there = called_elsewhere("gemm", config, [a, b], [(result, (2, 3, 4))])
            assert here[0].tobytes() == there[0].tobytes()


@pytest.mark.parametrize(
    ("name", "config", "operands", "results"),
    [
        (
            "sort",
            {"dimension": 0, "keys": [{"operand": 0, "order": "total", "descending": True}], "types": ["bf16", "s32"]},
            [np.array([1, -0.0, np.nan, 0, 3, -2], BF16), np.arange(6, dtype=np.int32)],
            [("bf16", (6,)), ("s32", (6,))],
        ),
        ("random_bits", {"algorithm": "philox", "types": ["u64"]}, [np.array([7, 9], np.uint64)], [("u64", (2,)), ("u16", (5, 3))]),
        ("random_bits", {"algorithm": "threefry", "types": ["u32"]}, [np.arange(4, dtype=np.uint32)], [("u32", (4,)), ("s64", (5,))]),
        (
            "random_numbers",
            {"distribution": "uniform", "start": 3, "types": ["bf16"] * 2},
            [np.array(-1, BF16), np.array(2, BF16)],
            [("bf16", (64,))],
        ),
        ("fft", {"kind": "RFFT", "length": [4], "types": ["f32"]}, [np.arange(8, dtype=np.float32).reshape(2, 4)], [("c64", (2, 3))]),
        ("cholesky", {"lower": True, "outputs": ["factor"], "types": ["f64"]}, [np.array([[4.0, 2], [2, 5]])], [("f64", (2, 2))]),
        (
            "tridiagonal_solve",
            {"outputs": ["solution", "info"], "types": ["f64"] * 4},
            [*np.array([[[0.0, 9, 1]], [[1, 2, 5]], [[3, 1, 0]]]), np.array([[[1.0], [2], [3]]])],
            [("f64", (1, 3, 1)), ("s32", (1,))],
        ),
        ("qr", {"outputs": ["factors", "scales"], "types": ["f64"]}, [np.array([[4.0, 2], [2, 5]])], [("f64", (2, 2)), ("f64", (2,))]),
    ],
)  # fmt: skip
def test_the_same_on_either_platform(
    name: str, config: dict[str, Any], operands: list[Any], results: list[Any]
) -> None:
    here, there = call(name, config, operands, results), called_elsewhere(name, config, operands, results)
    assert [array.tobytes() for array in here] == [array.tobytes() for array in there]
