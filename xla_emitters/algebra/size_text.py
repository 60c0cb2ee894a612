"""Sizes as text, in jax.export's notation of symbolic dimensions.

    2*b + floordiv(s + 1, 2) - max(b, 1)

    size    := ('+'|'-')? term (('+'|'-') term)*      term := factor ('*' factor)*
    factor  := '-' factor | base ('^' number)?
    base    := number | name | ('floordiv'|'mod'|'max'|'min') '(' size ',' size ')' | '(' size ')'

JAX itself has no parentheses around a size, and a sign only before a number. Printing is `str` of a size; the text
reads back as the same size. JAX's placeholders `...` and `_` refer to a shape given outside the text, and are refused.
Source: docs/reference/4 2.1, 3.1; JAX's page "Shape polymorphism".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

from xla_emitters.algebra.size import MAX_DEGREE, OPERATIONS, Size, TooLarge, operation
from xla_emitters.support.cursor import ExpressionCursor, ExpressionKind, ExpressionToken, token_pattern

_MOST_DIGITS = 2_400  # about the limit of a coefficient


def parse_size(text: str, file: str = "<size>") -> Size:
    """Reads one size.

    file     named in the place of an error; line and column are within `text`
    raises   ParseError with the place

    >>> print(parse_size("1 + s*2 - floordiv(b*s, 2)"))
    2*s - floordiv(b*s, 2) + 1
    """
    parser = _Parser(text, file)
    size = parser.size()
    parser.end("an operator or the end of the text")
    return size


def print_shape(sizes: Iterable[Size | int]) -> str:
    """The shape as a tuple of sizes.

    >>> print_shape((Size.symbol("b") * 2, 16)), print_shape((4,)), print_shape(())
    ('(2*b, 16)', '(4,)', '()')
    """
    written = [str(size) for size in sizes]
    return f"({', '.join(written)}{',' if len(written) == 1 else ''})"


class _Parser(ExpressionCursor):
    """Recursive descent over the tokens of one size."""

    stage = "shapes.parse"
    groups = "parentheses and signs"
    max_nesting = 60
    pattern = token_pattern(r"\.\.\.|[-+*^(),]", "A-Za-z_")
    faults: ClassVar = {
        "/": ("unexpected character '/'", "floordiv(a, b)"),
        "%": ("unexpected character '%'", "mod(a, b)"),
    }

    def size(self) -> Size:
        start = self.token
        try:
            sign = -1 if self.accept("-") else 1
            if sign > 0:
                self.accept("+")
            total = self.term() * sign
            while self.token.text in ("+", "-"):
                sign = -1 if self.advance().text == "-" else 1
                total = total + self.term() * sign
            return total
        except TooLarge as error:
            raise self.error(error.message, start) from error

    def term(self) -> Size:
        product = self.factor()
        while self.accept("*"):
            product = product * self.factor()
        return product

    def factor(self) -> Size:
        with self.nested():
            if self.accept("-"):
                return -self.factor()
            base = self.base()
            if self.accept("^"):
                token = self.token
                power = self.number()
                if power > MAX_DEGREE:
                    raise self.error(f"a power above {MAX_DEGREE}", token)
                return base**power
            return base

    def base(self) -> Size:
        token = self.token
        if token.kind is ExpressionKind.INT:
            return Size.constant(self.number())
        if self.accept("("):
            size = self.size()
            self.expect(")", "after the size")
            return size
        if token.text == "..." or (token.kind is ExpressionKind.NAME and not token.text.strip("_")):
            raise self.error(f"'{token.text}' stands for sizes that are not in the text", token, help="write the size")
        if token.kind is not ExpressionKind.NAME:
            raise self.unexpected("a size")
        self.advance()
        if self.token.text == "(" or token.text in OPERATIONS:
            return self.call(token)
        return Size.symbol(token.text)

    def call(self, name: ExpressionToken) -> Size:
        if name.text not in OPERATIONS:
            near = difflib.get_close_matches(name.text, OPERATIONS, n=1)
            help = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(OPERATIONS)}"
            raise self.error(f"unknown operation '{name.text}'", name, help=help)
        self.expect("(", f"after '{name.text}'")
        left = self.size()
        self.expect(",", "between the operands")
        right = self.size()
        self.expect(")", "after the operands")
        return operation(OPERATIONS[name.text], (left, right))

    def number(self) -> int:
        token = self.token
        if token.kind is not ExpressionKind.INT:
            raise self.unexpected("a number")
        self.advance()
        if len(token.text) > _MOST_DIGITS:
            raise self.error(f"a number of more than {_MOST_DIGITS} digits", token)
        return int(token.text)
