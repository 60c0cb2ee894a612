"""IR as MLIR printed it in 2020, and as newer releases than ours print it, in our spelling; every line stays where it is.

Places in messages are therefore right. From 2020, for which `modernized` is:

    %0 = dim %arg11, 0 : memref<?x?xf32>           %dim.7 = arith.constant 0 : index %0 = memref.dim %arg11, %dim.7 : memref<?x?xf32>
    loop.for %i = %c0 to %2 step %c1 {             scf.for %i = %c0 to %2 step %c1 {
      %3 = remi_signed %i, %c256 : index             %3 = arith.remsi %i, %c256 : index
      %8 = cmpi "eq", %3, %c0 : index                %8 = arith.cmpi eq, %3, %c0 : index
    xla_lhlo.add(%x, %y, %z) : (T, T, T) -> ()     lmhlo.add %x, %y -> %z {name = "add.7"} : (T, T) -> T
    func @f(%ctx: !llvm<"i8*">)                    func.func @f(%ctx: !llvm.ptr)
    "gpu.launch_func"(...) {kernel = "k", kernel_module = @m}      "gpu.launch_func"(...) {kernel = @m::@k, segments}

And from 2026, where properties of LLVM's ops are outside of the dictionary, for which `of_dictionaries` is:

    llvm.fadd %0, %1 fastmath<nsz> : f32           llvm.fadd %0, %1 {fastmathFlags = #llvm.fastmath<nsz>} : f32
    llvm.load %p invariant <alignment = 2> : ...   llvm.load %p invariant {alignment = 2 : i64} : ...
    llvm.atomicrmw ignore_denormal_mode fadd ...   llvm.atomicrmw fadd ... {ignore_denormal_mode} ...

Buffers of `xla_lhlo` are read with the types that the text gives them; an op without types has those of its operands' definitions.
Source: seed document (all its listings); MLIR's std, loop and gpu dialects as they were in 2020; what jaxlib 0.12's XLA writes to its logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from xla_emitters.support.cursor import split_at_commas

STD: Mapping[str, str] = {
    "constant": "arith.constant",
    "select": "arith.select",
    "index_cast": "arith.index_cast",
    "sitofp": "arith.sitofp",
    "divi_signed": "arith.divsi",
    "divi_unsigned": "arith.divui",
    "remi_signed": "arith.remsi",
    "remi_unsigned": "arith.remui",
    "sexti": "arith.extsi",
    "zexti": "arith.extui",
    "trunci": "arith.trunci",
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
    "cmpi": "arith.cmpi",
    **{name: f"arith.{name}" for name in ("addi", "subi", "muli", "addf", "subf", "mulf", "divf")},
}
"""Op of MLIR's dialect std of 2020 -> its name today, in kernels and in programs."""
_WORDS: Mapping[str, str] = {
    **STD,
    "func": "func.func",
    "builtin.func": "func.func",
    "call": "func.call",
    **{name: f"arith.{name}" for name in ("cmpf", "negf")},
    **{name: f"memref.{name}" for name in ("load", "store", "alloc", "alloca", "dealloc", "dim")},
    **{f"loop.{name}": f"scf.{name}" for name in ("for", "if", "yield", "parallel", "reduce", "while")},
    "loop.terminator": "scf.yield",
    "exp": "math.exp",
    "tanh": "math.tanh",
    "sqrt": "math.sqrt",
    "rsqrt": "math.rsqrt",
}
"""Op of 2020 -> its name today; ops of std had no prefix, or `std.`."""
_LHLO = {
    "mul": "multiply",
    "sub": "subtract",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "exp": "exponential",
}
DYNAMIC = {
    "d_broadcast": "dynamic_broadcast_in_dim",
    "d_broadcast_in_dim": "dynamic_broadcast_in_dim",
    "d_reshape": "dynamic_reshape",
    "d_pad": "dynamic_pad",
    "d_iota": "dynamic_iota",
    "d_slice": "real_dynamic_slice",
    "d_gather": "dynamic_gather",
    "d_conv": "dynamic_conv",
}
"""Op of xla_hlo and of xla_lhlo of 2020 -> its name today."""
_OP = re.compile(
    r'^(?P<before>\s*(?:(?:%[\w$.\-#:]+(?:,\s*)?)+\s*=\s*)?)(?P<quote>"?)(?P<name>[A-Za-z_][\w.]*)(?P=quote)(?P<rest>.*)$'
)
_BARE = "|".join(name for name in _WORDS if "." not in name and name not in ("func", "call"))
_OLD = re.compile(
    rf'^[ \t]*(?:%[^=\n]*=[ \t]*)?"?(?:(?:std|loop|xla_lhlo|lhlo)\.\w|(?:{_BARE})[ \t(])|^[ \t]*func[ \t]+[@p]|!llvm<"',
    re.MULTILINE,
)
"""`call` has no prefix today either."""
_POINTER = re.compile(r'!llvm<"[^"\n]*\*">')
_ARRAY = re.compile(r'!llvm<"\[(\d+) x (\w+)\]\*">')
_TYPED = re.compile(r"%([\w$.\-]+)\s*:\s*((?:memref|tensor)<[^<>]*(?:<[^<>]*>[^<>]*)*>)")


def is_older(text: str) -> bool:
    """Whether a text has ops or types that today's MLIR spells otherwise."""
    return _OLD.search(text) is not None


def modernized(text: str) -> str:
    """The text in today's spelling, line by line."""
    types = dict[str, str]()
    lines = [_line(line, number, types) for number, line in enumerate(text.split("\n"), 1)]
    return "\n".join(lines)


