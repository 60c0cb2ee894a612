"""The processes that run one program together, each as one of its devices.

    mpirun -n 8 xla-emitters run ...                                        MpiJob
    RANK=3 WORLD_SIZE=8 MASTER_ADDR=host xla-emitters run ... --comm nccl   TcpJob, as launchers of PyTorch start processes

A job only agrees on small values, and gathers results; arrays of a run go by an `Exchange`. A TcpJob needs no library: process 0 listens,
the others connect to it. What it sends is JSON, with the bytes of arrays in base 64: reading it executes nothing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, NoReturn

import numpy as np

from xla_emitters.errors import ExecutionError, UsageError

PORT = 29500
"""Where process 0 of a TcpJob listens, if MASTER_PORT says no other."""
_ARRAY = "element type"
PATIENCE_SECONDS = 120.0
"""How long processes wait for process 0 to listen."""


class Job(ABC):
    """rank: the number of this process; size: how many there are"""

    rank: int
    size: int

    @abstractmethod
    def gather(self, value: Any) -> list[Any]:
        """What all processes say, in order of their ranks. All must call it. Plain data and arrays; a tuple may come back as a list."""
        ...

    @abstractmethod
    def abort(self, code: int) -> NoReturn:
        """Ends all processes."""
        ...


class TcpJob(Job):
    """Processes that were told their ranks by the environment.

    variables  RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, as a launcher sets them
    raises  UsageError for variables that do not fit, ExecutionError where process 0 is not there
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.rank, self.size = (_number(variables, name) for name in ("RANK", "WORLD_SIZE"))
        if not 0 <= self.rank < self.size:
            raise UsageError(f"RANK={self.rank} is none of WORLD_SIZE={self.size}", stage="run")
        address = variables.get("MASTER_ADDR", "127.0.0.1"), int(variables.get("MASTER_PORT", PORT))
        # Against a connection to another job; no more than that, as the word can be guessed.
        key = f"{address[0]}:{address[1]}".encode()
        self._others = list[Connection]()
        if self.rank == 0 and self.size > 1:
            with Listener(address, authkey=key) as listener:
                named = [(connection := listener.accept(), receive(connection)) for _ in range(self.size - 1)]
            self._others = [connection for connection, _ in sorted(named, key=lambda pair: pair[1])]
        elif self.rank > 0:
            self._others = [_connected(address, key)]
            send(self._others[0], self.rank)

    def gather(self, value: Any) -> list[Any]:
        try:
            if self.rank > 0:
                send(self._others[0], value)
                return receive(self._others[0])
            found = [value, *(receive(other) for other in self._others)]
            for other in self._others:
                send(other, found)
            return found
        except (EOFError, ConnectionError) as error:
            who = "another process" if self.rank == 0 else "process 0"
            raise ExecutionError(f"{who} of the job has ended", stage="run") from error

    def abort(self, code: int) -> NoReturn:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the others notice at their next step together, or by their launcher


def send(connection: Connection, value: Any) -> None:
    """Sends plain data, with NumPy's arrays and numbers in it."""
    connection.send_bytes(json.dumps(value, default=_described).encode())


def receive(connection: Connection) -> Any:
    """The next value. raises ValueError for bytes that `send` does not write"""
    return json.loads(connection.recv_bytes(), object_hook=_array)


def _described(value: object) -> dict[str, Any]:
    array = np.asarray(value)
    return {_ARRAY: array.dtype.name, "shape": array.shape, "data": b64encode(array.tobytes()).decode()}


def _array(data: dict[str, Any]) -> Any:
    if _ARRAY not in data:
        return data
    return np.frombuffer(bytearray(b64decode(data["data"])), np.dtype(data[_ARRAY])).reshape(data["shape"])


def _number(variables: Mapping[str, str], name: str) -> int:
    try:
        return int(variables[name])
    except (KeyError, ValueError):
        raise UsageError(
            f"{name} is '{variables.get(name, '')}', not a number",
            stage="run",
            help="start one process a device: mpirun -n 8, or RANK, WORLD_SIZE and MASTER_ADDR in the environment",
        ) from None


def _connected(address: tuple[str, int], key: bytes) -> Connection:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        with suppress(OSError):
            return Client(address, authkey=key)
        time.sleep(0.1)
    raise ExecutionError(f"process 0 of the job does not listen at {address[0]}:{address[1]}", stage="run")
