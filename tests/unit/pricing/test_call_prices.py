"""Library calls: the operations and bytes of each, and which peak of the data sheet it is held against."""

import json
from pathlib import Path
from typing import Any

import pytest
from in_process import printed, written
from tools_here import SASS, needs

import xla_emitters as xe
from xla_emitters.device import device
from xla_emitters.explore.compile import compile_text
from xla_emitters.explore.cost.program_cost import CallAt, work_of
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pricing.call_prices import CallCost, price_call

GEMM: dict[str, Any] = {
    "operands": ["lhs", "rhs"],
    "outputs": ["d"],
    "lhs_batch": [],
    "rhs_batch": [],
    "lhs_contracting": [1],
    "rhs_contracting": [0],
}
H200 = device("h200")


def product(element: str, rows: int, terms: int, columns: int, chip: str = "h200", **config: Any) -> CallCost:
    shapes = [(element, (rows, terms)), (element, (terms, columns))]
    found = price_call("gemm", "dot.1", GEMM | config, shapes, [(element, (rows, columns))], device(chip))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("element", "config", "chip", "factors", "tera"),
    [
        ("bf16", {}, "h200", "bf16", 989.4),
        ("f16", {}, "a100", "f16", 312),
        ("f8e4m3fn", {}, "b200", "f8", 4500),
        ("f8e4m3fn", {}, "a100", "f16", 312),  # no tensor cores for f8
        ("s8", {}, "t4", "s8", 130),
        ("f64", {}, "h100", "f64", 66.9),
        ("f32", {}, "h200", "tf32", 494.7),
        ("f32", {"precision": "high"}, "h200", "tf32", 494.7),
        ("f32", {"precision": "highest"}, "h200", "f32", 66.9),
        ("f32", {"precision": "dot_tf32_tf32_f32_x3"}, "h200", "tf32", 494.7 / 3),
        ("f32", {"precision": "dot_bf16_bf16_f32_x6"}, "h200", "bf16", 989.4 / 6),
        ("f32", {"precision": "dot_f32_f32_f32"}, "h200", "f32", 66.9),
        ("f32", {}, "t4", "f32", 8.1),  # no TF32 before Ampere
        ("c64", {}, "h200", "tf32", 494.7 / 4),
        ("c128", {}, "h200", "f64", 66.9 / 4),
    ],
)
def test_a_large_product_is_bound_by_the_peak_of_its_factors(
    element: str, config: dict[str, str], chip: str, factors: str, tera: float
) -> None:
    """2 n^3 operations, at three quarters of the data sheet's dense peak."""
    found = product(element, 8192, 8192, 8192, chip, **config)
    assert (found.factors, found.bound, found.is_lower_bound) == (factors, "compute", False)
    assert found.bounds["compute"] == pytest.approx(2 * 8192**3 / (tera * 1e6) / 0.75)
    assert found.time_low < found.time < found.time_high


def test_one_row_is_bound_by_the_bytes_of_the_matrix() -> None:
    found = product("bf16", 1, 8192, 8192)
    assert found.bytes_needed == 2 * (8192 + 8192 * 8192 + 8192)
    assert found.bound == "memory"
    assert found.time == pytest.approx(2 + found.bytes_needed / (4.8e6 * 0.95), rel=1e-3)
    assert found.bandwidth == pytest.approx(0.95 * (found.time - 2) / found.time, rel=1e-2)


def test_published_times_are_within_the_range() -> None:
    """cuBLAS, bf16 with sums in f32, n = 8192, on an H100 SXM: 716 TFLOP/s (docs/cost_model.md, [16])."""
    found = product("bf16", 8192, 8192, 8192, "h100")
    assert 2 * 8192**3 / 716e6 == pytest.approx(found.time, rel=0.05)


def test_a_batch_counts_each_product_and_few_tiles_widen_the_range() -> None:
    config = {"lhs_batch": [0], "rhs_batch": [0], "lhs_contracting": [2], "rhs_contracting": [1]}
    shapes = [("bf16", (16, 512, 64)), ("bf16", (16, 64, 512))]
    found = price_call("gemm", "dot.1", GEMM | config, shapes, [("bf16", (16, 512, 512))], H200)
    assert found.operations == 2 * 16 * 512 * 64 * 512
    assert found.multiprocessors == 132  # 16 x 4 x 4 tiles
    assert product("bf16", 128, 1 << 16, 128).multiprocessors == 1
    narrow, full = product("bf16", 128, 1 << 16, 128), product("bf16", 128 * 132, 1 << 16, 128)
    assert narrow.time_high > 100 * narrow.bounds["compute"]
    assert full.time_high < 5 * full.time


CONVOLUTION = {
    "operands": ["image", "kernel"],
    "outputs": ["result", "workspace"],
    "kind": "forward",
    "labels": ["b01f", "01io", "b01f"],
    "feature_groups": 1,
    "window": [{"base_dilation": 1}] * 2,
}


