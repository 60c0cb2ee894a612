"""Gives buffer ops without a device one: that of the buffers that they write.

    lmhlo.copy %a -> %o          : ... -> memref<?xf32, "gpu">      ->      lmhlo.copy %a -> %o {disc.device = "gpu"}
    lmhlo.shape_assertion %p, %n : (memref<i1, "cpu">, ...)         ->      ... {disc.device = "cpu"}

Legalising adds copies, and constants for values without a place. An op that writes no buffer gets the device of its operands; without
buffers, that of the nearest op of the block that has one, earlier ones first. A copy between memories runs where it writes. An op
with a device that writes into the memory of another one is an error.
Source: seed document, "PlacementFixerPass"; docs/reference/4 1.3.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from xla_emitters.dialects.hlo.placement import DEVICE, GPU, devices_of
from xla_emitters.dialects.lmhlo import BufferOp, space_of
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscPlacementFixerPass(KernelPass):
    name = "disc-placement-fixer"

    def apply_to(self, op: ModuleOp) -> None:
        for buffer_op in op.walk():
            if not isinstance(buffer_op, BufferOp):
                continue
            said, written = device_of(buffer_op), _space(buffer_op)
            if said is None:
                buffer_op.attributes[DEVICE] = StringAttr(written or _neighbour(buffer_op) or GPU)
            elif buffer_op.outputs and written not in (None, said):
                raise self.refuse(
                    buffer_op,
                    f"'{buffer_op.name}' runs on the {said} and writes into the memory of the {written}",
                    help="a copy between the two goes through h2d or d2h",
                )


def device_of(op: Operation) -> str | None:
    """The device in the op's attribute."""
    devices = devices_of(op)
    return devices[0] if len(devices) == 1 else None


def _space(op: BufferOp) -> str | None:
    """The memory that the op writes, else the one that it reads."""
    spaces = (space_of(value.type) for value in (*op.outputs, *op.inputs))
    return next((space for space in spaces if space is not None), None)


def _neighbour(op: Operation) -> str | None:
    """The device of the nearest op of the block, ops before it first."""
    return next((device for other in _around(op) if (device := device_of(other)) is not None), None)


def _around(op: Operation) -> Iterator[Operation]:
    other = op.prev_op
    while other is not None:
        yield other
        other = other.prev_op
    other = op.next_op
    while other is not None:
        yield other
        other = other.next_op
