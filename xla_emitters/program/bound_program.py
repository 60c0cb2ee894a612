"""A program at one set of sizes: its guards hold, and what follows from the sizes is known before a call.

b = p.bind(b=4, s=128)
b.launches          (Launch("main_kStitch_reduce_0", (512, 1, 1), (128, 1, 1), 16, ...), ...), on a GPU, in order
b.arena_bytes       524288: of the arrays between the steps
y = b(x)            p(x); arrays of other sizes are refused
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from xla_emitters.errors import DataError
from xla_emitters.program.bind import BoundSteps
from xla_emitters.program.step_values import ArraySpec
from xla_emitters.program.steps import Launch, Step, steps_within
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class BoundProgram:
    """See the file's head.

    program     the `Program`, at any sizes
    sizes       symbol -> size; {} of a program whose sizes are all known
    parameters  with these sizes
    made        the steps for a GPU at these sizes
    """

    program: Any
    sizes: Mapping[str, int]
    parameters: tuple[ArraySpec, ...]
    made: Callable[[], BoundSteps] = field(repr=False)

    @cached_property
    def _bound(self) -> BoundSteps:
        return self.made()

    @property
    def steps(self) -> tuple[Step, ...]:
        """What a call does on a GPU: the program's steps without what the sizes decide. raises Unsupported for what no kernel computes"""
        return self._bound.steps

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Those of its kernels, in order, a loop's once; a number is left where only data decide it. raises like `steps`"""
        return tuple(step for step in steps_within(self.steps) if isinstance(step, Launch))

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arrays between the steps; two that are never needed at once may share memory. raises like `steps`"""
        return self._bound.arena_bytes

    @cached_property
    def _here(self) -> Any:
        """The program, which refuses arrays of other sizes, with the arguments of the function it was made of."""
        return replace(self.program, compilation=_AtSizes(self.program.compilation, self))

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """As `Program.__call__`. raises like it, and DataError for arrays of other sizes"""
        return self._here(*inputs, **keywords)

    def run(self, inputs: Sequence[Any], stage: str | None = None, **keywords: Any) -> Sequence[Any]:
        """As `Program.run`. raises like `__call__`"""
        return self._here.run(inputs, stage, **keywords)

    def run_cpu(self, *inputs: Any, stage: str | None = None, **keywords: Any) -> Any:
        """As `Program.run_cpu`. raises like `__call__`"""
        return self._here.run_cpu(*inputs, stage=stage, **keywords)

    def on(self, platform: str) -> Any:
        """As `Program.on`. raises like it; what it returns, like `__call__`"""
        return self._here.on(platform)

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{self.program.name} for {self.program.target}{f' at {sizes}' if sizes else ''}: ({', '.join(map(str, self.parameters))})"

    __repr__ = __str__

    def check(self, inputs: Sequence[Any]) -> None:
        """raises DataError for an array of another shape"""
        for number, (value, spec) in enumerate(zip(inputs, self.parameters, strict=False)):
            shape = tuple(value.shape) if hasattr(value, "shape") else np.shape(value)
            if shape != spec.shape:
                found = ",".join(map(str, shape))
                raise DataError(
                    f"argument {number} (p{number}) has the sizes [{found}]; {self.program.name} is bound where it is {spec}",
                    stage="run",
                    help="the program itself takes any sizes that fit it",
                )


class _AtSizes:
    """A compilation that runs at these sizes alone; in all else the one that it is made of."""

    def __init__(self, of: Any, at: BoundProgram) -> None:
        self._of, self._at = of, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def run(self, program: Any, inputs: Sequence[Any], stage: str | None, *, donate: bool) -> Sequence[Any]:
        self._at.check(inputs)
        return self._of.run(self._at.program, inputs, stage, donate=donate)

    def on_gpu(self, program: Any) -> _OnGpuAtSizes:
        return _OnGpuAtSizes(self._of.on_gpu(self._at.program), self._at)


@dataclass(frozen=True)
class _OnGpuAtSizes:
    """The program on a GPU, at these sizes alone."""

    of: Any
    at: BoundProgram

    def run(self, inputs: Sequence[Any], *, donate: bool = False) -> Sequence[Any]:
        self.at.check(inputs)
        return self.of.run(inputs, donate=donate)

    @property
    def log(self) -> Mapping[str, str]:
        return self.of.log

    def __call__(self, *inputs: Any, donate: bool = False, **keywords: Any) -> Any:
        self.at.check(inputs)
        return self.of(*inputs, donate=donate, **keywords)
