"""Each rewrite makes a pair equal that means the same, and leaves one unequal that does not."""

from __future__ import annotations

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.explore.ir_difference import REWRITES, Difference, KernelIr, difference


def between(ours: str, theirs: str) -> Difference:
    return difference(KernelIr(parse_ir(ours)), KernelIr(parse_ir(theirs)))


def cites(ours: str, theirs: str, what: str) -> bool:
    """Whether the two are the same but for differences of which one is called so."""
    found = between(ours, theirs)
    return found.verdict == "same but for" and what in [words for _, words in found.decisions]


def rewritten(text: str, name: str) -> str:
    """The module after one rewrite alone."""
    (rewrite,) = (each for each in REWRITES if each.apply.__name__ == name)
    module = parse_ir(text)
    rewrite.apply(module)
    return str(module)


MAP = '#xla_gpu.indexing_map<"{}">'


def applied(text: str, operands: str) -> str:
    return f"xla_gpu.apply_indexing {MAP.format(text)}({operands})"


# ---- maps --------------------------------------------------------------------------------------------------------------------------------

OF_MAP = f"""
func.func @entry(%i: index {{xla.range = [0 : index, 7 : index]}}, %j: index {{xla.range = [0 : index, 3 : index]}}) -> (index, index) {{
  %0 = {applied("(i, j) -> (i * 4 + j), domain: i in [0, 7], j in [0, 3]", "%i, %j")}
  %1 = {applied("(x) -> (x floordiv 3), domain: x in [0, 31]", "%0")}
  func.return %0, %1 : index, index
}}
"""


def test_a_map_of_a_map_that_has_other_users() -> None:
    """Folding makes one map of two only where nothing else reads the inner one."""
    composed = OF_MAP.replace(
        applied("(x) -> (x floordiv 3), domain: x in [0, 31]", "%0"),
        applied("(i, j) -> ((i * 4 + j) floordiv 3), domain: i in [0, 7], j in [0, 3]", "%i, %j"),
    )
    assert cites(composed, OF_MAP, "maps of results of maps")
    assert between(composed, OF_MAP.replace("floordiv 3", "floordiv 5")).verdict == "differs"
    assert between(composed, OF_MAP.replace('"(i, j) -> (i * 4 + j)', '"(i, j) -> (j * 4 + i)')).verdict == "differs"


def test_a_sum_of_two_indices_is_a_map() -> None:
    """Where nothing is known of one of them, the map's domain says more than the sum."""
    arguments = "%i: index {xla.range = [0 : index, 7 : index]}, %j: index {xla.range = [0 : index, 3 : index]}"
    added = (
        f"func.func @entry({arguments}) -> index {{\n  %0 = arith.addi %i, %j : index\n  func.return %0 : index\n}}\n"
    )
    mapped = added.replace(
        "arith.addi %i, %j : index", applied("(i, j) -> (i + j), domain: i in [0, 7], j in [0, 3]", "%i, %j")
    )
    assert cites(mapped, added, "starts that maps add")
    assert between(mapped.replace("i + j)", "i + j * 2)"), added).verdict == "differs"
    unknown = " {xla.range = [0 : index, 3 : index]}", ""
    assert between(mapped.replace(*unknown), added.replace(*unknown)).verdict == "differs"


