"""Scans of rows, of known and unknown length, against NumPy: eight lanes, a warp or a block to a row."""

from collections.abc import Callable

import numpy as np
import pytest
from long_lists import but_long

import xla_emitters as xe
from xla_emitters.dtypes import Array

PROGRAM = """func.func public @main(%x: tensor<{shape}x{type}>) -> tensor<{shape}x{type}> {{
  %z = stablehlo.constant dense<{init}> : tensor<{type}>
  %r = "stablehlo.reduce_window"(%x, %z)
    <{{window_dimensions = array<i64: 1, {n}>, padding = dense<[[0, 0], {pad}]> : tensor<2x2xi64>}}> ({{
    ^bb0(%a: tensor<{type}>, %b: tensor<{type}>):
      %s = stablehlo.{op} %a, %b : tensor<{type}>
      stablehlo.return %s : tensor<{type}>
  }}) : (tensor<{shape}x{type}>, tensor<{type}>) -> tensor<{shape}x{type}>
  return %r : tensor<{shape}x{type}>
}}
"""
OPS: dict[str, Callable[..., Array]] = {
    "add": np.cumsum,
    "maximum": np.maximum.accumulate,
    "minimum": np.minimum.accumulate,
}


SIZES = [(5, 3), (40, 33), (7, 64), (9, 65), (3, 1000), (2, 1025), (1, 2100)]
SCANS = [("add", "0", False), ("add", "0", True), ("minimum", "99", True)]
# Forward at every second size, backward at those between: each schedule both ways.
SHORT = [(*size, *SCANS[number % 2]) for number, size in enumerate(SIZES)] + [
    (*SIZES[1], *SCANS[2]),
    (*SIZES[6], *SCANS[2]),
]
ALL = [(*size, *scan) for size in SIZES for scan in SCANS]


@pytest.mark.parametrize(
    ("rows", "columns", "op", "init", "is_reversed"), but_long(ALL, [case for case in ALL if case not in SHORT])
)
def test_rows_of_a_program(rows: int, columns: int, op: str, init: str, *, is_reversed: bool) -> None:
    rest = columns - 1
    pad = f"[0, {rest}]" if is_reversed else f"[{rest}, 0]"
    text = PROGRAM.format(shape=f"?x{columns}", type="i32", n=columns, init=init, pad=pad, op=op)
    program = xe.compile(text, record="stages")
    x = np.random.default_rng(0).integers(-50, 50, (rows, columns)).astype(np.int32)
    flip = slice(None, None, -1 if is_reversed else 1)
    wanted = OPS[op](x[:, flip], axis=1)[:, flip]
    for stage in ("loops", "ptx"):
        assert np.array_equal(program.run_cpu(x, stage=stage), wanted), stage
