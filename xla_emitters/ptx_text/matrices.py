"""Rows of instructions in which a warp holds matrices: `mma`, `ldmatrix`, `stmatrix`, `movmatrix`; or four warps: `wgmma`.

Each is one call of an intrinsic: all registers of 32 bits are i32, those of f32 and f64 of that type. Source: PTX ISA 8.8, 9.7.14.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.mma_shapes import SHAPES, Mma, Wgmma
from xla_emitters.ptx_text.arithmetic import operands
from xla_emitters.ptx_text.emitter import Emitter
from xla_emitters.ptx_text.forms import check_operand
from xla_emitters.ptx_text.rows import row
from xla_emitters.ptx_text.syntax import Group, Instruction, Number, Operand

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


_WGMMA_SHAPES = " ".join(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32))


@row(
    "wgmma.mma_async.sync.aligned",
    types={"f16", "bf16", "tf32", "f32", "s8", "u8", "e4m3", "e5m2"},
    modifiers=f"{_WGMMA_SHAPES} satfinite s32",
    pure=False,
    updates=True,
)
def wgmma(e: Emitter, i: Instruction) -> None:
    """The intrinsic has all numbers that an instruction may end with: whether D counts, signs, whether a matrix lies along its rows."""
    if (found := Wgmma.of(i.name)) is None:
        raise e.unsupported(f"'{i.name}'")
    in_memory = not isinstance(i.operands[1], Group)
    has_sides = found.a in ("f16", "bf16")
    count = 4 + (0 if found.to == "s32" else 2) + (has_sides + (has_sides and in_memory))
    results, of_a, of_b, scale_d, *numbers = operands(e, i, count)
    if any(not isinstance(number, Number) or number.value not in (-1, 0, 1) for number in numbers):
        raise e.error(f"'{i.name}' ends with numbers: signs, and whether a matrix is transposed")
    signs, sides = numbers[:2] or [Number(1)] * 2, numbers[2:]
    sides = [Number(0)] * (2 - len(sides)) + sides
    to = "b32" if found.to == "f16" else found.to
    parts = parts_of(e, i, results, found.registers)
    given = words_in(e, i, parts, to)
    if in_memory:
        check_operand(e, i, of_a, "b64")
        given.append(e.read(of_a, i64))
    else:
        given += words_in(e, i, parts_of(e, i, of_a, 4), "b32")
    check_operand(e, i, of_b, "b64")
    check_operand(e, i, scale_d, "pred")
    given += [e.read(of_b, i64), e.read(scale_d, i1), *(e.read(number, i32) for number in (*signs, *sides))]
    write_parts(e, i, parts, i.name, given, to)


@row("wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned", results=0, pure=False)
@row("wgmma.wait_group.sync.aligned", results=0, pure=False)
def wgmma_order(e: Emitter, i: Instruction) -> None:
    """A product is there when it is issued."""


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
