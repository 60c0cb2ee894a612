"""ColReductionSchedule: sums along columns, in one order (two passes) or by atomic updates.

    lmhlo.reduce %x, %zero -> %y {dimensions = 0}                   32 columns by 8 rows of threads, a tile of 256 rows or more:

      ┌── 32 columns ──┐
      │ thread (r, c)  │ row r, r + 8, ... of column c, from coalesced loads                           %p
      │    ...         │ 8 partial results a column, which one thread combines: in shared memory       %q
      └────────────────┘

    two passes   memref.store %q, %partials[%tile, %column]         scf.parallel {disc.schedule = "column"}
                 the same over the rows of %partials                scf.parallel {disc.schedule = "column"}      -> %y
    atomics      memref.store %zero, %y[%column]                    scf.parallel {disc.schedule = "loop"}
                 memref.atomic_rmw addf %q, %y[%column]             scf.parallel {disc.schedule = "column"}

Two passes are the default: the order is fixed, so equal inputs give equal bits. They cost a buffer of at most 1024 rows, allocated on the
host, that is written and read once: less than a hundredth of the input's bytes if tiles have 256 rows or more. If one tile has all
rows, the first pass writes the results, and the second one has no blocks. `disc.atomics` on the fusion requests atomic updates where one
instruction has the reduction's meaning; others keep two passes.

With `disc.vector = 4` a thread takes four adjacent columns, and a tile has 64 columns, 16 rows of threads and 512 rows. A matrix
with few columns, known at compile time, has narrower and taller tiles: one column, 256 rows of threads. Tiles are the second dimension
of the grid, so a block does no division.

In a tile of the usual height a thread has 32 rows, in a loop with a known number of steps and without checks, so that
loads of later rows are issued before the additions of earlier ones. Other tiles (at the lower edge, of few rows, or taller because there
would be more than 1024) have a loop to the last row.

Partial results begin without an element, so that the initial value counts once: the pass that writes the result adds it, or the loop
before the atomic updates writes it. No rows: no tile, and the second pass gives the initial value. No columns: no block.
Source: seed document, "LhloLegalizeToLoop"; docs/reference/4 3.4 to 3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.lmhlo import BufferOp, tensor_of
from xla_emitters.dialects.mlir import arith, gpu
from xla_emitters.dtypes import Kind
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.combine import (
    Reducer,
    by_shape,
    parts_of,
    reduces_columns,
    starts_of,
    store_results,
    with_elements,
    with_partials,
)
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.roots import write_root
from xla_emitters.dynamic.loops.row_rounds import THREADS, WARP, SharedArrays
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.rewrite.kernel_pass import refusal

NAME = "column"
START = "loop"
"""The schedule of the loop that writes initial values: one iteration per element."""
ATOMICS = "disc.atomics"
"""Attribute of a fusion: reduce columns by atomic updates, if there is an instruction."""
ROWS_A_THREAD = 32
"""Least number of rows that a thread of the first pass takes; more if there would be more than MOST_TILES tiles."""
AT_A_TIME = 2
"""Rows whose elements are computed together. LLVM unrolls further if their code is short; for 4 rows of long code, threads would need
more registers than full occupancy allows."""
MOST_TILES = 1024
TOGETHER = 16
"""Rows of threads whose partial results one thread combines at once; tiles with few columns have more, and take several steps."""
STRIP, STRIP_ROWS, MOST_STRIPS = 512, 512, 64
"""For a CPU: columns of a tile, least rows of a tile, most tiles along a column."""
ROWS_AT_ONCE, MOST_OPS = 4, 16
"""For a CPU: rows that are added before partial results are stored; ops of the largest fusion in which several are."""
SUMMED_ROWS = 256
"""For a CPU: rows whose floats are summed before the sum is added to that of the tile's rows above."""

Update = Callable[[KernelCode, SSAValue, SSAValue], None]
"""(code, row, column): adds an element of the arrays to the result of its column."""


def emit_column_reduction_schedule(fusion: FusionLoops) -> None:
    """The loops of a fusion with roots that reduce columns and none that reduces rows."""
    reducers = [Reducer.of(root, by_row=False, is_cpu=fusion.is_cpu) for root in fusion.roots if reduces_columns(root)]
    if not reducers:
        why = f"'{fusion.roots[0].name}' (%{fusion.roots[0].instruction_name}) reduces neither rows nor columns of a matrix"
        raise refusal("loops", fusion.roots[0], why, "run disc-canonicalize-reduction before")
    emit_columns(fusion, reducers, [root for root in fusion.roots if not reduces_columns(root)])


