"""The map: which passes run in which order, that each has a reason and a name, and that each depends on the IR alone."""

import re
from itertools import compress
from pathlib import Path

import pytest
from long_lists import but_long
from runtime.small_programs import EVERY_PASS_ON_HLO, PROGRAMS, TARGET, changes

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.graph.plan import plan_program
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import kernel_rows
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES, GRAPH, KERNEL, STAGES
from xla_emitters.pipelines.program_passes import PROGRAM_GRAPH
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.tools import opt
from xla_emitters.universe import PASSES as PASS_FILES

OPTIONS = CompileOptions(target=TARGET)
NAMES = [row.make(OPTIONS).name for row in KERNEL]
GRAPH_NAMES = [row.make(OPTIONS).name for row in GRAPH]


# ---- the order ----------------------------------------------------------------------------------------------------------------------


def test_stages_are_those_that_users_are_told() -> None:
    assert STAGES == (
        *("hlo", "graph", "partition", "xla_gpu", "inlined", "scf", "flat", "vectorized", "unrolled"),
        *("llvm-dialect", "llvm", "ptx", "sass"),
    )
    assert EXECUTABLE_STAGES == tuple(name for name in STAGES if name not in ("partition", "llvm", "ptx", "sass"))


@pytest.mark.parametrize(
    ("stage", "ending"),
    [
        ("inlined", ["inline", "xla-canonicalize", "xla-cse"]),
        ("scf", ["xla-lower-xla-loops-to-scf"]),
        (
            "flat",
            [
                *("xla-flatten-tensors", "xla-loop-invariant-code-motion", "xla-unswitch-loops"),
                "xla-loop-invariant-code-motion",
            ],
        ),
        ("vectorized", ["xla-vectorize-loads-stores"]),
        ("unrolled", ["xla-gpu-optimize-loops", "xla-canonicalize", "xla-cse"]),
    ],
)
def test_a_stage_ends_with_its_passes(stage: str, ending: list[str]) -> None:
    rows = kernel_rows(CompileOptions(stage=stage))
    assert rows == KERNEL[: len(rows)]
    assert NAMES[: len(rows)][-len(ending) :] == ending
    assert rows[-1].stage == stage


@pytest.mark.parametrize("stage", ["llvm-dialect", "llvm", "ptx", "sass"])
def test_the_last_stage_ends_with_the_last_pass(stage: str) -> None:
    assert kernel_rows(CompileOptions(stage=stage)) == KERNEL


@pytest.mark.parametrize("stage", ["hlo", "graph", "partition", "xla_gpu"])
def test_stages_before_the_first_pass_have_none(stage: str) -> None:
    assert kernel_rows(CompileOptions(stage=stage)) == ()


def test_passes_on_hlo_begin_with_the_stage_hlo_and_end_with_graph() -> None:
    assert [row.stage for row in GRAPH] == ["hlo", *[None] * (len(GRAPH) - 2), "graph"]
    assert GRAPH_NAMES.index("xla-select-fusion") == 1


def test_every_pass_of_the_pipeline_can_be_named_on_the_command_line() -> None:
    assert {*NAMES, *GRAPH_NAMES, *(row.make(OPTIONS).name for row in PROGRAM_GRAPH)} <= set(PASS_FILES)


def test_every_row_says_why_it_stands_there() -> None:
    assert all(len(row.reason.split()) > 3 for row in (*GRAPH, *KERNEL, *PROGRAM_GRAPH))


def test_the_stages_of_a_program_before_it_has_buffers() -> None:
    assert [row.stage for row in PROGRAM_GRAPH if row.stage] == ["hlo", "graph", "placed"]
    assert PROGRAM_GRAPH[-1].stage == "placed"


# ---- each pass depends on the IR alone ----------------------------------------------------------------------------------------------


def renamed(text: str) -> str:
    """The text with its SSA values numbered as they come: names are hints, and the printer makes some up."""
    numbers: dict[str, str] = {}
    return re.sub(r"%[\w$.-]+", lambda found: numbers.setdefault(found[0], f"%{len(numbers)}"), text)


# GELU has vectors, functions of libdevice and no ragged end; the others each lack something of it.
@pytest.mark.parametrize("program", but_long(PROGRAMS, ("ragged", "bytes", "two_results")))
def test_each_pass_alone_on_text_does_what_it_does_in_the_pipeline(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text before every row, locations and all, through `xla-emitters-opt -p NAME`, is the text after it."""
    source = plan_program(read_module(PROGRAMS[program])).kernels[0].view
    kernel, context = emit_fusion(source, OPTIONS.device), make_context()
    path = tmp_path / "before.mlir"
    for number, row in enumerate(KERNEL):
        path.write_text(print_ir(kernel, locations=True))
        kernel_pass = row.make(OPTIONS)
        kernel_pass.apply(context, kernel)
        code = opt.main([str(path), "-p", str(kernel_pass.spec(include_default=True)), "--print-debuginfo"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), f"row {number}, {kernel_pass.name}"
        assert renamed(out.strip()) == renamed(print_ir(kernel, locations=True).strip()), (
            f"row {number}, {kernel_pass.name}"
        )


def test_each_pass_on_hlo_alone_on_text_does_what_it_does_in_the_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text before every row through `xla-emitters-opt -p NAME` is the text after it; but for CHANGE_NOTHING each changes it."""
    module, context, path = parse_hlo(EVERY_PASS_ON_HLO), make_context(), tmp_path / "before.mlir"
    changed: list[str] = []
    for row in GRAPH:
        before = print_hlo(module)
        path.write_text(print_ir(module, locations=True))
        graph_pass = row.make(OPTIONS)
        graph_pass.apply(context, module)
        code = opt.main([str(path), "-p", str(graph_pass.spec(include_default=True)), "--print-debuginfo"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), graph_pass.name
        assert renamed(out.strip()) == renamed(print_ir(module, locations=True).strip()), graph_pass.name
        if print_hlo(module) != before:
            changed.append(graph_pass.name)
    assert changed == [*compress(GRAPH_NAMES, changes(GRAPH_NAMES))]
