"""A run's memory has a limit, which is checked before an array is allocated: on every way to run a program, and from the command line."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import call_main
from long_lists import every

import xla_emitters as xe
from xla_emitters.errors import DataError, UsageError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import EXECUTABLE_PROGRAM_STAGES
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import Settings
from xla_emitters.support import limits
from xla_emitters.text.stablehlo import parse_stablehlo

IOTA = """module @m { func.func public @main(%n: tensor<1xi64>) -> tensor<?xf32> {
  %y = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
  return %y : tensor<?xf32> } }"""
PAD = """module @m { func.func public @main(%n: tensor<1xi64>) -> tensor<?xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<2xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.constant dense<0> : tensor<1xi64>
  %y = stablehlo.dynamic_pad %x, %c, %z, %n, %z :
    (tensor<2xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %y : tensor<?xf32> } }"""
BROADCAST = """module @m { func.func public @main(%n: tensor<1xi64>) -> tensor<?xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dynamic_broadcast_in_dim %c, %n, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
  return %y : tensor<?xf32> } }"""
CONVOLUTION = """module @m { func.func public @main(%x: tensor<1x?x1xf32>, %k: tensor<1x1x1xf32>) -> tensor<1x?x1xf32> {
  %p = stablehlo.constant dense<[[1000000, 1000000]]> : tensor<1x2xi32>
  %y = "stablehlo.dynamic_conv"(%x, %k, %p) {window_strides = array<i64: 1000000>,
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x?x1xf32>, tensor<1x1x1xf32>, tensor<1x2xi32>) -> tensor<1x?x1xf32>
  return %y : tensor<1x?x1xf32> } }"""
TEXTS = {"dynamic_iota": IOTA, "dynamic_pad": PAD, "dynamic_broadcast_in_dim": BROADCAST}
HUGE = 1 << 34
"""Elements: 64 GiB of f32."""
WAYS = (*EXECUTABLE_PROGRAM_STAGES, "call")


@cache
def compiled(name: str) -> Program:
    return compile_program(parse_stablehlo(TEXTS[name], "m.mlir"))


def way(made: Program, name: str) -> Callable[[Any], Any]:
    return (lambda n: made.run([n])) if name == "call" else lambda n: made.run([n], name)


@pytest.mark.parametrize(("stage", "name"), every(2, [(stage, name) for stage in WAYS for name in TEXTS]))
def test_a_result_beyond_the_limit_is_refused_before_it_is_allocated(name: str, stage: str) -> None:
    run = way(compiled(name), stage)
    with xe.limited_memory("1M"):
        (found,) = run(np.array([1000]))
        assert 1000 <= found.size <= 1002
        for n in (1 << 19, HUGE, 1 << 39):
            size = n + 2 if name == "dynamic_pad" else n
            with pytest.raises(
                DataError, match=rf"%y.*\[{size}\], {4 * size} bytes.* may take 1048576 bytes"
            ) as caught:
                run(np.array([n]))
            assert "--max-memory" in caught.value.help


@pytest.mark.parametrize("way", ["llvm", "numpy"])
def test_the_padding_of_a_convolution_counts(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three elements of result, two million of padding."""
    monkeypatch.setenv("XLA_EMITTERS_CPU", way)
    made = compile_program(parse_stablehlo(CONVOLUTION, "m.mlir"))
    x, kernel = np.ones((1, 3, 1), np.float32), np.full((1, 1, 1), 2, np.float32)
    with (
        xe.limited_memory("1M"),
        pytest.raises(DataError, match=r"padding is f32\[1,1,2000003,1\], 8000012 bytes") as caught,
    ):
        made(x, kernel)
    assert caught.value.place is not None
    np.testing.assert_array_equal(made(x, kernel), np.float32([0, 2, 0]).reshape(1, 3, 1))


def test_without_a_limit_of_its_own_a_run_takes_three_quarters_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "free_bytes", lambda: 4000)
    monkeypatch.setattr(limits, "_read", (float("-inf"), 0))
    made = compile_program(parse_stablehlo(IOTA, "m.mlir"))
    for stage in ("stablehlo", "fused", "kernels", "ptx"):
        assert made.run([np.array([700])], stage)[0].size == 700
        with pytest.raises(DataError, match="may take 3000 bytes"):
            made.run([np.array([800])], stage)


def test_the_limit_is_on_all_arrays_that_live_at_a_time() -> None:
    """Two buffers fit one by one, and not together. By NumPy: machine code has its buffers at multiples of 64 bytes."""
    text = """module @m { func.func public @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
      %a = stablehlo.negate %x : tensor<?xf32>
      %b = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %r = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %r : tensor<i1>
      }) : (tensor<?xf32>) -> tensor<?xf32>
      return %a, %b : tensor<?xf32>, tensor<?xf32> } }"""
    made = compile_program(parse_stablehlo(text, "m.mlir"), CompileOptions(settings=Settings(cpu="numpy")))
    x = np.ones(1000, np.float32)
    for stage in ("lmhlo", "fused", "kernels", "ptx"):
        assert len(made.run([x], stage, max_memory=8000)) == 2
        with pytest.raises(DataError, match=r"f(loat)?32\[1000\], 4000 bytes beside 4000 bytes of others"):
            made.run([x], stage, max_memory=7999)
    assert len(made(x, max_memory="8K")) == 2


def test_an_amount_of_memory_is_read() -> None:
    texts = {
        "1": 1,
        "2k": 2048,
        "3M": 3 << 20,
        "1.5G": None,
        "4 GiB": 4 << 30,
        "5TB": 5 << 40,
        "": None,
        "-1": None,
        "G": None,
    }
    for text, wanted in texts.items():
        if wanted is None:
            with pytest.raises(UsageError, match="is no amount of memory"):
                limits.bytes_of(text)
        else:
            assert limits.bytes_of(text) == wanted


@pytest.mark.parametrize("verb", ["run", "check"])
def test_the_command_line_refuses_what_is_beyond_max_memory(verb: str, tmp_path: Path) -> None:
    file, inputs = tmp_path / "m.mlir", tmp_path / "in.npz"
    file.write_text(IOTA)
    np.savez(inputs, p0=np.array([HUGE]))
    code, _, said = call_main(["xla-emitters", verb, str(file), "--inputs", str(inputs), "--max-memory", "64M"], b"")
    assert code == 1
    assert re.search(rf"%y.*\[{HUGE}\], {4 * HUGE} bytes.*; a run may take 67108864 bytes", said.decode())
    code, _, said = call_main(["xla-emitters", verb, str(file), "--max-memory", "much"], b"")
    assert (code, "'much' is no amount of memory" in said.decode()) == (2, True)
