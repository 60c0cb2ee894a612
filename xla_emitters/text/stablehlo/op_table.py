"""The ops that have the same operands in StableHLO and HLO, and attributes that follow from each other: one row an op, for both directions.

    stablehlo.transpose %x, dims = [1, 0]                             lists("permutation", "dimensions")
    transpose(%x), dimensions={1,0}

A row states the opcode, the attributes and the regions. The reader's rule of an op (`TABLE_RULES`) and its printed form (`PRINTED` of
`printed_ops`) are made from it. Ops whose conversion needs more than a row have functions: in `rules` and `region_rules` to HLO, in
`printed_ops` from HLO.
Source: StableHLO specification (https://openxla.org/stablehlo/spec); docs/reference/1 6.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr, i1, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp, integer, integers
from xla_emitters.dialects.hlo.types import tuple_type
from xla_emitters.dialects.isa import isa
from xla_emitters.dtypes import Array, dtype
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.literals import literal_text

Properties: TypeAlias = dict[str, Attribute | None]
Texts: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class Field:
    """One attribute of StableHLO, or a few that belong together.

    read  the op's properties in HLO, by name
    text  StableHLO's attributes, by name
    """

    read: Callable[[Conversion], Properties]
    text: Callable[[HloOp], Texts]


# --------------------------------------------------------------------------------------------------------- values of each side


def number_of(op: HloOp, key: str, default: int = 0) -> int:
    return integer(op.properties.get(key), default)


def word_of(op: HloOp, key: str) -> str:
    found = op.properties.get(key)
    return found.data if isinstance(found, StringAttr) else ""


def list_of(op: HloOp, key: str) -> tuple[int, ...]:
    return integers(op.properties.get(key))


def array_text(numbers: Iterable[int]) -> str:
    shown = ", ".join(map(str, numbers))
    return f"array<i64: {shown}>" if shown else "array<i64>"


def enum_text(kind: str, word: str) -> str:
    return f"#stablehlo<{kind} {word}>"


def numbers_text(array: Array) -> str:
    """A literal of s64."""
    return literal_text(array.astype(np.int64), dtype("s64"))


def nonempty(numbers: Sequence[int]) -> Attribute | None:
    return integer_array(numbers) if numbers else None


def flag(c: Conversion, name: str) -> Attribute | None:
    """A flag that HLO writes only if it is true."""
    return IntegerAttr(1, i1) if c.attributes.boolean(name, False) else None


# ------------------------------------------------------------------------------------------------------- kinds of attributes


def lists(key: str, name: str) -> Field:
    """A list of numbers: `key` in StableHLO, `name` in HLO."""
    return Field(
        lambda c: {name: integer_array(c.attributes.integers(key))}, lambda op: {key: array_text(list_of(op, name))}
    )


def optional_lists(key: str, name: str) -> Field:
    """A list of numbers that both texts may leave out."""
    return Field(
        lambda c: {name: nonempty(c.attributes.integers(key, []))},
        lambda op: {key: array_text(list_of(op, name))} if name in op.properties else {},
    )


def number(name: str, element: str = "i64") -> Field:
    return Field(
        lambda c: {name: IntegerAttr(c.attributes.integer(name), i64)},
        lambda op: {name: f"{number_of(op, name)} : {element}"},
    )


def dimension(key: str = "dimension") -> Field:
    """One dimension, the only element of HLO's `dimensions`."""
    return Field(
        lambda c: {"dimensions": integer_array([c.attributes.integer(key)])},
        lambda op: {key: f"{list_of(op, 'dimensions')[0]} : i64"},
    )


def truth(name: str) -> Field:
    return Field(lambda c: {name: flag(c, name)}, lambda op: {name: "true" if number_of(op, name) else "false"})


def word(key: str, name: str, kind: str, default: str | None = None) -> Field:
    """A word of the enumeration `kind`."""
    return Field(
        lambda c: {name: StringAttr(c.attributes.string(key, default))},
        lambda op: {key: enum_text(kind, word_of(op, name) or default or "")},
    )


