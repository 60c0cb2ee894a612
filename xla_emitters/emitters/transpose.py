"""The transpose emitter: reads rows into shared memory, and writes rows from it.

    %shmem = xla_gpu.allocate_shared : tensor<32x1x33xf32>
    %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%i, %j] -> (%dim0, ..., %shmem_dim0, ...) in #map iter_args(%iter = %shmem) {
      %pure_call = xla_gpu.pure_call @f_exp(%input, %dim0, %dim1, %dim2)                prologue
      %inserted = tensor.insert %pure_call into %iter[%shmem_dim0, ...]
      xla_gpu.yield %inserted
    }
    %synced_tensor = xla_gpu.sync_threads %xla_loop
    %xla_loop_0 = xla_gpu.loop (%thread_id_x, %block_id_x)[%i, %j] -> (%dim0, %dim1, %dim2) in #map1 iter_args(%iter = %output) {
      %extracted = tensor.extract %synced_tensor[...]
      %pure_call = xla_gpu.pure_call @f__epilogue__abs(%input, %dim0, %dim1, %dim2, %extracted)       epilogue
      %inserted = tensor.insert %pure_call into %iter[%dim0, %dim1, %dim2]
      xla_gpu.yield %inserted
    }

Several transposes, each with its own tile, share both loops. Side outputs (roots that are not transposed) are written in the first
loop, where their elements are read. `transpose_tiles.py` distributes the work over threads. If packed tiles consist of whole words, the
second loop reads one word per element of a word, from successive rows, and an inner loop writes their elements, transposed:

    %v0 = vector.transfer_read %synced_tensor[%row, %column]; ...                          words of %row, %row + 1, ...
    %words = vector.from_elements %v0[0], %v1[0], %v0[1], %v1[1] : vector<2x2xbf16>        their columns, one after the other

Source: seed document, "Transpose emitter"; docs/reference/2 2.5, 2.6; XLA transpose.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, BoolAttr, ModuleOp, TensorType, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import reshape_map
from xla_emitters.device import Device
from xla_emitters.dialects import build
from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import tensor, vector
from xla_emitters.dialects.mlir.vector import FromElementsOp
from xla_emitters.dialects.xla_gpu import AllocateSharedOp, LoopOp, SyncThreadsOp, YieldOp
from xla_emitters.emitters.elemental import FunctionBuilder, result_types
from xla_emitters.emitters.emitter import Way, expected
from xla_emitters.emitters.entry_function import KernelEntry, entry_function
from xla_emitters.emitters.partitioner import Epilogue, PartitionedComputation, Subgraph, partition
from xla_emitters.emitters.transpose_tiles import PackedTiles, PlainTiles, plain_tiles, rotated_tiles
from xla_emitters.graph.heroes import TransposeHeroes, find_transposes, place_map
from xla_emitters.graph.view import FusionView
from xla_emitters.rewrite.notes import decide

_IN_BOUNDS = ArrayAttr([BoolAttr.from_bool(True)])
_ALONG_ROWS = AffineMapAttr(AffineMap.minor_identity(2, 1))


@dataclass(frozen=True)
class TransposeEmitter:
    """See the file's head.

    tiles  with rotated rows; None: XLA's choice
    """

    tiles: PlainTiles | None = None
    name = "transpose"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: no hero is a transpose, or the transposes cannot share a kernel."""
        found = find_transposes(view)
        return found if isinstance(found, str) else None

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """Partitions into a function for each operand of a transpose, each epilogue and each side output."""
        return _partition(view, _heroes(view))

    def candidates(self, view: FusionView, device: Device) -> Sequence[Way]:
        """Emitters that differ in the tiles; XLA's choice is the first."""
        found = _heroes(view)
        transposes = len(dict.fromkeys(found.heroes.values()))
        own = _tiles(found, transposes, device)
        ways = [Way("tiles as XLA's", self)]
        for tiles in rotated_tiles(found.first, transposes, device):
            same = partial(tiles.grid.blocks_of, other=own.grid)
            ways.append(Way(f"{tiles.vector_size} at once, rows rotated", replace(self, tiles=tiles), same))
        return ways

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        found = _heroes(view)
        transposes = tuple(dict.fromkeys(found.heroes.values()))
        tiles = self.tiles or _tiles(found, len(transposes), device)
        partitioned = _partition(view, found)
        _explain(found, transposes, tiles, partitioned)
        entry = entry_function(view, tiles.launch)
        _Kernel(view, found, transposes, tiles, partitioned, entry).write()
        return entry.module(view, partitioned)


def _heroes(view: FusionView) -> TransposeHeroes:
    return expected(find_transposes(view), view, "transpose emitter")


