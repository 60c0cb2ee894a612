"""Runtime functions behind one C interface: a name, and pointers to the arguments.

    @ral_api("ral_gemm")              registers it as "ral_gemm___gpu___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1_i1___void"
    def gemm(ctx: Call, stream: None, a: Matrix, b: Matrix, out: Matrix, ta: bool, tb: bool, is_constant: bool) -> None: ...

    Matrix = Annotated[Array, MemRef("f32", 2)]

    void ral_api_call(void *context, const char *name, void **args)          calls any of them (`serve`)

A name contains all types (`dialects/disc_ral`), so that arguments can be read from memory and results written to it: `Erased` does this for
a function of any name. A buffer has 3 + 2 rank pointers: to the allocation, to its elements, to an offset, sizes, strides; it is row-major
with offset 0. In annotations a context, a stream (None) and a text are pointers, `bool` is an i1, `int` an i64, `float` an f64; other types
are written out, `Annotated[int, "i32"]`. Functions that exist for many types are found by name, in `functions`; registered ones take
precedence.

An exception does not leave a function: it is recorded, the call's status is set, and the program returns.
Source: seed document, "RewriteRalApiPass" (TAO_RAL_API); docs/reference/4 4.2, 4.3.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import UsageError
from xla_emitters.program.ral_name import RalName
from xla_emitters.runtime.ral.context import Call
from xla_emitters.runtime.ral.functions import Function, element_name

STAGE = "ral"
BASE = 64
"""First address of the view of the memory: NumPy takes no buffer at 0."""
HEAD = 3
"""Pointers of a buffer before its sizes: allocation, elements, offset."""
_STATUS = 2 * 8
"""Offset of the status in a context, in bytes."""


@dataclass(frozen=True)
class MemRef:
    """The annotation of a buffer: HLO's name of its element type ("f32", "s32", "pred"), and its rank."""

    element: str
    rank: int

    def __str__(self) -> str:
        return f"m{self.rank}d{_code_of(self.element)}"


def _code_of(element: str) -> str:
    """The code of an element type from HLO's name: the inverse of `element_name`.

    >>> _code_of("pred"), _code_of("s32"), _code_of("u8"), _code_of("bf16")
    ('i1', 'i32', 'ui8', 'bf16')
    """
    if element == "pred":
        return "i1"
    if element[0] in "su" and element[1:].isdigit():
        return f"{'u' * (element[0] == 'u')}i{element[1:]}"
    return element


# ------------------------------------------------------------------------------------------------------------ registered

PLAIN: Mapping[Any, str] = {Call: "pvoid", type(None): "pvoid", str: "pvoid", bool: "i1", int: "i64", float: "f64"}
F = TypeVar("F", bound=Callable[..., Any])


def type_code_of(annotation: Any) -> str:
    """The code of a type in a function name. raises UsageError for a type that the runtime does not know"""
    if get_origin(annotation) is Annotated:
        for said in get_args(annotation)[1:]:
            if isinstance(said, str | MemRef):
                return str(said)
    elif annotation in PLAIN:
        return PLAIN[annotation]
    raise UsageError(
        f"a function of the runtime takes no {annotation}",
        stage=STAGE,
        help='bool, int, float, str, Annotated[int, "i32"], Annotated[Array, MemRef("f32", 2)]',
    )


def name_of(prefix: str, device: str, function: Callable[..., Any]) -> RalName:
    """The full name of a function with this prefix, from its annotations. raises UsageError like `type_code_of`"""
    hints = get_type_hints(function, include_extras=True)
    returned = hints.pop("return", type(None))
    outs = get_args(returned) if get_origin(returned) is tuple else (returned,)
    outs = () if returned is type(None) else outs
    return RalName(prefix, device, tuple(map(type_code_of, hints.values())), tuple(map(type_code_of, outs)))


class Registry:
    """Functions by full name.

    default_device  device of names in the seed's spelling, which do not name one
    """

    def __init__(self, default_device: str = "gpu") -> None:
        self._default_device = default_device
        self._functions = dict[str, Function]()

    def __call__(self, prefix: str, device: str | None = None) -> Callable[[F], F]:
        """A decorator that registers a function under `prefix` and the types of its annotations. raises UsageError like `name_of`"""

        def register(function: F) -> F:
            self._functions[str(name_of(prefix, device or self._default_device, function))] = function
            return function

        return register

    def get(self, name: RalName) -> Function | None:
        return self._functions.get(str(name))

    def parse(self, text: str) -> RalName:
        """Parses a full name, or one in the seed's spelling. raises UsageError for anything else"""
        return RalName.parse(text, self._default_device)


ral_api = Registry()
"""The functions that every program can call."""


# ------------------------------------------------------------------------------------------------------------- arguments


@cache
def memory() -> Any:
    """All memory of the process from address BASE on, as a buffer."""
    return (ctypes.c_char * (1 << 62)).from_address(BASE)


SCALARS: Mapping[str, struct.Struct] = {
    code: struct.Struct(letter)
    for code, letter in {
        **{"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q"},
        **{"ui8": "B", "ui16": "H", "ui32": "I", "ui64": "Q", "f16": "e", "f32": "f", "f64": "d"},
    }.items()
}
_WORD = struct.Struct("q")
POINTERS = ("pvoid", "ppvoid")


