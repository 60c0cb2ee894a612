"""Types of LLVM IR, and what is around them: attributes, which are skipped.

    <4 x bfloat>   [32 x float]   { i32, i1 }   ptr addrspace(3)
    noundef range(i32 0, 128) align 16 "nvvm.grid_constant"

Source: LLVM language reference, "Type System", "Parameter Attributes".
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import AnyFloat, IntAttr, IntegerType, VectorType, bf16, f16, f32, f64
from xdsl.ir import Attribute

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import stride_of
from xla_emitters.errors import ParseError, Unsupported
from xla_emitters.support.source import Source
from xla_emitters.text.llvm_ir.llvm_ir_lexer import STAGE, LlvmCursor, LlvmTokenKind, Token

VOID = llvm.LLVMVoidType()
POINTER = llvm.LLVMPointerType()
MOST_BYTES = 1 << 30
"""Limit of one variable or value in memory."""
_MOST_LANES, _MOST_BITS = 4096, 128
MOST_PACKED_BITS = 64
"""Limit of an integer in a vector or in the cases of a switch: xDSL's dense attributes hold no wider ones."""
_FLOATS: dict[str, Attribute] = {"half": f16, "bfloat": bf16, "float": f32, "double": f64}
_INTEGER = re.compile(r"i([1-9]\d{0,6})$")
_SCALARS = (IntegerType, AnyFloat, llvm.LLVMPointerType)
_OTHER = frozenset({"label", "token", "metadata", "fp128", "x86_fp80", "ppc_fp128", "x86_amx", "target", "opaque"})


class TypeReader:
    """Reads types from an offset of the text on."""

    def __init__(self, source: Source, offset: int = 0) -> None:
        self.cursor = LlvmCursor(source)
        self.cursor.skip_to(offset)

    def error(self, message: str, token: Token | None = None) -> ParseError:
        return self.cursor.error(message, token or self.cursor.previous)

    def unsupported(self, message: str, token: Token | None = None) -> Unsupported:
        token = token or self.cursor.previous
        place = self.cursor.source.place(token.start, token.end)
        return Unsupported(f"{message} is not supported", stage=STAGE, place=place)

    def at_type(self) -> bool:
        """Whether the next token begins a type."""
        token = self.cursor.token
        return (
            token.text in ("<", "[", "{", "void", "ptr")
            or token.text in _FLOATS
            or token.text in _OTHER
            or token.kind is LlvmTokenKind.LOCAL
            or _INTEGER.match(token.text) is not None
        )

    def type(self) -> Attribute:
        """A type that a value can have, or `void`. raises ParseError, Unsupported"""
        cursor = self.cursor
        token = cursor.advance()
        text = token.text
        if text in _FLOATS:
            return _FLOATS[text]
        if (match := _INTEGER.match(text)) is not None:
            if int(match[1]) > _MOST_BITS:
                raise self.unsupported(f"an integer of {match[1]} bits", token)
            return IntegerType(int(match[1]))
        match text:
            case "ptr":
                return llvm.LLVMPointerType(IntAttr(space)) if (space := self.address_space()) else POINTER
            case "void":
                return VOID
            case "[" | "<":
                with cursor.nested():
                    return self._sequence(token)
            case "{":
                with cursor.nested():
                    fields = cursor.items("}", self.value_type, "the type")
                found = llvm.LLVMStructType.from_type_list(fields)
                self._check_size(found, token)
                return found
            case _ if text in _OTHER or token.kind is LlvmTokenKind.LOCAL:
                raise self.unsupported(f"the type '{text}'", token)
            case _:
                raise cursor.error("expected a type", token, details=(f"got {token}",))

    def value_type(self) -> Attribute:
        """As `type`, without `void`."""
        if (found := self.type()) == VOID:
            raise self.error("there are no values of type void")
        return found

    def _sequence(self, opening: Token) -> Attribute:
        """`4 x float>` or `4 x float]`"""
        cursor = self.cursor
        is_vector = opening.text == "<"
        if is_vector and cursor.at("{", "vscale"):
            what = "a packed struct" if cursor.at("{") else "a vector of unknown length"
            raise self.unsupported(what, cursor.token)
        count = cursor.integer("the number of elements")
        cursor.expect("x", "after the number of elements")
        element = self.value_type()
        cursor.expect(">" if is_vector else "]", "after the type of the elements")
        if is_vector:
            if not isinstance(element, _SCALARS) or not 0 < count <= _MOST_LANES:
                raise self.error(f"a vector has 1 to {_MOST_LANES} numbers or pointers", opening)
            if isa(element, IntegerType) and element.width.data > MOST_PACKED_BITS:
                raise self.unsupported(f"a vector of {element}", opening)
            return VectorType[Attribute](element, [count])
        found = llvm.LLVMArrayType(count, element)
        self._check_size(found, opening)
        return found

    def _check_size(self, ir_type: Attribute, token: Token) -> None:
        if stride_of(ir_type) > MOST_BYTES:
            raise self.unsupported(f"a type of more than {MOST_BYTES} bytes", token)

    def address_space(self) -> int:
        """`addrspace(3)`; 0 where it is not there."""
        if not self.cursor.accept("addrspace"):
            return 0
        self.cursor.expect("(", "after 'addrspace'")
        found = self.cursor.integer("the address space")
        self.cursor.expect(")", "after the address space")
        return found if found != 1 else 0

    def skip_attributes(self) -> dict[str, int]:
        """Consumes attributes and other words before a type, a value, or the end of a declaration; returns them with their numbers."""
        cursor, found = self.cursor, dict[str, int]()
        while not self.at_type() or cursor.token.kind is LlvmTokenKind.LABEL:
            token = cursor.token
            if token.kind is LlvmTokenKind.METADATA:
                cursor.advance()
                self.metadata_value()
            elif token.kind is LlvmTokenKind.STRING:
                cursor.advance()
                if cursor.accept("="):
                    cursor.expect_kind(LlvmTokenKind.STRING, "the attribute's value")
            elif token.kind is LlvmTokenKind.GROUP:
                cursor.advance()
            elif token.kind is LlvmTokenKind.WORD and token.text not in VALUES:
                cursor.advance()
                found[token.text] = 0
                if cursor.at("("):
                    cursor.skip_group()
                elif cursor.accept("=") or cursor.token.kind is LlvmTokenKind.NUMBER:
                    if token.text not in ("align", "alignstack", "dereferenceable", "cc"):
                        break
                    found[token.text] = cursor.integer(f"the number after '{token.text}'")
            else:
                break
        return found

    def metadata_value(self) -> str:
        """`!5`, `!{}`, `!DILocation(...)`, `i32 7`; returns its text."""
        cursor = self.cursor
        start = cursor.token.start
        if cursor.token.kind is not LlvmTokenKind.METADATA:
            raise cursor.unexpected("metadata")
        cursor.advance()
        if cursor.at("(", "{"):
            cursor.skip_group()
        return cursor.source.text[start : cursor.previous.end]


VALUES = frozenset(
    "true false null none zeroinitializer undef poison splat asm blockaddress dso_local_equivalent no_cfi "
    "getelementptr addrspacecast ptrtoint ptrtoaddr inttoptr bitcast trunc add sub xor".split()
)
"""Words that begin a constant."""
