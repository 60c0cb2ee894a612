"""A cold command loads what its verb needs. Modules are counted: seconds depend on the load."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    exec(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""
SECOND_SYSTEM = ("dynamic", "pipelines.programs", "text.stablehlo.reader")
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
    ("--help",): 14,
    ("cache", "info"): 26,
    ("explain", GELU): 217,
    ("compile", GELU): 220,
    ("compile", GELU, "--stage", "llvm-dialect"): 209,
    ("run", "examples/modules/loop.hlo", "--no-reference", "--platform", "cpu"): 280,
    ("run", SOFTMAX, "--sizes", "b=2,s=3", "--no-reference"): 330,
    ("cost", "--help"): 19,
}


@pytest.mark.parametrize("words", AT_MOST, ids=" ".join)
def test_a_verb_loads_few_modules(words: tuple[str, ...]) -> None:
    ours = [name for name in of_command(*words) if name.partition(".")[0] == "xla_emitters"]
    assert 5 < len(ours) <= AT_MOST[words]


FOR_GPUS = ("emitters", "pricing", "graph.plan", "pipelines.compiler", "pipelines.program_kernels", "runtime.simt")


@pytest.mark.parametrize("words", [("explain", GELU), ("compile", GELU, "--stage", "llvm-dialect")], ids=" ".join)
def test_a_command_on_hlo_does_not_load_the_second_system_nor_what_runs_it(words: tuple[str, ...]) -> None:
    modules = of_command(*words)
    assert "xla_emitters.emitters.loop" in modules
    assert [name for name in (*SECOND_SYSTEM, "runtime.simt", "algebra.facts", "pricing") if room(modules, name)] == []


def test_a_program_on_the_cpu_does_not_load_what_kernels_of_a_gpu_need() -> None:
    modules = of_command("run", SOFTMAX, "--sizes", "b=2,s=3", "--no-reference")
    assert "xla_emitters.runtime.cpu.cpu_platform" in modules
    assert [name for name in FOR_GPUS if room(modules, name)] == []


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
