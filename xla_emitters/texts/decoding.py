"""Bytes to text. Binary forms of programs are recognised by their bytes; `binary.reading` turns them into text.

    kind_of(b"ML\\xefR...")        BinaryKind.BYTECODE
    decoded(b"ML\\xefR...", "x.mlirbc", "read")
    error: [read] x.mlirbc is MLIR bytecode (StableHLO_v1.18.0), not text in UTF-8

Source: the first bytes of each format: MLIR's bytecode, Protocol Buffers, FlatBuffers, PKZIP, ELF, LLVM's bitcode; XLA's
hlo.proto for the fields of its messages.
"""

from __future__ import annotations

import re
from enum import Enum

from xla_emitters.errors import ParseError
from xla_emitters.texts.wire import message, messages

BYTECODE = b"ML\xefR"
"""The first bytes of MLIR's bytecode."""
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "compressed by gzip",
    b"\x7fELF": "an ELF file, such as a cubin",
    b"BC\xc0\xde": "LLVM bitcode",
    b"\x93NUMPY": "an array of NumPy",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""Bytes that text has only by accident, and messages of Protocol Buffers for their fields and sizes."""


class BinaryKind(Enum):
    """A binary form of a program. The value says what it is, in messages."""

    BYTECODE = "MLIR bytecode"
    EXPORT = "a blob of jax.export"
    MODULE = "an HLO proto"
    SNAPSHOT = "an HLO snapshot"


def kind_of(data: bytes) -> BinaryKind | None:
    """The binary form of a program that these bytes are, or None.

    >>> kind_of(b"ML\\xefR\\rStableHLO"), kind_of(b"HloModule m")
    (<BinaryKind.BYTECODE: 'MLIR bytecode'>, None)
    """
    if data.startswith(BYTECODE):
        return BinaryKind.BYTECODE
    if any(map(data.startswith, _OTHERS)):
        return None
    # Field 1, of bytes, is the first of each of these messages; the texts that begin with an empty line have no control characters.
    if data[:1] == b"\n" and _CONTROL.search(data, 0, 4096):
        return (
            BinaryKind.SNAPSHOT
            if (found := modules_of(data)) and any(found[0])
            else BinaryKind.MODULE
            if found
            else None
        )
    return BinaryKind.EXPORT if BYTECODE in data else None


def modules_of(data: bytes) -> tuple[list[list[bytes]], bytes] | None:
    """The arguments of each device in a message with an HLO module, and the HloModuleProto; None where there is none.

    The module is the message itself; field 1 of an HloProto, beside which an HloUnoptimizedSnapshot has the arguments of each partition in
    field 2; or field 1 of the HloProto in field 1 of an HloSnapshot, which has its arguments in field 2.
    """
    try:
        around: list[dict[int, list[int | bytes]]] = []
        for _ in range(3):
            found = message(data)
            if _is_module(found):
                break
            around.insert(0, found)
            (data,) = messages(found[1])
        else:
            return None
        given = messages(around[-1].get(2, [])) if around else []
        is_snapshot = len(around) == 2
        arguments = [given] if is_snapshot else [messages(message(inputs).get(1, [])) for inputs in given]
    except (ValueError, KeyError):
        return None
    return arguments, data


def _is_module(found: dict[int, list[int | bytes]]) -> bool:
    """Whether the fields are those of an HloModuleProto: its name, its entry's name, and computations with a name and instructions."""
    for computation in messages(found.get(3, [])):
        try:
            return 2 in found and {1, 2} <= message(computation).keys()
        except ValueError:
            break
    return False


def described(data: bytes) -> str:
    """What bytes are that are not text; "" where their first bytes do not say.

    >>> described(b"ML\\xefR\\rStableHLO_v1.18.0\\0"), described(b"PK\\x03\\x04")
    ('MLIR bytecode (StableHLO_v1.18.0)', 'a ZIP archive')
    """
    if (kind := kind_of(data)) is BinaryKind.BYTECODE:
        producer = re.match(rb"[\x00-\x1f]{1,2}([\x20-\x7e]+)\0", data[len(BYTECODE) : 200])
        return f"{kind.value} ({producer[1].decode()})" if producer else kind.value
    return kind.value if kind else next((what for magic, what in _OTHERS.items() if data.startswith(magic)), "")


def decoded(data: bytes, name: str, stage: str) -> str:
    """`data` as UTF-8 text. raises ParseError that names the kind of file, or the first bad byte"""
    what, help = described(data), ""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not what and data[:1] == b"\n" and _CONTROL.search(data, 0, 64):
            help = "if it is an HLO proto, it is cut or damaged"
        what = what or f"not text: byte {error.start} is 0x{data[error.start]:02x}"
    else:
        if not what:
            return text
    said = f"{name} is {what}{'' if what.startswith('not') else ', not text in UTF-8'}"
    raise ParseError(said, stage=stage, help=help)
