"""Bounds of a library function's results, from bounds of its operands.

    random bits, sorts of known keys          exactly the reference's value
    sort by an array that is not known        that array: its ends, sorted (sorting is monotone); the others: the range of their row
    gemm, convolution                         the exact sum, the operands' error, the roundings of all terms in any order; then
                                              the epilogue (scales, bias, activation), each step rounded or not
    fft, factorizations                       unbounded

Sums of products are those of a dot (`contraction_bounds`), with one rounding more. An activation that turns once (gelu, silu) has its
minimum inside the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from xla_emitters import library
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.called import arrays_of
from xla_emitters.dialects.hlo.contractions import ContractingOp
from xla_emitters.dialects.hlo.library_calls import library_call_of
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types
from xla_emitters.dtypes import Array, Kind, dtype
from xla_emitters.library.cublas import rounds_to_tf32
from xla_emitters.library.gemm import activated, held_type
from xla_emitters.runtime.reference.bounds.contraction_bounds import Contract, sums_of_products
from xla_emitters.runtime.reference.bounds.elementwise_bounds import converted
from xla_emitters.runtime.reference.bounds.reduction_bounds import anything, taken
from xla_emitters.runtime.reference.bounds.sums import around, smallest, unit_of
from xla_emitters.runtime.reference.tolerance import (
    Bounds,
    everything,
    info,
    is_float,
    joined,
    point,
    settled,
    unknown_where,
)

Evaluate = Callable[[Sequence[Array]], Any]

_EXACT = frozenset(
    "sort top_k random_bits random_numbers random_state permutation_of_pivots pass_through allocate device_id".split()
)
"""Functions that round nothing."""


FACTORS = ("lhs", "rhs", "image", "kernel", "result")
"""The names of the operands that a gemm or a convolution multiplies."""
TF32_ERROR = 2.0**-10
"""Of a factor, relative to it."""


def bounds_of_library_call(op: HloOp, operands: Sequence[Bounds], evaluate: Evaluate) -> Any:
    """The bounds of the op's result, or a tuple of them. raises Unsupported where the op's `evaluate` does.

    evaluate  the reference: the op's value on arrays
    """
    name, config = library_call_of(op)
    are_known = all(bounds.is_point for bounds in operands)
    is_whole = all(element_of(leaf).kind not in (Kind.FLOAT, Kind.COMPLEX) for leaf in leaf_types(op.result.type))
    if are_known and (name in _EXACT or (is_whole and name in ("gemm", "convolution"))):
        parts = list(map(point, arrays_of(evaluate([bounds.low for bounds in operands]))))
        return parts[0] if is_array(op.result.type) else tuple(parts)
    with np.errstate(all="ignore"):
        known = _BOUNDS.get(name)
        parts = known(op, config, operands, evaluate) if known else anything(leaf_types(op.result.type))
    return parts[0] if is_array(op.result.type) else tuple(parts)


def rounded_factors(op: HloOp, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands of a product or convolution of f32 whose factors tensor cores may round to TF32; else the operands themselves.

    Tensor cores keep 10 bits of a fraction: to the nearest, or cut off, which is the error taken here.
    """
    if not isinstance(op, ContractingOp) and op.opcode != "custom-call":
        return operands
    name, config = library_call_of(op)
    if name not in ("gemm", "convolution") or not rounds_to_tf32(config):
        return operands
    names = config["operands"]
    if any(element_of(operand).name != "f32" for operand, of in zip(op.operands, names, strict=True) if of in FACTORS):
        return operands
    return [_cut_to_tf32(bounds) if of in FACTORS else bounds for bounds, of in zip(operands, names, strict=True)]


def _cut_to_tf32(bounds: Bounds) -> Bounds:
    low, high = (end.astype(np.float64) for end in bounds.ends)
    with np.errstate(all="ignore"):
        return Bounds(
            (low - np.abs(low) * TF32_ERROR).astype(np.float32), (high + np.abs(high) * TF32_ERROR).astype(np.float32)
        )


