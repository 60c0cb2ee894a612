"""Rows of instructions in which a warp holds matrices: `mma`, `ldmatrix`, `stmatrix`, `movmatrix`; or four warps: `wgmma`.

Which shapes and types there are, `mma_shapes` says. Each is one call of an intrinsic: all registers of 32 bits are i32, those of f32 and
f64 of that type. Source: PTX ISA 8.8, 9.7.14.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.mma_shapes import Mma, Wgmma, Wmma
from xla_emitters.text.ptx.memory_rows import registers_of
from xla_emitters.text.ptx.op_builder import TYPES, OpBuilder
from xla_emitters.text.ptx.rows import row
from xla_emitters.text.ptx.syntax import Instruction, Operand, OperandGroup, PtxLiteral, Register


def write_words(e: OpBuilder, i: Instruction, count: int, element: str, name: str, given: list[SSAValue]) -> None:
    """Writes the results of an intrinsic to the registers of the first operand."""
    word = _word_of(element)
    parts = registers_of(e, i, i.operands[0], count)
    e.check_all([part for part in parts if part is not None], word, is_result=True)
    ir_type = i32 if word == "b32" else TYPES[word]
    whole = e.intrinsic(name, given, ir_type if count == 1 else llvm.LLVMStructType.from_type_list([ir_type] * count))
    for number, part in enumerate(parts):
        e.write(part, whole if count == 1 else e.field(whole, number))


def words(e: OpBuilder, i: Instruction, operand: Operand | None, count: int, element: str) -> list[SSAValue]:
    """The registers of one operand as operands of an intrinsic."""
    return [e.read_as(part, _word_of(element)) for part in registers_of(e, i, operand, count)]


def _word_of(element: str) -> str:
    """The type of registers that hold elements."""
    return element if element in ("f32", "f64") else "b32"


@row(
    "mma.sync.aligned mma.sp.sync.aligned mma.sp::ordered_metadata.sync.aligned",
    *(".=...?....", (), "*"),
    pure=False,
)
def mma(
    e: OpBuilder, i: Instruction, a: Operand | None, b: Operand | None, c: Operand | None, *more: Operand | None
) -> None:
    if (found := Mma.of(i.name)) is None:
        raise e.unsupported(f"'{i.name}'")
    if len(more) != (wanted := 2 * found.is_sparse + 4 * (found.scales > 0)):
        raise e.error(f"'{i.name}' takes {4 + wanted} operands, not {len(i.operands)}")
    elements = found.a, found.a, found.to
    each = zip((a, b, c), found.registers, elements, strict=True)
    given = [value for operand, count, element in each for value in words(e, i, operand, count, element)]
    if found.scales:
        for scales, chosen in zip(more[::2], more[1::2], strict=True):
            given.append(e.read_as(scales, "b32"))
            given += [e.read_as(part, "u16") for part in registers_of(e, i, chosen, 2)]
    elif more:
        metadata, selector = more
        if not isinstance(metadata, Register) or not isinstance(selector, PtxLiteral):
            raise e.error(f"'{i.name}' has a register of metadata, and the number of the threads whose metadata count")
        given += [e.read_as(metadata, "b32"), e.read(selector, i32)]
    write_words(e, i, found.registers[2], found.to, i.name, given)


def _wmma_of(e: OpBuilder, i: Instruction) -> tuple[str, Wmma]:
    """The name without state space, and what it says."""
    name = ".".join(part for part in i.parts if part not in ("global", "shared", "shared::cta", "rn"))
    if (found := Wmma.of(name)) is None:
        raise e.unsupported(f"'{i.name}'")
    return name, found


@row("wmma.mma.sync.aligned", ".=...", (), "*", pure=False)
def wmma(e: OpBuilder, i: Instruction, *operands: Operand | None) -> None:
    name, found = _wmma_of(e, i)
    given, to = list[SSAValue](), found.fragments[3]
    for operand, fragment in zip(operands, found.fragments, strict=False):
        given += words(e, i, operand, fragment.registers, fragment.element)
    write_words(e, i, to.registers, to.element, name, given)


@row("wmma.load", ".=a?u", (), "*", pure=False)
def wmma_load(e: OpBuilder, i: Instruction, *place: SSAValue) -> None:
    name, found = _wmma_of(e, i)
    (fragment,) = found.fragments
    write_words(e, i, fragment.registers, fragment.element, name, _with_stride(e, found, place))


@row("wmma.store.d.sync.aligned", "=a.?u", (), "*", pure=False)
def wmma_store(e: OpBuilder, i: Instruction, address: SSAValue, source: Operand | None, *stride: SSAValue) -> None:
    name, found = _wmma_of(e, i)
    (fragment,) = found.fragments
    values = words(e, i, source, fragment.registers, fragment.element)
    e.tell(name, *_with_stride(e, found, (address, *stride)), *values)


def _with_stride(e: OpBuilder, found: Wmma, place: tuple[SSAValue, ...]) -> list[SSAValue]:
    """Address and stride, which is a row's length where it is left out."""
    (fragment,) = found.fragments
    own = e.constant(i32, fragment.columns if found.is_row else fragment.rows)
    return [place[0], place[1] if len(place) > 1 else own]


