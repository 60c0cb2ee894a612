"""Programs compiled before: kept in memory for this process, and on disk for all.

    <user's cache directory>/xla-emitters/programs/3f/3fa97c...        sha256 of all that the program depends on
        5c0e41...                                                        sha256 of the rest of the file
        {"program": {...}, "traces": [...]}

An entry of another schema is a miss and is deleted, like a damaged one (`entry_cache`).
Source: docs/reference/contracts "Cache".
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from xla_emitters.program import Program
from xla_emitters.runtime.entry_cache import EntryCache
from xla_emitters.trace import SCHEMA, Trace

DIRECTORY = "XLA_EMITTERS_CACHE_DIR"
DISABLE = "XLA_EMITTERS_DISABLE_CACHE"
LIMIT_BYTES = 256 * 2**20
IN_MEMORY = 128
"""Most programs that one process keeps in memory."""


def cache_directory() -> Path:
    """`XLA_EMITTERS_CACHE_DIR`, or the platform's directory for caches of this user."""
    if given := os.environ.get(DIRECTORY):
        return Path(given)
    from platformdirs import user_cache_path

    return user_cache_path("xla-emitters", appauthor=False)


def is_disabled() -> bool:
    """Whether `XLA_EMITTERS_DISABLE_CACHE` is set, to anything but "" and "0"."""
    return os.environ.get(DISABLE, "") not in ("", "0")


def key_of(*parts: str) -> str:
    """The key of a value that depends on `parts` and nothing else."""
    digest = hashlib.sha256()
    for part in (f"schema {SCHEMA}", *parts):
        data = part.encode()
        digest.update(b"%d " % len(data))
        digest.update(data)
    return digest.hexdigest()


def optimized_entries(directory: Path) -> EntryCache:
    """The modules that XLA has optimized, in a directory for caches."""
    return EntryCache(directory / "optimized", LIMIT_BYTES)


@dataclass
class ProgramCache:
    """The cache of compiled programs; see the file's head.

    directory  holds `programs/`
    limit      bytes on disk
    """

    directory: Path
    limit: int = LIMIT_BYTES
    _held: OrderedDict[str, Program] = field(default_factory=OrderedDict[str, Program])
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: str) -> Program | None:
        """The program kept under `key`, from memory or from disk."""
        with self._lock:
            if (held := self._held.get(key)) is not None:
                self._held.move_to_end(key)
                return held
        data = self._entries.get(key)
        program = None if data is None else _read(data)
        if data is not None and program is None:
            self._entries.drop(key)
        if program is not None:
            self._hold(key, program)
        return program

    def put(self, key: str, program: Program) -> None:
        """Keeps `program` under `key`, and deletes entries beyond the limit."""
        self._hold(key, program)
        traces = [trace.to_json() for trace in program.traces]
        content = {"program": program.to_json(), "graph": program.graph.to_json(), "traces": traces}
        self._entries.put(key, json.dumps(content).encode())

    def entries(self) -> Iterator[Path]:
        """The files of all entries, also those that a process was writing when it died."""
        return self._entries.entries()

    def size(self) -> tuple[int, int]:
        """(entries, bytes) on disk."""
        return self._entries.size()

    def clear(self) -> int:
        """Deletes everything; returns how many entries were on disk."""
        with self._lock:
            self._held.clear()
        return self._entries.clear()

    @property
    def _entries(self) -> EntryCache:
        return EntryCache(self.directory / "programs", self.limit)

    def _path(self, key: str) -> Path:
        return self._entries.path(key)

    def _hold(self, key: str, program: Program) -> None:
        with self._lock:
            self._held[key] = program
            self._held.move_to_end(key)
            while len(self._held) > IN_MEMORY:
                self._held.popitem(last=False)


def _read(data: bytes) -> Program | None:
    """The program in an entry; None for an entry that another version wrote."""
    try:
        content = json.loads(data)
        traces = tuple(map(Trace.from_json, content["traces"]))
        return Program.from_json(content["program"], Trace.from_json(content["graph"]), traces)
    except (ValueError, KeyError, TypeError):
        return None


_OPEN: dict[Path, ProgramCache] = {}


def open_cache() -> ProgramCache | None:
    """The cache of this user, one object per process and directory; None when it is disabled."""
    if is_disabled():
        return None
    directory = cache_directory()
    return _OPEN.setdefault(directory, ProgramCache(directory))
