"""The work of one thread of a loop kernel: the number of neighbouring elements per round, and the number of rounds.

    bf16[6,512,4096] on h200      XLA's choice   4 x 1    one access of 8 bytes
                                  candidates     4 x 2    two accesses of 8 bytes, a whole grid apart
                                                 8 x 1    one access of 16 bytes
                                                 8 x 2    two accesses of 16 bytes, a whole grid apart

XLA's choice is a rule (`elements_per_thread`). `--tune price` compares it with the candidates: they have more bytes in flight or fewer
instructions per element, and may cost registers, occupancy or half-used sectors. Each element is computed by the same code, so the
choice does not change any bit of a result. Code that is too long to repeat has no candidates.

XLA's number of elements that one thread computes:

    bf16[6,512,4096]   12582912 elements fill the chip   4: two accesses of 8 bytes per thread instead of eight of 2
    f32[20]            20 elements do not                1: more threads are faster than wider accesses
    s4[7]              two elements share a byte         2: one thread writes all of a byte
    f32[16777216]      on b200                           8: its accesses are up to 32 bytes wide

Powers of two; a count that does not divide is masked by the loop's bounds check. Fusions that repeat much work per element are not
unrolled. Source: docs/reference/2 2.0.4 "ComputeLoopFusionConfig".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import TupleType

from xla_emitters.device import Device
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.shape_ops import TransposeOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.dialects.hlo.windows import WindowAttr
from xla_emitters.graph.transposes import normalized
from xla_emitters.graph.view import FusionView
from xla_emitters.program import LaunchDimensions
from xla_emitters.support.late_dataclass import dataclass

UNROLL = 4
WIDEST_UNROLL = 32
"""XLA's flag xla_gpu_experimental_max_unroll_factor."""
ACCESS_BITS = 256
"""The widest access of Blackwell in bits, with CUDA 12.9 or newer."""


