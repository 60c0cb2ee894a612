"""Constants of `arith`: made with MLIR's names, read as attributes and as numbers, and kept together.

    arith.constant 7 : index                          %c7; of i32 %c7_i32, true %true, of a float %cst
    func @f { %c7 = ...; loop { %c7_0 = ... } }  ->   func @f { %c7 = ...; loop { } }

A constant is kept once per function, at its entry. Numbers are signed, and wrap at the width of their type.
"""

from __future__ import annotations

from typing import cast

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import ConstantLike, IsolatedFromAbove

from xla_emitters.dialects.attributes import INDEX, AttributeNumbers, integer, name_of_constant, numbers_of
from xla_emitters.dialects.locations import UNKNOWN
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.quick_accessors import item
from xla_emitters.dialects.quick_op import op_of, walk
from xla_emitters.rewrite.effects import has_trait_type, is_constant, is_constant_type

AnyInteger = IntegerAttr[IntegerType | IndexType]
ConstantKey = tuple[type[Operation], tuple[tuple[str, int], ...], int]
_Constants = tuple[dict[ConstantKey, Operation], list[Operation]]
"""The constants of a block: each by what makes it equal to others, and all in order."""


class ConstantPool:
    """The constants at the entry of every function, each once, in the order of their first use.

    The location of a constant that several HLO instructions use becomes unknown.
    """

    def __init__(self, numbers: AttributeNumbers | None = None) -> None:
        self._known: dict[Block, _Constants] = {}
        self._numbers = numbers or AttributeNumbers()
        # Those of the last block that was asked for: mostly it is asked for again.
        self._block: Block | None = None
        self._of_block: _Constants = ({}, [])

    def unique(self, constant: Operation, block: Block) -> Operation:
        """The only op equal to `constant` at the start of `block`: `constant` itself, moved there, or the one already there."""
        if block is not self._block:
            self._block = block
            self._of_block = self._known.setdefault(block, ({}, []))
        known, order = self._of_block
        numbers = self._numbers
        properties = [(name, numbers[value]) for name, value in constant.properties.items()]
        properties.sort()
        key = (type(constant), tuple(properties), numbers[item(constant.results, 0).type])
        found = known.get(key)
        if found is not None and found.parent is block:
            if found.location != constant.location:
                found.location = UNKNOWN
            return found
        while order and order[-1].parent is not block:
            order.pop()  # erased meanwhile
        last = order[-1] if order else None
        if constant.parent is not block or constant.prev_op is not last:
            if constant.parent is not None:
                constant.detach()
            if last is not None:
                block.insert_op_after(constant, last)
            elif (first := block.first_op) is not None:
                block.insert_op_before(constant, first)
            else:
                block.add_op(constant)
        order.append(constant)
        known[key] = constant
        return constant


def hoist_constants(root: Operation) -> None:
    """Keeps every constant inside `root` once per function, at the function's entry."""
    pool = ConstantPool(numbers_of(root))
    for op in [op for op in walk(root) if is_constant(op) and not op.attributes]:
        kept = pool.unique(op, entry_block(op))
        if kept is not op:
            Rewriter.replace_op(op, (), kept.results)


def entry_block(op: Operation) -> Block:
    """The first block of the function, or other isolated op, around `op`."""
    block = op.parent
    while block is not None:
        parent = block.parent_op()
        if parent is None or has_trait_type(type(parent), IsolatedFromAbove):
            region = block.parent
            first = region.first_block if region is not None else None
            return first if first is not None else block
        block = parent.parent
    raise ValueError("a detached op has no entry block")


def is_constant_value(value: SSAValue) -> bool:
    """Whether `value` is the result of a constant op."""
    return (op := op_of(value)) is not None and is_constant_type(type(op))


def literal(builder: Builder, value: int, kind: IntegerType | IndexType = INDEX) -> SSAValue:
    """An integer where the builder inserts."""
    return builder.insert(arith.ConstantOp(IntegerAttr(value, kind))).result


def constant_op(value: AnyInteger | FloatAttr) -> arith.ConstantOp:
    """An `arith.constant` with the name that MLIR gives its result."""
    constant = arith.ConstantOp(value)
    constant.result.name_hint = name_of_constant(value)
    return constant


def constant_value(value: SSAValue) -> Attribute | None:
    """The attribute of a value that a constant op defines."""
    op = op_of(value)
    if type(op) is arith.ConstantOp:
        return op.properties["value"]
    return ConstantLike.get_constant_value(value) if op is not None and is_constant_type(type(op)) else None


def constant_integer(value: SSAValue) -> int | None:
    """The signed value of an integer or index constant."""
    attribute = constant_value(value)
    return signed_of(attribute) if attribute is not None else None


def width(integer_type: Attribute) -> int | None:
    """Bits at which integer arithmetic wraps: 64 for index; the low 32 bits are then right for a 32-bit index too."""
    if type(integer_type) is IndexType:
        return 64
    return integer_type.width.data if type(integer_type) is IntegerType else None


def wrap(value: int, bits: int) -> int:
    """`value` as a signed integer of `bits` bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def integer_attr(value: int, integer_type: Attribute) -> IntegerAttr:
    """An attribute of `integer_type` (integer or index) with `value`, wrapped."""
    bits = width(integer_type)
    assert bits is not None
    return integer(wrap(value, bits), cast("IntegerType | IndexType", integer_type))


def signed_of(attribute: Attribute | None) -> int | None:
    """The signed value of an integer attribute; None for others."""
    if type(attribute) is not IntegerAttr:
        return None
    constant: AnyInteger = attribute
    bits = width(constant.type)
    return None if bits is None else wrap(constant.value.data, bits)
