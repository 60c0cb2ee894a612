"""Whether an attribute is of a type, generic ones included: `isa(value, TensorType[IntegerType])`.

xDSL's `isa` takes the hint apart each time, and makes the constraint of a generic attribute anew. Here a class is asked with `isinstance`,
the constraint of a generic attribute is made once, and its answers for types are kept: a kernel has few. The answers are xDSL's.
"""

from __future__ import annotations

from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, get_args, get_origin

from xdsl.dialects.builtin import ArrayAttr, VectorType
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import AttrConstraint, VerificationContext, irdl_to_attr_constraint
from xdsl.utils import hints
from xdsl.utils.exceptions import VerifyException

if TYPE_CHECKING:
    from typing_extensions import TypeForm

_T = TypeVar("_T")
_GENERIC: Any = (type(VectorType[Attribute]), type(ArrayAttr[Attribute]))
"""What a generic attribute is: Python's own class for those that write `__class_getitem__`, that of `typing` for others."""


def isa(arg: Any, hint: TypeForm[_T]) -> TypeGuard[_T]:
    """Whether `arg` is of the type that `hint` says: a class, a generic attribute, or what else xDSL's `isa` takes."""
    kind: Any = type(hint)
    if kind in _GENERIC:
        origin: Any = get_origin(hint)
        if isinstance(origin, type) and issubclass(origin, Attribute):
            # The class itself is asked first: most answers are no.
            if origin not in type(arg).__mro__:
                return False
            return _type_fits(arg, hint) if issubclass(origin, TypeAttribute) else _fits(arg, _constraint_of(hint))
    elif kind is UnionType:
        return any(isa(arg, each) for each in get_args(hint))
    elif issubclass(kind, type) and hint is not Any:
        # Attributes have no virtual subclasses, which xDSL's metaclass would look for.
        bases = type(arg).__mro__
        wanted: Any = hint
        return wanted in bases or (arg is not None and Attribute not in bases and isinstance(arg, wanted))
    return hints.isa(arg, hint)


@lru_cache(1024)
def _constraint_of(hint: Any) -> AttrConstraint:
    return irdl_to_attr_constraint(hint)


@lru_cache(4096)
def _type_fits(found: Attribute, hint: Any) -> bool:
    return _fits(found, _constraint_of(hint))


def _fits(attribute: Attribute, constraint: AttrConstraint) -> bool:
    try:
        constraint.verify(attribute, VerificationContext())
    except VerifyException:
        return False
    return True
