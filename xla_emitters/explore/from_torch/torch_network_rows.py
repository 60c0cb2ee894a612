"""What ATen ops of neural networks are in JAX: attention, recurrence, windows, convolutions, quantized numbers, gradients.

aten.lstm.input(x, ...)       a loop over the steps, of which there may be any number
"""

# The rows are functions of JAX's arrays, which have no types here.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from xla_emitters.explore.from_torch.torch_array_rows import END, Row, rounded_once

# --------------------------------------------------------------------------------------------------------------- networks


_DROPOUT = "dropout needs random numbers: module.eval() leaves it out"


def of_networks(torch: ModuleType, jax: ModuleType) -> dict[Any, Row]:
    jnp, lax, nn, aten = jax.numpy, jax.lax, jax.nn, torch.ops.aten

    def attention(
        q: Any,
        k: Any,
        v: Any,
        mask: Any = None,
        dropout: float = 0.0,
        causal: bool = False,
        scale: Any = None,
        enable_gqa: bool = False,
    ) -> Any:
        """The decomposition computes the scores twice as large arrays as needed: it scales both factors, and masks rows afterwards."""
        if dropout:
            raise NotImplementedError(_DROPOUT)
        if enable_gqa:
            k, v = (jnp.repeat(each, q.shape[-3] // each.shape[-3], axis=-3) for each in (k, v))
        wide = jnp.promote_types(q.dtype, "float32")
        scores = jnp.einsum("...sd,...td->...st", q, k, preferred_element_type=wide)
        scores = scores * jnp.asarray(1 / math.sqrt(q.shape[-1]) if scale is None else scale, wide)
        if causal:
            scores = jnp.where(jnp.arange(q.shape[-2])[:, None] >= jnp.arange(k.shape[-2])[None, :], scores, -jnp.inf)
        if mask is not None:
            scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == "bool" else scores + mask.astype(wide)
        weights = nn.softmax(scores, axis=-1)
        if mask is not None:  # a row of which nothing is allowed is zero, not NaN
            allowed = mask if mask.dtype == "bool" else scores > -jnp.inf
            weights = jnp.where(jnp.any(allowed, axis=-1, keepdims=True), weights, 0)
        return jnp.einsum("...st,...td->...sd", weights.astype(q.dtype), v)

    def stepped(cell: Callable[..., Any], gates: int) -> Row:
        """A recurrent network: `cell(x of one step, state, weights) -> state`, in layers and directions, each a loop over the steps."""

        def network(
            x: Any,
            first: Any,
            weights: Sequence[Any],
            biases: bool,
            layers: int,
            dropout: float,
            train: bool,
            both: bool,
            batch_first: bool,
        ) -> Any:
            if dropout and train and layers > 1:
                raise NotImplementedError(_DROPOUT)
            first = first if isinstance(first, list | tuple) else [first]
            x = jnp.swapaxes(x, 0, 1) if batch_first else x
            each, last = (4 if biases else 2), list[Any]()
            has_projection = len(weights) != layers * (2 if both else 1) * each
            each += has_projection
            for layer in range(layers):
                outputs = list[Any]()
                for direction in range(2 if both else 1):
                    number = layer * (2 if both else 1) + direction
                    w_x, w_h, *more = weights[number * each : (number + 1) * each]
                    b_x, b_h = more[:2] if biases else (None, None)
                    projection = more[-1] if has_projection else None
                    of_x = x @ w_x.T + (0 if b_x is None else b_x)

                    def step(state: Any, given: Any, w_h: Any = w_h, b_h: Any = b_h, p: Any = projection) -> Any:
                        first, *rest = cell(given, state, state[0] @ w_h.T + (0 if b_h is None else b_h))
                        first = first if p is None else first @ p.T
                        return (first, *rest), first

                    state, found = lax.scan(step, tuple(part[number] for part in first), of_x, reverse=bool(direction))
                    outputs.append(found)
                    last.append(state)
                x = jnp.concatenate(outputs, axis=-1) if both else outputs[0]
            return (
                jnp.swapaxes(x, 0, 1) if batch_first else x,
                *(jnp.stack(parts) for parts in zip(*last, strict=True)),
            )

        return network

    def lstm(of_x: Any, state: Any, of_h: Any) -> Any:
        i, f, g, o = jnp.split(of_x + of_h, 4, axis=-1)
        cell = nn.sigmoid(f) * state[1] + nn.sigmoid(i) * jnp.tanh(g)
        return nn.sigmoid(o) * jnp.tanh(cell), cell

    def gru(of_x: Any, state: Any, of_h: Any) -> Any:
        (r_x, z_x, n_x), (r_h, z_h, n_h) = (jnp.split(each, 3, axis=-1) for each in (of_x, of_h))
        z, new = nn.sigmoid(z_x + z_h), jnp.tanh(n_x + nn.sigmoid(r_x + r_h) * n_h)
        return (new + z * (state[0] - new),)

    def bag(
        weight: Any,
        indices: Any,
        offsets: Any,
        scaled: bool = False,
        mode: int = 0,
        sparse: bool = False,
        scales: Any = None,
        include_last_offset: bool = False,
        padding_idx: int = -1,
    ) -> Any:
        """Sums, means or maxima of a table's rows, of bags that begin at `offsets`; a bag of nothing gives zeros."""
        starts = offsets[:-1] if include_last_offset else offsets
        of = jnp.cumsum(jnp.zeros(indices.shape[0], "int64").at[starts].add(1)) - 1
        is_taken = indices != padding_idx
        rows = weight[indices] if scales is None else weight[indices] * scales[:, None]
        counts = jnp.zeros(starts.shape[0], "int64").at[of].add(is_taken.astype("int64"))
        shape = (starts.shape[0], weight.shape[1])
        if mode == 2:
            found = jnp.full(shape, -jnp.inf, weight.dtype).at[of].max(jnp.where(is_taken[:, None], rows, -jnp.inf))
            found = jnp.where(counts[:, None] > 0, found, 0)
        else:
            found = jnp.zeros(shape, weight.dtype).at[of].add(jnp.where(is_taken[:, None], rows, 0))
            found = found / jnp.maximum(counts, 1)[:, None].astype(weight.dtype) if mode == 1 else found
        return found, of, counts, None  # which rows were largest is for the gradient

    def windows(x: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool) -> tuple[Any, ...]:
        """lax.reduce_window's arguments for windows of the last axes, and for each axis (size, extent of a window, stride, padding)."""
        rank = len(kernel)
        strides, padding, dilation = (
            tuple(each) * (rank // len(each)) for each in (strides or kernel, *map(_listed, (padding, dilation)))
        )
        before, pads, axes = (1,) * (x.ndim - rank), [(0, 0)] * (x.ndim - rank), list[Any]()
        for size, pad, count, stride, step in zip(x.shape[-rank:], padding, kernel, strides, dilation, strict=True):
            axes.append((size, step * (count - 1) + 1, stride, pad))
            pads.append((pad, _after_ceil(*axes[-1]) if ceil_mode else pad))
        return ((*before, *kernel), (*before, *strides), pads, (1,) * x.ndim, (*before, *dilation)), axes

    def max_pool(
        x: Any, kernel: Any, strides: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        """The largest elements of windows in their own type, and their places: the first one's, or the last NaN's."""
        how, axes = windows(x, kernel, strides, padding, dilation, ceil_mode)
        sizes = [size for size, *_ in axes]
        least = jnp.asarray(-jnp.inf if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.iinfo(x.dtype).min, x.dtype)

        def best(one: Any, other: Any) -> Any:
            (x, at), (y, at_y) = one, other
            is_first = jnp.where((x != x) & (y != y), at > at_y, (x != x) | (x > y) | ((x == y) & (at < at_y)))
            return jnp.where(is_first, x, y), jnp.where(is_first, at, at_y)

        places = jnp.broadcast_to(jnp.arange(math.prod(sizes)).reshape(sizes), x.shape)
        after_all = jnp.asarray(END, places.dtype)
        return (
            lax.reduce_window(x, least, lax.max, *how),
            lax.reduce_window((x, places), (least, after_all), best, *how)[1],
        )

    def mean_pool(
        x: Any,
        kernel: Any,
        strides: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        with_padding: bool = True,
        divisor: Any = None,
    ) -> Any:
        """Sums of windows by their elements, of which those of the padding count or not; those after it, of ceil_mode, do not."""
        how, axes = windows(x, kernel, strides, padding, 1, ceil_mode)
        total = lax.reduce_window(x, x.dtype.type(0), lax.add, *how)
        counts = jnp.ones((), "int64") if divisor is None else jnp.asarray(divisor)
        for count, (size, extent, stride, pad) in zip(total.shape[-len(axes) :], axes, strict=True):
            first = jnp.arange(count) * stride - pad
            last = jnp.minimum(first + extent, size + (pad if with_padding else 0))
            held = last - (first if with_padding else jnp.maximum(first, 0))
            counts = counts[..., None] * (held if divisor is None else jnp.ones_like(held))
        return lax.div(total, jnp.broadcast_to(counts.astype(x.dtype), total.shape))

    def smoothed(method: str) -> Row:
        """A picture of another size, each element of which is a mean of those that it stands for; JAX's kernels are PyTorch's."""

        def resized(x: Any, size: Any, align_corners: bool, factors: Any = None) -> Any:
            if align_corners:
                raise NotImplementedError("align_corners and antialias at once")
            before = x.shape[-2:]
            size = size or [math.floor(extent * factor) for extent, factor in zip(before, factors, strict=True)]
            scale = factors or [after / extent for after, extent in zip(size, before, strict=True)]
            axes, wide = (x.ndim - 2, x.ndim - 1), jnp.promote_types(x.dtype, "float32")
            how = jnp.asarray(scale, wide), jnp.zeros(2, wide), method
            return jax.image.scale_and_translate(x, (*x.shape[:-2], *size), axes, *how, antialias=True)

        return rounded_once(jax, resized)

    pools = {
        **dict.fromkeys((aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default), max_pool),
        **dict.fromkeys((aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d), rounded_once(jax, mean_pool)),
    }
    return {
        **pools,
        aten._upsample_bilinear2d_aa.vec: smoothed("linear"),
        aten._upsample_bicubic2d_aa.vec: smoothed("cubic"),
        aten._embedding_bag.default: bag,
        aten._embedding_bag_forward_only.default: lambda *args: (bag(*args)[0], None, None, None),
        aten.scaled_dot_product_attention.default: attention,
        aten.lstm.input: stepped(lstm, 4),
        aten.gru.input: stepped(gru, 3),
        aten.rnn_tanh.input: stepped(lambda of_x, state, of_h: (jnp.tanh(of_x + of_h),), 1),
        aten.rnn_relu.input: stepped(lambda of_x, state, of_h: (nn.relu(of_x + of_h),), 1),
    }


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _after_ceil(size: Any, extent: int, stride: int, pad: int) -> Any:
    """Elements after an axis such that its last window is whole: one that begins in the padding after the axis is left out."""
    windows = min(-((extent - size - 2 * pad) // stride), (size + pad - 1) // stride) + 1
    return max((windows - 1) * stride + extent - size - pad, 0)


def of_convolutions(torch: ModuleType, jax: ModuleType, table: Mapping[Any, Any]) -> dict[Any, Row]:
    """torchax's convolution, and its gradient, which PyTorch's gradients call, as JAX's."""
    jnp, aten = jax.numpy, torch.ops.aten

    def convolution(x: Any, weight: Any, bias: Any, *how: Any) -> Any:
        """torchax wants kernels of a transposed convolution as (input of a group, group, output); PyTorch has groups first."""
        *_, is_transposed, _, groups = how
        if is_transposed and groups > 1:
            of_groups = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
            weight = jnp.swapaxes(of_groups, 0, 1).reshape(weight.shape)
        # One number for all axes is a list of one, which torchax lengthens in its place.
        copies = [list(each) if isinstance(each, list | tuple) else each for each in how]
        return table[aten.convolution].func(x, weight, bias, *copies)

    def backward(of_result: Any, x: Any, weight: Any, biases: Any, *given: Any) -> Any:
        *how, wanted = given
        of_x, of_weight = jax.vjp(lambda x, weight: convolution(x, weight, None, *how), x, weight)[1](of_result)
        of_bias = jnp.sum(of_result, axis=(0, *range(2, of_result.ndim)))
        return [
            found if is_wanted else None for found, is_wanted in zip((of_x, of_weight, of_bias), wanted, strict=True)
        ]

    return {aten.convolution.default: convolution, aten.convolution_backward.default: backward}


# -------------------------------------------------------------------------------------------------------------- quantized


def of_quantized(torch: ModuleType, jax: ModuleType) -> dict[Any, Row]:
    """Products of eight-bit integers, and numbers rounded as if they were quantized: each with whether it was in range."""
    jnp, lax, aten = jax.numpy, jax.lax, torch.ops.aten

    def rounded(x: Any, scale: Any, zero: Any, least: int, most: int) -> Any:
        scale = jnp.asarray(scale, "float32")
        steps = jnp.round(x.astype("float32") * (1 / scale)) + zero
        return (jnp.clip(steps, least, most) - zero) * scale, (steps >= least) & (steps <= most)

    def stepped(x: Any, scale: Any, zero: Any, least: Any, most: Any, _: Any) -> Any:
        """A step and a zero that are data; those of channels are PyTorch's decomposition."""
        steps_in_one = (1 / jnp.asarray(scale, "float64")).astype("float32")
        return jnp.clip(jnp.round(x.astype("float32") * steps_in_one) + zero, least, most)

    def unstepped(x: Any, scale: Any, zero: Any, *_: Any, **__: Any) -> Any:
        return (x.astype("float32") - zero) * jnp.asarray(scale, "float32")

    def chosen(x: Any, least: int, most: int, eps: float, element: Any, *, is_symmetric: bool = False) -> Any:
        """The step and the zero for all elements of `x`."""
        low, high = (jnp.minimum(jnp.min(x), 0).astype("float32"), jnp.maximum(jnp.max(x), 0).astype("float32"))
        width = jnp.maximum(-low, high) * 2 if is_symmetric else high - low
        step = jnp.maximum(width / (most - least), jnp.float32(eps))
        zero = jnp.clip(least - jnp.round(low / step), least, most)
        zero = jnp.full_like(zero, 128 * (element == torch.uint8)) if is_symmetric else zero
        return step.reshape(1), zero.reshape(1)

    def of_channels(x: Any, scale: Any, zero: Any, axis: int, least: int, most: int) -> Any:
        shape = [-1 if number == axis % x.ndim else 1 for number in range(x.ndim)]
        return rounded(x, scale.reshape(shape), zero.reshape(shape), least, most)

    def if_enabled(x: Any, scale: Any, zero: Any, enabled: Any, least: int, most: int) -> Any:
        found, is_in_range = rounded(x, scale, zero, least, most)
        return jnp.where(enabled != 0, found, x), is_in_range | (enabled == 0)

    quantized, rows = torch.ops.quantized_decomposed, dict[Any, Row]()
    if hasattr(quantized, "quantize_per_tensor"):  # PyTorch knows them once a graph was quantized
        rows = {
            quantized.quantize_per_tensor: stepped,
            quantized.dequantize_per_tensor: unstepped,
            quantized.choose_qparams: chosen,
            quantized.choose_qparams_symmetric: partial(chosen, is_symmetric=True),
        }
    return rows | {
        aten.fake_quantize_per_tensor_affine_cachemask.default: rounded,
        aten.fake_quantize_per_channel_affine_cachemask.default: of_channels,
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: if_enabled,
        aten._int_mm.default: lambda a, b: lax.dot(a, b, preferred_element_type="int32"),
        aten._weight_int8pack_mm.default: lambda x, w, scales: (x @ w.T.astype(x.dtype)) * scales,
    }


# -------------------------------------------------------------------------------------------------------------- gradients


def of_gradients(
    torch: ModuleType, jax: ModuleType, own: Mapping[Any, Row], table: Mapping[Any, Any]
) -> dict[Any, Row]:
    """Gradients that PyTorch has as ops of their own: JAX's of the row, from the gradient of the result."""
    jnp, aten = jax.numpy, torch.ops.aten

    def by(forward: Row) -> Row:
        return rounded_once(jax, lambda of_result, x, *how: jax.vjp(lambda x: forward(x, *how), x)[1](of_result)[0])

    def adaptive(rank: int) -> Row:
        forward = by(table[aten._adaptive_avg_pool2d].func)
        return lambda of_result, x: forward(of_result, x, list(of_result.shape[-rank:]))

    def at_places(rank: int) -> Row:
        """A gradient is added at the place that its window's largest element has."""

        def row(of_result: Any, x: Any, *how: Any) -> Any:
            lines, size = math.prod(x.shape[:-rank]), math.prod(x.shape[-rank:])
            at = jnp.arange(lines)[:, None], how[-1].reshape(lines, -1)
            found = jnp.zeros((lines, size), of_result.dtype).at[at].add(of_result.reshape(lines, -1))
            return found.reshape(x.shape)

        return rounded_once(jax, row)

    def parts(kind: str, before: Any, after: Any, corners: bool, factor: Any) -> list[tuple[Any, Any]]:
        """Of what each element along an axis is made when a picture is resized: places, and their weights."""
        real = partial(jnp.asarray, dtype="float32")
        if corners:
            step = real(before - 1) / jnp.maximum(real(after - 1), 1)
        else:
            step = real(1 / factor) if factor else real(before) / real(after)
        number = jnp.arange(after).astype("float32")
        if kind in ("nearest", "exact"):
            at, weights = jnp.floor((number + (0.5 if kind == "exact" else 0)) * step), [jnp.ones_like(number)]
        else:
            place = number * step if corners else (number + 0.5) * step - 0.5
            place = jnp.maximum(place, 0) if kind == "linear" else place
            at = jnp.floor(place) - (kind == "cubic")
            weights = [
                jnp.maximum(1 - distance, 0)
                if kind == "linear"
                else jnp.where(
                    distance <= 1,
                    (1.25 * distance - 2.25) * distance**2 + 1,
                    ((-0.75 * distance + 3.75) * distance - 6) * distance + 3,
                )
                for distance in (abs(place - at - k) for k in range(2 if kind == "linear" else 4))
            ]
        return [(jnp.clip(at.astype("int64") + k, 0, before - 1), weight) for k, weight in enumerate(weights)]

    def resized(kind: str, rank: int, x: Any, size: Any, *how: Any) -> Any:
        corners, *factors = how if kind in ("linear", "cubic") else (False, *how)
        factors = [*factors, *[None] * rank]
        for number in range(rank):
            axis, shape = x.ndim - rank + number, (-1, *[1] * (rank - 1 - number))
            which = parts(kind, x.shape[axis], size[number], corners, factors[number])
            x = sum(jnp.take(x, at, axis=axis) * weight.reshape(shape) for at, weight in which)
        return x

    def of_resized(kind: str, rank: int) -> Row:
        def row(of_result: Any, size: Any, before: Any, *how: Any) -> Any:
            x = jnp.zeros(before, of_result.dtype)
            return jax.vjp(lambda x: resized(kind, rank, x, size, *how), x)[1](of_result)[0]

        return rounded_once(jax, row)

    def of_attention(
        of_result: Any, q: Any, k: Any, v: Any, *given: Any, attn_mask: Any = None, scale: Any = None
    ) -> Any:
        """A row of which nothing is allowed has no gradient."""
        *_, dropout, causal = given
        if attn_mask is not None:
            is_bool = attn_mask.dtype == "bool"
            has_any = jnp.any(attn_mask if is_bool else attn_mask > -jnp.inf, axis=-1, keepdims=True)
            of_result = jnp.where(has_any, of_result, 0)
            attn_mask = attn_mask | ~has_any if is_bool else jnp.where(has_any, attn_mask, 0)
        forward = own[aten.scaled_dot_product_attention.default]
        return list(jax.vjp(lambda *three: forward(*three, attn_mask, dropout, causal, scale), q, k, v)[1](of_result))

    def beyond(of_result: Any, x: Any, limit: float) -> Any:
        return jnp.where((x >= -limit) & (x <= limit), 0, of_result)

    replicated = by(lambda x, widths: own[aten.pad.default](x, widths, "replicate"))
    nearest = {
        **{f"upsample_nearest{rank}d": ("nearest", rank) for rank in (1, 2, 3)},
        **{f"_upsample_nearest_exact{rank}d": ("exact", rank) for rank in (1, 2, 3)},
    }
    others = {f"upsample_{word}linear{rank}d": ("linear", rank) for rank, word in enumerate(("", "bi", "tri"), 1)}
    kinds = {**nearest, **others, "upsample_bicubic2d": ("cubic", 2)}
    return {
        # PyTorch does not decompose these where their gradients are traced.
        **{getattr(aten, name).default: rounded_once(jax, partial(resized, *kind)) for name, kind in nearest.items()},
        **{getattr(aten, f"{name}_backward").default: of_resized(*kind) for name, kind in kinds.items()},
        **{getattr(aten, f"replication_pad{rank}d_backward").default: replicated for rank in (1, 2, 3)},
        **{getattr(aten, f"avg_pool{rank}d_backward").default: by(own[aten.avg_pool2d]) for rank in (2, 3)},
        **{getattr(aten, f"_adaptive_avg_pool{rank}d_backward").default: adaptive(rank) for rank in (2, 3)},
        **{getattr(aten, f"adaptive_max_pool{rank}d_backward").default: at_places(rank) for rank in (2, 3)},
        **{getattr(aten, f"max_pool{rank}d_with_indices_backward").default: at_places(rank) for rank in (2, 3)},
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default: of_attention,
        aten.hardshrink_backward.default: beyond,
        aten.softshrink_backward.default: beyond,
    }
