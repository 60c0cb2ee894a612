"""`run --comm mpi`: one process a device, started by mpirun."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from runtime.test_device_programs import FILES
from unit.runtime.test_device_threads import DIVERGING

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


AGENT = """#!/bin/sh
shift
exec ip netns exec SPACE unshare -u sh -c "hostname other; $*"
"""
"""Starts a command on the other host, as ssh does: ssh's first argument is the host."""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[list[str], Path]]:
    """Two network namespaces, joined by a cable, the second with another host's name: what begins a command in the first, and its agent."""
    spaces = [f"xe{os.getpid()}{end}" for end in "ab"]
    words = [f"netns add {space}" for space in spaces] + [f"link add {spaces[0]} type veth peer name {spaces[1]}"]
    for number, space in enumerate(spaces):
        words.append(f"link set {space} netns {space}")
        inside = f"netns exec {space} ip"
        words += [
            f"{inside} {rest}"
            for rest in ("link set lo up", f"link set {space} up", f"addr add 10.77.0.{number + 1}/24 dev {space}")
        ]
    try:
        for line in words:
            if subprocess.run(["ip", *line.split()], capture_output=True).returncode:
                pytest.skip("network namespaces need more rights")
        (tmp_path / "agent.sh").write_text(AGENT.replace("SPACE", spaces[1]))
        (tmp_path / "agent.sh").chmod(0o755)
        yield ["ip", "netns", "exec", spaces[0]], tmp_path / "agent.sh"
    finally:
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True)


@pytest.mark.skipif(which("ip") is None or which("unshare") is None, reason="ip or unshare is missing")
def test_two_hosts(hosts: tuple[list[str], Path], tmp_path: Path) -> None:
    if "Open MPI) 4" not in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout:
        pytest.skip("the options are those of Open MPI 4")
    begin, agent = hosts
    net = [word for key in ("btl_tcp_if_include", "oob_tcp_if_include") for word in ("--mca", key, "10.77.0.0/24")]
    where = [
        "-n",
        "4",
        "--host",
        "10.77.0.1:2,10.77.0.2:2",
        "--mca",
        "plm_rsh_agent",
        str(agent),
        "--mca",
        "btl",
        "tcp,self",
    ]
    passed = [word for name in ("PYTHONPATH", "XLA_EMITTERS_CACHE_DIR") if name in os.environ for word in ("-x", name)]
    file, out = FILES / "ring_loop.hlo", tmp_path / "out.npz"
    command = [
        sys.executable,
        "-m",
        "xla_emitters",
        "run",
        str(file),
        "--comm",
        "mpi",
        "--inputs",
        str(file.with_suffix(".npz")),
    ]
    ran = subprocess.run(
        [*begin, "mpirun", *where, *net, *passed, *command, "--outputs", str(out)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    assert "on each of 4 devices" in ran.stdout
    with np.load(file.with_suffix(".npz")) as stored, np.load(out) as found:
        np.testing.assert_allclose(
            found["r0"], np.concatenate([stored[f"r0@{device}"] for device in range(4)]), rtol=1e-6
        )


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


def circle(count: int) -> str:
    """Device k is at an all-reduce of its own, %w<k>, with device k + 1."""
    devices = range(count)
    branches = list[str]()
    for k in devices:
        pair = [k, (k + 1) % count]
        alone = [f",{{{other}}}" for other in devices if other not in pair]
        groups = f"{{{pair[0]},{pair[1]}}}{''.join(alone)}"
        branches.append(
            f"b{k} {{ x = f32[4] parameter(0)\n  ROOT w{k} = f32[4] all-reduce(x), channel_id={k + 1},"
            f" replica_groups={{{groups}}}, use_global_device_ids=true, to_apply=add }}\n"
        )
    return f"""HloModule m, num_partitions={count}
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
{"".join(branches)}
ENTRY main {{ x = f32[4] parameter(0)
  i = u32[] partition-id()
  n = s32[] convert(i)
  ROOT c = f32[4] conditional(n, {", ".join("x" for _ in devices)}), branch_computations={{{", ".join(f"b{k}" for k in devices)}}} }}
"""


@pytest.mark.parametrize("count", [3, 4])
def test_a_circle_is_found(count: int, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(circle(count))
    ran = mpirun(count, str(tmp_path / "m.hlo"))
    assert ran.returncode != 0
    waits = [f"device {k} waits at %w{k} for device {(k + 1) % count}" for k in range(count)]
    assert "\n    ".join(["collectives do not meet: " + waits[0], *waits[1:]]) in ran.stderr


EXCHANGES = """
import sys, numpy as np
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.comm.mpi import MpiExchange, MpiJob

job = MpiJob()
exchange, own, after = MpiExchange(job), job.rank, (job.rank + 1) % job.size
big = np.full(1 << 20, own, np.float32)
if sys.argv[1] == "ring":       # each waits long, none for ever: the first sends late
    if own == 0:
        import time; time.sleep(0.5)
        exchange.send(own, after, "channel 1", [big])
    (found,) = exchange.receive(own, (own - 1) % job.size, "channel 1")
    if own > 0:
        exchange.send(own, after, "channel 1", [found + 1])
    sys.stdout.write(f"{own} {found[0]} {found.shape}" + chr(10))
elif sys.argv[1] == "unread":   # nobody receives what is sent
    exchange.send(own, after, "channel 1", [big])
else:                           # two wait for each other, the others for the first of them
    try:
        exchange.receive(own, 1 if own == 0 else 0, f"channel {own}")
    except ExecutionError as error:
        print(error.message, *error.details, flush=True)
        job.abort(1)
exchange.end(own)
"""


def exchanges(count: int, what: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "x.py").write_text(EXCHANGES)
    allowed = {f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")}
    command = ["mpirun", "--oversubscribe", "-n", str(count), sys.executable, str(folder / "x.py"), what]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ, **allowed})


def test_a_long_wait_is_no_circle(tmp_path: Path) -> None:
    ran = exchanges(4, "ring", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == ["0 3.0 (1048576,)", *(f"{k} {k - 1}.0 (1048576,)" for k in (1, 2, 3))]


def test_what_nobody_receives_holds_up_nobody(tmp_path: Path) -> None:
    assert exchanges(3, "unread", tmp_path).returncode == 0


def test_a_circle_that_others_wait_for(tmp_path: Path) -> None:
    ran = exchanges(4, "others", tmp_path)
    assert ran.returncode != 0
    said = "device 0 waits at %channel 0 for device 1 device 1 waits at %channel 1 for device 0"
    assert f"collectives do not meet: {said}" in ran.stdout


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
