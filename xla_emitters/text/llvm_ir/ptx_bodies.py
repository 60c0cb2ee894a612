"""What LLVM IR says in PTX's words: inline assembly and the intrinsics of single instructions, read by the reader of PTX.

    call float asm "rcp.approx.ftz.f32 $0,$1;", "=f,f"(float %x)
    call float @llvm.nvvm.mul.rn.f(float %a, float %b)                        mul.rn.f32 $0, $1, $2;
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)                  barrier.cta.sync 0;

The operands are registers that hold the call's values. Source: LLVM language reference, "Inline Assembler Expressions"; IntrinsicsNVVM.td
and NVPTXIntrinsics.td of LLVM 22.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import IntegerAttr, f32, f64, i1
from xdsl.ir import Attribute, Block, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.errors import ParseError, Unsupported
from xla_emitters.text.llvm_ir.function_reader import FunctionReader
from xla_emitters.text.llvm_ir.llvm_ir_lexer import Token
from xla_emitters.text.llvm_ir.llvm_types import VOID
from xla_emitters.text.ptx.bodies import PLACE, parsed
from xla_emitters.text.ptx.flow import ENDS
from xla_emitters.text.ptx.op_builder import OpBuilder, aggregate, is_float
from xla_emitters.text.ptx.rows import emit, row_of
from xla_emitters.text.ptx.syntax import Instruction

_TYPES = {
    "f": "f32",
    "d": "f64",
    "i": "s32",
    "ui": "u32",
    "ll": "s64",
    "ull": "u64",
    "s": "s16",
    "us": "u16",
    "h": "f16",
}
_OF_WHOLE = {"floor": "rmi", "ceil": "rpi", "trunc": "rzi", "round": "rni"}
_BITS = "i|ui|ll|ull|s|us"
_FORMS: tuple[tuple[str, str], ...] = (
    (r"barrier\.cta\.(sync|arrive)\.(?:aligned\.)?(?:all|count)", "barrier.cta.{0}"),
    (r"shfl\.sync\.(\w+)\.[if]32p?", "shfl.sync.{0}.b32 r2341"),
    (r"vote\.(all|any|uni)\.sync", "vote.sync.{0}.pred r21"),
    (r"vote\.ballot\.sync", "vote.sync.ballot.b32 r21"),
    (r"match\.(any|all)\.sync\.i(32|64)p?", "match.{0}.sync.b{1} r21"),
    (r"redux\.sync\.(add|min|max)", "redux.sync.{0}.s32"),
    (r"redux\.sync\.u(min|max)", "redux.sync.{0}.u32"),
    (r"redux\.sync\.(and|or|xor)", "redux.sync.{0}.b32"),
    (r"redux\.sync\.f(min|max)((?:\.abs)?(?:\.NaN)?)", "redux.sync.{0}{1}.f32"),
    (r"griddepcontrol\.launch\.dependents", "griddepcontrol.launch_dependents"),
    (r"nanosleep", "nanosleep.u32"),
    (r"activemask", "activemask.b32"),
    (r"ff\.to\.(\w+)\.rn((?:\.relu)?)", "cvt.rn.satfinite{1}.{0}.f32"),
    (r"f16x2\.to\.(\w+)\.rn((?:\.relu)?)", "cvt.rn.satfinite{1}.{0}.f16x2"),
    (r"(\w+)\.to\.f16x2\.rn((?:\.relu)?)", "cvt.rn{1}.f16x2.{0}"),
    (rf"(d|f|h|bf16)2({_BITS})\.(rn|rz|rm|rp)(\.ftz)?", "cvt.{2}i{3}.{1t}.{0t}"),
    (rf"({_BITS})2(d|f|h|bf16)\.(rn|rz|rm|rp)", "cvt.{2}.{1t}.{0t}"),
    (r"(d|f)2(f|h|bf16|tf32)\.(rn|rz|rm|rp|rna)(\.ftz)?((?:\.relu|\.satfinite)*)", "cvt.{2}{3}{4}.{1t}.{0t}"),
    (r"ff2(f16x2|bf16x2)\.(rn|rz)((?:\.relu|\.satfinite)*)", "cvt.{1}{2}.{0}.f32"),
    (r"(floor|ceil|trunc|round)(\.ftz)?\.(f|d)", "cvt.{0w}{1}.{2t}.{2t}"),
    (r"saturate(\.ftz)?\.(f|d)", "cvt{0}.sat.{1t}.{1t}"),
    (r"f(min|max)((?:\.ftz|\.nan|\.xorsign|\.abs)*)\.(\w+)", "{0}{1n}.{2t}"),
    (r"fabs(\.ftz)?\.(\w+)", "abs{0}.{1t}"),
    (r"mulhi\.(i|ui|ll|ull|s|us)", "mul.hi.{0t}"),
    (r"mul24\.(i|ui)", "mul24.lo.{0t}"),
    (r"sqrt(\.ftz)?\.(f|d)", "sqrt.rn{0}.{1t}"),
    (r"div\.full(\.ftz)?", "div.full{0}.f32"),
    (r"idp(2a|4a)\.(s|u)\.(s|u)", "dp{0}.{1}32.{2}32"),
    (r"prmt", "prmt.b32"),
    (r"(?:bitcast)\.\w+", "mov.{b}"),
    (r"([\w.]+)\.(f|d|i|ui|ll|ull)", "{0}.{1t}"),
)
"""Pattern of an intrinsic's name -> the mnemonic: {0} a group, {0t} its type, {0w} the rounding that it names, {0n} with PTX's `.NaN`; and
the order of the operands, if it is not the result and the arguments: `r` the result, digits the arguments.
"""
_TEXTS = {
    "barrier0": "bar.sync 0;",
    "d2i.hi": ".reg .b32 %low; mov.b64 {%low,$0}, $1;",
    "d2i.lo": ".reg .b32 %high; mov.b64 {$0,%high}, $1;",
    "lohi.i2d": "mov.b64 $0, {$1,$2};",
}


@lru_cache(1024)
def text_of(name: str, width: int, results: int, arguments: int) -> str:
    """The PTX of a call of `llvm.nvvm.<name>`; width: bits of its result.

    >>> text_of("mul.rn.f", 32, 1, 2), text_of("f2i.rn", 32, 1, 1), text_of("vote.any.sync", 1, 1, 2)
    ('mul.rn.f32 $0, $1, $2;', 'cvt.rni.s32.f32 $0, $1;', 'vote.sync.any.pred $0, $2, $1;')
    """
    if (text := _TEXTS.get(name)) is not None:
        return text
    if name.startswith("read.ptx.sreg."):
        register = re.sub(r"\.(?![xyz]$)", "_", name.removeprefix("read.ptx.sreg."))
        return f"mov.b{width} $0, %{register};"
    matches = ((re.fullmatch(pattern, name), form) for pattern, form in _FORMS)
    match, form = next(((match, form) for match, form in matches if match), (None, name))
    if match is not None:
        form = re.sub(r"\{(\d)(\w?)\}", lambda place: _spelled(match[int(place[1]) + 1] or "", place[2]), form)
    mnemonic, _, order = form.replace("{b}", f"b{width}").partition(" ")
    given = [f"${results + number}" for number in range(arguments)]
    result = "|".join(f"${number}" for number in range(results))
    if order and len(order) - order.count("r") != arguments:
        return f"{mnemonic};"  # which takes another number of operands
    operands = [result if letter == "r" else given[int(letter) - 1] for letter in order] or [result, *given]
    return f"{mnemonic} {', '.join(operand for operand in operands if operand)};"


def _spelled(group: str, how: str) -> str:
    """A part of an intrinsic's name in PTX's words."""
    match how:
        case "t":
            return _TYPES.get(group, group)
        case "w":
            return _OF_WHOLE.get(group, group)
        case "n":
            return group.replace("nan", "NaN")
        case _:
            return group


def outputs_of(result: Attribute) -> Sequence[Attribute]:
    """The types of the values that a call gives."""
    return tuple(result.types) if isinstance(result, llvm.LLVMStructType) else () if result == VOID else (result,)


def _word(ir_type: Attribute) -> str:
    """PTX's type of a register that holds such a value; "" if none does."""
    if ir_type in (f32, f64):
        return str(ir_type)
    if isinstance(ir_type, llvm.LLVMArrayType | llvm.LLVMStructType):
        return ""
    bits = bits_of(ir_type)
    return "pred" if ir_type == i1 else f"b{bits}" if bits in (8, 16, 32, 64) else ""


