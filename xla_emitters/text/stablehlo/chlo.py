"""The ops of CHLO, which JAX prints beside those of StableHLO: ops that HLO has, formulas, and implicit broadcasting.

    chlo.erf %x                    erf                          chlo.top_k(%x, k = 2)       topk
    chlo.erf_inv %x                map @chlo.erf_inv.f32        chlo.square %x              multiply(%x, %x)
    chlo.broadcast_add %x, %y      broadcasts of both, add      custom_call @mhlo.erf       as chlo.erf

Operands are broadcast with their last dimensions aligned, and a size of 1 is repeated. If sizes are unknown, those of the result are
computed: if one operand's size is 1, the other's.
Source: StableHLO's ODS declarations of CHLO (https://github.com/openxla/stablehlo/blob/main/stablehlo/dialect/ChloOps.td).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.computation import ParameterOp
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of, element_of, tuple_type
from xla_emitters.dtypes import Kind, dtype
from xla_emitters.text.stablehlo.computations import ComputationBody, Conversion, Rule
from xla_emitters.text.stablehlo.fields import nonempty
from xla_emitters.text.stablehlo.formulas import FORMULAS, KEEPS_TYPE, Scalars
from xla_emitters.text.stablehlo.op_table import CHLO_OPCODES, ELEMENTWISE, TABLE_RULES
from xla_emitters.text.stablehlo.rules import (
    DATA_RULES,
    Results,
    broadcast_in_dim,
    elementwise,
    filled,
    listed,
    s32,
    size_of,
)
from xla_emitters.text.stablehlo.spellings import BROADCASTING
from xla_emitters.text.stablehlo.stablehlo_types import TRUTH

# ------------------------------------------------------------------------------------------------------------- elementwise


def formula(name: str) -> Rule:
    """A rule that applies a function's formula to each element."""

    def rule(c: Conversion) -> Results:
        operands = c.expect_operands(FORMULAS[name][0])
        element = element_of(operands[0])
        if element.kind is not Kind.FLOAT or element.bits < 16:
            raise c.unsupported(f"'{c.op.name}' of {element.name} is not taken: it is of f16, bf16, f32 or f64")
        symbol = c.module.shared(("chlo", name, element.name), lambda: _computation(c, name))
        dimensions = integer_array(range(len(dims_of(c.type))))
        return c.add("map", operands, c.type, to_apply=symbol, dimensions=dimensions)

    return rule


def _computation(c: Conversion, name: str) -> str:
    """Adds the computation of scalars."""
    element = element_of(c.operands[0])
    held = element if element.bits >= 32 or name in KEEPS_TYPE else dtype("f32")
    body = ComputationBody(c.module, None)
    inner = Conversion(body, c.op, name, [])
    count, function = FORMULAS[name]
    scalar, wide = array_type(element.ir_type, ()), array_type(held.ir_type, ())
    arguments = [inner.add_op(ParameterOp(i, scalar, f"p{i}")) for i in range(count)]
    scalars = Scalars(inner, held)
    found = function(
        scalars, [scalars.number(inner.add("convert", [x], wide) if held != element else x) for x in arguments]
    )
    root = found.value if held == element else inner.add("convert", [found.value], scalar)
    inner.name_results([root])
    full_name = c.module.fresh(f"chlo.{name}.{element.name}")
    body.finish(full_name, [root], c.op.token)
    return full_name


