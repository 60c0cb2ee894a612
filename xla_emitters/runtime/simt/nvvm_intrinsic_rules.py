"""LLVM's NVIDIA intrinsics that no dialect has as ops, called by name; here conversions of pairs of eight-bit floats.

    llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%a, %b) : (f32, f32) -> i16           %a in the upper byte, %b in the lower
    llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"(%c) : (i16) -> vector<2xf16>       the lower byte is element 0
    llvm.call_intrinsic "llvm.nvvm.ff.to.e2m1x2.rn.relu"(%a, %b) : (f32, f32) -> i8       of four bits; negative numbers become 0

Those of single PTX instructions are rows of `nvvm_values.py`.
Rounds to nearest even; values beyond the largest finite value, infinities too, saturate to it; NaN is 0x7F, or the largest value of a
type without NaN.
Source: PTX ISA, "cvt" with .satfinite; LLVM's IntrinsicsNVVM.td.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.mma_shapes import Wgmma
from xla_emitters.dtypes import Array, DType, dtype
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt.code import Kernel, Rules, lifted
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.memory import HALF_WINDOW, WINDOW_BITS, Space
from xla_emitters.runtime.simt.nvvm_barrier_rules import OF_OP
from xla_emitters.runtime.simt.nvvm_bulk_copies import copy_intrinsic
from xla_emitters.runtime.simt.nvvm_matrices import matrix_intrinsic
from xla_emitters.runtime.simt.nvvm_rules import active_lanes, proxy_fence
from xla_emitters.runtime.simt.nvvm_tensor_memory import tensor_intrinsic
from xla_emitters.runtime.simt.nvvm_values import value_of
from xla_emitters.runtime.simt.nvvm_warpgroups import UNWAITED, unwaited, wgmma
from xla_emitters.runtime.simt.vector_rules import Elements

RULES = Rules()

NARROW = {
    **{"e4m3x2": dtype("f8e4m3fn"), "e5m2x2": dtype("f8e5m2")},
    **{"e2m3x2": dtype("f6e2m3fn"), "e3m2x2": dtype("f6e3m2fn"), "e2m1x2": dtype("f4e2m1fn")},
}
"""PTX's name of two numbers -> the type of each."""


def _code(float_type: DType, is_positive: bool, x: Array) -> Array:
    """f32 or f16 numbers as bits of `float_type`, uint8."""
    largest = float_type.float_format.max
    x = x.astype(np.float32)
    code = np.clip(x, 0 if is_positive else -largest, largest).astype(float_type.numpy).view(np.uint8)
    nan = 0x7F if float_type.name.startswith("f8") else np.array(largest, float_type.numpy).view(np.uint8)
    return np.where(np.isnan(x), np.uint8(nan), code)


def _two_numbers(float_type: DType, is_positive: bool, upper: Array, lower: Array) -> Array:
    codes = [_code(float_type, is_positive, part) for part in (upper, lower)]
    if float_type.bits == 4:
        return (codes[0] << np.uint8(4) | codes[1]).view(np.int8)
    return (codes[0].astype(np.uint16) << np.uint16(8) | codes[1]).view(np.int16)


def _vector(float_type: DType, is_positive: bool, pair: Elements) -> Array:
    return _two_numbers(float_type, is_positive, pair[1], pair[0])


def _halves(float_type: DType, is_positive: bool, pair: Array) -> Value:
    bits, mask = (4, 0x0F) if float_type.bits == 4 else (8, 0xFF if float_type.name.startswith("f8") else 0x3F)
    words = pair.view(f"u{pair.itemsize}").astype(np.uint16)
    codes = (words >> np.uint16(shift) & np.uint16(mask) for shift in (0, bits))
    found = (code.astype(np.uint8).view(float_type.numpy).astype(np.float16) for code in codes)
    zero = np.float16(0)
    return tuple(np.where(half < zero, zero, half) if is_positive else half for half in found)


