"""Calls computed by NumPy: each op by its function of arrays, operands first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xla_emitters.program.steps import Call
from xla_emitters.runtime.walk import Frame, Platform, Run

BufferFunction: TypeAlias = Callable[..., None]
"""(operands ..., results ...): writes the results."""


class NumpyCalls(Platform):
    """A platform whose ops outside of kernels are NumPy's.

    function_of  makes the function of an op, by its number
    """

    def __init__(self, function_of: Callable[[int], BufferFunction]) -> None:
        self._function_of = function_of
        self._functions = dict[int, BufferFunction]()

    def function(self, number: int) -> BufferFunction:
        """The function that computes an op."""
        if number not in self._functions:
            self._functions[number] = self._function_of(number)
        return self._functions[number]

    def evaluate(self, number: int, arrays: Sequence[Any]) -> None:
        """Computes an op now."""
        self.function(number)(*arrays)

    def call(self, frame: Frame, step: Call) -> Run:
        function, operands = self.function(step.op), frame.operands((*step.reads, *step.writes))
        return lambda: function(*operands())
