"""Maps that depend only on shapes: linearize and delinearize, reshape, transpose, broadcast, bitcast, layouts.

    reshape f32[2,4,4] -> f32[4,8]:   (d0, d1) -> (d0 floordiv 2, (d0 mod 2) * 2 + d1 floordiv 4, d1 mod 4)

All maps of operations here map an index of the *output* to the index of the *input* element that it depends on: an
emitter produces one output element at a time. Shapes are tuples of sizes; a layout is `minor_to_major`, the dims from
the fastest varying to the slowest, so (1, 0) is row major for rank 2. A size of 0 makes a map known empty.
Source: docs/reference/1 3.2, 3.4, 3.5, 3.9; XLA hlo/analysis/indexing_analysis.cc, layout.h.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap

_ZERO = Expr.constant(0)


def dims_of(shape: Sequence[int]) -> tuple[Variable, ...]:
    """One unnamed variable per size, with the bounds [0, size - 1].

    >>> [str(dim.bounds) for dim in dims_of((2, 3))]
    ['[0, 1]', '[0, 2]']
    """
    return _dims_of(tuple(shape))


@lru_cache(4096)
def _dims_of(shape: tuple[int, ...]) -> tuple[Variable, ...]:
    return tuple([Variable(Interval(0, size - 1)) for size in shape])


def _indices(shape: Sequence[int]) -> tuple[Expr, ...]:
    return tuple(Expr.variable(number) for number in range(len(shape)))


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The distance in elements of neighbours along each dim, the last dim varying fastest.

    >>> row_major_strides((6, 512, 4096))
    (2097152, 4096, 1)
    """
    return tuple(math.prod(shape[number + 1 :]) for number in range(len(shape)))


