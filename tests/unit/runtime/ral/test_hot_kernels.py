"""The launches of a fusion at fixed sizes: which kernel gets which arrays, temporaries, and addresses that are not aligned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.ral.hot_kernels import planned_launches
from xla_emitters.runtime.ral.kernels import Kernels

ANSWER = {
    "what": "emitters",
    "launches": [
        {"kernel": "a", "grid": [2, 1, 1], "block": [32, 1, 1], "shared_bytes": 0, "arguments": [0, 2]},
        {"kernel": "b", "grid": [1, 1, 1], "block": [64, 1, 1], "shared_bytes": 8, "arguments": [2, 1]},
    ],
    "temporaries": [["bf16", [3, 5]]],
    "gain": {"instructions": [8, 4], "bytes": [2, 2]},
}


class Seen(Kernels):
    """Writes down what is launched."""

    def __init__(self) -> None:
        self.launches = list[tuple[Any, ...]]()

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> int:
        self.launches.append((name, grid, block, shared_bytes, arguments))
        return 3


def test_each_launch_gets_its_arrays_and_temporaries_are_new_for_each_run() -> None:
    seen = Seen()
    kernel = planned_launches(ANSWER, 100, seen)
    x, y = np.zeros(4, np.float32), np.zeros(4, np.float32)
    assert kernel([x, y]) == 6
    assert kernel([x, y]) == 6
    (a, *_, (first, between)), (b, *_, (again, second)) = seen.launches[:2]
    assert (a, b) == ("a", "b")
    assert first is x
    assert second is y
    assert between is again
    assert (between.shape, between.dtype.name) == ((3, 5), "bfloat16")
    assert seen.launches[2][-1][1] is not between
    assert [launch[1:4] for launch in seen.launches[:2]] == [((2, 1, 1), (32, 1, 1), 0), ((1, 1, 1), (64, 1, 1), 8)]
    assert (kernel.gain.instructions, kernel.bytes) == ((8, 4), 100)


def test_arrays_at_addresses_that_are_not_aligned_are_not_taken() -> None:
    seen = Seen()
    odd, even = np.zeros(8, np.float32)[1:5], np.zeros(4, np.float32)
    assert odd.ctypes.data % 16
    assert planned_launches(ANSWER, 100, seen, 16)([odd, even]) is None
    assert not seen.launches
    assert planned_launches(ANSWER, 100, seen, 0)([odd, even])
