"""Colours for HLO and MLIR text, as Pygments lexers: `pygmentize -l hlo gelu.hlo`, ```` ```mlir ```` in the documentation.

Text that is not HLO or MLIR is shown without colours; the lexers never fail.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import (
    Lexer,
    RegexLexer,
    bygroups,  # pyright: ignore[reportUnknownVariableType]  (Pygments does not type its callbacks)
    words,
)
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]  (its options are untyped)
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

# Kind of text, or stage, that is neither HLO nor MLIR -> the name of its Pygments lexer.
_PYGMENTS = {"llvm": "llvm", "ptx": "ptx", "sass": "ptx", "diff": "diff", "json": "json"}


def lexer_for(kind: str) -> Lexer:
    """The lexer for the text of a stage ("hlo", "flat", "ptx" ...), a "diff" or "json"; it neither adds nor drops a character."""
    options = {"stripnl": False, "ensurenl": False}
    if kind in _PYGMENTS:
        return get_lexer_by_name(_PYGMENTS[kind], **options)
    return (HloLexer if kind in ("hlo", "partition") else MlirLexer)(**options)


_HLO_TYPE = r"(?:pred|bf16|f(?:16|32|64|8e\w+|4e2m1fn)|[su](?:2|4|8|16|32|64)|c(?:64|128)|token|opaque)"
_NUMBER = r"-?(?:0x[0-9A-Fa-f]+|\d+\.\d*(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)"
_STRING = r'"(?:[^"\\]|\\.)*"'


class HloLexer(RegexLexer):
    """HLO text: modules, computations, instructions with their attributes."""

    name = "HLO"
    aliases: ClassVar = ["hlo"]
    filenames: ClassVar = ["*.hlo"]
    url = "https://openxla.org/xla/operation_semantics"

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"/\*(?:.|\n)*?\*/", Comment.Multiline),
            (r"//.*?$", Comment.Single),
            (_STRING, String),
            (words(("HloModule", "ENTRY", "ROOT"), suffix=r"\b"), Keyword),
            (rf"{_HLO_TYPE}(?=\[)", Keyword.Type),
            (r"%[\w.\-]+", Name.Variable),
            (r"([A-Za-z_][\w\-]*)(=)", bygroups(Name.Attribute, Operator)),
            (r"[a-z][a-z0-9\-]*(?=\()", Name.Function),
            (words(("true", "false", "inf", "nan"), suffix=r"\b"), Keyword.Constant),
            (r"k[A-Z]\w+", Name.Constant),
            (_NUMBER, Number),
            (r"[\w.][\w.\-]*", Name),
            (r"->|=", Operator),
            (r"[\[\](){},:<>?*]", Punctuation),
            (r".", Text),
        ]
    }


_MLIR_WORDS = (
    "attributes", "module", "return", "into", "in", "to", "step", "iter_args", "if", "else", "case", "default", "do",
    "private", "internal", "external", "constant", "from", "kernel", "combiner", "inits", "at", "shared_outs", "loc",
    "inbounds", "invariant", "overflow", "fastmath", "true", "false", "dense", "unit", "affine_map", "array",
)  # fmt: skip


class MlirLexer(RegexLexer):
    """MLIR text of any dialect, in custom or generic form."""

    name = "MLIR"
    aliases: ClassVar = ["mlir"]
    filenames: ClassVar = ["*.mlir"]
    url = "https://mlir.llvm.org"

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"//.*?$", Comment.Single),
            (_STRING, String),
            (r"%[\w.$\-]+(?:#\d+)?", Name.Variable),
            (r"@(?:[\w.$\-]+|" + _STRING + r")", Name.Function),
            (r"\^[\w.$\-]+", Name.Label),
            (r"![\w.$\-]+", Keyword.Type),
            (r"#[\w.$\-]+", Name.Constant),
            (r"\b(tensor|vector|memref|complex|tuple)(<)", bygroups(Keyword.Type, Punctuation)),
            (r"(?<![\w.])(?<!tensor<)(?<!vector<)(?<!memref<)0x[0-9A-Fa-f]+\b", Number),
            (r"(?<![\w.])(?:\d+|\?)x(?=[\d?a-z])", Number),
            (r"(?<=x)(?:\d+|\?)x(?=[\d?a-z])", Number),
            (r"(?:index|bf16|tf32|f\d+\w*|[su]?i\d+)\b", Keyword.Type),
            (words(_MLIR_WORDS, prefix=r"(?<![\w.])", suffix=r"\b(?!\.)"), Keyword),
            (
                r"([a-z_][a-z0-9_]*)(\.[\w.]+)(\s*)(=)(?!=)",
                bygroups(Name.Attribute, Name.Attribute, Whitespace, Operator),
            ),
            (r"[a-z_][a-z0-9_]*\.[\w.]+", Name.Builtin),
            (_NUMBER, Number),
            (r"[A-Za-z_][\w$]*", Name),
            (r"->|==|[=+\-*/|]", Operator),
            (r"[\[\](){},:<>?]", Punctuation),
            (r".", Text),
        ]
    }
