"""Modules that the real XLA partitioned for 4 and 8 GPUs, run on all of them here: JAX's own results on each device."""

from pathlib import Path

import numpy as np
import pytest
from long_lists import but_long, every

import xla_emitters as xe
from xla_emitters.dtypes import Array
from xla_emitters.runtime.arrays import load_named
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.device_arrays import load_for_devices, shards_of, whole_specs
from xla_emitters.runtime.device_threads import run_on_devices

FILES = Path(__file__).parents[1] / "corpus" / "devices"
NAMES = sorted(path.stem for path in FILES.glob("*.hlo"))
SHORT = ("psum_of_integers", "ring_loop", "mlp", "sharded_weights", "all_to_all")
"""Those that take and give whole arrays."""
STAGED = "ring_loop"
"""The one that is checked at every stage."""


def close(found: Array, wanted: Array) -> bool:
    """Within some roundings of the largest element: JAX adds in another order; bf16 is rounded at each of up to four steps."""
    bits = 6 if found.dtype.itemsize == 2 else 17
    largest = float(np.abs(wanted.astype(np.float64)).max(initial=1e-30))
    return bool(np.all(np.abs(found.astype(np.float64) - wanted.astype(np.float64)) <= largest * 2.0**-bits))


@pytest.mark.parametrize("name", every(4, NAMES))
def test_every_device_has_what_jax_computes(name: str) -> None:
    program = xe.compile((FILES / f"{name}.hlo").read_text(), stage="llvm-dialect", record="stages", cache=False)
    given = load_for_devices(FILES / f"{name}.npz", program)
    found = run_on_devices(range(program.devices), lambda device: run_program(program, given[device]))
    for device, listed in enumerate(found):
        keys = [f"r{number}@{device}" for number in range(len(listed))]
        for key, result, wanted in zip(
            keys, listed, load_named(FILES / f"{name}.npz", keys, program.results), strict=True
        ):
            assert close(result, wanted), key


@pytest.mark.parametrize("name", SHORT)
def test_whole_arrays_in_and_out(name: str) -> None:
    """As a call takes and gives them; JAX's results of all devices are put together here, by hand."""
    program = xe.compile((FILES / f"{name}.hlo").read_text(), stage="llvm-dialect", record="stages", cache=False)
    specs = whole_specs(program)
    count = len(program.parameters)
    given = load_named(FILES / f"{name}.npz", [f"p{number}" for number in range(count)], specs[:count])
    found = program.run(given)
    for number, (result, cut) in enumerate(zip(found, shards_of(program)[count:], strict=True)):
        keys = [f"r{number}@{device}" for device in range(program.devices)]
        parts = load_named(FILES / f"{name}.npz", keys, [program.results[number]] * program.devices)
        axes = [axis for axis, tiles in enumerate(cut.tiles) if tiles > 1]
        assert len(axes) <= 1, "the programs here cut results along one dimension"
        firsts = [parts[cut.part.index(part)] for part in range(max(cut.part) + 1)]
        assert close(result, np.concatenate(firsts, axes[0]) if axes else parts[0])


@pytest.mark.parametrize("name", but_long(NAMES, [name for name in NAMES if name != STAGED]))
def test_every_stage_is_right_on_every_device(name: str) -> None:
    verdict = xe.check(FILES / f"{name}.hlo")
    assert verdict.ok, verdict.summary
    assert "on each of" in verdict.summary
