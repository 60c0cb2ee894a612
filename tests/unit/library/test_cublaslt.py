"""Matrix products by cuBLASLt: the calls that are made, on a stand-in that computes column-major matrices from their memory; and the names
that are used, in NVIDIA's bindings where they are installed.
"""

import ctypes
import random
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.library import call, cublaslt
from xla_emitters.library.arguments import numpy_type, pattern_type

TYPES = {2: "f16", 14: "bf16", 0: "f32", 1: "f64", 4: "c64", 5: "c128", 28: "f8e4m3fn", 29: "f8e5m2"}
BOUNDS = {"f16": 2e-3, "bf16": 1e-2, "f32": 1e-5, "f64": 1e-12, "c64": 1e-5, "f8e4m3fn": 0.13, "f8e5m2": 0.26}
"""Of the relative error: a rounding of the result's type, or sums of a few terms."""
POINTERS = (
    "BIAS_POINTER",
    "EPILOGUE_AUX_POINTER",
    "A_SCALE_POINTER",
    "B_SCALE_POINTER",
    "D_SCALE_POINTER",
    "AMAX_D_POINTER",
)
ATTRIBUTES = (
    *("TRANSA", "TRANSB", "EPILOGUE", "BIAS_DATA_TYPE", "EPILOGUE_AUX_LD", "EPILOGUE_AUX_BATCH_STRIDE"),
    *("BATCH_COUNT", "STRIDED_BATCH_OFFSET", "MAX_WORKSPACE_BYTES", *POINTERS),
)
HEURISTIC = np.dtype([("algo", [("data_", "<u8", (8,))]), ("workspace_size", "<u8"), ("state", "<i4")])
EPILOGUES = ("DEFAULT", "BIAS", "RELU", "RELU_BIAS", "GELU", "GELU_BIAS", "GELU_AUX", "GELU_AUX_BIAS")


def memory(address: int, size: int) -> Any:
    return (ctypes.c_uint8 * size).from_address(address)


class LtError(Exception):
    pass


class Lt:
    """What `nvmath.bindings.cublasLt` has of matrix products. `refuses`: the heuristic finds no algorithm."""

    cuBLASLtError = LtError
    matmul_heuristic_result_dtype = HEURISTIC
    MatmulDescAttribute = MatrixLayoutAttribute = MatmulPreferenceAttribute = SimpleNamespace(
        **{n: n for n in ATTRIBUTES}
    )
    Epilogue = SimpleNamespace(**{name: number for number, name in enumerate(EPILOGUES)})

    def __init__(self) -> None:
        self.held: dict[int, dict[str, Any]] = {}
        self.refuses, self.asked = "", list[tuple[int, str]]()

    def _new(self, **fields: Any) -> int:
        self.held[len(self.held) + 1] = fields
        return len(self.held)

    def create(self) -> int:
        return self._new()

    def matmul_desc_create(self, compute: int, scale: int) -> int:
        return self._new(compute=compute, scale=TYPES[scale])

    def matrix_layout_create(self, kind: int, rows: int, columns: int, leading: int) -> int:
        return self._new(kind=TYPES[kind], rows=rows, columns=columns, leading=leading)

    def matmul_preference_create(self) -> int:
        return self._new()

    def matmul_preference_destroy(self, preference: int) -> None:
        assert self.held[preference]["MAX_WORKSPACE_BYTES"] == 32 << 20

    def get_matmul_desc_attribute_dtype(self, name: str) -> Any:
        return np.int64 if name in POINTERS or name.startswith("EPILOGUE_AUX") else np.int32

    def get_matrix_layout_attribute_dtype(self, name: str) -> Any:
        return np.int32 if name == "BATCH_COUNT" else np.int64

    def _set(self, of: int, name: str, address: int, size: int) -> None:
        self.held[of][name] = int.from_bytes(ctypes.string_at(address, size), sys.byteorder)

    matmul_desc_set_attribute = matrix_layout_set_attribute = matmul_preference_set_attribute = _set

    def matmul_algo_get_heuristic(self, *given: int) -> None:
        *_, found, count = given
        if self.refuses == "raises":
            raise LtError("CUBLAS_STATUS_NOT_SUPPORTED")
        np.frombuffer(memory(found, HEURISTIC.itemsize), HEURISTIC)["workspace_size"] = 128
        ctypes.c_int32.from_address(count).value = 0 if self.refuses else 1

    def _memory(self, address: int, layout: int) -> Any:
        """[batch, rows, columns] of a layout, a view of the memory."""
        is_ = self.held[layout]
        kind, batch = numpy_type(is_["kind"]), is_["BATCH_COUNT"]
        count = batch * is_["rows"] * is_["columns"]
        assert is_["leading"] == is_["rows"]
        assert is_["STRIDED_BATCH_OFFSET"] == is_["rows"] * is_["columns"]
        held = np.frombuffer(memory(address, count * kind.itemsize), kind)
        return held.reshape(batch, is_["columns"], is_["rows"]).transpose(0, 2, 1)

    def matmul(self, *given: Any) -> None:
        (handle, description, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d), rest = given[:12], given[12:]
        algorithm, workspace, size, stream = rest
        assert handle
        assert algorithm
        assert workspace
        assert (size, stream) == (128, 0)
        asked, out = self.held[description], self._memory(d, of_d)
        scale = numpy_type(asked["scale"])
        wide = np.complex128 if scale.kind == "c" else np.float64
        left, right = (self._memory(at, of).astype(wide) for at, of in ((a, of_a), (b, of_b)))
        epilogue = str(EPILOGUES[asked["EPILOGUE"]])
        self.asked.append((int(asked["compute"]), epilogue))
        left = left.transpose(0, 2, 1) if asked["TRANSA"] else left
        right = right.transpose(0, 2, 1) if asked["TRANSB"] else right
        if self.held[of_a]["kind"].startswith("f8"):
            assert (asked["TRANSA"], asked["TRANSB"]) == (1, 0)

        def number(name: str, default: float = 1) -> Any:
            return ctypes.c_float.from_address(asked[name]).value if name in asked else default

        def of_scale(address: int) -> Any:
            return np.frombuffer(ctypes.string_at(address, scale.itemsize), scale)[0]

        value: Any = of_scale(alpha) * (left @ right) * number("A_SCALE_POINTER") * number("B_SCALE_POINTER")
        if of_scale(beta):
            value = value + of_scale(beta) * self._memory(c, of_c).astype(wide)
        if "BIAS" in epilogue:
            kind, rows = numpy_type(TYPES[asked["BIAS_DATA_TYPE"]]), value.shape[1]
            value = value + np.frombuffer(ctypes.string_at(asked["BIAS_POINTER"], rows * kind.itemsize), kind)[
                :, None
            ].astype(wide)
        if "AUX" in epilogue:
            self._memory(asked["EPILOGUE_AUX_POINTER"], of_d)[...] = value.astype(out.dtype)
        if "RELU" in epilogue:
            value = np.maximum(value, 0)
        if "GELU" in epilogue:
            value = 0.5 * value * (1 + np.tanh(np.sqrt(2 / np.pi) * (value + 0.044715 * value**3)))
        if "AMAX_D_POINTER" in asked:
            ctypes.c_float.from_address(asked["AMAX_D_POINTER"]).value = float(
                np.max(np.abs(np.asarray(value, np.float64)))
            )
        if self.held[of_d]["kind"].startswith("f8"):
            limit = float(ml_dtypes.finfo(out.dtype).max)
            value = np.clip(value * number("D_SCALE_POINTER"), -limit, limit)
        out[...] = (
            value.astype(np.float32).astype(out.dtype)
            if wide is np.float64 and out.dtype != wide
            else value.astype(out.dtype)
        )


