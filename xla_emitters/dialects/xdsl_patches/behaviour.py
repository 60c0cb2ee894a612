"""Corrected behaviour of xDSL's ops and parser: traits, verifiers, and the text of functions.

An op without a memory effect counts as "anything may happen": it is never dropped, merged or hoisted. An op without speculatability
is never hoisted. xDSL leaves one or the other off many ops that compute and do nothing else. A `verify_` of ours calls xDSL's first.
Source: docs/reference/3 section 0, trap 5 (enumerated by experiment); MLIR's op definitions for what each op may claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from xdsl.dialects import affine, arith, func, gpu, llvm, memref, scf, tensor, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
)
from xdsl.dialects.dlti import DataLayoutEntryAttr, DLTIEntryMap
from xdsl.ir import Attribute, Operation
from xdsl.parser import AttrParser
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
from xdsl.utils.type import get_element_type_or_self, have_compatible_shape

from xla_emitters.dialects.xdsl_patches import function_syntax
from xla_emitters.dialects.xdsl_patches.patch import Member, Trait
from xla_emitters.dialects.xdsl_patches.syntax import ATOMIC_KINDS

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
    """A loop that surely ends (its step is a positive constant) may be hoisted if its body may."""

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

_NO_EFFECT_KNOWN = "has no memory effect: never dropped, merged or hoisted"
_NEVER_HOISTED = "has no speculatability: never hoisted"


def _effect(trait: OpTrait, *ops: type[Operation]) -> tuple[Trait, ...]:
    return tuple(Trait(op, trait, MemoryEffect, _NO_EFFECT_KNOWN) for op in ops)


def _speculatable(trait: OpTrait, *ops: type[Operation]) -> tuple[Trait, ...]:
    return tuple(Trait(op, trait, ConditionallySpeculatable, _NEVER_HOISTED) for op in ops)


TRAITS: tuple[Trait, ...] = (
    *_effect(Pure(), *_PURE),
    *_speculatable(AlwaysSpeculatable(), *_SPECULATABLE),
    *_effect(TransferEffect(), vector.TransferReadOp, vector.TransferWriteOp),
    *_speculatable(SpeculatableOnTensors(), vector.TransferReadOp, vector.TransferWriteOp),
    *_effect(MemoryReadEffect(), vector.LoadOp, vector.MaskedLoadOp, affine.LoadOp, affine.VectorLoadOp),
    *_effect(MemoryWriteEffect(), vector.StoreOp, vector.MaskedStoreOp, affine.StoreOp, affine.VectorStoreOp),
    *_effect(RecursiveMemoryEffect(), affine.ForOp, affine.ParallelOp, scf.ExecuteRegionOp),
    *_speculatable(SpeculatableWithPositiveStep(), scf.ForOp),
    *_speculatable(SpeculatableInRank(), tensor.DimOp),
)


# ---- verifiers --------------------------------------------------------------------------------------------------------------------------


def _counting_indices(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and a check that there is one index for each dimension of the tensor."""

    def verify_(self: tensor.ExtractOp | tensor.InsertOp) -> None:
        own(self)
        accessed = self.tensor if isinstance(self, tensor.ExtractOp) else self.dest
        if isa(accessed.type, TensorType) and len(self.indices) != accessed.type.get_num_dims():
            raise VerifyException(f"{len(self.indices)} indices into {accessed.type}")

    return verify_


