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
