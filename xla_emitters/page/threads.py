"""Which thread touches which bytes: the accesses of a few blocks, recorded while the executor runs a kernel's last IR.

    touched(kernel, ir)         of a kernel whose sizes are known
    touched_at(launch, ir)      of a program's kernel, as one launch of it
                         ->  {"blocks": [0, 12287, 24575], "threads": 128,
                              "accesses": [{"line": 21, "op": "llvm.load", "buffer": "argument 0", "space": "global", "store": False,
                                            "bytes": 8, "runs": [[0, 0, [0, 8, 16, ...]], ...]}]}

A run is (index into `blocks`, how often this op ran in the block before, byte offset of each thread; -1 for a thread that does not take
part). All arrays are zeros: an access at an index that is read from data is shown for index 0. Numbers, as sizes, are the launch's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.printer import print_ir_with_lines
from xla_emitters.dtypes import dtype
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check import blocks_to_run
from xla_emitters.explore.program_cost import LaunchAt
from xla_emitters.program import Kernel, Launch
from xla_emitters.runtime.cpu_launcher import Slots, run_kernel
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


def touched(kernel: Kernel, ir: str) -> dict[str, Any] | None:
    """The accesses of the kernel's first, middle and last block; None where the executor cannot run it, or cannot run it before sizes
    are known.

    ir  the kernel at the stage `llvm-dialect`
    """
    specs = {(argument.kind, argument.index): argument.array for argument in kernel.arguments}
    if sum(dtype(spec.dtype).size_bytes(spec.elements) for spec in specs.values()) > MOST_BYTES:
        return None
    slots: Slots = {slot: np.zeros(spec.elements, dtype(spec.dtype).numpy) for slot, spec in specs.items()}

    def run(module: ModuleOp, blocks: Sequence[int], watcher: Watcher) -> None:
        run_kernel(module, kernel.arguments, slots, blocks, [watcher])

    return _recorded(ir, kernel.launch, run)


def touched_at(at: LaunchAt, ir: str) -> dict[str, Any] | None:
    """The accesses of one launch of a program's kernel; `ir` as in `touched`; None where the executor cannot run it."""
    if sum(value.nbytes for value in at.arguments if isinstance(value, np.ndarray)) > MOST_BYTES:
        return None
    arguments = [np.zeros_like(value) if isinstance(value, np.ndarray) else value for value in at.arguments]

    def run(module: ModuleOp, blocks: Sequence[int], watcher: Watcher) -> None:
        SizedKernel.of(module)(at.launch, arguments, at.shared_bytes, [watcher], blocks)

    return _recorded(ir, at.launch, run)


def _recorded(
    ir: str, launch: Launch, run: Callable[[ModuleOp, Sequence[int], Watcher], None]
) -> dict[str, Any] | None:
    module = parse_ir(ir)
    recorder = _Recorder({op: line + 1 for line, op in print_ir_with_lines(module)[1]})
    chosen = blocks_to_run(launch.blocks, BLOCKS) or list(range(launch.blocks))
    try:
        run(module, chosen, recorder)
    except XlaEmittersError:
        return None
    return {"blocks": chosen, "threads": launch.threads, "accesses": list(recorder.rows.values())}
