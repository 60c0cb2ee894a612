"""The StableHLO form of each HLO opcode: the op's name, the text of its attributes, and the computations that become regions.

    PRINTED["transpose"]    ("stablehlo.transpose", op -> {"permutation": "array<i64: 1, 0>"}, ())
    PRINTED["reduce"]       ("stablehlo.reduce", op -> {"dimensions": "array<i64: 1>"}, ("to_apply",))

`printer` adds operands, types and regions. Tuples, loops, branches and calls are not in this table; the printer handles them.
Source: StableHLO specification (https://openxla.org/stablehlo/spec).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.backend_configs import SHAPES, shape_operands
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.shape_ops import rows
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dialects.isa import isa
from xla_emitters.text.stablehlo.computations import plain_ops
from xla_emitters.text.stablehlo.literals import literal_text
from xla_emitters.text.stablehlo.op_table import (
    GENERATOR,
    GROUPS,
    OP_ROWS,
    array_text,
    dimension,
    enum_text,
    list_of,
    lists,
    number,
    number_of,
    numbers_text,
    truth,
    word_of,
)
from xla_emitters.text.stablehlo.rules import API_VERSIONS, CHLO_OPCODES, ELEMENTWISE
from xla_emitters.text.stablehlo.types import stablehlo_type

LAYOUTS = ("operand_layouts", "result_layouts", "output_operand_aliases")


def is_kept_attribute(key: str) -> bool:
    """Whether an attribute belongs to a dialect that we print. Shardings do not: they name meshes, which are not printed."""
    return "." in key and not key.startswith("sdy.")


Attributes: TypeAlias = Callable[[HloOp], dict[str, str]]


def _none(op: HloOp) -> dict[str, str]:
    return {}


def _constant(op: HloOp) -> dict[str, str]:
    value = op.properties.get("value")
    if value is None:
        return {"value": f"dense_resource<__elided__> : {stablehlo_type(op.result.type)}"}
    if not is_dense(value):
        raise op.unsupported("no StableHLO of a literal that is a tuple")
    return {"value": literal_text(undense(value), element_of(op.result))}


def _columns(op: HloOp, key: str, *names: str) -> dict[str, str]:
    """Rows of numbers, one per dimension, transposed to a list per column."""
    found = op.properties[key]
    assert isa(found, ArrayAttr[Attribute])
    table = rows(found)
    return {name: array_text(row[i] for row in table) for i, name in enumerate(names)}


def _precision(op: HloOp) -> dict[str, str]:
    words = [word.strip().upper() for word in word_of(op, "operand_precision").strip("{}").split(",") if word.strip()]
    return {"precision_config": f"[{', '.join(enum_text('precision', word) for word in words)}]"} if words else {}


def _dot(op: HloOp) -> dict[str, str]:
    names = {
        "lhs_batching_dimensions": "lhs_batch_dims",
        "rhs_batching_dimensions": "rhs_batch_dims",
        "lhs_contracting_dimensions": "lhs_contracting_dims",
        "rhs_contracting_dimensions": "rhs_contracting_dims",
    }
    shown = ", ".join(f"{key} = {list(list_of(op, name))}" for key, name in names.items())
    found = {"dot_dimension_numbers": f"#stablehlo.dot<{shown}>"} | _precision(op)
    if (algorithm := word_of(op, "algorithm")) and algorithm != "unset":
        found["algorithm"] = _algorithm(op, algorithm)
    return found


def _algorithm(op: HloOp, text: str) -> str:
    summed, *times = text.removeprefix("dot_any_f8_any_f8_").removesuffix("_fast_accum").split("_x")
    if "any_f8" in text:
        types = [str(element_of(value).ir_type) for value in (*op.operands, op.result)]
        types[2] = "f32" if summed == "f32" else types[2]
    else:
        types = summed.removeprefix("dot_").split("_")
    return (
        f"#stablehlo.dot_algorithm<lhs_precision_type = {types[0]}, rhs_precision_type = {types[1]}, "
        f"accumulation_type = {types[2]}, lhs_component_count = 1, rhs_component_count = 1, "
        f"num_primitive_operations = {times[0] if times else 1}, "
        f"allow_imprecise_accumulation = {'true' if text.endswith('_fast_accum') else 'false'}>"
    )


def _windows(window: Window, op: HloOp) -> dict[str, str]:
    """The window attributes of a convolution, except its size and padding."""
    dims = window.dims
    reversed_ = ", ".join("true" if dim.reversed else "false" for dim in dims)
    return {
        "window_strides": array_text(dim.stride for dim in dims),
        "lhs_dilation": array_text(dim.base_dilation for dim in dims),
        "rhs_dilation": array_text(dim.window_dilation for dim in dims),
        "window_reversal": f"array<i1: {reversed_}>" if dims else "array<i1>",
        "dimension_numbers": _labels(op),
        "feature_group_count": f"{number_of(op, 'feature_group_count', 1)} : i64",
        "batch_group_count": f"{number_of(op, 'batch_group_count', 1)} : i64",
    } | _precision(op)


def _labels(op: HloOp) -> str:
    image, kernel, result = word_of(op, "dim_labels").replace("->", "_").split("_")
    shown = [f"[{', '.join(labels)}]" for labels in (image, kernel, result)]
    return f"#stablehlo.conv<{shown[0]}x{shown[1]}->{shown[2]}>"


def _window(op: HloOp) -> Window:
    found = op.properties.get("window")
    return found.data if isinstance(found, WindowAttr) else Window()


def _padding(window: Window) -> str:
    return numbers_text(np.asarray([(dim.low, dim.high) for dim in window.dims], np.int64).reshape(-1, 2))


def _convolution(op: HloOp) -> dict[str, str]:
    window = _window(op)
    return _windows(window, op) | {"padding": _padding(window)}


def _reduce_window(op: HloOp) -> dict[str, str]:
    window = _window(op)
    return {
        "window_dimensions": array_text(dim.size for dim in window.dims),
        "window_strides": array_text(dim.stride for dim in window.dims),
        "base_dilations": array_text(dim.base_dilation for dim in window.dims),
        "window_dilations": array_text(dim.window_dilation for dim in window.dims),
        "padding": _padding(window),
    }


def _select_and_scatter(op: HloOp) -> dict[str, str]:
    found = _reduce_window(op)
    return {key: found[key] for key in ("window_dimensions", "window_strides", "padding")}


def _distribution(op: HloOp) -> dict[str, str]:
    word = word_of(op, "distribution").removeprefix("rng_").upper()
    return {"rng_distribution": enum_text("rng_distribution", word)}


def _top_k(op: HloOp) -> dict[str, str]:
    if not number_of(op, "largest", 1):
        raise op.unsupported("no StableHLO for the smallest elements")
    return {"k": f"{number_of(op, 'k')} : i64"}


def _target(target: str) -> dict[str, str]:
    return {"call_target_name": json.dumps(target), "api_version": "2 : i32"}


def _assertion(op: HloOp) -> dict[str, str]:
    message = _escaped(word_of(op, "message"))
    return _target("shape_assertion") | {"error_message": message, "has_side_effect": "true"}


def _escaped(text: str) -> str:
    """`text` escaped for a string of MLIR."""
    shown = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode())
    return f'"{shown}"'


def _custom_call(op: HloOp) -> dict[str, str]:
    found = {
        "call_target_name": word_of(op, "custom_call_target"),
        "api_version": f"{API_VERSIONS.index(word) + 1 if (word := word_of(op, 'api_version')) else 1} : i32",
        "has_side_effect": "true" if number_of(op, "custom_call_has_side_effect") else "false",
    }
    config = op.attributes.get("backend_config")
    if isinstance(config, StringAttr):
        found["backend_config"] = _escaped(str(json.loads(config.data)) if config.data.startswith('"') else config.data)
    for key, value in op.attributes.items():
        if isinstance(value, StringAttr) and (is_kept_attribute(key) or key in LAYOUTS):
            found[key] = value.data
    if shapes := shape_operands(op):
        found[SHAPES] = numbers_text(np.asarray(shapes))
    return found


def _all_to_all(op: HloOp) -> dict[str, str]:
    groups = op.properties.get("replica_groups")
    count = len(integers(groups.data[0])) if isa(groups, ArrayAttr[DenseArrayBase]) and groups.data else 1
    return {
        **{key: text for field in GROUPS for key, text in field.text(op).items()},
        **dimension("split_dimension").text(op),
        **dimension("concat_dimension").text(op),
        "split_count": f"{count} : i64",
    }


Row: TypeAlias = tuple[str, Attributes, tuple[str, ...]]


def _row(name: str, attributes: Attributes = _none, *regions: str) -> Row:
    """An op's name, its attributes, and the properties that name the computations of its regions."""
    return f"stablehlo.{name}", attributes, regions