def ptx(
    r: FunctionReader,
    token: Token,
    text: str,
    inputs: Sequence[SSAValue],
    result: Attribute,
    literals: Collection[int] = (),
) -> SSAValue | None:
    """The value of a text of PTX, in which `$0` is the first result and the inputs follow the results.

    literals  inputs that are written as numbers
    raises    Unsupported
    """
    outputs = outputs_of(result)
    words = (*map(_word, outputs), *(_word(value.type) for value in inputs))
    for number in literals:
        text = re.sub(rf"\${len(outputs) + number}\b", _literal(inputs[number]), text)
    places = [match[1] for match in PLACE.finditer(text)]
    if "" in words or any(place == "{" or (place.isdigit() and int(place) >= len(words)) for place in places):
        raise r.unsupported("PTX with such operands", token)
    try:
        block, values = _emitted(text, words, inputs, outputs)
    except (ParseError, Unsupported) as error:
        raise r.unsupported(f"the PTX '{text.strip().splitlines()[0]}' ({error.message})", token) from None
    for op in list(block.ops):
        op.detach()
        for value in op.results:
            value.name_hint = None  # the name of a register here
        r.do(op)
    if not isinstance(result, llvm.LLVMStructType):
        return values[0] if values else None
    return aggregate(r.add, result, values)


