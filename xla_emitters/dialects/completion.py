"""Ops of xDSL's that lack something, completed by subclasses of ours: the same op, in our context.

    @completed
    class ExtSIOp(upstream.ExtSIOp):
        input = operand_def(INTEGER_LIKE)          in place of xDSL's operand of that name
        result = result_def(INTEGER_LIKE)
        exact = opt_prop_def(UnitAttr)             a property more
        assembly_format = "..."                    in place of xDSL's

xDSL's classes stay as they are, for everybody else in the process. Its passes and patterns match ours by `isinstance`, because ours are
subclasses. A subclass that changes methods only (`parse`, `print`, `verify_`) is an ordinary one, and needs no decorator. One
without methods is a row: `SIToFPOp = completed_by(upstream.SIToFPOp, input=operand_def(INTEGER_LIKE))`.

The other direction does not hold: an op that xDSL makes itself is of xDSL's class, and no instance of ours. `adopt` turns it into one. The
pattern driver does that to every op that a pattern inserts, `run_pass` to all after a pass that is not ours, and our passes for stock
`xdsl-opt` to all before they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import getclosurevars
from types import FunctionType, new_class
from typing import Any, TypeVar, cast

from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import IRDLOperation, OperandDef, OptPropertyDef, ResultDef
from xdsl.irdl.operations import BaseAccessor, OpDef

from xla_emitters.dialects.op_definition import members_of
from xla_emitters.dialects.quick_accessors import quick_accessors
from xla_emitters.dialects.quick_op import QuickOp, quick_ops

OpT = TypeVar("OpT", bound=IRDLOperation)
AdoptedT = TypeVar("AdoptedT", bound=Operation)
KindT = TypeVar("KindT", Operation, Attribute)

_OWN: dict[type[Operation], type[Operation]] = {}
"""xDSL's class of an op -> ours, of the dialects that are loaded."""


def completed(cls: type[OpT]) -> type[OpT]:
    """Defines a subclass of an op of xDSL's by the fields that it states, and by xDSL's where it states none.

    A `verify_` is the check beyond the fields. xDSL's check of that kind runs before it, unless an operand's or result's type is
    stated: xDSL's is then written for other types.
    """
    parent = cls.__bases__[0]
    assert issubclass(parent, IRDLOperation), f"{cls.__name__} completes no op"
    members = dict(vars(cls))
    fields = {name: value for name, value in members.items() if _is_field(name, value)}
    stated = OpDef.from_pyrdl(
        cast(type[IRDLOperation], new_class(cls.__name__, (IRDLOperation,), {}, fields_of(cls.name, fields)))
    )
    xdsls = parent.get_irdl_definition()
    types: dict[str, OperandDef | ResultDef] = dict([*stated.operands, *stated.results])
    definition = replace(
        xdsls,
        operands=[(name, cast(OperandDef, types.get(name, found))) for name, found in xdsls.operands],
        results=[(name, cast(ResultDef, types.get(name, found))) for name, found in xdsls.results],
        properties=xdsls.properties | stated.properties,
        options=[*xdsls.options, *stated.options],
        accessor_names=xdsls.accessor_names | stated.accessor_names,
        custom_directives=xdsls.custom_directives | stated.custom_directives,
        assembly_format=None if "parse" in members else stated.assembly_format or xdsls.assembly_format,
    )
    checks = [members.get("verify_")] if types else [_check_of(parent), members.get("verify_")]
    made = members_of(definition, _all_of([check for check in checks if check is not None]))
    for name in ("get_irdl_definition", "verify_", "parse", "print", *types, *stated.accessor_names):
        if name in made:
            setattr(cls, name, made[name])
    quick_accessors(cls)
    return cls


def completed_by(parent: type[OpT], **members: Any) -> type[OpT]:
    """`completed` of a class that has `members` alone."""

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(members, __module__=parent.__module__, __doc__=parent.__doc__)

    return completed(cast(type[OpT], new_class(parent.__name__, (parent, QuickOp), exec_body=fill)))


