"""A graph as a value, and its printers: Graphviz's language, and the JSON of Model Explorer.

    Graph("softmax", (Node("0", "x", "parameter", "f32[8]"), Node("1", "exp", "exponential", "f32[8]", reads=("0",))))

    digraph softmax {                                            {"label": "softmax", "graphs": [{"id": "softmax", "nodes": [
      "0" [label="x\\nparameter f32[8]", shape=ellipse];            {"id": "1", "label": "exp", "namespace": "",
      "0" -> "1"; }                                                  "incomingEdges": [{"sourceNodeId": "0", ...}], ...

Source: https://graphviz.org/doc/info/lang.html; Model Explorer, graph_builder.py, which documents GraphCollection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SHAPES: Mapping[str, str] = {"parameter": "ellipse", "result": "ellipse", "library call": "box3d", "copy": "cds"}
"""Kind of a node -> Graphviz's shape; a box for all others."""


@dataclass(frozen=True)
class Node:
    """A node; those that it reads are named by their ids.

    kind        the opcode of an instruction, "kernel", "library call" ...
    type        of its result; "" without one
    namespace   what it is inside of, the outermost first: a loop, a branch
    attributes  more about it: name -> text
    is_hidden   whether a view may leave it out: it only computes sizes
    """

    id: str
    label: str
    kind: str
    type: str = ""
    reads: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    is_root: bool = False
    is_hidden: bool = False


@dataclass(frozen=True)
class Graph:
    name: str
    nodes: tuple[Node, ...]


def dot(graph: Graph) -> str:
    """The graph in Graphviz's language; a namespace is a cluster."""
    lines = [f"digraph {_quoted(graph.name)} {{", '  node [shape=box, fontname="sans-serif", fontsize=10];']
    lines += _clusters(graph.nodes, (), "  ")
    known = {node.id for node in graph.nodes}
    lines += [
        f"  {_quoted(read)} -> {_quoted(node.id)};" for node in graph.nodes for read in node.reads if read in known
    ]
    return "\n".join((*lines, "}"))


def _clusters(nodes: tuple[Node, ...], around: tuple[str, ...], margin: str) -> Iterator[str]:
    depth, inside = len(around), dict[str, list[Node]]()
    for node in nodes:
        if node.namespace != around:
            inside.setdefault(node.namespace[depth], []).append(node)
            continue
        style = ", style=bold" if node.is_root else ", style=dashed" if node.is_hidden else ""
        more = [f"{key}: {value}" for key, value in node.attributes.items()]
        text = "\n".join([node.label, f"{node.kind} {node.type}".rstrip(), *more])
        yield f"{margin}{_quoted(node.id)} [label={_quoted(text)}, shape={SHAPES.get(node.kind, 'box')}{style}];"
    for name, group in inside.items():
        within = (*around, name)
        yield f"{margin}subgraph {_quoted('cluster ' + '/'.join(within))} {{"
        yield f"{margin}  label={_quoted(name)};"
        yield from _clusters(tuple(group), within, f"{margin}  ")
        yield f"{margin}}}"


def _quoted(text: str) -> str:
    """
    >>> print(_quoted('a "b"\\n\\\\c'))
    "a \\"b\\"\\n\\\\c"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def model_explorer(graph: Graph) -> dict[str, Any]:
    """The graph as a GraphCollection of Model Explorer."""
    return {"label": graph.name, "graphs": [{"id": graph.name, "nodes": [_explored(node) for node in graph.nodes]}]}


def _explored(node: Node) -> dict[str, Any]:
    shown = {"kind": node.kind, **({"type": node.type} if node.type else {}), **node.attributes}
    return {
        "id": node.id,
        "label": node.label,
        "namespace": "/".join(name.replace("/", "_") for name in node.namespace),
        "attrs": [{"key": key, "value": value} for key, value in shown.items()],
        "incomingEdges": [
            {"sourceNodeId": read, "sourceNodeOutputId": "0", "targetNodeInputId": str(number)}
            for number, read in enumerate(node.reads)
        ],
        "outputsMetadata": [{"id": "0", "attrs": [{"key": "tensor_shape", "value": node.type}]}] if node.type else [],
    }
