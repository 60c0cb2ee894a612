"""The `gpu` dialect: xDSL's, with ops that it lacks and with MLIR's syntax.

    %r, %valid = gpu.shuffle xor %value, %offset, %width : f32      the value of the lane `lane xor offset`, and whether there is one
    %s = gpu.subgroup_reduce add %value cluster(size = 4) : (f32) -> f32
    gpu.printf "%d\n", %i : i32

Modules, functions and launches in `gpu_functions.py`.
Source: MLIR 22, gpu dialect.
"""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects import gpu as upstream
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IndexTypeConstr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i1,
    i32,
)
from xdsl.dialects.gpu import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.dialects.gpu import DimensionAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    eq,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from xla_emitters.dialects.completion import completed, completed_by, dialect_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.gpu_functions import FuncOp as FuncOp
from xla_emitters.dialects.mlir.gpu_functions import LaunchOp as LaunchOp
from xla_emitters.dialects.mlir.gpu_functions import ModuleOp as ModuleOp
from xla_emitters.dialects.mlir.gpu_functions import ReturnOp as ReturnOp
from xla_emitters.dialects.mlir.gpu_functions import TerminatorOp as TerminatorOp
from xla_emitters.dialects.mlir.llvm.metadata import word_attribute
from xla_emitters.dialects.mlir.op_rows import op_of_family, op_of_row
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp

_UPPER_BOUND = "(`upper_bound` $upper_bound^)? attr-dict"
# The value is always below the bound.
_BOUND: dict[str, Any] = {"upper_bound": opt_prop_def(IntegerAttr.constr(type=IndexTypeConstr))}
_OF_THREAD = _BOUND | {"assembly_format": _UPPER_BOUND}
_IN_DIMENSION = _BOUND | {"assembly_format": f"$dimension {_UPPER_BOUND}"}
_OF_SUBGROUP = _BOUND | {"assembly_format": f"{_UPPER_BOUND} `:` type($result)"}


@completed
class ThreadIdOp(upstream.ThreadIdOp, QuickOp):
    """`gpu.thread_id x upper_bound 128`"""

    upper_bound = _BOUND["upper_bound"]
    assembly_format = _IN_DIMENSION["assembly_format"]


@completed
class BarrierOp(upstream.BarrierOp, QuickOp):
    """`gpu.barrier`"""

    assembly_format = "attr-dict"


BlockIdOp = completed_by(upstream.BlockIdOp, **_IN_DIMENSION)
# What no pass builds.
BlockDimOp = completed_by(upstream.BlockDimOp, **_IN_DIMENSION)
GridDimOp = completed_by(upstream.GridDimOp, **_IN_DIMENSION)
GlobalIdOp = completed_by(upstream.GlobalIdOp, **_IN_DIMENSION)
NumSubgroupsOp = completed_by(upstream.NumSubgroupsOp, **_OF_SUBGROUP)
SubgroupIdOp = completed_by(upstream.SubgroupIdOp, **_OF_SUBGROUP)
SubgroupSizeOp = completed_by(upstream.SubgroupSizeOp, **_OF_SUBGROUP)
LaneIdOp = completed_by(upstream.LaneIdOp, **_OF_THREAD)


class ClusterDimensionOp(PureOp):
    """`gpu.cluster_id x upper_bound 4`: an id or size of a cluster of blocks."""

    dimension = prop_def(DimensionAttr)
    upper_bound = opt_prop_def(IntegerAttr.constr(type=IndexTypeConstr))
    result = result_def(IndexType())

    assembly_format = f"$dimension {_UPPER_BOUND}"

    def __init__(self, dimension: DimensionAttr):
        super().__init__(properties={"dimension": dimension}, result_types=[IndexType()])


RANK_SHIFTS = {32: 24, 64: 40}
"""In a cluster: the lowest bit of a block's rank in an address of shared memory of so many bits. PTX does not define it, but CUTLASS
clears bit 24 (`Sm100MmaPeerBitMask`) for the first block of a pair."""


def ranks_of(cluster: int) -> int:
    """How many ranks there is room for in an address: a power of two."""
    return 1 << (cluster - 1).bit_length()


MOST_BLOCKS = 16
"""Largest size of a cluster. Source: PTX ISA 8.8, 9.7.9.22 "mapa"."""

ClusterIdOp = op_of_family(ClusterDimensionOp, "gpu.cluster_id")
ClusterDimOp = op_of_family(ClusterDimensionOp, "gpu.cluster_dim")
ClusterBlockIdOp = op_of_family(ClusterDimensionOp, "gpu.cluster_block_id")
ClusterDimBlocksOp = op_of_family(ClusterDimensionOp, "gpu.cluster_dim_blocks")

# ---- attributes -------------------------------------------------------------------------------------------------------------------------


