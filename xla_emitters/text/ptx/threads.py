"""Rows of instructions that concern other threads: special registers, barriers, exchanges in a warp, calls, ends.

Source: PTX ISA 8.8, 9.7.12 to 9.7.14, 9.7.19 and chapter 10.
"""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, f32, i1, i32, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import llvm, nvvm
from xla_emitters.dialects.mlir.clusters import RANK_MASK, RANK_SHIFT
from xla_emitters.dialects.mlir.nvvm_async import NanosleepOp
from xla_emitters.text.ptx.arithmetic import one_type, operands
from xla_emitters.text.ptx.emitter import TYPES, Emitter, bits_of
from xla_emitters.text.ptx.forms import check_operand
from xla_emitters.text.ptx.rows import row
from xla_emitters.text.ptx.syntax import Group, Instruction, Number, Operand, Pair, Register, Symbol, Variable

# ---------------------------------------------------------------------------------------------- barriers


def word(e: Emitter, i: Instruction, operand: Operand | None) -> SSAValue:
    """An operand of 32 bits that is no float: a mask, a lane, a count."""
    check_operand(e, i, operand, "u32")
    return e.read(operand, i32)


_NAMES = ("bar", "barrier", "barrier.cta", "bar.cta")


def _numbers(e: Emitter, i: Instruction, given: tuple[Operand | None, ...]) -> list[SSAValue]:
    """The barrier's number, and of how many threads it is. raises ParseError for numbers that no barrier has"""
    for operand, most, what in zip(given, (15, 1024), ("a barrier", "threads"), strict=False):
        check_operand(e, i, operand, "u32")
        if isinstance(operand, Number) and not 0 <= operand.value <= most:
            raise e.error(f"{operand.value} is no number of {what}")
    return [e.read(operand, i32) for operand in given]


@row(*(f"{name}.sync" for name in _NAMES), modifiers="aligned", results=0, pure=False, waits=True)
def barrier(e: Emitter, i: Instruction) -> None:
    given = i.operands
    if not 1 <= len(given) <= 2:
        raise e.error(f"'{i.name}' takes the number of a barrier and of threads")
    if given == (Number(0),):
        e.do(nvvm.Barrier0Op.create())
    else:
        number, *count = _numbers(e, i, given)
        e.do(nvvm.BarrierOp(number, count[0] if count else None))


@row(*(f"{name}.arrive" for name in _NAMES), modifiers="aligned", results=0, pure=False)
def barrier_arrive(e: Emitter, i: Instruction) -> None:
    values = _numbers(e, i, tuple(operands(e, i, 2)))
    e.do(llvm.CallIntrinsicOp("llvm.nvvm.barrier.cta.arrive", values, []))


@row(
    *(f"{name}.red" for name in _NAMES), types={"u32", "pred"}, modifiers="popc and or aligned", pure=False, waits=True
)
def barrier_reduction(e: Emitter, i: Instruction) -> None:
    if not 3 <= len(i.operands) <= 4:
        raise e.error(f"'{i.name}' takes 3 operands, not {len(i.operands)}")
    target, *given, source = i.operands
    kind = next(part for part in ("popc", "and", "or") if part in i.parts)
    check_operand(e, i, target, "u32" if kind == "popc" else "pred", is_result=True)
    check_operand(e, i, source, "pred")
    numbers: list[SSAValue | None] = [*_numbers(e, i, tuple(given)), None]
    if given == [Number(0)]:
        numbers = [None, None]
    predicate = e.extend(e.read(source, i1), 32)
    found = e.add(nvvm.BarrierOp(numbers[0], numbers[1], nvvm.BarrierReductionAttr.of(kind), predicate))
    e.write(target, found if kind == "popc" else e.add(llvm.ICmpOp(found, e.constant(i32, 0), "ne")))