@pytest.mark.parametrize(
    ("found", "is_known"),
    [("ule, %s, %c3", True), ("ult, %s, %c3", False), ("sle, %s, %c3", False), ("ule, %c3, %s", False)],
)
def test_a_sum_whose_range_a_branch_knows(found: str, is_known: bool) -> None:
    """Only inside the branch, and only what its condition says."""
    added = f"""
func.func @entry(%i: index {{xla.range = [0 : index, 7 : index]}}, %s: index, %c: i1, %p: memref<16xf32>, %x: f32) {{
  %c3 = arith.constant 3 : index
  %d = arith.cmpi {found} : index
  %b = arith.andi %c, %d : i1
  scf.if %b {{
    %0 = arith.addi %i, %s : index
    memref.store %x, %p[%0] : memref<16xf32>
  }}
  func.return
}}
"""
    mapped = added.replace(
        "arith.addi %i, %s : index", applied("(i, s) -> (i + s), domain: i in [0, 7], s in [0, 3]", "%i, %s")
    )
    assert cites(mapped, added, "starts that maps add") == is_known
    assert (between(mapped, added).verdict == "differs") != is_known
    assert between(mapped.replace("i + s)", "i + s * 2)"), added).verdict == "differs"
    other_branch = "scf.if %b {\n  } else {"
    assert (
        between(mapped.replace("scf.if %b {", other_branch), added.replace("scf.if %b {", other_branch)).verdict
        == "differs"
    )


def test_a_sum_with_the_least_of_two() -> None:
    added = """
func.func @entry(%i: index {xla.range = [0 : index, 7 : index]}, %s: index) -> index {
  %c3 = arith.constant 3 : index
  %m = arith.minui %s, %c3 : index
  %0 = arith.addi %i, %m : index
  func.return %0 : index
}
"""
    mapped = added.replace(
        "arith.addi %i, %m : index", applied("(i, m) -> (i + m), domain: i in [0, 7], m in [0, 3]", "%i, %m")
    )
    assert cites(mapped, added, "starts that maps add")
    assert between(mapped.replace("minui", "minsi"), added.replace("minui", "minsi")).verdict == "differs"


def test_a_start_is_clamped_before_it_is_an_index() -> None:
    """Where an index has 64 bits; one of 32 bits would be that of another start."""
    ours = """
builtin.module attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>} {
  func.func @entry(%i: i64) -> index {
    %c0 = arith.constant 0 : i64
    %c5 = arith.constant 5 : i64
    %m = arith.minsi %i, %c5 : i64
    %n = arith.maxsi %m, %c0 : i64
    %s = arith.index_cast %n : i64 to index
    func.return %s : index
  }
}
"""
    theirs = """
builtin.module attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>} {
  func.func @entry(%i: i64) -> index {
    %c0 = arith.constant 0 : index
    %c5 = arith.constant 5 : index
    %s = arith.index_cast %i : i64 to index
    %m = arith.minsi %s, %c5 : index
    %n = arith.maxsi %m, %c0 : index
    func.return %n : index
  }
}
"""
    assert cites(ours, theirs, "starts that are clamped as they are given")
    assert between(ours, theirs.replace("constant 5", "constant 6")).verdict == "differs"
    assert between(ours, theirs.replace("arith.maxsi", "arith.maxui")).verdict == "differs"
    assert between(ours.replace("64 : i32", "32 : i32"), theirs.replace("64 : i32", "32 : i32")).verdict == "differs"


def one_map(text: str) -> str:
    return f"""
func.func @entry(%i: index {{xla.range = [0 : index, 31 : index]}}) -> index {{
  %0 = {applied(text, "%i")}
  func.return %0 : index
}}
"""


def test_a_domain_that_is_narrower_than_what_is_known() -> None:
    """Where less is known of the operand than the domain says, the domain stays."""
    wide, narrow = one_map("(i) -> (i * 2), domain: i in [0, 31]"), one_map("(i) -> (i * 2), domain: i in [0, 15]")
    assert cites(wide, narrow, "domains narrower than what is known")
    assert between(wide, one_map("(i) -> (i * 3), domain: i in [0, 15]")).verdict == "differs"
    unknown = wide.replace("{xla.range = [0 : index, 31 : index]}", "")
    assert between(unknown, unknown.replace("i in [0, 31]", "i in [0, 15]")).verdict == "differs"


