"""Constants and iota: bits kept, text that reads back, one element's code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, f32, i64
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.base import RuleBroken
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp, dense, undense
from xla_emitters.dialects.hlo.types import array_type, tuple_type
from xla_emitters.dtypes import DTYPES, DType, Kind, dtype
from xla_emitters.errors import Unsupported


class Context:
    """What emission gives to an op: here a block to look into."""

    indices = ()

    def __init__(self) -> None:
        self.block = Block()
        self.builder = Builder(InsertPoint.at_end(self.block))
        self.insert: Callable[[Any], Any] = self.builder.insert

    def operand(self, i: int, indices: Any = None) -> Any:
        raise AssertionError("a constant has no operands")


def some(element: DType) -> np.ndarray:
    values = [1, 0, 1, -1] if element.kind is not Kind.UNSIGNED else [1, 0, 1, 1]
    if element.name == "f8e8m0fnu":
        values = [1, 2, 4, 8]
    return np.array(values).astype(element.numpy).reshape(2, 2)


@pytest.mark.parametrize("element", DTYPES, ids=lambda element: element.name)
def test_dense_holds_an_array_of_any_type(element: DType):
    array = some(element)
    again = undense(dense(array, element))
    assert again.dtype == element.numpy
    assert again.tobytes() == array.tobytes()
    assert again.shape == (2, 2)


@pytest.mark.parametrize("element", DTYPES, ids=lambda element: element.name)
def test_a_constant_reads_back_from_its_ir_text(element: DType):
    op = ConstantOp.from_array(some(element), element, "c")
    op.verify()
    again = parse_ir(str(op)).body.block.first_op
    assert isinstance(again, ConstantOp)
    assert again.value == op.value
    assert again.result.type == op.result.type


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("f32", np.array([0x7F800000, 0x7FC00000, 0xFF800001, 1], np.uint32).view(np.float32)),
        ("f32", np.array([0.0, -0.0], np.float32)),
        ("bf16", np.array([0x7F80, 0xFFC1], np.uint16).view(dtype("bf16").numpy)),
        ("c64", np.array([complex(np.nan, 1), complex(-0.0, np.inf)], np.complex64)),
        ("f8e5m2", np.array([0x7C, 0xFE], np.uint8).view(dtype("f8e5m2").numpy)),
        ("f32", np.array([np.inf, -np.inf, 16777216.0, 1e8], np.float32)),
        ("f64", np.array([134217729.0, -0.0, -0.0])),
        ("c128", np.array([complex(1, np.inf)])),
    ],
)
def test_every_bit_pattern_reads_back(name: str, array: np.ndarray):
    op = ConstantOp.from_array(array, dtype(name), "c")
    again = parse_ir(str(op)).body.block.first_op
    assert isinstance(again, ConstantOp)
    assert again.value == op.value


def test_a_layout_a_tuple_and_elided_data_read_back():
    array, scalar = dense(np.ones((2, 3), np.float32), dtype("f32")), dense(np.array(True), dtype("pred"))
    pair = tuple_type([array_type(f32, (2, 3), (0, 1)), array_type(dtype("pred").ir_type, ())])
    ops = [
        ConstantOp(array, array_type(f32, (2, 3), (0, 1)), "a"),
        ConstantOp(ArrayAttr([array, scalar]), pair, "b"),
        ConstantOp(None, array_type(f32, (10**6,)), "c"),
    ]
    module = ModuleOp(list[Operation](ops))
    module.verify()
    assert parse_ir(str(module)).is_structurally_equivalent(module)
    value = ops[1].evaluate([], lambda *_: None)
    assert [part.tolist() for part in value] == [[[1.0] * 3] * 2, True]
    assert ops[2].is_elided
    with pytest.raises(Unsupported, match="no data"):
        ops[2].evaluate([], lambda *_: None)


def test_a_value_of_another_type_is_refused():
    with pytest.raises(RuleBroken, match="not of its type"):
        ConstantOp(dense(np.ones(2, np.float32), dtype("f32")), array_type(f32, (3,)), "c").verify_()


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("f32", 0.5, "arith.constant 5.000000e-01 : f32"),
        ("bf16", 1, "arith.constant 1.000000e+00 : bf16"),
        ("s8", -1, "arith.constant -1 : i8"),
        ("u8", 255, "arith.constant -1 : i8"),
        ("u32", 2**32 - 1, "arith.constant -1 : i32"),
        ("pred", True, "arith.constant 1 : i8"),
        ("s4", -8, "arith.constant -8 : i4"),
        ("c64", 1 - 2j, "complex.constant [1.000000e+00 : f32, -2.000000e+00 : f32] : complex<f32>"),
    ],
)
def test_one_elements_code_is_a_constant_as_kernels_hold_it(name: str, value: Any, text: str):
    element = dtype(name)
    op = ConstantOp.from_array(np.array(value).astype(element.numpy), element, "c")
    e = Context()
    (result,) = op.emit_element(e)
    assert text in str(e.block.last_op)
    assert result.type == element.storage_type


@pytest.mark.parametrize("name", ["s32", "u8", "f32", "bf16", "c64", "s64"])
def test_iota_counts_along_its_dimension(name: str):
    element = dtype(name)
    op = IotaOp([], array_type(element.ir_type, (2, 3, 4)), "i", {"iota_dimension": IntegerAttr(1, i64)})
    op.verify()
    expected = np.broadcast_to(np.arange(3).reshape(1, 3, 1), (2, 3, 4)).astype(element.numpy)
    value = op.evaluate([], lambda *_: None)
    assert value.dtype == element.numpy
    assert value.tolist() == expected.tolist()


def test_iota_along_a_dimension_that_is_not_there_is_refused():
    with pytest.raises(RuleBroken, match="iota along dimension 1 of an array of rank 1"):
        IotaOp([], array_type(f32, (3,)), "i", {"iota_dimension": IntegerAttr(1, i64)}).verify_()