class Buffers(Protocol):
    """The buffers of a call, by handle: the address that the program frees a buffer by identifies its array."""

    def named(self, allocated: int) -> Array | None: ...

    def name(self, array: Array) -> int:
        """The handle of a buffer; 0 for a buffer that is never freed."""
        ...


class Erased:
    """A function with the types that its name contains.

    function  takes and returns Python values: arrays, numbers, texts
    context   whether it takes the context
    """

    def __init__(self, name: RalName, function: Function, *, context: bool = True) -> None:
        self.name = name
        self._function = function
        self._readers = [_reader(code) for code in name.ins[1:]]
        self._takes_context = context
        self._ranks = [_rank(code) for code in name.outs]
        count = sum(map(_slots, (*name.ins, *name.outs)))
        self._pointers = struct.Struct(f"{count}q")
        self._results = sum(map(_slots, name.ins))

    def values(self, buffers: Buffers, arguments: int) -> list[Any]:
        """The arguments after the context, read from the memory that `arguments` points to."""
        pointers = self._pointers.unpack_from(memory(), arguments - BASE)
        at, values, seen = 1, list[Any](), dict[Any, Array]()
        for count, read in self._readers:
            value = read(buffers, pointers, at)
            if isinstance(value, np.ndarray):
                # The same buffer gives the same array object, as in a host program in Python.
                (aligned,) = _WORD.unpack_from(memory(), pointers[at + 1] - BASE)
                array = cast(Array, value)
                value = seen.setdefault((aligned, array.shape, array.dtype), array)
            values.append(value)
            at += count
        return values

    def __call__(self, context: Call, buffers: Buffers, arguments: int, values: Sequence[Any]) -> None:
        """Calls the function, and writes its results to memory. raises like the function"""
        returned = self._function(context, *values) if self._takes_context else self._function(*values)
        if not self._ranks:
            return
        pointers = self._pointers.unpack_from(memory(), arguments - BASE)[self._results :]
        results = cast("tuple[Any, ...]", returned) if len(self._ranks) > 1 else (returned,)
        for code, rank, value in zip(self.name.outs, self._ranks, results, strict=True):
            if rank is None:
                SCALARS[code].pack_into(memory(), pointers[0] - BASE, value)
                pointers = pointers[1:]
                continue
            array = cast(Array, value)
            strides = [stride // array.itemsize for stride in array.strides]
            parts = (buffers.name(array), array.ctypes.data, 0, *array.shape, *strides)
            for pointer, part in zip(pointers, parts, strict=False):
                _WORD.pack_into(memory(), pointer - BASE, part)
            pointers = pointers[len(parts) :]


def _rank(code: str) -> int | None:
    """The rank of a buffer type; None for another type."""
    return int(code[1 : code.index("d")]) if code[0] == "m" else None


def _slots(code: str) -> int:
    rank = _rank(code)
    return 1 if rank is None else HEAD + 2 * rank


Reader = Callable[[Buffers, Sequence[int], int], Any]
"""(buffers, pointers to slots, index of the first) -> the value"""


def _reader(code: str) -> tuple[int, Reader]:
    """How many slots an argument of that type has, and the function that reads it. raises UsageError for a type that the runtime lacks"""
    if (rank := _rank(code)) is not None:
        return _slots(code), _array_reader(rank, dtype(element_name(code)).numpy)
    if code in POINTERS:
        return 1, _text
    if code in SCALARS:
        unpack = SCALARS[code].unpack_from
        return 1, lambda _, pointers, at: unpack(memory(), pointers[at] - BASE)[0]
    held = dtype(element_name(code)).numpy
    return 1, lambda _, pointers, at: np.ndarray((), held, memory(), pointers[at] - BASE)[()]


def _text(_: Buffers, pointers: Sequence[int], at: int) -> Any:
    """A text, or a tuple if it lists numbers; None for a stream."""
    (address,) = _WORD.unpack_from(memory(), pointers[at] - BASE)
    if not address:
        return None
    text = ctypes.string_at(address).decode()
    return tuple(int(number) for number in text[1:-1].split(",")) if text[:1] == "[" else text


def _array_reader(rank: int, held: np.dtype[Any]) -> Reader:
    word = _WORD.unpack_from

    def read(buffers: Buffers, pointers: Sequence[int], at: int) -> Array:
        view = memory()
        (allocated,) = word(view, pointers[at] - BASE)
        if allocated and (known := buffers.named(allocated)) is not None and known.ndim == rank:
            return known
        (aligned,) = word(view, pointers[at + 1] - BASE)
        sizes = tuple(word(view, pointers[at + HEAD + dim] - BASE)[0] for dim in range(rank))
        return np.ndarray(sizes, held, view, aligned - BASE) if aligned else np.empty(sizes, held)

    return read


# ----------------------------------------------------------------------------------------------------------------- calls


class Served(Protocol):
    """A running program: finds functions by name, and records the first error."""

    def serve(self, name: bytes, arguments: int) -> None: ...

    def fail(self, error: BaseException) -> None: ...


RUNNING = dict[int, Served]()
"""Address of a context -> the call that it belongs to, while the call runs."""


@cache
def serve() -> Any:
    """`ral_api_call` as a C function. If a function fails, the status of the context is set."""

    def call(context: int, name: bytes, arguments: int) -> None:
        running = RUNNING[context]
        try:
            running.serve(name, arguments)
        except BaseException as error:  # an exception cannot leave a C callback
            running.fail(error)
            _WORD.pack_into(memory(), context + _STATUS - BASE, 1)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(call)
