"""The schedule of a stitched fusion: one block, or warp, computes everything that depends on its row, and reads the row once.

    m = reduce maximum x                 scf.parallel (%block, %thread) = (0, 0) to (%rows, 256) step (1, 1) {
    e = exp(x - broadcast m)               %kept = memref.alloc(%cols) : memref<?xf32, #gpu.address_space<workgroup>>
    s = reduce add e                       for %j: %x = memref.load %x[%block, %j]; memref.store %x, %kept[%j]; maximum
    y = e / broadcast s           ->       %m = ... the rounds of `row_rounds`, in every thread
                                           for %j: %x = memref.load %kept[%j]; sum of exp(%x - %m)
                                           %s = ...
                                           for %j: %x = memref.load %kept[%j]; memref.store exp(%x - %m) / %s, %y[%block, %j]
                                         } {disc.schedule = "stitch"}

`stitch_graph` decides what each loop computes and keeps. A thread reads only elements that it kept itself, so a barrier is needed only
where warps exchange reductions. Values with one number per row are computed once in each thread, between the loops.

If vectors do not divide the columns, the block's rows are copied into %kept as one run of elements (`row_staging`), and a result that
can overwrite kept elements is copied out of it in the same way: full-width accesses, and no sector is read for two rows.

The launch allocates shared memory of the size of %kept. The form depends on the length of a row, which is known at compile time or else
to the host:

    columns                             form
    up to 32 (128 in vectors of four)   eight lanes per row, 32 rows per block, rows are kept
    up to 512                           a warp per row, eight rows per block, rows are kept
    up to 2560 f32 (10 KiB per row)     four warps per row, four rows per block of 512 threads, rows are kept
    as many as fit into 40 KiB          a block of 512 threads per row, the row is kept; weights only if they fit too
    more                                a block per row; each loop reads its sources again

A known length has one form: a power of two of threads per row, most of which have eight to 15 elements. In each form, a multiprocessor with
160 KiB of shared memory or more has room for the rows of as many blocks as it has threads for.

    %fits = arith.cmpi sle, %cols, 512
    scf.if %fits { lmhlo.fusion F_warp } else { ... scf.if ... { lmhlo.fusion F_block } else { lmhlo.fusion F } }

Vectors that all rows read, such as the weights of a norm, are read once per block, into shared memory, before its first row; the block then
takes up to 32 rows in sequence, if enough blocks remain. With `disc.vector = 4` a thread takes four adjacent columns.

Attributes of the fusion
    disc.row_schedule   1: always a block per row, 2: always a warp
    disc.vector         adjacent columns that a thread takes; divides their number
    disc.kept_bytes     most bytes of rows that a block may keep
    disc.row_form       [threads of a row, threads of a block, where rows are kept, how often weights are read: "block" or "row"]: only
                        this form, if columns are known

If columns are known, a thread may keep its elements in registers instead ("registers"): its steps are unrolled, so that every index
into its private array is a constant, and LLVM promotes the array to values. Vectors that all rows read are kept likewise.

Source: docs/reference/4 3.3; Zheng et al., "AStitch" (ASPLOS 2022).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from xla_emitters.buffers.disc_specialize_fusion_with_speculation import ROW_FORM, ROW_SCHEDULE
from xla_emitters.buffers.index_code import Number
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, tensor_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.loops.combine import Reducer, parts_of, starts_of, with_elements
from xla_emitters.loops.element_code import Computed
from xla_emitters.loops.kernel_code import KernelCode, Producer
from xla_emitters.loops.matrix_roots import indices_at
from xla_emitters.loops.row_loop import for_each_row, held_steps, loop_over_held_row, loop_over_row
from xla_emitters.loops.row_reduction_schedule1 import BLOCK_A_ROW
from xla_emitters.loops.row_reduction_schedule2 import WARP_A_ROW
from xla_emitters.loops.row_rounds import (
    ALONE,
    THREADS,
    RowPlace,
    RowThreads,
    combine_row,
    private_array,
    shared_array,
)
from xla_emitters.loops.row_staging import Run, room_of, width_of
from xla_emitters.loops.schedule import FusionLoops
from xla_emitters.loops.stitch_graph import StitchGraph
from xla_emitters.loops.strided_loop import strided_loop
from xla_emitters.rewrite.kernel_pass import refusal

NAME = "stitch"
SHORT_ROW, SHORT_ROW_NOT_KEPT = 512, 1024
"""Most columns of a row for a warp: if the row is kept, and if it need not be."""
LANES_A_ROW = RowThreads(8)
FEWEST_LANES = 2
"""Fewest threads of a row of known length: two accesses of 16 bytes make a sector of 32."""
WARPS_A_ROW = RowThreads(128, 512)
LARGE_BLOCK_A_ROW = RowThreads(512, 512)
SHORTEST_STEPS = 4
"""Fewest steps of a thread in a row that eight lanes compute."""
KEPT_BYTES = "disc.kept_bytes"
REGISTERS, SHARED_MEMORY, NOWHERE = KEPT_IN = ("registers", "shared memory", "nowhere")
"""Places in which the rows of a form are kept."""
MOST_CACHED_BYTES = 256 * 1024
"""Bytes of the second-level cache of a CPU's core."""
MOST_KEPT_BYTES = 40 * 1024
"""Bytes; every device has 48 KiB per block, of which 8 KiB are left for exchange between warps."""


