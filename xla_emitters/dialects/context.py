"""The one context: all dialects, ours in place of xDSL's of the same name; and text to IR with located errors.

module = parse_ir(text, "kernel.mlir")

kernel.mlir:3:10: error: [ir.verify] arith.addi: ...
    %2 = arith.addi %0, %1 : i32
         ^~~~~~~~~~
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from importlib import import_module
from threading import local
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect, Operation
from xdsl.utils import exceptions as xdsl_errors

from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.verification import ESCAPING_ERRORS, WRITTEN, verify_ir
from xla_emitters.errors import ParseError, Place, VerifyError

if TYPE_CHECKING:
    from xla_emitters.dialects.repeated_text import RepeatedText

DialectFactory = Callable[[], Dialect]


def _factory(module: str, name: str) -> DialectFactory:
    """Loads `xla_emitters.dialects.<module>.<name>` when called: listing the dialects imports none."""
    return lambda: getattr(import_module(f"xla_emitters.dialects.{module}"), name)


# Dialects that xDSL lacks.
ADDED_DIALECTS: Mapping[str, DialectFactory] = {
    "disc_ral": _factory("disc_ral", "DISC_RAL"),
    "hlo": _factory("hlo.dialect", "HLO"),
    "index": _factory("mlir.index", "INDEX"),
    "lmhlo": _factory("lmhlo_dialect", "LMHLO"),
    "nvvm": _factory("mlir.nvvm", "NVVM"),
    "xla": _factory("xla_gpu.xla", "XLA"),
    "xla_gpu": _factory("xla_gpu", "XLA_GPU"),
}

# Dialects that xDSL has: ours are xDSL's, completed.
REPLACED_DIALECTS: Mapping[str, DialectFactory] = {
    name: _factory(f"mlir.{name}", name.upper())
    for name in (
        "affine",
        "arith",
        "builtin",
        "cf",
        "complex",
        "dlti",
        "func",
        "gpu",
        "llvm",
        "math",
        "memref",
        "scf",
        "tensor",
        "vector",
    )
}

DIALECTS: Mapping[str, DialectFactory] = {**get_all_dialects(), **ADDED_DIALECTS, **REPLACED_DIALECTS}
"""All dialects, by name."""


@cache
def op_named(name: str) -> type[Operation]:
    """The class of an op of one of `DIALECTS`, such as `math.tanh`."""
    dialect = DIALECTS[name.partition(".")[0]]()
    return next(op for op in dialect.operations if op.name == name)


class ReadingContext(Context):
    """A context, and what was read with it."""

    @cached_property
    def read(self) -> RepeatedText:
        """Lines and types that were read before."""
        from xla_emitters.dialects.repeated_text import RepeatedText  # imported here: most compilations read no IR

        return RepeatedText()


def make_context(*, allow_unregistered: bool = False) -> ReadingContext:
    """A context with every dialect registered; each is loaded on first use."""
    context = ReadingContext(allow_unregistered=allow_unregistered)
    for name, factory in DIALECTS.items():
        context.register_dialect(name, factory)
    return context


_OF_THREAD = local()


def context_of_thread() -> Context:
    """The context that all compilations of a thread share: each loads a dialect's 200 ops otherwise. Not to be changed."""
    if (context := getattr(_OF_THREAD, "context", None)) is None:
        context = _OF_THREAD.context = make_context()
    return context


# ---- text to IR -------------------------------------------------------------------------------------------------------------------------


@collector_at_rest()
def parse_ir(
    text: str | bytes,
    name: str = "<ir>",
    *,
    allow_unregistered: bool = False,
    verify: bool = True,
    locate: bool = False,
    context: Context | None = None,
) -> ModuleOp:
    """IR from text; a text of several ops gets a module around it.

    name     the name of the text in messages, such as its file
    locate   remember where ops are in the text: errors of passes on those without a location then have a place
    context  by default that of the thread, or a new one with `allow_unregistered`
    raises   ParseError if the text is not IR, VerifyError if it breaks a rule of its ops; both have the place
    """
    from xla_emitters.dialects.mlir_parser import IRParser  # imported here: most compilations read no IR

    if isinstance(text, bytes):
        from xla_emitters.support.decoding import decoded

        text = decoded(text, name, "ir.parse")
    parser = None
    try:
        context = context or (make_context(allow_unregistered=True) if allow_unregistered else context_of_thread())
        parser = IRParser(context, text, name, context.read if isinstance(context, ReadingContext) else None)
        module = parser.parse_module()
    except xdsl_errors.ParseError as error:
        message, place, help = error.msg.strip(), _place(text, name, error.span.start, error.span.end), ""
        if message.startswith("in "):
            message = f"{'unexpected text' if text[error.span.start :].strip() else 'the text ends'} {message}"
        elif message == "Could not parse entire input!":
            message = "expected an op" if text[error.span.start :].strip() else "there is no op in the text"
        elif (unknown := _UNKNOWN_OP.match(message)) and parser:
            # xDSL's position is behind the name.
            message, place = f"there is no op '{unknown[1]}'", _place_of_op(text, name, parser.start)
            from xla_emitters.dialects.unknown_ops import help_for

            help = help_for(unknown[1], DIALECTS)
        elif parser and _UNDEFINED.match(message) and (undefined := parser.undefined()):
            # xDSL's position is the end of the text.
            value, (start, end) = undefined
            message, place = f"{value} is used but not defined", _place(text, name, start, end)
        raise ParseError(message, stage="ir.parse", place=place, help=help) from error
    except RecursionError:
        place = _place(text, name, parser.pos, parser.pos) if parser else None
        raise ParseError("nested too deeply to be read", stage="ir.parse", place=place) from None
    except ESCAPING_ERRORS as error:
        # Raised while an op is constructed: the place is the op's name.
        place = _place_of_op(text, name, parser.start) if parser else None
        op_name = place.text[place.column - 1 : place.end_column - 1].strip('"') if place else name
        message = f"{op_name}: {str(error).strip() or f'not understood ({type(error).__name__})'}"
        if isinstance(error, xdsl_errors.VerifyException):
            raise VerifyError(message, stage="ir.verify", place=place) from error
        raise ParseError(message, stage="ir.parse", place=place) from error
    if verify:
        starts = parser.starts
        verify_ir(module, lambda op: _place_of_op(text, name, starts[op]) if op in starts else None)
    if locate:
        for op, start in parser.starts.items():
            WRITTEN[op] = partial(_place_of_op, text, name, start)
    return module


def _place(text: str, name: str, start: int, end: int) -> Place:
    """Lines and columns of text[start:end], up to the end of its first line."""
    start = min(start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    column = start - line_start + 1
    end_column = min(max(end - line_start, column), len(line)) + 1
    return Place(name, text.count("\n", 0, start) + 1, column, end_column, line.rstrip("\r"))


_UNDEFINED = re.compile(r"values used but not defined: \[")
_UNKNOWN_OP = re.compile(r"Operation (\S+) is not registered")
_OP_NAME = re.compile(r'(?:%[^=]*=\s*)?("?[\w.$]+"?)')


def _place_of_op(text: str, name: str, start: int) -> Place:
    """The place of the name of the op that begins at `start`."""
    found = _OP_NAME.match(text, start)
    return _place(text, name, *(found.span(1) if found else (start, start)))