@row("barrier.cluster.arrive", modifiers="release relaxed aligned", results=0, pure=False)
@row("barrier.cluster.wait", modifiers="acquire aligned", results=0, pure=False, waits=True)
def cluster_barrier(e: Emitter, i: Instruction) -> None:
    operands(e, i, 0)
    e.do(llvm.CallIntrinsicOp(f"llvm.nvvm.barrier.cluster.{i.parts[2]}", [], []))


@row("mapa", types={"u32", "u64"}, modifiers="shared::cluster", pure=False)
def mapa(e: Emitter, i: Instruction) -> None:
    """The address in the block of that rank: in bits that an offset does not need."""
    target, address, rank = operands(e, i, 3)
    value = e.read(address, TYPES[one_type(e, i)])
    if prod(e.cluster) > 1:
        number = e.resize(e.add(llvm.AddOp(word(e, i, rank), e.constant(i32, 1))), bits_of(value.type))
        own = e.add(llvm.AndOp(value, e.constant(value.type, ~(RANK_MASK << RANK_SHIFT))))
        value = e.add(llvm.OrOp(own, e.add(llvm.ShlOp(number, e.constant(value.type, RANK_SHIFT)))))
    e.write(target, value)


@row("getctarank", types={"u32", "u64"}, modifiers="shared::cluster")
def getctarank(e: Emitter, i: Instruction) -> None:
    target, address = operands(e, i, 2)
    value = e.resize(e.read(address, TYPES[one_type(e, i)]), 32)
    rank = e.add(llvm.AndOp(e.add(llvm.LShrOp(value, e.constant(i32, RANK_SHIFT))), e.constant(i32, RANK_MASK)))
    other = e.add(llvm.SubOp(rank, e.constant(i32, 1)))
    is_own = e.add(llvm.ICmpOp(rank, e.constant(i32, 0), "eq"))
    e.write(target, e.add(llvm.SelectOp(is_own, e.special("cluster_ctarank"), other)))


@row("bar.warp.sync", results=0, pure=False)
def sync_warp(e: Emitter, i: Instruction) -> None:
    e.do(nvvm.SyncWarpOp.create(operands=[word(e, i, operands(e, i, 1)[0])]))


_SCOPES = "cta cluster gpu gl sys sc acq_rel acquire release proxy alias async global shared::cta tensormap::generic mbarrier_init"


@row("membar", "fence", modifiers=f"{_SCOPES} async::generic sync_restrict::shared::cta", results=0, pure=False)
def fence(e: Emitter, i: Instruction) -> None:
    operands(e, i, 2 if "tensormap::generic" in i.parts and "acquire" in i.parts else 0)
    e.do(llvm.FenceOp("seq_cst"))


@row("griddepcontrol.wait", "griddepcontrol.launch_dependents", results=0, pure=False)
def griddepcontrol(e: Emitter, i: Instruction) -> None:
    kind = nvvm.GridDepActionKind(i.parts[1])
    e.do(nvvm.GriddepcontrolOp.create(properties={"kind": nvvm.GridDepActionAttr(kind)}))


@row("nanosleep", types={"u32"}, results=0, pure=False)
def nanosleep(e: Emitter, i: Instruction) -> None:
    e.do(NanosleepOp.create(operands=[word(e, i, operands(e, i, 1)[0])]))


@row("setmaxnreg", types={"u32"}, modifiers="inc dec sync aligned", results=0, pure=False)
@row("pmevent", modifiers="mask", results=0, pure=False)
def nothing(e: Emitter, i: Instruction) -> None:
    """Has no meaning for the numbers."""


# ---------------------------------------------------------------------------------------------- exchanges in a warp


