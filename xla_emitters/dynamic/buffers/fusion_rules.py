"""Rules for which ops on buffers can be fused into one kernel.

    kLoop             elementwise ops, `map`, moves of elements and bitcasts between widths, one element of each result a thread
    kRowReduction     some result is a reduction of the rows of a matrix, and each element is read once
    kColReduction     the same for columns
    kStitch           as kRowReduction, and a row's results are read again in its block: `stitch_rules`

A set of ops is a fusion if
  * it reads and writes at most 64 arrays of the device in total: parameters of a kernel are limited;
  * it has at most 1024 ops, of which a function such as sine counts as 16;
  * its results, the arrays that are used outside, have equally many elements, where a reduction counts as its input, and two
    reductions read matrices of one shape;
  * a thread computes no op of it at more than 15 places (`Group.repeated`): shifts of shifts would be computed again and again;
  * no op in it reads the result of a reduction in it (except kStitch);
  * it does not reduce rows and columns (option `mix_reductions`: the columns then by atomic additions, as the seed's table has it);
  * no result of it is a transpose where it reduces columns.

An op whose value is one number everywhere (`is_splat`: a constant of equal elements, a single element from the host, and values computed
from these alone) is copied into each fusion that reads it, and is never a result of a fusion with other ops. Transposes of matrices, and
of three dimensions, that move the last one need tiles: only elementwise ops that depend on them share their kernel (`tiled_transposes`;
option `transposes`: any). Ops on the host are in no fusion.
Source: seed document, "DhloFuseOnBuffer"; docs/reference/4 3.3.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation, SSAValue, Use

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.base import HloOp, integers, opcode_of
from xla_emitters.dialects.hlo.called import MapOp, has_scalar_code, needed_by
from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.dialects.hlo.constant import IotaOp, is_dense, undense
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicIotaOp, SetDimensionSizeOp
from xla_emitters.dialects.hlo.elementwise import BitcastConvertOp, CopyOp, is_elementwise
from xla_emitters.dialects.hlo.placement import GPU, HOST, TransferOp
from xla_emitters.dialects.hlo.reductions import ReduceWindowOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, space_of, tensor_of
from xla_emitters.dialects.mlir import memref
from xla_emitters.dialects.shuffles import can_shuffle
from xla_emitters.dtypes import Kind
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes, product
from xla_emitters.dynamic.buffers.buffer_uses import asks_size, frees, updated_in_place
from xla_emitters.dynamic.buffers.tiled_transposes import moves_last, tiled_transpose
from xla_emitters.functions import BY_OPCODE, CodeSize

ROW_SCHEDULE = "disc.row_schedule"
"""Attribute of a fusion: 1, a block per row, 2, a warp per row, or 3, eight lanes per row."""
MIDDLE = "kMiddleReduction"
"""The kind of a fusion of one transpose and the reductions of rows that read it, for a CPU."""


def middle_of(order: Sequence[int]) -> tuple[int, int] | None:
    """The dimensions [first, end) that a transpose moves from the middle of an array to its end; None for another order.

    >>> middle_of((0, 3, 1, 2))
    (1, 3)
    """
    first = next((place for place, dim in enumerate(order) if place != dim), 0)
    end = order[first] if order else 0
    moved = [*range(first), *range(end, len(order)), *range(first, end)]
    return (first, end) if 0 < first < end and list(order) == moved else None


LOOP, ROW, COLUMN, STITCH = "kLoop", "kRowReduction", "kColReduction", "kStitch"
SINGLE = "kSingleOp"
"""The kind of a fusion of one op that has loops of its own (`disc-fuse-single-ops`)."""
MOST_BUFFERS = 64
MOST_PLACES = 15
"""Places at which one thread may compute an op: the limit of XLA's fusion_node_indexing_evaluation.cc for the code of an instruction."""
MOST_WORK = 1024
"""Limit on the ops of a kernel, where a function of more than an instruction or two counts as WORK: LLVM's time grows faster than the code,
and a chain of a thousand functions is no faster as one kernel than as twenty."""
WORK = 16
VECTOR = "disc.vector"
"""Attribute of a fusion: elements that a thread computes at once; it divides the number of elements, or of columns where rows are reduced.
Attribute of a loop in a kernel: its iterations are adjacent elements."""

