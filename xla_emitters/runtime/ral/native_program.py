"""A host program as machine code that calls the runtime by name: a function of arrays.

    program = NativeProgram(code, interface, ops, constants, kernels)
    program.run([x])      -> [y]

Each run has a C context, identified by its address, with everything that `ral_api_call`, the status and direct calls
(`disc-direct-calls`) use: pointers and sizes of arguments and results, constants, buffers. A program with a log calls the runtime for every
op. Then buffers are NumPy arrays that a `Call` counts, and numbers are their handles where C has a pointer that frees a buffer.

The first error in a function ends the run and is raised here. A result owns its memory, and frees it with its last view.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import InternalError
from xla_emitters.memory_limit import memory_limit
from xla_emitters.runtime.ral.api import RUNNING, Erased, Registry, ral_api, serve
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import STAGE, Call, Context
from xla_emitters.runtime.ral.dispatch_log import DispatchLog
from xla_emitters.runtime.ral.functions import function_named
from xla_emitters.runtime.ral.host_kernels import ALIGNMENT, SHARED_WORK
from xla_emitters.runtime.ral.kernels import Kernels
from xla_emitters.runtime.reference import call_beside

MAIN, FREE, DROP = "ral_main", "ral_free", "ral_drop"
"""Functions of the machine code: the host program; the one that frees a result; the one that frees all buffers of a call."""
RECEIVE, SEND, CONSTANT = "ral_recv_input", "ral_send_output", "ral_const"
FIELDS = 12
"""Number of words of a context; `host/call_context` describes them."""
WORD = 8
POOL = 16
"""Most contexts of ended runs that are kept for reuse."""


class Code(Protocol):
    """Machine code in this process."""

    def address(self, name: str) -> int:
        """The address of a function."""
        ...


@dataclass(frozen=True)
class Interface:
    """The parameters and results of a host program.

    inputs     ranks of the arguments; 0 for arguments that it does not read
    donated    indices of the arguments that it owns: it works on copies
    outputs    element type and rank of each result
    constants  number of its constants
    """

    inputs: tuple[int, ...]
    donated: frozenset[int]
    outputs: tuple[tuple[str, int], ...]
    constants: int


class NativeProgram:
    """A host program with a context of its own.

    code       has the functions MAIN, FREE and DROP
    ops        name of an op on buffers -> the op
    constants  read by `ral_const`
    kernels    launched where threads share the work; None if there are none
    log        records each call of the runtime, for code without direct calls; None: the code has direct calls
    """

    def __init__(
        self,
        code: Code,
        interface: Interface,
        ops: Mapping[str, BufferOp],
        constants: Constants,
        kernels: Kernels | None = None,
        log: DispatchLog | None = None,
        registry: Registry = ral_api,
    ) -> None:
        self._code = code  # keeps the code in memory
        self._main: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address(MAIN))
        self._drop: Callable[[int], None] = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address(DROP))
        self.free: Callable[[int], None] = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address(FREE))
        self._ops = ops
        self._constants = constants
        self._registry = registry
        self._functions = dict[bytes, Erased]()
        self.kernels = kernels
        self.log = log
        self.layout = _Layout(interface)
        self.table = (ctypes.c_void_p * max(1, interface.constants))()
        self.kept = dict[int, Array]()
        self._pool = list[_Words]()
        self.context = Context(kernels)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The results for these arguments, which fit the program's parameters. raises like the runtime's functions"""
        words = self._pool.pop() if self._pool else _Words(self.layout, ctypes.addressof(self.table))
        running = _Running(self, inputs, words)
        RUNNING[words.address] = running
        try:
            held = words.begin(inputs)
            self._main(words.address)
            del held
            if running.error is not None:
                raise running.error
            results = running.sent() if self.log is not None else words.results(self.free)
            if words.has_buffers:
                raise InternalError("a buffer was not freed", stage=STAGE)
            running.is_well = True
            return results
        finally:
            del RUNNING[words.address]
            running.end()
            if not running.is_well:
                self._drop(words.address)
                words.drop_results(self.free)
            self.context.count(*running.counted(words), runs=int(running.is_well))
            words.end()
            if len(self._pool) < POOL:
                self._pool.append(words)

    def function(self, text: bytes) -> Erased:
        """The function of that name. raises as `function_named`"""
        if (found := self._functions.get(text)) is None:
            found = self._functions[text] = self._made(text.decode())
        return found

    def note(self, called: Erased, values: Sequence[Any]) -> None:
        """Records a call, if there is a log."""
        if self.log is not None and called.name.call not in (RECEIVE, SEND):
            self.log.add(called.name.call if called.name.call in self._ops else str(called.name), values)

    def _made(self, text: str) -> Erased:
        name = self._registry.parse(text)
        if (op := self._ops.get(name.call)) is not None:
            return Erased(name, function_of(op, call_beside(op), self.kernels), context=False)
        match name.call:
            case "ral_recv_input":
                return Erased(name, self._received)
            case "ral_send_output":
                return Erased(name, Call.send_output)
            case "ral_const":
                return Erased(name, self._constant(function_named(text, self._constants)))
            case _:
                return Erased(name, self._registry.get(name) or function_named(text, self._constants))

    def _received(self, ctx: Call, number: int) -> Array:
        """An argument; if it was donated, a copy that the call owns."""
        given = ctx.recv_input(number)
        if number not in self.layout.donated:
            return given
        copy = ctx.alloc(given.shape, given.dtype)
        copy[...] = given
        return copy

    def _constant(self, function: Callable[..., Array]) -> Callable[..., Array]:
        """`function`, which also stores the constant where the program finds it without a call."""

        def run(ctx: Call, stream: None, index: int, name: str) -> Array:
            if index not in self.kept:
                self.kept[index] = _aligned(function(ctx, stream, index, name))
                self.table[index] = self.kept[index].ctypes.data
            return self.kept[index]

        return run


