"""`chlo.scan`: sums and their like, scans of any region, of known and unknown sizes; values are NumPy's."""

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from long_lists import but_long, every

import xla_emitters as xe
from xla_emitters.errors import Unsupported, VerifyError
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo

X = np.asarray([[1, -2, 3, 0.5], [4, 2, -6, 1], [0, 3, 2, -1]], np.float32)
KINDS: dict[str, tuple[str, Callable[..., Any], Any]] = {
    "add": ("0.0", np.add.accumulate, 0),
    "multiply": ("1.0", np.multiply.accumulate, 1),
    "maximum": ("0xFF800000", np.maximum.accumulate, -np.inf),
    "minimum": ("0x7F800000", np.minimum.accumulate, np.inf),
}


def type_of(shape: tuple[int, ...], unknown: str, element: str = "f32", first: int = 0) -> str:
    sizes = ("?" if "abc"[dim + first] in unknown else str(size) for dim, size in enumerate(shape))
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"


def text_of(
    opcode: str, axis: int, unknown: str = "", *, init: str = "", reverse: bool = False, generic: bool = False
) -> str:
    """A scan of f32[3,4]; the letters of `unknown` are the dimensions of unknown size."""
    whole = type_of(X.shape, unknown)
    part = type_of((X.shape[1 - axis],), unknown, first=1 - axis)
    literal = init or KINDS[opcode][0]
    flags = f"is_associative = true, is_reverse = {str(reverse).lower()}"
    region = f"""{{
    ^bb0(%input: {part}, %carry: {part}):
      %2 = stablehlo.{opcode} %input, %carry : {part}
      stablehlo.return %2, %2 : {part}, {part}
    }}"""
    head = f"chlo.scan(%x) inits (%0) dimension={axis} attributes {{{flags}}} {region}"
    if generic:
        segments = "operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>"
        head = f'"chlo.scan"(%x, %0) <{{dimension = {axis} : i64, {flags}, {segments}}}> ({region})'
    begin = f"%0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {part}"
    if "?" in part:
        begin = f"""%n = stablehlo.get_dimension_size %x, dim = {1 - axis} : ({whole}) -> tensor<i32>
    %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %0 = stablehlo.dynamic_broadcast_in_dim %c, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> {part}"""
    return f"""func.func @main(%x: {whole}) -> ({whole}, {part}) {{
    %c = stablehlo.constant dense<{literal}> : tensor<f32>
    {begin}
    %1:2 = {head} : ({whole}, {part}) -> ({whole}, {part})
    return %1#0, %1#1 : {whole}, {part}
  }}
"""


def wanted(opcode: str, axis: int, *, reverse: bool = False) -> tuple[Any, Any]:
    turned = np.flip(X, axis) if reverse else X
    found = KINDS[opcode][1](turned, axis=axis)
    last = np.take(found, -1, axis)
    return np.flip(found, axis) if reverse else found, last


def run(text: str, *arrays: Any) -> list[Any]:
    return evaluate(entry_of(parse_stablehlo(text)), list(arrays))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("opcode", KINDS)
def test_a_scan_that_begins_with_nothing_is_a_window(opcode: str, axis: int, reverse: bool) -> None:
    for generic in (False, True):
        text = text_of(opcode, axis, reverse=reverse, generic=generic)
        assert "hlo.reduce_window" in str(parse_stablehlo(text))
        for found, right in zip(run(text, X), wanted(opcode, axis, reverse=reverse), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-6)


@pytest.mark.parametrize(("axis", "reverse", "unknown"), every(5, product((0, 1), (False, True), ("a", "b", "ab"))))
def test_of_unknown_sizes(axis: int, reverse: bool, unknown: str) -> None:
    program = xe.compile(text_of("add", axis, unknown, reverse=reverse), record="none")
    for found, right in zip(program(X), wanted("add", axis, reverse=reverse), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-6)


@pytest.mark.parametrize(("axis", "reverse", "unknown"), every(5, product((0, 1), (False, True), ("", "a", "b", "ab"))))
def test_a_scan_that_begins_with_a_number_is_a_loop(axis: int, reverse: bool, unknown: str) -> None:
    text = text_of("add", axis, unknown, init="5.0", reverse=reverse)
    assert "hlo.while" in str(parse_stablehlo(text))
    for found, right in zip(xe.compile(text, record="none")(X), wanted("add", axis, reverse=reverse), strict=True):
        np.testing.assert_allclose(found, right + 5, rtol=1e-6)


