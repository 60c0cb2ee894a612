"""Programs of tests/corpus/library: convolutions are library calls in the table's layouts; sorts, top-k and random bits have JAX's bits."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from long_lists import but_long, every
from runtime.library_programs import CASES, CORPUS
from runtime.programs_table import programs
from runtime.stablehlo_programs import inputs_of

from xla_emitters.errors import DataError, VerifyError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import CPU, Settings
from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo

LONG = ("threefry", "permutations")
"""Programs of a thousand ops and more: `make programs` runs them."""
LAST, FIRST = (0, 3, 1, 2), (0, 1, 2, 3)
"""Where batch, features and two spatial dimensions are in b01f, and in bf01."""
KERNEL_LAST, KERNEL_FIRST = (3, 0, 1, 2), (1, 0, 2, 3)
"""Where input and output features and two spatial dimensions are in o01i, and in oi01."""


CONVOLVE = ("convolution", "dynamic_conv")


def layout_of(op: Any) -> tuple[tuple[int, ...], ...]:
    """Of image, kernel and result: where batch or input features, features and spatial dimensions are."""
    labels = op.as_hlo().dim_labels.data.replace("->", "_").split("_")
    spatial = "0123"[: len(labels[0]) - 2]
    return tuple(
        tuple(label.index(letter) for letter in (*letters, *spatial))
        for label, letters in zip(labels, ("bf", "io", "bf"), strict=True)
    )


@cache
def compiled(name: str, target: str = "h200") -> Program:
    """Computed by NumPy: with the values that JAX has to the bit, and with the calls that a GPU makes."""
    program, by_numpy = programs()[name], Settings(cpu="numpy")
    text = parse_stablehlo(program.text(), f"{name}.mlir")
    return compile_program(text, CompileOptions(target=target, settings=by_numpy))


def inputs(name: str) -> list[Any]:
    return inputs_of(name, CASES[name].sizes[-1], CASES[name])


def layouts(name: str, target: str) -> set[tuple[tuple[int, ...], ...]]:
    """Image, kernel and result of each convolution: places of batch or features in, features, spatial dimensions."""
    program = compiled(name, target)
    return {layout_of(entry.op) for entry in program.dispatches(inputs(name)) if entry.call in CONVOLVE}


def test_every_case_is_in_the_corpus() -> None:
    assert {path.stem for path in CORPUS.glob("*.mlir")} == {path.stem for path in CORPUS.glob("*.npz")} == set(CASES)


@pytest.mark.parametrize("name", every(2, [name for name in CASES if name not in LONG]))
def test_it_has_the_values_of_jax(name: str) -> None:
    """With a tolerance of 0 these are its bits: floats are compared as integers."""
    assert max(programs()[name].differences(compiled(name))) <= CASES[name].tolerance


@pytest.mark.parametrize("name", but_long(["sorts", "largest", "generators"], ["largest", "generators"]))
def test_machine_code_gives_the_bits_of_jax(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    monkeypatch.setenv(CPU, "llvm")
    assert max(programs()[name].differences(programs()[name].compiled())) == 0


# ---------------------------------------------------------------------------------------------------------- convolutions


@pytest.mark.parametrize(
    ("name", "target", "wanted"),
    every(
        3,
        [
            ("half_channels_last", "h200", (LAST, KERNEL_LAST, LAST)),
            ("half_channels_first", "h200", (LAST, KERNEL_LAST, LAST)),
            ("half_channels_last", "t4", (FIRST, KERNEL_FIRST, FIRST)),
            ("half_channels_first", "t4", (FIRST, KERNEL_FIRST, FIRST)),
            ("channels_last", "h200", (FIRST, KERNEL_FIRST, FIRST)),
            ("channels_first", "h200", (FIRST, KERNEL_FIRST, FIRST)),
            ("channels_first", "t4", (FIRST, KERNEL_FIRST, FIRST)),
        ],
    ),
)
def test_a_row_of_the_layouts(name: str, target: str, wanted: tuple[tuple[int, ...], ...]) -> None:
    """f16 on sm_80 and newer: channels last. Everything else on a GPU: channels first."""
    assert layouts(name, target) == {wanted}


def test_transposes_between_convolutions_cancel() -> None:
    """Of four convolutions in another layout than the library's: the first image, the last result, and each kernel are transposed."""
    placed = str(compiled("residual").compilation.at("placed"))
    images = [line for line in placed.splitlines() if "hlo.transpose " in line and "tensor<?x" in line]
    assert placed.count("hlo.dynamic_conv") == 4
    assert len(images) == 2
    assert placed.count("hlo.transpose ") == 2 + 4


