"""In which round a stitched fusion computes each op, and which rows it keeps."""

from collections.abc import Iterable

import pytest
from xdsl.ir import SSAValue

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dynamic.loops.row_loop import BLOCK_A_ROW, WARP_A_ROW
from xla_emitters.dynamic.loops.stitch_forms import (
    LANES_A_ROW,
    LARGE_BLOCK_A_ROW,
    SHORT_ROW_NOT_KEPT,
    WARPS_A_ROW,
    HeldRow,
    forms_of,
    rule_of,
)
from xla_emitters.dynamic.loops.stitch_graph import StitchGraph

MATRIX, ROW, WIDE = 'memref<?x?xf32, "gpu">', 'memref<?xf32, "gpu">', 'memref<?x?xf64, "gpu">'
COLUMNS = 'memref<?xf32, "gpu" >'
"""As ROW, but of as many elements as there are columns."""
BUFFERS = {
    **dict.fromkeys(("x", "mask", "t", "mb", "d", "e", "sb", "y", "wb", "wn"), MATRIX),
    **dict.fromkeys(("m", "s", "l"), ROW),
    "w": COLUMNS,
    **{f"w{i}": MATRIX for i in range(61)},
}


def graph(*ops: str, wide: tuple[str, ...] = ()) -> StitchGraph:
    """The fusion of these ops over buffers of r x c or r elements; the root is what writes %y.

    wide   buffers of f64
    """
    types = {name: WIDE if name in wide else given for name, given in BUFFERS.items()}
    sizes = {MATRIX: '["r", "c"]', WIDE: '["r", "c"]', ROW: '["r"]', COLUMNS: '["c"]'}
    arguments = ", ".join(f"%{name}: {given} {{disc.sizes = {sizes[given]}}}" for name, given in types.items())
    body = list[str]()
    for op in ops:
        what, _, output = op.partition(" -> ")
        opcode, *inputs = what.split()
        given = [*inputs, *(("i",) if opcode == "reduce" else ())]
        more = {
            "reduce": "dimensions = array<i64: 1>, to_apply = @add, ",
            "broadcast": "dimensions = array<i64: 0>, ",
            "weights": "dimensions = array<i64: 1>, ",
            "scale": "dimensions = array<i64>, ",
        }.get(opcode, "")
        opcode = "broadcast" if opcode in ("weights", "scale") else opcode
        ins = ", ".join('memref<f32, "gpu">' if name == "i" else types[name] for name in given)
        names = ", ".join(f"%{name}" for name in given)
        body.append(f'lmhlo.{opcode} {names} -> %{output} {{{more}name = "{output}"}} : ({ins}) -> {types[output]}')
    text = f"""
    hlo.computation @add {{
      %a = hlo.parameter 0 {{name = "a"}} : tensor<f32>
      %b = hlo.parameter 1 {{name = "b"}} : tensor<f32>
      %r = hlo.add %a, %b {{name = "r"}} : tensor<f32>
      hlo.return %r : tensor<f32>
    }}
    func.func @main(%i: memref<f32, "gpu">, {arguments}) {{
      "lmhlo.fusion"() ({{
        {chr(10).join(body)}
        lmhlo.terminator
      }}) : () -> ()
      func.return
    }}"""
    (fusion,) = [op for op in parse_ir(text).walk() if isinstance(op, FusionOp)]
    found = [op for op in fusion.body.block.ops if isinstance(op, BufferOp)]
    return StitchGraph(fusion, found[-1:])


def names(values: Iterable[SSAValue]) -> list[str | None]:
    return [value.name_hint for value in values]


SOFTMAX = (
    "reduce {0} -> m",
    "broadcast m -> mb",
    "subtract {0} mb -> d",
    "exponential d -> e",
    "reduce e -> s",
    "broadcast s -> sb",
)


def test_softmax_reads_its_input_in_each_of_three_rounds() -> None:
    found = graph(*(op.format("x") for op in SOFTMAX), "divide e sb -> y")
    assert [names(op.outputs[0] for op in found.reduced_in(number)) for number in found.rounds] == [["m"], ["s"], []]
    assert [names(read) for read in found.sources] == [["x"], ["x"], ["x"]]
    assert {value.name_hint: first for value, first in found.kept.items()} == {"x": 0}
    assert StitchGraph.kept_bytes(found.kept) == 4


def test_a_sum_of_two_inputs_is_kept_and_not_both() -> None:
    found = graph("add x mask -> t", *(op.format("t") for op in SOFTMAX), "divide e sb -> y")
    assert names(found.kept) == ["t"]


def test_one_number_everywhere_is_not_kept() -> None:
    """A scale: broadcast from the one element of %i."""
    ops = ("scale i -> wb", "divide x wb -> t", "copy t -> mask", "reduce mask -> m", "broadcast m -> mb")
    assert names(graph(*ops, "subtract t mb -> y").kept) == ["x"]


def test_an_input_is_kept_and_not_two_arrays_that_are_computed_from_it() -> None:
    """Kept are neither |x|, which round 0 reads, nor -x, which the last does, but x: it is read once."""
    found = graph("abs x -> t", "negate x -> d", "reduce t -> m", "broadcast m -> mb", "divide d mb -> y")
    assert names(found.kept) == ["x"]
    assert [names(read) for read in found.sources] == [["x"], ["x"]]