@pytest.mark.parametrize("size", ["5", "?"])
def test_a_region_of_its_own_with_two_inputs_and_a_value_from_outside(size: str) -> None:
    """y[i] = a[i] * y[i-1] + b[i] * k, and the running maximum of y: an output of another type too."""
    whole, flags = f"tensor<{size}xf32>", f"tensor<{size}xi1>"
    text = f"""func.func @main(%a: {whole}, %b: {whole}, %k: tensor<f32>) -> ({whole}, {flags}, tensor<f32>, tensor<f32>) {{
      %y0 = stablehlo.constant dense<2.0> : tensor<f32>
      %m0 = stablehlo.constant dense<-1.0> : tensor<f32>
      %r:4 = chlo.scan(%a, %b) inits (%y0, %m0) dimension=0 attributes {{is_associative = false}} {{
      ^bb0(%ai: tensor<f32>, %bi: tensor<f32>, %y: tensor<f32>, %m: tensor<f32>):
        %0 = stablehlo.multiply %ai, %y : tensor<f32>
        %1 = stablehlo.multiply %bi, %k : tensor<f32>
        %2 = stablehlo.add %0, %1 : tensor<f32>
        %3 = stablehlo.maximum %2, %m : tensor<f32>
        %4 = stablehlo.compare GT, %2, %m : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %2, %4, %2, %3 : tensor<f32>, tensor<i1>, tensor<f32>, tensor<f32>
      }} : ({whole}, {whole}, tensor<f32>, tensor<f32>) -> ({whole}, {flags}, tensor<f32>, tensor<f32>)
      return %r#0, %r#1, %r#2, %r#3 : {whole}, {flags}, tensor<f32>, tensor<f32>
    }}
    """
    a, b, k = np.asarray([1, -2, 0.5, 3, 1], np.float32), np.asarray([1, 2, -3, 0, 4], np.float32), np.float32(2)
    y, m, right, more = np.float32(2), np.float32(-1), list[Any](), list[bool]()
    for ai, bi in zip(a, b, strict=True):
        y = ai * y + bi * k
        more.append(bool(y > m))
        m = max(m, y)
        right.append(y)
    found = xe.compile(text)(a, b, k)
    np.testing.assert_array_equal(found[0], right)
    np.testing.assert_array_equal(found[1], more)
    assert (found[2], found[3]) == (y, m)


@pytest.mark.parametrize("init", ["0.0", "5.0"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_composite_that_is_a_scan(reverse: bool, init: str) -> None:
    """jax.export writes a scan so; its decomposition is the same loop, and is not called here."""
    text = text_of("add", 1, init=init, reverse=reverse)
    region = text[text.index("{\n    ^bb0") : text.index("} : (") + 1]
    numbers = "operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>"
    flags = f"dimension = 1 : i64, is_associative = true, is_reverse = {str(reverse).lower()}, {numbers}"
    written = f"({region}) {{composite_attributes = {{{flags}}}, decomposition = @impl, version = 1 : i32}}"
    start, end = text.index("chlo.scan("), text.index("} : (") + 1
    found = run(f'{text[:start]}stablehlo.composite "chlo.scan" %x, %0 {written}{text[end:]}', X)
    for got, right in zip(found, wanted("add", 1, reverse=reverse), strict=True):
        np.testing.assert_allclose(got, right + float(init), rtol=1e-6)


def test_integers_and_an_empty_array() -> None:
    text = text_of("maximum", 1, init="-2147483648").replace("f32", "i32")
    assert "hlo.reduce_window" in str(parse_stablehlo(text))
    whole = np.asarray(X * 2, np.int32)
    np.testing.assert_array_equal(run(text, whole)[0], np.maximum.accumulate(whole, axis=1))
    found, last = xe.compile(text_of("add", 0, "a"))(X[:0])
    assert found.shape == (0, 4)
    np.testing.assert_array_equal(last, np.zeros(4, np.float32))


@pytest.mark.parametrize("init", but_long(["0.0", "5.0"], ["5.0"]))
def test_every_stage_computes_a_scan(init: str) -> None:
    verdict = xe.check(text_of("add", 1, "a", init=init), inputs=[X])
    assert verdict.ok, verdict


@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        ("dimension=1", "dimension=2", VerifyError, "dimension 2 of a scan"),
        ("chlo.scan(%x) inits (%0)", "chlo.scan() inits (%x, %0)", Unsupported, "without inputs"),
        (
            "return %2, %2 : tensor<3xf32>, tensor<3xf32>",
            "return %2 : tensor<3xf32>",
            VerifyError,
            "the region of a scan",
        ),
    ],
)
def test_a_wrong_scan_is_refused_where_it_is(old: str, new: str, kind: type[Exception], said: str) -> None:
    text = text_of("add", 1)
    assert old in text
    with pytest.raises(kind, match=re.escape(said)) as found:
        parse_stablehlo(text.replace(old, new))
    assert found.value.place.line == 4  # pyright: ignore[reportAttributeAccessIssue]
