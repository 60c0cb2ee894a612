"""What the functions of the runtime compute on the CPU: a call by name as a function of its buffers.

    function_of_call(disc_ral.dispatch "ral_gemm" on "gpu"(%ctx, %st, %a, %b, %o, %f, %t, %f))     ->     f(a, b, o): o[...] = a @ b.T

    h2d, d2h, d2d, h2h              copies                               ral_gemm         products of matrices, in batches
    sync_on_stream                  waits for the device                 ral_conv         convolutions
    topk, ral_rng                   the largest elements; random bits    ral_print        a buffer, on standard error
    ral_rng_uniform, ral_rng_normal random numbers of a seed

A product or a convolution is the op on buffers that the call was made from, written again: its value is the op's own (`buffer_ops`).
Buffers of both devices are NumPy arrays, and a stream never has pending work. Calls that concern the program's own memory and kernels
(`alloc`, `ral_const`, `ral_kernel_launch` ...) are in `host_program`.
Source: docs/reference/4 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, MemRefType, StringAttr, i64
from xdsl.ir import Attribute, Block, SSAValue

from xla_emitters.dialects.disc_ral import DispatchOp
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dialects.lmhlo_dialect import BUFFER_OPS
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.errors import DataError
from xla_emitters.library import call as call_library
from xla_emitters.library.arguments import top_key
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.runtime.numpy_calls import BufferFunction
from xla_emitters.runtime.plain_ops import print_array
from xla_emitters.runtime.ral.buffer_ops import function_of

STAGE = "ral"


def function_of_call(op: DispatchOp) -> BufferFunction:
    """The function of the call's buffers, in order. raises Unsupported for a name that the runtime does not have"""
    make = FUNCTIONS.get(op.call.data)
    if make is None:
        raise refusal(STAGE, op, f"the runtime has no function '{op.call.data}'", ", ".join(sorted(FUNCTIONS)))
    return make(op)


def buffers_of(op: DispatchOp) -> list[SSAValue]:
    """The arguments of a call that are buffers."""
    return [value for value in op.arguments if isinstance(value.type, MemRefType)]


def element_of_buffer(value: SSAValue) -> str:
    """HLO's name of a buffer's element type."""
    return dtype_of(tensor_of(value.type).element_type).name


def _rank(value: SSAValue) -> int:
    return tensor_of(value.type).get_num_dims()


# --------------------------------------------------------------------------------------------------- ops, written again


def _written_again(call: DispatchOp, opcode: str, properties: Mapping[str, Attribute]) -> BufferFunction:
    """The op on buffers that writes the last buffer of the call."""
    *inputs, output = Block(arg_types=[value.type for value in buffers_of(call)]).args
    named = {**properties, "name": StringAttr(call.call.data)}
    made = BUFFER_OPS[opcode](operands=[inputs, [output]], properties=named, result_types=[])
    made.location = call.location
    return function_of(made, call)


def _dims(numbers: Sequence[int]) -> Attribute:
    return DenseArrayBase.from_list(i64, list(numbers))


def _gemm(call: DispatchOp) -> BufferFunction:
    """The flags: is lhs, is rhs transposed, is rhs a constant."""
    lhs, rhs, *_ = buffers_of(call)
    left, right = (bool(constant_of(flag)) for flag in call.arguments[5:7])
    batch = range(_rank(rhs) - 2)
    return _written_again(
        call,
        "dot",
        {
            "lhs_batch_dims": _dims(batch),
            "rhs_batch_dims": _dims(batch),
            "lhs_contracting_dims": _dims([_rank(lhs) - 1 - left]),
            "rhs_contracting_dims": _dims([_rank(rhs) - 2 + right]),
        },
    )


