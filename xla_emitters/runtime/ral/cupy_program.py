"""A program with unknown sizes on an NVIDIA GPU, through CuPy: its host program in Python, with buffers of the device.

    program = CupyProgram(cupy, source, ops, dtypes, constants, kernels, on_device, result_types)
    program.run([x])               NumPy arrays in and out; CuPy arrays in, CuPy arrays out
    program.log                    what was computed on the host, and why: {"convolution": "CuPy has no cuDNN"}

    alloc___gpu___...   memory of CuPy's pool               ral_kernel_launch   functions of the PTX (`cupy_kernels`)
    h2d, d2h, d2d       copies                              ral_gemm, topk ...  `library` on CuPy; what CuPy lacks, by NumPy on copies

Host memory stays in NumPy. A device buffer of a type that CuPy lacks (bf16, f8 ...) has bit patterns as elements. All work is on the
current stream, in order; a copy to the host waits for it. Bundles contain this file: it may import only NumPy, ml_dtypes and files like
itself.
Source: CuPy's documentation; docs/reference/4 4.1, 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeGuard

import numpy as np

from xla_emitters import library
from xla_emitters.errors import DataError, ToolError, Unsupported
from xla_emitters.library.arguments import Array, numpy_type, pattern_type
from xla_emitters.memory_limit import allowed_memory
from xla_emitters.program.ral_name import RalName
from xla_emitters.runtime.packing import BITS_IN_SHARED_BYTES
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import HOST_PROGRAM, STAGE, Call, Context
from xla_emitters.runtime.ral.functions import MAKERS, Function, Maker, element_name, function_named
from xla_emitters.runtime.ral.kernels import Kernels

DEVICE = "gpu"


@dataclass(frozen=True)
class BufferFunction:
    """The function that executes one op of the host program on its buffers, inputs first.

    name     of the op, for messages
    types    HLO's names of its buffers' element types
    outputs  number of buffers that it writes, the last ones
    run      executes it on NumPy arrays
    library  the function of `library` that computes it, and its configuration; None if there is none
    """

    name: str
    types: tuple[str, ...]
    outputs: int
    run: Callable[..., None]
    library: tuple[str, Mapping[str, Any]] | None = None


class CupyProgram:
    """A host program in Python on the GPU; see the file's head.

    source     Python that defines `main(ctx)`
    ops        name of a global -> the op that it executes
    dtypes     name of a global -> HLO's name of the element type that it is
    on_device  indices of the arguments that are in device memory
    results    HLO's names of the results' element types
    donated    indices of the arguments that a run owns
    raises     Unsupported for element types below eight bits, whose buffers have another form on a GPU
    """

    def __init__(
        self,
        cupy: Any,
        source: str,
        ops: Mapping[str, BufferFunction],
        dtypes: Mapping[str, str],
        constants: Constants,
        kernels: Kernels,
        on_device: Sequence[int],
        results: Sequence[str],
        donated: frozenset[int] = frozenset(),
    ) -> None:
        self.source = source
        self.log = dict[str, str]()
        self._cupy = cupy
        self._on_device = frozenset(on_device)
        self._results = tuple(results)
        self._donated = donated
        self.context = Context(kernels, source=source)
        self._constants = constants
        refuse_packed((*dtypes.values(), *results))
        scope: dict[str, Any] = {name: numpy_type(wanted) for name, wanted in dtypes.items()}
        scope |= {name: self._carried_out(op) for name, op in ops.items()}
        scope |= {"empty": np.empty, "ral": self._function}
        exec(compile(source, HOST_PROGRAM, "exec"), scope)
        self._main = scope["main"]

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The results for these arguments, which fit the program's parameters.

        inputs  in C order; if one is a CuPy array, all results are. The program overwrites the device arrays that it declares donated:
                the caller must pass copies
        raises  DataError, ExecutionError, ToolError if the driver or an NVIDIA library fails
        """
        is_host = all(is_numpy(array) for array in inputs)
        arrays = [self._placed(array, at_device=number in self._on_device) for number, array in enumerate(inputs)]
        call = DeviceCall(self.context, arrays, self._donated, self._cupy, self.log)
        made = call.run_host_program(self._main, takes_arguments=self._main.__code__.co_argcount > 1)
        self._cupy.cuda.Device().synchronize()
        return [
            to_numpy(self._cupy, array, name) if is_host else array
            for array, name in zip(made, self._results, strict=True)
        ]

    def _placed(self, array: Any, *, at_device: bool) -> Any:
        """An argument in the memory that the program expects, aligned as its kernels assume."""
        if not at_device:
            return array if is_numpy(array) else self._cupy.asnumpy(array)
        if is_numpy(array):
            return to_cupy(self._cupy, array)
        return array if array.data.ptr % ALIGNMENT == 0 else array.copy()

    def _function(self, text: str) -> Function:
        """The runtime function of that full name. raises Unsupported like `function_named`"""
        refuse_packed(element_name(code) for name in (RalName.parse(text),) for code in (*name.ins, *name.outs))
        return function_named(text, self._constants, DEVICE_MAKERS)

    def _carried_out(self, op: BufferFunction) -> Callable[..., None]:
        """The op as a function of buffers of the host or the device."""
        refuse_packed(op.types)

        def run(*buffers: Any) -> None:
            if all(is_numpy(buffer) for buffer in buffers):
                op.run(*buffers)
                return
            count = len(buffers) - op.outputs
            inputs, outputs = buffers[:count], buffers[count:]
            if op.library is not None:
                name, config = op.library
                if computed_on_device(self._cupy, outputs, name, config, inputs, op.types[count:], self.log):
                    return
                reason = self.log[name]
            else:
                reason = "the library has no such function, and no kernel computes it"
            self.log[op.name] = reason
            on_host = [to_numpy(self._cupy, buffer, name) for buffer, name in zip(buffers, op.types, strict=True)]
            op.run(*on_host)
            for made, output in zip(on_host[count:], outputs, strict=True):
                assign(self._cupy, output, made)

        return run


