"""The keys that a sort's comparator compares, if it compares one key after the other.

    compare(a, b), direction=LT                                    by a, ascending
    select(compare(x, y), direction=EQ, less(c, d), less(x, y))    by x, then by c
    or(less(x, y), and(equal(x, y), less(c, d)))                   likewise

a, b are parameters 2i and 2i + 1: operand i of the two elements that are compared. A key may be, instead of an operand, an expression
with the operand's order: a wider type, a real or imaginary part, zeros or NaNs made equal, the integer with the order of the float's
total order (`bits < 0 ? bits ^ MAX : bits`). A comparator of another form has no keys: a sort calls it.

The computation is read as a tree of tuples, in which the two sides of a comparison are equal except for their parameters. Trees are
compared by value, so it does not matter how the text shares its instructions.
Source: docs/reference/1 6.8 "sort", "compare".
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import StringAttr

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import element_of, is_array
from xla_emitters.dtypes import Kind, dtype

Tree: TypeAlias = tuple[Any, ...]
"""(opcode, element type's name, details, operand trees ...); a parameter: ("side", type, (0 or 1, operand))."""

_MOST_NODES = 4096
"""Comparators with a larger tree have no keys here."""


def keys_of(comparator: ComputationOp) -> list[dict[str, Any]] | None:
    """The keys, in the form that a sort of `library` takes, the first one first; None if the comparator has another form."""
    tree = _tree(comparator)
    return None if tree is None else _keys(tree)


# ---------------------------------------------------------------------------------------------------------------- reading


def _tree(comparator: ComputationOp) -> Tree | None:
    found = dict[Any, Tree]()
    for op in comparator.instructions:
        if not is_array(op.result.type):
            return None
        element = element_of(op.result).name
        if isinstance(op, ParameterOp):
            number = op.number.value.data
            tree: Tree = ("side", element, (number % 2, number // 2))
        elif isinstance(op, ConstantOp):
            if op.is_elided:
                return None
            tree = ("constant", element, op.array().tobytes())
        else:
            tree = (op.opcode, element, _details(op), *(found[operand] for operand in op.operands))
        if _size(tree) > _MOST_NODES:
            return None
        found[op.result] = tree
    return found[comparator.root]


def _details(op: HloOp) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted(
            (name, value.data)
            for name, value in op.properties.items()
            if isinstance(value, StringAttr) and name != "name"
        )
    )


def _size(tree: Tree) -> int:
    return 1 + sum(map(_size, tree[3:]))


def _mirrored(tree: Tree) -> Tree:
    """The tree with its two sides exchanged."""
    if tree[0] == "side":
        side, operand = tree[2]
        return ("side", tree[1], (1 - side, operand))
    return (*tree[:3], *map(_mirrored, tree[3:]))


# --------------------------------------------------------------------------------------------------------------- matching


def _keys(tree: Tree) -> list[dict[str, Any]] | None:
    match tree:
        case ("compare", *_):
            return _key_compared(tree)
        case ("select", _, _, tie, rest, first):
            return _one_after_other(first, tie, rest)
        case ("or", _, _, *parts):
            for first, both in (parts, parts[::-1]):
                if both[0] != "and":
                    continue
                for tie, rest in (both[3:], both[:2:-1]):
                    if (found := _one_after_other(first, tie, rest)) is not None:
                        return found
            return None
        case _:
            return None


def _one_after_other(first: Tree, tie: Tree, rest: Tree) -> list[dict[str, Any]] | None:
    """The keys of `first`, then those of `rest`, which decides if `tie` holds; None if `tie` is not the tie of `first`."""
    one = _keys(first)
    if one is None or not _is_tie(tie, first):
        return None
    others = _keys(rest)
    return None if others is None else [*one, *others]


def _is_tie(tie: Tree, first: Tree) -> bool:
    """Whether `tie` holds exactly if the comparison `first` is false for both orders of its operands."""
    if tie[0] != "compare" or dict(tie[2]).get("direction") != "EQ":
        return False
    a, b = tie[3:]
    if {a, b} == {first, _mirrored(first)}:
        return True
    return first[0] == "compare" and {a, b} == set(first[3:]) and _comparison(tie) == _comparison(first)


def _comparison(tree: Tree) -> str:
    return dict(tree[2]).get("type", "")


def _key_compared(tree: Tree) -> list[dict[str, Any]] | None:
    a, b = tree[3:]
    direction = dict(tree[2]).get("direction")
    if direction not in ("LT", "GT") or _mirrored(a) != b:
        return None
    order = "numeric"
    if dtype(a[1]).kind is Kind.FLOAT and _comparison(tree) == "TOTALORDER":
        order = "total"
    found = _key(a, order)
    if found is None:
        return None
    side, key = found
    # Direction LT of (first, second) is ascending; of (second, first) descending.
    return [{**key, "descending": (direction == "GT") != (side == 1)}]


def _key(tree: Tree, order: str) -> tuple[int, dict[str, Any]] | None:
    """The side of the expression, and the key with the same order; None for other expressions."""
    zeros = nans = False
    bits = _float_of_total_order(tree)
    if bits is not None:
        tree, order = bits, "total"
    if dtype(tree[1]).kind is Kind.FLOAT:
        tree = _without_widening(tree)
        while True:
            if (inner := _with_equal_nans(tree)) is not None:
                tree, nans = inner, True
            elif (inner := _with_equal_zeros(tree)) is not None:
                tree, zeros = inner, True
            else:
                break
        if order == "total" and zeros and nans:
            order = "canonical"
        elif order == "total" and (zeros or nans):
            return None
    tree = _without_widening(tree)
    part = None
    if tree[0] in ("real", "imag"):
        part, tree = tree[0], tree[3]
    if tree[0] != "side" or (part is None and dtype(tree[1]).kind is Kind.COMPLEX):
        return None
    side, operand = tree[2]
    return side, {"operand": operand, "part": part, "order": order}


def _float_of_total_order(tree: Tree) -> Tree | None:
    """The float x if the tree is the integer b < 0 ? MAX ^ b : b of its bits b."""
    match tree:
        case ("select", name, _, ("compare", _, details, low, zero), ("xor", _, _, *pair), bits) if (
            low == bits and dict(details).get("direction") == "LT" and _is_constant(zero, name, 0)
        ):
            largest = [part for part in pair if part != bits]
            if len(largest) != 1 or not _is_constant(largest[0], name, dtype(name).integers[-1]):
                return None
            if bits[0] in ("bitcast", "bitcast-convert") and dtype(bits[3][1]).kind is Kind.FLOAT:
                return bits[3]
            return None
        case _:
            return None


def _is_constant(tree: Tree, name: str, value: float) -> bool:
    row = dtype(name)
    return row.kind in (Kind.SIGNED, Kind.FLOAT) and tree == ("constant", name, np.asarray(value, row.numpy).tobytes())


def _with_equal_nans(tree: Tree) -> Tree | None:
    """x if the tree is isnan(x) ? NaN : f(x), where f may only change zeros."""
    match tree:
        case ("select", name, _, ("compare", _, details, a, b), ("constant", _, data), rest) if (
            a == b and dict(details).get("direction") == "NE" and np.isnan(np.frombuffer(data, dtype(name).numpy)).all()
        ):
            zeros = _with_equal_zeros(rest)
            return rest if a == rest or a == zeros else None
        case _:
            return None


def _with_equal_zeros(tree: Tree) -> Tree | None:
    """x if the tree is x == 0 ? 0 : f(x), where f may only change NaNs."""
    match tree:
        case ("select", name, _, ("compare", _, details, a, zero), also_zero, rest) if (
            dict(details).get("direction") == "EQ" and zero == also_zero and _is_constant(zero, name, 0.0)
        ):
            return rest if a in (rest, _with_equal_nans(rest)) else None
        case _:
            return None


def _without_widening(tree: Tree) -> Tree:
    """The operand of conversions to a type that represents each of its values, in order."""
    while tree[0] == "convert":
        source, target = dtype(tree[3][1]), dtype(tree[1])
        if (
            source.kind is not target.kind
            or source.bits > target.bits
            or (source.kind is Kind.FLOAT and target.bits < 32)
        ):
            break
        tree = tree[3]
    return tree
