"""The work of one thread of a loop kernel: the number of neighbouring elements per round, and the number of rounds.

    bf16[6,512,4096] on h200      XLA's choice   4 x 1    one access of 8 bytes
                                  candidates     4 x 2    two accesses of 8 bytes, a whole grid apart
                                                 8 x 1    one access of 16 bytes
                                                 8 x 2    two accesses of 16 bytes, a whole grid apart

XLA's choice is a rule (`unroll.py`). `--tune price` compares it with the candidates: they have more bytes in flight or fewer
instructions per element, and may cost registers, occupancy or half-used sectors. Each element is computed by the same code, so the
choice does not change any bit of a result. Code that is too long to repeat has no candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xla_emitters.device import Device
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.graph.unroll import ACCESS_BITS, may_unroll
from xla_emitters.graph.view import FusionView
from xla_emitters.program import Launch
from xla_emitters.support.late_dataclass import dataclass

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
    blocks: Sequence[int], work: ThreadWork, launch: Launch, other: ThreadWork, other_launch: Launch
) -> Sequence[int]:
    """The blocks of the other launch, which has one round, that process the elements of these blocks.

    >>> blocks_of_same_work([1], ThreadWork(4, 2), Launch((4, 1, 1), (32, 1, 1)), ThreadWork(2), Launch((16, 1, 1), (32, 1, 1)))
    [2, 3, 10, 11]
    """
    own, theirs = work.elements * launch.threads, other.elements * other_launch.threads
    found = set[int]()
    for block in blocks:
        for number in range(work.rounds):
            first = (number * launch.blocks + block) * own
            found.update(range(first // theirs, (first + own - 1) // theirs + 1))
    return sorted(block for block in found if block < other_launch.blocks)
