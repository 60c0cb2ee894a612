"""Unrolling changes no number, and its copies keep their locations."""

import itertools

import numpy as np
import pytest
from long_lists import every
from unit.transforms.places import after_with_places
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import scf
from xla_emitters.rewrite.unrolling import trip_count_of_plain_loop
from xla_emitters.runtime.simt import execute
from xla_emitters.transforms.optimize_loops import (
    OptimizeLoopsPass,
    body_size,
    is_unrolled_later,
    unroll_factor,
    weight,
)

KERNEL = """
#at = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 1], d1 in [0, 63]">
func.func @k(%in: tensor<128xf32>, %out: tensor<2xf32>) -> tensor<2xf32>
    attributes {xla.entry, gpu.known_block_size = array<i32: 2, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %lower = arith.constant LOWER : index
  %upper = arith.constant UPPER : index
  %step = arith.constant STEP : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x {xla.range = [0 : index, 1 : index]}
  %sum:2 = scf.for %v = %lower to %upper step %step iter_args(%a = %zero, %b = %zero) -> (f32, f32) {
    %i = xla_gpu.apply_indexing #at(%t, %v)
    %x = tensor.extract %in[%i] : tensor<128xf32>
    BODY
    %y = arith.subf %x, %a : f32
    scf.yield %y, %a : f32, f32
  }
  %z = arith.addf %sum#0, %sum#1 : f32
  %w = tensor.insert %z into %out[%t] : tensor<2xf32>
  return %w : tensor<2xf32>
}
"""


def kernel(lower: int, upper: int, step: int, padding: int = 0) -> str:
    text = KERNEL.replace("LOWER", str(lower)).replace("UPPER", str(upper)).replace("STEP", str(step))
    return text.replace("BODY", "\n".join(f"%pad{k} = arith.negf %x : f32" for k in range(padding)))


def unrolled(text: str, max_unroll_factor: int = 4, *, unroll_in_llvm: bool = False) -> ModuleOp:
    module = parse_ir(text)
    OptimizeLoopsPass(max_unroll_factor, unroll_in_llvm).apply(make_context(), module)
    module.verify()
    return module


def run(module: ModuleOp) -> bytes:
    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    return execute(module, [x, np.zeros(2, np.float32)], results=1)[0].tobytes()


def loop_of(module: ModuleOp) -> scf.ForOp | None:
    return next((op for op in module.walk() if isinstance(op, scf.ForOp)), None)


@pytest.mark.parametrize("padding", [0, 30, 95, 500])
@pytest.mark.parametrize("upper", [0, 1, 3, 4, 5, 12, 64])
def test_same_numbers_before_and_after(upper: int, padding: int):
    """Every trip count, with bodies that fit often, a few times, hardly, and not at all."""
    text = kernel(0, upper, 1, padding)
    expected = run(parse_ir(text))
    assert run(unrolled(text)) == expected
    assert run(unrolled(text, unroll_in_llvm=True)) == expected


@pytest.mark.parametrize(("upper", "marked"), [(5, [5]), (12, [12]), (64, [32]), (4, []), (401, [])])
def test_loops_that_are_left_to_llvm(upper: int, marked: list[int]):
    """Trip counts of the marked loops: what would be copied more than four times. One body is left, whatever is copied later."""
    module = unrolled(kernel(0, upper, 1, 4).replace("64", "512"), unroll_in_llvm=True)
    found = [op for op in module.walk() if isinstance(op, scf.ForOp) and is_unrolled_later(op)]
    assert [trip_count_of_plain_loop(loop) for loop in found] == marked
    assert sum(op.name == "tensor.extract" for op in module.walk()) == (4 if upper == 4 else 1)


CONDITION = """
#sum = #xla_gpu.indexing_map<"(t, v) -> (t * SCALE + v * STRIDE + 1), domain: t in [0, 7], v in [0, 7]">
func.func @k(%in: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32>
    attributes {xla.entry, gpu.known_block_size = array<i32: 8, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %limit = arith.constant LIMIT : index
  %t = gpu.thread_id x {xla.range = [0 : index, 7 : index]}
  %r = scf.for %v = %c0 to %c8 step %c1 iter_args(%o = %out) -> (tensor<64xf32>) {
    %i = xla_gpu.apply_indexing #sum(%t, %v)
    %at = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(t, v) -> (t * 8 + v), domain: t in [0, 7], v in [0, 7]">(%t, %v)
    %is = arith.cmpi PREDICATE, %i, %limit : index
    %n = scf.if %is -> (tensor<64xf32>) {
      %x = tensor.extract %in[%at] : tensor<64xf32>
      %w = tensor.insert %x into %o[%at] : tensor<64xf32>
      scf.yield %w : tensor<64xf32>
    } else {
      scf.yield %o : tensor<64xf32>
    }
    scf.yield %n : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
"""
HOLDS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
}


CONDITIONS = itertools.product([*HOLDS, "ult", "uge"], [(1, 4), (8, 1), (4, 1), (3, -2), (-1, 5)], [-3, 0, 17])


