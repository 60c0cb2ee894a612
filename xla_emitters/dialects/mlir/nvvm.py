"""The `nvvm` dialect: ops of NVIDIA's hardware that LLVM's dialect does not have.

    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32     a special register; its values are in [0, 128)
    nvvm.barrier0                                               a barrier for all threads of the block
    %r = nvvm.shfl.sync bfly %mask, %value, %offset, %clamp : f32 -> f32
    %s = nvvm.redux.sync add %value, %mask : i32 -> i32          the sum over the lanes of the mask
    nvvm.griddepcontrol wait                                    read from today's XLA, never emitted here
    #nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["libdevice.10.bc"]>

Fences, memory barriers and asynchronous copies are in `nvvm_async.py`.
Source: MLIR 22, nvvm dialect, as `mlir-opt` reads and prints it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    I1,
    I32,
    BoolAttr,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_attr_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.completion import classes_among
from xla_emitters.dialects.mlir import nvvm_async
from xla_emitters.dialects.mlir.llvm import ConstantRangeAttr, LLVMStructType
from xla_emitters.dialects.mlir.llvm.metadata import ATTRIBUTE, NUMBER, NamedParametersAttr, word_attribute
from xla_emitters.dialects.mlir.op_rows import op_of_family, op_of_row
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp

# ---- special registers ------------------------------------------------------------------------------------------------------------------


class SpecialRegisterOp(PureOp):
    """`nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32`: a value that the hardware provides to each thread."""

    range = opt_prop_def(ConstantRangeAttr)
    res = result_def(I32)

    assembly_format = "(`range` $range^)? attr-dict `:` type($res)"

    def __init__(self, bounds: tuple[int, int] | None = None):
        """`bounds`: the smallest value, and the largest plus one."""
        super().__init__(
            properties={"range": None if bounds is None else ConstantRangeAttr.of(32, *bounds)}, result_types=[i32]
        )

    def verify_(self) -> None:
        if self.range is not None and self.range.lower.type != i32:
            raise VerifyException(f"its range is of {self.range.lower.type}, but its value is i32")


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
"""Dimension -> the op that reads the thread's or block's number, or their count; and the numbers of lane and warp."""

LANE_MASKS = {order: _register(f"lanemask.{order}") for order in ("eq", "le", "lt", "ge", "gt")}
"""Comparison -> the op that reads the mask of the lanes whose numbers compare so to the thread's."""

_CLUSTERS = ("cluster.ctaid", "cluster.nctaid", "clusterid", "nclusterid")
OTHER_REGISTERS = {
    name: _register(name)
    for name in (
        *(f"{kind}.{dim}" for kind in _CLUSTERS for dim in "xyz"),
        *("cluster.ctarank", "cluster.nctarank", "nwarpid", "smid", "nsmid", "gridid"),
        *("total.smem.size", "aggr.smem.size", "dynamic.smem.size"),
        *(f"envreg{number}" for number in range(32)),
    )
}
"""Name -> the op that reads where on the GPU a thread runs."""


CLOCKS = {
    name: op_of_row(f"nvvm.read.ptx.sreg.{name}", "attr-dict `:` type($res)", res=result_def(IntegerType))
    for name in ("clock", "clock64", "globaltimer", "globaltimer.lo")
}
"""Name -> the op that reads a time. Not Pure: each read returns another value."""


# ---- waiting and exchanging -------------------------------------------------------------------------------------------------------------


Barrier0Op = op_of_row("nvvm.barrier0", "attr-dict")

BarrierReductionAttr = word_attribute("nvvm.reduction", "popc", "and", "or")
"""`#nvvm.reduction<popc>`"""


