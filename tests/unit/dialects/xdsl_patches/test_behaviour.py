"""What is patched in xDSL is still missing there, and is right here."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import mlir_reads
from xdsl.dialects import arith, func, llvm, memref, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, f32
from xdsl.ir import Block, Operation, Region
from xdsl.traits import ConditionallySpeculatable, MemoryEffect, Pure, is_speculatable

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dialects.xdsl_patches.behaviour import CALLING_CONVENTIONS, FUNCTIONS, TRAITS
from xla_emitters.dialects.xdsl_patches.patch import XDSLS_OWN, Trait
from xla_emitters.errors import ParseError, VerifyError

INDEX = IndexType()


@pytest.mark.parametrize("row", TRAITS, ids=lambda row: f"{row.op.name}-{row.kind.__name__}")
def test_xdsls_own_op_still_lacks_a_trait_of_the_kind(row: Trait):
    """When this fails, xDSL has caught up: take the row out of TRAITS. An op that inherits its traits has None in XDSLS_OWN."""
    own = XDSLS_OWN[row.op, "traits"]
    assert not any(isinstance(trait, row.kind) for trait in own.traits)
    assert any(isinstance(trait, row.kind) for trait in row.op.traits)


def test_xdsl_still_knows_none_of_the_calling_conventions():
    """When this fails, xDSL has caught up: take the words out of CALLING_CONVENTIONS."""
    assert not CALLING_CONVENTIONS & XDSLS_OWN[llvm, "LLVM_CALLING_CONVS"]
    assert CALLING_CONVENTIONS <= llvm.LLVM_CALLING_CONVS


@pytest.mark.parametrize(
    "access", ["tensor.extract %t[%i] : tensor<4x4xf32>", "tensor.insert %x into %t[%i, %i, %i] : tensor<4x4xf32>"]
)
def test_an_access_takes_an_index_per_dimension(access: str):
    """As mlir-opt says too. When the last line fails, xDSL has caught up: the verifier here can go."""
    text = f"func.func @f(%t: tensor<4x4xf32>, %i: index, %x: f32) {{\n  %y = {access}\n  return\n}}\n"
    with pytest.raises(VerifyError, match=r"\d indices into tensor<4x4xf32>"):
        parse_ir(text)
    (op,) = [op for op in parse_ir(text, verify=False).walk() if isinstance(op, tensor.ExtractOp | tensor.InsertOp)]
    op.get_irdl_definition().verify(op)


HANDING_ON = {
    "an if whose else yields nothing": '"scf.if"(%c) ({ scf.yield %x : f32 }, { scf.yield }) : (i1) -> f32',
    "an if without an else": '"scf.if"(%c) ({ scf.yield %x : f32 }, { }) : (i1) -> f32',
    "an if that yields too much": '%r = "scf.if"(%c) ({ scf.yield %x, %x : f32, f32 }, { scf.yield %x : f32 }) : (i1) -> f32',
    "a region that yields nothing": '"scf.execute_region"() ({ scf.yield }) : () -> f32',
    "a condition that hands nothing on": (
        '"scf.while"(%x) ({ ^bb0(%y: f32): scf.condition(%c) }, { ^bb0(%y: f32): scf.yield %y : f32 }) : (f32) -> f32'
    ),
    "a while whose body yields nothing": (
        '"scf.while"(%x) ({ ^bb0(%y: f32): scf.condition(%c) %y : f32 }, { ^bb0(%y: f32): scf.yield }) : (f32) -> f32'
    ),
}


@pytest.mark.parametrize("what", HANDING_ON)
def test_what_a_region_hands_on_fits(what: str):
    """As mlir-opt says too. When the last line fails, xDSL has caught up: the verifier here can go."""
    op = HANDING_ON[what].removeprefix("%r = ")
    text = f"func.func @f(%c: i1, %x: f32) -> f32 {{\n  %r = {op}\n  return %r : f32\n}}\n"
    with pytest.raises(VerifyError, match=r"region \d (yields|is empty)"):
        parse_ir(text)
    assert not mlir_reads(text)
    (found,) = [
        inner for inner in parse_ir(text, verify=False).walk() if inner.name.startswith("scf.") and inner.results
    ]
    found.get_irdl_definition().verify(found)


UNCHECKED = {
    "two types compared": (
        '%r = "arith.cmpi"(%i, %n) <{predicate = 2 : i64}> : (i32, index) -> i1',
        "compares i32 with index",
    ),
    "a vector compared to one bit": (
        '%r = "arith.cmpf"(%v, %v) <{predicate = 2 : i64}> : (vector<4xf32>, vector<4xf32>) -> i1',
        "compares",
    ),
    "a comparison that is none": (
        '%r = "arith.cmpi"(%i, %i) <{predicate = 10 : i64}> : (i32, i32) -> i1',
        r"no predicate 10: they are 0 \(eq\) to 9 \(uge\)",
    ),
    "an update that is none": (
        '%r = "memref.atomic_rmw"(%x, %m, %n) <{kind = 99 : i64}> : (f32, memref<4xf32>, index) -> f32',
        r"no kind 99: they are 0 \(addf\)",
    ),
    "a loop that stands still": (
        "%c0 = arith.constant 0 : index\n  scf.parallel (%k) = (%n) to (%n) step (%c0) {\n }",
        "its step is 0",
    ),
    "too few dictionaries": (
        '"func.func"() <{sym_name = "g", function_type = (i32) -> (), arg_attrs = []}> ({}) : () -> ()',
        "arg_attrs has 0 dictionaries for 1 values",
    ),
    "a visibility that is none": (
        '"func.func"() <{sym_name = "g", function_type = (i32) -> (), sym_visibility = "gpu"}> ({}) : () -> ()',
        "its visibility is 'gpu'",
    ),
}


@pytest.mark.parametrize("what", UNCHECKED)
def test_what_xdsl_does_not_check(what: str):
    """As mlir-opt says too. When the last line fails, xDSL has caught up: the verifier here can go."""
    line, message = UNCHECKED[what]
    arguments = "%i: i32, %n: index, %v: vector<4xf32>, %x: f32, %m: memref<4xf32>"
    text = f"module {{\n  func.func @f({arguments}) {{ return }}\n  {line}\n}}"
    if not line.startswith('"func'):
        text = f"func.func @f({arguments}) {{\n  {line}\n  return\n}}"
    with pytest.raises(VerifyError, match=message):
        parse_ir(text)
    assert not mlir_reads(text)
    checked = (arith.CmpiOp, arith.CmpfOp, memref.AtomicRMWOp, scf.ParallelOp, func.FuncOp)
    *_, op = [op for op in parse_ir(text, verify=False).walk() if isinstance(op, checked)]
    op.get_irdl_definition().verify(op)


@pytest.mark.parametrize("number", [-1, 2, 1 << 62])
def test_a_buffer_has_the_dimension_that_is_asked_for(number: int):
    """mlir-opt takes it, as undefined behaviour. When the last line fails, xDSL has caught up: the verifier here can go."""
    line = f"%c = arith.constant {number} : index\n  %n = memref.dim %m, %c : memref<?x4xf32>"
    text = f"func.func @f(%m: memref<?x4xf32>) {{\n  {line}\n  return\n}}"
    with pytest.raises(VerifyError, match=rf"memref<\?x4xf32> has no dimension {number}"):
        parse_ir(text)
    parse_ir(text.replace(f" {number} :", " 1 :"))
    (op,) = [op for op in parse_ir(text, verify=False).walk() if isinstance(op, memref.DimOp)]
    op.get_irdl_definition().verify(op)


DECLARED = "func.func private @f(f32 {llvm.noundef}) -> f32"
LINKAGE = "module attributes {c = #llvm.linkage<internal>} {}"


@pytest.mark.parametrize(
    ("method", "text", "readable"),
    [
        ("print_parameters", LINKAGE, True),
        ("parse_parameters", "module attributes {t.x = #dlti.map<#dlti.dl_entry<index, 32 : i32>>} {}", False),
        ("parse_func_op_like", DECLARED, True),
        ("print_func_op_like", DECLARED, True),
    ],
)
def test_xdsls_own_methods_are_still_wrong(method: str, text: str, readable: bool, monkeypatch: pytest.MonkeyPatch):
    """When this fails, xDSL has caught up: take the row out."""
    (row,) = [row for row in FUNCTIONS if row.name == method]
    right = print_ir(parse_ir(text))
    monkeypatch.setattr(row.holder, row.name, XDSLS_OWN[row.holder, row.name])
    # A context of its own: the thread's keeps what was read before.
    if not readable:
        with pytest.raises(ParseError):
            parse_ir(text, context=make_context())
        return
    assert print_ir(parse_ir(text, context=make_context())) != right


@pytest.mark.parametrize("op", [llvm.SDivOp, llvm.UDivOp, llvm.SRemOp, llvm.URemOp])
def test_division_is_never_hoisted(op: type[Operation]):
    """It shares its traits' object with the shifts, which may be."""
    assert any(isinstance(trait, MemoryEffect) for trait in op.traits)
    assert not any(isinstance(trait, ConditionallySpeculatable) for trait in op.traits)


