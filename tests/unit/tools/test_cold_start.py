"""A cold command loads what its verb needs, and keeps the code of dataclasses. Modules are counted: seconds depend on the load."""

from __future__ import annotations

import dataclasses
import json
import marshal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest

from xla_emitters.tools.cold_start import KeptCode

ROOT = Path(__file__).parents[3]
PROGRAM = """
import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    exec(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""
SECOND_SYSTEM = ("buffers", "host", "loops", "sizes", "pipelines.programs", "stablehlo_text.reader")
GELU, SOFTMAX = "examples/gelu.hlo", "tests/corpus/stablehlo/masked_softmax.mlir"


@cache
def loaded(code: str, cache_directory: Path | None = None) -> frozenset[str]:
    """The modules that are loaded at the end of a new Python that ran `code`."""
    caching = (
        {"XLA_EMITTERS_CACHE_DIR": str(cache_directory)} if cache_directory else {"XLA_EMITTERS_DISABLE_CACHE": "1"}
    )
    environment = {**caching, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return frozenset(json.loads(done.stdout))


def of_command(*words: str, cache_directory: Path | None = None) -> frozenset[str]:
    return loaded(f"from xla_emitters.tools.main import main; main({list(words)!r})", cache_directory)


def room(modules: frozenset[str], name: str) -> list[str]:
    return sorted(each for each in modules if f"{each}.".startswith(f"xla_emitters.{name}."))


# Modules of this package, at most: what is loaded today and a few more, so that a room that a verb does not need is seen.
AT_MOST: Mapping[tuple[str, ...], int] = {
    ("--help",): 12,
    ("cache", "info"): 30,
    ("explain", GELU): 280,
    ("compile", GELU, "--stage", "llvm-dialect"): 277,
    ("run", "examples/modules/loop.hlo", "--no-reference", "--platform", "cpu"): 320,
    ("run", SOFTMAX, "--sizes", "b=2,s=3", "--no-reference"): 388,
    ("cost", "--help"): 22,
}


@pytest.mark.parametrize("words", AT_MOST, ids=" ".join)
def test_a_verb_loads_few_modules(words: tuple[str, ...]) -> None:
    ours = [name for name in of_command(*words) if name.partition(".")[0] == "xla_emitters"]
    assert 5 < len(ours) <= AT_MOST[words]


@pytest.mark.parametrize("words", [("explain", GELU), ("compile", GELU, "--stage", "llvm-dialect")], ids=" ".join)
@pytest.mark.parametrize("name", [*SECOND_SYSTEM, "runtime.simt", "shapes", "pricing"])
def test_a_command_on_hlo_does_not_load(name: str, words: tuple[str, ...]) -> None:
    assert "xla_emitters.emitters.loop" in of_command(*words)
    assert room(of_command(*words), name) == []


@pytest.mark.parametrize(
    "name", ["emitters", "pricing", "planning", "pipelines.compiler", "pipelines.program_kernels", "runtime.simt"]
)
def test_a_program_on_the_cpu_does_not_load(name: str) -> None:
    modules = of_command("run", SOFTMAX, "--sizes", "b=2,s=3", "--no-reference")
    assert "xla_emitters.runtime.cpu_platform" in modules
    assert room(modules, name) == []


def test_what_was_compiled_before_is_found_without_the_compiler(tmp_path: Path) -> None:
    words = ("compile", GELU, "--stage", "llvm-dialect")
    of_command(*words, cache_directory=tmp_path)
    loaded.cache_clear()
    again = of_command(*words, cache_directory=tmp_path)
    assert {"numpy", "xdsl.ir", "ml_dtypes"}.isdisjoint(again)
    assert len(room(again, "pipelines")) <= 3
    assert len([name for name in again if name.partition(".")[0] == "xla_emitters"]) <= 52


def test_the_api_finds_what_was_compiled_before_without_the_compiler(tmp_path: Path) -> None:
    code = f"import xla_emitters as xe; xe.compile({GELU!r}, stage='xla_gpu')"
    loaded(code, tmp_path)
    loaded.cache_clear()
    assert {"numpy", "xdsl.ir", "ml_dtypes"}.isdisjoint(loaded(code, tmp_path))


def test_the_api_on_hlo_does_not_load_the_second_system() -> None:
    modules = loaded(f"import xla_emitters as xe; xe.compile({GELU!r}, stage='scf', cache=False)")
    assert [name for name in SECOND_SYSTEM if room(modules, name)] == []


def test_a_program_loads_the_second_system() -> None:
    modules = of_command("explain", "examples/softmax.mlir")
    assert [name for name in SECOND_SYSTEM if not room(modules, name)] == []


@pytest.mark.parametrize("words", [("--help",), ("explain", "--help")], ids=" ".join)
def test_help_loads_neither_numpy_nor_dialects(words: tuple[str, ...]) -> None:
    assert {"numpy", "xdsl.ir", "multiprocessing", "importlib.metadata"}.isdisjoint(of_command(*words))


def made(kept: KeptCode, monkeypatch: pytest.MonkeyPatch) -> type:
    """A dataclass that is made while `kept` is in the place of `exec`."""
    with monkeypatch.context() as patch:
        patch.setattr(dataclasses, "exec", kept, raising=False)

        @dataclasses.dataclass(frozen=True, order=True)
        class Point:
            x: int
            y: int = 2

    return Point


def test_a_dataclass_of_kept_code_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "made" / "codes"
    first = KeptCode(path)
    made(first, monkeypatch)
    first.write()
    again = KeptCode(path)
    assert again.known.keys() == first.used.keys()
    with monkeypatch.context() as patch:
        patch.setattr("xla_emitters.tools.cold_start.compile", None, raising=False)  # nothing is compiled any more
        Point = made(again, monkeypatch)
    assert Point(1) == Point(1, 2) < Point(1, 3)
    assert repr(Point(1)).endswith("Point(x=1, y=2)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1).x = 3
    before = path.stat().st_mtime_ns
    again.write()
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "data",
    [b"", b"something else", MAGIC_NUMBER, MAGIC_NUMBER + b"\xff\xff", MAGIC_NUMBER + marshal.dumps({"a": 1})[:-2]],
)
def test_a_file_that_is_not_whole_is_as_none(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "codes"
    path.write_bytes(data)
    kept = KeptCode(path)
    assert kept.known == {}
    made(kept, monkeypatch)
    kept.write()
    assert KeptCode(path).known.keys() == kept.used.keys() != set()


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptCode(tmp_path / "file" / "codes")
    made(kept, monkeypatch)
    kept.write()
