"""Shrinks HLO or StableHLO text while a property persists: wrong numbers, a crash of ours, or the success of a command.

    fused {  300 instructions  }                           fused {
    ENTRY main { ... fusion(...) }        ->                 %v0 = f32[2] parameter(0)
                                        keep(text)           ROOT %v7 = f32[2] subtract(%v0, %v0)
                                                           } ...

    inlined     for a program: called functions are inlined into ENTRY
    alone       one fusion becomes all of ENTRY; then its computation, or the body of a loop or branch, becomes ENTRY itself
    near        only instructions around those that are known to be wrong (`bisect` names them)
    cut         delta debugging over the instructions of a computation: removed instructions that are still needed become parameters
    bypass      an instruction is replaced by an operand, or by another value of its type; inside loops and reductions too
    sizes       a dimension of one size becomes 1, 2 or half of it, everywhere at once; unknown ones become known; arrays lose dimensions
    attributes  text that the parser does not need (metadata, backend configuration, aliasing) is removed; constants become 0 or 1

Each candidate is printed, and read back by our parser, which verifies it: `keep` is only called for valid HLO. A candidate is
accepted if it is smaller (fewer instructions, then parameters, then elements, then letters) and `keep` returns true, so the search ends. It
repeats until a whole round changes nothing or the time is over; then the best so far is the result.
Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input" (2002); MLIR's and LLVM's reducers.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from xla_emitters.dialects.context import make_context
from xla_emitters.dynamic.passes.disc_inliner import DiscInlinerPass
from xla_emitters.errors import UsageError, XlaEmittersError
from xla_emitters.explore.reduce.hlo_lines import UNKNOWN, HloLine, HloLines, ModuleLines, shapes_in, with_dims
from xla_emitters.text.stablehlo import parse_stablehlo

Keep = Callable[[str], bool]
"""Returns whether a text still has the property. It is only called for verified HLO or StableHLO."""


@dataclass(frozen=True)
class Reduced:
    """The result of a reduction.

    text          HLO, or StableHLO; verified
    instructions  before and after; parameters and ENTRY's calls of fusions are not counted
    asked         how often `keep` was called
    is_finished   whether a whole round found nothing smaller; False: the time was over, or it was interrupted
    """

    text: str
    instructions: tuple[int, int]
    asked: int
    seconds: float
    is_finished: bool


_MANY = 1024
"""The number that an unknown size counts as, when candidates are compared."""
_FURTHEST = 5
"""Distances from the instructions that are known to be wrong, that are tried before all instructions are."""


class _OutOfTime(Exception):
    """Ends the search when the time is over."""


def reduce(
    text: str,
    keep: Keep,
    *,
    near: Sequence[str] = (),
    seconds: float | None = None,
    on_better: Callable[[str, int], None] = lambda text, instructions: None,
) -> Reduced:
    """The smallest text found for which `keep` is true; it must be true for `text`.

    near       names of instructions around which to look first
    seconds    time limit of the search; None: no limit
    on_better  called with each better text and its number of instructions
    raises     what the parser raises for `text`; UsageError if `keep` is not true for it
    """
    search = _Search(ModuleLines.of(text), keep, tuple(near), seconds, on_better)
    if not search.asks(text):
        raise UsageError(
            "what is to be kept is not true of the file as it is",
            stage="reduce",
            help="the command must end with 0 for the file itself",
        )
    return search.run(text)


@dataclass
class _Search:
    """The state of a search.

    best      what candidates are made of; inlining a program's functions makes it larger for a while
    smallest  the result if the search ends now
    """

    best: ModuleLines
    keep: Keep
    near: tuple[str, ...]
    seconds: float | None
    on_better: Callable[[str, int], None]
    asked: int = 0
    seen: set[str] = field(default_factory=set[str])
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.smallest = self.best

    def run(self, text: str) -> Reduced:
        before, is_finished = self.best.instructions, False
        try:
            # Printing may already change the answer of a command that looks at the text.
            if not self.asks(self.best.text()):
                return Reduced(text, (before, before), self.asked, self._elapsed, False)
            _alone(self)
            _inlined(self)
            _near(self)
            while True:
                at_start = self.best
                for step in _ROUND:
                    step(self)
                if self.best == at_start:
                    break
            is_finished = True
        except _OutOfTime:
            pass
        found = self.smallest
        return Reduced(found.text(), (before, found.instructions), self.asked, self._elapsed, is_finished)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    def asks(self, text: str) -> bool:
        """Calls `keep` on a text. raises _OutOfTime."""
        if self.seconds is not None and self._elapsed >= self.seconds:
            raise _OutOfTime
        self.asked += 1
        return self.keep(text)

    def tries(self, candidate: ModuleLines | None) -> bool:
        """Accepts the candidate if it is smaller, valid HLO, and has the property."""
        if candidate is None:
            return False
        candidate = candidate.cleaned()
        if _size(candidate) >= _size(self.best):
            return False
        if (lines := str(candidate)) in self.seen:
            return False
        self.seen.add(lines)
        return self.takes(candidate)

    def takes(self, candidate: ModuleLines) -> bool:
        """Accepts the candidate, whatever its size, if it is valid and has the property."""
        try:
            text = candidate.text()
        except XlaEmittersError:
            return False
        if not self.asks(text):
            return False
        self.best = candidate
        if _size(candidate) < _size(self.smallest):
            self.smallest = candidate
            self.on_better(text, candidate.instructions)
        return True


def _size(module: ModuleLines) -> tuple[int, int, int, int, int]:
    lines = list(module.lines)
    elements = sum(_elements(dims) for line in lines for dims in shapes_in(line.type))
    return module.instructions, len(lines), sum(len(line.operands) for line in lines), elements, len(str(module))


def _elements(dims: tuple[int, ...]) -> int:
    return math.prod(_MANY if size == UNKNOWN else size for size in dims)


# ---- a program as one function ----------------------------------------------------------------------------------------------


def _inlined(search: _Search) -> None:
    """Inlines functions into ENTRY, which may grow; JAX's wrappers around a program can be removed afterwards."""
    if not search.best.is_program:
        return
    module = parse_stablehlo(search.best.text())
    DiscInlinerPass().apply(make_context(), module)
    candidate = ModuleLines.of_module(module, is_program=True).cleaned()
    if candidate != search.best:
        search.takes(candidate)


