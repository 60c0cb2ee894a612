"""`QuickOp`: the base of all our op classes. The same as xDSL's `IRDLOperation`, in fewer calls.

    arith.AddiOp(%a, %b)           four lists of arguments, checked against the definition     ->  operands and types as they are
    op.operands = (%a, %b)         a Use made, then added, per operand                          ->  made at the head of the list
    %a.replace_all_uses_with(%b)   a tuple of uses; a view per use                              ->  one walk over the list
    op.erase()                     a stand-in value per result, in place of no use              ->  only where uses are left
    module.walk()                  three generators deep for each level of nesting              ->  one generator for each level
    block.add_op(op)               all that is around the block is asked whether it is the op   ->  not if the op has no regions
    isinstance(op, AddiOp)         ABCMeta: a cache of subclasses, two calls                    ->  a walk over the bases, in C
    values[result]                 SSAValue.__hash__ is `id(self)` written in Python            ->  object.__hash__

An op of xDSL's becomes quick by a subclass: `class AddiOp(arith.AddiOp, QuickOp)`, xDSL's class first, because its `__init__` calls the
next one with `operands=...`. `quick_ops` makes such subclasses of a whole dialect. xDSL's own classes stay as they are.

An op is plain if its definition has no options except segment sizes and those of its text, and one value, successor or region is given
for each name, or a list for a variadic one. Others are built by xDSL's own functions, which also raise its errors. Walks read an op's
neighbour before they yield the op, as xDSL's do: it may be erased meanwhile. The lists of uses keep xDSL's order (a new use comes first),
on which passes depend.
Source: xDSL, xdsl/ir/core.py, xdsl/irdl/operations.py.
"""

# pyright: reportPrivateUsage=false, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase, i32
from xdsl.ir import Attribute, Block, Operation, OpOperands, OpResult, Region, SSAValue, Use
from xdsl.ir.core import IRWithName, IRWithUses, OpSuccessors, SSAValues
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.irdl import operations as irdl
from xdsl.traits import Pure

from xla_emitters.dialects.quick_accessors import item, quick_accessors

_new: Any = object.__new__
_type_of: Any = type

operands_of: Callable[[Operation], Sequence[SSAValue]] = attrgetter("_operands")
"""The operands as they are now: what `op.operands` shows by a view, which follows changes and is made anew each time that it is read."""


number_of: Callable[[SSAValue], int] = attrgetter("index")
"""The number of a result among its op's, or of an argument among its block's."""


def op_of(value: SSAValue) -> Operation | None:
    """The op that has the value as a result; None for the argument of a block. Quicker than `isinstance`, which asks xDSL's metaclass."""
    return getattr(value, "op", None)


class PlainMeta(ABCMeta):
    """The metaclass of abstract classes without virtual subclasses: ABCMeta without the search for them, and without its own table of
    them for each class, of which a command makes some 700."""

    def __new__(mcls, name: str, bases: tuple[type[Any], ...], namespace: dict[str, Any], **options: Any) -> Any:
        is_abstract = any([getattr(base, "__abstractmethods__", ()) for base in bases]) or any(
            [getattr(member, "__isabstractmethod__", False) for member in namespace.values()]
        )
        return (ABCMeta if is_abstract else type).__new__(mcls, name, bases, namespace, **options)

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


# ---- uses and values --------------------------------------------------------------------------------------------------------------------


def _use_of(op: Operation, index: int, value: IRWithUses) -> Use:
    """A new use of `value` by operand `index` of `op`, at the head of the value's list."""
    use = _new(Use)
    use._operation = op
    use._index = index
    use._prev_use = None
    use._next_use = first = value.first_use
    if first is not None:
        first._prev_use = use
    value.first_use = use
    return use


def _put_first(value: IRWithUses, use: Use) -> None:
    first = value.first_use
    use._prev_use = None
    use._next_use = first
    if first is not None:
        first._prev_use = use
    value.first_use = use


def _remove_use(value: IRWithUses, use: Use) -> None:
    before, after = use._prev_use, use._next_use
    if before is None:
        value.first_use = after
    else:
        before._next_use = after
    if after is not None:
        after._prev_use = before


