"""The data layout of a module."""

import re

import pytest
from unit.dialects.mlir_opt import mlir_opt_says, mlir_reads

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError, Unsupported, VerifyError
from xla_emitters.rewrite.index_width import index_width

LAYOUTS = {
    "": 64,
    "#dlti.dl_spec<>": 64,
    "#dlti.dl_spec<index = 32 : i32>": 32,
    "#dlti.dl_spec<index = 64 : i32>": 64,
    "#dlti.dl_spec<#dlti.dl_entry<index, 32 : i32>>": 32,
    "#dlti.dl_spec<#dlti.dl_entry<index, 64 : i32>>": 64,
    '#dlti.dl_spec<#dlti.dl_entry<"dlti.endianness", "little">, #dlti.dl_entry<index, 32 : i32>>': 32,
    "#dlti.dl_spec<i64 = dense<32> : vector<2xi64>, #dlti.dl_entry<index, 32 : i32>>": 32,
    "#dlti.dl_spec<#dlti.dl_entry<i64, dense<32> : vector<2xi64>>, index = 32 : i32>": 32,
}
"""Data layout of a module -> bits of index; MLIR reads both spellings of an entry, and prints the first."""


def module_with(layout: str) -> str:
    attributes = f" attributes {{dlti.dl_spec = {layout}}}" if layout else ""
    return f"module{attributes} {{ func.func @f(%x: index) -> index {{ func.return %x : index }} }}"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_index_width(layout: str) -> None:
    """From the module's data layout, from inside too; 64 without one. The same after printing."""
    for module in (parse_ir(module_with(layout)), parse_ir(print_ir(parse_ir(module_with(layout))))):
        assert index_width(module) == LAYOUTS[layout]
        assert {index_width(op) for op in module.walk()} == {LAYOUTS[layout]}


def test_mlir_says_the_same() -> None:
    """The type that `mlir-opt` lowers index to, of our own text of the modules; and it prints them as we do."""
    ours = [print_ir(parse_ir(module_with(layout))) for layout in LAYOUTS]
    lowered = mlir_opt_says(ours, "--convert-func-to-llvm")
    assert [re.findall(r"@f\(%arg0: (\w+)\)", text) for text in lowered] == [
        [f"i{width}"] for width in LAYOUTS.values()
    ]
    layouts = [re.findall(r"#dlti.*>(?=})", text) for text in mlir_opt_says(list(map(module_with, LAYOUTS)))]
    assert layouts == [re.findall(r"#dlti.*>(?=})", text) for text in ours]


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("#dlti.dl_spec<#dlti.dl_entry<index>>", "<ir>:1:"),
        ("#dlti.dl_spec<#dlti.dl_entry<index, 32 : i32> = 4>", "'>' expected"),
        ("#dlti.dl_spec<32 : i32 = 4>", "key must be a string or a type"),
        ("#dlti.dl_spec<#dlti.dl_entry<index, 32 : i32>, index = 64 : i32>", "duplicate DLTI entry key"),
        ("#dlti.dl_spec<#dlti.dl_entry<index, 32 : i32>, #dlti.dl_entry<index, 32 : i32>>", "duplicate DLTI entry key"),
    ],
)
def test_layouts_that_mlir_refuses_too(layout: str, message: str) -> None:
    with pytest.raises((ParseError, VerifyError), match=message):
        parse_ir(module_with(layout))
    assert not mlir_reads(module_with(layout))


@pytest.mark.parametrize("bits", [-1, 0, 16, 2147483647])
def test_other_widths_are_refused(bits: int) -> None:
    module = parse_ir(f"module attributes {{dlti.dl_spec = #dlti.dl_spec<index = {bits} : i32>}} {{}}")
    with pytest.raises(Unsupported, match=f"an index of {bits} bits"):
        index_width(module)


def test_a_width_that_is_no_number_is_refused() -> None:
    module = parse_ir('module attributes {dlti.dl_spec = #dlti.dl_spec<#dlti.dl_entry<index, "wide">>} {}')
    with pytest.raises(Unsupported, match='a data layout in which index is "wide"'):
        index_width(module)
