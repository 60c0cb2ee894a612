"""Modules that cannot be compiled whole: `--keep-going` takes the fusions that can be, says what was left out, and ends with 1."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from in_process import called, messages, printed
from tools_here import PTX, needs
from unit.tools.test_list_verb import ELIDED, REFUSED, RUNS

LEFT_OUT = ["left out %ar of computation 'body' (m.hlo:24:3): ", "left out %k of computation 'body' (m.hlo:25:3): "]


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """m.hlo holds a collective and a callback, whole.hlo does not."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("m", REFUSED), ("whole", RUNS), ("elided", ELIDED)):
        Path(f"{name}.hlo").write_text(text)


def said(err: str) -> list[str]:
    return [line[: line.index("): ") + 3] for line in err.splitlines() if line.startswith("left out ")]


@needs(*PTX)
def test_what_can_be_compiled_is_one_module() -> None:
    code, out, err = called("compile", "m.hlo", "--keep-going")
    assert (code, said(err)) == (1, LEFT_OUT)
    assert sorted(re.findall(r"\.entry (\w+)\(", out)) == ["f", "f_1", "j", "l"]
    assert out.count(".version") == 1
    code, out, err = called("compile", "m.hlo")
    assert (code, out) == (1, "")
    assert err.startswith("m.hlo:24:3: error: ")


def test_where_nothing_is_left_out_it_changes_nothing() -> None:
    without = called("compile", "whole.hlo", "--stage", "flat")
    assert without[0] == 0
    assert called("compile", "whole.hlo", "--stage", "flat", "--keep-going") == without


def test_an_mlir_stage_is_read_back() -> None:
    code, out, _ = called("compile", "m.hlo", "--keep-going", "--stage", "scf")
    Path("m.mlir").write_text(out)
    assert code == 1
    code, again, err = called("opt", "m.mlir")
    assert (code, err) == (0, "")
    assert re.findall(r"func\.func @(\w+)", again) == re.findall(r"func\.func @(\w+)", out) == ["l", "j", "f", "f_1"]


def test_each_fusion_is_checked() -> None:
    code, out, err = called("check", "m.hlo", "--keep-going", "--stages", "scf", "--json")
    (row,) = json.loads(out)["files"]
    assert (code, said(err)) == (1, LEFT_OUT)
    assert [(kernel["name"], kernel["ok"]) for kernel in row["kernels"]] == [
        *(("l", True), ("j", True), ("f", True), ("f.1", True))
    ]
    assert (row["ok"], row["summary"].endswith("; 2 left out")) == (False, True)
    assert [(each["name"], each["computation"], each["place"]) for each in row["left_out"]] == [
        *(("ar", "body", "m.hlo:24:3"), ("k", "body", "m.hlo:25:3"))
    ]


@needs(*PTX)
def test_a_bundle_of_what_can_be_compiled() -> None:
    code, out, err = called("bundle", "m.hlo", "--keep-going", "-o", "k.zip")
    assert (code, said(err)) == (1, LEFT_OUT)
    assert "1 program, 4 kernels" in out
    assert zipfile.ZipFile("k.zip").testzip() is None


@pytest.mark.parametrize("verb", ["compile", "check"])
def test_where_nothing_can_be_compiled_the_error_is_the_modules(verb: str) -> None:
    Path("none.hlo").write_text(
        "ENTRY main {\n  p = f32[8] parameter(0)\n"
        '  ROOT k = f32[8] custom-call(p), custom_call_target="xla_ffi_python_gpu_callback"\n}\n'
    )
    assert messages(1, verb, "none.hlo", "--keep-going").startswith("none.hlo:3:8: error: ")


# ---- a fusion in a loop's body, by name ----


@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (["compile", "--stage", "xla_gpu"], "func.func @j("),
        (["run", "--platform", "cpu", "--stage", "scf"], "1 of 1 elements bit-identical"),
        (["check", "--stages", "scf"], "ok  1 stage: 1 of 1 elements"),
        (["explain"], "loop emitter"),
        (["maps"], "fusion j"),
        pytest.param(["bundle", "-o", "j.zip"], "1 program, 1 kernel ", marks=needs(*PTX)),
    ],
)
def test_a_fusion_in_a_loop(words: list[str], said_of_it: str) -> None:
    """Also where the module around it cannot be compiled."""
    assert said_of_it in printed(words[0], "m.hlo", *words[1:], "--fusion", "j")


def test_a_name_that_is_in_several_computations_is_the_one_in_entry() -> None:
    assert "there are: f, l (in 'condition'), j (in 'body')" in messages(2, "explain", "m.hlo", "--fusion", "nothing")


# ---- a file a kernel ----


@needs(*PTX)
def test_a_file_a_kernel() -> None:
    """Named as the kernels of --json, each with its one entry."""
    kernels = [kernel["name"] for kernel in json.loads(called("compile", "whole.hlo", "--json")[1])["kernels"]]
    for stage, suffix, entry in (
        *(("ptx", "ptx", r"\.entry (\w+)\("), ("llvm", "ll", r"define ptx_kernel void @(\w+)\(")),
        *(("flat", "mlir", r"func\.func @(\w+)\("), ("llvm-dialect", "mlir", r"llvm\.func @(\w+)\(")),
    ):
        assert called("compile", "whole.hlo", "--stage", stage, "-o", f"{stage}/") == (0, "", "")
        files = {path.name: path.read_text() for path in Path(stage).iterdir()}
        assert sorted(files) == sorted(f"{name}.{suffix}" for name in kernels)
        for name, text in files.items():
            assert re.findall(entry, text) == [name.removesuffix(f".{suffix}")]
            assert text.count("{") == text.count("}")
    # A directory that exists needs no slash.
    assert called("compile", "whole.hlo", "--stage", "scf", "-o", "flat")[0] == 0


@needs(*PTX)
def test_a_module_without_kernels() -> None:
    Path("sort.hlo").write_text(
        "less { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT }\n"
        "ENTRY main { p = f32[8] parameter(0)\n  ROOT s = f32[8] sort(p), dimensions={0}, to_apply=less }\n"
    )
    assert called("compile", "sort.hlo") == (0, "// no kernels\n", "")


# ---- what the text leaves out, loops without end ----


def test_elided_constants_compile_and_do_not_run() -> None:
    code, out, err = called("compile", "elided.hlo", "--stage", "flat")
    assert code == 0
    assert "func.func @r(" in out
    assert err.startswith("warning: the text leaves out the data of %c;")
    for words in (["run", "--platform", "cpu"], ["run", "--platform", "cpu", "--stage", "hlo"], ["check"]):
        err = messages(1, words[0], "elided.hlo", *words[1:])
        assert "leaves out the data of %c" in err
        assert "--xla_dump_large_constants" in err


def test_a_loop_has_as_many_iterations_as_are_allowed() -> None:
    """The loop counts from 0 to 5."""
    for words in (
        ["run", "--platform", "cpu"],
        ["run", "--platform", "cpu", "--stage", "hlo"],
        ["check", "--stages", "scf"],
    ):
        assert called(words[0], "whole.hlo", *words[1:], "--max-iterations", "5")[0] == 0
        err = messages(1, words[0], "whole.hlo", *words[1:], "--max-iterations", "4")
        assert "loop %w does not end within 4 iterations" in err
        assert "--max-iterations" in err
    assert called("check", "whole.hlo", "--max-iterations", "-1")[0] == 2
