"""Checks that the tensors of a function may be updated in place, so that an insert may be lowered to a store.

    %a = tensor.insert %x into %out[%i]        a new value of %out's buffer: the current one
    %b = tensor.insert %y into %a[%j]          right: updates the current value
    %c = tensor.extract %out[%k]               stale: the buffer has changed since; right only if %k is never %i or %j
    return %b                                  right: the current value; returning %a or %out would not be

Tensors are values, but buffers are not: a write to a buffer overwrites its older values. A walk in program order records the current value
of each buffer and checks:

* a write must update the current value; its result is the new current value;
* a loop that writes a buffer must carry it in exactly one of its arguments, start with the current value and yield the current value;
* an `scf.if` that writes a buffer must yield the current value in both branches;
* a barrier (sync_threads) must take the current value; its result, with the writes of all threads, is the new current value;
* a read must be of the current value, or of elements that no write since can access (`accesses.are_disjoint`);
* a function that returns tensors must return the current values of its last arguments' buffers, in order, and every buffer that it wrote.
  A function that is not a kernel may return those of any of its arguments, because calls return no tensors.

* an entry does not read its outputs: they are used once, in a chain of writes that ends in the return.

The last is the seed document's rule ("No other uses of the output tensors are allowed"). An output that is an input too is exempt: it
shares its buffer with another argument (equal `xla.slice_index`), or is the only tensor of the entry. The other rules hold for
it, so such a kernel passes as long as it reads each element before it writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import NoReturn

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.mlir import arith, func, scf, tensor, vector
from xla_emitters.dialects.quick_op import operands_of
from xla_emitters.rewrite.accesses import (
    Buffer,
    TensorAccess,
    accesses_in,
    accesses_of,
    are_disjoint,
    buffer_of,
    has_tensor,
    is_tensor,
)
from xla_emitters.rewrite.kernel_entry import ENTRY
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class Conflict:
    """The reason why the tensors of a function cannot be updated in place.

    op      the op that would read an update too early, or lose one
    why     the text after "<op>: "
    update  the op that makes the update, if it is another one
    """

    op: Operation
    why: str
    update: Operation | None = None


def find_conflict(function: func.FuncOp) -> Conflict | None:
    """The first op that prevents in-place updates in `function`; None if there is none."""
    if function.body.blocks:
        try:
            _Walk(function).run()
        except _Found as found:
            return found.conflict
    return None


class _Found(Exception):
    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.why)
        self.conflict = conflict


Version = int
ACCESSES: frozenset[type[Operation]] = frozenset(
    (tensor.ExtractOp, tensor.InsertOp, vector.TransferReadOp, vector.TransferWriteOp, xla_gpu.AtomicRMWOp)
)
KNOWN = ACCESSES | {func.CallOp, xla_gpu.PureCallOp, scf.YieldOp}
STALE_WRITE = "it updates an older value of a tensor that has been updated in place"


@dataclass
class _Walk:
    """The walk over one function in program order.

    version   per tensor value: values of one buffer with equal versions have equal elements
    current   the version that each buffer's memory holds at this point
    writes    all writes of the function, by buffer
    outputs   the buffers that may only be written
    """

    function: func.FuncOp
    version: dict[SSAValue, Version] = field(default_factory=dict[SSAValue, Version])
    current: dict[Buffer, Version] = field(default_factory=dict[Buffer, Version])
    writes: dict[Buffer, list[TensorAccess]] = field(default_factory=dict[Buffer, list[TensorAccess]])
    buffers: dict[SSAValue, Buffer] = field(default_factory=dict[SSAValue, Buffer])
    outputs: set[Buffer | None] = field(default_factory=set[Buffer | None])
    versions: int = 0

    def run(self) -> None:
        if len(self.function.body.blocks) > 1:
            self._refuse(self.function, "it has branches to blocks")
        self.outputs = self._pure_outputs()
        for access in accesses_in(self.function):
            if access.is_write:
                buffer = self.buffer(access.tensor, access.op)
                self.writes.setdefault(buffer, []).append(access)
                # Follow each chain of inserts once, not once per insert.
                self.buffers |= {result: buffer for result in access.op.results}
        for argument in self.function.body.block.args:
            if isinstance(argument.type, TensorType):
                self._start(argument)
        self._ops(self.function.body.block.ops)

    def _pure_outputs(self) -> set[Buffer | None]:
        """The buffers of an entry's outputs that no input shares."""
        arguments = [each for each in self.function.body.block.args if isinstance(each.type, TensorType)]
        inputs = len(arguments) - sum(isinstance(each, TensorType) for each in self.function.function_type.outputs)
        if ENTRY not in self.function.attributes or inputs < 1:
            return set()
        return {buffer_of(each) for each in arguments[inputs:]} - {buffer_of(each) for each in arguments[:inputs]}

    def buffer(self, value: SSAValue, op: Operation) -> Buffer:
        """The buffer of `value`; refuses its user `op` if the buffer is unknown."""
        if (found := self.buffers.get(value)) is None:
            if (found := buffer_of(value)) is None:
                self._refuse(op, "its tensor may be in one of two buffers")
            self.buffers[value] = found
        return found

    # Straight-line code

    def _ops(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            match op:
                case scf.ForOp():
                    self._for(op)
                case scf.IfOp() | scf.IndexSwitchOp():
                    self._branch(op)
                case func.ReturnOp():
                    self._return(op)
                case xla_gpu.SyncThreadsOp():
                    self._sync(op)
                case _:
                    self._op(op)

    def _op(self, op: Operation) -> None:
        if not op.regions and not has_tensor(operands_of(op)) and not has_tensor(op.results):
            return
        # A region of an unknown op could yield any tensor.
        if type(op) not in KNOWN and (has_tensor(op.operands) or (op.regions and has_tensor(op.results))):
            self._refuse(op, "its effect on its tensors is not known")
        for access in accesses_of(op):
            if access.is_write:
                self._write(access)
            else:
                self._read(access)
        if any(access.is_write for region in op.regions for nested in region.walk() for access in accesses_of(nested)):
            self._refuse(op, "it is not known how often it runs the updates in it")
        for region in op.regions:
            for block in region.blocks:
                self._ops(block.ops)
        if type(op) not in ACCESSES:
            for result in op.results:
                if is_tensor(result):
                    self._start(result)

    def _start(self, value: SSAValue) -> None:
        """Records a tensor that is the first value of its buffer: an argument, a constant, an allocation."""
        buffer = buffer_of(value)
        assert buffer is not None
        if buffer not in self.current:
            self.current[buffer] = self._fresh()
        self.version[value] = self.current[buffer]

    def _read(self, access: TensorAccess) -> None:
        buffer = self.buffer(access.tensor, access.op)
        if buffer in self.outputs:
            self._refuse(access.op, "it reads an output of the entry, which is written once and used for nothing else")
        if self.version[access.tensor] == self.current[buffer]:
            return
        seen = _writes_before(access.tensor)
        for write in self.writes.get(buffer, ()):
            if write.op not in seen and not are_disjoint(write, access):
                self._refuse(
                    access.op,
                    f"it reads an older value of a tensor that {write.op.name} has updated in place",
                    write.op,
                )

    def _write(self, access: TensorAccess) -> None:
        buffer = self.buffer(access.tensor, access.op)
        if self.version[access.tensor] != self.current[buffer]:
            self._refuse(access.op, STALE_WRITE)
        if isinstance(buffer, OpResult) and isinstance(buffer.op, arith.ConstantOp):
            self._refuse(access.op, "it updates a constant")
        for result in access.op.results:
            self.version[result] = self.current[buffer] = self._fresh()

    def _sync(self, op: xla_gpu.SyncThreadsOp) -> None:
        """After a barrier, memory holds the writes of all threads."""
        for value, result in zip(op.arguments, op.outs, strict=True):
            buffer = self.buffer(value, op)
            if self.version[value] != self.current[buffer]:
                self._refuse(op, "its operand is an older value of a tensor that has been updated in place")
            self.version[result] = self.current[buffer] = self._fresh()

    def _fresh(self) -> Version:
        self.versions += 1
        return self.versions

    # Loops and branches

    def _for(self, op: scf.ForOp) -> None:
        block = op.body.block
        terminator = block.last_op
        assert isinstance(terminator, scf.YieldOp)
        tensors = [k for k, init in enumerate(op.iter_args) if isinstance(init.type, TensorType)]
        carries = self._carriers(op, terminator, tensors)
        for position in tensors:
            init, argument = op.iter_args[position], block.args[1 + position]
            self.version[argument] = self.version[init]
            if position in carries:
                buffer = self.buffer(init, op)
                if self.version[init] != self.current[buffer]:
                    self._refuse(op, STALE_WRITE)
                self.version[argument] = self.current[buffer] = self._fresh()
        self._ops(block.ops)
        for position in tensors:
            yielded, result = terminator.arguments[position], op.results[position]
            if position not in carries:
                if self.version[yielded] != self.version[op.iter_args[position]]:
                    self._refuse(op, "it exchanges tensors between iterations")
                self.version[result] = self.version[yielded]
                continue
            buffer = self.buffer(yielded, op)
            if self.version[yielded] != self.current[buffer]:
                self._refuse(op, "it yields an older value of a tensor that the iteration has updated in place")
            self.version[result] = self.current[buffer] = self._fresh()

    def _carriers(self, op: scf.ForOp, terminator: scf.YieldOp, tensors: Sequence[int]) -> frozenset[int]:
        """The positions that carry a buffer that the body writes: one for each such buffer."""
        carries: dict[Buffer, int] = {}
        written = {self.buffer(access.tensor, access.op) for access in accesses_in(op) if access.is_write}
        for position in tensors:
            buffer = self.buffer(op.iter_args[position], op)
            if self.buffer(terminator.arguments[position], op) != buffer:
                self._refuse(op, "it exchanges tensors between iterations")
            if buffer in written and terminator.arguments[position] is not op.body.block.args[1 + position]:
                if buffer in carries:
                    self._refuse(op, "it carries one buffer in two arguments")
                carries[buffer] = position
        for buffer in written - carries.keys():
            if not (isinstance(buffer, OpResult) and op.is_ancestor(buffer.owner)):
                self._refuse(op, "it writes a tensor that it does not carry to the next iteration")
        return frozenset(carries.values())

    def _branch(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        before, versions_before = dict(self.current), self.versions
        ends: list[tuple[dict[Buffer, Version], Sequence[SSAValue]]] = []
        for region in op.regions:
            self.current = dict(before)
            if region.blocks:
                self._ops(region.block.ops)
            terminator = region.block.last_op if region.blocks else None
            ends.append((self.current, terminator.operands if terminator else ()))
        self.current = before
        changed = set[Buffer]()
        if self.versions != versions_before:  # else no branch writes, and there may be as many branches as buffers
            changed = {b for current, _ in ends for b, version in current.items() if before.get(b, version) != version}
        kept: dict[Buffer, Version] = {}
        for position, result in enumerate(op.results):
            if not isinstance(result.type, TensorType):
                continue
            buffer = self.buffer(result, op)
            versions = [self.version[yielded[position]] for _, yielded in ends]
            if buffer not in changed:
                if len(set(versions)) > 1:
                    self._refuse(op, "its branches give different values of one buffer")
                self.version[result] = versions[0]
            elif all(version == current[buffer] for version, (current, _) in zip(versions, ends, strict=True)):
                self.version[result] = kept.setdefault(buffer, self._fresh())
            else:
                self.version[result] = self._fresh()
        for buffer in changed:
            if buffer not in kept:
                self._refuse(op, "it writes a tensor that it does not yield")
        self.current |= kept

    def _return(self, op: func.ReturnOp) -> None:
        returned = [value for value in op.arguments if isinstance(value.type, TensorType)]
        if returned and len(returned) != len(op.arguments):
            self._refuse(op, "it returns tensors and other values")
        arguments = [argument for argument in self.function.body.block.args if isinstance(argument.type, TensorType)]
        outputs = arguments[len(arguments) - len(returned) :]
        if len(outputs) != len(returned):
            self._refuse(op, f"it returns {len(returned)} tensors, but the function takes only {len(arguments)}")
        for value, output in zip(returned, outputs, strict=True):
            buffer = self.buffer(value, op)
            if buffer != buffer_of(output) and (ENTRY in self.function.attributes or not _is_argument(buffer)):
                self._refuse(op, f"it returns a tensor in another buffer than that of argument {output.index}")
            if self.version[value] != self.current[buffer]:
                self._refuse(op, "it returns an older value of a tensor that has been updated in place")
        lost = {buffer for buffer in self.writes if _is_argument(buffer)} - {buffer_of(value) for value in returned}
        if lost:
            first = next(write for buffer, writes in self.writes.items() if buffer in lost for write in writes)
            self._refuse(first.op, "it updates an argument that the function does not return")

    def _refuse(self, op: Operation, why: str, update: Operation | None = None) -> NoReturn:
        raise _Found(Conflict(op, why, update))


def _is_argument(buffer: Buffer) -> bool:
    """Whether the buffer belongs to an argument, or to several with one slice."""
    return not isinstance(buffer, SSAValue) or isinstance(buffer, BlockArgument)


def _writes_before(value: SSAValue) -> set[Operation]:
    """The writes that computed `value`, back to the loop or branch that it comes from."""
    found: set[Operation] = set()
    while True:
        match value:
            case OpResult(op=tensor.InsertOp() as op):
                found.add(op)
                value = op.dest
            case OpResult(op=vector.TransferWriteOp() as op):
                found.add(op)
                value = op.source
            case OpResult(op=xla_gpu.AtomicRMWOp() as op):
                found.add(op)
                value = op.input
            case OpResult(op=scf.ForOp() as op):
                found.update(access.op for access in accesses_in(op) if access.is_write)
                value = op.iter_args[value.index]
            case OpResult(op=scf.IfOp() | scf.IndexSwitchOp() as op):
                found.update(access.op for access in accesses_in(op) if access.is_write)
                return found
            case BlockArgument() if isinstance(loop := value.owner.parent_op(), scf.ForOp) and value.index:
                value = loop.iter_args[value.index - 1]
            case _:
                return found
