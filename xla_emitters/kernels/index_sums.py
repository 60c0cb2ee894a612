"""Indices of elements as sums of products: what two of them differ by, and what divides them.

    %m = arith.muli %row, %cols          Sums().of(%i)      %row * %cols + %j + 4
    %n = arith.addi %m, %j         ->    .divisor(...)      a number that divides it, whatever its values are
    %i = arith.addi %n, %c4

A term is a value, a product of terms, or a coordinate of the element with some number. Equal terms cancel in a difference, so %i and
%i + %cols are known to differ by %cols.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd, prod
from typing import TypeAlias

from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp, LinearizeIndexOp
from xla_emitters.dialects.ranges import constant_of


@dataclass(frozen=True)
class Sum:
    """constant + the sum of coefficient * term. A term is a value, or a product or a coordinate of sums."""

    constant: int
    terms: frozenset[tuple[Term, int]] = frozenset()

    def __add__(self, other: Sum) -> Sum:
        found = dict(self.terms)
        for term, coefficient in other.terms:
            found[term] = found.get(term, 0) + coefficient
        return Sum(self.constant + other.constant, frozenset((t, c) for t, c in found.items() if c))

    def __sub__(self, other: Sum) -> Sum:
        return self + other.scaled(-1)

    def __mul__(self, other: Sum) -> Sum:
        found = Sum(self.constant * other.constant)
        found += Sum(0, self.terms).scaled(other.constant) + Sum(0, other.terms).scaled(self.constant)
        for a, times_a in self.terms:
            for b, times_b in other.terms:
                factors = tuple(sorted((*factors_of(a), *factors_of(b)), key=hash))
                found += Sum(0, frozenset([(Product(factors), times_a * times_b)]))
        return found

    def scaled(self, factor: int) -> Sum:
        return Sum(self.constant * factor, frozenset((t, c * factor) for t, c in self.terms if factor))

    @property
    def rest(self) -> Sum:
        """Without the constant."""
        return Sum(0, self.terms)


@dataclass(frozen=True)
class Product:
    factors: tuple[Term, ...]


@dataclass(frozen=True)
class Coordinate:
    """Of element `number` of an array of these sizes; `from_last` is 1 for the last coordinate."""

    number: Sum
    sizes: tuple[Sum, ...]
    from_last: int


Term: TypeAlias = SSAValue | Product | Coordinate


@dataclass
class Sums:
    """Indices as sums.

    within  a block; what is made outside of it is not taken apart. None: everything is
    """

    within: Block | None = None
    _known: dict[SSAValue, Sum] = field(default_factory=dict[SSAValue, Sum])

    def of(self, value: SSAValue) -> Sum:
        if value not in self._known:
            self._known[value] = self._found(value)
        return self._known[value]

    def in_order(self, total: Sum) -> list[tuple[list[SSAValue], int]]:
        """Its terms as factors and coefficient, as they were met; none may be a coordinate."""
        place = {value: number for number, value in enumerate(self._known)}
        terms = list[tuple[list[SSAValue], int]]()
        for term, coefficient in total.terms:
            factors = [factor for factor in factors_of(term) if isinstance(factor, SSAValue)]
            terms.append((sorted(factors, key=lambda value: place[value]), coefficient))
        return sorted(terms, key=lambda found: [place[value] for value in found[0]])

    def _found(self, value: SSAValue) -> Sum:
        if (known := constant_of(value)) is not None:
            return Sum(known)
        match value:
            case _ if self.within is not None and not self.within.is_ancestor(value.owner):
                return Sum(0, frozenset([(value, 1)]))
            case OpResult(op=arith.AddiOp() as op):
                return self.of(op.lhs) + self.of(op.rhs)
            case OpResult(op=arith.SubiOp() as op):
                return self.of(op.lhs) - self.of(op.rhs)
            case OpResult(op=arith.MuliOp() as op):
                return self.of(op.lhs) * self.of(op.rhs)
            case OpResult(op=LinearizeIndexOp() as op):
                sizes = op.basis[len(op.basis) - len(op.multi_index) + 1 :]
                total, *others = map(self.of, op.multi_index)
                for size, other in zip(sizes, others, strict=True):
                    total = total * self._size(size) + other
                return total
            case OpResult(op=DelinearizeIndexOp() as op):
                return self._coordinate(op, value.index)
            case _:
                return Sum(0, frozenset([(value, 1)]))

    def _size(self, size: int | SSAValue) -> Sum:
        return Sum(size) if isinstance(size, int) else self.of(size)

    def _coordinate(self, op: DelinearizeIndexOp, number: int) -> Sum:
        """Of the element at a multiple of some number plus a smaller one: the one at the multiple, the last coordinate with the rest."""
        linear, sizes = self.of(op.linear_index), tuple(map(self._size, op.basis))
        unit = gcd(self.divisor(linear.rest), self.divisor(sizes[-1])) if sizes else 0
        left = linear.constant % unit if unit else 0
        start = linear + Sum(-left)
        found = Coordinate(start, sizes, len(op.multi_index) - number)
        return Sum(left if found.from_last == 1 else 0, frozenset([(found, 1)]))

    def divisor(self, total: Sum) -> int:
        """A number that divides the sum whatever its values are; 0 if it is always 0."""
        return gcd(total.constant, *(coefficient * self._divisor(term) for term, coefficient in total.terms))

    def _divisor(self, term: Term) -> int:
        match term:
            case Product():
                return prod(map(self._divisor, term.factors))
            case Coordinate(from_last=1) if term.sizes:
                return gcd(self.divisor(term.number), self.divisor(term.sizes[-1]))
            case OpResult(op=arith.AndIOp() as op):
                mask = constant_of(op.rhs)
                return mask & -mask if mask else 1
            case BlockArgument() if isinstance(loop := term.owner.parent_op(), scf.ForOp) and term.index == 0:
                return gcd(self.divisor(self.of(loop.lb)), self.divisor(self.of(loop.step)))
            case BlockArgument() if isinstance(loop := term.owner.parent_op(), scf.ParallelOp):
                bounds = loop.lowerBound[term.index], loop.step[term.index]
                return gcd(*(self.divisor(self.of(bound)) for bound in bounds))
            case _:
                return 1


def factors_of(term: Term) -> tuple[Term, ...]:
    return term.factors if isinstance(term, Product) else (term,)
