"""Shape rules against the shapes that JAX and NumPy give: over ints of types and of values, over sizes, and as code that is executed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from xdsl.builder import Builder, InsertPoint
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnknownLoc,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue

from xla_emitters.algebra.axes import Axes
from xla_emitters.algebra.facts import Facts
from xla_emitters.algebra.size import Size
from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo import HLO_OPS, PROGRAM_OPS
from xla_emitters.dialects.hlo.backend_configs import SHAPES
from xla_emitters.dialects.hlo.base import HloOp, RuleBroken
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.shape_rule import INTS, UNKNOWN
from xla_emitters.dialects.hlo.sized import ValueSizing
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, leaf_types, tuple_type
from xla_emitters.dialects.hlo.windows import Window, WindowAttr, WindowDim
from xla_emitters.dialects.mlir import arith, memref
from xla_emitters.dtypes import dtype
from xla_emitters.dynamic.buffers.index_code import IndexCode
from xla_emitters.dynamic.buffers.result_sizes import CodeSizing, result_sizes
from xla_emitters.dynamic.sizes.size_walk import Walk
from xla_emitters.dynamic.sizes.sizing import SizeSizing
from xla_emitters.dynamic.sizes.walked_array import Leaf
from xla_emitters.errors import DataError

jax = pytest.importorskip("jax", reason="the shapes are those of JAX (extra [jax]), which is not installed")
lax = jax.lax

DRAWS = 4
ADD = SymbolRefAttr("add")

# ------------------------------------------------------------------------------------------------------------------ cases


@dataclass(frozen=True)
class Case:
    """One op at drawn sizes.

    operands    (element, sizes) of each, or an array for an operand that holds numbers
    real        the shapes of the results, from JAX or NumPy
    elements    of the results; "": that of operand 0
    static      dimensions of the results that only the type says
    """

    opcode: str
    operands: Sequence[tuple[str, Sequence[int]] | np.ndarray]
    real: Sequence[Sequence[int]]
    properties: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    elements: Sequence[str] = ()
    static: Sequence[int] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])

    def op(self, *, is_open: bool, real: Sequence[Sequence[int]] | None = None) -> HloOp:
        """The op; `is_open`: all sizes of its types are unknown."""

        def typed(element: str, sizes: Sequence[int], static: Sequence[int] = ()) -> Attribute:
            dims = [size if dim in static or not is_open else UNBOUNDED for dim, size in enumerate(sizes)]
            return array_type(dtype(element).ir_type, dims)

        types: list[Attribute] = [
            array_type(dtype("s64").ir_type, each.shape) if isinstance(each, np.ndarray) else typed(*each)
            for each in self.operands
        ]
        first = self.operands[0]
        elements = self.elements or ["s64" if isinstance(first, np.ndarray) else first[0]] * len(self.real)
        results = [
            typed(element, sizes, self.static) for element, sizes in zip(elements, real or self.real, strict=True)
        ]
        op_class = {**HLO_OPS, **PROGRAM_OPS}[self.opcode]
        made = op_class(
            Block(arg_types=types).args, results[0] if len(results) == 1 else tuple_type(results), "y", self.properties
        )
        made.attributes |= self.attributes
        return made

    @property
    def arrays(self) -> list[np.ndarray]:
        return [
            each if isinstance(each, np.ndarray) else np.broadcast_to(np.zeros((), np.int8), each[1])
            for each in self.operands
        ]

    @property
    def has_numbers(self) -> bool:
        return any(isinstance(each, np.ndarray) for each in self.operands)


class Draw:
    """Seeded sizes."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def size(self, low: int = 1, high: int = 7) -> int:
        return int(self.random.integers(low, high + 1))

    def shape(self, rank: int, low: int = 1) -> tuple[int, ...]:
        return tuple(self.size(low) for _ in range(rank))

    def order(self, rank: int) -> tuple[int, ...]:
        return tuple(int(dim) for dim in self.random.permutation(rank))


class FromJax(list[tuple[int, ...]]):
    """Shapes that JAX gives, and how it can be asked again."""

    def __init__(self, function: Callable[..., Any], operands: Sequence[tuple[str, Sequence[int]]]) -> None:
        names = {"f32": np.float32, "s32": np.int32, "u8": np.uint8, "pred": np.bool_, "c64": np.complex64}
        found = jax.eval_shape(function, *(jax.ShapeDtypeStruct(tuple(sizes), names[e]) for e, sizes in operands))
        super().__init__(tuple(leaf.shape) for leaf in jax.tree.leaves(found))
        self.function, self.operands = function, operands


