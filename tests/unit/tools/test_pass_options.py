"""--pass-options, --pipeline, --replace-cpu-alloc and --entry of programs, from the command line; numbers are NumPy's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import called, messages, printed, written

import xla_emitters as xe

PRODUCT = """
func.func public @main(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}"""
SUMS = """
func.func public @main(%x: tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %c = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %r, %c : tensor<?xf32>, tensor<?xf32>
}"""
INTEGERS = """
func.func public @main(%x: tensor<?xi32>) -> tensor<?xi32> {
  %0 = stablehlo.add %x, %x : tensor<?xi32>
  %1 = stablehlo.multiply %0, %x : tensor<?xi32>
  return %1 : tensor<?xi32>
}"""
TWO = """
func.func public @first(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.negate %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func public @second(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


def ran(folder: Path, text: str, *words: str, **arrays: np.ndarray) -> list[np.ndarray]:
    """The results of `run` with these options."""
    given: dict[str, Any] = {**arrays}
    np.savez(folder / "in.npz", **given)
    files = ["--inputs", folder / "in.npz", "--outputs", folder / "out.npz"]
    code, _, err = called("run", written(folder / "a.mlir", text), *files, *words)
    assert code == 0, err
    with np.load(folder / "out.npz") as found:
        return [found[name] for name in sorted(found.files) if not name.endswith("dtype")]


def compiled(folder: Path, text: str, *words: str) -> str:
    return printed("compile", written(folder / "a.mlir", text), *words)


def test_products_are_padded_and_cut_under_a_condition(tmp_path: Path) -> None:
    asked = ["--pass-options", "disc-base-gemm{multiple=8 least=8}"]
    assert "hlo.conditional" in compiled(tmp_path, PRODUCT, "--stage", "graph", *asked)
    assert "hlo.conditional" not in compiled(tmp_path, PRODUCT, "--stage", "graph")
    draws = np.random.default_rng(1)
    for m, k, n in ((13, 27, 11), (3, 5, 2)):
        a, b = draws.integers(-4, 5, (m, k)).astype(np.float16), draws.integers(-4, 5, (k, n)).astype(np.float16)
        for stage in ((), ("--stage", "graph")):
            (found,) = ran(tmp_path, PRODUCT, *asked, *stage, p0=a, p1=b)
            np.testing.assert_array_equal(found, a @ b)  # small integers: exact in f16


def test_rows_and_columns_are_one_fusion_with_atomic_updates(tmp_path: Path) -> None:
    asked = ["--pass-options", "disc-fuse-on-buffer{mix-reductions},disc-lhlo-legalize-to-loop{atomics}"]
    assert compiled(tmp_path, SUMS, "--stage", "fused", *asked).count("lmhlo.fusion") == 1
    assert compiled(tmp_path, SUMS, "--stage", "fused").count("lmhlo.fusion") == 2
    assert "memref.atomic_rmw" in compiled(tmp_path, SUMS, "--stage", "loops", *asked)
    x = np.random.default_rng(2).integers(-8, 9, (70, 130)).astype(np.float32)
    for stage in ((), ("--stage", "kernels"), ("--stage", "llvm-dialect")):
        rows, columns = ran(tmp_path, SUMS, *asked, *stage, p0=x)
        np.testing.assert_array_equal(rows, x.sum(1))
        np.testing.assert_array_equal(columns, x.sum(0))


def test_integers_on_the_host(tmp_path: Path) -> None:
    asked = ["--pass-options", "disc-placer{i32-on-host}"]
    placed = compiled(tmp_path, INTEGERS, "--stage", "placed", *asked)
    assert placed.count("hlo.d2h") == placed.count("hlo.h2d") == 1
    x = np.arange(-5, 7, dtype=np.int32)
    for stage in ((), ("--stage", "placed"), ("--stage", "host")):
        (found,) = ran(tmp_path, INTEGERS, *asked, *stage, p0=x)
        np.testing.assert_array_equal(found, 2 * x * x)


@pytest.mark.parametrize("asked", [["--replace-cpu-alloc"], ["--pass-options", "disc-convert-memory-marker{cpu-too}"]])
def test_the_hosts_allocator_is_the_runtimes(tmp_path: Path, asked: list[str]) -> None:
    on_host = "disc-placer{i32-on-host}"
    words = ["--pass-options", on_host, *asked] if len(asked) == 1 else ["--pass-options", f"{on_host},{asked[1]}"]
    host = compiled(tmp_path, INTEGERS, "--stage", "host", *words)
    assert '"alloc" on "cpu"' in host
    assert '"dealloc" on "cpu"' in host
    assert '"alloc" on "cpu"' not in compiled(tmp_path, INTEGERS, "--stage", "host", "--pass-options", on_host)
    x = np.arange(-5, 7, dtype=np.int32)
    for stage in ((), ("--stage", "host")):
        (found,) = ran(tmp_path, INTEGERS, *words, *stage, p0=x)
        np.testing.assert_array_equal(found, 2 * x * x)


def test_options_of_a_fusions_passes() -> None:
    file = Path(__file__).parents[3] / "examples" / "negate_20.hlo"
    said = messages(2, "compile", file, "--pass-options", "disc-placer{i32-on-host}")
    assert "'disc-placer', which this compilation does not run" in said


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--pipeline", "nonsense"], 2, "there is no pass 'nonsense'"),
        (["--pipeline", "disc-inliner"], 1, "the pipeline ends on tensors"),
        (["--pipeline", "disc-inliner", "--stage", "graph"], 2, "the pipeline has no stage 'graph'"),
        (["--pass-options", "disc-placr{i32-on-host}"], 2, "there is no pass 'disc-placr'"),
        (["--pass-options", "disc-placer{on-host}"], 2, "disc-placer has no option 'on-host'"),
        (["--pass-options", "disc-placer"], 2, "'disc-placer' is given without an option"),
        (["--pass-options", "xla-unswitch-loops{a=1}"], 2, "xla-unswitch-loops has no option 'a'"),
        (["--hero-rules", "seed"], 2, "--hero-rules is for modules of HLO text"),
        (["--triton", "refuse"], 2, "--triton is for modules of HLO text"),
        (["--entry", "other"], 2, "has no function @other"),
    ],
)
@pytest.mark.parametrize("verb", ["compile", "run", "check", "explain"])
def test_what_a_program_does_not_take_is_refused(
    tmp_path: Path, verb: str, words: list[str], code: int, message: str
) -> None:
    if verb in ("check", "explain"):
        words = [word for word in words if word not in ("--stage", "graph")]
        message = message.replace("the pipeline has no stage 'graph'", "the pipeline ends on tensors")
        code = 1 if "ends on tensors" in message else code
    sizes = ["--sizes", "d0=3"] if verb in ("run", "check") else []
    assert message in messages(code, verb, written(tmp_path / "a.mlir", INTEGERS), *words, *sizes)