RESHAPES = frozenset(("copy", "reshape", "dynamic-reshape"))
"""Moves that keep the row-major order of all elements: alone they need no kernel."""
BROADCASTS = frozenset(("broadcast", "dynamic-broadcast-in-dim"))


class FusibleOp:
    """An op that can be in a fusion, and the facts that the rules need.

    opcode   of `hlo`
    reads    buffers whose elements it needs: not lists of sizes, nor buffers that it updates in place
    updated  buffers that it updates in place
    reduces  ROW or COLUMN for a reduction
    position its number in its block, for the order of the parts of two groups
    """

    def __init__(self, op: BufferOp) -> None:
        self.op = op
        self.position = 0
        self.opcode = opcode_of(op.HLO)
        count = len(op.inputs)
        sizes = range(count)[op.HLO.NUMBERS]
        self.updated = updated_in_place(op)
        read = (op.inputs[i] for i in range(count) if i not in sizes)
        self.reads: tuple[SSAValue, ...] = tuple(buffer for buffer in read if buffer not in self.updated)
        self.writes: tuple[SSAValue, ...] = tuple(op.outputs)

    @property
    def uses(self) -> list[Use]:
        """The uses of the elements that it writes."""
        return [use for buffer in self.writes for use in uses_of_elements(buffer)]

    @property
    def name(self) -> str:
        return self.op.instruction_name

    @cached_property
    def is_elementwise(self) -> bool:
        return self.opcode == "map" or (self.opcode not in RESHAPES and is_elementwise(self.op.as_hlo()))

    @property
    def work(self) -> int:
        """What it counts of MOST_WORK."""
        if self.opcode == "map":
            return sum(_work_of(op.opcode) for op in needed_by(computation_of(self.op)) if isinstance(op, HloOp))
        return _work_of(self.opcode)

    @cached_property
    def reduces(self) -> str | None:
        if self.opcode != "reduce":
            return None
        reduced = integers(self.op.properties["dimensions"])
        return COLUMN if reduced == (0,) and tensor_of(self.reads[0].type).get_num_dims() == 2 else ROW

    @cached_property
    def scans(self) -> bool:
        """Whether it scans the rows of an array."""
        return scan_of_rows(self.op) is not None

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The `dimensions` of a broadcast or a transpose."""
        return integers(self.op.properties["dimensions"])

    @cached_property
    def needs_tiles(self) -> bool:
        """Whether it is a transpose of a matrix, or of three dimensions, that moves the last one."""
        return self.opcode == "transpose" and len(self.dimensions) in (2, 3) and moves_last(self.op)

    @cached_property
    def moves(self) -> bool:
        """Whether it reads elements at other places than its own."""
        return not self.is_elementwise and not self.reduces

    @property
    def lead(self) -> SSAValue:
        """The array whose elements are distributed over threads: the operand of a reduction or an update in place, else the result."""
        return self.reads[0] if self.reduces or self.updated else self.writes[0]


def _work_of(opcode: str) -> int:
    row = BY_OPCODE.get(opcode)
    return 1 if row is None or row.size is CodeSize.SMALL else WORK


def cone_of(fusion: FusionOp, values: Iterable[SSAValue], given: AbstractSet[SSAValue] = frozenset()) -> set[BufferOp]:
    """The ops of a fusion that compute these values, where the given ones exist."""
    found, wanted = set[BufferOp](), set(values) - given
    for op in reversed(fusion.ops):
        if not wanted.isdisjoint(op.outputs):
            found.add(op)
            wanted |= {*op.inputs} - given
    return found


def computation_of(op: BufferOp) -> ComputationOp:
    """The computation that an op calls for elements."""
    called = op.properties["to_apply"]
    assert isinstance(called, SymbolRefAttr)
    return find_computation(op, called)


def scan_of_rows(op: BufferOp) -> str | None:
    """PREFIX or SUFFIX for an op that scans rows of known length, whose elements threads can exchange; None for any other."""
    if op.HLO is not ReduceWindowOp or len(op.outputs) != 1 or not tensor_of(op.inputs[0].type).get_shape():
        return None
    from xla_emitters.graph.scans import PREFIX, commutes, scan_along  # imported here: few programs scan

    hero = op.as_hlo()
    assert isinstance(hero, ReduceWindowOp)
    way, body = scan_along(hero, tensor_of(op.inputs[0].type).get_num_dims() - 1), computation_of(op)
    if not has_scalar_code(body) or not can_shuffle(element_of(hero.operands[0]).storage_type):
        return None
    return way if way == PREFIX or commutes(body) else None


def uses_of_elements(buffer: SSAValue) -> list[Use]:
    """The uses that read a buffer's elements, or pass the buffer on."""
    return [use for use in buffer.uses if not frees(use) and not asks_size(use)]


