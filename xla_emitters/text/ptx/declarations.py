"""Declarations and literals of PTX: registers and variables with their scopes, numbers, addresses of variables as constants.

Source: PTX ISA 8.8, 4.5 "Constants", 5.4 "Variables".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeVar

from xla_emitters.support.source import Source
from xla_emitters.text.ptx.ptx_lexer import PtxCursor, PtxTokenKind, Token
from xla_emitters.text.ptx.syntax import (
    DECLARED,
    SIZES,
    OperandGroup,
    PtxFunction,
    PtxLiteral,
    PtxModule,
    PtxVariable,
    Register,
    SymbolAddress,
)

T = TypeVar("T")
MOST_BYTES = 1 << 30
"""Limit of one variable, in bytes."""

_INFINITY = 0x7FF0 << 48
_ZERO = re.compile(r"[0.]*([eE]|$)")
_MOST_DIGITS = 80
_MOST_NAMES = (1 << 32) - 1
"""Limit of the count in `%r<10>`, which is ptxas's."""
_PLAIN_NUMBERS = re.compile(r"\{\s*((?:0|[1-9]\d{0,18})(?:\s*,\s*(?:0|[1-9]\d{0,18}))*+)\s*\}")
"""A list of decimal numbers below 2^63."""


def _quotient(one: int, two: int) -> int:
    return int(Fraction(one, two))


_OPERATORS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"*": int.__mul__, "/": _quotient, "%": lambda one, two: one - two * _quotient(one, two)},
    {"+": int.__add__, "-": int.__sub__},
    {"<<": int.__lshift__, ">>": int.__rshift__},
    *({"&": int.__and__}, {"^": int.__xor__}, {"|": int.__or__}),
)
"""The operators of constants, those that bind closest first."""
_RANGE = re.compile(r"(.*?)(0|[1-9]\d{0,9})$")


class Scope:
    """The names of a `{ }` block.

    names   of registers, of vectors of registers, and of variables, which have another name in the function
    ranges  prefix -> (type, count) of `.reg .b32 %r<10>`; registers of one are made when they are used
    """

    def __init__(self) -> None:
        self.names: dict[str, Register | OperandGroup | str] = {}
        self.ranges: dict[str, tuple[str, int]] = {}

    def find(self, name: str) -> Register | OperandGroup | str | None:
        if (found := self.names.get(name)) is not None:
            return found
        match = _RANGE.match(name)
        if match is None or (declared := self.ranges.get(match[1])) is None or int(match[2]) >= declared[1]:
            return None
        return self.names.setdefault(name, Register(name, declared[0]))


