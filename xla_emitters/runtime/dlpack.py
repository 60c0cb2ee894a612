"""Arrays that libraries share by DLPack, of element types that one side lacks: handed over as bit patterns, without a copy.

    cupy.from_dlpack(as_patterns(x))                  x: bf16 of JAX's or PyTorch's; CuPy's array of u16 has the same memory
    jax.dlpack.from_dlpack(as_type(found, "bf16"))    found: an array of u16 of CuPy's; JAX's array of bf16 has the same memory

CuPy and NumPy have no bf16 and no eight-bit floats. The element type is a field of the structure that `__dlpack__` hands over; that is made
for one exchange, and no producer reads it again.
Source: dlpack.h (DLDataTypeCode, DLTensor, DLManagedTensor); the Python specification of DLPack.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

_UNSIGNED, _CODE_OF_BFLOAT = 1, 4
DLPACK_CODES = {
    "bf16": _CODE_OF_BFLOAT,
    **dict(f8e3m4=7, f8e4m3=8, f8e4m3b11fnuz=9, f8e4m3fn=10, f8e4m3fnuz=11, f8e5m2=12, f8e5m2fnuz=13, f8e8m0fnu=14),
}
"""HLO's name -> DLPack's code, of the types that CuPy has as bit patterns."""

# A DLTensor begins with its data (8 bytes), its device (two of 4) and its rank (4); the code is the first byte of its type.
_CODE_AT = 20


@dataclass(frozen=True)
class _Retyped:
    """An array as a producer of DLPack, with other element types: `codes` maps a code to the one that is said instead."""

    array: Any
    codes: dict[int, int]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        """The array's capsule; `stream` as the consumer gives it. Always in the form of DLPack 0.x, which every consumer reads."""
        capsule = self.array.__dlpack__() if stream is None else self.array.__dlpack__(stream=stream)
        code = ctypes.c_uint8.from_address(_pointer(capsule, b"dltensor") + _CODE_AT)
        code.value = self.codes.get(code.value, code.value)
        return capsule


def as_patterns(array: Any) -> Any:
    """An array of any library with DLPack, for a consumer that knows integers, floats, complex numbers and pred alone."""
    return _Retyped(array, dict.fromkeys(DLPACK_CODES.values(), _UNSIGNED))


def as_type(array: Any, name: str) -> Any:
    """An array of bit patterns, for a consumer that knows HLO's type `name`; of other types the array itself."""
    return _Retyped(array, {_UNSIGNED: DLPACK_CODES[name]}) if name in DLPACK_CODES else array


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
