"""Rows of asynchronous copies and of barriers in shared memory, `mbarrier`: `cp.async` with groups, `cp.async.bulk`, tensor maps.

A copy moves its bytes when it is issued; what waits for it is told to the race detector.
Source: PTX ISA 8.8, 9.7.9.25 to 9.7.9.28 and 9.7.13.15.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1, i8, i32, i64
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.dialects.mlir.nvvm_async import (
    CpAsyncCommitGroupOp,
    CpAsyncOp,
    CpAsyncWaitGroupOp,
    LoadCacheModifierAttr,
)
from xla_emitters.dialects.mlir.tensor_maps import offset_of
from xla_emitters.text.ptx.memory_rows import HINTS, SPACES_OF_NAMES, registers_of, store, update
from xla_emitters.text.ptx.op_builder import TYPES, OpBuilder
from xla_emitters.text.ptx.rows import row
from xla_emitters.text.ptx.syntax import Address, Instruction, Operand, PtxLiteral, Register
from xla_emitters.text.ptx.threads import of_rank


@row("cp.async.ca cp.async.cg", "=..n*", (), f"{HINTS} {SPACES_OF_NAMES}", pure=False)
def cp_async(
    e: OpBuilder, i: Instruction, to: Operand | None, of: Operand | None, size: int, *more: Operand | None
) -> None:
    """The operand after the size is how many bytes there are, zeros follow them; or a predicate: there are none. A policy is the last."""
    more = more[: len(more) - ("L2::cache_hint" in i.parts)]
    values = [e.pointer(to, "shared"), e.pointer(of, "global")]
    if more and isinstance(more[0], Register) and more[0].type == "pred":
        values.append(e.add(llvm.SelectOp(e.read(more[0], i1), e.constant(i32, 0), e.constant(i32, size))))
    elif more:
        values.append(e.read(more[0], i32))
    modifier = LoadCacheModifierAttr.of(i.parts[2])
    e.do(CpAsyncOp.create(operands=values, properties={"size": IntegerAttr(size, i32), "modifier": modifier}))


def _await_groups(most: int) -> Operation:
    return CpAsyncWaitGroupOp.create(properties={"n": IntegerAttr(most, i32)})


row("cp.async.commit_group", "=", to=CpAsyncCommitGroupOp.create, pure=False)
row("cp.async.wait_group", "=n", to=_await_groups, pure=False)


@row("cp.async.wait_all", "=", pure=False)
def wait_all(e: OpBuilder, i: Instruction) -> None:
    e.do(CpAsyncCommitGroupOp.create())
    e.do(_await_groups(0))


# ---------------------------------------------------------------------------------------------- mbarrier

_SHARED = "shared shared::cta shared::cluster"
_ORDER = f"release acquire relaxed cta cluster {_SHARED}"


row("mbarrier.inval", "=a", {"b64"}, _SHARED, to="", pure=False)  # the memory may be used otherwise from here on
row("mbarrier.init", "=au", {"b64"}, _SHARED, to="mbarrier.{1}", pure=False)
row("mbarrier.expect_tx mbarrier.complete_tx", "=au", {"b64"}, _ORDER, to="mbarrier.{1}", pure=False)
row("mbarrier.pending_count", "u=b", {"b64"}, to="mbarrier.{1}")


@row("mbarrier.arrive mbarrier.arrive_drop", ".=*", {"b64"}, f"expect_tx noComplete {_ORDER}", pure=False)
def mbarrier_arrive(e: OpBuilder, i: Instruction, *given: Operand | None) -> None:
    """`[token,] [address] [, count]`; a count that is left out is 1."""
    target, given = (None, i.operands) if isinstance(i.operands[0], Address) else (i.operands[0], given)
    if not 1 <= len(given) <= 2:
        raise e.error(f"'{i.name}' takes an address and a count")
    name = "mbarrier.arrive" + ".drop" * (i.parts[1] == "arrive_drop") + ".expect_tx" * ("expect_tx" in i.parts)
    barrier, count = e.pointer(given[0], i.space), given[1] if len(given) > 1 else PtxLiteral(1)
    e.write(target, e.intrinsic(name, [barrier, e.read_as(count, "u32")], i64))


@row("mbarrier.test_wait", "p=a.", {"b64"}, f"parity {_ORDER}", pure=False, waits=True)
@row("mbarrier.try_wait", "p=a.?.", {"b64"}, f"parity {_ORDER}", pure=False, waits=True)
def mbarrier_wait(
    e: OpBuilder, i: Instruction, barrier: SSAValue, phase: Operand | None, *_: Operand | None
) -> SSAValue:
    """The hint of how long to try is left out."""
    ending, word = (".parity", "u32") if "parity" in i.parts else ("", "b64")
    return e.intrinsic(f"mbarrier.{i.parts[1]}{ending}", [barrier, e.read_as(phase, word)], i1)


@row("cp.async.mbarrier.arrive", "=a", {"b64"}, f"noinc {_SHARED}", pure=False)
def cp_async_arrive(e: OpBuilder, i: Instruction, barrier: SSAValue) -> None:
    """Without `.noinc` the arrival is expected in addition, so that the count of the barrier does not change."""
    e.tell("cp.async.mbarrier.arrive", barrier)
    if "noinc" in i.parts:
        e.intrinsic("mbarrier.arrive", [barrier, e.constant(i32, 1)], i64)


# ---------------------------------------------------------------------------------------------- bulk copies

_ASYNC = "weak shared::cluster mbarrier::complete_tx::bytes v2 v4"
_REDUCED = {"f16", "bf16", "f32", "f64", "b32", "u32", "s32", "b64", "u64", "s64"}
_UPDATES = "add min max inc dec and or xor"
_ENDS = ("mbarrier::complete_tx::bytes", "bulk_group")
_OF_ALL = "multicast::cluster::all"
_DIMENSIONS = [f"{count}d" for count in range(1, 6)]
_BULK = f"{' '.join(_ENDS)} L2::cache_hint multicast::cluster global shared::cta shared::cluster"
_BOX = f"{' '.join(_DIMENSIONS)} tile cta_group::1 cta_group::2"


@row("cp.async.bulk", "=*", (), _BULK, pure=False)
@row("cp.reduce.async.bulk", "=*", _REDUCED, f"{_BULK} {_UPDATES} noftz", pure=False)
@row("cp.async.bulk.tensor", "=*", (), f"{_BULK} {_BOX} tile::gather4 tile::scatter4", pure=False)
@row("cp.reduce.async.bulk.tensor", "=*", (), f"{_BULK} {_BOX} {_UPDATES}", pure=False)
def bulk(e: OpBuilder, i: Instruction, *given: Operand | None) -> None:
    """A copy between global and shared memory, of bytes or of a box of a tensor map; or an update by what is copied."""
    is_tensor, is_multicast, completes = "tensor" in i.parts, "multicast::cluster" in i.parts, _ENDS[0] in i.parts
    to, of = _spaces_of(e, i, is_multicast, completes)
    update = i.among(_UPDATES, "")
    if (i.parts[1] == "reduce") != bool(update) or (is_tensor and update and completes):
        raise e.error(f"'{i.name}' has no operation, or one too many")
    count = 2 + (not is_tensor) + completes
    if len(given) != (wanted := count + is_multicast + ("L2::cache_hint" in i.parts)):
        raise e.error(f"'{i.name}' takes {wanted} operands, not {len(given)}")
    if is_tensor:
        more = _coordinates(e, i, given[1 if completes else 0])
        to, of = (to, "generic") if completes else ("generic", of)
    else:
        more = [e.read_as(given[2], "u32")]
    mask = [e.read_as(given[count], "b16")] if is_multicast else []
    values = [e.pointer(given[0], to), e.pointer(given[1], of), *more, *mask]
    name = ("cp.reduce.async.bulk" if update else "cp.async.bulk") + ".tensor" * is_tensor
    name += f".{update}" if update else ".load" * is_tensor if completes else ".store"
    name += f".{e.one_type()}" if update and not is_tensor else ""
    if (rows := i.among("tile::gather4 tile::scatter4", "")) and (rows == "tile::gather4") != completes:
        raise e.error(f"'{i.name}': rows are gathered from global memory, and scattered to it")
    name += rows.replace("tile::", ".")
    ending, size = ".multicast" * is_multicast, more[0]
    if is_tensor and completes:
        size = e.intrinsic(f"{name}{ending}", values, i32)
    else:
        e.tell(f"{name}{ending}", *values)
    if completes:
        e.tell(
            f"mbarrier.complete_tx{'.pair' * ('cta_group::2' in i.parts)}{ending}",
            e.pointer(given[count - 1], "shared"),
            size,
            *mask,
        )


def _spaces_of(e: OpBuilder, i: Instruction, is_multicast: bool, completes: bool) -> tuple[str, str]:
    """Where a bulk copy writes, and where it reads."""
    spaces = [part for part in i.parts if part == "global" or part.startswith("shared")]
    if len(spaces) != 2 or spaces.count("global") > 1 or (is_multicast and spaces != ["shared::cluster", "global"]):
        raise e.error(f"'{i.name}' copies between global and shared memory")
    to, of = (space.partition("::")[0] for space in spaces)
    if completes != (to == "shared") or completes == (_ENDS[1] in i.parts):
        raise e.error(f"'{i.name}' completes {'an mbarrier' if to == 'shared' else 'a bulk_group'}")
    return to, of


def _coordinates(e: OpBuilder, i: Instruction, mapped: Operand | None) -> list[SSAValue]:
    """Of `[map, {x, y}]`; those of single rows are a column and the numbers of four rows."""
    if not isinstance(mapped, Address) or mapped.coordinates is None:
        raise e.error("expected a tensor map and coordinates in brackets")
    coordinates = mapped.coordinates.elements
    of_rows = 3 if i.among("tile::gather4 tile::scatter4", "") else 0
    if f"{len(coordinates) - of_rows}d" not in i.parts or (of_rows and "2d" not in i.parts):
        raise e.error(f"'{i.name}' has {len(coordinates)} coordinates")
    return [e.read_as(operand, "u32") for operand in coordinates]


row("cp.async.bulk.commit_group", "=", to="cp.async.bulk.commit.group", pure=False)
row("cp.async.bulk.wait_group", "=n", (), "read", to="cp.async.bulk.wait.group", pure=False)
row("cp.async.bulk.prefetch.L2.global", "=*", (), "L2::cache_hint", to="", pure=False)
for _word in _DIMENSIONS:
    _HINTS = "tile tile::gather4 L2::cache_hint"
    row(f"cp.async.bulk.prefetch.tensor.{_word}.L2.global", "=*", (), _HINTS, to="", pure=False)


@row("st.async", "=a.a", {"b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"}, _ASYNC, pure=False)
def st_async(e: OpBuilder, i: Instruction, place: SSAValue, source: Operand | None, barrier: SSAValue) -> None:
    """Stores to a block of the cluster, and completes its bytes there."""
    word, parts = e.one_type(), registers_of(e, i, source)
    values = [e.read_as(part, word) for part in parts]
    value = values[0] if len(values) == 1 else e.vector(values)
    store(e, i, value, place)
    e.tell("mbarrier.complete_tx.stored", barrier, e.constant(i32, bits_of(value.type) // 8))


@row("red.async.relaxed.cluster", "=..a", {"u32", "s32", "u64", "b32"}, f"{_ASYNC} {_UPDATES}", pure=False)
def red_async(e: OpBuilder, i: Instruction, place: Operand | None, source: Operand | None, barrier: SSAValue) -> None:
    """Updates a number of a block of the cluster, and completes its bytes there."""
    update(e, i, place, source)
    e.tell("mbarrier.complete_tx.stored", barrier, e.constant(i32, bits_of(TYPES[e.one_type()]) // 8))


@row("clusterlaunchcontrol.try_cancel.async", "=aa", {"b128"}, f"shared::cta {_ENDS[0]} {_OF_ALL}", pure=False)
def try_cancel(e: OpBuilder, i: Instruction, place: SSAValue, barrier: SSAValue) -> None:
    """No launch is cancelled, since all blocks run here: the answer is 16 bytes of zeros."""
    for rank in range(prod(e.cluster) if _OF_ALL in i.parts else 1):
        there = [place, barrier]
        if _OF_ALL in i.parts and prod(e.cluster) > 1:
            there = [e.cast(of_rank(e, e.cast(each, i64), e.constant(i32, rank)), each.type) for each in there]
        store(e, i, e.vector([e.constant(i64, 0)] * 2), there[0])
        e.tell("mbarrier.complete_tx.stored", there[1], e.constant(i32, 16))


@row("clusterlaunchcontrol.query_cancel.is_canceled.pred", "p=.", {"b128"})
def is_canceled(e: OpBuilder, i: Instruction, answer: Operand | None) -> SSAValue:
    return e.compare("ne", e.element(e.read_as(answer, "b128"), 0), e.constant(i64, 0))


@row(
    " ".join(f"clusterlaunchcontrol.query_cancel.get_first_ctaid{of}" for of in (".v4", "::x", "::y", "::z")),
    ".=.",
    {"b32", "b128"},
)
def first_ctaid(e: OpBuilder, i: Instruction, answer: Operand | None) -> None:
    """Of an answer that nothing is cancelled the ISA leaves it open."""
    e.check(answer, "b128")
    for target in registers_of(e, i, i.operands[0]):
        e.write(target, PtxLiteral(0))


@row("st.bulk", "=abn", (), "weak shared::cta", pure=False)
def st_bulk(e: OpBuilder, i: Instruction, place: SSAValue, size: SSAValue, value: int) -> None:
    if value:
        raise e.error(f"'{i.name}' stores zeros")
    no = IntegerAttr(0, i1)
    e.do(llvm.INTRINSICS["memset"].create(operands=[place, e.constant(i8, 0), size], properties={"isVolatile": no}))


_FIELDS = {
    **{"global_address": 64, "rank": 8, "elemtype": 8, "interleave_layout": 8, "swizzle_mode": 8, "fill_mode": 8},
    **{"box_dim": 32, "global_dim": 32, "global_stride": 64, "element_stride": 32},
}
"""Field of a tensor map -> bits here."""
_OF_DIMENSIONS = ("box_dim", "global_dim", "global_stride", "element_stride")


def tensormap_replace(e: OpBuilder, i: Instruction, place: SSAValue, *operands: int | Operand | None) -> None:
    """A store to the field, as the executor lays out tensor maps."""
    field, (*number, value) = i.parts[3], operands
    if any(not isinstance(each, int) or each >= 5 - (field == "global_stride") for each in number):
        raise e.error(f"'{i.name}' takes the number of a dimension")
    assert not isinstance(value, int)
    if not isinstance(value, PtxLiteral):
        e.check(value, i.parts[-1])
    offset = offset_of(field) + sum(each for each in number if isinstance(each, int)) * _FIELDS[field] // 8
    pointer = e.add(llvm.GEPOp(place, [offset], i8, result_type=place.type))
    e.do(llvm.StoreOp(e.read(value, IntegerType(_FIELDS[field])), pointer, _FIELDS[field] // 8))


for _word in _FIELDS:
    _form = "=an." if _word in _OF_DIMENSIONS else "=a."
    row(f"tensormap.replace.tile.{_word}", _form, {"b32", "b64"}, "global shared::cta b1024", pure=False)(
        tensormap_replace
    )


@row(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release",
    "=..n",
    modifiers="cta cluster gpu sys sync aligned",
    pure=False,
)
def tensormap_copy(e: OpBuilder, i: Instruction, to: Operand | None, of: Operand | None, size: int) -> None:
    """A warp copies 128 bytes: its first thread does."""
    if size != 128:
        raise e.error(f"'{i.name}' copies 128 bytes")
    e.tell("cp.async.bulk.warp", e.pointer(to, "global"), e.pointer(of, "shared"), e.constant(i32, 128))
