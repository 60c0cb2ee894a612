"""Convolutions on the GPU get the same padding on both sides; a pad before them adds the rest. On HLO.

    y = dynamic_conv(x, w, [[0, 1]])         ->      p = pad(x, 0), padding=0_1;  y = dynamic_conv(p, w, [[0, 0]])
    y = dynamic_conv(x, w, %runtime)         ->      c = max(min(low, high), 0); p = dynamic_pad(x, 0, low - c, high - c); conv with (c, c)

cuDNN takes one nonnegative number for both sides of a spatial dimension. Constant padding of this form is not changed. A dilated image (as
in gradients) is left: the library makes convolutions of the image as it is, which multiply no zeros.
An image that is transposed for the convolution alone is padded first: what reads any layout then needs no transpose.
A negative padding cuts elements off, which the pad does as well; BladeDISC passes it on, and cuDNN refuses it.
Convolutions of more than two spatial dimensions, and those on the host, are left too.
Source: seed document, "DhloGpuConvPaddingLegalizationPass"; docs/decisions/14-where-the-passes-of-programs-differ.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
from xla_emitters.dialects.hlo.placement import is_on_host
from xla_emitters.dialects.hlo.shape_ops import TransposeOp
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of, element_of
from xla_emitters.dynamic.passes.shape_code import SCALAR, Number, ShapeCode
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

_MOST_SPATIAL = 2


class DiscGpuConvPaddingPass(KernelPass):
    name = "disc-gpu-conv-padding"

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for conv in list(op.walk()):
            if isinstance(conv, DynamicConvOp):
                self._legalize(conv, names)

    def _legalize(self, conv: DynamicConvOp, names: Names) -> None:
        dims, padding = conv.window.data.dims, conv.operands[2].owner
        if is_on_host(conv):
            return self.skip(conv, "it is on the host")
        if len(dims) > _MOST_SPATIAL:
            return self.skip(conv, f"it has {len(dims)} spatial dimensions")
        if any(dim.base_dilation != 1 for dim in dims):
            return self.skip(conv, "its image is dilated")
        code = ShapeCode(names, conv)
        if isinstance(padding, ConstantOp) and not padding.is_elided:
            edges = [(int(low), int(high)) for low, high in padding.array()]
            if all(low == high >= 0 for low, high in edges):
                return self.skip(conv, "its padding is the same on both sides")
            both = [max(min(low, high), 0) for low, high in edges]
            common: list[Number] = [*both]
            rest: list[tuple[Number, Number]] = [
                (low - c, high - c) for (low, high), c in zip(edges, both, strict=True)
            ]
        else:
            common, rest = _at_run_time(code, conv.operands[2])
        self._replace(conv, code, common, rest)

    @staticmethod
    def _replace(
        conv: DynamicConvOp, code: ShapeCode, common: Sequence[Number], rest: Sequence[tuple[Number, Number]]
    ) -> None:
        image = conv.operands[0]
        labels = conv.dim_labels.data.partition("_")[0]
        low: list[Number] = [0] * len(labels)
        high: list[Number] = [0] * len(labels)
        for i, (before, after) in enumerate(rest):
            axis = labels.index(str(i))
            low[axis], high[axis] = before, after
        zero, moved = _zero(code, image), image.owner
        if isinstance(moved, TransposeOp) and image.has_one_use():
            order = integers(moved.dimensions)
            back = [order.index(dim) for dim in range(len(order))]
            before, after = ([row[dim] for dim in back] for row in (low, high))
            padded = _padded(code, moved.operands[0], zero, before, after)
            padded = code.transposed(padded, order, moved.instruction_name.data)
        else:
            padded = _padded(code, image, zero, low, high)
        pairs = [one for number in common for one in (number, number)]
        known = [number for number in pairs if isinstance(number, int)]
        if len(known) == len(pairs):
            padding = code.constant(np.asarray(known).reshape(-1, 2), "s64", "padding")
        else:
            matrix = array_type(SCALAR.element_type, (len(common), 2))
            padding = code.add("reshape", [code.shape(pairs)], matrix, name="padding", of_sizes=True)
        conv.operands = [padded, conv.operands[1], padding]


def _zero(code: ShapeCode, image: SSAValue) -> SSAValue:
    """The padding value, placed where the image is."""
    element = element_of(image)
    return code.insert(ConstantOp.from_array(np.zeros((), element.numpy), element, "zero"))


def _at_run_time(code: ShapeCode, padding: SSAValue) -> tuple[list[Number], list[tuple[Number, Number]]]:
    """Splits a padding held by an operand into the part common to both sides, and the rest of each side."""
    spatial = dims_of(padding)[0]
    wide = code.add("convert", [padding], array_type(SCALAR.element_type, (spatial, 2)), of_sizes=True)
    common, rest = list[Number](), list[tuple[Number, Number]]()
    for i in range(spatial):
        low, high = (_element(code, wide, i, side) for side in (0, 1))
        both = code.binary("maximum", code.binary("minimum", low, high), 0)
        common.append(both)
        rest.append((code.binary("subtract", low, both), code.binary("subtract", high, both)))
    return common, rest


def _element(code: ShapeCode, matrix: SSAValue, row: int, column: int) -> SSAValue:
    ranges = ArrayAttr([integer_array([row, row + 1, 1]), integer_array([column, column + 1, 1])])
    one = code.add("slice", [matrix], array_type(SCALAR.element_type, (1, 1)), {"slice": ranges}, of_sizes=True)
    return code.add("reshape", [one], SCALAR, of_sizes=True)


def _padded(
    code: ShapeCode, image: SSAValue, zero: SSAValue, low: Sequence[Number], high: Sequence[Number]
) -> SSAValue:
    element, edges = as_array(image.type).element_type, list[tuple[int, int, int]]()
    for before, after in zip(low, high, strict=True):
        if isinstance(before, int) and isinstance(after, int):
            edges.append((before, after, 0))
    dims = [
        size + before + after if size >= 0 and isinstance(before, int) and isinstance(after, int) else UNBOUNDED
        for size, before, after in zip(dims_of(image), low, high, strict=True)
    ]
    if len(edges) == len(low):
        properties = {"padding": ArrayAttr([integer_array(row) for row in edges])}
        return code.add("pad", [image, zero], array_type(element, dims), properties)
    lists = [code.shape(low), code.shape(high), code.shape([0] * len(low))]
    return code.add("dynamic-pad", [image, zero, *lists], array_type(element, dims))
