"""From a program on buffers to the steps of a `Program`: one step an op, whatever the sizes.

    %0 = memref.dim %x, %c0                                          (n0: a size of the parameter x)
    %y = memref.alloc(%0) : memref<?xf32, "gpu">          ->         Allocate a1 f32[n0]
    %1 = arith.addi %0, %c63                                         Compute n1 = add n0, 63
    gpu.launch_func @k blocks in (%1, 1, 1) args(%x, %y)             Launch k grid (n1, 1, 1): a0, a1
    return %y                                                        results: a1

Taken at any stage from `lmhlo` to `kernels`: an op on buffers is a `Call`, an outlined kernel and the loops of a fusion a `Launch`. A
buffer is a slot; `lmhlo.inc_ref` gives its memory a second slot. A loop's carried buffers and a branch's results have slots of their own,
to which memory moves. Constants that nobody changes have memory before the first step.
Integers of the IR are numbers; `arith.index_cast` keeps them, as sizes fit every type that a program gives them.
Source: docs/reference/4 2.2, 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from xdsl.dialects import arith, func, gpu, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.dynamic_shape_ops import PrintOp
from xla_emitters.dialects.lmhlo import DONATED, BufferOp, space_of, tensor_of
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.errors import UsageError
from xla_emitters.host.disc_convert_const_to_ral import constant_name
from xla_emitters.kernels.captures import captured_by, loops_of
from xla_emitters.program.sized import (
    Allocate,
    Branch,
    Call,
    Compute,
    Dimension,
    Extent,
    Launch,
    Load,
    Loop,
    Move,
    Number,
    Place,
    Release,
    Step,
    Store,
    View,
)
from xla_emitters.program.sized_steps import Constants, SizedSteps
from xla_emitters.rewrite.kernel_pass import refusal

STAGE = "host"
FLAT = (-1,)
"""The shape of an array as one dimension."""
CallableOp: TypeAlias = BufferOp | lmhlo.FusionOp


def steps_of_buffers(module: ModuleOp, constants: Callable[[str, str], Array] | None = None) -> SizedSteps:
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
        self.places = dict[SSAValue, Place]()
        self.extents = dict[SSAValue, Extent]()
        self.slots = self.numbers = 0
        self.constants = list[tuple[Place, Callable[[], Array]]]()
        self.names = dict[int, str]()
        self.ops = list[CallableOp]()

    def program(self, function: func.FuncOp) -> SizedSteps:
        parameters = [self._parameter(argument) for argument in function.args]
        (block,) = function.body.blocks
        last = self.block(block)
        attributes = enumerate(function.arg_attrs or ())
        return SizedSteps(
            tuple(parameters),
            tuple(self.places[value] for value in last.operands),
            tuple(self.steps),
            self.slots,
            self.numbers,
            Constants(self.constants),
            self.names,
            tuple(self.ops),
            frozenset(number for number, held in attributes if DONATED in held.data),
        )

    # ---------------------------------------------------------------------------------------------------------- values

    def number(self) -> Number:
        self.numbers += 1
        return Number(self.numbers - 1)

    def place(self, value: SSAValue, shape: Sequence[Extent]) -> Place:
        """A new slot for a buffer."""
        self.places[value] = made = _place(self.slots, value.type, shape)
        if value.name_hint:
            self.names[self.slots] = value.name_hint
        self.slots += 1
        return made

    def _parameter(self, value: SSAValue) -> Place:
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

    def triple(self, x: SSAValue, y: SSAValue, z: SSAValue) -> tuple[Extent, Extent, Extent]:
        return self[x], self[y], self[z]

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
        self.extents[op.results[0]] = found = self.number()
        self.steps.append(Compute(found, name, tuple(self[operand] for operand in op.operands)))

    def _buffer_op(self, op: BufferOp) -> None:
        if op.name == "lmhlo.constant" and is_dense(value := op.properties.get("value")):
            buffer = op.outputs[0]
            if _is_constant(buffer):
                self.constants.append((self.places[buffer], self._constant(buffer.type, undense(value))))
                return
        self.call(op, op.instruction_name, op.inputs, op.outputs)

    def _constant(self, ir_type: Attribute, value: Array) -> Callable[[], Array]:
        """Returns the elements; those in a file are read when a run needs them."""
        element = tensor_of(ir_type).element_type
        if self._read is None:
            return lambda: value
        return partial(self._read, constant_name(value, element), dtype_of(element).name)

    def call(self, op: CallableOp, name: str, reads: Sequence[SSAValue], writes: Sequence[SSAValue]) -> None:
        read, written = (tuple(self.places[value] for value in values) for values in (reads, writes))
        self.ops.append(op)
        outward = isinstance(op, BufferOp) and op.HLO is PrintOp
        self.steps.append(Call(len(self.ops) - 1, name, read, written, outward))

    def move(self, values: Sequence[SSAValue], targets: Sequence[Place]) -> None:
        """Moves buffers to slots, all at once."""
        pairs = [(self.places[value].slot, target.slot) for value, target in zip(values, targets, strict=True)]
        if pairs := [(source, target) for source, target in pairs if source != target]:
            self.steps.append(Move(tuple(pairs)))


def _place(slot: int, ir_type: Attribute, shape: Sequence[Extent]) -> Place:
    return Place(slot, dtype_of(tensor_of(ir_type).element_type).name, tuple(shape), space_of(ir_type) != "cpu")


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


def _alloc(w: _Writer, op: Operation) -> None:
    assert isinstance(op, memref.AllocOp | memref.AllocaOp)
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


def _dealloc(w: _Writer, op: Operation) -> None:
    assert isinstance(op, memref.DeallocOp)
    if not _is_constant(op.memref):
        w.steps.append(Release(w.places[op.memref].slot))


def _inc_ref(w: _Writer, op: Operation) -> None:
    assert isinstance(op, lmhlo.IncRefOp)
    w.steps.append(View(w.places[op.source], w.place(op.view, w.shape(op.view.type, op.dynamic_sizes))))


def _collapse(w: _Writer, op: Operation) -> None:
    assert isinstance(op, memref.CollapseShapeOp)
    w.places[op.result] = _place(w.places[op.src].slot, op.src.type, FLAT)


def _dim(w: _Writer, op: Operation) -> None:
    assert isinstance(op, memref.DimOp)
    place, axis = w.places[op.source], w[op.index]
    if isinstance(axis, int):
        w.extents[op.result] = place.shape[axis]
        return
    w.extents[op.result] = found = w.number()
    w.steps.append(Dimension(found, place.slot, axis))


def _load(w: _Writer, op: Operation) -> None:
    assert isinstance(op, memref.LoadOp)
    w.extents[op.res] = found = w.number()
    w.steps.append(Load(found, w.places[op.memref], tuple(w[index] for index in op.indices)))


def _store(w: _Writer, op: Operation) -> None:
    assert isinstance(op, memref.StoreOp)
    w.steps.append(Store(w.places[op.memref], tuple(w[index] for index in op.indices), w[op.value]))


def _launch(w: _Writer, op: Operation) -> None:
    assert isinstance(op, gpu.LaunchFuncOp)
    shared = 0 if op.dynamicSharedMemorySize is None else w[op.dynamicSharedMemorySize]
    arguments = (w.places[v] if isinstance(v.type, MemRefType) else w[v] for v in op.kernelOperands)
    grid = w.triple(op.gridSizeX, op.gridSizeY, op.gridSizeZ)
    block = w.triple(op.blockSizeX, op.blockSizeY, op.blockSizeZ)
    w.steps.append(Launch(op.kernel.string_value().split(".")[-1], grid, block, shared, tuple(arguments)))


def _fusion(w: _Writer, op: Operation) -> None:
    """One call for a fusion of loops, else each of its ops."""
    assert isinstance(op, lmhlo.FusionOp)
    if not loops_of(op):
        w.block(op.body.block)
        return
    w.ops.append(op)
    name = op.fusion_name.data if op.fusion_name else "fusion"
    captured = tuple(w.places[v] if isinstance(v.type, MemRefType) else w[v] for v in captured_by(op))
    w.steps.append(Launch(f"{LOOPS}{len(w.ops) - 1}.{name}", (1, 1, 1), (1, 1, 1), 0, captured))


def _watch(w: _Writer, op: Operation) -> None:
    assert isinstance(op, lmhlo.WatchOp)
    values = tuple(w.places[v] if isinstance(v.type, MemRefType) else w[v] for v in op.values)
    w.steps.append(Launch(f"{WATCH}{op.number.value.data}", (1, 1, 1), (1, 1, 1), 0, values))


WATCH = "watch."
"""Beginning of the name of a launch that passes its arguments to a function that watches the run: then follows the number of the place."""
LOOPS = "loops."
"""Beginning of the name of a launch that runs the loops of a fusion: then follow the number of the op and the fusion's name."""


