"""Flatten N-d tensors to 1-d, so that an index is the offset of its element in memory.

    %i = apply_indexing (t, b)[v] -> (b floordiv 16)                 %k = apply_indexing (t, b, v) -> (b * 32 + t * 4 + v)
    %j = apply_indexing (t, b)[v] -> ((b mod 16) * 32 + t * 4 + v)
    %x = tensor.extract %a[%i, %j] : tensor<8x512xf32>          ->   %x = tensor.extract %a[%k] : tensor<4096xf32>

Every access gets one `apply_indexing`: the offset in memory that the tensor's layout defines, composed with the maps that produced the
access's indices, and simplified. Accesses with equal offsets share it. Names and bounds of the variables are kept; symbols become dims.
The maps that other ops use are simplified too, and lose the operands they do not need: a row number computed in a loop over columns no
longer depends on the column.

A layout is the tensor type's encoding: none (row major), `dense<[0, 1]> : tensor<2xi64>` or `#hlo.layout<[0, 1]>`, minor dimension first.
The pass folds layouts into offsets, drops them from the types, and reorders the elements of constants into memory order. It refuses a
layout with tiles, packed elements or dynamic bounds.
After this pass no tensor has a rank above 1 or a layout (lower-tensors and vectorize-loads-stores rely on it); ranks 0 and 1 keep
their shape. If a tensor of higher rank has a user that the pass does not know, the pass raises Unsupported before it changes anything.

Vectors of higher rank are flattened too, row major, if every op in the module that uses one reads or writes single elements of it.
Otherwise all vectors keep their shapes, and a remark names the first op that prevents it.
Source: seed document, "Flatten tensors"; XLA flatten_tensors.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from itertools import product
from typing import Any, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    ModuleOp,
    NoneAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.expression import Expr, ExprKind
from xla_emitters.algebra.interval import Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import linearize_physical_map
from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.attributes import function_type, tensor_type
from xla_emitters.dialects.build import constant_index
from xla_emitters.dialects.float_bits import dense_of, is_splat, values_of
from xla_emitters.dialects.hlo.types import LayoutAttr
from xla_emitters.dialects.locations import fuse_locations, located_builder, replace_alike
from xla_emitters.dialects.mlir import arith, func, scf, tensor, vector
from xla_emitters.dialects.quick_op import blocks_of, operands_of, walk
from xla_emitters.dialects.ranges import bounds_of
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr
from xla_emitters.dialects.xla_gpu.loops import CanonicalizeApplyIndexing
from xla_emitters.rewrite.constants import constant_integer, constant_op, hoist_constants, integer_attr
from xla_emitters.rewrite.kernel_pass import KernelPass, refusal
from xla_emitters.rewrite.patterns import apply_patterns_by_type
from xla_emitters.support.late_dataclass import dataclass

ArrayType = TensorType[Attribute]

# Ops that pass tensors through unchanged: only their types change.
CARRIERS: frozenset[type[Operation]] = frozenset(
    (
        func.FuncOp,
        func.ReturnOp,
        func.CallOp,
        scf.ForOp,
        scf.IfOp,
        scf.WhileOp,
        scf.IndexSwitchOp,
        scf.YieldOp,
        scf.ConditionOp,
        xla_gpu.LoopOp,
        xla_gpu.YieldOp,
        xla_gpu.PureCallOp,
        xla_gpu.AllocateSharedOp,
        xla_gpu.SyncThreadsOp,
        tensor.EmptyOp,
        arith.SelectOp,
    )
)
_SIMPLER_MAPS = (CanonicalizeApplyIndexing(),)
ALONG_THE_DIMENSION = AffineMapAttr(AffineMap.identity(1))
ACCESSES: frozenset[type[Operation]] = frozenset(
    (tensor.ExtractOp, tensor.InsertOp, vector.TransferReadOp, vector.TransferWriteOp, xla_gpu.AtomicRMWOp)
)
_HANDLED = CARRIERS | ACCESSES | {arith.ConstantOp}


class FlattenTensorsPass(KernelPass):
    name = "xla-flatten-tensors"

    def apply_to(self, op: ModuleOp) -> None:
        ops = list(walk(op))
        for inner in ops:
            _check(inner, self.name)
        offsets = _Offsets()
        flat_vectors = self._vectors_can_be_flat(ops)
        looked_into = {
            inner: _looked_into(inner) for inner in ops if isinstance(inner, vector.ExtractOp | vector.InsertOp)
        }
        for inner in ops:
            if flat_vectors and isinstance(inner, vector.ExtractOp | vector.InsertOp):
                _flatten_vector_access(inner, looked_into[inner], offsets)
            elif type(inner) in ACCESSES:
                _flatten_access(inner, offsets)
            elif isinstance(inner, arith.ConstantOp):
                _flatten_constant(inner, flat_vectors)
        for inner in ops:
            _flatten_types(inner, flat_vectors)
        offsets.erase_unused_producers()
        # Without unused operands, LICM can hoist invariant maps, and xla-vectorize-loads-stores sees strides of one.
        apply_patterns_by_type(op, lambda op_type: _SIMPLER_MAPS if op_type is xla_gpu.ApplyIndexingOp else ())
        hoist_constants(op)

    def _vectors_can_be_flat(self, ops: Sequence[Operation]) -> bool:
        """Whether there are vectors of higher rank, and every op on them reads or writes single elements."""
        concerned = [
            op for op in ops if any([_is_deep_vector(value.type) for value in (*operands_of(op), *op.results)])
        ]
        if (in_the_way := next((op for op in concerned if not _keeps_elements_single(op)), None)) is not None:
            return bool(
                self.skip(in_the_way, "it uses more than one element of a vector, so all vectors keep their shapes")
            )
        return bool(concerned)


# Types --------------------------------------------------------------------------------------------------------------------


def is_flat(value_type: Attribute, vectors: bool = False) -> bool:
    """Whether this pass keeps `value_type`: it is not a tensor, or a tensor of rank 0 or 1 without a layout.

    vectors  whether vectors of higher rank are flattened too
    """
    if type(value_type) is not TensorType:
        return not (vectors and _is_deep_vector(value_type))
    return value_type.get_num_dims() <= 1 and (type(value_type.encoding) is NoneAttr or _layout(value_type) is None)


def flat_type(value_type: Attribute, vectors: bool = False) -> Attribute:
    """The type that replaces `value_type`."""
    if is_flat(value_type, vectors):
        return value_type
    array = cast(ArrayType, value_type)
    shape = array.get_shape()
    if isinstance(value_type, VectorType):
        return VectorType(array.element_type, [math.prod(shape)])
    return tensor_type(array.element_type, shape if len(shape) <= 1 else (math.prod(shape),))


def _is_deep_vector(value_type: Attribute) -> bool:
    """Whether `value_type` is a vector of rank 2 or more, of fixed size."""
    if type(value_type) is not VectorType:
        return False
    return value_type.get_num_dims() > 1 and not any(value_type.scalable_dims.data)


def _keeps_elements_single(op: Operation) -> bool:
    """Whether `op` also works on flat vectors: it passes them through, computes by element, or reads or writes one element."""
    match op:
        case vector.ExtractOp():
            return not isinstance(op.result.type, VectorType)
        case vector.InsertOp():
            return not isinstance(op.source.type, VectorType)
        case vector.BroadcastOp():
            return not isinstance(op.source.type, VectorType)
        case _:
            return type(op) in CARRIERS or op.name == "vector.from_elements" or op.dialect_name() in ("arith", "math")


def _layout(array: ArrayType | VectorType) -> tuple[int, ...] | None:
    """The dimensions of `array`, minor first; None if its encoding is anything but an order of dimensions."""
    rank = array.get_num_dims()
    encoding = array.encoding if isinstance(array, TensorType) else NoneAttr()
    if isinstance(encoding, NoneAttr):
        return tuple(reversed(range(rank)))
    if isinstance(encoding, LayoutAttr):
        if encoding.data.suffix or encoding.data.bounds:
            return None
        order = encoding.data.minor_to_major
    elif isinstance(encoding, DenseIntOrFPElementsAttr):
        order = tuple(int(value) for value in encoding.get_values())
    else:
        return None
    return order if sorted(order) == list(range(rank)) else None


def _check(op: Operation, stage: str) -> None:
    """Raises Unsupported if `op` uses a tensor that cannot be flattened, or if the pass has no rule for `op`."""
    types = [value.type for value in (*operands_of(op), *op.results)]
    types += [argument.type for region in op.regions for block in blocks_of(region) for argument in block.args]
    if isinstance(op, func.FuncOp):
        types += [*op.function_type.inputs, *op.function_type.outputs]
    concerned = [t for t in types if type(t) is TensorType]
    for array in concerned:
        if array.get_num_dims() > 1 and not array.has_static_shape():
            raise refusal(stage, op, f"{op.name}: {array} has a dynamic dimension")
        if array.get_num_dims() > 1 and _layout(array) is None:
            raise refusal(stage, op, f"{op.name}: the layout of {array} is not a plain order of dimensions")
    if all(is_flat(array) for array in concerned):
        return
    if isinstance(op, xla_gpu.AtomicRMWOp) and isinstance(op.current.type, VectorType):
        raise refusal(stage, op, f"{op.name}: it updates several elements of a tensor of rank above 1")
    if isinstance(op, vector.TransferReadOp | vector.TransferWriteOp) and not _is_contiguous(op):
        raise refusal(stage, op, f"{op.name}: its vector is not contiguous in memory, along the minor dimension")
    if type(op) not in _HANDLED:
        raise refusal(stage, op, f"{op.name}: no rule to flatten it")


def _is_contiguous(op: vector.TransferReadOp | vector.TransferWriteOp) -> bool:
    """Whether `op` reads or writes a whole 1-d vector along the dimension that is minor in memory."""
    array = cast(ArrayType, op.source.type)
    rank = array.get_num_dims()
    layout = _layout(array)
    vector_type = op.result.type if isinstance(op, vector.TransferReadOp) else op.vector.type
    return (
        isinstance(vector_type, VectorType)
        and cast("VectorType[Attribute]", vector_type).get_num_dims() == 1
        and op.mask is None
        and all(inside.value.data for inside in op.in_bounds)
        and op.permutation_map.data == AffineMap.minor_identity(rank, 1)
        and layout is not None
        and layout[0] == rank - 1
    )


def _flatten_types(op: Operation, vectors: bool) -> None:
    for result in op.results:
        if not is_flat(result.type, vectors):
            Rewriter.replace_value_with_new_type(result, flat_type(result.type, vectors))
    for region in op.regions:
        for block in blocks_of(region):
            for argument in block.args:
                if not is_flat(argument.type, vectors):
                    Rewriter.replace_value_with_new_type(argument, flat_type(argument.type, vectors))
    if isinstance(op, func.FuncOp):
        signature = op.function_type
        op.function_type = function_type(
            [flat_type(t, vectors) for t in signature.inputs], [flat_type(t, vectors) for t in signature.outputs]
        )


def _flatten_constant(op: arith.ConstantOp, vectors: bool) -> None:
    """Reorders the constant's elements into memory order."""
    value = op.value
    if is_flat(op.result.type, vectors) or not isinstance(value, DenseIntOrFPElementsAttr):
        return
    array = cast(ArrayType, op.result.type)
    shape, layout = array.get_shape(), _layout(array)
    assert layout is not None
    new_type = cast(Any, flat_type(array, vectors))
    if is_splat(value) or layout == tuple(reversed(range(len(shape)))):
        op.value = DenseIntOrFPElementsAttr(new_type, value.data)
        return
    # Memory order: the last dimension of `layout` is outermost. The attribute's elements are in row-major order.
    elements = values_of(value)
    outermost_first = tuple(reversed(layout))
    strides = [math.prod(shape[dim + 1 :]) for dim in outermost_first]
    moved = [
        elements[sum(i * stride for i, stride in zip(index, strides, strict=True))]
        for index in product(*(range(shape[dim]) for dim in outermost_first))
    ]
    op.value = dense_of(new_type, moved)


