"""Convolutions get the layout that their library requires, and their padding as an operand. On HLO.

    y = convolution(x, w), dim_labels=bf01_oi01->bf01        xt = transpose(x), {0,2,3,1}     wt = transpose(w), {0,2,3,1}
                                                       ->    yt = dynamic_conv(xt, wt, pad), dim_labels=b01f_o01i->b01f
                                                             y = transpose(yt), {0,3,1,2}

    where                                                    image, kernel, result
    GPU from sm_80, f16 and bf16 (f32 with tf32=true)        b01f_o01i->b01f
    GPU, else                                                bf01_oi01->bf01
    CPU (library=cpu)                                        b01f_01io->b01f

An operand that has this layout gets no transpose. Convolutions placed on the host by `disc-placer` get the CPU's layout. Those of rank 2
have no spatial dimension and are not changed. A kernel that is applied reversed is reversed first, as the library has no such option.
Source: seed document, "DhloConvRewriterPass"; BladeDISC conv_rewriter.cc for the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.contractions import ConvolutionOp
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
from xla_emitters.dialects.hlo.placement import is_on_host
from xla_emitters.dialects.hlo.types import array_type, as_array, dims_of, element_of
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dynamic.passes.shape_code import ShapeCode
from xla_emitters.errors import UsageError
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import DevicePass

_SMALLEST_FOR_CHANNELS_LAST = (8, 0)
_HALVES = ("f16", "bf16")


@dataclass(frozen=True)
class DiscConvRewriterPass(DevicePass):
    """See the file's head. For a module of the `hlo` dialect.

    library  "gpu" or "cpu": the library that computes the convolutions
    tf32     f32 may be computed in tf32, so channels come last
    """

    name = "disc-conv-rewriter"

    library: str = "gpu"
    tf32: bool = False

    def apply_to(self, op: ModuleOp) -> None:
        if self.library not in ("gpu", "cpu"):
            raise UsageError(f"{self.name}: no library '{self.library}'", help="gpu or cpu")
        names = Names(op)
        for conv in list(op.walk()):
            if isinstance(conv, ConvolutionOp | DynamicConvOp):
                self._rewrite(conv, names)

    def _rewrite(self, conv: ConvolutionOp | DynamicConvOp, names: Names) -> None:
        labels, spatial = conv.dim_labels.data.replace("->", "_").split("_"), len(dims_of(conv.result)) - 2
        if spatial < 1:
            return self.skip(conv, "it has no spatial dimension: it is a product of matrices")
        wanted = self._labels(conv, "".join(str(i) for i in range(spatial)))
        if isinstance(conv, DynamicConvOp) and labels == wanted:
            return self.skip(conv, "it has the library's layout")
        code, name = ShapeCode(names, conv), conv.instruction_name.data
        window = conv.window.data if conv.window is not None else Window()
        padding = (
            conv.operands[2]
            if isinstance(conv, DynamicConvOp)
            else code.constant(np.array([(dim.low, dim.high) for dim in window.dims]), "s32", "padding")
        )
        kernel = conv.operands[1]
        if turned := [labels[1].index(str(i)) for i, dim in enumerate(window.dims) if dim.reversed]:
            kernel = code.add("reverse", [kernel], kernel.type, {"dimensions": integer_array(turned)})
        image, kernel = (
            _moved(code, value, has, wants)
            for value, has, wants in zip((conv.operands[0], kernel), labels, wanted, strict=False)
        )
        result = as_array(conv.result.type)
        dims = [dims_of(conv.result)[labels[2].index(label)] for label in wanted[2]]
        properties = {key: value for key, value in conv.properties.items() if key not in ("name", "algorithm")} | {
            "dim_labels": StringAttr(f"{wanted[0]}_{wanted[1]}->{wanted[2]}"),
            "window": WindowAttr(Window(tuple(replace(dim, low=0, high=0, reversed=False) for dim in window.dims))),
        }
        made = DynamicConvOp([image, kernel, padding], array_type(result.element_type, dims), name, properties)
        made.attributes |= conv.attributes
        names.replace(conv, _moved(code, names.add(made, conv), wanted[2], labels[2]))

    def _labels(self, conv: ConvolutionOp | DynamicConvOp, spatial: str) -> list[str]:
        """The library's labels of image, kernel and result."""
        if self.library == "cpu" or is_on_host(conv):
            return [f"b{spatial}f", f"{spatial}io", f"b{spatial}f"]
        is_narrow = all(element_of(value).name in _HALVES for value in conv.operands[:2])
        is_new = self.device.compute_capability >= _SMALLEST_FOR_CHANNELS_LAST
        if is_new and (is_narrow or (self.tf32 and element_of(conv.operands[0]).name == "f32")):
            return [f"b{spatial}f", f"o{spatial}i", f"b{spatial}f"]
        return [f"bf{spatial}", f"oi{spatial}", f"bf{spatial}"]


def _moved(code: ShapeCode, value: SSAValue, has: str, wants: str) -> SSAValue:
    """The array with its dimensions in the order `wants`."""
    if has == wants:
        return value
    return code.transposed(value, [has.index(label) for label in wants])
