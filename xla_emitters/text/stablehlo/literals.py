"""Prints literals of StableHLO: `dense<...>` with all bits of an array.

    dense<1.000000000e+00> : tensor<4xf32>              equal elements
    dense<[1, 2]> : tensor<2xi32>                       few elements
    dense<"0x0000803F..."> : tensor<4096xf32>           many elements: their bytes

Elements that are not finite are written as bit patterns. Source: MLIR, "Builtin dialect", DenseElementsAttr.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xla_emitters.dialects.hlo.types import array_type
from xla_emitters.dtypes import Array, DType, Kind
from xla_emitters.text.stablehlo.types import stablehlo_type

_FEW = 32
"""Literals of up to this many elements list them one by one; larger ones are a string of bytes."""


def literal_text(array: Array, element: DType) -> str:
    """`dense<...> : tensor<...>` with all bits of the array."""
    ir_type = stablehlo_type(array_type(element.ir_type, array.shape))
    if not array.size:
        return f"dense<> : {ir_type}"
    flat = array.reshape(-1)
    raw = np.ascontiguousarray(flat).view(np.uint8).reshape(flat.size, -1)
    is_splat = bool((raw == raw[0]).all())
    if is_splat:
        return f"dense<{_scalar_text(flat[0], element)}> : {ir_type}"
    if flat.size <= _FEW or element.kind is Kind.PRED or element.bits < 8:
        return f"dense<{_nested_text(array, element)}> : {ir_type}"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {ir_type}'


def _nested_text(array: Array, element: DType) -> str:
    if not array.ndim:
        return _scalar_text(array[()], element)
    return f"[{', '.join(_nested_text(part, element) for part in array)}]"


def _scalar_text(value: Any, element: DType) -> str:
    match element.kind:
        case Kind.PRED:
            return "true" if value else "false"
        case Kind.COMPLEX:
            return f"({_scalar_text(value.real, element.part)}, {_scalar_text(value.imag, element.part)})"
        case Kind.FLOAT:
            if np.isfinite(np.float64(value)):
                return f"{float(value):.{17 if element.bits == 64 else 9}e}"
            bits = np.asarray(value, element.numpy).view(f"u{element.numpy.itemsize}")
            return f"0x{int(bits):0{element.numpy.itemsize * 2}X}"
        case _:
            return str(int(value))
