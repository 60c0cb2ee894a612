"""Compiles IR to Python closures once, so that running it costs one function call per op.

    module ──Compiler──> Function ──> Body   one block:      (step, slots that die here), (step, ...), ..., yielded slots
                                  └─> Graph  several blocks: a Body each, branches between them

The semantics of ops are in `Rules` tables, one per dialect file:

    RULES = Rules()

    @RULES.elementwise(arith.AddfOp)             # op -> function of lane arrays; vectors are taken element by element
    @RULES.op(tensor.ExtractOp)                  # op -> function of (machine, *operands); returns a value, a list of values, or None
    @RULES.kernel(gpu.ShuffleOp)                 # function of (op, machine, *operands)
    @RULES.control(scf.IfOp)                     # (op, scope) -> step of (machine, frame): ops with regions, calls

A rule runs once per op, when its function is compiled: it reads types and attributes and returns the closure that runs. The table is
keyed by op name, so that classes of one op in different packages share a rule.

A branch may send lanes to different blocks. The next block to run is the earliest one with waiting lanes, in an order in which each block
is before its successors and a loop before the code that follows it. So lanes on a longer path reach a shared block before the lanes that
wait for it run it, and paths join at the first block that they share. A value that other blocks use is merged under the mask of the lanes
that computed it. Lanes that wait for others, which may be in other branches, stay behind at their block; it runs again for them when memory
has changed, so that warps may produce what others consume.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator, SymbolTable

from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import func, llvm, nvvm
from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, InternalError, Unsupported
from xla_emitters.rewrite.effects import is_pure
from xla_emitters.rewrite.id_functions import declared_by
from xla_emitters.runtime.simt.block_order import loops_together, reachable
from xla_emitters.runtime.simt.deep_calls import EVERY, MOST_CALLS, continued
from xla_emitters.runtime.simt.machine import Frame, Machine, Value, merge
from xla_emitters.runtime.simt.rounds import Rounds
from xla_emitters.runtime.simt.scalars import Form, form_of
from xla_emitters.runtime.simt.shared_calls import FunctionOp, SharedFunctions
from xla_emitters.runtime.simt.stalls import Stalls

Step: TypeAlias = Callable[[Machine, Frame], None]
Kernel: TypeAlias = Callable[..., Any]
Unary: TypeAlias = Callable[[Array], Array]
Binary: TypeAlias = Callable[[Array, Array], Array]
Ternary: TypeAlias = Callable[[Array, Array, Array], Array]
OpT = TypeVar("OpT", bound=Operation)
Parts: TypeAlias = list[tuple[Array | None, int]]
"""Masks of lanes (None: all active ones), each with the number of the successor that they branch to."""
BranchRuleResult: TypeAlias = tuple[Sequence[SSAValue], Callable[..., Parts], Sequence[Sequence[SSAValue]]]
"""(values that the choice depends on; (machine, *values) -> Parts, by number of successor; the operands of each successor)"""
BranchRule: TypeAlias = Callable[[Any], BranchRuleResult]
StepRule: TypeAlias = "Callable[[Any, FrameSlots], Step]"


class Rules:
    """Rules that compile the ops of a dialect, by op name; for an op without one, those of `others`."""

    def __init__(self, others: Rules | None = None) -> None:
        self.steps: dict[str, StepRule] = {}
        self.branches: dict[str, BranchRule] = {}
        self._others = others

    def step_of(self, name: str) -> StepRule | None:
        """The rule of an op."""
        return self.steps.get(name) or (self._others.step_of(name) if self._others else None)

    def branch_of(self, name: str) -> BranchRule | None:
        """The rule of a terminator with successors."""
        return self.branches.get(name) or (self._others.branch_of(name) if self._others else None)

    def elementwise(self, *ops: type[OpT]) -> Callable[[Callable[[OpT], Kernel]], Callable[[OpT], Kernel]]:
        """A rule whose kernel takes one array per operand and returns one; see `lifted` for vectors."""

        def register(rule: Callable[[OpT], Kernel]) -> Callable[[OpT], Kernel]:
            def step(op: OpT, scope: FrameSlots) -> Step:
                kernel = lifted(op, rule(op))
                operands, (result,) = scope.slots(op.operands), scope.slots(op.results)

                def run(machine: Machine, frame: Frame) -> None:
                    frame[result] = kernel(*[frame[slot] for slot in operands])

                return run

            return self._add(ops, step, rule)

        return register

    def of_form(self, make: Callable[[Form], Kernel], *ops: type[Operation]) -> None:
        """A rule for elementwise ops whose kernel depends only on the form of the first operand."""
        self.elementwise(*ops)(lambda op: make(form_of(op.operands[0].type)))

    def op(self, *ops: type[OpT]) -> Callable[[Callable[[OpT], Kernel]], Callable[[OpT], Kernel]]:
        """A rule whose kernel takes the machine and one value per operand and returns a value, a list of values, or None."""

        def register(rule: Callable[[OpT], Kernel]) -> Callable[[OpT], Kernel]:
            def step(op: OpT, scope: FrameSlots) -> Step:
                kernel = rule(op)
                operands, results = scope.slots(op.operands), scope.slots(op.results)

                def run(machine: Machine, frame: Frame) -> None:
                    produced = kernel(machine, *[frame[slot] for slot in operands])
                    if len(results) == 1:
                        frame[results[0]] = produced
                    else:
                        write(frame, results, produced or [])

                return run

            return self._add(ops, step, rule)

        return register

    def kernel(self, *ops: type[Operation]) -> Callable[[Kernel], Kernel]:
        """The kernel of a rule, as of `op`, which also takes the op, in front."""

        def register(kernel: Kernel) -> Kernel:
            self.op(*ops)(lambda op: partial(kernel, op))
            return kernel

        return register

    def of_machine(self, read: Callable[[Machine], Any], *ops: type[Operation]) -> None:
        """A rule for ops whose value depends on the thread alone."""
        self.op(*ops)(lambda op: read)

    def control(
        self, *ops: type[OpT]
    ) -> Callable[[Callable[[OpT, FrameSlots], Step]], Callable[[OpT, FrameSlots], Step]]:
        """A rule that reads and writes the frame itself."""
        return lambda rule: self._add(ops, rule, rule)

    def branch(
        self, *ops: type[OpT]
    ) -> Callable[[Callable[[OpT], BranchRuleResult]], Callable[[OpT], BranchRuleResult]]:
        """A rule for a terminator with successors: see `BranchRuleResult`."""

        def register(rule: Callable[[OpT], BranchRuleResult]) -> Callable[[OpT], BranchRuleResult]:
            for op in ops:
                self.branches[op.name] = rule
            return rule

        return register

    def _add(self, ops: Iterable[type[Operation]], step: Callable[[Any, FrameSlots], Step], rule: Any) -> Any:
        for op in ops:
            self.steps[op.name] = step
        return rule


class RulesOfFiles(Rules):
    """The rules of all dialects.

    files  dialect -> the x of each x_rules.py in this folder that has rules of it, terminators in the first; one is loaded when an op
           is looked up that none before it has
    """

    def __init__(self, files: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._files = files

    def _tables(self, name: str) -> Iterator[Rules]:
        for file in self._files.get(name.partition(".")[0], ()):
            yield import_module(f"{__package__}.{file}_rules").RULES

    def step_of(self, name: str) -> StepRule | None:
        return next((table.steps[name] for table in self._tables(name) if name in table.steps), None)

    def branch_of(self, name: str) -> BranchRule | None:
        first = next(self._tables(name), None)
        return first.branches.get(name) if first is not None else None


def lifted(op: Operation, kernel: Kernel) -> Kernel:
    """`kernel` on vectors: applied to each element; an operand that is not a vector is the same for all."""
    vectors = [isinstance(operand.type, VectorType) for operand in op.operands]
    if not any(vectors):
        return kernel
    if all(vectors):
        return lambda *operands: tuple(kernel(*elements) for elements in zip(*operands, strict=True))

    def run(*operands: Any) -> Value:
        count = len(operands[vectors.index(True)])
        columns = [value if is_vector else (value,) * count for value, is_vector in zip(operands, vectors, strict=True)]
        return tuple(kernel(*elements) for elements in zip(*columns, strict=True))

    return run


def nothing(op: Operation, machine: Machine, *operands: Value) -> None:
    """The kernel of an op that allows, tells or frees something, which no thread sees."""


def first(op: Operation, machine: Machine, value: Value, *operands: Value) -> Value:
    """The kernel of an op whose value is that of its first operand."""
    return value


def write(frame: Frame, slots: Sequence[int], values: Sequence[Value]) -> None:
    for slot, value in zip(slots, values, strict=True):
        frame[slot] = value


# ---------------------------------------------------------------------------------------------- compiled code


@dataclass
class BlockCode:
    """One block.

    arguments   slots of the block's arguments
    steps       each op, and the slots whose last use it is
    results     slots of the terminator's operands
    """

    arguments: tuple[int, ...]
    steps: list[tuple[Step, tuple[int, ...]]]
    results: tuple[int, ...]

    def run(self, machine: Machine, frame: Frame, arguments: Sequence[Value]) -> list[Value]:
        """Runs the block for the active lanes and returns the terminator's operands."""
        write(frame, self.arguments, arguments)
        self.run_steps(machine, frame)
        return [frame[slot] for slot in self.results]

    def run_steps(self, machine: Machine, frame: Frame) -> None:
        for step, dying in self.steps:
            step(machine, frame)
            for slot in dying:
                frame[slot] = None


