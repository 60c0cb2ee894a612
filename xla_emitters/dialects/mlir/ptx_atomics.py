"""Additions to neighbouring floats in one instruction: PTX has them, LLVM 22 has no op for them.

    %old = llvm.inline_asm has_side_effects "atom.global.v2.f32.add {$0, $1}, [$2], {$3, $4};", "=f,=f,l,f,f" %at, %x, %y
         : (!llvm.ptr, f32, f32) -> !llvm.struct<(f32, f32)>
    %old = llvm.inline_asm has_side_effects "atom.global.add.noftz.bf16x2 $0, [$1], $2;", "=r,l,r" %at, %pair : (!llvm.ptr, i32) -> i32

    elements     instruction                                     from
    2, 4 f32     v2, v4 of f32                                   sm_90
    2 f16        f16x2, both in one word                         sm_60
    2 bf16       bf16x2                                          sm_90
    4, 8 f16     v2, v4 of f16x2; of bf16 as well                sm_90

The address is in global memory and a multiple of the vector's size. Each addition is atomic by itself, not the whole vector. For
f16 and bf16, each sum is rounded to its type, as with a single element.
ptxas turns it into a reduction (RED) if the old values are not used.
Source: PTX ISA 8.1, "atom"; the text of f32 is that of XLA lower_tensors.cc, so that XLA's IR is recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, VectorType, bf16, f16, f32, i32
from xdsl.dialects.llvm import LLVMStructType
from xdsl.ir import SSAValue

from xla_emitters.device import Device
from xla_emitters.dialects.mlir.llvm.calls import InlineAsmOp
from xla_emitters.support.late_dataclass import dataclass

WORD_BITS = 32


@dataclass(frozen=True)
class VectorAddition:
    """An instruction that adds to `elements` neighbours.

    words  registers of 32 bits that hold the addends
    first  the first compute capability that has it
    """

    element: AnyFloat
    elements: int
    words: int
    first: tuple[int, int]

    @property
    def vector(self) -> VectorType:
        return VectorType(self.element, [self.elements])

    @property
    def is_packed(self) -> bool:
        """Whether a register holds two addends."""
        return self.words < self.elements

    @property
    def text(self) -> str:
        if not self.is_packed:
            old, new = (_registers(first, self.words) for first in (0, self.words + 1))
            return f"atom.global.v{self.words}.f32.add {old}, [${self.words}], {new};"
        width = f".v{self.words}" if self.words > 1 else ""
        old, new = (_registers(first, self.words) for first in (0, self.words + 1))
        return f"atom.global.add.noftz{width}.{self.element}x2 {old}, [${self.words}], {new};"


def _registers(first: int, count: int) -> str:
    names = ", ".join(f"${number}" for number in range(first, first + count))
    return f"{{{names}}}" if count > 1 else names


ADDITIONS = (
    VectorAddition(f32, 2, 2, (9, 0)),
    VectorAddition(f32, 4, 4, (9, 0)),
    VectorAddition(f16, 2, 1, (6, 0)),
    VectorAddition(f16, 4, 2, (9, 0)),
    VectorAddition(f16, 8, 4, (9, 0)),
    VectorAddition(bf16, 2, 1, (9, 0)),
    VectorAddition(bf16, 4, 2, (9, 0)),
    VectorAddition(bf16, 8, 4, (9, 0)),
)
_BY_TEXT = {each.text: each for each in ADDITIONS}


def addition_to(vector_type: VectorType, device: Device) -> VectorAddition | None:
    """The instruction of `device` that adds to a vector of `vector_type`, if there is one."""
    for each in ADDITIONS:
        if each.vector == vector_type and device.compute_capability >= each.first:
            return each
    return None


def add_floats(addition: VectorAddition, address: SSAValue, words: Sequence[SSAValue]) -> InlineAsmOp:
    """Adds to the neighbouring floats from `address` on.

    words  the addends: f32, or i32 that hold two each, the first in the low bits
    """
    register, kind = ("r", i32) if addition.is_packed else ("f", f32)
    constraints = ",".join((f"={register}",) * len(words) + ("l",) + (register,) * len(words))
    old = kind if len(words) == 1 else LLVMStructType.from_type_list([kind] * len(words))
    return InlineAsmOp(addition.text, constraints, [address, *words], [old], has_side_effects=True)


def addition_of(op: InlineAsmOp) -> VectorAddition | None:
    """The addition that `op` is; None for another op."""
    return _BY_TEXT.get(op.asm_string.data)
