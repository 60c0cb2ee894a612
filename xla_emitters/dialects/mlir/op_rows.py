"""Op classes made from rows: ops that differ only in name, and ops that are read, executed and printed but never built.

    SIN, COS = (op_of_family(FloatUnaryOp, f"llvm.intr.{name}") for name in ("sin", "cos"))
    NanosleepOp = op_of_row("nvvm.nanosleep", "attr-dict $duration", duration=operand_def(I32))

A row has the parts of an op's class: its name, its syntax, its operands, results and properties by name, its traits, and a check beyond
the fields. Ops that the compiler builds, or whose syntax no declarative format expresses, have classes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import new_class
from typing import Any, TypeVar, cast

from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, ParsePropInAttrDict, traits_def
from xdsl.irdl.declarative_assembly_format import CustomDirective
from xdsl.traits import OpTrait

from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

FamilyT = TypeVar("FamilyT", bound=QuickOp)

GENERIC_FORM = None
"""The syntax of an op that has no custom form."""

AS_FUNCTION = "`(` operands `)` attr-dict `:` functional-type(operands, results)"
"""`name(%a, %b) {attributes} : (f32, i32) -> f32`"""


def op_of_family(family: type[FamilyT], name: str) -> type[FamilyT]:
    """The op `name`, with the fields, syntax and traits of `family`."""
    return _op(family, name, {})


def op_of_row(
    name: str,
    syntax: str | None,
    *,
    properties: Mapping[str, Any] | None = None,
    traits: Sequence[OpTrait] = (),
    verify: Callable[[Any], None] | None = None,
    directives: Sequence[type[CustomDirective]] = (),
    has_segments: bool = False,
    **values: Any,
) -> type[IRDLOperation]:
    """The op `name`.

    syntax      its declarative format, or GENERIC_FORM; properties that it does not mention are written in the attribute dictionary
    properties  name -> `prop_def(...)` or `opt_prop_def(...)`
    verify      called with an op whose fields are valid; raises VerifyException for other errors
    directives  custom ones of its syntax
    has_segments  whether the counts of operands are a property
    values      operands and results in order: name -> `operand_def(...)`, `result_def(...)` ...
    """
    properties = properties or {}
    members: dict[str, Any] = {**values, **properties}
    if syntax is not None:
        members["assembly_format"] = syntax
    in_dictionary = syntax is not None and any(f"${name}" not in syntax for name in properties)
    members["irdl_options"] = (
        *((ParsePropInAttrDict(),) if in_dictionary else ()),
        *((AttrSizedOperandSegments(as_property=True),) if has_segments else ()),
    )
    if traits:
        members["traits"] = traits_def(*traits)
    if directives:
        members["custom_directives"] = tuple(directives)
    if verify is not None:
        members["verify_"] = verify
    return _op(QuickOp, name, members)


def _op(base: type[FamilyT], name: str, members: dict[str, Any]) -> type[FamilyT]:
    def fill(namespace: dict[str, Any]) -> None:
        namespace |= {"name": name, "__module__": base.__module__, **members}

    stem = "".join(part.capitalize() for part in name.replace("_", ".").split("."))
    return op_definition(cast(type[FamilyT], new_class(f"{stem}Op", (base,), exec_body=fill)))
