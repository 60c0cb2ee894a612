"""Steps of a program with unknown sizes on an NVIDIA GPU, through CuPy.

    memory   arrays of the device are CuPy's, those of the host NumPy's; temporaries have places in one array of bytes
    launch   the arguments of each launch have words in memory, which a run only fills: cuLaunchKernel on the caller's stream
    call     a copy, a function of `library` on CuPy, or, where neither is there, NumPy on copies; `log` then says why

A call only enqueues work on the caller's current stream; it waits where it reads data (a copy to the host). A device array of a type that
CuPy lacks (bf16, f8 ...) has bit patterns as elements. A frame is used again only by calls on the same stream, so its arena is free by
then.
Source: CuPy's documentation, RawModule and cuda.driver; CUDA driver API, cuLaunchKernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.host.steps_of_buffers import CallableOp
from xla_emitters.library.arguments import numpy_type, pattern_type
from xla_emitters.memory_limit import allowed_memory
from xla_emitters.program import Launch as At
from xla_emitters.program.sized import Call, Launch, Number, Place
from xla_emitters.runtime.cupy_platform import load_module
from xla_emitters.runtime.numpy_platform import NumpyPlatform
from xla_emitters.runtime.ral.cupy_program import assign, computed_on_device, is_numpy, refuse_packed, to_cupy, to_numpy
from xla_emitters.runtime.walk import ARGUMENT_ALIGNMENT, Frame, HostMemory, Run

COPIES = frozenset(("lmhlo.copy", "lmhlo.d2h", "lmhlo.h2d"))
UNASKED_SHARED_BYTES = 48 << 10
"""Dynamic shared memory in bytes that a launch gets without setting a function attribute."""
NO_KERNEL = "the library has no such function, and no kernel computes it"
LibraryFunction = tuple[str, Mapping[str, Any]]
"""A function of `library`, and its configuration."""


class CupyMemory(HostMemory):
    """See the file's head."""

    def __init__(self, cupy: Any) -> None:
        super().__init__()
        self._cupy = cupy
        self._resident = dict[int, Any]()

    def limit(self) -> int | None:
        return allowed_memory()

    def empty(self, place: Place, shape: tuple[int, ...]) -> Any:
        return self._cupy.empty(shape, pattern_type(place.dtype)) if place.on_device else super().empty(place, shape)

    def arena(self, count: int) -> Any:
        return self._cupy.empty((count,), np.dtype(np.uint8))

    def placed(self, arena: Any, start: int, place: Place, shape: tuple[int, ...]) -> Any:
        kind = pattern_type(place.dtype)
        count = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        return arena[start : start + count].view(kind).reshape(shape)

    def argument(self, place: Place, array: Any) -> Any:
        if not place.on_device:
            return super().argument(place, array if is_numpy(array) else self._cupy.asnumpy(array))
        if is_numpy(array):
            return to_cupy(self._cupy, array)
        return array.copy() if array.data.ptr % ARGUMENT_ALIGNMENT else array

    def resident(self, place: Place, elements: Array) -> Any:
        if not place.on_device:
            return elements
        if place.slot not in self._resident:
            self._resident[place.slot] = to_cupy(self._cupy, elements)
        return self._resident[place.slot]


