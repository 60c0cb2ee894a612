"""The steps of a program as a graph: kernels, library calls and copies, and which of them writes what another one reads.

    p0 -> squared -> sorted -> turns/negated -> r0          a node inside of a loop or a branch has it as its namespace

What only the host does (sizes, checks, allocations) is no node. Variants of a kernel, of which sizes choose one, are one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os.path import commonprefix

from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.compiled import Program
from xla_emitters.program.steps import (
    ArrayPlace,
    Branch,
    Call,
    Compute,
    Copy,
    Launch,
    Loop,
    Move,
    Step,
    View,
    steps_within,
)
from xla_emitters.trace.graph import Graph, Node


def graph_of_steps(program: Program) -> Graph:
    """The graph of a program that was compiled far enough to have steps: from stage `xla_gpu` on."""
    made = _Maker(program.kernels, program.calls)
    for number, spec in enumerate(program.parameters):
        made.add(f"p{number}", "parameter", str(spec), (), (number,), ())
    made.walk(program.steps, ())
    first = len(program.parameters)
    for number, spec in enumerate(program.results):
        made.add(f"r{number}", "result", str(spec), (first + number,), (), ())
    return Graph(program.name, tuple(made.nodes))


class _Maker:
    """writers  slot -> the ids of the nodes that may have written what it holds"""

    def __init__(self, kernels: Sequence[Kernel], calls: Sequence[LibraryCall]) -> None:
        self.nodes = list[Node]()
        self.writers = dict[int, tuple[str, ...]]()
        self._kernels, self._calls = {kernel.name: kernel for kernel in kernels}, calls

    def add(
        self,
        label: str,
        kind: str,
        type: str,  # noqa: A002
        reads: Iterable[int],
        writes: Iterable[int],
        namespace: tuple[str, ...],
        **attributes: str,
    ) -> None:
        sources = dict.fromkeys(source for slot in reads for source in self.writers.get(slot, ()))
        node = Node(str(len(self.nodes)), label, kind, type, tuple(sources), namespace, attributes)
        self.nodes.append(node)
        self.writers |= dict.fromkeys(writes, (node.id,))

    def walk(self, steps: Sequence[Step], around: tuple[str, ...]) -> None:
        for step in steps:
            match step:
                case Launch():
                    self._launches([step], around)
                case Call() if any(place.on_device for place in (*step.reads, *step.writes)):
                    call = self._calls[step.op] if step.op < len(self._calls) else None
                    name = call.name if call else step.name
                    places = [[place.slot for place in each] for each in (step.reads, step.writes)]
                    types = ", ".join(map(str, call.results)) if call else ""
                    self.add(step.name, "library call", types, places[0], places[1], around, function=name)
                case Copy(source, target):
                    self.add("copy", "copy", "", (source.slot,), (target.slot,), around)
                case View(source, target):
                    self.writers[target.slot] = self.writers.get(source.slot, ())
                case Move(pairs):
                    self.writers |= {target: self.writers.get(source, ()) for source, target in pairs}
                case Loop():
                    self.walk((*step.condition, *step.body), (*around, step.name))
                case Branch():
                    self._branch(step, around)
                case _:
                    pass

    def _branch(self, step: Branch, around: tuple[str, ...]) -> None:
        inside = list(steps_within([step]))
        if all(isinstance(each, Launch | Compute | Branch) for each in inside):
            if launches := [each for each in inside if isinstance(each, Launch)]:
                self._launches(launches, around)
            return
        before, after = self.writers, dict[int, tuple[str, ...]]()
        for number, branch in enumerate(step.branches):
            self.writers = dict(before)
            self.walk(branch, (*around, step.name, str(number)))
            for slot, writers in self.writers.items():
                after[slot] = tuple(dict.fromkeys((*after.get(slot, ()), *writers)))
        self.writers = after

    def _launches(self, launches: Sequence[Launch], around: tuple[str, ...]) -> None:
        """One launch, or the variants of a kernel."""
        first, reads, writes = launches[0], dict[int, None](), dict[int, None]()
        types = list[str]()
        for launch in launches:
            places = [value.slot for value in launch.arguments if isinstance(value, ArrayPlace)]
            for slot, argument in zip(places, self._kernels[launch.kernel].arguments, strict=False):
                # What is updated in place is an operand and a result.
                if not argument.written or places.count(slot) > 1:
                    reads[slot] = None
                if argument.written:
                    if launch is first and slot not in writes:
                        types.append(str(argument.array))
                    writes[slot] = None
        kernel = self._kernels[first.kernel]
        name = commonprefix([launch.kernel for launch in launches]).rstrip("_")  # noqa: RUF071  # of names, which are no paths
        variants = {"variants": str(len(launches))} if len(launches) > 1 else {"launch": str(kernel.launch)}
        self.add(name, "kernel", ", ".join(types), reads, writes, around, **variants)
