"""Arguments of a library function; conversion of narrow types to types that NumPy and CuPy compute in, and back.

    f16 bf16 f8*     ->  wide: float32                             ->  rounded once to the result's type
    s4 u4 pred       ->  wide: int8, uint8
    f32 f64 c64 ...  ->  as they are

On the CPU an array of bf16 has the type `ml_dtypes.bfloat16`. CuPy has no such types: there the array holds bit patterns (`uint16` for
bf16, `uint8` for an 8-bit float, an element a byte), so the types of operands are named beside them, in a configuration's `types`.
Only NumPy and ml_dtypes are imported: this file runs in unpacked bundles.

An array object holds the address of its elements at the offset that NumPy's C interface promises (PyArrayObject_fields.data, the
first field after the object's head).
Source: docs/reference/contracts "Arrays"; ml_dtypes; https://numpy.org/doc/stable/reference/c-api/types-and-structures.html.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from xla_emitters.errors import DataError, InternalError, Unsupported
from xla_emitters.support.late_dataclass import dataclass

Array: TypeAlias = npt.NDArray[Any]
"""An array of NumPy, or of CuPy, which has the same methods."""

Result: TypeAlias = tuple[str, tuple[int, ...]]
"""(HLO's name of an element type, shape)."""

OnElements: TypeAlias = Callable[[str, Sequence[Array]], Array]
"""(HLO text of a computation of scalars, arrays of one shape) -> its value for each element."""

_IN_NUMPY = {
    "pred": np.bool_,
    **{f"{kind[0]}{bits}": f"{kind}{bits}" for kind, bits in (("float", 16), ("float", 32), ("float", 64))},
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "c64": np.complex64,
    "c128": np.complex128,
}
_IN_ML_DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3": ml_dtypes.float8_e4m3,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e3m4": ml_dtypes.float8_e3m4,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
    "f6e3m2fn": ml_dtypes.float6_e3m2fn,
    "f6e2m3fn": ml_dtypes.float6_e2m3fn,
    "s1": ml_dtypes.int1,
    "s2": ml_dtypes.int2,
    "s4": ml_dtypes.int4,
    "u1": ml_dtypes.uint1,
    "u2": ml_dtypes.uint2,
    "u4": ml_dtypes.uint4,
}
NUMPY_TYPES: dict[str, np.dtype[Any]] = {name: np.dtype(kind) for name, kind in (_IN_NUMPY | _IN_ML_DTYPES).items()}
"""The type of a NumPy array that holds an HLO element type."""


def numpy_type(name: str) -> np.dtype[Any]:
    """raises Unsupported for a type that no array holds."""
    if name not in NUMPY_TYPES:
        raise Unsupported(f"no array holds element type '{name}'", stage="library", help=", ".join(NUMPY_TYPES))
    return NUMPY_TYPES[name]


_DATA = object.__basicsize__
"""The offset of the address of the elements in an array object."""


def pointer(array: object) -> int:
    """The address of a NumPy array's elements: the first field behind the head of an array object."""
    return ctypes.c_size_t.from_address(id(array) + _DATA).value


LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
"""Element types that BLAS and LAPACK compute with -> their letter."""
_NAMES = {kind: name for name, kind in reversed(NUMPY_TYPES.items())}


def element_name(found: np.dtype[Any]) -> str:
    """HLO's name of a NumPy type, in either byte order; NumPy's own name for a type that HLO lacks."""
    if (name := _NAMES.get(found)) is not None:
        return name
    native = found.newbyteorder("=")
    return _NAMES.get(native, native.name)


