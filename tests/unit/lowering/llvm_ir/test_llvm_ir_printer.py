"""Functions, globals, blocks and names of a whole module as LLVM IR."""

import re
import subprocess
from importlib import import_module
from typing import Any

import pytest
from tools_here import here, needs

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.llvm_ir.llvm_ir_printer import print_llvm_ir
from xla_emitters.lowering.toolchain.tools import find_tool

KERNEL = """
llvm.func @f(%p: !llvm.ptr {llvm.noalias}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
  %c = llvm.mlir.constant(1.0 : f32) : f32
  llvm.br ^bb1(%c : f32)
^bb1(%x: f32):
  llvm.store %x, %p : f32, !llvm.ptr
  llvm.return
}
"""
TEXT = """\
define ptx_kernel void @f(ptr noalias %p) "nvvm.reqntid"="128,1,1" {
bb0:
  br label %bb1
bb1:
  %x = phi float [ 0x3FF0000000000000, %bb0 ]
  store float %x, ptr %p
  ret void
}

!llvm.module.flags = !{!0}
!0 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
"""
# Everything that a module can say outside of functions' bodies.
TOP = """
llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x f32>
llvm.mlir.global private unnamed_addr constant @table(dense<[1.0, 2.0]> : tensor<2xf32>) {addr_space = 4 : i32} : !llvm.array<2 x f32>
llvm.mlir.global external @dynamic() {addr_space = 3 : i32} : !llvm.array<0 x i8>
llvm.mlir.global internal constant @rows(dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi16>) : !llvm.array<2 x array<3 x i16>>
llvm.mlir.global internal constant @text("a\\00\\22b") : !llvm.array<4 x i8>
llvm.mlir.global weak hidden @count(7 : i32) {section = "s"} : i32
llvm.mlir.global linkonce_odr @zeros(#llvm.zero) : !llvm.array<4 x i32>
llvm.func @declared(f32 {llvm.noundef}, !llvm.ptr) -> (f32 {llvm.noundef})
llvm.func @variadic(!llvm.ptr, ...) -> i32
llvm.func internal fastcc @helper(%x: f32) -> f32 attributes {
    always_inline, no_unwind, will_return, passthrough = ["noduplicate", ["key", "value"]],
    memory_effects = #llvm.memory_effects<other = none, argMem = read, inaccessibleMem = readwrite, errnoMem = none,
                                          targetMem0 = none, targetMem1 = none>} {
  llvm.return %x : f32
}
llvm.func linkonce_odr hidden @pure() -> i32 attributes {
    memory_effects = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, errnoMem = none,
                                          targetMem0 = none, targetMem1 = none>} {
  %c = llvm.mlir.constant(1 : i32) : i32
  llvm.return %c : i32
}
llvm.func @kernel(
    %a: !llvm.ptr {llvm.align = 16 : index, llvm.dereferenceable = 64 : index, llvm.noalias, llvm.nonnull, llvm.readonly},
    %b: !llvm.ptr {llvm.byval = i32, llvm.nocapture, nvvm.grid_constant},
    %c: i8 {llvm.signext}, %d: i32 {llvm.range = #llvm.constant_range<i32, 0, 9>, xla.slice_index = 1 : index})
    attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 2, 1>, nvvm.minctasm = 2 : i32, nvvm.maxnreg = 32 : i32,
                nvvm.cluster_dim = array<i32: 2, 1, 1>, gpu.known_grid_size = array<i32: 7, 1, 1>} {
  llvm.return
}
"""


def parsed(text: str) -> Any:
    module = import_module("llvmlite.binding").parse_assembly(text)
    module.verify()
    return module


def top(module: Any) -> list[str]:
    """The lines of globals and functions, with the attributes of functions in place of their numbers."""
    lines = str(module).splitlines()
    groups = dict(found.groups() for line in lines if (found := re.match(r"attributes (#\d+) = (.*)", line)))
    kept = [line for line in lines if line.startswith(("@", "define", "declare"))]
    # Those of an argument have no order.
    kept = [re.sub(r"#\d+", lambda found: groups[found[0]], re.sub(r" %[\w.]+(?=[,)])", "", line)) for line in kept]
    return [" ".join(sorted(re.split(r"[ ,]+", line))) for line in kept]


def test_a_kernel() -> None:
    assert print_llvm_ir(parse_ir(KERNEL)) == TEXT


@needs("llvmlite", "mlir-translate")
def test_globals_and_functions_are_those_of_mlir_translate() -> None:
    command = [find_tool("mlir-translate", here()).path, "--mlir-to-llvmir"]
    theirs = subprocess.run(command, input=TOP, capture_output=True, text=True, check=True, timeout=60).stdout
    ours = top(parsed(print_llvm_ir(parse_ir(TOP))))
    assert len(ours) == 12
    assert ours == top(parsed(theirs))


