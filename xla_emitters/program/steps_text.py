"""The steps of a program as text, a line each; those of loops and branches are indented. Numbers of the host are n0, n1 ...

allocate t0 f32[8,4]
call gemm (custom-call.3): p0 f32[8,2], p1 f32[2,4] -> t0 f32[8,4]
loop while.1, 10 times, while n0
  condition
    kernel compare: t2 -> t1
    n0 = t1
  body
    kernel fusion.2: t0 t2 -> t0
copy t0 -> r0
release t0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xla_emitters.program.callees import LibraryCall
from xla_emitters.program.step_values import Argument, Arrays, ArraySpec
from xla_emitters.program.steps import (
    Allocate,
    ArrayPlace,
    Branch,
    Call,
    Compute,
    Copy,
    Dimension,
    Extent,
    Fill,
    Launch,
    Load,
    Loop,
    Move,
    Release,
    Step,
    Store,
    View,
)


@dataclass(frozen=True)
class StepsText:
    """See the file's head.

    calls      by the numbers of calls
    arguments  of a kernel, by its name
    """

    arrays: Arrays
    calls: Sequence[LibraryCall]
    arguments: Mapping[str, Sequence[Argument]]

    def of(self, steps: Sequence[Step]) -> str:
        """The lines of steps."""
        return "\n".join(self._lines(steps, ""))

    def _lines(self, steps: Sequence[Step], margin: str) -> Iterator[str]:
        inner = margin + "    "
        for step in steps:
            match step:
                case Launch():
                    yield f"{margin}kernel {step.kernel}: {self._kernel_arguments(step)}"
                case Call():
                    call = self.calls[step.op]
                    given, made = self._listed(step.reads, call.operands), self._listed(step.writes, call.results)
                    yield f"{margin}call {call.name} ({step.name}): {given}{f' -> {made}' if made else ''}"
                case Allocate():
                    slot = self.arrays.slot(step.array.slot)
                    yield f"{margin}allocate {slot} {self.arrays.spec(slot)}"
                case Release():
                    yield f"{margin}release {self.arrays.slot(step.slot)}"
                case Copy():
                    yield f"{margin}copy {self._named(step.source)} -> {self._named(step.target)}"
                case Load():
                    yield f"{margin}{step.result} = {self._element(step.array, step.index)}"
                case Store():
                    yield f"{margin}{self._element(step.array, step.index)} = {step.value}"
                case Fill():
                    yield f"{margin}fill {self._named(step.array)} with {len(step.data)} bytes"
                case Dimension():
                    yield f"{margin}{step.result} = size {step.axis} of {self.arrays.slot(step.slot)}"
                case View():
                    target = self.arrays.slot(step.target.slot)
                    yield f"{margin}view {self._named(step.source)} as {target} {self.arrays.spec(target)}"
                case Move():
                    pairs = (
                        f"{self.arrays.slot(source)} -> {self.arrays.slot(target)}" for source, target in step.pairs
                    )
                    yield f"{margin}move {', '.join(pairs)}"
                case Compute():
                    yield f"{margin}{step.result} = {step.function} {', '.join(map(str, step.operands))}"
                case Loop():
                    times = "" if step.trips is None else f", {step.trips} times"
                    yield f"{margin}loop {step.name}{times}, while {step.holds}"
                    yield f"{margin}  condition"
                    yield from self._lines(step.condition, inner)
                    yield f"{margin}  body"
                    yield from self._lines(step.body, inner)
                case Branch():
                    yield f"{margin}branch {step.name} by {step.selector}"
                    for number, branch in enumerate(step.branches):
                        yield f"{margin}  {number}"
                        yield from self._lines(branch, inner)

    def _named(self, place: ArrayPlace) -> str:
        return str(self.arrays.slot(place.slot))

    def _element(self, place: ArrayPlace, index: Sequence[Extent]) -> str:
        """An element of an array; of an array of one, the array itself."""
        return self._named(place) + ("" if place.shape in ((), (1,)) else f"[{', '.join(map(str, index))}]")

    def _listed(self, places: Sequence[ArrayPlace], specs: Sequence[ArraySpec]) -> str:
        return ", ".join(f"{self._named(place)} {spec}" for place, spec in zip(places, specs, strict=True))

    def _kernel_arguments(self, step: Launch) -> str:
        """What a kernel reads, and what it writes; a parameter of the program that shares a result's memory counts as read.

        An array that is updated in place is both: two arguments have its slot, an operand and a result.
        """
        slots = [self.arrays.slot(value.slot) for value in step.arguments if isinstance(value, ArrayPlace)]
        pairs = list(zip(slots, self.arguments.get(step.kernel, ()), strict=False))
        written = [slot for slot, argument in pairs if argument.written and slot.kind != "parameter"]
        times = Counter(written)
        read = [slot for slot in slots if times[slot] != 1]
        return f"{_spaced(read)} -> {_spaced(written)}".strip()


def _spaced(slots: Sequence[object]) -> str:
    return " ".join(dict.fromkeys(map(str, slots)))
