"""The cache: which programs it returns, which it does not, and that damaged files on disk are only misses."""

import multiprocessing
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

import xla_emitters as xe
from xla_emitters.pipelines import compiler, kept_programs
from xla_emitters.pipelines.kept_programs import get_program, put_program
from xla_emitters.program import Program
from xla_emitters.runtime import cache as cache_module
from xla_emitters.runtime.cache import PROGRAMS, Cache, key_of
from xla_emitters.settings import read_settings
from xla_emitters.support import extras
from xla_emitters.tools.main import main

NEGATE = Path(__file__).parents[3] / "examples" / "negate_20.hlo"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("XLA_EMITTERS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def program(stage: str = "llvm-dialect", **options: object) -> Program:
    return xe.compile(NEGATE, stage=stage, cache=False, **options)


def forgotten() -> None:
    """As if another process came: nothing is in memory."""
    kept_programs._HELD.clear()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A name for every time that something is really compiled."""
    seen: list[str] = []
    real = compiler.compile_module
    monkeypatch.setattr(compiler, "compile_module", lambda *a, **k: seen.append("compiled") or real(*a, **k))
    return seen


def test_what_is_put_is_got_from_memory_and_from_disk(directory: Path) -> None:
    made = program(record="passes")
    put_program(Cache.of(PROGRAMS, read_settings()), "aa11", made)
    forgotten()
    got = get_program(Cache.of(PROGRAMS, read_settings()), "aa11")
    assert got == made
    assert got.traces == made.traces
    assert got.trace["flat"].ir == made.trace["flat"].ir
    assert get_program(Cache.of(PROGRAMS, read_settings()), "bb22") is None


def test_a_key_is_of_all_parts_and_their_borders() -> None:
    keys = [key_of(*parts) for parts in (("a", "bc"), ("ab", "c"), ("abc",), ("a", "bc", ""))]
    assert len(set(keys)) == 4
    assert key_of("a", "bc") == keys[0]


def test_compiling_again_compiles_nothing(directory: Path, compiled: list[str]) -> None:
    first = xe.compile(NEGATE, stage="llvm-dialect")
    assert xe.compile(NEGATE, stage="llvm-dialect") is first
    forgotten()
    again = xe.compile(NEGATE, stage="llvm-dialect")
    assert (again, again.trace) == (first, first.trace)
    assert compiled == ["compiled"]


@pytest.mark.parametrize(
    "other",
    [{"target": "a100"}, {"stage": "flat"}, {"record": "passes"}, {"fusion": "negate"}, {"verify": True}],
    ids=str,
)
def test_another_question_is_another_answer(directory: Path, compiled: list[str], other: dict[str, object]) -> None:
    xe.compile(NEGATE, stage="llvm-dialect")
    try:
        xe.compile(NEGATE, **({"stage": "llvm-dialect"} | other))
    except xe.XlaEmittersError:
        assert "fusion" in other  # there is none of that name: asked, not remembered
    assert compiled == ["compiled"] * 2


def test_another_text_or_another_compiler_is_another_answer(
    directory: Path, compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(NEGATE.read_text())
    xe.compile(path, stage="flat")
    path.write_text(NEGATE.read_text().replace("negate(", "abs("))
    assert "math.absf" in xe.compile(path, stage="flat").trace["flat"].ir
    monkeypatch.setattr(cache_module, "own_fingerprint", lambda: "another version")
    xe.compile(path, stage="flat")
    assert len(compiled) == 3


def test_another_xdsl_is_another_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = set[str]()
    for version in ("0.74.0", "0.74.1"):
        (tmp_path / version / "xdsl").mkdir(parents=True)
        (tmp_path / version / "xdsl" / "__init__.py").touch()
        (tmp_path / version / f"xdsl-{version}.dist-info").mkdir()
        spec = SimpleNamespace(origin=str(tmp_path / version / "xdsl" / "__init__.py"))
        monkeypatch.setattr(extras, "find_spec", {"xdsl": spec}.get)
        extras.version_read.cache_clear()
        cache_module.own_fingerprint.cache_clear()
        found.add(cache_module.own_fingerprint())
    extras.version_read.cache_clear()
    cache_module.own_fingerprint.cache_clear()
    assert len(found) == 2


@pytest.mark.parametrize(
    "damage",
    [lambda d: b"", lambda d: d[:-1], lambda d: d[:100], lambda d: d[:70] + b"x" + d[71:], lambda d: os.urandom(500)],
    ids=["empty", "a byte short", "cut", "a byte changed", "noise"],
)
def test_a_damaged_entry_is_a_miss_and_goes_away(directory: Path, compiled: list[str], damage) -> None:
    first = xe.compile(NEGATE, stage="flat")
    (entry,) = Cache.of(PROGRAMS, read_settings()).entries()
    entry.write_bytes(damage(entry.read_bytes()))
    forgotten()
    assert xe.compile(NEGATE, stage="flat") == first
    assert len(compiled) == 2
    forgotten()
    assert xe.compile(NEGATE, stage="flat") == first
    assert len(compiled) == 2


def test_an_entry_of_another_schema_is_a_miss(directory: Path, compiled: list[str], monkeypatch) -> None:
    xe.compile(NEGATE, stage="flat")
    forgotten()
    monkeypatch.setattr("xla_emitters.trace.records.SCHEMA", 2)
    xe.compile(NEGATE, stage="flat")
    assert len(compiled) == 2


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("XLA_EMITTERS_CACHE_DIR", str(tmp_path / "file"))
    first = xe.compile(NEGATE, stage="flat")
    assert xe.compile(NEGATE, stage="flat") is first  # still remembered in memory


def test_it_can_be_turned_off(directory: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_EMITTERS_DISABLE_CACHE", "1")
    for _ in range(2):
        xe.compile(NEGATE, stage="flat")
    assert len(compiled) == 2
    assert not directory.exists()


def test_dumps_and_prints_bypass_it(directory: Path, compiled: list[str], tmp_path: Path) -> None:
    for words in (
        ["--print-ir-after-all"],
        ["--print-ir-after-change"],
        ["--print-ir-tree-dir", str(tmp_path / "tree")],
        ["--time-passes"],
        ["--remarks"],
        ["--trace", str(tmp_path / "trace.json")],
        ["--diff", "scf", "flat"],
    ):
        assert main(["compile", str(NEGATE), "--stage", "flat", *words]) == 0
    assert len(compiled) == 7
    assert not directory.exists()
    for _ in range(2):
        assert main(["compile", str(NEGATE), "--stage", "flat"]) == 0
    assert len(compiled) == 8


def write_and_read(directory: str, made: dict[str, object], number: int) -> int:
    """One of several processes that use one directory: entries come and go while it works."""
    cache, kept = Cache(Path(directory), limit=60_000), Program.from_json(made)
    wrong = 0
    for turn in range(30):
        put_program(cache, f"{(number + turn) % 4}0", kept)
        forgotten()
        got = get_program(cache, f"{turn % 4}0")
        wrong += got is not None and got != kept
    return wrong


def test_processes_share_a_directory(directory: Path) -> None:
    made = program("flat").to_json()
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.starmap(write_and_read, [(str(directory), made, number) for number in range(4)]) == [0] * 4
    assert not [path for path in directory.rglob(".new-*")]


def test_info_and_clear(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    xe.compile(NEGATE, stage="flat")
    assert main(["cache", "info"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [f"directory  {directory}", "programs   1"]
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"1 program removed from {directory}\n"
    assert Cache.of(PROGRAMS, read_settings()).size() == (0, 0)
