"""The pretty forms of StableHLO's and CHLO's ops, as tables over one grammar.

    name item (',' item)* attributes? ':' types

    item    := value | value '[' ranges ']' | word | key '=' value | key '=' list 'x' list
    types   := type (',' type)* ('->' types)? | '(' types ')' '->' types

    %1 = stablehlo.pad %0, %c, low = [1], high = [1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>

`KEYS` maps a key to its attribute, `WORDS` bare words, in order, to theirs; `parser` reads the few ops that are not lists of
items. Types may be omitted: a single type is that of all operands and of the result, unless the op is in one of the sets below.
Source: StableHLO's ODS declarations, `assemblyFormat` (https://github.com/openxla/stablehlo/blob/main/stablehlo/dialect/StablehloOps.td).
"""

from __future__ import annotations

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
    "top_k": {"k": "k", "largest": "largest"},
    "expect_almost_eq": {"tolerance": "tolerance"},
    "expect_almost_eq_const": {"tolerance": "tolerance"},
    "expect_close": dict(zip(*(("min_ulp_difference", "max_ulp_difference"),) * 2, strict=True)),
    "convolution": {"dim_numbers": "dimension_numbers", "window": "window"},
    "dynamic_conv": {"dim_numbers": "dimension_numbers", "window": "window"},
}
"""Key of a pretty form -> its attribute."""

WORDS: dict[str, tuple[str, ...]] = {"compare": ("comparison_direction", "compare_type")}
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
    )
)
"""Ops with the types of only the results after the colon."""

SAME_TYPES = frozenset(("optimization_barrier", "while"))
"""Ops whose results have the types of the operands, one by one."""

OPERAND_TYPES_ONLY = frozenset(("return", "print"))
"""Ops without results."""

FORMAT = r"e(\d+)m(\d+)"
"""The format of reduce_precision: bits of the exponent and of the mantissa."""