# ------------------------------------------------------------------------------------------------------------------- sorts


def _sorted(op: HloOp, config: Mapping[str, Any], operands: Sequence[Bounds], evaluate: Evaluate) -> list[Bounds]:
    keys: list[Mapping[str, Any]] | None = config["keys"]
    dimension: int = config["dimension"]
    if not keys:
        return anything(leaf_types(op.result.type))
    numbers: list[int] = [key["operand"] for key in keys]
    if all(operands[number].is_point for number in numbers):
        # The order is certain, whatever the other operands are.
        ends = [arrays_of(evaluate([bounds.ends[end] for bounds in operands])) for end in range(2)]
        return [settled(low, high) for low, high in zip(*ends, strict=True)]
    first = numbers[0]
    found = [_of_row(bounds, dimension) for bounds in operands]
    if _has_order(operands[first]):
        name = element_of(op.operands[first]).name
        found[first] = settled(*(_alone(end, config, keys[0], name) for end in operands[first].ends))
    return found


def _of_row(bounds: Bounds, dimension: int) -> Bounds:
    """Everything between the least and the greatest element along a dimension."""
    if not bounds.low.size or not _has_order(bounds):
        return everything(bounds.low.dtype, bounds.low.shape)
    least, most = bounds.low.min(dimension, keepdims=True), bounds.high.max(dimension, keepdims=True)
    return Bounds(np.broadcast_to(least, bounds.low.shape), np.broadcast_to(most, bounds.low.shape))


def _has_order(bounds: Bounds) -> bool:
    """Whether all elements are known to be numbers with an order."""
    if bounds.low.dtype.kind == "c" or bounds.is_unknown.any():
        return False
    return not any(bool(np.isnan(end).any()) for end in bounds.ends if is_float(end.dtype))


def _alone(end: Array, config: Mapping[str, Any], key: Mapping[str, Any], name: str) -> Array:
    own = {"types": [name], "dimension": config["dimension"], "keys": [{**key, "operand": 0}], "comparator": None}
    return library.call("sort", own, [end], [(name, end.shape)])[0]


def _first_k(op: HloOp, config: Mapping[str, Any], operands: Sequence[Bounds], evaluate: Evaluate) -> list[Bounds]:
    (key,) = operands
    values, positions = (element_of(leaf).numpy for leaf in leaf_types(op.result.type))
    shape = dims_of(leaf_types(op.result.type)[0])
    last = np.broadcast_to(np.asarray(key.low.shape[-1] - 1, positions), shape)
    if not _has_order(key):
        return [everything(values, shape), Bounds(np.zeros_like(last), last)]
    low, high = (arrays_of(evaluate([end]))[0] for end in key.ends)
    return [settled(low, high), Bounds(np.zeros_like(last), last)]


# ---------------------------------------------------------------------------------------------------------- sums of products


