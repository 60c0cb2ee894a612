"""MLIR text to ops: xDSL's parser, which records where ops begin, and reads what xDSL's refuses, gets wrong, or reads slowly.

    dense<0xFF800000> : vector<2xf32>           the bits of a float (-inf); xDSL reads 4286578688.0, though it writes infinities so itself
    dense<(0x7F800000, 1.5)>                    a complex number with one hexadecimal part; xDSL refuses it
    0x7F800001 : f32                            a NaN with its bits (`float_bits.py`)
    distinct[0]<>                               MLIR's distinct attribute
    ^0:                                         a block that is named by a number; xDSL reads only a branch to it

Lines, types and dictionaries that its context has read before are not parsed again (`repeated_text.py`); the smallest steps take fewer
calls than xDSL's. An integer type of more bits than MLIR has is refused: xDSL computes the range of its values, which takes all memory.
Source: xDSL, xdsl/parser; MLIR 22, builtin attributes.

Tokens are read in fewer calls than xDSL's lexer makes:

    %0 = arith.addi %a, %b : i32    two expressions and nine calls per token     ->  one expression for the blanks and the token

Only plain tokens are read here: ASCII identifiers, numbers, punctuation, strings without backslashes. Everything else, the end and errors
included, is left to xDSL's lexer, which reads it again from the same position. So tokens, positions and messages are xDSL's.
Source: xDSL, xdsl/utils/mlir_lexer.py, xdsl/utils/lexer.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Block, BuiltinAttribute, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser, ParserState
from xdsl.printer import Printer
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRLexer,
    MLIRToken,
    MLIRTokenKind,
    StringLiteral,
)

from xla_emitters.dialects import float_bits
from xla_emitters.dialects.completion import adopt
from xla_emitters.dialects.quick_op import QuickOp
from xla_emitters.dialects.repeated_text import DICTIONARY, TYPE, OpLine, RepeatedText, keep, line_at


@irdl_attr_definition
class DistinctAttr(ParametrizedAttribute, BuiltinAttribute):
    """`distinct[1]<"a">`: an attribute that equals no other, not even one of the same content. Within a text the number identifies it.

    `mlir_parser.py` calls this for the word `distinct`.
    """

    name = "builtin.distinct"

    number: IntAttr
    content: ArrayAttr[Attribute]

    @classmethod
    def parse_body(cls, parser: AttrParser) -> DistinctAttr:
        """Parses the part after the word: `[1]<"a">`; the content may be missing."""
        with parser.in_square_brackets():
            number = parser.parse_integer(allow_boolean=False, allow_negative=False)
        with parser.in_angle_brackets():
            content = parser.parse_optional_attribute()
        return cls(IntAttr(number), ArrayAttr([] if content is None else [content]))

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(f"distinct[{self.number.data}]<")
        printer.print_list(self.content, printer.print_attribute)
        printer.print_string(">")


_new: Callable[[Any], Any] = object.__new__

_SUFFIX = r"(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)"
_NAME = r"[a-zA-Z_][a-zA-Z0-9_$.]*"


class _Plain(NamedTuple):
    """A kind of token that is read here."""

    kind: MLIRTokenKind
    expression: str
    span: type[Span[str]] = Span


_PLAIN = (
    _Plain(MLIRTokenKind.PERCENT_IDENT, f"%{_SUFFIX}"),
    _Plain(MLIRTokenKind.BARE_IDENT, _NAME),
    *(_Plain(KIND_BY_PUNCTUATION_SPELLING[each], re.escape(each)) for each in (",", ":", "(", ")", "=", "<", ">")),
    _Plain(MLIRTokenKind.FLOAT_LIT, r"[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?"),
    _Plain(MLIRTokenKind.INTEGER_LIT, "0x[0-9a-fA-F]+|[0-9]+"),
    _Plain(MLIRTokenKind.EXCLAMATION_IDENT, f"!{_SUFFIX}"),
    _Plain(MLIRTokenKind.STRING_LIT, r'"[^"\\\n\v\f]*"', StringLiteral),
    _Plain(MLIRTokenKind.L_BRACE, r"\{(?!-#)"),
    *(_Plain(KIND_BY_PUNCTUATION_SPELLING[each], re.escape(each)) for each in ("}", "[", "]", "?", "*", "|", "+")),
    _Plain(MLIRTokenKind.HASH_IDENT, rf"#(?!-\}}){_SUFFIX}"),
    _Plain(MLIRTokenKind.AT_IDENT, f"@{_NAME}"),
    _Plain(MLIRTokenKind.CARET_IDENT, rf"\^{_SUFFIX}"),
    _Plain(MLIRTokenKind.ARROW, "->"),
    _Plain(MLIRTokenKind.MINUS, "-(?!>)"),
)
# Possessive: a comment must not be cut so that its rest is read as a token.
_TOKEN = re.compile(r"(?:\s++|//[^\n]*+)*+(?:" + "|".join(f"({each.expression})" for each in _PLAIN) + ")", re.ASCII)
# By number of the group; group 0 is the whole match.
_TOKEN_KINDS = (MLIRTokenKind.EOF, *[each.kind for each in _PLAIN])
_SPANS: tuple[type[Span[str]], ...] = (Span, *[each.span for each in _PLAIN])


class QuickToken(Token[MLIRTokenKind, str]):
    """A token that holds its text; xDSL's cuts it out of the input each time."""

    # In place of a property: each token has a value of its own.
    text: str = ""  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]