# Accesses -----------------------------------------------------------------------------------------------------------------


def _flatten_access(op: Operation, offsets: _Offsets) -> None:
    match op:
        case tensor.ExtractOp():
            if op.tensor.type != flat_type(op.tensor.type):
                op.operands = [op.tensor, *offsets.of(op, cast(ArrayType, op.tensor.type), op.indices)]
        case tensor.InsertOp():
            if op.dest.type != flat_type(op.dest.type):
                op.operands = [op.scalar, op.dest, *offsets.of(op, cast(ArrayType, op.dest.type), op.indices)]
        case xla_gpu.AtomicRMWOp():
            if op.input.type != flat_type(op.input.type):
                op.operands = [op.input, *offsets.of(op, cast(ArrayType, op.input.type), op.indices)]
        case vector.TransferReadOp() | vector.TransferWriteOp():
            array = cast(ArrayType, op.source.type)
            if array.get_num_dims() > 1:
                _replace_transfer(op, offsets.of(op, array, op.indices))
        case _:
            return


def _looked_into(op: vector.ExtractOp | vector.InsertOp) -> Attribute:
    """The type of the vector that `op` reads from or writes to."""
    return op.vector.type if isinstance(op, vector.ExtractOp) else op.dest.type


def _flatten_vector_access(op: vector.ExtractOp | vector.InsertOp, array: Attribute, offsets: _Offsets) -> None:
    """Gives `op` one position: a number if all its positions were numbers, else the offset of the element as a value.

    array  the vector's type before flattening; the vector itself is already flat
    """
    if not _is_deep_vector(array):
        return
    positions, shape = op.get_mixed_position(), cast(VectorType, array).get_shape()
    position: SSAValue | int = 0
    if all(isinstance(number, int) for number in positions):
        for number, size in zip(cast("list[int]", positions), shape, strict=True):
            position = position * size + number
    else:
        builder = located_builder(InsertPoint.before(op), op)
        indices = [n if isinstance(n, SSAValue) else constant_index(builder, n) for n in positions]
        [position] = offsets.of(op, cast(ArrayType, array), indices)
    if isinstance(op, vector.ExtractOp):
        new = vector.ExtractOp(op.vector, [position], op.result.type)
    else:
        new = vector.InsertOp(op.source, op.dest, [position], flat_type(array, vectors=True))
    replace_alike(op, new)


