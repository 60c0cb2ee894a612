"""Faster construction of attributes: checks that depend only on the types of the parameters are made once per combination of types.

    IntegerAttr(IntAttr(4), i32)     constraints on both parameters, for each attribute     ->  once for (IntAttr, IntegerType)

Constraints that look inside a parameter are checked once for equal parameters. What a class checks beyond its parameters' constraints
(`verify`) is checked for each attribute. Source: xDSL 0.74, xdsl/ir/core.py, xdsl/irdl/constraints.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import AnyAttr, AnyOf, BaseAttr, TypeVarConstraint

from xla_emitters.dialects.xdsl_patches.patch import Member

_set = object.__setattr__

_VERIFIED: dict[type[ParametrizedAttribute], set[tuple[type, ...]] | None] = {}
"""class -> combinations of parameter types that were verified; None if a constraint looks at more than the type."""


_VERIFIED_VALUES: set[tuple[Any, ...]] = set()
"""(class, parameters) that were verified, of the classes whose constraints look at more than types."""
_VALUES_KEPT = 8192

_Fields = tuple[tuple[str, Callable[[Any], Any] | None], ...]
_FIELDS: dict[type[ParametrizedAttribute], _Fields] = {}
"""class -> the names of its parameters, each with what converts a value that is given for it."""


def _fields_of(attribute_type: type[ParametrizedAttribute]) -> _Fields:
    definitions = attribute_type.get_irdl_definition().parameters
    found = _FIELDS[attribute_type] = tuple((name, definition.converter) for name, definition in definitions)
    return found


def _init(own: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: ParametrizedAttribute, *parameters: Any) -> None:
        if (fields := _FIELDS.get(type(self))) is None:
            fields = _fields_of(type(self))
        if len(fields) != len(parameters):
            own(self, *parameters)
            return
        for (field, converter), parameter in zip(fields, parameters, strict=True):
            _set(self, field, parameter if converter is None else converter(parameter))
        self.__post_init__()

    return __init__


def _depends_on_type(constraint: Any) -> bool:
    """Whether the constraint accepts all attributes of a class or none."""
    if type(constraint) is AnyOf:
        return all(_depends_on_type(each) for each in constraint.attr_constrs)
    if type(constraint) is TypeVarConstraint:
        return _depends_on_type(constraint.base_constraint)
    return type(constraint) in (AnyAttr, BaseAttr)


def _are_checked_by_type(constraints: Sequence[Any]) -> bool:
    """Whether the types of parameters decide all constraints. Two parameters with one type variable must also be equal."""
    variables = [constraint.type_var for constraint in constraints if type(constraint) is TypeVarConstraint]
    return len(set(variables)) == len(variables) and all(map(_depends_on_type, constraints))


def _verify(self: ParametrizedAttribute) -> None:
    """`ParametrizedAttribute._verify`."""
    attribute_type = type(self)
    try:
        verified = _VERIFIED[attribute_type]
    except KeyError:
        definition = attribute_type.get_irdl_definition()
        by_type = _are_checked_by_type([each.constr for _, each in definition.parameters])
        verified = _VERIFIED[attribute_type] = set() if by_type else None
    if (fields := _FIELDS.get(attribute_type)) is None:
        fields = _fields_of(attribute_type)
    if verified is None and isinstance(self, LocationAttr):  # each is of a place of its own
        attribute_type.get_irdl_definition().verify(self)
    elif verified is None:
        key = (attribute_type, *[getattr(self, field) for field, _ in fields])
        if key not in _VERIFIED_VALUES:
            attribute_type.get_irdl_definition().verify(self)
            if len(_VERIFIED_VALUES) >= _VALUES_KEPT:
                _VERIFIED_VALUES.clear()
            _VERIFIED_VALUES.add(key)
    else:
        types: tuple[type, ...] = tuple([getattr(self, field).__class__ for field, _ in fields])
        if types not in verified:
            attribute_type.get_irdl_definition().verify(self)
            verified.add(types)
    self.verify()


def _post_init(self: Attribute) -> None:
    """`Attribute.__post_init__` of the two classes that it delegates to."""
    self._verify()


FAST_ATTRIBUTES: tuple[Member, ...] = (
    *(
        Member(holder, "__post_init__", "asks which of the two classes it is", lambda _: _post_init)
        for holder in (Data, ParametrizedAttribute)
    ),
    Member(ParametrizedAttribute, "__init__", "goes through a dataclass's __init__", _init),
    Member(ParametrizedAttribute, "_verify", "checks types of parameters for each attribute", lambda _: _verify),
)
