"""The rows of instructions: each reads what follows its opcode, and adds the ops.

    %x = add nuw i32 %a, 1                          llvm.add %a, %c1 : i32
    br i1 %c, label %loop, label %exit              llvm.cond_br %c, ^loop(%y : i32), ^exit

Calls are in `call_reader`. Source: LLVM language reference, "Instruction Reference".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerType, VectorType, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import size_and_alignment
from xla_emitters.dialects.mlir.llvm.atomics import ATOMIC_OPERATIONS
from xla_emitters.dialects.mlir.llvm.memory_ops import ORDERINGS
from xla_emitters.text.llvm_ir.function_reader import FunctionReader, instruction
from xla_emitters.text.llvm_ir.llvm_constants import BINARY, CASTS
from xla_emitters.text.llvm_ir.llvm_ir_lexer import LlvmTokenKind
from xla_emitters.text.llvm_ir.llvm_types import MOST_PACKED_BITS, VOID

# ---------------------------------------------------------------------------------------------- arithmetic


@instruction(*BINARY)
def binary(r: FunctionReader) -> SSAValue:
    word = r.cursor.previous.text
    r.flags()
    return r.add(BINARY[word](*r.two_alike(r.value_type())))


@instruction(*CASTS)
def cast(r: FunctionReader) -> SSAValue:
    word = r.cursor.previous.text
    r.flags()
    return r.add(r.cast_op(word))


@instruction("icmp", "fcmp")
def compare(r: FunctionReader) -> SSAValue:
    kind = llvm.ICmpOp if r.cursor.previous.text == "icmp" else llvm.FCmpOp
    r.flags()
    token = r.cursor.advance()
    predicate = f"_{token.text}" if token.text in ("true", "false") else token.text
    if predicate not in kind.PREDICATES:
        raise r.error(f"there is no comparison '{token.text}'", token)
    return r.add(kind(*r.two_alike(r.value_type()), predicate))


@instruction("select")
def select(r: FunctionReader) -> SSAValue:
    r.flags()
    condition, one = r.operands(2)
    r.comma()
    other, token = r.value_type(), r.cursor.previous
    if other != one.type:
        raise r.error(f"chooses between {one.type} and {other}", token)
    return r.add(llvm.SelectOp(condition, one, r.value(other)))


_PLAIN: dict[str, tuple[type[Operation], int]] = {
    **{"fneg": (llvm.FNegOp, 1), "freeze": (llvm.FreezeOp, 1)},
    **{"extractelement": (llvm.ExtractElementOp, 2), "insertelement": (llvm.InsertElementOp, 3)},
}
"""Opcode -> its op, and the number of its operands."""


@instruction(*_PLAIN)
def plain(r: FunctionReader) -> SSAValue:
    word = r.cursor.previous.text
    op, count = _PLAIN[word]
    r.flags()
    values = [r.typed()]
    if word.endswith("element") and not isa(values[0].type, VectorType):
        raise r.error(f"{values[0].type} is no vector")
    while len(values) < count:
        r.comma()
        values.append(r.typed())
    return r.add(op(*values))


@instruction("shufflevector")
def shufflevector(r: FunctionReader) -> SSAValue:
    (one, other), token = r.operands(2), r.cursor.previous
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
    (whole, part), path = r.operands(2), r.integer_list()
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
        and r.cursor.peek().kind is LlvmTokenKind.WORD
    ):
        r.cursor.advance()
        count = r.typed()
    promises = r.tail()
    space = promises.get("addrspace", 0)
    pointer = llvm.LLVMPointerType(IntAttr(space)) if space else llvm.LLVMPointerType()
    alignment = promises.get("align", size_and_alignment(of)[1])
    return r.add(llvm.AllocaOp(count or r.number(i32, 1), of, alignment, pointer))


def _order(r: FunctionReader) -> tuple[str | None, list[str]]:
    """`syncscope("agent") acq_rel monotonic`"""
    scope = None
    if r.cursor.accept("syncscope"):
        r.cursor.expect("(", "after 'syncscope'")
        scope = r.cursor.expect_kind(LlvmTokenKind.STRING, "the scope").text[1:-1]
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
    return r.tail().get("align", size_and_alignment(of)[1]), ordering, scope if ordering else None


@instruction("load")
def load(r: FunctionReader) -> SSAValue:
    r.cursor.accept("atomic")
    volatile = r.cursor.accept("volatile")
    of = r.value_type()
    r.comma()
    pointer = r.typed()
    alignment, ordering, scope = _access(r, of, pointer)
    invariant = "invariant.load" in r.metadata
    return r.add(llvm.LoadOp(pointer, of, alignment, ordering, invariant, volatile, scope))


@instruction("store")
def store(r: FunctionReader) -> None:
    r.cursor.accept("atomic")
    volatile = r.cursor.accept("volatile")
    value, pointer = r.operands(2)
    alignment, ordering, scope = _access(r, value.type, pointer)
    r.do(llvm.StoreOp(value, pointer, alignment, ordering, volatile, scope))


@instruction("atomicrmw")
def atomicrmw(r: FunctionReader) -> SSAValue:
    volatile = r.cursor.accept("volatile")
    token = r.cursor.advance()
    word = f"_{token.text}" if token.text in ("and", "or", "xor") else token.text
    if word not in ATOMIC_OPERATIONS:
        raise r.unsupported(f"the atomic update '{token.text}'", token)
    pointer, value = r.operands(2)
    scope, orderings = _order(r)
    if len(orderings) != 1:
        raise r.error("an atomic update has one ordering")
    return r.add(llvm.AtomicRMWOp(word, pointer, value, orderings[0], scope, r.tail().get("align"), volatile))


@instruction("cmpxchg")
def cmpxchg(r: FunctionReader) -> SSAValue:
    weak = r.cursor.accept("weak")
    volatile = r.cursor.accept("volatile")
    pointer, expected, new = r.operands(3)
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
    if ir_type.width.data > MOST_PACKED_BITS:
        raise r.unsupported(f"a switch of {ir_type}")
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
