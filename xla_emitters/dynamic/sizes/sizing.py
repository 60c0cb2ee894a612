"""Shape rules over the sizes of a program: axes that are kept, sums and quotients of symbols, and what an op requires of them.

    transpose %x {dimensions = [1, 0]}               (axis 1 of x, axis 0 of x)
    concatenate %x, %y {dimensions = [0]}            (size of x's axis 0 + size of y's axis 0, axis 1 of x and of y)
    dynamic_reshape %x, %shape                       the elements of %shape

A number is the size of an axis, which keeps its key until it is computed with, or a `Size`. The walk records the requirements: two axes
that must be equal are joined; a size that must be equal to another is a fact, or is left to the op; the others become guards.
A number that depends on data is only added and subtracted (`numbers`).
Source: docs/reference/4 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from xla_emitters.algebra.facts import Facts
from xla_emitters.algebra.size import Size, floordiv, maximum, minimum
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.shape_rule import UNKNOWN, Broken, Number, Sizing, Unknown
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dynamic.sizes.numbers import is_data
from xla_emitters.dynamic.sizes.walked_array import AxisKey, Leaf

Entry: TypeAlias = AxisKey | Size | None
"""The size of an axis of a result: that of an operand's axis, a size, or None if it depends on data."""


class KnownSizes(Protocol):
    """The interface of the walk."""

    @property
    def facts(self) -> Facts: ...

    def size(self, key: AxisKey) -> Size | None:
        """The size of an axis; None if unknown."""
        ...

    def join(self, a: AxisKey, b: AxisKey, op: HloOp) -> None:
        """Records that `op` requires these axes to be equal."""
        ...

    def equal_products(self, a: Sequence[Entry], b: Sequence[Entry], op: HloOp) -> None:
        """Records that `op` requires the same number of elements on both sides."""
        ...

    def equals(self, own: Size | None, size: Size | None, op: HloOp) -> None:
        """Records that `op` requires these sizes to be equal, which a kernel does not check."""
        ...

    def inside(self, start: Size, limit: Size, size: Size, op: HloOp) -> None:
        """Records that `op` requires 0 <= start <= limit <= size."""
        ...

    def fits(self, window: Size, size: Size, op: HloOp) -> None:
        """Records that `op` requires window <= size, whether it runs or not."""
        ...

    def repeats(self, own: Size, size: Size, op: HloOp) -> None:
        """Records that `op` requires an axis to have one element, or `size` of them, whether it runs or not."""
        ...


class _Number:
    """A size, and the axis that has it if it is an operand's; None: not known."""

    def __init__(self, s: SizeSizing, size: Size | None, key: AxisKey | None = None) -> None:
        self.s, self.size, self.key = s, size, key

    def _with(self, other: Number, computed: Callable[[Size, Size], Size], *, of_data: bool = False) -> Number:
        return self.s.computed(self, other, computed, of_data=of_data)

    def __add__(self, other: Number) -> Number:
        return self if isinstance(other, int) and other == 0 else self._with(other, lambda a, b: a + b, of_data=True)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return self if isinstance(other, int) and other == 0 else self._with(other, lambda a, b: a - b, of_data=True)

    def __rsub__(self, other: int) -> Number:
        return self._with(other, lambda a, b: b - a, of_data=True)

    def __mul__(self, other: Number) -> Number:
        return self if isinstance(other, int) and other == 1 else self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Number:
        divisor = self.s.size_of(other)
        if divisor is None or self.s.walk.facts.at_least(divisor, 1) is not True:
            return UNKNOWN
        return self if divisor == 1 else self._with(other, floordiv)


