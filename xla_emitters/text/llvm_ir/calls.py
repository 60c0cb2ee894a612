"""Calls in LLVM IR: of functions, of intrinsics, of inline assembly.

    call i32 @llvm.smax.i32(i32 %a, i32 %b)             llvm.intr.smax: the types at the end of the name say nothing new
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)        nvvm.barrier0
    call float @llvm.nvvm.ex2.approx.ftz.f32(float %x)  the instruction of PTX that it is: `ptx_bodies`
    call float @helper(float %x)                        llvm.call @helper

Source: LLVM language reference, "Intrinsic Functions"; IntrinsicsNVVM.td of LLVM 22.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, IntegerType, f32, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from xla_emitters.dialects.mlir import llvm, nvvm
from xla_emitters.dialects.mlir.nvvm_async import NanosleepOp
from xla_emitters.text.llvm_ir.function_reader import FunctionReader, instruction
from xla_emitters.text.llvm_ir.lexer import Token, TokenKind, name_of, unescaped
from xla_emitters.text.llvm_ir.ptx_bodies import instruction_text, ptx
from xla_emitters.text.llvm_ir.types import VOID

_HINTS = (
    *("llvm.assume", "llvm.lifetime.", "llvm.experimental.noalias.scope.decl", "llvm.dbg.", "llvm.invariant."),
    *("llvm.prefetch", "llvm.donothing", "llvm.sideeffect", "llvm.pseudoprobe"),
)
"""Beginnings of intrinsics that mean nothing for the numbers."""
_TRAILING = (
    "nounwind",
    "readnone",
    "readonly",
    "willreturn",
    "convergent",
    "noreturn",
    "memory",
    "nofree",
    "nosync",
    "cold",
)


@instruction("call")
def call(r: FunctionReader) -> SSAValue | None:
    r.skip_attributes()
    result = r.type()
    if r.cursor.at("("):
        r.cursor.skip_group()
    token = r.cursor.token
    if token.text == "asm":
        return _assembly(r, result)
    if token.kind is TokenKind.LOCAL:
        raise r.unsupported("a call of a function's address", token)
    name = name_of(r.cursor.expect_kind(TokenKind.GLOBAL, "the function that is called"))
    arguments, alignments = _arguments(r)
    if name.startswith(_HINTS):
        return None
    if name.startswith("llvm.nvvm."):
        return _of_gpu(r, name, token, arguments, result)
    if name.startswith("llvm."):
        return _intrinsic(r, name, token, arguments, alignments, result)
    r.callees.setdefault(name, token)
    op = llvm.CallOp(name, *arguments, return_type=None if result == VOID else result)
    r.do(op)
    return op.results[0] if op.results else None


def _arguments(r: FunctionReader) -> tuple[list[SSAValue], list[int]]:
    """`(float noundef %x, ptr align 4 %p) #3 [ "align"(ptr %p, i64 16) ]`: the values, and the alignments of pointers; 0: not said."""
    cursor, found, alignments = r.cursor, list[SSAValue](), list[int]()
    cursor.expect("(", "before the arguments")
    is_first = True
    while not cursor.accept(")"):
        if not is_first:
            cursor.expect(",", "or ')' after the argument")
        is_first = False
        if cursor.accept("metadata"):
            r.metadata_value()
            continue
        ir_type = r.value_type()
        alignments.append(r.skip_attributes().get("align", 0))
        found.append(r.value(ir_type))
    while cursor.token.kind in (TokenKind.GROUP, TokenKind.STRING) or cursor.at(*_TRAILING):
        cursor.advance()
        if cursor.at("("):
            cursor.skip_group()
    if cursor.at("["):
        cursor.skip_group()
    return found, alignments


# ---------------------------------------------------------------------------------------------- inline assembly


def _assembly(r: FunctionReader, result: Attribute) -> SSAValue | None:
    """`asm sideeffect "mov.u32 $0, %laneid;", "=r"()`"""
    cursor = r.cursor
    start = cursor.advance()
    while cursor.accept_any("sideeffect", "alignstack", "inteldialect", "unwind"):
        pass
    text = unescaped(cursor.expect_kind(TokenKind.STRING, "the assembly").text[1:-1]).decode("latin-1")
    cursor.expect(",", "after the assembly")
    token = cursor.expect_kind(TokenKind.STRING, "the constraints")
    constraints = [part for part in token.text[1:-1].split(",") if part and not part.startswith("~")]
    inputs, _ = _arguments(r)
    outputs = list(result.types) if isinstance(result, llvm.LLVMStructType) else [] if result == VOID else [result]
    written = [part.startswith("=") for part in constraints]
    if written != [True] * len(outputs) + [False] * len(inputs) or any(
        part[-1:] not in "rlfdhbnc" for part in constraints
    ):
        raise r.unsupported(f"inline PTX with the constraints {token}", token)
    found = ptx(r, start, text, inputs, outputs)
    if not isinstance(result, llvm.LLVMStructType):
        return found[0] if found else None
    whole = r.add(llvm.PoisonOp(result))
    for number, part in enumerate(found):
        whole = r.add(llvm.InsertValueOp(DenseArrayBase.from_list(i64, [number]), whole, part))
    return whole


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


# ---------------------------------------------------------------------------------------------- NVIDIA's

_REGISTERS = {op.name.removeprefix("nvvm."): op for op in nvvm.NVVM.operations if op.name.startswith("nvvm.read.")}
_SHUFFLES = {"i32": i32, "f32": f32}
_AS_THEY_ARE = (
    "activemask",
    "isspacep.",
    "ff.to.",
    "f16x2.to.",
    "e4m3x2.to.",
    "e5m2x2.to.",
    "e2m3x2.to.",
    "e3m2x2.to.",
    "e2m1x2.to.",
)
"""Beginnings of intrinsics that the executor knows by their own names."""


def _of_gpu(
    r: FunctionReader, whole: str, token: Token, given: Sequence[SSAValue], result: Attribute
) -> SSAValue | None:
    name = whole.removeprefix("llvm.nvvm.")
    try:
        op = _op_of(r, name, given)
    except ValueError:  # another number of arguments, or a kind that there is not
        raise r.unsupported(f"the intrinsic '{whole}' with such arguments", token) from None
    if op is None and name.startswith(_AS_THEY_ARE):
        op = llvm.CallIntrinsicOp(whole, given, [] if result == VOID else [result])
    if op is not None:
        r.do(op)
        if (op.results[0].type if op.results else VOID) != result:
            raise r.error(f"'{whole}' gives {op.results[0].type if op.results else 'nothing'}", token)
        return op.results[0] if op.results else None
    if result == VOID:
        raise r.unsupported(f"the intrinsic '{whole}'", token)
    return ptx(r, token, instruction_text(name, given, result), given, [result])[0]


def _op_of(r: FunctionReader, name: str, given: Sequence[SSAValue]) -> Operation | None:
    """The op of an intrinsic that concerns other threads, or reads a register; None if it has none."""
    if (register := _REGISTERS.get(name)) is not None:
        is_long = name.endswith(("clock64", "globaltimer"))
        return register.create(result_types=[IntegerType(64 if is_long else 32)])
    first, *rest = name.split(".")
    match first, rest:
        case "barrier0", []:
            return nvvm.Barrier0Op.create()
        case "barrier", ["cta", "sync", ("aligned" | "all" | "count"), *_] if 1 <= len(given) <= 2:
            if len(given) == 1 and r.is_zero(given[0]):
                return nvvm.Barrier0Op.create()
            return nvvm.BarrierOp(given[0], given[1] if len(given) > 1 else None)
        case "bar", ["warp", "sync"]:
            return nvvm.SyncWarpOp.create(operands=given)
        case "shfl", ["sync", kind, word] if len(given) == 4 and word.removesuffix("p") in _SHUFFLES:
            mask, value, offset, clamp = given
            return nvvm.ShflOp(nvvm.ShflKind(kind), mask, value, offset, clamp, word.endswith("p"))
        case "vote", [kind, "sync"]:
            kind = nvvm.VoteKindAttr(nvvm.VoteKind(kind))
            of = i32 if kind.data is nvvm.VoteKind.BALLOT else i1
            return nvvm.VoteOp(operands=[*given], result_types=[of], properties={"kind": kind})
        case "match", [kind, "sync", _]:
            kind = nvvm.MatchKindAttr(nvvm.MatchKind(kind))
            of = llvm.LLVMStructType.from_type_list([i32, i1]) if kind.data is nvvm.MatchKind.ALL else i32
            mask, value = given
            return nvvm.MatchOp(operands=[mask, value], result_types=[of], properties={"kind": kind})
        case "redux", ["sync", kind, *words]:
            value, mask = given
            flags = {word: BoolAttr.from_bool(name in words) for word, name in (("abs", "abs"), ("nan", "NaN"))}
            properties = {"kind": nvvm.ReduxKindAttr(nvvm.ReduxKind(kind)), **flags}
            return nvvm.ReduxOp(operands=[value, mask], result_types=[value.type], properties=properties)
        case "membar", [_]:
            return llvm.FenceOp("seq_cst")
        case "griddepcontrol", [*words]:
            kind = nvvm.GridDepActionKind("_".join(words))
            return nvvm.GriddepcontrolOp.create(properties={"kind": nvvm.GridDepActionAttr(kind)})
        case "nanosleep", []:
            return NanosleepOp.create(operands=given)
        case _:
            return None
