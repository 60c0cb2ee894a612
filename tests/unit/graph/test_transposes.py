"""Transposes, normalised and classified: expected values are computed by hand from the rules, or are XLA's for real fusions."""

import itertools
import math

import numpy as np
import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.transposes import (
    TransposeDescription,
    describe_transpose,
    input_dims,
    normalized,
    packed_transpose,
)
from xla_emitters.graph.view import view_of
from xla_emitters.text.hlo import parse_hlo


def described(operand: str, result: str, dimensions: str) -> TransposeDescription | str:
    text = f"ENTRY f {{\n p = {operand} parameter(0)\n ROOT t = {result} transpose(p), dimensions={{{dimensions}}}\n}}"
    view = view_of(entry_of(parse_hlo(text)))
    return describe_transpose(view.instructions[-1])


@pytest.mark.parametrize(
    ("dims", "permutation", "expected"),
    [
        ((170, 160, 20), (2, 1, 0), ((170, 160, 20), (2, 1, 0))),
        # Two dims that stay neighbours are one.
        ((8, 2, 3), (2, 0, 1), ((8, 6), (1, 0))),
        # Dims of size 1 go, and then others are neighbours.
        ((8, 1, 2, 1, 3), (4, 1, 0, 3, 2), ((8, 6), (1, 0))),
        ((2, 3), (0, 1), ((6,), (0,))),
        ((1, 5), (1, 0), ((5,), (0,))),
        ((2, 3, 4, 5), (1, 3, 0, 2), ((2, 3, 4, 5), (1, 3, 0, 2))),
        ((), (), ((), ())),
    ],
)
def test_normalized(dims: tuple[int, ...], permutation: tuple[int, ...], expected: object):
    assert normalized(dims, permutation) == expected


def test_a_normalised_transpose_moves_the_same_elements():
    """NumPy: all permutations of rank 4 over sizes 1 to 3."""
    for permutation in itertools.permutations(range(4)):
        for operand in itertools.product((1, 2, 3), repeat=4):
            array = np.arange(math.prod(operand)).reshape(operand)
            moved = array.transpose(permutation)
            dims, order = normalized(moved.shape, permutation)
            again = array.reshape(input_dims(dims, order)).transpose(order)
            assert again.shape == dims
            assert (again.reshape(-1) == moved.reshape(-1)).all()
            assert all(first + 1 != second for first, second in itertools.pairwise(order))


def test_packed_by_hand():
    """The spec's two examples: two 16-bit elements, or four 8-bit ones, are a word."""
    bf16 = packed_transpose((30, 16, 30), (2, 1, 0), 16)
    assert (bf16.tile_t1, bf16.tile_a, bf16.tile_t2, bf16.vector_size) == (30, 2, 30, 2)
    assert bf16.output_tile == (30, 2, 30, 1)
    s8 = packed_transpose((8, 68, 64), (0, 2, 1), 8)
    assert (s8.tile_t1, s8.tile_a, s8.tile_t2, s8.vector_size) == (68, 1, 64, 4)
    assert s8.input_dims == (8, 64, 1, 68, 1)


@pytest.mark.parametrize(
    ("dims", "permutation", "bits"),
    [
        ((64, 64), (1, 0), 32),  # a word each
        ((64, 64), (1, 0), 2),  # 512 x 512 elements of 2 bits do not fit into a block's shared memory
        ((64, 32, 4), (1, 0, 2), 8),  # the fastest dim stays
        ((18, 64), (1, 0), 16),  # fewer than 20 columns
        ((64, 18), (1, 0), 16),  # fewer than 20 rows
        ((33, 64), (1, 0), 16),  # 33 columns are not whole words
        ((64, 33), (1, 0), 16),  # nor are 33 rows
        ((64, 67), (1, 0), 16),  # nor is what is left of 67 rows after a tile of 64
    ],
)
def test_not_packed(dims: tuple[int, ...], permutation: tuple[int, ...], bits: int):
    assert packed_transpose(dims, permutation, bits) is None


@pytest.mark.parametrize(
    ("operand", "result", "dimensions"),
    [
        ("f32[20,160,170]", "f32[170,160,20]", "2,1,0"),
        ("f32[16,16]", "f32[16,16]", "1,0"),
        # 8 elements on one side are enough if the other has 1024.
        ("f32[8,1024]", "f32[1024,8]", "1,0"),
        # The fastest dim stays: two f32 move as one.
        ("f32[8,4,2]", "f32[4,8,2]", "1,0,2"),
        ("s8[64,33]", "s8[33,64]", "1,0"),
        ("s4[256,256]", "s4[256,256]", "1,0"),
        ("s4[8,64,4]", "s4[64,8,4]", "1,0,2"),
    ],
)
def test_goes_through_shared_memory(operand: str, result: str, dimensions: str):
    assert isinstance(described(operand, result, dimensions), TransposeDescription)


@pytest.mark.parametrize(
    ("operand", "result", "dimensions", "reason"),
    [
        ("f32[20,160]", "f32[20,160]", "0,1", "its elements stay in their order"),
        ("f32[1,160]", "f32[160,1]", "1,0", "its elements stay in their order"),
        ("f32[0,160]", "f32[160,0]", "1,0", "its elements stay in their order"),
        ("f32[15,160]", "f32[160,15]", "1,0", "tiles of 160 by 15 elements are too small"),
        ("f32[8,1023]", "f32[1023,8]", "1,0", "tiles of 1023 by 8 elements are too small"),
        ("f32[8,4,3]", "f32[4,8,3]", "1,0,2", "its fastest dim is kept, and its 96 bits are read at once anyway"),
        ("s8[8,7,2]", "s8[7,8,2]", "1,0,2", "rows of 7 times 16 bits are too short"),
        ("s4[255,256]", "s4[256,255]", "1,0", "elements of 4 bits share bytes"),
        ("s4[64,64,3]", "s4[64,64,3]", "1,0,2", "3 elements of 4 bits are not whole bytes"),
        ("f32[64,64]{0,1}", "f32[64,64]", "1,0", "f32[64,64]{0,1} is not row major"),
    ],
)
def test_does_not(operand: str, result: str, dimensions: str, reason: str):
    assert described(operand, result, dimensions) == reason