def _products(op: HloOp, config: Mapping[str, Any], operands: Sequence[Bounds], evaluate: Evaluate) -> list[Bounds]:
    """Bounds of gemm and convolution: the sums, then the epilogue."""
    names, outputs = config["operands"], config["outputs"]
    leaves = leaf_types(op.result.type)
    main = element_of(leaves[0])
    held = held_type(main.name)
    if held.kind not in "fc":
        return anything(leaf_types(op.result.type))
    row = dtype({"float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128"}[held.name])
    given = {
        name: converted(bounds, element_of(operand), row)
        for name, bounds, operand in zip(names, operands, op.operands, strict=True)
    }
    pair = [name for name in names if name in FACTORS]
    if config.get("rounds"):
        narrow = dtype(config["rounds"])
        given |= {name: converted(converted(given[name], row, narrow), narrow, row) for name in pair}
    x, y = (given[name] for name in pair)
    shape = dims_of(leaves[0])
    contract = _contraction(config, pair, shape)
    terms = contract(np.ones(x.low.shape), np.ones(y.low.shape))
    # One more rounding than of the terms alone: some kernels add them to a zero.
    sums = partial(sums_of_products, contract, terms=terms + 1, shape=shape)
    if row.kind is Kind.COMPLEX:
        (a, b), (c, d) = x.parts, y.parts
        found = joined(sums([(1, a, c), (-1, b, d)]), sums([(1, a, d), (1, b, c)]))
        plain = set(given) == set(pair) and config.get("alpha", [1, 0]) == [1, 0] and config["epilogue"] == "DEFAULT"
        return [converted(found, row, main) if plain else everything(main.numpy, shape), *anything(leaves[1:])]
    value, aux, largest = _after(config, given, sums([(1, x, y)]), shape)
    if "d_scale" in given:
        value = _scaled(value, given["d_scale"])
        limit = held.type(info(main.numpy).max)
        value = taken(value, lambda end: np.clip(end, -limit, limit))
    done = {"aux": aux, "amax": largest}
    return [  # a workspace is unknown: nothing reads it
        anything([leaf])[0] if name == "workspace" else converted(done.get(name, value), row, element_of(leaf))
        for name, leaf in zip(outputs, leaves, strict=True)
    ]


def _contraction(config: Mapping[str, Any], pair: Sequence[str], shape: tuple[int, ...]) -> Contract:
    """The sums of products of a gemm or a convolution, without the epilogue, in float64."""
    plain = {
        **config,
        "types": ["f64", "f64"],
        "operands": list(pair),
        "outputs": [config["outputs"][0]],
        "alpha": [1, 0],
        "beta": 0,
        "epilogue": "DEFAULT",
        "rounds": None,
        "scale": 1,
        "side_scale": 0,
        "activation": "none",
    }
    name = "gemm" if "lhs" in pair else "convolution"
    return lambda x, y: library.call(name, plain, [x, y], [("f64", shape)])[0]


def _after(
    config: Mapping[str, Any], given: Mapping[str, Bounds], sums: Bounds, shape: tuple[int, ...]
) -> tuple[Bounds, Bounds, Bounds]:
    """The value, the contents of an auxiliary output, and the largest magnitude; all in the type that sums are held in."""
    value = sums
    for scale in ("lhs_scale", "rhs_scale"):
        if scale in given:
            value = _scaled(value, given[scale])
    factor = config["alpha"][0] if "alpha" in config else config["scale"]
    if factor != 1:
        value = _scaled(value, point(np.asarray(factor, value.low.dtype)))
    addends = [("c", config.get("beta", 0)), ("side", config.get("side_scale", 0)), ("bias", 1)]
    for name, factor in addends:
        if name in given:
            value = _added(value, _placed(given[name], name, config, shape), factor)
    aux = value
    value = _activation(value, config)
    size = np.maximum(np.abs(value.low), np.abs(value.high))
    least = np.where((value.low <= 0) & (value.high >= 0), 0, np.minimum(np.abs(value.low), np.abs(value.high)))
    if not size.size:
        return value, aux, point(np.zeros((), value.low.dtype))
    return value, aux, settled(np.asarray(least.max()), np.asarray(size.max()))


def _placed(bounds: Bounds, name: str, config: Mapping[str, Any], shape: tuple[int, ...]) -> Bounds:
    """An addend in the shape of the result: a gemm's bias is along the last dimensions, a convolution's along its features."""
    if name == "c":
        return taken(bounds, lambda end: end.reshape(shape))
    if name == "side":
        return bounds
    if "labels" in config:
        along = [1] * len(shape)
        along[config["labels"][2].index("f")] = -1
        return taken(bounds, lambda end: np.broadcast_to(end.reshape(along), shape))
    rows = math.prod(shape) // max(1, bounds.low.size)
    return taken(bounds, lambda end: np.broadcast_to(end.reshape(-1), (rows, end.size)).reshape(shape))


def _scaled(value: Bounds, scale: Bounds) -> Bounds:
    ends = [wide * float(end) for wide in map(_wide, value.ends) for end in scale.ends]
    return _rounded(ends, value, 4 * np.maximum.reduce(list(map(np.abs, ends))))


