"""Tiles of a transpose: the maps from threads to the elements that they read, to shared memory, and to the elements that they write.

    f32[20,160,170] -> [170,160,20]: 1 x 160 x 6 blocks of 128 threads, a tile f32[32,1,33] each

    read      (th_x, bl_x)[i, j] -> input  (i * 4 + th_x floordiv 32, bl_x floordiv 6, (bl_x mod 6) * 32 + th_x mod 32)
                                    tile   (th_x mod 32, 0, i * 4 + th_x floordiv 32)
    write     (th_x, bl_x)[i, j] -> output ((bl_x mod 6) * 32 + i * 4 + th_x floordiv 32, bl_x floordiv 6, th_x mod 32)
                                    tile   (i * 4 + th_x floordiv 32, 0, th_x mod 32)

A warp reads a row of the input and writes it to a column of the tile; later it reads a row of the tile and writes it to a row of the
output. Rows of the tile have 33 elements, so that the elements of a column are in 32 different banks. `PackedTiles` have no padding:
threads move words of several elements, and each row of words is rotated by one more than the row before, with the same effect.

Where a dim is not a multiple of its tile, the maps' constraints select the active threads.
Source: docs/reference/2 2.5, 2.6; XLA transpose.cc; seed document, "Transpose emitter".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import delinearize_in_bounds
from xla_emitters.device import Device
from xla_emitters.emitters.launch_ids import LaunchIds
from xla_emitters.graph.transposes import TILE, PackedTranspose, TransposeDescription
from xla_emitters.program import LaunchDimensions

THREADS = 128
VECTOR_BYTES = 4
"""The most bytes that a thread of an unpacked transpose moves at once."""
ROTATED_BITS = 128
"""The most bits that a thread moves at once where rows are rotated; XLA does not rotate rows."""


def counts(dims: Sequence[int], tile: Sequence[int]) -> tuple[int, ...]:
    """Tiles along each dim."""
    return tuple(-(-size // part) for size, part in zip(dims, tile, strict=True))


def tile_bytes(description: TransposeDescription, transposes: int) -> int:
    """Bytes of `transposes` tiles of 32 x 33 vectors, each one element wide: the starting point for choosing the largest vector."""
    width = description.bits * (description.dims[-1] if description.keeps_minor else 1)
    return transposes * -(-TILE * (TILE + 1) * width // 8)


@dataclass(frozen=True)
class BlockGrid:
    """Blocks, numbered row major, each with a tile of an array.

    dims, tile  sizes of the array and of a block's tile, along each dim
    sources     for each dim the number of the output's dim that it is; None if the output does not have it
    """

    dims: tuple[int, ...]
    tile: tuple[int, ...]
    sources: tuple[int | None, ...]

    def blocks_of(self, blocks: Sequence[int], other: BlockGrid) -> Sequence[int]:
        """The blocks of another grid over the same output that share an element with these blocks."""
        found = set[int]()
        per_dim, other_per_dim = counts(self.dims, self.tile), counts(other.dims, other.tile)
        for block in blocks:
            places = np.unravel_index(block, per_dim)
            spans = {
                source: range(int(place) * size, min((int(place) + 1) * size, dim))
                for place, size, dim, source in zip(places, self.tile, self.dims, self.sources, strict=True)
            }
            along = [
                range(spans[source][0] // size, spans[source][-1] // size + 1) if source is not None else range(1)
                for source, size in zip(other.sources, other.tile, strict=True)
            ]
            found.update(int(np.ravel_multi_index(each, other_per_dim)) for each in product(*along))
        return sorted(found)


@dataclass(frozen=True, eq=False)
class PlainTiles:
    """Tiles of 32 x 32: of elements, of vectors of a few, or of the whole fastest dim if the transpose keeps it.

    vector_size  neighbouring elements that one thread reads
    rotated      a row of the tile has no padding; its elements are in `vector_size` runs, the n-th of each vector in run n, and each run
                 is rotated by one more element every `vector_size` rows: vectors of rows and of columns are in 32 different banks
    """

    description: TransposeDescription
    vector_size: int
    rotated: bool = False

    @cached_property
    def tile(self) -> tuple[int, ...]:
        """Elements of a block's tile along each input dim."""
        rank = len(self.description.dims)
        sizes = [1] * rank
        if self.description.keeps_minor:
            sizes[-1] = self.vector_size
        side = TILE if self.description.keeps_minor else TILE * self.vector_size
        for dim in self.tiled_dims:
            sizes[dim] = side
        return tuple(sizes)

    @property
    def tiled_dims(self) -> tuple[int, int]:
        """The two input dims that are exchanged: the fastest one before the transpose, and the fastest one after it."""
        last = len(self.description.dims) - (2 if self.description.keeps_minor else 1)
        return last, self.description.permutation[last]

    @property
    def input_dims(self) -> tuple[int, ...]:
        return self.description.input_dims

    @property
    def output_dims(self) -> tuple[int, ...]:
        return self.description.dims

    @property
    def shared_dims(self) -> tuple[int, ...]:
        padded = None if self.rotated else self.tiled_dims[0]
        return tuple(size + (dim == padded) for dim, size in enumerate(self.tile))

    @property
    def grid(self) -> BlockGrid:
        permutation = self.description.permutation
        return BlockGrid(self.input_dims, self.tile, tuple(permutation.index(dim) for dim in range(len(permutation))))

    def _in_tile(self, offsets: Sequence[Expr]) -> tuple[Expr, ...]:
        """The index in shared memory of an element of the tile."""
        if not self.rotated:
            return tuple(offsets)
        (last, other), width = self.tiled_dims, self.vector_size
        row, column = offsets[other], offsets[last]
        rotated = column % width * TILE + (column // width + row // width) % TILE
        return tuple(rotated if dim == last else offset for dim, offset in enumerate(offsets))

    @cached_property
    def launch(self) -> LaunchDimensions:
        return LaunchDimensions((math.prod(counts(self.input_dims, self.tile)), 1, 1), (THREADS, 1, 1))

    @property
    def summary(self) -> str:
        moved = f"{self.vector_size} elements at once" if self.vector_size > 1 else "one element at a time"
        moved += ", rows rotated" if self.rotated else ""
        return f"{'x'.join(map(str, self.tile))} of the input through {'x'.join(map(str, self.shared_dims))}, {moved}"

    @property
    def _ids(self) -> LaunchIds:
        return LaunchIds(self.launch)

    @property
    def _symbols(self) -> tuple[Variable, ...]:
        steps = math.prod(self.tile) // (THREADS * self.vector_size)
        return Variable(Interval(0, steps - 1), "i"), Variable(Interval(0, self.vector_size - 1), "j")

    def _map(self, results: Sequence[Expr], constraints: Sequence[tuple[Expr, Interval]] = ()) -> IndexingMap:
        made = IndexingMap(tuple(results), self._ids.dims, self._symbols, constraints=tuple(constraints))
        return made.simplify()

    def _offsets(self, tile: Sequence[int]) -> tuple[Expr, ...]:
        """The offsets of a thread's elements in a tile, neighbours along the last dim first."""
        ids, width = self._ids, self.vector_size
        return delinearize_in_bounds(ids.symbol(0) * (THREADS * width) + ids.thread * width + ids.symbol(1), tile)

    def _global(self, dims: Sequence[int], tile: Sequence[int], blocks: Sequence[Expr]) -> IndexingMap:
        at = [block * size + offset for block, size, offset in zip(blocks, tile, self._offsets(tile), strict=True)]
        inside = [(index, Interval(0, size - 1)) for index, size in zip(at, dims, strict=True)]
        return self._map(at, inside)

    @property
    def _blocks(self) -> tuple[Expr, ...]:
        """The number of the block's tile along each input dim."""
        return delinearize_in_bounds(self._ids.block, counts(self.input_dims, self.tile))

    @cached_property
    def read(self) -> IndexingMap:
        """Map ids[i, j] -> the index in the input that the thread reads."""
        return self._global(self.input_dims, self.tile, self._blocks)

    @cached_property
    def put(self) -> IndexingMap:
        """Map ids[i, j] -> the index in the tile that the thread writes: rows become columns."""
        offsets = list(self._offsets(self.tile))
        one, other = self.tiled_dims
        offsets[one], offsets[other] = offsets[other], offsets[one]
        return self._map(self._in_tile(offsets))

    @cached_property
    def take(self) -> IndexingMap:
        """Map ids[i, j] -> the index in the tile that the thread reads."""
        return self._map(self._in_tile(self._offsets(self.tile)))

    @cached_property
    def write(self) -> IndexingMap:
        """Map ids[i, j] -> the index in the output that the thread writes."""
        order = self.description.permutation
        return self._global(self.output_dims, [self.tile[k] for k in order], [self._blocks[k] for k in order])


def plain_tiles(description: TransposeDescription, transposes: int, device: Device) -> PlainTiles:
    """Tile plan of an unpacked transpose; `transposes` of them share the block's memory."""
    if description.keeps_minor:
        return PlainTiles(description, description.dims[-1])
    narrow = PlainTiles(description, 1)
    one, other = (description.input_dims[dim] for dim in narrow.tiled_dims)
    for width in _halves(VECTOR_BYTES // max(1, description.bits // 8)):
        fills_chip = narrow.launch.blocks * THREADS >= width**2 * device.threads_max
        fits = tile_bytes(description, transposes) * width**2 <= device.shared_bytes_per_block
        if fills_chip and fits and one % width == other % width == 0:
            return PlainTiles(description, width)
    return narrow


def rotated_tiles(description: TransposeDescription, transposes: int, device: Device) -> Sequence[PlainTiles]:
    """Tile plans with accesses of 8 and 16 bytes, if both sides consist of whole vectors and a block has room for the tiles."""
    bits, found = description.bits, list[PlainTiles]()
    if description.keeps_minor or bits < 8:
        return ()
    for width in (ROTATED_BITS // bits // 2, ROTATED_BITS // bits):
        tiles = PlainTiles(description, width, rotated=True)
        shared = transposes * math.prod(tiles.tile) * bits // 8
        sides = [description.input_dims[dim] for dim in tiles.tiled_dims]
        if width > 1 and shared <= device.shared_bytes_per_block and all(side % width == 0 for side in sides):
            found.append(tiles)
    return found


def _halves(size: int) -> Iterator[int]:
    while size > 1:
        yield size
        size //= 2


@dataclass(frozen=True, eq=False)
class PackedTiles:
    """Tiles of 32 * `vector_size` rows of 32 words each; a word has `vector_size` elements.

    A thread reads words along T1 and writes words along T2: it reads `vector_size` words from a column of the tile and transposes them
    in registers.
    """

    packed: PackedTranspose
    has_inserted_a: bool = False

    @property
    def vector_size(self) -> int:
        return self.packed.vector_size

    @property
    def grid(self) -> BlockGrid:
        # Dims A and B may have been inserted: B is always the last, A the one before T2.
        packed, sources = self.packed, list[int | None](range(len(self.packed.dims) - 1 - self.has_inserted_a))
        if self.has_inserted_a:
            sources.insert(packed.a, None)
        return BlockGrid(packed.dims, packed.output_tile, (*sources, None))

    @property
    def input_dims(self) -> tuple[int, ...]:
        return self.packed.input_dims

    @property
    def output_dims(self) -> tuple[int, ...]:
        return self.packed.dims

    @property
    def shared_dims(self) -> tuple[int, ...]:
        return self.packed.side, self.packed.side

    @property
    def launch(self) -> LaunchDimensions:
        return LaunchDimensions((math.prod(counts(self.output_dims, self.packed.output_tile)), 1, 1), (THREADS, 1, 1))

    @property
    def summary(self) -> str:
        packed = self.packed
        columns = f"{packed.tile_a}x{packed.tile_t1}" if packed.tile_a > 1 else str(packed.tile_t1)
        shared = "x".join(map(str, self.shared_dims))
        return f"{packed.rows} rows of {columns} of the input through {shared}, {self.vector_size} elements at once"

    @property
    def has_whole_words(self) -> bool:
        """Whether each word is either inside the arrays with all its elements, or outside with all."""
        return self.input_dims[self.packed.t1] % self.vector_size == 0

    @property
    def _ids(self) -> LaunchIds:
        return LaunchIds(self.launch)

    @property
    def _lane(self) -> Expr:
        return self._ids.thread % TILE

    def _word(self, size: int) -> Expr:
        """The number of the lane's word along `size` elements of the tile.

        If a line has half as many words as a warp has lanes, say, its words are `thread mod 16`. In the map's domain this equals the lane;
        its smaller range keeps later sums below 32, which saves a remainder.
        """
        words, rest = divmod(size, self.vector_size)
        return self._ids.thread % words if not rest and words and TILE % words == 0 else self._lane

    def _output_index(self, row: Expr, column: Expr) -> tuple[Expr, ...]:
        """The index in the output of the element at `row` and `column` of the tile."""
        packed = self.packed
        blocks = delinearize_in_bounds(self._ids.block, counts(self.output_dims, packed.output_tile))
        offsets = {packed.t1_of_output: column, packed.t2: row}
        if packed.tile_a > 1:
            offsets |= {packed.a: column // packed.tile_t1, packed.t1_of_output: column % packed.tile_t1}
        return tuple(
            block * tile + offsets.get(dim, 0)
            for dim, (block, tile) in enumerate(zip(blocks, packed.output_tile, strict=True))
        )

    def _inside(self, row: Expr, column: Expr) -> tuple[tuple[Expr, Interval], ...]:
        """The constraints under which this element of the tile is inside the arrays."""
        indices = zip(self._output_index(row, column), self.output_dims, strict=True)
        bounds = [*indices, (row, self.packed.rows), (column, self.packed.columns)]
        return tuple((index, Interval(0, size - 1)) for index, size in bounds)

    def _map(
        self, results: Sequence[Expr], symbols: Sequence[Variable], constraints: Sequence[tuple[Expr, Interval]] = ()
    ) -> IndexingMap:
        return IndexingMap(tuple(results), self._ids.dims, tuple(symbols), constraints=tuple(constraints)).simplify()

    def _swizzled(self, row: Expr, word: Expr, element: Expr) -> tuple[Expr, Expr]:
        """The index in shared memory of element `element` of word `word` in a row of the tile."""
        return row, (word + row // self.vector_size) % TILE * self.vector_size + element

    # ---- Reading in: ids[i, e], where i counts a thread's words of the input and e the elements of a word

    @property
    def _in_symbols(self) -> tuple[Variable, ...]:
        steps = -(-self.packed.rows // (THREADS // TILE))
        return Variable(Interval(0, steps - 1), "i"), Variable(Interval(0, self.vector_size - 1), "j")

    @property
    def _row_in(self) -> Expr:
        return self._ids.symbol(0) * (THREADS // TILE) + self._ids.thread // TILE

    @cached_property
    def read(self) -> IndexingMap:
        """Map ids[i, e] -> the index in the input that the thread reads."""
        element = Expr.constant(0) if self.has_whole_words else self._ids.symbol(1)
        inside = self._inside(self._row_in, self._lane * self.vector_size + element)
        at = self._output_index(self._row_in, self._word(self.packed.columns) * self.vector_size + self._ids.symbol(1))
        return self._map([at[self.packed.permutation.index(dim)] for dim in range(len(at))], self._in_symbols, inside)

    @cached_property
    def put(self) -> IndexingMap:
        """Map ids[i, e] -> the index in the tile that the thread writes."""
        word = self._word(self.packed.columns)
        return self._map(self._swizzled(self._row_in, word, self._ids.symbol(1)), self._in_symbols)

    # ---- Writing out: ids[i, h, w], word i of `vector_size` rows below each other; w is the row, h the element in its word

    @property
    def _out_symbols(self) -> tuple[Variable, ...]:
        steps = -(-self.packed.columns // (THREADS // TILE * self.vector_size))
        within = Interval(0, self.vector_size - 1)
        return Variable(Interval(0, steps - 1), "i"), Variable(within, "h"), Variable(within, "w")

    @property
    def _word_out(self) -> Expr:
        return self._ids.symbol(0) * (THREADS // TILE) + self._ids.thread // TILE

    @cached_property
    def corner(self) -> IndexingMap:
        """Map ids[i] -> the index in shared memory of the first word that the thread reads."""
        at = self._swizzled(self._word(self.packed.rows) * self.vector_size, self._word_out, Expr.constant(0))
        inside = self._inside(self._lane * self.vector_size, self._word_out * self.vector_size)
        return self._map(at, self._out_symbols[:1], inside)

    @property
    def first_row(self) -> Variable:
        """The rows that a corner can be in."""
        return Variable(Interval(0, self.packed.side - self.vector_size))

    def within_corner(self, indexing_map: IndexingMap) -> IndexingMap:
        """A map over ids[i, h, w] as a map over (ids, i)[h, w], for a loop inside one over `corner`, which has checked the domain."""
        word, *within = self._out_symbols
        return IndexingMap(indexing_map.results, (*self._ids.dims, word), tuple(within))

    @cached_property
    def take(self) -> IndexingMap:
        """Map ids[i, h, w] -> the index in the tile that the thread reads."""
        row = self._word(self.packed.rows) * self.vector_size + self._ids.symbol(2)
        return self._map(self._swizzled(row, self._word_out, self._ids.symbol(1)), self._out_symbols)

    @cached_property
    def write(self) -> IndexingMap:
        """Map ids[i, h, w] -> the index in the output that the thread writes."""
        row = self._word(self.packed.rows) * self.vector_size + self._ids.symbol(2)
        column = self._word_out * self.vector_size + self._ids.symbol(1)
        # All rows have whole words: the constraints of a word's first row hold for all of its rows.
        inside = self._inside(self._lane * self.vector_size, column)
        return self._map(self._output_index(row, column), self._out_symbols, inside)
