"""Integer arithmetic on sizes: computes the elements of a small integer array from those of the operands.

    %n = hlo.multiply %b, %c4 : tensor<i32>                b * 4
    %q = hlo.divide %s, %c2                                floordiv(s, 2), if s >= 0 is known: HLO rounds toward zero
    %p = hlo.compare %s, %c0, GE                           True if s >= 0 is known, else the comparison
    %o = hlo.or (b == 1), (s == 1)                         (b - 1) * (s - 1) == 0
    %r = hlo.select %p, %x, %y                             x, y, or y + (x - y) * p, where p is min(max(s + 1, 0), 1): 1 if s >= 0, else 0

A result outside the range of its type is unknown, because the arithmetic wraps around. For a symbolic result the range is a guard of
the program (`program.py`); unsigned arithmetic is tracked only if it is known not to wrap below zero.

JAX computes x // y by `divide`, `sign`, `remainder` and `select`. The sign of x is max(min(x, 1), -1); a select whose condition
contradicts the facts is its last operand: with x >= 0 and y > 0, "the signs differ" is x == 0, and then the remainder is 0. If the
sign of x is unknown, the quotient is written with both signs and recorded: select(signs differ and inexact, q - 1, q) is floordiv.

A signed number that depends on data becomes a new symbol, `_data7`. It is only added and subtracted (which is right even if it wraps
around), so that the size of x[i : i + n], which is i + n - i, is n. Unsigned ones are not followed: they are the bits of random numbers.

Programs repeat themselves: JAX writes the code of (s - 1) // 2 + 1 wherever it needs that size. So results are cached until
a fact is added.
Source: docs/reference/4 3.1; behaviour of jax.export 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from xla_emitters.algebra.facts import AT_LEAST, Fact, Facts
from xla_emitters.algebra.size import Size, TooLarge, floordiv, maximum, minimum, mod
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.elementwise import CompareOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import DType, Kind
from xla_emitters.dynamic.sizes.walked_array import Number, SizeComparison, Truth
from xla_emitters.errors import VerifyError

FEWEST_BITS = 32  # of a type that sizes are computed in
MOST_OF_A_CHOICE = 40
"""The largest weight of a size that is one of two: choices among choices grow fast, and nothing could be proved about them."""
_DATA = "_data"

_Computation: TypeAlias = tuple[str, str, str, tuple[Number, ...]]
"""The cache's key: opcode, direction of a comparison, element type of the result, operands."""


@dataclass
class SizeArithmetic:
    """What the arithmetic remembers from one op to the next.

    quotients   x / y rounded toward zero, for x not known to be at least 0 -> (x, y)
    remainders  x - y * (x / y), likewise
    """

    quotients: dict[Size, tuple[Size, Size]] = field(default_factory=dict[Size, tuple[Size, Size]])
    remainders: dict[Size, tuple[Size, Size]] = field(default_factory=dict[Size, tuple[Size, Size]])
    _results: dict[_Computation, Number] = field(default_factory=dict[_Computation, Number])
    _facts: Facts | None = None
    _count: int = 0

    def elementwise(self, op: HloOp, operands: Sequence[Number], facts: Facts) -> Number:
        """One element of an elementwise op of integers or predicates, from the operands' elements; None if unknown."""
        if facts is not self._facts:
            self._facts = facts
            self._results.clear()
        if _is_lost(op, operands):
            return None
        direction = op.direction.data if isinstance(op, CompareOp) else ""
        computation = (op.opcode, direction, element_of(op.result).name, tuple(operands))
        if computation not in self._results:
            known = len(self.quotients) + len(self.remainders)
            found = _elementwise(op, operands, facts, self)
            if len(self.quotients) + len(self.remainders) > known:
                self._results.clear()  # a select may be recognised as a quotient now
            self._results[computation] = found
        return self._results[computation]

    def data(self) -> Size:
        """A new symbol for a number that depends on data."""
        self._count += 1
        return Size.symbol(f"{_DATA}{self._count}")


def is_data(size: Size) -> bool:
    """Whether `size` contains a number that depends on data."""
    return any(symbol.startswith(_DATA) for symbol in size.symbols)


def _is_lost(op: HloOp, operands: Sequence[Number]) -> bool:
    """Whether a result depends on data in a way that is not followed: only signed sums and differences are.

    Nothing is known about the sign of a number that depends on data, so an unsigned result that contains one may have wrapped.
    """
    if isinstance(operands[0], bool) or not any(isinstance(number, Size) and is_data(number) for number in operands):
        return False
    return op.opcode not in ("add", "subtract", "copy", "convert") or element_of(op.result).kind is Kind.UNSIGNED