def test_what_one_round_reads_is_not_kept() -> None:
    found = graph("reduce x -> m", "broadcast m -> mb", "multiply mask mb -> y")
    assert names(found.kept) == []


def test_one_number_a_row_is_computed_between_rounds() -> None:
    found = graph("reduce x -> m", "negate m -> l", "broadcast l -> mb", "multiply x mb -> y")
    assert [names(op.outputs[0] for op in found.row_ops(number)) for number in found.rounds] == [[], ["l"]]


@pytest.mark.parametrize(
    ("bytes_a_column", "hint", "wanted"),
    [
        (
            4,
            None,
            [
                (LANES_A_ROW, True, 24),
                (WARP_A_ROW, True, 512),
                (WARPS_A_ROW, True, 2048),
                (LARGE_BLOCK_A_ROW, True, 8192),
                (BLOCK_A_ROW, False, None),
            ],
        ),
        (
            16,
            None,
            [
                (LANES_A_ROW, True, 24),
                (WARP_A_ROW, True, 256),
                (WARPS_A_ROW, True, 1024),
                (LARGE_BLOCK_A_ROW, True, 4096),
                (BLOCK_A_ROW, False, None),
            ],
        ),
        (4, 1, [(BLOCK_A_ROW, True, 4096), (BLOCK_A_ROW, False, None)]),
        (4, 2, [(WARP_A_ROW, True, 512), (WARP_A_ROW, False, None)]),
        (0, None, [(WARP_A_ROW, False, SHORT_ROW_NOT_KEPT), (BLOCK_A_ROW, False, None)]),
        (0, 2, [(WARP_A_ROW, False, None)]),
    ],
)
def test_the_forms_of_a_fusion(bytes_a_column: int, hint: int | None, wanted: object) -> None:
    """A thread holds 16 steps of four bytes, or eight of 16; eight lanes hold three."""
    forms = forms_of(HeldRow(bytes_a_column, 0, 1, 32), hint)
    assert [(form.threads, form.keeps, form.most) for form in forms] == wanted


def test_vectors_hold_longer_rows_and_weights_take_room() -> None:
    """128 bytes hold ten columns of 4 and 8 bytes, two steps of four; without weights 32, eight steps."""
    forms = forms_of(HeldRow(4, 8, 4, 32))
    assert [(form.most, form.shares) for form in forms] == [
        (64, True),
        (256, True),
        (1024, True),
        (4096, True),
        (16384, False),
        (None, False),
    ]


@pytest.mark.parametrize(
    ("columns", "threads"), [(1, 1), (3, 1), (32, 16), (33, 16), (127, 32), (1000, 32), (1025, 64), (9000, 512)]
)
def test_rows_of_known_length_have_few_threads_with_few_elements(columns: int, threads: int) -> None:
    """Single elements: up to three steps of less than a warp, up to 32 of a warp or more."""
    assert rule_of(HeldRow(4, 0, 1, 32), columns).per_row == threads


@pytest.mark.parametrize(("columns", "threads"), [(8, 1), (16, 2), (64, 8), (256, 8), (1024, 32), (8192, 256)])
def test_vectors_of_less_than_a_warp_read_whole_lines_or_two_steps(columns: int, threads: int) -> None:
    assert rule_of(HeldRow(4, 0, 4, 32), columns).per_row == threads


def test_what_later_rounds_need_of_a_source_takes_its_place() -> None:
    """Softmax: the last round reads exp(x - m), which the one before computed; x - m alone is as cheap as x."""
    found = graph(*(op.format("x") for op in SOFTMAX), "divide e sb -> y")
    assert {made.name_hint: kept.name_hint for made, kept in found.remade.items()} == {"e": "x"}
    assert [names(found.read_in(number, keeps=True)) for number in found.rounds] == [["x"], ["x"], ["e"]]
    assert [names(found.read_in(number, keeps=False)) for number in found.rounds] == [["x"], ["x"], ["x"]]


@pytest.mark.parametrize("last", ["multiply d sb -> y", "multiply x sb -> y"])
def test_a_source_stays_where_it_is_needed_or_cheaper(last: str) -> None:
    found = graph(*(op.format("x") for op in SOFTMAX), last)
    assert not found.remade


def test_what_is_computed_from_weights_is_walked_once() -> None:
    """Paths through 60 sums are 2^60."""
    sums = [f"add w{i} w{i} -> w{i + 1}" for i in range(60)]
    found = graph(
        "weights w -> w0", *sums, "reduce x -> m", "broadcast m -> mb", "multiply x mb -> d", "multiply d w60 -> y"
    )
    assert names(found.shared) == ["w60"]


def test_weights_are_the_same_in_each_row() -> None:
    """A broadcast along rows of an array of a row's size, and what is computed from such; not one of a number a row, nor a matrix."""
    found = graph(
        "weights w -> wb",
        "negate wb -> wn",
        "reduce x -> m",
        "broadcast m -> mb",
        "multiply x mb -> d",
        "multiply d wn -> y",
    )
    assert names(found.shared) == ["wn"]
    assert names(found.kept) == ["x"]
    assert not any(
        found.is_of_columns(op.outputs[0]) for op in found.ops if op.outputs[0].name_hint in ("mb", "d", "m")
    )
