"""A program with unknown sizes as plain data, with the keys and types of `Program.to_json`.

    {"name": "m", "parameters": [{"dtype": "f32", "shape": ["b", 4], ...}], "kernels": [{"grid": ["ceildiv(b, 64)", 1, 1], ...}], ...}

A size is a number, or text where it is an expression in the symbols, or None where only a call knows it. Sizes of launches are found by
carrying out the host's steps on sizes instead of numbers. Temporaries and steps are None: the sizes of a call decide them.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from xla_emitters.dialects.hlo.computation import TupleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.fusions.entry import entry_of
from xla_emitters.host.steps_of_buffers import SizedSteps
from xla_emitters.pipelines.program_inputs import Described
from xla_emitters.pipelines.program_kernels import GpuLowering, SizedKernel
from xla_emitters.program.steps import Branch, Compute, Dimension, Extent, Launch, Load, Number, Place, steps_within
from xla_emitters.shapes import Size, ceildiv, floordiv, maximum, minimum, mod
from xla_emitters.shapes.size import as_size
from xla_emitters.sizes import Sizes

OPERATIONS: Mapping[str, Callable[..., Size]] = {
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


class Compiled(Described, Protocol):
    """The part of `DynamicProgram` that this file uses."""

    @property
    def target(self) -> str: ...
    @property
    def stage(self) -> str: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...


def program_json(program: Compiled, code: str, lowering: GpuLowering | None) -> dict[str, Any]:
    """Plain data, as docs/json.md says; without the trace.

    code      of the program at its stage
    lowering  None for a stage without kernels
    """
    guards = program.sizes.guards
    parameters = [
        {**_array(element, map(_size, parameter.shape)), "name": parameter.name}
        for element, parameter in zip(guards.types, guards.parameters, strict=True)
    ]
    return {
        "name": program.name,
        "target": program.target,
        "parameters": parameters,
        "results": list(_results(program)),
        "temporaries": None,
        "symbols": list(program.symbols),
        "guards": list(guards.lines()),
        "kernels": [] if lowering is None else list(kernels_json(lowering, program.sizes)),
        "calls": None,
        "steps": None,
        "stage": program.stage,
        "code": code,
        "hlo": "",
        "fusion": None,
        "left_out": list(program.left_out),
    }


def _size(size: Size | int | None) -> int | str | None:
    """A number, the text of an expression, or None."""
    value = size.value if isinstance(size, Size) else size
    return str(size) if value is None and size is not None else value


def _array(dtype: str, shape: Iterator[int | str | None]) -> dict[str, Any]:
    dims = list(shape)
    return {"dtype": dtype, "shape": dims, "minor_to_major": list(reversed(range(len(dims))))}


def _results(program: Compiled) -> Iterator[dict[str, Any]]:
    root = entry_of(program.source).root
    for value in root.owner.operands if isinstance(root.owner, TupleOp) else [root]:
        if is_array(value.type):
            dims = dims_of(value)
            known = program.sizes.of(value) or (None,) * len(dims)
            shape = (dim if dim >= 0 else _size(size) for dim, size in zip(dims, known, strict=True))
            yield _array(element_of(value).name, shape)


def kernels_json(lowering: GpuLowering, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Each kernel with its first launch."""
    if not lowering.kernels:
        return
    made = lowering.watched("kernels").made
    numbers = _Numbers(made, sizes)
    launches = {step.kernel: step for step in reversed([*steps_within(made.steps)]) if isinstance(step, Launch)}
    for kernel in lowering.kernels:
        yield _kernel(kernel, launches.get(kernel.name), numbers)


def _kernel(kernel: SizedKernel, launch: Launch | None, numbers: _Numbers) -> dict[str, Any]:
    """A kernel with its first launch; a launch is missing where a specialization was merged with another kernel's."""
    taken = launch.arguments if launch is not None else ()
    arrays = [each for each in taken if isinstance(each, Place)]
    scalars = [each for each in taken if not isinstance(each, Place)]
    types = kernel.parameters[len(taken) - len(scalars) :]
    slots = list(dict.fromkeys(place.slot for place in arrays))
    return {
        "name": kernel.name,
        "grid": [numbers.size(extent) for extent in launch.grid] if launch is not None else [None] * 3,
        "block": list(kernel.block),
        "shared_bytes": kernel.shared_bytes,
        "architecture": kernel.architecture,
        "arguments": [numbers.argument(place, slots.index(place.slot)) for place in arrays],
        "scalars": [
            {"dtype": ir_type, "value": numbers.size(scalar)} for ir_type, scalar in zip(types, scalars, strict=False)
        ],
    }


@dataclass
class _Numbers:
    """The numbers of the host that are expressions in the symbols."""

    made: SizedSteps
    sizes: Sizes

    def __post_init__(self) -> None:
        steps = [*steps_within(self.made.steps)]
        self._known = dict[int, Size | int]()
        self._shapes = {
            place.slot: parameter.shape
            for place, parameter in zip(self.made.parameters, self.sizes.guards.parameters, strict=True)
        }
        for place in self.made.parameters:
            for extent, size in zip(place.shape, self._shapes[place.slot], strict=True):
                if isinstance(extent, Number):
                    self._known[extent.index] = size
        assigned = Counter(step.result.index for step in steps if isinstance(step, Compute | Dimension | Load))
        assigned.update(number for step in steps if isinstance(step, Branch) for number in step.chosen)
        for step in steps:
            if isinstance(step, Compute | Dimension) and assigned[step.result.index] == 1:
                if (size := self._result(step)) is not None:
                    self._known[step.result.index] = size

    def _result(self, step: Compute | Dimension) -> Size | int | None:
        if isinstance(step, Dimension):
            shape = self._shapes.get(step.slot)
            return shape[step.axis] if shape is not None and isinstance(step.axis, int) else None
        operands = [self._of(operand) for operand in step.operands]
        known = [Size.constant(each) if isinstance(each, int) else each for each in operands if each is not None]
        name = step.function.partition(".")[0]  # a size fits every type in which a program computes it
        if name not in OPERATIONS or len(known) < len(operands):
            return None
        return OPERATIONS[name](*known)

    def _of(self, extent: Extent) -> Size | int | None:
        return self._known.get(extent.index) if isinstance(extent, Number) else extent

    def size(self, extent: Extent) -> int | str | None:
        """A size as plain data."""
        return None if isinstance(extent, int) and extent < 0 else _size(self._of(extent))

    def argument(self, place: Place, number: int) -> dict[str, Any]:
        """An array that a kernel takes; arguments with one `number` are one array."""
        parameters, results = ([each.slot for each in of] for of in (self.made.parameters, self.made.results))
        kind, index = "temporary", place.slot
        for name, slots in (("parameter", parameters), ("result", results)):
            if place.slot in slots:
                kind, index = name, slots.index(place.slot)
        return {
            "kind": kind,
            "index": index,
            "array": _array(place.dtype, map(self.size, place.shape)),
            "bytes": None,
            "alignment": ALIGNMENT_BYTES,
            "slice_index": number,
            "written": None,
        }
