"""Damages LLVM IR as people, disks and wrong compilers do: a seed determines everything.

damaged, how_it_ends, survives   as those of damaged_ptx
"""

import re
from functools import partial

from unit.text.ptx import damaged_ptx
from unit.text.ptx.damaged_ptx import replaced_at, with_other_lines

from xla_emitters.explore.check.any_llvm_ir import LlvmIrKernel

_TOKEN = re.compile(r"[%@!#]?[\w.$]+|\S")
_NUMBER = re.compile(r"(?<![\w.%$])(?:0x[HR]?[0-9a-fA-F]+|-?\d+)\b")
_VALUE = re.compile(r"%[\w.]+")
_TYPE = re.compile(r"\b(?:i\d+|half|bfloat|float|double|ptr|void)\b")
_WORD = re.compile(r"\b[a-z]{2,}\b")
NUMBERS = (
    *("0", "1", "-1", "2", "3", "31", "32", "64", "4096", "2147483647", "2147483648", "-2147483648", "4294967296"),
    *("9223372036854775807", "18446744073709551616", "9" * 70, "9" * 5000, "0x", "0x7FF0000000000000", "0xH7C00", "0xR7FC0"),
    *("0x1" + "0" * 40, "1.5", "1e400", "1.0e400", "1.0e-400", "08", "-" * 200 + "1"),
)  # fmt: skip
WORDS = (
    *("%x", "%0", "@f", "!5", "!dbg", "#0", ";", ",", "{", "}", "[", "]", "(", ")", "<", ">", "=", ":", "x", "...", "*", "|"),
    *("br", "ret", "phi", "call", "poison", "undef", "null", "zeroinitializer", "splat", "asm", "label", "é", "\0", '"', "\\"),
    *("i1", "i64", "i9999999", "i0", "i129", "ptr", "label", "metadata", "token", "fp128", "define", "declare", "align", "addrspace(3)"),
)  # fmt: skip
TYPES = (
    *("i1", "i8", "i16", "i32", "i64", "i128", "half", "bfloat", "float", "double", "ptr", "ptr addrspace(3)", "ptr addrspace(9)"),
    *("void", "<4 x float>", "<0 x i32>", "<99999999 x i8>", "[2 x i32]", "[99999999999 x i8]", "{ i32, i1 }", "{}", "<{ i8 }>"),
    *("[1000000 x [1000000 x i8]]", "{" * 3000, "[2 x " * 60 + "i8" + "]" * 60, "<2 x ptr>", "<vscale x 2 x i32>", "%named"),
)  # fmt: skip
STATEMENTS = (
    "again:\n  br label %again",
    "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
    "  ret void",
    "  unreachable",
    "  call void @llvm.trap()",
    "  %new = alloca [268435456 x i8], align 4",
    "  %new = alloca i8, i32 %id.i, align 1",
    "  %new = alloca i8, i64 9223372036854775807, align 1",
    "  %new = load i32, ptr null, align 4",
    "  %new = load i32, ptr inttoptr (i64 -4 to ptr), align 4",
    "  %new = udiv i32 1, 0",
    "  %new = phi i32 [ 0, %nowhere ]",
    "  %new = phi i32 [ %new, %bb0 ]",
    "  %new = add i32 %new, 1",
    "  switch i32 0, label %bb0 [ i32 0, label %bb0 i32 0, label %bb0 ]",
    '  %new = call float asm sideeffect "trap; mov.f32 $0, 0f00000000;", "=f"()',
    '  %new = call float asm "' + "{" * 500 + '", "=f"()',
    "  %new = getelementptr [0 x i32], ptr null, i64 9223372036854775807",
    "  %new = shufflevector <4 x i32> poison, <4 x i32> poison, <2 x i32> <i32 9, i32 0>",
    "  %new = extractelement <4 x i32> poison, i32 9",
    "  fence seq_cst",
)
GLOBALS = (
    "@huge = internal global [1073741824 x i8] zeroinitializer\n",
    '@short = internal constant [4 x i8] c"ab"\n',
    "define internal i32 @g(i32 %x) {\n  %y = call i32 @g(i32 %x)\n  ret i32 %y\n}\n",
    "define internal void @h() {\n  call void @h()\n  ret void\n}\ndefine void @h() { ret void }\n",
    "@deep = internal constant " + "[1 x " * 3000 + "i8" + "]" * 3000 + " zeroinitializer\n",
)

DAMAGES = {
    "cut": lambda dice, text: text[: dice.randrange(len(text))],
    "token": lambda dice, text: replaced_at(_TOKEN, dice, text, ("", *(f" {word} " for word in WORDS))),
    "line": with_other_lines,
    "number": lambda dice, text: replaced_at(_NUMBER, dice, text, NUMBERS),
    "other number": lambda dice, text: replaced_at(_NUMBER, dice, text),
    "value": lambda dice, text: replaced_at(_VALUE, dice, text),
    "type": lambda dice, text: replaced_at(_TYPE, dice, text, TYPES),
    "other type": lambda dice, text: replaced_at(_TYPE, dice, text),
    "word": lambda dice, text: replaced_at(_WORD, dice, text),
    "brace": lambda dice, text: replaced_at(re.compile(r"[{}\[\](),<>]"), dice, text, ("", *"{}[](),<>")),
    "statement": lambda dice, text: replaced_at(
        re.compile(r"(?<=\n)(?=  )"), dice, text, [f"{each}\n" for each in STATEMENTS]
    ),
    "global": lambda dice, text: replaced_at(
        re.compile(r"(?=\ndefine)"), dice, text, [f"\n{each}" for each in GLOBALS]
    ),
}


damaged = partial(damaged_ptx.damaged, damages=DAMAGES)
how_it_ends = partial(damaged_ptx.how_it_ends, read=LlvmIrKernel.read)
survives = partial(damaged_ptx.survives, read=LlvmIrKernel.read)
