"""Accessors of an op's operands, results and regions by name: the same as xDSL's, in fewer calls.

    op.lhs       a sequence chosen by construct, then indexed            ->  the operand
    op.body      the same                                                ->  the region
    op.indices   segment sizes unpacked from bytes, then added up        ->  start and end, kept by the attribute

Source: xDSL, xdsl/irdl/operations.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar, cast

from xdsl.irdl import IRDLOperation
from xdsl.irdl import operations as irdl

# Bound here: reading a member of an enum class is a Python call.
_OPERAND, _RESULT = irdl.VarIRConstruct.OPERAND, irdl.VarIRConstruct.RESULT
_type_of: Any = type

item: Callable[[Any, int | slice], Any] = cast(Any, tuple).__getitem__
"""An element of a tuple; that of `SSAValues` is a method in Python, which asks whether it is a slice."""


def quick_accessors(op_type: type[Any]) -> None:
    """Puts an accessor of each operand, result, region and successor of its bases into the class, where xDSL's formats look for it.

    Those of operands, results and regions become quick.
    """
    seen = set[str]()
    for parent in op_type.__mro__:
        if parent is IRDLOperation:
            break
        members = vars(parent)
        for name, member in [(name, each) for name, each in members.items() if _is_accessor(_type_of(each))]:
            if name not in seen:
                setattr(op_type, name, _quick(member))
        seen.update(members)


@cache
def _is_accessor(kind: type[Any]) -> bool:
    return issubclass(kind, irdl.BaseAccessor | irdl.BaseAttrAccessor)


class _Operand(irdl.BeforeVariadicSingleAccessor):
    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        return item(obj._operands, self.idx)


class _Result(irdl.BeforeVariadicSingleAccessor):
    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        return item(obj.results, self.idx)


class _Region(irdl.BeforeVariadicSingleAccessor):
    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        return obj.regions[self.idx]


class _Operands(irdl.UniqueVariadicAccessor):
    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        return obj._operands


class _Results(irdl.UniqueVariadicAccessor):
    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        return obj.results


@dataclass(frozen=True)
class _Segment(irdl.BaseAccessor):
    """Variadic values, by segment sizes; `single` and `optional` values are subclasses."""

    option: irdl.AttrSizedSegments
    single: ClassVar[bool] = False
    optional: ClassVar[bool] = False

    def index(self, args: Sequence[Any]) -> Any:
        raise NotImplementedError("it depends on the op")

    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        option = self.option
        sizes = (obj.properties if option.as_property else obj.attributes)[option.attribute_name]
        start, end = _bounds(sizes)[self.idx]
        construct = self.construct
        values = obj._operands if construct is _OPERAND else obj.results if construct is _RESULT else obj.regions
        if self.single:
            return values[start]
        if self.optional:
            return values[start] if end > start else None
        return values[start:end]


class _SingleSegment(_Segment):
    single = True


class _OptionalSegment(_Segment):
    optional = True


_BOUNDS: dict[int, tuple[Any, tuple[tuple[int, int], ...]]] = {}


def _bounds(sizes: Any) -> tuple[tuple[int, int], ...]:
    """Start and end of each segment. Kept by the identity of the attribute: `_segments` makes equal ones once."""
    if (found := _BOUNDS.get(id(sizes))) is None:
        if len(_BOUNDS) >= 4096:
            _BOUNDS.clear()
        values: tuple[int, ...] = sizes.get_values()
        ends = tuple(accumulate(values))
        bounds = tuple((end - size, end) for size, end in zip(values, ends, strict=True))
        found = _BOUNDS[id(sizes)] = sizes, bounds  # the attribute is kept, so that its identity stays its own
    return found[1]


_OF_SEGMENTS: dict[type[Any], type[_Segment]] = {
    irdl.VariadicAttrAccessor: _Segment,
    irdl.SingleAttrAccessor: _SingleSegment,
    irdl.OptionalAttrAccessor: _OptionalSegment,
}


def _quick(accessor: Any) -> Any:
    construct, index = accessor.construct, accessor.idx
    if construct is irdl.VarIRConstruct.SUCCESSOR:
        return accessor
    kind = _type_of(accessor)
    if kind is irdl.BeforeVariadicSingleAccessor:
        return (_Operand if construct is _OPERAND else _Result if construct is _RESULT else _Region)(construct, index)
    if kind is irdl.UniqueVariadicAccessor and accessor.num_defs == 1 and construct in (_OPERAND, _RESULT):
        return (_Operands if construct is _OPERAND else _Results)(construct, index, 1)
    if (segment := _OF_SEGMENTS.get(kind)) is not None:
        return segment(construct, index, accessor.option)
    return accessor
