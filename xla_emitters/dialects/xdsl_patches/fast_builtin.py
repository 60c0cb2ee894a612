"""Faster builtin attributes: values that xDSL 0.74 computes for each use are computed once per value or object.

    IntegerAttr(4, i32)            an IntAttr made, the number normalised, the constraints asked     ->  looked up by number and type
    IntegerType(32)                the same, for its width                                           ->  looked up by width
    hash(location), hash(i32)      a Python function for each field, and for each field of those     ->  kept in the attribute
    segments.get_values()          bytes unpacked for every operand that is read                     ->  kept in the attribute

Attributes are immutable, so the caches stay valid. A hash is valid in one process only (string hashes differ between processes), so it is
left out when an attribute is pickled. Source: xDSL 0.74, xdsl/dialects/builtin.py, xdsl/irdl/attributes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    FusedLoc,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NameLoc,
    Signedness,
    SignednessAttr,
    SymbolRefAttr,
    TensorType,
    VectorType,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute

from xla_emitters.dialects.xdsl_patches.patch import Member

_set = object.__setattr__
_HASHED: tuple[type[Attribute], ...] = (
    *(IntegerAttr, IntegerType, DenseArrayBase, DenseIntOrFPElementsAttr, TensorType, VectorType, LLVMPointerType),
    *(
        IndexType,
        Float32Type,
        BFloat16Type,
        Float16Type,
        Float64Type,
        FloatAttr,
        SymbolRefAttr,
        FunctionType,
    ),
    *(NameLoc, FileLineColLoc, FusedLoc),
)


def _kept_hash(own: Callable[[Any], int]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        try:
            return self._hash
        except AttributeError:
            _set(self, "_hash", own(self))
            return self._hash

    return __hash__


def _same_first(own: Callable[[Any, object], Any]) -> Callable[[Any, object], Any]:
    def __eq__(self: Any, other: object) -> Any:
        return True if self is other else own(self, other)

    return __eq__


def _state(_: Any) -> Callable[[Any], dict[str, Any]]:
    def __getstate__(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    return __getstate__


@lru_cache(256)
def _integer_type(width: int) -> IntegerType:
    return IntegerType(width)


def _made_once(own: Callable[..., None]) -> Callable[..., None]:
    @lru_cache(65_536)
    def number_of(value: int, value_type: IntegerType | IndexType, truncate_bits: bool) -> IntAttr:
        made: Any = object.__new__(IntegerAttr)
        own(made, value, value_type, truncate_bits=truncate_bits)
        return made.value

    def __init__(self: Any, value: Any, value_type: Any, *, truncate_bits: bool = False) -> None:
        if type(value_type) is int:
            value_type = _integer_type(value_type)
        if type(value) is int and type(value_type) in (IntegerType, IndexType):
            _set(self, "value", number_of(value, value_type, truncate_bits))
            _set(self, "type", value_type)
        else:
            own(self, value, value_type, truncate_bits=truncate_bits)

    return __init__


def _type_made_once(own: Callable[..., None]) -> Callable[..., None]:
    @lru_cache(4096)
    def parameters_of(width: int, signedness: Signedness) -> tuple[IntAttr, SignednessAttr]:
        made: Any = object.__new__(IntegerType)
        own(made, width, signedness)
        return made.width, made.signedness

    def __init__(self: Any, data: Any, signedness: Any = Signedness.SIGNLESS) -> None:
        if type(data) is int and type(signedness) is Signedness:
            width, sign = parameters_of(data, signedness)
            _set(self, "width", width)
            _set(self, "signedness", sign)
        else:
            own(self, data, signedness)

    return __init__


def _kept_values(own: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], tuple[Any, ...]]:
    def get_values(self: Any) -> tuple[Any, ...]:
        try:
            return self._values
        except AttributeError:
            _set(self, "_values", own(self))
            return self._values

    return get_values


def _kept_shape(own: Callable[[Any], tuple[int, ...]]) -> Callable[[Any], tuple[int, ...]]:
    def get_shape(self: Any) -> tuple[int, ...]:
        try:
            return self._dims
        except AttributeError:
            _set(self, "_dims", own(self))
            return self._dims

    return get_shape


FAST_BUILTIN: tuple[Member, ...] = (
    *(Member(holder, "__hash__", "hashes every field of every field each time", _kept_hash) for holder in _HASHED),
    *(Member(holder, "__eq__", "compares every field of an attribute with itself", _same_first) for holder in _HASHED),
    *(Member(holder, "__getstate__", "would pickle the hash that is kept", _state) for holder in _HASHED),
    Member(IntegerAttr, "__init__", "normalises and verifies equal numbers each time", _made_once),
    Member(IntegerType, "__init__", "verifies equal widths each time", _type_made_once),
    *(
        Member(holder, "get_shape", "reads each dimension each time", _kept_shape)
        for holder in (TensorType, VectorType)
    ),
    Member(DenseArrayBase, "get_values", "unpacks the same bytes each time", _kept_values),
)
