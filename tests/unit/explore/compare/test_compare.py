"""Our passes against XLA's recorded logs; and, where the extra [xla] is installed, against XLA itself."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from tools_here import PTX, SASS, here, needs
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp

from xla_emitters.device import device
from xla_emitters.errors import DataError, UsageError
from xla_emitters.explore.compare import compare as comparing
from xla_emitters.explore.compare.compare import (
    Comparison,
    KernelComparison,
    KernelFigures,
    compare,
    compiled,
    kernel_ptx,
    kernels_of_xla,
    read_dump,
    same_kernels,
)
from xla_emitters.explore.compare.compare_report import ComparedFile, diff_text, files_text, report_text
from xla_emitters.explore.compare.pass_rows import compare_passes, our_name
from xla_emitters.explore.compare.xla_log import parse_log
from xla_emitters.explore.optimize import ask_xla
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions

ROOT = Path(__file__).parents[4]
REFERENCE = ROOT / "tests" / "corpus" / "reference"
GELU = REFERENCE / "gelu"

Passes = Sequence[tuple[str, ModuleOp]]


def passes_of(fusion: str) -> Passes:
    """Our IR after each pass."""
    ((_, passes),) = compiled(read_module(REFERENCE / fusion / "input.hlo"), CompileOptions())
    return passes


@pytest.fixture(scope="module")
def gelu() -> Passes:
    return passes_of("gelu")


@pytest.fixture(scope="module")
def compared(gelu: Passes) -> Comparison:
    """GELU beside XLA's log."""
    return comparison(gelu)


def code_of(ptx: str) -> KernelFigures:
    return KernelFigures((24576, 1, 1), (128, 1, 1), 23, 101, 0, 0, 0, 0, {8: 1}, {8: 1}, {}, 125, ptx)


def comparison(passes: Passes) -> Comparison:
    rows = compare_passes(passes, parse_log((GELU / "passes.mlir.log").read_text()))
    return Comparison("gelu", "h200", (KernelComparison("fusion", rows, code_of("a;\nb;"), code_of("a;\nc;")),), (), ())


@needs(*PTX)
def test_gelu_is_xlas_from_emission_to_llvm(compared: Comparison) -> None:
    """Where the passes are the same and run in the same order, so is the IR but for spelling; at the end XLA's has one op more.

    docs/decisions/01: griddepcontrol.wait.
    """
    (kernel,) = compared.kernels
    found = {row.ours: row.found for row in kernel.passes if row.found}
    equal = ("xla-cse", "inline", "xla-gpu-peel-loops", "xla-lower-xla-loops-to-scf")
    assert {name: found[name].verdict for name in equal if name != "xla-cse"} == dict.fromkeys(equal[1:], "equal")
    assert found["xla-lower-to-llvm-gpu"].ops == {"nvvm.griddepcontrol": (0, 1)}


@needs(*PTX)
def test_every_pass_of_both_sides_has_one_row(gelu: Passes, compared: Comparison) -> None:
    log = parse_log((GELU / "passes.mlir.log").read_text())
    rows = compared.kernels[0].passes
    assert [row.ours for row in rows if row.ours] == [name for name, _ in gelu]
    assert [row.xla for row in rows if row.xla] == [state.name for state in log.states]
    assert all(our_name(row.xla, [row.ours]) == row.ours for row in rows if row.xla and row.ours)


@needs(*PTX)
def test_a_wrong_constant_is_seen_from_the_pass_that_makes_it(gelu: Passes, compared: Comparison) -> None:
    """One bf16 constant is another in our IR from `inline` on: no state is equal any more."""
    first = [name for name, _ in gelu].index("inline")
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
    rows = [row for row in compare_passes(broken, parse_log((GELU / "passes.mlir.log").read_text())) if row.ours]
    before = [row.kind for row in compared.kernels[0].passes if row.ours]
    assert [row.kind for row in rows[:first]] == before[:first]
    assert "equal" in before[first:]
    assert {row.kind for row in rows[first:]} - {""} == {"differs"}


@needs(*PTX)
def test_the_report_of_a_fusion_is_short(compared: Comparison) -> None:
    text = report_text(compared)
    assert len(text.splitlines()) < 60
    assert "registers" in text
    assert json.loads(json.dumps(compared.to_json()))["kernels"][0]["passes"][0]["xla"] == "emit"


@needs(*PTX)
def test_one_point_as_a_diff(compared: Comparison) -> None:
    found = compared
    assert diff_text(found, "xla-lower-xla-loops-to-scf") == "fusion: no difference"
    assert "arith.index_castui" in diff_text(found, "xla-gpu-convert-index-type")
    assert diff_text(found, "ptx").splitlines()[-2:] == ["-c;", "+b;"]
    with pytest.raises(UsageError, match="no pass 'flatten'") as raised:
        diff_text(found, "flatten")
    assert "a name or number" in raised.value.help or "did you mean" in raised.value.help


def test_a_file_that_is_not_compared_keeps_its_reason() -> None:
    alone = Comparison("m", "h200", (), ("a", "b"), ("c",))
    text = files_text([ComparedFile("x.hlo", None, "XLA aborted"), ComparedFile("y.hlo", alone)])
    assert text.splitlines() == ["x.hlo: XLA aborted", "y.hlo: only ours: a, b", "y.hlo: only XLA's: c"]


def test_a_module_that_xla_has_not_optimized_is_told_to_be_optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise DataError("XLA:GPU: Unsupported instruction opcode: reduce", stage="xla")

    monkeypatch.setattr(comparing, "ask_xla", refuse)
    with pytest.raises(DataError, match="opcode: reduce") as raised:
        kernels_of_xla("", "m.hlo", CompileOptions())
    assert "`xla-emitters optimize`" in (raised.value.help or "")


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
    assert (kernel.name, kernel.launch.grid, kernel.launch.block, kernel.shared_bytes) == (
        "loop_fusion_1",
        (4, 2, 1),
        (32, 1, 1),
        16,
    )
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
    ask_xla(request, SAME_TWICE, "same.hlo", here())
    (theirs,) = read_dump(tmp_path)
    program = compile_module(read_module(SAME_TWICE), CompileOptions())
    assert theirs.ptx is not None
    for ptx in (theirs.ptx, program.code):
        head, _, body = ptx.partition("{\n")
        assert head.count(".param .u64") == 3
        assert [f"r_param_{number}]" in body for number in range(3)] == [True, False, True]


TWO = """HloModule m, is_scheduled=true
f { x = s8[4096,8192] parameter(0)
  ROOT c = bf16[4096,8192] convert(x) }
g { x = bf16[4096,8192] parameter(0)
  ROOT n = bf16[4096,8192] negate(x) }
ENTRY main { x = s8[4096,8192] parameter(0)
  a = bf16[4096,8192] fusion(x), kind=kLoop, calls=f
  ROOT b = bf16[4096,8192] fusion(a), kind=kLoop, calls=g }
"""


@needs(*SASS)
def test_kernels_are_compared_as_xla_chooses_them() -> None:
    """A module of several kernels is compiled by rules of ours; beside XLA's they are XLA's choice, with its launches."""
    pytest.importorskip("jaxlib", reason="the extra [xla] is not installed")
    found = compare(TWO)
    assert len(found.kernels) == 2
    assert [kernel.ours.grid for kernel in found.kernels] == [kernel.xla.grid for kernel in found.kernels]
    assert found.kernels[0].ours.grid != compile_module(read_module(TWO), CompileOptions()).kernels[0].launch.grid
