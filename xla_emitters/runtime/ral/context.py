"""The state of a loaded program, and the state of one call of it.

    context = Context()                      lifetime of the program: counters, the first error
    call = Call(context, [x])                lifetime of one call: inputs, outputs, buffers
    y = call.alloc((2, 3), float32)          a buffer with one reference
    v = call.inc_ref(y, (6,))                a second view of it: two references
    call.dealloc(v)                          one reference
    call.send_output(0, y)

A buffer is a NumPy array. Arguments and constants are not counted: they are never freed. After a call, only its outputs are left of its
buffers; a call that fails drops all of them, so that the context can be used again.
Source: docs/reference/4 4.1; BladeDISC's runtime abstraction layer (https://github.com/alibaba/BladeDISC).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from threading import Lock
from types import FrameType
from typing import Any

import numpy as np

from xla_emitters import library
from xla_emitters.errors import DataError, InternalError
from xla_emitters.library.arguments import Array
from xla_emitters.memory_limit import memory_limit, refuse_beyond_limit
from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.ral.kernels import Kernels

STAGE = "run"
HOST_PROGRAM = "<host program>"
"""The file name that Python records for a host program."""


@dataclass(frozen=True)
class Counters:
    """Counts since the program was loaded.

    runs         calls that succeeded
    allocations  buffers that they allocated
    peak_bytes   largest total size of the buffers of one call at a time
    live         buffers that exist now, in calls that are running
    """

    runs: int = 0
    allocations: int = 0
    peak_bytes: int = 0
    live: int = 0


class Context:
    """The state of a loaded program. Threads may call the program at once: a call changes only its own state, and counts under a lock.

    kernels  the kernels that it launches; None for a program without any
    source   the host program in Python; "" for one in machine code
    """

    def __init__(self, kernels: Kernels | None = None, source: str = "") -> None:
        self.kernels = kernels
        self._source = source
        self._runs = self._allocations = self._peak_bytes = 0
        self._lock = Lock()
        self._going_on = set[Call]()

    @property
    def counters(self) -> Counters:
        """The counters now."""
        live = sum(call.live for call in list(self._going_on))
        return Counters(self._runs, self._allocations, self._peak_bytes, live)

    def variable_at(self, line: int) -> str:
        """The variable that a statement of the host program defines; "" for line 0, which is no statement."""
        return self._source.splitlines()[line - 1].partition(" = ")[0].strip() if line and self._source else ""

    def begun(self, call: Call) -> None:
        self._going_on.add(call)

    def ended(self, call: Call, *, well: bool) -> None:
        """Counts a call that ended."""
        self._going_on.discard(call)
        self.count(call.allocations, call.peak_bytes, runs=int(well))

    def count(self, allocations: int, peak_bytes: int, runs: int = 1) -> None:
        """Adds the counts of calls."""
        with self._lock:
            self._runs += runs
            self._allocations += allocations
            if peak_bytes > self._peak_bytes:
                self._peak_bytes = peak_bytes


def compute_by_library(
    outputs: Sequence[Array], function: str, config: Mapping[str, Any], operands: Sequence[Array], names: Sequence[str]
) -> None:
    """Writes what a function of `library` returns into NumPy buffers. `names` are HLO's names of their element types"""
    results = [(name, output.shape) for name, output in zip(names, outputs, strict=True)]
    for value, output in zip(library.call(function, config, operands, results), outputs, strict=True):
        output[...] = value


def check_result(out: Array, wanted: tuple[int, ...]) -> None:
    """raises DataError if a buffer does not have the sizes of the value to be written into it"""
    if out.shape != wanted:
        raise DataError(f"a result of {list(wanted)} does not fit its buffer of {list(out.shape)}", stage=STAGE)


@dataclass(slots=True)
class _Memory:
    """What the views of one buffer share.

    bytes       its size
    references  number of its views
    is_counted  whether the call allocated it; false for arguments and constants
    """

    bytes: int
    references: int
    is_counted: bool


