"""Calls of a program that are none of its kernels, on NumPy arrays: a bundle computes them by what is written in its manifest.

    plain_function(LibraryCall("gemm", "dot.1", ..., config))        f(x, y, o)

A call is a function of `library`, or an op of the host: a copy, a constant, an assertion, a print. Other ops are not in bundles
(`pipelines/program_bundle`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from xla_emitters import library
from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array, element_name
from xla_emitters.program.bind import STAGE
from xla_emitters.program.callees import OF_THE_HOST, LibraryCall
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
