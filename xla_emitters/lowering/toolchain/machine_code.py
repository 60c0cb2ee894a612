"""PTX to machine code: ptxas assembles it and reports each kernel's resources; nvdisasm disassembles it.

assemble(ptx, "sm_90", toolchain)     -> Assembly(cubin, entries)         ptxas -v
disassemble(cubin, toolchain)         -> SASS                             nvdisasm -c
disassemble_with_lines(..)            -> SASS, and the lines of PTX       nvdisasm -c -gp
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from xla_emitters.errors import InternalError
from xla_emitters.lowering.toolchain.tools import find_tool
from xla_emitters.settings import Toolchain
from xla_emitters.support.processes import STAGE, run_tool


@dataclass(frozen=True)
class EntryResources:
    """The resources of a kernel, from ptxas: registers, spilled bytes (stores, loads) and stack bytes per thread; static shared bytes."""

    name: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    stack_bytes: int = 0


@dataclass(frozen=True)
class Assembly:
    """Machine code of one PTX text, and the resources of each of its kernels, in the text's order."""

    cubin: bytes
    entries: tuple[EntryResources, ...]

    @property
    def registers(self) -> int:
        """The largest number of registers of a kernel."""
        return max(entry.registers for entry in self.entries)

    @property
    def spill_bytes(self) -> int:
        return sum(entry.spill_bytes for entry in self.entries)

    @property
    def shared_bytes(self) -> int:
        """The largest static shared memory of a kernel, in bytes."""
        return max(entry.shared_bytes for entry in self.entries)


def assemble(ptx: str, architecture: str, toolchain: Toolchain, *, line_info: bool = False) -> Assembly:
    """Assembles PTX by ptxas -v.

    line_info  record PTX lines for `disassemble_with_lines`; the code is the same
    raises ToolError if ptxas is missing or refuses the text (with its line), InternalError if the text has no entry.
    """
    ptxas = find_tool("ptxas", toolchain)
    with tempfile.TemporaryDirectory(prefix="xla-emitters-") as directory:
        source, cubin = Path(directory) / "kernel.ptx", Path(directory) / "kernel.cubin"
        source.write_text(ptx, "utf-8")
        lines = ["-lineinfo"] * line_info
        command = [ptxas.path, "-v", *lines, f"-arch={architecture}", str(source), "-o", str(cubin)]
        answer = run_tool(command)
        entries = _resources(
            answer.said + answer.text, re.findall(r"^\s*(?:\.visible |\.weak )?\.entry ([\w$]+)", ptx, re.M)
        )
        if not entries:
            raise InternalError("the PTX has no entry", stage=STAGE, details=(f"command: {shlex.join(command)}",))
        return Assembly(cubin.read_bytes(), entries)


def _resources(said: str, names: Sequence[str]) -> tuple[EntryResources, ...]:
    """Parses the report of `ptxas -v` for each entry in `names`.

    ptxas info    : Compiling entry function 'fusion' for 'sm_90'
    ptxas info    : Function properties for fusion
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 23 registers, used 0 barriers, 4224 bytes smem
    """
    found: dict[str, EntryResources] = {}
    for part in said.split("Compiling entry function '")[1:]:
        name = part.partition("'")[0]
        used = re.search(r"Used (\d+) registers", part)
        spilled = re.findall(r"(\d+) bytes spill", part)
        shared = re.search(r"(\d+) bytes smem", part)
        found[name] = EntryResources(
            name,
            int(used[1]) if used else 0,
            sum(map(int, spilled)),
            int(shared[1]) if shared else 0,
            max(map(int, re.findall(r"(\d+) bytes stack frame", part)), default=0),
        )
    return tuple(found[name] for name in names if name in found)


def disassemble(cubin: bytes, toolchain: Toolchain) -> str:
    """SASS of a cubin, by nvdisasm. raises ToolError."""
    return _disassembled(cubin, (), toolchain)


def disassemble_with_lines(cubin: bytes, toolchain: Toolchain) -> tuple[str, tuple[int, ...]]:
    """The SASS, as `disassemble` returns it, and for each of its lines the PTX line, from 1; 0 for a line that is not an instruction.

    cubin   assembled with `line_info`
    raises  ToolError

    ptxas records only where the line changes: an instruction merged from several others may have the line of the one before it.
    """
    kept, lines, now = list[str](), list[int](), 0
    for line in _disassembled(cubin, ("-gp",), toolchain).split("\n"):
        if found := re.match(r'\s*//## File ".nv_debug_ptx_txt", line (\d+)', line):
            now = int(found[1])
        elif not line.lstrip().startswith("//##"):
            kept.append(line)
            lines.append(now if is_instruction(line) else 0)
            now = 0 if line.startswith("//-") else now
    return "\n".join(kept), tuple(lines)


def is_instruction(line: str) -> bool:
    """Whether a line of SASS is an instruction."""
    return re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+\S", line) is not None


def _disassembled(cubin: bytes, options: tuple[str, ...], toolchain: Toolchain) -> str:
    return _output_of(find_tool("nvdisasm", toolchain).path, cubin, options)


@lru_cache(maxsize=32)  # nvdisasm takes 0.4 s to start
def _output_of(nvdisasm: str, cubin: bytes, options: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory(prefix="xla-emitters-") as directory:
        path = Path(directory) / "kernel.cubin"
        path.write_bytes(cubin)
        return run_tool([nvdisasm, "-c", *options, str(path)]).text
