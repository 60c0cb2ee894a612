"""Scatters: which arrays can be updated in place, and which threads take which updates."""

import pytest

from xla_emitters.device import device
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.graph.buffers import aliases_of
from xla_emitters.graph.control_computations import kernel_sources
from xla_emitters.graph.scatters import (
    DistributedIndices,
    DistributedUpdates,
    arrays_in_place,
    distribution_of,
    scatter_of,
)
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo

ADD = "{t}[] add(a, b)"


def scatter(
    array: str = "f32[100,64]",
    rows: str = "s32[4096,1]",
    update: str = "f32[4096,1,64]",
    *,
    flags: str = "",
    body: str = ADD,
    lines: str = "",
    updated: str = "p",
    updates: str = "u",
    windows: str = "update_window_dims={1,2}",
    mapped: str = "0",
) -> FusionView:
    """A fusion of p, rows and u into the buffer of p."""
    type = array[: array.index("[")]
    called = body.format(t=type)
    return view_of(
        kernel_sources(
            parse_hlo(f"""
HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}

combine {{
  a = {type}[] parameter(0)
  b = {type}[] parameter(1)
  ROOT r = {called}
}}

fused {{
  p = {array} parameter(0)
  rows = {rows} parameter(1)
  u = {update} parameter(2)
  {lines}
  ROOT s = {array} scatter({updated}, rows, {updates}), {windows},
    scatter_dims_to_operand_dims={{{mapped}}}, index_vector_dim=1, to_apply=combine{flags}
}}

ENTRY main {{
  p = {array} parameter(0)
  rows = {rows} parameter(1)
  u = {update} parameter(2)
  ROOT fusion = {array} fusion(p, rows, u), kind=kInput, calls=fused
}}
""")
        )[0]
    )


def distribution(view: FusionView, target: str = "h200") -> DistributedUpdates | DistributedIndices:
    found = scatter_of(view)
    assert isinstance(found, ScatterOp)
    return distribution_of(view, found, device(target))


SORTED = ", indices_are_sorted=true"


@pytest.mark.parametrize(
    ("view", "wanted"),
    [
        # H200 has 132 cores, 528 warps: 4096 / 528 is 7.8, rounded up to a multiple of four 32-bit starts.
        (scatter(flags=SORTED), DistributedIndices(4096, 64, 8, 4, 2, 1)),
        # 8192 / 528 is 15.5; 64 lanes' worth of two elements are too many, one step of 32 x 2 and a part of another.
        (
            scatter("bf16[100,100]", "s32[8192,1]", "bf16[8192,1,100]", flags=SORTED),
            DistributedIndices(8192, 100, 16, 4, 2, 2),
        ),
        # 5 starts are fewer than the 16 of eight bits that one access reads.
        (
            scatter("s16[30,100]", "u8[2115,1]", "s16[2115,1,100]", flags=SORTED),
            DistributedIndices(2115, 100, 5, 1, 2, 2),
        ),
        # Elements below eight bits are no different: 32 lanes with 16 of them in one step.
        (
            scatter("s4[30,512]", "s32[2500,1]", "s4[2500,1,512]", flags=SORTED),
            DistributedIndices(2500, 512, 8, 4, 16, 1),
        ),
        # More places than warps: 8192 windows over 4000 of them are 3 a warp, fewer than four.
        (
            scatter("f32[4000,64]", "s32[8192,1]", "f32[8192,1,64]", flags=SORTED),
            DistributedIndices(8192, 64, 3, 1, 2, 1),
        ),
        # Starts of two dims are not neighbours: 4096 windows over 528 warps are 8 a warp, read one by one.
        (
            scatter(
                "f32[10,10,64]",
                "s32[4096,2]",
                "f32[4096,1,1,64]",
                flags=SORTED,
                windows="update_window_dims={1,2,3}",
                mapped="0,1",
            ),
            DistributedIndices(4096, 64, 8, 1, 2, 1),
        ),
    ],
)
def test_runs_of_windows_go_to_warps(view: FusionView, wanted: DistributedIndices) -> None:
    assert distribution(view) == wanted


@pytest.mark.parametrize(
    "view",
    [
        scatter(),
        scatter(flags=", indices_are_sorted=true, unique_indices=true"),
        scatter("f32[100,64]", "s32[528,1]", "f32[528,1,64]", flags=SORTED),  # a warp each
        scatter("f32[5000,64]", "s32[4096,1]", "f32[4096,1,64]", flags=SORTED),  # hardly an index comes twice
        scatter(body="{t}[] subtract(a, b)", flags=SORTED),  # a - b - c is not a - (b - c)
        scatter("c64[100,64]", "s32[4096,1]", "c64[4096,1,64]", flags=SORTED),  # no vectors of complex numbers
    ],
)
def test_updates_go_to_threads_where_runs_do_not_pay(view: FusionView) -> None:
    assert isinstance(distribution(view), DistributedUpdates)


@pytest.mark.parametrize(
    ("array", "rows", "update", "windows", "elements"),
    [
        ("f32[9000,128]", "s32[4096,1]", "f32[4096,1,128]", "update_window_dims={1,2}", 4),
        ("f32[9000,126]", "s32[4096,1]", "f32[4096,1,126]", "update_window_dims={1,2}", 2),  # a window is one thread's
        ("f32[9000,127]", "s32[4096,1]", "f32[4096,1,127]", "update_window_dims={1,2}", 1),
        ("f32[9000,128]", "s32[64,1]", "f32[64,1,128]", "update_window_dims={1,2}", 1),  # too few to fill the chip
        (
            "f32[9000,128]",
            "s32[4096,1]",
            "f32[1,128,4096]",
            "update_window_dims={0,1}",
            1,
        ),  # neighbours of other windows
        ("f32[9000,128]", "s32[4096,1]", "f32[1,128,4096]{1,0,2}", "update_window_dims={0,1}", 4),
    ],
)
def test_a_thread_takes_neighbours_of_one_window(
    array: str, rows: str, update: str, windows: str, elements: int
) -> None:
    assert distribution(scatter(array, rows, update, windows=windows)) == DistributedUpdates(elements)


def test_a_parameter_that_nothing_else_reads_is_updated_where_it_is() -> None:
    view = scatter()
    arrays = arrays_in_place(view)
    assert not isinstance(arrays, str)
    assert [array.number.value.data for array in arrays] == [0]
    assert aliases_of(view) == {0: view.operands[0]}


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (scatter(lines="n = f32[100,64] negate(p)", updated="n"), "%s updates %n, which is not a parameter"),
        (
            scatter(
                lines="part = f32[1,64] slice(p), slice={[0:1], [0:64]}\n"
                "  row = f32[64] reshape(part)\n  v = f32[4096,1,64] broadcast(row), dimensions={2}",
                updates="v",
            ),
            "%p is read as well as updated",
        ),
    ],
)
def test_what_is_read_or_computed_is_not(view: FusionView, why: str) -> None:
    assert arrays_in_place(view) == why
    assert aliases_of(view) == {}
