"""Tensor maps: what `cp.async.bulk.tensor` knows about an array in global memory, and about the boxes that it copies.

    TensorMap(box=(64, 64), swizzle=128).encoded(array, address)          128 bytes, uint8

The driver's encoding is not documented; this one is the executor's own. Its fields are what `tensormap.replace` names, so that a kernel may
change a map, and copy it. Dimensions count from the innermost one in it, and from the outermost one in Python.
Source: PTX ISA 8.8, 5.5 "Tensors", 9.7.9.28 "tensormap.replace".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError

ELEMENTS = (
    *("u8", "u16", "u32", "s32", "u64", "s64"),
    *("f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz", "b4x16"),
)
"""By the number that `tensormap.replace.tile.elemtype` takes. `b4x16`: four bits, two in a byte, the first one in its low bits."""
SWIZZLES = (0, 32, 64, 128)
"""Bytes, by the number that `.swizzle_mode` takes."""
FILLS = ("zero", "nan")
MAP = np.dtype(
    [
        *(("global_address", "<u8"), ("global_dim", "<u4", 5)),
        *(("elemtype", "u1"), ("rank", "u1"), ("swizzle_mode", "u1"), ("fill_mode", "u1")),
        *(("global_stride", "<u8", 4), ("box_dim", "<u4", 5), ("element_stride", "<u4", 5)),
        *(("interleave_layout", "u1"), ("unused", "V15"), ("magic", "S8")),
    ]
)
"""The 128 bytes; `rank` is one less, as `tensormap.replace` has it; strides are bytes, without that of the innermost dimension."""
MOST_SHARED = 228 << 10
"""Shared memory of a block, in bytes: no box has more."""
MAGIC = b"xla-emtm"


def offset_of(field: str) -> int:
    """Where a field of a map begins, in bytes."""
    fields: Any = MAP.fields
    return fields[field][1]


_OF_NUMPY = {
    **{"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16"},
    **{"uint16": "u16", "uint32": "u32", "int32": "s32", "uint64": "u64", "int64": "s64", "int16": "u16"},
}


@dataclass(frozen=True)
class TensorMap:
    """A tensor map for one array, as `cuTensorMapEncodeTiled` takes it; outermost dimension first.

    box        elements that a copy moves, along each dimension
    swizzle    bytes: 0, 32, 64, 128
    argument   the number of the parameter whose array it is, or a place in one; None: the array that is given for the map itself
    element    PTX's type; None: the array's. shape: None: the array's
    strides    bytes, one less than dimensions; None: row-major
    steps      every how many elements of a box one is copied; None: all
    fill       outside the array: "zero" or "nan"
    """

    box: tuple[int, ...]
    swizzle: int = 0
    argument: int | tuple[int, ...] | None = None
    element: str | None = None
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None
    fill: str = "zero"

    def encoded(self, array: Array, address: int) -> Array:
        """The map of an array at that address: uint8 (128,). raises DataError where the driver would refuse it"""
        element = self.element or _OF_NUMPY.get(array.dtype.name, "u8" if array.dtype.itemsize == 1 else "")
        bits = 8 * array.dtype.itemsize if self.element is None else bits_of(element)
        shape = array.shape if self.shape is None else self.shape
        if self.shape is None and bits == 4:
            shape = (*shape[:-1], 2 * shape[-1])
        rank, whole = len(shape), [bits]
        for extent in reversed(shape[1:]):
            whole.append(whole[-1] * extent)
        strides = tuple(each // 8 for each in reversed(whole[1:])) if self.strides is None else self.strides
        steps = self.steps or (1,) * rank
        inner = self.box[-1] * bits // 8 if self.box else 0
        faults = (
            (element not in ELEMENTS, f"no tensor map has elements of {element or array.dtype}"),
            (not 1 <= rank <= 5, f"a tensor map has 1 to 5 dimensions, not {rank}"),
            (
                len(self.box) != rank or len(steps) != rank or len(strides) != rank - 1,
                f"box and steps have {rank} numbers",
            ),
            (any(not 1 <= extent <= 256 for extent in self.box), "a box has 1 to 256 elements along each dimension"),
            (any(not 1 <= step <= 8 for step in steps), "a step is 1 to 8"),
            (bits == 4 and (shape[-1] % 2 != 0 or steps[-1] != 1), "a row of elements of four bits has whole bytes"),
            (any(stride % 16 for stride in strides), f"strides {strides} are no multiples of 16 bytes"),
            (inner % 16 != 0, f"rows of {inner} bytes in a box are no multiple of 16"),
            (self.swizzle not in SWIZZLES, f"a swizzle is of 0, 32, 64 or 128 bytes, not {self.swizzle}"),
            (0 < self.swizzle < inner, f"rows of {inner} bytes in a box are longer than the swizzle"),
            (bits == 4 and self.fill == "nan", "an element of four bits is no NaN"),
            (self.fill not in FILLS, f"outside there is 'zero' or 'nan', not '{self.fill}'"),
        )
        if fault := next((message for is_wrong, message in faults if is_wrong), ""):
            raise DataError(f"tensor map: {fault}", stage="ptx")
        found = np.zeros((), MAP)
        found["global_address"], found["rank"], found["magic"] = address, rank - 1, MAGIC
        found["elemtype"], found["swizzle_mode"] = ELEMENTS.index(element), SWIZZLES.index(self.swizzle)
        found["fill_mode"] = FILLS.index(self.fill)
        for name, values in (("global_dim", shape), ("box_dim", self.box), ("element_stride", steps)):
            found[name][:rank] = values[::-1]
        found["global_stride"][: rank - 1] = strides[::-1]
        return np.frombuffer(found.tobytes(), np.uint8).copy()


def bits_of(element: str) -> int:
    """The size of an element; 0 of a word that is none."""
    return {"4x16": 4, "8": 8, "16": 16, "32": 32, "64": 64}.get(element.removesuffix(".ftz").lstrip("bfstu"), 0)
