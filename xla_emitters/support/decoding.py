"""Bytes to text. Binary forms of programs are recognised by their bytes; `text.binary.reading` turns them into text.

    kind_of(b"ML\\xefR...")        BinaryKind.BYTECODE
    decoded(b"ML\\xefR...", "x.mlirbc", "read")
    error: [read] x.mlirbc is MLIR bytecode (StableHLO_v1.18.0), not text in UTF-8

Source: the first bytes of each format: MLIR's bytecode, Protocol Buffers, FlatBuffers, PKZIP, ELF, LLVM's bitcode; XLA's
hlo.proto for the fields of its messages.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from xla_emitters.errors import ParseError
from xla_emitters.support.wire import delimited, message, messages, packed

BYTECODE = b"ML\xefR"
"""The first bytes of MLIR's bytecode."""
GZIP = b"\x1f\x8b"
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive",
    GZIP: "compressed by gzip",
    b"\x7fELF": "an ELF file, such as a cubin",
    b"BC\xc0\xde": "LLVM bitcode",
    b"\x93NUMPY": "an array of NumPy",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_LONGEST_SIZE = 6
"""Bytes: of a size below 2 GiB, and the first of the message."""
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
    if _may_be_proto(data) and (found := saved_module(data)):
        return BinaryKind.SNAPSHOT if any(found.arguments) else BinaryKind.MODULE
    return BinaryKind.EXPORT if BYTECODE in data else None


def _may_be_proto(data: bytes) -> bool:
    """Field 1, of bytes, is the first of each message with a module; its size may stand before it. Texts have no control characters."""
    return b"\n" in data[:_LONGEST_SIZE] and _CONTROL.search(data, 0, 4096) is not None


class SavedModule(NamedTuple):
    """What a message with an HLO module holds.

    module      the HloModuleProto
    arguments   those of each device; none if the message is no snapshot
    serialized  whether an argument is what XLA's Literal::Serialize writes, not a LiteralProto
    """

    module: bytes
    arguments: list[list[bytes]]
    serialized: bool = False


def saved_module(data: bytes) -> SavedModule | None:
    """The module in a message, and the arguments beside it; None where there is none.

    The module is the message itself; field 1 of an HloProto, beside which an HloUnoptimizedSnapshot has the arguments of each partition in
    field 2; or field 1 of the HloProto in field 1 of an HloSnapshot, which has its arguments in field 2. With --xla_dump_hlo_as_proto, XLA
    writes an HloUnoptimizedSnapshot behind its size; in it are the sizes of the arguments, which follow it one after another.
    """
    try:
        if data[:1] != b"\n":
            head, rest = delimited(data)
            found = message(head)
            (module,) = messages(found[1])
            sizes = [
                [packed(message(each)[2])[0] for each in messages(message(partition).get(2, []))]
                for partition in messages(found.get(2, []))
            ]
            if not _is_module(message(module)) or sum(map(sum, sizes)) > len(rest):
                return None
            at = 0
            arguments = [[rest[at : (at := at + size)] for size in partition] for partition in sizes]
            return SavedModule(module, arguments, True)
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
    return SavedModule(data, arguments)


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
