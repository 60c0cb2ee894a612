"""What a host program asks of a platform: launches of kernels, by name.

    kernels.launch("main_kLoop_add_0", (5, 1, 1), (256, 1, 1), 0, [x, y])

`context` says what a call keeps; `simt_kernels` implements it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xla_emitters.program.arrays import Extents


class Kernels(Protocol):
    """The kernels of a program, on a platform: found by name, made ready before the first launch."""

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        """Launches a kernel on arrays and numbers. raises DataError, ExecutionError"""
        ...
