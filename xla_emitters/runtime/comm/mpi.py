"""Processes of a job by MPI (mpi4py, the extra [mpi]): who they are, and their arrays.

    mpirun -n 8 xla-emitters run module.hlo --comm mpi

A collective is computed by each member, from the arrays of all, in the order of its group: the same numbers as in one process. Only this
file imports mpi4py. A process that waits looks for its message now and then, instead of keeping its core busy as MPI's own waiting does.

A deadlock is an error, however many processes are in it: a member that waits at another collective for this one, or has ended, and a circle
of processes that wait for each other. A process waits for one other at a time. Soon it asks that one, which, if it waits itself, adds
its own wait and passes the question on; a question that comes back to a process that has not gone on since is a circle. No clock decides: a
wait is passed on only where the asker has taken all that was sent to it, so none of those waits can end.
Source: Chandy, Misra, Haas, Distributed Deadlock Detection (1983).
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from xla_emitters.errors import ExecutionError
from xla_emitters.library.arguments import Array
from xla_emitters.library.devices import Exchange, is_channel
from xla_emitters.runtime.comm.jobs import Job
from xla_emitters.support.extras import install_command, installed

LONG_SECONDS = 60.0
ASKS_AFTER_SECONDS = 0.05
"""Most waits end before a question is worth its message."""
_TAG, _QUESTION = 7, 8
_ENDED = ""
"""The name under which a process sends nothing more."""


class MpiJob(Job):
    """The processes that mpirun started. raises ToolError without mpi4py or a library of MPI"""

    def __init__(self) -> None:
        and_mpi = f"{install_command(extras='mpi')}, and Open MPI or MPICH (apt-get install openmpi-bin)"
        with installed("MPI", "run", help=and_mpi):
            self._mpi: Any = import_module("mpi4py.MPI")
            self.world: Any = import_module("mpi4py.util.pkl5").Intracomm(self._mpi.COMM_WORLD)
        self.rank, self.size = self.world.Get_rank(), self.world.Get_size()
        self.any_source: int = self._mpi.ANY_SOURCE

    def gather(self, value: Any) -> list[Any]:
        return self.world.allgather(value)

    def abort(self, code: int) -> NoReturn:
        sys.stdout.flush()
        sys.stderr.flush()
        self._mpi.COMM_WORLD.Abort(code)
        raise AssertionError


class _Wait(NamedTuple):
    """A device that waits for another at an instruction, in its wait of that number, and has taken so many messages from it."""

    device: int
    name: str
    source: int
    number: int
    taken: int


class MpiExchange(Exchange):
    """Arrays from process to process."""

    def __init__(self, job: MpiJob) -> None:
        self._world, self._size, self._any = job.world, job.size, job.any_source
        self._sent, self._taken, self._waits = [0] * job.size, [0] * job.size, 0
        self._kept: dict[int, deque[tuple[str, list[Array]]]] = {rank: deque() for rank in range(job.size)}
        self._under_way = list[Any]()

    def send(self, device: int, to: int, name: str, arrays: Sequence[Array]) -> None:
        """See `library.devices.Exchange`."""
        message = name, [array.copy() for array in arrays]
        if to == device:
            self._kept[device].append(message)
            return
        self._sent[to] += 1
        self._post(to, message, _TAG)

    def _post(self, to: int, message: Any, tag: int) -> None:
        self._under_way = [request for request in self._under_way if not request.test()[0]]
        self._under_way.append(self._world.isend(message, to, tag))

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
        """The next message of a process. raises ExecutionError where the wait for it is one of a circle"""
        self._waits += 1
        own = _Wait(device, name, source, self._waits, self._taken[source])
        pause, start, asked, said = 2e-5, time.monotonic(), False, False
        while (message := self._world.improbe(source, _TAG)) is None:
            time.sleep(pause)
            pause, waited = min(2 * pause, 2e-3), time.monotonic() - start
            if not asked and waited > ASKS_AFTER_SECONDS:
                asked = True
                self._post(source, [own], _QUESTION)
            if not said and waited > LONG_SECONDS:
                said = True
                print(f"note: device {device} waits at %{name} for device {source}", file=sys.stderr, flush=True)
            while (question := self._world.improbe(self._any, _QUESTION)) is not None:
                self._answer([_Wait(*wait) for wait in question.recv()], own)
        self._taken[source] += 1
        return message.recv()

    def _answer(self, waits: list[_Wait], own: _Wait) -> None:
        """Passes a question on: waits of which each is for the device of the next, the last for this one."""
        if self._sent[waits[-1].device] > waits[-1].taken:
            return  # the last has a message to take, and asks again if it waits on
        if waits[0] == own:
            first, *others = [
                f"device {wait.device} waits at %{wait.name} for device {wait.source}" for wait in sorted(waits)
            ]
            raise ExecutionError(f"collectives do not meet: {first}", stage="run", details=tuple(others))
        if all(
            wait.device != own.device for wait in waits
        ):  # else a circle that the asker waits for: its members find it
            self._post(own.source, [*waits, own], _QUESTION)

    def end(self, device: int) -> None:
        """Tells the others that this process sends nothing more, and takes what they still send: sends to it end then, and its own."""
        others = [other for other in range(self._size) if other != device]
        for other in others:
            self._post(other, (_ENDED, []), _TAG)
        for other in others:
            name = None
            while name != _ENDED:
                while (message := self._world.improbe(other, _TAG)) is None:
                    time.sleep(1e-3)
                name, _ = message.recv()
        for request in self._under_way:
            request.wait()
