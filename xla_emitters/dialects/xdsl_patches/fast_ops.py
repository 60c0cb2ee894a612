"""Faster construction, access, insertion and walks of ops: as xDSL 0.74, with a fast path for the plain case.

    arith.AddiOp(%a, %b)     four lists of arguments built and checked against the definition     ->  operands and result types as they are
    op.lhs                   a sequence chosen by construct, then indexed                         ->  the operand
    builder.insert(op)       tuples of one op, through the rewriter                               ->  one insertion
    module.walk()            three generators deep for each level of nesting                      ->  one generator for each level

An op is plain if its definition has no successors and no options except segment sizes, and one value or region is given
for each name, or a list for a variadic one. Others are built by xDSL's own functions, which also raise its errors. Walks read an op's
neighbour before they yield the op, as xDSL's do: it may be erased meanwhile.
Source: xDSL 0.74, xdsl/ir/core.py, xdsl/irdl/operations.py, xdsl/builder.py, xdsl/rewriter.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from xdsl import builder as builders
from xdsl import rewriter as rewriters
from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase, i32
from xdsl.ir import Attribute, Block, Operation, OpOperands, OpResult, Region, SSAValue
from xdsl.ir.core import BlockOps, RegionBlocks, SSAValues
from xdsl.irdl import operations as irdl

from xla_emitters.dialects.xdsl_patches.fast_values import item, use_of
from xla_emitters.dialects.xdsl_patches.patch import Member

_new = object.__new__
# Bound here: reading a member of an enum class is a Python call.
_OPERAND, _RESULT, _REGION = irdl.VarIRConstruct.OPERAND, irdl.VarIRConstruct.RESULT, irdl.VarIRConstruct.REGION


# ---- construction -----------------------------------------------------------------------------------------------------------------------


def _init(
    self: Operation,
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    location: Any = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> None:
    """`Operation.__init__`."""
    self._operands = values = SSAValues(operands)
    self._operand_uses = tuple([use_of(self, index, value) for index, value in enumerate(values)]) if values else ()
    results: list[OpResult] = []
    for index, result_type in enumerate(result_types):
        result: OpResult = _new(OpResult)
        result.first_use = None
        result._name = None
        result._type = result_type
        result.op = self
        result.index = index
        results.append(result)
    self.results = SSAValues(results)
    self.properties = {} if properties is None else dict(properties)
    self.attributes = {} if attributes is None else dict(attributes)
    self.location = UNKNOWN_LOC if location is None else location
    if successors:
        self.successors = list(successors)
    self.regions = ()
    for region in regions:
        self.add_region(region)
    self.__post_init__()


_Defaults = tuple[tuple[str, Attribute], ...]
_DEFAULTS: dict[type[irdl.IRDLOperation], tuple[_Defaults, _Defaults]] = {}
_XDSLS_POST_INIT = Operation.__post_init__


def _defaults_of(definitions: Mapping[str, Any]) -> _Defaults:
    return tuple(
        (name, definition.default_value)
        for name, definition in definitions.items()
        if not isinstance(definition, irdl.OptionalDef) and definition.default_value is not None
    )


def _fill_defaults(self: irdl.IRDLOperation) -> None:
    """`IRDLOperation.__post_init__`, cached: xDSL's looks at every property's definition for every op."""
    op_type = type(self)
    if (defaults := _DEFAULTS.get(op_type)) is None:
        definition = op_type.get_irdl_definition()
        defaults = _DEFAULTS[op_type] = _defaults_of(definition.properties), _defaults_of(definition.attributes)
    properties, attributes = defaults
    for name, value in properties:
        self.properties.setdefault(name, value)
    for name, value in attributes:
        self.attributes.setdefault(name, value)
    # An implicit builder replaces it temporarily.
    if Operation.__post_init__ is not _XDSLS_POST_INIT:
        Operation.__post_init__(self)


_ONE, _OPTIONAL, _VARIADIC = range(3)


class _Layout(NamedTuple):
    """A definition's argument lists for building an op: for each name whether it takes one value, at most one, or any number."""

    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[int, ...]
    sizes: tuple[tuple[int, bool, str], ...]  # which of the three lists, whether it is a property, its name
    is_plain: bool  # whether this describes the definition completely


