"""Sizes: expressions over named symbols that are always polynomials in normal form.

    b, s = Size.symbol("b"), Size.symbol("s")
    b * s + s * b            ->   2*b*s
    (2 * b + 5) // 2         ->   b + 2
    maximum(b, b + 1)        ->   b + 1
    (b * s) // s             ->   floordiv(b*s, s)        s may be 0; Facts.simplify returns b if s is known not to be 0

A size is an `Expr` whose operators keep the normal form: sums and products are multiplied out, so two that are equal as polynomials
in their atoms are the same object; it has `terms` in place of operands. An *atom* is a size that is a symbol or an operation
(floordiv, mod, max, min) on sizes; building an operation applies the algebra that holds for all integers, including negative ones.
Rules that need facts about the symbols are in facts.py.

Each rewriting keeps the value at every assignment for which the original expression has one. A quotient by an unknown size is kept,
so that a division by zero is detected when the size is evaluated; but terms that cancel also remove their divisions: q - q is 0
whatever q is.

Operations are limited: a result that exceeds one of the limits below raises `TooLarge`. The limits also bound the depth
of nesting, so that the walks here may recurse.
Source: docs/reference/4 3.1; the notation of jax.export's symbolic shapes.
"""

# An expression cannot change, so the operands of a size may have a narrower type than those of other expressions.
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from xla_emitters.algebra.expression import (
    ADD,
    CONSTANT,
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    MUL,
    VARIABLE,
    Expr,
    ExprKind,
    VariableValues,
    apply,
    fill_node,
    make,
    making,
)
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.residue import Residue
from xla_emitters.errors import DataError, Unsupported, VerifyError

MAX_WEIGHT = 2_000
"""The most terms and atoms of a size, including those inside its operations."""
MAX_DEPTH = 50
"""The deepest nesting of operations."""
MAX_DEGREE = 100
"""The most factors of a term; b^2 counts as two."""
MAX_BITS = 8_000
"""The largest coefficient."""


class TooLarge(Unsupported):
    """Raised if a size would exceed one of the limits."""