def shaped(function: Callable[..., Any], *operands: tuple[str, Sequence[int]]) -> FromJax:
    """The shapes that JAX gives."""
    return FromJax(function, operands)


def dimensions(*dims: int) -> dict[str, Attribute]:
    return {"dimensions": integer_array(dims)}


def rows(*each: Sequence[int]) -> ArrayAttr[DenseArrayBase]:
    return ArrayAttr([integer_array(row) for row in each])


def number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


def numbers(*values: Any) -> np.ndarray:
    return np.asarray(values, np.int64)


def add(d: Draw) -> Case:
    x = ("f32", d.shape(3, 0))
    return Case("add", [x, x], shaped(lax.add, x, x))


def select(d: Draw) -> Case:
    predicate, x = ("pred", ()), ("f32", d.shape(2))
    return Case("select", [predicate, x, x], shaped(lax.select, ("pred", ()), x, x), elements=["f32"])


def narrowed(d: Draw) -> Case:
    x = ("f32", d.shape(2))
    real = shaped(lambda a: lax.bitcast_convert_type(a, np.uint8), x)
    return Case("bitcast-convert", [x], real, elements=["u8"])


def widened(d: Draw) -> Case:
    x = ("u8", (*d.shape(2), 4))
    return Case("bitcast-convert", [x], shaped(lambda a: lax.bitcast_convert_type(a, np.float32), x), elements=["f32"])


def mapped(d: Draw) -> Case:
    x = ("f32", d.shape(2))
    return Case("map", [x, x], shaped(lax.add, x, x), {"to_apply": ADD})


def broadcast(d: Draw) -> Case:
    x, wide = ("f32", d.shape(2, 2)), d.size()
    real = shaped(lambda a: lax.broadcast_in_dim(a, (x[1][1], wide, x[1][0]), (2, 0)), x)
    return Case("broadcast", [x], real, dimensions(2, 0), static=[1])


def reshape(d: Draw) -> Case:
    first, second, third = d.shape(3)
    x = ("f32", (first * 2, second, third))
    return Case("reshape", [x], shaped(lambda a: lax.reshape(a, (2, first * second * third)), x), static=[0])


def transpose(d: Draw) -> Case:
    x, order = ("f32", d.shape(3, 0)), d.order(3)
    return Case("transpose", [x], shaped(lambda a: lax.transpose(a, order), x), dimensions(*order))


def reverse(d: Draw) -> Case:
    x = ("f32", d.shape(2, 0))
    return Case("reverse", [x], shaped(lambda a: lax.rev(a, (1,)), x), dimensions(1))


def sliced(d: Draw) -> Case:
    sizes = d.shape(2, 2)
    starts, strides = tuple(d.size(0, size) for size in sizes), d.shape(2)
    limits = tuple(d.size(start, size) for start, size in zip(starts, sizes, strict=True))
    real = shaped(lambda a: lax.slice(a, starts, limits, strides), ("f32", sizes))
    return Case("slice", [("f32", sizes)], real, {"slice": rows(*zip(starts, limits, strides, strict=True))})


def concatenate(d: Draw) -> Case:
    rest, lengths = d.size(), d.shape(3, 0)
    parts = [("f32", (rest, length)) for length in lengths]
    return Case("concatenate", parts, shaped(lambda *a: lax.concatenate(a, 1), *parts), dimensions(1))


def edges(d: Draw, size: int) -> tuple[int, int, int]:
    interior = d.size(0, 2)
    whole = size + max(size - 1, 0) * interior
    low = d.size(-whole, 3)
    return low, d.size(-(whole + low), 3), interior


def pad(d: Draw) -> Case:
    x = ("f32", d.shape(2, 0))
    each = [edges(d, size) for size in x[1]]
    real = shaped(lambda a: lax.pad(a, np.float32(0), each), x)
    return Case("pad", [x, ("f32", ())], real, {"padding": rows(*each)})


