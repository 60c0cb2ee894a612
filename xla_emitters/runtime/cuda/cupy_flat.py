"""Programs without unknown sizes on an NVIDIA GPU, through CuPy: their kernels, and calls of its libraries.

    frame.arrays[0]    a flat CuPy array, elements in memory order: numbers of a type that CuPy has, bit patterns of one that it lacks
                       (bf16, f8 ...), bytes of packed elements for types below eight bits

The in-process launcher and the script of a bundle both use it. A frame belongs to the stream that is current when it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xla_emitters import library
from xla_emitters.errors import Unsupported
from xla_emitters.library.packing import BITS_IN_SHARED_BYTES
from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.steps import Call, Launch
from xla_emitters.runtime.cuda.cupy_platform import load_module
from xla_emitters.runtime.cuda.cupy_steps import CupyPlatform, missing
from xla_emitters.runtime.numpy_calls import BufferFunction, NumpyCalls
from xla_emitters.runtime.plain_ops import flat_function
from xla_emitters.runtime.walk import Frame, Run


class FlatCupyPlatform(CupyPlatform):
    """See the file's head. All calls are functions of flat arrays of the device, and indices never need 64 bits.

    kernels  that steps launch
    calls    by the numbers of steps
    raises   ToolError where the driver rejects their PTX
    """

    def __init__(self, cupy: Any, kernels: Sequence[Kernel], calls: Sequence[LibraryCall]) -> None:
        functions = load_functions(cupy, kernels)
        super().__init__(
            cupy,
            lambda number: function_for(cupy, calls[number]),
            (),
            functions.keys(),
            lambda is_wide, device: functions,
            lambda name, at, values: False,
        )

    def call(self, frame: Frame, step: Call) -> Run:
        return NumpyCalls.call(self, frame, step)

    def launch(self, frame: Frame, step: Launch) -> Run:
        """A kernel that writes no element is not launched."""
        return super().launch(frame, step) if step.kernel in self._kernels else lambda: None


def function_for(cupy: Any, call: LibraryCall) -> BufferFunction:
    """The function of a call on flat arrays of the device; it raises Unsupported for what CuPy lacks, ToolError for a missing library."""
    function, reason = flat_function(call, cupy), refusal(call)

    def run(*buffers: Any) -> None:
        if reason:
            raise Unsupported(reason, stage="launch")
        try:
            function(*buffers)
        except ImportError as error:
            raise missing(call.name, error, call.instruction) from error

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
