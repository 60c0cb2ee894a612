"""Our passes against XLA's recorded logs; and, where the extra [xla] is installed, against XLA itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from tools_here import PTX, SASS, needs
from xdsl.dialects import scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp

from xla_emitters.device import device
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import UsageError
from xla_emitters.explore.compare import (
    Code,
    Comparison,
    KernelComparison,
    compare,
    compiled,
    kernel_ptx,
    read_dump,
    same_kernels,
)
from xla_emitters.explore.compare_report import FileRow, diff_text, files_text, report_text
from xla_emitters.explore.ir_difference import REWRITES, KernelIr
from xla_emitters.explore.optimize import ask_xla
from xla_emitters.explore.pass_rows import (
    FORMULAS,
    PLACES,
    WAYS,
    Causes,
    PassRow,
    UnrollByPass,
    compare_passes,
    our_name,
)
from xla_emitters.explore.xla_log import parse_log
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.rewrite.folders import constant_integer
from xla_emitters.rewrite.kernel_pass import run_pass

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "tests" / "corpus" / "reference"
GELU = REFERENCE / "gelu"

Passes = tuple[tuple[str, ModuleOp], ...]


def passes_of(fusion: str) -> Passes:
    """Our IR after each pass."""
    (kernel,) = compiled(read_module(REFERENCE / fusion / "input.hlo"), CompileOptions())
    return kernel.passes


@pytest.fixture(scope="module")
def gelu() -> Passes:
    return passes_of("gelu")


@pytest.fixture(scope="module")
def compared(gelu: Passes) -> Comparison:
    """GELU beside XLA's log."""
    return comparison(gelu)


def code_of(ptx: str) -> Code:
    return Code((24576, 1, 1), (128, 1, 1), 23, 101, 0, 0, 0, 0, {8: 1}, {8: 1}, {}, 125, ptx)


def comparison(passes: Passes) -> Comparison:
    rows = compare_passes(passes, parse_log((GELU / "passes.mlir.log").read_text()))
    return Comparison("gelu", "h200", (KernelComparison("fusion", rows, code_of("a;\nb;"), code_of("a;\nc;")),), (), ())


@needs(*PTX)
def test_gelu_is_xlas_from_emission_to_llvm(compared: Comparison) -> None:
    """The listings of the seed document are XLA's: nothing but what decisions 01 and 02 say is between them.

    In between, indices become integers in another order of passes, and libdevice is called a pass earlier.
    """
    (kernel,) = compared.kernels
    verdicts = {row.ours or row.xla: row.found for row in kernel.passes if row.found}
    unequal = {name for name, found in verdicts.items() if found.verdict == "differs"}
    assert unequal == {
        "xla-gpu-convert-index-type",
        "lower-affine",
        *(
            "xla-lower-affine",
            "xla-loop-invariant-code-motion",
            "symbol-dce",
            "xla-cse",
            "xla-limit-inlining",
            "xla-gpu-convert-float-nvidia",
        ),
        *("xla-expand-float-ops", "xla-convert-math-to-libdevice", "xla-convert-scf-to-cf"),
    }
    assert all(not row.causes.unexplained for row in kernel.passes)
    last = verdicts["xla-lower-to-llvm-gpu"]
    assert {file[:2] for file, _ in last.decisions} == {"01", "02"}


@needs(*PTX)
def test_every_pass_of_both_sides_has_one_row(gelu: Passes, compared: Comparison) -> None:
    log = parse_log((GELU / "passes.mlir.log").read_text())
    rows = compared.kernels[0].passes
    assert [row.ours for row in rows if row.ours] == [name for name, _ in gelu]
    assert [row.xla for row in rows if row.xla] == [state.name for state in log.states]
    assert all(our_name(row.xla, [row.ours]) == row.ours for row in rows if row.xla and row.ours)


