"""Instructions that are a few others, written as PTX: what `$1`, `$2` ... hold gives `$0`.

    body("sad", "t=ttt", INTEGERS, "max.{1} %x, $1, $2; min.{1} %y, $1, $2; sub.{1} %x, %x, %y; add.{1} $0, %x, $3;")

`{n}` is a part of the mnemonic; %x and %y are as wide as `$1`, %u and %v have 32 bits, %w and %z 64, %p is a predicate. The reader of
LLVM IR reads inline assembly as such bodies. Source: PTX ISA 8.8, 9.7.1 and 9.7.17.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.text.ptx.op_builder import OpBuilder
from xla_emitters.text.ptx.ptx_parser import read_ptx
from xla_emitters.text.ptx.rows import INTEGERS, emit, result_word, row
from xla_emitters.text.ptx.syntax import Instruction, Operand, PtxLiteral, PtxModule, Register, Selected, registers_in

PLACE = re.compile(r"\$(\$|\d+|\{)")
_MODULE = ".version 8.8 .target sm_100a .address_size 64\n"
_WORDS = {"s32", "u32"}


@lru_cache(1024)
def parsed(text: str, words: tuple[str, ...]) -> tuple[PtxModule, Mapping[str, Register]]:
    """A text in which `$0` is a register of the first type, as the body of a function `f`; and its registers by their names."""
    registers = "".join(f".reg .{word} %operand{number}; " for number, word in enumerate(words))
    code = PLACE.sub(lambda match: "$" if match[1] == "$" else f"%operand{match[1]}", text)
    module = read_ptx(f"{_MODULE}.func f() {{ {registers}\n{code}\n}}", "inline PTX")
    body = [item for item in module.functions["f"].body or () if isinstance(item, Instruction)]
    return module, {each.name: each for item in body for operand in item.operands for each in registers_in(operand)}


def expanded(e: OpBuilder, text: str, result: str, values: Sequence[SSAValue]) -> SSAValue | PtxLiteral:
    """What a body gives, of the type `result`."""
    widths = [f"b{bits_of(value.type)}" for value in values]
    temporaries = f".reg .{widths[0]} %x, %y; .reg .b32 %u, %v; .reg .b64 %w, %z; .reg .pred %p; "
    module, registers = parsed(temporaries + text, (result, *widths))
    instruction, guard, e.guard = e.instruction, e.guard, None
    for number, value in enumerate(values, start=1):
        if (register := registers.get(f"%operand{number}")) is not None:
            e.set(register, value)
    for item in module.functions["f"].body or ():
        assert isinstance(item, Instruction)
        e.instruction = item
        emit(e, item)
    e.instruction, e.guard = instruction, guard
    return e.held(registers["%operand0"])


def body(names: str, form: str, types: Collection[str], text: str, modifiers: str = "", needs: str = "") -> None:
    """Adds the mnemonics `names`, which are the instructions of a text."""

    def make(e: OpBuilder, i: Instruction, *values: SSAValue) -> SSAValue | PtxLiteral:
        return expanded(e, text.format(*i.parts), result_word(i, form), values)

    row(names, form, types, modifiers, needs=needs)(make)


# ---------------------------------------------------------------------------------------------- integers

body("sad", "t=ttt", INTEGERS, "max.{1} %x, $1, $2; min.{1} %y, $1, $2; sub.{1} %x, %x, %y; add.{1} $0, %x, $3;")
_LOW, _HIGH = "mul.lo.{2} $0, %x, %y;", "mul.wide.{2} %w, %x, %y; shr.s64 %w, %w, 16; cvt.u32.u64 $0, %w;"
_OF_24_BITS = "shl.b32 %x, $1, 8; shr.{2} %x, %x, 8; shl.b32 %y, $2, 8; shr.{2} %y, %y, 8; "
body("mul24.lo", "t=tt", _WORDS, _OF_24_BITS + _LOW)
body("mul24.hi", "t=tt", _WORDS, _OF_24_BITS + _HIGH)
body("mad24.lo", "t=ttt", _WORDS, f"{_OF_24_BITS}{_LOW} add.{{2}} $0, $0, $3;")
body("mad24.hi", "t=ttt", _WORDS, f"{_OF_24_BITS}{_HIGH} add.{{2}} $0, $0, $3;")
body("mad24.hi.sat", "t=ttt", {"s32"}, f"{_OF_24_BITS}{_HIGH} add.sat.s32 $0, $0, $3;".replace("{2}", "s32"))
_COUNTS = {"clamp": "min.u32 {0}, {0}, 32; ", "wrap": "and.b32 {0}, {0}, 31; "}
for _mode, _count in _COUNTS.items():
    _u, _v = "mov.b32 %u, $1; " + _count.format("%u"), "mov.b32 %v, $2; " + _count.format("%v")
    body(f"szext.{_mode}", "t=uu", _WORDS, _v + "bfe.{2} $0, $1, 0, %v;")
    body(f"bmsk.{_mode}", "t=uu", {"b32"}, _u + _v + "shl.b32 %v, 1, %v; sub.u32 %v, %v, 1; shl.b32 $0, %v, %u;")
for _mode, _selectors in {
    **{"f4e": 0x6543_5432_4321_3210, "b4e": 0x0123_7012_6701_5670, "rc8": 0x3333_2222_1111_0000},
    **{"ecl": 0x3333_3222_3211_3210, "ecr": 0x3210_2210_1110_0000, "rc16": 0x3232_1010_3232_1010},
}.items():
    _u = f"and.b32 %u, $3, 3; shl.b32 %u, %u, 4; shr.u64 %w, {_selectors}, %u; cvt.u32.u64 %u, %w; "
    body(f"prmt.b32.{_mode}", "t=ttt", {"b32"}, _u + "prmt.b32 $0, $1, $2, %u;")
for _to in ("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"):
    _bits = int(_to[1:])
    _low, _high = (-(1 << _bits - 1), (1 << _bits - 1) - 1) if _to[0] == "s" else (0, (1 << _bits) - 1)
    _x, _y = (
        f"min.s32 {each}, {of}, {_high}; max.s32 {each}, {each}, {_low}; " for each, of in (("%x", "$1"), ("%y", "$2"))
    )
    _more = "mov.b32 $0, 0; " if _bits == 16 else f"shl.b32 $0, $3, {2 * _bits}; "
    _both = f"bfi.b32 $0, %x, $0, {_bits}, {_bits}; bfi.b32 $0, %y, $0, 0, {_bits};"
    body(
        f"cvt.pack.sat.{_to}.s32{'.b32' * (_bits < 16)}",
        "u=uu" if _bits == 16 else "u=uuu",
        (),
        _x + _y + _more + _both,
    )


def _dot(count: int, first: str, second: str, start: int = 0) -> str:
    """The sum of `$3` and of the products of two or four parts of `$1` with as many bytes of `$2`."""
    bits = 32 // count
    terms = (
        f"bfe.{first} %x, $1, {bits * n}, {bits}; bfe.{second} %y, $2, {start + 8 * n}, 8; mad.lo.s32 $0, %x, %y, $0;"
        for n in range(count)
    )
    return f"mov.b32 $0, $3; {' '.join(terms)}"


body("dp4a", "u=uuu", _WORDS, _dot(4, "{1}", "{2}"))
body("dp2a.lo", "u=uuu", _WORDS, _dot(2, "{2}", "{3}"))
body("dp2a.hi", "u=uuu", _WORDS, _dot(2, "{2}", "{3}", 16))

# ---------------------------------------------------------------------------------------------- video

_ORDERS = "eq ne lt le gt ge"
_VIDEO = {
    **{
        name: f"{op}.s64 %w, %w, %z;"
        for name, op in (("vadd", "add"), ("vsub", "sub"), ("vmin", "min"), ("vmax", "max"))
    },
    "vabsdiff": "sub.s64 %w, %w, %z; abs.s64 %w, %w;",
    "vavrg": "add.s64 %w, %w, %z; not.b64 %z, %w; shr.u64 %z, %z, 63; add.s64 %w, %w, %z; shr.s64 %w, %w, 1;",
    "vshl": "cvt.u32.u64 %v, %z; {count} shl.b64 %w, %w, %v;",
    "vshr": "cvt.u32.u64 %v, %z; {count} shr.s64 %w, %w, %v;",
    "vmad": "mul.lo.s64 %w, %w, %z; cvt.s64.{result} %z, $3; add.s64 %w, %w, %z; add.s64 %w, %w, {one}; shr.{sign}64 %w, %w, {scale};",
    **{f"vset.{order}": f"setp.{order}.s64 %p, %w, %z; selp.b64 %w, 1, 0, %p;" for order in _ORDERS.split()},
}
"""Name -> what becomes of two parts, extended to 64 bits; a mean is rounded up, unless it is negative."""
_OF_PARTS = " ".join(
    f"{name}{count}" for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax") for count in (2, 4)
)


@row(f"{_OF_PARTS} vadd vsub vabsdiff vmin vmax", ".=..?.", _WORDS, "sat add min max")
@row("vshl vshr", ".=..?.", _WORDS, "sat add min max", needs="clamp wrap")
@row("vmad", ".=...", _WORDS, "sat po shr7 shr15")
@row("vset vset2 vset4", ".=..?.", _WORDS, "add min max", needs=_ORDERS)
def video(e: OpBuilder, i: Instruction, *operands: Operand | None) -> None:
    """A word, two halves or four bytes at once; `.add` sums the results and `c`, which else has the parts that are not written."""
    is_order, count = i.stem.startswith("vset"), int(i.stem[-1]) if i.stem[-1] in "24" else 1
    name, update = i.stem.rstrip("24"), i.among("add min max", "")
    if len(i.types) != (wanted := 2 if is_order else 3):
        raise e.error(f"'{i.name}' needs {wanted} types")
    if count > 1 and ("sat" in i.parts if update == "add" else update):
        raise e.error(f"'{i.name}' has .sat or .add, not both")
    target, *given = (_with_parts(e, each, count, number) for number, each in enumerate((i.operands[0], *operands[:2])))
    if len(operands) < 3 and (count > 1 or update or target[1] is not None):
        raise e.error(f"'{i.name}' takes 4 operands, not 3")
    result, first, second = ["u32", *i.types][-3:]
    if name == "vmad":
        result = "s32" if "s32" in (first, second) else "u32"
    compute = _VIDEO[f"{name}.{i.among(_ORDERS)}" if is_order else name].format(
        **{"count": _COUNTS[i.among("clamp wrap", "clamp")].format("%v"), "result": result, "sign": result[0]},
        **{"one": int("po" in i.parts), "scale": int(i.among("shr7 shr15", "shr0")[3:])},
    )
    kind = "u64" if name in ("vshl", "vmad") and "s32" not in (first, *[second] * (name == "vmad")) else "s64"
    places, bits = target[1] or [*range(count)], target[2]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if result == "s32" else (0, (1 << bits) - 1)
    text = "mov.b32 $0, $3; " if len(operands) == 3 else "mov.b32 $0, 0; "
    for number, place in enumerate(places):
        for of, word, wide, (_, parts, size) in (("$1", first, "%w", given[0]), ("$2", second, "%z", given[1])):
            at = (parts or [*range(2 * count)][(of == "$2") * count * (count > 1) :])[place if count > 1 else number]
            source = of if count == 1 else ("$1", "$2")[at // count]
            text += f"bfe.{word} %u, {source}, {at % (32 // size) * size}, {size}; cvt.s64.{word} {wide}, %u; "
        text += compute
        text += f"min.{kind} %w, %w, {high}; max.{kind} %w, %w, {low if kind == 's64' else 0}; " * ("sat" in i.parts)
        text += "cvt.u32.u64 %u, %w; "
        text += f"{update}.{result} $0, %u, $0; " if update else f"bfi.b32 $0, %u, $0, {place * bits}, {bits}; "
    registers = [register for register, _, _ in given] + [*operands[2:]]
    e.write(target[0], expanded(e, text, "b32", [e.read_as(register, "u32") for register in registers]))


def _with_parts(
    e: OpBuilder, operand: Operand | None, count: int, number: int
) -> tuple[Operand | None, list[int] | None, int]:
    """A register, the parts of it that are meant, the lowest first, None for all, and the bits of each. raises ParseError for others"""
    register, parts = (operand.register, operand.parts) if isinstance(operand, Selected) else (operand, "")
    e.check(register, "u32", is_result=not number)
    digits = [int(digit) for digit in reversed(parts[1:])]
    bits = 32 // count if count > 1 else {"": 32, "b": 8, "h": 16}[parts[:1]]
    if count == 1:
        fits = len(digits) < 2 and max(digits, default=0) < 32 // bits
    else:
        fits = parts[:1] in ("", {2: "h", 4: "b"}[count]) and (
            max(digits, default=0) < count if not number else len(digits) in (0, count)
        )
    if not fits:
        raise e.error(f"'{e.instruction.name}' has no parts '.{parts}' there")
    return register, digits or None, bits
