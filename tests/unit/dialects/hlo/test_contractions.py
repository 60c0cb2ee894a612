"""reduce, reduce-window, dot, convolution, gather, scatter: shapes that fit and shapes that do not."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.errors import Unsupported, VerifyError
from xla_emitters.hlo_text import parse_hlo
from xla_emitters.indexing import IndexingMap
from xla_emitters.runtime.reference import evaluate

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
TWO = (
    "two { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)"
    " ROOT t = (f32[], s32[]) tuple(b, j) }\n"
)
INPUTS = (
    "x = f32[8,64] parameter(0) z = f32[] parameter(1) i = s32[8,64] parameter(2) k = s32[] parameter(3)"
    " y = f32[8,3,64] parameter(4) n = s32[5,1] parameter(5) u = f32[5,1,64] parameter(6) w = f32[5] parameter(7)"
    " im = f32[1,9,9,3] parameter(8) ke = f32[2,2,3,7] parameter(9)"
)


def check(instruction: str) -> None:
    parse_hlo(f"{ADD}{TWO}e {{ {INPUTS} ROOT r = {instruction} }}").verify()


@pytest.mark.parametrize(
    "instruction",
    [
        "f32[8] reduce(x, z), dimensions={1}, to_apply=add",
        "f32[] reduce(x, z), dimensions={1,0}, to_apply=add",
        "(f32[64], s32[64]) reduce(x, i, z, k), dimensions={0}, to_apply=two",
        "f32[4,64] reduce-window(x, z), window={size=2x1 stride=2x1}, to_apply=add",
        "f32[8,64] reduce-window(x, z), window={size=1x64 pad=0_0x63_0}, to_apply=add",
        "f32[8,64,3,64] dot(x, y), lhs_contracting_dims={}, rhs_contracting_dims={}, lhs_batch_dims={0}, rhs_batch_dims={0}",
        "f32[8,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={2}, lhs_batch_dims={0}, rhs_batch_dims={0}",
        "f32[64,3,64] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "f32[1,8,8,7] convolution(im, ke), window={size=2x2}, dim_labels=b01f_01io->b01f",
        "f32[5,1,64] gather(x, n), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1,"
        " slice_sizes={1,64}",
        "f32[5,64] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
        " slice_sizes={1,64}",
        "f32[8,64] scatter(x, n, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0},"
        " index_vector_dim=1, to_apply=add",
    ],
)
def test_what_fits(instruction: str):
    check(instruction)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("f32[8] reduce(x, z), dimensions={2}, to_apply=add", "not different dimensions of its operand"),
        ("f32[64] reduce(x, z), dimensions={1}, to_apply=add", "'reduce' cannot have this result shape"),
        ("f32[8] reduce(x, x), dimensions={1}, to_apply=add", "an initial value is a scalar"),
        ("f32[8] reduce(x, z, z), dimensions={1}, to_apply=add", "as many initial values as arrays"),
        ("f32[8] reduce(x, z), dimensions={1}, to_apply=two", "computation 'two' does not fit 'reduce'"),
        ("s32[8] reduce(i, k), dimensions={1}, to_apply=add", "parameter 0 of computation 'add' does not fit 'reduce'"),
        ("(f32[8], f32[8]) reduce(x, y, z, z), dimensions={1}, to_apply=two", "the arrays of 'reduce' differ in shape"),
        ("f32[8,64] reduce-window(x, z), window={size=2}, to_apply=add", "a window of 1 dimensions over f32[8,64]"),
        ("f32[8,64] reduce-window(x, z), window={size=2x1}, to_apply=add", "cannot have this result shape"),
        ("f32[8,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "differ in a batch or contracting"),
        ("f32[8,3] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={1}", "not different dimensions of the"),
        ("f32[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={2}", "cannot have this result shape"),
        (
            "f32[1,8,8,7] convolution(im, ke), window={size=2x2}, dim_labels=b0f_01io->b01f",
            "do not name each dimension",
        ),
        (
            "f32[5,65] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
            " slice_sizes={1,65}",
            "no slice of sizes {1,65} lies inside",
        ),
        (
            "f32[5,64] gather(x, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
            " slice_sizes={1,64}",
            "do not name the 1 dimensions of a slice",
        ),
        (
            "f32[8,64] scatter(x, n, y), update_window_dims={1,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
            " to_apply=add",
            "the updates do not fit the indices",
        ),
        (
            "f32[8,64] scatter(x, n, u, u), update_window_dims={1,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
            " to_apply=add",
            "takes n arrays, the indices and n updates",
        ),
    ],
)
def test_what_does_not_fit(instruction: str, message: str):
    with pytest.raises(VerifyError) as error:
        check(instruction)
    assert message in str(error.value)


# ------------------------------------------------------------------------------------------- values and maps

BODIES = """
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
mix { a = s32[] parameter(0) b = s32[] parameter(1) t = s32[] constant(3) m = s32[] multiply(a, t) ROOT c = s32[] subtract(m, b) }
first { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] reshape(a) }
seven { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] constant(7) }
larger { a = s32[] parameter(0) i = s32[] parameter(1) b = s32[] parameter(2) j = s32[] parameter(3)
  ge = pred[] compare(a, b), direction=GE v = s32[] select(ge, a, b) k = s32[] select(ge, i, j)
  ROOT t = (s32[], s32[]) tuple(v, k) }
