"""Constants of LLVM IR: as values of a function, and as the bytes of a global.

    float 0x4007154760000000        the bits of a double that is a float          half 0xH3C00, bfloat 0xR3F80: their own bits
    <4 x i32> <i32 0, i32 poison>   splat (bfloat 0xR3F80)   zeroinitializer      ptr getelementptr (i8, ptr @x, i64 4)

The ops of constants are at the start of the function, once for each text and type.
Source: LLVM language reference, "Constants", "Constant Expressions".
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import TypeVar

from xdsl.dialects import builtin
from xdsl.dialects.builtin import bf16, f16, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.float_bits import dense_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import bits_of, size_and_alignment, stride_of
from xla_emitters.support.source import Source
from xla_emitters.text.llvm_ir.llvm_ir_lexer import LlvmTokenKind, Token, name_of, unescaped
from xla_emitters.text.llvm_ir.llvm_types import TypeReader
from xla_emitters.text.ptx.op_builder import aggregate, bits_of_float, constant_op, float_of, signed, vector_of

T = TypeVar("T")
BINARY: dict[str, Callable[[SSAValue, SSAValue], Operation]] = {
    **{"add": llvm.AddOp, "sub": llvm.SubOp, "mul": llvm.MulOp, "shl": llvm.ShlOp, "lshr": llvm.LShrOp},
    **{"udiv": llvm.UDivOp, "sdiv": llvm.SDivOp, "urem": llvm.URemOp, "srem": llvm.SRemOp, "ashr": llvm.AShrOp},
    **{"and": llvm.AndOp, "or": llvm.OrOp, "xor": llvm.XOrOp},
    **{"fadd": llvm.FAddOp, "fsub": llvm.FSubOp, "fmul": llvm.FMulOp, "fdiv": llvm.FDivOp, "frem": llvm.FRemOp},
}


def _int_to_ptr(given: SSAValue, target: Attribute) -> Operation:
    return llvm.IntToPtrOp.create(operands=[given], result_types=[target])


CASTS: dict[str, Callable[..., Operation]] = {
    **{"trunc": llvm.TruncOp, "zext": llvm.ZExtOp, "sext": llvm.SExtOp, "fptrunc": llvm.FPTruncOp},
    **{"fpext": llvm.FPExtOp, "fptosi": llvm.FPToSIOp, "fptoui": llvm.FPToUIOp, "sitofp": llvm.SIToFPOp},
    **{"uitofp": llvm.UIToFPOp, "bitcast": llvm.BitcastOp, "addrspacecast": llvm.AddrSpaceCastOp},
    **{"ptrtoint": llvm.PtrToIntOp, "inttoptr": _int_to_ptr},
}
_MOST_DATA = 1 << 24
"""Limit of an initial value that is not zero as a whole, in bytes."""
FLAGS = (
    *("nuw", "nsw", "exact", "disjoint", "nneg", "samesign", "inbounds", "nusw"),
    *("fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"),
)
"""Promises that make a result poison where they do not hold; the executor computes what is computed without them."""


class ConstantReader(TypeReader):
    """Reads constants into `constants`, ops without a block."""

    def __init__(self, source: Source, offset: int = 0) -> None:
        super().__init__(source, offset)
        self.constants: list[Operation] = []
        self.globals: dict[str, Token] = {}
        self._known: dict[tuple[Attribute, str], SSAValue] = {}

    def _at_start(self, op: Operation) -> SSAValue:
        self.constants.append(op)
        return op.results[0]

    def constant(self, ir_type: Attribute) -> SSAValue:
        """The constant of that type which comes next. raises ParseError, Unsupported"""
        token = self.cursor.token
        simple = token.kind in (LlvmTokenKind.NUMBER, LlvmTokenKind.GLOBAL) or token.text in (*_WHOLE, "true", "false")
        if simple and (found := self._known.get((ir_type, token.text))) is not None:
            self.cursor.advance()
            return found
        if simple:
            found = self._known[ir_type, token.text] = self._simple(ir_type)
            return found
        with self.cursor.nested():
            return self._composed(ir_type)

    def _simple(self, ir_type: Attribute) -> SSAValue:
        token = self.cursor.token
        if (kind := _WHOLE.get(token.text)) is not None:
            self.cursor.advance()
            if token.text == "null" and not isinstance(ir_type, llvm.LLVMPointerType):
                raise self.error("null is a pointer")
            return self._at_start(kind.create(result_types=[ir_type]))
        if token.kind is LlvmTokenKind.GLOBAL:
            self.cursor.advance()
            if not isinstance(ir_type, llvm.LLVMPointerType):
                raise self.error(f"{token} is a pointer, not {ir_type}")
            self.globals.setdefault(name_of(token), token)
            return self._at_start(llvm.AddressOfOp(name_of(token), ir_type))
        return self.number(ir_type, self.bits(ir_type))

    def number(self, ir_type: Attribute, bits: int) -> SSAValue:
        """The number with these bits."""
        if (plain := constant_op(ir_type, bits)) is None:
            plain = llvm.BitcastOp(self.number(builtin.IntegerType(bits_of(ir_type)), bits), ir_type)
        return self._at_start(plain)

    def _composed(self, ir_type: Attribute) -> SSAValue:
        cursor = self.cursor
        token = cursor.advance()
        match token.text:
            case "splat":
                if not isa(ir_type, builtin.VectorType):
                    raise self.error(f"{ir_type} is no vector", token)
                cursor.expect("(", "after 'splat'")
                (one,) = self._elements([ir_type.element_type], ")", self.constant)
                return self._vector(ir_type, [one] * ir_type.element_count())
            case "<":
                if not isa(ir_type, builtin.VectorType):
                    raise self.error(f"{ir_type} is no vector", token)
                types = [ir_type.element_type] * ir_type.element_count()
                return self._vector(ir_type, self._elements(types, ">", self.constant))
            case "{" | "[":
                parts = self._elements(self._fields(ir_type, token), _CLOSING[token.text], self.constant)
                return aggregate(self._at_start, ir_type, parts)
            case "getelementptr":
                self.flags()
                cursor.expect("(", "after 'getelementptr'")
                op = self.address_op()
                cursor.expect(")", "after the address")
                return self._at_start(op)
            case word if word in CASTS or word in ("add", "sub", "xor"):
                self.flags()
                cursor.expect("(", f"after '{word}'")
                if word in CASTS:
                    op = self.cast_op(word)
                else:
                    of = self.value_type()
                    first = self.constant(of)
                    cursor.expect(",", "after the first operand")
                    if self.value_type() != of:
                        raise self.error(f"the operands of '{word}' must have one type")
                    op = BINARY[word](first, self.constant(of))
                cursor.expect(")", "after the operands")
                if op.results[0].type != ir_type:
                    raise self.error(f"this is {op.results[0].type}, not {ir_type}", token)
                return self._at_start(op)
            case "blockaddress" | "dso_local_equivalent" | "no_cfi" | "ptrtoaddr":
                raise self.unsupported(f"'{token.text}'", token)
            case _:
                details = (f"got {token}",)
                raise cursor.error(f"expected a value of type {ir_type}", token, details=details)

    def flags(self) -> None:
        while (word := self.cursor.accept_any(*FLAGS, "inrange")) != "":
            if word == "inrange":
                self.cursor.skip_group()

    def value(self, ir_type: Attribute) -> SSAValue:
        """An operand; in a constant another constant."""
        return self.constant(ir_type)

    def typed(self) -> SSAValue:
        """`i32 7`"""
        return self.value(self.value_type())

    def cast_op(self, word: str) -> Operation:
        """`i32 %x to i64`"""
        given = self.typed()
        self.cursor.expect("to", "before the type of the result")
        return CASTS[word](given, self.value_type())

    def address_op(self) -> llvm.GEPOp:
        """`float, ptr %p, i64 %i, i32 1`"""
        cursor = self.cursor
        pointee = self.value_type()
        cursor.expect(",", "after the type of what is pointed to")
        base = self.typed()
        if not isinstance(base.type, llvm.LLVMPointerType):
            raise self.unsupported(f"a getelementptr of {base.type}")
        indices = list[int | SSAValue]()
        while cursor.at(",") and cursor.peek().kind is not LlvmTokenKind.METADATA:
            cursor.advance()
            ir_type, token = self.value_type(), cursor.token
            if not isa(ir_type, builtin.IntegerType):
                raise self.unsupported(f"a getelementptr with indices of {ir_type}")
            number = self.signed(ir_type) if token.kind is LlvmTokenKind.NUMBER else None
            if number is None or not llvm.DYNAMIC_INDEX < number < 1 << 31:
                cursor.skip_to(token.start)
                indices.append(self.value(ir_type))
            else:
                indices.append(number)
        return llvm.GEPOp(base, indices, pointee, base.type)

    def _fields(self, ir_type: Attribute, token: Token) -> list[Attribute]:
        match ir_type:
            case llvm.LLVMStructType() if token.text == "{":
                return list(ir_type.types)
            case llvm.LLVMArrayType() if token.text == "[":
                return [ir_type.type] * ir_type.size.data
            case _:
                raise self.error(f"expected a value of type {ir_type}", token)

    def _elements(self, types: list[Attribute], end: str, read: Callable[[Attribute], T]) -> list[T]:
        """`i32 0, i32 1]`: a value of each of the types."""
        found = list[T]()
        for wanted in types:
            if found:
                self.cursor.expect(",", "between values")
            if (have := self.value_type()) != wanted:
                raise self.error(f"this value is {have}, not {wanted}")
            with self.cursor.nested():
                found.append(read(wanted))
        self.cursor.expect(end, "after the values")
        return found

    def _vector(self, ir_type: builtin.VectorType[Attribute], elements: list[SSAValue]) -> SSAValue:
        numbers = [number for each in elements if (number := _number_in(each)) is not None]
        if len(numbers) == len(elements):
            return self._at_start(llvm.ConstantOp(dense_of(ir_type, numbers), ir_type))
        return vector_of(self._at_start, ir_type, elements, lambda number: self.number(i64, number))

    # ------------------------------------------------------------------------------------------ bits and bytes

    def bits(self, ir_type: Attribute) -> int:
        """The bits of the literal that comes next. raises ParseError where it is no value of the type"""
        token = self.cursor.advance()
        text = token.text
        if ir_type == builtin.IntegerType(1) and text in ("true", "false"):
            return int(text == "true")
        if token.kind is LlvmTokenKind.NUMBER and len(text) < 400:
            if isa(ir_type, builtin.IntegerType) and text.lstrip("-").isdigit():
                number, bits = int(text), ir_type.bitwidth
                if -(1 << bits - 1) <= number < 1 << bits:
                    return number & ((1 << bits) - 1)
                raise self.error(f"{text} does not fit into {bits} bits", token)
            is_float = "." in text or text.startswith("0x")
            if is_float and isinstance(ir_type, builtin.AnyFloat) and (found := _float_bits(ir_type, text)) is not None:
                return found
        raise self.cursor.error(f"expected a value of type {ir_type}", token, details=(f"got {token}",))

    def signed(self, ir_type: builtin.IntegerType) -> int:
        """The integer that comes next."""
        return signed(ir_type, self.bits(ir_type))

    def data(self, ir_type: Attribute) -> bytes:
        """The bytes of an initial value. raises Unsupported for addresses"""
        cursor = self.cursor
        size, token = stride_of(ir_type), cursor.token
        if size > _MOST_DATA:
            raise self.unsupported(f"an initial value of {size} bytes", token)
        if cursor.accept_any("zeroinitializer", "undef", "poison", "null"):
            return bytes(size)
        if token.text.startswith('c"'):
            cursor.advance()
            found = unescaped(token.text[2:-1])
            if len(found) != size:
                raise self.error(f"{len(found)} bytes are no {ir_type}", token)
            return found
        if token.text in ("[", "{", "<"):
            cursor.advance()
            if isa(ir_type, builtin.VectorType):
                types = [ir_type.element_type] * ir_type.element_count()
                if stride_of(ir_type.element_type) * len(types) != size:
                    raise self.unsupported(f"an initial value of {ir_type}", token)
            else:
                types = self._fields(ir_type, token)
            whole = b""
            for piece, of in zip(self._elements(types, _CLOSING[token.text], self.data), types, strict=True):
                whole += bytes(-len(whole) % size_and_alignment(of)[1]) + piece
            return whole + bytes(size - len(whole))
        if isinstance(ir_type, llvm.LLVMPointerType) or (
            token.kind is LlvmTokenKind.WORD and token.text not in ("true", "false")
        ):
            raise self.unsupported(f"the initial value {token}", token)
        return self.bits(ir_type).to_bytes(size, "little")


_CLOSING = {"[": "]", "{": "}", "<": ">"}
_WHOLE = {"null": llvm.ZeroOp, "zeroinitializer": llvm.ZeroOp, "undef": llvm.UndefOp, "poison": llvm.PoisonOp}


def _number_in(value: SSAValue) -> float | None:
    """The number that a value is; None where it is no plain constant."""
    attribute = value.owner.value if isinstance(value.owner, llvm.ConstantOp) else None
    return attribute.value.data if isa(attribute, builtin.IntegerAttr) or isa(attribute, builtin.FloatAttr) else None


def _float_bits(ir_type: Attribute, text: str) -> int | None:
    """The bits of a literal of a float type; None where the type does not have the number.

    >>> hex(_float_bits(bf16, "0x4007000000000000") or 0), _float_bits(bf16, "1.000000e-01"), hex(_float_bits(bf16, "0xR3F80") or 0)
    ('0x4038', None, '0x3f80')
    """
    letter = text[2:3].upper() if text[:2] == "0x" else ""
    if letter in ("H", "R"):
        return (
            int(text[3:], 16)
            if (letter == "H") == (ir_type == f16) and ir_type in (f16, bf16) and len(text) < 8
            else None
        )
    if letter in ("K", "L", "M"):
        return None
    wide = int(text, 16) if letter else bits_of_float(f64, float(text))
    if wide >> 64:
        return None
    value = float_of(f64, wide)
    found = bits_of_float(ir_type, value)
    return found if isnan(value) or float_of(ir_type, found) == value else None
