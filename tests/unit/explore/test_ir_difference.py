"""Verdicts on pairs of modules whose relation is known."""

from __future__ import annotations

from xla_emitters.dialects.context import parse_ir
from xla_emitters.explore.ir_difference import Difference, KernelIr, difference

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
    assert between(OURS, OURS.replace("%sum", "%0").replace("%c", "%cst")).verdict == "same"


def test_attributes_names_and_places_of_constants_are_spelling() -> None:
    moved = OURS.replace("  %c = arith.constant 2.0 : f32\n", "").replace(
        "  %twice", "  %c = arith.constant 2.0 : f32\n  %twice"
    )
    for theirs in (moved, OURS.replace("@fusion", "@main"), OURS.replace("%x: f32", "%x: f32 {xla.invariant}")):
        assert between(OURS, theirs).verdict == "renamed"


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
    assert between(text, other.replace("(%i, %j)\n", "(%j, %i)\n")).verdict == "renamed"
    assert between(text, other).verdict == "differs"
    assert between(text, text.replace("* 4", "* 8")).verdict == "differs"


def test_an_order_is_told_from_a_difference() -> None:
    line = "  %product = arith.mulf %x, %y : f32\n"
    assert between(OURS, OURS.replace(line, "").replace("  %sum", f"{line}  %sum")).verdict == "reordered"


def test_another_constant_or_operand_is_a_difference() -> None:
    for theirs in (OURS.replace("2.0", "3.0"), OURS.replace("%twice, %product", "%product, %twice")):
        found = between(OURS, theirs)
        assert (found.verdict, found.ops, found.decisions) == ("differs", {}, ())


def test_ops_that_one_side_has_more_of_are_counted() -> None:
    found = between(
        OURS,
        OURS.replace("%all : f32\n}", "%n : f32\n}").replace("  func.ret", "  %n = arith.negf %all : f32\n  func.ret"),
    )
    assert (found.verdict, found.ops) == ("differs", {"arith.negf": (0, 1)})


def test_a_wait_that_only_xla_has_is_explained() -> None:
    found = between(OURS, OURS.replace("  %c =", "  nvvm.griddepcontrol wait\n  %c ="))
    assert found.verdict == "folded"
    assert found.decisions == (("01-what-the-ir-carries.md", "griddepcontrol.wait"),)


def test_what_both_have_is_not_cited() -> None:
    wait = OURS.replace("  %c =", "  nvvm.griddepcontrol wait\n  %c =")
    assert between(wait, wait.replace("2.0", "3.0")).decisions == ()


def test_a_check_that_ranges_decide_is_explained() -> None:
    ours = """
func.func @fusion(%i: index {xla.range = [0 : index, 7 : index]}) -> index {
  func.return %i : index
}
"""
    checked = ours.replace(
        "  func.return %i",
        "  %c7 = arith.constant 7 : index\n  %ok = arith.cmpi sle, %i, %c7 : index\n"
        "  %r = scf.if %ok -> (index) {\n    scf.yield %i : index\n  } else {\n    scf.yield %c7 : index\n  }\n  func.return %r",
    )
    found = between(ours, checked)
    assert found.verdict == "folded"
    assert [file[:2] for file, _ in found.decisions] == ["02"]
    assert between(ours, checked.replace("arith.constant 7", "arith.constant 6")).verdict == "differs"


def test_an_array_or_its_element_is_one_address() -> None:
    ours = """
llvm.func @fusion(%p: !llvm.ptr, %i: i32) -> !llvm.ptr {
  %0 = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  llvm.return %0 : !llvm.ptr
}
"""
    theirs = ours.replace("[%i]", "[0, %i]").replace("ptr, f32", "ptr, !llvm.array<64 x f32>")
    assert between(ours, theirs).verdict == "folded"
    assert between(ours, theirs.replace("[0,", "[1,")).verdict == "differs"


def test_a_vector_is_built_at_once_or_step_by_step() -> None:
    ours = """
func.func @fusion(%a: f32, %b: f32, %v: vector<2xf32>) -> vector<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = vector.insert %a, %v[%c0] : f32 into vector<2xf32>
  %1 = vector.insert %b, %0[%c1] : f32 into vector<2xf32>
  func.return %1 : vector<2xf32>
}
"""
    head, _, _ = ours.partition("  %c0")
    theirs = f"{head}  %1 = vector.from_elements %a, %b : vector<2xf32>\n  func.return %1 : vector<2xf32>\n}}\n"
    assert between(ours, theirs).verdict == "folded"
    assert between(ours, theirs.replace("%a, %b :", "%b, %a :")).verdict == "differs"
    assert between(ours.replace("%0[%c1]", "%0[%c0]"), theirs).verdict == "differs"
