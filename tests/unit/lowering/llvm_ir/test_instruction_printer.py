"""Each op as an instruction of LLVM IR: what `mlir-translate` of LLVM 22 makes of it, as LLVM reads both; and what is refused."""

import re
import subprocess
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from tools_here import here, needs
from unit.dialects.mlir import test_nvvm
from unit.dialects.mlir.test_llvm import ARGUMENTS, LINES

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.llvm_ir.instruction_printer import ROWS
from xla_emitters.lowering.llvm_ir.llvm_ir_printer import print_llvm_ir
from xla_emitters.lowering.toolchain.tools import find_tool

# Lines of the dialect's table that LLVM does not take as they stand, or that are refused here; a hint that is left out; and a switch to
# the block of its default, for which mlir-translate makes a block on the other edge.
NOT_HERE = re.compile(
    r"lifetime|call_intrinsic|assume %c \[|masked\.|dereferenceable<|fastcc|invariant_group|<cluster>|nvvm.reduction|switch %i : i32, \^a\("
)
OF_ROWS = [line for line in test_nvvm.LINES if set(re.findall(r"nvvm[\w.]+", line)) & ROWS.keys()]
CODE = {
    **{f"line {n}": line for n, line in enumerate((*LINES, *OF_ROWS)) if not NOT_HERE.search(line)},
    "flags": """
      %0 = llvm.fadd %b, %b {fastmathFlags = #llvm.fastmath<nnan, nsz, contract>} : bf16
      %1 = llvm.fmul %v, %v {fastmathFlags = #llvm.fastmath<fast>} : vector<4xf32>
      %2 = llvm.fcmp "une" %v, %v {fastmathFlags = #llvm.fastmath<ninf>} : vector<4xf32>
      %3 = llvm.load volatile %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
      %4 = llvm.alloca %i x f32 : (i32) -> !llvm.ptr
      llvm.intr.lifetime.start %4 : !llvm.ptr
      llvm.intr.lifetime.end %4 : !llvm.ptr""",
    "calls": """
      %0 = llvm.call @callee(%x) {fastmathFlags = #llvm.fastmath<nsz>} : (f32) -> f32
      %1 = llvm.call tail %p(%x) : !llvm.ptr, (f32 {llvm.noundef}) -> f32
      %2 = llvm.call @callee(%x) {no_unwind, will_return, convergent} : (f32) -> (f32 {llvm.noundef})
      %3 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) : (f32) -> f32
      llvm.call @nothing() {memory_effects = #llvm.memory_effects<other = none, argMem = read, inaccessibleMem = none,
        errnoMem = none, targetMem0 = none, targetMem1 = none>} : () -> ()
      %true = llvm.mlir.constant(true) : i1
      llvm.intr.assume %true ["align"(%p, %i : !llvm.ptr, i32)] : i1
      %5 = llvm.inline_asm has_side_effects "atom.global.v2.f32.add {$0, $1}, [$2], {$3, $4};", "=f,=f,l,f,f" %p, %x, %x
        : (!llvm.ptr, f32, f32) -> !llvm.struct<(f32, f32)>
      llvm.inline_asm has_side_effects is_align_stack asm_dialect = intel "nop \\22a\\22", "" : () -> ()""",
    "branches": """
      llvm.cond_br %c weights([2000, 1]), ^one(%i : i32), ^two
    ^one(%number: i32):
      llvm.switch %number : i32, ^two [ 1: ^one(%i : i32), -2: ^three ] {branch_weights = array<i32: 5, 2, 1>}
    ^two:
      llvm.br ^one(%i : i32)
    ^three:
      llvm.unreachable""",
    "constants": """
      %c0 = llvm.mlir.constant(-7 : i32) : i32
      %c1 = llvm.mlir.constant(true) : i1
      %c2 = llvm.mlir.constant(dense<[1.0, -0.0, 0x7F800000, 0x7FC00000]> : vector<4xf32>) : vector<4xf32>
      %c3 = llvm.mlir.constant(dense<3> : vector<4xi32>) : vector<4xi32>
      %c4 = llvm.mlir.poison : vector<4xf32>
      %c5 = llvm.mlir.undef : f32
      %c6 = llvm.mlir.zero : !llvm.ptr
      %c7 = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %c8 = llvm.mlir.constant(1.1 : f64) : f64
      %c9 = llvm.mlir.constant(0.1 : bf16) : bf16
      %c10 = llvm.mlir.constant(0xFFC00001 : f32) : f32
      %c11 = llvm.mlir.constant([1 : i32, 2.0 : f32]) : !llvm.struct<(i32, f32)>
      llvm.store %c0, %p : i32, !llvm.ptr
      llvm.store %c1, %p : i1, !llvm.ptr
      llvm.store %c2, %p : vector<4xf32>, !llvm.ptr
      llvm.store %c3, %p : vector<4xi32>, !llvm.ptr
      llvm.store %c4, %p : vector<4xf32>, !llvm.ptr
      llvm.store %c5, %p : f32, !llvm.ptr
      llvm.store %c6, %p : !llvm.ptr, !llvm.ptr
      llvm.store %x, %c7 : f32, !llvm.ptr<3>
      llvm.store %c8, %p : f64, !llvm.ptr
      llvm.store %c9, %p : bf16, !llvm.ptr
      llvm.store %c10, %p : f32, !llvm.ptr
      llvm.store %c11, %p : !llvm.struct<(i32, f32)>, !llvm.ptr""",
}


