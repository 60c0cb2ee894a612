"""Maps of shapes against NumPy: the positions of elements are those of ravel, reshape, transpose and strides."""

import itertools
import math

import numpy as np
import pytest

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import (
    bitcast_map,
    broadcast_map,
    delinearize,
    delinearize_in_bounds,
    dims_of,
    identity_map,
    linearize,
    linearize_physical_map,
    physical_strides,
    reshape_map,
    row_major_strides,
    transpose_map,
)

SHAPES = [
    (),
    (1,),
    (24,),
    (1, 1),
    (4, 6),
    (1, 24),
    (24, 1),
    (2, 3, 4),
    (3, 1, 8),
    (1, 6, 4, 1),
    (2, 2, 2, 3),
    (2, 1, 1, 12),
]


def read_through(m, output_shape, source):
    """The output that reads source at the mapped index, element by element."""
    grid = np.indices(output_shape)
    indices = m.evaluate(list(grid))
    return np.broadcast_to(source[tuple(np.broadcast_to(index, output_shape) for index in indices)], output_shape)


def numbered(shape):
    return np.arange(math.prod(shape)).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_linearize_and_delinearize_are_inverse(shape):
    indices = [Expr.variable(number) for number in range(len(shape))]
    offset = linearize(indices, shape)
    grid = list(np.indices(shape))
    assert np.array_equal(np.broadcast_to(offset.evaluate(grid), shape), numbered(shape))
    for back in (delinearize, delinearize_in_bounds):
        m = IndexingMap(back(offset, shape), dims_of(shape)).simplify(replace_points=False)
        for index, wanted in zip(m.evaluate(grid), grid, strict=True):
            assert np.array_equal(np.broadcast_to(index, shape), wanted)
    round_trip = IndexingMap(delinearize(offset, shape), dims_of(shape)).simplify()
    assert round_trip == identity_map(shape).simplify()


def test_delinearize_keeps_what_overflows_in_the_first_index():
    first, second = delinearize(Expr.variable(0), (2, 8))
    assert (first.evaluate([100]), second.evaluate([100])) == (12, 4)
    assert [e.evaluate([100]) for e in delinearize_in_bounds(Expr.variable(0), (2, 8))] == [12, 4]


def test_linearize_wants_an_index_per_dim():
    with pytest.raises(ValueError, match="1 indices into a shape of rank 2"):
        linearize([Expr.variable(0)], (2, 3))


@pytest.mark.parametrize(
    "make_map", [identity_map, lambda shape: reshape_map(shape, (0, 7)), lambda shape: reshape_map(shape, (5, 0))]
)
def test_a_size_of_zero_is_a_known_empty_map(make_map):
    m = make_map((3, 0))
    assert m.is_known_empty
    assert (m.num_dims, m.num_results) == (2, 2)
    assert (
        delinearize(Expr.variable(0), (3, 0))
        == delinearize_in_bounds(Expr.variable(0), (3, 0))
        == (Expr.constant(0),) * 2
    )


@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))), ids=str)
def test_transpose(permutation):
    source = numbered((2, 3, 4))
    wanted = source.transpose(permutation)
    assert np.array_equal(read_through(transpose_map(wanted.shape, permutation), wanted.shape, source), wanted)


def test_broadcast():
    source = numbered((3, 4))
    wanted = np.broadcast_to(source[:, None, :, None], (3, 5, 4, 2))
    assert np.array_equal(read_through(broadcast_map((3, 5, 4, 2), (0, 2)), (3, 5, 4, 2), source), wanted)
    swapped = broadcast_map((4, 3), (1, 0))  # dimensions need not ascend
    assert np.array_equal(read_through(swapped, (4, 3), source), source.T)
    assert str(broadcast_map((2,), ())) == "(d0) -> (), domain: d0 in [0, 1]"


def same_size_pairs():
    for output, input in itertools.product(SHAPES, SHAPES):
        if math.prod(output) == math.prod(input):
            yield output, input


@pytest.mark.parametrize(("output", "input"), list(same_size_pairs()), ids=str)
def test_reshape(output, input):
    m = reshape_map(output, input)
    assert np.array_equal(read_through(m, output, numbered(input)), numbered(input).reshape(output))
    there_and_back = m.compose(reshape_map(input, output)).simplify()
    assert np.array_equal(read_through(there_and_back, output, numbered(output)), numbered(output))


