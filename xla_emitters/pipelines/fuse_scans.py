"""Makes one kernel of the fusions into which a cumulative op was cut, which reads its rows once. On HLO.

    a = f32[64,256,1] fusion(x)          the last of 16 elements             y = f32[64,4096] fusion(x), calls=c.scan
    b = f32[64,16,1] fusion(a)           ... of 256                     ->     c.scan: reduce-window of x, size=1x4096 pad=0_0x4095_0
    y = f32[64,4096] fusion(x, a, b)     windows of 16, and what came before                    {xla.stitched = {form = [256, ...]}}

XLA:GPU cuts a cumulative op into windows of 16, which each thread adds up alone: up to 16 reads of each element from the caches, and five kernels
for rows of 4096. Which fusions together are a scan is found by what they compute (`graph/scan_ranges`); what is computed before and after it
stays in the kernel. The kernel is the stitched one of programs (`dynamic/loops/row_scans`), whose threads hold a row.

Rows that do not fit a block are cut into chunks: their sums (`c.sums`), a scan of the sums, and a scan of each chunk, to which the sums of
those before it are added. The row is read twice. What is not done has a remark: scans along other dimensions than the last, lengths without a
suitable divisor, and whatever else the rules of stitched fusions refuse.
Source: G. Blelloch, "Prefix sums and their applications" (1990); docs/decisions/33.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, ModuleOp, SymbolRefAttr, i64
from xdsl.ir import Attribute, Block, SSAValue

from xla_emitters.device import DEFAULT_DEVICE
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.called import MapOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, ParameterOp, ReturnOp, find_computation
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.reductions import ReduceOp, ReduceWindowOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp, PadOp, ReshapeOp, SliceOp
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of
from xla_emitters.dialects.hlo.windows import Window, WindowAttr, WindowDim
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.fusion_parts import Part, new_fusion
from xla_emitters.graph.names import Names
from xla_emitters.graph.scan_ranges import FoundScan, find_scan, has_pieces
from xla_emitters.graph.scans import PREFIX
from xla_emitters.graph.view import STITCHED, HloFusion, is_stitched, view_of
from xla_emitters.pipelines.row_groups import RowGroup, groups_in
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from xla_emitters.pipelines.stitched_kernel import RowWay

LEAST_COLUMNS = 32
"""Shorter rows are one window, and XLA's kernel for that is as fast."""
MOST_CHUNK, LEAST_CHUNK = 16384, 1024
"""Elements of a chunk of a row that does not fit a block: the largest divisor of its length in between."""