@dataclass(frozen=True)
class LibraryArguments:
    """One call of a library function.

    config       the call's configuration: plain data; `types` names the operands' element types
    operands     logical, row-major arrays
    results      types and shapes of the results
    xp           numpy or cupy: the module of the operands
    on_elements  evaluates a computation of scalars; None if the caller cannot
    into         arrays that a function may write its results to, and return; None if there are none
    """

    config: Mapping[str, Any]
    operands: Sequence[Array]
    results: Sequence[Result]
    xp: Any = np
    on_elements: OnElements | None = None
    into: Sequence[Array] | None = None

    @property
    def types(self) -> Sequence[str]:
        """The operands' element types."""
        return self.config["types"]

    @property
    def on_gpu(self) -> bool:
        return self.xp is not np

    def wide(self, operand: int) -> Array:
        """An operand in a type that NumPy computes in (see `widened`)."""
        return widened(self.operands[operand], self.types[operand], self.xp)

    def result(self, number: int, value: Array) -> Array:
        """`value` as result `number`: rounded once, wrapped, in its shape. raises DataError for another number of elements"""
        name, shape = self.results[number]
        if math.prod(value.shape) != math.prod(shape):
            raise DataError(f"a result of {list(value.shape)} does not fit {name}{list(shape)}", stage="library")
        return narrowed(value, name, self.xp).reshape(shape)

    def zeros(self, number: int) -> Array:
        """Result `number`, all of its bits zero."""
        name, shape = self.results[number]
        return self.xp.zeros(shape, pattern_type(name) if self.on_gpu else numpy_type(name))


def pattern_type(name: str) -> np.dtype[Any]:
    """The element type of a CuPy array for an HLO element type: the type itself, or unsigned bit patterns if CuPy lacks it."""
    kind = numpy_type(name)
    return np.dtype(f"u{kind.itemsize}") if name in _IN_ML_DTYPES else kind


def is_float(name: str) -> bool:
    return name[0] in "fb"


def largest_of(name: str) -> float:
    """The largest finite value of a float type that NumPy lacks."""
    finfo: Any = ml_dtypes.finfo
    return float(finfo(numpy_type(name)).max)


def is_narrow_float(name: str) -> bool:
    """Whether a type is f16, bf16 or a narrower float."""
    return is_float(name) and name not in ("f32", "f64")


def widened(array: Array, name: str, xp: Any) -> Array:
    """The values of an array in the narrowest type that NumPy and CuPy compute in; exact.

    array   of HLO's type `name`: in the type of `ml_dtypes`, or as bit patterns
    """
    kind = numpy_type(name)
    if name in _IN_ML_DTYPES and array.dtype != kind:
        if name == "bf16":
            return (array.astype(xp.uint32) << xp.uint32(16)).view(xp.float32)
        return xp.asarray(_values(name))[array]
    if is_narrow_float(name):
        return array.astype(np.float32)
    if name in _IN_ML_DTYPES:
        return array.astype(np.int8 if name[0] == "s" else np.uint8)
    return array


def narrowed(array: Array, name: str, xp: Any) -> Array:
    """Values in HLO's type `name`: floats rounded once to nearest even, integers wrapped. On a GPU, bit patterns for types that CuPy lacks.

    array   float32 or wider for a float type, integers for an integer type
    """
    kind = numpy_type(name)
    if xp is not np and name in _IN_ML_DTYPES:
        return rounded_patterns(array, name, xp) if is_float(name) else array.astype(xp.uint8) & xp.uint8(_mask(name))
    if name in _IN_ML_DTYPES and not is_float(name):
        return _wrapped(array, name)
    return array.astype(kind, copy=False)


def rounded_patterns(array: Array, name: str, xp: Any) -> Array:
    """float32 rounded once, to nearest even, to the bit patterns of bf16 or of an 8-bit float.

    Values that are too large become infinity, or NaN in a type without it, as in `ml_dtypes`.
    """
    array = xp.ascontiguousarray(array.astype(xp.float32)).reshape(array.shape)
    if name == "bf16":
        bits = array.view(xp.uint32)
        odd = (bits >> xp.uint32(16)) & xp.uint32(1)
        near = (bits + xp.uint32(0x7FFF) + odd) >> xp.uint32(16)
        return xp.where(xp.isnan(array), (bits >> xp.uint32(16)) | xp.uint32(0x40), near).astype(xp.uint16)
    borders, beyond, nan, has_minus_zero = _rounding(name)
    size = xp.abs(array)
    at = xp.searchsorted(xp.asarray(borders), size.reshape(-1), side="left").reshape(size.shape)
    # A number halfway between two patterns takes the even one; `left` is wrong if the lower one is odd.
    last = len(borders) - 1
    tie = xp.asarray(borders)[xp.minimum(at, last)] == size
    at = at + (tie & (at % 2 == 1) & (at <= last))
    found = xp.where(at > last, beyond, at).astype(xp.uint8)
    negative = xp.signbit(array) & ((found != 0) | has_minus_zero)
    return xp.where(xp.isnan(array), xp.uint8(nan), found | xp.where(negative, xp.uint8(_SIGN), xp.uint8(0)))


