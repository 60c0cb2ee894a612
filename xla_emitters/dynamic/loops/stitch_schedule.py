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

On a GPU %kept is a private array of each thread, and the loops are unrolled, so that it is in registers (`stitch_forms`). If the length of
a row is unknown, all loads of a round come first: those of a step that may be skipped would wait for the steps before. On a CPU a thread
has the whole row, and keeps it in memory. There are several forms, of which the host takes one by the length of a row:

    %fits = arith.cmpi sle, %cols, 512
    scf.if %fits { lmhlo.fusion F_warp } else { ... scf.if ... { lmhlo.fusion F_block } else { lmhlo.fusion F } }

Vectors that all rows read, such as the weights of a norm, are read before a block's first row; the block then takes up to 32 rows in
sequence, if enough blocks remain. With `disc.vector = 4` a thread takes four adjacent columns.

Attributes of the fusion
    disc.row_schedule   1: always a block per row, 2: always a warp
    disc.vector         adjacent columns that a thread takes; divides their number
    disc.row_form       [threads of a row, threads of a block, where rows are kept, how often weights are read: "block" or "row"]: only
                        this form, if columns are known

Source: docs/reference/4 3.3; Zheng et al., "AStitch" (ASPLOS 2022).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dialects.mlir import scf
from xla_emitters.dynamic.buffers.disc_specialize_fusion_with_speculation import ROW_FORM, ROW_SCHEDULE
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.combine import Reducer, parts_of, starts_of, with_elements
from xla_emitters.dynamic.loops.element_code import Computed, KnownProducer
from xla_emitters.dynamic.loops.kernel_code import KernelCode, Producer
from xla_emitters.dynamic.loops.roots import indices_at
from xla_emitters.dynamic.loops.row_loop import for_each_row, held_steps, loop_over_held_row, loop_over_row
from xla_emitters.dynamic.loops.row_rounds import RowPlace, RowThreads, combine_row, private_array, shared_array
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.dynamic.loops.stitch_forms import (
    HeldRow,
    RowForm,
    StitchForm,
    forms_alone,
    forms_of,
    next_for,
    rule_of,
)
from xla_emitters.dynamic.loops.stitch_graph import StitchGraph, storage_of
from xla_emitters.rewrite.kernel_pass import refusal

if TYPE_CHECKING:
    from xla_emitters.dynamic.loops.row_scans import RowScan

NAME = "stitch"


def emit_stitch_schedule(fusion: FusionLoops) -> None:
    """Emits the loop of a stitched fusion; if the length of rows is unknown, several forms of the fusion, and branches on the host.

    raises   Unsupported naming an op that is not one of rows
    """
    graph = StitchGraph(fusion.op, fusion.roots)
    for op in graph.ops:
        if not graph.is_by_row(op) and (why := graph.why_not(op)):
            name = f"'{op.name}' (%{op.instruction_name})"
            raise refusal("loops", op, f"{name} cannot be computed row by row: {why}", "leave it outside of the fusion")
    cols = _matrix(fusion, graph)[1]
    row = row_of(graph, fusion.vector)
    if fusion.is_cpu:
        forms = forms_alone(row.kept_bytes)
        forms = [next_for(forms, cols)] if isinstance(cols, int) else forms
    else:
        forms = _forms_on_gpu(fusion.op, row, cols)
    for form, is_first in zip(forms, (True, *(False for _ in forms)), strict=False):
        others = None
        if form is not forms[-1]:
            fusion, others = _in_branches(fusion, form)
        _Stitch(fusion, form).emit()
        # The pass erases the roots that it knows, those of the first form.
        for root in () if is_first else fusion.roots:
            Rewriter.erase_op(root)
        fusion = others or fusion


def _matrix(fusion: FusionLoops, graph: StitchGraph) -> tuple[Number, Number]:
    """Rows and columns."""
    *rows, columns = fusion.numbers.sizes(next(op for op in graph.ops if graph.is_by_row(op)).inputs[0])
    return fusion.numbers.code.product(rows), columns


