"""Affine maps on lanes, against Python's integers."""

import numpy as np
from unit.runtime.simt.kernels import per_thread

VALUES = np.arange(-20, 44, dtype=np.int64)
OTHER = np.arange(64, dtype=np.int64)[::-1].copy()


def test_quotients_round_down_and_remainders_are_not_negative():
    for text, exact in {
        "d0 floordiv 4 + s0": lambda d, s: d // 4 + s,
        "d0 ceildiv 3 - s0 * 2": lambda d, s: -(-d // 3) - s * 2,
        "d0 mod 7": lambda d, s: d % 7,
        "42": lambda d, s: 42,
    }.items():
        ops = f"%r = affine.apply affine_map<(d0)[s0] -> ({text})> (%a)[%b]"
        got = per_thread(ops, "index", a=("index", VALUES), b=("index", OTHER))
        assert got.tolist() == [exact(int(d), int(s)) for d, s in zip(VALUES, OTHER, strict=True)]


def test_the_least_of_several_results():
    ops = '%r = "affine.min"(%a, %b) <{map = affine_map<(d0)[s0] -> (d0 + 3, s0, 17)>}> : (index, index) -> index'
    got = per_thread(ops, "index", a=("index", VALUES), b=("index", OTHER))
    np.testing.assert_array_equal(got, np.minimum(np.minimum(VALUES + 3, OTHER), 17))


def test_the_greatest_of_several_results():
    ops = "%r = affine.max affine_map<(d0)[s0] -> (d0 + 3, s0, 17)>(%a)[%b]"
    got = per_thread(ops, "index", a=("index", VALUES), b=("index", OTHER))
    np.testing.assert_array_equal(got, np.maximum(np.maximum(VALUES + 3, OTHER), 17))


def test_coordinates_of_an_element():
    """The outermost one does not wrap, with or without an extent of its own."""
    for basis in ("(2, 3, %five)", "(3, %five)"):
        ops = f"""
        %five = arith.constant 5 : index
        %c10 = arith.constant 10 : index
        %x, %y, %z = affine.delinearize_index %a into {basis} : index, index, index
        %xy = affine.linearize_index [%x, %y] by (100) : index
        %r = affine.linearize_index disjoint [%xy, %z] by (7, 100) : index"""
        got = per_thread(ops, "index", a=("index", VALUES))
        x, rest = np.divmod(VALUES, 15)
        y, z = np.divmod(rest, 5)
        np.testing.assert_array_equal(got, (x * 100 + y) * 100 + z)
