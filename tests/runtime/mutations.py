"""One-op mutations of kernel IR, and proofs that some of them change nothing.

    cmpi sge -> slt           a predicate negated                    constant 127 -> 128     an integer or float constant plus one
    addi -> subi              one operation for another              th_x * 4 -> th_x * 5    a constant in a map plus one

A mutation that does not change the results of a whole grid must be *proved* harmless, or the tests are blind to it:
* what it computes depends on ids and constants only; then running the whole grid is a proof;
* its result is not used;
* it is the padding of a read that is in bounds, or the start of a vector that is completely overwritten by inserts.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from xla_emitters.algebra.expression import Expr, ExprKind
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.mlir import arith, gpu, llvm, vector
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp, LoopOp
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr

SWAPS: dict[str, type[Operation]] = {
    "arith.addi": arith.SubiOp,
    "arith.subi": arith.AddiOp,
    "arith.muli": arith.AddiOp,
    "arith.andi": arith.OrIOp,
    "arith.ori": arith.AndIOp,
    "arith.xori": arith.AndIOp,
    "arith.addf": arith.SubfOp,
    "arith.subf": arith.AddfOp,
    "arith.mulf": arith.AddfOp,
    "llvm.add": llvm.SubOp,
    "llvm.sub": llvm.AddOp,
    "llvm.mul": llvm.AddOp,
    "llvm.and": llvm.OrOp,
    "llvm.or": llvm.AndOp,
    "llvm.xor": llvm.AndOp,
    "llvm.fadd": llvm.FSubOp,
    "llvm.fsub": llvm.FAddOp,
    "llvm.fmul": llvm.FAddOp,
}


@dataclass(frozen=True)
class Mutation:
    """A change of the op at position `number` of a module's walk."""

    number: int
    what: str
    apply: Callable[[Operation], None]


def mutations_of(module: ModuleOp) -> list[Mutation]:
    """Every mutation that there is for a module, in the order of its ops."""
    found: list[Mutation] = []
    for number, op in enumerate(module.walk()):
        name = op.name
        if isinstance(op, arith.CmpiOp | arith.CmpfOp | llvm.ICmpOp | llvm.FCmpOp):
            found.append(Mutation(number, f"{name}: predicate negated", negate_predicate))
        if isinstance(op, arith.ConstantOp | llvm.ConstantOp) and plus_one(op.value) is not None:
            found.append(Mutation(number, f"{name} {op.value}: plus one", bump_constant))
        if name in SWAPS:
            found.append(Mutation(number, f"{name} -> {SWAPS[name].name}", swap_operation))
        if isinstance(op, ApplyIndexingOp | LoopOp):
            for index in range(count_constants(op.map)):
                found.append(Mutation(number, f"{name}: constant {index} of {op.map} plus one", bump_map(index)))
    return found


def mutated(module: ModuleOp, mutation: Mutation) -> tuple[ModuleOp, Operation]:
    """A copy of the module with the mutation, and the op that it changed (the one in the original module)."""
    copy = module.clone()
    target = list(copy.walk())[mutation.number]
    original = list(module.walk())[mutation.number]
    mutation.apply(target)
    return copy, original


def negate_predicate(op: Operation) -> None:
    """Integer predicates: eq ne slt sle sgt sge ult ule ugt uge; float ones: false oeq ogt oge olt ole one ord and their opposites."""
    predicate = op.properties["predicate"]
    assert isa(predicate, IntegerAttr)
    number = predicate.value.data
    integers = {0: 1, 1: 0, 2: 5, 5: 2, 3: 4, 4: 3, 6: 9, 9: 6, 7: 8, 8: 7}
    floats = {0: 15, 1: 13, 2: 12, 3: 11, 4: 10, 5: 9, 6: 8, 7: 14}
    floats |= {negated: number for number, negated in floats.items()}
    negated = integers[number] if isinstance(op, arith.CmpiOp | llvm.ICmpOp) else floats[number]
    op.properties["predicate"] = IntegerAttr(negated, predicate.type)


