"""The transposes that use shared memory, and their normal form, in which dims that stay neighbours are merged.

    f32[2,3,1,160,170] -> dimensions={4,3,2,0,1}      dims (170, 160, 6), permutation (2, 1, 0), 4224 bytes of shared memory

A transpose reads rows and writes columns, so without shared memory either the reads or the writes do not coalesce. With a tile in shared
memory both access rows. That costs a barrier, and is faster if rows are long enough on both sides; the tests below are XLA's. There are
three forms, and the first that applies is used:

    packed          elements below 32 bits: a thread moves four bytes at a time (`PackedTranspose`)
    minor kept      the fastest dim is kept and has at most eight bytes: it is moved as one
    minor moved     32 x 32 elements a block

Elements that share a byte use shared memory only if a thread writes whole bytes: packed, or with the kept dim as a whole.
Source: docs/reference/2 1.5, 1.6; XLA ir_emission_utils.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.shape_ops import TransposeOp
from xla_emitters.dialects.hlo.types import default_order, dims_of, element_of, minor_to_major, type_text
from xla_emitters.support.late_dataclass import dataclass

TILE = 32
"""Elements in a row of a tile, and rows in a tile: the number of threads in a warp."""
WORD_BITS = 32
"""The bits that a thread of a packed transpose moves at once."""
PACKED_SHARED_BYTES_MAX = 48 * 1024
"""The limit of a block's static shared memory in bytes; only two-bit elements would exceed it."""