def loop(text: str, counters: str = "%i") -> str:
    return f"""
func.func @entry(%t: index {{xla.range = [0 : index, 7 : index]}}, %x: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {{
  %r = xla_gpu.loop (%t)[{counters}] -> (%a) in {MAP.format(text)}
      iter_args(%o = %out) -> (tensor<64xf32>) {{
    %v = tensor.extract %x[%a] : tensor<64xf32>
    %w = tensor.insert %v into %o[%a] : tensor<64xf32>
    xla_gpu.yield %w : tensor<64xf32>
  }}
  func.return %r : tensor<64xf32>
}}
"""


def test_a_loops_map_in_its_simplest_form() -> None:
    simple = loop("(t)[i] -> (t * 8 + i), domain: t in [0, 7], i in [0, 7]")
    longer = loop("(t)[i] -> ((t * 8 + i) mod 64), domain: t in [0, 7], i in [0, 7]")
    assert cites(simple, longer, "maps simplified on their domain")
    assert between(simple, longer.replace("mod 64", "mod 32")).verdict == "differs"
    assert (
        between(simple, loop("(t)[i] -> (t * 8 + i), domain: t in [0, 7], i in [0, 7], t + i in [0, 9]")).verdict
        == "differs"
    )


@pytest.mark.parametrize(("modulus", "is_decided"), [(27, True), (26, False)])
def test_a_remainder_that_a_constraint_decides(modulus: int, is_decided: bool) -> None:
    """x = t + i * 8 is at most 59, so (x * 4 + j) floordiv 9 is at most 26; by the bounds alone it could be 28."""
    text = "(t)[i, j] -> ({}), domain: t in [0, 7], i in [0, 7], j in [0, 3], t + i * 8 in [0, 59]"
    short = loop(text.format("(t * 4 + i * 32 + j) floordiv 9"), "%i, %j")
    longer = loop(text.format(f"((t * 4 + i * 32 + j) floordiv 9) mod {modulus}"), "%i, %j")
    assert cites(short, longer, "remainders that bounds decide") == is_decided
    assert (between(short, longer).verdict == "differs") != is_decided
    # The constraint is of t + i * 8, and not of t + i * 7.
    other = longer.replace("t + i * 8 in", "t + i * 7 in")
    assert between(short.replace("t + i * 8 in", "t + i * 7 in"), other).verdict == "differs"


def test_an_index_of_one_value_is_a_constant() -> None:
    text = """
func.func @entry(%i: index {xla.range = [3 : index, 3 : index]}, %x: tensor<8xf32>) -> f32 {
  %c3 = arith.constant 3 : index
  %v = tensor.extract %x[%i] : tensor<8xf32>
  func.return %v : f32
}
"""
    constant = text.replace("%x[%i]", "%x[%c3]")
    assert cites(constant, text, "indices that have one value")
    assert between(constant, text.replace("[3 : index, 3 : index]", "[4 : index, 4 : index]")).verdict == "differs"
    assert between(constant, text.replace("[3 : index, 3 : index]", "[2 : index, 3 : index]")).verdict == "differs"


# ---- addresses and alignments ------------------------------------------------------------------------------------------------------------


def test_the_first_element_is_at_the_base() -> None:
    text = """
llvm.func @fusion(%p: !llvm.ptr) -> f32 {
  %0 = llvm.getelementptr inbounds %p[0] : (!llvm.ptr) -> !llvm.ptr, f32
  %1 = llvm.load %0 : !llvm.ptr -> f32
  llvm.return %1 : f32
}
"""
    base = text.replace("  %0 = llvm.getelementptr inbounds %p[0] : (!llvm.ptr) -> !llvm.ptr, f32\n", "").replace(
        "%0 :", "%p :"
    )
    assert cites(base, text, "base for base[0]")
    assert between(base, text.replace("%p[0]", "%p[1]")).verdict == "differs"


ACCESS = """
llvm.func @fusion(%p: !llvm.ptr, %q: !llvm.ptr) {
  %0 = llvm.load %p : !llvm.ptr -> vector<4xf32>
  llvm.store %0, %q : vector<4xf32>, !llvm.ptr
  llvm.return
}
"""