def test_a_patch_of_one_op_does_not_reach_its_family():
    assert Pure() in arith.RemUIOp.traits.traits
    assert Pure() not in arith.CeilDivUIOp.traits.traits


def loop(step: int | None) -> scf.ForOp:
    outside = Block(arg_types=[INDEX])
    zero = arith.ConstantOp(IntegerAttr(0, INDEX))
    stride = arith.ConstantOp(IntegerAttr(step, INDEX)).result if step is not None else outside.args[0]
    body = Block(arg_types=[INDEX])
    body.add_op(scf.YieldOp())
    return scf.ForOp(zero, zero, stride, [], Region(body))


@pytest.mark.parametrize(("step", "wanted"), [(1, True), (4, True), (0, False), (-1, False), (None, False)])
def test_a_loop_is_hoisted_only_if_it_surely_ends(step: int | None, wanted: bool):
    assert is_speculatable(loop(step)) is wanted


def test_a_loop_with_a_division_by_what_may_be_zero_is_not_hoisted():
    made = loop(1)
    block = made.body.block
    block.insert_ops_before([arith.DivSIOp(block.args[0], block.args[0])], block.first_op)
    assert not is_speculatable(made)


@pytest.mark.parametrize(("dim", "wanted"), [(0, True), (1, True), (2, False), (-1, False)])
def test_a_dimension_that_a_tensor_has_may_be_asked_anywhere(dim: int, wanted: bool):
    block = Block(arg_types=[TensorType(f32, [4, -1])])
    constant = arith.ConstantOp(IntegerAttr(dim, INDEX))
    assert is_speculatable(tensor.DimOp(block.args[0], constant.result)) is wanted


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%0 = llvm.fpext %x : f32 to f32", "f32 is not wider than f32"),
        ("%0 = llvm.fptrunc %x : f32 to f64", "f64 is not narrower than f32"),
        ("%0 = llvm.sitofp %x : f32 to f32", "converts integers to floats of the same shape, not f32 to f32"),
    ],
)
def test_conversions_are_checked(line: str, message: str):
    """When the last line fails, xDSL has caught up: take the row out of VERIFIERS."""
    text = f"llvm.func @f(%x: f32) {{\n{line}\nllvm.return }}"
    with pytest.raises(VerifyError, match=message):
        parse_ir(text)
    converted = (llvm.FPExtOp, llvm.FPTruncOp, llvm.SIToFPOp)
    (op,) = [op for op in parse_ir(text, verify=False).walk() if isinstance(op, converted)]
    op.get_irdl_definition().verify(op)
