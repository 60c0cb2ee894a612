"""The `nvvm` dialect's fences, barriers in memory, and copies that run beside the threads.

    nvvm.mbarrier.init %b, %count : !llvm.ptr<3>, i32              a barrier in shared memory
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.wait.group 0
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}

They are read and kept.
Source: MLIR 22, nvvm dialect; PTX ISA, "Asynchronous copies", "mbarrier".
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import I1, I32, BoolAttr, IntegerAttr, IntegerType, UnitAttr
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from xla_emitters.dialects.mlir.llvm.metadata import word_attribute
from xla_emitters.dialects.mlir.op_family import op_of_family

MemScopeAttr = word_attribute("nvvm.mem_scope", "cta", "cluster", "gpu", "sys")
"""`#nvvm.mem_scope<gpu>`: among which threads."""

ProxyKindAttr = word_attribute(
    "nvvm.proxy_kind", "alias", "async", "async.global", "async.shared", "tensormap", "generic"
)
"""`#nvvm.proxy_kind<async>`: which of the ways to memory."""

SharedSpaceAttr = word_attribute("nvvm.shared_space", "cta", "cluster")
"""`#nvvm.shared_space<cta>`: whose shared memory."""

_NO = BoolAttr.from_bool(False)
_BLOCK = MemScopeAttr.of("cta")


class BareOp(IRDLOperation):
    """`nvvm.cp.async.commit.group`: neither operands nor results."""

    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


CpAsyncCommitGroupOp = op_of_family(BareOp, "nvvm.cp.async.commit.group")
FenceMbarrierInitOp = op_of_family(BareOp, "nvvm.fence.mbarrier.init")
FenceScClusterOp = op_of_family(BareOp, "nvvm.fence.sc.cluster")
BreakpointOp = op_of_family(BareOp, "nvvm.breakpoint")

# ---- fences -----------------------------------------------------------------------------------------------------------------------------


@irdl_op_definition
class MemoryBarrierOp(IRDLOperation):
    """`nvvm.memory.barrier <gpu>`: accesses before and behind it keep their order, as seen by the threads of the scope."""

    name = "nvvm.memory.barrier"

    scope = prop_def(MemScopeAttr)

    def __init__(self, scope: str):
        super().__init__(properties={"scope": MemScopeAttr.of(scope)})

    @classmethod
    def parse(cls, parser: Parser) -> MemoryBarrierOp:
        scope = parser.parse_optional_attribute() or MemScopeAttr.new(MemScopeAttr.parse_parameters(parser))
        op = MemoryBarrierOp("cta")
        op.properties["scope"] = scope
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.scope.print_parameters(printer)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class FenceProxyOp(IRDLOperation):
    """`nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}`"""

    name = "nvvm.fence.proxy"

    kind = prop_def(ProxyKindAttr)
    space = opt_prop_def(SharedSpaceAttr)

    assembly_format = "attr-dict"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, kind: str, space: str | None = None):
        super().__init__(
            properties={
                "kind": ProxyKindAttr.of(kind),
                "space": None if space is None else SharedSpaceAttr.of(space),
            }
        )

    def verify_(self) -> None:
        kind = self.kind.word.data
        if kind in ("tensormap", "generic"):
            raise VerifyException(f"there is no fence of the {kind} proxy")
        if (kind == "async.shared") != (self.space is not None):
            raise VerifyException(f"a fence of the {kind} proxy {'needs a' if self.space is None else 'has no'} space")


# ---- clusters, registers, sleep ---------------------------------------------------------------------------------------------------------


class ClusterSyncOp(IRDLOperation):
    """`nvvm.cluster.arrive {aligned}`: of all blocks of the cluster; aligned: all threads of a warp together."""

    aligned = opt_prop_def(UnitAttr)

    assembly_format = "attr-dict"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, aligned: bool = False):
        super().__init__(properties={"aligned": UnitAttr() if aligned else None})


ClusterArriveOp = op_of_family(ClusterSyncOp, "nvvm.cluster.arrive")
ClusterArriveRelaxedOp = op_of_family(ClusterSyncOp, "nvvm.cluster.arrive.relaxed")
ClusterWaitOp = op_of_family(ClusterSyncOp, "nvvm.cluster.wait")


@irdl_op_definition
class NanosleepOp(IRDLOperation):
    """`nvvm.nanosleep %n`: about so many nanoseconds."""

    name = "nvvm.nanosleep"

    duration = operand_def(I32)

    assembly_format = "attr-dict $duration"

    def __init__(self, duration: SSAValue | Operation):
        super().__init__(operands=[duration])


class SetMaxRegisterAction(StrEnum):
    Increase = "increase"
    Decrease = "decrease"


@irdl_attr_definition
class SetMaxRegisterActionAttr(EnumAttribute[SetMaxRegisterAction], SpacedOpaqueSyntaxAttribute):
    name = "nvvm.action"


@irdl_op_definition
class SetMaxRegisterOp(IRDLOperation):
    """`nvvm.setmaxregister decrease 80`: how many registers a thread has from here on."""

    name = "nvvm.setmaxregister"

    action = prop_def(SetMaxRegisterActionAttr)
    regCount = prop_def(IntegerAttr)

    def __init__(self, action: SetMaxRegisterAction, registers: int):
        super().__init__(
            properties={"action": SetMaxRegisterActionAttr(action), "regCount": IntegerAttr(registers, 32)}
        )

    @classmethod
    def parse(cls, parser: Parser) -> SetMaxRegisterOp:
        action = parser.parse_str_enum(SetMaxRegisterAction)
        op = SetMaxRegisterOp(action, parser.parse_integer(allow_boolean=False))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.action.data} {self.regCount.value.data}")
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        count = self.regCount.value.data
        if count % 8 or not 24 <= count <= 256:
            raise VerifyException(f"sets {count} registers; it must be a multiple of 8 from 24 to 256")


# ---- barriers in memory -----------------------------------------------------------------------------------------------------------------


@irdl_op_definition
class MBarrierInitOp(IRDLOperation):
    """`nvvm.mbarrier.init %b, %count, predicate = %c : !llvm.ptr<3>, i32, i1`: waits for so many arrivals."""

    name = "nvvm.mbarrier.init"

    addr = operand_def(LLVMPointerType)
    count = operand_def(I32)
    predicate = opt_operand_def(I1)

    assembly_format = "$addr `,` $count (`,` `predicate` `=` $predicate^)? attr-dict `:` type(operands)"

    def __init__(
        self, addr: SSAValue | Operation, count: SSAValue | Operation, predicate: SSAValue | Operation | None = None
    ):
        super().__init__(operands=[addr, count, predicate])


@irdl_op_definition
class MBarrierInvalOp(IRDLOperation):
    """`nvvm.mbarrier.inval %b : !llvm.ptr<3>`: its memory is free for something else."""

    name = "nvvm.mbarrier.inval"

    addr = operand_def(LLVMPointerType)

    assembly_format = "$addr attr-dict `:` type(operands)"

    def __init__(self, addr: SSAValue | Operation):
        super().__init__(operands=[addr])


@irdl_op_definition
class MBarrierArriveOp(IRDLOperation):
    """`nvvm.mbarrier.arrive %b, %count : !llvm.ptr<3> -> i64`: counts arrivals (one, if not said), and gives a token to wait for."""

    name = "nvvm.mbarrier.arrive"

    addr = operand_def(LLVMPointerType)
    count = opt_operand_def(I32)
    scope = prop_def(MemScopeAttr, default_value=_BLOCK)
    relaxed = prop_def(BoolAttr, default_value=_NO)
    res = opt_result_def(IntegerType(64))

    assembly_format = "$addr (`,` $count^)? attr-dict `:` type($addr) (`->` type($res)^)?"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, addr: SSAValue | Operation, count: SSAValue | Operation | None = None):
        super().__init__(operands=[addr, count], result_types=[IntegerType(64)])


class MBarrierWaitOp(IRDLOperation):
    """`nvvm.mbarrier.test.wait %b, %token : !llvm.ptr<3>, i64 -> i1`: whether all that the token stands for have arrived."""

    addr = operand_def(LLVMPointerType)
    stateOrPhase = operand_def(IntegerType)
    scope = prop_def(MemScopeAttr, default_value=_BLOCK)
    relaxed = prop_def(BoolAttr, default_value=_NO)
    res = result_def(I1)

    assembly_format = "$addr `,` $stateOrPhase attr-dict `:` type(operands) `->` type($res)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, addr: SSAValue | Operation, state: SSAValue | Operation):
        super().__init__(operands=[addr, state], result_types=[IntegerType(1)])


MBarrierTestWaitOp = op_of_family(MBarrierWaitOp, "nvvm.mbarrier.test.wait")


@irdl_op_definition
class MBarrierTryWaitParityOp(IRDLOperation):
    """`nvvm.mbarrier.try_wait.parity %b, %phase, %ticks : !llvm.ptr<3>, i32, i32`: waits for a phase to end."""

    name = "nvvm.mbarrier.try_wait.parity"

    addr = operand_def(LLVMPointerType)
    phase = operand_def(I32)
    ticks = operand_def(I32)

    assembly_format = "$addr `,` $phase `,` $ticks attr-dict `:` type(operands)"

    def __init__(self, addr: SSAValue | Operation, phase: SSAValue | Operation, ticks: SSAValue | Operation):
        super().__init__(operands=[addr, phase, ticks])


# ---- copies -----------------------------------------------------------------------------------------------------------------------------


class LoadCacheModifier(StrEnum):
    CA = "ca"
    CG = "cg"
    CS = "cs"
    LU = "lu"
    CV = "cv"


@irdl_attr_definition
class LoadCacheModifierAttr(EnumAttribute[LoadCacheModifier], SpacedOpaqueSyntaxAttribute):
    name = "nvvm.load_cache_modifier"


@irdl_op_definition
class CpAsyncOp(IRDLOperation):
    """`nvvm.cp.async.shared.global %to, %from, 16, cache = cg, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32`

    4, 8 or 16 bytes; with `%bytes` fewer of them, the others zero.
    """

    name = "nvvm.cp.async.shared.global"

    dst = operand_def(LLVMPointerType)
    src = operand_def(LLVMPointerType)
    size = prop_def(IntegerAttr)
    modifier = prop_def(LoadCacheModifierAttr)
    cpSize = opt_operand_def(I32)

    SIZES: ClassVar = (4, 8, 16)

    def __init__(
        self,
        dst: SSAValue | Operation,
        src: SSAValue | Operation,
        size: int,
        modifier: LoadCacheModifier = LoadCacheModifier.CA,
        bytes: SSAValue | Operation | None = None,
    ):
        super().__init__(
            operands=[dst, src, bytes],
            properties={"size": IntegerAttr(size, 32), "modifier": LoadCacheModifierAttr(modifier)},
        )

    @classmethod
    def parse(cls, parser: Parser) -> CpAsyncOp:
        names = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        names.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(",")
        size = parser.parse_integer(allow_boolean=False)
        parser.parse_punctuation(",")
        parser.parse_keyword("cache")
        parser.parse_punctuation("=")
        modifier = parser.parse_str_enum(LoadCacheModifier)
        if parser.parse_optional_punctuation(",") is not None:
            names.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        to, of, *bytes = parser.resolve_operands(names, types, start)
        op = CpAsyncOp(to, of, size, modifier, bytes[0] if bytes else None)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.dst, self.src), printer.print_ssa_value)
        printer.print_string(f", {self.size.value.data}, cache = {self.modifier.data}")
        if self.cpSize is not None:
            printer.print_string(", ")
            printer.print_ssa_value(self.cpSize)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.operand_types, printer.print_attribute)

    def verify_(self) -> None:
        size, modifier = self.size.value.data, self.modifier.data
        if size not in self.SIZES:
            raise VerifyException(f"copies {size} bytes; it can be {', '.join(map(str, self.SIZES))}")
        if modifier not in (LoadCacheModifier.CA, LoadCacheModifier.CG):
            raise VerifyException(f"its cache is {modifier}; it can be ca, cg")
        if modifier is LoadCacheModifier.CG and size != 16:
            raise VerifyException(f"copies {size} bytes past the first cache; it can only copy 16")


@irdl_op_definition
class CpAsyncWaitGroupOp(IRDLOperation):
    """`nvvm.cp.async.wait.group 0`: until no more than so many groups of copies are under way."""

    name = "nvvm.cp.async.wait.group"

    n = prop_def(IntegerAttr)

    def __init__(self, n: int):
        super().__init__(properties={"n": IntegerAttr(n, 32)})

    @classmethod
    def parse(cls, parser: Parser) -> CpAsyncWaitGroupOp:
        op = CpAsyncWaitGroupOp(parser.parse_integer(allow_boolean=False))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.n.value.data}")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class CpAsyncMBarrierArriveOp(IRDLOperation):
    """`nvvm.cp.async.mbarrier.arrive %b : !llvm.ptr<3>`: arrives when the thread's copies so far are done."""

    name = "nvvm.cp.async.mbarrier.arrive"

    addr = operand_def(LLVMPointerType)
    noinc = prop_def(BoolAttr, default_value=_NO)

    assembly_format = "$addr attr-dict `:` type(operands)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, addr: SSAValue | Operation):
        super().__init__(operands=[addr])


ASYNC_OPS: tuple[type[IRDLOperation], ...] = (
    *(MemoryBarrierOp, FenceProxyOp, FenceMbarrierInitOp, FenceScClusterOp),
    *(ClusterArriveOp, ClusterArriveRelaxedOp, ClusterWaitOp, NanosleepOp, SetMaxRegisterOp, BreakpointOp),
    *(MBarrierInitOp, MBarrierInvalOp, MBarrierArriveOp, MBarrierTestWaitOp, MBarrierTryWaitParityOp),
    *(CpAsyncOp, CpAsyncCommitGroupOp, CpAsyncWaitGroupOp, CpAsyncMBarrierArriveOp),
)
ASYNC_ATTRIBUTES: tuple[type[Attribute], ...] = (
    *(MemScopeAttr, ProxyKindAttr, SharedSpaceAttr, SetMaxRegisterActionAttr, LoadCacheModifierAttr),
)
