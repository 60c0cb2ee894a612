"""`xla-emitters-opt`: our passes by our and by MLIR's names, options, printing, and errors with exit codes."""

import re
import sys
from functools import partial
from pathlib import Path

import pytest
from in_process import called, messages, printed, written
from tools_here import PTX, needs
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32

from xla_emitters.dialects.mlir import arith
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL as PASSES_IN_ORDER
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.tools.pass_list import MLIR_NAMES, PIPELINES
from xla_emitters.universe import PASSES, all_passes

KERNEL = """
#map = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 2), domain: d0 in [0, 7]">
func.func @f(%x: index {xla.range = [0 : index, 7 : index]}, %t: tensor<4xf32>) -> f32 {
  %0 = xla_gpu.apply_indexing #map(%x) loc("a"("k.hlo":1:2))
  %1 = xla_gpu.apply_indexing #map(%x) loc("b"("k.hlo":2:2))
  %2 = tensor.extract %t[%0] : tensor<4xf32> loc("a"("k.hlo":1:2))
  %3 = tensor.extract %t[%1] : tensor<4xf32> loc("b"("k.hlo":2:2))
  %4 = arith.addf %2, %3 : f32 loc("c"("k.hlo":3:2))
  return %4 : f32
}
"""
HLO = "HloModule n\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT n = f32[4] negate(x)\n}\n"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = written(tmp_path / "k.mlir", KERNEL)
    return path


run = partial(called, "opt")


@pytest.mark.tiny
def test_a_pass_on_a_file(kernel: Path) -> None:
    code, out, err = run(kernel, "-p", "xla-cse")
    assert (code, err) == (0, "")
    assert out.count("apply_indexing #map(") == out.count("tensor.extract") == 1
    assert "loc(" not in out


def test_every_pass_has_its_name() -> None:
    """The name on the command line is the class's, and file, class and test go by one stem."""
    for name, room in PASSES.items():
        found, stem = all_passes()[name](), name.removeprefix("xla-").removeprefix("gpu-").replace("-", "_")
        assert found.name == name
        assert found.__module__ == f"xla_emitters.{room}.{stem}"
        assert issubclass(found, KernelPass)


@pytest.mark.parametrize(("alias", "name"), MLIR_NAMES.items())
def test_mlirs_names_are_ours(alias: str, name: str, kernel: Path) -> None:
    """xDSL has passes of some of these names too; here they keep locations."""
    by_alias = run(kernel, "-p", alias, "--print-debuginfo")
    assert by_alias == run(kernel, "-p", name, "--print-debuginfo")
    assert by_alias[0] == 0
    if alias == "cse":
        assert 'loc(fused["a"("k.hlo":1:2), "b"("k.hlo":2:2)])' in by_alias[1]


@pytest.mark.parametrize("option", ["-p", "--passes", "--pass-pipeline"])
def test_spellings_of_the_pass_list(option: str, kernel: Path) -> None:
    assert printed("opt", kernel, option, "xla-cse,xla-canonicalize").count("tensor.extract") == 1


@pytest.mark.parametrize(
    "words",
    [
        # As mlir-opt takes a pipeline, and as XLA writes it into its log.
        ["-p", "builtin.module(func.func(xla-simplify-arith),cse)"],
        [
            "-p",
            "any(func.func(xla-simplify-arith{explicit_nan_propagation=false fast_min_max=false}),"
            "canonicalize{cse-between-iterations=false    max-iterations=10 top-down=true},stablehlo-convert-to-signless,"
            "inline{default-pipeline=canonicalize inlining-threshold=4294967295 max-iterations=4 },cse,"
            "func.func(xla-vectorize-loads-stores{gpu_device_info= target_type=gpu}))",
        ],
        ["-p", """xla-vectorize-loads-stores{gpu_device_info="cuda_compute_capability {major: 9}"},cse"""],
        # Flags, as XLA's own driver has them; a driver's other options beside them.
        ["-xla-simplify-arith", "--print-debuginfo", "--cse", "--xla-gpu-optimize-loops=max_unroll_factor=8"],
        ["-xla-lower-tensors=gpu_device_info='cuda_compute_capability {major: 8 minor: 6}'", "-cse=", "-p", ""],
        ["-xla-test-optimize"],
        # Each long option with one dash, and MLIR's names; a GPU older than all known ones, as XLA's tests name it.
        [
            "-split-input-file",
            "-allow-unregistered-dialect",
            "-mlir-print-debuginfo",
            "-pass-pipeline=cse,xla-simplify-arith",
        ],
        ["-xla-vectorize-loads-stores=target_type=gpu gpu_device_info='cuda_compute_capability {major: 6}'", "-cse"],
    ],
)
def test_passes_as_mlirs_and_xlas_drivers_take_them(words: list[str], kernel: Path) -> None:
    code, out, err = run(kernel, *words)
    assert (code, err) == (0, "")
    assert out.count("apply_indexing #map(") == (2 if words[-1] == "" else 1)


