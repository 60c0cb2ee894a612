"""A fusion as a graph: its instructions, and which instructions each one reads.

graph_of(hlo, "fusion")  ->  [{"name": "square", "op": "multiply", "type": "bf16[6]", "reads": [0], "root": False, "hidden": False}, ...]

Ops that only compute sizes, which most ops of a program with unknown sizes do, are hidden until they are asked for.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import type_text
from xla_emitters.emitters.partitioner import sanitize
from xla_emitters.fusions.control_computations import kernel_sources
from xla_emitters.fusions.entry import entry_of
from xla_emitters.fusions.view import view_of
from xla_emitters.pipelines.program_listing import is_size, symbolic_type
from xla_emitters.sizes import Sizes

MOST_NODES = 2000


def graphs_of(module: ModuleOp) -> dict[str, list[dict[str, Any]]]:
    """Kernel name -> its graph, from a module at the stage `graph`."""
    views = map(view_of, kernel_sources(module))
    return {sanitize(view.name): _nodes(view.computation) for view in views}


def entry_graph(module: ModuleOp, sizes: Sizes | None = None) -> list[dict[str, Any]]:
    """The graph of ENTRY, one node per instruction; ops that compute the program's `sizes` are hidden."""
    return _nodes(entry_of(module), sizes)


def _of_sizes(computation: ComputationOp, sizes: Sizes) -> set[HloOp]:
    """The ops that compute sizes or check them, and the constants that only such ops read."""
    found = set[HloOp]()
    for op in reversed(list(computation.instructions)):
        readers = [use.operation for result in op.results for use in result.uses]
        is_read_by_sizes = bool(readers) and all(reader in found for reader in readers)
        is_own = op.opcode == "shape-assertion" or (
            op.opcode != "parameter" and bool(op.results) and is_size(op, sizes)
        )
        if is_own or (op.opcode == "constant" and is_read_by_sizes):
            found.add(op)
    return found - {op for op in found if computation.root in op.results}


def _type(op: HloOp, sizes: Sizes | None) -> str:
    if not op.results:
        return ""
    return type_text(op.results[0].type) if sizes is None else symbolic_type(op.results[0], sizes)


def _nodes(computation: ComputationOp, sizes: Sizes | None = None) -> list[dict[str, Any]]:
    hidden = set[HloOp]() if sizes is None else _of_sizes(computation, sizes)
    ops = list(computation.instructions)[:MOST_NODES]
    numbers = {op: number for number, op in enumerate(ops)}
    return [
        {
            "name": op.instruction_name.data,
            "op": op.opcode,
            "type": _type(op, sizes),
            "reads": [
                numbers[operand.owner]
                for operand in op.operands
                if isinstance(operand, OpResult) and isinstance(operand.owner, HloOp) and operand.owner in numbers
            ],
            "root": computation.root in op.results,
            "hidden": op in hidden,
        }
        for op in ops
    ]
