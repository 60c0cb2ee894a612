"""A graph as the page draws it: plain data, with the nodes that each one reads by their numbers.

graphs_of(hlo)["fusion"]  ->  [{"name": "square", "op": "multiply", "type": "bf16[6]", "reads": [0], "root": False, "hidden": False}, ...]

Hidden nodes are shown when they are asked for.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dynamic.sizes import Sizes
from xla_emitters.explore.instruction_graph import fusion_graphs, instruction_graph
from xla_emitters.graph.entry import entry_of
from xla_emitters.trace.graph import Graph


def graphs_of(module: ModuleOp) -> dict[str, list[dict[str, Any]]]:
    """Kernel name -> its graph, from a module at the stage `graph`."""
    return {name: _nodes(graph) for name, graph in fusion_graphs(module).items()}


def entry_graph(module: ModuleOp, sizes: Sizes | None = None) -> list[dict[str, Any]]:
    """The graph of ENTRY, one node per instruction; ops that compute the program's `sizes` are hidden."""
    return _nodes(instruction_graph("", entry_of(module), sizes))


def _nodes(graph: Graph) -> list[dict[str, Any]]:
    return [
        {
            "name": node.label,
            "op": node.kind,
            "type": node.type,
            "reads": [int(read) for read in node.reads],
            "root": node.is_root,
            "hidden": node.is_hidden,
        }
        for node in graph.nodes
    ]
