"""Ops without code of their own: one table row each, from which the op's class is made.

    opcode      operands  attributes    result                                          meaning
    cholesky    1         lower         as the operand, a batch of square matrices      the library function
    after-all   any       -             token[]                                         ()
    infeed      1         infeed_config what the text says                              none

Such an op parses, verifies and prints, and has a value in NumPy if its row has a meaning. It has no indexing map and no code: these methods
raise Unsupported naming it.
The families that list their rows: `host`, `collectives`, `routines`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolRefAttr, TupleType
from xdsl.ir import Attribute
from xdsl.irdl import opt_prop_def, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect

from xla_emitters.dialects.hlo.backend_configs import shape_operands
from xla_emitters.dialects.hlo.base import Call, HloOp, RuleBroken, class_for, integer, integers
from xla_emitters.dialects.hlo.computation import Callee, CallingOp
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing
from xla_emitters.dialects.hlo.types import (
    ArrayType,
    TokenType,
    array_type,
    as_array,
    element_of,
    is_array,
    one_or_tuple,
    same_shape,
    tuple_types,
    type_text,
)
from xla_emitters.dialects.isa import isa
from xla_emitters.dtypes import Kind, dtype
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class RuleRow:
    """The description of one op.

    operands  the allowed numbers of operands; None: any number
    result    the type that follows from operands and attributes, or None if only the text states it; raises RuleBroken for a misfit
    required  attributes that must be present, in the order of HLO text
    optional  attributes that may be present
    callees   the computations that it calls, with their parameter and root types
    infers    whether the text may omit the result's shape
    meaning   computes the value, as `HloOp.evaluate`; None: no value here
    shapes    the shape rule, as `HloOp.shapes`; None: the type alone says the sizes
    static    whether the meaning reads sizes from the types
    acts      whether it does more than to compute its result: it stays where nothing reads that
    """

    opcode: str
    operands: range | None
    result: Callable[[RuleOp], Attribute | None]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    callees: Callable[[RuleOp], tuple[Callee, ...]] = lambda op: ()
    infers: bool = False
    meaning: Callable[[RuleOp, Sequence[Any], Call], Any] | None = None
    shapes: Callable[[RuleOp, Sizing], Sequence[Shape] | None] | None = None
    static: bool = False
    acts: bool = False


class RuleOp(CallingOp):
    """An op of a table, described by its `ROW`."""

    ROW: ClassVar[RuleRow]

    def callees(self) -> tuple[Callee, ...]:
        return self.ROW.callees(self)

    def verify_shape(self) -> None:
        wanted = self.ROW.result(self)
        if wanted is not None:
            self.expect_type(wanted, "operands and attributes give")

    def infer_type(self) -> Attribute | None:
        return self.ROW.result(self) if self.ROW.infers else None

    @classmethod
    def has_shape_rule(cls) -> bool:
        return cls.ROW.shapes is not None

    def shapes(self, s: Sizing) -> Sequence[Shape] | None:
        return None if self.ROW.shapes is None else self.ROW.shapes(self, s)

    @property
    def number_operands(self) -> Sequence[int]:
        return shape_operands(self)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        if self.ROW.meaning is None:
            return super().evaluate(operands, call)
        return self.ROW.meaning(self, operands, call)

    # --------------------------------------------------------------------------------------------- attributes

    def number(self, name: str, default: int = 0) -> int:
        """The attribute's number (a truth value as 0 or 1), or `default`."""
        return integer(self.properties.get(name), default)

    def numbers(self, name: str) -> tuple[int, ...]:
        """The attribute's list of numbers; empty when it is absent."""
        return integers(self.properties.get(name))

    def word(self, name: str) -> str:
        """The attribute's text, or ""."""
        found = self.properties.get(name)
        return found.data if isinstance(found, StringAttr) else ""

    def symbols(self, name: str) -> tuple[SymbolRefAttr, ...]:
        """The computations that the attribute names."""
        found = self.properties.get(name)
        if isinstance(found, SymbolRefAttr):
            return (found,)
        return tuple(found) if isa(found, ArrayAttr[SymbolRefAttr]) else ()

    # ------------------------------------------------------------------------------------------------- checks

    def type_of(self, operand: int) -> Attribute:
        return self.operands[operand].type

    @property
    def types(self) -> list[Attribute]:
        """The types of all operands."""
        return [operand.type for operand in self.operands]

    def array(self, operand: int) -> ArrayType:
        """The type of an operand that must be an array."""
        if not is_array(ir_type := self.type_of(operand)):
            raise self.broken(f"operand {operand} of '{self.opcode}' is an array", operand)
        return ir_type

    def broken(self, message: str, operand: int | None = None, *details: str) -> RuleBroken:
        """The RuleBroken error for the violated rule `message`; if `operand` is given, its type is shown."""
        shown = () if operand is None else (f"it is {type_text(self.type_of(operand))}",)
        return RuleBroken(message, *shown, *details, operand=operand)

    def expect_operand(self, operand: int, wanted: Attribute) -> None:
        """The operand must be of that type, layout aside."""
        if not same_shape(self.type_of(operand), wanted):
            raise self.broken(
                f"operand {operand} of '{self.opcode}' does not fit", operand, f"it must be {type_text(wanted)}"
            )

    def expect_kind(self, operand: int, *kinds: Kind) -> None:
        """The operand's elements must be of one of these kinds."""
        self.array(operand)
        if element_of(self.operands[operand]).kind not in kinds:
            shown = " or ".join(kind.value for kind in kinds)
            raise self.broken(f"operand {operand} of '{self.opcode}' holds {shown} elements", operand)

    def expect_word(self, name: str, allowed: Sequence[str]) -> None:
        """The attribute must be one of these words."""
        if self.word(name) not in allowed:
            raise self.broken(f"no {name} '{self.word(name)}'", None, f"it is one of {', '.join(allowed)}")


