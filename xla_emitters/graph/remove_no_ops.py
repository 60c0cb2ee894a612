"""Removes instructions that compute nothing: each is replaced by its operand. On HLO.

    b = (f32[8], f32[8]) opt-barrier(t)                 t
    d = f32[8] domain(x), domain={...}                  x
    a = f32[8] add-dependency(x, token)                 x
    token = token[] after-all()                         erased once it has no users
    n = s32[] get-dimension-size(x), dimensions={0}     s32[] constant(8), where that size is static
    c = f32[8] convert(x)                               x, where its elements are f32 too
    r = f32[8] all-reduce(x), replica_groups={{0},{1}}  x: each device is a group of its own, as in other collectives
    i = u32[] partition-id()                            u32[] constant(0), in a module for one partition
    e = f32[8] get-tuple-element(t), index=0            x, where t = tuple(x, y), which is erased once it has no users
    c = (f32[8], s32[]) copy(t)                         tuple(copy(x), copy(y))
    m = f32[8] custom-call(x), custom_call_target="Sharding"        x: such markers (`custom_calls.MARKERS`) are for XLA's passes

The arrays that a loop or a branch is given, and those that it gives, are copied where they have another layout than the instruction's
type says: HLO has such before XLA assigns layouts, where a transpose is only another layout.

They order effects, or carry information for a partitioner; one stream runs steps in program order anyway. A marker whose result has
another layout than its operand becomes a copy. Tokens of infeeds, outfeeds, sends and receives stay.
Source: docs/reference/1 6.8; XLA's optimization_barrier_expander.cc, and the passes that take out the rest.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.backend_configs import is_marker
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import ComputationOp, GetTupleElementOp, TupleOp, callees_of
from xla_emitters.dialects.hlo.elementwise import ConvertOp, CopyOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp, is_wait
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.inlining import (
    constant_instead,
    element_of_tuple,
    laid_out,
    lay_out_parameter,
    lay_out_root,
)
from xla_emitters.rewrite.kernel_pass import KernelPass

_GIVE_THEIR_OPERAND = frozenset({"opt-barrier", "domain", "add-dependency"})
_SIZE = "get-dimension-size"
_STARTS = frozenset({"all-reduce-start", "all-gather-start", "collective-permute-start"})
_OF_DEVICES = frozenset(
    {
        *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast", "collective-permute"),
        *("all-reduce-done", "all-gather-done", "collective-permute-done", "replica-id", "partition-id"),
    }
)
_ERASED = frozenset({"after-all", *_STARTS})
"""Opcodes of instructions that are erased if they have no users."""


class RemoveNoOpsPass(KernelPass):
    name = "xla-remove-no-ops"

    def apply_to(self, op: ModuleOp) -> None:
        for computation in control_computations(op):
            for each in list(computation.instructions):
                if each.opcode in ("while", "conditional"):
                    _lay_out(computation, each)
            _remove_from(computation)


def _lay_out(computation: ComputationOp, op: HloOp) -> None:
    """What a loop or a branch is given and gives gets the layouts that its type says."""
    callees, result = callees_of(op), op.result.type
    given = [result] if op.opcode == "while" else [op.operands[0].type, *(c.parameters[0].result.type for c in callees)]
    if [operand.type for operand in op.operands] != given:
        names = {other.instruction_name.data for other in computation.instructions}
        for number, ir_type in enumerate(given):
            op.operands[number] = laid_out(op, op.operands[number], ir_type, names)
    if op.opcode == "while":
        for callee in callees:
            lay_out_parameter(callee, result)
    for callee in callees[1:] if op.opcode == "while" else callees:
        lay_out_root(callee, result)


def _remove_from(computation: ComputationOp) -> None:
    found = [
        op
        for op in computation.instructions
        if isinstance(op, RuleOp | ConvertOp | GetTupleElementOp | CopyOp) or op.opcode == _SIZE
    ]
    names = {op.instruction_name.data for op in computation.instructions} if found else set[str]()
    for op in found:
        if (value := _instead_of(op, names)) is not None:
            Rewriter.replace_op(op, (), [value])
    for op in reversed(list(computation.instructions)):
        if (op.opcode in _ERASED or isinstance(op, TupleOp)) and op.result.first_use is None:
            Rewriter.erase_op(op)


def _instead_of(op: HloOp, names: set[str]) -> SSAValue | None:
    """The value that replaces an instruction; None: it stays."""
    if is_wait(op):
        return None
    if op.opcode in _GIVE_THEIR_OPERAND or is_marker(op) or (isinstance(op, ConvertOp) and _changes_nothing(op)):
        return laid_out(op, op.operands[0], op.result.type, names)
    if op.opcode in _OF_DEVICES:
        from xla_emitters.graph.lone_devices import (
            value_of_one_device,  # imported here: most modules have no collectives
        )

        return value_of_one_device(op, names)
    if isinstance(op, GetTupleElementOp):
        return element_of_tuple(op.operands[0], op.index.value.data)
    if isinstance(op, CopyOp) and isinstance(op.result.type, TupleType):
        return laid_out(op, op.operands[0], op.result.type, names, always_copy=True)
    if op.opcode == _SIZE:
        size = dims_of(op.operands[0])[integers(op.properties["dimensions"])[0]]
        return None if size < 0 else constant_instead(op, size, "s32", names)
    return None


def _changes_nothing(op: ConvertOp) -> bool:
    source, result = op.operands[0], op.result
    return element_of(source) == element_of(result) and dims_of(source) == dims_of(result)
