"""Makes one kernel of the fusions into which a cumulative op was cut, which reads its rows once. On HLO.

    a = f32[64,256,1] fusion(x)          the last of 16 elements         y = f32[64,4096] fusion(x), calls=c.scan
    b = f32[64,16,1] fusion(a)           ... of 256                ->      c.scan: what a, b and y compute
    y = f32[64,4096] fusion(x, a, b)     windows of 16 and all before      {xla.stitched = ..., xla.scans = ["fused_a", ...]}

XLA:GPU cuts a cumulative op into windows of 16, which each thread adds up alone: up to 16 reads of each element from the caches, and five
kernels for rows of 4096. Which fusions together are a scan is found by what they compute (`graph/scan_ranges`); what is computed before and
after it stays in the kernel. The computation stays as it is; its kernel is the stitched one of programs, whose threads hold a row and scan
it (`dynamic/loops/row_scans`), so elements are combined in another order.

Rows that do not fit a block are cut into chunks of up to 16384: their sums, a scan of the sums, and a scan of each chunk, to which what
came before it is added. The row is read twice. What is not done has a remark: scans along other dimensions than the last, lengths without
a suitable divisor, and whatever else the rules of stitched fusions refuse.
Source: G. Blelloch, "Prefix sums and their applications" (1990); docs/decisions/33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.device import DEFAULT_DEVICE, device
from xla_emitters.dialects.hlo.computation import FusionOp, ParameterOp
from xla_emitters.dialects.hlo.reductions import ReduceOp, ReduceWindowOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp, PadOp, SliceOp
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.entry import computation_of
from xla_emitters.graph.fusion_parts import Part, new_fusion
from xla_emitters.graph.names import Names
from xla_emitters.graph.scan_parts import ScanParts
from xla_emitters.graph.scan_ranges import FoundScan, has_pieces, scan_of, starts_tree
from xla_emitters.graph.scans import PREFIX
from xla_emitters.graph.view import SCANS, STITCHED, is_scheduled, view_of
from xla_emitters.pipelines.row_groups import RowGroup, erase_fusion, groups_in
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from xla_emitters.pipelines.stitched_kernel import RowWay

LEAST_COLUMNS = 8
"""Shorter rows are added up by each thread: the cost model expects no gain."""
MOST_CHUNK, LEAST_CHUNK = 16384, 1024
"""Elements of a chunk of a row that does not fit a block: the largest divisor of its length in between that 16 divides."""
TILE = 16


@dataclass(frozen=True)
class FuseScansPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect in which bitcasts and constants are inside of fusions.

    target  the device that kernels are for
    """

    name = "xla-fuse-scans"

    target: str = DEFAULT_DEVICE

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for computation in control_computations(op):
            for group in groups_in(computation, _has_pieces, _may_be_scan):
                self._group(names, group)

    def _group(self, names: Names, group: RowGroup) -> None:
        """Replaces fusions by one that scans, or by three, if they are a scan."""
        merged = group.merged(names, "scan")
        view = view_of(merged)
        found = scan_of(view)
        made: list[FusionOp] | None = None
        if (
            found is not None
            and found.columns >= LEAST_COLUMNS
            and all(op in found.ops for op in view.instructions if isinstance(op, ReduceWindowOp))
        ):
            of = ArrayAttr([StringAttr(computation_of(member).sym_name.data) for member in group.members])
            made = self._scanned(names, group.last, merged, found, of)
        if made is not None:
            group.replace(names, made[-1])
        if made is None or merged not in made:
            erase_fusion(names, merged)

    def _scanned(
        self, names: Names, last: FusionOp, merged: FusionOp, found: FoundScan, of: Attribute
    ) -> list[FusionOp] | None:
        """The fusions that compute what the merged one does; None, with a remark, if no kernel scans its rows."""
        from xla_emitters.pipelines.stitched_kernel import rule_of, stitched  # loaded only by compilations with scans

        what = f"its scan of rows of {found.columns} elements is not one kernel"
        if found.dim != len(dims_of(found.array)) - 1:
            self.skip(last, f"{what}: it is along dimension {found.dim}, not the last")
            return None
        computation_of(merged).attributes[SCANS] = of
        fusion = stitched(view_of(merged))
        if not isinstance(fusion, str):
            return [self._marked(merged, rule_of(fusion, device(self.target).cores))]
        if (chunk := _chunk_of(found.columns)) is None:
            self.skip(last, f"{what}: {fusion}")
            return None
        parts = _Chunks(names, merged, found, chunk).fusions()
        for part in parts:
            computation_of(part).attributes[SCANS] = of
        ways = [stitched(view_of(part)) for part in parts[1:]]
        if why := next((way for way in ways if isinstance(way, str)), None):
            for part in reversed(parts):
                erase_fusion(names, part)
            self.skip(last, f"{what}: {fusion}; nor are its chunks: {why}")
            return None
        for part, way in zip(parts[1:], ways, strict=True):
            assert not isinstance(way, str)
            self._marked(part, rule_of(way, device(self.target).cores))
        return parts

    def _marked(self, fusion: FusionOp, way: RowWay | str) -> FusionOp:
        assert not isinstance(way, str), way
        computation_of(fusion).attributes[STITCHED] = way.to_attr()
        self.remark(fusion, f"%{fusion.instruction_name.data} scans rows, which it reads once: {way}")
        return fusion


