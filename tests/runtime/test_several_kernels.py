"""Modules of several kernels as one text:
at every stage it can be read back and lowered to the same entries, and the result is one PTX module.
"""

import json
import re
from pathlib import Path

import pytest
from long_lists import but_long
from runtime.small_programs import EVERY_PASS_ON_HLO, TARGET
from tools_here import PTX, here, needs
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from xla_emitters.dialects.context import parse_ir
from xla_emitters.lowering.toolchain import toolchain
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.lowering.toolchain.toolchain import PtxCompiler, start_compile
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import kernel_rows
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES, KERNEL
from xla_emitters.pipelines.recorder import op_counts
from xla_emitters.program import Program
from xla_emitters.rewrite.symbols import symbol_name
from xla_emitters.tools import opt
from xla_emitters.tools.main import main

MLIR_STAGES = EXECUTABLE_STAGES[EXECUTABLE_STAGES.index("xla_gpu") :]
ROWS_SUMMED_TWICE = """
HloModule rows_summed_twice
add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
rows {
  %x = f32[64,300] parameter(0)
  %z = f32[] constant(0)
  %s = f32[64] reduce(%x, %z), dimensions={1}, to_apply=add
  ROOT %l = f32[64] log(%s)
}
columns {
  %x = f32[64,300] parameter(0)
  %z = f32[] constant(0)
  %s = f32[300] reduce(%x, %z), dimensions={0}, to_apply=add
  ROOT %l = f32[300] log(%s)
}
ENTRY main {
  %x = f32[64,300] parameter(0)
"""
PROGRAMS = {
    "every pass on HLO": EVERY_PASS_ON_HLO,
    "an update and its copy": """
HloModule updated
update {
  %p = f32[900] parameter(0)
  %u = f32[20] parameter(1)
  %at = s32[] parameter(2)
  ROOT %new = f32[900] dynamic-update-slice(%p, %u, %at)
}
ENTRY main {
  %p = f32[900] parameter(0)
  %u = f32[20] parameter(1)
  %at = s32[] parameter(2)
  ROOT %fusion = f32[900] fusion(%p, %u, %at), kind=kLoop, calls=update
}
""",
    # Both have shared memory, a function that combines, and libdevice's logarithm; `a.1` and `a_1` are one name in PTX.
    "names that collide": ROWS_SUMMED_TWICE
    + """
  %a.1 = f32[64] fusion(%x), kind=kInput, calls=rows
  %a_1 = f32[300] fusion(%x), kind=kInput, calls=columns
  %again = f32[64] fusion(%x), kind=kInput, calls=rows
  ROOT %all = (f32[64], f32[300], f32[64]) tuple(%a.1, %a_1, %again)
}
""",
    "transposes": """
HloModule transposes
narrow {
  %p = f32[64,96] parameter(0)
  ROOT %t = f32[96,64] transpose(%p), dimensions={1,0}
}
wide {
  %p = f64[96,64] parameter(0)
  ROOT %t = f64[64,96] transpose(%p), dimensions={1,0}
}
ENTRY main {
  %p = f32[64,96] parameter(0)
  %q = f64[96,64] parameter(1)
  %a = f32[96,64] fusion(%p), kind=kInput, calls=narrow
  %b = f64[64,96] fusion(%q), kind=kInput, calls=wide
  ROOT %all = (f32[96,64], f64[64,96]) tuple(%a, %b)
}
""",
    # 4.4 billion elements take an index of 64 bits, 32 do not.
    "indices of two widths": """
HloModule widths
few {
  %x = s8[32] parameter(0)
  ROOT %n = s8[32] negate(%x)
}
many {
  %x = s8[1100,2000,2000] parameter(0)
  ROOT %n = s8[1100,2000,2000] negate(%x)
}
ENTRY main {
  %x = s8[32] parameter(0)
  %y = s8[1100,2000,2000] parameter(1)
  %a = s8[32] fusion(%x), kind=kLoop, calls=few
  %b = s8[1100,2000,2000] fusion(%y), kind=kLoop, calls=many
  ROOT %all = (s8[32], s8[1100,2000,2000]) tuple(%a, %b)
}
""",
}
ENTRIES = {
    "every pass on HLO": ["c_partial", "c", "back", "s_0", "s_1", "w_arrays", "w"],
    "an update and its copy": ["fusion"],
    "names that collide": ["a_1", "a_1_1", "again"],
    "transposes": ["a", "b"],
    "indices of two widths": ["a", "b"],
}


