"""Ops whose sizes are values: their values against NumPy, and the errors where there is no value."""

from typing import Any

import numpy as np
import pytest

from xla_emitters.errors import DataError, VerifyError
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo

X = np.arange(6, dtype=np.float32).reshape(2, 3)
S = np.asarray


def run(op: str, types: tuple[str, ...], result: str, *arrays: Any) -> np.ndarray:
    arguments = ", ".join(f"%a{i}: tensor<{ir_type}>" for i, ir_type in enumerate(types))
    shown = ", ".join(f"tensor<{ir_type}>" for ir_type in types)
    operands = ", ".join(f"%a{i}" for i in range(len(types)))
    name, _, attributes = op.partition(" ")
    text = f"""func.func @main({arguments}) -> tensor<{result}> {{
      %0 = "stablehlo.{name}"({operands}) {attributes} : ({shown}) -> tensor<{result}>
      return %0 : tensor<{result}>
    }}"""
    return evaluate(entry_of(parse_stablehlo(text)), list(arrays))[0]


BROADCAST = "dynamic_broadcast_in_dim <{broadcast_dimensions = array<i64: 1, 0>}>"
GATHER = "dynamic_gather <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0, 1]>}>"
CONV = (
    "dynamic_conv <{dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count = 1 : i64, "
    "batch_group_count = 1 : i64}>"
)
VALUES: dict[str, tuple[str, tuple[str, ...], str, tuple[Any, ...], np.ndarray]] = {
    "size": ("get_dimension_size <{dimension = 1 : i64}>", ("?x?xf32",), "i32", (X,), S(3, np.int32)),
    "reshape": ("dynamic_reshape", ("?x?xf32", "2xi32"), "?x?xf32", (X, S([3, 2], np.int32)), X.reshape(3, 2)),
    "broadcast": (
        BROADCAST, ("?x1xf32", "3xi64"), "?x?x?xf32", (X[:, :1], S([4, 2, 3])),
        np.broadcast_to(X[:, 0][None, :, None], (4, 2, 3)),
    ),
    "iota": ("dynamic_iota <{iota_dimension = 1 : i64}>", ("2xi32",), "?x?xi8", (S([2, 3], np.int32),), S([[0, 1, 2]] * 2, np.int8)),
    "pad": (
        "dynamic_pad", ("?x?xf32", "f32", "2xi32", "2xi32", "2xi32"), "?x?xf32",
        (X, S(9, np.float32), S([1, -1], np.int32), S([0, 2], np.int32), S([0, 1], np.int32)),
        S([[9] * 6, [9, 1, 9, 2, 9, 9], [9, 4, 9, 5, 9, 9]], np.float32),
    ),
    "slice": (
        "real_dynamic_slice", ("?x?xf32", "2xi32", "2xi32", "2xi32"), "?x?xf32",
        (X, S([1, 0], np.int32), S([2, 3], np.int32), S([1, 2], np.int32)), X[1:2, 0:3:2],
    ),
    "gather": (GATHER, ("?x?xf32", "2xi32", "2xi32"), "?x?xf32", (X, S([5, 1], np.int32), S([1, 2], np.int32)), X[1:2, 1:3]),
    "convolution": (
        CONV, ("1x1x?xf32", "1x1x?xf32", "1x2xi32"), "1x1x?xf32",
        (X.reshape(1, 1, 6), np.ones((1, 1, 3), np.float32), S([[1, 0]], np.int32)),
        np.convolve(np.pad(X.reshape(-1), (1, 0)), np.ones(3, np.float32), "valid").reshape(1, 1, 5),
    ),
    "cut": (
        "set_dimension_size <{dimension = 1 : i64}>", ("2x3xf32", "i32"), "2x?xf32, #stablehlo.bounds<?, 3>", (X, S(2, np.int32)), X[:, :2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_are_at_the_sizes_that_the_operands_hold(name: str) -> None:
    op, types, result, arrays, expected = VALUES[name]
    found = run(op, types, result, *arrays)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "operand", "value", "message"),
    [
        ("reshape", 1, S([4, 2], np.int32), r"\[2, 3\] has 6 elements, \[4, 2\] 8"),
        ("reshape", 1, S([-3, -2], np.int32), "do not fit"),
        ("broadcast", 1, S([4, 5, 3]), "axis 0 of the operand, of size 2, is no axis of size 5"),
        ("iota", 0, S([-1, 3], np.int32), "the size -1 of axis 0 is negative"),
        ("pad", 4, S([-1, 0], np.int32), "between the elements"),
        ("pad", 2, S([-9, 0], np.int32), "-9 before, .* leaves no array"),
        ("slice", 2, S([3, 3], np.int32), r"\[1:3\] is not inside axis 0 of the operand, whose size is 2"),
        ("gather", 2, S([3, 2], np.int32), "no window of 3 fits inside axis 0 of the operand, whose size is 2"),
        ("cut", 1, S(4, np.int32), r"not in \[0, 3\]"),
    ],
)
def test_operands_without_a_value_are_an_error_that_names_the_op(
    name: str, operand: int, value: Any, message: str
) -> None:
    op, types, result, arrays, _ = VALUES[name]
    given = [*arrays]
    given[operand] = value
    with pytest.raises(DataError, match=message) as found:
        run(op, types, result, *given)
    assert found.value.place is not None


@pytest.mark.parametrize(
    ("op", "types", "result", "message"),
    [
        ("dynamic_reshape", ("?x?xf32", "3xi32"), "?x?xf32", "2 integers"),
        ("dynamic_reshape", ("?x?xf32", "2xf32"), "?x?xf32", "2 integers"),
        ("dynamic_reshape", ("?x?xf32", "2xi32"), "?x?xf16", "keeps the element type"),
        (BROADCAST, ("2x3xf32", "3xi64"), "?x?x?xf32", ""),
        (BROADCAST, ("2x3xf32", "3xi64"), "5x?x?xf32", "broadcast changes a size"),
        ("dynamic_pad", ("?xf32", "f64", "1xi32", "1xi32", "1xi32"), "?xf32", "not a scalar of the operand's type"),
        ("real_dynamic_slice", ("?xf32", "1xi32", "1xi32", "1xi32"), "?x?xf32", "keeps the rank"),
        ("get_dimension_size <{dimension = 2 : i64}>", ("?x?xf32",), "i32", "is not a dimension"),
    ],
)
def test_types_that_cannot_fit_are_refused(op: str, types: tuple[str, ...], result: str, message: str) -> None:
    if not message:  # the control: sizes that may fit
        run(op, types, result, X, S([3, 2, 1]))
        return
    with pytest.raises(VerifyError, match=message):
        run(op, types, result)