AddressSpaceAttr = word_attribute("gpu.address_space", "global", "workgroup", "private")
"""`#gpu.address_space<workgroup>`: memory of all, of a block, or of a thread."""

MemorySpaceAttr = word_attribute("gpu.memory_space", "global", "workgroup", "private")

_MAPPED_TO = ("x", "y", "z", *(f"linear_dim_{number}" for number in range(10)))

MAPPINGS = {
    name: word_attribute(f"gpu.{name}", *_MAPPED_TO) for name in ("block", "warpgroup", "warp", "thread", "lane")
}
"""`#gpu.block<x>` ...: the level of the GPU that runs the iterations of an `scf.forall`."""


_FLOAT_KINDS = ("minnumf", "maxnumf", "minimumf", "maximumf")
_ANY_KINDS = ("add", "mul")

ReductionAttr = word_attribute(
    "gpu.all_reduce_op",
    *(*_ANY_KINDS, "minui", "minsi", "maxui", "maxsi", "and", "or", "xor", *_FLOAT_KINDS),
    is_spaced=True,
)
"""`#gpu<all_reduce_op add>`"""
AllReduceOpAttr = ReductionAttr  # xDSL's name for its own class


# ---- exchange ---------------------------------------------------------------------------------------------------------------------------


ShuffleModeAttr = word_attribute("gpu.shuffle_mode", "xor", "up", "down", "idx", is_spaced=True)


@op_definition
class ShuffleOp(QuickOp):
    """See the file's head. Not Pure: all lanes of the warp must execute it together."""

    name = "gpu.shuffle"

    T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(T)
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(ShuffleModeAttr)
    shuffle_result = result_def(T)
    valid = result_def(i1)

    assembly_format = "$mode $value `,` $offset `,` $width attr-dict `:` type($value)"

    def __init__(
        self,
        mode: str,
        value: SSAValue | Operation,
        offset: SSAValue | Operation,
        width: SSAValue | Operation,
    ):
        """`mode`: a word of ShuffleModeAttr."""
        super().__init__(
            operands=[value, offset, width],
            properties={"mode": ShuffleModeAttr.of(mode)},
            result_types=[SSAValue.get(value).type, i1],
        )


BroadcastTypeAttr = word_attribute("gpu.broadcast", "first_active_lane", "specific_lane", is_spaced=True)


def _verify_rotation(op: Any) -> None:
    offset, width = op.offset.value.data, op.width.value.data
    if width < 1 or width & (width - 1) or not 0 <= offset < width:
        raise VerifyException(
            f"rotates by {offset} in groups of {width}; the width must be a power of two, and the offset below it"
        )


def _verify_broadcast(op: Any) -> None:
    which = op.broadcast_type.word.data
    if (op.lane is None) != (which == "first_active_lane"):
        raise VerifyException(f"broadcasts {which}, but has {len(op.operands) - 1} operands for the lane")


_T = VarConstraint("T", AnyAttr())
_NUMBER = prop_def(IntegerAttr.constr(type=eq(i32)))

# The value of the lane that is `offset` further on, cyclically in groups of `width` lanes.
RotateOp = op_of_row(
    "gpu.rotate",
    "$value `,` $offset `,` $width attr-dict `:` type($value)",
    properties={"offset": _NUMBER, "width": _NUMBER},
    verify=_verify_rotation,
    value=operand_def(_T),
    rotate_result=result_def(_T),
    valid=result_def(i1),
)

# The value of lane `lane`, the same number in all lanes, or of the first active lane.
SubgroupBroadcastOp = op_of_row(
    "gpu.subgroup_broadcast",
    "$src `,` $broadcast_type ($lane^)? attr-dict `:` type($src)",
    properties={"broadcast_type": prop_def(BroadcastTypeAttr)},
    verify=_verify_broadcast,
    src=operand_def(_T),
    lane=opt_operand_def(i32),
    result=result_def(_T),
)


# ---- reductions -------------------------------------------------------------------------------------------------------------------------


def _verify_kind(kind: str, value_type: Attribute) -> None:
    is_float = isinstance(get_element_type_or_self(value_type), AnyFloat)
    if kind not in _ANY_KINDS and (kind in _FLOAT_KINDS) != is_float:
        raise VerifyException(f"'{kind}' is not for {value_type}")


@irdl_custom_directive
class ReductionKind(CustomDirective):
    """A word for how two values are combined, or nothing."""

    kind: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        start = parser.pos
        if (word := parser.parse_optional_identifier()) is None:
            return
        if word not in ReductionAttr.WORDS:
            parser.raise_error(f"expected one of: {', '.join(ReductionAttr.WORDS)}", start, start + len(word))
        self.kind.set(state, ReductionAttr.of(word))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if isinstance(kind := self.kind.get(op), ReductionAttr):
            state.print_whitespace(printer)
            printer.print_string(kind.word.data)


