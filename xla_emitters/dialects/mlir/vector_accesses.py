"""The `vector` dialect's accesses to memory and tensors: xDSL's ops, with what they lack.

    %r = vector.load %m[%i] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>            no alignment in xDSL
    %t = vector.transfer_read %x[%i], %pad {in_bounds = [true], note} : tensor<64xf32>, vector<4xf32>      only some attributes

Source: MLIR 22, vector dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from xdsl.dialects import vector as upstream
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import ParsePropInAttrDict, eq, opt_prop_def
from xdsl.parser import Parser, UnresolvedOperand

from xla_emitters.dialects.completion import completed, completed_by
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.quick_op import QuickOp
from xla_emitters.support.late_dataclass import dataclass

INDEX = IndexType()


@completed
class LoadOp(upstream.LoadOp, QuickOp):
    """A vector of neighbours in memory."""

    alignment = opt_prop_def(IntegerAttr.constr(type=eq(i64)))


@completed
class StoreOp(upstream.StoreOp, QuickOp):
    """Writes a vector to neighbours in memory."""

    alignment = opt_prop_def(IntegerAttr.constr(type=eq(i64)))


# What no pass builds.
_MASKED: dict[str, Any] = {
    "alignment": opt_prop_def(IntegerAttr.constr(type=eq(i64))),
    "irdl_options": (ParsePropInAttrDict(),),
}
MaskedLoadOp = completed_by(upstream.MaskedLoadOp, **_MASKED)
MaskedStoreOp = completed_by(upstream.MaskedStoreOp, **_MASKED)


@dataclass
class _Transfer:
    """The parsed parts of a transfer: before the colon, and behind it."""

    start: int
    indices: Sequence[SSAValue]
    more: Sequence[UnresolvedOperand]
    attributes: dict[str, Attribute]
    types: Sequence[Attribute]

    @classmethod
    def parse_rest(cls, parser: Parser, start: int) -> Self:
        """`[%i], %pad, %mask {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>`"""
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_operand(INDEX))
        more: list[UnresolvedOperand] = []
        while parser.parse_optional_punctuation(","):
            more.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(start, indices, more, attributes, types)

    def shapes(self, parser: Parser, *, is_read: bool) -> tuple[MemRefType | TensorType, VectorType]:
        """The types of what is accessed and of the vector; a write has its vector first."""
        shaped, row = (self.types if is_read else reversed(self.types)) if len(self.types) == 2 else (None, None)
        if not isa(shaped, MemRefType | TensorType) or not isa(row, VectorType):
            parser.raise_error("expected a tensor or memref and a vector", self.start, parser.pos)
        return shaped, row

    def places(self, shaped: MemRefType | TensorType, row: VectorType) -> tuple[AffineMapAttr, ArrayAttr[BoolAttr]]:
        """The permutation map and `in_bounds`, as written or by default."""
        permutation = self.attributes.pop("permutation_map", None)
        if not isinstance(permutation, AffineMapAttr):
            permutation = AffineMapAttr(upstream.VectorTransferOperation.get_transfer_minor_identity_map(shaped, row))
        in_bounds = self.attributes.pop("in_bounds", None)
        if not isa(in_bounds, ArrayAttr[BoolAttr]):
            in_bounds = ArrayAttr([BoolAttr.from_bool(False)] * len(permutation.data.results))
        return permutation, in_bounds

    def resolve_more(
        self, parser: Parser, known: list[Attribute], row: VectorType, permutation: AffineMapAttr
    ) -> tuple[list[SSAValue], SSAValue | None]:
        """The values after the indices, and the mask, if there is one more than `known` types."""
        if len(self.more) == len(known):
            return list(parser.resolve_operands(self.more, known, self.start)), None
        mask_type = upstream.VectorTransferOperation.infer_transfer_op_mask_type(row, permutation.data)
        *values, mask = parser.resolve_operands(self.more, [*known, mask_type], self.start)
        return values, mask


class TransferReadOp(upstream.TransferReadOp, QuickOp):
    """Reads a vector; elements out of bounds are the padding."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        accessed = parser.parse_unresolved_operand()
        found = _Transfer.parse_rest(parser, start)
        shaped, row = found.shapes(parser, is_read=True)
        permutation, in_bounds = found.places(shaped, row)
        (padding,), mask = found.resolve_more(parser, [shaped.element_type], row, permutation)
        source = parser.resolve_operand(accessed, shaped)
        op = cls(source, found.indices, padding, row, in_bounds, permutation, mask)
        op.attributes |= found.attributes
        return op


class TransferWriteOp(upstream.TransferWriteOp, QuickOp):
    """Writes a vector; elements out of bounds are left out. A write to a tensor gives the new tensor."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        written = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        accessed = parser.parse_unresolved_operand()
        found = _Transfer.parse_rest(parser, start)
        shaped, row = found.shapes(parser, is_read=False)
        permutation, in_bounds = found.places(shaped, row)
        _, mask = found.resolve_more(parser, [], row, permutation)
        vector, target = parser.resolve_operands([written, accessed], [row, shaped], start)
        result = shaped if isinstance(shaped, TensorType) else None
        op = cls(vector, target, found.indices, in_bounds, mask, permutation, result)
        op.attributes |= found.attributes
        return op
