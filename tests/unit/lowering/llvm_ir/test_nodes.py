"""Loop annotations in LLVM IR: what `mlir-translate` of LLVM 22 writes, and what is left out."""

import re
import subprocess

import pytest
from tools_here import here, needs

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.lowering.add_line_info import AddLineInfoPass
from xla_emitters.lowering.llvm_ir.llvm_ir_printer import print_llvm_ir
from xla_emitters.lowering.toolchain.tools import find_tool

LOOPS = """
llvm.func @f(%n: i32) {{
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  llvm.br ^head(%c0 : i32)
^head(%i: i32):
  %next = llvm.add %i, %c1 : i32
  %on = llvm.icmp "slt" %next, %n : i32
  llvm.cond_br %on, ^body, ^rest {annotation}
^body:
  llvm.br ^head(%next : i32) {annotation}
^rest:
  llvm.return
}}
"""


def wishes(text: str) -> list[set[str]]:
    """What is asked of each loop, in order."""
    nodes = dict(re.findall(r"^(!\d+) = (?:distinct )?!\{(.*)\}$", text, re.M))
    asked: list[set[str]] = []
    for loop in re.findall(r"!llvm\.loop (!\d+)", text):
        itself, *operands = nodes[loop].split(", ")
        assert itself == loop
        asked.append({nodes[operand] for operand in operands})
    return asked


def annotated(unroll: str) -> str:
    return LOOPS.format(annotation=f"{{loop_annotation = #llvm.loop_annotation<{unroll}>}}")


@needs("mlir-translate")
@pytest.mark.parametrize(
    "unroll",
    [
        "full = true",
        "disable = true",
        "disable = false",
        "count = 4 : i32",
        "runtimeDisable = true, full = true",
        "runtimeDisable = false",
    ],
)
def test_unrolling_is_asked_for_as_mlir_translate_does(unroll: str) -> None:
    module = annotated(f"unroll = <{unroll}>")
    command = [find_tool("mlir-translate", here()).path, "--mlir-to-llvmir"]
    theirs = subprocess.run(command, input=module, capture_output=True, text=True, check=True, timeout=60).stdout
    asked = wishes(print_llvm_ir(parse_ir(module)))
    assert asked == wishes(theirs)
    assert len(asked) == 2


def test_each_loop_has_a_node_of_its_own() -> None:
    names = re.findall(r"!llvm\.loop (!\d+)", print_llvm_ir(parse_ir(annotated("unroll = <full = true>"))))
    assert len(names) == len(set(names)) == 2


@pytest.mark.parametrize(
    "annotation", ["vectorize = <disable = true>", "mustProgress = true", "unroll = <full = false>"]
)
def test_other_wishes_are_left_out(annotation: str) -> None:
    """They permit and do not oblige."""
    assert "!llvm.loop" not in print_llvm_ir(parse_ir(annotated(annotation)))


KERNELS = """
llvm.func @f(%p: !llvm.ptr) attributes {nvvm.kernel} {
  %x = llvm.load %p invariant : !llvm.ptr -> f32 loc("a"("k\\22.hlo":7:2))
  llvm.store %x, %p : f32, !llvm.ptr loc("b"("k\\22.hlo":8:2))
  llvm.return
}
llvm.func @g() { llvm.return }
llvm.func @h(f32) -> f32
"""


def test_each_instruction_has_its_line_and_each_function_its_subprogram() -> None:
    module = parse_ir(KERNELS)
    AddLineInfoPass().apply(make_context(), module)
    text = print_llvm_ir(module)
    assert re.search(
        r"load float, .*!invariant.load !\{\}, !dbg !DILocation\(line: 7, column: \d+, scope: (!\d+)\)", text
    )
    defined = re.findall(r"^define .* !dbg (!\d+) \{$", text, re.M)
    assert len(set(defined)) == 2
    assert all(re.search(rf"^{scope} = distinct !DISubprogram\(name: \"[fg]\"", text, re.M) for scope in defined)
    assert "!dbg" not in next(line for line in text.split("\n") if line.startswith("declare"))
    assert text.count("emissionKind: DebugDirectivesOnly") == 2
    assert '!DIFile(filename: "k\\22.hlo"' in text
    assert '!"Debug Info Version"' in text


def test_without_subprograms_nothing_is_written() -> None:
    text = print_llvm_ir(parse_ir(KERNELS))
    assert "!dbg" not in text
    assert "DI" not in text
