"""Sorts of modules by comparators that no library has, against NumPy: at the stages of the CPU, and on a stand-in for a GPU.

Orders over several operands, with a place for NaN, of computed values; sizes at the lengths of runs; dimensions, layouts and types.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from long_lists import but_long, long_case
from unit.runtime.fake_gpu import fake_cupy, for_fake

from xla_emitters.graph.buffers import array_spec
from xla_emitters.pipelines.compiler import compile, plan_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.runtime.cuda.cupy_launcher import launch_program

Array = np.ndarray[Any, Any]
STAGES = ("hlo", "graph", "xla_gpu", "llvm-dialect")


@dataclass(frozen=True)
class Order:
    """A comparator of arrays x and i.

    body     of the comparator: a, b of x, c, d of i; its root is `r`
    by       keys of x and i for `np.lexsort`, the last one first
    element  type of x; i is s32
    """

    body: str
    by: Callable[[Array, Array], tuple[Array, ...]]
    element: str = "f32"


ORDERS = {
    "magnitude": Order(
        "u = f32[] abs(a) v = f32[] abs(b) ROOT r = pred[] compare(u, v), direction=LT", lambda x, i: (np.abs(x),)
    ),
    "magnitude, then the larger second": Order(
        """u = f32[] abs(a) v = f32[] abs(b) s = pred[] compare(u, v), direction=LT e = pred[] compare(u, v), direction=EQ
           t = pred[] compare(c, d), direction=GT w = pred[] and(e, t) ROOT r = pred[] or(s, w)""",
        lambda x, i: (-i, np.abs(x)),
    ),
    "descending, NaN first": Order(
        """n = pred[] compare(a, a), direction=NE m = pred[] compare(b, b), direction=NE
           k = pred[] not(m) first = pred[] and(n, k) g = pred[] compare(a, b), direction=GT ROOT r = pred[] or(first, g)""",
        lambda x, i: (-np.nan_to_num(x), ~np.isnan(x)),
    ),
    "a computed value": Order(
        """three = s32[] constant(3) p = s32[] multiply(c, three) q = s32[] multiply(d, three) u = s32[] convert(a)
           v = s32[] convert(b) y = s32[] add(u, p) z = s32[] add(v, q) seven = s32[] constant(7)
           k = s32[] remainder(y, seven) l = s32[] remainder(z, seven) ROOT r = pred[] compare(k, l), direction=GT""",
        lambda x, i: (-np.fmod(x.astype(np.int64) + 3 * i, 7),),
        "s16",
    ),
}


def module(order: Order, shape: tuple[int, ...], along: int, *, stable: bool = True, layout: str = "") -> str:
    dims = ",".join(map(str, shape))
    x, i = f"{order.element}[{dims}]{layout}", f"s32[{dims}]{layout}"
    names = "abcd"
    scalars = " ".join(f"{name} = {order.element if n < 2 else 's32'}[] parameter({n})" for n, name in enumerate(names))
    return f"""HloModule sorted
