"""The symbols that an object file refers to and does not define, read from its symbol table: ELF, Mach-O or COFF, for 64-bit machines.

    undefined_symbols(data)        ("__truncsfbf2", "expf")            in C's spelling, sorted

LLVM calls functions that were not in its input: `memset` for a loop, `__truncsfbf2` where a CPU has no such instruction. They are known
only once the machine code exists; a loader that misses one jumps to address 0.
Source: System V ABI, "Symbol table"; Apple, "Mach-O file format reference", `nlist_64`; Microsoft, "PE format", "COFF symbol table".
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import calcsize, iter_unpack, unpack_from

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