@pytest.mark.parametrize("access", [" : !llvm.ptr -> vector<4xf32>", " : vector<4xf32>, !llvm.ptr"])
def test_the_alignment_of_an_element_is_xlas_way(access: str) -> None:
    """Another alignment that is stated is a difference, to one that states none and to one that states that of an element."""

    def stating(value: int) -> str:
        return ACCESS.replace(access, f" {{alignment = {value} : i64}}{access}")

    assert cites(ACCESS, stating(4), "the alignment of an access")
    for value in (1, 2, 8, 16):
        assert between(ACCESS, stating(value)).verdict == "differs"
        assert between(stating(value), stating(4)).verdict == "differs"


def test_the_alignment_of_shared_memory_and_constants() -> None:
    """16 bytes here; XLA states none. Any other value is a difference, and so is one of a variable in another memory."""

    def variable(alignment: str, space: int = 3, constant: str = "") -> str:
        return f"llvm.mlir.global private {constant} @tile() {{addr_space = {space} : i32{alignment}}} : !llvm.array<32 x f32>\n{ACCESS}"

    what = "the alignment of shared memory and constants, for wider accesses"
    assert cites(variable(", alignment = 16 : i64"), variable(""), what)
    assert cites(variable(", alignment = 16 : i64", 0, "constant"), variable("", 0, "constant"), what)
    assert between(variable(", alignment = 8 : i64"), variable("")).verdict == "differs"
    assert between(variable(", alignment = 8 : i64"), variable(", alignment = 16 : i64")).verdict == "differs"
    assert between(variable(", alignment = 16 : i64", 1), variable("", 1)).verdict == "differs"


# ---- atomic updates, pairs, constants ----------------------------------------------------------------------------------------------------

UPDATE = """
llvm.func @fusion(%p: !llvm.ptr, %q: !llvm.ptr, %x: i32) {
  %0 = llvm.load %p atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> i32
  %1 = arith.cmpi ne, %0, %x : i32
  scf.if %1 {
    %2 = llvm.atomicrmw max %p, %x monotonic : !llvm.ptr, i32
  }
  llvm.return
}
"""


def test_a_load_of_what_an_atomic_op_updates() -> None:
    """A plain load of that address is known; one of another address is not, nor is a stronger order."""
    load = "llvm.load %p atomic monotonic"
    assert cites(UPDATE, UPDATE.replace(load, "llvm.load %p"), "loads beside atomic updates")
    elsewhere = UPDATE.replace(load, "llvm.load %q atomic monotonic")
    assert between(elsewhere, UPDATE.replace(load, "llvm.load %q")).verdict == "differs"
    assert between(UPDATE, UPDATE.replace(load, "llvm.load %p atomic acquire")).verdict == "differs"


@pytest.mark.parametrize(("op", "value"), [("divsi", -128), ("remsi", 0)])
def test_a_quotient_that_cannot_overflow(op: str, value: int) -> None:
    """-128 divided by -1 is divided by 1 instead, which gives -128 without a select."""
    theirs = f"""
func.func @entry(%x: i8, %y: i8) -> i8 {{
  %c0 = arith.constant 0 : i8
  %c1 = arith.constant 1 : i8
  %c-1 = arith.constant -1 : i8
  %c-128 = arith.constant -128 : i8
  %c = arith.constant {value} : i8
  %zero = arith.cmpi eq, %y, %c0 : i8
  %least = arith.cmpi eq, %x, %c-128 : i8
  %minus = arith.cmpi eq, %y, %c-1 : i8
  %over = arith.andi %least, %minus : i1
  %bad = arith.ori %zero, %over : i1
  %safe = arith.select %bad, %c1, %y : i8
  %q = arith.{op} %x, %safe : i8
  %r = arith.select %over, %c, %q : i8
  func.return %r : i8
}}
""".replace("%c-", "%minus_")
    ours = theirs.replace("  %r = arith.select %over, %c, %q : i8\n", "").replace("return %r", "return %q")
    assert cites(ours, theirs, "quotients that cannot overflow")
    for right, wrong in (
        (f"constant {value} : i8\n  %zero", "constant 7 : i8\n  %zero"),
        ("eq, %x, %minus_128", "ne, %x, %minus_128"),
        ("eq, %x, %minus_128", "eq, %y, %minus_128"),
        ("ori %zero, %over", "ori %zero, %minus"),
        ("constant 1 :", "constant 2 :"),
        ("constant -128 : i8\n  %c =", "constant -127 : i8\n  %c ="),
        ("select %over", "select %zero"),
    ):
        assert right in theirs
        other = theirs.replace(right, wrong)
        assert other.count("select") == rewritten(other, "_quotients_that_cannot_overflow").count("select"), wrong


