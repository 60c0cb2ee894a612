"""What LLVM IR says in PTX's words: inline assembly and the intrinsics of single instructions, read by the reader of PTX.

    call float asm "rcp.approx.ftz.f32 $0,$1;", "=f,f"(float %x)
    call float @llvm.nvvm.mul.rn.f(float %a, float %b)                        mul.rn.f32 $0, $1, $2;
 -> .func (.param .f32 r0) f(.param .f32 p1, .param .f32 p2) { ... }          whose ops are put in the place of the call

Source: LLVM language reference, "Inline Assembler Expressions"; IntrinsicsNVVM.td and NVPTXIntrinsics.td of LLVM 22.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.errors import ParseError, Unsupported
from xla_emitters.text.llvm_ir.function_reader import FunctionReader
from xla_emitters.text.llvm_ir.lexer import Token
from xla_emitters.text.llvm_ir.types import bits_of
from xla_emitters.text.ptx import read_ptx
from xla_emitters.text.ptx.raising import Raised

_PLACE = re.compile(r"\$(\$|\d+|\{)")
_MODULE = ".version 8.8 .target sm_100a .address_size 64\n"
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
"""Pattern of an intrinsic's name -> the mnemonic: {0} a group, {0t} its type, {0w} the rounding that it names, {0n} with PTX's `.NaN`."""
_TEXTS = {
    "d2i.hi": ".reg .b32 %low; mov.b64 {%low,$0}, $1;",
    "d2i.lo": ".reg .b32 %high; mov.b64 {$0,%high}, $1;",
    "lohi.i2d": "mov.b64 $0, {$1,$2};",
}


@lru_cache(1024)
def mnemonic_of(name: str, width: int = 32) -> str:
    """The PTX of an intrinsic `llvm.nvvm.<name>` whose result has so many bits.

    >>> mnemonic_of("mul.rn.f"), mnemonic_of("f2i.rn"), mnemonic_of("round.f"), mnemonic_of("fmin.ftz.nan.f")
    ('mul.rn.f32', 'cvt.rni.s32.f32', 'cvt.rni.f32.f32', 'min.ftz.NaN.f32')
    """
    for pattern, form in _FORMS:
        if (match := re.fullmatch(pattern, name)) is not None:
            found = form.replace("{b}", f"b{width}")
            for number, group in enumerate(match.groups(default="")):
                found = found.replace(f"{{{number}}}", group).replace(f"{{{number}t}}", _TYPES.get(group, group))
                found = found.replace(f"{{{number}w}}", _OF_WHOLE.get(group, group))
                found = found.replace(f"{{{number}n}}", group.replace("nan", "NaN"))
            return found
    return name


def _word(ir_type: Attribute) -> str:
    """PTX's type of a register that holds such a value; "" if none does."""
    if ir_type in (f32, f64):
        return str(ir_type)
    bits = bits_of(ir_type)
    return f"b{bits}" if bits in (16, 32, 64) else ""


@lru_cache(256)
def _body(text: str, words: tuple[str, ...], results: int, wanted: int) -> llvm.FuncOp:
    """The function that returns operand `wanted` of a text of PTX; the first operands are its results. Callers copy its ops."""
    inputs = range(results, len(words))
    parameters = ", ".join(f".param .{words[number]} p{number}" for number in inputs)
    registers = "".join(f".reg .{word} %operand{number}; " for number, word in enumerate(words))
    loads = "".join(f"ld.param.{words[number]} %operand{number}, [p{number}]; " for number in inputs)
    result, last = (
        (f"(.param .{words[wanted]} result) ", f"st.param.{words[wanted]} [result], %operand{wanted}; ")
        if results
        else ("", "")
    )
    code = _PLACE.sub(lambda match: "$" if match[1] == "$" else f"%operand{match[1]}", text)
    whole = f"{_MODULE}.func {result}f({parameters}) {{ {registers}{loads}\n{code}\n{last}}}"
    module = read_ptx(whole, "inline PTX")
    return Raised(module, module.functions["f"], ()).op


def ptx(
    r: FunctionReader, token: Token, text: str, inputs: Sequence[SSAValue], outputs: Sequence[Attribute]
) -> list[SSAValue]:
    """The values of a text of PTX, in which `$0` is the first output and the inputs follow the outputs. raises Unsupported"""
    words = (*map(_word, outputs), *(_word(value.type) for value in inputs))
    if "" in words or any(
        match[1] == "{" or (match[1].isdigit() and int(match[1]) >= len(words)) for match in _PLACE.finditer(text)
    ):
        raise r.unsupported("PTX with such operands", token)
    found = list[SSAValue]()
    for number in range(max(1, len(outputs))):
        try:
            function = _body(text, words, len(outputs), number)
        except (ParseError, Unsupported) as error:
            raise r.unsupported(f"the PTX '{text.strip().splitlines()[0]}' ({error.message})", token) from None
        if len(function.body.blocks) > 1 or any(
            isinstance(op, llvm.CallOp | llvm.AddressOfOp) for op in function.walk()
        ):
            raise r.unsupported("PTX with branches, calls or variables", token)
        (block,) = function.body.blocks
        given = [as_type(r, value, argument.type) for value, argument in zip(inputs, block.args, strict=True)]
        mapper: dict[SSAValue, SSAValue] = dict(zip(block.args, given, strict=True))
        for op in block.ops:
            if isinstance(op, llvm.ReturnOp):
                if op.arg is not None:
                    found.append(as_type(r, mapper.get(op.arg, op.arg), outputs[number]))
            else:
                r.do(op.clone(mapper))
    return found


def instruction_text(name: str, inputs: Sequence[SSAValue], output: Attribute) -> str:
    """The PTX of a call of `llvm.nvvm.<name>`."""
    if (text := _TEXTS.get(name)) is not None:
        return text
    operands = ", ".join(f"${number}" for number in range(len(inputs) + 1))
    return f"{mnemonic_of(name, bits_of(output))} {operands};"


def as_type(r: FunctionReader, value: SSAValue, ir_type: Attribute) -> SSAValue:
    """The same bits as another type of the same width."""
    if value.type == ir_type:
        return value
    if isinstance(value.type, llvm.LLVMPointerType):
        return as_type(r, r.add(llvm.PtrToIntOp(value, i64)), ir_type)
    if isinstance(ir_type, llvm.LLVMPointerType):
        return r.add(llvm.IntToPtrOp.create(operands=[as_type(r, value, i64)], result_types=[ir_type]))
    return r.add(llvm.BitcastOp(value, ir_type))
