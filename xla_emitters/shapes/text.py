"""Sizes and shapes as text, in jax.export's notation of symbolic dimensions.

    2*b + floordiv(s + 1, 2) - max(b, 1)            (b, 2*s, 16)

    shape   := '(' sizes? ')' | sizes                 sizes := size (',' size)* ','?
    size    := ('+'|'-')? term (('+'|'-') term)*      term := factor ('*' factor)*
    factor  := '-' factor | base ('^' number)?
    base    := number | name | ('floordiv'|'mod'|'max'|'min') '(' size ',' size ')' | '(' size ')'

JAX itself has no parentheses around a size, and a sign only before a number. Printing is `str` of a size; the text
reads back as the same size. JAX's placeholders `...` and `_` refer to a shape given outside the text, and are refused.
Source: docs/reference/4 2.1, 3.1; JAX's page "Shape polymorphism".
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple

from xla_emitters.errors import ParseError, Place
from xla_emitters.shapes.size import MAX_DEGREE, OPERATIONS, Size, TooLarge, operation

_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<int>[0-9]+)|(?P<mark>\.\.\.|[-+*^(),])|(?P<end>$))")
_DEEPEST = 60  # nesting of parentheses and signs
_MOST_DIGITS = 2_400  # about the limit of a coefficient


class _Token(NamedTuple):
    kind: str  # "name", "int", "mark" or "end"
    text: str
    start: int


def parse_size(text: str, file: str = "<size>") -> Size:
    """Reads one size.

    file     named in the place of an error; line and column are within `text`
    raises   ParseError with the place

    >>> print(parse_size("1 + s*2 - floordiv(b*s, 2)"))
    2*s - floordiv(b*s, 2) + 1
    """
    parser = _Parser(text, file)
    size = parser.size()
    parser.end()
    return size


def parse_shape(text: str, file: str = "<shape>") -> tuple[Size, ...]:
    """Reads the sizes of a shape, with or without parentheses around them.

    >>> parse_shape("(b, 2*s, 16)"), parse_shape("b,"), parse_shape("")
    ((<Size b>, <Size 2*s>, <Size 16>), (<Size b>,), ())
    """
    parser = _Parser(text, file)
    sizes = parser.shape()
    parser.end()
    return sizes


def print_shape(sizes: Iterable[Size | int]) -> str:
    """The shape as a tuple of sizes.

    >>> print_shape((Size.symbol("b") * 2, 16)), print_shape((4,)), print_shape(())
    ('(2*b, 16)', '(4,)', '()')
    """
    written = [str(size) for size in sizes]
    return f"({', '.join(written)}{',' if len(written) == 1 else ''})"


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.at = 0
        self.depth = 0
        self.tokens = self.tokenize()

    def tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        end = 0
        while not tokens or tokens[-1].kind != "end":
            match = _TOKEN.match(self.text, end)
            if match is None:
                start = len(self.text) - len(self.text[end:].lstrip())
                token = _Token("mark", self.text[start], start)
                help = {"/": "floordiv(a, b)", "%": "mod(a, b)"}.get(token.text, "")
                raise self.error(f"unexpected character {token.text!r}", token, help)
            kind = match.lastgroup or "end"
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            end = match.end()
        return tokens

    def error(self, message: str, token: _Token, help: str = "") -> ParseError:
        line_start = self.text.rfind("\n", 0, token.start) + 1
        line_end = self.text.find("\n", token.start)
        column = token.start - line_start + 1
        line = self.text[line_start : line_end if line_end >= 0 else len(self.text)]
        end_column = column + max(len(token.text), 1)
        place = Place(self.file, self.text.count("\n", 0, token.start) + 1, column, end_column, line)
        return ParseError(message, stage="shapes.parse", place=place, help=help)

    def wanted(self, what: str) -> ParseError:
        token = self.peek
        got = "the end of the text" if token.kind == "end" else f"'{token.text[:40]}'"
        return self.error(f"expected {what}, got {got}", token)

    @property
    def peek(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def try_take(self, text: str) -> bool:
        found = self.peek.kind == "mark" and self.peek.text == text
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.try_take(text):
            raise self.wanted(f"'{text}'")

    def end(self) -> None:
        if self.peek.kind != "end":
            raise self.wanted("an operator or the end of the text")

    # -- grammar

    def shape(self) -> tuple[Size, ...]:
        """Parentheses around the whole text belong to the shape, others to a size."""
        closing = self.closing_of_first()
        is_enclosed = closing is not None and self.tokens[closing + 1].kind == "end"
        if is_enclosed:
            self.take()
        sizes: list[Size] = []
        while not (self.peek.kind == "end" or (is_enclosed and self.at == closing)):
            sizes.append(self.size())
            if not self.try_take(","):
                break
        if is_enclosed:
            self.expect(")")
        return tuple(sizes)

    def closing_of_first(self) -> int | None:
        """The index of the parenthesis that closes the first token, or None."""
        depth = 0
        for index, token in enumerate(self.tokens):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return index if index else None
        return None

    def size(self) -> Size:
        start = self.peek
        try:
            sign = -1 if self.try_take("-") else 1
            if sign > 0:
                self.try_take("+")
            total = self.term() * sign
            while self.peek.text in ("+", "-"):
                sign = -1 if self.take().text == "-" else 1
                total = total + self.term() * sign
            return total
        except TooLarge as error:
            raise self.error(error.message, start) from error

    def term(self) -> Size:
        product = self.factor()
        while self.try_take("*"):
            product = product * self.factor()
        return product

    def factor(self) -> Size:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} parentheses and signs within each other", self.peek)
        try:
            if self.try_take("-"):
                return -self.factor()
            base = self.base()
            if self.try_take("^"):
                token = self.peek
                power = self.number()
                if power > MAX_DEGREE:
                    raise self.error(f"a power above {MAX_DEGREE}", token)
                return base**power
            return base
        finally:
            self.depth -= 1

    def base(self) -> Size:
        token = self.peek
        if token.kind == "int":
            return Size.constant(self.number())
        if self.try_take("("):
            size = self.size()
            self.expect(")")
            return size
        if token.text == "..." or (token.kind == "name" and not token.text.strip("_")):
            raise self.error(f"'{token.text}' stands for sizes that are not in the text", token, "write the size")
        if token.kind != "name":
            raise self.wanted("a size")
        self.take()
        if self.peek.text == "(" or token.text in OPERATIONS:
            return self.call(token)
        return Size.symbol(token.text)

    def call(self, name: _Token) -> Size:
        if name.text not in OPERATIONS:
            near = difflib.get_close_matches(name.text, OPERATIONS, n=1)
            help = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(OPERATIONS)}"
            raise self.error(f"unknown operation '{name.text}'", name, help)
        self.expect("(")
        left = self.size()
        self.expect(",")
        right = self.size()
        self.expect(")")
        return operation(OPERATIONS[name.text], (left, right))

    def number(self) -> int:
        token = self.peek
        if token.kind != "int":
            raise self.wanted("a number")
        self.take()
        if len(token.text) > _MOST_DIGITS:
            raise self.error(f"a number of more than {_MOST_DIGITS} digits", token)
        return int(token.text)
