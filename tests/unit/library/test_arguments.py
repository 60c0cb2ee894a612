"""Narrow types: as bit patterns, the form in a GPU's arrays, they have the values of `ml_dtypes`."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dtypes import DTYPES
from xla_emitters.library.arguments import NUMPY_TYPES, narrowed, pattern_type, rounded_patterns, widened

EIGHT_BITS = [name for name in NUMPY_TYPES if name.startswith("f8") and name != "f8e8m0fnu"]


def test_the_types_are_those_of_hlo() -> None:
    """The room imports nothing of the package, so it has a table of its own."""
    assert {row.name: row.numpy for row in DTYPES} == NUMPY_TYPES


@pytest.mark.parametrize("name", ["bf16", "f8e8m0fnu", *EIGHT_BITS])
def test_patterns_have_the_values_of_ml_dtypes(name: str) -> None:
    kind = NUMPY_TYPES[name]
    patterns = np.arange(1 << 8 * kind.itemsize).astype(pattern_type(name))
    assert np.array_equal(widened(patterns, name, np), patterns.view(kind).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("name", ["bf16", *EIGHT_BITS])
def test_rounding_to_patterns_is_that_of_ml_dtypes(name: str) -> None:
    """Every value of the type, every number halfway between two, and neighbours of those."""
    kind = NUMPY_TYPES[name]
    patterns = np.arange(1 << 8 * kind.itemsize).astype(pattern_type(name))
    values = np.unique(patterns.view(kind).astype(np.float32))
    values = np.append(values[np.isfinite(values)], [1e9, -1e9, 1e-30, -1e-30, np.inf, -np.inf]).astype(np.float32)
    finite = values[np.isfinite(values)]
    values = np.unique(np.append(values, finite[:-1] / 2 + finite[1:] / 2))
    around: Any = np.concatenate([np.nextafter(values, end).astype(np.float32) for end in (values, np.inf, -np.inf)])
    around = np.append(around, np.float32([0.0, -0.0, np.nan]))
    with np.errstate(all="ignore"):
        wanted = around.astype(kind)
    got = rounded_patterns(around, name, np).view(kind)
    is_nan = np.isnan(wanted.astype(np.float32))
    assert np.array_equal(np.isnan(got.astype(np.float32)), is_nan)
    assert got[~is_nan].tobytes() == wanted[~is_nan].tobytes()


def test_integers_narrower_than_a_byte_wrap() -> None:
    numbers = np.array([-9, -8, 7, 8, 300])
    assert narrowed(numbers, "s4", np).astype(int).tolist() == [7, -8, 7, -8, -4]
    assert narrowed(numbers, "u4", np).astype(int).tolist() == [7, 8, 7, 8, 12]
    assert narrowed(numbers, "u4", np).dtype == ml_dtypes.uint4
    assert widened(np.array([0x0F, 0xF7], np.uint8), "s4", np).tolist() == [-1, 7]
