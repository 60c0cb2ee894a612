"""What is recorded of the passes on a whole program."""

from pathlib import Path

from xla_emitters.explore.compile import compile_text
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.options import CompileOptions

SOFTMAX = Path(__file__).parents[3] / "examples" / "softmax.mlir"


def test_texts_of_several_processes_are_those_of_one() -> None:
    def recorded(jobs: int) -> list[tuple[object, ...]]:
        program = compile_text(SOFTMAX.read_text(), "softmax.mlir", CompileOptions(jobs=jobs))
        trace = lowerings_of(program).lowering.trace
        return [(step.name, step.stage, step.op_counts, step.ir, step.sources) for step in trace]

    alone = recorded(1)
    assert [stage for _, stage, *_ in alone if stage] == ["loops", "kernels", "host", "llvm-dialect"]
    assert all(ir for _, stage, _, ir, _ in alone if stage)
    assert recorded(2) == alone
