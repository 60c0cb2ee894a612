"""Each pass on programs keeps their values, bit for bit, at every choice of sizes."""

from functools import cache

import numpy as np
import pytest
from long_lists import but_long
from runtime.stablehlo_programs import CASES, inputs_of, simplified
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import CallOp, find_computation
from xla_emitters.dialects.hlo.placement import devices_of
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.passes.disc_base_gemm import DiscBaseGemmPass
from xla_emitters.dynamic.passes.disc_broadcast_simplifier import DiscBroadcastSimplifierPass
from xla_emitters.dynamic.passes.disc_loop_invariant import DiscLoopInvariantPass
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import PROGRAM_GRAPH
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo

OPTIONS = CompileOptions(target="h200")
PASSES: tuple[KernelPass, ...] = tuple(row.make(OPTIONS) for row in PROGRAM_GRAPH)
LONG = (
    "random",
    "strided",
    "convolution",
    "composites",
    "halves",
    "gather_rows",
    "kernel_of_unknown_size",
    "masked_softmax",
)
"""Programs on which the passes do what they do on others: windows, layer, outer, embedding ..."""
SYMBOLIC = [name for name, case in CASES.items() if len(case.sizes) > 1]
SHORT = [name for name in SYMBOLIC if name not in (*LONG, "layer")][::4]


def read(name: str) -> ModuleOp:
    return simplified(name)


def parsed(text: str) -> ModuleOp:
    return Parser(make_context(), f"module {{{text}}}").parse_module()


@cache
def expected(name: str) -> tuple[tuple[Array, ...], ...]:
    entry = entry_of(read(name))
    return tuple(tuple(evaluate(entry, inputs_of(name, sizes))) for sizes in CASES[name].sizes)


def assert_same_bits(name: str, module: ModuleOp, what: str) -> None:
    entry = entry_of(module)
    for sizes, wanted in zip(CASES[name].sizes, expected(name), strict=True):
        for got, want in zip(evaluate(entry, inputs_of(name, sizes)), wanted, strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape), what
            assert got.tobytes() == want.tobytes(), f"{what} at {sizes}"


@pytest.mark.parametrize("name", but_long(SYMBOLIC, [name for name in SYMBOLIC if name not in SHORT]))
def test_every_pass_keeps_the_bits(name: str) -> None:
    """Each pass that changes the program is followed by a run at every choice of sizes."""
    module = read(name)
    before = str(module)
    for each in PASSES:
        each.apply_to(module)
        module.verify()
        if (after := str(module)) != before:
            assert_same_bits(name, module, each.name)
        before = after
    missing = [
        op.opcode for op in entry_of(module).instructions if not devices_of(op) and op.opcode != "shape-assertion"
    ]
    assert not missing
    assert not any(isinstance(op, CallOp) for op in module.walk())


@pytest.mark.parametrize("name", but_long(["layer", "scan"], ["layer"]))
def test_a_second_run_of_a_pass_changes_nothing(name: str) -> None:
    module = read(name)
    for each in PASSES:
        each.apply_to(module)
        # The placer places ops itself: on its own result it would add no copies, and keep the places.
        if each.name == "disc-placer":
            continue
        once = str(module)
        each.apply_to(module)
        assert str(module) == once, each.name


def test_padded_products_are_the_same_values() -> None:
    """Zeros add nothing. (Signs of zeros may differ, so values are compared.)"""
    module = read("narrow")
    for each in (*PASSES[:2], DiscBaseGemmPass(multiple=4, least=2)):
        each.apply_to(module)
    assert any(isinstance(op, HloOp) and op.opcode == "conditional" for op in module.walk())
    entry = entry_of(module)
    for sizes, wanted in zip(CASES["narrow"].sizes, expected("narrow"), strict=True):
        for got, want in zip(evaluate(entry, inputs_of("narrow", sizes)), wanted, strict=True):
            np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


