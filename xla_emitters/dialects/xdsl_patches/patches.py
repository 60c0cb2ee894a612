"""What xDSL's own op classes lack, put right in place, once.

    gpu.thread_id x {xla.range = [0 : index, 127 : index]}       MLIR's syntax, and Pure

An op without a memory effect counts as "anything may happen": it is never dropped, merged or hoisted. An op without speculatability
is never hoisted. xDSL leaves one or the other off many ops that compute and do nothing else. Patching keeps one class per op, so that
xDSL's passes and `isinstance` still match; ops that need new fields are declared anew in the dialect's own file instead.

Each row says what is missing. `CAUGHT_UP` lists the rows that xDSL no longer needs: a test holds it empty, so that rows go when they can.
Source: docs/reference/3 section 0, trap 5 (enumerated by experiment); MLIR's op definitions for what each op may claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache, partial
from typing import Any, get_origin

from xdsl import irdl
from xdsl.dialects import affine, arith, func, gpu, llvm, memref, scf, tensor, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    ComplexType,
    IndexType,
    IndexTypeConstr,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.dialects.dlti import DataLayoutEntryAttr, DLTIEntryMap
from xdsl.ir import Attribute, Operation, OpTraits, Region
from xdsl.irdl import AttrConstraint, IRDLOperation, OptPropertyDef
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import (
    AlwaysSpeculatable,
    ConditionallySpeculatable,
    ConstantLike,
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    MemoryReadEffect,
    MemoryWriteEffect,
    OpTrait,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRLexer
from xdsl.utils.type import get_element_type_or_self, have_compatible_shape

from xla_emitters.dialects.mlir import function_syntax
from xla_emitters.dialects.mlir.llvm.metadata import DistinctAttr
from xla_emitters.dialects.xdsl_patches import definitions as definitions
from xla_emitters.dialects.xdsl_patches.floats import FLOAT_METHODS

_READS = frozenset((EffectInstance(MemoryEffectKind.READ),))
_WRITES = frozenset((EffectInstance(MemoryEffectKind.WRITE),))


def _on_tensors(op: Operation) -> bool:
    assert isinstance(op, vector.TransferReadOp | vector.TransferWriteOp)
    return isinstance(op.source.type, TensorType)


class TransferEffect(MemoryEffect):
    """A transfer from or to a tensor only computes a value; one from or to memory reads or writes it."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        if _on_tensors(op):
            return frozenset()
        return _READS if isinstance(op, vector.TransferReadOp) else _WRITES


class SpeculatableOnTensors(ConditionallySpeculatable):
    """May be hoisted if it works on tensors, which do not change."""

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        return _on_tensors(op)


class SpeculatableWithPositiveStep(ConditionallySpeculatable):
    """A loop that surely ends, its step being a positive constant, may be hoisted if what is in it may."""

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        assert isinstance(op, scf.ForOp)
        step = ConstantLike.get_constant_value(op.step)
        return isinstance(step, IntegerAttr) and step.value.data > 0 and RecursivelySpeculatable.is_speculatable(op)


class SpeculatableInRank(ConditionallySpeculatable):
    """`tensor.dim` may be hoisted if its dimension is a constant that the tensor has."""

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        assert isinstance(op, tensor.DimOp)
        dim = ConstantLike.get_constant_value(op.index)
        return (
            isinstance(dim, IntegerAttr)
            and isa(op.source.type, TensorType)
            and 0 <= dim.value.data < op.source.type.get_num_dims()
        )


# ---- traits -----------------------------------------------------------------------------------------------------------------------------

_PURE: tuple[type[Operation], ...] = (
    *(arith.RemUIOp, arith.ExtSIOp),
    *(vector.BitcastOp, vector.CreateMaskOp, vector.ReductionOp),
    *(gpu.ThreadIdOp, gpu.BlockIdOp, gpu.BlockDimOp, gpu.GridDimOp, gpu.GlobalIdOp),
    *(gpu.LaneIdOp, gpu.NumSubgroupsOp, gpu.SubgroupIdOp, gpu.SubgroupSizeOp),
    *(affine.MinOp, llvm.FAbsOp),
)

