"""Provenance to the last line: PTX and SASS in the trace, with the op and the HLO instructions of each line."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from long_lists import but_long
from tools_here import SASS, needs

from xla_emitters.lowering.toolchain import machine_code
from xla_emitters.lowering.toolchain.ptx_lines import instruction_at
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Program
from xla_emitters.trace import Trace
from xla_emitters.trace.records import Line

CORPUS = Path(__file__).parents[2] / "corpus"
WANTED = 0.9
ENDS = ("ret", "exit", "trap")
PADDING = re.compile(r"(?:NOP|EXIT|RET|BRA `\((\.L\w+)\))\b")
GELU = Path(__file__).parents[3] / "examples" / "gelu.hlo"
NINE = ("square", "cube", "multiply_3", "add_1", "multiply_2", "tanh_0", "add_0", "multiply_1", "multiply_0")
TWO = """HloModule two
n {
  %a = f32[512]{0} parameter(0)
  ROOT %b = f32[512]{0} negate(%a)
}
t {
  %c = f32[512]{0} parameter(0)
  ROOT %d = f32[512]{0} tanh(%c)
}
ENTRY e {
  %p = f32[512]{0} parameter(0)
  %first = f32[512]{0} fusion(%p), kind=kLoop, calls=n
  ROOT %second = f32[512]{0} fusion(%first), kind=kLoop, calls=t
}
"""
# One file of each kind that has loops, branches, shared memory or atomics.
SAMPLES = [sorted((CORPUS / kind).glob("*.hlo"))[0] for kind in ("concatenate", "reduction", "scatter", "transpose")]


def counted(trace: Trace) -> Iterator[str]:
    """For each instruction of one kernel that counts: "ptx" or "sass", and once more with " known" where it has a source."""
    ptx, sass = trace.lines("ptx"), trace.lines("sass")
    body = {line.number for line in body_of(ptx)}
    for stage, lines in (("ptx", body_of(ptx)), ("sass", [line for line in sass if counts(line) and line.ptx in body])):
        for line in lines:
            yield stage
            if line.sources:
                yield f"{stage} known"


def body_of(lines: Sequence[Line]) -> list[Line]:
    """PTX of functions that have lines, from the first instruction with one, without returns."""
    found, is_inside = list[Line](), False
    for line in lines:
        is_inside = (is_inside or line.op > 0) and line.text != "}"
        if is_inside and (instruction := instruction_at(line.text)) and instruction.opcode not in ENDS:
            found.append(line)
    return found


def counts(line: Line) -> bool:
    text = line.text.partition("*/")[2].strip()
    return machine_code.is_instruction(line.text) and not PADDING.match(text)


@pytest.fixture(scope="module")
def gelu() -> Program:
    return compile(GELU, cache=False, stage="sass", line_info=True)


@needs(*SASS)
@pytest.mark.parametrize("stage", ["ptx", "sass"])
def test_each_of_gelus_nine_instructions_has_lines(stage: str, gelu: Program) -> None:
    owned = {name for line in gelu.trace.lines(stage) for name in line.sources}
    assert owned >= set(NINE)


@needs(*SASS)
def test_a_line_of_ptx_is_of_an_op_that_does_the_same(gelu: Program) -> None:
    """Arithmetic of bf16 is one instruction of PTX for each op."""
    ops = gelu.trace.lines("llvm-dialect")
    seen = 0
    for line in gelu.trace.lines("ptx"):
        instruction = instruction_at(line.text)
        if instruction and instruction.opcode in ("mul", "add") and ".bf16" in line.text:
            assert f"llvm.f{instruction.opcode}" in ops[line.op - 1].text
            assert line.sources == ops[line.op - 1].sources
            seen += 1
    assert seen == 5 * 4 + 3 * 2  # four elements a thread; after tanh LLVM packs two of them


@needs(*SASS)
def test_a_line_of_sass_has_what_its_line_of_ptx_has(gelu: Program) -> None:
    ptx = gelu.trace.lines("ptx")
    lines = [line for line in gelu.trace.lines("sass") if line.ptx]
    assert lines
    assert all((line.op, line.sources) == (ptx[line.ptx - 1].op, ptx[line.ptx - 1].sources) for line in lines)


@needs(*SASS)
@pytest.mark.parametrize(
    "path",
    but_long(SAMPLES, [path for path in SAMPLES if path.parent.name != "scatter"]),
    ids=lambda path: path.parent.name,
)
def test_nine_of_ten_instructions_have_a_source_and_the_code_is_the_same(path: Path) -> None:
    with_lines = compile(path, cache=False, stage="sass", line_info=True)
    without = compile(path, cache=False, stage="sass")
    assert with_lines.code == without.code
    for trace, other in zip(with_lines.traces, without.traces, strict=True):
        assert trace["ptx"].ir == other["ptx"].ir
        found = list(counted(trace))
        for stage in ("ptx", "sass"):
            assert found.count(f"{stage} known") >= WANTED * found.count(stage) > 0


@needs(*SASS)
def test_each_kernel_of_a_program_has_its_own_lines() -> None:
    """All are in one text; no line is of two kernels."""
    program = compile(TWO, cache=False, stage="sass", line_info=True, tune="xla")
    assert len(program.traces) > 1
    for stage in ("ptx", "sass"):
        assert len({trace[stage].ir for trace in program.traces}) == 1
        owners = [{line.number for line in trace.lines(stage) if line.op} for trace in program.traces]
        assert all(owners)
        assert sum(map(len, owners)) == len(set[int]().union(*owners))


@needs(*SASS)
def test_lines_are_only_in_ptx_that_they_were_asked_for(gelu: Program) -> None:
    plain = compile(GELU, cache=False)
    assert ".loc" not in plain.code
    assert ".loc" in gelu.kernels[0].ptx
    assert gelu.trace["ptx"].ir == plain.code


@needs(*SASS)
def test_a_program_with_sass_comes_back_from_json(gelu: Program) -> None:
    again = Program.from_json(gelu.to_json(), traces=(Trace.from_json(gelu.trace.to_json()),))
    assert again == gelu
    assert again.kernels[0].ptx == gelu.kernels[0].ptx
    assert again.trace.lines("sass") == gelu.trace.lines("sass")
