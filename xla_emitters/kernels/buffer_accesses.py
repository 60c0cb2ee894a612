"""Which buffers a kernel on buffers reads, and which it writes.

gpu.func @k(%x, %y, %n) { %0 = memref.load %x[...]; memref.store %0, %y[...] }        ([0], [1])
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType

from xla_emitters.dialects.mlir import gpu


def buffer_accesses(kernel: gpu.FuncOp) -> tuple[list[int], list[int]]:
    """The numbers of the arguments that are read, and of those that are written: what is only loaded from is not written."""
    read, written = list[int](), list[int]()
    for number, argument in enumerate(kernel.body.blocks[0].args[: len(kernel.function_type.inputs)]):
        if not isinstance(argument.type, MemRefType):
            continue
        loads = [isinstance(use.operation, memref.LoadOp) for use in argument.uses]
        if any(loads):
            read.append(number)
        if not all(loads):
            written.append(number)
    return read, written
