"""Bytes to text. For bytes that are not text the error names the kind of file, and how its text is made.

    error: [read] x.mlirbc is MLIR bytecode (StableHLO_v1.18.0), not text in UTF-8
        help: print it as text: stablehlo-translate --deserialize x.mlirbc > FILE.mlir, or python -c '...' > FILE.mlir

Source: the first bytes of each format: MLIR's bytecode format, Protocol Buffers' wire format, FlatBuffers, PKZIP, ELF, LLVM's bitcode.
"""

from __future__ import annotations

import re

from xla_emitters.errors import ParseError

_BYTECODE = b"ML\xefR"
_STABLEHLO = (
    "from jaxlib.mlir import ir; from jaxlib.mlir.dialects import stablehlo; "
    'print(stablehlo.deserialize_portable_artifact(ir.Context(), open("{}", "rb").read()))'
)
_EXPORT = 'from jax import export; print(export.deserialize(bytearray(open("{}", "rb").read())).mlir_module())'
_PROTO = (
    "from jaxlib import _hlo; "
    'print(_hlo.HloModule.from_serialized_hlo_module_proto(open("{}", "rb").read()).to_string())'
)
_WITHOUT_HELP = {
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "compressed by gzip",
    b"\x7fELF": "an ELF file, such as a cubin",
    b"BC\xc0\xde": "LLVM bitcode",
    b"\x93NUMPY": "an array of NumPy",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}


def decoded(data: bytes, name: str, stage: str) -> str:
    """`data` as UTF-8 text. raises ParseError that names the kind of file, or the first bad byte"""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        found = _kind(data, name)
        kind, help = found or (f"not text: byte {error.start} is 0x{data[error.start]:02x}", "")
        said = f"{name} is {kind}{', not text in UTF-8' if found else ''}"
        raise ParseError(said, stage=stage, help=help) from error
    # A small proto may have no byte that UTF-8 does not have.
    if "\0" in text and (found := _kind(data, name)):
        raise ParseError(f"{name} is {found[0]}, not text in UTF-8", stage=stage, help=found[1])
    return text


def _kind(data: bytes, name: str) -> tuple[str, str] | None:
    """What a file of these bytes is, and how to print it as text; None if its bytes do not say."""

    file = name if re.fullmatch(r"[\w./+-]+", name) else "FILE"

    def printed(code: str, suffix: str, before: str = "") -> str:
        return f"print it as text: {before}python -c '{code.format(file)}' > FILE.{suffix}"

    if data.startswith(_BYTECODE):
        producer = re.match(rb"[\x00-\x1f]{1,2}([\x20-\x7e]+)\0", data[len(_BYTECODE) : 200])
        version = f" ({producer[1].decode()})" if producer else ""
        return f"MLIR bytecode{version}", printed(
            _STABLEHLO, "mlir", f"stablehlo-translate --deserialize {file} > FILE.mlir, or "
        )
    for magic, kind in _WITHOUT_HELP.items():
        if data.startswith(magic):
            return kind, ""
    if _BYTECODE in data:
        return "a blob of jax.export, or another file with MLIR bytecode inside", printed(_EXPORT, "mlir")
    if data[:1] == b"\n" and _is_message(data):  # field 1, the name of a module, or the module of an HloProto
        return "an HLO proto, or another message of Protocol Buffers", printed(_PROTO, "hlo")
    return None


def _is_message(data: bytes) -> bool:
    """Whether the bytes are the fields of a message of Protocol Buffers."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 2:
            size, at = _varint(data, at)
            at += size
        elif wire == 0:
            _, at = _varint(data, at)
        else:
            at += {1: 8, 5: 4}.get(wire, len(data))
        if key < 8 or at > len(data):
            return False
    return True


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it, which is beyond the data where the number is cut."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128 or shift > 63:
            return value, at
    return value, len(data) + 1