def row_of(graph: StitchGraph, width: int) -> HeldRow:
    """What a thread may hold of a row of a fusion."""
    return HeldRow(graph.kept_bytes(graph.kept), graph.kept_bytes(graph.shared), width, graph.most_bits)


def _forms_on_gpu(fusion: FusionOp, row: HeldRow, cols: Number) -> list[StitchForm]:
    """The forms of a fusion: that of the attribute `disc.row_form`; else by the length of a row, if it is known."""
    hint, asked = _number(fusion, ROW_SCHEDULE), fusion.attributes.get(ROW_FORM)
    if not isinstance(cols, int):
        return forms_of(row, hint)
    if isa(asked, ArrayAttr[Attribute]):
        return [StitchForm.of(RowForm.from_attr(asked), row, cols)]
    if hint is None and row.kept_bytes:
        return [StitchForm.of(rule_of(row, cols), row, cols)]
    return [next_for(forms_of(row, hint), cols)]


def _number(fusion: FusionOp, name: str) -> int | None:
    found = fusion.attributes.get(name)
    return found.value.data if isinstance(found, IntegerAttr) else None


def _in_branches(fusion: FusionLoops, form: StitchForm) -> tuple[FusionLoops, FusionLoops]:
    """Moves a fusion into a branch on the host for the rows of this form, and a copy of it into the other branch."""
    op, ops, host = fusion.op, list(fusion.op.body.block.ops), fusion.numbers.code
    cols = _matrix(fusion, StitchGraph(op, fusion.roots))[1]
    fits = host.compare("sle", cols, form.most or 0)
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
    arrays      source -> array with the thread's kept elements
    vectors     the same for sources that are equal in each row
    """

    fusion: FusionLoops
    form: StitchForm
    producers: dict[SSAValue, Producer] = field(default_factory=dict[SSAValue, Producer])
    arrays: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    vectors: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    @cached_property
    def graph(self) -> StitchGraph:
        return StitchGraph(self.fusion.op, self.fusion.roots)

    @property
    def threads(self) -> RowThreads:
        return self.form.threads

    @cached_property
    def sizes(self) -> tuple[Number, Number]:
        """Rows and columns."""
        return _matrix(self.fusion, self.graph)

    @cached_property
    def scans(self) -> list[RowScan]:
        if not self.graph.scans:
            return []
        from xla_emitters.dynamic.loops.row_scans import RowScan  # imported here, and below: few fusions scan

        return [RowScan(op, way) for op, way in self.graph.scans.items()]

    @cached_property
    def reducers(self) -> dict[BufferOp, Reducer]:
        return {op: Reducer.of(op, by_row=True, is_cpu=self.fusion.is_cpu) for op in self.graph.reductions}

    def emit(self) -> None:
        """Emits the loop, and erases the ops that it computes, except the roots."""
        computed = (op for op in self.graph.ops if not self.graph.is_by_row(op))
        self.producers |= {buffer: Computed(op) for op in computed for buffer in op.outputs}
        begin = self._begin if self.form.shares else None
        for_each_row(self.fusion, NAME, self.threads, self.sizes[0], self._row, begin)
        # All code is in the loop now: erase the ops of intermediate buffers, which another form of the fusion has too.
        for op in reversed(self.graph.ops):
            if op not in self.fusion.roots:
                Rewriter.erase_op(op)

    def _begin(self, code: KernelCode, thread: SSAValue) -> None:
        """All threads of a block compute the vectors that are the same in each row."""
        code.producers, width = self.producers, self.fusion.vector
        row = code.index.value(0)
        for buffer in self.graph.shared:
            self.vectors[buffer] = self._array(code, buffer)

        def step(
            inner: KernelCode, column: SSAValue, _: Sequence[SSAValue], held: SSAValue | None = None
        ) -> Sequence[SSAValue]:
            for buffer, array in self.vectors.items():
                value = inner.load(buffer, self._indices(inner, (row, column), buffer))
                inner.store(value, array, [column if held is None else held])
            return ()

        lane = code.index.value(code.index.remainder(thread, self.threads.per_row))
        held_steps(code, lane, self.threads.per_row, self._columns(code), width, self.form.steps, (), step)

    def _row(self, code: KernelCode, place: RowPlace) -> None:
        code.producers = self.producers
        if self.form.keeps:
            for buffer in self.graph.kept:
                self.arrays[buffer] = self._array(code, buffer)
        for number in self.graph.rounds:
            self._row_values(code, number, place)
            self._round(code, number, place)

    def _indices(self, code: KernelCode, at: Sequence[SSAValue], buffer: SSAValue) -> list[SSAValue]:
        row, column = at
        return indices_at(code, (row, column), self.sizes, self.fusion.numbers.sizes(buffer))

    def _array(self, code: KernelCode, buffer: SSAValue) -> SSAValue:
        """The array for a thread's elements of a source; on a CPU, for the whole row."""
        if not self.form.steps:
            return shared_array(code, self.sizes[1], storage_of(buffer))
        return private_array(code, self.form.steps * self.fusion.vector, storage_of(buffer))

    def _row_values(self, code: KernelCode, number: int, place: RowPlace) -> None:
        """Computes the values with one number per row that are known before a round; writes the results among them."""
        for op in self.graph.row_ops(number):
            (buffer,) = op.outputs
            indices = code.index.delinearize(place.row, self.fusion.numbers.sizes(buffer))
            value = code.load(buffer, indices)
            # What follows from no reduction may be read in another row, too: as q in q[i, j, 0] + q[i, 0, k], with as many j as k.
            if number:
                self.producers[buffer] = KnownProducer(value)
            self._write(code, buffer, indices, value, place, op)

    def _write(
        self,
        code: KernelCode,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        value: SSAValue,
        place: RowPlace,
        op: BufferOp,
    ) -> None:
        """The row's first thread writes a row's value, if it is a result."""
        if op in self.graph.roots:
            with code.where(place.is_first(code)) as inner:
                inner.store(value, buffer, indices)

    def _round(self, code: KernelCode, number: int, place: RowPlace) -> None:
        """The loop over a row that computes a round's reductions and results."""
        reducers = [self.reducers[op] for op in self.graph.reduced_in(number)]
        written, scans = (
            self.graph.written_in(number),
            [scan for scan in self.scans if scan.op in self.graph.scanned_in(number)],
        )
        if not reducers and not written and not scans:
            return
        remade = [pair for pair in self.graph.remade.items() if self.form.keeps and self.graph.level(pair[0]) == number]

        def step(
            inner: KernelCode, column: SSAValue, carried: Sequence[SSAValue], held: SSAValue | None = None
        ) -> Sequence[SSAValue]:
            self._read_sources(inner, number, place, column, held, loaded)
            for buffer, kept in remade:
                value = inner.load(buffer, self._indices(inner, (place.row, column), buffer))
                inner.store(value, self.arrays[kept], [column if held is None else held])
            for scan in scans:
                value = inner.load(scan.array, self._indices(inner, (place.row, column), scan.array))
                inner.store(value, self.arrays[scan.result], [column if held is None else held])
            for root in written:
                (buffer,) = root.outputs
                indices = self._indices(inner, (place.row, column), buffer)
                value = inner.load(buffer, indices)
                with inner.located(root.location):
                    inner.store(value, buffer, indices)
            return with_elements(inner, reducers, carried, (place.row, column))

        starts, width, loaded = starts_of(code, reducers), self.fusion.vector, dict[SSAValue, SSAValue]()
        if self.form.steps:
            for scan in scans:
                self._fill(code, scan)
            loaded = self._load_first(code, number, place)
            found = loop_over_held_row(
                code, place, self.threads, self._columns(code), width, self.form.steps, starts, step
            )
        else:
            waits = any(not self._is_near(buffer, number) for buffer in self._sources(number))
            found = loop_over_row(code, place, self.threads, self.sizes[1], width, starts, step, waits=waits)
        for scan in scans:
            self._scan(code, scan, place)
        if not reducers:
            return
        totals = combine_row(code, self.threads, place.thread, reducers, parts_of(reducers, found), everyone=True)
        for reducer, total in zip(reducers, totals, strict=True):
            for value, buffer in zip(reducer.results(code, total), reducer.op.outputs, strict=True):
                self.producers[buffer] = KnownProducer(value)  # the rules of fusions let only its own row read it
                self._write(code, buffer, reducer.result_indices(place.row), value, place, reducer.op)

    def _fill(self, code: KernelCode, scan: RowScan) -> None:
        """Gives a thread a value for the elements that it does not have."""
        value = scan.neutral(code)
        for number in range(self.form.steps * self.fusion.vector):
            code.store(value, self.arrays[scan.result], [code.index.value(number)])

    def _scan(self, code: KernelCode, scan: RowScan, place: RowPlace) -> None:
        """Replaces the elements that threads hold of a scan's operand by those of its result."""
        array, width = self.arrays[scan.result], self.fusion.vector
        places = [[code.index.value(step * width + at) for at in range(width)] for step in range(self.form.steps)]
        held = [[code.load(array, [at]) for at in own] for own in places]
        from xla_emitters.dynamic.loops.row_scans import scan_held

        found, _ = scan_held(code, scan, self.threads, place, held, code.load(scan.op.inputs[1], ()))
        for own, values in zip(places, found, strict=True):
            for at, value in zip(own, values, strict=True):
                code.store(value, array, [at])

    def _load_first(self, code: KernelCode, number: int, place: RowPlace) -> dict[SSAValue, SSAValue]:
        """Loads what a round reads from memory, if steps may be skipped: source -> the array with the thread's elements."""
        if isinstance(self.sizes[1], int):
            return {}
        far = [buffer for buffer in self._sources(number) if not self._is_near(buffer, number)]
        loaded = {buffer: self.arrays.get(buffer) or self._array(code, buffer) for buffer in far}

        def step(inner: KernelCode, column: SSAValue, _: Sequence[SSAValue], held: SSAValue) -> Sequence[SSAValue]:
            inner.producers = self.producers
            for buffer, array in loaded.items():
                inner.store(inner.load(buffer, self._indices(inner, (place.row, column), buffer)), array, [held])
            return ()

        if loaded:
            columns = self._columns(code)
            loop_over_held_row(code, place, self.threads, columns, self.fusion.vector, self.form.steps, (), step)
        return loaded

    def _columns(self, code: KernelCode) -> Number:
        """Number of columns, as a value whose divisors the kernel knows."""
        return code.index.multiple(self.sizes[1], self.fusion.vector)

    def _read_sources(
        self,
        code: KernelCode,
        number: int,
        place: RowPlace,
        column: SSAValue,
        held: SSAValue | None,
        loaded: Mapping[SSAValue, SSAValue],
    ) -> None:
        """The elements that a round reads, once per index: from memory, or as an earlier round kept them.

        held    the number of the element among the thread's own, where these are in registers
        loaded  sources that were loaded before -> their arrays
        """
        known, at = dict[SSAValue, Producer](), column if held is None else held
        for buffer in self._sources(number):
            near = self.vectors.get(buffer) or loaded.get(buffer)
            array = self.arrays.get(self.graph.remade.get(buffer, buffer))
            if near is None and array is not None and self._is_near(buffer, number):
                near = array
            if near is not None:
                value = code.load(near, [at])
            else:
                # The elements of other sources that are known are those of this column; a moved one needs others.
                code.producers = self.producers if buffer in self.graph.moved else ChainMap(known, self.producers)
                value = code.load(buffer, self._indices(code, (place.row, column), buffer))
                if array is not None:
                    code.store(value, array, [at])
            known[buffer] = KnownProducer(value)
        code.producers = ChainMap(known, self.producers)

    def _is_near(self, buffer: SSAValue, number: int) -> bool:
        """Whether an earlier round kept a source."""
        if buffer in self.vectors or (self.form.keeps and buffer in self.graph.remade):
            return True
        return buffer in self.arrays and self.graph.kept[buffer] < number

    def _sources(self, number: int) -> list[SSAValue]:
        return self.graph.read_in(number, keeps=self.form.keeps)
