"""IR as bytes, for compiling in several processes of one program.

    data = ir_to_bytes(module)        in a process that was forked from this one
    module = ir_from_bytes(data)      here: equal to it, with locations and names of values

Text would work, but takes many times as long to read. Ops become plain tuples with the numbers of their operands; types and attributes are
pickled, each once however often it is used. Only for one process and its children: this is not a storage format, and unpickling
can run any code, so bytes from elsewhere must not be read.
Raises ValueError if the class of an op cannot be found by its name (a plugin's), or an attribute cannot be pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xla_emitters.dialects.completion import own_class
from xla_emitters.dialects.context import DIALECTS, op_named

_Value = tuple[int, Attribute, str | None]
"""A value's number, type and name."""
_Block = tuple[tuple[_Value, ...], tuple["_Op", ...]]
_Op = tuple[str, tuple[int, ...], tuple[_Value, ...], Any, Any, Any, tuple[int, ...], tuple[tuple[_Block, ...], ...]]
"""Name, operands, results, properties, attributes, location, numbers of successors, regions."""


def ir_to_bytes(module: ModuleOp) -> bytes:
    """raises ValueError: see above"""
    try:
        return pickle.dumps(_Packer().op(module, {}), pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(f"not to be packed: {error}") from error


def ir_from_bytes(data: bytes) -> ModuleOp:
    """The module that was given to `ir_to_bytes`, in another process."""
    unpacker = _Unpacker()
    module = unpacker.op(pickle.loads(data), ())
    assert isinstance(module, ModuleOp)
    for op, operands in unpacker.late:
        op.operands = [unpacker.values[operand] for operand in operands]
    return module


class _Packer:
    """Numbers the values, and packs ops."""

    def __init__(self) -> None:
        self.numbers: dict[SSAValue, int] = {}

    def op(self, op: Operation, blocks: dict[Block, int]) -> _Op:
        if op.name.partition(".")[0] not in DIALECTS or (own_class(type(op)) or type(op)) is not op_named(op.name):
            raise ValueError(f"{op.name} is not found by its name")
        return (
            op.name,
            tuple(map(self.number, op.operands)),
            tuple(map(self.value, op.results)),
            op.properties,
            op.attributes,
            op.location,
            tuple(blocks[successor] for successor in op.successors),
            tuple(map(self.region, op.regions)),
        )

    def region(self, region: Region) -> tuple[_Block, ...]:
        blocks = {block: number for number, block in enumerate(region.blocks)}
        return tuple((tuple(map(self.value, b.args)), tuple(self.op(op, blocks) for op in b.ops)) for b in blocks)

    def number(self, value: SSAValue) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def value(self, value: SSAValue) -> _Value:
        return self.number(value), value.type, value.name_hint


class _Unpacker:
    """Builds ops. `late`: ops with operands that come later in the text, and the numbers of their operands."""

    def __init__(self) -> None:
        self.values: dict[int, SSAValue] = {}
        self.late: list[tuple[Operation, tuple[int, ...]]] = []

    def op(self, packed: _Op, blocks: tuple[Block, ...]) -> Operation:
        name, operands, results, properties, attributes, location, successors, regions = packed
        is_late = not self.values.keys() >= set(operands)
        op = op_named(name).create(
            operands=() if is_late else [self.values[operand] for operand in operands],
            result_types=[kind for _, kind, _ in results],
            properties=properties,
            attributes=attributes,
            successors=[blocks[number] for number in successors],
        )
        op.location = location
        if is_late:
            self.late.append((op, operands))
        self.note(op.results, results)
        for region in regions:
            op.add_region(self.region(region))
        return op

    def region(self, packed: tuple[_Block, ...]) -> Region:
        blocks = tuple(Block(arg_types=[kind for _, kind, _ in arguments]) for arguments, _ in packed)
        for block, (arguments, _) in zip(blocks, packed, strict=True):
            self.note(block.args, arguments)
        for block, (_, ops) in zip(blocks, packed, strict=True):
            block.add_ops([self.op(op, blocks) for op in ops])
        return Region(blocks)

    def note(self, made: Sequence[SSAValue], packed: tuple[_Value, ...]) -> None:
        for value, (number, _, name) in zip(made, packed, strict=True):
            value.name_hint = name
            self.values[number] = value