@row("shfl.sync", "shfl", types={"b32"}, modifiers="up down bfly idx", pure=False)
def shfl(e: Emitter, i: Instruction) -> None:
    is_sync = i.parts[1] == "sync"
    target, value, offset, clamp, *rest = operands(e, i, 5 if is_sync else 4)
    kind = nvvm.ShflKind(next(part for part in i.parts if part in ("up", "down", "bfly", "idx")))
    mask = word(e, i, rest[0]) if rest else e.constant(i32, -1)
    first = target.first if isinstance(target, Pair) else target
    check_operand(e, i, first, "b32", is_result=True)
    check_operand(e, i, value, "b32")
    ir_type = e.type_for(first, i32)
    is_pair = isinstance(target, Pair)
    found = e.add(nvvm.ShflOp(kind, mask, e.read(value, ir_type), word(e, i, offset), word(e, i, clamp), is_pair))
    if isinstance(target, Pair):
        parts = [_field(e, found, number, part) for number, part in enumerate((ir_type, i1))]
        e.write(target.first, parts[0])
        e.write(target.second, parts[1])
    else:
        e.write(target, found)


def _field(e: Emitter, value: SSAValue, number: int, ir_type: object) -> SSAValue:
    return e.add(llvm.ExtractValueOp(DenseArrayBase.from_list(i64, [number]), value, ir_type))  # pyright: ignore


@row("vote.sync", types={"b32", "pred"}, modifiers="all any uni ballot", pure=False)
def vote(e: Emitter, i: Instruction) -> None:
    target, predicate, mask = operands(e, i, 3)
    kind = nvvm.VoteKind(i.parts[2])
    given = [word(e, i, mask), e.read(predicate, i1)]
    result = i32 if kind is nvvm.VoteKind.BALLOT else i1
    e.write(
        target, e.add(nvvm.VoteOp(operands=given, result_types=[result], properties={"kind": nvvm.VoteKindAttr(kind)}))
    )


@row("activemask", types={"b32"}, pure=False)
def activemask(e: Emitter, i: Instruction) -> None:
    e.write(i.operands[0], e.intrinsic("activemask", [], i32))


@row("match.any.sync", "match.all.sync", types={"b32", "b64"}, pure=False)
def match(e: Emitter, i: Instruction) -> None:
    target, value, mask = operands(e, i, 3)
    kind = nvvm.MatchKind(i.parts[1])
    result = llvm.LLVMStructType.from_type_list([i32, i1]) if kind is nvvm.MatchKind.ALL else i32
    given = [word(e, i, mask), e.read(value, TYPES[one_type(e, i)])]
    found = e.add(nvvm.MatchOp(operands=given, result_types=[result], properties={"kind": nvvm.MatchKindAttr(kind)}))
    if kind is nvvm.MatchKind.ANY:
        e.write(target, found)
        return
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    e.write(first, _field(e, found, 0, i32))
    e.write(second, _field(e, found, 1, i1))


@row("redux.sync", types={"s32", "u32", "b32", "f32"}, modifiers="add min max and or xor abs NaN", pure=False)
def redux(e: Emitter, i: Instruction) -> None:
    target, value, mask = operands(e, i, 3)
    of = one_type(e, i)
    check_operand(e, i, target, of, is_result=True)
    check_operand(e, i, value, of)
    kind = next(part for part in i.parts if part in ("add", "min", "max", "and", "or", "xor"))
    prefix = {"f32": "f", "u32": "u"}.get(of, "") if kind in ("min", "max") else ""
    ir_type = f32 if of == "f32" else i32
    op = nvvm.ReduxOp(
        operands=[e.read(value, ir_type), word(e, i, mask)],
        result_types=[ir_type],
        properties={
            "kind": nvvm.ReduxKindAttr(nvvm.ReduxKind(f"{prefix}{kind}")),
            "abs": BoolAttr.from_bool("abs" in i.parts),
            "nan": BoolAttr.from_bool("NaN" in i.parts),
        },
    )
    e.write(target, e.add(op))


@row("elect.sync", pure=False)
def elect(e: Emitter, i: Instruction) -> None:
    target, mask = operands(e, i, 2)
    members = word(e, i, mask)
    chosen = e.add(nvvm.ElectSyncOp(operands=[members], result_types=[i1]))
    if isinstance(target, Pair):
        e.write(target.second, chosen)
        lowest = e.add(
            llvm.INTRINSICS["cttz"].create(
                operands=[members], result_types=[i32], properties={"is_zero_poison": BoolAttr.from_bool(False)}
            )
        )
        e.write(target.first, lowest)
    elif target is not None:
        e.write(target, chosen)


