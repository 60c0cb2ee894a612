"""Arrays at the boundary: the caller's logical arrays, random inputs, and `.npz` files.

A caller's array is logical and row-major, whatever the HLO layout says (`layouts`). Types that NumPy lacks are `ml_dtypes`; sub-byte types
take one byte an element here (see `packing`).

In a file, `p0, p1, ...` are inputs by parameter number and `r0, r1, ...` results; a type that NumPy lacks is stored as its bit pattern
(`uint8` or `uint16`, one sub-byte element per byte) beside a key `p0.dtype` that names it in HLO's spelling. Nothing is ever unpickled.
Source: docs/reference/contracts "Arrays" and "Arrays on disk".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from xla_emitters.dtypes import Array, DType, Kind, dtype
from xla_emitters.errors import DataError
from xla_emitters.library.arguments import NUMPY_TYPES, element_name
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.draws import Places, draw
from xla_emitters.runtime.layouts import to_buffer
from xla_emitters.runtime.npz import Archive, Header, opened
from xla_emitters.runtime.walk import ARGUMENT_ALIGNMENT
from xla_emitters.support.limits import refuse_beyond_limit

LONGEST_DTYPE_NAME = 4 * 32
"""Size in bytes of a member `p0.dtype`: 32 characters."""


_ORDER = {Kind.PRED: 0, Kind.SIGNED: 1, Kind.UNSIGNED: 1, Kind.FLOAT: 2, Kind.COMPLEX: 3}
"""The kinds of numbers, each of which holds those before it."""


def host_array(value: Any, name: str, what: str) -> Array:
    """An argument in the host's memory as an array in the machine's byte order. A number of Python's gets the parameter's type `name`, if
    that holds it, as in JAX.

    value   an array of NumPy's or of a library with DLPack, or what NumPy takes as one
    name    HLO's; "" where there is no such parameter
    what    the words for it in messages
    raises  DataError for nested sequences that are no array, and for a masked array, as in JAX: its mask would be lost

    >>> host_array(2, "f32", "x").dtype.name, host_array(2.5, "s32", "x").dtype.name, host_array(300, "s8", "x").dtype.name
    ('float32', 'float64', 'int64')
    """
    if type(value) is np.ndarray and value.dtype.isnative:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise DataError(
            f"{what} is a masked array", stage="arrays", help="array.filled(number) has a number for masked elements"
        )
    if isinstance(value, np.ndarray):
        array = cast(Array, value)
        return np.asarray(array, array.dtype.newbyteorder("="))
    is_typed = bool(name) and isinstance(value, bool | int | float | complex) and _holds(dtype(name), value)
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(cast(Any, value))
        return np.asarray(value, dtype(name).numpy if is_typed else None)
    except (ValueError, OverflowError, BufferError, RuntimeError) as error:
        raise DataError(f"{what} is no array: {error}", stage="arrays") from error


def _holds(row: DType, number: complex) -> bool:
    """Whether a type has numbers of a Python number's kind, and of integers this one."""
    own = 0 if isinstance(number, bool) else 1 if isinstance(number, int) else 2 if isinstance(number, float) else 3
    if row.is_integer and isinstance(number, int):
        is_signed, bits = row.kind is Kind.SIGNED, row.significant_bits
        return -(1 << bits - 1) <= number < 1 << bits - 1 if is_signed else 0 <= number < 1 << bits
    return own <= _ORDER[row.kind]


def checked(value: Any, spec: ArraySpec, what: str) -> Array:
    """An argument as `host_array` gives it, of the shape and type of `spec`.

    raises DataError as `host_array`, and for another shape or type, which it names with `what` and the wanted one
    """
    array = host_array(value, spec.dtype, what)
    check_fits(array.dtype, array.shape, spec, what)
    return array


def check_fits(found: np.dtype[Any], shape: tuple[int, ...], spec: ArraySpec, what: str) -> None:
    """raises DataError if an array of type `found` and shape `shape` does not match `spec`; `what` names it in the message."""
    wanted = dtype(spec.dtype).numpy
    if found != wanted:
        raise DataError(f"{what} is {found}, but {spec} is expected ({wanted})", stage="arrays")
    if shape != spec.shape:
        raise DataError(f"{what} has shape {list(shape)}, but {spec} is expected", stage="arrays")


def writable_buffer(array: Array, spec: ArraySpec) -> Array:
    """As `to_buffer`, but a copy if the array's memory is not writable (a broadcast, for example)."""
    return np.require(to_buffer(array, spec), requirements="W")