class QuickLexer(MLIRLexer):
    """xDSL's lexer, with the changes listed in the file's head."""

    # As in xDSL, except for the possessive `++` and `*+`: without them the time to notice a missing closing quote doubles with every
    # character.
    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def lex(self) -> MLIRToken:
        """The next token. raises xDSL's ParseError if there is none"""
        source = self.input
        found = _TOKEN.match(source.content, self.pos)
        if found is None:
            return super().lex()
        group: Any = found.lastindex
        span = _new(_SPANS[group])
        # A frozen dataclass: its __init__ sets each field by a function call.
        fields = span.__dict__
        fields["start"], fields["end"] = found.span(group)
        fields["input"] = source
        self.pos = fields["end"]
        token: MLIRToken = _new(QuickToken)
        token.kind = _TOKEN_KINDS[group]
        token.span = span
        token.text = found[group]  # pyright: ignore[reportAttributeAccessIssue]
        return token


_T = TypeVar("_T")
_KINDS: dict[str, MLIRTokenKind] = dict(KIND_BY_PUNCTUATION_SPELLING)
_HEXADECIMAL = ("0x", "0X")
_MOST_BITS = (1 << 24) - 1
"""Of an integer type, as in MLIR."""


class _Number(AttrParser._TensorLiteralElement):
    """One number in `dense<[...]>`, before its type is known."""

    @property
    def is_hexadecimal(self) -> bool:
        return any(word.startswith(_HEXADECIMAL) for word in self._words())

    def _words(self) -> list[str]:
        return [word.strip() for word in self.span.text.strip("()").split(",")]

    def to_type(self, parser: AttrParser, type: Any) -> Any:  # noqa: A002 (xDSL's name)
        """The number as one of a type. A hexadecimal one stands for a float's bits."""
        if not self.is_hexadecimal:
            return super().to_type(parser, type)
        if isinstance(type, AnyFloat):
            return _float_of(self._words()[0], type)
        part: Any = getattr(type, "element_type", None)
        if isinstance(part, AnyFloat):
            return tuple(_float_of(word, part) for word in self._words())
        return super().to_type(parser, type)


def _float_of(word: str, float_type: AnyFloat) -> float:
    if not word.startswith(_HEXADECIMAL):
        return float(word)
    return float_bits.float_attr_of_bits(int(word, 16), float_type).value.data


