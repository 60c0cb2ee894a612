"""Runs a program in this process, on an NVIDIA GPU through CuPy.

    NumPy arrays in            -> copied to the device, results copied back
    CuPy or DLPack arrays in   -> used in place, on the caller's current stream; the results are CuPy arrays

A parameter is used in place when it is contiguous and has the alignment that the kernel assumes; else it is copied. An array of a type
that CuPy lacks (bf16, f8 ...) is passed as its bit patterns. Of a type below eight bits the caller's arrays hold one element per byte, and
the host packs them for the kernel. What each step does is in `cupy_platform`. Source: docs/reference/contracts "Arrays".
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from xla_emitters.device import device_running
from xla_emitters.errors import DataError, ToolError
from xla_emitters.library.arguments import numpy_type, pattern_type
from xla_emitters.library.packing import BITS_IN_SHARED_BYTES, packed_bytes
from xla_emitters.program import ArraySpec, Program
from xla_emitters.program.executable import executable_of
from xla_emitters.runtime.arrays import checked
from xla_emitters.runtime.cuda.cupy_arrays import is_exchanged, is_free
from xla_emitters.runtime.cuda.cupy_platform import find_cupy, to_device, to_host
from xla_emitters.runtime.dlpack import as_patterns
from xla_emitters.runtime.layouts import from_buffer, to_buffer
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.support.extras import install_command

HELP = f"{install_command(extras='cuda12')} (or cuda13); without a GPU: --platform cpu"


def cuda_reason_missing() -> str | None:
    """Why no kernel can be launched here, or None when one can."""
    return find_cupy()[1] or None


def device_architecture() -> str:
    """The architecture to compile for: the current device's own, e.g. "sm_90", or the newest known one before it."""
    cupy: Any = _cupy()
    return device_running(f"sm_{cupy.cuda.Device().compute_capability}").architecture


def describe_gpu() -> str:
    """`NVIDIA H200, sm_90, driver 12.8, CuPy 13.4.0`: the current device. raises ToolError without CuPy or a device."""
    cupy: Any = _cupy()
    runtime = cupy.cuda.runtime
    device = cupy.cuda.Device()
    name = runtime.getDeviceProperties(device.id)["name"].decode()
    major, minor = divmod(runtime.driverGetVersion() // 10, 100)
    return f"{name}, sm_{device.compute_capability}, driver {major}.{minor}, CuPy {cupy.__version__}"


def launch_program(program: Program, inputs: Sequence[Any], *, donate: bool = False) -> list[Any]:
    """Runs all steps; returns one array per result: NumPy's if all inputs are, else CuPy's.

    inputs  one array per parameter, of the shapes in `program.parameters`
    donate  as for `Program.run`
    raises  Unsupported for a program whose text left out data, or a library function that CuPy lacks; DataError for a wrong number, shape
            or type; ToolError without CuPy or a device, or when the driver rejects the PTX; ExecutionError for a loop beyond the limit
    """
    program.refuse_left_out()
    cupy: Any = _cupy()
    on_host = not any(map(is_exchanged, inputs))
    if len(inputs) != len(program.parameters):
        raise DataError(
            f"{program.name} takes {len(program.parameters)} arrays, {len(inputs)} were given", stage="launch"
        )
    given = [
        _parameter(cupy, array, spec, number)
        for number, (array, spec) in enumerate(zip(inputs, program.parameters, strict=True))
    ]
    from xla_emitters.runtime.cuda.cupy_steps import queue  # imported here, as in `_loaded`

    loaded = _loaded(cupy, program)
    for number in loaded.donated:
        if is_exchanged(inputs[number]) and not (donate and is_free(given, number)):
            given[number] = given[number].copy()
    results = loaded.run(given, queue(cupy))
    return [_result(cupy, buffer, spec, on_host=on_host) for buffer, spec in zip(results, program.results, strict=True)]


_programs: dict[tuple[int, int], LoadedProgram] = {}
"""(address of a live program, device) -> the program on that device."""


def _loaded(cupy: Any, program: Program) -> LoadedProgram:
    """The program on the current device, kept as long as the program. raises ToolError where the driver rejects the PTX"""
    key = id(program), int(cupy.cuda.Device().id)
    if (found := _programs.get(key)) is None:
        # Imported here: on a machine without a GPU only `cuda_reason_missing` is asked.
        from xla_emitters.runtime.cuda.cupy_flat import FlatCupyPlatform
        from xla_emitters.runtime.cuda.cupy_steps import CupyMemory

        platform = FlatCupyPlatform(cupy, program.kernels, program.calls)
        arguments = {kernel.name: kernel.arguments for kernel in program.kernels}
        made = executable_of(program.arrays, program.steps, program.calls, arguments)
        found = _programs[key] = LoadedProgram(made, platform, CupyMemory(cupy))
        weakref.finalize(program, _programs.pop, key, None)
    return found


def _result(cupy: Any, buffer: Any, spec: ArraySpec, *, on_host: bool) -> Any:
    """The caller's array of a result."""
    if on_host:
        return to_host(cupy, buffer, spec)
    if spec.dtype in BITS_IN_SHARED_BYTES:
        return cupy.asarray(to_host(cupy, buffer, spec).view(np.uint8))
    return from_buffer(buffer, spec)


def _parameter(cupy: Any, array: Any, spec: ArraySpec, number: int) -> Any:
    """The buffer of a parameter: a flat device array in memory order; copied only if `array` is not already one."""
    if not is_exchanged(array):
        return to_device(cupy, checked(array, spec, f"parameter {number}"), spec)
    wanted = pattern_type(spec.dtype)
    on_device = array if isinstance(array, cupy.ndarray) else cupy.from_dlpack(as_patterns(array))
    if tuple(on_device.shape) != spec.shape or on_device.dtype not in (wanted, numpy_type(spec.dtype)):
        raise DataError(
            f"parameter {number} is {on_device.dtype}{list(on_device.shape)}, but {spec} is expected ({wanted})",
            stage="launch",
        )
    buffer = to_buffer(on_device, spec, cupy)
    if spec.dtype not in BITS_IN_SHARED_BYTES:
        return buffer
    return cupy.asarray(packed_bytes(cupy.asnumpy(buffer.view(wanted)), BITS_IN_SHARED_BYTES[spec.dtype]))


def _cupy() -> Any:
    if reason := cuda_reason_missing():
        raise ToolError(reason, stage="launch", help=HELP)
    return find_cupy()[0]
