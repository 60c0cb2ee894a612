"""The `gpu` ops in use have MLIR's syntax and keep their meaning."""

import pytest
from unit.dialects.mlir_opt import assert_generic_form_is_read, assert_means_the_same

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dialects.mlir.gpu_functions import FuncOp
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import VerifyError
from xla_emitters.rewrite.effects import is_pure, is_speculatable

LINES = (
    *(
        f"%r = gpu.{op} {dim}"
        for op in ("thread_id", "block_id", "block_dim", "grid_dim", "global_id")
        for dim in "xyz"
    ),
    "%r = gpu.thread_id x {xla.range = [0 : index, 127 : index]}",
    "%r = gpu.lane_id",
    "%r = gpu.thread_id x upper_bound 64 {note}",
    "%r = gpu.lane_id upper_bound 32",
    "%r = gpu.subgroup_id upper_bound 4 : index",
    *(
        f"%r = gpu.{op} x upper_bound 4"
        for op in ("cluster_id", "cluster_dim", "cluster_block_id", "cluster_dim_blocks")
    ),
    *(f"%r = gpu.{op} : index" for op in ("num_subgroups", "subgroup_id", "subgroup_size")),
    "gpu.barrier",
    *(f"%r, %ok = gpu.shuffle {mode} %x, %i, %i : f32" for mode in ("xor", "up", "down", "idx")),
    "%r, %ok = gpu.rotate %x, 4, 32 : f32",
    "%r = gpu.subgroup_broadcast %x, first_active_lane : f32",
    "%r = gpu.subgroup_broadcast %x, specific_lane %i : f32",
    *(
        f"%r = gpu.{op} {kind} %i{rest} : (i32) -> i32"
        for kind in "add mul minui minsi maxui maxsi and or xor".split()
        for op, rest in (("subgroup_reduce", " uniform"), ("all_reduce", " {\n}"))
    ),
    *(f"%r = gpu.subgroup_reduce {kind} %x : (f32) -> f32" for kind in "minnumf maxnumf minimumf maximumf".split()),
    "%r = gpu.subgroup_reduce add %x uniform cluster(size = 4, stride = 2) : (f32) -> f32",
    'gpu.printf "%d", %i : i32',
    "%r = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>",
)


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    modules = [f"func.func @f(%i: i32, %x: f32) {{ {line}\n return }}" for line in LINES]
    assert_means_the_same(modules)
    assert_generic_form_is_read(modules)


def test_our_custom_text_is_mlirs():
    for line in LINES:
        (function,) = parse_ir(f"func.func @f(%i: i32, %x: f32) {{ {line}\n return }}").ops
        printed = " ".join(print_ir(function).splitlines()[1:-2]).split(" = ", 1)[-1]
        assert printed.split() == line.split(" = ", 1)[-1].split()


def test_ids_are_written_as_in_the_seed():
    op = gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X))
    assert print_ir(op) == "%thread_id_x = gpu.thread_id x"
    two_spaces = "func.func @f() { %thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]} return }"
    assert "gpu.thread_id x {xla.range = [0 : index, 127 : index]}" in print_ir(parse_ir(two_spaces))


def test_ids_are_pure_and_barriers_are_not():
    assert is_pure(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
    assert is_speculatable(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
    assert not is_pure(gpu.BarrierOp())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = gpu.subgroup_reduce minsi %x : (f32) -> f32", "'minsi' is not for f32"),
        ("%r = gpu.all_reduce maximumf %i {} : (i32) -> i32", "'maximumf' is not for i32"),
        (
            "%r = gpu.subgroup_reduce add %x cluster(size = 3) : (f32) -> f32",
            "the cluster's size is 3; it must be a power of two",
        ),
        ("%r = gpu.all_reduce %x {} : (f32) -> f32", "either a word or a body"),
        ("%r, %ok = gpu.rotate %x, 9, 8 : f32", "rotates by 9 in groups of 8"),
        (
            "%r = gpu.all_reduce %x {\n^bb0(%a: i32, %b: i32):\n gpu.yield %a : i32\n} : (f32) -> f32",
            r"combines two f32, but its body takes \(i32, i32\)",
        ),
    ],
)
def test_what_cannot_be_exchanged_is_refused(line: str, message: str):
    with pytest.raises(VerifyError, match=message):
        parse_ir(f"func.func @f(%i: i32, %x: f32) {{ {line}\n return }}")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "gpu.func @k(%x: f32) -> f32 kernel {\ngpu.return %x : f32\n}",
            r"a kernel has no results, but this has \(f32\)",
        ),
        ("gpu.func @k(%x: f32) -> i32 {\ngpu.return %x : f32\n}", r"returns \(f32\), but the function gives \(i32\)"),
        (
            '"gpu.func"() <{function_type = (f32) -> ()}> ({\n^bb0(%x: i32):\n gpu.return\n}) {sym_name = "k"} : () -> ()',
            r"takes \(f32\), but its entry block \(i32\)",
        ),
    ],
)
def test_a_function_fits_its_type(function: str, message: str):
    with pytest.raises(VerifyError, match=message):
        parse_ir(f"gpu.module @m {{\n{function}\n}}")


def test_buffers_of_blocks_and_threads_stand_behind_the_arguments():
    text = """gpu.module @m {
  gpu.func @k(%a: f32) workgroup(%s: memref<4xf32, SHARED>, %t: memref<2xf32, SHARED>) private(%p: memref<1xf32>) kernel {
    gpu.return
  }
}"""
    text = text.replace("SHARED", "#gpu.address_space<workgroup>")
    module = parse_ir(text)
    (function,) = [op for op in module.walk() if isinstance(op, FuncOp)]
    shared, own = function.buffers
    assert [value.name_hint for value in shared] == ["s", "t"]
    assert [value.name_hint for value in own] == ["p"]
    assert print_ir(module.body.block.first_op or module) == text