def emit_columns(fusion: FusionLoops, reducers: Sequence[Reducer], others: Sequence[BufferOp]) -> None:
    """Loops for reductions of columns.

    others   roots with as many elements as the first reduction's matrix
    """
    first, *rest = by_shape(fusion.numbers, reducers)
    _emit_columns(fusion, first, others)
    for group in rest:
        _emit_columns(fusion, group, ())


def _emit_columns(fusion: FusionLoops, reducers: Sequence[Reducer], others: Sequence[BufferOp]) -> None:
    """Loops for reductions of the columns of matrices of one shape; other roots are written where the first pass reads."""
    atomic = [reducer for reducer in reducers if is_atomic(fusion, reducer)]
    ordered = [reducer for reducer in reducers if reducer not in atomic]
    emit_starts(fusion, atomic)
    sizes = reducers[0].shape(fusion.numbers)
    tiles = Tiles.alone(fusion, sizes) if fusion.is_cpu else Tiles.of(fusion, sizes)
    is_alone = tiles.count == 1
    partials = [] if is_alone else [_partial_buffers(fusion, reducer, tiles) for reducer in ordered]
    together = [*atomic, *ordered]

    def element(code: KernelCode, carried: Sequence[SSAValue], row: SSAValue, column: SSAValue) -> list[SSAValue]:
        for root in others:
            write_root(fusion, code, root, (row, column), sizes)
        return with_elements(code, together, carried, (row, column))

    def store(code: KernelCode, totals: Sequence[Sequence[SSAValue]], tile: SSAValue, column: SSAValue) -> None:
        for reducer, total in zip(atomic, totals, strict=False):
            _update(code, reducer, total, column)
        own = totals[len(atomic) :]

        def result(inner: KernelCode) -> Sequence[SSAValue]:
            store_results(inner, ordered, own, column)
            return ()

        def part(inner: KernelCode) -> Sequence[SSAValue]:
            for buffers, total in zip(partials, own, strict=True):
                for buffer, value in zip(buffers, total, strict=False):  # without the flag, which is always set here
                    inner.store(value, buffer, [tile, column])
            return ()

        if is_alone:
            result(code)
        elif ordered:
            code.branch(code.index.compare("eq", tiles.count, 1), (), result, part)

    tiles.emit(fusion, together, element, store)
    if not partials:
        return

    def partial(code: KernelCode, carried: Sequence[SSAValue], row: SSAValue, column: SSAValue) -> list[SSAValue]:
        found = list[SSAValue]()
        for reducer, buffers, so_far in zip(ordered, partials, parts_of(ordered, carried), strict=True):
            found += reducer.with_partial(code, so_far, [code.load(buffer, [row, column]) for buffer in buffers])
        return found

    def finish(code: KernelCode, totals: Sequence[Sequence[SSAValue]], tile: SSAValue, column: SSAValue) -> None:
        store_results(code, ordered, totals, column)

    host = fusion.numbers.code
    are_several = host.compare("ne", tiles.count, 1)
    tiles.of_parts(fusion).emit(fusion, ordered, partial, finish, where=are_several)


Element = Callable[[KernelCode, Sequence[SSAValue], SSAValue, SSAValue], Sequence[SSAValue]]
"""(code, carried, row, column) -> the partial results after one more row"""
Store = Callable[[KernelCode, Sequence[Sequence[SSAValue]], SSAValue, SSAValue], None]
"""(code, partial results of a tile's column, number of the tile, column)"""


