"""Bit patterns handed over by DLPack: the same memory with another element type, both ways."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.library.arguments import numpy_type
from xla_emitters.runtime.dlpack import DLPACK_CODES, as_patterns, as_type


@pytest.fixture(scope="module")
def jax() -> Any:
    return pytest.importorskip("jax", reason="the extra [jax] is not installed")


def test_what_a_consumer_knows_stays_as_it_is() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    seen = np.from_dlpack(as_patterns(array))
    assert seen.dtype == np.int32
    assert np.shares_memory(seen, array)
    assert as_type(array, "s32") is array


@pytest.mark.parametrize("name", DLPACK_CODES)
def test_jaxs_narrow_floats_are_patterns_of_the_same_memory(jax: Any, name: str) -> None:
    """Bits by ml_dtypes; the address is JAX's."""
    values = np.array([1.0, 0.5, 2.0]).astype(numpy_type(name))
    array = jax.numpy.asarray(values)
    seen = np.from_dlpack(as_patterns(array))
    assert seen.dtype == f"u{values.itemsize}"
    assert seen.tolist() == values.view(seen.dtype).tolist()
    assert seen.ctypes.data == array.unsafe_buffer_pointer()


def test_patterns_are_jaxs_array_of_the_type(jax: Any) -> None:
    patterns = np.array([1.0, -2.5], ml_dtypes.bfloat16).view(np.uint16)
    found = jax.dlpack.from_dlpack(as_type(patterns, "bf16"))
    assert found.dtype == ml_dtypes.bfloat16
    assert found.tolist() == [1.0, -2.5]