_LAYOUTS: dict[type[irdl.IRDLOperation], _Layout] = {}
_SIZES: tuple[type[irdl.IRDLOption], ...] = (
    irdl.AttrSizedOperandSegments,
    irdl.AttrSizedResultSegments,
    irdl.AttrSizedRegionSegments,
)


def _layout_of(op_type: type[irdl.IRDLOperation]) -> _Layout:
    definition = op_type.get_irdl_definition()
    sizes = tuple(
        (_SIZES.index(type(option)), option.as_property, option.attribute_name)
        for option in definition.options
        if isinstance(option, _SIZES) and isinstance(option, irdl.AttrSizedSegments)
    )
    is_plain = len(sizes) == len(definition.options) and not definition.successors
    operands, results, regions = map(_counts, (definition.operands, definition.results, definition.regions))
    found = _LAYOUTS[op_type] = _Layout(operands, results, regions, sizes, is_plain)
    return found


def _counts(definitions: Sequence[tuple[str, Any]]) -> tuple[int, ...]:
    return tuple(
        _OPTIONAL if isinstance(each, irdl.OptionalDef) else _VARIADIC if isinstance(each, irdl.VariadicDef) else _ONE
        for _, each in definitions
    )


@lru_cache(4096)
def _segments(sizes: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i32, sizes)


def _init_plain(own: Callable[..., None]) -> Callable[..., None]:
    def __init__(
        self: irdl.IRDLOperation,
        *,
        operands: Sequence[Any] | None = None,
        result_types: Sequence[Any] | None = None,
        properties: Mapping[str, Attribute | None] | None = None,
        attributes: Mapping[str, Attribute | None] | None = None,
        successors: Sequence[Any] | None = None,
        regions: Sequence[Any] | None = None,
    ) -> None:
        layout = _LAYOUTS.get(type(self)) or _layout_of(type(self))
        if (
            not layout.is_plain
            or successors
            or (values := _flat(operands or (), layout.operands, SSAValue)) is None
            or (types := _flat(result_types or (), layout.results, Attribute)) is None
            or (parts := _flat(regions or (), layout.regions, Region)) is None
        ):
            own(
                self,
                operands=operands,
                result_types=result_types,
                properties=properties,
                attributes=attributes,
                successors=successors,
                regions=regions,
            )
            return
        given_properties = _given(properties) if properties else {}
        given_attributes = _given(attributes) if attributes else {}
        for which, is_property, name in layout.sizes:
            lists = (operands, result_types, regions)[which] or ()
            (given_properties if is_property else given_attributes)[name] = _segments(tuple(map(_size, lists)))
        _init(
            self,
            operands=values,
            result_types=types,
            properties=given_properties,
            attributes=given_attributes,
            regions=parts,
        )

    return __init__


def _given(attributes: Mapping[str, Attribute | None]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if value is not None}


_LISTS = (list, tuple, OpOperands)


def _flat(given: Sequence[Any], counts: Sequence[int], wanted: type[Any]) -> list[Any] | None:
    """What is given for each name, one after the other. None where xDSL must look at it."""
    if len(given) != len(counts):
        return None
    if not counts:
        return []
    found: list[Any] = []
    for each, count in zip(given, counts, strict=True):
        if isinstance(each, wanted):
            found.append(each)
        elif each is None and count == _OPTIONAL:
            continue
        elif isinstance(each, _LISTS) and (count == _VARIADIC or (count == _OPTIONAL and _size(each) <= 1)):
            for member in cast(Sequence[Any], each):
                if isinstance(member, wanted):
                    found.append(member)
                elif wanted is SSAValue and isinstance(member, Operation) and len(member.results) == 1:
                    found.append(item(member.results, 0))
                else:
                    return None
        elif wanted is SSAValue and isinstance(each, Operation) and len(each.results) == 1:
            found.append(item(each.results, 0))  # an op stands for its only result
        else:
            return None
    return found


