"""The NumPy reference of a module for several devices, and one verdict of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dtypes import Array
from xla_emitters.explore.check import Reference, Verdict
from xla_emitters.fusions.entry import entry_of
from xla_emitters.runtime.devices import run_on_devices
from xla_emitters.runtime.reference import evaluate
from xla_emitters.runtime.reference_bounds import evaluate_bounds
from xla_emitters.runtime.repetition import MOST_ITERATIONS
from xla_emitters.runtime.tolerance import Bounds


def references_on_devices(
    module: ModuleOp, inputs: Sequence[Sequence[Array]], *, most_iterations: int = MOST_ITERATIONS
) -> list[Reference]:
    """What ENTRY computes on each device, from the inputs of each. raises as `evaluate` and `run_on_devices`"""
    entry = entry_of(module)
    values = run_on_devices(
        len(inputs), lambda device: evaluate(entry, inputs[device], most_iterations=most_iterations)
    )
    bounds = list[list[Bounds]]()

    def of_all() -> list[list[Bounds]]:
        if not bounds:
            bounds.extend(
                run_on_devices(
                    len(inputs),
                    lambda device: evaluate_bounds(entry, inputs[device], most_iterations=most_iterations),
                )
            )
        return bounds

    return [
        Reference(
            entry,
            given,
            values=values[device],
            most_iterations=most_iterations,
            bounds_of_ops=lambda device=device: of_all()[device],
        )
        for device, given in enumerate(inputs)
    ]


def verdict_of_devices(verdicts: Sequence[Verdict]) -> Verdict:
    """The first wrong device's, or that all are right."""
    for device, verdict in enumerate(verdicts):
        if not verdict.ok:
            return replace(verdict, summary=f"device {device}: {verdict.summary}")
    return replace(verdicts[0], summary=f"{len(verdicts)} devices: {verdicts[0].summary} on each")
