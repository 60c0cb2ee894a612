"""SASS by the lines of PTX: what ptxas records, and what it omits where it packs two halves into one instruction."""

from pathlib import Path

import pytest
from tools_here import SASS, here, needs

from xla_emitters.lowering.toolchain.machine_code import assemble, disassemble, is_instruction
from xla_emitters.lowering.toolchain.ptx_lines import instruction_at
from xla_emitters.lowering.toolchain.sass_lines import SassLines, read_sass
from xla_emitters.pipelines.compiler import compile

GELU = Path(__file__).parents[4] / "examples" / "gelu.hlo"
FAMILIES = {"HADD2": "add", "HMUL2": "mul", "LDG": "ld", "STG": "st", "MUFU": ("ex2", "rcp")}
"""Of SASS that is one instruction of PTX, what that can be. `HFMA2` multiplies too."""


@pytest.fixture(scope="module")
def gelu() -> tuple[str, SassLines]:
    """PTX and SASS of GELU."""
    ptx = compile(GELU, cache=False, record="none").code
    return ptx, read_sass(assemble(ptx, "sm_90", here(), line_info=True).cubin, ptx, here())


@needs(*SASS)
def test_the_code_is_the_same(gelu: tuple[str, SassLines]) -> None:
    ptx, sass = gelu
    assert sass.text == disassemble(assemble(ptx, "sm_90", here()).cubin, here())
    assert len(sass.lines) == len(sass.text.split("\n"))


@needs(*SASS)
def test_an_instruction_is_of_one_that_does_the_same(gelu: tuple[str, SassLines]) -> None:
    """Also where ptxas says that the packed arithmetic is the load before it."""
    ptx, sass = gelu
    text, seen = ptx.split("\n"), set[str]()
    for row, line in zip(sass.text.split("\n"), sass.lines, strict=True):
        name = row.partition("*/")[2].split(".")[0].strip().partition(" ")[0]
        if is_instruction(row) and name in FAMILIES:
            made_of = instruction_at(text[line - 1])
            assert made_of.opcode in FAMILIES[name], row
            seen.add(name)
    assert seen == set(FAMILIES)


@needs(*SASS)
def test_lines_that_are_no_instructions_have_none(gelu: tuple[str, SassLines]) -> None:
    _, sass = gelu
    for row, line in zip(sass.text.split("\n"), sass.lines, strict=True):
        assert bool(line) <= is_instruction(row)
