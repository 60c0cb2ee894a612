"""Rows of instructions that concern other threads: barriers, exchanges in a warp, clusters; calls, ends.

Source: PTX ISA 8.8, 9.7.12 to 9.7.14, 9.7.19 and chapter 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import BoolAttr, i1, i32
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.mlir import llvm, nvvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.dialects.mlir.gpu import RANK_SHIFTS, ranks_of
from xla_emitters.dialects.mlir.nvvm_async import NanosleepOp
from xla_emitters.text.ptx.op_builder import POINTER, TYPES, OpBuilder
from xla_emitters.text.ptx.rows import EXITED, op_of, row
from xla_emitters.text.ptx.syntax import (
    SIZES,
    Instruction,
    Operand,
    Pair,
    PtxFunction,
    PtxLiteral,
    Register,
    SymbolAddress,
    call_parts,
)

# ---------------------------------------------------------------------------------------------- barriers


def _of_all(ending: str) -> str:
    """A mnemonic of barriers in all its spellings."""
    return " ".join(f"{name}.{ending}" for name in ("bar", "barrier", "barrier.cta", "bar.cta"))


def _numbers(e: OpBuilder, given: tuple[Operand | None, ...]) -> list[SSAValue]:
    """The barrier's number, and of how many threads it is. raises ParseError for numbers that no barrier has"""
    for operand, most, what in zip(given, (15, 1024), ("a barrier", "threads"), strict=False):
        if isinstance(operand, PtxLiteral) and operand.kind == "int" and not 0 <= operand.value <= most:
            raise e.error(f"{operand.value} is no number of {what}")
    return [e.read_as(operand, "u32") for operand in given]


@row(_of_all("sync"), "=.?.", (), "aligned", pure=False, waits=True)
def barrier(e: OpBuilder, i: Instruction, *given: Operand | None) -> None:
    if given == (PtxLiteral(0),):
        e.do(nvvm.Barrier0Op.create())
    else:
        number, *count = _numbers(e, given)
        e.do(nvvm.BarrierOp(number, count[0] if count else None))


@row(_of_all("arrive"), "=..", (), "aligned", pure=False)
def barrier_arrive(e: OpBuilder, i: Instruction, *given: Operand | None) -> None:
    e.tell("barrier.cta.arrive", *_numbers(e, given))


@row(_of_all("red"), ".=..?.", {"u32", "pred"}, "popc and or aligned", pure=False, waits=True)
def barrier_reduction(e: OpBuilder, i: Instruction, *operands: Operand | None) -> SSAValue:
    (*given, source), kind = operands, i.among("popc and or")
    e.check(i.operands[0], "u32" if kind == "popc" else "pred", is_result=True)
    truth = e.read_as(source, "pred")
    numbers = [] if given == [PtxLiteral(0)] else _numbers(e, tuple(given))
    number, count = (*numbers, None, None)[:2]
    predicate = e.extend(truth, 32)
    found = e.add(nvvm.BarrierOp(number, count, nvvm.BarrierReductionAttr.of(kind), predicate))
    return found if kind == "popc" else e.compare("ne", found, e.constant(i32, 0))


row("barrier.cluster.arrive", "=", (), "release aligned", to="barrier.cluster.{2}", pure=False)
row("barrier.cluster.arrive.relaxed", "=", (), "aligned", to="barrier.cluster.{2}.{3}", pure=False)
row("barrier.cluster.wait", "=", (), "acquire aligned", to="barrier.cluster.{2}", pure=False, waits=True)
row("bar.warp.sync", "=u", to=op_of(nvvm.SyncWarpOp), pure=False)
row("nanosleep", "=u", {"u32"}, to=op_of(NanosleepOp), pure=False)
row("setmaxnreg", "=*", {"u32"}, "inc dec sync aligned", to="", pure=False)
row("pmevent", "=*", (), "mask", to="", pure=False)

_SCOPES = "cta cluster gpu gl sys sc acq_rel acquire release proxy alias async global shared::cta tensormap::generic mbarrier_init"


_OF_ASYNC = "shared::cluster async::generic sync_restrict::shared::cta sync_restrict::shared::cluster"


@row("membar fence", "=?..", (), f"{_SCOPES} {_OF_ASYNC}", pure=False)
def fence(e: OpBuilder, i: Instruction, *given: Operand | None) -> None:
    if len(given) != (wanted := 2 if "tensormap::generic" in i.parts and "acquire" in i.parts else 0):
        raise e.error(f"'{i.name}' takes {wanted} operands, not {len(given)}")
    if "proxy" in i.parts and "async" in i.parts and "global" not in i.parts:
        e.tell("fence.proxy.async")
    else:
        e.do(llvm.FenceOp("seq_cst", llvm.OF_BLOCK if "cta" in i.parts or "proxy" in i.parts else None))


