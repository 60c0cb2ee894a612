"""The locations of StableHLO text: `loc(...)` after an op, and aliases `#loc3 = loc(...)`, which may follow the ops that use them.

    loc("jit(f)/add"(#loc21))                      a name, and its place
    loc("layer.py":7:2 to :53)                     a place in a file
    loc(callsite(#loc13 at #loc12))                a place, and that of its caller
    loc(fused<...>["a", #loc1])   loc(unknown)     several locations; none

An op keeps these as HLO's metadata: {op_name="jit(f)/add" source_file="layer.py" source_line=7 stack_frame_id=4}. The name is the outermost
one, which JAX gives to ops; a name around a place in a file is the function there. The place is that of the frame that
`text/hlo/stack_frames.py` would show; the whole stack is in the module's tables.
Source: MLIR language reference, "Location attributes" (https://mlir.llvm.org/docs/Dialects/Builtin/#location-attributes).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from xla_emitters.text.hlo.stack_frames import PythonFrame, StackTables, own_frame
from xla_emitters.text.stablehlo.stablehlo_lexer import StableHloCursor, StableHloTokenKind, unquoted

_DEEPEST = 100


@dataclass(frozen=True)
class Location:
    """A location.

    name     of the op in the program that the text was made from; or None
    file     and `line`: its place in that program; or None
    alias    `#loc3`: the location with that alias; or None
    inside   the locations that this one contains
    is_call  whether these are the places of a callee and of its caller
    """

    name: str | None = None
    file: str | None = None
    line: int = 0
    alias: str | None = None
    inside: tuple[Location, ...] = ()
    is_call: bool = False


def parse_location(cursor: StableHloCursor) -> Location:
    """Consumes `loc(...)`."""
    cursor.expect("loc", "before a location")
    cursor.expect("(", "after 'loc'")
    with cursor.nested():
        found = _parse_inside(cursor)
    cursor.expect(")", "after a location")
    return found


def _parse_inside(cursor: StableHloCursor) -> Location:
    token = cursor.token
    if token.kind is StableHloTokenKind.ATTRIBUTE:
        cursor.advance()
        return Location(alias=token.text)
    if token.kind is StableHloTokenKind.STRING:
        cursor.advance()
        if cursor.at(":"):
            return _parse_file(cursor, unquoted(token.text))
        inside: tuple[Location, ...] = ()
        if cursor.accept("("):
            with cursor.nested():
                inside = (_parse_inside(cursor),)
            cursor.expect(")", "after a location")
        return Location(name=unquoted(token.text), inside=inside)
    if cursor.accept("unknown"):
        return Location()
    if cursor.accept("callsite"):
        cursor.expect("(", "after 'callsite'")
        with cursor.nested():
            callee = _parse_inside(cursor)
            cursor.expect("at", "between the callee's and the caller's location")
            caller = _parse_inside(cursor)
        cursor.expect(")", "after a location")
        return Location(inside=(callee, caller), is_call=True)
    if cursor.accept("fused"):
        if cursor.at("<"):
            cursor.group("the metadata of a location")
        cursor.expect("[", "before the locations")
        with cursor.nested():
            return Location(inside=tuple(cursor.items("]", lambda: _parse_inside(cursor), "a location")))
    raise cursor.unexpected("a location: a name, a file, callsite, fused, unknown or an alias")


def _parse_file(cursor: StableHloCursor, file: str) -> Location:
    cursor.expect(":", "after a file")
    line = cursor.integer("the line")
    if cursor.accept(":"):
        cursor.integer("the column")
    if cursor.accept("to"):
        if cursor.token.kind is StableHloTokenKind.INT:
            cursor.integer("the last line")
        cursor.expect(":", "before the last column")
        cursor.integer("the last column")
    return Location(file=file, line=line)


def name_of(location: Location | None, aliases: Mapping[str, Location]) -> str | None:
    """The outermost name, or None."""
    return _name(location, aliases, _DEEPEST)


def metadata(location: Location | None, aliases: Mapping[str, Location], tables: StackTables) -> str:
    """HLO's metadata of a location, or "". Its frames are added to `tables`."""
    parts = list[str]()
    if name := name_of(location, aliases):
        parts.append(f"op_name={json.dumps(name)}")
    stack = _stack(location, aliases, _DEEPEST, None)
    if frame := own_frame(stack):
        parts.append(f"source_file={json.dumps(frame.file)} source_line={frame.line}")
        if any(each.function for each in stack):
            parts.append(f"stack_frame_id={tables.add(stack)}")
    return f"{{{' '.join(parts)}}}" if parts else ""


def _name(location: Location | None, aliases: Mapping[str, Location], depth: int) -> str | None:
    if location is None or depth == 0:
        return None
    if location.alias is not None:
        return _name(aliases.get(location.alias), aliases, depth - 1)
    if location.name is not None:
        return location.name
    return next((found for inside in location.inside if (found := _name(inside, aliases, depth - 1))), None)


def _stack(
    location: Location | None, aliases: Mapping[str, Location], depth: int, around: str | None
) -> tuple[PythonFrame, ...]:
    """The frames of a location, innermost first. `around`: the name around it; None for the location of an op itself."""
    if location is None or depth == 0:
        return ()
    if location.alias is not None:
        return _stack(aliases.get(location.alias), aliases, depth - 1, around)
    if location.file is not None:
        return (PythonFrame(location.file, location.line, around or ""),)
    if location.name is not None:
        # The outermost name is the op's.
        inner = "" if around is None else location.name
        return next((found for inside in location.inside if (found := _stack(inside, aliases, depth - 1, inner))), ())
    inner = (around or "") if location.is_call else around
    found = [_stack(inside, aliases, depth - 1, inner) for inside in location.inside]
    return tuple(frame for stack in found for frame in stack) if location.is_call else next(filter(None, found), ())