# ---------------------------------------------------------------------------------------------------- rules of many ops

TOKEN = TokenType()
WAITS_FOR = "xla_emitters_waits_for"
"""In the front end's attributes of an opt-barrier: the program waits there for a collective that has started before."""


def is_wait(op: HloOp) -> bool:
    """Whether an instruction is the place where the program waits for a collective; its operands are what is in use until then."""
    said = op.attributes.get("frontend_attributes")
    return op.opcode == "opt-barrier" and isinstance(said, StringAttr) and WAITS_FOR in said.data


def scalar(name: str) -> ArrayType:
    """The scalar type of that HLO element type."""
    return array_type(dtype(name).ir_type, ())


def element_scalar(ir_type: Attribute) -> Attribute:
    """The scalar with an array's element type."""
    return array_type(as_array(ir_type).element_type, ())


def as_operand(number: int) -> Callable[[RuleOp], Attribute]:
    """The result has the type of operand `number`."""
    return lambda op: op.type_of(number)


def as_operands(op: RuleOp) -> Attribute:
    """The result has the type of the only operand, or is the tuple of all operands."""
    return one_or_tuple(op.types)


def element_of_tuple(number: int) -> Callable[[RuleOp], Attribute]:
    """The result is an element of the operand, a tuple."""

    def result(op: RuleOp) -> Attribute:
        types = tuple_types(op.type_of(0))
        if not isinstance(op.type_of(0), TupleType) or number >= len(types):
            raise op.broken(f"'{op.opcode}' takes the tuple that its start returns, of more than {number} elements", 0)
        return types[number]

    return result


def class_of(row: RuleRow, module: str) -> type[RuleOp]:
    """The op class of a row, as if written out in `module`."""
    members = {
        "ROW": row,
        "OPERANDS": row.operands,
        "DEPENDS_ON_SIZES": row.static,
        **({"traits": traits_def(MemoryWriteEffect())} if row.acts else {}),
        **{f"{name}_property": prop_def(Attribute, prop_name=name) for name in row.required},
        **{f"{name}_property": opt_prop_def(Attribute, prop_name=name) for name in row.optional},
    }
    return class_for(RuleOp, row.opcode, module, members)
