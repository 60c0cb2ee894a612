"""The grammar of StableHLO text: pretty and generic forms mean the same; errors for wrong input, with their places."""

import random
import re
from pathlib import Path

import pytest

from xla_emitters.errors import ParseError, Place, Unsupported, VerifyError, XlaEmittersError
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import is_stablehlo, parse_stablehlo, print_stablehlo

CORPUS = Path(__file__).parents[3] / "corpus" / "stablehlo"
HEAD = "func.func public @main(%a: tensor<4x8xf32>, %b: tensor<8xf32>, %n: tensor<2xi32>, %p: tensor<i1>) -> tensor<?x?xf32> {\n"
T, D = "tensor<4x8xf32>", "tensor<?x?xf32>"


def program(body: str, result: str = T) -> str:
    return HEAD.replace(D, result) + body + f"\nreturn %r : {result}\n}}\n"


FORMS = {
    "add": (f"%r = stablehlo.add %a, %a : {T}", f'%r = "stablehlo.add"(%a, %a) : ({T}, {T}) -> {T}', T),
    "compare": (
        f"%r = stablehlo.compare LT, %a, %a, FLOAT : ({T}, {T}) -> tensor<4x8xi1>",
        f'%r = "stablehlo.compare"(%a, %a) <{{comparison_direction = #stablehlo<comparison_direction LT>, '
        f"compare_type = #stablehlo<comparison_type FLOAT>}}> : ({T}, {T}) -> tensor<4x8xi1>",
        "tensor<4x8xi1>",
    ),
    "slice": (
        f"%r = stablehlo.slice %a [1:3, 0:8:2] : ({T}) -> tensor<2x4xf32>",
        '%r = "stablehlo.slice"(%a) <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 8>, '
        f"strides = array<i64: 1, 2>}}> : ({T}) -> tensor<2x4xf32>",
        "tensor<2x4xf32>",
    ),
    "dot_general": (
        f"%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] "
        f": ({T}, tensor<8xf32>) -> tensor<4xf32>",
        '%r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], '
        "rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}> "
        f": ({T}, tensor<8xf32>) -> tensor<4xf32>",
        "tensor<4xf32>",
    ),
    "dynamic_broadcast_in_dim": (
        f"%r = stablehlo.dynamic_broadcast_in_dim %b, %n, dims = [1] : (tensor<8xf32>, tensor<2xi32>) -> {D}",
        '%r = "stablehlo.dynamic_broadcast_in_dim"(%b, %n) <{broadcast_dimensions = array<i64: 1>}> '
        f": (tensor<8xf32>, tensor<2xi32>) -> {D}",
        D,
    ),
    "reduce": (
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : ({T}, tensor<f32>) -> tensor<4xf32>",
        '%z = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>\n'
        '%r = "stablehlo.reduce"(%a, %z) <{dimensions = array<i64: 1>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n'
        '  %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n'
        '  "stablehlo.return"(%s) : (tensor<f32>) -> ()\n'
        f"}}) : ({T}, tensor<f32>) -> tensor<4xf32>",
        "tensor<4xf32>",
    ),
    "while": (
        f"%r, %q = stablehlo.while(%x = %a, %y = %p) : {T}, tensor<i1>\ncond {{ stablehlo.return %y : tensor<i1> }} do {{\n"
        f"%z = stablehlo.not %y : tensor<i1>\nstablehlo.return %x, %z : {T}, tensor<i1> }}",
        f'%r, %q = "stablehlo.while"(%a, %p) ({{\n^bb0(%x: {T}, %y: tensor<i1>):\n"stablehlo.return"(%y) : (tensor<i1>) -> ()\n'
        f'}}, {{\n^bb0(%x: {T}, %y: tensor<i1>):\n%z = "stablehlo.not"(%y) : (tensor<i1>) -> tensor<i1>\n'
        f'"stablehlo.return"(%x, %z) : ({T}, tensor<i1>) -> ()\n}}) : ({T}, tensor<i1>) -> ({T}, tensor<i1>)',
        T,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_pretty_form_is_the_generic_form(name: str) -> None:
    pretty, generic, result = FORMS[name]
    printed = [print_stablehlo(parse_stablehlo(program(text, result))) for text in (pretty, generic)]
    assert printed[0] == printed[1]
    assert f"stablehlo.{name}" in printed[0]


@pytest.mark.tiny
def test_a_name_is_of_an_op_in_its_dialect() -> None:
    with pytest.raises(
        ParseError, match=r"f\.mlir:2:6: error.*no op 'stablehlo.mutliply'; did you mean 'stablehlo.multiply'"
    ):
        parse_stablehlo(program(f"%r = stablehlo.mutliply %a, %a : {T}"), "f.mlir")


TWO = f"({T}, tensor<8xf32>)"
REFUSED: dict[str, tuple[str, type[XlaEmittersError], str, str]] = {
    "no dialect": (f"%r = add %a, %a : {T}", ParseError, "add", "no op 'add'"),
    "dialect of others": (f"%r = math.exp %a : {T}", Unsupported, "math.exp", "dialect 'math'"),
    "op of another dialect": (f"%r = chlo.add %a, %a : {T}", ParseError, "chlo.add", "no op 'chlo.add'"),
    "wrong written type": (f"%r = stablehlo.add %a, %b : {T}", VerifyError, "%b", "not its own"),
    "shapes": (f"%r = stablehlo.add %a, %b : {TWO} -> {T}", VerifyError, "%b", "differ in shape"),
    "operand count": (f"%r = stablehlo.add %a : {T}", VerifyError, "stablehlo.add", "it has 1; 'add' takes 2"),
    "undefined": (f"%r = stablehlo.add %a, %c : {T}", VerifyError, "%c", "no value %c"),
    "not the result": (f"%r:2 = stablehlo.add %a, %a : {T}", ParseError, "%r", "has 1 results, and 2 are named"),
    "twice": ("%a = stablehlo.negate %b : tensor<8xf32>", VerifyError, "%a", "defined twice"),
    "element type": ("%r = stablehlo.negate %a : tensor<4x8xf23>", ParseError, "tensor<4x8xf23>", "did you mean 'f32'"),
    "quantized": (
        "%r = stablehlo.negate %a : tensor<4x!quant.uniform<i8:f32, 1.0>>", Unsupported, "tensor<4x!q", "quantized types",
    ),
    "sparse": ("%r = stablehlo.negate %a : tensor<4x8xf32, #csr>", Unsupported, "tensor<4x8xf32, #csr>", "sparse"),
    "key": (f"%r = stablehlo.transpose %a, dim = [1, 0] : {T}", ParseError, "dim", "did you mean 'dims'"),
    "attribute left out": (f'%r = "stablehlo.transpose"(%a) : ({T}) -> {T}', ParseError, '"stablehlo.tr', "'permutation'"),
    "attribute kind": (
        f'%r = "stablehlo.transpose"(%a) <{{permutation = "x"}}> : ({T}) -> {T}', ParseError, '"x"', "a list of integers",
    ),
    "shape rule": (
        f"%r = stablehlo.transpose %a, dims = [1, 0] : ({T}) -> {T}", VerifyError, "stablehlo.transpose", "tensor<4x8xf32>",
    ),
    "literal's shape": (f"%r = stablehlo.constant dense<[1.0, 2.0]> : {T}", ParseError, "[1.0", r"has the shape \[2\]"),
    "literal's number": (f"%r = stablehlo.constant dense<1.x> : {T}", ParseError, "1.x", "'1.x' is not a number"),
    "resource": (f"%r = stablehlo.constant dense_resource<x> : {T}", ParseError, "x>", "no resource 'x' at the end"),
    "callee": (f"%r = call @mian(%a) : ({T}) -> {T}", VerifyError, "call", "did you mean 'main'"),
    "itself": (f"%r = call @main(%a) : ({T}) -> {T}", VerifyError, "call", "@main -> @main"),
    "string": ('%r = stablehlo.custom_call @x(%a) {b = "c} : ...', ParseError, '"', "string is not closed"),
    "deep": (f"%r = stablehlo.custom_call @x(%a) {{b = {'[' * 100}", ParseError, "[", "nested more than 60 deep"),
    "blocks": (f"%r = stablehlo.negate %a : {T}\n^bb1:", Unsupported, "^bb1", "several blocks"),
    "not an op": ("%r = 12", ParseError, "12", "expected an op"),
    "captured by a reducer": (
        f'%z = stablehlo.slice %b [0:1] : (tensor<8xf32>) -> tensor<1xf32>\n%i = stablehlo.reshape %z : (tensor<1xf32>) -> '
        f'tensor<f32>\n%q = "stablehlo.reduce"(%a, %i) <{{dimensions = array<i64: 1>}}> ({{\n^bb0(%x: tensor<f32>, %y: '
        f'tensor<f32>):\n"stablehlo.return"(%i) : (tensor<f32>) -> ()\n}}) : ({T}, tensor<f32>) -> tensor<4xf32>\n'
        f"%r = stablehlo.negate %a : {T}",
        Unsupported, '"stablehlo.reduce"', "uses %i from outside",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_of_a_kind_and_have_a_place(name: str) -> None:
    body, kind, at, message = REFUSED[name]
    text = program(body)
    with pytest.raises(kind, match=message) as found:
        parse_stablehlo(text, "f.mlir")
    place = found.value.place
    assert text.splitlines()[place.line - 1][place.column - 1 :].startswith(at)


def test_a_text_that_ends_early_names_what_is_open() -> None:
    with pytest.raises(ParseError, match="this region is not closed"):
        parse_stablehlo(program(f"%r = stablehlo.negate %a : {T}").rpartition("return")[0])
    with pytest.raises(ParseError, match="no function in this text"):
        parse_stablehlo("module @m {}")


def test_the_other_kind_of_text_is_recognized() -> None:
    hlo, mlir = "HloModule m\n\nENTRY e { ROOT p = f32[] parameter(0) }", "module @m {\n}"
    with pytest.raises(ParseError, match="this is HLO text"):
        parse_stablehlo(hlo)
    with pytest.raises(ParseError, match="this is MLIR"):
        parse_hlo(mlir)
    assert [is_stablehlo(text) for text in (mlir, "// c\n#loc = loc(unknown)\n", hlo, "f { p = f32[] parameter(0) }", "")] == [
        True, True, False, False, False,
    ]  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """One token of `text` removed, doubled, exchanged with another, or the text cut there."""
    parts = re.findall(r"\s+|[%@#^]?[\w.]+|.", text, re.DOTALL)
    i, j = chance.randrange(len(parts)), chance.randrange(len(parts))
    match chance.randrange(4):
        case 0:
            parts[i] = ""
        case 1:
            parts.insert(i, parts[j])
        case 2:
            parts[i], parts[j] = parts[j], parts[i]
        case _:
            del parts[i:]
    return "".join(parts)


def test_a_damaged_text_gives_an_error_with_a_place_or_a_module() -> None:
    chance = random.Random(0)
    texts = [
        (CORPUS / f"{name}.mlir").read_text() for name in ("outer", "branches", "complex", "convolution_static", "loop")
    ]
    places = list[Place | None]()
    for _ in range(150):
        try:
            parse_stablehlo(mutated(chance.choice(texts), chance))
        except XlaEmittersError as error:
            places.append(error.place)
    assert len(places) > 75
    assert None not in places


def test_chains_of_calls_and_deep_regions_need_no_deep_stack() -> None:
    calls = [
        f"func.func @f{i}(%a: {T}) -> {T} {{ %0 = call @f{i + 1}(%a) : ({T}) -> {T}\nreturn %0 : {T} }}"
        for i in range(1500)
    ]
    calls.append(f"func.func @f1500(%a: {T}) -> {T} {{ return %a : {T} }}")
    assert len(list(parse_stablehlo("\n".join(calls)).ops)) == 1501
    inner = f'"stablehlo.return"(%a) : ({T}) -> ()'
    for i in range(40):
        branches = f'({{ {inner} }}, {{ "stablehlo.return"(%a) : ({T}) -> () }})'
        inner = f'%i{i} = "stablehlo.if"(%p) {branches} : (tensor<i1>) -> {T}\n"stablehlo.return"(%i{i}) : ({T}) -> ()'
    body = inner.rpartition('"stablehlo.return"')[0]
    assert (
        print_stablehlo(parse_stablehlo(program(f"{body}%r = stablehlo.negate %i39 : {T}"))).count("stablehlo.if") == 40
    )
