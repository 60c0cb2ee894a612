"""The forms of a stitched fusion: how many threads share a row, and how many steps they hold in registers.

A thread holds its elements of a row in a private array whose indices are constants, because the steps are unrolled; LLVM promotes the array
to registers. If the length of a row is known, the rule of `rule_of` chooses a form. If not, each form holds rows up to a length, the host
takes the first that is long enough, and steps behind a row's end are skipped:

    single f32      vectors of four      form
    up to 24        up to 64             eight lanes per row, 32 rows per block
    512             1024                 a warp per row, eight rows per block
    2048            4096                 a block of four warps per row
    8192            16384                a block of 512 threads per row; longer ones without weights, if there are any
    more            more                 a block per row; each loop reads its sources again

Longer code does not pay: 32 elements, and 128 bytes, of a row in each thread are as fast as fewer by the cost model, more are not.
Source: docs/decisions/26.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from xla_emitters.dialects.isa import isa
from xla_emitters.dynamic.loops.row_loop import BLOCK_A_ROW, LANES_A_ROW, WARP_A_ROW
from xla_emitters.dynamic.loops.row_rounds import ALONE, THREADS, WARP, RowThreads

REGISTERS, NOWHERE = ("registers", "nowhere")
"""Places in which the rows of a form are kept."""
LONG_ROW, MOST_THREADS = 8192, 1024
"""Columns of a row that is read again from which a block gets the maximal number of threads."""
SHORT_ROW_NOT_KEPT = 1024
"""Most columns of a row for a warp, if nothing of it is kept."""
WARPS_A_ROW = RowThreads(128, 128)
LARGE_BLOCK_A_ROW = RowThreads(512, 512)
FEW_HELD_BYTES, FEW_HELD, FEW_SKIPPED = 128, 32, 16
"""Most bytes and elements of a row that a thread holds by rule; and steps, if some may be skipped."""
MOST_HELD_BYTES = 192
"""Bytes of rows in the registers of a thread, which has 255 of four bytes at most; small enough that many warps fit."""
FEW_STEPS, FEW_SINGLE_STEPS, NEAR_BYTES = 2, 3, 128
"""Threads of a row that read less than a line of 128 bytes together read it in a few steps: with vectors, and element by element."""
MOST_LANES_LEFT = 2
"""A row has at least half as many columns as its threads take in one step, except with one thread per row."""
MOST_CACHED_BYTES = 256 * 1024
"""Bytes of the second-level cache of a CPU's core."""


class RowForm(NamedTuple):
    """The attribute `disc.row_form`.

    per_row    threads of a row
    per_block  threads of a block
    kept       where rows are kept: one of KEPT_IN
    weights    "block" or "row": how often vectors that all rows read are read
    """

    per_row: int
    per_block: int
    kept: str
    weights: str = "block"

    def to_attr(self) -> ArrayAttr[Attribute]:
        threads = (IntegerAttr(self.per_row, i64), IntegerAttr(self.per_block, i64))
        return ArrayAttr([*threads, StringAttr(self.kept), StringAttr(self.weights)])

    @staticmethod
    def from_attr(attribute: ArrayAttr[Attribute]) -> RowForm:
        """The inverse of `to_attr`."""
        per_row, per_block, kept, weights = attribute.data
        assert isa(per_row, IntegerAttr)
        assert isa(per_block, IntegerAttr)
        assert isa(kept, StringAttr)
        assert isa(weights, StringAttr)
        return RowForm(per_row.value.data, per_block.value.data, kept.data, weights.data)


