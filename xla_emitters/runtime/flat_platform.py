"""Platforms of programs without unknown sizes: calls of library functions, and the arrays of launches.

In steps an array is flat, its elements in memory order; a library's functions take logical arrays. NumPy's arrays and CuPy's are handled
alike. A bundle contains this file, so it imports only files of the bundle (`bundle.FILES`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from xla_emitters import library
from xla_emitters.library import OnElements
from xla_emitters.program.arrays import Argument
from xla_emitters.program.callees import LibraryCall
from xla_emitters.program.steps import Launch, Place
from xla_emitters.runtime.layouts import from_buffer, to_buffer
from xla_emitters.runtime.numpy_calls import BufferFunction, NumpyCalls
from xla_emitters.runtime.walk import Frame, Run


class FlatPlatform(NumpyCalls):
    """See the file's head.

    xp           the arrays' module: numpy or cupy
    calls        by the numbers of steps
    arguments    of a kernel, by its name
    on_elements  applies a computation to the elements of arrays; None: no function calls one
    """

    def __init__(
        self,
        xp: Any,
        calls: Sequence[LibraryCall],
        arguments: Mapping[str, Sequence[Argument]],
        on_elements: OnElements | None = None,
    ) -> None:
        super().__init__(self.function_for)
        self.xp, self.calls, self._arguments = xp, calls, arguments
        self._on_elements = on_elements

    def function_for(self, number: int) -> BufferFunction:
        """The function of a call on flat arrays."""
        call, xp = self.calls[number], self.xp
        count, wanted = len(call.operands), [(result.dtype, result.shape) for result in call.results]

        def function(*buffers: Any) -> None:
            operands = [from_buffer(buffer, spec) for buffer, spec in zip(buffers, call.operands, strict=False)]
            made = library.call(call.name, call.config, operands, wanted, xp, on_elements=self._on_elements)
            for buffer, array, spec in zip(buffers[count:], made, call.results, strict=True):
                buffer[...] = to_buffer(array, spec, xp).view(buffer.dtype)

        return function

    def launch(self, frame: Frame, step: Launch) -> Run:
        """A kernel that updates a parameter of the program in place gets the result's memory for both: a copy of the caller's array."""
        places = [value for value in step.arguments if isinstance(value, Place)]
        first, before = dict[int, Place](), list[Run]()
        for number, argument in enumerate(self._arguments[step.kernel]):
            source, target = first.setdefault(argument.slice_index, places[number]), places[number]
            if source.slot != target.slot:
                before.append(self._update(frame, source, target))
                places = [target if place.slot == source.slot else place for place in places]
                first[argument.slice_index] = target
        run = self.launch_on(frame, replace(step, arguments=tuple(places)))
        if not before:
            return run

        def run_all() -> None:
            for prepare in before:
                prepare()
            run()

        return run_all

    @abstractmethod
    def launch_on(self, frame: Frame, step: Launch) -> Run:
        """A launch on its arrays as they are."""
        ...

    def _update(self, frame: Frame, source: Place, target: Place) -> Run:
        """Gives a target, whose memory is to be that of a source, the source's elements."""
        arrays = frame.arrays

        def copy() -> None:
            held = arrays[target.slot]
            held[...] = arrays[source.slot].view(held.dtype)

        return copy