def fields_of(name: str, fields: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Fills the namespace of the class of an op `name` that has `fields` alone."""

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(fields, name=name)

    return fill


def _is_field(name: str, value: object) -> bool:
    return not name.startswith("__") and not isinstance(
        value, FunctionType | classmethod | staticmethod | property | BaseAccessor
    )


def _check_of(op: type[IRDLOperation]) -> Callable[[Any], None] | None:
    """The check beyond the fields of an op of xDSL's, which xDSL keeps in the verifier that it generates; None if there is none."""
    return getclosurevars(op.verify_).nonlocals.get("custom_verify")


def _all_of(checks: Sequence[Callable[[Any], None]]) -> Callable[[Any], None] | None:
    def verify_(self: Any) -> None:
        for check in checks:
            check(self)

    return (checks[0] if len(checks) == 1 else verify_) if checks else None


def dialect_of(
    xdsls: Dialect,
    ops: Iterable[type[Operation]] = (),
    attributes: Iterable[type[Attribute]] = (),
    interfaces: Any = None,
    *,
    names: dict[str, Any] | None = None,
) -> Dialect:
    """xDSL's dialect, with `ops` and `attributes` added, or in place of those of the same name.

    interfaces  in place of xDSL's, which are kept by default
    names       of the module: its ops and attributes of the dialect are added too; xDSL's other ops are replaced by quick subclasses, in
                the dialect and here
    """
    if names is not None:
        ops = list(dict.fromkeys((*ops, *classes_among(names, Operation, xdsls))))
        attributes = list(dict.fromkeys((*attributes, *classes_among(names, Attribute, xdsls))))
    by_name = {op.name: op for op in ops}
    if names is not None:
        made = quick_ops(op for op in xdsls.operations if op.name not in by_name)
        names.update(made)
        ops = [*ops, *made.values()]
        by_name |= {op.name: op for op in made.values()}
    for op in xdsls.operations:
        if (ours := by_name.get(op.name)) is not None and issubclass(ours, op):
            _OWN[op] = ours
            _adopt_what_is_made(ours, op)
    named = {attribute.name for attribute in attributes}
    return Dialect(
        xdsls.name,
        [*(op for op in xdsls.operations if op.name not in by_name), *ops],
        [*(attribute for attribute in xdsls.attributes if attribute.name not in named), *attributes],
        xdsls._interfaces if interfaces is None else interfaces,  # pyright: ignore[reportPrivateUsage]  # nothing else lists them
    )


def classes_among(names: Mapping[str, Any], kind: type[KindT], dialect: Dialect | str) -> list[type[KindT]]:
    """The ops or attributes of a dialect that have a name in a module, each once; of xDSL's dialect those that it does not have."""
    mine, besides = f"{dialect}.", set[Any]()
    if isinstance(dialect, Dialect):
        mine, besides = f"{dialect.name}.", {*dialect.operations, *dialect.attributes}
    # Not by issubclass: of every class that is none xDSL's metaclass keeps a note.
    classes = [each for each in names.values() if isinstance(each, type) and kind in each.__mro__]
    return [
        each for each in dict.fromkeys(classes) if getattr(each, "name", "").startswith(mine) and each not in besides
    ]


def _adopt_what_is_made(ours: type[Operation], xdsls: type[Operation]) -> None:
    """Functions of xDSL's class that name it make one of its class: `memref.DeallocOp.get(%m)`. Called by ours they make one of ours."""
    for name, member in vars(xdsls).items():
        if name == "parse" or name in vars(ours) or not isinstance(member, staticmethod | classmethod):
            continue
        made = cast("staticmethod[..., Any] | classmethod[Any, ..., Any]", member)
        if isinstance(made.__func__, FunctionType) and xdsls.__name__ in made.__func__.__code__.co_names:
            setattr(ours, name, _adopting(made))


def _adopting(member: staticmethod[..., Any] | classmethod[Any, ..., Any]) -> Any:
    own = member.__func__

    @wraps(own)
    def make(*given: Any, **named: Any) -> Any:
        return adopt(own(*given, **named))

    return staticmethod(make) if isinstance(member, staticmethod) else classmethod(make)


def own_class(op_type: type[Operation]) -> type[Operation] | None:
    """Our class in place of xDSL's `op_type`; None if xDSL's is used as it is, or is not xDSL's."""
    return _OWN.get(op_type)


def adopt(op: AdoptedT) -> AdoptedT:
    """Makes an op of xDSL's class one of ours, if there is one. The object stays the same, and so do its results and uses."""
    if (ours := _OWN.get(type(op))) is None:
        return op
    as_any: Any = op
    as_any.__class__ = ours
    assert isinstance(op, IRDLOperation)
    for name, found in op.get_irdl_definition().properties.items():
        if found.default_value is not None and not isinstance(found, OptPropertyDef):
            op.properties.setdefault(name, found.default_value)
    return op


def adopt_all(module: Operation) -> None:
    """`adopt` for every op inside."""
    for op in module.walk():
        adopt(op)
