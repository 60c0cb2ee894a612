"""The locations of ops: which HLO instruction an op comes from, and how passes keep, copy and fuse that.

    loc("tanh_0"("gelu.hlo":19:3))                       an op of HLO instruction %tanh_0
    loc(fused["add_0"(...), "multiply_1"(...)])          one op that does the work of two
    loc(unknown)                                         terminators, and constants shared by a whole function

Every op except terminators and shared constants has a known location after every pass, down to the LLVM dialect. So a new op gets the
location of the op that it replaces, and an op that replaces two gets both. The last functions here put values or an op in an op's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.attributes import NONE, unchecked
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.quick_op import walk

UNKNOWN = UnknownLoc()


def location_at(file: str, line: int, column: int) -> FileLineColLoc:
    """A place in a text, counted from 1."""
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def fuse_locations(a: LocationAttr, b: LocationAttr) -> LocationAttr:
    """The location of an op that does the work of two: both, each part once, in order.

    An unknown location adds nothing; nested fusions are flattened.
    """
    if a is b or type(b) is UnknownLoc or a == b:
        return a
    if type(a) is UnknownLoc:
        return b
    parts = dict.fromkeys((*parts_of(a), *parts_of(b)))
    if isinstance(a, FusedLoc) and len(parts) == len(_fused(a)):
        return a  # it has all of b's
    return _of_parts(parts)


def fuse_all(locations: Iterable[LocationAttr]) -> LocationAttr:
    """As `fuse_locations`, of any number of them."""
    return _of_parts(dict.fromkeys(part for location in locations for part in parts_of(location)))


def _of_parts(parts: Mapping[Attribute, None]) -> LocationAttr:
    if not parts:
        return UNKNOWN
    if len(parts) == 1:
        (only,) = parts
        return cast(LocationAttr, only)
    return unchecked(FusedLoc, locations=unchecked(ArrayAttr, data=tuple(parts)), metadata=NONE)


def parts_of(location: Attribute) -> tuple[Attribute, ...]:
    """The locations that a location is fused of, or itself alone; () for an unknown one."""
    if type(location) is UnknownLoc:
        return ()
    if type(location) is not FusedLoc:
        return (location,)
    return tuple(part for inner in _fused(location) for part in parts_of(inner))


def _fused(location: FusedLoc) -> ArrayAttr[Attribute]:
    # xDSL declares the field as any attribute and checks at construction that it is an array of locations.
    return cast(ArrayAttr[Attribute], location.locations)


def place_of(op: Operation) -> str:
    """The location of `op` as text for messages: `tanh_0 (gelu.hlo:19:3)`; "" if none is known.

    For an op without a location it is that of the nearest enclosing op that has one.
    """
    holder: Operation | None = op
    while holder is not None:
        if text := place_text(holder.location):
            return text
        holder = holder.parent_op()
    return ""


def place_text(location: Attribute) -> str:
    """A location as messages have it: see `place_of`."""
    match location:
        case NameLoc():
            inner = place_text(location.location)
            return f"{location.desc.data} ({inner})" if inner else location.desc.data
        case FileLineColLoc():
            return f"{location.filename.data}:{location.line.data}:{location.column.data}"
        case FusedLoc():
            return ", ".join(text for part in _fused(location) if (text := place_text(part)))
        case CallSiteLoc():
            return place_text(location.callee) or place_text(location.caller)
        case _:
            return ""


def instructions_of(op: Operation) -> tuple[str, ...]:
    """The names of the HLO instructions that `op` comes from, each once; () for an op without a location."""
    return tuple(dict.fromkeys(part.desc.data for part in parts_of(op.location) if isinstance(part, NameLoc)))


def first_position(op: Operation) -> tuple[str, int] | None:
    """File and line, from 1, of the first HLO instruction that `op` comes from; None where no position is known."""
    return next((at for part in parts_of(op.location) if (at := _position(part))), None)


def _position(location: Attribute) -> tuple[str, int] | None:
    match location:
        case NameLoc():
            return _position(location.location)
        case FileLineColLoc():
            return location.filename.data, location.line.data
        case CallSiteLoc():
            return _position(location.callee) or _position(location.caller)
        case _:
            return None


def locate(op: Operation, location: LocationAttr) -> None:
    """Gives `location` to `op` and to the ops inside it that have none of their own."""
    if type(op.location) is UnknownLoc:
        op.location = location
    if op.regions:
        for inner in walk(op):
            if type(inner.location) is UnknownLoc:
                inner.location = location


def located_builder(insert_point: InsertPoint, location_of: Operation) -> Builder:
    """A builder whose inserted ops get `location_of`'s location if they have none of their own."""
    builder = QuickBuilder(insert_point)
    location = location_of.location
    builder.operation_insertion_handler.append(lambda op: locate(op, location))
    return builder


# ---- in the place of an op ---------------------------------------------------------------------------------------------------------------


def copy_names(old: Iterable[SSAValue], new: Iterable[SSAValue]) -> None:
    """Names the new values as the old ones, which are as many."""
    for before, after in zip(old, new, strict=True):
        after.name_hint = before.name_hint


def take_over(op: Operation, new: Operation) -> Operation:
    """`new` with the attributes, location and names of `op`, whose results it has."""
    new.attributes.update(op.attributes)
    new.location = op.location
    copy_names(op.results, new.results)
    return new


def replace_alike(op: Operation, new: Operation) -> None:
    """Replaces `op` by `new`, with attributes, location and names."""
    Rewriter.replace_op(op, take_over(op, new))


def replace_by(op: Operation, values: Sequence[SSAValue]) -> None:
    """Replaces the op's results by `values`, gives unnamed values the results' names, and erases the op."""
    for result, value in zip(op.results, values, strict=True):
        if value.name_hint is None:
            value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def block_like(block: Block) -> Block:
    """An empty block with the arguments of `block`."""
    made = Block(arg_types=block.arg_types)
    copy_names(block.args, made.args)
    for new, old in zip(made.args, block.args, strict=True):
        new.location = old.location
    return made
