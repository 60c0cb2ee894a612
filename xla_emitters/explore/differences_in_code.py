"""How our code is written otherwise than XLA's, on purpose: rewrites that take back what docs/decisions says of vectors and addresses.

    vector.insert %a, %v[%c0]; vector.insert %b, ...[%c1]   ->   vector.from_elements %a, %b
    llvm.getelementptr %p[0, %i] of an array of f32         ->   llvm.getelementptr %p[%i] of f32

Each rewrite is right on any module, whoever made it. It is made on both sides; what was different and then is equal was this difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.arith import ConstantOp, IndexCastOp, TruncIOp
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.llvm import InsertElementOp, LLVMArrayType
from xdsl.dialects.vector import BroadcastOp, ExtractOp, InsertOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.mlir.llvm import GlobalOp, PoisonOp
from xla_emitters.dialects.mlir.llvm.memory import GEPOp, LoadOp, StoreOp
from xla_emitters.dialects.mlir.nvvm import GriddepcontrolOp
from xla_emitters.dialects.mlir.vector import FromElementsOp
from xla_emitters.dialects.xla_gpu.tensors import PdlWaitOp
from xla_emitters.rewrite.folders import constant_integer, constant_value


@dataclass(frozen=True)
class Rewrite:
    """What is taken back: a file of docs/decisions, words for it, and the function that says whether it changed the module."""

    decision: str
    what: str
    apply: Callable[[ModuleOp], bool]


def _without_waits(module: ModuleOp) -> bool:
    waits = [op for op in module.walk() if isinstance(op, PdlWaitOp | GriddepcontrolOp)]
    for op in waits:
        Rewriter.erase_op(op)
    return bool(waits)


def _addresses_of_elements(module: ModuleOp) -> bool:
    """`base[0, i]` of an array -> `base[i]` of its elements."""
    changed = False
    for op in module.walk():
        if isinstance(op, GEPOp) and isinstance(kind := op.properties["elem_type"], LLVMArrayType):
            first, *others = op.rawConstantIndices.get_values()
            if first == 0 and others:
                op.properties["elem_type"] = kind.type
                op.properties["rawConstantIndices"] = DenseArrayBase.from_list(i32, others)
                changed = True
    return changed


def _addresses_of_first_elements(module: ModuleOp) -> bool:
    """`base[0]` -> `base`."""
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, GEPOp)):
        if not op.ssa_indices and not any(op.rawConstantIndices.get_values()):
            Rewriter.replace_op(op, [], [op.ptr])
            changed = True
    return changed


def _narrow_indices(module: ModuleOp) -> bool:
    """`arith.trunci (arith.index_castui %i : i64) : i32` -> `arith.index_castui %i : i32`, and signed likewise: the same low bits."""
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, TruncIOp)):
        if isinstance(wide := op.input.owner, IndexCastOp | IndexCastUIOp) and isa(wide.input.type, IndexType):
            Rewriter.replace_op(op, type(wide)(wide.input, op.result.type))
            changed = True
    return changed


def _broadcasts_of_constants(module: ModuleOp) -> bool:
    """`vector.broadcast` of a constant -> a constant vector."""
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, BroadcastOp)):
        value = constant_value(op.source)
        if isinstance(value, IntegerAttr | FloatAttr):
            wanted = cast("VectorType[AnyFloat]", op.vector.type)
            elements = DenseIntOrFPElementsAttr.from_list(wanted, [cast("float", value.value.data)])
            Rewriter.replace_op(op, ConstantOp(elements))
            changed = True
    return changed


def _natural_alignment(module: ModuleOp) -> bool:
    stated = [op for op in module.walk() if isinstance(op, LoadOp | StoreOp) and "alignment" in op.properties]
    for op in stated:
        del op.properties["alignment"]
    return bool(stated)


def _static_positions(module: ModuleOp) -> bool:
    """`vector.extract %v[%c1]` of a constant -> `vector.extract %v[1]`, and `vector.insert` likewise."""
    changed = False
    for op in tuple(module.walk()):
        if not isinstance(op, ExtractOp | InsertOp) or len(op.dynamic_position) != 1:
            continue
        if (position := constant_integer(op.dynamic_position[0])) is not None:
            new = op.clone()
            new.operands = [*op.operands[:-1]]
            new.properties["static_position"] = DenseArrayBase.from_list(i64, [position])
            Rewriter.replace_op(op, new)
            changed = True
    return changed


def _elements_at_once(module: ModuleOp) -> bool:
    """Insertions at every position of a vector, one behind the other and each used by the next alone -> `vector.from_elements`."""
    changed = False
    for last in tuple(module.walk()):
        if not isinstance(last, InsertOp) or not isa(last.result.type, VectorType):
            continue
        chain, elements, op = list[Operation](), dict[int, SSAValue](), last
        while len(op.static_position) == 1 and not op.dynamic_position:
            elements.setdefault(op.static_position.get_values()[0], op.source)
            chain.append(op)
            below = op.dest.owner
            if not isinstance(below, InsertOp) or not op.dest.has_one_use():
                break
            op = below
        if len(elements) == prod(last.result.type.get_shape()):
            ordered = [elements[number] for number in sorted(elements)]
            Rewriter.replace_op(last, FromElementsOp(ordered, last.result.type))
            for dead in chain[1:]:
                Rewriter.erase_op(dead)
            changed = True
    return changed


def _elements_at_once_of_llvm(module: ModuleOp) -> bool:
    """`llvm.insertelement` at every position of a vector, likewise -> the same behind all of the elements, into poison."""
    changed = False
    for last in tuple(module.walk()):
        if not isinstance(last, InsertElementOp) or not isa(vector := last.results[0].type, VectorType):
            continue
        chain: list[Operation] = [last]
        while isinstance(below := chain[-1].operands[0].owner, InsertElementOp):
            if not below.results[0].has_one_use() or below.parent is not last.parent:
                break
            chain.append(below)
        positions = [constant_integer(op.operands[2]) for op in reversed(chain)]
        if positions == list(range(prod(vector.get_shape()))):
            poison = PoisonOp.create(result_types=[vector])
            Rewriter.insert_op(poison, InsertPoint.before(last))
            chain[-1].operands[0] = poison.results[0]
            for op in reversed(chain[1:]):
                op.detach()
                Rewriter.insert_op(op, InsertPoint.before(last))
            changed = True
    return changed


def _alignment_of_tiles(module: ModuleOp) -> bool:
    stated = [op for op in module.walk() if isinstance(op, GlobalOp) and "alignment" in op.properties]
    for op in stated:
        del op.properties["alignment"]
    return bool(stated)


IN_CODE = (
    Rewrite("20-what-is-the-same-but-for.md", "indices truncated twice", _narrow_indices),
    Rewrite("20-what-is-the-same-but-for.md", "broadcasts of constants", _broadcasts_of_constants),
    Rewrite("02-the-seed-and-the-stages.md", "positions in vectors stay values", _static_positions),
    Rewrite("02-the-seed-and-the-stages.md", "vectors are built by insertions", _elements_at_once),
    Rewrite("02-the-seed-and-the-stages.md", "vectors are built by insertions", _elements_at_once_of_llvm),
    Rewrite("01-what-the-ir-carries.md", "griddepcontrol.wait", _without_waits),
    Rewrite("02-the-seed-and-the-stages.md", "base[i] of elements for base[0][i] of an array", _addresses_of_elements),
    Rewrite("02-the-seed-and-the-stages.md", "base for base[0]", _addresses_of_first_elements),
    Rewrite("02-the-seed-and-the-stages.md", "the alignment of an access", _natural_alignment),
    Rewrite("02-the-seed-and-the-stages.md", "the alignment of shared memory, for wider accesses", _alignment_of_tiles),
)