@dataclass(frozen=True)
class Tiles:
    """A matrix divided into tiles, one block each.

    columns   threads along a row, a power of two up to 32; there are THREADS / columns rows of threads
    height    rows of a tile
    shape     of the matrix
    count     tiles along a column
    width     adjacent columns that a thread takes; divides the matrix's columns
    usual     number of rows of most tiles; 0 if unknown
    """

    columns: int
    height: Number
    shape: tuple[Number, Number]
    count: Number
    width: int = 1
    usual: int = 0

    @staticmethod
    def of(fusion: FusionLoops, sizes: tuple[Number, Number]) -> Tiles:
        """Tiles for the first pass over a matrix."""
        host, (rows, cols) = fusion.numbers.code, sizes
        width = fusion.vector if cols != 1 else 1
        most = WARP if width == 1 else WARP // 2
        threads = -(-cols // width) if isinstance(cols, int) else most
        columns = min(most, 1 << max(0, threads - 1).bit_length())
        usual = THREADS // columns * ROWS_A_THREAD
        height = host.maximum(usual, _over(fusion, rows, MOST_TILES))
        return Tiles(columns, height, (rows, cols), _over(fusion, rows, height), width, usual)

    def of_parts(self, fusion: FusionLoops) -> Tiles:
        """Tiles for the second pass over the partial results: one for all rows."""
        height = fusion.numbers.code.maximum(self.count, 1)
        return Tiles(self.columns, height, (self.count, self.shape[1]), 1, self.width)

    @staticmethod
    def alone(fusion: FusionLoops, sizes: tuple[Number, Number]) -> Tiles:
        """Tiles for the first pass on a CPU: one thread per tile."""
        host, (rows, cols) = fusion.numbers.code, sizes
        height = host.maximum(STRIP_ROWS, _over(fusion, rows, MOST_STRIPS))
        return Tiles(STRIP, height, (rows, cols), _over(fusion, rows, height))

    @property
    def lanes(self) -> int:
        """Rows of threads."""
        return THREADS // self.columns

    def emit(
        self,
        fusion: FusionLoops,
        reducers: Sequence[Reducer],
        element: Element,
        store: Store,
        where: SSAValue | None = None,
    ) -> None:
        """Emits a parallel loop that reduces each column of each tile, if `where` holds on the host."""
        host = fusion.numbers.code
        across = _over(fusion, self.shape[1], self.columns * self.width)
        is_short = len(fusion.op.body.block.ops) <= MOST_OPS
        if where is not None:
            across = host.select(where, across, 0)

        def alone(code: KernelCode, variables: Sequence[SSAValue]) -> None:
            block, _ = variables
            block.name_hint = "block"
            self._reduce_alone(code, block, across, reducers, element, store, ROWS_AT_ONCE if is_short else 1)

        def together(code: KernelCode, variables: Sequence[SSAValue]) -> None:
            *tiles, left, thread = variables
            left.name_hint, thread.name_hint = "left", "thread"
            tile = code.index.value(0)
            if tiles:
                (tile,) = tiles
                tile.name_hint = "tile"
            self._reduce(code, tile, left, thread, reducers, element, store)

        if fusion.is_cpu:
            fusion.parallel(NAME, [host.multiply(self.count, across), 1], [1, 1], alone)
        elif self.count == 1:
            fusion.parallel(NAME, [across, THREADS], [1, 1], together)
        else:
            fusion.parallel(NAME, [self.count, across, THREADS], [1, 1, 1], together)

    def _reduce_alone(
        self,
        code: KernelCode,
        block: SSAValue,
        across: Number,
        reducers: Sequence[Reducer],
        element: Element,
        store: Store,
        at_a_time: int,
    ) -> None:
        """Row by row, all columns of the tile, with their partial results in an array; long sums of floats by blocks of rows.

        at_a_time  rows that are added before a partial result is stored
        """
        index, (rows, cols) = code.index, self.shape
        tile, left = (index.value(0), block) if self.count == 1 else index.delinearize(block, (self.count, across))
        start = index.multiply(left, self.columns)
        rest = index.value(index.subtract(index.value(cols), start))
        width = code.insert(arith.MinUIOp(rest, index.value(self.columns))).result
        first = index.value(index.multiply(tile, self.height))
        end = code.insert(arith.MinUIOp(index.value(index.add(first, self.height)), index.value(rows))).result
        starts = starts_of(code, reducers)
        if cols == 1:
            column = index.value(start)

            def step(inner: KernelCode, row: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                return element(inner, carried, row, column)

            return store(code, parts_of(reducers, code.loop(first, end, 1, starts, step)), tile, column)
        types = [value.type for value in starts]
        arrays = SharedArrays(code, self.columns, types)
        above = SharedArrays(code, self.columns, types) if self._is_long(reducers) else None

        def total(inner: KernelCode, place: SSAValue) -> list[SSAValue]:
            """The partial results of all rows so far."""
            if above is None:
                return arrays.load(inner, place)
            return with_partials(inner, reducers, above.load(inner, place), arrays.load(inner, place))

        def visit_rows(outer: KernelCode, first: SSAValue, end: SSAValue) -> None:
            parts, begin = [(end, 1)], first
            if at_a_time > 1:
                rows = outer.index.value(outer.index.subtract(end, first))
                rest = outer.insert(arith.RemUIOp(rows, outer.index.value(at_a_time))).result
                parts.insert(0, (outer.index.value(outer.index.subtract(end, rest)), at_a_time))
            for stop, count in parts:
                with outer.each(begin, stop, count) as (of_row, row), of_row.each(0, width) as (inner, place):
                    so_far: Sequence[SSAValue] = arrays.load(inner, place)
                    column = inner.index.value(inner.index.add(start, place))
                    for number in range(count):
                        so_far = element(inner, so_far, inner.index.value(inner.index.add(row, number)), column)
                    arrays.store(inner, so_far, place)
                begin = stop

        with code.each(0, width) as (inner, place):
            arrays.store(inner, starts, place)
            if above is not None:
                above.store(inner, starts, place)
        if above is not None:
            with code.each(first, end, SUMMED_ROWS) as (block_of_rows, row):
                behind = block_of_rows.index.value(block_of_rows.index.add(row, SUMMED_ROWS))
                last = block_of_rows.insert(arith.MinUIOp(behind, end)).result
                visit_rows(block_of_rows, row, last)
                is_not_last = block_of_rows.index.compare("ult", last, end)
                with block_of_rows.where(is_not_last) as outer, outer.each(0, width) as (inner, place):
                    above.store(inner, total(inner, place), place)
                    arrays.store(inner, starts, place)
        else:
            visit_rows(code, index.value(first), end)
        with code.each(0, width) as (inner, place):
            found = parts_of(reducers, total(inner, place))
            store(inner, found, tile, inner.index.value(inner.index.add(start, place)))
        return None

    def _is_long(self, reducers: Sequence[Reducer]) -> bool:
        """Whether floats are added, and there may be more rows than are summed at once."""
        kinds = (element.kind for reducer in reducers if "add" in reducer.opcodes for element in reducer.elements)
        is_short = isinstance(self.shape[0], int) and self.shape[0] <= SUMMED_ROWS
        return not is_short and any(kind in (Kind.FLOAT, Kind.COMPLEX) for kind in kinds)

    def _reduce(
        self,
        code: KernelCode,
        tile: SSAValue,
        left: SSAValue,
        thread: SSAValue,
        reducers: Sequence[Reducer],
        element: Element,
        store: Store,
    ) -> None:
        index, (rows, cols) = code.index, self.shape
        lane, place = (
            index.delinearize(thread, (self.lanes, self.columns)) if self.columns > 1 else (thread, index.value(0))
        )
        first_column = index.add(index.multiply(left, self.columns), place)
        column = index.value(index.multiply(index.value(first_column), self.width))
        top = index.multiply(tile, self.height)
        limit = index.value(index.multiple(cols, self.width))
        is_column = index.compare("ult", column, limit)
        end = code.insert(arith.MinUIOp(index.value(index.add(top, self.height)), index.value(rows))).result
        # A thread beyond the last column has no rows, but takes part in the barriers.
        end = index.select(is_column, end, 0)
        first = index.value(index.add(top, lane))

        # The partial results of each of a thread's columns, concatenated.
        beside = [reducer for _ in range(self.width) for reducer in reducers]
        count = sum(len(reducer.types) for reducer in reducers)
        starts = starts_of(code, beside)

        def place_of(inner: KernelCode, number: int) -> SSAValue:
            return inner.index.value(inner.index.add(column, number))

        def step(inner: KernelCode, row: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if self.width == 1:
                return element(inner, carried, row, column)

            def each(innermost: KernelCode, _: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                found = list[SSAValue]()
                for number in range(self.width):
                    own = values[number * count : (number + 1) * count]
                    found += element(innermost, own, row, place_of(innermost, number))
                return found

            return inner.neighbours(1, carried, each)

        def to_the_end(inner: KernelCode) -> Sequence[SSAValue]:
            return inner.loop(first, end, self.lanes, starts, step)

        def usual(inner: KernelCode) -> Sequence[SSAValue]:
            """The same for exactly ROWS_A_THREAD rows."""

            def some(outer: KernelCode, number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                start = outer.index.add(first, outer.index.multiply(number, self.lanes * AT_A_TIME))

                def one(innermost: KernelCode, own: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                    row = innermost.index.add(start, innermost.index.multiply(own, self.lanes))
                    return step(innermost, innermost.index.value(row), carried)

                return outer.loop(0, AT_A_TIME, 1, carried, one)

            return inner.loop(0, ROWS_A_THREAD // AT_A_TIME, 1, starts, some)

        if self.usual:
            is_usual = index.compare("eq", index.subtract(end, top), self.usual)
            found = code.branch(is_usual, [value.type for value in starts], usual, to_the_end)
        else:
            found = to_the_end(code)
        self._combine(code, thread, left, reducers, found, lambda inner, own, at: store(inner, own, tile, at))

    def _combine(
        self,
        code: KernelCode,
        thread: SSAValue,
        left: SSAValue,
        reducers: Sequence[Reducer],
        values: Sequence[SSAValue],
        store: Callable[[KernelCode, Sequence[Sequence[SSAValue]], SSAValue], None],
    ) -> None:
        """Combines the partial results of the rows of threads, eight at a time, and stores those of each column.

        values  partial results of each of a thread's columns, concatenated
        """
        index, columns, lanes = code.index, self.columns * self.width, self.lanes
        types = [part for reducer in reducers for part in reducer.types]
        arrays = SharedArrays(code, THREADS * self.width, types)
        first = index.value(index.multiply(thread, self.width))

        def put(inner: KernelCode, _: SSAValue, __: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for number, value in enumerate(values):
                column, part = divmod(number, len(types))
                inner.store(value, arrays.arrays[part], [inner.index.value(inner.index.add(first, column))])
            return ()

        if self.width == 1:
            put(code, first, ())
        else:
            code.neighbours(1, (), put)
        while lanes > 1:
            together = min(TOGETHER, lanes)
            lanes //= together
            places = [number * lanes * columns for number in range(together)]
            code.insert(gpu.BarrierOp())
            takes_part = lanes * columns
            is_all = takes_part == THREADS
            with nullcontext(code) if is_all else code.where(index.compare("ult", thread, takes_part)) as inner:
                total, *others = (
                    arrays.load(inner, inner.index.value(inner.index.add(thread, place))) for place in places
                )
                for other in others:
                    total = with_partials(inner, reducers, total, other)
                if lanes > 1:
                    arrays.store(inner, total, thread)
                else:
                    column = inner.index.value(inner.index.add(inner.index.multiply(left, columns), thread))
                    is_column = inner.index.compare("ult", column, self.shape[1])
                    with inner.where(is_column) as innermost:
                        store(innermost, parts_of(reducers, total), column)


def _over(fusion: FusionLoops, number: Number, by: Number) -> Number:
    """number / by, rounded up."""
    host = fusion.numbers.code
    return host.divide(host.add(number, host.subtract(by, 1)), by)


def _partial_buffers(fusion: FusionLoops, reducer: Reducer, tiles: Tiles) -> list[SSAValue]:
    """Buffers for the partial results of each tile's columns."""
    sizes = tiles.count, tiles.shape[1]
    return [fusion.scratch(sizes, carried.storage_type, "partials") for carried in reducer.carried]


# ---------------------------------------------------------------------------------------------------- atomic updates


FLOAT_KINDS: Mapping[str, str] = {"add": "addf", "maximum": "maximumf", "minimum": "minimumf"}
INTEGER_KINDS: Mapping[str, str] = {
    "add": "addi",
    "maximum": "maxs",
    "minimum": "mins",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
}
"""Opcode of a reduction -> kind of an atomic update of s32 and s64."""


def atomic_kind(reducer: Reducer) -> str | None:
    """The kind of the atomic update for a reduction; None if no instruction has its meaning."""
    if len(reducer.op.outputs) != 1:
        return None
    (opcode,) = reducer.opcodes
    return atomic_kind_of(opcode, tensor_of(reducer.op.outputs[0].type).element_type)


def atomic_kind_of(opcode: str | None, element: Attribute) -> str | None:
    """The kind of the atomic update by this op of elements of that type; None if no instruction has its meaning."""
    match element:
        case Float32Type() | Float64Type():
            return FLOAT_KINDS.get(opcode or "")
        case IntegerType(width=width, signedness=sign) if width.data in (32, 64):
            return INTEGER_KINDS.get(opcode or "") if sign.data is Signedness.SIGNLESS else None
        case _:
            return None


def is_atomic(fusion: FusionLoops, reducer: Reducer) -> bool:
    return ATOMICS in fusion.op.attributes and atomic_kind(reducer) is not None


def emit_starts(fusion: FusionLoops, reducers: Sequence[Reducer]) -> None:
    """A separate loop that writes the initial values to which atomic updates add."""
    if not reducers:
        return

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        for reducer in reducers:
            for init, output in zip(reducer.inits, reducer.op.outputs, strict=True):
                code.store(code.load(init, ()), output, reducer.result_indices(variables[0]))

    fusion.parallel(START, [reducers[0].shape(fusion.numbers)[1]], [1], body)


def _update(code: KernelCode, reducer: Reducer, value: Sequence[SSAValue], column: SSAValue) -> None:
    kind = atomic_kind(reducer)
    assert kind is not None
    (output,) = reducer.op.outputs
    code.update(kind, value[0], output, reducer.result_indices(column))


def update_from_rows(reducer: Reducer) -> Update:
    """The per-element update of a column reduction in a loop over rows."""

    def update(code: KernelCode, row: SSAValue, column: SSAValue) -> None:
        _update(code, reducer, reducer.loaded(code, (row, column)), column)

    return update