@op_definition
class BarrierOp(QuickOp):
    """`nvvm.barrier id = %id number_of_threads = %n`: barrier 0 and all threads by default.

    With a reduction, `nvvm.barrier #nvvm.reduction<popc> %p -> i32`, the result is the number of threads whose `%p` is not 0,
    or whether all (`and`) or any (`or`) are not. Printed in the generic form, because mlir-opt 22 misreads a location after the custom one.
    """

    name = "nvvm.barrier"

    barrier_id = opt_operand_def(I32)
    number_of_threads = opt_operand_def(I32)
    reductionPredicate = opt_operand_def(I32)
    reductionOp = opt_prop_def(BarrierReductionAttr)
    res = opt_result_def(I32)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        barrier_id: SSAValue | Operation | None = None,
        threads: SSAValue | Operation | None = None,
        reduction: Attribute | None = None,
        predicate: SSAValue | Operation | None = None,
    ):
        """`reduction` is a BarrierReductionAttr; with it there is a predicate, and a result."""
        super().__init__(
            operands=[barrier_id, threads, predicate],
            properties={"reductionOp": reduction},
            result_types=[None if reduction is None else i32],
        )

    @classmethod
    def parse(cls, parser: Parser) -> BarrierOp:
        found: dict[str, SSAValue] = {}
        for word in ("id", "number_of_threads"):
            if parser.parse_optional_keyword(word) is not None:
                parser.parse_punctuation("=")
                found[word] = parser.parse_operand(i32)
        reduction, predicate = parser.parse_optional_attribute(), None
        if reduction is not None:
            predicate = parser.parse_operand(i32)
            parser.parse_punctuation("->")
            parser.parse_keyword("i32")
        op = BarrierOp(found.get("id"), found.get("number_of_threads"), reduction, predicate)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def verify_(self) -> None:
        if len({part is None for part in (self.reductionOp, self.reductionPredicate, self.res)}) != 1:
            raise VerifyException("a reduction needs a predicate and a result, and they need a reduction")
        if self.number_of_threads is not None and self.barrier_id is None:
            raise VerifyException("has a number of threads, but no barrier id")


ShflKindAttr = word_attribute("nvvm.shfl_kind", "bfly", "up", "down", "idx", is_spaced=True)


@op_definition
class ShflOp(QuickOp):
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

    assembly_format = (
        "$kind $thread_mask `,` $val `,` $offset `,` $mask_and_clamp attr-dict `:` type($val) `->` type($res)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        kind: str,
        thread_mask: SSAValue | Operation,
        value: SSAValue | Operation,
        offset: SSAValue | Operation,
        mask_and_clamp: SSAValue | Operation,
        with_validity: bool = False,
    ):
        """`kind`: a word of ShflKindAttr."""
        super().__init__(
            operands=[thread_mask, value, offset, mask_and_clamp],
            properties={
                "kind": ShflKindAttr.of(kind),
                "return_value_and_is_valid": UnitAttr() if with_validity else None,
            },
            result_types=[_with_validity(SSAValue.get(value).type, with_validity)],
        )

    def verify_(self) -> None:
        wanted = _with_validity(self.val.type, self.return_value_and_is_valid is not None)
        if self.res.type != wanted:
            raise VerifyException(f"gives {wanted}, not {self.res.type}")


def _with_validity(value_type: Attribute, is_asked: bool) -> Attribute:
    return LLVMStructType.from_type_list([value_type, i1]) if is_asked else value_type


# A barrier for the lanes of the mask.
SyncWarpOp = op_of_row("nvvm.bar.warp.sync", "$mask attr-dict `:` type($mask)", mask=operand_def(I32))

# Whether the thread is the elected one among the lanes of the mask, or of the warp.
ElectSyncOp = op_of_row(
    "nvvm.elect.sync",
    "($membermask^)? attr-dict `->` type($pred)",
    membermask=opt_operand_def(I32),
    pred=result_def(I1),
)


ReduxKindAttr = word_attribute(
    "nvvm.redux_kind", "add", "and", "or", "xor", "max", "min", "umax", "umin", "fmax", "fmin", is_spaced=True
)


def _verify_redux(op: Any) -> None:
    kind = op.kind.word.data
    wanted = f32 if kind in ("fmin", "fmax") else i32
    if op.val.type != wanted:
        raise VerifyException(f"'{kind}' is of {wanted}, not of {op.val.type}")


_NO = BoolAttr.from_bool(False)
_T = VarConstraint("T", AnyAttr())

