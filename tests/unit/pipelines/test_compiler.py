"""The compiler: its result for a module, its trace, and its errors when a pass fails."""

from pathlib import Path

import numpy as np
import pytest
from runtime.small_programs import GELU, PROGRAMS, TARGET
from tools_here import here
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import InternalError, ParseError, Unsupported, UsageError
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines import pass_lists
from xla_emitters.pipelines.compiler import compile, compile_module, keep_intermediates, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import kernel_rows
from xla_emitters.pipelines.passes import KERNEL, STAGES, PassRow
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.text.hlo import print_hlo

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


@pytest.mark.tiny
def test_hlo_text_becomes_a_kernel() -> None:
    """From text to the LLVM dialect; the launch is the spec's for 40,960 elements on a chip of 40,960 threads: four each."""
    program = compile(GELU, target=TARGET, stage="llvm-dialect")
    (kernel,) = program.kernels
    assert (program.name, kernel.name, kernel.architecture) == ("small_gelu", "fusion", "sm_75")
    assert kernel.launch.grid == (80, 1, 1)
    assert kernel.launch.block == (128, 1, 1)
    assert kernel.ptx == ""
    assert (*program.graph.stages, *program.trace.stages[1:]) == STAGES[: STAGES.index("llvm-dialect") + 1]
    assert program.trace.stages[0] == "hlo"
    assert program.hlo == print_hlo(read_module(GELU))


def test_fusions_of_entry_in_order_share_a_temporary() -> None:
    program = compile(TWO_FUSIONS, stage="xla_gpu", tune="xla")
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


def test_a_fusion_that_was_only_a_product_is_a_call() -> None:
    """What XLA:GPU makes of `a @ a`: a fusion for Triton, and nothing else in ENTRY. A loop kernel took minutes for it."""
    text = """
dot { x = f32[16,16] parameter(0)
      ROOT d = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
ENTRY main { a = f32[16,16] parameter(0)
  ROOT f = f32[16,16] fusion(a), kind=kCustom, calls=dot,
    backend_config={"fusion_backend_config":{"kind":"__triton_nested_gemm_fusion"}} }"""
    program = compile(text, target=TARGET, stage="llvm-dialect")
    assert not program.kernels
    assert [call.name for call in program.calls] == ["gemm"]
    a = np.arange(256, dtype=np.float32).reshape(16, 16) / 16
    np.testing.assert_allclose(program.run_cpu(a), a @ a, rtol=1e-6)


def test_record_says_what_the_trace_keeps() -> None:
    """Nothing, the stages, or every pass; times are always there."""
    none, stages, passes = (
        compile(GELU, target=TARGET, stage="scf", record=record).trace for record in ("none", "stages", "passes")
    )
    assert [step.ir for step in none] == [None] * (1 + len(kernel_rows(CompileOptions(stage="scf"))))
    assert [step.name for step in stages if step.ir is not None and step.stage] == [
        *("hlo", "partition", "emit", "xla-cse", "xla-lower-xla-loops-to-scf")
    ]
    assert all(step.ir is not None for step in passes)
    assert [step.name for step in passes][3:] == NAMES[: len(kernel_rows(CompileOptions(stage="scf")))]
    assert all(step.seconds > 0 for step in passes if step.name in NAMES)
    assert passes["scf"].op_counts["scf.for"] == 1


def test_unknown_stage_and_target() -> None:
    with pytest.raises(UsageError, match="unknown stage 'cubin'") as raised:
        compile(GELU, stage="cubin")
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
    with pytest.raises(ParseError, match="is not text: byte 10 is 0x"):
        read_module(path)


def test_what_no_kernel_computes_is_refused_with_its_place() -> None:
    text = TWO_FUSIONS.replace(
        "fusion(%x), kind=kLoop, calls=first", 'custom-call(%x), custom_call_target="xla_ffi_python_gpu_callback"'
    )
    with pytest.raises(Unsupported, match="xla_ffi_python_gpu_callback") as raised:
        compile(text, stage="xla_gpu")
    assert (raised.value.place.line, raised.value.place.column) == (14, 3)


# ---- a pass that fails is named -----------------------------------------------------------------------------------------------------


class Stumbling(KernelPass):
    __module__ = "xla_emitters.transforms.stumbling"
    name = "stumbling"

    def apply_to(self, op: ModuleOp) -> None:
        raise ZeroDivisionError("by nothing")


class Breaking(KernelPass):
    """Leaves an op whose operands are of two types."""

    __module__ = "xla_emitters.transforms.breaking"
    name = "breaking"

    def apply_to(self, op: ModuleOp) -> None:
        multiply = next(inner for inner in op.walk() if isinstance(inner, arith.MulfOp))
        block = multiply.parent
        multiply.operands[1] = block.args[-1]


def test_an_exception_in_a_pass_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pass_lists.LISTS, "kernel", (PassRow(lambda _: Stumbling(), "to fall", "llvm-dialect"),))
    with pytest.raises(InternalError, match="stumbling: ZeroDivisionError: by nothing") as raised:
        compile(GELU, stage="llvm-dialect")
    assert raised.value.stage == "stumbling"
    assert raised.value.exit_code == 70


def test_ir_that_does_not_verify_names_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pass_lists.LISTS, "kernel", (PassRow(lambda _: Breaking(), "to break", "llvm-dialect"),))
    compile(GELU, stage="llvm-dialect")
    with pytest.raises(InternalError, match=r"the IR after breaking does not verify: arith\.mulf") as raised:
        compile(GELU, stage="llvm-dialect", verify=True)
    assert raised.value.stage == "breaking"


def test_intermediates_need_recorded_ir(tmp_path: Path) -> None:
    program = compile(GELU, target=TARGET, stage="llvm-dialect", record="none")
    with pytest.raises(UsageError, match="without recording"):
        keep_intermediates(program, tmp_path, here())


# ---- modules ----


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