@row("griddepcontrol.wait griddepcontrol.launch_dependents", "=", pure=False)
def griddepcontrol(e: OpBuilder, i: Instruction) -> None:
    kind = nvvm.GridDepActionAttr.of(i.parts[1])
    e.do(nvvm.GriddepcontrolOp.create(properties={"kind": kind}))


# ---------------------------------------------------------------------------------------------- clusters


def of_rank(e: OpBuilder, address: SSAValue, rank: SSAValue) -> SSAValue:
    """The same address of shared memory, an integer, in the block of that rank of the cluster."""
    of = address.type
    ranks, shift = ranks_of(prod(e.cluster)), RANK_SHIFTS[bits_of(of)]
    first = e.add(llvm.AndOp(address, e.constant(of, ~(ranks - 1 << shift))))
    return e.add(llvm.OrOp(first, e.add(llvm.ShlOp(e.resize(rank, bits_of(of)), e.constant(of, shift)))))


@row("mapa", ".=.u", {"u32", "u64"}, "shared::cluster", pure=False)
def mapa(e: OpBuilder, i: Instruction, address: Operand | None, rank: SSAValue) -> SSAValue:
    """The address in the block of that rank; null for a rank that the cluster does not have."""
    value = e.read(address, TYPES[i.among("u32 u64")])
    if (blocks := prod(e.cluster)) == 1:
        return value
    is_there = e.compare("ult", rank, e.constant(i32, blocks))
    return e.add(llvm.SelectOp(is_there, of_rank(e, value, rank), e.constant(value.type, 0)))


@row("getctarank", ".=.", {"u32", "u64"}, "shared::cluster")
def getctarank(e: OpBuilder, i: Instruction, address: Operand | None) -> SSAValue:
    value = e.read(address, TYPES[i.among("u32 u64")])
    shift = e.constant(value.type, RANK_SHIFTS[bits_of(value.type)])
    rank = e.resize(e.add(llvm.LShrOp(value, shift)), 32)
    return e.add(llvm.AndOp(rank, e.constant(i32, ranks_of(prod(e.cluster)) - 1)))


# ---------------------------------------------------------------------------------------------- exchanges in a warp


def _of_warp(op: Any, result: Attribute, kind: Attribute, *operands: SSAValue, **more: bool) -> Any:
    """An op with its kind."""
    properties = {"kind": kind, **{word: BoolAttr.from_bool(flag) for word, flag in more.items()}}
    return op(operands=operands, result_types=[result], properties=properties)


@row("shfl.sync", "v=vuuu", {"b32"}, "up down bfly idx", pure=False)
@row("shfl", "v=vuu", {"b32"}, "up down bfly idx", pure=False)
def shfl(
    e: OpBuilder, i: Instruction, value: SSAValue, offset: SSAValue, clamp: SSAValue, mask: SSAValue | None = None
) -> SSAValue | tuple[SSAValue, ...]:
    kind, is_pair = i.among("up down bfly idx"), isinstance(i.operands[0], Pair)
    found = e.add(nvvm.ShflOp(kind, mask or e.intrinsic("activemask", [], i32), value, offset, clamp, is_pair))
    return (e.field(found, 0), e.field(found, 1)) if is_pair else found


@row("vote.sync", ".=pu", {"b32", "pred"}, "all any uni ballot", pure=False)
@row("vote", ".=p", {"b32", "pred"}, "all any uni ballot", pure=False)
def vote(e: OpBuilder, i: Instruction, predicate: SSAValue, mask: SSAValue | None = None) -> SSAValue:
    """Without `.sync`, of old architectures: among the threads that are active."""
    kind = i.among("all any uni ballot")
    result = i32 if kind == "ballot" else i1
    members = mask or e.intrinsic("activemask", [], i32)
    return e.add(_of_warp(nvvm.VoteOp, result, nvvm.VoteKindAttr.of(kind), members, predicate))


row("activemask", "u=", {"b32"}, to="{0}", pure=False)


@row("match.any.sync match.all.sync", ".=tu", {"b32", "b64"}, pure=False)
def match(e: OpBuilder, i: Instruction, value: SSAValue, mask: SSAValue) -> SSAValue | tuple[SSAValue, ...]:
    kind = i.parts[1]
    is_all = kind == "all"
    result = llvm.LLVMStructType.from_type_list([i32, i1]) if is_all else i32
    found = e.add(_of_warp(nvvm.MatchOp, result, nvvm.MatchKindAttr.of(kind), mask, value))
    return (e.field(found, 0), e.field(found, 1)) if is_all else found


@row("redux.sync", "t=tu", {"s32", "u32", "b32", "f32"}, "add min max and or xor abs NaN", pure=False)
def redux(e: OpBuilder, i: Instruction, value: SSAValue, mask: SSAValue) -> SSAValue:
    kind = i.among("add min max and or xor")
    prefix = {"f32": "f", "u32": "u"}.get(i.parts[-1], "") if kind in ("min", "max") else ""
    attribute = nvvm.ReduxKindAttr.of(f"{prefix}{kind}")
    flags = {"abs": "abs" in i.parts, "nan": "NaN" in i.parts}
    return e.add(_of_warp(nvvm.ReduxOp, value.type, attribute, value, mask, **flags))


