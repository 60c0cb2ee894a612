"""LLVM's NVIDIA intrinsics that no dialect has as ops, called by name; here conversions of pairs of eight-bit floats.

    llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%a, %b) : (f32, f32) -> i16           %a in the upper byte, %b in the lower
    llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"(%c) : (i16) -> vector<2xf16>       the lower byte is element 0

Those of single PTX instructions are rows of `nvvm_values.py`.
Rounds to nearest even; values beyond the largest finite value, infinities too, saturate to it; NaN is 0x7F.
Source: PTX ISA, "cvt" with .satfinite; LLVM's IntrinsicsNVVM.td.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dtypes import Array, DType, dtype
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.locations import place_of
from xla_emitters.runtime.simt.code import Kernel, Rules, lifted
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.memory import HALF_WINDOW, WINDOW_BITS, Space
from xla_emitters.runtime.simt.nvvm import active_lanes
from xla_emitters.runtime.simt.nvvm_barriers import OF_OP
from xla_emitters.runtime.simt.nvvm_matrices import matrix_intrinsic
from xla_emitters.runtime.simt.nvvm_values import value_of
from xla_emitters.runtime.simt.vector import Elements

RULES = Rules()

E4M3, E5M2 = dtype("f8e4m3fn"), dtype("f8e5m2")


def _code(float_type: DType, x: Array) -> Array:
    """f32 or f16 numbers as bytes of `float_type`, uint8."""
    largest = float_type.float_format.max
    code = np.clip(x.astype(np.float32), -largest, largest).astype(float_type.numpy).view(np.uint8)
    return np.where(np.isnan(x), np.uint8(0x7F), code)


def _two_numbers(float_type: DType, upper: Array, lower: Array) -> Array:
    pair = _code(float_type, upper).astype(np.uint16) << np.uint16(8) | _code(float_type, lower)
    return pair.view(np.int16)


def _vector(float_type: DType, pair: Elements) -> Array:
    return _two_numbers(float_type, pair[1], pair[0])


def _halves(float_type: DType, pair: Array) -> Value:
    codes = (pair.view(np.uint16) >> np.uint16(shift) & np.uint16(0xFF) for shift in (0, 8))
    return tuple(code.astype(np.uint8).view(float_type.numpy).astype(np.float16) for code in codes)


INTRINSICS: dict[str, Callable[..., Value]] = {
    f"llvm.nvvm.{name.format(word)}": partial(function, float_type)
    for word, float_type in (("e4m3x2", E4M3), ("e5m2x2", E5M2))
    for name, function in (("ff.to.{}.rn", _two_numbers), ("f16x2.to.{}.rn", _vector), ("{}.to.f16x2.rn", _halves))
}
"""Intrinsic's name -> its function of lanes."""


def _is_in(space: Space, machine: Machine, address: Array) -> Array:
    windows = (address + HALF_WINDOW) >> WINDOW_BITS
    found = np.zeros(np.shape(address), np.bool_)
    for buffer in machine.memory.buffers:
        if buffer.space is space:
            found |= windows == buffer.number + 1
    return found


OF_MACHINE: dict[str, Kernel] = {
    "llvm.nvvm.activemask": active_lanes,
    **{
        f"llvm.nvvm.isspacep.{name}": partial(_is_in, space)
        for name, space in (("shared", Space.SHARED), ("local", Space.PRIVATE), ("global", Space.GLOBAL))
    },
}
"""Intrinsics whose value depends on where the thread runs."""


@RULES.op(llvm.CallIntrinsicOp)
def call_intrinsic(op: llvm.CallIntrinsicOp) -> Kernel:
    """raises Unsupported for an intrinsic that is in neither table"""
    name = op.intrin.data
    if (with_machine := OF_MACHINE.get(name)) is not None:
        return with_machine
    stem = name.removeprefix("llvm.nvvm.")
    if (of_op := OF_OP.get(stem) or matrix_intrinsic(stem)) is not None:
        return of_op(op)
    if (function := INTRINSICS.get(name)) is None:
        value = value_of(stem) if name.startswith("llvm.nvvm.") else None
        if value is None:
            place = (f"at {place_of(op) or str(op).splitlines()[0]}",)
            raise Unsupported(f"call of the intrinsic '{name}'", stage="simt", details=place)
        function = lifted(op, value)

    def run(machine: Machine, *operands: Value) -> Value:
        return function(*operands)

    return run
