"""reduce, reduce-window, dot, convolution, gather, scatter: shapes that fit and shapes that do not."""

from __future__ import annotations

import pytest

from xla_emitters.errors import VerifyError
from xla_emitters.hlo_text import parse_hlo

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
TWO = (
    "two { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)"
    " ROOT t = (f32[], s32[]) tuple(b, j) }\n"
)
INPUTS = (
    "x = f32[8,64] parameter(0) z = f32[] parameter(1) i = s32[8,64] parameter(2) k = s32[] parameter(3)"
    " y = f32[8,3,64] parameter(4) n = s32[5,1] parameter(5) u = f32[5,1,64] parameter(6) w = f32[5] parameter(7)"
    " im = f32[1,9,9,3] parameter(8) ke = f32[2,2,3,7] parameter(9)"
)


def check(instruction: str) -> None:
    parse_hlo(f"{ADD}{TWO}e {{ {INPUTS} ROOT r = {instruction} }}").verify()


@pytest.mark.parametrize(
    "instruction",
    [
        "f32[8] reduce(x, z), dimensions={1}, to_apply=add",
        "f32[] reduce(x, z), dimensions={1,0}, to_apply=add",
        "(f32[64], s32[64]) reduce(x, i, z, k), dimensions={0}, to_apply=two",
        "f32[4,64] reduce-window(x, z), window={size=2x1 stride=2x1}, to_apply=add",
        "f32[8,64] reduce-window(x, z), window={size=1x64 pad=0_0x63_0}, to_apply=add",
        "f32[8,64,3,64] dot(x, y), lhs_contracting_dims={}, rhs_contracting_dims={}, lhs_batch_dims={0}, rhs_batch_dims={0}",
        "f32[8,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={2}, lhs_batch_dims={0}, rhs_batch_dims={0}",
        "f32[64,3,64] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "f32[1,8,8,7] convolution(im, ke), window={size=2x2}, dim_labels=b01f_01io->b01f",
        "f32[5,1,64] gather(x, n), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1,"
        " slice_sizes={1,64}",
        "f32[5,64] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
        " slice_sizes={1,64}",
        "f32[8,64] scatter(x, n, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0},"
        " index_vector_dim=1, to_apply=add",
    ],
)
def test_what_fits(instruction: str):
    check(instruction)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("f32[8] reduce(x, z), dimensions={2}, to_apply=add", "not different dimensions of its operand"),
        ("f32[64] reduce(x, z), dimensions={1}, to_apply=add", "'reduce' cannot have this result shape"),
        ("f32[8] reduce(x, x), dimensions={1}, to_apply=add", "an initial value is a scalar"),
        ("f32[8] reduce(x, z, z), dimensions={1}, to_apply=add", "as many initial values as arrays"),
        ("f32[8] reduce(x, z), dimensions={1}, to_apply=two", "computation 'two' does not fit 'reduce'"),
        ("s32[8] reduce(i, k), dimensions={1}, to_apply=add", "parameter 0 of computation 'add' does not fit 'reduce'"),
        ("(f32[8], f32[8]) reduce(x, y, z, z), dimensions={1}, to_apply=two", "the arrays of 'reduce' differ in shape"),
        ("f32[8,64] reduce-window(x, z), window={size=2}, to_apply=add", "a window of 1 dimensions over f32[8,64]"),
        ("f32[8,64] reduce-window(x, z), window={size=2x1}, to_apply=add", "cannot have this result shape"),
        ("f32[8,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "differ in a batch or contracting"),
        ("f32[8,3] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={1}", "not different dimensions of the"),
        ("f32[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={2}", "cannot have this result shape"),
        (
            "f32[1,8,8,7] convolution(im, ke), window={size=2x2}, dim_labels=b0f_01io->b01f",
            "do not name each dimension",
        ),
        (
            "f32[5,65] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
            " slice_sizes={1,65}",
            "no slice of sizes {1,65} lies inside",
        ),
        (
            "f32[5,64] gather(x, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
            " slice_sizes={1,64}",
            "do not name the 1 dimensions of a slice",
        ),
        (
            "f32[8,64] scatter(x, n, y), update_window_dims={1,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
            " to_apply=add",
            "the updates do not fit the indices",
        ),
        (
            "f32[8,64] scatter(x, n, u, u), update_window_dims={1,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
            " to_apply=add",
            "takes n arrays, the indices and n updates",
        ),
    ],
)
def test_what_does_not_fit(instruction: str, message: str):
    with pytest.raises(VerifyError) as error:
        check(instruction)
    assert message in str(error.value)
