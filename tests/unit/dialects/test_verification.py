"""Values are defined where they are used; the message says where they are not."""

import pytest
from xdsl.dialects.builtin import (
    FileLineColLoc,
    FunctionType,
    IndexType,
    IntAttr,
    MemRefType,
    NameLoc,
    StringAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import arith, func, scf
from xla_emitters.dialects.verification import verify_ir
from xla_emitters.errors import Unsupported, VerifyError

WRONG = {
    "before its definition": """func.func @f(%x: i32) -> i32 {
        %1 = arith.addi %2, %x : i32
        %2 = arith.addi %x, %x : i32
        return %1 : i32 }""",
    "in its own region": """func.func @f(%n: index) {
        %l = scf.for %i = %n to %n step %n iter_args(%a = %n) -> (index) {
          scf.yield %l : index
        }
        return }""",
    "outside its region": """func.func @f(%c: i1, %x: i32) -> i32 {
        %3 = arith.addi %2, %2 : i32
        scf.if %c {
          %2 = arith.addi %x, %x : i32
          scf.yield
        }
        return %3 : i32 }""",
    "in a block that its own does not dominate": """func.func @f(%c: i1, %x: i32) -> i32 {
        cf.cond_br %c, ^bb1, ^bb2
      ^bb1:
        %1 = arith.addi %x, %x : i32
        cf.br ^bb3
      ^bb2:
        cf.br ^bb3
      ^bb3:
        return %1 : i32 }""",
}
RIGHT = {
    "in a block that its own dominates": """func.func @f(%c: i1, %x: i32) -> i32 {
        %1 = arith.addi %x, %x : i32
        cf.cond_br %c, ^bb1, ^bb2
      ^bb1:
        cf.br ^bb2
      ^bb2:
        %2 = arith.addi %1, %x : i32
        cf.br ^bb3
      ^bb3:
        return %2 : i32 }""",
    "in a block that stands before": """func.func @f(%x: i32) -> i32 {
        cf.br ^bb2
      ^bb1:
        return %1 : i32
      ^bb2:
        %1 = arith.addi %x, %x : i32
        cf.br ^bb1 }""",
    "in a block that nothing reaches": """func.func @f(%x: i32) -> i32 {
        return %x : i32
      ^bb1:
        %2 = arith.addi %1, %x : i32
        %1 = arith.addi %x, %x : i32
        return %2 : i32 }""",
    "around a loop": """func.func @f(%c: i1, %x: i32) -> i32 {
        cf.br ^bb1(%x : i32)
      ^bb1(%y: i32):
        %1 = arith.addi %y, %x : i32
        cf.cond_br %c, ^bb1(%1 : i32), ^bb2
      ^bb2:
        return %1 : i32 }""",
}


@pytest.mark.parametrize("case", WRONG)
def test_a_value_is_not_used_where_it_is_not_defined(case: str):
    with pytest.raises(VerifyError, match="is used where it is not defined") as caught:
        parse_ir(WRONG[case], "k.mlir")
    assert caught.value.place is not None


@pytest.mark.parametrize("case", RIGHT)
def test_a_value_may_be_used(case: str):
    parse_ir(RIGHT[case])


@pytest.mark.parametrize("part", ["type", "property"])
def test_an_op_that_was_correct_is_looked_at_again_when_it_changes(part: str):
    module = parse_ir("""func.func @f(%x: i32) -> i32 {
        %1 = arith.addi %x, %x : i32
        %2 = arith.addi %1, %x : i32
        return %2 : i32 }""")
    verify_ir(module)
    _, op = (op for op in module.walk() if op.name == "arith.addi")
    if part == "type":
        Rewriter.replace_value_with_new_type(op.results[0], i64)
    else:
        op.properties["overflowFlags"] = StringAttr("none of them")
    with pytest.raises(VerifyError, match=r"arith\.addi"):
        verify_ir(module)


def test_an_op_that_was_correct_is_looked_at_again_when_what_it_reads_changes():
    module = parse_ir("""func.func @f(%i: index) -> f32 {
        %m = memref.alloc() : memref<3xf32>
        %x = memref.load %m[%i] : memref<3xf32>
        return %x : f32 }""")
    verify_ir(module)
    (alloc,) = (op for op in module.walk() if op.name == "memref.alloc")
    Rewriter.replace_value_with_new_type(alloc.results[0], MemRefType(f32, [3, 3]))
    with pytest.raises(VerifyError, match=r"memref\.load"):
        verify_ir(module)


LOOPED = """func.func @f(%n: index, %c: i1, %x: i32) -> i32 {
    %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (i32) {
      %s = scf.if %c -> (i32) {
        scf.yield %a : i32
      } else {
        scf.yield %x : i32
      }
      scf.yield %s : i32
    }
    return %r : i32 }"""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("argument of the loop", "scf.for"),
        ("value of a branch", "scf.if"),
        ("argument of the function", "func.func"),
        ("result of the function", "func.return"),
        ("op behind the terminator", "scf.yield"),
        ("terminator elsewhere", "scf.yield"),
    ],
)
def test_an_op_that_was_correct_is_looked_at_again_when_its_blocks_change(change: str, named: str):
    module = parse_ir(LOOPED)
    verify_ir(module)
    verify_ir(module)
    by_name = {op.name: op for op in module.walk()}
    function, loop, branch = (by_name[name] for name in ("func.func", "scf.for", "scf.if"))
    then = branch.regions[0].block
    match change:
        case "argument of the loop":
            Rewriter.replace_value_with_new_type(loop.regions[0].block.args[1], i64)
        case "value of a branch":
            assert then.last_op is not None
            then.last_op.operands[0] = function.regions[0].block.args[1]
        case "argument of the function":
            Rewriter.replace_value_with_new_type(function.regions[0].block.args[1], i64)
        case "result of the function":
            function.properties["function_type"] = FunctionType.from_lists([IndexType(), i1, i32], [i64])
        case "op behind the terminator":
            then.add_op(arith.ConstantOp.from_int_and_width(1, 32))
        case _:
            module.body.block.add_op(scf.YieldOp())
    with pytest.raises(VerifyError, match=named):
        verify_ir(module)


