"""README, the pages and the notebooks: what they say to type works, and the site builds without a warning.

The two tools are called in process; with `XLA_EMITTERS_TEST_SUBPROCESS=1` a shell runs whole lines.
"""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean

import pytest
from in_process import call_main
from long_lists import but_long, long_case
from runtime.mutations import Mutation
from runtime.planted_faults import wrong_op
from tools_here import PTX, needs

import xla_emitters as xe
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.pipelines.program_passes import ON_KERNELS
from xla_emitters.tools.bisect_verb import culprit_lines

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# They set up or open something; the first screen of README, which they are of, is tried on a bare machine.
NOT_RUN = ("make ", "pip ", "source ", "apt-get ")


def blocks(language: str) -> list[tuple[str, str]]:
    found = list[tuple[str, str]]()
    for page in PAGES:
        for block in re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            found.append((page.relative_to(ROOT).as_posix(), block))
    return found


LINES = [
    (page, line.partition("  #")[0].strip())
    for page, block in blocks("sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.strip() and not line.startswith(NOT_RUN)
]
# What several pages say is run for the first of them.
COMMANDS = [
    (page, line) for number, (page, line) in enumerate(LINES) if line not in [said for _, said in LINES[:number]]
]

_BODY = r"((?:(?!```).*\n)*)```"
_SHOWN = re.compile(
    rf"^```(?:sh|python)\n{_BODY}\n\n(?:[^`#\n].*\n+)*?```text\n(?!\$ |xla-emitters ){_BODY}", re.MULTILINE
)
SHOWN = {
    block.strip().splitlines()[-1].partition("  #")[0] if block.startswith("xla-") else block: output
    for page in PAGES
    for block, output in _SHOWN.findall(page.read_text())
    if page.name not in ("programs.md", "miscompiles.md")
}
"""The last command of a block, or Python -> what the page shows of its output below it."""
SESSIONS = [
    (page, block)
    for page, block in blocks("text")
    if block.startswith("$ xla-emitters ") and page != "docs/miscompiles.md"
]
"""Commands, each with its output. Those about wrong numbers are of a compiler with a fault: the tests of `bisect` below have them."""


OF_XLA = re.compile(r"import jax|^xla-emitters (compare|optimize)|softmax\.hlo", re.MULTILINE)
XLA_OF_PAGES = "0.10."
"""The version of jaxlib whose output pages show: another XLA has other names, lines and kernels."""


def is_shown(command: str) -> bool:
    """Whether a page shows what a command prints here, or would print with the version of XLA that is installed."""
    return command in SHOWN and (not OF_XLA.search(command) or metadata.version("jaxlib").startswith(XLA_OF_PAGES))


def expect_shown(output: str, printed: bytes) -> None:
    """Each line of the page is printed, in order. A page may leave lines and spaces out; `...` is anything."""

    def squeezed(line: str) -> str:
        return re.sub(r"\d+(\.\d+)? m?s\b", "# s", line).replace(" ", "")  # how long it takes here

    lines = iter(map(squeezed, printed.decode().splitlines()))
    for line in filter(None, map(squeezed, output.splitlines())):
        if line != "..." and not re.fullmatch(r"\d\.\d+e-\d+", line):  # a difference of two computations
            wanted = ".*".join(map(re.escape, line.split("...")))
            assert any(re.fullmatch(wanted, found) for found in lines), f"{line}\n{printed.decode()}"


ALIKE = (
    *("xla-emitters compare examples/gelu.hlo --diff 33", "xla-emitters compare examples/modules"),
    *("xla-emitters compare examples/gelu.hlo -o gelu.html", "xla-emitters compare examples/gelu.hlo --json"),
    "xla-emitters run examples/causal_attention.mlir --sizes b=2,s=5 --mixed-precision bf16",
    "xla-emitters run examples/causal_attention.mlir --sizes b=2,s=5",
    "xla-emitters compile examples/gelu.hlo --annotate --stage sass",
    *("xla-emitters show examples/transpose.hlo -o transpose.html", "xla-emitters cost examples/modules/loop.hlo"),
    "xla-emitters cost examples/row_sum.hlo --fail-on 'spills > 0'",
    *(
        "xla-emitters bisect examples/transpose.hlo --blocks 16",
        "xla-emitters cost examples/gelu.hlo --target h200,a6000",
        "xla-emitters compile examples/causal_attention.mlir --stage host -o out/",
        "xla-emitters check examples/modules/mlp_8_devices.hlo",
        "xla-emitters check examples/gelu.hlo --blocks 4 --pipeline 'xla-simplify-arith,canonicalize,cse'",
    ),
)
"""Commands that do what others of the pages do, in seconds: `make long` types them."""
COUNTING = {"xla-emitters bisect examples/transpose.hlo --blocks 16": "docs/miscompiles.md"}
"""Command that counts the executions after passes -> the page that shows its output."""


def environment(tmp_path: Path) -> dict[str, str]:
    """A user's: what one page compiled is in the cache for the next."""
    path, cache = f"{BIN}{os.pathsep}{os.environ['PATH']}", str(tmp_path.parent / "cache")
    known = os.environ | {"PATH": path, "XLA_EMITTERS_CACHE_DIR": cache, "HOME": str(tmp_path)}
    return {name: value for name, value in known.items() if name != "XLA_EMITTERS_DISABLE_CACHE"}


def enter(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes them the environment of this process."""
    for name in set(os.environ) - set(variables):
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 15
    assert {page for page, _ in LINES} >= {"README.md", "docs/index.md", "docs/trace.md"}


def by_shell(line: str, text: bytes, folder: Path) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        input=text,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def run_line(line: str, folder: Path) -> tuple[int, bytes, bytes]:
    """(exit code, output, messages)."""
    if os.environ.get("XLA_EMITTERS_TEST_SUBPROCESS"):
        return by_shell(line, b"", folder)
    code, text, messages = 0, b"", b""
    for piece in line.split(" | "):
        words = shlex.split(piece)
        is_ours = words[0].startswith("xla-emitters")
        code, text, said = call_main(words, text) if is_ours else by_shell(piece, text, folder)
        messages += said
        if code:
            break
    return code, text, messages


@needs(*PTX)
@pytest.mark.parametrize(
    ("page", "left_out"),
    [
        *((page, ALIKE) for page in sorted({page for page, _ in COMMANDS})),
        *(long_case((page, ())) for page in sorted({page for page, line in COMMANDS if line in ALIKE})),
    ],
    ids=lambda value: value if isinstance(value, str) else "" if value else "all",
)
def test_every_command_line_works(
    page: str, left_out: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, in a folder that has what a clone has."""
    for name in ("examples", "notebooks"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    enter(environment(tmp_path), monkeypatch)
    printed = b""
    for line in [line for where, line in COMMANDS if where == page and line not in left_out]:
        if line.startswith(("xla-emitters compare", "xla-emitters optimize")) and find_spec("jaxlib") is None:
            continue
        code, text, messages = run_line(line, tmp_path)
        found_no_gpu = line.startswith("python ") and ".zip" in line and text.startswith(b"not run: ")
        assert code == (4 if found_no_gpu else 0), f"{line}\n{messages.decode()}"
        assert text or messages or " -o " in line or "--print-ir-tree-dir" in line, line
        printed += text + messages
        if is_shown(line):
            expect_shown(SHOWN[line], printed)
        if line in COUNTING:
            assert text.decode() in (ROOT / COUNTING[line]).read_text(), line


@needs(*PTX)
@pytest.mark.parametrize(("page", "session"), SESSIONS, ids=lambda value: value if value.endswith(".md") else "")
def test_a_session_is_what_is_printed(page: str, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "xla-emitters optimize" in session:
        pytest.importorskip("jax", reason="the extra [jax] is not installed")
        if not metadata.version("jaxlib").startswith(XLA_OF_PAGES):
            pytest.skip(f"the page shows what XLA of jaxlib {XLA_OF_PAGES}* gives")
    for name in ("examples", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    enter(environment(tmp_path), monkeypatch)
    lines = session.splitlines()
    printed = [b"".join(run_line(line[2:], tmp_path)[1:]) for line in lines if line.startswith("$ ")]
    expect_shown("\n".join(line for line in lines if not line.startswith("$ ")), b"".join(printed))


# Those of the other pages call what these call.
LONG = ("docs/users/teaching.md", "docs/faults.md", "docs/hlo_text.md")
PYTHON = blocks("python")
REGISTER = ("docs/plugins.md", "docs/extending.md")
"""Pages whose Python adds passes, emitters and functions: each piece has a process of its own."""


@pytest.mark.parametrize(
    ("page", "code"),
    but_long(PYTHON, [piece for piece in PYTHON if piece[0] in LONG]),
    ids=lambda value: value if value.endswith(".md") else "",
)
def test_every_piece_of_python_works(
    page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "import jax" in code:
        pytest.importorskip("jax", reason="the extra [jax] is not installed")
    file = tmp_path / "layer.py"  # its lines are named in what it prints
    file.write_text(code)
    if page in REGISTER or "<hlo>:" in SHOWN.get(code, ""):  # JAX's text has the frames of who calls it: lines move
        done = subprocess.run(
            [sys.executable, str(file)], cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        monkeypatch.chdir(ROOT)
        enter(environment(tmp_path), monkeypatch)
        runpy.run_path(str(file), run_name="__main__")
        printed = capsys.readouterr().out
    if is_shown(code):
        expect_shown(SHOWN[code], printed.encode())


TOURS = {
    "tour": ("24576x1x1 blocks of 128x1x1 threads", "__nv_tanhf", "8 sectors of 32 bytes"),
    "tour_transpose": (
        "960x1x1 blocks of 128x1x1 threads",
        "tensor&lt;1056xf32&gt;",
        "shared_0",
        "rows of 33 words: 1 cycle",
        "rows of 32 words: one bank, 32 cycles",
    ),
    "tour_reduction": ("256x1x1 blocks of 256x1x1 threads", "gpu.shuffle down", "nvvm.shfl.sync"),
    "tour_program": ("argument 0 (p0)", "buffers over time", "disc-buffer-optimization"),
}
"""Page -> what is in it: launches that follow from the shapes, what becomes of tiles and shuffles, what accesses cost."""
DRAWINGS = {"tour": 3, "tour_transpose": 6, "tour_reduction": 6, "tour_program": 3}


@pytest.mark.long  # `make docs` builds it too, and stops at a warning
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=environment(tmp_path) | {"DISABLE_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    for page, telling in TOURS.items():
        tour = (tmp_path / page / "index.html").read_text()
        assert all(text.lower() in tour.lower() for text in telling), page
        assert tour.count('<figure class="drawing"') == DRAWINGS[page]
        assert str(ROOT) not in tour
    index = json.loads((tmp_path / "search" / "search_index.json").read_text())
    words = {
        word
        for page in index["docs"]
        for word in re.split(index["config"]["separator"], page["title"] + " " + page["text"])
    }
    assert words >= {"from_jax", "register_emitter", "flatten", "stage", "xla_gpu"}
    python = (tmp_path / "api" / "index.html").read_text()
    assert [name for name in xe.__all__ if f"xe.{name}" not in python and name != "__version__"] == []
    assert "dynamic" in python[python.index('id="xla_emitters.explore.from_jax.jax_program.from_jax"') :][:20_000]
    passes = (tmp_path / "passes" / "index.html").read_text()
    assert 'id="filter-passes"' in passes
    assert '<a href="../reference/#the-seed-documents">seed document</a>' in passes


@pytest.mark.long
def test_the_answers_of_bisect_in_the_pages_are_those_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortened: every line, and every value, of the page is in what bisect says where xla-flatten-tensors leaves an addition."""

    def choose(mutations: Sequence[Mutation]) -> Mutation:
        return [one for one in mutations if one.what == "arith.mulf -> arith.addf"][-1]

    monkeypatch.chdir(ROOT)
    with wrong_op(12, choose) as done:
        search = bisect(Path("examples/gelu.hlo"), blocks=16)
    assert done == ["xla-flatten-tensors: arith.mulf -> arith.addf"]
    assert search.culprit is not None
    page = (ROOT / "docs/miscompiles.md").read_text()
    shown = page.split("$ xla-emitters bisect examples/gelu.hlo --blocks 16\n")[1].split("```")[0]
    printed = culprit_lines(search.culprit)
    assert [line for line in shown.splitlines() if line != "..." and line not in printed] == []

    section = (ROOT / "docs/json.md").read_text().split("## bisect --json")[1]
    documented = json.loads(section.split("```json\n")[1].split("```")[0])
    assert documented["found"]["blame"].pop("diff")[-1] == "..."
    found = json.loads(json.dumps(search.culprit.to_json()))
    del found["blame"]["diff"]
    assert documented == {"found": found, "executed": search.executed, "kernels": search.kernels}


def test_the_listings_of_the_walk_of_a_program_are_what_its_stages_print() -> None:
    """Each line in order; `...` is anything, and so is the number of a value without a name."""
    program = xe.compile(str(ROOT / "examples/dense.mlir"))
    page = (ROOT / "docs/walk_programs.md").read_text()
    listings = re.findall(r"^## ([\w-]+)$(?:(?!^## ).)*?^```(?:mlir|text)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert [stage for stage, _ in listings] == [
        *("stablehlo", "placed", "lmhlo", "fused", "loops", "kernels", "host", "llvm-dialect")
    ]
    for stage, listing in listings:
        printed = (
            program.compilation.lowering.code(stage) if stage in ON_KERNELS else print_ir(program.compilation.at(stage))
        )
        lines = iter(printed.splitlines())
        for line in filter(None, map(str.strip, listing.splitlines())):
            parts = [re.sub(r"%(arg|c)?\d\w*", r"%\\w+", re.escape(part)) for part in re.split(r"\s*\.\.\.\s*", line)]
            assert any(re.fullmatch(r"\s*" + ".*".join(parts), found) for found in lines), f"{stage}: {line}"


def test_the_pages_on_a_gpu_have_the_measured_times() -> None:
    """Of the committed rows: the whole table of `docs/gpu.md`, and the rows of README that were measured."""
    lines = (ROOT / "benchmarks/results/2026-11-28-h200.jsonl").read_text().splitlines()
    measured = {row["name"]: row for row in map(json.loads, lines)}
    page = (ROOT / "docs/gpu.md").read_text()
    columns = ("limit", "xla", "xla_off", "ours", "ours_off", "priced", "program", "program_kernels_priced")
    for name, row in measured.items():
        times = [row.get(f"{column}_us") for column in columns]
        assert "| " + " | ".join([name, *("" if time is None else str(round(time)) for time in times)]) + " |" in page
    shown = ("gelu_f32", "sum_rows", "transpose_f32", "scatter_add", "stencil", "softmax_8k")
    readme = (ROOT / "README.md").read_text()
    for word, column in (("XLA", "xla_off_us"), ("ours", "ours_off_us")):
        assert f"| {word} | " + " | ".join(str(round(measured[name][column])) for name in shown) in readme


def test_the_pages_on_a_gpu_have_the_expected_times() -> None:
    """Of the committed tables, the later run of a function: all above 0.9 of XLA's time, those that the text names, means, and rules."""
    expected = dict[str, tuple[float, str]]()
    for table in ("ways", "scans"):
        _, _, _, *lines, _ = (ROOT / f"benchmarks/results/2026-11-29-{table}.txt").read_text().splitlines()
        expected |= {name: (float(auto), share) for name, *_, auto, share in map(str.split, lines)}
    rows = (ROOT / "benchmarks/results/2026-11-28-h200.jsonl").read_text().splitlines()
    measured = {row["name"]: row for row in map(json.loads, rows)}
    page = (ROOT / "docs/gpu.md").read_text()
    shown = re.findall(
        r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d\.\d+) \|",
        page.partition("## What holds the rest")[2],
        re.MULTILINE,
    )
    wanted = [
        (name, *(str(round(time)) for time in (measured[name]["limit_us"], auto, measured[name]["xla_us"])), share)
        for name, (auto, share) in expected.items()
    ]
    assert sorted(shown) == sorted(row for row in wanted if float(row[-1]) > 0.9)
    text = " ".join(page.split())
    for name, said in {
        "softmax_8k": "softmax of 8,192 columns {} us (XLA {})",
        "softmax_1k_bf16": "of 1,024 in bf16 {} ({})",
        "layer_norm_bf16": "layer norm in bf16 {} ({})",
        "pad_reflect": "is one kernel ({} us expected, XLA {})",
        "transpose_bf16_gelu": "share a transpose ({}, XLA {})",
        "mandelbrot": "over elements ({}, XLA {})",
        "cumsum": "; {}, XLA {})",
    }.items():
        assert said.format(round(expected[name][0]), f"{measured[name]['xla_us']:,.0f}") in text
    shares = {name: auto / measured[name]["xla_us"] for name, (auto, _) in expected.items()}
    means = [
        geometric_mean(shares.values()),
        geometric_mean(share for name, share in shares.items() if name != "mandelbrot"),
    ]
    assert (
        "take {:.2f} of XLA's measured time over the 28 rows in the geometric mean, {:.2f} without the loop".format(
            *means
        )
        in text
    )
    *_, _, largest = rules = (ROOT / "benchmarks/results/2026-11-29-rules.txt").read_text().splitlines()
    least = min(float(line.split()[-1]) for line in rules[3:-2])
    assert (
        f"expected to take {least:.2f} to {float(largest.split()[-1]):.2f} of the time"
        in (ROOT / "docs/cost_model.md").read_text()
    )
    assert f"({round(expected['softmax_8k'][0])} in one kernel)" in (ROOT / "README.md").read_text()


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


# The one of a program takes as long as all others; `docs/programs.md` has its commands.
@needs(*PTX)
@pytest.mark.parametrize("path", but_long(NOTEBOOKS, NOTEBOOKS[1:]), ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a script, which stops at the first cell that fails."""
    pytest.importorskip("marimo", reason="the extra [notebook] is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    enter(environment(tmp_path), monkeypatch)
    runpy.run_path(str(path), run_name="__main__")


@needs(*PTX)
@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_jupyter(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exported, its cells run in the notebook's folder, where there is no `__file__`."""
    pytest.importorskip("marimo", reason="the extra [notebook] is not installed")
    exported = subprocess.run(
        [sys.executable, "-m", "marimo", "export", "script", str(path)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "xe.compile" in exported.stdout
    monkeypatch.chdir(path.parent)
    enter(environment(tmp_path), monkeypatch)
    exec(exported.stdout, {"__name__": "notebook"})


@pytest.mark.long
def test_no_cell_of_a_notebook_is_empty_or_defined_twice(tmp_path: Path) -> None:
    pytest.importorskip("marimo", reason="the extra [notebook] is not installed")
    assert len(NOTEBOOKS) >= 4
    checked = subprocess.run(
        [sys.executable, "-m", "marimo", "check", "--strict", *map(str, NOTEBOOKS)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
