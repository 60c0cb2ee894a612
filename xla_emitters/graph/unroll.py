"""The number of elements that one thread computes.

    bf16[6,512,4096]   12582912 elements fill the chip   4: two accesses of 8 bytes per thread instead of eight of 2
    f32[20]            20 elements do not                1: more threads are faster than wider accesses
    s4[7]              two elements share a byte         2: one thread writes all of a byte
    f32[16777216]      on b200                           8: its accesses are up to 32 bytes wide

Powers of two; a count that does not divide is masked by the loop's bounds check. Fusions that repeat much work per element are not
unrolled. Source: docs/reference/2 2.0.4 "ComputeLoopFusionConfig".
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import TupleType

from xla_emitters.device import Device
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.shape_ops import TransposeOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.dialects.hlo.windows import WindowAttr
from xla_emitters.graph.transposes import normalized
from xla_emitters.graph.view import FusionView

UNROLL = 4
WIDEST_UNROLL = 32
"""XLA's flag xla_gpu_experimental_max_unroll_factor."""
ACCESS_BITS = 256
"""The widest access of Blackwell in bits, with CUDA 12.9 or newer."""


def elements_per_thread(view: FusionView, device: Device, elements: int | None = None) -> int:
    """Elements that one thread computes: 1, 2, 4 ... up to 32.

    elements  that the grid covers; None: those of the first result
    """
    elements, unroll = view.elements if elements is None else elements, 1
    if elements >= device.threads_max and may_unroll(view):
        unroll = math.gcd(elements, _largest_unroll(view, device))
    # Two threads must never write the same byte.
    return max(unroll, -(-8 // view.smallest_output_bits))


def unroll_reason(view: FusionView, device: Device) -> str:
    """The reason for the result of `elements_per_thread`, as text."""
    if elements_per_thread(view, device) > 1 and view.elements < device.threads_max:
        return f"elements of {view.smallest_output_bits} bits share bytes, and a thread writes whole bytes"
    if view.elements < device.threads_max:
        return f"{view.elements} elements leave some of the {device.threads_max} threads of {device.name} idle"
    if heavy := next(filter(_is_heavy, view.instructions), None):
        return f"'{heavy.opcode}' (%{heavy.instruction_name.data}) is too much code to repeat in one thread"
    return f"{view.elements} elements fill the {device.threads_max} threads of {device.name}"


def may_unroll(view: FusionView) -> bool:
    """Whether several copies of the fusion's code per thread are cheap: no long loop and no long chain of branches per element."""
    return not any(map(_is_heavy, view.instructions))


def _is_heavy(op: HloOp) -> bool:
    match op.opcode:
        case "sort" | "dot":
            return True
        case "concatenate":
            return len(op.operands) > 10
        case "reduce":
            return isinstance(op.result.type, TupleType)
        case "reduce-window":
            return isinstance(op.result.type, TupleType) or _window_elements(op) > 8
        case _:
            return False


def _window_elements(op: HloOp) -> int:
    window = op.properties["window"]
    assert isinstance(window, WindowAttr)
    return math.prod(dim.size for dim in window.data.dims)


def _largest_unroll(view: FusionView, device: Device) -> int:
    major, _ = device.compute_capability
    is_narrow = view.smallest_output_bits < ACCESS_BITS // 4
    if major != 10 or len(view.result_types) > 1 or not is_narrow or any(view.with_opcode("reduce", "scatter")):
        return UNROLL
    types = [p.result.type for p in view.parameters if is_array(p.result.type)]
    widest = max(8, *(element_of(array_type).bits for array_type in (*types, *view.result_types)))
    unroll = min(WIDEST_UNROLL, 1 << (ACCESS_BITS // widest).bit_length() - 1)
    if any(view.with_opcode("pad")):
        unroll = min(unroll, 8)
    while unroll > 4 and any(_minor_dim_moved_together(op) < unroll for op in view.with_opcode("transpose")):
        unroll //= 2
    return max(unroll, 8)


def _minor_dim_moved_together(transpose: HloOp) -> int:
    """Elements over the fastest dimensions of a transpose's result that stay neighbours: size-1 dims dropped, runs merged."""
    assert isinstance(transpose, TransposeOp)
    dims, _ = normalized(dims_of(transpose.result), integers(transpose.dimensions))
    return dims[-1] if dims else 1
