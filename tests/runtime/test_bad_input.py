"""For any contents of a file, a command ends with an exit code of docs/reference/contracts and a message that says where:
never a traceback.

Damaged texts by the thousand (`damage.py`, a seed each) go through the front, through all passes, through `xla-emitters-opt` and the
commands. A failure names the seed; `damaged(text, seed)` makes the text again. `XLA_EMITTERS_TEST_CASES=20000` runs that many (`seeds.py`).
"""

import io
import json
import random
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partialmethod
from pathlib import Path

import numpy as np
import pytest
from runtime.damage import DAMAGES, QUIET, Damage, damaged, flipped
from runtime.seeds import seeds
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import InternalError, XlaEmittersError
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL
from xla_emitters.support.decoding import decoded
from xla_emitters.support.processes import RunningTool
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.tools.main import main

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for folder in ("tests/corpus/loop", "tests/corpus/hlo_text", "examples")
    for path in sorted((ROOT / folder).glob("*.hlo"))
]
NEGATE = ROOT / "examples" / "negate_20.hlo"
SECONDS = 20
BYTES = 2 << 30
MAP = """func.func @f(%a: index) {{
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> ({}), domain: d0 in [0, 3]">(%a)
  return
}}"""


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [path.read_text() for path in FILES]


def faults(
    run: Callable[[str], None], texts: Sequence[str], cases: range, damages: tuple[Damage, ...]
) -> list[tuple[int, str]]:
    """(seed, what went wrong) of each case in which `run` raises anything but an error of ours with a place."""
    found: list[tuple[int, str]] = []
    for seed in cases:
        _, data = damaged(texts[seed % len(texts)], seed, damages)
        try:
            run(decoded(data, "bad:1:1", "read"))
        except XlaEmittersError as error:
            if isinstance(error, InternalError) or not re.search(r"bad:\d+:\d+", error.render()):
                found.append((seed, error.render()))
        except Exception:  # Whatever it is, it should have been one of ours.
            found.append((seed, traceback.format_exc(limit=-3)))
    return found


def test_the_front_answers_with_a_place(texts: list[str]) -> None:
    assert not faults(lambda text: parse_hlo(text, "bad").verify(), texts, seeds(200), DAMAGES)


def test_all_passes_compile_or_refuse_by_name(texts: list[str]) -> None:
    """What is whole after all goes down to the LLVM dialect, and after every pass the IR verifies."""

    def run(text: str) -> None:
        compile_module(parse_hlo(text, "bad"), CompileOptions(stage="llvm-dialect", record="none", verify=True))

    assert not faults(run, texts, seeds(15, of_all=0.2), QUIET)


# ---- commands ----


