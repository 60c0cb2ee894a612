"""The steps of a control computation: its instructions in program order, and memory for the arrays between them.

    fusion                   a kernel
    while                    a loop over the steps of its condition and its body
    conditional              a branch, with a list of steps for each computation
    bitcast                  a copy of the bytes if the elements' width changes; otherwise nothing: it names the same memory
    copy                     a copy of the bytes
    library instruction      a library call

A buffer (see `computation_values`) has memory from the instruction that makes it to the last one that reads it: a temporary is allocated
before the former and released after the latter. A buffer that becomes a result is placed in the result's memory if possible, and then the
caller owns it. What would start as a copy of a parameter that the module's `input_output_alias` donates, and that nothing reads later,
gets its memory instead, by a move.

A loop's state has one slot for each leaf that the body changes. The body writes the new value directly to the slot if no instruction reads
the old value at that time or later; otherwise to a temporary, which is copied at the end of the body. Branches write their results to the
slots of the instruction's results. Results that share a buffer, or are parameters, are copied at the end.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    ParameterOp,
    callees_of,
)
from xla_emitters.dialects.hlo.rule_ops import TOKEN, is_wait
from xla_emitters.dialects.hlo.types import is_array, leaf_types
from xla_emitters.graph.buffers import aliases_of, array_spec, kernel_arguments
from xla_emitters.graph.computation_values import ComputationValues, Leaf, ModuleValues, is_name
from xla_emitters.graph.control_computations import is_control
from xla_emitters.graph.overwrites import is_donated
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.program import Argument, ArraySpec, LibraryCall, Slot
from xla_emitters.program.step_values import place_of
from xla_emitters.program.steps import (
    Allocate,
    ArrayPlace,
    Branch,
    Call,
    Compute,
    Copy,
    Extent,
    Launch,
    Load,
    Loop,
    Move,
    NumberSlot,
    Recurrence,
    Release,
    Step,
)
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.text.hlo.stack_frames import PythonLines


@dataclass(frozen=True)
class PlannedKernel:
    """A future kernel, with the arrays that it reads, one per operand, and those that it writes, one per leaf of its result.

    view               of a fusion instruction, or of an ENTRY without fusions, which is emitted as if a fusion called it
    operands, results  of its first launch; a computation that several instructions run launches it with other arrays, too
    """

    view: FusionView
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]

    @property
    def name(self) -> str:
        """The fusion instruction's name, or the computation's."""
        return self.view.name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The pointers that the kernel takes: its operands, then its results."""
        return kernel_arguments(self.view, (*self.operands, *self.results))


class Planner:
    """Makes the steps of a program's control computations; numbers its temporaries, kernels, library calls, and numbers of the host.

    parameters, results  types of the program's arrays
    lines        of Python, for library calls; None: not asked for
    temporaries  their types, by number
    kernels      distinct, in the order of their first launch
    calls        in the order of steps
    """

    def __init__(
        self, parameters: Sequence[Attribute], results: Sequence[Attribute], lines: PythonLines | None = None
    ) -> None:
        self.lines = lines
        self.parameters, self.results, self.temporaries = parameters, results, list[Attribute]()
        self.kernels: list[PlannedKernel] = []
        self.calls: list[LibraryCall] = []
        self._places = dict[Slot, ArrayPlace]()
        self._assigned = 0
        self.values = ModuleValues(self.view)
        self._numbers: dict[FusionOp | ComputationOp, int] = {}
        self._views: dict[FusionOp, FusionView] = {}

    def view(self, fusion: FusionOp) -> FusionView:
        """The view of a fusion, always the same one, because analyses cache their results in it."""
        if fusion not in self._views:
            self._views[fusion] = view_of(fusion)
        return self._views[fusion]

    def temporary(self, ir_type: Attribute) -> Slot:
        """A new slot for a temporary."""
        self.temporaries.append(ir_type)
        return Slot("temporary", len(self.temporaries) - 1)

    def number(self) -> NumberSlot:
        """A new number of the host."""
        self._assigned += 1
        return NumberSlot(self._assigned - 1)

    def place(self, slot: Slot) -> ArrayPlace:
        """The array of a slot as steps read and write it; numbered as in `program.Arrays`."""
        if slot not in self._places:
            before = {"parameter": 0, "result": len(self.parameters)}.get(
                slot.kind, len(self.parameters) + len(self.results)
            )
            types = {"parameter": self.parameters, "result": self.results, "temporary": self.temporaries}[slot.kind]
            self._places[slot] = place_of(before + slot.index, array_spec(types[slot.index]))
        return self._places[slot]

    def launch(
        self, source: FusionOp | ComputationOp, view: FusionView, operands: Sequence[Slot], results: Sequence[Slot]
    ) -> Launch:
        """The step that launches a kernel, which has no code yet and is named by its number."""
        planned = PlannedKernel(view, tuple(operands), tuple(results))
        number = self._numbers.setdefault(source, len(self.kernels))
        if number == len(self.kernels):
            self.kernels.append(planned)
        return Launch(str(number), _ONE, _ONE, 0, tuple(map(self.place, (*operands, *results))))

    def steps_of(self, values: ComputationValues, given: Sequence[Slot], wanted: Sequence[Slot]) -> tuple[Step, ...]:
        """The steps of a control computation.

        given   the slots of its parameters' leaves, in order
        wanted  the slots for its results; the caller gives them memory
        """
        first = _ComputationSteps(self, values, given, wanted)
        # Computations that run one another nest as deep as the module has computations: no recursion.
        running, made = [(first.all(), list[Step]())], None
        while running:
            making, steps = running[-1]
            try:
                step = making.send(made)
            except StopIteration:
                running.pop()
                made = tuple(steps)
                continue
            made = None
            if isinstance(step, _ComputationSteps):
                running.append((step.all(), []))
            else:
                steps.append(step)
        assert made is not None
        return made


