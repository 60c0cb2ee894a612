"""Integers of the host: sizes by chains of integer ops, which wrap around in their types, against NumPy's own integers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.program.steps import Call, Compute, steps_within

X = np.arange(7, dtype=np.float32)
NUMBERS = (-(2**31), -77, -1, 0, 1, 3, 5, 6, 1000, 2**31 - 1)
Chain = tuple[str, Callable[[Any], Any]]
CHAINS: dict[str, Chain] = {
    "product": ("%r = stablehlo.multiply %i, %large : tensor<i32>", lambda i: i * np.int32(2**31 - 1)),
    "sum": ("%r = stablehlo.add %i, %large : tensor<i32>", lambda i: i + np.int32(2**31 - 1)),
    "difference": ("%r = stablehlo.subtract %three, %i : tensor<i32>", lambda i: np.int32(3) - i),
    "negated": ("%r = stablehlo.negate %i : tensor<i32>", lambda i: -i),
    "not": ("%r = stablehlo.not %i : tensor<i32>", lambda i: ~i),
    "bits": (
        "%a = stablehlo.and %i, %three : tensor<i32>\n%b = stablehlo.xor %a, %large : tensor<i32>\n"
        "%r = stablehlo.xor %b, %large : tensor<i32>",
        lambda i: i & np.int32(3),
    ),
    "limits": (
        "%a = stablehlo.maximum %i, %three : tensor<i32>\n%b = stablehlo.minimum %a, %large : tensor<i32>\n"
        "%r = stablehlo.clamp %three, %b, %five : tensor<i32>",
        lambda i: np.clip(np.maximum(i, np.int32(3)), 3, 5),
    ),
    "chosen": (
        "%p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "%n = stablehlo.not %p : tensor<i1>\n%r = stablehlo.select %n, %three, %five : tensor<i1>, tensor<i32>",
        lambda i: np.where(i < 3, np.int32(5), np.int32(3)),
    ),
    "narrow": (
        "%a = stablehlo.convert %i : (tensor<i32>) -> tensor<i8>\n%r = stablehlo.convert %a : (tensor<i8>) -> tensor<i32>",
        lambda i: i.astype(np.int8).astype(np.int32),
    ),
    "unsigned": (
        "%a = stablehlo.convert %i : (tensor<i32>) -> tensor<ui8>\n%b = stablehlo.add %a, %a : tensor<ui8>\n"
        "%r = stablehlo.convert %b : (tensor<ui8>) -> tensor<i32>",
        lambda i: (i.astype(np.uint8) + i.astype(np.uint8)).astype(np.int32),
    ),
    "quotient": ("%r = stablehlo.divide %i, %three : tensor<i32>", lambda i: np.trunc(i / 3).astype(np.int32)),
    "by_what_may_be_zero": (
        "%r = stablehlo.divide %six, %i : tensor<i32>",
        lambda i: np.trunc(6 / i).astype(np.int32) if i else np.int32(-1),
    ),
    "rest": ("%r = stablehlo.remainder %i, %five : tensor<i32>", lambda i: np.fmod(i, np.int32(5))),
    "rest_of_zero": ("%r = stablehlo.remainder %six, %i : tensor<i32>", lambda i: np.fmod(6, i) if i else np.int32(6)),
    "magnitude": ("%r = stablehlo.abs %i : tensor<i32>", np.abs),
    "sign": (
        "%a = stablehlo.sign %i : tensor<i32>\n%r = stablehlo.add %a, %three : tensor<i32>",
        lambda i: np.sign(i) + np.int32(3),
    ),
    "moved": (
        "%a = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>\n"
        "%b = stablehlo.reshape %three : (tensor<i32>) -> tensor<1xi32>\n"
        "%c = stablehlo.concatenate %b, %a, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n"
        "%d = stablehlo.slice %c [1:2] : (tensor<2xi32>) -> tensor<1xi32>\n"
        "%r = stablehlo.reshape %d : (tensor<1xi32>) -> tensor<i32>",
        lambda i: i,
    ),
}


def program(lines: str) -> Any:
    return xe.compile(
        f"""module @m {{
func.func public @main(%x: tensor<f32>, %i: tensor<i32>) -> tensor<?xf32> {{
%zero = stablehlo.constant dense<0> : tensor<i32>
%six = stablehlo.constant dense<6> : tensor<i32>
%large = stablehlo.constant dense<2147483647> : tensor<i32>
%three = stablehlo.constant dense<3> : tensor<i32>
%five = stablehlo.constant dense<5> : tensor<i32>
{lines}
%size = stablehlo.clamp %zero, %r, %six : tensor<i32>
%shape = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
%s = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
return %s : tensor<?xf32>
}} }}"""
    )


@pytest.mark.parametrize("name", CHAINS)
def test_integers_wrap_as_numpys_do(name: str) -> None:
    lines, wanted = CHAINS[name]
    made = program(lines)
    for number in NUMBERS:
        with np.errstate(over="ignore"):
            size = int(np.clip(wanted(np.array(number, np.int32)), 0, 6))
        np.testing.assert_array_equal(made(np.float32(2), np.int32(number)), np.full(size, 2, np.float32))


def test_they_are_numbers_and_no_calls() -> None:
    """The copy of the argument to the host, the check of the size, and the broadcast itself are left."""
    lines = "\n".join(CHAINS[name][0].replace("%r", f"%{name}") for name in ("limits", "quotient", "rest", "magnitude"))
    lines += "\n%r = stablehlo.add %limits, %quotient : tensor<i32>"
    steps = list(steps_within(program(lines).compilation.loaded.bind([(), ()]).steps))
    assert [step.name for step in steps if isinstance(step, Call)] == ["p1.d2h", "shape_assertion", "s"]
    assert any(isinstance(step, Compute) for step in steps)


LOOP = """module @m {
func.func public @main(%x: tensor<?xf32>, %n: tensor<i32>) -> (tensor<?xf32>, tensor<?xf32>) {
%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%r:4 = stablehlo.while(%i = %zero, %a = %zero, %b = %one, %y = %x) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<?xf32>
cond {
%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %p : tensor<i1>
} do {
%j = stablehlo.add %i, %one : tensor<i32>
%c = stablehlo.add %a, %b : tensor<i32>
%z = stablehlo.add %y, %y : tensor<?xf32>
stablehlo.return %j, %b, %c, %z : tensor<i32>, tensor<i32>, tensor<i32>, tensor<?xf32>
}
%f = stablehlo.constant dense<1.0> : tensor<f32>
%shape = stablehlo.reshape %r#1 : (tensor<i32>) -> tensor<1xi32>
%s = stablehlo.dynamic_broadcast_in_dim %f, %shape, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
return %r#3, %s : tensor<?xf32>, tensor<?xf32>
} }"""


def test_numbers_that_a_loop_carries_change_at_once() -> None:
    """Fibonacci: each of two numbers becomes what the other was."""
    program = xe.compile(LOOP)
    for trips, number in ((0, 0), (1, 1), (2, 1), (9, 34)):
        doubled, ones = program(X, np.int32(trips))
        np.testing.assert_array_equal(doubled, X * 2**trips)
        assert ones.shape == (number,)


def test_a_number_that_the_body_sets_to_a_constant() -> None:
    text = LOOP.replace("%j, %b, %c, %z", "%j, %five, %c, %z")
    program = xe.compile(text.replace("%one = ", "%five = stablehlo.constant dense<5> : tensor<i32>\n%one = "))
    for trips in (0, 1, 3):
        assert program(X, np.int32(trips))[1].shape == (5 if trips else 0,)
