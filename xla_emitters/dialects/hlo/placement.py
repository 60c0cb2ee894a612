"""Host and device: the attribute for the place where an op runs, and the copies between the two memories.

    %n = hlo.get_dimension_size %x {disc.device = "cpu", ...} : tensor<i32>
    %h = hlo.d2h %y {disc.device = "cpu", name = "h"} : tensor<4xi32>          device to host
    %t = hlo.tuple %n, %y {disc.device = ["cpu", "gpu"], ...}                  one entry for each array of a tuple

Both copies are the identity on values. `disc-placer` writes the attribute on every op of a program. Neither is in HLO text.
Source: seed document, "DhloPlacer".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.hlo.base import Call, HloOp
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.op_definition import op_definition

DEVICE = "disc.device"
HOST, GPU = "cpu", "gpu"


class TransferOp(HloOp):
    """The base of the two copies."""

    OPERANDS: ClassVar = range(1, 2)
    MOVED: ClassVar = slice(0, 1)

    def verify_(self) -> None:
        self.expect_type(self.operands[0].type, "the operand is")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [s.axes(0)]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return operands[0]


@op_definition
class H2dOp(TransferOp):
    """Copies an array from the host's memory to the device's."""

    name = "hlo.h2d"


@op_definition
class D2hOp(TransferOp):
    """Copies an array from the device's memory to the host's."""

    name = "hlo.d2h"


OPS: tuple[type[HloOp], ...] = (H2dOp, D2hOp)


def devices_of(op: Operation) -> tuple[str, ...]:
    """The place of each array of the op's result; () without the attribute."""
    said: Attribute | None = op.attributes.get(DEVICE)
    if isinstance(said, StringAttr):
        return (said.data,)
    return tuple(one.data for one in said) if isa(said, ArrayAttr[StringAttr]) else ()


def is_on_host(op: Operation) -> bool:
    """Whether the attribute places the op on the host."""
    return HOST in devices_of(op)
