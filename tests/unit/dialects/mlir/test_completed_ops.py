"""What is completed in xDSL's ops is still missing there, and is right here."""

import pytest
from unit.dialects.mlir_opt import assert_means_the_same, generic_text, mlir_reads
from unit.dialects.stock import is_valid_for_xdsl, printed_by_xdsl
from xdsl.dialects.builtin import IndexType, UnitAttr, VectorType, f32, i1, i32, i64
from xdsl.ir import Block

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import VerifyError

ARGUMENTS = (
    "%x: index, %i: i32, %b: i1, %f: f32, %h: bf16, %iv: vector<4xi32>, %xv: vector<4xindex>, %bv: vector<4xi1>, "
    "%fv: vector<4xf32>, %t: tensor<64xf32>, %m: memref<64xf32>"
)

# Lines that xDSL's own op refuses or prints otherwise.
SAMPLES = {
    "arith.shrsi": "%r = arith.shrsi %i, %i exact : i32",
    "arith.shrui": "%r = arith.shrui %i, %i exact : i32",
    "arith.divsi": "%r = arith.divsi %i, %i exact : i32",
    "arith.divui": "%r = arith.divui %i, %i exact : i32",
    "arith.cmpi": "%r = arith.cmpi slt, %iv, %iv {note} : vector<4xi32>",
    "arith.cmpf": "%r = arith.cmpf olt, %fv, %fv fastmath<nnan> {note} : vector<4xf32>",
    "arith.select": "%r = arith.select %bv, %fv, %fv {note} : vector<4xi1>, vector<4xf32>",
    "arith.extsi": "%r = arith.extsi %iv : vector<4xi32> to vector<4xi64>",
    "arith.extui": "%r = arith.extui %bv : vector<4xi1> to vector<4xi32>",
    "arith.trunci": "%r = arith.trunci %iv overflow<nsw> : vector<4xi32> to vector<4xi8>",
    "arith.extf": "%r = arith.extf %h fastmath<nnan> : bf16 to f32",
    "arith.truncf": "%r = arith.truncf %f toward_zero fastmath<nnan> : f32 to bf16",
    "arith.sitofp": "%r = arith.sitofp %iv : vector<4xi32> to vector<4xf32>",
    "arith.uitofp": "%r = arith.uitofp %iv : vector<4xi32> to vector<4xf32>",
    "arith.fptosi": "%r = arith.fptosi %fv : vector<4xf32> to vector<4xi32>",
    "arith.fptoui": "%r = arith.fptoui %fv : vector<4xf32> to vector<4xi32>",
    "arith.index_cast": "%r = arith.index_cast %xv : vector<4xindex> to vector<4xi32>",
    "scf.for": "scf.for unsigned %k = %x to %x step %x {\n }",
    "scf.parallel": "scf.parallel (%k) = (%x) to (%x) step (%x) {\n }",
    "scf.while": "scf.while : () -> () {\n scf.condition(%b)\n } do {\n scf.yield\n }",
    "scf.index_switch": "scf.index_switch %x\n case 2 {\n scf.yield\n }\n default {\n }",
    "scf.execute_region": "scf.execute_region no_inline {\n scf.yield\n }",
    "scf.if": "%r = scf.if %b -> f32 {\n scf.yield %f : f32\n } else {\n scf.yield %f : f32\n }",
    "cf.cond_br": "cf.cond_br %b weights([1, 2000]), ^bb1, ^bb1\n^bb1:",
    "affine.apply": "%r = affine.apply affine_map<(d0) -> (d0)>(%x) {note}",
    "affine.min": "%r = affine.min affine_map<(d0) -> (d0)>(%x) {note}",
    "vector.load": "%r = vector.load %m[%x] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>",
    "vector.store": "vector.store %fv, %m[%x] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>",
    "vector.maskedload": (
        "%r = vector.maskedload %m[%x], %bv, %fv {alignment = 16 : i64}"
        " : memref<64xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>"
    ),
    "vector.maskedstore": "vector.maskedstore %m[%x], %bv, %fv {alignment = 16 : i64} : memref<64xf32>, vector<4xi1>, vector<4xf32>",
    "vector.transfer_read": "%r = vector.transfer_read %t[%x], %f {note} : tensor<64xf32>, vector<4xf32>",
    "vector.transfer_write": "%r = vector.transfer_write %fv, %t[%x] {note} : vector<4xf32>, tensor<64xf32>",
    "memref.load": "%r = memref.load %m[%x] {alignment = 4 : i64} : memref<64xf32>",
    "memref.store": "memref.store %f, %m[%x] {alignment = 4 : i64} : memref<64xf32>",
    "memref.atomic_rmw": "%r = memref.atomic_rmw addf %f, %m[%x] : (f32, memref<64xf32>) -> f32",
    "memref.rank": "%r = memref.rank %m : memref<64xf32>",
    "memref.cast": "%r = memref.cast %m : memref<64xf32> to memref<?xf32>",
    "memref.memory_space_cast": "%r = memref.memory_space_cast %m : memref<64xf32> to memref<64xf32, 1>",
    "memref.copy": "memref.copy %m, %m : memref<64xf32> to memref<64xf32>",
    "memref.extract_aligned_pointer_as_index": "%r = memref.extract_aligned_pointer_as_index %m : memref<64xf32> -> index",
    "gpu.thread_id": "%r = gpu.thread_id x upper_bound 64",
    "gpu.block_id": "%r = gpu.block_id x upper_bound 64",
    "gpu.block_dim": "%r = gpu.block_dim x upper_bound 64",
    "gpu.grid_dim": "%r = gpu.grid_dim x upper_bound 64",
    "gpu.global_id": "%r = gpu.global_id x upper_bound 64",
    "gpu.num_subgroups": "%r = gpu.num_subgroups upper_bound 64 : index",
    "gpu.subgroup_id": "%r = gpu.subgroup_id upper_bound 64 : index",
    "gpu.subgroup_size": "%r = gpu.subgroup_size upper_bound 64 : index",
    "gpu.lane_id": "%r = gpu.lane_id upper_bound 64",
    "gpu.barrier": "gpu.barrier",
}
MODULES = {name: f"func.func @f({ARGUMENTS}) {{\n{line}\nreturn\n}}" for name, line in SAMPLES.items()} | {
    "memref.global": (
        'memref.global "private" constant @g : memref<4xf32> = dense<1.0> {alignment = 64 : i64}\n'
        "memref.global @x : memref<4xf32>"
    ),
    "func.func": "func.func private @f(f32 {llvm.noundef}) -> f32",
    "llvm.linkage": "module attributes {t.c = #llvm.linkage<internal>} {}",
    "llvm.cconv": "module attributes {t.c = #llvm.cconv<ptx_kernelcc>} {}",
    "dlti.map": "module attributes {t.x = #dlti.map<#dlti.dl_entry<index, 32 : i32>>} {}",
}


