"""The steps of a program, and the numbers of the host that sizes become which are known only when it is called.

    Compute n2 = add n0, 63                     a number of the host, from numbers
    Compute n3 = floordiv n2, 64
    Allocate a4 f32[n0,n1]
    Launch main_kLoop_add_0 grid (n3, 1, 1): a0, a4, n1
    Call dot: a4, a1 -> a5
    Release a4
    Loop while.0: condition ..., while n7: body ...

`Program.bind` evaluates all numbers that follow from the sizes of the arguments, once for each set of sizes; what is left are steps
whose extents are integers, and the numbers that only data decide. `runtime/walk` runs them.

An array is a slot: a place that holds memory from `Allocate` (or the caller) to `Release`. Several slots may name the same memory
(`View`). A step that moves a slot's memory to another slot leaves the first one without.

Of a fusion or a module all sizes are integers, and arrays are flat, their elements in the order of HLO's layout.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class NumberSlot:
    """A number of the host, by its index: assigned by one step, read by later ones."""

    index: int

    def __str__(self) -> str:
        return f"n{self.index}"


Extent: TypeAlias = int | NumberSlot
"""A size, an index or a truth value: an integer, or a number of the host."""


@dataclass(frozen=True)
class ArrayPlace:
    """An array as a step reads or writes it.

    slot       number of the slot that holds its memory
    dtype      HLO's name of its element type
    shape      row major
    on_device  whether it is in the device's memory; otherwise in the host's
    """

    slot: int
    dtype: str
    shape: tuple[Extent, ...]
    on_device: bool

    def __str__(self) -> str:
        return f"a{self.slot} {self.dtype}[{','.join(map(str, self.shape))}]{'' if self.on_device else ' host'}"


@dataclass(frozen=True)
class Compute:
    """Assigns a row of FUNCTIONS, applied to numbers."""

    result: NumberSlot
    function: str
    operands: tuple[Extent, ...]


@dataclass(frozen=True)
class Dimension:
    """Assigns a size of the array that a slot holds."""

    result: NumberSlot
    slot: int
    axis: Extent


@dataclass(frozen=True)
class Load:
    """Assigns an element of an array. The host waits for one of the device."""

    result: NumberSlot
    array: ArrayPlace
    index: tuple[Extent, ...]


@dataclass(frozen=True)
class Store:
    """Sets an element of an array of the host."""

    array: ArrayPlace
    index: tuple[Extent, ...]
    value: Extent


@dataclass(frozen=True)
class Allocate:
    """Gives a slot memory, uninitialized."""

    array: ArrayPlace


@dataclass(frozen=True)
class Fill:
    """Gives a slot of the host memory with these elements."""

    array: ArrayPlace
    data: bytes


@dataclass(frozen=True)
class View:
    """Gives the memory of `source` a second name, in another shape of as many elements."""

    source: ArrayPlace
    target: ArrayPlace


@dataclass(frozen=True)
class Release:
    """Ends a name; memory without names is free."""

    slot: int


@dataclass(frozen=True)
class Copy:
    """Copies the bytes of `source` to `target`, an array of as many bytes; the element types may differ."""

    source: ArrayPlace
    target: ArrayPlace


@dataclass(frozen=True)
class Move:
    """Moves memory between slots, all at once: (source, target) pairs. A source that is no target is left without memory."""

    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Call:
    """An op that no kernel computes: a library's function, a copy, arithmetic of the host, a check.

    op       its number in the program's `ops`
    name     of the instruction
    outward  whether it does something besides writing its results: each run does it, with known operands too
    """

    op: int
    name: str
    reads: tuple[ArrayPlace, ...]
    writes: tuple[ArrayPlace, ...]
    outward: bool = False


@dataclass(frozen=True)
class Launch:
    """A kernel on arrays and numbers, in the order of its parameters. A grid without blocks launches nothing."""

    kernel: str
    grid: tuple[Extent, Extent, Extent]
    block: tuple[Extent, Extent, Extent]
    shared_bytes: Extent
    arguments: tuple[ArrayPlace | Extent, ...]


@dataclass(frozen=True)
class Recurrence:
    """How often a loop runs, where small arrays of its state alone decide.

    state     the slots of these arrays
    text      HLO: a computation of them that returns whether the loop goes on, and what they become
    is_exact  whether they are the same on every machine
    """

    state: tuple[int, ...]
    text: str
    is_exact: bool


@dataclass(frozen=True)
class Loop:
    """Runs `condition`; while `holds` is then true, `body` and `condition` again. Bound steps of a loop that counts have no condition.

    carried   slots that the body changes, or whose memory it replaces
    assigned  numbers that the body replaces; they have values before
    trips     how often the body runs, if known
    ends      what ends it, if numbers of its state alone do
    decides   those of `carried` on which its end depends; None: not known
    """

    name: str
    condition: tuple[Step, ...]
    holds: Extent
    body: tuple[Step, ...]
    carried: tuple[int, ...]
    assigned: tuple[int, ...] = ()
    trips: int | None = None
    ends: Recurrence | None = None
    decides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Branch:
    """Runs the branch with the number `selector`, the last one for all other numbers.

    results  slots to which each branch moves memory
    chosen   numbers that each branch assigns
    """

    name: str
    selector: Extent
    branches: tuple[tuple[Step, ...], ...]
    results: tuple[int, ...]
    chosen: tuple[int, ...] = ()


Step: TypeAlias = (
    Compute | Dimension | Load | Store | Allocate | Fill | View | Release | Copy | Move | Call | Launch | Loop | Branch
)


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def _select(condition: int, a: int, b: int) -> int:
    return a if condition else b


def _test(holds: Callable[[int, int], bool]) -> Callable[[int, int], int]:
    return lambda a, b: int(holds(a, b))


def _quotient(a: int, b: int) -> int:
    """Rounds towards zero; x / 0 has all bits set, as in HLO."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rest(a: int, b: int) -> int:
    """What `_quotient` leaves, with the sign of the first operand."""
    return a - b * _quotient(a, b) if b else a


