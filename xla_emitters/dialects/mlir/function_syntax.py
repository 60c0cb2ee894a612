"""The signature and body of `func.func`, `llvm.func` and `gpu.func`, as xDSL has them, with the attributes of a declaration's arguments.

    func.func private @f(tensor<4xf32> {xla.slice_index = 0 : index}, index {xla.range = [0 : index, 3 : index]}) -> f32

xDSL reads and drops the dictionaries of arguments without names, and prints a declaration without those of arguments or results.
`parse_func_op_like` and `print_func_op_like` have the parameters of xDSL's functions of these names.
Source: MLIR 22, function interfaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, StringAttr, SymbolRefAttr
from xdsl.dialects.utils.format import print_func_argument, print_func_output
from xdsl.ir import Attribute, BlockArgument, Operation, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from xla_emitters.support.late_dataclass import dataclass

FunctionT = TypeVar("FunctionT", bound=Operation)


@dataclass
class Signature:
    """The parts of a function's signature, in the parentheses and behind the arrow.

    names        of the arguments; none for a declaration
    arg_attrs    a dictionary per argument; None if all are empty
    is_variadic  whether `...` stands for any number of further arguments
    """

    names: list[Parser.Argument]
    types: list[Attribute]
    arg_attrs: ArrayAttr[DictionaryAttr] | None
    outputs: list[Attribute]
    res_attrs: ArrayAttr[DictionaryAttr] | None
    is_variadic: bool


def parse_func_op_like(
    parser: Parser, *, reserved_attr_names: Sequence[str], allow_variadic: bool = False
) -> tuple[Any, ...]:
    """Parses the part after `func.func` and its visibility.

    returns  (name, input types, result types, body, further attributes, argument attributes, result attributes), and whether the last
             input stands for any number of more, if `allow_variadic`; attributes are None where there are none
    """
    name = parser.parse_symbol_name().data
    found = parse_signature(parser, allow_variadic=allow_variadic)
    extra = parser.parse_optional_attr_dict_with_keyword(reserved_attr_names)
    body = parser.parse_optional_region(found.names if found.names or not found.types else None) or Region()
    function = (name, found.types, found.outputs, body, extra, found.arg_attrs, found.res_attrs)
    return (*function, found.is_variadic) if allow_variadic else function


def parse_signature(parser: Parser, *, allow_variadic: bool = False) -> Signature:
    """`(%a: f32 {llvm.noundef}, %b: i32) -> (f32 {llvm.noundef})`, or without names."""
    names, types, arg_attrs, is_variadic = _parse_arguments(parser, allow_variadic)
    outputs, output_dictionaries = _parse_outputs(parser)
    return Signature(names, types, arg_attrs, outputs, _attributes(output_dictionaries), is_variadic)


def parse_arguments(
    parser: Parser,
) -> tuple[list[Parser.Argument], list[Attribute], ArrayAttr[DictionaryAttr] | None]:
    """`(%a: f32 {llvm.noundef}, %b: i32)`: names, types, and a dictionary each, None where there is none."""
    return _parse_arguments(parser, False)[:3]


def _parse_arguments(
    parser: Parser, allow_variadic: bool
) -> tuple[list[Parser.Argument], list[Attribute], ArrayAttr[DictionaryAttr] | None, bool]:
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
        argument_type = named.type if named is not None else parser.parse_optional_type()
        if argument_type is None:
            parser.raise_error("Expected argument or type")
        if types and (named is None) == bool(names):
            parser.raise_error("Expected all arguments to be named or all arguments to be unnamed.", start, parser.pos)
        dictionaries.append(parser.parse_optional_dictionary_attr_dict())
        location = parser.parse_optional_location()
        if location is not None and parser.parse_optional_dictionary_attr_dict():
            parser.raise_error("Expected function argument attributes before location.", start, parser.pos)
        types.append(argument_type)
        if named is not None:
            named.location = location
            names.append(named)

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
    return names, types, _attributes(dictionaries), is_variadic


def _parse_outputs(parser: Parser) -> tuple[list[Attribute], list[dict[str, Attribute]]]:
    if parser.parse_optional_punctuation("->") is None:
        return [], []
    several = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, lambda: (parser.parse_type(), parser.parse_optional_dictionary_attr_dict())
    )
    if several is None:
        return [parser.parse_type()], []
    return [result_type for result_type, _ in several], [dictionary for _, dictionary in several]


def called_function(op: Operation, name: SymbolRefAttr, kind: type[FunctionT], what: str) -> FunctionT | None:
    """The function of that kind that `op` names; None if no module holds the op yet. raises VerifyException if there is none"""
    holder: Operation | None = op
    while holder is not None and not holder.has_trait(SymbolTable):
        holder = holder.parent_op()
    if holder is None:
        return None
    found = SymbolTable.lookup_symbol(holder, name)
    if not isinstance(found, kind):
        raise VerifyException(f"there is no {what} {name}")
    return found


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
    """Prints the part after `func.func` and its visibility.

    print_empty_outputs  whether xDSL would write `-> ()` in a declaration without results; MLIR does not, nor does this
    """
    printer.print_string(" ")
    printer.print_symbol_name(sym_name.data)
    inputs, outputs = function_type.inputs.data, function_type.outputs.data
    if body.blocks:
        print_arguments(printer, body.blocks[0].args, arg_attrs, is_variadic)
    else:
        print_arguments(printer, inputs, arg_attrs, is_variadic)
    print_outputs(printer, outputs, res_attrs)
    printer.print_op_attributes(dict(attributes), reserved_attr_names=reserved_attr_names, print_keyword=True)
    if body.blocks:
        printer.print_string(" ", indent=0)
        printer.print_region(body, False, False)


def print_arguments(
    printer: Printer,
    arguments: Sequence[BlockArgument] | Sequence[Attribute],
    dictionaries: ArrayAttr[DictionaryAttr] | None,
    is_variadic: bool = False,
) -> None:
    """The inverse of `parse_arguments`; of a declaration the types alone."""
    attributes = dictionaries.data if dictionaries is not None else (None,) * len(arguments)
    with printer.in_parens():
        for position, (argument, dictionary) in enumerate(zip(arguments, attributes, strict=True)):
            printer.print_string(", " if position else "")
            if isinstance(argument, BlockArgument):
                print_func_argument(printer, argument, dictionary)
            else:
                print_func_output(printer, argument, dictionary)
        if is_variadic:
            printer.print_string(", ..." if arguments else "...")


def print_outputs(
    printer: Printer, outputs: Sequence[Attribute], dictionaries: ArrayAttr[DictionaryAttr] | None
) -> None:
    """` -> (f32 {llvm.noundef})`, nothing where a function has no results."""
    if not outputs:
        return
    attributes = dictionaries.data if dictionaries is not None else (None,) * len(outputs)
    is_bare = len(outputs) == 1 and dictionaries is None and not isinstance(outputs[0], FunctionType)
    printer.print_string(" -> " if is_bare else " -> (")
    printer.print_list(zip(outputs, attributes, strict=True), lambda pair: print_func_output(printer, *pair))
    printer.print_string("" if is_bare else ")")
