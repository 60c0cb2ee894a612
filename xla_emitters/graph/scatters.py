"""Scatters: which arrays can be updated in place, and how updates are distributed over threads.

    s = f32[1000,128] scatter(p, rows, u)      256 windows of 1 x 128 elements, each at the start that its row of indices gives

    distributed updates     a thread per element of the updates (or per 2, 4 ... neighbours in one window). It reads its window's start.
    distributed indices     a warp per run of windows. It reads each start once, and combines the updates of consecutive equal starts
                            in registers: if sorted indices repeat, memory gets one update instead of many

The scatter emitter writes only the updated elements, so the others must already be in the result's buffer: each result must be in the
buffer of its array, a parameter that has no other use, because another thread may update an element before it is read. If several
updates may have the same target, updates must be atomic. The loop emitter takes other scatters: for each element of the result it reads
all windows, in order.
Source: docs/reference/2 2.7; XLA scatter.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeGuard

from xla_emitters.device import Device
from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, leaf_types, minor_to_major
from xla_emitters.dtypes import Kind
from xla_emitters.graph.thread_work import elements_per_thread
from xla_emitters.graph.view import FusionView, once_per_view
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:  # asked for by opcode: most fusions have none
    from xla_emitters.dialects.hlo.gather_scatter import ScatterOp

WARPS = 4
"""Warps of a block."""
VECTOR_BITS = 128
"""The widest access, in bits."""
ASSOCIATIVE = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))


@once_per_view
def scatter_of(view: FusionView) -> ScatterOp | str:
    """The scatter at the fusion's root, or why it has no code."""
    root = owner_of(view.computation.root)
    return scatter_at(view, root)


def scatter_at(view: FusionView, root: HloOp) -> ScatterOp | str:
    """`root` if it is a scatter whose updates have code; otherwise the reason."""
    if not is_scatter(root):
        return f"%{root.instruction_name.data} is not a scatter"
    if root.has_unique_indices:
        return root
    if len(root.arrays) > 1:
        return f"{len(root.arrays)} arrays, and indices that may be equal: no atomic access changes several elements"
    if element_of(root.arrays[0]).bits > 64 and not _adds(_body(view, root)):
        return f"indices that may be equal: no atomic access changes {element_of(root.arrays[0]).name} but by adding"
    return root


def is_scatter(op: HloOp) -> TypeGuard[ScatterOp]:
    """Whether an instruction is a scatter."""
    return op.opcode == "scatter"


def _body(view: FusionView, scatter: ScatterOp) -> ComputationOp:
    return next(c for c in view.called if c.sym_name.data == scatter.to_apply.root_reference.data)


def _adds(body: ComputationOp) -> bool:
    """Whether a computation adds a value to its first parameter that does not depend on it."""
    old, root = body.parameters[0], body.root.owner
    assert isinstance(root, HloOp)
    return root.opcode == "add" and old.result.has_one_use() and any(operand.owner is old for operand in root.operands)


@once_per_view
def arrays_in_place(view: FusionView) -> tuple[ParameterOp, ...] | str:
    """The parameters that the root, a scatter, updates, in the order of the results; otherwise why it cannot update them in place."""
    scatter = scatter_of(view)
    if isinstance(scatter, str):
        return scatter
    found = list[ParameterOp]()
    for array, result in zip(scatter.arrays, leaf_types(scatter.result.type), strict=True):
        owner = owner_of(array)
        name = f"%{owner.instruction_name.data}"
        if not isinstance(owner, ParameterOp):
            return f"%{scatter.instruction_name.data} updates {name}, which is not a parameter"
        if len(view.users[owner]) > 1:
            return f"{name} is read as well as updated"
        if minor_to_major(array.type) != minor_to_major(result):
            return f"%{scatter.instruction_name.data} has another layout than {name}, which it updates"
        found.append(owner)
    return tuple(found)


# ------------------------------------------------------------------------------------------------- distribution over threads


@dataclass(frozen=True)
class DistributedUpdates:
    """A thread for each `elements_per_thread` neighbours in a window."""

    elements_per_thread: int

    def __str__(self) -> str:
        return f"distributed updates, {self.elements_per_thread} a thread"


