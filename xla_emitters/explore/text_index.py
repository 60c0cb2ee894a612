"""Where names are defined and used in a text, for editors: HLO text, StableHLO, and other MLIR. A text with faults has an index too.

    index = TextIndex(text)
    index.name_at(4, 31)                    Use("%square", line 4, columns 29 to 36)
    index.definition(index.name_at(4, 31))  Definition("square", "multiply", line 3 ...)

An instruction of HLO is known in its computation, a computation everywhere; a value of MLIR in the function around it, a function
everywhere. Of several definitions of one name, as in the blocks of a region, the last one above the use counts. Lines and columns are
from 0, as editors count.
Source: the grammars of `text/hlo` and of MLIR's language reference.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from xla_emitters.text.stablehlo import is_stablehlo

_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_COMPUTATION = re.compile(r"\s*(?P<entry>ENTRY\s+)?(?P<name>%?[A-Za-z_][\w.\-]*)\s*(?:\(.*\)\s*->.*)?\{\s*$")
_INSTRUCTION = re.compile(r"\s*(?:ROOT\s+)?(?P<name>%?[\w.\-]+)\s*=\s*(?P<type>.*?)\s(?P<opcode>[a-z][\w\-]*)\(")
_FUNCTION = re.compile(r"(?:\bfunc\.func|\bllvm\.func|\bgpu\.func|\"func\.func\")[^@\n]*?(?P<name>@[\w.$\-]+)")
_RESULTS = re.compile(r"\s*(?P<names>%[\w.$\-]+(?::\d+)?(?:\s*,\s*%[\w.$\-]+(?::\d+)?)*)\s*=\s*\"?(?P<opcode>[\w.\-]+)")
# `%x: type`, as arguments are printed; behind operands there is a space before the colon.
_ARGUMENT = re.compile(r"(?P<name>%[\w.$\-]+):\s*(?P<type>[!\w.]+(?:<[^>]*>)?)")
_WORD = re.compile(r"[%@]?[\w.$\-]+(?:#\d+)?")


@dataclass(frozen=True)
class Definition:
    """A definition.

    name    without its sign
    kind    "computation", "instruction", "function" or "value"
    detail  opcode of an instruction or an op, type of an argument
    line, start, end  of the name
    scope   number of the computation or function around it; -1: none
    last    last line of a computation or function; else `line`
    """

    name: str
    kind: str
    detail: str
    line: int
    start: int
    end: int
    scope: int = -1
    last: int = 0


@dataclass(frozen=True)
class Use:
    """A word of the text, with its sign."""

    text: str
    line: int
    start: int
    end: int

    @property
    def name(self) -> str:
        return self.text.lstrip("%@").partition("#")[0]


@dataclass
class TextIndex:
    """The index of a text; `symbols` in the order of their lines."""

    text: str
    symbols: list[Definition] = field(init=False)

    def __post_init__(self) -> None:
        self.is_mlir = is_stablehlo(self.text)
        self.lines = [_COMMENT.sub(lambda found: " " * len(found[0]), line) for line in self.text.split("\n")]
        find, kind = (_FUNCTION.search, "function") if self.is_mlir else (_COMPUTATION.match, "computation")
        self.scopes = list(self._scopes(map(find, self.lines), kind))
        self._firsts = [scope.line for scope in self.scopes]
        inside = self._values() if self.is_mlir else self._instructions()
        self.symbols = sorted([*self.scopes, *inside], key=lambda each: (each.line, each.start))

    def scope_at(self, line: int) -> int:
        """The number of the computation or function that a line is in; -1: none."""
        number = bisect_right(self._firsts, line) - 1
        return number if number >= 0 and line <= self.scopes[number].last else -1

    def name_at(self, line: int, column: int) -> Use | None:
        """The word at a place."""
        if not 0 <= line < len(self.lines):
            return None
        found = _WORD.finditer(self.lines[line])
        return next((Use(word[0], line, *word.span()) for word in found if word.start() <= column <= word.end()), None)

    def definition(self, use: Use) -> Definition | None:
        """What a word names; None for a keyword, or a name without a definition."""
        scope, name = self.scope_at(use.line), use.name
        named = [each for each in self.symbols if each.name == name]
        outside = [each for each in named if each.scope < 0]
        if use.text.startswith("@"):
            return outside[0] if outside else None
        own = [each for each in named if each.scope == scope >= 0]
        above = [each for each in own if each.line <= use.line]
        return next(iter([*above[-1:], *own, *outside]), None)

    def uses(self, symbol: Definition) -> list[Use]:
        """Every word that names a symbol, its definition too, in order."""
        found = list[Use]()
        for number, line in enumerate(self.lines):
            if symbol.name in line:
                for word in _WORD.finditer(line):
                    use = Use(word[0], number, *word.span())
                    if use.name == symbol.name and self.definition(use) == symbol:
                        found.append(use)
        return found

    def of_line(self, line: int) -> Definition | None:
        """The instruction or value that a line defines."""
        return next((each for each in self.symbols if each.line == line and each.scope >= 0), None)

    def _scopes(self, heads: Iterable[re.Match[str] | None], kind: str) -> Iterator[Definition]:
        starts = [(number, found) for number, found in enumerate(heads) if found]
        ends = [*(number for number, _ in starts), len(self.lines)]
        for (number, found), end in zip(starts, ends[1:], strict=True):
            last = next((n for n in range(end - 1, number, -1) if "}" in self.lines[n]), number)
            detail = "ENTRY" if found.groupdict().get("entry") else ""
            yield Definition(found["name"].lstrip("%@"), kind, detail, number, *found.span("name"), last=last)

    def _instructions(self) -> Iterator[Definition]:
        for number, line in enumerate(self.lines):
            if found := _INSTRUCTION.match(line):
                scope = self.scope_at(number)
                yield Definition(
                    found["name"].lstrip("%"),
                    "instruction",
                    found["opcode"],
                    number,
                    *found.span("name"),
                    scope,
                    number,
                )

    def _values(self) -> Iterator[Definition]:
        for number, line in enumerate(self.lines):
            scope, behind = self.scope_at(number), 0
            if found := _RESULTS.match(line):
                behind = found.end("names")
                for name in re.finditer(r"%[\w.$\-]+", found["names"]):
                    start = found.start("names") + name.start()
                    end = found.start("names") + name.end()
                    yield Definition(name[0][1:], "value", found["opcode"], number, start, end, scope, number)
            for given in _ARGUMENT.finditer(line, behind):
                yield Definition(given["name"][1:], "value", given["type"], number, *given.span("name"), scope, number)
