"""`xla-emitters compile`: stages, targets, JSON, dumps, and the errors for inputs that it refuses."""

import json
import re
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import pytest
from in_process import called, messages, printed, written
from runtime.small_programs import EVERY_PASS_ON_HLO, changes
from tools_here import PTX, SASS, needs

from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import kernel_rows
from xla_emitters.pipelines.passes import GRAPH, STAGES
from xla_emitters.tools.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
GELU, NEGATE, TWO_OUTPUTS, PRED = (
    EXAMPLES / f"{name}.hlo" for name in ("gelu", "negate_20", "two_outputs", "not_pred")
)


run = partial(called, "compile")


# ---- what is printed ----


MARK = {
    "hlo": "ROOT %y = f32[20]{0} negate(%x)",
    "graph": "ROOT %y = f32[20]{0} negate(%x)",
    "partition": "fused_y",
    "xla_gpu": "xla_gpu.loop",
    "inlined": "xla_gpu.loop",
    "scf": "scf.if",
    "flat": "tensor.extract",
    "vectorized": "tensor.extract",
    "unrolled": "tensor.extract",
    "llvm-dialect": "llvm.func @negate",
    "llvm": "define ptx_kernel void @negate",
    "ptx": ".visible .entry negate",
    "sass": ".text.negate:",
}
NEEDS = {"llvm": PTX, "ptx": PTX, "sass": SASS}


@pytest.mark.parametrize(
    "stage", [pytest.param(stage, marks=needs(*NEEDS[stage]) if stage in NEEDS else ()) for stage in STAGES]
)
def test_every_stage_is_printed(stage: str, tmp_path: Path) -> None:
    """To standard output, or to a file; nothing else."""
    code, out, err = run(NEGATE, "--stage", stage)
    assert (code, err) == (0, "")
    assert MARK[stage] in out
    assert out.endswith("\n")
    assert run(NEGATE, "--stage", stage, "-o", tmp_path / "out") == (0, "", "")
    assert (tmp_path / "out").read_text() == out


@needs(*SASS)
@pytest.mark.parametrize("stage", ["ptx", "sass"])
def test_hlo_is_printed_beside_the_code(stage: str) -> None:
    """What is before the `//` is the code as it is printed without."""
    code, out, err = run(NEGATE, "--stage", stage, "--annotate")
    assert (code, err) == (0, "")
    plain = run(NEGATE, "--stage", stage)[1]
    pairs = zip(out.split("\n"), plain.split("\n"), strict=True)
    assert all(line.startswith(text) for line, text in pairs)
    negation = r"xor|neg" if stage == "ptx" else r"LOP3|FADD|FMUL"
    assert re.search(rf"(?:{negation}).*// %y = f32\[20\] negate\(%x\)", out)


@needs(*PTX)
def test_ptx_has_lines_where_they_are_asked_for() -> None:
    out = run(NEGATE, "--line-info")[1]
    number = next(n for n, line in enumerate(NEGATE.read_text().split("\n"), 1) if "negate(" in line)
    assert re.search(rf"\.loc\t1 {number} \d+", out)
    assert f'.file\t1 "{NEGATE}"' in out
    assert ".loc" not in run(NEGATE)[1]


@pytest.mark.parametrize("words", [("--stage", "flat"), ("--json",), ("--diff", "scf", "flat"), ("-o", "out/")])
def test_only_code_as_one_text_is_annotated(words: tuple[str, ...]) -> None:
    code, out, err = run(NEGATE, "--annotate", *words)
    assert (code, out) == (2, "")
    assert "--annotate" in err


def test_the_text_of_a_stage_can_be_compiled_again(tmp_path: Path) -> None:
    """What `--stage hlo` prints is HLO text of the same program."""
    _, out, _ = run(TWO_OUTPUTS, "--stage", "hlo")
    (tmp_path / "again.hlo").write_text(out)
    assert run(tmp_path / "again.hlo", "--stage", "hlo") == (0, out, "")
    assert run(tmp_path / "again.hlo", "--stage", "flat")[1] == run(TWO_OUTPUTS, "--stage", "flat")[1]


def test_standard_input() -> None:
    from_stdin = run("-", "--stage", "flat", stdin=NEGATE.read_bytes())
    assert from_stdin == run(NEGATE, "--stage", "flat")
    code, out, err = run("-", stdin=b"HloModule \xff")
    assert (code, out) == (1, "")
    assert err == "error: [read] standard input is not text: byte 10 is 0xff\n"


