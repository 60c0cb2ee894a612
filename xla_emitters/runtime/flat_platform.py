"""Platforms of programs without unknown sizes: calls of library functions, and the arrays of launches.

In steps an array is flat, its elements in memory order; a library's functions take logical arrays. NumPy's arrays and CuPy's are handled
alike. A bundle contains this file, so it imports only files of the bundle (`bundle.FILES`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xla_emitters import library
from xla_emitters.library import OnElements
from xla_emitters.program.arrays import Argument, ArraySpec
from xla_emitters.program.callees import LibraryCall
from xla_emitters.program.sized import Launch, Place
from xla_emitters.runtime.numpy_calls import BufferFunction, NumpyCalls
from xla_emitters.runtime.walk import Frame


class FlatPlatform(NumpyCalls):
    """See the file's head.

    xp           the arrays' module: numpy or cupy
    calls        by the numbers of steps
    arguments    of a kernel, by its name
    on_elements  applies a computation to the elements of arrays; None: no function calls one
    donated      parameters that a kernel may update where they are: they become the results that share their memory
    """

    def __init__(
        self,
        xp: Any,
        calls: Sequence[LibraryCall],
        arguments: Mapping[str, Sequence[Argument]],
        on_elements: OnElements | None = None,
        donated: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(self.function_for)
        self.xp, self.calls, self._arguments = xp, calls, arguments
        self._on_elements, self._donated = on_elements, donated

    def function_for(self, number: int) -> BufferFunction:
        """The function of a call on flat arrays."""
        call, xp = self.calls[number], self.xp
        count, wanted = len(call.operands), [(result.dtype, result.shape) for result in call.results]

        def function(*buffers: Any) -> None:
            operands = [logical(buffer, spec) for buffer, spec in zip(buffers, call.operands, strict=False)]
            made = library.call(call.name, call.config, operands, wanted, xp, on_elements=self._on_elements)
            for buffer, array, spec in zip(buffers[count:], made, call.results, strict=True):
                physical = array.transpose(major_to_minor(spec))
                buffer[...] = xp.ascontiguousarray(physical).reshape(-1).view(buffer.dtype)

        return function

    def operands(self, frame: Frame, step: Launch) -> Callable[[], Sequence[Any]]:
        """The arrays of a launch when it runs.

        A kernel that updates a parameter of the program in place gets the result's memory for both: a copy of the caller's array.
        """
        places = [value for value in step.arguments if isinstance(value, Place)]
        operands, first, shared = frame.operands(places), dict[int, int](), list[tuple[int, int]]()
        for number, argument in enumerate(self._arguments[step.kernel]):
            other = first.setdefault(argument.slice_index, number)
            if places[other].slot != places[number].slot:
                shared.append((other, number))
                first[argument.slice_index] = number
        if not shared:
            return operands
        held, slots, donated = frame.arrays, [place.slot for place in places], self._donated

        def run() -> Sequence[Any]:
            arrays = list(operands())
            for source, target in shared:
                old, new = arrays[source], arrays[target]
                if slots[source] in donated:
                    held[slots[target]] = arrays[target] = old
                    continue
                new[...] = old.view(new.dtype)
                arrays = [new if array is old else array for array in arrays]
            return arrays

        return run


def logical(buffer: Any, spec: ArraySpec) -> Any:
    """A view of a flat, unpacked buffer as the logical array that it holds."""
    physical = major_to_minor(spec)
    shape = tuple(spec.shape[dim] for dim in physical)
    return buffer.reshape(shape).transpose([physical.index(dim) for dim in range(len(physical))])


def major_to_minor(spec: ArraySpec) -> tuple[int, ...]:
    """The dimensions in the order of memory, the slowest varying first."""
    return tuple(reversed(spec.minor_to_major))