def plus_one(value: Attribute) -> Attribute | None:
    """The constant plus one, wrapping in its type; None for an attribute that is not a number."""
    if isa(value, IntegerAttr):
        type = value.type
        if isinstance(type, IntegerType) and type.width.data == 1:
            return BoolAttr.from_bool(not value.value.data)
        if isinstance(type, IntegerType):
            width = type.width.data
            wrapped = (value.value.data + 1 + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
            return IntegerAttr(wrapped, type)
        return IntegerAttr(value.value.data + 1, type)
    if isa(value, FloatAttr):
        return FloatAttr(value.value.data + 1, value.type)
    if isa(value, DenseIntOrFPElementsAttr) and isa(value.type, VectorType) and len(value) > 0:
        values = [number + 1 for number in value.get_values()]
        return DenseIntOrFPElementsAttr.from_list(value.type, values)
    return None


def bump_constant(op: Operation) -> None:
    value = plus_one(op.properties["value"])
    assert value is not None
    op.properties["value"] = value


def swap_operation(op: Operation) -> None:
    block = op.parent
    new = SWAPS[op.name](op.operands[0], op.operands[1])
    block.insert_op_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    block.erase_op(op)


def count_constants(map: IndexingMap) -> int:
    counted = 0

    def count(expr: Expr) -> Expr:
        nonlocal counted
        counted += 1
        return expr

    rebuilt(map, count)
    return counted


def bump_map(index: int) -> Callable[[Operation], None]:
    """Adds one to the constant number `index` of the map's results, in reading order."""

    def apply(op: Operation) -> None:
        assert isinstance(op, ApplyIndexingOp | LoopOp)
        seen = -1

        def change(expr: Expr) -> Expr:
            nonlocal seen
            seen += 1
            return Expr.constant(expr.value + 1) if seen == index else expr

        map = rebuilt(op.map, change)
        op.properties["indexing_map_attr"] = IndexingMapAttr(map)

    return apply


def rebuilt(map: IndexingMap, change: Callable[[Expr], Expr]) -> IndexingMap:
    """The map with `change` applied to each constant of its results."""

    def walk(expr: Expr) -> Expr:
        if expr.kind is ExprKind.CONSTANT:
            return change(expr)
        if expr.kind is ExprKind.VARIABLE:
            return expr
        return BUILD[expr.kind](walk(expr.lhs), walk(expr.rhs))

    return replace(map, results=tuple(walk(result) for result in map.results))


BUILD: dict[ExprKind, Callable[[Expr, Expr], Expr]] = {
    ExprKind.ADD: lambda a, b: a + b,
    ExprKind.MUL: lambda a, b: a * b,
    ExprKind.MOD: lambda a, b: a % b,
    ExprKind.FLOORDIV: lambda a, b: a // b,
    ExprKind.CEILDIV: lambda a, b: a.ceildiv(b),
    ExprKind.MIN: Expr.minimum,
    ExprKind.MAX: Expr.maximum,
}


def why_harmless(op: Operation) -> str | None:
    """Why changing the result of `op` cannot matter if the whole grid gave the same results; None if nothing proves it."""
    if not any(result.uses for result in op.results):
        return "its result is not used"
    if all(is_unused_start(use.operation, use.index, result) for result in op.results for use in result.uses):
        return "it is padding of reads in bounds, or overwritten element by element"
    if depends_on_ids_only(op, set()):
        return "it depends on ids and constants only, and the whole grid was run"
    return None


def is_unused_start(user: Operation, index: int, value: SSAValue) -> bool:
    """Whether `user` takes the value as the padding of a read in bounds, or inserts over all of it in a chain."""
    if isinstance(user, vector.TransferReadOp):
        padding = user.operands[index] is user.padding
        return padding and all(bool(flag.value.data) for flag in user.in_bounds)
    vector_type = value.type
    if not isa(vector_type, VectorType):
        return False
    (size,) = vector_type.get_shape()
    if user.name == "scf.for":
        # The loop of a vectorised store: it runs once per element and inserts at its induction variable.
        return True if covers_by_loop(user, index, size) else False
    written: set[int] = set()
    current: Operation | None = user
    while current is not None and current.name in ("vector.insert", "llvm.insertelement"):
        position = constant_position(current)
        if position is None:
            return False
        written.add(position)
        if written == set(range(size)):
            return True
        uses = list(current.results[0].uses)
        current = uses[0].operation if len(uses) == 1 else None
    return False


def covers_by_loop(loop: Operation, index: int, size: int) -> bool:
    """Whether the iter arg that operand `index` of an scf.for starts is inserted into at the induction variable, 0 to size - 1."""
    lower, upper, step = (constant_value(loop.operands[i]) for i in range(3))
    if (lower, upper, step) != (0, size, 1):
        return False
    block = loop.regions[0].block
    carried = block.args[index - 2]
    uses = list(carried.uses)
    if len(uses) != 1 or uses[0].operation.name != "vector.insert":
        return False
    return block.args[0] in uses[0].operation.operands


def constant_position(op: Operation) -> int | None:
    """Where a vector.insert or llvm.insertelement writes, when that is a constant."""
    if op.name == "llvm.insertelement":
        return constant_value(op.operands[2])
    dynamic = [operand for operand in op.operands[2:]]
    if dynamic:
        return constant_value(dynamic[0])
    static = op.properties["static_position"]
    return int(static.get_values()[0])


def constant_value(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp | llvm.ConstantOp) and isa(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def depends_on_ids_only(op: Operation, seen: set[Operation]) -> bool:
    """Whether everything that `op` computes from is a constant, an id, or arithmetic on those: nothing read from memory."""
    if op in seen:
        return True
    seen.add(op)
    if isinstance(op, gpu.ThreadIdOp | gpu.BlockIdOp) or op.name.startswith("nvvm.read.ptx.sreg"):
        return True
    allowed = op.name.startswith("arith.") or op.name in PURE_INTEGER or isinstance(op, ApplyIndexingOp | LoopOp)
    if not allowed:
        return False
    operands = op.dims if isinstance(op, LoopOp) else op.operands
    for operand in operands:
        if isinstance(operand, OpResult):
            if not depends_on_ids_only(operand.op, seen):
                return False
        elif isinstance(operand, BlockArgument) and not is_induction_variable(operand):
            return False
    return True


PURE_INTEGER = {
    f"llvm.{name}"
    for name in "add sub mul udiv urem sdiv srem and or xor shl lshr ashr icmp zext sext trunc select mlir.constant".split()
}


def is_induction_variable(argument: BlockArgument) -> bool:
    """Of a loop, or a map result of an xla_gpu.loop: values that run over a fixed range."""
    parent = argument.block.parent_op()
    if isinstance(parent, LoopOp):
        return argument in (*parent.induction_vars, *parent.map_results)
    return parent is not None and parent.name == "scf.for" and argument.index == 0
