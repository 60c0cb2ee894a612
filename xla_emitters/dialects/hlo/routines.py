"""Ops that XLA expands, or replaces by library calls, before emission: sort, top-k, FFT, linear algebra, batch normalisation, scan ...

    %s = hlo.sort %x {dimensions = array<i64: 0>, name = "s", to_apply = @less} : tensor<8xf32>
    %l = hlo.cholesky %a {lower = true, name = "l"} : tensor<4x3x3xf32>

Rows of `rule_ops`: these ops have no code. Their values are in `library_calls` and `routines_meaning`.
Source: docs/reference/1 6.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from xla_emitters.dialects.hlo import routines_meaning as meaning
from xla_emitters.dialects.hlo.base import HloOp, at_least
from xla_emitters.dialects.hlo.computation import Callee
from xla_emitters.dialects.hlo.contractions import DotDimensions
from xla_emitters.dialects.hlo.library_calls import evaluated_by_library
from xla_emitters.dialects.hlo.rule_ops import (
    RuleOp,
    RuleRow,
    class_of,
    element_scalar,
    one_or_tuple,
    scalar,
)
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    ArrayType,
    array_type,
    as_array,
    dims_of,
    element_of,
    same_dims,
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
    first = dims_of(op.array(0))
    op.only_dimension(len(first))
    for i in range(1, len(op.operands)):
        if not same_dims(dims_of(op.array(i)), first):
            raise op.broken("the arrays that are sorted together have one shape", i)
    return one_or_tuple(op.types)


def _comparator(op: RuleOp) -> tuple[Callee, ...]:
    """The comparator: from two scalars per operand (a0, b0, a1, b1 ...) to a pred."""
    (name,) = op.symbols("to_apply")
    takes = [element_scalar(ir_type) for ir_type in op.types for _ in range(2)]
    return (Callee(name, takes, scalar("pred")),)


def _top_k(op: RuleOp) -> Attribute:
    operand = op.array(0)
    *rest, last = dims_of(operand) or (-1,)
    k = op.number("k")
    if not dims_of(operand) or k < 0 or UNBOUNDED != last < k:
        raise op.broken(f"no {k} largest of the last dimension", 0)
    dims = (*rest, k)
    return tuple_type([array_type(operand.element_type, dims), array_type(dtype("s32").ir_type, dims)])


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
    along = list(dims[-len(lengths) :])
    expected = [*lengths[:-1], lengths[-1] // 2 + 1] if kind == "IRFFT" else list(lengths)
    if not same_dims(along, expected):
        raise op.broken(f"fft_length={{{','.join(map(str, lengths))}}} does not fit the operand", 0)
    if kind in ("RFFT", "IRFFT"):
        dims[-1] = lengths[-1] // 2 + 1 if kind == "RFFT" else lengths[-1]
    partner = {"RFFT": {32: "c64", 64: "c128"}, "IRFFT": {64: "f32", 128: "f64"}}.get(kind, {})
    return array_type(dtype(partner[element.bits]).ir_type if partner else operand.element_type, dims)


def _square(op: RuleOp, operand: int) -> ArrayType:
    """The operand, which must be a batch of square matrices of floats or complex numbers."""
    op.expect_kind(operand, FLOAT, COMPLEX)
    array = op.array(operand)
    dims = dims_of(array)
    if len(dims) < 2 or not same_dims(dims[-1:], dims[-2:-1]):
        raise op.broken(f"operand {operand} of '{op.opcode}' is a batch of square matrices", operand)
    return array


def _cholesky(op: RuleOp) -> Attribute:
    return _square(op, 0)


def _triangular_solve(op: RuleOp) -> Attribute:
    matrices, right = _square(op, 0), op.array(1)
    if "transpose_a" in op.properties:
        op.expect_word("transpose_a", _TRANSPOSES)
    sizes, other = dims_of(matrices), dims_of(right)
    shared = -2 if op.number("left_side") else -1
    if (
        matrices.element_type != right.element_type
        or len(sizes) != len(other)
        or not same_dims(sizes[:-2], other[:-2])
        or not same_dims(sizes[-1:], other[shared:][:1])
    ):
        raise op.broken("the right-hand sides do not fit the matrices", 1)
    return right


# --------------------------------------------------------------------------------------------------- batch normalisation


def _normalised(op: RuleOp, per_feature: Sequence[int]) -> tuple[ArrayType, ArrayType]:
    """The type of operand 0, and that of an array with one element per feature, which the operands `per_feature` must have."""
    op.expect_kind(0, FLOAT)
    operand = op.array(0)
    dims = dims_of(operand)
    feature = op.expect_dimension(op.number("feature_index"), len(dims), "feature_index")
    features = array_type(operand.element_type, (dims[feature],))
    for i in per_feature:
        op.expect_operand(i, features)
    return operand, features


def _batch_norm_training(op: RuleOp) -> Attribute:
    operand, features = _normalised(op, (1, 2))
    return tuple_type([operand, features, features])


def _batch_norm_inference(op: RuleOp) -> Attribute:
    return _normalised(op, (1, 2, 3, 4))[0]


def _batch_norm_grad(op: RuleOp) -> Attribute:
    operand, features = _normalised(op, (1, 2, 3))
    op.expect_operand(4, operand)
    return tuple_type([operand, features, features])


# ---------------------------------------------------------------------------------------------------------- windows, scan


def _select_and_scatter(op: RuleOp) -> Attribute:
    operand, source = op.array(0), op.array(1)
    op.expect_operand(2, element_scalar(source))
    window = op.properties.get("window")
    along = window.data.dims if isinstance(window, WindowAttr) else ()
    if len(along) != len(dims_of(operand)):
        raise op.broken(f"a window of {len(along)} dimensions", 0)
    places = [
        UNBOUNDED if size == UNBOUNDED else dim.output_size(size)
        for size, dim in zip(dims_of(operand), along, strict=True)
    ]
    op.expect_operand(1, array_type(source.element_type, places))
    return operand


def _select_and_scatter_callees(op: RuleOp) -> tuple[Callee, ...]:
    (select,), (scatter,) = op.symbols("select"), op.symbols("scatter")
    element, source = element_scalar(op.type_of(0)), element_scalar(op.type_of(1))
    return (
        Callee(select, [element, element], scalar("pred")),
        Callee(scatter, [source, source], source),
    )


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


def _dot_dimensions(op: RuleOp, lhs: int, rhs: int) -> DotDimensions:
    return DotDimensions(
        op.numbers("lhs_batch_dims"),
        op.numbers("rhs_batch_dims"),
        op.numbers("lhs_contracting_dims"),
        op.numbers("rhs_contracting_dims"),
        lhs,
        rhs,
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
    dims = _dot_dimensions(op, 0, 1).result_dims(op)
    return array_type(as_array(op.result.type).element_type, dims)


def _ragged_dot(op: RuleOp) -> Attribute:
    """A dot in which one dimension of lhs is divided into groups, whose sizes operand 2 holds."""
    op.expect_kind(2, *INTEGERS)
    ragged = op.numbers("lhs_ragged_dims")
    rank = len(dims_of(op.array(0)))
    if len(ragged) != 1 or not 0 <= ragged[0] < rank:
        raise op.broken("'ragged-dot' has one number in lhs_ragged_dims=, a dimension of lhs", 0)
    dimensions = _dot_dimensions(op, 0, 1)
    groups = op.numbers("rhs_group_dims")
    contracting, batch = dimensions.lhs_contracting, dimensions.lhs_batch
    if ragged[0] in (*contracting, *batch):
        dims = dimensions.result_dims(op)
        if ragged[0] in contracting:
            dims = [dims_of(op.operands[2])[-1], *dims]
    elif len(groups) != 1:
        raise op.broken("'ragged-dot' has one number in rhs_group_dims= when a free dimension of lhs is ragged")
    else:
        dims = dimensions.result_dims(op, skip=groups)
    return array_type(as_array(op.result.type).element_type, dims)


def ragged_dot_places(op: RuleOp) -> list[tuple[int, int]]:
    """For each dimension of a ragged-dot's result, the (operand, dimension) whose size it has."""
    groups, taken = op.numbers("rhs_group_dims"), op.numbers("lhs_contracting_dims")
    places = [(2, len(dims_of(op.operands[2])) - 1)] if op.numbers("lhs_ragged_dims")[0] in taken else []
    batch = op.numbers("lhs_batch_dims")
    of_rhs = (*op.numbers("rhs_batch_dims"), *op.numbers("rhs_contracting_dims"), *groups)
    places += [(0, dim) for dim in batch]
    places += [(0, dim) for dim in range(len(dims_of(op.operands[0]))) if dim not in (*batch, *taken)]
    return places + [(1, dim) for dim in range(len(dims_of(op.operands[1]))) if dim not in of_rhs]


