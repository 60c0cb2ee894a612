"""The CPU that machine code is made for.

    cpu_target("native")                 this machine, with all its vector instructions
    cpu_target("x86-64-v3")              any CPU that LLVM knows: a level of x86-64, or a name
    cpu_target("znver4,-avx512bf16")     with or without some instructions; without a name, of this machine

Code for a CPU that has instructions that this machine lacks can be put into a bundle, and is not run here.

The symbols that an object file refers to and does not define, read from its symbol table: ELF, Mach-O or COFF, for 64-bit machines.

    undefined_symbols(data)        ("__truncsfbf2", "expf")            in C's spelling, sorted

LLVM calls functions that were not in its input: `memset` for a loop, `__truncsfbf2` where a CPU has no such instruction. They are known
only once the machine code exists; a loader that misses one jumps to address 0.
Source: System V ABI, "Symbol table"; Apple, "Mach-O file format reference", `nlist_64`; Microsoft, "PE format", "COFF symbol table".
"""

from __future__ import annotations

import ctypes.util
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from struct import calcsize, iter_unpack, unpack_from
from typing import Any

from xla_emitters.errors import ToolError, UsageError
from xla_emitters.lowering.toolchain.tools import LLVMLITE_HELP
from xla_emitters.support.extras import installed
from xla_emitters.support.processes import run_tool

STAGE = "cpu"
CPU_FEATURES = "XLA_EMITTERS_CPU_FEATURES"
NATIVE = "native"
SYNTAX = re.compile(
    r"(?!help\b)[a-z0-9][\w.-]*(,[+-](?!help\b)\w[\w.-]*)*|[+-](?!help\b)\w[\w.-]*(,[+-](?!help\b)\w[\w.-]*)*"
)
HELP = "native, x86-64-v2, x86-64-v3, x86-64-v4, another CPU that LLVM knows, and +name or -name for instructions: znver4,-avx512bf16"
ONLY_BY_NAME = frozenset(
    "adx aes cldemote clflushopt clwb clzero enqcmd fsgsbase hreset invpcid kl widekl lwp movdir64b movdiri "
    "mwaitx pclmul vpclmulqdq pconfig pku prefetchi prfchw ptwrite raoint rdpid rdpru rdrnd rdseed rtm serialize "
    "sgx sha sha512 shstk sm3 sm4 tsxldtrk uintr usermsr vaes waitpkg wbnoinvd xsave xsavec xsaveopt xsaves "
    "amx-avx512 amx-bf16 amx-complex amx-fp16 amx-fp8 amx-int8 amx-movrs amx-tf32 amx-tile".split()
)
"""Instructions that LLVM uses only where the program asks for them by name, which no code of ours does. Virtual machines hide many."""
VECTORS = {"avx512f": 64, "avx": 32}
"""Bytes of a vector register; 16 on a CPU with neither."""


@dataclass(frozen=True)
class CpuTarget:
    """A CPU that machine code is made for.

    asked          as in the file's head, not ""
    triple         LLVM's name of the machine and its system
    name, features what LLVM is given
    lacking        instructions of this CPU that code may use and this machine has not: such code must not be run here
    vector_bytes   of a vector register
    """

    asked: str
    triple: str
    name: str
    features: str
    lacking: tuple[str, ...]
    vector_bytes: int

    def machine(self, *, opt: int = 3, **how: Any) -> Any:
        """LLVM's machine that makes code. opt, how: `opt`, `reloc`, `codemodel`, `jit` of llvmlite's `create_target_machine`"""
        target = llvm_binding().Target.from_triple(self.triple)
        return target.create_target_machine(cpu=self.name, features=self.features, opt=opt, **how)

    @cached_property
    def converts_f16(self) -> bool:
        """Whether conversions between f16 and f32 are instructions, and not calls of functions."""
        module = llvm_binding().parse_assembly(F16)
        module.triple = self.triple
        return not undefined_symbols(self.machine().emit_object(module))

    def refuse_to_run(self) -> None:
        """raises UsageError if this machine lacks instructions that the code may use"""
        if self.lacking:
            more = f" and {len(self.lacking) - 3} more" if len(self.lacking) > 3 else ""
            raise UsageError(
                f"this machine has no {', '.join(self.lacking[:3])}{more}, which code for '{self.asked}' uses",
                stage=STAGE,
                help="--cpu-features native; `bundle --abi c` makes such code without running it",
            )


F16 = """
define half @narrow(float %x) {
  %y = fptrunc float %x to half
  ret half %y
}
define float @wide(half %x) {
  %y = fpext half %x to float
  ret float %y
}
"""


def is_installed() -> bool:
    """Whether llvmlite can be imported."""
    return find_spec("llvmlite") is not None


