"""The signature and body of `func.func` and `llvm.func`, as xDSL has them, with the attributes of a declaration's arguments.

    func.func private @f(tensor<4xf32> {xla.slice_index = 0 : index}, index {xla.range = [0 : index, 3 : index]}) -> f32

xDSL reads and drops the dictionaries of arguments that have no names, and prints a declaration without those of arguments or results.
`upstream_patches.py` puts the two functions in the place of xDSL's, whose parameters they have.
Source: MLIR 22, function interfaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, StringAttr
from xdsl.dialects.utils.format import print_func_argument, print_func_output
from xdsl.ir import Attribute, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.hints import isa


def parse_func_op_like(
    parser: Parser, *, reserved_attr_names: Sequence[str], allow_variadic: bool = False
) -> tuple[Any, ...]:
    """What follows `func.func` and its visibility.

    returns  (name, input types, result types, body, further attributes, argument attributes, result attributes), and whether the last
             input stands for any number of more, if `allow_variadic`; attributes are None where there are none
    """
    name = parser.parse_symbol_name().data
    is_variadic = False
    names: list[Parser.Argument] = []
    types: list[Attribute] = []
    dictionaries: list[dict[str, Attribute]] = []

    def argument() -> None:
        nonlocal is_variadic
        start = parser.pos
        if allow_variadic and parser.parse_optional_characters("...") is not None:
            is_variadic = True
            return
        named = parser.parse_optional_argument()
        type = named.type if named is not None else parser.parse_optional_type()
        if type is None:
            parser.raise_error("Expected argument or type")
        if types and (named is None) == bool(names):
            parser.raise_error("Expected all arguments to be named or all arguments to be unnamed.", start, parser.pos)
        dictionaries.append(parser.parse_optional_dictionary_attr_dict())
        location = parser.parse_optional_location()
        if location is not None and parser.parse_optional_dictionary_attr_dict():
            parser.raise_error("Expected function argument attributes before location.", start, parser.pos)
        types.append(type)
        if named is not None:
            named.location = location
            names.append(named)

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
    outputs, output_dictionaries = _parse_outputs(parser)
    extra = parser.parse_optional_attr_dict_with_keyword(reserved_attr_names)
    body = parser.parse_optional_region(names if names or not types else None)
    found = (name, types, outputs, body or Region(), extra, _attributes(dictionaries), _attributes(output_dictionaries))
    return (*found, is_variadic) if allow_variadic else found


def _parse_outputs(parser: Parser) -> tuple[list[Attribute], list[dict[str, Attribute]]]:
    if parser.parse_optional_punctuation("->") is None:
        return [], []
    several = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, lambda: (parser.parse_type(), parser.parse_optional_dictionary_attr_dict())
    )
    if several is None:
        return [parser.parse_type()], []
    return [type for type, _ in several], [dictionary for _, dictionary in several]


def _attributes(dictionaries: Sequence[Mapping[str, Attribute]]) -> ArrayAttr[DictionaryAttr] | None:
    return ArrayAttr(DictionaryAttr(found) for found in dictionaries) if any(dictionaries) else None


def print_func_op_like(
    printer: Printer,
    sym_name: StringAttr,
    function_type: FunctionType,
    body: Region,
    attributes: Mapping[str, Attribute],
    *,
    arg_attrs: ArrayAttr[DictionaryAttr] | None = None,
    res_attrs: ArrayAttr[DictionaryAttr] | None = None,
    reserved_attr_names: Sequence[str],
    is_variadic: bool = False,
    print_empty_outputs: bool = True,
) -> None:
    """What follows `func.func` and its visibility.

    print_empty_outputs  whether xDSL would write `-> ()` in a declaration without results; MLIR does not, nor does this
    """
    printer.print_string(" ")
    printer.print_symbol_name(sym_name.data)
    inputs, outputs = function_type.inputs.data, function_type.outputs.data
    input_attrs = arg_attrs.data if arg_attrs is not None else (None,) * len(inputs)
    printer.print_string("(")
    if body.blocks:
        pairs = zip(body.blocks[0].args, input_attrs, strict=True)
        printer.print_list(pairs, lambda pair: print_func_argument(printer, *pair))
    else:
        printer.print_list(zip(inputs, input_attrs, strict=True), lambda pair: print_func_output(printer, *pair))
    if is_variadic:
        printer.print_string(", ..." if inputs else "...")
    printer.print_string(")")
    if outputs:
        output_attrs = res_attrs.data if res_attrs is not None else (None,) * len(outputs)
        is_bare = len(outputs) == 1 and res_attrs is None and not isa(function_type.outputs, ArrayAttr[FunctionType])
        printer.print_string(" -> " if is_bare else " -> (")
        printer.print_list(zip(outputs, output_attrs, strict=True), lambda pair: print_func_output(printer, *pair))
        printer.print_string("" if is_bare else ")")
    printer.print_op_attributes(dict(attributes), reserved_attr_names=reserved_attr_names, print_keyword=True)
    if body.blocks:
        printer.print_string(" ", indent=0)
        printer.print_region(body, False, False)
