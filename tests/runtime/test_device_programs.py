"""Modules that the real XLA partitioned for 4 and 8 GPUs, run on all of them here: JAX's own results on each device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from long_lists import but_long

import xla_emitters as xe
from xla_emitters.dialects.hlo.device_groups import devices_of
from xla_emitters.dtypes import Array
from xla_emitters.fusions.entry import entry_of
from xla_emitters.hlo_text import parse_hlo
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import load_named
from xla_emitters.runtime.cpu_launcher import run_program
from xla_emitters.runtime.device_arrays import load_for_devices, shards_of
from xla_emitters.runtime.devices import run_on_devices

FILES = Path(__file__).parents[1] / "corpus" / "devices"
NAMES = sorted(path.stem for path in FILES.glob("*.hlo"))
SHORT = ("psum_of_integers", "ring_loop", "mlp", "sharded_weights", "all_to_all")
"""Those that are checked at every stage."""


def close(found: Array, wanted: Array) -> bool:
    """Within some roundings of the largest element: JAX adds in another order; bf16 is rounded at each of up to four steps."""
    bits = 6 if found.dtype.itemsize == 2 else 17
    largest = float(np.abs(wanted.astype(np.float64)).max(initial=1e-30))
    return bool(np.all(np.abs(found.astype(np.float64) - wanted.astype(np.float64)) <= largest * 2.0**-bits))


@pytest.mark.parametrize("name", NAMES)
def test_every_device_has_what_jax_computes(name: str) -> None:
    text = (FILES / f"{name}.hlo").read_text()
    module = parse_hlo(text)
    devices = devices_of(module)
    program = xe.compile(text, stage="llvm-dialect", record="stages", cache=False)
    assert isinstance(program, Program)
    shards = shards_of(entry_of(module), program.parameters, devices)
    given = load_for_devices(FILES / f"{name}.npz", program.parameters, shards, devices)
    found = run_on_devices(devices, lambda device: run_program(program, given[device]))
    for device, listed in enumerate(found):
        keys = [f"r{number}@{device}" for number in range(len(listed))]
        for key, result, wanted in zip(
            keys, listed, load_named(FILES / f"{name}.npz", keys, program.results), strict=True
        ):
            assert close(result, wanted), key


@pytest.mark.parametrize("name", but_long(NAMES, [name for name in NAMES if name not in SHORT]))
def test_every_stage_is_right_on_every_device(name: str) -> None:
    verdict = xe.check(FILES / f"{name}.hlo")
    assert verdict.ok, verdict.summary
    assert "on each of" in verdict.summary