# ---------------------------------------------------------------------------------------------- calls, ends


@row("trap", "brkpt", results=0, pure=False)
def trap(e: Emitter, i: Instruction) -> None:
    operands(e, i, 0)
    if i.parts[0] == "trap":
        e.do(llvm.INTRINSICS["trap"].create())


Operands: TypeAlias = tuple[Operand | None, ...]


def call_parts(i: Instruction) -> tuple[Operands, Operand | None, Operands]:
    """Results, callee and arguments of `call (r), f, (a, b)`."""
    given = list(i.operands)

    def group() -> Operands:
        if given and isinstance(first := given[0], Group):
            del given[0]
            return first.elements
        return ()

    results = group()
    callee = given.pop(0) if given else None
    return results, callee, group()


_SYSTEM = {"vprintf": 0, "__assertfail": None}
"""Functions of the GPU's system: what they return; None: they end the kernel."""


@row("call", modifiers="uni", results=0, pure=False)
def call(e: Emitter, i: Instruction) -> None:
    """A direct call. Scalars are passed as values; arrays, and results that are arrays, by their address."""
    results, callee, arguments = call_parts(i)
    if not isinstance(callee, Symbol):
        raise e.unsupported("a call of a function's address")
    function = e.module.functions.get(callee.name)
    if function is None:
        raise e.error(f"function '{callee.name}' is not declared")
    if callee.name in _SYSTEM:
        if (value := _SYSTEM[callee.name]) is None:
            e.do(llvm.INTRINSICS["trap"].create())
        for target in results:
            write_part(e, target, Number(value or 0))
        return
    if function.body is None:
        raise e.unsupported(f"a call of '{callee.name}', which is defined elsewhere")
    if len(arguments) != len(function.parameters) or len(results) != len(function.results):
        raise e.error(
            f"'{callee.name}' takes {len(function.parameters)} arguments and gives {len(function.results)} results"
        )
    given, returned = list[SSAValue](), None
    for target, variable in zip(results, function.results, strict=True):
        if variable.count is not None:
            given.append(array_of(e, target))
        elif returned is not None:
            raise e.unsupported("a function of several results")
        else:
            returned = target, TYPES[variable.type]
    for argument, variable in zip(arguments, function.parameters, strict=True):
        given.append(array_of(e, argument) if variable.count is not None else read_part(e, argument, variable))
    e.callees[callee.name] = None
    made = llvm.CallOp(callee.name, *given, return_type=returned[1] if returned else None)
    e.do(made)
    if returned is not None:
        write_part(e, returned[0], made.results[0])


def array_of(e: Emitter, operand: Operand | None) -> SSAValue:
    if not isinstance(operand, Symbol):
        raise e.error("expected a variable in .param")
    pointer = e.base(operand.name)
    return (
        pointer
        if pointer.type == llvm.LLVMPointerType()
        else e.add(llvm.AddrSpaceCastOp(pointer, llvm.LLVMPointerType()))
    )


def read_part(e: Emitter, operand: Operand | None, variable: Variable) -> SSAValue:
    ir_type = TYPES[variable.type]
    if isinstance(operand, Symbol) and (slot := e.slots.get(operand.name)) is not None:
        if bits_of(TYPES[slot.type]) != bits_of(ir_type):
            raise e.error(f"'{operand.name}' has another size than the parameter")
        return e.read(slot, ir_type)
    return e.read(operand, ir_type)


def write_part(e: Emitter, operand: Operand | None, value: SSAValue | Number) -> None:
    target = e.slots.get(operand.name) if isinstance(operand, Symbol) else operand
    if not isinstance(target, Register):
        raise e.error("the result of a call must be a register or a variable in .param")
    e.write(target, value)
