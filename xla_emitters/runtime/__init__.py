"""Runs compiled programs: arrays at the boundary, CuPy, the CPU executor in `simt`, and the functions that execute a `Program`.

Importing this package makes programs callable: it registers each platform's launcher with `program`, which imports none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xla_emitters.errors import Unsupported
from xla_emitters.program import LAUNCHERS, Kernel, Program

__all__ = ["Kernel", "Program"]


def _on_gpu(program: Program, inputs: Sequence[Any], *, donate: bool = False) -> Sequence[Any]:
    from xla_emitters.library.devices import is_one_of_several
    from xla_emitters.runtime.cuda.cupy_launcher import launch_program

    if program.devices > 1 and not is_one_of_several():
        raise Unsupported(
            f"{program.name} is for {program.devices} GPUs, one in each process",
            stage="run",
            help=f"mpirun -n {program.devices} xla-emitters run FILE --comm nccl",
        )
    return launch_program(program, inputs, donate=donate)


def _on_cpu(
    program: Program, inputs: Sequence[Any], stage: str | None = None, *, donate: bool = False
) -> Sequence[Any]:
    from xla_emitters.library.devices import is_one_of_several
    from xla_emitters.runtime.cpu.cpu_launcher import run_program

    if program.devices == 1 or is_one_of_several():
        return run_program(program, inputs, stage, donate=donate)
    from xla_emitters.runtime.device_arrays import run_on_whole_arrays

    return run_on_whole_arrays(program, inputs, lambda arrays: run_program(program, arrays, stage))


def _memory(program: Program, inputs: Sequence[Any]) -> Any:
    from xla_emitters.runtime.cpu.cpu_launcher import loaded_for

    loaded, buffers = loaded_for(program, inputs)
    return loaded.memory(buffers)


def _dispatches(program: Program, inputs: Sequence[Any]) -> Sequence[Any]:
    from xla_emitters.runtime.cpu.cpu_launcher import loaded_for

    loaded, buffers = loaded_for(program, inputs)
    return loaded.dispatches(buffers)


LAUNCHERS.update(gpu=_on_gpu, cpu=_on_cpu, memory=_memory, dispatches=_dispatches)
