"""Fuses ops on buffers: the ops of one kernel are moved into the region of one op.

    lmhlo.exponential %x -> %e                        "lmhlo.fusion"() <{fusion_name = "main_kLoop_add_0", kind = "kLoop"}> ({
    lmhlo.add %e, %y -> %o                ->            lmhlo.exponential %x -> %e
                                                        lmhlo.add %e, %y -> %o
                                                        lmhlo.terminator }) {disc.device = "gpu"}

Buffers stay outside. A buffer that is written inside and used outside is a result of the kernel; the others are private to a thread.

In each block, repeated until nothing changes, last ops first: an op joins the cluster of an op that it reads, if the rules allow it
(`fusion_rules`, `stitch_rules`) and no other op must run between them (`fusion_graph`). Last ops first, because an op that is cheap to
recompute, such as a broadcast, is best in the kernel that reads it. Then independent clusters join if the rules allow it
("horizontal") and they are not known to be large. A fusion is placed as soon as its operands are computed; one that reads arguments
only, such as a filter in another layout, is placed just before its first use, so that its buffer lives shorter. Ops that give one number
everywhere are copied into each fusion that reads them, with a buffer of their own.

An op that joined no cluster is a fusion of its own: on the device everything but library calls needs a kernel. (The seed drops these, and
its loop pass takes single ops too.) A lone reshape or copy, or one that only makes a second result from another op's result, stays
outside: it becomes a second name of a buffer, unless it is returned and the buffer is an argument or a constant.

Options
    stitch          reductions of rows and their readers are one kernel
    scans           scans of rows of known length are in such kernels, if `stitch` is on, too
    horizontal      independent clusters join
    mix_reductions  reductions of rows and of columns share a kernel
    transposes      transposes that need tiles join any others
    most_buffers    limit of the arrays of a kernel of several ops

Reductions of rows whose results are read again in the same kernel ("stitch"): a block keeps its rows' results in shared memory.

    m = reduce maximum x[r, c]                       one block: its rows of x, their maxima, the differences,
    e = exp(x - broadcast m)             ->          the sums, the quotients; m and s are in shared memory
    s = reduce add e;  y = e / broadcast s

Every reduction reads a matrix of r rows and c columns. An op that depends on one must stay in its row: element i of an array of r*c belongs
to row i div c, element i of an array of r to row i. That holds for elementwise ops and reshapes, whatever the ranks, and for a broadcast
of an array of r to one of r*c along the dimensions behind the rows. Any other op that depends on a reduction, such as a
transpose or a slice, is refused; ops that depend on none are computed wherever an element needs them. Each result has r*c elements or r.

The results of the reductions must fit into `SHARED_BYTES` for at least one row; how many rows a block has, and whether it keeps the row
itself too, the schedule decides when the sizes are known.
Source: docs/reference/4 3.3; Zheng et al., "AStitch: enabling a new multi-dimensional optimization space for memory-intensive ML training
and inference on modern SIMT architectures" (ASPLOS 2022).

Why two neighbours were not fused is a remark. Source: seed document, "DhloFuseOnBuffer"; docs/reference/4 3.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.hlo.placement import GPU
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, space_of, tensor_of
from xla_emitters.dialects.locations import fuse_all
from xla_emitters.dialects.mlir import func, memref
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes, product
from xla_emitters.dynamic.buffers.buffer_uses import leaves_the_block, uses_of
from xla_emitters.dynamic.buffers.fusion_graph import FusionGraph
from xla_emitters.dynamic.buffers.fusion_rules import (
    BROADCASTS,
    COLUMN,
    LOOP,
    MOST_BUFFERS,
    MOST_PLACES,
    RESHAPES,
    ROW,
    STITCH,
    FusibleOp,
    Fusion,
    Group,
    Verdict,
    base_rules,
    beside_its_tiles,
    is_splat_source,
    matrix_of,
    scan_of_rows,
    spreads,
    too_large,
    updated_beside_others,
    uses_of_elements,
    why_not_fusible,
)
from xla_emitters.rewrite.kernel_pass import KernelPass

SHARED = "disc.shared"
"""Attribute of a kStitch fusion: the names of the reductions whose results a block keeps."""
NOT_ASKED = frozenset(("constant", "copy", "d2h", "dot", "dynamic-conv", "convolution", "h2d"))
"""Ops of the device that never need a kernel of ours."""
LARGE = 1 << 16
"""Clusters known to have so many elements are worth a launch each: they do not join independent ones."""


NEAR = 32
"""How many of the following independent clusters a cluster is tried with."""


@dataclass(frozen=True)
class DiscFuseOnBufferPass(KernelPass):
    name = "disc-fuse-on-buffer"

    stitch: bool = True
    scans: bool = False
    horizontal: bool = True
    mix_reductions: bool = False
    transposes: bool = False
    most_buffers: int = MOST_BUFFERS

    def apply_to(self, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                _FunctionFusion(self, function).run()

    def judge(self, group: Group, *, connected: bool = True) -> Verdict:
        """Whether a group is a fusion; `connected`: whether its ops depend on each other."""
        if (again := group.repeated()) is not None:
            return f"{again.name} would be computed at more than {MOST_PLACES} places by each thread"
        if not self.transposes and (why := beside_its_tiles(group)) is not None:
            return why
        verdict = base_rules(group, self.most_buffers, mix_reductions=self.mix_reductions)
        has_rows = bool(group.scans) or any(part.reduces == ROW for part in group.reductions)
        if isinstance(verdict, Fusion) or not (self.stitch and has_rows and connected):
            return verdict
        stitched = stitch_rules(group, self.most_buffers)
        return stitched if isinstance(stitched, Fusion) or group.rereads or group.scans else verdict


class _FunctionFusion:
    """The fusions of one function.

    parts   the ops that can be in a fusion
    splats  buffers that hold one number everywhere -> the op that writes them
    """

    def __init__(self, fuse: DiscFuseOnBufferPass, function: func.FuncOp) -> None:
        self.fuse = fuse
        self.function = function
        self.sizes = BufferSizes()
        self.made = set[FusionOp]()
        self.parts = dict[Operation, FusibleOp]()
        self.splats = dict[SSAValue, BufferOp]()

    def run(self) -> None:
        _frees_last(self.function)
        self._classify()
        blocks = [block for block in _blocks(self.function) if any(op in self.parts for op in block.ops)]
        for block in reversed(blocks):
            _BlockFusion(self, block).run()
        for op in reversed(list(dict.fromkeys(self.splats.values()))):
            self._finish_splat(op)
        for number, op in enumerate([op for op in self.function.walk() if isinstance(op, FusionOp)]):
            if op.fusion_name is not None and op in self.made:
                op.fusion_name = StringAttr(f"{op.fusion_name.data}_{number}")

    def _classify(self) -> None:
        written = [(buffer, buffer in op.inputs) for op in _buffer_ops(self.function) for buffer in op.outputs]
        updated = {buffer for buffer, in_place in written if in_place}
        again = {buffer for (buffer, _), times in Counter(one for one in written if not one[1]).items() if times > 1}
        dead = _dead(self.function)
        for op in _buffer_ops(self.function):
            if op in dead:
                continue
            reason = None if self.fuse.scans and self.fuse.stitch and scan_of_rows(op) else why_not_fusible(op)
            if reason is None and not again.isdisjoint(op.operands):
                reason = "one of its buffers is written again"
            if reason is None:
                part = self.parts[op] = FusibleOp(op)
                is_splat = bool(part.reads) and spreads(part) and all(buffer in self.splats for buffer in part.reads)
            else:
                is_splat = is_splat_source(op) and again.isdisjoint(op.operands)
                if (
                    not is_splat
                    and opcode_of(op.HLO) not in NOT_ASKED
                    and any(space_of(output.type) == GPU for output in op.outputs)
                ):
                    self.fuse.skip(op, reason)
            if is_splat and isinstance(op.outputs[0].owner, memref.AllocOp) and updated.isdisjoint(op.operands):
                self.splats[op.outputs[0]] = op

    def _finish_splat(self, op: BufferOp) -> None:
        """Erases an op without readers; one that remains and is not a constant gets a kernel."""
        (buffer,) = op.outputs
        if not [use for use in uses_of_elements(buffer) if use.operation is not op]:
            for user in [use.operation for use in uses_of(buffer)]:
                Rewriter.erase_op(user)
            assert isinstance(buffer.owner, memref.AllocOp)
            Rewriter.erase_op(buffer.owner)
        elif (part := self.parts.get(op)) is not None and part.opcode not in RESHAPES:
            block, place = op.parent, op.next_op
            assert block is not None
            assert place is not None
            made = self.build([part], Fusion(LOOP))
            Rewriter.insert_op(made, InsertPoint.before(place))

    def build(self, parts: Sequence[FusibleOp], fusion: Fusion) -> list[Operation]:
        """Moves the ops from their block into a fusion; returns it, with allocations of its buffers before and deallocations behind it."""
        group = Group(parts, self.sizes)
        name = f"{self.function.sym_name.data}_{fusion.kind}_{group.dominant().opcode.replace('-', '_')}"
        inside = list[Operation]()
        outside = list[Operation]()
        copies = dict[SSAValue, SSAValue]()
        for part in parts:
            part.op.detach()
            for number, operand in enumerate(part.op.inputs):
                if operand in self.splats:
                    part.op.operands[number] = self._copied(operand, copies, inside, outside)
            inside.append(part.op)
        made = FusionOp.of(name, fusion.kind, inside, fuse_all(part.op.location for part in parts))
        self.made.add(made)
        if fusion.shared:
            made.attributes[SHARED] = ArrayAttr(map(StringAttr, fusion.shared))
        ends = [memref.DeallocOp.build(operands=[op.results[0]]) for op in outside]
        for end, alloc in zip(ends, outside, strict=True):
            end.location = alloc.location
        return [*outside, made, *ends]

    def _copied(
        self, buffer: SSAValue, copies: dict[SSAValue, SSAValue], inside: list[Operation], outside: list[Operation]
    ) -> SSAValue:
        """A buffer with the same number everywhere, for one fusion alone."""
        if buffer not in copies:
            op = self.splats[buffer]
            operands = {
                operand: self._copied(operand, copies, inside, outside)
                for operand in op.inputs
                if operand in self.splats
            }
            assert isinstance(buffer.owner, memref.AllocOp)
            alloc = buffer.owner.clone()
            alloc.memref.name_hint = buffer.name_hint
            copies[buffer] = alloc.memref
            outside.append(alloc)
            inside.append(op.clone({**operands, buffer: alloc.memref}))
        return copies[buffer]


class _BlockFusion:
    """One block: its clusters, and the reasons why pairs of them are not fused."""

    def __init__(self, function: _FunctionFusion, block: Block) -> None:
        self.function = function
        self.fuse = function.fuse
        self.block = block
        ops = list(block.ops)
        self.terminator = ops.pop()
        self.graph = FusionGraph(ops)
        splats = set(function.splats.values())
        self.parts = {
            number: function.parts[op] for number, op in enumerate(ops) if op in function.parts and op not in splats
        }
        for number, part in self.parts.items():
            part.position = number
        self.groups = {number: Group([part], function.sizes) for number, part in self.parts.items()}
        writers = {buffer: number for number, part in self.parts.items() for buffer in part.writes}
        self.edges = [
            (writers[buffer], number)
            for number, part in self.parts.items()
            for buffer in part.reads
            if buffer in writers
        ]
        self.refused = dict[tuple[int, int], tuple[tuple[int, int], str]]()

    def run(self) -> None:
        while any([self._try(*edge) for edge in reversed(self.edges)]):
            pass
        self._remark()
        if self.fuse.horizontal:
            self._join_unrelated()
        ordered = list[Operation]()
        late = {cluster for cluster in self.graph.in_order() if self._is_of_arguments(cluster)}
        for cluster in list(self.graph.in_late_order(late)):
            if cluster in self.parts:
                ordered += self._made(list(self.groups[cluster].parts))
            else:
                ordered.append(self.graph.ops[cluster])
        for op in ordered:
            if op.parent is not None:
                op.detach()
        Rewriter.insert_op(ordered, InsertPoint.before(self.terminator))

    def _is_of_arguments(self, cluster: int) -> bool:
        """Whether a cluster reads arguments only, and writes none: it may then be placed just before its first use."""
        if (group := self.groups.get(cluster)) is None:
            return False
        given = any(isinstance(buffer, BlockArgument) for buffer in group.writer)
        return bool(group.reads) and not given and all(isinstance(buffer, BlockArgument) for buffer in group.reads)

    # --------------------------------------------------------------------------------------------------------- clusters

    def _try(self, producer: int, consumer: int, *, connected: bool = True) -> bool:
        """Joins the clusters of two ops if that is allowed; else records why not."""
        a, b = self.graph.cluster(producer), self.graph.cluster(consumer)
        if a == b:
            return False
        state = (len(self.groups[a].part_of), len(self.groups[b].part_of))
        if (before := self.refused.get((a, b))) is not None and before[0] == state:
            return False
        joined = self._joined(a, b, connected=connected)
        if isinstance(joined, str):
            self.refused[a, b] = (state, joined)
            return False
        cluster = self.graph.join(a, b)
        joined.settle()
        self.groups[cluster] = joined
        return True

    def _joined(self, a: int, b: int, *, connected: bool) -> Group | str:
        """The group of two clusters, or why they are not one kernel."""
        between = "an op that must run between them reads the one and is read by the other"
        if not connected and not self.graph.can_join(a, b):
            return between
        joined = Group.of_two(self.groups[a], self.groups[b])
        verdict = self.fuse.judge(joined, connected=connected)
        if isinstance(verdict, str):
            return verdict
        return joined if self.graph.can_join(a, b) else between

    def _join_unrelated(self) -> None:
        """Joins clusters of equally many elements; not large ones, which would only need their memory at the same time.

        Each is tried with the next NEAR ones, so that the time does not grow with the square of a program's kernels.
        """
        alike = dict[Size, list[int]]()
        for cluster in list(self.graph.in_order()):
            if cluster in self.parts:
                group = self.groups[cluster]
                count = group.count(group.dominant())
                if any(part.opcode not in RESHAPES for part in group.parts) and (count.value or 0) < LARGE:
                    alike.setdefault(count, []).append(cluster)
        for clusters in alike.values():
            for number, first in enumerate(clusters):
                for second in clusters[number + 1 : number + 1 + NEAR]:
                    self._try(first, second, connected=False)

    def _remark(self) -> None:
        """Remarks for each pair of neighbours why they are two kernels."""
        said = set[tuple[int, int]]()
        for producer, consumer in self.edges:
            pair = self.graph.cluster(producer), self.graph.cluster(consumer)
            if pair[0] != pair[1] and pair not in said and pair in self.refused:
                said.add(pair)
                part, other = self.parts[consumer], self.parts[producer]
                self.fuse.skip(part.op, f"not fused with {other.name}, which it reads: {self.refused[pair][1]}")

    # ---------------------------------------------------------------------------------------------------------- fusions

    def _made(self, parts: list[FusibleOp]) -> list[Operation]:
        """The ops for a cluster: a fusion, and reshapes that are second names before and behind it."""
        before, behind = list[FusibleOp](), list[FusibleOp]()
        while (found := self._second_name(parts)) is not None:
            part, is_before = found
            parts.remove(part)
            if is_before:
                before.append(part)
            else:
                behind.insert(0, part)
        if all(part.opcode in RESHAPES for part in parts) and not _are_of_others(parts):
            made = [part.op for part in parts]
        else:
            verdict = self.fuse.judge(Group(parts, self.function.sizes))
            assert isinstance(verdict, Fusion), verdict
            made = self.function.build(parts, verdict)
        return [*(part.op for part in before), *made, *(part.op for part in behind)]

    def _second_name(self, parts: Sequence[FusibleOp]) -> tuple[FusibleOp, bool] | None:
        """A reshape that would write a copy of an existing array, and whether it comes before the rest; None if each is needed."""
        if len(parts) == 1:
            return None
        group = Group(parts, self.function.sizes)
        read = {other for found in group.reads_inside.values() for other in found}
        for part in reversed(group.results):
            is_before = not group.reads_inside[part]
            if part.opcode not in RESHAPES or not (is_before or part not in read) or not _may_be_a_name(part.op):
                continue
            rest = [other for other in parts if other is not part]
            if isinstance(self.fuse.judge(Group(rest, self.function.sizes)), Fusion):
                return part, is_before
        return None


def _may_be_a_name(op: BufferOp) -> bool:
    """Whether `disc-lower-to-buffer-alias` can make a reshape a second name of its operand's buffer."""
    if not any(leaves_the_block(use) for use in uses_of(op.outputs[0])):
        return True
    return _is_ours(op.inputs[0], op.parent)


