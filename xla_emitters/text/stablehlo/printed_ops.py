"""The StableHLO form of each HLO opcode: the op's name, the text of its attributes, and the computations that become regions.

    PRINTED["transpose"]    ("stablehlo.transpose", op -> {"permutation": "array<i64: 1, 0>"}, ())
    PRINTED["reduce"]       ("stablehlo.reduce", op -> {"dimensions": "array<i64: 1>"}, ("to_apply",))

`printer` adds operands, types and regions. Tuples, loops, branches and calls are not in this table; the printer handles them.
Source: StableHLO specification (https://openxla.org/stablehlo/spec).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.backend_configs import SHAPES, shape_operands
from xla_emitters.dialects.hlo.base import HloOp, integer, integers
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.shape_ops import rows
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dialects.isa import isa
from xla_emitters.dtypes import Array, dtype
from xla_emitters.text.stablehlo.literals import literal_text
from xla_emitters.text.stablehlo.rules import (
    API_VERSIONS,
    CHLO_OPCODES,
    ELEMENTWISE,
    GATHER_LISTS,
    GENERATORS,
    PLAIN,
    SCATTER_LISTS,
)
from xla_emitters.text.stablehlo.types import stablehlo_type

LAYOUTS = ("operand_layouts", "result_layouts", "output_operand_aliases")


def is_kept_attribute(key: str) -> bool:
    """Whether an attribute belongs to a dialect that we print. Shardings do not: they name meshes, which are not printed."""
    return "." in key and not key.startswith("sdy.")


def number_of(op: HloOp, key: str, default: int = 0) -> int:
    return integer(op.properties.get(key), default)


def word_of(op: HloOp, key: str) -> str:
    found = op.properties.get(key)
    return found.data if isinstance(found, StringAttr) else ""


def _list(op: HloOp, key: str) -> tuple[int, ...]:
    return integers(op.properties.get(key))


def _array(numbers: Iterable[int]) -> str:
    shown = ", ".join(map(str, numbers))
    return f"array<i64: {shown}>" if shown else "array<i64>"


def _flag(op: HloOp, key: str) -> str:
    return "true" if number_of(op, key) else "false"


def enum_text(kind: str, word: str) -> str:
    return f"#stablehlo<{kind} {word}>"


def numbers_text(array: Array) -> str:
    """A literal of s64."""
    return literal_text(array.astype(np.int64), dtype("s64"))


Attributes: TypeAlias = Callable[[HloOp], dict[str, str]]


def _none(op: HloOp) -> dict[str, str]:
    return {}


def _lists(**names: str) -> Attributes:
    """Attributes that are lists of numbers, given as StableHLO's name = HLO's name."""
    return lambda op: {key: _array(_list(op, name)) for key, name in names.items()}


def _numbers_of(**names: str) -> Attributes:
    """Attributes that are numbers, given likewise."""
    return lambda op: {key: f"{number_of(op, name)} : i64" for key, name in names.items()}


def _dimension(key: str) -> Attributes:
    """An attribute with the only element of `dimensions`."""
    return lambda op: {key: f"{_list(op, 'dimensions')[0]} : i64"}


def _constant(op: HloOp) -> dict[str, str]:
    value = op.properties.get("value")
    if value is None:
        return {"value": f"dense_resource<__elided__> : {stablehlo_type(op.result.type)}"}
    if not is_dense(value):
        raise op.unsupported("no StableHLO of a literal that is a tuple")
    return {"value": literal_text(undense(value), element_of(op.result))}


def _compare(op: HloOp) -> dict[str, str]:
    found = {"comparison_direction": enum_text("comparison_direction", word_of(op, "direction"))}
    kind = word_of(op, "type")
    return found | ({"compare_type": enum_text("comparison_type", kind)} if kind else {})


def _columns(op: HloOp, key: str, *names: str) -> dict[str, str]:
    """Rows of numbers, one per dimension, transposed to a list per column."""
    found = op.properties[key]
    assert isa(found, ArrayAttr[Attribute])
    table = rows(found)
    return {name: _array(row[i] for row in table) for i, name in enumerate(names)}


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
    shown = ", ".join(f"{key} = {list(_list(op, name))}" for key, name in names.items())
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
        "window_strides": _array(dim.stride for dim in dims),
        "lhs_dilation": _array(dim.base_dilation for dim in dims),
        "rhs_dilation": _array(dim.window_dilation for dim in dims),
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


def _dynamic_conv(op: HloOp) -> dict[str, str]:
    return _windows(_window(op), op)


def _reduce_window(op: HloOp) -> dict[str, str]:
    window = _window(op)
    return {
        "window_dimensions": _array(dim.size for dim in window.dims),
        "window_strides": _array(dim.stride for dim in window.dims),
        "base_dilations": _array(dim.base_dilation for dim in window.dims),
        "window_dilations": _array(dim.window_dilation for dim in window.dims),
        "padding": _padding(window),
    }


def _select_and_scatter(op: HloOp) -> dict[str, str]:
    found = _reduce_window(op)
    return {key: found[key] for key in ("window_dimensions", "window_strides", "padding")}


def _struct(op: HloOp, kind: str, names: Sequence[str]) -> str:
    parts = [f"{name} = {list(_list(op, name))}" for name in names if _list(op, name)]
    parts.append(f"index_vector_dim = {number_of(op, 'index_vector_dim')}")
    return f"#stablehlo.{kind}<{', '.join(parts)}>"


def _dynamic_gather(op: HloOp) -> dict[str, str]:
    return {
        "dimension_numbers": _struct(op, "gather", GATHER_LISTS),
        "indices_are_sorted": _flag(op, "indices_are_sorted"),
    }


def _gather(op: HloOp) -> dict[str, str]:
    return _dynamic_gather(op) | {"slice_sizes": _array(_list(op, "slice_sizes"))}


def _scatter(op: HloOp) -> dict[str, str]:
    return {
        "scatter_dimension_numbers": _struct(op, "scatter", SCATTER_LISTS),
        "indices_are_sorted": _flag(op, "indices_are_sorted"),
        "unique_indices": _flag(op, "unique_indices"),
    }


def _sort(op: HloOp) -> dict[str, str]:
    return _dimension("dimension")(op) | {"is_stable": _flag(op, "is_stable")}


def _dynamic_broadcast(op: HloOp) -> dict[str, str]:
    found = {"broadcast_dimensions": _array(_list(op, "dimensions"))}
    for name in ("known_expanding", "known_nonexpanding"):
        if name in op.properties:
            found[f"{name}_dimensions"] = _array(_list(op, name))
    return found


def _distribution(op: HloOp) -> dict[str, str]:
    word = word_of(op, "distribution").removeprefix("rng_").upper()
    return {"rng_distribution": enum_text("rng_distribution", word)}


def _generator(op: HloOp) -> dict[str, str]:
    words = {hlo: word for word, hlo in GENERATORS.items()}
    return {"rng_algorithm": enum_text("rng_algorithm", words[word_of(op, "algorithm")])}


def _fft(op: HloOp) -> dict[str, str]:
    return {"fft_type": enum_text("fft_type", word_of(op, "fft_type")), "fft_length": _array(_list(op, "fft_length"))}


def _triangular_solve(op: HloOp) -> dict[str, str]:
    found = {key: _flag(op, key) for key in ("left_side", "lower", "unit_diagonal")}
    return found | {"transpose_a": enum_text("transpose", word_of(op, "transpose_a") or "NO_TRANSPOSE")}


def _norm(op: HloOp) -> dict[str, str]:
    epsilon = float(word_of(op, "epsilon"))
    return {"epsilon": f"{epsilon:.9e} : f32", "feature_index": f"{number_of(op, 'feature_index')} : i64"}


def _top_k(op: HloOp) -> dict[str, str]:
    if not number_of(op, "largest", 1):
        raise op.unsupported("no StableHLO for the smallest elements")
    return {"k": f"{number_of(op, 'k')} : i64"}


def _target(target: str) -> dict[str, str]:
    return {"call_target_name": json.dumps(target), "api_version": "2 : i32"}


def _assertion(op: HloOp) -> dict[str, str]:
    message = _escaped(word_of(op, "message"))
    return _target("shape_assertion") | {"error_message": message, "has_side_effect": "true"}


def _print(op: HloOp) -> dict[str, str]:
    return _target("print") | {"name": _escaped(word_of(op, "label")), "has_side_effect": "true"}


def _escaped(text: str) -> str:
    """`text` escaped for a string of MLIR."""
    shown = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode())
    return f'"{shown}"'


def _custom_call(op: HloOp) -> dict[str, str]:
    found = {
        "call_target_name": word_of(op, "custom_call_target"),
        "api_version": f"{API_VERSIONS.index(word) + 1 if (word := word_of(op, 'api_version')) else 1} : i32",
        "has_side_effect": _flag(op, "custom_call_has_side_effect"),
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


def _pairs(op: HloOp, key: str) -> str:
    """Lists of devices; shorter ones are padded to the longest with -1."""
    found = op.properties.get(key)
    lists = [integers(row) for row in found] if isa(found, ArrayAttr[DenseArrayBase]) else []
    if isinstance(found, StringAttr):
        raise op.unsupported(f"no StableHLO for {key}={found.data}")
    longest = max(map(len, lists), default=0)
    padded = [[*row, *[-1] * (longest - len(row))] for row in lists]
    return numbers_text(np.asarray(padded, np.int64).reshape(len(lists), longest))


def _devices(*along: str) -> Attributes:
    """Groups of devices, their channel, and for each name in `along` an attribute with the only element of `dimensions`."""

    def found(op: HloOp) -> dict[str, str]:
        attributes = {"replica_groups": _pairs(op, "replica_groups")} | _channel(op)
        if number_of(op, "use_global_device_ids"):
            attributes["use_global_device_ids"] = "unit"
        return attributes | {key: f"{_list(op, 'dimensions')[0]} : i64" for key in along}

    return found


def _channel(op: HloOp) -> dict[str, str]:
    handle = number_of(op, "channel_id")
    return {"channel_handle": f"#stablehlo.channel_handle<handle = {handle}, type = 1>"} if handle else {}


def _all_to_all(op: HloOp) -> dict[str, str]:
    groups = op.properties.get("replica_groups")
    count = len(integers(groups.data[0])) if isa(groups, ArrayAttr[DenseArrayBase]) and groups.data else 1
    return _devices("split_dimension", "concat_dimension")(op) | {"split_count": f"{count} : i64"}


Row: TypeAlias = tuple[str, Attributes, tuple[str, ...]]


def _row(name: str, attributes: Attributes = _none, *regions: str) -> Row:
    """An op's name, its attributes, and the properties that name the computations of its regions."""
    return f"stablehlo.{name}", attributes, regions


