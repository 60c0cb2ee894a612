"""From a program on buffers to the steps of a `Program`: one step an op, whatever the sizes.

    %0 = memref.dim %x, %c0                                          (n0: a size of the parameter x)
    %y = memref.alloc(%0) : memref<?xf32, "gpu">          ->         Allocate a1 f32[n0]
    %1 = arith.addi %0, %c63                                         Compute n1 = add n0, 63
    gpu.launch_func @k blocks in (%1, 1, 1) args(%x, %y)             Launch k grid (n1, 1, 1): a0, a1
    return %y                                                        results: a1

Taken at any stage from `lmhlo` to `kernels`: an op on buffers is a `Call`, an outlined kernel and the loops of a fusion a `Launch`. A
buffer is a slot; `lmhlo.inc_ref` gives its memory a second slot. A loop's carried buffers and a branch's results have slots of their own,
to which memory moves. Constants that nobody changes have memory before the first step.
Small arrays of integers in the host's memory are rows of numbers (`host_numbers`): they have no slot, and ops on them are `Compute` steps.
Integers of the IR are numbers; `arith.index_cast` keeps them, as sizes fit every type that a program gives them.
Source: docs/reference/4 2.2, 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.disc_ral import constant_name
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.dynamic_shape_ops import PrintOp
from xla_emitters.dialects.lmhlo import DONATED, BufferOp, space_of, tensor_of
from xla_emitters.dialects.mlir import arith, func, gpu, memref, scf
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.dynamic.host.host_numbers import is_local, is_small, results_of
from xla_emitters.errors import UsageError
from xla_emitters.program.executable import Constants, Executable
from xla_emitters.program.steps import (
    Allocate,
    ArrayPlace,
    Branch,
    Call,
    Compute,
    Dimension,
    Extent,
    Launch,
    Load,
    Loop,
    Move,
    NumberSlot,
    Release,
    Step,
    Store,
    View,
)
from xla_emitters.rewrite.captures import captured_by, loops_of
from xla_emitters.rewrite.kernel_pass import refusal

STAGE = "host"
FLAT = (-1,)
"""The shape of an array as one dimension."""
Triple: TypeAlias = tuple[Extent, Extent, Extent]
ONE: Triple = (1, 1, 1)
CallableOp: TypeAlias = BufferOp | lmhlo.FusionOp


def steps_of_buffers(module: ModuleOp, constants: Callable[[str, str], Array] | None = None) -> Executable:
    """The steps of the module's function.

    constants  reads a constant from a file: (its name as in `disc-convert-const-to-ral`, HLO's name of its element type). None: they are in
               the module
    raises     UsageError if there is no function; Unsupported for an op without a row
    """
    for op in module.ops:
        if isinstance(op, func.FuncOp) and not op.is_declaration:
            return _Writer(constants).program(op)
    raise UsageError("the module has no function on buffers", stage=STAGE, help="run disc-legalize-to-lhlo first")


class _Writer:
    """Makes the steps of one function; `steps` is the list that is being written."""

    def __init__(self, constants: Callable[[str, str], Array] | None) -> None:
        self._read = constants
        self.steps = list[Step]()
        self.places = dict[SSAValue, ArrayPlace]()
        self.rows = dict[SSAValue, list[Extent]]()  # elements of small arrays of the host; two names share one list
        self.temporary = list[ArrayPlace]()  # arrays with such elements, for the step that is being written
        self.extents = dict[SSAValue, Extent]()
        self.slots = self.numbers = 0
        self.constants = list[tuple[ArrayPlace, Callable[[], Array]]]()
        self.names = dict[int, str]()
        self.ops = list[CallableOp]()

    def program(self, function: func.FuncOp) -> Executable:
        parameters = [self._parameter(argument) for argument in function.args]
        (block,) = function.body.blocks
        last = self.block(block)
        attributes = enumerate(function.arg_attrs or ())
        return Executable(
            tuple(parameters),
            tuple([self.array(value) for value in last.operands]),
            tuple(self.steps),
            self.slots,
            self.numbers,
            Constants(self.constants),
            self.names,
            tuple(self.ops),
            frozenset(number for number, held in attributes if DONATED in held.data),
        )

    # ---------------------------------------------------------------------------------------------------------- values

    def number(self) -> NumberSlot:
        self.numbers += 1
        return NumberSlot(self.numbers - 1)

    def place(self, value: SSAValue, shape: Sequence[Extent]) -> ArrayPlace:
        """A new slot for a buffer."""
        self.places[value] = made = _place(self.slots, value.type, shape)
        if value.name_hint:
            self.names[self.slots] = value.name_hint
        self.slots += 1
        return made

    def _parameter(self, value: SSAValue) -> ArrayPlace:
        shape = [size if size >= 0 else self.number() for size in tensor_of(value.type).get_shape()]
        return self.place(value, shape)

    def shape(self, ir_type: Attribute, sizes: Sequence[SSAValue]) -> tuple[Extent, ...]:
        """The sizes of a buffer; unknown ones from `sizes`."""
        unknown = iter(sizes)
        return tuple(size if size >= 0 else self[next(unknown)] for size in tensor_of(ir_type).get_shape())

    def read_shape(self, slot: int, ir_type: Attribute) -> tuple[Extent, ...]:
        """The sizes of what a slot holds; unknown ones are read from it."""
        shape = list[Extent](tensor_of(ir_type).get_shape())
        for axis, size in enumerate(shape):
            if size == -1 or (isinstance(size, int) and size < 0):
                shape[axis] = found = self.number()
                self.steps.append(Dimension(found, slot, axis))
        return tuple(shape)

    def __getitem__(self, value: SSAValue) -> Extent:
        """A number."""
        if isinstance(value.owner, arith.ConstantOp) and isinstance(value.owner.value, IntegerAttr):
            number = value.owner.value
            return abs(number.value.data) if str(number.type) == "i1" else number.value.data
        return self.extents[value]

    def compute(self, name: str, operands: Sequence[Extent]) -> Extent:
        """A number from numbers, by a row of `program.steps.FUNCTIONS`."""
        found = self.number()
        self.steps.append(Compute(found, name, tuple(operands)))
        return found

    def elements(self, value: SSAValue) -> list[Extent]:
        """The elements of a small array of the host."""
        if (row := self.rows.get(value)) is not None:
            return row
        place = self.places[value]
        found = [self.number() for _ in range(prod(tensor_of(value.type).get_shape()))]
        for number, index in zip(found, np.ndindex(*tensor_of(value.type).get_shape()), strict=True):
            self.steps.append(Load(number, place, index))
        return list[Extent](found)

    def array(self, value: SSAValue) -> ArrayPlace:
        """The place of a buffer; that of a row of numbers is a new one, which holds them now."""
        if (row := self.rows.get(value)) is None:
            return self.places[value]
        place = _place(self.slots, value.type, tensor_of(value.type).get_shape())
        if value.name_hint:
            self.names[self.slots] = value.name_hint
        self.slots += 1
        self.steps.append(Allocate(place))
        for number, index in zip(row, np.ndindex(*tensor_of(value.type).get_shape()), strict=True):
            self.steps.append(Store(place, index, number))
        self.temporary.append(place)
        return place

    def end_of_step(self) -> None:
        """Frees the arrays that the last step alone has read."""
        self.steps += [Release(place.slot) for place in self.temporary]
        self.temporary.clear()

    def assign(self, values: Sequence[SSAValue], targets: Sequence[Sequence[Extent]]) -> None:
        """Gives numbers the elements of small arrays, all at once."""
        pairs = [
            (target, source)
            for value, row in zip(values, targets, strict=True)
            for target, source in zip(row, self.elements(value), strict=True)
            if target != source
        ]
        changed = {target for target, _ in pairs}
        for place, (target, source) in enumerate(pairs):
            if source in changed:
                pairs[place] = target, self.compute("copy", (source,))
        for target, source in pairs:
            assert isinstance(target, NumberSlot)
            self.steps.append(Compute(target, "copy", (source,)))

    # ----------------------------------------------------------------------------------------------------------- steps

    def block(self, block: Block) -> Operation:
        """Writes the steps of all ops but the last, which it returns."""
        *ops, last = block.ops
        for op in ops:
            self.step(op)
        return last

    def nested(self, region: Region, end: Callable[[Operation], None]) -> tuple[Step, ...]:
        """The steps of a region; `end` writes those of its terminator."""
        outside, self.steps = self.steps, list[Step]()
        end(self.block(region.block))
        inside, self.steps = self.steps, outside
        return tuple(inside)

    def step(self, op: Operation) -> None:
        if isinstance(op, arith.ConstantOp):
            return
        if isinstance(op, BufferOp):
            self._buffer_op(op)
        elif isinstance(op, arith.IndexCastOp):
            self.extents[op.result] = self[op.input]
        elif (name := NAMES.get(type(op))) is not None or isinstance(op, arith.CmpiOp):
            self._compute(op, name)
        elif (write := STEPS.get(type(op))) is not None:
            write(self, op)
        else:
            raise refusal(STAGE, op, f"the host program has no '{op.name}'")

    def _compute(self, op: Operation, name: str | None) -> None:
        if isinstance(op, arith.CmpiOp):
            name = COMPARISONS.get(op.predicate.value.data)
            if name is None:
                raise refusal(STAGE, op, "the host program has no unsigned comparison")
        assert name is not None
        self.extents[op.results[0]] = self.compute(name, [self[operand] for operand in op.operands])

    def _buffer_op(self, op: BufferOp) -> None:
        if op.name == "lmhlo.constant" and is_dense(value := op.properties.get("value")):
            buffer = op.outputs[0]
            if _is_constant(buffer):
                self.constants.append((self.places[buffer], self._constant(buffer.type, undense(value))))
                return
        if len(op.outputs) == 1 and (target := self.rows.get(op.outputs[0])) is not None:
            if all(is_small(value.type) for value in op.inputs):
                inputs = [self.elements(value) for value in op.inputs]
                if (found := results_of(op, inputs, self.compute)) is not None:
                    target[:] = found
                    return
        self.call(op, op.instruction_name, op.inputs, op.outputs)

    def _constant(self, ir_type: Attribute, value: Array) -> Callable[[], Array]:
        """Returns the elements; those in a file are read when a run needs them."""
        element = tensor_of(ir_type).element_type
        if self._read is None:
            return lambda: value
        return partial(self._read, constant_name(value, element), dtype_of(element).name)

    def call(self, op: CallableOp, name: str, reads: Sequence[SSAValue], writes: Sequence[SSAValue]) -> None:
        read, written = (tuple([self.array(value) for value in values]) for values in (reads, writes))
        self.ops.append(op)
        outward = isinstance(op, BufferOp) and op.HLO is PrintOp
        self.steps.append(Call(len(self.ops) - 1, name, read, written, outward))
        for value, place in zip(writes, written, strict=True):
            if (row := self.rows.get(value)) is not None:
                for element, index in enumerate(np.ndindex(*tensor_of(value.type).get_shape())):
                    row[element] = found = self.number()
                    self.steps.append(Load(found, place, index))
        self.end_of_step()

    def launch(
        self, name: str, values: Sequence[SSAValue], grid: Triple = ONE, block: Triple = ONE, shared: Extent = 0
    ) -> None:
        arguments = [self.array(value) if isinstance(value.type, MemRefType) else self[value] for value in values]
        self.steps.append(Launch(name, grid, block, shared, tuple(arguments)))
        self.end_of_step()

    def move(self, values: Sequence[SSAValue], targets: Sequence[ArrayPlace]) -> None:
        """Moves buffers to slots, all at once."""
        pairs = [(self.array(value).slot, target.slot) for value, target in zip(values, targets, strict=True)]
        self.temporary.clear()
        if pairs := [(source, target) for source, target in pairs if source != target]:
            self.steps.append(Move(tuple(pairs)))


def _place(slot: int, ir_type: Attribute, shape: Sequence[Extent]) -> ArrayPlace:
    return ArrayPlace(slot, dtype_of(tensor_of(ir_type).element_type).name, tuple(shape), space_of(ir_type) != "cpu")


def _is_given_away(buffer: SSAValue) -> bool:
    """Whether a buffer, or a second name of it, leaves its block, so that somebody else may change or free it."""
    for use in buffer.uses:
        match use.operation:
            case lmhlo.TerminatorOp() | lmhlo.WhileOp() | lmhlo.CaseOp() | func.ReturnOp() | scf.YieldOp():
                return True
            case lmhlo.IncRefOp() | memref.CollapseShapeOp() if _is_given_away(use.operation.results[0]):
                return True
            case _:
                pass
    return False


def _alloc(w: _Writer, op: memref.AllocOp | memref.AllocaOp) -> None:
    if is_small(op.memref.type) and is_local(op.memref) and not _is_constant(op.memref):
        w.rows[op.memref] = [0] * prod(tensor_of(op.memref.type).get_shape())
        return
    place = w.place(op.memref, w.shape(op.memref.type, op.dynamic_sizes))
    if not _is_constant(op.memref):
        w.steps.append(Allocate(place))


def _is_constant(buffer: SSAValue) -> bool:
    """Whether the buffer has its elements before the first step: one constant is all that is ever written, and nobody else owns it."""
    written = [
        use.operation for use in buffer.uses if isinstance(use.operation, BufferOp) and buffer in use.operation.outputs
    ]
    if len(written) != 1 or written[0].name != "lmhlo.constant" or _is_given_away(buffer):
        return False
    return is_dense(written[0].properties.get("value"))


def _dealloc(w: _Writer, op: memref.DeallocOp) -> None:
    if not _is_constant(op.memref) and op.memref not in w.rows:
        w.steps.append(Release(w.places[op.memref].slot))


def _inc_ref(w: _Writer, op: lmhlo.IncRefOp) -> None:
    if (row := w.rows.get(op.source)) is not None:
        w.rows[op.view] = row
        return
    w.steps.append(View(w.places[op.source], w.place(op.view, w.shape(op.view.type, op.dynamic_sizes))))


def _collapse(w: _Writer, op: memref.CollapseShapeOp) -> None:
    if (row := w.rows.get(op.src)) is not None:
        w.rows[op.result] = row
        return
    w.places[op.result] = _place(w.places[op.src].slot, op.src.type, FLAT)


def _dim(w: _Writer, op: memref.DimOp) -> None:
    axis = w[op.index]
    if op.source in w.rows and isinstance(axis, int):
        w.extents[op.result] = tensor_of(op.source.type).get_shape()[axis]
        return
    place = w.array(op.source)
    if isinstance(axis, int):
        w.extents[op.result] = place.shape[axis]
        return
    w.extents[op.result] = found = w.number()
    w.steps.append(Dimension(found, place.slot, axis))


def _load(w: _Writer, op: memref.LoadOp) -> None:
    if (row := w.rows.get(op.memref)) is not None:
        at = _position(w, op.memref.type, op.indices)
        found = row[at] if isinstance(at, int) else row[0]
        if not isinstance(at, int):
            for place, element in enumerate(row[1:], 1):
                found = w.compute("select", (w.compute("eq", (at, place)), element, found))
        w.extents[op.res] = found
        return
    w.extents[op.res] = found = w.number()
    w.steps.append(Load(found, w.places[op.memref], tuple(w[index] for index in op.indices)))


def _store(w: _Writer, op: memref.StoreOp) -> None:
    if (row := w.rows.get(op.memref)) is not None:
        at, value = _position(w, op.memref.type, op.indices), w[op.value]
        for place, element in enumerate(row):
            if at == place:
                row[place] = value
            elif not isinstance(at, int):
                row[place] = w.compute("select", (w.compute("eq", (at, place)), value, element))
        return
    w.steps.append(Store(w.places[op.memref], tuple(w[index] for index in op.indices), w[op.value]))


def _position(w: _Writer, ir_type: Attribute, indices: Sequence[SSAValue]) -> Extent:
    """The number of an element of a small array, row major."""
    found: Extent = 0
    for size, index in zip(tensor_of(ir_type).get_shape(), indices, strict=True):
        at = w[index]
        if isinstance(found, int) and isinstance(at, int):
            found = found * size + at
        else:
            found = w.compute("add", (w.compute("multiply", (found, size)), at))
    return found


def _launch(w: _Writer, op: gpu.LaunchFuncOp) -> None:
    shared = 0 if op.dynamicSharedMemorySize is None else w[op.dynamicSharedMemorySize]
    grid = w[op.gridSizeX], w[op.gridSizeY], w[op.gridSizeZ]
    block = w[op.blockSizeX], w[op.blockSizeY], w[op.blockSizeZ]
    w.launch(op.kernel.string_value().split(".")[-1], op.kernelOperands, grid, block, shared)


def _fusion(w: _Writer, op: lmhlo.FusionOp) -> None:
    """One call for a fusion of loops, else each of its ops."""
    if not loops_of(op):
        w.block(op.body.block)
        return
    w.ops.append(op)
    name = op.label
    w.launch(f"{LOOPS}{len(w.ops) - 1}.{name}", captured_by(op))


def _watch(w: _Writer, op: lmhlo.WatchOp) -> None:
    w.launch(f"{WATCH}{op.number.value.data}", op.values)


WATCH = "watch."
"""Beginning of the name of a launch that passes its arguments to a function that watches the run: then follows the number of the place."""
LOOPS = "loops."
"""Beginning of the name of a launch that runs the loops of a fusion: then follow the number of the op and the fusion's name."""


def _while(w: _Writer, op: lmhlo.WhileOp) -> None:
    groups = list(zip(op.res, op.condition.block.args, op.body.block.args, strict=True))
    are_rows = [all(is_small(value.type) and is_local(value) for value in group) for group in groups]
    chosen = [place for place, is_row in enumerate(are_rows) if is_row]
    others = [place for place, is_row in enumerate(are_rows) if not is_row]
    numbers = [[w.number() for _ in range(prod(tensor_of(op.res[place].type).get_shape()))] for place in chosen]
    state = [w.place(op.res[place], tensor_of(op.res[place].type).get_shape()) for place in others]

    def take(values: Sequence[SSAValue]) -> None:
        w.assign([values[place] for place in chosen], numbers)
        w.move([values[place] for place in others], state)

    def enter(values: Sequence[SSAValue]) -> None:
        for place, row in zip(chosen, numbers, strict=True):
            w.rows[values[place]] = list(row)
        for place, held in zip(others, state, strict=True):
            value = values[place]
            w.places[value] = _place(held.slot, value.type, w.read_shape(held.slot, value.type))

    take(op.inits)
    outside, w.steps = w.steps, list[Step]()
    enter(op.condition.block.args)
    last = w.block(op.condition.block)
    assert isinstance(last, lmhlo.ConditionOp)
    holds, condition, w.steps = w[last.holds], tuple(w.steps), list[Step]()
    enter(op.body.block.args)
    take(w.block(op.body.block).operands)
    body, w.steps = tuple(w.steps), outside
    assigned = tuple(number.index for row in numbers for number in row)
    w.steps.append(Loop(_name(op), condition, holds, body, tuple(held.slot for held in state), assigned))
    enter(op.res)


def _case(w: _Writer, op: lmhlo.CaseOp) -> None:
    _branch(w, op, w[op.selector], op.branches, op.res)


def _if(w: _Writer, op: scf.IfOp) -> None:
    _branch(w, op, w[op.cond], (op.false_region, op.true_region), op.output)


def _branch(
    w: _Writer, op: Operation, selector: Extent, regions: Sequence[Region], results: Sequence[SSAValue]
) -> None:
    rows = [place for place, value in enumerate(results) if is_small(value.type) and is_local(value)]
    buffers = [place for place, value in enumerate(results) if isinstance(value.type, MemRefType) and place not in rows]
    others = [place for place, value in enumerate(results) if not isinstance(value.type, MemRefType)]
    state = [w.place(results[place], tensor_of(results[place].type).get_shape()) for place in buffers]
    for place in others:
        w.extents[results[place]] = w.number()
    numbers = [[w.number() for _ in range(prod(tensor_of(results[place].type).get_shape()))] for place in rows]

    def end(last: Operation) -> None:
        w.assign([last.operands[place] for place in rows], numbers)
        w.move([last.operands[place] for place in buffers], state)
        for place in others:
            target = w.extents[results[place]]
            assert isinstance(target, NumberSlot)
            w.steps.append(Compute(target, "copy", (w[last.operands[place]],)))

    branches = tuple(w.nested(region, end) if region.blocks else () for region in regions)
    assigned = [*(w.extents[results[place]] for place in others), *(number for row in numbers for number in row)]
    chosen = tuple(number.index for number in assigned if isinstance(number, NumberSlot))
    w.steps.append(Branch(_name(op), selector, branches, tuple(place.slot for place in state), chosen))
    for place, held in zip(buffers, state, strict=True):
        value = results[place]
        w.places[value] = _place(held.slot, value.type, w.read_shape(held.slot, value.type))
    for place, row in zip(rows, numbers, strict=True):
        w.rows[results[place]] = list(row)


def _name(op: Operation) -> str:
    """A name for messages: that of the first result."""
    return next((result.name_hint for result in op.results if result.name_hint), op.name)


NAMES: Mapping[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.AndIOp: "and",
    arith.CeilDivSIOp: "ceildiv",
    arith.CeilDivUIOp: "ceildiv",
    arith.ExtUIOp: "copy",
    arith.DivUIOp: "floordiv",
    arith.FloorDivSIOp: "floordiv",
    arith.MaxSIOp: "maximum",
    arith.MinSIOp: "minimum",
    arith.MuliOp: "multiply",
    arith.OrIOp: "or",
    arith.RemUIOp: "remainder",
    arith.RemSIOp: "remainder",
    arith.SelectOp: "select",
    arith.SubiOp: "subtract",
}
"""Op on integers -> its row of `program.steps.FUNCTIONS`."""
COMPARISONS = {0: "eq", 1: "ne", 2: "lt", 3: "le", 4: "gt", 5: "ge"}
STEPS: Mapping[type[Operation], Callable[[_Writer, Any], None]] = {
    gpu.LaunchFuncOp: _launch,
    lmhlo.CaseOp: _case,
    lmhlo.FusionOp: _fusion,
    lmhlo.IncRefOp: _inc_ref,
    lmhlo.WatchOp: _watch,
    lmhlo.WhileOp: _while,
    memref.AllocOp: _alloc,
    memref.AllocaOp: _alloc,
    memref.CollapseShapeOp: _collapse,
    memref.DeallocOp: _dealloc,
    memref.DimOp: _dim,
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    scf.IfOp: _if,
}
"""Any other op -> its steps."""
