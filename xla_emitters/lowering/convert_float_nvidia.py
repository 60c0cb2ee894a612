"""Converts f8E4M3FN and f8E5M2 by instructions on chips that have them: Ada (8.9), Hopper (9.0) and later.

    %y = arith.truncf %x : f32 to f8E4M3FN                          %y = arith.extf %x : f8E5M2 to f32
->                                                              ->
    %p = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%x, %x)    %c = arith.extui (arith.bitcast %x : f8E5M2 to i8) : i8 to i16
    %c = arith.trunci %p : i16 to i8                                %p = llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"(%c)
    %y = 464 < |%x| <= inf ? sign | 0x7F : %c                       %y = arith.extf %p[0] : f16 to f32

The instructions convert two numbers; one result is used. They saturate: a value beyond the largest finite one becomes that one, so a
select inserts infinity (NaN for f8E4M3FN). xla-expand-float-ops converts the rest: other formats; f64, which would be rounded twice on the
way through f32; narrow to narrow; f4E2M1FN, whose instructions need an architecture-specific target (sm_100a), which is not used here.
Source: docs/reference/2 3.3 "xla-gpu-convert-float-nvidia"; PTX ISA, "cvt".
"""

from __future__ import annotations

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float64Type,
    IntegerType,
    ModuleOp,
    VectorType,
    f16,
    f32,
    i8,
    i16,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.locations import located_builder, replace_by
from xla_emitters.dialects.mlir import arith, llvm, vector
from xla_emitters.dialects.mlir.arith import rounds_to_nearest_even
from xla_emitters.dialects.mlir.vector import FromElementsOp
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dtypes import WIDE_FLOATS, FloatFormat
from xla_emitters.lowering.narrow_floats import FORMATS, Integers, is_narrow
from xla_emitters.rewrite.kernel_pass import DevicePass
from xla_emitters.support.late_dataclass import dataclass

# Compute capability -> the first version of PTX with the instructions for it, newest chip first.
FIRST_PTX = (((9, 0), (7, 8)), ((8, 9), (8, 1)))
_NAMES = {"f8E4M3FN": "e4m3x2", "f8E5M2": "e5m2x2"}
_PAIR = VectorType(f16, [2])


@dataclass(frozen=True)
class ConvertFloatNvidiaPass(DevicePass):
    """device  the target GPU

    compute_capability_major, compute_capability_minor  of another chip to assume instead, as XLA's pass takes them
    ptx_version_major, ptx_version_minor  the PTX version that is written; by default the toolchain's, which has the instructions
    """

    name = "xla-gpu-convert-float-nvidia"

    compute_capability_major: int | None = None
    compute_capability_minor: int = 0
    ptx_version_major: int | None = None
    ptx_version_minor: int = 0

    def apply_to(self, op: ModuleOp) -> None:
        chip, can = self._chip()
        for found in list(walk(op)):
            if not isinstance(found, arith.ExtFOp | arith.TruncFOp):
                continue
            types = (found.input.type, found.result.type)
            if not any(is_narrow(value_type) for value_type in types):
                continue
            if not can:
                self.skip(found, f"{chip} has no instruction for it")
            elif reason := _refusal(found, *types):
                self.skip(found, reason)
            else:
                _convert(found)

    def _chip(self) -> tuple[str, bool]:
        """The name of the chip, for messages, and whether it has the instructions."""
        name, capability = self.device.name, self.device.compute_capability
        if self.compute_capability_major is not None:
            capability = (self.compute_capability_major, self.compute_capability_minor)
            name = f"sm_{capability[0]}{capability[1]}"
        if self.ptx_version_major is None:
            return name, capability >= FIRST_PTX[-1][0]
        version = (self.ptx_version_major, self.ptx_version_minor)
        first = next((needed for chip, needed in FIRST_PTX if capability >= chip), None)
        return f"{name} with PTX {version[0]}.{version[1]}", first is not None and version >= first


def _refusal(op: Operation, source: Attribute, target: Attribute) -> str | None:
    """Why a conversion is left unchanged; None if it is converted."""
    if not rounds_to_nearest_even(op):
        return "it does not round to nearest even"
    if isinstance(source, Float64Type):
        return "it would round twice"
    wide = source if target.name in _NAMES else target
    if isinstance(wide, WIDE_FLOATS) and {source.name, target.name} & _NAMES.keys():
        return None
    return f"there is no instruction from {source} to {target}"


def _convert(op: arith.ExtFOp | arith.TruncFOp) -> None:
    b = located_builder(InsertPoint.before(op), op)
    value = _narrowed(b, op.input, op.result.type) if is_narrow(op.result.type) else _widened(b, op)
    replace_by(op, [value])


def _widened(b: Builder, op: arith.ExtFOp | arith.TruncFOp) -> SSAValue:
    target = op.result.type
    code = b.insert(arith.ExtUIOp(b.insert(arith.BitcastOp(op.input, i8)).result, i16)).result
    pair = _call(b, f"{_NAMES[op.input.type.name]}.to.f16x2.rn", [code], _PAIR)
    half = b.insert(vector.ExtractOp(pair, [0], f16)).result
    match target:
        case Float16Type():
            return half
        case BFloat16Type():
            return b.insert(arith.TruncFOp(b.insert(arith.ExtFOp(half, f32)).result, target)).result
        case _:
            return b.insert(arith.ExtFOp(half, target)).result


def _narrowed(b: Builder, x: SSAValue, target: Attribute) -> SSAValue:
    name, form = _NAMES[target.name], FORMATS[target.name]
    if isinstance(x.type, BFloat16Type):
        x = b.insert(arith.ExtFOp(x, f32)).result
    if isinstance(x.type, Float16Type):
        pair = _call(b, f"f16x2.to.{name}.rn", [b.insert(FromElementsOp([x, x], _PAIR)).results[0]], i16)
    else:
        pair = _call(b, f"ff.to.{name}.rn", [x, x], i16)
    code = b.insert(arith.TruncIOp(pair, i8)).result

    width, numpy = (16, np.float16) if isinstance(x.type, Float16Type) else (32, np.float32)
    wide, byte = Integers(b, IntegerType(width)), Integers(b, i8)
    bits = wide.of_float(x)
    size = wide.and_(bits, (1 << width - 1) - 1)
    # Ties round to even, so a tie is beyond the largest value if that value is odd.
    beyond = b.insert(arith.CmpiOp(size, wide.constant(_pattern(_tie(form), numpy) - form.largest % 2), "ugt")).result
    number = b.insert(arith.CmpiOp(size, wide.constant(_pattern(np.inf, numpy)), "ule")).result
    sign = byte.and_(b.insert(arith.TruncIOp(wide.shift_right(bits, width - 8), i8)).result, form.sign)
    special = byte.or_(sign, byte.constant(form.beyond))
    too_large = b.insert(arith.AndIOp(beyond, number)).result
    return b.insert(arith.BitcastOp(b.insert(arith.SelectOp(too_large, special, code)).result, target)).result


def _tie(form: FloatFormat) -> float:
    """Half a unit above the largest finite value."""
    one = 1 << form.fraction_bits
    exponent = (form.largest >> form.fraction_bits) - form.bias - form.fraction_bits
    return ((form.largest & one - 1) + one + 0.5) * 2.0**exponent


def _pattern(value: float, numpy: type[np.floating]) -> int:
    return int.from_bytes(numpy(value).tobytes(), "little")


def _call(b: Builder, name: str, operands: list[SSAValue], result: Attribute) -> SSAValue:
    return b.insert(llvm.CallIntrinsicOp(f"llvm.nvvm.{name}", operands, [result])).results[0]