@irdl_custom_directive
class LaneClusters(CustomDirective):
    """`cluster(size = 4, stride = 2)`, or nothing; a stride of 1 is not written."""

    size: AttributeVariable
    stride: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_keyword("cluster") is None:
            return
        with parser.in_parens():
            self.size.set(state, _number_named(parser, "size"))
            if parser.parse_optional_punctuation(",") is not None:
                self.stride.set(state, _number_named(parser, "stride"))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        size, stride = self.size.get(op), self.stride.get(op)
        if isa(size, IntegerAttr) and isa(stride, IntegerAttr):
            rest = "" if stride.value.data == 1 else f", stride = {stride.value.data}"
            state.print_whitespace(printer)
            printer.print_string(f"cluster(size = {size.value.data}{rest})")


def _number_named(parser: Parser, word: str) -> IntegerAttr:
    parser.parse_keyword(word)
    parser.parse_punctuation("=")
    return IntegerAttr(parser.parse_integer(allow_boolean=False), 32)


def _verify_subgroup_reduce(op: Any) -> None:
    _verify_kind(op.op.word.data, op.value.type)
    size = None if op.cluster_size is None else op.cluster_size.value.data
    stride = op.cluster_stride.value.data
    for what, number in (("size", 1 if size is None else size), ("stride", stride)):
        if number < 1 or number & (number - 1):
            raise VerifyException(f"the cluster's {what} is {number}; it must be a power of two")
    if size is None and stride != 1:
        raise VerifyException(f"has a stride of {stride}, but no cluster size")


def _verify_all_reduce(op: Any) -> None:
    if (op.op is None) != bool(op.body.blocks):
        raise VerifyException("has either a word or a body that says how two values are combined")
    if op.op is not None:
        _verify_kind(op.op.word.data, op.value.type)
    elif op.body.blocks[0].arg_types != (op.value.type,) * 2:
        types = ", ".join(map(str, op.body.blocks[0].arg_types))
        raise VerifyException(f"combines two {op.value.type}, but its body takes ({types})")


# Over the lanes of the warp, or of each cluster of `size` lanes that are `stride` apart.
SubgroupReduceOp = op_of_row(
    "gpu.subgroup_reduce",
    "custom<ReductionKind>($op) $value (`uniform` $uniform^)? custom<LaneClusters>($cluster_size, $cluster_stride) attr-dict"
    " `:` functional-type($value, $result)",
    properties={
        "op": prop_def(ReductionAttr),
        "uniform": opt_prop_def(UnitAttr),
        "cluster_size": opt_prop_def(IntegerAttr),
        "cluster_stride": prop_def(IntegerAttr, default_value=IntegerAttr(1, 32)),
    },
    directives=(ReductionKind, LaneClusters),
    verify=_verify_subgroup_reduce,
    value=operand_def(_T),
    result=result_def(_T),
)

# Over the block's threads, by its body if there is no word.
AllReduceOp = op_of_row(
    "gpu.all_reduce",
    "custom<ReductionKind>($op) $value (`uniform` $uniform^)? $body attr-dict `:` functional-type($value, $result)",
    properties={"op": opt_prop_def(ReductionAttr), "uniform": opt_prop_def(UnitAttr)},
    directives=(ReductionKind,),
    traits=(IsolatedFromAbove(),),
    verify=_verify_all_reduce,
    value=operand_def(_T),
    result=result_def(_T),
    body=region_def(),
)


def _verify_yield(op: Any) -> None:
    parent = op.parent_op()
    if parent is not None and op.values.types != parent.result_types:
        found, wanted = (", ".join(map(str, types)) for types in (op.values.types, parent.result_types))
        raise VerifyException(f"yields ({found}), but {parent.name} gives ({wanted})")


# The combination of two values, as a reduction's body computes it.
YieldOp = op_of_row(
    "gpu.yield",
    "attr-dict ($values^ `:` type($values))?",
    traits=(IsTerminator(),),
    verify=_verify_yield,
    values=var_operand_def(),
)

# ---- others -----------------------------------------------------------------------------------------------------------------------------


PrintfOp = op_of_row(
    "gpu.printf",
    "$format attr-dict (`,` $args^ `:` type($args))?",
    properties={"format": prop_def(StringAttr)},
    args=var_operand_def(),
)

# Dynamic shared memory, of the launch's size: memref<?xi8, #gpu.address_space<workgroup>>.
DynamicSharedMemoryOp = op_of_row(
    "gpu.dynamic_shared_memory",
    "attr-dict `:` type($result_memref)",
    traits=(Pure(),),
    result_memref=result_def(MemRefType),
)


GPU = dialect_of(  # pyright: ignore[reportConstantRedefinition]  # xDSL's has that name
    upstream.GPU,
    attributes=MAPPINGS.values(),
    names=globals(),
)
