"""Assembly formats of ops, compiled on first use instead of at class definition.

xDSL compiles an op's format when its class is defined: at import, over 300 formats for the dialects that a compilation loads, though it
then prints only twenty. That is an eighth of the time for loading the compiler. Only the dialects in `OURS_AND_XDSLS` are deferred; a
user's op is compiled at once, so that a wrong format is an error at its definition, as usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.irdl import IRDLOperation, IRDLOperationInvT, OpDef
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer

from xla_emitters.dialects.xdsl_patches.patch import Member

OURS_AND_XDSLS = frozenset(
    "affine arith builtin cf complex func gpu hlo index llvm math memref nvvm scf tensor vector xla xla_gpu".split()
)
"""The dialects with deferred formats: those of kernels; a test reads and prints their ops."""

compile_format = FormatProgram.from_str


@dataclass(frozen=True)
class LazyFormat(FormatProgram):
    """A format that is compiled when it is first used."""

    text: str
    op_def: OpDef

    @cached_property
    def compiled(self) -> FormatProgram:
        return compile_format(self.text, self.op_def)

    def parse(self, parser: Parser, op_type: type[IRDLOperationInvT]) -> IRDLOperationInvT:
        return self.compiled.parse(parser, op_type)

    def print(self, printer: Printer, op: IRDLOperation) -> None:
        self.compiled.print(printer, op)


def format_of(text: str, op_def: OpDef) -> FormatProgram:
    """The format of an op, lazy for the dialects that are known to be right. raises ParseError for the others."""
    if op_def.name.partition(".")[0] in OURS_AND_XDSLS:
        return LazyFormat((), text, op_def)
    return compile_format(text, op_def)


FORMATS = Member(
    FormatProgram, "from_str", "compiles an op's format when its class is made", lambda _: staticmethod(format_of)
)
