"""The kernels of a module compiled by several processes: `compile(..., jobs=2)`, `xla-emitters compile -j 2`.

    kernels      0 1 2 3 4 5 6
    this process 0   2   4   6          a child, forked now: 1 3 5, packed and sent when all are done

A child is a fork of this process, so it has the module, the plan and all analysis results; only what it makes is sent: each
kernel's module (`dialects/ir_bytes`) and the steps of its trace. Passes do not depend on other kernels, so the result is the same as with
one process. A kernel that a child could not compile or send is compiled again here, so that its error is raised here.
Where the system cannot fork, and in a process that may not have children, one process does everything.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.ir_bytes import ir_from_bytes, ir_to_bytes
from xla_emitters.errors import XlaEmittersError
from xla_emitters.rewrite.recorder import Recorder

LEAST_KERNELS = 4
"""Kernels per additional process; with fewer, starting it takes longer than it saves."""


def compile_kernels(work: Sequence[Callable[[], ModuleOp]], recorders: Sequence[Recorder], jobs: int) -> list[ModuleOp]:
    """What each of `work` returns, in order; each writes its records to its recorder in `recorders`.

    jobs  number of processes, this one included
    """
    jobs = min(jobs, len(work) // LEAST_KERNELS)
    if jobs < 2 or sys.platform != "linux":
        return [make() for make in work]
    import multiprocessing  # imported here: it loads slowly, and one kernel does not need it

    if multiprocessing.current_process().daemon:
        return [make() for make in work]
    context = multiprocessing.get_context("fork")
    children = list[tuple[Any, Any]]()
    try:
        for child in range(1, jobs):
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(
                target=_send, args=(sending, range(child, len(work), jobs), work, recorders), daemon=True
            )
            process.start()
            sending.close()
            children.append((process, receiving))
        made = {number: work[number]() for number in range(0, len(work), jobs)}
        for _, receiving in children:
            made |= _received(receiving, recorders)
    finally:
        for process, receiving in children:
            process.kill()
            process.join()
            receiving.close()
    return [made[number] if number in made else make() for number, make in enumerate(work)]


def _send(
    connection: Any, numbers: range, work: Sequence[Callable[[], ModuleOp]], recorders: Sequence[Recorder]
) -> None:
    """In a child: sends the kernels that could be compiled."""
    rows = list[tuple[int, bytes, bytes]]()
    for number in numbers:
        try:
            rows.append((number, ir_to_bytes(work[number]()), pickle.dumps(recorders[number].trace.steps)))
        except (XlaEmittersError, ValueError, TypeError, AttributeError, pickle.PicklingError):
            continue  # the parent compiles it again and reports the error
    connection.send(rows)
    connection.close()


def _received(connection: Any, recorders: Sequence[Recorder]) -> dict[int, ModuleOp]:
    """The modules of a child, by number; {} if it died."""
    try:
        rows: list[tuple[int, bytes, bytes]] = connection.recv()
    except EOFError:
        return {}
    for number, _, steps in rows:
        recorders[number].trace.steps[:] = pickle.loads(steps)
    return {number: ir_from_bytes(data) for number, data, _ in rows}
