"""Conversion of `chlo.scan`, which JAX writes for `cumsum` and its like since 0.12.

    %1:2 = chlo.scan(%x) inits (%0) dimension=1 attributes {is_reverse = false} {
    ^bb0(%slice, %carry):                          a slice of each input, then the carried values
      ...
      stablehlo.return %out, %next                 a slice of each output, then the next carried values
    } : (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    %1:2 = stablehlo.composite "chlo.scan" %x, %0 ({...}) {composite_attributes = {dimension = 1, ...}}       as jax.export writes it

A sum, product, minimum ... that begins with its neutral element is a reduce-window over all elements before, which kernels compute at once;
of an unknown size a dynamic-reduce-window. Any other scan is a loop over the slices.
Source: CHLO's ODS declarations; XLA's operation semantics, "Scan" (https://openxla.org/xla/operation_semantics#scan).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of, is_array
from xla_emitters.dtypes import DType, Kind
from xla_emitters.text.stablehlo.computations import Conversion, inner_tuple
from xla_emitters.text.stablehlo.op_table import ELEMENTWISE
from xla_emitters.text.stablehlo.rules import DATA_RULES, S32, Results, filled, listed, s32, size_of
from xla_emitters.text.stablehlo.stablehlo_contractions import window
from xla_emitters.text.stablehlo.stablehlo_literals import Literal
from xla_emitters.text.stablehlo.stablehlo_types import TRUTH
from xla_emitters.text.stablehlo.tree import Region, Value

_I32 = array_type(S32.ir_type, ())


def scan(c: Conversion) -> Results:
    sizes, along = c.attributes.integers("operandSegmentSizes"), c.attributes.integer("dimension")
    return _scan(c, sizes, along, is_reverse=c.attributes.boolean("is_reverse", False))


def composite(c: Conversion) -> Results:
    """A scan that jax.export has written as a composite, with the loop as its decomposition; any other composite is a call."""
    if c.attributes.string("name") != "chlo.scan" or not c.op.regions:
        return DATA_RULES["composite"](c)
    name = "composite_attributes"
    sizes, along = c.attributes.integers_in(name, "operandSegmentSizes"), c.attributes.integer_in(name, "dimension", -1)
    return _scan(c, sizes, along, is_reverse=c.attributes.integer_in(name, "is_reverse", 0) == 1)


def _scan(c: Conversion, sizes: Sequence[int], along: int, *, is_reverse: bool) -> Results:
    (region,) = c.expect_regions(1)
    if len(sizes) != 2 or sum(sizes) != len(c.operands):
        raise c.wrong("a scan has inputs, and the values that its carries begin with")
    inputs, inits = c.operands[: sizes[0]], c.operands[sizes[0] :]
    if not inputs:
        raise c.unsupported("'chlo.scan' without inputs is not taken")
    if not all(map(is_array, (value.type for value in c.operands))) or not 0 <= along < len(dims_of(inputs[0])):
        raise c.wrong(f"dimension {along} of a scan is one of its inputs'")
    count = len(region.returned.operands) - len(inits)
    if count != len(c.types) - len(inits) or len(region.arguments) != len(c.operands):
        raise c.wrong("the region of a scan has an argument for each operand, and returns a value for each result")
    carries = [value.type for value in c.op.operands[sizes[0] :]]
    if [value.type for value in region.arguments[sizes[0] :]] != carries or carries != [
        value.type for value in region.returned.operands[count:]
    ]:
        raise c.wrong("a scan carries values of the types that it begins with")
    opcode = _reduction(region)
    if opcode is not None and _is_neutral(opcode, c.op.operands[1]) and dims_of(inputs[0])[along] != 0:
        return _window(c, opcode, along, is_reverse=is_reverse)
    return _loop(c, region, inputs, inits, count, along, is_reverse=is_reverse)


# --------------------------------------------------------------------------------------------------- scans that are windows


def _reduction(region: Region) -> str | None:
    """HLO's opcode of a scan whose region is one op of its slice and its carry, which is the output too."""
    if len(region.arguments) != 2 or len(region.ops) != 2:
        return None
    op, returned = region.ops[0], region.returned.operands
    opcode = ELEMENTWISE.get(op.opcode) if op.name.startswith("stablehlo.") else None
    if opcode not in ("add", "multiply", "maximum", "minimum", "and", "or") or set(op.operands) != set(
        region.arguments
    ):
        return None
    return opcode if returned == [op.results[0]] * 2 else None


