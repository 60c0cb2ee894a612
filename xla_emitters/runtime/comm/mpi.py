"""Processes of a job by MPI (mpi4py, the extra [mpi]): who they are, and their arrays.

    mpirun -n 8 xla-emitters run module.hlo --comm mpi

A collective is computed by each member, from the arrays of all, in the order of its group: the same numbers as in one process. Only this
file imports mpi4py. A process that waits looks for its message now and then, instead of keeping its core busy as MPI's own waiting does.

What one process sees of a deadlock is an error: a member that waits at another collective for this one, or has ended. Longer circles are
not seen; a process that waits for a minute says where.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from xla_emitters.errors import ExecutionError, ToolError
from xla_emitters.extras import install_command
from xla_emitters.library.arguments import Array
from xla_emitters.library.devices import Exchange, is_channel
from xla_emitters.runtime.comm.jobs import Job

LONG_SECONDS = 60.0
_TAG = 7
_ENDED = ""
"""The name under which a process sends nothing more."""


class MpiJob(Job):
    """The processes that mpirun started. raises ToolError without mpi4py or a library of MPI"""

    def __init__(self) -> None:
        try:
            self._mpi: Any = import_module("mpi4py.MPI")
            self.world: Any = import_module("mpi4py.util.pkl5").Intracomm(self._mpi.COMM_WORLD)
        except (ImportError, RuntimeError) as error:
            raise ToolError(
                f"MPI is not here ({error})",
                stage="run",
                help=f"{install_command(extras='mpi')}, and Open MPI or MPICH (apt-get install openmpi-bin)",
            ) from error
        self.rank, self.size = self.world.Get_rank(), self.world.Get_size()

    def gather(self, value: Any) -> list[Any]:
        return self.world.allgather(value)

    def abort(self, code: int) -> NoReturn:
        sys.stdout.flush()
        sys.stderr.flush()
        self._mpi.COMM_WORLD.Abort(code)
        raise AssertionError


class MpiExchange(Exchange):
    """Arrays from process to process."""

    def __init__(self, job: MpiJob) -> None:
        self._world, self._size = job.world, job.size
        self._kept: dict[int, deque[tuple[str, list[Array]]]] = {rank: deque() for rank in range(job.size)}
        self._under_way = list[Any]()

    def send(self, device: int, to: int, name: str, arrays: Sequence[Array]) -> None:
        """See `library.devices.Exchange`."""
        message = name, [array.copy() for array in arrays]
        if to == device:
            self._kept[device].append(message)
            return
        self._under_way = [request for request in self._under_way if not request.test()[0]]
        self._under_way.append(self._world.isend(message, to, _TAG))

    def receive(self, device: int, source: int, name: str, like: Sequence[Array] = ()) -> list[Array]:
        """See `library.devices.Exchange`."""
        kept = self._kept[source]
        while True:
            for message in kept:
                if message[0] == name:
                    kept.remove(message)
                    return message[1]
            found, arrays = self._next(device, source, name)
            if found != name and not is_channel(found):
                where = f"waits at %{found} for device {device}" if found != _ENDED else "has ended"
                raise ExecutionError(
                    f"collectives do not meet: device {device} waits at %{name} for device {source}",
                    stage="run",
                    details=(f"device {source} {where}",),
                )
            kept.append((found, arrays))

    def _next(self, device: int, source: int, name: str) -> tuple[str, list[Array]]:
        """The next message of a process."""
        pause, said = 2e-5, time.monotonic() + LONG_SECONDS
        while (message := self._world.improbe(source, _TAG)) is None:
            time.sleep(pause)
            pause = min(2 * pause, 2e-3)
            if time.monotonic() > said:
                said = float("inf")
                print(f"note: device {device} waits at %{name} for device {source}", file=sys.stderr, flush=True)
        return message.recv()

    def end(self, device: int) -> None:
        """Tells the others that this process sends nothing more, and waits until what it has sent is taken."""
        for other in range(self._size):
            if other != device:
                self._under_way.append(self._world.isend((_ENDED, []), other, _TAG))
        for request in self._under_way:
            while not request.test()[0]:
                time.sleep(1e-3)
