"""`.loc` read back: places of instructions, the rules for those that LLVM leaves out, and the text without line information."""

import pytest

from xla_emitters.lowering.toolchain.ptx_lines import PtxLine, instruction_at, read_lines

HEAD = ".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\t.reg .b32 \t%r<9>;\n"
PTX = (
    HEAD
    + """$L__func_begin0:
\t.loc\t1 0 0

\tld.param.b64 \t%rd1, [k_param_0];
$L__tmp0:
\t.loc\t1 7 3                             // k.hlo:7:3
\tld.global.b32 \t%r1, [%rd1];
\t.loc\t1 0 3
\tmov.b32 \t%r2, 0f3F800000;
\t.loc\t1 8 4
\tadd.rn.f32 \t%r3, %r1, %r2;
\tsetp.lt.f32 \t%p1, %r3, %r1;
\t.loc\t1 0 4
\t@%p1 bra \t$L__BB0_2;
\t.loc\t1 9 5
\tst.global.b32 \t[%rd1], %r3;
$L__BB0_2:
\tret;
$L__tmp1:
$L__func_end0:
}
\t.section\t.debug_macinfo\t{\t}
\t.file\t1 "k.hlo"
"""
)


def places() -> dict[str, PtxLine]:
    """opcode -> place, of the instructions that have one"""
    found = read_lines(PTX)
    rows = zip(found.text.split("\n"), found.lines, strict=True)
    return {instruction.opcode: at for text, at in rows if at and (instruction := instruction_at(text))}


def test_an_instruction_has_the_line_before_it() -> None:
    assert places()["ld"] == PtxLine("k", 7, 3)
    assert places()["add"] == places()["setp"] == PtxLine("k", 8, 4)
    assert places()["st"] == PtxLine("k", 9, 5)


def test_a_constant_has_the_line_of_its_reader_and_a_branch_that_of_its_condition() -> None:
    assert places()["mov"] == PtxLine("k", 8, 4)
    assert places()["bra"] == PtxLine("k", 8, 4)


def test_the_prologue_and_the_end_have_none() -> None:
    found = read_lines(PTX)
    texts = [text for text, line in zip(found.text.split("\n"), found.lines, strict=True) if line is None]
    assert sum("ld.param" in text for text in texts) == 1
    assert "\tret;" in texts


def test_what_line_information_added_is_taken_out() -> None:
    text = read_lines(PTX).text
    assert not any(word in text for word in (".loc", ".file", "debug", "tmp", "func_begin", "func_end"))
    assert "$L__BB0_2:" in text
    assert read_lines(text).text == text


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("\tld.global.v2.b32 \t{%r1, %r2}, [%rd1+8];", ("ld", ("%r1", "%r2"), ("%rd1",))),
        ("\tst.global.b32 \t[%rd1], %r3;", ("st", (), ("%rd1", "%r3"))),
        ("\t@!%p1 bra \t$L__BB0_2;", ("bra", (), ("%p1",))),
        ("\tmov.b32 \t{%rs1, %rs2}, %r15;", ("mov", ("%rs1", "%rs2"), ("%r15",))),
        ("\tfma.rn.f32 \t%r4, %r1, %r2, %r3;", ("fma", ("%r4",), ("%r1", "%r2", "%r3"))),
        ("\tbar.sync \t0;", ("bar", (), ())),
    ],
)
def test_operands(line: str, wanted: tuple[str, tuple[str, ...], tuple[str, ...]]) -> None:
    found = instruction_at(line)
    assert (found.opcode, found.written, found.read) == wanted


@pytest.mark.parametrize("line", ["$L__BB0_2:", "\t.reg .b32 \t%r<9>;", "\t// begin inline asm", "{", ")", ""])
def test_no_instruction(line: str) -> None:
    assert instruction_at(line) is None