class Size(Expr):
    """A size in normal form. Built by `Size.symbol`, `Size.constant`, operators and `parse_size`, never by calling the class.

    value     of a constant; None if a symbol or an operation occurs
    symbols   names of the symbols that occur
    weight    number of terms and atoms, including those inside operations
    depth     of nested operations

    A Python int may be used instead of a size, and equals the constant size. `==` compares normal forms. Whether two sizes
    have equal *values* is a question for `Facts.equal`; there is no `<`, and a size has no truth value.

    >>> b, s = Size.symbol("b"), Size.symbol("s")
    >>> b * s + s * b == 2 * b * s, (s + 1) - 1 == s, Size.constant(4) == 4
    (True, True, True)
    >>> print(b * (s + 1) // 2, (4 * s + 2) % 4, 2 * b % 2)
    floordiv(b*s + b, 2) 2 0
    """

    __slots__ = ("depth", "order", "polynomial", "symbols", "weight")

    lhs: Size
    rhs: Size
    name: str
    value: int | None
    symbols: frozenset[str]
    weight: int
    depth: int
    order: tuple[bool, str]
    """Of an atom: the key that sorts atoms."""
    polynomial: Terms | None
    """`terms`, but None for an atom: a reference to itself would keep it alive."""

    @staticmethod
    def symbol(name: str) -> Size:
        """The symbol `name`, an identifier other than the names of operations.

        raises VerifyError for other names
        """
        if not (name.isascii() and name.isidentifier()) or name in OPERATIONS or not name.strip("_"):
            raise VerifyError(
                f"'{name}' cannot name a size", stage="shapes", help="a letter, then letters, digits and _"
            )
        return _symbol(name)

    @staticmethod
    def constant(value: int) -> Size:
        """The size that is always `value`."""
        value = int(operator.index(value))
        if not value:
            return _ZERO
        if value.bit_length() > MAX_BITS:
            raise _too_large("bits in a coefficient", MAX_BITS)
        return _sum((((), value),))

    @property
    def terms(self) -> Terms:
        """Each product of atoms with its coefficient, which is not 0; in the order of printing."""
        return ((((self, 1),), 1),) if self.polynomial is None else self.polynomial

    @property
    def is_atom(self) -> bool:
        """Whether this is a symbol or an operation."""
        return self.polynomial is None

    @property
    def operands(self) -> tuple[Size, ...]:
        """Of an operation: two for floordiv and mod, two or more, sorted, for max and min. Of other sizes: none."""
        if self.kind in (FLOORDIV, MOD):
            return self.lhs, self.rhs
        found: list[Size] = []
        if self.kind in (MAX, MIN):
            size = self
            while size.kind is self.kind:
                found.append(size.lhs)
                size = size.rhs
            found.append(size)
        return tuple(found)

    def __reduce__(self) -> tuple[Callable[..., Size], tuple[object, ...]]:
        if self.polynomial is not None:
            return sum_of_terms, (dict(self.polynomial),)
        return (_symbol, (self.name,)) if self.kind is VARIABLE else (operation, (self.kind, self.operands))

    def __add__(self, other: Expr | int) -> Size:
        other = as_size(other)
        sums = dict(self.terms)
        for factors, coefficient in other.terms:
            sums[factors] = sums.get(factors, 0) + coefficient
        return sum_of_terms(sums)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Expr | int) -> Size:
        return self + -as_size(other)

    def __rsub__(self, other: int) -> Size:
        return -self + other

    def __mul__(self, other: Expr | int) -> Size:
        if not isinstance(other, Size):
            number = operator.index(other)  # pyright: ignore[reportArgumentType]  # TypeError for other expressions
            return sum_of_terms({factors: coefficient * number for factors, coefficient in self.terms})
        if len(self.terms) * len(other.terms) > 16 * MAX_WEIGHT:
            raise _too_large("terms", MAX_WEIGHT)
        sums: dict[Factors, int] = {}
        for left, left_coefficient in self.terms:
            for right, right_coefficient in other.terms:
                factors = multiply_factors(left, right)
                sums[factors] = sums.get(factors, 0) + left_coefficient * right_coefficient
        return sum_of_terms(sums)

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Size:
        """The product of `power` times this size, power >= 0."""
        if power < 0:
            raise VerifyError(f"a size to the power {power}", stage="shapes", help="a power is 0 or more")
        if power > MAX_DEGREE and self.value is None:
            raise _too_large("factors in one term", MAX_DEGREE)
        result = Size.constant(1)
        for _ in range(power):
            result = result * self
        return result

    def __floordiv__(self, other: Expr | int) -> Size:
        return floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Size:
        return floordiv(other, self)

    def __mod__(self, other: Expr | int) -> Size:
        return mod(self, other)

    def __rmod__(self, other: int) -> Size:
        return mod(other, self)

    def ceildiv(self, other: Expr | int) -> Size:
        """The quotient rounded toward plus infinity."""
        return ceildiv(self, other)

    @staticmethod
    def minimum(lhs: Expr | int, rhs: Expr | int) -> Size:
        """The smaller of two."""
        return minimum(lhs, rhs)

    @staticmethod
    def maximum(lhs: Expr | int, rhs: Expr | int) -> Size:
        """The larger of two."""
        return maximum(lhs, rhs)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, int) and self.value == other)

    def __hash__(self) -> int:
        value = self.value
        return object.__hash__(self) if value is None else hash(value)

    def __bool__(self) -> bool:
        raise TypeError(f"the size {self} has no truth value; compare it, or ask Facts")

    def evaluate(self, values: VariableValues) -> int:
        """The value for these values of the symbols, a mapping by name.

        raises   DataError if a symbol has no value, and for a division by zero, with its text

        >>> (Size.symbol("b") * 3 // Size.symbol("s")).evaluate({"b": 5, "s": -4})
        -4
        """
        if self.value is not None:
            return self.value
        found: dict[str, int] = {}
        for name in self.symbols:
            try:
                found[name] = operator.index(values[name])
            except KeyError:
                details = (f"in the size {self}",)
                raise DataError(f"'{name}' has no value", stage="shapes", details=details) from None

        def of_atom(atom: Size) -> int:
            if atom.kind is VARIABLE:
                return found[atom.name]
            if atom.kind in (FLOORDIV, MOD) and interpret(atom.rhs, int, of_atom) == 0:
                given = ", ".join(f"{name} = {found[name]}" for name in sorted(atom.symbols))
                details = (f"where {given}",) if given else ()
                raise DataError(f"division by zero in {atom}", stage="shapes", details=details)
            return of_operands(atom, lambda operand: interpret(operand, int, of_atom))

        return interpret(self, int, of_atom)

    def substitute(  # pyright: ignore[reportIncompatibleMethodOverride]  # variables have numbers there, names here
        self, replacements: Mapping[str, Size | int]
    ) -> Size:
        """This size with the given symbols replaced, all at once.

        >>> b, s = Size.symbol("b"), Size.symbol("s")
        >>> print((b // 2 + s).substitute({"b": 4 * s, "s": b}))
        b + 2*s
        """
        if self.symbols.isdisjoint(replacements):
            return self

        def of_atom(atom: Size) -> Size | None:
            if atom.symbols.isdisjoint(replacements):
                return None
            if atom.kind is VARIABLE:
                return as_size(replacements[atom.name])
            return operation(atom.kind, [operand.substitute(replacements) for operand in atom.operands])

        return map_atoms(self, of_atom)

    def bounds(self, symbols: Mapping[str, Interval]) -> Interval:
        """The bounds of the value, from bounds of the symbols; a symbol without an entry is unbounded.

        Terms are bounded separately; `Facts.bounds` is tighter.

        >>> str((Size.symbol("s") % 4 + Size.symbol("b") * 2).bounds({"b": Interval(1, 9)}))
        '[2, 21]'
        """

        def of_atom(atom: Size) -> Interval:
            if atom.kind is VARIABLE:
                return symbols.get(atom.name, Interval())
            return of_operands(atom, lambda operand: interpret(operand, Interval.point, of_atom))

        return interpret(self, Interval.point, of_atom)

    def __str__(self) -> str:
        if self.polynomial is None:
            return self.order[1]
        pieces: list[str] = []
        for factors, coefficient in self.terms:
            sign = "-" if coefficient < 0 else "+"
            pieces.append(f" {sign} " if pieces else sign.strip("+"))
            written = [str(atom) if power == 1 else f"{atom}^{power}" for atom, power in factors]
            if abs(coefficient) != 1 or not factors:
                written.insert(0, _digits(abs(coefficient)))
            pieces.append("*".join(written))
        return "".join(pieces) or "0"

    def __repr__(self) -> str:
        return f"<Size {self}>"