def _are_of_others(parts: Sequence[FusibleOp]) -> bool:
    """Whether reshapes of a buffer that the block does not own are given away: then they need a kernel, and copies a library call."""
    given = any(leaves_the_block(use) for part in parts for use in part.uses)
    is_shaped = any(part.opcode != "copy" for part in parts)
    return given and is_shaped and not _is_ours(parts[0].reads[0], parts[0].op.parent)


def _is_ours(buffer: SSAValue, block: Block | None) -> bool:
    """Whether a block allocates a buffer, frees it, and writes more than a constant into it."""
    if not isinstance(buffer.owner, memref.AllocOp) or buffer.owner.parent is not block:
        return False
    return not any(leaves_the_block(use) or use.operation.name == "lmhlo.constant" for use in uses_of(buffer))


def _blocks(function: func.FuncOp) -> Iterator[Block]:
    """The blocks of a function and of the regions inside, except those of fusions, outer ones first."""
    for op in function.walk():
        if not isinstance(op, FusionOp):
            for region in op.regions:
                yield from region.blocks


def _buffer_ops(function: func.FuncOp) -> Iterator[BufferOp]:
    """The ops on buffers outside of fusions, outer ones before the ops inside of them."""
    for op in function.walk():
        if isinstance(op, BufferOp) and not isinstance(op.parent_op(), FusionOp):
            yield op


