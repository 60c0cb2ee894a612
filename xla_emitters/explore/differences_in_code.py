"""Intended differences between the forms of our code and XLA's: rewrites that undo what docs/decisions says of vectors and addresses.

    vector.insert %a, %v[%c0]; vector.insert %b, ...[%c1]   ->   vector.from_elements %a, %b
    llvm.getelementptr %p[0, %i] of an array of f32         ->   llvm.getelementptr %p[%i] of f32

Each rewrite keeps the meaning of any module, and is applied to both sides. If two modules are equal after a rewrite and were not before,
this difference was all that they differed by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.arith import (
    AndIOp,
    CmpiOp,
    ConstantOp,
    DivSIOp,
    IndexCastOp,
    OrIOp,
    RemSIOp,
    SelectOp,
    TruncIOp,
    XOrIOp,
)
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.complex import CreateOp, ImOp, ReOp
from xdsl.dialects.llvm import AddressOfOp, InsertElementOp, LLVMArrayType, LShrOp, SubOp, ZExtOp
from xdsl.dialects.scf import IfOp
from xdsl.dialects.vector import BroadcastOp, ExtractOp, InsertOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.mlir.llvm import GlobalOp, PoisonOp
from xla_emitters.dialects.mlir.llvm.atomics import AtomicCmpXchgOp, AtomicRMWOp, ordering_number
from xla_emitters.dialects.mlir.llvm.memory import DYNAMIC_INDEX, GEPOp, LoadOp, StoreOp
from xla_emitters.dialects.mlir.llvm.values import AddrSpaceCastOp
from xla_emitters.dialects.mlir.llvm.values import ConstantOp as LlvmConstantOp
from xla_emitters.dialects.mlir.nvvm import GriddepcontrolOp
from xla_emitters.dialects.mlir.vector import FromElementsOp
from xla_emitters.dialects.xla_gpu.tensors import PdlWaitOp
from xla_emitters.explore.writes_of_parts import writes_of_parts_as_atomic_ops
from xla_emitters.kernels.kernel_entry import SHARED
from xla_emitters.lowering.element_access import GLOBAL_ALIGNMENT
from xla_emitters.rewrite.effects import is_speculatable
from xla_emitters.rewrite.folders import constant_integer, constant_op, constant_value, integer_attr, width

_MOST_CONSTANT_POSITION = (1 << 31) - 1
_IDS = frozenset(f"nvvm.read.ptx.sreg.{kind}.{axis}" for kind in ("tid", "ctaid") for axis in "xyz")


@dataclass(frozen=True)
class Rewrite:
    """A difference that is undone: its file in docs/decisions, its name, and the function, which returns whether it changed the module."""

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


def _constant_positions_in_addresses(module: ModuleOp) -> bool:
    """`base[%c1]`, also of `arith.index_castui` of a constant -> `base[1]`."""
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, GEPOp)):
        dynamic, indices = list(op.ssa_indices), list(op.rawConstantIndices.get_values())
        places = [number for number, index in enumerate(indices) if index == DYNAMIC_INDEX]
        kept = list[SSAValue]()
        for place, value in zip(places, dynamic, strict=True):
            source = value.owner.input if isinstance(value.owner, IndexCastUIOp) else value
            known = constant_integer(source)
            if known is not None and 0 <= known <= _MOST_CONSTANT_POSITION:
                indices[place] = known
            else:
                kept.append(value)
        if len(kept) != len(dynamic):
            op.operands = [op.ptr, *kept]
            op.properties["rawConstantIndices"] = DenseArrayBase.from_list(i32, indices)
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


def _alignments_of_elements(module: ModuleOp) -> bool:
    """An access whose stated alignment is that of an element -> one that states none. Another stated value stays."""
    changed = False
    for op in module.walk():
        if isinstance(op, LoadOp | StoreOp) and op.alignment is not None:
            accessed = op.dereferenced_value.type if isinstance(op, LoadOp) else op.value.type
            if op.alignment.value.data == _element_bytes(accessed):
                del op.properties["alignment"]
                changed = True
    return changed


def _element_bytes(accessed: Attribute) -> int | None:
    element = accessed.get_element_type() if isa(accessed, VectorType) else accessed
    return max(element.bitwidth // 8, 1) if isinstance(element, FixedBitwidthType) else None


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


def _elements_of_built_vectors(module: ModuleOp) -> bool:
    """`vector.extract (vector.insert %a, %v[1])[0]` -> `vector.extract %v[0]`; of a constant whose elements are equal, that element; of
    `vector.from_elements %a, %b` -> `%a`."""
    changed = False
    for op in tuple(module.walk()):
        if not isinstance(op, ExtractOp) or op.dynamic_position or len(op.static_position) != 1:
            continue
        while isinstance(inner := op.vector.owner, InsertOp) and not inner.dynamic_position:
            if len(inner.static_position) != 1 or inner.static_position == op.static_position:
                break
            op.operands[0] = inner.dest
            changed = True
        elements = constant_value(op.vector)
        position = op.static_position.get_values()[0]
        if isinstance(whole := op.vector.owner, FromElementsOp) and whole.operands[position].type == op.result.type:
            Rewriter.replace_op(op, [], [whole.operands[position]])
            changed = True
        elif isinstance(elements, DenseIntOrFPElementsAttr) and elements.is_splat():
            Rewriter.replace_op(op, constant_op(next(iter(elements.iter_attrs()))))
            changed = True
    return changed


def _elements_at_once(module: ModuleOp) -> bool:
    """Insertions at every position of a vector, each used by the next one only -> `vector.from_elements`."""
    changed = False
    for last in tuple(module.walk()):
        if not isinstance(last, InsertOp) or not isa(last.result.type, VectorType):
            continue
        shape, elements = last.result.type.get_shape(), dict[tuple[int, ...], SSAValue]()
        chain, op = list[Operation](), last
        while len(op.static_position) == len(shape) and not op.dynamic_position:
            elements.setdefault(op.static_position.get_values(), op.source)
            chain.append(op)
            below = op.dest.owner
            if not isinstance(below, InsertOp) or not op.dest.has_one_use():
                break
            op = below
        if len(elements) == prod(shape):
            ordered = [elements[place] for place in sorted(elements)]
            Rewriter.replace_op(last, FromElementsOp(ordered, last.result.type))
            for dead in chain[1:]:
                Rewriter.erase_op(dead)
            changed = True
    return changed


def _elements_at_once_of_llvm(module: ModuleOp) -> bool:
    """`llvm.insertelement` at every position of a vector, likewise -> the same after all of the elements, into poison."""
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


def _quotients_that_cannot_overflow(module: ModuleOp) -> bool:
    """`select %o, %least, (divsi %x, (select (%z or %o), 1, %y))`, where %o says that %x is the least integer -> the quotient.

    That divided by 1 is itself, and its remainder (`remsi`, a select of 0) is 0.
    """
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, SelectOp)):
        quotient, overflows = op.rhs.owner, op.cond.owner
        if not isinstance(quotient, DivSIOp | RemSIOp) or not isinstance(overflows, AndIOp):
            continue
        divisor, bits = quotient.rhs.owner, width(op.result.type)
        if bits is None or not isinstance(divisor, SelectOp) or constant_integer(divisor.lhs) != 1:
            continue
        least = -(1 << bits - 1)
        is_least = any(
            isinstance(each := part.owner, CmpiOp)
            and each.predicate.value.data == 0
            and each.lhs is quotient.lhs
            and constant_integer(each.rhs) == least
            for part in overflows.operands
        )
        is_one = isinstance(either := divisor.cond.owner, OrIOp) and op.cond in either.operands
        if is_least and is_one and constant_integer(op.lhs) == (least if isinstance(quotient, DivSIOp) else 0):
            Rewriter.replace_op(op, [], [quotient.result])
            changed = True
    return changed


def _ids_without_a_sign(module: ModuleOp) -> bool:
    """`llvm.sext` of an id of a thread or a block -> `llvm.zext`: it is not negative."""
    changed = False
    for op in tuple(op for op in module.walk() if op.name == "llvm.sext"):
        if isinstance(source := op.operands[0].owner, Operation) and source.name in _IDS:
            Rewriter.replace_op(op, ZExtOp(op.operands[0], op.results[0].type))
            changed = True
    return changed


def _arithmetic_of_constants(module: ModuleOp) -> bool:
    """`llvm.sub` and `llvm.lshr` of two constants -> a constant: masks and clamps of shuffles."""
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, SubOp | LShrOp)):
        left, right = constant_integer(op.lhs), constant_integer(op.rhs)
        bits = width(op.res.type)
        if left is None or right is None or bits is None or (isinstance(op, LShrOp) and not 0 <= right < bits):
            continue
        value = left - right if isinstance(op, SubOp) else (left & ((1 << bits) - 1)) >> right
        Rewriter.replace_op(op, LlvmConstantOp(integer_attr(value, op.res.type), op.res.type))
        changed = True
    return changed


def _parts_of_pairs(module: ModuleOp) -> bool:
    """`complex.re (complex.create %a, %b)` -> `%a`; `vector.from_elements` of all elements of a vector, in order -> that vector."""
    changed = False
    for op in tuple(module.walk()):
        whole: SSAValue | None = None
        if isinstance(op, ReOp | ImOp) and isinstance(made := op.operands[0].owner, CreateOp):
            whole = made.operands[0 if isinstance(op, ReOp) else 1]
        elif isinstance(op, FromElementsOp):
            places = [_place(element) for element in op.operands]
            first = places[0][0] if places else None
            in_order = places == [(first, number) for number in range(len(places))]
            whole = first if first is not None and in_order and first.type == op.results[0].type else None
        if whole is not None:
            Rewriter.replace_op(op, [], [whole])
            changed = True
    return changed


def _place(element: SSAValue) -> tuple[SSAValue | None, int]:
    """(%v, n) of `vector.extract %v[n]`."""
    op = element.owner
    if isinstance(op, ExtractOp) and not op.dynamic_position and len(op.static_position) == 1:
        return op.vector, op.static_position.get_values()[0]
    return None, -1


def _loads_beside_atomics(module: ModuleOp) -> bool:
    """A plain load of an address that an atomic op updates -> a monotonic one."""
    changed = False
    updated = {op.operands[0] for op in module.walk() if isinstance(op, AtomicRMWOp | AtomicCmpXchgOp)}
    for op in module.walk():
        if isinstance(op, LoadOp) and op.ptr in updated and op.ordering.value.data == 0:
            op.properties["ordering"] = ordering_number("monotonic")
            changed = True
    return changed


def _branches_in_an_else(module: ModuleOp) -> bool:
    """`if %c {} else { %d = ...; if %d { ... } }` -> `%d = ...; if (not %c) and %d { ... }`, where %d is computed without effects."""
    changed = False
    for outer in tuple(op for op in module.walk() if isinstance(op, IfOp)):
        if outer.results or not outer.false_region.blocks or len(tuple(outer.true_region.block.ops)) != 1:
            continue
        block = outer.false_region.block
        end = block.last_op
        inner = None if end is None else end.prev_op
        if end is None or not isinstance(inner, IfOp) or inner.results:
            continue
        if inner.false_region.blocks and len(tuple(inner.false_region.block.ops)) != 1:
            continue
        if not all(is_speculatable(op) for op in block.ops if op not in (inner, end)):
            continue
        true = constant_op(integer_attr(1, i1))
        otherwise = XOrIOp(outer.cond, true.result)
        both = AndIOp(otherwise.result, inner.cond)
        Rewriter.insert_op((true, otherwise, both), InsertPoint.before(inner))
        inner.operands[0] = both.result
        Rewriter.erase_op(end)
        Rewriter.inline_block(block, InsertPoint.before(outer))
        Rewriter.erase_op(outer)
        changed = True
    return changed


def _alignment_of_globals(module: ModuleOp) -> bool:
    """A variable in shared memory, or a constant, that states no alignment -> one of 16 bytes. Another stated value stays."""
    changed = False
    for op in module.walk():
        if not isinstance(op, GlobalOp) or op.alignment is not None:
            continue
        if op.addr_space.value.data == SHARED or op.constant is not None:
            op.properties["alignment"] = IntegerAttr(GLOBAL_ALIGNMENT, i64)
            changed = True
    return changed


def _tiles_in_order_of_their_accesses(module: ModuleOp) -> bool:
    """Variables in shared memory -> the same, named in the order in which loads and stores first access them."""
    order = dict[str, None]()
    for op in module.walk():
        if isinstance(op, LoadOp | StoreOp):
            address = op.ptr.owner
            while isinstance(address, GEPOp | AddrSpaceCastOp):
                address = address.operands[0].owner
            if isinstance(address, AddressOfOp):
                order.setdefault(address.global_name.root_reference.data)
    tiles = [op for op in module.walk() if isinstance(op, GlobalOp) and op.addr_space.value.data == SHARED]
    named = [name for name in order if any(name == tile.sym_name.data for tile in tiles)]
    names = dict(zip(named, sorted(named), strict=True))
    if named == sorted(named):
        return False
    for tile in tiles:
        tile.properties["sym_name"] = StringAttr(names.get(tile.sym_name.data, tile.sym_name.data))
    for op in module.walk():
        if isinstance(op, AddressOfOp) and (name := op.global_name.root_reference.data) in names:
            op.properties["global_name"] = SymbolRefAttr(names[name])
    return True


IN_CODE = (
    Rewrite("20-what-is-the-same-but-for.md", "indices truncated twice", _narrow_indices),
    Rewrite("20-what-is-the-same-but-for.md", "broadcasts of constants", _broadcasts_of_constants),
    Rewrite("02-the-seed-and-the-stages.md", "positions in vectors stay values", _static_positions),
    Rewrite("02-the-seed-and-the-stages.md", "vectors are built by insertions", _elements_of_built_vectors),
    Rewrite("02-the-seed-and-the-stages.md", "vectors are built by insertions", _elements_at_once),
    Rewrite("02-the-seed-and-the-stages.md", "vectors are built by insertions", _elements_at_once_of_llvm),
    Rewrite("02-the-seed-and-the-stages.md", "complex numbers are vectors", _parts_of_pairs),
    Rewrite("20-what-is-the-same-but-for.md", "quotients that cannot overflow", _quotients_that_cannot_overflow),
    Rewrite("20-what-is-the-same-but-for.md", "ids without a sign", _ids_without_a_sign),
    Rewrite("20-what-is-the-same-but-for.md", "what is folded later", _arithmetic_of_constants),
    Rewrite(
        "02-the-seed-and-the-stages.md", "parts of bytes are written by `and` and `or`", writes_of_parts_as_atomic_ops
    ),
    Rewrite("20-what-is-the-same-but-for.md", "loads beside atomic updates", _loads_beside_atomics),
    Rewrite("20-what-is-the-same-but-for.md", "a branch in an else", _branches_in_an_else),
    Rewrite("01-what-the-ir-carries.md", "griddepcontrol.wait", _without_waits),
    Rewrite("02-the-seed-and-the-stages.md", "base[i] of elements for base[0][i] of an array", _addresses_of_elements),
    Rewrite("02-the-seed-and-the-stages.md", "positions in addresses stay values", _constant_positions_in_addresses),
    Rewrite("02-the-seed-and-the-stages.md", "base for base[0]", _addresses_of_first_elements),
    Rewrite("02-the-seed-and-the-stages.md", "the alignment of an access", _alignments_of_elements),
    Rewrite(
        "02-the-seed-and-the-stages.md",
        "the alignment of shared memory and constants, for wider accesses",
        _alignment_of_globals,
    ),
    Rewrite("20-what-is-the-same-but-for.md", "names of shared memory", _tiles_in_order_of_their_accesses),
)
