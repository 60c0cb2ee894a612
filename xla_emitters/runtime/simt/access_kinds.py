"""Kinds of accesses to memory, as the race detector (`sanitizer`) tells them apart, and which kinds of two threads conflict.

    tensor.extract, llvm.load        READ           an atomic load                    LOOK
    tensor.insert, llvm.store        WRITE          llvm.atomicrmw, an atomic store   UPDATE; of scope .cta BLOCK_UPDATE too
    a matrix of wgmma, tcgen05       USE, a READ when it is complete
    cp.async, tcgen05 to its memory  COPY, a WRITE when it is complete

Source: PTX ISA, "Memory Consistency Model".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from xdsl.dialects.builtin import StringAttr, VectorType
from xdsl.ir import Block, Operation, SSAValue

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm, memref
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.dialects.mlir.llvm.memory_ops import ordering_number
from xla_emitters.dialects.mlir.nvvm_async import CpAsyncOp
from xla_emitters.runtime.simt.copies_in_flight import Flight


class Touch(Enum):
    """Kind of an access, in the words of the messages."""

    READ = "reads"
    WRITE = "writes"
    LOOK = "reads atomically"
    UPDATE = "updates"
    BLOCK_UPDATE = "updates for its block alone"
    COPY = "begins to copy to"
    USE = "begins to read"

    @property
    def past(self) -> str:
        return _PAST[self.name]


_PAST = {
    **{"READ": "read", "LOOK": "read atomically", "WRITE": "wrote"},
    **{"UPDATE": "updated", "BLOCK_UPDATE": "updated for its block alone"},
    **{"COPY": "copies without a wait", "USE": "reads without a wait"},
}
FLYING = (Touch.COPY, Touch.USE)
"""Asynchronous accesses: of two of the same thread, one has not waited for the other."""
IN_CONFLICT = {
    Touch.READ: (Touch.COPY, Touch.WRITE, Touch.UPDATE),
    Touch.LOOK: (Touch.COPY, Touch.WRITE),
    Touch.WRITE: (Touch.COPY, Touch.USE, Touch.WRITE, Touch.UPDATE, Touch.READ, Touch.LOOK),
    Touch.UPDATE: (Touch.COPY, Touch.USE, Touch.WRITE, Touch.READ),
    Touch.COPY: (Touch.COPY, Touch.USE, Touch.WRITE, Touch.UPDATE, Touch.READ, Touch.LOOK),
    Touch.USE: (Touch.COPY, Touch.WRITE, Touch.UPDATE),
}
UPDATES = {
    op.name
    for op in (xla_gpu.AtomicRMWOp, memref.AtomicRMWOp, llvm.AtomicRMWOp, llvm.AtomicCmpXchgOp, llvm.InlineAsmOp)
}
"""Ops that update memory atomically. Inline machine code is one of them: the executor supports no inline code but atomic updates."""
_RELEASES = [ordering_number(word) for word in ("release", "acq_rel", "seq_cst")]
_STORES = ("cp.async.bulk.store", "cp.async.bulk.tensor.store")
_FLIGHTS = {
    **{"wgmma.mma_async": Flight.PRODUCT, "tcgen05.mma": Flight.TENSOR, "tcgen05.cp": Flight.TENSOR},
    **{"tcgen05.ld": Flight.TENSOR_LOAD, "tcgen05.st": Flight.TENSOR_STORE},
}
"""How intrinsics begin that are in flight -> the groups that count them."""
_BY_PROXY = ("wgmma.mma_async", "tcgen05.mma", "tcgen05.cp", "cp.async.bulk", "cp.reduce")


def touch_of(op: Operation, is_store: bool) -> Touch | None:
    """Kind of an access; None for the load before a compare-and-swap, which checks the loaded value."""
    name = _intrinsic(op)
    if is_store and (name.startswith(("cp.async.bulk", *_FLIGHTS)) or isinstance(op, CpAsyncOp)):
        return Touch.COPY
    if not is_store and (name.startswith((*_FLIGHTS,)) or name in _STORES):
        return Touch.USE
    if name.startswith("cp.reduce."):
        return Touch.UPDATE if is_store else Touch.READ
    if _is_atomic(op):
        return Touch.LOOK if isinstance(op, llvm.LoadOp) else Touch.UPDATE
    if isinstance(op, llvm.LoadOp) and _is_guess(op):
        return None
    return Touch.WRITE if is_store else Touch.READ


def _intrinsic(op: Operation) -> str:
    """The name of PTX's instruction; "" of another op."""
    return op.intrin.data.removeprefix("llvm.nvvm.") if isinstance(op, llvm.CallIntrinsicOp) else ""