def _is_neutral(opcode: str, init: Value) -> bool:
    """Whether the initial carry is a literal that the op leaves out of account."""
    literal = _literal(init)
    return (
        literal is not None
        and literal.array.size > 0
        and bool((literal.array == _neutral(opcode, literal.element)).all())
    )


def _literal(value: Value) -> Literal | None:
    """The literal that a value is, or is made of by broadcasting."""
    owner = value.owner
    if owner is None:
        return None
    if owner.opcode in ("broadcast_in_dim", "dynamic_broadcast_in_dim", "broadcast"):
        return _literal(owner.operands[0])
    found: Any = owner.attributes.found["value"].value if owner.opcode == "constant" else None
    return found if isinstance(found, Literal) else None


def _neutral(opcode: str, element: DType) -> Any:
    if opcode in ("add", "or", "multiply"):
        return int(opcode == "multiply")
    if opcode == "and" or element.kind is Kind.PRED:
        return element.kind is Kind.PRED or -1
    if element.kind is Kind.FLOAT:
        return -np.inf if opcode == "maximum" else np.inf
    return element.integers[0 if opcode == "maximum" else -1]


def _window(c: Conversion, opcode: str, along: int, *, is_reverse: bool) -> Results:
    """Each element is the reduction of all elements up to it."""
    x, init = c.operands
    ir_type, rank, size = as_array(x.type), len(dims_of(x)), dims_of(x)[along]
    scalar = array_type(ir_type.element_type, ())
    literal = _literal(c.op.operands[1])
    assert literal is not None
    zero = c.constant(literal.array.reshape(-1)[0].reshape(()), scalar)
    reducer = c.module.scalar_computation(opcode, scalar, c.op.token)
    if size != UNBOUNDED:
        sizes, pad = [1] * rank, [0] * (2 * rank)
        sizes[along], pad[2 * along + is_reverse] = size, size - 1
        found = c.add("reduce-window", [x, zero], x.type, window=window(c, sizes, pad=pad), to_apply=reducer)
    else:
        one, none = s32(c, 1), s32(c, 0)
        # Of no elements too: there is one window more than there are elements before the last.
        length = c.add("maximum", [size_of(c, x, along), one], _I32)
        before = c.add("subtract", [length, one], _I32)
        ones = listed(c, [one] * rank)
        row = [none] * (2 * rank)
        row[2 * along + is_reverse] = before
        rows = c.add("reshape", [listed(c, row)], array_type(S32.ir_type, (rank, 2)))
        sizes_list = listed(c, [length if dim == along else one for dim in range(rank)])
        parts = [x, zero, sizes_list, ones, ones, ones, rows]
        found = c.add("dynamic-reduce-window", parts, x.type, to_apply=reducer)
    carry = c.add("reduce", [x, zero], init.type, dimensions=integer_array([along]), to_apply=reducer)
    return [found, carry]


# ---------------------------------------------------------------------------------------------------- scans that are loops


def _slice_at(c: Conversion, x: SSAValue, along: int, at: SSAValue, ir_type: Attribute) -> SSAValue:
    """The slice of x at a place of one dimension, which the result does not have."""
    rank, element = len(dims_of(x)), as_array(x.type).element_type
    sizes = [1 if dim == along else size for dim, size in enumerate(dims_of(x))]
    zero, one = s32(c, 0), s32(c, 1)
    starts = [at if dim == along else zero for dim in range(rank)]
    if UNBOUNDED not in sizes:
        cut = c.add("dynamic-slice", [x, *starts], array_type(element, sizes), dynamic_slice_sizes=integer_array(sizes))
        return c.add("reshape", [cut], ir_type)
    after = c.add("add", [at, one], _I32)
    limits = [after if dim == along else size_of(c, x, dim) for dim in range(rank)]
    lists = [listed(c, starts), listed(c, limits), listed(c, [one] * rank)]
    cut = c.add("real-dynamic-slice", [x, *lists], array_type(element, sizes))
    shape = listed(c, [size for dim, size in enumerate(limits) if dim != along])
    return c.add("dynamic-reshape", [cut, shape], ir_type)


