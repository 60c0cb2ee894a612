"""Steps of a program on an NVIDIA GPU, through CuPy.

    memory   arrays of the device are CuPy's, those of the host NumPy's; temporaries have places in one array of bytes
    launch   the arguments of each launch have words in memory, of which a run fills those that change: cuLaunchKernel
    copy     cudaMemcpyAsync. To the host through pinned memory, after which the host waits for the stream: nothing else does
    call     a function of `library` on CuPy, or, where there is none, NumPy on copies; `log` then says why

A call only enqueues work on the stream that is current when its frame is made; a frame is used again only by calls on the same stream
(`queue`), so its arena is free by then. A device array of a type that CuPy lacks (bf16, f8 ...) has bit patterns as elements, one of a type
below eight bits packed bytes. Bundles contain this file.
Source: CuPy's documentation, RawModule, cuda.driver, cuda.runtime; CUDA driver API, cuLaunchKernel; CUDA runtime API, "API
synchronization behavior".
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import prod
from threading import get_ident
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xla_emitters import library
from xla_emitters.errors import DataError, ToolError, Unsupported
from xla_emitters.library.arguments import LETTERS, Array, numpy_type, pattern_type
from xla_emitters.library.cublas import RepeatedProduct, rounds_to_tf32
from xla_emitters.program.bind import STAGE
from xla_emitters.program.step_values import LaunchDimensions
from xla_emitters.program.steps import ArrayPlace, Call, Launch, NumberSlot
from xla_emitters.runtime.cuda.cupy_arrays import assign, is_numpy, refuse_packed, to_cupy, to_numpy
from xla_emitters.runtime.cuda.cupy_platform import stored_shape
from xla_emitters.runtime.numpy_calls import BufferFunction, NumpyCalls
from xla_emitters.runtime.walk import ARGUMENT_ALIGNMENT, Frame, HostMemory, Run
from xla_emitters.support.limits import allowed_memory

COPIES = frozenset(("copy", "d2h", "h2d"))
CONSTANT = "constant"
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
"""cudaMemcpyKind"""
STREAM_OF_THREAD = 2
"""cudaStreamPerThread: one number, and a stream for each thread."""
MOST_ANSWERS = 1024
"""Numbers of a launch for which the function is kept."""
UNASKED_SHARED_BYTES = 48 << 10
"""Dynamic shared memory in bytes that a launch gets without setting a function attribute."""
NO_KERNEL = "the library has no such function, and no kernel computes it"
PLAIN: Mapping[str, Any] = {"alpha": [1, 0], "epilogue": "DEFAULT", "rounds": None}
"""The configuration of a product without prologue and epilogue."""
LibraryFunction: TypeAlias = tuple[str, Mapping[str, Any]]
"""A function of `library`, and its configuration."""
Exceeds: TypeAlias = Callable[[str, LaunchDimensions, Sequence[Any]], bool]
"""(kernel, launch, arguments) -> whether 32 bits may be too few for its indices."""


def queue(cupy: Any) -> tuple[int, ...]:
    """The current device and stream: work of two calls is in order if these are equal."""
    stream = cupy.cuda.get_current_stream().ptr
    at = cupy.cuda.runtime.getDevice(), stream
    return (*at, get_ident()) if stream == STREAM_OF_THREAD else at


class CupyMemory(HostMemory):
    """See the file's head.

    fill  a byte with which arrays begin; None: uninitialized
    """

    waits = True

    def __init__(self, cupy: Any, fill: int | None = None) -> None:
        super().__init__()
        self._cupy, self._fill, self._types = cupy, fill, dict[str, np.dtype[Any]]()
        self._resident = dict[tuple[int, int], Any]()

    def limit(self) -> int | None:
        return allowed_memory()

    def empty(self, place: ArrayPlace, shape: tuple[int, ...]) -> Any:
        if not place.on_device:
            return super().empty(place, shape)
        if (held := self._types.get(place.dtype)) is None:
            held = self._types[place.dtype] = pattern_type(place.dtype)
        if self._fill is not None:
            return self.placed(self.arena(prod(stored_shape(place.dtype, shape)) * held.itemsize), 0, place, shape)
        return self._cupy.empty(stored_shape(place.dtype, shape), held)

    def arena(self, count: int) -> Any:
        made = self._cupy.empty((count,), np.dtype(np.uint8))
        if self._fill is not None:
            made[...] = self._fill
        return made

    def placed(self, arena: Any, start: int, place: ArrayPlace, shape: tuple[int, ...]) -> Any:
        kind, stored = pattern_type(place.dtype), stored_shape(place.dtype, shape)
        return arena[start : start + prod(stored) * kind.itemsize].view(kind).reshape(stored)

    def argument(self, place: ArrayPlace, array: Any) -> Any:
        if not place.on_device:
            return super().argument(place, array if is_numpy(array) else self._cupy.asnumpy(array))
        if is_numpy(array):
            return to_cupy(self._cupy, array)
        return array.copy() if array.data.ptr % ARGUMENT_ALIGNMENT else array

    def resident(self, place: ArrayPlace, elements: Array) -> Any:
        if not place.on_device:
            return elements
        key = self._cupy.cuda.runtime.getDevice(), place.slot
        if key not in self._resident:
            made = to_cupy(self._cupy, elements)
            self._cupy.cuda.get_current_stream().synchronize()  # once: calls on other streams read it too
            self._resident[key] = made
        return self._resident[key]


class CalledOp(NamedTuple):
    """What the platform knows of an op.

    opcode   one of COPIES, CONSTANT, or any other
    library  the function of `library` that computes it at any sizes; None if there is none
    """

    opcode: str
    library: LibraryFunction | None


class CupyPlatform(NumpyCalls):
    """See the file's head.

    function_of   makes the NumPy function of an op, by its number
    ops           by their numbers
    kernels       names of the program's kernels
    load          (whether indices have 64 bits, number of the current device) -> the loaded kernels, by name
    exceeds       decides whether a launch needs 64-bit indices
    log           op -> why it was computed on the host
    launches      how many were made
    raises        Unsupported for element types below eight bits, whose buffers have another form on a GPU
    """

    def __init__(
        self,
        cupy: Any,
        function_of: Callable[[int], BufferFunction],
        ops: Sequence[CalledOp],
        kernels: Collection[str],
        load: Callable[[bool, int], Mapping[str, Any]],
        exceeds: Exceeds,
    ) -> None:
        super().__init__(function_of)
        self._cupy, self._ops, self._kernels, self._load, self._exceeds = cupy, ops, kernels, load, exceeds
        # Kept as long as the platform, since frames have the functions' addresses alone.
        self._functions_on = dict[tuple[int, bool], Mapping[str, Any]]()
        self.log = dict[str, str]()
        self.launches = 0

    # ---------------------------------------------------------------------------------------------------------- calls

    def call(self, frame: Frame, step: Call) -> Run:
        places = (*step.reads, *step.writes)
        if not any(place.on_device for place in places):
            return super().call(frame, step)
        refuse_packed(place.dtype for place in places)
        op = self._ops[step.op]
        if op.opcode in COPIES:
            return self._copy(frame, *places)
        if op.opcode == CONSTANT:
            return self._constant(frame, step)
        if (product := self._product(frame, step, op)) is not None:
            return product
        return self._by_library(frame, step, op)

    def _by_library(self, frame: Frame, step: Call, op: CalledOp) -> Run:
        """A function of `library` on CuPy or, where it has none, of NumPy on copies."""
        places, count = (*step.reads, *step.writes), len(step.reads)
        names, operands, cupy = [place.dtype for place in places], frame.operands(places), self._cupy
        lacks = NO_KERNEL if op.library is None else library.FUNCTIONS[op.library[0]].lacks
        if op.library is not None and not lacks:
            name, config = op.library
            taken = len(config["types"])
            beyond = list(enumerate(names))[taken : count if "padding" in config.get("operands", ()) else taken]

            def run() -> None:
                arrays = operands()
                given = [to_cupy(cupy, array) if is_numpy(array) else array for array in arrays[:taken]]
                given += [to_numpy(cupy, arrays[number], kind) for number, kind in beyond]
                compute(cupy, arrays[count:], name, config, given, names[count:])

            return run
        function = self.function(step.op)

        def run_on_host() -> None:
            if step.writes:
                self.log[step.name] = lacks
            arrays = operands()
            on_host = [to_numpy(cupy, array, name) for array, name in zip(arrays, names, strict=True)]
            function(*on_host)
            for made, output in zip(on_host[count:], arrays[count:], strict=True):
                assign(cupy, output, made)

        return run_on_host

    def _product(self, frame: Frame, step: Call, op: CalledOp) -> Run | None:
        """A plain product of arrays of known sizes, by cuBLAS into the result's memory; None for any other op."""
        name, config = op.library or ("", {})
        types = {place.dtype for place in (*step.reads, *step.writes)}
        shapes = [frame.bound.shapes.get(place.slot) for place in (*step.reads, *step.writes)]
        if name != "gemm" or None in shapes or len(types) != 1 or not types <= LETTERS.keys():
            return None
        if config["operands"] != ["lhs", "rhs"] or any(config.get(key, plain) != plain for key, plain in PLAIN.items()):
            return None
        left, right, out = (_Matrices(shape or ()) for shape in shapes)
        left.arrange(config["lhs_batch"], config["lhs_contracting"], terms_last=True)
        right.arrange(config["rhs_batch"], config["rhs_contracting"], terms_last=False)
        if left.sizes[:-2] != right.sizes[:-2] or left.sizes[-1] != right.sizes[-2]:
            raise DataError(f"%{step.name}: no product of {list(left.shape)} and {list(right.shape)}", stage=STAGE)
        out.sizes = (*left.sizes[:-1], right.sizes[-1])
        if prod(out.sizes) != prod(out.shape):
            raise DataError(f"%{step.name}: its result is not of {list(out.shape)}", stage=STAGE)
        matmul, places = self._cupy.matmul, (*step.reads, *step.writes)
        if rounds_to_tf32(config) and types == {"f32"}:
            matmul = RepeatedProduct(self._cupy)
        one, other, result = (
            matrices.reader(frame, place) for matrices, place in zip((left, right, out), places, strict=True)
        )

        def run() -> None:
            try:
                matmul(one(), other(), out=result())
            except ImportError as error:
                raise missing(name, error) from error

        return run

    def _constant(self, frame: Frame, step: Call) -> Run:
        """A constant that the program changes, or gives away, is copied into memory of its own."""
        (target,) = step.writes
        held = np.empty(frame.bound.shapes[target.slot], numpy_type(target.dtype))
        self.function(step.op)(held)
        return self._copying(frame, to_cupy(self._cupy, held), target.slot, ON_DEVICE)

    def _copy(self, frame: Frame, source: ArrayPlace, target: ArrayPlace) -> Run:
        if not target.on_device:
            return self._to_host(frame, source.slot, target.slot)
        if source.on_device:
            return self._copying(frame, source.slot, target.slot, ON_DEVICE)
        if source.slot in frame.bound.known:  # such as sizes: no run copies them from the host
            held = to_cupy(self._cupy, frame.arrays[source.slot])
            return self._copying(frame, held, target.slot, ON_DEVICE)
        return self._copying(frame, source.slot, target.slot, TO_DEVICE)

    def _copying(self, frame: Frame, source: Any, target: int, kind: int) -> Run:
        """Copies all bytes of an array, or of what a slot holds, to a slot. The driver stages memory of the host before it returns."""
        copy, stream, arrays = (
            self._cupy.cuda.runtime.memcpyAsync,
            self._cupy.cuda.get_current_stream().ptr,
            frame.arrays,
        )
        is_slot = isinstance(source, int)

        def run() -> None:
            read, written = arrays[source] if is_slot else source, arrays[target]
            size = written.nbytes
            if read.nbytes != size:
                raise DataError(f"no copy of {list(read.shape)} to {list(written.shape)}", stage=STAGE)
            if size:
                copy(written.data.ptr, read.ctypes.data if kind == TO_DEVICE else read.data.ptr, size, kind, stream)

        return run

    def _to_host(self, frame: Frame, source: int, target: int) -> Run:
        """One copy to pinned memory, and one wait: what data decide is read so."""
        cuda = self._cupy.cuda
        copy, wait, stream = cuda.runtime.memcpyAsync, cuda.runtime.streamSynchronize, cuda.get_current_stream().ptr
        arrays, pinned, held = frame.arrays, cuda.alloc_pinned_memory(64), 64

        def run() -> None:
            nonlocal pinned, held
            read, written = arrays[source], arrays[target]
            size = read.nbytes
            if size > held:
                pinned, held = cuda.alloc_pinned_memory(size), size
            if size:
                copy(pinned.ptr, read.data.ptr, size, TO_HOST, stream)
                wait(stream)
                written[...] = np.frombuffer(pinned, written.dtype, written.size).reshape(written.shape)

        return run

    # -------------------------------------------------------------------------------------------------------- launches

    def launch(self, frame: Frame, step: Launch) -> Run:
        if step.kernel not in self._kernels:
            raise Unsupported(f"fusion '{step.kernel}' is not a kernel", stage="gpu")
        words, cuda = Words(frame, step), self._cupy.cuda
        launch, stream, fill = cuda.driver.launchKernel, cuda.get_current_stream().ptr, words.fill
        shapes = [frame.bound.shapes.get(value.slot) for value in step.arguments if isinstance(value, ArrayPlace)]
        extents = (*step.grid, *step.block, step.shared_bytes)
        if None in shapes or any(isinstance(value, NumberSlot) for value in extents):
            return self._at_run(frame, step, words, stream)
        given = [_Sized(frame.bound.shapes[v.slot]) if isinstance(v, ArrayPlace) else v for v in step.arguments]
        at, (*_, shared) = LaunchDimensions(_known(step.grid), _known(step.block)), _numbers(extents)
        if not any(isinstance(value, NumberSlot) for value in given):
            function = self._function(step, at, given, shared)
            same = partial(launch, function, *at.grid, *at.block, shared, stream, words.address, 0)

            def run() -> None:
                fill()
                self.launches += 1
                same()

            return run
        # Only numbers differ between launches, such as a loop's counter.
        numbers = frame.values([value for value in given if isinstance(value, NumberSlot)])
        rest, found = (*at.grid, *at.block, shared, stream, words.address, 0), dict[tuple[int, ...], int]()

        def run_with_numbers() -> None:
            values = numbers()
            if (function := found.get(values)) is None:
                unknown = iter(values)
                known = [next(unknown) if isinstance(value, NumberSlot) else value for value in given]
                if len(found) >= MOST_ANSWERS:
                    found.clear()
                function = found[values] = self._function(step, at, known, shared)
            fill()
            self.launches += 1
            launch(function, *rest)

        return run_with_numbers

    def _at_run(self, frame: Frame, step: Launch, words: Words, stream: int) -> Run:
        """A launch whose extents, or whose arrays' sizes, only data decide."""
        grid, block, shared = frame.values(step.grid), frame.values(step.block), frame.value(step.shared_bytes)
        arguments = frame.arguments(step.arguments)
        launch = self._cupy.cuda.driver.launchKernel

        def run() -> None:
            x, y, z = grid()
            if not (x and y and z):
                return
            a, b, c = block()
            size = shared()
            function = self._function(step, LaunchDimensions((x, y, z), (a, b, c)), arguments(), size)
            words.fill()
            self.launches += 1
            launch(function, x, y, z, a, b, c, size, stream, words.address, 0)

        return run

    def _function(self, step: Launch, at: LaunchDimensions, values: Sequence[Any], shared: int) -> int:
        """The address of the loaded kernel whose indices are wide enough. raises ToolError if the driver rejects the PTX"""
        is_wide, device = self._exceeds(step.kernel, at, values), self._cupy.cuda.runtime.getDevice()
        functions = self._functions_on.get((device, is_wide))
        if functions is None:
            functions = self._functions_on[device, is_wide] = self._load(is_wide, device)
        loaded = functions[step.kernel]
        if shared > UNASKED_SHARED_BYTES:
            loaded.max_dynamic_shared_size_bytes = shared
        return loaded.kernel.ptr