def linearize(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """The row-major offset, in elements, of an index into `shape`; 0 for rank 0.

    raises   ValueError if there is not one index per dim

    >>> str(linearize([Expr.variable(0), Expr.variable(1)], (4, 8)))
    'v0 * 8 + v1'
    """
    if len(indices) != len(shape):
        raise ValueError(f"{len(indices)} indices into a shape of rank {len(shape)}")
    return _offset(indices, row_major_strides(shape))


def _offset(indices: Sequence[Expr], strides: Sequence[int]) -> Expr:
    offset = _ZERO
    for index, stride in zip(indices, strides, strict=True):
        offset = offset + index * stride
    return offset


def delinearize(offset: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    """The index into `shape` of a row-major offset; for an offset outside the shape only the first index is out of bounds.

    >>> [str(index) for index in delinearize(Expr.variable(0), (2, 4, 4))]
    ['v0 floordiv 16', '(v0 mod 16) floordiv 4', 'v0 mod 16 mod 4']

    Source: docs/reference/1 3.4 "Reshape decomposition".
    """
    if 0 in shape:
        return (_ZERO,) * len(shape)
    indices: list[Expr] = []
    rest = offset
    for stride in row_major_strides(shape):
        indices.append(rest // stride)
        rest = rest % stride
    return tuple(indices)


def delinearize_in_bounds(offset: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    """As `delinearize`, for an offset known to be inside the shape, in the form of the default loop indexing.

    >>> [str(index) for index in delinearize_in_bounds(Expr.variable(0), (1, 4, 8))]
    ['0', 'v0 floordiv 8', 'v0 mod 8']

    Source: docs/reference/1 3.9 "DelinearizeInBounds".
    """
    if 0 in shape:
        return (_ZERO,) * len(shape)
    indices: list[Expr] = []
    is_outermost = True
    for size, stride in zip(shape, row_major_strides(shape), strict=True):
        quotient = offset // stride
        indices.append(_ZERO if size == 1 else quotient if is_outermost else quotient % size)
        is_outermost = is_outermost and size == 1
    return tuple(indices)


def identity_map(shape: Sequence[int]) -> IndexingMap:
    """The map of every index to itself.

    >>> print(identity_map((2, 3)))
    (d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 2]
    """
    return IndexingMap(_indices(shape), dims_of(shape))


def transpose_map(output_shape: Sequence[int], permutation: Sequence[int]) -> IndexingMap:
    """The map of transpose(input, dimensions=permutation): output dim k is input dim permutation[k].

    >>> print(transpose_map((40, 20), (1, 0)))
    (d0, d1) -> (d1, d0), domain: d0 in [0, 39], d1 in [0, 19]

    Source: seed document, "Indexing transformations"; docs/reference/1 3.2.
    """
    results = [Expr.variable(permutation.index(number)) for number in range(len(output_shape))]
    return IndexingMap(tuple(results), dims_of(output_shape))


def broadcast_map(output_shape: Sequence[int], dimensions: Sequence[int]) -> IndexingMap:
    """The map of broadcast(input, dimensions=...): input dim k is output dim dimensions[k].

    >>> print(broadcast_map((64, 4096), (1,)))
    (d0, d1) -> (d1), domain: d0 in [0, 63], d1 in [0, 4095]
    """
    return IndexingMap(tuple(Expr.variable(number) for number in dimensions), dims_of(output_shape))


# ---- Reshape --------------------------------------------------------------------------------------------------------


def reshape_map(output_shape: Sequence[int], input_shape: Sequence[int]) -> IndexingMap:
    """The map from an index of the output to the index of the input at the same row-major offset.

    raises   ValueError if the element counts differ

    Each group of dims that the reshape combines is linearized and delinearized separately, so that dims which the reshape
    keeps are not divided; dims of size 1 keep their variables.

    >>> print(reshape_map((4, 8), (2, 4, 4)).to_text("upstream"))
    (d0, d1) -> (d0 / 2, (d0 mod 2) * 2 + d1 / 4, d1 mod 4), domain: d0 in [0, 3], d1 in [0, 7]

    Source: docs/reference/1 3.4 "Reshape decomposition".
    """
    _check_element_counts(output_shape, input_shape)
    if 0 in output_shape:
        return IndexingMap((_ZERO,) * len(input_shape), dims_of(output_shape))
    results: list[Expr] = []
    for inputs, outputs in _regrouped(input_shape, output_shape):
        indices = [Expr.variable(number) for number in outputs]
        sizes = [output_shape[number] for number in outputs]
        results += delinearize(linearize(indices, sizes), [input_shape[number] for number in inputs])
    return IndexingMap(tuple(results), dims_of(output_shape)).simplify(replace_points=False)


def _check_element_counts(output_shape: Sequence[int], input_shape: Sequence[int]) -> None:
    if math.prod(output_shape) != math.prod(input_shape):
        raise ValueError(f"shapes {list(input_shape)} and {list(output_shape)} have different numbers of elements")


def _regrouped(first: Sequence[int], second: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The shortest runs of dims of two shapes with equal products, from left to right."""
    ones: list[int] = []
    others: list[int] = []
    product_one = product_other = 1
    next_one, next_other = 0, 0
    while next_one < len(first) or next_other < len(second) or ones:
        if next_one < len(first) and (not ones or product_one < product_other):
            product_one *= first[next_one]
            ones.append(next_one)
            next_one += 1
        elif next_other < len(second) and (not others or product_other < product_one):
            product_other *= second[next_other]
            others.append(next_other)
            next_other += 1
        else:
            yield ones, others
            ones, others, product_one, product_other = [], [], 1, 1


# ---- Layouts --------------------------------------------------------------------------------------------------------


def physical_strides(shape: Sequence[int], minor_to_major: Sequence[int]) -> tuple[int, ...]:
    """The distance in memory, in elements, of neighbours along each logical dim.

    >>> physical_strides((4, 8), (0, 1))
    (1, 4)
    """
    strides = [0] * len(shape)
    stride = 1
    for dim in minor_to_major:
        strides[dim] = stride
        stride *= shape[dim]
    return tuple(strides)


def linearize_physical_map(shape: Sequence[int], minor_to_major: Sequence[int]) -> IndexingMap:
    """The map from a logical index to the element's offset in memory, in elements; one result, also for rank 0.

    >>> print(linearize_physical_map((4, 8), (0, 1)))
    (d0, d1) -> (d1 * 4 + d0), domain: d0 in [0, 3], d1 in [0, 7]

    Source: docs/reference/1 3.9 "Layout maps".
    """
    offset = _offset(_indices(shape), physical_strides(shape, minor_to_major))
    return IndexingMap((offset,), dims_of(shape)).simplify()


def bitcast_map(
    output_shape: Sequence[int],
    output_minor_to_major: Sequence[int],
    input_shape: Sequence[int],
    input_minor_to_major: Sequence[int],
) -> IndexingMap:
    """The map from an index of the output to the index of the input at the same place in memory.

    raises   ValueError if the element counts differ

    A bitcast that only permutes dims is a transpose, one that keeps the row-major order is a reshape; any other is a
    transpose from logical to physical order, a reshape, and a transpose back.

    >>> print(bitcast_map((8, 4), (1, 0), (4, 8), (0, 1)))
    (d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 3]

    Source: docs/reference/1 3.5 "Bitcast decomposition".
    """
    _check_element_counts(output_shape, input_shape)
    output, source = (output_shape, output_minor_to_major), (input_shape, input_minor_to_major)
    permutation = _as_transpose(output, source)
    if permutation is not None:
        return transpose_map(output_shape, permutation)
    if _is_reshape(output, source) and _is_reshape(source, output):
        return reshape_map(output_shape, input_shape)
    # Physical dim k of the input is its logical dim from_physical[k].
    from_physical = list(reversed(input_minor_to_major))
    to_physical = list(reversed(output_minor_to_major))
    physical_output = [output_shape[dim] for dim in to_physical]
    physical_input = [input_shape[dim] for dim in from_physical]
    reshaped = reshape_map(physical_output, physical_input)
    into = IndexingMap(tuple(Expr.variable(dim) for dim in to_physical), dims_of(output_shape))
    back = transpose_map(physical_input, from_physical)
    return into.compose(reshaped).compose(back).simplify(replace_points=False)


_Laid = tuple[Sequence[int], Sequence[int]]  # a shape and its minor_to_major


def _as_transpose(output: _Laid, source: _Laid) -> list[int] | None:
    """The permutation if the bitcast is a transpose (output dim k is input dim permutation[k]); None if it is not one."""
    (output_shape, output_order), (input_shape, input_order) = output, source
    if len(output_shape) != len(input_shape) or not output_shape:
        return None
    permutation = [0] * len(output_shape)
    for output_dim, input_dim in zip(output_order, input_order, strict=True):
        permutation[output_dim] = input_dim
    is_same = all(output_shape[k] == input_shape[dim] for k, dim in enumerate(permutation))
    return permutation if is_same else None


def _is_reshape(one: _Laid, other: _Laid) -> bool:
    """Whether an element one step along any dim of `one` is at the same place in memory after a reshape to `other`."""
    (shape, order), (other_shape, other_order) = one, other
    if 0 in shape:
        return True
    places, other_places = physical_strides(shape, order), physical_strides(other_shape, other_order)
    for size, offset, place in zip(shape, row_major_strides(shape), places, strict=True):
        if size == 1:
            continue
        landed = 0
        for stride, other_place in zip(row_major_strides(other_shape), other_places, strict=True):
            landed += offset // stride * other_place
            offset %= stride
        if landed != place:
            return False
    return True
