"""The cache of compiled programs, without the compiler: a command that finds its program loads neither xDSL nor NumPy.

    look_up("gelu.hlo", options)  ->  Lookup.program, compiled by an earlier process or call; or None, and `keep` to store the new one

The key contains everything that a program depends on: the text and its name, the options, the device, every file of this package, the
versions of libraries, the tools that make PTX if the stage needs them, and the files of plugins and of a pipeline's passes.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from pathlib import Path
from threading import Lock

from xla_emitters import plugins
from xla_emitters.errors import ToolError
from xla_emitters.pipelines.options import TOOL_STAGES, CompileOptions
from xla_emitters.program import Program
from xla_emitters.runtime.cache import PROGRAMS, Cache, key_of
from xla_emitters.settings import Settings
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.trace import Trace

IN_MEMORY = 128
"""Most programs that one process keeps in memory."""


@dataclass(frozen=True)
class Lookup:
    """A text to compile, and its cached program.

    text, name  see `read_text`
    program     the cached program; None where there is none
    """

    text: str
    name: str
    program: Program | None = None
    store: Cache | None = None
    key: str = ""

    def keep(self, program: Program) -> None:
        """Stores the program that was compiled now, if the cache is used."""
        if self.store is not None:
            put_program(self.store, self.key, program)


_HELD = OrderedDict[tuple[Path, str], Program]()
_LOCK = Lock()


def get_program(store: Cache, key: str) -> Program | None:
    """The program kept under `key`, from memory or from disk; one of another schema is a miss and is deleted."""
    with _LOCK:
        if (held := _HELD.get((store.directory, key))) is not None:
            _HELD.move_to_end((store.directory, key))
            return held
    if (data := store.get(key)) is None:
        return None
    try:
        content = json.loads(data)
        traces = tuple(map(Trace.from_json, content["traces"]))
        program = Program.from_json(content["program"], Trace.from_json(content["graph"]), traces)
    except (ValueError, KeyError, TypeError):
        store.drop(key)
        return None
    _hold(store, key, program)
    return program


def put_program(store: Cache, key: str, program: Program) -> None:
    """Keeps `program` under `key`, in memory and on disk."""
    _hold(store, key, program)
    traces = [trace.to_json() for trace in program.traces]
    content = {"program": program.to_json(), "graph": program.graph.to_json(), "traces": traces}
    store.put(key, json.dumps(content).encode())


def _hold(store: Cache, key: str, program: Program) -> None:
    with _LOCK:
        _HELD[store.directory, key] = program
        _HELD.move_to_end((store.directory, key))
        while len(_HELD) > IN_MEMORY:
            _HELD.popitem(last=False)


def look_up(source: str | Path | bytes, options: CompileOptions, *, cache: bool = True) -> Lookup:
    """Reads `source` and looks for its program.

    cache   whether a cached program may be returned; false where the verifier is to run
    raises  what `read_text` raises; UsageError for an unknown target
    """
    text, name = read_text(source)
    store = _store_of(options.settings) if cache and not (options.verify or options.replaced) else None
    key = _key(text, name, options) if store is not None else None
    if store is None or key is None:
        return Lookup(text, name)
    return Lookup(text, name, get_program(store, key), store, key)


def _store_of(settings: Settings) -> Cache | None:
    return None if settings.no_cache else Cache.of(PROGRAMS, settings)


def read_text(source: str | Path | bytes) -> tuple[str, str]:
    """HLO or StableHLO text, also of a binary form, and the name of its source for messages.

    source  a path, text (with a newline or a brace, or empty), or the bytes of a file
    raises  ParseError for bytes that are neither text nor such a form, or damaged; ToolError without jaxlib; OSError
    """
    if isinstance(source, str) and (not source or not {"\n", "{"}.isdisjoint(source)):
        return source, "<hlo>"
    data, name = (source, "<bytes>") if isinstance(source, bytes) else (Path(source).read_bytes(), str(source))
    name = name.encode(errors="backslashreplace").decode()  # what is no text in it is a surrogate, which no file takes
    try:
        if data[:1] != b"\n" and "\0" not in (text := data.decode()):
            return text, name
    except UnicodeDecodeError:
        pass
    from xla_emitters.text.binary.reading import text_of  # imported here: most files are text

    return text_of(data, name)


def _key(text: str, name: str, options: CompileOptions) -> str | None:
    """The key of a program; None where a dependency cannot be identified: a missing tool, or a plugin that is in no file."""
    if (outside := plugins.sources(map(type, options.pipeline or ()))) is None:
        return None
    added = ["".join((str(path), hashlib.sha256(path.read_bytes()).hexdigest())) for path in outside]
    try:
        prices = options.tune == "price"
        needs_tools = prices or options.stage in TOOL_STAGES
        tools = ""
        if needs_tools:
            from xla_emitters.lowering.toolchain.tools import tools_fingerprint

            tools = tools_fingerprint(options.toolchain, with_sass=prices or options.stage == "sass")
    except ToolError:
        return None
    return key_of(text, name, repr(options), repr(options.device), tools, *added)
