"""Tiles of a transpose, by enumeration: every element is read once, written once, and keeps its place in the tile in between."""

import math
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.device import device
from xla_emitters.emitters.transpose_tiles import THREADS, PackedTiles, PlainTiles, plain_tiles, rotated_tiles
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.transposes import TransposeDescription, describe_transpose
from xla_emitters.graph.view import view_of
from xla_emitters.text.hlo import parse_hlo

H200 = device("h200")
Places = npt.NDArray[np.int64]


def described(element: str, operand: tuple[int, ...], permutation: tuple[int, ...]) -> TransposeDescription:
    result = [operand[dim] for dim in permutation]

    def text(numbers: tuple[int, ...] | list[int]) -> str:
        return ",".join(map(str, numbers))

    body = (
        f"ENTRY f {{\n p = {element}[{text(operand)}] parameter(0)\n"
        f" ROOT t = {element}[{text(result)}] transpose(p), dimensions={{{text(permutation)}}}\n}}"
    )
    view = view_of(entry_of(parse_hlo(body)))
    found = describe_transpose(view.instructions[-1])
    assert isinstance(found, TransposeDescription), found
    return found


def tiles_of(description: TransposeDescription) -> PlainTiles | PackedTiles:
    packed = description.packed
    return plain_tiles(description, 1, H200) if packed is None else PackedTiles(packed)


def rotated(element: str, operand: tuple[int, ...], permutation: tuple[int, ...]) -> PlainTiles:
    """The widest tiles whose rows are rotated."""
    return rotated_tiles(described(element, operand, permutation), 1, H200)[-1]


def points(domain: IndexingMap, *maps: IndexingMap) -> tuple[Places, list[Places]]:
    """For each point of `domain`'s domain its ids and symbols, and what the maps give there: arrays of a row per point."""
    variables = domain.variables
    grids = np.meshgrid(*(np.arange(v.bounds.lower, v.bounds.upper + 1) for v in variables), indexing="ij")
    flat = [grid.reshape(-1) for grid in grids]
    dims, symbols = flat[: domain.num_dims], flat[domain.num_dims :]
    inside = np.broadcast_to(domain.constraints_satisfied(dims, symbols), flat[0].shape)
    flat = [values[inside] for values in flat]
    dims, symbols = flat[: domain.num_dims], flat[domain.num_dims :]
    results = [
        np.stack([np.broadcast_to(value, flat[0].shape) for value in m.evaluate(dims, symbols)], axis=1) for m in maps
    ]
    return np.stack(flat, axis=1), results


CASES = [
    ("f32", (20, 6, 70), (2, 1, 0)),
    ("f32", (64, 32), (1, 0)),
    ("f32", (33, 17), (1, 0)),
    ("f32", (2, 40, 3, 33), (0, 3, 2, 1)),
    ("f32", (40, 50, 2), (1, 0, 2)),
    ("f32", (3, 40, 5, 33, 2), (2, 3, 1, 0, 4)),
    ("s8", (60, 134), (1, 0)),
    ("s8", (70, 33), (1, 0)),
    ("bf16", (30, 15, 30), (2, 1, 0)),
    ("bf16", (3, 78, 100), (0, 2, 1)),
    ("bf16", (66, 97, 3), (1, 2, 0)),
    ("s8", (60, 133), (1, 0)),
    ("s8", (8, 64, 68), (0, 2, 1)),
    ("s4", (80, 264), (1, 0)),
    ("f32", (32, 17), (1, 0)),
    ("bf16", (32, 64), (1, 0)),
]


ROTATED = [
    ("f32", (20, 6, 70), (2, 1, 0)),
    ("f32", (64, 130), (1, 0)),
    ("f64", (2, 40, 3, 34), (0, 3, 2, 1)),
    ("bf16", (3, 76, 136), (0, 2, 1)),
]


@pytest.mark.parametrize(("element", "operand", "permutation"), CASES)
def test_every_element_goes_through_the_tile_once(element: str, operand: tuple[int, ...], permutation: tuple[int, ...]):
    """What a block puts somewhere into its tile is what it takes from there, and where it writes it NumPy's transpose has it."""
    goes_through_the_tile_once(tiles_of(described(element, operand, permutation)), operand, permutation)