def _frees_last(function: func.FuncOp) -> None:
    """Moves deallocations to the end of their block, so that none is between ops that are fused."""
    for block in _blocks(function):
        if block.last_op is None:
            continue
        for op in list(block.ops):
            if isinstance(op, memref.DeallocOp):
                op.detach()
                Rewriter.insert_op(op, InsertPoint.before(block.last_op))


def _dead(function: func.FuncOp) -> set[Operation]:
    """The ops whose results have no readers except other dead ops."""
    dead = set[Operation]()
    for op in reversed(list(_buffer_ops(function))):
        users = [use.operation for buffer in op.outputs for use in uses_of_elements(buffer)]
        is_ours = all(isinstance(buffer.owner, memref.AllocOp) for buffer in op.outputs)
        if op.outputs and is_ours and all(user is op or user in dead for user in users):
            dead.add(op)
    return dead


SHARED_BYTES = 8192
"""Shared memory of a block for its rows' results."""


def stitch_rules(group: Group, most_buffers: int) -> Verdict:
    """A fusion of kind kStitch, or why not."""
    if (why := too_large(group, most_buffers) or updated_beside_others(group)) is not None:
        return why
    if any(part.reduces == COLUMN for part in group.reductions):
        return "a reduction of columns needs all rows, which no one block has"
    by_row = [*group.reductions, *group.scans]
    rows, columns = matrix_of(group, by_row[0])
    for part in by_row:
        if len(part.writes) > 1:
            return f"the reduction {part.name} gives several arrays"
        if matrix_of(group, part) != (rows, columns):
            first = by_row[0].name
            return f"the rows of {part.name} are not known to be those of {first}: {rows} x {columns}"
    needed = sum((dtype_of(tensor_of(part.writes[0].type).element_type).bits + 7) // 8 for part in group.reductions)
    if needed > SHARED_BYTES:
        return f"a row gives {needed} bytes, a block keeps {SHARED_BYTES}"
    found = _Rows(group, rows, columns)
    for part in group.parts:
        if (why := found.why_not(part)) is not None:
            return why
    for part in group.results:
        if not found.is_regular(part):
            return f"the result {part.name} has neither a row's element nor one for each of its columns"
    return Fusion(STITCH, tuple(part.name for part in group.reductions))


class _Rows:
    """Which ops of a group depend on a reduction, and whether they stay in its row."""

    def __init__(self, group: Group, rows: Size, columns: Size) -> None:
        self.group = group
        self.rows, self.columns = rows, columns
        self.dependent = set[FusibleOp]()
        for part in group.parts:
            if part.reduces or part.scans or any(other in self.dependent for other in group.reads_inside[part]):
                self.dependent.add(part)

    def is_regular(self, part: FusibleOp) -> bool:
        count = self.group.sizes.elements(part.writes[0])
        return count in (self.rows, self.rows * self.columns)

    def why_not(self, part: FusibleOp) -> str | None:
        """Why an op that depends on a reduction leaves its row; None if it stays."""
        before = [other for other in self.group.reads_inside[part] if other in self.dependent]
        if part.reduces or part.scans:
            starts = [self.group.writer[buffer] for buffer in part.reads[1:] if buffer in self.group.writer]
            is_known = self.dependent.isdisjoint(starts)
            return None if is_known else f"the start of {part.name} follows from another reduction"
        if not before:
            return None
        if not self.is_regular(part):
            return f"{part.name} is not one element a row or one for each column"
        sizes = self.group.sizes
        if part.is_elementwise or part.opcode in RESHAPES:
            keeps = all(sizes.same_count(other.writes[0], part.writes[0]) for other in before)
        elif part.opcode in BROADCASTS:
            keeps = self._stays_in_row(part)
        else:
            keeps = False
        return None if keeps else f"{part.name} ({part.opcode}) moves what a row gave out of its row"

    def _stays_in_row(self, part: FusibleOp) -> bool:
        """Whether a broadcast gives each element of a row the row's number, or only adds dimensions of size 1."""
        given, wanted = self.group.sizes.of(part.reads[0]), self.group.sizes.of(part.writes[0])
        along = part.dimensions
        if list(along) != sorted(along):
            return False
        if all(given[along.index(dim)] == size if dim in along else size == 1 for dim, size in enumerate(wanted)):
            return True
        return any(
            product(wanted[:split]) == self.rows
            and product(wanted[split:]) == self.columns
            and all(given[i] == wanted[dim] for i, dim in enumerate(along) if dim < split)
            and all(given[i] == 1 for i, dim in enumerate(along) if dim >= split)
            and all(dim in along or wanted[dim] == 1 for dim in range(split))
            for split in range(len(wanted) + 1)
        )