def _replace_transfer(op: vector.TransferReadOp | vector.TransferWriteOp, offset: Sequence[SSAValue]) -> None:
    if isinstance(op, vector.TransferReadOp):
        new = vector.TransferReadOp(op.source, offset, op.padding, op.result.type, op.in_bounds, ALONG_THE_DIMENSION)
    else:
        new_type = cast("ArrayType", flat_type(op.source.type))
        new = vector.TransferWriteOp(
            op.vector, op.source, offset, op.in_bounds, permutation_map=ALONG_THE_DIMENSION, result_type=new_type
        )
    replace_alike(op, new)


@dataclass
class _Offsets:
    """The offsets of accesses, each computed once, at its first use.

    An offset computed in a block is reused by later accesses of that block and of the regions nested in it.
    """

    known: dict[Block, dict[tuple[object, ...], xla_gpu.ApplyIndexingOp]] = field(
        default_factory=dict[Block, dict[tuple[object, ...], xla_gpu.ApplyIndexingOp]]
    )
    producers: dict[xla_gpu.ApplyIndexingOp, None] = field(default_factory=dict[xla_gpu.ApplyIndexingOp, None])

    def of(self, access: Operation, array: ArrayType, indices: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        """The indices into the flat tensor for element `indices` of a tensor of type `array`: its offset in memory; () for rank 0."""
        if array.get_num_dims() <= 1:
            return tuple(indices)
        layout = _layout(array)
        assert layout is not None
        operands, offset = self._composed(linearize_physical_map(array.get_shape(), layout), indices)
        [result] = offset.results
        builder = located_builder(InsertPoint.before(access), access)
        if result.kind is ExprKind.VARIABLE:
            return (operands[result.value],)
        if result.kind is ExprKind.CONSTANT:
            return (builder.insert(constant_op(integer_attr(result.value, xla_gpu.INDEX))).result,)
        key = (offset, *map(id, operands))
        if (shared := self._find(key, access)) is not None:
            shared.location = fuse_locations(shared.location, access.location)
            return (shared.results[0],)
        op = builder.insert(xla_gpu.ApplyIndexingOp(operands, IndexingMapAttr(offset)))
        op.results[0].name_hint = "dim"
        assert op.parent is not None
        self.known.setdefault(op.parent, {})[key] = op
        return (op.results[0],)

    def _find(self, key: tuple[object, ...], access: Operation) -> xla_gpu.ApplyIndexingOp | None:
        block = access.parent
        while block is not None:
            if (found := self.known.get(block, {}).get(key)) is not None:
                return found
            around = block.parent_op()
            block = None if around is None else around.parent
        return None

    def _composed(self, linear: IndexingMap, indices: Sequence[SSAValue]) -> tuple[list[SSAValue], IndexingMap]:
        """The offset as (operands, map); no operand is itself the result of an apply_indexing."""
        values: list[SSAValue] = []
        variables: list[Variable] = []
        number_of: dict[SSAValue, int] = {}

        def variable(value: SSAValue, wanted: Variable) -> Expr:
            if (constant := constant_integer(value)) is not None:
                return Expr.constant(constant)
            number = number_of.get(value)
            if number is None:
                number = number_of[value] = len(values)
                values.append(value)
                variables.append(wanted)
                return Expr.variable(number)
            have = variables[number]
            both = have.bounds.intersect(wanted.bounds)
            variables[number] = Variable(both if both.is_feasible else have.bounds, have.name or wanted.name)
            return Expr.variable(number)

        def expression(index: SSAValue, dim: Variable) -> Expr:
            producer = index.owner
            if isinstance(producer, xla_gpu.ApplyIndexingOp):
                self.producers[producer] = None
                inner = [variable(v, w) for v, w in zip(producer.operands, producer.map.variables, strict=True)]
                return producer.map.results[producer.results.index(index)].substitute(inner)
            return variable(index, Variable(bounds_of(index, dim.bounds)))

        # Operands in the order of canonicalised applications: the indices that are plain values, then operands of the other indices' maps.
        expressions: dict[int, Expr] = {}
        for number in sorted(range(len(indices)), key=lambda n: isinstance(indices[n].owner, xla_gpu.ApplyIndexingOp)):
            expressions[number] = expression(indices[number], linear.dims[number])
        offset = linear.results[0].substitute([expressions[number] for number in range(len(indices))])
        composed, removed = IndexingMap((offset,), tuple(variables)).simplify().remove_unused_vars()
        if removed:
            values = [value for value, gone in zip(values, removed, strict=True) if not gone]
        return values, composed

    def erase_unused_producers(self) -> None:
        """Erases the maps whose results were only used as indices of the old tensors, last ones first."""
        doomed = list(self.producers)
        while doomed:
            op = doomed.pop()
            if op.parent is None or any(result.first_use is not None for result in op.results):
                continue
            doomed += [operand.owner for operand in op.operands if isinstance(operand.owner, xla_gpu.ApplyIndexingOp)]
            Rewriter.erase_op(op)
