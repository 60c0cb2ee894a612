"""Finds the op to blame for a wrong element: compares the IR before and after a pass, and what the element's thread computes in each.

    before   %3 = arith.subf %1, %2      0.25        one thread's values
    after    %3 = arith.subf %2, %1     -0.25   <-   new: no op before has this name, these attributes and these operands; and
             %4 = math.exp %3            0.778       the thread did not compute its value before. %4 is new only through its operand

An op is *new* if the IR before has none, or fewer, with its name, attributes and operands, compared recursively. Of the new ops that the
thread runs, the one named is the first with a value that the thread had not computed for the same HLO instructions, if possible of an
instruction that has lost a value; if every value is known, the first whose operands are not new themselves. If a pass only removed ops, the
first removed op is named. Code that fails has no values to compare: none is named if most ops are new. After emission every op is
new: there the first HLO instruction is named for which the thread lacks a value of the reference. The op is a hint for a reader, who gets
the diff too: for a pass that rewrites everything it can, the hint can be too early.
"""

from __future__ import annotations

import difflib
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import SymbolOpInterface

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.locations import instructions_of, place_of
from xla_emitters.dialects.mlir_printer import print_ir_with_lines
from xla_emitters.dtypes import Array
from xla_emitters.errors import InternalError, XlaEmittersError
from xla_emitters.graph.entry import entry_of
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.arrays import differing
from xla_emitters.runtime.reference.reference import evaluate, own_value
from xla_emitters.runtime.simt.follow import Number
from xla_emitters.text.hlo import print_hlo

MOST_LINES = 24
"""Most lines of the diff that are shown."""

Computed = Sequence[tuple[Operation, tuple[Number, ...]]]
"""The type of `LaneValues.computed`."""


@dataclass(frozen=True)
class Element:
    """The first wrong element.

    result  the array, as the program numbers it
    index   in the logical array
    was     value before the pass, `now` after it; `wanted` in the reference: as text
    """

    result: str
    index: tuple[int, ...]
    was: str
    now: str
    wanted: str


@dataclass(frozen=True)
class Thread:
    """The thread that writes an element, or that wrote it before the pass: linear numbers, and coordinates in x, y, z.

    writes  which element, where it is not that of the result: a program's kernel can be wrong long before the results are
    """

    block: int
    thread: int
    block_id: tuple[int, int, int]
    thread_id: tuple[int, int, int]
    writes: str = ""

    @staticmethod
    def of(lane: tuple[int, int], launch: LaunchDimensions, writes: str = "") -> Thread:
        block, thread = lane
        return Thread(block, thread, _coordinates(block, launch.grid), _coordinates(thread, launch.block), writes)


@dataclass(frozen=True)
class Blame:
    """The change, as it is shown.

    op            the op as text, in one line; "" if none can be named
    is_gone       whether it is in the IR before, but not in the one after
    instructions  the HLO instructions that it comes from
    place         of these in the HLO text
    diff          lines of both texts around the op, with "-", "+" and " "
    """

    op: str = ""
    is_gone: bool = False
    instructions: tuple[str, ...] = ()
    place: str = ""
    diff: tuple[str, ...] = ()


@dataclass(frozen=True)
class Culprit:
    """The first pass after which something is wrong.

    kind       "numbers"; "execution" if running the kernel fails (a race, an access out of bounds); "crash" if the pass itself fails
    kernel     name; "" for passes on HLO, which see all kernels
    stage      the stage that the pass is part of
    name       of the pass; "emit" for emission; "print and parse" if HLO text does not read back; "LLVM" behind the last pass
    number     of the pass in its list, from 1; emission is 0
    passes     number of passes in the list
    summary    what is wrong, in one line, and `details` in several
    blame      the op that the pass changed, and the diff around it
    element, thread  None if not known
    executed   how often a kernel was executed, or HLO evaluated, to find it
    alternatives  passes that may be wrong instead: the IR between them cannot be executed
    """

    kind: str
    kernel: str
    stage: str
    name: str
    number: int
    passes: int
    summary: str
    details: tuple[str, ...] = ()
    blame: Blame = field(default_factory=Blame)
    element: Element | None = None
    thread: Thread | None = None
    executed: int = 0
    error: InternalError | None = None
    alternatives: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        data = {name: value for name, value in asdict(replace(self, error=None)).items() if name != "error"}
        return {**data, "pass": data.pop("name")}