def _added(value: Bounds, other: Bounds, factor: float) -> Bounds:
    """value + factor * other; intermediate roundings are of numbers as large as both together."""
    scaled = [_wide(end) * factor for end in (other.ends if factor >= 0 else other.ends[::-1])]
    ends = [_wide(value.low) + scaled[0], _wide(value.high) + scaled[1]]
    sizes = np.maximum(np.abs(_wide(value.low)), np.abs(_wide(value.high))) + np.maximum(*map(np.abs, scaled))
    return _rounded(ends, value, 4 * sizes)


def _rounded(ends: Sequence[Array], like: Bounds, sizes: Array) -> Bounds:
    """The hull of the ends, in the type of `like`, widened by a unit in the last place of `sizes`."""
    kind = like.low.dtype
    low, high = np.minimum.reduce(list(ends)), np.maximum.reduce(list(ends))
    slack = sizes * unit_of(kind) + smallest(kind)
    unknown = like.is_unknown | np.isnan(low) | np.isnan(high)
    return unknown_where(unknown, around(kind, low, high, slack, sizes > float(np.finfo(kind).max)))


def _wide(end: Array) -> Array:
    return end.astype(np.float64)


_TURNS = {"GELU": -0.7524614220710162, "SILU": -1.278464542761074}
"""Activation -> the operand at which it has its least value."""
_RELATIVE_UNITS = 32
"""Rounding error of an activation of several steps, in units of its operand."""


def _activation(value: Bounds, config: Mapping[str, Any]) -> Bounds:
    if "epilogue" in config:
        name = config["epilogue"].removeprefix("BIAS_").removesuffix("_AUX")
        if name in ("DEFAULT", "BIAS"):
            return value
        if name == "RELU":
            return _kept_unknown(value, lambda end: np.maximum(end, end.dtype.type(0)))
        turn = _TURNS[name]
        ends = [activated(_wide(end), name, np) for end in value.ends]
        least = activated(np.asarray(turn), name, np)
        holds = (_wide(value.low) <= turn) & (_wide(value.high) >= turn)
        sizes = np.maximum(*(np.abs(_wide(end)) for end in value.ends))
        return _rounded([*ends, np.where(holds, least, ends[0])], value, _RELATIVE_UNITS * sizes)
    slope = config["slope"]
    rules: dict[str, Callable[[Array], Array]] = {
        "none": lambda end: end,
        "relu": lambda end: np.maximum(end, 0),
        "relu6": lambda end: np.clip(end, 0, 6),
        "elu": lambda end: np.where(end > 0, end, np.expm1(np.minimum(end, 0))),
        "leaky_relu": lambda end: np.where(end > 0, end, end * slope),
    }
    name = config["activation"]
    if name in ("none", "relu", "relu6"):
        return value if name == "none" else _kept_unknown(value, lambda end: rules[name](end).astype(end.dtype))
    ends = [rules[name](_wide(end)) for end in value.ends]
    sizes = np.maximum(*(np.abs(_wide(end)) for end in value.ends)) + 1
    turning = np.where((_wide(value.low) < 0) & (_wide(value.high) > 0), 0, ends[0])
    return _rounded([*ends, turning], value, _RELATIVE_UNITS * sizes)


def _kept_unknown(value: Bounds, of: Callable[[Array], Array]) -> Bounds:
    """Bounds of a monotone activation; unknown where its operand is."""
    return unknown_where(value.is_unknown, settled(of(value.low), of(value.high)))


def _same(op: HloOp, config: Mapping[str, Any], operands: Sequence[Bounds], evaluate: Evaluate) -> list[Bounds]:
    return list(operands)


_BOUNDS: Mapping[str, Callable[..., list[Bounds]]] = {
    "pass_through": _same,
    "sort": _sorted,
    "top_k": _first_k,
    "gemm": _products,
    "convolution": _products,
}