def dimension_numbers(key: str, kind: str, names: Sequence[str], always: Sequence[str]) -> Field:
    """`#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`: lists and a number, which HLO has under the same names.

    always  names of lists that HLO writes even if they are empty
    """

    def read(c: Conversion) -> Properties:
        found = dict[str, Attribute | None]()
        for name in names:
            numbers = c.attributes.integers_in(key, name)
            found[name] = integer_array(numbers) if numbers or name in always else None
        return found | {"index_vector_dim": IntegerAttr(c.attributes.integer_in(key, "index_vector_dim", 0), i64)}

    def text(op: HloOp) -> Texts:
        parts = [f"{name} = {list(list_of(op, name))}" for name in names if list_of(op, name)]
        parts.append(f"index_vector_dim = {number_of(op, 'index_vector_dim')}")
        return {key: f"#stablehlo.{kind}<{', '.join(parts)}>"}

    return Field(read, text)


def _read_compared(c: Conversion) -> Properties:
    kind = c.attributes.string("compare_type", "NOTYPE")
    return {"type": StringAttr(kind) if kind != "NOTYPE" else None}


def _compared_text(op: HloOp) -> Texts:
    kind = word_of(op, "type")
    return {"compare_type": enum_text("comparison_type", kind)} if kind else {}


GENERATORS = {"DEFAULT": "rng_default", "THREE_FRY": "rng_three_fry", "PHILOX": "rng_philox"}


def _read_generator(c: Conversion) -> Properties:
    given = str(c.attributes.get("rng_algorithm", object, "a word"))
    # MHLO wrote the number of the algorithm until 2022.
    found = GENERATORS.get(dict(zip("012", GENERATORS, strict=True)).get(given, given))
    if found is None:
        raise c.attributes.wrong("rng_algorithm", " or ".join(GENERATORS))
    return {"algorithm": StringAttr(found)}


def _generator_text(op: HloOp) -> Texts:
    words = {hlo: written for written, hlo in GENERATORS.items()}
    return {"rng_algorithm": enum_text("rng_algorithm", words[word_of(op, "algorithm")])}


GENERATOR = Field(_read_generator, _generator_text)

_NORM = (
    Field(
        lambda c: {"epsilon": StringAttr(repr(c.attributes.number("epsilon")))},
        lambda op: {"epsilon": f"{float(word_of(op, 'epsilon')):.9e} : f32"},
    ),
    number("feature_index"),
)

_GATHER = (
    dimension_numbers(
        "dimension_numbers",
        "gather",
        (
            *("offset_dims", "collapsed_slice_dims"),
            *("operand_batching_dims", "start_indices_batching_dims", "start_index_map"),
        ),
        always=("offset_dims", "collapsed_slice_dims", "start_index_map"),
    ),
    truth("indices_are_sorted"),
)
_SCATTER = (
    dimension_numbers(
        "scatter_dimension_numbers",
        "scatter",
        (
            *("update_window_dims", "inserted_window_dims"),
            *("input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"),
        ),
        always=("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"),
    ),
    truth("indices_are_sorted"),
    truth("unique_indices"),
)

# -------------------------------------------------------------------------------------------------------------------- devices


def pairs_text(op: HloOp, key: str) -> str:
    """Lists of devices; shorter ones are padded to the longest with -1."""
    found = op.properties.get(key)
    groups = [integers(row) for row in found] if isa(found, ArrayAttr[DenseArrayBase]) else []
    if isinstance(found, StringAttr):
        raise op.unsupported(f"no StableHLO for {key}={found.data}")
    longest = max(map(len, groups), default=0)
    padded = [[*row, *[-1] * (longest - len(row))] for row in groups]
    return numbers_text(np.asarray(padded, np.int64).reshape(len(groups), longest))


def _read_groups(c: Conversion) -> Properties:
    rows = c.attributes.array("replica_groups")
    groups = [integer_array([int(device) for device in row if device >= 0]) for row in rows] if rows.ndim == 2 else []
    return {"replica_groups": ArrayAttr(groups)}


def _read_pairs(c: Conversion) -> Properties:
    rows = c.attributes.array("source_target_pairs").reshape(-1, 2)
    return {"source_target_pairs": ArrayAttr([integer_array([int(device) for device in row]) for row in rows])}


def channel_of(c: Conversion) -> Attribute | None:
    """`#stablehlo.channel_handle<handle = 1, type = 0>`; 0 means no channel."""
    if "channel_handle" not in c.attributes:
        return None
    handle = c.attributes.integer_in("channel_handle", "handle", 0)
    return IntegerAttr(handle, i64) if handle else None


def _channel_text(op: HloOp) -> Texts:
    handle = number_of(op, "channel_id")
    return {"channel_handle": f"#stablehlo.channel_handle<handle = {handle}, type = 1>"} if handle else {}