def _set_operand(op: Operation, index: int, value: SSAValue) -> None:
    values, use = list(op._operands), op._operand_uses[index]
    _remove_use(values[index], use)
    _put_first(value, use)
    values[index] = value
    op._operands = SSAValues(values)


class QuickOperands(OpOperands):
    """The view of an op's operands."""

    def __getitem__(self, idx: Any) -> Any:
        values: Any = self._op._operands
        return item(values, idx) if type(idx) is int else values[idx]

    def __setitem__(self, idx: int, operand: SSAValue) -> None:
        _set_operand(self._op, idx, operand)


@lru_cache(65_536)
def _valid_name(holder: type[IRWithName], name: str) -> str:
    return holder.extract_valid_name(name)


def replace_all_uses(old: SSAValue, new: SSAValue) -> None:
    """`old.replace_all_uses_with(new)`, for values of any class."""
    if new is old:
        return
    use = old.first_use
    while use is not None:
        after = use._next_use
        op = use._operation
        values = list(op._operands)
        values[use._index] = new
        op._operands = SSAValues(values)
        _put_first(new, use)
        use = after
    old.first_use = None
    if new._name is None and old._name is not None:
        new._name = _valid_name(OpResult, old._name)


class QuickResult(OpResult[Any], metaclass=PlainMeta):
    """A result of a `QuickOp`."""

    type: Any = property(attrgetter("_type"))
    owner: Any = property(attrgetter("op"))
    remove_use: Any = _remove_use
    replace_all_uses_with: Any = replace_all_uses
    __hash__ = object.__hash__
    __eq__: Any = object.__eq__

    @property
    def name_hint(self) -> str | None:
        """The name, without `%`, that is printed if it is free."""
        return self._name

    @name_hint.setter
    def name_hint(self, name: str | None) -> None:
        self._name = None if name is None else _valid_name(OpResult, name)

    def erase(self, safe_erase: bool = True) -> None:
        """Detaches the value from its uses, which is an error with `safe_erase`."""
        if self.first_use is not None:
            super().erase(safe_erase)


# ---- construction -----------------------------------------------------------------------------------------------------------------------

_Defaults = tuple[tuple[str, Attribute], ...]
_DEFAULTS: dict[type[IRDLOperation], tuple[_Defaults, _Defaults]] = {}
_XDSLS_POST_INIT = Operation.__post_init__
_ONE, _OPTIONAL, _VARIADIC = range(3)
_NONE: SSAValues[Any] = SSAValues(())


def _defaults_of(definitions: Mapping[str, Any]) -> _Defaults:
    return tuple(
        (name, definition.default_value)
        for name, definition in definitions.items()
        if not isinstance(definition, irdl.OptionalDef) and definition.default_value is not None
    )


class _Layout(NamedTuple):
    """A definition's argument lists for building an op: for each name whether it takes one value, at most one, or any number."""

    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[int, ...]
    successors: tuple[int, ...]
    sizes: tuple[tuple[int, bool, str], ...]  # which of the three lists, whether it is a property, its name
    is_plain: bool  # whether this describes the definition completely


_LAYOUTS: dict[type[IRDLOperation], _Layout] = {}
_SIZES: tuple[type[irdl.IRDLOption], ...] = (
    irdl.AttrSizedOperandSegments,
    irdl.AttrSizedResultSegments,
    irdl.AttrSizedRegionSegments,
)


def _layout_of(op_type: type[IRDLOperation]) -> _Layout:
    definition = op_type.get_irdl_definition()
    sizes = tuple(
        (_SIZES.index(type(option)), option.as_property, option.attribute_name)
        for option in definition.options
        if isinstance(option, _SIZES) and isinstance(option, irdl.AttrSizedSegments)
    )
    lists = definition.operands, definition.results, definition.regions, definition.successors
    operands, results, regions, successors = map(_counts, lists)
    # Where a property is written in the text is nothing to the builder.
    is_plain = all(isinstance(option, (*_SIZES, irdl.ParsePropInAttrDict)) for option in definition.options)
    found = _LAYOUTS[op_type] = _Layout(operands, results, regions, successors, sizes, is_plain)
    return found


def _counts(definitions: Sequence[tuple[str, Any]]) -> tuple[int, ...]:
    return tuple(
        _OPTIONAL if isinstance(each, irdl.OptionalDef) else _VARIADIC if isinstance(each, irdl.VariadicDef) else _ONE
        for _, each in definitions
    )


