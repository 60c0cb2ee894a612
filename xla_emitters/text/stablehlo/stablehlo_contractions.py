"""Dots, convolutions and windows: from StableHLO to HLO, and HLO's as StableHLO's attributes.

    stablehlo.dot_general ..., contracting_dims = [2] x [0]                  dot, lhs_contracting_dims={2} ...
    stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]}      convolution, window={...}
    window_dimensions = array<i64: 1, 3>, window_strides = ...               window={size=1x3 ...} of reduce-window, select-and-scatter

Source: StableHLO specification (https://openxla.org/stablehlo/spec); docs/reference/1 6.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, dims_of, element_of
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dtypes import Array, dtype
from xla_emitters.text.stablehlo.attribute_values import ConvolutionLabels, is_integers
from xla_emitters.text.stablehlo.computations import Conversion
from xla_emitters.text.stablehlo.fields import (
    Field,
    Properties,
    Texts,
    array_text,
    enum_text,
    list_of,
    nonempty,
    number_of,
    numbers_text,
    word_of,
)

# -------------------------------------------------------------------------------------------------------------------- dots


def _read_precision(c: Conversion) -> Properties:
    words = [word.lower() for word in c.attributes.words("precision_config")]
    is_said = any(word != "default" for word in words)
    return {"operand_precision": StringAttr(f"{{{','.join(words)}}}") if is_said else None}


def _precision_text(op: HloOp) -> Texts:
    words = [word.strip().upper() for word in word_of(op, "operand_precision").strip("{}").split(",") if word.strip()]
    return {"precision_config": f"[{', '.join(enum_text('precision', word) for word in words)}]"} if words else {}


PRECISION = Field(_read_precision, _precision_text)

_PAIRED = {
    "lhs_batching_dimensions": "lhs_batch_dims",
    "rhs_batching_dimensions": "rhs_batch_dims",
    "lhs_contracting_dimensions": "lhs_contracting_dims",
    "rhs_contracting_dimensions": "rhs_contracting_dims",
}
"""The lists of `#stablehlo.dot<...>` -> HLO's. In the pretty form they are `lhs_batching_dims` ..."""


def _read_paired(c: Conversion) -> Properties:
    found, name = dict[str, Attribute | None](), "dot_dimension_numbers"
    for key, own in _PAIRED.items():
        if name in c.attributes:
            numbers = c.attributes.integers_in(name, key)
        else:
            numbers = c.attributes.integers(key.replace("dimensions", "dims"), [])
        found[own] = nonempty(numbers) if "batch" in own else integer_array(numbers)
    return found


def _paired_text(op: HloOp) -> Texts:
    shown = ", ".join(f"{key} = {list(list_of(op, name))}" for key, name in _PAIRED.items())
    return {"dot_dimension_numbers": f"#stablehlo.dot<{shown}>"}


def _read_algorithm(c: Conversion) -> Properties:
    """`<lhs_precision_type = bf16, ..., accumulation_type = f32, num_primitive_operations = 3>` to HLO's dot_bf16_bf16_f32_x3."""
    if "algorithm" not in c.attributes:
        return {}
    parts = c.attributes.mapping("algorithm")
    names = [_type_word(parts.get(f"{name}_type")) for name in ("lhs_precision", "rhs_precision", "accumulation")]
    count = c.attributes.integer_in("algorithm", "num_primitive_operations", 1)
    if any(name.startswith("f8") for name in names[:2]):
        summed = "f32" if names[2] == "f32" else "any"
        fast = "_fast_accum" if parts.get("allow_imprecise_accumulation") is True else ""
        return {"algorithm": StringAttr(f"dot_any_f8_any_f8_{summed}{fast}")}
    return {"algorithm": StringAttr(f"dot_{'_'.join(names)}{f'_x{count}' if count != 1 else ''}")}


def _type_word(value: Any) -> str:
    """The name of a type in an algorithm, in HLO's spelling."""
    return str(value).lower().strip("'\"")


def _algorithm_text(op: HloOp) -> Texts:
    text = word_of(op, "algorithm")
    if not text or text == "unset":
        return {}
    summed, *times = text.removeprefix("dot_any_f8_any_f8_").removesuffix("_fast_accum").split("_x")
    if "any_f8" in text:
        types = [str(element_of(value).ir_type) for value in (*op.operands, op.result)]
        types[2] = "f32" if summed == "f32" else types[2]
    else:
        types = summed.removeprefix("dot_").split("_")
    shown = (
        f"#stablehlo.dot_algorithm<lhs_precision_type = {types[0]}, rhs_precision_type = {types[1]}, "
        f"accumulation_type = {types[2]}, lhs_component_count = 1, rhs_component_count = 1, "
        f"num_primitive_operations = {times[0] if times else 1}, "
        f"allow_imprecise_accumulation = {'true' if text.endswith('_fast_accum') else 'false'}>"
    )
    return {"algorithm": shown}


