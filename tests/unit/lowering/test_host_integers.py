"""Steps of ops on scalar integers against NumPy, at edges of each type."""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import numpy as np
import pytest

from xla_emitters.lowering.host_cpu import host_cpu
from xla_emitters.pipelines.program_host import integer_code
from xla_emitters.runtime.ral.host_kernels import STEP

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

TYPES: dict[str, Any] = {"pred": np.bool_, "s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64}
COMPARISONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
ARITHMETIC = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
OF_ANY = {"and": np.bitwise_and, "or": np.bitwise_or, "maximum": np.maximum, "minimum": np.minimum}
BINARY = ARITHMETIC | OF_ANY


def edges(name: str) -> list[Any]:
    if name == "pred":
        return [np.False_, np.True_]
    limits = np.iinfo(TYPES[name])
    return [TYPES[name](value) for value in (limits.min, limits.min + 1, 0, 1, 5, limits.max)]


def run(opcode: str, types: tuple[str, ...], operands: tuple[Any, ...], direction: str = "") -> Any:
    arrays = [np.array(value) for value in operands] + [np.empty((), TYPES[types[-1]])]
    assert [array.dtype for array in arrays] == [TYPES[name] for name in types]
    words = (ctypes.c_int64 * len(arrays))(*(array.ctypes.data for array in arrays))
    STEP(integer_code(opcode, types, direction, host_cpu()))(ctypes.addressof(words))
    return arrays[-1]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("direction", COMPARISONS)
def test_comparisons(name: str, direction: str) -> None:
    for x, y in product(edges(name), repeat=2):
        assert run("compare", (name, name, "pred"), (x, y), direction) == COMPARISONS[direction](x, y)


@pytest.mark.parametrize(
    ("name", "opcode"),
    [(name, opcode) for name in TYPES for opcode in (OF_ANY if name == "pred" else BINARY)],
)
def test_binary_ops_wrap_around(name: str, opcode: str) -> None:
    for x, y in product(edges(name), repeat=2):
        with np.errstate(over="ignore"):
            assert run(opcode, (name,) * 3, (x, y)) == BINARY[opcode](x, y)


@pytest.mark.parametrize(("source", "to"), list(product(TYPES, repeat=2)))
def test_conversions(source: str, to: str) -> None:
    for x in edges(source):
        assert run("convert", (source, to), (x,)) == x.astype(TYPES[to])


@pytest.mark.parametrize("name", TYPES)
def test_not_select_and_clamp(name: str) -> None:
    for x, y in product(edges(name), repeat=2):
        assert run("not", (name, name), (x,)) == np.bitwise_not(x)
        for condition in edges("pred"):
            assert run("select", ("pred", name, name, name), (condition, x, y)) == (x if condition else y)
        for z in edges(name):
            assert run("clamp", (name,) * 4, (x, y, z)) == np.minimum(np.maximum(y, x), z)
