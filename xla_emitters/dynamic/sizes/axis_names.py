"""The size of every axis as text, including sizes that depend on data: `b*s`, `u0`.

    names = SizeNames(sizes_of(module))
    names.of(value)     ->  [("b", "s", "32")]        for each array of the value

Axes that must have the same size have the same name, so equal texts are equal sizes; `u0`, `u1` ... name sizes that no symbol determines.
None: an axis for which even this is unknown, because its computation runs several times with different sizes, or because a loop may
change it.
"""

from __future__ import annotations

from itertools import count

from xdsl.ir import SSAValue

from xla_emitters.dynamic.sizes.arrays import AxisKey, Leaf, leaves
from xla_emitters.dynamic.sizes.program import Sizes


class SizeNames:
    """Names of the sizes of a program's values."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        taken = {solved.symbol for solved in sizes.guards.plan.solved}
        self._fresh = (name for name in (f"u{number}" for number in count()) if name not in taken)
        self._named = list[tuple[AxisKey, str]]()

    def of(self, value: SSAValue) -> list[tuple[str | None, ...]]:
        """The sizes of each array of a value; an empty list for a value that was not walked."""
        contexts = [list(leaves(found)) for found in self.sizes.walk.values.get(value, ())]
        if not contexts:
            return []
        arrays = list[tuple[str | None, ...]]()
        for same in zip(*contexts, strict=True):
            texts = [self._texts(leaf, is_alone=len(contexts) == 1) for leaf in same]
            arrays.append(tuple(row[0] if len(set(row)) == 1 else None for row in zip(*texts, strict=True)))
        return arrays

    def _texts(self, leaf: Leaf, *, is_alone: bool) -> list[str | None]:
        return [self._text(key, is_alone=is_alone) for key in leaf.axes]

    def _text(self, key: AxisKey, *, is_alone: bool) -> str | None:
        known = self.sizes.walk.size(key)
        if known is not None:
            return str(known)
        axes = self.sizes.walk.axes
        if not is_alone or any(axes.same(key, other) for other in self.sizes.walk.changing):
            return None
        for other, name in self._named:
            if axes.same(key, other):
                return name
        self._named.append((key, next(self._fresh)))
        return self._named[-1][1]
