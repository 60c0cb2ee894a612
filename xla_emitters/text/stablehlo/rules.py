"""Conversion of StableHLO's ops without regions: elementwise ops, data movement, contractions, sizes as values, calls.

    stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<1x4xf32>) -> tensor<3x4xf32>     reshape to f32[4], broadcast {1}
    stablehlo.get_dimension_size %x, dim = 0                                              get-dimension-size {0}
    stablehlo.dot_general ..., contracting_dims = [2] x [0]                               dot lhs_contracting_dims={2} ...

Ops with regions are in `region_rules`, those of CHLO in `chlo`; `RULES` of `reader` contains all of them. Attributes that no rule reads
(layouts, shardings, hints of the front end) do not change values and are dropped.
Source: StableHLO specification (https://openxla.org/stablehlo/spec); docs/reference/1 6.8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.backend_configs import SHAPES
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    TokenType,
    array_type,
    as_array,
    dims_of,
    element_of,
    has_dynamic_dims,
    is_array,
    one_or_tuple,
    tuple_type,
    type_text,
)
from xla_emitters.dtypes import DType, Kind, dtype
from xla_emitters.text.stablehlo.attribute_values import Symbol, symbols_in
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.fields import nonempty
from xla_emitters.text.stablehlo.op_table import (
    API_VERSIONS,
    ELEMENTWISE,
    TABLE_RULES,
    TARGET_ROWS,
    all_results,
    rule_of,
)
from xla_emitters.text.stablehlo.stablehlo_contractions import PRECISION, convolution, dot, dynamic_conv
from xla_emitters.text.stablehlo.stablehlo_literals import Elided, Literal

Results: TypeAlias = SSAValue | Sequence[SSAValue]

# ------------------------------------------------------------------------------------------------------------- elementwise


def elementwise(opcode: str) -> Rule:
    return lambda c: c.add(opcode, c.operands, c.type)


# ------------------------------------------------------------------------------------------------------------------- values


def _constant(c: Conversion) -> Results:
    found = c.attributes.get("value", object, "a literal such as dense<0> : tensor<2xi32>")
    if not isinstance(found, Literal | Elided):
        raise c.attributes.wrong("value", "a literal such as dense<0> : tensor<2xi32>")
    if found.dims != dims_of(c.type) or found.element != element_of(c.type):
        raise c.wrong("the literal of a constant is not of its type", f"it is {found.element.name}{list(found.dims)}")
    return c.add_op(ConstantOp(found.attribute() if isinstance(found, Literal) else None, c.type, c.name))


# --------------------------------------------------------------------------------------------------------- moving elements


def broadcast_in_dim(c: Conversion, x: SSAValue, ir_type: Attribute, dimensions: Sequence[int]) -> SSAValue:
    """HLO's broadcast does not repeat: dimensions of size 1 that grow are removed first, by a reshape."""
    sizes, result = dims_of(x), dims_of(ir_type)
    if len(dimensions) != len(sizes):
        raise c.wrong(
            f"'{c.op.name}' has {len(dimensions)} dimensions",
            f"broadcast_dimensions has one for each of the operand's {len(sizes)}",
        )
    if any(not 0 <= dim < len(result) for dim in dimensions):
        raise c.wrong(f"dims = {list(dimensions)} of '{c.op.name}' are not dimensions of the result")
    if UNBOUNDED in result:
        raise c.wrong(f"'{c.op.name}' has a result of known sizes", "dynamic_broadcast_in_dim takes sizes as a value")
    grows = [size == 1 != result[dim] for size, dim in zip(sizes, dimensions, strict=True)]
    if not any(grows) and not has_dynamic_dims(x.type):
        return c.add("broadcast", [x], ir_type, dimensions=integer_array(dimensions))
    if has_dynamic_dims(x.type):
        shape = s64_list(c, result)
        return c.add("dynamic-broadcast-in-dim", [x, shape], ir_type, dimensions=integer_array(dimensions))
    element = as_array(x.type).element_type
    kept = [i for i in range(len(sizes)) if not grows[i]]
    dropped = c.add("reshape", [x], array_type(element, [sizes[i] for i in kept]))
    return c.add("broadcast", [dropped], ir_type, dimensions=integer_array([dimensions[i] for i in kept]))


