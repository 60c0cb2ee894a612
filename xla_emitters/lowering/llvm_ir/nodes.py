"""Metadata nodes of a module in LLVM IR, numbered in order of creation; and the nodes with the unrolling options of loops.

    llvm.br ^head(%i) {loop_annotation = #llvm.loop_annotation<unroll = <full = true>>}
    ->
      br label %head, !llvm.loop !101
    !100 = !{!"llvm.loop.unroll.full"}          nodes.defined('!{!"llvm.loop.unroll.full"}') -> "!100"
    !101 = distinct !{!101, !100}               nodes.distinct("!100") -> "!101"

Of a loop's annotation, only requests about unrolling are written. The other fields permit but do not oblige, and are left out.
Numbers below 100 are reserved for module flags. Debug information is in `debug_nodes.py`.
Source: LLVM language reference, "Metadata Nodes and Metadata Strings", "llvm.loop"; MLIR 22, LoopAnnotationTranslation.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.llvm.metadata import NamedParametersAttr
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