def _line(line: str, number: int, types: dict[str, str]) -> str:
    """One line; `types` collects the types of buffers."""
    code, slashes, comment = line.partition("//")
    if not code.strip():
        return line
    if (match := _OP.match(code)) is not None:
        code = _op(match, number, types)
    for found in _TYPED.finditer(code):
        types[found[1]] = found[2]
    code = re.sub(r"!llvm\.i(\d+)", r"i\1", _POINTER.sub("!llvm.ptr", code))
    return code + slashes + comment


def _op(match: re.Match[str], number: int, types: dict[str, str]) -> str:
    before, quote, name, rest = match["before"], match["quote"], match["name"], match["rest"]
    plain = name.removeprefix("std.")
    dialect, _, opcode = name.partition(".")
    if dialect in ("xla_lhlo", "lhlo"):
        return _on_buffers(before, opcode, rest, number, types)
    if name == "gpu.launch_func":
        return before + quote + name + quote + _launch(rest)
    if name == "llvm.getelementptr" and (array := _ARRAY.search(rest)):
        return f"{before}{name}{rest}, !llvm.array<{array[1]} x {array[2]}>"
    if plain not in _WORDS:
        return match[0]
    if plain == "dim" and (constant := re.match(r"(\s*%[\w$.\-#]+,\s*)(\d+)(.*)$", rest)):
        value = before.strip().rstrip("=").strip()
        indent = before[: len(before) - len(before.lstrip())]
        index = f"%dim.{number}"
        return f"{indent}{index} = arith.constant {constant[2]} : index {value} = memref.dim{constant[1]}{index}{constant[3]}"
    if plain in ("alloc", "alloca") and (found := re.search(r":\s*(memref<.*>)\s*$", rest)):
        types[before.strip().rstrip("=").strip().removeprefix("%")] = found[1]
    if plain in ("cmpi", "cmpf"):
        rest = re.sub(r'^\s*"(\w+)"', r" \1", rest)
    if plain == "dim" and "tensor<" in rest:
        return f"{before}tensor.dim{rest}"
    return before + quote + _WORDS[plain] + quote + rest


def _on_buffers(before: str, opcode: str, rest: str, number: int, types: Mapping[str, str]) -> str:
    """`(%x, %y, %z) {...} : (types) -> ()`: the last operand is written."""
    found = re.match(r"\s*\(([^()]*)\)\s*(\{[^{}]*\})?\s*(?::\s*\((.*?)\)\s*(?:->.*)?)?$", rest)
    if found is None:
        return f"{before}lmhlo.{opcode}{rest}"
    values = [value.strip() for value in found[1].split(",") if value.strip()]
    given = split_at_commas(found[3]) if found[3] else [types.get(value.removeprefix("%"), "") for value in values]
    if not values or len(given) != len(values) or not all(given):
        return f"{before}lmhlo.{opcode}{rest}"
    name = DYNAMIC.get(opcode, _LHLO.get(opcode, opcode))
    inside = (found[2] or "{}").strip()[1:-1].strip().replace("broadcast_dimensions =", "dimensions =")
    inside = re.sub(r"dense<(\[[^\]]*\]|-?\d+)> : tensor<\d+xi64>", _listed, inside)
    named = ", ".join(part for part in (inside, f'name = "{opcode}.{number}"') if part)
    return f"{before}lmhlo.{name} {', '.join(values[:-1])} -> {values[-1]} {{{named}}} : ({', '.join(given[:-1])}) -> {given[-1]}"


def _listed(match: re.Match[str]) -> str:
    return f"array<i64: {match[1].strip('[]')}>"


def _launch(rest: str) -> str:
    """The launch of a kernel by name: one symbol for both, and the numbers of operands of each kind."""
    kernel = re.search(r'kernel = "([^"]*)", kernel_module = (@[\w$.]+)', rest)
    operands = re.match(r"\(([^()]*)\)", rest)
    if kernel is None or operands is None:
        return rest
    count = len(operands[1].split(",")) - 6
    segments = f"operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, {count}, 0>"
    return rest.replace(kernel[0], f"kernel = {kernel[2]}::@{kernel[1]}, {segments}")


# ------------------------------------------------------------------------------------------------------- the spelling of 2026

_NEWER = re.compile(
    r"^([ \t]*(?:%[^=\n]*= *)?llvm\.)([^\n]*?(?: fastmath<| <\w+ = | ignore_denormal_mode )[^\n]*)$", re.MULTILINE
)
_FLAGS = re.compile(r" fastmath<([^<>]*)>")
_PROPERTIES = re.compile(r" <(\w+ = [^<>]*)>")
_PLAIN = re.compile(r"(\w+ = -?\d+)(?=,|$)")
_DICTIONARY = re.compile(r" \{(.*)\}(?= :)| (?=: )")


def of_dictionaries(text: str) -> str:
    """The text with the properties of LLVM's ops in their dictionaries."""
    return _NEWER.sub(_with_dictionary, text) if "llvm." in text else text


def _with_dictionary(match: re.Match[str]) -> str:
    line, parts = match[2], list[str]()
    if " ignore_denormal_mode " in line:
        line = line.replace(" ignore_denormal_mode ", " ", 1)
        parts.append("ignore_denormal_mode")
    for found in _FLAGS.finditer(line):
        parts.append(f"fastmathFlags = #llvm.fastmath<{found[1]}>")
    line = _FLAGS.sub("", line)
    for found in _PROPERTIES.finditer(line):
        parts.append(_PLAIN.sub(r"\1 : i64", found[1]))
    line = _PROPERTIES.sub("", line)
    if not parts:
        return match[0]

    def dictionary(old: re.Match[str]) -> str:
        listed = ", ".join([*parts, *([old[1]] if old[1] else [])])
        return f" {{{listed}}}{'' if old[1] is not None else ' '}"

    return match[1] + _DICTIONARY.sub(dictionary, line, count=1)