class SizeSizing(Sizing):
    """The sizes of the operands `leaves` of `op`, known to `walk`."""

    def __init__(self, op: HloOp, leaves: Sequence[Leaf], walk: KnownSizes) -> None:
        super().__init__(op.operands)
        self.op, self.leaves, self.walk = op, leaves, walk

    def shapes(self) -> list[list[Entry]] | None:
        """The shape of each array of the op's result; None: its type says it."""
        found = self.op.shapes(self) if self.leaves else None
        return None if found is None else [[self._entry(number) for number in shape] for shape in found]

    def _entry(self, number: Number) -> Entry:
        return number.key if isinstance(number, _Number) and number.key is not None else self.size_of(number)

    def size_of(self, number: Number) -> Size | None:
        if isinstance(number, int):
            return Size.constant(number)
        return number.size if isinstance(number, _Number) else None

    def computed(
        self, a: Number, b: Number, computed: Callable[[Size, Size], Size], *, of_data: bool = False
    ) -> Number:
        """The number computed from the sizes of a and b; unknown if one is not known, or depends on data and `of_data` is not given."""
        left, right = self.size_of(a), self.size_of(b)
        if left is None or right is None or (not of_data and (is_data(left) or is_data(right))):
            return UNKNOWN
        return _Number(self, computed(left, right))

    # ------------------------------------------------------------------------------------------------------- questions

    def axis(self, operand: int, dim: int) -> Number:
        key = self.leaves[operand].axis(dim)
        return _Number(self, self.walk.size(key), key)

    def held(self, operand: int, *indices: int) -> Number:
        dims, elements = dims_of(self.op.operands[operand]), self.leaves[operand].elements
        at = 0
        for index, size in zip(indices, dims, strict=True):
            at = at * size + index
        found = elements[at] if elements is not None and at < len(elements) else None
        return _Number(self, found) if isinstance(found, Size) else UNKNOWN

    def known(self, number: Number) -> int | None:
        size = self.size_of(number)
        return None if size is None else size.value

    def maximum(self, a: Number, b: Number) -> Number:
        return self._extreme(a, b, self._at_least(a, b), maximum)

    def minimum(self, a: Number, b: Number) -> Number:
        return self._extreme(a, b, self._at_least(b, a), minimum)

    def _extreme(self, a: Number, b: Number, is_first: bool | None, computed: Callable[[Size, Size], Size]) -> Number:
        if is_first is None:
            return self.computed(a, b, computed)
        return a if is_first else b

    def _at_least(self, a: Number, b: Number) -> bool | None:
        left, right = self.size_of(a), self.size_of(b)
        return None if left is None or right is None else self.walk.facts.at_least(left, right)

    # ---------------------------------------------------------------------------------------------------- requirements

    def same(self, a: Number, b: Number, broken: Broken) -> Number:
        if isinstance(a, _Number) and isinstance(b, _Number) and a.key is not None and b.key is not None:
            self.walk.join(a.key, b.key, self.op)
        else:
            self.walk.equals(self.size_of(a), self.size_of(b), self.op)
        return b if isinstance(a, Unknown) else a

    def same_product(self, a: Sequence[Number], b: Sequence[Number], broken: Broken) -> None:
        self.walk.equal_products([self._entry(number) for number in a], [self._entry(number) for number in b], self.op)

    def fits(self, window: Number, size: Number, broken: Broken, said: str) -> None:
        inner, outer = self.size_of(window), self.size_of(size)
        if inner is not None and outer is not None:
            self.walk.fits(inner, outer, self.op)

    def repeats(self, own: Number, wanted: Number, broken: Broken, said: str) -> Number:
        size, result = self.size_of(own), self.size_of(wanted)
        if size is not None and result is not None:
            self.walk.repeats(size, result, self.op)
        return own if result is None and self._at_least(own, 2) else wanted

    def inside(self, start: Number, limit: Number, size: Number, said: str, shown: Sequence[Number]) -> None:
        sizes = [self.size_of(number) for number in (start, limit, size)]
        first, last, whole = sizes
        if first is not None and last is not None and whole is not None:
            self.walk.inside(first, last, whole, self.op)

    def broadcast(self, sizes: Sequence[Number]) -> Number:
        """The size that all have, or the only one that may differ from 1."""
        large = [size for size in sizes if self.known(size) != 1]
        if not large:
            return 1
        for size in large:
            if len(large) == 1 or self._at_least(size, 2):
                return size
        known = [self.size_of(size) for size in sizes]
        first = known[0]
        is_one = first is not None and all(size is not None and self.walk.facts.equal(first, size) for size in known)
        return sizes[0] if is_one else UNKNOWN
