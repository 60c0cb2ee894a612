"""Lines that were read before give the same ops when they are read again:
those of xDSL's parser, in any order of texts, errors included.
"""

from pathlib import Path
from typing import Any

import pytest
from unit.dialects.mlir_opt import SEPARATOR
from unit.dialects.test_reference_states import STATES, different_states
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir_parser import IRParser
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError

CORPUS = sorted((Path(__file__).parents[2] / "corpus" / "mlir").glob("*.mlir"))
SUM = "func.func @f(%a: f32, %b: f32) -> f32 {\n  %c = arith.subf %a, %b : f32\n  func.return %c : f32\n}\n"


class Afresh(IRParser):
    """Parses every line, type and dictionary, also those that it has read before."""

    def _repeated(self, line: Any) -> None:
        return None

    def _once(self, expression: Any, kept: Any, parse: Any) -> Any:
        return parse()


def test_states_of_xlas_logs_are_the_same_when_read_with_one_context():
    """Modules with the same ops under other names, from before XLA's first pass to the LLVM dialect."""
    context = make_context()
    for text in [state for fusion in STATES for state in different_states(fusion)[::8]]:
        assert print_ir(parse_ir(text, context=context, verify=False)) == print_ir(
            Afresh(make_context(), text).parse_module()
        )


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_dialects_ops_are_the_same_when_read_again(path: Path):
    context = make_context()
    for text in path.read_text().split(SEPARATOR) * 2:
        assert print_ir(parse_ir(text, context=context, verify=False)) == print_ir(
            Afresh(make_context(), text).parse_module()
        )


def read_after(before: str, text: str) -> ModuleOp:
    context = make_context()
    parse_ir(before, context=context)
    return parse_ir(text, context=context)


def test_a_line_is_parsed_once(monkeypatch: pytest.MonkeyPatch):
    """Otherwise the tests here compare the parser with itself."""
    context = make_context()
    parse_ir(SUM, context=context)
    monkeypatch.setattr(arith.SubfOp, "parse", None)
    again = parse_ir(SUM.replace("%a", "%x").replace("%c", "%2"), context=context)
    assert [op.name for op in again.walk()] == ["builtin.module", "func.func", "arith.subf", "func.return"]


def test_large_constants_are_not_kept():
    """A module may have megabytes of them."""
    context = make_context()
    for count in (10, 1000):
        numbers, kind = ", ".join(map(str, range(count))), f"tensor<{count}xi32>"
        parse_ir(f"%c = arith.constant dense<[{numbers}]> : {kind}\n%d = math.absi %c : {kind}\n", context=context)
    assert [line.rpartition(" ")[2] for line in context.read.lines] == ["tensor<10xi32>"]


def test_operands_are_in_their_order():
    function = next(iter(read_after(SUM, SUM.replace("subf %a, %b", "subf %b, %a")).body.ops))
    first, second = function.regions[0].block.args
    assert list(next(iter(function.regions[0].block.ops)).operands) == [second, first]


def test_a_value_used_twice_says_nothing_of_the_order():
    """The store's operands have another order in the text than in the op: `value, pointer`."""
    twice = (
        "func.func @f(%p: !llvm.ptr, %q: !llvm.ptr) {\n  llvm.store %p, %p : !llvm.ptr, !llvm.ptr\n  func.return\n}\n"
    )
    text = twice.replace("store %p, %p", "store %q, %p")
    assert print_ir(read_after(twice, text)) == print_ir(parse_ir(text, context=make_context()))


DOUBLE = SUM.replace("f32", "f64")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SUM.replace("%b: f32", "%b: f64"), "operand is used with type f32"),
        (SUM.replace("subf %a, %b", "subf %a, %d"), "%d"),
        (SUM.replace("%c =", "%a ="), "already defined"),
        (SUM.replace("%c = arith", "%c, %d = arith"), "1 results"),
        (SUM.replace(": f32\n  func.return", ": f3\n  func.return"), "expected"),
    ],
)
def test_errors_are_those_of_the_parser(text: str, message: str):
    """With the place, after the same line was read without error."""
    with pytest.raises(ParseError) as alone:
        parse_ir(text, context=make_context())
    with pytest.raises(ParseError) as after:
        read_after(SUM + DOUBLE.replace("@f", "@g"), text)
    assert str(after.value) == str(alone.value)
    assert message in str(alone.value)


@pytest.mark.parametrize(
    ("kind", "use"),
    [
        ("!t = {}", "func.func private @f(!t)"),
        ("#a = {} : i32", "func.func @f() {{\n  %0 = arith.constant #a\n  func.return\n}}"),
        ("#a = {} : i32", "func.func private @f(f32 {{test.a = #a}})"),
        ("!t$1 = {}", "func.func @f() {{\n  %0 = arith.constant 1.0 : !t$1\n  func.return\n}}"),
        ("#a$b = {} : i32", "func.func @f() {{\n  %0 = arith.constant #a$b\n  func.return\n}}"),
        ("#$a = {} : i32", "func.func private @f(f32 {{test.a = #$a}})"),
    ],
)
def test_names_of_types_and_attributes_are_those_of_the_text(kind: str, use: str):
    """`#a` and `!t` may be another attribute in the next text."""
    first, second = ("f32", "f64") if kind.startswith("!") else ("1", "2")
    texts = [f"{kind.format(each)}\n{use.format()}\n" for each in (first, second)]
    alone = [print_ir(parse_ir(text, context=make_context())) for text in texts]
    assert alone[0] != alone[1]
    context = make_context()
    assert [print_ir(parse_ir(text, context=context)) for text in texts] == alone


def test_operands_may_be_on_the_next_line():
    """After the same op without operands was a whole line."""
    text = "func.func @f(%a: f32) -> f32 {\n  func.return\n    %a : f32\n}\n"
    after = read_after("func.func @f() {\n  func.return\n}\n", text)
    assert print_ir(after) == print_ir(parse_ir(text, context=make_context()))


def test_an_op_named_without_its_dialect_is_one_inside_of_that_dialects_ops_only():
    before = "llvm.func @f() {\n  %0 = mlir.constant(1 : i32) : i32\n  llvm.return\n}\n"
    assert [op.name for op in parse_ir(before).walk()][2] == "llvm.mlir.constant"
    with pytest.raises(ParseError, match=r"no op 'mlir\.constant'"):
        read_after(before, "func.func @f() {\n  %0 = mlir.constant(1 : i32) : i32\n  func.return\n}\n")
