"""What a host program asked the runtime for, in order: a name, and the sizes and numbers that it gave.

    log = ApiLog(functions)
    loaded.run_seen([x], log.watch)
    log.calls[0]      ApiCall("alloc___gpu___pvoid_i64_i64___m2df32", (5, 4))

A buffer is its sizes. An op on buffers is called by the op and its instruction: "lmhlo.compare compare.3". The host program in Python and
that in machine code make equal logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dtypes import Array
from xla_emitters.runtime.ral.context import Call


class ApiCall(NamedTuple):
    """One call of the runtime: the name of the function, and what it was given, buffers by their sizes."""

    name: str
    given: tuple[Any, ...]


class ApiLog:
    """Collects calls.

    functions   name of a function in the host program -> the op on buffers that it carries out
    """

    def __init__(self, functions: Mapping[str, BufferOp | FusionOp]) -> None:
        self.calls = list[ApiCall]()
        self._functions = functions

    def add(self, name: str, values: Sequence[Any]) -> None:
        """Writes a call down; a context and a stream say nothing."""
        op = self._functions.get(name)
        called = name if op is None else f"{op.name} {op.instruction_name}" if isinstance(op, BufferOp) else op.name
        said = (_said(value) for value in values if value is not None and not isinstance(value, Call))
        self.calls.append(ApiCall(called, tuple(said)))

    def watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which writes each call of it down."""

        def run(*values: Any) -> Any:
            self.add(name, values)
            return function(*values)

        return run


def _said(value: Any) -> Any:
    return cast(Array, value).shape if isinstance(value, np.ndarray) else value