@dataclass(frozen=True)
class PackedTranspose:
    """A transpose of narrow elements as blocks of [A, T1] columns and T2 rows.

        input [..., T2, ..., A, T1, B]   ->   output [..., T1, ..., A, T2, B]

    dims         of the output, with A and B; they have size 1 if the transpose has no such dim
    permutation  output dim k is input dim permutation[k]
    vector_size  elements in 32 bits
    """

    dims: tuple[int, ...]
    permutation: tuple[int, ...]
    vector_size: int

    @property
    def a(self) -> int:
        """The number of dim A, in the input and in the output."""
        return len(self.dims) - 3

    @property
    def t1(self) -> int:
        """The number of input dim T1, the fastest one of the input."""
        return len(self.dims) - 2

    @property
    def t1_of_output(self) -> int:
        return self.permutation.index(self.t1)

    @property
    def t2(self) -> int:
        """The number of output dim T2, the fastest one of the output."""
        return len(self.dims) - 2

    @property
    def input_dims(self) -> tuple[int, ...]:
        return input_dims(self.dims, self.permutation)

    @property
    def side(self) -> int:
        """Rows and columns of the shared tile."""
        return TILE * self.vector_size

    @property
    def tile_t1(self) -> int:
        return min(self.input_dims[self.t1], self.side)

    @property
    def tile_a(self) -> int:
        return min(self.dims[self.a], self.side // self.tile_t1)

    @property
    def tile_t2(self) -> int:
        return min(self.dims[self.t2], self.side)

    @property
    def columns(self) -> int:
        return self.tile_a * self.tile_t1

    @property
    def rows(self) -> int:
        return self.tile_t2

    @property
    def output_tile(self) -> tuple[int, ...]:
        """Elements of a block in each output dim."""
        tiles = {self.t1_of_output: self.tile_t1, self.a: self.tile_a, self.t2: self.tile_t2}
        return tuple(tiles.get(dim, 1) for dim in range(len(self.dims)))


@dataclass(frozen=True, eq=False)
class TransposeDescription:
    """A transpose through shared memory, normalised.

    op           the instruction
    dims         of the output, without dims of size 1; dims that stay neighbours are merged
    permutation  output dim k is input dim permutation[k]
    """

    op: HloOp
    dims: tuple[int, ...]
    permutation: tuple[int, ...]

    @property
    def input_dims(self) -> tuple[int, ...]:
        return input_dims(self.dims, self.permutation)

    @property
    def bits(self) -> int:
        """Bits of an element in memory."""
        return element_of(self.op.result).bits

    @property
    def keeps_minor(self) -> bool:
        """Whether the fastest dim is the same before and after."""
        return self.permutation[-1] == len(self.dims) - 1

    @cached_property
    def packed(self) -> PackedTranspose | None:
        return packed_transpose(self.dims, self.permutation, self.bits)

    def is_equivalent(self, other: TransposeDescription) -> bool:
        """Whether one loop can transpose both: same dims, same permutation, same element width."""
        return (self.dims, self.permutation, self.bits) == (other.dims, other.permutation, other.bits)

    def __str__(self) -> str:
        dims = ", ".join(map(str, self.input_dims))
        order = ",".join(map(str, self.permutation))
        return f"[{dims}] by {{{order}}} of {self.bits} bits"


def input_dims(dims: Sequence[int], permutation: Sequence[int]) -> tuple[int, ...]:
    """The dims before a transpose whose result has `dims`.

    >>> input_dims((170, 160, 20), (2, 1, 0))
    (20, 160, 170)
    """
    return tuple(dims[permutation.index(dim)] for dim in range(len(dims)))


def normalized(dims: Sequence[int], permutation: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A transpose's output dims and permutation, without dims of size 1; dims that stay neighbours are merged.

    >>> normalized((170, 160, 1, 2, 3), (4, 3, 2, 0, 1))
    ((170, 160, 6), (2, 1, 0))
    """
    sources = [source for source, size in zip(permutation, dims, strict=True) if size != 1]
    sizes = [size for size in dims if size != 1]
    places = {source: place for place, source in enumerate(sorted(sources))}
    runs: list[list[int]] = []
    for source in (places[source] for source in sources):
        if runs and runs[-1][-1] + 1 == source:
            runs[-1].append(source)
        else:
            runs.append([source])
    size_of = dict(zip((places[source] for source in sources), sizes, strict=True))
    starts = sorted(run[0] for run in runs)
    return (
        tuple(math.prod(size_of[source] for source in run) for run in runs),
        tuple(starts.index(run[0]) for run in runs),
    )


def packed_transpose(dims: Sequence[int], permutation: Sequence[int], bits: int) -> PackedTranspose | None:
    """The packed form of a normalised transpose; None if its elements are too wide, its dims too small or not whole words.

    >>> packed = packed_transpose((30, 16, 30), (2, 1, 0), bits=16)
    >>> packed.dims, packed.permutation, (packed.tile_t1, packed.tile_a, packed.tile_t2)
    ((30, 16, 30, 1), (2, 1, 0, 3), (30, 2, 30))
    """
    rank = len(dims)
    if bits >= WORD_BITS or rank < 2 or permutation[-1] == rank - 1 or 0 in dims:
        return None
    size = WORD_BITS // bits
    if (TILE * size) ** 2 * bits // 8 > PACKED_SHARED_BYTES_MAX:
        return None
    sizes, order = [*dims, 1], [*permutation, rank]
    before = rank - 1  # T1 of the input, T2 of the output
    if rank < 2 or before == 0 or order[before - 1] != before - 1:
        sizes.insert(before, 1)
        order = [source + (source >= before) for source in order]
        order.insert(before, before)
    packed = PackedTranspose(tuple(sizes), tuple(order), size)
    if min(packed.columns, packed.rows) < 10 * size:
        return None
    if packed.rows % size or packed.columns % size or packed.dims[packed.t2] % packed.tile_t2 % size:
        return None
    return packed


def describe_transpose(op: HloOp) -> TransposeDescription | str:
    """How `op` uses shared memory; or the reason why it does not."""
    if not isinstance(op, TransposeOp):
        return f"'{op.opcode}' is not a transpose"
    for value in (op.operands[0], op.result):
        if minor_to_major(value.type) != default_order(len(dims_of(value))):
            return f"{type_text(value.type, True)} is not row major"
    dims, permutation = normalized(dims_of(op.result), integers(op.dimensions))
    if len(dims) < 2 or 0 in dims:
        return "its elements stay in their order"
    found = TransposeDescription(op, dims, permutation)
    if found.packed is not None:
        return found
    before, bits = found.input_dims, found.bits
    if found.keeps_minor:
        width = bits * dims[-1]
        if width > 64:
            return f"its fastest dim is kept, and its {width} bits are read at once anyway"
        if width * min(before[-2], dims[-2]) < 128:
            return f"rows of {min(before[-2], dims[-2])} times {width} bits are too short"
        if bits < 8 and (width % 8 or dims[-1].bit_count() != 1):
            return f"{dims[-1]} elements of {bits} bits are not whole bytes"
        return found
    if bits < 8:
        return f"elements of {bits} bits share bytes"
    small, large = sorted((before[-1], dims[-1]))
    if small >= 16 or (small >= 8 and small * large >= 8192):
        return found
    return f"tiles of {before[-1]} by {dims[-1]} elements are too small"
