"""Ops outside of kernels as rows of plain data, on NumPy arrays: a bundle computes with them what its kernels do not.

    {"opcode": "dot", "types": ["f32", "f32", "f32"], "outputs": 1, "library": ["gemm", {...}]}        f(x, y, o)

The row of an op that a function of `library` computes has that function's name and configuration, that of a constant the name of its
elements. Copies, assertions and prints need no more than their text. Other ops have no row (`pipelines/program_bundle`).
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


def _copied(row: Mapping[str, Any], value: Array, out: Array) -> None:
    _copy(value, out)


OTHERS: Mapping[str, Callable[..., None]] = {
    "copy": _copied,
    "print": _print,
    "shape-assertion": _assert,
}
"""Opcode -> (row, operands ..., results ...)."""
