"""The numbers and questions that an op's shape rule is written against: one rule an op, for every kind of number.

    class TransposeOp:                                                 rule of dim_k = size of the operand's axis dimensions[k]
        def shapes(self, s):
            return [[s.axis(0, dim) for dim in integers(self.dimensions)]]

    numbers                     kind                                      unknown                        used for
    ints, of types              `TypeSizing`                              `?`, elements of an operand    verifiers
    ints, of values             `sized.ValueSizing`                       nothing                        the reference
    `Size` of a program         `dynamic/sizes/sizing.py`                 sizes that depend on data      size inference, guards
    code of `index` values      `dynamic/buffers/result_sizes.py`         -                              allocations
    instructions of the host    `dynamic/passes/disc_check_numbers.py`    -                              assertions about data

A rule adds, subtracts, multiplies and divides with Python's operators (`//` rounds down; a divisor is positive), and asks the sizing for
the larger or smaller of two numbers. It states what the op requires (`same`, `fits` ...). What a broken requirement means is up to the
kind: a message at the op, a fact, a guard, an assertion, or nothing if another kind has checked it. A rule never compares numbers: only
`known` tells an int from a number that is decided later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.hlo.types import UNBOUNDED, dims_of


class Number(Protocol):
    """An int, or a value of a kind that computes with ints."""

    def __add__(self, other: Any, /) -> Any: ...

    def __radd__(self, other: Any, /) -> Any: ...

    def __sub__(self, other: Any, /) -> Any: ...

    def __rsub__(self, other: Any, /) -> Any: ...

    def __mul__(self, other: Any, /) -> Any: ...

    def __rmul__(self, other: Any, /) -> Any: ...

    def __floordiv__(self, other: Any, /) -> Any: ...


class Unknown:
    """A number of which nothing is known; so is what is computed from it."""

    def _unknown(self, other: object, /) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _unknown

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Unknown()

MOST = 1 << 40
"""The largest padding, or number of a window, that data may hold: sums and products of a few of them fit 64 bits."""

Shape: TypeAlias = Sequence[Number]
"""The sizes of an array."""

Condition: TypeAlias = tuple[Number, Number]
"""(a, b): a <= b."""

Broken: TypeAlias = Callable[[], VerifyException]
"""Makes the verifier's message for a requirement that does not hold."""


class Arithmetic(ABC):
    """What a rule computes that operators do not."""

    def known(self, number: Number) -> int | None:
        """The value of a number that is known already."""
        return number if isinstance(number, int) else None

    @abstractmethod
    def maximum(self, a: Number, b: Number) -> Number: ...

    @abstractmethod
    def minimum(self, a: Number, b: Number) -> Number: ...

    def ceildiv(self, a: Number, b: Number) -> Number:
        """a / b rounded up, in a form in which no b makes a sum wrap around."""
        return (a - 1) // b + 1

    def product(self, numbers: Sequence[Number]) -> Number:
        found: Number = 1
        for number in numbers:
            found = found * number
        return found


class Ints(Arithmetic):
    """Of ints."""

    def maximum(self, a: Number, b: Number) -> Number:
        return max(a, b) if isinstance(a, int) and isinstance(b, int) else UNKNOWN

    def minimum(self, a: Number, b: Number) -> Number:
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else UNKNOWN


INTS = Ints()


class Sizing(Arithmetic):
    """What a rule asks about an op's operands, and what it states about them."""

    def __init__(self, operands: Sequence[SSAValue]) -> None:
        self.operands = operands

    @abstractmethod
    def axis(self, operand: int, dim: int) -> Number:
        """The size of an operand along a dimension."""

    @abstractmethod
    def held(self, operand: int, *indices: int) -> Number:
        """The element at these indices of an operand that holds integers."""

    def axes(self, operand: int) -> list[Number]:
        """All sizes of an operand."""
        return [self.axis(operand, dim) for dim in range(len(dims_of(self.operands[operand])))]

    # ------------------------------------------------------------------------------------------ what the op requires

    def require(
        self,
        said: str,
        shown: Sequence[Number],
        conditions: Sequence[Condition],
        *,
        guarded: bool = False,
        of_data: bool = False,
    ) -> None:
        """Requires a <= b for all conditions (a, b) on numbers that operands hold; no type says them.

        said     the message if one does not hold, with {0}, {1} ... for the numbers `shown`
        guarded  whether a program's guards check it where all numbers follow from the arguments' sizes
        of_data  whether it needs no check at all there
        """

    def same(self, a: Number, b: Number, broken: Broken) -> Number:
        """Requires a == b. returns the one of which more is known"""
        return a if self.known(b) is None else b

    def same_product(self, a: Sequence[Number], b: Sequence[Number], broken: Broken) -> None:
        """Requires as many elements in an array of the sizes `a` as in one of the sizes `b`."""

    def fits(self, window: Number, size: Number, broken: Broken, said: str) -> None:
        """Requires 0 <= window <= size, whether the op runs or not; `said`: with {0} for the size and {1} for the window"""
        self.require(said, [size, window], [(window, size), (0, window)])

    def repeats(self, own: Number, wanted: Number, broken: Broken, said: str) -> Number:
        """Requires that `own`, {0}, is 1 or `wanted`, {1}, whether the op runs or not. returns the size of the result's axis"""
        return wanted

    def inside(self, start: Number, limit: Number, size: Number, said: str, shown: Sequence[Number]) -> None:
        """Requires 0 <= start <= limit <= size, for what takes a part of an axis."""
        self.require(said, shown, [(0, start), (start, limit), (limit, size)], guarded=True)

    def is_size(self, number: Number, dim: int) -> Number:
        """Requires that an element of an operand is the size of an axis `dim`. returns it"""
        self.require(f"the size {{0}} of axis {dim} is negative", [number], [(0, number)], guarded=True)
        return number

    def broadcast(self, sizes: Sequence[Number]) -> Number:
        """The common size of axes, of which those of size 1 are repeated."""
        return UNKNOWN