def _aligned(array: Array) -> Array:
    """The array, or a copy, at an address that kernels take."""
    if array.ctypes.data % 16 == 0:
        return array
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    made = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


class _Layout:
    """Offsets in the memory of a context: of its fields; of a pointer for each argument and result; of a pointer and sizes for each."""

    def __init__(self, interface: Interface) -> None:
        self.ranks, self.donated = interface.inputs, interface.donated
        at = FIELDS
        self.inputs, at = at, at + len(self.ranks)
        self.outputs, at = at, at + len(interface.outputs)
        self.places = list[int]()
        for rank in (*self.ranks, *(rank for _, rank in interface.outputs)):
            self.places.append(at)
            at += 1 + rank
        self.words = at
        self.given = struct.Struct(f"{sum(1 + rank for rank in self.ranks)}q")
        self.taken = struct.Struct(f"{sum(1 + rank for _, rank in interface.outputs)}q")
        self.given_at = WORD * (self.inputs + len(self.places))
        self.taken_at = self.given_at + self.given.size
        self.results = [(dtype(name).numpy, rank) for name, rank in interface.outputs]


class _Words:
    """The memory of one context."""

    def __init__(self, layout: _Layout, table: int) -> None:
        self._layout = layout
        self._words = (ctypes.c_int64 * layout.words)()
        self.address = ctypes.addressof(self._words)
        for number, place in enumerate(layout.places):
            self._words[FIELDS + number] = self.address + WORD * place
        self._words[1] = ctypes.cast(serve(), ctypes.c_void_p).value or 0
        self._words[3] = self.address + WORD * layout.inputs
        self._words[4] = self.address + WORD * layout.outputs
        self._words[5] = table
        self._words[6] = SHARED_WORK

    def begin(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Writes pointers and sizes of the arguments. Returns the objects that must be kept alive until the run ends"""
        held, words = list[Array](), list[int]()
        self._words[11] = memory_limit()
        for array, rank in zip(inputs, self._layout.ranks, strict=False):  # trailing arguments may be unread
            address = array.ctypes.data
            if address % 16:
                array = _aligned(array)
                address = array.ctypes.data
                held.append(array)
            words.append(address)
            words += array.shape[:rank]
        self._layout.given.pack_into(self._words, self._layout.given_at, *words)
        return held

    def results(self, free: Callable[[int], None]) -> list[Array]:
        """The arrays that the program allocated; each frees its memory with `free`."""
        words, at, found = self._layout.taken.unpack_from(self._words, self._layout.taken_at), 0, list[Array]()
        for held, rank in self._layout.results:
            given = _Given(words[at], words[at + 1 : at + 1 + rank], held, free)
            self._words[self._layout.taken_at // WORD + at] = 0  # so that a later failure does not free it twice
            found.append(given.array())
            at += 1 + rank
        return found

    def drop_results(self, free: Callable[[int], None]) -> None:
        """Frees the results that a program returned before it failed."""
        at = self._layout.taken_at // WORD
        for _, rank in self._layout.results:
            if self._words[at]:
                free(self._words[at])
            at += 1 + rank

    def launches_directly(self, directly: bool) -> None:
        """Whether small launches call the kernels directly; else the runtime launches all of them, and records their times for `Heat`."""
        self._words[6] = SHARED_WORK if directly else 0

    @property
    def has_buffers(self) -> bool:
        return self._words[7] != 0

    @property
    def allocations(self) -> int:
        return self._words[8]

    @property
    def bytes(self) -> int:
        return self._words[9]

    @property
    def peak_bytes(self) -> int:
        return self._words[10]

    def end(self) -> None:
        """Resets it for another run."""
        words = self._words
        words[6] = SHARED_WORK
        words[2] = words[8] = words[9] = words[10] = 0
        at = self._layout.taken_at // WORD
        for _, rank in self._layout.results:
            words[at] = 0
            at += 1 + rank


class _Given:
    """The memory of a result, in the form of NumPy's array interface."""

    __slots__ = ("__array_interface__", "_data", "_dtype", "_free")

    def __init__(self, data: int, shape: tuple[int, ...], held: np.dtype[Any], free: Callable[[int], None]) -> None:
        self._data, self._dtype, self._free = data, held, free
        # The array interface has no names for the types of ml_dtypes.
        name = held.str if held.isbuiltin == 1 else f"|V{held.itemsize}"
        self.__array_interface__ = {"data": (data, False), "shape": shape, "typestr": name, "version": 3}

    def array(self) -> Array:
        made = np.asarray(self)
        return made if made.dtype == self._dtype else made.view(self._dtype)

    def __del__(self) -> None:
        self._free(self._data)


class _Running:
    """One run: the objects that its functions need, made at the first call of a function, and its first error."""

    def __init__(self, program: NativeProgram, inputs: Sequence[Array], words: _Words) -> None:
        self.program, self.inputs, self._words = program, inputs, words
        self.error: BaseException | None = None
        self.is_well = False
        self._call: Call | None = None
        self._quiet = np.errstate(all="ignore")
        self._buffers = dict[int, Array]()

    def serve(self, name: bytes, arguments: int) -> None:
        function = self.program.function(name)
        if self._call is None:
            self._call = Call(Context(self.program.kernels, self.program.context.heat), self.inputs)
            self._quiet.__enter__()
        if self.program.log is None:
            self._call.count_bytes(self._words.bytes)
        values = function.values(self, arguments)
        self.program.note(function, values)
        function(self._call, self, arguments, values)
        if self._call.context.heat is not None:
            self._words.launches_directly(not self._call.is_watched)

    def fail(self, error: BaseException) -> None:
        self.error = self.error or error

    def end(self) -> None:
        """Restores the caller's settings of NumPy."""
        if self._call is not None:
            self._quiet.__exit__(None, None, None)
            if self.is_well:
                self._call.end_watch()

    def named(self, allocated: int) -> Array | None:
        return self._buffers.get(allocated)

    def name(self, array: Array) -> int:
        if self.program.log is None or self._call is None or not self._call.owns(array):
            return 0
        self._buffers[id(array)] = array
        return id(array)

    def sent(self) -> list[Array]:
        """Results that were passed to calls of the runtime. raises InternalError if a buffer was not freed"""
        if self._call is None:
            return []
        self._call.end()
        return [self._call.outputs[number] for number in range(len(self._call.outputs))]

    def counted(self, words: _Words) -> tuple[int, int]:
        """How many buffers the run allocated, and their peak in bytes."""
        of = words if self.program.log is None or self._call is None else self._call
        return of.allocations, of.peak_bytes
