"""A text with its name: turns offsets into the places of error messages."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from xla_emitters.errors import Place


class Source:
    """A text, its name, and the offsets of its lines."""

    def __init__(self, text: str, file: str):
        self.text = text
        self.file = file
        self._shown = (0, "")

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def place(self, start: int, end: int) -> Place:
        """The place of text[start:end], cut at the end of its first line."""
        line, column = self.line_and_column(start)
        return self.place_at(line, column, end - start)

    def place_at(self, line: int, column: int, width: int) -> Place:
        """The place of `width` characters at a line and column, with the line's text."""
        shown = self._line(line)
        end_column = min(column + max(width, 1), max(len(shown), column) + 1)
        return Place(self.file, line, column, end_column, shown)

    def _line(self, line: int) -> str:
        """A line as it is printed in messages. The last one is cached: a whole module may be one line, with thousands of errors."""
        if self._shown[0] == line:
            return self._shown[1]
        first = self._line_starts[line - 1]
        newline = self.text.find("\n", first)
        shown = self.text[first : newline if newline >= 0 else len(self.text)].rstrip("\r")
        if not shown.isprintable():
            shown = "".join(
                char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in shown
            )
        self._shown = (line, shown)
        return shown