"""


def shaped(*dims: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + int(np.prod(dims)), dtype=np.int32).reshape(dims)


def run(instruction: str, *arrays: Any, computations: str = "") -> tuple[HloOp, list[np.ndarray]]:
    """The instruction over parameters p0, p1 ..., and its value. `computations` are what it may call besides BODIES."""
    given = [np.asarray(array) for array in arrays]
    names = {
        "int8": "s8",
        "uint8": "u8",
        "int32": "s32",
        "int64": "s64",
        "uint64": "u64",
        "float32": "f32",
        "float16": "f16",
        "bool": "pred",
    }
    lines = [
        f"p{i} = {names[array.dtype.name]}[{','.join(map(str, array.shape))}] parameter({i})"
        for i, array in enumerate(given)
    ]
    module = parse_hlo("\n".join([BODIES, computations, "ENTRY e {", *lines, f"ROOT r = {instruction}", "}"]))
    module.verify()
    entry = next(op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)
    root = entry.root.owner
    assert isinstance(root, HloOp)
    return root, evaluate(entry, given)


def domain(map: IndexingMap, index: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The values of the range variables for which `index` is in the domain, in the order in which loops visit them."""
    if not all(dim.bounds.contains(at) for dim, at in zip(map.dims, index, strict=True)):
        return []
    found = product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in map.range_vars))
    return [symbols for symbols in found if map.constraints_satisfied(index, symbols)]


@pytest.mark.parametrize("dims", ["", "0", "1", "2", "0,2", "2,0", "0,1,2"])
def test_a_reduce_is_numpys_sum_and_its_map_visits_each_element_once(dims: str):
    x, axes = shaped(3, 4, 5), tuple(int(dim) for dim in dims.split(",") if dim)
    want = x.sum(axes) + 10
    shape = ",".join(map(str, want.shape))
    op, (got,) = run(f"s32[{shape}] reduce(p0, p1), dimensions={{{dims}}}, to_apply=add", x, np.int32(10))
    assert got.dtype == np.int32
    assert got.tolist() == want.tolist()
    map_, init = op.output_to_input()
    assert init.num_results == 0
    visited = [map_.evaluate(index, symbols) for index in np.ndindex(*want.shape) for symbols in domain(map_, index)]
    assert sorted(visited) == sorted(np.ndindex(*x.shape))
    for index in np.ndindex(*want.shape):
        inside = [x[map_.evaluate(index, symbols)] for symbols in domain(map_, index)]
        assert inside == sorted(inside), "elements are visited in row-major order"
        assert sum(inside) + 10 == want[index]


