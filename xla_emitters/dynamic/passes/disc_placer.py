"""Places shape arithmetic on the host and data on the device, and inserts the copies between them. On HLO.

    n = get_dimension_size(x), dimensions={0}          n {cpu}
    s = concatenate(n1, four)                          s {cpu}
    y = dynamic_reshape(x, s)                    ->    y {gpu}: reads s on the host
    i = convert(n)                                     t = h2d(n) {gpu}, i = convert(t) {gpu}

The attribute `disc.device` is "cpu" or "gpu", for a tuple one entry per array; every op has it. On the host are:
  * shape operands (`host_operands`), selectors of branches, conditions of loops, operands of assertions: the op that computes
    them, and backwards its operands, as long as they are integers or predicates, static, of at most 64 elements. A size is read
    on the host, from the array's descriptor. Larger values, and floats, are computed on the device, and the result copied;
  * with `i32-on-host`, all other ops on s32 too, as in the seed's second rule.
An array that a loop carries has one place: its initial value, the body's parameter and result, and the loop's result. The same holds for
a branch. Parameters and results of the program are on the device. A constant that both sides read is duplicated, not copied. An array that
a loop only reads is copied before the loop, not in each iteration.

The second rule is off by default: it moves the arithmetic of token ids, and of masks made from them, to the host, with a round
trip for each. Computations of scalars (bodies of reductions and sorts) belong to their op and have no place of their own.
Source: seed document, "DhloPlacer"; BladeDISC mhlo_mark_shape_calc.cc, mhlo_placer.cc;
docs/decisions/14-where-the-passes-of-programs-differ.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TupleType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    ReturnOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.placement import DEVICE, GPU, HOST, D2hOp, H2dOp, TransferOp
from xla_emitters.dialects.hlo.types import is_array, leaf_types
from xla_emitters.dynamic.passes.places import CONTROL, Placement, host_operands, slots_of
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscPlacerPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    i32_on_host   apply the seed's second rule too
    """

    name = "disc-placer"

    i32_on_host: bool = False

    def apply_to(self, op: ModuleOp) -> None:
        entries = [
            computation for computation in op.ops if isinstance(computation, ComputationOp) and computation.is_entry
        ]
        if not entries:
            raise self.refuse(op, "no computation is the entry: nothing says what is a parameter of the program")
        for copy in [inner for inner in op.walk() if isinstance(inner, TransferOp)]:
            Rewriter.replace_op(copy, (), [copy.operands[0]])  # from an earlier run: places are decided anew
        placement = Placement(entries[0])
        placement.decide(i32_on_host=self.i32_on_host)
        _Placing(placement, Names(op)).apply()


@dataclass(eq=False)
class _Placing:
    """Sets the places of all ops, and inserts the copies.

    copies   (value, place) -> the value there, in the current computation
    """

    placement: Placement
    names: Names
    copies: dict[tuple[SSAValue, str], SSAValue] = field(default_factory=dict[tuple[SSAValue, str], SSAValue])

    def apply(self) -> None:
        conditions = set(self.placement.conditions)
        for computation in self.placement.computations:
            self.copies.clear()
            for op in list(computation.instructions):
                places = [self.placement.place(slot) for slot in slots_of(op.result)]
                is_single = not isinstance(op.result.type, TupleType)
                op.attributes[DEVICE] = (
                    StringAttr(places[0] if places else HOST)
                    if is_single
                    else ArrayAttr([StringAttr(place) for place in places])
                )
                for number, wanted in self._wanted(op, places[0] if places and is_single else GPU):
                    op.operands[number] = self._at(op.operands[number], wanted, op)
            terminator = computation.body.block.last_op
            assert isinstance(terminator, ReturnOp)
            wanted = HOST if computation in conditions else GPU if computation is self.placement.entry else None
            if wanted is not None and is_array(terminator.root.type):
                terminator.operands[0] = self._at(terminator.root, wanted, terminator)

    def _wanted(self, op: HloOp, place: str) -> Iterator[tuple[int, str]]:
        """(operand, place) of the operands that must be in a certain place."""
        shape = host_operands(op)
        if isinstance(op, TupleOp):
            first = 0
            for number, operand in enumerate(op.operands):
                if is_array(operand.type):
                    yield number, self.placement.place((op.result, first))
                first += len(leaf_types(operand.type))
        elif op.opcode in CONTROL or op.opcode == "opt-barrier":
            yield from ((number, HOST) for number in shape)
        elif not isinstance(op, GetTupleElementOp | ParameterOp) and op.opcode != "get-dimension-size":
            for number, operand in enumerate(op.operands):
                if is_array(operand.type):
                    yield number, HOST if number in shape else place

    def _at(self, value: SSAValue, wanted: str, before: Operation) -> SSAValue:
        if self.placement.place((value, 0)) == wanted:
            return value
        if (value, wanted) not in self.copies:
            self.copies[value, wanted] = self._moved(value, wanted, before)
        return self.copies[value, wanted]

    def _copy(self, value: SSAValue, wanted: str, before: Operation) -> SSAValue:
        owner = value.owner
        name = owner.instruction_name.data if isinstance(owner, HloOp) else "value"
        made: HloOp
        if isinstance(owner, ConstantOp):
            made = owner.clone()
        else:
            op_class: type[TransferOp] = H2dOp if wanted == GPU else D2hOp
            made = op_class([value], value.type, f"{name}.{op_class.name.removeprefix('hlo.')}")
        made.attributes[DEVICE] = StringAttr(wanted)
        return self.names.add(made, before)

    def _moved(self, value: SSAValue, wanted: str, before: Operation) -> SSAValue:
        """A copy before `before`; of what a loop passes on, before the loop: a new operand of it, and the parameter that reads it."""
        if (captured := self.placement.captured(value)) is None:
            return self._copy(value, wanted, before)
        (loop, outside), owner = captured, value.owner
        assert isinstance(owner, ParameterOp)
        number = len(loop.operands)
        loop.operands = [*loop.operands, self._moved(outside, wanted, loop)]
        found = value
        for callee in loop.callees():
            called = find_computation(loop, callee.symbol)
            parameter = ParameterOp(number, value.type, f"{owner.instruction_name.data}.{wanted}")
            parameter.attributes[DEVICE] = StringAttr(wanted)
            parameter.location = owner.location
            made = self.names.add(parameter, next(iter(called.instructions)))
            found = made if called is owner.parent_op() else found
        return found