def _is_atomic(op: Operation) -> bool:
    if op.name in UPDATES:
        return True
    if name := _intrinsic(op):
        return name.startswith(("mbarrier.", "cp.async.mbarrier.", "tcgen05.commit")) and name != "mbarrier.init"
    if not isinstance(op, llvm.LoadOp | llvm.StoreOp):
        return False
    # In PTX a volatile access means a relaxed one.
    return op.ordering.value.data != 0 or op.volatile_ is not None


def _is_guess(op: llvm.LoadOp) -> bool:
    """Whether a compare-and-swap is at the load's address, or compares with what was loaded, perhaps in the first round of a loop."""
    if any(isinstance(use.operation, llvm.AtomicCmpXchgOp) for use in op.ptr.uses):
        return True
    found: list[SSAValue] = [op.results[0]]
    for value in found:
        for use in value.uses:
            user, more = use.operation, list[SSAValue]()
            match user:
                case llvm.AtomicCmpXchgOp() if user.cmp is value:
                    return True
                case llvm.BitcastOp():
                    more += user.results
                case llvm.BrOp():
                    more += _passed(value, user.arguments, user.successor)
                case llvm.CondBrOp():
                    more += _passed(value, user.then_arguments, user.then_block)
                    more += _passed(value, user.else_arguments, user.else_block)
                case _:
                    pass
            found += [each for each in more if each not in found]
    return False


def _passed(value: SSAValue, operands: Sequence[SSAValue], to: Block) -> list[SSAValue]:
    """The arguments of a block that get a value."""
    return [argument for operand, argument in zip(operands, to.args, strict=True) if operand is value]


def is_release(op: Operation) -> bool:
    """Whether an atomic op orders what was before it."""
    match op:
        case llvm.AtomicRMWOp() | llvm.StoreOp():
            ordering = op.ordering
        case llvm.AtomicCmpXchgOp():
            ordering = op.success_ordering
        case _:
            return False
    return ordering in _RELEASES


def bytes_of_update(op: Operation) -> int:
    """Bytes of one atomic access: a vector is accessed element by element. 0: not known, as for 128 bits, which are two words here."""
    match op:
        case llvm.LoadOp() | llvm.AtomicCmpXchgOp() | llvm.AtomicRMWOp():
            of = op.operands[-1].type if op.operands[1:] else op.results[0].type
        case llvm.StoreOp():
            of = op.value.type
        case _:
            return 0
    if isa(of, VectorType):
        element = bits_of(of.element_type)
        return 0 if element == 64 else element // 8
    return bits_of(of) // 8


def is_of_block(op: Operation) -> bool:
    """Whether the threads of its block alone observe the order of an op."""
    scope = op.properties.get("syncscope")
    return isinstance(scope, StringAttr) and scope.data == llvm.OF_BLOCK


def is_asynchronous(op: Operation) -> bool:
    """Whether the op accesses memory by the async proxy: bulk copies, and matrices of `wgmma` and `tcgen05`."""
    return _intrinsic(op).startswith(_BY_PROXY)


def flight_of(op: Operation, touch: Touch) -> Flight:
    """The groups that count an asynchronous access."""
    name = _intrinsic(op)
    of_name = (flight for start, flight in _FLIGHTS.items() if name.startswith(start))
    return next(of_name, Flight.COPY if touch is Touch.COPY else Flight.STORE)


def is_of_copy(op: Operation) -> bool:
    """Whether the op is what a bulk copy does to a barrier when it is complete."""
    return _intrinsic(op).startswith("mbarrier.complete_tx") and not _intrinsic(op).endswith("stored")


def is_in_order(op: Operation) -> bool:
    """Whether the op happens behind those that its thread has issued before, and which are in flight too."""
    return _intrinsic(op).startswith(("tcgen05.mma", "tcgen05.cp"))


def only_writes(op: Operation) -> bool:
    """Whether the op is an atomic store, or an atomic and, or, xor with unused result, which writes an element that shares its byte."""
    if isinstance(op, llvm.StoreOp):
        return True
    return isinstance(op, llvm.AtomicRMWOp) and op.operation in ("_and", "_or", "_xor") and not op.res.uses.get_length()