# Effect-free in xDSL, but not speculatable. Integer division stays so: by zero it is undefined.
_SPECULATABLE: tuple[type[Operation], ...] = (
    *(tensor.EmptyOp, vector.ShuffleOp),
    *(memref.CastOp, memref.MemorySpaceCastOp, memref.CollapseShapeOp, memref.ExpandShapeOp, memref.RankOp),
    *(memref.GetGlobalOp, memref.ExtractAlignedPointerAsIndexOp),
    *(llvm.AddOp, llvm.SubOp, llvm.MulOp, llvm.AndOp, llvm.OrOp, llvm.XOrOp, llvm.ShlOp, llvm.LShrOp, llvm.AShrOp),
    *(llvm.ZExtOp, llvm.SExtOp, llvm.BitcastOp, llvm.SIToFPOp, llvm.FPExtOp, llvm.FPTruncOp),
    *(llvm.IntToPtrOp, llvm.PtrToIntOp, llvm.AddressOfOp, llvm.UndefOp),
    *(llvm.InsertElementOp, llvm.InsertValueOp, llvm.ExtractValueOp, llvm.ShuffleVectorOp),
)

# (op, trait to add, kind of trait that the op lacks)
TRAITS: tuple[tuple[type[Operation], OpTrait, type[OpTrait]], ...] = (
    *((op, Pure(), MemoryEffect) for op in _PURE),
    *((op, AlwaysSpeculatable(), ConditionallySpeculatable) for op in _SPECULATABLE),
    (vector.TransferReadOp, TransferEffect(), MemoryEffect),
    (vector.TransferReadOp, SpeculatableOnTensors(), ConditionallySpeculatable),
    (vector.TransferWriteOp, TransferEffect(), MemoryEffect),
    (vector.TransferWriteOp, SpeculatableOnTensors(), ConditionallySpeculatable),
    (vector.LoadOp, MemoryReadEffect(), MemoryEffect),
    (vector.MaskedLoadOp, MemoryReadEffect(), MemoryEffect),
    (vector.StoreOp, MemoryWriteEffect(), MemoryEffect),
    (vector.MaskedStoreOp, MemoryWriteEffect(), MemoryEffect),
    *((op, MemoryReadEffect(), MemoryEffect) for op in (affine.LoadOp, affine.VectorLoadOp)),
    *((op, MemoryWriteEffect(), MemoryEffect) for op in (affine.StoreOp, affine.VectorStoreOp)),
    *((op, RecursiveMemoryEffect(), MemoryEffect) for op in (affine.ForOp, affine.ParallelOp, scf.ExecuteRegionOp)),
    (scf.ForOp, SpeculatableWithPositiveStep(), ConditionallySpeculatable),
    (tensor.DimOp, SpeculatableInRank(), ConditionallySpeculatable),
)


# ---- syntax -----------------------------------------------------------------------------------------------------------------------------


def parse_dimension(op_type: type[Operation], parser: Parser) -> Operation:
    """` x upper_bound 64`, what follows `gpu.thread_id`."""
    dimension = gpu.DimensionAttr(parser.parse_str_enum(gpu.DimensionEnum))
    properties = {"dimension": dimension, **_parse_upper_bound(parser)}
    attributes = parser.parse_optional_attr_dict()
    return op_type.create(properties=properties, attributes=attributes, result_types=[IndexType()])


def print_dimension(op: Operation, printer: Printer) -> None:
    """The inverse of `parse_dimension`."""
    dimension = op.properties["dimension"]
    assert isinstance(dimension, gpu.DimensionAttr)
    printer.print_string(f" {dimension.data}")
    _print_bare(op, printer)


def _parse_upper_bound(parser: Parser) -> dict[str, Attribute]:
    """`upper_bound 64`, if it is there: the least number that the value is always below."""
    if parser.parse_optional_keyword("upper_bound") is None:
        return {}
    return {"upper_bound": IntegerAttr.from_index_int_value(parser.parse_integer(allow_boolean=False))}


def _parse_bare(op_type: type[Operation], parser: Parser) -> Operation:
    results = [IndexType()] if op_type is not gpu.BarrierOp else []
    properties = _parse_upper_bound(parser)
    return op_type.create(properties=properties, attributes=parser.parse_optional_attr_dict(), result_types=results)


def _print_bare(op: Operation, printer: Printer) -> None:
    if isinstance(bound := op.properties.get("upper_bound"), IntegerAttr):
        printer.print_string(f" upper_bound {bound.value.data}")
    printer.print_op_attributes(op.attributes)


