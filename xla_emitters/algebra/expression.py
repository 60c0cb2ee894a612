"""Index expressions: sums, products, floor divisions and remainders of numbered variables.

    v1 floordiv 4096 + (v0 * 4) mod 8

An expression is immutable and interned: two expressions with the same structure are the same object, so `==` and `hash`
compare identity and a graph with a million paths costs only its nodes. Nodes are held by weak references. Every node has
a serial number larger than its operands' numbers; sorting by it gives a walk from the leaves to the root, and all walks
here work that way (never by recursion: a sum of ten thousand terms is ten thousand levels deep).

There are three levels of rewriting. Each keeps the value for every assignment of the variables that has one:
  * building a node folds constants, moves a constant of + * min max to the right, and drops x + 0, x * 1, x * 0;
  * `canonicalize` adds the algebra that needs no ranges: one form per sum, exact divisions, remainders of multiples;
  * `simplify` (simplify.py) adds the rules that use the variables' ranges.

Division rounds toward minus infinity and the remainder has the divisor's sign, as in Python, so that
x == (x // d) * d + x % d always.
Source: docs/reference/1 1.8, 2.1, 2.2, 2.5; XLA hlo/analysis/symbolic_expr.h.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cmp_to_key
from typing import Any, Protocol, Self
from weakref import WeakValueDictionary


class ExprKind(IntEnum):
    """What a node computes; the numbers are the order of summands in a canonical sum."""

    ADD = 0
    MUL = 1
    MOD = 2
    FLOORDIV = 3
    CEILDIV = 4
    MAX = 5
    MIN = 6
    VARIABLE = 7
    CONSTANT = 8


ADD, MUL, MOD, FLOORDIV, CEILDIV, MAX, MIN, VARIABLE, CONSTANT = ExprKind

_COMMUTATIVE = frozenset((ADD, MUL, MAX, MIN))
_DIVISIONS = frozenset((MOD, FLOORDIV, CEILDIV))
# A sum with more terms than this is not multiplied out by a non-constant factor: nested products of this kind would double the terms
# at every level.
_MULTIPLY_OUT_TERMS = 16


class VariableValues(Protocol):
    """Values by the number or name of a variable: a sequence or a mapping."""

    def __getitem__(self, key: Any, /) -> Any: ...


class Expr:
    """One node. Built by `Expr.constant`, `Expr.variable`, the operators, `Expr.minimum` ... never by calling the class.

    kind      what the node computes
    lhs, rhs  operands of a binary node; a leaf has none, and reading them raises AttributeError
    value     the constant's value or the variable's number; 0 for a binary node
    name      the variable's number, or a symbol's name (`Size`); only variables and symbols have one
    serial    creation number, larger than that of either operand
    variable_mask   bit i is set if variable i occurs

    >>> x, y = Expr.variable(0), Expr.variable(1)
    >>> str(x * 4 + y // 2), x * 4 + y is 4 * x + y
    ('v0 * 4 + v1 floordiv 2', True)

    Source: docs/reference/1 2.1 "Data model".
    """

    __slots__ = (
        "__weakref__",
        "canonical_form",
        "divisor",
        "is_canonical",
        "kind",
        "lhs",
        "name",
        "rhs",
        "serial",
        "value",
        "variable_mask",
    )

    kind: ExprKind
    lhs: Expr
    rhs: Expr
    value: int
    name: int | str
    serial: int
    variable_mask: int
    # Cached results. A node that is its own canonical form sets a flag instead: a reference to itself would keep it alive.
    is_canonical: bool
    canonical_form: Expr | None
    divisor: int

    def __new__(cls) -> Self:
        raise TypeError("build expressions with Expr.constant, Expr.variable and the operators")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an expression cannot change (setting {name})")

    def __reduce__(self) -> tuple[Callable[..., Expr], tuple[object, ...]]:
        if self.kind >= VARIABLE:
            return _leaf, (self.kind, self.value)
        return make, (self.kind, self.lhs, self.rhs)

    @staticmethod
    def constant(value: int) -> Expr:
        """The expression that is always `value`."""
        return _leaf(CONSTANT, operator.index(value))

    @staticmethod
    def variable(number: int) -> Expr:
        """The variable with this number; in a map with D dims, number D + k is symbol k."""
        return _leaf(VARIABLE, operator.index(number))

    @staticmethod
    def minimum(lhs: Expr | int, rhs: Expr | int) -> Expr:
        """The smaller of two.

        >>> str(Expr.minimum(3, Expr.variable(0)))
        'min(v0, 3)'
        """
        return make(MIN, _as_expr(lhs), _as_expr(rhs))

    @staticmethod
    def maximum(lhs: Expr | int, rhs: Expr | int) -> Expr:
        """The larger of two."""
        return make(MAX, _as_expr(lhs), _as_expr(rhs))

    def __add__(self, other: Expr | int) -> Expr:
        return make(ADD, self, _as_expr(other))

    __radd__ = __add__

    def __mul__(self, other: Expr | int) -> Expr:
        return make(MUL, self, _as_expr(other))

    __rmul__ = __mul__

    def __neg__(self) -> Expr:
        return make(MUL, self, _leaf(CONSTANT, -1)).canonicalize()

    def __sub__(self, other: Expr | int) -> Expr:
        return make(ADD, self, -other if isinstance(other, Expr) else _leaf(CONSTANT, -other))

    def __rsub__(self, other: int) -> Expr:
        return make(ADD, _as_expr(other), -self)

    def __floordiv__(self, other: Expr | int) -> Expr:
        divisor = _as_expr(other)
        return self if divisor.is_constant(1) else make(FLOORDIV, self, divisor)

    def __rfloordiv__(self, other: int) -> Expr:
        return _as_expr(other) // self

    def __mod__(self, other: Expr | int) -> Expr:
        modulus = _as_expr(other)
        if modulus.is_constant(1) or modulus.is_constant(-1):
            return _leaf(CONSTANT, 0)
        return make(MOD, self, modulus)

    def __rmod__(self, other: int) -> Expr:
        return _as_expr(other) % self

    def ceildiv(self, other: Expr | int) -> Expr:
        """The quotient rounded toward plus infinity.

        >>> Expr.constant(7).ceildiv(4).value, str(Expr.variable(0).ceildiv(4))
        (2, 'v0 ceildiv 4')
        """
        divisor = _as_expr(other)
        return self if divisor.is_constant(1) else make(CEILDIV, self, divisor)

    def is_constant(self, value: int) -> bool:
        """Whether this node is the constant `value`."""
        return self.kind is CONSTANT and self.value == value

    def variables(self) -> frozenset[int]:
        """Numbers of the variables that occur.

        >>> sorted((Expr.variable(0) * 4 + Expr.variable(3)).variables())
        [0, 3]
        """
        return frozenset(bits_of(self.variable_mask))

    def evaluate(self, values: VariableValues) -> Any:
        """The value where variable i is values[i].

        values   ints and arrays of one shape (NumPy's, CuPy's), in any mixture; arrays wrap as their own type does
        returns  an int if no array occurs in the expression, else an array
        raises   ZeroDivisionError for ints where a divisor is 0

        >>> (Expr.variable(0) // 4).evaluate([-1]), (Expr.variable(0) % 4).evaluate([-1])
        (-1, 3)
        """
        return evaluate_all((self,), values)[0]

    def substitute(self, replacements: Sequence[Expr]) -> Expr:
        """This expression with variable i replaced by replacements[i], all at once.

        >>> x, y = Expr.variable(0), Expr.variable(1)
        >>> str((x * 4 + y).substitute([y, x]))
        'v1 * 4 + v0'
        """
        return substitute_all((self,), replacements)[0]

    def known_divisor(self) -> int:
        """A number that divides every value of the expression; 0 for the constant 0, which every number divides.

        >>> (Expr.variable(0) * 12 + 8).known_divisor()
        4

        Source: docs/reference/1 2.5 "Known divisor".
        """
        for node in postorder([self], _has_divisor):
            object.__setattr__(node, "divisor", _divisor_of(node))
        return self.divisor

    def canonicalize(self) -> Expr:
        """The canonical form of this expression: the same value, rewritten by the rules that need no ranges.

        >>> x, y = Expr.variable(0), Expr.variable(1)
        >>> str((y * 3 + x - y * 2 + 5).canonicalize()), str(((x * 12) % 36).canonicalize())
        ('v0 + v1 + 5', '(v0 mod 3) * 12')

        Source: docs/reference/1 2.5 "Algebra applied at creation and by Canonicalize".
        """
        for node in operands_first(self, _is_settled):
            if _is_settled(node):
                continue
            answer = _canonical_step(node)
            if answer is node:
                object.__setattr__(node, "is_canonical", True)
            else:
                object.__setattr__(node, "canonical_form", answer.canonicalize())
        return _settled(self)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Expr {self.to_text()}>"

    def to_text(self, names: Callable[[Any], str] = "v{}".format, division: str = "floordiv") -> str:
        """The expression in the maps' notation; parsing it gives this very expression back.

        names     maps a variable's number to its name
        division  how to write floor division: "floordiv" or "/"

        >>> (Expr.variable(0) // 8 * -2).to_text(division="/")
        '(v0 / 8) * -2'

        Source: docs/reference/1 1.8 "Expression printing".
        """
        pieces: list[str] = []
        pending: list[Expr | str] = [self]
        while pending:
            piece = pending.pop()
            if isinstance(piece, str):
                pieces.append(piece)
            else:
                pending.extend(reversed(_pieces_of(piece, names, division)))
        return "".join(pieces)


# ---- Making nodes ---------------------------------------------------------------------------------------------------

_nodes: WeakValueDictionary[tuple[ExprKind, Expr | int, Expr | None], Expr] = WeakValueDictionary()
making = threading.RLock()
_serials = itertools.count()
_UNKNOWN = -1  # known divisors are never negative


def _intern(kind: ExprKind, lhs: Expr | None, rhs: Expr | None, value: int) -> Expr:
    """The only node of this structure; made if none exists."""
    key = (kind, value if lhs is None else lhs, rhs)
    node = _nodes.get(key)
    if node is not None:
        return node
    with making:
        node = _nodes.get(key)
        if node is not None:
            return node
        node = object.__new__(Expr)
        fill_node(node, kind, kind >= VARIABLE)
        fill = object.__setattr__
        fill(node, "value", value)
        if lhs is None or rhs is None:
            fill(node, "variable_mask", 1 << value if kind is VARIABLE else 0)
            fill(node, "name", value)
        else:
            fill(node, "lhs", lhs)
            fill(node, "rhs", rhs)
            fill(node, "variable_mask", lhs.variable_mask | rhs.variable_mask)
        _nodes[key] = node
        return node


def fill_node(node: Expr, kind: ExprKind, is_canonical: bool) -> None:
    """Sets what every new node has, while it is made."""
    fill = object.__setattr__
    fill(node, "kind", kind)
    fill(node, "serial", next(_serials))
    fill(node, "is_canonical", is_canonical)
    fill(node, "canonical_form", None)
    fill(node, "divisor", _UNKNOWN)


def _leaf(kind: ExprKind, value: int) -> Expr:
    return _intern(kind, None, None, value)


def _as_expr(value: Expr | int) -> Expr:
    return value if isinstance(value, Expr) else _leaf(CONSTANT, operator.index(value))


def apply(kind: ExprKind, a: Any, b: Any) -> Any:
    """The value of a binary node for two operand values: ints or arrays, or what is known of them, intervals or residues."""
    if kind is ADD:
        return a + b
    if kind is MUL:
        return a * b
    if kind is FLOORDIV:
        return a // b
    if kind is MOD:
        return a % b
    if kind is CEILDIV:
        return -(-a // b)
    if hasattr(a, "minimum"):
        return a.minimum(b) if kind is MIN else a.maximum(b)
    arrays = a if hasattr(a, "__array_namespace__") else b
    if hasattr(arrays, "__array_namespace__"):
        namespace = arrays.__array_namespace__()
        return namespace.minimum(a, b) if kind is MIN else namespace.maximum(a, b)
    return min(a, b) if kind is MIN else max(a, b)


def make(kind: ExprKind, lhs: Expr, rhs: Expr) -> Expr:
    """The binary node, after the folding that every new node gets.

    A division by the constant 0 is not folded: it has no value, and evaluating it raises ZeroDivisionError.

    Source: docs/reference/1 2.5 "Creation-time".
    """
    if rhs.kind is CONSTANT:
        if lhs.kind is CONSTANT and (rhs.value or kind not in _DIVISIONS):
            return _leaf(CONSTANT, apply(kind, lhs.value, rhs.value))
    elif lhs.kind is CONSTANT and kind in _COMMUTATIVE:
        lhs, rhs = rhs, lhs
    if rhs.kind is CONSTANT:
        if kind is ADD and rhs.value == 0:
            return lhs
        if kind is MUL:
            if rhs.value == 0:
                return rhs
            if lhs.kind is MUL and lhs.rhs.kind is CONSTANT:
                lhs, rhs = lhs.lhs, _leaf(CONSTANT, lhs.rhs.value * rhs.value)
            if rhs.value == 1:
                return lhs
    return _intern(kind, lhs, rhs, 0)


# ---- Walking --------------------------------------------------------------------------------------------------------


def bits_of(mask: int) -> Iterable[int]:
    """Positions of the set bits of a mask, ascending.

    >>> list(bits_of(0b1001))
    [0, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _serial(e: Expr) -> int:
    return e.serial


def _never(e: Expr) -> bool:
    return False


def postorder(roots: Iterable[Expr], is_known: Callable[[Expr], bool] = _never) -> list[Expr]:
    """Every node reachable from `roots` once, operands before users; known ones are left out, and so are nodes reached only through them.

    >>> x = Expr.variable(0)
    >>> [str(e) for e in postorder([x * 2 + x * 2 % x])]  # 2 and v0 may come in either order  # doctest: +ELLIPSIS
    [..., 'v0 * 2', '(v0 * 2) mod v0', 'v0 * 2 + (v0 * 2) mod v0']
    """
    found: set[Expr] = set()
    pending = [root for root in roots if not is_known(root)]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found.add(node)
        if node.kind < VARIABLE:
            if not is_known(node.lhs):
                pending.append(node.lhs)
            if not is_known(node.rhs):
                pending.append(node.rhs)
    return sorted(found, key=_serial)


def mask_of(expressions: Iterable[Expr]) -> int:
    """Bit i is set if variable i occurs in any of the expressions."""
    mask = 0
    for e in expressions:
        mask |= e.variable_mask
    return mask


def evaluate_all(roots: Sequence[Expr], values: VariableValues, order: Sequence[Expr] | None = None) -> tuple[Any, ...]:
    """`Expr.evaluate` of several expressions that share nodes; each node is computed once.

    order   postorder(roots), if the caller keeps it
    """
    results: dict[Expr, Any] = {}
    for node in postorder(roots) if order is None else order:
        if node.kind is CONSTANT:
            results[node] = node.value
        elif node.kind is VARIABLE:
            results[node] = values[node.name]
        else:
            results[node] = apply(node.kind, results[node.lhs], results[node.rhs])
    return tuple(results[root] for root in roots)


def substitute_all(roots: Sequence[Expr], replacements: Sequence[Expr]) -> tuple[Expr, ...]:
    """`Expr.substitute` of several expressions that share nodes."""
    results: dict[Expr, Expr] = {}
    for node in postorder(roots):
        if node.kind is VARIABLE:
            results[node] = replacements[node.value]
        elif node.variable_mask == 0:
            results[node] = node
        else:
            lhs, rhs = results[node.lhs], results[node.rhs]
            unchanged = lhs is node.lhs and rhs is node.rhs
            results[node] = node if unchanged else make(node.kind, lhs, rhs)
    return tuple(results[root] for root in roots)


def compare(a: Expr, b: Expr) -> int:
    """The order of summands in a canonical sum: negative if a comes first, 0 if they are the same.

    Source: docs/reference/1 2.2 "Ordering used for canonical sums".
    """
    while a is not b:
        if a.kind is not b.kind:
            return a.kind - b.kind
        if a.kind >= VARIABLE:
            return a.value - b.value
        a, b = (a.lhs, b.lhs) if a.lhs is not b.lhs else (a.rhs, b.rhs)
    return 0


# ---- Sums -----------------------------------------------------------------------------------------------------------


def linear_terms(e: Expr) -> tuple[dict[Expr, int], int]:
    """`e` as a sum: the coefficient of each base (never 0), and the constant.

    Additions and multiplications by constants are expanded, in time linear in their nodes however often they are shared.

    >>> x, y = Expr.variable(0), Expr.variable(1)
    >>> bases, constant = linear_terms((x + y * 2) * 3 + x + 7)
    >>> {str(base): coefficient for base, coefficient in bases.items()}, constant
    ({'v0': 4, 'v1': 6}, 7)
    """
    if not is_linear(e):
        return ({}, e.value) if e.kind is CONSTANT else ({e: 1}, 0)
    found = {e}
    pending = [e]
    while pending:
        node = pending.pop()
        for operand in (node.lhs, node.rhs) if node.kind is ADD else (node.lhs,):
            if is_linear(operand) and operand not in found:
                found.add(operand)
                pending.append(operand)
    weights: dict[Expr, int] = {e: 1}
    for node in sorted(found, key=_serial, reverse=True):
        weight = weights.pop(node)
        if node.kind is ADD:
            weights[node.lhs] = weights.get(node.lhs, 0) + weight
            weights[node.rhs] = weights.get(node.rhs, 0) + weight
        else:
            weights[node.lhs] = weights.get(node.lhs, 0) + weight * node.rhs.value
    constant = 0
    bases: dict[Expr, int] = {}
    for node, weight in weights.items():
        if node.kind is CONSTANT:
            constant += node.value * weight
        elif weight:
            bases[node] = weight
    return bases, constant


def is_linear(e: Expr) -> bool:
    """Whether the node is an addition or a multiplication by a constant."""
    return e.kind is ADD or (e.kind is MUL and e.rhs.kind is CONSTANT)


def operands_first(e: Expr, is_known: Callable[[Expr], bool]) -> list[Expr]:
    """The nodes of e once, operands before users; the operands of a sum are its bases. Known ones are left out.

    >>> x = Expr.variable(0)
    >>> [str(node) for node in operands_first((x // x + x * 3 + 1) % x, lambda node: False)]
    ['v0', 'v0 floordiv v0', 'v0 floordiv v0 + v0 * 3 + 1', '(v0 floordiv v0 + v0 * 3 + 1) mod v0']
    """
    if is_known(e):
        return []
    found = {e}
    pending = [e]
    while pending:
        node = pending.pop()
        if is_linear(node):
            operands: Iterable[Expr] = linear_terms(node)[0]
        else:
            operands = (node.lhs, node.rhs) if node.kind < VARIABLE else ()
        for operand in operands:
            if operand not in found and not is_known(operand):
                found.add(operand)
                pending.append(operand)
    return sorted(found, key=_serial)


def add_scaled(into: dict[Expr, int], e: Expr, factor: int) -> int:
    """Adds factor * e to the bases `into` and drops those that cancel; returns the constant to add."""
    bases, constant = linear_terms(e)
    for base, coefficient in bases.items():
        total = into.get(base, 0) + coefficient * factor
        if total:
            into[base] = total
        else:
            into.pop(base, None)
    return constant * factor


def make_sum(bases: Mapping[Expr, int], constant: int) -> Expr:
    """The sum in canonical order: summands by `compare`, the constant last, additions to the left.

    >>> str(make_sum({Expr.variable(0): 1, Expr.variable(1): -1}, 3))
    '-v1 + v0 + 3'
    """
    terms = [make(MUL, base, _leaf(CONSTANT, coefficient)) for base, coefficient in bases.items()]
    if len(terms) > 1:
        terms.sort(key=cmp_to_key(compare))
    if constant or not terms:
        terms.append(_leaf(CONSTANT, constant))
    total = terms[0]
    for term in terms[1:]:
        total = make(ADD, total, term)
    return total


def divided_by_constants(bases: Iterable[Expr], kind: ExprKind) -> list[Expr]:
    """The bases of this kind, MOD or FLOORDIV, with a positive constant on the right, in canonical order.

    The order matters: rewriting a sum in another order can give another result, and a dict's order is that of insertion.
    """
    found = [base for base in bases if base.kind is kind and base.rhs.kind is CONSTANT and base.rhs.value > 0]
    return found if len(found) < 2 else sorted(found, key=cmp_to_key(compare))


# ---- Known divisors -------------------------------------------------------------------------------------------------


def _has_divisor(e: Expr) -> bool:
    return e.divisor != _UNKNOWN


def _divisor_of(e: Expr) -> int:
    """Known divisor of a node whose operands' known divisors are cached."""
    if e.kind is CONSTANT:
        return abs(e.value)
    if e.kind is VARIABLE:
        return 1
    lhs, rhs = e.lhs.divisor, e.rhs.divisor
    if e.kind is MUL:
        # Any divisor is right; it must not grow without bound in nested products.
        return lhs * rhs if lhs * rhs <= 2**63 else max(lhs, rhs)
    if e.kind in (FLOORDIV, CEILDIV):
        is_exact = e.rhs.kind is CONSTANT and rhs and lhs % rhs == 0
        return lhs // rhs if is_exact else 1
    return math.gcd(lhs, rhs)


# ---- Canonical form -------------------------------------------------------------------------------------------------
# Every rule takes one node whose operands are canonical and returns another expression of the same value, or the node
# itself. The result is canonicalised in turn, so a rule need not return a canonical one. This terminates because every
# rule lowers (number of nodes, size of divisors) or only sorts.


def _is_settled(e: Expr) -> bool:
    return e.is_canonical or e.canonical_form is not None


def _settled(e: Expr) -> Expr:
    """The cached canonical form of a node."""
    return e.canonical_form or e


def _canonical_step(e: Expr) -> Expr:
    if is_linear(e):
        return _canonical_sum(e)
    lhs, rhs = _settled(e.lhs), _settled(e.rhs)
    if e.kind is MUL:
        return _canonical_product(lhs, rhs)
    if e.kind in (MIN, MAX):
        return _canonical_extreme(e.kind, lhs, rhs)
    if rhs.is_constant(0):
        return make(e.kind, lhs, rhs)
    if lhs.is_constant(0):
        return lhs
    if e.kind is CEILDIV:
        if rhs.kind is CONSTANT:
            d = rhs.value
            return (lhs + (d - 1)) // d if d > 0 else (lhs // -d) * -1
        return make(FLOORDIV, lhs * -1, rhs) * -1
    if rhs.kind is CONSTANT and lhs.kind is not CONSTANT:
        return _canonical_mod(lhs, rhs.value) if e.kind is MOD else _canonical_floordiv(lhs, rhs.value)
    return _leaf(CONSTANT, 0) if e.kind is MOD and lhs is rhs else make(e.kind, lhs, rhs)


def _canonical_sum(e: Expr) -> Expr:
    raw, constant = linear_terms(e)
    bases: dict[Expr, int] = {}
    for base, coefficient in raw.items():
        constant += add_scaled(bases, _settled(base), coefficient)
    # (X floordiv C) * (C * Y) + (X mod C) * Y  ->  X * Y
    for remainder in divided_by_constants(bases, MOD):
        modulus = remainder.rhs.value
        quotient = make(FLOORDIV, remainder.lhs, remainder.rhs)
        factor = bases.get(remainder, 0)
        if factor and bases.get(quotient, 0) == factor * modulus:
            del bases[remainder], bases[quotient]
            constant += add_scaled(bases, remainder.lhs, factor)
    return make_sum(bases, constant)


def _canonical_product(lhs: Expr, rhs: Expr) -> Expr:
    """Moves constants outward, sorts factors, and multiplies a short sum out by a factor that is not a sum."""
    factor = 1
    if lhs.kind is MUL and lhs.rhs.kind is CONSTANT:
        lhs, factor = lhs.lhs, lhs.rhs.value
    if rhs.kind is MUL and rhs.rhs.kind is CONSTANT:
        rhs, factor = rhs.lhs, rhs.rhs.value * factor
    if lhs.kind is CONSTANT or rhs.kind is CONSTANT:
        return make(MUL, lhs, rhs) * factor
    if rhs.kind is ADD:
        lhs, rhs = rhs, lhs
    if lhs.kind is ADD and rhs.kind is not ADD:
        bases, constant = linear_terms(lhs)
        if len(bases) > _MULTIPLY_OUT_TERMS:
            return make(MUL, lhs, rhs) * factor
        products = {make(MUL, base, rhs): coefficient * factor for base, coefficient in bases.items()}
        return make_sum(products, 0) + rhs * (constant * factor)
    if compare(lhs, rhs) > 0:
        lhs, rhs = rhs, lhs
    return make(MUL, lhs, rhs) * factor


def _canonical_extreme(kind: ExprKind, lhs: Expr, rhs: Expr) -> Expr:
    difference = (lhs - rhs).canonicalize()
    if difference.kind is CONSTANT:
        is_lhs_smaller = difference.value <= 0
        return lhs if is_lhs_smaller == (kind is MIN) or difference.value == 0 else rhs
    return make(kind, lhs, rhs) if compare(lhs, rhs) <= 0 else make(kind, rhs, lhs)


def _canonical_floordiv(x: Expr, d: int) -> Expr:
    if abs(d) == 1:
        return x * d
    if x.kind is MUL and x.rhs.kind is CONSTANT:
        g = math.gcd(x.rhs.value, d)
        if g > 1:
            return (x.lhs * (x.rhs.value // g)) // (d // g)
    if x.kind is ADD:
        bases, constant = linear_terms(x)
        exact = {base: coefficient // d for base, coefficient in bases.items() if coefficient % d == 0}
        rest = {base: coefficient for base, coefficient in bases.items() if coefficient % d}
        quotient = 0
        left = make_sum(rest, 0)
        # G divides the remaining terms and d, so adding less than G to a multiple of G never reaches the next quotient.
        if constant and abs(constant % d) < max(1, math.gcd(left.known_divisor(), d)):
            quotient, constant = constant // d, 0
        if exact or quotient:
            return make_sum(exact, quotient) + make(FLOORDIV, make_sum(rest, constant), _leaf(CONSTANT, d))
    return make(FLOORDIV, x, _leaf(CONSTANT, d))


def _canonical_mod(x: Expr, d: int) -> Expr:
    if x.known_divisor() % d == 0:
        return _leaf(CONSTANT, 0)
    if x.kind is MUL and x.rhs.kind is CONSTANT:
        g = math.gcd(x.rhs.value, d)
        if g > 1:
            return make(MOD, x.lhs * (x.rhs.value // g), _leaf(CONSTANT, d // g)) * g
    if x.kind is MOD and x.rhs.kind is CONSTANT and x.rhs.value % d == 0:
        return make(MOD, x.lhs, _leaf(CONSTANT, d))
    if x.kind is ADD:
        bases, constant = linear_terms(x)
        rest = {base: c for base, c in bases.items() if (base.known_divisor() * c) % d}
        left = constant if constant % d else 0
        if left != constant or len(rest) < len(bases):
            return make(MOD, make_sum(rest, left), _leaf(CONSTANT, d))
    return make(MOD, x, _leaf(CONSTANT, d))


# ---- Text -----------------------------------------------------------------------------------------------------------

_PRECEDENCE = {ADD: 1, MUL: 2, MOD: 2, FLOORDIV: 2, CEILDIV: 2}
_ATOM = 3


def _precedence(e: Expr) -> int:
    return _PRECEDENCE.get(e.kind, _ATOM)


def _pieces_of(e: Expr, names: Callable[[Any], str], division: str) -> list[Expr | str]:
    """The text of a node in pieces; its operands are still expressions."""
    if e.kind is CONSTANT:
        return [str(e.value)]
    if e.kind is VARIABLE:
        return [names(e.name)]
    if e.kind in (MIN, MAX):
        return [f"{e.kind.name.lower()}(", e.lhs, ", ", e.rhs, ")"]
    if e.kind is ADD:
        return [e.lhs, *_added(e.rhs)]
    if e.kind is MUL and e.rhs.is_constant(-1):
        # A base that is a product gets parentheses: `-a * b` reads as (-a) * b.
        return ["-", *_inside(e.lhs, _precedence(e.lhs) < _ATOM)]
    symbol = {MUL: "*", MOD: "mod", FLOORDIV: division, CEILDIV: "ceildiv"}[e.kind]
    is_other_operator = _precedence(e.lhs) == 2 and e.lhs.kind is not e.kind
    return [
        *_inside(e.lhs, _precedence(e.lhs) < 2 or is_other_operator),
        f" {symbol} ",
        *_inside(e.rhs, _precedence(e.rhs) < _ATOM),
    ]


def _added(term: Expr) -> list[Expr | str]:
    """The right side of an addition, with its sign."""
    if term.kind is CONSTANT and term.value < 0:
        return [f" - {-term.value}"]
    if term.kind is MUL and term.rhs.kind is CONSTANT and term.rhs.value < 0:
        positive = make(MUL, term.lhs, _leaf(CONSTANT, -term.rhs.value))
        return [" - ", *_inside(positive, positive.kind is ADD)]
    return [" + ", *_inside(term, term.kind is ADD)]


def _inside(e: Expr, is_parenthesised: bool) -> list[Expr | str]:
    return ["(", e, ")"] if is_parenthesised else [e]
