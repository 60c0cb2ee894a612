"""Verdicts on pairs of modules whose relation is known."""

from __future__ import annotations

import pytest

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
    assert between(OURS, OURS.replace(line, "").replace("  %sum", f"{line}  %sum")).verdict == "same but for"


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
    assert found.verdict == "same but for"
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
    assert found.verdict == "same but for"
    assert "02" in [file[:2] for file, _ in found.decisions]
    assert between(ours, checked.replace("arith.constant 7", "arith.constant 6")).verdict == "differs"


def test_an_array_or_its_element_is_one_address() -> None:
    ours = """
llvm.func @fusion(%p: !llvm.ptr, %i: i32) -> !llvm.ptr {
  %0 = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  llvm.return %0 : !llvm.ptr
}
"""
    theirs = ours.replace("[%i]", "[0, %i]").replace("ptr, f32", "ptr, !llvm.array<64 x f32>")
    assert between(ours, theirs).verdict == "same but for"
    assert between(ours, theirs.replace("[0,", "[1,")).verdict == "differs"


@pytest.mark.parametrize(("number", "is_constant"), [("arith.constant 2 : index", True), ("gpu.thread_id x", False)])
def test_a_position_in_an_address_is_a_value(number: str, is_constant: bool) -> None:
    ours = f"""
func.func @fusion(%p: !llvm.ptr) -> !llvm.ptr {{
  %i = {number}
  %n = arith.index_castui %i : index to i32
  %0 = llvm.getelementptr inbounds %p[%n] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  func.return %0 : !llvm.ptr
}}
"""
    theirs = ours.replace("%p[%n] : (!llvm.ptr, i32)", "%p[2] : (!llvm.ptr)")
    assert (between(ours, theirs).verdict == "same but for") == is_constant
    assert between(ours, theirs.replace("%p[2]", "%p[3]")).verdict == "differs"


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
    assert between(ours, theirs).verdict == "renamed"
    assert between(ours, theirs.replace("cast %p", "cast %q")).verdict == "differs"
    shared = theirs.replace("%p: !llvm.ptr,", "%p: !llvm.ptr<3>,").replace("%p : !llvm.ptr ", "%p : !llvm.ptr<3> ")
    assert str(KernelIr(parse_ir(shared)).spelled).count("cast") == 3


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
    assert between(ours, theirs).verdict == "same but for"
    assert between(ours, theirs.replace("%a, %b :", "%b, %a :")).verdict == "differs"
    assert between(ours.replace("%0[%c1]", "%0[%c0]"), theirs).verdict == "differs"


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
    assert between(CALLS, CALLS.replace("@first", "@f").replace("@second", "@g")).verdict == "renamed"
    swapped = (
        CALLS.replace("_call @first", "_call @tmp").replace("_call @second", "_call @first").replace("@tmp", "@second")
    )
    assert between(CALLS, swapped).verdict == "differs"


def test_what_is_a_function_is_known() -> None:
    inlined = """
func.func @entry(%x: f32, %y: f32) -> f32 {
  %0 = arith.subf %x, %y : f32
  %1 = arith.divf %0, %y : f32
  func.return %1 : f32
}
"""
    found = between(inlined, CALLS)
    assert found.verdict == "same but for"
    assert ("20-what-is-the-same-but-for.md", "what is a function") in found.decisions
    assert between(inlined.replace("%0, %y", "%y, %0"), CALLS).verdict == "differs"


def test_a_function_that_nothing_calls_is_known() -> None:
    added = f"{OURS}func.func private @dead(%x: f32) -> f32 {{\n  func.return %x : f32\n}}\n"
    found = between(OURS, added)
    assert (found.verdict, found.decisions) == (
        "same but for",
        (("20-what-is-the-same-but-for.md", "functions that nothing calls"),),
    )
    assert between(OURS, added.replace("private ", "")).verdict == "differs"


