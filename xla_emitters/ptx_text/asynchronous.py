"""Rows of asynchronous copies and of barriers in shared memory, `mbarrier`: `cp.async` with groups, `cp.async.bulk`.

A copy is complete when it is issued, so waiting for copies is nothing. Source: PTX ISA 8.8, 9.7.9.25 and 9.7.13.15.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i1, i32, i64

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.nvvm_async import (
    CpAsyncCommitGroupOp,
    CpAsyncOp,
    CpAsyncWaitGroupOp,
    LoadCacheModifier,
    LoadCacheModifierAttr,
)
from xla_emitters.ptx_text.arithmetic import operands
from xla_emitters.ptx_text.emitter import Emitter
from xla_emitters.ptx_text.forms import check_operand
from xla_emitters.ptx_text.memory import HINTS, SPACES_OF_NAMES
from xla_emitters.ptx_text.rows import row
from xla_emitters.ptx_text.syntax import Address, Instruction, Number, Operand, Register


@row("cp.async.ca", "cp.async.cg", modifiers=f"{HINTS} {SPACES_OF_NAMES}", results=0, pure=False)
def cp_async(e: Emitter, i: Instruction) -> None:
    """The copy is done at once: a kernel that waits for it too late is not found."""
    given: list[Operand | None] = [*i.operands, None, None, None]
    if not isinstance(size := given[2], Number):
        raise e.error("'cp.async' needs a number of bytes")
    to, of = e.pointer(given[0], "shared"), e.pointer(given[1], "global")
    count = e.read(i.operands[3], i32) if len(i.operands) > 3 and not _is_predicate(i.operands[3]) else None
    if len(i.operands) > 3 and _is_predicate(i.operands[3]):
        count = e.add(llvm.SelectOp(e.read(i.operands[3], i1), e.constant(i32, 0), e.constant(i32, size.value)))
    modifier = LoadCacheModifierAttr(LoadCacheModifier(i.parts[2]))
    e.do(
        CpAsyncOp.create(
            operands=[to, of, *([] if count is None else [count])],
            properties={"size": IntegerAttr(size.value, i32), "modifier": modifier},
        )
    )


def _is_predicate(operand: Operand | None) -> bool:
    return isinstance(operand, Register) and operand.type == "pred"


@row("cp.async.commit_group", results=0, pure=False)
def commit_group(e: Emitter, i: Instruction) -> None:
    e.do(CpAsyncCommitGroupOp.create())


@row("cp.async.wait_group", "cp.async.wait_all", results=0, pure=False)
def wait_group(e: Emitter, i: Instruction) -> None:
    count = i.operands[0].value if i.operands and isinstance(i.operands[0], Number) else 0
    e.do(CpAsyncWaitGroupOp.create(properties={"n": IntegerAttr(count, i32)}))


# ---------------------------------------------------------------------------------------------- mbarrier

_SHARED = "shared shared::cta shared::cluster"
_ORDER = f"release acquire relaxed cta cluster {_SHARED}"


def _space(i: Instruction) -> str:
    return "shared" if any(part.startswith("shared") for part in i.parts) else "generic"


def _barrier(e: Emitter, i: Instruction, name: str, results: int, counts: int, word: str = "u32") -> None:
    """`[result,] [address] [, count]` as a call of an intrinsic; a count that is left out is 1."""
    given = list(i.operands)
    target = given.pop(0) if results and not isinstance(given[0], Address) else None
    if not 1 <= len(given) <= 1 + counts:
        raise e.error(f"'{i.name}' takes an address and {counts} operands")
    pointer = e.pointer(given[0], _space(i))
    count = given[1] if len(given) > 1 else Number(1)
    check_operand(e, i, count, word)
    values = [pointer, *([e.read(count, i64 if word == "b64" else i32)] if counts else [])]
    if results:
        e.write(target, e.intrinsic(name, values, i64))
    else:
        e.do(llvm.CallIntrinsicOp(f"llvm.nvvm.{name}", values, []))


@row("mbarrier.init", types={"b64"}, modifiers=_SHARED, results=0, pure=False)
def mbarrier_init(e: Emitter, i: Instruction) -> None:
    operands(e, i, 2)
    _barrier(e, i, "mbarrier.init", 0, 1)


@row("mbarrier.inval", types={"b64"}, modifiers=_SHARED, results=0, pure=False)
def mbarrier_inval(e: Emitter, i: Instruction) -> None:
    """The memory may be used otherwise from here on: nothing to do."""
    e.pointer(operands(e, i, 1)[0], _space(i))


@row("mbarrier.arrive", "mbarrier.arrive_drop", types={"b64"}, modifiers=f"expect_tx noComplete {_ORDER}", pure=False)
def mbarrier_arrive(e: Emitter, i: Instruction) -> None:
    name = "mbarrier.arrive" + ".drop" * (i.parts[1] == "arrive_drop") + ".expect_tx" * ("expect_tx" in i.parts)
    if name.endswith("drop.expect_tx"):
        raise e.unsupported(f"'{i.name}'")
    _barrier(e, i, name, 1, 1)


@row("mbarrier.expect_tx", "mbarrier.complete_tx", types={"b64"}, modifiers=_ORDER, results=0, pure=False)
def mbarrier_bytes(e: Emitter, i: Instruction) -> None:
    operands(e, i, 2)
    _barrier(e, i, f"mbarrier.{i.parts[1]}", 0, 1)


@row("mbarrier.test_wait", "mbarrier.try_wait", types={"b64"}, modifiers=f"parity {_ORDER}", pure=False, waits=True)
def mbarrier_wait(e: Emitter, i: Instruction) -> None:
    """The hint of how long to try is left out."""
    if not 3 <= len(i.operands) <= 3 + (i.parts[1] == "try_wait"):
        raise e.error(f"'{i.name}' takes 3 operands, not {len(i.operands)}")
    target, address, phase = i.operands[:3]
    by_parity = "parity" in i.parts
    check_operand(e, i, target, "pred", is_result=True)
    check_operand(e, i, phase, "u32" if by_parity else "b64")
    given = [e.pointer(address, _space(i)), e.read(phase, i32 if by_parity else i64)]
    e.write(target, e.intrinsic(f"mbarrier.{i.parts[1]}{'.parity' * by_parity}", given, i1))


@row("mbarrier.pending_count", form="us", types={"b64"})
def pending_count(e: Emitter, i: Instruction) -> None:
    e.write(i.operands[0], e.intrinsic("mbarrier.pending_count", [e.read(i.operands[1], i64)], i32))


@row("cp.async.mbarrier.arrive", types={"b64"}, modifiers=f"noinc {_SHARED}", results=0, pure=False)
def cp_async_arrive(e: Emitter, i: Instruction) -> None:
    """Without `.noinc` the arrival is expected in addition, so that nothing changes."""
    pointer = e.pointer(operands(e, i, 1)[0], _space(i))
    if "noinc" in i.parts:
        e.intrinsic("mbarrier.arrive", [pointer, e.constant(i32, 1)], i64)


# ---------------------------------------------------------------------------------------------- bulk copies


def _bulk(e: Emitter, i: Instruction, to: str, of: str, has_barrier: bool) -> None:
    count = 4 if has_barrier else 3
    more = ("L2::cache_hint" in i.parts) + ("multicast::cluster" in i.parts)
    given = operands(e, i, count + more)
    check_operand(e, i, given[2], "u32")
    values = [e.pointer(given[0], to), e.pointer(given[1], of), e.read(given[2], i32)]
    e.do(llvm.CallIntrinsicOp("llvm.nvvm.cp.async.bulk", values, []))
    if has_barrier:
        told = [e.pointer(given[3], "shared"), values[2]]
        e.do(llvm.CallIntrinsicOp("llvm.nvvm.mbarrier.complete_tx", told, []))


@row(
    *(f"cp.async.bulk.shared::{to}.global.mbarrier::complete_tx::bytes" for to in ("cluster", "cta")),
    modifiers="L2::cache_hint multicast::cluster",
    results=0,
    pure=False,
)
def bulk_in(e: Emitter, i: Instruction) -> None:
    _bulk(e, i, "shared", "global", True)


@row("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", results=0, pure=False)
def bulk_across(e: Emitter, i: Instruction) -> None:
    _bulk(e, i, "shared", "shared", True)


@row("cp.async.bulk.global.shared::cta.bulk_group", modifiers="L2::cache_hint", results=0, pure=False)
def bulk_out(e: Emitter, i: Instruction) -> None:
    _bulk(e, i, "global", "shared", False)


@row("cp.async.bulk.commit_group", "cp.async.bulk.wait_group", modifiers="read", results=0, pure=False)
@row("cp.async.bulk.prefetch.L2.global", modifiers="L2::cache_hint", results=0, pure=False)
def bulk_nothing(e: Emitter, i: Instruction) -> None:
    """All copies are complete."""