def elements_per_thread(view: FusionView, device: Device, elements: int | None = None) -> int:
    """Elements that one thread computes: 1, 2, 4 ... up to 32.

    elements  that the grid covers; None: those of the first result
    """
    elements, unroll = view.elements if elements is None else elements, 1
    if elements >= device.threads_max and may_unroll(view):
        unroll = math.gcd(elements, _largest_unroll(view, device))
    # Two threads must never write the same byte.
    return max(unroll, -(-8 // view.smallest_output_bits))


def unroll_reason(view: FusionView, device: Device) -> str:
    """The reason for the result of `elements_per_thread`, as text."""
    if elements_per_thread(view, device) > 1 and view.elements < device.threads_max:
        return f"elements of {view.smallest_output_bits} bits share bytes, and a thread writes whole bytes"
    if view.elements < device.threads_max:
        return f"{view.elements} elements leave some of the {device.threads_max} threads of {device.name} idle"
    if heavy := next(filter(_is_heavy, view.instructions), None):
        return f"'{heavy.opcode}' (%{heavy.instruction_name.data}) is too much code to repeat in one thread"
    return f"{view.elements} elements fill the {device.threads_max} threads of {device.name}"


def may_unroll(view: FusionView) -> bool:
    """Whether several copies of the fusion's code per thread are cheap: no long loop and no long chain of branches per element."""
    return not any(map(_is_heavy, view.instructions))


def _is_heavy(op: HloOp) -> bool:
    match op.opcode:
        case "sort" | "dot":
            return True
        case "concatenate":
            return len(op.operands) > 10
        case "reduce":
            return isinstance(op.result.type, TupleType)
        case "reduce-window":
            return isinstance(op.result.type, TupleType) or _window_elements(op) > 8
        case _:
            return False


def _window_elements(op: HloOp) -> int:
    window = op.properties["window"]
    assert isinstance(window, WindowAttr)
    return math.prod(dim.size for dim in window.data.dims)


def _largest_unroll(view: FusionView, device: Device) -> int:
    major, _ = device.compute_capability
    is_narrow = view.smallest_output_bits < ACCESS_BITS // 4
    if major != 10 or len(view.result_types) > 1 or not is_narrow or any(view.with_opcode("reduce", "scatter")):
        return UNROLL
    types = [p.result.type for p in view.parameters if is_array(p.result.type)]
    widest = max(8, *(element_of(array_type).bits for array_type in (*types, *view.result_types)))
    unroll = min(WIDEST_UNROLL, 1 << (ACCESS_BITS // widest).bit_length() - 1)
    if any(view.with_opcode("pad")):
        unroll = min(unroll, 8)
    while unroll > 4 and any(_minor_dim_moved_together(op) < unroll for op in view.with_opcode("transpose")):
        unroll //= 2
    return max(unroll, 8)


def _minor_dim_moved_together(transpose: HloOp) -> int:
    """Elements over the fastest dimensions of a transpose's result that stay neighbours: size-1 dims dropped, runs merged."""
    assert isinstance(transpose, TransposeOp)
    dims, _ = normalized(dims_of(transpose.result), integers(transpose.dimensions))
    return dims[-1] if dims else 1


SHIFTING = frozenset({"slice", "dynamic-slice", "pad", "concatenate", "reverse", "reduce-window"})
"""Opcodes whose operands' elements are not aligned like the result's."""
ROUNDS = (1, 2)
NARROWEST_BITS, WIDEST_BITS = 64, 128
"""Bits of an access before sm_100, whose widest has `ACCESS_BITS`. Accesses below 8 bytes need more instructions for the same bytes."""


@dataclass(frozen=True)
class ThreadWork:
    """`rounds` times `elements` neighbouring elements; the rounds are a whole grid apart.

    >>> ThreadWork(8, 2).total, str(ThreadWork(8, 2)), str(ThreadWork(4))
    (16, '2 x 8', '4')
    """

    elements: int
    rounds: int = 1

    @property
    def total(self) -> int:
        """Elements per thread."""
        return self.elements * self.rounds

    def __str__(self) -> str:
        return f"{self.rounds} x {self.elements}" if self.rounds > 1 else str(self.elements)


def thread_works(
    view: FusionView, device: Device, own_elements: int, elements: int | None = None, divisor: int | None = None
) -> Sequence[ThreadWork]:
    """XLA's choice first, then the other candidates; only XLA's if no other one can be better.

    own_elements  per thread, by XLA's choice
    elements      that the grid covers; None: those of the first result
    divisor       a number that the count of neighbouring elements must divide; None: `elements`
    """
    own, elements = ThreadWork(own_elements), view.elements if elements is None else elements
    divisor = elements if divisor is None else divisor
    if not may_unroll(view):
        return (own,)
    types = [p.result.type for p in view.parameters if is_array(p.result.type)]
    arrays = [*view.result_types, *(each for each in types if math.prod(dims_of(each)) > 1)]
    bits = [element_of(each).bits for each in arrays]
    widest_access = ACCESS_BITS if device.compute_capability[0] >= 10 else WIDEST_BITS
    # A thread must write whole bytes; an access of n elements needs arrays whose size is a multiple of n.
    counts = [
        count
        for power in range(6)
        if divisor % (count := 1 << power) == 0
        and count * view.smallest_output_bits >= 8
        and count * max(bits) >= NARROWEST_BITS
        and count * min(bits) <= widest_access
        and count * max(bits) <= ACCESS_BITS
    ]
    found = [ThreadWork(count, rounds) for count in counts for rounds in ROUNDS]
    return (own, *(each for each in found if each != own and each.total <= elements))


def blocks_of_same_work(
    blocks: Sequence[int], work: ThreadWork, launch: LaunchDimensions, other: ThreadWork, other_launch: LaunchDimensions
) -> Sequence[int]:
    """The blocks of the other launch, which has one round, that process the elements of these blocks.

    >>> one, other = LaunchDimensions((4, 1, 1), (32, 1, 1)), LaunchDimensions((16, 1, 1), (32, 1, 1))
    >>> blocks_of_same_work([1], ThreadWork(4, 2), one, ThreadWork(2), other)
    [2, 3, 10, 11]
    """
    own, theirs = work.elements * launch.threads, other.elements * other_launch.threads
    found = set[int]()
    for block in blocks:
        for number in range(work.rounds):
            first = (number * launch.blocks + block) * own
            found.update(range(first // theirs, (first + own - 1) // theirs + 1))
    return sorted(block for block in found if block < other_launch.blocks)
