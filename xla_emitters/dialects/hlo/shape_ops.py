"""Ops that move elements and compute nothing: broadcast, reshape, bitcast, transpose, slice, reverse, concatenate, pad, dynamic slices.

    %b = hlo.broadcast %x {dimensions = array<i64: 1>, name = "b"} : (tensor<4096xf32>) -> tensor<64x4096xf32>
    %s = hlo.slice %x {name = "s", slice = [array<i64: 2, 10, 4>]} : (tensor<10xf32>) -> tensor<2xf32>     start, limit, stride
    %p = hlo.pad %x, %z {name = "p", padding = [array<i64: 1, 0, 2>]} : (...) -> ...                       low, high, interior

An op whose every result element is one element of the operand is a `MoveOp`: emission needs only its indexing map.
Source: docs/reference/1 3.2, 5.5, 6.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import opt_prop_def, prop_def

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import bitcast_map, broadcast_map, identity_map, reshape_map, transpose_map
from xla_emitters.dialects.build import apply_indexing, constant_index, constraints_check
from xla_emitters.dialects.hlo.base import (
    Call,
    ElementContext,
    HloOp,
    RuleBroken,
    at_least,
    integers,
)
from xla_emitters.dialects.hlo.shape_rule import UNKNOWN, Number, Shape, Sizing, padded, said
from xla_emitters.dialects.hlo.types import (
    array_type,
    as_array,
    dims_of,
    element_of,
    has_dynamic_dims,
    minor_to_major,
    same_dims,
    type_text,
)
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.ranges import RANGE_ATTR, range_attr
from xla_emitters.dtypes import Array, Kind, dtype


def rows(attribute: ArrayAttr[Any]) -> tuple[tuple[int, ...], ...]:
    """The numbers of an attribute that is a list of integer arrays."""
    return tuple(integers(row) for row in attribute)


class MoveOp(HloOp):
    """Each element of the result is one element of the operand, given by `output_to_input`."""

    OPERANDS: ClassVar = range(1, 2)
    MOVED: ClassVar = slice(0, 1)
    READS_ONCE: ClassVar = True

    def verify_(self) -> None:
        self.expect_element()
        self.verify_shape()

    def verify_shape(self) -> None:
        """Checks the relation between the operand's sizes and the result's."""

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        (index_map,) = self.output_to_input()
        return (e.operand(0, apply_indexing(e.builder, index_map, e.indices)),)


def expect_one_per_dimension(op: HloOp, dimensions: Sequence[int]) -> None:
    """raises RuleBroken unless a broadcast has a number for each dimension of its operand."""
    if len(dimensions) != (rank := len(dims_of(op.operands[0]))):
        raise RuleBroken(
            f"broadcast of {type_text(op.operands[0].type)} with {len(dimensions)} dimensions",
            f"dimensions={{...}} has a number for each of the operand's {rank}",
            operand=0,
        )


def broadcast_array(x: Array, sizes: Sequence[int], dimensions: Sequence[int]) -> Array:
    """A read-only view of `x` whose dim k is dim dimensions[k] of an array of these sizes."""
    kept = [1] * len(sizes)
    for size, dim in zip(x.shape, dimensions, strict=True):
        kept[dim] = size
    in_result_order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    return np.broadcast_to(x.transpose(in_result_order).reshape(kept), sizes)


@op_definition
class BroadcastOp(MoveOp):
    """Operand dim k becomes result dim dimensions[k]; the result is constant along all others."""

    name = "hlo.broadcast"
    READS_ONCE: ClassVar = False
    dimensions = prop_def(DenseArrayBase)

    def verify_shape(self) -> None:
        result, dimensions = dims_of(self.result), integers(self.dimensions)
        expect_one_per_dimension(self, dimensions)
        self.expect_dimensions(dimensions, len(result))
        if not same_dims(result, self.inferred_dims()):
            raise RuleBroken(
                "broadcast changes a size",
                f"the operand is {type_text(self.operands[0].type)}; result dimensions "
                f"{','.join(map(str, dimensions))} are [{','.join(str(result[dim]) for dim in dimensions)}]",
                operand=0,
            )

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        found = said(dims_of(self.result))
        for size, dim in zip(s.axes(0), integers(self.dimensions), strict=True):
            found[dim] = size
        return [found]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return broadcast_array(operands[0], dims_of(self.result), integers(self.dimensions)).copy()

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        return (broadcast_map(dims_of(self.result), integers(self.dimensions)),)


@op_definition
class ReshapeOp(MoveOp):
    """The same elements in row-major order, in another shape."""

    name = "hlo.reshape"
    inferred_dimension = opt_prop_def(IntegerAttr)

    def verify_shape(self) -> None:
        self.inferred_dims()

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        """The sizes in the type; a single unknown one is what the known sizes leave of the number of elements."""
        own, found = s.axes(0), said(dims_of(self.result))
        known = [size for size in found if size is not UNKNOWN]
        if len(known) == len(found) - 1 and 0 not in known:
            found[found.index(UNKNOWN)] = s.product(own) // s.product(known)
        s.same_product(own, found, self._changes_elements)
        return [found]

    def _changes_elements(self) -> RuleBroken:
        operand, result = (prod(dims_of(value)) for value in (self.operands[0], self.result))
        return _changes_size(self, operand, result, "elements")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return operands[0].reshape(dims_of(self.result))

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        return (reshape_map(dims_of(self.result), dims_of(self.operands[0])),)

    def input_to_output(self) -> tuple[IndexingMap, ...]:
        return (reshape_map(dims_of(self.operands[0]), dims_of(self.result)),)


def _changes_size(op: HloOp, operand: int, result: int, what: str) -> RuleBroken:
    """The message for different numbers of `what` in the operand and in the result."""
    return RuleBroken(
        f"'{op.opcode}' changes the number of {what}",
        f"the operand {type_text(op.operands[0].type)} has {operand}, the result {type_text(op.result.type)} has {result}",
        operand=0,
    )


_REAL = frozenset((Kind.SIGNED, Kind.UNSIGNED, Kind.FLOAT))


@op_definition
class BitcastOp(MoveOp):
    """The same memory seen as another shape, layout, or element type of the same width."""

    name = "hlo.bitcast"

    def verify_(self) -> None:
        operand, result = (prod(dims_of(value)) * element_of(value).bits for value in (self.operands[0], self.result))
        if operand != result and not any(has_dynamic_dims(value.type) for value in (self.operands[0], self.result)):
            raise _changes_size(self, operand, result, "bits")

    @property
    def moved_operands(self) -> Sequence[int]:
        return super().moved_operands if element_of(self.operands[0]) == element_of(self.result) else ()

    @property
    def is_of_scalars(self) -> bool:
        """Whether only element types change: then `evaluate` takes an array of any shape, element by element."""
        return not dims_of(self.operands[0]) and not dims_of(self.result)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        source, target = self.operands[0].type, self.result.type
        if self.is_of_scalars:
            return memory_as(operands[0], source, target)
        in_memory = operands[0].transpose(minor_to_major(source)[::-1]).reshape(-1)
        order = minor_to_major(target)[::-1]
        laid = memory_as(in_memory, self.operands[0].type, target).reshape([dims_of(target)[dim] for dim in order])
        return np.asarray(laid.transpose(np.argsort(order)), order="C")  # `ascontiguousarray` would make a scalar 1-d

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        return (self._map_between(self.result, self.operands[0]),)

    def input_to_output(self) -> tuple[IndexingMap, ...]:
        return (self._map_between(self.operands[0], self.result),)

    def _map_between(self, first: SSAValue, second: SSAValue) -> IndexingMap:
        """From an index of one array to the index of the other for the same memory location."""
        if element_of(first).bits != element_of(second).bits:
            raise self.unsupported("no indexing map between widths")
        return same_place(first.type, second.type)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        source, target = element_of(self.operands[0]), element_of(self.result)
        if source != target and (source.bits != target.bits or not {source.kind, target.kind} <= _REAL):
            raise self.unsupported(
                f"no code from {source.name} to {target.name}", help="supported: integers and floats of one width"
            )
        (value,) = super().emit_element(e)
        if value.type == target.storage_type:
            return (value,)
        return (e.insert(arith.BitcastOp(value, target.storage_type)).result,)


def same_place(first: Attribute, second: Attribute) -> IndexingMap:
    """From an index of one array to the index, for the same memory location, of another array with equally many elements."""
    return bitcast_map(dims_of(first), minor_to_major(first), dims_of(second), minor_to_major(second))


def memory_as(array: Array, source: Attribute, target: Attribute) -> Array:
    """A flat array seen as elements of another type of the same memory size."""
    one, other = element_of(source), element_of(target)
    if one == other:
        return array
    from xla_emitters.dialects.hlo.elementwise import bits_as  # imported here: few bitcasts change the type
    from xla_emitters.library.packing import packed_bytes, unpacked_elements

    array = np.asarray(array, order="C")
    if one.bits != other.bits and min(one.bits, other.bits) < 8:
        shared = packed_bytes(array.view(np.uint8), min(one.bits, 8))
        array, one = unpacked_elements(shared, min(other.bits, 8)), dtype("u8")
    return bits_as(array, one, other)


@op_definition
class TransposeOp(MoveOp):
    """Result dim k is operand dim dimensions[k]."""

    name = "hlo.transpose"
    dimensions = prop_def(DenseArrayBase)

    def verify_shape(self) -> None:
        operand, permutation = dims_of(self.operands[0]), integers(self.dimensions)
        self.expect_dimensions(permutation, len(operand))
        if len(permutation) != len(operand):
            raise RuleBroken(
                f"transpose of {type_text(self.operands[0].type)} with {len(permutation)} dimensions",
                f"dimensions={{...}} is a permutation of 0 to {len(operand) - 1}",
                operand=0,
            )
        self.expect_dims(self.inferred_dims(), "its operand, transposed, has")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        sizes = s.axes(0)
        return [[sizes[dim] for dim in integers(self.dimensions)]]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return np.asarray(operands[0].transpose(integers(self.dimensions)), order="C")

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        return (transpose_map(dims_of(self.result), integers(self.dimensions)),)


@op_definition
class SliceOp(MoveOp):
    """Every stride-th element from start up to, not including, limit, in each dimension."""

    name = "hlo.slice"
    ranges = prop_def(ArrayAttr[DenseArrayBase], prop_name="slice")

    def verify_shape(self) -> None:
        operand, ranges = dims_of(self.operands[0]), rows(self.ranges)
        if len(ranges) != len(operand):
            raise RuleBroken(
                f"slice of {type_text(self.operands[0].type)} with {len(ranges)} ranges",
                f"slice={{[start:limit:stride], ...}} has a range for each of the operand's {len(operand)}",
                operand=0,
            )
        for dim, (start, limit, stride) in enumerate(ranges):
            if not (0 <= start <= limit and stride > 0):
                raise self._outside(dim)
        self.expect_dims(self.inferred_dims(), "its ranges give")

    def _outside(self, dim: int) -> RuleBroken:
        start, limit, stride = rows(self.ranges)[dim]
        return RuleBroken(
            f"slice range [{start}:{limit}:{stride}] is not within dimension {dim}",
            f"the operand is {type_text(self.operands[0].type)}",
            operand=0,
        )

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        found = list[Number]()
        for dim, (size, (start, limit, stride)) in enumerate(zip(s.axes(0), rows(self.ranges), strict=True)):
            said = f"the range [{start}:{{1}}] is not inside axis {dim} of the operand, whose size is {{0}}"
            s.fits(limit, size, partial(self._outside, dim), said)
            found.append(s.ceildiv(limit - start, stride))
        return [found]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return operands[0][tuple(slice(*triple) for triple in rows(self.ranges))].copy()

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        whole = identity_map(dims_of(self.result))
        results = [
            index * stride + start for index, (start, _, stride) in zip(whole.results, rows(self.ranges), strict=True)
        ]
        return (IndexingMap(tuple(results), whole.dims),)


@op_definition
class ReverseOp(MoveOp):
    """The elements in the other direction along some dimensions."""

    name = "hlo.reverse"
    dimensions = prop_def(DenseArrayBase)

    def verify_shape(self) -> None:
        self.expect_dimensions(integers(self.dimensions), len(dims_of(self.operands[0])))
        self.expect_dims(self.inferred_dims(), "its operand has")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [s.axes(0)]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return np.flip(operands[0], integers(self.dimensions)).copy()

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        sizes, reversed_dims = dims_of(self.result), integers(self.dimensions)
        whole = identity_map(sizes)
        results = [
            Expr.constant(sizes[dim] - 1) - index if dim in reversed_dims else index
            for dim, index in enumerate(whole.results)
        ]
        return (IndexingMap(tuple(results), whole.dims),)


@op_definition
class ConcatenateOp(HloOp):
    """The operands one after the other along one dimension."""

    name = "hlo.concatenate"
    OPERANDS: ClassVar = at_least(1)
    MOVED: ClassVar = slice(0, None)
    READS_ONCE: ClassVar = True
    dimensions = prop_def(DenseArrayBase)

    @property
    def dimension(self) -> int:
        return integers(self.dimensions)[0]

    def verify_(self) -> None:
        first = as_array(self.operands[0].type)
        rank = first.get_num_dims()
        self.only_dimension(rank)
        for i, operand in enumerate(self.operands[1:], 1):
            other = as_array(operand.type)
            if other.get_num_dims() != rank or other.element_type != first.element_type:
                raise self._differs(i)
        self.expect_type(array_type(first.element_type, self.inferred_dims()), "its operands give")

    def _differs(self, operand: int) -> RuleBroken:
        return self.arrays_differ(operand, "differ in more than the size along one dimension")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        found = s.axes(0)
        for i in range(1, len(self.operands)):
            for dim, size in enumerate(s.axes(i)):
                if dim == self.dimension:
                    found[dim] = found[dim] + size
                else:
                    found[dim] = s.same(found[dim], size, lambda i=i: self._differs(i))
        return [found]

    @property
    def offsets(self) -> tuple[int, ...]:
        """The start of each operand along the dimension."""
        dimension = self.dimension
        return tuple(accumulate((dims_of(operand)[dimension] for operand in self.operands[:-1]), initial=0))

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return np.concatenate(list(operands), axis=self.dimension)

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        maps = list[IndexingMap]()
        whole = identity_map(dims_of(self.result))
        for operand, offset in zip(self.operands, self.offsets, strict=True):
            index = whole.results[self.dimension]
            inside = Interval(offset, offset + dims_of(operand)[self.dimension] - 1)
            results = (*whole.results[: self.dimension], index - offset, *whole.results[self.dimension + 1 :])
            maps.append(IndexingMap(results, whole.dims, constraints=((index, inside),)))
        return tuple(maps)

    def reads_apart(self, operand: int) -> bool:
        return len(self.operands) > 1

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        offsets = self.offsets

        def among(first: int, end: int) -> Sequence[SSAValue]:
            """The element, which is in one of the operands from `first` to `end`, found by halving."""
            if end - first == 1:
                return (e.operand(first, self._indices_in(e, first, offsets[first])),)
            middle = (first + end) // 2
            offset = constant_index(e.builder, offsets[middle])
            is_before = e.insert(arith.CmpiOp(e.indices[self.dimension], offset, "ult")).result
            return e.branch(is_before, lambda: among(first, middle), lambda: among(middle, end))

        return among(0, len(self.operands))

    def _indices_in(self, e: ElementContext, operand: int, offset: int) -> Sequence[SSAValue]:
        """Indices of the element in an operand.

        The offset is subtracted by an op of its own, not in the map of the access, which would add it last: so the addresses of all
        operands are a pointer plus the same kind of sum, and one load can serve all branches.
        """
        if offset == 0:
            return e.indices
        inside = arith.SubiOp(e.indices[self.dimension], constant_index(e.builder, offset))
        inside.attributes[RANGE_ATTR] = range_attr(0, max(dims_of(self.operands[operand])[self.dimension], 1) - 1)
        index = e.insert(inside).result
        return (*e.indices[: self.dimension], index, *e.indices[self.dimension + 1 :])


def expect_filler(op: HloOp) -> None:
    """raises RuleBroken unless operand 1 of a pad is a scalar of the type of operand 0."""
    operand, filler = (as_array(value.type) for value in op.operands[:2])
    if filler != array_type(operand.element_type, ()):
        raise RuleBroken(
            "the padding value is not a scalar of the operand's type",
            f"it is {type_text(filler)}; the operand is {type_text(operand)}",
            operand=1,
        )


@op_definition
class PadOp(HloOp):
    """The operand with copies of a scalar before, after and between its elements; a negative number removes elements."""

    name = "hlo.pad"
    OPERANDS: ClassVar = range(2, 3)
    MOVED: ClassVar = slice(0, 2)
    READS_ONCE: ClassVar = True
    DEPENDS_ON_SIZES: ClassVar = True
    edges = prop_def(ArrayAttr[DenseArrayBase], prop_name="padding")

    def verify_(self) -> None:
        expect_filler(self)
        operand, edges = as_array(self.operands[0].type), rows(self.edges)
        if len(edges) != operand.get_num_dims() or any(interior < 0 for _, _, interior in edges):
            raise RuleBroken(
                f"padding of {len(edges)} dimensions does not fit {type_text(operand)}",
                "padding= has low_high_interior for each dimension, with x between; interior is not negative",
                operand=0,
            )
        self.expect_type(array_type(operand.element_type, self.inferred_dims()), "its padding gives")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [[padded(s, size, *edges) for size, edges in zip(s.axes(0), rows(self.edges), strict=True)]]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return self.filled(operands[0], operands[1], dims_of(self.result), rows(self.edges))

    @staticmethod
    def filled(x: Array, filler: Array, sizes: Sequence[int], edges: Sequence[tuple[int, ...]]) -> Array:
        """`x` in an array of `sizes` filled with `filler`, by the (low, high, interior) of each dimension."""
        result = np.full(sizes, filler, x.dtype)
        into, out_of = list[slice](), list[slice]()
        for size, whole, (low, _, interior) in zip(x.shape, result.shape, edges, strict=True):
            step = interior + 1
            first = max(0, -(low // step)) if low < 0 else 0
            kept = [i for i in range(first, size) if low + i * step < whole]
            out_of.append(slice(kept[0], kept[-1] + 1) if kept else slice(0, 0))
            into.append(slice(low + kept[0] * step, low + kept[-1] * step + 1, step) if kept else slice(0, 0))
        result[tuple(into)] = x[tuple(out_of)]
        return result

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        sizes = dims_of(self.result)
        whole = identity_map(sizes)
        results, constraints = list[Expr](), list[tuple[Expr, Interval]]()
        for index, size, (low, high, interior) in zip(whole.results, sizes, rows(self.edges), strict=True):
            constraints.append((index, Interval(max(0, low), min(size - 1, size - 1 - high))))
            if interior:
                constraints.append(((index - low) % (interior + 1), Interval(0, 0)))
            results.append((index - low) // (interior + 1))
        return (IndexingMap(tuple(results), whole.dims, constraints=tuple(constraints)), IndexingMap((), whole.dims))

    def input_to_output(self) -> tuple[IndexingMap, ...]:
        whole = identity_map(dims_of(self.operands[0]))
        results = [
            index * (inner + 1) + low for index, (low, _, inner) in zip(whole.results, rows(self.edges), strict=True)
        ]
        inside = [Interval(0, size - 1) for size in dims_of(self.result)]
        of_operand = IndexingMap(tuple(results), whole.dims, constraints=tuple(zip(results, inside, strict=True)))
        return of_operand, super().input_to_output()[1]

    def reads_apart(self, operand: int) -> bool:
        return True

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        index_map, _ = self.output_to_input()
        if index_map.is_known_empty:
            return (e.operand(1, ()),)
        return e.branch(
            constraints_check(e.builder, index_map, e.indices, ()),
            lambda: (e.operand(0, apply_indexing(e.builder, index_map, e.indices)),),
            lambda: (e.operand(1, ()),),
        )


OPS: tuple[type[HloOp], ...] = (
    BroadcastOp,
    ReshapeOp,
    BitcastOp,
    TransposeOp,
    SliceOp,
    ReverseOp,
    ConcatenateOp,
    PadOp,
)
