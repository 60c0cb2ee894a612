"""What an ATen op is in JAX, beside PyTorch's own answer: where torchax's row rounds, overflows, or has some of the cases only."""

from collections.abc import Callable
from typing import Any

import pytest

from xla_emitters.errors import Unsupported
from xla_emitters.explore.from_torch.torch_program import from_torch


@pytest.fixture(scope="module")
def torch() -> Any:
    _, torch = (pytest.importorskip(name, reason="the extra [torch] is not installed") for name in ("jax", "torch"))
    torch.manual_seed(0)
    return torch


def is_as_pytorch(torch: Any, function: Callable[..., Any], *arguments: Any, bound: float = 0.0) -> None:
    """The compiled function has PyTorch's results, relative to the largest number of each within `bound`."""
    found, wanted = from_torch(function, *arguments, record="none")(*arguments), function(*arguments)
    for one, other in zip(*map(torch.utils._pytree.tree_leaves, (found, wanted)), strict=True):
        largest = float(torch.nan_to_num(other.abs()).max()) if bound and other.dtype != torch.bool else 0.0
        torch.testing.assert_close(one, other, rtol=0, atol=bound * largest, equal_nan=True)


def test_integers_that_no_float_holds(torch: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        images = x.reshape(1, 1, 2, 3)
        return (
            torch.div(x, y, rounding_mode="trunc"),
            torch.div(x, -3, rounding_mode="trunc"),
            torch.div(x, y, rounding_mode="floor"),
            torch.nn.functional.max_pool2d(images, 2, 1),
            torch.nn.functional.avg_pool2d(images // 8, 2, 1),
            x.median(),
            x.reshape(2, 3).median(1, keepdim=True),
        )

    x = torch.tensor([2**62 + 1, -(2**62) - 3, 7, -7, 2**53 + 1, -(2**60) + 1])
    is_as_pytorch(torch, function, x, torch.tensor([3, 3, 2, 2, 1, 7]))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_sixteen_bits_are_rounded_once(torch: Any, name: str) -> None:
    """A mean of 100 that is rounded to bfloat16 is off by a quarter, and squares of 300 are no float16."""
    functional, element = torch.nn.functional, getattr(torch, name)

    def function(x: Any, mean: Any) -> Any:
        return (
            functional.layer_norm(x, (64,)),
            functional.group_norm(x[:, :, None], 8),
            functional.batch_norm(x, mean, mean),
            torch.softmax(x, -1),
            torch.log_softmax(x, -1),
            torch.cumsum(x / 64, -1),
            torch.logcumsumexp(x, -1),
            torch.linalg.vector_norm(x * 4, dim=-1),
            torch.hypot(x * 4, x * 4),
            functional.avg_pool1d(x[:, None], 63, 1, 31),
            functional.silu(x - 100),
            torch.logaddexp(x, x),
            torch.matrix_exp(x[:, :8] / 800),
        )

    x, mean = (torch.randn(8, 64) + 100).to(element), torch.full((64,), 100.0).to(element)
    found = from_torch(function, x, mean, record="none")(x, mean)
    for one, other in zip(found, function(x.double(), mean.double()), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=torch.finfo(element).eps, atol=1e-5)


def test_float64_stays_float64(torch: Any) -> None:
    def function(x: Any) -> Any:
        return (
            torch.lgamma(x),
            torch.digamma(x),
            torch.polygamma(2, x),
            torch.mvlgamma(x + 3, 2),
            torch.logit(x / 9),
            torch.logit(x / 9, 0.2),
            torch.complex(x, -x),
            torch.linalg.vector_norm(x.float() * 1e25, dtype=torch.float64),
        )

    is_as_pytorch(torch, function, torch.tensor([0.3, 1.7, 5.1], dtype=torch.float64), bound=1e-12)


def test_a_factor_of_zero_leaves_a_summand_out(torch: Any) -> None:
    def function(x: Any, a: Any, whole: Any) -> Any:
        return (
            *(each(x, a, b, beta=0) for each, b in ((torch.addmm, a), (torch.addmv, a[0]))),
            torch.addmm(a, a, a, beta=0.5, alpha=-2),
            torch.addmm(whole, whole, whole, beta=2, alpha=3),
            torch.baddbmm(x, a[None], a[None], beta=0),
            torch.addbmm(x, a[None], a[None], beta=0),
        )

    is_as_pytorch(
        torch, function, torch.tensor(float("nan")), torch.randn(3, 3), torch.arange(9).reshape(3, 3), bound=1e-6
    )


def test_angles_of_reals(torch: Any) -> None:
    is_as_pytorch(torch, torch.angle, torch.tensor([-1.0, -0.0, 0.0, 2.0, float("nan"), -float("inf")]))


def test_digamma_of_zeros(torch: Any) -> None:
    is_as_pytorch(torch, torch.digamma, torch.tensor([0.0, -0.0]))


def test_places_of_the_largest(torch: Any) -> None:
    """The first of equal ones, the last NaN, and an element where all are -inf."""
    functional, nan, inf = torch.nn.functional, float("nan"), float("inf")

    def function(x: Any, y: Any, scalar: Any) -> Any:
        return (
            functional.max_pool2d(x, 3, 2, 1, return_indices=True),
            functional.max_pool2d(x, 2, 3, 1, 2, ceil_mode=True, return_indices=True),
            functional.max_pool1d(y, 2, return_indices=True),
            functional.max_pool1d(y[0], 3, 2, 1, return_indices=True, ceil_mode=True),
            torch.cummax(scalar, 0),
            torch.cummin(scalar, 0),
            torch.cummax(y > 0, -1),
            torch.nonzero_static(y > 2, size=3),
        )

    x = torch.randn(2, 1, 7, 8)
    x[0, 0, 2, 2] = x[0, 0, 3, 2] = nan
    x[1, 0, 5, 5] = x[1, 0, 5, 6] = 9
    is_as_pytorch(torch, function, x, torch.tensor([[[-inf, -inf, -inf, -inf, 3.0, 3.0]]]), torch.tensor(2.5))


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("counts_padding", [False, True])
def test_means_of_windows(torch: Any, ceil: bool, counts_padding: bool) -> None:
    functional, how = torch.nn.functional, {"ceil_mode": ceil, "count_include_pad": counts_padding}

    def function(x: Any) -> Any:
        return (
            functional.avg_pool3d(x, 3, 2, 1, **how),
            functional.avg_pool2d(x[:, 0], (3, 2), (2, 3), (1, 1), **how),
            functional.avg_pool2d(x[0, 0], 2, 3, 1, divisor_override=5, **how),
            functional.avg_pool1d(x[0, 0], 4, 3, 2, **how),
        )

    is_as_pytorch(torch, function, torch.randn(1, 2, 8, 9, 6), bound=1e-6)


def test_the_largest_back_in_their_places(torch: Any) -> None:
    """Of any number of images."""
    functional, b = torch.nn.functional, torch.export.Dim("b")

    def function(x: Any) -> Any:
        return functional.max_unpool2d(*functional.max_pool2d(x, 2, return_indices=True), 2)

    program = from_torch(function, torch.ones(2, 2, 4, 6), dynamic_shapes=({0: b},), record="none")
    for count in (3, 1):
        x = torch.randn(count, 2, 4, 6)
        torch.testing.assert_close(program(x), function(x), rtol=0, atol=0)


def test_medians_beside_what_is_no_number(torch: Any) -> None:
    nan = float("nan")

    def function(x: Any) -> Any:
        return (
            torch.nanmedian(x, 0),
            torch.nanmedian(x),
            torch.median(x),
            torch.median(x, 1),
            torch.nanmedian(x, 1, True),
        )

    is_as_pytorch(
        torch, function, torch.tensor([[3.0, nan, 1.0, 4.0, 2.0], [nan, 7.0, nan, 5.0, 6.0], [0.5, nan, 8, 9, -1]])
    )


def test_elements_that_are_added_to_one_place(torch: Any) -> None:
    def function(x: Any, source: Any) -> Any:
        return torch.put(x, torch.tensor([1, 1, 2, -1]), source, accumulate=True)

    is_as_pytorch(torch, function, torch.arange(6).reshape(2, 3), torch.tensor([5, 6, 7, 2**60 + 1]))


@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
def test_the_first_beside_what_is_no_number(torch: Any, name: str) -> None:
    """What is no number is after all numbers from both ends, with a sign or without."""
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[3.0, nan, -inf, 4, 2], [inf, 7, nan, -nan, 6], [0.5, -nan, 8, inf, -1]]).to(getattr(torch, name))

    def function(x: Any) -> Any:
        return [each.topk(4, largest=is_largest) for each in (x, -x) for is_largest in (True, False)]

    assert torch.signbit(x[1, 2:4]).tolist() == [False, True]
    found = from_torch(function, x, record="none")(x)
    for one, other in zip(found, function(x), strict=True):
        torch.testing.assert_close(one.values, other.values, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("rows", [4, 40])
@pytest.mark.parametrize("order", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances(torch: Any, order: float, rows: int) -> None:
    def function(x: Any, y: Any) -> Any:
        return torch.cdist(x, y, p=order), torch.cdist(x.double(), y.double(), p=order)

    x, y = torch.randn(2, 3, 5), torch.randn(2, rows, 5)
    found, precise = from_torch(function, x, y, record="none")(x, y)
    wanted, precisely = function(x, y)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=0)
    torch.testing.assert_close(precise, precisely, rtol=1e-13, atol=0)


def test_places_in_what_is_ordered(torch: Any) -> None:
    """In lines of unknown length, from both sides; of what is ordered by other numbers."""

    def function(x: Any, values: Any, order: Any) -> Any:
        return (
            torch.searchsorted(x, values),
            torch.searchsorted(x, values, right=True, out_int32=True),
            torch.searchsorted(x[0], values, side="right"),
            torch.searchsorted(x[1], 4.0),
            torch.bucketize(values, x[0]),
            torch.bucketize(values, x[1], right=True, out_int32=True),
            torch.searchsorted(x.flip(1), values, sorter=order),
        )

    lines, n = torch.tensor([[1.0, 3, 3, 5], [2, 4, 6, 6]]), torch.export.Dim("n")
    values, order = torch.tensor([[3.0, 6], [4, 9]]), torch.tensor([[3, 2, 1, 0], [3, 2, 1, 0]])
    program = from_torch(function, lines, values, order, dynamic_shapes=({1: n}, None, {1: n}), record="none")
    for size in (4, 1):
        x, of = lines[:, :size], order[:, -size:]
        torch.testing.assert_close(program(x, values, of), function(x, values, of), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["float32", "complex64"])
def test_linear_algebra_of_batches(torch: Any, name: str) -> None:
    """Right-hand sides that are square, at the left or at the right, and factors of both triangles."""
    linalg, element = torch.linalg, getattr(torch, name)

    def function(a: Any, b: Any, factor: Any, lu: Any, pivots: Any) -> Any:
        return (
            *(linalg.solve(a, each) for each in (b, b[..., :2], b[..., 0], b[0])),
            linalg.solve(a, b, left=False),
            linalg.det(a),
            linalg.slogdet(a)[1],
            *(torch.cholesky_solve(b, each, upper=upper) for each, upper in ((factor, False), (factor.mH, True))),
            *(torch.cholesky_inverse(each, upper=upper) for each, upper in ((factor, False), (factor.mH, True))),
            *(linalg.lu_solve(lu, pivots, b, left=left, adjoint=of) for left in (True, False) for of in (False, True)),
        )

    a, b = torch.randn(2, 4, 4, dtype=element) + 4 * torch.eye(4), torch.randn(2, 4, 4, dtype=element)
    factor = linalg.cholesky(b @ b.mH + torch.eye(4))
    is_as_pytorch(torch, function, a, b, factor, *linalg.lu_factor(a), bound=2e-5)


def test_factors_of_matrices_and_a_spectrum_of_odd_length(torch: Any) -> None:
    def function(a: Any, spectrum: Any) -> Any:
        return (
            torch.linalg.svdvals(a),
            torch.linalg.qr(a, mode="r").R.abs(),
            torch.linalg.qr(a, mode="complete").Q.abs(),
            torch.fft.irfft2(spectrum, s=(4, 5)),
        )

    is_as_pytorch(torch, function, torch.randn(4, 3), torch.randn(2, 4, 3, dtype=torch.complex64), bound=1e-5)


@pytest.mark.parametrize("triangle", ["L", "U"])
def test_one_triangle_of_a_hermitian_matrix_is_read(torch: Any, triangle: str) -> None:
    def function(a: Any) -> Any:
        values, vectors = torch.linalg.eigh(a, UPLO=triangle)
        return values, (vectors * values[:, None, :]) @ vectors.mT, torch.linalg.eigvalsh(a, UPLO=triangle)

    is_as_pytorch(torch, function, torch.randn(3, 4, 4), bound=1e-5)


@pytest.mark.parametrize("element", ["int64", "int32", "uint8", "bool", "float32"])
def test_the_largest_of_what_comes_to_a_place_without_what_is_there(torch: Any, element: str) -> None:
    index = torch.tensor([[0, 1, 1, 3], [2, 2, 0, 3]])

    def function(x: Any, source: Any) -> Any:
        return tuple(
            torch.scatter_reduce(x, 0, index, source, reduce, include_self=include)
            for reduce in ("amax", "amin")
            for include in (True, False)
        )

    x, source = (torch.randint(-9, 9, shape).to(getattr(torch, element)) for shape in ((4, 5), (2, 4)))
    is_as_pytorch(torch, function, x, source)


@pytest.mark.parametrize("shape", [(3, 5), (2, 5, 3)])
def test_factors_in_one_matrix_are_unpacked(torch: Any, shape: tuple[int, ...]) -> None:
    def function(a: Any) -> Any:
        lu, pivots = torch.linalg.lu_factor(a)
        return torch.lu_unpack(lu, pivots), torch.lu_unpack(lu, pivots, unpack_data=False).P

    is_as_pytorch(torch, function, torch.randn(shape), bound=1e-5)


def test_means_and_softmax_are_computed_in_the_type_that_is_said(torch: Any) -> None:
    double = torch.float64

    def function(x: Any, whole: Any) -> Any:
        return (
            *(x.mean(dtype=double), x.mean(1, keepdim=True, dtype=double), whole.mean(dtype=double)),
            *(x.softmax(1, dtype=double), whole.softmax(0, dtype=double), x[0, 0].softmax(0, dtype=double)),
        )

    is_as_pytorch(torch, function, torch.randn(4, 7), torch.arange(9), bound=1e-14)


def test_overloads_that_torchax_takes_for_others(torch: Any) -> None:
    """A padding that is a word, a number of repeated elements that is said, lists of tensors, and frequencies."""
    functional = torch.nn.functional

    def function(x: Any, kernel: Any, counts: Any) -> Any:
        return (
            *(functional.conv2d(x, kernel, padding=word, groups=2, dilation=2) for word in ("same", "valid")),
            functional.conv1d(x[:, :, 0], kernel[:, 0].reshape(2, 2, 3), padding="same"),
            torch.repeat_interleave(x, counts, dim=1, output_size=3),
            torch.repeat_interleave(counts, output_size=3),
            *(torch.hstack([x, x]), torch.vstack([counts, counts]), torch.dstack([counts, counts])),
            *(torch.fft.fftfreq(5, 0.5), torch.fft.rfftfreq(6)),
        )

    is_as_pytorch(torch, function, torch.randn(1, 2, 5, 7), torch.randn(4, 1, 1, 3), torch.tensor([3, 0]), bound=1e-6)


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
@pytest.mark.parametrize("how", [{"size": (3, 11)}, {"scale_factor": (0.5, 1.6)}])
def test_pictures_become_smaller_without_steps(torch: Any, method: str, how: dict[str, Any]) -> None:
    def function(x: Any) -> Any:
        return torch.nn.functional.interpolate(x, mode=method, antialias=True, **how)

    is_as_pytorch(torch, function, torch.randn(2, 3, 8, 7), bound=1e-5)


def test_the_larger_and_the_smaller_of_two(torch: Any) -> None:
    def function(x: Any, y: Any, whole: Any) -> Any:
        return torch.max(x, y), torch.min(x, y), torch.max(whole, whole[2]), torch.min(x > 0, y > 0)

    x, y = (torch.tensor(each) for each in ([1.0, float("nan"), -2.0], [[3.0, 0.0, float("nan")], [-1.0, 1.0, 1.0]]))
    is_as_pytorch(torch, function, x, y, torch.tensor([3, -1, 2]))


def test_elements_where_a_mask_is_true_get_values(torch: Any) -> None:
    """One value for all, one of each place, and rows in order, where the mask is of the first axes, of the middle one, or of all."""

    def function(x: Any, mask: Any, rows: Any, middle: Any, columns: Any) -> Any:
        zeros, new, at_middle = x.clone(), x.clone(), x.clone()
        zeros[~mask], new[mask], at_middle[:, middle] = 0, rows, columns
        return (
            *(zeros, new, at_middle),
            x.masked_scatter(mask[..., None], rows),
            x.index_put((mask,), rows[0], accumulate=True),
            x.index_put((x > 0,), x[0, 0, 0]),
        )

    def arguments(*shape: int) -> tuple[Any, ...]:
        x, mask, middle = torch.randn(shape), torch.rand(shape[:2]) > 0.5, torch.rand(shape[1]) > 0.5
        mask[0, 0] = mask[-1, -1] = middle[0] = True
        return (
            x,
            mask,
            torch.randn(int(mask.sum()), shape[2]),
            middle,
            torch.randn(shape[0], int(middle.sum()), shape[2]),
        )

    b, n, c, k, m = (torch.export.Dim(name) for name in "bnckm")
    shapes = ({0: b, 1: n, 2: c}, {0: b, 1: n}, {0: k, 1: c}, {0: n}, {0: b, 1: m, 2: c})
    first = arguments(3, 8, 2)
    program = from_torch(function, *first, dynamic_shapes=shapes, record="none")
    for given in first, arguments(4, 5, 6):
        torch.testing.assert_close(program(*given), function(*given), rtol=0, atol=0)


def gradient(torch: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Of the sum of the result's sines, so that it differs from element to element."""
    found, back = torch.func.vjp(function, *arguments)
    return back(torch.cos(found))


def test_gradients_of_windows(torch: Any) -> None:
    functional = torch.nn.functional

    def function(x: Any, volume: Any) -> Any:
        return (
            gradient(torch, lambda x: functional.max_pool2d(x, 3, 2, 1), x),
            gradient(torch, lambda x: functional.max_pool3d(x, 2), volume),
            gradient(torch, lambda x: functional.avg_pool1d(x[0], 3, 2, 1), x),
            gradient(torch, lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), x),
            gradient(torch, lambda x: functional.avg_pool3d(x, 2), volume),
            *(gradient(torch, lambda x, n=n: functional.adaptive_avg_pool2d(x, n), x) for n in (1, (3, 2))),
            *(gradient(torch, lambda x: functional.adaptive_avg_pool3d(x, (2, 2, 3)), x) for x in (volume, volume[0])),
            *(gradient(torch, each, x) for each in (functional.hardshrink, functional.softshrink)),
        )

    is_as_pytorch(torch, function, torch.randn(2, 2, 6, 7), torch.randn(1, 2, 4, 5, 6), bound=1e-6)


@pytest.mark.parametrize(
    "mode", ["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "replicate"]
)
def test_gradients_of_resized_pictures(torch: Any, mode: str) -> None:
    functional, shapes = torch.nn.functional, {"linear": (2, 3, 7), "trilinear": (1, 2, 3, 4, 5)}

    def resized(x: Any, **how: Any) -> Any:
        return gradient(torch, lambda x: functional.interpolate(x, mode=mode, **how), x)

    def function(x: Any) -> Any:
        rank = x.ndim - 2
        if mode == "replicate":
            return gradient(torch, lambda x: functional.pad(x, (1, 2, 0, 3), mode=mode), x)
        corners = ({},) if "nearest" in mode else ({"align_corners": each} for each in (False, True))
        sizes = ({"size": (9, 4, 6)[:rank]}, {"scale_factor": (1.5, 0.7, 2.0)[:rank]})
        return [resized(x, **size, **corner) for corner in corners for size in sizes]

    is_as_pytorch(torch, function, torch.randn(shapes.get(mode, (2, 2, 6, 7))), bound=2e-6)


def test_gradients_of_attention(torch: Any) -> None:
    """Beside a mask of truth values with a row of which nothing is allowed, and one of numbers."""
    allowed, bias = torch.rand(4, 5) > 0.4, torch.randn(4, 5)
    allowed[1] = False
    attention = torch.nn.functional.scaled_dot_product_attention

    def function(q: Any, k: Any, v: Any) -> Any:
        hows = ({}, {"is_causal": True, "scale": 0.2}, {"attn_mask": allowed}, {"attn_mask": bias})
        return [gradient(torch, lambda *three, how=how: attention(*three, **how), q, k, v) for how in hows]

    q, k, v = (torch.randn(1, 2, size, 8) for size in (4, 5, 5))
    is_as_pytorch(torch, function, q, k, v, bound=2e-6)


def test_gradients_of_any_number_of_images(torch: Any) -> None:
    functional, b = torch.nn.functional, torch.export.Dim("b")

    def function(x: Any) -> Any:
        return (
            gradient(torch, lambda x: functional.max_pool2d(x, 2), x),
            gradient(torch, lambda x: functional.avg_pool2d(x, 2), x),
            gradient(torch, lambda x: functional.adaptive_avg_pool2d(x, (2, 3)), x),
        )

    program = from_torch(function, torch.ones(2, 2, 4, 6), dynamic_shapes=({0: b},), record="none")
    for count in (3, 1):
        x = torch.randn(count, 2, 4, 6)
        torch.testing.assert_close(program(x), function(x), rtol=0, atol=1e-5)


def test_graphs_that_were_quantized(torch: Any) -> None:
    """Of each tensor, channel and token; with steps and zeros that are constants, or computed."""
    pytest.importorskip("torch.ao.quantization.fx._decomposed")
    quantized, byte = torch.ops.quantized_decomposed, torch.int8
    limits = -128, 127, byte

    def function(x: Any, w: Any, steps: Any, zeros: Any) -> Any:
        of_channels = quantized.quantize_per_channel(w, steps, zeros, 0, *limits)
        step, zero = quantized.choose_qparams.tensor(x, -128, 127, 1e-6, byte)
        of_tokens = quantized.choose_qparams_per_token_asymmetric(x, byte)
        computed = quantized.quantize_per_tensor.tensor(x, step, zero, *limits)
        return (
            quantized.dequantize_per_channel(of_channels, steps, zeros, 0, *limits),
            quantized.choose_qparams_symmetric.tensor(x, 0, 255, 1e-6, torch.uint8),
            quantized.dequantize_per_tensor.tensor(computed, step, zero, *limits),
            quantized.dequantize_per_tensor(quantized.quantize_per_tensor(x, 0.03, 2, *limits), 0.03, 2, *limits),
            *(of_channels, step, zero, computed, quantized.quantize_per_token(x, *of_tokens, *limits)),
        )

    x, w = torch.randn(3, 6), torch.randn(4, 6)
    is_as_pytorch(torch, function, x, w, w.abs().amax(1) / 127, torch.tensor([0, 1, -2, 3]), bound=1e-6)


def test_numbers_as_if_they_were_quantized(torch: Any) -> None:
    def function(x: Any, steps: Any, zeros: Any, byte: Any) -> Any:
        aten = torch.ops.aten
        of_tensor = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        return (
            aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 3, -8, 7),
            aten.fake_quantize_per_channel_affine_cachemask(x, steps, zeros, 1, 0, 15),
            *(of_tensor(x, steps[:1], zeros[:1], each, -8, 7) for each in (zeros[:1], zeros[1:2])),
            torch._int_mm(byte, byte.t()),
        )

    byte = torch.randint(-128, 127, (24, 32), dtype=torch.int8)
    steps, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2], dtype=torch.int32)
    is_as_pytorch(torch, function, torch.randn(5, 3), steps, zeros, byte, bound=1e-7)