def _elementwise(op: HloOp, operands: Sequence[Number], facts: Facts, memory: SizeArithmetic) -> Number:
    if isinstance(op, CompareOp):
        return _compare(op.direction.data, operands[0], operands[1], facts)
    if op.opcode == "select":
        return _select(operands[0], operands[1], operands[2], facts, memory)
    result = element_of(op.result)
    if result.kind is Kind.PRED:
        logical = _LOGICAL.get(op.opcode)
        return None if logical is None else logical([_truth(operand) for operand in operands])
    rule = _RULES.get(op.opcode)
    sizes = [operand for operand in operands if isinstance(operand, Size)]
    if op.opcode == "convert" and isinstance(operands[0], bool):
        return Size.constant(int(operands[0]))
    if rule is None or len(sizes) != len(operands):
        return None
    found = rule(sizes, facts)
    if op.opcode in ("divide", "remainder") and facts.at_least(sizes[1], 1) and not facts.at_least(sizes[0], 0):
        x, y = sizes
        if found is None:
            found = _truncated(x, y) if op.opcode == "divide" else x - y * _truncated(x, y)
        (memory.quotients if op.opcode == "divide" else memory.remainders)[found] = (x, y)
    return None if found is None else in_range(found, result, facts)


def in_range(size: Size, element: DType, facts: Facts) -> Size | None:
    """`size`, or None if it may be out of the type's range."""
    if element.kind not in (Kind.SIGNED, Kind.UNSIGNED):
        return None
    if size.value is not None:
        low, high = (0, 1 << element.bits) if element.kind is Kind.UNSIGNED else _signed_range(element.bits)
        return size if low <= size.value < high else None
    if element.bits < FEWEST_BITS or (element.kind is Kind.UNSIGNED and not facts.at_least(size, 0)):
        return None
    return size


def _signed_range(bits: int) -> tuple[int, int]:
    return -(1 << (bits - 1)), 1 << (bits - 1)


def _divide(operands: Sequence[Size], facts: Facts) -> Size | None:
    """x / y, rounded toward zero."""
    x, y = operands
    if not facts.at_least(y, 1):
        return None
    if facts.at_least(x, 0):
        return floordiv(x, y)
    return -floordiv(-x, y) if facts.at_least(-x, 0) else None


def _remainder(operands: Sequence[Size], facts: Facts) -> Size | None:
    """x - y * (x / y): has the sign of x."""
    x, y = operands
    if not facts.at_least(y, 1):
        return None
    if facts.at_least(x, 0):
        return mod(x, y)
    return -mod(-x, y) if facts.at_least(-x, 0) else None


def _truncated(x: Size, y: Size) -> Size:
    """x / y rounded toward zero, for y > 0 and any x: one of the two quotients is 0."""
    return maximum(floordiv(x, y), 0) + minimum(-floordiv(-x, y), 0)


def _sign(operands: Sequence[Size], facts: Facts) -> Size:
    x = operands[0]
    if facts.at_least(x, 1):
        return Size.constant(1)
    if facts.at_least(x, 0):
        return minimum(x, 1)
    return maximum(minimum(x, 1), -1)


_RULES: dict[str, Callable[[Sequence[Size], Facts], Size | None]] = {
    "add": lambda x, _: x[0] + x[1],
    "subtract": lambda x, _: x[0] - x[1],
    "multiply": lambda x, _: x[0] * x[1],
    "maximum": lambda x, _: maximum(x[0], x[1]),
    "minimum": lambda x, _: minimum(x[0], x[1]),
    "clamp": lambda x, _: minimum(maximum(x[0], x[1]), x[2]),
    "negate": lambda x, _: -x[0],
    "abs": lambda x, _: maximum(x[0], -x[0]),
    "copy": lambda x, _: x[0],
    "convert": lambda x, _: x[0],
    "divide": _divide,
    "remainder": _remainder,
    "sign": _sign,
}

# ------------------------------------------------------------------------------------------------------------ predicates

NEGATED = {"EQ": "NE", "NE": "EQ", "GE": "LT", "LT": "GE", "LE": "GT", "GT": "LE"}


def decide(comparison: SizeComparison, facts: Facts) -> bool | None:
    """Whether the comparison holds; None if the facts do not decide it."""
    statement = comparison.statement
    if statement is not None:
        return facts.holds(*statement)
    equal = facts.equal(comparison.left, comparison.right)
    return None if equal is None else not equal


