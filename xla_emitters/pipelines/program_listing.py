"""Lists the ops of a program with unknown sizes that work on data, where each runs and by what; and its fusions, each one kernel.

    ENTRY    dot_general.5   f32[b,s,64]   library function gemm
    body.1   add.2           f32[b,32]     the op's definition, in NumPy; a kernel in `GpuLowering`
    94 more ops compute sizes and are not listed

    main_kStitch_reduce_0   kStitch   13 ops   f32[b,s]     keeps reduce.0, reduce.13
    main_kLoop_multiply_1   kLoop      9 ops   f32[b,s]

Source: docs/reference/4 2.1, 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.library_calls import communication, is_collective, is_library_call, library_call_of
from xla_emitters.dialects.hlo.placement import HOST
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import LEFT_OUT, FusionOp, tensor_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.disc_fuse_on_buffer import SHARED
from xla_emitters.dynamic.buffers.fusion_rules import FusibleOp, Group
from xla_emitters.dynamic.sizes import Sizes, sizes_of
from xla_emitters.dynamic.sizes.program import spec_of
from xla_emitters.errors import Unsupported
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.text.hlo.stack_frames import PythonLines
from xla_emitters.trace.python_source import source_decision

QUIET = frozenset(
    "parameter constant tuple get-tuple-element shape-assertion get-dimension-size call while conditional".split()
)
"""Opcodes of ops that do no work themselves."""
DEVICE = "disc.device"
LIBRARY, NUMPY = "library", "numpy"


@dataclass(frozen=True)
class ListedOp:
    """One instruction that works on data.

    computation  the computation that contains it
    type         with the program's symbols for unknown sizes
    device       "cpu" or "gpu", as placed; None if placement was not requested
    runs         "library" or "numpy"
    function     the library function, or None
    supported    whether `run` executes it
    reason       why it runs this way, or why it is not supported
    place        file:line:column; "" if not known
    """

    name: str
    computation: str
    opcode: str
    type: str
    device: str | None
    runs: str
    function: str | None
    supported: bool
    reason: str
    place: str = ""


@dataclass(frozen=True)
class ProgramListing:
    """The ops of a program in order, callees before callers; ops that compute sizes are only counted."""

    ops: tuple[ListedOp, ...]
    of_sizes: int

    @property
    def library_calls(self) -> tuple[ListedOp, ...]:
        return tuple(op for op in self.ops if op.runs == LIBRARY)


def list_program(module: ModuleOp) -> ProgramListing:
    """The ops of a module of `hlo` at one of the stages on tensors."""
    sizes = sizes_of(module)
    found, of_sizes = list[ListedOp](), 0
    for computation in control_computations(module):
        for op in computation.instructions:
            if op.opcode in QUIET:
                continue
            if is_size(op, sizes):
                of_sizes += 1
            else:
                place = written_at(op)
                found.append(replace(_listed(op, computation, sizes), place=str(place) if place else ""))
    return ProgramListing(tuple(found), of_sizes)


def symbolic_type(value: SSAValue, sizes: Sizes) -> str:
    """An array's type in HLO's spelling with the program's symbols; "?" for a size that depends on data."""
    if is_array(value.type):
        return str(spec_of(value, sizes))
    return f"({', '.join(element_of(leaf).name for leaf in leaf_types(value.type) if is_array(leaf))})"


def is_size(op: HloOp, sizes: Sizes) -> bool:
    """Whether the op's elements are computed from sizes only: numbers, or conditions on them."""
    value = op.result
    if not is_array(value.type) or len(dims_of(value)) > 1 or element_of(value).name not in ("s32", "s64", "pred"):
        return False
    return sizes.numbers(value) is not None


def _listed(op: HloOp, computation: ComputationOp, sizes: Sizes) -> ListedOp:
    device = op.attributes.get(DEVICE)
    where = (
        op.instruction_name.data,
        "ENTRY" if computation.is_entry else computation.sym_name.data,
        op.opcode,
        symbolic_type(op.result, sizes),
        device.data if isinstance(device, StringAttr) else None,
    )
    if not is_library_call(op) or is_collective(op):
        if op.opcode in LEFT_OUT and (reason := communication(op)):
            return ListedOp(*where, NUMPY, None, False, reason)
        where_it_runs = (
            "on the host" if where[4] == HOST else "no library function: in a fusion, or by its definition in NumPy"
        )
        return ListedOp(*where, NUMPY, None, True, where_it_runs)
    try:
        function = library_call_of(op)[0]
    except Unsupported as error:
        return ListedOp(*where, LIBRARY, None, False, error.message)
    return ListedOp(*where, LIBRARY, function, True, f"library function {function}")


# --------------------------------------------------------------------------------------------------------------- fusions


@dataclass(frozen=True)
class ListedFusion:
    """One fusion.

    name     the kernel's name
    kind     "kLoop", "kRowReduction", "kColReduction", "kStitch" or "kSingleOp"
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
    return [_listed_fusion(op, sizes, lines) for op in module.walk() if isinstance(op, FusionOp)]


def _listed_fusion(op: FusionOp, sizes: BufferSizes, lines: PythonLines | None) -> ListedFusion:
    parts = list(map(FusibleOp, op.ops))
    shared = op.attributes.get(SHARED)
    return ListedFusion(
        op.label,
        op.kind_text,
        tuple(part.name for part in parts),
        tuple(_buffer_type(buffer, sizes) for part in Group(parts, sizes).results for buffer in part.writes),
        tuple(name.data for name in shared) if isa(shared, ArrayAttr[StringAttr]) else (),
        lines.data_of(op.body.walk()) if lines else (),
    )


def _buffer_type(buffer: SSAValue, sizes: BufferSizes) -> str:
    return f"{dtype_of(tensor_of(buffer.type).element_type).name}[{sizes.text(buffer)}]"
