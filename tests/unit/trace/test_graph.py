"""Graphs as text: read back by a small reader of Graphviz's language (and by Graphviz, if it is here); the fields of Model Explorer."""

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from in_process import printed

from xla_emitters.tools.main import main
from xla_emitters.trace.graph import Graph, Node, dot, model_explorer

ROOT = Path(__file__).parents[3]
LOOP = ROOT / "examples" / "modules" / "loop.hlo"
STRING = r'"((?:[^"\\]|\\.)*)"'


def read_dot(text: str) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """The labels of the nodes, and the edges. Each line must be one of the forms that the language has."""
    nodes, edges, depth = dict[str, str](), set[tuple[str, str]](), 0
    for line in text.splitlines():
        if re.fullmatch(rf"\s*(?:digraph|subgraph) {STRING} {{", line):
            depth += 1
        elif line.strip() == "}":
            depth -= 1
        elif found := re.fullmatch(rf"\s*{STRING} -> {STRING};", line):
            edges.add((found[1], found[2]))
        elif found := re.fullmatch(rf"\s*{STRING} \[label={STRING}(?:, \w+=\w+)*\];", line):
            nodes[found[1]] = found[2].replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
        else:
            assert re.fullmatch(rf"\s*label={STRING};|  node \[.*\];", line), line
    assert depth == 0
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=text.encode(), check=True, capture_output=True, timeout=60)
    return nodes, edges


def test_names_of_any_kind() -> None:
    """Quotes, backslashes and line breaks in names stay what they are."""
    odd = Graph(
        'a "b"', (Node("0", 'x"\\y', "parameter"), Node("1", "two\nlines", "add", "f32[2]", ("0",), ("in/ner",)))
    )
    nodes, edges = read_dot(dot(odd))
    assert nodes == {"0": 'x"\\y\nparameter', "1": "two\nlines\nadd f32[2]"}
    assert edges == {("0", "1")}
    assert json.loads(json.dumps(model_explorer(odd)))["graphs"][0]["nodes"][1]["namespace"] == "in_ner"


def steps(*words: str) -> str:
    return printed("list", *words)


def test_the_steps_of_a_module() -> None:
    nodes, edges = read_dot(steps(str(LOOP), "--format", "dot"))
    name = {id: label.splitlines()[0] for id, label in nodes.items()}
    assert {(name[a], name[b]) for a, b in edges} == {
        *(("p0", "squared"), ("squared", "sorted"), ("zero_1", "below"), ("zero_1", "next")),
        *(("sorted", "negated"), ("negated", "copy"), ("copy", "r0")),
    }


def test_the_fusions_of_a_program() -> None:
    """The variants of a kernel, of which sizes choose one, are one node."""
    text = steps(str(ROOT / "examples" / "causal_attention.mlir"), "--format", "dot")
    nodes, edges = read_dot(text)
    name = {id: label.splitlines()[0] for id, label in nodes.items()}
    kernels = [label for label in nodes.values() if "\nkernel " in label]
    assert len(kernels) == 1
    assert "variants: " in kernels[0]
    chain = ["dot_general.0", "dot_general.32", "main_kStitch_reduce_0", "dot_general.68", "r0"]
    assert set(pairwise(chain)) <= {(name[a], name[b]) for a, b in edges}


def test_the_instructions_of_a_fusion() -> None:
    """Each operand of the text is an edge."""
    nodes, edges = read_dot(steps(str(ROOT / "examples" / "gelu.hlo"), "--format", "dot", "--fusion", "fusion"))
    by_name = {label.splitlines()[0]: id for id, label in nodes.items()}
    text = (ROOT / "examples" / "gelu.hlo").read_text().partition("\nENTRY")[0]
    lines = re.findall(r"^\s*(?:ROOT )?%([\w.]+) = \S+ \w+\(([^)]*)\)", text, re.MULTILINE)
    wanted = {
        (by_name[operand], by_name[name]) for name, operands in lines for operand in re.findall(r"%([\w.]+)", operands)
    }
    assert len(wanted) > 10
    assert edges == wanted


def test_model_explorers_fields() -> None:
    """GraphCollection: ids are unique, edges begin at nodes, values of attributes are texts."""
    found = json.loads(steps(str(LOOP), "--format", "model-explorer"))
    assert found.keys() == {"label", "graphs"}
    (graph,) = found["graphs"]
    ids = [node["id"] for node in graph["nodes"]]
    assert len(set(ids)) == len(ids)
    for node in graph["nodes"]:
        assert {"id", "label", "namespace", "attrs", "incomingEdges", "outputsMetadata"} == node.keys()
        assert {edge["sourceNodeId"] for edge in node["incomingEdges"]} <= set(ids)
        assert all(isinstance(attr["value"], str) and attr.keys() == {"key", "value"} for attr in node["attrs"])
    assert [node["label"] for node in graph["nodes"] if node["namespace"] == "turns"] == [
        *("below", "next", "negated", "copy")
    ]


def test_fusion_is_for_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", str(LOOP), "--fusion", "squared"]) == 2
    assert main(["list", str(LOOP), "--fusion", "no_such", "--format", "dot"]) in (1, 2)
    assert "no_such" in capsys.readouterr().err
