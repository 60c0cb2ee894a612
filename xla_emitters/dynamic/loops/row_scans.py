"""Scans of rows: every element of a row becomes the combination of all elements up to it, by threads that hold the row.

    prefix    y[i] = body(...body(init, x[0])..., x[i])     a window as large as the row, padded before it (`graph/scans`)
    suffix    y[i] = body of x[i], ... x[n - 1] and init    a window with its padding behind: from the end, for a body that commutes

A thread holds its elements as `row_loop.held_steps` deals them out: `width` adjacent ones in each step, then come those of the next lane.

    own         each step in each thread: v[j] = body(v[j - 1], v[j])
    lanes       the last ones of a step: for d = 1, 2 ... 16: %o = gpu.shuffle up %t, d; %t = lane >= d ? body(%o, %t) : %t
    warps       the last lanes of all steps and warps of the row to shared memory; a barrier; each warp scans them again
    together    y[j] = body(body(%before, %lanes before), v[j]), where %before of the row's first step and warp is the initial value

That order needs a body that is associative, as StableHLO asks of a reduction's. An element of n goes through width + log2(lanes) + ...
combinations (`graph/row_chains`). Elements are combined in the array's own type.
Source: StableHLO specification, "reduce_window"; G. Blelloch, "Prefix sums and their applications" (1990); D. Hillis, G. Steele,
"Data parallel algorithms" (1986); M. Harris, S. Sengupta, J. Owens, "Parallel prefix sum (scan) with CUDA" (2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import AnyFloat, i32
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dialects.mlir import arith, gpu
from xla_emitters.dialects.shuffles import shuffled
from xla_emitters.dynamic.buffers.fusion_rules import computation_of
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.row_rounds import WARP, RowPlace, RowThreads, shared_array
from xla_emitters.dynamic.loops.scalar_code import emit_scalars
from xla_emitters.graph.reduction_starts import IDENTITY
from xla_emitters.graph.scans import PREFIX, SUFFIX


@dataclass(frozen=True, eq=False)
class RowScan:
    """An op of a fusion that `scan_of_rows` accepts."""

    op: BufferOp
    way: str

    @property
    def array(self) -> SSAValue:
        return self.op.inputs[0]

    @property
    def result(self) -> SSAValue:
        return self.op.outputs[0]

    def neutral(self, code: KernelCode) -> SSAValue:
        """What the elements that a thread does not have count as: no element behind them in the order of the scan, or no difference."""
        root, hero = computation_of(self.op).root.owner, self.op.as_hlo()
        assert isinstance(root, HloOp)
        if self.way == PREFIX or (identity := IDENTITY.get(root.opcode)) is None:
            return code.load(self.op.inputs[1], ())
        wanted = element_of(hero.operands[0]).storage_type
        is_sum = isa(wanted, AnyFloat) and root.opcode == "add"
        return constant(code, -0.0 if is_sum else identity, wanted)

    def combined(self, code: KernelCode, one: SSAValue, other: SSAValue) -> SSAValue:
        """Combines what comes first in the order of the scan with what comes next, in the order of the row."""
        pair = (one, other) if self.way == PREFIX else (other, one)
        with code.located(self.op.location):
            return emit_scalars(code, computation_of(self.op), pair)[0]


def scan_held(
    code: KernelCode,
    scan: RowScan,
    threads: RowThreads,
    place: RowPlace,
    steps: Sequence[Sequence[SSAValue]],
    initial: SSAValue,
) -> tuple[list[list[SSAValue]], Callable[[], SSAValue]]:
    """The results of the elements that a thread holds, those of each step; and code for the combination of all of the row's threads.

    steps    for each step the thread's adjacent elements; elements behind the row's end are `RowScan.neutral`
    initial  what comes before them
    """
    is_prefix = scan.way == PREFIX
    ordered = [list(own) for own in steps] if is_prefix else [list(reversed(own)) for own in reversed(steps)]
    for own in ordered:
        for number in range(1, len(own)):
            own[number] = scan.combined(code, own[number - 1], own[number])
    lanes = _Lanes(code, scan, min(WARP, threads.per_row), place)
    totals = [lanes.scanned(own[-1]) for own in ordered]
    befores, whole = _before_steps(code, scan, threads, place, lanes, totals, initial)
    found = list[list[SSAValue]]()
    for own, total, before in zip(ordered, totals, befores, strict=True):
        start = lanes.after(before, total)
        found.append([scan.combined(code, start, value) for value in own])
    return (found if is_prefix else [list(reversed(own)) for own in reversed(found)]), whole


@dataclass(frozen=True, eq=False)
class _Lanes:
    """The lanes of a warp, or of a part of one, that share a row, in the order of the scan.

    count  a power of two
    """

    code: KernelCode
    scan: RowScan
    count: int
    place: RowPlace

    @property
    def number(self) -> SSAValue:
        """The lane's number in the order of the scan."""
        index = self.code.index
        lane = index.remainder(self.place.lane, self.count)
        return index.value(lane if self.scan.way == PREFIX else index.subtract(self.count - 1, lane))

    def before(self, value: SSAValue, offset: int) -> SSAValue:
        """The value of the lane that is `offset` earlier; anything in the first ones."""
        code, mode = self.code, "up" if self.scan.way == PREFIX else "down"
        return shuffled(code, mode, value, constant(code, offset, i32), constant(code, WARP, i32))

    def scanned(self, value: SSAValue) -> SSAValue:
        """The combination of the values of all lanes up to this one."""
        offset = 1
        while offset < self.count:
            both = self.scan.combined(self.code, self.before(value, offset), value)
            value = self._where(self.code.index.compare("uge", self.number, offset), both, value)
            offset *= 2
        return value

    def after(self, before: SSAValue, scanned: SSAValue) -> SSAValue:
        """`before`, combined with the values of all lanes before this one."""
        if self.count == 1:
            return before
        both = self.scan.combined(self.code, before, self.before(scanned, 1))
        return self._where(self.code.index.compare("eq", self.number, 0), before, both)

    def of_last(self, value: SSAValue) -> SSAValue:
        """The value of the last lane in the order of the scan, in all lanes."""
        if self.count == 1:
            return value
        index = self.code.index
        in_warp = index.remainder(self.place.thread, WARP)
        first = index.multiply(index.quotient(in_warp, self.count), self.count) if self.count < WARP else 0
        return self.of(value, index.value(index.add(first, self.count - 1 if self.scan.way == PREFIX else 0)))

    def of(self, value: SSAValue, lane: SSAValue) -> SSAValue:
        code = self.code
        source = code.insert(arith.IndexCastOp(lane, i32)).result
        return shuffled(code, "idx", value, source, constant(code, WARP, i32))

    def _where(self, condition: SSAValue, one: SSAValue, other: SSAValue) -> SSAValue:
        return self.code.insert(arith.SelectOp(condition, one, other)).result