class Form(NamedTuple):
    """One way to compute a stitched fusion.

    name          appended to the fusion's name, if there are several forms
    threads       per row
    keeps         whether sources of several rounds are kept, in shared memory or in registers
    most          most columns; a longer row takes the next form
    shares        whether vectors that are the same for each row are kept for all rows of a block
    in_registers  whether they are kept in registers
    """

    name: str
    threads: RowThreads
    keeps: bool
    most: int | None = None
    shares: bool = False
    in_registers: bool = False


def emit_stitch_schedule(fusion: FusionLoops) -> None:
    """Emits the loop of a stitched fusion; if the length of rows is unknown, several forms of the fusion, and branches on the host.

    raises   Unsupported naming an op that is not one of rows
    """
    graph = StitchGraph(fusion.op, fusion.roots)
    for op in graph.ops:
        if op not in graph.reductions and (why := graph.why_not(op)):
            name = f"'{op.name}' (%{op.instruction_name})"
            raise refusal("loops", op, f"{name} cannot be computed row by row: {why}", "leave it outside of the fusion")
    cols = fusion.numbers.sizes(graph.reductions[0].inputs[0])[-1]
    most_bytes = _number(fusion.op, KEPT_BYTES)
    kept_bytes = graph.kept_bytes(graph.kept)
    if fusion.is_cpu:
        forms = forms_alone(kept_bytes)
    else:
        forms = forms_of(
            kept_bytes,
            MOST_KEPT_BYTES if most_bytes is None else most_bytes,
            _number(fusion.op, ROW_SCHEDULE),
            fusion.vector,
            graph.kept_bytes(graph.shared),
            cols if isinstance(cols, int) else None,
        )
    if (asked := _asked_form(fusion.op, graph)) is not None:
        forms = [asked]
    elif isinstance(cols, int):
        forms = [next(form for form in forms if form.most is None or cols <= form.most)]
    for form, is_first in zip(forms, (True, *(False for _ in forms)), strict=False):
        others = None
        if form is not forms[-1]:
            fusion, others = _in_branches(fusion, form)
        _Stitch(fusion, form).emit()
        # The pass erases the roots that it knows, those of the first form.
        for root in () if is_first else fusion.roots:
            Rewriter.erase_op(root)
        fusion = others or fusion