Factors = tuple[tuple[Size, int], ...]
"""The product of atoms with their powers, sorted by atom; () is 1."""
Terms = tuple[tuple[Factors, int], ...]


def as_size(value: Expr | int) -> Size:
    """The size, or the constant size of an int."""
    return value if isinstance(value, Size) else Size.constant(value)  # pyright: ignore[reportArgumentType]  # TypeError


# ---- Operations -----------------------------------------------------------------------------------------------------


def floordiv(x: Expr | int, y: Expr | int) -> Size:
    """x divided by y, rounded toward minus infinity. A division by the constant 0 has no value and is kept as written.

    >>> b, s = Size.symbol("b"), Size.symbol("s")
    >>> print(floordiv(2 * b + s, 2), floordiv(floordiv(s, 2) + 1, 3), floordiv(4 * b + 3, 6))
    b + floordiv(s, 2) floordiv(s + 2, 6) floordiv(2*b + 1, 3)
    """
    x, y = as_size(x), as_size(y)
    d = y.value
    if d is None:
        x, y, _ = _without_common_factor(x, y)
        return _operation(FLOORDIV, (x, y))
    if d == 0:
        return _operation(FLOORDIV, (x, y))
    if d < 0:
        x, d = -x, -d
    exact: dict[Factors, int] = {}
    rest: dict[Factors, int] = {}
    for factors, coefficient in x.terms:
        quotient, left = divmod(coefficient, d)
        if left == 0 or not factors:
            exact[factors] = quotient
        if left:
            rest[factors] = coefficient if factors else left
    constant = rest.pop((), 0)
    whole = sum_of_terms(exact)
    if not rest:
        return whole
    # floor((g*y + c) / (g*d)) = floor((y + floor(c/g)) / d)
    common = math.gcd(d, *rest.values())
    inside = {factors: coefficient // common for factors, coefficient in rest.items()}
    inside[()] = constant // common
    d //= common
    dividend = sum_of_terms(inside)
    # floor((floor(y/m) + c) / d) = floor((y + c*m) / (m*d))
    inner = dividend - inside[()]
    if inner.kind is FLOORDIV and (m := inner.rhs.value):
        return whole + floordiv(inner.lhs + inside[()] * m, m * d)
    return whole + _operation(FLOORDIV, (dividend, Size.constant(d)))


def mod(x: Expr | int, y: Expr | int) -> Size:
    """The remainder of x divided by y, with the sign of y. A division by the constant 0 has no value and is kept as written.

    >>> b, s = Size.symbol("b"), Size.symbol("s")
    >>> print(mod(4 * b + s, 4), mod(s - 1, 4), mod(6 * s + 5, 4), mod(mod(s, 8), 4))
    mod(s, 4) mod(s + 3, 4) 2*mod(s, 2) + 1 mod(s, 4)
    """
    x, y = as_size(x), as_size(y)
    d = y.value
    if d is None:
        x, y, common = _without_common_factor(x, y)
        return _operation(MOD, (x, y)) * common
    if d == 0:
        return _operation(MOD, (x, y))
    if d < 0:
        return -mod(-x, -d)
    while True:
        # k * mod(y, m) = k * y modulo k*m, and so modulo its divisor d
        for factors, coefficient in x.terms:
            atom = factors[0][0] if len(factors) == 1 and factors[0][1] == 1 else None
            if atom is None or atom.kind is not MOD:
                continue
            m = atom.rhs.value
            if m and coefficient * m % d == 0:
                x = x + (atom.lhs - atom) * coefficient
                break
        else:
            break
    rest = {factors: coefficient % d for factors, coefficient in x.terms}
    constant = rest.pop((), 0)
    common = math.gcd(d, *rest.values())
    # mod(g*y + c, g*d) = g * mod(y + floor(c/g), d) + mod(c, g)
    inside = {factors: coefficient // common for factors, coefficient in rest.items()}
    inside[()] = constant // common
    dividend = sum_of_terms(inside)
    if dividend.value is not None:
        return Size.constant(constant)
    return _operation(MOD, (dividend, Size.constant(d // common))) * common + constant % common


def ceildiv(x: Expr | int, y: Expr | int) -> Size:
    """x divided by y, rounded toward plus infinity; printed as a floor division.

    >>> print(ceildiv(Size.symbol("s"), 256), ceildiv(Size.symbol("s"), Size.symbol("b")))
    floordiv(s + 255, 256) -floordiv(-s, b)
    """
    x, y = as_size(x), as_size(y)
    d = y.value
    return floordiv(x + (d - 1), d) if d is not None and d > 0 else -floordiv(-x, y)


def maximum(*sizes: Expr | int) -> Size:
    """The largest of one or more sizes.

    >>> b, s = Size.symbol("b"), Size.symbol("s")
    >>> print(maximum(b, 1), maximum(s, maximum(b, s)), maximum(2, 3), maximum(b - 1, b))
    max(1, b) max(b, s) 3 b
    """
    return _extreme(MAX, sizes)


def minimum(*sizes: Expr | int) -> Size:
    """The smallest of one or more sizes."""
    return _extreme(MIN, sizes)


def _extreme(kind: ExprKind, sizes: Iterable[Expr | int]) -> Size:
    pick = max if kind is MAX else min
    constants: dict[Size, int] = {}  # of operands that differ by a constant, only one is kept
    for given in sizes:
        size = as_size(given)
        for operand in size.operands if size.kind is kind else (size,):
            part, constant = split_constant(operand)
            constants[part] = pick(constants[part], constant) if part in constants else constant
    operands = sorted((part + constant for part, constant in constants.items()), key=str)
    return operands[0] if len(operands) == 1 else _operation(kind, tuple(operands))


def operation(kind: ExprKind, operands: Iterable[Size]) -> Size:
    """The operation applied to these operands, in normal form."""
    if kind in (MAX, MIN):
        return _extreme(kind, operands)
    x, y = operands
    return floordiv(x, y) if kind is FLOORDIV else mod(x, y)


# ---- Taking sizes apart ---------------------------------------------------------------------------------------------

T = TypeVar("T", int, Size, Interval, Residue)


def interpret(size: Size, constant: Callable[[int], T], of_atom: Callable[[Size], T]) -> T:
    """Evaluates the polynomial in another number type, given the conversions of constants and of atoms."""
    total: T = constant(0)
    for factors, coefficient in size.terms:
        term: T = constant(coefficient)
        for atom, power in factors:
            base: T = of_atom(atom)
            term = term * (base if power == 1 else cast("T", base**power))
        total = total + term
    return total


def of_operands(operation: Size, value_of: Callable[[Size], T]) -> T:
    """The value of an operation in another number type, from that of its operands."""
    return reduce(partial(apply, operation.kind), map(value_of, operation.operands))


def all_atoms(size: Size) -> Iterator[Size]:
    """The atoms of the terms and of their operands; one may come more than once."""
    for factors, _ in size.terms:
        for atom, _ in factors:
            yield atom
            for operand in atom.operands:
                yield from all_atoms(operand)


def map_atoms(size: Size, of_atom: Callable[[Size], Size | None]) -> Size:
    """The polynomial with each atom replaced by a size; None keeps an atom."""
    kept: dict[Factors, int] = {}
    total = Size.constant(0)
    for factors, coefficient in size.terms:
        left: list[tuple[Size, int]] = []
        replaced: list[Size] = []
        for atom, power in factors:
            by = of_atom(atom)
            if by is None:
                left.append((atom, power))
            else:
                replaced.append(by**power)
        if replaced:
            total = total + math.prod(replaced, start=sum_of_terms({tuple(left): coefficient}))
        else:
            kept[factors] = coefficient
    if len(kept) == len(size.terms):
        return size
    return total + sum_of_terms(kept) if kept else total


def numbered(sizes: Iterable[Size], names: Sequence[str]) -> tuple[Expr, ...]:
    """The sizes as expressions of indices, in which variable i stands for the symbol names[i].

    >>> [str(e) for e in numbered([Size.symbol("s") ** 2 * 2 + Size.symbol("b") // 4], ["b", "s"])]
    ['v1 * v1 * 2 + v0 floordiv 4']
    """

    def of_atom(atom: Size) -> Expr:
        if atom.kind is VARIABLE:
            return Expr.variable(names.index(atom.name))
        return reduce(partial(make, atom.kind), map(of, atom.operands))

    def of(size: Size) -> Expr:
        total = Expr.constant(0)
        for factors, coefficient in size.terms:
            atoms = (of_atom(atom) for atom, power in factors for _ in range(power))
            total = total + math.prod(atoms, start=Expr.constant(1)) * coefficient
        return total

    return tuple(map(of, sizes))


def split_constant(size: Size) -> tuple[Size, int]:
    """The terms with symbols or operations, and the constant.

    >>> split_constant(Size.symbol("s") * 2 + 3)
    (<Size 2*s>, 3)
    """
    if not size.terms or size.terms[-1][0]:
        return size, 0
    return sum_of_terms(dict(size.terms[:-1])), size.terms[-1][1]


def content(size: Size) -> int:
    """The greatest common divisor of the coefficients; 0 for the constant 0.

    >>> content(Size.symbol("s") * 4 + 6)
    2
    """
    return math.gcd(*(coefficient for _, coefficient in size.terms))


def divide_exactly(size: Size, number: int) -> Size:
    """The size with every coefficient divided by `number`, which divides all of them."""
    if number == 1:
        return size
    return sum_of_terms({factors: coefficient // number for factors, coefficient in size.terms})


def divide(x: Size, y: Size) -> tuple[Size, Size]:
    """Polynomials (q, r) with x = q*y + r, where no term of r is a multiple of y's leading term.

    y   not the constant 0

    >>> b, s = Size.symbol("b"), Size.symbol("s")
    >>> divide(b * s + s + 1, b + 1), divide(b, s)
    ((<Size s>, <Size 1>), (<Size 0>, <Size b>))
    """
    lead, lead_coefficient = y.terms[0]
    quotient = remainder = Size.constant(0)
    while x.terms:
        factors, coefficient = x.terms[0]
        over = divide_factors(factors, lead)
        if over is None or coefficient % lead_coefficient:
            term = sum_of_terms({factors: coefficient})
            remainder = remainder + term
            x = x - term
        else:
            term = sum_of_terms({over: coefficient // lead_coefficient})
            quotient = quotient + term
            x = x - term * y
    return quotient, remainder


def multiply_factors(a: Factors, b: Factors) -> Factors:
    """The product of two products of atoms."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=_atom_order))


def divide_factors(a: Factors, b: Factors) -> Factors | None:
    """The product of atoms that times b is a; None if there is none."""
    powers = dict(a)
    for atom, power in b:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, power) for atom, power in powers.items() if power)


# ---- Making sizes ---------------------------------------------------------------------------------------------------

OPERATIONS: Mapping[str, ExprKind] = {kind.name.lower(): kind for kind in (FLOORDIV, MOD, MAX, MIN)}
"""By the name in text."""

_sizes: WeakValueDictionary[object, Size] = WeakValueDictionary()


def _new(key: object, kind: ExprKind, polynomial: Terms | None, fields: Mapping[str, Any]) -> Size:
    """The only size with this key: the name of a symbol, an operation with its operands, or the terms."""
    with making:
        if (known := _sizes.get(key)) is not None:
            return known
        size = object.__new__(Size)
        fill_node(size, kind, is_canonical=True)
        fill = object.__setattr__
        fill(size, "variable_mask", 0)
        fill(size, "polynomial", polynomial)
        for name, value in fields.items():
            fill(size, name, value)
        _sizes[key] = size
        return size


def _symbol(name: str) -> Size:
    known = _sizes.get(name)
    if known is not None:
        return known
    fields = {"order": (False, name), "symbols": frozenset((name,)), "weight": 2, "depth": 0}
    return _new(name, VARIABLE, None, {"value": None, "name": name, **fields})


def _operation(kind: ExprKind, operands: tuple[Size, ...]) -> Size:
    """The atom with these operands, which are in normal form."""
    atom = operands[-1]
    for operand in reversed(operands[:-1]):
        atom = _binary(kind, operand, atom, is_outer=atom is not operands[-1])
    return atom


def _binary(kind: ExprKind, lhs: Size, rhs: Size, is_outer: bool) -> Size:
    """is_outer   whether `rhs` is the rest of one maximum or minimum of several"""
    key = (kind, lhs, rhs)
    known = _sizes.get(key)
    if known is not None:
        return known
    depth = max(lhs.depth + 1, rhs.depth + (not is_outer))
    if depth > MAX_DEPTH:
        raise _too_large("operations within each other", MAX_DEPTH)
    weight = lhs.weight + rhs.weight + 2 * (not is_outer)
    if weight > MAX_WEIGHT:
        raise _too_large("terms", MAX_WEIGHT)
    fields = {"lhs": lhs, "rhs": rhs, "symbols": lhs.symbols | rhs.symbols, "weight": weight, "depth": depth}
    text = f"{kind.name.lower()}({lhs}, {rhs})"
    return _new(key, kind, None, {"value": None, "order": (True, text), **fields})


def sum_of_terms(terms: Mapping[Factors, int]) -> Size:
    """The sum of these terms, whose factors are sorted."""
    kept = [term for term in terms.items() if term[1]]
    if len(kept) > 1:
        kept.sort(key=_term_order)
    return _sum(tuple(kept))


def _sum(terms: Terms) -> Size:
    """The sum of terms that are sorted."""
    if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0][1] == 1:
        return terms[0][0][0][0]
    known = _sizes.get(terms)
    if known is not None:
        return known
    weight = len(terms)
    depth = degree = bits = 0
    names = frozenset[str]()
    for factors, coefficient in terms:
        powers = 0
        for atom, power in factors:
            weight += atom.weight - 1
            powers += power
            depth = max(depth, atom.depth)
            names = names | atom.symbols
        degree = max(degree, powers)
        bits = max(bits, coefficient.bit_length())
    if weight > MAX_WEIGHT:
        raise _too_large("terms", MAX_WEIGHT)
    if degree > MAX_DEGREE:
        raise _too_large("factors in one term", MAX_DEGREE)
    if bits > MAX_BITS:
        raise _too_large("bits in a coefficient", MAX_BITS)
    fields = {"symbols": names, "weight": weight, "depth": depth}
    if not degree and len(terms) < 2:
        return _new(terms, CONSTANT, terms, {"value": terms[0][1] if terms else 0, **fields})
    return _new(terms, ADD if len(terms) > 1 else MUL, terms, {"value": None, **fields})


_ZERO = _sum(())


def _without_common_factor(x: Size, y: Size) -> tuple[Size, Size, int]:
    """(x / g, y / g, g) for the number g that divides all coefficients and makes y's first one positive."""
    common = math.gcd(content(x), content(y))
    if y.terms[0][1] < 0:
        common = -common
    return divide_exactly(x, common), divide_exactly(y, common), common


def _term_order(term: tuple[Factors, int]) -> tuple[int, tuple[tuple[tuple[bool, str], int], ...]]:
    """The order of terms: higher degrees first; then by atoms, higher powers first. Multiplying keeps it, as division requires."""
    factors = term[0]
    degree = 0
    key: list[tuple[tuple[bool, str], int]] = []
    for atom, power in factors:
        degree += power
        key.append((atom.order, -power))
    return -degree, tuple(key)


def _atom_order(factor: tuple[Size, int]) -> tuple[bool, str]:
    return factor[0].order


_THOUSAND_DIGITS = 10**1000


def _digits(value: int) -> str:
    """The number in decimal digits, whatever the interpreter's limit on their count."""
    if value < _THOUSAND_DIGITS:
        return str(value)
    high, low = divmod(value, _THOUSAND_DIGITS)
    return _digits(high) + f"{low:01000d}"


def _too_large(what: str, limit: int) -> TooLarge:
    return TooLarge(f"a size with more than {limit} {what}", stage="shapes", help="give the size a name of its own")