def _placed_at(c: Conversion, x: SSAValue, part: SSAValue, along: int, at: SSAValue) -> SSAValue:
    """x with its slice at a place of one dimension replaced."""
    rank, element = len(dims_of(x)), as_array(x.type).element_type
    sizes = [1 if dim == along else size for dim, size in enumerate(dims_of(x))]
    zero, one = s32(c, 0), s32(c, 1)
    if UNBOUNDED not in sizes:
        slab = c.add("reshape", [part], array_type(element, sizes))
    else:
        shape = listed(c, [one if dim == along else size_of(c, x, dim) for dim in range(rank)])
        slab = c.add("dynamic-reshape", [part, shape], array_type(element, sizes))
    starts = [at if dim == along else zero for dim in range(rank)]
    return c.add("dynamic-update-slice", [x, slab, *starts], x.type)


def _empty(c: Conversion, ir_type: Attribute, like: SSAValue) -> SSAValue:
    """Zeros of a type; unknown sizes are those of `like`."""
    is_open = [[size == UNBOUNDED for size in dims_of(each)] for each in (ir_type, like)]
    if any(is_open[0]) and is_open[0] != is_open[1]:
        raise c.unsupported("'chlo.scan' is taken for outputs with the unknown sizes of its first input")
    return filled(c, ir_type, like, 0)


def _loop(
    c: Conversion,
    region: Region,
    inputs: Sequence[SSAValue],
    inits: Sequence[SSAValue],
    count: int,
    along: int,
    *,
    is_reverse: bool,
) -> Results:
    """A loop over (place, number of slices, inputs, carries, outputs, captured values)."""
    captured = c.captured(region)
    zero, length = s32(c, 0), size_of(c, inputs[0], along)
    outputs = [_empty(c, ir_type, inputs[0]) for ir_type in c.types[:count]]
    parts = [zero, length, *inputs, *inits, *outputs, *(c.body.value(value) for value in captured)]
    carried = c.tuple_of(parts)
    types = [value.type for value in parts]

    inner, given = c.inside_tuple(region, "condition", types)
    less = inner.add("compare", given[:2], TRUTH, direction=StringAttr("LT"))
    inner.name_results([less])
    test = inner.body.finish(c.module.fresh(f"{c.name}.condition"), [less], c.op.token)

    inner, (place, number, *values) = c.inside_tuple(region, "body", types)
    body = inner.body
    own, state = values[: len(inputs)], values[len(inputs) : len(inputs) + len(inits)]
    written, kept = values[len(inputs) + len(inits) :][:count], values[len(inputs) + len(inits) + count :]
    one = s32(inner, 1)
    after = inner.add("add", [place, one], _I32)
    at = inner.add("subtract", [number, after], _I32) if is_reverse else place
    slices = [_slice_at(inner, x, along, at, argument.type) for x, argument in zip(own, region.arguments, strict=False)]
    inner.name_results([])
    body.values |= dict(zip((*region.arguments, *captured), (*slices, *state, *kept), strict=True))
    found = body.ops(region)
    inner = Conversion(body, c.op, f"{c.name}.next", [])
    placed = [_placed_at(inner, x, part, along, at) for x, part in zip(written, found[:count], strict=True)]
    inner.name_results([])
    following = [after, number, *own, *found[count:], *placed, *kept]
    step = body.finish(c.module.fresh(f"{c.name}.body"), [inner_tuple(body, following, c.op)], c.op.token)

    symbols = {"condition": SymbolRefAttr(test.sym_name), "body": SymbolRefAttr(step.sym_name)}
    last = c.elements(c.add("while", [carried], carried.type, **symbols), len(types))
    begin = 2 + len(inputs)
    return [*last[begin + len(inits) : begin + len(inits) + count], *last[begin : begin + len(inits)]]
