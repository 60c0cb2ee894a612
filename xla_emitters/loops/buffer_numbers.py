"""The numbers that a kernel needs and the host knows: sizes of buffers, and elements of lists on the host.

    numbers.sizes(%x)          -> (%n, %m, 32)     of memref<?x?x32xf32, "gpu">
    numbers.count(%x)          -> %c = %n * %m * 32
    numbers.held(%low, 1)      -> memref.load %low[%c1] : memref<2xi32, "cpu">, or a number where %low is a constant

All code is put before the fusion, so a kernel gets values that it only has to read. One size is one SSA value, for whatever buffer of the
fusion it is asked: a buffer made here has the sizes that it was allocated with, another one those that `memref.dim` gives, once; where
the attribute `disc.sizes` of two buffers has the same text, the sizes are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.hints import isa

from xla_emitters.buffers.buffer_uses import uses_of, writes
from xla_emitters.buffers.index_code import IndexCode, Number
from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.lmhlo import BufferOp, tensor_of

SIZES = "disc.sizes"
"""Attribute of the op that makes a buffer, and of an argument: the text of each size."""


class BufferNumbers:
    """The numbers for one fusion; see the file's head."""

    def __init__(self, fusion: Operation) -> None:
        self.code = IndexCode(Builder(InsertPoint.before(fusion)), fusion.location)
        self._by_text = dict[str, Number]()
        self._sizes = dict[SSAValue, tuple[Number, ...]]()
        self._held = dict[tuple[SSAValue, tuple[int, ...]], Number]()
        self._raw = dict[tuple[SSAValue, tuple[int, ...]], SSAValue]()

    def sizes(self, buffer: SSAValue) -> tuple[Number, ...]:
        """All sizes of a buffer."""
        if buffer not in self._sizes:
            texts = _texts(buffer)
            dims = tensor_of(buffer.type).get_shape()
            self._sizes[buffer] = tuple(
                size if size >= 0 else self._named(buffer, dim, texts[dim] if texts else None)
                for dim, size in enumerate(dims)
            )
        return self._sizes[buffer]

    def count(self, buffer: SSAValue) -> Number:
        """The number of elements of a buffer."""
        return self.code.product(self.sizes(buffer))

    def held(self, buffer: SSAValue, *indices: int) -> Number:
        """An element of a buffer of integers in the host's memory."""
        key = (buffer, indices)
        if key not in self._held:
            known = _constant_in(buffer)
            self._held[key] = self.code.element(buffer, indices) if known is None else int(known.array()[indices])
        return self._held[key]

    def raw(self, buffer: SSAValue, indices: Sequence[int]) -> SSAValue:
        """An element of a buffer in the host's memory, in its own type."""
        key = (buffer, tuple(indices))
        if key not in self._raw:
            places = [self.code.value(index) for index in indices]
            self._raw[key] = self.code.insert(memref.LoadOp.get(buffer, places))
        return self._raw[key]

    def _named(self, buffer: SSAValue, dim: int, text: str | None) -> Number:
        if text is None:
            return self._size(buffer, dim)
        if text not in self._by_text:
            self._by_text[text] = int(text) if text.isdecimal() else self._size(buffer, dim)
        return self._by_text[text]

    def _size(self, buffer: SSAValue, dim: int) -> Number:
        """A size that the type leaves open."""
        owner = buffer.owner
        number = sum(size < 0 for size in tensor_of(buffer.type).get_shape()[:dim])
        if isinstance(owner, memref.AllocOp | memref.AllocaOp | lmhlo.IncRefOp):
            return self._same(owner.dynamic_sizes[number])
        for use in uses_of(buffer):
            found = use.operation
            if isinstance(found, memref.DimOp) and number_of(found.index) == dim and self._is_known(found.result):
                return found.result
        return self.code.dim(buffer, dim)

    def _same(self, size: SSAValue) -> Number:
        """The value that stands for a size: a `memref.dim` is the size of its buffer, a constant a number."""
        owner = size.owner
        if (known := number_of(size)) is not None:
            return known
        if isinstance(owner, memref.DimOp) and (dim := number_of(owner.index)) is not None:
            return self.sizes(owner.source)[dim]
        return size

    def _is_known(self, value: OpResult) -> bool:
        """Whether a value is there before the fusion."""
        here = self.code.builder.insertion_point
        holder: Operation | None = here.insert_before
        while holder is not None:
            if holder.parent is value.op.parent:
                return value.op.is_before_in_block(holder)
            holder = holder.parent_op()
        return False


def _texts(buffer: SSAValue) -> Sequence[str] | None:
    if isinstance(buffer.owner, Block):
        holder = buffer.owner.parent_op()
        given = None if holder is None else holder.properties.get("arg_attrs")
        if not isa(given, ArrayAttr) or len(given) <= (number := buffer.owner.args.index(buffer)):  # pyright: ignore
            return None
        said = given.data[number].data.get(SIZES)  # pyright: ignore
    else:
        said = buffer.owner.attributes.get(SIZES)
    return [text.data for text in said] if isa(said, ArrayAttr[StringAttr]) else None


def number_of(value: SSAValue) -> int | None:
    """The number that a constant is."""
    owner = value.owner
    known = isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr)
    return owner.value.value.data if known else None  # pyright: ignore


def _constant_in(buffer: SSAValue) -> ConstantOp | None:
    """The constant that a buffer holds: the one op that writes it."""
    writers = [use.operation for use in uses_of(buffer) if writes(use)]
    if len(writers) != 1 or not isinstance(writers[0], BufferOp):
        return None
    op = writers[0].as_hlo() if writers[0].name == "lmhlo.constant" else None
    return op if isinstance(op, ConstantOp) and not op.is_elided else None
