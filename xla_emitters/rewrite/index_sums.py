"""Indices of elements as sums of products: what two of them differ by, and what divides them.

    %m = arith.muli %row, %cols          Sums().of(%i)      %row * %cols + %j + 4
    %n = arith.addi %m, %j         ->    .divisor(...)      a number that divides it, whatever its values are
    %i = arith.addi %n, %c4

A sum is a `Size`, whose symbols stand for values, and for coordinates of the element with some number. Equal terms cancel in a
difference, so %i and %i + %cols are known to differ by %cols.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd, prod
from typing import TypeAlias

from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from xla_emitters.algebra.size import Size, TooLarge, split_constant
from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp, LinearizeIndexOp
from xla_emitters.dialects.ranges import constant_of


@dataclass(frozen=True)
class Coordinate:
    """Of element `number` of an array of these sizes; `from_last` is 1 for the last coordinate."""

    number: Size
    sizes: tuple[Size, ...]
    from_last: int


Term: TypeAlias = SSAValue | Coordinate


@dataclass
class Sums:
    """Indices as sums.

    within  a block; what is made outside of it is not taken apart. None: everything is
    terms   what the symbols of the sums stand for
    """

    within: Block | None = None
    terms: dict[Size, Term] = field(default_factory=dict[Size, Term])
    _symbols: dict[Term, Size] = field(default_factory=dict[Term, Size])
    _known: dict[SSAValue, Size] = field(default_factory=dict[SSAValue, Size])

    def of(self, value: SSAValue) -> Size:
        if value not in self._known:
            try:
                self._known[value] = self._found(value)
            except TooLarge:
                self._known[value] = self._symbol(value)
        return self._known[value]

    def in_order(self, total: Size) -> list[tuple[list[SSAValue], int]]:
        """Its terms but the constant as factors and coefficient, as they were met; none may be a coordinate."""
        place = {value: number for number, value in enumerate(self._known)}
        terms = list[tuple[list[SSAValue], int]]()
        for factors, coefficient in split_constant(total)[0].terms:
            values = [
                term for atom, power in factors for term in [self.terms[atom]] * power if isinstance(term, SSAValue)
            ]
            terms.append((sorted(values, key=lambda value: place[value]), coefficient))
        return sorted(terms, key=lambda found: [place[value] for value in found[0]])

    def _symbol(self, term: Term) -> Size:
        if (known := self._symbols.get(term)) is None:
            known = self._symbols[term] = Size.symbol(f"v{len(self._symbols)}")
            self.terms[known] = term
        return known

    def _found(self, value: SSAValue) -> Size:
        if (known := constant_of(value)) is not None:
            return Size.constant(known)
        match value:
            case _ if self.within is not None and not self.within.is_ancestor(value.owner):
                return self._symbol(value)
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
                return self._symbol(value)

    def _size(self, size: int | SSAValue) -> Size:
        return Size.constant(size) if isinstance(size, int) else self.of(size)

    def _coordinate(self, op: DelinearizeIndexOp, number: int) -> Size:
        """Of the element at a multiple of some number plus a smaller one: the one at the multiple, the last coordinate with the rest."""
        linear, sizes = self.of(op.linear_index), tuple(map(self._size, op.basis))
        rest, constant = split_constant(linear)
        unit = gcd(self.divisor(rest), self.divisor(sizes[-1])) if sizes else 0
        left = constant % unit if unit else 0
        found = Coordinate(linear - left, sizes, len(op.multi_index) - number)
        return self._symbol(found) + (left if found.from_last == 1 else 0)

    def divisor(self, total: Size) -> int:
        """A number that divides the sum whatever its values are; 0 if it is always 0."""
        return gcd(
            *(
                coefficient * prod(self._divisor(self.terms[atom]) ** power for atom, power in factors)
                for factors, coefficient in total.terms
            )
        )

    def _divisor(self, term: Term) -> int:
        match term:
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
