"""Elements that share a byte: the first is in its lowest bits."""

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dtypes import DTYPES
from xla_emitters.library.packing import BITS_IN_SHARED_BYTES, packed_bytes, unpacked_elements


@pytest.mark.parametrize(
    ("elements", "bits", "data"),
    [
        (np.array([1, -2, 3], ml_dtypes.int4), 4, [0xE1, 0x03]),
        (np.array([0.5, -6, 1], ml_dtypes.float4_e2m1fn), 4, [0xF1, 0x02]),
        (np.array([1, 2, 3, 0, 1], ml_dtypes.uint2), 2, [0b00_11_10_01, 0b01]),
        (np.array([-1, -2], ml_dtypes.int2), 2, [0b10_11]),
        (np.array([], ml_dtypes.uint4), 4, []),
    ],
)
def test_in_memory(elements: np.ndarray, bits: int, data: list[int]) -> None:
    """As XLA has them: by hand."""
    packed = packed_bytes(elements.view(np.uint8), bits)
    assert packed.tolist() == data
    assert unpacked_elements(packed, bits)[: elements.size].view(elements.dtype).tolist() == elements.tolist()


def test_the_types_that_share_a_byte() -> None:
    assert {row.name: row.bits for row in DTYPES if row.bits < 8} == BITS_IN_SHARED_BYTES
