"""Which part of a fusion is computed row by row, in which ways, and the interface of its kernel."""

import pytest
from runtime.row_modules import fusion_of, module_of

from xla_emitters.device import device
from xla_emitters.dialects.mlir import func
from xla_emitters.dynamic.loops.stitch_forms import NOWHERE, REGISTERS, RowForm
from xla_emitters.emitters.entry_function import argument_attributes
from xla_emitters.graph.buffers import kernel_arguments
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.pipelines.stitched_kernel import (
    RowWay,
    StitchedFusion,
    emit_stitched,
    rounds_of,
    rule_of,
    stitched,
    ways_of,
)
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.kernel_entry import launch_of
from xla_emitters.text.hlo import parse_hlo

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"


def view(body: str) -> FusionView:
    return view_of(entry_of(parse_hlo(f"HloModule m\n{ADD}ENTRY e {{\n{body}\n}}\n", "m")))


def scaled(rows: int, columns: int, layout: str = "", element: str = "f32") -> FusionView:
    """Each row over its sum."""
    full = f"{element}[{rows},{columns}]{layout}"
    body = f"""x = {full} parameter(0)
      w = f32[{rows},{columns}]{layout} convert(x)
      z = f32[] constant(0)
      s = f32[{rows}] reduce(w, z), dimensions={{1}}, to_apply=add
      b = f32[{rows},{columns}]{layout} broadcast(s), dimensions={{0}}
      ROOT y = f32[{rows},{columns}]{layout} divide(w, b)"""
    return view(body if element != "f32" else body.replace("convert(x)", "copy(x)"))


def test_a_row_is_kept_in_its_own_type() -> None:
    found = stitched(fusion_of(module_of("layer_norm", 16, 512)))
    assert isinstance(found, StitchedFusion)
    assert (found.rows, found.columns) == (16, 512)
    assert found.row.kept_bytes == 2  # of x, bf16
    assert found.row.vector_bytes == 8  # scale and bias, f32
    assert found.row.most_bits == 16


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (scaled(8, 64, "{0,1}"), "not all of its arrays are row major"),
        (scaled(0, 64), "it has no elements"),
        (scaled(8, 64, element="s4"), "elements of less than a byte"),
        (
            view("""x = f32[8,64] parameter(0)
              z = f32[] constant(0)
              s = f32[64] reduce(x, z), dimensions={0}, to_apply=add
              b = f32[8,64] broadcast(s), dimensions={1}
              ROOT y = f32[8,64] divide(x, b)"""),
            "it is not one chain of ops over the same rows",
        ),
        (
            view("""x = f32[64,64] parameter(0)
              z = f32[] constant(0)
              s = f32[64] reduce(x, z), dimensions={1}, to_apply=add
              b = f32[64,64] broadcast(s), dimensions={1}
              ROOT y = f32[64,64] divide(x, b)"""),
            "it is not one chain of ops over the same rows",  # a row's sum goes to a column
        ),
        (
            view("""x = f32[8,64] parameter(0)
              g = f32[8,64] parameter(1)
              z = f32[] constant(0)
              s = f32[8] reduce(x, z), dimensions={1}, to_apply=add
              b = f32[8,64] broadcast(s), dimensions={0}
              ROOT y = f32[8,64] divide(g, b)"""),
            "nothing of a row is read again",
        ),
    ],
)
def test_what_is_not_computed_row_by_row_has_a_reason(of: FusionView, why: str) -> None:
    found = stitched(of)
    assert isinstance(found, str)
    assert why in found


def test_ways_by_the_room_that_a_row_takes() -> None:
    """2048 columns of f32: 64 threads hold 32 elements each, 128 bytes; 32 would hold 256."""
    found = stitched(scaled(16, 2048))
    assert isinstance(found, StitchedFusion)
    assert [way.form for way in ways_of(found)] == [
        RowForm(threads, threads, REGISTERS) for threads in (64, 128, 256, 512, 1024)
    ]
    assert {way.width for way in ways_of(found)} == {4}
    assert rule_of(found, 132) == RowWay(RowForm(64, 64, REGISTERS), 4)


def test_weights_are_read_once_a_block_where_a_thread_can_hold_them() -> None:
    """Scale and bias of f32 beside a row of bf16, 10 bytes a column: 12 columns are 120 bytes, a step of eight 80."""
    for columns, threads in ((4096, 512), (8192, 1024), (16384, 1024)):
        found = stitched(fusion_of(module_of("layer_norm", 8, columns)))
        assert isinstance(found, StitchedFusion)
        assert rule_of(found, 132) == RowWay(RowForm(threads, threads, REGISTERS), 8)
    found = stitched(fusion_of(module_of("layer_norm", 8, 32768)))
    assert isinstance(found, StitchedFusion)
    assert rule_of(found, 132) == RowWay(RowForm(1024, 1024, REGISTERS, "row"), 8)


def test_a_row_that_fits_nowhere_is_read_again() -> None:
    """1024 threads would hold 65 elements each."""
    found = stitched(scaled(2, 66560))
    assert isinstance(found, StitchedFusion)
    (way,) = ways_of(found)
    assert way.form.kept == NOWHERE


def test_columns_that_no_vector_divides_are_taken_one_by_one() -> None:
    found = stitched(scaled(7, 33))
    assert isinstance(found, StitchedFusion)
    assert {way.width for way in ways_of(found)} == {1}


def test_the_loops_over_a_row_are_told() -> None:
    """By hand: the maximum, the sum of exponentials, the quotients; the row is loaded in the first loop alone."""
    assert rounds_of(fusion_of(module_of("softmax_f32", 64, 512))).splitlines() == [
        "triton_softmax.2: 64 rows of 512 columns",
        "  round 0: reads param_0.4; reduces to reduce_max.9",
        "  round 1: takes what was kept of param_0.4; reduces to reduce_sum.1",
        "  round 2: takes what was kept of param_0.4; writes div.3",
    ]


@pytest.mark.parametrize("weights", ["block", "row"])
def test_a_way_is_what_its_attribute_says(weights: str) -> None:
    way = RowWay(RowForm(32, 256, REGISTERS, weights), 4)
    assert RowWay.from_attr(way.to_attr()) == way


def test_the_kernel_has_the_arguments_of_the_fusion_whether_it_reads_them_or_not() -> None:
    of = view("""x = f32[8,64] parameter(1)
      unused = f32[3] parameter(0)
      z = f32[] constant(0)
      s = f32[8] reduce(x, z), dimensions={1}, to_apply=add
      b = f32[8,64] broadcast(s), dimensions={0}
      y = f32[8,64] divide(x, b)
      ROOT both = (f32[8], f32[8,64]) tuple(s, y)""")
    kernel = emit_stitched(of, device("h200"), RowWay(RowForm(8, 256, REGISTERS), 4))
    (entry,) = (op for op in kernel.ops if isinstance(op, func.FuncOp))
    assert len(entry.function_type.inputs) == 4  # unused, x, s, y
    assert list(entry.arg_attrs or ()) == [argument_attributes(argument) for argument in kernel_arguments(of)]
    assert launch_of(kernel) == LaunchDimensions((1, 1, 1), (256, 1, 1))
