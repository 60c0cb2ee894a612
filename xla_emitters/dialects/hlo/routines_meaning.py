"""Values of routines that no library function computes: batch normalisation, select-and-scatter, ragged-dot.

    batch-norm-training   mean and variance of each feature, over all other dimensions; then
                          (x - mean) / sqrt(variance + epsilon) * scale + offset
    select-and-scatter    for each window, adds (by `scatter`) its source to the element that `select` keeps, the first of equal ones
    ragged-dot            a dot for each group of consecutive rows of lhs, with the group's part of rhs; rows of no group give 0. If the
                          ragged dimension is summed over: a result for each group

Batch normalisation is computed in float64 and rounded once. Source: HLO's operation semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xla_emitters.dialects.hlo.base import Call
from xla_emitters.dialects.hlo.called import on_elements
from xla_emitters.dialects.hlo.convert import convert_array, wrap
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.hlo.windows import WindowAttr, visited, window_map
from xla_emitters.dtypes import Array, Kind, dtype


class _Features:
    """A batch normalisation's operands in float64, with one feature per element of the others."""

    def __init__(self, op: RuleOp, operands: Sequence[Array]) -> None:
        element = element_of(op.operands[0])
        self.element = element
        self.arrays = [convert_array(array, element, dtype("f64")) for array in operands]
        self.feature, self.epsilon = op.number("feature_index"), float(np.float32(op.word("epsilon")))  # an f32 in HLO
        self.others = tuple(dim for dim in range(operands[0].ndim) if dim != self.feature)
        self.along = [-1 if dim == self.feature else 1 for dim in range(operands[0].ndim)]

    def placed(self, values: Array) -> Array:
        """One value per feature, along the operand's dimension of features."""
        return values.reshape(self.along)

    def normalised(self, mean: Array, variance: Array) -> Array:
        return (self.arrays[0] - self.placed(mean)) / np.sqrt(self.placed(variance) + self.epsilon)

    def rounded(self, *arrays: Array) -> tuple[Array, ...]:
        return tuple(convert_array(array, dtype("f64"), self.element) for array in arrays)


def batch_norm_training(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """(normalised, mean, variance)."""
    f = _Features(op, operands)
    x, scale, offset = f.arrays
    mean, variance = x.mean(f.others), x.var(f.others)
    return f.rounded(f.normalised(mean, variance) * f.placed(scale) + f.placed(offset), mean, variance)


def batch_norm_inference(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """Normalised by a given mean and variance."""
    f = _Features(op, operands)
    _, scale, offset, mean, variance = f.arrays
    return f.rounded(f.normalised(mean, variance) * f.placed(scale) + f.placed(offset))[0]


def batch_norm_grad(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """The gradients of operand, scale and offset, from that of the result."""
    f = _Features(op, operands)
    _, scale, mean, variance, slope = f.arrays
    normalised = f.normalised(mean, variance)
    of_scale, of_offset = (slope * normalised).sum(f.others), slope.sum(f.others)
    count = slope.size // max(1, scale.size)
    centred = slope - f.placed(of_offset / count) - normalised * f.placed(of_scale / count)
    of_operand = f.placed(scale) / np.sqrt(f.placed(variance) + f.epsilon) * centred
    return f.rounded(of_operand, of_scale, of_offset)


def select_and_scatter(op: RuleOp, operands: Sequence[Any], call: Call) -> Array:
    """The operand's shape: the initial value, and the sources at the elements that windows select."""
    array, source, init = operands
    (select,), (scatter,) = op.symbols("select"), op.symbols("scatter")
    keeps, combine = on_elements(op, select, call), on_elements(op, scatter, call)
    window = op.properties["window"]
    assert isinstance(window, WindowAttr)
    shape: tuple[int, ...] = source.shape
    visits = list(visited(shape, window_map(window.data, array.shape)))
    chosen, number = np.zeros(shape, array.dtype), np.full(shape, -1)
    for k, (inside, (at,)) in enumerate(visits):
        value = array[at]
        takes = np.zeros(shape, np.bool_)
        takes[inside] = (number[inside] < 0) | ~keeps([chosen[inside], value])[0]
        chosen[takes], number[takes] = value[takes[inside]], k
    found = np.full(array.shape, init, source.dtype)
    for k, (inside, (at,)) in enumerate(visits):
        # At one offset, two windows select two different elements.
        selects = number == k
        taken = tuple(part[selects[inside]] for part in at)
        found[taken] = combine([found[taken], source[selects]])[0]
    return found


def ragged_dot(op: RuleOp, operands: Sequence[Any], call: Call) -> Array:
    """The groups are ranges of the ragged dimension, one after the other; what lies outside of the dimension is left out."""
    lhs_batch, rhs_batch = op.numbers("lhs_batch_dims"), op.numbers("rhs_batch_dims")
    lhs_summed, rhs_summed = op.numbers("lhs_contracting_dims"), op.numbers("rhs_contracting_dims")
    (ragged,), groups = op.numbers("lhs_ragged_dims"), op.numbers("rhs_group_dims")
    element = element_of(op.result)
    held = dtype("f32") if element.kind is Kind.FLOAT and element.bits < 32 else element
    lhs, rhs = (
        convert_array(array, element_of(operand), held).astype(np.int64 if held.is_integer else held.numpy)
        for array, operand in zip(operands[:2], op.operands, strict=False)
    )
    if operands[2].ndim != 1:
        raise op.unsupported("no value for group sizes that differ along another dimension")
    ends = np.cumsum(operands[2].astype(np.int64)).clip(0)
    starts = (ends - operands[2]).clip(0)
    labels = list(range(lhs.ndim)), list(range(lhs.ndim, lhs.ndim + rhs.ndim))
    for a, b in (*zip(lhs_batch, rhs_batch, strict=True), *zip(lhs_summed, rhs_summed, strict=True)):
        labels[1][b] = a
    free = [dim for dim in range(lhs.ndim) if dim not in (*lhs_batch, *lhs_summed)]
    kept = [label for label in labels[1] if label >= lhs.ndim and label != lhs.ndim + (groups[0] if groups else -1)]
    result = [*lhs_batch, *free, *kept]

    def part(array: Array, dim: int, start: int, end: int) -> Array:
        return array[(slice(None),) * dim + (slice(start, end),)]

    if ragged in lhs_batch:
        found = np.einsum(lhs, labels[0], rhs, labels[1], result)
    elif ragged in lhs_summed:
        other = rhs_summed[lhs_summed.index(ragged)]
        parts = [
            np.einsum(part(lhs, ragged, *ends_of), labels[0], part(rhs, other, *ends_of), labels[1], result)
            for ends_of in zip(starts, ends, strict=True)
        ]
        found = np.stack(parts) if parts else np.zeros(op.inferred_dims(), lhs.dtype)
    else:
        found, along = np.zeros(op.inferred_dims(), lhs.dtype), result.index(ragged)
        of_group = [label for label in labels[1] if label != lhs.ndim + groups[0]]
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            its = np.take(rhs, number, axis=groups[0])
            part(found, along, start, end)[...] = np.einsum(
                part(lhs, ragged, start, end), labels[0], its, of_group, result
            )
    return convert_array(wrap(found, held) if held.is_integer else found, held, element)