def test_a_reduce_goes_one_by_one_from_the_initial_value():
    """3 * (3 * (3 * 1 - 5) - 6) - 7 = -79: neither commutative nor associative."""
    _, (got,) = run(
        "s32[2] reduce(p0, p1), dimensions={1}, to_apply=mix", np.array([[5, 6, 7], [0, 0, 0]], np.int32), np.int32(1)
    )
    assert got.tolist() == [3 * (3 * (3 * 1 - 5) - 6) - 7, 27]


@pytest.mark.parametrize(("body", "want"), [("first", [9, 9]), ("seven", [7, 7])])
def test_a_body_may_be_anything(body: str, want: list[int]):
    _, (got,) = run(f"s32[2] reduce(p0, p1), dimensions={{1}}, to_apply={body}", shaped(2, 3), np.int32(9))
    assert got.tolist() == want


def test_a_variadic_reduce_gives_an_array_each():
    x, columns = (
        np.array([[3, 8, 8], [-1, -5, -1]], np.int32),
        np.broadcast_to(np.arange(3, dtype=np.int32), (2, 3)).copy(),
    )
    code = "(s32[2], s32[2]) reduce(p0, p1, p2, p3), dimensions={1}, to_apply=larger"
    _, (value, number) = run(code, x, columns, np.int32(-(2**31)), np.int32(0))
    assert value.tolist() == x.max(1).tolist()
    assert number.tolist() == x.argmax(1).tolist()


def test_nothing_reduced_is_the_initial_value():
    _, (got,) = run("s32[2] reduce(p0, p1), dimensions={1}, to_apply=add", np.zeros((2, 0), np.int32), np.int32(4))
    assert got.tolist() == [4, 4]


def windowed(x: np.ndarray, init: int, dims: list[tuple[int, int, int, int, int, int]]) -> np.ndarray:
    """By definition: holes and padding put in, then every place of the window summed. dims: size, stride, low, high, base, dilation."""
    there = np.ones_like(x)
    for axis, (_, _, low, high, base, _) in enumerate(dims):
        n = x.shape[axis]
        spread = 0 if n == 0 else (n - 1) * base + 1
        at = np.arange(n) * base + low
        size = spread + low + high
        keep = (at >= 0) & (at < size)
        wide = [np.zeros((*x.shape[:axis], max(size, 0), *x.shape[axis + 1 :]), np.int32) for _ in range(2)]
        for target, source in zip(wide, (x, there), strict=True):
            target[(slice(None),) * axis + (at[keep],)] = source[(slice(None),) * axis + (np.arange(n)[keep],)]
        x, there = wide
    out = [
        (n - (size - 1) * dilation - 1) // stride + 1 if n >= (size - 1) * dilation + 1 else 0
        for n, (size, stride, _, _, _, dilation) in zip(x.shape, dims, strict=True)
    ]
    result = np.full(out, init, np.int32)
    for index in np.ndindex(*out):
        for offset in np.ndindex(*(dim[0] for dim in dims)):
            at = tuple(i * dim[1] + o * dim[5] for i, o, dim in zip(index, offset, dims, strict=True))
            result[index] += x[at] if there[at] else 0
    return result