def _parse_typed(op_type: type[Operation], parser: Parser) -> Operation:
    properties = _parse_upper_bound(parser)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return op_type.create(properties=properties, attributes=attributes, result_types=[parser.parse_type()])


def _print_typed(op: Operation, printer: Printer) -> None:
    _print_bare(op, printer)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)


_Parse = Callable[[type[Operation], Parser], Operation]
_Print = Callable[[Operation, Printer], None]

# (op, parse, print): MLIR's custom form, where xDSL has the generic one alone
SYNTAX: tuple[tuple[type[Operation], _Parse, _Print], ...] = (
    *(
        (op, parse_dimension, print_dimension)
        for op in (gpu.ThreadIdOp, gpu.BlockIdOp, gpu.BlockDimOp, gpu.GridDimOp, gpu.GlobalIdOp)
    ),
    *((op, _parse_typed, _print_typed) for op in (gpu.NumSubgroupsOp, gpu.SubgroupIdOp, gpu.SubgroupSizeOp)),
    *((op, _parse_bare, _print_bare) for op in (gpu.BarrierOp, gpu.LaneIdOp)),
)


# (op, optional property, what it takes): read by `op.properties.get`
PROPERTIES: tuple[tuple[type[IRDLOperation], str, AttrConstraint], ...] = tuple(
    (op, "upper_bound", IntegerAttr.constr(type=IndexTypeConstr))
    for op in (
        *(gpu.ThreadIdOp, gpu.BlockIdOp, gpu.BlockDimOp, gpu.GridDimOp, gpu.GlobalIdOp),
        *(gpu.LaneIdOp, gpu.NumSubgroupsOp, gpu.SubgroupIdOp, gpu.SubgroupSizeOp),
    )
)


def _print_linkage(self: llvm.LinkageAttr, printer: Printer) -> None:
    """`#llvm.linkage<internal>`, as MLIR prints it; xDSL puts the word in quotes."""
    printer.print_string(f"<{self.linkage.data}>")


CALLING_CONVENTIONS = ("ptx_kernelcc", "ptx_devicecc", "spir_kernelcc", "spir_funccc", "cc_10", "cc_11")
"""MLIR's words for how a function is called that xDSL does not know, apart from those of other processors."""


# ---- verifiers --------------------------------------------------------------------------------------------------------------------------