def test_xlas_pipelines_for_tests_are_ours_in_three_parts(kernel: Path) -> None:
    """One after the other they are the whole pipeline."""
    kernel.write_text(KERNEL.replace("-> f32 {", "-> f32 attributes {xla.entry} {"))
    passes: list[str] = []
    for name in PIPELINES:
        passes += re.findall(r"^(\S+)  \d", run(kernel, "-p", name, "--time-passes")[2], re.MULTILINE)
    assert passes == [row.make(CompileOptions()).name for row in PASSES_IN_ORDER]


def test_locations_are_printed_and_read_back(kernel: Path, tmp_path: Path) -> None:
    _, out, _ = run(kernel, "--print-debuginfo")
    assert ' : f32 loc("c"("k.hlo":3:2))\n' in out
    again = written(tmp_path / "again.mlir", out)
    assert run(again, "--print-debuginfo") == (0, out, "")


def test_hlo_is_an_input_format(tmp_path: Path) -> None:
    """By the file's name, or by -f on standard input; the printed dialect is read back."""
    path = written(tmp_path / "n.hlo", "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT n = f32[4] negate(x)\n}\n")
    code, out, err = run(path)
    assert (code, err) == (0, "")
    assert '%n = hlo.negate %x {name = "n"} : tensor<4xf32>' in out
    assert run("-f", "hlo", stdin=path.read_bytes()) == (0, out, "")
    for words in [], ["-", "-o", "-"]:
        assert run(*words, stdin=out.encode()) == (0, out, "")


@pytest.mark.parametrize("flag", ["fast-min-max", "fast_min_max=1", "fast-min-max=true"])
def test_a_flag_of_a_pass_without_a_value_is_true(flag: str, tmp_path: Path) -> None:
    path = tmp_path / "k.mlir"
    path.write_text("func.func @f(%a: f32, %b: f32) -> f32 {\n  %0 = arith.minimumf %a, %b : f32\n  return %0 : f32\n}")
    assert "arith.select" in run(path, "-p", f"xla-simplify-arith{{{flag}}}")[1]
    assert "arith.select" not in run(path, "-p", "xla-simplify-arith{fast-min-max=0}")[1]


@pytest.mark.parametrize("name", ["k.txt", "k", "k.before_canonicalize"])
def test_a_name_that_does_not_say_the_format(name: str, tmp_path: Path) -> None:
    """HLO begins with HloModule, as XLA's dumps do; all else is MLIR. Standard input too."""
    path = tmp_path / name
    for text, wanted in ((KERNEL, "tensor.extract"), (f"// dump\n{HLO}", "hlo.negate")):
        path.write_text(text)
        code, out, err = run(path)
        assert (code, err) == (0, "")
        assert wanted in out
        assert run(stdin=path.read_bytes()) == (0, out, "")


def test_a_text_may_begin_with_many_empty_lines_and_comments(tmp_path: Path) -> None:
    """Whether it is HLO is known in linear time."""
    path, before = tmp_path / "k.txt", "\n" * 200 + "// a // b // c\n" * 50
    for text, wanted in ((KERNEL, "tensor.extract"), (HLO, "hlo.negate")):
        path.write_text(before + text)
        assert wanted in printed("opt", path)


