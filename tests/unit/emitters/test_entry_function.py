"""The entry function: arguments, attributes, ids, and how wide an index is."""

import pytest
from xdsl.dialects.builtin import ModuleOp, UnknownLoc

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import array_type
from xla_emitters.dialects.mlir import func, gpu
from xla_emitters.dtypes import dtype
from xla_emitters.emitters.elemental import kernel_tensor
from xla_emitters.emitters.entry_function import entry_function, index_bits, kernel_module
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.program import LaunchDimensions
from xla_emitters.text.hlo import parse_hlo


def view(body: str, name: str = "f") -> FusionView:
    module = parse_hlo(f"ENTRY {name} {{\n{body}\n}}")
    return view_of(entry_of(module))


NEGATE = "p = f32[64] parameter(0)\nROOT n = f32[64] negate(p)"


def test_ids_have_ranges_and_those_of_extent_one_are_not_there():
    entry = entry_function(view(NEGATE), LaunchDimensions((4, 2, 1), (16, 1, 1)))
    ids = [op for op in entry.function.walk() if isinstance(op, gpu.ThreadIdOp | gpu.BlockIdOp)]
    assert [id.result.name_hint for id in ids] == ["thread_id_x", "block_id_x", "block_id_y"]
    assert [str(id.attributes["xla.range"]) for id in ids] == [
        "[0 : index, 15 : index]",
        "[0 : index, 3 : index]",
        "[0 : index, 1 : index]",
    ]
    assert len(entry.ids) == 3


def test_the_launch_and_the_buffers_stand_in_attributes():
    function = entry_function(view(NEGATE, "fused.1"), LaunchDimensions((1, 1, 1), (64, 1, 1))).function
    assert function.sym_name.data == "fused_1"
    assert {key: str(value) for key, value in function.attributes.items()} == {
        "xla.entry": "unit",
        "gpu.known_block_size": "array<i32: 64, 1, 1>",
        "gpu.known_grid_size": "array<i32: 1, 1, 1>",
    }
    assert function.arg_attrs is not None
    inputs, outputs = ({key: str(v) for key, v in attrs.data.items()} for attrs in function.arg_attrs)
    assert inputs == {
        "llvm.align": "16 : index",
        "llvm.dereferenceable": "256 : index",
        "xla.invariant": "unit",
        "xla.slice_index": "0 : index",
    }
    assert outputs == {
        "llvm.align": "256 : index",
        "llvm.dereferenceable": "256 : index",
        "xla.slice_index": "1 : index",
    }


def test_it_takes_parameters_and_results_and_returns_results():
    entry = entry_function(view(NEGATE), LaunchDimensions((1, 1, 1), (64, 1, 1)))
    tensor = kernel_tensor(array_type(dtype("f32").ir_type, (64,)))
    assert entry.function.function_type.inputs.data == (tensor, tensor)
    assert entry.function.function_type.outputs.data == (tensor,)
    assert all(not isinstance(argument.location, UnknownLoc) for argument in entry.function.args)


@pytest.mark.parametrize(
    ("type", "dims", "layout", "tensor"),
    [
        ("pred", (8,), None, "tensor<8xi8>"),
        ("u32", (2, 3), None, "tensor<2x3xi32>"),
        ("s4", (7,), None, "tensor<7xi4>"),
        ("f32", (8, 64), (0, 1), "tensor<8x64xf32, dense<[0, 1]> : tensor<2xi64>>"),
        ("bf16", (), None, "tensor<bf16>"),
    ],
)
def test_what_kernels_see_of_an_array(type: str, dims: tuple[int, ...], layout: tuple[int, ...] | None, tensor: str):
    assert str(kernel_tensor(array_type(dtype(type).ir_type, dims, layout))) == tensor


@pytest.mark.parametrize(
    ("body", "bits"),
    [
        (NEGATE, 32),
        ("p = s8[2147483647] parameter(0)\nROOT n = s8[2147483647] not(p)", 32),
        ("p = s8[2147483648] parameter(0)\nROOT n = s8[2147483648] not(p)", 64),
        ("p = s8[2147483648] parameter(0)\nROOT n = s8[1] slice(p), slice={[0:1]}", 64),
        (
            "p = s8[8] parameter(0)\ni = s32[] parameter(1)\nROOT n = s8[1] dynamic-slice(p, i), dynamic_slice_sizes={1}",
            32,
        ),
        (
            "p = s8[8] parameter(0)\ni = s64[] parameter(1)\nROOT n = s8[1] dynamic-slice(p, i), dynamic_slice_sizes={1}",
            64,
        ),
    ],
)
def test_how_wide_an_index_is(body: str, bits: int):
    made = view(body)
    assert index_bits(made) == bits
    module = kernel_module(made, entry_function(made, LaunchDimensions((1, 1, 1), (1, 1, 1))).function, [])
    assert isinstance(module, ModuleOp)
    assert str(module.attributes["dlti.dl_spec"]) == f"#dlti.dl_spec<index = {bits} : i32>"
    assert isinstance(module.body.block.first_op, func.FuncOp)


@pytest.mark.parametrize(("indices", "bits"), [("s32", 32), ("s64", 64)])
def test_a_scatters_updates_are_no_indices(indices: str, bits: int):
    module = parse_hlo(f"""latest {{
  was = s64[] parameter(0)
  ROOT is = s64[] parameter(1)
}}
ENTRY f {{
  p = s64[8,4] parameter(0)
  i = {indices}[3,1] parameter(1)
  u = s64[3,1,4] parameter(2)
  ROOT s = s64[8,4] scatter(p, i, u), update_window_dims={{1,2}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}},
    index_vector_dim=1, to_apply=latest
}}""")
    *_, entry = module.ops
    assert isinstance(entry, ComputationOp)
    assert index_bits(view_of(entry)) == bits


@pytest.mark.parametrize(("start", "bits"), [("s32", 32), ("s64", 64)])
def test_an_update_is_no_index(start: str, bits: int):
    body = f"""p = s64[8] parameter(0)
      u = s64[3] parameter(1)
      i = {start}[] parameter(2)
      ROOT d = s64[8] dynamic-update-slice(p, u, i)"""
    assert index_bits(view(body)) == bits