@needs(*PTX)
def test_a_wrong_constant_is_seen_from_the_pass_that_makes_it(gelu: Passes) -> None:
    """One bf16 constant is another in our IR from xla-flatten-tensors on."""
    first = [name for name, _ in gelu].index("xla-flatten-tensors")
    broken = [(name, ir.clone()) for name, ir in gelu]
    for _, ir in broken[first:]:
        for op in ir.walk():
            value = op.properties.get("value")
            if (
                op.name in ("arith.constant", "llvm.mlir.constant")
                and isinstance(value, FloatAttr)
                and value.value.data == 0.5
            ):
                op.properties["value"] = FloatAttr(0.25, cast("AnyFloat", op.results[0].type))
    rows = compare_passes(broken, parse_log((GELU / "passes.mlir.log").read_text()))
    wrong = [row.found is not None and row.found.verdict == "differs" for row in rows if row.ours]
    assert wrong == [False] * first + [True] * (len(gelu) - first)


@needs(*PTX)
def test_the_cause_of_a_difference_is_the_pass_that_made_it(gelu: Passes) -> None:
    """A pass that our list lacks is named until the end of the log; one that no decision knows is not explained."""
    lacking = [(name, ir) for name, ir in gelu if name not in ("xla-flatten-tensors", "xla-unswitch-loops")]
    rows = compare_passes(lacking, parse_log((GELU / "passes.mlir.log").read_text()))
    by_pass = {row.xla: row for row in rows if row.xla}
    assert by_pass["xla-lower-xla-loops-to-scf"].kind == "renamed"
    # Our states are those of the whole list, so the next pass of ours is equal to XLA's again.
    assert by_pass["xla-flatten-tensors"].kind == "unexplained"
    assert by_pass["xla-flatten-tensors"].causes == Causes((), ("xla-flatten-tensors",))


@needs(*PTX)
def test_a_wrong_emitter_is_not_explained(gelu: Passes) -> None:
    """Each pass does what XLA's does: the emitter is the cause until the end, and no pass is blamed."""
    broken = [(name, ir.clone()) for name, ir in gelu]
    for _, ir in broken:
        for op in ir.walk():
            if isinstance(value := op.properties.get("value"), FloatAttr) and value.value.data == 0.5:
                op.properties["value"] = FloatAttr(0.25, cast("AnyFloat", op.results[0].type))
    rows = compare_passes(broken, parse_log((GELU / "passes.mlir.log").read_text()))
    assert {row.causes.unexplained for row in rows if row.found} == {("emit",)}
    assert {row.kind for row in rows if row.found} == {"unexplained"}


@needs(*PTX)
def test_a_pass_that_is_lost_is_not_at_another_place(gelu: Passes, compared: Comparison) -> None:
    """Both sides have one xla-gpu-convert-index-type, at two places; without ours, XLA's is not explained."""
    log = parse_log((GELU / "passes.mlir.log").read_text())

    def blamed(rows: Sequence[PassRow]) -> set[str]:
        return {name for row in rows for name in row.causes.unexplained}

    assert blamed(compared.kernels[0].passes) == set()
    place = next(number for number, (name, _) in enumerate(gelu) if name == "xla-gpu-convert-index-type")
    lacking = (*gelu[:place], *gelu[place + 1 :])
    assert blamed(compare_passes(lacking, log)) == {"xla-gpu-convert-index-type"}


STATE = """
func.func @fusion(%x: f32, %y: f32, %p: !llvm.ptr, %q: !llvm.ptr) {{
  %0 = math.{name} {operands} : f32
  llvm.store %0, {pointer} : f32, !llvm.ptr
  func.return
}}
"""


