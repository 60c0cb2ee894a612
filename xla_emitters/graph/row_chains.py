"""The longest chain of additions of a row in kernels that read rows once, which bounds how far their sums may be off.

    a row of 1000 elements, 32 threads of four adjacent ones      8 steps of 4, then 5 rounds between 32 threads, and the initial value: 38
    a scan of that row                                            4, 5 between lanes, 8 steps before, and three to put them together: 20

A thread adds its own elements one after the other; then threads combine their sums in pairs. The way of each kernel is the attribute
`xla.stitched` of its computation; a scan's computation has the names of those that it was merged from (`xla.scans`), whose additions are
then in the kernel's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dialects.isa import isa
from xla_emitters.graph.reduction_kinds import chains_of_heroes
from xla_emitters.graph.scan_ranges import scan_of
from xla_emitters.graph.steps_of_reductions import two_steps_of
from xla_emitters.graph.view import SCANS, STITCHED, FusionView

WARP, TOGETHER = 32, 3
"""A scan puts together what is before the warp, before the thread, and the thread's own."""
LOOP, INITIAL = 1, 1
"""A thread's own sum starts from one value, to which the row's initial value is added last."""


def row_chains(views: Iterable[FusionView]) -> Mapping[int | str, int]:
    """Additions of the longest chain in these kernels.

    of columns that a kernel reduces, of several the longest; of the name of a computation whose windows kernels compute as scans: together
    """
    found = dict[int | str, int]()
    for view in views:
        way = view.computation.attributes.get(STITCHED)
        if isa(names := view.computation.attributes.get(SCANS), ArrayAttr[StringAttr]):
            chain = _chain_of_scan(view, way)
            for name in {view.computation.sym_name.data, *(each.data for each in names)}:
                found[name] = found.get(name, 0) + chain
        for op in view.instructions if way is not None else ():
            if isinstance(op, ReduceOp):
                steps, own = two_steps_of(op), _columns_of(op)
                columns, threads = own if steps is None else steps.columns, _threads_and_width(way)
                for each in (own,) if steps is None else (own, _columns_of(steps.first)):
                    found[each] = max(found.get(each, 0), chain_of(columns, *threads))
    return found


def _columns_of(op: ReduceOp) -> int:
    return prod(dims_of(op.arrays[0])[dim] for dim in integers(op.dimensions))


def chain_of(columns: int, per_row: int, width: int) -> int:
    """Additions of a chain in a row that `per_row` threads share, `width` adjacent columns at a time."""
    own = -(-columns // (per_row * width)) * width
    return min(columns, LOOP + own) + (per_row - 1).bit_length() + INITIAL


def _chain_of_scan(view: FusionView, way: Attribute | None) -> int:
    scan = scan_of(view)
    if way is None or scan is None:
        return max(chains_of_heroes(view.computation).values(), default=0)  # sums of chunks
    return chain_of_scan(scan.columns, *_threads_and_width(way))


def chain_of_scan(columns: int, per_row: int, width: int) -> int:
    """Combinations of a chain in a scan of a row that `per_row` threads share, `width` adjacent columns at a time."""
    steps, lanes = -(-columns // (per_row * width)), min(WARP, per_row)
    warps = per_row // WARP
    before = steps if warps <= 1 else (WARP - 1).bit_length() - (-steps * warps // WARP)
    return width + (lanes - 1).bit_length() + before + TOGETHER


def _threads_and_width(way: Attribute | None) -> tuple[int, int]:
    assert isinstance(way, DictionaryAttr)
    form, width = way.data["form"], way.data["vector"]
    assert isa(form, ArrayAttr[Attribute])
    per_row = form.data[0]
    assert isinstance(per_row, IntegerAttr)
    assert isinstance(width, IntegerAttr)
    return per_row.value.data, width.value.data
