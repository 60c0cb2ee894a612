"""What was computed before, kept on disk for all processes of a user, by kind and key.

    <user's cache directory>/xla-emitters/programs/3f/3fa97c...        a compiled program; named by the key, whose first two letters
        5c0e41...                     sha256 of the rest of the file       name the folder
        (the bytes)
    <user's cache directory>/xla-emitters/optimized/07/07bb31...       a module that XLA optimized

A key is the hash of all that a value depends on, this package and its libraries among it (`key_of`). An entry is written to a temporary
file and renamed, so that a reader sees all of it or none; processes may share the directory. An entry whose hash differs (cut short,
changed) is a miss and is deleted. Beyond `LIMIT_BYTES` of a kind the entries unused for longest are deleted first. A directory that cannot
be written is not an error: nothing is kept then. Source: docs/reference/contracts "Cache".
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from xla_emitters.settings import Settings
from xla_emitters.support.extras import version_read
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.trace import SCHEMA

LIMIT_BYTES = 256 * 2**20
PROGRAMS, OPTIMIZED = "programs", "optimized"
"""The kinds."""
LIBRARIES = ("xdsl", "numpy", "ml_dtypes")


def cache_directory(settings: Settings) -> Path:
    """The directory of the settings, or the platform's directory for caches of this user."""
    if settings.cache_dir:
        return Path(settings.cache_dir)
    from platformdirs import user_cache_path

    return user_cache_path("xla-emitters", appauthor=False)


def key_of(*parts: str) -> str:
    """The key of a value that depends on `parts`, the code of this package, its libraries, and nothing else."""
    digest = hashlib.sha256()
    for part in (f"schema {SCHEMA}", own_fingerprint(), *parts):
        data = part.encode()
        digest.update(b"%d " % len(data))
        digest.update(data)
    return digest.hexdigest()


@lru_cache
def own_fingerprint() -> str:
    """A hash that changes with any file of this package and any version of a library whose types and numbers are in cached programs."""
    digest = hashlib.sha256(" ".join(map(version_read, LIBRARIES)).encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """The entries of one kind; see the file's head.

    directory  of the entries
    limit      bytes on disk
    """

    directory: Path
    limit: int = LIMIT_BYTES

    @staticmethod
    def of(kind: str, settings: Settings) -> Cache:
        """That of this user."""
        return Cache(cache_directory(settings) / kind)

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
