"""The second seed document's passes in its order, from the table in docs/second_document.md: by hand, and as a pipeline against JAX."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from long_lists import but_long
from runtime.programs_table import difference, programs

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.text.stablehlo import parse_stablehlo
from xla_emitters.tools.pass_list import parse_passes, pipeline_of

PAGE = Path(__file__).parents[2] / "docs" / "second_document.md"
LAST, FLATTEN = "disc-rewrite-ral-api", "disc-flatten-memref"


def order() -> list[str]:
    """The passes in the table's third column."""
    rows = (line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| "))
    return [name for cells in rows if len(cells) == 6 for name in re.findall(r"`(disc-[\w-]+)`", cells[3])]


@cache
def compiled(name: str) -> Program:
    program = programs()[name]
    names = [each for each in order() if each != LAST]
    names.insert(names.index("disc-dead-temp-buffer-removal") + 1, FLATTEN)
    module = parse_stablehlo(program.text(), f"{name}.mlir")
    return compile_program(module, CompileOptions(pipeline=pipeline_of(",".join(names))))


def test_the_table_has_all_passes_of_the_document() -> None:
    assert len(order()) == 33
    assert order()[:2] == ["disc-inliner", "disc-unused-function-removal"]
    assert order()[-1] == LAST


def test_the_documents_names_are_taken() -> None:
    """The table's second column, as written: DhloCanonicalizeReductionPass is disc-canonicalize-reduction."""
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    names = [cells[2].split(",")[0].strip() for cells in rows if len(cells) == 6 and "disc-" in cells[3]]
    assert [spec.name for spec in parse_passes(",".join(names))] == order()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("lower_xla_gpu_to_scf", "xla-lower-xla-loops-to-scf"),
        ("flatten_tensors", "xla-flatten-tensors"),
        ("vectorize_loads_stores", "xla-vectorize-loads-stores"),
        ("optimize_loops", "xla-gpu-optimize-loops"),
        ("lower_tensors", "xla-lower-tensors"),
        ("propagate_slice_indices", "xla-propagate-slice-indices"),
        ("merge_pointers_to_same_slice", "xla-merge-pointers"),
    ],
)
def test_files_that_the_first_document_cites_are_names(file: str, name: str) -> None:
    assert [spec.name for spec in parse_passes(file)] == [name]


@pytest.mark.parametrize("name", but_long(["causal_attention", "nested_loops"], ["causal_attention"]))
@pytest.mark.parametrize("stage", ["fused", "host", "llvm-dialect"])
def test_the_documents_order_gives_jaxs_values(name: str, stage: str) -> None:
    program = programs()[name]
    made = compiled(name)
    with np.load(program.folder / f"{name}.npz") as expected:
        sizes = program.case.sizes[0]
        for number, found in enumerate(made.run(program.inputs(sizes), stage)):
            assert difference(found, expected[f"0/r{number}"]) <= program.case.tolerance


# A reduction of rows stitched to what reads it; a product; both in one program, which takes seven times as long; loops.
PROGRAMS = ["bfloat_softmax", "similarity", "causal_attention", "nested_loops"]


@pytest.mark.parametrize("name", but_long(PROGRAMS, PROGRAMS[:3]))
def test_each_pass_runs_on_what_the_one_before_printed_up_to_the_last(name: str) -> None:
    program, context = programs()[name], make_context()
    module = parse_stablehlo(program.text(), f"{name}.mlir")
    text = print_ir(module)
    names = ",".join(order()).replace("disc-convert-memory-marker", "disc-convert-memory-marker{cpu-too}")
    names = names.replace(LAST, f"xla-convert-scf-to-cf,{LAST},disc-lower-host-memrefs")
    for each in pipeline_of(names):
        module = parse_ir(text, f"<before {each.name}>")
        run_pass(each, context, module, verify=True)
        text = print_ir(module)
    (main,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    assert str(main.function_type) == "(!llvm.ptr) -> ()"
    assert "ral_kernel_launch___gpu___" in text