def _size(given: Any) -> int:
    """How many values `_flat` took of it."""
    return 0 if given is None else len(cast(Sequence[Any], given)) if isinstance(given, _LISTS) else 1


def _clone(own: Callable[..., Operation]) -> Callable[..., Operation]:
    def clone(
        self: Operation,
        value_mapper: dict[SSAValue, SSAValue] | None = None,
        block_mapper: dict[Block, Block] | None = None,
        *,
        clone_name_hints: bool = True,
        clone_operands: bool = True,
    ) -> Operation:
        if self.regions or self._successors or not (clone_name_hints and clone_operands):
            return own(
                self,
                value_mapper,
                block_mapper,
                clone_name_hints=clone_name_hints,
                clone_operands=clone_operands,
            )
        values: dict[SSAValue, SSAValue] = {} if value_mapper is None else value_mapper
        op = _new(type(self))
        _init(
            op,
            operands=[values.get(operand, operand) for operand in self._operands],
            result_types=[result._type for result in self.results],
            properties=self.properties,
            attributes=self.attributes,
            location=self.location,
        )
        for old, new in zip(self.results, op.results, strict=True):
            values[old] = new
            new._name = old._name
        return op

    return clone


# ---- reading and inserting --------------------------------------------------------------------------------------------------------------


def _accessed(own: Callable[..., Any]) -> Callable[..., Any]:
    """Accessor `op.lhs`, `op.result` of a field with no variadic field before it."""

    def __get__(self: irdl.BeforeVariadicSingleAccessor, obj: Any, objtype: Any = None) -> Any:
        if (construct := self.construct) is _OPERAND:
            return item(obj._operands, self.idx)
        if construct is _RESULT:
            return item(obj.results, self.idx)
        return obj.regions[self.idx] if construct is _REGION else own(self, obj, objtype)

    return __get__


def _all_or_some(own: Callable[..., Any]) -> Callable[..., Any]:
    """Accessor of the only variadic field: all values if there are no other fields."""

    def index(self: irdl.UniqueVariadicAccessor, args: Sequence[Any]) -> Any:
        return args if self.num_defs == 1 and type(args) is SSAValues else own(self, args)

    return index


def _constructs(own: Callable[..., Any]) -> Callable[..., Any]:
    """The list that all other accessors take their part of."""

    def get_op_constructs(op: Operation, construct: irdl.VarIRConstruct) -> Any:
        if construct is _OPERAND:
            return op._operands
        return op.results if construct is _RESULT else own(op, construct)

    return get_op_constructs


def _insert_before(own: Callable[[Operation], rewriters.InsertPoint]) -> Callable[[Operation], rewriters.InsertPoint]:
    def before(op: Operation) -> rewriters.InsertPoint:
        if (block := op.parent) is None:
            return own(op)
        point = _new(rewriters.InsertPoint)
        # A frozen dataclass: its __init__ sets each field by a function call, and then reads the block again.
        fields = point.__dict__
        fields["block"], fields["insert_before"] = block, op
        return point

    return before


def insert_op(op_or_ops: Operation | Sequence[Operation], insertion_point: rewriters.InsertPoint) -> None:
    """`Rewriter.insert_op`, with a fast path for one op."""
    block, before = insertion_point.block, insertion_point.insert_before
    if not isinstance(op_or_ops, Operation):
        if before is not None:
            block.insert_ops_before(op_or_ops, before)
        else:
            block.add_ops(op_or_ops)
    elif before is not None:
        block.insert_op_before(op_or_ops, before)
    else:
        block.add_op(op_or_ops)


