"""Library functions against values of the real XLA.

`xla_cpu.npz` has, for each case, a module of HLO (`NAME.text`, UTF-8), its inputs (`NAME.p0` ...) and what XLA:CPU of jaxlib 0.10.2 gave
for them (`NAME.r0` ...). To make it again: compile each text for a CPU client of jaxlib (`xla_allow_excess_precision=false`), run it on the
inputs.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.runtime.reference.reference import evaluate

RECORDED = Path(__file__).with_name("xla_cpu.npz")
EXACT = ("rng", "total", "descending", "pair", "abs", "topk", "select")


@cache
def recorded() -> dict[str, Any]:
    with np.load(RECORDED) as archive:
        return dict(archive)


def names() -> list[str]:
    with np.load(RECORDED) as archive:
        return [key.removesuffix(".text") for key in archive.files if key.endswith(".text")]


def arrays(name: str, kind: str) -> list[Any]:
    found = recorded()
    return [found[f"{name}.{kind}{i}"] for i in range(9) if f"{name}.{kind}{i}" in found]


@pytest.mark.parametrize("name", names())
def test_as_xla_on_a_cpu(name: str) -> None:
    """Random bits, states and sorts (NaNs of both signs, zeros, ties, comparators) are equal bit for bit; the others nearly."""
    text = bytes(recorded()[f"{name}.text"]).decode()
    results = evaluate(entry_of(read_module(text)), arrays(name, "p"))
    wanted = arrays(name, "r")
    assert [(array.dtype, array.shape) for array in results] == [(array.dtype, array.shape) for array in wanted]
    for got, value in zip(results, wanted, strict=True):
        if name.startswith(EXACT):
            assert got.tobytes() == value.tobytes()
        else:
            assert np.allclose(got, value, rtol=2e-5, atol=2e-6, equal_nan=True)


def test_every_kind_of_case_is_there() -> None:
    kinds = {name.split("_")[0] for name in names()}
    assert kinds >= {
        "rng",
        "total",
        "pair",
        "abs",
        "cholesky",
        "solve",
        "fft",
        "ifft",
        "rfft",
        "irfft5",
        "topk",
        "norm",
        "select",
    }
    assert len(names()) > 40