@dataclass
class _ComputationSteps:
    """Makes the steps of one control computation; arguments as in `Planner.steps_of`.

    is_loop_body  `given` and `wanted` are the loop's state: parameter and result of one number share a slot
    slots  buffer -> its slot
    own    the buffers that these steps allocate and release
    taken  the buffers that have the memory of a donated parameter, and which one
    """

    planner: Planner
    values: ComputationValues
    given: Sequence[Slot]
    wanted: Sequence[Slot]
    is_loop_body: bool = False
    slots: dict[Leaf, Slot] = field(default_factory=dict[Leaf, Slot])
    own: set[Leaf] = field(default_factory=set[Leaf])
    taken: dict[Leaf, Leaf] = field(default_factory=dict[Leaf, Leaf])

    def __post_init__(self) -> None:
        self.last = self.values.last_reads()
        parameters = sorted(self.values.computation.parameters, key=lambda p: p.number.value.data)
        leaves = [leaf for parameter in parameters for leaf in self.values.leaves[parameter.result]]
        self.slots.update(zip(leaves, self.given, strict=True))
        self.places = {op: place for place, op in enumerate(self.values.instructions)}
        for number, (leaf, slot) in enumerate(zip(self.values.root, self.wanted, strict=True)):
            buffer = self.values.buffers[leaf]
            if buffer not in self.slots and (not self.is_loop_body or self._is_free(leaves[number], buffer)):
                self.slots[buffer] = slot

    def _is_free(self, old: Leaf, buffer: Leaf) -> bool:
        """Whether a buffer can use the slot of a loop's state that holds another value when the body begins."""
        return self.last[old] < self.places[buffer[0]]

    def all(self) -> _Making:
        """The steps, one after the other; for those of a computation that an instruction runs, what makes them, and is sent their tuple."""
        dying: dict[int, list[Leaf]] = {}
        for buffer, place in self.last.items():
            dying.setdefault(place, []).append(buffer)
        for place, op in enumerate(self.values.instructions):
            if isinstance(op, ParameterOp) or is_name(op):
                continue
            unused, taken = self._unused_workspaces(op), self._taken_by(op, place)
            self.taken |= taken
            for number, ir_type in enumerate(leaf_types(op.result.type)):
                if number in unused or not (is_array(ir_type) or ir_type == TOKEN):
                    continue
                if self.values.buffers.get((op, number)) == (op, number) and (op, number) not in self.slots:
                    self.slots[op, number] = slot = self.planner.temporary(ir_type)
                    if (op, number) not in taken:
                        self.own.add((op, number))
                        yield Allocate(self.planner.place(slot))
            if taken:
                yield Move(tuple((self._number(old), self._number(leaf)) for leaf, old in taken.items()))
            yield from self._steps_for(op)
            yield from self._releases(dying.get(place, ()))
        yield from self._moves()
        yield from self._releases(dying.get(self.values.end, ()))

    def _taken_by(self, op: HloOp, place: int) -> dict[Leaf, Leaf]:
        """The arrays of an instruction that get the memory of a donated parameter, which it reads last, and the parameter of each."""
        read = [leaf for operand in op.operands for leaf in self.values.leaves[operand]]
        found = dict[Leaf, Leaf]()
        for number, ir_type in enumerate(leaf_types(op.result.type)):
            parameter, leaf = old = self.values.starts.get((op, number), (op, number))
            if not isinstance(parameter, ParameterOp) or not is_donated(parameter):
                continue
            if read.count(old) == 1 and self.last[old] <= place and leaf_types(parameter.result.type)[leaf] == ir_type:
                found[op, number] = old
        return found

    def _number(self, leaf: Leaf) -> int:
        return self.planner.place(self.slots[leaf]).slot

    def _releases(self, buffers: Sequence[Leaf]) -> Iterator[Release]:
        return (Release(self.planner.place(self.slots[buffer]).slot) for buffer in buffers if buffer in self.own)

    def _moves(self) -> Iterator[Step]:
        """Copies results to their slots, all at once: one copy may overwrite what another one reads."""
        pairs = [(self._slot(leaf), slot) for leaf, slot in zip(self.values.root, self.wanted, strict=True)]
        pairs = [(source, target) for source, target in pairs if source != target]
        overwritten = {target for _, target in pairs}
        saved: dict[Slot, Slot] = {}
        types = dict(zip(self.wanted, leaf_types(self.values.computation.root.type), strict=True))
        for source, target in pairs:
            if source in overwritten and source not in saved:
                saved[source] = self.planner.temporary(types[target])
                yield Allocate(self.planner.place(saved[source]))
                yield self._copy(source, saved[source])
        yield from (self._copy(saved.get(source, source), target) for source, target in pairs)
        yield from (Release(self.planner.place(slot).slot) for slot in saved.values())

    def _copy(self, source: Slot, target: Slot) -> Copy:
        return Copy(self.planner.place(source), self.planner.place(target))

    def _read(self, slot: Slot) -> Load:
        """Assigns a new number: the only element of an array."""
        return Load(self.planner.number(), self.planner.place(slot), (0,))

    def _slot(self, leaf: Leaf) -> Slot:
        return self.slots[self.values.buffers[leaf]]

    def _slots_of(self, value: SSAValue) -> list[Slot]:
        return [self._slot(leaf) for leaf in self.values.leaves[value]]

    def _results(self, op: HloOp) -> list[Slot]:
        return [self._slot(leaf) for leaf in self.values.leaves[op.result]]

    def _steps_for(self, op: HloOp) -> _Making:
        """The steps of one instruction; the buffers of its results have memory by then."""
        match op.opcode:
            case "fusion":
                assert isinstance(op, FusionOp)
                yield from self._kernel(op)
            case "while":
                yield from self._loop(op)
            case "conditional":
                yield from self._branch(op)
            case "after-all" | "recv" | "send-done":
                pass  # steps run in order; what is received comes when the program waits for it
            case "bitcast" | "copy":
                yield self._copy(self._slots_of(op.operands[0])[0], self._results(op)[0])
            case _:
                yield self._library_call(op)

    def _kernel(self, fusion: FusionOp) -> Iterator[Step]:
        if any(len(self.values.leaves[operand]) != 1 for operand in fusion.operands):
            raise fusion.unsupported("no kernel with a tuple operand")
        view = self.planner.view(fusion)
        slots = {operand: self._slots_of(operand)[0] for operand in fusion.operands}
        for number, operand in aliases_of(view).items():
            if (fusion, number) in self.taken:
                slots[operand] = self._slot((fusion, number))
            # The caller's arrays stay unchanged: launchers copy them.
            elif (fusion, number) in self.values.starts and slots[operand].kind != "parameter":
                target = self._slot((fusion, number))
                yield self._copy(slots[operand], target)
                slots[operand] = target
        yield self.planner.launch(fusion, view, [slots[operand] for operand in fusion.operands], self._results(fusion))

    def _loop(self, op: HloOp) -> _Making:
        (initial,), (condition, body) = op.operands, callees_of(op)
        state = self._results(op)
        for (number, leaf), slot in zip(enumerate(self.values.leaves[initial]), state, strict=True):
            if (op, number) in self.values.starts and (op, number) not in self.taken:
                yield self._copy(self._slot(leaf), slot)
        deciding, repeating = self.planner.values.of(condition), self.planner.values.of(body, is_state=True)
        proceeds = self.planner.temporary(condition.root.type)
        yield Allocate(self.planner.place(proceeds))
        decide = yield _ComputationSteps(self.planner, deciding, state, [proceeds])
        read = self._read(proceeds)
        changed = {
            number: self.planner.place(slot).slot
            for number, (leaf, slot) in enumerate(zip(self.values.leaves[op.result], state, strict=True))
            if leaf[0] is op
        }
        from xla_emitters.graph.loop_recurrences import deciding_leaves  # imported here: few modules have loops

        leaves = deciding_leaves(op)
        repeat = yield _ComputationSteps(self.planner, repeating, state, state, is_loop_body=True)
        yield Loop(
            op.instruction_name.data,
            (*decide, read),
            read.result,
            repeat,
            tuple(changed.values()),
            trips=known_trip_count(op),
            ends=self._ends(op, state),
            decides=None if leaves is None else tuple(slot for number, slot in changed.items() if number in leaves),
        )
        yield Release(self.planner.place(proceeds).slot)

    def _ends(self, loop: HloOp, state: Sequence[Slot]) -> Recurrence | None:
        """What ends a `while`, on the arrays of its state."""
        from xla_emitters.graph.loop_recurrences import loop_end_of  # imported here: few modules have loops

        if (found := loop_end_of(loop)) is None:
            return None
        slots = tuple(self.planner.place(state[leaf]).slot for leaf in found.leaves)
        return Recurrence(slots, found.text(leaf_types(loop.operands[0].type)), found.is_exact)

    def _branch(self, op: HloOp) -> _Making:
        selector, *operands = op.operands
        results = self._results(op)
        branches = list[tuple[Step, ...]]()
        for branch, operand in zip(callees_of(op), operands, strict=True):
            values, given = self.planner.values.of(branch), self._slots_of(operand)
            branches.append((yield _ComputationSteps(self.planner, values, given, results)))
        read = self._read(self._slots_of(selector)[0])
        yield read
        chosen: Extent = read.result
        if read.array.dtype == "pred":  # true chooses the first of two
            chosen = self.planner.number()
            yield Compute(chosen, "eq", (read.result, 0))
        yield Branch(op.instruction_name.data, chosen, tuple(branches), ())

    def _library_call(self, op: HloOp) -> Call:
        from xla_emitters.dialects.hlo.library_calls import (
            library_call_of,  # imported here: most modules call no library
        )
        from xla_emitters.text.hlo.hlo_printer import print_alone

        name, config = library_call_of(op, print_alone)
        operands = [
            (self._slot(leaf), array_spec(ir_type))
            for operand in op.operands
            for leaf, ir_type in zip(self.values.leaves[operand], leaf_types(operand.type), strict=True)
            if ir_type != TOKEN
        ]
        types, unused = leaf_types(op.result.type), self._unused_workspaces(op)
        kept = [number for number, ir_type in enumerate(types) if number not in unused and ir_type != TOKEN]
        if is_wait(op):  # its results are its operands
            kept = []
        if unused:
            config = {**config, "outputs": [config["outputs"][number] for number in kept]}
        results = [(self._slot((op, number)), array_spec(types[number])) for number in kept]
        lines = self.planner.lines.data_of([op]) if self.planner.lines else ()
        instruction, calls = op.instruction_name.data, self.planner.calls
        calls.append(LibraryCall(name, instruction, _specs(operands), _specs(results), config, lines))
        read, written = (tuple(self.planner.place(slot) for slot, _ in held) for held in (operands, results))
        return Call(len(calls) - 1, instruction, read, written)

    def _unused_workspaces(self, op: HloOp) -> frozenset[int]:
        """Numbers of a library call's results that XLA provides only as workspace and that no instruction reads."""
        unread = {number for number in range(len(leaf_types(op.result.type))) if (op, number) not in self.values.reads}
        if not unread or isinstance(op, FusionOp) or is_control(op):
            return frozenset()
        from xla_emitters.dialects.hlo.library_calls import is_library_call, library_call_of

        if not is_library_call(op):
            return frozenset()
        outputs = library_call_of(op)[1].get("outputs", ())
        return frozenset(number for number in unread if number < len(outputs) and outputs[number] == "workspace")


_Making: TypeAlias = Generator["Step | _ComputationSteps", Any, None]
_ONE = 1, 1, 1


def _specs(arrays: Sequence[tuple[Slot, ArraySpec]]) -> tuple[ArraySpec, ...]:
    return tuple(spec for _, spec in arrays)


def known_trip_count(loop: HloOp) -> int | None:
    """The number of iterations of a `while` that XLA states: `backend_config={"known_trip_count":{"n":"10"}}`."""
    config = loop.attributes.get("backend_config")
    try:
        found: Any = json.loads(config.data) if isinstance(config, StringAttr) else {}
        return int(found["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError):
        return None