def _before_steps(
    code: KernelCode,
    scan: RowScan,
    threads: RowThreads,
    place: RowPlace,
    lanes: _Lanes,
    totals: Sequence[SSAValue],
    initial: SSAValue,
) -> tuple[list[SSAValue], Callable[[], SSAValue]]:
    """For each step, in the order of the scan, the initial value and all elements of the row before the warp's elements in this step.

    Also code for the combination of them all.
    totals  of the steps: the lanes' combinations up to each lane
    """
    if threads.warps_per_row <= 1:
        found = [initial]
        for total in totals[:-1]:
            found.append(scan.combined(code, found[-1], lanes.of_last(total)))
        return found, lambda: scan.combined(code, found[-1], lanes.of_last(totals[-1]))
    index, warps, per_block = code.index, threads.warps_per_row, threads.per_block // WARP
    array = shared_array(code, len(totals) * per_block, initial.type)
    warp, lane = index.delinearize(place.thread, (per_block, WARP))
    is_last = index.compare("eq", lane, WARP - 1 if scan.way == PREFIX else 0)
    own = index.remainder(warp, warps) if warps < per_block else warp
    first = index.subtract(warp, own) if warps < per_block else 0
    with code.where(is_last) as inner:
        for step, total in enumerate(totals):
            inner.store(total, array, [inner.index.value(inner.index.add(warp, step * per_block))])
    code.insert(gpu.BarrierOp())
    # All steps and warps of the row, in the order of the scan: 32 of them are scanned at a time, by each warp.
    count, carried, groups = len(totals) * warps, initial, list[SSAValue]()
    in_order = _Lanes(code, scan, WARP, place)
    for start in range(0, count, WARP):
        number = index.minimum(index.add(in_order.number, start), count - 1)
        step, at = index.quotient(number, warps), index.remainder(number, warps)
        at = at if scan.way == PREFIX else index.subtract(warps - 1, at)
        loaded = code.load(array, [index.value(index.add(index.multiply(step, per_block), index.add(first, at)))])
        groups.append(scan.combined(code, carried, in_order.scanned(loaded)))
        carried = in_order.of_last(groups[-1])
    place_of_warp = own if scan.way == PREFIX else index.subtract(warps - 1, own)
    found = list[SSAValue]()
    for step in range(len(totals)):
        number = index.add(place_of_warp, step * warps)  # of the group's elements, the one before this is wanted
        is_first = index.compare("eq", number, 0)
        before = index.select(is_first, 0, index.subtract(number, 1)) if not step else index.subtract(number, 1)
        value = _of_group(code, in_order, groups, before, (step * warps - 1, step * warps + warps - 2))
        found.append(code.insert(arith.SelectOp(is_first, initial, value)).result if not step else value)
    return found, lambda: _of_group(code, in_order, groups, count - 1, (count - 1, count - 1))


def _of_group(
    code: KernelCode,
    lanes: _Lanes,
    groups: Sequence[SSAValue],
    number: Number,
    bounds: tuple[int, int],
) -> SSAValue:
    """Element `number`, which is within `bounds`, of values that lanes hold in groups of 32, in all lanes."""
    index = code.index
    place = index.value(number)
    low, high = max(bounds[0], 0) // WARP, max(bounds[1], 0) // WARP
    lane = index.value(index.remainder(place, WARP))
    if lanes.scan.way == SUFFIX:
        lane = index.value(index.subtract(WARP - 1, lane))
    found = lanes.of(groups[low], lane)
    for group in range(low + 1, high + 1):
        is_later = index.compare("uge", place, group * WARP)
        found = code.insert(arith.SelectOp(is_later, lanes.of(groups[group], lane), found)).result
    return found