# ---- what is not needed to read the text -----------------------------------------------------------------------------------


def _attributes(search: _Search) -> None:
    """Removes all attributes at once, then all of each line, then one by one."""
    search.tries(replace(search.best, attributes=""))
    needed = set[str]()
    while True:
        names = {key for line in search.best.lines for key in _keys(line)} - needed
        if not names or search.tries(_without_attributes(search.best, names)):
            return
        # Most attributes are needed by their opcodes; the parser rejects these candidates quickly.
        for name in sorted(names):
            if not search.tries(_without_attributes(search.best, {name})):
                needed.add(name)


def _keys(line: HloLine) -> Iterator[str]:
    return (part.partition("=")[0] for part in line.attributes[1])


def _without_attributes(module: ModuleLines, names: set[str]) -> ModuleLines:
    def stripped(line: HloLine) -> HloLine:
        head, attributes = line.attributes
        kept = [part for part in attributes if part.partition("=")[0] not in names]
        return replace(line, tail=", ".join([head, *kept]))

    return module.mapped(stripped)


# ---- one fusion alone ----------------------------------------------------------------------------------------------------------


def _alone(search: _Search) -> None:
    """Makes one fusion, or another call with its own arguments, all of ENTRY; then makes a computation ENTRY itself."""
    entry = search.best.entry
    calls = [(one, line) for one in search.best.computations for line in one.lines if line.opcode in ("fusion", "call")]
    if len(entry.instructions) > 1:
        # Longer computations first: they are more likely to have the property.
        calls.sort(
            key=lambda pair: (
                -max((len(search.best.by_name[name].lines) for name in _called(search.best, pair[1])), default=0)
            )
        )
        any(search.tries(_alone_in_entry(search.best, one, line)) for one, line in calls)
    names = [one.name for one in search.best.computations if not one.is_entry]
    any(search.tries(_as_entry(search.best, name)) for name in names)


