"""Pages that are made of the code while the site is built: the tours, passes, commands, what is supported."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import mkdocs_gen_files

sys.path.insert(0, str(Path(__file__).parent))
import drawings

import xla_emitters as xe
from xla_emitters import extend
from xla_emitters.device import DEVICES
from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dtypes import DTYPES, Kind
from xla_emitters.emitters.emit import EMITTERS, opcodes_with_code
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import GRAPH, KERNEL, STAGES
from xla_emitters.program import Program
from xla_emitters.tools.main import VERBS, build_parser
from xla_emitters.trace.html import diff_html
from xla_emitters.universe import all_passes

ROOT = Path(__file__).parents[1]


def write(name: str, text: str) -> None:
    with mkdocs_gen_files.open(name, "w") as page:
        page.write(text)


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def tour(file: str, title: str, draw: Callable[[Program], str], before_all: str = "") -> str:
    """Each stage of a fusion, and how it differs from the one before; drawings after the reasons."""
    os.chdir(ROOT)  # so that places in the page are the repository's
    program = xe.compile(file, stage="ptx", record="passes", cache=False)
    trace = program.trace
    parts = [
        NOT_SEARCHED,
        f"# {title}\n",
        f"Made by compiling `{file}` while this page was built. Put the mouse on an instruction to see what became of it.\n",
        f"{before_all}\n",
        f"{trace.show().text}\n",
        "## Why this code\n",
        fenced(program.explain(), "text"),
        draw(program),
    ]
    stages = [stage for stage in trace.stages if stage not in ("hlo", "partition")]
    reasons = {row.stage: row for row in KERNEL if row.stage}
    for before, after in zip([None, *stages], stages, strict=False):
        parts.append(f"## {after}\n")
        if after in reasons:
            parts.append(passes_of(after))
        ir = trace[after].ir or ""
        if before is None or after == "ptx":
            parts.append(fenced(ir, "ptx" if after == "ptx" else "mlir"))
        else:
            parts.append(diff_html(trace[before].ir or "", ir, names=(before, after)).text + "\n")
            parts.append(
                f"<details><summary>the whole module at {after}</summary>\n\n{fenced(ir, 'mlir')}\n</details>\n"
            )
    return "\n".join(parts)


def tour_of_any_size() -> str:
    """A program with unknown sizes: its sizes, the ops after each pass, the buffers of runs, and its text at every stage."""
    program, before = drawings.program_of_any_size(record="stages", cache=False), drawings.program_of_any_size("lmhlo")
    trace = program.trace
    counts = [(step.name, sum(step.op_counts.values())) for step in trace.steps]
    widest = max(count for _, count in counts)
    longest = max(len(name) for name, _ in counts)
    rows = [f"{name:{longest}} {count:5} {'#' * (BAR * count // widest)}" for name, count in counts]
    parts = [
        NOT_SEARCHED,
        "# The tour: attention at any size\n",
        ANY_SIZE,
        "## What every size is\n",
        fenced(program.compilation.sizes.report(), "text"),
        "## Ops after each pass\n",
        fenced("\n".join(rows), "text"),
        "## Buffers over time\n",
        "A rectangle is a buffer: from the step that makes it to the step that frees it, as high as its bytes. Those that make the peak "
        "are orange; the line is the sum of what lives then. A buffer is drawn where it fits beside others, which is not its address. "
        "Scores are `s` by `s`, so with more tokens they are nearly all of the memory. Put the mouse on a buffer for its name.\n",
        drawings.buffers(program, before, {"b": 2, "s": 16}, {"b": 2, "s": 64}),
    ]
    for stage in trace.stages:
        language = {"hlo": "hlo", "graph": "hlo"}.get(stage, "mlir")
        text = trace[stage].ir or ""
        lines = text.count("\n")
        listing = fenced(text, language if lines <= MOST_COLOURED_LINES else "text")
        folded = f"<details><summary>all {lines} lines at {stage}</summary>\n\n{listing}\n</details>\n"
        parts += [f"## {stage}\n", listing if lines <= MOST_LINES else folded]
    return "\n".join(parts)


NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n"
"""The head of a page of listings: in the search index their op names would hide the pages that explain the ops."""
MOST_LINES = 150
"""Longer listings of a program are folded."""
MOST_COLOURED_LINES = 1000
"""Longer listings have no colours, which would make the page eight times as large."""
BAR = 36
"""Characters of the longest bar in the table of ops."""
ANY_SIZE = """\
`examples/causal_attention.mlir` is one head of causal attention over `f32[b,s,8]`, exported by JAX with a batch of `b` and `s` tokens, and
compiled once for all sizes. [Programs with unknown sizes](programs.md) explains the steps; this page was made by compiling the file.
"""
TRANSPOSE = """\
A warp reads 32 neighbours of a row and puts them below each other into a tile of shared memory; after the barrier it takes a row of the
tile and writes it to a row of the result. Watch the tile: `tensor<32x1x33xf32>` at `xla_gpu`, 1056 elements at `flat`, a global of address
space 3 in the LLVM dialect. `notebooks/02_transpose_through_shared_memory.py` draws the same with sliders.
"""
REDUCTION = """\
A residual is added, the sum is a result of its own, and its squares are summed by rows. 128 threads share a row: each sums sixteen
elements, the lanes of a warp meet by shuffles, the four warps in shared memory, and one thread writes. Watch `xla_gpu.shuffle_reduce`:
five `gpu.shuffle` at `inlined`, `shfl.sync` in PTX. `notebooks/03_reduction_in_a_warp.py` has other shapes to choose from.
"""


def passes_of(stage: str) -> str:
    """The passes that lead to a stage from the one before, each with the reason for its place."""
    rows, lines = list[str](), []
    for row in KERNEL:
        name = row.make(CompileOptions()).name
        rows.append(f"- [`{name}`](passes.md#{name}): {row.reason}")
        if row.stage:
            if row.stage == stage:
                lines = rows
            rows = []
    return "\n".join(lines) + "\n"


def passes() -> str:
    """A section for each pass: the head of its file, which is its documentation."""
    order: dict[str, list[str]] = {}
    for row in (*GRAPH, *KERNEL):
        order.setdefault(row.make(CompileOptions()).name, []).append(row.reason)
    parts = [
        "# Passes\n",
        "In the order of their first run. Each is a file, runs alone with `xla-emitters-opt -p NAME`, and this is the file's head.\n",
        FILTER,
    ]
    factories = all_passes()
    for name in [*order, *sorted(set(factories) - set(order))]:
        module = inspect.getmodule(factories[name]())
        assert module is not None
        where = Path(module.__file__ or "").relative_to(ROOT)
        parts.append(f"## {name}\n")
        parts.append(f"`{where}`\n")
        parts += [f"- in the pipeline: {reason}\n" for reason in order.get(name, [])]
        parts.append(linked(inspect.getdoc(module) or ""))  # what is indented there is code, here too
        parts.append("")
    return "\n".join(parts)


FILTER = (
    '<label>Show passes with <input id="filter-passes" type="search" placeholder="vectorize, shared memory ..."></label> '
    '<output id="passes-shown"></output>\n'
)
"""`filter.js` gives it its function."""


def linked(text: str) -> str:
    """The text, in which what a reader of the site cannot know is a link."""
    pages = {path.name[0]: path.name for path in (ROOT / "docs" / "reference").glob("[0-9]-*.md")}
    pages["contracts"] = "contracts.md"
    text = re.sub(r"(?<!\[)\b([Tt]he )?(seed document)\b", r"\1[\2](reference/index.md#the-seed-documents)", text)
    return re.sub(
        r"docs/reference/(\d|contracts)\b", lambda found: f"[reference {found[1]}](reference/{pages[found[1]]})", text
    )


def api() -> str:
    """Every public name: its signature and its docstring, from the file that has it."""
    parts = ["# Python\n", "`import xla_emitters as xe`. What is not on this page may change without notice.\n"]
    for name in sorted(xe._HOMES, key=str.lower):
        value = getattr(xe, name)
        home = value.__module__ if hasattr(value, "__qualname__") else f"xla_emitters.{xe._HOMES[name]}"
        parts.append(f"::: {home}.{name}\n    options:\n      heading: xe.{name}\n      toc_label: {name}\n")
    names = ", ".join(f"`{name}`" for name in sorted(extend.__all__) if name not in xe.__all__)
    parts.append(
        f"## For plugins\n\n[Plugins](plugins.md) import from `xla_emitters.extend`, besides names of this page: {names}.\n"
    )
    return "\n".join(parts)


def commands() -> str:
    """The help of every verb."""
    parser = build_parser(*VERBS)
    (verbs,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    parts = ["# Commands\n", fenced(parser.format_help(), "text")]
    for name, verb in verbs.choices.items():
        if name != "opt":
            parts += [f"## {name}\n", fenced(verb.format_help(), "text")]
    parts += [
        "## opt\n",
        "`xla-emitters opt` is `xla-emitters-opt`: xDSL's opt driver with our dialects, passes, and HLO text.\n",
    ]
    return "\n".join(parts)


def elementwise_table() -> str:
    """By elementwise opcode and kind of type: whether there is code, or only a meaning, or HLO itself does not allow it."""
    lines = [f"| opcode | {' | '.join(KINDS.values())} |", "|---" * (len(KINDS) + 1) + "|"]
    for opcode, op in sorted(HLO_OPS.items()):
        if not issubclass(op, ElementwiseOp):
            continue
        row, is_special = op.ROW, op.emit_element is not ElementwiseOp.emit_element
        cells = [
            "yes" if kind in row.takes and (is_special or kind in row.code) else "no" if kind in row.takes else "-"
            for kind in KINDS
        ]
        lines.append(f"| `{opcode}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


KINDS = {
    Kind.PRED: "pred",
    Kind.SIGNED: "signed",
    Kind.UNSIGNED: "unsigned",
    Kind.FLOAT: "float",
    Kind.COMPLEX: "complex",
}


def types_table() -> str:
    """Every element type: how an array of it is stored, and the type of an element in kernels."""
    lines = ["| type | bits in memory | in kernels | NumPy |", "|---|---|---|---|"]
    lines += [f"| `{t.name}` | {t.bits} | `{t.storage_type}` | `{t.numpy.name}` |" for t in DTYPES]
    return "\n".join(lines) + "\n"


def supported() -> str:
    """What compiles, what only parses, and what is refused."""
    code = opcodes_with_code()
    without = sorted(set(HLO_OPS) - set(code))
    others = [opcode for opcode in code if not issubclass(HLO_OPS[opcode], ElementwiseOp)]
    parts = [
        "# What is supported, and what is not\n",
        "What is not supported is refused by name, with its place in the HLO text, and exit code 1.\n",
        "## Elementwise opcodes\n",
        "By the kind of the type that decides: **yes**, there is code; **no**, HLO allows it and emission refuses it; "
        "-, HLO does not allow it.\n",
        elementwise_table(),
        "## Other opcodes with code\n",
        "Those that move elements take every type.\n",
        ", ".join(f"`{opcode}`" for opcode in others) + "\n",
        "## Opcodes that are read, verified and printed, and refused by emission\n",
        ", ".join(f"`{opcode}`" for opcode in without) + "\n",
        "## Element types\n",
        types_table(),
        "## Emitters\n",
        ", ".join(f"`{emitter.name}`" for emitter in EMITTERS) + ". The first that takes a fusion makes its kernel.\n",
        "## Stages\n",
        ", ".join(f"`{stage}`" for stage in STAGES) + "\n",
        "## Devices\n",
        "| name | architecture | multiprocessors |\n|---|---|---|\n"
        + "".join(f"| {d.name} | {d.architecture} | {d.cores} |\n" for d in DEVICES),
        "## Refused by design\n",
        "- fusions of kind Triton, cuDNN and custom, and library custom-calls: they are not XLA's emitters'\n"
        "- dynamic dimensions: `f32[?]` and `f32[<=8]` are read, verified and printed\n"
        "- tuples inside a fusion, but for its root\n",
    ]
    return "\n".join(parts)


sys.setrecursionlimit(10_000)
write("tour.md", tour("examples/gelu.hlo", "The tour: GELU at every stage", drawings.gelu))
write(
    "tour_transpose.md",
    tour("examples/transpose.hlo", "The tour: a transpose at every stage", drawings.transpose, TRANSPOSE),
)
write(
    "tour_reduction.md",
    tour("examples/row_sum.hlo", "The tour: a reduction at every stage", drawings.reduction, REDUCTION),
)
write("tour_program.md", tour_of_any_size())
write("passes.md", passes())
write("api.md", api())
write("commands.md", commands())
write("supported.md", supported())