def _has_pieces(op: FusionOp, last: FusionOp) -> bool:
    """Whether a fusion may be a part of a scan."""
    return has_pieces(computation_of(op).instructions) and not is_scheduled(view_of(op))


def _may_be_scan(group: RowGroup) -> bool:
    """Whether a group has one result, and a window or an interleaved array."""
    ops = (op for member in group.members for op in computation_of(member).instructions)
    return len(group.results) == 1 and any(map(starts_tree, ops))


def _chunk_of(columns: int) -> int | None:
    return next((size for size in range(MOST_CHUNK, LEAST_CHUNK - 1, -TILE) if columns % size == 0), None)


@dataclass(frozen=True, eq=False)
class _Chunks:
    """The fusions of a scan of long rows, which are inserted before the one of all of it.

    merged   computes all of it
    """

    names: Names
    merged: FusionOp
    found: FoundScan
    chunk: int

    def fusions(self) -> list[FusionOp]:
        """Sums of the chunks of a row, their scan, and the scan of each chunk, combined with what came before it."""
        *rows, columns = dims_of(self.found.array)
        count, element = columns // self.chunk, element_of(self.found.array).ir_type
        around = computation_of(self.merged)
        add = partial(self.names.add_computation, before=around)
        sums, scan, last = (ScanParts(Part(around), self.found, add) for _ in range(3))
        properties = {"dimensions": _numbers([len(rows) + 1]), "to_apply": sums.body()}
        total = ReduceOp([self._cut(sums), sums.initial()], array_type(element, (*rows, count)), "sums", properties)
        first = self._call(sums.part, sums.insert(total), ".sums")

        second = self._call(scan.part, _tree(scan, self._given(scan, first.result)), ".carried", first.result)

        earlier, array = _shifted(last, self._given(last, second.result)), self._cut(last)
        dims = {"dimensions": _numbers(range(len(rows) + 1))}
        before = last.insert(BroadcastOp([earlier], array.type, "before", dims))
        both = last.combined(before, _tree(last, array))
        last.part.taken[self.found.result] = last.shaped(both, dims_of(self.found.result))
        results = [last.part.take(root.result) for root in view_of(self.merged).roots]
        return [first, second, self._called(last.part, results, "", [second.result])]

    def _cut(self, parts: ScanParts) -> SSAValue:
        *rows, columns = dims_of(self.found.array)
        return parts.shaped(parts.part.take(self.found.array), (*rows, columns // self.chunk, self.chunk))

    def _given(self, parts: ScanParts, value: SSAValue) -> SSAValue:
        """A parameter of a fusion for another one's result: its first."""
        parts.part.parameters.append(-1)
        return parts.insert(ParameterOp(0, value.type, "given"))

    def _call(self, part: Part, value: SSAValue, suffix: str, *given: SSAValue) -> FusionOp:
        return self._called(part, [value], suffix, given)

    def _called(self, part: Part, results: Sequence[SSAValue], suffix: str, given: Sequence[SSAValue]) -> FusionOp:
        around = computation_of(self.merged)
        computation = part.finish(f"{around.sym_name.data}{suffix}", results, self.merged)
        self.names.add_computation(computation, around)
        operands = [*given, *(self.merged.operands[number] for number in part.parameters if number >= 0)]
        made = new_fusion(operands, computation, f"{self.merged.instruction_name.data}{suffix}")
        self.names.add(made, self.merged)
        return made


def _tree(parts: ScanParts, array: SSAValue) -> SSAValue:
    """The scan of rows, in windows of `TILE` as XLA cuts it: the reference computes one of n elements in n steps of n."""
    *rows, columns = dims_of(array)
    if columns % TILE or columns <= TILE:
        return parts.window(array)
    tiles = parts.window(parts.shaped(array, (*rows, columns // TILE, TILE)))
    end = TILE - 1 if parts.found.way == PREFIX else 0
    ranges = [*((0, size, 1) for size in (*rows, columns // TILE)), (end, end + 1, 1)]
    element = element_of(array).ir_type
    lasts = parts.insert(
        SliceOp([tiles], array_type(element, (*rows, columns // TILE, 1)), "lasts", {"slice": _lists(ranges)})
    )
    earlier = _shifted(parts, _tree(parts, parts.shaped(lasts, (*rows, columns // TILE))))
    dims = {"dimensions": _numbers(range(len(rows) + 1))}
    before = parts.insert(BroadcastOp([earlier], tiles.type, "before", dims))
    return parts.shaped(parts.combined(before, tiles), (*rows, columns))


def _shifted(parts: ScanParts, scanned: SSAValue) -> SSAValue:
    """What comes before each element of a scan."""
    *rows, count = dims_of(scanned)
    is_prefix = parts.found.way == PREFIX
    edges = [*((0, 0, 0) for _ in rows), (1, 0, 0) if is_prefix else (0, 1, 0)]
    ranges = [*((0, size, 1) for size in rows), (0, count, 1) if is_prefix else (1, count + 1, 1)]
    longer = array_type(element_of(scanned).ir_type, (*rows, count + 1))
    padded = parts.insert(PadOp([scanned, parts.initial()], longer, "longer", {"padding": _lists(edges)}))
    return parts.insert(SliceOp([padded], scanned.type, "earlier", {"slice": _lists(ranges)}))


def _numbers(numbers: Iterable[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, list(numbers))


def _lists(rows: Iterable[tuple[int, int, int]]) -> ArrayAttr[Attribute]:
    return ArrayAttr(map(_numbers, rows))
