"""The generated Python of a host program, loaded: a function of arrays.

    run = LoadedProgram(source, functions, dtypes)
    run([x], context)      -> [y]

The globals of the source are the functions that carry out its buffer ops, made here, and element types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dtypes import Array, dtype
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.ral.context import Call, Context
from xla_emitters.runtime.reference import call_beside


class LoadedProgram:
    """A host program with a context of its own.

    source     Python that defines `main(ctx, ...)`
    functions  the buffer ops that its globals carry out
    dtypes     the element types that its globals are, by HLO's names
    """

    def __init__(self, source: str, functions: Mapping[str, BufferOp], dtypes: Mapping[str, str]) -> None:
        scope: dict[str, Any] = {name: dtype(wanted).numpy for name, wanted in dtypes.items()}
        for name, op in functions.items():
            scope[name] = function_of(op, call_beside(op))
        exec(compile(source, "<host program>", "exec"), scope)
        self._main: Callable[..., Any] = scope["main"]
        self.context = Context()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The results for these arguments, which fit the program's parameters. raises DataError, ExecutionError."""
        call = Call(self.context, inputs)
        try:
            with np.errstate(all="ignore"):
                returned = self._main(call, *inputs)
            for number, buffer in enumerate(returned):
                call.send_output(number, buffer)
        except BaseException:
            call.drop_all()
            raise
        call.end()
        return [call.outputs[number] for number in range(len(call.outputs))]
