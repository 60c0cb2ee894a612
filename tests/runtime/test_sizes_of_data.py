"""Sizes that a program reads from its data: set_dimension_size against NumPy's slices; the message names a size that is out of range."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from long_lists import every

from xla_emitters.errors import DataError
from xla_emitters.pipelines.program_passes import CODE_STAGES, PROGRAM_STAGES
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo

Array = np.ndarray[Any, Any]
STAGES = [stage for stage in PROGRAM_STAGES if stage != CODE_STAGES[-1]]
"""No CPU runs machine code of a GPU."""
TEXT = """
module @m {
  func.func public @main(%x: tensor<SIZEx3xf32>, %n: tensor<i32>) -> (RESULT) {
    %y = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<SIZEx3xf32>, tensor<i32>) -> tensor<?x3xf32BOUNDS>
LAST
  }
}
""".lstrip()
DOUBLED = """    %z = stablehlo.add %y, %y : tensor<?x3xf32BOUNDS>
    return %z : tensor<?x3xf32BOUNDS>"""
COUNT = """    %z = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x3xf32BOUNDS>) -> tensor<i32>
    return %z : tensor<i32>"""


@cache
def program(size: str, bounds: str, last: str) -> Program:
    result = "tensor<i32>" if last is COUNT else "tensor<?x3xf32BOUNDS>"
    text = TEXT.replace("LAST", last).replace("RESULT", result).replace("SIZE", size).replace("BOUNDS", bounds)
    return compile_program(parse_stablehlo(text, "m.mlir"))


FORMS = (("?", ""), ("8", ", #stablehlo.bounds<8, ?>"), ("8", ""))
X = np.arange(24, dtype=np.float32).reshape(8, 3)


@pytest.mark.parametrize(("size", "bounds"), FORMS)
@pytest.mark.parametrize("stage", every(2, STAGES))
def test_a_dimension_is_cut_to_the_size_that_is_given(size: str, bounds: str, stage: str) -> None:
    for n in (0, 1, 5, 8):
        (doubled,) = program(size, bounds, DOUBLED).run([X, np.int32(n)], stage)
        np.testing.assert_array_equal(doubled, 2 * X[:n])
        (count,) = program(size, bounds, COUNT).run([X, np.int32(n)], stage)
        assert (count.dtype, int(count)) == (np.int32, n)


@pytest.mark.parametrize(("size", "bounds"), FORMS)
@pytest.mark.parametrize("last", [DOUBLED, COUNT])
@pytest.mark.parametrize(("n", "said"), [(9, r"the size 9 is not in \[0, 8\]"), (-1, "-1.* is negative|-1 is not in")])
def test_a_size_out_of_range_is_named_at_every_stage(size: str, bounds: str, last: str, n: int, said: str) -> None:
    made = program(size, bounds, last)
    for stage in STAGES:
        with pytest.raises(DataError, match=said):
            made.run([X, np.int32(n)], stage)


# ------------------------------------------------------------------------------------- windows of an axis that is too small

CUT = "%t = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32>"
WINDOWS = {
    "gather": """%y = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0],
        index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<?xf32>, tensor<3x1xi32>) -> tensor<3xf32>
      return %y : tensor<3xf32>""",
    "dynamic-gather": """%one = stablehlo.constant dense<1> : tensor<1xi32>
      %y = "stablehlo.dynamic_gather"(%t, %i, %one) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
        start_index_map = [0], index_vector_dim = 1>}> : (tensor<?xf32>, tensor<3x1xi32>, tensor<1xi32>) -> tensor<3xf32>
      return %y : tensor<3xf32>""",
    "dynamic-slice": """%y = stablehlo.dynamic_slice %t, %n, sizes = [1] : (tensor<?xf32>, tensor<i32>) -> tensor<1xf32>
      return %y : tensor<1xf32>""",
    "dynamic-update-slice": """%one = stablehlo.constant dense<5.0> : tensor<1xf32>
      %y = stablehlo.dynamic_update_slice %t, %one, %n : (tensor<?xf32>, tensor<1xf32>, tensor<i32>) -> tensor<?xf32>
      return %y : tensor<?xf32>""",
}


def windows_of(name: str, t: Array, i: Array) -> Array:
    """By NumPy, of an array that is not empty."""
    if name.endswith("gather"):
        return t[np.clip(i[:, 0], 0, len(t) - 1)]
    if name == "dynamic-slice":
        return t[-1:]
    return np.concatenate([t[:-1], np.full(1, 5, np.float32)])


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_of_an_array_that_turns_out_empty_is_a_message(name: str) -> None:
    ending = WINDOWS[name]
    result = ending.rpartition(" : ")[2]
    made = compile_program(
        parse_stablehlo(
            f"""module @m {{ func.func public @main(%x: tensor<?xf32>, %n: tensor<i32>, %i: tensor<3x1xi32>) -> {result} {{
      {CUT}
      {ending} }} }}""",
            "m.mlir",
        )
    )
    i = np.array([[0], [5], [-2]], np.int32)
    for stage in STAGES:
        for n in (3, 1):
            x = np.arange(1, 4, dtype=np.float32)
            (found,) = made.run([x, np.int32(n), i], stage)
            np.testing.assert_array_equal(found, windows_of(name, x[:n], i))
        with pytest.raises(DataError, match=rf"%y = {name}: no (window|slice) of|does not fit"):
            made.run([x, np.int32(0), i], stage)


SLICED = """    %z = stablehlo.slice %y [1:4, 0:3] : (tensor<?x3xf32BOUNDS>) -> tensor<3x3xf32>
    %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.constant dense<3> : tensor<1xi32>
    %2 = stablehlo.minimum %0, %1 : tensor<1xi32>
    %3 = stablehlo.concatenate %2, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r = stablehlo.dynamic_broadcast_in_dim %z, %3, dims = [0, 1] : (tensor<3x3xf32>, tensor<2xi32>) -> tensor<?x3xf32BOUNDS>
    return %r : tensor<?x3xf32BOUNDS>"""


def test_a_slice_that_leaves_a_cut_dimension_is_refused_before_a_kernel_reads() -> None:
    made = program("8", "", SLICED)
    for stage in STAGES:
        (found,) = made.run([X, np.int32(4)], stage)
        np.testing.assert_array_equal(found, X[1:4])
        with pytest.raises(DataError, match=r"1:4.* is not (inside|within)"):
            made.run([X, np.int32(2)], stage)
