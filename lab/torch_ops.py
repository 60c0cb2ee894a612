"""What PyTorch users call, one by one: each function with an unknown batch (and where it has one, an unknown length), beside eager PyTorch.

    make lab NAME=torch_ops                  the table: right, wrong, or refused and in which words
    make lab NAME="torch_ops conv lstm"      those whose names have one of these in them

Each is compiled once and run at three shapes. Right: within 2e-6 of the result's largest magnitude for f32 (8 bits of the type for others),
integers and truth values equal.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import xla_emitters as xe

B, S = Dim("b"), Dim("s", min=4)
SHAPES = ((3, 7), (1, 4), (8, 12))


def x(*tail: int) -> Callable[[int, int], tuple[Any, ...]]:
    """An argument of (b, s, *tail), random."""
    return lambda b, s: (torch.randn(b, s, *tail),)


def two(*tail: int) -> Callable[[int, int], tuple[Any, ...]]:
    return lambda b, s: (torch.randn(b, s, *tail), torch.randn(b, s, *tail))


def image(channels: int = 4) -> Callable[[int, int], tuple[Any, ...]]:
    return lambda b, s: (torch.randn(b, channels, s + 8, 16),)


def integers(b: int, s: int) -> tuple[Any, ...]:
    return torch.randint(-50, 50, (b, s, 4)), torch.randint(1, 9, (b, s, 4))


def indices(b: int, s: int) -> tuple[Any, ...]:
    return torch.randn(b, s, 4), torch.randint(4, (b, s, 2))


def of(module: nn.Module) -> Callable[..., Any]:
    torch.manual_seed(0)
    return module.eval()


UNARY = """
abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc erfinv exp exp2 expm1 floor frac isfinite
isinf isnan lgamma log log10 log1p log2 logical_not logit neg positive rad2deg reciprocal relu round rsqrt sgn
sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc digamma i0 nan_to_num
"""
BINARY = """
add sub mul div atan2 maximum minimum fmax fmin fmod remainder pow hypot copysign logaddexp logaddexp2 eq ne
lt le gt ge true_divide floor_divide xlogy nextafter heaviside dist
"""
ACTIVATIONS = """
relu relu6 gelu silu mish elu selu celu leaky_relu hardtanh hardswish hardsigmoid softplus softsign tanhshrink
softshrink hardshrink logsigmoid threshold glu softmin
"""
_LIMITED = {"acos", "asin", "atanh", "erfinv", "logit"}
_POSITIVE = {"log", "log10", "log2", "log1p", "sqrt", "rsqrt", "acosh", "lgamma", "digamma", "reciprocal"}


def _unary(name: str) -> Callable[..., Any]:
    function = getattr(torch, name)
    if name in _LIMITED:
        return lambda v: function(torch.sigmoid(v) * 0.9 + 0.05)
    return (lambda v: function(v.abs() + 1.25)) if name in _POSITIVE else function


def _binary(name: str) -> Callable[..., Any]:
    function = getattr(torch, name)
    return (lambda a, b: function(a.abs() + 0.1, b)) if name in ("pow", "xlogy") else function


HEADS = of(nn.MultiheadAttention(8, 2, batch_first=True))
OPS: dict[str, tuple[Callable[..., Any], Callable[[int, int], tuple[Any, ...]]]] = {
    **{name: (_unary(name), x(4)) for name in UNARY.split()},
    **{name: (_binary(name), two(4)) for name in BINARY.split()},
    **{
        name: ((lambda a: F.threshold(a, 0.1, 2.0)) if name == "threshold" else getattr(F, name), x(4))
        for name in ACTIVATIONS.split()
    },
    "softmax": (lambda a: F.softmax(a, -1), x(9)),
    "softmax_s": (lambda a: F.softmax(a, 1), x(9)),
    "log_softmax": (lambda a: F.log_softmax(a, -1), x(9)),
    "prelu": (of(nn.PReLU()), x(4)),
    "gelu_tanh": (lambda a: F.gelu(a, approximate="tanh"), x(4)),
    # sums and their like
    "sum": (torch.sum, x(4)),
    "sum_dims": (lambda a: a.sum((0, 2)), x(4)),
    "sum_keepdim": (lambda a: a.sum(1, keepdim=True), x(4)),
    "mean": (torch.mean, x(4)),
    "mean_s": (lambda a: a.mean(1), x(4)),
    "var": (lambda a: a.var(-1), x(4)),
    "std": (lambda a: a.std(-1, unbiased=False), x(4)),
    "var_mean": (lambda a: torch.var_mean(a, -1), x(4)),
    "prod": (lambda a: a.prod(-1), x(4)),
    "max": (torch.max, x(4)),
    "max_dim": (lambda a: a.max(-1), x(4)),
    "min_dim": (lambda a: a.min(1), x(4)),
    "amax": (lambda a: a.amax((1, 2)), x(4)),
    "aminmax": (lambda a: torch.aminmax(a, dim=-1), x(4)),
    "argmax": (lambda a: a.argmax(-1), x(4)),
    "argmax_all": (lambda a: a.argmax(), x(4)),
    "argmin": (lambda a: a.argmin(1), x(4)),
    "any": (lambda a: (a > 1).any(-1), x(4)),
    "all": (lambda a: (a > -1).all(), x(4)),
    "logsumexp": (lambda a: a.logsumexp(-1), x(4)),
    "norm": (lambda a: a.norm(dim=-1), x(4)),
    "norm_1": (lambda a: torch.linalg.vector_norm(a, 1, dim=1), x(4)),
    "normalize": (lambda a: F.normalize(a, dim=-1), x(4)),
    "cumsum": (lambda a: a.cumsum(1), x(4)),
    "cumsum_last": (lambda a: a.cumsum(-1), x(9)),
    "cumprod": (lambda a: a.cumprod(-1), x(4)),
    "cummax": (lambda a: a.cummax(-1), x(4)),
    "logcumsumexp": (lambda a: a.logcumsumexp(-1), x(4)),
    "median": (lambda a: a.median(-1), x(5)),
    "kthvalue": (lambda a: a.kthvalue(2, -1), x(5)),
    "quantile": (lambda a: a.quantile(0.3, dim=-1), x(5)),
    "count_nonzero": (lambda a: (a > 0).count_nonzero(-1), x(4)),
    "bincount": (lambda a: F.one_hot(a.argmax(-1), 4).sum(1), x(4)),
    # sorts
    "sort": (lambda a: a.sort(-1), x(9)),
    "sort_descending": (lambda a: torch.sort(a, dim=1, descending=True, stable=True), x(4)),
    "argsort": (lambda a: a.argsort(-1), x(9)),
    "topk": (lambda a: a.topk(3, -1), x(9)),
    "topk_smallest": (lambda a: a.topk(3, 1, largest=False), x(9)),
    "msort": (torch.msort, x(4)),
    "searchsorted": (lambda a: torch.searchsorted(torch.linspace(-1, 1, 9), a.contiguous()), x(4)),
    "bucketize": (lambda a: torch.bucketize(a, torch.linspace(-1, 1, 9)), x(4)),
    "unique_rows_gather": (lambda a: torch.take_along_dim(a, a.argsort(-1), -1), x(5)),
    # products
    "matmul": (lambda a, b: a @ b.transpose(1, 2), two(4)),
    "bmm": (lambda a, b: torch.bmm(a, b.mT), two(4)),
    "mv": (lambda a: a @ torch.arange(4.0), x(4)),
    "einsum": (lambda a, b: torch.einsum("bsd,btd->bst", a, b), two(4)),
    "einsum_trace": (lambda a: torch.einsum("bii->bi", a @ a.mT), x(4)),
    "outer": (lambda a: torch.outer(a[:, 0, 0], a[0, :, 1]), x(4)),
    "tensordot": (lambda a, b: torch.tensordot(a, b, dims=([1, 2], [1, 2])), two(4)),
    "addmm": (lambda a: torch.addmm(torch.ones(3), a[:, 0], torch.ones(4, 3), beta=0.5, alpha=2.0), x(4)),
    "baddbmm": (lambda a, b: torch.baddbmm(torch.ones(1), a, b.mT, beta=0.5), two(4)),
    "linear_no_bias": (of(nn.Linear(4, 5, bias=False)), x(4)),
    "bilinear": (of(nn.Bilinear(4, 4, 3)), two(4)),
    "cosine_similarity": (lambda a, b: F.cosine_similarity(a, b, dim=-1), two(4)),
    "cdist": (lambda a, b: torch.cdist(a, b), two(4)),
    "pairwise_distance": (lambda a, b: F.pairwise_distance(a, b), two(4)),
    "kron": (lambda a: torch.kron(a[0], torch.ones(2, 2)), x(4)),
    "cross": (lambda a, b: torch.linalg.cross(a, b), two(3)),
    # shapes
    "reshape": (lambda a: a.reshape(a.shape[0], -1), x(4)),
    "flatten": (lambda a: a.flatten(), x(4)),
    "unflatten": (lambda a: a.unflatten(-1, (2, 2)), x(4)),
    "permute": (lambda a: a.permute(2, 0, 1), x(4)),
    "cat": (lambda a, b: torch.cat([a, b], 1), two(4)),
    "stack": (lambda a, b: torch.stack([a, b], 1), two(4)),
    "split": (lambda a: a.split(3, -1), x(8)),
    "chunk": (lambda a: a.chunk(2, -1), x(8)),
    "unbind": (lambda a: a.unbind(-1), x(3)),
    "narrow": (lambda a: a.narrow(-1, 1, 2), x(4)),
    "slice_s": (lambda a: a[:, 1:], x(4)),
    "slice_last": (lambda a: a[:, -1], x(4)),
    "slice_step": (lambda a: a[..., ::2], x(8)),
    "slice_to_last": (lambda a: a[:, :-1] - a[:, 1:], x(4)),
    "expand": (lambda a: a[:, :1].expand(-1, 5, -1), x(4)),
    "repeat": (lambda a: a.repeat(1, 2, 1), x(4)),
    "repeat_interleave": (lambda a: a.repeat_interleave(2, dim=1), x(4)),
    "tile": (lambda a: a.tile(2, 1, 1), x(4)),
    "roll": (lambda a: a.roll(1, -1), x(4)),
    "roll_s": (lambda a: a.roll(2, 1), x(4)),
    "flip": (lambda a: a.flip(1, 2), x(4)),
    "rot90": (lambda a: a.rot90(1, (1, 2)), x(4)),
    "squeeze": (lambda a: a.unsqueeze(1).squeeze(1), x(4)),
    "movedim": (lambda a: a.movedim(-1, 0), x(4)),
    "swapaxes": (lambda a: a.swapaxes(1, 2), x(4)),
    "broadcast_to": (lambda a: torch.ones(4).broadcast_to(a.shape) + a, x(4)),
    "pad": (lambda a: F.pad(a, (1, 2, 3, 0), value=0.5), x(4)),
    "pad_negative": (lambda a: F.pad(a, (-1, 2)), x(4)),
    "pad_reflect": (lambda a: F.pad(a, (1, 2), mode="reflect"), x(4)),
    "pad_replicate": (lambda a: F.pad(a, (1, 2), mode="replicate"), x(4)),
    "pad_circular": (lambda a: F.pad(a, (1, 2), mode="circular"), x(4)),
    "unfold": (lambda a: a.unfold(-1, 3, 2), x(9)),
    "diagonal": (lambda a: a.diagonal(0, 1, 2), x(4)),
    "diag_embed": (torch.diag_embed, x(4)),
    "tril": (torch.tril, x(4)),
    "triu": (lambda a: a.triu(1), x(4)),
    "meshgrid": (lambda a: torch.meshgrid(a[0, :, 0], torch.arange(3.0), indexing="ij"), x(4)),
    "pixel_shuffle": (lambda a: F.pixel_shuffle(a, 2), image()),
    "channel_shuffle": (lambda a: F.channel_shuffle(a, 2), image()),
    # indices
    "embedding": (lambda a: F.embedding(a.argmax(-1), torch.eye(4)), x(4)),
    "one_hot": (lambda a: F.one_hot(a.argmax(-1), 4), x(4)),
    "gather": (lambda a, i: a.gather(-1, i), indices),
    "gather_s": (lambda a, i: a[..., :2].gather(1, i.clamp(max=1)), indices),
    "index_select": (lambda a: a.index_select(-1, torch.tensor([0, 3, 1])), x(4)),
    "index_list": (lambda a: a[:, :, [0, 2]], x(4)),
    "index_pairs": (lambda a: a[torch.arange(a.shape[0]), 0], x(4)),
    "index_negative": (lambda a: a[:, -2], x(4)),
    "take_along_dim": (lambda a, i: torch.take_along_dim(a, i, -1), indices),
    "scatter": (lambda a, i: torch.zeros_like(a).scatter(-1, i[..., :1], a[..., :1]), indices),
    "scatter_value": (lambda a, i: a.scatter(-1, i, 3.0), indices),
    "scatter_add": (lambda a, i: a.scatter_add(-1, i, torch.ones_like(a)), indices),
    "scatter_reduce": (lambda a, i: a.scatter_reduce(-1, i, a, "amax"), indices),
    "index_add": (lambda a: a.index_add(-1, torch.tensor([1, 1]), a[..., :2]), x(4)),
    "index_put": (lambda a: torch.index_put(a, (torch.tensor([0]),), torch.zeros(1)), x(4)),
    "masked_fill": (lambda a: a.masked_fill(a > 0, -1.0), x(4)),
    "where": (lambda a, b: torch.where(a > b, a, b), two(4)),
    "where_scalar": (lambda a: torch.where(a > 0, a, 0.0), x(4)),
    "clamp": (lambda a: a.clamp(-0.5, 0.5), x(4)),
    "clamp_tensor": (lambda a, b: a.clamp(min=b), two(4)),
    "lerp": (lambda a, b: torch.lerp(a, b, 0.3), two(4)),
    "addcmul": (lambda a, b: torch.addcmul(a, a, b, value=0.5), two(4)),
    "addcdiv": (lambda a, b: torch.addcdiv(a, a, b.abs() + 1, value=0.5), two(4)),
    "setitem": (lambda a: _written(a), x(4)),
    "setitem_mask": (lambda a: _masked(a), x(4)),
    "select_scatter": (lambda a: a.select_scatter(a[..., 0] * 2, -1, 1), x(4)),
    "slice_scatter": (lambda a: a.slice_scatter(a[..., :2] * 2, -1, 1, 3), x(4)),
    # made of sizes
    "zeros_like": (torch.zeros_like, x(4)),
    "full": (lambda a: torch.full((a.shape[0], 3), 2.5), x(4)),
    "arange": (lambda a: torch.arange(a.shape[1]) * 2, x(4)),
    "arange_float": (lambda a: torch.arange(0, 1, 0.25) + a, x(4)),
    "linspace": (lambda a: torch.linspace(0, 1, 4) + a, x(4)),
    "eye": (lambda a: torch.eye(4) @ a.mT, x(4)),
    "size_scalar": (lambda a: a / a.shape[1] + a.numel(), x(4)),
    "size_float": (lambda a: a * (a.shape[1] ** -0.5), x(4)),
    "size_of_result": (lambda a: (a, a.shape[1]), x(4)),
    "causal_mask": (lambda a: torch.ones(a.shape[1], a.shape[1], dtype=torch.bool).tril(), x(4)),
    "new_zeros": (lambda a: a.new_zeros(a.shape[0], 2), x(4)),
    # types
    "to_bf16": (lambda a: a.to(torch.bfloat16) * 2, x(4)),
    "to_half": (lambda a: a.half() + 1, x(4)),
    "to_double": (lambda a: a.double() / 3, x(4)),
    "to_int": (lambda a: (a * 10).int(), x(4)),
    "to_bool": (lambda a: a.bool(), x(4)),
    "to_uint8": (lambda a: (a.abs() * 20).to(torch.uint8), x(4)),
    "type_as": (lambda a: torch.arange(4).type_as(a) + a, x(4)),
    "complex": (lambda a: torch.complex(a, a * 2).abs(), x(4)),
    "view_as_complex": (lambda a: torch.view_as_real(torch.view_as_complex(a.reshape(*a.shape[:-1], 2, 2)) * 1j), x(4)),
    "polar": (lambda a, b: torch.view_as_real(torch.polar(a.abs(), b)), two(4)),
    "view_dtype": (lambda a: a.view(torch.int32), x(4)),
    # integers
    "int_div": (lambda a, b: torch.div(a, b, rounding_mode="floor"), integers),
    "int_div_trunc": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), integers),
    "int_true_div": (lambda a, b: a / b, integers),
    "int_mod": (lambda a, b: a % b, integers),
    "int_fmod": (torch.fmod, integers),
    "int_floor_divide": (lambda a, b: a // b, integers),
    "bitwise": (lambda a, b: (a & b) | (a ^ b), integers),
    "bitwise_not": (lambda a, b: ~a, integers),
    "shift": (lambda a, b: (a << 2) + (a >> 1), integers),
    "int_mean": (lambda a, b: a.float().mean(), integers),
    "int_sum": (lambda a, b: a.sum(-1), integers),
    "int_pow": (lambda a, b: a**2, integers),
    "int_max": (lambda a, b: a.max(-1), integers),
    "int_topk": (lambda a, b: a.topk(2, -1, largest=False)[0], integers),
    "gcd": (torch.gcd, integers),
    "cumsum_int": (lambda a, b: a.cumsum(1), integers),
    "int_pow_large": (lambda a, b: (a + 10**6) ** 3, integers),
    "int_pow_tensor": (lambda a, b: a**b, integers),
    "int_neg_unsigned": (lambda a, b: -(b.to(torch.uint8)), integers),
    "int32_sum": (lambda a, b: (a.int() * 10**8).sum(1), integers),
    "int8_cumsum": (lambda a, b: (a.to(torch.int8)).cumsum(1), integers),
    "int32_prod": (lambda a, b: b.int().prod(1), integers),
    "int_mul_float": (lambda a, b: a * 0.5, integers),
    "int_add_float": (lambda a, b: a + b.float() * 0.3, integers),
    "int_where": (lambda a, b: torch.where(a > 0, a, 0), integers),
    "int_sqrt": (lambda a, b: b.sqrt(), integers),
    "int_abs_sign": (lambda a, b: a.abs() + a.sign(), integers),
    "int_clamp": (lambda a, b: a.clamp(-3, 5), integers),
    "bool_sum": (lambda a, b: (a > 0).sum(-1), integers),
    "bool_arithmetic": (lambda a, b: (a > 0) + (b > 4), integers),
    "bool_logic": (lambda a, b: (a > 0) & (b > 4) | ~(a < b) ^ (a == b), integers),
    "bool_mean": (lambda a, b: (a > 0).float().mean(1), integers),
    "half_sum_wide": (lambda a: (a.half() * 300).sum(1, dtype=torch.float32), x(40)),
    "half_mean": (lambda a: (a.half() * 300).mean(-1), x(400)),
    "bf16_softmax": (lambda a: a.bfloat16().softmax(-1), x(40)),
    "bf16_layer_norm": (lambda a: F.layer_norm(a.bfloat16(), (40,)), x(40)),
    "half_matmul": (lambda a: a.half() @ a.half().mT, x(40)),
    "fmod_large": (lambda a, b: torch.fmod(a * 1e6, b), two(4)),
    "remainder_large": (lambda a, b: torch.remainder(a * 1e6, b), two(4)),
    "pow_scalar": (lambda a: a**3 + a**2 + a.abs() ** 2.5 + (a.abs() + 1) ** -2, x(4)),
    "scalar_pow": (lambda a: 2.0**a, x(4)),
    "rsub": (lambda a: 1 - a, x(4)),
    "double": (lambda a: (a.double() * 1e-9 + 1).log(), x(4)),
    "alpha": (lambda a, b: torch.add(a, b, alpha=2) - torch.sub(a, b, alpha=3), two(4)),
    # layers
    "conv1d": (of(nn.Conv1d(4, 6, 3, padding=1)), lambda b, s: (torch.randn(b, 4, s + 4),)),
    "conv1d_same": (of(nn.Conv1d(4, 6, 4, padding="same")), lambda b, s: (torch.randn(b, 4, s + 4),)),
    "conv2d_groups": (of(nn.Conv2d(4, 8, 3, groups=2)), image()),
    "conv2d_depthwise": (of(nn.Conv2d(4, 4, 3, padding=1, groups=4)), image()),
    "conv2d_dilated": (of(nn.Conv2d(4, 6, 3, padding=2, dilation=2)), image()),
    "conv2d_stride": (of(nn.Conv2d(4, 6, 4, stride=2, padding=1)), image()),
    "conv3d": (of(nn.Conv3d(2, 3, 3, padding=1)), lambda b, s: (torch.randn(b, 2, 4, s + 2, 5),)),
    "conv_transpose1d": (
        of(nn.ConvTranspose1d(4, 3, 4, stride=2, padding=1)),
        lambda b, s: (torch.randn(b, 4, s + 4),),
    ),
    "conv_transpose2d": (of(nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)), image()),
    "max_pool1d": (of(nn.MaxPool1d(2)), lambda b, s: (torch.randn(b, 4, s + 4),)),
    "max_pool2d": (of(nn.MaxPool2d(3, 2, 1)), image()),
    "max_pool2d_ceil": (of(nn.MaxPool2d(3, 2, ceil_mode=True)), image()),
    "max_pool2d_indices": (of(nn.MaxPool2d(2, return_indices=True)), image()),
    "avg_pool2d": (of(nn.AvgPool2d(2)), image()),
    "avg_pool2d_pad": (of(nn.AvgPool2d(3, 2, 1, count_include_pad=False)), image()),
    "avg_pool1d": (of(nn.AvgPool1d(3, 1, 1)), lambda b, s: (torch.randn(b, 4, s + 4),)),
    "adaptive_avg_pool2d": (of(nn.AdaptiveAvgPool2d(1)), image()),
    "adaptive_max_pool2d": (lambda a: a.amax((-2, -1), keepdim=True), image()),
    "lp_pool": (lambda a: F.lp_pool2d(a.abs() + 0.1, 2, 2), image()),
    "upsample_nearest": (of(nn.Upsample(scale_factor=2)), image()),
    "upsample_bilinear": (of(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)), image()),
    "upsample_corners": (of(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)), image()),
    "upsample_bicubic": (of(nn.Upsample(scale_factor=2, mode="bicubic")), image()),
    "upsample_size": (lambda a: F.interpolate(a, size=(5, 7), mode="nearest"), image()),
    "interpolate_half": (lambda a: F.interpolate(a, scale_factor=0.5, mode="nearest"), image()),
    "batch_norm2d": (of(nn.BatchNorm2d(4)), image()),
    "instance_norm": (of(nn.InstanceNorm2d(4, affine=True)), image()),
    "group_norm": (of(nn.GroupNorm(2, 4)), image()),
    "layer_norm": (of(nn.LayerNorm((16,))), image()),
    "rms_norm": (of(nn.RMSNorm(16)), image()),
    "local_response_norm": (of(nn.LocalResponseNorm(2)), image()),
    "dropout_eval": (of(nn.Dropout(0.5)), x(4)),
    "lstm": (of(nn.LSTM(4, 5, batch_first=True)), x(4)),
    "lstm_bidirectional": (of(nn.LSTM(4, 5, 2, bidirectional=True)), x(4)),
    "gru": (of(nn.GRU(4, 5, batch_first=True)), x(4)),
    "rnn": (of(nn.RNN(4, 5, bias=False)), x(4)),
    "lstm_cell": (of(nn.LSTMCell(4, 5)), lambda b, s: (torch.randn(b, 4),)),
    "gru_cell": (of(nn.GRUCell(4, 5)), lambda b, s: (torch.randn(b, 4),)),
    "multihead_attention": (lambda a: HEADS(a, a, a), x(8)),
    "transformer_layer": (of(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), x(8)),
    "transformer_decoder": (of(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)), two(8)),
    "sdpa_causal": (lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True), x(8)),
    "sdpa_gqa": (
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        lambda b, s: (torch.randn(b, 4, s, 8), torch.randn(b, 2, s, 8)),
    ),
    "embedding_bag_sum": (of(nn.EmbeddingBag(9, 4, mode="sum")), lambda b, s: (torch.randint(9, (b, s)),)),
    "embedding_bag_max": (of(nn.EmbeddingBag(9, 4, mode="max")), lambda b, s: (torch.randint(9, (b, s)),)),
    "fold": (
        lambda a: F.fold(F.unfold(a, 2, stride=2), (8, 16), 2, stride=2),
        lambda b, s: (torch.randn(b, 4, 8, 16),),
    ),
    "unfold2d": (lambda a: F.unfold(a, 3, padding=1), lambda b, s: (torch.randn(b, 4, 8, 16),)),
    "grid_sample_nearest": (
        lambda a, g: F.grid_sample(a, g, mode="nearest", align_corners=False),
        lambda b, s: (torch.randn(b, 4, 8, 16), torch.rand(b, s, 5, 2) * 2 - 1),
    ),
    "grid_sample_zeros": (
        lambda a, g: F.grid_sample(a, g, align_corners=False),
        lambda b, s: (torch.randn(b, 4, 8, 16), torch.rand(b, s, 5, 2) * 2.4 - 1.2),
    ),
    "affine_grid": (
        lambda a: F.affine_grid(a[:, :2, :3], [a.shape[0], 1, 4, 5], align_corners=False),
        lambda b, s: (torch.randn(b, 4, 4),),
    ),
    # losses
    "cross_entropy": (lambda a: F.cross_entropy(a, a.argmax(-1)), lambda b, s: (torch.randn(b, 9),)),
    "cross_entropy_smooth": (
        lambda a: F.cross_entropy(a, a.argmax(-1), label_smoothing=0.1),
        lambda b, s: (torch.randn(b, 9),),
    ),
    "cross_entropy_ignore": (
        lambda a: F.cross_entropy(a, a.argmin(-1), ignore_index=3),
        lambda b, s: (torch.randn(b, 9),),
    ),
    "nll_loss": (
        lambda a: F.nll_loss(F.log_softmax(a, -1), a.argmax(-1), reduction="none"),
        lambda b, s: (torch.randn(b, 9),),
    ),
    "mse_loss": (F.mse_loss, two(4)),
    "l1_loss": (F.l1_loss, two(4)),
    "smooth_l1_loss": (F.smooth_l1_loss, two(4)),
    "huber_loss": (F.huber_loss, two(4)),
    "bce_logits": (lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid()), two(4)),
    "bce": (lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid()), two(4)),
    "kl_div": (lambda a, b: F.kl_div(F.log_softmax(a, -1), b.softmax(-1), reduction="batchmean"), two(4)),
    "triplet": (lambda a, b: F.triplet_margin_loss(a, b, a + b), two(4)),
    "cosine_embedding": (lambda a, b: F.cosine_embedding_loss(a[:, 0], b[:, 0], torch.ones(1)), two(4)),
    # transforms and control flow
    "grad": (lambda a: torch.func.grad(lambda v: (v**3).sum())(a), x(4)),
    "grad_conv": (lambda a: torch.func.grad(lambda v: F.conv2d(v, torch.ones(2, 4, 3, 3)).pow(2).sum())(a), image()),
    "grad_norm": (lambda a: torch.func.grad(lambda v: F.layer_norm(v, (4,)).pow(3).sum())(a), x(4)),
    "grad_attention": (
        lambda a: torch.func.grad(lambda v: F.scaled_dot_product_attention(v, v, v).pow(2).sum())(a),
        x(8),
    ),
    "vmap": (lambda a: torch.func.vmap(lambda v: v @ v.T)(a), x(4)),
    "jvp": (lambda a, b: torch.func.jvp(torch.sin, (a,), (b,)), two(4)),
    "cond": (lambda a: torch.cond(a.sum() > 0, lambda v: v + 1, lambda v: v - 1, (a,)), x(4)),
    "while_loop": (lambda a: _looped(a), x(4)),
    "scan": (lambda a: _scanned(a), x(4)),
    "custom_autograd": (lambda a: torch.utils.checkpoint.checkpoint(torch.sin, a, use_reentrant=False), x(4)),
    # linear algebra
    "cholesky": (lambda a: torch.linalg.cholesky(a @ a.mT + 9 * torch.eye(4)), lambda b, s: (torch.randn(b, 4, 4),)),
    "inverse": (lambda a: torch.linalg.inv(a + 9 * torch.eye(4)), lambda b, s: (torch.randn(b, 4, 4),)),
    "solve": (lambda a: torch.linalg.solve(a + 9 * torch.eye(4), a), lambda b, s: (torch.randn(b, 4, 4),)),
    "det": (lambda a: torch.linalg.det(a + 9 * torch.eye(4)), lambda b, s: (torch.randn(b, 4, 4),)),
    "qr": (lambda a: torch.linalg.qr(a + 9 * torch.eye(4)), lambda b, s: (torch.randn(b, 4, 4),)),
    "svdvals": (lambda a: torch.linalg.svdvals(a), lambda b, s: (torch.randn(b, 4, 4),)),
    "matrix_exp": (lambda a: torch.linalg.matrix_exp(a / 8), lambda b, s: (torch.randn(b, 4, 4),)),
    "fft": (lambda a: torch.view_as_real(torch.fft.fft(a)), x(8)),
    "rfft": (lambda a: torch.fft.rfft(a).abs(), x(8)),
    "stft": (
        lambda a: torch.view_as_real(torch.stft(a, 8, return_complex=True, window=torch.ones(8))),
        lambda b, s: (torch.randn(b, 64),),
    ),
}


def _written(a: torch.Tensor) -> torch.Tensor:
    a = a.clone()
    a[..., 0] = 0
    a[:, 0] += 1
    return a


def _masked(a: torch.Tensor) -> torch.Tensor:
    a = a.clone()
    a[a > 0] = 0.5
    return a


def _looped(a: torch.Tensor) -> Any:
    loop = torch._higher_order_ops.while_loop
    return loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 1.5), (torch.tensor(0), a))


def _scanned(a: torch.Tensor) -> Any:
    scan = torch._higher_order_ops.scan
    return scan(lambda carry, v: (carry + v, carry * 2), torch.zeros_like(a[:, 0]), a, dim=1)


def verdict(name: str) -> str:
    function, make = OPS[name]
    torch.manual_seed(0)
    example = make(*SHAPES[0])
    short, long = make(5, 6), make(5, 9)
    dynamic = list[dict[int, Any]]()
    for each, one, other in zip(example, short, long, strict=True):
        lengths = {axis: S for axis in range(each.ndim) if one.shape[axis] != other.shape[axis]}
        dynamic.append({0: B} | lengths)
    words = ""
    for spec in (tuple(dynamic), tuple({0: B} for _ in example), None):
        try:
            program = xe.from_torch(function, *example, dynamic_shapes=spec, record="none")
            break
        except Exception as error:
            words = words or f"{type(error).__name__} {error}".replace("\n", " ")[:230]
    else:
        return f"refused  {words}"
    said = "" if not words else f" (at fewer unknown sizes, else: {words})"
    for b, s in SHAPES if spec is not None else SHAPES[:1]:
        arguments = make(b, s if spec == tuple(dynamic) else SHAPES[0][1]) if spec is not None else example
        try:
            wanted = torch.utils._pytree.tree_leaves(function(*arguments))
            found = torch.utils._pytree.tree_leaves(program(*arguments))
        except Exception as error:
            return f"fails    at {b}, {s}: {type(error).__name__} {error}".replace("\n", " ")[:300] + said
        for one, other in zip(found, wanted, strict=True):
            if why := _difference(one, other):
                return f"WRONG    at {b}, {s}: {why}" + said
    return f"right{said}"


def _difference(one: Any, other: Any) -> str:
    if not isinstance(other, torch.Tensor):
        return "" if one == other else f"{one}, not {other}"
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}"
    if not other.is_floating_point():
        return "" if torch.equal(one, other) else f"{int((one != other).sum())} of {one.numel()} differ"
    a, b = one.double(), other.detach().double()
    if not torch.equal(a.isnan(), b.isnan()):
        return "NaN"
    apart = (a - b).abs()[~(a == b)].nan_to_num(0, posinf=torch.inf).max().item() if (~(a == b)).any() else 0.0
    finite = b[b.isfinite()]
    worst = apart / max(float(finite.abs().max()) if finite.numel() else 0.0, 1e-30)
    bound = 2e-6 if other.dtype in (torch.float32, torch.float64) else 8 * torch.finfo(other.dtype).eps
    return "" if worst <= bound else f"{worst:.1e} of the largest element"


def main() -> None:
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:]
    rows = {}
    for name in OPS:
        if not wanted or any(each in name for each in wanted):
            rows[name] = verdict(name)
            print(f"{name:<22}{rows[name]}", flush=True)
    right = sum(row.startswith("right") for row in rows.values())
    print(f"{right} of {len(rows)} right")


if __name__ == "__main__":
    main()