_SIGN = 0x80
"""The sign in the bit pattern of an 8-bit float."""


@cache
def _values(name: str) -> Array:
    """The value of each bit pattern of an 8-bit type, as float32 or an 8-bit integer."""
    kind = numpy_type(name)
    if not is_float(name):
        patterns = np.arange(256, dtype=np.uint8) & np.uint8(_mask(name))
        return _wrapped(patterns, name).astype(np.int8 if name[0] == "s" else np.uint8)
    return np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)


@cache
def _rounding(name: str) -> tuple[Array, int, int, bool]:
    """Rounding tables of an 8-bit float: borders between neighbours, the patterns for overflow and for NaN, and whether there is a -0."""
    kind = numpy_type(name)
    if not name.startswith("f8") or name == "f8e8m0fnu":
        raise Unsupported(f"no rounding to {name} on a GPU", stage="library")
    largest = int(np.asarray(largest_of(name), kind).view(np.uint8))
    positive = _values(name)[: largest + 1].astype(np.float64)
    steps = np.append(positive, 2 * positive[-1] - positive[-2])
    borders = ((steps[1:] + steps[:-1]) / 2).astype(np.float32)
    with np.errstate(all="ignore"):
        beyond, nan, minus_zero = (
            int(np.asarray(value, np.float32).astype(kind).view(np.uint8)) for value in (np.inf, np.nan, -0.0)
        )
    return borders, beyond, nan, minus_zero == _SIGN


def _mask(name: str) -> int:
    return (1 << int(name[1:])) - 1


def _wrapped(array: Array, name: str) -> Array:
    """Integers modulo 2^bits in a type narrower than a byte."""
    spare = np.uint8(8 - int(name[1:]))
    low = array.astype(np.uint8) << spare
    kept = low.view(np.int8) >> spare.view(np.int8) if name[0] == "s" else low >> spare
    return kept.astype(numpy_type(name))


def checked_results(found: Sequence[Array], arguments: LibraryArguments, name: str) -> list[Array]:
    """The results of a function, checked against the requested types and shapes. raises InternalError if they differ."""
    if said := unlike(found, arguments):
        raise InternalError(f"library function '{name}' {said}", stage="library")
    return list(found)


def unlike(found: Sequence[Array], arguments: LibraryArguments) -> str:
    """How the results differ from the requested types and shapes; "" if they do not."""
    wanted = [
        (pattern_type(kind) if arguments.on_gpu else numpy_type(kind), tuple(shape))
        for kind, shape in arguments.results
    ]
    got = [(getattr(array, "dtype", type(array).__name__), tuple(getattr(array, "shape", ()))) for array in found]
    return "" if got == wanted else f"returned {_listed(got)}, not {_listed(wanted)}"


def _listed(arrays: Sequence[tuple[Any, Sequence[int]]]) -> str:
    return ", ".join(f"{kind}[{','.join(map(str, shape))}]" for kind, shape in arrays) or "nothing"


def arranged(array: Array, *batches: Sequence[int], contracting: Sequence[int], contracting_last: bool) -> Array:
    """[*batches, free, contracting], or [*batches, contracting, free] unless `contracting_last`: each group of dimensions is one."""
    kept = {dim for group in (*batches, contracting) for dim in group}
    free = [dim for dim in range(array.ndim) if dim not in kept]
    groups = (*batches, free, contracting) if contracting_last else (*batches, contracting, free)
    order = [dim for group in groups for dim in group]
    return array.transpose(order).reshape([math.prod(array.shape[dim] for dim in group) for group in groups])


def top_key(*, largest: bool) -> Mapping[str, Any]:
    """The key for the largest, or smallest, elements of one operand: NaN is larger than every number."""
    return {"operand": 0, "part": None, "order": "total", "descending": largest}