@pytest.mark.parametrize("groups", [1, 64])
def test_a_convolution_multiplies_once_a_point_and_feature(groups: int) -> None:
    image, result = ("bf16", (32, 56, 56, 64)), ("bf16", (32, 56, 56, 64))
    kernel = ("bf16", (3, 3, 64 // groups, 64))
    config = CONVOLUTION | {"feature_groups": groups}
    found = price_call("convolution", "c", config, [image, kernel], [result, ("u8", (10**9,))], H200)
    assert found.operations == 2 * 32 * 56 * 56 * 64 * 9 * 64 // groups
    assert found.bytes_needed == 2 * (2 * 32 * 56 * 56 * 64 + 9 * 64 * 64 // groups)  # not the workspace


def test_the_holes_of_a_dilated_image_are_not_multiplied() -> None:
    image, kernel, result = (("f32", shape) for shape in ((1, 32, 32, 64), (4, 4, 64, 8), (1, 64, 64, 8)))
    config = CONVOLUTION | {"window": [{"base_dilation": 2}] * 2}
    found = price_call("convolution", "c", config, [image, kernel], [result, ("u8", (1,))], H200)
    # Each place meets two of the kernel's four points along each dimension.
    assert found.operations == 2 * 64 * 64 * 8 * (2 * 2) * 64


def test_gradients_of_a_convolution_multiply_as_often() -> None:
    image, result, kernel = (("bf16", shape) for shape in ((32, 58, 58, 64), (32, 56, 56, 128), (3, 3, 64, 128)))
    wanted = 2 * 32 * 56 * 56 * 128 * 9 * 64
    for kind, operands, output in (
        ("backward_filter", {"image": image, "result": result}, {"kernel": kernel}),
        ("backward_input", {"result": result, "kernel": kernel}, {"image": image}),
    ):
        config = CONVOLUTION | {"kind": kind, "operands": [*operands], "outputs": [*output]}
        found = price_call("convolution", "c", config, [*operands.values()], [*output.values()], H200)
        assert found.operations == wanted, kind


@pytest.mark.parametrize("name", ["sort", "fft", "cholesky", "no_such"])
def test_other_functions_take_at_least_the_time_of_their_bytes(name: str) -> None:
    found = price_call(name, "x", {}, [("f32", (1 << 24,))], [("f32", (1 << 24,))], H200)
    assert (found.is_lower_bound, found.operations, found.bound) == (True, 0, "memory")
    # Half of the bytes are written, each of which costs 1.16 bytes.
    assert found.time == pytest.approx(2 + (1 << 26) * 2.16 / (4.8e6 * 0.95))


def test_what_does_no_work_on_the_gpu_has_no_price() -> None:
    assert price_call("allocate", "x", {}, [], [("f32", (8,))], H200) is None


def test_a_described_gpu_has_the_peak_of_its_multiprocessors(tmp_path: Path) -> None:
    half = tmp_path / "half.txtpb"
    half.write_text("gpu_device_info { core_count: 66 cuda_compute_capability { major: 9 minor: 0 } }")
    assert device(str(half)).peak("bf16") == pytest.approx(989.4e12 / 2)


DOT = """HloModule m
ENTRY e {
  x = f32[512,256] parameter(0)
  y = f32[256,128] parameter(1)
  ROOT d = f32[512,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={default,highest}
}
"""
PROGRAM = """module @m {
  func.func public @main(%x: tensor<?x256xf32>, %w: tensor<256x128xf32>) -> tensor<?x128xf32> {
    %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT]
      : (tensor<?x256xf32>, tensor<256x128xf32>) -> tensor<?x128xf32>
    %t = stablehlo.tanh %d : tensor<?x128xf32>
    return %t : tensor<?x128xf32>
  }
}
"""


def test_a_program_calls_at_its_sizes_with_the_precision_that_it_asks_for() -> None:
    program = compile_text(PROGRAM, "m.mlir")
    work = work_of(program, drawn_inputs(program, dict.fromkeys(program.symbols, 77), 0))
    (call,) = [step for step in work if isinstance(step, CallAt)]
    assert (call.name, call.operands[0], call.results) == ("gemm", ("f32", (77, 256)), (("f32", (77, 128)),))
    assert json.loads(call.config)["precision"] == "highest"


@needs(*SASS)
def test_the_cost_of_a_module_contains_its_calls(tmp_path: Path) -> None:
    path = written(tmp_path / "m.mlir", PROGRAM)
    (symbol,) = compile_text(PROGRAM, "m.mlir").symbols
    (cost,) = xe.cost(xe.compile(path), sizes={symbol: 4096}).costs
    (call,), (kernel,) = cost.calls, cost.kernels
    assert (call.factors, call.operations) == ("f32", 2 * 4096 * 256 * 128)
    assert cost.time == call.time + kernel.time
    (target,) = json.loads(printed("cost", path, "--sizes", f"{symbol}=4096", "--json"))["targets"]
    assert target["time"] == pytest.approx(cost.time)
    assert [each["factors"] for each in target["calls"]] == ["f32"]
    assert target["library_calls"] == ["gemm"]


def test_the_config_of_a_dot_says_its_precision() -> None:
    from xla_emitters.dialects.hlo.base import HloOp
    from xla_emitters.dialects.hlo.library_calls import is_library_call, library_call_of
    from xla_emitters.text.hlo.hlo_parser import parse_hlo

    (op,) = (op for op in parse_hlo(DOT, "m.hlo").walk() if isinstance(op, HloOp) and is_library_call(op))
    assert library_call_of(op)[1]["precision"] == "highest"
