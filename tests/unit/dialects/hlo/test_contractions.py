"""dot, convolution: shapes that fit and shapes that do not, values and maps."""

import ml_dtypes
import numpy as np
import pytest
from unit.dialects.hlo.one_instruction import domain, run, shaped, verify

from xla_emitters.errors import Unsupported, VerifyError


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("f32[8,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "differ in a batch or contracting"),
        ("f32[8,3] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={1}", "not different dimensions of the"),
        ("f32[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={2}", "cannot have this result shape"),
        (
            "f32[1,8,8,7] convolution(im, ke), window={size=2x2}, dim_labels=b0f_01io->b01f",
            "do not name each dimension",
        ),
    ],
)
def test_what_does_not_fit(instruction: str, message: str):
    with pytest.raises(VerifyError) as error:
        verify(instruction)
    assert message in str(error.value)


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


@pytest.mark.parametrize(
    ("algorithm", "bits"),
    [
        *(("dot_bf16_bf16_f32", 8), ("dot_bf16_bf16_bf16", 8), ("dot_f16_f16_f16", 11), ("dot_f16_f16_f32", 11)),
        *(("dot_tf32_tf32_f32", 11), ("dot_bf16_bf16_f32_x3", 16), ("dot_bf16_bf16_f32_x6", 24)),
        *(("dot_bf16_bf16_f32_x9", 24), ("dot_tf32_tf32_f32_x3", 22), ("dot_f32_f32_f32", 24), ("unset", 24)),
        *(("dot_any_f8_any_f8_f32", 24), ("dot_any_f8_any_f8_any_fast_accum", 24)),
    ],
)
def test_a_dot_is_as_exact_as_its_algorithm(algorithm: str, bits: int) -> None:
    """bits: of a factor's significand, that the algorithm keeps."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 6, 6)).astype(np.float32)
    pairs = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    _, (got,) = run(f"f32[6,6] dot(p0, p1), {pairs}, algorithm={algorithm}", x, y)
    wide, size = x.astype(np.float64) @ y.astype(np.float64), np.abs(x) @ np.abs(y)
    assert np.all(np.abs(got - wide) <= size * (2 * 2.0**-bits + 6 * 2.0**-24))
    if algorithm.startswith(("dot_bf16_bf16_bf16", "dot_f16")) or algorithm == "dot_bf16_bf16_f32":
        narrow = np.float16 if "f16_f16" in algorithm and "bf16" not in algorithm else ml_dtypes.bfloat16
        rounded = x.astype(narrow).astype(np.float64) @ y.astype(narrow).astype(np.float64)
        assert np.all(np.abs(got - rounded) <= size * 6 * 2.0**-24)


def test_an_algorithm_that_hlo_lacks_is_refused_where_it_is_read() -> None:
    x = np.ones(1, np.float32)
    with pytest.raises(VerifyError, match="no algorithm 'dot_f32_f32_f64'"):
        run("f32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}, algorithm=dot_f32_f32_f64", x, x)
    with pytest.raises(Unsupported, match="no code for algorithm dot_f64_f64_f64 with a result of f32"):
        run("f32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}, algorithm=dot_f64_f64_f64", x, x)
