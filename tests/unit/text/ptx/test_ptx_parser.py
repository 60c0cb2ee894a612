"""What is read of a text with many kernels, of which one is asked for."""

import pytest

from xla_emitters.errors import ParseError, Unsupported
from xla_emitters.text.ptx import read_ptx


def test_bodies_of_other_kernels_are_passed_over() -> None:
    """Braces in strings and comments are no end of a body; a body without end is read, and said to have none."""
    other = '.visible .entry other(.param .u64 p) { .pragma "}"; // }\n /* } */ { no.such.instruction {%r1, %r2}; } } '
    wanted = ".visible .entry wanted(.param .u64 q) { .reg .b32 %r1; { mov.u32 %r1, 7; } ret; } "
    head = ".version 8.6 .target sm_90 .address_size 64 "
    whole = read_ptx(head + wanted, "k.ptx").functions["wanted"]
    for text in (other + wanted, wanted + other):
        found = read_ptx(head + text, "k.ptx", "wanted")
        assert {entry.name: len(entry.parameters) for entry in found.entries} == {"other": 1, "wanted": 1}
        body = found.functions["wanted"].body or []
        assert [str(item) for item in body if "mov" in str(item)]
        assert len(body) == len(whole.body or [])
        with pytest.raises(Unsupported, match=r"no\.such\.instruction"):
            read_ptx(head + text, "k.ptx")
    with pytest.raises(ParseError, match=r"'}' for the '{' of line 1"):
        read_ptx(head + ".entry other() { ret; ", "k.ptx", "wanted")
