"""Reductions of rows whose results are read again in the same kernel: a block keeps its rows' results in shared memory.

    m = reduce maximum x[r, c]                       one block: its rows of x, their maxima, the differences,
    e = exp(x - broadcast m)             ->          the sums, the quotients; m and s are in shared memory
    s = reduce add e;  y = e / broadcast s

Every reduction reads a matrix of r rows and c columns. An op that depends on one must stay in its row: element i of an array of r*c belongs
to row i div c, element i of an array of r to row i. That holds for elementwise ops and reshapes, whatever the ranks, and for a broadcast
of an array of r to one of r*c along the dimensions behind the rows. Any other op that depends on a reduction, such as a
transpose or a slice, is refused; ops that depend on none are computed wherever an element needs them. Each result has r*c elements or r.

The results of the reductions must fit into `SHARED_BYTES` for at least one row; how many rows a block has, and whether it keeps the row
itself too, the schedule decides when the sizes are known.
Source: docs/reference/4 3.3; Zheng et al., "AStitch: enabling a new multi-dimensional optimization space for memory-intensive ML training
and inference on modern SIMT architectures" (ASPLOS 2022).
"""

from __future__ import annotations

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.buffer_sizes import product
from xla_emitters.dynamic.buffers.fusion_rules import (
    BROADCASTS,
    COLUMN,
    RESHAPES,
    STITCH,
    Fusion,
    Group,
    Part,
    Verdict,
    matrix_of,
    too_large,
    updated_beside_others,
)

SHARED_BYTES = 8192
"""Shared memory of a block for its rows' results."""


def stitch_rules(group: Group, most_buffers: int) -> Verdict:
    """A fusion of kind kStitch, or why not."""
    if (why := too_large(group, most_buffers) or updated_beside_others(group)) is not None:
        return why
    if any(part.reduces == COLUMN for part in group.reductions):
        return "a reduction of columns needs all rows, which no one block has"
    rows, columns = matrix_of(group, group.reductions[0])
    for part in group.reductions:
        if len(part.writes) > 1:
            return f"the reduction {part.name} gives several arrays"
        if matrix_of(group, part) != (rows, columns):
            first = group.reductions[0].name
            return f"the rows of {part.name} are not known to be those of {first}: {rows} x {columns}"
    needed = sum((dtype_of(tensor_of(part.writes[0].type).element_type).bits + 7) // 8 for part in group.reductions)
    if needed > SHARED_BYTES:
        return f"a row gives {needed} bytes, a block keeps {SHARED_BYTES}"
    by_row = _Rows(group, rows, columns)
    for part in group.parts:
        if (why := by_row.why_not(part)) is not None:
            return why
    for part in group.results:
        if not by_row.is_regular(part):
            return f"the result {part.name} has neither a row's element nor one for each of its columns"
    return Fusion(STITCH, tuple(part.name for part in group.reductions))


class _Rows:
    """Which ops of a group depend on a reduction, and whether they stay in its row."""

    def __init__(self, group: Group, rows: Size, columns: Size) -> None:
        self.group = group
        self.rows, self.columns = rows, columns
        self.dependent = set[Part]()
        for part in group.parts:
            if part.reduces or any(other in self.dependent for other in group.reads_inside[part]):
                self.dependent.add(part)

    def is_regular(self, part: Part) -> bool:
        count = self.group.sizes.elements(part.writes[0])
        return count in (self.rows, self.rows * self.columns)

    def why_not(self, part: Part) -> str | None:
        """Why an op that depends on a reduction leaves its row; None if it stays."""
        before = [other for other in self.group.reads_inside[part] if other in self.dependent]
        if part.reduces:
            starts = [self.group.writer[buffer] for buffer in part.reads[1:] if buffer in self.group.writer]
            is_known = self.dependent.isdisjoint(starts)
            return None if is_known else f"the start of {part.name} follows from another reduction"
        if not before:
            return None
        if not self.is_regular(part):
            return f"{part.name} is not one element a row or one for each column"
        sizes = self.group.sizes
        if part.is_elementwise or part.opcode in RESHAPES:
            keeps = all(sizes.same_count(other.writes[0], part.writes[0]) for other in before)
        elif part.opcode in BROADCASTS:
            keeps = self._stays_in_row(part)
        else:
            keeps = False
        return None if keeps else f"{part.name} ({part.opcode}) moves what a row gave out of its row"

    def _stays_in_row(self, part: Part) -> bool:
        """Whether a broadcast gives each element of a row the row's number, or only adds dimensions of size 1."""
        given, wanted = self.group.sizes.of(part.reads[0]), self.group.sizes.of(part.writes[0])
        along = part.dimensions
        if list(along) != sorted(along):
            return False
        if all(given[along.index(dim)] == size if dim in along else size == 1 for dim, size in enumerate(wanted)):
            return True
        return any(
            product(wanted[:split]) == self.rows
            and product(wanted[split:]) == self.columns
            and all(given[i] == wanted[dim] for i, dim in enumerate(along) if dim < split)
            and all(given[i] == 1 for i, dim in enumerate(along) if dim >= split)
            and all(dim in along or wanted[dim] == 1 for dim in range(split))
            for split in range(len(wanted) + 1)
        )
