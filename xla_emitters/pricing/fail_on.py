"""Conditions on the fields of a cost, for `--fail-on`: a small part of Python's expressions.

    condition("spills > 0")                                          ->  holds if ptxas spilled
    condition("bytes_ratio > 1.5 and bound == 'memory'")
    condition("time > 20 or not occupancy >= 50")                    a share compared with a number above 1: per cent

Allowed are those fields of `KernelCost` that are numbers, texts or truth values; constants; + - * /; comparisons; and, or, not. Nothing is
called and no other name is resolved: the expression is parsed to a tree, which is evaluated here.
"""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from xla_emitters.errors import UsageError
from xla_emitters.pricing.model import KernelCost

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {ast.Not: operator.not_, ast.USub: operator.neg}
FIELDS = {
    field.name: str(field.type) for field in fields(KernelCost) if str(field.type) in ("int", "float", "str", "bool")
}
"""Name -> type of each field that a condition may name."""
SHARES = frozenset(("occupancy", "last_wave", "bandwidth", "compute"))
"""Fields from 0 to 1, which reports print in per cent."""


@dataclass(frozen=True)
class Condition:
    """A condition given to `--fail-on`."""

    text: str
    tree: ast.expr

    def holds(self, cost: KernelCost) -> bool:
        return bool(_value(self.tree, cost))


def condition(text: str) -> Condition:
    """Parses a condition. raises UsageError if it is not a condition on fields of a cost; suggests the name if a similar one exists."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"--fail-on '{text}' is not an expression", stage="cost", help=_EXAMPLE) from error
    kind = _kind(tree, text)
    if kind != "bool":
        raise UsageError(f"--fail-on '{text}' is a number or a text, not a condition", stage="cost", help=_EXAMPLE)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            _as_shares([node.left, *node.comparators])
    return Condition(text, tree)


def _as_shares(compared: list[ast.expr]) -> None:
    """Divides numbers above 1 that are compared with a share by 100."""
    if any(isinstance(each, ast.Name) and each.id in SHARES for each in compared):
        for each in compared:
            if isinstance(each, ast.Constant) and isinstance(each.value, int | float) and each.value > 1:
                each.value = each.value / 100


_EXAMPLE = "for example --fail-on 'spills > 0 or occupancy < 50'"


def _kind(node: ast.expr, text: str) -> str:
    """The type of a node's value: "number", "str" or "bool". raises UsageError."""
    match node:
        case ast.Constant(value=bool()):
            return "bool"
        case ast.Constant(value=int() | float()):
            return "number"
        case ast.Constant(value=str()):
            return "str"
        case ast.Name(id=name) if name in FIELDS:
            return {"int": "number", "float": "number"}.get(FIELDS[name], FIELDS[name])
        case ast.Name(id=name):
            near = difflib.get_close_matches(name, FIELDS, n=1)
            meant = f"did you mean '{near[0]}'? " if near else ""
            help = f"{meant}fields: {', '.join(FIELDS)}"
            raise UsageError(f"--fail-on '{text}': a cost has no field '{name}'", stage="cost", help=help)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _of_kind("number", text, left, right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _of_kind("number", text, operand)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _of_kind("bool", text, operand)
        case ast.BoolOp(values=values):
            return _of_kind("bool", text, *values)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARE for op in ops):
            kinds = {_kind(each, text) for each in (left, *others)}
            if len(kinds) > 1 or (kinds != {"number"} and not all(isinstance(op, ast.Eq | ast.NotEq) for op in ops)):
                raise UsageError(f"--fail-on '{text}' compares a {' with a '.join(sorted(kinds))}", stage="cost")
            return "bool"
        case _:
            raise UsageError(
                f"--fail-on '{text}': '{ast.unparse(node)}' is not allowed",
                stage="cost",
                help=f"fields, numbers, texts, + - * /, comparisons, and, or, not; {_EXAMPLE}",
            )


def _of_kind(wanted: str, text: str, *nodes: ast.expr) -> str:
    """The kind, if all nodes are of it. raises UsageError."""
    for node in nodes:
        if (kind := _kind(node, text)) != wanted:
            raise UsageError(
                f"--fail-on '{text}': '{ast.unparse(node)}' is a {kind}, wanted a {wanted}",
                stage="cost",
                help=_EXAMPLE,
            )
    return wanted


def _value(node: ast.expr, cost: KernelCost) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return getattr(cost, name)
        case ast.BinOp(left=left, op=op, right=right):
            try:
                return _BINARY[type(op)](_value(left, cost), _value(right, cost))
            except ZeroDivisionError:
                return float("nan")
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_value(operand, cost))
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(each, cost) for each in values)
        case ast.BoolOp(values=values):
            return any(_value(each, cost) for each in values)
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [_value(each, cost) for each in (left, *others)]
            return all(_COMPARE[type(op)](a, b) for op, a, b in zip(ops, values[:-1], values[1:], strict=True))
        case _:
            raise AssertionError(f"not checked: {ast.dump(node)}")
