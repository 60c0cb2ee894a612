"""Atomic updates of elements: values that random inputs rarely have, before and after tensors become memory."""

import numpy as np
import pytest

from xla_emitters.explore.check.check import check

PROGRAM = """
HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}

combine {{
  a = {type}[] parameter(0)
  b = {type}[] parameter(1)
  ROOT r = {type}[] {opcode}(a, b)
}}

fused {{
  p = {type}[{size}] parameter(0)
  rows = s32[{count}] parameter(1)
  u = {type}[{count}] parameter(2)
  ROOT s = {type}[{size}] scatter(p, rows, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=combine
}}

ENTRY main {{
  p = {type}[{size}] parameter(0)
  rows = s32[{count}] parameter(1)
  u = {type}[{count}] parameter(2)
  ROOT fusion = {type}[{size}] fusion(p, rows, u), kind=kInput, calls=fused
}}
"""
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 1e-40, -1e-40]


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_extrema_of_special_values(type: str, opcode: str) -> None:
    """Each special value meets each other one; and all in one element, in two orders. One NaN is enough for NaN."""
    numpy = np.float32 if type == "f32" else np.float64
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    p = np.array([a for a, _ in pairs] + [-2.5, 2.5, 0.5], numpy)
    last = len(pairs)
    numbers = [x for x in SPECIAL if not np.isnan(x)]
    rows = [*range(last), *[last] * len(SPECIAL), *[last + 1] * len(SPECIAL), *[last + 2] * len(numbers)]
    updates = [*(b for _, b in pairs), *SPECIAL, *SPECIAL[::-1], *numbers]
    arrays = [p, np.array(rows, np.int32), np.array(updates, numpy)]
    text = PROGRAM.format(type=type, opcode=opcode, size=len(p), count=len(rows))
    check(text, inputs=arrays).raise_if_different()


@pytest.mark.parametrize(("type", "numpy"), [("s8", np.int8), ("u16", np.uint16), ("f16", np.float16)])
def test_narrow_neighbours_keep_their_values(type: str, numpy: type[np.generic]) -> None:
    """A third of the elements are multiplied, each by seven threads; the others, in the same words, are not touched. 43 fill no word."""
    p = (np.arange(43) - 20).astype(numpy)
    rows = np.repeat(np.arange(0, 43, 3), 7).astype(np.int32)
    updates = np.where(np.arange(rows.size) % 2, 3, 1).astype(numpy)
    text = PROGRAM.format(type=type, opcode="multiply", size=43, count=rows.size)
    check(text, inputs=[p, rows, updates]).raise_if_different()
