"""A cold command loads what its verb needs. Modules are counted: seconds depend on the load."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tools_here import needs

import xla_emitters as xe
from xla_emitters.tools.main import main

ROOT = Path(__file__).parents[3]
PROGRAM = """
import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    exec(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""
SECOND_SYSTEM = ("dynamic", "pipelines.programs", "text.stablehlo.reader")
GELU, SOFTMAX = "examples/gelu.hlo", "tests/corpus/stablehlo/masked_softmax.mlir"
NEGATE = "examples/negate_20.hlo"


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


FOR_GPUS = ("emitters", "pricing", "graph.plan", "pipelines.compiler", "pipelines.program_kernels", "runtime.simt")
NOT_FOR_HLO = (*SECOND_SYSTEM, "runtime.simt", "algebra.facts", "pricing")
LIBRARIES = ("numpy", "xdsl.ir", "multiprocessing", "hashlib", "xla_emitters.dtypes")

# Words -> modules of this package, at most (what is loaded today and a few more, so that a room that a verb does not need is seen),
# rooms that are loaded, rooms that are not.
COMMANDS: Mapping[tuple[str, ...], tuple[int, tuple[str, ...], tuple[str, ...]]] = {
    ("cache", "info"): (26, (), ()),
    ("explain", GELU): (217, ("emitters.loop",), NOT_FOR_HLO),
    ("compile", GELU): (220, ("emitters.loop",), ()),
    ("compile", GELU, "--stage", "llvm-dialect"): (209, ("emitters.loop",), NOT_FOR_HLO),
    ("run", "examples/modules/loop.hlo", "--no-reference", "--platform", "cpu"): (280, (), ()),
    ("run", SOFTMAX, "--sizes", "b=2,s=3", "--no-reference"): (330, ("runtime.cpu.cpu_platform",), FOR_GPUS),
    ("explain", "examples/softmax.mlir"): (400, SECOND_SYSTEM, ()),
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_verb_loads_few_modules_and_no_room_that_it_does_not_need(words: tuple[str, ...]) -> None:
    most, needed, unneeded = COMMANDS[words]
    modules = of_command(*words)
    assert 5 < len([name for name in modules if name.partition(".")[0] == "xla_emitters"]) <= most
    assert [name for name in needed if not room(modules, name)] == []
    assert [name for name in unneeded if room(modules, name)] == []


@pytest.mark.parametrize(("words", "most"), [(("--help",), 14), (("--version",), 14), (("compile", "--help"), 19)])
def test_help_loads_neither_numpy_nor_dialects(words: tuple[str, ...], most: int) -> None:
    modules = of_command(*words)
    assert "xla_emitters.tools.main" in modules
    assert len([name for name in modules if name.partition(".")[0] == "xla_emitters"]) <= most
    assert modules.isdisjoint(LIBRARIES)
    assert "importlib.metadata" not in modules or words == ("--version",)


def test_what_was_compiled_before_is_found_without_the_compiler(cache_of_its_own: Path) -> None:
    words = ["compile", str(ROOT / GELU), "--stage", "llvm-dialect"]
    assert main(words) == 0
    again = of_command(*words, cache_directory=cache_of_its_own)
    assert {"numpy", "xdsl.ir", "ml_dtypes"}.isdisjoint(again)
    assert len(room(again, "pipelines")) <= 3
    assert len([name for name in again if name.partition(".")[0] == "xla_emitters"]) <= 52


def test_the_api_finds_what_was_compiled_before_without_the_compiler(cache_of_its_own: Path) -> None:
    xe.compile(ROOT / GELU, stage="xla_gpu")
    code = f"import xla_emitters as xe; xe.compile({str(ROOT / GELU)!r}, stage='xla_gpu')"
    assert {"numpy", "xdsl.ir", "ml_dtypes"}.isdisjoint(loaded(code, cache_of_its_own))


def test_the_api_on_hlo_does_not_load_the_second_system() -> None:
    modules = loaded(f"import xla_emitters as xe; xe.compile({NEGATE!r}, stage='scf', cache=False)")
    assert [name for name in SECOND_SYSTEM if room(modules, name)] == []


@needs("llvmlite")
def test_llvm_is_started_before_the_compiler_is_loaded() -> None:
    code = f"""
import sys
from xla_emitters.lowering.toolchain import tools
borrow, loaded_before = tools.borrow_tool, []
def borrowed(*given):
    loaded_before.append("xdsl.ir" in sys.modules)
    return borrow(*given)
tools.borrow_tool = borrowed
import xla_emitters as xe
for stage in ("scf", "ptx"):
    xe.compile({NEGATE!r}, stage=stage, cache=False)
assert loaded_before == [True], loaded_before
"""
    loaded(code)
    loaded(code.replace('("scf", "ptx")', '("ptx",)').replace("[True]", "[False, True]"))
