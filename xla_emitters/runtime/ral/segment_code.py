"""The events of a segment in the form that machine code calls: words in memory for each step, and calls from Python in between.

code = SegmentCode(segment, inputs, kernels, steps)
code.pack(code.objects, 0, *addresses of the call's arrays)
steps.replay(code.header)        or code.run(...), if there are calls from Python
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.ral.buffer_ops import OfIntegers
from xla_emitters.runtime.ral.convolution import Convolution, Shape
from xla_emitters.runtime.ral.gemm import Contraction, Factors, Gemm
from xla_emitters.runtime.ral.host_kernels import SCRATCH_ALIGNMENT, HostKernels, parts_of
from xla_emitters.runtime.ral.segments import Launch, Place, Run, Segment, Set, Slot

FORMATS: Mapping[str, str] = {"float": "<fxxxx", "double": "<d", "i1": "<?xxxxxxx"}
"""A type -> how one of its numbers is stored in a word; others are integers."""


Step: TypeAlias = tuple[int, list[int | Slot]]
"""The address of its code, and its words."""


@dataclass(frozen=True)
class Steps:
    """Machine code that runs plans.

    replay    calls the steps of a header; the result is nonzero if an array is not aligned as kernels need
    copy      address of the step that copies bytes
    integers  (opcode, types, direction) -> address of the step of an op on scalar integers
    """

    replay: Callable[[int], int]
    copy: int
    integers: Callable[[str, Sequence[str], str], int]


class SegmentCode:
    """The events of a segment, ready to be repeated.

    results  for each array that the call returns: shape, element type, and the index of the donated argument that it is; None: a new array
    is_empty whether there is nothing to do
    header   address of the steps, if all events are steps; else 0, and `run` repeats the events
    objects  memory for the addresses of the array objects, written by `pack`
    """

    def __init__(self, segment: Segment, inputs: int, kernels: HostKernels, steps: Steps) -> None:
        self._inputs, self._kernels, self._steps = inputs, kernels, steps
        self._kept = list[Any]()
        self._parts = list[int | tuple[Callable[..., None], tuple[Any, ...]]]()
        self._pending = list[Step]()
        made = set(segment.slots)  # neither arguments, which belong to the caller, nor constants
        self._returned = {place.slot: number for number, place in enumerate(segment.results) if place.slot in made}
        self.results = [(place.shape, place.dtype, place.slot.number) for place in segment.results]
        self.objects = bytearray(8 * (inputs + len(self.results)))
        self.pack = struct.Struct(f"<{inputs + len(self.results)}q").pack_into
        self._objects_at = self._keep(np.frombuffer(self.objects, np.uint8))
        self._segment = segment
        self._scratch = self._scratch_for(segment)
        for event in segment.events:
            match event:
                case Launch():
                    self._launch(event)
                case Run():
                    self._run(event)
                case Set(target, source):
                    self._set(target, source)
        for number, place in enumerate(segment.results):
            if place.slot not in self._returned and place.slot.number is None:
                self._copy(_Result(number), place.slot, place.bytes)
        self._flush()
        self.is_empty = not self._parts
        first = self._parts[0] if len(self._parts) == 1 else 0
        self.header = first if isinstance(first, int) else 0
        if segment.read is not None:
            place, indices = segment.read
            self._read = self._value(place), indices

    # --------------------------------------------------------------------------------------------------------- repeat

    def run(self, inputs: Sequence[Array], results: Sequence[Array], replay: Callable[[int], int]) -> bool:
        """Repeats the events. Returns whether the inputs are aligned as kernels need: if not, only the results are wrong."""
        arrays = [*inputs, *results]
        with np.errstate(all="ignore"):
            for part in self._parts:
                if isinstance(part, int):
                    if replay(part):
                        return False
                else:
                    function, arguments = part
                    function(
                        *[
                            arrays[value.number].reshape(value.shape) if type(value) is _Given else value
                            for value in arguments
                        ]
                    )
        return True

    def read(self, inputs: Sequence[Array]) -> Any:
        """The element that the program reads at the segment's end."""
        array, indices = self._read
        return (inputs[array.number].reshape(array.shape) if isinstance(array, _Given) else array).item(*indices)

    # -------------------------------------------------------------------------------------------------------- prepare

    def _keep(self, array: Array) -> int:
        """Keeps an array alive as long as the code; returns its address."""
        self._kept.append(array)
        return array.ctypes.data

    def _scratch_for(self, segment: Segment) -> int:
        wanted = max((event.shared_bytes for event in segment.events if isinstance(event, Launch)), default=0)
        address = self._keep(np.empty(wanted + SCRATCH_ALIGNMENT, np.uint8))
        return address + -address % SCRATCH_ALIGNMENT

    def _launch(self, event: Launch) -> None:
        total = sum(value.bytes for value in event.arguments if isinstance(value, Place))
        kernels = event.kernels
        if parts_of(event.grid[0], total) > 1 or kernels.step_of is None:

            def launch(*arguments: Any) -> None:
                kernels.launch(event.name, event.grid, (1, 1, 1), event.shared_bytes, arguments)

            return self._python(launch, event.arguments)
        self._kept.append(kernels)
        types = kernels.parameters[event.name]
        words = [
            value.slot if isinstance(value, Place) else _word(value, ir_type)
            for value, ir_type in zip(event.arguments, types, strict=True)
        ]
        self._pending.append((kernels.step_of(event.name), [*words, 0, event.grid[0], self._scratch]))
        return None

    def _run(self, event: Run) -> None:
        function: object = event.function
        step = None
        if isinstance(function, Gemm):
            left, right, out, *transposed, _ = event.arguments[2:]
            if function.plain is not None:
                factors = function.factors(left.array(), right.array(), out.array(), *transposed)
                step = self._product(function.plain, factors, (left, right, out))
        elif isinstance(function, Contraction):
            factors = function.factors(*[place.array() for place in event.arguments])
            step = self._product(function.element, factors, event.arguments) if factors is not None else None
        elif isinstance(function, Convolution):
            step = self._convolution(function, event.arguments[2:])
        elif isinstance(function, OfIntegers):
            address = self._steps.integers(function.opcode, function.types, function.direction)
            step = address, [place.slot for place in event.arguments]
        if step is not None:
            self._pending.append(step)
        else:
            self._python(event.function, event.arguments)

    def _product(self, element: str, factors: Factors, places: Sequence[Place]) -> Step | None:
        """The step of a product of these buffers that no threads share; None for any other."""
        work, (left, right, out) = factors.work, places
        addresses = [array.ctypes.data for array in factors]
        are_views = addresses == [place.slot.memory.ctypes.data for place in places]
        if work.is_shared or not are_views or (code := self._kernels.product(element)) is None:
            return None
        across = code.across(work)
        slots = (right.slot, left.slot) if factors.is_turned else (left.slot, right.slot)
        return code.address, [out.slot, *slots, *work.words(0, work.items(across), across)]

    def _convolution(self, convolution: Convolution, arguments: Sequence[Any]) -> Step | None:
        """The step of a convolution that threads do not share, with padding that follows from sizes; None for any other."""
        image, kernel, padding, out, numbers = arguments
        if convolution.element is None or not padding.slot.is_constant:
            return None
        arrays = [place.array() for place in (image, kernel, out)]
        work = Shape.of(numbers, arrays[1], padding.array()).work(*arrays)
        if work is None or work.is_shared or (code := self._kernels.convolution(convolution.element)) is None:
            return None
        memory = self._keep(np.empty(code.scratch_bytes(work.features) + SCRATCH_ALIGNMENT, np.uint8))
        memory += -memory % SCRATCH_ALIGNMENT
        words = work.words(0, work.items(code.lanes))
        return code.address_of(work.rows > 0), [out.slot, image.slot, kernel.slot, memory, *words]

    def _python(self, function: Callable[..., None], arguments: Sequence[Any]) -> None:
        self._flush()
        self._parts.append((function, tuple(self._value(v) if isinstance(v, Place) else v for v in arguments)))

    def _set(self, target: Slot, source: Slot | Array) -> None:
        if target.is_constant and target not in self._returned:
            return
        if isinstance(source, Slot):
            self._copy(target, source, source.memory.nbytes)
        else:
            self._copy(target, self._keep(source), source.nbytes)

    def _copy(self, target: Slot | _Result, source: Slot | int, count: int) -> None:
        self._pending.append((self._steps.copy, [target, source, count]))  # pyright: ignore[reportArgumentType]

    def _value(self, place: Place) -> Any:
        """A buffer as a function takes it: an array, or the index of an array of the call."""
        number = self._number(place.slot)
        if number is not None:
            return _Given(number, place.shape)
        self._kept.append(place.slot.memory)
        return place.array()

    def _number(self, slot: Slot | _Result) -> int | None:
        """The index of the call's array; None for a buffer of the plan."""
        if isinstance(slot, _Result):
            return self._inputs + slot.number
        if slot.number is not None:
            return slot.number
        return None if (found := self._returned.get(slot)) is None else self._inputs + found

    def _flush(self) -> None:
        """Turns the steps since the last call from Python into a part."""
        if not self._pending:
            return
        words = np.zeros(sum(len(given) for _, given in self._pending), np.int64)
        begin, place = self._keep(words), 0
        relocations, steps = list[tuple[int, int]](), list[tuple[int, int]]()
        for function, given in self._pending:
            steps.append((function, begin + 8 * place))
            for value in given:
                number = None if isinstance(value, int) else self._number(value)
                if isinstance(value, int):
                    words[place] = value
                elif number is not None:
                    relocations.append((begin + 8 * place, number))
                else:
                    words[place] = self._keep(value.memory)
                place += 1
        header = [
            self._keep(np.array(relocations, np.int64)),
            len(relocations),
            self._objects_at,
            self._keep(np.array(steps, np.int64)),
            len(steps),
        ]
        self._parts.append(self._keep(np.array(header, np.int64)))
        self._pending = []


@dataclass(frozen=True)
class _Result:
    """The array of the call that is the result of that number."""

    number: int


@dataclass(frozen=True)
class _Given:
    """An array of the call, in another shape."""

    number: int
    shape: tuple[int, ...]


def _word(value: Any, ir_type: str) -> int:
    """A number as the bits of the word from which a step reads it."""
    if (layout := FORMATS.get(ir_type)) is not None:
        return struct.unpack("<q", struct.pack(layout, value))[0]
    return int(value)