LOOP = """
func.func @entry(%t: index {xla.range = [0 : index, 7 : index]}, %x: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {
  %r = xla_gpu.loop (%t)[%i] -> (%a) in #xla_gpu.indexing_map<"(t)[i] -> (t * 8 + i), domain: t in [0, 7], i in [0, 7]">
      iter_args(%o = %out) -> (tensor<64xf32>) {
    %v = tensor.extract %x[%a] : tensor<64xf32>
    %w = tensor.insert %v into %o[%a] : tensor<64xf32>
    xla_gpu.yield %w : tensor<64xf32>
  }
  func.return %r : tensor<64xf32>
}
"""


def test_an_index_is_computed_by_the_loop_or_in_its_body() -> None:
    body = (
        LOOP.replace("-> (%a) in", "-> () in")
        .replace("(t * 8 + i)", "()")
        .replace(
            "    %v =",
            '    %a = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(t, i) -> (t * 8 + i), domain: t in [0, 7], i in [0, 7]">(%t, %i)'
            "\n    %v =",
        )
    )
    found = between(LOOP, body)
    assert found.verdict == "same but for"
    assert ("20-what-is-the-same-but-for.md", "indices computed in the loop's map") in found.decisions
    assert between(LOOP, body.replace("(t * 8 + i)", "(t + i * 8)")).verdict == "differs"
    assert between(LOOP, body.replace("i in [0, 7]", "i in [0, 6]")).verdict == "differs"


def test_a_value_that_a_loop_hands_on_is_the_value_before_it() -> None:
    carried = (
        LOOP.replace("%r = xla", "%r, %s = xla")
        .replace("(%o = %out) -> (tensor<64xf32>)", "(%o = %out, %p = %x) -> (tensor<64xf32>, tensor<64xf32>)")
        .replace("%v = tensor.extract %x", "%v = tensor.extract %p")
        .replace("yield %w : tensor<64xf32>", "yield %w, %p : tensor<64xf32>, tensor<64xf32>")
    )
    found = between(LOOP, carried)
    assert found.verdict == "same but for"
    assert ("20-what-is-the-same-but-for.md", "what loops carry unchanged") in found.decisions
    assert between(LOOP, carried.replace("yield %w, %p", "yield %w, %w")).verdict == "differs"


TWO_LOOPS = """
func.func @entry(%t: index {xla.range = [0 : index, 7 : index]}, %x: tensor<64xf32>, %p: tensor<64xf32>, %q: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>) {
  %r = xla_gpu.loop (%t)[%i] -> (%a) in #xla_gpu.indexing_map<"(t)[i] -> (t * 8 + i), domain: t in [0, 7], i in [0, 7]">
      iter_args(%o = %p) -> (tensor<64xf32>) {
    %v = tensor.extract %x[%a] : tensor<64xf32>
    %w = tensor.insert %v into %o[%a] : tensor<64xf32>
    xla_gpu.yield %w : tensor<64xf32>
  }
  %s = xla_gpu.loop (%t)[%j] -> (%b) in #xla_gpu.indexing_map<"(t)[j] -> (t + j * 8), domain: t in [0, 7], j in [0, 7]">
      iter_args(%o = %q) -> (tensor<64xf32>) {
    %v = tensor.extract %x[%b] : tensor<64xf32>
    %n = arith.negf %v : f32
    %w = tensor.insert %n into %o[%b] : tensor<64xf32>
    xla_gpu.yield %w : tensor<64xf32>
  }
  func.return %r, %s : tensor<64xf32>, tensor<64xf32>
}
"""
ONE_LOOP = """
func.func @entry(%t: index {xla.range = [0 : index, 7 : index]}, %x: tensor<64xf32>, %p: tensor<64xf32>, %q: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>) {
  %r, %s = xla_gpu.loop (%t)[%i] -> (%a, %b)
      in #xla_gpu.indexing_map<"(t)[i] -> (t * 8 + i, t + i * 8), domain: t in [0, 7], i in [0, 7]">
      iter_args(%o = %p, %u = %q) -> (tensor<64xf32>, tensor<64xf32>) {
    %v = tensor.extract %x[%a] : tensor<64xf32>
    %w = tensor.insert %v into %o[%a] : tensor<64xf32>
    %y = tensor.extract %x[%b] : tensor<64xf32>
    %n = arith.negf %y : f32
    %z = tensor.insert %n into %u[%b] : tensor<64xf32>
    xla_gpu.yield %w, %z : tensor<64xf32>, tensor<64xf32>
  }
  func.return %r, %s : tensor<64xf32>, tensor<64xf32>
}
"""


