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
from collections.abc import Sequence
from typing import Literal, NamedTuple

from xla_emitters.algebra.expression import ADD, CEILDIV, FLOORDIV, MAX, MIN, MOD, MUL, Expr, make
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.support.cursor import ExpressionCursor, ExpressionKind, token_pattern

Spelling = Literal["seed", "upstream"]
DIVISION: dict[Spelling, str] = {"seed": "floordiv", "upstream": "/"}

Constraint = tuple[Expr, Interval]


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

_WORD_OPERATORS = {"floordiv": FLOORDIV, "floorDiv": FLOORDIV, "ceildiv": CEILDIV, "ceilDiv": CEILDIV, "mod": MOD}
_FACTOR_OPERATORS = {"*": MUL, "/": FLOORDIV, **_WORD_OPERATORS}
_RESERVED = frozenset((*_WORD_OPERATORS, "true", "false", "domain", "in"))
_LARGEST_INTEGER = 2**63  # in magnitude: 64-bit arithmetic


def parse_map(text: str, file: str = "<indexing map>") -> MapParts:
    """Reads one map, as `print_map` writes it or in any spelling of the grammar above.

    file     named in the place of an error; line and column are within `text`
    returns  the map as written: nothing is simplified except by building the expressions
    raises   ParseError with the place

    >>> parse_map("(d0, d1) -> (d1 mod 3), domain: d0 in [0, 1], d1 in [0, 7]").results
    (<Expr v1 mod 3>,)
    """
    return _Parser(text, file).map()


def parse_symbolic_map(text: str) -> SymbolicMap:
    """Reads a map without a domain, `(d0)[s0] -> (d0 + s0)`. Raises ParseError with the place."""
    return _Parser(text, "<symbolic map>").symbolic_map()


class _Parser(ExpressionCursor):
    """Recursive descent over the tokens of one map."""

    stage = "indexing_map.parse"
    groups = "parentheses"
    max_nesting = 100  # far deeper than in maps that compilers write
    pattern = token_pattern(r"->|[-()\[\]{},:+*/]", "A-Za-z")

    def __init__(self, text: str, file: str):
        super().__init__(text, file)
        self.numbers: dict[str, int] = {}  # variable numbers by name

    # -- grammar

    def dims(self) -> list[str]:
        self.expect("(", "before the dims")
        return self.items(")", self.declaration, "a variable")

    def symbols(self, opening: str, closing: str) -> list[str]:
        return self.items(closing, self.declaration, "a variable") if self.accept(opening) else []

    def results(self) -> list[Expr]:
        self.expect("->", "before the results")
        self.expect("(", "before the results")
        return self.items(")", self.expression, "a result")

    def map(self) -> MapParts:
        dims, range_vars, runtime_vars = self.dims(), self.symbols("[", "]"), self.symbols("{", "}")
        results = self.results()
        bounds, constraints = self.tail([*dims, *range_vars, *runtime_vars])
        self.end()
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
        dims, symbols, results = self.dims(), self.symbols("[", "]"), self.results()
        self.end()
        return SymbolicMap(tuple(results), tuple(dims), tuple(symbols))

    def declaration(self) -> str:
        token = self.token
        if token.kind is not ExpressionKind.NAME:
            raise self.unexpected("a variable's name")
        if token.text in _RESERVED:
            raise self.error(f"'{token.text}' is a keyword and cannot name a variable", token)
        if token.text in self.numbers:
            raise self.error(f"variable '{token.text}' is declared twice", token)
        self.numbers[token.text] = len(self.numbers)
        return self.advance().text

    def tail(self, names: list[str]) -> tuple[list[Interval], list[Constraint]]:
        bounds: list[Interval] = []
        constraints: list[Constraint] = []
        has_domain = False
        while self.accept(","):
            if self.token.kind is ExpressionKind.END and has_domain:
                break
            if self.token.text == "is_simplified":
                self.is_simplified()
                break
            if not has_domain:
                self.expect("domain", "after the results")
                self.expect(":", "after 'domain'")
                has_domain = True
            if len(bounds) < len(names):
                bounds.append(self.variable_range(names[len(bounds)]))
            else:
                e = self.expression()
                self.expect("in", "after the constraint's expression")
                constraints.append((e, self.interval()))
        if len(bounds) < len(names):
            missing = names[len(bounds)]
            raise self.unexpected(f"', {missing} in [..]'" if has_domain else f"', domain: {missing} in [..]'")
        return bounds, constraints

    def is_simplified(self) -> None:
        self.advance()
        self.expect(":", "after 'is_simplified'")
        if self.token.text not in ("true", "false"):
            raise self.unexpected("'true' or 'false'")
        self.advance()

    def variable_range(self, name: str) -> Interval:
        token = self.token
        if token.text != name:
            message = (
                f"the domain must list the variables in the order of the header: expected '{name}', got '{token.text}'"
            )
            raise self.error(message, token)
        self.advance()
        self.expect("in", "after the variable")
        return self.interval()

    def interval(self) -> Interval:
        self.expect("[", "before the bounds")
        lower = self.integer()
        self.expect(",", "between the bounds")
        last = self.token
        upper = self.integer()
        self.expect("]", "after the bounds")
        if max(lower, upper) >= _LARGEST_INTEGER:
            raise self.error("the interval does not fit in 64 bits", last)
        return Interval(lower, upper)

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        token = self.token
        if token.kind is not ExpressionKind.INT:
            raise self.unexpected("an integer")
        self.advance()
        # Length first: Python refuses to convert very long digit strings.
        digits = token.text.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > _LARGEST_INTEGER:
            raise self.error("the integer does not fit in 64 bits", token)
        return sign * int(digits)

    def expression(self) -> Expr:
        e = self.term()
        while True:
            if self.accept("+"):
                e = make(ADD, e, self.term())
            elif self.accept("-"):
                e = make(ADD, e, make(MUL, self.term(), Expr.constant(-1)))
            else:
                return e

    def term(self) -> Expr:
        e = self.factor()
        while (kind := _FACTOR_OPERATORS.get(self.token.text)) is not None:
            operator = self.advance()
            operand = self.factor()
            if operand.is_constant(0) and kind is not MUL:
                raise self.error("division by zero", operator)
            e = make(kind, e, operand)
        return e

    def factor(self) -> Expr:
        token = self.token
        is_negative_literal = token.text == "-" and self.peek().kind is ExpressionKind.INT
        if token.kind is ExpressionKind.INT or is_negative_literal:
            return Expr.constant(self.integer())
        with self.nested():
            return self.composed()

    def composed(self) -> Expr:
        if self.accept("-"):
            return make(MUL, self.factor(), Expr.constant(-1))
        if self.accept("("):
            e = self.expression()
            self.expect(")", "after the expression")
            return e
        token = self.token
        if token.kind is not ExpressionKind.NAME or token.text in _RESERVED:
            raise self.unexpected("an expression")
        self.advance()
        if token.text in ("min", "max") and self.accept("("):
            lhs = self.expression()
            self.expect(",", "between the operands")
            rhs = self.expression()
            self.expect(")", "after the operands")
            return make(MIN if token.text == "min" else MAX, lhs, rhs)
        if token.text not in self.numbers:
            near = difflib.get_close_matches(token.text, self.numbers, n=1)
            suggestion = f"did you mean '{near[0]}'?" if near else ""
            raise self.error(f"unknown variable '{token.text}'", token, help=suggestion)
        return Expr.variable(self.numbers[token.text])