def _reread(search: _Search) -> None:
    """Prints and reads the program again: StableHLO has no tuples."""
    if search.best.is_program:
        search.tries(ModuleLines.of(search.best.text()))


def _called(module: ModuleLines, line: HloLine) -> list[str]:
    return [name for name in module.by_name if name in line.callees]


def _alone_in_entry(module: ModuleLines, holder: HloLines, call: HloLine) -> ModuleLines:
    parameters = [
        HloLine(f"p{number}", holder.by_name[operand].type, "parameter", (), f"{number})")
        for number, operand in enumerate(call.operands)
    ]
    name = call.name if not any(call.name == line.name for line in parameters) else f"{call.name}.alone"
    alone = replace(call, name=name, operands=tuple(line.name for line in parameters))
    entry = replace(module.entry, lines=(*parameters, alone), root=alone.name)
    return replace(module.with_(entry), attributes="")


def _as_entry(module: ModuleLines, name: str) -> ModuleLines:
    others = tuple(one for one in module.computations if not one.is_entry and one.name != name)
    return replace(module, attributes="", computations=(*others, replace(module.by_name[name], is_entry=True)))


# ---- near ----------------------------------------------------------------------------------------------------------------------


def _near(search: _Search) -> None:
    """For a computation with such names: tries these instructions alone, then with their users and operands, and so on."""
    for name in search.best.by_name:
        one = search.best.by_name.get(name)
        chosen = {line.name for line in one.instructions if line.name in search.near} if one else set[str]()
        if one is None or not chosen:
            continue
        for _ in range(_FURTHEST):
            kept = [line.name for line in one.instructions if line.name in chosen]
            if search.tries(cut(search.best, name, kept)):
                break
            users = {line.name for line in one.lines if not chosen.isdisjoint(line.operands)}
            chosen |= users | {operand for other in chosen for operand in one.by_name[other].operands}


# ---- cut -----------------------------------------------------------------------------------------------------------------------


def _cut(search: _Search) -> None:
    """Delta debugging over the instructions of each computation, the longest first."""
    for name, _ in sorted(search.best.by_name.items(), key=lambda each: -len(each[1].lines)):
        if one := search.best.by_name.get(name):
            _minimised(search, name, [line.name for line in one.instructions])


def _minimised(search: _Search, name: str, kept: list[str]) -> None:
    """Removes instructions from `kept`: tries a part of them, or all but a part, in smaller and smaller parts."""
    parts = 2
    while len(kept) > 1:
        size = math.ceil(len(kept) / parts)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        rests = [[one for one in kept if one not in chunk] for chunk in chunks] if len(chunks) > 2 else []
        for choice, then in (
            *((chunk, 2) for chunk in reversed(chunks)),
            *((rest, max(parts - 1, 2)) for rest in rests),
        ):
            if search.tries(cut(search.best, name, choice)):
                if name not in search.best.by_name:
                    return
                # Cleaning may have removed more.
                left = {line.name for line in search.best.by_name[name].instructions}
                kept, parts = [one for one in choice if one in left], then
                break
        else:
            if parts >= len(kept):
                return
            parts = min(2 * parts, len(kept))


def _with_visible(module: ModuleLines, name: str) -> ModuleLines:
    """The module, if a cut in a computation can be observed in ENTRY or at its call there; else with the computation as ENTRY."""
    one = module.by_name[name]
    return module if one.is_entry or _caller_in_entry(module, one) is not None else _as_entry(module, name)


