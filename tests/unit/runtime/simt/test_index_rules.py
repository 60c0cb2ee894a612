"""The `index` dialect on lanes, against those of `arith`, which test_arith_rules.py holds against Python's integers."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread

from xla_emitters.errors import ExecutionError

ONES = np.array([-(2**63), -7, -1, 0, 1, 5, 12, 2**62], np.int64)
OTHERS = np.array([1, 3, -3, 2**40, 7], np.int64)
A, B = (each.reshape(-1) for each in np.meshgrid(ONES, OTHERS))
BINARY = ["add", "sub", "mul", "divs", "divu", "ceildivs", "ceildivu", "floordivs", "rems", "remu"]
BINARY += ["maxs", "mins", "maxu", "minu", "and", "or", "xor"]
SHIFTS = ["shl", "shrs", "shru"]
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


@pytest.mark.parametrize("name", [*BINARY, *SHIFTS])
def test_ops_are_those_of_arith_on_64_bits(name: str):
    others = B % 64 if name in SHIFTS else B
    got = per_thread(f"%r = index.{name} %a, %b", "index", a=("index", A), b=("index", others))
    wanted = per_thread(f"%r = arith.{name}i %a, %b : i64", "i64", a=("i64", A), b=("i64", others))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons_are_those_of_arith_on_64_bits(predicate: str):
    got = per_thread(f"%r = index.cmp {predicate}(%a, %b)", "i1", a=("index", A), b=("index", B))
    wanted = per_thread(f"%r = arith.cmpi {predicate}, %a, %b : i64", "i1", a=("i64", A), b=("i64", B))
    np.testing.assert_array_equal(got, wanted)


def test_casts():
    bytes_ = np.arange(-128, 128, dtype=np.int8)
    np.testing.assert_array_equal(per_thread("%r = index.casts %a : i8 to index", "index", a=("i8", bytes_)), bytes_)
    np.testing.assert_array_equal(
        per_thread("%r = index.castu %a : i8 to index", "index", a=("i8", bytes_)), bytes_.view(np.uint8)
    )
    for name in ("casts", "castu"):
        got = per_thread(f"%r = index.{name} %a : index to i8", "i8", a=("index", ONES))
        np.testing.assert_array_equal(got, ONES.astype(np.int8))


def test_constants():
    assert set(per_thread("%r = index.constant -4", "index")) == {-4}
    assert set(per_thread("%r = index.bool.constant true", "i1")) == {True}
    assert set(per_thread("%r = index.sizeof", "index")) == {64}


@pytest.mark.parametrize("name", ["divs", "divu", "ceildivs", "ceildivu", "floordivs", "rems", "remu"])
def test_division_by_zero_is_an_error(name: str):
    with pytest.raises(ExecutionError, match=f"index.{name} in block 0, thread 1 divides by zero"):
        per_thread(f"%r = index.{name} %a, %b", "index", a=("index", ONES), b=("index", np.array([1, 0] * 4)))
