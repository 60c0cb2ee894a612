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
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.backend_configs import SHAPES
from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import ROWS, BitcastConvertOp, ComplexOp, ConvertOp, SelectOp
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    TokenType,
    array_type,
    as_array,
    dims_of,
    element_of,
    has_dynamic_dims,
    is_array,
    tuple_type,
    type_text,
)
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dtypes import Array, DType, Kind, dtype
from xla_emitters.text.stablehlo.attributes import ConvolutionLabels, Elided, Literal, Symbol, is_integers, symbols_in
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.op_table import (
    GENERATOR,
    TABLE_RULES,
    OpRow,
    all_results,
    nonempty,
    result_type,
    rule_of,
)

Results: TypeAlias = SSAValue | Sequence[SSAValue]

# ------------------------------------------------------------------------------------------------------------- elementwise

CHLO_OPCODES = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "mulhi", "sinh")
"""The elementwise opcodes of HLO that are in CHLO and not in StableHLO."""

_OTHERS = ("clamp",)  # has its own rule
_CLASSES = (BitcastConvertOp, ComplexOp, ConvertOp, SelectOp)
_OPCODES = (*(row.opcode for row in ROWS), *map(opcode_of, _CLASSES))
ELEMENTWISE = {name.replace("-", "_"): name for name in _OPCODES if name not in (*CHLO_OPCODES, *_OTHERS)}
"""Elementwise ops that exist in HLO -> HLO's opcode."""


def elementwise(opcode: str) -> Rule:
    return lambda c: c.add(opcode, c.operands, c.type)


def _clamp(c: Conversion) -> Results:
    """In StableHLO one bound may be a scalar; in HLO both have the operand's shape or both are scalars."""
    low, x, high = c.expect_operands(3)
    return c.add("clamp", [low, x, high], c.type)


# ------------------------------------------------------------------------------------------------------------------- values


def constant(c: Conversion, array: Array, ir_type: Attribute) -> SSAValue:
    """A literal as a value of type `ir_type`."""
    return c.add_op(ConstantOp.from_array(array, element_of(ir_type), c.name))


def _constant(c: Conversion) -> Results:
    found = c.attributes.get("value", object, "a literal such as dense<0> : tensor<2xi32>")
    if not isinstance(found, Literal | Elided):
        raise c.attributes.wrong("value", "a literal such as dense<0> : tensor<2xi32>")
    if found.dims != dims_of(c.type) or found.element != element_of(c.type):
        raise c.wrong("the literal of a constant is not of its type", f"it is {found.element.name}{list(found.dims)}")
    return c.add_op(ConstantOp(found.attribute() if isinstance(found, Literal) else None, c.type, c.name))


def _iota(c: Conversion) -> Results:
    if UNBOUNDED in dims_of(c.type):
        raise c.wrong(f"'{c.op.name}' has a result of known sizes", "dynamic_iota takes sizes as a value")
    return c.add("iota", [], c.type, iota_dimension=IntegerAttr(c.attributes.integer("iota_dimension"), i64))


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
        shape = _shape_constant(c, result)
        return c.add("dynamic-broadcast-in-dim", [x, shape], ir_type, dimensions=integer_array(dimensions))
    element = as_array(x.type).element_type
    kept = [i for i in range(len(sizes)) if not grows[i]]
    dropped = c.add("reshape", [x], array_type(element, [sizes[i] for i in kept]))
    return c.add("broadcast", [dropped], ir_type, dimensions=integer_array([dimensions[i] for i in kept]))


def _shape_constant(c: Conversion, sizes: Sequence[int]) -> SSAValue:
    return constant(c, np.asarray(sizes, np.int64), array_type(dtype("s64").ir_type, (len(sizes),)))


