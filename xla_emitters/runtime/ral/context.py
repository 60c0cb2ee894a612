"""What a loaded program keeps, and what one call of it keeps.

    context = Context()                      lifetime of the program: counters, the first error
    call = Call(context, [x])                lifetime of one call: inputs, outputs, buffers
    y = call.alloc((2, 3), float32)          a buffer of one reference
    v = call.inc_ref(y, (6,))                a second name of it: two references
    call.dealloc(v)                          one reference
    call.send_output(0, y)

A buffer is a NumPy array. Arguments and constants are not counted: they are never freed. A call that ends has no buffer left except
its outputs; one that fails drops all, so that the context can be used again.
Source: docs/reference/4 4.1; BladeDISC's runtime abstraction layer (https://github.com/alibaba/BladeDISC).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, InternalError
from xla_emitters.runtime.arrays import memory_bytes

STAGE = "run"


@dataclass
class Counters:
    """What was done since the program was loaded.

    runs         calls that ended well
    allocations  buffers made
    live         buffers that are there now
    peak_bytes   the most that buffers of one call took at once
    """

    runs: int = 0
    allocations: int = 0
    live: int = 0
    peak_bytes: int = 0


class Context:
    """What a loaded program keeps."""

    def __init__(self) -> None:
        self.counters = Counters()


@dataclass(slots=True)
class _Memory:
    """What the names of a buffer share.

    bytes       its size
    references  how many names it has
    is_counted  whether the call made it: not an argument or a constant
    """

    bytes: int
    is_counted: bool = True
    references: int = 1


class Call:
    """What one call of a program keeps.

    inputs   arrays in C order, in the machine's byte order, of the right types
    stream   the order of what a device does: on the CPU there is none to say
    """

    def __init__(self, context: Context, inputs: Sequence[Array]) -> None:
        self.context = context
        self.inputs = inputs
        self.outputs = dict[int, Array]()
        self.stream = None
        self._names = dict[int, tuple[Array, _Memory]]()
        self._bytes = 0

    # --------------------------------------------------------------------------------------------- inputs and outputs

    def recv_input(self, number: int) -> Array:
        """The argument of that number."""
        return self.inputs[number]

    def send_output(self, number: int, buffer: Array) -> None:
        """Makes `buffer` the result of that number; its reference goes to the caller."""
        self.release(buffer)
        self.outputs[number] = buffer

    # -------------------------------------------------------------------------------------------------------- buffers

    def alloc(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A buffer with one reference, elements unset. raises DataError for a negative size, and where memory is too small."""
        try:
            buffer = np.empty(shape, dtype)
        except (ValueError, MemoryError) as error:
            raise self._no_buffer(shape, dtype) from error
        self._names[id(buffer)] = buffer, _Memory(buffer.nbytes)
        self._bytes += buffer.nbytes
        counters = self.context.counters
        counters.allocations += 1
        counters.live += 1
        if self._bytes > counters.peak_bytes:
            counters.peak_bytes = self._bytes
        return buffer

    def _no_buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DataError:
        if any(size < 0 for size in shape):
            return DataError(f"a size of {list(shape)} is negative", stage=STAGE)
        wanted = prod(shape) * dtype.itemsize
        return DataError(
            f"out of memory: a buffer of {list(shape)} {dtype.name} takes {wanted} bytes; there are {memory_bytes()} in all",
            stage=STAGE,
        )

    def inc_ref(self, buffer: Array, shape: tuple[int, ...]) -> Array:
        """A second name of a buffer, in another shape, with a reference of its own.

        The memory of an argument or a constant is not counted: its names can be freed, it cannot.
        raises DataError where the shape has another number of elements
        """
        if prod(shape) != buffer.size or any(size < 0 for size in shape):
            raise DataError(f"no reshape of {list(buffer.shape)} to {list(shape)}: the elements differ", stage=STAGE)
        view = buffer.reshape(shape)
        known = self._names.get(id(buffer))
        memory = _Memory(0, is_counted=False) if known is None else known[1]
        memory.references += known is not None
        self._names[id(view)] = view, memory
        return view

    def dealloc(self, buffer: Array) -> None:
        """Ends a name of a buffer; the last one frees it. raises InternalError for what is no buffer of this call."""
        known = self._names.pop(id(buffer), None)
        if known is None:
            raise InternalError("a buffer is freed that the call does not own", stage=STAGE)
        self._drop(known[1])

    def _drop(self, memory: _Memory) -> None:
        memory.references -= 1
        if not memory.references:
            self._bytes -= memory.bytes
            self.context.counters.live -= memory.is_counted

    def release(self, buffer: Array) -> None:
        """Gives the last reference to the caller. raises InternalError for what is no buffer of this call, or is shared."""
        known = self._names.get(id(buffer))
        if known is None or known[1].references != 1 or not known[1].is_counted:
            raise InternalError("a result is not a buffer of its own", stage=STAGE)
        self.dealloc(buffer)

    def drop_all(self) -> None:
        """Frees every buffer: the call failed."""
        for memory in {id(memory): memory for _, memory in self._names.values()}.values():
            self.context.counters.live -= memory.is_counted
        self._names.clear()

    def end(self) -> None:
        """raises InternalError where a buffer is left."""
        if self._names:
            left = [buffer.shape for buffer, _ in self._names.values()]
            self.drop_all()
            raise InternalError(f"{len(left)} buffers were not freed, the first of {list(left[0])}", stage=STAGE)
        self.context.counters.runs += 1