def test_loops_beside_each_other_are_one() -> None:
    """Not if the second uses a result of the first, has another domain, or runs for another index."""
    found = between(ONE_LOOP, TWO_LOOPS)
    assert found.verdict == "same but for"
    assert ("20-what-is-the-same-but-for.md", "loops beside each other") in found.decisions
    assert between(ONE_LOOP.replace("%w, %z :", "%z, %w :"), TWO_LOOPS).verdict == "differs"
    assert between(ONE_LOOP.replace("(%o = %p, %u = %q)", "(%o = %q, %u = %p)"), TWO_LOOPS).verdict == "differs"
    for right, wrong in (
        ("iter_args(%o = %q)", "iter_args(%o = %r)"),
        ("t in [0, 7], j in [0, 7]", "t in [0, 7], j in [0, 6]"),
    ):
        other = KernelIr(parse_ir(TWO_LOOPS.replace(right, wrong))).inlined.module
        assert sum(op.name == "xla_gpu.loop" for op in other.walk()) == 2


GUARD = """
func.func @entry(%x: f32, %out: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c31 = arith.constant 31 : index
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %in = arith.cmpi sle, %t, %c31 : index
  %is = arith.cmpi eq, %t, %c0 : index
  %r = scf.if %in -> (tensor<4xf32>) {
    %n = arith.negf %x : f32
    %i = xla_gpu.predicated_insert %n into %out[%c0] if %is : tensor<4xf32>
    scf.yield %i : tensor<4xf32>
  } else {
    scf.yield %out : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
"""


def test_a_guard_of_whole_warps_is_known() -> None:
    """A guard of half a warp, or of threads that do not include the one that writes, is a difference."""
    ours = """
func.func @entry(%x: f32, %out: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %is = arith.cmpi eq, %t, %c0 : index
  %n = arith.negf %x : f32
  %i = xla_gpu.predicated_insert %n into %out[%c0] if %is : tensor<4xf32>
  func.return %i : tensor<4xf32>
}
"""
    found = between(ours, GUARD)
    assert found.verdict == "same but for"
    assert ("20-what-is-the-same-but-for.md", "which warps run the last stage") in found.decisions
    assert between(ours, GUARD.replace("arith.constant 31", "arith.constant 15")).verdict == "differs"
    late = "%c40 = arith.constant 40 : index\n  %is = arith.cmpi eq, %t, %c40"
    assert (
        between(
            ours.replace("%is = arith.cmpi eq, %t, %c0", late), GUARD.replace("%is = arith.cmpi eq, %t, %c0", late)
        ).verdict
        == "differs"
    )


def test_a_bound_that_a_remainder_implies_is_known() -> None:
    text = """
func.func @entry(%x: f32, %out: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %last = arith.constant 32 : index
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %lane = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(t) -> (t mod 32), domain: t in [0, 63]">(%t)
  %first = arith.cmpi eq, %lane, %c0 : index
  %in = arith.cmpi sle, %t, %last : index
  %both = arith.andi %first, %in : i1
  %i = xla_gpu.predicated_insert %x into %out[%c0] if %both : tensor<4xf32>
  func.return %i : tensor<4xf32>
}
"""
    ours = "\n".join(line for line in text.splitlines() if "%last" not in line and "%both =" not in line)
    ours = ours.replace("if %both", "if %first")
    found = between(ours, text)
    assert found.verdict == "same but for"
    assert ("20-what-is-the-same-but-for.md", "bounds that remainders imply") in found.decisions
    assert between(ours, text.replace("constant 32", "constant 31")).verdict == "differs"


