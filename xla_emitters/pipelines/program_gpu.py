"""A program with unknown sizes on an NVIDIA GPU: kernels by the driver, library calls by CuPy.

    on_gpu = program.on("gpu")
    y = on_gpu(x)                       NumPy arrays in and out; CuPy or DLPack arrays in, CuPy arrays out
    on_gpu.log                          ops that were computed on the host instead, and why

An op without a kernel is computed by a function of `library` on CuPy; what CuPy lacks is computed by NumPy on copies. Compiled once.
Source: docs/reference/4 4.1, 4.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.hlo.contractions import ConvolutionOp
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp, DynamicRngOp, DynamicTopKOp
from xla_emitters.dialects.hlo.library_calls import is_library_call, library_call_of
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dynamic.sizes import ArgumentFacts
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.library.arguments import element_name, numpy_type, pattern_type, top_key
from xla_emitters.pipelines.lowerings import Lowerings
from xla_emitters.program.compiled import OnPlatform
from xla_emitters.runtime.cuda.cupy_arrays import is_exchanged, is_free, is_numpy, refuse_packed, to_numpy
from xla_emitters.runtime.cuda.cupy_launcher import HELP
from xla_emitters.runtime.cuda.cupy_platform import find_cupy, load_module
from xla_emitters.runtime.cuda.cupy_steps import CalledOp, CupyMemory, CupyPlatform, queue
from xla_emitters.runtime.dlpack import as_patterns
from xla_emitters.runtime.loaded import MOST_BINDINGS, LoadedProgram
from xla_emitters.runtime.ral.buffer_ops import function_of


class GpuProgram(OnPlatform):
    """A program on the GPU; see the file's head. Its kernels are made when they are first needed.

    raises  ToolError without CuPy or a device
    """

    def __init__(self, made: Lowerings) -> None:
        cupy, reason = find_cupy()
        if cupy is None:
            raise ToolError(reason, stage="launch", help=HELP)
        self.made = made
        self._cupy = cupy
        # Types, sizes and strides of arguments that fit -> the numbers of those that are not in C order.
        self._fitting = dict[tuple[Any, ...], tuple[int, ...]]()

    @cached_property
    def platform(self) -> CupyPlatform:
        """Computes its steps on the device; a record of the launches, and of what the host computes."""
        lowering = self.made.lowering
        made, names = lowering.steps, tuple(kernel.name for kernel in lowering.kernels)
        refuse_packed(self.made.results)
        return CupyPlatform(
            self._cupy,
            lambda number: function_of(made.ops[number]),
            list(map(called_op, made.ops)),
            names,
            lambda is_wide, device: load_module(
                lowering.wide_ptx if is_wide else lowering.ptx, names, lowering.options.device.architecture, device
            ),
            lowering.exceeds,
        )

    @cached_property
    def loaded(self) -> LoadedProgram:
        """The program's steps."""
        return LoadedProgram(self.made.lowering.steps, self.platform, CupyMemory(self._cupy))

    @property
    def log(self) -> Mapping[str, str]:
        """Ops computed on the host so far, and why."""
        return self.platform.log

    def run(self, inputs: Sequence[Any], *, donate: bool = False) -> list[Any]:
        """The results for these arguments: NumPy arrays; CuPy arrays if the arguments are arrays of the device.

        raises  DataError for arguments that do not fit the program, ExecutionError, ToolError where the driver refuses
        """
        order = queue(self._cupy)
        if any(map(is_exchanged, inputs)):
            return self.loaded.run(self._checked(inputs, donate=donate), order)
        found = self.loaded.run(self.made.checked(inputs), order)
        return [to_numpy(self._cupy, array, name) for array, name in zip(found, self.made.results, strict=True)]

    def _checked(self, inputs: Sequence[Any], *, donate: bool) -> list[Any]:
        """The arguments as C-ordered arrays of the device; those that the program overwrites are copied, unless they are donated."""
        arrays = [self._array(value, number) for number, value in enumerate(inputs)]
        key = tuple([(array.dtype, array.shape, array.strides) for array in arrays])
        if (strided := self._fitting.get(key)) is None:
            types = self.made.sizes.guards.types
            said = [
                ArgumentFacts(types[number] if _holds(array, types, number) else element_name(array.dtype), array.shape)
                for number, array in enumerate(arrays)
            ]
            self.made.sizes.guards.check(said)
            if len(self._fitting) >= MOST_BINDINGS:
                self._fitting.clear()
            strided = tuple(number for number, array in enumerate(arrays) if not array.flags.c_contiguous)
            self._fitting[key] = strided
        for number in strided:
            array = arrays[number]
            placed = np.asarray(array, order="C") if is_numpy(array) else self._cupy.ascontiguousarray(array)
            arrays[number] = placed.reshape(array.shape)
        for number in self.made.overwritten:
            if is_numpy(arrays[number]) or not (donate and is_free(arrays, number)):
                arrays[number] = arrays[number].copy()
        return arrays

    def _array(self, value: Any, number: int) -> Any:
        """An argument as an array of the device, or if it is in the host's memory, NumPy's."""
        if isinstance(value, (self._cupy.ndarray, np.ndarray)):
            return value
        return (
            self._cupy.from_dlpack(as_patterns(value)) if is_exchanged(value) else self.made.host_array(value, number)
        )


def _holds(array: Any, types: Sequence[str], number: int) -> bool:
    """Whether a CuPy array has the argument's type; for a type that CuPy lacks, the type of its bit patterns."""
    return number < len(types) and array.dtype in (pattern_type(types[number]), numpy_type(types[number]))


def called_op(op: BufferOp | FusionOp) -> CalledOp:
    """What the platform knows of an op."""
    if isinstance(op, FusionOp):
        return CalledOp("fusion", None)
    return CalledOp(opcode_of(op.HLO), library_function(op))


def library_function(op: BufferOp) -> tuple[str, Mapping[str, Any]] | None:
    """The function of `library` that computes an op at any sizes, and its configuration; None if it has none."""
    made = op.as_hlo()
    if isinstance(made, DynamicConvOp):  # the padding is an operand
        plain = ConvolutionOp.create(
            operands=made.operands[:2], result_types=[made.result.type], properties=made.properties
        )
        name, config = library_call_of(plain)
        return name, {**config, "operands": [*config["operands"], "padding"]}
    if isinstance(made, DynamicTopKOp):  # its number is an operand
        return "top_k", {"types": [element_of(made.operands[0]).name], "keys": [top_key(largest=True)]}
    if isinstance(made, DynamicRngOp):
        made = made.as_rng(made.result.type)
    if not is_library_call(made):
        return None
    try:
        name, config = library_call_of(made)
    except Unsupported:
        return None
    return None if config.get("comparator") else (name, config)
