"""The constants of a program, by name: read from a file when they are first needed, and cached.

    constants = StoredConstants(Path("layer.npz"))            or a dictionary of bytes by name
    constants.get("40F7E71261729523BBE798C4347EEA1B_i32_2", np.dtype("i4"))     ->     array([0, 1], dtype=int32), read-only

A name is the MD5 of the hexadecimal text of the bytes, a type code, and sizes (`disc-convert-const-to-ral`). The file is an .npz archive of
bytes; a constant with equal elements is stored as one element. Nothing is unpickled. A missing key, data of another length, and a wrong
digest are errors that name the constant.
Source: docs/reference/4 4.4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array, numpy_type
from xla_emitters.runtime.npz import opened

STAGE = "ral"


def constants_in(path: str) -> Callable[[str, str], Array] | None:
    """Reads constants from a file: (name, HLO's name of the element type). None for no file, ""."""
    if not path:
        return None
    held = StoredConstants(Path(path).absolute())
    return lambda name, element: held.get(name, numpy_type(element))


class StoredConstants:
    """The constants of one program.

    source  the file, or the bytes of each constant by name
    """

    def __init__(self, source: Path | Mapping[str, bytes]) -> None:
        self._source = source
        self._arrays = dict[tuple[str, str], Array]()

    def get(self, name: str, dtype: np.dtype[Any]) -> Array:
        """The constant of that name, with elements of type `dtype`. raises DataError naming it."""
        if (name, dtype.name) not in self._arrays:
            self._arrays[name, dtype.name] = self._read(name, dtype)
        return self._arrays[name, dtype.name]

    def _read(self, name: str, dtype: np.dtype[Any]) -> Array:
        digest, _, *sizes = name.split("_")
        shape = tuple(int(size) for text in sizes for size in text.split("x"))
        data, wanted = self._bytes(name), prod(shape) * dtype.itemsize
        if len(data) == dtype.itemsize:
            data *= prod(shape)
        if len(data) != wanted:
            raise self._fault(name, f"it has {len(data)} bytes, not {wanted}")
        found = hashlib.md5(data.hex().upper().encode(), usedforsecurity=False).hexdigest().upper()
        if found != digest:
            raise self._fault(name, f"its data have the digest {found}")
        return np.frombuffer(data, dtype).reshape(shape)

    def _bytes(self, name: str) -> bytes:
        if not isinstance(self._source, Path):
            if name not in self._source:
                raise self._fault(name, "the program has no such constant")
            return self._source[name]
        try:
            with opened(self._source) as archive:
                if name not in archive.members:
                    raise self._fault(name, f"{self._source} has no such entry")
                header = archive.header(name)
                if header.dtype != np.uint8 or len(header.shape) != 1:
                    raise self._fault(name, f"{self._source} holds {header.dtype}{list(header.shape)}, not bytes")
                archive.check_size(name, header)
                return archive.data(name, header).tobytes()
        except OSError as error:
            raise self._fault(name, f"{self._source} cannot be read: {error.strerror}") from error

    def _fault(self, name: str, why: str) -> DataError:
        return DataError(f"constant '{name}': {why}", stage=STAGE)
