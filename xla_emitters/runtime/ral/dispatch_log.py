"""Records the runtime calls of a host program during one call, in order: the function, and its arrays and numbers.

    log = program.dispatches([x])
    log[3]                                          d2d f32[2,3] f32[2,3]
    copied(log)                                     {"d2d": (1, 24)}: one copy on the device, of 24 bytes

Runtime functions have the name of the call; buffer ops that the program executes have the name of their function in the host program, or of
the op and its instruction if the log knows the functions: "lmhlo.compare compare.3". Copies are `d2d`, `d2h`, `h2d` and `h2h`; their bytes
are those of the source. The host program in Python and the one in machine code make equal logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dtypes import Array
from xla_emitters.runtime.arrays import element_name
from xla_emitters.runtime.ral.context import Call

COPIES = ("d2d", "d2h", "h2d", "h2h")
MEMORY = frozenset(("alloc", "dealloc", "inc_ref", "ral_const", "sync_on_stream"))
"""Calls that neither move nor compute anything."""


@dataclass(frozen=True)
class Dispatch:
    """One call of a function.

    name       the full name, with the types of its arguments: "alloc___gpu___pvoid_i64_i64___m2df32"
    arguments  arrays as "f32[2,3]", numbers and texts unchanged; without the context and the stream
    bytes      total size of all arrays
    """

    name: str
    arguments: tuple[str, ...]
    bytes: int

    @property
    def call(self) -> str:
        """The name without types: "d2d", "ral_gemm", "ral_kernel_launch"."""
        return self.name.partition("___")[0]

    def __str__(self) -> str:
        return " ".join((self.call, *self.arguments))


class DispatchLog:
    """A list of dispatches.

    functions   name of a function in the host program -> the op on buffers that it executes
    """

    def __init__(self, functions: Mapping[str, BufferOp | FusionOp] | None = None) -> None:
        self.entries = list[Dispatch]()
        self._functions = functions or {}

    def add(self, name: str, values: Sequence[Any]) -> None:
        """Records a call."""
        op = self._functions.get(name)
        called = name if op is None else op.name
        if isinstance(op, BufferOp):
            called += f" {op.instruction_name}"
        given = [value for value in values if value is not None and not isinstance(value, Call)]
        arrays = [cast(Array, value) for value in given if isinstance(value, np.ndarray)]
        self.entries.append(Dispatch(called, tuple(map(_shown, given)), sum(array.nbytes for array in arrays)))

    def watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with each call of it recorded. `name` is its full name, or the name of a global of the host program."""

        def run(*values: Any) -> Any:
            self.add(name, values)
            return function(*values)

        return run


def copied(log: Sequence[Dispatch]) -> dict[str, tuple[int, int]]:
    """Kind of copy -> number of copies, and their total bytes."""
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