def dynamic_pad(d: Draw) -> Case:
    x = ("f32", d.shape(2, 0))
    each = [edges(d, size) for size in x[1]]
    real = shaped(lambda a: lax.pad(a, np.float32(0), each), x)
    return Case("dynamic-pad", [x, ("f32", ()), *(numbers(*side) for side in zip(*each, strict=True))], real)


def dynamic_slice(d: Draw) -> Case:
    x = ("f32", d.shape(2))
    window = tuple(d.size(0, size) for size in x[1])
    real = shaped(lambda a: lax.dynamic_slice(a, (0, 0), window), x)
    starts = [("s32", ()), ("s32", ())]
    return Case("dynamic-slice", [x, *starts], real, {"dynamic_slice_sizes": integer_array(window)})


def dynamic_update_slice(d: Draw) -> Case:
    x = ("f32", d.shape(2))
    update = ("f32", tuple(d.size(0, size) for size in x[1]))
    real = shaped(lambda a, b: lax.dynamic_update_slice(a, b, (0, 0)), x, update)
    return Case("dynamic-update-slice", [x, update, ("s32", ()), ("s32", ())], real)


def real_dynamic_slice(d: Draw) -> Case:
    case = sliced(d)
    ranges = case.properties["slice"]
    assert isinstance(ranges, ArrayAttr)
    lists = zip(*(row.get_values() for row in ranges), strict=True)
    return Case("real-dynamic-slice", [case.operands[0], *(numbers(*each) for each in lists)], case.real)


def dynamic_reshape(d: Draw) -> Case:
    a, b, c = d.shape(3)
    real = shaped(lambda x: lax.reshape(x, (c, a * b)), ("f32", (a, b, c)))
    return Case("dynamic-reshape", [("f32", (a, b, c)), numbers(c, a * b)], real)


def dynamic_broadcast(d: Draw) -> Case:
    own, wide = d.size(), d.size()
    sizes = (own, wide, d.size())
    x = ("f32", (own, 1))
    real = shaped(lambda a: lax.broadcast_in_dim(a, sizes, (0, 2)), x)
    return Case("dynamic-broadcast-in-dim", [x, numbers(*sizes)], real, dimensions(0, 2))


def dynamic_iota(d: Draw) -> Case:
    sizes = d.shape(2, 0)
    real = shaped(lambda: lax.broadcasted_iota(np.float32, sizes, 1))
    return Case("dynamic-iota", [numbers(*sizes)], real, {"iota_dimension": number(1)}, elements=["f32"])


def set_dimension_size(d: Draw) -> Case:
    x = ("f32", d.shape(2))
    cut = d.size(0, x[1][1])
    return Case("set-dimension-size", [x, numbers(cut).reshape(())], [np.zeros(x[1])[:, :cut].shape], dimensions(1))


def reduce(d: Draw) -> Case:
    x, y = ("f32", d.shape(3, 0)), ("f32", ())
    real = shaped(lambda a: lax.reduce(a, np.float32(0), lax.add, (2, 0)), x)
    return Case("reduce", [x, x, y, y], real * 2, {"to_apply": ADD, **dimensions(2, 0)})


def window_dim(d: Draw) -> WindowDim:
    return WindowDim(d.size(1, 3), d.size(1, 3), d.size(0, 2), d.size(0, 2), d.size(1, 2), d.size(1, 2))


def slid(x: tuple[str, Sequence[int]], window: Sequence[WindowDim]) -> list[tuple[int, ...]]:
    """The shapes of a reduce-window in JAX."""
    lists = [(w.size, w.stride, (w.low, w.high), w.base_dilation, w.window_dilation) for w in window]
    sizes, strides, padding, base, apart = zip(*lists, strict=True)
    return shaped(
        lambda a: lax.reduce_window(
            a, np.float32(0), lax.add, sizes, strides, padding, base_dilation=base, window_dilation=apart
        ),
        x,
    )


def reduce_window(d: Draw) -> Case:
    x, window = ("f32", d.shape(2, 0)), (window_dim(d), window_dim(d))
    return Case(
        "reduce-window", [x, ("f32", ())], slid(x, window), {"to_apply": ADD, "window": WindowAttr(Window(window))}
    )


