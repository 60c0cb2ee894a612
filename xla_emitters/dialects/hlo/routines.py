"""Ops that XLA expands, or replaces by library calls, before emission: sort, top-k, FFT, linear algebra, batch normalisation, scan ...

    %s = hlo.sort %x {dimensions = array<i64: 0>, name = "s", to_apply = @less} : tensor<8xf32>
    %l = hlo.cholesky %a {lower = true, name = "l"} : tensor<4x3x3xf32>

Rows of `rule_ops`: these ops have no code. Their values are in `library_calls` and `routines_meaning`.
Source: docs/reference/1 6.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import Attribute

from xla_emitters.dialects.hlo import routines_meaning as meaning
from xla_emitters.dialects.hlo.base import HloOp, RuleBroken, at_least
from xla_emitters.dialects.hlo.computation import Callee
from xla_emitters.dialects.hlo.contractions import DotDimensions
from xla_emitters.dialects.hlo.control_meaning import evaluated_by_library
from xla_emitters.dialects.hlo.rule_ops import RuleOp, RuleRow, class_of, element_scalar, scalar
from xla_emitters.dialects.hlo.shape_rule import INTS, Broken, Number, Shape, Sizing, said, same_axes, spelled
from xla_emitters.dialects.hlo.types import (
    ArrayType,
    array_type,
    as_array,
    dims_of,
    element_of,
    one_or_tuple,
    tuple_type,
    tuple_types,
    type_text,
)
from xla_emitters.dialects.hlo.windows import WindowAttr
from xla_emitters.dtypes import Kind, dtype

FLOAT, COMPLEX = Kind.FLOAT, Kind.COMPLEX
INTEGERS = (Kind.SIGNED, Kind.UNSIGNED)


# ----------------------------------------------------------------------------------------------------------- sort, top-k


def _sort(op: RuleOp) -> Attribute:
    rank = len(dims_of(op.array(0)))
    op.only_dimension(rank)
    for i in range(1, len(op.operands)):
        if len(dims_of(op.array(i))) != rank:
            raise _sort_differs(op, i)
    shapes = op.inferred_shapes()
    return one_or_tuple([array_type(op.array(i).element_type, shape) for i, shape in enumerate(shapes)])


def _sort_differs(op: RuleOp, operand: int) -> RuleBroken:
    return op.broken("the arrays that are sorted together have one shape", operand)


def _comparator(op: RuleOp) -> tuple[Callee, ...]:
    """The comparator: from two scalars per operand (a0, b0, a1, b1 ...) to a pred."""
    (name,) = op.symbols("to_apply")
    takes = [element_scalar(ir_type) for ir_type in op.types for _ in range(2)]
    return (Callee(name, takes, scalar("pred")),)


def _top_k(op: RuleOp) -> Attribute:
    operand = op.array(0)
    if not dims_of(operand) or op.number("k") < 0:
        raise _too_few(op)
    dims = op.inferred_dims()
    return tuple_type([array_type(operand.element_type, dims), array_type(dtype("s32").ir_type, dims)])


def _too_few(op: RuleOp) -> RuleBroken:
    return op.broken(f"no {op.number('k')} largest of the last dimension", 0)


def top_k_shapes(s: Sizing, k: Number, broken: Broken) -> list[Shape]:
    """The sizes of the `k` largest along the last dimension, and of their places."""
    *rest, last = s.axes(0)
    s.fits(k, last, broken, "no {1} largest of {0}")
    return [[*rest, k]] * 2


# -------------------------------------------------------------------------------------------------------- linear algebra

_TRANSFORMS = ("FFT", "IFFT", "RFFT", "IRFFT")
_TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _fft(op: RuleOp) -> Attribute:
    """RFFT changes the last dimension n to n // 2 + 1; IRFFT is its inverse."""
    op.expect_word("fft_type", _TRANSFORMS)
    kind, lengths = op.word("fft_type"), op.numbers("fft_length")
    op.expect_kind(0, FLOAT if kind == "RFFT" else COMPLEX)
    operand = op.array(0)
    element = element_of(operand)
    if element.bits not in ((32, 64) if kind == "RFFT" else (64, 128)):
        raise op.broken(f"'fft' has no {kind} of {element.name}", 0)
    dims = list(dims_of(operand))
    if not 1 <= len(lengths) <= min(3, len(dims)):
        raise op.broken(f"'fft' goes over 1 to 3 of the operand's dimensions, not {len(lengths)}", 0)
    partner = {"RFFT": {32: "c64", 64: "c128"}, "IRFFT": {64: "f32", 128: "f64"}}.get(kind, {})
    return array_type(dtype(partner[element.bits]).ir_type if partner else operand.element_type, op.inferred_dims())


