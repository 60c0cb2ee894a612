"""Replaces loads of buffers that the fusion itself computes by the code of the elements; afterwards a fusion contains loops only.

    lmhlo.fusion {                                         lmhlo.fusion {
      lmhlo.abs %x -> %t                                     scf.parallel (%i) = (0) to (%n) step (1) {
      scf.parallel (%i) = (0) to (%n) step (1) {               %0 = memref.load %x[%i]
        %0 = memref.load %t[%i]                     ->         %1 = math.absf %0
        %1 = memref.load %y[%i]                                %2 = memref.load %y[%i]
        %2 = arith.addf %0, %1                                 %3 = arith.addf %1, %2
        memref.store %2, %z[%i]                                memref.store %3, %z[%i]
      }                                                      }
    }                                                      }

The intermediate buffers are then not read any more (`disc-dead-temp-buffer-removal` removes them). Each element is computed once in a
region, after its operands, in the order in which they are needed: the seed's repeated search for the nearest producer and its load cache
at equal indices give the same code. A fusion without results is erased. A result that no loop writes is an error of the schedule.
Loads are visited in execution order, inner regions included; the code of an element is inserted before the load, and
loads in it are replaced in turn, so one visit is enough. An element that was computed before, in the same region or an enclosing one,
is reused; so is one that the loop has stored: a root's value is not computed a second time when another root
reads it. Loads of buffers that only loops write (a tile of shared memory) are not changed, and never merged.
Source: seed document, "InputInlineFusion"; docs/reference/4 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.mlir import arith, memref, scf
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.loops.buffer_numbers import BufferNumbers
from xla_emitters.dynamic.loops.element_code import Computed
from xla_emitters.dynamic.loops.kernel_code import KernelCode, Producer, from_storage
from xla_emitters.dynamic.loops.roots import is_used_outside
from xla_emitters.errors import InternalError
from xla_emitters.rewrite.kernel_pass import KernelPass, refusal


class DiscInputInlineFusionPass(KernelPass):
    """See the file's head. On fusions that `disc-lhlo-legalize-to-loop` gave loops."""

    name = "disc-input-inline-fusion"

    def apply_to(self, op: ModuleOp) -> None:
        for fusion in [inner for inner in op.walk() if isinstance(inner, FusionOp)]:
            self._inline(fusion)

    def _inline(self, fusion: FusionOp) -> None:
        loops = [op for op in fusion.body.block.ops if isinstance(op, scf.ParallelOp)]
        ops = fusion.ops
        if not loops and any(is_used_outside(buffer, fusion) for op in ops for buffer in op.outputs):
            return self.skip(fusion, "it has no loop")
        producers, numbers = producers_in(fusion), BufferNumbers(fusion)
        for loop in loops:
            inline_reads(loop, fusion, numbers, producers)
        for op in reversed(ops):
            for buffer in op.outputs:
                if is_used_outside(buffer, fusion) and not _is_written(buffer, fusion):
                    what = f"no loop of '{fusion.label}' writes the result of {op.name} (%{op.instruction_name})"
                    raise InternalError(what, stage=self.name)
            Rewriter.erase_op(op)
        if not loops:
            Rewriter.erase_op(fusion)
        return None


def _is_written(buffer: SSAValue, fusion: FusionOp) -> bool:
    writers = (use.operation for use in buffer.uses if isinstance(use.operation, memref.StoreOp | memref.AtomicRMWOp))
    return any(fusion.is_ancestor(writer) for writer in writers)


def producers_in(fusion: FusionOp) -> dict[SSAValue, Producer]:
    """For each buffer that an op of the fusion writes, the producer of its elements.

    raises   Unsupported for a buffer that two ops write, or that an op reads and writes
    """
    found = dict[SSAValue, Producer]()
    for op in fusion.ops:
        for buffer in op.outputs:
            if buffer in found or buffer in op.inputs:
                raise refusal(
                    "loops", op, f"'{op.name}' (%{op.instruction_name}) writes a buffer that is written twice, or read"
                )
            found[buffer] = Computed(op)
    return found


def inline_reads(
    loop: scf.ParallelOp, fusion: FusionOp, numbers: BufferNumbers, producers: Mapping[SSAValue, Producer]
) -> None:
    """Replaces all loads of `producers`' buffers in a loop of the fusion, in place.

    raises   Unsupported naming an op that has no code of one element
    """
    block = loop.body.block
    _visit(block, KernelCode(QuickBuilder(InsertPoint.at_end(block)), fusion, numbers, producers))


def _visit(block: Block, code: KernelCode) -> None:
    for op in list(block.ops):
        if op.parent is None:
            continue  # a conversion of an element, replaced with its load
        code.builder.insertion_point = InsertPoint.before(op)
        match op:
            case memref.LoadOp():
                if _load(op, code):
                    continue
            case memref.StoreOp():
                _store(op, code)
            case arith.ExtUIOp() | UnrealizedConversionCastOp():
                _converted(op, code)
            case _:
                for region in op.regions:
                    for inner in region.blocks:
                        _visit(inner, code.inside(inner))
        code.note(op)


def _load(op: memref.LoadOp, code: KernelCode) -> bool:
    """Replaces a load if its element is computed or known already; returns whether it did."""
    indices = list(op.indices)
    if op.memref in code.producers:
        with code.located(op.location):
            value = code.load(op.memref, indices)
    elif code.is_shared(op.memref) and (known := code.known(op.memref, indices)) is not None:
        value = known
    else:
        if code.is_shared(op.memref) and op.res.type == dtype_of(op.res.type).storage_type:
            code.keep(op.memref, indices, op.res)
        return False
    for use in list(op.res.uses):
        user = use.operation
        if isinstance(user, arith.ExtUIOp | UnrealizedConversionCastOp) and user.results[0].type == value.type:
            user.results[0].replace_all_uses_with(value)
            Rewriter.erase_op(user)
    if op.res.uses:
        with code.located(op.location):
            back = from_storage(value, op.res.type)
            op.res.replace_all_uses_with(code.insert(back).results[0] if back else value)
    Rewriter.erase_op(op)
    return True


def _store(op: memref.StoreOp, code: KernelCode) -> None:
    """Records the value stored in a root's buffer as the element of the root."""
    if not isinstance(code.producers.get(op.memref), Computed):
        return
    value = op.value
    if value.type != dtype_of(value.type).storage_type:
        if not isinstance(value.owner, arith.TruncIOp | UnrealizedConversionCastOp):
            return
        value = value.owner.operands[0]
    code.keep(op.memref, list(op.indices), value)


def _converted(op: Operation, code: KernelCode) -> None:
    """A loaded element, converted to the type that kernels compute with."""
    loaded = op.operands[0].owner
    if isinstance(loaded, memref.LoadOp) and code.is_shared(loaded.memref):
        code.keep(loaded.memref, list(loaded.indices), op.results[0])