@dataclass(frozen=True)
class DistributedIndices:
    """A warp for each run of windows.

    windows        number of windows of the scatter
    elements       elements per window
    windows_per_warp, starts_per_load   windows that one warp processes, and starts that one access reads
    elements_per_thread                 neighbours in a window that a thread processes at once
    steps                               how often a thread does so per window
    """

    windows: int
    elements: int
    windows_per_warp: int
    starts_per_load: int
    elements_per_thread: int
    steps: int

    @property
    def blocks(self) -> int:
        return -(-self.windows // (self.windows_per_warp * WARPS))

    def __str__(self) -> str:
        return f"distributed indices: {self.windows_per_warp} windows a warp, {self.elements_per_thread} elements a thread at once"


def distribution_of(
    view: FusionView, scatter: ScatterOp, device: Device, elements_wanted: int | None = None
) -> DistributedUpdates | DistributedIndices:
    """The distribution of the updates over threads.

    elements_wanted  elements per thread, if windows allow it; None: XLA's choice
    """
    update = scatter.updates[0]
    windows = scatter.windows
    elements = math.prod(scatter.window_sizes)
    kind, bits = element_of(update).kind, element_of(update).bits
    may_be_summed = kind is not Kind.COMPLEX and _is_associative(view, scatter)
    is_repeated = scatter.has_sorted_indices and not scatter.has_unique_indices
    if is_repeated and is_canonical(scatter) and may_be_summed:
        lanes = device.threads_per_warp
        vector = math.gcd(elements, VECTOR_BITS // bits)
        while vector > 1 and lanes * vector > elements:
            vector //= 2
        warps, starts = WARPS * device.cores, 1
        if windows > warps:
            per_warp = -(-windows // max(warps, math.prod(last + 1 for last in scatter.last_starts)))
            if len(scatter.mapped) == 1 and per_warp > (most := VECTOR_BITS // element_of(scatter.indices).bits):
                per_warp, starts = -(-per_warp // most) * most, most
            if per_warp > 1:
                return DistributedIndices(windows, elements, per_warp, starts, vector, -(-elements // (lanes * vector)))
    unroll = elements_wanted or elements_per_thread(view, device, math.prod(dims_of(update)))
    return DistributedUpdates(math.gcd(elements, unroll) if _windows_are_runs(scatter) else 1)


def _windows_are_runs(scatter: ScatterOp) -> bool:
    """Whether the elements of each window are contiguous in memory, in the same order in all updates."""
    windows = len(dims_of(scatter.updates[0])) - len(scatter.scatter_dims)
    orders = {minor_to_major(update.type) for update in scatter.updates}
    return len(orders) == 1 and not set(orders.pop()[:windows]) & set(scatter.scatter_dims)


def is_canonical(scatter: ScatterOp) -> bool:
    """Whether windows are stored one after the other, row major, and the rows of indices too."""
    rank, is_matrix = len(dims_of(scatter.updates[0])), len(dims_of(scatter.indices)) == 2
    values = (scatter.indices, *scatter.updates)
    in_order = all(minor_to_major(value.type) == tuple(reversed(range(len(dims_of(value))))) for value in values)
    windows_last = scatter.scatter_dims == (0,) and rank > 0
    return is_matrix and windows_last and in_order and scatter.index_vector_dim.value.data == 1


def _is_associative(view: FusionView, scatter: ScatterOp) -> bool:
    """Whether updates may be combined with each other first: the op is associative, or the last update replaces the others."""
    return combining_opcode(_body(view, scatter)) is not None


def combining_opcode(body: ComputationOp) -> str | None:
    """How an update changes an element: an opcode of `ASSOCIATIVE`, "parameter" if it replaces it, None for anything else."""
    root = owner_of(body.root)
    if isinstance(root, TupleOp):
        return None
    if isinstance(root, ParameterOp):
        return "parameter" if root.number.value.data == 1 else None
    of_parameters = {operand.owner for operand in root.operands} == set(body.parameters)
    return root.opcode if root.opcode in ASSOCIATIVE and of_parameters else None
