"""Logical arrays and the flat ones of steps and kernels, whose elements are in the order of HLO's layout. NumPy's and CuPy's alike.

    f32[2,3]{0,1}   [[a b c]      ->  buffer  a d b e c f
                     [d e f]]

Source: docs/reference/contracts "Arrays".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xla_emitters.program.step_values import ArraySpec


def to_buffer(array: Any, spec: ArraySpec, xp: Any = np) -> Any:
    """The elements of a logical array in memory order, flat; a view where no copy is needed. `xp`: numpy or cupy, the array's module"""
    return xp.ascontiguousarray(array.transpose(_major_to_minor(spec))).reshape(-1)


def from_buffer(buffer: Any, spec: ArraySpec) -> Any:
    """The inverse of `to_buffer`: a logical array over the same memory."""
    physical = _major_to_minor(spec)
    shape = tuple(spec.shape[dim] for dim in physical)
    return buffer.reshape(shape).transpose([physical.index(dim) for dim in range(len(physical))])


def _major_to_minor(spec: ArraySpec) -> tuple[int, ...]:
    return tuple(reversed(spec.minor_to_major))
