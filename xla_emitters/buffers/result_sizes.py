"""The sizes of a result as code: a rule per op of `hlo` computes the size along one dimension from the sizes of its operands.

    add           the operand's                        concatenate            the sum along its dimension
    dot           batch, lhs free, rhs free            dynamic_reshape        the element of the shape operand
    reduce        of the dimensions that are kept      pad, convolution       arithmetic on the operand's

Only sizes that the result's type leaves unknown are computed. An op without a rule is refused by name if its type has `?`.
Whether the operands' shapes fit each other is not checked here: the runtime does (`runtime/ral`).
Source: StableHLO specification, the constraints of each op's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from xla_emitters.buffers.index_code import IndexCode, Number
from xla_emitters.dialects.hlo.backend_configs import shape_operands, target_of
from xla_emitters.dialects.hlo.base import HloOp, integer, integers
from xla_emitters.dialects.hlo.contractions import ConvolutionOp, DotOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicConvOp, DynamicReduceWindowOp, DynamicReshapeOp
from xla_emitters.dialects.hlo.elementwise import BitcastConvertOp, ElementwiseOp
from xla_emitters.dialects.hlo.gather_scatter import GatherOp
from xla_emitters.dialects.hlo.reductions import ReduceWindowOp
from xla_emitters.dialects.hlo.routines import ragged_dot_places
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import PadOp, rows
from xla_emitters.dialects.hlo.types import UNBOUNDED, as_array, dims_of, leaf_types
from xla_emitters.dialects.hlo.windows import WindowDim


class Sizing:
    """Input of a rule: one array of the op's result.

    op       on tensors
    buffers  those of its operands
    leaf     number of the array in the result
    """

    def __init__(self, op: HloOp, buffers: Sequence[SSAValue], leaf: int, code: IndexCode) -> None:
        self.op, self.buffers, self.leaf, self.code = op, buffers, leaf, code
        self.dims = as_array(leaf_types(op.result.type)[leaf]).get_shape()

    def of(self, operand: int, dim: int) -> Number:
        """The size of an operand."""
        return self.code.dim(self.buffers[operand], dim)

    def held(self, operand: int, *indices: int) -> Number:
        """The element of an operand at these indices, as a number."""
        return self.code.element(self.buffers[operand], indices)

    def numbers(self, name: str) -> tuple[int, ...]:
        """The property's list of numbers."""
        return integers(self.op.properties.get(name))

    def sizes(self) -> list[Number]:
        """All sizes of the array. raises Unsupported naming the op."""
        return [size if size != UNBOUNDED else self._unknown(dim) for dim, size in enumerate(self.dims)]

    def _unknown(self, dim: int) -> Number:
        found = None
        if isinstance(self.op, ElementwiseOp):
            found = _elementwise(self, dim)
        elif (rule := RULES.get(self.op.opcode)) is not None:
            found = rule(self, dim)
        if found is None:
            target = target_of(self.op)
            called = f" of '{target}'" if target else ""
            raise self.op.unsupported(
                f"no rule for the size of dimension {dim} of the result{called}",
                help=TAKES_SIZES.get(self.op.opcode, ""),
            )
        return found


Rule: TypeAlias = Callable[[Sizing, int], Number | None]
"""(Sizing, dimension of the result) -> its size; None if it does not follow from the operands."""


def result_sizes(op: HloOp, buffers: Sequence[SSAValue], leaf: int, code: IndexCode) -> list[Number]:
    """The sizes of one array of the result of `op`, as code where `code` inserts.

    buffers  of the operands
    raises   Unsupported for an op that has no rule, and for sizes that do not follow
    """
    return Sizing(op, buffers, leaf, code).sizes()


TAKES_SIZES: Mapping[str, str] = {
    "custom-call": "indices_of_shape_operands names the operand that lists the sizes",
    "reshape": "stablehlo.dynamic_reshape takes the sizes as a value",
    "rng-bit-generator": "the custom call stablehlo.dynamic_rng_bit_generator takes the sizes as a value",
}
"""Opcode -> how a text gives the sizes that its operands do not."""


def _elementwise(s: Sizing, dim: int) -> Number | None:
    """The size of the first operand of the same rank; a size known from some operand's type comes first."""
    if isinstance(s.op, BitcastConvertOp):
        return s.of(0, dim) if dim < len(dims_of(s.op.operands[0])) else None
    fitting = [i for i, value in enumerate(s.op.operands) if len(dims_of(value)) == len(s.dims)]
    known = [i for i in fitting if dims_of(s.op.operands[i])[dim] != UNBOUNDED]
    return s.of((known or fitting)[0], dim)


def _like(operand: int) -> Rule:
    return lambda s, dim: s.of(operand, dim)


def _like_array(s: Sizing, dim: int) -> Number:
    return s.of(s.leaf, dim)