def _global_ids_text(op: HloOp) -> Texts:
    return {"use_global_device_ids": "unit"} if number_of(op, "use_global_device_ids") else {}


_CHANNEL = Field(lambda c: {"channel_id": channel_of(c)}, _channel_text)
GROUPS = (Field(_read_groups, lambda op: {"replica_groups": pairs_text(op, "replica_groups")}), _CHANNEL)
_GLOBAL_IDS = Field(lambda c: {"use_global_device_ids": flag(c, "use_global_device_ids")}, _global_ids_text)

# ------------------------------------------------------------------------------------------------------------------ the table


@dataclass(frozen=True)
class OpRow:
    """An op of both texts.

    opcode    in HLO
    fields    the attributes, in the order in which they are printed
    regions   for each region: HLO's property, and the word for the region in messages and names
    operands  their number, if the reader checks it
    """

    opcode: str
    fields: tuple[Field, ...] = ()
    regions: tuple[tuple[str, str], ...] = ()
    operands: int | None = None

    def text(self, op: HloOp) -> Texts:
        """StableHLO's attributes of an op."""
        return {key: text for field in self.fields for key, text in field.text(op).items()}


OP_ROWS: dict[str, OpRow] = {
    "compare": OpRow(
        "compare",
        (word("comparison_direction", "direction", "comparison_direction"), Field(_read_compared, _compared_text)),
        operands=2,
    ),
    "reduce_precision": OpRow("reduce-precision", (number("exponent_bits", "i32"), number("mantissa_bits", "i32"))),
    "reshape": OpRow("reshape"),
    "transpose": OpRow("transpose", (lists("permutation", "dimensions"),)),
    "reverse": OpRow("reverse", (lists("dimensions", "dimensions"),)),
    "concatenate": OpRow("concatenate", (dimension(),)),
    "gather": OpRow("gather", (*_GATHER, lists("slice_sizes", "slice_sizes")), operands=2),
    "dynamic_gather": OpRow("dynamic-gather", _GATHER, operands=3),
    "scatter": OpRow("scatter", _SCATTER, (("to_apply", "combiner"),)),
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
    "batch_norm_training": OpRow("batch-norm-training", _NORM),
    "batch_norm_inference": OpRow("batch-norm-inference", _NORM),
    "batch_norm_grad": OpRow("batch-norm-grad", _NORM),
    "all_reduce": OpRow("all-reduce", (*GROUPS, _GLOBAL_IDS), (("to_apply", "reducer"),)),
    "all_gather": OpRow("all-gather", (*GROUPS, _GLOBAL_IDS, dimension("all_gather_dim"))),
    "reduce_scatter": OpRow(
        "reduce-scatter", (*GROUPS, _GLOBAL_IDS, dimension("scatter_dimension")), (("to_apply", "reducer"),)
    ),
    "collective_broadcast": OpRow("collective-broadcast", GROUPS),
    "collective_permute": OpRow(
        "collective-permute",
        (Field(_read_pairs, lambda op: {"source_target_pairs": pairs_text(op, "source_target_pairs")}), _CHANNEL),
    ),
}
"""StableHLO's op -> its row."""


def result_type(types: Sequence[Attribute]) -> Attribute:
    """The type of an op with these results: the only one's type, or a tuple."""
    return types[0] if len(types) == 1 else tuple_type(types)


def all_results(
    c: Conversion, opcode: str, operands: Sequence[SSAValue] | None = None, /, **properties: Attribute | None
) -> SSAValue | Sequence[SSAValue]:
    """Adds an op with these results, and the same operands if none are given: a tuple's elements are the results, if they are not one."""
    found = c.add(opcode, c.operands if operands is None else operands, result_type(c.types), **properties)
    return found if len(c.types) == 1 else c.elements(found, len(c.types))


def rule_of(row: OpRow) -> Rule:
    """The reader's rule of an op in the table."""

    def rule(c: Conversion) -> SSAValue | Sequence[SSAValue]:
        if row.operands is not None:
            c.expect_operands(row.operands)
        properties: Properties = {name: value for field in row.fields for name, value in field.read(c).items()}
        for (name, what), region in zip(row.regions, c.expect_regions(len(row.regions)), strict=True):
            properties[name] = c.scalars(region, what)
        return all_results(c, row.opcode, **properties)

    return rule


TABLE_RULES: Mapping[str, Rule] = {name: rule_of(row) for name, row in OP_ROWS.items()}
