"""What a host program asks of the runtime in one call, in order: which function, on which arrays and numbers.

    log = program.dispatches([x])
    log[3]                                          d2d f32[2,3] f32[2,3]
    copied(log)                                     {"d2d": (1, 24)}: one copy on the device, of 24 bytes

Functions of the runtime are named by their call, buffer ops that it carries out by their function in the host program. Copies are `d2d`,
`d2h`, `h2d` and `h2h`: their bytes are those of the source. Allocations and the like are in `memory`, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.arrays import element_name
from xla_emitters.runtime.ral.context import Call

COPIES = ("d2d", "d2h", "h2d", "h2h")
LEFT_OUT = frozenset(("alloc", "dealloc", "inc_ref", "ral_const", "sync_on_stream"))


@dataclass(frozen=True)
class Dispatch:
    """One call of a function.

    call       "d2d", "ral_gemm", "ral_kernel_launch"; of a buffer op the name of its function in the host program
    arguments  arrays as "f32[2,3]", numbers and texts as they are
    bytes      of all arrays
    """

    call: str
    arguments: tuple[str, ...]
    bytes: int

    def __str__(self) -> str:
        return " ".join((self.call, *self.arguments))


class DispatchLog:
    """Collects the dispatches of one call."""

    def __init__(self) -> None:
        self.entries = list[Dispatch]()

    def watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, noted at each call. `name` is its full name, or that of a global of the host program."""
        call = name.partition("___")[0]
        if call in LEFT_OUT:
            return function

        def run(*arguments: Any) -> Any:
            given = [value for value in arguments if value is not None and not isinstance(value, Call)]
            arrays = [cast(Array, value) for value in given if isinstance(value, np.ndarray)]
            self.entries.append(Dispatch(call, tuple(map(_shown, given)), sum(array.nbytes for array in arrays)))
            return function(*arguments)

        return run


def copied(log: Sequence[Dispatch]) -> dict[str, tuple[int, int]]:
    """How many copies of each kind there were, and of how many bytes."""
    found = dict[str, tuple[int, int]]()
    for entry in log:
        if entry.call in COPIES:
            count, size = found.get(entry.call, (0, 0))
            found[entry.call] = count + 1, size + entry.bytes // 2
    return found


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        array = cast(Array, value)
        return f"{element_name(array.dtype)}[{','.join(map(str, array.shape))}]"
    return str(value)
