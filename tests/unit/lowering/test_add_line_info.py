"""Lines through LLVM: the code is the same with and without, by every way to PTX, and each instruction names its op."""

from pathlib import Path

import pytest
from tools_here import PTX, STEPS, here, needs
from xdsl.dialects.builtin import FusedLoc, ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.lowering.add_line_info import AddLineInfoPass
from xla_emitters.lowering.toolchain.ptx_lines import read_lines
from xla_emitters.lowering.toolchain.toolchain import compile_to_ptx
from xla_emitters.pipelines.compiler import compile_module, lower_for_tools, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.settings import TOOLCHAIN

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "tests" / "corpus"
# Arithmetic with libdevice, a barrier, atomic updates.
SAMPLES = (
    *(ROOT / "examples" / name for name in ("gelu.hlo", "transpose.hlo")),
    next((CORPUS / "scatter").glob("*.hlo")),
)
KERNEL = """llvm.func @f(%p: !llvm.ptr) attributes {nvvm.kernel} {
  %x = llvm.load %p : !llvm.ptr -> f32 loc("a"("k.hlo":7:2))
  %y = llvm.fmul %x, %x : f32 loc(fused["b"("k.hlo":8:2), "c"("k.hlo":9:2)])
  llvm.store %y, %p : f32, !llvm.ptr
  llvm.return
}"""


def with_lines(module: ModuleOp, kernel: int = 0) -> ModuleOp:
    AddLineInfoPass(kernel).apply(make_context(), module)
    module.verify()
    return module


def kernel_of(path: Path) -> ModuleOp:
    """The first kernel of a file, in the LLVM dialect."""
    kept = list[ModuleOp]()

    def observe(name: str, stage: str | None, module: ModuleOp) -> None:
        if stage == "llvm-dialect":
            kept.append(module.clone())

    compile_module(
        read_module(path), CompileOptions(stage="llvm-dialect", record="none"), observers=lambda planned: observe
    )
    return kept[0]


def test_functions_of_all_kernels_have_subprograms_of_their_own() -> None:
    ids = list[object]()
    for kernel in (0, 1):
        (function,) = with_lines(parse_ir(KERNEL), kernel).body.ops
        assert isinstance(function.location, FusedLoc)
        subprogram = function.location.metadata
        assert isinstance(subprogram, llvm.DISubprogramAttr)
        unit = subprogram.get("compileUnit")
        assert isinstance(unit, llvm.DICompileUnitAttr)
        ids += (subprogram.get("id"), unit.get("id"))
    assert len(set(ids)) == 4


def test_declarations_and_modules_without_places_are_taken() -> None:
    module = with_lines(parse_ir("llvm.func @g(f32) -> f32\nllvm.func @f() { llvm.return }"))
    declared, defined = module.body.ops
    assert not isinstance(declared.location, FusedLoc)
    assert "<hlo>" in str(defined.location)


WAYS = (
    *(pytest.param("mlir-opt", path, marks=needs("mlir-opt", "libdevice")) for path in SAMPLES),
    *(pytest.param("llvmlite", path, marks=needs("llvmlite", "libdevice")) for path in SAMPLES),
    pytest.param("steps", SAMPLES[0], marks=needs(*STEPS)),  # four processes a kernel
)


@pytest.mark.parametrize(("way", "path"), WAYS, ids=lambda each: getattr(each, "stem", each).partition(".")[0])
def test_the_code_is_the_same(way: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte, once `.loc` and what it needs are taken out."""
    monkeypatch.setenv(TOOLCHAIN, way)
    module = kernel_of(path)
    plain = module.clone()
    with_lines(module)
    for each in (module, plain):
        lower_for_tools(each, CompileOptions())
    found = read_lines(compile_to_ptx(module, "sm_90", here()))
    assert found.text == compile_to_ptx(plain, "sm_90", here())
    assert any(line is not None and line.op_line for line in found.lines)


@needs(*PTX)
def test_ptxas_still_optimises() -> None:
    """Debug information of another kind writes `.target sm_90, debug`."""
    module = with_lines(kernel_of(SAMPLES[0]))
    lower_for_tools(module, CompileOptions())
    ptx = compile_to_ptx(module, "sm_90", here())
    assert "\n.target sm_90\n" in ptx
    assert '.file\t1 "' in ptx
    assert "gelu.hlo" in ptx
