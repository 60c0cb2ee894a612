"""One-place changes of Python source that change its meaning, found through `ast`; the rest of the text is unchanged.

    comparison         a < b -> a <= b, a == b -> a != b, is -> is not, in -> not in
    constant           4 -> 5 and 4 -> 3, True -> False
    sign               a + b -> a - b, -a -> a
    operand order      a - b -> b - a, also of // / % ** << >>
    dropped guard      an `if` that only leaves (return, continue, break, raise); one part of `and` or `or`; a `not`
    dropped statement  a call for its effect, a += b, an assignment to x.y, x[y] or a name that has a value already

Not changed, because it does not determine what the program computes, or has tests of another kind:
* what is raised, and every f-string: messages (and Python 3.11 does not know where the parts of an f-string are);
* annotations, decorators, `if TYPE_CHECKING`, `__repr__`, docstrings;
* assertions about types (isinstance, isa, `is None`), which say to pyright what is known, and `strict=` of zip.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

Identity = tuple[str, str, str, str]
"""File name, function, the lines before, the lines after: folders and line numbers change when code is moved."""
KINDS = ("comparison", "constant", "sign", "operand order", "dropped guard", "dropped statement")

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ORDERED: dict[type[ast.operator], str] = {
    ast.Sub: "-",
    ast.FloorDiv: "//",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)
SEQUENCES = (ast.List, ast.Tuple, ast.JoinedStr, ast.ListComp)
ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set)


@dataclass(frozen=True)
class Mutant:
    """A change of the bytes `start` to `end` of a file into `text`.

    file           relative to the root of the tree
    function       where it is: "Class.method", or "<module>"
    before, after  the lines that it touches, whitespace made one space: with file name and function, its identity
    """

    file: str
    line: int
    function: str
    kind: str
    start: int
    end: int
    text: str
    before: str
    after: str

    @property
    def identity(self) -> Identity:
        return self.file.rpartition("/")[2], self.function, self.before, self.after

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """Every mutant of a file's text, in reading order. Some may not be valid Python: see `is_python`."""
    finder = _Finder(file, source)
    return sorted(finder.of(finder.tree), key=lambda m: (m.start, m.end, m.text))


def is_python(mutant: Mutant, source: bytes) -> bool:
    """Whether the changed text can be compiled: an `elif` cannot be dropped like an `if`."""
    try:
        ast.parse(mutant.applied(source))
    except SyntaxError:
        return False
    return True


