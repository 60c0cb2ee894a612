"""The page's own JavaScript, run by node: differences of lines, places of a graph, costs of accesses."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_lists import but_long

import xla_emitters.explore.page
from xla_emitters.explore.opcodes import sentences
from xla_emitters.explore.page.data import edits_of
from xla_emitters.explore.page.write import SCRIPTS
from xla_emitters.runtime.simt.access_counts import bank_ways, sectors
from xla_emitters.trace import Rewrite

ROOM = Path(xla_emitters.explore.page.__file__).parent
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


Run = Callable[[str, str, Any], Any]
EVALUATE = """
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [script, expression, values] = JSON.parse(line), exported = require(script);
  const value = new Function("values", ...Object.keys(exported), `return ${expression}`);
  console.log(JSON.stringify(value(values, ...Object.values(exported))));
});
"""


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """The value of a JavaScript expression over `values`, with what `script` exports in scope. One node for all: it starts slowly."""
    with subprocess.Popen(
        [NODE or "node", "-e", EVALUATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        into, out = node.stdin, node.stdout

        def answer(script: str, expression: str, values: Any) -> Any:
            print(json.dumps([str(ROOM / script), expression, values]), file=into, flush=True)
            said = out.readline()
            assert said, "node ended: its message is in the captured stderr"
            return json.loads(said)

        yield answer


def test_all_scripts_parse(run: Run) -> None:
    """As functions: those that are no modules look for the page's elements where they are run."""
    code = "for (const path of process.argv.slice(1)) new (require('vm').Script)(require('fs').readFileSync(path, 'utf8'), path)"
    paths = [str(ROOM / name) for name in SCRIPTS]
    done = subprocess.run([NODE or "node", "-e", code, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_hidden_nodes_leave_the_others_connected(run: Run) -> None:
    nodes = [{"reads": []}, {"reads": [0], "hidden": True}, {"reads": [0, 1]}, {"reads": [2]}]
    shown = run(
        "graph.js",
        "values.all.map((all) => shownNodes(values.nodes, all).map((node) => node.reads))",
        {"nodes": nodes, "all": [True, False]},
    )
    assert shown == [[[], [0], [0, 1], [2]], [[], [0], [1]]]


def pairs_of_texts() -> list[tuple[list[str], list[str]]]:
    """Random texts of few different lines, and edited copies of one text of many."""
    random, found = np.random.default_rng(0), list[tuple[list[str], list[str]]]()
    for size in (0, 1, 2, 5, 9, 40) * 20:
        few = [[str(line) for line in random.integers(0, 4, random.integers(0, size + 1))] for _ in range(2)]
        many = [f"line {line}" for line in range(size)]
        edited = [line for line in many if random.random() < 0.8] + ["new"]
        found += [(few[0], few[1]), (many, edited), (edited, many)]
    return found


def test_a_difference_is_both_texts(run: Run) -> None:
    """Rows without what came are the text before, rows without what is gone the text after, each with its line numbers."""
    texts = pairs_of_texts()
    for (before, after), rows in zip(
        texts, run("diff.js", "values.map(([a, b]) => diffRows(a, b, (x) => x))", texts), strict=True
    ):
        assert [row["text"] for row in rows if row["kind"] != "come"] == before
        assert [row["text"] for row in rows if row["kind"] != "gone"] == after
        assert [row["a"] for row in rows if row["kind"] != "come"] == list(range(1, len(before) + 1))
        assert [row["b"] for row in rows if row["kind"] != "gone"] == list(range(1, len(after) + 1))


def test_two_columns_are_both_texts(run: Run) -> None:
    """Each column read down is its text with its line numbers; equal lines are beside each other, though their names differ."""
    texts, key = pairs_of_texts(), "(line) => line.replace(/line/, '')"
    texts.append((["line 1", "x"], ["1", "x"]))
    for sides, pairs in zip(
        texts, run("diff.js", f"values.map(([a, b]) => paired(diffRows(a, b, {key})))", texts), strict=True
    ):
        for place, text in enumerate(sides):
            column = [pair[place] for pair in pairs if pair[place] is not None]
            assert [cell["text"] for cell in column] == list(text)
            assert [cell["line"] for cell in column] == list(range(1, len(text) + 1))
        for left, right in pairs:
            if left and right:
                assert (left["kind"], right["kind"]) in {("same", "same"), ("gone", "come")}
                assert left["kind"] == "gone" or left["text"].replace("line", "") == right["text"].replace("line", "")


def test_a_difference_is_no_longer_than_it_must_be(run: Run) -> None:
    """Where few lines are gone or come, no others are marked."""
    many = [f"line {n}" for n in range(3000)]
    edited = [*many[:100], "new", *many[101:2000], *many[2005:]]
    rows = run("diff.js", "diffRows(values[0], values[1], (x) => x)", [many, edited])
    assert sum(row["kind"] == "gone" for row in rows) == 6
    assert [row["text"] for row in rows if row["kind"] == "come"] == ["new"]


def test_names_of_values_need_not_count(run: Run) -> None:
    rows = run(
        "diff.js",
        "diffRows(values[0], values[1], (x) => x.replace(/%\\w+/g, '%'))",
        [["%1 = f %0", "g"], ["%7 = f %3", "h"]],
    )
    assert [row["kind"] for row in rows] == ["same", "gone", "come"]


def test_equal_lines_are_folded(run: Run) -> None:
    lines = [str(n) for n in range(100)]
    rows = run(
        "diff.js",
        "folded(diffRows(values[0], values[1], (x) => x), 3, new Set())",
        [lines, [*lines[:50], "x", *lines[51:]]],
    )
    assert [row.get("count", 1) for row in rows if row["kind"] == "fold"] == [47, 46]
    assert [row["kind"] for row in rows] == ["fold", *["same"] * 3, "gone", "come", *["same"] * 3, "fold"]


@pytest.mark.parametrize("size", but_long([1, 2, 4, 8, 16], [2, 8]))
def test_costs_of_an_access_are_those_that_the_executor_counts(size: int, run: Run) -> None:
    """Sectors of global memory, and the words in one bank, of random accesses of a warp, some lanes not active."""
    random = np.random.default_rng(size)
    for step in (1, 2, 33, 64):
        offsets = np.where(random.random(32) < 0.9, random.permutation(32) * step * size, -1)
        value = [offsets.tolist(), size]
        (shared,) = run("threads.js", "requestsOf(values[0], values[1], true)", value)
        (from_global,) = run("threads.js", "requestsOf(values[0], values[1], false)", value)
        assert shared["ways"] == bank_ways(offsets[None], size).max()
        assert from_global["sectors"] == sectors(offsets[None], size)[0]


def test_an_instruction_is_below_all_that_it_reads(run: Run) -> None:
    random = np.random.default_rng(1)
    nodes = [{"reads": sorted({int(random.integers(0, n)) for _ in range(2)}) if n > 3 else []} for n in range(60)]
    at = run("graph.js", "placed(values).at", nodes)
    assert all(at[read][1] < at[n][1] for n, node in enumerate(nodes) for read in node["reads"])
    assert len({tuple(place) for place in at}) == len(nodes)


@pytest.mark.parametrize("order", [[2, 1, 0], [0, 2, 1]])
def test_index_of_an_element(order: list[int], run: Run) -> None:
    """The element at a place in memory, by the layout whose fastest varying dimension is first; NumPy gives the places."""
    shape = (5, 3, 7)
    at = np.arange(105).reshape([shape[d] for d in reversed(order)]).transpose(np.argsort(order[::-1]))
    texts = run(
        "threads.js",
        "values[1].map((n) => elementsText(values[0], n * 4, 4))",
        [{"bits": 32, "shape": shape, "order": order}, list(range(105))],
    )
    assert texts == [f"element {n} {[int(each[0]) for each in np.nonzero(at == n)]}" for n in range(105)]


def test_elements_that_share_bytes(run: Run) -> None:
    """Of s4 two are in a byte, of bf16 two in four bytes; the last byte of an odd number of s4 is one element."""
    calls = "[elementsText(values[0], 1, 1), elementsText(values[0], 4, 1), elementsText(values[1], 8, 4)]"
    nibbles, halves = ({"bits": bits, "shape": [3, 3], "order": [1, 0]} for bits in (4, 16))
    assert run("threads.js", calls, [nibbles, halves]) == [
        "elements 2 [0, 2] to 3 [1, 0]",
        "element 8 [2, 2]",
        "elements 4 [1, 1] to 5 [1, 2]",
    ]


BEFORE = """
func.func @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %0 = scf.for %i = %c0 to %c8 step %c1 iter_args(%t = %arg0) -> (tensor<8xf32>) {
    %1 = tensor.extract %t[%i] : tensor<8xf32>
    %2 = arith.addf %1, %1 : f32
    scf.yield %t : tensor<8xf32>
  }
}
"""
AFTER = BEFORE.replace("%2 = arith.addf %1, %1", "%7 = arith.addf %1, %1").replace("[%i] :", "[%c0] :")
AFTER = AFTER.replace("%1, %1 : f32", "%1, %1 : f32\n    %8 = arith.mulf %7, %1 : f32")


def test_the_ops_of_a_text_as_a_graph(run: Run) -> None:
    """Read by hand: who defines each name; a line that differs by names alone is no change, a second one of its kind is."""
    texts = {"before": BEFORE.splitlines(), "after": AFTER.splitlines()}
    nodes = run("graph.js", "irNodes(values.after, values.before)", texts)
    assert [(node["op"], node["reads"], node["changed"]) for node in nodes] == [
        ("func.func", [], False),
        ("arith.constant", [], False),
        ("scf.for", [1, 0], False),
        ("tensor.extract", [2, 1], False),
        ("arith.addf", [3], False),
        ("arith.mulf", [4, 3], True),
        ("scf.yield", [2], False),
    ]
    assert [node["hidden"] for node in nodes[:3]] == [True, True, False]
    assert [nodes[n]["type"] for n in (2, 3)] == ["(tensor<8xf32>)", "tensor<8xf32>"]
    assert run("graph.js", "irNodes(values)", ["HloModule m", "  %a = f32[8]{0} add(%b, %c)"]) == []
    generic = ['  "cf.br"(%0)[^bb1] : (i32) -> ()', "^bb1(%1: i32):", '  "x.y"(%1) : (i32) -> ()']
    assert [(node["op"], node["reads"]) for node in run("graph.js", "irNodes(values)", generic)] == [
        ("cf.br", []),
        ("block", []),
        ("x.y", [1]),
    ]


@pytest.mark.parametrize(
    ("stage", "text", "wanted"),
    [
        ("hlo", '%a = f32[8]{0} add(%b, %c), metadata={op_name="add"}', ["add"]),
        ("graph", "%a = hlo.dynamic_slice(%b) : tensor<8xf32>", ["hlo.dynamic_slice"]),
        ("xla_gpu", "%0 = arith.addf %1, %2 : f32", ["arith.addf"]),
        ("ptx", "@%p1 fma.rn.f32 \t%r1, %r2, %r3, %r4;", ["fma.rn.f32"]),
        ("sass", "/*0010*/ FFMA.FTZ R1, R2, R3, R4 ; LDG.E R2, desc[UR4][R2.64]", ["FFMA.FTZ", "LDG.E"]),
    ],
)
def test_what_an_op_does_is_its_title(stage: str, text: str, wanted: list[str], run: Run) -> None:
    values = {"text": text, "stage": stage, "table": sentences()}
    html = run(
        "listing.js", "coloured(values.text, (word, next) => helpFor(word, next, values.stage, values.table))", values
    )
    assert re.findall(r'title="[^"]+">([^<]+)', html) == wanted
    assert unescape(re.sub(r"<[^>]*>", "", html)) == text


def test_the_texts_between_rewrites_are_those_that_were_recorded(run: Run) -> None:
    """Edits that the page applies one after the other; random texts, longer and shorter than the one before."""
    for one, two in pairs_of_texts()[::5]:
        texts = [one, two, one, one, two]
        rewrites = [Rewrite("p", "", 0, (), (), (), "\n".join(text)) for text in texts[1:]]
        rows = edits_of("\n".join(one), rewrites)
        # A text without lines has one, which is empty.
        assert run("rewrites.js", "rewriteTexts(values[0], values[1])", [one or [""], rows]) == [
            each or [""] for each in texts
        ]


def test_names_of_ops_are_counted(run: Run) -> None:
    names = ["scf.yield", "arith.addf", "scf.yield"]
    assert run("rewrites.js", "countedNames(values)", names) == "2 scf.yield, arith.addf"
    assert run("rewrites.js", "countedNames(values)", list("abcdefg")) == "a, b, c, d, e and 2 more kinds"
