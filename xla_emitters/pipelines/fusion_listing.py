"""Lists the fusions of a program on buffers; each becomes one kernel.

    main_kStitch_reduce_0   kStitch   13 ops   f32[b,s]     keeps reduce.0, reduce.13
    main_kLoop_multiply_1   kLoop      9 ops   f32[b,s]

Source: docs/reference/4 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from xla_emitters.buffers.buffer_sizes import BufferSizes
from xla_emitters.buffers.disc_fuse_on_buffer import SHARED
from xla_emitters.buffers.fusion_rules import Group, Part
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, tensor_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.hlo_text.stack_frames import PythonLines
from xla_emitters.trace.python_source import source_decision


@dataclass(frozen=True)
class ListedFusion:
    """One fusion.

    name     the kernel's name
    kind     "kLoop", "kRowReduction", "kColReduction" or "kStitch"
    ops      names of its instructions
    results  types of its result arrays, with the program's symbols
    shared   names of the reductions whose results a block keeps in shared memory
    source   the lines of Python that it computes, as plain data: see `trace.python_source`
    """

    name: str
    kind: str
    ops: tuple[str, ...]
    results: tuple[str, ...]
    shared: tuple[str, ...]
    source: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        ops = f"{len(self.ops)} op" + "s" * (len(self.ops) != 1)
        keeps = f"  keeps {', '.join(self.shared)}" if self.shared else ""
        return f"{self.name}  {self.kind}  {ops}  {', '.join(self.results)}{keeps}"

    def lines(self) -> list[str]:
        """The fusion, and its lines of Python."""
        return [str(self), *([f"  source  {source_decision(self.source).text}"] if self.source else [])]


def list_fusions(module: ModuleOp, lines: PythonLines | None = None) -> list[ListedFusion]:
    """All fusions of a module on buffers, in order; `lines` of the module that was read."""
    sizes = BufferSizes()
    return [_listed(op, sizes, lines) for op in module.walk() if isinstance(op, FusionOp)]


def _listed(op: FusionOp, sizes: BufferSizes, lines: PythonLines | None) -> ListedFusion:
    parts = [Part(inner) for inner in op.body.block.ops if isinstance(inner, BufferOp)]
    shared = op.attributes.get(SHARED)
    return ListedFusion(
        op.fusion_name.data if op.fusion_name is not None else "",
        op.kind.data if op.kind is not None else "",
        tuple(part.name for part in parts),
        tuple(_type(buffer, sizes) for part in Group(parts, sizes).results for buffer in part.writes),
        tuple(name.data for name in shared) if isa(shared, ArrayAttr[StringAttr]) else (),
        lines.data_of(op.body.walk()) if lines else (),
    )


def _type(buffer: SSAValue, sizes: BufferSizes) -> str:
    return f"{dtype_of(tensor_of(buffer.type).element_type).name}[{sizes.text(buffer)}]"
