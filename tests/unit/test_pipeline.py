"""The map: which passes run in which order, that each depends on the IR alone, and what a compilation records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from runtime.small_programs import GELU, PROGRAMS, TARGET
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters import pipeline
from xla_emitters.device import device
from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.printer import print_ir
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.errors import InternalError, ParseError, Unsupported, UsageError
from xla_emitters.fusions.program_plan import PlannedKernel, plan_program
from xla_emitters.hlo_text import print_hlo
from xla_emitters.pipelines.compiler import compile, compile_module, keep_intermediates, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES, KERNEL, STAGES, Row, rows_until
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.recorder import Observer
from xla_emitters.tools import opt
from xla_emitters.universe import KERNEL as PASS_FILES

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = [row.make(CompileOptions(target=TARGET)).name for row in KERNEL]

TWO_FUSIONS = """
HloModule two_fusions
first {
  %x = f32[8] parameter(0)
  ROOT %n = f32[8] negate(%x)
}
second {
  %x = f32[8] parameter(0)
  %y = f32[8] parameter(1)
  ROOT %m = f32[8] multiply(%x, %y)
}
ENTRY main {
  %x = f32[8] parameter(0)
  %a = f32[8] fusion(%x), kind=kLoop, calls=first
  ROOT %b = f32[8] fusion(%a, %x), kind=kLoop, calls=second
}
"""


# ---- the order ----------------------------------------------------------------------------------------------------------------------


def test_stages_are_those_that_users_are_told() -> None:
    assert STAGES == (
        *("hlo", "partition", "xla_gpu", "inlined", "scf", "flat", "vectorized", "unrolled"),
        *("llvm-dialect", "llvm", "ptx"),
    )
    assert EXECUTABLE_STAGES == tuple(name for name in STAGES if name not in ("partition", "llvm", "ptx"))


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
    last = rows_until(stage)
    assert NAMES[last - len(ending) : last] == ending
    assert KERNEL[last - 1].stage == stage


def test_the_last_stage_ends_with_the_last_pass() -> None:
    assert rows_until("llvm-dialect") == rows_until("llvm") == rows_until("ptx") == len(KERNEL)
    assert rows_until("hlo") == rows_until("partition") == rows_until("xla_gpu") == 0


def test_every_pass_of_the_pipeline_can_be_named_on_the_command_line() -> None:
    assert set(NAMES) <= set(PASS_FILES)


def test_every_row_says_why_it_stands_there() -> None:
    assert all(len(row.reason.split()) > 3 for row in KERNEL)


# ---- each pass depends on the IR alone ----------------------------------------------------------------------------------------------


def renamed(text: str) -> str:
    """The text with its SSA values numbered as they come: names are hints, and the printer makes some up."""
    numbers: dict[str, str] = {}
    return re.sub(r"%[\w$.-]+", lambda found: numbers.setdefault(found[0], f"%{len(numbers)}"), text)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_pass_alone_on_text_does_what_it_does_in_the_pipeline(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text before every row, locations and all, through `xla-emitters-opt -p NAME`, is the text after it."""
    chip = device(TARGET)
    kernel, context = emit_fusion(plan_program(read_module(PROGRAMS[program])).kernels[0].view, chip), make_context()
    path = tmp_path / "before.mlir"
    for number, row in enumerate(KERNEL):
        path.write_text(print_ir(kernel, locations=True))
        kernel_pass = row.make(chip)
        kernel_pass.apply(context, kernel)
        code = opt.main([str(path), "-p", str(kernel_pass.spec(include_default=True)), "--print-debuginfo"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), f"row {number}, {kernel_pass.name}"
        assert renamed(out.strip()) == renamed(print_ir(kernel, locations=True).strip()), (
            f"row {number}, {kernel_pass.name}"
        )


def users_outside(module: ModuleOp) -> list[str]:
    """Values of `module` that ops outside it use: such values can never be removed."""
    inside = set(module.walk())
    found: list[str] = []

    def look(op: Operation) -> None:
        values = [*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)]
        found.extend(
            f"{op.name} is used by a {use.operation.name}"
            for value in values
            for use in value.uses
            if use.operation not in inside
        )

    for op in inside:
        look(op)
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_value_has_users_outside_its_module(program: str) -> None:
    def observers(planned: PlannedKernel) -> Observer:
        def observe(name: str, stage: str | None, module: ModuleOp) -> None:
            assert not users_outside(module), f"after {name}"

        return observe

    compile_module(
        read_module(PROGRAMS[program]),
        CompileOptions(target=TARGET, stage="llvm-dialect", record="none"),
        observers=observers,
    )


def test_compiling_leaves_the_hlo_module_as_it_was() -> None:
    module = read_module(GELU)
    before = print_ir(module, locations=True)
    first = compile_module(module, CompileOptions(target=TARGET, stage="llvm-dialect"))
    second = compile_module(module, CompileOptions(target=TARGET, stage="llvm-dialect"))
    assert print_ir(module, locations=True) == before
    assert [step.ir for step in first.trace] == [step.ir for step in second.trace]


# ---- what a compilation makes -------------------------------------------------------------------------------------------------------


