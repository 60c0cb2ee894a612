"""Faster construction of attributes: checks that depend only on the types of the parameters are made once per combination of types.

    IntegerAttr(IntAttr(4), i32)     constraints on both parameters, for each attribute     ->  once for (IntAttr, IntegerType)

A class's own check (`verify`) is made for each attribute, as is a constraint that looks inside a
parameter. Source: xDSL 0.74, xdsl/ir/core.py, xdsl/irdl/constraints.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import AnyAttr, AnyOf, BaseAttr, TypeVarConstraint

from xla_emitters.dialects.xdsl_patches.patch import Member

_set = object.__setattr__

_VERIFIED: dict[type[ParametrizedAttribute], set[tuple[type, ...]] | None] = {}
"""class -> combinations of parameter types that were verified; None if a constraint looks at more than the type."""


def _init(own: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: ParametrizedAttribute, *parameters: Any) -> None:
        definitions = self.get_irdl_definition().parameters
        if len(definitions) != len(parameters):
            own(self, *parameters)
            return
        for (field, definition), parameter in zip(definitions, parameters, strict=True):
            value = parameter if definition.converter is None else definition.converter(parameter)
            _set(self, field, value)
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
    definition = attribute_type.get_irdl_definition()
    try:
        verified = _VERIFIED[attribute_type]
    except KeyError:
        by_type = _are_checked_by_type([each.constr for _, each in definition.parameters])
        verified = _VERIFIED[attribute_type] = set() if by_type else None
    if verified is None:
        definition.verify(self)
    else:
        types: tuple[type, ...] = tuple([getattr(self, field).__class__ for field, _ in definition.parameters])
        if types not in verified:
            definition.verify(self)
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