def test_a_library_layout_needs_no_transposes() -> None:
    assert "hlo.transpose" not in str(compiled("channels_first").compilation.at("placed"))


def test_groups_that_do_not_fit_are_an_error() -> None:
    """The channels are unknown when the program is compiled; the kernel has one input feature in each of four groups."""
    text = """module @m { func.func public @main(%x: tensor<1x?x5x5xf32>, %w: tensor<8x1x3x3xf32>) -> tensor<1x8x3x3xf32> {
      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
        window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64}
        : (tensor<1x?x5x5xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x3x3xf32>
      return %y : tensor<1x8x3x3xf32> } }"""
    program = compile_program(parse_stablehlo(text, "<test>"), CompileOptions())
    kernel = np.ones((8, 1, 3, 3), np.float32)
    np.testing.assert_array_equal(program(np.ones((1, 4, 5, 5), np.float32), kernel), np.full((1, 8, 3, 3), 9))
    with pytest.raises(DataError, match="do not fit in 4 groups of features"):
        program(np.ones((1, 6, 5, 5), np.float32), kernel)


# --------------------------------------------------------------------------------- what JAX leaves to the compiler to choose

APPROXIMATE = """func.func @before(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {{
  %0 = stablehlo.compare {order}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1> }}
func.func public @main(%x: {array}xf32>, %places: {array}xi32>) -> ({result}xf32>, {result}xi32>) {{
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.constant dense<-1> : tensor<i32>
  {shape}
  %r:2 = stablehlo.custom_call @ApproxTopK(%x, %places, %f, %i{shapes}) {{called_computations = [@before],
    mhlo.backend_config = {{aggregate_to_topk = true, recall_target = 0.9 : f32, reduction_dim = {dim} : i64, top_k = 3 : i64}}}}
    : ({array}xf32>, {array}xi32>, tensor<f32>, tensor<i32>{types}) -> ({result}xf32>, {result}xi32>)
  return %r#0, %r#1 : {result}xf32>, {result}xi32> }}"""
SHAPE = """%n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<40x?xf32>) -> tensor<i32>
  %m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %k = stablehlo.constant dense<3> : tensor<1xi32>
  %s = stablehlo.concatenate %k, %m, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>"""


@pytest.mark.parametrize(
    ("order", "given"),
    [
        ("GT", {"array": "tensor<4x40", "result": "tensor<4x3", "dim": 1, "shape": "", "shapes": "", "types": ""}),
        (
            "LT",
            {
                "array": "tensor<40x?",
                "result": "tensor<3x?",
                "dim": 0,
                "shape": SHAPE,
                "shapes": ", %s, %s",
                "types": ", tensor<2xi32>, tensor<2xi32>",
            },
        ),
    ],
)
def test_the_nearly_largest_are_the_largest(order: str, given: dict[str, Any]) -> None:
    text = APPROXIMATE.format(order=order, **given)
    program, along = compile_program(parse_stablehlo(text, "<test>"), CompileOptions()), given["dim"]
    x = np.random.default_rng(0).permuted(np.arange(160, dtype=np.float32)).reshape((4, 40) if along else (40, 4))
    places = np.broadcast_to(np.arange(40, dtype=np.int32).reshape((1, 40) if along else (40, 1)), x.shape).copy()
    wanted = np.argsort(-x if order == "GT" else x, axis=along)
    wanted = wanted[:, :3] if along else wanted[:3]
    values, found = program(x, places)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, along))


RANDOM = """func.func private @draw(%low: tensor<f32>, %high: tensor<f32>) -> tensor<5000xf32> {
  %c = stablehlo.constant dense<5000> : tensor<1xi64>
  %0 = stablehlo.rng %low, %high, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<5000xf32>
  return %0 : tensor<5000xf32> }
func.func public @main(%low: tensor<f32>, %high: tensor<f32>) -> (tensor<5000xf32>, tensor<5000xf32>, tensor<5000xf32>) {
  %a = call @draw(%low, %high) : (tensor<f32>, tensor<f32>) -> tensor<5000xf32>
  %unused = call @draw(%low, %high) : (tensor<f32>, tensor<f32>) -> tensor<5000xf32>
  %b = call @draw(%low, %high) : (tensor<f32>, tensor<f32>) -> tensor<5000xf32>
  %c = stablehlo.constant dense<5000> : tensor<1xi64>
  %n = stablehlo.rng %low, %high, %c, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<5000xf32>
  return %a, %b, %n : tensor<5000xf32>, tensor<5000xf32>, tensor<5000xf32> }"""