def copy_donated(arrays: list[Array], donated: Iterable[int], *, donate: bool) -> None:
    """Replaces arrays that a run writes to by copies: all, or if `donate`, those whose memory it cannot take.

    donated  their numbers
    """
    for number in donated:
        array, others = arrays[number], [*arrays[:number], *arrays[number + 1 :]]
        is_placed = array.ctypes.data % ARGUMENT_ALIGNMENT == 0
        is_free = donate and is_placed and array.flags.writeable
        if not is_free or any(np.may_share_memory(array, other) for other in others):
            arrays[number] = array.copy()


def random_arrays(specs: Sequence[ArraySpec], seed: int) -> list[Array]:
    """One random array per spec (see `draws`); each has its own stream, so that adding a parameter does not change the others."""
    return [random_array(spec, seed, number) for number, spec in enumerate(specs)]


def random_array(spec: ArraySpec, seed: int, number: int, places: Places | None = None) -> Array:
    """The random array for parameter `number`; `places`: where a scatter may write. raises DataError where it is too large."""
    row = dtype(spec.dtype)
    refuse_beyond_memory(spec.shape, row, f"parameter {number}")
    return draw(row.kind.value, row.significant_bits, row.numpy, spec.shape, seed=seed, number=number, places=places)


def refuse_beyond_memory(shape: Sequence[int], element: DType, what: str) -> None:
    """raises DataError for an array that is larger than the limit on memory."""
    refuse_beyond_limit(shape, element.numpy.itemsize, element.name, what)


def bit_pattern(array: Array) -> Array:
    """The array as unsigned integers of its item size: what NumPy can store and compare for any type."""
    return np.ascontiguousarray(array).view(np.dtype(f"u{array.dtype.itemsize}")).reshape(array.shape)


def same_bits(one: Array, two: Array) -> bool:
    """Equal bit by bit, any NaN being equal to any NaN."""
    return not bool(differing(one, two).any())


def differing(one: Array, two: Array) -> Array:
    """Mask of the elements in which two arrays of one type differ in value or in the sign of a zero; any NaN equals any NaN."""
    if one is two:
        return np.zeros(one.shape, np.bool_)
    if one.dtype.kind == "c":
        return differing(np.real(one), np.real(two)) | differing(np.imag(one), np.imag(two))
    if one.dtype.itemsize > 8:
        raise TypeError(f"no bit pattern for {one.dtype}")
    different = np.asarray(bit_pattern(one) != bit_pattern(two)).reshape(one.shape)
    if different.any() and "float" in one.dtype.name:
        with np.errstate(invalid="ignore"):  # ml_dtypes raises it for some patterns
            different &= ~(np.isnan(one) & np.isnan(two))
    return different


def save_arrays(path: str | Path | IO[bytes], prefix: str, arrays: Sequence[Array], specs: Sequence[ArraySpec]) -> None:
    """Writes `prefix`0, `prefix`1, ... as `save_named` does."""
    save_named(path, [f"{prefix}{number}" for number in range(len(specs))], arrays, specs)


def save_named(
    path: str | Path | IO[bytes], names: Sequence[str], arrays: Sequence[Array], specs: Sequence[ArraySpec]
) -> None:
    """Writes arrays by name to an uncompressed `.npz`, a file or a stream. raises OSError where the file cannot be written."""
    entries: dict[str, Array] = {}
    for name, array, spec in zip(names, arrays, specs, strict=True):
        native = dtype(spec.dtype).numpy.kind in "biufc" and dtype(spec.dtype).numpy.isbuiltin == 1
        entries[name] = array if native else bit_pattern(array)
        if not native:
            entries[f"{name}.dtype"] = np.array(spec.dtype)
    with Path(path).open("wb") if isinstance(path, str | Path) else nullcontext(path) as stream:
        np.savez(stream, allow_pickle=False, **entries)


class StandardInput(BytesIO):
    """The bytes read from standard input, used in place of a file; messages name it "standard input"."""

    def __str__(self) -> str:
        return "standard input"


def load_arrays(path: str | Path | StandardInput, prefix: str, specs: Sequence[ArraySpec]) -> list[Array]:
    """Reads `prefix`0, `prefix`1, ... as `load_named` does."""
    return load_named(path, [f"{prefix}{number}" for number in range(len(specs))], specs)


