"""`run --comm mpi`: one process a device, started by mpirun."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from runtime.test_device_programs import FILES
from unit.runtime.test_devices import DIVERGING

pytestmark = [
    pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is missing: the extra [mpi]"),
    pytest.mark.skipif(which("mpirun") is None, reason="mpirun is missing: apt-get install openmpi-bin"),
]


def mpirun(count: int, *words: str) -> subprocess.CompletedProcess[str]:
    """`xla-emitters run ... --comm mpi` in so many processes."""
    allowed = {f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")}
    command = ["mpirun", "--oversubscribe", "-n", str(count), sys.executable, "-m", "xla_emitters", "run", *words]
    return subprocess.run(
        [*command, "--comm", "mpi"], capture_output=True, text=True, timeout=300, env={**os.environ, **allowed}
    )


def test_whole_results_and_those_of_each_process(tmp_path: Path) -> None:
    file, whole = FILES / "ring_loop.hlo", tmp_path / "whole.npz"
    ran = mpirun(4, str(file), "--inputs", str(file.with_suffix(".npz")), "--outputs", str(whole))
    assert ran.returncode == 0, ran.stderr
    assert "ran on 4 processes" in ran.stdout
    assert "bit-identical to the NumPy reference, on each of 4 devices" in ran.stdout
    with np.load(file.with_suffix(".npz")) as stored, np.load(whole) as found:
        np.testing.assert_allclose(
            found["r0"], np.concatenate([stored[f"r0@{device}"] for device in range(4)]), rtol=1e-6
        )
    ran = mpirun(4, str(file), "--inputs", str(file.with_suffix(".npz")), "--outputs", str(tmp_path / "own.%r.npz"))
    assert ran.returncode == 0, ran.stderr
    with np.load(file.with_suffix(".npz")) as stored:
        for rank in range(4):
            with np.load(tmp_path / f"own.{rank}.npz") as own:
                np.testing.assert_allclose(own["r0"], stored[f"r0@{rank}"], rtol=1e-6)


def test_what_fails_before_the_first_step_is_said_once(tmp_path: Path) -> None:
    ran = mpirun(2, str(FILES / "ring_loop.hlo"))
    assert ran.returncode != 0
    assert ran.stderr.count("the program is for 4 devices, not for 2") == 1


def test_collectives_that_do_not_meet_end_the_job(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(DIVERGING)
    ran = mpirun(2, str(tmp_path / "m.hlo"))
    assert ran.returncode != 0
    assert "collectives do not meet: device" in ran.stderr
    assert "waits at %" in ran.stderr


def test_a_process_that_dies_ends_the_job_with_its_message(tmp_path: Path) -> None:
    """Device 1 gets a loop that never ends, which is an error there; device 0 waits for it."""
    text = """HloModule m, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
c { s = (u32[], f32[4]) parameter(0)
  i = u32[] get-tuple-element(s), index=0
  z = u32[] constant(0)
  ROOT p = pred[] compare(i, z), direction=NE }
b { s = (u32[], f32[4]) parameter(0)
  i = u32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] negate(x)
  ROOT t = (u32[], f32[4]) tuple(i, y) }
ENTRY main { x = f32[4] parameter(0)
  i = u32[] partition-id()
  s = (u32[], f32[4]) tuple(i, x)
  w = (u32[], f32[4]) while(s), condition=c, body=b
  y = f32[4] get-tuple-element(w), index=1
  ROOT r = f32[4] all-reduce(y), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add }
"""
    (tmp_path / "m.hlo").write_text(text)
    ran = mpirun(2, str(tmp_path / "m.hlo"), "--max-iterations", "50")
    assert ran.returncode != 0
    assert "loop" in ran.stderr
    assert "%w" in ran.stderr