@pytest.mark.tiny
def test_hlo_text_becomes_a_kernel() -> None:
    """From text to the LLVM dialect; the launch is the spec's for 40,960 elements on a chip of 40,960 threads: four each."""
    program = compile(GELU, target=TARGET, stage="llvm-dialect")
    (kernel,) = program.kernels
    assert (program.name, kernel.name, kernel.architecture) == ("small_gelu", "fusion", "sm_75")
    assert kernel.launch.grid == (80, 1, 1)
    assert kernel.launch.block == (128, 1, 1)
    assert kernel.ptx == ""
    assert program.trace.stages == STAGES[: STAGES.index("llvm-dialect") + 1]
    assert program.hlo == print_hlo(read_module(GELU))


def test_fusions_of_entry_in_order_share_a_temporary() -> None:
    program = compile(TWO_FUSIONS, stage="xla_gpu")
    assert [kernel.name for kernel in program.kernels] == ["a", "b"]
    assert [str(spec) for spec in program.temporaries] == ["f32[8]"]
    assert [[(a.kind, a.index) for a in kernel.arguments] for kernel in program.kernels] == [
        [("parameter", 0), ("temporary", 0)],
        [("temporary", 0), ("parameter", 0), ("result", 0)],
    ]
    assert [trace.name for trace in program.traces] == ["a", "b"]
    with pytest.raises(UsageError, match="2 traces"):
        _ = program.trace


def test_one_fusion_by_name() -> None:
    program = compile(TWO_FUSIONS, fusion="b", stage="xla_gpu")
    assert [kernel.name for kernel in program.kernels] == ["b"]
    assert len(program.parameters) == 2
    with pytest.raises(UsageError, match="no fusion instruction 'c'") as raised:
        compile(TWO_FUSIONS, fusion="c", stage="xla_gpu")
    assert raised.value.help == "there are: a, b"


def test_record_says_what_the_trace_keeps() -> None:
    """Nothing, the stages, or every pass; times are always there."""
    none, stages, passes = (
        compile(GELU, target=TARGET, stage="scf", record=record).trace for record in ("none", "stages", "passes")
    )
    assert [step.ir for step in none] == [None] * (1 + rows_until("scf"))
    assert [step.name for step in stages if step.ir is not None and step.stage] == [
        *("hlo", "partition", "emit", "xla-cse", "xla-lower-xla-loops-to-scf")
    ]
    assert all(step.ir is not None for step in passes)
    assert [step.name for step in passes][3:] == NAMES[: rows_until("scf")]
    assert all(step.seconds > 0 for step in passes if step.name in NAMES)
    assert passes["scf"].op_counts["scf.for"] == 1
    with pytest.raises(UsageError, match="unknown record 'all'"):
        compile(GELU, record="all")


def test_unknown_stage_and_target() -> None:
    with pytest.raises(UsageError, match="unknown stage 'sass'") as raised:
        compile(GELU, stage="sass")
    assert "vectorized" in raised.value.help
    with pytest.raises(UsageError, match="unknown target 'sm_20'"):
        compile(GELU, target="sm_20")


def test_a_source_is_a_path_or_text(tmp_path: Path) -> None:
    path = tmp_path / "small.hlo"
    path.write_text(GELU)
    assert print_hlo(read_module(path)) == print_hlo(read_module(GELU)) == print_hlo(read_module(str(path)))
    with pytest.raises(FileNotFoundError):
        read_module("nowhere.hlo")
    path.write_bytes(b"HloModule \xff\n")
    with pytest.raises(ParseError, match="is not text: byte 10 is not UTF-8"):
        read_module(path)


def test_what_lies_between_fusions_is_refused_with_its_place() -> None:
    text = TWO_FUSIONS.replace("fusion(%x), kind=kLoop, calls=first", "negate(%x)")
    with pytest.raises(Unsupported, match="no kernel outside fusions") as raised:
        compile(text, stage="xla_gpu")
    assert raised.value.place is not None
    assert (raised.value.place.line, raised.value.place.column) == (14, 3)


# ---- a pass that fails is named -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stumbling(KernelPass):
    name = "stumbling"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise ZeroDivisionError("by nothing")


@dataclass(frozen=True)
class Breaking(KernelPass):
    """Leaves an op whose operands are of two types."""

    name = "breaking"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        multiply = next(inner for inner in op.walk() if isinstance(inner, arith.MulfOp))
        block = multiply.parent
        assert block is not None
        multiply.operands[1] = block.args[-1]


def test_an_exception_in_a_pass_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "PASSES", (Row(lambda _: Stumbling(), "to fall", "llvm-dialect"),))
    with pytest.raises(InternalError, match="stumbling: ZeroDivisionError: by nothing") as raised:
        compile(GELU, stage="llvm-dialect")
    assert raised.value.stage == "stumbling"
    assert raised.value.exit_code == 70


def test_ir_that_does_not_verify_names_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "PASSES", (Row(lambda _: Breaking(), "to break", "llvm-dialect"),))
    compile(GELU, stage="llvm-dialect")
    with pytest.raises(InternalError, match=r"the IR after breaking does not verify: arith\.mulf") as raised:
        compile(GELU, stage="llvm-dialect", verify=True)
    assert raised.value.stage == "breaking"


def test_intermediates_need_recorded_ir(tmp_path: Path) -> None:
    program = compile(GELU, target=TARGET, stage="llvm-dialect", record="none")
    with pytest.raises(UsageError, match="without recording"):
        keep_intermediates(program, tmp_path)