def why_not_fusible(op: BufferOp) -> str | None:
    """Why no kernel computes an op; None if one does."""
    opcode = opcode_of(op.HLO)
    if any(space_of(output.type) != GPU for output in op.outputs) or not op.outputs:
        return "it runs on the host"
    updated = updated_in_place(op)
    if not all(isinstance(output.owner, memref.AllocOp) or output in updated for output in op.outputs):
        return "its result is not allocated here"
    if updated and opcode not in ("dynamic-update-slice", "scatter"):
        return "it overwrites what it reads"
    if opcode == "copy" and space_of(op.inputs[0].type) != GPU:
        return "it moves data between memories"
    if opcode == "reduce":
        rank = tensor_of(op.inputs[0].type).get_num_dims()
        reduced = integers(op.properties["dimensions"])
        is_matrix = rank == 2 and len(reduced) == 1
        return None if is_matrix or (rank, reduced) == (1, (0,)) else "it reduces neither rows nor columns of a matrix"
    made = op.as_hlo()
    if moves(made) or is_elementwise(made):
        return None
    if isinstance(made, MapOp):
        return None if has_scalar_code(computation_of(op)) else "its computation is not of scalars alone"
    if isinstance(made, BitcastConvertOp):
        kinds = {element_of(made.operands[0]).kind, element_of(made.result).kind}
        return None if kinds <= {Kind.FLOAT, Kind.SIGNED, Kind.UNSIGNED} else "no kernel has the bits of its elements"
    return "it is not computed element by element"


def moves(op: HloOp) -> bool:
    """Whether a kernel has the elements of `op`, which are elements of operands, or indices."""
    if isinstance(op, BitcastOp | SetDimensionSizeOp | TransferOp):
        return False
    return bool(op.moved_operands) or isinstance(op, IotaOp | DynamicIotaOp | CopyOp)


def is_splat_source(op: BufferOp) -> bool:
    """Whether an op is a constant of equal elements, or one element of the host's memory."""
    opcode = opcode_of(op.HLO)
    if opcode == "h2d":
        return prod(tensor_of(op.outputs[0].type).get_shape()) == 1 and space_of(op.inputs[0].type) == HOST
    if opcode != "constant" or space_of(op.outputs[0].type) != GPU:
        return False
    value = op.properties["value"]
    if not is_dense(value):
        return False
    flat = undense(value).reshape(-1)
    return flat.size > 0 and flat.tobytes() == flat[:1].tobytes() * flat.size


def spreads(part: FusibleOp) -> bool:
    """Whether an op gives one number everywhere if its operands do."""
    return part.is_elementwise or part.opcode in RESHAPES or part.opcode in BROADCASTS


@dataclass(frozen=True)
class Fusion:
    """A set of ops that can be one kernel.

    kind    LOOP, ROW, COLUMN or STITCH
    shared  names of the reductions that are read again in their block
    """

    kind: str
    shared: tuple[str, ...] = ()


Verdict: TypeAlias = Fusion | str
"""A fusion, or the reason why there is none."""


