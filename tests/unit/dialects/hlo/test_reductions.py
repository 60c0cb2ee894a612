"""reduce, reduce-window: shapes that fit and shapes that do not, values and maps."""

import numpy as np
import pytest
from unit.dialects.hlo.one_instruction import domain, run, shaped, verify

from xla_emitters.errors import VerifyError


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("f32[8] reduce(x, z), dimensions={2}, to_apply=add", "not different dimensions of an array of rank 2"),
        ("f32[64] reduce(x, z), dimensions={1}, to_apply=add", "'reduce' cannot have this result shape"),
        ("f32[8] reduce(x, x), dimensions={1}, to_apply=add", "an initial value is a scalar"),
        ("f32[8] reduce(x, z, z), dimensions={1}, to_apply=add", "as many initial values as arrays"),
        ("f32[8] reduce(x, z), dimensions={1}, to_apply=two", "computation 'two' does not fit 'reduce'"),
        ("s32[8] reduce(i, k), dimensions={1}, to_apply=add", "parameter 0 of computation 'add' does not fit 'reduce'"),
        ("(f32[8], f32[8]) reduce(x, y, z, z), dimensions={1}, to_apply=two", "the arrays of 'reduce' differ in shape"),
        ("f32[8,64] reduce-window(x, z), window={size=2}, to_apply=add", "a window of 1 dimensions over f32[8,64]"),
        ("f32[8,64] reduce-window(x, z), window={size=2x1}, to_apply=add", "cannot have this result shape"),
    ],
)
def test_what_does_not_fit(instruction: str, message: str):
    with pytest.raises(VerifyError) as error:
        verify(instruction)
    assert message in str(error.value)


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


@pytest.mark.parametrize("columns", [5, 64, 201, 1000])
def test_a_variadic_reduce_gives_an_array_each(columns: int):
    """Long rows are chosen from in pairs. Of equal elements, of which there are many, the first one counts."""
    x = np.random.default_rng(columns).integers(-1, 2, (2, columns)).astype(np.int32)
    places = np.broadcast_to(np.arange(columns, dtype=np.int32), x.shape).copy()
    code = "(s32[2], s32[2]) reduce(p0, p1, p2, p3), dimensions={1}, to_apply=larger"
    _, (value, number) = run(code, x, places, np.int32(-(2**31)), np.int32(0))
    assert value.tolist() == x.max(1).tolist()
    assert number.tolist() == x.argmax(1).tolist()
    _, (first,) = run("s32[2] reduce(p0, p1), dimensions={1}, to_apply=first", x, np.int32(9))
    assert first.tolist() == [9, 9]


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
