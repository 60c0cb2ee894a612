"""The verbs on a program in StableHLO: runs at several sizes with one compilation, stages, reports, and what is refused."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import called, messages, printed, written
from long_lists import but_long
from tools_here import PTX, SASS, needs

from xla_emitters.pipelines.program_kernels import GpuLowering
from xla_emitters.pipelines.program_passes import EXECUTABLE_PROGRAM_STAGES
from xla_emitters.tools.main import main

CORPUS = Path(__file__).parents[2] / "corpus" / "stablehlo"
OUTER, HALVES, LITERALS = (str(CORPUS / f"{name}.mlir") for name in ("outer", "halves", "literals"))
EXAMPLES = Path(__file__).parents[3] / "examples"
SOFTMAX, DENSE, NEGATE = (str(EXAMPLES / name) for name in ("softmax.mlir", "dense.mlir", "negate_20.hlo"))


def pair(folder: Path, name: str, b: int, s: int) -> list[str]:
    """--inputs and --outputs of a run of `halves` at these sizes."""
    np.savez(folder / f"{name}.npz", p0=np.arange(2 * b * (s + 1), dtype=np.float32).reshape(2 * b, s + 1))
    return ["--inputs", str(folder / f"{name}.npz"), "--outputs", str(folder / f"{name}.out.npz")]


def test_several_pairs_are_run_with_one_compilation(tmp_path: Path) -> None:
    pairs = [*pair(tmp_path, "a", 1, 2), *pair(tmp_path, "b", 2, 5)]
    said = json.loads(printed("run", HALVES, *pairs, "--json").splitlines()[-1])
    # Two fusions, each also with four elements at once.
    assert (said["compiles"], said["kernels"], said["library_calls"]) == (1, 4, 0)
    assert [run["sizes"] for run in said["runs"]] == [{"b": 1, "s": 2}, {"b": 2, "s": 5}]
    assert all(run["ok"] for run in said["runs"])
    with np.load(tmp_path / "b.out.npz") as found:
        assert [found[key].shape for key in ("r0", "r1")] == [(2, 6), (4, 5)]


def test_unequal_counts_are_usage_errors_before_anything_runs(tmp_path: Path) -> None:
    arguments = [*pair(tmp_path, "a", 1, 2), *pair(tmp_path, "b", 2, 5)[:2]]
    assert "--inputs is given 2 times and --outputs 1 times" in messages(2, "run", HALVES, *arguments)
    assert not (tmp_path / "a.out.npz").exists()


def test_a_bad_pair_ends_the_run_and_leaves_earlier_results(tmp_path: Path) -> None:
    arguments = [*pair(tmp_path, "a", 1, 2), *pair(tmp_path, "b", 2, 5), *pair(tmp_path, "c", 1, 1)]
    np.savez(tmp_path / "b.npz", p0=np.zeros((3, 4), np.float32))  # 2*b is not odd
    code, out, err = called("run", HALVES, *arguments, "--json")
    assert code == 1
    assert "Division had remainder 1 when computing the value of 'b'" in err
    assert len(json.loads(out.splitlines()[-1])["runs"]) == 1
    assert [(tmp_path / f"{name}.out.npz").exists() for name in "abc"] == [True, False, False]


def test_unknown_sizes_are_asked_for_by_name() -> None:
    assert "the size 'b' of jit_outer is unknown" in messages(1, "run", OUTER, "--sizes", "s=3")
    assert "--sizes b=2,s=2" in messages(1, "run", OUTER)


@pytest.mark.parametrize(
    ("sizes", "code", "message"),
    [
        ("b=2,s=3,t=1", 1, "jit_outer has no size 't': its sizes are b, s"),
        ("b=two", 2, "'b=two' is not NAME=NUMBER"),
        ("b=-1", 2, "is not NAME=NUMBER"),
        ("b=1,b=2", 2, "'b=2' is given twice"),
        ("b=0,s=1", 1, "Expected value >= 1 for dimension variable 'b'"),
        ("b=1,s=100000000000", 1, "a run may take"),
    ],
)
def test_sizes_that_are_wrong(sizes: str, code: int, message: str) -> None:
    assert message in messages(code, "run", OUTER, "--sizes", sizes)


def test_a_program_without_unknown_sizes_needs_neither() -> None:
    assert "r4 = f32[0,3]" in printed("run", LITERALS)


# `check` runs every stage; here are the first of each text: HLO, buffers, a host program, kernels.
@pytest.mark.parametrize(
    "stage", but_long(EXECUTABLE_PROGRAM_STAGES, ("stablehlo", "graph", "placed", "fused", "loops", "kernels"))
)
def test_every_stage_runs_and_is_printed(stage: str) -> None:
    assert "bit-identical to the NumPy reference" in printed("run", OUTER, "--sizes", "b=2,s=3", "--stage", stage)
    assert ("disc_ral.dispatch" in printed("compile", OUTER, "--stage", stage)) == (stage == "host")


@needs(*SASS)
@pytest.mark.parametrize("stage", ["ptx", "sass"])
def test_stablehlo_is_printed_beside_the_code(stage: str) -> None:
    """What is before the `//` is the code as it is printed without; every op that computes owns some instruction."""
    plain = printed("compile", SOFTMAX, "--stage", stage).split("\n")
    found = printed("compile", SOFTMAX, "--stage", stage, "--annotate").split("\n")
    assert all(line.startswith(text) for line, text in zip(found, plain, strict=True))
    beside = [line[len(text) :].strip() for line, text in zip(found, plain, strict=True)]
    alone = {comment.removeprefix("// ") for comment in beside if comment and " | " not in comment}
    ops = ("stablehlo.reduce", "stablehlo.subtract", "stablehlo.exponential", "stablehlo.divide")
    wanted = {line.strip() for line in Path(SOFTMAX).read_text().split("\n") if any(op in line for op in ops)}
    assert alone == wanted, "each is printed as its line in the file"
    maxima = "max.NaN.f32" if stage == "ptx" else "FMNMX.NAN"
    of_maxima = [
        c for text, c in zip(plain, beside, strict=True) if maxima in text and "@" not in text and "%r3," not in text
    ]
    assert len(of_maxima) > 10
    assert all("%max" in comment for comment in of_maxima)
    assert sum("%max = stablehlo.reduce" in comment for comment in of_maxima) >= len(of_maxima) - 1  # one of all ops


@needs(*PTX)
def test_kernels_are_lowered_once_for_annotated_code(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered, lower = list[str](), GpuLowering._lower

    def counted(self: GpuLowering, name: str, *rest: Any, **how: Any) -> Any:
        lowered.append(name)
        return lower(self, name, *rest, **how)

    monkeypatch.setattr(GpuLowering, "_lower", counted)
    assert "stablehlo.exponential" in printed("compile", SOFTMAX, "--annotate")
    assert sorted(set(lowered)) == sorted(lowered)


@needs(*SASS)
@pytest.mark.parametrize("program", but_long([SOFTMAX, OUTER], [SOFTMAX]), ids=lambda path: Path(path).stem)
def test_line_information_changes_no_machine_code(program: str) -> None:
    codes = list[str]()
    for words in ((), ("--line-info",)):
        codes.append(printed("compile", program, "--stage", "sass", *words))
    assert "EXIT" in codes[0]
    assert codes[0] == codes[1]
    ptx = printed("compile", program, "--line-info")
    assert f'.file\t1 "{program}"' in ptx
    lines = {int(line) for line in re.findall(r"\.loc\t1 (\d+) ", ptx)} - {0, 1}  # without an instruction
    text = Path(program).read_text().split("\n")
    assert lines
    assert all("stablehlo." in text[line - 1] for line in lines)


@needs(*SASS)
def test_code_in_a_directory_has_the_suffix_of_its_kind(tmp_path: Path) -> None:
    for stage in ("lmhlo", "ptx", "sass"):
        assert main(["compile", OUTER, "--stage", stage, "-o", f"{tmp_path}/"]) == 0
    assert sorted(path.name for path in tmp_path.glob("outer.*")) == [
        "outer.mlir",
        "outer.npz",
        "outer.ptx",
        "outer.sass",
    ]


@pytest.mark.parametrize("stage", ["stablehlo", "graph", "ptx"])
def test_an_unknown_target_is_refused_at_every_stage(stage: str) -> None:
    code, out, err = called("compile", OUTER, "--stage", stage, "--target", "sm_9990")
    assert (code, out) == (2, "")
    assert "unknown target 'sm_9990'" in err


@pytest.mark.parametrize("stage", ["llvm", "ptx"])
def test_what_llvm_made_is_executed(stage: str) -> None:
    said = printed("run", OUTER, "--sizes", "b=2,s=3", "--stage", stage)
    assert f"ran on the CPU at stage {stage} with b = 2, s = 3" in said
    assert "7 of 7 elements" in said


def test_what_llvm_made_is_checked() -> None:
    said = printed("check", OUTER, "--sizes", "b=2,s=3", "--stages", "llvm,ptx")
    assert "llvm, ptx: 7 of 7 elements" in said


def test_check_runs_every_stage() -> None:
    assert f"{', '.join(EXECUTABLE_PROGRAM_STAGES[1:])}: 7 of 7 elements" in printed(
        "check", OUTER, LITERALS, "--sizes", "b=2,s=3"
    )


def test_explain_says_symbols_guards_and_memory() -> None:
    said = printed("explain", HALVES, "--sizes", "b=2,s=4")
    assert "b     argument 0 (p0) 'x', axis 0, which is 2*b" in said
    assert "mod(p0_0, 2) == 0 (said by the program)" in said
    assert "memory at b = 2, s = 4" in said
    data = json.loads(printed("explain", HALVES, "--json"))
    assert [symbol["name"] for symbol in data["symbols"]] == ["b", "s"]
    assert data["unresolved"] == 0
    assert data["memory"] is None


@pytest.mark.parametrize(("path", "line"), [(HALVES, "2 fusions: 2 kLoop"), (LITERALS, "1 fusion: 1 kLoop")])
def test_explain_counts_fusions(path: str, line: str) -> None:
    assert f"  {line}\n" in printed("explain", path)


def test_list_says_what_runs_by_a_library() -> None:
    data = json.loads(printed("list", CORPUS / "layer.mlir", "--json"))
    assert [call["function"] for call in data["library_calls"]] == ["gemm"] * 4
    assert data["library_calls"][1]["results"] == ["f32[b,4,s,s]"]
    assert [kernel["emitter"] for kernel in data["kernels"]].count("stitch") >= 1
    assert all(kernel["supported"] for kernel in data["kernels"])
    launches = [launch for kernel in data["kernels"] for launch in kernel["launch"]]
    assert all(launch["block"] in ([128, 1, 1], [256, 1, 1], [512, 1, 1]) for launch in launches)


def test_list_is_of_what_runs() -> None:
    """Fusions first, each once, then library calls; an op in a fusion has no row; what neither computes has one."""
    *rows, end = printed("list", DENSE).splitlines()
    kinds = [row.split()[3].strip("()") if "(" in row else row.split()[2] for row in rows]
    assert kinds == sorted(kinds, key=lambda kind: not kind.startswith("k"))
    assert kinds.count("dot") == 1
    assert all(kind.startswith("k") or kind == "dot" for kind in kinds)
    assert len({row.split()[0] for row in rows}) == len(rows)
    assert "1 library call, 0 other ops" in end
    assert "in NumPy" not in "".join(rows)


def test_explain_of_a_program_begins_with_what_it_runs() -> None:
    lines = printed("explain", CORPUS / "layer.mlir").splitlines()
    assert re.fullmatch(r"\S+ for h200: \d+ kernels and 4 library calls, .* us", lines[0])
    assert lines[2].split()[:4] == ["share", "time", "what", "how"]
    assert lines.index("fusions") < lines.index("symbols")
    assert not any("in NumPy" in line for line in lines)


@needs(*PTX)
def test_code_of_all_kernels_is_one_text() -> None:
    code = printed("compile", OUTER)
    kernels = json.loads(printed("list", OUTER, "--json"))["kernels"]
    names = [launch["kernel"] for kernel in kernels for launch in kernel["launch"]]
    assert names
    assert all(f".entry {name}(" in code for name in names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", OUTER, "--fusion", "f"], "--fusion is for modules of HLO text"),
        (["run", OUTER, "--sanitize"], "--sanitize is for modules of HLO text"),
        (["run", OUTER, "--platform", "cuda", "--stage", "host"], "--stage runs on the CPU: a GPU runs PTX only"),
        (["run", OUTER, "--inputs", "a.npz", "--sizes", "b=1"], "the arrays have sizes"),
        (["run", OUTER, "--stage", "scf"], "a program has no stage 'scf'"),
        (["run", OUTER, "--sizes", "b=1,s=1", "--stage", "sass"], "no CPU runs the stage 'sass'"),
        (["check", OUTER, "--stages", "scf"], "a program has no stage 'scf'"),
        (["run", NEGATE, "--sizes", "b=1"], "--sizes is for programs (StableHLO)"),
        (["check", NEGATE, "--sizes", "b=1"], "--sizes is for programs (StableHLO)"),
        (["check", OUTER, "--blocks", "2"], "--blocks is for modules of HLO text"),
        (["compile", OUTER, "--tune", "price"], "--tune is for modules of HLO text"),
        (["compile", NEGATE, "--mixed-precision", "f16"], "--mixed-precision is for programs (StableHLO)"),
        (["check", OUTER, "--devices", "4"], "--devices is for modules of HLO text"),
        (["bisect", OUTER, "--devices", "4"], "--devices is for modules of HLO text"),
        (["run", NEGATE, "--launch", "1x20"], "--launch is for PTX and LLVM IR"),
        (["check", OUTER, "--tensor-map", "p0:f32[8],box=8"], "--tensor-map is for PTX and LLVM IR"),
    ],
)
def test_options_of_the_other_system_are_usage_errors(arguments: list[str], message: str) -> None:
    assert message in messages(2, *arguments)


@pytest.mark.parametrize("verb", ["compile", "run", "cost"])
def test_the_format_of_no_trace_is_refused_before_anything_is_done(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, NEGATE, "--trace-format", "chrome"]) == 2
    said = capsys.readouterr()
    assert "--trace-format chrome says how --trace writes" in said.err
    assert not said.out


def test_verbs_of_modules_refuse_a_program_and_say_which_take_it() -> None:
    said = messages(1, "maps", OUTER)
    assert f"{OUTER} is a program in StableHLO: indexing maps are of the fusions of HLO text" in said
    assert "help: run, check, compile, explain and list take programs" in said


@pytest.mark.parametrize("platform", ["cuda", "gpu"])
def test_without_a_gpu_a_program_says_so_before_it_is_compiled(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "--platform cuda: CuPy is not installed" in messages(
        4, "run", OUTER, "--platform", platform, "--sizes", "m=2,n=3"
    )


def test_optimize_wants_static_sizes_and_says_what_takes_others() -> None:
    said = messages(1, "optimize", OUTER)
    assert f"{OUTER}:" in said
    assert "a size is unknown" in said
    assert "compile and run take unknown sizes" in said


def test_a_file_of_another_kind_of_mlir_is_located(tmp_path: Path) -> None:
    text = "module {\n  func.func @f(%x: memref<4xf32>) -> memref<4xf32> {\n    return %x : memref<4xf32>\n  }\n}\n"
    path = written(tmp_path / "kernel.mlir", text)
    assert f"{path}:2:" in messages(1, "run", path)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "nowhere.mlir", "--sizes", "b=2"],
        ["cost", "nowhere.mlir", "--sizes", "b=2"],
        ["bundle", "nowhere.mlir", "--abi", "c", "-o", "nowhere"],
    ],
)
def test_a_file_that_is_not_there_is_not_called_hlo_text(words: list[str]) -> None:
    assert "error: [file] nowhere.mlir: No such file or directory" in messages(1, *words)