def _in_bits(function: Callable[..., int], bits: int, least: int) -> Callable[..., int]:
    """The function in so many bits, with `least` as the least number."""
    modulus, most = 1 << bits, least + (1 << bits) - 1

    def wrapped(*operands: int) -> int:
        value = function(*operands)
        return value if least <= value <= most else (value - least) % modulus + least

    return wrapped


_EXACT: Mapping[str, Callable[..., int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floordiv": int.__floordiv__,
    "ceildiv": _ceildiv,
    "remainder": operator.mod,  # of sizes, which are not negative
    "minimum": min,
    "maximum": max,
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
    "eq": _test(operator.eq),
    "ne": _test(operator.ne),
    "lt": _test(operator.lt),
    "le": _test(operator.le),
    "gt": _test(operator.gt),
    "ge": _test(operator.ge),
    "select": _select,
    "copy": operator.index,
}
_WRAPPING: Mapping[str, Callable[..., int]] = {
    **{name: _EXACT[name] for name in ("add", "subtract", "multiply", "copy")},
    **{"quotient": _quotient, "rest": _rest},
}
INTEGERS: Mapping[str, tuple[int, int]] = {
    f"{letter}{bits}": (bits, -(1 << bits - 1) if letter == "s" else 0) for letter in "su" for bits in (8, 16, 32, 64)
}
"""HLO's integer types: bits, and the least number."""
FUNCTIONS: Mapping[str, Callable[..., int]] = {
    **_EXACT,
    **{
        f"{name}.{kind}": _in_bits(function, *form)
        for name, function in _WRAPPING.items()
        for kind, form in INTEGERS.items()
    },
}
"""All arithmetic on numbers of the host: sizes, indices and truth values, which 64 bits hold. Elements of arrays wrap around in their type:
`add.s32`; `quotient.s32` and `rest.s32` divide as HLO does."""


DIVISIONS = frozenset(("floordiv", "ceildiv", "remainder"))
"""Those of FUNCTIONS that have no value for a second operand of zero."""


def steps_within(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps and the steps inside them, in program order."""
    for step in steps:
        yield step
        for inside in lists_in(step):
            yield from steps_within(inside)


def lists_in(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The lists of steps in a loop or a branch."""
    match step:
        case Loop():
            return step.condition, step.body
        case Branch():
            return step.branches
        case _:
            return ()


def rewritten(steps: Sequence[Step], each: Callable[[Step], Iterable[Step]]) -> tuple[Step, ...]:
    """What `each` makes of steps, those inside a step before it. Lists inside lists nest too deeply for a recursion."""
    done = dict[int, tuple[Step, ...]]()  # the lists by their identity
    waiting: list[Sequence[Step]] = [steps]
    while waiting:
        inside = [inner for step in waiting[-1] for inner in lists_in(step) if id(inner) not in done]
        if inside:
            waiting += inside
            continue
        made = list[Step]()
        for step in waiting[-1]:
            match step:
                case Loop():
                    made += each(replace(step, condition=done[id(step.condition)], body=done[id(step.body)]))
                case Branch():
                    made += each(replace(step, branches=tuple(done[id(branch)] for branch in step.branches)))
                case _:
                    made += each(step)
        done[id(waiting.pop())] = tuple(made)
    return done[id(steps)]


def moved_memory(steps: Sequence[Step]) -> dict[int, int]:
    """Slot -> the slot whose memory a step moves to it; without the steps inside of others."""
    return {target: source for step in steps if isinstance(step, Move) for source, target in step.pairs}


def parts_of(step: Step) -> Iterator[ArrayPlace | NumberSlot]:
    """The places and the numbers among a step's fields, without the number that it assigns, and without the steps inside it."""
    for name in step.__dataclass_fields__:
        if name != "result":
            yield from _parts(getattr(step, name))


def _parts(value: object) -> Iterator[ArrayPlace | NumberSlot]:
    if isinstance(value, ArrayPlace | NumberSlot):
        yield value
    elif isinstance(value, tuple):
        for each in cast("tuple[object, ...]", value):
            yield from _parts(each)


def weighted(steps: Sequence[Step], times: int = 1) -> Iterator[tuple[Step, int]]:
    """Steps and those inside them, with how often one run executes each: a loop of unknown length counts once, and every branch does."""
    for step in steps:
        yield step, times
        times_inside = times * (step.trips or 1) if isinstance(step, Loop) else times
        for inside in lists_in(step):
            yield from weighted(inside, times_inside)


def peak_of_temporaries(steps: Sequence[Step], size: Callable[[int], int]) -> int:
    """The largest total size of temporaries at one time, from allocation to release; `size` returns a slot's bytes."""
    most = now = 0
    for step in steps:
        match step:
            case Allocate(array):
                now += size(array.slot)
            case Release(slot):
                now -= size(slot)
            case _:
                pass
        most = max([most, now, *(now + peak_of_temporaries(inside, size) for inside in lists_in(step))])
    return most
