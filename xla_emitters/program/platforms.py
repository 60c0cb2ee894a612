"""Where a program runs: one rule for all of them.

y = p(x)                where its arrays are: on the GPU if one of them is there, else on the CPU
y = p.on("gpu")(x)      there; NumPy arrays in, NumPy arrays out
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xla_emitters.errors import UsageError
from xla_emitters.support.late_dataclass import dataclass

PLATFORMS = ("cpu", "gpu")
_CUDA_OF_DLPACK = (2, 13)
"""kDLCUDA and kDLCUDAManaged, dlpack.h"""


class OnPlatform(ABC):
    """A program as a function of arrays on one platform."""

    @abstractmethod
    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The results."""
        ...

    @property
    def log(self) -> Mapping[str, str]:
        """Ops that were computed on the host instead so far, and why."""
        return {}

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """The result, or a tuple if there are several. Only a program made of a function with keywords takes `keywords`."""
        if keywords:
            raise UsageError(f"no argument is called '{min(keywords)}'", stage="program")
        return one_or_all(self.run(inputs))


@dataclass(frozen=True)
class OnFunction(OnPlatform):
    """One that computes everything there."""

    function: Callable[[Sequence[Any]], Sequence[Any]]

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.function(inputs)


@dataclass(frozen=True)
class OnArguments(OnPlatform):
    """A program made of a function of another library: called with that function's arguments, it runs on their arrays.

    of_arrays  the program there, as a function of its own arrays
    platform   "cpu" or "gpu"
    """

    of_arrays: OnPlatform
    platform: str

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.of_arrays.run(inputs)

    @property
    def log(self) -> Mapping[str, str]:
        return self.of_arrays.log


def platform_of(arrays: Sequence[Any]) -> str:
    """Where a program with these arguments runs."""
    return "gpu" if any(map(is_on_gpu, arrays)) else "cpu"


def known_platform(platform: str) -> str:
    """`platform` itself. raises UsageError for one that there is not"""
    if platform not in PLATFORMS:
        raise UsageError(f"no platform '{platform}'", stage="program", help=" or ".join(PLATFORMS))
    return platform


def is_on_gpu(array: Any) -> bool:
    """Whether an array is in the memory of a GPU: CuPy's, PyTorch's, JAX's, or of another library with DLPack."""
    if type(array).__module__ == "numpy":
        return False
    if hasattr(array, "__cuda_array_interface__"):
        return True
    device = getattr(array, "__dlpack_device__", None)
    return device is not None and device()[0] in _CUDA_OF_DLPACK


def one_or_all(results: Sequence[Any]) -> Any:
    """The only result, or a tuple of all."""
    return results[0] if len(results) == 1 else tuple(results)