def test_reduce_window_on_random_windows():
    rng = np.random.default_rng(3)
    for _ in range(60):
        x = shaped(*map(int, rng.integers(1, 7, 2)), start=1)
        dims = [
            (int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(-1, 3)), int(rng.integers(-1, 3)),
             int(rng.integers(1, 4)), int(rng.integers(1, 3)))
            for _ in range(2)
        ]  # fmt: skip
        want = windowed(x, 100, dims)
        if 0 in want.shape:
            continue
        sizes, strides, lows, highs, bases, dilations = zip(*dims, strict=True)
        pads = "x".join(f"{low}_{high}" for low, high in zip(lows, highs, strict=True))
        rest = {"size": sizes, "stride": strides, "lhs_dilate": bases, "rhs_dilate": dilations}
        text = " ".join([f"pad={pads}", *(f"{name}={numbers[0]}x{numbers[1]}" for name, numbers in rest.items())])
        shape = ",".join(map(str, want.shape))
        op, (got,) = run(f"s32[{shape}] reduce-window(p0, p1), window={{{text}}}, to_apply=add", x, np.int32(100))
        assert got.tolist() == want.tolist(), text
        map_, _ = op.output_to_input()
        for index in np.ndindex(*want.shape):
            assert want[index] == 100 + sum(x[map_.evaluate(index, symbols)] for symbols in domain(map_, index))


def test_the_loop_over_a_dilated_window_skips_the_holes():
    """Holes of two between elements, the window going on by three: only every third place of the window has an element."""
    window = "window={size=9 stride=3 lhs_dilate=3 pad=4_4}"
    op, _ = run(f"s32[3] reduce-window(p0, p1), {window}, to_apply=add", shaped(3), np.int32(0))
    (loop,) = op.output_to_input()[0].range_vars
    assert loop.bounds.trip_count == 3


DOTS = [
    ("lhs_contracting_dims={1}, rhs_contracting_dims={0}", (3, 5), (5, 4), "ik,kj->ij"),
    ("lhs_contracting_dims={}, rhs_contracting_dims={}", (3,), (4,), "i,j->ij"),
    ("lhs_contracting_dims={0}, rhs_contracting_dims={0}", (4,), (4,), "i,i->"),
    ("lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={3,1}, rhs_contracting_dims={0,3}",
     (3, 5, 2, 6), (6, 4, 3, 5), "bkil,ljbk->bij"),
    ("lhs_batch_dims={1,0}, rhs_batch_dims={0,1}", (2, 3, 4), (3, 2, 5), "baj,abk->abjk"),
    ("lhs_contracting_dims={1}, rhs_contracting_dims={0}", (3, 0), (0, 4), "ik,kj->ij"),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "lhs", "rhs", "einsum"), DOTS)
def test_a_dot_is_numpys_einsum(attributes: str, lhs: tuple[int, ...], rhs: tuple[int, ...], einsum: str):
    x, y = shaped(*lhs, start=-7), shaped(*rhs, start=2)
    want = np.einsum(einsum, x, y)
    op, (got,) = run(f"s32[{','.join(map(str, want.shape))}] dot(p0, p1), {attributes}", x, y)
    assert got.tolist() == want.tolist()
    maps = op.output_to_input()
    for index in np.ndindex(*want.shape):
        pairs = [tuple(map_.evaluate(index, symbols) for map_ in maps) for symbols in domain(maps[0], index)]
        assert want[index] == sum(x[a] * y[b] for a, b in pairs)