def test_diagnostics_are_printed_not_failures(tmp_path: Path) -> None:
    """xDSL's options: a part that is wrong is reported on standard output, and the next part is read."""
    path = tmp_path / "k.mlir"
    broken = 'func.func @g() {\n  %0 = "arith.constant"() : () -> i32\n  return\n}\n'
    path.write_text(f"{broken}// -----\nfunc.func @h() {{\n  arith.nope\n}}\n// -----\n{KERNEL}")
    words = (path, "--split-input-file", "-p", "xla-propagate-slice-indices", "--verify-diagnostics")
    code, out, err = run(*words, "--parsing-diagnostics")
    assert (code, err) == (0, "")
    assert "k.mlir:2:8: error: [ir.verify] arith.constant: property 'value' expected" in out
    assert "k.mlir:7:3: error: [ir.parse] there is no op 'arith.nope'" in out
    assert "error: [xla-propagate-slice-indices] no function has the attribute xla.entry" in out
    assert "tensor.extract" not in out
    assert "there is no op 'arith.nope'" in messages(1, "opt", *words)


def test_what_xdsls_targets_do_not_take_is_no_bug(kernel: Path) -> None:
    code, out, err = run(kernel, "-t", "llvm")
    assert (code, out) == (1, "")
    assert err.startswith("error: [output] xDSL's target 'llvm' does not take this IR: ")


@needs(*PTX)
@pytest.mark.parametrize("stage", ["xla_gpu", "flat", "llvm-dialect"])
def test_ptx_of_a_kernels_ir_is_that_of_its_hlo(stage: str, tmp_path: Path, kernel: Path) -> None:
    hlo = written(tmp_path / "n.hlo", HLO)
    ir = written(tmp_path / "ir.mlir", printed("compile", hlo, "--stage", stage))
    assert printed("opt", ir, "-t", "ptx") == printed("compile", hlo)
    said = messages(1, "opt", kernel, "-t", "ptx")
    assert said.startswith(
        "error: [ptx] func.func is neither HLO nor a kernel, whose entry has the attribute xla.entry\n"
    )


def test_a_device_is_an_option_of_a_pass(kernel: Path) -> None:
    code, _, err = run(kernel, "-p", 'xla-vectorize-loads-stores{device="a6000"}')
    assert (code, err) == (0, "")
    assert "unknown target 'a6001'" in messages(2, "opt", kernel, "-p", 'xla-vectorize-loads-stores{device="a6001"}')


def test_faults_are_placed_in_the_file_not_in_their_part_of_it(tmp_path: Path) -> None:
    path = written(tmp_path / "two.mlir", KERNEL + "// -----\n" + KERNEL.replace("arith.addf", "arith.addg"))
    assert f":{KERNEL.count(chr(10)) + 9}:8: error: [ir.parse] there is no op 'arith.addg'" in messages(
        1, "opt", path, "--split-input-file"
    )


def test_times_and_ir_between_passes_go_to_stderr(kernel: Path) -> None:
    code, out, err = run(kernel, "-p", "cse,canonicalize,symbol-dce", "--time-passes", "--print-between-passes")
    assert code == 0
    assert out == run(kernel, "-p", "cse,canonicalize,symbol-dce")[1]
    assert re.findall(r"^(\S+)  \d+\.\d ms$", err, re.MULTILINE) == ["xla-cse", "xla-canonicalize", "symbol-dce"]
    assert re.findall(r"IR after (\S+) ", err) == ["xla-cse", "xla-canonicalize"]


def test_remarks(tmp_path: Path) -> None:
    path = tmp_path / "loop.mlir"
    path.write_text(
        """
func.func @f(%n: index, %t: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %t) -> (tensor<4xf32>) {
    %x = tensor.extract %t[%c0] : tensor<4xf32>
    %w = tensor.insert %x into %s[%c0] : tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  } loc("sum"("k.hlo":7:3))
  return %r : tensor<4xf32>
}
"""
    )
    code, _, err = run(path, "-p", "xla-gpu-optimize-loops", "--remarks")
    assert code == 0
    assert re.match(r"xla-gpu-optimize-loops: skipped scf\.for: .+ at sum \(k\.hlo:7:3\)\n", err), err
    assert run(path, "-p", "xla-gpu-optimize-loops")[2] == ""


