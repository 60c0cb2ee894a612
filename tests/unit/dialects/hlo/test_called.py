"""`map`, and computations applied to whole arrays: the same as element by element, whatever the body holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.hlo_text import parse_hlo
from xla_emitters.runtime.reference import evaluate

BODIES: dict[str, Callable[[int, int], int]] = {
    "ROOT r = s32[] subtract(a, b)": lambda a, b: a - b,
    "ROOT r = s32[] constant(5)": lambda a, b: 5,
    "ROOT r = s32[] reshape(b)": lambda a, b: b,
    "f = f32[] convert(a) s = f32[] constant(2) m = f32[] multiply(f, s) ROOT r = s32[] convert(m)": lambda a, b: 2 * a,
    "p = pred[] compare(a, b), direction=LT v = s32[2] broadcast(a), dimensions={} c = s32[1] slice(v), slice={[1:2]} "
    "t = s32[] reshape(c) ROOT r = s32[] select(p, t, b)": lambda a, b: a if a < b else b,
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0)])
def test_map_is_its_computation_of_every_element(body: str, shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    y = np.flip(x).copy() * 2
    dims = ",".join(map(str, shape))
    module = parse_hlo(
        f"f {{ a = s32[] parameter(0) b = s32[] parameter(1) {body} }}\n"
        f"ENTRY e {{ x = s32[{dims}] parameter(0) y = s32[{dims}] parameter(1) ROOT m = s32[{dims}] map(x, y), to_apply=f }}"
    )
    module.verify()
    entry = next(op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)
    (got,) = evaluate(entry, [x, y])
    want = [BODIES[body](int(x[index]), int(y[index])) for index in np.ndindex(*shape)]
    assert got.shape == shape
    assert got.reshape(-1).tolist() == want