class _Matrices:
    """An array as a batch of matrices: the dimensions in another order, those of a group as one."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = self.sizes = shape
        self._order: list[int] | None = None

    def arrange(self, batch: Sequence[int], summed: Sequence[int], *, terms_last: bool) -> None:
        free = [dim for dim in range(len(self.shape)) if dim not in (*batch, *summed)]
        order = [*batch, *free, *summed] if terms_last else [*batch, *summed, *free]
        rows, terms = (prod(self.shape[dim] for dim in group) for group in (free, summed))
        self.sizes = (*(self.shape[dim] for dim in batch), *((rows, terms) if terms_last else (terms, rows)))
        self._order = None if order == sorted(order) else order

    def of(self, array: Any) -> Any:
        if self._order is not None:
            array = array.transpose(self._order)
        return array if array.shape == self.sizes else array.reshape(self.sizes)

    def reader(self, frame: Frame, place: ArrayPlace) -> Callable[[], Any]:
        """Returns the matrices in a slot when a step runs."""
        arrays, slot, order = frame.arrays, place.slot, self._order
        is_view = order is None or self.sizes == tuple(self.shape[dim] for dim in order)
        if frame.is_fixed(slot) and is_view:
            held = self.of(arrays[slot])
            return lambda: held
        return lambda: self.of(arrays[slot])


def compute(
    cupy: Any,
    outputs: Sequence[Any],
    function: str,
    config: Mapping[str, Any],
    operands: Sequence[Any],
    names: Sequence[str],
) -> None:
    """Computes a function of `library` by CuPy into device arrays. raises ToolError if an NVIDIA library is missing"""
    wanted = [(name, output.shape) for name, output in zip(names, outputs, strict=True)]
    try:
        made = library.call(function, config, operands, wanted, cupy, into=outputs)
    except ImportError as error:
        raise missing(function, error) from error
    for value, output in zip(made, outputs, strict=True):
        if value is not output:
            output[...] = value


def missing(function: str, error: ImportError, instruction: str = "") -> ToolError:
    """For a function of `library`, which an instruction calls, whose NVIDIA library is not there."""
    subject = f"'{instruction}' calls '{function}', which" if instruction else f"'{function}'"
    return ToolError(
        f"{subject} needs {library.FUNCTIONS[function].library}: {error}",
        stage=STAGE,
        help="CuPy's wheels find NVIDIA's libraries in the CUDA toolkit, or in NVIDIA's own wheels",
    )


class _Sized:
    """An array of which only the number of elements matters."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.size = prod(shape)