def load_named(path: str | Path | StandardInput, keys: Sequence[str], specs: Sequence[ArraySpec]) -> list[Array]:
    """Reads what `save_named` writes and checks it against `specs`.

    Types and shapes of all arrays are compared before the data of any is unpacked.
    raises DataError naming the key for a missing key, a pickled object, a wrong type or shape, and for damaged data; for a file that is no
    `.npz`; OSError for one that cannot be opened.
    """
    with opened(path) as archive:
        headers = [_checked_header(archive, key, spec) for key, spec in zip(keys, specs, strict=True)]
        return [
            _native(archive.data(key, header)).view(dtype(spec.dtype).numpy)
            for key, header, spec in zip(keys, headers, specs, strict=True)
        ]


def _native(array: Array) -> Array:
    """The array in the machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def load_given(path: str | Path | StandardInput, prefix: str, numbers: Iterable[int]) -> list[Array]:
    """Reads the arrays of those numbers, of any types and shapes, as `save_arrays` writes them.

    raises as `load_arrays`, except for types and shapes
    """
    with opened(path) as archive:
        return [_given(archive, f"{prefix}{number}") for number in numbers]


def load_matching(path: str | Path | StandardInput, pattern: str) -> dict[str, Array]:
    """Reads the arrays with a name that the regular expression matches as a whole. raises as `load_given`"""
    with opened(path) as archive:
        return {key: _given(archive, key) for key in archive.keys if re.fullmatch(pattern, key)}


def _given(archive: Archive, key: str) -> Array:
    if key not in archive.members:
        present = ", ".join(archive.keys)
        raise DataError(f"{archive.path} has no '{key}'; it has: {present}", stage="arrays")
    header, what = archive.header(key), f"'{key}' in {archive.path}"
    is_pattern = f"{key}.dtype" in archive.members
    name = _dtype_name(archive, f"{key}.dtype") if is_pattern else element_name(header.dtype)
    if name not in NUMPY_TYPES:
        raise DataError(f"{what} is {name}, which is not a type of HLO", stage="arrays")
    wanted = dtype(name).numpy
    if is_pattern and header.dtype.newbyteorder("=") != (pattern := np.dtype(f"u{wanted.itemsize}")):
        raise DataError(f"{what} holds {header.dtype}, but the bit pattern of {name} is {pattern}", stage="arrays")
    archive.check_size(key, header)
    refuse_beyond_memory(header.shape, dtype(name), what)
    data = archive.data(key, header)
    return _native(data).view(wanted) if is_pattern else data.astype(wanted, copy=False)


def _checked_header(archive: Archive, key: str, spec: ArraySpec) -> Header:
    """The header of `key`, read without its data. raises DataError if the key is missing or its type or shape is not that of `spec`."""
    if key not in archive.members:
        present = ", ".join(archive.keys)
        raise DataError(f"{archive.path} has no '{key}' for {spec}; it has: {present}", stage="arrays")
    what, header, wanted = f"'{key}' in {archive.path}", archive.header(key), dtype(spec.dtype).numpy
    stored, given = wanted, header.dtype.newbyteorder("=")
    if f"{key}.dtype" in archive.members:
        named = _dtype_name(archive, f"{key}.dtype")
        if named != spec.dtype:
            raise DataError(f"{what} is {named}, but {spec} is expected", stage="arrays")
        stored = np.dtype(f"u{wanted.itemsize}")
        if given != stored:
            raise DataError(f"{what} holds {header.dtype}, but the bit pattern of {named} is {stored}", stage="arrays")
    elif header.dtype.kind == "V" and header.dtype.names is None:
        bits = f"u{header.dtype.itemsize}"
        raise DataError(
            f"{what} is {header.dtype}: a file of NumPy keeps no type that NumPy lacks; {spec} is expected",
            stage="arrays",
            help=f'np.savez(path, **{{"{key}": x.view("{bits}"), "{key}.dtype": "{spec.dtype}"}})',
        )
    check_fits(wanted if given == stored else given, header.shape, spec, what)
    archive.check_size(key, header)
    refuse_beyond_memory(spec.shape, dtype(spec.dtype), what)
    return header


def _dtype_name(archive: Archive, key: str) -> str:
    """The text in the member `key`, which names a type. raises DataError if the member is not a short text."""
    header = archive.header(key)
    if header.dtype.kind != "U" or header.shape or header.data_size > LONGEST_DTYPE_NAME:
        raise DataError(
            f"'{key}' in {archive.path} is {header.dtype}{list(header.shape)}, but the name of a type is expected",
            stage="arrays",
        )
    return str(archive.data(key, header))