before {{ {scalars} {order.body} }}
ENTRY main {{ x = {x} parameter(0) i = {i} parameter(1)
  ROOT s = ({x}, {i}) sort(x, i), dimensions={{{along}}}, to_apply=before, is_stable={str(stable).lower()} }}"""


def drawn(shape: tuple[int, ...], element: str = "f32") -> tuple[Array, Array]:
    """Small integers, among which many are equal, and NaN where there is one."""
    rng = np.random.default_rng(shape[0])
    x: Array = rng.integers(-9, 10, shape).astype(np.int16 if element == "s16" else np.float32)
    if element == "f32":
        x[rng.random(shape) < 0.1] = np.nan
    return x, rng.integers(-20, 20, shape).astype(np.int32)


def check(results: Sequence[Array], order: Order, inputs: tuple[Array, Array], along: int) -> None:
    wanted = np.lexsort(order.by(*inputs), axis=along)
    for given, found in zip(inputs, results, strict=True):
        np.testing.assert_array_equal(found, np.take_along_axis(given, wanted, along))


def without_nan(order: Order, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
    """Comparators that say nothing of NaN get none: they are no order with it."""
    x, i = inputs
    return (x if "NE" in order.body or x.dtype != np.float32 else np.nan_to_num(x)), i


@pytest.mark.parametrize(("shape", "kernels"), [((3, 150), 1), ((2, 600), 5)])
@pytest.mark.parametrize("name", but_long(ORDERS, ("magnitude", "a computed value")))
def test_every_stage(name: str, shape: tuple[int, int], kernels: int) -> None:
    """Short rows are sorted by one kernel, longer ones by one for runs of 64 and one for each doubling."""
    order = ORDERS[name]
    inputs = without_nan(order, drawn(shape, order.element))
    program = compile(module(order, shape, 1), stage="llvm-dialect", record="stages")
    assert len(program.kernels) == kernels
    assert not program.calls
    for stage in STAGES:
        check(program.run(inputs, stage=stage), order, inputs, 1)


# One of them at all sizes shows where rows and runs end; the others, that their comparator is in both kinds of kernels.
SIZES = [(name, size) for name in ORDERS for size in (2, 64, 65, 129, 512, 513, 2500)]
LONG = [
    (name, size) for name, size in SIZES if size == 2500 or (name != "magnitude, then the larger second" and size != 65)
]


@pytest.mark.parametrize(("name", "size"), but_long(SIZES, LONG))
def test_sizes_on_a_gpu(name: str, size: int) -> None:
    """Equal elements stay in their order, also where the sort may exchange them: one kernel, or one a doubling, no call of a library."""
    order, shape = ORDERS[name], (size, 2) if size % 2 else (2, size)
    along = shape.index(size)
    inputs = without_nan(order, drawn(shape, order.element))
    program = for_fake(module(order, shape, along, stable=size % 2 == 0))
    with fake_cupy() as cupy:
        check(launch_program(program, inputs), order, inputs, along)
        assert len(cupy.launches) == (1 if size <= 512 else (size - 1).bit_length() - 5)
    assert not program.calls


@pytest.mark.parametrize("layout", ["{0,1,2}", "{1,2,0}"])
@pytest.mark.parametrize("along", [0, 1, 2])
def test_dimensions_and_layouts(along: int, layout: str) -> None:
    order, shape = ORDERS["magnitude, then the larger second"], (5, 70, 4)
    inputs = without_nan(order, drawn(shape))
    program = compile(module(order, shape, along, layout=layout), stage="llvm-dialect", record="none")
    check(program.run(inputs), order, inputs, along)


@pytest.mark.parametrize(
    ("element", "numpy"),
    [
        *(("f64", np.float64), ("f8e4m3fn", ml_dtypes.float8_e4m3fn), ("s8", np.int8)),
        *(long_case(case) for case in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("s64", np.int64))),
    ],
)
def test_types(element: str, numpy: type) -> None:
    """Each is compared by its square, which it holds exactly."""
    text = f"""HloModule squares
before {{ a = {element}[] parameter(0) b = {element}[] parameter(1) u = {element}[] multiply(a, a) v = {element}[] multiply(b, b)
  ROOT r = pred[] compare(u, v), direction=LT }}
ENTRY main {{ x = {element}[600] parameter(0) ROOT s = {element}[600] sort(x), dimensions={{0}}, to_apply=before }}"""
    x: Array = np.random.default_rng(0).integers(-4, 5, 600).astype(numpy)
    program = compile(text, stage="llvm-dialect", record="none")
    assert len(program.kernels) == 5
    (found,) = program.run([x])
    assert found.tobytes() == x[np.argsort(x.astype(np.int64) ** 2, kind="stable")].tobytes()


def test_complex_numbers_by_their_modulus() -> None:
    text = """HloModule moduli
before { a = c64[] parameter(0) b = c64[] parameter(1) u = f32[] abs(a) v = f32[] abs(b)
  ROOT r = pred[] compare(u, v), direction=LT }