def _list(operand: int) -> Rule:
    """The sizes are the elements of an operand."""
    return lambda s, dim: s.held(operand, dim)


def _listed(s: Sizing, dim: int) -> Number | None:
    """The element of the custom call's operand that lists the sizes of this result, if it has one."""
    shapes = shape_operands(s.op)
    return s.held(shapes[s.leaf], dim) if shapes else None


def _broadcast(s: Sizing, dim: int) -> Number | None:
    dimensions = s.numbers("dimensions")
    return s.of(0, dimensions.index(dim)) if dim in dimensions else None


def _transpose(s: Sizing, dim: int) -> Number:
    return s.of(0, s.numbers("dimensions")[dim])


def _reshape(s: Sizing, dim: int) -> Number | None:
    """The one unknown size: number of all elements, divided by the product of the known sizes."""
    known = [size for size in s.dims if size != UNBOUNDED]
    if len(known) != len(s.dims) - 1 or 0 in known:
        return None
    elements = s.code.product([s.of(0, i) for i in range(len(dims_of(s.op.operands[0])))])
    return s.code.divide(elements, s.code.product(known))


def _dynamic_reshape(s: Sizing, dim: int) -> Number:
    assert isinstance(s.op, DynamicReshapeOp)
    return s.held(1, dim) if s.op.takes_list else s.held(1 + dim)


def _concatenate(s: Sizing, dim: int) -> Number:
    if dim not in s.numbers("dimensions"):
        return s.of(0, dim)
    total: Number = 0
    for operand in range(len(s.buffers)):
        total = s.code.add(total, s.of(operand, dim))
    return total


def _padded(s: Sizing, size: Number, low: Number, high: Number, interior: Number) -> Number:
    """low + high + size + max(size - 1, 0) * interior."""
    code = s.code
    between = 0 if interior == 0 else code.multiply(code.maximum(code.subtract(size, 1), 0), interior)
    return code.add(code.add(code.add(size, between), low), high)


def _pad(s: Sizing, dim: int) -> Number:
    assert isinstance(s.op, PadOp)
    return _padded(s, s.of(0, dim), *rows(s.op.edges)[dim])


def _dynamic_pad(s: Sizing, dim: int) -> Number:
    return _padded(s, s.of(0, dim), s.held(2, dim), s.held(3, dim), s.held(4, dim))


def _real_dynamic_slice(s: Sizing, dim: int) -> Number:
    """ceil((limit - start) / stride), in a form that no stride makes wrap around."""
    start, limit, stride = (s.held(operand, dim) for operand in (1, 2, 3))
    code = s.code
    return code.add(code.divide(code.subtract(code.subtract(limit, start), 1), stride), 1)


def _dot(s: Sizing, dim: int) -> Number:
    assert isinstance(s.op, DotOp)
    pairing = s.op.pairing
    ranks = [len(dims_of(value)) for value in s.op.operands[:2]]
    taken = (pairing.lhs_batch + pairing.lhs_contracting, pairing.rhs_batch + pairing.rhs_contracting)
    places = [(0, i) for i in pairing.lhs_batch]
    places += [(0, i) for i in range(ranks[0]) if i not in taken[0]]
    places += [(1, i) for i in range(ranks[1]) if i not in taken[1]]
    return s.of(*places[dim])


def _ragged_dot(s: Sizing, dim: int) -> Number:
    assert isinstance(s.op, RuleOp)
    return s.of(*ragged_dot_places(s.op)[dim])


class _Along:
    """A window along one dimension, as `WindowDim`, with numbers that may be values."""

    def __init__(
        self, size: Number, stride: Number, low: Number, high: Number, base: Number = 1, window: Number = 1
    ) -> None:
        self.size, self.stride, self.low, self.high, self.base, self.window = size, stride, low, high, base, window

    @staticmethod
    def of(dim: WindowDim) -> _Along:
        return _Along(dim.size, dim.stride, dim.low, dim.high, dim.base_dilation, dim.window_dilation)

    def places(self, elements: Number, code: IndexCode) -> Number:
        """Number of positions of the window: max(0, (padded - reach) div stride + 1), as `WindowDim.output_size`."""
        spread = elements
        if self.base != 1:
            between = code.multiply(code.subtract(elements, 1), self.base)
            spread = code.maximum(code.add(between, 1), 0)
        padded = code.add(code.add(spread, self.low), self.high)
        reach = code.add(code.multiply(code.subtract(self.size, 1), self.window), 1)
        return code.maximum(code.add(code.divide(code.subtract(padded, reach), self.stride), 1), 0)


def _reduce_window(s: Sizing, dim: int) -> Number:
    assert isinstance(s.op, ReduceWindowOp)
    return _Along.of(s.op.window.data.dims[dim]).places(s.of(0, dim), s.code)


