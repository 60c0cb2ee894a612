"""Programs in StableHLO that exchange arrays themselves, on all of their devices: against NumPy."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import Unsupported
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.text.stablehlo import module_for_devices
from xla_emitters.tools.main import main

REPLICAS = """module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%arg0: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<1x3xf32>, tensor<8x3xf32>) {
    %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %1 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}>
        : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %2 = stablehlo.replica_id : tensor<ui32>
    %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %5 = stablehlo.add %1, %4 : tensor<4x3xf32>
    %6 = "stablehlo.reduce_scatter"(%arg0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %7 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 2], [3, 1]]> : tensor<2x2xi64>}>
        : (tensor<4x3xf32>) -> tensor<8x3xf32>
    %8 = stablehlo.subtract %0, %5 : tensor<4x3xf32>
    return %8, %6, %7 : tensor<4x3xf32>, tensor<1x3xf32>, tensor<8x3xf32>
  }
}
"""
MANUAL = """module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}
       , %arg1: tensor<6xf32>) -> (tensor<4xf32>, tensor<6x4xf32>) {
    %0:2 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y"}]>]
        out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"y"}, {"x"}]>] manual_axes={"x", "y"} (%arg2: tensor<2x3xf32>, %arg3: tensor<3xf32>) {
      %1 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
      %2 = stablehlo.multiply %arg2, %1 : tensor<2x3xf32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.reduce(%2 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
      %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>
       , replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<2xf32>) -> tensor<2xf32>
      %5 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
      sdy.return %4, %5 : tensor<2xf32>, tensor<3x2xf32>
    } : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4xf32>, tensor<6x4xf32>)
    return %0#0, %0#1 : tensor<4xf32>, tensor<6x4xf32>
  }
}
"""
X = np.arange(48, dtype=np.float32).reshape(4, 4, 3) % 11


def test_replicas_against_numpy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(REPLICAS)
    given: dict[str, Any] = {f"p0@{device}": X[device] for device in range(4)}
    np.savez(tmp_path / "in.npz", **given)
    words = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")]
    assert main(["run", str(tmp_path / "m.mlir"), "--devices", "4", "--platform", "cpu", *words]) == 0
    assert "on each of 4 devices" in capsys.readouterr().out
    moved = {1: X[0], 2: X[1]}
    with np.load(tmp_path / "out.npz") as found:
        for device in range(4):
            wanted = X.sum(0) - (moved.get(device, np.zeros((4, 3))) + device)
            np.testing.assert_array_equal(found[f"r0@{device}"], wanted)
            np.testing.assert_array_equal(found[f"r1@{device}"], X.max(0)[device : device + 1])
            group = [0, 2] if device in (0, 2) else [3, 1]
            np.testing.assert_array_equal(found[f"r2@{device}"], np.concatenate(X[group]))


def test_whole_arrays_of_a_manual_computation() -> None:
    x, w = np.arange(24, dtype=np.float32).reshape(4, 6), np.arange(6, dtype=np.float32)
    sums, turned = xe.compile(MANUAL)(x, w)
    np.testing.assert_array_equal(sums, x @ w)
    np.testing.assert_array_equal(turned, x.T)
    assert xe.check(MANUAL, stages="hlo,llvm-dialect").ok


def test_the_generic_form_is_the_same() -> None:
    keys = re.search(
        r"\) in_shardings=(.*?)\s+out_shardings=(.*?)\s+manual_axes=(\S+ ?\S*)\s+\((%arg2.*?)\) \{", MANUAL, re.DOTALL
    )
    ins, outs = (f"#sdy.sharding_per_value<{keys[number]}>" for number in (1, 2))
    about = f"<{{in_shardings = {ins}, manual_axes = #sdy<manual_axes{keys[3]}>, out_shardings = {outs}}}>"
    text = MANUAL.replace(keys[0], f") {about} ({{\n    ^bb0({keys[4]}):")
    text = text.replace("sdy.manual_computation(", '"sdy.manual_computation"(').replace(
        "    } : (tensor<4x6", "    }) : (tensor<4x6"
    )
    text = text.replace(
        'sdy.mesh @mesh = <["x"=2, "y"=2]>',
        '"sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=2]>, sym_name = "mesh"}> : () -> ()',
    )
    assert module_for_devices(text, "m.mlir") == module_for_devices(MANUAL, "m.mlir")


def test_shardings_are_kept_and_printed() -> None:
    module = module_for_devices(MANUAL, "m.mlir")
    assert module is not None
    text = print_hlo(parse_hlo(module))
    assert "%p0 = f32[2,3]{1,0} parameter(0), sharding={devices=[2,2]<=[2,2]}" in text
    assert "sharding={devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}" in text
    assert "sharding={{devices=[2,2]<=[2,2] last_tile_dim_replicate}, {devices=[2,2]<=[2,2]T(1,0)}}" in text
    assert "num_partitions=4" in text
    of_hlo = REPLICAS.replace(
        "%arg0: tensor<4x3xf32>)", '%arg0: tensor<4x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})'
    )
    assert "parameter(0), sharding={devices=[4,1]<=[4]}" in (module_for_devices(of_hlo, "m.mlir") or "")


WHOLE = """module @m attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.negate %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