def test_other_formulas_are_of_the_same_operands_at_the_same_places() -> None:
    """cos for sin is a formula; of another operand, or at another address, it is not."""

    def skeleton(name: str, operands: str, pointer: str) -> object:
        return KernelIr(parse_ir(STATE.format(name=name, operands=operands, pointer=pointer))).inlined.skeleton

    known = skeleton("sin", "%x", "%p")
    assert known == skeleton("cos", "%x", "%p")
    assert known != skeleton("sin", "%y", "%p")
    assert known != skeleton("sin", "%x", "%q")
    assert known != skeleton("atan2", "%x, %y", "%p")


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("xla-expand-float-ops", "%0 = arith.addf %x, %x : f32", []),
        ("xla-expand-float-ops", "%0 = math.tanh %x : f32", ["formulas of tanh and erf"]),
        ("xla-expand-float-ops", "%0 = arith.truncf %x : f32 to f8E5M2", ["formulas of narrow floats"]),
        ("xla-lower-tensors", "%0 = arith.addf %x, %x : f32", []),
        ("xla-lower-tensors", "%0 = complex.create %x, %x : complex<f32>", ["complex numbers are vectors"]),
        ("xla-lower-to-llvm-gpu", "%0 = arith.addf %x, %x : f32", []),
        ("xla-lower-to-llvm-gpu", "%0 = math.sin %x : f32", ["where libdevice is called"]),
        ("convert-complex-to-standard", "%0 = math.sin %x : f32", []),
    ],
)
def test_a_formula_is_cited_only_where_the_ir_has_it(name: str, text: str, wanted: list[str]) -> None:
    module = parse_ir(f"func.func @fusion(%x: f32) {{\n  {text}\n  func.return\n}}")
    assert [each.decision[1] for each in FORMULAS[name] if each.are_in(module)] == wanted


@pytest.mark.parametrize(("trips", "copies", "step"), [(64, 4, 4), (64, 16, 16), (48, 32, 16), (4, 2, None)])
def test_unrolling_by_a_number_of_copies(trips: int, copies: int, step: int | None) -> None:
    """The factor is what is asked for where it divides the trips; else, and for a loop that is unrolled whole, what the pass takes."""
    module = parse_ir(f"""
func.func @fusion(%t: tensor<64xf32>) -> f32 {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {trips} : index
  %z = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (f32) {{
    %e = tensor.extract %t[%i] : tensor<64xf32>
    %s = math.powf %a, %e : f32
    scf.yield %s : f32
  }}
  func.return %r : f32
}}
""")
    run_pass(UnrollByPass(copies=copies), make_context(), module)
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    powers = sum(1 for op in module.walk() if op.name == "math.powf")
    assert [constant_integer(loop.step) for loop in loops] == ([] if step is None else [step])
    assert powers == (trips if step is None else step)


@needs(*PTX)
def test_the_report_of_a_fusion_is_short_and_has_all_cited_files(compared: Comparison) -> None:
    text = report_text(compared)
    assert len(text.splitlines()) < 60
    for file in ("01-what-the-ir-carries.md", "02-the-seed-and-the-stages.md"):
        assert f"docs/decisions/{file}" in text
    assert "registers" in text
    assert json.loads(json.dumps(compared.to_json()))["kernels"][0]["passes"][0]["xla"] == "emit"


def test_what_is_cited_is_a_file_of_this_repository() -> None:
    others = {place.decision for place in PLACES.values()} | {
        each.decision for formulas in FORMULAS.values() for each in formulas
    }
    cited = {rewrite.decision for rewrite in REWRITES} | {file for file, _ in others}
    cited |= {file for ways in WAYS.values() for _, (file, _) in ways}
    assert all((ROOT / "docs" / "decisions" / file).is_file() for file in cited)
    text = (ROOT / "docs" / "decisions" / "20-what-is-the-same-but-for.md").read_text().lower()
    for file, what in {(each.decision, each.what) for each in REWRITES} | others:
        assert file[:2] != "20" or what in text, what


@needs(*PTX)
def test_one_point_as_a_diff(compared: Comparison) -> None:
    found = compared
    assert diff_text(found, "xla-vectorize-loads-stores") == "fusion: no difference"
    assert "arith.index_castui" in diff_text(found, "xla-gpu-convert-index-type")
    assert diff_text(found, "ptx").splitlines()[-2:] == ["-c;", "+b;"]
    with pytest.raises(UsageError, match="no pass 'flatten'") as raised:
        diff_text(found, "flatten")
    assert "a name or number" in raised.value.help or "did you mean" in raised.value.help


