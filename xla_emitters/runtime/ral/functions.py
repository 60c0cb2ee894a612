"""The functions that a host program calls by name, on the CPU by NumPy.

    function_named("d2d___gpu___pvoid_pvoid_m1df32_m1df32___void", constants)     ->     f(ctx, stream, a, b): b[...] = a

A name says what is called, the device and all types (`dialects/disc_ral`); a function is made for it once, when the program is loaded.
Buffers of both devices are NumPy arrays here, so copies between them are copies, and a stream is always up to date.

    alloc, dealloc, inc_ref          buffers, which the call counts            ral_const      a constant, by its name
    h2d, d2h, d2d, h2h               copies                                    ral_gemm       products of matrices, in batches
    sync_on_stream                   waits for the device                      ral_conv       convolutions
    topk, ral_rng                    the largest elements; random bits
    ral_kernel_launch                a kernel of the program, by its name
    ral_run_hot                      what was compiled for a fusion at these sizes

Products and convolutions are those of room `library`: of f16 and bf16 they add in f32, and round once.
Source: docs/reference/4 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dialects.disc_ral import RalName
from xla_emitters.dialects.hlo.custom_calls import top_key
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import DataError, Unsupported
from xla_emitters.library import call as call_library
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import STAGE, Call

Function: TypeAlias = Callable[..., Any]
Maker: TypeAlias = Callable[[RalName, Constants], Function]


def function_named(text: str, constants: Constants) -> Function:
    """The function of that full name.

    constants  those of the program
    raises     Unsupported for a name that the runtime does not have, UsageError for what is no name
    """
    name = RalName.parse(text)
    maker = MAKERS.get(name.call)
    if maker is None:
        raise Unsupported(f"the runtime has no function '{name.call}'", stage=STAGE, help=", ".join(sorted(MAKERS)))
    return maker(name, constants)


def element_name(code: str) -> str:
    """HLO's name of an element type from the code of a type, that of a buffer too.

    >>> element_name("m2df32"), element_name("m0di1"), element_name("ui8")
    ('f32', 'pred', 'u8')
    """
    code = code.partition("d")[2] if code[0] == "m" else code
    if code == "i1":
        return "pred"
    if code.startswith("ui"):
        return f"u{code[2:]}"
    return f"s{code[1:]}" if code[0] == "i" else code


def _buffers(name: RalName) -> list[str]:
    """The element types of the buffers that go in."""
    return [element_name(code) for code in name.ins if code[0] == "m"]


# -------------------------------------------------------------------------------------------------------------- buffers


def _alloc(name: RalName, constants: Constants) -> Function:
    held = dtype(element_name(name.outs[0])).numpy

    def run(ctx: Call, *shape: int) -> Array:
        return ctx.alloc(shape, held)

    return run


def _dealloc(name: RalName, constants: Constants) -> Function:
    def run(ctx: Call, buffer: Array) -> None:
        ctx.dealloc(buffer)

    return run


def _inc_ref(name: RalName, constants: Constants) -> Function:
    def run(ctx: Call, buffer: Array, *shape: int) -> Array:
        return ctx.inc_ref(buffer, shape)

    return run


def _copy(name: RalName, constants: Constants) -> Function:
    def run(ctx: Call, stream: None, source: Array, target: Array) -> None:
        if source.shape != target.shape:
            raise DataError(f"{name.call} of {list(source.shape)} into {list(target.shape)}", stage=STAGE)
        target[...] = source

    return run


def _sync(name: RalName, constants: Constants) -> Function:
    def run(ctx: Call, stream: None) -> None:
        """Nothing is under way on the CPU."""

    return run


def _const(name: RalName, constants: Constants) -> Function:
    held = dtype(element_name(name.outs[0])).numpy
    loaded = dict[int, Array]()

    def run(ctx: Call, stream: None, index: int, text: str) -> Array:
        if (found := loaded.get(index)) is None:
            found = loaded[index] = constants.get(text, held)
        return found

    return run


def _launch(name: RalName, constants: Constants) -> Function:
    def run(ctx: Call, stream: None, *arguments: Any) -> None:
        x, y, z, *rest = arguments
        threads_x, threads_y, threads_z, shared, *values, kernel = rest
        ctx.launch(kernel, (x, y, z), (threads_x, threads_y, threads_z), shared, values)

    return run


def _run_hot(name: RalName, constants: Constants) -> Function:
    def run(ctx: Call, stream: None, *arguments: Any) -> bool:
        *values, fusion = arguments
        return ctx.run_hot(fusion, values)

    return run


# -------------------------------------------------------------------------------------------------------------- library


def _gemm(name: RalName, constants: Constants) -> Function:
    types = _buffers(name)
    # What `library` does with these, without its preparations.
    is_plain = types in (["f32"] * 3, ["f64"] * 3)

    def run(
        ctx: Call, stream: None, lhs: Array, rhs: Array, out: Array, lhs_transposed: bool, rhs_transposed: bool, _: bool
    ) -> None:
        batch = rhs.ndim - 2
        summed = lhs.ndim - 1 - lhs_transposed, rhs.ndim - 2 + rhs_transposed
        free = [size for dim, size in enumerate(lhs.shape) if dim != summed[0]]
        columns = rhs.shape[-2 if rhs_transposed else -1]
        if lhs.shape[summed[0]] != rhs.shape[summed[1]] or lhs.shape[:batch] != rhs.shape[:batch]:
            raise DataError(
                f"no product of {list(lhs.shape)} and {list(rhs.shape)}: "
                f"dimension {summed[0]} of the one is summed with dimension {summed[1]} of the other",
                stage=STAGE,
            )
        _check_result(out, (*free, columns))
        if is_plain:
            count, terms = prod(rhs.shape[:batch]), rhs.shape[-1 if rhs_transposed else -2]
            left = (lhs.swapaxes(-1, -2) if lhs_transposed else lhs).reshape(count, prod(free[batch:]), terms)
            right = (rhs.swapaxes(-1, -2) if rhs_transposed else rhs).reshape(count, terms, columns)
            if np.may_share_memory(left, right):
                right = right.copy()  # of a matrix and itself NumPy computes one half, with other bits
            np.matmul(left, right, out=out.reshape(count, prod(free[batch:]), columns))
            return
        config = {**GEMM, "lhs_contracting": [summed[0]], "rhs_contracting": [summed[1]]}
        config["lhs_batch"] = config["rhs_batch"] = list(range(batch))
        _into([out], "gemm", {**config, "types": types[:2]}, [lhs, rhs], types[2:])

    return run


GEMM: Mapping[str, Any] = {
    "operands": ["lhs", "rhs"],
    "outputs": ["d"],
    "alpha": [1, 0],
    "beta": 0,
    "epilogue": "DEFAULT",
    "rounds": None,
}
"""A product and nothing else, as `library` is told."""


def _conv(name: RalName, constants: Constants) -> Function:
    types = _buffers(name)

    def run(
        ctx: Call, stream: None, image: Array, kernel: Array, padding: Array, out: Array, numbers: tuple[int, ...]
    ) -> None:
        rank = image.ndim
        orders = [numbers[start : start + rank] for start in (0, rank, 2 * rank)]
        strides, dilations = (numbers[3 * rank + i * (rank - 2) :][: rank - 2] for i in (0, 1))
        names = [_labels(order, letters) for order, letters in zip(orders, ("bf", "io", "bf"), strict=True)]
        window = [
            {
                "size": kernel.shape[orders[1][2 + i]],
                "stride": stride,
                "pad": [int(padding[i, 0]), int(padding[i, 1])],
                "base_dilation": 1,
                "window_dilation": dilation,
                "reversed": False,
            }
            for i, (stride, dilation) in enumerate(zip(strides, dilations, strict=True))
        ]
        if image.shape[orders[0][1]] != kernel.shape[orders[1][0]]:
            raise DataError(
                f"no convolution of {list(image.shape)} with {list(kernel.shape)}: the features differ", stage=STAGE
            )
        places = [_places(image.shape[at], along) for at, along in zip(orders[0][2:], window, strict=True)]
        wanted = dict(zip(orders[2], (image.shape[orders[0][0]], kernel.shape[orders[1][1]], *places), strict=True))
        _check_result(out, tuple(wanted[dim] for dim in range(rank)))
        config = {**CONVOLUTION, "labels": names, "window": window, "types": types[:2]}
        _into([out], "convolution", config, [image, kernel], types[3:])

    return run


CONVOLUTION: Mapping[str, Any] = {
    "operands": ["image", "kernel"],
    "outputs": ["result"],
    "kind": "forward",
    "feature_groups": 1,
    "batch_groups": 1,
    "scale": 1,
    "side_scale": 0,
    "activation": "none",
    "slope": 0,
}
"""A convolution and nothing else, as `library` is told."""


def _labels(order: Sequence[int], letters: str) -> str:
    """The letter or number of each dimension, from where each is."""
    names = dict(zip(order, (*letters, *map(str, range(len(order) - 2))), strict=True))
    return "".join(names[dim] for dim in range(len(order)))


def _places(size: int, along: Mapping[str, Any]) -> int:
    """How often a window fits along one dimension."""
    reach = (along["size"] - 1) * along["window_dilation"] + 1
    return max(0, (size + sum(along["pad"]) - reach) // along["stride"] + 1) if along["size"] else 0


def _top_k(name: RalName, constants: Constants) -> Function:
    types = _buffers(name)

    def run(ctx: Call, stream: None, array: Array, values: Array, places: Array) -> None:
        if values.shape != (*array.shape[:-1], values.shape[-1]) or values.shape[-1] > array.shape[-1]:
            raise DataError(f"no {values.shape[-1]} largest of {list(array.shape)}", stage=STAGE)
        _into([values, places], "top_k", {"keys": [top_key(largest=True)], "types": types[:1]}, [array], types[1:])

    return run


def _rng(name: RalName, constants: Constants) -> Function:
    types = _buffers(name)

    def run(ctx: Call, stream: None, state: Array, new_state: Array, random: Array, algorithm: str) -> None:
        config = {"algorithm": "threefry" if algorithm == "rng_three_fry" else "philox", "types": types[:1]}
        _into([new_state, random], "random_bits", config, [state], types[1:])

    return run


def _check_result(out: Array, wanted: tuple[int, ...]) -> None:
    if out.shape != wanted:
        raise DataError(f"a result of {list(wanted)} does not fit its buffer of {list(out.shape)}", stage=STAGE)


def _into(
    outputs: Sequence[Array], function: str, config: Mapping[str, Any], operands: Sequence[Array], names: Sequence[str]
) -> None:
    """Writes what a function of `library` returns into buffers."""
    results = [(name, output.shape) for name, output in zip(names, outputs, strict=True)]
    for value, output in zip(call_library(function, config, operands, results), outputs, strict=True):
        output[...] = value


MAKERS: Mapping[str, Maker] = {
    "alloc": _alloc,
    "d2d": _copy,
    "d2h": _copy,
    "dealloc": _dealloc,
    "h2d": _copy,
    "h2h": _copy,
    "inc_ref": _inc_ref,
    "ral_const": _const,
    "ral_conv": _conv,
    "ral_gemm": _gemm,
    "ral_kernel_launch": _launch,
    "ral_rng": _rng,
    "ral_run_hot": _run_hot,
    "sync_on_stream": _sync,
    "topk": _top_k,
}
"""What is called -> how the function is made for the types that its name says."""
