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

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import element_of, leaf_types
from xla_emitters.errors import Unsupported, UsageError, VerifyError
from xla_emitters.fusions.buffers import aliases_of, kernel_arguments
from xla_emitters.fusions.refusals import refuse_unsupported
from xla_emitters.fusions.view import FusionView, view_of
from xla_emitters.program import Argument, Slot


@dataclass(frozen=True)
class PlannedKernel:
    """What becomes a kernel, with the arrays it reads, one per operand, and those it writes, one per leaf of its result.

    view         of a fusion instruction, or of an ENTRY without fusions, which is emitted as if a fusion called it
    overwritten  those of the results that a later kernel goes on with in place
    """

    view: FusionView
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    overwritten: frozenset[Slot] = frozenset()

    @property
    def name(self) -> str:
        """The fusion instruction's name, or the computation's."""
        return self.view.name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The pointers that the kernel takes: its operands, then its results."""
        return kernel_arguments(self.view, (*self.operands, *self.results))


@dataclass(frozen=True)
class ProgramPlan:
    """Kernels in launch order, and the array types of all slots."""

    parameters: tuple[Attribute, ...]
    results: tuple[Attribute, ...]
    temporaries: tuple[Attribute, ...]
    kernels: tuple[PlannedKernel, ...]


def plan_program(module: ModuleOp) -> ProgramPlan:
    """The plan for a module.

    raises   Unsupported for instructions between fusions that are not compiled, for parameters that are tuples, and for results that no
             fusion computes
    """
    entry = entry_of(module)
    if not any(isinstance(op, FusionOp) for op in entry.instructions):
        return _plan_alone(entry)
    return _plan_entry(entry)


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


def _plan_alone(entry: ComputationOp) -> ProgramPlan:
    parameters = tuple(parameter.result.type for parameter in entry.parameters)
    results = leaf_types(entry.root.type)
    kernel = PlannedKernel(
        view_of(entry),
        tuple(Slot("parameter", i) for i in range(len(parameters))),
        tuple(Slot("result", i) for i in range(len(results))),
    )
    return ProgramPlan(parameters, results, (), (kernel,))


def _plan_entry(entry: ComputationOp) -> ProgramPlan:
    parameters = entry.parameters
    for parameter in parameters:
        if isinstance(parameter.result.type, TupleType):
            raise parameter.unsupported("no buffer for a tuple")
    results = leaf_types(entry.root.type)
    slots: dict[SSAValue, tuple[Slot, ...]] = {}
    written = _result_numbers(entry)
    temporaries: list[Attribute] = []
    kernels: list[PlannedKernel] = []
    views = {op: view_of(op) for op in entry.instructions if isinstance(op, FusionOp)}
    goes_on = _overwriting(views)
    made_in: dict[tuple[HloOp, int], Slot] = {}
    for op in entry.instructions:
        match op:
            case ParameterOp():
                slots[op.result] = (Slot("parameter", op.number.value.data),)
            case TupleOp():
                slots[op.result] = tuple(slot for operand in op.operands for slot in slots[operand])
            case GetTupleElementOp():
                first, count = _leaves_of_element(op)
                slots[op.result] = slots[op.operands[0]][first : first + count]
            case BitcastOp() if is_same_memory(op):
                slots[op.result] = slots[op.operands[0]]
            case FusionOp():
                operands: list[Slot] = []
                for operand in op.operands:
                    if len(slots[operand]) != 1:
                        raise op.unsupported("no kernel with a tuple operand")
                    operands += slots[operand]
                made: list[Slot] = []
                for leaf, leaf_type in enumerate(leaf_types(op.result.type)):
                    last = (op, leaf)
                    while last in goes_on:
                        last = goes_on[last]
                    if last not in made_in:
                        number = written.get(last)
                        if number is None:
                            temporaries.append(leaf_type)
                        is_result = number is not None
                        made_in[last] = Slot("result", number) if is_result else Slot("temporary", len(temporaries) - 1)
                    made.append(made_in[last])
                slots[op.result] = tuple(made)
                overwritten = frozenset(slot for leaf, slot in enumerate(made) if (op, leaf) in goes_on)
                kernels.append(PlannedKernel(views[op], tuple(operands), tuple(made), overwritten))
            case _:
                raise _outside(op)
    return ProgramPlan(
        tuple(parameter.result.type for parameter in parameters), results, tuple(temporaries), tuple(kernels)
    )


def _overwriting(views: Mapping[FusionOp, FusionView]) -> dict[tuple[HloOp, int], tuple[HloOp, int]]:
    """What a fusion makes, by leaf of its result -> the fusion that goes on with it in place, and which leaf of its result it is there."""
    found: dict[tuple[HloOp, int], tuple[HloOp, int]] = {}
    for op, view in views.items():
        if op.output_to_operand_aliasing is None:
            continue
        refuse_unsupported(view)
        for leaf, operand in aliases_of(view).items():
            (producer,) = producers_of(operand)
            if isinstance(producer[0], FusionOp):
                found[producer] = (op, leaf)
    return found


def _outside(op: HloOp) -> Unsupported:
    return op.unsupported("no kernel outside fusions", "put it into a fusion, or compile it alone")


def _result_numbers(entry: ComputationOp) -> dict[tuple[HloOp, int], int]:
    """(fusion, leaf of its result) -> number of the program's result that it is."""
    numbers: dict[tuple[HloOp, int], int] = {}
    for number, (owner, leaf) in enumerate(producers_of(entry.root)):
        if isinstance(owner, ParameterOp):
            raise owner.unsupported("no kernel for a result that is passed through")
        if not isinstance(owner, FusionOp):
            raise _outside(owner)
        if (owner, leaf) in numbers:
            raise Unsupported(
                f"results {numbers[owner, leaf]} and {number} of '{entry.sym_name.data}' are one value",
                stage="plan",
                place=written_at(owner),
            )
        numbers[owner, leaf] = number
    return numbers


def producers_of(value: SSAValue) -> list[tuple[HloOp, int]]:
    """Per leaf of a value: the instruction, looking through tuples and bitcasts, that makes it, and which leaf of its result it is."""
    op = value.owner
    assert isinstance(op, HloOp)
    match op:
        case TupleOp():
            return [producer for operand in op.operands for producer in producers_of(operand)]
        case GetTupleElementOp():
            first, count = _leaves_of_element(op)
            return producers_of(op.operands[0])[first : first + count]
        case BitcastOp() if is_same_memory(op):
            return producers_of(op.operands[0])
        case _:
            return [(op, leaf) for leaf in range(len(leaf_types(op.result.type)))]


def is_same_memory(op: BitcastOp) -> bool:
    """Whether a buffer of the operand's elements is one of the result's."""
    return element_of(op.operands[0]) == element_of(op.result)


def _leaves_of_element(op: GetTupleElementOp) -> tuple[int, int]:
    """Where the leaves of a tuple's element begin among those of the tuple, and how many there are."""
    whole = op.operands[0].type
    assert isinstance(whole, TupleType)
    index = op.index.value.data
    before = sum(len(leaf_types(element)) for element in whole.types.data[:index])
    return before, len(leaf_types(whole.types.data[index]))
