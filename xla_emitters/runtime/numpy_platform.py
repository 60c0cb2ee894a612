"""Steps in NumPy: an op on arrays as its class defines it, kernels by a function that takes arrays and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dynamic.host.steps_of_buffers import LOOPS, WATCH, CallableOp
from xla_emitters.errors import InternalError
from xla_emitters.program.bind import STAGE
from xla_emitters.program.step_values import Extents
from xla_emitters.program.steps import Launch
from xla_emitters.runtime.numpy_calls import BufferFunction, NumpyCalls
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.walk import Frame, Run


class Kernels(Protocol):
    """The kernels of a program, on a platform: found by name, made ready before the first launch."""

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        """Launches a kernel on arrays and numbers. raises DataError, ExecutionError"""
        ...


class NumpyPlatform(NumpyCalls):
    """See the file's head.

    ops      of the program, by the numbers of its calls
    kernels  launches kernels by name; None for a program without any
    watch    is called by `lmhlo.watch` ops: (number, values ...)
    """

    def __init__(
        self,
        ops: Sequence[CallableOp],
        kernels: Kernels | None = None,
        watch: Callable[..., None] | None = None,
    ) -> None:
        super().__init__(self._made)
        self.ops, self._kernels, self._watch = ops, kernels, watch

    def _made(self, number: int) -> BufferFunction:
        op = self.ops[number]
        return _loops_of(op) if isinstance(op, FusionOp) else function_of(op)

    def launch(self, frame: Frame, step: Launch) -> Run:
        arguments = frame.arguments(step.arguments)
        if step.kernel.startswith(LOOPS):
            loops = self.function(int(step.kernel.removeprefix(LOOPS).partition(".")[0]))
            return lambda: loops(*arguments())
        if step.kernel.startswith(WATCH):
            number, watch = int(step.kernel.removeprefix(WATCH)), self._watch
            return lambda: None if watch is None else watch(number, *arguments())
        kernels = self._kernels
        if kernels is None:
            raise InternalError(f"no kernel '{step.kernel}': the program was loaded without kernels", stage=STAGE)
        grid, block, shared = frame.values(step.grid), frame.values(step.block), frame.value(step.shared_bytes)

        def run() -> None:
            x, y, z = grid()
            if x and y and z:
                a, b, c = block()
                kernels.launch(step.kernel, (x, y, z), (a, b, c), shared(), arguments())

        return run


def _loops_of(op: FusionOp) -> Callable[..., None]:
    # Imported here: a program whose kernels are machine code does not load the executor.
    from xla_emitters.runtime.simt.fusion_loops import compile_loops

    return compile_loops(op)
