"""Instructions as a graph: those of a fusion, or of ENTRY, and which instructions each one reads.

Ops that only compute sizes, which most ops of a program with unknown sizes do, are marked, so that a view can hide them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import type_text
from xla_emitters.dynamic.sizes import Sizes
from xla_emitters.graph.control_computations import kernel_sources
from xla_emitters.graph.view import view_of
from xla_emitters.pipelines.compiler import plan_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_listing import is_size, symbolic_type
from xla_emitters.rewrite.kernel_entry import sanitize
from xla_emitters.trace.graph import Graph, Node

MOST_NODES = 2000


def fusion_graphs(module: ModuleOp) -> Mapping[str, Graph]:
    """Kernel name -> its graph, from a module at the stage `graph`."""
    views = {sanitize(view.name): view for view in map(view_of, kernel_sources(module))}
    return {name: instruction_graph(name, view.computation) for name, view in views.items()}


def kernel_graph(module: ModuleOp, options: CompileOptions) -> Graph:
    """The graph of the kernel that `options.fusion` becomes; of one that is split, each in a namespace. raises what the passes raise"""
    kernels = plan_module(module, options).kernels
    graphs = [instruction_graph(kernel.name, kernel.view.computation) for kernel in kernels]
    if len(graphs) == 1:
        return graphs[0]
    nodes = [
        replace(
            node,
            id=f"{graph.name}/{node.id}",
            reads=tuple(f"{graph.name}/{read}" for read in node.reads),
            namespace=(graph.name,),
        )
        for graph in graphs
        for node in graph.nodes
    ]
    return Graph(options.fusion or "module", tuple(nodes))


def instruction_graph(name: str, computation: ComputationOp, sizes: Sizes | None = None) -> Graph:
    """The graph of a computation, a node per instruction; of a program with its `sizes`."""
    hidden = set[HloOp]() if sizes is None else _of_sizes(computation, sizes)
    ops = list(computation.instructions)[:MOST_NODES]
    numbers = {op: str(number) for number, op in enumerate(ops)}
    nodes = tuple(
        Node(
            numbers[op],
            op.instruction_name.data,
            op.opcode,
            _type(op, sizes),
            tuple(
                numbers[operand.owner]
                for operand in op.operands
                if isinstance(operand, OpResult) and isinstance(operand.owner, HloOp) and operand.owner in numbers
            ),
            is_root=computation.root in op.results,
            is_hidden=op in hidden,
        )
        for op in ops
    )
    return Graph(name, nodes)


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
