"""The devices of a module, each in a thread of its own: what `check` and `bisect` do on all of them, and their references.

All do the same: each compiles, evaluates the reference and runs each stage, and meets the others at the collectives of each of these runs.
Source: `runtime/devices`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.verdict import Reference, Verdict
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.runtime.arrays import StandardInput
from xla_emitters.runtime.device_arrays import draw_for_devices, load_for_devices
from xla_emitters.runtime.device_threads import run_on_devices
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds

T = TypeVar("T")


def given_on_devices(
    module: ModuleOp,
    options: CompileOptions,
    inputs: str | Path | StandardInput | Sequence[Sequence[Array]] | None,
    seed: int,
) -> Sequence[Sequence[Array]]:
    """The arrays of each device.

    inputs  for each device its arrays; a file as `device_arrays` reads it; None: drawn
    """
    program = compile_module(module, replace(options, stage="hlo", record="none"))
    if inputs is None:
        return draw_for_devices(program, entry_of(module), seed)
    return load_for_devices(inputs, program) if isinstance(inputs, str | Path | StandardInput) else inputs


def on_each_device(
    given: Sequence[Sequence[Array]], run: Callable[[Sequence[Array]], T], is_wrong: Callable[[T], bool]
) -> dict[int, T]:
    """What each device found. One on which something is wrong does not go on; the others, which wait for it, then have found nothing.

    raises  as `run_on_devices`, if nothing is wrong
    """
    found = dict[int, T]()

    def on_one(device: int) -> None:
        found[device] = run(given[device])

    try:
        run_on_devices(range(len(given)), on_one)
    except ExecutionError:
        if not any(map(is_wrong, found.values())):
            raise
    return found


def references_on_devices(module: ModuleOp, inputs: Mapping[int, Sequence[Array]]) -> list[Reference]:
    """What ENTRY computes on each device, from the inputs of each, with bounds. raises as `evaluate` and `run_on_devices`"""
    return run_on_devices([*inputs], lambda device: reference_of_device(module, inputs[device]))


def reference_of_device(module: ModuleOp, given: Sequence[Array]) -> Reference:
    """The same of the device that this thread or process stands for; the others do it at the same time."""
    entry = entry_of(module)
    values = evaluate(entry, given)
    bounds = evaluate_bounds(entry, given)
    return Reference(entry, given, known=values, bounds_of_ops=lambda: bounds)


def verdict_of_devices(verdicts: Sequence[Verdict], of: Sequence[int], devices: int) -> Verdict:
    """One verdict: the first wrong device's, or that all are right; of each kernel the same.

    of  the device of each verdict
    """
    wrong = next((number for number, verdict in enumerate(verdicts) if not verdict.ok), None)
    if wrong is not None:
        return replace(verdicts[wrong], summary=f"device {of[wrong]}: {verdicts[wrong].summary}")
    return replace(verdicts[0], summary=f"{verdicts[0].summary}, on each of {devices} devices")