def dynamic_reduce_window(d: Draw) -> Case:
    x, window = ("f32", d.shape(2, 0)), (window_dim(d), window_dim(d))
    lists = [(w.size, w.stride, w.base_dilation, w.window_dilation) for w in window]
    held = [numbers(*each) for each in zip(*lists, strict=True)]
    operands = [x, ("f32", ()), *held, numbers(*([w.low, w.high] for w in window))]
    return Case("dynamic-reduce-window", operands, slid(x, window), {"to_apply": ADD})


def select_and_scatter(d: Draw) -> Case:
    x, window = ("f32", d.shape(2)), (WindowDim(d.size(1, 3), d.size(1, 2), 1, 1), WindowDim(2, 2))
    (source,) = slid(x, window)
    names = {"select": ADD, "scatter": ADD, "window": WindowAttr(Window(window))}
    return Case("select-and-scatter", [x, ("f32", source), ("f32", ())], [x[1]], names)


def dot(d: Draw) -> Case:
    batch, rows_, columns, summed = d.shape(4, 0)
    x, y = ("f32", (summed, batch, rows_)), ("f32", (batch, columns, summed))
    pairs = {"lhs_batch_dims": (1,), "rhs_batch_dims": (0,), "lhs_contracting_dims": (0,), "rhs_contracting_dims": (2,)}
    real = shaped(lambda a, b: lax.dot_general(a, b, (((0,), (2,)), ((1,), (0,)))), x, y)
    return Case("dot", [x, y], real, {name: integer_array(dims) for name, dims in pairs.items()})


def ragged_dot(d: Draw) -> Case:
    groups, rows_, summed, columns = d.shape(4)
    x, y, sizes = ("f32", (rows_, summed)), ("f32", (groups, summed, columns)), ("s32", (groups,))
    lists = {"lhs_contracting_dims": 1, "rhs_contracting_dims": 1, "lhs_ragged_dims": 0, "rhs_group_dims": 0}
    real = shaped(lax.ragged_dot, x, y, sizes)
    return Case("ragged-dot", [x, y, sizes], real, {name: integer_array([dim]) for name, dim in lists.items()})


def ragged_sum(d: Draw) -> Case:
    """The summed dimension is divided into groups, of which each has a product."""
    groups, rows_, summed, columns = d.shape(4)
    x, y, sizes = ("f32", (summed, rows_)), ("f32", (summed, columns)), ("s32", (groups,))
    kind = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), lhs_ragged_dimensions=[0], rhs_group_dimensions=[])
    real = shaped(lambda a, b, g: lax.ragged_dot_general(a, b, g, kind), x, y, sizes)
    lists = {"lhs_contracting_dims": 0, "rhs_contracting_dims": 0, "lhs_ragged_dims": 0}
    return Case("ragged-dot", [x, y, sizes], real, {name: integer_array([dim]) for name, dim in lists.items()})


def scaled_dot(d: Draw) -> Case:
    """As a dot; the scales have an element for each block."""
    a, b, c = d.shape(3)
    x, y = ("f32", (a, 4 * c)), ("f32", (b, 4 * c))
    scales = [("f32", (a, c)), ("f32", (b, c))]
    lists = {"lhs_contracting_dims": integer_array([1]), "rhs_contracting_dims": integer_array([1])}
    return Case("scaled-dot", [x, y, *scales], [np.einsum("ij,kj->ik", np.zeros(x[1]), np.zeros(y[1])).shape], lists)


def convolution_at(d: Draw, window: Sequence[WindowDim], opcode: str) -> Case:
    groups, batches = ((1, 1), (2, 1), (1, 2))[d.size(0, 2)]
    features = d.size(1, 3)
    image = ("f32", (d.size(1, 3) * batches, features * groups, d.size(3), d.size(3)))
    kernel = ("f32", (d.size(1, 3) * groups * batches, features, *(w.size for w in window)))

    def convolved(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            w,
            [each.stride for each in window],
            [(each.low, each.high) for each in window],
            [each.base_dilation for each in window],
            [each.window_dilation for each in window],
            feature_group_count=groups,
            batch_group_count=batches,
        )

    properties = {
        "dim_labels": StringAttr("bf01_oi01->bf01"),
        "window": WindowAttr(Window(tuple(window))),
        "feature_group_count": number(groups),
        "batch_group_count": number(batches),
    }
    real = shaped(convolved, image, kernel)
    padding = [numbers(*([w.low, w.high] for w in window))] if opcode == "dynamic-conv" else []
    return Case(opcode, [image, kernel, *padding], real, properties)