@dataclass
class BlockEnd:
    """The terminator of a block: for each branch, target block and operands; (None, slots) is a return.

    op       the terminator
    choose   (machine, frame) -> which lanes take which branch
    """

    op: Operation
    ways: list[tuple[int | None, tuple[int, ...]]]
    choose: Callable[[Machine, Frame], Parts]


@dataclass
class BlockNode:
    """A block of a `BlockGraph`.

    shared   slots of its results that other blocks use
    wait     the op that may wait for other threads; all others of the block are pure
    polls    whether that op may also say that it waited in vain
    asks     whether it has atomic accesses
    ends     whether lanes that come here have nothing left to do: the others need not wait for them
    of_all   whether all barriers of the graph are of whole blocks
    """

    body: BlockCode
    branch: BlockEnd
    shared: tuple[int, ...]
    wait: Operation | None = None
    polls: bool = False
    asks: bool = False
    ends: bool = False
    of_all: bool = False


@dataclass
class BlockGraph:
    """Blocks with branches between them, in the order of `loops_together`; the first is the entry.

    may_wait  whether a loop looks for what other blocks of the grid may write
    """

    nodes: list[BlockNode]
    may_wait: bool = False

    def run(self, machine: Machine, frame: Frame, arguments: Sequence[Value]) -> list[Value]:
        """Runs until every active lane has returned; returns what they returned."""
        entered, checks_stamps = machine.active, machine.checks_stamps
        rounds, latest, asked = Rounds(machine, self.nodes[0].branch.op), -1, False
        all_lanes = np.ones((1, 1), bool) if entered is None else entered
        # The lanes that wait to run each node: None is not a lane; the object `all_lanes` itself is all lanes.
        waiting: list[Array | None] = [all_lanes, *[None] * (len(self.nodes) - 1)]
        write(frame, self.nodes[0].body.arguments, arguments)
        returned: list[Value] | None = None
        memory, stalls = machine.memory, Stalls([node.polls for node in self.nodes])
        try:
            while True:
                number, machine.gives_up = stalls.next(waiting, memory.changes)
                if number is None:
                    break
                node, lanes = self.nodes[number], waiting[number]
                assert lanes is not None
                waiting[number] = None
                machine.may_stall, machine.retried = node.wait is not None and not node.of_all, stalls.take(number)
                machine.may_hold = node.wait is not None and node.of_all and not machine.gives_up and machine.calls == 1
                if machine.gives_up and node.wait is not None:
                    rounds.op = node.wait
                machine.active = entered if lanes is all_lanes else lanes
                if number <= latest:
                    given = [frame[slot] for slot in node.body.arguments]
                    turns = [machine.gives_up, *stalls.tried] if stalls.known or machine.gives_up else []
                    state = [number, len(turns), *turns, *given, *frame]
                    others_can_run = partial(stalls.can_run, waiting, memory.changes)
                    if rounds.begin(state, waiting, others_can_run, is_asking=asked):
                        waiting[number] = lanes
                        stalls.leave(number, lanes, memory.changes)
                        continue
                    asked = False
                latest = number
                asked |= node.asks
                # While lanes run different blocks, one stamp per buffer cannot record which value each lane has seen.
                machine.checks_stamps = checks_stamps and lanes is all_lanes
                before = [frame[slot] for slot in node.shared]
                node.body.run_steps(machine, frame)
                machine.may_stall = machine.may_hold = machine.gives_up = False
                if (left := machine.stalled) is not None:
                    machine.stalled, lanes = None, lanes & ~left
                    waiting[number] = left
                    stalls.leave(number, left, memory.changes)
                    if not lanes.any():
                        continue
                    machine.active = lanes
                if lanes is not all_lanes:
                    for slot, old in zip(node.shared, before, strict=True):
                        frame[slot] = merge(lanes, frame[slot], old)
                for part, way in node.branch.choose(machine, frame):
                    target, operands = node.branch.ways[way]
                    values = [frame[slot] for slot in operands]
                    going = lanes if part is None else part
                    if machine.calls == 1 and (target is None or self.nodes[target].ends):
                        memory.exited = going if memory.exited is None else memory.exited | going
                        memory.changes += 1
                    if target is None:
                        returned = merged(going, values, returned)
                        continue
                    slots = self.nodes[target].body.arguments
                    if going is not all_lanes:
                        values = merged(going, values, [frame[slot] for slot in slots])
                    write(frame, slots, values)
                    waiting[target] = _together(going, waiting[target], all_lanes)
                    stalls.come(target)
        finally:
            machine.active, machine.checks_stamps = entered, checks_stamps
        if returned is None:
            raise InternalError("a function ended without a return", stage="simt")
        return returned


