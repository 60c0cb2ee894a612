"""Arrays of an `.npz` file: their headers are read first, their data only when asked for.

    with opened("in.npz") as archive:
        archive.keys                     ["p0", "p1"]
        archive.header("p0")             Header(dtype('float32'), (2, 3), fortran_order=False, ...)
        archive.data("p0", header)       the array; never more bytes than the header says

A file of 4 MB can unpack to 4 GB. So a caller checks type and shape before it reads the data. A header longer
than `LONGEST_HEADER` is refused without being read, and one that disagrees with the size of its member before the data is unpacked.
Nothing is ever unpickled. Source: NumPy's NEP 1 (the `.npy` format, versions 1 to 3).
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array

LONGEST_HEADER = 10_000
"""Bytes. NumPy refuses longer ones too, but unpacks them first."""

CHUNK = 1 << 20
"""Bytes of data that are unpacked at a time."""

_LENGTH_FORMATS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}
"""Version of the format -> how the length of the header's text is written."""


@dataclass(frozen=True)
class Header:
    """The parsed header of a member.

    size        bytes of the header itself, before the data
    data_size   bytes of data of an array of this type and shape
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    size: int

    @property
    def data_size(self) -> int:
        return self.dtype.itemsize * prod(self.shape)


@dataclass(frozen=True)
class Archive:
    """An open `.npz` file. `members`: key, which is the name without `.npy` -> place in the archive."""

    path: object
    zip: ZipFile
    members: dict[str, ZipInfo]

    @property
    def keys(self) -> list[str]:
        return list(self.members)

    def header(self, key: str) -> Header:
        """The header of the member `key`. raises DataError for a member that is not a `.npy` file, or holds Python objects."""
        info = self.members[key]
        try:
            with self.zip.open(info) as stream:
                header = read_header(stream)
        # zipfile, its decompressors, Python's literals and NumPy raise errors without a common base for damaged data.
        except Exception as error:
            raise self._refusal(f"the header of '{key}' cannot be read ({_reason(error)})") from error
        if header.dtype.hasobject:
            raise self._refusal(f"'{key}' holds Python objects")
        return header

    def check_size(self, key: str, header: Header) -> None:
        """raises DataError where the member `key` is longer or shorter than its header says. Reads the archive's directory alone."""
        present = self.members[key].file_size - header.size
        if present != header.data_size:
            extents = ",".join(map(str, header.shape))
            raise self._refusal(
                f"the header of '{key}' says {header.dtype}[{extents}], {header.data_size} bytes, but there are {present}"
            )

    def data(self, key: str, header: Header) -> Array:
        """The array of the member `key`, in memory as it is stored. raises DataError for data that is damaged or cut."""
        self.check_size(key, header)
        elements = np.empty(prod(header.shape), header.dtype)
        try:
            with self.zip.open(self.members[key]) as stream:
                stream.read(header.size)
                _fill(elements.view(np.uint8).data, stream)
        except MemoryError:
            raise
        except Exception as error:  # as above
            raise self._refusal(f"the data of '{key}' cannot be read ({_reason(error)})") from error
        if header.fortran_order:
            return elements.reshape(header.shape[::-1]).transpose()
        return elements.reshape(header.shape)

    def _refusal(self, reason: str) -> DataError:
        return DataError(f"{self.path} is not an .npz file of plain arrays: {reason}", stage="arrays")


@contextmanager
def opened(path: str | Path | BytesIO) -> Generator[Archive]:
    """The `.npz` file at `path`, or in a stream. raises OSError where it cannot be opened, DataError where it is not an `.npz` file."""
    with Path(path).open("rb") if isinstance(path, str | Path) else path as stream:
        if stream.read(npy.MAGIC_LEN - 2) == npy.MAGIC_PREFIX:
            raise DataError(f"{path} is a single array, not an .npz file", stage="arrays")
        try:
            archive = ZipFile(stream)
        except (
            Exception
        ) as error:  # zipfile's own errors, and those of `struct`, codecs and seeking for a damaged directory
            raise DataError(f"{path} is not an .npz file of plain arrays: {_reason(error)}", stage="arrays") from error
        with archive:
            yield Archive(path, archive, {info.filename.removesuffix(".npy"): info for info in archive.infolist()})


def read_header(stream: IO[bytes]) -> Header:
    """The header of a `.npy` file, from its beginning. raises DataError or ValueError, or what NumPy raises for its text."""
    magic = _exactly(stream, npy.MAGIC_LEN)
    version = (magic[-2], magic[-1])
    if magic[:-2] != npy.MAGIC_PREFIX:
        raise ValueError("it does not begin as an array does")
    if version not in _LENGTH_FORMATS:
        raise ValueError(f"version {version[0]}.{version[1]} is not known")
    length_bytes = _exactly(stream, struct.calcsize(_LENGTH_FORMATS[version]))
    (length,) = struct.unpack(_LENGTH_FORMATS[version], length_bytes)
    if length > LONGEST_HEADER:
        raise ValueError(f"it is {length} bytes long, the longest allowed is {LONGEST_HEADER}")
    # Version 3 differs from 2 in the encoding of field names alone, and an array with fields is never wanted.
    text = BytesIO(struct.pack("<I", length) + _exactly(stream, length))
    shape, fortran_order, dtype = npy.read_array_header_2_0(text)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"its shape is {list(shape)}")
    return Header(dtype, shape, fortran_order, len(magic) + len(length_bytes) + length)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    """The next `size` bytes. raises ValueError where there are fewer."""
    found = stream.read(size)
    if len(found) != size:
        raise ValueError("it is cut short")
    return found


def _fill(data: memoryview, stream: IO[bytes]) -> None:
    """Fills `data`, then reads to the end, where zipfile compares the checksum. raises ValueError where the stream ends early."""
    place = 0
    while place < len(data):
        piece = stream.read(min(CHUNK, len(data) - place))
        if not piece:
            raise ValueError(f"{len(data)} bytes are wanted, and there are {place}")
        data[place : place + len(piece)] = piece
        place += len(piece)
    stream.read(1)


def _reason(error: Exception) -> str:
    """The first words of the error's text: NumPy quotes a whole header."""
    return str(error).partition("\n")[0][:200] or type(error).__name__