def test_a_function_sees_nothing_around_it():
    text = """
      func.func @g(%x: i32) {
        "test.op"() ({
          func.func @f() -> i32 {
            return %x : i32
          }
          "test.termop"() : () -> ()
        }) : () -> ()
        return
      }"""
    with pytest.raises(
        VerifyError, match=r"func\.func: Operation using value defined out of its IsolatedFromAbove parent"
    ):
        parse_ir(text)


def test_a_block_ends_in_a_terminator():
    with pytest.raises(VerifyError, match=r"func\.func: its block is empty, but must end in a terminator"):
        parse_ir('"func.func"() <{function_type = () -> (), sym_name = "f"}> ({ ^bb0: }) : () -> ()')


def test_the_place_is_the_locations_when_there_is_no_text():
    function = func.FuncOp("f", ((), (i1,)))
    wrong = func.ReturnOp()
    wrong.location = NameLoc(StringAttr("add_0"), FileLineColLoc(StringAttr("gelu.hlo"), IntAttr(19), IntAttr(3)))
    function.body.block.add_op(wrong)
    with pytest.raises(VerifyError) as caught:
        verify_ir(function)
    assert str(caught.value.place) == "gelu.hlo:19:3"


BEHIND = {
    "a parameter without its number": (
        'hlo.computation @f entry {\n  %x = "hlo.parameter"() <{name = "x"}> : () -> tensor<4xf32>\n  hlo.return %x : tensor<4xf32>\n}',
        "hlo.parameter: property 'number' expected",
    ),
    "a function without its type": (
        'func.func @f() {\n  func.call @g() : () -> ()\n  return\n}\n"func.func"() <{sym_name = "g"}> ({}) : () -> ()',
        "func.func: property 'function_type' expected",
    ),
    "a parameter that is no array": (
        'hlo.computation @f entry {\n  %x = hlo.parameter 0 {name = "x"} : index\n  hlo.return %x : index\n}',
        "hlo.parameter: result 'result'",
    ),
}


@pytest.mark.parametrize("what", BEHIND)
def test_the_op_at_fault_is_named_not_one_that_stumbles_over_it(what: str):
    text, message = BEHIND[what]
    with pytest.raises(VerifyError, match=message) as caught:
        parse_ir(text, "f.mlir")
    assert caught.value.place.text.strip().startswith(("%x = ", '"func.func"'))


def test_of_two_functions_with_one_name_the_second_is_shown():
    with pytest.raises(VerifyError, match='Redefinition of symbol "f"') as caught:
        parse_ir("func.func private @f()\nfunc.func private @g()\nfunc.func private @f()\n")
    assert str(caught.value.place) == "<ir>:3:1"


def test_a_type_that_no_array_has_is_refused_at_its_op():
    text = """
    hlo.computation @f entry {
        %x = hlo.parameter 0 {name = "x"} : tensor<index>
        %y = hlo.negate %x {name = "y"} : tensor<index>
        hlo.return %y : tensor<index>
    }"""
    with pytest.raises(Unsupported, match="no storage for element type 'index'") as caught:
        parse_ir(text)
    assert str(caught.value.place) == "<ir>:4:14"