@pytest.mark.parametrize(
    ("predicate", "scale", "stride", "limit"), every(2, [(name, *sum, limit) for name, sum, limit in CONDITIONS])
)
def test_comparisons_with_the_variable_on_the_other_side_select_the_same(
    predicate: str, scale: int, stride: int, limit: int
):
    text = CONDITION.replace("SCALE", str(scale)).replace("STRIDE", str(stride))
    module = unrolled(text.replace("LIMIT", str(limit)).replace("PREDICATE", predicate), unroll_in_llvm=True)
    t, v = np.divmod(np.arange(64), 8)
    value = t * scale + v * stride + 1
    if predicate in HOLDS:
        selected = HOLDS[predicate](value, limit)
    else:
        less = value.astype(np.uint32) < np.array(limit).astype(np.uint32)
        selected = less if predicate == "ult" else ~less
    x = np.arange(1, 65, dtype=np.float32)
    (found,) = execute(module, [x, np.zeros(64, np.float32)], results=1)
    assert np.array_equal(found, np.where(selected, x, 0))


@pytest.mark.parametrize(("lower", "upper", "step"), [(0, 12, 2), (0, 7, 3), (1, 5, 1), (4, 2, 1)])
def test_other_loops_stay(lower: int, upper: int, step: int):
    text = kernel(lower, upper, step)
    module = unrolled(text)
    assert loop_of(module) is not None
    assert run(module) == run(parse_ir(text))


@pytest.mark.parametrize(
    ("upper", "padding", "factor"),
    [
        (4, 0, 4),  # short: all
        (64, 1, 64),  # 5 ops in the body: 80 copies would fit
        (64, 4, 32),  # 8: 50 fit
        (60, 9, 30),  # 13: 30 fit, and divide 60
        (60, 11, 20),  # 15: 26 fit, 20 divide
        (7, 60, 1),  # 64: 6 fit, none divides
        (12, 396, 1),  # 400: one fits
        (12, 397, 1),  # 401: none
        (3, 397, 3),  # short: whatever the size
    ],
)
def test_factor(upper: int, padding: int, factor: int):
    """As many copies as 400 / size allows, a divisor of the trip count; all of up to four iterations. Source: docs/reference/2 3.3."""
    text = kernel(0, upper, 1, padding)
    loop = loop_of(parse_ir(text))
    assert loop is not None
    assert body_size(loop) == padding + 4
    module = unrolled(text)
    extracts = [op for op in module.walk() if op.name == "tensor.extract"]
    assert len(extracts) == factor
    assert (loop_of(module) is None) == (factor == upper)


@pytest.mark.parametrize(
    ("option", "said", "stays"), [(0, None, True), (0, 16, False), (4, 16, True), (16, None, False), (0, 8, True)]
)
def test_a_function_may_say_which_loops_are_short(option: int, said: int | None, stays: bool):
    """16 iterations of a body too large to be copied even twice; the option of the pass wins over the function."""
    text = kernel(0, 16, 1, 400)
    module = parse_ir(text)
    for function in module.ops:
        if said is not None:
            function.attributes["xla.unroll_factor"] = IntegerAttr.from_index_int_value(said)
    OptimizeLoopsPass(option).apply(make_context(), module)
    assert (loop_of(module) is not None) == stays
    assert run(module) == run(parse_ir(text))


def test_factor_always_divides():
    for trips in range(1, 130):
        for size in range(1, 500, 7):
            factor = unroll_factor(trips, size, 4)
            assert trips % factor == 0
            assert factor == trips or factor * size <= 400 or factor == 1
            better = [f for f in range(factor + 1, trips + 1) if trips % f == 0 and f * size <= 400]
            assert factor == trips or not better


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("%r = arith.addf %x, %x : f32", 1),
        ("%r = math.tanh %x : f32", 20),
        ("%r = math.sqrt %x : f32", 1),
        ("%r = math.ctpop %i : i32", 1),
        ("%r = math.exp %v : vector<4xf32>", 80),
        ("%r = arith.addf %v, %v : vector<4xf32>", 4),
        ("%r = vector.extract %v[0] : f32 from vector<4xf32>", 1),
    ],
)
def test_weight(op: str, expected: int):
    module = parse_ir(f"""
        func.func @f(%x: f32, %i: i32, %v: vector<4xf32>) {{
          {op}
          return
        }}""")
    (function,) = module.ops
    first = function.regions[0].block.first_op
    assert first
    assert weight(first) == expected


@pytest.mark.parametrize("upper", [4, 64])
def test_copies_keep_their_locations(upper: int):
    module, places = after_with_places(kernel(0, upper, 1, 20), OptimizeLoopsPass())
    for op in module.walk():
        if op.name in ("tensor.extract", "arith.subf", "arith.negf"):
            assert op.location == places[op.name]


def test_zero_stands_for_four():
    text = kernel(0, 4, 1, 500)
    assert loop_of(unrolled(text, 0)) is None
    assert loop_of(unrolled(text, 3)) is not None


def test_constants_count_nothing():
    """They leave the loop: an outer loop is unrolled as far with those that unrolling an inner one has left as without."""
    text = kernel(0, 8, 1)
    with_constants = text.replace(
        "%y = arith", "%c5 = arith.constant 5.0 : f32\n %c6 = arith.constant 6 : index\n %y = arith"
    )
    plain, constants = loop_of(parse_ir(text)), loop_of(parse_ir(with_constants))
    assert plain
    assert constants
    assert body_size(plain) == body_size(constants)
