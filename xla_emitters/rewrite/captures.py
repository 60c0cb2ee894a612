"""The values from outside that the region of an op uses: they become the arguments of a kernel.

%n = memref.dim %x, %c0
lmhlo.fusion ({ scf.parallel (%i) = (%c0) to (%n) ... memref.load %x[%i] ... memref.store %v, %y[%i] })      captures %c0, %n, %x, %y
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.mlir import memref, scf, vector
from xla_emitters.dialects.quick_op import blocks_of, operands_of, walk

KERNEL_NAME = "disc.name"
"""Attribute of a launch: the name of its kernel."""


def captured_by(op: Operation) -> tuple[SSAValue, ...]:
    """The values from outside that the regions of `op` use, in the order of their first uses."""
    found, inside = dict[SSAValue, None](), set[SSAValue]()
    for inner in walk(op):
        if inner is not op:
            for value in operands_of(inner):
                found[value] = None
            inside.update(inner.results)
        for region in inner.regions:
            for block in blocks_of(region):
                inside.update(block.args)
    return tuple([value for value in found if value not in inside])


def loops_of(fusion: FusionOp) -> tuple[scf.ParallelOp, ...]:
    """The parallel loops of a fusion, one launch each; none as long as it consists of buffer ops."""
    return tuple(op for op in fusion.body.block.ops if isinstance(op, scf.ParallelOp))


def written_buffer(op: Operation) -> SSAValue | None:
    """The buffer that an access writes or updates; None for other ops."""
    match op:
        case memref.StoreOp() | memref.AtomicRMWOp():
            return op.memref
        case vector.StoreOp():
            return op.base
        case _:
            return None