def merged(lanes: Array, values: Sequence[Value], before: Sequence[Value | None] | None) -> list[Value]:
    """`values` in `lanes`, and elsewhere the values of `before`, if there are any."""
    if before is None:
        return list(values)
    return [merge(lanes, new, old) for new, old in zip(values, before, strict=True)]


def _together(going: Array, waiting: Array | None, all_lanes: Array) -> Array:
    """The union of two masks; the object `all_lanes` itself when that is all lanes."""
    both = going if waiting is None else going | waiting
    return both if (all_lanes & ~both).any() else all_lanes


@dataclass(eq=False)
class FunctionCode:
    """A function of the module. `code` is None until it is compiled, and for a declaration.

    places      number of places that use it
    is_shared   whether equal calls are computed once: see `shared_calls`
    """

    name: str
    slots: int = 0
    code: BlockCode | BlockGraph | None = None
    places: int = 1
    is_shared: bool = False

    def call(self, machine: Machine, arguments: Sequence[Value]) -> list[Value]:
        """The function's results for the active lanes: computed, or known from an equal call."""
        return self._shared(machine, arguments) if self.is_shared else self._run(machine, arguments)

    def _run(self, machine: Machine, arguments: Sequence[Value]) -> list[Value]:
        """Runs the function for the active lanes in a frame of its own."""
        code = self.code
        if code is None:
            raise InternalError(f"function @{self.name} has no body", stage="simt")
        if machine.calls >= MOST_CALLS:
            raise ExecutionError(
                "the kernel's functions call each other too deeply",
                stage="simt",
                help="look for a function that calls itself without end",
            )
        round_start, frame, frames = machine.known.round_start, [None] * self.slots, len(machine.memory.frames)
        machine.calls += 1
        try:
            if machine.calls % EVERY:
                results = code.run(machine, frame, arguments)
            else:
                results = continued(lambda: code.run(machine, frame, arguments))
        finally:
            machine.calls -= 1
        machine.memory.end_call(frames)
        machine.known.round_start = round_start
        return results

    def _shared(self, machine: Machine, arguments: Sequence[Value]) -> list[Value]:
        """Runs the function for the active lanes without the result of an equal call."""
        known, memory, active = machine.known, machine.memory, machine.active
        key = known.key(self.name, arguments)
        found = known.find(key, memory.changes)
        reads = memory.changeable_reads
        if found is None:
            results, lanes = self._run(machine, arguments), active
        else:
            memory.changeable_reads += found.changes is not None
            missing = found.missing(active)
            if missing is None:
                known.release(key)
                return list(found.results)
            with machine.only(missing):
                results = merged(missing, self._run(machine, arguments), found.results)
            lanes = missing | found.lanes
        is_everyone = lanes is None or bool(lanes.all())
        changes = None if memory.changeable_reads == reads else memory.changes
        known.keep(key, results, None if is_everyone else lanes, changes)
        return list(results)


