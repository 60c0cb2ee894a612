"""The code of an op as a value: equal for two ops that differ in names and locations only.

    func.func @add_0(%a : ...) { call @helper_0(%a) loc("add.0") }      code_of  ->  ("func.func", ...)
    func.func @add_7(%x : ...) { call @helper_7(%x) loc("add.7") }      code_of  ->  the same

Equal means: the same ops with the same attributes on the same values, in the same order, and block arguments of the same types; values
and blocks are numbered in the order in which they occur. So are the given symbols, wherever they are named; other symbols are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from xla_emitters.dialects.quick_op import blocks_of, operands_of, ops_of

Code: TypeAlias = tuple[object, ...]
_NAME = "sym_name"


def code_of(op: Operation, symbols: Mapping[str, int] | None = None) -> Code:
    """The op's code with what is inside it. The names of symbols that ops define are no part of it.

    symbols  name -> number, in place of these names where attributes refer to them
    """
    return tuple(_code(op, dict[SSAValue | Block, int](), symbols or {}))


def _code(op: Operation, numbers: dict[SSAValue | Block, int], symbols: Mapping[str, int]) -> Iterator[object]:
    def number(part: SSAValue | Block) -> int:
        return numbers.setdefault(part, len(numbers))

    yield op.name
    for attributes in (op.properties, op.attributes):
        yield _dictionary({name: value for name, value in attributes.items() if name != _NAME}, symbols)
    yield tuple(map(number, operands_of(op)))
    yield tuple(map(number, op.successors))
    yield tuple([(number(result), result.type) for result in op.results])
    for region in op.regions:
        yield len(region.blocks)
        for block in blocks_of(region):
            yield _block(block, numbers)
            for inner in ops_of(block):
                yield from _code(inner, numbers, symbols)
            yield "end"


def _block(block: Block, numbers: dict[SSAValue | Block, int]) -> Code:
    number = numbers.setdefault(block, len(numbers))
    return number, *[(numbers.setdefault(argument, len(numbers)), argument.type) for argument in block.args]


def _dictionary(attributes: Mapping[str, Attribute], symbols: Mapping[str, int]) -> Code:
    # Names are different, so that values are never compared for their order.
    return tuple(sorted([(name, _attribute(value, symbols)) for name, value in attributes.items()]))


def _attribute(value: Attribute, symbols: Mapping[str, int]) -> object:
    if not symbols:
        return value
    match value:
        case SymbolRefAttr() if (number := symbols.get(value.root_reference.data)) is not None:
            return number, value.nested_references
        case ArrayAttr():
            return tuple([_attribute(inner, symbols) for inner in value.data])
        case DictionaryAttr():
            return _dictionary(value.data, symbols)
        case _:
            return value