def test_attention_with_scores_that_a_function_changes(torch: Any) -> None:
    """A bias of each head, groups of heads, and a mask of which one row allows nothing."""
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    bias = torch.randn(4)
    mask = flex.create_block_mask(lambda b, h, i, j: (i >= j) & (i != 3), None, None, 128, 128, device="cpu")

    def function(q: Any, k: Any, v: Any) -> Any:
        return (
            flex.flex_attention(q, k, v, lambda score, b, h, i, j: score * bias[h] + (i - j), enable_gqa=True),
            flex.flex_attention(q[:, :2], k, v, block_mask=mask, scale=0.3),
        )

    q, k, v = (torch.randn(2, heads, 128, 8) for heads in (4, 2, 2))
    is_as_pytorch(torch, function, q, k, v, bound=1e-5)


def test_lists_of_tensors_and_windows_of_known_size(torch: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        products = torch._foreach_mul([x, y], [y, x])
        return (
            *(torch._foreach_add(products, 2.0), torch._foreach_norm([x, y])),
            *(x * each(6) for each in (torch.kaiser_window, torch.hamming_window, torch.bartlett_window)),
        )

    is_as_pytorch(torch, function, torch.randn(3, 6), torch.randn(3, 6), bound=1e-6)


def test_a_bag_with_weights(torch: Any) -> None:
    bag = torch.nn.EmbeddingBag(10, 4, mode="sum").eval()

    def function(numbers: Any, first: Any, weights: Any) -> Any:
        return bag(numbers, first, weights).detach()

    is_as_pytorch(torch, function, torch.randint(0, 10, (6,)), torch.tensor([0, 3]), torch.randn(6), bound=1e-6)


@pytest.mark.parametrize("name", ["bernoulli", "randn_like", "multinomial"])
def test_random_numbers_are_refused_by_name(torch: Any, name: str) -> None:
    def function(x: Any) -> Any:
        return getattr(torch, name)(x, *((2,) if name == "multinomial" else ()))

    with pytest.raises(Unsupported, match="draws random numbers"):
        from_torch(function, torch.rand(3, 4))
