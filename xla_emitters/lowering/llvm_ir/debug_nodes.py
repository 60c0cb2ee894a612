"""Line information in LLVM IR: `!dbg` of functions and instructions, and the nodes that they refer to.

    llvm.func @f() {...} loc(fused<#llvm.di_subprogram<...>>["f.hlo":1:1])
      llvm.store ... loc("f.hlo":3:7)
    ->
    define void @f() !dbg !2 {
      store ..., !dbg !DILocation(line: 3, column: 7, scope: !2)
    !1 = distinct !DICompileUnit(language: DW_LANG_C, file: !DIFile(...), ..., emissionKind: DebugDirectivesOnly)
    !2 = distinct !DISubprogram(name: "f", ..., unit: !1)
    !llvm.dbg.cu = !{!1}

Locations other than `file:line:column` are not written: `xla-add-line-info` leaves no others.
Source: LLVM language reference, "Specialized Metadata Nodes"; MLIR 22, DebugTranslation.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.llvm.metadata import NamedParametersAttr
from xla_emitters.lowering.llvm_ir.nodes import Nodes
from xla_emitters.lowering.llvm_ir.values import escaped
from xla_emitters.support.late_dataclass import dataclass

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
