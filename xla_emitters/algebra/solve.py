"""Computes the values of the symbols from the shapes of a call's arguments.

    parameters  (b, 2*s, s + 1)                       plan:  b is axis 0 · s is axis 1 divided by 2 · s + 1 must be axis 2
    arguments   (2, 6, 4)          ->  b = 2, s = 3
    arguments   (2, 6, 5)          ->  DataError: argument 0 (p0): axis 2 is 5, but s + 1 is 4

The plan is made once per program. It solves for a symbol on an axis that is linear in it and has no other unknown: k*s + rest, where
rest has only symbols that are known by then. JAX does the same, with the same limits. All other axes and facts become checks.
Order in a run: ranks; each symbol, with the facts about it alone (an exact division, at least 1); the axes that
were not used to solve; the other facts.
Source: docs/reference/4 2.1, 7; behaviour of jax.export 0.10.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xla_emitters.algebra.facts import Fact, Facts
from xla_emitters.algebra.size import Size
from xla_emitters.algebra.size_text import print_shape
from xla_emitters.errors import DataError, Place, Unsupported


class Axis(NamedTuple):
    """An axis of an argument; both are numbered from 0."""

    argument: int
    axis: int


@dataclass(frozen=True, slots=True)
class DeclaredShape:
    """The shape that a program declares for an argument, and its name in the source; "" if it has none."""

    shape: tuple[Size, ...]
    name: str = ""


class Solved(NamedTuple):
    """The equation for a symbol: coefficient * symbol + rest == the size of the axis. `own` are the facts about this symbol alone."""

    symbol: str
    axis: Axis
    coefficient: int
    rest: Size
    own: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class SymbolPlan:
    """How the symbols of a program are computed from its arguments. Made by `plan`.

    solved    in the order of computation
    checked   axes that are not used to solve for a symbol
    others    facts about several symbols
    """

    parameters: tuple[DeclaredShape, ...]
    solved: tuple[Solved, ...]
    checked: tuple[Axis, ...]
    others: tuple[Fact, ...]

    def solve(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """The value of every symbol for arguments of these shapes.

        raises DataError, with argument and axis, if there is none

        >>> b, s = Size.symbol("b"), Size.symbol("s")
        >>> p = plan([DeclaredShape((b, 2 * s, s + 1))], Facts())
        >>> p.solve([(2, 6, 4)])
        {'b': 2, 's': 3}
        >>> p.solve([(2, 6, 5)])
        Traceback (most recent call last):
        ...
        xla_emitters.errors.DataError: error: [shapes] argument 0 (p0): axis 2 is 5, but s + 1 is 4
            s = 3 from axis 1 of argument 0 (p0), which is 6 = 2*s
            the argument has shape (2, 6, 5), the program wants (b, 2*s, s + 1)
        """
        self.check_ranks(shapes)
        values: dict[str, int] = {}
        for symbol, axis, coefficient, rest, own in self.solved:
            size = shapes[axis.argument][axis.axis]
            value, left = divmod(size - rest.evaluate(values), coefficient)
            if left:
                wanted = self.parameters[axis.argument].shape[axis.axis]
                raise self._error(
                    f"{self._label(axis.argument)}: axis {axis.axis} is {size}, but {wanted} is {size} for no integer {symbol}",
                    axis.argument,
                    shapes,
                    values,
                    tuple(sorted(rest.symbols)),
                )
            values[symbol] = value
            for fact in own:
                self._check_fact(fact, axis.argument, shapes, values)
        for argument, axis in self.checked:
            wanted = self.parameters[argument].shape[axis]
            size, expected = shapes[argument][axis], wanted.evaluate(values)
            if size != expected:
                said = f"but {wanted} is {expected}" if wanted.value is None else f"expected {expected}"
                message = f"{self._label(argument)}: axis {axis} is {size}, {said}"
                raise self._error(message, argument, shapes, values, tuple(sorted(wanted.symbols)))
        for fact in self.others:
            self._check_fact(fact, None, shapes, values)
        return values

    def check_ranks(self, shapes: Sequence[Sequence[int]]) -> None:
        """raises DataError for a wrong number of arguments, and for an argument of wrong rank"""
        if len(shapes) != len(self.parameters):
            raise DataError(f"{len(shapes)} arguments; the program takes {len(self.parameters)}", stage="shapes")
        for argument, (shape, parameter) in enumerate(zip(shapes, self.parameters, strict=True)):
            if len(shape) != len(parameter.shape):
                raise self._error(
                    f"{self._label(argument)}: rank {len(shape)}, expected {len(parameter.shape)}",
                    argument,
                    shapes,
                    {},
                    (),
                )
            if any(size < 0 for size in shape):
                raise self._error(f"{self._label(argument)}: a size is negative", argument, shapes, {}, ())

    def _check_fact(
        self, fact: Fact, argument: int | None, shapes: Sequence[Sequence[int]], values: dict[str, int]
    ) -> None:
        if fact.holds(values):
            return
        symbols = tuple(sorted(fact.left.symbols | fact.right.symbols))
        label = "" if argument is None else f"{self._label(argument)}: "
        given = " and ".join(f"{symbol} is {values[symbol]}" for symbol in symbols)
        source = f", as {fact.source} says" if fact.source else ""
        raise self._error(f"{label}{given}; {fact} is expected{source}", argument, shapes, values, symbols)

    def _label(self, argument: int) -> str:
        name = self.parameters[argument].name
        return f"argument {argument} (p{argument})" + (f" '{name}'" if name else "")

    def _error(
        self,
        message: str,
        argument: int | None,
        shapes: Sequence[Sequence[int]],
        values: dict[str, int],
        symbols: tuple[str, ...],
    ) -> DataError:
        """The error; below it the sources of the symbols that it names, and the shapes."""
        details: list[str] = []
        for symbol, axis, *_ in self.solved:
            if symbol in symbols and symbol in values:
                size, wanted = shapes[axis.argument][axis.axis], self.parameters[axis.argument].shape[axis.axis]
                equation = "" if wanted == Size.symbol(symbol) else f", which is {size} = {wanted}"
                details.append(
                    f"{symbol} = {values[symbol]} from axis {axis.axis} of {self._label(axis.argument)}{equation}"
                )
        if argument is not None:
            got, wanted = print_shape(shapes[argument]), print_shape(self.parameters[argument].shape)
            details.append(f"the argument has shape {got}, the program wants {wanted}")
        return DataError(message, stage="shapes", details=tuple(details))


def plan(parameters: Sequence[DeclaredShape], facts: Facts, place: Place | None = None) -> SymbolPlan:
    """The plan for the symbols of these parameters' shapes.

    facts    conditions that every run checks, except those on symbols that occur in no shape
    place    of the program's signature, for the error
    raises   Unsupported if a symbol cannot be solved for; it names the remaining symbols and axes

    >>> a, b = Size.symbol("a"), Size.symbol("b")
    >>> plan([DeclaredShape((a * b,)), DeclaredShape((a,))], Facts())
    Traceback (most recent call last):
    ...
    xla_emitters.errors.Unsupported: error: [shapes] no value of 'b' follows from the shapes of the arguments
        argument 0 (p0), axis 0: a*b
        help: use the symbol alone, or as k*b + known, as an axis of an argument
    """
    axes = [Axis(p, a) for p, parameter in enumerate(parameters) for a in range(len(parameter.shape))]
    size_of = {axis: parameters[axis.argument].shape[axis.axis] for axis in axes}
    single = [fact for fact in facts.stated if len(fact.left.symbols | fact.right.symbols) == 1]
    solved: list[Solved] = []
    known: set[str] = set()
    left = list(axes)
    has_progress = True
    while has_progress:
        has_progress = False
        for axis in list(left):
            found = _linear(size_of[axis], known)
            if found is not None:
                symbol, coefficient, rest = found
                own = tuple(fact for fact in single if symbol in fact.left.symbols | fact.right.symbols)
                solved.append(Solved(symbol, axis, coefficient, rest, own))
                known.add(symbol)
                left.remove(axis)
                has_progress = True
    wanted = {symbol for axis in axes for symbol in size_of[axis].symbols}
    if missing := sorted(wanted - known):
        names = ", ".join(f"'{name}'" for name in missing)
        unused = [axis for axis in left if not size_of[axis].symbols <= known]
        raise Unsupported(
            f"no value of {names} follows from the shapes of the arguments",
            stage="shapes",
            place=place,
            details=tuple(f"argument {p} (p{p}), axis {a}: {size_of[Axis(p, a)]}" for p, a in unused),
            help=f"use the symbol alone, or as k*{missing[0]} + known, as an axis of an argument",
        )
    others = tuple(
        fact for fact in facts.stated if fact not in single and fact.left.symbols | fact.right.symbols <= known
    )
    return SymbolPlan(tuple(parameters), tuple(solved), tuple(left), others)


def _linear(size: Size, known: set[str]) -> tuple[str, int, Size] | None:
    """(symbol, coefficient, rest) with size = coefficient * symbol + rest, where the rest has only known symbols; else None."""
    unknown = size.symbols - known
    if len(unknown) != 1:
        return None
    (symbol,) = unknown
    part = Size.symbol(symbol)
    factors = part.terms[0][0]
    coefficient = dict(size.terms).get(factors, 0)
    rest = size - part * coefficient
    return (symbol, coefficient, rest) if coefficient and symbol not in rest.symbols else None
