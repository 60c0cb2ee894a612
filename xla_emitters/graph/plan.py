"""The steps of a program, from a module in which each fusion is one kernel.

    ENTRY main {                                     parameters  p0 p1        temporaries  t0       results  r0
      %x = f32[8] parameter(0)
      %y = f32[8] parameter(1)                       allocate t0
      %a = f32[8] fusion(%x, %y), calls=first        kernel a: reads p0 p1, writes t0
      ROOT %b = f32[8] fusion(%a), calls=second      kernel b: reads t0, writes r0
    }                                                release t0

`computation_steps` makes the steps of one computation. An ENTRY with only emittable instructions is itself one kernel, named after the
computation. Results of a tuple are numbered by leaf.
Source: docs/reference/contracts "Program"; docs/reference/2 4.1, section 5 "fusion wrapper"; XLA buffer_assignment.cc and while_thunk.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    callees_of,
)
from xla_emitters.dialects.hlo.types import has_dynamic_dims, is_array, leaf_types, type_text
from xla_emitters.graph.buffers import array_spec
from xla_emitters.graph.computation_steps import PlannedKernel, Planner
from xla_emitters.graph.control_computations import is_one_kernel, run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.refusals import refuse_values
from xla_emitters.graph.view import view_of
from xla_emitters.program import Arrays, Kernel, LibraryCall, Slot
from xla_emitters.program.steps import Launch, Step, rewritten
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.text.hlo.stack_frames import PythonLines


@dataclass(frozen=True)
class ProgramPlan:
    """The steps of a program before its kernels have code, and the array types of all slots.

    kernels  in the order of their first launch
    calls    of library functions, by the numbers of steps
    steps    their launches name a kernel by its number in `kernels`, and have one thread: see `with_code`
    """

    parameters: tuple[Attribute, ...]
    results: tuple[Attribute, ...]
    temporaries: tuple[Attribute, ...]
    kernels: tuple[PlannedKernel, ...]
    calls: tuple[LibraryCall, ...]
    steps: tuple[Step, ...]

    @cached_property
    def arrays(self) -> Arrays:
        """Which array is in which slot."""
        types = (self.parameters, self.results, self.temporaries)
        return Arrays(*(tuple(map(array_spec, of_kind)) for of_kind in types))

    def with_code(self, kernels: Sequence[Kernel]) -> tuple[Step, ...]:
        """The steps with the launches of the compiled kernels, one for each of `self.kernels`."""

        def each(step: Step) -> Step:
            if not isinstance(step, Launch):
                return step
            made = kernels[int(step.kernel)]
            return Launch(made.name, made.launch.grid, made.launch.block, 0, step.arguments)

        return rewritten(self.steps, lambda step: (each(step),))


def plan_program(module: ModuleOp, lines: PythonLines | None = None) -> ProgramPlan:
    """The plan for a module.

    lines    of Python, of the module as it was read
    raises   Unsupported for instructions without a step, for parameters that are tuples, and for values that are not arrays
    """
    entry = entry_of(module)
    for parameter in entry.parameters:
        if isinstance(parameter.result.type, TupleType):
            raise parameter.unsupported("no buffer for a tuple")
        refuse_without_buffer(parameter, (parameter.result.type,))
    _refuse_dynamic_sizes(entry)
    types, results = tuple(parameter.result.type for parameter in entry.parameters), leaf_types(entry.root.type)
    planner = Planner(types, results, lines)
    given = [Slot("parameter", parameter.number.value.data) for parameter in entry.parameters]
    wanted = [Slot("result", number) for number in range(len(results))]
    if is_one_kernel(entry):
        steps: tuple[Step, ...] = (planner.launch(entry, view_of(entry), given, wanted),)
    else:
        # Callees first: a loop's unchanged leaves must be known when the computation around it is planned.
        computations = run_by(entry)
        for op in (op for computation in computations for op in computation.instructions if op.opcode == "while"):
            planner.values.of(callees_of(op)[1], is_state=True)
        steps = planner.steps_of(planner.values.of(entry), given, wanted)
    root = owner_of(entry.root)
    refuse_without_buffer(root, results)
    temporaries, kernels, calls = tuple(planner.temporaries), tuple(planner.kernels), tuple(planner.calls)
    return ProgramPlan(types, results, temporaries, kernels, calls, steps)


def _refuse_dynamic_sizes(entry: ComputationOp) -> None:
    """raises Unsupported naming the first instruction, in ENTRY if there is one, whose array has a size known only at run time."""
    for op in (op for computation in reversed(run_by(entry)) for op in computation.instructions):
        if isinstance(op, FusionOp) and has_dynamic_dims(op.result.type):
            refuse_values(view_of(op))
        if has_dynamic_dims(op.result.type):
            raise op.unsupported(f"no code for dimensions only known at run time ({type_text(op.result.type)})")


def refuse_without_buffer(op: HloOp, types: Sequence[Attribute]) -> None:
    """raises Unsupported if one of the types is not an array, for example a token."""
    if without := [ir_type for ir_type in types if not is_array(ir_type)]:
        raise op.unsupported(f"no buffer for {type_text(without[0])}")
