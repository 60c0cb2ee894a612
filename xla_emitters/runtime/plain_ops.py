"""Calls of a program that are none of its kernels, on arrays, by what its JSON says of them.

    plain_function(LibraryCall("gemm", "dot.1", ..., config))        f(x, y, o)     of logical arrays of any sizes, NumPy's
    flat_function(LibraryCall("gemm", "dot.1", ..., config))         f(x, y, o)     of flat arrays of known sizes, NumPy's or CuPy's

A plain call, which a bundle computes, is a function of `library`, or an op of the host: a copy, a constant, an assertion, a print. Others
are not in bundles (`pipelines/program_bundle`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from xla_emitters import library
from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array, element_name
from xla_emitters.program.bind import STAGE
from xla_emitters.program.callees import OF_THE_HOST, LibraryCall
from xla_emitters.runtime.layouts import from_buffer, to_buffer
from xla_emitters.runtime.numpy_calls import BufferFunction

CONSTANT = "constant"


def plain_function(call: LibraryCall, constant: Callable[[], Array] | None = None) -> BufferFunction:
    """The function that computes a call. raises LookupError for an op that is not in PLAIN

    constant  returns the elements of a constant; not needed for other calls
    """
    if not call.name.startswith(OF_THE_HOST):
        return partial(_by_library, call)
    if constant is not None:
        return partial(_copy, call.config, constant())
    return partial(PLAIN[call.name.removeprefix(OF_THE_HOST)], call.config)


def flat_function(call: LibraryCall, xp: Any = np, on_elements: library.OnElements | None = None) -> BufferFunction:
    """The function of a call of known sizes on flat arrays, whose elements are in the order of HLO's layout.

    xp           the arrays' module: numpy or cupy
    on_elements  applies a computation to the elements of arrays; None: no function calls one
    """
    count, wanted = len(call.operands), [(result.dtype, result.shape) for result in call.results]

    def function(*buffers: Any) -> None:
        operands = [from_buffer(buffer, spec) for buffer, spec in zip(buffers, call.operands, strict=False)]
        made = library.call(call.name, call.config, operands, wanted, xp, on_elements=on_elements)
        for buffer, array, spec in zip(buffers[count:], made, call.results, strict=True):
            buffer[...] = to_buffer(array, spec, xp).view(buffer.dtype)

    return function


def _by_library(call: LibraryCall, *buffers: Array) -> None:
    config, count = call.config, len(call.operands)
    inputs, outputs = buffers[:count], buffers[count:]
    wanted = [(spec.dtype, buffer.shape) for spec, buffer in zip(call.results, outputs, strict=True)]
    if "window" in config and count > len(config["types"]):
        config = _with_padding(config, inputs[1], inputs[2])
    try:
        made = library.call(call.name, config, inputs[: len(config["types"])], wanted)
    except ValueError as error:
        raise DataError(f"%{call.instruction}: {error}", stage=STAGE) from error
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


def _print(config: Mapping[str, Any], array: Array) -> None:
    print_array(config["label"], element_name(array.dtype), array)


def _assert(config: Mapping[str, Any], holds: Array, *values: Array) -> None:
    if not bool(holds):
        text: str = config["message"]
        for number, value in enumerate(values):
            text = text.replace(f"{{{number}}}", str(int(value)))
        raise DataError(text, stage=STAGE)


def _copy(config: Mapping[str, Any], value: Array, out: Array) -> None:
    out[...] = value


PLAIN: Mapping[str, Callable[..., None]] = {
    **dict.fromkeys(("copy", "d2h", "h2d", CONSTANT), _copy),
    "print": _print,
    "shape-assertion": _assert,
}
"""Opcode -> (configuration, operands ..., results ...)."""