@dataclass(frozen=True)
class Search:
    """The result of a bisection.

    culprit   None if nothing was found
    executed  how often a kernel was executed, or HLO evaluated
    kernels   number of kernels that were examined
    last      of a program: what the last comparison found
    device    of a module for several devices: where the culprit was found
    """

    culprit: Culprit | None
    executed: int
    kernels: int
    last: str = ""
    device: int | None = None


class Found(Exception):
    """Ends the compilation early: the culprit is known."""

    def __init__(self, culprit: Culprit) -> None:
        super().__init__(culprit.summary)
        self.culprit = culprit


def _coordinates(number: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def blamed(
    before: ModuleOp, after: ModuleOp, computed_before: Computed, computed_after: Computed, *, by_values: bool = False
) -> Blame:
    """The op that a pass changed, from the IR before and after it and the values that the wrong element's thread computes in each.

    by_values  every line is another one: only values say which op it is
    """
    op = changed_op(before, after, computed_before, computed_after, by_values=by_values)
    if op is not None:
        return _blame(op, False, diff_around(before, after, op))
    gone = changed_op(after, before, computed_after, computed_before)
    if gone is not None:
        return _blame(gone, True, diff_around(before, after, gone))
    return Blame(diff=diff_around(before, after, None))


def blamed_emission(
    computation: ComputationOp, inputs: Sequence[Array], result: int, index: tuple[int, ...], computed: Computed
) -> Blame:
    """The HLO instruction that emitted code computes wrong, found by comparing with the reference's values on the same inputs.

    result, index  the wrong element: number of the root, and index in it
    """
    known = _by_name(_values_in_order(computation, inputs, own_value))
    places = elements_needed(computation, result, index)
    made = defaultdict[str, list[tuple[Operation, Number]]](list)
    for op, numbers in computed:
        for name in instructions_of(op):
            made[name] += [(op, number) for number in numbers]
    for name, arrays in known.items():
        found = [(op, number) for op, number in made[name] if _is_of(op, arrays[0])]
        wanted = [array[place] for array in arrays for place in places.get(name, ())] or arrays
        if found and not any(_holds(values, number) for values in wanted for _, number in found):
            return _blame(found[-1][0], False, ())
    return Blame()


def elements_needed(computation: ComputationOp, result: int, index: tuple[int, ...]) -> dict[str, set[tuple[int, ...]]]:
    """Instruction -> its elements that one element of a root needs; the search stops at an op that needs a range of elements."""
    root = computation.roots[result].owner
    assert isinstance(root, HloOp)
    needed = defaultdict[str, set[tuple[int, ...]]](set, {root.instruction_name.data: {index}})
    for op in reversed(list(computation.instructions)):
        try:
            maps = op.output_to_input() if needed.get(op.instruction_name.data) else ()
        except XlaEmittersError:
            continue
        for operand, index_map in zip(op.operands, maps, strict=False):
            owner = operand.owner
            if isinstance(owner, HloOp) and not index_map.num_symbols:
                for place in needed[op.instruction_name.data]:
                    if index_map.constraints_satisfied(place):
                        needed[owner.instruction_name.data].add(tuple(map(int, index_map.evaluate(place))))
    return needed


def _is_of(op: Operation, array: Array) -> bool:
    """Whether the op computes elements, not indices, judging by the type of its result."""
    is_float = any("f" in str(result.type).split("<")[0] for result in op.results)
    return is_float == ("float" in array.dtype.name) and not any("index" in str(r.type) for r in op.results)


def _holds(values: Any, number: Number) -> bool:
    """Whether a value equals the number, or is near it: the kernel may round differently."""
    with np.errstate(all="ignore"):
        wide = np.asarray(values).astype(np.complex128 if isinstance(number, complex) else np.float64)
        return bool(np.isclose(wide, number, rtol=1e-2, atol=0, equal_nan=True).any())


def _blame(op: Operation, is_gone: bool, diff: tuple[str, ...]) -> Blame:
    return Blame(_one_line(op), is_gone, instructions_of(op), place_of(op), diff)


def _one_line(op: Operation) -> str:
    """The op without its regions."""
    module: Operation = op
    while (parent := module.parent_op()) is not None:
        module = parent
    text, starts = print_ir_with_lines(module)
    line = next((line for line, other in starts if other is op), None)
    return op.name if line is None else text.split("\n")[line].strip()


# ---- what is new -----------------------------------------------------------------------------------------


def changed_op(
    before: ModuleOp, after: ModuleOp, computed_before: Computed, computed_after: Computed, *, by_values: bool = False
) -> Operation | None:
    """The op of `after` to blame, or None if it has no new op. by_values: as for `blamed`"""
    old, signatures = Counter(signatures_of(before).values()), signatures_of(after)
    left, new = Counter(old), dict[Operation, None]()
    for op, signature in signatures.items():
        left[signature] -= 1
        if left[signature] < 0:
            new[op] = None
    # Functions and globals are new if their attributes are; the ops in them say more.
    new = {op: None for op in new if op.get_trait(SymbolOpInterface) is None} or new
    if not new or not (computed_before or computed_after or len(new) * 2 < len(signatures)):
        # Without values, one of many new ops is not more likely to be wrong than another.
        return None
    known, computed = values_by_instruction(computed_before), values_by_instruction(computed_after)
    lost = {name for name, values in known.items() if name and not values <= computed[""]}
    executed = dict.fromkeys(op for op, _ in computed_after if op in new)
    roots = [op for op in (*executed, *new) if not any(_definer(operand) in new for operand in op.operands)]
    if len(set(roots)) == 1 and not by_values:
        return roots[0]
    wrong = [op for op, numbers in computed_after if op in new and not _all_known(op, numbers, known)]
    instead = [op for op in wrong if lost.issuperset(instructions_of(op))]
    return next(iter((*instead, *wrong, *roots, *new)))


def _definer(value: SSAValue) -> Operation | None:
    return value.op if isinstance(value, OpResult) else None


def signatures_of(module: ModuleOp) -> dict[Operation, int]:
    """Op -> a hash of its name, attributes and operands, recursively; equal for equal computations in two modules."""
    found = dict[Operation, int]()
    arguments = dict[Block, tuple[object, int]]()

    def of_value(value: SSAValue) -> object:
        if isinstance(value, OpResult):
            return found.get(value.op), value.index
        assert isinstance(value, BlockArgument)
        if (place := arguments.get(value.block)) is None:
            holder, region = value.block.parent_op(), value.block.parent_region()
            number = list(region.blocks).index(value.block) if region is not None else 0
            place = arguments[value.block] = (found.get(holder) if holder is not None else None, number)
        return place, value.index

    for op in module.walk():
        own = (*sorted(op.properties.items()), *sorted(op.attributes.items()))
        types = tuple(result.type for result in op.results)
        found[op] = hash((op.name, own, types, tuple(map(of_value, op.operands))))
    return found


Known = Mapping[str, set[bytes]]
"""HLO instruction -> values, as bytes; "" -> all of them."""


def values_by_instruction(computed: Computed) -> Known:
    known = defaultdict[str, set[bytes]](set)
    for op, numbers in computed:
        for number in numbers:
            for name in ("", *instructions_of(op)):
                known[name].add(_bytes(number))
    return known


def _all_known(op: Operation, numbers: Iterable[Number], known: Known) -> bool:
    names = instructions_of(op) or ("",)
    return all(any(_bytes(number) in known.get(name, ()) for name in names) for number in numbers)


def _bytes(number: Number) -> bytes:
    """The same bytes for an integer in any width, and for all NaN."""
    match number:
        case int():
            return struct.pack("<Q", number & 0xFFFF_FFFF)
        case float():
            return b"nan" if number != number else struct.pack("<d", number)
        case _:
            return _bytes(number.real) + _bytes(number.imag)


# ---- the diff --------------------------------------------------------------------------------------------

_NAME = re.compile(r"%[\w.$\-]+(#\d+)?")


def diff_around(before: ModuleOp, after: ModuleOp, op: Operation | None) -> tuple[str, ...]:
    """The changed lines around `op`, which is in either module; without an op, the first change."""
    (old, old_starts), (new, new_starts) = print_ir_with_lines(before), print_ir_with_lines(after)
    at_old = next((line for line, other in old_starts if other is op), None)
    at_new = next((line for line, other in new_starts if other is op), None)
    return diff_of_texts(old, new, at_old, at_new)


def diff_of_texts(old: str, new: str, at_old: int | None = None, at_new: int | None = None) -> tuple[str, ...]:
    """The group of changed lines nearest to a line of either text, counted from 0; names of values count only if nothing else changes."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    unnamed = [[_NAME.sub("%", line) for line in lines] for lines in (old_lines, new_lines)]
    if unnamed[0] == unnamed[1]:
        unnamed = [old_lines, new_lines]  # only the order of operands changed
    # The exact algorithm for short texts only.
    matcher = difflib.SequenceMatcher(None, *unnamed, autojunk=len(old_lines) > 2000)
    groups = list(matcher.get_grouped_opcodes(2))
    if not groups:
        return ()

    def distance(group: Sequence[tuple[str, int, int, int, int]]) -> int:
        (_, i, _, j, _), (_, _, i_end, _, j_end) = group[0], group[-1]
        at, low, high = (at_new, j, j_end) if at_new is not None else (at_old, i, i_end)
        return 0 if at is None or low <= at < high else min(abs(low - at), abs(high - at))

    lines = [line for opcode in min(groups, key=distance) for line in _lines_of(opcode, old_lines, new_lines)]
    at = new_lines[at_new] if at_new is not None else old_lines[at_old] if at_old is not None else ""
    return _shortened(lines, at)


def _lines_of(opcode: tuple[str, int, int, int, int], old: Sequence[str], new: Sequence[str]) -> Iterable[str]:
    tag, i, i_end, j, j_end = opcode
    if tag == "equal":
        return [f"  {line}" for line in new[j:j_end]]
    return [*(f"- {line}" for line in old[i:i_end]), *(f"+ {line}" for line in new[j:j_end])]


def _shortened(lines: Sequence[str], at: str) -> tuple[str, ...]:
    """At most `MOST_LINES` lines around the line `at`."""
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    place = next((number for number, line in enumerate(lines) if line[2:] == at), 0)
    first = max(0, min(place - MOST_LINES // 2, len(lines) - MOST_LINES))
    shown = list(lines[first : first + MOST_LINES])
    before, after = first, len(lines) - first - MOST_LINES
    return (*([f"... {before} lines"] if before else []), *shown, *([f"... {after} lines"] if after else []))


# ---- passes on HLO ---------------------------------------------------------------------------------------


ValueOf = Callable[..., Any]
"""The parameter `value_of` of `evaluate`."""


def blamed_hlo(
    before: ModuleOp | None,
    after: ModuleOp,
    inputs: Sequence[Array],
    wanted: Sequence[Array],
    value_of: ValueOf = own_value,
) -> tuple[Blame, Element | None]:
    """The first instruction with a changed value, else the first new one, and the first wrong element of the results.

    value_of  returns the value of an instruction
    """
    results = evaluate(entry_of(after), inputs, value_of=value_of)
    element = next(_wrong_elements(results, wanted), None)
    new = print_hlo(after, of_program=True)
    if before is None:
        return Blame(), element
    values = _by_name(_values_in_order(entry_of(before), inputs, value_of))
    known = [array for arrays in values.values() for array in arrays]
    changed = [
        op
        for op, array in _values_in_order(entry_of(after), inputs, value_of)
        if not any(
            a.shape == array.shape and a.dtype == array.dtype and not differing(a, array).any()
            for a in values.get(op.instruction_name.data, known)
        )
    ]
    # New instructions may have new values and be right; a changed value of an old instruction is wrong.
    op = next((op for op in changed if op.instruction_name.data in values), next(iter(changed), None))
    old, lines = print_hlo(before, of_program=True), new.split("\n")
    if op is None:
        return Blame(diff=diff_of_texts(old, new)), element
    name = op.instruction_name.data
    at = next((number for number, line in enumerate(lines) if f"%{name} = " in line), 0)
    place = written_at(op)
    blame = Blame(lines[at].strip(), False, (name,), str(place) if place else "", diff_of_texts(old, new, None, at))
    return blame, element


def _wrong_elements(results: Sequence[Array], wanted: Sequence[Array]) -> Any:
    # A wrong pass may change the number of results, and their sizes: then there is no element to show.
    for number, (now, right) in enumerate(zip(results, wanted, strict=False)):
        if now.shape != right.shape:
            continue
        different = differing(now, right)
        if different.any():
            index = tuple(map(int, np.argwhere(different)[0]))
            yield Element(f"result {number}", index, str(right[index]), str(now[index]), str(right[index]))


def _values_in_order(
    computation: ComputationOp, inputs: Sequence[Array], value_of: ValueOf
) -> list[tuple[HloOp, Array]]:
    found = list[tuple[HloOp, Array]]()

    def remembered(op: Any, operands: Sequence[Any], call: Callable[..., Any]) -> Any:
        value: Any = value_of(op, operands, call)
        if isinstance(value, np.ndarray):
            found.append((op, cast(Array, value)))
        return cast(Any, value)

    evaluate(computation, inputs, value_of=remembered)
    return found


def _by_name(values: Iterable[tuple[HloOp, Array]]) -> dict[str, list[Array]]:
    found = dict[str, list[Array]]()
    for op, array in values:
        found.setdefault(op.instruction_name.data, []).append(array)
    return found