PRINTED: dict[str, Row] = {
    **{opcode: _row(name) for name, opcode in (ELEMENTWISE | plain_ops()).items()},
    **{name: (f"chlo.{name}", _none, ()) for name in CHLO_OPCODES},
    **{row.opcode: _row(name, row.text, *(key for key, _ in row.regions)) for name, row in OP_ROWS.items()},
    "clamp": _row("clamp"),
    "constant": _row("constant", _constant),
    "iota": _row("iota", number("iota_dimension").text),
    "broadcast": _row("broadcast_in_dim", lists("broadcast_dimensions", "dimensions").text),
    "slice": _row("slice", lambda op: _columns(op, "slice", "start_indices", "limit_indices", "strides")),
    "pad": _row("pad", lambda op: _columns(op, "padding", "edge_padding_low", "edge_padding_high", "interior_padding")),
    "dynamic-slice": _row("dynamic_slice", lists("slice_sizes", "dynamic_slice_sizes").text),
    "dot": _row("dot_general", _dot),
    "convolution": _row("convolution", _convolution),
    "reduce": _row("reduce", lists("dimensions", "dimensions").text, "to_apply"),
    "reduce-window": _row("reduce_window", _reduce_window, "to_apply"),
    "select-and-scatter": _row("select_and_scatter", _select_and_scatter, "select", "scatter"),
    "sort": _row("sort", lambda op: dimension().text(op) | truth("is_stable").text(op), "to_apply"),
    "opt-barrier": _row("optimization_barrier"),
    "after-all": _row("after_all"),
    "all-to-all": _row("all_to_all", _all_to_all),
    "topk": ("chlo.top_k", _top_k, ()),
    "custom-call": _row("custom_call", _custom_call),
    "dynamic-conv": _row("dynamic_conv", lambda op: _windows(_window(op), op)),
    "dynamic-reduce-window": _row("custom_call", lambda op: _target("stablehlo.dynamic_reduce_window")),
    "dynamic-top-k": _row("custom_call", lambda op: _target("stablehlo.dynamic_top_k")),
    "dynamic-rng": _row("rng", _distribution),
    "dynamic-rng-bit-generator": _row(
        "custom_call", lambda op: _target("stablehlo.dynamic_rng_bit_generator") | GENERATOR.text(op)
    ),
    "shape-assertion": _row("custom_call", _assertion),
    "print": _row(
        "custom_call", lambda op: _target("print") | {"name": _escaped(word_of(op, "label")), "has_side_effect": "true"}
    ),
}
"""Opcode -> its StableHLO form."""
