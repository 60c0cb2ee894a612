"""The generated Python of a host program, loaded: a function of arrays.

    run = LoadedProgram(source, functions, dtypes)
    run([x], context)      -> [y]

The globals of the source are the functions that carry out its buffer ops, made here, `ral`, which finds a function of the runtime by
its full name, element types, and `empty` for the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dtypes import Array, dtype
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import Call, Context
from xla_emitters.runtime.ral.functions import function_named
from xla_emitters.runtime.ral.memory import HOST_PROGRAM, Memory, WatchedCall
from xla_emitters.runtime.reference import call_beside


class LoadedProgram:
    """A host program with a context of its own.

    source     Python that defines `main(ctx, ...)`
    functions  the buffer ops that its globals carry out
    dtypes     the element types that its globals are, by HLO's names
    constants  what `ral_const` reads
    """

    def __init__(
        self,
        source: str,
        functions: Mapping[str, BufferOp],
        dtypes: Mapping[str, str],
        constants: Constants,
    ) -> None:
        scope: dict[str, Any] = {name: dtype(wanted).numpy for name, wanted in dtypes.items()}
        scope["empty"] = np.empty
        scope |= {name: function_of(op, call_beside(op)) for name, op in functions.items()}
        scope["ral"] = partial(function_named, constants=constants)
        exec(compile(source, HOST_PROGRAM, "exec"), scope)
        self._source = source
        self._main: Callable[..., Any] = scope["main"]
        self._takes_arguments = self._main.__code__.co_argcount > 1
        self.context = Context()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The results for these arguments, which fit the program's parameters. raises DataError, ExecutionError."""
        return self._run(Call(self.context, inputs))

    def run_watched(self, inputs: Sequence[Array]) -> tuple[list[Array], Memory]:
        """As `run`, and what became of the call's buffers."""
        call = WatchedCall(self.context, inputs, self._source.splitlines())
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
