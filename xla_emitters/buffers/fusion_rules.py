"""Rules for which ops on buffers can be fused into one kernel.

    kLoop             elementwise ops, moves of elements and bitcasts between widths, one element of each result a thread
    kRowReduction     some result is a reduction of the rows of a matrix, and each element is read once
    kColReduction     the same for columns
    kStitch           as kRowReduction, and a row's results are read again in its block: `stitch_rules`

A set of ops is a fusion if
  * it reads and writes at most 64 arrays of the device in total: parameters of a kernel are limited;
  * its results, the arrays that are used outside, have equally many elements, where a reduction counts as its input, and two
    reductions read matrices of one shape;
  * a thread computes no op of it at more than 15 places (`Group.repeated`): shifts of shifts would be computed again and again;
  * no op in it reads the result of a reduction in it (except kStitch);
  * it does not reduce rows and columns (option `mix_reductions`: the columns then by atomic additions, as the seed's table has it);
  * no result of it is a transpose where it reduces columns.

An op whose value is one number everywhere (`is_splat`: a constant of equal elements, a single element from the host, and values computed
from these alone) is copied into each fusion that reads it, and is never a result of a fusion with other ops. Transposes of matrices, and
of three dimensions, are kernels of their own (option `transposes`): they need tiles. Ops on the host are in no fusion.
Source: seed document, "DhloFuseOnBuffer"; docs/reference/4 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

from xdsl.dialects import memref
from xdsl.ir import SSAValue, Use

from xla_emitters.buffers.buffer_sizes import BufferSizes, product
from xla_emitters.buffers.buffer_uses import asks_size, frees, updated_in_place
from xla_emitters.dialects.hlo.base import integers, opcode_of
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.elementwise import BitcastConvertOp, is_elementwise
from xla_emitters.dialects.hlo.placement import GPU, HOST
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp, space_of, tensor_of
from xla_emitters.dtypes import Kind
from xla_emitters.graph.places import SHAPE_OPERANDS
from xla_emitters.shapes import Size

LOOP, ROW, COLUMN, STITCH = "kLoop", "kRowReduction", "kColReduction", "kStitch"
MOST_BUFFERS = 64
MOST_PLACES = 15
"""Places at which one thread may compute an op: the limit of XLA's fusion_node_indexing_evaluation.cc for the code of an instruction."""
VECTOR = "disc.vector"
"""Attribute of a fusion: elements that a thread computes at once; it divides the number of elements, or of columns where rows are reduced.
Attribute of a loop in a kernel: its iterations are adjacent elements."""

RESHAPES = frozenset(("copy", "reshape", "dynamic-reshape"))
"""Moves that keep the row-major order of all elements: alone they need no kernel."""
BROADCASTS = frozenset(("broadcast", "dynamic-broadcast-in-dim"))
MOVES = frozenset(
    (
        *RESHAPES,
        *BROADCASTS,
        *("concatenate", "dynamic-gather", "dynamic-iota", "dynamic-pad", "dynamic-slice", "dynamic-update-slice"),
        *("gather", "iota", "pad", "real-dynamic-slice", "reverse", "slice", "transpose"),
    )
)
"""Ops whose elements are elements of operands, or indices."""


