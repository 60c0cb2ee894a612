"""The functions that a host program calls by name, on the CPU by NumPy.

    function_named("d2d___gpu___pvoid_pvoid_m1df32_m1df32___void", constants)     ->     f(ctx, stream, a, b): b[...] = a

A name contains the call, the device and all types (`dialects/disc_ral`); a function is made for it once, when the program is loaded.
Buffers of both devices are NumPy arrays here: copies between devices are plain copies, and a stream never has pending work.

    alloc, dealloc, inc_ref          buffers, which the call counts            ral_const      a constant, by its name
    h2d, d2h, d2d, h2h               copies                                    ral_gemm       products of matrices, in batches
    sync_on_stream                   waits for the device                      ral_conv       convolutions
    topk, ral_rng                    the largest elements; random bits
    ral_rng_uniform, ral_rng_normal  random numbers of a seed                       ral_print      a buffer, on standard error
    ral_kernel_launch                a kernel of the program, by its name

Products and convolutions are computed by `library`: f16 and bf16 are accumulated in f32 and rounded once.
Source: docs/reference/4 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xla_emitters.errors import DataError, Unsupported
from xla_emitters.library.arguments import Array, numpy_type
from xla_emitters.library.sort import top_key
from xla_emitters.program.ral_name import RalName
from xla_emitters.runtime.plain_ops import print_array
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import STAGE, Call
from xla_emitters.runtime.ral.convolution import Convolution
from xla_emitters.runtime.ral.gemm import Gemm

Function: TypeAlias = Callable[..., Any]
Maker: TypeAlias = Callable[[RalName, Constants], Function]


def element_name(code: str) -> str:
    """HLO's name of an element type from its code, or from the code of a buffer of it.

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
    """The element types of the input buffers."""
    return [element_name(code) for code in name.ins if code[0] == "m"]


# -------------------------------------------------------------------------------------------------------------- buffers


def _alloc(name: RalName, constants: Constants) -> Function:
    held = numpy_type(element_name(name.outs[0]))

    def run(ctx: Call, *shape: Any) -> Array:
        # Where the program is machine code, the buffer's name is the last argument.
        return (
            ctx.alloc(shape[:-1], held, shape[-1]) if shape and isinstance(shape[-1], str) else ctx.alloc(shape, held)
        )

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
        """Does nothing: on the CPU no work is pending."""

    return run


def _const(name: RalName, constants: Constants) -> Function:
    held = numpy_type(element_name(name.outs[0]))
    loaded = dict[int, Array]()

    def run(ctx: Call, stream: None, index: int, text: str) -> Array:
        if (found := loaded.get(index)) is None:
            found = loaded[index] = constants.get(text, held)
        return ctx.constant(found)

    return run


def _launch(name: RalName, constants: Constants) -> Function:
    def run(ctx: Call, stream: None, *arguments: Any) -> None:
        x, y, z, *rest = arguments
        threads_x, threads_y, threads_z, shared, *values, kernel = rest
        ctx.launch(kernel, (x, y, z), (threads_x, threads_y, threads_z), shared, values)

    return run


# -------------------------------------------------------------------------------------------------------------- library


def _gemm(name: RalName, constants: Constants) -> Function:
    return Gemm(_buffers(name))


def _conv(name: RalName, constants: Constants) -> Function:
    return Convolution(_buffers(name))


def _top_k(name: RalName, constants: Constants) -> Function:
    types = _buffers(name)

    def run(ctx: Call, stream: None, array: Array, values: Array, places: Array) -> None:
        if values.shape != (*array.shape[:-1], values.shape[-1]) or values.shape[-1] > array.shape[-1]:
            raise DataError(f"no {values.shape[-1]} largest of {list(array.shape)}", stage=STAGE)
        ctx.compute(
            [values, places], "top_k", {"keys": [top_key(largest=True)], "types": types[:1]}, [array], types[1:]
        )

    return run


def _rng(name: RalName, constants: Constants) -> Function:
    types = _buffers(name)

    def run(ctx: Call, stream: None, state: Array, new_state: Array, random: Array, algorithm: str) -> None:
        config = {"algorithm": "threefry" if algorithm == "rng_three_fry" else "philox", "types": types[:1]}
        ctx.compute([new_state, random], "random_bits", config, [state], types[1:])

    return run


def _print(name: RalName, constants: Constants) -> Function:
    (element,) = _buffers(name)

    def run(ctx: Call, stream: None, array: Array, label: str) -> None:
        print_array(label, element, array)

    return run


def _random(name: RalName, constants: Constants) -> Function:
    types, distribution = _buffers(name), name.call.rpartition("_")[2]

    def run(ctx: Call, stream: None, low: Array, high: Array, result: Array, numbers: Sequence[int]) -> None:
        start, seed = numbers
        config = {"distribution": distribution, "start": start, "seed": seed, "types": types[:2]}
        ctx.compute([result], "random_numbers", config, [low, high], types[2:])

    return run


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
    "ral_print": _print,
    "ral_rng": _rng,
    "ral_rng_normal": _random,
    "ral_rng_uniform": _random,
    "sync_on_stream": _sync,
    "topk": _top_k,
}
"""Name of a call -> a function that makes its implementation for the types in a full name."""


def function_named(text: str, constants: Constants, makers: Mapping[str, Maker] = MAKERS) -> Function:
    """The implementation of a full name.

    constants  of the program
    makers     of the platform
    raises     Unsupported for a name that the runtime does not have, UsageError for text that is not a name
    """
    name = RalName.parse(text)
    maker = makers.get(name.call)
    if maker is None:
        raise Unsupported(f"the runtime has no function '{name.call}'", stage=STAGE, help=", ".join(sorted(makers)))
    return maker(name, constants)
