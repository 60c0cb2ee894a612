"""Definitions of ops, built on first use instead of at class definition.

xDSL's decorator reads an op's class (operands, attributes, constraints, traits) and makes the accessors, at import: for 735
ops to compile one fusion, which uses a hundred. Here each member that the decorator would make is a placeholder. The first use of one runs
xDSL's own decorator on the class, and the class is then as usual.

    AddfOp.traits          ->   the placeholder runs xDSL's decorator on AddfOp, and returns AddfOp.traits again

Only ops of xDSL and of this package are deferred; a test builds all their definitions. An op of a plugin is defined at once, so that a
mistake is an error at its class. A base class is defined before its subclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl import irdl
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, operations

from xla_emitters.dialects.xdsl_patches.patch import Member

PACKAGES = ("xdsl.", "xla_emitters.")
"""The modules with deferred ops."""
_ALWAYS_MADE = ("get_irdl_definition", "traits", "verify_")
_OF_FORMAT = ("parse", "print")
_CORE = frozenset((*IRDLOperation.__mro__, *Operation.__mro__))
_ABSENT = object()

Define = Callable[[type[Any]], type[Any]]


class _Waiting:
    """A class with a deferred definition, and its own members at the names of the placeholders."""

    def __init__(self, cls: type[Any], define: Define):
        self.cls, self.define = cls, define
        fields = (
            name
            for parent in cls.__mro__
            if parent not in _CORE
            for name, value in parent.__dict__.items()
            if isinstance(value, operations._OpDefField)  # pyright: ignore[reportPrivateUsage]
        )
        format_members = _OF_FORMAT if getattr(cls, "assembly_format", None) is not None else ()
        self.written = {name: cls.__dict__.get(name, _ABSENT) for name in (*fields, *_ALWAYS_MADE, *format_members)}
        for name in self.written:
            setattr(cls, name, _Placeholder(self, name))

    def settle(self) -> None:
        for name, value in self.written.items():
            if value is _ABSENT:
                delattr(self.cls, name)
            else:
                setattr(self.cls, name, value)
        self.written = {}
        self.define(self.cls)


class _Placeholder:
    """Placeholder of one member of a deferred class."""

    def __init__(self, waiting: _Waiting, name: str):
        self.waiting, self.name = waiting, name

    def __get__(self, instance: object | None, owner: type[Any]) -> Any:
        self.waiting.settle()
        return getattr(owner if instance is None else instance, self.name)

    def __set__(self, instance: object, value: Any) -> None:
        self.waiting.settle()
        setattr(instance, self.name, value)


def is_waiting(cls: type[Any]) -> bool:
    """Whether the class's definition is still deferred."""
    return _waiting(cls) is not None


def _waiting(cls: type[Any]) -> _Waiting | None:
    member = cls.__dict__.get("get_irdl_definition")
    return member.waiting if isinstance(member, _Placeholder) else None


def _lazily(define: Define) -> Define:
    def definition(cls: type[Any]) -> type[Any]:
        for parent in cls.__mro__[1:]:
            if waiting := _waiting(parent):
                waiting.settle()
        if not cls.__module__.startswith(PACKAGES):
            return define(cls)
        _Waiting(cls, define)
        return cls

    return definition


WHY = "works out an op's definition when its class is made"
OPS = tuple(Member(holder, "irdl_op_definition", WHY, _lazily) for holder in (operations, irdl))
