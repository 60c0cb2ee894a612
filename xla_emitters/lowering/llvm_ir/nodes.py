"""Metadata nodes of a module in LLVM IR, numbered as they come.

    !100 = !{!"llvm.loop.unroll.full"}          nodes.defined('!{!"llvm.loop.unroll.full"}') -> "!100"
    !101 = distinct !{!101, !100}               nodes.distinct("!100") -> "!101"

Flags of modules have the numbers below.
Source: LLVM language reference, "Metadata Nodes and Metadata Strings".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

_FIRST = 100


@dataclass
class Nodes:
    """The nodes so far; each method adds one and returns its name."""

    texts: list[str] = field(default_factory=list[str])

    def defined(self, text: str) -> str:
        """A node with this text."""
        self.texts.append(text)
        return self._name(len(self.texts) - 1)

    def distinct(self, *operands: str) -> str:
        """A node that is equal to no other: its first operand is the node itself."""
        name = self._name(len(self.texts))
        return self.defined(f"distinct !{{{', '.join((name, *operands))}}}")

    def lines(self) -> Iterator[str]:
        for number, text in enumerate(self.texts):
            yield f"{self._name(number)} = {text}"

    @staticmethod
    def _name(number: int) -> str:
        return f"!{_FIRST + number}"
