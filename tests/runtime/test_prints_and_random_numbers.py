"""Calls of the runtime without a kernel: `print`, and `rng` of unknown size with a seed. Numbers are those of the distributions."""

import math
from pathlib import Path

import numpy as np
import pytest
from in_process import call_main

import xla_emitters as xe
from xla_emitters.explore.check.program_stages import check_program
from xla_emitters.program import Program

PRINT = """
func.func public @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = stablehlo.add %x, %x : tensor<?x3xf32>
  stablehlo.custom_call @print(%y) {has_side_effect = true, name = "twice"} : (tensor<?x3xf32>) -> ()
  %z = stablehlo.custom_call @print(%y) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %w = stablehlo.multiply %z, %x : tensor<?x3xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  stablehlo.custom_call @print(%n) : (tensor<i32>) -> ()
  return %w : tensor<?x3xf32>
}
"""
RANDOM = """
func.func public @main(%x: tensor<?x4xT>, %a: tensor<T>, %b: tensor<T>) -> (tensor<?x4xT>, tensor<?x4xT>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xT>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %s = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %u = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution KIND>}
    : (tensor<T>, tensor<T>, tensor<2xi32>) -> tensor<?x4xT>
  %v = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution KIND>}
    : (tensor<T>, tensor<T>, tensor<2xi32>) -> tensor<?x4xT>
  return %u, %v : tensor<?x4xT>, tensor<?x4xT>
}
"""


def random(kind: str, element: str = "f32", seed: int = 0) -> Program:
    text = RANDOM.replace("KIND", kind).replace("xT>", f"x{element}>").replace("<T>", f"<{element}>")
    program = xe.compile(text, rng_seed=seed)
    assert isinstance(program, Program)
    return program


def drawn(program: Program, rows: int, a: float, b: float, stage: str | None = None) -> list[np.ndarray]:
    element = np.dtype({"f32": np.float32, "s32": np.int32}[program.results[0].dtype])
    return program.run([np.zeros((rows, 4), element), element.type(a), element.type(b)], stage)


def test_a_value_is_printed_with_its_shape_and_name(capfd: pytest.CaptureFixture[str]) -> None:
    program = xe.compile(PRINT)
    for rows in (1, 2, 0):
        x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
        for _ in range(2):
            np.testing.assert_array_equal(program(x), 2 * x * x)
            lines = [f"twice: f32[{rows},3] {x + x}", f"y: f32[{rows},3] {x + x}", f"n: s32[] {rows}"]
            assert capfd.readouterr().err == "\n".join(lines) + "\n"


def test_each_run_prints(capfd: pytest.CaptureFixture[str]) -> None:
    program, x = xe.compile(PRINT), np.ones((2, 3), np.float32)
    for _ in range(9):
        program(x)
    assert capfd.readouterr().err.count("twice: f32[2,3]") == 9


def test_the_reference_and_a_print_that_nothing_reads(tmp_path: Path) -> None:
    """The reference prints nothing, a print keeps its array alive, and the text of a program keeps its prints."""
    (tmp_path / "p.mlir").write_text(PRINT)
    code, out, err = call_main(["xla-emitters", "run", str(tmp_path / "p.mlir"), "--sizes", "d0=2"], b"")
    assert code == 0
    assert b"6 of 6 elements bit-identical" in out
    assert err.count(b"twice: f32[2,3]") == err.count(b"n: s32[] 2") == 1
    from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo

    again = print_stablehlo(parse_stablehlo(PRINT))
    assert again.count('call_target_name = "print"') == 3, again
    assert again == print_stablehlo(parse_stablehlo(again))


def test_uniform_numbers_of_unknown_size() -> None:
    program = random("UNIFORM")
    for rows in (1, 3000):
        first, second = drawn(program, rows, -2, 3)
        assert first.shape == second.shape == (rows, 4)
        assert (first >= -2).all()
        assert (first < 3).all()
        assert not np.array_equal(first, second)
    ordered = np.sort(first.ravel())
    distance = np.abs((ordered + 2) / 5 - (np.arange(ordered.size) + 0.5) / ordered.size).max()
    assert distance < 1.95 / math.sqrt(ordered.size)  # Kolmogorov: one of a thousand is further away
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 5 / math.sqrt(ordered.size)
    assert drawn(program, 0, 0, 1)[0].shape == (0, 4)