def compiled(name: str, stage: str) -> Program:
    return compile(PROGRAMS[name], target=TARGET, stage=stage, record="none", cache=False)


def entries(module: ModuleOp) -> list[str | None]:
    """Names of the kernels in a module of the LLVM dialect."""
    return [symbol_name(op) for op in module.body.ops if isinstance(op.attributes.get("nvvm.kernel"), UnitAttr)]


# Its functions are of the kinds in "every pass on HLO"; what its kernels are called is the next test, of all.
@pytest.mark.parametrize("name", but_long(PROGRAMS, ("names that collide", "every pass on HLO", "transposes")))
def test_every_stage_reads_back_and_goes_on(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text of each stage through the remaining passes: the entries of the whole pipeline, and as many of each op."""
    last = compiled(name, "llvm-dialect")
    assert [kernel.name for kernel in last.kernels] == ENTRIES[name]
    wanted = parse_ir(last.code)
    assert entries(wanted) == ENTRIES[name]
    path = tmp_path / "stage.mlir"
    for stage in MLIR_STAGES:
        program = compiled(name, stage)
        assert [kernel.name for kernel in program.kernels] == ENTRIES[name]
        path.write_text(program.code)
        assert (opt.main([str(path)]), capsys.readouterr().out.strip()) == (0, program.code.strip()), stage
        passes = [
            row.make(CompileOptions(target=TARGET)) for row in KERNEL[len(kernel_rows(CompileOptions(stage=stage))) :]
        ]
        code = opt.main([str(path), "-p", ",".join(str(made.spec(include_default=True)) for made in passes)])
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), stage
        module = parse_ir(out)
        module.verify()
        assert entries(module) == ENTRIES[name], stage
        if name != "indices of two widths":  # together they are as wide as the widest
            assert op_counts(module) == op_counts(wanted), stage


@needs(*PTX, "ptxas")
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_ptx_module_has_all_entries(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of `--json`; the tool, which takes longer to start than to work, is started and asked once; ptxas takes the module."""
    started: list[str] = []
    finished: list[ModuleOp] = []
    finish = PtxCompiler.finish
    monkeypatch.setattr(
        toolchain, "start_compile", lambda chip, tools: started.append(chip) or start_compile(chip, tools)
    )
    monkeypatch.setattr(PtxCompiler, "finish", lambda self, module: finished.append(module) or finish(self, module))
    path = tmp_path / "several.hlo"
    path.write_text(PROGRAMS[name])
    assert main(["compile", str(path), "--target", TARGET]) == 0
    ptx = capsys.readouterr().out
    assert (started, len(finished)) == (["sm_75"], 1)
    assert ptx.count(".version") == ptx.count(".target") == 1
    assert re.findall(r"^\.visible \.entry (\w+)\(", ptx, re.MULTILINE) == ENTRIES[name]
    assert assemble(ptx, "sm_75", here())
    assert main(["compile", str(path), "--target", TARGET, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [kernel["name"] for kernel in data["kernels"]] == ENTRIES[name]
    assert data["code"] == ptx
    assert {kernel["ptx"] for kernel in data["kernels"]} == {ptx}
    launches = [step["kernel"] for step in data["steps"] if step["step"] == "Launch"]
    assert launches == ENTRIES[name]


@needs(*PTX)
def test_each_kernel_has_as_much_shared_memory_as_alone() -> None:
    """4,224 bytes for the transpose of f32, 8,448 for that of f64."""
    program = compiled("transposes", "ptx")
    sizes = re.findall(r"\.shared \.align 16 \.b8 (\w+)\[(\d+)\]", program.code)
    assert sizes == [("shared_0", "4224"), ("shared_0_1", "8448")]
    assert [kernel.shared_bytes for kernel in program.kernels] == [4224, 8448]