@lru_cache(4096)
def _segments(sizes: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i32, sizes)


def _given(attributes: Mapping[str, Attribute | None]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if value is not None}


_LISTS = (list, tuple, OpOperands)
_PLAIN_LISTS = frozenset[type[Any]]((list, tuple, SSAValues))


_VALUES: set[type[Any]] = {QuickResult}
_TYPES = set[type[Any]]()
_REGIONS: set[type[Any]] = {Region}
_BLOCKS: set[type[Any]] = {Block}


def _is(each: Any, wanted: type[Any], known: set[type[Any]]) -> bool:
    """`isinstance`, which adds the class to `known` if so: xDSL's metaclass is asked once for each class."""
    if isinstance(each, wanted):
        known.add(_type_of(each))
        return True
    return False


def _none(counts: Sequence[int]) -> list[Any] | None:
    return None if counts else []


def _flat(given: Sequence[Any], counts: Sequence[int], wanted: type[Any], known: set[type[Any]]) -> list[Any] | None:
    """What is given for each name, one after the other. None where xDSL must look at it.

    known  classes of `wanted`
    """
    if len(given) != len(counts):
        return None
    found: list[Any] = []
    for each, count in zip(given, counts, strict=True):
        kind: type[Any] = each.__class__
        if kind in known:
            found.append(each)
            continue
        # Lists first: to be told that one is no value, xDSL's metaclass must be asked each time.
        is_list = kind in _PLAIN_LISTS or isinstance(each, _LISTS)
        if not is_list and each is not None and _is(each, wanted, known):
            found.append(each)
        elif each is None and count == _OPTIONAL:
            continue
        elif is_list and (count == _VARIADIC or (count == _OPTIONAL and _size(each) <= 1)):
            for member in cast(Sequence[Any], each):
                if type(member) in known or _is(member, wanted, known):
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


def _fill(
    self: Operation,
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: dict[str, Attribute],
    attributes: dict[str, Attribute],
    location: Any,
    successors: Sequence[Block],
    regions: Sequence[Region],
) -> None:
    """`Operation.__init__`; the dictionaries become the op's."""
    self._operands = values = SSAValues(operands)
    self._operand_uses = tuple([_use_of(self, index, value) for index, value in enumerate(values)]) if values else ()
    results: list[OpResult] = []
    for index, result_type in enumerate(result_types):
        result: OpResult = _new(QuickResult)
        result.first_use = None
        result._name = None
        result._type = result_type
        result.op = self
        result.index = index
        results.append(result)
    self.results = SSAValues(results)
    self.properties = properties
    self.attributes = attributes
    self.location = UNKNOWN_LOC if location is None else location
    if successors:
        self.successors = list(successors)
    self.regions = ()
    for region in regions:
        self.add_region(region)
    self.__post_init__()


def _clone(op: Any, values: dict[SSAValue, SSAValue], blocks: dict[Block, Block], late: list[Operation] | None) -> Any:
    """A copy of an op with all that is inside of it, on the values and blocks that are known so far.

    late  collects the copies inside of regions that use a value that is not known: one from outside, or one that comes later; None: the
          copies have no operands
    """
    if not isinstance(op, QuickOp):
        return op.clone(values, blocks, clone_operands=late is not None)
    operands = [] if late is None else [values.get(operand, operand) for operand in op._operands]
    made = _new(type(op))
    types = [result._type for result in op.results]
    successors = [blocks.get(block, block) for block in op._successors]
    _fill(made, operands, types, op.properties.copy(), op.attributes.copy(), op.location, successors, ())
    for old, new in zip(op.results, made.results, strict=True):
        values[old] = new
        new._name = old._name
    for region in op.regions:
        copy = Region()
        made.add_region(copy)
        _clone_region(region, copy, values, blocks, late)
    return made