def _while(w: _Writer, op: Operation) -> None:
    assert isinstance(op, lmhlo.WhileOp)
    state = [w.place(result, tensor_of(result.type).get_shape()) for result in op.res]
    w.move(op.inits, state)

    def enter(region: Region) -> None:
        for argument, place in zip(region.block.args, state, strict=True):
            w.places[argument] = _place(place.slot, argument.type, w.read_shape(place.slot, argument.type))

    outside, w.steps = w.steps, list[Step]()
    enter(op.condition)
    last = w.block(op.condition.block)
    assert isinstance(last, lmhlo.ConditionOp)
    holds, condition, w.steps = w[last.holds], tuple(w.steps), list[Step]()
    enter(op.body)
    w.move(w.block(op.body.block).operands, state)
    body, w.steps = tuple(w.steps), outside
    w.steps.append(Loop(_name(op), condition, holds, body, tuple(place.slot for place in state)))
    for result, place in zip(op.res, state, strict=True):
        w.places[result] = _place(place.slot, result.type, w.read_shape(place.slot, result.type))


def _case(w: _Writer, op: Operation) -> None:
    assert isinstance(op, lmhlo.CaseOp)
    _branch(w, op, w[op.selector], op.branches, op.res)


def _if(w: _Writer, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    _branch(w, op, w[op.cond], (op.false_region, op.true_region), op.output)


def _branch(
    w: _Writer, op: Operation, selector: Extent, regions: Sequence[Region], results: Sequence[SSAValue]
) -> None:
    buffers = [(number, result) for number, result in enumerate(results) if isinstance(result.type, MemRefType)]
    others = [(number, result) for number, result in enumerate(results) if not isinstance(result.type, MemRefType)]
    state = [w.place(result, tensor_of(result.type).get_shape()) for _, result in buffers]
    for _, result in others:
        w.extents[result] = w.number()

    def end(last: Operation) -> None:
        w.move([last.operands[number] for number, _ in buffers], state)
        for number, result in others:
            target = w.extents[result]
            assert isinstance(target, Number)
            w.steps.append(Compute(target, "copy", (w[last.operands[number]],)))

    branches = tuple(w.nested(region, end) if region.blocks else () for region in regions)
    assigned = [w.extents[result] for _, result in others]
    chosen = tuple(number.index for number in assigned if isinstance(number, Number))
    w.steps.append(Branch(_name(op), selector, branches, tuple(place.slot for place in state), chosen))
    for (_, result), place in zip(buffers, state, strict=True):
        w.places[result] = _place(place.slot, result.type, w.read_shape(place.slot, result.type))


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
"""Op on integers -> its row of `program.sized.FUNCTIONS`."""
COMPARISONS = {0: "eq", 1: "ne", 2: "lt", 3: "le", 4: "gt", 5: "ge"}
STEPS: Mapping[type[Operation], Callable[[_Writer, Operation], None]] = {
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