class Part:
    """An op that can be in a fusion, and the facts that the rules need.

    opcode   of `hlo`
    reads    buffers whose elements it needs: not lists of sizes, nor buffers that it updates in place
    updated  buffers that it updates in place
    reduces  ROW or COLUMN for a reduction
    """

    def __init__(self, op: BufferOp) -> None:
        self.op = op
        self.opcode = opcode_of(op.HLO)
        count = len(op.inputs)
        sizes = range(count)[SHAPE_OPERANDS.get(self.opcode, slice(0, 0))]
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
        return self.opcode not in RESHAPES and is_elementwise(self.op.as_hlo())

    @cached_property
    def reduces(self) -> str | None:
        if self.opcode != "reduce":
            return None
        reduced = integers(self.op.properties["dimensions"])
        return COLUMN if reduced == (0,) and tensor_of(self.reads[0].type).get_num_dims() == 2 else ROW

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The `dimensions` of a broadcast or a transpose."""
        return integers(self.op.properties["dimensions"])

    @property
    def lead(self) -> SSAValue:
        """The array whose elements are distributed over threads: the operand of a reduction or an update in place, else the result."""
        return self.reads[0] if self.reduces or self.updated else self.writes[0]


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
    if opcode in MOVES or is_elementwise(made):
        return None
    if isinstance(made, BitcastConvertOp):
        kinds = {element_of(made.operands[0]).kind, element_of(made.result).kind}
        return None if kinds <= {Kind.FLOAT, Kind.SIGNED, Kind.UNSIGNED} else "no kernel has the bits of its elements"
    return "no kernel of ours computes it"


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


def spreads(part: Part) -> bool:
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

    inside    the ops that write what others in the group read
    results   the ops with an array that is used outside
    """

    def __init__(self, parts: Sequence[Part], sizes: BufferSizes) -> None:
        self.parts = parts
        self.sizes = sizes
        self.writer = {buffer: part for part in parts for buffer in part.writes}
        inside = {part.op for part in parts}
        self.results = [part for part in parts if any(use.operation not in inside for use in part.uses)]
        self.reductions = [part for part in parts if part.reduces]

    @cached_property
    def reads_inside(self) -> dict[Part, list[Part]]:
        """For each op, the ops of the group whose results it reads."""
        return {part: [self.writer[b] for b in part.reads if b in self.writer] for part in self.parts}

    @cached_property
    def buffers(self) -> int:
        """Number of device arrays that the group reads from outside, or writes for ops outside."""
        read = {buffer for part in self.parts for buffer in part.reads if buffer not in self.writer}
        return len(read) + sum(len(part.writes) for part in self.results)

    def repeated(self) -> Part | None:
        """An op whose elements one thread computes at more than `MOST_PLACES` places, whatever the other threads do; None if there is none.

        An op is computed where its readers are, and a reader that moves elements reads at places of its own: two shifts of shifted sums of
        five elements read at 25. Elementwise readers of one place share it, and so do equal broadcasts.
        """
        numbers = dict[object, int]()
        places: dict[Part, set[int]] = {part: {0} for part in self.results}
        for part in reversed(self.parts):
            own = places.get(part, {0})
            if len(own) > MOST_PLACES:
                return part
            for operand, buffer in enumerate(part.reads):
                if (other := self.writer.get(buffer)) is None:
                    continue
                there = places.setdefault(other, set())
                if part.is_elementwise or part.reduces:
                    there |= own if part.is_elementwise else {0}
                    continue
                moved = (BROADCASTS, part.dimensions) if part.opcode in BROADCASTS else (part, operand)
                there.update(numbers.setdefault((moved, place), len(numbers) + 1) for place in own)
        return None

    def rereads(self) -> list[Part]:
        """The reductions whose results an op of the group reads."""
        read = {other for found in self.reads_inside.values() for other in found}
        return [part for part in self.reductions if part in read]

    def count(self, part: Part) -> Size:
        return self.sizes.elements(part.lead)

    def shape(self, part: Part) -> tuple[Size, ...]:
        return self.sizes.of(part.lead)

    def dominant(self) -> Part:
        """The last reduction of rows, else of columns, else the last op: the kernel is named after it."""
        by_kind = [[part for part in self.parts if part.reduces == kind] for kind in (ROW, COLUMN)]
        return next((found for found in by_kind if found), list(self.parts))[-1]


def base_rules(group: Group, most_buffers: int, *, mix_reductions: bool) -> Verdict:
    """The rules of the file's head, without kStitch."""
    rows = [part for part in group.reductions if part.reduces == ROW]
    columns = [part for part in group.reductions if part.reduces == COLUMN]
    if (why := too_many_buffers(group, most_buffers) or updated_beside_others(group)) is not None:
        return why
    if rows and columns and not mix_reductions:
        return "one kernel does not reduce rows and columns"
    if read := group.rereads():
        return f"the reduction {read[0].name} would have a reader inside"
    if columns and any(part.opcode == "transpose" for part in group.results):
        return "a reduction of columns has no transpose beside it"
    results = group.results or list(group.parts[-1:])
    for part in results:
        other = results[0]
        if part.reduces and other.reduces and group.shape(part) != group.shape(other):
            return f"the reductions {other.name} and {part.name} read matrices that are not known to have one shape"
        if group.count(part) != group.count(other):
            return f"the results {other.name} and {part.name} are not known to have as many elements"
    return Fusion(ROW if rows else COLUMN if columns else LOOP)


def updated_beside_others(group: Group) -> str | None:
    """Why an update in place is not in this kernel: its threads would read elements that others write, or it would not be a plain loop."""
    for part in group.parts:
        if part.updated and group.reductions:
            return f"{part.name} updates in place, beside a reduction"
        for other in group.parts if part.updated else ():
            if other is not part and any(buffer in part.updated for buffer in (*other.reads, *other.writes)):
                return f"{other.name} uses the array that {part.name} updates in place"
    return None


def too_many_buffers(group: Group, most: int) -> str | None:
    return f"it would take {group.buffers} arrays, a kernel has at most {most}" if group.buffers > most else None


def matrix_of(group: Group, part: Part) -> tuple[Size, Size]:
    """Rows and columns of the operand of a reduction of rows."""
    shape = group.shape(part)
    return product(shape[:-1]), shape[-1]
