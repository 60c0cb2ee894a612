"""The `gpu` ops in use have MLIR's syntax and keep their meaning."""

from __future__ import annotations

from unit.dialects.mlir_opt import assert_means_the_same
from xdsl.traits import is_side_effect_free, is_speculatable

from xla_emitters.dialects import gpu
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.printer import print_ir

LINES = (
    *(
        f"%r = gpu.{op} {dim}"
        for op in ("thread_id", "block_id", "block_dim", "grid_dim", "global_id")
        for dim in "xyz"
    ),
    "%r = gpu.thread_id x {xla.range = [0 : index, 127 : index]}",
    "%r = gpu.lane_id",
    *(f"%r = gpu.{op} : index" for op in ("num_subgroups", "subgroup_id", "subgroup_size")),
    "gpu.barrier",
    *(f"%r, %ok = gpu.shuffle {mode} %x, %i, %i : f32" for mode in ("xor", "up", "down", "idx")),
)


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    modules = [f"func.func @f(%i: i32, %x: f32) {{ {line}\n return }}" for line in LINES]
    assert_means_the_same(modules)


def test_ids_are_written_as_in_the_seed():
    op = gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X))
    assert print_ir(op) == "%thread_id_x = gpu.thread_id x"
    two_spaces = "func.func @f() { %thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]} return }"
    assert "gpu.thread_id x {xla.range = [0 : index, 127 : index]}" in print_ir(parse_ir(two_spaces))


def test_ids_are_pure_and_barriers_are_not():
    assert is_side_effect_free(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
    assert is_speculatable(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
    assert not is_side_effect_free(gpu.BarrierOp())
