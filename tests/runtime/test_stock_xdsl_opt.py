"""xDSL's own `xdsl-opt` finds our dialects and passes by the installed entry point alone."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from xdsl.universe import Universe

from xla_emitters.dialects.context import ADDED_DIALECTS, REPLACED_DIALECTS
from xla_emitters.pipelines.compiler import compile
from xla_emitters.universe import PASSES

XDSL_OPT = Path(sys.executable).parent / "xdsl-opt"
SPLIT = "// -----\n"
NEGATE = Path(__file__).parents[2] / "examples" / "negate_20x40x300.hlo"


def xdsl_opt(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([XDSL_OPT, *words], input=stdin, capture_output=True, text=True, check=False)


def test_the_entry_point_is_installed() -> None:
    (found,) = entry_points(group="xdsl.universe", name="xla_emitters")
    assert found.value == "xla_emitters.universe:XLA_EMITTERS_UNIVERSE"


def test_dialects_and_passes_are_there() -> None:
    """They take precedence over xDSL's of the same name; every factory makes the pass of its name."""
    everything = Universe.get_multiverse()
    for name, factory in {**ADDED_DIALECTS, **REPLACED_DIALECTS}.items():
        assert everything.all_dialects[name]() is factory()
    for name in PASSES:
        assert everything.all_passes[name]().name == name


def test_our_ir_is_read_and_printed() -> None:
    """By a process of xDSL's; what it prints is the same module, at every stage."""
    trace = compile(NEGATE, target="a6000", stage="llvm-dialect").trace
    texts = [trace[stage].ir or "" for stage in ("xla_gpu", "flat", "vectorized", "llvm-dialect")]
    done = xdsl_opt("--split-input-file", stdin=SPLIT.join(texts))
    assert (done.returncode, done.stderr) == (0, "")
    again = xdsl_opt("--split-input-file", stdin=done.stdout)
    assert again.stdout == done.stdout
    from xla_emitters.dialects.context import parse_ir
    from xla_emitters.dialects.printer import print_ir

    assert [print_ir(parse_ir(text)) for text in done.stdout.split(SPLIT)] == texts


def test_our_passes_run_there() -> None:
    """From the first emitted IR to vectors, pass by pass, beside one of xDSL's own."""
    text = compile(NEGATE, target="a6000", stage="xla_gpu").trace["xla_gpu"].ir
    passes = (
        "inline,xla-canonicalize,xla-cse,xla-lower-xla-loops-to-scf,xla-propagate-slice-indices,xla-flatten-tensors,"
        'xla-loop-invariant-code-motion,xla-unswitch-loops,dce,xla-vectorize-loads-stores{device="a6000"}'
    )
    done = xdsl_opt("-p", passes, stdin=text or "")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("vector.transfer_read") == done.stdout.count("vector.transfer_write") == 1
    assert "xla_gpu.loop" not in done.stdout


def test_hlo_is_a_dialect_there() -> None:
    text = 'hlo.computation @e entry {\n  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>\n  hlo.return %x : tensor<4xf32>\n}\n'
    done = xdsl_opt(stdin=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'hlo.parameter 0 {name = "x"}' in done.stdout
