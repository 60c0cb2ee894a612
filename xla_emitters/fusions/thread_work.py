"""What one thread of a loop kernel computes: neighbouring elements in each round, and how many rounds.

    bf16[6,512,4096] on h200      XLA's choice   4 x 1    one access of 8 bytes
                                  candidates     4 x 2    two accesses of 8 bytes, a whole grid apart
                                                 8 x 1    one access of 16 bytes
                                                 8 x 2    two accesses of 16 bytes, a whole grid apart

XLA's choice is a rule (`unroll.py`). The candidates are what `--tune price` prices beside it: they have more bytes under way or fewer
instructions an element, and may cost registers, occupancy or half-used sectors. Each element is computed by the same code, so that no
bit of a result depends on the choice. There are no others for code too long to repeat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xla_emitters.device import Device
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.fusions.unroll import ACCESS_BITS, may_unroll
from xla_emitters.fusions.view import FusionView
from xla_emitters.program import Launch

ROUNDS = (1, 2)
NARROWEST_BITS, WIDEST_BITS = 64, 128
"""Of one access before sm_100, whose widest is `ACCESS_BITS`. Narrower accesses than 8 bytes need more instructions for the same bytes."""


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
        """Elements of a thread."""
        return self.elements * self.rounds

    def __str__(self) -> str:
        return f"{self.rounds} x {self.elements}" if self.rounds > 1 else str(self.elements)


def thread_works(
    view: FusionView, device: Device, own_elements: int, elements: int | None = None, divisor: int | None = None
) -> Sequence[ThreadWork]:
    """XLA's choice first, then the other candidates; XLA's alone where no other can be better.

    own_elements  of a thread, by XLA's choice
    elements      how many the grid covers; None: those of the first result
    divisor       what the number of neighbouring elements divides; None: `elements`
    """
    own, elements = ThreadWork(own_elements), view.elements if elements is None else elements
    divisor = elements if divisor is None else divisor
    if not may_unroll(view):
        return (own,)
    types = [p.result.type for p in view.parameters if is_array(p.result.type)]
    arrays = [*view.result_types, *(each for each in types if math.prod(dims_of(each)) > 1)]
    bits = [element_of(each).bits for each in arrays]
    widest_access = ACCESS_BITS if device.compute_capability[0] >= 10 else WIDEST_BITS
    # A thread writes whole bytes; an access of n elements needs arrays whose size n divides.
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
    """The blocks of the other launch, of one round, that process what these blocks process.

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