class HeldRow(NamedTuple):
    """What a thread may hold of a row.

    kept_bytes    bytes per column of the arrays that several loops over a row need
    vector_bytes  bytes per column of the arrays that all rows read
    width         adjacent columns that a thread takes
    most_bits     of an element of an array of the matrix's size
    """

    kept_bytes: int
    vector_bytes: int
    width: int
    most_bits: int

    def held_bytes(self, weights: str) -> int:
        """Bytes per column that a thread holds."""
        return self.kept_bytes + (self.vector_bytes if weights == "block" else 0)

    def steps(self, columns: int, per_row: int) -> int:
        return -(-columns // (per_row * self.width))

    def fits(self, columns: int, form: RowForm) -> bool:
        """Whether a thread can hold its elements."""
        return self.steps(columns, form.per_row) * self.width * self.held_bytes(form.weights) <= MOST_HELD_BYTES

    def is_enough(self, columns: int, form: RowForm) -> bool:
        """Whether a thread has few elements of a row, and a warp reads few places at a time."""
        steps = self.steps(columns, form.per_row)
        held = steps * self.width
        is_near = form.per_row >= WARP or form.per_row * self.width * self.most_bits >= 8 * NEAR_BYTES
        is_short = steps <= (FEW_STEPS if self.width > 1 else FEW_SINGLE_STEPS)
        return held <= FEW_HELD and held * self.held_bytes(form.weights) <= FEW_HELD_BYTES and (is_near or is_short)

    def most_steps(self, weights: str) -> int:
        """Steps of a thread in rows of unknown length."""
        held = min(FEW_HELD, FEW_HELD_BYTES // self.held_bytes(weights)) // self.width
        return max(1, min(held, FEW_SKIPPED))


def ways_of(row: HeldRow, columns: int) -> list[RowForm]:
    """The forms that hold a row of known length, few threads first; a single one that reads it again if there is none."""
    found = [form for form in _all_forms(row, columns) if row.fits(columns, form)]
    long = THREADS if columns <= LONG_ROW else MOST_THREADS
    return found or [RowForm(long, long, NOWHERE)]


def _all_forms(row: HeldRow, columns: int) -> Iterator[RowForm]:
    for per_row in (1, 2, 4, 8, 16, WARP, 64, 128, 256, 512, MOST_THREADS):
        if per_row == 1 or per_row * row.width <= MOST_LANES_LEFT * columns:
            per_block = max(per_row, THREADS if per_row <= WARP else 0)
            yield RowForm(per_row, per_block, REGISTERS)
            if row.vector_bytes:
                yield RowForm(per_row, per_block, REGISTERS, "row")


def rule_of(row: HeldRow, columns: int) -> RowForm:
    """The form by rule: the fewest threads that are enough, else the most; weights are read once per block if they fit."""
    ways = ways_of(row, columns)
    once = [form for form in ways if form.weights == "block"] or ways
    return next((form for form in once if row.is_enough(columns, form)), once[-1])


class StitchForm(NamedTuple):
    """One way to compute a stitched fusion.

    name     appended to the fusion's name, if there are several forms
    threads  per row
    keeps    whether sources of several rounds are kept
    most     most columns; a longer row takes the next form
    shares   whether vectors that are the same for each row are kept for all rows of a block
    steps    of a thread in a row, whose elements are in registers; 0: they are in memory
    """

    name: str
    threads: RowThreads
    keeps: bool
    most: int | None = None
    shares: bool = False
    steps: int = 0

    @staticmethod
    def of(form: RowForm, row: HeldRow, columns: int) -> StitchForm:
        """The form of rows of known length."""
        keeps = form.kept == REGISTERS
        shares = keeps and form.weights == "block" and row.vector_bytes > 0
        steps = row.steps(columns, form.per_row) if keeps else 0
        return StitchForm("row", RowThreads(form.per_row, form.per_block), keeps, None, shares, steps)


def forms_of(row: HeldRow, hint: int | None = None) -> list[StitchForm]:
    """The forms of rows of unknown length, shortest rows first.

    hint   1: a block per row, 2: a warp per row, for any length of rows
    """
    if not row.kept_bytes:
        short = StitchForm("warp", WARP_A_ROW, keeps=False, most=SHORT_ROW_NOT_KEPT)
        long = StitchForm("block", BLOCK_A_ROW, keeps=False)
        return [short, long] if hint is None else [short._replace(most=None) if hint == 2 else long]

    def held(name: str, threads: RowThreads, steps: int | None = None, weights: str = "block") -> StitchForm:
        taken = row.most_steps(weights) if steps is None else steps
        shares = weights == "block" and row.vector_bytes > 0
        return StitchForm(name, threads, True, threads.per_row * row.width * taken, shares, taken)

    long = StitchForm("long", BLOCK_A_ROW, keeps=False)
    if hint is not None:
        one = held("warp", WARP_A_ROW) if hint == 2 else held("block", BLOCK_A_ROW)
        return [one, long._replace(threads=one.threads)]
    forms = [
        held("lanes", LANES_A_ROW, FEW_STEPS if row.width > 1 else FEW_SINGLE_STEPS),
        held("warp", WARP_A_ROW),
        held("warps", WARPS_A_ROW),
        held("block", LARGE_BLOCK_A_ROW),
    ]
    if row.vector_bytes:
        forms.append(held("apart", LARGE_BLOCK_A_ROW, weights="row"))
    return [*forms, long]


def forms_alone(bytes_a_column: int) -> list[StitchForm]:
    """The forms on a CPU, one thread per row: rows are kept if they stay in the first two caches."""
    long = StitchForm("long", ALONE, keeps=False)
    return (
        [StitchForm("row", ALONE, keeps=True, most=MOST_CACHED_BYTES // bytes_a_column), long]
        if bytes_a_column
        else [long]
    )


def next_for(forms: Sequence[StitchForm], columns: int) -> StitchForm:
    """The first form that is long enough."""
    return next(form for form in forms if form.most is None or columns <= form.most)
