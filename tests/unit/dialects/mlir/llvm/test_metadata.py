"""Metadata: attributes differ by their parameters, and are refused where MLIR refuses them."""

import re

import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.nvvm import TargetAttr
from xla_emitters.dialects.mlir.nvvm_async import MemScopeAttr
from xla_emitters.dialects.mlir_parser import DistinctAttr
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError, VerifyError


def attribute(text: str):
    return parse_ir(f"module attributes {{t.a = {text}}} {{}}").attributes["t.a"]


def test_attributes_are_equal_when_their_parameters_are():
    domain = llvm.AliasScopeDomainAttr
    x, y = StringAttr("x"), StringAttr("y")
    assert domain.of(id=x) != domain.of(id=y)
    assert domain.of(id=x, description=y) == domain.of(description=y, id=x)
    assert hash(domain.of(id=x, description=y)) == hash(domain.of(description=y, id=x))
    assert TargetAttr.of(chip=x) != TargetAttr.of(chip=y)
    assert MemScopeAttr.of("cta") != MemScopeAttr.of("gpu")
    assert MemScopeAttr.of("cta") == MemScopeAttr.of("cta")


def test_distinct_attributes_differ_by_number():
    one, other = attribute("distinct[0]<>"), attribute("distinct[1]<>")
    assert isinstance(one, DistinctAttr)
    assert one != other
    assert str(attribute('distinct[2]<"a">')) == 'distinct[2]<"a">'


def test_a_name_is_left_out_where_the_kind_is_known():
    short = attribute("#llvm.loop_annotation<unroll = <disable = true>>")
    long = attribute("#llvm.loop_annotation<unroll = #llvm.loop_unroll<disable = true>>")
    assert short == long
    assert str(short) == str(long)


def test_parameters_are_read():
    unroll = attribute("#llvm.loop_unroll<count = 4 : i32>")
    assert isinstance(unroll, llvm.LoopUnrollAttr)
    assert unroll.get("count") == IntegerAttr(4, 32)
    assert unroll.get("full") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#llvm.loop_unroll<often = true>", "#llvm.loop_unroll has no 'often'; it has disable, count"),
        ("#llvm.loop_unroll<count = 4 : i32, count = 8 : i32>", "'count' is given twice"),
        ("#llvm.loop_annotation", "expected '<'|Expected '<'|'<' expected"),
        ("#llvm.loop_annotation<unroll = #llvm.loop_licm<disable = true>>", "expected #llvm.loop_unroll"),
        ("#llvm.alias_scope<id = distinct[0]<>>", "#llvm.alias_scope needs domain"),
        ("#llvm.memory_effects<other = sometimes>", "expected one of: none, read, write, readwrite"),
        ("#llvm.uwtableKind<often>", "expected one of: none, sync, async"),
        ('#llvm.mlir.module_flag<perhaps, "a", 1 : i32>', "expected one of: error, warning"),
    ],
)
def test_what_mlir_refuses_is_refused(text: str, message: str):
    message = message if "|" in message else re.escape(message)
    with pytest.raises(ParseError, match=message):
        attribute(text)


def test_a_flag_is_a_number_or_a_string():
    with pytest.raises(VerifyError, match=r"the value of flag .a. is {x = 1 : i64}; it must be"):
        attribute('#llvm.mlir.module_flag<error, "a", {x = 1}>')


def test_they_are_built():
    scope = llvm.AliasScopeAttr.of(id=StringAttr("s"), domain=llvm.AliasScopeDomainAttr.of(id=StringAttr("d")))
    declared = print_ir(llvm.NoAliasScopeDeclOp(scope))
    assert declared == (
        'llvm.intr.experimental.noalias.scope.decl #llvm.alias_scope<id = "s", domain = #llvm.alias_scope_domain<id = "d">>'
    )
    flag = llvm.ModuleFlagAttr(StringAttr("error"), StringAttr("wchar_size"), IntegerAttr(4, 32))
    text = print_ir(llvm.ModuleFlagsOp([flag]))
    assert text == 'llvm.module_flags [#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>]'
    assert parse_ir(text).body.block.first_op is not None