def _fft_shapes(op: RuleOp, s: Sizing) -> list[Shape]:
    kind, lengths, sizes = op.word("fft_type"), op.numbers("fft_length"), s.axes(0)
    first = len(sizes) - len(lengths)
    halved = [*lengths[:-1], lengths[-1] // 2 + 1]

    def misfit() -> RuleBroken:
        return op.broken(f"fft_length={{{','.join(map(str, lengths))}}} does not fit the operand", 0)

    for size, wanted in zip(sizes[first:], halved if kind == "IRFFT" else lengths, strict=True):
        s.same(size, wanted, misfit)
    return [[*sizes[:first], *(halved if kind == "RFFT" else lengths)]]


def _square(op: RuleOp, operand: int) -> ArrayType:
    """The operand, which must be a batch of square matrices of floats or complex numbers."""
    op.expect_kind(operand, FLOAT, COMPLEX)
    array = op.array(operand)
    if array.get_num_dims() < 2:
        raise _not_square(op, operand)
    return array


def _not_square(op: RuleOp, operand: int) -> RuleBroken:
    return op.broken(f"operand {operand} of '{op.opcode}' is a batch of square matrices", operand)


def _cholesky_shapes(op: RuleOp, s: Sizing) -> list[Shape]:
    *batch, rows, columns = s.axes(0)
    s.same(rows, columns, lambda: _not_square(op, 0))
    return [[*batch, rows, columns]]


def _triangular_solve(op: RuleOp) -> Attribute:
    matrices, right = _square(op, 0), op.array(1)
    if "transpose_a" in op.properties:
        op.expect_word("transpose_a", _TRANSPOSES)
    if matrices.element_type != right.element_type or matrices.get_num_dims() != right.get_num_dims():
        raise _sides_misfit(op)
    return array_type(right.element_type, op.inferred_dims())


def _sides_misfit(op: RuleOp) -> RuleBroken:
    return op.broken("the right-hand sides do not fit the matrices", 1)


def _triangular_solve_shapes(op: RuleOp, s: Sizing) -> list[Shape]:
    matrices, right = s.axes(0), s.axes(1)
    s.same(matrices[-1], matrices[-2], lambda: _not_square(op, 0))
    shared = len(right) - (2 if op.number("left_side") else 1)
    for dim in (*range(len(right) - 2), shared):
        right[dim] = s.same(right[dim], matrices[min(dim, len(right) - 2)], lambda: _sides_misfit(op))
    return [right]


# --------------------------------------------------------------------------------------------------- batch normalisation


def _normalised(op: RuleOp) -> Attribute:
    """The type of operand 0, and in training and in the gradient two arrays with one element per feature."""
    op.expect_kind(0, FLOAT)
    element = op.array(0).element_type
    op.expect_dimension(op.number("feature_index"), len(dims_of(op.array(0))), "feature_index")
    for i in range(1, len(op.operands)):
        if op.array(i).element_type != element or op.array(i).get_num_dims() != len(
            _features(op, i, op.array(0).get_shape())
        ):
            raise _not_normalised(op, i)
    return one_or_tuple([array_type(element, shape) for shape in op.inferred_shapes()])


def _features(op: RuleOp, operand: int, sizes: Shape) -> Shape:
    """The sizes of an operand after the first: one element per feature, but for the gradient of the result."""
    return sizes if (op.opcode, operand) == ("batch-norm-grad", 4) else [sizes[op.number("feature_index")]]


def _not_normalised(op: RuleOp, operand: int) -> RuleBroken:
    first = op.array(0)
    wanted = array_type(first.element_type, spelled(_features(op, operand, first.get_shape())))
    return op.broken(f"operand {operand} of '{op.opcode}' does not fit", operand, f"it must be {type_text(wanted)}")


def _batch_norm_shapes(op: RuleOp, s: Sizing) -> list[Shape]:
    sizes = s.axes(0)
    for i in range(1, len(op.operands)):
        for size, wanted in zip(s.axes(i), _features(op, i, sizes), strict=True):
            s.same(wanted, size, partial(_not_normalised, op, i))
    features = [sizes[op.number("feature_index")]]
    return [sizes] if op.opcode == "batch-norm-inference" else [sizes, features, features]


# ---------------------------------------------------------------------------------------------------------- windows, scan


def _select_and_scatter(op: RuleOp) -> Attribute:
    operand, source = op.array(0), op.array(1)
    op.expect_operand(2, element_scalar(source))
    window = op.properties.get("window")
    along = window.data.dims if isinstance(window, WindowAttr) else ()
    if len(along) != len(dims_of(operand)):
        raise op.broken(f"a window of {len(along)} dimensions", 0)
    if source.get_num_dims() != len(along):
        raise _source_misfit(op)
    return array_type(operand.element_type, op.inferred_dims())


def _source_misfit(op: RuleOp) -> RuleBroken:
    window, source = op.properties["window"], op.array(1)
    assert isinstance(window, WindowAttr)
    places = [
        along.positions(INTS, size) for along, size in zip(window.data.dims, said(dims_of(op.array(0))), strict=True)
    ]
    wanted = type_text(array_type(source.element_type, spelled(places)))
    return op.broken(f"operand 1 of '{op.opcode}' does not fit", 1, f"it must be {wanted}")


def _select_and_scatter_shapes(op: RuleOp, s: Sizing) -> list[Shape]:
    """As the array; the source has an element for each position of the window."""
    window = op.properties.get("window")
    along = window.data.dims if isinstance(window, WindowAttr) else ()
    for size, source, dim in zip(s.axes(0), s.axes(1), along, strict=True):
        s.same(source, dim.positions(s, size), lambda: _source_misfit(op))
    return [s.axes(0)]


def _select_and_scatter_callees(op: RuleOp) -> tuple[Callee, ...]:
    (select,), (scatter,) = op.symbols("select"), op.symbols("scatter")
    element, source = element_scalar(op.type_of(0)), element_scalar(op.type_of(1))
    return (Callee(select, [element, element], scalar("pred")), Callee(scatter, [source, source], source))


def _scan(op: RuleOp) -> None:
    carries = op.number("num_carries")
    inputs = len(op.operands) - carries
    if carries < 0 or inputs < 0:
        raise op.broken(f"num_carries={carries} of 'scan' with {len(op.operands)} operands")
    for i in range(inputs):
        op.only_dimension(len(dims_of(op.array(i))))


def _scan_callees(op: RuleOp) -> tuple[Callee, ...]:
    """The computation of a step: from inputs without the scanned dimension, and carries, to outputs, likewise, and carries."""
    (name,) = op.symbols("to_apply")
    along = op.numbers("dimensions")[0]
    carries = op.number("num_carries")

    def step(ir_type: Attribute) -> Attribute:
        array = as_array(ir_type)
        return array_type(array.element_type, [size for dim, size in enumerate(dims_of(array)) if dim != along])

    def stepped(types: Sequence[Attribute]) -> list[Attribute]:
        inputs = len(types) - carries
        return [*map(step, types[:inputs]), *types[inputs:]]

    gives = stepped(tuple_types(op.result.type))
    return (Callee(name, stepped(op.types), tuple_type(gives) if len(gives) > 1 else gives[0]),)


# ------------------------------------------------------------------------------------------------------------------- dots


def _dot_dimensions(op: RuleOp) -> DotDimensions:
    return DotDimensions(
        op.numbers("lhs_batch_dims"),
        op.numbers("rhs_batch_dims"),
        op.numbers("lhs_contracting_dims"),
        op.numbers("rhs_contracting_dims"),
    )


def _scaled_dot(op: RuleOp) -> Attribute:
    """lhs, rhs and their scales; one element of a scale is for a block of elements."""
    for operand in range(4):
        op.expect_kind(operand, FLOAT)
    for operand in range(2):
        sizes, blocks = dims_of(op.array(operand)), dims_of(op.array(operand + 2))
        if len(sizes) == len(blocks) and any(size % block for size, block in zip(sizes, blocks, strict=True)):
            raise op.broken(
                f"the sizes of operand {operand} of 'scaled-dot' are not multiples of those of its scale",
                operand,
                f"the scale is {type_text(op.type_of(operand + 2))}",
            )
    _dot_dimensions(op).verify(op)
    return array_type(as_array(op.result.type).element_type, op.inferred_dims())


def _ragged_dot(op: RuleOp) -> Attribute:
    """A dot in which one dimension of lhs is divided into groups, whose sizes operand 2 holds."""
    op.expect_kind(2, *INTEGERS)
    ragged = op.numbers("lhs_ragged_dims")
    rank = len(dims_of(op.array(0)))
    if len(ragged) != 1 or not 0 <= ragged[0] < rank:
        raise op.broken("'ragged-dot' has one number in lhs_ragged_dims=, a dimension of lhs", 0)
    dimensions, groups = _dot_dimensions(op), op.numbers("rhs_group_dims")
    is_free = ragged[0] not in (*dimensions.lhs_contracting, *dimensions.lhs_batch)
    if is_free and len(groups) != 1:
        raise op.broken("'ragged-dot' has one number in rhs_group_dims= when a free dimension of lhs is ragged")
    dimensions.verify(op, skip=groups)
    return array_type(as_array(op.result.type).element_type, op.inferred_dims())


def _groups_misfit(op: RuleOp) -> RuleBroken:
    return op.broken(
        "rhs does not have a matrix for each group", 1, f"the sizes of groups are {type_text(op.type_of(2))}"
    )


def _ragged_dot_shapes(op: RuleOp, s: Sizing) -> list[Shape]:
    """As a dot, without the groups of rhs; with a dimension for the groups first, if they are of what is summed."""
    dimensions, groups = _dot_dimensions(op), op.numbers("rhs_group_dims")
    for dim in groups:
        s.same(s.axis(1, dim), s.axes(2)[-1], lambda: _groups_misfit(op))
    found = dimensions.shape(op, s, skip=groups)
    is_summed = op.numbers("lhs_ragged_dims")[0] in dimensions.lhs_contracting
    return [[s.axes(2)[-1], *found] if is_summed else found]


def _stochastic_convert(op: RuleOp) -> Attribute:
    op.expect_kind(0, FLOAT)
    op.expect_kind(1, Kind.UNSIGNED)
    operand, random = op.array(0), op.array(1)
    if operand.get_num_dims() != random.get_num_dims() or element_of(operand).bits != element_of(random).bits:
        raise _bits_misfit(op)
    return array_type(as_array(op.result.type).element_type, op.inferred_dims())


def _bits_misfit(op: RuleOp) -> RuleBroken:
    return op.broken("the random bits are as many, and as wide, as the operand's elements", 1)


_DOT = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")
_NORM = ("epsilon", "feature_index")

ROWS: tuple[RuleRow, ...] = (
    RuleRow(
        "sort",
        at_least(1),
        _sort,
        ("dimensions", "to_apply"),
        ("is_stable",),
        _comparator,
        meaning=evaluated_by_library,
        shapes=lambda op, s: [same_axes(s, range(len(op.operands)), partial(_sort_differs, op))] * len(op.operands),
        static=True,
    ),
    RuleRow(
        "topk",
        range(1, 2),
        _top_k,
        ("k",),
        ("largest",),
        meaning=evaluated_by_library,
        shapes=lambda op, s: top_k_shapes(s, op.number("k"), lambda: _too_few(op)),
        static=True,
    ),
    RuleRow(
        "fft",
        range(1, 2),
        _fft,
        ("fft_type", "fft_length"),
        meaning=evaluated_by_library,
        shapes=_fft_shapes,
        static=True,
    ),
    RuleRow(
        "cholesky",
        range(1, 2),
        lambda op: array_type(_square(op, 0).element_type, op.inferred_dims()),
        (),
        ("lower",),
        meaning=evaluated_by_library,
        shapes=_cholesky_shapes,
        static=True,
    ),
    RuleRow(
        "triangular-solve",
        range(2, 3),
        _triangular_solve,
        (),
        ("left_side", "lower", "unit_diagonal", "transpose_a"),
        meaning=evaluated_by_library,
        shapes=_triangular_solve_shapes,
        static=True,
    ),
    RuleRow(
        "batch-norm-training",
        range(3, 4),
        _normalised,
        _NORM,
        meaning=meaning.batch_norm_training,
        shapes=_batch_norm_shapes,
    ),
    RuleRow(
        "batch-norm-inference",
        range(5, 6),
        _normalised,
        _NORM,
        meaning=meaning.batch_norm_inference,
        shapes=_batch_norm_shapes,
    ),
    RuleRow(
        "batch-norm-grad", range(5, 6), _normalised, _NORM, meaning=meaning.batch_norm_grad, shapes=_batch_norm_shapes
    ),
    RuleRow(
        "select-and-scatter",
        range(3, 4),
        _select_and_scatter,
        ("select", "scatter"),
        ("window",),
        _select_and_scatter_callees,
        meaning=meaning.select_and_scatter,
        shapes=_select_and_scatter_shapes,
    ),
    RuleRow(
        "scan",
        at_least(1),
        _scan,
        ("dimensions", "num_carries", "to_apply"),
        ("is_reverse", "is_associative"),
        _scan_callees,
    ),
    RuleRow(
        "ragged-dot",
        range(3, 4),
        _ragged_dot,
        (),
        (*_DOT, "lhs_ragged_dims", "rhs_group_dims", "operand_precision"),
        meaning=meaning.ragged_dot,
        shapes=_ragged_dot_shapes,
        static=True,
    ),
    RuleRow(
        "scaled-dot",
        range(4, 5),
        _scaled_dot,
        (),
        (*_DOT, "operand_precision", "algorithm"),
        shapes=lambda op, s: [_dot_dimensions(op).shape(op, s)],
    ),
    RuleRow(
        "stochastic-convert",
        range(2, 3),
        _stochastic_convert,
        shapes=lambda op, s: [same_axes(s, range(2), lambda i: _bits_misfit(op))],
    ),
)

OPS: tuple[type[HloOp], ...] = tuple(class_of(row, __name__) for row in ROWS)
