"""The generated Python of a host program in IR, loaded: a function of arrays.

    run = PythonHost(source, functions, dtypes, constants)
    run.run_on_garbage([x])      -> [y]

The globals of the source are the functions that execute its buffer ops, made here; `ral`, which returns the runtime function of a
full name; element types; and `empty` for the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dtypes import Array, dtype
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import HOST_PROGRAM, Call, CallOnGarbage, Context, garbage
from xla_emitters.runtime.ral.functions import function_named
from xla_emitters.runtime.ral.kernels import Kernels
from xla_emitters.runtime.reference import call_beside
from xla_emitters.runtime.simt.loops import compile_loops


class PythonHost:
    """A host program with a context of its own.

    source     Python that defines `main(ctx, ...)`
    functions  name of a global -> the buffer op that it executes, or the fusion whose loops it runs
    dtypes     name of a global -> HLO's name of the element type that it is
    constants  read by `ral_const`
    kernels    launched by the program; None if it launches none
    donated    indices of the arguments whose memory a run may take for its results
    """

    def __init__(
        self,
        source: str,
        functions: Mapping[str, BufferOp | FusionOp],
        dtypes: Mapping[str, str],
        constants: Constants,
        kernels: Kernels | None = None,
        donated: frozenset[int] = frozenset(),
    ) -> None:
        self.source = source
        self._code = compile(source, HOST_PROGRAM, "exec")
        self._dtypes: dict[str, Any] = {name: dtype(wanted).numpy for name, wanted in dtypes.items()}
        self._functions = {name: _function(op) for name, op in functions.items()}
        self._constants = constants
        self._main = self._loaded(np.empty, self._functions, partial(function_named, constants=constants))
        self._takes_arguments = self._main.__code__.co_argcount > 1
        self.context = Context(kernels, source)
        self.donated = donated

    def _loaded(self, empty: Callable[..., Array], functions: Mapping[str, Any], ral: Callable[[str], Any]) -> Any:
        """The source's function `main`, with these globals."""
        scope: dict[str, Any] = {**self._dtypes, **functions, "empty": empty, "ral": ral}
        exec(self._code, scope)
        return scope["main"]

    def run_on_garbage(self, inputs: Sequence[Array]) -> list[Array]:
        """The results, on memory in which nothing is right by chance: NaN, -1, True. raises DataError, ExecutionError"""
        main = self._loaded(garbage, self._functions, partial(function_named, constants=self._constants))
        return self._run(CallOnGarbage(self.context, inputs, self.donated), main)

    def _run(self, call: Call, main: Callable[..., Any]) -> list[Array]:
        return call.run_host_program(main, takes_arguments=self._takes_arguments)


def _function(op: BufferOp | FusionOp) -> Callable[..., None]:
    """The function that executes an op on buffers, or the loops of a fusion."""
    return compile_loops(op) if isinstance(op, FusionOp) else function_of(op, call_beside(op))
