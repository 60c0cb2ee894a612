"""Ops of a program's host as rows of plain data, on NumPy arrays: a bundle computes with them what its kernels do not.

    {"opcode": "compare", "types": ["s32", "s32", "pred"], "outputs": 1, "direction": "GE"}        f(x, y, o): o[...] = x >= y

Elements are integers, which wrap around, or truth values. The row of an op that a function of `library` computes has that function's name
and configuration, that of a constant the name of its elements; the types of these, and of copies, may be any. Other ops have no row
(`pipelines/program_bundle`). Source: docs/reference/1 5.2-5.4.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from xla_emitters import library
from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array, numpy_type
from xla_emitters.program.bind import STAGE
from xla_emitters.runtime.numpy_calls import BufferFunction

NUMBERS = frozenset(("pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"))
"""The element types of ops other than library functions, constants and copies."""


def plain_function(
    row: Mapping[str, Any], constant: Callable[[str, np.dtype[Any]], Array] | None = None
) -> BufferFunction:
    """The function that computes a row. raises LookupError for an invalid row

    constant  returns the elements of a constant: (its name, their type); not needed for other rows
    """
    opcode = row["opcode"]
    if "library" in row:
        return partial(_by_library, row)
    if "constant" in row and constant is not None:
        held = constant(row["constant"], numpy_type(row["types"][0]))
        return partial(_copy, held)
    if opcode in ON_ELEMENTS or opcode == "compare":
        function = COMPARISONS[row["direction"]] if opcode == "compare" else ON_ELEMENTS[opcode]
        return lambda *buffers: function(*buffers[:-1], out=buffers[-1])
    return partial(OTHERS[opcode], row)


def _by_library(row: Mapping[str, Any], *buffers: Array) -> None:
    (name, config), count = row["library"], len(buffers) - row["outputs"]
    inputs, outputs = buffers[:count], buffers[count:]
    wanted = [(kind, buffer.shape) for kind, buffer in zip(row["types"][count:], outputs, strict=True)]
    if row["opcode"] == "dynamic-conv":
        config = _with_padding(config, inputs[1], inputs[2])
    try:
        made = library.call(name, config, inputs[: len(config["types"])], wanted)
    except ValueError as error:
        raise DataError(f"%{row['name']}: {error}", stage=STAGE) from error
    for value, output in zip(made, outputs, strict=True):
        output[...] = value


def _with_padding(config: Mapping[str, Any], kernel: Array, padding: Array) -> dict[str, Any]:
    """The configuration of a convolution with this kernel and this padding, a row (low, high) for each spatial dimension."""
    label = config["labels"][1]
    return {
        **config,
        "window": [
            {
                **along,
                "size": kernel.shape[label.index(str(axis))],
                "pad": [int(padding[axis, 0]), int(padding[axis, 1])],
            }
            for axis, along in enumerate(config["window"])
        ],
    }


def print_array(label: str, element: str, array: Array) -> None:
    """Prints an array to standard error: `label: f32[2] [1. 2.]`; `element` is the HLO name of its type."""
    print(f"{label}: {element}[{','.join(map(str, array.shape))}] {array}", file=sys.stderr, flush=True)


def _print(row: Mapping[str, Any], array: Array) -> None:
    print_array(row["label"], row["types"][0], array)


def _assert(row: Mapping[str, Any], holds: Array, *values: Array) -> None:
    if not bool(holds):
        text: str = row["message"]
        for number, value in enumerate(values):
            text = text.replace(f"{{{number}}}", str(int(value)))
        raise DataError(text, stage=STAGE)


def _copy(value: Array, out: Array) -> None:
    out[...] = value


def _clamp(low: Array, value: Array, high: Array, *, out: Array) -> None:
    np.minimum(np.maximum(value, low), high, out=out)


def _select(condition: Array, chosen: Array, other: Array, *, out: Array) -> None:
    out[...] = np.where(condition, chosen, other) if out.ndim else chosen if condition else other


def _divide(x: Array, y: Array, *, out: Array) -> None:
    """Rounds towards zero; x / 0 has all bits set, and the least number divided by -1 is itself."""
    by = _divisor(x, y)
    quotient = (x - np.fmod(x, by)) // by
    out[...] = np.where(y == 0, ~np.zeros_like(x), quotient)


def _remainder(x: Array, y: Array, *, out: Array) -> None:
    out[...] = np.where(y == 0, x, np.fmod(x, _divisor(x, y)))


def _divisor(x: Array, y: Array) -> Array:
    """The divisor, or 1 where the division is not defined."""
    if x.dtype.kind == "u":
        return np.where(y == 0, y.dtype.type(1), y)
    least = np.iinfo(x.dtype).min
    return np.where((y == 0) | ((x == least) & (y == -1)), y.dtype.type(1), y)


def _slice(row: Mapping[str, Any], x: Array, out: Array) -> None:
    out[...] = x[tuple(slice(*bounds) for bounds in zip(row["starts"], row["limits"], row["strides"], strict=True))]


def _concatenate(row: Mapping[str, Any], *buffers: Array) -> None:
    np.concatenate(buffers[:-1], row["dimension"], out=buffers[-1])


def _broadcast(row: Mapping[str, Any], x: Array, out: Array) -> None:
    out[...] = x.reshape([size if dim in row["dimensions"] else 1 for dim, size in enumerate(out.shape)])


ON_ELEMENTS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": np.add,
    "and": np.bitwise_and,
    "clamp": _clamp,
    "convert": _copy,
    "copy": _copy,
    "divide": _divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "negate": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "remainder": _remainder,
    "select": _select,
    "sign": np.sign,
    "subtract": np.subtract,
    "xor": np.bitwise_xor,
}
"""Opcode -> (operands ..., out=): on integers, which wrap around in NumPy too, and on truth values, where + is or."""
COMPARISONS: Mapping[str, Callable[..., Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
OTHERS: Mapping[str, Callable[..., None]] = {
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "print": _print,
    "shape-assertion": _assert,
    "slice": _slice,
}
"""Opcode -> (row, operands ..., results ...)."""
OPCODES = frozenset((*ON_ELEMENTS, "compare", *OTHERS))
