"""Arrays from GPU to GPU by NCCL, one GPU for each process: CuPy's `cupy.cuda.nccl`, on the stream of the launches.

    mpirun -n 8 xla-emitters run module.hlo --comm nccl

all_reduce of numbers that NCCL adds, multiplies or compares    ncclAllReduce, on a communicator of its group; NCCL chooses the order
all other collectives                                           sends and receives of one group, then as on a CPU, by CuPy on the GPU

A send is only noted down until the next receive or collective, or the end: ncclSend alone holds up the stream until its receiver comes,
which may itself have something to send first. Source: NCCL's documentation, point-to-point communication; CuPy's documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xla_emitters.errors import ExecutionError, ToolError
from xla_emitters.library.devices import Exchange, Shares
from xla_emitters.runtime.comm.jobs import Job
from xla_emitters.runtime.cuda.cupy_platform import find_cupy
from xla_emitters.support.extras import install_command

_TYPES = {
    **{f"s{bits}": f"NCCL_INT{bits}" for bits in (8, 32, 64)},
    **{f"u{bits}": f"NCCL_UINT{bits}" for bits in (8, 32, 64)},
    **{f"f{bits}": f"NCCL_FLOAT{bits}" for bits in (16, 32, 64)},
    "bf16": "NCCL_BFLOAT16",
}
_SUMS = {"add": "NCCL_SUM", "multiply": "NCCL_PROD", "maximum": "NCCL_MAX", "minimum": "NCCL_MIN"}


class NcclExchange(Exchange):
    """The GPU of this process: that with the number of its rank, of those that the process sees.

    groups  of devices, which get a communicator of their own; the same in all processes
    raises  ToolError without CuPy, a GPU or NCCL
    """

    def __init__(self, job: Job, groups: Iterable[tuple[int, ...]]) -> None:
        self._cupy, missing = find_cupy()
        if missing:
            raise ToolError(f"--comm nccl: {missing}", stage="run", help=install_command(extras="cuda12"))
        self._nccl: Any = getattr(self._cupy.cuda, "nccl", None)
        if not getattr(self._nccl, "available", False):
            raise ToolError("--comm nccl: CuPy finds no NCCL", stage="run", help=install_command("nvidia-nccl-cu12"))
        self._cupy.cuda.Device(job.rank % self._cupy.cuda.runtime.getDeviceCount()).use()
        whole = tuple(range(job.size))
        wanted = sorted({whole, *(tuple(group) for group in groups if len(group) > 1)})
        # The first of each group makes its word; all connect in the same order of groups, so that none waits in a circle.
        own = [(group, self._nccl.get_unique_id()) for group in wanted if group[0] == job.rank]
        words = {tuple(group): tuple(word) for found in job.gather(own) for group, word in found}
        self._of_group = {
            group: self._nccl.NcclCommunicator(len(group), words[group], group.index(job.rank))
            for group in wanted
            if job.rank in group
        }
        self._world = self._of_group[whole]
        self._pending = list[tuple[int, Any]]()

    def send(self, device: int, to: int, name: str, arrays: Sequence[Any]) -> None:
        """See `library.devices.Exchange`."""
        self._pending += [(to, self._cupy.ascontiguousarray(array)) for array in arrays]

    def receive(self, device: int, source: int, name: str, like: Sequence[Any] = ()) -> list[Any]:
        """See `library.devices.Exchange`."""
        found = [self._cupy.empty(array.shape, dtype=array.dtype) for array in like]
        self._move([(source, array) for array in found])
        return found

    def meet(
        self, device: int, name: str, group: tuple[int, ...], arrays: Sequence[Any], among: Callable[[Shares], Shares]
    ) -> list[Any]:
        """See `library.devices.Exchange`. The members' arrays have the same shapes: all run one program."""
        own = [self._cupy.ascontiguousarray(array) for array in arrays]
        others = [member for member in group if member != device]
        shares = {member: [self._cupy.empty(array.shape, dtype=array.dtype) for array in own] for member in others}
        self._pending += [(member, array) for member in others for array in own]
        self._move([(member, array) for member in others for array in shares[member]])
        return among([own if member == device else shares[member] for member in group])[group.index(device)]

    def all_reduce(
        self, group: tuple[int, ...], arrays: Sequence[Any], reduction: str | None, types: Sequence[str]
    ) -> list[Any] | None:
        """See `library.devices.Exchange`."""
        kinds = [getattr(self._nccl, _TYPES.get(name, ""), None) for name in types]
        if group not in self._of_group or reduction not in _SUMS or None in kinds:
            return None
        self._move([])
        how, stream, found = getattr(self._nccl, _SUMS[reduction]), self._stream(), list[Any]()
        for array, kind in zip(arrays, kinds, strict=True):
            own = self._cupy.ascontiguousarray(array)
            made = self._cupy.empty(own.shape, dtype=own.dtype)
            self._of_group[group].allReduce(own.data.ptr, made.data.ptr, own.size, kind, how, stream)
            found.append(made)
        return found

    def end(self, device: int) -> None:
        """Sends what was only noted down, and waits for the stream."""
        self._move([])
        self._cupy.cuda.runtime.streamSynchronize(self._stream())

    def _move(self, received: Sequence[tuple[int, Any]]) -> None:
        """All sends that were noted down, and these receives, as one group: (the other device, the array)."""
        pending, self._pending = self._pending, []
        if not pending and not received:
            return
        stream, byte = self._stream(), self._nccl.NCCL_UINT8
        try:
            self._nccl.groupStart()
            for other, array in pending:
                self._world.send(array.data.ptr, array.nbytes, byte, other, stream)
            for other, array in received:
                self._world.recv(array.data.ptr, array.nbytes, byte, other, stream)
            self._nccl.groupEnd()
        except self._nccl.NcclError as error:
            raise ExecutionError(f"NCCL: {error}", stage="run") from error

    def _stream(self) -> int:
        return self._cupy.cuda.get_current_stream().ptr
