"""The generated Python of a host program, loaded: a function of arrays.

    run = LoadedProgram(source, functions, dtypes)
    run([x], context)      -> [y]

The globals of the source are the functions that carry out its buffer ops, made here, `ral`, which finds a function of the runtime by
its full name, element types, and `empty` for the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dtypes import Array, dtype
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import Call, Context, Kernels
from xla_emitters.runtime.ral.functions import function_named
from xla_emitters.runtime.ral.memory import HOST_PROGRAM, Memory, WatchedCall
from xla_emitters.runtime.reference import call_beside
from xla_emitters.runtime.simt.loops import compile_loops

Watch: TypeAlias = Callable[[str, Callable[..., Any]], Callable[..., Any]]


class LoadedProgram:
    """A host program with a context of its own.

    source     Python that defines `main(ctx, ...)`
    functions  the buffer ops that its globals carry out, and the fusions whose loops they run
    dtypes     the element types that its globals are, by HLO's names
    constants  what `ral_const` reads
    kernels    what it launches; None: nothing
    watch      (name, function) -> the function that is called instead; None: no function is watched
    """

    def __init__(
        self,
        source: str,
        functions: Mapping[str, BufferOp | FusionOp],
        dtypes: Mapping[str, str],
        constants: Constants,
        kernels: Kernels | None = None,
        watch: Watch | None = None,
    ) -> None:
        def seen(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            return watch(name, function) if watch else function

        def named(name: str) -> Callable[..., Any]:
            return seen(name, function_named(name, constants))

        scope: dict[str, Any] = {name: dtype(wanted).numpy for name, wanted in dtypes.items()}
        scope["empty"] = np.empty
        scope |= {name: seen(name, _function(op)) for name, op in functions.items()}
        scope["ral"] = named
        exec(compile(source, HOST_PROGRAM, "exec"), scope)
        self.source = source
        self._main: Callable[..., Any] = scope["main"]
        self._takes_arguments = self._main.__code__.co_argcount > 1
        self.context = Context(kernels)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The results for these arguments, which fit the program's parameters. raises DataError, ExecutionError."""
        return self._run(Call(self.context, inputs))

    def run_watched(self, inputs: Sequence[Array]) -> tuple[list[Array], Memory]:
        """As `run`, and what became of the call's buffers."""
        call = WatchedCall(self.context, inputs, self.source.splitlines())
        return self._run(call), call.memory()

    def _run(self, call: Call) -> list[Array]:
        try:
            with np.errstate(all="ignore"):
                # With a context in the IR the program receives and sends; before, it takes and returns.
                returned = self._main(call, *call.inputs) if self._takes_arguments else self._main(call)
            for number, buffer in enumerate(returned):
                call.send_output(number, buffer)
        except BaseException:
            call.drop_all()
            raise
        call.end()
        return [call.outputs[number] for number in range(len(call.outputs))]


def _function(op: BufferOp | FusionOp) -> Callable[..., None]:
    """What carries out an op on buffers, or the loops of a fusion."""
    return compile_loops(op) if isinstance(op, FusionOp) else function_of(op, call_beside(op))