def said(dims: Sequence[int]) -> list[Number]:
    """The sizes in a type as numbers."""
    return [UNKNOWN if size == UNBOUNDED else size for size in dims]


def as_int(number: Number) -> int:
    """A number that is an int."""
    assert isinstance(number, int)
    return number


def spelled(shape: Shape) -> list[int]:
    """The sizes of a type: UNBOUNDED for what is not known."""
    return [size if isinstance(size, int) else UNBOUNDED for size in shape]


def same_axes(s: Sizing, operands: Sequence[int], differs: Callable[[int], VerifyException]) -> list[Number]:
    """The sizes that operands of one rank must have in common; `differs` makes the message for one of them."""
    found = s.axes(operands[0])
    for i in operands[1:]:
        broken = partial(differs, i)
        found = [s.same(size, other, broken) for size, other in zip(found, s.axes(i), strict=True)]
    return found


def fits_inside(s: Sizing, window: Shape, sizes: Shape, outside: Broken) -> None:
    """A window fits inside an array along every axis."""
    for dim, (size, whole) in enumerate(zip(window, sizes, strict=True)):
        s.fits(size, whole, outside, f"no window of {{1}} fits inside axis {dim} of the operand, whose size is {{0}}")


def padded(s: Arithmetic, size: Number, low: Number, high: Number, interior: Number) -> Number:
    """The size of an axis with `low` elements before it, `high` after it and `interior` between its elements."""
    between = size if s.known(interior) == 0 else size + s.maximum(size - 1, 0) * interior
    return between + low + high


def positions(
    s: Arithmetic,
    elements: Number,
    size: Number,
    stride: Number,
    low: Number,
    high: Number,
    base: Number,
    window: Number,
) -> Number:
    """The number of positions of a window of `size` elements along an axis.

    base, window  dilations: the array has base - 1 holes between neighbours; the window's elements are `window` apart
    """
    if s.known(size) == 0:
        return 0
    spread = elements if s.known(base) == 1 else s.maximum((elements - 1) * base + 1, 0)
    room = spread + low + high - ((size - 1) * window + 1)
    return s.maximum(room // stride + 1, 0)


class TypeSizing(Ints, Sizing):
    """The sizes in the operands' types. A requirement that known sizes break is a RuleBroken."""

    def axis(self, operand: int, dim: int) -> Number:
        size = dims_of(self.operands[operand])[dim]
        return UNKNOWN if size == UNBOUNDED else size

    def axes(self, operand: int) -> list[Number]:
        return said(dims_of(self.operands[operand]))

    def held(self, operand: int, *indices: int) -> Number:
        return UNKNOWN

    def same(self, a: Number, b: Number, broken: Broken) -> Number:
        if isinstance(a, int) and isinstance(b, int) and a != b:
            raise broken()
        return a if isinstance(a, int) else b

    def same_product(self, a: Sequence[Number], b: Sequence[Number], broken: Broken) -> None:
        self.same(self.product(a), self.product(b), broken)

    def fits(self, window: Number, size: Number, broken: Broken, said: str) -> None:
        if isinstance(window, int) and isinstance(size, int) and window > size:
            raise broken()

    def repeats(self, own: Number, wanted: Number, broken: Broken, said: str) -> Number:
        if isinstance(own, int) and isinstance(wanted, int) and own not in (1, wanted):
            raise broken()
        return wanted

    def broadcast(self, sizes: Sequence[Number]) -> Number:
        large = [size for size in sizes if size != 1]
        return next((size for size in large if isinstance(size, int)), UNKNOWN if large else 1)
