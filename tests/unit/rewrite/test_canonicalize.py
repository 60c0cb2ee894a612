"""Canonical forms of `arith` against NumPy, over every value of the operands."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import OpResult, SSAValue

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import arith
from xla_emitters.rewrite.canonicalize import canonicalize
from xla_emitters.rewrite.folders import constant_integer

COMPARE = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.greater, np.greater_equal),
)
"""By predicate: eq ne slt sle sgt sge ult ule ugt uge."""
FIRST_UNSIGNED = 6
NUMPY = {"addi": np.add, "subi": np.subtract}


@pytest.mark.parametrize("inner", NUMPY)
@pytest.mark.parametrize("outer", NUMPY)
def test_sums_and_differences_with_constants_become_one_sum(inner: str, outer: str):
    """(x + c) - d is one addition, equal to NumPy's answer for all 256 values of x, also where it wraps."""
    x = np.arange(-128, 128).astype(np.int8)
    for c, d in itertools.product((-128, -3, 1, 5, 127), repeat=2):
        module = parse_ir(f"""
            func.func @f(%x: i8) -> i8 {{
              %c = arith.constant {c} : i8
              %d = arith.constant {d} : i8
              %0 = arith.{inner} %x, %c : i8
              %1 = arith.{outer} %0, %d : i8
              return %1 : i8
            }}""")
        canonicalize(module)
        sums = [op for op in module.walk() if isinstance(op, arith.AddiOp | arith.SubiOp)]
        assert [type(op) for op in sums] in ([], [arith.AddiOp])
        total = constant_integer(sums[0].rhs) if sums else 0
        wanted = NUMPY[outer](NUMPY[inner](x, np.int8(c)), np.int8(d))
        assert np.array_equal(x + np.int8(total), wanted), (c, d)


def returned(module: ModuleOp) -> SSAValue:
    """The only value that the module's only function returns."""
    *_, end = module.walk()
    (value,) = end.operands
    return value


PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


def canonical_comparison(text: str) -> arith.CmpiOp:
    """The comparison that is left of an i1 computed from two i8, %x and %y, or from %x and the constant %c, which is 3."""
    module = parse_ir(f"""
        func.func @f(%x: i8, %y: i8) -> i1 {{
          %c = arith.constant 3 : i8
          %true = arith.constant true
          {text}
          return %1 : i1
        }}""")
    canonicalize(module)
    value = returned(module)
    assert isinstance(value, OpResult)
    assert isinstance(value.op, arith.CmpiOp)
    return value.op


def compared(predicate: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    kind = np.int8 if predicate < FIRST_UNSIGNED else np.uint8
    return COMPARE[predicate](x.astype(kind), y.astype(kind))


@pytest.mark.parametrize("predicate", PREDICATES)
def test_the_negation_of_a_comparison_is_the_opposite_one(predicate: str):
    x, y = np.meshgrid(np.arange(-128, 128).astype(np.int8), np.arange(-128, 128).astype(np.int8))
    found = canonical_comparison(f"%0 = arith.cmpi {predicate}, %x, %y : i8\n%1 = arith.xori %0, %true : i1")
    wanted = ~compared(PREDICATES.index(predicate), x, y)
    assert np.array_equal(compared(found.predicate.value.data, x, y), wanted)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_constant_is_compared_on_the_right(predicate: str):
    x = np.arange(-128, 128).astype(np.int8)
    found = canonical_comparison(f"%1 = arith.cmpi {predicate}, %c, %x : i8")
    assert constant_integer(found.rhs) == 3
    wanted = compared(PREDICATES.index(predicate), np.full_like(x, 3), x)
    assert np.array_equal(compared(found.predicate.value.data, x, np.full_like(x, 3)), wanted)


@pytest.mark.parametrize(
    ("kind", "true", "false", "ops"),
    [
        ("i1", "true", "false", []),
        ("i1", "false", "true", ["arith.constant", "arith.xori"]),
        ("i8", "1", "0", ["arith.extui"]),
        ("i8", "0", "1", ["arith.constant", "arith.xori", "arith.extui"]),
        ("i8", "-1", "0", ["arith.constant", "arith.constant", "arith.select"]),
        ("i8", "2", "0", ["arith.constant", "arith.constant", "arith.select"]),
    ],
)
def test_select_of_zero_and_one_is_the_condition(kind: str, true: str, false: str, ops: list[str]):
    """Of an i1 the number that is not zero is printed as true; of a wider type 1, with zeros before it."""
    module = parse_ir(f"""
        func.func @f(%c: i1) -> {kind} {{
          %t = arith.constant {true}{" : i8" if kind == "i8" else ""}
          %f = arith.constant {false}{" : i8" if kind == "i8" else ""}
          %0 = arith.select %c, %t, %f : {kind}
          return %0 : {kind}
        }}""")
    canonicalize(module)
    names = [op.name for op in module.walk()]
    assert names[2:-1] == ops
    assert (returned(module).type == i1) == (kind == "i1")