def test_an_id_has_no_sign() -> None:
    ours = """
llvm.func @fusion(%p: !llvm.ptr) -> i64 {
  %0 = nvvm.read.ptx.sreg.tid.x : i32
  %1 = llvm.load %p : !llvm.ptr -> i32
  %2 = llvm.zext %0 : i32 to i64
  llvm.return %2 : i64
}
"""
    theirs = ours.replace("zext", "sext")
    assert cites(ours, theirs, "ids without a sign")
    assert between(ours.replace("ext %0", "ext %1"), theirs.replace("ext %0", "ext %1")).verdict == "differs"


PART = """
func.func @fusion(%p: !llvm.ptr, %i: i32, %others: i8, %bits: i8) {
  %byte = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %and = llvm.atomicrmw _and %byte, %others monotonic : !llvm.ptr, i8
  %or = llvm.atomicrmw _or %byte, %bits monotonic : !llvm.ptr, i8
  func.return
}
"""
SWAPPED = """
func.func @fusion(%p: !llvm.ptr, %i: i32, %others: i8, %bits: i8) {
  %3 = llvm.mlir.constant(3 : i64) : i64
  %-1 = llvm.mlir.constant(-1 : i64) : i64
  %8 = llvm.mlir.constant(8 : i32) : i32
  %all = llvm.mlir.constant(-1 : i32) : i32
  %255 = llvm.mlir.constant(255 : i32) : i32
  %true = llvm.mlir.constant(true) : i1
  %byte = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %number = llvm.ptrtoint %byte : !llvm.ptr to i64
  %place = llvm.and %number, %3 : i64
  %back = llvm.mul %place, %-1 : i64
  %word = llvm.getelementptr inbounds %byte[%back] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %narrow = llvm.trunc %place : i64 to i32
  %shift = llvm.mul %narrow, %8 : i32
  %mask = llvm.shl %255, %shift : i32
  %kept = llvm.xor %all, %mask : i32
  %first = llvm.load %word : !llvm.ptr -> i32
  %last = scf.while (%old = %first) : (i32) -> i32 {
    %low = llvm.lshr %old, %shift : i32
    %part = llvm.trunc %low : i32 to i8
    %rest = arith.andi %part, %others : i8
    %changed = arith.ori %rest, %bits : i8
    %wide = llvm.zext %changed : i8 to i32
    %cleared = llvm.and %old, %kept : i32
    %high = llvm.shl %wide, %shift : i32
    %new = llvm.or %cleared, %high : i32
    %pair = llvm.cmpxchg %word, %old, %new monotonic monotonic : !llvm.ptr, i32
    %now = llvm.extractvalue %pair[0] : !llvm.struct<(i32, i1)>
    %done = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
    %again = llvm.xor %done, %true : i1
    scf.condition(%again) %now : i32
  } do {
  ^bb0(%next: i32):
    scf.yield %next : i32
  }
  func.return
}
""".replace("%-1", "%minus")


