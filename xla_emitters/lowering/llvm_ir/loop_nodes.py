"""What LLVM is asked to do with a loop, in LLVM IR: `!llvm.loop` of the branch back to its head.

    llvm.br ^head(%i) {loop_annotation = #llvm.loop_annotation<unroll = <full = true>>}
    ->
      br label %head, !llvm.loop !101
    !100 = !{!"llvm.loop.unroll.full"}
    !101 = distinct !{!101, !100}

Written is what is asked about unrolling. The rest of an annotation permits and does not oblige: it is left out.
Source: LLVM language reference, "llvm.loop"; MLIR 22, LoopAnnotationTranslation.cpp.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.llvm.metadata import NamedParametersAttr
from xla_emitters.lowering.llvm_ir.nodes import Nodes

# Parameter of `#llvm.loop_unroll` -> the node where it is true, and where it is false.
_SWITCHES = {
    "disable": ('!"llvm.loop.unroll.disable"', '!"llvm.loop.unroll.enable"'),
    "runtimeDisable": ('!"llvm.loop.unroll.runtime.disable", i1 true', '!"llvm.loop.unroll.runtime.disable", i1 false'),
    "full": ('!"llvm.loop.unroll.full"', ""),
}


def loop_text(annotation: Attribute | None, nodes: Nodes) -> str:
    """`, !llvm.loop !101` behind a branch; "" where there is nothing to write."""
    unroll = annotation.get("unroll") if isinstance(annotation, NamedParametersAttr) else None
    if not isinstance(unroll, llvm.LoopUnrollAttr):
        return ""
    wishes: list[str] = []
    for name, (if_true, if_false) in _SWITCHES.items():
        if isinstance(value := unroll.get(name), IntegerAttr) and (text := if_true if value.value.data else if_false):
            wishes.append(text)
    if isinstance(count := unroll.get("count"), IntegerAttr):
        wishes.append(f'!"llvm.loop.unroll.count", i32 {count.value.data}')
    return f", !llvm.loop {nodes.distinct(*(nodes.defined(f'!{{{wish}}}') for wish in wishes))}" if wishes else ""