@pytest.mark.parametrize(("element", "operand", "permutation"), ROTATED)
def test_every_element_goes_through_the_rotated_tile_once(
    element: str, operand: tuple[int, ...], permutation: tuple[int, ...]
):
    tiles = rotated(element, operand, permutation)
    assert tiles.vector_size > 1
    assert tiles.shared_dims == tiles.tile
    goes_through_the_tile_once(tiles, operand, permutation)


def goes_through_the_tile_once(
    tiles: PlainTiles | PackedTiles, operand: tuple[int, ...], permutation: tuple[int, ...]
) -> None:
    dims = tiles.read.num_dims
    ids_in, (read, put) = points(tiles.read, tiles.read, tiles.put)
    ids_out, (take, write) = points(tiles.write, tiles.take, tiles.write)
    elements = np.arange(math.prod(operand))
    source = elements.reshape(tiles.input_dims)[tuple(read.T)]
    assert sorted(source) == list(elements)
    blocks_in = ids_in[:, 1] if dims > 1 else np.zeros(len(ids_in), np.int64)
    blocks_out = ids_out[:, 1] if dims > 1 else np.zeros(len(ids_out), np.int64)
    keys = np.column_stack([blocks_in, put]).tolist()
    tile: dict[tuple[int, ...], int] = {tuple(key): value for key, value in zip(keys, source.tolist(), strict=True)}
    assert len(tile) == len(elements)
    assert (put >= 0).all()
    assert (put < tiles.shared_dims).all()
    target = elements.reshape(tiles.output_dims)[tuple(write.T)]
    assert sorted(target) == list(elements)
    wanted = np.arange(math.prod(operand)).reshape(operand).transpose(permutation).reshape(-1)
    got = np.array([tile[tuple(key)] for key in np.column_stack([blocks_out, take]).tolist()])
    assert (got == wanted[target]).all()


@pytest.mark.parametrize(("element", "operand", "permutation"), [case for case in CASES if case[0] != "f32"])
def test_the_corner_is_where_the_first_element_is_taken(
    element: str, operand: tuple[int, ...], permutation: tuple[int, ...]
):
    """ids[i, 0, 0] of the elements are ids[i] of the corners; the rest of a word lies behind its first, words below it."""
    tiles = tiles_of(described(element, operand, permutation))
    if not isinstance(tiles, PackedTiles) or not tiles.has_whole_words:
        return
    corners, (places,) = points(tiles.corner, tiles.corner)
    elements, (taken,) = points(tiles.write, tiles.take)
    first = {tuple(ids): place for ids, place in zip(corners, places, strict=True)}
    assert Counter(tuple(ids[:-2]) for ids in elements) == dict.fromkeys(first, tiles.vector_size**2)
    assert all(
        tuple(place) == (first[tuple(ids[:-2])][0] + ids[-1], first[tuple(ids[:-2])][1] + ids[-2])
        for ids, place in zip(elements, taken, strict=True)
    )


@pytest.mark.parametrize(("element", "operand", "permutation"), CASES)
def test_no_bank_is_asked_for_two_words(element: str, operand: tuple[int, ...], permutation: tuple[int, ...]):
    """The 32 threads of a warp touch different banks of 4 bytes, or the same word: in and out. Elements of 8 bytes take two turns."""
    description = described(element, operand, permutation)
    tiles = tiles_of(description)
    # Rows of 33 bytes begin in one word with the end of the row before: two of 32 may share a bank.
    is_narrow = description.bits < 32 and isinstance(tiles, PlainTiles)
    assert most_in_a_bank(tiles, description) <= (2 if is_narrow or description.keeps_minor else 1)


def test_rotated_rows_have_no_conflicts_where_padded_ones_have():
    """Pairs of f32: 64 lanes of a row and of a column in 32 banks, each by one word of each access."""
    description = described("f32", (128, 128), (1, 0))
    assert most_in_a_bank(PlainTiles(description, 2), description) == 2
    assert most_in_a_bank(PlainTiles(description, 2, rotated=True), description) == 1