# Over the lanes of the mask. Of floats only `fmin` and `fmax`; `abs`: of magnitudes; `nan`: NaN if any is.
ReduxOp = op_of_row(
    "nvvm.redux.sync",
    "$kind $val `,` $mask_and_clamp attr-dict `:` type($val) `->` type($res)",
    properties={
        "kind": prop_def(ReduxKindAttr),
        "abs": prop_def(BoolAttr, default_value=_NO),
        "nan": prop_def(BoolAttr, default_value=_NO),
    },
    verify=_verify_redux,
    val=operand_def(_T),
    mask_and_clamp=operand_def(I32),
    res=result_def(_T),
)


VoteKindAttr = word_attribute("nvvm.vote_sync_kind", "all", "any", "uni", "ballot", is_spaced=True)


def _verify_vote(op: Any) -> None:
    kind = op.kind.word.data
    wanted = i32 if kind == "ballot" else i1
    if op.res.type != wanted:
        raise VerifyException(f"'{kind}' gives {wanted}, not {op.res.type}")


# The mask of lanes where the predicate is true (`ballot`); or whether it is in all, in any, or equal in all (`uni`).
VoteOp = op_of_row(
    "nvvm.vote.sync",
    "$kind $mask `,` $pred attr-dict `->` type($res)",
    properties={"kind": prop_def(VoteKindAttr)},
    verify=_verify_vote,
    mask=operand_def(I32),
    pred=operand_def(I1),
    res=result_def(I1 | I32),
)


MatchKindAttr = word_attribute("nvvm.match_sync_kind", "any", "all", is_spaced=True)


def _verify_match(op: Any) -> None:
    if op.val.type not in (i32, i64):
        raise VerifyException(f"matches i32 or i64, not {op.val.type}")
    kind = op.kind.word.data
    wanted = LLVMStructType.from_type_list([i32, i1]) if kind == "all" else i32
    if op.res.type != wanted:
        raise VerifyException(f"'{kind}' gives {wanted}, not {op.res.type}")


# The lanes with the same value; of `all` also whether all lanes have it.
MatchOp = op_of_row(
    "nvvm.match.sync",
    "$kind $thread_mask `,` $val attr-dict `:` type($val) `->` type($res)",
    properties={"kind": prop_def(MatchKindAttr)},
    verify=_verify_match,
    thread_mask=operand_def(I32),
    val=operand_def(IntegerType),
    res=result_def(),
)

# About 1 / x; a denormal counts as 0.
RcpApproxFtzOp = op_of_row(
    "nvvm.rcp.approx.ftz.f",
    "$arg attr-dict `:` type($res)",
    traits=(Pure(),),
    arg=operand_def(f32),
    res=result_def(f32),
)


GridDepActionAttr = word_attribute("nvvm.grid_dep_action", "wait", "launch_dependents", is_spaced=True)

# Waits for the kernels before this one, or lets those after it start.
GriddepcontrolOp = op_of_row("nvvm.griddepcontrol", "$kind attr-dict", properties={"kind": prop_def(GridDepActionAttr)})


# ---- target -----------------------------------------------------------------------------------------------------------------------------


def _parse_number(parser: AttrParser) -> Attribute:
    return IntegerAttr(parser.parse_integer(), 32)


@irdl_attr_definition
class TargetAttr(NamedParametersAttr):
    """`#nvvm.target<chip = "sm_90">`: the target of a gpu.module."""

    name = "nvvm.target"

    PARAMETERS: ClassVar = {
        "O": replace(NUMBER, parse=_parse_number),
        **dict.fromkeys(("triple", "chip", "features", "flags", "link", "verifyTarget"), ATTRIBUTE),
    }
    IS_OPTIONAL: ClassVar = True


_CLASSES = vars(nvvm_async) | globals()

NVVM = Dialect(
    "nvvm",
    [
        *(op for family in (THREAD_ID, BLOCK_ID, BLOCK_DIM, GRID_DIM) for op in family.values()),
        *(*LANE_MASKS.values(), *OTHER_REGISTERS.values(), *CLOCKS.values()),
        *(*nvvm_async.CLUSTER_OPS, *nvvm_async.MBARRIER_OPS, *classes_among(_CLASSES, Operation, "nvvm")),
    ],
    classes_among(_CLASSES, Attribute, "nvvm"),
)
