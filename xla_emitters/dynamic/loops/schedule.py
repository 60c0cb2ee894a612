"""The interface of a schedule: a function that writes the loops which compute a fusion's results.

    def emit_loop_schedule(fusion: FusionLoops) -> None:
        def body(code: KernelCode, ivs: Sequence[SSAValue]) -> None:
            for root in fusion.roots:
                indices = code.index.delinearize(ivs[0], fusion.numbers.sizes(root.outputs[0]))
                code.store(element(code, root, indices), root.outputs[0], indices)
        fusion.parallel("loop", [fusion.numbers.count(fusion.roots[0].outputs[0])], [1], body)

A schedule writes code for roots alone (and for values that it keeps in shared memory): an element of a root loads its operands. Loads of
buffers that other ops of the fusion write are replaced in `disc-input-inline-fusion`. Afterwards a root is erased, unless another
op of the fusion reads its buffer: then that pass erases it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, buffer_type, space_of
from xla_emitters.dialects.mlir import memref, scf
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dynamic.buffers.fusion_rules import VECTOR
from xla_emitters.dynamic.buffers.index_code import INDEX, Number
from xla_emitters.dynamic.loops.buffer_numbers import BufferNumbers
from xla_emitters.dynamic.loops.kernel_code import KernelCode

SCHEDULE = "disc.schedule"
"""Attribute of a parallel loop: the name of the schedule that wrote it."""
THREADS_HINT = "disc.thread_per_block_hint"
"""Attribute of a fusion, and of its parallel loop of one variable: threads of a block, where the schedule leaves their number open."""
Body: TypeAlias = Callable[[KernelCode, Sequence[SSAValue]], None]
"""(code inside, induction variables)"""


class FusionLoops:
    """A fusion that is being lowered to loops.

    op       the fusion; its loops are put in front of its terminator
    roots    the ops whose buffers are used outside, in order
    is_cpu   whether the loops are for a CPU: each block is one thread
    numbers  sizes and other numbers, as host values
    """

    def __init__(self, op: FusionOp, roots: Sequence[BufferOp], *, is_cpu: bool = False) -> None:
        self.op = op
        self.roots = tuple(roots)
        self.is_cpu = is_cpu
        self.numbers = BufferNumbers(op)

    @property
    def vector(self) -> int:
        """Adjacent elements that a thread computes."""
        width = self.op.attributes.get(VECTOR)
        return width.value.data if isinstance(width, IntegerAttr) and not self.is_cpu else 1

    @property
    def threads_hint(self) -> int | None:
        """The threads of a block that the fusion asks for."""
        hint = self.op.attributes.get(THREADS_HINT)
        return hint.value.data if isinstance(hint, IntegerAttr) and not self.is_cpu else None

    def parallel(self, schedule: str, uppers: Sequence[Number], steps: Sequence[int], body: Body) -> scf.ParallelOp:
        """A parallel loop from 0 to each upper bound. Several loops of one fusion run one after the other."""
        host = self.numbers.code
        block = Block(arg_types=[INDEX] * len(uppers))
        terminator = self.op.body.block.last_op
        assert terminator is not None
        lowers = [host.value(0)] * len(uppers)
        loop = scf.ParallelOp(lowers, list(map(host.value, uppers)), list(map(host.value, steps)), Region(block))
        loop.attributes[SCHEDULE] = StringAttr(schedule)
        if (hint := self.threads_hint) is not None and len(uppers) == 1:
            loop.attributes[THREADS_HINT] = IntegerAttr(hint, i64)
        loop.location = self.op.location
        QuickBuilder(InsertPoint.before(terminator)).insert(loop)
        code = KernelCode(QuickBuilder(InsertPoint.at_end(block)), self.op, self.numbers)
        body(code, block.args)
        code.insert(scf.ReduceOp())
        return loop

    def scratch(self, sizes: Sequence[Number], element: Attribute, name: str) -> SSAValue:
        """A buffer beside the fusion's results: allocated before the fusion, freed after it."""
        known = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
        unknown = [size for size in sizes if not isinstance(size, int)]
        space = space_of(self.roots[0].outputs[0].type)
        made = self.numbers.code.insert(memref.AllocOp(unknown, [], buffer_type(element, known, space)))
        made.name_hint = name
        free = memref.DeallocOp.build(operands=[made])
        free.location = self.op.location
        QuickBuilder(InsertPoint.after(self.op)).insert(free)
        return made


Schedule: TypeAlias = Callable[[FusionLoops], None]
"""Function that writes the loops of a fusion."""
