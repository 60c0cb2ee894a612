"""Folds by ranges, against enumeration of all values in them."""

import itertools
import operator
from collections.abc import Callable, Iterator

import pytest
from xdsl.ir import SSAValue

from xla_emitters.algebra.interval import Interval
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import arith, func
from xla_emitters.rewrite.range_folds import decide_comparison, decide_extremum

RANGES = [Interval(lower, upper) for lower in range(-2, 4) for upper in range(lower, 4)]
PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "ult": operator.lt,
    "ule": operator.le,
    "ugt": operator.gt,
    "uge": operator.ge,
}


def arguments() -> list[SSAValue]:
    """An index value with each of the ranges."""
    listed = ", ".join(
        f"%a{n}: index {{xla.range = [{r.lower} : index, {r.upper} : index]}}" for n, r in enumerate(RANGES)
    )
    [function] = [op for op in parse_ir(f"func.func @f({listed}) {{ return }}").walk() if isinstance(op, func.FuncOp)]
    return list(function.body.block.args)


def unsigned(value: int) -> int:
    return value % 2**64


def pairs(left: Interval, right: Interval) -> Iterator[tuple[int, int]]:
    return itertools.product(range(left.lower, left.upper + 1), range(right.lower, right.upper + 1))


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_comparison_is_decided_where_all_values_agree(predicate: str):
    """Of unsigned ones only those without negative numbers."""
    values, order = arguments(), PREDICATES[predicate]
    is_unsigned = predicate[0] == "u"
    for (i, left), (j, right) in itertools.product(enumerate(RANGES), repeat=2):
        if is_unsigned:
            outcomes = {order(unsigned(x), unsigned(y)) for x, y in pairs(left, right)}
        else:
            outcomes = {order(x, y) for x, y in pairs(left, right)}
        is_decided = len(outcomes) == 1 and not (is_unsigned and min(left.lower, right.lower) < 0)
        found = decide_comparison(arith.CmpiOp(values[i], values[j], predicate))
        assert found is (outcomes.pop() if is_decided else None), (left, right)


@pytest.mark.parametrize(
    ("op_type", "choose"),
    [(arith.MinSIOp, min), (arith.MaxSIOp, max), (arith.MinUIOp, min), (arith.MaxUIOp, max)],
    ids=lambda p: getattr(p, "name", None) or p.__name__,
)
def test_an_extremum_is_an_operand_where_it_is_that_for_all_values(op_type, choose: Callable[..., int]):
    values = arguments()
    key = unsigned if op_type in (arith.MinUIOp, arith.MaxUIOp) else int
    for (i, left), (j, right) in itertools.product(enumerate(RANGES), repeat=2):
        found = decide_extremum(op_type(values[i], values[j]))
        chosen = [(x, y, choose(x, y, key=key)) for x, y in pairs(left, right)]
        is_left, is_right = all(x == z for x, _, z in chosen), all(y == z for _, y, z in chosen)
        if key is unsigned and min(left.lower, right.lower) < 0:
            assert found is None
        elif is_left or is_right:
            assert (is_left and found is values[i]) or (is_right and found is values[j]), (left, right)
        else:
            assert found is None, (left, right)


def test_truth_values_and_unknown_ranges_decide_nothing():
    [function] = [
        op for op in parse_ir("func.func @f(%a: i1, %b: index) { return }").walk() if isinstance(op, func.FuncOp)
    ]
    truth, unknown = function.body.block.args
    (known, *_) = arguments()
    assert decide_comparison(arith.CmpiOp(truth, truth, "ule")) is None
    assert decide_comparison(arith.CmpiOp(unknown, known, "slt")) is None
    assert decide_comparison(arith.CmpiOp(known, unknown, "slt")) is None
    assert decide_extremum(arith.MinSIOp(unknown, known)) is None
    assert decide_extremum(arith.MinSIOp(known, unknown)) is None
