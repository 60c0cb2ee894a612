"""The outline of a program with unknown sizes: its fusions and library calls, dearest first, at sizes that are given or assumed.

    jit_layer for h200: 3 kernels and 4 library calls, 512 us
      (f32[b,s,32], f32[32,32]) -> (f32[b,s,32])
      share     time  what                 how         source
       41 %   210 us  dot_general.5        call gemm   layer.py:9 in attention
       ...
      times at b = 128, s = 128: assumed; p.explain(b=..., s=...) takes others

A fusion is one kernel here, although the host may choose between several of them by the sizes. Nothing is compiled for an outline: it is
read from the stage `fused`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from xla_emitters.algebra.size import Size
from xla_emitters.device import Device, device
from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.library_calls import is_library_call, library_call_of
from xla_emitters.dialects.hlo.placement import GPU
from xla_emitters.dialects.lmhlo import BufferOp, CaseOp, FusionOp, WhileOp, space_of, tensor_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.fusion_rules import FusibleOp, Group
from xla_emitters.dynamic.sizes import Sizes
from xla_emitters.errors import XlaEmittersError
from xla_emitters.pipelines.lowerings import Lowerings
from xla_emitters.pipelines.program_listing import LIBRARY, ListedOp, ProgramListing
from xla_emitters.program import Program
from xla_emitters.program.outline import Outline, Work, counted_work, factors_of, least_time, product_operations
from xla_emitters.text.hlo.stack_frames import PythonLines

ASSUMED = 128
"""The value of a symbol for the times, or the nearest that its bounds allow."""
QUIET = frozenset(("constant", "h2d", "d2h"))
"""Opcodes on the device that neither a kernel nor a library computes."""


def assumed_sizes(sizes: Sizes, given: Mapping[str, int]) -> dict[str, int]:
    """A value for each symbol: the given one, or ASSUMED within the symbol's bounds."""
    found = dict[str, int]()
    for solved in sizes.guards.plan.solved:
        bounds = sizes.facts.bounds(Size.symbol(solved.symbol))
        found[solved.symbol] = min(max(ASSUMED, bounds.lower), bounds.upper)
    return found | dict(given)


def contents_of(program: Program, made: Lowerings, given: Mapping[str, int]) -> Outline:
    """The contents at these sizes; at assumed ones for symbols that are not given."""
    more = (f'p.trace["{program.stage}"].ir', "xe.cost(p, sizes={...})", "xla-emitters show FILE -o page.html")
    if made.fused is None:
        return Outline("", more=more)
    values = assumed_sizes(made.sizes, given)
    works = _Works(BufferSizes(from_allocations=True), PythonLines(made.source), device(program.target), values)
    work, facts = tuple(works.all(made.fused)), tuple[str, ...]()
    if values and work:
        said = ", ".join(f"{name} = {value}" for name, value in values.items())
        asked = ", ".join(f"{name}=..." for name in values)
        facts = (f"at {said}" + ("" if given else f", which is assumed: print(p.explain({asked})) takes others"),)
    return Outline(counted_work(work), work, tuple(works.remarks(made.fused)), facts, more)


def not_in_kernels(listing: ProgramListing, fused: ModuleOp) -> list[ListedOp]:
    """The listed ops that neither a fusion nor a library computes: those on the host, and those that no kernel of ours computes.

    listing  of the stage "placed"
    """
    alone = {
        op.instruction_name
        for op in fused.walk()
        if isinstance(op, BufferOp) and not _is_in_fusion(op) and opcode_of(op.HLO) not in (*QUIET, "copy")
    }
    return [op for op in listing.ops if op.runs != LIBRARY and op.name in alone]


class _Works:
    def __init__(self, sizes: BufferSizes, lines: PythonLines, chip: Device, values: Mapping[str, int]) -> None:
        self.sizes, self.lines, self.chip, self.values = sizes, lines, chip, values

    def all(self, fused: ModuleOp) -> Iterator[Work]:
        for op in fused.walk():
            if isinstance(op, FusionOp):
                yield self._fusion(op)
            elif isinstance(op, BufferOp) and not _is_in_fusion(op) and runs_on_device(op):
                yield self._call(op)

    def _fusion(self, op: FusionOp) -> Work:
        parts = list(map(FusibleOp, op.ops))
        group = Group(parts, self.sizes)
        read = {buffer for part in parts for buffer in part.reads if buffer not in group.writer}
        written = {buffer for part in group.results for buffer in part.writes}
        moved = self._bytes([*read, *written])
        time = None if moved is None else least_time(self.chip, moved)
        return Work(op.label, op.kind_text, "", 1, time, source=self._source(op.body.walk()))

    def _call(self, op: BufferOp) -> Work:
        made = op.as_hlo()
        moved, operations = self._bytes([*op.inputs, *op.outputs]), 0.0
        name, unusual = opcode_of(op.HLO), tuple[str, ...]()
        if is_library_call(made):
            name = f"call {library_call_of(made)[0]}"
        elif name != "copy":
            unusual = ("no kernel of ours computes it",)
        if isinstance(made, DotOp):
            shapes = [self._shape(buffer) for buffer in (*op.inputs[:2], op.outputs[0])]
            if (known := [shape for shape in shapes if shape is not None]) == shapes and all(map(all, known)):
                batch = 1
                for dim in made.pairing.lhs_batch:
                    batch *= known[0][dim]
                operations = product_operations(known, batch)
        factors = factors_of(dtype_of(tensor_of(op.inputs[0].type).element_type).name if op.inputs else "f32")
        time = None if moved is None else least_time(self.chip, moved, operations, factors)
        return Work(op.instruction_name, name, "", 1, time, unusual, self._source([op]))

    def remarks(self, fused: ModuleOp) -> Iterator[str]:
        loops = sum(isinstance(op, WhileOp) for op in fused.walk())
        branches = sum(isinstance(op, CaseOp) for op in fused.walk())
        if loops:
            yield f"{loops} loop{'s' * (loops > 1)}: the host decides each turn, and their work is counted once"
        if branches:
            yield f"{branches} branch{'es' * (branches > 1)}: the host decides, and every one is counted"

    def _source(self, ops: Iterable[Operation]) -> tuple[dict[str, Any], ...]:
        return self.lines.data_of(ops) if self.lines else ()

    def _shape(self, buffer: SSAValue) -> tuple[int, ...] | None:
        try:
            return tuple(size.evaluate(self.values) for size in self.sizes.of(buffer))
        except XlaEmittersError:
            return None

    def _bytes(self, buffers: Sequence[SSAValue]) -> int | None:
        total = 0
        for buffer in dict.fromkeys(buffers):
            try:
                count = self.sizes.elements(buffer).evaluate(self.values)
            except XlaEmittersError:
                return None
            total += dtype_of(tensor_of(buffer.type).element_type).size_bytes(count)
        return total


def runs_on_device(op: BufferOp) -> bool:
    """Whether an op outside of fusions does work on the device: a library call, a copy, or what no kernel of ours computes."""
    return bool(op.outputs) and space_of(op.outputs[0].type) == GPU and opcode_of(op.HLO) not in QUIET


def _is_in_fusion(op: Operation) -> bool:
    return isinstance(op.parent_op(), FusionOp)
