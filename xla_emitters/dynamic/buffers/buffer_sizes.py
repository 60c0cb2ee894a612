"""Sizes of buffers as values: whether two buffers have one shape, or equally many elements, before a program runs.

    %x = memref.alloc(%b, %s) {disc.sizes = ["b", "s", "32"]} : memref<?x?x32xf32, "gpu">       b x s x 32
    %y = memref.alloc(%n)     {disc.sizes = ["b*s", "32"]}    : memref<?x32xf32, "gpu">         as many elements as %x
    func.func @main(%a: memref<?xf32, "gpu"> {disc.sizes = ["b"]})
    lmhlo.while ... {disc.sizes = [["b"], ["?"]]}                                               for each buffer that it carries

The attribute is attached by `disc-legalize-to-lhlo`, which knows the sizes of tensors over the program's symbols; its texts are in the
syntax of `shapes`. A size that is unknown there ("?"), and every size of IR without it, is the SSA value with which the buffer was
allocated: two sizes are then equal if they are sums and products of the same values.
Source: docs/reference/4 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from xla_emitters.algebra.size import Size
from xla_emitters.algebra.size_text import parse_size
from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dialects.mlir import arith, func, memref

SIZES = "disc.sizes"
UNKNOWN_SIZE = "?"


def sizes_attribute(sizes: Sequence[str | None]) -> ArrayAttr[StringAttr]:
    """The attribute for these sizes as text; None: unknown."""
    return ArrayAttr([StringAttr(UNKNOWN_SIZE if size is None else size) for size in sizes])


class BufferSizes:
    """The sizes of the buffers of a function. Sizes that are SSA values get names, valid for the lifetime of this object.

    from_allocations  an SSA value has the size that the attribute of a buffer allocated with it states
    """

    def __init__(self, *, from_allocations: bool = False) -> None:
        self._from_allocations = from_allocations
        self._unnamed = dict[tuple[SSAValue, int], Size]()
        self._found = dict[SSAValue, tuple[Size, ...]]()
        self._elements = dict[SSAValue, Size]()
        self._numbers = dict[SSAValue, Size]()

    def of(self, buffer: SSAValue) -> tuple[Size, ...]:
        """The size along each dimension."""
        if buffer not in self._found:
            said, shape = declared_sizes(buffer), tensor_of(buffer.type).get_shape()
            texts = [text.data for text in said] if said is not None else [UNKNOWN_SIZE] * len(shape)
            self._found[buffer] = tuple(
                Size.constant(static) if static >= 0 else self._unknown(buffer, dim, text)
                for dim, (static, text) in enumerate(zip(shape, texts, strict=True))
            )
        return self._found[buffer]

    def elements(self, buffer: SSAValue) -> Size:
        """The number of elements."""
        if buffer not in self._elements:
            self._elements[buffer] = product(self.of(buffer))
        return self._elements[buffer]

    def same_shape(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether two buffers are known to have one shape."""
        return self.of(a) == self.of(b)

    def same_count(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether two buffers are known to have equally many elements."""
        return self.elements(a) == self.elements(b)

    def text(self, buffer: SSAValue) -> str:
        """The shape as text, such as `b,s,32`; a size without a name is `?`."""
        found = self.of(buffer)
        return ",".join(str(size).replace(" ", "") if self.is_named(size) else UNKNOWN_SIZE for size in found)

    def is_named(self, size: Size) -> bool:
        """Whether it has only sizes that `disc.sizes` declares."""
        return not size.symbols & set[str]().union(*(unnamed.symbols for unnamed in self._unnamed.values()))

    def number(self, value: SSAValue) -> Size:
        """An `index` value as a size."""
        if value not in self._numbers:
            self._numbers[value] = self._number(value)
        return self._numbers[value]

    def _number(self, value: SSAValue) -> Size:
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as number):
                return Size.constant(number.value.data)
            case _ if self._from_allocations and (said := _declared_number(value)) is not None:
                return _parsed(said)
            case arith.AddiOp() as op:
                return self.number(op.lhs) + self.number(op.rhs)
            case arith.SubiOp() as op:
                return self.number(op.lhs) - self.number(op.rhs)
            case arith.MuliOp() as op:
                return self.number(op.lhs) * self.number(op.rhs)
            case arith.IndexCastOp() as op:
                return self.number(op.input)
            case memref.DimOp() as op:
                dim = self.number(op.index).value
                return self._symbol(value) if dim is None else self.of(op.source)[dim]
            case _:
                return self._symbol(value)

    def _unknown(self, buffer: SSAValue, dim: int, text: str) -> Size:
        """A size that the type leaves unknown."""
        if text != UNKNOWN_SIZE:
            return _parsed(text)
        size = allocated_size(buffer, dim)
        return self._symbol(buffer, dim) if size is None else self.number(size)

    def _symbol(self, value: SSAValue, dim: int = 0) -> Size:
        """A name for an `index` value, or for the size of a buffer that is not allocated here."""
        return self._unnamed.setdefault((value, dim), Size.symbol(f"__{len(self._unnamed)}"))


def allocated_size(buffer: SSAValue, dim: int) -> SSAValue | None:
    """The value with which a buffer was allocated here, for a size that its type leaves unknown."""
    op = buffer.owner
    if not isinstance(op, memref.AllocOp | memref.AllocaOp | lmhlo.IncRefOp):
        return None
    return op.dynamic_sizes[sum(size < 0 for size in tensor_of(buffer.type).get_shape()[:dim])]


def product(sizes: Sequence[Size]) -> Size:
    """All sizes multiplied; 1 for none."""
    return prod(sizes, start=Size.constant(1))


_parsed = lru_cache(parse_size)


def declared_sizes(buffer: SSAValue) -> ArrayAttr[StringAttr] | None:
    """The attribute `disc.sizes` of a buffer; None if there is none."""
    said: Attribute | None = None
    if isinstance(buffer, OpResult):
        said = buffer.op.attributes.get(SIZES)
        if isinstance(buffer.op, lmhlo.WhileOp | lmhlo.CaseOp):
            said = _entry(said, buffer.index)
    elif isinstance(buffer, BlockArgument):
        said = _of_argument(buffer.block.parent_op(), buffer.index)
    return said if isa(said, ArrayAttr[StringAttr]) and len(said) else None


def _declared_number(value: SSAValue) -> str | None:
    """The text of the size that an SSA value has according to a buffer allocated with it; None if there is none."""
    for use in value.uses:
        op = use.operation
        if not isinstance(op, memref.AllocOp | memref.AllocaOp | lmhlo.IncRefOp):
            continue
        shape, said = tensor_of(op.results[0].type).get_shape(), declared_sizes(op.results[0])
        unknown = [dim for dim, size in enumerate(shape) if size < 0]
        number = use.index - (1 if isinstance(op, lmhlo.IncRefOp) else 0)
        if said is not None and number < len(unknown) and (text := said.data[unknown[number]].data) != UNKNOWN_SIZE:
            return text
    return None


def _of_argument(holder: Operation | None, number: int) -> Attribute | None:
    if isinstance(holder, lmhlo.WhileOp):
        return _entry(holder.attributes.get(SIZES), number)
    if isinstance(holder, func.FuncOp) and holder.arg_attrs is not None:
        return holder.arg_attrs.data[number].data.get(SIZES)
    return None


def _entry(said: Attribute | None, number: int) -> Attribute | None:
    return said.data[number] if isa(said, ArrayAttr[Attribute]) and number < len(said) else None
