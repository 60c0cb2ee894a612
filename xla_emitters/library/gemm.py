"""Matrix products, with cuBLASLt's prologue and epilogue: scales, a matrix to add, a bias, an activation.

    y    = alpha * lhs_scale * rhs_scale * (lhs @ rhs) + beta * c + bias          all in the type that sums are held in
    aux  = y                                                  GELU_AUX
    d    = activation(y)                                      RELU, GELU (by tanh), SILU
    amax = max |d|                                            before the result's scale
    d    = clip(d_scale * d)                                  8-bit results: to their largest finite value

Narrow floats are multiplied and added in float32, and rounded once, at the end; integers are exact and wrap; complex numbers and f64 use
their own type. A dot of HLO is the same without prologue and epilogue.

The configuration, as plain data:

    operands   the role of each operand: lhs, rhs, c, bias, lhs_scale, rhs_scale, d_scale
    outputs    the role of each result: d, aux, amax, workspace (not written: zeros)
    lhs_batch, rhs_batch, lhs_contracting, rhs_contracting    dimensions, as in HLO's dot
    alpha      [real, imaginary]; beta, epilogue, and rounds: a type that factors are rounded to first, or null
    precision  that f32 factors are multiplied in, as the module asks: default, high, highest, or an algorithm

On a GPU cuBLASLt computes all of it in one call, where its bindings are installed (`cublaslt`). Else cuBLAS multiplies, and prologue and
epilogue are kernels of CuPy's: f16, bf16, 8-bit and TF32 factors go to gemmEx with float32 sums (`cublas`), others to `cupy.matmul`.
Source: NVIDIA's cuBLAS documentation, cublasLtMatmul and its epilogues; docs/reference/1 6.8 "dot".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.library import cublas, cublaslt
from xla_emitters.library.arguments import (
    Array,
    LibraryArguments,
    arranged,
    is_float,
    is_narrow_float,
    largest_of,
    narrowed,
    numpy_type,
    widened,
)

EPILOGUES = (
    "DEFAULT",
    "BIAS",
    "RELU",
    "BIAS_RELU",
    "GELU",
    "BIAS_GELU",
    "GELU_AUX",
    "BIAS_GELU_AUX",
    "SILU",
    "BIAS_SILU",
)
"""XLA's names of epilogues."""


def gemm(arguments: LibraryArguments) -> list[Array]:
    """One result per role in `outputs`."""
    if arguments.on_gpu and (found := cublaslt.matmul(arguments)) is not None:
        return found
    config, xp = arguments.config, arguments.xp
    roles: list[str] = config["outputs"]
    result = arguments.results[roles.index("d")][0]
    held = held_type(result)
    value = _product(arguments, held)
    role = {name: arguments.wide(i) for i, name in enumerate(config["operands"])}
    real, imaginary = config["alpha"]
    for scale in ("lhs_scale", "rhs_scale"):
        if scale in role:
            value = value * role[scale].astype(held)
    if (real, imaginary) != (1, 0):
        value = (value * held.type(complex(real, imaginary) if held.kind == "c" else real)).astype(held)
    if "c" in role:
        value = value + role["c"].astype(held).reshape(value.shape) * held.type(config["beta"])
    if "bias" in role:
        value = value + role["bias"].astype(held).reshape(-1)
    outputs = {"aux": value}
    value = activated(value, config["epilogue"], xp)
    outputs["amax"] = xp.max(xp.abs(value)) if value.size else xp.zeros((), held)
    if "d_scale" in role:
        value = value * role["d_scale"].astype(held)
    if "lhs_scale" in role and is_float(result) and numpy_type(result).itemsize == 1:
        largest = largest_of(result)
        value = xp.clip(value, -largest, largest)
    outputs["d"] = value
    return [
        arguments.zeros(i) if name == "workspace" else arguments.result(i, outputs[name])
        for i, name in enumerate(config["outputs"])
    ]