DOT = (Field(_read_paired, _paired_text), PRECISION, Field(_read_algorithm, _algorithm_text))
"""The attributes of dot_general."""


def dot(c: Conversion) -> SSAValue:
    lhs, _ = c.expect_operands(2)
    return c.add(
        "dot",
        c.operands,
        c.type,
        lhs_contracting_dims=integer_array([len(dims_of(lhs)) - 1]),
        rhs_contracting_dims=integer_array([0]),
        **PRECISION.read(c),
    )


# ----------------------------------------------------------------------------------------------------------------- windows


def window(c: Conversion, sizes: Sequence[int], *, pad: Sequence[int] | None, **lists: Sequence[int]) -> WindowAttr:
    """HLO's window; empty lists mean the default."""
    found = {"size": list(sizes), **{name: list(numbers) for name, numbers in lists.items() if len(numbers)}}
    if pad is not None and len(pad):
        found["pad"] = list(pad)
    if not sizes:
        return WindowAttr(Window())
    try:
        return WindowAttr(Window.of_lists(dict(found)))
    except ValueError as error:
        raise c.wrong(str(error)) from None


def _padding_of(c: Conversion, rank: int) -> Array | None:
    """The attribute `padding`: rows of (low, high), a literal or a list of lists; None if omitted."""
    if "padding" not in c.attributes:
        return None
    value = c.attributes.found["padding"].value
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        if not all(is_integers(row) and len(row) == 2 for row in listed):
            raise c.attributes.wrong("padding", "rows of two numbers")
        found = np.asarray(listed, np.int64)
    else:
        found = c.attributes.array("padding")
    if found.size != 2 * rank:
        raise c.attributes.wrong("padding", f"{rank} rows of two numbers")
    return found


def _read_sliding(c: Conversion) -> Properties:
    rank = len(dims_of(c.operands[0])) if c.operands else 0
    pad = _padding_of(c, rank)
    along = window(
        c,
        c.attributes.integers("window_dimensions", [1] * rank),
        pad=None if pad is None else pad.reshape(-1).tolist(),
        stride=c.attributes.integers("window_strides", []),
        lhs_dilate=c.attributes.integers("base_dilations", []),
        rhs_dilate=c.attributes.integers("window_dilations", []),
    )
    return {"window": along}


def _window(op: HloOp) -> Window:
    found = op.properties.get("window")
    return found.data if isinstance(found, WindowAttr) else Window()


def _padding(window: Window) -> str:
    return numbers_text(np.asarray([(dim.low, dim.high) for dim in window.dims], np.int64).reshape(-1, 2))


def _sliding_text(op: HloOp) -> Texts:
    dims = _window(op).dims
    return {
        "window_dimensions": array_text(dim.size for dim in dims),
        "window_strides": array_text(dim.stride for dim in dims),
        "base_dilations": array_text(dim.base_dilation for dim in dims),
        "window_dilations": array_text(dim.window_dilation for dim in dims),
        "padding": _padding(_window(op)),
    }


def _selecting_text(op: HloOp) -> Texts:
    return {key: text for key, text in _sliding_text(op).items() if "dilations" not in key}


SLIDING = Field(_read_sliding, _sliding_text)
"""The window of reduce_window."""
SELECTING = Field(_read_sliding, _selecting_text)
"""The window of select_and_scatter."""

# ------------------------------------------------------------------------------------------------------------ convolutions


def _labels(c: Conversion) -> ConvolutionLabels:
    if isinstance(c.attributes.get("dimension_numbers", object, "labels"), dict):
        return _numbered_labels(c)
    return c.attributes.get("dimension_numbers", ConvolutionLabels, "[b, f, 0]x[o, i, 0]->[b, f, 0]")


def _numbered_labels(c: Conversion) -> ConvolutionLabels:
    """The labels of `{input_batch_dimension = 0, input_spatial_dimensions = [1, 2], ...}`: MHLO's until 2022, StableHLO's after `raw`."""

    def labels(array: str, *words: str) -> tuple[str, ...]:
        spatial = c.attributes.integers_in("dimension_numbers", f"{array}_spatial_dimensions")
        places = {
            c.attributes.integer_in("dimension_numbers", f"{array}_{word}_dimension", -1): word[0] for word in words
        }
        places |= {dim: str(number) for number, dim in enumerate(spatial)}
        if sorted(places) != list(range(len(spatial) + 2)):
            raise c.attributes.wrong("dimension_numbers", f"a number for each dimension of the {array}")
        return tuple(places[dim] for dim in sorted(places))

    return ConvolutionLabels(
        labels("input", "batch", "feature"),
        labels("kernel", "output_feature", "input_feature"),
        labels("output", "batch", "feature"),
    )