def test_what_is_to_be_partitioned_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert module_for_devices(WHOLE, "m.mlir") is None
    np.testing.assert_array_equal(xe.compile(WHOLE)(np.ones(8, np.float32)), -np.ones(8))
    (tmp_path / "m.mlir").write_text(WHOLE)
    assert main(["run", str(tmp_path / "m.mlir"), "--devices", "4", "--platform", "cpu"]) == 2
    err = capsys.readouterr().err
    assert "still to be partitioned" in err
    assert "xla-emitters optimize FILE --devices 4" in err
    beside = MANUAL.replace("    return %0#0", "    %9 = stablehlo.negate %0#0 : tensor<4xf32>\n    return %9")
    with pytest.raises(Unsupported, match="beside others of the whole arrays is still to be partitioned") as raised:
        xe.compile(beside)
    assert "optimize" in raised.value.help
    outside = REPLICAS.replace(
        "%arg0: tensor<4x3xf32>)", '%arg0: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})'
    )
    with pytest.raises(Unsupported, match="outside of a manual computation is still to be partitioned"):
        xe.compile(outside.replace("  func.func", '  sdy.mesh @mesh = <["x"=4]>\n  func.func'))


# jax.shard_map with the partitioner GSPMD: markers, in place of Shardy's region.
MARKED = """module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) {mhlo.sharding = "{manual}"} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %2 = stablehlo.custom_call @SPMDShardToFullShape(%1) {mhlo.sharding = "{replicated}"} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %2 : tensor<4x3xf32>
  }
}
"""


def test_the_form_before_shardy_is_of_whole_arrays() -> None:
    """Its arguments may be cut although their types are those of the whole arrays: they are no parts, which `run` would put together."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(xe.compile(MARKED)(x)[0], 4 * x)
    cut = MARKED.replace("tensor<4x3xf32>)", 'tensor<4x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})', 1)
    before, inside = MARKED.split("-> tensor<4x3xf32>\n    %1")
    inside, after = inside.split("-> tensor<4x3xf32>\n    return")
    parts = "-> tensor<1x3xf32>\n    %1".join((before, inside.replace("4x3", "1x3")))
    parts = "-> tensor<4x3xf32>\n    return".join((parts, after))
    for text in (cut, parts):
        with pytest.raises(Unsupported, match="beside others of the whole arrays is still to be partitioned"):
            xe.compile(text)


def test_one_device_and_unknown_sizes_stay_programs() -> None:
    alone = "%0 = stablehlo.replica_id : tensor<ui32>\n    return %0 : tensor<ui32>"
    assert module_for_devices(f"func.func @main() -> tensor<ui32> {{\n    {alone}\n}}\n", "m.mlir") is None
    gathered = '"stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}>'
    text = f"func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {{\n  %0 = {gathered} : (tensor<?xf32>) -> tensor<?xf32>\n"
    assert module_for_devices(f"{text}  return %0 : tensor<?xf32>\n}}\n", "m.mlir") is None