def test_bits_of_a_byte_are_replaced_by_a_loop() -> None:
    assert cites(PART, SWAPPED, "parts of bytes are written by `and` and `or`")
    assert between(PART.replace("_or %byte, %bits", "_or %byte, %others"), SWAPPED).verdict == "differs"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("-1 : i64", "-2 : i64"),  # Another word.
        ("constant(3 : i64)", "constant(7 : i64)"),
        ("ptr, i8\n  %narrow", "ptr, i16\n  %narrow"),
        ("constant(255", "constant(127"),  # Another part of it.
        ("constant(8 ", "constant(4 "),
        ("llvm.load %word", "llvm.load %byte"),
        ("%part, %others", "%part, %part"),  # Another formula.
        ("arith.ori %rest", "arith.xori %rest"),
        ("%bits : i8\n    %wide", "%part : i8\n    %wide"),
        ("llvm.or %cleared", "llvm.or %old"),
        ("cmpxchg %word, %old", "cmpxchg %word, %first"),
        ("cmpxchg %word", "cmpxchg %byte"),
        ("constant(true)", "constant(false)"),  # Until it fails.
        ("(%again) %now", "(%again) %new"),
        ("yield %next", "yield %first"),
        ("    %pair", "    llvm.store %new, %p : i32, !llvm.ptr\n    %pair"),  # Another effect, or use.
        ("^bb0(%next: i32):\n", "^bb0(%next: i32):\n    llvm.store %next, %p : i32, !llvm.ptr\n"),
        ("  func.return", "  llvm.store %last, %p : i32, !llvm.ptr\n  func.return"),
    ],
)
def test_a_loop_that_does_something_else_is_left(right: str, wrong: str) -> None:
    assert SWAPPED.count(right) == 1
    assert "scf.while" in rewritten(SWAPPED.replace(right, wrong), "writes_of_parts_as_atomic_ops")


NESTED = """
func.func @entry(%c: i1, %x: i32, %p: !llvm.ptr) {
  scf.if %c {
  } else {
    %d = arith.cmpi ne, %x, %x : i32
    scf.if %d {
      llvm.store %x, %p : i32, !llvm.ptr
    }
  }
  func.return
}
"""


def test_a_branch_in_an_else_is_one_branch() -> None:
    """The other order of the branches is a difference; an op with an effect before the inner branch keeps it where it is."""
    nested = NESTED.replace("%x, %x : i32\n", "%x, %y : i32\n").replace("%x: i32,", "%x: i32, %y: i32,")
    flat = """
func.func @entry(%c: i1, %x: i32, %y: i32, %p: !llvm.ptr) {
  %true = arith.constant true
  %n = arith.xori %c, %true : i1
  %d = arith.cmpi ne, %x, %y : i32
  %b = arith.andi %n, %d : i1
  scf.if %b {
    llvm.store %x, %p : i32, !llvm.ptr
  }
  func.return
}
"""
    assert cites(flat, nested, "a branch in an else")
    assert between(flat.replace("andi %n, %d", "andi %c, %d"), nested).verdict == "differs"
    assert between(flat.replace("andi %n, %d", "ori %n, %d"), nested).verdict == "differs"
    store = "    llvm.store %y, %p : i32, !llvm.ptr\n"
    before = nested.replace("    %d =", f"{store}    %d =")
    assert "else" in rewritten(before, "_branches_in_an_else")
    divided = nested.replace("    %d =", "    %q = arith.divsi %x, %y : i32\n    %d =").replace(
        "ne, %x, %y", "ne, %q, %y"
    )
    assert "else" in rewritten(divided, "_branches_in_an_else")
    assert "else" not in rewritten(nested, "_branches_in_an_else")
    filled = nested.replace("scf.if %c {\n", f"scf.if %c {{\n{store}")
    assert "else" in rewritten(filled, "_branches_in_an_else")