class Group:
    """Ops that may become a fusion, in program order.

    part_of     op -> part
    writer      buffer -> the part that writes it
    reads       the buffers that are read from outside
    results     the parts with an array that is used outside
    reductions  the parts that reduce; `rereads` those whose results a part reads
    scans       the parts that scan rows
    updates     the parts that update in place
    transposes  the parts that move the last dimension of two or three
    moving      how many arrays parts read at other places than theirs
    work        of all parts

    A group of two (`of_two`), as is judged for each pair of neighbours, costs as much as its halves have outside, not as their ops. If the
    two become one, `settle` moves the ops of the smaller half to the other, so that n ops are moved n log n times.
    """

    def __init__(self, parts: Sequence[FusibleOp], sizes: BufferSizes) -> None:
        self._parts: list[FusibleOp] | None = list(parts)
        self.sizes = sizes
        self.part_of: Mapping[Operation, FusibleOp] = {part.op: part for part in parts}
        self.writer: Mapping[SSAValue, FusibleOp] = {buffer: part for part in parts for buffer in part.writes}
        self.reads = dict.fromkeys(buffer for part in parts for buffer in part.reads if buffer not in self.writer)
        self.results = [part for part in parts if self._is_used_outside(part)]
        self.reductions = [part for part in parts if part.reduces]
        self.scans = [part for part in parts if part.scans]
        read = {buffer for part in parts for buffer in part.reads}
        self.rereads = [part for part in self.reductions if not read.isdisjoint(part.writes)]
        self.updates = [part for part in parts if part.updated]
        self.transposes = [part for part in parts if part.needs_tiles]
        self.moving = sum(len(part.reads) for part in parts if part.moves)
        self.work = sum(part.work for part in parts)
        self._halves: tuple[Group, Group] | None = None

    @staticmethod
    def of_two(a: Group, b: Group) -> Group:
        """The parts of two groups of one block."""
        made = Group([], a.sizes)
        made._parts, made._halves = None, (a, b)
        made.part_of = ChainMap(cast(Any, a.part_of), cast(Any, b.part_of))
        made.writer = ChainMap(cast(Any, a.writer), cast(Any, b.writer))
        made.reads = dict.fromkeys(buffer for half in (a, b) for buffer in half.reads if buffer not in made.writer)
        made.results = [part for part in _in_order(a.results, b.results) if made._is_used_outside(part)]
        made.reductions, made.scans = _in_order(a.reductions, b.reductions), _in_order(a.scans, b.scans)
        again = [
            part for one, two in ((a, b), (b, a)) for part in one.reductions if any(w in two.reads for w in part.writes)
        ]
        made.rereads = _in_order(
            [*a.rereads, *b.rereads], [part for part in again if part not in (*a.rereads, *b.rereads)]
        )
        made.updates = _in_order(a.updates, b.updates)
        made.transposes = _in_order(a.transposes, b.transposes)
        made.moving, made.work = a.moving + b.moving, a.work + b.work
        return made

    def settle(self) -> None:
        """Makes a group of two independent of its halves, which must not be used any more."""
        assert self._halves is not None
        large, small = sorted(self._halves, key=lambda half: -len(half.part_of))
        cast(dict[Operation, FusibleOp], large.part_of).update(small.part_of)
        cast(dict[SSAValue, FusibleOp], large.writer).update(small.writer)
        self.part_of, self.writer, self._parts, self._halves = large.part_of, large.writer, None, None

    @property
    def parts(self) -> Sequence[FusibleOp]:
        if self._parts is None:
            self._parts = sorted(self.part_of.values(), key=lambda part: part.position)
        return self._parts

    def _is_used_outside(self, part: FusibleOp) -> bool:
        return any(use.operation not in self.part_of for use in part.uses)

    @cached_property
    def reads_inside(self) -> dict[FusibleOp, list[FusibleOp]]:
        """For each op, the ops of the group whose results it reads."""
        return {part: [self.writer[b] for b in part.reads if b in self.writer] for part in self.parts}

    @property
    def buffers(self) -> int:
        """Number of device arrays that the group reads from outside, or writes for ops outside."""
        return len(self.reads) + sum(len(part.writes) for part in self.results)

    def repeated(self) -> FusibleOp | None:
        """An op whose elements one thread computes at more than `MOST_PLACES` places, whatever the other threads do; None if there is none.

        An op is computed where its readers are, and a reader that moves elements reads at places of its own: two shifts of shifted sums of
        five elements read at 25. Elementwise readers of one place share it, and so do equal broadcasts.
        """
        if 1 << self.moving <= MOST_PLACES:
            return None  # a place is a choice of such reads, one after the other
        numbers = dict[object, int]()
        places: dict[FusibleOp, set[int]] = {part: {0} for part in self.results}
        for part in reversed(self.parts):
            own = places.get(part, {0})
            if len(own) > MOST_PLACES:
                return part
            for operand, buffer in enumerate(part.reads):
                if (other := self.writer.get(buffer)) is None:
                    continue
                there = places.setdefault(other, set())
                if not part.moves:
                    there |= own if part.is_elementwise else {0}
                    continue
                moved = (BROADCASTS, part.dimensions) if part.opcode in BROADCASTS else (part, operand)
                there.update(numbers.setdefault((moved, place), len(numbers) + 1) for place in own)
        return None

    def count(self, part: FusibleOp) -> Size:
        return self.sizes.elements(part.lead)

    def shape(self, part: FusibleOp) -> tuple[Size, ...]:
        return self.sizes.of(part.lead)

    def dominant(self) -> FusibleOp:
        """The last reduction of rows, else of columns, else the last op: the kernel is named after it."""
        by_kind = [[part for part in self.parts if part.reduces == kind] for kind in (ROW, COLUMN)]
        return next((found for found in by_kind if found), list(self.parts))[-1]


