"""Binary forms of programs as text, and text as binary forms, through jaxlib (the extra [xla]) in a separate process.

    read_binary(data, "x.mlirbc")     Binary(text="module @jit_f ...", name="x.mlirbc as text")       StableHLO
    read_binary(data, "x.hlo.pb")     Binary(text="HloModule jit_f ...", ...)                         HLO, with whole constants
    read_binary(data, "x.hlo_snapshot").inputs     the arguments of a snapshot, as an `.npz`
    written("module @jit_f ...", "bytecode")       bytes

What a file is, its first bytes say, not its name (`texts.decoding.kind_of`). XLA's readers end their process on some damaged files, so
each file has a process of its own, with a limit on its memory.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from xla_emitters.errors import AS_TEXT, ParseError, ToolError
from xla_emitters.support.decoding import GZIP, BinaryKind, decoded, described, kind_of, saved_module
from xla_emitters.support.extras import install_command
from xla_emitters.support.processes import run_tool
from xla_emitters.text.binary import jaxlib_process
from xla_emitters.text.binary.jaxlib_process import CONVERTED, MISSING

if TYPE_CHECKING:
    from xla_emitters.dtypes import Array  # it loads NumPy

STAGE = "read"
MOST_BYTES = 2**31
"""Of a file that gzip compressed: a message of Protocol Buffers is no larger."""
TIMEOUT_SECONDS, BYTES_PER_SECOND = 20.0, 1e6
"""How long a reader may take: so many seconds, and one more for so many bytes. Some damaged files are read without end."""


@dataclass(frozen=True)
class Binary:
    """A binary form as text.

    name    for messages: a place in it is an instruction, since its lines are in no file
    inputs  the arguments of a snapshot: of p0, p1, ... the element type and the array; None of other forms
    """

    text: str
    name: str
    inputs: Mapping[str, tuple[str, Array]] | None = None


def text_of(data: bytes, name: str) -> tuple[str, str]:
    """The text that bytes are, or the text of their binary form, and its name for messages.

    raises  ParseError for bytes that are neither, with the kind of file if it is known; ToolError without jaxlib
    """
    if kind_of(data := decompressed(data, name)) is None:
        return decoded(data, name, STAGE), name
    found = read_binary(data, name)
    return found.text, found.name


@lru_cache(maxsize=8)
def read_binary(data: bytes, name: str) -> Binary:
    """The text of a binary form. raises ParseError where it is damaged, ToolError without jaxlib"""
    kind = kind_of(data := decompressed(data, name))
    inputs = None
    if kind in (BinaryKind.MODULE, BinaryKind.SNAPSHOT):
        found = saved_module(data)
        assert found is not None
        text = converted(found.module, "proto", "hlo", name, described(data))
        if kind is BinaryKind.SNAPSHOT:
            from xla_emitters.text.binary.literal_protos import arguments_of  # imported here: it loads NumPy

            inputs = arguments_of(found, name)
    else:
        source = "bytecode" if kind is BinaryKind.BYTECODE else "export"
        text = converted(data, source, "stablehlo", name, described(data))
    return Binary(text.decode(), f"{name}{AS_TEXT}", inputs)


def decompressed(data: bytes, name: str) -> bytes:
    """What gzip compressed, as XLA does with --xla_dump_compress_protos; other bytes as they are.

    raises ParseError where it is damaged, or larger than MOST_BYTES
    """
    if not data.startswith(GZIP):
        return data
    unpacking = zlib.decompressobj(wbits=31)
    try:
        found = unpacking.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise ParseError(f"{name} is compressed by gzip, and damaged: {error}", stage=STAGE) from error
    if not unpacking.eof:
        cut = "it is cut" if not unpacking.unconsumed_tail else f"it holds more than {MOST_BYTES >> 20} MiB"
        raise ParseError(f"{name} is compressed by gzip, and {cut}", stage=STAGE)
    return found


def written(text: str, form: str, name: str) -> bytes:
    """Text of StableHLO as "bytecode", or of HLO as a "proto". raises ParseError where jaxlib does not take it, ToolError without jaxlib"""
    source = {"bytecode": "stablehlo", "proto": "hlo"}[form]
    return converted(text.encode(), source, form, name, f"text, to be written as {form}")


def converted(data: bytes, source: str, target: str, name: str, what: str) -> bytes:
    """What `jaxlib_process` makes of the data."""
    command = [sys.executable, "-P", str(Path(jaxlib_process.__file__)), *sys.path]
    request = json.dumps({"from": source, "to": target}).encode() + b"\n"
    help = "" if source in ("stablehlo", "hlo") else "the file is cut or damaged, or of a newer version than jaxlib"
    try:
        answer = run_tool(command, request + data, TIMEOUT_SECONDS + len(data) / BYTES_PER_SECOND).result
    except ToolError as error:
        said = next((line for line in error.details if not line.startswith("command: ")), "")
        ended = error.message.partition(" failed ")[2] or error.message
        raise ParseError(
            f"{name} is {what}, and XLA's reader ended: {ended}",
            stage=STAGE,
            details=(said,) if said else (),
            help=help,
        ) from error
    message = answer[1:].decode(errors="replace")
    if answer.startswith(MISSING):
        raise ToolError(
            f"{name} is {what}, which is read through jaxlib, and jaxlib is not installed ({message})",
            stage=STAGE,
            help=install_command(extras="xla"),
        )
    if not answer.startswith(CONVERTED):
        first, *rest = [line for line in message.splitlines() if line.strip()] or ["nothing was said"]
        raise ParseError(
            f"{name} is {what}, and XLA does not read it: {first.strip()}",
            stage=STAGE,
            details=tuple(rest[:8]),
            help=help,
        )
    return answer[1:]
