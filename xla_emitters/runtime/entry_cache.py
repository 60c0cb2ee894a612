"""Files by key, kept on disk for all processes of a user.

    <directory>/3f/3fa97c...        named by the key, whose first two letters name the folder
        5c0e41...                     sha256 of the rest of the file
        (the bytes)

An entry is written to a temporary file and renamed, so that a reader sees all of it or none; processes may share the directory.
An entry whose hash differs (cut short, changed) is a miss and is deleted. Beyond `limit` bytes the entries unused for longest are deleted
first. A directory that cannot be written is not an error: nothing is kept then.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class EntryCache:
    """A directory of entries; see the file's head.

    directory  of the entries
    limit      bytes on disk
    """

    directory: Path
    limit: int

    def get(self, key: str) -> bytes | None:
        """The bytes kept under `key`; None on a miss."""
        path = self.path(key)
        try:
            digest, _, data = path.read_bytes().partition(b"\n")
        except OSError:
            return None
        if hashlib.sha256(data).hexdigest().encode() != digest:
            self.drop(key)
            return None
        with suppress(OSError):
            os.utime(path)  # marks it as the most recently used
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keeps `data` under `key`, and deletes entries beyond the limit."""
        path = self.path(key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
                os.replace(name, path)
            except OSError:
                os.unlink(name)
                raise
            self._shrink()

    def drop(self, key: str) -> None:
        """Deletes one entry."""
        with suppress(OSError):
            self.path(key).unlink()

    def entries(self) -> Iterator[Path]:
        """The files of all entries, also those that a process was writing when it died."""
        return (path for path in self.directory.glob("??/*") if path.is_file())

    def size(self) -> tuple[int, int]:
        """(entries, bytes) on disk."""
        sizes = [size for _, size, _ in self._by_use()]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Deletes everything; returns how many entries there were."""
        removed = 0
        for path in list(self.entries()):
            with suppress(OSError):
                path.unlink()
                removed += 1
        return removed

    def keys(self, prefix: str) -> list[str]:
        """The keys with that prefix, which has two letters at least."""
        return [path.name for path in (self.directory / prefix[:2]).glob(f"{prefix}*")]

    def path(self, key: str) -> Path:
        """Path of the entry of that key, present or not."""
        return self.directory / key[:2] / key

    def _by_use(self) -> list[tuple[float, int, Path]]:
        """(time of last use, bytes, file) of every entry, least recently used first."""
        found = list[tuple[float, int, Path]]()
        for path in self.entries():
            with suppress(OSError):  # another process may delete it first
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        return sorted(found)

    def _shrink(self) -> None:
        entries = self._by_use()
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= self.limit:
                return
            with suppress(OSError):
                path.unlink()
            total -= size