def most_in_a_bank(tiles: PlainTiles | PackedTiles, description: TransposeDescription) -> int:
    """The most words that one access of a warp wants of a bank."""
    most = 0
    strides = [math.prod(tiles.shared_dims[dim + 1 :]) for dim in range(len(tiles.shared_dims))]
    for domain, shared in ((tiles.read, tiles.put), (tiles.write, tiles.take)):
        ids, (places,) = points(domain, shared)
        words = (places * strides).sum(axis=1) * description.bits // 32
        warp = ids[:, 0] // 32
        steps, step_of = np.unique(np.column_stack([warp, ids[:, 1:]]), axis=0, return_inverse=True)
        for step in range(0, len(steps), max(1, len(steps) // 50)):
            banks = np.bincount(np.unique(words[step_of.reshape(-1) == step]) % 32)
            most = max(most, int(banks.max()))
    return most


@pytest.mark.parametrize(("element", "operand", "permutation"), ROTATED)
def test_blocks_of_two_plans_have_the_same_elements(
    element: str, operand: tuple[int, ...], permutation: tuple[int, ...]
):
    """What a block writes is written by the blocks of XLA's choice that the grids say, and by no others."""
    ours, description = rotated(element, operand, permutation), described(element, operand, permutation)
    own_tiles = tiles_of(description)
    if isinstance(own_tiles, PackedTiles):
        own_tiles = PackedTiles(own_tiles.packed, len(own_tiles.packed.dims) == len(description.dims) + 2)
    of_block = [blocks_by_element(tiles) for tiles in (ours, own_tiles)]
    wanted: dict[int, set[int]] = {}
    for block, other in zip(*of_block, strict=True):
        wanted.setdefault(int(block), set()).add(int(other))
    for block, others in wanted.items():
        assert list(ours.grid.blocks_of([block], own_tiles.grid)) == sorted(others)


def blocks_by_element(tiles: PlainTiles | PackedTiles) -> Places:
    """For each element of the output the block that writes it."""
    ids, (write,) = points(tiles.write, tiles.write)
    found = np.full(math.prod(tiles.output_dims), -1)
    found[np.ravel_multi_index(tuple(write.T), tiles.output_dims)] = ids[:, 1] if tiles.write.num_dims > 1 else 0
    return found


def test_launch_and_tile_are_the_seeds():
    tiles = tiles_of(described("f32", (20, 160, 170), (2, 1, 0)))
    assert isinstance(tiles, PlainTiles)
    assert (tiles.tile, tiles.shared_dims, tiles.launch.grid) == ((32, 1, 32), (32, 1, 33), (960, 1, 1))
    assert tiles.launch.block == (THREADS, 1, 1)
    assert tiles_of(described("s4", (80, 264), (1, 0))).launch.block == (THREADS, 1, 1)


@pytest.mark.parametrize(
    ("operand", "vector_size"),
    [
        # What is left of 4098 rows after tiles of 128 is no whole word, so it is not packed. 4 do not divide, 2 do.
        ((4098, 4096), 2),
        # Not enough blocks to fill the chip with a quarter of them.
        ((514, 512), 1),
        # 4 divide both, and there are 16 times as many blocks as fill the chip.
        ((32, 2**21), 4),
    ],
)
def test_unpacked_bytes_are_vectors_where_blocks_abound(operand: tuple[int, int], vector_size: int):
    tiles = tiles_of(described("s8", operand, (1, 0)))
    assert isinstance(tiles, PlainTiles)
    assert tiles.vector_size == vector_size
    assert tiles.shared_dims == (32 * vector_size, 32 * vector_size + 1)


def test_all_tiles_of_a_kernel_must_fit():
    """Tiles of 32 x 33 bytes, 4 times as large: eleven of them are 46,464 bytes of the 49,152 that a block has, twelve are 50,688."""
    description = described("s8", (4098, 4096), (1, 0))
    assert [plain_tiles(description, count, H200).vector_size for count in (11, 12)] == [2, 1]
