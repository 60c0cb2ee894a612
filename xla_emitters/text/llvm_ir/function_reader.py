"""One function of LLVM IR as blocks of ops: its values, its control flow, a row of `INSTRUCTIONS` an instruction.

    %x = phi i32 [ 0, %entry ], [ %y, %loop ]       an argument of the block; terminators pass the values
    br i1 %c, label %loop, label %exit              llvm.cond_br %c, ^loop(%y : i32), ^exit

A value may be used before the text defines it: it is a placeholder until then. Blocks that cannot be reached are left out. What LLVM
promises (`nuw`, `nnan`, `inbounds`, ranges) is read and dropped: the ops compute what they compute without it.
Source: LLVM language reference, "Instruction Reference".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import LocationAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xla_emitters.dialects.locations import fuse_locations, location_at
from xla_emitters.dialects.mlir import llvm
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.llvm_ir.llvm_constants import ConstantReader
from xla_emitters.text.llvm_ir.llvm_ir_lexer import LlvmTokenKind, Token, name_of
from xla_emitters.text.llvm_ir.llvm_types import VOID
from xla_emitters.text.ptx.op_builder import hint_of

Read = Callable[["FunctionReader"], SSAValue | None]
INSTRUCTIONS: dict[str, Read] = {}
"""Opcode -> reads what follows it and adds the ops; returns the value."""


def instruction(*opcodes: str) -> Callable[[Read], Read]:
    def register(read: Read) -> Read:
        INSTRUCTIONS.update(dict.fromkeys(opcodes, read))
        return read

    return register


Make = Callable[[Any, list[list[SSAValue]]], Operation]


@dataclass
class _End:
    """A terminator. make: (its operand, the values for the arguments of each way) -> the op."""

    ways: list[Block]
    operand: SSAValue | None
    make: Make
    location: LocationAttr


@dataclass
class _Phi:
    argument: SSAValue
    token: Token
    values: dict[Block, SSAValue] = field(default_factory=dict[Block, SSAValue])


class FunctionReader(ConstantReader):
    """Reads the body of a function.

    start     offset behind its opening brace
    entry     its first block, with the parameters as arguments; names: of the parameters, in order
    location  (metadata of `!dbg`) -> a place in the source
    """

    def __init__(
        self, source: Source, start: int, entry: Block, names: Sequence[str], location: Callable[[str], LocationAttr]
    ) -> None:
        super().__init__(source, start)
        self.entry = self.block = entry
        self.output: Attribute = VOID
        self.callees: dict[str, Token] = {}
        self._location = location
        # Arguments behind the parameters have no names.
        self._values: dict[str, SSAValue] = dict(zip(names, entry.args, strict=False))
        self._forward: dict[str, tuple[SSAValue, Token]] = {}
        self._defined: dict[SSAValue, SSAValue] = {}
        self._blocks: dict[str, Block] = {}
        self._wanted: dict[str, Token] = {}
        self._phis: dict[Block, list[_Phi]] = {entry: []}
        self._ends: dict[Block, _End] = {}
        self._made: list[Operation] = []
        self._unnamed = sum(name.isdigit() for name in names)
        self._promises: dict[str, int] = {}
        self.metadata: dict[str, str] = {}

    # ------------------------------------------------------------------------------------------ the whole

    def region(self, output: Attribute) -> Region:
        """The body, up to its closing brace. raises ParseError, Unsupported"""
        cursor, self.output = self.cursor, output
        if cursor.token.kind is not LlvmTokenKind.LABEL:
            self._blocks[str(self._unnamed)] = self.entry
        while not cursor.at("}"):
            if cursor.token.kind is LlvmTokenKind.LABEL:
                self._label()
            elif cursor.token.text.startswith("#dbg_"):
                cursor.advance()
                cursor.skip_group()
            else:
                self._instruction()
        if self.block not in self._ends:
            raise cursor.unexpected("the end of a block, such as 'ret'")
        for name, token in self._wanted.items():
            if self._blocks[name] not in self._phis:
                raise self.error(f"'%{name}' is not defined{nearest(name, self._blocks)}", token)
        for name, (_, token) in self._forward.items():
            raise self.error(f"'%{name}' is not defined{nearest(name, self._values)}", token)
        return self._connected()

    def _label(self) -> None:
        token = self.cursor.advance()
        name = name_of(token)
        if self.block not in self._ends and self._blocks:
            raise self.error("the block before has no end, such as 'ret'", token)
        if name in self._blocks and self._blocks[name] in self._phis:
            raise self.error(f"'%{name}' is defined twice", token)
        if not self._blocks:
            self._blocks[name] = self.entry
            return
        self.block = self._blocks.setdefault(name, Block())
        self._phis[self.block] = []

    def _connected(self) -> Region:
        """Adds the terminators of all blocks that can be reached, with the values for the arguments of the blocks after them."""
        reached, pending = {self.entry: None}, [self.entry]
        while pending:
            for way in self._ends[pending.pop()].ways:
                if way not in reached:
                    reached[way] = None
                    pending.append(way)
        if any(self.entry in self._ends[block].ways for block in reached):
            raise self.error("the first block has no predecessors", self.cursor.token)
        for block in reached:
            end = self._ends[block]
            passed = list[list[SSAValue]]()
            for way in end.ways:
                for phi in self._phis[way]:
                    if block not in phi.values:
                        raise self.error("this phi has no value for one of the block's predecessors", phi.token)
                values = [phi.values[block] for phi in self._phis[way]]
                passed.append([self._defined.get(value, value) for value in values])
            operand = end.operand and self._defined.get(end.operand, end.operand)
            op = end.make(operand, passed)
            op.location = end.location
            block.add_op(op)
        first = self.entry.first_op
        assert first is not None
        self.entry.insert_ops_before(self.constants, first)
        order = [block for block in self._phis if block in reached]
        return Region([self.entry, *(block for block in order if block is not self.entry)])

    # ------------------------------------------------------------------------------------------ instructions

    def _instruction(self) -> None:
        cursor, result = self.cursor, None
        if self.block in self._ends:
            raise cursor.unexpected("a label or '}' after the end of the block")
        if cursor.token.kind is LlvmTokenKind.LOCAL:
            result = cursor.advance()
            cursor.expect("=", "after the name of the result")
        while cursor.at("tail", "musttail", "notail"):
            cursor.advance()
        token = cursor.expect_kind(LlvmTokenKind.WORD, "an instruction")
        read = INSTRUCTIONS.get(token.text)
        if read is None:
            raise self.unsupported(f"instruction '{token.text}'", token)
        self._made, self.metadata, self._promises = [], {}, {}
        self.here = location_at(cursor.source.file, *cursor.source.line_and_column(token.start))
        value = read(self)
        self.tail()
        location = self.here
        if (place := self.metadata.get("dbg")) is not None:
            location = fuse_locations(location, self._location(place))
        for op in self._made:
            op.location = location
        if (end := self._ends.get(self.block)) is not None:
            end.location = location
        if value is None:
            if result is not None:
                raise self.error(f"'{token.text}' has no value", result)
        elif result is not None:
            self.define(result, value)

    def tail(self) -> dict[str, int]:
        """`, align 4, !range !3` behind an instruction; returns numbers by their words."""
        cursor = self.cursor
        while cursor.accept(","):
            if cursor.accept("align"):
                number = self._promises["align"] = cursor.integer("the alignment")
                if number & (number - 1) or not 0 < number <= 1 << 32:
                    raise self.error("an alignment is a power of two")
            elif cursor.at("addrspace"):
                self._promises["addrspace"] = self.address_space()
            else:
                word = cursor.expect_kind(LlvmTokenKind.METADATA, "an alignment or metadata").text
                self.metadata[word[1:]] = self.metadata_value()
        return self._promises

    def add(self, op: Operation) -> SSAValue:
        """Adds the op; returns its first result."""
        self.do(op)
        return op.results[0]

    def do(self, op: Operation) -> None:
        self.block.add_op(op)
        self._made.append(op)

    def define(self, token: Token, value: SSAValue) -> None:
        name = name_of(token)
        if name in self._values:
            raise self.error(f"'%{name}' is defined twice", token)
        self._values[name] = value
        if value.name_hint is None:
            value.name_hint = hint_of(name)
        if (forward := self._forward.pop(name, None)) is not None:
            placeholder, used = forward
            if placeholder.type != value.type:
                raise self.error(f"'%{name}' is {value.type}, not {placeholder.type}", used)
            placeholder.replace_all_uses_with(value)
            self._defined[placeholder] = value

    def value(self, ir_type: Attribute) -> SSAValue:
        """The operand of that type which comes next."""
        token = self.cursor.token
        if token.kind is not LlvmTokenKind.LOCAL:
            return self.constant(ir_type)
        self.cursor.advance()
        name = name_of(token)
        found = self._values.get(name)
        if found is None:
            if name not in self._forward:
                self._forward[name] = llvm.PoisonOp(ir_type).res, token
            found = self._forward[name][0]
        if found.type != ir_type:
            raise self.error(f"'%{name}' is {found.type}, not {ir_type}", token)
        return found

    def target(self) -> Block:
        """`label %loop`"""
        self.cursor.expect("label", "before the block's name")
        return self.block_named()

    def block_named(self) -> Block:
        token = self.cursor.expect_kind(LlvmTokenKind.LOCAL, "a block")
        self._wanted.setdefault(name_of(token), token)
        return self._blocks.setdefault(name_of(token), Block())

    def end(self, ways: list[Block], operand: SSAValue | None, make: Make) -> None:
        """Ends the block."""
        self._ends[self.block] = _End(ways, operand, make, self.here)

    def phi(self, ir_type: Attribute, token: Token) -> _Phi:
        """A new argument of the block."""
        if self.block is self.entry or self.block.first_op is not None:
            raise self.error("a phi is at the start of a block that has predecessors", token)
        argument = self.block.insert_arg(ir_type, len(self.block.args))
        found = _Phi(argument, token)
        self._phis[self.block].append(found)
        return found

    def comma(self) -> None:
        self.cursor.expect(",", "after the operand")

    def operands(self, count: int) -> list[SSAValue]:
        """`i32 %a, ptr %p`: so many operands, each with its type."""
        found = [self.typed()]
        while len(found) < count:
            self.comma()
            found.append(self.typed())
        return found

    def two_alike(self, ir_type: Attribute) -> tuple[SSAValue, SSAValue]:
        """`%a, %b`: two operands of that type."""
        first = self.value(ir_type)
        self.comma()
        return first, self.value(ir_type)

    def immediate(self, value: SSAValue, token: Token) -> Attribute:
        """The constant that an argument must be. raises ParseError"""
        if not isinstance(value.owner, llvm.ConstantOp):
            raise self.error(f"the last argument of {token} must be a constant", token)
        return value.owner.value

    def picks(self, count: int) -> list[int]:
        """The elements that a shufflevector chooses; -1 for poison: `<4 x i32> <i32 0, i32 poison, i32 2, i32 1>`"""
        cursor = self.cursor
        if (word := cursor.accept_any("zeroinitializer", "poison", "undef")) != "":
            return [0 if word == "zeroinitializer" else -1] * count
        is_splat = cursor.accept("splat")
        cursor.expect("(" if is_splat else "<", "before the chosen elements")
        found = list[int]()
        while len(found) < (1 if is_splat else count):
            if found:
                cursor.expect(",", "between the chosen elements")
            if self.value_type() != i32:
                raise self.error("the chosen elements are of type i32")
            found.append(-1 if cursor.accept_any("poison", "undef") else cursor.integer("a chosen element"))
        cursor.expect(")" if is_splat else ">", "after the chosen elements")
        return found * (count // len(found))

    def integer_list(self) -> list[int]:
        """`, 0, 1`"""
        found = list[int]()
        while self.cursor.at(",") and self.cursor.peek().kind is not LlvmTokenKind.METADATA:
            self.cursor.advance()
            found.append(self.cursor.integer("the number of a field"))
        return found
