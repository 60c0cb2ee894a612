"""No pass leaves an op of a class of xDSL's for which there is one of ours: our passes match ours alone."""

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xla_emitters.dialects.completion import own_class
from xla_emitters.pipelines import recorder
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "tests" / "corpus"
KINDS = ("concatenate", "dynamic_update_slice", "loop", "memcpy", "reduction", "scatter", "transpose")
FUSIONS = [file for kind in KINDS for file in sorted((CORPUS / kind).glob("*.hlo"))[::30]]
PROGRAMS = [*sorted((ROOT / "examples").glob("*.mlir")), *sorted((CORPUS / "programs").glob("*.mlir"))[::20]]


class Watch:
    """Notes the ops of xDSL's classes after each pass."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.seen = 0

    def __call__(self, pass_name: str, stage: str | None, module: ModuleOp) -> None:
        self.seen += 1
        self.found += [f"{op.name} after {pass_name}" for op in module.walk() if own_class(type(op)) is not None]


@pytest.mark.parametrize("file", FUSIONS, ids=lambda file: file.stem)
def test_fusions(file: Path) -> None:
    watch = Watch()
    compile_module(
        parse_hlo(file.read_text(), file.name),
        CompileOptions(stage="llvm-dialect", record="none"),
        observers=lambda _: watch,
        graph_observer=watch,
    )
    assert watch.seen > 10
    assert watch.found == []


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_programs(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their kernels and host program too, which no observer sees."""
    watch = Watch()

    def run_and_watch(module_pass: ModulePass, context: Context, module: ModuleOp, *, verify: bool = False) -> None:
        run_pass(module_pass, context, module, verify=verify)
        watch(module_pass.name, None, module)

    monkeypatch.setattr(recorder, "run_pass", run_and_watch)
    compile_program(parse_stablehlo(file.read_text(), file.name), CompileOptions(stage="llvm-dialect", record="none"))
    assert watch.seen > 10
    assert watch.found == []