class IRParser(Parser):
    """xDSL's parser, with the changes listed in the file's head. One parser reads one text."""

    def __init__(self, context: Context, text: str, name: str = "<ir>", read: RepeatedText | None = None):
        """`read`: what was read before, and will be kept; nothing is without."""
        super().__init__(context, "", name)
        self._parser_state = ParserState(QuickLexer(Input(text, name)))
        self.starts: dict[Operation, int] = {}
        self.start = 0
        self._text = text
        self._read = RepeatedText() if read is None else read
        self._numbers: list[_Number] = []

    # ---- tokens -------------------------------------------------------------------------------------------------------------------

    # `attrgetter` reads a field without a Python call.
    _current_token: Any = property(attrgetter("_parser_state.current_token"))
    lexer: Any = property(attrgetter("_parser_state.lexer"))
    pos: Any = property(attrgetter("_parser_state.current_token.span.start"))

    def _consume_token(self, expected_kind: Any = None) -> Any:
        state = self._parser_state
        token = state.current_token
        if expected_kind is not None and token.kind is not expected_kind:
            return super()._consume_token(expected_kind)
        state.current_token = state.lexer.lex()
        return token

    def _parse_optional_token(self, expected_kind: MLIRTokenKind) -> MLIRToken | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    def parse_optional_characters(self, text: str) -> str | None:
        state = self._parser_state
        if state.current_token.text != text:
            return None
        state.current_token = state.lexer.lex()
        return text

    def parse_optional_punctuation(self, punctuation: Any) -> Any:
        state = self._parser_state
        if punctuation not in _KINDS:
            return super().parse_optional_punctuation(punctuation)
        if state.current_token.kind is not _KINDS[punctuation]:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_punctuation(self, punctuation: Any, context_msg: str = "") -> Any:
        state = self._parser_state
        if punctuation not in _KINDS or state.current_token.kind is not _KINDS[punctuation]:
            return super().parse_punctuation(punctuation, context_msg)
        state.current_token = state.lexer.lex()
        return punctuation

    # ---- attributes ---------------------------------------------------------------------------------------------------------------

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        word = self._current_token.text
        found = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(found, FloatAttr) and word.startswith(_HEXADECIMAL):
            return float_bits.float_attr_of_bits(int(word, 16), found.type)
        return found

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:  # noqa: A002 (xDSL's name)
        # A type's encoding may be a dense attribute too.
        outer, self._numbers = self._numbers, []
        found = super().parse_dense_int_or_fp_elements_attr(type)
        numbers, self._numbers = self._numbers, outer
        if any(number.is_hexadecimal for number in numbers):
            element_type = found.get_element_type()
            values = [number.to_type(self, element_type) for number in numbers]
            return float_bits.dense_of(found.type, values)
        return found

    def _parse_tensor_literal_element(self) -> _Number:
        read = super()._parse_tensor_literal_element()
        number = _Number(read.is_negative, read.value, read.span)
        self._numbers.append(number)
        return number

    def _parse_optional_complex(self) -> Any:
        start: int = self.pos
        if self.parse_optional_punctuation("(") is None:
            return None
        real, _ = self._parse_bool_int_or_float()
        self.parse_punctuation(",")
        imaginary, last = self._parse_bool_int_or_float()
        self.parse_punctuation(")")
        return (real, imaginary), Span(start, last.end, self.lexer.input)

    def _parse_dense_literal_type(self) -> Any:
        # xDSL makes the constraint anew for each attribute.
        start = self.pos
        shaped: Any = self.parse_optional_type()
        if type(shaped) in (TensorType, VectorType, MemRefType):
            is_numeric = isinstance(shaped.element_type, IntegerType | IndexType | AnyFloat | ComplexType)
            if is_numeric and DYNAMIC_INDEX not in shaped.get_shape():
                return shaped
        self._resume_from(start)
        return super()._parse_dense_literal_type()

    def _parse_optional_builtin_parametrized_attr(self) -> Attribute | None:
        if self._current_token.text == "distinct":
            self._consume_token()
            return DistinctAttr.parse_body(self)
        return super()._parse_optional_builtin_parametrized_attr()

    # ---- ops and blocks -----------------------------------------------------------------------------------------------------------

    def parse_optional_successor(self) -> Block | None:
        token = self._current_token
        name = token.text[1:]
        if token.kind is MLIRTokenKind.CARET_IDENT and name.isdigit() and name not in self.blocks:
            # xDSL's would give the block this name, which is none.
            self.forward_block_references[name].append(token.span)
            self.blocks[name] = Block(), None
        return super().parse_optional_successor()

    def _parse_block(self) -> Block:
        token = self._current_token
        name = token.text[1:]
        block, defined_at = self.blocks.get(name, (None, None))
        if token.kind is not MLIRTokenKind.CARET_IDENT or not name.isdigit() or defined_at is not None:
            return super()._parse_block()
        self._consume_token()
        block = Block() if block is None else block
        self.blocks[name] = block, token.span
        self.forward_block_references.pop(name, None)
        self._parse_optional_block_arg_list(block)
        self.parse_punctuation(":")
        self._parse_block_body(block)
        return block

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        module = super().parse_module(allow_implicit_module)
        own = self.ctx.get_optional_op("builtin.module")
        return adopt(module) if own is not None and issubclass(own, QuickOp) else module

    def parse_operation(self) -> Operation:
        self.start = start = self.pos
        line = line_at(self._text, start)
        op = self._repeated(line) if line else None
        if op is None:
            op = super().parse_operation()
            for region in op.regions if isinstance(op, QuickOp) else ():
                # xDSL adds the terminators that a text leaves out.
                if (last := region.last_block) is not None and last.last_op is not None:
                    adopt(last.last_op)
            if line and self.pos == line.end:
                self._read.keep_line(line, op, self.ssa_values)
        self.starts[op] = start
        return op

    def parse_optional_type(self) -> TypeAttribute | None:
        return self._once(TYPE, self._read.types, super().parse_optional_type)

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        integer = self._builtin_integer_type_regex.match(self._current_token.text)
        if integer and (len(integer[1]) > 20 or int(integer[1]) > _MOST_BITS):
            self.raise_error(f"an integer type has at most {_MOST_BITS} bits")
        return super()._parse_optional_integer_or_float_type()

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        return dict(self._once(DICTIONARY, self._read.dictionaries, super().parse_optional_dictionary_attr_dict))

    def undefined(self) -> tuple[str, tuple[int, int]] | None:
        """A value that was used and never defined, and where its use is in the text; None if there is none."""
        for name, references in self.forward_ssa_references.items():
            for use in (use for value in references.values() for use in value.uses):
                written = re.compile(rf"%{re.escape(name)}(?![\w$.-])")
                if (found := written.search(self._text, self.starts.get(use.operation, 0))) is not None:
                    return found[0], found.span()
        return None

    def _repeated(self, line: OpLine) -> Operation | None:
        """The op of a line that was read before; goes on to the next line."""
        if (op := self._read.op(line, self.ssa_values)) is None:
            return None
        if line.result is not None:
            self._register_ssa_definition(line.result, op.results, self._current_token.span)
        self._go_on_at(line.end)
        return op

    def _once(self, expression: re.Pattern[str], kept: dict[str, _T], parse: Callable[[], _T]) -> _T:
        """What the text here stands for: parsed, or known if `expression` matches it and it was read before."""
        start = self.pos
        if (found := expression.match(self._text, start)) is None:
            return parse()
        if (known := kept.get(found[0])) is not None:
            self._go_on_at(found.end())
            return known
        value = parse()
        if self._text[start : self.pos].rstrip() == found[0]:
            keep(kept, found[0], value)
        return value

    def _go_on_at(self, position: int) -> None:
        state = self._parser_state
        state.lexer.pos = position
        state.current_token = state.lexer.lex()
