"""Thread and block ids as variables of indexing maps.

ids = LaunchIds(launch)
IndexingMap((ids.block * 128 + ids.thread, ids.symbol(0)), ids.dims, symbols)          (th_x, bl_x)[i] -> (bl_x * 128 + th_x, i)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.program import LaunchDimensions


@dataclass(frozen=True)
class LaunchIds:
    """The ids of a launch as the dims of maps: those of extent 1 are left out, and 0 where they are used."""

    launch: LaunchDimensions

    @property
    def dims(self) -> tuple[Variable, ...]:
        return tuple(Variable(Interval(0, extent - 1), name) for name, extent in self.launch.ids)

    @property
    def thread(self) -> Expr:
        return self._id("th_x")

    @property
    def block(self) -> Expr:
        return self._id("bl_x") + self._id("bl_y") * self.launch.grid[0]

    def _id(self, wanted: str) -> Expr:
        names = [name for name, _ in self.launch.ids]
        return Expr.variable(names.index(wanted)) if wanted in names else Expr.constant(0)

    def map(
        self, results: Sequence[Expr], symbols: Sequence[tuple[str, int]], *bounds: tuple[Expr, int]
    ) -> IndexingMap:
        """The map to `results` over the ids and the symbols (name, size); each pair (e, n) in `bounds` constrains e < n."""
        ranges = tuple(Variable(Interval(0, size - 1), name) for name, size in symbols)
        constraints = tuple((expression, Interval(0, size - 1)) for expression, size in bounds)
        full = IndexingMap(tuple(results), self.dims, ranges, constraints=constraints)
        simple = full.simplify().remove_unused_symbols()[0]
        # Bounds that the constraints imply would be checked twice.
        loose = replace(simple, dims=self.dims)
        return loose if loose.simplify() == simple else simple

    def of_threads(self, indexing_map: IndexingMap) -> IndexingMap:
        """`indexing_map`, which does not read the block id, with the thread id as its only dim."""
        threads = [number for number, (name, _) in enumerate(self.launch.ids) if name == "th_x"]
        gone = {number: 0 for number in range(len(self.launch.ids)) if number not in threads}
        return indexing_map.with_dims_fixed(gone)

    def symbol(self, number: int) -> Expr:
        return Expr.variable(len(self.launch.ids) + number)