@pytest.mark.parametrize("way", ["numpy", "llvm"])
def test_numbers_without_a_key_are_spread_as_they_should_be_and_the_same_in_each_run(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CPU, way)
    if way == "llvm":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    program = compile_program(parse_stablehlo(RANDOM, "<test>"), CompileOptions())
    ends = [np.float32(-2), np.float32(6)]
    a, b, n = first = program.run(ends)
    for _ in range(3):  # the third run is a repeated one
        assert all(map(np.array_equal, first, program.run(ends)))
    assert all(map(np.array_equal, first, program.run(ends, "hlo")))
    for found in (a, b):  # means and deviations within five standard errors
        assert -2 <= found.min() < found.max() < 6
        assert abs(found.mean() - 2) < 5 * 8 / 12**0.5 / 5000**0.5
        assert abs(np.histogram(found, 10, (-2, 6))[0] - 500).max() < 5 * 450**0.5
    assert abs(n.mean() + 2) < 5 * 6 / 5000**0.5
    assert abs(n.std() - 6) < 5 * 6 / 10000**0.5
    assert abs(np.corrcoef([a, b, n]) - np.eye(3)).max() < 5 / 5000**0.5


# --------------------------------------------------------------------------------------- matrices, any number of them


FACTORED = """module @factored {
  func.func public @main(%arg0: tensor<?x3x3xf32>) -> (tensor<?x3x3xf32>, tensor<?xi32>) {
    %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3x3xf32>) -> tensor<i32>
    %b = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<2xi32>
    %s = stablehlo.concatenate %b, %three, dim = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %r:2 = stablehlo.custom_call @cusolver_potrf_ffi(%arg0, %s, %b) {indices_of_shape_operands = dense<[1, 2]> : tensor<2xi64>,
      mhlo.backend_config = {lower = true}} : (tensor<?x3x3xf32>, tensor<3xi32>, tensor<1xi32>) -> (tensor<?x3x3xf32>, tensor<?xi32>)
    return %r#0, %r#1 : tensor<?x3x3xf32>, tensor<?xi32>
  }
}
"""


@pytest.mark.parametrize("way", ["numpy", "llvm"])
def test_operands_of_a_custom_call_list_the_sizes_of_its_results(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "llvm":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    monkeypatch.setenv(CPU, way)
    program = compile_program(parse_stablehlo(FACTORED, "factored.mlir"))
    assert program.symbols == ("d0",)
    for count in (1, 4, 0):
        x = np.random.default_rng(count).standard_normal((count, 3, 3)).astype(np.float32)
        matrices = x @ x.swapaxes(1, 2) + np.eye(3, dtype=np.float32)
        for stage in (None, "hlo", "lmhlo"):
            factors, info = program.run([matrices], stage)
            np.testing.assert_allclose(np.tril(factors), np.linalg.cholesky(matrices), rtol=1e-5, atol=1e-5)
            assert info.tolist() == [0] * count


def test_these_operands_are_printed_as_they_were_read() -> None:
    printed = print_stablehlo(parse_stablehlo(FACTORED, "factored.mlir"))
    assert "indices_of_shape_operands = dense<[1, 2]> : tensor<2xi64>" in printed
    assert print_stablehlo(parse_stablehlo(printed, "printed.mlir")) == printed


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ("dense<1> : tensor<1xi64>", "has 1 numbers for 2 results"),
        ("dense<[1, 3]> : tensor<2xi64>", "has 3, which is not the number of an array"),
        ("dense<[1, -1]> : tensor<2xi64>", "has -1, which is not the number of an array"),
        ("dense<[2, 1]> : tensor<2xi64>", "operand 2 is s32[1], not the sizes of f32[?,3,3]"),
        ("dense<[0, 2]> : tensor<2xi64>", "operand 0 is f32[?,3,3], not the sizes of f32[?,3,3]"),
    ],
)
def test_operands_that_list_no_sizes_are_refused(numbers: str, message: str) -> None:
    with pytest.raises(VerifyError, match=re.escape(message)):
        parse_stablehlo(FACTORED.replace("dense<[1, 2]> : tensor<2xi64>", numbers), "factored.mlir")