@dataclass(frozen=True)
class FuseScansPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect in which bitcasts and constants are inside of fusions.

    target  the device that kernels are for
    """

    name = "xla-fuse-scans"

    target: str = DEFAULT_DEVICE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = Names(op)
        for computation in control_computations(op):
            for group in groups_in(computation, _has_pieces, lambda group: len(group.results) == 1):
                self._group(names, group)

    def _group(self, names: Names, group: RowGroup) -> None:
        """Replaces several fusions by one that scans, if they are a scan."""
        merged = group.merged(names, "scan")
        made: list[FusionOp] | None = None
        found = find_scan(view_of(merged).instructions)
        if found is not None and found.columns >= LEAST_COLUMNS:
            made = self._scanned(names, group.last, merged, found)
        if made is not None:
            group.replace(names, made[-1])
        _erase(names, merged)

    def _scanned(
        self, names: Names, last: FusionOp, merged: FusionOp, found: FoundScan
    ) -> list[FusionOp] | None:
        """The fusions that compute what the merged one does, before it; None, with a remark, if there are none that are better."""
        from xla_emitters.pipelines.stitched_kernel import rule_of, stitched  # loaded only by compilations with scans

        what = f"its scan of rows of {found.columns} elements is not one kernel"
        if found.dim != len(dims_of(found.array)) - 1:
            self.skip(last, f"{what}: it is along dimension {found.dim}, not the last")
            return None
        scan = _Scan(names, merged, found)
        made = scan.whole()
        fusion = stitched(view_of(made))
        if not isinstance(fusion, str):
            return [self._marked(made, rule_of(fusion))]
        _erase(names, made)
        if (chunk := _chunk_of(found.columns)) is None:
            self.skip(last, f"{what}: {fusion}")
            return None
        parts = scan.in_chunks(chunk)
        ways = [stitched(view_of(part)) for part in parts[1:]]
        if any(isinstance(way, str) for way in ways):
            for part in reversed(parts):
                _erase(names, part)
            self.skip(last, f"{what}, nor one of its chunks: {next(way for way in ways if isinstance(way, str))}")
            return None
        for part, way in zip(parts[1:], ways, strict=True):
            self._marked(part, rule_of(way))
        return parts

    def _marked(self, fusion: FusionOp, way: RowWay | str) -> FusionOp:
        assert not isinstance(way, str), way
        view_of(fusion).computation.attributes[STITCHED] = way.to_attr()
        self.remark(fusion, f"%{fusion.instruction_name.data} scans rows, which it reads once: {way}")
        return fusion


def _has_pieces(op: FusionOp, last: FusionOp) -> bool:
    """Whether a fusion may be a part of a scan."""
    view = view_of(op)
    return not is_stitched(view) and has_pieces(view.instructions)


def _erase(names: Names, fusion: FusionOp) -> None:
    """Erases a fusion without readers, and its computation."""
    computation = view_of(fusion).computation
    # The name is erased with the operation; its result has no readers.
    names.replace(fusion, fusion.result)
    names.erase_uncalled(computation)


def _chunk_of(columns: int) -> int | None:
    return next((chunk for chunk in range(MOST_CHUNK, LEAST_CHUNK - 1, -1) if columns % chunk == 0), None)


@dataclass(frozen=True, eq=False)
class _Scan:
    """The fusions of one scan, which are inserted before the merged one.

    merged  computes all of it
    """

    names: Names
    merged: FusionOp
    found: FoundScan

    @property
    def view(self) -> HloFusion:
        return view_of(self.merged)

    def whole(self) -> FusionOp:
        """One fusion."""
        part = Part(self.view.computation)
        return self._finished(part, self.scan(part, part.take(self.found.array)), "")

    def in_chunks(self, chunk: int) -> list[FusionOp]:
        """Three fusions: sums of the chunks of a row, their scan, and the scan of each chunk and what came before it."""
        *rows, columns = dims_of(self.found.array)
        count, element = columns // chunk, element_of(self.found.array)

        def cut(part: Part) -> SSAValue:
            return self._shaped(part, part.take(self.found.array), (*rows, count, chunk))

        sums = Part(self.view.computation)
        array = cut(sums)
        dims = DenseArrayBase.from_list(i64, [len(rows) + 1])
        properties = {"dimensions": dims, "to_apply": self.body()}
        total = ReduceOp([array, self.initial(sums)], array_type(element.ir_type, (*rows, count)), "sums", properties)
        first = self._call(sums, sums.insert(total, self.found.op), ".sums")

        scan = Part(self.view.computation)
        given = self._parameter(scan, first.result)
        second = self._call(scan, self.scan(scan, given), ".carried", first.result)

        last = Part(self.view.computation)
        before = self._parameter(last, second.result)
        earlier = self._earlier(last, before)
        array = cut(last)
        dims_before = list(range(len(rows) + 1))
        wide = BroadcastOp(
            [earlier], array.type, "before", {"dimensions": DenseArrayBase.from_list(i64, dims_before)}
        )
        pair = [last.insert(wide, self.found.op), self.scan(last, array)]
        both = last.insert(self._combining(pair), self.found.op)
        third = self._finished(last, self._shaped(last, both, (*rows, columns)), "", second.result)
        return [first, second, third]

    # ---------------------------------------------------------------------------------------------------------- parts

    def scan(self, part: Part, array: SSAValue) -> SSAValue:
        """The scan of the rows of an array."""
        *rows, columns = dims_of(array)
        low, high = (columns - 1, 0) if self.found.way == PREFIX else (0, columns - 1)
        window = Window((*(WindowDim(1) for _ in rows), WindowDim(columns, low=low, high=high)))
        properties = {"window": WindowAttr(window), "to_apply": self.body()}
        made = ReduceWindowOp([array, self.initial(part)], array.type, "scan", properties)
        return part.insert(made, self.found.op)

    def initial(self, part: Part) -> SSAValue:
        element = element_of(self.found.array)
        value = np.asarray(self.found.initial).astype(element.numpy)
        return part.insert(ConstantOp.from_array(value, element, "initial"), self.found.op)

    def body(self) -> SymbolRefAttr:
        """The computation of the elements' type that combines two."""
        op, element = self.found.op, element_of(self.found.array)
        if isinstance(op, ReduceWindowOp | MapOp) and element_of(op.result) == element:
            return op.to_apply
        scalar = array_type(element.ir_type, ())
        pair = [ParameterOp(number, scalar, name) for number, name in enumerate("ab")]
        both = self._combining([each.result for each in pair])
        made = ComputationOp(f"{self.view.computation.sym_name.data}.body", Block([*pair, both, ReturnOp(both.result)]))
        for each in (*pair, both, made):
            each.location = op.location
        self.names.add_computation(made, self.view.computation)
        return SymbolRefAttr(made.sym_name.data)

    def _combining(self, pair: list[SSAValue]) -> HloOp:
        """The op that combines two arrays, or two scalars, element by element."""
        op = self.found.op
        if isinstance(op, ReduceWindowOp | MapOp):
            root = find_computation(op, op.to_apply).root.owner
            assert isinstance(root, HloOp)
            if self.found.opcode and root.opcode == self.found.opcode:
                return type(root)(pair, pair[0].type, "both")
            rank = len(dims_of(pair[0]))
            dims = DenseArrayBase.from_list(i64, list(range(rank)))
            return MapOp(pair, pair[0].type, "both", {"to_apply": self.body(), "dimensions": dims})
        return type(op)(pair, pair[0].type, "both")

    def _earlier(self, part: Part, scanned: SSAValue) -> SSAValue:
        """The sums of what is before each chunk, from the sums up to its end."""
        *rows, count = dims_of(scanned)
        is_prefix = self.found.way == PREFIX
        edges = [(0, 0, 0)] * len(rows) + [(1, 0, 0) if is_prefix else (0, 1, 0)]
        ranges = [(0, size, 1) for size in rows] + [(0, count, 1) if is_prefix else (1, count + 1, 1)]
        element = element_of(scanned).ir_type
        shifted = PadOp(
            [scanned, self.initial(part)],
            array_type(element, (*rows, count + 1)),
            "shifted",
            {"padding": _lists(edges)},
        )
        cut = SliceOp([part.insert(shifted, self.found.op)], scanned.type, "earlier", {"slice": _lists(ranges)})
        return part.insert(cut, self.found.op)

    def _shaped(self, part: Part, value: SSAValue, dims: tuple[int, ...]) -> SSAValue:
        if dims_of(value) == dims:
            return value
        made = ReshapeOp([value], array_type(element_of(value).ir_type, dims), "shaped")
        return part.insert(made, self.found.op)

    def _parameter(self, part: Part, value: SSAValue) -> SSAValue:
        """A parameter of a fusion for another one's result: its first."""
        part.parameters.append(-1)
        return part.insert(ParameterOp(0, value.type, "given"), self.found.op)

    def _finished(self, part: Part, value: SSAValue, suffix: str, *given: SSAValue) -> FusionOp:
        """The fusion of what reads the scan."""
        part.taken[self.found.result] = self._shaped(part, value, dims_of(self.found.result))
        results = [part.take(root.result) for root in self.view.roots]
        return self._called(part, results, suffix, given)

    def _call(self, part: Part, value: SSAValue, suffix: str, *given: SSAValue) -> FusionOp:
        return self._called(part, [value], suffix, given)

    def _called(
        self, part: Part, results: list[SSAValue], suffix: str, given: tuple[SSAValue, ...]
    ) -> FusionOp:
        computation = part.finish(f"{self.view.computation.sym_name.data}{suffix}", results, self.merged)
        self.names.add_computation(computation, self.view.computation)
        operands = [*given, *(self.merged.operands[number] for number in part.parameters if number >= 0)]
        made = new_fusion(operands, computation, f"{self.merged.instruction_name.data}{suffix}")
        self.names.add(made, self.merged)
        return made


def _lists(rows: list[tuple[int, int, int]]) -> ArrayAttr[Attribute]:
    return ArrayAttr([DenseArrayBase.from_list(i64, list(row)) for row in rows])
