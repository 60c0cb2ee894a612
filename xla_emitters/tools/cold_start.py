"""Makes a command start and end sooner than Python alone would: for a process that runs one verb, not for a library.

    begin()        first thing in a console script

- Code of dataclasses. `@dataclass` writes `__init__`, `__eq__` ... as text and compiles it each time a class is made: 3,000 texts for
  the 500 dataclasses of xDSL and this package, a fifth of the time to load the compiler. The compiled code is cached beside this file's
  bytecode, under the same rules: each Python version has its own file, `PYTHONDONTWRITEBYTECODE` writes none, and a directory that cannot
  be written is not an error. The key is the whole text, so a class that changes is compiled anew and no entry is ever wrong.
- The garbage collector. Loading the compiler makes half a million objects that live until the end, and a compilation leaves almost no
  cyclic garbage: a collection every 700 objects costs a fifth of the time. At exit Python would scan all objects once more, which takes as
  long as compiling a small kernel; it does not scan frozen objects, and the system frees their memory.
"""

from __future__ import annotations

import atexit
import dataclasses
import gc
import marshal
import os
import sys
from contextlib import suppress
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any

MOST_TEXTS = 10_000
"""Above this size, texts that this process did not use are dropped: they belong to classes that were changed."""


def begin() -> None:
    """Prepares the process for one command. A second call does nothing."""
    gc.set_threshold(1_000_000, 50, 50)
    if not isinstance(vars(dataclasses).get("exec"), KeptCode):
        kept = KeptCode(Path(cache_from_source(__file__)).with_suffix(".dataclasses"))
        setattr(dataclasses, "exec", kept)  # noqa: B010  a module's global is found before the builtin function of that name
        atexit.register(_end, kept)


def _end(kept: KeptCode) -> None:
    if not sys.dont_write_bytecode:
        kept.write()
    gc.freeze()


class KeptCode:
    """`exec` that caches the code of each text in a file."""

    def __init__(self, path: Path):
        self.path = path
        self.known = self._read()
        self.used = dict[str, CodeType]()

    def __call__(self, text: str, variables: dict[str, Any] | None = None, local: dict[str, Any] | None = None) -> None:
        if (code := self.known.get(text)) is None:
            code = compile(text, "<string>", "exec")
        self.used[text] = code
        exec(code, variables, local)

    def _read(self) -> dict[str, CodeType]:
        """The code in the file; empty where the file is missing or incomplete."""
        with suppress(OSError, ValueError, EOFError, TypeError):
            data = self.path.read_bytes()
            if data.startswith(MAGIC_NUMBER):
                return marshal.loads(memoryview(data)[len(MAGIC_NUMBER) :])
        return {}

    def write(self) -> None:
        """Adds what this process compiled to the file. Of processes that write at the same time, the last one's file remains."""
        if self.used.keys() <= self.known.keys():
            return
        every = {**self.known, **self.used}
        part = self.path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self.path.parent.mkdir(exist_ok=True)
            part.write_bytes(MAGIC_NUMBER + marshal.dumps(every if len(every) <= MOST_TEXTS else self.used))
            part.replace(self.path)