def s64_list(c: Conversion, values: Sequence[int]) -> SSAValue:
    """A list of numbers, s64[...]."""
    return c.constant(np.asarray(values, np.int64), array_type(dtype("s64").ir_type, (len(values),)))


def _broadcast_in_dim(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    return broadcast_in_dim(c, x, c.type, c.attributes.integers("broadcast_dimensions"))


def _broadcast(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    new = c.attributes.integers("broadcast_sizes")
    places = [len(new) + dim for dim in range(len(dims_of(x)))]
    if not has_dynamic_dims(c.type):
        return broadcast_in_dim(c, x, c.type, places)
    shape = listed(c, [*(s32(c, size) for size in new), *(size_of(c, x, dim) for dim in range(len(places)))])
    return c.add("dynamic-broadcast-in-dim", [x, shape], c.type, dimensions=integer_array(places))


# ---------------------------------------------------------------------------------------------------------- sizes as values


S32 = dtype("s32")


def s32(c: Conversion, value: int) -> SSAValue:
    """A number, s32[]."""
    return c.constant(np.asarray(value, np.int32), array_type(S32.ir_type, ()))


def size_of(c: Conversion, x: SSAValue, dim: int) -> SSAValue:
    """The size of one dimension, as s32[]."""
    if (size := dims_of(x)[dim]) != UNBOUNDED:
        return s32(c, size)
    return c.add("get-dimension-size", [x], array_type(S32.ir_type, ()), dimensions=integer_array([dim]))


def listed(c: Conversion, scalars: Sequence[SSAValue], element: DType = S32) -> SSAValue:
    """The list of these scalars. The type of none is s32[0], or of another element."""
    if not scalars:
        return c.constant(np.zeros(0, element.numpy), array_type(element.ir_type, (0,)))
    ir_type = as_array(scalars[0].type).element_type
    parts = [c.add("reshape", [scalar], array_type(ir_type, (1,))) for scalar in scalars]
    if len(parts) == 1:
        return parts[0]
    return c.add("concatenate", parts, array_type(ir_type, (len(parts),)), dimensions=integer_array([0]))


def sizes_of(c: Conversion, x: SSAValue) -> SSAValue:
    """The sizes of an array, as a list s32[rank]."""
    return listed(c, [size_of(c, x, dim) for dim in range(len(dims_of(x)))])


def filled(c: Conversion, ir_type: Attribute, like: SSAValue, value: complex) -> SSAValue:
    """An array of that type with this value everywhere; unknown sizes are those of `like`."""
    element, dims = element_of(ir_type), dims_of(ir_type)
    scalar = c.constant(np.asarray(value).astype(element.numpy), array_type(element.ir_type, ()))
    if UNBOUNDED not in dims:
        return c.add("broadcast", [scalar], ir_type, dimensions=integer_array([]))
    return c.add("dynamic-broadcast-in-dim", [scalar, sizes_of(c, like)], ir_type, dimensions=integer_array([]))


# ------------------------------------------------------------------------------------- ops that are written as dot and gather

_Labels: TypeAlias = tuple[str, ...]


def _labels_of(c: Conversion, text: str, ranks: Sequence[int]) -> tuple[list[_Labels], _Labels]:
    """The labels of the operands' dimensions and the result's in "ab,bc->ac"; `...` are as many dimensions as are left."""
    inputs, arrow, output = text.replace(" ", "").partition("->")
    rows = inputs.split(",")
    if not arrow or len(rows) != len(ranks) or not re.fullmatch(r"(?:[a-zA-Z,]|\.\.\.)*", f"{inputs}{output}"):
        raise c.wrong(f"'{text}' is not the form of '{c.op.name}'", "such as ab,bc->ac")
    lengths = [rank - len(row.replace("...", "")) for row, rank in zip(rows, ranks, strict=True)]
    most = max(length for row, length in zip([*rows, "..."], [*lengths, 0], strict=True) if "..." in row)

    def labels(row: str, count: int) -> _Labels:
        before, dots, after = row.partition("...")
        return (*before, *(f".{i}" for i in range(most - count, most) if dots), *after)

    found = [labels(row, length) for row, length in zip(rows, lengths, strict=True)]
    result = labels(output, most)
    for row, rank in zip(found, ranks, strict=True):
        if len(row) != rank:
            raise c.wrong(f"'{text}' of '{c.op.name}' has {len(row)} labels for {rank} dimensions")
    if any(len(set(row)) != len(row) for row in (*found, result)):
        raise c.unsupported(f"'{text}' has a label twice in one array: diagonals are not taken")
    if unknown := set(result) - {label for row in found for label in row}:
        raise c.wrong(f"'{text}' has the label '{min(unknown)}' only in its result")
    return found, result


def _summed(c: Conversion, x: SSAValue, labels: _Labels, kept: Collection[str]) -> tuple[SSAValue, _Labels]:
    """The sum over the dimensions with other labels."""
    dropped = [dim for dim, label in enumerate(labels) if label not in kept]
    if not dropped:
        return x, labels
    element = as_array(x.type).element_type
    scalar = array_type(element, ())
    zero = c.constant(np.zeros((), element_of(x).numpy), scalar)
    ir_type = array_type(element, [size for dim, size in enumerate(dims_of(x)) if dim not in dropped])
    add = c.module.scalar_computation("add", scalar, c.op.token)
    found = c.add("reduce", [x, zero], ir_type, dimensions=integer_array(dropped), to_apply=add)
    return found, tuple(label for label in labels if label in kept)


def _ordered(c: Conversion, x: SSAValue, labels: _Labels, wanted: _Labels) -> SSAValue:
    if labels == wanted:
        return x
    return c.add("transpose", [x], c.type, dimensions=integer_array([labels.index(label) for label in wanted]))


def _unary_einsum(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    (labels,), wanted = _labels_of(c, c.attributes.string("einsum_config"), [len(dims_of(x))])
    return _ordered(c, *_summed(c, x, labels, wanted), wanted)


def _einsum(c: Conversion) -> Results:
    """Sums over the labels that only one operand has, a dot, and a transpose."""
    text, operands = c.attributes.string("einsum_config"), c.expect_operands(2)
    (left, right), wanted = _labels_of(c, text, [len(dims_of(x)) for x in operands])
    lhs, left = _summed(c, operands[0], left, {*right, *wanted})
    rhs, right = _summed(c, operands[1], right, {*left, *wanted})
    batch = [label for label in left if label in right and label in wanted]
    contracting = [label for label in left if label in right and label not in wanted]
    free = [[label for label in row if label not in (*batch, *contracting)] for row in (left, right)]
    made = (*batch, *free[0], *free[1])
    if len(dims_of(c.type)) != len(wanted):
        raise c.wrong(f"'{text}' of '{c.op.name}' has a result of {len(wanted)} dimensions")
    sizes = dict(zip(wanted, dims_of(c.type), strict=True))
    found = c.add(
        "dot",
        [lhs, rhs],
        array_type(as_array(c.type).element_type, [sizes[label] for label in made]),
        lhs_batch_dims=nonempty([left.index(label) for label in batch]),
        rhs_batch_dims=nonempty([right.index(label) for label in batch]),
        lhs_contracting_dims=integer_array([left.index(label) for label in contracting]),
        rhs_contracting_dims=integer_array([right.index(label) for label in contracting]),
        **PRECISION.read(c),
    )
    return _ordered(c, found, made, wanted)


def _torch_index_select(c: Conversion) -> Results:
    """A gather of slices of size 1 along `dim`, where the first `batch_dims` dimensions of array and indices are the same."""
    x, index = c.expect_operands(2)
    rank, count = len(dims_of(x)), len(dims_of(index))
    dim, batch = c.attributes.integer("dim"), c.attributes.integer("batch_dims", 0)
    if not element_of(index).is_integer:
        raise c.wrong(f"the indices of '{c.op.name}' are integers", f"they are {type_text(index.type)}")
    if not 0 <= batch <= dim < rank or batch > count:
        raise c.wrong(f"'{c.op.name}' has 0 <= batch_dims <= dim, which is a dimension of the operand of {rank}")
    kept = [other for other in range(batch, rank) if other != dim]
    places = [*range(batch, dim), *range(dim + count - batch, rank + count - batch - 1)]
    attributes: dict[str, Attribute | None] = {
        "offset_dims": integer_array(places),
        "collapsed_slice_dims": integer_array([dim]),
        "operand_batching_dims": nonempty(range(batch)),
        "start_indices_batching_dims": nonempty(range(batch)),
        "start_index_map": integer_array([dim]),
        "index_vector_dim": IntegerAttr(count, i64),
    }
    if not has_dynamic_dims(x.type):
        sizes = integer_array([size if other in kept else 1 for other, size in enumerate(dims_of(x))])
        return c.add("gather", [x, index], c.type, slice_sizes=sizes, **attributes)
    one = s32(c, 1)
    listed_sizes = listed(c, [size_of(c, x, other) if other in kept else one for other in range(rank)])
    return c.add("dynamic-gather", [x, index, listed_sizes], c.type, **attributes)


# ---------------------------------------------------------------------------------------------------- tuples, tokens, calls


def _optimization_barrier(c: Conversion) -> Results:
    """Tokens pass by it: what they order is not computed across the barrier either."""
    held = [value for value in c.operands if not isinstance(value.type, TokenType)]
    passed = list[SSAValue]()
    if len(held) == 1:
        passed = [c.add("opt-barrier", held, held[0].type)]
    elif held:
        packed = c.tuple_of(held)
        passed = c.elements(c.add("opt-barrier", [packed], packed.type), len(held))
    found = iter(passed)
    return [value if isinstance(value.type, TokenType) else next(found) for value in c.operands]


def _token(c: Conversion) -> Results:
    return c.add("after-all", c.operands, TokenType())


def call(c: Conversion, name: str, operands: Sequence[SSAValue], *, is_composite: bool = False) -> Results:
    """A call of the function @name."""
    computation = c.module.function(name, c.op.token)
    composite = IntegerAttr(1, i1) if is_composite else None
    return all_results(c, "call", operands, to_apply=SymbolRefAttr(computation.sym_name), is_composite=composite)


def call_function(c: Conversion) -> Results:
    return call(c, c.attributes.symbol("callee"), c.operands)


def _composite(c: Conversion) -> Results:
    """Calls its decomposition: the name says what a special kernel might do, the function defines the meaning."""
    return call(c, c.attributes.symbol("decomposition"), c.operands, is_composite=True)


def pass_through(c: Conversion) -> Results:
    """A marker for the partitioner or the memory planner: its value is its operand."""
    if len(c.operands) != len(c.types):
        raise c.wrong(f"'{c.op.name}' has as many results as operands")
    return c.operands


def custom_call_target(c: Conversion) -> str:
    value = c.attributes.get("call_target_name", object, "a symbol such as @f")
    return value.name if isinstance(value, Symbol) else str(value)


NO_OPS = (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
)
"""Custom calls that mark a value without changing it."""


def custom_call(targets: dict[str, Rule]) -> Rule:
    """A custom call: converted by the rule of its target, or else to HLO's custom-call; attributes that HLO lacks are kept as written."""

    def rule(c: Conversion) -> Results:
        target = custom_call_target(c)
        if (known := targets.get(target)) is not None:
            return known(c)
        effect = c.attributes.boolean("has_side_effect", False)
        shapes = _shape_operands(c)
        found = c.add(
            "custom-call",
            c.operands,
            one_or_tuple(c.types),
            custom_call_target=StringAttr(json.dumps(target)),
            custom_call_has_side_effect=IntegerAttr(1, i1) if effect else None,
            api_version=_api_version(c),
            called_computations=ArrayAttr(called) if (called := _called(c)) else None,
        )
        owner = found.owner
        assert isinstance(owner, Operation)
        config = c.attributes.found["backend_config"].value if "backend_config" in c.attributes else None
        if isinstance(config, str) and config:
            owner.attributes["backend_config"] = StringAttr(json.dumps(config))
        elif isinstance(config, dict):
            owner.attributes["mhlo.backend_config"] = StringAttr(
                c.attributes.text(c.attributes.found["backend_config"])
            )
        if shapes:
            owner.attributes[SHAPES] = integer_array(shapes)
        for name, attr in c.attributes.unread():
            if name != "backend_config":
                owner.attributes[name] = StringAttr(c.attributes.text(attr))
        return found if len(c.types) == 1 else c.elements(found, len(c.types))

    return rule


def _shape_operands(c: Conversion) -> list[int]:
    """For each result, the number of the operand that lists its sizes; JAX adds such operands where a size is unknown."""
    numbers = c.attributes.integers(SHAPES, ())
    if numbers and len(numbers) != len(c.types):
        raise c.wrong(f"'{SHAPES}' has {len(numbers)} numbers for {len(c.types)} results")
    for number, result in zip(numbers, c.types, strict=False):
        listed = c.operands[number] if 0 <= number < len(c.operands) else None
        if listed is None or not all(is_array(value.type) for value in c.operands[: number + 1]):
            raise c.wrong(f"'{SHAPES}' has {number}, which is not the number of an array")
        if element_of(listed).kind not in (Kind.SIGNED, Kind.UNSIGNED) or dims_of(listed) != (len(dims_of(result)),):
            raise c.wrong(
                f"'{SHAPES}': operand {number} is {type_text(listed.type)}, not the sizes of {type_text(result)}"
            )
    return numbers


def _api_version(c: Conversion) -> StringAttr | None:
    version = c.attributes.integer("api_version", 1)
    return StringAttr(API_VERSIONS[version - 1]) if 2 <= version <= len(API_VERSIONS) else None


def _called(c: Conversion) -> list[SymbolRefAttr]:
    names = symbols_in(c.attributes.values("called_computations", "a list of symbols", []))
    return [SymbolRefAttr(c.module.function(name.name, c.op.token).sym_name) for name in names]


def _shape_assertion(c: Conversion) -> Results:
    message = StringAttr(c.attributes.string("error_message"))
    c.add("shape-assertion", c.operands, tuple_type([]), message=message)
    return []


def _print(c: Conversion) -> Results:
    """Prints an array under its name in the text, or under the attribute `name`; gives the array, if it has a result."""
    (value,) = c.expect_operands(1)
    written = c.op.operands[0].name
    c.add("print", [value], tuple_type([]), label=StringAttr(c.attributes.string("name", written)))
    return c.operands[: len(c.types)]


def _dynamic_reduce_window(c: Conversion) -> Results:
    (computation,) = _called(c) or (None,)
    if computation is None:
        raise c.wrong(f"'{c.op.name}' names the function that combines two elements in called_computations")
    return all_results(c, "dynamic-reduce-window", to_apply=computation)


def _approx_top_k(c: Conversion) -> Results:
    """The exact result is a valid approximation: sorts all elements and takes the first ones.

    Operands: the arrays that are sorted together, as many fill values, and with unknown sizes as many result shapes.
    """
    count, along = len(c.types), c.attributes.integer_in("mhlo.backend_config", "reduction_dim", -1)
    (comparator,) = _called(c) or (None,)
    if comparator is None or len(c.operands) not in (2 * count, 3 * count) or not count:
        raise c.wrong(f"'{custom_call_target(c)}' takes arrays, as many initial values, and names a comparator")
    arrays = c.operands[:count]
    rank = len(dims_of(arrays[0]))
    if not -rank <= along < rank:
        raise c.wrong(f"reduction_dim = {along} is not a dimension of an array of {rank}")
    types = one_or_tuple([array.type for array in arrays])
    dimension, stable = integer_array([along % rank]), IntegerAttr(1, i1)
    found = c.add("sort", arrays, types, dimensions=dimension, is_stable=stable, to_apply=comparator)
    if len(c.operands) == 2 * count:
        ranges = [ArrayAttr([integer_array([0, size, 1]) for size in dims_of(ir_type)]) for ir_type in c.types]
        return [
            c.add("slice", [value], ir_type, slice=its)
            for value, ir_type, its in zip(c.elements(found, count), c.types, ranges, strict=True)
        ]
    results = list[SSAValue]()
    for value, ir_type, limits in zip(c.elements(found, count), c.types, c.operands[2 * count :], strict=True):
        zeros, ones = (c.constant(np.full(rank, number, np.int32), limits.type) for number in (0, 1))
        results.append(c.add("real-dynamic-slice", [value, zeros, limits, ones], ir_type))
    return results


# ------------------------------------------------------------------------------------------- ops with only a shape rule


def random_numbers(word: str) -> Rule:
    """A rule for one distribution. The shape operand is dropped if the result's type has the same sizes."""

    def rule(c: Conversion) -> Results:
        low, high, _ = operands = c.expect_operands(3)
        if has_dynamic_dims(c.type):
            return c.add("dynamic-rng", operands, c.type, distribution=StringAttr(word))
        return c.add("rng", [low, high], c.type, distribution=StringAttr(word))

    return rule


def _rng(c: Conversion) -> Results:
    word = c.attributes.string("rng_distribution")
    if word not in ("UNIFORM", "NORMAL"):
        raise c.attributes.wrong("rng_distribution", "UNIFORM or NORMAL")
    return random_numbers(f"rng_{word.lower()}")(c)


def refused(why: str) -> Rule:
    """A rule for an op that is legal StableHLO but not supported."""

    def rule(c: Conversion) -> Results:
        raise c.unsupported(f"'{c.op.name}' is not taken: {why}")

    return rule


_QUANTIZED = refused("quantized types are not supported")

DATA_RULES: dict[str, Rule] = {
    **{name: elementwise(opcode) for name, opcode in ELEMENTWISE.items()},
    **TABLE_RULES,
    "constant": _constant,
    "broadcast": _broadcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "dot": dot,
    "convolution": convolution,
    "dynamic_conv": dynamic_conv,
    "tuple": lambda c: c.tuple_of(c.operands),
    "optimization_barrier": _optimization_barrier,
    "after_all": _token,
    "create_token": _token,
    "composite": _composite,
    "rng": _rng,
    "uniform_quantize": _QUANTIZED,
    "uniform_dequantize": _QUANTIZED,
    "einsum": _einsum,
    "unary_einsum": _unary_einsum,
    "torch_index_select": _torch_index_select,
}

CALL_TARGETS: dict[str, Rule] = {
    **dict.fromkeys(NO_OPS, pass_through),
    "ApproxTopK": _approx_top_k,
    "print": _print,
    "shape_assertion": _shape_assertion,
    "stablehlo.dynamic_reduce_window": _dynamic_reduce_window,
    **{target: rule_of(row) for target, row in TARGET_ROWS.items()},
}
