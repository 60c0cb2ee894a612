"""The `nvvm` dialect's fences, memory barriers, and asynchronous copies: read, kept and executed, never emitted.

    nvvm.mbarrier.init %b, %count : !llvm.ptr<3>, i32              a barrier in shared memory
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.wait.group 0
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}

Source: MLIR 22, nvvm dialect; PTX ISA, "Asynchronous copies", "mbarrier".
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import I1, I32, BoolAttr, IntegerAttr, IntegerType, UnitAttr, i32
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.irdl import (
    eq,
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

from xla_emitters.dialects.mlir.llvm.metadata import word_attribute
from xla_emitters.dialects.mlir.op_rows import op_of_row
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

MemScopeAttr = word_attribute("nvvm.mem_scope", "cta", "cluster", "gpu", "sys")
"""`#nvvm.mem_scope<gpu>`: the threads that observe an order."""

ProxyKindAttr = word_attribute(
    "nvvm.proxy_kind", "alias", "async", "async.global", "async.shared", "tensormap", "generic"
)
"""`#nvvm.proxy_kind<async>`: the kind of access to memory."""

SharedSpaceAttr = word_attribute("nvvm.shared_space", "cta", "cluster")
"""`#nvvm.shared_space<cta>`: the shared memory of the block or the cluster."""


SetMaxRegisterActionAttr = word_attribute("nvvm.action", "increase", "decrease", is_spaced=True)
LoadCacheModifierAttr = word_attribute("nvvm.load_cache_modifier", "ca", "cg", "cs", "lu", "cv", is_spaced=True)

_NUMBER = IntegerAttr.constr(type=eq(i32))
_NO = BoolAttr.from_bool(False)
_BLOCK = MemScopeAttr.of("cta")

# ---- fences, clusters, registers, sleep -------------------------------------------------------------------------------------------------


def _verify_fence(op: Any) -> None:
    kind = op.kind.word.data
    if kind in ("tensormap", "generic"):
        raise VerifyException(f"there is no fence of the {kind} proxy")
    if (kind == "async.shared") != (op.space is not None):
        raise VerifyException(f"a fence of the {kind} proxy {'needs a' if op.space is None else 'has no'} space")


def _verify_registers(op: Any) -> None:
    count = op.regCount.value.data
    if count % 8 or not 24 <= count <= 256:
        raise VerifyException(f"sets {count} registers; it must be a multiple of 8 from 24 to 256")


@op_definition
class MemoryBarrierOp(QuickOp):
    """`nvvm.memory.barrier <gpu>`: accesses before it are ordered before those after it, as seen by the threads of the scope.

    A class, because it also reads `nvvm.memory.barrier #nvvm.mem_scope<gpu>`, which no declarative format expresses.
    """

    name = "nvvm.memory.barrier"

    scope = prop_def(MemScopeAttr)

    @classmethod
    def parse(cls, parser: Parser) -> MemoryBarrierOp:
        scope = parser.parse_optional_attribute() or MemScopeAttr.new(MemScopeAttr.parse_parameters(parser))
        return cls(properties={"scope": scope}, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.scope.print_parameters(printer)
        printer.print_op_attributes(self.attributes)


CpAsyncCommitGroupOp = op_of_row("nvvm.cp.async.commit.group", "attr-dict")
FenceMbarrierInitOp = op_of_row("nvvm.fence.mbarrier.init", "attr-dict")
FenceScClusterOp = op_of_row("nvvm.fence.sc.cluster", "attr-dict")
BreakpointOp = op_of_row("nvvm.breakpoint", "attr-dict")

FenceProxyOp = op_of_row(
    "nvvm.fence.proxy",
    "attr-dict",
    verify=_verify_fence,
    properties={"kind": prop_def(ProxyKindAttr), "space": opt_prop_def(SharedSpaceAttr)},
)

# A barrier of all blocks of the cluster; aligned: all threads of a warp execute it together.
CLUSTER_OPS = tuple(
    op_of_row(f"nvvm.cluster.{name}", "attr-dict", properties={"aligned": opt_prop_def(UnitAttr)})
    for name in ("arrive", "arrive.relaxed", "wait")
)

# Sleeps for about that many nanoseconds.
NanosleepOp = op_of_row("nvvm.nanosleep", "attr-dict $duration", duration=operand_def(I32))

# Sets the number of registers of a thread.
SetMaxRegisterOp = op_of_row(
    "nvvm.setmaxregister",
    "$action $regCount attr-dict",
    verify=_verify_registers,
    properties={"action": prop_def(SetMaxRegisterActionAttr), "regCount": prop_def(_NUMBER)},
)

# ---- barriers in memory -----------------------------------------------------------------------------------------------------------------

_MODES = {"scope": prop_def(MemScopeAttr, default_value=_BLOCK), "relaxed": prop_def(BoolAttr, default_value=_NO)}

MBARRIER_OPS = (
    # Initialises a barrier for a number of arrivals.
    op_of_row(
        "nvvm.mbarrier.init",
        "$addr `,` $count (`,` `predicate` `=` $predicate^)? attr-dict `:` type(operands)",
        addr=operand_def(LLVMPointerType),
        count=operand_def(I32),
        predicate=opt_operand_def(I1),
    ),
    # Frees the barrier's memory for other use.
    op_of_row("nvvm.mbarrier.inval", "$addr attr-dict `:` type(operands)", addr=operand_def(LLVMPointerType)),
    # Counts arrivals (one by default), and returns a token to wait for.
    op_of_row(
        "nvvm.mbarrier.arrive",
        "$addr (`,` $count^)? attr-dict `:` type($addr) (`->` type($res)^)?",
        addr=operand_def(LLVMPointerType),
        count=opt_operand_def(I32),
        properties=_MODES,
        res=opt_result_def(IntegerType(64)),
    ),
    # Whether the phase of the token is complete.
    op_of_row(
        "nvvm.mbarrier.test.wait",
        "$addr `,` $stateOrPhase attr-dict `:` type(operands) `->` type($res)",
        addr=operand_def(LLVMPointerType),
        stateOrPhase=operand_def(IntegerType),
        properties=_MODES,
        res=result_def(I1),
    ),
    # Waits for the end of a phase.
    op_of_row(
        "nvvm.mbarrier.try_wait.parity",
        "$addr `,` $phase `,` $ticks attr-dict `:` type(operands)",
        addr=operand_def(LLVMPointerType),
        phase=operand_def(I32),
        ticks=operand_def(I32),
    ),
)

# ---- copies -----------------------------------------------------------------------------------------------------------------------------

_SIZES = (4, 8, 16)


def _verify_copy(op: Any) -> None:
    size, modifier = op.size.value.data, op.modifier.word.data
    if size not in _SIZES:
        raise VerifyException(f"copies {size} bytes; it can be {', '.join(map(str, _SIZES))}")
    if modifier not in ("ca", "cg"):
        raise VerifyException(f"its cache is {modifier}; it can be ca, cg")
    if modifier == "cg" and size != 16:
        raise VerifyException(f"with cache = cg it copies {size} bytes; it can only copy 16")


# Copies 4, 8 or 16 bytes; with `cpSize` only so many, the others are set to zero.
CpAsyncOp = op_of_row(
    "nvvm.cp.async.shared.global",
    "$dst `,` $src `,` $size `,` `cache` `=` $modifier (`,` $cpSize^)? attr-dict `:` type(operands)",
    properties={"size": prop_def(_NUMBER), "modifier": prop_def(LoadCacheModifierAttr)},
    verify=_verify_copy,
    dst=operand_def(LLVMPointerType),
    src=operand_def(LLVMPointerType),
    cpSize=opt_operand_def(I32),
)

# Waits until at most `n` groups of copies are pending.
CpAsyncWaitGroupOp = op_of_row("nvvm.cp.async.wait.group", "$n attr-dict", properties={"n": prop_def(_NUMBER)})

# Arrives when the thread's previous copies are complete.
CpAsyncMBarrierArriveOp = op_of_row(
    "nvvm.cp.async.mbarrier.arrive",
    "$addr attr-dict `:` type(operands)",
    addr=operand_def(LLVMPointerType),
    properties={"noinc": prop_def(BoolAttr, default_value=_NO)},
)
