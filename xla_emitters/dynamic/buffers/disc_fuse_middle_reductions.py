"""Puts reductions of dimensions in the middle of an array, with the transposes before them, into fusions of their own: for a CPU.

    "lmhlo.fusion"() <{kind = "kLoop"}> ({                               "lmhlo.fusion"() <{kind = "kMiddleReduction"}> ({
      lmhlo.dynamic_gather %table, %places -> %x                           lmhlo.dynamic_gather %table, %places -> %x
    })                                                                     lmhlo.transpose %x -> %t {dimensions = [0, 2, 1]}
    "lmhlo.fusion"() <{kind = "kLoop"}> ({                                 lmhlo.dynamic_reshape %t, %list -> %m
      lmhlo.transpose %x -> %t {dimensions = [0, 2, 1]}                    lmhlo.constant -> %zero
    })                                                           ->        lmhlo.reduce %m, %zero -> %r {dimensions = [1]}
    "lmhlo.fusion"() <{kind = "kStitch"}> ({                             })
      lmhlo.dynamic_reshape %t, %list -> %m                              "lmhlo.fusion"() <{kind = "kLoop"}> ({
      lmhlo.constant -> %zero                                              lmhlo.divide %r, %n -> %y
      lmhlo.reduce %m, %zero -> %r {dimensions = [1]}                    })
      lmhlo.divide %r, %n -> %y
    })

`disc-canonicalize-reduction` transposes an array so that a GPU reduces rows. A CPU adds whole rows of the array as it is
(`middle_reduction_schedule`), so the transpose is not computed, and neither is what it alone reads stored. What is left of the fusion has
one element for each result, and is a loop.

What is not taken: reductions of several arrays, a transpose with other readers, and ops whose operands change before the reduction runs.
Source: none; docs/decisions/14-where-the-passes-of-programs-differ.md has the transposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicReshapeOp
from xla_emitters.dialects.hlo.placement import DEVICE
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import ReshapeOp, TransposeOp
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, TerminatorOp
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.buffer_uses import is_after, is_read_inside, is_used_inside, reads, uses_of, writes
from xla_emitters.dynamic.buffers.fusion_rules import LOOP, MIDDLE, cone_of, middle_of
from xla_emitters.dynamic.buffers.later_reads import free_behind, placed, why_not_later
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscFuseMiddleReductionsPass(KernelPass):
    name = "disc-fuse-middle-reductions"

    def apply_to(self, op: ModuleOp) -> None:
        for transpose in [found for found in op.walk() if isinstance(found, BufferOp) and found.HLO is TransposeOp]:
            if middle_of(integers(transpose.properties["dimensions"])) is None:
                continue
            ops = _reductions_of(transpose)
            if not ops:
                self.skip(transpose, "not only reductions of rows in one fusion read it")
            elif (reason := _Move(transpose, ops).run()) is not None:
                self.skip(transpose, reason)


def _reductions_of(transpose: BufferOp) -> list[BufferOp]:
    """The reshapes and the reductions of rows that alone read the transpose, in order, if they are in one fusion; else []."""
    reshapes = _readers_of(transpose, (ReshapeOp, DynamicReshapeOp))
    found = [reduction for reshape in reshapes for reduction in _readers_of(reshape, (ReduceOp,))]
    is_whole = all(_readers_of(reshape, (ReduceOp,)) for reshape in reshapes)
    fusions = {op.parent_op() for op in (*reshapes, *found)}
    is_one = len(fusions) == 1 and isinstance(next(iter(fusions)), FusionOp)
    fits = all(len(op.inputs) == 2 and integers(op.properties["dimensions"]) == (1,) for op in found)
    return [*reshapes, *found] if found and is_whole and is_one and fits else []


def _readers_of(op: BufferOp, kinds: tuple[type, ...]) -> list[BufferOp]:
    """The ops that read the op's result, if all are of these kinds and read it as their first operand; else []."""
    (buffer,) = op.outputs
    if not isinstance(buffer.owner, memref.AllocOp):
        return []
    found = list[BufferOp]()
    for use in uses_of(buffer):
        if not reads(use):
            continue
        if not isinstance(use.operation, BufferOp) or use.operation.HLO not in kinds or use.index != 0:
            return []
        found.append(use.operation)
    return found


def _is_local(buffer: SSAValue, fusion: FusionOp) -> bool:
    """Whether only ops of the fusion read and write a buffer."""
    return isinstance(buffer.owner, memref.AllocOp) and is_used_inside(buffer, fusion)


