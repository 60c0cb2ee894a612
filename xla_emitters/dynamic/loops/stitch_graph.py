"""Plan of a stitched fusion: in which round each op is computed (rounds are separated by row reductions), and which rows are kept.

    m = reduce maximum x         level 1          round 0   reads x                  gives m
    e = exp(x - broadcast m)     level 1          round 1   reads x, needs m         gives s
    s = reduce add e             level 2          round 2   reads x, needs m and s   writes y
    y = e / broadcast s          level 2

The level of an op is the length of the longest chain of reductions on which it depends. Operands of reductions and results of level n + 1
are computed in round n. Ops of level 0 are computed wherever an element needs them; those that other levels read, or a round writes, are
the *sources* of the rounds: arrays of the matrix's size, unless they are one number everywhere. A source that several
rounds read is *kept*, so that the buffers that it is computed from are read once.

A scan of rows ends a level, too. Its result is an array of the matrix's size, which threads keep from the round of its operand on.

A kept source may be replaced on the way: if all later rounds need only a more expensive value that a round computes from it, as
exp(x - m), that value is kept instead.

There are two choices of sources: as late as possible (x + mask, one row to keep), or as early as possible (x, from which two others are
computed). The one with fewer reads of memory is taken; if equal, the one that keeps fewer bytes.
Source: docs/reference/4 3.3; Zheng et al., "AStitch: enabling a new multi-dimensional optimization space for memory-intensive ML training
and inference on modern SIMT architectures" (ASPLOS 2022).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from xdsl.ir import Attribute, SSAValue

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, tensor_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes, product
from xla_emitters.dynamic.buffers.fusion_rules import scan_of_rows
from xla_emitters.dynamic.loops.combine import reduces_rows

BROADCASTS = frozenset(("hlo.broadcast", "hlo.dynamic_broadcast_in_dim"))
SAME_PLACE = frozenset(("hlo.copy", "hlo.reshape", "hlo.dynamic_reshape", "hlo.bitcast"))
"""Ops that keep the row-major order of elements, besides elementwise ones."""
CHEAP = frozenset(
    f"hlo.{opcode}"
    for opcode in (
        "abs",
        "add",
        "and",
        "compare",
        "convert",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "select",
        "subtract",
    )
)
"""Ops that cost no more than an access to shared memory."""


@dataclass(frozen=True, eq=False)
class StitchGraph:
    """The ops of one fusion.

    roots   those whose buffers are used outside
    """

    fusion: FusionOp
    roots: Sequence[BufferOp]

    @cached_property
    def ops(self) -> list[BufferOp]:
        return self.fusion.ops

    @cached_property
    def reductions(self) -> list[BufferOp]:
        return [op for op in self.ops if reduces_rows(op)]

    @cached_property
    def scans(self) -> dict[BufferOp, str]:
        """The ops that scan rows, and how."""
        ways = ((op, scan_of_rows(op)) for op in self.ops)
        return {op: way for op, way in ways if way is not None}

    def is_by_row(self, op: BufferOp) -> bool:
        """Whether an op needs a whole row: a reduction or a scan."""
        return op in self.scans or op in self.reductions

    @cached_property
    def writer(self) -> dict[SSAValue, BufferOp]:
        """The op of the fusion that writes a buffer."""
        return {buffer: op for op in self.ops for buffer in op.outputs}

    @cached_property
    def levels(self) -> dict[BufferOp, int]:
        """The level of each op."""
        found = dict[BufferOp, int]()
        for op in self.ops:
            before = (found[self.writer[buffer]] for buffer in op.inputs if buffer in self.writer)
            found[op] = max(before, default=0) + self.is_by_row(op)
        return found

    def level(self, buffer: SSAValue) -> int:
        return self.levels[self.writer[buffer]] if buffer in self.writer else 0

    @property
    def rounds(self) -> range:
        return range(max(self.levels.values()) + 1)

    # ------------------------------------------------------------------------------------------------------- shapes

    @cached_property
    def _sizes(self) -> BufferSizes:
        return BufferSizes()

    @cached_property
    def matrix(self) -> tuple[Size, ...]:
        """Rows and columns; a vector is one row."""
        sizes = self._sizes.of(next(op for op in self.ops if self.is_by_row(op)).inputs[0])
        return product(sizes[:-1]), sizes[-1]

    def is_full(self, buffer: SSAValue) -> bool:
        """Whether an array has the matrix's size; others have an element per row, or fewer."""
        if (known := self._full.get(buffer)) is None:
            is_reduced = buffer in self.writer and self.writer[buffer] in self.reductions
            known = self._full[buffer] = not is_reduced and self._sizes.elements(buffer) == product(self.matrix)
        return known

    @cached_property
    def _full(self) -> dict[SSAValue, bool]:
        """The answers of `is_full` so far: each walk over the graph asks again."""
        return {}

    @cached_property
    def most_bits(self) -> int:
        """The largest element width in bits of the arrays of the matrix's size that are read from memory or written to it."""
        read = {buffer for op in self.ops for buffer in op.inputs if buffer not in self.writer}
        arrays = [*read, *(buffer for root in self.roots for buffer in root.outputs)]
        full = [dtype_of(tensor_of(buffer.type).element_type).bits for buffer in arrays if self.is_full(buffer)]
        return max(full, default=32)

    def why_not(self, op: BufferOp) -> str | None:
        """Why an op is in no round; None for one with a value per row, or per element of the matrix, or that depends on no reduction."""
        (buffer,) = op.outputs
        if not self.levels[op] and op not in self.roots:
            return None
        if self.is_full(buffer) or self._sizes.elements(buffer) == self.matrix[0]:
            return None
        return f"{self._sizes.text(buffer)} is not known to be one element a row, or one for each element of the rows"

    def is_of_columns(self, buffer: SSAValue) -> bool:
        """Whether an array has the same elements in each row, like weights of a norm, for any number of rows."""
        pending, seen = [buffer], set[SSAValue]()
        while pending:
            buffer = pending.pop()
            op = self.writer.get(buffer)
            if op is None or not self.is_full(buffer):
                return False
            if op.HLO.name in BROADCASTS:
                if not self._repeats_a_row(op):
                    return False
            elif buffer not in seen:
                seen.add(buffer)
                inputs = [given for given in op.inputs if not self._is_one_number(given)]
                if not inputs or not _is_in_place(op):
                    return False
                pending += inputs
        return True

    def _repeats_a_row(self, broadcast: BufferOp) -> bool:
        source, result = self._sizes.of(broadcast.inputs[0]), self._sizes.of(broadcast.outputs[0])
        places = integers(broadcast.properties["dimensions"])
        is_last = len(places) > 0 and places[-1] == len(result) - 1 and source[-1] == result[-1] == self.matrix[1]
        return is_last and product(source) == source[-1]

    def _is_one_number(self, buffer: SSAValue) -> bool:
        """Whether all elements of an array are one number: a broadcast of a scalar."""
        op = self.writer.get(buffer)
        if op is None or op.HLO.name not in BROADCASTS:
            return False
        return self.level(buffer) == 0 and self._sizes.elements(op.inputs[0]).value == 1

    @cached_property
    def shared(self) -> list[SSAValue]:
        """The sources that are the same in each row."""
        return [buffer for buffer in dict.fromkeys(chain(*self.sources)) if self.is_of_columns(buffer)]

    # ------------------------------------------------------------------------------------------------------- rounds

    def reduced_in(self, number: int) -> list[BufferOp]:
        """The reductions whose operands are computed in a round."""
        return [op for op in self.reductions if self.levels[op] == number + 1]

    def scanned_in(self, number: int) -> list[BufferOp]:
        """The scans whose operands are computed in a round."""
        return [op for op in self.scans if self.levels[op] == number + 1]

    def written_in(self, number: int) -> list[BufferOp]:
        """The results of the matrix's size that are computed in a round."""
        return [
            op
            for op in self.roots
            if op not in self.reductions and self.levels[op] == number and self.is_full(op.outputs[0])
        ]

    def row_ops(self, number: int) -> list[BufferOp]:
        """The ops with one value per row, needed by reductions or results, that are known from a round on."""
        return [
            op
            for op in self.ops
            if op not in self.reductions
            and self.levels[op] == number
            and (number or op in self.roots)
            and not self.is_full(op.outputs[0])
        ]

    def _wanted(self, number: int) -> list[SSAValue]:
        """The arrays that a round computes elementwise: operands of reductions, and results."""
        reduced = [array for op in self.reduced_in(number) for array in op.inputs[: len(op.outputs)]]
        scanned = [op.inputs[0] for op in self.scanned_in(number)]
        return [*reduced, *scanned, *(op.outputs[0] for op in self.written_in(number))]

    # ------------------------------------------------------------------------------------------------------ sources

    @cached_property
    def moved(self) -> set[SSAValue]:
        """The arrays of level 0 of which an element is computed from elements of other columns, as of a `reverse` or a gather."""
        found, deep = set[SSAValue](), set[SSAValue]()
        for buffer, op in self.writer.items():
            if self.levels[op]:
                continue
            is_deep = any(given in deep or self.is_full(given) for given in op.inputs)
            if is_deep:
                deep.add(buffer)
            if (is_deep and not _is_in_place(op)) or not found.isdisjoint(op.inputs):
                found.add(buffer)
        return found

    @cached_property
    def sources(self) -> list[list[SSAValue]]:
        """For each round the sources that it reads."""
        return self._choice[0]

    @cached_property
    def _choice(self) -> tuple[list[list[SSAValue]], bool]:
        """The sources, and whether they are as early as possible."""
        choices = [(self._sources(is_early=is_early), is_early) for is_early in (False, True)]
        return min(choices, key=lambda choice: self._cost(choice[0]))

    @cached_property
    def remade(self) -> dict[SSAValue, SSAValue]:
        """Replacement of a kept source, made in the round of its level -> that source."""
        found = dict[SSAValue, SSAValue]()
        for kept in self.kept:
            made = next((buffer for buffer in reversed(self.writer) if self._may_replace(buffer, kept, found)), None)
            if made is not None:
                found[made] = kept
        return found

    def _may_replace(self, buffer: SSAValue, kept: SSAValue, others: Iterable[SSAValue]) -> bool:
        """Whether a round that reads `kept` computes a buffer of its type from it, and later ones need only that."""
        op, number, is_early = self.writer[buffer], self.level(buffer), self._choice[1]
        is_alike = (
            storage_of(buffer) == storage_of(kept) and self.is_full(buffer) and op not in (*self.roots, *self.scans)
        )
        if not (is_alike and number and kept in self.sources[number]) or buffer in others:
            return False
        if buffer not in self._reached(self._wanted(number), is_early=is_early)[0]:
            return False
        if all(name in CHEAP for name in self._between(buffer, kept)):
            return False
        later = [
            self._reached(self._wanted(after), is_early=is_early, ends=(buffer,)) for after in self.rounds[number + 1 :]
        ]
        return any(buffer in read for _, read in later) and not any(kept in read for _, read in later)

    def _between(self, buffer: SSAValue, source: SSAValue) -> list[str]:
        """The opcodes on the path from `source` to `buffer`."""
        names, depends = list[str](), {source}
        wanted, _ = self._reached([buffer], is_early=self._choice[1])
        for given, op in self.writer.items():
            if given in wanted and given not in depends and not depends.isdisjoint(op.inputs):
                depends.add(given)
                names.append(op.HLO.name)
        return names

    def read_in(self, number: int, *, keeps: bool) -> list[SSAValue]:
        """The sources of a round; with `keeps`, their replacements."""
        if not keeps:
            return self.sources[number]
        ends = [buffer for buffer in self.remade if self.level(buffer) < number]
        return self._reached(self._wanted(number), is_early=self._choice[1], ends=ends)[1]

    @cached_property
    def kept(self) -> dict[SSAValue, int]:
        """The sources that several rounds read, with the first of these rounds."""
        return self._kept(self.sources)

    def _kept(self, sources: Sequence[Sequence[SSAValue]]) -> dict[SSAValue, int]:
        found = dict[SSAValue, list[int]]()
        for number, read in enumerate(sources):
            for buffer in read:
                found.setdefault(buffer, []).append(number)
        scans = {op.outputs[0]: self.levels[op] - 1 for op in self.scans}
        # Elements of less than a byte share one with elements that another thread keeps.
        return scans | {
            buffer: numbers[0]
            for buffer, numbers in found.items()
            if len(numbers) > 1
            and buffer not in scans
            and dtype_of(tensor_of(buffer.type).element_type).bits >= 8
            and not self.is_of_columns(buffer)
            and not self._is_one_number(buffer)
        }

    def _sources(self, *, is_early: bool) -> list[list[SSAValue]]:
        return [self._read_from(self._wanted(number), is_early=is_early) for number in self.rounds]

    def _read_from(self, wanted: Sequence[SSAValue], *, is_early: bool) -> list[SSAValue]:
        """The sources that arrays of the matrix's size are computed from, in order."""
        return self._reached(wanted, is_early=is_early)[1]

    def _reached(
        self, wanted: Sequence[SSAValue], *, is_early: bool, ends: Sequence[SSAValue] = ()
    ) -> tuple[set[SSAValue], list[SSAValue]]:
        """All arrays of the matrix's size that others are computed from, and the sources among them, in order; stops at `ends`."""
        key = (*wanted, is_early, *ends)
        if key not in self._walks:
            self._walks[key] = self._walk(wanted, is_early=is_early, ends=ends)
        return self._walks[key]

    @cached_property
    def _walks(self) -> dict[tuple[SSAValue | bool, ...], tuple[set[SSAValue], list[SSAValue]]]:
        """The answers of `_reached` so far: what may be kept is asked for each array and each round."""
        return {}

    def _walk(
        self, wanted: Sequence[SSAValue], *, is_early: bool, ends: Sequence[SSAValue]
    ) -> tuple[set[SSAValue], list[SSAValue]]:
        found, seen, waiting = dict[SSAValue, None](), set[SSAValue](), list(reversed(wanted))
        while waiting:
            buffer = waiting.pop()
            if buffer in seen or not self.is_full(buffer) or self._is_one_number(buffer):
                continue
            seen.add(buffer)
            op = self.writer.get(buffer)
            is_through = (
                op is not None and op not in self.scans and (self.levels[op] or (is_early and _is_in_place(op)))
            )
            if op is not None and is_through and buffer not in ends:
                waiting += reversed(op.inputs)
            else:
                found[buffer] = None
        return seen, sorted(found, key=lambda buffer: self._order.get(buffer, -1))

    @cached_property
    def _order(self) -> dict[SSAValue, int]:
        return {buffer: number for number, buffer in enumerate(self.writer)}

    def _cost(self, sources: Sequence[Sequence[SSAValue]]) -> tuple[int, int]:
        """(reads of arrays of the matrix's size, over all rounds; bytes kept per column)."""
        kept, reads = self._kept(sources), 0
        for number, read in enumerate(sources):
            loaded = [buffer for buffer in read if kept.get(buffer, number) == number]
            reads += len(self._read_from(loaded, is_early=True))
        return reads, self.kept_bytes(kept)

    @staticmethod
    def kept_bytes(buffers: Sequence[SSAValue] | dict[SSAValue, int]) -> int:
        """Bytes for one column of each of these arrays."""
        return sum(dtype_of(tensor_of(buffer.type).element_type).bytes for buffer in buffers)


def storage_of(buffer: SSAValue) -> Attribute:
    """The type of an element in shared memory."""
    return dtype_of(tensor_of(buffer.type).element_type).storage_type


def _is_in_place(op: BufferOp) -> bool:
    """Whether each element is computed from the elements at the same index."""
    return is_elementwise(op.as_hlo()) or op.HLO.name in SAME_PLACE
