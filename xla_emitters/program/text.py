"""The steps of a program as text, a line each; those of loops and branches are indented.

allocate t0 f32[8,4]
call gemm (custom-call.3): p0 f32[8,2], p1 f32[2,4] -> t0 f32[8,4]
loop while.1, 10 times, while t1
  condition
    kernel compare: t2 -> t1
  body
    kernel fusion.2: t0 t2 -> t0
copy t0 -> r0
release t0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from xla_emitters.program.arrays import Argument, ArraySpec, Slot, SlotArray
from xla_emitters.program.steps import Allocation, Branch, Copy, Kernel, LibraryCall, Loop, Release, Step


def steps_text(steps: Sequence[Step], array: Callable[[Slot], ArraySpec]) -> str:
    """The lines of steps; `array` returns the type of the array in a slot."""
    return "\n".join(_lines(steps, array, ""))


def _lines(steps: Sequence[Step], array: Callable[[Slot], ArraySpec], margin: str) -> Iterator[str]:
    inner = margin + "    "
    for step in steps:
        match step:
            case Kernel():
                yield f"{margin}kernel {step.name}: {_kernel_arguments(step.arguments)}"
            case LibraryCall():
                given, made = _arrays(step.operands), _arrays(step.results)
                yield f"{margin}call {step.name} ({step.instruction}): {given} -> {made}"
            case Allocation():
                yield f"{margin}allocate {step.slot} {array(step.slot)}"
            case Release():
                yield f"{margin}release {step.slot}"
            case Copy():
                yield f"{margin}copy {step.source} -> {step.target}"
            case Loop():
                times = "" if step.trips is None else f", {step.trips} times"
                yield f"{margin}loop {step.name}{times}, while {step.proceeds}"
                yield f"{margin}  condition"
                yield from _lines(step.condition, array, inner)
                yield f"{margin}  body"
                yield from _lines(step.body, array, inner)
            case Branch():
                yield f"{margin}branch {step.name} by {step.selector}"
                for number, branch in enumerate(step.branches):
                    yield f"{margin}  {number}"
                    yield from _lines(branch, array, inner)


def _kernel_arguments(arguments: Sequence[Argument]) -> str:
    """Arguments that are read, and those that are written; a parameter of the program that shares a result's memory counts as read.

    An array that is updated in place is both: two arguments have its slot, an operand and a result.
    """
    written = [argument for argument in arguments if argument.written and argument.kind != "parameter"]
    times = Counter(argument.slot for argument in written)
    read = [argument for argument in arguments if times[argument.slot] != 1]
    return f"{_slots(read)} -> {_slots(written)}".strip()


def _slots(arguments: Sequence[Argument]) -> str:
    return " ".join(dict.fromkeys(str(argument.slot) for argument in arguments))


def _arrays(arrays: Sequence[SlotArray]) -> str:
    return ", ".join(map(str, arrays))