@pytest.mark.usefixtures("cache_of_its_own")
def test_a_target_that_a_file_describes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fills 18 cores does not fill 142, and the cache sees the file's contents."""
    monkeypatch.chdir(tmp_path)
    words = (EXAMPLES / "negate_20x40x300.hlo", "--target", "gpu.txtpb", "--stage", "xla_gpu")
    for cores, grid in ((18, 469), (142, 1875)):
        Path("gpu.txtpb").write_text(f"core_count: {cores} cuda_compute_capability {{ major: 9 }}")
        code, out, err = run(*words, "--json")
        assert (code, err) == (0, "")
        data = json.loads(out)
        assert (data["target"], data["kernels"][0]["architecture"]) == ("gpu.txtpb", "sm_90")
        assert data["kernels"][0]["grid"] == [grid, 1, 1]
    _, _, remarks = run(*words, "--remarks")
    assert remarks.startswith("target: gpu.txtpb leaves out threads_per_core_limit (2048), ")
    Path("gpu.txtpb").write_text("core_count: ")
    assert messages(1, "compile", *words).startswith(
        "gpu.txtpb:1:13: error: [target] the end of the text where a value is expected"
    )


@needs(*PTX)
@pytest.mark.parametrize("path", [GELU, TWO_OUTPUTS])
def test_json_of_a_program(path: Path) -> None:
    """The documented keys, and code that is the kernel's."""
    code, out, err = run(path, "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    interface = ["parameters", "results", "temporaries", "constants", "symbols", "guards"]
    work = ["kernels", "calls", "steps", "stage", "code", "hlo", "fusion", "left_out"]
    assert list(data) == ["name", "target", *interface, *work]
    (kernel,) = data["kernels"]
    assert [(step["step"], step["kernel"]) for step in data["steps"]] == [("Launch", kernel["name"])]
    assert set(kernel) == {"name", "grid", "block", "shared_bytes", "architecture", "arguments", "scalars", "ptx"}
    assert f".visible .entry {kernel['name']}(" in kernel["ptx"]
    assert kernel["architecture"] == "sm_90"
    assert [a["kind"] for a in kernel["arguments"]] == ["parameter"] + ["result"] * len(data["results"])
    assert kernel["ptx"] == data["code"] == run(path)[1]


@pytest.mark.parametrize("stage", ["hlo", "graph", "partition", "xla_gpu", "flat", "llvm-dialect"])
def test_json_of_a_stage(stage: str) -> None:
    """The text of each kernel there; before emission there are no kernels yet."""
    code, out, _ = run(NEGATE, "--json", "--stage", stage)
    data = json.loads(out)
    assert (code, data["stage"], len(data["kernels"])) == (0, stage, 0 if stage in ("hlo", "graph", "partition") else 1)
    (ir,) = data["ir"]
    assert ir.strip() == run(NEGATE, "--stage", stage)[1].strip()


def test_one_fusion_of_several(tmp_path: Path) -> None:
    text = NEGATE.read_text().replace(
        "  ROOT %negate = f32[20]{0} fusion(%x), kind=kLoop, calls=fused",
        "  %first = f32[20]{0} fusion(%x), kind=kLoop, calls=fused\n"
        "  ROOT %second = f32[20]{0} fusion(%first), kind=kLoop, calls=fused",
    )
    path = written(tmp_path / "two.hlo", text)
    _, both, _ = run(path, "--stage", "xla_gpu", "--tune", "xla")
    assert re.findall(r"func.func @(\w+)", both) == ["first", "second"]
    _, one, _ = run(path, "--stage", "xla_gpu", "--fusion", "second")
    assert re.findall(r"func.func @(\w+)", one) == ["second"]
    assert "there are: first, second" in messages(2, "compile", path, "--fusion", "third")


# ---- what the trace feeds ----


@pytest.mark.parametrize("spelling", ["--print-ir-after-all", "--mlir-print-ir-after-all"])
def test_ir_after_all(spelling: str) -> None:
    """On stderr, every pass once and in order; the result on stdout is what it always is."""
    code, out, err = run(NEGATE, "--stage", "flat", spelling)
    assert code == 0
    assert out == run(NEGATE, "--stage", "flat")[1]
    names = re.findall(r"^// -----// IR after (\S+) //----- //$", err, re.MULTILINE)
    assert names[:3] == ["hlo", "partition", "emit"]
    assert len(names) == 3 + len(kernel_rows(CompileOptions(stage="flat")))
    assert names[-1] == "xla-loop-invariant-code-motion"
    assert err.rstrip().endswith(out.rstrip())


@pytest.mark.parametrize("spelling", ["--print-ir-tree-dir", "--xla_dump_to"])
def test_ir_as_files(spelling: str, tmp_path: Path) -> None:
    """One numbered file a pass; what a pass left alone says so; a second run leaves no files of the first."""
    tree = tmp_path / "deep" / "tree"
    tree.mkdir(parents=True)
    (tree / "39-old-pass.mlir").write_text("stale")
    (tree / "notes.txt").write_text("mine")
    code, out, err = run(NEGATE, "--stage", "llvm-dialect", spelling, tree)
    assert (code, err) == (0, "")
    names = sorted(path.name for path in tree.iterdir())
    assert names[:4] == ["00-hlo.hlo", "01-partition.txt", "02-emit.mlir", "03-xla-simplify-arith.mlir"]
    assert names[-2:] == [
        f"{2 + len(kernel_rows(CompileOptions(stage='llvm-dialect')))}-xla-lower-to-llvm-gpu.mlir",
        "notes.txt",
    ]
    assert len(names) == 3 + len(kernel_rows(CompileOptions(stage="llvm-dialect"))) + 1
    last = (tree / names[-2]).read_text()
    assert last.strip() == out.strip()
    unchanged = [name for name in names if (tree / name).read_text().startswith("// unchanged by ")]
    assert "03-xla-simplify-arith.mlir" in unchanged
    assert all(f"// unchanged by {name[3:-5]}\n" in (tree / name).read_text() for name in unchanged)


def test_time_of_passes() -> None:
    code, _, err = run(NEGATE, "--stage", "flat", "--time-passes")
    header, *rows, total = err.splitlines()
    assert code == 0
    assert header.split() == ["pass", "ops", "ms"]
    assert [row.split()[0] for row in rows][2] == "emit"
    assert len(rows) == 3 + len(kernel_rows(CompileOptions(stage="flat")))
    milliseconds = [float(row.split()[-1]) for row in rows]
    assert float(total.split()[-1]) == pytest.approx(sum(milliseconds), abs=0.1 * len(rows))
    assert sum(milliseconds) > 0


REVERSED = """
f {
  x = f32[512,1024] parameter(0)
  y = f32[512,1024] parameter(1)
  b = f32[512,1024] reverse(y), dimensions={1}
  ROOT s = f32[512,1024] add(x, b)
}
ENTRY e {
  x = f32[512,1024] parameter(0)
  y = f32[512,1024] parameter(1)
  ROOT fusion = f32[512,1024] fusion(x, y), kind=kLoop, calls=f
}
"""


def test_remarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that declines says why and where: the four elements of a thread read `y` backwards."""
    monkeypatch.chdir(tmp_path)
    Path("b.hlo").write_text(REVERSED)
    code, out, err = run("b.hlo", "--stage", "llvm-dialect", "--remarks")
    assert code == 0
    assert err == "xla-vectorize-loads-stores: skipped tensor.extract: its stride is -1, not 1 at y (b.hlo:4:3)\n"
    assert run("b.hlo", "--stage", "llvm-dialect") == (0, out, "")


# ---- passes on HLO ----


COLUMN_ALONE = """
ENTRY main {
  %x = f32[4100,3] parameter(0)
  %k = f32[] parameter(1)
  ROOT %c = f32[3] fusion(%x, %k), kind=kInput, calls=column
}
"""
GRAPH_NAMES = [row.make(CompileOptions()).name for row in GRAPH]
CHANGING = [*compress(GRAPH_NAMES, changes(GRAPH_NAMES))][1:]
KERNELS = ["c.partial", "c", "back", "s.0", "s.1", "w.arrays", "w"]


@pytest.fixture
def every_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of which every pass on HLO changes something: its tuple is taken apart as it is read."""
    monkeypatch.chdir(tmp_path)
    Path("every.hlo").write_text(EVERY_PASS_ON_HLO)
    return "every.hlo"


def test_ir_after_passes_on_hlo(every_pass: str) -> None:
    """All of them, or those that changed something; then kernel by kernel."""
    head = re.compile(r"^// -----// IR after (\S+) //----- //$", re.MULTILINE)
    code, _, err = run(every_pass, "--stage", "xla_gpu", "--print-ir-after-all")
    assert code == 0
    assert head.findall(err) == [*GRAPH_NAMES, *["hlo", "partition", "emit"] * len(KERNELS)]
    _, _, err = run(every_pass, "--stage", "graph", "--print-ir-after-change")
    # The first of a trace is always shown: it is where the next ones start.
    assert head.findall(err) == ["xla-flatten-parameters", *CHANGING, *["hlo"] * len(KERNELS)]
    for name in CHANGING:
        assert f"IR after {name} //----- //\nHloModule every_pass_on_hlo" in err
    _, _, err = run(NEGATE, "--stage", "xla_gpu", "--print-ir-after-all")
    assert head.findall(err) == ["hlo", "partition", "emit"]


def test_files_of_passes_on_hlo(every_pass: str) -> None:
    """In the directory itself, as HLO; a directory for each kernel in it."""
    code, _, err = run(every_pass, "--stage", "xla_gpu", "--print-ir-tree-dir", "tree")
    assert (code, err) == (0, "")
    files = sorted(path.name for path in Path("tree").iterdir() if path.is_file())
    assert files == [f"{number:02d}-{name}.hlo" for number, name in enumerate(GRAPH_NAMES)]
    assert sorted(path.name for path in Path("tree").iterdir() if path.is_dir()) == sorted(KERNELS)
    assert sorted(path.name for path in Path("tree", "s.1").iterdir()) == [
        "00-hlo.hlo",
        "01-partition.txt",
        "02-emit.mlir",
    ]
    texts = [Path("tree", name).read_text() for name in files]
    assert [text.startswith("// unchanged by ") for text in texts] == [not each for each in changes(GRAPH_NAMES)]
    assert texts[-1].strip() == run(every_pass, "--stage", "graph")[1].strip()
    # A module of one kernel leaves no directories, and numbered files of its own alone.
    assert run(NEGATE, "--stage", "xla_gpu", "--print-ir-tree-dir", "tree")[0] == 0
    assert sorted(path.name for path in Path("tree").iterdir() if path.is_file()) == [
        *("00-hlo.hlo", "01-partition.txt", "02-emit.mlir")
    ]


def test_a_kernel_named_as_the_module(tmp_path: Path) -> None:
    """Their files do not meet."""
    (tmp_path / "c.hlo").write_text(EVERY_PASS_ON_HLO.replace("HloModule every_pass_on_hlo", "HloModule c"))
    tree = tmp_path / "tree"
    assert run(tmp_path / "c.hlo", "--stage", "xla_gpu", "--print-ir-tree-dir", tree)[0] == 0
    assert len([path for path in tree.iterdir() if path.is_file()]) == len(GRAPH)
    assert len(list((tree / "c").iterdir())) == 3


def test_time_of_passes_on_hlo(every_pass: str) -> None:
    """A table of their own, before the kernels'."""
    code, _, err = run(every_pass, "--stage", "xla_gpu", "--time-passes")
    tables = err.split("total")
    assert code == 0
    assert [row.split()[0] for row in tables[0].splitlines()] == ["pass", *GRAPH_NAMES]
    assert len(tables) == 2 + len(KERNELS)
    assert [row.split()[0] for row in tables[1].splitlines()[1:]] == ["pass", "hlo", "partition", "emit"]


def test_the_trace_of_passes_on_hlo(every_pass: str) -> None:
    assert run(every_pass, "--stage", "xla_gpu", "--trace", "trace.json")[0] == 0
    first, *others = json.loads(Path("trace.json").read_text())
    assert (first["name"], [step["name"] for step in first["steps"]]) == ("every_pass_on_hlo", GRAPH_NAMES)
    assert [step["stage"] for step in first["steps"]] == ["hlo", *[None] * (len(GRAPH) - 2), "graph"]
    assert [trace["name"] for trace in others] == KERNELS
    assert run(NEGATE, "--stage", "xla_gpu", "--trace", "trace.json")[0] == 0
    assert [trace["name"] for trace in json.loads(Path("trace.json").read_text())] == ["negate"]


def test_diffs_of_passes_on_hlo(every_pass: str) -> None:
    out = printed("compile", every_pass, "--stage", "graph", "--diff", "hlo", "xla-fuse-entry")
    assert out.startswith("--- hlo\n+++ xla-fuse-entry\n")
    assert re.search(r"^-  %k = f32\[\] constant\(3\)$", out, re.MULTILINE), out
    code, out, _ = run(every_pass, "--stage", "xla_gpu", "--diff", "partition", "xla_gpu")
    assert (code, out.count("--- partition")) == (0, len(KERNELS))


def test_remarks_of_passes_on_hlo(every_pass: str) -> None:
    """Also where they leave everything as it is, and of such a module nothing else is shown."""
    every = EVERY_PASS_ON_HLO.replace("f32[] add(%a, %b)", "f32[] subtract(%a, %b)")
    alone = every[: every.index("sizes {")] + COLUMN_ALONE
    for text, is_changed in ((every, True), (alone, False)):
        Path(every_pass).write_text(text)
        code, _, err = run(every_pass, "--stage", "graph", "--remarks", "--time-passes")
        assert code == 0
        remark = err.splitlines()[-1]
        assert remark.startswith("xla-split-reductions: skipped hlo.reduce: the initial value of %r would count once")
        assert remark.endswith("at r (every.hlo:16:3)")
        assert ("xla-insert-copies" in err) == is_changed


# ---- what cannot be compiled ----


def cut(text: str) -> str:
    return text[: text.index("ROOT %y") + 20]


# One that ends early and one that means nothing; `unit/text/hlo` has every rule's message and place.
WRONG = {
    "cut": (cut, r"bad\.hlo:6:\d+: error: \[hlo\.parse\] "),
    "shape": (
        lambda t: t.replace("ROOT %y = f32[20]{0}", "ROOT %y = f32[21]{0}"),
        r"bad\.hlo:6:\d+: error: \[hlo\.verify\] (.|\n)*f32\[21\]",
    ),
    "empty": (lambda t: "", r"bad\.hlo(:1:1)?: error: \[hlo\.\w+\] "),
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_text(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is, with the line and a caret; exit code 1, nothing on stdout, no traceback."""
    change, message = WRONG[fault]
    monkeypatch.chdir(tmp_path)
    Path("bad.hlo").write_text(change(NEGATE.read_text()))
    code, out, err = run("bad.hlo", "--stage", "llvm-dialect")
    assert (code, out) == (1, "")
    assert re.match(message, err), err
    assert "Traceback" not in err
    if fault != "empty":
        assert re.search(r"^ +\^~*$", err, re.MULTILINE), err


def test_what_nothing_computes_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.hlo"
    add = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
    path.write_text(
        "HloModule m, replica_count=2 "
        + add
        + "ENTRY e {\n  x = f32[8] parameter(0)\n  t = token[] after-all()\n  ROOT c = token[] outfeed(x, t)\n}\n"
    )
    err = messages(1, "compile", path)
    assert "bad.hlo:9:8: error: [hlo] no library function for HLO op 'outfeed' (instruction %c)" in err
    assert "help: it exchanges data with the host" in err
    assert "with --keep-going" in err


def test_stages_before_kernels_are_written_to_a_directory_too(tmp_path: Path) -> None:
    for words in (["--stage", "hlo"], ["--stage", "flat", "--json"], ["--diff", "scf", "flat"]):
        assert run(NEGATE, *words, "-o", f"{tmp_path}/")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["negate_20.diff", "negate_20.hlo", "negate_20.json"]
    assert (tmp_path / "negate_20.hlo").read_text() == run(NEGATE, "--stage", "hlo")[1]


def test_the_three_inputs_have_one_json() -> None:
    """Of `compile`, `list` and `explain`: the same keys; what both have is of the same type."""
    root = Path(__file__).parents[3]
    files = (
        NEGATE,
        root / "examples" / "modules" / "loop.hlo",
        root / "tests" / "corpus" / "stablehlo" / "outer.mlir",
    )
    for verb in ("compile", "list", "explain"):
        found = list[dict[str, Any]]()
        for file in files:
            found.append(json.loads(printed(verb, file, "--json")))
        fusion, module, program = found
        assert list(fusion) == list(module) == list(program)
        one, other = fusion["kernels"][0], program["kernels"][0]
        assert verb == "explain" or set(one) == set(
            other
        )  # of a kernel there are topics on which something was decided
        for key in set(one) & set(other):
            assert one[key] is None or other[key] is None or type(one[key]) is type(other[key]), key
        if verb == "compile":
            assert [each["shape"] for each in program["parameters"]] == [["b"], ["s"]]
            # 256 threads, of four elements each; the second kernel is for sizes that are not multiples of four
            grids = [kernel["grid"] for kernel in program["kernels"][:2]]
            assert grids == [["floordiv(b*s + 1023, 1024)", 1, 1], ["floordiv(b*s + 255, 256)", 1, 1]]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere.hlo"], 1, "error: [file] nowhere.hlo: No such file or directory"),
        (["."], 1, "error: [file] no module is in the directory ."),
        ([NEGATE, "--stage", "cubin"], 2, "error: unknown stage 'cubin'"),
        ([NEGATE, "--target", "sm_20"], 2, "error: unknown target 'sm_20'"),
        (
            [NEGATE, "--stage", "hlo", "-o", "nowhere/out"],
            2,
            "error: [output] cannot write nowhere/out: No such file or directory",
        ),
        ([NEGATE, "--stage", "hlo", "-o", "file/"], 2, "error: [output] cannot write to file: File exists"),
        ([NEGATE, "--stage", "scf", "--print-ir-tree-dir", "file/tree"], 2, "error: [dump] cannot write to file/tree"),
        (
            [NEGATE, "--stage", "flat", "--keep-intermediates", "d"],
            2,
            "error: --keep-intermediates needs the LLVM dialect",
        ),
    ],
)
def test_wrong_words(
    words: list[str | Path], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert messages(code, "compile", *words).startswith(message)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.hlo"
    path.write_bytes(b"HloModule \xff\n")
    assert f"{path} is not text: byte 10" in messages(1, "compile", path)


@pytest.mark.parametrize(
    ("tool", "said"), [("/nowhere/mlir-opt", "mlir-opt was not found"), ("/bin/true", "mlir-opt is of version")]
)
def test_a_missing_or_wrong_tool(tool: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 4, and what to install. Stages before the tools need none."""
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", tool)
    code, out, err = run(NEGATE)
    assert (code, out) == (4, "")
    assert said in err
    assert "apt-get install mlir-22-tools llvm-22" in err
    assert run(NEGATE, "--stage", "llvm-dialect")[0] == 0


@pytest.mark.parametrize(
    "words", [("--diff", "scf", "flat"), ("--print-ir-tree-dir", "IR"), ("--print-ir-after-all",), ("--time-passes",)]
)
@pytest.mark.parametrize("file", [NEGATE, EXAMPLES / "dense.mlir"], ids=["fusion", "program"])
def test_what_needs_no_ptx_asks_for_none(
    file: Path, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without LLVM's tools: the IR up to the LLVM dialect, and a note. A file of PTX that was asked for is an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", "/nowhere/mlir-opt")
    if file.suffix == ".mlir":
        words = ("--diff", "placed", "lmhlo") if "--diff" in words else words
    code, out, err = run(file, *words)
    assert code == 0, err
    assert "note: PTX is left out: mlir-opt was not found" in err
    assert out
    if "IR" in words:
        assert len(list((tmp_path / "IR").rglob("*.*"))) > 5
    if "--diff" not in words:
        assert run(file, *words, "-o", "code.ptx")[0] == 4


@pytest.mark.parametrize(("name", "stage"), [("softmax.mlir", "fused"), ("gelu.hlo", "hlo")])
def test_the_file_that_was_read_is_not_overwritten(name: str, stage: str, tmp_path: Path) -> None:
    file = written(tmp_path / name, text := (EXAMPLES / name).read_text())
    assert f"{file} is the file that was read" in messages(2, "compile", file, "--stage", stage, "-o", f"{tmp_path}/")
    assert file.read_text() == text
    assert main(["compile", str(file), "--stage", stage, "-o", f"{tmp_path}/other/"]) == 0
    assert (tmp_path / "other" / name).exists()
