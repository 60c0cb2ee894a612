"""The longest chain of additions of a row in kernels that read rows once, which bounds how far their sums may be off.

    a row of 1000 elements, 32 threads of four adjacent ones      8 steps of 4, then 5 rounds between 32 threads, and the initial value: 38

A thread adds its own elements one after the other; then threads combine their sums in pairs. The way of each kernel is the attribute
`xla.stitched` of its computation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dialects.isa import isa
from xla_emitters.graph.view import STITCHED, FusionView

LOOP, INITIAL = 1, 1
"""A thread's own sum starts from one value, to which the row's initial value is added last."""


def row_chains(views: Iterable[FusionView]) -> Mapping[int, int]:
    """Columns of a row that kernels of these reduce -> additions of the longest chain; of several kernels, the longest."""
    found = dict[int, int]()
    for view in views:
        way = view.computation.attributes.get(STITCHED)
        for op in view.instructions if way is not None else ():
            if isinstance(op, ReduceOp):
                columns = prod(dims_of(op.arrays[0])[dim] for dim in integers(op.dimensions))
                found[columns] = max(found.get(columns, 0), chain_of(columns, *_threads_and_width(way)))
    return found


def chain_of(columns: int, per_row: int, width: int) -> int:
    """Additions of a chain in a row that `per_row` threads share, `width` adjacent columns at a time."""
    own = -(-columns // (per_row * width)) * width
    return min(columns, LOOP + own) + (per_row - 1).bit_length() + INITIAL


def _threads_and_width(way: Attribute | None) -> tuple[int, int]:
    assert isinstance(way, DictionaryAttr)
    form, width = way.data["form"], way.data["vector"]
    assert isa(form, ArrayAttr[Attribute])
    per_row = form.data[0]
    assert isinstance(per_row, IntegerAttr)
    assert isinstance(width, IntegerAttr)
    return per_row.value.data, width.value.data
