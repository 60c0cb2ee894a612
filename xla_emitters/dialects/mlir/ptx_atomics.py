"""Additions to two or four neighbouring floats in one instruction: PTX has it from sm_90 on, LLVM 22 has no op for it.

    %old = llvm.inline_asm has_side_effects "atom.global.v2.f32.add {$0, $1}, [$2], {$3, $4};", "=f,=f,l,f,f" %at, %x, %y
         : (!llvm.ptr, f32, f32) -> !llvm.struct<(f32, f32)>

The address is in global memory and a multiple of the vector's size. Each addition is atomic by itself, not the whole vector.
ptxas turns it into a reduction (RED) where the old values are not used.
Source: PTX ISA 8.1, "atom"; the text is that of XLA lower_tensors.cc, so that XLA's IR is recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType, f32
from xdsl.dialects.llvm import LLVMStructType
from xdsl.ir import SSAValue

from xla_emitters.device import Device
from xla_emitters.dialects.mlir.llvm.calls import InlineAsmOp

WIDTHS = (2, 4)
FIRST_ARCHITECTURE = (9, 0)


def _text(width: int) -> str:
    old, new = ([f"${k}" for k in range(first, first + width)] for first in (0, width + 1))
    return f"atom.global.v{width}.f32.add {{{', '.join(old)}}}, [${width}], {{{', '.join(new)}}};"


TEXTS = {_text(width): width for width in WIDTHS}


def can_add(vector_type: VectorType, device: Device) -> bool:
    """Whether `device` has an instruction that adds to a vector of `vector_type`."""
    is_pair_or_four = vector_type.element_type == f32 and vector_type.get_shape() in [(width,) for width in WIDTHS]
    return is_pair_or_four and device.compute_capability >= FIRST_ARCHITECTURE


def add_floats(address: SSAValue, values: Sequence[SSAValue]) -> InlineAsmOp:
    """Adds `values`, two or four, to the neighbouring floats from `address` on."""
    width = len(values)
    constraints = ",".join(("=f",) * width + ("l",) + ("f",) * width)
    old = LLVMStructType.from_type_list([f32] * width)
    return InlineAsmOp(_text(width), constraints, [address, *values], [old], has_side_effects=True)


def floats_added_to(op: InlineAsmOp) -> int | None:
    """The number of floats that `op` adds to; None for another op."""
    return TEXTS.get(op.asm_string.data)
