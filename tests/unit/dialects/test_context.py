"""Reading IR: every dialect is known, and every failure has a place."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from xla_emitters.dialects.context import (
    DIALECTS,
    REPLACED_DIALECTS,
    context_of_thread,
    make_context,
    parse_ir,
)
from xla_emitters.dialects.mlir import llvm
from xla_emitters.errors import ParseError, VerifyError


@pytest.mark.parametrize("name", "arith cf dlti func gpu hlo llvm math nvvm scf tensor ub vector xla xla_gpu".split())
def test_dialects_load(name: str):
    dialect = make_context().get_dialect(name)
    assert dialect.name == name


def test_ours_stand_in_the_place_of_xdsls():
    assert make_context().get_op("llvm.load") is llvm.LoadOp
    assert set(REPLACED_DIALECTS) <= set(DIALECTS)


def test_ops_without_a_module_get_one():
    assert len(parse_ir("func.func private @f()\nfunc.func private @g()").body.ops) == 2


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("func.func @f() {\n  %0 = arith.nope %1\n}", "k.mlir:2:8", "there is no op 'arith.nope'"),
        ("func.func @f() {\n  return\n", "k.mlir:3:1", "the text ends in block definition"),
        ("func.func @f() {\n  return ?\n}", "k.mlir:2:10", "unexpected text in block definition"),
        ("func.func @f(%x: i32) {\n  %0 = arith.addi %x, %x : i3q\n return }", "k.mlir:2:28", ""),
        ("", "k.mlir:1:1", "there is no op in the text"),
        ("\x00\x7f\x01", "k.mlir:1:1", ""),
        ('func.func @f() { %0 = arith.constant "', "k.mlir:1:38", ""),
        ("func.func @f() { %0 = arith.constant 1" + "0" * 5000 + " : i32 return }", "k.mlir:1", ""),
        (
            "func.func @f() {\n  %0 = arith.constant dense<[1, 2]> : vector<3xi32>\n return }",
            "k.mlir:",
            "Shape mismatch",
        ),
        (
            'func.func @f(%a: index) {\n  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d9)">(%a)\n return }',
            "k.mlir:2",
            "",
        ),
        ("func.func @f() {\n  %0 = arith.addi %1, %1 : i32\n  return\n}", "k.mlir:2:19", "%1 is used but not defined"),
    ],
)
def test_what_is_no_ir_is_a_located_parse_error(text: str, place: str, message: str):
    with pytest.raises(ParseError) as caught:
        parse_ir(text, "k.mlir")
    assert str(caught.value.place).startswith(place)
    assert message in caught.value.message
    assert caught.value.message.strip()


def test_the_excerpt_points_at_the_op():
    with pytest.raises(ParseError) as caught:
        parse_ir("func.func @f() {\n  %0 = arith.nope %1\n}", "k.mlir")
    assert caught.value.render().splitlines() == [
        "k.mlir:2:8: error: [ir.parse] there is no op 'arith.nope'",
        "      %0 = arith.nope %1",
        "           ^~~~~~~~~~",
    ]


@pytest.mark.parametrize(
    ("op", "help"),
    [
        ('"mhlo.add"() : () -> ()', "ops of 'hlo' with a name"),
        ("stablehlo.abs %x : f32", "compile FILE --stage hlo"),
        ('"lmhlo_disc.h2d"() : () -> ()', "lmhlo.NAME %x, %y -> %z"),
        ('"disc_shape.SymbolicDim"() : () -> ()', "disc.sizes"),
        ("arith.adf %x", "did you mean 'arith.addf'?"),
        ("arit.addf %x", "did you mean 'arith'?"),
        ("func @f()", "did you mean 'func.func'?"),
        ('"tt.func"() : () -> ()', "--allow-unregistered-dialect"),
        ('"arith.nope"() : () -> ()', ""),
    ],
)
def test_an_op_of_another_project_or_a_slip_has_a_way_out(op: str, help: str):
    with pytest.raises(ParseError, match="there is no op '") as caught:
        parse_ir(op)
    assert help in caught.value.help if help else not caught.value.help


def test_a_value_without_a_definition_is_shown_where_it_is_used():
    """Also where another function, and a longer name, have that text."""
    text = "func.func @f(%c: i1) { return }\nfunc.func @g(%c1: i1) {\n  %0 = arith.andi %c1, %c : i1\n  return\n}"
    with pytest.raises(ParseError, match="%c is used but not defined") as caught:
        parse_ir(text)
    assert str(caught.value.place) == "<ir>:3:24"


@pytest.mark.parametrize("depth", [200, 20000])
def test_deep_nesting_is_a_message(depth: int):
    text = "func.func @f(%c: i1) {" + "scf.if %c {\n" * depth + "}" * depth + "return }"
    with pytest.raises((ParseError, VerifyError), match="nested too deeply"):
        parse_ir(text)
    with pytest.raises(ParseError, match="nested too deeply"):
        parse_ir("func.func @f() attributes {a = " + "[" * depth + "]" * depth + "} { return }")


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(ParseError, match=r"k\.mlir is not text: byte 1 is 0xff"):
        parse_ir(b"a\xff", "k.mlir")


def test_a_rule_that_is_broken_is_a_located_verify_error():
    text = "func.func @f() -> i32 {\n  %c = arith.constant 1 : i64\n  return %c : i64\n}"
    with pytest.raises(VerifyError) as caught:
        parse_ir(text, "k.mlir")
    assert str(caught.value.place) == "k.mlir:3:3"
    assert caught.value.message.startswith("func.return: Expected arguments to have the same types")
    parse_ir(text, verify=False)


def test_unknown_ops_are_read_when_asked_for():
    text = 'func.func @f() { "mine.op"() : () -> () return }'
    with pytest.raises(ParseError, match=r"there is no op 'mine\.op'"):
        parse_ir(text)
    parse_ir(text, allow_unregistered=True)


def test_a_thread_has_one_context_and_another_thread_another():
    own = context_of_thread()
    assert context_of_thread() is own
    with ThreadPoolExecutor(1) as other:
        assert other.submit(context_of_thread).result() is not own
    assert own.get_op("llvm.add") is llvm.AddOp