PRINTED: dict[str, Row] = {
    **{opcode: _row(name) for name, opcode in (ELEMENTWISE | PLAIN).items()},
    **{name: (f"chlo.{name}", _none, ()) for name in CHLO_OPCODES},
    "clamp": _row("clamp"),
    "compare": _row("compare", _compare),
    "reduce-precision": _row(
        "reduce_precision",
        lambda op: {key: f"{number_of(op, key)} : i32" for key in ("exponent_bits", "mantissa_bits")},
    ),
    "constant": _row("constant", _constant),
    "iota": _row("iota", _numbers_of(iota_dimension="iota_dimension")),
    "broadcast": _row("broadcast_in_dim", _lists(broadcast_dimensions="dimensions")),
    "reshape": _row("reshape"),
    "transpose": _row("transpose", _lists(permutation="dimensions")),
    "reverse": _row("reverse", _lists(dimensions="dimensions")),
    "concatenate": _row("concatenate", _dimension("dimension")),
    "slice": _row("slice", lambda op: _columns(op, "slice", "start_indices", "limit_indices", "strides")),
    "pad": _row("pad", lambda op: _columns(op, "padding", "edge_padding_low", "edge_padding_high", "interior_padding")),
    "dynamic-slice": _row("dynamic_slice", _lists(slice_sizes="dynamic_slice_sizes")),
    "dot": _row("dot_general", _dot),
    "convolution": _row("convolution", _convolution),
    "gather": _row("gather", _gather),
    "scatter": _row("scatter", _scatter, "to_apply"),
    "reduce": _row("reduce", _lists(dimensions="dimensions"), "to_apply"),
    "reduce-window": _row("reduce_window", _reduce_window, "to_apply"),
    "select-and-scatter": _row("select_and_scatter", _select_and_scatter, "select", "scatter"),
    "sort": _row("sort", _sort, "to_apply"),
    "map": _row("map", _lists(dimensions="dimensions"), "to_apply"),
    "opt-barrier": _row("optimization_barrier"),
    "after-all": _row("after_all"),
    "partition-id": _row("partition_id"),
    "replica-id": _row("replica_id"),
    "all-reduce": _row("all_reduce", _devices(), "to_apply"),
    "all-gather": _row("all_gather", _devices("all_gather_dim")),
    "reduce-scatter": _row("reduce_scatter", _devices("scatter_dimension"), "to_apply"),
    "all-to-all": _row("all_to_all", _all_to_all),
    "collective-broadcast": _row("collective_broadcast", _devices()),
    "collective-permute": _row(
        "collective_permute", lambda op: {"source_target_pairs": _pairs(op, "source_target_pairs")} | _channel(op)
    ),
    "rng-bit-generator": _row("rng_bit_generator", _generator),
    "fft": _row("fft", _fft),
    "cholesky": _row("cholesky", lambda op: {"lower": _flag(op, "lower")}),
    "triangular-solve": _row("triangular_solve", _triangular_solve),
    "batch-norm-training": _row("batch_norm_training", _norm),
    "batch-norm-inference": _row("batch_norm_inference", _norm),
    "batch-norm-grad": _row("batch_norm_grad", _norm),
    "topk": ("chlo.top_k", _top_k, ()),
    "custom-call": _row("custom_call", _custom_call),
    "get-dimension-size": _row("get_dimension_size", _dimension("dimension")),
    "set-dimension-size": _row("set_dimension_size", _dimension("dimension")),
    "dynamic-broadcast-in-dim": _row("dynamic_broadcast_in_dim", _dynamic_broadcast),
    "dynamic-iota": _row("dynamic_iota", _numbers_of(iota_dimension="iota_dimension")),
    "dynamic-gather": _row("dynamic_gather", _dynamic_gather),
    "dynamic-conv": _row("dynamic_conv", _dynamic_conv),
    "dynamic-reduce-window": _row("custom_call", lambda op: _target("stablehlo.dynamic_reduce_window")),
    "dynamic-top-k": _row("custom_call", lambda op: _target("stablehlo.dynamic_top_k")),
    "dynamic-rng": _row("rng", _distribution),
    "dynamic-rng-bit-generator": _row(
        "custom_call", lambda op: _target("stablehlo.dynamic_rng_bit_generator") | _generator(op)
    ),
    "shape-assertion": _row("custom_call", _assertion),
    "print": _row("custom_call", _print),
}
"""Opcode -> its StableHLO form."""