def _groups(c: Conversion) -> dict[str, Attribute | None]:
    """feature_group_count and batch_group_count, if they are not 1."""
    counts = {name: c.attributes.integer(name, 1) for name in ("feature_group_count", "batch_group_count")}
    return {name: IntegerAttr(count, i64) if count != 1 else None for name, count in counts.items()}


def _spatial_window(c: Conversion, kernel: SSAValue, labels: ConvolutionLabels, padding: Array | None) -> WindowAttr:
    spatial = [str(i) for i in range(len(labels.kernel) - 2)]
    sizes = [dims_of(kernel)[labels.kernel.index(dim)] if dim in labels.kernel else 0 for dim in spatial]
    return window(
        c,
        [max(size, 0) for size in sizes],
        pad=None if padding is None else padding.reshape(-1).tolist(),
        stride=c.attributes.integers("window_strides", []),
        lhs_dilate=c.attributes.integers("lhs_dilation", []),
        rhs_dilate=c.attributes.integers("rhs_dilation", []),
        rhs_reversal=[int(flag) for flag in c.attributes.integers("window_reversal", [])],
    )


def convolution(c: Conversion) -> SSAValue:
    image, kernel = c.expect_operands(2)
    labels = _labels(c)
    spatial = len(labels.kernel) - 2
    pad = _padding_of(c, spatial)
    if any(dims_of(kernel)[dim] == UNBOUNDED for dim, label in enumerate(labels.kernel) if label not in ("i", "o")):
        rows = np.zeros((spatial, 2), np.int64) if pad is None else pad.reshape(spatial, 2)
        padding = c.constant(rows, array_type(dtype("s64").ir_type, rows.shape))
        return _convolution_by_value(c, image, kernel, padding, labels)
    along = _spatial_window(c, kernel, labels, pad)
    return c.add(
        "convolution",
        [image, kernel],
        c.type,
        dim_labels=StringAttr(labels.hlo()),
        window=along if along.data.dims else None,
        **PRECISION.read(c),
        **_groups(c),
    )


def dynamic_conv(c: Conversion) -> SSAValue:
    """MHLO's padding may have one dimension: low and high of the first spatial dimension, of the second ..."""
    image, kernel, padding = c.expect_operands(3)
    labels = _labels(c)
    spatial = len(labels.kernel) - 2
    if dims_of(padding) == (2 * spatial,):
        padding = c.add("reshape", [padding], array_type(element_of(padding).ir_type, (spatial, 2)))
    return _convolution_by_value(c, image, kernel, padding, labels)


def _convolution_by_value(
    c: Conversion, image: SSAValue, kernel: SSAValue, padding: SSAValue, labels: ConvolutionLabels
) -> SSAValue:
    """A convolution whose padding, or kernel's size, is known only at run time."""
    return c.add(
        "dynamic-conv",
        [image, kernel, padding],
        c.type,
        dim_labels=StringAttr(labels.hlo()),
        window=_spatial_window(c, kernel, labels, None),
        **PRECISION.read(c),
        **_groups(c),
    )


def _labels_text(op: HloOp) -> str:
    image, kernel, result = word_of(op, "dim_labels").replace("->", "_").split("_")
    shown = [f"[{', '.join(labels)}]" for labels in (image, kernel, result)]
    return f"#stablehlo.conv<{shown[0]}x{shown[1]}->{shown[2]}>"


def dynamic_conv_text(op: HloOp) -> Texts:
    """The window attributes of a convolution, except its size and padding."""
    dims = _window(op).dims
    reversed_ = ", ".join("true" if dim.reversed else "false" for dim in dims)
    return {
        "window_strides": array_text(dim.stride for dim in dims),
        "lhs_dilation": array_text(dim.base_dilation for dim in dims),
        "rhs_dilation": array_text(dim.window_dilation for dim in dims),
        "window_reversal": f"array<i1: {reversed_}>" if dims else "array<i1>",
        "dimension_numbers": _labels_text(op),
        "feature_group_count": f"{number_of(op, 'feature_group_count', 1)} : i64",
        "batch_group_count": f"{number_of(op, 'batch_group_count', 1)} : i64",
    } | _precision_text(op)


def convolution_text(op: HloOp) -> Texts:
    return dynamic_conv_text(op) | {"padding": _padding(_window(op))}
