"""Which thread touches which bytes: the accesses of a few blocks, recorded while the executor runs a kernel's last IR.

    touched(launch_of(kernel), ir)      of a kernel whose sizes are known; of a program's kernel, as one launch of it
                         ->  {"blocks": [0, 12287, 24575], "threads": 128,
                              "accesses": [{"line": 21, "op": "llvm.load", "buffer": "argument 0", "space": "global", "store": False,
                                            "bytes": 8, "runs": [[0, 0, [0, 8, 16, ...]], ...]}]}

A run is (index into `blocks`, how often this op ran in the block before, byte offset of each thread; -1 for a thread that does not take
part). All arrays are zeros: an access at an index that is read from data is shown for index 0. Numbers, as sizes, are the launch's.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import print_ir_with_lines
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.module_stages import blocks_to_run
from xla_emitters.explore.cost.program_cost import LaunchAt
from xla_emitters.program import Kernel
from xla_emitters.runtime.simt.memory import Access, Memory, Space, Watcher
from xla_emitters.runtime.simt.sized_kernels import SizedKernel

BLOCKS = 3
MOST_RUNS = 8
"""Most runs that are recorded of one access in one block: later loop iterations are not drawn."""
MOST_ACCESSES = 64
MOST_BYTES = 1 << 30


class _Recorder(Watcher):
    """Records the offsets of the first runs of each op in each block."""

    def __init__(self, lines: dict[Operation, int]) -> None:
        self._lines = lines
        self.restart()

    def restart(self) -> None:
        self._seen = Counter[tuple[Operation, str, bool]]()
        self.rows = dict[tuple[Operation, str, bool], dict[str, Any]]()

    def access(self, memory: Memory, access: Access) -> None:
        buffer = access.buffer
        key = (access.op, buffer.name, access.is_store)
        if buffer.space is Space.PRIVATE or (key not in self.rows and len(self.rows) == MOST_ACCESSES):
            return
        row = self.rows.setdefault(
            key,
            {
                "line": self._lines.get(access.op, 0),
                "op": access.op.name,
                "buffer": buffer.name,
                "space": buffer.space.value,
                "store": access.is_store,
                "bytes": access.size,
                "runs": [],
            },
        )
        run, self._seen[key] = self._seen[key], self._seen[key] + 1
        if run >= MOST_RUNS:
            return
        shape = (len(memory.blocks), memory.launch.threads)
        offsets = np.broadcast_to(access.offsets, shape)
        if access.active is not None:
            offsets = np.where(np.broadcast_to(access.active, shape), offsets, -1)
        row["runs"] += [[block, run, each.tolist()] for block, each in enumerate(offsets) if (each >= 0).any()]


def launch_of(kernel: Kernel) -> LaunchAt:
    """The launch of a kernel whose sizes are known, on zeros."""
    held = dict[int, Array]()
    for each in kernel.arguments:
        held.setdefault(each.slice_index, np.zeros(each.array.elements, dtype(each.array.dtype).numpy))
    return LaunchAt(kernel.name, kernel.launch, tuple(held[each.slice_index] for each in kernel.arguments), 0)


def touched(at: LaunchAt, ir: str) -> dict[str, Any] | None:
    """The accesses of a launch's first, middle and last block; None where the executor cannot run it.

    ir  the kernel at the stage `llvm-dialect`
    """
    held = {id(value): value for value in at.arguments if isinstance(value, np.ndarray)}
    if sum(value.nbytes for value in held.values()) > MOST_BYTES:
        return None
    zeros = {key: np.zeros_like(value) for key, value in held.items()}
    arguments = [zeros.get(id(value), value) for value in at.arguments]
    chosen = blocks_to_run(at.launch.blocks, BLOCKS) or list(range(at.launch.blocks))
    try:
        module = parse_ir(ir)
        recorder = _Recorder({op: line + 1 for line, op in print_ir_with_lines(module)[1]})
        SizedKernel.of(module)(at.launch, arguments, at.shared_bytes, [recorder], chosen)
    except XlaEmittersError:
        return None
    return {"blocks": chosen, "threads": at.launch.threads, "accesses": list(recorder.rows.values())}