def _clone_region(
    region: Region,
    copy: Region,
    values: dict[SSAValue, SSAValue],
    blocks: dict[Block, Block],
    late: list[Operation] | None,
) -> None:
    for block in blocks_of(region):
        new = blocks[block] = Block(arg_types=[argument.type for argument in block._args])
        copy.add_block(new)
        for old_argument, new_argument in zip(block._args, new._args, strict=True):
            values[old_argument] = new_argument
            new_argument.location = old_argument.location
            new_argument._name = old_argument._name
    for block in blocks_of(region):
        new = blocks[block]
        for op in ops_of(block):
            made = _clone(op, values, blocks, late)
            if late is not None:
                for operand in op._operands:
                    if operand not in values:
                        late.append(op)
                        break
            _append(made, new)


def _append(op: Operation, block: Block) -> None:
    """`block.add_op(op)` of a new op, which is in no block and has none around it."""
    last = block._last_op
    op.parent = block
    op._prev_op = last
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
    block._last_op = op


class QuickOp(IRDLOperation, metaclass=PlainMeta):
    """See the file's head. Arguments, results and errors of all methods are those of xDSL's `IRDLOperation`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        quick_accessors(cls)

    def __init__(
        self,
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
            or (values := _flat(operands, layout.operands, SSAValue, _VALUES) if operands else _none(layout.operands))
            is None
            or (
                types := _flat(result_types, layout.results, Attribute, _TYPES)
                if result_types
                else _none(layout.results)
            )
            is None
            or (parts := _flat(regions, layout.regions, Region, _REGIONS) if regions else _none(layout.regions)) is None
            or (
                ways := _flat(successors, layout.successors, Block, _BLOCKS) if successors else _none(layout.successors)
            )
            is None
        ):
            super().__init__(
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
        _fill(self, values, types, given_properties, given_attributes, None, ways, parts)

    def __post_init__(self) -> None:
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

    @classmethod
    def create(
        cls,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        location: Any = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ) -> Self:
        op = cls.__new__(cls)
        given = dict(properties) if properties else {}, dict(attributes) if attributes else {}
        _fill(op, operands, result_types, *given, location, successors, regions)
        return op

    @classmethod
    def build(cls, **arguments: Any) -> Self:
        op = cls.__new__(cls)
        QuickOp.__init__(op, **arguments)
        return op

    def clone(
        self,
        value_mapper: dict[SSAValue, SSAValue] | None = None,
        block_mapper: dict[Block, Block] | None = None,
        *,
        clone_name_hints: bool = True,
        clone_operands: bool = True,
    ) -> Self:
        if not clone_name_hints:
            return super().clone(value_mapper, block_mapper, clone_name_hints=False, clone_operands=clone_operands)
        values: dict[SSAValue, SSAValue] = {} if value_mapper is None else value_mapper
        blocks: dict[Block, Block] = {} if block_mapper is None else block_mapper
        late = list[Operation]()
        op = _clone(self, values, blocks, late if clone_operands else None)
        if any(operand in values for each in late for operand in operands_of(each)):
            # A value is used before its definition in the order of the text: as xDSL, all operands again.
            for old, new in zip(walk(self), walk(op), strict=True):
                new.operands = [values.get(operand, operand) for operand in operands_of(old)]
        return op

    # ---- reading and erasing ------------------------------------------------------------------------------------------------------

    __hash__ = object.__hash__
    if not TYPE_CHECKING:
        next_op = property(attrgetter("_next_op"))
        prev_op = property(attrgetter("_prev_op"))
        __eq__ = object.__eq__
        successor_uses = property(attrgetter("_successor_uses"))

    @property
    def operands(self) -> OpOperands:
        view = _new(QuickOperands)
        view._op = self
        return view

    @operands.setter
    def operands(self, new: Sequence[SSAValue]) -> None:
        values = SSAValues(new)
        for operand, use in zip(self._operands, self._operand_uses, strict=False):
            _remove_use(operand, use)
        self._operands = values
        self._operand_uses = tuple([_use_of(self, index, value) for index, value in enumerate(values)])

    @property
    def successors(self) -> OpSuccessors:
        view = _new(OpSuccessors)
        view._op = self
        return view

    @successors.setter
    def successors(self, new: Sequence[Block]) -> None:
        Operation.successors.__set__(self, new)

    @property
    def operand_types(self) -> tuple[Attribute, ...]:
        return tuple([value._type for value in self._operands])

    @property
    def result_types(self) -> tuple[Attribute, ...]:
        return tuple([value._type for value in self.results])

    def is_ancestor(self, op: Operation | Block | Region) -> bool:
        return super().is_ancestor(op) if self.regions else op is self

    def parent_op(self) -> Operation | None:
        block = self.parent
        region = None if block is None else block.parent
        return None if region is None else region.parent

    def parent_region(self) -> Region | None:
        block = self.parent
        return None if block is None else block.parent

    def drop_all_references(self) -> None:
        self.parent = None
        for operand, use in zip(self._operands, self._operand_uses, strict=False):
            _remove_use(operand, use)
        self._operand_uses = ()
        if self._successors:
            for successor, use in zip(self._successors, self._successor_uses, strict=False):
                successor.remove_use(use)
            self._successor_uses = ()
            self._successors = ()
        for region in self.regions:
            region.parent = None
            for block in blocks_of(region):
                block.parent = block._next_block = block._prev_block = None
                for op in ops_of(block):
                    op.drop_all_references()

    def erase(self, safe_erase: bool = True, drop_references: bool = True) -> None:
        """Afterwards the op and its results do not refer to each other: they are freed without the cyclic collector."""
        assert self.parent is None, "Operation with parents should first be detached before erasure."
        if drop_references:
            self.drop_all_references()
        for result in self.results:
            if result.first_use is not None:
                result.erase(safe_erase=safe_erase)
        self.results = _NONE

    def walk(self, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
        return walk(self, reverse=reverse, region_first=region_first)


# ---- walks ------------------------------------------------------------------------------------------------------------------------------


def ops_of(block: Block) -> Iterator[Operation]:
    """`block.ops`, one after the other: each may be erased when its turn has come."""
    op = block._first_op
    while op is not None:
        after = op._next_op
        yield op
        op = after


def blocks_of(region: Region) -> Iterator[Block]:
    """`region.blocks`, one after the other."""
    block = region._first_block
    while block is not None:
        after = block._next_block
        yield block
        block = after


def walk(op: Operation, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
    """`op.walk()`, for ops of any class."""
    if reverse:
        return _backward(op, region_first)
    return _inside_first(op) if region_first else _in_text_order(op)


def _in_text_order(op: Operation) -> Iterator[Operation]:
    """Each op, then those inside it. One generator, not one for each level, takes three quarters of the time."""
    yield op
    inner, block, regions = None, None, op.regions
    around = list[tuple[Operation | None, Block | None, Sequence[Region]]]()
    while True:
        while inner is not None:
            after = inner._next_op
            yield inner
            if inner.regions:
                around.append((after, block, regions))
                block, regions, after = None, inner.regions, None
            inner = after
        if block is not None:
            inner, block = block._first_op, block._next_block
        elif regions:
            block, regions = regions[0]._first_block, regions[1:]
        elif around:
            inner, block, regions = around.pop()
        else:
            return


def _inside_first(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        block = region._first_block
        while block is not None:
            next_block = block._next_block
            inner = block._first_op
            while inner is not None:
                after = inner._next_op
                if inner.regions:
                    yield from _inside_first(inner)
                else:
                    yield inner
                inner = after
            block = next_block
    yield op


def _backward(op: Operation, region_first: bool) -> Iterator[Operation]:
    if not region_first:
        yield op
    for region in reversed(op.regions):
        block = region._last_block
        while block is not None:
            prev_block = block._prev_block
            inner = block._last_op
            while inner is not None:
                before = inner._prev_op
                if inner.regions:
                    yield from _backward(inner, region_first)
                else:
                    yield inner
                inner = before
            block = prev_block
    if region_first:
        yield op


class PureOp(QuickOp):
    """An op that does nothing but compute its results."""

    traits = traits_def(Pure())


# ---- subclasses of xDSL's ops -----------------------------------------------------------------------------------------------------------


def quick_ops(ops: Iterable[type[Operation]]) -> dict[str, Any]:
    """A subclass of each of xDSL's ops, by the name of the class: `AddiOp` of `arith.addi`, quick and otherwise the same.

    A module of ours puts them in place of xDSL's names.
    """
    return {op.__name__: _subclass(op) for op in ops if issubclass(op, IRDLOperation)}


def _subclass(op: type[IRDLOperation]) -> Any:
    return PlainMeta(op.__name__, (op, QuickOp), {"__module__": op.__module__, "__doc__": op.__doc__})