def test_every_sample_means_here_what_it_means_in_mlir():
    names = assert_means_the_same(list(MODULES.values()))
    assert SAMPLES.keys() <= names


def test_xdsls_own_ops_still_lack_it():
    """When this fails, xDSL has caught up: take the class away, or what xDSL now has out of it."""
    generics = generic_text(list(MODULES.values()))
    caught_up = [
        name
        for (name, text), generic in zip(MODULES.items(), generics, strict=True)
        if {printed_by_xdsl(text), printed_by_xdsl(generic)} == {print_ir(parse_ir(text))}
    ]
    assert caught_up == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = arith.extsi %iv : vector<4xi32> to vector<2xi64>", "differ in shape"),
        ("%r = arith.extsi %i : i32 to i16", "i16 is not wider than i32"),
        ("%r = arith.trunci %iv : vector<4xi32> to vector<4xi32>", "is not narrower than"),
        ("%r = arith.truncf %f : f32 to f64", "is not narrower than"),
        ("%r = arith.extf %f : f32 to f16", "is not wider than"),
        ("%r = arith.index_cast %iv : vector<4xi32> to vector<4xi64>", "casts between index and integers"),
        ("%r = arith.index_cast %x : index to index", "casts between index and integers"),
        ("%r = arith.sitofp %iv : vector<4xi32> to f32", "differ in shape"),
    ],
)
def test_conversions_that_mlir_refuses_are_refused(line: str, message: str):
    with pytest.raises(VerifyError, match=message):
        parse_ir(f"func.func @f({ARGUMENTS}) {{\n{line}\nreturn\n}}")


