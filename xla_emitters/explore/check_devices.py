"""`check` of a module for several devices: each device checks its kernels and its results, on what the others send it.

All devices do the same: each compiles, evaluates the reference and runs each stage, in a thread of its own, and meets the others at the
collectives of each of these runs. Source: `runtime/devices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check import Reference, Verdict, check
from xla_emitters.fusions.entry import entry_of
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileKeywords, CompileOptions
from xla_emitters.runtime.arrays import StandardInput
from xla_emitters.runtime.device_arrays import draw_for_devices, load_for_devices
from xla_emitters.runtime.devices import run_on_devices
from xla_emitters.runtime.reference import evaluate
from xla_emitters.runtime.reference_bounds import evaluate_bounds
from xla_emitters.runtime.repetition import MOST_ITERATIONS


def check_on_devices(
    module: ModuleOp,
    *,
    stages: str = "all",
    blocks: int = 0,
    sanitize: bool = True,
    inputs: str | Path | StandardInput | Sequence[Sequence[Array]] | None = None,
    seed: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
    most_iterations: int = MOST_ITERATIONS,
    **compiling: Unpack[CompileKeywords],
) -> Verdict:
    """The verdict of `explore.check` on each device, as one.

    inputs  for each device its arrays; a file as `device_arrays` reads it; None: drawn
    raises  as `explore.check`; ExecutionError where collectives do not meet
    """
    program = compile_module(module, replace(CompileOptions(**compiling), stage="hlo", record="none"))
    devices = program.devices
    if inputs is None:
        given: Sequence[Sequence[Array]] = draw_for_devices(program, entry_of(module), seed)
    elif isinstance(inputs, str | Path | StandardInput):
        given = load_for_devices(inputs, program)
    else:
        given = inputs
    found = dict[int, Verdict]()

    def check_one(device: int) -> None:
        found[device] = check(
            module,
            stages=stages,
            blocks=blocks,
            sanitize=sanitize,
            inputs=given[device],
            seed=seed,
            atol=atol,
            rtol=rtol,
            most_iterations=most_iterations,
            **compiling,
        )

    try:
        run_on_devices(devices, check_one)
    except ExecutionError:
        # A device whose numbers are wrong does not go on, and the others wait for it.
        if all(verdict.ok for verdict in found.values()):
            raise
    return verdict_of_devices([found[device] for device in sorted(found)], sorted(found), devices)


def references_on_devices(
    module: ModuleOp, inputs: Sequence[Sequence[Array]], *, most_iterations: int = MOST_ITERATIONS
) -> list[Reference]:
    """What ENTRY computes on each device, from the inputs of each, with bounds. raises as `evaluate` and `run_on_devices`"""
    return run_on_devices(
        len(inputs), lambda device: reference_of_device(module, inputs[device], most_iterations=most_iterations)
    )


def reference_of_device(
    module: ModuleOp, given: Sequence[Array], *, most_iterations: int = MOST_ITERATIONS
) -> Reference:
    """The same of the device that this thread or process stands for; the others do it at the same time."""
    entry = entry_of(module)
    values = evaluate(entry, given, most_iterations=most_iterations)
    bounds = evaluate_bounds(entry, given, most_iterations=most_iterations)
    return Reference(entry, given, values=values, bounds_of_ops=lambda: bounds)


def verdict_of_devices(verdicts: Sequence[Verdict], of: Sequence[int], devices: int) -> Verdict:
    """One verdict: the first wrong device's, or that all are right; of each kernel the same.

    of  the device of each verdict
    """
    wrong = next((number for number, verdict in enumerate(verdicts) if not verdict.ok), None)
    if wrong is not None:
        return replace(verdicts[wrong], summary=f"device {of[wrong]}: {verdicts[wrong].summary}")
    return replace(verdicts[0], summary=f"{verdicts[0].summary}, on each of {devices} devices")
