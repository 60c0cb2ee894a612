"""Files that are not text: the message names their kind, and how their text is made."""

import io
import zipfile

import numpy as np
import pytest

from xla_emitters.errors import ParseError
from xla_emitters.support.decoding import BinaryKind, decoded, kind_of, saved_module

BYTECODE = b"ML\xefR\rStableHLO_v1.18.0\0\x015\x05"


def proto(*fields: tuple[int, bytes]) -> bytes:
    """A message of Protocol Buffers with fields of bytes."""
    found = b""
    for number, data in fields:
        size, length = len(data), b""
        while size >= 128:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        found += bytes([number << 3 | 2]) + length + bytes([size]) + data
    return found


COMPUTATION = proto((1, b"main"), (2, proto((1, b"p0"), (2, b"parameter"))), (5, b"\xff" * 200))
MODULE = proto((1, b"jit_f"), (2, b"main.3"), (3, COMPUTATION)) + b"\x28\x01"


def zipped() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("kernel.ptx", bytes(range(256)))
    return data.getvalue()


def array() -> bytes:
    data = io.BytesIO()
    np.save(data, np.ones(3))
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "kind", "help"),
    [
        (
            BYTECODE,
            "MLIR bytecode (StableHLO_v1.18.0), not text",
            "",
        ),
        (b"ML\xefR\x01MLIR22\0", "MLIR bytecode (MLIR22), not text", ""),
        (b"\x40\0\0\0\0\0\x3a\0" * 8 + BYTECODE, "a blob of jax.export", ""),
        (MODULE, "an HLO proto", ""),
        (proto((1, MODULE)), "an HLO proto", ""),
        (proto((1, b"f"), (2, b"main"), (3, COMPUTATION[:60])), "not text", "cut or damaged"),
        (zipped(), "a ZIP archive", ""),
        (b"\x1f\x8b\x08\0\0\xff", "compressed by gzip", ""),
        (b"\x7fELF\x02\x01\x01\xff", "an ELF file", ""),
        (b"BC\xc0\xde5\x14", "LLVM bitcode", ""),
        (array(), "an array of NumPy", ""),
        ("module {}".encode("utf-16"), "text in UTF-16", ""),
        (b"\n\xff HloModule", "not text: byte 1 is 0xff", ""),
        (b"HloModule \xff", "not text: byte 10 is 0xff", ""),
        (MODULE[:-150], "not text: byte", "if it is an HLO proto, it is cut or damaged"),
    ],
)
def test_a_file_that_is_not_text_is_named(data: bytes, kind: str, help: str) -> None:
    with pytest.raises(ParseError) as found:
        decoded(data, "x/f.bin", "read")
    assert found.value.message.startswith(f"x/f.bin is {kind}")
    assert help in found.value.help
    assert bool(help) == bool(found.value.help)


def test_text_stays_text() -> None:
    for text in ("", "HloModule m\n", "\nmodule {}", "// \u00e4 \0\n", "\n\x05abcde"):
        assert decoded(text.encode(), "f", "read") == text


def test_the_arguments_of_a_snapshot_are_found() -> None:
    """An HloSnapshot has them beside its HloProto, an HloUnoptimizedSnapshot those of each partition beside the module."""
    assert saved_module(MODULE) == saved_module(proto((1, MODULE))) == (MODULE, [], False)
    snapshot = proto((1, proto((1, MODULE))), (2, b"a"), (2, b"b"), (3, b"r"))
    assert saved_module(snapshot) == (MODULE, [[b"a", b"b"]], False)
    partitions = proto((1, b"a"), (1, b"b")), proto((1, b"c"))
    unoptimized = proto((1, MODULE), *((2, each) for each in partitions))
    assert saved_module(unoptimized) == (MODULE, [[b"a", b"b"], [b"c"]], False)
    assert kind_of(proto((1, proto((1, MODULE))), (2, b"a"))) is BinaryKind.SNAPSHOT
    assert kind_of(proto((1, proto((1, MODULE))))) is BinaryKind.MODULE
