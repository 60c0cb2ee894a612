"""The `index` dialect on lanes, against Python's integers."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread

from xla_emitters.errors import ExecutionError

ONES = np.array([-(2**63), -7, -1, 0, 1, 5, 12, 2**62], np.int64)
OTHERS = np.array([1, 3, -3, 2**40, 7], np.int64)
A, B = (each.reshape(-1) for each in np.meshgrid(ONES, OTHERS))


def wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def bits(value: int) -> int:
    return value % 2**64


def to_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "divs": to_zero,
    "divu": lambda a, b: bits(a) // bits(b),
    "ceildivs": lambda a, b: -(-a // b),
    "ceildivu": lambda a, b: -(-bits(a) // bits(b)),
    "floordivs": lambda a, b: a // b,
    "rems": lambda a, b: a - b * to_zero(a, b),
    "remu": lambda a, b: bits(a) % bits(b),
    "maxs": max,
    "mins": min,
    "maxu": lambda a, b: max(bits(a), bits(b)),
    "minu": lambda a, b: min(bits(a), bits(b)),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
SHIFTS = {
    "shl": lambda a, b: a << b,
    "shrs": lambda a, b: a >> b,
    "shru": lambda a, b: bits(a) >> b,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_ops(name: str):
    got = per_thread(f"%r = index.{name} %a, %b", "index", a=("index", A), b=("index", B))
    assert got.tolist() == [wrap(BINARY[name](int(a), int(b))) for a, b in zip(A, B, strict=True)]


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts(name: str):
    amounts = B % 64
    got = per_thread(f"%r = index.{name} %a, %b", "index", a=("index", A), b=("index", amounts))
    assert got.tolist() == [wrap(SHIFTS[name](int(a), int(b))) for a, b in zip(A, amounts, strict=True)]


@pytest.mark.parametrize(
    ("predicate", "compare"),
    [
        ("eq", lambda a, b: a == b),
        ("ne", lambda a, b: a != b),
        ("slt", lambda a, b: a < b),
        ("sle", lambda a, b: a <= b),
        ("sgt", lambda a, b: a > b),
        ("sge", lambda a, b: a >= b),
        ("ult", lambda a, b: bits(a) < bits(b)),
        ("ule", lambda a, b: bits(a) <= bits(b)),
        ("ugt", lambda a, b: bits(a) > bits(b)),
        ("uge", lambda a, b: bits(a) >= bits(b)),
    ],
)
def test_comparisons(predicate: str, compare):
    got = per_thread(f"%r = index.cmp {predicate}(%a, %b)", "i1", a=("index", A), b=("index", B))
    assert got.tolist() == [compare(int(a), int(b)) for a, b in zip(A, B, strict=True)]


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