class Words:
    """The arguments of a launch in memory: a word of eight bytes each, and the array of their addresses.

    A number's first bytes are the number in any width that its parameter has: words are little-endian.
    """

    def __init__(self, frame: Frame, step: Launch) -> None:
        count = len(step.arguments)
        self._words = words = (ctypes.c_int64 * count)()
        first = ctypes.addressof(words)
        self._addresses = (ctypes.c_void_p * count)(*(first + 8 * place for place in range(count)))
        self.address = ctypes.addressof(self._addresses)
        frame.kept.append(self)  # the driver reads them by their addresses
        slots, numbers, arrays, held = list[tuple[int, int]](), list[tuple[int, int]](), frame.arrays, frame.numbers
        for place, value in enumerate(step.arguments):
            if isinstance(value, int):
                words[place] = value
            elif not isinstance(value, ArrayPlace):
                numbers.append((place, value.index))
            elif frame.is_fixed(value.slot):
                words[place] = arrays[value.slot].data.ptr
            else:
                slots.append((place, value.slot))

        def fill() -> None:
            for place, slot in slots:
                words[place] = arrays[slot].data.ptr
            for place, number in numbers:
                words[place] = held[number]

        self.fill: Run = fill
        """Sets the words that change from run to run."""


def _numbers(extents: Sequence[Any]) -> tuple[int, ...]:
    return tuple(extent for extent in extents if isinstance(extent, int))


def _known(extents: Sequence[Any]) -> tuple[int, int, int]:
    x, y, z = _numbers(extents)
    return x, y, z