def forms_of(
    bytes_a_column: int,
    most_bytes: int,
    hint: int | None = None,
    width: int = 1,
    shared_bytes: int = 0,
    columns: int | None = None,
) -> list[Form]:
    """The forms of a fusion that keeps so many bytes per column of a row, shortest rows first.

    hint          1: a block per row, 2: a warp per row, for any length of rows
    width         adjacent columns that a thread takes
    shared_bytes  kept per column for all rows of a block
    columns       of a row, if known
    """
    if not bytes_a_column:
        short = Form("warp", WARP_A_ROW, keeps=False, most=SHORT_ROW_NOT_KEPT)
        long = Form("block", BLOCK_A_ROW, keeps=False)
        return [short, long] if hint is None else [short._replace(most=None) if hint == 2 else long]

    def kept(name: str, threads: RowThreads, most: int | None = None, shared: int = shared_bytes) -> Form:
        fit = most_bytes // (threads.rows_per_block * bytes_a_column + shared)
        return Form(name, threads, keeps=True, most=fit if most is None else min(most, fit), shares=shared > 0)

    long = Form("long", BLOCK_A_ROW, keeps=False)
    if hint is not None:
        one = kept("warp", WARP_A_ROW) if hint == 2 else kept("block", BLOCK_A_ROW)
        return [one, long._replace(threads=one.threads)]
    if columns is not None:
        forms = [kept("row", threads_of(columns))]
    else:
        forms = [
            kept("lanes", LANES_A_ROW, LANES_A_ROW.per_row * SHORTEST_STEPS * width),
            kept("warp", WARP_A_ROW, SHORT_ROW),
            kept("warps", WARPS_A_ROW),
            kept("block", LARGE_BLOCK_A_ROW),
        ]
    if shared_bytes:
        forms.append(kept("apart", LARGE_BLOCK_A_ROW, shared=0))
    return [*forms, long]


