"""Metadata nodes of a module in LLVM IR, numbered in order of creation; and the nodes with the unrolling options of loops.

    llvm.br ^head(%i) {loop_annotation = #llvm.loop_annotation<unroll = <full = true>>}
    ->
      br label %head, !llvm.loop !101
    !100 = !{!"llvm.loop.unroll.full"}          nodes.defined('!{!"llvm.loop.unroll.full"}') -> "!100"
    !101 = distinct !{!101, !100}               nodes.distinct("!100") -> "!101"

Of a loop's annotation, only requests about unrolling are written. The other fields permit but do not oblige, and are left out.
Numbers below 100 are reserved for module flags.

Line information is `!dbg` of functions and instructions, and the nodes that they refer to:

    llvm.func @f() {...} loc(fused<#llvm.di_subprogram<...>>["f.hlo":1:1])
      llvm.store ... loc("f.hlo":3:7)
    ->
    define void @f() !dbg !2 {
      store ..., !dbg !DILocation(line: 3, column: 7, scope: !2)
    !1 = distinct !DICompileUnit(language: DW_LANG_C, file: !DIFile(...), ..., emissionKind: DebugDirectivesOnly)
    !2 = distinct !DISubprogram(name: "f", ..., unit: !1)
    !llvm.dbg.cu = !{!1}

Locations other than `file:line:column` are not written: `xla-add-line-info` leaves no others.
Source: LLVM language reference, "Metadata Nodes and Metadata Strings", "Specialized Metadata Nodes", "llvm.loop"; MLIR 22,
LoopAnnotationTranslation.cpp and DebugTranslation.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.llvm.metadata import NamedParametersAttr
from xla_emitters.lowering.llvm_ir.spelling import escaped
from xla_emitters.support.late_dataclass import dataclass

_FIRST = 100
# Parameter of `#llvm.loop_unroll` -> the node if it is true, and the node if it is false.
_SWITCHES = {
    "disable": ('!"llvm.loop.unroll.disable"', '!"llvm.loop.unroll.enable"'),
    "runtimeDisable": ('!"llvm.loop.unroll.runtime.disable", i1 true', '!"llvm.loop.unroll.runtime.disable", i1 false'),
    "full": ('!"llvm.loop.unroll.full"', ""),
}


@dataclass
class Nodes:
    """The nodes so far; each method adds one and returns its name."""

    texts: list[str] = field(default_factory=list[str])

    def defined(self, text: str) -> str:
        """A node with this text."""
        self.texts.append(text)
        return self._name(len(self.texts) - 1)

    def distinct(self, *operands: str) -> str:
        """A distinct node: its first operand is the node itself."""
        name = self._name(len(self.texts))
        return self.defined(f"distinct !{{{', '.join((name, *operands))}}}")

    def lines(self) -> Iterator[str]:
        for number, text in enumerate(self.texts):
            yield f"{self._name(number)} = {text}"

    @staticmethod
    def _name(number: int) -> str:
        return f"!{_FIRST + number}"


def loop_text(annotation: Attribute | None, nodes: Nodes) -> str:
    """`, !llvm.loop !101` after a branch; "" if there is nothing to write."""
    unroll = annotation.get("unroll") if isinstance(annotation, NamedParametersAttr) else None
    if not isinstance(unroll, llvm.LoopUnrollAttr):
        return ""
    hints: list[str] = []
    for name, (if_true, if_false) in _SWITCHES.items():
        if isinstance(value := unroll.get(name), IntegerAttr) and (text := if_true if value.value.data else if_false):
            hints.append(text)
    if isinstance(count := unroll.get("count"), IntegerAttr):
        hints.append(f'!"llvm.loop.unroll.count", i32 {count.value.data}')
    return f", !llvm.loop {nodes.distinct(*(nodes.defined(f'!{{{hint}}}') for hint in hints))}" if hints else ""


_FLAGS = {"Definition": "DISPFlagDefinition", "Optimized": "DISPFlagOptimized"}


def subprogram_of(function: Operation) -> NamedParametersAttr | None:
    """The subprogram in a function's location; None if the function is compiled without lines."""
    location = function.location
    if isinstance(location, FusedLoc) and isinstance(location.metadata, llvm.DISubprogramAttr):
        return location.metadata
    return None


def location_text(location: Attribute, scope: str) -> str:
    """`!DILocation(line: 3, column: 7, scope: !2)`; "" for a location without a line."""
    if not isinstance(location, FileLineColLoc):
        return ""
    return f"!DILocation(line: {location.line.data}, column: {location.column.data}, scope: {scope})"


@dataclass
class DebugNodes:
    """The subprograms and compile units of a module; `nodes` holds all of its metadata."""

    nodes: Nodes
    units: list[str] = field(default_factory=list[str])

    def scope(self, subprogram: NamedParametersAttr) -> str:
        """Defines the subprogram and its unit; returns the subprogram's name: `!2`."""
        unit = subprogram.get("compileUnit")
        assert isinstance(unit, llvm.DICompileUnitAttr)
        file, scope = (self.nodes.defined(_file(of.get("file"))) for of in (unit, subprogram))
        kind, language = _word(unit, "emissionKind"), _word(unit, "sourceLanguage")
        made = self.nodes.defined(
            f"distinct !DICompileUnit(language: {language}, file: {file}, producer: {_quoted(unit, 'producer')}, "
            f"isOptimized: {str(bool(_number(unit, 'isOptimized'))).lower()}, emissionKind: {kind})"
        )
        self.units.append(made)
        flags = " | ".join(_FLAGS[flag] for flag in _word(subprogram, "subprogramFlags").split("|"))
        return self.nodes.defined(
            f"distinct !DISubprogram(name: {_quoted(subprogram, 'name')}, scope: {scope}, file: {scope}, "
            f"line: {_number(subprogram, 'line')}, spFlags: {flags}, unit: {made})"
        )

    def lines(self) -> Iterator[str]:
        """The list of units; empty if there are none."""
        if self.units:
            yield f"!llvm.dbg.cu = !{{{', '.join(self.units)}}}"


def _file(file: Attribute | None) -> str:
    assert isinstance(file, llvm.DIFileAttr)
    name, directory = (escaped(part.data.encode()) for part in (file.file, file.directory))
    return f'!DIFile(filename: "{name}", directory: "{directory}")'


def _word(attribute: NamedParametersAttr, name: str) -> str:
    value = attribute.get(name)
    return value.data if isinstance(value, StringAttr) else ""


def _quoted(attribute: NamedParametersAttr, name: str) -> str:
    return f'"{escaped(_word(attribute, name).encode())}"'


def _number(attribute: NamedParametersAttr, name: str) -> int:
    value = attribute.get(name)
    return int(value.value.data) if isinstance(value, IntegerAttr) else 0
