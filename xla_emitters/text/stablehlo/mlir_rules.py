"""Conversion of MLIR's own dialects, in which front ends other than JAX compute sizes: scalars, lists of sizes, and constraints.

    %d = tensor.dim %x, %c0 : tensor<?x4xf32>            get-dimension-size {0}, convert to s64[]
    %n = arith.muli %d, %c4 : index                      multiply, of s64[]
    %s = tensor.from_elements %n, %c1 : tensor<2xindex>  reshape to s64[1] each, concatenate
    %e = tensor.extract %s[%c0] : tensor<2xindex>        slice, reshape to s64[]
    shape.shape_of %x                                    the list of all sizes of x, s64[rank]
    shape.broadcast %a, %b                               for each size: select(a == 1, b, a), aligned at the last
    %w = shape.cstr_broadcastable %a, %b                 shape-assertion for each size; %w is true
    shape.assuming %w -> (...) { ... }                   the ops of the region

`index` and a size are s64, a scalar is an array of rank 0, a witness is a pred. The length of a `!shape.shape` is that of its list.
MLIR's integers have no sign: ops of unsigned numbers convert to the unsigned type and back.
Source: MLIR, "'arith' Dialect", "'tensor' Dialect", "'shape' Dialect" (https://mlir.llvm.org/docs/Dialects/).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    array_type,
    as_array,
    dims_of,
    element_of,
    is_array,
    same_shape,
    tuple_type,
)
from xla_emitters.dtypes import DType, Kind, dtype
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.rules import Results, elementwise, listed, pass_through, s64_list, size_of
from xla_emitters.text.stablehlo.stablehlo_literals import Literal
from xla_emitters.text.stablehlo.stablehlo_types import INDEX, TRUTH, stablehlo_type

S64 = dtype("s64")


def _number(c: Conversion, value: int) -> SSAValue:
    return c.constant(np.asarray(value, np.int64), INDEX)


def _as_type(c: Conversion, x: SSAValue, element: DType) -> SSAValue:
    """The elements of x in another type."""
    if element_of(x) == element:
        return x
    return c.add("convert", [x], array_type(element.ir_type, dims_of(x)))


# ------------------------------------------------------------------------------------------------------------------- arith


def _constant(c: Conversion) -> Results:
    value = c.attributes.get("value", object, "a number or a literal")
    element = element_of(c.type)
    array = value.array if isinstance(value, Literal) else np.asarray(value)
    if array.dtype.kind in "OU" or array.shape != dims_of(c.type) or (element.is_integer and array.dtype.kind == "f"):
        raise c.attributes.wrong("value", f"a value of {stablehlo_type(c.type)}")
    return c.constant(array.astype(element.numpy), c.type)


def _unsigned(rule: Callable[[Conversion], SSAValue]) -> Rule:
    """A rule that computes with the unsigned integers of the same bits."""

    def converted(c: Conversion) -> Results:
        element = element_of(c.operands[0])
        if element.kind is Kind.SIGNED:
            c.operands = [_as_type(c, x, dtype(f"u{element.bits}")) for x in c.operands]
        found = rule(c)
        return _as_type(c, found, element) if element_of(c.type) == element else found

    return converted


def _binary(opcode: str) -> Callable[[Conversion], SSAValue]:
    def rule(c: Conversion) -> SSAValue:
        x, y = c.expect_operands(2)
        return c.add(opcode, [x, y], x.type)

    return rule


def _zero(c: Conversion, x: SSAValue, value: int = 0) -> SSAValue:
    element, dims = element_of(x), dims_of(x)
    if UNBOUNDED in dims:
        raise c.unsupported(f"'{c.op.name}' of arrays of unknown sizes is not taken")
    return c.constant(np.full(dims, value, element.numpy), x.type)


def _compare(c: Conversion, direction: str, x: SSAValue, y: SSAValue) -> SSAValue:
    ir_type = array_type(TRUTH.element_type, dims_of(x))
    return c.add("compare", [x, y], ir_type, direction=StringAttr(direction))


def _rounded_down(c: Conversion, x: SSAValue, y: SSAValue) -> SSAValue:
    """The quotient as JAX computes it: one less if it is inexact and the signs differ."""
    quotient, rest = (c.add(opcode, [x, y], x.type) for opcode in ("divide", "remainder"))
    signs = _compare(c, "NE", *(c.add("sign", [number], x.type) for number in (x, y)))
    inexact = _compare(c, "NE", rest, _zero(c, rest))
    lower = c.add("subtract", [quotient, _zero(c, quotient, 1)], x.type)
    both = c.add("and", [signs, inexact], signs.type)
    return c.add("select", [both, lower, quotient], x.type)


def _floor_division(c: Conversion) -> SSAValue:
    x, y = c.expect_operands(2)
    return _rounded_down(c, x, y)


def _ceiling_division(c: Conversion) -> SSAValue:
    x, y = c.expect_operands(2)
    return c.add("negate", [_rounded_down(c, c.add("negate", [x], x.type), y)], x.type)


def _unsigned_ceiling_division(c: Conversion) -> SSAValue:
    x, y = c.expect_operands(2)
    quotient, rest = (c.add(opcode, [x, y], x.type) for opcode in ("divide", "remainder"))
    return c.add("add", [quotient, c.add("minimum", [rest, _zero(c, rest, 1)], x.type)], x.type)


PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def _compare_integers(c: Conversion) -> Results:
    found = c.attributes.get("predicate", object, "a predicate such as slt")
    word = PREDICATES[found] if isinstance(found, int) and 0 <= found < len(PREDICATES) else str(found)
    if word not in PREDICATES:
        raise c.attributes.wrong("predicate", f"one of {', '.join(PREDICATES)}")
    x, _ = c.expect_operands(2)
    if element_of(x).kind is Kind.PRED and word[0] == "s":
        raise c.unsupported(f"'{c.op.name}' of i1 with a sign is not taken", help=f"u{word[1:]}")

    def rule(c: Conversion) -> SSAValue:
        return _compare(c, word[-2:].upper(), *c.operands)

    return _unsigned(rule)(c) if word[0] == "u" else rule(c)


def _resized(c: Conversion) -> Results:
    """A signed integer in more or fewer bits. The only bit of an i1 is its sign, and fewer bits than 8 are not the value."""
    (x,) = c.expect_operands(1)
    if element_of(c.type).kind is Kind.PRED and element_of(x).kind is not Kind.PRED:
        raise c.unsupported(f"'{c.op.name}' to i1 is not taken", help="compare with 0")
    wide = _as_type(c, x, element_of(c.type))
    return c.add("negate", [wide], c.type) if element_of(x).kind is Kind.PRED else wide


def _extended(c: Conversion) -> Results:
    """An unsigned integer in more or fewer bits."""
    (x,) = c.expect_operands(1)
    if element_of(x).kind is not Kind.SIGNED:
        return _as_type(c, x, element_of(c.type))
    if element_of(c.type).kind is Kind.PRED:
        raise c.unsupported(f"'{c.op.name}' to i1 is not taken", help="compare with 0")
    return _as_type(c, _as_type(c, x, dtype(f"u{element_of(x).bits}")), element_of(c.type))


# ------------------------------------------------------------------------------------------------- lists of sizes as arrays


def _size(c: Conversion, x: SSAValue, dim: int) -> SSAValue:
    return _as_type(c, size_of(c, x, dim), S64)


def _listed(c: Conversion, scalars: Sequence[SSAValue]) -> SSAValue:
    return listed(c, scalars, S64)


def _length(c: Conversion, shape: SSAValue) -> int:
    """The number of elements of a list of sizes."""
    dims = dims_of(shape)
    if len(dims) != 1:
        raise c.wrong(f"'{c.op.name}' takes lists of sizes", f"it is {stablehlo_type(shape.type)}")
    if dims[0] == UNBOUNDED:
        raise c.unsupported(f"'{c.op.name}' of a shape of unknown rank is not taken")
    return dims[0]


def _extent(c: Conversion, shape: SSAValue, number: int) -> SSAValue:
    """An element of a list."""
    element = as_array(shape.type).element_type
    part = shape
    if _length(c, shape) != 1:
        ranges = ArrayAttr([integer_array([number, number + 1, 1])])
        part = c.add("slice", [shape], array_type(element, (1,)), slice=ranges)
    return c.add("reshape", [part], array_type(element, ()))


def _extents(c: Conversion, shape: SSAValue) -> list[SSAValue]:
    return [_extent(c, shape, number) for number in range(_length(c, shape))]


def _at(c: Conversion, shape: SSAValue, index: SSAValue) -> SSAValue:
    """The element of a list at a place that is a value."""
    count, owner = _length(c, shape), index.owner
    if isinstance(owner, ConstantOp):
        number = int(owner.array())
        if not 0 <= number < count:
            raise c.wrong(f"'{c.op.name}' takes element {number} of {count}")
        return _extent(c, shape, number)
    element = as_array(shape.type).element_type
    part = c.add("dynamic-slice", [shape, index], array_type(element, (1,)), dynamic_slice_sizes=integer_array([1]))
    return c.add("reshape", [part], array_type(element, ()))


def _all_sizes(c: Conversion, x: SSAValue) -> SSAValue:
    return _listed(c, [_size(c, x, dim) for dim in range(len(dims_of(x)))])


# ------------------------------------------------------------------------------------------------------------------ tensor


def _dim(c: Conversion) -> Results:
    x, index = c.expect_operands(2)
    if isinstance(index.owner, ConstantOp):
        number = int(index.owner.array())
        if not 0 <= number < len(dims_of(x)):
            raise c.wrong(f"'{c.op.name}' takes dimension {number} of {stablehlo_type(x.type)}")
        return _size(c, x, number)
    return _at(c, _all_sizes(c, x), index)


def _from_elements(c: Conversion) -> Results:
    dims = dims_of(c.type)
    if UNBOUNDED in dims or int(np.prod(dims)) != len(c.operands):
        raise c.wrong(f"'{c.op.name}' of {len(c.operands)} elements is {stablehlo_type(c.type)}")
    if not c.operands:
        return c.constant(np.zeros(dims, element_of(c.type).numpy), c.type)
    found = _listed(c, c.operands) if dims else c.operands[0]
    return found if len(dims) < 2 else c.add("reshape", [found], c.type)


def _extract(c: Conversion) -> Results:
    x, *indices = c.operands
    if len(indices) != len(dims_of(x)):
        raise c.wrong(f"'{c.op.name}' has {len(indices)} indices of an array of {len(dims_of(x))} dimensions")
    if not indices:
        return x
    if len(indices) == 1 and UNBOUNDED not in dims_of(x):
        return _at(c, x, indices[0])
    ones = [1] * len(indices)
    part = c.add(
        "dynamic-slice",
        c.operands,
        array_type(as_array(x.type).element_type, ones),
        dynamic_slice_sizes=integer_array(ones),
    )
    return c.add("reshape", [part], c.type)


def _cast(c: Conversion) -> Results:
    """The array itself; sizes that the new type knows and the operand's does not are checked."""
    (x,) = c.expect_operands(1)
    if not same_shape(x.type, c.type):
        raise c.wrong(f"'{c.op.name}' cannot make {stablehlo_type(c.type)} of {stablehlo_type(x.type)}")
    wanted, given = dims_of(c.type), dims_of(x)
    dims = [size if size != UNBOUNDED else other for size, other in zip(wanted, given, strict=True)]
    if dims == list(given):
        return x
    for dim, (size, other) in enumerate(zip(dims, given, strict=True)):
        if size != other:
            found = _size(c, x, dim)
            message = f"'{c.op.name}': the size of dimension {dim} is {{0}}, not {size}"
            _require(c, _compare(c, "EQ", found, _number(c, size)), message, [found])
    sizes = _listed(c, [_number(c, size) if size != UNBOUNDED else _size(c, x, dim) for dim, size in enumerate(dims)])
    return c.add("dynamic-reshape", [x, sizes], array_type(as_array(x.type).element_type, dims))


