"""Rows of asynchronous copies and of barriers in shared memory, `mbarrier`: `cp.async` with groups, `cp.async.bulk`, tensor maps.

A copy moves its bytes when it is issued; what waits for it is told to the race detector.
Source: PTX ISA 8.8, 9.7.9.25 to 9.7.9.28 and 9.7.13.15.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1, i8, i16, i32, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.nvvm_async import (
    CpAsyncCommitGroupOp,
    CpAsyncOp,
    CpAsyncWaitGroupOp,
    LoadCacheModifier,
    LoadCacheModifierAttr,
)
from xla_emitters.dialects.mlir.tensor_maps import offset_of
from xla_emitters.text.ptx.arithmetic import one_type, operands, vector_of
from xla_emitters.text.ptx.emitter import TYPES, Emitter, bits_of
from xla_emitters.text.ptx.forms import check_operand
from xla_emitters.text.ptx.memory import HINTS, SPACES_OF_NAMES, space_of, update, width_of
from xla_emitters.text.ptx.rows import row
from xla_emitters.text.ptx.syntax import Address, Group, Instruction, Number, Operand, Register


@row("cp.async.ca", "cp.async.cg", modifiers=f"{HINTS} {SPACES_OF_NAMES}", results=0, pure=False)
def cp_async(e: Emitter, i: Instruction) -> None:
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
    if i.parts[2] == "wait_all":
        commit_group(e, i)
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
    """Without `.noinc` the arrival is expected in addition, so that the count of the barrier does not change."""
    pointer = e.pointer(operands(e, i, 1)[0], _space(i))
    e.do(llvm.CallIntrinsicOp("llvm.nvvm.cp.async.mbarrier.arrive", [pointer], []))
    if "noinc" in i.parts:
        e.intrinsic("mbarrier.arrive", [pointer, e.constant(i32, 1)], i64)


# ---------------------------------------------------------------------------------------------- bulk copies

_ASYNC = "weak shared::cluster mbarrier::complete_tx::bytes v2 v4"
_REDUCED = {"f16", "bf16", "f32", "f64", "b32", "u32", "s32", "b64", "u64", "s64"}
_UPDATES = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_ENDS = ("mbarrier::complete_tx::bytes", "bulk_group")
_DIMENSIONS = tuple(f"{count}d" for count in range(1, 6))
_BULK = f"{' '.join(_ENDS)} L2::cache_hint multicast::cluster global shared::cta shared::cluster"


@row("cp.async.bulk", modifiers=_BULK, results=0, pure=False)
@row("cp.reduce.async.bulk", types=_REDUCED, modifiers=f"{_BULK} {' '.join(_UPDATES)} noftz", results=0, pure=False)
@row("cp.async.bulk.tensor", modifiers=f"{_BULK} {' '.join(_DIMENSIONS)} tile", results=0, pure=False)
@row(
    "cp.reduce.async.bulk.tensor",
    modifiers=f"{_BULK} {' '.join((*_DIMENSIONS, *_UPDATES))} tile",
    results=0,
    pure=False,
)
def bulk(e: Emitter, i: Instruction) -> None:
    """A copy between global and shared memory, of bytes or of a box of a tensor map; or an update by what is copied."""
    spaces = [part for part in i.parts if part == "global" or part.startswith("shared")]
    is_tensor, is_multicast = "tensor" in i.parts, "multicast::cluster" in i.parts
    if len(spaces) != 2 or spaces.count("global") > 1 or (is_multicast and spaces != ["shared::cluster", "global"]):
        raise e.error(f"'{i.name}' copies between global and shared memory")
    to, of = (space.partition("::")[0] for space in spaces)
    completes = _ENDS[0] in i.parts
    if completes != (to == "shared") or completes == (_ENDS[1] in i.parts):
        raise e.error(f"'{i.name}' completes {'an mbarrier' if to == 'shared' else 'a bulk_group'}")
    update = next((part for part in i.parts if part in _UPDATES), "")
    if (i.parts[1] == "reduce") != bool(update) or (is_tensor and update and completes):
        raise e.error(f"'{i.name}' has no operation, or one too many")
    count = 2 + (not is_tensor) + completes
    given = list(operands(e, i, count + is_multicast + ("L2::cache_hint" in i.parts)))
    if is_tensor:
        mapped = given[1 if completes else 0]
        if not isinstance(mapped, Address) or mapped.coordinates is None:
            raise e.error("expected a tensor map and coordinates in brackets")
        coordinates = mapped.coordinates.elements
        if f"{len(coordinates)}d" not in i.parts:
            raise e.error(f"'{i.name}' has {len(coordinates)} coordinates")
        for operand in coordinates:
            check_operand(e, i, operand, "u32")
        more = [e.read(operand, i32) for operand in coordinates]
        to, of = ("generic", of) if mapped is given[0] else (to, "generic")
    else:
        check_operand(e, i, given[2], "u32")
        more = [e.read(given[2], i32)]
    values = [e.pointer(given[0], to), e.pointer(given[1], of), *more]
    mask = list[SSAValue]()
    if is_multicast:
        check_operand(e, i, given[count], "b16")
        mask = [e.read(given[count], i16)]
    ending = ".multicast" * is_multicast
    name = "cp.reduce.async.bulk" if update else "cp.async.bulk"
    name += ".tensor" * is_tensor
    name += f".{update}" if update else ".load" * is_tensor if completes else ".store"
    name += f".{one_type(e, i)}" if update and not is_tensor else ""
    if is_tensor and completes:
        size = e.intrinsic(f"{name}{ending}", [*values, *mask], i32)
    else:
        e.do(llvm.CallIntrinsicOp(f"llvm.nvvm.{name}{ending}", [*values, *mask], []))
        size = more[0]
    if completes:
        told = [e.pointer(given[count - 1], "shared"), size, *mask]
        e.do(llvm.CallIntrinsicOp(f"llvm.nvvm.mbarrier.complete_tx{ending}", told, []))


@row("cp.async.bulk.commit_group", results=0, pure=False)
@row("cp.async.bulk.wait_group", modifiers="read", results=0, pure=False)
def bulk_group(e: Emitter, i: Instruction) -> None:
    """Ends or awaits a group of copies to global memory."""
    order_groups(e, i, f"cp.async.bulk.{i.parts[3].replace('_', '.')}")


def order_groups(e: Emitter, i: Instruction, name: str) -> None:
    """A call of an intrinsic that ends a group, or that waits until there are at most so many."""
    counts = operands(e, i, int(any(part == "wait_group" for part in i.parts)))
    if not all(isinstance(count, Number) and count.value >= 0 for count in counts):
        raise e.error(f"'{i.name}' takes a number of groups")
    e.do(llvm.CallIntrinsicOp(f"llvm.nvvm.{name}", [e.read(count, i32) for count in counts], []))


@row("cp.async.bulk.prefetch.L2.global", modifiers="L2::cache_hint", results=0, pure=False)
@row(
    *(f"cp.async.bulk.prefetch.tensor.{word}.L2.global" for word in _DIMENSIONS),
    modifiers="tile L2::cache_hint",
    results=0,
    pure=False,
)
def bulk_nothing(e: Emitter, i: Instruction) -> None:
    """Has no meaning for the numbers."""


@row(
    "st.async", types={"b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"}, modifiers=_ASYNC, results=0, pure=False
)
def st_async(e: Emitter, i: Instruction) -> None:
    """Stores to a block of the cluster, and completes its bytes there."""
    of, width = one_type(e, i), width_of(i)
    address, value, barrier = operands(e, i, 3)
    parts = value.elements if isinstance(value, Group) else (value,)
    if len(parts) != width:
        raise e.error(f"'{i.name}' stores {width} values from {len(parts)} registers")
    for part in parts:
        check_operand(e, i, part, of)
    values = [e.read(part, TYPES[of]) for part in parts]
    size = bits_of(TYPES[of]) // 8 * width
    e.do(llvm.StoreOp(values[0] if width == 1 else vector_of(e, values), e.pointer(address, "shared"), size))
    told = [e.pointer(barrier, "shared"), e.constant(i32, size)]
    e.do(llvm.CallIntrinsicOp("llvm.nvvm.mbarrier.complete_tx", told, []))


@row(
    "red.async.relaxed.cluster",
    types={"u32", "s32", "u64", "b32"},
    modifiers=f"{_ASYNC} {' '.join(_UPDATES)}",
    results=0,
    pure=False,
)
def red_async(e: Emitter, i: Instruction) -> None:
    """Updates a number of a block of the cluster, and completes its bytes there."""
    *given, barrier = operands(e, i, 3)
    update(e, i, None, tuple(given))
    told = [e.pointer(barrier, "shared"), e.constant(i32, bits_of(TYPES[one_type(e, i)]) // 8)]
    e.do(llvm.CallIntrinsicOp("llvm.nvvm.mbarrier.complete_tx", told, []))


_FIELDS = {
    **{"global_address": 64, "rank": 8, "elemtype": 8, "interleave_layout": 8, "swizzle_mode": 8, "fill_mode": 8},
    **{"box_dim": 32, "global_dim": 32, "global_stride": 64, "element_stride": 32},
}
"""Field of a tensor map -> bits here."""
_OF_DIMENSIONS = ("box_dim", "global_dim", "global_stride", "element_stride")


@row(
    *(f"tensormap.replace.tile.{field}" for field in _FIELDS),
    types={"b32", "b64"},
    modifiers="global shared::cta b1024",
    results=0,
    pure=False,
)
def tensormap_replace(e: Emitter, i: Instruction) -> None:
    """A store to the field, as the executor lays out tensor maps."""
    field, has_number = i.parts[3], i.parts[3] in _OF_DIMENSIONS
    address, *number, value = operands(e, i, 2 + has_number)
    if has_number and not (isinstance(number[0], Number) and 0 <= number[0].value < 5 - (field == "global_stride")):
        raise e.error(f"'{i.name}' takes the number of a dimension")
    if not isinstance(value, Number):
        check_operand(e, i, value, i.parts[-1])
    place = e.pointer(address, space_of(i))
    offset = offset_of(field) + sum(each.value for each in number if isinstance(each, Number)) * _FIELDS[field] // 8
    pointer = e.add(llvm.GEPOp(place, [offset], i8, result_type=place.type))
    e.do(llvm.StoreOp(e.read(value, IntegerType(_FIELDS[field])), pointer, _FIELDS[field] // 8))


@row(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release",
    modifiers="cta cluster gpu sys sync aligned",
    results=0,
    pure=False,
)
def tensormap_copy(e: Emitter, i: Instruction) -> None:
    """A warp copies 128 bytes: its first thread does."""
    to, of, size = operands(e, i, 3)
    if size != Number(128):
        raise e.error(f"'{i.name}' copies 128 bytes")
    values = [e.pointer(to, "global"), e.pointer(of, "shared"), e.constant(i32, 128)]
    e.do(llvm.CallIntrinsicOp("llvm.nvvm.cp.async.bulk.warp", values, []))