def _handing_on(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and a check that each region's yielded values fit their receiver: the op's results or `while`'s other region."""

    def verify_(self: Operation) -> None:
        own(self)
        for number, region in enumerate(self.regions):
            is_body = isinstance(self, scf.WhileOp) and number == 1
            wanted = [value.type for value in (self.operands if is_body else self.results)]
            if not region.blocks and wanted:
                raise VerifyException(f"region {number} is empty, but must yield ({_shown(wanted)})")
            for block in region.blocks:
                # A condition's first operand is the condition itself.
                last = block.last_op
                if not isinstance(last, scf.YieldOp | scf.ConditionOp):
                    continue
                handed = last.operands[1:] if isinstance(last, scf.ConditionOp) else last.operands
                if (types := [value.type for value in handed]) != wanted:
                    raise VerifyException(f"region {number} yields ({_shown(types)}), not ({_shown(wanted)})")

    return verify_


def _shown(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


def _kind_and_bits(value_type: Attribute) -> tuple[str, int]:
    element = get_element_type_or_self(value_type)
    if isinstance(element, AnyFloat):
        return "float", element.bitwidth
    if isinstance(element, IntegerType):
        return "integer", element.bitwidth
    return "other", 0


def _converting(own: Callable[[Any], None], source: str, target: str, direction: int) -> Callable[[Any], None]:
    """xDSL's verifier, and checks of both types' kinds and shapes, and of which is wider."""

    def verify_(self: Operation) -> None:
        own(self)
        one, other = self.operands[0].type, self.results[0].type
        (kind, bits), (other_kind, other_bits) = _kind_and_bits(one), _kind_and_bits(other)
        if (kind, other_kind) != (source, target) or not have_compatible_shape(one, other):
            raise VerifyException(f"converts {source}s to {target}s of the same shape, not {one} to {other}")
        if (other_bits - bits) * direction < 0 or (direction and other_bits == bits):
            raise VerifyException(f"{other} is not {'wider' if direction > 0 else 'narrower'} than {one}")

    return verify_


def _comparing(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and checks that both sides have one type, that the result has its shape, and that there is such a predicate."""

    def verify_(self: arith.CmpiOp | arith.CmpfOp) -> None:
        own(self)
        if self.lhs.type != self.rhs.type or not have_compatible_shape(self.lhs.type, self.result.type):
            raise VerifyException(f"compares {self.lhs.type} with {self.rhs.type} to {self.result.type}")
        words = arith.CMPI_COMPARISON_OPERATIONS if isinstance(self, arith.CmpiOp) else arith.CMPF_COMPARISON_OPERATIONS
        _verify_number("predicate", self.predicate, words)

    return verify_


def _updating(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and a check that there is such a kind of update."""

    def verify_(self: memref.AtomicRMWOp) -> None:
        own(self)
        _verify_number("kind", self.kind, ATOMIC_KINDS)

    return verify_


def _verify_number(what: str, attribute: IntegerAttr, words: Sequence[str]) -> None:
    if not 0 <= (number := attribute.value.data) < len(words):
        raise VerifyException(f"there is no {what} {number}: they are 0 ({words[0]}) to {len(words) - 1} ({words[-1]})")


def _stepping(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and a check that a constant step is positive."""

    def verify_(self: scf.ParallelOp) -> None:
        own(self)
        for value in self.step:
            step = ConstantLike.get_constant_value(value)
            if isinstance(step, IntegerAttr) and step.value.data < 1:
                raise VerifyException(f"its step is {step.value.data}, but a step is at least 1")

    return verify_


def _measuring(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and a check that a buffer has the dimension. For MLIR that is undefined behaviour; passes here ask the type."""

    def verify_(self: memref.DimOp) -> None:
        own(self)
        number, buffer = ConstantLike.get_constant_value(self.index), self.source.type
        if isinstance(number, IntegerAttr) and isa(buffer, MemRefType):
            if not 0 <= number.value.data < buffer.get_num_dims():
                raise VerifyException(f"{buffer} has no dimension {number.value.data}")

    return verify_


def _describing_arguments(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """xDSL's verifier, and checks of the visibility, and that there is a dictionary for each argument and each result, or none."""

    def verify_(self: func.FuncOp) -> None:
        own(self)
        if (word := self.sym_visibility) is not None and word.data not in ("public", "private", "nested"):
            raise VerifyException(f"its visibility is '{word.data}', but must be public, private or nested")
        types = self.function_type
        for what, found, wanted in (("arg", self.arg_attrs, types.inputs), ("res", self.res_attrs, types.outputs)):
            if found is not None and len(found) != len(wanted):
                raise VerifyException(f"{what}_attrs has {len(found)} dictionaries for {len(wanted)} values")

    return verify_


def _verifier(op: type[Operation], why: str, wrapper: Callable[[Any], Any]) -> Member:
    return Member(op, "verify_", why, wrapper)


def _conversion(op: type[Operation], source: str, target: str, direction: int) -> Member:
    """`direction`: 1 to a wider type, -1 to a narrower one, 0 to either."""
    return _verifier(
        op,
        "checks neither kinds, shapes nor widths",
        partial(_converting, source=source, target=target, direction=direction),
    )


VERIFIERS: tuple[Member, ...] = (
    *(_verifier(op, "counts no indices", _counting_indices) for op in (tensor.ExtractOp, tensor.InsertOp)),
    *(
        _verifier(op, "regions may yield other values than the op needs", _handing_on)
        for op in (scf.IfOp, scf.ExecuteRegionOp, scf.WhileOp)
    ),
    *(_verifier(op, "compares values of two types, by any number", _comparing) for op in (arith.CmpiOp, arith.CmpfOp)),
    _verifier(memref.AtomicRMWOp, "takes any number for its kind", _updating),
    _verifier(memref.DimOp, "asks for any dimension", _measuring),
    _verifier(scf.ParallelOp, "takes a step of 0", _stepping),
    _verifier(func.FuncOp, "counts no dictionaries, and takes any visibility", _describing_arguments),
    _conversion(llvm.FPExtOp, "float", "float", 1),
    _conversion(llvm.FPTruncOp, "float", "float", -1),
    _conversion(llvm.SIToFPOp, "integer", "float", 0),
)

# ---- text ----------------------------------------------------------------------------------------------------------------------------

CALLING_CONVENTIONS = frozenset(("ptx_kernelcc", "ptx_devicecc", "spir_kernelcc", "spir_funccc", "cc_10", "cc_11"))
"""MLIR's words for calling conventions that xDSL does not know, except those of other processors."""


def _print_linkage(self: llvm.LinkageAttr, printer: Printer) -> None:
    """`#llvm.linkage<internal>`, as MLIR prints it; xDSL puts the word in quotes."""
    printer.print_string(f"<{self.linkage.data}>")


def _parse_entries(parser: AttrParser) -> tuple[ArrayAttr[DataLayoutEntryAttr]]:
    """`<index = 32 : i32, #dlti.dl_entry<i64, 8 : i32>>`: entries in either spelling, as MLIR reads them."""

    def parse_entry() -> DataLayoutEntryAttr:
        first = parser.parse_attribute()
        if isinstance(first, DataLayoutEntryAttr):
            return first
        parser.parse_punctuation("=")
        return DataLayoutEntryAttr.new((first, parser.parse_attribute()))

    return (ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry)),)


CONSTANTS: tuple[Member, ...] = (
    Member(llvm, "LLVM_CALLING_CONVS", "lacks MLIR's words for kernels", lambda own: own | CALLING_CONVENTIONS),
)

FUNCTIONS: tuple[Member, ...] = (
    Member(
        func,
        "parse_func_op_like",
        "drops the dictionaries of arguments without names",
        lambda _: function_syntax.parse_func_op_like,
    ),
    Member(
        func,
        "print_func_op_like",
        "drops the dictionaries of a declaration",
        lambda _: function_syntax.print_func_op_like,
    ),
    Member(llvm.LinkageAttr, "print_parameters", "writes the word in quotes", lambda _: _print_linkage),
    Member(DLTIEntryMap, "parse_parameters", "reads one of MLIR's two spellings of an entry", lambda _: _parse_entries),
)
