"""Print and parse indexing maps.

    (th_x, bl_x)[v] -> (bl_x floordiv 4096, (bl_x mod 8) * 512 + th_x * 4 + v),
        domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3], th_x * 4 + v in [0, 499]

    map  := '(' dims? ')' ('[' range vars? ']')? ('{' runtime vars? '}')? '->' '(' exprs? ')' tail?
    tail := ',' 'domain' ':' item (',' item)* ','?       each variable once in the header's order, then the constraints
    item := name 'in' '[' int ',' int ']'  |  expr 'in' '[' int ',' int ']'
    expr := term (('+'|'-') term)*
    term := factor (('*'|'/'|'floordiv'|'floorDiv'|'ceildiv'|'ceilDiv'|'mod') factor)*       all of one level, left to right
    factor := '-' factor | ('min'|'max') '(' expr ',' expr ')' | '(' expr ')' | name | int

The parser reads both spellings of floor division; the printer writes the one that `spelling` selects. `, is_simplified:
true` at the end, which older compilers print, is read and ignored. Printed text reads back as the same map: parentheses
keep the structure of products and sums, variables with equal names get different ones, and an empty domain is written as
an empty range (XLA prints KNOWN EMPTY, which has no parser).
Source: docs/reference/1 1.8 "indexing_map attribute text"; seed document, "Loop emitter".
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

from xla_emitters.errors import ParseError, Place
from xla_emitters.indexing.expression import ADD, CEILDIV, FLOORDIV, MAX, MIN, MOD, MUL, Expr, make
from xla_emitters.indexing.interval import Interval, Variable

Spelling = Literal["seed", "upstream"]
DIVISION: dict[Spelling, str] = {"seed": "floordiv", "upstream": "/"}

Constraint = tuple[Expr, Interval]
T = TypeVar("T")


class MapParts(NamedTuple):
    """The parts of a map; in expressions variable v is dims[v] for v < len(dims), then range, then runtime variables."""

    results: tuple[Expr, ...]
    dims: tuple[Variable, ...]
    range_vars: tuple[Variable, ...]
    runtime_vars: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]


class SymbolicMap(NamedTuple):
    """A map of dims and symbols without bounds; variable v is dims[v] for v < len(dims), then symbols. Names are only for printing."""

    results: tuple[Expr, ...]
    dims: tuple[str, ...]
    symbols: tuple[str, ...]


# ---- Printing -------------------------------------------------------------------------------------------------------


def print_map(parts: MapParts, spelling: Spelling = "seed") -> str:
    """The map on one line.

    >>> print_map(parse_map("(d0)[v] -> (d0 / 8 + v), domain: d0 in [0, 63], v in [0, 3],"))
    '(d0)[v] -> (d0 floordiv 8 + v), domain: d0 in [0, 63], v in [0, 3]'
    """
    variables = parts.dims + parts.range_vars + parts.runtime_vars
    names = display_names(parts)
    first_symbol, first_runtime = len(parts.dims), len(parts.dims) + len(parts.range_vars)
    division = DIVISION[spelling]

    def text(e: Expr) -> str:
        return e.to_text(names.__getitem__, division)

    line = f"({', '.join(names[:first_symbol])})"
    if parts.range_vars:
        line += f"[{', '.join(names[first_symbol:first_runtime])}]"
    if parts.runtime_vars:
        line += f"{{{', '.join(names[first_runtime:])}}}"
    line += f" -> ({', '.join(text(result) for result in parts.results)})"
    items = [f"{name} in {variable.bounds}" for name, variable in zip(names, variables, strict=True)]
    items += sorted(f"{text(e)} in {bounds}" for e, bounds in parts.constraints)
    return f"{line}, domain: {', '.join(items)}" if items else line


def print_symbolic_map(symbolic: SymbolicMap, spelling: Spelling = "seed") -> str:
    """The map on one line.

    >>> print_symbolic_map(parse_symbolic_map("(d0)[s0] -> (d0 / 8 + s0)"))
    '(d0)[s0] -> (d0 floordiv 8 + s0)'
    """
    names = symbolic.dims + symbolic.symbols
    symbols = f"[{', '.join(symbolic.symbols)}]" if symbolic.symbols else ""
    results = ", ".join(result.to_text(names.__getitem__, DIVISION[spelling]) for result in symbolic.results)
    return f"({', '.join(symbolic.dims)}){symbols} -> ({results})"


def display_names(parts: MapParts) -> list[str]:
    """One distinct name per variable: the given name or the default, with `_1`, `_2` ... after a repeated one.

    >>> v = Variable(Interval(0, 3), "v")
    >>> display_names(MapParts((), (v, Variable(Interval(0, 9))), (v,), (), ()))
    ['v', 'd1', 'v_1']
    """
    names: list[str] = []
    taken: set[str] = set()
    for variables, prefix in ((parts.dims, "d"), (parts.range_vars, "s"), (parts.runtime_vars, "rt")):
        for number, variable in enumerate(variables):
            wanted = name = variable.name or f"{prefix}{number}"
            repeats = 0
            while name in taken:
                repeats += 1
                name = f"{wanted}_{repeats}"
            taken.add(name)
            names.append(name)
    return names


# ---- Parsing --------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z][A-Za-z0-9_]*)|(?P<int>[0-9]+)|(?P<mark>->|[-()\[\]{},:+*/])|(?P<end>$))")
_WORD_OPERATORS = {"floordiv": FLOORDIV, "floorDiv": FLOORDIV, "ceildiv": CEILDIV, "ceilDiv": CEILDIV, "mod": MOD}
_FACTOR_OPERATORS = {"*": MUL, "/": FLOORDIV, **_WORD_OPERATORS}
_RESERVED = frozenset((*_WORD_OPERATORS, "true", "false", "domain", "in"))
_DEEPEST = 100  # maximum depth of nested parentheses: far deeper than in maps that compilers write
_LARGEST_INTEGER = 2**63  # in magnitude: 64-bit arithmetic


class _Token(NamedTuple):
    kind: str  # "name", "int", "mark" or "end"
    text: str
    start: int


def parse_map(text: str, file: str = "<indexing map>") -> MapParts:
    """Reads one map, as `print_map` writes it or in any spelling of the grammar above.

    file     named in the place of an error; line and column are within `text`
    returns  the map as written: nothing is simplified except by building the expressions
    raises   ParseError with the place

    >>> parse_map("(d0, d1) -> (d1 mod 3), domain: d0 in [0, 1], d1 in [0, 7]").results
    (<Expr v1 mod 3>,)
    """
    return _Parser(text, file).map()


def parse_symbolic_map(text: str, file: str = "<symbolic map>") -> SymbolicMap:
    """Reads a map without a domain, `(d0)[s0] -> (d0 + s0)`. Raises ParseError with the place."""
    return _Parser(text, file).symbolic_map()


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.at = 0
        self.depth = 0
        self.numbers: dict[str, int] = {}  # variable numbers by name
        self.tokens = self._tokenize()

    # -- tokens and errors

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        end = 0
        while not tokens or tokens[-1].kind != "end":
            match = _TOKEN.match(self.text, end)
            if match is None:
                start = end + len(self.text[end:]) - len(self.text[end:].lstrip())
                raise self._error(f"unexpected character {self.text[start]!r}", _Token("mark", self.text[start], start))
            kind = match.lastgroup or "end"
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            end = match.end()
        return tokens

    def _error(self, message: str, token: _Token, help: str = "") -> ParseError:
        line_start = self.text.rfind("\n", 0, token.start) + 1
        line_end = self.text.find("\n", token.start)
        column = token.start - line_start + 1
        place = Place(
            self.file,
            self.text.count("\n", 0, token.start) + 1,
            column,
            column + max(len(token.text), 1),
            self.text[line_start : line_end if line_end >= 0 else len(self.text)],
        )
        return ParseError(message, stage="indexing_map.parse", place=place, help=help)

    def _wanted(self, what: str) -> ParseError:
        token = self.peek
        got = "the end of the text" if token.kind == "end" else f"'{token.text}'"
        return self._error(f"expected {what}, got {got}", token)

    @property
    def peek(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def try_take(self, text: str) -> bool:
        if self.peek.text != text or self.peek.kind == "end":
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> _Token:
        if self.peek.text != text or self.peek.kind == "end":
            raise self._wanted(f"'{text}'")
        return self.take()

    def list_until(self, closing: str, item: Callable[[], T]) -> list[T]:
        items: list[T] = []
        if self.try_take(closing):
            return items
        while True:
            items.append(item())
            if self.try_take(closing):
                return items
            if not self.try_take(","):
                raise self._wanted(f"',' or '{closing}'")

    # -- grammar

    def map(self) -> MapParts:
        self.expect("(")
        dims = self.list_until(")", self.declaration)
        range_vars = self.list_until("]", self.declaration) if self.try_take("[") else []
        runtime_vars = self.list_until("}", self.declaration) if self.try_take("{") else []
        self.expect("->")
        self.expect("(")
        results = self.list_until(")", self.expression)
        bounds, constraints = self.tail([*dims, *range_vars, *runtime_vars])
        if self.peek.kind != "end":
            raise self._wanted("the end of the text")
        ranges = iter(bounds)

        def variables(names: Sequence[str], prefix: str) -> tuple[Variable, ...]:
            given = ("" if name == f"{prefix}{number}" else name for number, name in enumerate(names))
            return tuple(Variable(next(ranges), name) for name in given)

        return MapParts(
            tuple(results),
            variables(dims, "d"),
            variables(range_vars, "s"),
            variables(runtime_vars, "rt"),
            tuple(constraints),
        )

    def symbolic_map(self) -> SymbolicMap:
        self.expect("(")
        dims = self.list_until(")", self.declaration)
        symbols = self.list_until("]", self.declaration) if self.try_take("[") else []
        self.expect("->")
        self.expect("(")
        results = self.list_until(")", self.expression)
        if self.peek.kind != "end":
            raise self._wanted("the end of the text")
        return SymbolicMap(tuple(results), tuple(dims), tuple(symbols))

    def declaration(self) -> str:
        token = self.peek
        if token.kind != "name":
            raise self._wanted("a variable's name")
        if token.text in _RESERVED:
            raise self._error(f"'{token.text}' is a keyword and cannot name a variable", token)
        if token.text in self.numbers:
            raise self._error(f"variable '{token.text}' is declared twice", token)
        self.numbers[token.text] = len(self.numbers)
        return self.take().text

    def tail(self, names: list[str]) -> tuple[list[Interval], list[Constraint]]:
        bounds: list[Interval] = []
        constraints: list[Constraint] = []
        has_domain = False
        while self.try_take(","):
            if self.peek.kind == "end" and has_domain:
                break
            if self.peek.text == "is_simplified":
                self.is_simplified()
                break
            if not has_domain:
                self.expect("domain")
                self.expect(":")
                has_domain = True
            if len(bounds) < len(names):
                bounds.append(self.variable_range(names[len(bounds)]))
            else:
                e = self.expression()
                self.expect("in")
                constraints.append((e, self.interval()))
        if len(bounds) < len(names):
            missing = names[len(bounds)]
            raise self._wanted(f"', {missing} in [..]'" if has_domain else f"', domain: {missing} in [..]'")
        return bounds, constraints

    def is_simplified(self) -> None:
        self.take()
        self.expect(":")
        if self.peek.text not in ("true", "false"):
            raise self._wanted("'true' or 'false'")
        self.take()

    def variable_range(self, name: str) -> Interval:
        token = self.peek
        if token.text != name:
            message = (
                f"the domain must list the variables in the order of the header: expected '{name}', got '{token.text}'"
            )
            raise self._error(message, token)
        self.take()
        self.expect("in")
        return self.interval()

    def interval(self) -> Interval:
        self.expect("[")
        lower = self.integer()
        self.expect(",")
        last = self.peek
        upper = self.integer()
        self.expect("]")
        if max(lower, upper) >= _LARGEST_INTEGER:
            raise self._error("the interval does not fit in 64 bits", last)
        return Interval(lower, upper)

    def integer(self) -> int:
        sign = -1 if self.try_take("-") else 1
        token = self.peek
        if token.kind != "int":
            raise self._wanted("an integer")
        self.take()
        # Length first: Python refuses to convert very long digit strings.
        digits = token.text.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > _LARGEST_INTEGER:
            raise self._error("the integer does not fit in 64 bits", token)
        return sign * int(digits)

    def expression(self) -> Expr:
        e = self.term()
        while True:
            if self.try_take("+"):
                e = make(ADD, e, self.term())
            elif self.try_take("-"):
                e = make(ADD, e, make(MUL, self.term(), Expr.constant(-1)))
            else:
                return e

    def term(self) -> Expr:
        e = self.factor()
        while (kind := _FACTOR_OPERATORS.get(self.peek.text)) is not None:
            operator = self.take()
            operand = self.factor()
            if operand.is_constant(0) and kind is not MUL:
                raise self._error("division by zero", operator)
            e = make(kind, e, operand)
        return e

    def factor(self) -> Expr:
        token = self.peek
        is_negative_literal = token.text == "-" and self.tokens[self.at + 1].kind == "int"
        if token.kind == "int" or is_negative_literal:
            return Expr.constant(self.integer())
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._error(f"parentheses are nested more than {_DEEPEST} deep", token)
        try:
            return self.composed()
        finally:
            self.depth -= 1

    def composed(self) -> Expr:
        if self.try_take("-"):
            return make(MUL, self.factor(), Expr.constant(-1))
        if self.try_take("("):
            e = self.expression()
            self.expect(")")
            return e
        token = self.peek
        if token.kind != "name" or token.text in _RESERVED:
            raise self._wanted("an expression")
        self.take()
        if token.text in ("min", "max") and self.try_take("("):
            lhs = self.expression()
            self.expect(",")
            rhs = self.expression()
            self.expect(")")
            return make(MIN if token.text == "min" else MAX, lhs, rhs)
        if token.text not in self.numbers:
            near = difflib.get_close_matches(token.text, self.numbers, n=1)
            suggestion = f"did you mean '{near[0]}'?" if near else ""
            raise self._error(f"unknown variable '{token.text}'", token, suggestion)
        return Expr.variable(self.numbers[token.text])