def _insert_one(own: Callable[..., Any]) -> Callable[..., Any]:
    def insert(self: builders.Builder, op: Any, insertion_point: rewriters.InsertPoint | None = None) -> Any:
        if (
            self._name_hint is not None
            or builders._current_builder.builder is not None
            or not isinstance(op, Operation)
        ):
            return own(self, op, insertion_point)
        insert_op(op, self.insertion_point if insertion_point is None else insertion_point)
        for callback in self.operation_insertion_handler:
            callback(op)
        return op

    return insert


# ---- walks ------------------------------------------------------------------------------------------------------------------------------


def _forward(op: Operation, region_first: bool) -> Iterator[Operation]:
    if not region_first:
        yield op
    for region in op.regions:
        block = region._first_block
        while block is not None:
            next_block = block._next_block
            inner = block._first_op
            while inner is not None:
                after = inner._next_op
                if inner.regions:
                    yield from _forward(inner, region_first)
                else:
                    yield inner
                inner = after
            block = next_block
    if region_first:
        yield op


def _backward_regions_first(op: Operation) -> Iterator[Operation]:
    for region in reversed(op.regions):
        block = region._last_block
        while block is not None:
            prev_block = block._prev_block
            inner = block._last_op
            while inner is not None:
                before = inner._prev_op
                if inner.regions:
                    yield from _backward_regions_first(inner)
                else:
                    yield inner
                inner = before
            block = prev_block
    yield op


def _walk(own: Callable[..., Iterator[Operation]]) -> Callable[..., Iterator[Operation]]:
    def walk(self: Operation, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
        if not reverse:
            return _forward(self, region_first)
        return _backward_regions_first(self) if region_first else own(self, reverse=True)

    return walk


def _ops_of_block(self: BlockOps) -> Iterator[Operation]:
    op = self.block._first_op
    while op is not None:
        after = op._next_op
        yield op
        op = after


def _blocks_of_region(self: RegionBlocks) -> Iterator[Block]:
    block = self._region._first_block
    while block is not None:
        after = block._next_block
        yield block
        block = after


def _blocks(self: Region) -> RegionBlocks:
    view = _new(RegionBlocks)
    view._region = self
    return view


FAST_OPS: tuple[Member, ...] = (
    Member(Operation, "__init__", "sets operands, results and successors by views and generators", lambda _: _init),
    Member(irdl.IRDLOperation, "__post_init__", "looks at each definition for each op", lambda _: _fill_defaults),
    Member(irdl.IRDLOperation, "__init__", "builds lists of arguments and of their sizes for each op", _init_plain),
    Member(Operation, "clone", "sets operands twice, and walks through ops without regions", _clone),
    Member(irdl.BeforeVariadicSingleAccessor, "__get__", "two calls and a match for an operand", _accessed),
    Member(irdl.UniqueVariadicAccessor, "index", "copies the tuple of all operands", _all_or_some),
    Member(irdl, "get_op_constructs", "matches members of an enum, and makes a view of operands", _constructs),
    Member(
        rewriters.InsertPoint,
        "before",
        "makes a frozen dataclass, and checks what it has just read",
        lambda own: staticmethod(_insert_before(own)),
    ),
    Member(rewriters.Rewriter, "insert_op", "makes a tuple of one op", lambda _: staticmethod(insert_op)),
    Member(builders.Builder, "insert", "makes a tuple of one op, and looks for names", _insert_one),
    Member(Operation, "walk", "three generators for each level of nesting", _walk),
    Member(BlockOps, "__iter__", "calls a method for each op", lambda _: _ops_of_block),
    Member(
        RegionBlocks, "__iter__", "makes a dataclass, and calls a method for each block", lambda _: _blocks_of_region
    ),
    Member(Region, "blocks", "makes its view by a dataclass's __init__", lambda _: property(_blocks)),
)