# ------------------------------------------------------------------------------------------------------------------- shape


def _shape_of(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    return _all_sizes(c, x)


def _get_extent(c: Conversion) -> Results:
    shape, index = c.expect_operands(2)
    return _at(c, shape, index)


def _rank(c: Conversion) -> Results:
    (x,) = c.expect_operands(1)
    return _number(c, _length(c, x))


def _num_elements(c: Conversion) -> Results:
    (shape,) = c.expect_operands(1)
    extents = _extents(c, shape) or [_number(c, 1)]
    found = extents[0]
    for extent in extents[1:]:
        found = c.add("multiply", [found, extent], INDEX)
    return found


def _aligned(c: Conversion, shapes: Sequence[SSAValue]) -> list[list[SSAValue]]:
    """For each dimension of a broadcast, the first one first: the extents that the shapes have there."""
    backward = [list(reversed(_extents(c, shape))) for shape in shapes]
    rows = [[extent for extent in row if extent is not None] for row in zip_longest(*backward)]
    return list(reversed(rows))


def _broadcast(c: Conversion) -> Results:
    one = _number(c, 1)
    found = list[SSAValue]()
    for row in _aligned(c, c.operands):
        size = row[0]
        for other in row[1:]:
            size = c.add("select", [_compare(c, "EQ", size, one), other, size], INDEX)
        found.append(size)
    return _listed(c, found)


def _require(c: Conversion, condition: SSAValue, message: str, shown: Sequence[SSAValue] = ()) -> None:
    c.add("shape-assertion", [condition, *shown], tuple_type([]), message=StringAttr(message))


def _all(c: Conversion, conditions: Sequence[SSAValue]) -> SSAValue:
    found = conditions[0] if conditions else c.constant(np.asarray(True), TRUTH)
    for condition in conditions[1:]:
        found = c.add("and", [found, condition], TRUTH)
    return found


def _broadcastable(c: Conversion) -> list[tuple[int, SSAValue, list[SSAValue]]]:
    """Conditions for a broadcast of two or more shapes: dimension, condition, the two extents."""
    one, found = _number(c, 1), list[tuple[int, SSAValue, list[SSAValue]]]()
    for dim, row in enumerate(_aligned(c, c.operands)):
        size = row[0]
        for other in row[1:]:
            is_one = [_compare(c, "EQ", extent, one) for extent in (size, other)]
            condition = _compare(c, "EQ", size, other)
            for alternative in is_one:
                condition = c.add("or", [condition, alternative], TRUTH)
            found.append((dim, condition, [size, other]))
            size = c.add("select", [is_one[0], other, size], INDEX)
    return found


def _equal(c: Conversion) -> list[tuple[int, SSAValue, list[SSAValue]]]:
    """Conditions for two or more equal shapes."""
    first, *others = c.operands
    if len({_length(c, shape) for shape in c.operands}) != 1:
        raise c.wrong(f"'{c.op.name}': shapes of different ranks are not equal")
    return [
        (dim, _compare(c, "EQ", a, b), [a, b])
        for other in others
        for dim, (a, b) in enumerate(zip(_extents(c, first), _extents(c, other), strict=True))
    ]


def _is(conditions: Callable[[Conversion], list[tuple[int, SSAValue, list[SSAValue]]]]) -> Rule:
    return lambda c: _all(c, [condition for _, condition, _ in conditions(c)])


def _constraint(conditions: Callable[[Conversion], list[tuple[int, SSAValue, list[SSAValue]]]], what: str) -> Rule:
    """A rule that stops the program where a condition does not hold; the witness is true."""

    def rule(c: Conversion) -> Results:
        for dim, condition, shown in conditions(c):
            _require(c, condition, f"'{c.op.name}': dimension {dim} of the shapes is {{0}} and {{1}}: {what}", shown)
        return c.constant(np.asarray(True), TRUTH)

    return rule


def _cstr_require(c: Conversion) -> Results:
    (condition,) = c.expect_operands(1)
    _require(c, condition, c.attributes.string("msg"))
    return condition


def _assuming(c: Conversion) -> Results:
    """The ops of the region: its witness has been checked."""
    (region,) = c.expect_regions(1)
    return c.body.ops(region)


# --------------------------------------------------------------------------------------------- reshapes with a size of -1


def _compute_reshape_shape(c: Conversion) -> Results:
    """The sizes, with -1 replaced by the quotient of the number of elements and the others' product."""
    count, shape = c.expect_operands(2)
    sizes = [_as_type(c, extent, S64) for extent in _extents(c, shape)]
    one, product = _number(c, 1), _number(c, 1)
    is_open = [_compare(c, "EQ", size, _number(c, -1)) for size in sizes]
    for size, unknown in zip(sizes, is_open, strict=True):
        product = c.add("multiply", [product, c.add("select", [unknown, one, size], INDEX)], INDEX)
    quotient = c.add("divide", [_as_type(c, count, S64), product], INDEX)
    found = [c.add("select", [unknown, quotient, size], INDEX) for size, unknown in zip(sizes, is_open, strict=True)]
    return _as_type(c, _listed(c, found), element_of(shape))


_UNSIGNED: dict[str, Callable[[Conversion], SSAValue]] = {
    "divui": _binary("divide"),
    "remui": _binary("remainder"),
    "minui": _binary("minimum"),
    "maxui": _binary("maximum"),
    "ceildivui": _unsigned_ceiling_division,
}
_SAME = {
    "addi": "add", "subi": "subtract", "muli": "multiply", "divsi": "divide", "remsi": "remainder", "minsi": "minimum",
    "maxsi": "maximum", "andi": "and", "ori": "or", "xori": "xor", "shli": "shift-left", "shrsi": "shift-right-arithmetic",
    "shrui": "shift-right-logical", "addf": "add", "subf": "subtract", "mulf": "multiply", "divf": "divide",
}  # fmt: skip


def _checked(name: str, rule: Rule) -> Rule:
    """The rule, for operands that are arrays; those of `arith`'s integer ops and of `shape` are integers, elements of a list scalars."""
    least = 0 if name in _WITHOUT_OPERANDS else 1
    of_integers = name.startswith("arith.") and name not in _ANY_ELEMENTS

    def checked(c: Conversion) -> Results:
        if len(c.operands) < least:
            raise c.wrong(f"'{c.op.name}' has operands")
        for x in c.operands:
            if not is_array(x.type):
                raise c.wrong(f"'{c.op.name}' takes arrays and scalars")
            if of_integers and not element_of(x).is_integer and element_of(x).kind is not Kind.PRED:
                raise c.wrong(f"'{c.op.name}' takes integers", f"it is {stablehlo_type(x.type)}")
            if name in _OF_SCALARS and dims_of(x):
                raise c.wrong(f"'{c.op.name}' takes scalars", f"it is {stablehlo_type(x.type)}")
        return rule(c)

    return checked


_WITHOUT_OPERANDS = (
    "arith.constant", "shape.const_shape", "shape.const_size", "shape.const_witness", "shape.assuming_all", "tensor.from_elements",
    "shape.from_extents", "shape.broadcast", "shape.concat",
)  # fmt: skip
_ANY_ELEMENTS = ("arith.select", "arith.sitofp", "arith.fptosi", "arith.addf", "arith.subf", "arith.mulf", "arith.divf")
_OF_SCALARS = ("tensor.from_elements", "shape.from_extents")

_RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    **{f"arith.{name}": elementwise(opcode) for name, opcode in _SAME.items()},
    **{f"arith.{name}": _unsigned(rule) for name, rule in _UNSIGNED.items()},
    "arith.floordivsi": _floor_division,
    "arith.ceildivsi": _ceiling_division,
    "arith.cmpi": _compare_integers,
    "arith.select": lambda c: c.add("select", c.expect_operands(3), c.type),
    **dict.fromkeys(("arith.index_cast", "arith.extsi", "arith.trunci"), _resized),
    **dict.fromkeys(("arith.index_castui", "arith.extui"), _extended),
    **dict.fromkeys(("arith.sitofp", "arith.fptosi"), elementwise("convert")),
    "tensor.dim": _dim,
    "tensor.from_elements": _from_elements,
    "tensor.extract": _extract,
    "tensor.cast": _cast,
    "shape.shape_of": _shape_of,
    "shape.const_shape": lambda c: s64_list(c, c.attributes.integers("shape")),
    "shape.const_size": lambda c: _number(c, c.attributes.integer("value")),
    "shape.const_witness": lambda c: c.constant(np.asarray(c.attributes.boolean("passing")), TRUTH),
    **dict.fromkeys(("shape.to_extent_tensor", "shape.from_extent_tensor"), pass_through),
    **dict.fromkeys(("shape.size_to_index", "shape.index_to_size"), pass_through),
    "shape.from_extents": lambda c: _listed(c, c.operands),
    "shape.dim": _dim,
    "shape.get_extent": _get_extent,
    "shape.rank": _rank,
    "shape.num_elements": _num_elements,
    **{f"shape.{name}": elementwise(opcode) for name, opcode in (("add", "add"), ("mul", "multiply"))},
    "shape.div": _floor_division,
    "shape.broadcast": _broadcast,
    "shape.concat": lambda c: _listed(c, [extent for shape in c.operands for extent in _extents(c, shape)]),
    "shape.is_broadcastable": _is(_broadcastable),
    "shape.shape_eq": _is(_equal),
    "shape.cstr_broadcastable": _constraint(_broadcastable, "they must be equal, or one of them 1"),
    "shape.cstr_eq": _constraint(_equal, "they must be equal"),
    "shape.cstr_require": _cstr_require,
    "shape.assuming_all": lambda c: _all(c, c.operands),
    "shape.assuming": _assuming,
    "stablehlo.compute_reshape_shape": _compute_reshape_shape,
}

MLIR_RULES: dict[str, Rule] = {name: _checked(name, rule) for name, rule in _RULES.items()}
"""Op -> the rule that converts it."""
