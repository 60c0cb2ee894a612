"""`map`, and computations applied to whole arrays: the same as element by element, whatever the body holds."""

from collections.abc import Callable

import numpy as np
import pytest

from xla_emitters.dialects.hlo.called import goes_by_element
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

BODIES: dict[str, Callable[[int, int], int]] = {
    "ROOT r = s32[] subtract(a, b)": lambda a, b: a - b,
    "ROOT r = s32[] constant(5)": lambda a, b: 5,
    "ROOT r = s32[] reshape(b)": lambda a, b: b,
    "f = f32[] bitcast-convert(a) n = f32[] negate(f) ROOT r = s32[] bitcast-convert(n)": lambda a, b: a - (1 << 31),
    "f = f32[] bitcast(a) n = f32[] negate(f) ROOT r = s32[] bitcast(n)": lambda a, b: a - (1 << 31),
    "h = s16[2] bitcast-convert(a) n = s16[2] not(h) ROOT r = s32[] bitcast-convert(n)": lambda a, b: ~a,
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
    (got,) = evaluate(entry_of(module), [x, y])
    want = [BODIES[body](int(x[index]), int(y[index])) for index in np.ndindex(*shape)]
    assert got.shape == shape
    assert got.reshape(-1).tolist() == want


@pytest.mark.parametrize(("text", "is_at_once"), [("s32[] bitcast(f)", True), ("s32[] reshape(t)", False)])
def test_a_computation_with_bitcasts_of_scalars_takes_whole_arrays(text: str, is_at_once: bool) -> None:
    body = f"f = f32[] parameter(0) v = s32[1] bitcast(f) t = s32[1] copy(v) ROOT r = {text}"
    body = body if not is_at_once else body.replace(" v = s32[1] bitcast(f) t = s32[1] copy(v)", "")
    assert goes_by_element(entry_of(parse_hlo(f"ENTRY e {{ {body} }}"))) == is_at_once


def one_by_one(opcode: str, init: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Each row of `x` combined with what came before, by HLO's elementwise op of two arrays."""
    name = {"float32": "f32", "float16": "f16", "int8": "s8", "bool": "pred", "complex64": "c64"}[x.dtype.name]
    dims = ",".join(map(str, init.shape))
    text = f"ENTRY e {{ a = {name}[{dims}] parameter(0) b = {name}[{dims}] parameter(1) ROOT r = {name}[{dims}] {opcode}(a, b) }}"
    step = entry_of(parse_hlo(text))
    for row in x:
        (init,) = evaluate(step, [init, row])
    return init


@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum", "and", "or", "xor"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.bool_, np.complex64])
def test_a_fold_of_whole_arrays_rounds_after_every_step(opcode: str, dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((200, 4)) * 3
    if dtype is np.complex64:
        x = x + 1j * rng.standard_normal(x.shape)
    x = (x > 0 if dtype is np.bool_ else x).astype(dtype)
    is_real = x.dtype.kind == "f"
    if opcode in ("and", "or", "xor") and x.dtype.kind not in "ib":
        return
    if is_real:
        # NaN wins; of zeros the sign counts.
        x[7, 1] = np.nan
        x[:, 2], x[:, 3] = -0.0, 0.0
        x[100, 2] = 0.0
        x[50, 3] = -0.0
    name = {"float32": "f32", "float16": "f16", "int8": "s8", "bool": "pred", "complex64": "c64"}[x.dtype.name]
    module = parse_hlo(
        f"f {{ a = {name}[] parameter(0) b = {name}[] parameter(1) ROOT r = {name}[] {opcode}(b, a) }}\n"
        f"ENTRY e {{ x = {name}[200,4] parameter(0) z = {name}[] parameter(1)"
        f" ROOT r = {name}[4] reduce(x, z), dimensions={{0}}, to_apply=f }}"
    )
    init = x[3, 0]
    (got,) = evaluate(entry_of(module), [x, init])
    want = one_by_one(opcode, np.broadcast_to(init, (4,)).copy(), x)
    assert got.dtype == x.dtype
    assert np.array_equal(got, want, equal_nan=x.dtype.kind in "fc")
    if is_real:
        assert np.signbit(got[2:]).tolist() == np.signbit(want[2:]).tolist()
