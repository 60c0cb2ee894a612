"""Writes the TextMate grammars of the VS Code extension from the Pygments lexers of this package: `python editors/grammars.py`.

    editors/vscode/syntaxes/hlo.tmLanguage.json      source.hlo
    editors/vscode/syntaxes/mlir.tmLanguage.json     source.mlir.xla

With --check nothing is written, and the exit code says whether the files are what would be written.
Source: https://macromates.com/manual/en/language_grammars, "Naming Conventions".
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pygments.lexer import words
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from xla_emitters.trace.lexers import HloLexer, MlirLexer

FOLDER = Path(__file__).parent / "vscode" / "syntaxes"
SCOPES = {
    Comment.Single: "comment.line",
    Comment.Multiline: "comment.block",
    String: "string.quoted.double",
    Keyword: "keyword.control",
    Keyword.Type: "storage.type",
    Keyword.Constant: "constant.language",
    Name.Variable: "variable.other",
    Name.Attribute: "entity.other.attribute-name",
    Name.Function: "entity.name.function",
    Name.Builtin: "support.function",
    Name.Constant: "constant.other",
    Name.Label: "entity.name.label",
    Number: "constant.numeric",
    Operator: "keyword.operator",
}
GRAMMARS = {"hlo": (HloLexer, "source.hlo"), "mlir": (MlirLexer, "source.mlir.xla")}


def grammar(lexer: Any, scope: str) -> dict[str, Any]:
    """A lexer whose state "root" is all, as a grammar."""
    patterns = list[dict[str, Any]]()
    for pattern, kind in lexer.tokens["root"]:
        text = pattern.get() if isinstance(pattern, words) else pattern
        if isinstance(getattr(kind, "__closure__", None), tuple):  # bygroups: one scope a group
            kinds = next(cell.cell_contents for cell in kind.__closure__ if isinstance(cell.cell_contents, tuple))
            names = {str(n): {"name": name(each, scope)} for n, each in enumerate(kinds, 1) if each in SCOPES}
            patterns.append({"match": text, "captures": names})
        elif kind is Comment.Multiline:  # TextMate matches line by line
            patterns.append({"begin": r"/\*", "end": r"\*/", "name": name(kind, scope)})
        elif kind in SCOPES:
            patterns.append({"match": text, "name": name(kind, scope)})
        elif kind is Name:  # without a colour, but whole: the digits of a name are no number
            patterns.append({"match": text})
    return {"scopeName": scope, "name": lexer.name, "patterns": patterns}


def name(kind: Any, scope: str) -> str:
    return f"{SCOPES[kind]}.{scope.partition('.')[2].partition('.')[0]}"


def main(arguments: list[str]) -> int:
    code = 0
    for stem, (lexer, scope) in GRAMMARS.items():
        path, text = FOLDER / f"{stem}.tmLanguage.json", json.dumps(grammar(lexer, scope), indent=2) + "\n"
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            print(f"{path} is not of the lexers: python editors/grammars.py")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
