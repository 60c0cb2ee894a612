"""Ops that differ in name alone, made from a base class and a name each.

FRoundOp = op_of_family(FloatUnaryOp, "llvm.intr.round")
"""

from __future__ import annotations

from types import new_class
from typing import Any, TypeVar, cast

from xdsl.irdl import IRDLOperation, irdl_op_definition

FamilyT = TypeVar("FamilyT", bound=IRDLOperation)


def op_of_family(family: type[FamilyT], name: str) -> type[FamilyT]:
    """The op `name`, with the fields, syntax and traits of `family`."""

    def fill(namespace: dict[str, Any]) -> None:
        namespace["name"] = name
        namespace["__module__"] = family.__module__

    stem = "".join(part.capitalize() for part in name.replace("_", ".").split("."))
    return irdl_op_definition(cast(type[FamilyT], new_class(f"{stem}Op", (family,), exec_body=fill)))