def cut(module: ModuleLines, name: str, kept: Sequence[str]) -> ModuleLines | None:
    """Keeps only these instructions of a computation; their missing operands become parameters, values needed by removed ones the result.

    The computation of a loop, a branch or a reduction becomes ENTRY. None if ENTRY uses the result and its type would change.
    """
    module = _with_visible(module, name)
    one, chosen = module.by_name[name], set(kept)
    kept_lines = [line for line in one.lines if line.name in chosen]
    if not kept_lines:
        return None
    used = {operand for line in kept_lines for operand in line.operands}
    results = [line for line in kept_lines if (line.name not in used and not line.is_check) or line.name == one.root]
    if not results:
        return None
    if len(results) > 1:
        results = [line for line in results if not line.type.startswith("(")] or results
    needed = [line for line in one.lines if line.name in used and line.name not in chosen]
    if any(line.type.startswith("(") for line in needed if not line.is_parameter):
        return None
    outer = _caller_in_entry(module, one)
    is_same_root = len(results) == 1 and results[0].name == one.root
    if outer is not None and not is_same_root and outer[0].root != outer[1].name:
        return None
    parameters = list(one.parameters)
    added = list[HloLine]()
    for line in needed:
        if not line.is_parameter:
            added.append(HloLine(line.name, line.type, "parameter", (), f"{len(parameters) + len(added)})"))
    lines = [*parameters, *added, *kept_lines]
    root = results[0].name
    if len(results) > 1:
        result_type = f"({', '.join(line.type for line in results)})"
        lines.append(HloLine(one.fresh("results"), result_type, "tuple", tuple(line.name for line in results), ")"))
        root = lines[-1].name
    made = replace(one, lines=tuple(lines), root=root)
    changed = module.with_(made)
    if outer is None or one.is_entry:
        return replace(changed, attributes="") if one.is_entry else changed
    entry, call = outer
    given = [
        HloLine(entry.fresh(f"cut_{line.name}"), line.type, "parameter", (), f"{len(entry.parameters) + number})")
        for number, line in enumerate(added)
    ]
    call = replace(call, type=made.by_name[root].type, operands=(*call.operands, *(line.name for line in given)))
    entry = replace(entry, lines=(*given, *entry.with_line(call).lines))
    return replace(changed.with_(entry), attributes="")


def _caller_in_entry(module: ModuleLines, one: HloLines) -> tuple[HloLines, HloLine] | None:
    """ENTRY, and its call of a computation that is called nowhere else."""
    match module.callers(one.name):
        case [(holder, line)] if holder.is_entry and line.opcode in ("fusion", "call"):
            return holder, line
        case _:
            return None


# ---- bypass ----------------------------------------------------------------------------------------------------------------------


def _bypass(search: _Search) -> None:
    """Replaces every instruction, the last first, by one of its operands or else by an earlier value of its type."""
    for name in search.best.by_name:
        for line in reversed(_lines_named(search, name)):
            any(
                search.tries(_replaced(search.best, name, line.name, other))
                for other in _instead(search.best, name, line)
            )


def _bypass_parameters(search: _Search) -> None:
    """Merges parameters of the same type."""
    for name in search.best.by_name:
        for line in reversed(_lines_named(search, name, parameters=True)):
            now = _lines_named(search, name, parameters=True)
            earlier = [other.name for other in now if other.type == line.type and other.name != line.name]
            any(search.tries(_replaced(search.best, name, line.name, other)) for other in earlier[:1])


def _lines_named(search: _Search, name: str, parameters: bool = False) -> Sequence[HloLine]:
    found = search.best.by_name.get(name)
    return () if found is None else found.parameters if parameters else found.instructions


