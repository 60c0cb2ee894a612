"""The ops of StableHLO and HLO's opcodes: one row an op, for both directions; and the printed forms of ops that are read by rules.

    stablehlo.transpose %x, dims = [1, 0]                             transpose(%x), dimensions={1,0}

    PRINTED["transpose"]    ("stablehlo.transpose", op -> {"permutation": "array<i64: 1, 0>"}, ())
    PRINTED["reduce"]       ("stablehlo.reduce", op -> {"dimensions": "array<i64: 1>"}, ("to_apply",))

A row states the opcode, the attributes and the regions. The reader's rule of an op (`TABLE_RULES`) and its printed form are made from it;
`stablehlo_printer` adds operands and types. Ops whose conversion needs more than a row are read by functions in `rules`, `region_rules` and
`contractions`. Tuples, loops, branches and calls are not printed by this table; the printer handles them.
Source: StableHLO specification (https://openxla.org/stablehlo/spec); docs/reference/1 6.8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.backend_configs import SHAPES, shape_operands
from xla_emitters.dialects.hlo.base import HloOp, integers, opcode_of
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.elementwise import ROWS, BitcastConvertOp, ComplexOp, ConvertOp, SelectOp
from xla_emitters.dialects.hlo.shape_ops import rows
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of, element_of, is_array, one_or_tuple
from xla_emitters.dialects.isa import isa
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.fields import (
    CHANNEL,
    COMPARED,
    GATHER,
    GENERATOR,
    GLOBAL_IDS,
    GROUPS,
    NORM,
    PAIRS,
    SCATTER,
    SORTED,
    Field,
    Properties,
    Texts,
    columns,
    dimension,
    enum_text,
    lists,
    number,
    number_of,
    numbers_text,
    optional_lists,
    truth,
    word,
    word_of,
)
from xla_emitters.text.stablehlo.stablehlo_contractions import (
    DOT,
    SELECTING,
    SLIDING,
    convolution_text,
    dynamic_conv_text,
)
from xla_emitters.text.stablehlo.stablehlo_lexer import quoted
from xla_emitters.text.stablehlo.stablehlo_literals import literal_text
from xla_emitters.text.stablehlo.stablehlo_types import stablehlo_type

CHLO_OPCODES = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "mulhi", "sinh")
"""The elementwise opcodes of HLO that are in CHLO and not in StableHLO."""

_CLASSES = (BitcastConvertOp, ComplexOp, ConvertOp, SelectOp)
_OPCODES = (*(row.opcode for row in ROWS), *map(opcode_of, _CLASSES))
# clamp has a row: its bounds may be scalars.
ELEMENTWISE = {name.replace("-", "_"): name for name in _OPCODES if name not in (*CHLO_OPCODES, "clamp")}
"""Elementwise ops that exist in HLO -> HLO's opcode."""

# -------------------------------------------------------------------------------------------------------- types of results

ResultType: TypeAlias = Callable[[Conversion, Properties], Attribute]


def _as_written(c: Conversion, _: Properties) -> Attribute:
    return one_or_tuple(c.types)


def _one(c: Conversion, _: Properties) -> Attribute:
    return c.type


def _of_known_sizes(c: Conversion, _: Properties) -> Attribute:
    if UNBOUNDED in dims_of(c.type):
        raise c.wrong(f"'{c.op.name}' has a result of known sizes", "dynamic_iota takes sizes as a value")
    return c.type


