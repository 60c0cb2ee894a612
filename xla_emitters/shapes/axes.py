"""Which axes of which values have the same size: classes of axes, each with its size and the places that said so.

    axes = Axes(facts)
    axes.tie(("x", 0), b, "argument 0 (p0)")          x: b x 8
    axes.join(("x", 0), ("y", 0), "add at 7:3")       y has as many rows as x
    axes.size_of(("y", 0))      ->  b
    axes.tie(("y", 0), 4, "constant at 9:3")          now b == 4 is a fact, or an error that names both places

A key is anything hashable: (value, axis) where the compiler uses it. This is a union-find that is changed in place, because a
pass adds thousands of joins one after the other and looks at the result when it is done; the facts about sizes that
come out of it are in `facts`, a value as always.
Source: docs/reference/4 3.1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from xla_emitters.errors import Place, VerifyError
from xla_emitters.shapes.facts import Facts, Source
from xla_emitters.shapes.size import Size, as_size


class Axes:
    """Classes of keys whose sizes are equal.

    facts   what is known of the sizes: what the axes were made with, and an equality for every two sizes that met

    >>> b = Size.symbol("b")
    >>> axes = Axes(Facts())
    >>> axes.tie(("x", 0), b, "argument 0 (p0), axis 0")
    >>> axes.join(("x", 0), ("y", 0), "add")
    >>> axes.size_of(("y", 0)), axes.same(("x", 0), ("y", 0)), axes.same(("x", 0), ("z", 0))
    (<Size b>, True, None)
    >>> axes.tie(("y", 0), 4, "argument 1 (p1), axis 0")
    >>> axes.size_of(("x", 0)), axes.places_of(("x", 0))
    (<Size 4>, ('argument 0 (p0), axis 0', 'add', 'argument 1 (p1), axis 0'))
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._parents: dict[Hashable, Hashable] = {}
        self._members: dict[Hashable, int] = {}
        self._sizes: dict[Hashable, tuple[Size, Source]] = {}
        self._places: dict[Hashable, list[Source]] = {}

    def tie(self, key: Hashable, size: Size | int, place: Source) -> None:
        """The axis `key` has this size.

        raises VerifyError where that contradicts what is known; it names the two sizes and their places
        """
        root = self._find(key)
        new = (as_size(size), place)
        if root in self._sizes:
            self._meet(self._sizes[root], new, place)
        self._sizes.setdefault(root, new)
        self._remember(root, [place])

    def join(self, a: Hashable, b: Hashable, place: Source) -> None:
        """The axes `a` and `b` have the same size.

        raises VerifyError where they cannot, as `tie`; the axes are then as they were
        """
        kept, gone = self._find(a), self._find(b)
        if kept == gone:
            return
        if kept in self._sizes and gone in self._sizes:
            self._meet(self._sizes[kept], self._sizes[gone], place)
        places = [*self._places[kept], place, *self._places[gone]]
        if self._members[kept] < self._members[gone]:
            kept, gone = gone, kept
        self._parents[gone] = kept
        self._members[kept] += self._members.pop(gone)
        if gone in self._sizes:
            self._sizes.setdefault(kept, self._sizes.pop(gone))
        del self._places[gone]
        self._places[kept] = []
        self._remember(kept, places)

    def size_of(self, key: Hashable) -> Size | None:
        """The size of an axis, simplified by the facts; None where nothing tied it to one."""
        known = self._sizes.get(self._find(key))
        return None if known is None else self.facts.simplify(known[0])

    def places_of(self, key: Hashable) -> tuple[Source, ...]:
        """What said that this axis has the size it has: the first few places."""
        return tuple(self._places[self._find(key)])

    def same(self, a: Hashable, b: Hashable) -> bool | None:
        """The axes have the same size; None where that is not known."""
        left, right = self._find(a), self._find(b)
        if left == right:
            return True
        if left in self._sizes and right in self._sizes:
            return self.facts.equal(self._sizes[left][0], self._sizes[right][0])
        return None

    def same_product(self, a: Iterable[Hashable], b: Iterable[Hashable]) -> bool | None:
        """The axes `a` have as many elements together as the axes `b`: what a reshape needs.

        Axes without a size count where they are on both sides.

        >>> s = Size.symbol("s")
        >>> axes = Axes(Facts())
        >>> for key, size in (("x0", 2 * s), ("x1", 3), ("y0", 6), ("y1", s)):
        ...     axes.tie(key, size, "a test")
        >>> axes.same_product(["x0", "x1", "z"], ["y0", "z", "y1"]), axes.same_product(["x0"], ["y1", "z"])
        (True, None)
        """
        left, right = [self._find(key) for key in a], [self._find(key) for key in b]
        for root in list(left):
            if root not in self._sizes and root in right:
                left.remove(root)
                right.remove(root)
                # With a factor of 0 the products are equal whatever the others are: only True is kept.
                if self.same_product(left, right):
                    return True
                return None
        if not all(root in self._sizes for root in (*left, *right)):
            return None
        products = [Size.constant(1), Size.constant(1)]
        for side, roots in enumerate((left, right)):
            for root in roots:
                products[side] = products[side] * self._sizes[root][0]
        return self.facts.equal(*products)

    def classes(self) -> list[tuple[Hashable, ...]]:
        """The keys of every class, in the order in which they were met."""
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

    def _remember(self, root: Hashable, places: list[Source]) -> None:
        known = self._places[root]
        known += [place for place in dict.fromkeys(places) if place not in known]
        del known[_PLACES:]

    def _find(self, key: Hashable) -> Hashable:
        parent = self._parents.setdefault(key, key)
        if parent == key:
            if key not in self._members:
                self._members[key] = 1
                self._places[key] = []
            return key
        while (above := self._parents[parent]) != parent:
            self._parents[key] = above
            key, parent = parent, above
        return parent


def _note(source: Source, text: str) -> tuple[Place | None, str]:
    return (source, text) if isinstance(source, Place) else (None, f"{source}: {text}")


_PLACES = 16  # of a class that are remembered; an elementwise network has one class with a place for every op
