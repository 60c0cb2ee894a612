"""Fusions of programs: how many arrays a kernel may take, and how many kernels real programs have."""

import numpy as np
import pytest
from long_lists import but_long
from runtime.fused_programs import CASES, Counts, fused
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dynamic.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.text.stablehlo import parse_stablehlo


def sums(count: int) -> ModuleOp:
    """The sum of `count` arguments, one after the other."""
    ir_type = 'memref<4xf32, "gpu">'
    lines = [f"func.func @main({', '.join(f'%x{i}: {ir_type}' for i in range(count))}) -> {ir_type} {{"]
    last = "x0"
    for i in range(1, count):
        lines.append(f"%s{i} = memref.alloc() : {ir_type}")
        lines.append(f'lmhlo.add %{last}, %x{i} -> %s{i} {{name = "s{i}"}} : ({ir_type}, {ir_type}) -> {ir_type}')
        last = f"s{i}"
    return parse_ir("\n".join((*lines, f"return %{last} : {ir_type}", "}")), "<test>")


def fusions(module: ModuleOp) -> list[FusionOp]:
    return [op for op in module.walk() if isinstance(op, FusionOp)]


@pytest.mark.parametrize(("count", "wanted"), [(63, 1), (64, 2)])
def test_a_kernel_takes_64_arrays(count: int, wanted: int) -> None:
    """63 arguments and a result; one argument more is two kernels."""
    module = sums(count)
    DiscFuseOnBufferPass().apply_to(module)
    assert len(fusions(module)) == wanted


def test_the_limit_is_an_option() -> None:
    module = sums(6)
    DiscFuseOnBufferPass(most_buffers=3).apply_to(module)
    assert len(fusions(module)) == 5


def test_an_op_that_alone_takes_more_arrays_than_the_limit_is_a_kernel() -> None:
    module = sums(3)
    DiscFuseOnBufferPass(most_buffers=1).apply_to(module)
    assert len(fusions(module)) == 2


SCAN = """hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8x64xf32, "gpu">, %z: memref<f32, "gpu">) -> memref<8x64xf32, "gpu"> {
  %y = memref.alloc() : memref<8x64xf32, "gpu">
  lmhlo.reduce_window %x, %z -> %y {name = "y", to_apply = @sum, window = #hlo.window<size = [1, 64], pad = [0, 0, 63, 0]>}
    : (memref<8x64xf32, "gpu">, memref<f32, "gpu">) -> memref<8x64xf32, "gpu">
  return %y : memref<8x64xf32, "gpu">
}"""


@pytest.mark.parametrize(("stitch", "kinds"), [(True, ["kStitch"]), (False, [])])
def test_a_scan_of_rows_is_in_a_kernel_only_with_stitch(stitch: bool, kinds: list[str]) -> None:
    module = parse_ir(SCAN, "<test>")
    DiscFuseOnBufferPass(scans=True, stitch=stitch).apply_to(module)
    assert [fusion.kind_text for fusion in fusions(module)] == kinds


LONG = ("bert_layer_bf16", "gelu_gradient", "rms_norm", "rms_norm_gradient", "softmax_gradient", "log_softmax")


@pytest.mark.parametrize("name", but_long(CASES, LONG))
def test_real_programs_are_as_few_kernels_as_is_known(name: str) -> None:
    wanted: Counts = CASES[name][1]
    for stitch, most in ((False, wanted.base), (True, wanted.stitched)):
        module = fused(name, DiscFuseOnBufferPass(stitch=stitch))
        outside = [op for op in module.walk() if isinstance(op, BufferOp) and not isinstance(op.parent_op(), FusionOp)]
        calls = [op for op in outside if op.name == "lmhlo.dot"]
        assert len(fusions(module)) <= most
        assert len(calls) == wanted.calls
        assert not [op for op in outside if op not in calls and op.outputs and "gpu" in str(op.outputs[0].type)]


def folded(count: int) -> ModuleOp:
    """x + reverse(x), `count` times: each step reads the one before at two places, so the first is read at 2^(count - 1)."""
    ir_type = 'memref<4xf32, "gpu">'
    lines = [f"func.func @main(%s0: {ir_type}) -> {ir_type} {{"]
    for i in range(count):
        lines += [f"%r{i} = memref.alloc() : {ir_type}", f"%s{i + 1} = memref.alloc() : {ir_type}"]
        reverse = f'lmhlo.reverse %s{i} -> %r{i} {{dimensions = array<i64: 0>, name = "r{i}"}}'
        lines.append(f"{reverse} : ({ir_type}) -> {ir_type}")
        add = f'lmhlo.add %s{i}, %r{i} -> %s{i + 1} {{name = "s{i}"}}'
        lines.append(f"{add} : ({ir_type}, {ir_type}) -> {ir_type}")
    return parse_ir("\n".join((*lines, f"return %s{count} : {ir_type}", "}")), "<test>")


@pytest.mark.parametrize(("count", "wanted"), [(4, 1), (5, 2), (8, 2), (9, 3), (40, 10)])
def test_a_thread_computes_an_op_at_15_places_at_most(count: int, wanted: int) -> None:
    """Four steps are at 1, 2, 4 and 8 places; the fifth would be at 16."""
    module = folded(count)
    DiscFuseOnBufferPass().apply_to(module)
    assert len(fusions(module)) == wanted


@pytest.mark.parametrize(("count", "wanted"), [(15, 1), (16, 2)])
def test_one_op_may_read_an_array_at_many_places(count: int, wanted: int) -> None:
    """A concatenation reads each of its operands at a place of its own."""
    one, all_ = 'memref<4xf32, "gpu">', f'memref<{4 * count}xf32, "gpu">'
    operands, types = ", ".join(["%a"] * count), ", ".join([one] * count)
    module = parse_ir(
        f"""func.func @main(%x: {one}) -> {all_} {{
          %a = memref.alloc() : {one}
          %y = memref.alloc() : {all_}
          lmhlo.abs %x -> %a {{name = "a"}} : ({one}) -> {one}
          lmhlo.concatenate {operands} -> %y {{dimensions = array<i64: 0>, name = "y"}} : ({types}) -> {all_}
          memref.dealloc %a : {one}
          return %y : {all_}
        }}""",
        "<test>",
    )
    DiscFuseOnBufferPass().apply_to(module)
    assert len(fusions(module)) == wanted


def test_what_is_read_again_and_again_has_kernels_and_right_numbers() -> None:
    """As finite differences do, each of 16 steps reads its operand moved and unmoved: one kernel would compute it at 65,536 places."""
    lines = list[str]()
    for i in range(16):
        lines.append(f"%r{i} = stablehlo.reverse %s{i}, dims = [{i % 2}] : tensor<?x4xf32>")
        lines.append(f"%s{i + 1} = stablehlo.subtract %s{i}, %r{i} : tensor<?x4xf32>" if i == 15 else "")
        lines.append(f"%s{i + 1} = stablehlo.add %s{i}, %r{i} : tensor<?x4xf32>" if i < 15 else "")
    text = "\n".join(lines)
    program = compile_program(
        parse_stablehlo(
            f"func.func @main(%s0: tensor<?x4xf32>) -> tensor<?x4xf32> {{ {text}\n return %s16 : tensor<?x4xf32> }}"
        ),
        CompileOptions(),
    )
    assert len(program.kernels) >= 1
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    wanted = x
    for i in range(16):
        moved = np.flip(wanted, i % 2)
        wanted = wanted + moved if i < 15 else wanted - moved
    (got,) = program.run([x])
    np.testing.assert_array_equal(got, wanted)