def test_several_functions_need_an_entry(tmp_path: Path) -> None:
    two = written(tmp_path / "two.mlir", TWO)
    for verb in ("compile", "run", "check", "list", "explain"):
        output = messages(1, verb, two)
        assert "two.mlir:6:18: error: [stablehlo.verify] 2 functions could be the entry: @first, @second" in output
        assert "help: --entry first" in output
    x = np.array([1, -2, 0.5], np.float32)
    for entry, wanted in (("first", -x), ("@second", 2 * x)):
        np.testing.assert_array_equal(ran(tmp_path, TWO, "--entry", entry, p0=x)[0], wanted)


def test_a_function_that_another_one_calls_is_no_entry(tmp_path: Path) -> None:
    text = TWO.replace("stablehlo.add %x, %x :", "func.call @first(%x) : (tensor<3xf32>) ->")
    x = np.array([1, -2, 0.5], np.float32)
    np.testing.assert_array_equal(ran(tmp_path, text, p0=x)[0], -x)


def test_python_takes_an_entry_and_options_of_passes() -> None:
    x = np.array([1, -2, 0.5], np.float32)
    np.testing.assert_array_equal(xe.compile(TWO, entry="second")(x), 2 * x)
    program = xe.compile(INTEGERS, stage="placed", pass_options=(("disc-placer", "i32_on_host", True),))
    assert "hlo.d2h" in program.code


@pytest.mark.parametrize("name", ["main", "tao_main"])
def test_main_and_bladediscs_name_are_entries(tmp_path: Path, name: str) -> None:
    x = np.array([1, -2, 0.5], np.float32)
    np.testing.assert_array_equal(ran(tmp_path, TWO.replace("@second", f"@{name}"), p0=x)[0], 2 * x)


def test_reduce_takes_an_entry(tmp_path: Path) -> None:
    words = ["reduce", written(tmp_path / "two.mlir", TWO), "--keep", "grep -q stablehlo.add", "--entry", "second"]
    assert called(*words, "--budget", "5", "-o", tmp_path / "small.mlir")[0] == 0
    assert "negate" not in (tmp_path / "small.mlir").read_text()


def test_threads_of_a_block_by_hint(tmp_path: Path) -> None:
    """The seed's kThreadPerBlockHint, on loops over elements and over rows."""
    text = SUMS.replace("return %r, %c", "%n = stablehlo.negate %x : tensor<?x?xf32>\n  return %r, %n")
    text = text.replace("(tensor<?xf32>, tensor<?xf32>) {", "(tensor<?xf32>, tensor<?x?xf32>) {")
    text = text.replace(": tensor<?xf32>, tensor<?xf32>\n}", ": tensor<?xf32>, tensor<?x?xf32>\n}")
    asked = ["--pass-options", "disc-lhlo-legalize-to-loop{thread-per-block=64},disc-fuse-on-buffer{stitch=false}"]
    listed = json.loads(printed("list", written(tmp_path / "a.mlir", text), "--json", *asked))
    launches = [launch for kernel in listed["kernels"] for launch in kernel["launch"]]
    assert {tuple(launch["block"]) for launch in launches} == {(64, 1, 1)}
    options = (("disc-lhlo-legalize-to-loop", "thread_per_block", 64), ("disc-fuse-on-buffer", "stitch", False))
    program, draws = xe.compile(text, pass_options=options), np.random.default_rng(3)
    for shape in ((70, 130), (3, 300), (1, 2500), (40, 8)):
        x = draws.integers(-8, 9, shape).astype(np.float32)
        for stage in ("kernels", "llvm-dialect"):
            rows, negated = program.run([x], stage)
            np.testing.assert_array_equal(rows, x.sum(1))
            np.testing.assert_array_equal(negated, -x)


@pytest.mark.parametrize(
    ("threads", "text", "message"),
    [(2048, INTEGERS, "a block of 2048 threads; h200 runs 1 to 1024"), (96, SUMS, "a block of 96 threads for rows")],
)
def test_wrong_numbers_of_threads_are_refused(tmp_path: Path, threads: int, text: str, message: str) -> None:
    asked = ["--pass-options", f"disc-lhlo-legalize-to-loop{{thread-per-block={threads}}}"]
    assert message in messages(1, "compile", written(tmp_path / "a.mlir", text), "--stage", "kernels", *asked)