def threads_of(columns: int) -> RowThreads:
    """The threads of a row of known length: most have eight elements or more, but less than 16."""
    per_row = max(FEWEST_LANES, min(LARGE_BLOCK_A_ROW.per_row, 1 << (columns // 8).bit_length() >> 1))
    return RowThreads(per_row, THREADS if 4 * per_row <= THREADS else LARGE_BLOCK_A_ROW.per_block)


def forms_alone(bytes_a_column: int) -> list[Form]:
    """The forms on a CPU, one thread per row: rows are kept if they stay in the first two caches."""
    long = Form("long", ALONE, keeps=False)
    return (
        [Form("row", ALONE, keeps=True, most=MOST_CACHED_BYTES // bytes_a_column), long] if bytes_a_column else [long]
    )


def _asked_form(fusion: FusionOp, graph: StitchGraph) -> Form | None:
    """The form in the attribute `disc.row_form`."""
    found = fusion.attributes.get(ROW_FORM)
    if not isa(found, ArrayAttr[Attribute]):
        return None
    asked = RowForm.from_attr(found)
    threads = RowThreads(asked.per_row, asked.per_block)
    keeps = asked.kept != NOWHERE
    shares = keeps and asked.weights == "block" and bool(graph.shared)
    return Form("asked", threads, keeps, None, shares, asked.kept == REGISTERS)


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


def _number(fusion: FusionOp, name: str) -> int | None:
    found = fusion.attributes.get(name)
    return found.value.data if isinstance(found, IntegerAttr) else None


def _in_branches(fusion: FusionLoops, form: Form) -> tuple[FusionLoops, FusionLoops]:
    """Moves a fusion into a branch on the host for the rows of this form, and a copy of it into the other branch."""
    op, ops, host = fusion.op, list(fusion.op.body.block.ops), fusion.numbers.code
    cols = fusion.numbers.sizes(StitchGraph(op, fusion.roots).reductions[0].inputs[0])[-1]
    fits = host.insert(arith.CmpiOp(host.value(cols), host.value(form.most or 0), "sle"))
    copy = op.clone()
    if op.fusion_name is not None:
        op.fusion_name = StringAttr(f"{op.fusion_name.data}_{form.name}")
    places = {one: other for one, other in zip(ops, copy.body.block.ops, strict=True)}
    then, otherwise = Block(), Block()
    branch = scf.IfOp(fits, [], Region(then), Region(otherwise))
    branch.location = op.location
    Rewriter.insert_op(branch, InsertPoint.before(op))
    op.detach()
    for block, inner in ((then, op), (otherwise, copy)):
        block.add_ops([inner, scf.YieldOp()])
    roots = [root for root in map(places.__getitem__, fusion.roots) if isinstance(root, BufferOp)]
    is_cpu = fusion.is_cpu
    return FusionLoops(op, fusion.roots, is_cpu=is_cpu), FusionLoops(copy, roots, is_cpu=is_cpu)


@dataclass(eq=False)
class _Stitch:
    """A stitched fusion in one form.

    producers   current emitters of elements, in place of loads of a buffer
    arrays      source -> array with its kept elements, for the rows of the block
    vectors     the same for sources that are equal in each row
    runs        source -> its run in its array, if it is staged
    """

    fusion: FusionLoops
    form: Form
    producers: dict[SSAValue, Producer] = field(default_factory=dict[SSAValue, Producer])
    arrays: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    vectors: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    runs: dict[SSAValue, Run] = field(default_factory=dict[SSAValue, Run])

    @cached_property
    def graph(self) -> StitchGraph:
        return StitchGraph(self.fusion.op, self.fusion.roots)

    @property
    def threads(self) -> RowThreads:
        return self.form.threads

    @cached_property
    def sizes(self) -> tuple[Number, Number]:
        """Rows and columns."""
        return self.reducers[self.graph.reductions[0]].shape(self.fusion.numbers)

    @cached_property
    def reducers(self) -> dict[BufferOp, Reducer]:
        return {op: Reducer.of(op, by_row=True) for op in self.graph.reductions}

    @cached_property
    def is_staged(self) -> bool:
        """Whether kept sources are copied as one run, because threads would read them in single elements."""
        is_in_shared = self.form.keeps and not self.form.in_registers
        is_single = is_in_shared and self.fusion.vector == 1 and not self.fusion.is_cpu
        return is_single and any(width_of(buffer) > 1 for buffer in self.graph.kept)

    @cached_property
    def in_place(self) -> dict[SSAValue, SSAValue]:
        """Results that overwrite a kept source of their type that no later round, and no other op, reads."""
        found = dict[SSAValue, SSAValue]()
        for number in self.graph.rounds if self.is_staged else ():
            later = {
                self.graph.remade.get(buffer, buffer)
                for after in self.graph.rounds[number + 1 :]
                for buffer in self._sources(after)
            }
            for root in self.graph.written_in(number):
                (buffer,) = root.outputs
                free = [
                    kept
                    for kept in self.graph.kept
                    if kept not in later and kept not in found.values() and _stored(kept) == _stored(buffer)
                ]
                if free and buffer not in self.graph.kept:
                    found[buffer] = free[0]
        return found

    def emit(self) -> None:
        """Emits the loop, and erases the ops that it computes, except the roots."""
        computed = (op for op in self.graph.ops if op not in self.graph.reductions)
        self.producers |= {buffer: Computed(op) for op in computed for buffer in op.outputs}
        begin = self._begin if self.form.shares else None
        for_each_row(self.fusion, NAME, self.threads, self.sizes[0], self._row, begin, meets=self.is_staged)
        # All code is in the loop now: erase the ops of intermediate buffers, which another form of the fusion has too.
        for op in reversed(self.graph.ops):
            if op not in self.fusion.roots:
                Rewriter.erase_op(op)

    def _begin(self, code: KernelCode, thread: SSAValue) -> None:
        """All threads of a block compute the vectors that are the same in each row."""
        code.producers, width = self.producers, self.fusion.vector
        first = code.index.value(code.index.multiply(thread, width))
        row = code.index.value(0)
        for buffer in self.graph.shared:
            self.vectors[buffer] = self._array(code, buffer, self.sizes[1])

        def step(
            inner: KernelCode, column: SSAValue, _: Sequence[SSAValue], held: SSAValue | None = None
        ) -> Sequence[SSAValue]:
            for buffer, array in self.vectors.items():
                value = inner.load(buffer, self._indices(inner, (row, column), buffer))
                inner.store(value, array, [column if held is None else held])
            return ()

        if self.form.in_registers:
            lane = code.index.value(code.index.remainder(thread, self.threads.per_row))
            held_steps(code, lane, self.threads.per_row, self._known_columns, width, (), step)
            return
        strided_loop(code, first, self._columns(code), width * self.threads.per_block, (), step, width)
        code.insert(gpu.BarrierOp())

    def _row(self, code: KernelCode, place: RowPlace) -> None:
        code.producers = self.producers
        if self.form.keeps:
            for buffer in self.graph.kept:
                self.arrays[buffer] = self._array(code, buffer, self._room(buffer))
        if self.is_staged:
            self._stage(code, place)
        for number in self.graph.rounds:
            self._row_values(code, number, place)
            self._round(code, number, place)
        if self.in_place:
            self._copy_results(code, place)

    def _stage(self, code: KernelCode, place: RowPlace) -> None:
        """Copies kept sources into shared memory; those that are results are written too."""
        results = [op.outputs[0] for op in self.graph.roots]
        for buffer in self.graph.kept:

            def copy(inner: KernelCode, at: Sequence[SSAValue], position: SSAValue, buffer: SSAValue = buffer) -> None:
                inner.producers = self.producers
                indices = self._indices(inner, at, buffer)
                value = inner.load(buffer, indices)
                inner.store(value, self.arrays[buffer], [position])
                if buffer in results:
                    inner.store(value, buffer, indices)

            run = self.runs[buffer] = Run.of(code, buffer, self.threads, place, self.sizes)
            run.copy(code, self.threads, place.thread, self.sizes, copy)
        code.insert(gpu.BarrierOp())

    def _copy_results(self, code: KernelCode, place: RowPlace) -> None:
        """Copies results out of shared memory."""
        code.insert(gpu.BarrierOp())
        for buffer, kept in self.in_place.items():

            def copy(
                inner: KernelCode,
                at: Sequence[SSAValue],
                position: SSAValue,
                buffer: SSAValue = buffer,
                array: SSAValue = self.arrays[kept],
            ) -> None:
                inner.store(inner.load(array, [position]), buffer, self._indices(inner, at, buffer))

            self.runs[kept].copy(code, self.threads, place.thread, self.sizes, copy)

    def _indices(self, code: KernelCode, at: Sequence[SSAValue], buffer: SSAValue) -> list[SSAValue]:
        row, column = at
        return indices_at(code, (row, column), self.sizes, self.fusion.numbers.sizes(buffer))

    @property
    def _known_columns(self) -> int:
        assert isinstance(self.sizes[1], int), "only rows of a known length are in registers"
        return self.sizes[1]

    def _room(self, buffer: SSAValue) -> Number:
        """Elements of a source in the rows of a block, in the layout of shared memory."""
        host, columns = self.fusion.numbers.code, self.sizes[1]
        if self.is_staged:
            return room_of(host, buffer, self.threads, columns)
        return host.multiply(columns, self.threads.rows_per_block)

    def _array(self, code: KernelCode, buffer: SSAValue, elements: Number) -> SSAValue:
        """The array for elements of a source: in shared memory for the whole block, or private to a thread."""
        if not self.form.in_registers:
            return shared_array(code, elements, _stored(buffer))
        width = self.fusion.vector
        steps = -(-self._known_columns // (self.threads.per_row * width))
        return private_array(code, steps * width, _stored(buffer))

    def _row_values(self, code: KernelCode, number: int, place: RowPlace) -> None:
        """Computes the values with one number per row that are known before a round; writes the results among them."""
        for op in self.graph.row_ops(number):
            (buffer,) = op.outputs
            indices = code.index.delinearize(place.row, self.fusion.numbers.sizes(buffer))
            self._is_known(code, buffer, indices, code.load(buffer, indices), place, op in self.graph.roots)

    def _is_known(
        self,
        code: KernelCode,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        value: SSAValue,
        place: RowPlace,
        is_result: bool,
    ) -> None:
        """Makes later loads of the buffer, which has one element per row, this value; the row's first thread writes a result."""
        self.producers[buffer] = _Known(value)

        def write(inner: KernelCode) -> Sequence[SSAValue]:
            inner.store(value, buffer, indices)
            return ()

        if is_result:
            code.branch(place.is_first(code), (), write)

    def _round(self, code: KernelCode, number: int, place: RowPlace) -> None:
        """The loop over a row that computes a round's reductions and results."""
        reducers = [self.reducers[op] for op in self.graph.reduced_in(number)]
        written = self.graph.written_in(number)
        if not reducers and not written:
            return
        remade = [pair for pair in self.graph.remade.items() if self.form.keeps and self.graph.level(pair[0]) == number]

        remade = [pair for pair in self.graph.remade.items() if self.form.keeps and self.graph.level(pair[0]) == number]

        def step(
            inner: KernelCode, column: SSAValue, carried: Sequence[SSAValue], held: SSAValue | None = None
        ) -> Sequence[SSAValue]:
            self._read_sources(inner, number, place, column, held)
            for buffer, kept in remade:
                value = inner.load(buffer, self._indices(inner, (place.row, column), buffer))
                inner.store(value, self.arrays[kept], [self._kept_at(inner, kept, place, column, held)])
            for root in written:
                (buffer,) = root.outputs
                if buffer in self.runs:
                    continue
                indices = self._indices(inner, (place.row, column), buffer)
                value = inner.load(buffer, indices)
                if (kept := self.in_place.get(buffer)) is not None:
                    inner.store(value, self.arrays[kept], [self._kept_at(inner, kept, place, column, held)])
                else:
                    with inner.located(root.location):
                        inner.store(value, buffer, indices)
            return with_elements(inner, reducers, carried, (place.row, column))

        starts, width = starts_of(code, reducers), self.fusion.vector
        if self.form.in_registers:
            found = loop_over_held_row(code, place, self.threads, self._known_columns, width, starts, step)
        else:
            waits = any(not self._is_near(buffer, number) for buffer in self._sources(number))
            found = loop_over_row(code, place, self.threads, self.sizes[1], width, starts, step, waits=waits)
        if not reducers:
            return
        totals = combine_row(code, self.threads, place.thread, reducers, parts_of(reducers, found), everyone=True)
        for reducer, total in zip(reducers, totals, strict=True):
            is_result = reducer.op in self.graph.roots
            for value, buffer in zip(reducer.results(code, total), reducer.op.outputs, strict=True):
                self._is_known(code, buffer, reducer.result_indices(place.row), value, place, is_result)

    def _columns(self, code: KernelCode) -> Number:
        """Number of columns, as a value whose divisors the kernel knows."""
        return code.index.multiple(self.sizes[1], self.fusion.vector)

    def _read_sources(
        self, code: KernelCode, number: int, place: RowPlace, column: SSAValue, held: SSAValue | None
    ) -> None:
        """The elements that a round reads, once per index: from memory, or as an earlier round kept them.

        held  the number of the element among the thread's own, where these are in registers
        """
        known = dict[SSAValue, Producer]()
        code.producers = ChainMap(known, self.producers)
        for buffer in self._sources(number):
            if buffer in self.vectors:
                known[buffer] = _Known(code.load(self.vectors[buffer], [column if held is None else held]))
                continue
            array = self.arrays.get(self.graph.remade.get(buffer, buffer))
            if array is not None and self._is_near(buffer, number):
                value = code.load(array, [self._kept_at(code, buffer, place, column, held)])
            else:
                value = code.load(buffer, self._indices(code, (place.row, column), buffer))
                if array is not None:
                    code.store(value, array, [self._kept_at(code, buffer, place, column, held)])
            known[buffer] = _Known(value)

    def _is_near(self, buffer: SSAValue, number: int) -> bool:
        """Whether a source is in shared memory or in registers in a round."""
        if buffer in self.vectors or (self.form.keeps and buffer in self.graph.remade):
            return True
        return buffer in self.arrays and (self.is_staged or self.graph.kept[buffer] < number)

    def _sources(self, number: int) -> list[SSAValue]:
        return self.graph.read_in(number, keeps=self.form.keeps)

    def _kept_at(
        self, code: KernelCode, buffer: SSAValue, place: RowPlace, column: SSAValue, held: SSAValue | None
    ) -> SSAValue:
        """The index of the thread's element in the array of a kept source; `held` for registers."""
        if held is not None:
            return held
        element = code.index.add(code.index.multiply(place.slot, self._columns(code)), column)
        run = self.runs.get(self.graph.remade.get(buffer, buffer))
        return code.index.value(element) if run is None else run.position(code, element)


@dataclass(frozen=True)
class _Known:
    """A producer of an existing value: the buffer has one element per row, or is read at one index only."""

    value: SSAValue

    def __call__(self, code: KernelCode, indices: Sequence[SSAValue]) -> SSAValue:
        return self.value


def _stored(buffer: SSAValue) -> Attribute:
    return dtype_of(tensor_of(buffer.type).element_type).storage_type
