"""Attributes that are made often, made once: equal ones are one object.

    integer(4, i32)        IntegerAttr(4, i32), which xDSL makes anew each time, with an IntAttr, and checks against its constraints
    symbol("f")            SymbolRefAttr("f"): four attributes
    tensor_type(f32, (8, 64))   TensorType(f32, (8, 64)): one for each dimension, and more
    function_type([f32], [i1])  FunctionType.from_lists([f32], [i1]), unchecked as `array`: three attributes

Attributes are immutable. Use it where attributes are made by the thousand; xDSL's constructors are as good elsewhere. `unchecked` is for
those that are not made twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation

INDEX = IndexType()
NONE = NoneAttr()
UNIT = UnitAttr()
NO_ENTRIES = DictionaryAttr({})

_AttributeT = TypeVar("_AttributeT", bound=Attribute)
_new: Any = object.__new__


@lru_cache(65_536)
def integer(value: int, kind: IntegerType | IndexType | int, truncate_bits: bool = False) -> IntegerAttr[Any]:
    """`IntegerAttr(value, kind)`. raises xDSL's VerifyException if the number does not fit, unless `truncate_bits`"""
    return IntegerAttr(int(value), integer_type(kind) if isinstance(kind, int) else kind, truncate_bits=truncate_bits)


@lru_cache(65_536)
def index_number(value: int) -> IntegerAttr[Any]:
    """`value : index`."""
    return IntegerAttr(int(value), INDEX)


@lru_cache(256)
def integer_type(width: int) -> IntegerType:
    """`IntegerType(width)`."""
    return IntegerType(width)


string = lru_cache(16_384)(StringAttr)
"""`StringAttr(text)`."""


@lru_cache(4096)
def symbol(name: str) -> SymbolRefAttr:
    """`@name`."""
    return SymbolRefAttr(string(name))


def integer_array(numbers: Sequence[int], width: int = 64) -> DenseArrayBase[IntegerType]:
    """`array<i64: ...>`, or `i32` with `width` 32."""
    return _integer_array(tuple(numbers), width)


@lru_cache(4096)
def _integer_array(numbers: tuple[int, ...], width: int) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i32 if width == 32 else i64, numbers)


@lru_cache(4096)
def tensor_type(element: Attribute, shape: tuple[int, ...], encoding: Attribute = NONE) -> TensorType[Attribute]:
    """`TensorType(element, shape, encoding)`."""
    return TensorType(element, shape, encoding)


@lru_cache(4096)
def vector_type(element: Attribute, shape: tuple[int, ...]) -> VectorType[Attribute]:
    """`VectorType(element, shape)`, all of whose dimensions are fixed."""
    return VectorType(element, shape)


@lru_cache(4096)
def int_attr(value: int) -> IntAttr:
    """`IntAttr(value)`: a line or a column."""
    return IntAttr(value)


@lru_cache(4096)
def name_of_constant(value: Attribute | None) -> str:
    """The name that MLIR gives a constant, without `%`: `c4`, `c4_i32`, `true`, `cst`."""
    if not isinstance(value, IntegerAttr):
        return "cst"
    found = cast(IntegerAttr[IntegerType | IndexType], value)
    number, kind = found.value.data, found.type
    if isinstance(kind, IndexType):
        return f"c{number}"
    return f"c{number}_{kind}" if kind.width.data != 1 else "true" if number else "false"


class AttributeNumbers:
    """One number per distinct attribute. Each attribute object is hashed once, however many ops share it."""

    def __init__(self) -> None:
        self._by_object: dict[int, tuple[Attribute, int]] = {}  # keeps the object alive, so that its id is not reused
        self._by_value: dict[Attribute, int] = {}

    def __getitem__(self, attribute: Attribute) -> int:
        if (found := self._by_object.get(id(attribute))) is not None:
            return found[1]
        number = self._by_value.setdefault(attribute, len(self._by_value))
        self._by_object[id(attribute)] = (attribute, number)
        return number


_NUMBERS_OF = WeakKeyDictionary[Operation, AttributeNumbers]()


def numbers_of(root: Operation) -> AttributeNumbers:
    """The numbers of the attributes in an op, which are kept as long as the op: one pass after the other sees mostly the same ones."""
    if (found := _NUMBERS_OF.get(root)) is None:
        found = _NUMBERS_OF[root] = AttributeNumbers()
    return found


def unchecked(kind: type[_AttributeT], **fields: Any) -> _AttributeT:
    """An attribute of these fields (`data`, or its parameters by name), which are known to fit: xDSL does not check them."""
    made: Any = _new(kind)
    made.__dict__.update(fields)
    return made


def array(elements: Iterable[_AttributeT]) -> ArrayAttr[_AttributeT]:
    """`ArrayAttr(elements)`."""
    made: Any = unchecked(ArrayAttr, data=tuple(elements))
    return made


def function_type(inputs: Iterable[Attribute], outputs: Iterable[Attribute]) -> FunctionType:
    """`FunctionType.from_lists(inputs, outputs)`."""
    return unchecked(FunctionType, inputs=array(inputs), outputs=array(outputs))