def _dynamic_reduce_window(s: Sizing, dim: int) -> Number:
    """As reduce_window; the window's numbers are values."""
    assert isinstance(s.op, DynamicReduceWindowOp)
    first = 2 * s.op.count
    size, stride, base, window = (s.held(first + i, dim) for i in range(4))
    low, high = (s.held(first + 4, dim, side) for side in (0, 1))
    return _Along(size, stride, low, high, base, window).places(s.of(0, dim), s.code)


def _convolution(s: Sizing, dim: int) -> Number:
    """Batch of the image, output features of the kernel, positions of the kernel in the image."""
    assert isinstance(s.op, ConvolutionOp | DynamicConvOp)
    in_image, in_kernel, in_result = s.op.dim_labels.data.replace("->", "_").split("_")
    label = in_result[dim]
    if label == "f":
        return s.of(1, in_kernel.index("o"))
    size = s.of(0, in_image.index(label))
    if label == "b":
        groups = s.op.batch_group_count
        return size if groups is None else s.code.divide(size, groups.value.data)
    along = _Along.of(s.op.window.data.dims[int(label)] if s.op.window else WindowDim(1))
    along.size = s.of(1, in_kernel.index(label))
    if isinstance(s.op, DynamicConvOp):
        along.low, along.high = (s.held(2, int(label), side) for side in (0, 1))
    return along.places(size, s.code)


def _gather(s: Sizing, dim: int) -> Number:
    """The dimensions of a slice at offset_dims, those of the indices at the others, in order."""
    offsets, along = s.numbers("offset_dims"), integer(s.op.properties["index_vector_dim"])
    if dim in offsets:
        dropped = {*s.numbers("collapsed_slice_dims"), *s.numbers("operand_batching_dims")}
        kept = [i for i in range(len(dims_of(s.op.operands[0]))) if i not in dropped]
        at = kept[offsets.index(dim)]
        return s.numbers("slice_sizes")[at] if isinstance(s.op, GatherOp) else s.held(2, at)
    places = [i for i in range(len(dims_of(s.op.operands[1]))) if i != along]
    return s.of(1, places[[i for i in range(len(s.dims)) if i not in offsets].index(dim)])


def _reduce(s: Sizing, dim: int) -> Number:
    reduced = s.numbers("dimensions")
    return s.of(0, [i for i in range(len(dims_of(s.op.operands[0]))) if i not in reduced][dim])


def _set_size(s: Sizing, dim: int) -> Number:
    """The given number, along the dimension that is set; the runtime checks that it is at most the old size."""
    return s.held(1) if dim in s.numbers("dimensions") else s.of(0, dim)


def _batch_norm(s: Sizing, dim: int) -> Number:
    """As the operand; the results after it have one element per feature."""
    assert isinstance(s.op, RuleOp)
    return s.of(0, dim if s.leaf == 0 else s.op.number("feature_index"))


def _leading(operand: int, last: Rule | None) -> Rule:
    """As an operand, except for the last dimension."""

    def rule(s: Sizing, dim: int) -> Number | None:
        if dim < len(s.dims) - 1:
            return s.of(operand, dim)
        return None if last is None else last(s, dim)

    return rule


RULES: Mapping[str, Rule] = {
    "batch-norm-grad": _batch_norm,
    "batch-norm-inference": _batch_norm,
    "batch-norm-training": _batch_norm,
    "broadcast": _broadcast,
    "cholesky": _like(0),
    "concatenate": _concatenate,
    "convolution": _convolution,
    "custom-call": _listed,
    "d2h": _like(0),
    "dot": _dot,
    "dynamic-broadcast-in-dim": _list(1),
    "dynamic-conv": _convolution,
    "dynamic-gather": _gather,
    "dynamic-iota": _list(0),
    "dynamic-pad": _dynamic_pad,
    "dynamic-reduce-window": _dynamic_reduce_window,
    "dynamic-reshape": _dynamic_reshape,
    "dynamic-rng": _list(2),
    "dynamic-rng-bit-generator": _list(1),
    "dynamic-top-k": _leading(0, lambda s, dim: s.held(1)),
    "dynamic-update-slice": _like(0),
    "fft": _leading(0, None),
    "gather": _gather,
    "h2d": _like(0),
    "map": _like(0),
    "pad": _pad,
    "ragged-dot": _ragged_dot,
    "real-dynamic-slice": _real_dynamic_slice,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "reshape": _reshape,
    "reverse": _like(0),
    "scatter": _like_array,
    "select-and-scatter": _like(0),
    "set-dimension-size": _set_size,
    "sort": _like_array,
    "topk": _leading(0, None),
    "transpose": _transpose,
    "triangular-solve": _like(1),
}
