"""Rows of instructions in which a warp holds matrices: `mma`, `ldmatrix`, `stmatrix`, `movmatrix`.

Each is one call of an intrinsic: all registers of 32 bits are i32, those of f32 and f64 of that type. Source: PTX ISA 8.8, 9.7.14.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.mma_shapes import SHAPES, Mma
from xla_emitters.ptx_text.arithmetic import operands
from xla_emitters.ptx_text.emitter import Emitter
from xla_emitters.ptx_text.forms import check_operand
from xla_emitters.ptx_text.rows import row
from xla_emitters.ptx_text.syntax import Group, Instruction, Operand

_SHAPES = " ".join(sorted({f"m{m}n8k{k}" for shapes in SHAPES.values() for m, k in shapes}))
_TYPES = {"f64": f64, "f32": f32}


def parts_of(e: Emitter, i: Instruction, operand: Operand | None, count: int) -> tuple[Operand | None, ...]:
    """The registers of one operand: `{%r1, %r2}`. raises ParseError for another number of them"""
    parts = operand.elements if isinstance(operand, Group) else (operand,)
    if len(parts) != count:
        raise e.error(f"'{i.name}' takes {count} registers here, not {len(parts)}")
    return parts


def write_parts(
    e: Emitter, i: Instruction, parts: tuple[Operand | None, ...], name: str, given: list[SSAValue], word: str
) -> None:
    """Writes the results of an intrinsic to registers."""
    ir_type: Attribute = _TYPES.get(word, i32)
    for part in parts:
        if part is not None:
            check_operand(e, i, part, word, is_result=True)
    if len(parts) == 1:
        e.write(parts[0], e.intrinsic(name, given, ir_type))
        return
    whole = e.intrinsic(name, given, llvm.LLVMStructType.from_type_list([ir_type] * len(parts)))
    for number, part in enumerate(parts):
        e.write(part, e.add(llvm.ExtractValueOp(DenseArrayBase.from_list(i64, [number]), whole, ir_type)))


def words_in(e: Emitter, i: Instruction, parts: tuple[Operand | None, ...], word: str) -> list[SSAValue]:
    """Registers as operands of an intrinsic."""
    for part in parts:
        check_operand(e, i, part, word)
    return [e.read(part, _TYPES.get(word, i32)) for part in parts]


@row(
    "mma.sync.aligned",
    types={"f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "e4m3", "e5m2"},
    modifiers=f"{_SHAPES} row col satfinite s32 s4 u4",
    pure=False,
)
def mma(e: Emitter, i: Instruction) -> None:
    if (found := Mma.of(i.name)) is None:
        raise e.unsupported(f"'{i.name}'")
    results, of_a, of_b, of_c = operands(e, i, 4)
    counts = found.registers
    word = "f64" if found.a == "f64" else "b32"
    to = "b32" if found.to == "f16" else found.to
    given = [
        *words_in(e, i, parts_of(e, i, of_a, counts[0]), word),
        *words_in(e, i, parts_of(e, i, of_b, counts[1]), word),
        *words_in(e, i, parts_of(e, i, of_c, counts[2]), to),
    ]
    write_parts(e, i, parts_of(e, i, results, counts[2]), i.name, given, to)


def _matrices(i: Instruction) -> int:
    return int(next(part for part in i.parts if part in ("x1", "x2", "x4"))[1])


@row("ldmatrix.sync.aligned.m8n8", types={"b16"}, modifiers="x1 x2 x4 trans shared shared::cta", pure=False)
def ldmatrix(e: Emitter, i: Instruction) -> None:
    results, address = operands(e, i, 2)
    count, trans = _matrices(i), ".trans" * ("trans" in i.parts)
    pointer = e.pointer(address, "shared" if i.parts[-2].startswith("shared") else "generic")
    name = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.b16"
    write_parts(e, i, parts_of(e, i, results, count), name, [pointer], "b32")


@row("stmatrix.sync.aligned.m8n8", types={"b16"}, modifiers="x1 x2 x4 trans shared shared::cta", results=0, pure=False)
def stmatrix(e: Emitter, i: Instruction) -> None:
    address, values = operands(e, i, 2)
    count, trans = _matrices(i), ".trans" * ("trans" in i.parts)
    pointer = e.pointer(address, "shared" if i.parts[-2].startswith("shared") else "generic")
    given = words_in(e, i, parts_of(e, i, values, count), "b32")
    e.do(llvm.CallIntrinsicOp(f"llvm.nvvm.stmatrix.sync.aligned.m8n8.x{count}{trans}.b16", [pointer, *given], []))


@row("movmatrix.sync.aligned.m8n8.trans", form="uu", types={"b16"}, pure=False)
def movmatrix(e: Emitter, i: Instruction) -> None:
    (given,) = words_in(e, i, i.operands[1:], "b32")
    e.write(i.operands[0], e.intrinsic(i.name, [given], i32))