def convolution(d: Draw) -> Case:
    return convolution_at(d, [window_dim(d), window_dim(d)], "convolution")


def dynamic_conv(d: Draw) -> Case:
    return convolution_at(d, [window_dim(d), window_dim(d)], "dynamic-conv")


GATHER = {"offset_dims": (0, 3), "collapsed_slice_dims": (0,), "start_index_map": (0, 2)}


def gather(d: Draw) -> Case:
    x, indices = ("f32", d.shape(3)), ("s32", (*d.shape(2), 2))
    sizes = (1, *(d.size(1, size) for size in x[1][1:]))
    kind = lax.GatherDimensionNumbers(**GATHER)
    real = shaped(lambda a, i: lax.gather(a, i, kind, sizes), x, indices)
    properties = {name: integer_array(dims) for name, dims in GATHER.items()}
    return Case(
        "gather", [x, indices], real, {**properties, "index_vector_dim": number(2), "slice_sizes": integer_array(sizes)}
    )


def dynamic_gather(d: Draw) -> Case:
    case = gather(d)
    sizes = case.properties["slice_sizes"]
    assert isinstance(sizes, DenseArrayBase)
    rest = {name: value for name, value in case.properties.items() if name != "slice_sizes"}
    return Case("dynamic-gather", [*case.operands, numbers(*sizes.get_values())], case.real, rest)


def batched_gather(d: Draw) -> Case:
    batch = d.size()
    x, indices = ("f32", (batch, *d.shape(1))), ("s32", (batch, d.size(), 1))
    lists = {
        "offset_dims": (), "collapsed_slice_dims": (1,), "start_index_map": (1,),
        "operand_batching_dims": (0,), "start_indices_batching_dims": (0,),
    }  # fmt: skip
    real = shaped(lambda a, i: lax.gather(a, i, lax.GatherDimensionNumbers(**lists), (1, 1)), x, indices)
    properties = {name: integer_array(dims) for name, dims in lists.items()}
    return Case(
        "gather",
        [x, indices],
        real,
        {**properties, "index_vector_dim": number(2), "slice_sizes": integer_array((1, 1))},
    )


def scatter(d: Draw) -> Case:
    x, indices = ("f32", d.shape(2)), ("s32", (d.size(), 1))
    updates = ("f32", (indices[1][0], d.size(1, x[1][1])))
    kind = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    real = shaped(lambda a, i, u: lax.scatter_add(a, i, u, kind), x, indices, updates)
    lists = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
    properties = {name: integer_array(dims) for name, dims in lists.items()}
    return Case("scatter", [x, indices, updates], real, {**properties, "index_vector_dim": number(1), "to_apply": ADD})


def sort(d: Draw) -> Case:
    x = ("f32", d.shape(2))
    real = shaped(lambda a, b: lax.sort((a, b), dimension=0), x, x)
    return Case("sort", [x, x], real, {"to_apply": ADD, **dimensions(0)})


def top_k(d: Draw) -> Case:
    x = ("f32", d.shape(2))
    k = d.size(0, x[1][-1])
    properties = {"k": number(k), "largest": IntegerAttr(1, i1)}
    return Case("topk", [x], shaped(lambda a: lax.top_k(a, k), x), properties, elements=["f32", "s32"])


def dynamic_top_k(d: Draw) -> Case:
    case = top_k(d)
    k = numbers(case.real[0][-1]).reshape(())
    return Case("dynamic-top-k", [case.operands[0], k], case.real, elements=case.elements)


def fft(d: Draw) -> Case:
    last = 2 * d.size()
    x = ("f32", (d.size(), d.size(), last))
    real = shaped(lambda a: lax.fft(a, lax.FftType.RFFT, (last,)), x)
    properties = {"fft_type": StringAttr("RFFT"), "fft_length": integer_array([last])}
    return Case("fft", [x], real, properties, elements=["c64"])


