"""The output of external tools, in the traces of the kernels: PTX and SASS with the op and the HLO instructions of each line.

    Step("ptx",  ir, sources = ((), ..., ("square",), ...), origins = (0, ..., 20, ...))     20: line of the stage `llvm-dialect`
    Step("sass", ir, sources = ((), ..., ("square",), ...), origins = (0, ..., 37, ...))     37: line of the PTX above

One text has all kernels of a program; in the trace of a kernel, lines of other kernels have no source.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.pipelines.recorder import Recorder, Sources
from xla_emitters.rewrite.symbols import symbol_name
from xla_emitters.settings import Toolchain
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from xla_emitters.lowering.toolchain.ptx_lines import PtxLines


@dataclass(frozen=True)
class ToolListing:
    """A text of all kernels, as recorded in traces, with the function and the origin of each line; () if not requested.

    origins  0 for a line without one
    ops      for each line the line, counted from 1, of its op in the kernel's `llvm-dialect`
    """

    text: str
    functions: tuple[str, ...] = ()
    origins: tuple[int, ...] = ()
    ops: tuple[int, ...] = ()

    @cached_property
    def lines_of(self) -> dict[str, list[int]]:
        """Function -> its lines, from 0."""
        found = dict[str, list[int]]()
        for number, name in enumerate(self.functions):
            found.setdefault(name, []).append(number)
        return found


def functions_in(module: ModuleOp) -> frozenset[str]:
    """The names of the functions that the module defines."""
    found = (symbol_name(op) for op in module.body.ops if any(region.blocks for region in op.regions))
    return frozenset(name for name in found if name is not None)


def ptx_listing(ptx: str, *, line_info: bool) -> ToolListing:
    """PTX as the tools wrote it; with `line_info`, without the directives that this added."""
    if not line_info:
        return ToolListing(ptx)
    from xla_emitters.lowering.toolchain.ptx_lines import read_lines

    read = read_lines(ptx)
    ops = tuple(line.op_line if line else 0 for line in read.lines)
    return ToolListing(read.text, _functions(read), ops, ops)


def sass_listing(ptx: ToolListing, architecture: str, toolchain: Toolchain) -> ToolListing:
    """SASS of the PTX; with origins if the PTX has them. raises ToolError."""
    from xla_emitters.lowering.toolchain.machine_code import assemble, disassemble
    from xla_emitters.lowering.toolchain.sass_lines import read_sass

    if not ptx.ops:
        return ToolListing(disassemble(assemble(ptx.text, architecture, toolchain).cubin, toolchain))
    read = read_sass(assemble(ptx.text, architecture, toolchain, line_info=True).cubin, ptx.text, toolchain)
    functions = tuple(ptx.functions[line - 1] if line else "" for line in read.lines)
    ops = tuple(ptx.ops[line - 1] if line else 0 for line in read.lines)
    return ToolListing(read.text, functions, read.lines, ops)


def record(stage: str, listing: ToolListing, seconds: float, recorder: Recorder, functions: frozenset[str]) -> None:
    """Adds the listing to a kernel's trace.

    seconds    time the tool took for this kernel
    functions  the names of the kernel's functions in the program's PTX
    """
    if not (listing.ops and recorder.keeps_text):
        recorder.tool(stage, listing.text, seconds)
        return
    dialect = recorder.trace["llvm-dialect"].sources
    origins, sources = [0] * len(listing.functions), list[tuple[str, ...]]([()]) * len(listing.functions)
    for number in (line for name in functions for line in listing.lines_of.get(name, ())):
        origins[number], sources[number] = listing.origins[number], _names(dialect, listing.ops[number])
    recorder.tool(stage, listing.text, seconds, tuple(sources), tuple(origins))


def _names(dialect: Sources, op: int) -> tuple[str, ...]:
    return dialect[op - 1] if 0 < op <= len(dialect) else ()


def _functions(read: PtxLines) -> tuple[str, ...]:
    return tuple(line.function if line else "" for line in read.lines)
