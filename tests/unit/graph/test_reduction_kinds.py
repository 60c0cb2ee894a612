"""Reductions as three dims in the order of memory, which of them are heroes, and which of a fusion's share blocks."""

import math

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dtypes import dtype
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.reduction_kinds import (
    ABSENT,
    FusionReductions,
    Reduction,
    chains_of_heroes,
    describe,
    find_reductions,
    vector_size,
    why_not_hero,
)
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.text.hlo import parse_hlo


def view(body: str) -> FusionView:
    add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }"
    module = parse_hlo(f"{add}\nENTRY f {{\n{body}\n}}", "x.hlo")
    return view_of(entry_of(module))


def reduce(operand: str, result: str, dimensions: str) -> ReduceOp:
    body = f"""
      p = {operand} parameter(0)
      z = f32[] constant(0)
      ROOT r = {result} reduce(p, z), dimensions={{{dimensions}}}, to_apply=add
    """
    (found,) = (op for op in view(body).instructions if isinstance(op, ReduceOp))
    return found


@pytest.mark.parametrize(
    ("operand", "result", "dimensions", "wanted"),
    [
        ("f32[8,64]", "f32[8]", "1", Reduction(True, (1, 8, 64))),
        ("f32[8,64]", "f32[64]", "0", Reduction(False, (1, 8, 64))),
        ("f32[8,64]", "f32[]", "0,1", Reduction(True, (1, 1, 512))),
        ("f32[8,64]{0,1}", "f32[8]", "1", Reduction(False, (1, 64, 8))),
        ("f32[4,8,64]", "f32[8]", "0,2", Reduction(True, (4, 8, 64))),
        ("f32[4,8,64]", "f32[4,64]", "1", Reduction(False, (4, 8, 64))),
        ("f32[4,8,64]{1,0,2}", "f32[4,64]", "1", Reduction(True, (1, 256, 8))),
        ("f32[4,8,64]", "f32[4,8]", "2", Reduction(True, (1, 32, 64))),
        # One element that is kept is none: all goes.
        ("f32[4,1,64]", "f32[1]", "0,2", Reduction(True, (1, 1, 256))),
        ("f32[64,100,32,8]", "f32[100]", "0,2,3", Reduction(True, (64, 100, 256))),
        ("f32[2,3,4,5]", "f32[3,5]", "0,2", None),
    ],
)
def test_dims_in_the_order_of_memory(operand: str, result: str, dimensions: str, wanted: Reduction | None):
    assert describe(reduce(operand, result, dimensions)) == wanted


@pytest.mark.parametrize(
    ("shape", "pays"),
    [
        # Rows: of a divisor of 32, or 32 and longer.
        *[(Reduction(True, (1, 4, minor)), True) for minor in (1, 2, 4, 8, 16, 32, 33, 100)],
        *[(Reduction(True, (1, 4, minor)), False) for minor in (3, 7, 20, 31)],
        # Columns: the narrower, the longer.
        (Reduction(False, (1, 31, 4096)), False),
        (Reduction(False, (1, 32, 32)), True),
        (Reduction(False, (1, 63, 31)), False),
        (Reduction(False, (1, 64, 31)), True),
        (Reduction(False, (1, 127, 7)), False),
        (Reduction(False, (1, 128, 7)), True),
        (Reduction(False, (1, 255, 2)), False),
        (Reduction(False, (1, 256, 2)), True),
    ],
    ids=str,
)
def test_where_sharing_work_pays(shape: Reduction, pays: bool):
    assert shape.pays == pays


@pytest.mark.parametrize(
    ("shape", "free"),
    [
        (Reduction(True, (8, 4, 16384)), True),
        (Reduction(True, (9, 4, 16384)), False),
        (Reduction(True, (1, 4, 16385)), False),
        (Reduction(False, (9, 4096, 64)), True),
        (Reduction(False, (1, 4097, 64)), False),
    ],
    ids=str,
)
def test_what_one_block_can_do(shape: Reduction, free: bool):
    assert shape.is_race_free == free


def test_why_a_reduction_is_no_hero():
    assert why_not_hero(reduce("f32[8,64]", "f32[8]", "1")) is None
    assert why_not_hero(reduce("f32[8,20]", "f32[8]", "1")) == "%r is a row [1, 8, 20]: too little work for a warp"
    assert why_not_hero(reduce("f32[8192,64]", "f32[64]", "0")) == (
        "%r is a column [1, 8192, 64]: more than one block can reduce"
    )
    assert why_not_hero(reduce("f32[2,3,4,5]", "f32[3,5]", "0,2")) == (
        "neither the kept nor the reduced dimensions of %r are contiguous in memory"
    )


