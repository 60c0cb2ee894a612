"""What a host program asked the runtime for, in order: a name, and the sizes and numbers that it gave.

    log = list[Dispatch]()
    LoadedProgram(..., log=log).run([x])
    log[0]      Dispatch("alloc___gpu___pvoid_i64_i64___m2df32", (5, 4))

A buffer is its sizes. An op on buffers is called by the op and its instruction: "lmhlo.compare compare.3".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.ral.context import Call


class Dispatch(NamedTuple):
    """One call of the runtime: the name of the function, and what it was given, buffers by their sizes."""

    name: str
    given: tuple[Any, ...]

    @staticmethod
    def of(name: str, values: Sequence[Any]) -> Dispatch:
        """The call of a function with these arguments; a context and a stream say nothing."""
        said = (_said(value) for value in values if value is not None and not isinstance(value, Call))
        return Dispatch(name, tuple(said))


def _said(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return cast(Array, value).shape
    return value


def logged(name: str, function: Callable[..., Any], log: list[Dispatch]) -> Callable[..., Any]:
    """The function, which writes each call of it down."""

    def run(*values: Any) -> Any:
        log.append(Dispatch.of(name, values))
        return function(*values)

    return run