# ---------------------------------------------------------------------------------------------- compiling


def symbols_of(module: ModuleOp) -> dict[str, FunctionOp | llvm.GlobalOp]:
    """Functions and globals of the module, by name, those inside a `gpu.module` too; functions that read ids with their definition."""
    found: dict[str, FunctionOp | llvm.GlobalOp] = {}
    pending: list[Operation] = [module]
    while pending:
        for region in pending.pop().regions:
            for op in region.ops:
                if isinstance(op, func.FuncOp | llvm.FuncOp | llvm.GlobalOp):
                    ids = declared_by(op)
                    found[op.sym_name.data] = op if ids is None else ids.definition(op.location)
                elif op.has_trait(SymbolTable):
                    pending.append(op)
    return found


FUNCTIONS, FUNCTION_BYTES = 1 << 62, 16
"""The address of the first function whose address is taken, and how far the next one is."""


@dataclass
class Compiler:
    """Compiles the functions of one module when they are first called.

    symbols   see `symbols_of`
    shared    which functions keep their results
    pointers  the functions whose address is taken
    """

    rules: Rules
    symbols: Mapping[str, FunctionOp | llvm.GlobalOp]
    shared: SharedFunctions
    functions: dict[str, FunctionCode] = field(default_factory=dict[str, FunctionCode])
    pointers: list[FunctionCode] = field(default_factory=list[FunctionCode])
    _waiting: deque[tuple[FunctionCode, Region]] = field(default_factory=deque[tuple[FunctionCode, Region]])

    @staticmethod
    def of(module: ModuleOp, rules: Rules) -> Compiler:
        symbols = symbols_of(module)
        defined = {name: op for name, op in symbols.items() if isinstance(op, FunctionOp) and op.body.blocks}
        return Compiler(rules, symbols, SharedFunctions(defined))

    def has_body(self, name: str) -> bool:
        """Whether the module defines the function `name`."""
        op = self.symbols.get(name)
        return isinstance(op, func.FuncOp | llvm.FuncOp) and bool(op.body.blocks)

    def function(self, name: str) -> FunctionCode:
        """The function `name`, compiled; counts one more place that uses it.

        raises Unsupported when the module does not define it, or for an op without a rule
        """
        if found := self.functions.get(name):
            found.places += 1
            if found.places == 2:
                found.is_shared = name in self.shared
            return found
        op = self.symbols.get(name)
        if not isinstance(op, func.FuncOp | llvm.FuncOp) or not op.body.blocks:
            raise Unsupported(f"call of @{name}, which the module does not define", stage="simt")
        function = self.functions[name] = FunctionCode(name)
        self._waiting.append((function, op.body))
        if len(self._waiting) == 1:
            # Those that this one calls are compiled after it, not inside it: chains of calls are thousands long.
            while self._waiting:
                self._compile(*self._waiting[0])
                self._waiting.popleft()
        return function

    def address_of(self, name: str) -> int:
        """The address of a function, which no buffer is near. raises as `function`"""
        function = self.function(name)
        if function not in self.pointers:
            self.pointers.append(function)
        return FUNCTIONS + self.pointers.index(function) * FUNCTION_BYTES

    def function_at(self, address: int) -> FunctionCode | None:
        """The function that has this address."""
        number, inside = divmod(address - FUNCTIONS, FUNCTION_BYTES)
        return self.pointers[number] if not inside and 0 <= number < len(self.pointers) else None

    def _compile(self, function: FunctionCode, body: Region) -> None:
        scope = FrameSlots(self)
        function.code = scope.graph(body) if len(body.blocks) > 1 else scope.body(body.block)
        function.slots = scope.count


