"""Calls in LLVM IR: of functions, of intrinsics, of inline assembly.

    call i32 @llvm.smax.i32(i32 %a, i32 %b)             llvm.intr.smax: the types at the end of the name say nothing new
    call float @llvm.nvvm.ex2.approx.ftz.f32(float %x)  the instruction of PTX that it is: `ptx_bodies`
    call float @helper(float %x)                        llvm.call @helper

Source: LLVM language reference, "Intrinsic Functions"; IntrinsicsNVVM.td of LLVM 22.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.text.llvm_ir.function_reader import FunctionReader, instruction
from xla_emitters.text.llvm_ir.llvm_ir_lexer import LlvmTokenKind, Token, name_of, unescaped
from xla_emitters.text.llvm_ir.llvm_types import POINTER, VOID
from xla_emitters.text.llvm_ir.ptx_bodies import outputs_of, ptx, ptx_of_intrinsic

_HINTS = (
    *("llvm.assume", "llvm.lifetime.", "llvm.experimental.noalias.scope.decl", "llvm.dbg.", "llvm.invariant."),
    *("llvm.prefetch", "llvm.donothing", "llvm.sideeffect", "llvm.pseudoprobe"),
)
"""Beginnings of intrinsics that mean nothing for the numbers."""
_TRAILING = frozenset("nounwind readnone readonly willreturn convergent noreturn memory nofree nosync cold".split())


@instruction("call")
def call(r: FunctionReader) -> SSAValue | None:
    r.skip_attributes()
    result = r.type()
    if r.cursor.at("("):
        r.cursor.skip_group()
    token = r.cursor.token
    if token.text == "asm":
        return _assembly(r, result)
    if token.kind is LlvmTokenKind.LOCAL:
        pointer = r.value(POINTER)
        arguments, _ = _arguments(r)
        return _called(r, None, [pointer, *arguments], result)
    name = name_of(r.cursor.expect_kind(LlvmTokenKind.GLOBAL, "the function that is called"))
    arguments, alignments = _arguments(r)
    if name.startswith(_HINTS):
        return None
    if name.startswith("llvm.nvvm."):
        return ptx_of_intrinsic(r, token, name.removeprefix("llvm.nvvm."), arguments, result)
    if name.startswith("llvm."):
        return _intrinsic(r, name, token, arguments, alignments, result)
    r.callees.setdefault(name, token)
    return _called(r, name, arguments, result)


def _called(r: FunctionReader, name: str | None, arguments: Sequence[SSAValue], result: Attribute) -> SSAValue | None:
    """A call of the function of that name, or of the address that is the first argument."""
    op = llvm.CallOp(name, *arguments, return_type=None if result == VOID else result)
    r.do(op)
    return op.results[0] if op.results else None


def _arguments(r: FunctionReader) -> tuple[list[SSAValue], list[int]]:
    """`(float noundef %x, ptr align 4 %p) #3 [ "align"(ptr %p, i64 16) ]`: the values, and the alignments of pointers; 0: not said."""
    cursor = r.cursor
    cursor.expect("(", "before the arguments")
    found = [each for each in cursor.items(")", lambda: _argument(r), "the argument") if each is not None]
    while cursor.token.kind in (LlvmTokenKind.GROUP, LlvmTokenKind.STRING) or cursor.at(*_TRAILING):
        cursor.advance()
        if cursor.at("("):
            cursor.skip_group()
    if cursor.at("["):
        cursor.skip_group()
    return [value for value, _ in found], [alignment for _, alignment in found]


def _argument(r: FunctionReader) -> tuple[SSAValue, int] | None:
    """A value and its alignment; None for metadata."""
    if r.cursor.accept("metadata"):
        r.metadata_value()
        return None
    ir_type = r.value_type()
    alignment = r.skip_attributes().get("align", 0)
    return r.value(ir_type), alignment


# ---------------------------------------------------------------------------------------------- inline assembly


def _assembly(r: FunctionReader, result: Attribute) -> SSAValue | None:
    """`asm sideeffect "mov.u32 $0, %laneid;", "=r"()`"""
    cursor = r.cursor
    start = cursor.advance()
    while cursor.accept_any("sideeffect", "alignstack", "inteldialect", "unwind"):
        pass
    text = unescaped(cursor.expect_kind(LlvmTokenKind.STRING, "the assembly").text[1:-1]).decode("latin-1")
    cursor.expect(",", "after the assembly")
    token = cursor.expect_kind(LlvmTokenKind.STRING, "the constraints")
    constraints = [part for part in token.text[1:-1].split(",") if part and not part.startswith("~")]
    inputs, _ = _arguments(r)
    count = len(outputs_of(result))
    written = [part.startswith("=") for part in constraints]
    if written != [True] * count + [False] * len(inputs) or any(part[-1:] not in "rlfdhbnc" for part in constraints):
        raise r.unsupported(f"inline PTX with the constraints {token}", token)
    literals = {number for number, part in enumerate(constraints[count:]) if part == "n"}
    return ptx(r, start, text, inputs, result, literals)


# ---------------------------------------------------------------------------------------------- LLVM's intrinsics

_IMMEDIATES: dict[str, tuple[str, ...]] = {
    **{"ctlz": ("is_zero_poison",), "cttz": ("is_zero_poison",), "abs": ("is_int_min_poison",), "is.fpclass": ("bit",)},
    **{"memcpy": ("isVolatile",), "memmove": ("isVolatile",), "memset": ("isVolatile",)},
    **{"vector.extract": ("pos",), "vector.insert": ("pos",)},
}
"""Intrinsic -> the properties that its last arguments are."""
_POINTER_OF = {"masked.load": 0, "masked.gather": 0, "masked.store": 1, "masked.scatter": 1}
"""Intrinsic -> the argument whose alignment the op has as a property."""


@lru_cache(1024)
def stem_of(name: str) -> str:
    """The longest beginning of an intrinsic's name that an op has; "" if there is none.

    >>> stem_of("llvm.vector.reduce.add.v4i32"), stem_of("llvm.smax.i32"), stem_of("llvm.unknown")
    ('vector.reduce.add', 'smax', '')
    """
    parts = name.removeprefix("llvm.").split(".")
    stems = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((stem for stem in stems if stem in llvm.INTRINSICS), "")


def _intrinsic(
    r: FunctionReader,
    name: str,
    token: Token,
    arguments: Sequence[SSAValue],
    alignments: Sequence[int],
    result: Attribute,
) -> SSAValue | None:
    stem = stem_of(name)
    if not stem:
        raise r.unsupported(f"the intrinsic '{name}'", token)
    kind = llvm.INTRINSICS[stem]
    properties: dict[str, Attribute] = {}
    assert issubclass(kind, IRDLOperation)
    if "fastmathFlags" in kind.get_irdl_definition().properties:
        properties["fastmathFlags"] = llvm.FastMathAttr(None)
    names = _IMMEDIATES.get(stem, ())
    values, immediates = list(arguments), list[SSAValue]()
    if names:
        values, immediates = values[: -len(names)], values[-len(names) :]
    for word, value in zip(names, immediates, strict=False):
        properties[word] = r.immediate(value, token)
    if (number := _POINTER_OF.get(stem)) is not None and number < len(alignments):
        properties["alignment"] = IntegerAttr(alignments[number] or 1, i32)
    op = kind.create(operands=values, result_types=[] if result == VOID else [result], properties=properties)
    r.do(op)
    return op.results[0] if op.results else None