def said(words: Sequence[str | Path], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of a command, and its stderr. Only the end of the program is caught, no other exception."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    return code, capsys.readouterr().err


def test_the_command_says_where(texts: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "bad.hlo"
    for seed in seeds(20, of_all=0.02):
        path.write_bytes(damaged(texts[seed % len(texts)], seed)[1])
        code, err = said(["compile", path, "--stage", "scf"], capsys)
        assert code in (0, 1), f"seed {seed}: {err}"
        assert code == 0 or re.search(r"bad\.hlo(:\d+:\d+| is not text)", err), f"seed {seed}: {err}"


@pytest.fixture(scope="module")
def stages() -> list[tuple[int, str]]:
    """IR of some examples at every stage, and how many passes have made it."""
    found: list[tuple[int, str]] = []
    for name in ("negate_20", "two_outputs", "gelu"):
        done = 0

        def keep(_: str, stage: str | None, module: ModuleOp) -> None:
            nonlocal done
            if stage:
                found.append((done, print_ir(module)))
            done += 1

        module = parse_hlo((ROOT / "examples" / f"{name}.hlo").read_text())
        compile_module(module, CompileOptions(stage="llvm-dialect", record="none"), observers=lambda _: keep)
    return found


def test_opt_says_where(stages: list[tuple[int, str]], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Damaged IR of every stage, alone or through the passes that would come next. It never shows as a bug of ours."""
    path = tmp_path / "bad.mlir"
    names = [row.make(CompileOptions()).name for row in KERNEL]
    for seed in seeds(30, of_all=0.2):
        done, text = stages[seed % len(stages)]
        path.write_bytes(damaged(text, seed)[1])
        rest = names[done : done + random.Random(seed).choice((0, 1, 3, len(names)))]
        code, err = said(["opt", path, *(["-p", ",".join(rest)] if rest else [])], capsys)
        assert code in (0, 1), f"seed {seed}: {err}"
        # The text has no locations, so a pass that refuses what it meets later names itself and what it met.
        named = r"bad\.mlir(:\d+:\d+| is not text)|error: \[(xla-|data-layout)"
        assert code == 0 or re.search(named, err), f"seed {seed}: {err}"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_arrays(save: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = io.BytesIO()
    save(whole, p0=np.arange(20, dtype=np.float32))
    path = tmp_path / "bad.npz"
    for seed in seeds(20, of_all=0.05):
        rng = random.Random(seed)
        data = whole.getvalue()
        path.write_bytes(data[: rng.randrange(len(data))] if seed % 5 == 0 else flipped(rng, data))
        code, err = said(["run", NEGATE, "--platform", "cpu", "--stage", "hlo", "--inputs", path], capsys)
        assert code in (0, 1), f"seed {seed}: {err}"
        assert code == 0 or "bad.npz" in err, f"seed {seed}: {err}"


# ---- limits ----


def entry(*lines: str) -> str:
    return "HloModule m\nENTRY e {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


DEEP = 10_000
LARGE, WIDE = "f32[2147483647,2147483647]", "f32[100000000]"

# Words of a command, the file's text, the exit code.
LIMITS: dict[str, tuple[list[str], str, int]] = {
    "compile an absurd size": (
        ["compile", "--stage=scf"],
        entry(f"p = {LARGE} parameter(0)", f"ROOT n = {LARGE} negate(p)"),
        1,
    ),
    "run an absurd size": (
        ["run", "--platform=cpu"],
        entry("p = f32[] parameter(0)", f"b = {LARGE} broadcast(p), dimensions={{}}", "ROOT n = f32[1,1] slice(b), slice={[0:1], [0:1]}"),
        1,
    ),
    "a size past 64 bits": (["compile", "--stage=hlo"], entry(f"ROOT p = f32[{'9' * 100_000}] parameter(0)"), 1),
    "a literal of 200000": (
        ["compile", "--stage=hlo"],
        entry(f"ROOT c = f32[200000] constant({{{', '.join(map(str, range(200_000)))}}})"),
        0,
    ),
    "a literal that claims 10^8": (["compile", "--stage=hlo"], entry("ROOT c = f32[100000000] constant({1, 2, 3})"), 1),
    "a literal of 10^8 left out": (["run", "--platform=cpu"], entry(f"c = {WIDE} constant({{...}})", f"ROOT n = {WIDE} negate(c)"), 1),
    "a name of 10^6": (["compile", "--stage=hlo"], entry(f"ROOT {'n' * 1_000_000} = f32[] parameter(0)"), 0),
    "quotes": (["compile", "--stage=hlo"], "HloModule " + '"' * 100_001, 1),
    "a string not closed": (["compile", "--stage=hlo"], entry('ROOT p = f32[] parameter(0), metadata={op_name="' + "a " * 100_000), 1),
    "a group not closed": (["compile", "--stage=hlo"], entry("ROOT p = f32[] parameter(0), metadata={" + "a=1 " * 100_000 + "["), 1),
    "comments not closed": (["compile", "--stage=hlo"], "/*" * 100_000, 1),
    "no text": (["compile"], "", 1),
    "deep tuples": (["compile"], entry(f"ROOT p = {'(' * DEEP}f32[]{')' * DEEP} parameter(0)"), 1),
    "deep literal": (["compile"], entry(f"ROOT c = f32[1] constant({'{' * DEEP}1{'}' * DEEP})"), 1),
    "deep operands": (["compile"], entry("p = f32[] parameter(0)", f"ROOT r = f32[] {'negate(' * DEEP}p{')' * DEEP}"), 1),
    "deep attribute": (["compile"], entry(f"ROOT p = f32[] parameter(0), backend_config={'{' * DEEP}{'}' * DEEP}"), 1),
    "deep regions": (["opt"], "func.func @f(%c: i1) {\n" + "scf.if %c {\n" * DEEP + "}\n" * DEEP + "return\n}", 1),
    "deep modules": (["opt"], "module {\n" * DEEP + "}\n" * DEEP, 1),
    "deep IR attribute": (["opt", "--allow-unregistered-dialect"], f'"a.b"() {{x = {"[" * DEEP}{"]" * DEEP}}} : () -> ()', 1),
    "deep IR type": (["opt"], f"func.func private @f({'tuple<' * DEEP}i1{'>' * DEEP})", 1),
    "deep location": (["opt"], f"func.func private @f() loc({'fused[' * DEEP}unknown{']' * DEEP})", 1),
    "deep map": (["opt"], MAP.format(f"{'(' * DEEP}d0{')' * DEEP}"), 1),
    "a long map": (["opt", "-p=xla-canonicalize"], MAP.format("d0 + " * 5000 + "d0"), 0),
    "digits in IR": (["opt"], f"func.func @f() {{\n  %0 = arith.constant {'9' * 100_000} : i32\n  return\n}}", 1),
    "absurd dense": (
        ["opt", "-p=xla-canonicalize"],
        "func.func @f() {\n  %0 = arith.constant dense<1.0> : tensor<1000000000000xf32>\n  return\n}",
        1,
    ),
}  # fmt: skip

# Runs commands one after the other, each within the limits; one JSON row each: exit code, seconds, first line of stderr.
UNDER_LIMITS = """
import contextlib, io, json, resource, sys, time
from xla_emitters.tools.main import main
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
for words in json.load(sys.stdin):
    err = io.StringIO()
    start = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        code = main(words)
    print(json.dumps([code, time.monotonic() - start, err.getvalue().partition("\\n")[0]]))
"""


@pytest.mark.long
def test_nothing_takes_long_or_much(tmp_path: Path) -> None:
    """Absurd sizes, huge literals, deep nesting: an answer within 20 s and 2 GB."""
    commands: list[list[str]] = []
    for number, (words, text, _) in enumerate(LIMITS.values()):
        path = tmp_path / f"{number}{'.mlir' if words[0] == 'opt' else '.hlo'}"
        path.write_text(text)
        commands.append([words[0], str(path), *words[1:]])
    done = subprocess.run(
        [sys.executable, "-c", UNDER_LIMITS, str(BYTES)],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS * len(LIMITS),
    )
    assert done.returncode == 0, done.stderr
    for (name, (_, _, wanted)), row in zip(LIMITS.items(), map(json.loads, done.stdout.splitlines()), strict=True):
        code, seconds, message = row
        assert code == wanted, f"{name}: {message}"
        assert seconds < SECONDS, name
        assert code == 0 or "error: [" in message, name


# ---- files and machines ----


@pytest.mark.parametrize("verb", ["compile", "run", "check", "opt"])
def test_files_that_are_none(verb: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A directory, no file, nothing in it, a program: exit code 1, and the file's name."""
    empty, program = tmp_path / "empty.hlo", tmp_path / "program.hlo"
    empty.touch()
    program.write_bytes(b"\x7fELF\x02\x01\x01\x00\xff\xfe" * 100)
    for path in (tmp_path, tmp_path / "nowhere.hlo", empty, program):
        code, err = said([verb, path], capsys)
        assert code == 1, path
        assert f"{path}" in err
        assert "Traceback" not in err


SAYS_22 = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'LLVM version 22.1.0' && exit\n"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (SAYS_22 + "cat > /dev/null; head -c 300 /dev/urandom", "mlir-opt made no PTX"),
        (SAYS_22 + "kill -9 $$", "mlir-opt failed"),
        (
            SAYS_22 + "cat > /dev/null; echo 'error: out of registers' >&2; exit 3",
            "mlir-opt failed (exit 3): error: out",
        ),
        (SAYS_22 + "exec sleep 60", "mlir-opt did not end within 0.5 s"),
        ("#!/bin/sh\nhead -c 300 /dev/urandom", "mlir-opt"),
        ("#!/nowhere/sh\n", "mlir-opt"),
        ("", "mlir-opt"),
    ],
)
def test_a_tool_that_does_not_work(
    script: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exit code 4, whatever is in the place of mlir-opt."""
    tool = tmp_path / "mlir-opt"
    tool.write_text(script)
    tool.chmod(0o755)
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", str(tool))
    monkeypatch.setenv("XLA_EMITTERS_DISABLE_CACHE", "1")
    monkeypatch.setattr(RunningTool, "finish", partialmethod(RunningTool.finish, timeout_seconds=0.5))
    code, err = said(["compile", NEGATE], capsys)
    assert code == 4, err
    assert message in err
    assert "Traceback" not in err
