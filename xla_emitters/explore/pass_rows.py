"""XLA's passes and ours as rows, with the difference between the IR of the two sides after each, and its causes.

Passes are aligned as two sequences of names (XLA's `cse` is our `xla-cse`). A pass that only one side has is a row of its own, in which
its state is compared with the latest one of the other side.

Where states differ, the cause is looked for in the pass itself: our pass is run on the state that XLA's pass was given.

    XLA   X0 -pass-> X1      our pass makes X1 of X0      both passes do the same: O1 and X1 differ as O0 and X0 did
    ours  O0 -pass-> O1      it makes X1 but for [02]     this pass adds the difference of decision 02 to the earlier ones
                             it makes something else      this pass adds a difference that nothing explains

So causes are carried from row to row, until the two sides are equal again, or differ by decisions only. A row is explained if all of its
causes are. `WAYS` are passes that our list runs with other options than XLA, with the decision; `FORMULAS` are passes that compute elements
by other ops; `PLACES` are passes that run at another place, or on one side only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ComplexType, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir.arith import RemfOp
from xla_emitters.dialects.other_spelling import of_dictionaries
from xla_emitters.dialects.xla_gpu import AtomicRMWOp
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.differences_in_structure import DECISION
from xla_emitters.explore.ir_difference import Difference, KernelIr, difference
from xla_emitters.explore.xla_log import State, XlaLog
from xla_emitters.lowering.convert_complex_to_standard import ConvertComplexToStandardPass
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.lowering.lower_tensors import LowerTensorsPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.narrow_floats import is_narrow
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.transforms.optimize_loops import (
    OptimizeLoopsPass,
    body_size,
    trip_count_of_plain_loop,
    unroll_by,
    unroll_factor,
)

Citation = tuple[str, str]
"""A file of docs/decisions, and what it says."""


@dataclass(frozen=True)
class UnrollByPass(OptimizeLoopsPass):
    """The pass without options, except that a loop that is unrolled in part is unrolled this many times."""

    name = "xla-gpu-optimize-loops"
    copies: int = 8

    def optimize(self, loop: scf.ForOp, short: int, *, contains_loops: bool) -> None:
        trips = trip_count_of_plain_loop(loop)
        if (
            isinstance(trips, int)
            and 1 < unroll_factor(trips, body_size(loop), short) < trips
            and trips % self.copies == 0
        ):
            unroll_by(loop, self.copies, trips)
        else:
            super().optimize(loop, short, contains_loops=contains_loops)


_COUNTS = "02-the-seed-and-the-stages.md", "the size of a loop's body is counted otherwise"
WAYS: dict[str, tuple[tuple[ModulePass, Citation], ...]] = {
    OptimizeLoopsPass.name: (
        (OptimizeLoopsPass(), ("18-loops-that-llvm-unrolls.md", "long loops are left to LLVM")),
        *((UnrollByPass(copies=copies), _COUNTS) for copies in (2, 4, 8, 16, 32)),
    ),
}
"""Our pass -> the pass as XLA runs it, and the decision that says how our list runs it."""


@dataclass(frozen=True)
class Formulas:
    """Elements that our pass computes by another formula than XLA's, with the reason's decision; `are_in`: whether a module has some."""

    decision: Citation
    are_in: Callable[[ModuleOp], bool]


def _has_complex_numbers(module: ModuleOp) -> bool:
    return any(isinstance(result.type, ComplexType) for op in module.walk() for result in op.results)


def _has_atomic_updates(module: ModuleOp) -> bool:
    return any(isinstance(op, AtomicRMWOp) for op in module.walk())


def _has_functions(module: ModuleOp) -> bool:
    return any(op.name.startswith("math.") or isinstance(op, RemfOp) for op in module.walk())


def _has_narrow_floats(module: ModuleOp) -> bool:
    return any(is_narrow(value.type) for op in module.walk() for value in op.results)


FORMULAS: dict[str, tuple[Formulas, ...]] = {
    ExpandFloatOpsPass.name: (
        Formulas((DECISION, "formulas of narrow floats"), _has_narrow_floats),
        Formulas((DECISION, "formulas of tanh and erf"), _has_functions),
    ),
    ConvertComplexToStandardPass.name: (Formulas((DECISION, "formulas of complex functions"), _has_complex_numbers),),
    LowerTensorsPass.name: (
        Formulas(("02-the-seed-and-the-stages.md", "complex numbers are vectors"), _has_complex_numbers),
        Formulas((DECISION, "atomic updates of floats"), _has_atomic_updates),
    ),
    LowerToLlvmGpuPass.name: (Formulas((DECISION, "where libdevice is called"), _has_functions),),
}
"""Our pass -> elements that it computes by another formula. They are cited where the state that it was given has them, and all else is
equal: addresses, accesses, branches, and from what each element is computed."""


@dataclass(frozen=True)
class Place:
    """A pass that runs at another place than in XLA's list, or on one side alone.

    xla, ours   how many rows of it only XLA has, and only our list; with other numbers a pass is missing or added, which is not explained
    """

    decision: Citation
    xla: int
    ours: int


_PLACE = DECISION, "passes at another place"
_LAUNCH = "17-passes-of-xla-that-the-list-lacks.md", "programmatic dependent launch"
PLACES = {
    "xla-cse": Place(_PLACE, 1, 1),
    "xla-lower-affine": Place(_PLACE, 1, 0),
    "xla-gpu-convert-index-type": Place(_PLACE, 1, 1),
    "xla-convert-math-to-libdevice": Place(_PLACE, 0, 1),
    "xla-gpu-lower-xla-shared": Place(_PLACE, 1, 0),
    "stablehlo-convert-to-signless": Place(_PLACE, 1, 0),
    "xla-gpu-insert-pdl": Place(_LAUNCH, 1, 0),
    "xla-lower-pdl-wait": Place(_LAUNCH, 1, 0),
}
"""A missing or added pass that is not in the table is not explained."""


@dataclass(frozen=True)
class Causes:
    """Why two states differ.

    cited        the decisions, in the order of the passes that they are about
    unexplained  passes that differ from XLA's without a decision that says why; "emit" for the emitter
    """

    cited: tuple[Citation, ...] = ()
    unexplained: tuple[str, ...] = ()

    def __or__(self, other: Causes) -> Causes:
        return Causes(
            tuple(dict.fromkeys((*self.cited, *other.cited))),
            tuple(dict.fromkeys((*self.unexplained, *other.unexplained))),
        )


@dataclass(frozen=True)
class PassRow:
    """One pass.

    xla, ours          its names; "" on the side that does not have it
    xla_ops, ours_ops  ops after it; None where there is no such pass, or the log ends before
    changed            whether it changed anything, on either side
    found              the difference between the two; None where the log ends before
    causes             of a difference; of a verdict other than "differs" what it is equal but for
    lines              both sides in one form, ours and XLA's, for a diff
    """

    xla: str
    ours: str
    xla_ops: int | None
    ours_ops: int | None
    changed: bool
    found: Difference | None
    causes: Causes
    lines: Callable[[], tuple[list[str], list[str]]] = field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        """The verdict; "unexplained" of a difference with a cause that no decision knows; "" where the log ends before."""
        if self.found is None:
            return ""
        is_unexplained = self.found.verdict == "differs" and self.causes.unexplained
        return "unexplained" if is_unexplained else self.found.verdict

    def to_json(self) -> dict[str, Any]:
        found = self.found
        return {
            "xla": self.xla or None,
            "ours": self.ours or None,
            "xla_ops": self.xla_ops,
            "ours_ops": self.ours_ops,
            "changed": self.changed,
            "verdict": found.verdict if found else None,
            "ops": {name: {"ours": ours, "xla": xla} for name, (ours, xla) in found.ops.items()} if found else {},
            "decisions": [{"file": file, "what": what} for file, what in self.causes.cited],
            "unexplained": list(self.causes.unexplained),
        }


def our_name(xla: str, known: Sequence[str]) -> str:
    """The name of ours that an XLA or MLIR pass has here.

    >>> our_name("cse", ["xla-cse"]), our_name("inline", ["inline"])
    ('xla-cse', 'inline')
    """
    return xla if xla in known or f"xla-{xla}" not in known else f"xla-{xla}"


def compare_passes(
    ours: Sequence[tuple[str, ModuleOp]], log: XlaLog, options: CompileOptions | None = None
) -> tuple[PassRow, ...]:
    """A row for each pass of either side; `options` are those that ours were made with."""
    states, names = _States(log), [name for name, _ in ours]
    theirs = [our_name(state.name, names) for state in log.states]
    own = [KernelIr(ir) for _, ir in ours]
    made = (row.make(options or CompileOptions()) for row in KERNEL)
    passes = {each.name: each for each in made}
    rows, left, right, causes = list[PassRow](), 0, 0, Causes()
    pairs = tuple(_aligned(names, theirs))
    only_xla = Counter(theirs[j] for i, j in pairs if i is None and j is not None)
    only_ours = Counter(names[i] for i, j in pairs if j is None and i is not None)
    for i, j in pairs:
        left, before, right = (left if i is None else i), right, (right if j is None else j)
        mine, other = own[left], states[right]
        changed = i == 0 or j == 0 or (i is not None and own[i].exact != own[i - 1].exact)
        changed |= j is not None and not states.is_unchanged(j)
        found = difference(mine, other) if other is not None else None
        if found is not None and found.verdict != "differs":
            causes = Causes(found.decisions)
        elif found is not None and i == 0 and j == 0:
            causes = Causes(found.decisions, ("emit",))
        elif found is not None and changed:
            alone = (i is None) != (j is None)
            name = names[i] if i is not None else theirs[right]
            if alone:
                causes |= _alone(name, only_xla[name], only_ours[name])
            else:
                causes |= _added(passes.get(name), name, states[before], states[right])
        rows.append(
            PassRow(
                "" if j is None else log.states[j].name,
                "" if i is None else names[i],
                None if j is None or other is None else other.ops,
                None if i is None else mine.ops,
                changed,
                found,
                causes if found is not None else Causes(),
                partial(_lines, mine, other),
            )
        )
    return tuple(rows)


def _alone(name: str, xla: int, ours: int) -> Causes:
    """The difference added by a pass that only one side has at this place; `xla` and `ours` are how many such rows of it each side has."""
    place = PLACES.get(name)
    is_known = place is not None and (place.xla, place.ours) == (xla, ours)
    return Causes((place.decision,)) if place is not None and is_known else Causes(unexplained=(name,))


def _added(ours: ModulePass | None, name: str, given: KernelIr | None, left: KernelIr | None) -> Causes:
    """What our pass adds to a difference: our pass on the input of XLA's pass, against the output of XLA's."""
    assert given is not None
    assert left is not None
    made = None if ours is None else _after(ours, given)
    if made is None:
        return Causes(unexplained=(name,))
    found = difference(made, left)
    if found.verdict != "differs":
        return Causes(found.decisions)
    for xlas, decision in WAYS.get(name, ()):
        other = _after(xlas, given)
        if other is not None and (way := difference(other, left)).verdict != "differs":
            return Causes((decision, *way.decisions))
    formulas = tuple(each.decision for each in FORMULAS.get(name, ()) if each.are_in(given.module))
    if formulas and made.inlined.skeleton == left.inlined.skeleton:
        return Causes((*found.decisions, *formulas))
    return Causes(unexplained=(name,))


def _after(ours: ModulePass, given: KernelIr) -> KernelIr | None:
    """None if our pass refuses XLA's IR."""
    copy = given.spelled.clone()
    try:
        run_pass(ours, make_context(), copy)
    except XlaEmittersError:
        return None
    return KernelIr(copy)