def _tiles(found: TransposeHeroes, transposes: int, device: Device) -> PlainTiles | PackedTiles:
    """The tile plan of XLA's choice."""
    description = found.first
    if (packed := description.packed) is None:
        return plain_tiles(description, transposes, device)
    return PackedTiles(packed, len(packed.dims) == len(description.dims) + 2)


def _partition(view: FusionView, found: TransposeHeroes) -> PartitionedComputation:
    roots = tuple(found.heroes)
    maps = tuple(place_map(roots[0], root) for root in roots)
    epilogue = Epilogue(roots, tuple(dict.fromkeys(found.heroes.values())), maps)
    side_outputs = frozenset(found.side_outputs)
    return partition(view.computation, lambda op: op in side_outputs, [epilogue])


def _explain(
    found: TransposeHeroes,
    transposes: Sequence[HloOp],
    tiles: PlainTiles | PackedTiles,
    partitioned: PartitionedComputation,
) -> None:
    names = ", ".join(f"%{op.instruction_name.data}" for op in transposes)
    kind = "packed" if isinstance(tiles, PackedTiles) else "tiled"
    decide("hero", f"{names}: {found.first}, {kind}", instructions=[op.instruction_name.data for op in transposes])
    launch = tiles.launch
    decide("launch", str(launch), grid=list(launch.grid), block=list(launch.block))
    decide("tile", tiles.summary, shared=list(tiles.shared_dims), vector_size=tiles.vector_size)
    decide("partition", partitioned.summary, functions=partitioned.sizes)