def _counting_indices(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and then: one index for each dimension of the tensor, which it does not count."""

    def verify_(self: tensor.ExtractOp | tensor.InsertOp) -> None:
        own(self)
        accessed = self.tensor if isinstance(self, tensor.ExtractOp) else self.dest
        if isa(accessed.type, TensorType) and len(self.indices) != accessed.type.get_num_dims():
            raise VerifyException(f"{len(self.indices)} indices into {accessed.type}")

    return verify_


def _handing_on(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and then: what each region hands on fits who gets it, the op's results or, for a while, the other region."""

    def verify_(self: Operation) -> None:
        own(self)
        for number, region in enumerate(self.regions):
            is_body = isinstance(self, scf.WhileOp) and number == 1
            wanted = [value.type for value in (self.operands if is_body else self.results)]
            if not region.blocks and wanted:
                raise VerifyException(f"region {number} is empty, but must yield ({_shown(wanted)})")
            for block in region.blocks:
                # A condition's first operand says whether to go on.
                last = block.last_op
                if not isinstance(last, scf.YieldOp | scf.ConditionOp):
                    continue
                handed = last.operands[1:] if isinstance(last, scf.ConditionOp) else last.operands
                if (types := [value.type for value in handed]) != wanted:
                    raise VerifyException(f"region {number} yields ({_shown(types)}), not ({_shown(wanted)})")

    return verify_


def _shown(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


def _kind_and_bits(type: Attribute) -> tuple[str, int]:
    element = get_element_type_or_self(type)
    if isinstance(element, AnyFloat):
        return "float", element.bitwidth
    if isinstance(element, IntegerType):
        return "integer", element.bitwidth
    return "other", 0


# llvm's conversions that xDSL does not check: (op, kind of the operand, kind of the result, direction), where 1 is to a wider type, -1 to a
# narrower one, 0 to either
CONVERSIONS: tuple[tuple[type[Operation], str, str, int], ...] = (
    (llvm.FPExtOp, "float", "float", 1),
    (llvm.FPTruncOp, "float", "float", -1),
    (llvm.SIToFPOp, "integer", "float", 0),
)


def _converting(own: Callable[[Any], None], source: str, target: str, direction: int) -> Callable[[Any], None]:
    """xDSL's verifier, and then what it does not look at: the kinds of both types, their shapes, and which is wider."""

    def verify_(self: Operation) -> None:
        own(self)
        one, other = self.operands[0].type, self.results[0].type
        (kind, bits), (other_kind, other_bits) = _kind_and_bits(one), _kind_and_bits(other)
        if (kind, other_kind) != (source, target) or not have_compatible_shape(one, other):
            raise VerifyException(f"converts {source}s to {target}s of the same shape, not {one} to {other}")
        if (other_bits - bits) * direction < 0 or (direction and other_bits == bits):
            raise VerifyException(f"{other} is not {'wider' if direction > 0 else 'narrower'} than {one}")

    return verify_


# ---- numbers ----------------------------------------------------------------------------------------------------------------------------

# Private to xDSL's parser, which has no hook here: the class of one number in `dense<[...]>`, before the type is known.
_Number: Any = getattr(AttrParser, "_TensorLiteralElement")  # noqa: B009
_to_type_without_bits: Callable[[Any, AttrParser, Attribute], Any] = _Number.to_type


def _to_type(self: Any, parser: AttrParser, type: Attribute) -> Any:
    """The number as one of `type`. A hexadecimal one stands for a float's bits, as in `dense<0xFF800000> : vector<4xf32>` (-inf).

    xDSL reads 4286578688.0 there, though it writes infinities and NaN so itself.
    """
    words = self.span.text.strip("()").split(",")
    if not any(word.strip().lower().startswith("0x") for word in words):
        return _to_type_without_bits(self, parser, type)
    if isinstance(type, AnyFloat):
        return _float_of(words[0].strip(), type)
    if isa(type, ComplexType) and isinstance(part := type.element_type, AnyFloat):
        return tuple(_float_of(word.strip(), part) for word in words)
    return _to_type_without_bits(self, parser, type)


def _float_of(word: str, type: AnyFloat) -> float:
    if not word.lower().startswith("0x"):
        return float(word)
    return type.unpack(int(word, 16).to_bytes(type.compile_time_size, "little"), 1)[0]


def _parse_optional_complex(self: Any) -> tuple[tuple[float, float], Span[str]] | None:
    """`(real, imaginary)`, if it comes next; one part may be hexadecimal and the other not, which xDSL refuses."""
    start: int = self.pos
    if self.parse_optional_punctuation("(") is None:
        return None
    real, _ = self._parse_bool_int_or_float()
    self.parse_punctuation(",")
    imaginary, last = self._parse_bool_int_or_float()
    self.parse_punctuation(")")
    return (real, imaginary), Span(start, last.end, self.lexer.input)


_parse_builtin_attribute: Callable[[AttrParser], Attribute | None] = getattr(  # noqa: B009
    AttrParser, "_parse_optional_builtin_parametrized_attr"
)


def _parse_optional_builtin_attribute(self: AttrParser) -> Attribute | None:
    """`distinct[0]<>`, or one that xDSL knows."""
    if self.parse_optional_keyword("distinct") is not None:
        return DistinctAttr.parse_body(self)
    return _parse_builtin_attribute(self)


def _parse_if(parser: Parser) -> scf.IfOp:
    """xDSL's, but the type of one result needs no parentheses, as in MLIR and in xDSL's own scf.for."""
    condition = parser.parse_operand(IntegerType(1))
    types: Sequence[Attribute] = ()
    if parser.parse_optional_punctuation("->"):
        types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type) or ()
        types = types or (parser.parse_type(),)
    then = scf.IfOp.parse_region_with_yield(parser)
    has_else = parser.parse_optional_keyword("else") is not None
    otherwise = scf.IfOp.parse_region_with_yield(parser) if has_else else Region()
    return scf.IfOp(condition, types, then, otherwise, parser.parse_optional_attr_dict())


def _parse_entries(parser: AttrParser) -> tuple[ArrayAttr[DataLayoutEntryAttr]]:
    """`<index = 32 : i32, #dlti.dl_entry<i64, 8 : i32>>`: entries in either spelling, as MLIR reads them. xDSL reads the first one."""

    def parse_entry() -> DataLayoutEntryAttr:
        first = parser.parse_attribute()
        if isinstance(first, DataLayoutEntryAttr):
            return first
        parser.parse_punctuation("=")
        return DataLayoutEntryAttr.new((first, parser.parse_attribute()))

    return (ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry)),)