class Stumbling(KernelPass):
    __module__ = "xla_emitters.transforms.stumbling"
    name = "stumbling"

    def apply_to(self, op: ModuleOp) -> None:
        raise ZeroDivisionError("by nothing")


class Breaking(KernelPass):
    __module__ = "xla_emitters.transforms.breaking"
    name = "breaking"

    def apply_to(self, op: ModuleOp) -> None:
        add = next(inner for inner in op.walk() if isinstance(inner, arith.AddfOp))
        constant = arith.ConstantOp(IntegerAttr(1, i32))
        add.parent.insert_op_before(constant, add)
        add.operands[1] = constant.result


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Stumbling, "error: [stumbling] stumbling: ZeroDivisionError: by nothing"),
        (Breaking, "k.hlo:3:2: error: [breaking] the IR after breaking does not verify: arith.addf: "),
    ],
)
def test_a_pass_of_ours_that_fails_is_a_bug(
    broken: type[KernelPass], message: str, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names itself and, where it can, the place; exit code 70, with a reproducer."""
    monkeypatch.setattr("xla_emitters.universe.all_passes", lambda: {broken.name: lambda: broken})
    code, out, err = run(kernel, "-p", broken.name)
    assert (code, out) == (70, "")
    assert err.startswith(message)
    assert "please report it with" in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["k.mlir", "-p", "xla-ces"], 2, "error: [opt] there is no pass 'xla-ces'\n    help: did you mean 'xla-cse'?"),
        (["k.mlir", "-p", "xla-cse{"], 2, "error: [opt] Error parsing pass pipeline specification"),
        (
            ["k.mlir", "-p", "xla-cse{fast=1}"],
            2,
            "error: [opt] xla-cse has no option 'fast'\n    help: its options: none",
        ),
        (
            ["k.mlir", "-p", "xla-lower-xla-to-scf{warpsize=3}"],
            2,
            "error: [opt] xla-lower-xla-to-scf has no option 'warpsize'\n    help: did you mean 'warp-size'?",
        ),
        (
            ["k.mlir", "-p", "xla-lower-xla-to-scf{warp_size=abc}"],
            2,
            "error: [opt] xla-lower-xla-to-scf: warp-size cannot be 'abc'",
        ),
        (
            ["k.mlir", "-p", "xla-simplify-arith{fast-min-max=maybe}"],
            2,
            "error: [opt] xla-simplify-arith: fast-min-max cannot be 'maybe'",
        ),
        (["rank.mlir", "-p", "cse,xla-lower-tensors"], 1, "rank.mlir:2:8: error: [xla-lower-tensors] "),
        (["k.mlir", "-p", "xla-lower-xla-to-scf{warp-size=33}"], 2, "error: xla-lower-xla-to-scf: warp-size=33"),
        (["k.mlir", "-p", "xla-gpu-optimize-loops{max-unroll-factor=-1}"], 2, "error: xla-gpu-optimize-loops: max-"),
        (
            ["k.mlir", "-p", "disc-number-random-ops{seed=18446744073709551616}"],
            2,
            "error: [opt] disc-number-random-ops: seed cannot be '18446744073709551616', which has more than 64 bits",
        ),
        (["k.mlir", "-p", "disc-base-gemm{multiple=-8}"], 2, "error: disc-base-gemm: multiple=-8"),
        (["k.mlir", "-p", "disc-lhlo-legalize-to-loop{target=tpu}"], 2, "error: disc-lhlo-legalize-to-loop: no target"),
        (["k.mlir", "-p", "xla-split-results{hero-rules=old}"], 2, "error: xla-split-results: no rules 'old'"),
        (["k.mlir", "-p", "xla-split-triton-fusions{triton=keep}"], 2, "error: xla-split-triton-fusions: triton=keep"),
        (
            ["k.mlir", "-p", "cse,,cse"],
            2,
            "error: [opt] Error parsing pass pipeline specification: wanted a pass, got ',cse'",
        ),
        (["k.mlir", "-p", "any(cse"], 2, "error: [opt] Error parsing pass pipeline specification: wanted ')'"),
        (
            ["k.mlir", "-p", "xla-lower-tensors{target_type=cpu}"],
            2,
            "error: [opt] xla-lower-tensors does not support target_type=cpu",
        ),
        (
            ["k.mlir", "-xla-lower-tensors=gpu_device_info='core_count: 3'"],
            2,
            "error: [opt] gpu_device_info names no cuda_compute_capability",
        ),
        (["k.mlir", "-xla-lower-tensors=gpu_device_info=x"], 1, "gpu_device_info:1:2: error: [target] "),
        (["nowhere.mlir"], 1, "error: [file] nowhere.mlir: No such file or directory"),
        (["."], 1, "error: [file] .: Is a directory"),
        (["k.mlir", "-o", "nowhere/out"], 2, "error: [output] cannot write nowhere/out: No such file or directory"),
        (["cut.mlir"], 1, "cut.mlir:6:"),
        (["indices.mlir"], 1, "indices.mlir:6:8: error: [ir.verify] tensor.extract: "),
        (["dialect.mlir"], 1, "dialect.mlir:8:8: error: [ir.parse] there is no op 'arith.addg'"),
        (["bytes.mlir"], 1, "error: [read] bytes.mlir is not text: byte 0 is 0xff"),
        (["bad.hlo"], 1, "bad.hlo:1:11: error: [hlo.parse] "),
    ],
)
def test_faults(words: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "k.mlir": KERNEL,
        "cut.mlir": KERNEL[: KERNEL.index("%2") + 8],
        "indices.mlir": KERNEL.replace("%t[%0]", "%t[%0, %0]"),
        "dialect.mlir": KERNEL.replace("arith.addf", "arith.addg"),
        "rank.mlir": "func.func @f(%i: index, %t: tensor<4x4xf32>) -> f32 {\n"
        "  %0 = tensor.extract %t[%i, %i] : tensor<4x4xf32>\n  return %0 : f32\n}",
        "bad.hlo": "ENTRY e ( {",
    }.items():
        Path(name).write_text(text)
    Path("bytes.mlir").write_bytes(b"\xff\xff")
    got, out, err = run(*words)
    assert (got, out) == (code, "")
    assert err.startswith(message), err
    assert "Traceback" not in err


# ------------------------------------------------------------------------------------------------------------------- first hours


def test_a_wrong_command_line_is_a_message(kernel: Path) -> None:
    help = "    help: see xla-emitters-opt --help\n"
    assert messages(2, "opt", kernel, "--frobnicate") == f"error: [usage] unrecognized arguments: --frobnicate\n{help}"
    assert "--spelling? see" in messages(2, "opt", kernel, "--spelin=seed")
    for words in (("-t", "nonsense"), ("--spelling", "nonsense")):
        said = messages(2, "opt", kernel, *words)
        assert re.match(r"error: \[usage\] argument .*: invalid choice: 'nonsense' \(choose from ", said), said
        assert said.endswith(help)


@pytest.mark.parametrize("text", ["", "\n\n", "// nothing but this\n"])
def test_a_text_without_ops(text: str, tmp_path: Path) -> None:
    (tmp_path / "e.mlir").write_text(text)
    assert "error: [ir.parse] there is no op in the text\n" in messages(1, "opt", tmp_path / "e.mlir")


def test_a_target_of_xdsl_without_its_package(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("llvmlite", "llvmlite.ir"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("xdsl.backend.llvm")]:
        monkeypatch.delitem(sys.modules, name)
    said = messages(4, "opt", kernel, "-t", "llvm")
    assert "xDSL's target 'llvm' needs a package that is not installed: llvmlite" in said
    assert "-m pip install llvmlite" in said


def test_help_says_what_each_pass_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name is in one piece, also where lines are short."""
    monkeypatch.setenv("COLUMNS", "60")
    listed = printed("opt", "--help").partition("\npasses (")[2]
    rows = dict(re.findall(r"^  (\S.*)\n((?: {8}.*\n)+)", listed, re.MULTILINE))
    assert {name.partition(",")[0] for name in rows} == set(all_passes())
    assert all(len(sentence) > 20 for sentence in rows.values()), rows
    assert rows["xla-flatten-tensors"].strip().startswith("Flatten N-d tensors to 1-d, so that")
    assert "xla-cse, cse" in rows
    assert set(MLIR_NAMES) <= {alias for names in rows for alias in names.split(", ")[1:]}
