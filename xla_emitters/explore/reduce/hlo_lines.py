"""A module or a program as lines that can be cut, joined and printed: what `reduce` works on.

    %fused {                                         HloLines("fused", root "v3", parameters and instructions by name)
      %v0 = f32[8]{0} parameter(0)                     HloLine("v0", "f32[8]{0}", "parameter", (), "0)")
      ROOT %v3 = f32[8]{0} add(%v0, %v0)               HloLine("v3", "f32[8]{0}", "add", ("v0", "v0"), ")")
    }

A line knows its operands, and the rest of its text as it is printed. Nothing here depends on the meaning of an opcode, so that every
opcode, tuple and nested call is handled alike; the parser decides whether a changed module is still HLO.

A program in StableHLO has the same lines, with `?` for an unknown size; its text is StableHLO again, without the names and attributes of
its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, fresh_name
from xla_emitters.dialects.hlo.types import type_text
from xla_emitters.errors import InternalError
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.text.stablehlo import is_stablehlo, parse_stablehlo, print_stablehlo

_WORD = re.compile(r"%([\w.\-]+)")
_SHAPE = re.compile(r"([a-z]\w*)\[([\d,?]*)\](\{[^}]*\})?")
UNKNOWN = -1
"""The size `?`."""


@dataclass(frozen=True)
class HloLine:
    """One instruction; `tail` is its text after the operands, with the parenthesis that closes them."""

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    tail: str

    def __str__(self) -> str:
        operands = ", ".join(f"%{operand}" for operand in self.operands)
        return f"%{self.name} = {self.type} {self.opcode}({operands}{self.tail}"

    @property
    def is_parameter(self) -> bool:
        return self.opcode == "parameter"

    @property
    def is_check(self) -> bool:
        """Whether the instruction exists for its effect: it checks sizes before a run."""
        return self.opcode == "shape-assertion"

    @cached_property
    def attributes(self) -> tuple[str, tuple[str, ...]]:
        """The tail in two parts: up to the parenthesis that closes the operands (with a constant's literal), and the attributes."""
        parts = split_at_commas(self.tail)
        return parts[0], tuple(part.strip() for part in parts[1:])

    @cached_property
    def callees(self) -> tuple[str, ...]:
        """Every name in the attributes, among them those of the computations that it calls."""
        return tuple(_WORD.findall(self.tail)) if "=" in self.tail else ()

    def with_operands(self, names: Mapping[str, str]) -> HloLine:
        """The line with other names for its operands."""
        return replace(self, operands=tuple(names.get(name, name) for name in self.operands))


def split_at_commas(text: str) -> list[str]:
    """The parts of a text between commas, except commas inside brackets and strings."""
    parts, depth, start, quoted, opened = list[str](), 0, 0, False, False
    for number, letter in enumerate(text):
        if letter == '"' and text[number - 1 : number] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            # This parenthesis closes the operands; it was opened before the text.
            opened |= depth == 0
            depth -= depth > 0
        elif letter == "," and depth == 0 and opened:
            parts.append(text[start:number])
            start = number + 1
    return [*parts, text[start:]]


@dataclass(frozen=True)
class HloLines:
    """One computation. `lines` are in order, including parameters."""

    name: str
    lines: tuple[HloLine, ...]
    root: str
    is_entry: bool = False

    def __str__(self) -> str:
        body = (f"  {'ROOT ' if line.name == self.root else ''}{line}" for line in self.lines)
        return "\n".join([f"{'ENTRY ' if self.is_entry else ''}%{self.name} {{", *body, "}"])

    @cached_property
    def by_name(self) -> dict[str, HloLine]:
        return {line.name: line for line in self.lines}

    @cached_property
    def parameters(self) -> tuple[HloLine, ...]:
        """The parameters by number."""
        found = (line for line in self.lines if line.is_parameter)
        return tuple(sorted(found, key=lambda line: int(line.tail.split(")")[0])))

    @cached_property
    def instructions(self) -> tuple[HloLine, ...]:
        """The instructions other than parameters."""
        return tuple(line for line in self.lines if not line.is_parameter)

    def reached(self) -> set[str]:
        """The names that the root and the checks need, directly or indirectly."""
        found, waiting = set[str](), [self.root, *(line.name for line in self.lines if line.is_check)]
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                waiting += self.by_name[name].operands
        return found

    def with_line(self, changed: HloLine) -> HloLines:
        """The computation with the line of the same name replaced by this one."""
        return replace(self, lines=tuple(changed if line.name == changed.name else line for line in self.lines))

    def only(self, names: Iterable[str]) -> HloLines:
        kept = set(names)
        return replace(self, lines=tuple(line for line in self.lines if line.name in kept))

    def without_parameters(self, unused: set[str]) -> HloLines:
        """The computation without some parameters; the others are renumbered."""
        left = [line.name for line in self.parameters if line.name not in unused]
        lines = tuple(
            replace(line, tail=f"{left.index(line.name)}){line.tail.partition(')')[2]}") if line.is_parameter else line
            for line in self.lines
            if line.name not in unused
        )
        return replace(self, lines=lines)

    def fresh(self, stem: str) -> str:
        """A name that no line has."""
        return fresh_name(stem, self.by_name)


@dataclass(frozen=True)
class ModuleLines:
    """A module. `attributes` is the rest of its first line after the name; `is_program` tells whether its text is StableHLO."""

    name: str
    attributes: str
    computations: tuple[HloLines, ...]
    is_program: bool = False

    @classmethod
    def of(cls, text: str) -> ModuleLines:
        """The lines of a text. raises what the text's parser raises"""
        if is_stablehlo(text):
            return cls.of_module(parse_stablehlo(text), is_program=True)
        return cls.of_module(parse_hlo(text))

    @classmethod
    def of_module(cls, module: ModuleOp, *, is_program: bool = False) -> ModuleLines:
        printed = print_hlo(module, of_program=is_program)
        head = printed.partition("\n")[0].removeprefix("HloModule ")
        name, _, attributes = head.partition(", ")
        computations = [_lines_of(op) for op in module.ops if isinstance(op, ComputationOp)]
        # Taken from the printed module: only the printer knows their form.
        tails = {line[0]: line[1] for line in _printed_lines(printed)}
        found = tuple(
            replace(one, lines=tuple(_with_tail(one.name, line, tails) for line in one.lines)) for one in computations
        )
        return cls(name, attributes, found, is_program)

    def text(self) -> str:
        """The HLO or StableHLO text, verified by its parser. raises what the parser raises"""
        if not self.is_program:
            parse_hlo(str(self))
            return str(self)
        text = print_stablehlo(parse_hlo(str(self), of_program=True))
        parse_stablehlo(text)
        return text

    def __str__(self) -> str:
        head = f"HloModule {self.name}{', ' if self.attributes else ''}{self.attributes}"
        return "\n\n".join([head, *map(str, self.computations)]) + "\n"

    @property
    def entry(self) -> HloLines:
        return next(one for one in self.computations if one.is_entry)

    @cached_property
    def by_name(self) -> dict[str, HloLines]:
        return {one.name: one for one in self.computations}

    @property
    def lines(self) -> Iterator[HloLine]:
        """Those of all computations."""
        return (line for one in self.computations for line in one.lines)

    def mapped(self, change: Callable[[HloLine], HloLine]) -> ModuleLines:
        """The module with every line changed."""
        changed = (replace(one, lines=tuple(map(change, one.lines))) for one in self.computations)
        return replace(self, computations=tuple(changed))

    def with_(self, *changed: HloLines) -> ModuleLines:
        """The module with the computations of the same names replaced by these."""
        return replace(self, computations=tuple((self.by_name | {one.name: one for one in changed}).values()))

    def callers(self, name: str) -> list[tuple[HloLines, HloLine]]:
        return [(one, line) for one in self.computations for line in one.lines if name in line.callees]

    @property
    def instructions(self) -> int:
        """Number of instructions, without parameters and calls of fusions in ENTRY."""
        return sum(
            not (one.is_entry and line.opcode == "fusion") for one in self.computations for line in one.instructions
        )

    def cleaned(self) -> ModuleLines:
        """The module without everything that ENTRY's root does not need: instructions, computations, parameters of ENTRY and of fusions."""
        module = self
        while True:
            pruned = module.with_(
                *(one.only({*one.reached(), *(p.name for p in one.parameters)}) for one in module.computations)
            )
            pruned = pruned._without_uncalled()._without_unused_parameters()
            if pruned == module:
                return module
            module = pruned

    def _without_uncalled(self) -> ModuleLines:
        names, waiting = set[str](), [self.entry.name]
        while waiting:
            if (name := waiting.pop()) not in names and name in self.by_name:
                names.add(name)
                waiting += [callee for line in self.by_name[name].lines for callee in line.callees]
        return replace(self, computations=tuple(one for one in self.computations if one.name in names))

    def _without_unused_parameters(self) -> ModuleLines:
        module = self
        for one in self.computations:
            callers = self.callers(one.name)
            if not one.is_entry and any(line.opcode not in ("fusion", "call") for _, line in callers):
                continue
            used = {name for line in one.lines for name in line.operands} | {one.root}
            unused = {line.name for line in one.parameters if line.name not in used}
            if not unused or (one.is_entry and self.attributes):
                continue
            numbers = [number for number, line in enumerate(one.parameters) if line.name not in unused]
            for holder, line in callers:
                fewer = replace(line, operands=tuple(line.operands[number] for number in numbers))
                module = module.with_(module.by_name[holder.name].with_line(fewer))
            module = module.with_(module.by_name[one.name].without_parameters(unused))
        return module


def _lines_of(computation: ComputationOp) -> HloLines:
    lines = [
        HloLine(
            op.instruction_name.data,
            type_text(op.result.type, True),
            op.opcode,
            tuple(_name_of(operand.owner) for operand in op.operands),
            "",
        )
        for op in computation.instructions
    ]
    return HloLines(computation.sym_name.data, tuple(lines), _name_of(computation.root.owner), computation.is_entry)


def _name_of(owner: object) -> str:
    assert isinstance(owner, HloOp)
    return owner.instruction_name.data


def _printed_lines(printed: str) -> Iterable[tuple[tuple[str, str], str]]:
    """((computation, instruction), line) of a printed module."""
    computation = ""
    for line in printed.split("\n"):
        if line.startswith(("%", "ENTRY %")):
            computation = line.removeprefix("ENTRY ").removeprefix("%").removesuffix(" {")
        elif line.startswith("  "):
            text = line.strip().removeprefix("ROOT ")
            yield (computation, text.partition(" = ")[0].removeprefix("%")), text


def _with_tail(computation: str, line: HloLine, printed: Mapping[tuple[str, str], str]) -> HloLine:
    text, prefix = printed[computation, line.name], str(line)
    if not text.startswith(prefix):
        raise InternalError(f"%{line.name} is printed in an unknown form", stage="reduce", details=(text, prefix))
    return replace(line, tail=text[len(prefix) :])


def shapes_in(text: str) -> list[tuple[int, ...]]:
    """The dimensions of every array type in a text; an unknown one is `UNKNOWN`."""
    return [_dims(dims) for _, dims, _ in _SHAPE.findall(text)]


def _dims(text: str) -> tuple[int, ...]:
    return tuple(UNKNOWN if size == "?" else int(size) for size in text.split(",")) if text else ()


def with_dims(text: str, dims: Mapping[tuple[int, ...], Sequence[int]]) -> str:
    """Replaces the dimensions of every array type that has an entry in the mapping; the layout becomes the default if the rank changes."""

    def changed(match: re.Match[str]) -> str:
        if (new := dims.get(old := _dims(match[2]))) is None:
            return match[0]
        default = f"{{{','.join(map(str, reversed(range(len(new)))))}}}" if new else ""
        layout = match[3] or "" if len(new) == len(old) else default
        shown = ("?" if size == UNKNOWN else str(size) for size in new)
        return f"{match[1]}[{','.join(shown)}]{layout}"

    return _SHAPE.sub(changed, text)
