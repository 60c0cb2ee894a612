"""The pretty forms of the ops of StableHLO, CHLO and MLIR's own dialects, as tables over one grammar.

    name item (',' item)* attributes? ':' types

    item    := value | value '[' ranges ']' | word | key '=' value | key '=' list 'x' list
    types   := type (',' type)* ('->' types)? | '(' types ')' '->' types

    %1 = stablehlo.pad %0, %c, low = [1], high = [1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>

`KEYS` maps a key to its attribute, `WORDS` bare words, in order, to theirs; `stablehlo_parser` reads the few ops that are not lists of
items. Types may be omitted: a single type is that of all operands and of the result, unless the op is in one of the sets below. What
ops of `arith`, `tensor` and `shape` leave out is in `OTHER_TYPES`.
Source: StableHLO's ODS declarations, `assemblyFormat` (https://github.com/openxla/stablehlo/blob/main/stablehlo/dialect/StablehloOps.td).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.types import array_type, as_array, dims_of
from xla_emitters.text.stablehlo.stablehlo_types import INDEX, SHAPE, TRUTH

KEYS: dict[str, dict[str, str]] = {
    "iota": {"dim": "iota_dimension"},
    "dynamic_iota": {"dim": "iota_dimension"},
    "get_dimension_size": {"dim": "dimension"},
    "set_dimension_size": {"dim": "dimension"},
    "concatenate": {"dim": "dimension"},
    "broadcast": {"sizes": "broadcast_sizes"},
    "broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "transpose": {"dims": "permutation"},
    "reverse": {"dims": "dimensions"},
    "pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "dynamic_slice": {"sizes": "slice_sizes"},
    "dot": {"precision": "precision_config"},
    "dot_general": {
        "batching_dims": "batching_dims",
        "contracting_dims": "contracting_dims",
        "precision": "precision_config",
        "algorithm": "algorithm",
    },
    "rng": {"distribution": "rng_distribution"},
    "rng_bit_generator": {"algorithm": "rng_algorithm"},
    "fft": {"type": "fft_type", "length": "fft_length"},
    "cholesky": {"lower": "lower"},
    "reduce_precision": {"format": "format"},
    "einsum": {"config": "einsum_config"},
    "unary_einsum": {"config": "einsum_config"},
    "torch_index_select": {"dim": "dim", "batch_dims": "batch_dims"},
    "top_k": {"k": "k", "largest": "largest"},
    "propagation_barrier": {"allowed_direction": "allowed_direction"},
    "sharding_group": {"group_id": "group_id"},
    "expect_almost_eq": {"tolerance": "tolerance"},
    "expect_almost_eq_const": {"tolerance": "tolerance"},
    "expect_close": dict(zip(*(("min_ulp_difference", "max_ulp_difference"),) * 2, strict=True)),
    "convolution": {"dim_numbers": "dimension_numbers", "window": "window"},
    "dynamic_conv": {"dim_numbers": "dimension_numbers", "window": "window"},
}
"""Key of a pretty form -> its attribute."""

WORDS: dict[str, tuple[str, ...]] = {"compare": ("comparison_direction", "compare_type"), "cmpi": ("predicate",)}
"""Op -> the attributes of the bare words of its pretty form, in order."""

RESULT_TYPES_ONLY = frozenset(
    (
        "after_all",
        "create_token",
        "constant",
        "iota",
        "partition_id",
        "replica_id",
        "rng",
        "tuple",
        "complex",
        "from_elements",
        "const_shape",
    )
)
"""Ops with the types of only the results after the colon."""

SAME_TYPES = frozenset(("optimization_barrier", "while"))
"""Ops whose results have the types of the operands, one by one."""

OPERAND_TYPES_ONLY = frozenset(("return", "print", "assuming_yield", "sharding_group"))
"""Ops without results."""

FORMAT = r"e(\d+)m(\d+)"
"""The format of reduce_precision: bits of the exponent and of the mantissa."""

_Types: TypeAlias = Sequence[Attribute]
_OtherTypes: TypeAlias = Callable[[_Types, int], tuple[_Types, _Types]]


def _of_operands(result: Attribute) -> _OtherTypes:
    """The types are those of the operands; the result's is always the same."""
    return lambda types, count: (types, [result])


def _always(operand: Attribute, result: Attribute) -> _OtherTypes:
    """No type is written."""
    return lambda types, count: ([operand] * count, [result])


NO_TYPES = frozenset(("shape.assuming_all", "shape.const_size", "shape.cstr_require", "shape.index_to_size"))
"""Ops of `OTHER_TYPES` without types."""

OTHER_TYPES: dict[str, _OtherTypes] = {
    "arith.cmpi": lambda types, count: ([*types] * count, [array_type(TRUTH.element_type, dims_of(types[0]))]),
    "arith.select": lambda types, count: ([types[0] if len(types) == 2 else TRUTH, types[-1], types[-1]], types[-1:]),
    "tensor.dim": lambda types, count: ([*types, INDEX], [INDEX]),
    "tensor.extract": lambda types, count: (
        [*types, *[INDEX] * (count - 1)],
        [array_type(as_array(types[0]).element_type, ())],
    ),
    "shape.assuming_all": _always(TRUTH, TRUTH),
    "shape.const_size": _always(INDEX, INDEX),
    "shape.cstr_broadcastable": _of_operands(TRUTH),
    "shape.cstr_eq": _of_operands(TRUTH),
    "shape.cstr_require": _always(TRUTH, TRUTH),
    "shape.from_extent_tensor": _of_operands(SHAPE),
    "shape.from_extents": _of_operands(SHAPE),
    "shape.index_to_size": _always(INDEX, INDEX),
    "shape.is_broadcastable": _of_operands(TRUTH),
    "shape.shape_eq": _of_operands(TRUTH),
    "shape.size_to_index": _of_operands(INDEX),
}
"""Op -> from the types that are written without an arrow, and the number of operands: the types of operands and results."""

VALUE_FIRST = {
    "arith.constant": "value",
    "shape.const_shape": "shape",
    "shape.const_size": "value",
    "shape.const_witness": "passing",
}
"""Ops that begin with the value of an attribute -> the attribute."""
