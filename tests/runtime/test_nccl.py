"""`run --comm nccl` with the stand-in for CuPy and NCCL: one process a device, told its rank by the environment. No GPU has run this."""

import multiprocessing
import os
import socket
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from in_process import messages
from long_lists import but_long
from runtime.test_device_programs import FILES, close
from unit.runtime.fake_gpu import FOLDER, fake_cupy

from xla_emitters.runtime.comm.jobs import receive, send

ROOT = Path(__file__).parents[2]


def run_ranks(count: int, *words: str) -> list[subprocess.CompletedProcess[str]]:
    """`xla-emitters run ... --comm nccl` as launchers of PyTorch start it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.pathsep.join((str(FOLDER), str(ROOT), os.environ.get("PYTHONPATH", "")))
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "xla_emitters", "run", *words, "--comm", "nccl"],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(count),
                "MASTER_PORT": str(port),
                "PYTHONPATH": path,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    said = [process.communicate(timeout=300) for process in started]
    return [
        subprocess.CompletedProcess(process.args, process.returncode, *text)
        for process, text in zip(started, said, strict=True)
    ]


NAMES = ["two_devices", "microbatches", "all_to_all", "psum_scatter", "permute_of_some"]


@pytest.mark.parametrize("name", but_long(NAMES, NAMES[1:]))
def test_results_are_jaxs(name: str, tmp_path: Path) -> None:
    """f32 is added by NCCL; others go by sends and receives."""
    file = FILES / f"{name}.hlo"
    count = 2 if "num_partitions=2" in file.read_text() else 4
    ran = run_ranks(
        count, str(file), "--inputs", str(file.with_suffix(".npz")), "--outputs", str(tmp_path / "o.%r.npz")
    )
    assert [each.returncode for each in ran] == [0] * count, ran[0].stderr + ran[1].stderr
    assert f"ran on {count} GPUs" in ran[0].stdout
    with np.load(file.with_suffix(".npz")) as stored:
        for rank in range(count):
            with np.load(tmp_path / f"o.{rank}.npz") as own:
                found, wanted = own["r0"], stored[f"r0@{rank}"]
                assert close(found, wanted)


@pytest.mark.long  # of the kit alone: the tests above and below run the same sends, receives and sums
def test_what_the_kit_runs_on_one_gpu() -> None:
    path = os.pathsep.join((str(FOLDER), str(ROOT), os.environ.get("PYTHONPATH", "")))
    words = [sys.executable, str(ROOT / "lab/gpu/nccl_alone.py")]
    ran = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "NCCL alone: right\n"), ran.stderr


def test_a_job_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with fake_cupy():
        said = messages(2, "run", FILES / "two_devices.hlo", "--comm", "nccl")
    assert "the program is for 2 devices, not for 1" in said


def test_what_processes_tell_each_other_is_data() -> None:
    """Numbers, texts, nothing and arrays of any element type, bit by bit; nothing that is read is executed."""
    ends = multiprocessing.Pipe()
    said = [1.5, None, "text", [np.array([1, -2.5], ml_dtypes.bfloat16), np.arange(6).reshape(2, 3), np.True_]]
    send(ends[0], said)
    found = receive(ends[1])
    assert found[:3] == said[:3]
    for array, wanted in zip(found[3], said[3], strict=True):
        assert array.dtype == wanted.dtype
        np.testing.assert_array_equal(array, wanted)
    ends[0].send(os.getcwd)  # pickled
    with pytest.raises(ValueError, match=r"Expecting value|utf-8|codec"):
        receive(ends[1])
