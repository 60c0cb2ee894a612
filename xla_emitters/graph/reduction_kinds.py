"""Classifies reductions by memory layout: those for the reduction emitter, and those that share a kernel.

    reduce f32[13,1051,321], dimensions={1}   column [13, 1051, 321]   threads side by side read neighbours, each sums its column
    reduce f32[64,100,32,8], dimensions={0,2,3}  row [64, 100, 256]    of [a, b, c], a and c are reduced, b is kept: threads share a row
    reduce f32[8,16,32,64], dimensions={0,2}  neither                  element by element

The reduction emitter is used where a warp has enough work: rows of at least 32 or of a divisor of 32, columns long enough for their width.
A reduction that needs several blocks per result (a row above 16384, a column above 4096) would race between blocks and is not a hero.
Source: docs/reference/2 1.8, 2.4.0-2.4.2; XLA reduction_utils.cc, reduction.cc.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, minor_to_major, type_text
from xla_emitters.dtypes import Kind
from xla_emitters.graph.heroes import find_non_trivial_hero
from xla_emitters.graph.refusals import supported_view
from xla_emitters.graph.view import FusionView, once_per_view
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:  # asked for by opcode: most fusions have none
    from xla_emitters.dialects.hlo.reductions import ReduceOp

WARP = 32
MOST_MAJOR_IN_ROW = 8
"""Slices of the major reduced dimension that one thread of a row reduction sums."""
ELEMENTS_PER_THREAD = 16
"""The most elements that a thread of a row reduction sums along the minor reduced dimension."""
LONGEST_ROW = ELEMENTS_PER_THREAD * 1024
"""Elements that one block sums along the minor reduced dimension."""
LONGEST_COLUMN = 128 * WARP
"""Elements that one block sums down a column: 128 per warp."""
ABSENT = 2**31 - 1
"""The value of `input_bits` and `output_bits` if there is no array."""


@dataclass(frozen=True)
class Reduction:
    """A reduction over three dims in the order of memory, slowest first.

    is_row  whether dims[0] and dims[2] are reduced and dims[1] is kept; otherwise only dims[1] is reduced
    dims    sizes of the three dims

    >>> Reduction(True, (1, 8, 2048)).kept
    (8,)
    """

    is_row: bool
    dims: tuple[int, int, int]

    @property
    def kept(self) -> tuple[int, ...]:
        """Sizes of the kept dims: those of the result, in the order of memory."""
        return (self.dims[1],) if self.is_row else (self.dims[0], self.dims[2])

    @property
    def is_race_free(self) -> bool:
        """Whether one block computes each result."""
        major, middle, minor = self.dims
        if self.is_row:
            return minor <= LONGEST_ROW and major <= MOST_MAJOR_IN_ROW
        return middle <= LONGEST_COLUMN

    @property
    def pays(self) -> bool:
        """Whether several threads per result are faster than one."""
        _, middle, minor = self.dims
        if self.is_row:
            return minor >= WARP or (minor > 0 and WARP % minor == 0)
        return not (
            middle < WARP
            or (middle < 2 * WARP and minor < WARP)
            or (middle < 4 * WARP and minor < 8)
            or (middle < 8 * WARP and minor < 3)
        )

    @cached_property
    def split(self) -> Split | None:
        """The two consecutive reductions that replace a reduction which one block cannot compute; None if one block can.

        >>> Reduction(False, (1, 8192, 8192)).split
        Split(outer=64, inner=128, first=Reduction(is_row=False, dims=(64, 128, 8192)), second=Reduction(is_row=False, dims=(1, 64, 8192)))

        Source: docs/reference/2 1.8, "Summary of that pass".
        """
        major, middle, minor = self.dims
        if self.is_race_free:
            return None
        if self.is_row and major > MOST_MAJOR_IN_ROW:
            second = Reduction(True, (1, 1, major)) if middle == 1 else Reduction(False, (1, major, middle))
            return Split(1, minor, Reduction(True, (1, major * middle, minor)), second)
        return self._in_parts(*_factors(self.length, self.is_row))

    @property
    def length(self) -> int:
        """Elements along the faster reduced dim, which a split divides."""
        return self.dims[2] if self.is_row else self.dims[1]

    def split_in(self, parts: int) -> Split:
        """As `split`, but into `parts` parts, the last one padded if they are not equal.

        >>> Reduction(True, (1, 8, 16384)).split_in(32)
        Split(outer=32, inner=512, first=Reduction(is_row=True, dims=(1, 256, 512)), second=Reduction(is_row=True, dims=(1, 8, 32)))
        """
        return self._in_parts(parts, -(-self.length // parts))

    def _in_parts(self, outer: int, inner: int) -> Split:
        major, middle, minor = self.dims
        if self.is_row:
            first = Reduction(True, (1, major * middle * outer, inner))
            return Split(outer, inner, first, Reduction(True, (major, middle, outer)))
        first = Reduction(False, (major * outer, inner, minor))
        return Split(outer, inner, first, Reduction(False, (major, outer, minor)))

    def longest_chain(self, bits: int) -> int:
        """The most combinations that one element passes through: in its thread, over the lanes of warps, and with the initial value.

        bits  of an element of the narrowest array that is read or written: threads read neighbours at once, up to eight bytes

        A thread's first element is not combined with another one, and lanes without elements do not change the result.

        >>> Reduction(True, (1, 8, 2048)).longest_chain(32), Reduction(True, (1, 1024, 4)).longest_chain(32)
        (23, 6)
        """
        if (split := self.split) is not None:
            return split.first.longest_chain(bits) + split.second.longest_chain(bits)
        major, middle, minor = self.dims
        shuffles = WARP.bit_length() - 1
        if not self.is_row:
            # A block of a narrow column takes at least four rows at once; a block of a wide one takes a row per warp.
            rows = min(WARP, 4 * WARP // minor) if WARP % minor == 0 else WARP
            return -(-middle // rows) + shuffles
        vectors = [vector for vector in (1, 2, 4, 8, 16) if vector == 1 or vector * bits <= 64]
        threads = WARP * -(-minor // (WARP * ELEMENTS_PER_THREAD))
        alone = [vector for vector in vectors[:3] if minor % vector == 0 and (vector == 1 or vector * threads <= minor)]
        in_thread = max(vector * -(-minor // (vector * threads)) for vector in alone)
        longest = major * in_thread + shuffles + (threads // WARP - 1).bit_length()
        # Rows so short that a warp holds several.
        together = [vector for vector in vectors if minor & (minor - 1) == 0 and vector <= minor <= WARP * vector]
        return max([longest, *(major * vector + (minor // vector).bit_length() - 1 for vector in together)])

    def __str__(self) -> str:
        return f"{'row' if self.is_row else 'column'} [{', '.join(map(str, self.dims))}]"


@dataclass(frozen=True)
class Split:
    """Two reductions that replace one: the first of runs of `inner` elements, the second of the `outer` partial results.

    inner, outer  factors whose product is the length, padded if necessary
    """

    outer: int
    inner: int
    first: Reduction
    second: Reduction


def _factors(length: int, is_row: bool) -> tuple[int, int]:
    """Two similar factors of `length` with the least padding; powers of two are preferred.

    The first reduction, which reads all elements, gets the larger factor, unless its rows could then not be read in pairs.
    """
    bound = LONGEST_ROW if is_row else LONGEST_COLUMN
    most = min(math.isqrt(length), bound)

    def cost(factor: int) -> tuple[int, bool, int]:
        return -(-length // factor) * factor - length, bool(factor & (factor - 1)), -factor

    small = min(range(most, most // 2, -1), key=cost)
    large = -(-length // small)
    is_turned = large <= bound and (not is_row or large % 2 == 0 or small % 2 == 1)
    return (small, large) if is_turned else (large, small)


def is_reduce(op: HloOp) -> TypeGuard[ReduceOp]:
    """Whether an instruction is a reduction."""
    return op.opcode == "reduce"


def describe(reduce: ReduceOp) -> Reduction | None:
    """The reduction as one over at most three dims; None if neither the kept nor the reduced dims are contiguous in memory."""
    array = reduce.operands[0].type
    sizes, goes = dims_of(array), set(integers(reduce.dimensions))
    order = tuple(reversed(minor_to_major(array)))
    kept = [place for place, dim in enumerate(order) if dim not in goes]
    gone = [place for place, dim in enumerate(order) if dim in goes]
    if not kept:
        return Reduction(True, (1, 1, math.prod(sizes)))
    if _are_consecutive(kept):
        major, middle, minor = _parted(order, sizes, kept)
        if middle == 1:
            return Reduction(True, (1, 1, major * minor))
        return Reduction(False, (1, major, middle)) if minor == 1 else Reduction(True, (major, middle, minor))
    if _are_consecutive(gone):
        major, middle, minor = _parted(order, sizes, gone)
        return Reduction(True, (1, major, middle)) if minor == 1 else Reduction(False, (major, middle, minor))
    return None


def _are_consecutive(places: Sequence[int]) -> bool:
    return places[-1] - places[0] + 1 == len(places)


def _parted(order: Sequence[int], sizes: Sequence[int], middle: Sequence[int]) -> tuple[int, int, int]:
    """Number of elements over the dims before, in and after `middle`."""
    first, last = middle[0], middle[-1] + 1
    major, inside, minor = (
        math.prod(sizes[dim] for dim in part) for part in (order[:first], order[first:last], order[last:])
    )
    return major, inside, minor


def why_not_hero(hero: HloOp, *, are_split: bool = False) -> str | None:
    """None if `hero` is a reduction that gets a kernel; otherwise the reason."""
    if not is_reduce(hero):
        return f"%{hero.instruction_name.data} ('{hero.opcode}') is not a reduce"
    found = describe(hero)
    name = f"%{hero.instruction_name.data}"
    if found is None:
        return f"neither the kept nor the reduced dimensions of {name} are contiguous in memory"
    if not found.pays:
        return f"{name} is a {found}: too little work for a warp"
    if not found.is_race_free and not are_split:
        return f"{name} is a {found}: more than one block can reduce"
    return None


@dataclass(frozen=True, eq=False)
class FusionReductions:
    """The reductions that one kernel of a fusion computes.

    shape        of all reductions
    roots        of the fusion
    heroes       per root; the root itself if it is a side output
    groups       the numbers of the roots, in groups with no operands in common
    input_bits, output_bits  of an element of the narrowest parameter, and of the narrowest root that is an array; ABSENT if there is none
    """

    shape: Reduction
    roots: tuple[HloOp, ...]
    heroes: tuple[HloOp, ...]
    groups: tuple[tuple[int, ...], ...]
    input_bits: int
    output_bits: int

    def hero_of(self, root: int) -> ReduceOp | None:
        """The reduction from which root `root` is computed; None for a side output."""
        hero = self.heroes[root]
        return hero if is_reduce(hero) and describe(hero) == self.shape and self.shape.pays else None

    def heroes_of(self, group: Iterable[int]) -> tuple[ReduceOp, ...]:
        """The distinct reductions of a group of roots."""
        found = (self.hero_of(root) for root in group)
        return tuple(dict.fromkeys(hero for hero in found if hero is not None))

    @property
    def reduce_heroes(self) -> tuple[ReduceOp, ...]:
        """The distinct reductions."""
        return self.heroes_of(range(len(self.roots)))


@once_per_view
def find_reductions(view: FusionView, *, are_split: bool = False) -> FusionReductions | str:
    """The reductions that are heroes, if they can share a kernel; otherwise why not.

    are_split  also accept reductions that one block cannot compute, which are split over several kernels
    """
    roots = view.roots
    heroes = tuple(find_non_trivial_hero(view, root) for root in roots)
    reasons = [why_not_hero(hero, are_split=are_split) for hero in heroes]
    if None not in reasons:
        return _why_no_heroes(view, heroes, reasons)
    first = heroes[reasons.index(None)]
    assert is_reduce(first)
    shape = describe(first)
    assert shape is not None
    read = math.prod(dims_of(first.operands[0]))
    if not read:
        return f"%{first.instruction_name.data} reads no elements"
    for root, hero, reason in zip(roots, heroes, reasons, strict=True):
        name = f"%{root.instruction_name.data}"
        if reason is not None:
            if not is_array(root.result.type) or math.prod(dims_of(root.result)) != read:
                return f"{reason}, and {name} is {type_text(root.result.type)} where {read} elements are read"
        elif is_reduce(hero) and (other := describe(hero)) != shape:
            return f"reductions of two kinds: {shape} and, for {name}, {other}"
    arrays = [root.result.type for root in roots if is_array(root.result.type)]
    return FusionReductions(
        shape,
        roots,
        heroes,
        group_roots(view, roots, [reason is None for reason in reasons]),
        narrowest_bits(view.parameter_types),
        narrowest_bits(arrays),
    )


def _why_no_heroes(view: FusionView, heroes: Sequence[HloOp], reasons: Sequence[str | None]) -> str:
    """The most specific reason: why a reduce is not a hero, rather than that another op is not a reduce."""
    of_reduces = (reason for hero, reason in zip(heroes, reasons, strict=True) if is_reduce(hero) and reason)
    if (reason := next(of_reduces, None)) is not None:
        return reason
    is_inside = next(iter(view.with_opcode("reduce")), None) is not None
    return f"{reasons[0]}{', and a reduce is only found through instructions of one operand' if is_inside else ''}"


def chains_of_heroes(computation: ComputationOp) -> dict[ReduceOp, int]:
    """For the reductions that threads share: the number of successive combinations of an element. Empty if there is no kernel."""
    if (view := supported_view(computation)) is None:
        return {}
    shapes = {hero: shared_reduction(hero) for hero in (find_non_trivial_hero(view, root) for root in view.roots)}
    bits = narrowest_bits(
        [*view.parameter_types, *(root.result.type for root in view.roots if is_array(root.result.type))]
    )
    return {hero: shape.longest_chain(bits) for hero, shape in shapes.items() if shape and is_reduce(hero)}


def shared_reduction(hero: HloOp) -> Reduction | None:
    """The reduction of a hero, if it gets one or several kernels; else None."""
    return describe(hero) if is_reduce(hero) and why_not_hero(hero, are_split=True) is None else None


# ------------------------------------------------------------------------------------------------- groups


def group_roots(view: FusionView, roots: Sequence[HloOp], reduced: Sequence[bool]) -> tuple[tuple[int, ...], ...]:
    """The numbers of the roots, in groups with no operands in common: each group gets its own blocks.

    reduced  for each root, whether it is computed from a reduction

    All roots that are not reduced are in one group: one may be written where another is read. Roots that read the same
    parameter, or values computed from it, share a group, because two groups would read it twice. Scalars and constants may be read twice.
    """
    group = list(range(len(roots)))

    def merge(numbers: Sequence[int]) -> None:
        joined = {group[number] for number in numbers}
        for number, now in enumerate(group):
            if now in joined:
                group[number] = min(joined)

    merge([number for number, is_reduced in enumerate(reduced) if not is_reduced])
    reached = _roots_reached(roots)
    for op in view.instructions:
        numbers = sorted(reached.get(op, ()))
        if _is_cheap(op):
            first = next((number for number in numbers if reduced[number]), None)
            numbers = [number for number in numbers if not reduced[number] or number == first]
        merge(numbers)
    ordered = list(dict.fromkeys(group))
    return tuple(tuple(n for n in range(len(roots)) if group[n] == found) for found in ordered)


def _roots_reached(roots: Sequence[HloOp]) -> dict[HloOp, set[int]]:
    """For each instruction, the roots that need it."""
    reached = dict[HloOp, set[int]]()
    for number, root in enumerate(roots):
        pending = [root]
        while pending:
            op = pending.pop()
            if number not in reached.setdefault(op, set()):
                reached[op].add(number)
                pending += [operand.owner for operand in op.operands if isinstance(operand.owner, HloOp)]
    return reached


def _is_cheap(op: HloOp) -> bool:
    """Whether it is a constant, a scalar (not an array of one element), or a broadcast of one."""
    if op.opcode == "broadcast":
        operand = op.operands[0].owner
        return isinstance(operand, HloOp) and _is_cheap(operand)
    return isinstance(op, ConstantOp) or (is_array(op.result.type) and not dims_of(op.result))


# ------------------------------------------------------------------------------------------------- widths


def narrowest_bits(types: Iterable[Attribute]) -> int:
    """Storage bits of an element of the narrowest array among `types`; ABSENT if there is none."""
    return min((element_of(array_type).bits for array_type in types), default=ABSENT)


def vector_size(minor: int, threads: int, input_bits: int, heroes: Iterable[ReduceOp]) -> int:
    """The number of neighbours along the minor dim that a thread reads at once: 1, 2 or 4.

    minor       size of that dim
    threads     how many threads are side by side along it
    input_bits  of the narrowest parameter
    Eight bytes at most: wider loads leave too few threads with work.
    """
    is_complex = any(element_of(array).kind is Kind.COMPLEX for hero in heroes for array in hero.arrays)
    if minor % 2 or 2 * threads > minor or is_complex or input_bits >= 64:
        return 1
    if input_bits >= 32 or 4 * threads > minor or minor % 4:
        return 2
    return 4