class FrameSlots:
    """One function being compiled: gives each of its values a slot in the frame."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        self._slots: dict[SSAValue, int] = {}

    @property
    def count(self) -> int:
        """Slots that a frame needs."""
        return len(self._slots)

    def slot(self, value: SSAValue) -> int:
        return self._slots.setdefault(value, len(self._slots))

    def slots(self, values: Iterable[SSAValue]) -> tuple[int, ...]:
        slots = self._slots
        return tuple([slots.setdefault(value, len(slots)) for value in values])

    def region(self, region: Region) -> BlockCode | BlockGraph:
        """The code of a region of one or more blocks."""
        return self.graph(region) if len(region.blocks) > 1 else self.body(region.block)

    def body(self, block: Block, kept: frozenset[SSAValue] = frozenset()) -> BlockCode:
        """The code of one block; values in `kept` outlive it."""
        ops = list(block.ops)
        terminator = ops.pop() if ops and ops[-1].has_trait(IsTerminator) else None
        results = self.slots(terminator.operands) if terminator else ()
        dying = self._last_uses(block, ops, kept)
        steps = [(self._step(op), self.slots(dying.get(op, ()))) for op in ops]
        return BlockCode(self.slots(block.args), steps, results)

    def _step(self, op: Operation) -> Step:
        rule = self.compiler.rules.step_of(op.name)
        if rule is None:
            raise Unsupported(
                f"the executor has no rule for op '{op.name}'",
                stage="simt",
                details=(f"at {place_of(op) or str(op).splitlines()[0]}",),
                help="add one in the file of its dialect in xla_emitters/runtime/simt/",
            )
        return rule(op, self)

    def _last_uses(
        self, block: Block, ops: Sequence[Operation], kept: frozenset[SSAValue]
    ) -> dict[Operation, list[SSAValue]]:
        """Op -> the values of `block` whose last use it is. An unused value belongs to its own op; one that leaves the block to none."""
        order = {op: number for number, op in enumerate(ops)}
        defined: list[tuple[SSAValue, int | None]] = [(argument, None) for argument in block.args]
        defined += [(result, order[op]) for op in ops for result in op.results]
        dying: dict[Operation, list[SSAValue]] = {}
        for value, definition in defined:
            if value in kept:
                continue
            last = definition
            for use in value.uses:
                user = use.operation if use.operation.parent is block else _user_in(block, use.operation)
                # The terminator and ops of other blocks are not in the order.
                place = order.get(user) if user else None
                if place is None:
                    break
                last = place if last is None or place > last else last
            else:
                if last is not None:
                    dying.setdefault(ops[last], []).append(value)
        return dying

    def graph(self, region: Region) -> BlockGraph:
        """The code of a region with branches. raises Unsupported for a terminator without a branch rule."""
        blocks = loops_together(reachable(region))
        numbers = {block: number for number, block in enumerate(blocks)}
        waits = {block: _wait_of(block) for block in blocks}
        of_all = all(wait is None or isinstance(wait, nvvm.Barrier0Op) for wait in waits.values())
        if of_all and not any(map(_is_atomic, (op for block in blocks for op in block.ops))):
            # Where all threads meet at once, one that does not come is found at once.
            waits = dict.fromkeys(blocks)
        nodes: list[BlockNode] = []
        for block in blocks:
            shared = [
                value
                for value in (*block.args, *(result for op in block.ops for result in op.results))
                if any(_user_in(block, use.operation) is None for use in value.uses)
            ]
            wait = waits[block]
            # Lanes that are left behind need the block's arguments again.
            body = self.body(block, frozenset([*shared, *block.args] if wait else shared))
            results = tuple(value for value in shared if value not in block.args)
            branch = self._branch(block, numbers)
            polls = wait is not None and isinstance(wait, llvm.CallIntrinsicOp) and "cluster" not in wait.intrin.data
            ends, asks = _only_returns(block), any(map(_is_atomic, block.ops))
            nodes.append(BlockNode(body, branch, self.slots(results), wait, polls, asks, ends, of_all))
        looks = [any(map(_is_look, block.ops)) for block in blocks]
        back = [(way, end + 1) for end, node in enumerate(nodes) for way, _ in node.branch.ways if way is not None]
        return BlockGraph(nodes, any(any(looks[start:end]) for start, end in back))

    def _branch(self, block: Block, numbers: dict[Block, int]) -> BlockEnd:
        op = block.last_op
        if op is None or not op.has_trait(IsTerminator):
            raise InternalError("a block of a function does not end in a terminator", stage="simt")
        rule = self.compiler.rules.branch_of(op.name)
        if rule is None and not op.successors:
            return BlockEnd(op, [(None, self.slots(op.operands))], lambda machine, frame: [(None, 0)])
        if rule is None:
            raise Unsupported(f"the executor has no rule for the branch '{op.name}'", stage="simt")
        selectors, decide, operands = rule(op)
        inputs = self.slots(selectors)
        ways: list[tuple[int | None, tuple[int, ...]]] = [
            (numbers[successor], self.slots(values)) for successor, values in zip(op.successors, operands, strict=True)
        ]
        return BlockEnd(op, ways, lambda machine, frame: decide(machine, *[frame[slot] for slot in inputs]))


_WAITS = tuple(
    f"llvm.nvvm.{name}" for name in ("mbarrier.test_wait", "mbarrier.try_wait", "barrier.cluster.wait", "tcgen05.alloc")
)


def _is_atomic(op: Operation) -> bool:
    return _is_look(op) or isinstance(op, llvm.AtomicRMWOp)


def _is_look(op: Operation) -> bool:
    """Whether the op reads what others write, without an update that is worth its while by itself."""
    if isinstance(op, llvm.LoadOp):
        return op.ordering.value.data != 0 or op.volatile_ is not None
    return isinstance(op, llvm.AtomicCmpXchgOp)


def _only_returns(block: Block) -> bool:
    """Whether nothing is left to do from here on but to return, without a value."""
    seen = set[Block]()
    while block not in seen and block.last_op is not None and block.last_op is block.first_op:
        seen.add(block)
        if block.last_op.operands or len(block.last_op.successors) > 1:
            return False
        if not block.last_op.successors:
            return True
        block = block.last_op.successors[0]
    return False


def _wait_of(block: Block) -> Operation | None:
    """The op of a block that may wait for other threads, if all others are pure."""
    others = [op for op in block.ops if not is_pure(op) and not op.has_trait(IsTerminator)]
    if len(others) != 1:
        return None
    (op,) = others
    is_wait = isinstance(op, nvvm.Barrier0Op | nvvm.BarrierOp)
    is_wait |= isinstance(op, llvm.CallIntrinsicOp) and op.intrin.data.startswith(_WAITS)
    return op if is_wait else None


def _user_in(block: Block, user: Operation) -> Operation | None:
    """The op directly in `block` that is `user` or holds it; None when `user` is elsewhere."""
    holder: Operation | None = user
    while holder is not None and holder.parent is not block:
        holder = holder.parent_op()
    return holder