class _Move:
    """One new fusion.

    ops  reshapes and reductions, in the fusion that is taken apart
    """

    def __init__(self, transpose: BufferOp, ops: Sequence[BufferOp]) -> None:
        holder = ops[0].parent_op()
        assert isinstance(holder, FusionOp)
        self._transpose, self._ops, self._holder = transpose, ops, holder

    def run(self) -> str | None:
        """Makes the fusion; returns why not."""
        if (producers := self._producers()) is None:
            return "another op reads what is computed beside it"
        moved = {*producers, *self._ops}
        for op in self._ops:
            if op.HLO is ReduceOp:
                moved |= set(self._cone(op.inputs[1]))
        left = self._holder.ops
        # Numbers that both halves need are computed in both.
        results = {buffer for op in self._ops if op.HLO is ReduceOp for buffer in op.outputs}
        stay = [op for op in left if op not in moved]
        wanted = {buffer for op in stay for buffer in (*op.inputs, *op.outputs)}
        twice = cone_of(self._holder, wanted, results) & moved
        left = [op for op in left if op not in moved or op in twice]
        if twice & {*self._ops, self._transpose} or not self._is_a_loop(left):
            return "what is left of the fusion is not one loop"
        written = {buffer for op in moved for buffer in op.outputs}
        for op in producers:
            for buffer in op.inputs if op.parent_op() is not self._holder else ():
                if buffer not in written and (reason := why_not_later(buffer, op, [self._holder])) is not None:
                    return reason
        self._make(producers, moved, twice)
        return None

    def _cone(self, buffer: SSAValue) -> list[BufferOp]:
        """The ops of the fusion that is taken apart which compute a buffer."""
        cone = cone_of(self._holder, [buffer])
        return [op for op in self._holder.ops if op in cone]

    def _producers(self) -> list[BufferOp] | None:
        """The ops before the reshapes: the transpose, what is in a fusion with it, and what computes its operand for it alone."""
        if self._transpose.parent_op() is self._holder:
            cone = self._cone(self._transpose.outputs[0])
            return cone if all(_is_local(buffer, self._holder) for op in cone for buffer in op.outputs) else None
        found = self._whole(self._transpose)
        if found is None or found != [self._transpose]:
            return found
        (source,) = self._transpose.inputs
        writers = [use.operation for use in uses_of(source) if writes(use)]
        readers = [use.operation for use in uses_of(source) if reads(use)]
        if len(writers) == 1 and readers == [self._transpose] and isinstance(source.owner, memref.AllocOp):
            (writer,) = writers
            is_here = placed(writer).parent is self._holder.parent and is_after(self._transpose, writer)
            if is_here and isinstance(writer, BufferOp) and isinstance(writer.parent_op(), FusionOp):
                before = self._whole(writer)
                if before is not None and not any(op.HLO is ReduceOp for op in before):
                    return [*before, *found]
        return found

    @staticmethod
    def _whole(root: BufferOp) -> list[BufferOp] | None:
        """The ops of the fusion around an op, if only its result is used outside; the op alone without a fusion; else None."""
        fusion = root.parent_op()
        if not isinstance(fusion, FusionOp):
            return [root]
        ops = fusion.ops
        for op in ops:
            if op is not root and not all(_is_local(buffer, fusion) for buffer in op.outputs):
                return None
        return ops

    def _is_a_loop(self, left: Sequence[BufferOp]) -> bool:
        """Whether the ops that stay have results with one element for each reduced row."""
        sizes, results = BufferSizes(), [op.outputs[0] for op in self._ops if op.HLO is ReduceOp]
        own = {buffer for op in left for buffer in op.outputs}
        shared = [buffer for buffer in own if not is_read_inside(buffer, self._holder)]
        is_simple = not any(op.HLO is ReduceOp for op in left)
        return is_simple and all(sizes.same_count(buffer, results[0]) for buffer in (*shared, *results))

    def _make(self, producers: Sequence[BufferOp], moved: AbstractSet[BufferOp], twice: AbstractSet[BufferOp]) -> None:
        made = FusionOp.of(f"{self._holder.label}_middle", MIDDLE, [], self._holder.location)
        Rewriter.insert_op(made, InsertPoint.before(self._holder))
        emptied = {placed(op) for op in producers} - {self._holder}
        body = list[BufferOp]()
        here = [op for op in self._holder.ops if op in moved]
        for op in (*(op for op in producers if op not in here), *here):
            if op in twice:
                body.append(op.clone())
            else:
                op.detach()
                body.append(op)
        Rewriter.insert_op(body, InsertPoint.at_start(made.body.block))
        for op in body:
            for buffer in op.operands:
                free_behind(buffer, made)
        for fusion in emptied:
            if isinstance(fusion, FusionOp):
                Rewriter.erase_op(fusion)
        self._holder.properties["kind"] = StringAttr(LOOP)
        self._holder.attributes = {DEVICE: self._holder.attributes[DEVICE]}
        if isinstance(self._holder.body.block.first_op, TerminatorOp):
            Rewriter.erase_op(self._holder)
