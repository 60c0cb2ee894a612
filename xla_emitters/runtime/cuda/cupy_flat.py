"""Programs without unknown sizes on an NVIDIA GPU, through CuPy: their memory, their launches, and calls of its libraries.

    frame.arrays[0]    a flat CuPy array, elements in memory order: numbers of a type that CuPy has, bit patterns of one that it lacks
                       (bf16, f8 ...), bytes of packed elements for types below eight bits

The in-process launcher and the script of a bundle both use it. A frame belongs to the stream that is current when it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from xla_emitters import library
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.library.arguments import pattern_type
from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.steps import Launch, Place
from xla_emitters.runtime.cuda.cupy_platform import load_module
from xla_emitters.runtime.cuda.cupy_steps import Words
from xla_emitters.runtime.flat_platform import FlatPlatform
from xla_emitters.runtime.numpy_calls import BufferFunction
from xla_emitters.runtime.packing import BITS_IN_SHARED_BYTES
from xla_emitters.runtime.walk import ARGUMENT_ALIGNMENT, Frame, HostMemory, Run
from xla_emitters.support.memory_limit import allowed_memory


class FlatMemory(HostMemory):
    """Device memory for flat arrays: see the file's head.

    fill  a byte with which arrays begin; None: uninitialized
    """

    waits = True

    def __init__(self, cupy: Any, fill: int | None = None) -> None:
        super().__init__()
        self._cupy, self._fill = cupy, fill

    def limit(self) -> int | None:
        return allowed_memory()

    def arena(self, count: int) -> Any:
        made = self._cupy.empty((count,), dtype=np.dtype(np.uint8))
        if self._fill is not None:
            made[...] = self._fill
        return made

    def empty(self, place: Place, shape: tuple[int, ...]) -> Any:
        return self.placed(self.arena(_bytes(place, shape)), 0, place, shape)

    def placed(self, arena: Any, start: int, place: Place, shape: tuple[int, ...]) -> Any:
        return arena[start : start + _bytes(place, shape)].view(pattern_type(place.dtype))

    def argument(self, place: Place, array: Any) -> Any:
        return array.copy() if array.size and array.data.ptr % ARGUMENT_ALIGNMENT else array


class FlatCupyPlatform(FlatPlatform):
    """The current device and stream.

    kernels  that steps launch
    calls    as for `FlatPlatform`
    raises   ToolError where the driver rejects their PTX
    """

    def __init__(self, cupy: Any, kernels: Sequence[Kernel], calls: Sequence[LibraryCall]) -> None:
        super().__init__(cupy, calls, {kernel.name: kernel.arguments for kernel in kernels}, None)
        self._functions = load_functions(cupy, kernels)

    def launch_on(self, frame: Frame, step: Launch) -> Run:
        function = self._functions.get(step.kernel)
        if function is None:
            return lambda: None
        words, cuda = Words(frame, step), self.xp.cuda
        address, fill, stream = function.kernel.ptr, words.fill, cuda.get_current_stream().ptr
        launch = partial(cuda.driver.launchKernel, address, *step.grid, *step.block, 0, stream, words.address, 0)

        def run() -> None:
            fill()
            launch()

        return run

    def function_for(self, number: int) -> BufferFunction:
        call, function = self.calls[number], super().function_for(number)
        reason = refusal(call)

        def run(*buffers: Any) -> None:
            if reason:
                raise Unsupported(reason, stage="launch")
            try:
                function(*buffers)
            except ImportError as error:
                needs = library.FUNCTIONS[call.name].library
                raise ToolError(
                    f"'{call.instruction}' calls '{call.name}', which needs {needs}: {error}",
                    stage="launch",
                    help="CuPy's wheels find NVIDIA's libraries in the CUDA toolkit, or in NVIDIA's own wheels",
                ) from error

        return run


def refusal(call: LibraryCall) -> str:
    """Why no GPU runs the call through CuPy, as far as known before it runs; "" if no reason is known."""
    row = library.FUNCTIONS.get(call.name)
    if row is not None and row.lacks:
        return f"no library function '{call.name}' on a GPU, which '{call.instruction}' calls: {row.lacks}"
    for spec in (*call.operands, *call.results):
        if spec.dtype in BITS_IN_SHARED_BYTES:
            return f"no library function for {spec.dtype} on a GPU: '{call.instruction}' calls '{call.name}' with it"
    return ""


def load_functions(cupy: Any, kernels: Iterable[Kernel]) -> Mapping[str, Any]:
    """Name -> the kernel on the current device, of those that write anything. raises ToolError where the driver rejects their PTX."""
    modules: dict[tuple[str, str], dict[str, None]] = {}
    for kernel in kernels:
        if _writes_elements(kernel):
            modules.setdefault((kernel.ptx, kernel.architecture), {})[kernel.name] = None
    device = cupy.cuda.Device().id
    found = dict[str, Any]()
    for (ptx, made_for), names in modules.items():
        found |= load_module(ptx, tuple(names), made_for, device)
    return found


def _writes_elements(kernel: Kernel) -> bool:
    """Whether there is anything to launch: false if all written arrays are empty."""
    return any(argument.written and argument.array.elements for argument in kernel.arguments)


def _bytes(place: Place, shape: tuple[int, ...]) -> int:
    """Bytes of a place's array on the device."""
    return -(-prod(shape) * BITS_IN_SHARED_BYTES.get(place.dtype, 8) // 8) * pattern_type(place.dtype).itemsize