def inverse_fft(d: Draw) -> Case:
    last = 2 * d.size()
    x = ("c64", (d.size(), last // 2 + 1))
    real = shaped(lambda a: lax.fft(a, lax.FftType.IRFFT, (last,)), x)
    properties = {"fft_type": StringAttr("IRFFT"), "fft_length": integer_array([last])}
    return Case("fft", [x], real, properties, elements=["f32"])


def cholesky(d: Draw) -> Case:
    batch, side = d.shape(2)
    x = ("f32", (batch, side, side))
    return Case("cholesky", [x], shaped(lax.linalg.cholesky, x))


def triangular_solve(d: Draw) -> Case:
    batch, side, columns = d.shape(3)
    x, y = ("f32", (batch, side, side)), ("f32", (batch, side, columns))
    real = shaped(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True), x, y)
    return Case("triangular-solve", [x, y], real, {"left_side": IntegerAttr(1, i1)})


def triangular_solve_right(d: Draw) -> Case:
    batch, side, rows_ = d.shape(3)
    x, y = ("f32", (batch, side, side)), ("f32", (batch, rows_, side))
    real = shaped(lambda a, b: lax.linalg.triangular_solve(a, b), x, y)
    return Case("triangular-solve", [x, y], real, {"left_side": IntegerAttr(0, i1)})


def normalisation(opcode: str, of_features: int, gradient: bool, results: int) -> Callable[[Draw], Case]:
    """By definition: an array, and one element per feature."""

    def case(d: Draw) -> Case:
        x = ("f32", d.shape(3))
        feature = d.size(0, 2)
        per_feature = ("f32", np.zeros(x[1]).mean(tuple(dim for dim in range(3) if dim != feature)).shape)
        operands = [x, *[per_feature] * of_features, *([x] if gradient else [])]
        real = [x[1], per_feature[1], per_feature[1]][:results]
        return Case(opcode, operands, real, {"epsilon": number(0), "feature_index": number(feature)})

    return case


def stochastic_convert(d: Draw) -> Case:
    x = d.shape(2)
    return Case("stochastic-convert", [("f32", x), ("u32", x)], [x], elements=["bf16"])


def copied(opcode: str) -> Callable[[Draw], Case]:
    def case(d: Draw) -> Case:
        x = d.shape(2, 0)
        return Case(opcode, [("f32", x)], [x])

    return case


def custom_call(d: Draw) -> Case:
    sizes = d.shape(2, 0)
    target = {"custom_call_target": StringAttr("f")}
    listing: dict[str, Attribute] = {SHAPES: integer_array([1])}
    return Case("custom-call", [("f32", (3,)), numbers(*sizes)], [sizes], target, attributes=listing)


def random_bits(d: Draw) -> Case:
    sizes, state = d.shape(2, 0), ("u64", (2,))
    algorithm = {"algorithm": StringAttr("rng_default")}
    return Case(
        "dynamic-rng-bit-generator", [state, numbers(*sizes)], [(2,), sizes], algorithm, elements=["u64", "u32"]
    )


def random_numbers(d: Draw) -> Case:
    sizes = d.shape(2, 0)
    return Case(
        "dynamic-rng", [("f32", ()), ("f32", ()), numbers(*sizes)], [sizes], {"distribution": StringAttr("rng_uniform")}
    )


CASES: Sequence[Callable[[Draw], Case]] = (
    add, select, narrowed, widened, mapped, broadcast, reshape, transpose, reverse, sliced, concatenate, pad, dynamic_slice,
    dynamic_update_slice, reduce, reduce_window, select_and_scatter, dot, ragged_dot, ragged_sum, scaled_dot, convolution, gather,
    batched_gather, scatter, sort, top_k, fft, inverse_fft, cholesky, triangular_solve, triangular_solve_right, stochastic_convert,
    normalisation("batch-norm-training", 2, False, 3),
    normalisation("batch-norm-inference", 4, False, 1),
    normalisation("batch-norm-grad", 3, True, 3),
    copied("h2d"), copied("d2h"), copied("copy"),
    dynamic_pad, real_dynamic_slice, dynamic_reshape, dynamic_broadcast, dynamic_iota, set_dimension_size, dynamic_reduce_window,
    dynamic_conv, dynamic_gather, dynamic_top_k, custom_call, random_bits, random_numbers,
)  # fmt: skip
NAMES = [f"{made(Draw(0)).opcode}-{number}" for number, made in enumerate(CASES)]

every_case = pytest.mark.parametrize("made", CASES, ids=NAMES)


def drawn(made: Callable[[Draw], Case]) -> list[Case]:
    return [made(Draw(seed)) for seed in range(DRAWS)]


def test_every_op_with_a_shape_rule_has_a_case() -> None:
    with_rule = {
        opcode
        for opcode, op_class in {**HLO_OPS, **PROGRAM_OPS}.items()
        if op_class.has_shape_rule() and (not issubclass(op_class, ElementwiseOp) or "shapes" in vars(op_class))
    }
    assert with_rule - {made(Draw(0)).opcode for made in CASES} == set()


# ------------------------------------------------------------------------------------------------------------------- ints


@every_case
def test_over_ints_it_is_the_shape_that_jax_gives(made: Callable[[Draw], Case]) -> None:
    for case in drawn(made):
        op = case.op(is_open=False)
        if case.has_numbers:
            found = op.shapes(ValueSizing(op, case.arrays))
            assert found is not None
        else:
            found = op.inferred_shapes()
        assert [tuple(shape) for shape in found] == [tuple(shape) for shape in case.real], case


@every_case
def test_the_verifier_takes_this_shape_and_no_other(made: Callable[[Draw], Case]) -> None:
    for case in drawn(made):
        if case.opcode == "set-dimension-size":  # its type has a bound, and takes s32
            continue
        case.op(is_open=False).verify_()
        case.op(is_open=True).verify_()
        if case.has_numbers or case.static or case.opcode == "reshape":
            continue
        for leaf, shape in enumerate(case.real):
            for dim in range(len(shape)):
                other = [list(each) for each in case.real]
                other[leaf][dim] += 1
                with pytest.raises(RuleBroken):
                    case.op(is_open=False, real=other).verify_()


@every_case
def test_the_verifier_refuses_the_operands_that_jax_refuses(made: Callable[[Draw], Case]) -> None:
    """One size of one operand is another: if JAX refuses it, so does the op; if both take it, the shapes are the same."""
    for case in drawn(made):
        asked = case.real
        if not isinstance(asked, FromJax) or case.static or case.has_numbers:
            continue
        for i, (element, sizes) in enumerate(asked.operands):
            for dim in range(len(sizes)):
                other = (element, [size + (at == dim) for at, size in enumerate(sizes)])
                operands: list[Any] = [*case.operands]
                operands[i] = other
                changed = replace(case, operands=operands)
                try:
                    real = FromJax(asked.function, [*asked.operands[:i], other, *asked.operands[i + 1 :]])
                except (TypeError, ValueError):
                    with pytest.raises(RuleBroken):
                        changed.op(is_open=False).verify_()
                else:
                    try:
                        found = changed.op(is_open=False, real=real).inferred_shapes()
                    except RuleBroken:  # JAX repeats a size 1, slides a kernel of any size, and ignores some batches
                        continue
                    assert [tuple(shape) for shape in found] == list(real), changed


# ------------------------------------------------------------------------------------------------------------------ sizes


@every_case
def test_over_sizes_it_has_these_values(made: Callable[[Draw], Case]) -> None:
    for case in drawn(made):
        op, values, leaves = case.op(is_open=True), dict[str, int](), list[Leaf]()
        walk = Walk(Axes(Facts.of_symbols([f"s{i}_{k}" for i in range(9) for k in range(9)], 0, "a size")))
        for i, each in enumerate(case.operands):
            held = None
            sizes = list[Size]()
            if isinstance(each, np.ndarray):
                held = tuple(Size.constant(int(element)) for element in each.reshape(-1))
            else:
                sizes = [Size.symbol(f"s{i}_{k}") for k in range(len(each[1]))]
                values |= {f"s{i}_{k}": size for k, size in enumerate(each[1])}
            leaf = walk.made(op.operands[i].type, [sizes], "here", elements=held)
            assert isinstance(leaf, Leaf)
            leaves.append(leaf)
        found = SizeSizing(op, leaves, walk).shapes()
        assert found is not None
        for shape, real, leaf_type in zip(found, case.real, leaf_types(op.result.type), strict=True):
            sizes = [walk.size(entry) if isinstance(entry, tuple) else entry for entry in shape]
            assert [size.evaluate(values) if size is not None else None for size in sizes] == list(real), (
                case,
                leaf_type,
            )


# ------------------------------------------------------------------------------------------------------------------- code


def executed(value: SSAValue, arrays: Mapping[SSAValue, np.ndarray]) -> int:
    """The value of an `index`."""
    at = {
        arith.AddiOp: lambda a, b: a + b,
        arith.SubiOp: lambda a, b: a - b,
        arith.MuliOp: lambda a, b: a * b,
        arith.FloorDivSIOp: lambda a, b: a // b,
        arith.MaxSIOp: max,
        arith.MinSIOp: min,
    }
    op = value.owner
    match op:
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return constant.value.data
        case memref.DimOp():
            return arrays[op.source].shape[executed(op.index, arrays)]
        case memref.LoadOp():
            return int(arrays[op.memref][tuple(executed(index, arrays) for index in op.indices)])
        case arith.IndexCastOp():
            return executed(op.input, arrays)
        case _:
            return at[type(op)](executed(op.operands[0], arrays), executed(op.operands[1], arrays))  # pyright: ignore


@every_case
def test_as_code_it_computes_them(made: Callable[[Draw], Case]) -> None:
    for case in drawn(made):
        op = case.op(is_open=True)
        types = [memref.MemRefType(ir.element_type, ir.get_shape()) for ir in (v.type for v in op.operands)]  # pyright: ignore
        block = Block(arg_types=types)
        arrays = dict(zip(block.args, case.arrays, strict=True))
        for leaf, real in enumerate(case.real):
            code = IndexCode(Builder(InsertPoint.at_end(block)), UnknownLoc())
            found = result_sizes(op, block.args, leaf, code)
            assert [size if isinstance(size, int) else executed(size, arrays) for size in found] == list(real), case


# ----------------------------------------------------------------------------------------------------------- requirements


def test_numbers_that_an_op_forbids_are_refused_with_its_words() -> None:
    case = Case("dynamic-pad", [("f32", (3,)), ("f32", ()), numbers(-4), numbers(0), numbers(0)], [(0,)])
    op = case.op(is_open=True)
    with pytest.raises(
        DataError, match=r"the padding -4 before, 0 after and 0 between .* axis 0, of size 3, leaves no"
    ):
        op.shapes(ValueSizing(op, case.arrays))


FORMULAS: Sequence[Callable[[Any, Any, Any], Any]] = (
    lambda s, a, b: a + 2,
    lambda s, a, b: 2 + a,
    lambda s, a, b: a + b,
    lambda s, a, b: a - 2,
    lambda s, a, b: 2 - a,
    lambda s, a, b: a - b,
    lambda s, a, b: 3 * a * b * 2,
    lambda s, a, b: (a - b) // 2,
    lambda s, a, b: s.maximum(a, b),
    lambda s, a, b: s.minimum(3, a - b),
    lambda s, a, b: s.product([a, b, a, 2]),
    lambda s, a, b: s.ceildiv(a + b, 3),
)


@pytest.mark.parametrize("number", range(len(FORMULAS)))
def test_every_kind_computes_as_ints_do(number: int) -> None:
    formula = FORMULAS[number]
    for a, b in ((0, 0), (1, 5), (5, 1), (7, 7)):
        x = ("f32", (a, b))
        op = Case("copy", [x], [x[1]]).op(is_open=True)
        wanted = formula(INTS, a, b)
        walk = Walk(Axes(Facts.of_symbols(["a", "b"], 0, "a size")))
        leaf = walk.made(op.operands[0].type, [[Size.symbol("a"), Size.symbol("b")]], "here")
        assert isinstance(leaf, Leaf)
        sizing = SizeSizing(op, [leaf], walk)
        size = sizing.size_of(formula(sizing, *sizing.axes(0)))
        assert size.evaluate({"a": a, "b": b}) == wanted
        block = Block(arg_types=[memref.MemRefType(f32, [UNBOUNDED, UNBOUNDED])])
        code = CodeSizing(op, block.args, IndexCode(Builder(InsertPoint.at_end(block)), UnknownLoc()))
        kept = code.kept(formula(code, *code.axes(0)))
        assert isinstance(kept, SSAValue)
        assert executed(kept, {block.args[0]: np.zeros(x[1])}) == wanted


def test_what_is_computed_from_an_unknown_size_is_unknown() -> None:
    for formula in FORMULAS:
        assert formula(INTS, UNKNOWN, 3) is UNKNOWN
        assert formula(INTS, 3, UNKNOWN) is UNKNOWN or formula(INTS, 3, 5) == formula(INTS, 3, 4)