@dataclass(frozen=True, eq=False)
class _Kernel:
    """The body of the entry."""

    view: FusionView
    found: TransposeHeroes
    transposes: Sequence[HloOp]
    tiles: PlainTiles | PackedTiles
    partitioned: PartitionedComputation
    entry: KernelEntry

    def write(self) -> None:
        roots = self.view.roots
        side = [number for number, root in enumerate(roots) if root not in self.found.heroes]
        transposed = [number for number, root in enumerate(roots) if root in self.found.heroes]
        outputs = list(self.entry.outputs)
        shared = [self._allocate(op) for op in self.transposes]
        filled = self._read_in(shared, [outputs[number] for number in side], [roots[number] for number in side])
        for number, output in zip(side, filled[len(shared) :], strict=True):
            outputs[number] = output
        synced = self.entry.builder.insert(SyncThreadsOp(filled[: len(shared)])).results
        by_words = isinstance(self.tiles, PackedTiles) and self.tiles.has_whole_words
        write_out = self._write_words if by_words else self._write_elements
        written = write_out(
            synced, [outputs[number] for number in transposed], [roots[number] for number in transposed]
        )
        for number, output in zip(transposed, written, strict=True):
            outputs[number] = output
        self.entry.finish(outputs)

    def _allocate(self, transpose: HloOp) -> SSAValue:
        (element,) = result_types(transpose)
        return self.entry.builder.insert(AllocateSharedOp(TensorType(element, self.tiles.shared_dims))).result

    # ---- Reading into the tiles

    def _read_in(
        self, shared: Sequence[SSAValue], outputs: Sequence[SSAValue], side_outputs: Sequence[HloOp]
    ) -> Sequence[SSAValue]:
        """The loop that fills the tiles and writes the side outputs."""
        operands = [owner_of(op.operands[0]) for op in self.transposes]
        first = operands[0]
        into = reshape_map(self.tiles.input_dims, dims_of(first.result))
        read, put = self.tiles.read.compose(into).simplify(), self.tiles.put
        loop = LoopOp(self.entry.ids, [*shared, *outputs], replace(read, results=read.results + put.results))
        body = self._body(loop)
        indices, places = loop.map_results[: len(read.results)], loop.map_results[len(read.results) :]
        for number, place in enumerate(places):
            place.name_hint = f"shmem_dim{number}"
        # All values are computed before the first is written, because a result may share the buffer of a parameter.
        at = [build.apply_indexing(body, place_map(first, op), indices) for op in (*operands, *side_outputs)]
        values = [self._element(body, op, own) for op, own in zip((*operands, *side_outputs), at, strict=True)]
        targets = [*([places] * len(operands)), *at[len(operands) :]]
        self._finish(loop, body, values, targets)
        self.entry.builder.insert(loop)
        return loop.results

    def _element(self, body: FunctionBuilder, op: HloOp, indices: Sequence[SSAValue]) -> SSAValue:
        (value,) = self._call(body, self.partitioned.subgraph_of[op], indices)
        return value

    # ---- Writing from the tiles

    def _write_elements(
        self, synced: Sequence[SSAValue], outputs: Sequence[SSAValue], roots: Sequence[HloOp]
    ) -> Sequence[SSAValue]:
        """The loop that reads elements from the tiles and writes the results."""
        loop = LoopOp(self.entry.ids, outputs, self._root_index(roots[0]))
        body = self._body(loop)
        variables = [*self.entry.ids, *loop.induction_vars]
        place = build.apply_indexing(body, self.tiles.take, variables)
        elements = list[SSAValue]()
        for tile in synced:
            assert isa(tile.type, TensorType[Attribute])
            elements.append(body.insert(tensor.ExtractOp(tile, place, tile.type.element_type)).result)
        self._finish_roots(loop, body, elements, roots)
        self.entry.builder.insert(loop)
        return loop.results

    def _write_words(
        self, synced: Sequence[SSAValue], outputs: Sequence[SSAValue], roots: Sequence[HloOp]
    ) -> Sequence[SSAValue]:
        """The loop that reads words from the tiles, with an inner loop that writes their elements column by column."""
        assert isinstance(self.tiles, PackedTiles)
        loop = LoopOp(self.entry.ids, outputs, self.tiles.corner)
        around = self._body(loop)
        row, column = loop.map_results
        words = [self._words(around, tile, row, column) for tile in synced]
        write = self.tiles.within_corner(self._root_index(roots[0]))
        inner = LoopOp([*self.entry.ids, *loop.induction_vars], loop.iter_args, write)
        body = self._body(inner)
        elements = list[SSAValue]()
        for word in words:
            assert isa(word.type, VectorType[Attribute])
            element = body.insert(vector.ExtractOp(word, inner.induction_vars, word.type.element_type)).result
            element.name_hint = "extracted"
            elements.append(element)
        self._finish_roots(inner, body, elements, roots)
        around.insert(inner)
        around.insert(YieldOp(*inner.results))
        self.entry.builder.insert(loop)
        return loop.results

    def _words(self, body: FunctionBuilder, tile: SSAValue, row: SSAValue, column: SSAValue) -> SSAValue:
        """The words of the tile at `column` in `row` and the rows below it, transposed: a vector of columns."""
        assert isinstance(self.tiles, PackedTiles)
        assert isa(tile.type, TensorType[Attribute])
        size, element = self.tiles.vector_size, tile.type.element_type
        pad = constant(body, 0, element)
        rows = list[list[SSAValue]]()
        for number in range(size):
            below = IndexingMap((Expr.variable(0) + number,), dims=(self.tiles.first_row,))
            at = [*build.apply_indexing(body, below, [row]), column]
            read = vector.TransferReadOp(tile, at, pad, VectorType(element, [size]), _IN_BOUNDS, _ALONG_ROWS)
            word = body.insert(read).result
            rows.append([body.insert(vector.ExtractOp(word, [k], element)).result for k in range(size)])
        columns = [row[k] for k in range(size) for row in rows]
        return body.insert(FromElementsOp(columns, VectorType(element, [size, size]))).dest

    def _root_index(self, root: HloOp) -> IndexingMap:
        """The map from ids and symbols to the element of `root` that is written."""
        hero = self.found.heroes[root]
        from_tiles = self.tiles.write.compose(reshape_map(self.tiles.output_dims, dims_of(hero.result)))
        return from_tiles.compose(place_map(hero, root)).simplify()

    def _finish_roots(
        self, loop: LoopOp, body: FunctionBuilder, elements: Sequence[SSAValue], roots: Sequence[HloOp]
    ) -> None:
        """Computes the roots' elements from the transposes' elements, writes them, and ends the loop."""
        (epilogue,) = self.partitioned.epilogues
        made = dict(zip(epilogue.roots, self._call(body, epilogue, loop.map_results, elements), strict=True))
        at = [build.apply_indexing(body, place_map(roots[0], root), loop.map_results) for root in roots]
        self._finish(loop, body, [made[root] for root in roots], at)

    # ---- Both loops

    def _body(self, loop: LoopOp) -> FunctionBuilder:
        return FunctionBuilder(loop.body.block, self.view.location)

    def _call(
        self,
        body: FunctionBuilder,
        callee: Subgraph,
        indices: Sequence[SSAValue],
        elements: Sequence[SSAValue] = (),
    ) -> Sequence[SSAValue]:
        return body.call(callee, [*self.entry.inputs, *indices, *elements])

    def _finish(
        self,
        loop: LoopOp,
        body: FunctionBuilder,
        values: Sequence[SSAValue],
        indices: Sequence[Sequence[SSAValue]],
    ) -> None:
        """Inserts a value into each tensor that the loop carries, and ends the loop's body."""
        body.insert(YieldOp(*body.write(values, loop.iter_args, indices)))
