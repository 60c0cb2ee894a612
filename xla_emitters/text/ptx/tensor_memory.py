"""Rows of `tcgen05`: tensor memory, which a warp allocates, loads and stores, and products that one thread issues there.

Each is one call of an intrinsic; which shapes and kinds there are, `dialects/mlir/tcgen05_shapes` says. An address has 32 bits.
Source: PTX ISA 8.8, 9.7.16 "TensorCore 5th generation family instructions".
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.tcgen05_shapes import TensorAccess, TensorMma, tensor_copy
from xla_emitters.text.ptx.matrices import words, write_words
from xla_emitters.text.ptx.op_builder import OpBuilder
from xla_emitters.text.ptx.rows import row
from xla_emitters.text.ptx.syntax import Address, Instruction, Operand, OperandGroup, PtxLiteral, Register

_GROUPS = ("cta_group::1", "cta_group::2")
_ARRIVES = "mbarrier::arrive::one"

# Each block of a pair allocates what it has of both.
for _group in _GROUPS:
    _END = f"{_group}.sync.aligned"
    row(
        f"tcgen05.alloc.{_END}",
        "=au",
        (),
        "shared::cta",
        needs="b32",
        to="tcgen05.alloc",
        pure=False,
        waits=True,
    )
    row(f"tcgen05.dealloc.{_END}", "=uu", (), needs="b32", to="tcgen05.dealloc", pure=False)
    row(f"tcgen05.relinquish_alloc_permit.{_END}", "=", to="tcgen05.relinquish_alloc_permit", pure=False)
row("tcgen05.wait::ld.sync.aligned tcgen05.wait::st.sync.aligned", "=", to="tcgen05.{1}", pure=False)
# What barriers and commits order, they order without a fence.
row("tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync", "=", to="", pure=False)


def _cell(e: OpBuilder, operand: Operand | None) -> SSAValue:
    """`[%r1+8]`: an address of tensor memory."""
    if not isinstance(operand, Address) or not isinstance(operand.base, Register):
        raise e.error("expected an address of tensor memory in brackets")
    value = e.read_as(operand.base, "b32")
    return e.add(llvm.AddOp(value, e.constant(i32, operand.offset))) if operand.offset else value


@row("tcgen05.ld.sync.aligned", ".=.*", (), "*", pure=False)
def load(e: OpBuilder, i: Instruction, *place: Operand | None) -> None:
    found, given = _access(e, i, i.operands[0], *place)
    write_words(e, i, found.registers, "b32", i.name, given)


@row("tcgen05.st.sync.aligned", "=.*", (), "*", pure=False)
def store(e: OpBuilder, i: Instruction, *operands: Operand | None) -> None:
    *place, source = operands
    found, given = _access(e, i, source, *place)
    e.tell(i.name, *given, *words(e, i, source, found.registers, "b32"))


def _access(
    e: OpBuilder, i: Instruction, registers: Operand | None, place: Operand | None = None, *half: Operand | None
) -> tuple[TensorAccess, list[SSAValue]]:
    """The shape, and the operands: an address, and how many columns the second half is behind the first one if there are halves."""
    if (found := TensorAccess.of(i.name)) is None:
        raise e.unsupported(f"'{i.name}'")
    if not isinstance(registers, OperandGroup) or None in registers.elements:
        raise e.error(f"'{i.name}' takes registers in braces")
    if [isinstance(each, PtxLiteral) for each in half] != [True] * (found.shape == "16x32bx2"):
        raise e.error(f"'{i.name}' takes an address, and of 16x32bx2 the distance of the halves as a number")
    return found, [_cell(e, place), *(e.read(each, i32) for each in half)]


@row("tcgen05.cp", "=.b", (), "*", pure=False)
def copy(e: OpBuilder, i: Instruction, place: Operand | None, of: SSAValue) -> None:
    if tensor_copy(i.name) is None:
        raise e.unsupported(f"'{i.name}'")
    e.tell(i.name, _cell(e, place), of)


@row(
    "tcgen05.commit",
    "=a?.",
    (),
    f"{' '.join(_GROUPS)} {_ARRIVES} shared::cluster multicast::cluster",
    needs="b64",
    pure=False,
)
def commit(e: OpBuilder, i: Instruction, barrier: SSAValue, *mask: Operand | None) -> None:
    is_multicast = "multicast::cluster" in i.parts
    if (
        not i.among(" ".join(_GROUPS), "")
        or _ARRIVES not in i.parts
        or len(mask) != is_multicast
        or any(not isinstance(each, Register) for each in mask)
    ):
        raise e.error(
            f"'{i.name}' has '.cta_group', '.{_ARRIVES}', and a mask in a register if it is '.multicast::cluster'"
        )
    e.tell("tcgen05.commit" + ".multicast" * is_multicast, barrier, *(e.read_as(each, "b16") for each in mask))


@row("tcgen05.mma", "=...u*", (), "*", pure=False)
def mma(
    e: OpBuilder,
    i: Instruction,
    d: Operand | None,
    a: Operand | None,
    b: Operand | None,
    what: SSAValue,
    *more: Operand | None,
) -> None:
    """The intrinsic has D, A, B, the descriptor, whether D counts, its exponent; then addresses of factors, or four masks a block."""
    if (found := TensorMma.of(i.name)) is None:
        raise e.unsupported(f"'{i.name}'")
    given, others = list(more), list[SSAValue]()
    if found.scales:
        others = [_cell(e, place) for place in given[:2]]
        given = given[2:]
    elif given and isinstance(given[0], OperandGroup):
        others = words(e, i, given.pop(0), 4 * found.blocks, "b32")
    if not 1 <= len(given) <= 1 + (found.kind in ("f16", "tf32")):
        raise e.error(f"'{i.name}' ends with whether D counts, and of f16 and tf32 with a number that divides it")
    counts, *exponent = given
    if any(not isinstance(each, PtxLiteral) or not 0 <= each.value < 16 for each in exponent):
        raise e.error(f"'{i.name}' divides D by a power of two, 0 to 15")
    left = _cell(e, a) if isinstance(a, Address) else e.read_as(a, "b64")
    divisor = e.read(exponent[0], i32) if exponent else e.constant(i32, 0)
    e.tell(i.name, _cell(e, d), left, e.read_as(b, "b64"), what, e.read_as(counts, "pred"), divisor, *others)