@pytest.mark.parametrize(
    ("output", "input", "text"),
    [
        (
            (4, 8),
            (2, 4, 4),
            "(d0, d1) -> (d0 / 2, (d0 mod 2) * 2 + d1 / 4, d1 mod 4), domain: d0 in [0, 3], d1 in [0, 7]",
        ),
        ((32,), (4, 8), "(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]"),
        ((4, 8), (32,), "(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]"),
        # What the reshape does not regroup is not divided.
        ((8, 5, 6), (8, 30), "(d0, d1, d2) -> (d0, d1 * 6 + d2), domain: d0 in [0, 7], d1 in [0, 4], d2 in [0, 5]"),
        # Size 1: on the right it becomes constant 0, its own dims stay variables.
        ((4, 8), (4, 8, 1), "(d0, d1) -> (d0, d1, 0), domain: d0 in [0, 3], d1 in [0, 7]"),
        ((4, 8, 1), (4, 8), "(d0, d1, d2) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 7], d2 in [0, 0]"),
        ((1, 1), (1,), "(d0, d1) -> (d0), domain: d0 in [0, 0], d1 in [0, 0]"),
        ((), (1, 1), "() -> (0, 0)"),
    ],
    ids=str,
)
def test_reshape_is_decomposed(output, input, text):
    assert reshape_map(output, input).to_text("upstream") == text


def test_different_element_counts_are_refused():
    with pytest.raises(ValueError, match=r"shapes \[4, 8\] and \[5, 8\] have different numbers of elements"):
        reshape_map((5, 8), (4, 8))
    with pytest.raises(ValueError, match="different numbers of elements"):
        bitcast_map((5,), (0,), (4,), (0,))


def laid_out(memory, shape, minor_to_major):
    """The array of this logical shape and layout over a flat memory."""
    strides = [stride * memory.itemsize for stride in physical_strides(shape, minor_to_major)]
    return np.lib.stride_tricks.as_strided(memory, shape, strides)


@pytest.mark.parametrize("minor_to_major", list(itertools.permutations(range(3))), ids=str)
def test_linearized_layouts(minor_to_major):
    shape = (2, 3, 4)
    [offset] = linearize_physical_map(shape, minor_to_major).evaluate(list(np.indices(shape)))
    assert np.array_equal(offset, laid_out(np.arange(24), shape, minor_to_major))
    assert row_major_strides(shape) == physical_strides(shape, (2, 1, 0)) == (12, 4, 1)
    assert (row_major_strides((7,)), row_major_strides(())) == ((1,), ())


def test_linearized_layouts_of_small_ranks():
    assert str(linearize_physical_map((), ())) == "() -> (0)"
    assert str(linearize_physical_map((7,), (0,))) == "(d0) -> (d0), domain: d0 in [0, 6]"
    assert linearize_physical_map((3, 0), (1, 0)).is_known_empty


def bitcasts():
    shapes = [(24,), (4, 6), (2, 3, 4), (4, 1, 6)]
    laid = [(shape, order) for shape in shapes for order in itertools.permutations(range(len(shape)))]
    return [(*output, *input) for output, input in itertools.product(laid, laid)]


def test_bitcast_reads_the_same_place_in_memory():
    memory = np.arange(24)
    for output, output_order, input, input_order in bitcasts():
        m = bitcast_map(output, output_order, input, input_order)
        read = read_through(m, output, laid_out(memory, input, input_order))
        assert np.array_equal(read, laid_out(memory, output, output_order)), (output, output_order, input, input_order)


@pytest.mark.parametrize(
    ("output", "input", "text"),
    [
        (((8, 4), (1, 0)), ((4, 8), (0, 1)), "(d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 3]"),
        (((32,), (0,)), ((4, 8), (1, 0)), "(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]"),
        (((32,), (0,)), ((4, 8), (0, 1)), "(d0) -> (d0 mod 4, d0 / 4), domain: d0 in [0, 31]"),
        (((), ()), ((1,), (0,)), "() -> (0)"),
        (((1, 2), (0, 1)), ((2, 1), (1, 0)), "(d0, d1) -> (d1, d0), domain: d0 in [0, 0], d1 in [0, 1]"),
    ],
    ids=str,
)
def test_bitcast_is_decomposed(output, input, text):
    assert bitcast_map(*output, *input).to_text("upstream") == text


def test_a_bitcast_in_row_major_order_is_a_reshape():
    """Whatever place sizes of one have in the order: the map is that of the reshape, not only one of the same values."""
    memory = np.arange(24)
    reshapes = 0
    for output, output_order, input, input_order in bitcasts():
        source = laid_out(memory, input, input_order)
        if len(output) != len(input) and np.array_equal(laid_out(memory, output, output_order), source.reshape(output)):
            assert bitcast_map(output, output_order, input, input_order) == reshape_map(output, input)
            reshapes += 1
    assert reshapes > 10
