"""Rows of instructions in which a warp holds matrices: `mma`, `ldmatrix`, `stmatrix`, `movmatrix`; or four warps: `wgmma`.

Each is one call of an intrinsic: all registers of 32 bits are i32, those of f32 and f64 of that type. Source: PTX ISA 8.8, 9.7.14.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.mma_shapes import SHAPES, SPARSE, Mma, Wgmma, Wmma
from xla_emitters.text.ptx.arithmetic import operands
from xla_emitters.text.ptx.asynchronous import order_groups
from xla_emitters.text.ptx.emitter import Emitter
from xla_emitters.text.ptx.forms import check_operand
from xla_emitters.text.ptx.memory import space_of
from xla_emitters.text.ptx.rows import row
from xla_emitters.text.ptx.syntax import Group, Instruction, Number, Operand, Register

_SHAPES = " ".join(
    sorted(
        {f"m{m}n8k{k}" for shapes in SHAPES.values() for m, k in shapes}
        | {f"m16n8k{k}" for depths in SPARSE.values() for k in depths}
    )
)
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
    "mma.sp.sync.aligned",
    "mma.sp::ordered_metadata.sync.aligned",
    types={"f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "e4m3", "e5m2"},
    modifiers=f"{_SHAPES} row col satfinite s32 s4 u4",
    pure=False,
)
def mma(e: Emitter, i: Instruction) -> None:
    if (found := Mma.of(i.name)) is None:
        raise e.unsupported(f"'{i.name}'")
    results, of_a, of_b, of_c, *sparsity = operands(e, i, 6 if found.is_sparse else 4)
    counts = found.registers
    word = "f64" if found.a == "f64" else "b32"
    to = "b32" if found.to == "f16" else found.to
    given = [
        *words_in(e, i, parts_of(e, i, of_a, counts[0]), word),
        *words_in(e, i, parts_of(e, i, of_b, counts[1]), word),
        *words_in(e, i, parts_of(e, i, of_c, counts[2]), to),
    ]
    if sparsity:
        if not isinstance(sparsity[0], Register) or not isinstance(sparsity[1], Number):
            raise e.error(
                f"'{i.name}' ends with a register of metadata, and the number of the threads whose metadata count"
            )
        given += [*words_in(e, i, (sparsity[0],), "b32"), e.read(sparsity[1], i32)]
    write_parts(e, i, parts_of(e, i, results, counts[2]), i.name, given, to)


_WMMA = "m16n16k16 m32n8k16 m8n32k16 m16n16k8 m8n8k4 row col s32 satfinite global shared shared::cta rn"
_WMMA_TYPES = {"f16", "bf16", "tf32", "f32", "f64", "s8", "u8"}


@row("wmma.load", "wmma.mma.sync.aligned", types=_WMMA_TYPES, modifiers=f"a b c sync aligned {_WMMA}", pure=False)
@row("wmma.store.d.sync.aligned", types=_WMMA_TYPES, modifiers=_WMMA, results=0, pure=False)
def wmma(e: Emitter, i: Instruction) -> None:
    name = ".".join(part for part in i.parts if part not in ("global", "shared", "shared::cta", "rn"))
    if (found := Wmma.of(name)) is None:
        raise e.unsupported(f"'{i.name}'")
    if found.kind == "mma":
        given = list[SSAValue]()
        for operand, fragment in zip(operands(e, i, 4)[1:], found.fragments, strict=False):
            given += words_in(e, i, parts_of(e, i, operand, fragment.registers), _word_of(fragment.element))
        result = found.fragments[3]
        write_parts(e, i, parts_of(e, i, i.operands[0], result.registers), name, given, _word_of(result.element))
        return
    (fragment,) = found.fragments
    word = _word_of(fragment.element)
    if not 2 <= len(i.operands) <= 3:
        raise e.error(f"'{i.name}' takes a fragment, an address and a stride")
    first, second = i.operands[:2] if found.kind == "load" else reversed(i.operands[:2])
    own = Number(fragment.columns if found.is_row else fragment.rows)
    stride = i.operands[2] if len(i.operands) == 3 else own
    check_operand(e, i, stride, "u32")
    given = [e.pointer(second, space_of(i)), e.read(stride, i32)]
    parts = parts_of(e, i, first, fragment.registers)
    if found.kind == "load":
        write_parts(e, i, parts, name, given, word)
    else:
        e.do(llvm.CallIntrinsicOp(f"llvm.nvvm.{name}", [*given, *words_in(e, i, parts, word)], []))


def _word_of(element: str) -> str:
    """The type of registers that hold elements."""
    return element if element in ("f32", "f64") else "b32"


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


@row("wgmma.fence.sync.aligned", results=0, pure=False)
def wgmma_fence(e: Emitter, i: Instruction) -> None:
    """Registers are read when a product is issued."""


@row("wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned", results=0, pure=False)
def wgmma_order(e: Emitter, i: Instruction) -> None:
    """A product is there when it is issued; its matrices in shared memory are in use until it is waited for."""
    order_groups(e, i, i.name)


def _matrices(i: Instruction) -> int:
    return int(next(part for part in i.parts if part in ("x1", "x2", "x4"))[1])


_LDMATRIX = "m8n8 x1 x2 x4 trans shared shared::cta"


@row("ldmatrix.sync.aligned", types={"b16"}, modifiers=_LDMATRIX, needs=("m8n8",), pure=False)
def ldmatrix(e: Emitter, i: Instruction) -> None:
    results, address = operands(e, i, 2)
    count, trans = _matrices(i), ".trans" * ("trans" in i.parts)
    pointer = e.pointer(address, "shared" if i.parts[-2].startswith("shared") else "generic")
    name = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.b16"
    write_parts(e, i, parts_of(e, i, results, count), name, [pointer], "b32")


@row("stmatrix.sync.aligned", types={"b16"}, modifiers=_LDMATRIX, needs=("m8n8",), results=0, pure=False)
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