class CupyPlatform(NumpyPlatform):
    """See the file's head.

    ops           of the program
    parameters    kernel -> types of its parameters: "index" has the width of the module
    ptx           (whether indices have 64 bits) -> the text of all kernels
    architecture  what it was compiled for
    exceeds       (kernel, launch, arguments) -> whether 32 bits may be too few for its indices
    library_of    the function of `library` that computes an op; None if there is none
    log           op -> why it was computed on the host
    launches      how many were made
    raises        Unsupported for element types below eight bits, whose buffers have another form on a GPU
    """

    def __init__(
        self,
        cupy: Any,
        ops: Sequence[CallableOp],
        parameters: Mapping[str, Sequence[str]],
        ptx: Callable[[bool], str],
        architecture: str,
        exceeds: Callable[[str, At, Sequence[Any]], bool],
        library_of: Callable[[CallableOp], LibraryFunction | None],
    ) -> None:
        super().__init__(ops)
        self._cupy, self._parameters, self._ptx = cupy, parameters, ptx
        self._architecture, self._exceeds, self._library_of = architecture, exceeds, library_of
        self.log = dict[str, str]()
        self.launches = 0

    # ---------------------------------------------------------------------------------------------------------- calls

    def call(self, frame: Frame, step: Call) -> Run:
        places = (*step.reads, *step.writes)
        if not any(place.on_device for place in places):
            return super().call(frame, step)
        refuse_packed(place.dtype for place in places)
        op, operands, cupy = self.ops[step.op], frame.operands(places), self._cupy
        if op.name in COPIES:

            def copy() -> None:
                source, target = operands()
                assign(cupy, target, source)

            return copy
        if op.name == "lmhlo.constant":
            held = np.empty(frame.bound.shapes[places[0].slot], numpy_type(places[0].dtype))
            self.function(step.op)(held)
            on_device = to_cupy(cupy, held)

            def fill() -> None:
                assign(cupy, operands()[0], on_device)

            return fill
        count, names = len(step.reads), [place.dtype for place in places]
        function, found = self.function(step.op), self._library_of(op)

        def run() -> None:
            arrays = operands()
            inputs, outputs = arrays[:count], arrays[count:]
            if found is not None:
                name, config = found
                if computed_on_device(
                    cupy, outputs, name, config, inputs[: len(config["types"])], names[count:], self.log
                ):
                    return
            if step.writes:
                self.log[step.name] = NO_KERNEL if found is None else self.log[found[0]]
            on_host = [to_numpy(cupy, array, name) for array, name in zip(arrays, names, strict=True)]
            function(*on_host)
            for made, output in zip(on_host[count:], outputs, strict=True):
                assign(cupy, output, made)

        return run

    # -------------------------------------------------------------------------------------------------------- launches

    def launch(self, frame: Frame, step: Launch) -> Run:
        kinds = self._parameters.get(step.kernel)
        if kinds is None:
            raise Unsupported(f"fusion '{step.kernel}' is not a kernel", stage="gpu")
        words = _Words(frame, step)
        numbers = (*step.grid, *step.block, step.shared_bytes, *step.arguments)
        shapes = [frame.bound.shapes.get(value.slot) for value in step.arguments if isinstance(value, Place)]
        if any(isinstance(value, Number) for value in numbers) or None in shapes:
            return self._at_run(frame, step, words)
        x, y, z = _known(step.grid)
        sized = [_Sized(frame.bound.shapes[v.slot]) if isinstance(v, Place) else v for v in step.arguments]
        function = self._function(step, At((x, y, z), _known(step.block)), sized)
        fill, launch, stream = words.setter(), self._cupy.cuda.driver.launchKernel, self._cupy.cuda.get_current_stream
        block, (shared,), address = _known(step.block), _numbers((step.shared_bytes,)), words.address

        def run() -> None:
            fill()
            self.launches += 1
            launch(function, x, y, z, *block, shared, stream().ptr, address, 0)

        return run

    def _at_run(self, frame: Frame, step: Launch, words: _Words) -> Run:
        """A launch whose numbers, or whose arrays' sizes, only data decide."""
        grid, block, shared = frame.values(step.grid), frame.values(step.block), frame.value(step.shared_bytes)
        operands = frame.operands([value for value in step.arguments if isinstance(value, Place)])
        numbers = frame.values([value for value in step.arguments if not isinstance(value, Place)])
        is_array = [isinstance(value, Place) for value in step.arguments]
        fill, launch, stream = words.setter(), self._cupy.cuda.driver.launchKernel, self._cupy.cuda.get_current_stream

        def run() -> None:
            x, y, z = grid()
            if not (x and y and z):
                return
            a, b, c = block()
            arrays, values = iter(operands()), iter(numbers())
            given = [next(arrays) if held else next(values) for held in is_array]
            function = self._function(step, At((x, y, z), (a, b, c)), given)
            fill()
            self.launches += 1
            launch(function, x, y, z, a, b, c, shared(), stream().ptr, words.address, 0)

        return run

    def _function(self, step: Launch, at: At, values: Sequence[Any]) -> int:
        """The address of the loaded kernel whose indices are wide enough. raises ToolError if the driver rejects the PTX"""
        is_wide, device = self._exceeds(step.kernel, at, values), self._cupy.cuda.Device().id
        loaded = load_module(self._ptx(is_wide), tuple(self._parameters), self._architecture, device)[step.kernel]
        (shared,) = _numbers((step.shared_bytes,)) or (0,)
        if shared > UNASKED_SHARED_BYTES:
            loaded.max_dynamic_shared_size_bytes = shared
        return loaded.kernel.ptr


class _Sized:
    """An array of which only the number of elements matters."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.size = int(np.prod(shape, dtype=np.int64))


class _Words:
    """The arguments of a launch in memory: a word of eight bytes each, and the array of their addresses.

    A number's first bytes are the number in any width that its parameter has: words are little-endian.
    """

    def __init__(self, frame: Frame, step: Launch) -> None:
        count = len(step.arguments)
        self._words = (ctypes.c_int64 * count)()
        first = ctypes.addressof(self._words)
        self._addresses = (ctypes.c_void_p * count)(*(first + 8 * place for place in range(count)))
        self.address = ctypes.addressof(self._addresses)
        self._slots, self._numbers = list[tuple[int, int]](), list[tuple[int, int]]()
        self._frame = frame
        frame.kept.append(self)  # the driver reads them by their addresses
        for place, value in enumerate(step.arguments):
            if isinstance(value, int):
                self._words[place] = value
            elif not isinstance(value, Place):
                self._numbers.append((place, value.index))
            elif frame.is_fixed(value.slot):
                self._words[place] = frame.arrays[value.slot].data.ptr
            else:
                self._slots.append((place, value.slot))

    def setter(self) -> Run:
        """Sets the words that change from run to run."""
        words, slots, numbers = self._words, self._slots, self._numbers
        arrays, held = self._frame.arrays, self._frame.numbers

        def fill() -> None:
            for place, slot in slots:
                words[place] = arrays[slot].data.ptr
            for place, number in numbers:
                words[place] = held[number]

        return fill


def _numbers(extents: Sequence[Any]) -> tuple[int, ...]:
    return tuple(extent for extent in extents if isinstance(extent, int))


def _known(extents: Sequence[Any]) -> tuple[int, int, int]:
    x, y, z = _numbers(extents)
    return x, y, z
