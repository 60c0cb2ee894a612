"""Two PTX texts of one fusion on the same arrays."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.explore.compare.run_beside import OtherCode, ResultRow, beside_text, run_beside, ulps_apart
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.options import CompileOptions

CHANGES = {
    "same": ("", ""),
    "rounded": (r"mul\.rn", "mul.rp"),
    "changed": (r"0f3F4CCCCD", "0f3F000000"),
    "moved": (r"(ld\.global\S* .*\[%rd\d+)\]", r"\1+2]"),
}
"""Of each kernel, what is replaced by what in its PTX, which multiplies by 0.8."""
NAMES = [*CHANGES, "other"]
MODULE = "\n".join((
    "HloModule m",
    *(
        f"""f_{name} {{ p = f32[4096] parameter(0)
  c = f32[] constant(0.8)
  b = f32[4096] broadcast(c), dimensions={{}}
  ROOT r = f32[4096] multiply(p, b) }}"""
        for name in NAMES
    ),
    "ENTRY e { p = f32[4096] parameter(0)",
    *(f"  {name} = f32[4096] fusion(p), kind=kLoop, calls=f_{name}" for name in NAMES),
    f"  ROOT t = ({', '.join(['f32[4096]'] * len(NAMES))}) tuple({', '.join(NAMES)}) }}\n",
))  # fmt: skip
TAKES_ONE = ".version 8.6 .target sm_90 .address_size 64 .visible .entry fusion(.param .u64 x) { ret; }"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ResultRow]:
    path: Path = tmp_path_factory.mktemp("beside") / "m.hlo"
    path.write_text(MODULE)
    codes = dict[str, OtherCode]()
    for kernel in compile(path, target="h100").kernels:
        ptx = TAKES_ONE
        if kernel.name in CHANGES:
            before, entry, own = kernel.ptx.partition(f".entry {kernel.name}(")
            changed, count = re.subn(*CHANGES[kernel.name], own, count=1)
            assert count == 1
            ptx = before + entry + changed
        codes[kernel.name] = OtherCode(ptx, kernel.launch, name="" if ptx is TAKES_ONE else kernel.name)
    found = run_beside(path, codes, CompileOptions(target="h100"), blocks=2)
    return {row.kernel: row for row in found}


def test_the_same_code_gives_the_same_bits(rows: dict[str, ResultRow]) -> None:
    row = rows["same"]
    assert (row.ours, row.other, row.differ, row.total, row.ulps) == ("right", "right", 0, 256, None)


def test_a_last_digit_is_counted(rows: dict[str, ResultRow]) -> None:
    """Products that are rounded up differ where they are not exact and would be rounded down."""
    row = rows["rounded"]
    assert (row.ours, row.ulps) == ("right", 1)
    assert 0 < row.differ < 200
    assert f"{row.differ} of 256  1 ulp" in beside_text([row])


def test_what_is_wrong_is_said(rows: dict[str, ResultRow]) -> None:
    assert rows["changed"].ours == "right"
    assert rows["changed"].other.endswith(" wrong")
    assert "not aligned" in rows["moved"].other


def test_code_of_other_arguments_is_a_row_that_says_so(rows: dict[str, ResultRow]) -> None:
    """The other kernels of a module are compared all the same."""
    row = rows["other"]
    assert (row.ours, row.differ) == ("right", 0)
    assert row.other == "not run: takes 1 arguments, ours 2"


def test_units_in_the_last_place() -> None:
    """Across zero too: the smallest numbers of both signs are two apart."""
    tiny = np.float32(1e-45)
    assert ulps_apart(np.array([tiny, 1.0], np.float32), np.array([-tiny, 1.0], np.float32)) == 2
    assert ulps_apart(np.array([1.0]), np.array([np.nextafter(1.0, 2)])) == 1
    assert ulps_apart(np.array([1]), np.array([2])) is None
    narrow = np.array(
        [-0.5, 0.5], ml_dtypes.float4_e2m1fn
    )  # four bits of a byte; between them are 0.0 and -0.0, one value
    assert ulps_apart(narrow[:1], narrow[1:]) == 2
