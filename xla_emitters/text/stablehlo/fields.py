"""Attributes that an op has in StableHLO and in HLO, each with both directions: HLO's properties from the text, and the text from the op.

    dims = [1, 0]                                  lists("permutation", "dimensions")        dimensions={1,0}
    low = [1], high = [1], interior = [0]          columns("padding", ...)                   padding=1_1

`op_table` has the ops that are made of them; those of dots, windows and convolutions are in `contractions`.
Source: StableHLO specification (https://openxla.org/stablehlo/spec); docs/reference/1 6.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr, i1, i64
from xdsl.ir import Attribute

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp, integer, integers
from xla_emitters.dialects.hlo.shape_ops import rows
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dtypes import Array, dtype
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.text.stablehlo.computations import Conversion
from xla_emitters.text.stablehlo.stablehlo_literals import literal_text

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


def columns(name: str, keys: Sequence[str], what: str) -> Field:
    """Rows of numbers, one per dimension, in HLO; a list per column, `keys`, in StableHLO.

    what  the lists, for the message that they are not equally long
    """

    def read(c: Conversion) -> Properties:
        found = [c.attributes.integers(key) for key in keys]
        if len({len(numbers) for numbers in found}) != 1:
            raise c.wrong(f"{what} are as many as the operand's dimensions")
        return {name: ArrayAttr([integer_array(row) for row in zip(*found, strict=True)])}

    def text(op: HloOp) -> Texts:
        found = op.properties[name]
        assert isa(found, ArrayAttr[Attribute])
        table = rows(found)
        return {key: array_text(row[i] for row in table) for i, key in enumerate(keys)}

    return Field(read, text)


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


COMPARED = Field(_read_compared, _compared_text)


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


def _read_sorted(c: Conversion) -> Properties:
    along, rank = c.attributes.integer("dimension", -1), len(dims_of(c.operands[0])) if c.operands else 0
    return {"dimensions": integer_array([along % rank if rank else along])}


SORTED = Field(_read_sorted, dimension().text)
"""The dimension of a sort: -1 is the last one, the default."""

NORM = (
    Field(
        lambda c: {"epsilon": StringAttr(repr(c.attributes.number("epsilon")))},
        lambda op: {"epsilon": f"{float(word_of(op, 'epsilon')):.9e} : f32"},
    ),
    number("feature_index"),
)

GATHER = (
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
SCATTER = (
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
    found = c.attributes.array("replica_groups")
    groups = [integer_array([int(device) for device in row if device >= 0]) for row in found] if found.ndim == 2 else []
    return {"replica_groups": ArrayAttr(groups)}


def _read_pairs(c: Conversion) -> Properties:
    pairs = c.attributes.array("source_target_pairs").reshape(-1, 2)
    return {"source_target_pairs": ArrayAttr([integer_array([int(device) for device in pair]) for pair in pairs])}


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


CHANNEL = Field(lambda c: {"channel_id": channel_of(c)}, _channel_text)
GROUPS = (Field(_read_groups, lambda op: {"replica_groups": pairs_text(op, "replica_groups")}), CHANNEL)
PAIRS = Field(_read_pairs, lambda op: {"source_target_pairs": pairs_text(op, "source_target_pairs")})
GLOBAL_IDS = Field(lambda c: {"use_global_device_ids": flag(c, "use_global_device_ids")}, _global_ids_text)