def _lines(ours: KernelIr, theirs: KernelIr | None) -> tuple[list[str], list[str]]:
    return ours.inlined.lines, theirs.inlined.lines if theirs else []


def _aligned(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    """Numbers of passes of both sides in order; None on the side that lacks one."""
    for tag, i, i_end, j, j_end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        else:
            yield from ((None, number) for number in range(j, j_end))
            yield from ((number, None) for number in range(i, i_end))


class _States:
    """XLA's states as IR; each dump is read once."""

    def __init__(self, log: XlaLog) -> None:
        self.log = log
        self._read: dict[str, ModuleOp] = {}
        self._made: dict[tuple[Any, ...], KernelIr] = {}

    def __getitem__(self, number: int) -> KernelIr | None:
        """The module after that pass; None where the log does not have it."""
        state = self.log.states[number]
        if state.dump is None:
            return None
        key = self._key(state)
        if key not in self._made:
            self._made[key] = KernelIr(self._module(state, state.dump))
        return self._made[key]

    def is_unchanged(self, number: int) -> bool:
        """Whether the pass changed nothing, or the log lacks its output."""
        states = self.log.states
        return states[number].dump is None or self._key(states[number]) == self._key(states[number - 1])

    def _key(self, state: State) -> tuple[Any, ...]:
        dump = None if state.dump is None else self.log.dumps[state.dump]
        functions = ((name, self.log.dumps[number]) for name, number in sorted(state.functions.items()))
        return dump, tuple((name, text) for name, text in functions if text != dump)

    def _dump(self, text: str) -> ModuleOp:
        if text not in self._read:
            self._read[text] = parse_ir(of_dictionaries(text), "<XLA's log>", verify=False)
        return self._read[text]

    def _module(self, state: State, dump: int) -> ModuleOp:
        """The dump with the functions that are from earlier ones."""
        module = self._dump(self.log.dumps[dump]).clone()
        functions = _functions(module)
        for name, number in state.functions.items():
            earlier = _functions(self._dump(self.log.dumps[number])).get(name)
            if earlier is not None and name in functions:
                Rewriter.replace_op(functions[name], earlier.clone())
        return module


def _functions(module: ModuleOp) -> dict[str, func.FuncOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
