"""Verdicts on pairs of modules whose relation is known."""

from xla_emitters.dialects.context import parse_ir
from xla_emitters.explore.compare.ir_difference import Difference, KernelIr, difference

OURS = """
func.func @fusion(%x: f32, %y: f32) -> f32 {
  %c = arith.constant 2.0 : f32
  %sum = arith.addf %x, %y : f32
  %product = arith.mulf %x, %y : f32
  %twice = arith.mulf %sum, %c : f32
  %all = arith.subf %twice, %product : f32
  func.return %all : f32
}
"""


def between(ours: str, theirs: str) -> Difference:
    return difference(KernelIr(parse_ir(ours)), KernelIr(parse_ir(theirs)))


def test_names_of_values_do_not_count() -> None:
    assert between(OURS, OURS.replace("%sum", "%0").replace("%c", "%cst")).verdict == "equal"


def test_attributes_names_and_places_of_constants_are_spelling() -> None:
    moved = OURS.replace("  %c = arith.constant 2.0 : f32\n", "").replace(
        "  %twice", "  %c = arith.constant 2.0 : f32\n  %twice"
    )
    for theirs in (moved, OURS.replace("@fusion", "@main"), OURS.replace("%x: f32", "%x: f32 {xla.invariant}")):
        assert between(OURS, theirs).verdict == "equal"


def test_names_of_variables_and_the_order_of_operands_of_a_map_are_spelling() -> None:
    text = """
func.func @fusion(%i: index, %j: index) -> index {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(a, b) -> (a * 4 + b), domain: a in [0, 7], b in [0, 3]">(%i, %j)
  func.return %0 : index
}
"""
    other = text.replace("(a, b) -> (a * 4 + b)", "(b, a) -> (a * 4 + b)").replace(
        "a in [0, 7], b in [0, 3]", "b in [0, 3], a in [0, 7]"
    )
    assert between(text, other.replace("(%i, %j)\n", "(%j, %i)\n")).verdict == "equal"
    assert between(text, other).verdict == "differs"
    assert between(text, text.replace("* 4", "* 8")).verdict == "differs"


def test_another_constant_or_operand_is_a_difference() -> None:
    for theirs in (OURS.replace("2.0", "3.0"), OURS.replace("%twice, %product", "%product, %twice")):
        found = between(OURS, theirs)
        assert (found.verdict, found.ops) == ("differs", {})


def test_ops_that_one_side_has_more_of_are_counted() -> None:
    found = between(
        OURS,
        OURS.replace("%all : f32\n}", "%n : f32\n}").replace("  func.ret", "  %n = arith.negf %all : f32\n  func.ret"),
    )
    assert (found.verdict, found.ops) == ("differs", {"arith.negf": (0, 1)})


def test_a_cast_there_and_back_is_spelling() -> None:
    """XLA keeps such casts until its last pass. Those that end at another type stay."""
    ours = """
func.func @fusion(%p: !llvm.ptr, %q: !llvm.ptr) -> !llvm.ptr {
  func.return %p : !llvm.ptr
}
"""
    theirs = """
func.func @fusion(%p: !llvm.ptr, %q: !llvm.ptr) -> !llvm.ptr {
  %0 = builtin.unrealized_conversion_cast %p : !llvm.ptr to tensor<8xi4>
  %1 = builtin.unrealized_conversion_cast %0 : tensor<8xi4> to tensor<8xi8>
  %2 = builtin.unrealized_conversion_cast %1 : tensor<8xi8> to !llvm.ptr
  func.return %2 : !llvm.ptr
}
"""
    assert between(ours, theirs).verdict == "equal"
    assert between(ours, theirs.replace("cast %p", "cast %q")).verdict == "differs"
    shared = theirs.replace("%p: !llvm.ptr,", "%p: !llvm.ptr<3>,").replace("%p : !llvm.ptr ", "%p : !llvm.ptr<3> ")
    assert str(KernelIr(parse_ir(shared)).spelled).count("cast") == 3


CALLS = """
func.func @entry(%x: f32, %y: f32) -> f32 {
  %0 = xla_gpu.pure_call @first(%x, %y) : (f32, f32) -> f32
  %1 = xla_gpu.pure_call @second(%0, %y) : (f32, f32) -> f32
  func.return %1 : f32
}
func.func private @first(%a: f32, %b: f32) -> f32 {
  %0 = arith.subf %a, %b : f32
  func.return %0 : f32
}
func.func private @second(%a: f32, %b: f32) -> f32 {
  %0 = arith.divf %a, %b : f32
  func.return %0 : f32
}
"""


def test_functions_are_told_apart_by_what_they_do() -> None:
    """Other names are spelling; the same functions called at each other's place are not."""
    assert between(CALLS, CALLS.replace("@first", "@f").replace("@second", "@g")).verdict == "equal"
    swapped = (
        CALLS.replace("_call @first", "_call @tmp").replace("_call @second", "_call @first").replace("@tmp", "@second")
    )
    assert between(CALLS, swapped).verdict == "differs"