@row("elect.sync", ".=u", pure=False)
def elect(e: OpBuilder, i: Instruction, members: SSAValue) -> SSAValue | tuple[SSAValue, ...]:
    chosen = e.add(nvvm.ElectSyncOp(operands=[members], result_types=[i1]))
    return (e.intr("cttz", members, is_zero_poison=False), chosen) if isinstance(i.operands[0], Pair) else chosen


# ---------------------------------------------------------------------------------------------- calls, ends


row("brkpt", "=", to="", pure=False)
row("trap", "=", to=llvm.INTRINSICS["trap"].create, pure=False)


_SYSTEM = {"vprintf": 0, "__assertfail": None}
"""Functions of the GPU's system: what they return; None: they end the kernel."""


@row("call", "=*", (), "uni", pure=False)
def call(e: OpBuilder, i: Instruction, *_: Operand | None) -> None:
    """A call, of a name or of an address. Scalars are passed as values; arrays, and results that are arrays, by their address.

    A function that may end the thread has one more result: whether it did.
    """
    results, callee, arguments = call_parts(i)
    if not isinstance(callee, SymbolAddress):
        pointer = e.cast(e.read_as(callee, "u64"), POINTER)
        _called(e, None, _prototype(e, i), results, [pointer], arguments)
        return
    function = e.module.functions.get(callee.name)
    if function is None:
        raise e.error(f"function '{callee.name}' is not declared")
    if callee.name in _SYSTEM:
        if (value := _SYSTEM[callee.name]) is None:
            e.do(llvm.INTRINSICS["trap"].create())
        for target in results:
            e.write(target, PtxLiteral(value or 0))
        return
    if function.body is None:
        error = e.unsupported(f"a call of '{callee.name}', which is defined elsewhere,")
        error.help = "give a text that is linked: nvJitLink makes one of LTO IR, with -lto -ptx"
        raise error
    e.callees[callee.name] = None
    _called(e, callee.name, function, results, [], arguments)


def _prototype(e: OpBuilder, i: Instruction) -> PtxFunction:
    """What a call of an address takes and gives: by the name of a `.callprototype`, or of a list `.calltargets` of functions."""
    label = i.operands[-1]
    name = label.name if isinstance(label, SymbolAddress) else ""
    if (prototype := e.function.prototypes.get(name)) is not None:
        return prototype
    targets = e.function.tables.get(name, ())
    found = e.module.functions.get(targets[0]) if targets else None
    if found is None:
        raise e.error("a call of an address ends in the name of a .callprototype or of .calltargets")
    return found


def _called(
    e: OpBuilder,
    name: str | None,
    function: PtxFunction,
    results: Sequence[Operand | None],
    given: list[SSAValue],
    arguments: Sequence[Operand | None],
) -> None:
    """A call with the types of `function`; of that name, or of the address that `given` holds."""
    if len(arguments) != len(function.parameters) or len(results) != len(function.results):
        raise e.error(
            f"'{function.name}' takes {len(function.parameters)} arguments and gives {len(function.results)} results"
        )
    returned = list[tuple[Operand | None, Attribute]]()
    for target, variable in zip(results, function.results, strict=True):
        if variable.count is not None:
            given.append(array_of(e, target))
        else:
            returned.append((target, TYPES[variable.type]))
    if name in e.module.exiting:
        returned.append((EXITED, i1))
    for argument, variable in zip(arguments, function.parameters, strict=True):
        ir_type = TYPES[variable.type]
        if isinstance(argument, Register) and SIZES[argument.type] != SIZES[variable.type]:
            raise e.error(f"'{argument.name}' has another size than the parameter")
        given.append(array_of(e, argument) if variable.count is not None else e.read(argument, ir_type))
    made = llvm.CallOp(name, *given, return_type=result_type([ir_type for _, ir_type in returned]))
    e.do(made)
    for number, (target, _type) in enumerate(returned):
        e.write(target, e.field(made.results[0], number) if len(returned) > 1 else made.results[0])


def result_type(types: Sequence[Attribute]) -> Attribute | None:
    """Of a function that gives values of these types: several are fields of a struct."""
    return llvm.LLVMStructType.from_type_list(types) if len(types) > 1 else next(iter(types), None)


def array_of(e: OpBuilder, operand: Operand | None) -> SSAValue:
    if not isinstance(operand, SymbolAddress):
        raise e.error("expected a variable in .param")
    pointer = e.base(operand.name)
    return pointer if pointer.type == POINTER else e.add(llvm.AddrSpaceCastOp(pointer, POINTER))