def _conv(call: DispatchOp) -> BufferFunction:
    """The numbers are those of `disc-lower-to-library-calls`: orders of dimensions, strides, dilations, a flag, groups, dilations."""
    assert isinstance(call.config, DenseArrayBase)
    numbers, rank = integers(call.config), _rank(call.arguments[2])
    places = "".join(map(str, range(rank - 2)))
    labels = [
        _labels(f"{letters}{places}", numbers[rank * side :][:rank]) for side, letters in enumerate(("bf", "io", "bf"))
    ]
    strides, dilations = (numbers[3 * rank + side * (rank - 2) :][: rank - 2] for side in range(2))
    groups, batch_groups, *spread = numbers[5 * rank - 3 :] or (1, 1)
    lists: dict[str, Sequence[int]] = {"size": (1,) * (rank - 2), "stride": strides, "rhs_dilate": dilations}
    lists["lhs_dilate"] = spread or (1,) * (rank - 2)
    return _written_again(
        call,
        "dynamic-conv",
        {
            "dim_labels": StringAttr(f"{labels[0]}_{labels[1]}->{labels[2]}"),
            "window": WindowAttr(Window.of_lists(lists if rank > 2 else {})),
            "feature_group_count": IntegerAttr(groups, i64),
            "batch_group_count": IntegerAttr(batch_groups, i64),
        },
    )


def _labels(letters: str, places: Sequence[int]) -> str:
    """
    >>> _labels("bf01", (0, 3, 1, 2))
    'b01f'
    """
    return "".join(letter for _, letter in sorted(zip(places, letters, strict=True)))


# -------------------------------------------------------------------------------------------------------- of the library


def _by_library(call: DispatchOp, function: str, config: Mapping[str, Any], outputs: int) -> BufferFunction:
    """Writes what a function of `library` returns into the last buffers."""
    types = [element_of_buffer(value) for value in buffers_of(call)]
    count = len(types) - outputs

    def run(*buffers: Array) -> None:
        wanted = [(kind, buffer.shape) for kind, buffer in zip(types[count:], buffers[count:], strict=True)]
        given = {**config, "types": types[:count]}
        for value, out in zip(call_library(function, given, buffers[:count], wanted), buffers[count:], strict=True):
            out[...] = value

    return run


def _top_k(call: DispatchOp) -> BufferFunction:
    largest = _by_library(call, "top_k", {"keys": [top_key(largest=True)]}, 2)

    def run(array: Array, values: Array, places: Array) -> None:
        if values.shape != (*array.shape[:-1], values.shape[-1]) or values.shape[-1] > array.shape[-1]:
            raise DataError(f"no {values.shape[-1]} largest of {list(array.shape)}", stage=STAGE)
        largest(array, values, places)

    return run


def _rng(call: DispatchOp) -> BufferFunction:
    is_threefry = call.config == StringAttr("rng_three_fry")
    return _by_library(call, "random_bits", {"algorithm": "threefry" if is_threefry else "philox"}, 2)


def _random(call: DispatchOp) -> BufferFunction:
    assert isinstance(call.config, DenseArrayBase)
    start, seed = integers(call.config)
    distribution = call.call.data.rpartition("_")[2]
    return _by_library(call, "random_numbers", {"distribution": distribution, "start": start, "seed": seed}, 1)


# ---------------------------------------------------------------------------------------------------------------- others


def _copy(call: DispatchOp) -> BufferFunction:
    def run(source: Array, target: Array) -> None:
        if source.shape != target.shape:
            raise DataError(f"{call.call.data} of {list(source.shape)} into {list(target.shape)}", stage=STAGE)
        target[...] = source

    return run


def _sync(call: DispatchOp) -> BufferFunction:
    return lambda: None


def _print(call: DispatchOp) -> BufferFunction:
    assert isinstance(call.config, StringAttr)
    return partial(print_array, call.config.data, element_of_buffer(buffers_of(call)[0]))


FUNCTIONS: Mapping[str, Callable[[DispatchOp], BufferFunction]] = {
    "d2d": _copy,
    "d2h": _copy,
    "h2d": _copy,
    "h2h": _copy,
    "ral_conv": _conv,
    "ral_gemm": _gemm,
    "ral_print": _print,
    "ral_rng": _rng,
    "ral_rng_normal": _random,
    "ral_rng_uniform": _random,
    "sync_on_stream": _sync,
    "topk": _top_k,
}
"""Name of a call -> what makes its function."""
