"""Which kernels a module needs, in which order, and what each reads and writes.

    ENTRY main {                                     parameters  p0 p1        temporaries  t0       results  r0
      %x = f32[8] parameter(0)
      %y = f32[8] parameter(1)
      %a = f32[8] fusion(%x, %y), calls=first        kernel a: reads p0 p1, writes t0
      ROOT %b = f32[8] fusion(%a), calls=second      kernel b: reads t0, writes r0
    }

ENTRY's fusions become kernels in program order; only tuples may stand between them, and bitcasts of what they make. An ENTRY without
fusions is itself one kernel, named after the computation. Results of a tuple are numbered by leaf.
Source: docs/reference/contracts "Program"; docs/reference/2 4.1, section 5 "fusion wrapper".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import element_of, leaf_types
from xla_emitters.errors import UsageError, VerifyError


def kernel_sources(module: ModuleOp, fusion: str | None = None) -> tuple[FusionOp | ComputationOp, ...]:
    """What becomes kernels: one fusion, all of ENTRY's, or ENTRY if it has none. raises UsageError where there is no such fusion."""
    entry = entry_of(module)
    if fusion is not None:
        return (fusion_named(entry, fusion),)
    return tuple(op for op in entry.instructions if isinstance(op, FusionOp)) or (entry,)


def entry_of(module: ModuleOp) -> ComputationOp:
    """The entry computation. raises VerifyError when there is none."""
    for op in module.ops:
        if isinstance(op, ComputationOp) and op.is_entry:
            return op
    raise VerifyError("the module has no entry computation", stage="plan")


def called_by(module: ModuleOp, fusion: str) -> ComputationOp:
    """The computation that ENTRY's fusion instruction named `fusion` calls. raises UsageError when there is none."""
    return computation_of(fusion_named(entry_of(module), fusion))


def computation_of(source: FusionOp | ComputationOp) -> ComputationOp:
    """The computation itself, or the one that a fusion calls."""
    return find_computation(source, source.calls) if isinstance(source, FusionOp) else source


def fusion_named(entry: ComputationOp, name: str) -> FusionOp:
    fusions = {op.instruction_name.data: op for op in entry.instructions if isinstance(op, FusionOp)}
    if name not in fusions:
        raise UsageError(
            f"no fusion instruction '{name}' in ENTRY", stage="plan", help=f"there are: {', '.join(fusions)}"
        )
    return fusions[name]


def producers_of(value: SSAValue) -> list[tuple[HloOp, int]]:
    """Per leaf of a value: the instruction, looking through tuples and bitcasts, that makes it, and which leaf of its result it is."""
    op = value.owner
    assert isinstance(op, HloOp)
    match op:
        case TupleOp():
            return [producer for operand in op.operands for producer in producers_of(operand)]
        case GetTupleElementOp():
            first, count = leaves_of_element(op)
            return producers_of(op.operands[0])[first : first + count]
        case BitcastOp() if is_same_memory(op):
            return producers_of(op.operands[0])
        case _:
            return [(op, leaf) for leaf in range(len(leaf_types(op.result.type)))]


def is_same_memory(op: BitcastOp) -> bool:
    """Whether a buffer of the operand's elements is one of the result's."""
    return element_of(op.operands[0]) == element_of(op.result)


def changes_width(op: BitcastOp) -> bool:
    """Whether a bitcast has elements of another number of bits: no kernel computes it, but a copy of the bytes does."""
    return element_of(op.operands[0]).bits != element_of(op.result).bits


def leaves_of_element(op: GetTupleElementOp) -> tuple[int, int]:
    """Where the leaves of a tuple's element begin among those of the tuple, and how many there are."""
    whole = op.operands[0].type
    assert isinstance(whole, TupleType)
    index = op.index.value.data
    before = sum(len(leaf_types(ir_type)) for ir_type in whole.types.data[:index])
    return before, len(leaf_types(whole.types.data[index]))