class Call:
    """The state of one call of a program.

    inputs       arrays in C order, in the machine's byte order, of the right types
    donated      indices of the inputs that belong to the call: it frees them, or returns them
    stream       the order of a device's work; unused on the CPU
    allocations  buffers allocated; peak_bytes: their largest total size at a time
    """

    is_on_host = True
    """Whether the buffers of a device are NumPy arrays too."""

    __slots__ = (
        "__weakref__",
        "_bytes",
        "_limit",
        "_names",
        "_shared",
        "allocations",
        "context",
        "inputs",
        "outputs",
        "peak_bytes",
        "stream",
    )

    def __init__(self, context: Context, inputs: Sequence[Array], donated: frozenset[int] = frozenset()) -> None:
        self.context = context
        # Each is a separate view: one array may be donated twice if the call only reads it.
        self.inputs = [array.view() if number in donated else array for number, array in enumerate(inputs)]
        self.outputs = dict[int, Array]()
        self.stream = None
        self.allocations = 0
        self._names = {id(self.inputs[number]): self.inputs[number] for number in donated}
        self._bytes = sum(array.nbytes for array in self._names.values())
        self.peak_bytes = self._bytes
        self._limit = memory_limit()
        self._shared = dict[int, _Memory]()
        context.begun(self)

    @property
    def live(self) -> int:
        """The number of live buffers."""
        shared = {id(memory): memory for memory in self._shared.values()}
        return len(self._names) - len(self._shared) + sum(memory.is_counted for memory in shared.values())

    def owns(self, buffer: Array) -> bool:
        """Whether it is a view of a buffer of this call, which must be freed."""
        return id(buffer) in self._names

    # -------------------------------------------------------------------------------------------------------- kernels

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        """Launches the kernel of that name; does nothing for a grid without blocks."""
        if self.context.kernels is None:
            raise InternalError(f"no kernel '{name}': the program was loaded without kernels", stage=STAGE)
        if all(grid):
            self.context.kernels.launch(name, grid, block, shared_bytes, arguments)

    def compute(
        self,
        outputs: Sequence[Array],
        function: str,
        config: Mapping[str, Any],
        operands: Sequence[Array],
        names: Sequence[str],
    ) -> None:
        """Like `compute_by_library`."""
        compute_by_library(outputs, function, config, operands, names)

    def run_host_program(self, main: Callable[..., Any], *, takes_arguments: bool) -> list[Array]:
        """The results of the host program `main`; a call that fails drops its buffers.

        takes_arguments  whether `main` takes and returns arrays; with a context in the IR it calls recv_input and send_output
        """
        try:
            with np.errstate(all="ignore"):
                returned = main(self, *self.inputs) if takes_arguments else main(self)
            for number, buffer in enumerate(returned):
                self.send_output(number, buffer)
        except BaseException:
            self.drop_all()
            raise
        self.end()
        return [self.outputs[number] for number in range(len(self.outputs))]

    # --------------------------------------------------------------------------------------------- inputs and outputs

    def recv_input(self, number: int) -> Array:
        """The argument of that number."""
        return self.inputs[number]

    def send_output(self, number: int, buffer: Array) -> None:
        """Makes `buffer` the result of that number; its reference moves to the caller."""
        self.release(buffer)
        self.outputs[number] = buffer

    # -------------------------------------------------------------------------------------------------------- buffers

    def alloc(self, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "") -> Array:
        """A buffer with one reference, elements unset. raises DataError like `check_buffer`

        name  of the buffer, for the message; "": that of the host program's variable
        """
        if prod(shape) * dtype.itemsize + self._bytes > self._limit or min(shape, default=0) < 0:
            self.check_buffer(shape, dtype, name)
        try:
            buffer = self.empty(shape, dtype)
        except (ValueError, MemoryError) as error:
            raise DataError(f"out of memory: {self._named(name)} of {list(shape)} {dtype.name}", stage=STAGE) from error
        return self.owned(buffer)

    def check_buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "") -> None:
        """raises DataError for a negative size, and for a buffer that is beyond the limit on memory with those that live now."""
        if any(size < 0 for size in shape):
            raise DataError(f"{self._named(name)}: a size of {list(shape)} is negative", stage=STAGE)
        refuse_beyond_limit(shape, dtype.itemsize, dtype.name, self._named(name), self._bytes)

    def _named(self, name: str) -> str:
        """`%y` for a buffer of that name; without one, for the variable of the host program's statement."""
        found = name or self.context.variable_at(line_of_host_program())
        return f"%{found}" if found else "a buffer"

    def owned(self, buffer: Array) -> Array:
        """Registers a new buffer as one of this call, with one reference."""
        self._names[id(buffer)] = buffer
        self.allocations += 1
        self._bytes += buffer.nbytes
        if self._bytes > self.peak_bytes:
            self.peak_bytes = self._bytes
        return buffer

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory for a buffer."""
        return np.empty(shape, dtype)

    def freed(self, buffer: Array) -> None:
        """Called when the last view of a buffer ends."""

    def constant(self, array: Array) -> Array:
        """A constant of the program in the form that the call uses."""
        return array

    def inc_ref(self, buffer: Array, shape: tuple[int, ...]) -> Array:
        """A second view of a buffer, in another shape, with a reference of its own.

        The memory of an argument or a constant is not counted: its views can be freed, the memory cannot.
        raises DataError if the shape has another number of elements
        """
        if prod(shape) != buffer.size or any(size < 0 for size in shape):
            raise DataError(f"no reshape of {list(buffer.shape)} to {list(shape)}: the elements differ", stage=STAGE)
        view = buffer.reshape(shape)
        memory = self._shared.get(id(buffer))
        if memory is None and id(buffer) in self._names:
            memory = self._shared[id(buffer)] = _Memory(buffer.nbytes, references=1, is_counted=True)
        elif memory is None:
            memory = _Memory(0, references=0, is_counted=False)
        memory.references += 1
        self._names[id(view)], self._shared[id(view)] = view, memory
        return view

    def dealloc(self, buffer: Array) -> None:
        """Ends a view of a buffer; the last one frees it. raises InternalError if it is not a buffer of this call."""
        if self.end_name(buffer):
            self.freed(buffer)

    def end_name(self, buffer: Array) -> bool:
        """Ends a view of a buffer; returns whether it was the last view of memory that the call allocated. raises like `dealloc`"""
        if self._names.pop(id(buffer), None) is None:
            raise InternalError("a buffer is freed that the call does not own", stage=STAGE)
        if (memory := self._shared.pop(id(buffer), None)) is None:
            self._bytes -= buffer.nbytes
            return True
        memory.references -= 1
        if memory.references:
            return False
        self._bytes -= memory.bytes
        return memory.is_counted

    def release(self, buffer: Array) -> None:
        """Passes the last reference to the caller. raises InternalError for a buffer that is not of this call, or is shared."""
        memory = self._shared.get(id(buffer))
        is_shared = memory is not None and (memory.references != 1 or not memory.is_counted)
        if id(buffer) not in self._names or is_shared:
            raise InternalError("a result is not a buffer of its own", stage=STAGE)
        self.end_name(buffer)

    def drop_all(self) -> None:
        """Frees every buffer after the call failed."""
        self._names.clear()
        self._shared.clear()
        self.context.ended(self, well=False)

    def end(self) -> None:
        """raises InternalError if a buffer was not freed."""
        if self._names:
            left = [buffer.shape for buffer in self._names.values()]
            self.drop_all()
            raise InternalError(f"{len(left)} buffers were not freed, the first of {list(left[0])}", stage=STAGE)
        self.context.ended(self, well=True)


def line_of_host_program() -> int:
    """Line of the host program's statement that runs now; 0 if none does."""
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename != HOST_PROGRAM:
        frame = frame.f_back
    return frame.f_lineno if frame else 0