# A string literal, as xDSL's lexer has it but for the possessive `++` and `*+`: without them the time to see that the closing quote is
# missing doubles with every character.
_STRING_LITERAL = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

_CONSTRAINT_OF = lru_cache(maxsize=None)(irdl.irdl_to_attr_constraint)


def _constraint_of(hint: Any, *, allow_type_var: bool = False) -> AttrConstraint[Any]:
    """xDSL's, remembering the constraint of each generic class: `isa(type, VectorType[AnyFloat])` makes it anew whenever it is asked."""
    if get_origin(hint) is None or allow_type_var:
        return _CONSTRAINT_OF.__wrapped__(hint, allow_type_var=allow_type_var)
    return _CONSTRAINT_OF(hint)


# (class or module, method or constant, ours)
METHODS: tuple[tuple[Any, str, Any], ...] = (
    (func, "parse_func_op_like", function_syntax.parse_func_op_like),
    (func, "print_func_op_like", function_syntax.print_func_op_like),
    (llvm.LinkageAttr, "print_parameters", _print_linkage),
    (_Number, "to_type", _to_type),
    (AttrParser, "_parse_optional_complex", _parse_optional_complex),
    (MLIRLexer, "_unescaped_characters_regex", _STRING_LITERAL),
    (AttrParser, "_parse_optional_builtin_parametrized_attr", _parse_optional_builtin_attribute),
    (irdl, "irdl_to_attr_constraint", _constraint_of),
    (scf.IfOp, "parse", _parse_if),
    (DLTIEntryMap, "parse_parameters", _parse_entries),
)
XDSLS_OWN: dict[str, Any] = {name: getattr(holder, name) for holder, name, _ in METHODS}
"""The methods as xDSL has them, so that a test can see whether they have been put right there."""

CAUGHT_UP: list[str] = []
"""Rows that xDSL has no need of any more; see the file's head."""


def _has_custom_form(op: type[Operation]) -> bool:
    return op.print is not Operation.print


def _apply() -> None:
    lacking = [(op, kind) for op, _, kind in TRAITS]
    for op, kind in lacking:
        if any(isinstance(trait, kind) for trait in op.traits):
            CAUGHT_UP.append(f"{op.name} has {kind.__name__}")
    for op, trait, _ in TRAITS:
        # Ops of one family share one OpTraits object: `add_trait` on shifts would make divisions speculatable.
        op.traits = OpTraits(partial(tuple, (*op.traits, trait)))
    CAUGHT_UP.extend(word for word in CALLING_CONVENTIONS if word in llvm.LLVM_CALLING_CONVS)
    llvm.LLVM_CALLING_CONVS.update(CALLING_CONVENTIONS)
    for op, name, constraint in PROPERTIES:
        properties = op.get_irdl_definition().properties
        if name in properties:
            CAUGHT_UP.append(f"{op.name} has {name}")
        properties[name] = OptPropertyDef(constraint)
    for op, parse, print_op in SYNTAX:
        if _has_custom_form(op):
            CAUGHT_UP.append(f"{op.name} has a custom form")
        # Set by name: to a type checker a class's methods are fixed.
        setattr(op, "parse", classmethod(parse))  # noqa: B010
        setattr(op, "print", print_op)  # noqa: B010
    for op in (tensor.ExtractOp, tensor.InsertOp):
        setattr(op, "verify_", _counting_indices(op.verify_))  # noqa: B010
    for op in (scf.IfOp, scf.ExecuteRegionOp, scf.WhileOp):
        setattr(op, "verify_", _handing_on(op.verify_))  # noqa: B010
    for op, source, target, direction in CONVERSIONS:
        setattr(op, "verify_", _converting(getattr(op, "verify_"), source, target, direction))  # noqa: B009, B010
    for holder, name, ours in (*METHODS, *FLOAT_METHODS):
        setattr(holder, name, ours)


_apply()
