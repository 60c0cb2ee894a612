"""A fusion as a graph: its instructions, and which instructions each one reads.

graph_of(hlo, "fusion")  ->  [{"name": "square", "op": "multiply", "type": "bf16[6,512,4096]", "reads": [0], "root": False}, ...]
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import type_text
from xla_emitters.emitters.partitioner import sanitize
from xla_emitters.fusions.entry import entry_of
from xla_emitters.fusions.host import kernel_sources
from xla_emitters.fusions.view import view_of

MOST_NODES = 2000


def graphs_of(module: ModuleOp) -> dict[str, list[dict[str, Any]]]:
    """Kernel name -> its graph, from a module at the stage `graph`."""
    views = map(view_of, kernel_sources(module))
    return {sanitize(view.name): _nodes(view.computation) for view in views}


def entry_graph(module: ModuleOp) -> list[dict[str, Any]]:
    """The graph of ENTRY, one node per instruction."""
    return _nodes(entry_of(module))


def _nodes(computation: ComputationOp) -> list[dict[str, Any]]:
    ops = list(computation.instructions)[:MOST_NODES]
    numbers = {op: number for number, op in enumerate(ops)}
    return [
        {
            "name": op.instruction_name.data,
            "op": op.opcode,
            "type": type_text(op.results[0].type) if op.results else "",
            "reads": [
                numbers[operand.owner]
                for operand in op.operands
                if isinstance(operand, OpResult) and isinstance(operand.owner, HloOp) and operand.owner in numbers
            ],
            "root": computation.root in op.results,
        }
        for op in ops
    ]
