"""`isinstance`, hashes and equality of IR objects by the interpreter itself, in place of Python calls.

    isinstance(op, arith.AddiOp)      ABCMeta.__instancecheck__: a cache of subclasses, two calls     ->  a walk over the type's bases, in C
    values[result]                    SSAValue.__hash__ is `id(self)` written in Python               ->  object.__hash__
    isa(attribute, IndexType)         the hint taken apart, for generic ones, each time               ->  isinstance, where it is a class;
                                                                                                          else its constraint is kept

xDSL's attributes, ops, blocks, regions and values are abstract base classes, so that each `isinstance` looks for virtual
subclasses (`ABCMeta.register`); these classes have none. `PlainMeta` is ABCMeta without that look-up: abstract methods stay
abstract. Later classes inherit it. A class with a metaclass other than ABCMeta keeps its own.

Does not change which object is an instance of which class, nor which objects are equal. Source: xDSL 0.74, xdsl/ir/core.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xdsl.ir import (
    Attribute,
    Block,
    BlockArgument,
    Operation,
    OpResult,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
    Use,
    core,
)
from xdsl.irdl import AttrConstraint, IRDLOperation, VerificationContext, irdl_to_attr_constraint
from xdsl.utils import hints
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.xdsl_patches.patch import Member, Patch

_ROOTS: tuple[type, ...] = (Attribute, core.IRWithUses, core.IRWithName, core._IRNode)
_COMPARED_BY_IDENTITY: tuple[type, ...] = (
    *(SSAValue, OpResult, BlockArgument, core.ErasedSSAValue, Use),
    *(core._IRNode, Operation, Block, Region, IRDLOperation),
)


class PlainMeta(ABCMeta):
    """The metaclass of abstract classes without virtual subclasses."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def _isa(own: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def isa(arg: Any, hint: Any) -> bool:
        if isinstance(hint, type) and hint is not Any:
            return isinstance(arg, hint)
        # For a generic attribute, first check the class itself.
        if type(hint).__name__ == "_GenericAlias":  # not Annotated, which has an origin too
            origin = getattr(hint, "__origin__", None)
            if isinstance(origin, PlainMeta):
                if not isinstance(arg, origin):
                    return False
                if issubclass(origin, TypeAttribute):
                    return _type_fits(arg, hint)
                if issubclass(origin, ParametrizedAttribute):
                    return _fits(arg, _constraint_of(hint))
        return own(arg, hint)

    return isa


@lru_cache(1024)
def _constraint_of(hint: Any) -> AttrConstraint:
    return irdl_to_attr_constraint(hint)


@lru_cache(4096)
def _type_fits(found: Attribute, hint: Any) -> bool:
    """Cached: a kernel has few types."""
    return _fits(found, _constraint_of(hint))


def _fits(attribute: Attribute, constraint: AttrConstraint) -> bool:
    try:
        constraint.verify(attribute, VerificationContext())
    except VerifyException:
        return False
    return True


@dataclass(frozen=True)
class PlainClasses(Patch):
    """`root` and all classes below it get the metaclass PlainMeta in place of ABCMeta."""

    root: type
    why: str

    def apply(self) -> None:
        for found in (self.root, *_below(self.root)):
            if type(found) is ABCMeta:
                # Both metaclasses have one memory layout; pyright takes `__class__` of a class as read-only.
                holder: Any = found
                holder.__class__ = PlainMeta


def _below(root: type) -> Iterator[type]:
    for subclass in type.__subclasses__(root):
        yield subclass
        yield from _below(subclass)


FAST_CLASSES: tuple[Patch, ...] = (
    Member(hints, "isa", "takes a class apart as if it were a generic one", _isa),
    *(PlainClasses(root, "isinstance asks for virtual subclasses, of which there are none") for root in _ROOTS),
    *(
        Member(holder, name, "identity, computed in Python", lambda _, name=name: getattr(object, name))
        for holder in _COMPARED_BY_IDENTITY
        for name in ("__hash__", "__eq__")
        if name in holder.__dict__
    ),
)