ENTRY main { x = c64[70] parameter(0) ROOT s = c64[70] sort(x), dimensions={0}, to_apply=before }"""
    x = (np.random.default_rng(0).permutation(70) * np.array([1, -1j])[np.arange(70) % 2]).astype(np.complex64)
    program = compile(text, stage="llvm-dialect", record="none")
    assert len(program.kernels) == 1
    np.testing.assert_array_equal(program.run([x])[0], x[np.argsort(np.abs(x))])


def test_in_the_body_of_a_loop_on_a_gpu() -> None:
    text = """HloModule rounds
before { a = s32[] parameter(0) b = s32[] parameter(1) m = s32[] constant(5) u = s32[] remainder(a, m) v = s32[] remainder(b, m)
  ROOT r = pred[] compare(u, v), direction=LT }
more { s = (s32[], s32[100]) parameter(0) n = s32[] get-tuple-element(s), index=0 three = s32[] constant(3)
  ROOT l = pred[] compare(n, three), direction=LT }
step { s = (s32[], s32[100]) parameter(0) n = s32[] get-tuple-element(s), index=0 x = s32[100] get-tuple-element(s), index=1
  one = s32[] constant(1) next = s32[] add(n, one) sorted = s32[100] sort(x), dimensions={0}, to_apply=before
  ones = s32[100] broadcast(next), dimensions={} y = s32[100] add(sorted, ones) ROOT t = (s32[], s32[100]) tuple(next, y) }
ENTRY main { x = s32[100] parameter(0) zero = s32[] constant(0) init = (s32[], s32[100]) tuple(zero, x)
  w = (s32[], s32[100]) while(init), condition=more, body=step ROOT r = s32[100] get-tuple-element(w), index=1 }"""
    x = np.random.default_rng(0).permutation(100).astype(np.int32)
    program, wanted = for_fake(text), x
    for number in range(1, 4):
        wanted = wanted[np.argsort(wanted % 5, kind="stable")] + number
    with fake_cupy():
        np.testing.assert_array_equal(launch_program(program, [x])[0], wanted)
    assert not program.calls


@pytest.mark.parametrize("constant", ["true", "false"])
def test_what_is_no_order_gives_a_permutation(constant: str) -> None:
    text = f"""HloModule none
before {{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = pred[] constant({constant}) }}
ENTRY main {{ x = s32[200] parameter(0) ROOT s = s32[200] sort(x), dimensions={{0}}, to_apply=before }}"""
    x = np.random.default_rng(0).permutation(200).astype(np.int32)
    (found,) = compile(text, stage="llvm-dialect", record="none").run([x])
    np.testing.assert_array_equal(np.sort(found), np.arange(200))
    if constant == "false":
        np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = s4[8] parameter(0) ROOT s = s4[8] sort(x), dimensions={0}, to_apply=before", "less than a byte"),
        (
            "x = s32[8,2]{0,1} parameter(0) ROOT s = s32[8,2]{1,0} sort(x), dimensions={0}, to_apply=before",
            "different layouts",
        ),
    ],
)
def test_what_stays_a_librarys_says_why(text: str, why: str) -> None:
    kind = "s4" if "s4" in text else "s32"
    text = f"""HloModule left
before {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1) u = {kind}[] abs(a) v = {kind}[] abs(b)
  ROOT r = pred[] compare(u, v), direction=LT }}
ENTRY main {{ {text} }}"""
    program = compile(text, stage="llvm-dialect", record="none")
    assert [call.name for call in program.calls] == ["sort"]
    steps = {step.name: step for step in program.compilation.graph.steps}
    (said,) = steps["xla-split-sorts"].remarks
    assert why in said.text


def test_sorts_by_keys_stay_a_librarys() -> None:
    order = Order("ROOT r = pred[] compare(a, b), direction=GT", lambda x, i: (-x,))
    plan = plan_module(read_module(module(order, (4, 100), 1)), CompileOptions())
    assert [call.name for call in plan.calls] == ["sort"]
    assert array_spec(plan.results[0]).shape == (4, 100)
