"""`@op_definition`: xDSL's `irdl_op_definition` for our ops, which works a class out when it is first used.

xDSL's decorator reads an op's class (operands, attributes, constraints, traits), makes the accessors and compiles the format, at import:
for hundreds of ops to compile one fusion, which uses a hundred. Here each member that the decorator would make is a placeholder. The first
use of one runs xDSL's code on the class, and the class is then as usual; its format is compiled when it first reads or prints an op.

    LoopOp.traits          ->   the placeholder defines LoopOp, and returns LoopOp.traits again

A base class is defined before its subclasses. xDSL's code reads a twin of the class, which has the class's own members; what it makes takes
the places of the placeholders one by one, so that another thread finds either the placeholder, for which it waits, or the member. A test
defines all of them. A mistake in a plugin's op is an error at its class, because it uses xDSL's decorator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from threading import RLock
from types import new_class
from typing import Any, TypeVar

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, operations
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.irdl.operations import OpDef, get_accessors_from_op_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from xla_emitters.dialects.quick_accessors import quick_accessors
from xla_emitters.dialects.quick_op import QuickOp

_ALWAYS_MADE = ("get_irdl_definition", "traits", "verify_")
_CORE = frozenset((*QuickOp.__mro__, *IRDLOperation.__mro__, *Operation.__mro__))
_ABSENT = object()
_LOCK = RLock()
_NOT_COPIED = frozenset(("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl"))
"""Members that each class has of its own."""
_FIELD: Any = operations._OpDefField  # pyright: ignore[reportPrivateUsage]  # all kinds of fields

_OpTypeT = TypeVar("_OpTypeT", bound=type[IRDLOperation])


def op_definition(cls: _OpTypeT) -> _OpTypeT:
    """Decorator of an op class: as xDSL's, when the class is first used."""
    for parent in cls.__mro__[1:]:
        if waiting := _waiting(parent):
            waiting.settle()
    _Waiting(cls)
    return cls


def is_waiting(cls: type[Any]) -> bool:
    """Whether the class is not yet defined."""
    return _waiting(cls) is not None


def _waiting(cls: type[Any]) -> _Waiting | None:
    member = cls.__dict__.get("get_irdl_definition")
    return member.waiting if isinstance(member, _Placeholder) else None


class _Waiting:
    """A class that is not yet defined, and its own members at the names of the placeholders."""

    def __init__(self, cls: type[Any]):
        self.cls = cls
        fields = (
            name
            for parent in cls.__mro__
            if parent not in _CORE
            for name, value in parent.__dict__.items()
            if isinstance(value, _FIELD)
        )
        format_members = ("parse", "print") if getattr(cls, "assembly_format", None) is not None else ()
        self.written = {name: cls.__dict__.get(name, _ABSENT) for name in (*fields, *_ALWAYS_MADE, *format_members)}
        for name in self.written:
            setattr(cls, name, _Placeholder(self, name))

    def settle(self) -> None:
        """Defines the class, once. Another thread that comes meanwhile waits."""
        with _LOCK:
            if not self.written:
                return
            own = {name: value for name, value in self.written.items() if value is not _ABSENT}
            twin = _twin(self.cls, own)
            made = members_of(OpDef.from_pyrdl(twin), getattr(twin, "verify_", None))
            for name in (*self.written, *made):
                if name in made or name in own:
                    setattr(self.cls, name, made[name] if name in made else own[name])
                elif isinstance(self.cls.__dict__.get(name), _Placeholder):
                    delattr(self.cls, name)
            quick_accessors(self.cls)
            self.written = {}


class _Placeholder:
    """Placeholder of one member of a class that is not yet defined."""

    def __init__(self, waiting: _Waiting, name: str):
        self.waiting, self.name = waiting, name

    def __get__(self, instance: object | None, owner: type[Any]) -> Any:
        self.waiting.settle()
        return getattr(owner if instance is None else instance, self.name)

    def __set__(self, instance: object, value: Any) -> None:
        self.waiting.settle()
        setattr(instance, self.name, value)


def _twin(cls: type[Any], own: dict[str, Any]) -> type[Any]:
    """A class like `cls`, with these members in place of the placeholders."""
    kept = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in _NOT_COPIED and not isinstance(value, _Placeholder)
    }
    return new_class(cls.__name__, cls.__bases__, exec_body=lambda members: members.update({**kept, **own}))


def members_of(definition: OpDef, check: Callable[[Any], None] | None) -> dict[str, Any]:
    """What xDSL's decorator gives a class of this definition, but for the format, which is compiled when it is first used.

    check  the class's `verify_`
    """
    members = get_accessors_from_op_def(replace(definition, assembly_format=None), check)
    members["get_irdl_definition"] = classmethod(lambda _: definition)
    if definition.assembly_format is not None:
        members |= _Format(definition.assembly_format, definition).members()
    return members


class _Format:
    """A declarative format that is compiled when it is first used."""

    def __init__(self, text: str, definition: OpDef):
        self.text, self.definition = text, definition

    @cached_property
    def program(self) -> FormatProgram:
        return FormatProgram.from_str(self.text, self.definition)

    def members(self) -> dict[str, Any]:
        """`parse` and `print` of the class."""

        def parse(cls: Any, parser: Parser) -> Any:
            return self.program.parse(parser, cls)

        def print(op: Any, printer: Printer) -> None:  # noqa: A001 (xDSL's name)
            self.program.print(printer, op)

        return {"parse": classmethod(parse), "print": print}


def format_of(op_type: type[Any]) -> FormatProgram | None:
    """The declarative format that the class prints its ops with; None if it has a `print` of its own."""
    for cell in (
        getattr(op_type.print, "__closure__", None) or ()
    ):  # of the function that `members`, or xDSL's decorator, made
        found = cell.cell_contents
        if isinstance(found, _Format):
            return found.program
        if isinstance(found, FormatProgram):
            return found
    return None
