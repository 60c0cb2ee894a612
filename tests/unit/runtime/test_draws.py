"""Drawn inputs: the same on every machine, and over the whole range of their type."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.runtime import draws
from xla_emitters.runtime.draws import draw


@pytest.mark.tiny
def test_the_recipe() -> None:
    """A bundle's inputs are drawn again elsewhere, so the recipe is fixed: NumPy's default generator, seeded by [seed, number]."""
    f32 = np.dtype(np.float32)
    expected = np.random.default_rng([7, 2]).standard_normal((2, 3), dtype=np.float32)
    assert np.array_equal(draw("float", 32, f32, (2, 3), seed=7, number=2), expected)
    narrow = draw("float", 16, np.dtype(ml_dtypes.bfloat16), (2, 3), seed=7, number=2)
    assert np.array_equal(narrow, expected.astype(ml_dtypes.bfloat16))
    wide = np.random.default_rng([7, 2]).standard_normal((2, 3))
    assert np.array_equal(draw("float", 64, np.dtype(np.float64), (2, 3), seed=7, number=2), wide)


@pytest.mark.parametrize(
    ("kind", "bits", "dtype", "low", "high"),
    [
        ("signed", 4, ml_dtypes.int4, -8, 7),
        ("signed", 8, np.int8, -128, 127),
        ("unsigned", 4, ml_dtypes.uint4, 0, 15),
        ("unsigned", 8, np.uint8, 0, 255),
        ("pred", 8, np.bool_, 0, 1),
    ],
)
def test_small_types_take_all_their_values(kind: str, bits: int, dtype: type, low: int, high: int) -> None:
    array = draw(kind, bits, np.dtype(dtype), (8192,), seed=0, number=0)
    assert array.dtype == np.dtype(dtype)
    assert sorted(set(array.astype(np.int64).tolist())) == list(range(low, high + 1))


@pytest.mark.parametrize(("kind", "bits"), [("signed", 64), ("unsigned", 64), ("signed", 32), ("unsigned", 32)])
def test_wide_integers_reach_both_halves(kind: str, bits: int) -> None:
    array = draw(kind, bits, np.dtype(f"{kind[0].replace('s', 'i')}{bits // 8}"), (4096,), seed=0, number=0)
    middle = 0 if kind == "signed" else 1 << (bits - 1)
    below = int((array < middle).sum())
    assert 1700 < below < 2400


def test_floats_have_both_signs_and_tails() -> None:
    array = draw("float", 32, np.dtype(np.float32), (65536,), seed=0, number=0)
    assert abs(float(array.mean())) < 0.02
    assert abs(float(array.std()) - 1) < 0.02
    assert float(array.max()) > 3.5 > -3.5 > float(array.min())


def test_complex_parts_are_drawn_apart() -> None:
    array = draw("complex", 64, np.dtype(np.complex64), (1024,), seed=0, number=0)
    assert array.dtype == np.complex64
    assert abs(float(np.corrcoef(array.real, array.imag)[0, 1])) < 0.1


def test_unknown_kind() -> None:
    with pytest.raises(ValueError, match="no draw for text"):
        draw("text", 8, np.dtype(np.int8), (1,), seed=0, number=0)


def test_the_file_stands_alone() -> None:
    """A bundle carries a copy: it may import NumPy only."""
    text = Path(draws.__file__).read_text()
    assert "xla_emitters" not in text
    code = "import sys; sys.modules['xla_emitters'] = sys.modules['xdsl'] = None; exec(open(sys.argv[1]).read())"
    done = subprocess.run([sys.executable, "-c", code, draws.__file__], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