def test_a_comparison_of_vectors_gives_a_vector():
    block = Block(arg_types=[VectorType(i64, [4]), i32, VectorType(f32, [2, 2])])
    assert arith.CmpiOp(block.args[0], block.args[0], "slt").result.type == VectorType(i1, [4])
    assert arith.CmpiOp(block.args[1], block.args[1], 2).result.type == i1
    assert arith.CmpfOp(block.args[2], block.args[2], "oeq").result.type == VectorType(i1, [2, 2])


def test_properties_have_names_in_python():
    loop = parse_ir(MODULES["scf.for"])
    (op,) = [op for op in loop.walk() if isinstance(op, scf.ForOp)]
    assert op.properties["unsignedCmp"] == UnitAttr()
    assert isinstance(op.lb.type, IndexType)


def assert_xdsl_takes(text: str) -> None:
    """When this fails, xDSL has caught up: the verifier here can go."""
    assert is_valid_for_xdsl(print_ir(parse_ir(text, verify=False), generic=True))


@pytest.mark.parametrize(
    "access", ["tensor.extract %t[%i] : tensor<4x4xf32>", "tensor.insert %x into %t[%i, %i, %i] : tensor<4x4xf32>"]
)
def test_an_access_takes_an_index_per_dimension(access: str):
    """As mlir-opt says too."""
    text = f"func.func @f(%t: tensor<4x4xf32>, %i: index, %x: f32) {{\n  %y = {access}\n  return\n}}\n"
    with pytest.raises(VerifyError, match=r"\d indices into tensor<4x4xf32>"):
        parse_ir(text)
    assert_xdsl_takes(text)


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
    """As mlir-opt says too."""
    op = HANDING_ON[what].removeprefix("%r = ")
    text = f"func.func @f(%c: i1, %x: f32) -> f32 {{\n  %r = {op}\n  return %r : f32\n}}\n"
    with pytest.raises(VerifyError, match=r"region \d (yields|is empty)"):
        parse_ir(text)
    assert not mlir_reads(text)
    assert_xdsl_takes(text)


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
    """As mlir-opt says too."""
    line, message = UNCHECKED[what]
    arguments = "%i: i32, %n: index, %v: vector<4xf32>, %x: f32, %m: memref<4xf32>"
    text = f"module {{\n  func.func @f({arguments}) {{ return }}\n  {line}\n}}"
    if not line.startswith('"func'):
        text = f"func.func @f({arguments}) {{\n  {line}\n  return\n}}"
    with pytest.raises(VerifyError, match=message):
        parse_ir(text)
    assert not mlir_reads(text)
    assert_xdsl_takes(text)


@pytest.mark.parametrize("number", [-1, 2, 1 << 62])
def test_a_buffer_has_the_dimension_that_is_asked_for(number: int):
    """mlir-opt takes it, as undefined behaviour."""
    line = f"%c = arith.constant {number} : index\n  %n = memref.dim %m, %c : memref<?x4xf32>"
    text = f"func.func @f(%m: memref<?x4xf32>) {{\n  {line}\n  return\n}}"
    with pytest.raises(VerifyError, match=rf"memref<\?x4xf32> has no dimension {number}"):
        parse_ir(text)
    parse_ir(text.replace(f" {number} :", " 1 :"))
    assert_xdsl_takes(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%0 = llvm.fpext %x : f32 to f32", "f32 is not wider than f32"),
        ("%0 = llvm.fptrunc %x : f32 to f64", "f64 is not narrower than f32"),
        ("%0 = llvm.sitofp %x : f32 to f32", "converts integers to floats of the same shape, not f32 to f32"),
    ],
)
def test_conversions_are_checked(line: str, message: str):
    text = f"llvm.func @f(%x: f32) {{\n{line}\nllvm.return }}"
    with pytest.raises(VerifyError, match=message):
        parse_ir(text)
    assert_xdsl_takes(text)
