"""The `gpu` dialect: xDSL's, with `shuffle`, and with MLIR's syntax for ids and barriers (`upstream_patches.py`).

    %r, %valid = gpu.shuffle xor %value, %offset, %width : f32      the value of the lane `lane xor offset`, and whether there is one

Source: MLIR 22, gpu dialect.
"""

from __future__ import annotations

from enum import auto

from xdsl.dialects import gpu as upstream
from xdsl.dialects.builtin import i1, i32
from xdsl.dialects.gpu import (
    AllocOp,
    AllReduceOp,
    AllReduceOpAttr,
    AsyncTokenType,
    BarrierOp,
    BlockDimOp,
    BlockIdOp,
    DeallocOp,
    DimensionAttr,
    DimensionEnum,
    FuncOp,
    GlobalIdOp,
    GridDimOp,
    HostRegisterOp,
    HostUnregisterOp,
    LaneIdOp,
    LaunchFuncOp,
    LaunchOp,
    LoopDimMapAttr,
    MemcpyOp,
    ModuleOp,
    NumSubgroupsOp,
    ProcessorAttr,
    ReturnOp,
    SetDefaultDeviceOp,
    SubgroupIdOp,
    SubgroupSizeOp,
    TerminatorOp,
    ThreadIdOp,
    WaitOp,
    YieldOp,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Dialect, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from xla_emitters.dialects import upstream_patches as upstream_patches


class ShuffleMode(StrEnum):
    Xor = auto()
    Up = auto()
    Down = auto()
    Idx = auto()


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    name = "gpu.shuffle_mode"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """See the file's head. Not Pure: all lanes of the warp must come here together."""

    name = "gpu.shuffle"

    value = operand_def()
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(ShuffleModeAttr)
    shuffle_result = result_def()
    valid = result_def(i1)

    def __init__(
        self,
        mode: ShuffleMode,
        value: SSAValue | Operation,
        offset: SSAValue | Operation,
        width: SSAValue | Operation,
    ):
        super().__init__(
            operands=[value, offset, width],
            properties={"mode": ShuffleModeAttr(mode)},
            result_types=[SSAValue.get(value).type, i1],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        mode = parser.parse_str_enum(ShuffleMode)
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offset = parser.parse_operand(i32)
        parser.parse_punctuation(",")
        width = parser.parse_operand(i32)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = ShuffleOp(mode, parser.resolve_operand(value, parser.parse_type()), offset, width)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.mode.data} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)

    def verify_(self) -> None:
        if self.value.type != self.shuffle_result.type:
            raise VerifyException(f"shuffles {self.value.type} into {self.shuffle_result.type}")


GPU = Dialect("gpu", [*upstream.GPU.operations, ShuffleOp], [*upstream.GPU.attributes, ShuffleModeAttr])

__all__ = [
    "GPU",
    "AllReduceOp",
    "AllReduceOpAttr",
    "AllocOp",
    "AsyncTokenType",
    "BarrierOp",
    "BlockDimOp",
    "BlockIdOp",
    "DeallocOp",
    "DimensionAttr",
    "DimensionEnum",
    "FuncOp",
    "GlobalIdOp",
    "GridDimOp",
    "HostRegisterOp",
    "HostUnregisterOp",
    "LaneIdOp",
    "LaunchFuncOp",
    "LaunchOp",
    "LoopDimMapAttr",
    "MemcpyOp",
    "ModuleOp",
    "NumSubgroupsOp",
    "ProcessorAttr",
    "ReturnOp",
    "SetDefaultDeviceOp",
    "ShuffleMode",
    "ShuffleModeAttr",
    "ShuffleOp",
    "SubgroupIdOp",
    "SubgroupSizeOp",
    "TerminatorOp",
    "ThreadIdOp",
    "WaitOp",
    "YieldOp",
]
