"""xDSL's own `xdsl-opt` finds our dialects, passes, frontends and PTX by the installed entry point, and is itself as without us."""

import json
import os
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from pathlib import Path

import pytest
from xdsl.dialects import get_all_dialects
from xdsl.universe import Universe
from xdsl.xdsl_opt_main import xDSLOptMain

from xla_emitters.dialects.context import ADDED_DIALECTS, parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.pipelines.compiler import compile
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.universe import PASSES

XDSL_OPT = Path(sys.executable).parent / "xdsl-opt"
SPLIT = "// -----\n"
DRIVER = Path(__file__).parent / "stock_xdsl_opt.py"
NEGATE = Path(__file__).parents[2] / "examples" / "negate_20x40x300.hlo"


def xdsl_opt(*words: str, stdin: str = "") -> str:
    """What a process of xDSL's command prints."""
    done = subprocess.run([XDSL_OPT, *words], input=stdin, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def here(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The same in this process, where nothing of xDSL is changed either (tests/unit/dialects/test_xdsl_as_it_comes.py)."""
    xDSLOptMain(args=words).run()
    out, err = capsys.readouterr()
    assert err == ""
    return out


def generic(text: str) -> str:
    return print_ir(parse_ir(text), generic=True)


def test_the_entry_point_is_installed() -> None:
    (found,) = entry_points(group="xdsl.universe", name="xla_emitters")
    assert found.value == "xla_emitters.universe:XLA_EMITTERS_UNIVERSE"


def test_dialects_and_passes_are_there() -> None:
    """Every factory makes the pass of its name."""
    everything = Universe.get_multiverse()
    for name, factory in ADDED_DIALECTS.items():
        assert everything.all_dialects[name]() is factory()
    for name in PASSES:
        assert everything.all_passes[name]().name == name


def test_xdsls_own_dialects_are_xdsls() -> None:
    everything = Universe.get_multiverse()
    for name, factory in get_all_dialects().items():
        assert everything.all_dialects[name]() is factory()


def test_our_ir_is_read_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a process of xDSL's, which reads some of MLIR's ops in the generic form alone; what it prints is the same module."""
    trace = compile(NEGATE, target="a6000", stage="vectorized").trace
    texts = [trace[stage].ir or "" for stage in ("xla_gpu", "flat", "vectorized")]
    printed = xdsl_opt("--split-input-file", stdin=SPLIT.join(map(generic, texts)))
    path = tmp_path / "printed.mlir"
    path.write_text(printed)
    assert here(capsys, "--split-input-file", str(path)) == printed
    assert [print_ir(parse_ir(text)) for text in printed.split(SPLIT)] == texts


def test_our_passes_run_there() -> None:
    """On ops that xDSL read: from the first emitted IR to vectors, pass by pass, beside one of xDSL's own."""
    text = compile(NEGATE, target="a6000", stage="xla_gpu").trace["xla_gpu"].ir
    passes = (
        "inline,xla-canonicalize,xla-cse,xla-lower-xla-loops-to-scf,xla-propagate-slice-indices,xla-flatten-tensors,"
        'xla-loop-invariant-code-motion,xla-unswitch-loops,dce,xla-vectorize-loads-stores{device="a6000"}'
    )
    done = xdsl_opt("-p", passes, stdin=generic(text or ""))
    assert done.count("vector.transfer_read") == done.count("vector.transfer_write") == 1
    assert "xla_gpu.loop" not in done


def test_xdsls_targets_are_as_they_were(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.mlir"
    path.write_text("llvm.func @f(%a: i32) -> i32 {\n  %b = llvm.add %a, %a : i32\n  llvm.return %b : i32\n}\n")
    assert 'define i32 @"f"(i32' in here(capsys, "-t", "llvm", str(path))


def test_ptx_is_a_target_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "negate.mlir"
    path.write_text(print_ir(parse_hlo(NEGATE.read_text())))
    assert here(capsys, "-t", 'ptx{device="a6000"}', str(path)) == compile(NEGATE, target="a6000").code


def test_hlo_and_stablehlo_are_frontends_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_ir(parse_ir(here(capsys, str(NEGATE)))) == print_ir(parse_hlo(NEGATE.read_text()))
    path = tmp_path / "program.mlir"
    path.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n")
    assert "hlo.computation" in here(capsys, "-f", "stablehlo", str(path))


def test_hlo_is_a_dialect_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "e.mlir"
    path.write_text(
        'hlo.computation @e entry {\n  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>\n  hlo.return %x : tensor<4xf32>\n}\n'
    )
    assert 'hlo.parameter 0 {name = "x"}' in here(capsys, str(path))


# xDSL's wheel holds its own FileCheck files. The one that is left out is printed in another order from run to run, by xDSL alone too.
NOT_STEADY = "tests/filecheck/transforms/linalg-to-csl.mlir"
FILES = sorted(
    str(file.locate())
    for file in distribution("xdsl").files or ()
    if str(file).startswith("tests/filecheck/") and file.suffix == ".mlir" and str(file) != NOT_STEADY
)


@pytest.mark.long
@pytest.mark.parametrize("first", range(32))
def test_xdsls_own_files_give_what_they_give_without_us(first: int) -> None:
    """Every 32nd file: output, messages and exit code of its command are equal with our entry point and without it."""
    files = FILES[first::32]
    assert len(files) > 15
    beside, alone = (
        json.loads(
            subprocess.run(
                [sys.executable, DRIVER, *flags],
                input=json.dumps(files),
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "PYTHONHASHSEED": "0"},  # sets of flags are printed in their order
            ).stdout
        )
        for flags in ([], ["--alone"])
    )
    assert len(alone) == len(files)
    assert {file: beside[file] for file in files if beside[file] != alone[file]} == {}