def _atan(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    return c.add("atan2", [x, like(c, x, 1.0)], c.type)


def like(c: Conversion, x: SSAValue, value: complex) -> SSAValue:
    """An array of the type of x with this value everywhere."""
    return filled(c, x.type, x, value)


def _square(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    return c.add("multiply", [x, x], c.type)


def _conjugate(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    if element_of(x).kind is not Kind.COMPLEX:
        return x
    part = array_type(element_of(x).part.ir_type, dims_of(x))
    imag = c.add("negate", [c.add("imag", [x], part)], part)
    return c.add("complex", [c.add("real", [x], part), imag], c.type)


def _is_infinite(sign: int) -> Rule:
    """A rule that tests whether an element is infinite; only of the sign `sign`, unless that is 0."""

    def rule(c: Conversion) -> Results:
        (x,) = c.expect_operands(1)
        value = x if sign else c.add("abs", [x], x.type)
        limit = like(c, x, -math.inf if sign < 0 else math.inf)
        return c.add("compare", [value, limit], c.type, direction=StringAttr("EQ"))

    return rule


def _constant_like(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    value = c.attributes.get("value", object, "a number")
    if not isinstance(value, int | float):
        raise c.attributes.wrong("value", "a number")
    return like(c, x, value)


# ----------------------------------------------------------------------------------------------------- implicit broadcasting


def _broadcast_operands(c: Conversion, dimensions: Sequence[int] | None) -> list[SSAValue]:
    """The operands, broadcast to the result's shape.

    dimensions  the result's dimensions for those of the operand of lowest rank; None: the last ones
    """
    operands, result = c.operands, as_array(c.type)
    if all(x is operands[0] for x in operands):
        return operands
    rank = result.get_num_dims()
    ranks = [len(dims_of(x)) for x in operands]
    placed = [range(rank - own, rank) if dimensions is None or own >= rank else dimensions for own in ranks]
    shape: SSAValue | None = None
    found = list[SSAValue]()
    for x, places in zip(operands, placed, strict=True):
        sizes = dims_of(x)
        wanted = array_type(as_array(x.type).element_type, result.get_shape())
        if UNBOUNDED not in (*sizes, *result.get_shape()):
            found.append(x if sizes == result.get_shape() else broadcast_in_dim(c, x, wanted, places))
            continue
        shape = shape or _broadcast_sizes(c, placed, rank)
        found.append(c.add("dynamic-broadcast-in-dim", [x, shape], wanted, dimensions=integer_array(places)))
    return found


def _broadcast_sizes(c: Conversion, placed: Sequence[Sequence[int]], rank: int) -> SSAValue:
    """The sizes of the result: for each dimension, the size of an operand in which it is not 1."""
    one = s32(c, 1)
    sizes = list[SSAValue]()
    for dim in range(rank):
        size = one
        for x, places in zip(c.operands, placed, strict=True):
            if dim not in places:
                continue
            other = size_of(c, x, places.index(dim))
            is_one = c.add("compare", [size, one], TRUTH, direction=StringAttr("EQ"))
            size = other if size is one else c.add("select", [is_one, other, size], one.type)
        sizes.append(size)
    return listed(c, sizes)


def _broadcasting(inner: Rule) -> Rule:
    """A rule that broadcasts the operands to one shape and then applies `inner`."""

    def rule(c: Conversion) -> Results:
        given = c.attributes.integers("broadcast_dimensions", []) if "broadcast_dimensions" in c.attributes else None
        c.operands = _broadcast_operands(c, given)
        return inner(c)

    return rule


# ------------------------------------------------------------------------------------------------------------------- others


def top_k(c: Conversion) -> Results:
    if "mhlo.attributes" in c.attributes:  # a custom call
        k, largest = (c.attributes.integer_in("mhlo.attributes", *part) for part in (("k", -1), ("largest", 1)))
    else:
        k, largest = c.attributes.integer("k"), c.attributes.boolean("largest", True)
    found = c.add(
        "topk", c.expect_operands(1), tuple_type(c.types), k=IntegerAttr(k, i64), largest=IntegerAttr(int(largest), i1)
    )
    return c.elements(found, 2)


_RAGGED_DOT = {
    "lhs_batch_dims": "lhs_batching_dimensions",
    "rhs_batch_dims": "rhs_batching_dimensions",
    "lhs_contracting_dims": "lhs_contracting_dimensions",
    "rhs_contracting_dims": "rhs_contracting_dimensions",
    "lhs_ragged_dims": "lhs_ragged_dimensions",
    "rhs_group_dims": "rhs_group_dimensions",
}
"""HLO's attribute -> its name in StableHLO."""


def _ragged_dot(c: Conversion) -> Results:
    written = {key: c.attributes.integers_in("ragged_dot_dimension_numbers", name) for key, name in _RAGGED_DOT.items()}
    numbers = {key: nonempty(found) for key, found in written.items()}
    return c.add("ragged-dot", c.expect_operands(3), c.type, **numbers)


_ELEMENTWISE: dict[str, Rule] = {
    **{name: elementwise(name) for name in (*CHLO_OPCODES, "tan")},
    **{name: formula(name) for name in FORMULAS},
    "atan": _atan,
    "square": _square,
    "conj": _conjugate,
    "is_inf": _is_infinite(0),
    "is_pos_inf": _is_infinite(1),
    "is_neg_inf": _is_infinite(-1),
}

CHLO_RULES: dict[str, Rule] = {
    **_ELEMENTWISE,
    "constant": DATA_RULES["constant"],
    "constant_like": _constant_like,
    "top_k": top_k,
    "ragged_dot": _ragged_dot,
    **{f"broadcast_{name}": _broadcasting(elementwise(ELEMENTWISE[name])) for name in BROADCASTING},
    **{f"broadcast_{name}": _broadcasting(formula(name)) for name in ("next_after", "polygamma", "zeta")},
    "broadcast_compare": _broadcasting(TABLE_RULES["compare"]),
    "broadcast_select": _broadcasting(lambda c: c.add("select", c.expect_operands(3), c.type)),
}

CHLO_TARGETS: dict[str, Rule] = {**{f"mhlo.{name}": rule for name, rule in _ELEMENTWISE.items()}, "mhlo.topk": top_k}
"""Target of a custom call that represents a CHLO op in a serialized program -> the op's rule."""
