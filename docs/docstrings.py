"""Docstrings of this project as Markdown, for the page of the Python API: a griffe extension.

    shape    result shape, row major        ->   - **shape**: result shape, row major
             of the first result                   of the first result
    raises   Unsupported if ...             ->   - **raises**: Unsupported if ...

Doctests become code. What is indented is code already.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROW = re.compile(r"([A-Za-z_*][\w*]*(?:, [\w*]+)*) {2,}(\S.*)|(raises) (\S.*)")


def as_markdown(text: str) -> str:
    """The docstring with its rows as a list, and its doctests fenced."""
    lines, in_row, in_test = list[str](), False, False
    for line in text.splitlines():
        if line.startswith(">>> ") and not in_test:
            lines += ["", "```python"]
            in_test = True
        elif in_test and not line.strip():
            lines.append("```")
            in_test = False
        if in_test:
            lines.append(line)
        elif found := _ROW.fullmatch(line):
            lines += [] if in_row else [""]
            lines.append(f"- **{found[1] or found[3]}**: {found[2] or found[4]}")
            in_row = True
        elif in_row and line.startswith("   "):
            lines.append(f"  {line.strip()}")
        else:
            lines += ["", line] if in_row and line.strip() else [line]
            in_row = False
    return "\n".join([*lines, "```"] if in_test else lines)


class DocstringsAsMarkdown(griffe.Extension):
    """Rewrites each docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