class _Finder:
    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        self.tree = ast.parse(source)
        self.scope: list[str] = []
        self.bound: set[str] = set()

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(b"\n", self.source))]

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.line_starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr) -> str:
        """The source of `node`, in parentheses where it might need them elsewhere."""
        text = self.source[self.start(node) : self.end(node)].decode()
        return text if isinstance(node, ATOMS) else f"({text})"

    def mutant(self, kind: str, start: int, end: int, text: str) -> Mutant:
        first = self.source.rfind(b"\n", 0, start) + 1
        last = self.source.find(b"\n", end)
        last = len(self.source) if last < 0 else last
        before = self.source[first:last].decode()
        after = self.source[first:start].decode() + text + self.source[end:last].decode()
        return Mutant(
            self.file,
            self.source.count(b"\n", 0, start) + 1,
            ".".join(self.scope) or "<module>",
            kind,
            start,
            end,
            text,
            " ".join(before.split()),
            " ".join(after.split()),
        )

    def instead(self, kind: str, node: ast.expr | ast.stmt, text: str) -> Mutant:
        return self.mutant(kind, self.start(node), self.end(node), text)

    def of(self, node: ast.AST) -> Iterator[Mutant]:
        """The mutants of `node` and of everything inside it."""
        if is_excluded(node):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from self.of_scope(node)
            return
        if isinstance(node, ast.stmt):
            yield from self.of_statement(node)
            self.bound |= {target.id for target in assigned_names(node)}
        if isinstance(node, ast.expr):
            yield from self.of_expression(node)
        for child in children(node):
            yield from self.of(child)

    def of_scope(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[Mutant]:
        outside, self.bound = self.bound, set()
        self.scope.append(node.name)
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            self.bound = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        for child in children(node):
            yield from self.of(child)
        self.scope.pop()
        self.bound = outside

    def of_statement(self, node: ast.stmt) -> Iterator[Mutant]:
        match node:
            case ast.If(test=test, body=[*_, last], orelse=[]) if isinstance(last, LEAVES):
                # Names that the condition assigns are needed below.
                names = any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(test))
                yield self.instead("dropped guard", node, self.text(test) if names else "pass")
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
                yield self.instead("dropped statement", node, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self.instead("dropped statement", node, "pass")
            case ast.Assign(targets=[ast.Name(id=name)]) if name in self.bound and self.scope:
                yield self.instead("dropped statement", node, "pass")
            case _:
                pass

    def of_expression(self, node: ast.expr) -> Iterator[Mutant]:
        match node:
            case ast.Compare():
                yield from self.of_comparison(node)
            case ast.Constant(value=bool(value)):
                yield self.instead("constant", node, str(not value))
            case ast.Constant(value=int(value)):
                text = self.source[self.start(node) : self.end(node)].decode()
                yield self.instead("constant", node, changed(text, value + 1))
                if value > 0:
                    yield self.instead("constant", node, changed(text, value - 1))
            case ast.Constant(value=float(value)):
                yield self.instead("constant", node, repr(value + 1))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield self.instead("sign", node, self.text(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self.instead("dropped guard", node, self.text(operand))
            case ast.BoolOp(op=op, values=values):
                word = " and " if isinstance(op, ast.And) else " or "
                for left_out in values:
                    kept = [self.text(value) for value in values if value is not left_out]
                    yield self.instead("dropped guard", node, word.join(kept))
            case ast.BinOp(left=left, op=op, right=right):
                if any(isinstance(side, SEQUENCES) or is_text(side) for side in (left, right)):
                    return
                if isinstance(op, ast.Add | ast.Sub):
                    sign = "-" if isinstance(op, ast.Add) else "+"
                    yield self.instead("sign", node, f"{self.text(left)} {sign} {self.text(right)}")
                if type(op) in ORDERED:
                    yield self.instead(
                        "operand order", node, f"{self.text(right)} {ORDERED[type(op)]} {self.text(left)}"
                    )
            case _:
                pass

    def of_comparison(self, node: ast.Compare) -> Iterator[Mutant]:
        for left, op, right in zip((node.left, *node.comparators), node.ops, node.comparators, strict=False):
            before, after = COMPARISONS[type(op)]
            start, end = self.end(left), self.start(right)
            found = re.search(re.escape(before).replace(r"\ ", r"\s+"), self.source[start:end].decode())
            assert found is not None, f"{self.file}:{node.lineno}: no {before}"
            yield self.mutant("comparison", start + found.start(), start + found.end(), after)


def is_excluded(node: ast.AST) -> bool:
    """Whether nothing inside `node` is changed; see the head of the file."""
    match node:
        case ast.Raise() | ast.JoinedStr():
            return True
        case ast.FunctionDef(name="__repr__"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.keyword(arg="strict"):
            return True
        case ast.Assert(test=test):
            return is_about_types(test)
        case _:
            return False


def is_about_types(test: ast.expr) -> bool:
    match test:
        case ast.Call(func=ast.Name(id="isinstance" | "isa" | "issubclass")):
            return True
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.BoolOp(values=values):
            return all(is_about_types(value) for value in values)
        case _:
            return False


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The children of `node`, without annotations, decorators and type parameters."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        yield from (child for child in values if isinstance(child, ast.AST))


def assigned_names(node: ast.stmt) -> Iterator[ast.Name]:
    """The names that a statement assigns, without those of the statements inside it."""
    targets = list[ast.expr]()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For):
        targets = [node.target]
    for target in targets:
        yield from (inner for inner in ast.walk(target) if isinstance(inner, ast.Name))


def changed(text: str, value: int) -> str:
    """`value` in the base in which `text` is written."""
    return hex(value) if text.lower().startswith("0x") else str(value)


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