@pytest.mark.parametrize(
    "shape",
    [
        Reduction(True, (1, 3, 2**20)),
        Reduction(True, (2, 3, 2**20)),
        Reduction(True, (40, 3, 64)),
        Reduction(True, (40, 1, 64)),
        Reduction(False, (2, 2**14, 3)),
    ],
    ids=str,
)
def test_two_steps_sum_what_one_does(shape: Reduction):
    """The first step's results are the second's operand, and its kept dims those of the whole."""
    first, second = shape.split.first, shape.split.second
    assert first.is_race_free
    assert second.is_race_free
    data = np.arange(math.prod(shape.dims), dtype=np.int64).reshape(shape.dims)

    def summed(step: Reduction, data: np.ndarray) -> np.ndarray:
        return data.reshape(step.dims).sum((0, 2) if step.is_row else 1)

    # Rows beside one another are what a column of the second step is summed over.
    assert np.array_equal(summed(second, summed(first, data)).reshape(-1), summed(shape, data).reshape(-1))


@pytest.mark.parametrize(
    ("minor", "threads", "bits", "size"),
    [
        (2048, 128, 32, 2),
        (2047, 128, 32, 1),
        (255, 128, 16, 1),
        (256, 128, 16, 2),
        (512, 128, 16, 4),
        (514, 128, 16, 2),
        (512, 128, 8, 4),
        (512, 128, 64, 1),
        (512, 128, ABSENT, 1),
    ],
)
def test_vector_size(minor: int, threads: int, bits: int, size: int):
    assert vector_size(minor, threads, bits, []) == size


def reductions(body: str) -> FusionReductions:
    found = find_reductions(view(body))
    assert isinstance(found, FusionReductions), found
    return found


THREE = """
  p = f32[30,512] parameter(0)
  q = f32[30,512] parameter(1)
  z = f32[] constant(0)
  a = f32[30] reduce(p, z), dimensions={{1}}, to_apply=add
  n = f32[30,512] negate({second})
  b = f32[30] reduce(n, z), dimensions={{1}}, to_apply=add
  ROOT t = ({types}) tuple(a, b, {third})
"""


def test_reductions_of_different_arrays_have_blocks_of_their_own():
    """The constant that they share is cheap; what reads both arrays joins them."""
    apart = THREE.format(second="q", third="a", types="f32[30], f32[30], f32[30]")
    assert reductions(apart).groups == ((0, 2), (1,))
    together = THREE.format(second="p", third="a", types="f32[30], f32[30], f32[30]")
    assert reductions(together).groups == ((0, 1, 2),)


def test_a_scalar_parameter_is_cheap_to_read_twice():
    body = THREE.format(second="q", third="a", types="f32[30], f32[30], f32[30]")
    assert reductions(body.replace("z = f32[] constant(0)", "z = f32[] parameter(2)")).groups == ((0, 2), (1,))


def test_a_constant_joins_the_first_reduction_to_results_that_are_not_reduced():
    """Source: docs/reference/2 2.4.1; the second reduction reads the constant again. Without it nothing is joined."""
    body = """
      p = f32[30,512] parameter(0)
      q = f32[30,512] parameter(1)
      r = f32[30,512] parameter(2)
      z = f32[] constant(0)
      a = f32[30] reduce(p, z), dimensions={1}, to_apply=add
      b = f32[30] reduce(q, z), dimensions={1}, to_apply=add
      w = f32[30,512] broadcast(z), dimensions={}
      s = f32[30,512] add(r, w)
      ROOT t = (f32[30], f32[30], f32[30,512]) tuple(a, b, s)
    """
    assert reductions(body).groups == ((0, 2), (1,))
    assert reductions(body.replace("add(r, w)", "negate(r)")).groups == ((0,), (1,), (2,))


def test_an_array_of_one_element_is_no_scalar():
    """As for XLA: roots that read it share a group, those that read a scalar need not."""
    body = """a = f32[64,512] parameter(0)
        b = f32[64,512] parameter(1)
        s = f32[1] parameter(2)
        k = f32[] bitcast(s)
        z = f32[] constant(0)
        w = f32[64,512] broadcast(k), dimensions={}
        m = f32[64,512] multiply(a, w)
        n = f32[64,512] add(b, w)
        x = f32[64] reduce(m, z), dimensions={1}, to_apply=add
        y = f32[64] reduce(n, z), dimensions={1}, to_apply=add
        ROOT t = (f32[64], f32[64]) tuple(x, y)"""
    assert reductions(body).groups == ((0, 1),)
    assert reductions(body.replace("s = f32[1]", "s = f32[]").replace("bitcast", "negate")).groups == ((0,), (1,))