def _stochastic_convert(op: RuleOp) -> Attribute:
    op.expect_kind(0, FLOAT)
    op.expect_kind(1, Kind.UNSIGNED)
    operand, random = op.array(0), op.array(1)
    if not same_dims(dims_of(operand), dims_of(random)) or element_of(operand).bits != element_of(random).bits:
        raise op.broken("the random bits are as many, and as wide, as the operand's elements", 1)
    return array_type(as_array(op.result.type).element_type, dims_of(operand))


def _sizes_of_operand(number: int) -> Callable[[RuleOp], Sequence[int]]:
    return lambda op: dims_of(op.operands[number])


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
        sizes=_sizes_of_operand(0),
    ),
    RuleRow(
        "topk",
        range(1, 2),
        _top_k,
        ("k",),
        ("largest",),
        meaning=evaluated_by_library,
        sizes=lambda op: (*dims_of(op.operands[0])[:-1], op.number("k")),
    ),
    RuleRow(
        "fft",
        range(1, 2),
        _fft,
        ("fft_type", "fft_length"),
        meaning=evaluated_by_library,
        sizes=lambda op: dims_of(_fft(op)),
    ),
    RuleRow(
        "cholesky",
        range(1, 2),
        _cholesky,
        (),
        ("lower",),
        meaning=evaluated_by_library,
        sizes=_sizes_of_operand(0),
    ),
    RuleRow(
        "triangular-solve",
        range(2, 3),
        _triangular_solve,
        (),
        ("left_side", "lower", "unit_diagonal", "transpose_a"),
        meaning=evaluated_by_library,
        sizes=_sizes_of_operand(1),
    ),
    RuleRow("batch-norm-training", range(3, 4), _batch_norm_training, _NORM, meaning=meaning.batch_norm_training),
    RuleRow("batch-norm-inference", range(5, 6), _batch_norm_inference, _NORM, meaning=meaning.batch_norm_inference),
    RuleRow("batch-norm-grad", range(5, 6), _batch_norm_grad, _NORM, meaning=meaning.batch_norm_grad),
    RuleRow(
        "select-and-scatter",
        range(3, 4),
        _select_and_scatter,
        ("select", "scatter"),
        ("window",),
        _select_and_scatter_callees,
        meaning=meaning.select_and_scatter,
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
        sizes=lambda op: dims_of(_ragged_dot(op)),
    ),
    RuleRow("scaled-dot", range(4, 5), _scaled_dot, (), (*_DOT, "operand_precision", "algorithm")),
    RuleRow("stochastic-convert", range(2, 3), _stochastic_convert),
)

OPS: tuple[type[HloOp], ...] = tuple(class_of(row, __name__) for row in ROWS)
