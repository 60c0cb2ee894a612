"""The `nvvm` dialect: what NVIDIA's hardware has and LLVM does not.

    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32     a special register; its values are in [0, 128)
    nvvm.barrier0                                               all threads of the block come here
    %r = nvvm.shfl.sync bfly %mask, %value, %offset, %clamp : f32 -> f32
    nvvm.griddepcontrol wait                                    read from today's XLA, never emitted here
    #nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["libdevice.10.bc"]>

Source: MLIR 22, nvvm dialect, as `mlir-opt` reads and prints it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import auto
from typing import ClassVar

from xdsl.dialects.builtin import I32, ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i1, i32
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from xla_emitters.dialects.llvm import ConstantRangeAttr, LLVMStructType
from xla_emitters.dialects.op_family import op_of_family

# ---- special registers ------------------------------------------------------------------------------------------------------------------


class SpecialRegisterOp(IRDLOperation):
    """`nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32`: a number that the hardware gives each thread."""

    range = opt_prop_def(ConstantRangeAttr)
    res = result_def(I32)

    traits = traits_def(Pure())

    def __init__(self, bounds: tuple[int, int] | None = None):
        """`bounds` are the least value and the one after the greatest."""
        super().__init__(
            properties={"range": None if bounds is None else ConstantRangeAttr.of(32, *bounds)}, result_types=[i32]
        )

    @classmethod
    def parse(cls, parser: Parser):
        has_range = parser.parse_optional_keyword("range") is not None
        bounds = ConstantRangeAttr.parse_range(parser) if has_range else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        if parser.parse_type() != i32:
            parser.raise_error("a special register is i32", start, parser.pos)
        op = cls()
        if bounds is not None:
            op.properties["range"] = bounds
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        if self.range is not None:
            printer.print_string(" range ")
            self.range.print_parameters(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)

    def verify_(self) -> None:
        if self.range is not None and self.range.lower.type != i32:
            raise VerifyException(f"its range is of {self.range.lower.type}, but its value i32")


def _register(name: str) -> type[SpecialRegisterOp]:
    """The op that reads the register `name`."""
    return op_of_family(SpecialRegisterOp, f"nvvm.read.ptx.sreg.{name}")


THREAD_ID = {dim: _register(f"tid.{dim}") for dim in "xyz"}
BLOCK_ID = {dim: _register(f"ctaid.{dim}") for dim in "xyz"}
BLOCK_DIM = {dim: _register(f"ntid.{dim}") for dim in "xyz"}
GRID_DIM = {dim: _register(f"nctaid.{dim}") for dim in "xyz"}
LaneIdOp = _register("laneid")
WarpIdOp = _register("warpid")
WarpSizeOp = _register("warpsize")
"""Dimension -> the op that reads the thread's or block's number, or how many there are; and the lane's and warp's numbers."""


# ---- waiting and exchanging -------------------------------------------------------------------------------------------------------------


@irdl_op_definition
class Barrier0Op(IRDLOperation):
    """`nvvm.barrier0`"""

    name = "nvvm.barrier0"

    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """`nvvm.barrier id = %id number_of_threads = %n`: barrier 0 and all threads unless said otherwise.

    Printed in the generic form: where a location follows the custom one, mlir-opt 22 takes it for the op's optional reduction.
    """

    name = "nvvm.barrier"

    barrier_id = opt_operand_def(I32)
    number_of_threads = opt_operand_def(I32)
    reduction_predicate = opt_operand_def(I32)
    res = opt_result_def(I32)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, barrier_id: SSAValue | Operation | None = None, threads: SSAValue | Operation | None = None):
        super().__init__(operands=[barrier_id, threads, None], result_types=[None])

    @classmethod
    def parse(cls, parser: Parser) -> BarrierOp:
        found: dict[str, SSAValue] = {}
        for word in ("id", "number_of_threads"):
            if parser.parse_optional_keyword(word) is not None:
                parser.parse_punctuation("=")
                found[word] = parser.parse_operand(i32)
        op = BarrierOp(found.get("id"), found.get("number_of_threads"))
        op.attributes |= parser.parse_optional_attr_dict()
        return op


class ShflKind(StrEnum):
    BFLY = auto()
    UP = auto()
    DOWN = auto()
    IDX = auto()


@irdl_attr_definition
class ShflKindAttr(EnumAttribute[ShflKind], SpacedOpaqueSyntaxAttribute):
    name = "nvvm.shfl_kind"


@irdl_op_definition
class ShflOp(IRDLOperation):
    """`nvvm.shfl.sync bfly %mask, %value, %offset, %clamp : f32 -> f32`: the value of another lane of the warp.

    With `return_value_and_is_valid` the result is a struct of the value and whether there was such a lane.
    """

    name = "nvvm.shfl.sync"

    thread_mask = operand_def(I32)
    val = operand_def()
    offset = operand_def(I32)
    mask_and_clamp = operand_def(I32)
    kind = prop_def(ShflKindAttr)
    return_value_and_is_valid = opt_prop_def(UnitAttr)
    res = result_def()

    def __init__(
        self,
        kind: ShflKind,
        thread_mask: SSAValue | Operation,
        value: SSAValue | Operation,
        offset: SSAValue | Operation,
        mask_and_clamp: SSAValue | Operation,
        with_validity: bool = False,
    ):
        type = SSAValue.get(value).type
        super().__init__(
            operands=[thread_mask, value, offset, mask_and_clamp],
            properties={
                "kind": ShflKindAttr(kind),
                "return_value_and_is_valid": UnitAttr() if with_validity else None,
            },
            result_types=[LLVMStructType.from_type_list([type, i1]) if with_validity else type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ShflOp:
        kind = parser.parse_str_enum(ShflKind)
        mask = parser.parse_operand(i32)
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offset = parser.parse_operand(i32)
        parser.parse_punctuation(",")
        clamp = parser.parse_operand(i32)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        resolved = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation("->")
        start = parser.pos
        result = parser.parse_type()
        with_validity = attributes.pop("return_value_and_is_valid", None) is not None
        op = ShflOp(kind, mask, resolved, offset, clamp, with_validity)
        if op.res.type != result:
            parser.raise_error(f"the result is {op.res.type}", start, parser.pos)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        flag = self.return_value_and_is_valid
        printer.print_op_attributes(({"return_value_and_is_valid": flag} if flag else {}) | self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.val.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.res.type)


class GridDepActionKind(StrEnum):
    Wait = "wait"
    LaunchDependents = "launch_dependents"


@irdl_attr_definition
class GridDepActionAttr(EnumAttribute[GridDepActionKind], SpacedOpaqueSyntaxAttribute):
    name = "nvvm.grid_dep_action"


@irdl_op_definition
class GriddepcontrolOp(IRDLOperation):
    """`nvvm.griddepcontrol wait`: waits for the kernels before this one, or lets those after it begin."""

    name = "nvvm.griddepcontrol"

    kind = prop_def(GridDepActionAttr)

    def __init__(self, kind: GridDepActionKind):
        super().__init__(properties={"kind": GridDepActionAttr(kind)})

    @classmethod
    def parse(cls, parser: Parser) -> GriddepcontrolOp:
        op = GriddepcontrolOp(parser.parse_str_enum(GridDepActionKind))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data}")
        printer.print_op_attributes(self.attributes)


# ---- target -----------------------------------------------------------------------------------------------------------------------------


@irdl_attr_definition
class TargetAttr(ParametrizedAttribute):
    """`#nvvm.target<chip = "sm_90">`: what a gpu.module is compiled for. The parameters, by MLIR's names, are kept as they are written."""

    name = "nvvm.target"

    parameters_by_name: DictionaryAttr

    NAMES: ClassVar = ("O", "triple", "chip", "features", "flags", "link", "verifyTarget")

    @classmethod
    def of(cls, *, chip: str, features: str = "", opt_level: int | None = None, link: Sequence[str] = ()) -> TargetAttr:
        """A target with the given parameters, the others at MLIR's defaults (O = 2, sm_75, +ptx60)."""
        found: dict[str, Attribute] = {}
        if opt_level is not None:
            found["O"] = IntegerAttr(opt_level, 32)
        found["chip"] = StringAttr(chip)
        if features:
            found["features"] = StringAttr(features)
        if link:
            found["link"] = ArrayAttr([StringAttr(path) for path in link])
        return cls(DictionaryAttr(found))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        found: dict[str, Attribute] = {}

        def parameter() -> None:
            start = parser.pos
            name = parser.parse_identifier()
            if name not in cls.NAMES:
                parser.raise_error(f"a target has no '{name}'; it has {', '.join(cls.NAMES)}", start, parser.pos)
            parser.parse_punctuation("=")
            if name == "O":
                found[name] = IntegerAttr(parser.parse_integer(), 32)
            else:
                found[name] = parser.parse_attribute()

        parser.parse_optional_comma_separated_list(parser.Delimiter.ANGLE, parameter)
        return [DictionaryAttr(found)]

    def print_parameters(self, printer: Printer) -> None:
        parameters: Mapping[str, Attribute] = self.parameters_by_name.data
        if not parameters:
            return

        def parameter(item: tuple[str, Attribute]) -> None:
            name, value = item
            printer.print_string(f"{name} = ")
            if isinstance(value, IntegerAttr):
                printer.print_string(str(value.value.data))
            else:
                printer.print_attribute(value)

        with printer.in_angle_brackets():
            printer.print_list(parameters.items(), parameter)


NVVM = Dialect(
    "nvvm",
    [
        *(op for family in (THREAD_ID, BLOCK_ID, BLOCK_DIM, GRID_DIM) for op in family.values()),
        *(LaneIdOp, WarpIdOp, WarpSizeOp),
        *(Barrier0Op, BarrierOp, ShflOp, GriddepcontrolOp),
    ],
    [ShflKindAttr, GridDepActionAttr, TargetAttr],
)