def test_results_that_are_not_reduced_share_a_group():
    body = THREE.format(second="p", third="q, n", types="f32[30], f32[30], f32[30,512], f32[30,512]")
    found = reductions(body)
    # q alone is read by nothing else, but it is not reduced, and neither is n.
    assert found.groups == ((0, 1, 2, 3),)
    assert [found.hero_of(root) is None for root in range(4)] == [False, False, True, True]
    assert len(found.reduce_heroes) == 2


def test_what_cannot_share_a_kernel():
    small = THREE.format(second="q", third="z", types="f32[30], f32[30], f32[]")
    assert find_reductions(view(small)) == (
        "%z ('constant') is not a reduce, and %z is f32[] where 15360 elements are read"
    )
    other = """
      p = f32[30,512] parameter(0)
      z = f32[] constant(0)
      a = f32[30] reduce(p, z), dimensions={1}, to_apply=add
      b = f32[] reduce(p, z), dimensions={0,1}, to_apply=add
      ROOT t = (f32[30], f32[]) tuple(a, b)
    """
    assert find_reductions(view(other)) == ("reductions of two kinds: row [1, 30, 512] and, for %b, row [1, 1, 15360]")


def test_an_epilogue_is_a_chain_of_single_operands():
    body = """
      p = f32[30,512] parameter(0)
      z = f32[] constant(0)
      r = f32[30] reduce(p, z), dimensions={1}, to_apply=add
      ROOT l = f32[30] log(r)
    """
    assert [hero.instruction_name.data for hero in reductions(body).reduce_heroes] == ["r"]
    assert find_reductions(view(body.replace("log(r)", "add(r, r)"))) == (
        "%l ('add') is not a reduce, and a reduce is only found through instructions of one operand"
    )
    assert (
        find_reductions(view("p = f32[30,512] parameter(0)\nROOT l = f32[30,512] log(p)"))
        == "%l ('log') is not a reduce"
    )


def test_of_several_reasons_that_of_a_reduce_is_given():
    body = """
      p = f32[30,20] parameter(0)
      z = f32[] constant(0)
      r = f32[30] reduce(p, z), dimensions={1}, to_apply=add
      l = f32[30] add(r, r)
      ROOT t = (f32[30], f32[30]) tuple(l, r)
    """
    assert find_reductions(view(body)) == "%r is a row [1, 30, 20]: too little work for a warp"


def test_bounds_know_every_reduction_that_threads_share():
    """Also where no one kernel makes all results; %d is summed by one thread."""
    body = """
      p = f32[30,512] parameter(0)
      q = f32[30,20] parameter(1)
      z = f32[] constant(0)
      a = f32[30] reduce(p, z), dimensions={1}, to_apply=add
      b = f32[512] reduce(p, z), dimensions={0}, to_apply=add
      c = f32[] reduce(p, z), dimensions={0,1}, to_apply=add
      d = f32[30] reduce(q, z), dimensions={1}, to_apply=add
      n = f32[] negate(c)
      ROOT t = (f32[30], f32[512], f32[], f32[30]) tuple(a, b, n, d)
    """
    found = {op.instruction_name.data: chain for op, chain in chains_of_heroes(view(body).computation).items()}
    assert found.keys() == {"a", "c"}
    assert min(found.values()) > 1


DEEP = """
deep {{ a = {type}[] parameter(0)
       b = {type}[] parameter(1)
       m = {type}[] maximum(a, b)
       one = {type}[] constant(1)
       ROOT r = {type}[] add(m, one) }}
ENTRY e {{ x = {type}[{rows},{columns}] parameter(0)
          z = {type}[] constant(0)
          ROOT r = {type}[{kept}] reduce(x, z), dimensions={{{dim}}}, to_apply=deep }}
"""


@pytest.mark.parametrize(
    ("type", "rows", "columns", "dim", "exact"),
    [
        ("f32", 8, 32, 1, True),
        ("f32", 3, 700, 1, True),
        ("f16", 3, 1000, 1, True),
        ("f16", 8, 256, 1, True),
        ("f16", 8, 64, 1, False),
        ("f32", 8, 16, 1, False),
        ("f32", 96, 64, 0, True),
        ("f32", 100, 8, 0, False),
    ],
)
def test_no_element_goes_through_more_combinations(type: str, rows: int, columns: int, dim: int, exact: bool):
    """The kernel counts them itself: by max(a, b) + 1. Where how much a thread reads at once is open, there may be fewer."""
    text = DEEP.format(type=type, rows=rows, columns=columns, kept=rows if dim else columns, dim=dim)
    (longest,) = chains_of_heroes(entry_of(parse_hlo(text, "deep.hlo"))).values()
    (counted,) = run_program(xe.compile(text, target="t4"), [np.zeros((rows, columns), dtype(type).numpy)], "xla_gpu")
    found = float(np.asarray(counted).astype(np.float64).max())
    assert found == longest if exact else longest - 3 <= found <= longest