def _emitted(
    text: str, words: tuple[str, ...], inputs: Sequence[SSAValue], outputs: Sequence[Attribute]
) -> tuple[Block, list[SSAValue]]:
    """The ops of a text, and the values of its results. raises ParseError, Unsupported"""
    module, registers = parsed(text, words)
    function, block = module.functions["f"], Block()
    e = OpBuilder(module, function, block)
    types = [*outputs, *(value.type for value in inputs)]
    of_operands = {number: registers.get(f"%operand{number}") for number in range(len(types))}
    e.natural = {found: types[number] for number, found in of_operands.items() if found and is_float(types[number])}
    e.current = {
        found: inputs[number - len(outputs)]
        for number, found in of_operands.items()
        if found and number >= len(outputs)
    }
    for item in function.body or ():
        if not isinstance(item, Instruction) or item.parts[0] in (*ENDS, "call") or function.variables:
            raise Unsupported("branches, calls or variables")
        e.instruction = item
        if item.guard is not None and not row_of(module.source, item).is_pure:
            raise e.unsupported(f"a guarded '{item.name}'")
        emit(e, item)
    return block, [e.read(of_operands[number], ir_type) for number, ir_type in enumerate(outputs)]


def _literal(value: SSAValue) -> str:
    """The number that a value is; a text that is no PTX where it is none."""
    attribute = value.owner.value if isinstance(value.owner, llvm.ConstantOp) else None
    return str(attribute.value.data) if isa(attribute, IntegerAttr) else "?"


def ptx_of_intrinsic(
    r: FunctionReader, token: Token, name: str, given: Sequence[SSAValue], result: Attribute
) -> SSAValue | None:
    """The value of a call of `llvm.nvvm.<name>`."""
    outputs = outputs_of(result)
    width = bits_of(result) if outputs == (result,) else 0
    text = text_of(name, width, len(outputs), len(given))
    return ptx(r, token, text, given, result, range(len(given)) if name.startswith("barrier") else ())