def test_normal_numbers_of_unknown_size() -> None:
    first, _ = drawn(random("NORMAL"), 5000, 1, 2)
    count = first.size
    assert abs(first.mean() - 1) < 5 * 2 / math.sqrt(count)
    assert abs(first.std() - 2) < 5 * 2 / math.sqrt(2 * count)
    for width in (0.5, 1, 2):
        share = math.erf(width / math.sqrt(2))
        assert abs((np.abs(first - 1) < 2 * width).mean() - share) < 5 * math.sqrt(share * (1 - share) / count)


def test_integers_are_uniform_too() -> None:
    first, _ = drawn(random("UNIFORM", "i32"), 2000, -3, 4)
    values, counts = np.unique(first, return_counts=True)
    np.testing.assert_array_equal(values, range(-3, 4))
    assert (np.abs(counts - 8000 / 7) < 5 * math.sqrt(8000 / 7)).all()


@pytest.mark.parametrize("kind", ["UNIFORM", "NORMAL"])
def test_a_seed_decides_the_numbers(kind: str, tmp_path: Path) -> None:
    numbers = {seed: drawn(random(kind, seed=seed), 50, 0, 1)[0] for seed in (0, 1, -5, 1 << 40)}
    assert len({found.tobytes() for found in numbers.values()}) == 4
    again = random(kind, seed=1)
    np.testing.assert_array_equal(drawn(again, 50, 0, 1)[0], numbers[1])
    for stage in ("stablehlo", "graph", "fused", "host", "llvm-dialect"):
        np.testing.assert_array_equal(drawn(again, 50, 0, 1, stage)[0], numbers[1])
    text = RANDOM.replace("KIND", kind).replace("xT>", "xf32>").replace("<T>", "<f32>")
    (tmp_path / "r.mlir").write_text(text)
    np.savez(tmp_path / "in.npz", p0=np.zeros((50, 4), np.float32), p1=np.float32(0), p2=np.float32(1))
    words = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz"), "--rng-seed", "1"]
    assert call_main(["xla-emitters", "run", str(tmp_path / "r.mlir"), *words], b"")[0] == 0
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["r0"], numbers[1])


def test_random_numbers_are_a_call_of_the_runtime() -> None:
    assert 'disc_ral.dispatch "ral_rng_normal" on "gpu"' in random("NORMAL").compilation.lowering.code("host")


def test_wrong_sizes_are_a_message() -> None:
    text = RANDOM.replace("KIND", "UNIFORM").replace("xT>", "xf32>").replace("<T>", "<f32>")
    text = text.replace("dense<4> : tensor<1xi32>", "dense<-4> : tensor<1xi32>")
    with pytest.raises(xe.XlaEmittersError, match=r"-4|negative"):
        xe.compile(text)(np.zeros((2, 4), np.float32), np.float32(0), np.float32(1))


def test_each_call_of_a_function_draws_its_own_numbers() -> None:
    """The reference sees the same numbers, and so does each stage."""
    text = """
    func.func public @main(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = func.call @f(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<4xf32>
      %1 = func.call @f(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    func.func private @f(%a: tensor<f32>, %b: tensor<f32>) -> tensor<4xf32> {
      %s = stablehlo.constant dense<4> : tensor<1xi32>
      %u = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution UNIFORM>}
        : (tensor<f32>, tensor<f32>, tensor<1xi32>) -> tensor<4xf32>
      return %u : tensor<4xf32>
    }
    """
    program, bounds = xe.compile(text), [np.asarray(0, np.float32), np.asarray(1, np.float32)]
    assert isinstance(program, Program)
    first, second = program.run(bounds)
    assert not np.array_equal(first, second)
    for stage in ("stablehlo", "hlo", "graph", "host"):
        for found, wanted in zip(program.run(bounds, stage), (first, second), strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert check_program(program, bounds).ok