def test_a_file_that_is_not_compared_keeps_its_reason() -> None:
    alone = Comparison("m", "h200", (), ("a", "b"), ("c",))
    text = files_text([FileRow("x.hlo", None, "XLA aborted"), FileRow("y.hlo", alone)])
    assert text.splitlines() == ["x.hlo: XLA aborted", "y.hlo: only ours: a, b", "y.hlo: only XLA's: c"]


def test_dumps_become_kernels(tmp_path: Path) -> None:
    """Names of files, of thunks and of PTX entries are three spellings of an instruction's name."""
    entry = ".visible .entry loop_fusion_1(\n)\n{\n\tret;\n}\n"
    (tmp_path / "module_0000.m.loop_fusion.1.mlir-passes.log").write_text((GELU / "passes.mlir.log").read_text())
    (tmp_path / "module_0000.m.1.ptx").write_text(f".target sm_90a\n{entry}")
    (tmp_path / "module_0000.m.2.ptx").write_text("")
    thunks = (
        "kCopy x\nkCustomKernel [source] loop_fusion.1 grid: [4, 2, 1] threads: [32, 1, 1]  shared_memory: 16 bytes\n"
    )
    (tmp_path / "module_0000.m.thunk_sequence.txt").write_text(thunks)
    (kernel,) = read_dump(tmp_path)
    assert (kernel.name, kernel.grid, kernel.block, kernel.shared_bytes) == ("loop_fusion_1", (4, 2, 1), (32, 1, 1), 16)
    assert kernel.log is not None
    assert kernel_ptx(kernel.ptx, kernel.name) == entry.rstrip()


def test_a_kernel_that_xla_renames_is_still_the_same() -> None:
    """XLA's names are unique in the module: a fusion `f` beside an instruction `f` of the computation that it calls is `f.1`."""
    assert same_kernels(["f"], ["f_1"]) == {"f": "f_1"}
    assert same_kernels(["f", "f_1"], ["f_1", "f_2"]) == {"f": "f_2", "f_1": "f_1"}
    assert same_kernels(["f", "g"], ["f_arrays", "f_1_2", "g"]) == {"g": "g"}


@needs(*SASS)
def test_xla_itself() -> None:
    """GELU on h200: launch and accesses are those that tests/corpus/reference recorded, 132 PTX instructions."""
    pytest.importorskip("jaxlib", reason="the extra [xla] is not installed")
    recorded = json.loads((GELU / "launch.json").read_text())["kernels"][0]
    (kernel,) = compare(GELU / "input.hlo", CompileOptions(target=device("h200").name)).kernels
    assert list(kernel.xla.grid) == list(kernel.ours.grid) == recorded["blocks"]
    assert list(kernel.xla.block) == list(kernel.ours.block) == recorded["threads"]
    assert kernel.xla.loads == kernel.xla.stores == kernel.ours.loads == {8: 1}
    assert kernel.xla.ptx_instructions == recorded["ptx"]["instructions"]
    assert kernel.passes


SAME_TWICE = """HloModule m
f { x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  n = f32[64] negate(x)
  ROOT s = f32[64] add(n, y) }
ENTRY main { a = f32[64] parameter(0)
  ROOT r = f32[64] fusion(a, a), kind=kLoop, calls=f }
"""


@needs(*PTX)
def test_an_array_that_is_given_twice_has_two_parameters_in_both(tmp_path: Path) -> None:
    """docs/decisions/02: XLA's entry too keeps both, and reads the first."""
    pytest.importorskip("jaxlib", reason="the extra [xla] is not installed")
    request = {"work": "compile", "text": SAME_TWICE, "target": "h200", "directory": str(tmp_path)}
    ask_xla(request, SAME_TWICE, "same.hlo")
    (theirs,) = read_dump(tmp_path)
    program = compile_module(read_module(SAME_TWICE), CompileOptions())
    assert theirs.ptx is not None
    for ptx in (theirs.ptx, program.code):
        head, _, body = ptx.partition("{\n")
        assert head.count(".param .u64") == 3
        assert [f"r_param_{number}]" in body for number in range(3)] == [True, False, True]