_ONES = (PtxLiteral(1), PtxLiteral(-1), PtxLiteral(0))


@row("wgmma.mma_async.sync.aligned", ".=*", (), "*", pure=False, updates=True)
def wgmma(e: OpBuilder, i: Instruction, *operands: Operand | None) -> None:
    """The intrinsic has all numbers that an instruction may end with: whether D counts, signs, whether a matrix lies along its rows."""
    if (found := Wgmma.of(i.name)) is None:
        raise e.unsupported(f"'{i.name}'")
    in_memory = not isinstance(operands[0], OperandGroup)
    has_sides = found.a in ("f16", "bf16")
    count = 3 + (0 if found.to == "s32" else 2) + (has_sides + (has_sides and in_memory))
    if len(operands) != count:
        raise e.error(f"'{i.name}' takes {count + 1} operands, not {len(i.operands)}")
    of_a, of_b, scale_d, *numbers = operands
    if any(number not in _ONES for number in numbers):
        raise e.error(f"'{i.name}' ends with numbers: signs, and whether a matrix is transposed")
    signs, sides = numbers[:2] or [PtxLiteral(1)] * 2, numbers[2:]
    sides = [PtxLiteral(0)] * (2 - len(sides)) + sides
    given = words(e, i, i.operands[0], found.registers, found.to)
    given += [e.read_as(of_a, "b64")] if in_memory else words(e, i, of_a, 4, "b32")
    given += [e.read_as(of_b, "b64"), e.read_as(scale_d, "pred")]
    given += [e.read(number, i32) for number in (*signs, *sides)]
    write_words(e, i, found.registers, found.to, i.name, given)


row("wgmma.fence.sync.aligned", "=", to="", pure=False)  # registers are read when a product is issued


# A product is there when it is issued; its matrices in shared memory are in use until it is waited for.
row("wgmma.commit_group.sync.aligned", "=", pure=False)
row("wgmma.wait_group.sync.aligned", "=n", pure=False)


_SHARED = "shared shared::cta"
_OF_BYTES = f"{_SHARED} x1 x2 x4 trans b8x16 b6x16_p32 b4x16_p64"


def _without_space(i: Instruction) -> tuple[int, str]:
    """How many matrices, and the name without state space, `.trans` behind the number."""
    count, shape = i.among("x1 x2 x4"), i.among("m8n8 m8n16 m16n16 m16n8")
    types = [part for part in i.parts[3:] if part[0] == "b"]
    return int(count[1]), ".".join(
        [i.parts[0], "sync.aligned", shape, count, *["trans"] * ("trans" in i.parts), *types]
    )


@row("ldmatrix.sync.aligned", ".=a", {"b16"}, f"{_SHARED} x1 x2 x4 trans", needs="m8n8", pure=False)
@row("ldmatrix.sync.aligned.m16n16", ".=a", {"b8"}, _OF_BYTES, needs="trans", pure=False)
@row("ldmatrix.sync.aligned.m8n16", ".=a", (), _OF_BYTES, needs="b8x16", pure=False)
def ldmatrix(e: OpBuilder, i: Instruction, address: SSAValue) -> None:
    count, name = _without_space(i)
    if ("b8x16" in i.parts) == ("b8" in i.parts or "b16" in i.parts) or count * (1 + ("m16n16" in i.parts)) > 4:
        raise e.unsupported(f"'{i.name}'")
    write_words(e, i, count * (1 + ("m16n16" in i.parts)), "b32", name, [address])


@row("stmatrix.sync.aligned", "=a.", {"b16"}, f"{_SHARED} x1 x2 x4 trans", needs="m8n8", pure=False)
@row("stmatrix.sync.aligned.m16n8", "=a.", {"b8"}, f"{_SHARED} x1 x2 x4", needs="trans", pure=False)
def stmatrix(e: OpBuilder, i: Instruction, address: SSAValue, source: Operand | None) -> None:
    count, name = _without_space(i)
    e.tell(name, address, *words(e, i, source, count, "b32"))


row("movmatrix.sync.aligned.m8n8.trans", "u=u", {"b16"}, pure=False)