@pytest.fixture
def lt(monkeypatch: pytest.MonkeyPatch) -> Lt:
    made = Lt()
    for name in ("nvmath", "nvmath.bindings"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "nvmath.bindings.cublasLt", made)  # pyright: ignore[reportArgumentType]
    monkeypatch.setattr(cublaslt, "_KEPT", SimpleNamespace())
    return made


def drawn(seed: int) -> tuple[dict[str, Any], list[Any], list[tuple[str, tuple[int, ...]]]]:
    """A configuration, its operands, and its results' types and shapes."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    kind = draw.choice(["f16", "bf16", "f32", "f32", "f64", "c64", "f8"])
    batch, rows, terms, columns = draw.choice([[], [3]]), draw.choice([1, 4]), draw.choice([2, 5]), draw.choice([3, 8])
    pair = draw.choice([("f8e4m3fn", "f8e4m3fn"), ("f8e5m2", "f8e4m3fn")]) if kind == "f8" else (kind, kind)
    result = {"f8": draw.choice(["bf16", "f8e4m3fn", "f32"]), "bf16": draw.choice(["bf16", "f32"])}.get(kind, kind)
    n = len(batch)
    lhs_last, rhs_last = draw.choice([True, False]), draw.choice([True, False])
    lhs_shape = (*batch, rows, terms) if lhs_last else (*batch, terms, rows)
    rhs_shape = (*batch, columns, terms) if rhs_last else (*batch, terms, columns)
    operands, shapes, types = ["lhs", "rhs"], [lhs_shape, rhs_shape], [*pair]
    outputs, epilogue, beta = ["d"], "DEFAULT", 0.0
    results = [(result, (*batch, rows, columns))]
    if kind == "f8":
        for name in ("lhs_scale", "rhs_scale", *(["d_scale"] if result.startswith("f8") else [])):
            operands, shapes, types = [*operands, name], [*shapes, ()], [*types, "f32"]
        if result.startswith("f8") and draw.random() < 0.5:
            outputs, results = [*outputs, "amax"], [*results, ("f32", ())]
    elif draw.random() < 0.5:
        operands, shapes, types, beta = (
            [*operands, "c"],
            [*shapes, results[0][1]],
            [*types, result],
            draw.choice([1.0, -0.5]),
        )
    if kind not in ("c64", "f8"):
        epilogue = draw.choice(
            ["DEFAULT", "BIAS", "RELU", "BIAS_RELU", "GELU", "BIAS_GELU", "GELU_AUX", "BIAS_GELU_AUX"]
        )
        if "BIAS" in epilogue:
            operands, shapes, types = [*operands, "bias"], [*shapes, (columns,)], [*types, result]
        if "AUX" in epilogue:
            outputs, results = [*outputs, "aux"], [*results, results[0]]
    if draw.random() < 0.5:
        outputs, results = [*outputs, "workspace"], [*results, ("s8", (64,))]
    alpha = draw.choice([[1, 0], [0.5, 0], [2, -1]] if kind == "c64" else [[1, 0], [0.5, 0]])
    config = {
        "types": types, "operands": operands, "outputs": outputs, "alpha": alpha, "beta": beta, "epilogue": epilogue,
        "rounds": None, "precision": draw.choice(["default", "high", "highest"]),
        "lhs_batch": list(range(n)), "rhs_batch": list(range(n)),
        "lhs_contracting": [n + lhs_last], "rhs_contracting": [n + rhs_last],
    }  # fmt: skip
    arrays = [
        np.asarray(numbers.standard_normal(shape) + (1j if name[0] == "c" else 0))
        for shape, name in zip(shapes, types, strict=True)
    ]
    arrays = [np.abs(array) if array.ndim == 0 else array for array in arrays]
    return config, [array.astype(numpy_type(name)) for array, name in zip(arrays, types, strict=True)], results


@pytest.mark.parametrize("seed", range(60))
def test_any_epilogue_order_and_type(seed: int, lt: Lt, cupy: Any) -> None:
    config, arrays, results = drawn(seed)
    wanted = call("gemm", config, arrays, results)
    given = [cupy.asarray(array.view(pattern_type(name))) for array, name in zip(arrays, config["types"], strict=True)]
    for _ in range(2):
        found = call("gemm", config, given, results, xp=cupy)
        for array, right, (name, _shape), role in zip(found, wanted, results, config["outputs"], strict=True):
            kind = np.complex128 if name[0] == "c" else np.float64
            host = cupy.asnumpy(array).view(numpy_type(name)).astype(kind)
            bound = BOUNDS.get(name, 0)
            np.testing.assert_allclose(host, right.astype(kind), rtol=bound, atol=bound * 4, err_msg=role)
    assert len(lt.asked) == 2
    assert sum("leading" in each for each in lt.held.values()) == 3  # the second call finds the layouts
    rounds = config["precision"] != "highest" and config["types"][0] in ("f32", "c64")
    assert lt.asked[0][0] == (77 if rounds else 70 if config["types"][0] == "f64" else 68)


@pytest.mark.parametrize("refuses", ["finds none", "raises", "missing"])
def test_without_an_algorithm_cublas_multiplies_and_kernels_do_the_rest(
    refuses: str, lt: Lt, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lt.refuses = refuses
    if refuses == "missing":
        monkeypatch.setitem(sys.modules, "nvmath.bindings.cublasLt", None)
    config, arrays, results = next(
        each for each in map(drawn, range(99)) if each[0]["types"][0] == "bf16" and "GELU" in each[0]["epilogue"]
    )
    wanted = call("gemm", config, arrays, results)[0].astype(float)
    given = [cupy.asarray(array.view(pattern_type(name))) for array, name in zip(arrays, config["types"], strict=True)]
    found = cupy.asnumpy(call("gemm", config, given, results, xp=cupy)[0]).view(numpy_type(results[0][0]))
    np.testing.assert_allclose(found.astype(float), wanted, rtol=1e-2, atol=1e-2)
    assert not lt.asked


def test_the_result_is_written_where_it_is_wanted(lt: Lt, cupy: Any) -> None:
    config, arrays, results = next(each for each in map(drawn, range(99)) if each[0]["types"][0] == "f32")
    into = [cupy.empty(shape, pattern_type(name)) for name, shape in results]
    found = call("gemm", config, [cupy.asarray(array) for array in arrays], results, xp=cupy, into=into)
    assert found[config["outputs"].index("d")] is into[config["outputs"].index("d")]
    assert lt.asked


def test_its_names_are_those_of_nvidias_bindings() -> None:
    """Every attribute of the bindings that the file uses, and the number of arguments of the product."""
    pytest.importorskip("nvmath.bindings.cublasLt", reason="nvmath-python is not installed", exc_type=ImportError)
    real = import_module("nvmath.bindings.cublasLt")
    source = Path(cublaslt.__file__).read_text()
    for name in set(re.findall(r"\blt\.(\w+)", source)):
        assert hasattr(real, name), name
    for name in re.findall(r'_set\(\w+(?:\.\w+)?, "(\w+)"', source) + list(POINTERS):
        assert hasattr(real.MatmulDescAttribute, name), name
    assert all(hasattr(real.Epilogue, name) for name in EPILOGUES)
    assert {"BATCH_COUNT", "STRIDED_BATCH_OFFSET"} <= set(real.MatrixLayoutAttribute.__members__)
    assert real.matmul_heuristic_result_dtype.names[:2] == ("algo", "workspace_size")
    assert str(real.matmul.__doc__).partition("\n")[0].count(",") == 15