def convolved(
    x: np.ndarray,
    kernel: np.ndarray,
    dims: list[tuple[int, int, int, int, int, int, bool]],
    features: int,
    batches: int,
) -> np.ndarray:
    """By definition, for x[b, f, spatial...], kernel[o, i, spatial...] -> [b, f, spatial...].

    dims  a dimension's size, stride, low, high, base dilation, window dilation, and whether the kernel lies the other way round
    """
    outputs = kernel.shape[0]
    rank = len(dims)
    there = [(n - 1) * dim[4] + 1 + dim[2] + dim[3] for n, dim in zip(x.shape[2:], dims, strict=True)]
    out = [
        max(0, (n - (dim[0] - 1) * dim[5] - 1) // dim[1] + 1) if n >= (dim[0] - 1) * dim[5] + 1 else 0
        for n, dim in zip(there, dims, strict=True)
    ]
    batch = x.shape[0] // batches
    result = np.zeros((batch, outputs, *out), np.int32)
    for b, o, *place in np.ndindex(*result.shape):
        group, batch_group = o // (outputs // features), o // (outputs // batches)
        for i, *at in np.ndindex(*kernel.shape[1:]):
            positions = [place[d] * dims[d][1] + at[d] * dims[d][5] - dims[d][2] for d in range(rank)]
            spread = [position % dims[d][4] for d, position in enumerate(positions)]
            inner = [position // dims[d][4] for d, position in enumerate(positions)]
            if any(spread) or any(not 0 <= k < n for k, n in zip(inner, x.shape[2:], strict=True)):
                continue
            mirrored = [dims[d][0] - 1 - at[d] if dims[d][6] else at[d] for d in range(rank)]
            pixel = x[(batch_group * batch + b, group * kernel.shape[1] + i, *inner)]
            result[(b, o, *place)] += pixel * kernel[(o, i, *mirrored)]
    return result


def test_convolution_on_random_windows_and_groups():
    rng = np.random.default_rng(5)
    checked = 0
    while checked < 40:
        features, batches = [(1, 1), (2, 1), (3, 1), (1, 2)][int(rng.integers(4))]
        dims = [
            (int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(-1, 3)), int(rng.integers(-1, 3)),
             int(rng.integers(1, 3)), int(rng.integers(1, 3)), bool(rng.integers(2)))
            for _ in range(2)
        ]  # fmt: skip
        x = shaped(2 * batches, 2 * features, *map(int, rng.integers(1, 6, 2)), start=-20)
        kernel = shaped(2 * features * batches, 2, *(dim[0] for dim in dims), start=-9)
        want = convolved(x, kernel, dims, features, batches)
        if 0 in want.shape:
            continue
        checked += 1
        # The labels in another order, so that no dimension stands where it must.
        sizes, strides, lows, highs, bases, dilations, turns = zip(*dims, strict=True)
        pads = "x".join(f"{low}_{high}" for low, high in zip(lows, highs, strict=True))
        rest = {"size": sizes, "stride": strides, "lhs_dilate": bases, "rhs_dilate": dilations, "rhs_reversal": turns}
        text = " ".join([f"pad={pads}", *(f"{name}={int(n[0])}x{int(n[1])}" for name, n in rest.items())])
        result = want.transpose(2, 0, 3, 1)
        code = (
            f"s32[{','.join(map(str, result.shape))}] convolution(p0, p1), window={{{text}}}, dim_labels=0b1f_i1o0->0b1f,"
            f" feature_group_count={features}, batch_group_count={batches}"
        )
        op, (got,) = run(code, x.transpose(2, 0, 3, 1).copy(), kernel.transpose(1, 3, 0, 2).copy())
        assert got.tolist() == result.tolist(), code
        image, filter = op.output_to_input()
        inputs = x.transpose(2, 0, 3, 1), kernel.transpose(1, 3, 0, 2)
        for index in np.ndindex(*result.shape):
            total = sum(
                int(inputs[0][image.evaluate(index, symbols)]) * int(inputs[1][filter.evaluate(index, symbols)])
                for symbols in domain(image, index)
            )
            assert total == result[index]


def test_narrow_floats_are_summed_in_f32_and_rounded_once():
    """In f16, 2048 + 1 is 2048: a sum held there would never grow."""
    x, y = np.array([2048.0, 1, 1, 1, 1], np.float16), np.ones(5, np.float16)
    _, (got,) = run("f16[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", x, y)
    assert got.tolist() == 2052


def test_a_dot_wraps_and_widens_integers():
    x, y = np.full(3, 127, np.int8), np.full(3, -128, np.int8)
    _, (wide,) = run("s32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", x, y)
    _, (narrow,) = run("s8[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", x, y)
    assert (wide.tolist(), narrow.tolist()) == (3 * 127 * -128, -128)  # -48768 is -128 modulo 256


def test_a_dot_with_an_algorithm_rounds_as_it_says_or_is_refused():
    x, y = np.array([1 + 2.0**-10], np.float32), np.array([1.0], np.float32)
    pairs = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    _, (rounded,) = run(f"f32[] dot(p0, p1), {pairs}, algorithm=dot_bf16_bf16_f32", x, y)
    _, (exact,) = run(f"f32[] dot(p0, p1), {pairs}, algorithm=dot_f32_f32_f32", x, y)
    assert (rounded.tolist(), exact.tolist()) == (1.0, 1 + 2.0**-10)
    with pytest.raises(Unsupported, match="no code for algorithm dot_tf32_tf32_f32"):
        run(f"f32[] dot(p0, p1), {pairs}, algorithm=dot_tf32_tf32_f32", x, y)


def taken(x: np.ndarray, starts: np.ndarray, mapped: list[int], sizes: list[int]) -> list[np.ndarray]:
    """The window of each row of starts, clamped; rows along the last dimension."""
    windows = list[np.ndarray]()
    for row in starts.reshape(-1, len(mapped)):
        at = [0] * x.ndim
        for dim, start in zip(mapped, row, strict=True):
            at[dim] = min(max(int(start), 0), x.shape[dim] - sizes[dim])
        windows.append(x[tuple(slice(a, a + n) for a, n in zip(at, sizes, strict=True))])
    return windows


def test_gather_takes_windows():
    x = shaped(6, 8)
    rows = np.array([[0, 0], [3, 2], [-4, 100], [5, 7], [100, -1]], np.int64)
    code = "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={2,3}"
    op, (got,) = run(f"s32[5,2,3] gather(p0, p1), {code}", x, rows)
    assert got.tolist() == np.stack(taken(x, rows, [1, 0], [2, 3])).tolist()
    of_element, of_start = op.output_to_input()
    for index in np.ndindex(5, 2, 3):
        # Starts stand by the operand's dimensions, the row by start_index_map.
        row = [int(rows[of_start.evaluate(index, (number,))]) for number in range(2)]
        assert row == rows[index[0]].tolist()
        starts = (min(max(row[1], 0), 4), min(max(row[0], 0), 5))
        assert x[of_element.evaluate(index, starts)] == got[index]


def test_a_gather_drops_dimensions_and_puts_batches_anywhere():
    x, rows = shaped(6, 8), np.array([5, -1, 9], np.int64)
    code = "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={6,1}"
    _, (got,) = run(f"s32[6,3] gather(p0, p1), {code}", x, rows)
    assert got.tolist() == x[:, [5, 0, 7]].tolist()


def test_a_gather_with_batching_dimensions():
    x, rows = shaped(2, 6, 4), np.array([[1, 5], [0, 2], [9, -9]], np.int64)
    code = (
        "offset_dims={2}, collapsed_slice_dims={1}, operand_batching_dims={0}, start_indices_batching_dims={1},"
        " start_index_map={1}, index_vector_dim=2, slice_sizes={1,1,4}"
    )
    _, (got,) = run(f"s32[3,2,4] gather(p0, p1), {code}", x, rows)
    want = [[x[batch, min(max(int(rows[row, batch]), 0), 5)].tolist() for batch in range(2)] for row in range(3)]
    assert got.tolist() == want


def test_starts_beyond_every_index_are_clamped_and_not_wrapped():
    x, rows = shaped(4), np.array([[2**64 - 1], [2**63], [2]], np.uint64)
    code = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
    op, (got,) = run(f"s32[3] gather(p0, p1), {code}", x, rows)
    assert got.tolist() == [3, 3, 2]
    assert dims_of(op.result) == (3,)


def scattered(x: np.ndarray, rows: np.ndarray, updates: np.ndarray, mapped: list[int]) -> np.ndarray:
    """`x` with each update added at its row of indices, if it lies inside; rows along the last dimension, windows of full rank."""
    result = x.copy()
    for row, window in zip(rows.reshape(-1, len(mapped)), updates.reshape(-1, *updates.shape[-x.ndim :]), strict=True):
        at = [0] * x.ndim
        for dim, start in zip(mapped, row, strict=True):
            at[dim] = int(start)
        if all(0 <= a <= size - n for a, n, size in zip(at, window.shape, x.shape, strict=True)):
            result[tuple(slice(a, a + n) for a, n in zip(at, window.shape, strict=True))] += window
    return result


PLUS = "plus { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT sum = s32[] add(a, b) }\n"


def test_scatter_adds_windows_and_skips_those_that_do_not_lie_inside():
    x, updates = shaped(6, 8), shaped(5, 2, 3)
    rows = np.array(
        [[0, 0], [3, 2], [-1, 0], [5, 4], [6, 0]], np.int64
    )  # of dimensions 1 and 0; [-1, 0] and [6, 0] lie outside
    code = "update_window_dims={1,2}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=plus"
    _, (got,) = run(f"s32[6,8] scatter(p0, p1, p2), {code}", x, rows, updates, computations=PLUS)
    assert got.tolist() == scattered(x, rows, updates, [1, 0]).tolist()
    assert got.tolist() != x.tolist()


def test_scatter_into_equal_places_goes_in_order_of_the_indices():
    """(x * 2 + u) of one element after the other; the window dimension comes first."""
    code = "update_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=twice"
    body = (
        "twice { a = s32[] parameter(0)\n b = s32[] parameter(1)\n two = s32[] constant(2)\n"
        " m = s32[] multiply(a, two)\n ROOT sum = s32[] add(m, b) }\n"
    )
    updates = np.array([[1, 2, 3], [10, 20, 30]], np.int32)
    rows = np.array([[1], [0], [1]], np.uint8)
    _, (got,) = run(f"s32[4] scatter(p0, p1, p2), {code}", np.zeros(4, np.int32), rows, updates, computations=body)
    # row 0: [., 1, 10, .]; row 1: [2, 2 * 1 + 20, 10, .]; row 2: [2, 2 * 22 + 3, 2 * 10 + 30, .]
    assert got.tolist() == [2, 47, 50, 0]


def test_scatter_drops_dimensions_and_keeps_batches():
    x, rows = shaped(2, 6, 4), np.array([[1, 5], [0, 2], [9, -9]], np.int64)
    updates = shaped(3, 2, 4) * 100
    code = (
        "update_window_dims={2}, inserted_window_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1},"
        " scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=plus"
    )
    _, (got,) = run(f"s32[2,6,4] scatter(p0, p1, p2), {code}", x, rows, updates, computations=PLUS)
    want = x.copy()
    for row, batch in np.ndindex(2, 2):
        want[batch, rows[row, batch]] += updates[row, batch]
    assert got.tolist() == want.tolist()


def test_a_scatter_of_several_arrays():
    """Each takes the other's update: what is combined sees all old values and all updates."""
    body = (
        "swap { a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n"
        " e = s32[] add(a, d)\n f = s32[] subtract(b, c)\n ROOT both = (s32[], s32[]) tuple(e, f) }\n"
    )
    code = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=swap"
    one, two = np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)
    rows, u, v = np.array([[2], [0]], np.int32), np.array([10, 20], np.int32), np.array([30, 40], np.int32)
    _, (first, second) = run(
        f"(s32[3], s32[3]) scatter(p0, p1, p2, p3, p4), {code}", one, two, rows, u, v, computations=body
    )
    assert (first.tolist(), second.tolist()) == ([41, 2, 33], [-16, 5, -4])


def test_a_window_over_a_whole_dimension_needs_no_index():
    code = "update_window_dims={0,1}, scatter_dims_to_operand_dims={1}, index_vector_dim=0, to_apply=plus"
    x, update = shaped(2, 5), np.ones((2, 2), np.int32)
    _, (got,) = run(f"s32[2,5] scatter(p0, p1, p2), {code}", x, np.array([3], np.int32), update, computations=PLUS)
    want = x.copy()
    want[:, 3:] += 1
    assert got.tolist() == want.tolist()