def _scale(rounds_up: bool, is_finite: bool, x: Array) -> Array:
    """The power of two of a magnitude as its exponent plus 127, uint16; 255 is NaN, and what is too large unless that is 254."""
    bits = x.astype(np.float32).view(np.uint32) & np.uint32(0x7FFFFFFF)
    code = bits >> np.uint32(23)
    if rounds_up:
        # Up to 2**-127, which is subnormal, there is no smaller number.
        code = code + ((bits & np.uint32(0x7FFFFF) != 0) & (bits > 0x400000) & (code < 255))
    if is_finite:
        code = np.where(bits <= 0x7F800000, np.minimum(code, 254), code)
    return code.astype(np.uint16)


def _scales(rounds_up: bool, is_finite: bool, upper: Array, lower: Array) -> Array:
    codes = [_scale(rounds_up, is_finite, part) for part in (upper, lower)]
    return (codes[0] << np.uint16(8) | codes[1]).view(np.int16)


def _scales_of(rounds_up: bool, is_finite: bool, pair: Elements) -> Array:
    return _scales(rounds_up, is_finite, pair[1], pair[0])


def _of_scales(pair: Array) -> Value:
    codes = (pair.view(np.uint16) >> np.uint16(shift) & np.uint16(0xFF) for shift in (0, 8))
    return tuple(
        np.where(code == 255, np.float32(np.nan), np.ldexp(np.float32(1), code.astype(np.int32) - 127))
        for code in codes
    )


INTRINSICS: dict[str, Callable[..., Value]] = {
    "llvm.nvvm.ue8m0x2.to.bf16x2": _of_scales,
    **{
        f"llvm.nvvm.{of}.to.ue8m0x2.{mode}{'.satfinite' * is_finite}": partial(function, mode == "rp", is_finite)
        for of, function in (("ff", _scales), ("bf16x2", _scales_of))
        for mode in ("rz", "rp")
        for is_finite in (False, True)
    },
    **{
        f"llvm.nvvm.{name.format(word)}{'.relu' * is_positive}": partial(function, float_type, is_positive)
        for word, float_type in NARROW.items()
        for name, function in (("ff.to.{}.rn", _two_numbers), ("f16x2.to.{}.rn", _vector), ("{}.to.f16x2.rn", _halves))
        for is_positive in (False, True)
    },
}
"""Intrinsic's name -> its function of lanes."""


def _is_in(space: Space, machine: Machine, address: Array) -> Array:
    windows = (address + HALF_WINDOW) >> WINDOW_BITS
    found = np.zeros(np.shape(address), np.bool_)
    for window, buffer in enumerate(machine.memory.buffers, 1):
        if buffer.space is space:
            found |= windows == window
    return found


def _dynamic_shared_bytes(machine: Machine) -> Array:
    return np.array([[machine.memory.launch_shared_bytes]], np.int32)


OF_MACHINE: dict[str, Kernel] = {
    "llvm.nvvm.activemask": active_lanes,
    "llvm.nvvm.fence.proxy.async": proxy_fence,
    "llvm.nvvm.read.ptx.sreg.dynamic_smem_size": _dynamic_shared_bytes,
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
    if (warpgroups := Wgmma.of(stem)) is not None:
        return partial(wgmma, warpgroups, op)
    if stem.startswith(UNWAITED):
        return partial(unwaited, stem.removeprefix(UNWAITED), op)
    families = (OF_OP.get, matrix_intrinsic, copy_intrinsic, tensor_intrinsic)
    if (of_op := next((found for family in families if (found := family(stem))), None)) is not None:
        return partial(of_op, op)
    if (function := INTRINSICS.get(name)) is None:
        value = value_of(stem) if name.startswith("llvm.nvvm.") else None
        if value is None:
            place = (f"at {place_of(op) or str(op).splitlines()[0]}",)
            raise Unsupported(f"call of the intrinsic '{name}'", stage="simt", details=place)
        function = lifted(op, value)
    return partial(_of_lanes, function)


def _of_lanes(function: Callable[..., Value], machine: Machine, *operands: Value) -> Value:
    return function(*operands)
