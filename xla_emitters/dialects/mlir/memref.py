"""The `memref` dialect: xDSL's, with completed ops in place of some of its own.

    %r = memref.load %m[%i] {alignment = 4 : i64} : memref<64xf32>
    %o = memref.atomic_rmw addf %x, %m[%i] : (f32, memref<64xf32>) -> f32
    memref.global "private" constant @g : memref<4xf32> = dense<1.0> {alignment = 64 : i64}

Completed, with the reason:
  load, store     no alignment
  atomic_rmw      the number of the kind in place of its word, any number
  global          needs a visibility and a value
  dim             any dimension
  rank, cast, memory_space_cast, copy, extract_aligned_pointer_as_index    the generic form alone
Source: MLIR 22, memref dialect.
"""

from __future__ import annotations

from typing import Self, cast

from xdsl.dialects import memref as upstream
from xdsl.dialects.builtin import (
    AnyDenseElement,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.memref import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.ir import Attribute
from xdsl.irdl import base, eq, opt_prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.completion import completed, completed_by, dialect_of
from xla_emitters.dialects.float_bits import print_dense
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.arith import verify_number
from xla_emitters.dialects.mlir.directives import numbered_word
from xla_emitters.dialects.quick_op import QuickOp


@completed
class LoadOp(upstream.LoadOp, QuickOp):
    """One element of a buffer; `alignment` is in bytes."""

    alignment = opt_prop_def(IntegerAttr.constr(type=eq(i64)))


@completed
class StoreOp(upstream.StoreOp, QuickOp):
    """Writes one element of a buffer; `alignment` is in bytes."""

    alignment = opt_prop_def(IntegerAttr.constr(type=eq(i64)))


ATOMIC_KINDS = (
    *("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu"),
    *("minimumf", "minnumf", "mins", "minu", "mulf", "muli", "ori", "xori"),
)
"""Word of the kind of an atomic update, by number."""


@completed
class AtomicRMWOp(upstream.AtomicRMWOp, QuickOp):
    """Updates one element of a buffer at once; the result is what it was."""

    assembly_format = (
        "custom<AtomicKind>($kind) $value `,` $memref `[` $indices `]` attr-dict"
        " `:` `(` type($value) `,` type($memref) `)` `->` type($result)"
    )
    custom_directives = (numbered_word("AtomicKind", dict(enumerate(ATOMIC_KINDS)), "expected one of {words}"),)

    def verify_(self) -> None:
        verify_number("kind", self.kind, ATOMIC_KINDS)


class DimOp(upstream.DimOp, QuickOp):
    """The extent of a dimension that the buffer has. For MLIR another one is undefined behaviour; passes here ask the type."""

    def verify_(self) -> None:
        super().verify_()
        number, buffer = ConstantLike.get_constant_value(self.index), self.source.type
        if isinstance(number, IntegerAttr) and isa(buffer, MemRefType):
            if not 0 <= number.value.data < buffer.get_num_dims():
                raise VerifyException(f"{buffer} has no dimension {number.value.data}")


# What no pass builds.
RankOp = completed_by(upstream.RankOp, assembly_format="$source attr-dict `:` type($source)")
CastOp = completed_by(upstream.CastOp, assembly_format="$source attr-dict `:` type($source) `to` type($dest)")
MemorySpaceCastOp = completed_by(
    upstream.MemorySpaceCastOp, assembly_format="$source attr-dict `:` type($source) `to` type($dest)"
)
CopyOp = completed_by(
    upstream.CopyOp,
    assembly_format="$source `,` $destination attr-dict `:` type($source) `to` type($destination)",
)
ExtractAlignedPointerAsIndexOp = completed_by(
    upstream.ExtractAlignedPointerAsIndexOp,
    assembly_format="$source attr-dict `:` type($source) `->` type($aligned_pointer)",
)


@completed
class GlobalOp(upstream.GlobalOp, QuickOp):
    """A buffer of the module; without a value it is declared here and defined elsewhere."""

    sym_visibility = opt_prop_def(StringAttr)
    initial_value = opt_prop_def(base(UnitAttr) | base(DenseIntOrFPElementsAttr))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {}
        if (visibility := parser.parse_optional_str_literal()) is not None:
            properties["sym_visibility"] = StringAttr(visibility)
        if parser.parse_optional_keyword("constant"):
            properties["constant"] = UnitAttr()
        properties["sym_name"] = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        start = parser.pos
        properties["type"] = memref_type = parser.parse_type()
        if not isa(memref_type, MemRefType):
            parser.raise_error("expected a memref type", start, parser.pos)
        if parser.parse_optional_punctuation("="):
            if parser.parse_optional_keyword("uninitialized"):
                properties["initial_value"] = UnitAttr()
            else:
                parser.parse_keyword("dense")
                held = cast("TensorType[AnyDenseElement]", TensorType(memref_type.element_type, memref_type.shape))
                properties["initial_value"] = parser.parse_dense_int_or_fp_elements_attr(held)
        attributes = parser.parse_optional_attr_dict()
        if (alignment := attributes.pop("alignment", None)) is not None:
            properties["alignment"] = alignment
        return cls.create(properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(" ")
            printer.print_attribute(self.sym_visibility)
        printer.print_string(" constant " if self.constant is not None else " ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        if isinstance(self.initial_value, UnitAttr):
            printer.print_string(" = uninitialized")
        elif self.initial_value is not None:
            printer.print_string(" = ")
            print_dense(printer, self.initial_value)
        printer.print_op_attributes(({"alignment": self.alignment} if self.alignment else {}) | self.attributes)


MEMREF = dialect_of(upstream.MemRef, names=globals())