def _in_order(a: Sequence[FusibleOp], b: Sequence[FusibleOp]) -> list[FusibleOp]:
    """The parts of both, in program order."""
    return sorted((*a, *b), key=lambda part: part.position) if a and b else list(a or b)


def base_rules(group: Group, most_buffers: int, *, mix_reductions: bool) -> Verdict:
    """The rules of the file's head, without kStitch."""
    rows = [part for part in group.reductions if part.reduces == ROW]
    columns = [part for part in group.reductions if part.reduces == COLUMN]
    if (why := too_large(group, most_buffers) or updated_beside_others(group)) is not None:
        return why
    if rows and columns and not mix_reductions:
        return "one kernel does not reduce rows and columns"
    if group.scans:
        return f"{group.scans[0].name} scans rows, which threads hold in registers"
    if group.rereads:
        return f"the reduction {group.rereads[0].name} would have a reader inside"
    if columns and any(part.opcode == "transpose" for part in group.results):
        return "a reduction of columns has no transpose beside it"
    results = group.results or group.parts[-1:]
    for part in results:
        other = results[0]
        if part.reduces and other.reduces and group.shape(part) != group.shape(other):
            return f"the reductions {other.name} and {part.name} read matrices that are not known to have one shape"
        if group.count(part) != group.count(other):
            return f"the results {other.name} and {part.name} are not known to have as many elements"
    return Fusion(ROW if rows else COLUMN if columns else LOOP)


def beside_its_tiles(group: Group) -> str | None:
    """Why a transpose that needs tiles is not in this kernel: another op is not computed where the tiles are written."""
    if not group.transposes or len(group.part_of) == 1:
        return None
    if group.reductions or group.updates:
        return f"the transpose {group.transposes[0].name} is a kernel of its own"
    found = tiled_transpose([part.op for part in group.parts], [part.op for part in group.results])
    return (
        f"the transpose {group.transposes[0].name} is a kernel of its own: {found}" if isinstance(found, str) else None
    )


def updated_beside_others(group: Group) -> str | None:
    """Why an update in place is not in this kernel: its threads would read elements that others write, or it would not be a plain loop."""
    for part in group.updates:
        if group.reductions:
            return f"{part.name} updates in place, beside a reduction"
        for use in (use for buffer in part.updated for use in uses_of_elements(buffer)):
            other = group.part_of.get(use.operation)
            if (
                other is not None
                and other is not part
                and use.operation.operands[use.index] in (*other.reads, *other.writes)
            ):
                return f"{other.name} uses the array that {part.name} updates in place"
    return None


def too_large(group: Group, most: int) -> str | None:
    """Why a group of several ops is too large for one kernel."""
    if len(group.part_of) == 1:
        return None
    if group.buffers > most:
        return f"it would take {group.buffers} arrays, a kernel has at most {most}"
    if group.work > MOST_WORK:
        return f"its ops would count {group.work}, those of a kernel at most {MOST_WORK}"
    return None


def matrix_of(group: Group, part: FusibleOp) -> tuple[Size, Size]:
    """Rows and columns of the operand of a reduction of rows."""
    shape = group.shape(part)
    return product(shape[:-1]), shape[-1]
