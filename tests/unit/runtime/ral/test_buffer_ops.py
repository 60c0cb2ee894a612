"""Ops on single integers, which programs have many of: every small value against Python's integers."""

from collections.abc import Callable
from itertools import product
from operator import invert, not_
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Block

from xla_emitters.dialects.hlo import library_calls
from xla_emitters.dialects.hlo.base import HloOp, opcode_of
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.types import as_array, dims_of, element_of, leaf_types
from xla_emitters.dialects.lmhlo import buffer_type
from xla_emitters.dialects.lmhlo_dialect import BUFFER_OPS
from xla_emitters.errors import DataError
from xla_emitters.runtime.ral.buffer_ops import function_of, multiplying
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo


def clamped(low: int, x: int, high: int) -> int:
    return min(max(x, low), high)


def selected(chosen: bool, x: int, y: int) -> int:
    return x if chosen else y


NUMBERS, TRUTHS = (-3, 0, 1, 2, 7), (False, True)
CASES: tuple[tuple[str, tuple[str, ...], Callable[..., Any]], ...] = (
    ("s32[] clamp(a, b, c)", ("s32[]",) * 3, clamped),
    ("s32[] select(a, b, c)", ("pred[]", "s32[]", "s32[]"), selected),
    ("s32[] convert(a)", ("pred[]",), int),
    ("pred[] convert(a)", ("s32[]",), bool),
    ("pred[] not(a)", ("pred[]",), not_),
    ("s32[] not(a)", ("s32[]",), invert),
)


@pytest.mark.parametrize(("text", "types", "wanted"), CASES, ids=[case[0] for case in CASES])
def test_ops_on_single_integers(text: str, types: tuple[str, ...], wanted: Callable[..., Any]) -> None:
    operands = "".join(
        f"  {name} = {held} parameter({number})\n"
        for number, (name, held) in enumerate(zip("abc", types, strict=False))
    )
    module = parse_hlo(f"HloModule m\nENTRY e {{\n{operands}  ROOT r = {text}\n}}")
    op = next(
        op for op in module.walk() if isinstance(op, HloOp) and opcode_of(type(op)) == text.split()[1].split("(")[0]
    )
    values = (*op.operands, op.results[0])
    buffers = Block(arg_types=[buffer_type(as_array(value.type).element_type, (), "cpu") for value in values]).args
    made = BUFFER_OPS[opcode_of(type(op))].of(op, buffers[:-1], buffers[-1:])
    run = function_of(made)
    held = [element_of(value).numpy for value in values]
    for given in product(*(TRUTHS if each == "pred[]" else NUMBERS for each in types)):
        out = np.empty((), held[-1])
        run(*(np.array(value, each) for value, each in zip(given, held, strict=False)), out)
        assert out.item() == wanted(*given)


def dot(dimensions: tuple[Any, Any, Any, Any], ranks: tuple[int, int, int], element: str = "f32") -> DotOp:
    """A dot of unknown sizes: batch dimensions of the left and the right factor, summed ones likewise."""
    left_batch, right_batch, left_summed, right_summed = map(list, dimensions)
    left, right, result = (f"tensor<{'?x' * rank}{element}>" for rank in ranks)
    module = parse_stablehlo(
        f"""module @m {{ func.func public @main(%x: {left}, %y: {right}) -> {result} {{
          %z = stablehlo.dot_general %x, %y, batching_dims = {left_batch} x {right_batch},
            contracting_dims = {left_summed} x {right_summed} : ({left}, {right}) -> {result}
          return %z : {result} }} }}""",
        "<test>",
    )
    (found,) = (op for op in module.walk() if isinstance(op, DotOp))
    return found


CASES = [
    (((0, 2), (0, 2), (3,), (3,)), (2, 5, 3, 4), (2, 6, 3, 4), "bqhd,bkhd->bhqk"),
    (((1,), (2,), (2, 3), (0, 1)), (5, 2, 3, 4), (3, 4, 2, 7), "abcd,cdbe->bae"),
    (((), (), (0, 1), (1, 0)), (3, 4), (4, 3), "ij,ji->"),
    (((), (), (), ()), (3,), (5,), "i,j->ij"),
    (((0,), (0,), (1,), (1,)), (2, 0, 3), (2, 0, 3), "bki,bkj->bij"),
    (((), (), (1,), (0,)), (1, 700), (700, 3), "ij,jk->ik"),
]


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(("dimensions", "left", "right", "letters"), CASES)
def test_products_in_any_dimensions(dimensions: Any, left: Any, right: Any, letters: str, element: str) -> None:
    held = {"f32": np.float32, "f64": np.float64}[element]
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 10, shape).astype(held) for shape in (left, right))  # sums are exact in any order
    wanted = np.einsum(letters, x, y)
    multiply = multiplying(dot(dimensions, (x.ndim, y.ndim, wanted.ndim), element))
    out = np.full(wanted.shape, np.nan, held)
    multiply(x, y, out)
    np.testing.assert_array_equal(out, wanted)


def test_a_matrix_times_itself_has_the_bits_of_a_copy() -> None:
    multiply = multiplying(dot(((), (), (1,), (1,)), (2, 2, 2)))
    x = np.random.default_rng(1).standard_normal((65, 33), np.float32)
    one, other = np.empty((65, 65), np.float32), np.empty((65, 65), np.float32)
    multiply(x, x, one)
    multiply(x, x.copy(), other)
    np.testing.assert_array_equal(one, other)


def test_a_custom_call_is_read_once_for_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter's loop factorizes a small matrix in each iteration: reading its configuration took longer than that."""
    call = '(f32[2,2], s32[2], s32[]) custom-call(a), custom_call_target="cusolver_getrf_ffi"'
    module = parse_hlo(f"HloModule m\nENTRY e {{\n  a = f32[2,2] parameter(0)\n  ROOT r = {call}\n}}")
    op = next(op for op in module.walk() if isinstance(op, HloOp) and op.opcode == "custom-call")
    values = [op.operands[0].type, *leaf_types(op.results[0].type)]
    buffers = Block(arg_types=[buffer_type(as_array(t).element_type, dims_of(t), "cpu") for t in values]).args
    read = list[HloOp]()
    monkeypatch.setattr(
        library_calls, "library_call_of", lambda op, found=library_calls.library_call_of: read.append(op) or found(op)
    )
    run = function_of(BUFFER_OPS["custom-call"].of(op, buffers[:1], buffers[1:]))
    for a in (np.array([[1, 2], [4, 2]], np.float32), np.array([[2, 0], [1, 3]], np.float32)):
        factors, pivots, info = np.empty((2, 2), np.float32), np.empty(2, np.int32), np.empty((), np.int32)
        run(a, factors, pivots, info)
        lower, upper = np.tril(factors, -1) + np.eye(2), np.triu(factors)
        np.testing.assert_array_equal(lower @ upper, a[::-1] if pivots[0] == 2 else a)
    assert len(read) == 1


def test_sizes_that_do_not_fit_are_refused() -> None:
    multiply = multiplying(dot(((), (), (1,), (0,)), (2, 2, 2)))
    with pytest.raises(DataError, match="no product of"):
        multiply(np.ones((2, 3), np.float32), np.ones((4, 5), np.float32), np.ones((2, 5), np.float32))
