"""The steps of a program in StableHLO as those of any `Program`: parameters are the first slots, then results.

    ProgramSteps(steps_of_buffers(kernels), sizes)
      .temporaries   f32[b,64]              sizes are numbers, the text of expressions in the symbols, or None where only data decide
      .steps         Launch main_kLoop_0 ... a2 -> a1
      .kernel(...)   with its first launch: grid ("ceildiv(b*s, 64)", 1, 1)

Sizes are found by carrying out the host's arithmetic on sizes instead of numbers.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, cast

from xla_emitters.algebra.size import Size as Expression
from xla_emitters.algebra.size import as_size, ceildiv, floordiv, maximum, minimum, mod
from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.hlo.dynamic_shape_ops import PrintOp, ShapeAssertionOp
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dynamic.sizes import Sizes
from xla_emitters.dynamic.sizes.program import plain_size
from xla_emitters.pipelines.program_gpu import library_function
from xla_emitters.pipelines.program_kernels import LoweredKernel
from xla_emitters.program.callees import OF_THE_HOST, Kernel, LibraryCall, ScalarArgument
from xla_emitters.program.executable import Executable
from xla_emitters.program.step_values import UNKNOWN, Argument, ArraySpec, LaunchDimensions, Size
from xla_emitters.program.steps import (
    Allocate,
    ArrayPlace,
    Branch,
    Call,
    Compute,
    Dimension,
    Extent,
    Launch,
    Load,
    Loop,
    Move,
    NumberSlot,
    Recurrence,
    Release,
    Step,
    View,
    parts_of,
    steps_within,
)

OPERATIONS: Mapping[str, Callable[..., Expression]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "remainder": mod,
    "minimum": minimum,
    "maximum": maximum,
    "copy": as_size,
}
"""Functions of numbers of the host -> the same of sizes. The others (comparisons, choices) are not sizes."""
ALIGNMENT_BYTES = 16
"""What kernels assume of their arrays."""


@dataclass
class ProgramSteps:
    """See the file's head."""

    made: Executable
    sizes: Sizes

    def __post_init__(self) -> None:
        made = self.made
        self._inputs = len(made.parameters)
        self._before = self._inputs + len(made.results)
        self._given = {place.slot for place in made.parameters} | {place.slot for place, _ in made.constants}
        sources = Counter(place.slot for place in made.results)
        # A result that has memory of its own is its slot from the beginning.
        self._results = {
            place.slot: self._inputs + number
            for number, place in enumerate(made.results)
            if sources[place.slot] == 1 and place.slot not in self._given
        }

    def slot(self, slot: int) -> int:
        """The number of one of the program's own slots."""
        if slot < self._inputs:
            return slot
        return self._results.get(slot, slot + len(self.made.results))

    def size(self, extent: Extent) -> Size:
        """A size as a value."""
        return None if isinstance(extent, int) and extent < 0 else plain_size(self._of(extent))

    def spec(self, place: ArrayPlace) -> ArraySpec:
        """The array of a place."""
        return ArraySpec.sized(place.dtype, list(map(self.size, place.shape)))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The program's steps, and one for each result whose memory is also another array's."""
        shared = [
            View(self._moved(place), replace(place, slot=self._inputs + number))
            for number, place in enumerate(self.made.results)
            if place.slot not in self._results
        ]
        return (*map(self._moved, self.made.steps), *shared)

    @cached_property
    def temporaries(self) -> tuple[ArraySpec, ...]:
        """The arrays in the slots after the results; those of no step are empty."""
        found = dict[int, ArrayPlace]()
        for place in self._places():
            if place.slot not in found or UNKNOWN in found[place.slot].shape:
                found[place.slot] = place
        for step in steps_within(self.made.steps):
            for source, target in step.pairs if isinstance(step, Move) else ():
                known = found.get(source) or found.get(target)
                if known is not None:
                    found.setdefault(source, known)
                    found.setdefault(target, known)
        own = range(self._inputs, self.made.slots)
        return tuple(self.spec(found[slot]) if slot in found else ArraySpec("u8", (0,), (0,)) for slot in own)

    @cached_property
    def constants(self) -> tuple[int, ...]:
        """The temporaries, by their numbers, that have memory before the first step, and elements that no step changes."""
        return tuple(self.slot(place.slot) - self._before for place, _ in self.made.constants)

    @cached_property
    def calls(self) -> tuple[LibraryCall, ...]:
        """What each `Call` computes: a function of a library, or an op of the host."""
        first = dict[int, Call]()
        for step in steps_within(self.made.steps):
            if isinstance(step, Call):
                first.setdefault(step.op, step)
        return tuple(self._call(op, first.get(number)) for number, op in enumerate(self.made.ops))

    def _call(self, op: Any, step: Call | None) -> LibraryCall:
        name, config = _called(op)
        if step is None:
            return LibraryCall(name, "", (), (), config)
        read, written = (tuple(map(self.spec, places)) for places in (step.reads, step.writes))
        return LibraryCall(name, step.name, read, written, config)

    # ------------------------------------------------------------------------------------------------------- kernels

    def kernel(self, kernel: LoweredKernel, ptx: str) -> Kernel:
        """A kernel with its first launch; a launch is missing where a specialization was merged with another kernel's."""
        launch = self._launches.get(kernel.name)
        taken = launch.arguments if launch is not None else ()
        arrays = [each for each in taken if isinstance(each, ArrayPlace)]
        scalars = [each for each in taken if not isinstance(each, ArrayPlace)]
        types = kernel.parameters[len(taken) - len(scalars) :]
        slots = list(dict.fromkeys(place.slot for place in arrays))
        grid = tuple(map(self.size, launch.grid)) if launch is not None else (None,) * 3
        x, y, z = (size if isinstance(size, int) else UNKNOWN for size in grid)
        return Kernel(
            kernel.name,
            ptx,
            kernel.architecture,
            LaunchDimensions((x, y, z), kernel.block, grid if UNKNOWN in (x, y, z) else ()),
            kernel.shared_bytes,
            tuple(
                self._argument(place, slots.index(place.slot), written=number in kernel.written)
                for number, place in enumerate(arrays)
            ),
            tuple(ScalarArgument(ir_type, self.size(scalar)) for ir_type, scalar in zip(types, scalars, strict=False)),
        )

    @cached_property
    def _launches(self) -> dict[str, Launch]:
        steps = reversed([*steps_within(self.made.steps)])
        return {step.kernel: step for step in steps if isinstance(step, Launch)}

    def _argument(self, place: ArrayPlace, number: int, *, written: bool) -> Argument:
        """An array that a kernel takes; arguments with one `number` are one array."""
        slot = self.slot(place.slot)
        if slot < self._inputs:
            kind, index = "parameter", slot
        else:
            is_result = slot < self._before
            kind, index = ("result", slot - self._inputs) if is_result else ("temporary", slot - self._before)
        return Argument(kind, index, self.spec(place), UNKNOWN, ALIGNMENT_BYTES, number, written)

    # --------------------------------------------------------------------------------------------------------- numbers

    @cached_property
    def _known(self) -> dict[int, Expression | int]:
        """The numbers of the host that are expressions in the symbols."""
        known, steps = dict[int, Expression | int](), [*steps_within(self.made.steps)]
        shapes = {
            place.slot: parameter.shape
            for place, parameter in zip(self.made.parameters, self.sizes.guards.parameters, strict=True)
        }
        for place in self.made.parameters:
            for extent, size in zip(place.shape, shapes[place.slot], strict=True):
                if isinstance(extent, NumberSlot):
                    known[extent.index] = size
        assigned = Counter(step.result.index for step in steps if isinstance(step, Compute | Dimension | Load))
        assigned.update(number for step in steps if isinstance(step, Branch) for number in step.chosen)
        for step in steps:
            if isinstance(step, Compute | Dimension) and assigned[step.result.index] == 1:
                if isinstance(step, Dimension):
                    shape = shapes.get(step.slot)
                    size = shape[step.axis] if shape is not None and isinstance(step.axis, int) else None
                else:
                    size = _carried_out(step, known)
                if size is not None:
                    known[step.result.index] = size
        return known

    def _of(self, extent: Extent) -> Expression | int | None:
        return self._known.get(extent.index) if isinstance(extent, NumberSlot) else extent

    # ----------------------------------------------------------------------------------------------------------- slots

    def _places(self) -> Iterator[ArrayPlace]:
        """All places; those of steps that give memory come first."""
        yield from (place for place, _ in self.made.constants)
        steps = [*steps_within(self.made.steps)]
        yield from (step.array for step in steps if isinstance(step, Allocate))
        yield from (step.target for step in steps if isinstance(step, View))
        for step in steps:
            yield from (part for part in parts_of(step) if isinstance(part, ArrayPlace))

    def _moved(self, value: Any) -> Any:
        """A step, a place, or a tuple of those, with the program's slots in place of the steps' own."""
        match value:
            case ArrayPlace():
                return replace(value, slot=self.slot(value.slot))
            case Release():
                return Release(self.slot(value.slot))
            case Dimension():
                return replace(value, slot=self.slot(value.slot))
            case Move():
                return Move(tuple((self.slot(source), self.slot(target)) for source, target in value.pairs))
            case Recurrence():
                return replace(value, state=tuple(map(self.slot, value.state)))
            case Loop():
                inside = {name: self._moved(getattr(value, name)) for name in ("condition", "body", "ends")}
                decides = value.decides and tuple(map(self.slot, value.decides))
                return replace(value, **inside, carried=tuple(map(self.slot, value.carried)), decides=decides)
            case Branch():
                return replace(
                    value, branches=self._moved(value.branches), results=tuple(map(self.slot, value.results))
                )
            case tuple():
                return tuple(map(self._moved, cast("tuple[Any, ...]", value)))
            case NumberSlot():
                return value
            case _ if is_dataclass(value) and not isinstance(value, type):
                return replace(value, **{part.name: self._moved(getattr(value, part.name)) for part in fields(value)})
            case _:
                return value


def _called(op: Any) -> tuple[str, Mapping[str, Any]]:
    """The function of `library` that computes an op, else `hlo.` and its opcode; and the configuration."""
    if not isinstance(op, BufferOp):
        return f"{OF_THE_HOST}fusion", {}
    if (found := library_function(op)) is not None:
        return found
    name = f"{OF_THE_HOST}{opcode_of(op.HLO)}"
    match op.as_hlo():
        case PrintOp(label=label):
            return name, {"label": label.data}
        case ShapeAssertionOp(message=message):
            return name, {"message": message.data}
        case _:
            return name, {}


def _carried_out(step: Compute, known: Mapping[int, Expression | int]) -> Expression | None:
    """The result of arithmetic on sizes; None where it is none."""
    operands = [known.get(each.index) if isinstance(each, NumberSlot) else each for each in step.operands]
    sizes = [Expression.constant(each) if isinstance(each, int) else each for each in operands if each is not None]
    name = step.function.partition(".")[0]  # a size fits every type in which a program computes it
    if name not in OPERATIONS or len(sizes) < len(operands):
        return None
    return OPERATIONS[name](*sizes)