def held_type(result: str) -> np.dtype[Any]:
    """The type in which sums of a result's type are held; 64 bits for integers."""
    if result[0] == "c" or result == "f64":
        return numpy_type(result)
    if is_float(result):
        return np.dtype(np.float32)
    return np.dtype(np.bool_ if result == "pred" else np.int64)


def activated(value: Array, epilogue: str, xp: Any) -> Array:
    """Applies an epilogue's activation; NaN stays."""
    match epilogue.removeprefix("BIAS_").removesuffix("_AUX"):
        case "DEFAULT" | "BIAS":
            return value
        case "RELU":
            return xp.maximum(value, value.dtype.type(0))
        case "GELU":
            half, cubic, root = (value.dtype.type(c) for c in (0.5, 0.044715, math.sqrt(2 / math.pi)))
            return half * value * (1 + xp.tanh(root * (value + cubic * value * value * value)))
        case "SILU":
            return value / (1 + xp.exp(-value))
        case _:
            raise Unsupported(
                f"no epilogue '{epilogue}' of a matrix product", stage="library", help=", ".join(EPILOGUES)
            )


def _product(arguments: LibraryArguments, held: np.dtype[Any]) -> Array:
    """lhs @ rhs in the held type, shape [batch, rows, columns]: each group of dimensions is flattened to one."""
    config, xp = arguments.config, arguments.xp
    roles: list[str] = config["operands"]
    lhs, rhs = roles.index("lhs"), roles.index("rhs")
    factors = list[Array]()
    names = [arguments.types[lhs], arguments.types[rhs]]
    rounds, is_single = config.get("rounds"), names == ["f32", "f32"]
    is_rounded = (
        rounds is not None or cublas.rounds_to_tf32(config)
        if is_single
        else all(map(is_narrow_float, names)) and not rounds
    )
    goes_to_tensor_cores = arguments.on_gpu and held == np.float32 and is_rounded
    for number, name in ((lhs, names[0]), (rhs, names[1])):
        array = arguments.operands[number]
        if goes_to_tensor_cores:
            factors.append(narrowed(array, rounds, xp) if rounds else cublas.factor(array, name, xp))
            continue
        array = _factor(widened(array, name, xp), held, xp)
        factors.append(_rounded(array, rounds, xp) if rounds else array)
    left = arranged(factors[0], config["lhs_batch"], contracting=config["lhs_contracting"], contracting_last=True)
    right = arranged(factors[1], config["rhs_batch"], contracting=config["rhs_contracting"], contracting_last=False)
    if goes_to_tensor_cores:
        return cublas.product(left, right, [rounds or name for name in names], xp)
    return _multiplied(left, right, held, xp)


def _factor(array: Array, held: np.dtype[Any], xp: Any) -> Array:
    if held.kind == "i" and array.dtype.kind == "f":
        raise Unsupported("no product of floats that is an integer", stage="library")
    return array.astype(held)


def _rounded(array: Array, name: str, xp: Any) -> Array:
    """float32 rounded to a narrower type and back."""
    if xp is np:
        return array.astype(numpy_type(name)).astype(np.float32)
    raise Unsupported(f"no product that rounds its factors to {name} on a GPU", stage="library")


def _multiplied(left: Array, right: Array, held: np.dtype[Any], xp: Any) -> Array:
    if held.kind == "b":
        return (left.astype(np.float32) @ right.astype(np.float32)) > 0
    if held.kind == "i" and xp is np and left.size and right.size:
        # NumPy has no fast product of integers. Those of float32 and float64 are exact below 2^24 and 2^53.
        largest = int(np.abs(left).max()) * int(np.abs(right).max()) * left.shape[-1]
        for exact, most in ((np.float32, 1 << 24), (np.float64, 1 << 53)):
            if 0 <= largest < most:
                return (left.astype(exact) @ right.astype(exact)).astype(np.int64)
    return xp.matmul(left, right)