def _broadcast_in_dim(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    return broadcast_in_dim(c, x, c.type, c.attributes.integers("broadcast_dimensions"))


def _broadcast(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    new = c.attributes.integers("broadcast_sizes")
    places = [len(new) + dim for dim in range(len(dims_of(x)))]
    if not has_dynamic_dims(c.type):
        return broadcast_in_dim(c, x, c.type, places)
    sizes = [constant(c, np.asarray(size, np.int32), array_type(S32.ir_type, ())) for size in new]
    shape = listed(c, [*sizes, *(size_of(c, x, dim) for dim in range(len(places)))])
    return c.add("dynamic-broadcast-in-dim", [x, shape], c.type, dimensions=integer_array(places))


def _slice(c: Conversion) -> Results:
    lists = [c.attributes.integers(name) for name in ("start_indices", "limit_indices", "strides")]
    if len({len(numbers) for numbers in lists}) != 1:
        raise c.wrong("the starts, limits and strides of a slice are as many as the operand's dimensions")
    ranges = list(zip(*lists, strict=True))
    sizes = [-(-(limit - start) // stride) if stride > 0 else UNBOUNDED for start, limit, stride in ranges]
    return c.add("slice", c.operands, _known(c.type, sizes), slice=ArrayAttr([integer_array(row) for row in ranges]))


def _known(ir_type: Attribute, sizes: Sequence[int]) -> Attribute:
    """The type of an array whose sizes the attributes give, with these where the text has `?`."""
    if not is_array(ir_type) or len(dims_of(ir_type)) != len(sizes) or UNBOUNDED not in dims_of(ir_type):
        return ir_type
    known = [given if said == UNBOUNDED else said for said, given in zip(dims_of(ir_type), sizes, strict=True)]
    return array_type(as_array(ir_type).element_type, known)


def _pad(c: Conversion) -> Results:
    lists = [
        c.attributes.integers(f"{name}_padding{end}")
        for name, end in (("edge", "_low"), ("edge", "_high"), ("interior", ""))
    ]
    if len({len(numbers) for numbers in lists}) != 1:
        raise c.wrong("low, high and interior of a pad are as many as the operand's dimensions")
    return c.add("pad", c.operands, c.type, padding=ArrayAttr([integer_array(row) for row in zip(*lists, strict=True)]))


def _dynamic_slice(c: Conversion) -> Results:
    sizes = c.attributes.integers("slice_sizes")
    return c.add("dynamic-slice", c.operands, _known(c.type, sizes), dynamic_slice_sizes=integer_array(sizes))


# ------------------------------------------------------------------------------------------------------------ contractions


def _precision(c: Conversion) -> StringAttr | None:
    words = [word.lower() for word in c.attributes.words("precision_config")]
    return StringAttr(f"{{{','.join(words)}}}") if any(word != "default" for word in words) else None


def _dot_general(c: Conversion) -> Results:
    found = c.attributes
    if "dot_dimension_numbers" in found:
        lists = [
            found.integers_in("dot_dimension_numbers", f"{side}_{kind}_dimensions")
            for kind in ("batching", "contracting")
            for side in ("lhs", "rhs")
        ]
    else:
        lists = [
            found.integers(f"{side}_{kind}_dims", []) for kind in ("batching", "contracting") for side in ("lhs", "rhs")
        ]
    lhs_batch, rhs_batch, lhs, rhs = lists
    return c.add(
        "dot",
        c.expect_operands(2),
        c.type,
        lhs_batch_dims=nonempty(lhs_batch),
        rhs_batch_dims=nonempty(rhs_batch),
        lhs_contracting_dims=integer_array(lhs),
        rhs_contracting_dims=integer_array(rhs),
        operand_precision=_precision(c),
        algorithm=_dot_algorithm(c),
    )


def _dot_algorithm(c: Conversion) -> StringAttr | None:
    """`<lhs_precision_type = bf16, ..., accumulation_type = f32, num_primitive_operations = 3>` to HLO's dot_bf16_bf16_f32_x3."""
    if "algorithm" not in c.attributes:
        return None
    parts = c.attributes.mapping("algorithm")
    names = [_type_word(parts.get(f"{name}_type")) for name in ("lhs_precision", "rhs_precision", "accumulation")]
    count = c.attributes.integer_in("algorithm", "num_primitive_operations", 1)
    if any(name.startswith("f8") for name in names[:2]):
        summed = "f32" if names[2] == "f32" else "any"
        fast = "_fast_accum" if parts.get("allow_imprecise_accumulation") is True else ""
        return StringAttr(f"dot_any_f8_any_f8_{summed}{fast}")
    return StringAttr(f"dot_{'_'.join(names)}{f'_x{count}' if count != 1 else ''}")


def _type_word(value: Any) -> str:
    """The name of a type in an algorithm, in HLO's spelling."""
    return str(value).lower().strip("'\"")


def _dot(c: Conversion) -> Results:
    lhs, _ = c.expect_operands(2)
    return c.add(
        "dot",
        c.operands,
        c.type,
        lhs_contracting_dims=integer_array([len(dims_of(lhs)) - 1]),
        rhs_contracting_dims=integer_array([0]),
        operand_precision=_precision(c),
    )


def _spatial_window(c: Conversion, kernel: SSAValue, labels: ConvolutionLabels, padding: Array | None) -> WindowAttr:
    spatial = [str(i) for i in range(len(labels.kernel) - 2)]
    sizes = [dims_of(kernel)[labels.kernel.index(dim)] if dim in labels.kernel else 0 for dim in spatial]
    return window(
        c,
        [max(size, 0) for size in sizes],
        pad=None if padding is None else padding.reshape(-1).tolist(),
        stride=c.attributes.integers("window_strides", []),
        lhs_dilate=c.attributes.integers("lhs_dilation", []),
        rhs_dilate=c.attributes.integers("rhs_dilation", []),
        rhs_reversal=[int(flag) for flag in c.attributes.integers("window_reversal", [])],
    )


def window(c: Conversion, sizes: Sequence[int], *, pad: Sequence[int] | None, **lists: Sequence[int]) -> WindowAttr:
    """HLO's window; empty lists mean the default."""
    found = {"size": list(sizes), **{name: list(numbers) for name, numbers in lists.items() if len(numbers)}}
    if pad is not None and len(pad):
        found["pad"] = list(pad)
    if not sizes:
        return WindowAttr(Window())
    try:
        return WindowAttr(Window.of_lists(dict(found)))
    except ValueError as error:
        raise c.wrong(str(error)) from None


def padding_of(c: Conversion, rank: int) -> Array | None:
    """The attribute `padding`: rows of (low, high), a literal or a list of lists; None if omitted."""
    if "padding" not in c.attributes:
        return None
    value = c.attributes.found["padding"].value
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        if not all(is_integers(row) and len(row) == 2 for row in listed):
            raise c.attributes.wrong("padding", "rows of two numbers")
        found = np.asarray(listed, np.int64)
    else:
        found = c.attributes.array("padding")
    if found.size != 2 * rank:
        raise c.attributes.wrong("padding", f"{rank} rows of two numbers")
    return found


def _groups(c: Conversion) -> dict[str, Attribute | None]:
    """feature_group_count and batch_group_count, if they are not 1."""
    counts = {name: c.attributes.integer(name, 1) for name in ("feature_group_count", "batch_group_count")}
    return {name: IntegerAttr(count, i64) if count != 1 else None for name, count in counts.items()}


def _labels(c: Conversion) -> ConvolutionLabels:
    if isinstance(c.attributes.get("dimension_numbers", object, "labels"), dict):
        return _numbered_labels(c)
    return c.attributes.get("dimension_numbers", ConvolutionLabels, "[b, f, 0]x[o, i, 0]->[b, f, 0]")


def _numbered_labels(c: Conversion) -> ConvolutionLabels:
    """The labels of `{input_batch_dimension = 0, input_spatial_dimensions = [1, 2], ...}`, as MHLO wrote them until 2022."""

    def labels(array: str, *words: str) -> tuple[str, ...]:
        spatial = c.attributes.integers_in("dimension_numbers", f"{array}_spatial_dimensions")
        places = {
            c.attributes.integer_in("dimension_numbers", f"{array}_{word}_dimension", -1): word[0] for word in words
        }
        places |= {dim: str(number) for number, dim in enumerate(spatial)}
        if sorted(places) != list(range(len(spatial) + 2)):
            raise c.attributes.wrong("dimension_numbers", f"a number for each dimension of the {array}")
        return tuple(places[dim] for dim in sorted(places))

    return ConvolutionLabels(
        labels("input", "batch", "feature"),
        labels("kernel", "output_feature", "input_feature"),
        labels("output", "batch", "feature"),
    )


def _convolution(c: Conversion) -> Results:
    image, kernel = c.expect_operands(2)
    labels = _labels(c)
    spatial = len(labels.kernel) - 2
    pad = padding_of(c, spatial)
    if any(dims_of(kernel)[dim] == UNBOUNDED for dim, label in enumerate(labels.kernel) if label not in ("i", "o")):
        rows = np.zeros((spatial, 2), np.int64) if pad is None else pad.reshape(spatial, 2)
        padding = constant(c, rows, array_type(dtype("s64").ir_type, rows.shape))
        return _convolution_by_value(c, image, kernel, padding, labels)
    along = _spatial_window(c, kernel, labels, pad)
    return c.add(
        "convolution",
        [image, kernel],
        c.type,
        dim_labels=StringAttr(labels.hlo()),
        window=along if along.data.dims else None,
        operand_precision=_precision(c),
        **_groups(c),
    )


def _dynamic_conv(c: Conversion) -> Results:
    image, kernel, padding = c.expect_operands(3)
    return _convolution_by_value(c, image, kernel, padding, _labels(c))


def _convolution_by_value(
    c: Conversion, image: SSAValue, kernel: SSAValue, padding: SSAValue, labels: ConvolutionLabels
) -> SSAValue:
    """A convolution whose padding, or kernel's size, is known only at run time."""
    return c.add(
        "dynamic-conv",
        [image, kernel, padding],
        c.type,
        dim_labels=StringAttr(labels.hlo()),
        window=_spatial_window(c, kernel, labels, None),
        operand_precision=_precision(c),
        **_groups(c),
    )


# ---------------------------------------------------------------------------------------------------------- sizes as values


S32 = dtype("s32")


def size_of(c: Conversion, x: SSAValue, dim: int) -> SSAValue:
    """The size of one dimension, as s32[]."""
    scalar = array_type(S32.ir_type, ())
    if (size := dims_of(x)[dim]) != UNBOUNDED:
        return constant(c, np.asarray(size, np.int32), scalar)
    return c.add("get-dimension-size", [x], scalar, dimensions=integer_array([dim]))


def listed(c: Conversion, scalars: Sequence[SSAValue], element: DType = S32) -> SSAValue:
    """The list of these scalars. The type of none is s32[0], or of another element."""
    if not scalars:
        return constant(c, np.zeros(0, element.numpy), array_type(element.ir_type, (0,)))
    ir_type = as_array(scalars[0].type).element_type
    parts = [c.add("reshape", [scalar], array_type(ir_type, (1,))) for scalar in scalars]
    if len(parts) == 1:
        return parts[0]
    return c.add("concatenate", parts, array_type(ir_type, (len(parts),)), dimensions=integer_array([0]))


def sizes_of(c: Conversion, x: SSAValue) -> SSAValue:
    """The sizes of an array, as a list s32[rank]."""
    return listed(c, [size_of(c, x, dim) for dim in range(len(dims_of(x)))])


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
    zero = constant(c, np.zeros((), element_of(x).numpy), scalar)
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
        operand_precision=_precision(c),
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
    one = constant(c, np.asarray(1, np.int32), array_type(S32.ir_type, ()))
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
            result_type(c.types),
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


API_VERSIONS = (
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)


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
    types = result_type([array.type for array in arrays])
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
        zeros, ones = (constant(c, np.full(rank, number, np.int32), limits.type) for number in (0, 1))
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
    "clamp": _clamp,
    "constant": _constant,
    "iota": _iota,
    "broadcast": _broadcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "slice": _slice,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "dot_general": _dot_general,
    "dot": _dot,
    "convolution": _convolution,
    "dynamic_conv": _dynamic_conv,
    "tuple": lambda c: c.tuple_of(c.operands),
    "get_tuple_element": lambda c: c.add(
        "get-tuple-element", c.operands, c.type, index=IntegerAttr(c.attributes.integer("index"), i64)
    ),
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
    "stablehlo.dynamic_rng_bit_generator": rule_of(OpRow("dynamic-rng-bit-generator", (GENERATOR,))),
    "stablehlo.dynamic_top_k": rule_of(OpRow("dynamic-top-k")),
}
