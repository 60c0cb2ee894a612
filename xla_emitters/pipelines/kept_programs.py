"""The cache of compiled programs, without the compiler: a command that finds its program loads neither xDSL nor NumPy.

    look_up("gelu.hlo", options)  ->  Lookup.program, compiled by an earlier process or call; or None, and `keep` to store the new one

The key contains everything that a program depends on: the text and its name, the options, the device, every file of this package, the
versions of libraries, the tools that make PTX if the stage needs them, and the files of plugins and of a pipeline's passes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from xla_emitters import plugins
from xla_emitters.errors import ToolError
from xla_emitters.lowering.ways import tools_fingerprint
from xla_emitters.pipelines.options import TOOL_STAGES, CompileOptions
from xla_emitters.program import Program
from xla_emitters.runtime.program_cache import ProgramCache, key_of, open_cache

LIBRARIES = ("xdsl", "numpy", "ml_dtypes")


@dataclass(frozen=True)
class Lookup:
    """A text to compile, and its cached program.

    text, name  see `read_text`
    program     the cached program; None where there is none
    """

    text: str
    name: str
    program: Program | None = None
    store: ProgramCache | None = None
    key: str = ""

    def keep(self, program: Program) -> None:
        """Stores the program that was compiled now, if the cache is used."""
        if self.store is not None:
            self.store.put(self.key, program)


def look_up(source: str | Path, options: CompileOptions, *, cache: bool = True) -> Lookup:
    """Reads `source` and looks for its program.

    cache   whether a cached program may be returned; false where the verifier is to run
    raises  what `read_text` raises; UsageError for an unknown target
    """
    text, name = read_text(source)
    store = open_cache() if cache and not options.verify else None
    key = _key(text, name, options) if store is not None else None
    if store is None or key is None:
        return Lookup(text, name)
    return Lookup(text, name, store.get(key), store, key)


def read_text(source: str | Path) -> tuple[str, str]:
    """HLO text, and the name of its source for messages. raises ParseError for bytes that are not text, OSError."""
    if isinstance(source, str) and "\n" in source:
        return source, "<hlo>"
    data = Path(source).read_bytes()
    try:
        if "\0" not in (text := data.decode()):
            return text, str(source)
    except UnicodeDecodeError:
        pass
    from xla_emitters.texts.decoding import decoded

    return decoded(data, str(source), "read"), str(source)


def _key(text: str, name: str, options: CompileOptions) -> str | None:
    """The key of a program; None where a dependency cannot be identified: a missing tool, or a plugin that is in no file."""
    if (outside := plugins.sources(map(type, options.pipeline or ()))) is None:
        return None
    added = ["".join((str(path), hashlib.sha256(path.read_bytes()).hexdigest())) for path in outside]
    try:
        prices = options.tune == "price"
        needs_tools = prices or options.stage in TOOL_STAGES
        tools = tools_fingerprint(with_sass=prices or options.stage == "sass") if needs_tools else ""
    except ToolError:
        return None
    return key_of(text, name, repr(options), repr(options.device), own_fingerprint(), tools, *added)


@lru_cache
def own_fingerprint() -> str:
    """A hash that changes with any file of this package and any version of a library whose types and numbers are in cached programs."""
    digest = hashlib.sha256(" ".join(_installed(LIBRARIES)).encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _installed(names: Iterable[str]) -> Iterator[str]:
    """The versions of packages, read from folder names ("numpy-2.4.6.dist-info"): `importlib.metadata` takes longer to load than a cached
    program takes to be found."""
    for name in names:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            yield from sorted(path.name for path in Path(spec.origin).parents[1].glob(f"{name}-*.dist-info"))