IMPLICIT = """
hlo.computation @main entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x?xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<?xf32>
  %s = hlo.add %a, %b {broadcast_dimensions = array<i64: 1>, name = "s"} : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  hlo.return %s : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((2, 1), (3,)), ((2, 3), (1,)), ((2, 1), (0,)), ((2, 0), (1,))])
def test_implicit_broadcasts_are_numpys(shapes: tuple[tuple[int, ...], ...]) -> None:
    """0 against 1 is 0, where a maximum would say 1."""
    module = parsed(IMPLICIT)
    DiscBroadcastSimplifierPass().apply_to(module)
    a, b = (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes)
    (got,) = evaluate(entry_of(module), [a, b])
    assert got.shape == (a + b).shape
    np.testing.assert_array_equal(got, a + b)


BOUND_IN_SLOT_1 = """
module @m {
  func.func public @main(%n: tensor<i32>, %x: tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:4 = stablehlo.while(%i = %zero, %bound = %n, %k = %zero, %y = %x) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<?xf32>
      cond {
        %c = stablehlo.compare LT, %i, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %l = stablehlo.add %k, %j : tensor<i32>
        %z = stablehlo.add %y, %y : tensor<?xf32>
        stablehlo.return %j, %bound, %l, %z : tensor<i32>, tensor<i32>, tensor<i32>, tensor<?xf32>
      }
    return %r#2, %r#3 : tensor<i32>, tensor<?xf32>
  }
}
"""


def test_a_bound_that_leaves_the_loop_is_still_what_the_condition_compares_with() -> None:
    """It is carried in the slot with its operand number in the comparison, and another integer follows it."""
    module = parse_stablehlo(BOUND_IN_SLOT_1.lstrip(), "m.mlir")
    DiscLoopInvariantPass().apply_to(module)
    module.verify()
    loop = next(op for op in module.walk() if isinstance(op, HloOp) and op.opcode == "while")
    assert len(loop.operands) == 2
    for n in (0, 1, 5):
        total, doubled = evaluate(entry_of(module), [np.int32(n), np.ones(2, np.float32)])
        assert int(total) == n * (n + 1) // 2
        np.testing.assert_array_equal(doubled, np.full(2, 2.0**n, np.float32))


ZERO_TRIPS = """
hlo.computation @condition {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %i = hlo.get_tuple_element %p {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>) -> tensor<i32>
  %n = hlo.constant {name = "n"} dense<0> : tensor<i32>
  %c = hlo.compare %i, %n {direction = "LT", name = "c"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  hlo.return %c : tensor<i1>
}
hlo.computation @body {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %i = hlo.get_tuple_element %p {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>) -> tensor<i32>
  %x = hlo.get_tuple_element %p {index = 1 : i64, name = "x"} : (tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>) -> tensor<?xf32>
  %s = hlo.get_tuple_element %p {index = 2 : i64, name = "s"} : (tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>) -> tensor<1xi32>
  %y = hlo.dynamic_reshape %x, %s {name = "y"} : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
  %m = hlo.get_dimension_size %y {dimensions = array<i64: 0>, name = "m"} : (tensor<?xf32>) -> tensor<i32>
  %j = hlo.add %i, %m {name = "j"} : tensor<i32>
  %t = hlo.tuple %j, %x, %s {name = "t"} : (tensor<i32>, tensor<?xf32>, tensor<1xi32>) -> tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  hlo.return %t : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
}
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %s = hlo.parameter 1 {name = "s"} : tensor<1xi32>
  %z = hlo.constant {name = "z"} dense<0> : tensor<i32>
  %init = hlo.tuple %z, %x, %s {name = "i"}
    : (tensor<i32>, tensor<?xf32>, tensor<1xi32>) -> tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %w = hlo.while %init {body = @body, condition = @condition, name = "w"} : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  hlo.return %w : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
}
"""


SHARED_BODY = (
    ZERO_TRIPS[: ZERO_TRIPS.index("hlo.computation @main")]
    + """hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %s = hlo.parameter 1 {name = "s"} : tensor<1xi32>
  %z = hlo.constant {name = "z"} dense<0> : tensor<i32>
  %d = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "d"} : (tensor<?xf32>) -> tensor<i32>
  %e = hlo.reshape %d {name = "e"} : (tensor<i32>) -> tensor<1xi32>
  %i = hlo.tuple %z, %x, %FIRST {name = "i"}
    : (tensor<i32>, tensor<?xf32>, tensor<1xi32>) -> tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %v = hlo.while %i {body = @body, condition = @condition, name = "v"} : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %j = hlo.tuple %z, %x, %SECOND {name = "j"}
    : (tensor<i32>, tensor<?xf32>, tensor<1xi32>) -> tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %w = hlo.while %j {body = @body, condition = @condition, name = "w"} : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %t = hlo.tuple %v, %w {name = "t"} : (tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>, tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>)
    -> tuple<tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>, tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>>
  hlo.return %t : tuple<tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>, tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>>
}
"""
)


@pytest.mark.parametrize(("first", "second"), [("e", "s"), ("s", "e")])
def test_what_one_loop_proves_of_a_shared_body_the_other_does_not(first: str, second: str) -> None:
    """The reshape fits in the loop that carries the array's own size, and is hoisted out of that loop alone."""
    module = parsed(SHARED_BODY.replace("FIRST", first).replace("SECOND", second))
    DiscLoopInvariantPass().apply_to(module)
    module.verify()
    (moved,) = (op for op in entry_of(module).instructions if op.opcode == "dynamic-reshape")
    assert owner_of(moved.operands[1]).instruction_name.data == "e"
    left = [op for op in module.walk() if isinstance(op, HloOp) and op.opcode == "dynamic-reshape"]
    assert len(left) == 2


def test_nothing_that_fails_leaves_a_loop_that_does_not_run() -> None:
    """The body's reshape does not fit; the loop runs zero times, so hoisting it would fail."""
    module = parsed(ZERO_TRIPS)
    DiscLoopInvariantPass().apply_to(module)
    module.verify()
    x, s = np.arange(3, dtype=np.float32), np.asarray([7], np.int32)
    i, same, sizes = evaluate(entry_of(module), [x, s])
    assert int(i) == 0
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(sizes, s)
    loop = next(op for op in module.walk() if isinstance(op, HloOp) and op.opcode == "while")
    assert len(loop.operands) == 3  # the carried value, and x and s, which are the same in every iteration
    assert find_computation(loop, "body").parameters[1].result.type == loop.operands[1].type
