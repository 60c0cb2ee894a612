"""Line information in LLVM IR: which locations are written, and the nodes that they refer to."""

from __future__ import annotations

import re

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.lowering.add_line_info import AddLineInfoPass
from xla_emitters.lowering.llvm_ir.printer import print_llvm_ir

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