ALIGNMENT = 16
"""Alignment of a buffer in bytes that kernels assume."""


def refuse_packed(names: Any) -> None:
    """raises Unsupported for an element type with several elements per byte"""
    if packed := next((name for name in names if name in BITS_IN_SHARED_BYTES), None):
        raise Unsupported(
            f"no buffers of {packed} on a GPU: several of its elements are in a byte there",
            stage=STAGE,
            help="--platform cpu",
        )


def is_numpy(array: Any) -> TypeGuard[Array]:
    """Whether an array is in the host's memory."""
    return isinstance(array, np.ndarray)


def to_cupy(cupy: Any, array: Array) -> Any:
    """A copy on the device; of a type that CuPy lacks, the bit patterns."""
    return cupy.asarray(_pattern(array))


def to_numpy(cupy: Any, array: Any, name: str) -> Array:
    """An array of HLO's type `name` on the host: the array itself, or a copy."""
    return array if is_numpy(array) else cupy.asnumpy(array).view(numpy_type(name))


def assign(cupy: Any, target: Any, source: Any) -> None:
    """Copies between arrays in any memories, bit by bit."""
    if is_numpy(target):
        held: Array = target
        held[...] = source if is_numpy(source) else cupy.asnumpy(source).view(held.dtype)
    else:
        target[...] = to_cupy(cupy, source) if is_numpy(source) else source


def _pattern(array: Array) -> Array:
    """The array as a type that CuPy supports: one of NumPy's own types."""
    is_of_numpy = array.dtype.type.__module__ == "numpy"
    return array.view(array.dtype.type if is_of_numpy else np.dtype(f"u{array.dtype.itemsize}"))