def _instead(module: ModuleLines, name: str, line: HloLine) -> list[str]:
    """Values of the line's type: its operands, then the parameters, then the nearest instructions before it."""
    one = module.by_name.get(name)
    if one is None or line.name not in one.by_name:
        return []
    before = one.lines[: [other.name for other in one.lines].index(line.name)]
    operands = [operand for operand in line.operands if operand in one.by_name]
    others = [*(other.name for other in one.parameters), *(other.name for other in reversed(before))]
    fitting = [other for other in (*operands, *others) if one.by_name[other].type == line.type and other != line.name]
    return list(dict.fromkeys(fitting))[:3]


def _replaced(module: ModuleLines, name: str, old: str, new: str) -> ModuleLines | None:
    one = module.by_name.get(name)
    if one is None or old not in one.by_name or new not in one.by_name:
        return None
    # A parameter may now be listed after its first use.
    lines = [line.with_operands({old: new}) for line in one.lines]
    ordered = [*(line for line in lines if line.is_parameter), *(line for line in lines if not line.is_parameter)]
    return module.with_(replace(one, lines=tuple(ordered), root=new if one.root == old else one.root))


# ---- sizes -----------------------------------------------------------------------------------------------------------------------


def _sizes(search: _Search) -> None:
    """Replaces one size everywhere: in types, and in attributes that have the same number."""
    done = set[int]()
    while left := sorted(_sizes_in(search.best) - done, reverse=True):
        size = left[0]
        done.add(size)
        smaller = [1, 2, 3] if size == UNKNOWN else sorted({1, 2, 3, size // 2} - {0})
        for new in smaller:
            if (new < size or size == UNKNOWN) and any(
                search.tries(_resized(search.best, size, new, deep)) for deep in (False, size != UNKNOWN)
            ):
                break


def _sizes_in(module: ModuleLines) -> set[int]:
    return {
        size for line in module.lines for dims in shapes_in(line.type) for size in dims if size > 1 or size == UNKNOWN
    }


def _resized(module: ModuleLines, old: int, new: int, in_attributes: bool) -> ModuleLines:
    dims = {
        shape: tuple(new if size == old else size for size in shape)
        for line in module.lines
        for shape in shapes_in(line.type)
    }
    number = re.compile(rf"(?<![\w.\-%]){old}(?![\w.])")

    def resized(line: HloLine) -> HloLine:
        head, attributes = line.attributes
        if in_attributes:
            attributes = [number.sub(str(new), part) for part in attributes]
        return replace(line, type=with_dims(line.type, dims), tail=", ".join([head, *attributes]))

    return module.mapped(resized)


def _ranks(search: _Search) -> None:
    """Removes dimensions from all arrays of one shape at once: all but the last, or all."""
    for shape in sorted({shape for line in search.best.lines for shape in shapes_in(line.type)}):
        for fewer in ((), shape[-1:]):
            if len(fewer) < len(shape) and search.tries(_reshaped(search.best, shape, fewer)):
                break


def _reshaped(module: ModuleLines, old: tuple[int, ...], new: tuple[int, ...]) -> ModuleLines:
    return module.mapped(lambda line: replace(line, type=with_dims(line.type, {old: new})))


# ---- constants -------------------------------------------------------------------------------------------------------------------


def _constants(search: _Search) -> None:
    """Scalar constants become 0 or 1, where that is shorter."""
    for name in search.best.by_name:
        for line in _lines_named(search, name):
            if line.opcode == "constant" and shapes_in(line.type) == [()]:
                for value in ("1", "0"):
                    text = {"1": "true", "0": "false"}[value] if line.type.startswith("pred") else value
                    _, attributes = line.attributes
                    simple = replace(line, tail=", ".join([f"{text})", *attributes]))
                    one = search.best.by_name[name]
                    if simple != line and search.tries(search.best.with_(one.with_line(simple))):
                        break


_ROUND = (_attributes, _alone, _reread, _cut, _bypass, _bypass_parameters, _sizes, _ranks, _constants)
"""The steps of one round, in order."""
