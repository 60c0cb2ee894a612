"""Numbers that a kernel needs and the host computes: sizes of buffers, and elements of lists on the host.

    numbers.sizes(%x)          -> (%n, %m, 32)     of memref<?x?x32xf32, "gpu">
    numbers.count(%x)          -> %c = %n * %m * 32
    numbers.held(%low, 1)      -> memref.load %low[%c1] : memref<2xi32, "cpu">, or a number where %low is a constant

All code is inserted before the fusion, so a kernel only reads the values. Sizes that are known to be equal (`buffer_sizes`) are
one SSA value, for any buffer of the fusion: the one with which a buffer was allocated, or a `memref.dim`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dialects.mlir import memref
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes, allocated_size
from xla_emitters.dynamic.buffers.buffer_uses import writes
from xla_emitters.dynamic.buffers.index_code import IndexCode, Number
from xla_emitters.rewrite.effects import is_pure


class HostIndexCode(IndexCode):
    """Builder of arithmetic before a fusion, with CSE."""

    def __init__(self, fusion: FusionOp) -> None:
        super().__init__(QuickBuilder(InsertPoint.before(fusion)), fusion.location)
        self._made = dict[tuple[object, ...], SSAValue]()

    def insert(self, op: Operation) -> SSAValue:
        if not is_pure(op):
            return super().insert(op)
        key = (op.name, *op.operands, *sorted(op.properties.items()))
        if key in self._made:
            op.erase()
        else:
            self._made[key] = super().insert(op)
        return self._made[key]


class BufferNumbers:
    """The numbers for one fusion; see the file's head."""

    def __init__(self, fusion: FusionOp) -> None:
        self.code = HostIndexCode(fusion)
        self._known = BufferSizes()
        self._values = dict[Size, Number]()
        self._sizes = dict[SSAValue, tuple[Number, ...]]()
        self._held = dict[tuple[SSAValue, tuple[int, ...]], Number]()
        self._raw = dict[tuple[SSAValue, tuple[int, ...]], SSAValue]()

    def shape(self, buffer: SSAValue) -> tuple[Size, ...]:
        """All sizes of a buffer, as sums and products of names."""
        return self._known.of(buffer)

    def sizes(self, buffer: SSAValue) -> tuple[Number, ...]:
        """All sizes of a buffer."""
        if buffer not in self._sizes:
            self._sizes[buffer] = tuple(self._value(buffer, dim, size) for dim, size in enumerate(self.shape(buffer)))
        return self._sizes[buffer]

    def count(self, buffer: SSAValue) -> Number:
        """The number of elements of a buffer."""
        return self.code.product(self.sizes(buffer))

    def held(self, buffer: SSAValue, *indices: int) -> Number:
        """An element of a buffer of integers in the host's memory."""
        key = (buffer, indices)
        if key not in self._held:
            known = constant_in(buffer)
            self._held[key] = self.code.element(buffer, indices) if known is None else int(known.array()[indices])
        return self._held[key]

    def raw(self, buffer: SSAValue, indices: Sequence[int]) -> SSAValue:
        """An element of a buffer in the host's memory, in its own type."""
        key = (buffer, tuple(indices))
        if key not in self._raw:
            places = [self.code.value(index) for index in indices]
            self._raw[key] = self.code.insert(memref.LoadOp.get(buffer, places))
        return self._raw[key]

    def _value(self, buffer: SSAValue, dim: int, size: Size) -> Number:
        if size.value is not None:
            return size.value
        if size not in self._values:
            self._values[size] = self._asked(buffer, dim)
        return self._values[size]

    def _asked(self, buffer: SSAValue, dim: int) -> Number:
        """For a buffer allocated here, the size it was allocated with; for another one, `memref.dim`."""
        if (size := allocated_size(buffer, dim)) is not None:
            return size
        for use in buffer.uses:
            found = use.operation
            if isinstance(found, memref.DimOp) and constant_of(found.index) == dim and self._is_before(found):
                return found.result
        return self.code.dim(buffer, dim)

    def _is_before(self, op: Operation) -> bool:
        """Whether an op is executed before the fusion."""
        holder: Operation | None = self.code.builder.insertion_point.insert_before
        while holder is not None and holder.parent is not op.parent:
            holder = holder.parent_op()
        return holder is not None and op.is_before_in_block(holder)


def constant_in(buffer: SSAValue) -> ConstantOp | None:
    """The constant that is the only writer of a buffer."""
    writers = [use.operation for use in buffer.uses if writes(use)]
    if len(writers) != 1 or not isinstance(writers[0], BufferOp):
        return None
    op = writers[0].as_hlo() if writers[0].name == "lmhlo.constant" else None
    return op if isinstance(op, ConstantOp) and not op.is_elided else None