@cache
def cpu_target(asked: str = NATIVE) -> CpuTarget:
    """See the file's head. raises ToolError if llvmlite is not installed; UsageError for a CPU or a feature that LLVM does not know"""
    binding = llvm_binding()
    triple, own = binding.get_process_triple(), binding.get_host_cpu_features()
    if SYNTAX.fullmatch(asked) is None:
        raise UsageError(f"'{asked}' names no CPU", stage=STAGE, help=HELP)
    name, _, features = asked.partition(",") if asked[0] not in "+-" else (NATIVE, "", asked)
    if name == NATIVE:
        name = binding.get_host_cpu_name()
        features = ",".join(filter(None, (own.flatten(), features)))
    if asked == NATIVE:
        lacking, has = (), {each for each in VECTORS if own.get(each)}
    else:
        absent = sorted(each for each, is_here in own.items() if not is_here and each not in ONLY_BY_NAME)
        has = probed(triple, name, features, (*absent, *(each for each in VECTORS if each in own)))
        lacking = tuple(each for each in absent if each in has)
    return CpuTarget(
        asked, triple, name, features, lacking, next((VECTORS[each] for each in VECTORS if each in has), 16)
    )


def probed(triple: str, name: str, features: str, instructions: tuple[str, ...]) -> set[str]:
    """Which of these instructions a CPU has. raises UsageError for a CPU or a feature that LLVM does not know"""
    probe = str(Path(__file__).with_name("cpu_probe.py"))
    try:
        answer = run_tool([sys.executable, "-P", probe, triple, name, features, *instructions])
    except ToolError as error:
        raise UsageError(f"LLVM makes no code for the CPU '{name}' here", stage=STAGE, help=HELP) from error
    if unknown := re.search(r"'(\S+)' is not a recognized (processor|feature)", answer.said):
        what = "CPU" if unknown[2] == "processor" else "instructions"
        raise UsageError(f"LLVM knows no {what} '{unknown[1]}'", stage=STAGE, help=HELP)
    return set(json.loads(answer.text))


@cache
def llvm_binding() -> Any:
    """llvmlite's binding, with C's mathematical functions. raises ToolError if llvmlite is not installed"""
    with installed("llvmlite", STAGE, help=LLVMLITE_HELP):
        binding: Any = import_module("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    if (library := ctypes.util.find_library("m")) is not None:
        binding.load_library_permanently(library)
    return binding


ELF, MACH_O, COFF = b"\x7fELF", b"\xcf\xfa\xed\xfe", (b"d\x86", b"d\xaa")
"""The first bytes of object files; COFF's are the machine: x86-64, AArch64."""
SYMBOL_TABLE = 2
"""ELF's type of a section, and Mach-O's of a load command, with the symbol table."""
LINKER_S = frozenset(("_GLOBAL_OFFSET_TABLE_", "_fltused"))
"""Symbols that linkers and C's start-up code define; no code calls them."""


def is_object(data: bytes) -> bool:
    """Whether these are the first bytes of an object file of a known format."""
    return data.startswith((ELF, MACH_O, *COFF))


def undefined_symbols(data: bytes) -> tuple[str, ...]:
    """See the file's head. raises ValueError for data that `is_object` does not accept"""
    read = _elf if data.startswith(ELF) else _mach_o if data.startswith(MACH_O) else _coff
    if not is_object(data):
        raise ValueError("not an object file")
    return tuple(sorted(set(read(data)) - LINKER_S))


def _elf(data: bytes) -> Iterator[str]:
    order = "<" if data[5] == 1 else ">"
    (begin,) = unpack_from(f"{order}Q", data, 40)
    each, count = unpack_from(f"{order}2H", data, 58)
    # name, type, flags, address, offset, size, link
    sections: list[tuple[int, ...]] = [
        unpack_from(f"{order}2I4QI", data, begin + each * number) for number in range(count)
    ]
    for _, kind, _, _, offset, size, link in sections:
        if kind == SYMBOL_TABLE:
            for name, _, _, section, _, _ in iter_unpack(f"{order}I2BH2Q", data[offset : offset + size]):
                if name and not section:
                    yield _text(data, sections[link][4] + name)


def _mach_o(data: bytes) -> Iterator[str]:
    (count,) = unpack_from("<I", data, 16)
    place = 32
    for _ in range(count):
        kind, size, symbols, number, strings = unpack_from("<5I", data, place)
        place += size
        if kind == SYMBOL_TABLE:
            entry = "<I2BHQ"  # name, type, section, description, value
            for name, flags, _, _, value in iter_unpack(entry, data[symbols : symbols + number * calcsize(entry)]):
                if flags & 0xEF == 1 and not value:  # external, in no section, not for a debugger; not a common block
                    yield _text(data, strings + name).removeprefix("_")


def _coff(data: bytes) -> Iterator[str]:
    begin, count = unpack_from("<2I", data, 8)
    strings, left = begin + 18 * count, 0
    for place in range(begin, strings, 18):
        name, value, section, _, kind, more = unpack_from("<8sIhH2B", data, place)
        if left:  # an entry that continues the one before it
            left -= 1
            continue
        left = more
        if kind == 2 and not section and not value:  # external
            zero, offset = unpack_from("<2I", name)
            yield name.rstrip(b"\0").decode() if zero else _text(data, strings + offset)


def _text(data: bytes, place: int) -> str:
    return data[place : data.index(b"\0", place)].decode()
