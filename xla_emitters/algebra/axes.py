"""Records which axes of which values have the same size: classes of axes, each with its size and the sources of that fact.

    axes = Axes(facts)
    axes.tie(("x", 0), b, "argument 0 (p0)")          x: b x 8
    axes.join(("x", 0), ("y", 0), "add at 7:3")       y has as many rows as x
    axes.size_of(("y", 0))      ->  b
    axes.tie(("y", 0), 4, "constant at 9:3")          now b == 4 is a fact, or an error that names both places

A key is anything hashable; the compiler uses (value, axis). This is a union-find that is modified in place, because a
pass adds thousands of joins one after the other and reads the result at the end; the resulting facts about sizes
are in `facts`, an immutable value as always.
Source: docs/reference/4 3.1.
"""

from __future__ import annotations

from collections.abc import Hashable

from xla_emitters.algebra.facts import Facts, Source
from xla_emitters.algebra.size import Size, as_size
from xla_emitters.errors import Place, VerifyError


class Axes:
    """Classes of keys whose sizes are equal.

    facts   known facts about the sizes: the initial ones, and an equality for every two sizes of one class

    >>> b = Size.symbol("b")
    >>> axes = Axes(Facts())
    >>> axes.tie(("x", 0), b, "argument 0 (p0), axis 0")
    >>> axes.join(("x", 0), ("y", 0), "add")
    >>> axes.size_of(("y", 0)), axes.same(("x", 0), ("y", 0)), axes.same(("x", 0), ("z", 0))
    (<Size b>, True, None)
    >>> axes.tie(("y", 0), 4, "argument 1 (p1), axis 0")
    >>> axes.size_of(("x", 0))
    <Size 4>
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._parents: dict[Hashable, Hashable] = {}
        self._members: dict[Hashable, int] = {}
        self._sizes: dict[Hashable, tuple[Size, Source]] = {}

    def tie(self, key: Hashable, size: Size | int, place: Source) -> None:
        """Records that the axis `key` has this size.

        raises VerifyError if that contradicts the facts; it names the two sizes and their sources
        """
        root = self._find(key)
        new = (as_size(size), place)
        if root in self._sizes:
            self._meet(self._sizes[root], new, place)
        self._sizes.setdefault(root, new)

    def join(self, a: Hashable, b: Hashable, place: Source) -> None:
        """Records that the axes `a` and `b` have the same size.

        raises VerifyError as `tie`, if they cannot be equal; the axes are then unchanged
        """
        kept, gone = self._find(a), self._find(b)
        if kept == gone:
            return
        if kept in self._sizes and gone in self._sizes:
            self._meet(self._sizes[kept], self._sizes[gone], place)
        if self._members[kept] < self._members[gone]:
            kept, gone = gone, kept
        self._parents[gone] = kept
        self._members[kept] += self._members.pop(gone)
        if gone in self._sizes:
            self._sizes.setdefault(kept, self._sizes.pop(gone))

    def size_of(self, key: Hashable) -> Size | None:
        """The size of an axis, simplified by the facts; None if it is not tied to one."""
        known = self._sizes.get(self._find(key))
        return None if known is None else self.facts.simplify(known[0])

    def same(self, a: Hashable, b: Hashable) -> bool | None:
        """Whether the axes have the same size; None if unknown."""
        left, right = self._find(a), self._find(b)
        if left == right:
            return True
        if left in self._sizes and right in self._sizes:
            return self.facts.equal(self._sizes[left][0], self._sizes[right][0])
        return None

    def classes(self) -> list[tuple[Hashable, ...]]:
        """The keys of every class, in the order of their first use."""
        found: dict[Hashable, list[Hashable]] = {}
        for key in self._parents:
            found.setdefault(self._find(key), []).append(key)
        return [tuple(keys) for keys in found.values()]

    def _meet(self, old: tuple[Size, Source], new: tuple[Size, Source], place: Source) -> None:
        if old[0] == new[0]:
            return
        try:
            self.facts = self.facts.with_equal(old[0], new[0], place)
        except VerifyError as error:
            said = [old, new, *([] if place in (old[1], new[1]) else [(None, place)])]
            notes = [_note(source, "the two meet here" if size is None else f"size {size}") for size, source in said]
            raise VerifyError(
                f"an axis has size {old[0]} and size {new[0]}",
                stage="shapes",
                place=place if isinstance(place, Place) else None,
                notes=tuple(dict.fromkeys((*notes, *error.notes))),
            ) from error

    def _find(self, key: Hashable) -> Hashable:
        parent = self._parents.setdefault(key, key)
        if parent == key:
            self._members.setdefault(key, 1)
            return key
        while (above := self._parents[parent]) != parent:
            self._parents[key] = above
            key, parent = parent, above
        return parent


def _note(source: Source, text: str) -> tuple[Place | None, str]:
    return (source, text) if isinstance(source, Place) else (None, f"{source}: {text}")