def test_a_pair_is_its_parts() -> None:
    text = """
func.func @entry(%v: vector<2xf32>) -> vector<2xf32> {
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %z = complex.create %a, %b : complex<f32>
  %r = complex.re %z : complex<f32>
  %i = complex.im %z : complex<f32>
  %w = vector.from_elements %r, %i : vector<2xf32>
  func.return %w : vector<2xf32>
}
"""
    whole = "func.func @entry(%v: vector<2xf32>) -> vector<2xf32> {\n  func.return %v : vector<2xf32>\n}\n"
    assert cites(whole, text, "complex numbers are vectors")
    for other in (("%r, %i", "%i, %r"), ("%r, %i", "%r, %r"), ("create %a, %b", "create %b, %a")):
        assert between(whole, text.replace(*other)).verdict == "differs"
    longer = text.replace("@entry(%v: vector<2xf32>)", "@entry(%v: vector<4xf32>)").replace(
        "from vector<2", "from vector<4"
    )
    assert between(whole.replace("%v: vector<2", "%v: vector<2"), longer).verdict == "differs"
    assert "from_elements" in rewritten(longer, "_parts_of_pairs")


@pytest.mark.parametrize(
    ("op", "left", "right", "value"), [("sub", 32, 1, 31), ("lshr", -1, 4, 2**28 - 1), ("lshr", 64, 3, 8)]
)
def test_arithmetic_of_llvm_constants(op: str, left: int, right: int, value: int) -> None:
    text = f"""
llvm.func @fusion(%x: i32) -> i32 {{
  %0 = llvm.mlir.constant({left} : i32) : i32
  %1 = llvm.mlir.constant({right} : i32) : i32
  %2 = llvm.{op} %0, %1 : i32
  %3 = llvm.mul %x, %2 : i32
  llvm.return %3 : i32
}}
"""

    def folded(number: int) -> str:
        head, _, _ = text.partition("  %0")
        return f"{head}  %2 = llvm.mlir.constant({number} : i32) : i32\n{text[text.index('  %3') :]}"

    assert cites(folded(value), text, "what is folded later")
    assert between(folded(value + 1), text).verdict == "differs"
    assert between(folded(value), text.replace("%0, %1 :", "%1, %0 :")).verdict == "differs"


def test_elements_of_a_vector_in_llvm() -> None:
    """Insertions at all positions in order, between other ops, are the same as insertions behind them; into what does not count."""
    text = """
llvm.func @fusion(%a: f32, %b: f32, %v: vector<2xf32>) -> vector<2xf32> {
  %0 = llvm.mlir.constant(0 : i32) : i32
  %1 = llvm.mlir.constant(1 : i32) : i32
  %p = llvm.mlir.poison : vector<2xf32>
  %2 = llvm.insertelement %a, %v[%0 : i32] : vector<2xf32>
  %3 = llvm.insertelement %b, %2[%1 : i32] : vector<2xf32>
  llvm.return %3 : vector<2xf32>
}
"""
    poison = text.replace("%a, %v[", "%a, %p[")
    assert between(poison, text).verdict == "same but for"
    assert between(poison, text.replace("%b, %2[%1", "%b, %2[%0")).verdict == "differs"
    assert between(poison, text.replace("%a, %v", "%b, %v")).verdict == "differs"


def test_an_element_before_an_insertion_elsewhere() -> None:
    text = """
func.func @entry(%a: f32, %v: vector<2xf32>) -> (f32, vector<2xf32>) {
  %w = vector.insert %a, %v[0] : f32 into vector<2xf32>
  %0 = vector.extract %w[1] : f32 from vector<2xf32>
  func.return %0, %w : f32, vector<2xf32>
}
"""
    before = text.replace("extract %w", "extract %v")
    assert cites(before, text, "vectors are built by insertions")
    assert between(before, text.replace("%v[0]", "%v[1]")).verdict == "differs"
    assert between(before.replace("%v[1]", "%v[0]"), text.replace("%w[1]", "%w[0]")).verdict == "differs"


