"""Two PTX texts of one fusion on the same arrays."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from xla_emitters.explore.compare.run_beside import OtherCode, beside_text, run_beside, ulps_apart
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Kernel

FILE = Path(__file__).parents[3] / "corpus/loop/act_gelu_f32.7a8ac9a5.hlo"
HOW = CompileOptions(target="h100")


@cache
def kernel_of_file() -> Kernel:
    (kernel,) = compile(FILE, target="h100").kernels
    return kernel


def other(old: str = "", new: str = "") -> dict[str, OtherCode]:
    kernel = kernel_of_file()
    assert old in kernel.ptx
    return {"fusion": OtherCode(kernel.ptx.replace(old, new, 1) if old else kernel.ptx, kernel.launch)}


def test_the_same_code_gives_the_same_bits() -> None:
    (row,) = run_beside(FILE, other(), HOW, blocks=2)
    assert (row.ours, row.other, row.differ, row.total, row.ulps) == ("right", "right", 0, 1024, None)


def test_a_last_digit_is_counted() -> None:
    """The product before the last is rounded otherwise in one of four lanes."""
    rows = run_beside(FILE, other("mul.rn.f32 \t%r33", "mul.rp.f32 \t%r33"), HOW, blocks=2)
    (row,) = rows
    assert (row.ours, row.ulps) == ("right", 1)
    assert 0 < row.differ < 256
    assert f"{row.differ} of 1024  1 ulp" in beside_text(rows)


def test_what_is_wrong_is_said() -> None:
    (row,) = run_beside(FILE, other("0f3F4C422A", "0f3F000000"), HOW, blocks=2)
    assert row.ours == "right"
    assert row.other.endswith(" wrong")
    (row,) = run_beside(FILE, other("[%rd7]", "[%rd7+4]"), HOW, blocks=2)
    assert "not aligned" in row.other


def test_code_of_other_arguments_is_a_row_that_says_so() -> None:
    """The other kernels of a module are compared all the same."""
    ptx = ".version 8.6 .target sm_90 .address_size 64 .visible .entry fusion(.param .u64 x) { ret; }"
    code = {"fusion": OtherCode(ptx, other()["fusion"].launch)}
    (row,) = run_beside(FILE, code, HOW, blocks=2)
    assert (row.ours, row.differ) == ("right", 0)
    assert row.other == "not run: takes 1 arguments, ours 2"


def test_units_in_the_last_place() -> None:
    """Across zero too: the smallest numbers of both signs are two apart."""
    tiny = np.float32(1e-45)
    assert ulps_apart(np.array([tiny, 1.0], np.float32), np.array([-tiny, 1.0], np.float32)) == 2
    assert ulps_apart(np.array([1.0]), np.array([np.nextafter(1.0, 2)])) == 1
    assert ulps_apart(np.array([1]), np.array([2])) is None