def test_writes_in_another_order_are_a_difference() -> None:
    """Loads may change places; a store may not, nor may a load across one."""
    text = """
llvm.func @entry(%p: !llvm.ptr, %q: !llvm.ptr, %x: f32) {
  %a = llvm.load %p : !llvm.ptr -> f32
  %b = llvm.load %q : !llvm.ptr -> f32
  %s = llvm.fadd %a, %b : f32
  llvm.store %s, %p : f32, !llvm.ptr
  llvm.store %x, %q : f32, !llvm.ptr
  llvm.return
}
"""
    lines = text.splitlines()

    def moved(line: int, to: int) -> str:
        rest = [each for n, each in enumerate(lines) if n != line]
        return "\n".join([*rest[:to], lines[line], *rest[to:]])

    assert between(text, moved(2, 3)).verdict == "same but for"
    assert between(text, moved(5, 6)).verdict == "differs"
    assert between(text, moved(6, 2)).verdict == "differs"


def test_branches_are_told_apart() -> None:
    text = """
func.func @entry(%c: i1, %x: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    %n = arith.negf %x : f32
    scf.yield %n : f32
  } else {
    scf.yield %x : f32
  }
  %s = scf.if %c -> (f32) {
    scf.yield %x : f32
  } else {
    %m = arith.addf %x, %x : f32
    scf.yield %m : f32
  }
  %d = arith.divf %r, %s : f32
  func.return %d : f32
}
"""
    assert between(text, text.replace("divf %r, %s", "divf %s, %r")).verdict == "differs"
    blocks = """
func.func @entry(%c: i1, %x: f32, %y: f32) -> f32 {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  func.return %x : f32
^bb2:
  func.return %y : f32
}
"""
    assert between(blocks, blocks.replace("^bb1, ^bb2", "^bb2, ^bb1")).verdict == "differs"


def test_the_lengths_of_indices_and_sums_of_indices_are_known() -> None:
    text = """
func.func @entry(%i: index {xla.range = [0 : index, 7 : index]}, %x: tensor<16xi32>) -> tensor<16xi32> {
  %c2 = arith.constant 2 : index
  %j = arith.addi %i, %c2 : index
  %w = arith.index_castui %i : index to i64
  %n = arith.trunci %w : i64 to i32
  %r = tensor.insert %n into %x[%j] : tensor<16xi32>
  func.return %r : tensor<16xi32>
}
"""
    narrow = text.replace("  %w = arith.index_castui %i : index to i64\n", "").replace(
        "arith.trunci %w : i64 to i32", "arith.index_castui %i : index to i32"
    )
    mapped = text.replace(
        "arith.addi %i, %c2 : index",
        'xla_gpu.apply_indexing #xla_gpu.indexing_map<"(i) -> (i + 2), domain: i in [0, 7]">(%i)',
    )
    for other in (narrow, mapped):
        assert between(text, other).verdict == "same but for"
    assert (
        between(
            text,
            narrow.replace("to i32", "to i8")
            .replace("xi32", "xi8")
            .replace("%n = arith.index_castui %i : index to i8", "%n = arith.index_castui %j : index to i8"),
        ).verdict
        == "differs"
    )
    assert between(text, mapped.replace("i + 2", "i + 3")).verdict == "differs"


def test_a_broadcast_of_a_constant_is_a_constant() -> None:
    text = """
func.func @entry(%v: vector<2xf32>) -> vector<2xf32> {
  %c = arith.constant 2.0 : f32
  %b = vector.broadcast %c : f32 to vector<2xf32>
  %s = arith.addf %v, %b : vector<2xf32>
  func.return %s : vector<2xf32>
}
"""
    head, _, tail = text.partition("  %c =")
    dense = f"{head}  %b = arith.constant dense<2.0> : vector<2xf32>\n{tail.partition('to vector<2xf32>')[2].lstrip()}".replace(
        "%s =", "  %s ="
    )
    assert between(text, dense).verdict == "same but for"
    assert between(text, dense.replace("dense<2.0>", "dense<[2.0, 3.0]>")).verdict == "differs"