def _sliced(c: Conversion, properties: Properties) -> Attribute:
    found = properties["slice"]
    assert isa(found, ArrayAttr[Attribute])
    return _known(
        c.type, [-(-(limit - start) // step) if step > 0 else UNBOUNDED for start, limit, step in rows(found)]
    )


def _of_slice_sizes(c: Conversion, properties: Properties) -> Attribute:
    return _known(c.type, integers(properties["dynamic_slice_sizes"]))


def _known(ir_type: Attribute, sizes: Sequence[int]) -> Attribute:
    """The type of an array whose sizes the attributes give, with these where the text has `?`."""
    if not is_array(ir_type) or len(dims_of(ir_type)) != len(sizes) or UNBOUNDED not in dims_of(ir_type):
        return ir_type
    known = [given if said == UNBOUNDED else said for said, given in zip(dims_of(ir_type), sizes, strict=True)]
    return array_type(as_array(ir_type).element_type, known)


# ------------------------------------------------------------------------------------------------------------------ the table


@dataclass(frozen=True)
class OpRow:
    """An op of both texts.

    opcode    in HLO
    fields    the attributes, in the order in which they are printed
    regions   for each region: HLO's property, and the word for the region in messages and names
    operands  their number, if the reader checks it
    result    its type, from the text and HLO's properties
    applies   whether the text may name the op that combines two elements, `applies stablehlo.add`, in place of the region
    """

    opcode: str
    fields: tuple[Field, ...] = ()
    regions: tuple[tuple[str, str], ...] = ()
    operands: int | None = None
    result: ResultType = _as_written
    applies: bool = False

    def text(self, op: HloOp) -> Texts:
        """StableHLO's attributes of an op."""
        return {key: text for field in self.fields for key, text in field.text(op).items()}


_REDUCER = (("to_apply", "reducer"),)
_SLICED = columns("slice", ("start_indices", "limit_indices", "strides"), "the starts, limits and strides of a slice")
_PADDED = columns(
    "padding", ("edge_padding_low", "edge_padding_high", "interior_padding"), "low, high and interior of a pad"
)

OP_ROWS: dict[str, OpRow] = {
    "compare": OpRow(
        "compare", (word("comparison_direction", "direction", "comparison_direction"), COMPARED), operands=2
    ),
    "reduce_precision": OpRow("reduce-precision", (number("exponent_bits", "i32"), number("mantissa_bits", "i32"))),
    "clamp": OpRow("clamp", operands=3, result=_one),
    "iota": OpRow("iota", (number("iota_dimension"),), result=_of_known_sizes),
    "reshape": OpRow("reshape"),
    "transpose": OpRow("transpose", (lists("permutation", "dimensions"),)),
    "reverse": OpRow("reverse", (lists("dimensions", "dimensions"),)),
    "concatenate": OpRow("concatenate", (dimension(),)),
    "slice": OpRow("slice", (_SLICED,), result=_sliced),
    "pad": OpRow("pad", (_PADDED,), result=_one),
    "dynamic_slice": OpRow("dynamic-slice", (lists("slice_sizes", "dynamic_slice_sizes"),), result=_of_slice_sizes),
    "dot_general": OpRow("dot", DOT, operands=2, result=_one),
    "get_tuple_element": OpRow("get-tuple-element", (number("index"),), result=_one),
    "gather": OpRow("gather", (*GATHER, lists("slice_sizes", "slice_sizes")), operands=2),
    "dynamic_gather": OpRow("dynamic-gather", GATHER, operands=3),
    "scatter": OpRow("scatter", SCATTER, (("to_apply", "combiner"),)),
    "reduce": OpRow("reduce", (lists("dimensions", "dimensions"),), _REDUCER, applies=True),
    "reduce_window": OpRow("reduce-window", (SLIDING,), _REDUCER, applies=True),
    "select_and_scatter": OpRow(
        "select-and-scatter", (SELECTING,), (("select", "select"), ("scatter", "scatter")), operands=3, result=_one
    ),
    "sort": OpRow("sort", (SORTED, truth("is_stable")), (("to_apply", "comparator"),)),
    "map": OpRow("map", (lists("dimensions", "dimensions"),), (("to_apply", "computation"),)),
    "get_dimension_size": OpRow("get-dimension-size", (dimension(),)),
    "set_dimension_size": OpRow("set-dimension-size", (dimension(),)),
    "dynamic_broadcast_in_dim": OpRow(
        "dynamic-broadcast-in-dim",
        (
            lists("broadcast_dimensions", "dimensions"),
            optional_lists("known_expanding_dimensions", "known_expanding"),
            optional_lists("known_nonexpanding_dimensions", "known_nonexpanding"),
        ),
        operands=2,
    ),
    "dynamic_iota": OpRow("dynamic-iota", (number("iota_dimension"),), operands=1),
    "partition_id": OpRow("partition-id"),
    "replica_id": OpRow("replica-id"),
    "rng_bit_generator": OpRow("rng-bit-generator", (GENERATOR,), operands=1),
    "fft": OpRow("fft", (word("fft_type", "fft_type", "fft_type"), lists("fft_length", "fft_length"))),
    "cholesky": OpRow("cholesky", (truth("lower"),)),
    "triangular_solve": OpRow(
        "triangular-solve",
        (
            *map(truth, ("left_side", "lower", "unit_diagonal")),
            word("transpose_a", "transpose_a", "transpose", "NO_TRANSPOSE"),
        ),
    ),
    "batch_norm_training": OpRow("batch-norm-training", NORM),
    "batch_norm_inference": OpRow("batch-norm-inference", NORM),
    "batch_norm_grad": OpRow("batch-norm-grad", NORM),
    "all_reduce": OpRow("all-reduce", (*GROUPS, GLOBAL_IDS), _REDUCER),
    "all_gather": OpRow("all-gather", (*GROUPS, GLOBAL_IDS, dimension("all_gather_dim"))),
    "reduce_scatter": OpRow("reduce-scatter", (*GROUPS, GLOBAL_IDS, dimension("scatter_dimension")), _REDUCER),
    "collective_broadcast": OpRow("collective-broadcast", GROUPS),
    "collective_permute": OpRow("collective-permute", (PAIRS, CHANNEL)),
}
"""StableHLO's op -> its row."""


TARGET_ROWS: dict[str, OpRow] = {
    "stablehlo.dynamic_rng_bit_generator": OpRow("dynamic-rng-bit-generator", (GENERATOR,)),
    "stablehlo.dynamic_top_k": OpRow("dynamic-top-k"),
}
"""Target of a custom call -> its row."""


def all_results(
    c: Conversion, opcode: str, operands: Sequence[SSAValue] | None = None, /, **properties: Attribute | None
) -> SSAValue | Sequence[SSAValue]:
    """Adds an op with these results, and the same operands if none are given: a tuple's elements are the results, if they are not one."""
    found = c.add(opcode, c.operands if operands is None else operands, one_or_tuple(c.types), **properties)
    return found if len(c.types) == 1 else c.elements(found, len(c.types))


def rule_of(row: OpRow) -> Rule:
    """The reader's rule of an op in the table."""

    def rule(c: Conversion) -> SSAValue | Sequence[SSAValue]:
        if row.operands is not None:
            c.expect_operands(row.operands)
        properties: Properties = {name: value for field in row.fields for name, value in field.read(c).items()}
        ir_type = row.result(c, properties)
        if row.applies and "applies" in c.attributes:
            properties["to_apply"] = _applied(c)
        else:
            for (name, what), region in zip(row.regions, c.expect_regions(len(row.regions)), strict=True):
                properties[name] = c.scalars(region, what)
        found = c.add(row.opcode, c.operands, ir_type, **properties)
        return found if len(c.types) == 1 else c.elements(found, len(c.types))

    return rule


def _applied(c: Conversion) -> SymbolRefAttr:
    """The computation of the op that a reduction applies."""
    opcode = ELEMENTWISE.get(c.attributes.string("applies").rpartition(".")[2])
    if opcode is None or not c.operands:
        raise c.attributes.wrong("applies", "an elementwise op of two operands such as stablehlo.add")
    scalar = array_type(as_array(c.operands[-1].type).element_type, ())
    return c.module.scalar_computation(opcode, scalar, c.op.token)


TABLE_RULES: Mapping[str, Rule] = {name: rule_of(row) for name, row in OP_ROWS.items()}

# ------------------------------------------------------------------------------------------------------------------- text

API_VERSIONS = (
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)
LAYOUTS = ("operand_layouts", "result_layouts", "output_operand_aliases")


def is_kept_attribute(key: str) -> bool:
    """Whether an attribute belongs to a dialect that we print. Shardings do not: they name meshes, which are not printed."""
    return "." in key and not key.startswith("sdy.")


def _none(op: HloOp) -> Texts:
    return {}


def _constant(op: HloOp) -> Texts:
    value = op.properties.get("value")
    if value is None:
        return {"value": f"dense_resource<__elided__> : {stablehlo_type(op.result.type)}"}
    if not is_dense(value):
        raise op.unsupported("no StableHLO of a literal that is a tuple")
    return {"value": literal_text(undense(value), element_of(op.result))}


def _distribution(op: HloOp) -> Texts:
    return {"rng_distribution": enum_text("rng_distribution", word_of(op, "distribution").removeprefix("rng_").upper())}


def _top_k(op: HloOp) -> Texts:
    if not number_of(op, "largest", 1):
        raise op.unsupported("no StableHLO for the smallest elements")
    return {"k": f"{number_of(op, 'k')} : i64"}


def _target(target: str) -> Texts:
    return {"call_target_name": json.dumps(target), "api_version": "2 : i32"}


def _assertion(op: HloOp) -> Texts:
    message = quoted(word_of(op, "message"))
    return _target("shape_assertion") | {"error_message": message, "has_side_effect": "true"}


def _custom_call(op: HloOp) -> Texts:
    found = {
        "call_target_name": word_of(op, "custom_call_target"),
        "api_version": f"{API_VERSIONS.index(version) + 1 if (version := word_of(op, 'api_version')) else 1} : i32",
        "has_side_effect": "true" if number_of(op, "custom_call_has_side_effect") else "false",
    }
    config = op.attributes.get("backend_config")
    if isinstance(config, StringAttr):
        found["backend_config"] = quoted(str(json.loads(config.data)) if config.data.startswith('"') else config.data)
    for key, value in op.attributes.items():
        if isinstance(value, StringAttr) and (is_kept_attribute(key) or key in LAYOUTS):
            found[key] = value.data
    if shapes := shape_operands(op):
        found[SHAPES] = numbers_text(np.asarray(shapes))
    return found


def _all_to_all(op: HloOp) -> Texts:
    groups = op.properties.get("replica_groups")
    count = len(integers(groups.data[0])) if isa(groups, ArrayAttr[DenseArrayBase]) and groups.data else 1
    return {
        **{key: text for field in GROUPS for key, text in field.text(op).items()},
        **dimension("split_dimension").text(op),
        **dimension("concat_dimension").text(op),
        "split_count": f"{count} : i64",
    }


Row: TypeAlias = tuple[str, Callable[[HloOp], Texts], tuple[str, ...]]


def _row(name: str, attributes: Callable[[HloOp], Texts] = _none, *regions: str) -> Row:
    """An op's name, its attributes, and the properties that name the computations of its regions."""
    return f"stablehlo.{name}", attributes, regions


PRINTED: dict[str, Row] = {
    **{opcode: _row(name) for name, opcode in ELEMENTWISE.items()},
    **{name: (f"chlo.{name}", _none, ()) for name in CHLO_OPCODES},
    **{row.opcode: _row(name, row.text, *(key for key, _ in row.regions)) for name, row in OP_ROWS.items()},
    **{
        row.opcode: _row("custom_call", lambda op, target=target, row=row: _target(target) | row.text(op))
        for target, row in TARGET_ROWS.items()
    },
    "constant": _row("constant", _constant),
    "broadcast": _row("broadcast_in_dim", lists("broadcast_dimensions", "dimensions").text),
    "convolution": _row("convolution", convolution_text),
    "opt-barrier": _row("optimization_barrier"),
    "after-all": _row("after_all"),
    "all-to-all": _row("all_to_all", _all_to_all),
    "topk": ("chlo.top_k", _top_k, ()),
    "custom-call": _row("custom_call", _custom_call),
    "dynamic-conv": _row("dynamic_conv", dynamic_conv_text),
    "dynamic-reduce-window": _row("custom_call", lambda op: _target("stablehlo.dynamic_reduce_window")),
    "dynamic-rng": _row("rng", _distribution),
    "shape-assertion": _row("custom_call", _assertion),
    "print": _row(
        "custom_call", lambda op: _target("print") | {"name": quoted(word_of(op, "label")), "has_side_effect": "true"}
    ),
}
"""Opcode -> its StableHLO form."""


def row_of(op: HloOp) -> Row | None:
    """How an op is written in StableHLO; None for one that StableHLO lacks."""
    return PRINTED.get(op.opcode) or (_row(op.opcode.replace("-", "_")) if op.IN_STABLEHLO else None)