def function(name: str, code: str) -> str:
    end = "" if code.rstrip().endswith("unreachable") else "llvm.return"
    return f'llvm.func @"{name}"({ARGUMENTS}) {{\n{code}\n{end}\n}}\n'


MODULE = (
    "llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x f32>\n"
    "llvm.func @callee(f32) -> f32\nllvm.func @g(f32) -> f32\nllvm.func @none()\nllvm.func @nothing()\n"
    + "".join(function(*item) for item in CODE.items())
)


def binding() -> Any:
    return import_module("llvmlite.binding")


def as_llvm_reads(text: str) -> dict[str, list[str]]:
    """The functions of LLVM IR text after LLVM has read and verified it: name -> lines, values numbered in the order in which they come."""
    module = binding().parse_assembly(text)
    module.verify()
    return {found.name: numbered(str(found)) for found in module.functions if not found.is_declaration}


def numbered(function: str) -> list[str]:
    """The lines of a function; its first block, to which nothing branches, needs no label."""
    names: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        return names.setdefault(found[1] or found[2], f"%{len(names)}")

    function = re.sub(r"\{\n[\w.]+:.*\n", "{\n", function, count=1)
    lines = (re.sub(r"\s*;.*|, !prof !\d+|#\d+", "", line) for line in function.splitlines())
    return [re.sub(r"%([\w.]+)|^([\w.]+)(?=:$)", rename, line) for line in lines if line]


@cache
def by_both() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    ours = print_llvm_ir(parse_ir(MODULE))
    command = [find_tool("mlir-translate", here()).path, "--mlir-to-llvmir"]
    theirs = subprocess.run(command, input=MODULE, capture_output=True, text=True, check=True, timeout=60).stdout
    return as_llvm_reads(ours), as_llvm_reads(theirs)


@needs("llvmlite", "mlir-translate")
def test_instructions_are_those_of_mlir_translate() -> None:
    """Each line of the dialect's table, and what is beside it here."""
    ours, theirs = by_both()
    assert len(CODE) > 250
    assert {code: ours[name] for name, code in CODE.items() if ours[name] != theirs[name]} == {}


def test_every_row_is_compared() -> None:
    written = {op.name for op in parse_ir(MODULE).walk()}
    assert ROWS.keys() <= written


@needs("llvmlite")
def test_branch_weights_are_kept() -> None:
    module = binding().parse_assembly(print_llvm_ir(parse_ir(MODULE)))
    assert re.findall(r'!\{!"branch_weights", (.*)\}', str(module)) == ["i32 2000, i32 1", "i32 5, i32 2, i32 1"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("nvvm.breakpoint", "no LLVM IR for nvvm.breakpoint"),
        ("%0 = llvm.mlir.constant(1.0 : f128) : f128", "no LLVM IR for a float constant of type f128"),
        ("%0 = llvm.alloca inalloca %i x f32 : (i32) -> !llvm.ptr", "no LLVM IR for llvm.alloca with inalloca"),
        ("%0 = nvvm.shfl.sync bfly %i, %b, %i, %i : bf16 -> bf16", "no LLVM IR for nvvm.shfl.sync of bf16"),
        ("nvvm.memory.barrier <cluster>", "no LLVM IR for nvvm.memory.barrier of the scope cluster"),
        (
            "%0 = llvm.call fastcc @callee(%x) : (f32) -> f32",
            "no LLVM IR for llvm.call by the calling convention fastcc",
        ),
        (
            "%0 = llvm.call @callee(%x) : (f32 {llvm.swiftself}) -> f32",
            "no LLVM IR for the parameter attribute llvm.swiftself",
        ),
    ],
)
def test_what_has_no_llvm_ir_is_refused_by_name(code: str, message: str) -> None:
    module = parse_ir(f"llvm.func @callee(f32) -> f32\n{function('f', code)}")
    with pytest.raises(Unsupported) as raised:
        print_llvm_ir(module)
    assert raised.value.message.startswith(message)
    assert raised.value.stage == "llvm-ir"


def test_the_place_of_a_refused_op_is_said() -> None:
    module = parse_ir(function("f", 'nvvm.breakpoint loc("add.1"("gelu.hlo":3:5))'))
    with pytest.raises(Unsupported) as raised:
        print_llvm_ir(module)
    assert raised.value.details == ("add.1 (gelu.hlo:3:5)",)


def test_hints_are_left_out() -> None:
    """Scopes of aliases permit and do not oblige. Of loops see `test_nodes.py`."""
    text = print_llvm_ir(
        parse_ir(
            function(
                "f",
                "%0 = llvm.load %p {alias_scopes = [#llvm.alias_scope<id = distinct[0]<>, domain = <id = distinct[1]<>>>]}"
                " : !llvm.ptr -> f32\nllvm.br ^bb1\n^bb1:",
            )
        )
    )
    assert re.search(r"%v\S* = load float, ptr %p\n  br label %bb1\n", text)