def test_a_phi_has_one_value_for_each_block_that_it_comes_from() -> None:
    """Two ways of one branch that give one block other arguments: the second goes through a block of its own."""
    text = print_llvm_ir(
        parse_ir("""
llvm.func @f(%c: i1, %a: i32, %b: i32) -> i32 {
  llvm.cond_br %c, ^to(%a : i32), ^to(%b : i32)
^to(%x: i32):
  llvm.return %x : i32
}""")
    )
    assert "br i1 %c, label %bb1, label %bb0.to.bb1" in text
    assert "%x = phi i32 [ %b, %bb0.to.bb1 ], [ %a, %bb0 ]" in text
    assert "bb0.to.bb1:\n  br label %bb1\n}" in text


@needs("llvmlite")
def test_a_switch_may_go_to_one_block_many_times() -> None:
    text = print_llvm_ir(
        parse_ir("""
llvm.func @f(%i: i32, %a: i32) -> i32 {
  llvm.switch %i : i32, ^to(%a : i32) [ 1: ^to(%i : i32), 2: ^to(%a : i32), 3: ^other ]
^other:
  llvm.br ^to(%i : i32)
^to(%x: i32):
  llvm.return %x : i32
}""")
    )
    (phi,) = re.findall(r"phi i32 (.*)", text)
    assert len(set(re.findall(r", (%[\w.]+) \]", phi))) == 4
    parsed(text)


def test_names_are_kept_and_made_different() -> None:
    """Labels and values share their names; a name that LLVM IR does not take becomes another."""
    module = parse_ir("""
llvm.func @f(%x: i32, %bb0: i32) -> i32 {
  %0 = llvm.add %x, %bb0 : i32
  %1 = llvm.add %0, %0 : i32
  llvm.return %1 : i32
}""")
    for op, hint in zip(module.walk(), ("", "", "x", "a b"), strict=False):
        if op.results and hint:
            op.results[0].name_hint = hint if hint != "a b" else None
    text = print_llvm_ir(module)
    assert "(i32 %x, i32 %bb0.1)" in text
    assert "%x.1 = add i32 %x, %bb0.1" in text
    assert "%v = add i32 %x.1, %x.1" in text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            '"builtin.unrealized_conversion_cast"() : () -> i32',
            "builtin.unrealized_conversion_cast at the top of a module",
        ),
        (
            "llvm.mlir.global internal @g() : i32 { %0 = llvm.mlir.poison : i32 llvm.return %0 : i32 }",
            "global with a body",
        ),
        ("llvm.func swiftcc @f()", "llvm.func with the calling convention swiftcc"),
        ("llvm.func @f(!llvm.ptr {llvm.swifterror})", "the parameter attribute llvm.swifterror"),
        (
            "llvm.func @f() attributes {vscale_range = #llvm.vscale_range<minRange = 1 : i32, maxRange = 2 : i32>}",
            "with vscale_range",
        ),
    ],
)
def test_what_cannot_be_said_is_refused(code: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        print_llvm_ir(parse_ir(code))


def test_flags_of_a_module() -> None:
    text = print_llvm_ir(
        parse_ir(
            'llvm.module_flags [#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>, #llvm.mlir.module_flag<max, "s", "t">]'
        )
    )
    assert "!llvm.module.flags = !{!0, !1, !2}" in text
    assert '!1 = !{i32 1, !"wchar_size", i32 4}\n!2 = !{i32 7, !"s", !"t"}' in text


BRANCHES = """
llvm.func @f(%p: !llvm.ptr, %c: i1, %d: i1) attributes {nvvm.kernel} {
  llvm.cond_br %c, ^bb1, ^bb4
^bb1:
  llvm.cond_br %d, ^bb2, ^bb3
^bb2:
  llvm.br ^bb5
^bb3:
  llvm.br ^bb5
^bb4:
  llvm.br ^bb5
^bb5:
  llvm.cond_br %d, ^bb5, ^bb6
^bb6:
  llvm.return
}
"""


@needs("llvmlite")
def test_branches_to_a_block_are_in_the_order_of_mlir_translate() -> None:
    """Instructions are made in reverse post-order, which is 0, 4, 1, 3, 2, 5, 6 here; the newest use is the first.

    So that of bb5, which text has in the order 5, 4, 3, 2, becomes 5, 2, 3, 4.
    """
    text = print_llvm_ir(parse_ir(BRANCHES))
    assert re.findall(r"^uselistorder_bb .*$", text, re.M) == ["uselistorder_bb @f, %bb5, { 0, 3, 2, 1 }"]
    parsed(text)


def test_branches_that_are_in_order_have_no_directive() -> None:
    assert "uselistorder" not in print_llvm_ir(parse_ir(KERNEL))