class Declarations:
    """Reads declarations; the parser of whole texts is a subclass."""

    def __init__(self, source: Source) -> None:
        self.cursor = PtxCursor(source)
        self.found = PtxModule(source)
        self.scopes: list[Scope] = []
        self.function: PtxFunction | None = None
        self.taken = set[str]()
        self.tables: dict[str, tuple[str, ...]] = {}
        self.loc: tuple[int, int, int] | None = None
        self.used: int | None = None

    def skip_to(self, end: str) -> None:
        """Consumes all tokens up to `end`."""
        while not self.cursor.accept(end):
            if self.cursor.token.kind is PtxTokenKind.END:
                raise self.cursor.unexpected(f"'{end}'")
            self.cursor.advance()

    def attribute(self) -> None:
        """`(.managed)`, `(.unified(19, 95))` after `.attribute`; they say where a driver keeps a variable."""
        self.skip_to(")")
        self.cursor.accept(")")

    def listed(self, item: Callable[[], T]) -> list[T]:
        """One item or more, with commas between them."""
        found = [item()]
        while self.cursor.accept(","):
            found.append(item())
        return found

    def name_and_count(self, of: str) -> tuple[Token, int | None]:
        """`%r<10>`, or `%a` without a count."""
        name = self.cursor.expect_kind(PtxTokenKind.NAME, f"the {of}'s name")
        if not self.cursor.accept("<"):
            return name, None
        token = self.cursor.token
        count = self.integer(f"the number of {of}s")
        if not 0 <= count <= _MOST_NAMES:
            raise self.cursor.error(f"the number of {of}s must be 0 to {_MOST_NAMES}", token)
        self.cursor.expect(">", f"after the number of {of}s")
        return name, count

    def names_of(self, name: Token, count: int | None) -> list[str]:
        """`a0`, `a1` of `a<2>`; `a` where there is no count."""
        if count is not None and not 0 <= count <= 10_000:
            raise self.cursor.error("too many variables", self.cursor.previous)
        return [name.text] if count is None else [f"{name.text}{each}" for each in range(count)]

    def registers(self) -> None:
        """`.reg .b32 %r<10>, %a;`"""
        cursor = self.cursor
        cursor.advance()
        kind, width = "", 1
        while cursor.token.kind is PtxTokenKind.DIRECTIVE:
            word = cursor.advance().text[1:]
            if word in ("v2", "v4"):
                width = int(word[1:])
            elif word in DECLARED and not kind:
                kind = word
            else:
                raise cursor.error(f"'.{word}' is no type of a register", cursor.previous)
        if not kind:
            raise cursor.error("a register has a type, such as .b32", cursor.previous)
        self.check_vector(kind, width)
        scope = self.scopes[-1]
        for name, count in self.listed(lambda: self.name_and_count("register")):
            if name.text in (scope.names if count is None else scope.ranges):
                what = f"register '{name.text}' is" if count is None else f"registers '{name.text}' are"
                raise cursor.error(f"{what} declared twice", name)
            if width > 1:
                for each in self.names_of(name, count):
                    parts = tuple(Register(f"{each}.{part}", kind) for part in "xyzw"[:width])
                    names = (f"{each}.{letter}" for letters in ("xyzw", "rgba") for letter in letters[:width])
                    scope.names[each] = OperandGroup(parts)
                    scope.names |= zip(names, parts * 2, strict=True)
            elif count is None:
                scope.names[name.text] = Register(name.text, kind)
            else:
                scope.ranges[name.text] = kind, count
        cursor.expect(";", "after the registers")

    def check_vector(self, kind: str, width: int) -> None:
        """raises ParseError for a vector of predicates, or of more than 128 bits"""
        if width > 1 and (kind == "pred" or width * SIZES[kind] > 16):
            raise self.cursor.error(f"there is no vector .v{width} of .{kind}", self.cursor.previous)

    # ------------------------------------------------------------------------------------------ variables

    def variables(self, is_extern: bool = False, is_parameter: bool = False) -> Iterator[PtxVariable]:
        """`.shared .align 4 .b8 name[8320]`, without its semicolon; several names, separated by commas, unless it is a parameter."""
        cursor = self.cursor
        space = cursor.advance().text[1:]
        align, element, width, is_pointer, pointee_align = 0, "", 1, False, 1
        while cursor.token.kind is PtxTokenKind.DIRECTIVE:
            word = cursor.advance()
            match word.text:
                case ".align":
                    value = self.integer("the alignment")
                    if value <= 0 or value & (value - 1) or value > 1 << 20:
                        raise cursor.error("an alignment is a power of two", cursor.previous)
                    if is_pointer:
                        pointee_align = value
                    else:
                        align = value
                case ".ptr":
                    is_pointer = True
                case ".v2" | ".v4" | ".v8":
                    width = int(word.text[2:])
                case ".global" | ".const" | ".shared" | ".local" if is_pointer:
                    pass
                case ".attribute":
                    self.attribute()
                case _ if word.text[1:] in DECLARED and (word.text != ".pred" or space == "reg") and not element:
                    element = word.text[1:]
                case _:
                    raise cursor.error(f"'{word.text}' is no type and no property of a variable", word)
        if not element:
            raise cursor.unexpected("the variable's type, such as .b32")
        self.check_vector(element, width)
        while True:
            name, number = self.name_and_count("variable")
            names = self.names_of(name, number)
            count, is_array = width, width > 1
            while cursor.accept("["):
                is_array = True
                count *= 0 if cursor.at("]") else self.integer("the number of elements")
                cursor.expect("]", "after the number of elements")
                if not 0 <= count * SIZES[element] <= MOST_BYTES:
                    raise cursor.error(f"'{name.text}' has more than {MOST_BYTES} bytes", name)
            if is_array and not count and not (is_extern or cursor.at("=")) and space in ("shared", "global", "const"):
                raise cursor.error(f"'{name.text}' without a number of elements must be .extern", name)
            if not is_array and (space, element) == ("shared", "b8") and align > 1:
                # LLVM prints MLIR's dynamic shared memory, an array of no bytes, without brackets; a byte is aligned to 1, or `.u8`.
                count, is_array = 0, True
            if cursor.at("=") and space not in ("global", "const"):
                raise cursor.error(f"'{name.text}' in .{space} has no initial value: .global and .const have", name)
            values = self.initial_values(name, count) if cursor.accept("=") else None
            for each in names:
                is_scalar = space in ("param", "reg") and not is_array
                yield PtxVariable(
                    *(each, space, element, count if is_array else None, align, name.start),
                    *(values, is_extern, is_pointer, pointee_align),
                    Register(each, element, space == "param") if is_scalar else None,
                )
            if is_parameter or not cursor.accept(","):
                return

    def initial_values(self, name: Token, count: int) -> tuple[PtxLiteral | SymbolAddress, ...]:
        """`{1, 2, {3}}` or `1`, flat."""
        cursor, values = self.cursor, list[PtxLiteral | SymbolAddress]()
        if not cursor.at("{"):
            return (self.constant(),)
        if plain := _PLAIN_NUMBERS.match(cursor.source.text, cursor.token.start):
            # A constant of a megabyte has as many numbers; read as tokens they took a minute.
            words = [word.strip() for word in plain[1].split(",")]
            if len(words) <= count:
                made = {word: PtxLiteral(int(word)) for word in set(words)}
                cursor.skip_to(plain.end())
                return tuple([made[word] for word in words])
        depth = 0
        while True:
            if cursor.accept("{"):
                depth += 1
            elif cursor.accept("}"):
                depth -= 1
                if not depth:
                    break
            elif not cursor.accept(","):
                values.append(self.constant())
                if len(values) > count:
                    raise cursor.error(f"'{name.text}' has {count} elements, but more values", cursor.previous)
            if depth > 100:
                raise cursor.too_deep()
        return tuple(values)

    # ------------------------------------------------------------------------------------------ numbers

    def integer(self, what: str) -> int:
        cursor, token = self.cursor, self.cursor.token
        if token.kind is not PtxTokenKind.NUMBER and not cursor.at("-", "("):
            raise cursor.unexpected(f"{what}, a number")
        return self.plain(self.constant(), token, f"{what} must be an integer")

    def plain(self, value: PtxLiteral | SymbolAddress, token: Token, message: str = "expected an integer") -> int:
        """The integer that was read from `token` on. raises ParseError for an address or a float"""
        if not isinstance(value, PtxLiteral) or value.kind != "int":
            raise self.cursor.error(message, token)
        return value.value

    def number(self, token: Token) -> PtxLiteral:
        if len(token.text) > _MOST_DIGITS:
            raise self.cursor.error("the number has too many digits", token)
        found = number_of(token.text)
        if found is None:
            raise self.cursor.error("an octal number has no 8 and no 9", token)
        is_text = found.kind == "f64" and token.text[:2].lower() != "0d"
        is_lost = is_text and (found.value == _INFINITY or not (found.value or _ZERO.match(token.text)))
        if found.value >> 64 or is_lost:
            raise self.cursor.error("the number does not fit into 64 bits", token)
        return found

    def constant(self, level: int = len(_OPERATORS)) -> PtxLiteral | SymbolAddress:
        """An expression of numbers such as `(1<<5)-1`, with the operators of the first `level` rows, or an address.

        Source: PTX ISA 8.8, 4.5.5 "Constant expressions".
        """
        cursor, token = self.cursor, self.cursor.token
        left = self.constant(level - 1) if level else self.term()
        operators = _OPERATORS[level - 1] if level else {}
        while word := next((word for word in operators if cursor.accept(word)), None):
            other, one = cursor.token, self.plain(left, token)
            two = self.plain(self.constant(level - 1), other)
            if (word in ("/", "%") and not two) or (word in ("<<", ">>") and not 0 <= two < 64):
                raise cursor.error("the expression has no value", other)
            value = operators[word](one, two)
            left = PtxLiteral(value if -1 << 63 <= value < 1 << 64 else value & (1 << 64) - 1)
        return left

    def term(self) -> PtxLiteral | SymbolAddress:
        """A number with its sign, `(cast) number`, an expression in parentheses, or an address `symbol+4`, `generic(symbol)`."""
        cursor = self.cursor
        token = cursor.token
        if cursor.accept("("):
            if cursor.token.kind is PtxTokenKind.DIRECTIVE:
                cursor.advance()
                cursor.expect(")", "after the cast")
                return self.term()
            with cursor.nested():
                value = self.constant()
            cursor.expect(")", "after the expression")
            return value
        if token.text in ("-", "+", "~", "!"):
            cursor.advance()
            with cursor.nested():
                value = self.term()
            if isinstance(value, PtxLiteral) and value.kind != "int":
                if token.text != "-" or cursor.previous.text[:2].lower() in ("0f", "0d"):
                    raise cursor.error("expected an integer", cursor.previous)
                return PtxLiteral(value.value ^ (1 << (31 if value.kind == "f32" else 63)), value.kind)
            number = self.plain(value, cursor.previous, "expected a number")
            return PtxLiteral({"-": -number, "+": number, "~": ~number, "!": int(not number)}[token.text])
        if token.kind is PtxTokenKind.NUMBER:
            return self.number(cursor.advance())
        if token.kind is PtxTokenKind.NAME:
            name = cursor.advance().text
            if name == "WARP_SZ":
                return PtxLiteral(32)
            if name == "generic" and cursor.accept("("):
                name = cursor.expect_kind(PtxTokenKind.NAME, "a variable").text
                cursor.expect(")", "after the variable")
                return SymbolAddress(name, self.offset(), True)
            return SymbolAddress(name, self.offset())
        raise cursor.unexpected("a number or an address")

    def offset(self) -> int:
        """`+8`, `-8`, `+-8` or nothing."""
        total = 0
        while self.cursor.at("+", "-"):
            sign, token = -1 if self.cursor.advance().text == "-" else 1, self.cursor.token
            total += sign * self.plain(self.constant(1), token, "the offset must be an integer")
        return total


def number_of(text: str) -> PtxLiteral | None:
    """The value of a literal; None for an octal one with other digits.

    >>> number_of("0x10U"), number_of("0f3F800000").kind, number_of("1.5").kind
    (PtxLiteral(value=16, kind='int'), 'f32', 'f64')
    """
    lower = text.lower()
    if lower.startswith(("0f", "0d")):
        return PtxLiteral(int(text[2:], 16), "f32" if lower[1] == "f" else "f64")
    if "." in text or ("e" in lower and not lower.startswith("0x")):
        return PtxLiteral(int.from_bytes(struct.pack("<d", float(text)), "little"), "f64")
    digits = lower.removesuffix("u")
    for prefix, base in (("0x", 16), ("0b", 2)):
        if digits.startswith(prefix):
            return PtxLiteral(int(digits[2:], base))
    if len(digits) > 1 and digits.startswith("0"):
        return PtxLiteral(int(digits, 8)) if set(digits) <= set("01234567") else None
    return PtxLiteral(int(digits))