def test_an_element_of_a_constant_vector() -> None:
    text = """
func.func @entry(%x: f32) -> f32 {
  %w = arith.constant dense<2.0> : vector<2xf32>
  %c = vector.extract %w[1] : f32 from vector<2xf32>
  %0 = arith.addf %x, %c : f32
  func.return %0 : f32
}
"""
    head, _, tail = text.partition("  %w")
    constant = f"{head}  %c = arith.constant 2.0 : f32\n{tail[tail.index('  %0') :]}"
    assert cites(constant, text, "vectors are built by insertions")
    assert between(constant, text.replace("dense<2.0>", "dense<3.0>")).verdict == "differs"
    assert between(constant, text.replace("dense<2.0>", "dense<[2.0, 3.0]>")).verdict == "differs"


def test_elements_of_a_vector_of_two_dimensions() -> None:
    text = """
func.func @entry(%a: f32, %b: f32, %v: vector<2x1xf32>) -> vector<2x1xf32> {
  %0 = vector.insert %b, %v[1, 0] : f32 into vector<2x1xf32>
  %1 = vector.insert %a, %0[0, 0] : f32 into vector<2x1xf32>
  func.return %1 : vector<2x1xf32>
}
"""
    head, _, _ = text.partition("  %0")
    at_once = f"{head}  %1 = vector.from_elements %a, %b : vector<2x1xf32>\n  func.return %1 : vector<2x1xf32>\n}}\n"
    assert cites(at_once, text, "vectors are built by insertions")
    assert between(at_once, text.replace("%0[0, 0]", "%0[1, 0]")).verdict == "differs"
    assert between(at_once.replace("%a, %b :", "%b, %a :"), text).verdict == "differs"


def test_elements_of_a_vector_that_was_built_of_them() -> None:
    """MLIR's `canonicalize` reads them at once; here positions stay values, which it does not look through."""
    text = """
func.func @entry(%a: f32, %b: f32) -> (f32, f32) {
  %v = vector.from_elements %a, %b : vector<2xf32>
  %0 = vector.extract %v[1] : f32 from vector<2xf32>
  %1 = vector.extract %v[0] : f32 from vector<2xf32>
  func.return %0, %1 : f32, f32
}
"""
    direct = "func.func @entry(%a: f32, %b: f32) -> (f32, f32) {\n  func.return %b, %a : f32, f32\n}\n"
    assert cites(direct, text, "vectors are built by insertions")
    assert between(direct, text.replace("%v[1]", "%v[0]")).verdict == "differs"
    rows = text.replace("vector<2xf32>", "vector<2x1xf32>").replace(": f32 from", ": vector<1xf32> from")
    rows = rows.replace("-> (f32, f32)", "-> (vector<1xf32>, vector<1xf32>)").replace(
        "%1 : f32, f32", "%1 : vector<1xf32>, vector<1xf32>"
    )
    assert "vector.extract" in rewritten(rows, "_elements_of_built_vectors")


def test_names_of_shared_memory() -> None:
    """XLA names two tiles in the other order; which of them is written first is what counts."""

    def tiles(first: str, second: str, *, small: str = "shared_1") -> str:
        sizes = {"shared_0": 32, "shared_1": 32} | {small: 16}
        variables = "".join(
            f"llvm.mlir.global private @{name}() {{addr_space = 3 : i32}} : !llvm.array<{size} x f32>\n"
            for name, size in sizes.items()
        )
        return f"""{variables}
llvm.func @entry(%x: f32, %y: f32) {{
  %0 = llvm.mlir.addressof @{first} : !llvm.ptr<3>
  %1 = llvm.mlir.addressof @{second} : !llvm.ptr<3>
  %2 = llvm.addrspacecast %0 : !llvm.ptr<3> to !llvm.ptr
  llvm.store %x, %2 : f32, !llvm.ptr
  llvm.store %y, %1 : f32, !llvm.ptr<3>
  llvm.return
}}
"""

    ours, theirs = tiles("shared_0", "shared_1"), tiles("shared_1", "shared_0", small="shared_0")
    assert cites(ours, theirs, "names of shared memory")
    assert between(ours, tiles("shared_1", "shared_0")).verdict == "differs"  # the small tile is written first
    assert between(ours, theirs.replace("store %x", "store %y")).verdict == "differs"