def assume(facts: Facts, condition: frozenset[SizeComparison], source: str) -> Facts:
    """Adds the comparisons to the facts; inequalities `!=` are dropped. raises VerifyError if they contradict each other"""
    for comparison in condition:
        if (statement := comparison.statement) is not None:
            facts = facts.with_fact(Fact(*statement, source))
    return facts


def _compare(direction: str, a: Number, b: Number, facts: Facts) -> Truth | None:
    if not isinstance(a, Size) or not isinstance(b, Size):
        for known, other in ((_truth(a), _truth(b)), (_truth(b), _truth(a))):
            if isinstance(known, bool) and direction in ("EQ", "NE"):
                return None if other is None else other if known == (direction == "EQ") else _not([other])
        return None
    comparison = SizeComparison(direction, a, b)
    known = decide(comparison, facts)
    if known is not None:
        return known
    if direction == "NE" and b == Size.constant(1):
        for x in a.operands:  # min(x, 1) != 1, where x >= 0: x == 0
            if a == minimum(x, 1) and facts.at_least(x, 0):
                comparison = SizeComparison("EQ", x, Size.constant(0))
    return frozenset({comparison})


def _truth(number: Number) -> Truth | None:
    return None if isinstance(number, Size) else number


def _and(operands: Sequence[Truth | None]) -> Truth | None:
    if any(operand is False for operand in operands):
        return False
    found: frozenset[SizeComparison] = frozenset()
    for operand in operands:
        if operand is None:
            return None
        if operand is not True:
            assert operand is not False
            found |= operand
    return found or True


def _or(operands: Sequence[Truth | None]) -> Truth | None:
    if any(operand is True for operand in operands):
        return True
    rest = [operand for operand in operands if operand is not None and not isinstance(operand, bool)]
    if len(rest) < 2 or None in operands:
        return None if None in operands else rest[0] if rest else False
    if any(len(operand) > 1 or direction != "EQ" for operand in rest for direction, _, _ in operand):
        return None
    try:
        product = prod((a - b for operand in rest for _, a, b in operand), start=Size.constant(1))
    except TooLarge:
        return None
    return frozenset({SizeComparison("EQ", product, Size.constant(0))})


def _not(operands: Sequence[Truth | None]) -> Truth | None:
    (operand,) = operands
    if isinstance(operand, bool):
        return not operand
    if operand is None or len(operand) != 1:
        return None
    ((direction, a, b),) = operand
    return frozenset({SizeComparison(NEGATED[direction], a, b)})


_LOGICAL: dict[str, Callable[[Sequence[Truth | None]], Truth | None]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "copy": lambda x: x[0],
    "convert": lambda x: x[0],
}


def _select(condition: Number, then: Number, otherwise: Number, facts: Facts, memory: SizeArithmetic) -> Number:
    if then == otherwise:
        return then
    if isinstance(condition, bool):
        return then if condition else otherwise
    if not isinstance(condition, frozenset):
        return None
    if isinstance(then, Size) and isinstance(otherwise, Size):
        zero = Size.constant(0)
        if otherwise in memory.quotients:
            x, y = memory.quotients[otherwise]
            remainder = x - y * _truncated(x, y) if (known := _remainder([x, y], facts)) is None else known
            wanted = [SizeComparison("NE", remainder, zero), SizeComparison("NE", _sign([x], facts), Size.constant(1))]
            if then == otherwise - 1 and condition == frozenset(one for one in wanted if not decide(one, facts)):
                return floordiv(x, y)
        if otherwise in memory.remainders:
            x, y = memory.remainders[otherwise]
            negative = frozenset({SizeComparison("LT", otherwise, zero), SizeComparison("NE", otherwise, zero)})
            if then == otherwise + y and condition == negative:
                return mod(x, y)
    try:
        assumed = assume(facts, condition, "a condition")
    except VerifyError:
        return otherwise
    if any(decide(one, assumed) is False for one in condition):
        return otherwise
    if not isinstance(then, Size) or not isinstance(otherwise, Size):
        return None
    try:
        found = otherwise + (then - otherwise) * prod(map(_indicator, condition), start=Size.constant(1))
    except TooLarge:
        return None
    return found if found.weight <= MOST_OF_A_CHOICE else None


def _indicator(comparison: SizeComparison) -> Size:
    """1 if the comparison holds, else 0."""
    direction, a, b = comparison
    if (statement := comparison.statement) is None or direction == "EQ":
        differs = minimum(maximum(a - b, b - a), 1)
        return differs if direction == "NE" else 1 - differs
    relation, more, less = statement
    return minimum(maximum((more - less if relation is AT_LEAST else less - more) + 1, 0), 1)
