"""The second seed document's listings in the spelling of 2020, with their `...` filled in; and the newer spelling of XLA's logs."""

import re
from pathlib import Path

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.dialects.other_spelling import is_older, modernized, of_dictionaries
from xla_emitters.tools import opt

KERNEL = "dhlo_fusion_xla_lhlo_reduce_2_0_kernel"
FOLDER = Path(__file__).parents[2] / "corpus" / "spelling_of_2020"
LISTINGS = {
    "before_the_split": ["scf.for", "arith.remsi", "arith.divui", "arith.cmpi eq", "memref.load", "memref.dim %arg11"],
    "after_the_split": ["scf.if", "gpu.launch blocks", "arith.cmpi slt", "arith.select"],
    "launch": [f"kernel = @{KERNEL}::@{KERNEL}", "gpu.func"],
    "entry": ["call @fusion_function", "lmhlo.add %arg0, %arg1 -> %arg2", "lmhlo.multiply %arg0, %arg2 -> %arg3"],
    "broadcasts": [
        "lmhlo.dynamic_broadcast_in_dim %arg0, %bcast_shape -> %arg1 {dimensions = array<i64: 0, 1>",
        "<i64: 1>",
    ],
    "marker": ["call @mcuCuMemMarker2df32_x_x", "memref.alloc(%arg1) {temp = true}"],
    "calls": [
        "llvm.mlir.addressof",
        "!llvm.array<39 x i8>",
        "call @ral_gemm___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1___void",
    ],
}


def listing(name: str) -> str:
    return (FOLDER / f"{name}.mlir").read_text()


@pytest.mark.parametrize("name", LISTINGS)
def test_a_listing_of_the_seed_is_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([str(FOLDER / f"{name}.mlir")]) == 0
    printed = capsys.readouterr().out
    assert not [part for part in LISTINGS[name] if part not in printed]
    assert not re.search(r"xla_lhlo|loop\.|divi_|remi_|llvm<", printed.replace("dhlo_fusion_xla_lhlo_reduce", ""))
    # What is printed is in today's spelling, and reads back as the same IR.
    assert not is_older(printed)
    assert print_ir(parse_ir(printed)) + "\n" == printed


@pytest.mark.parametrize("name", LISTINGS)
def test_every_line_stays_where_it_is(name: str) -> None:
    text = listing(name)
    assert is_older(text)
    assert len(modernized(text).split("\n")) == len(text.split("\n"))
    assert modernized(modernized(text)) == modernized(text)


def test_generic_and_pretty_ops_on_buffers_are_the_same() -> None:
    types = "(memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()"
    text = "func @f(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) {{\n  {}(%a, %b, %c){}\n  return\n}}"
    forms = [
        text.format(*form)
        for form in (("xla_lhlo.sub", ""), ("xla_lhlo.sub", f" : {types}"), ('"xla_lhlo.sub"', f" : {types}"))
    ]
    assert len({print_ir(parse_ir(modernized(form))) for form in forms}) == 1
    assert "lmhlo.subtract %a, %b -> %c" in modernized(forms[0])


def test_a_fault_is_reported_where_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "listing.mlir"
    path.write_text(listing("before_the_split").replace("%9 = load %arg5[]", "%9 = load %arg6[]"))
    assert opt.main([str(path)]) == 1
    assert re.match(
        r".*listing\.mlir:16:\d+: error: \[ir\.parse\] %arg6 is used but not defined", capsys.readouterr().err
    )


@pytest.mark.parametrize("reshape", ["xla_hlo.d_reshape", "mhlo.dynamic_reshape"])
def test_programs_are_read_as_hlo(reshape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, types = tmp_path / "program.mlir", "(tensor<?x?xf32>, tensor<1xi64>) -> tensor<?xf32>"
    body = f'%0 = "{reshape}"(%x, %shape) : {types}\n  return %0 : tensor<?xf32>'
    path.write_text(f"func @test(%x: tensor<?x?xf32>, %shape: tensor<1xi64>) -> tensor<?xf32> {{\n  {body}\n}}\n")
    assert opt.main([str(path)]) == 0
    assert "hlo.dynamic_reshape %p0, %p1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("newer", "ours"),
    [
        (
            "%0 = llvm.fadd %a, %a fastmath<nsz> : f32",
            "%0 = llvm.fadd %a, %a {fastmathFlags = #llvm.fastmath<nsz>} : f32",
        ),
        (
            '%0 = llvm.fcmp "olt" %a, %a fastmath<nnan, nsz> {x = 1 : i32} : f32',
            '%0 = llvm.fcmp "olt" %a, %a {fastmathFlags = #llvm.fastmath<nnan, nsz>, x = 1 : i32} : f32',
        ),
        (
            "%0 = llvm.load %p invariant <alignment = 2> : !llvm.ptr -> f32",
            "%0 = llvm.load %p invariant {alignment = 2 : i64} : !llvm.ptr -> f32",
        ),
        (
            "llvm.store %a, %p <alignment = 4> {y} : f32, !llvm.ptr",
            "llvm.store %a, %p {alignment = 4 : i64, y} : f32, !llvm.ptr",
        ),
        (
            "%0 = llvm.atomicrmw ignore_denormal_mode fadd %p, %a monotonic : !llvm.ptr, f32",
            "%0 = llvm.atomicrmw fadd %p, %a monotonic {ignore_denormal_mode} : !llvm.ptr, f32",
        ),
        (
            "%0 = llvm.intr.maximum(%a, %a) fastmath<nsz> : (f32, f32) -> f32",
            "%0 = llvm.intr.maximum(%a, %a) {fastmathFlags = #llvm.fastmath<nsz>} : (f32, f32) -> f32",
        ),
    ],
)
def test_properties_outside_of_the_dictionary(newer: str, ours: str) -> None:
    text = "llvm.func @f(%p: !llvm.ptr, %a: f32) {\n  {}\n  llvm.return\n}"
    assert of_dictionaries(text.replace("{}", newer)) == text.replace("{}", ours)
    assert of_dictionaries(text.replace("{}", ours)) == text.replace("{}", ours)
    parse_ir(of_dictionaries(text.replace("{}", newer)))


def test_other_ops_keep_their_flags() -> None:
    for line in (
        "%0 = arith.addf %a, %a fastmath<nsz> : f32",
        "%0 = llvm.mlir.constant(dense<[1]> : vector<1xi32>) : vector<1xi32>",
    ):
        assert of_dictionaries(f"{line}\n") == f"{line}\n"
