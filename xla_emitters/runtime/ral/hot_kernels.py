"""Launches of the kernels that the background process compiled for a fusion at fixed sizes.

    kernel = planned_launches(answer, len(code), kernels)          `pipelines/hot_kernels` describes an answer
    kernel([x, y])

Temporaries between its launches are allocated for each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.ral.hot_spots import Gain
from xla_emitters.runtime.ral.kernels import Kernels


class Memory(Protocol):
    """The memory of a platform's kernels."""

    def is_current(self) -> bool:
        """Whether this thread launches kernels on that device."""
        ...

    def address(self, array: Any) -> int:
        """The address of an array."""
        ...

    def element_type(self, name: str) -> np.dtype[Any]:
        """The NumPy type that stores elements of HLO's type of that name."""
        ...

    def empty(self, shape: tuple[int, ...], element: np.dtype[Any]) -> Any:
        """A new array. raises MemoryError"""
        ...


class HostMemory:
    """Memory of the host, as NumPy arrays."""

    def is_current(self) -> bool:
        return True

    def address(self, array: Array) -> int:
        return array.__array_interface__["data"][0]

    def element_type(self, name: str) -> np.dtype[Any]:
        return dtype(name).numpy

    def empty(self, shape: tuple[int, ...], element: np.dtype[Any]) -> Array:
        return np.empty(shape, element)


HOST = HostMemory()


@dataclass(frozen=True)
class PlannedLaunches:
    """A fusion's launches at fixed sizes.

    what         how it was made
    bytes        size of its code
    gain         as counted
    launches     kernel, grid, block, bytes of shared memory, and the indices of its arrays
    temporaries  types and shapes of the arrays after the fusion's own
    kernels      by name
    alignment    of addresses that the kernels rely on, in bytes; 0: none
    memory       of the arrays
    """

    what: str
    bytes: int
    gain: Gain
    launches: tuple[tuple[str, Extents, Extents, int, tuple[int, ...]], ...]
    temporaries: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]
    kernels: Kernels = field(repr=False)
    alignment: int = 0
    memory: Memory = HOST

    def __call__(self, arrays: Sequence[Any]) -> int | None:
        if not self.memory.is_current():
            return None
        for array in arrays if self.alignment else ():
            if self.memory.address(array) % self.alignment:
                return None
        held = arrays
        if self.temporaries:
            held = [*arrays, *(self.memory.empty(shape, element) for element, shape in self.temporaries)]
        nanoseconds = 0
        for name, grid, block, shared_bytes, numbers in self.launches:
            arguments = [held[number] for number in numbers]
            nanoseconds += self.kernels.launch(name, grid, block, shared_bytes, arguments) or 0
        return nanoseconds


def planned_launches(
    answer: Mapping[str, Any], code_bytes: int, kernels: Kernels, alignment: int = 0, memory: Memory = HOST
) -> PlannedLaunches:
    """The launches in an answer.

    code_bytes  size of the code of `kernels`
    alignment   of addresses that `kernels` rely on, in bytes; 0: none
    memory      of their arrays
    """
    launches = tuple(
        (
            launch["kernel"],
            _grid(launch["grid"]),
            _grid(launch["block"]),
            launch["shared_bytes"],
            tuple(launch["arguments"]),
        )
        for launch in answer["launches"]
    )
    temporaries = tuple((memory.element_type(name), tuple(shape)) for name, shape in answer["temporaries"])
    gain = Gain(*(_pair(answer.get("gain", {}), name) for name in ("instructions", "bytes")))
    return PlannedLaunches(answer["what"], code_bytes, gain, launches, temporaries, kernels, alignment, memory)


def _grid(numbers: Sequence[int]) -> Extents:
    x, y, z = numbers
    return x, y, z


def _pair(gain: Mapping[str, Any], name: str) -> tuple[int, int] | None:
    if name not in gain:
        return None
    before, after = gain[name]
    return before, after
