"""One function of LLVM IR as blocks of ops: its values, its control flow, a row an instruction.

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

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FileLineColLoc,
    IntAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.llvm.atomics import ATOMIC_OPERATIONS
from xla_emitters.dialects.mlir.llvm.memory import ORDERINGS
from xla_emitters.llvm_ir_text.constants import BINARY, CASTS, ConstantReader
from xla_emitters.llvm_ir_text.lexer import Token, TokenKind, name_of
from xla_emitters.llvm_ir_text.types import VOID, layout
from xla_emitters.rewrite.locations import fuse_locations
from xla_emitters.texts.cursor import nearest
from xla_emitters.texts.source import Source

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
        self._values: dict[str, SSAValue] = dict(zip(names, entry.args, strict=True))
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
        if cursor.token.kind is not TokenKind.LABEL:
            self._blocks[str(self._unnamed)] = self.entry
        while not cursor.at("}"):
            if cursor.token.kind is TokenKind.LABEL:
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
        if cursor.token.kind is TokenKind.LOCAL:
            result = cursor.advance()
            cursor.expect("=", "after the name of the result")
        while cursor.at("tail", "musttail", "notail"):
            cursor.advance()
        token = cursor.expect_kind(TokenKind.WORD, "an instruction")
        read = INSTRUCTIONS.get(token.text)
        if read is None:
            raise self.unsupported(f"instruction '{token.text}'", token)
        self._made, self.metadata, self._promises = [], {}, {}
        line, column = cursor.source.line_and_column(token.start)
        self.here = FileLineColLoc(StringAttr(cursor.source.file), IntAttr(line), IntAttr(column))
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
                word = cursor.expect_kind(TokenKind.METADATA, "an alignment or metadata").text
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
            hint = "".join(char if char.isalnum() or char == "_" else "_" for char in name)
            value.name_hint = hint if not hint[0].isdigit() else None
        if (forward := self._forward.pop(name, None)) is not None:
            placeholder, used = forward
            if placeholder.type != value.type:
                raise self.error(f"'%{name}' is {value.type}, not {placeholder.type}", used)
            placeholder.replace_all_uses_with(value)
            self._defined[placeholder] = value

    def value(self, ir_type: Attribute) -> SSAValue:
        """The operand of that type which comes next."""
        token = self.cursor.token
        if token.kind is not TokenKind.LOCAL:
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
        token = self.cursor.expect_kind(TokenKind.LOCAL, "a block")
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

    def is_zero(self, value: SSAValue) -> bool:
        return isinstance(value.owner, llvm.ConstantOp) and value.owner.value == IntegerAttr(0, i32)

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
        while self.cursor.at(",") and self.cursor.peek().kind is not TokenKind.METADATA:
            self.cursor.advance()
            found.append(self.cursor.integer("the number of a field"))
        return found


# ---------------------------------------------------------------------------------------------- arithmetic


def _binary(word: str) -> Read:
    def read(r: FunctionReader) -> SSAValue:
        r.flags()
        ir_type = r.value_type()
        first = r.value(ir_type)
        r.comma()
        return r.add(BINARY[word](first, r.value(ir_type)))

    return read


INSTRUCTIONS.update({word: _binary(word) for word in BINARY})


@instruction("fneg")
def fneg(r: FunctionReader) -> SSAValue:
    r.flags()
    return r.add(llvm.FNegOp(r.typed()))


@instruction("freeze")
def freeze(r: FunctionReader) -> SSAValue:
    return r.add(llvm.FreezeOp(r.typed()))


def _cast(word: str) -> Read:
    def read(r: FunctionReader) -> SSAValue:
        r.flags()
        return r.add(r.cast_op(word))

    return read


INSTRUCTIONS.update({word: _cast(word) for word in CASTS})


@instruction("icmp", "fcmp")
def compare(r: FunctionReader) -> SSAValue:
    kind = llvm.ICmpOp if r.cursor.previous.text == "icmp" else llvm.FCmpOp
    r.flags()
    token = r.cursor.advance()
    predicate = f"_{token.text}" if token.text in ("true", "false") else token.text
    if predicate not in kind.PREDICATES:
        raise r.error(f"there is no comparison '{token.text}'", token)
    ir_type = r.value_type()
    first = r.value(ir_type)
    r.comma()
    return r.add(kind(first, r.value(ir_type), predicate))


@instruction("select")
def select(r: FunctionReader) -> SSAValue:
    r.flags()
    condition = r.typed()
    r.comma()
    one = r.typed()
    r.comma()
    other, token = r.value_type(), r.cursor.previous
    if other != one.type:
        raise r.error(f"chooses between {one.type} and {other}", token)
    return r.add(llvm.SelectOp(condition, one, r.value(other)))


@instruction("extractelement")
def extractelement(r: FunctionReader) -> SSAValue:
    vector, token = r.typed(), r.cursor.previous
    if not isa(vector.type, VectorType):
        raise r.error(f"{vector.type} is no vector", token)
    r.comma()
    return r.add(llvm.ExtractElementOp(vector, r.typed()))


@instruction("insertelement")
def insertelement(r: FunctionReader) -> SSAValue:
    vector, token = r.typed(), r.cursor.previous
    if not isa(vector.type, VectorType):
        raise r.error(f"{vector.type} is no vector", token)
    r.comma()
    value = r.typed()
    r.comma()
    return r.add(llvm.InsertElementOp(vector, value, r.typed()))


@instruction("shufflevector")
def shufflevector(r: FunctionReader) -> SSAValue:
    one = r.typed()
    r.comma()
    other, token = r.typed(), r.cursor.previous
    r.comma()
    of = r.value_type()
    if not isa(one.type, VectorType) or one.type != other.type or not isa(of, VectorType[IntegerType]):
        raise r.error("chooses elements of two vectors of one type by a vector of integers", token)
    picks, token = r.picks(of.element_count()), r.cursor.previous
    if max(picks) >= 2 * one.type.element_count():
        raise r.error("this is no element of the vectors", token)
    result = VectorType(one.type.element_type, [len(picks)])
    return r.add(llvm.ShuffleVectorOp(one, other, DenseArrayBase.from_list(i32, picks), result))


def _field_type(r: FunctionReader, whole: Attribute, path: Sequence[int]) -> Attribute:
    for number in path:
        match whole:
            case llvm.LLVMStructType() if number < len(whole.types):
                whole = whole.types.data[number]
            case llvm.LLVMArrayType() if number < whole.size.data:
                whole = whole.type
            case _:
                raise r.error(f"{whole} has no field {number}")
    return whole


@instruction("extractvalue")
def extractvalue(r: FunctionReader) -> SSAValue:
    whole, path = r.typed(), r.integer_list()
    field_type = _field_type(r, whole.type, path)
    return r.add(llvm.ExtractValueOp(DenseArrayBase.from_list(i64, path), whole, field_type))


@instruction("insertvalue")
def insertvalue(r: FunctionReader) -> SSAValue:
    whole = r.typed()
    r.comma()
    part, path = r.typed(), r.integer_list()
    if (wanted := _field_type(r, whole.type, path)) != part.type:
        raise r.error(f"the field is {wanted}, not {part.type}")
    return r.add(llvm.InsertValueOp(DenseArrayBase.from_list(i64, path), whole, part))


# ---------------------------------------------------------------------------------------------- memory


@instruction("getelementptr")
def getelementptr(r: FunctionReader) -> SSAValue:
    r.flags()
    return r.add(r.address_op())


@instruction("alloca")
def alloca(r: FunctionReader) -> SSAValue:
    of, count = r.value_type(), None
    if (
        r.cursor.at(",")
        and r.cursor.peek().text not in ("align", "addrspace")
        and r.cursor.peek().kind is TokenKind.WORD
    ):
        r.cursor.advance()
        count = r.typed()
    promises = r.tail()
    space = promises.get("addrspace", 0)
    pointer = llvm.LLVMPointerType(IntAttr(space)) if space else llvm.LLVMPointerType()
    alignment = promises.get("align", layout(of)[1])
    return r.add(llvm.AllocaOp(count or r.number(i32, 1), of, alignment, pointer))


def _order(r: FunctionReader) -> tuple[str | None, list[str]]:
    """`syncscope("agent") acq_rel monotonic`"""
    scope = None
    if r.cursor.accept("syncscope"):
        r.cursor.expect("(", "after 'syncscope'")
        scope = r.cursor.expect_kind(TokenKind.STRING, "the scope").text[1:-1]
        r.cursor.expect(")", "after the scope")
    found = list[str]()
    while (word := r.cursor.accept_any(*ORDERINGS.values())) != "":
        found.append(word)
    return scope, found


_NUMBER_OF = {word: number for number, word in ORDERINGS.items()}


def _access(r: FunctionReader, of: Attribute, pointer: SSAValue) -> tuple[int, int, str | None]:
    """What follows the operands of a load or a store: alignment, ordering, scope."""
    if not isinstance(pointer.type, llvm.LLVMPointerType):
        raise r.error(f"accesses {pointer.type}, which is no pointer")
    scope, orderings = _order(r)
    ordering = _NUMBER_OF[orderings[0]] if orderings else 0
    return r.tail().get("align", layout(of)[1]), ordering, scope if ordering else None


def _with_scope(op: Operation, scope: str | None) -> Operation:
    if scope is not None:
        op.properties["syncscope"] = StringAttr(scope)
    return op


@instruction("load")
def load(r: FunctionReader) -> SSAValue:
    r.cursor.accept("atomic")
    volatile = r.cursor.accept("volatile")
    of = r.value_type()
    r.comma()
    pointer = r.typed()
    alignment, ordering, scope = _access(r, of, pointer)
    invariant = "invariant.load" in r.metadata
    return r.add(_with_scope(llvm.LoadOp(pointer, of, alignment, ordering, invariant, volatile), scope))


@instruction("store")
def store(r: FunctionReader) -> None:
    r.cursor.accept("atomic")
    volatile = r.cursor.accept("volatile")
    value = r.typed()
    r.comma()
    pointer = r.typed()
    alignment, ordering, scope = _access(r, value.type, pointer)
    r.do(_with_scope(llvm.StoreOp(value, pointer, alignment, ordering, volatile), scope))


@instruction("atomicrmw")
def atomicrmw(r: FunctionReader) -> SSAValue:
    volatile = r.cursor.accept("volatile")
    token = r.cursor.advance()
    word = f"_{token.text}" if token.text in ("and", "or", "xor") else token.text
    if word not in ATOMIC_OPERATIONS:
        raise r.unsupported(f"the atomic update '{token.text}'", token)
    pointer = r.typed()
    r.comma()
    value = r.typed()
    scope, orderings = _order(r)
    if len(orderings) != 1:
        raise r.error("an atomic update has one ordering")
    return r.add(llvm.AtomicRMWOp(word, pointer, value, orderings[0], scope, r.tail().get("align"), volatile))


@instruction("cmpxchg")
def cmpxchg(r: FunctionReader) -> SSAValue:
    weak = r.cursor.accept("weak")
    volatile = r.cursor.accept("volatile")
    pointer = r.typed()
    r.comma()
    expected = r.typed()
    r.comma()
    new = r.typed()
    scope, orderings = _order(r)
    if len(orderings) != 2 or new.type != expected.type:
        raise r.error("a compare-and-swap has two orderings, and two values of one type")
    success, failure = orderings
    alignment = r.tail().get("align")
    return r.add(llvm.AtomicCmpXchgOp(pointer, expected, new, success, failure, scope, alignment, weak, volatile))


@instruction("fence")
def fence(r: FunctionReader) -> None:
    scope, orderings = _order(r)
    if len(orderings) != 1:
        raise r.error("a fence has one ordering")
    r.do(llvm.FenceOp(orderings[0], scope))


# ---------------------------------------------------------------------------------------------- control flow


@instruction("phi")
def phi(r: FunctionReader) -> SSAValue:
    token = r.cursor.previous
    r.flags()
    ir_type = r.value_type()
    found = r.phi(ir_type, token)
    while True:
        r.cursor.expect("[", "before a value of the phi")
        value = r.value(ir_type)
        r.comma()
        found.values.setdefault(r.block_named(), value)
        r.cursor.expect("]", "after the block")
        if not r.cursor.at(",") or r.cursor.peek().text != "[":
            return found.argument
        r.cursor.advance()


@instruction("br")
def br(r: FunctionReader) -> None:
    if r.cursor.at("label"):
        way = r.target()
        r.end([way], None, lambda _, passed: llvm.BrOp(way, *passed[0]))
        return
    if r.value_type() != i1:
        raise r.error("a branch is taken by an i1")
    condition = r.value(i1)
    r.comma()
    then = r.target()
    r.comma()
    otherwise = r.target()
    ways = [then, otherwise]
    r.end(ways, condition, lambda by, passed: llvm.CondBrOp(by, then, passed[0], otherwise, passed[1]))


@instruction("switch")
def switch(r: FunctionReader) -> None:
    ir_type = r.value_type()
    if not isa(ir_type, IntegerType):
        raise r.error("a switch is of an integer")
    value = r.value(ir_type)
    r.comma()
    ways, numbers = [r.target()], list[int]()
    r.cursor.expect("[", "before the cases")
    while not r.cursor.accept("]"):
        if r.value_type() != ir_type:
            raise r.error(f"this switch is of {ir_type}")
        numbers.append(r.signed(ir_type))
        r.comma()
        ways.append(r.target())
    if len(set(numbers)) < len(numbers):
        raise r.error("this switch has a case twice")

    def make(by: SSAValue, passed: list[list[SSAValue]]) -> Operation:
        cases = list(zip(numbers, zip(ways[1:], passed[1:], strict=True), strict=True))
        return llvm.SwitchOp(by, (ways[0], passed[0]), cases)

    r.end(ways, value, make)


@instruction("ret")
def ret(r: FunctionReader) -> None:
    if (have := r.type()) != r.output:
        raise r.error(f"the function returns {r.output}, not {have}")
    value = None if have == VOID else r.value(have)
    r.end([], value, lambda given, _: llvm.ReturnOp(given))


@instruction("unreachable")
def unreachable(r: FunctionReader) -> None:
    r.end([], None, lambda _, __: llvm.UnreachableOp())
