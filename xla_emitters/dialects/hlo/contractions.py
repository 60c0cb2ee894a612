"""dot and convolution: sums of products of two operands' elements.

    %d = hlo.dot %x, %y {lhs_contracting_dims = array<i64: 1>, name = "d", rhs_contracting_dims = array<i64: 0>}
           : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>

Products are added one after the other, in the order of the maps' range variables. Narrow floats are summed in f32 and rounded once.
Source: docs/reference/1 3.2, 3.6, 5.5, 6.8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import opt_prop_def, prop_def

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.build import apply_indexing
from xla_emitters.dialects.hlo import complex_meaning
from xla_emitters.dialects.hlo.base import Call, ElementContext, HloOp, RuleBroken, are_dimensions, integers
from xla_emitters.dialects.hlo.convert import constant, convert_array, emit_convert, wrap
from xla_emitters.dialects.hlo.shape_rule import Broken, Number, Shape, Sizing, positions
from xla_emitters.dialects.hlo.types import UNBOUNDED, dims_of, element_of, type_text
from xla_emitters.dialects.hlo.windows import Window, WindowAttr, WindowDim, visited, window_map
from xla_emitters.dialects.mlir import arith, complex
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array, DType, Kind, dtype
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class DotDimensions:
    """The dimensions of its operands that a dot pairs: batch dimensions are kept, contracting ones summed over.

    lhs, rhs  the numbers of the operands
    """

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs: int = 0
    rhs: int = 1

    def verify(self, op: HloOp, skip: Sequence[int] = ()) -> None:
        """raises RuleBroken unless the dimensions, and those of rhs in `skip`, are different ones of the operands, in pairs"""
        taken = self.lhs_batch + self.lhs_contracting, (*self.rhs_batch, *self.rhs_contracting, *skip)
        for operand, used in zip((self.lhs, self.rhs), taken, strict=True):
            rank = len(dims_of(op.operands[operand]))
            if not are_dimensions(used, rank):
                raise RuleBroken(
                    "batch and contracting dimensions are not different dimensions of the operand",
                    f"it is {type_text(op.operands[operand].type)}",
                    operand=operand,
                )
        if any(len(a) != len(b) for a, b in self._pairs):
            raise self._differ(op)

    @property
    def _pairs(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        return (self.lhs_batch, self.rhs_batch), (self.lhs_contracting, self.rhs_contracting)

    def _differ(self, op: HloOp) -> RuleBroken:
        lhs, rhs = (type_text(op.operands[operand].type) for operand in (self.lhs, self.rhs))
        return RuleBroken(
            "the operands differ in a batch or contracting dimension", f"lhs is {lhs}, rhs {rhs}", operand=self.rhs
        )

    def shape(self, op: HloOp, s: Sizing, skip: Sequence[int] = ()) -> list[Number]:
        """Batch dimensions, then free ones of lhs, then of rhs but for `skip`."""
        lhs, rhs = s.axes(self.lhs), s.axes(self.rhs)
        for a, b in ((a, b) for pair in self._pairs for a, b in zip(*pair, strict=True)):
            lhs[a] = s.same(lhs[a], rhs[b], lambda: self._differ(op))
        left = self.lhs_batch + self.lhs_contracting
        right = (*self.rhs_batch, *self.rhs_contracting, *skip)
        return [
            *(lhs[dim] for dim in self.lhs_batch),
            *(size for dim, size in enumerate(lhs) if dim not in left),
            *(size for dim, size in enumerate(rhs) if dim not in right),
        ]


ALGORITHMS: Mapping[str, str | None] = {
    "unset": None,
    "dot_any_f8_any_f8_f32": None,
    "dot_any_f8_any_f8_f32_fast_accum": None,
    "dot_any_f8_any_f8_any": None,
    "dot_any_f8_any_f8_any_fast_accum": None,
    "dot_f16_f16_f16": "f16",
    "dot_f16_f16_f32": "f16",
    "dot_bf16_bf16_bf16": "bf16",
    "dot_bf16_bf16_f32": "bf16",
    "dot_bf16_bf16_f32_x3": None,
    "dot_bf16_bf16_f32_x6": None,
    "dot_bf16_bf16_f32_x9": None,
    "dot_tf32_tf32_f32": None,
    "dot_tf32_tf32_f32_x3": None,
    "dot_f32_f32_f32": None,
    "dot_f64_f64_f64": None,
}
"""HLO's algorithms -> the type that factors are rounded to first. Sums are in f32 (f64 if the result is f64), which is within the bounds of
every algorithm; so are the products of the algorithms that imitate f32, or round to tf32.
Source: XLA's xla_data.proto, PrecisionConfig.Algorithm; jax.lax.DotAlgorithmPreset.
"""


class ContractingOp(HloOp):
    """Sums of products of two operands' elements; both maps have the same range variables, and the first one's domain holds for both."""

    OPERANDS: ClassVar = range(2, 3)
    CONTRACTS: ClassVar = True
    DEPENDS_ON_SIZES: ClassVar = True

    operand_precision = opt_prop_def(StringAttr)
    algorithm = opt_prop_def(StringAttr)

    @property
    def is_small(self) -> bool:
        """Whether XLA would leave this to its loop emitter instead of a library."""
        return False

    @property
    def held(self) -> DType:
        """The type in which elements are multiplied and sums are held. raises Unsupported for an algorithm or types without code."""
        result = element_of(self.result)
        if result.kind is not Kind.COMPLEX and Kind.COMPLEX in (element_of(operand).kind for operand in self.operands):
            raise self.unsupported("no code for a real result of complex numbers")
        if self.algorithm is not None and self.algorithm.data == "dot_f64_f64_f64" and result.name != "f64":
            raise self.unsupported(f"no code for algorithm {self.algorithm.data} with a result of {result.name}")
        return dtype("f32") if result.kind is Kind.FLOAT and result.bits < 32 else result

    @property
    def rounds_to(self) -> str | None:
        """The type that the algorithm rounds elements to before it multiplies them."""
        return ALGORITHMS[self.algorithm.data] if self.algorithm is not None else None

    def kept(self, operand: int) -> list[DType]:
        """The types that an element of an operand is converted to, one after the other."""
        source = element_of(self.operands[operand])
        rounded = dtype(self.rounds_to) if self.rounds_to is not None and source.bits > 16 else None
        return [source, *([rounded] if rounded is not None else ()), self.held]

    def verify_algorithm(self) -> None:
        """raises RuleBroken for an algorithm that HLO does not have."""
        if self.algorithm is not None and self.algorithm.data not in ALGORITHMS:
            raise RuleBroken(f"no algorithm '{self.algorithm.data}'", f"it is one of {', '.join(ALGORITHMS)}")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        """One product after the other, in the order of the maps' range variables, the last one fastest."""
        held = self.held
        factors = list[Array]()
        for i, array in enumerate(operands):
            for source, target in pairwise(self.kept(i)):
                array = convert_array(array, source, target)
            factors.append(array.astype(np.int64) if held.is_integer else array)
        total = self.summed(factors[0], factors[1])
        return convert_array(wrap(total, held) if held.is_integer else total, held, element_of(self.result))

    def summed(self, *factors: Array) -> Array:
        """The sums of products of factors of the type that sums are held in (integers: 64 bits)."""
        shape = dims_of(self.result)
        total = np.zeros(shape, factors[0].dtype)
        for inside, (one, other) in visited(shape, *self.output_to_input()):
            total[inside] = _added(total[inside], factors[0][one], factors[1][other])
        return total

    def reads_apart(self, operand: int) -> bool:
        return True

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        held, maps = self.held, self.output_to_input()
        zero = constant(e, 0, held.storage_type)

        def factor(i: int, symbols: Sequence[SSAValue]) -> SSAValue:
            value = e.operand(i, apply_indexing(e.builder, maps[i], [*e.indices, *symbols]))
            for source, target in pairwise(self.kept(i)):
                value = emit_convert(e, value, source, target)
            return value

        def step(symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            x, y, (total,) = factor(0, symbols), factor(1, symbols), carried
            if held.kind is Kind.FLOAT:
                return (e.insert(arith.AddfOp(total, e.insert(arith.MulfOp(x, y)).result)).result,)
            if held.kind is Kind.COMPLEX:
                return (e.insert(complex.AddOp(total, e.insert(complex.MulOp(x, y)).result)).result,)
            if held.kind is Kind.PRED:
                return (e.insert(arith.OrIOp(total, e.insert(arith.AndIOp(x, y)).result)).result,)
            return (e.insert(arith.AddiOp(total, e.insert(arith.MuliOp(x, y)).result)).result,)

        (total,) = (zero,) if maps[0].is_known_empty else e.loop(maps[0], (zero,), step)
        return (emit_convert(e, total, held, element_of(self.result)),)


def _added(total: Array, x: Array, y: Array) -> Array:
    """total + x y, the product rounded first; `or` and `and` for predicates."""
    if total.dtype.kind == "b":
        return total | x & y
    return total + (complex_meaning.product(x, y) if total.dtype.kind == "c" else x * y)


@op_definition
class DotOp(ContractingOp):
    """Sums of products over the contracting dimensions; result: batch dimensions, then free ones of lhs, then of rhs."""

    name = "hlo.dot"
    lhs_batch_dims = opt_prop_def(DenseArrayBase)
    rhs_batch_dims = opt_prop_def(DenseArrayBase)
    lhs_contracting_dims = opt_prop_def(DenseArrayBase)
    rhs_contracting_dims = opt_prop_def(DenseArrayBase)

    @property
    def pairing(self) -> DotDimensions:
        return DotDimensions(
            integers(self.lhs_batch_dims),
            integers(self.rhs_batch_dims),
            integers(self.lhs_contracting_dims),
            integers(self.rhs_contracting_dims),
        )

    REWRITE_SIZE_THRESHOLD: ClassVar = 100
    """Elements in one matrix of each operand, together, from which on XLA calls a library: its xla_gpu_gemm_rewrite_size_threshold."""

    @property
    def is_small(self) -> bool:
        """By the rule of XLA's gemm rewriter: matrices below its threshold, and a type whose sums its loop emitter can hold."""
        batch = math.prod(dims_of(self.operands[0])[dim] for dim in self.pairing.lhs_batch)
        elements = sum(math.prod(dims_of(operand)) for operand in self.operands)
        is_of_floats = element_of(self.result).name in ("f16", "bf16", "f32")
        return is_of_floats and elements < self.REWRITE_SIZE_THRESHOLD * batch

    def verify_(self) -> None:
        self.verify_algorithm()
        self.pairing.verify(self)
        self.expect_dims(self.inferred_dims(), "its operands give")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [self.pairing.shape(self, s)]

    def summed(self, *factors: Array) -> Array:
        """A row of lhs times a column of rhs at once, term by term, in the order of the maps."""
        pairing, (lhs, rhs) = self.pairing, factors
        free = [
            [dim for dim in range(array.ndim) if dim not in (*batch, *contracting)]
            for array, batch, contracting in (
                (lhs, pairing.lhs_batch, pairing.lhs_contracting),
                (rhs, pairing.rhs_batch, pairing.rhs_contracting),
            )
        ]
        count, rows = (math.prod(lhs.shape[dim] for dim in dims) for dims in (pairing.lhs_batch, free[0]))
        terms, columns = (math.prod(rhs.shape[dim] for dim in dims) for dims in (pairing.rhs_contracting, free[1]))
        left = lhs.transpose([*pairing.lhs_contracting, *pairing.lhs_batch, *free[0]]).reshape(terms, count, rows, 1)
        right = rhs.transpose([*pairing.rhs_contracting, *pairing.rhs_batch, *free[1]])
        total = np.zeros((count, rows, columns), lhs.dtype)
        for x, y in zip(left, right.reshape(terms, count, 1, columns), strict=True):
            total = _added(total, x, y)
        return total.reshape(dims_of(self.result))

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        pairing, result = self.pairing, dims_of(self.result)
        places = tuple(Variable(Interval(0, size - 1)) for size in result)
        sizes = dims_of(self.operands[0])
        summed = tuple(Variable(Interval(0, sizes[dim] - 1)) for dim in pairing.lhs_contracting)
        maps = list[IndexingMap]()
        free = len(pairing.lhs_batch)
        for operand, batch, contracting in (
            (self.operands[0], pairing.lhs_batch, pairing.lhs_contracting),
            (self.operands[1], pairing.rhs_batch, pairing.rhs_contracting),
        ):
            variables = dict[int, int]()
            variables |= {dim: number for number, dim in enumerate(batch)}
            variables |= {dim: len(result) + number for number, dim in enumerate(contracting)}
            for dim in range(len(dims_of(operand))):
                if dim not in variables:
                    variables[dim] = free
                    free += 1
            results = tuple(Expr.variable(variables[dim]) for dim in range(len(variables)))
            maps.append(IndexingMap(results, places, summed))
        return tuple(maps)


def labels_of(dim_labels: StringAttr) -> list[str]:
    """The dimensions of image, kernel and result: "bf01_oi01->bf01" is ["bf01", "oi01", "bf01"]."""
    return dim_labels.data.replace("->", "_").split("_")


def convolved(
    s: Sizing,
    labels: Sequence[str],
    window: Sequence[WindowDim],
    batch_groups: int,
    padding: Callable[[int, int], Number] | None = None,
    misfit: Broken | None = None,
) -> Shape:
    """The sizes of a convolution's result: batches of the image, features of the kernel, positions of the kernel in the image.

    padding  (spatial dimension, 0: low or 1: high) -> the number in place of the window's
    misfit   the message for a window of other sizes than the kernel's; None: the window's do not matter
    """
    in_image, in_kernel, in_result = labels
    found: dict[str, Number] = {"f": s.axis(1, in_kernel.index("o"))}
    batch = s.axis(0, in_image.index("b"))
    found["b"] = batch if batch_groups == 1 else batch // batch_groups
    for i, along in enumerate(window):
        size = s.axis(1, in_kernel.index(str(i)))
        size = size if misfit is None else s.same(size, along.size, misfit)
        low, high = (along.low, along.high) if padding is None else (padding(i, 0), padding(i, 1))
        elements, (stride, base, apart) = s.axis(0, in_image.index(str(i))), along.steps
        places = positions(s, elements, size, stride, low, high, base, apart)
        # A kernel of no elements has no position.
        found[str(i)] = places if s.known(size) is not None else places * s.minimum(size, 1)
    return [found[label] for label in in_result]


@op_definition
class ConvolutionOp(ContractingOp):
    """Sums of products of a kernel that slides over an array, over spatial dimensions and features."""

    name = "hlo.convolution"

    dim_labels = prop_def(StringAttr)
    window = opt_prop_def(WindowAttr)
    feature_group_count = opt_prop_def(IntegerAttr)
    batch_group_count = opt_prop_def(IntegerAttr)

    @property
    def labels(self) -> list[str]:
        """A letter or digit per dimension, of the image (b, f), the kernel (i, o) and the result (b, f)."""
        return labels_of(self.dim_labels)

    def verify_(self) -> None:
        self.verify_algorithm()
        labels = self.labels
        values = (*self.operands, self.result)
        if len(labels) != 3 or any(
            len(label) != len(dims_of(value)) or len(set(label)) != len(label)
            for label, value in zip(labels, values, strict=True)
        ):
            raise RuleBroken(
                f"dim_labels={self.dim_labels.data} do not name each dimension once",
                *tuple(type_text(value.type) for value in values),
            )
        sizes = [dict(zip(label, dims_of(value), strict=True)) for label, value in zip(labels, values, strict=True)]
        spatial = [str(i) for i in range(len(labels[0]) - 2)]
        if any(set(found) != {*spatial, *letters} for found, letters in zip(sizes, ("bf", "io", "bf"), strict=True)):
            raise RuleBroken(f"dim_labels={self.dim_labels.data} differ in their spatial dimensions")
        image, kernel, _ = sizes
        self._verify_groups(image, kernel)
        if len(self.window.data.dims if self.window else ()) != len(spatial):
            raise self._window_misfit()
        self.expect_dims(self.inferred_dims(), "image, kernel and window give")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        window = self.window.data.dims if self.window else ()
        return [convolved(s, self.labels, window, self.batch_groups, misfit=self._window_misfit)]

    def _window_misfit(self) -> RuleBroken:
        return RuleBroken("the window is not as large as the kernel", type_text(self.operands[1].type), operand=1)

    @property
    def feature_groups(self) -> int:
        """The number of groups into which the features of the image are divided."""
        return self.feature_group_count.value.data if self.feature_group_count else 1

    @property
    def batch_groups(self) -> int:
        """The number of groups into which the image's batches are divided."""
        return self.batch_group_count.value.data if self.batch_group_count else 1

    def _verify_groups(self, image: Mapping[str, int], kernel: Mapping[str, int]) -> None:
        """raises RuleBroken when the numbers of groups do not divide the sizes."""
        features, batches = self.feature_groups, self.batch_groups
        if features < 1 or batches < 1 or (features > 1 and batches > 1):
            raise RuleBroken(f"{features} groups of features and {batches} of batches")
        known = UNBOUNDED not in (*image.values(), *kernel.values())
        if known and (image["f"] != kernel["i"] * features or kernel["o"] % features):
            raise RuleBroken(
                f"kernel and image do not fit in {features} groups of features",
                f"the image has {image['f']} features, the kernel takes {kernel['i']} and gives {kernel['o']}",
                operand=1,
            )
        if known and (image["b"] % batches or kernel["o"] % batches):
            raise RuleBroken(f"the image does not fall into {batches} groups of batches", operand=0)

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        """Range variables: the window's spatial dimensions, then the features on which one feature of the result depends.

        If the features of the image, or its batches, are divided into groups, so are the features of the result; each group depends
        only on its own.
        """
        in_image, in_kernel, in_result = self.labels
        image, kernel, result = (
            dict(zip(label, dims_of(value), strict=True))
            for label, value in zip(self.labels, (*self.operands, self.result), strict=True)
        )
        # The layout of the kernel is part of the kernel's map.
        along = self.window.data.dims if self.window else ()
        window = Window(tuple(replace(side, reversed=False) for side in along))
        spatial = [str(i) for i in range(len(window.dims))]
        whole, rank = identity_map(dims_of(self.result)), len(in_result)
        places = [Expr.variable(in_result.index(dim)) for dim in spatial]
        within = [Expr.variable(rank + i) for i in range(len(spatial))]
        slides = window_map(window, [image[dim] for dim in spatial])
        slid = slides.with_variables_replaced([*places, *within], dims=whole.dims, range_vars=slides.range_vars)
        batch, feature = (Expr.variable(in_result.index(letter)) for letter in "bf")
        seen = Expr.variable(rank + len(spatial))
        taken = {
            dim: Expr.constant(side.size - 1) - at if side.reversed else at
            for dim, at, side in zip(spatial, within, along, strict=True)
        }
        found = dict(zip(spatial, slid.results, strict=True)) | {"b": batch, "f": seen}
        if self.feature_groups > 1:
            found["f"] = feature // max(1, kernel["o"] // self.feature_groups) * kernel["i"] + seen
        if self.batch_groups > 1:
            found["b"] = feature // max(1, kernel["o"] // self.batch_groups) * result["b"] + batch
        taken |= {"o": feature, "i": seen}
        summed = (*slides.range_vars, Variable(Interval(0, kernel["i"] - 1)))
        bounds = tuple((place, v.bounds) for place, v in zip(places, slides.dims, strict=True))
        return (
            IndexingMap(
                tuple(found[dim] for dim in in_image), whole.dims, summed, constraints=slid.constraints + bounds
            ),
            IndexingMap(tuple(taken[dim] for dim in in_kernel), whole.dims, summed),
        )


OPS: tuple[type[HloOp], ...] = (DotOp, ConvolutionOp)