class DeviceCall(Call):
    """One call of a program on a device with its own memory."""

    is_on_host = False
    __slots__ = ("_cupy", "_log")

    def __init__(
        self, context: Context, inputs: Sequence[Any], donated: frozenset[int], cupy: Any, log: dict[str, str]
    ) -> None:
        super().__init__(context, inputs, donated)
        self._cupy = cupy
        self._log = log

    def alloc_on_device(self, shape: tuple[int, ...], held: np.dtype[Any]) -> Any:
        """Like `alloc`, in device memory."""
        if allowed_memory() is not None or any(size < 0 for size in shape):
            self.check_buffer(shape, held)
        try:
            return self.owned(self._cupy.empty(shape, held))
        except (MemoryError, ValueError) as error:  # CuPy's OutOfMemoryError is a MemoryError
            what = f"{self._named('')} of {list(shape)} {held.name}, {prod(shape) * held.itemsize} bytes"
            raise DataError(f"out of memory on the device: {what}", stage=STAGE) from error

    def to_device(self, array: Array) -> Any:
        return to_cupy(self._cupy, array)

    def to_host(self, array: Any, name: str) -> Array:
        return to_numpy(self._cupy, array, name)

    def assign(self, target: Any, source: Any) -> None:
        assign(self._cupy, target, source)

    def compute(
        self,
        outputs: Sequence[Any],
        function: str,
        config: Mapping[str, Any],
        operands: Sequence[Any],
        names: Sequence[str],
    ) -> None:
        if computed_on_device(self._cupy, outputs, function, config, operands, names, self._log):
            return
        arrays = [to_numpy(self._cupy, array, name) for array, name in zip(operands, config["types"], strict=True)]
        wanted = [(name, output.shape) for name, output in zip(names, outputs, strict=True)]
        for made, output in zip(library.call(function, config, arrays, wanted), outputs, strict=True):
            assign(self._cupy, output, made)


def computed_on_device(
    cupy: Any,
    outputs: Sequence[Any],
    function: str,
    config: Mapping[str, Any],
    operands: Sequence[Any],
    names: Sequence[str],
    log: dict[str, str],
) -> bool:
    """Whether CuPy computed a function of `library` into device buffers; if not, `log` gets the reason.

    raises  ToolError if an NVIDIA library is missing
    """
    row = library.FUNCTIONS[function]
    if not row.runs_on_gpu:
        log[function] = row.lacks
        return False
    wanted = [(name, output.shape) for name, output in zip(names, outputs, strict=True)]
    on_device = [to_cupy(cupy, array) if is_numpy(array) else array for array in operands]
    try:
        made = library.call(function, config, on_device, wanted, cupy)
    except ImportError as error:
        raise ToolError(
            f"'{function}' needs {row.library}: {error}",
            stage=STAGE,
            help="CuPy's wheels find NVIDIA's libraries in the CUDA toolkit, or in NVIDIA's own wheels",
        ) from error
    for value, output in zip(made, outputs, strict=True):
        output[...] = value
    return True


# ------------------------------------------------------------------------------------------------------------- functions


def _alloc(name: RalName, constants: Constants) -> Function:
    if name.device != DEVICE:
        return MAKERS["alloc"](name, constants)
    held = pattern_type(element_name(name.outs[0]))

    def run(ctx: DeviceCall, *shape: int) -> Any:
        return ctx.alloc_on_device(shape, held)

    return run


def _copy(name: RalName, constants: Constants) -> Function:
    def run(ctx: DeviceCall, stream: None, source: Any, target: Any) -> None:
        if source.shape != target.shape:
            raise DataError(f"{name.call} of {list(source.shape)} into {list(target.shape)}", stage=STAGE)
        ctx.assign(target, source)

    return run


def _const(name: RalName, constants: Constants) -> Function:
    on_host = MAKERS["ral_const"](name, constants)
    if name.device != DEVICE:
        return on_host
    loaded = dict[int, Any]()

    def run(ctx: DeviceCall, stream: None, index: int, text: str) -> Any:
        if (found := loaded.get(index)) is None:
            found = loaded[index] = ctx.to_device(on_host(ctx, stream, index, text))
        return found

    return run


def _print(name: RalName, constants: Constants) -> Function:
    on_host, element = MAKERS["ral_print"](name, constants), element_name(name.ins[2])

    def run(ctx: DeviceCall, stream: None, array: Any, label: str) -> None:
        on_host(ctx, stream, ctx.to_host(array, element), label)

    return run


DEVICE_MAKERS: Mapping[str, Maker] = {
    **MAKERS,
    "alloc": _alloc,
    "d2d": _copy,
    "d2h": _copy,
    "h2d": _copy,
    "h2h": _copy,
    "ral_const": _const,
    "ral_print": _print,
}
"""Like `functions.MAKERS`, for a device with its own memory."""
