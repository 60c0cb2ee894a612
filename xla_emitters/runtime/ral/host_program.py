"""Runs a host program in IR: the executor runs its function as one thread, which calls the runtime by name.

    program = HostProgram(module, kernels)          after any pass on the host, up to `disc-rewrite-ral-api`
    program.run_on_garbage([x])                     -> [y]
    program.run_on_garbage([x], log := [])          log[1]: 'alloc___gpu___pvoid_i64_i64___m2df32 3 4'

Arithmetic, branches, loads and stores are the executor's own. A buffer is memory of the executor over a NumPy array; each op on buffers
that remains is the op's own function (`buffer_ops`), a call by name is one of `ral_calls`, a launch goes to the kernels. A call counts the
names of its buffers: one that is freed is empty from then on, so that a later use is out of bounds. Arguments and constants are never
freed. What is left at the end, freed twice, or returned while it has two names is a bug of a pass.

A line of the log: the full name of a call, then its sizes, numbers and text; "[3,4]" for a buffer.
Source: docs/reference/4 4.1, 4.5; BladeDISC's runtime abstraction layer (https://github.com/alibaba/BladeDISC).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, StringAttr
from xdsl.ir import Attribute, SSAValue

from xla_emitters.algebra.shape_maps import row_major_strides
from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.disc_ral import (
    CONTEXT,
    DispatchOp,
    RecvInputOp,
    SendOutputOp,
    StreamOp,
    is_marker,
    is_runtime_value,
    ral_name,
)
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import DONATED, BufferOp, space_of, tensor_of
from xla_emitters.dialects.lmhlo_dialect import BUFFER_OPS
from xla_emitters.dialects.mlir import func, gpu, memref
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.dynamic.host.disc_convert_const_to_ral import constants_of
from xla_emitters.dynamic.host.disc_rewrite_ral_api import RECEIVE, SEND, name_buffer_ops
from xla_emitters.errors import DataError, ExecutionError, InternalError, UsageError
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.captures import captured_by, loops_of
from xla_emitters.runtime.loaded import garbage
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.ral.constants_file import StoredConstants
from xla_emitters.runtime.ral.ral_calls import function_of_call
from xla_emitters.runtime.simt import func_rules, memref_rules
from xla_emitters.runtime.simt.code import Compiler, FrameSlots, FunctionCode, Kernel, Rules, Step, symbols_of
from xla_emitters.runtime.simt.execute import RULES
from xla_emitters.runtime.simt.fusion_loops import bind, compile_loops
from xla_emitters.runtime.simt.machine import Frame, Machine, Tensor, Value
from xla_emitters.runtime.simt.memory import Buffer, Memory
from xla_emitters.runtime.simt.shared_calls import SharedFunctions
from xla_emitters.support.limits import refuse_beyond_limit

STAGE = "run"
ONE_THREAD = LaunchDimensions((1, 1, 1), (1, 1, 1))
NOTHING: Value = ()
"""The value of a context, and of a stream."""


class HostProgram:
    """A host program; see the file's head.

    module   with the constants of its calls, or the name of the file that holds them
    kernels  that it launches; None for a program without any
    donated  indices of the arguments that the program owns
    raises   UsageError if there is no function; Unsupported for an op or a call by name that nothing here computes
    """

    def __init__(self, module: ModuleOp, kernels: Kernels | None = None) -> None:
        main = next((op for op in module.ops if isinstance(op, func.FuncOp) and not op.is_declaration), None)
        if main is None:
            raise UsageError(
                "the module has no function on buffers", stage=STAGE, help="run disc-legalize-to-lhlo first"
            )
        self.constants, self.kernels = StoredConstants(constants_of(module)), kernels
        self.donated = _donated(main)
        self._main = main
        names = {op: name for name, op in name_buffer_ops(module).items()}
        compiler = _Compiler(HOST_RULES, symbols_of(module), SharedFunctions({}), names=names)
        self._function: FunctionCode = compiler.function(main.sym_name.data)

    def run_on_garbage(self, inputs: Sequence[Array], log: list[str] | None = None) -> list[Array]:
        """The results, on memory in which nothing is right by chance: NaN, -1, True. raises DataError, ExecutionError

        inputs  arrays in C order, in the machine's byte order, of the right types
        log     gets a line for each call by name
        """
        memory = Memory(ONE_THREAD, np.zeros(1, np.int64))
        call = HostCall(ONE_THREAD, memory.blocks, memory, program=self, inputs=inputs, log=log)
        given = [argument for argument in self._main.args if not is_runtime_value(argument)]
        arrays = iter([call.receive(number, argument) for number, argument in enumerate(given)])
        arguments = [NOTHING if is_runtime_value(argument) else next(arrays) for argument in self._main.args]
        with np.errstate(all="ignore"):
            returned = self._function.call(call, arguments)
        for number, (value, ir_type) in enumerate(zip(returned, self._main.function_type.outputs.data, strict=True)):
            assert isinstance(value, Tensor)
            call.send(number, value, ir_type)
        call.end()
        return [call.outputs[number] for number in range(len(call.outputs))]


def _donated(function: func.FuncOp) -> frozenset[int]:
    """The numbers of the arguments that the program owns, before and after it takes a context."""
    said = {number for number, attributes in enumerate(function.arg_attrs or ()) if DONATED in attributes.data}
    received = (op for op in function.walk() if isinstance(op, RecvInputOp) and DONATED in op.attributes)
    return frozenset(said | {op.number.value.data for op in received})


@dataclass
class _Compiler(Compiler):
    """names   op on buffers -> the name by which a library would find it"""

    names: Mapping[BufferOp, str] = field(default_factory=dict[BufferOp, str])


@dataclass
class HostCall(Machine):
    """One call of a host program.

    names    number of a buffer -> how many names of it are not freed yet
    owned    buffers that the call allocated, or was given for good
    bytes    of these, now
    outputs  results by number; received, constants: arguments and constants that were read
    """

    program: HostProgram = field(kw_only=True)
    inputs: Sequence[Array] = ()
    log: list[str] | None = None
    outputs: dict[int, Array] = field(default_factory=dict[int, Array])
    names: dict[int, int] = field(default_factory=dict[int, int])
    owned: set[int] = field(default_factory=set[int])
    bytes: int = 0
    received: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    constants: dict[DispatchOp, Value] = field(default_factory=dict[DispatchOp, Value])

    def said(self, name: str, shown: Sequence[object]) -> None:
        """Logs a call."""
        if self.log is not None:
            self.log.append(" ".join((name, *map(str, shown))))

    # ------------------------------------------------------------------------------------------ arguments, results

    def receive(self, number: int, value: SSAValue) -> Tensor:
        """The argument of that number; `value` is its name in the program. raises DataError where its type does not fit"""
        if number not in self.received:
            found = bind(self, self.inputs[number], value.type, value.name_hint or f"p{number}")
            assert isinstance(found, Tensor)
            self.received[number] = found
            if number in self.program.donated:
                self._own(found.buffer)
        return self.received[number]

    def send(self, number: int, value: Tensor, ir_type: Attribute) -> None:
        """Makes a buffer the result of that number. raises InternalError for one that is not the call's, or has another name"""
        buffer = value.buffer.number
        if buffer not in self.owned or self.names[buffer] != 1:
            raise InternalError("a result is not a buffer of its own", stage=STAGE)
        self.outputs[number] = array_of(value, ir_type)
        self._forget(value.buffer)

    # ------------------------------------------------------------------------------------------ buffers

    def allocate(self, ir_type: Attribute, shape: tuple[int, ...], name: str, *, is_owned: bool = True) -> Tensor:
        """A buffer with all bits set. raises DataError for a negative size, and beyond the limit on memory"""
        kind = dtype_of(tensor_of(ir_type).element_type).numpy
        if any(size < 0 for size in shape):
            raise DataError(f"%{name}: a size of {list(shape)} is negative", stage=STAGE)
        refuse_beyond_limit(shape, kind.itemsize, kind.name, f"%{name}", self.bytes)
        try:
            made = bind(self, garbage(shape, kind), ir_type, name)
        except (ValueError, MemoryError) as error:
            raise DataError(f"out of memory: %{name} of {list(shape)} {kind.name}", stage=STAGE) from error
        assert isinstance(made, Tensor)
        if is_owned:
            self._own(made.buffer)
        return made

    def share(self, value: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Another name of a buffer, in another shape. raises DataError if that has another number of elements"""
        if prod(shape) != prod(value.shape) or any(size < 0 for size in shape):
            raise DataError(f"no reshape of {list(value.shape)} to {list(shape)}: the elements differ", stage=STAGE)
        number = value.buffer.number
        self.names[number] = self.names.get(number, 0) + 1
        return replace(value, shape=shape, strides=row_major_strides(shape))

    def free(self, value: Tensor) -> None:
        """Ends a name of a buffer; the last one frees it. raises InternalError for a buffer that has no name of this call"""
        buffer = value.buffer
        if not self.names.get(buffer.number):
            raise InternalError(f"{buffer.name} is freed, and the call does not own it", stage=STAGE)
        self.names[buffer.number] -= 1
        if not self.names[buffer.number] and buffer.number in self.owned:
            self._forget(buffer)
            buffer.data, buffer.size, buffer.name = np.empty(0, np.uint8), 0, f"{buffer.name} (freed)"

    def _own(self, buffer: Buffer) -> None:
        self.names[buffer.number] = 1
        self.owned.add(buffer.number)
        self.bytes += buffer.size

    def _forget(self, buffer: Buffer) -> None:
        self.names.pop(buffer.number)
        self.owned.remove(buffer.number)
        self.bytes -= buffer.size

    def end(self) -> None:
        """raises InternalError if a buffer has a name that was not freed"""
        left = [self.memory.buffers[number].name for number, names in self.names.items() if names]
        if left:
            raise InternalError(f"{len(left)} buffers were not freed, the first is {left[0]}", stage=STAGE)


def array_of(value: Tensor, ir_type: Attribute) -> Array:
    """The elements of a buffer, in their NumPy type: no copy. raises ExecutionError for one that was freed"""
    kind, buffer = dtype_of(tensor_of(ir_type).element_type).numpy, value.buffer
    if buffer.size != prod(value.shape) * kind.itemsize:
        raise ExecutionError(f"a call uses {buffer.name}", stage=STAGE)
    return buffer.data.view(kind).reshape(value.shape)


def python_value(value: Value, ir_type: Attribute) -> Any:
    """What a library or a kernel takes for a value: an array for a buffer, else a number."""
    if isinstance(value, Tensor):
        return array_of(value, ir_type)
    assert isinstance(value, np.ndarray)
    return value.item()


def sizes_of(ir_type: Attribute, unknown: Sequence[Array]) -> tuple[int, ...]:
    """The sizes of a buffer; unknown ones from `unknown`."""
    left = iter(unknown)
    return tuple(size if size >= 0 else int(next(left).item()) for size in tensor_of(ir_type).get_shape())


def _shown(values: Sequence[Value]) -> list[str]:
    """Buffers, numbers, for a line of the log."""
    shown = list[str]()
    for value in values:
        if isinstance(value, Tensor):
            shown.append(f"[{','.join(map(str, value.shape))}]")
        elif isinstance(value, np.ndarray):
            shown.append(str(int(value.item())))
    return shown


# ------------------------------------------------------------------------------------------------------------- memory

HOST_RULES = Rules(RULES)
"""The executor's rules, with those of a host program."""


@HOST_RULES.op(memref.AllocOp, memref.AllocaOp)
def allocate(op: memref.AllocOp | memref.AllocaOp) -> Kernel:
    """A buffer of the host is logged as the call that it becomes; one on the stack is none."""
    ir_type, name, is_owned = op.memref.type, op.memref.name_hint or "buffer", isinstance(op, memref.AllocOp)
    sizes = [IndexType() for _ in tensor_of(ir_type).get_shape()]
    called = ral_name("alloc", space_of(ir_type) or "cpu", [CONTEXT, *sizes], [ir_type])

    def run(call: HostCall, *unknown: Array) -> Tensor:
        shape = sizes_of(ir_type, unknown)
        if is_owned:
            call.said(called, shape)
        return call.allocate(ir_type, shape, name, is_owned=is_owned)

    return run


@HOST_RULES.op(memref.DeallocOp)
def deallocate(op: memref.DeallocOp) -> Kernel:
    called = ral_name("dealloc", space_of(op.memref.type) or "cpu", [CONTEXT, op.memref.type], [])

    def run(call: HostCall, value: Tensor) -> None:
        call.said(called, _shown([value]))
        call.free(value)

    return run


@HOST_RULES.op(memref.CollapseShapeOp)
def collapse(op: memref.CollapseShapeOp) -> Kernel:
    """To one dimension at unknown sizes too."""
    assert isa(op.result.type, MemRefType[Attribute])
    if op.result.type.get_num_dims() != 1:
        return memref_rules.reshape(op)

    def run(call: HostCall, value: Tensor) -> Tensor:
        return replace(value, shape=(prod(value.shape),), strides=(1,))

    return run


@HOST_RULES.kernel(lmhlo.IncRefOp)
def share(op: lmhlo.IncRefOp, call: HostCall, value: Tensor, *unknown: Array) -> Tensor:
    return call.share(value, sizes_of(op.view.type, unknown))


# -------------------------------------------------------------------------------------------------------- ops on buffers


@HOST_RULES.control(*BUFFER_OPS.values())
def buffer_op(op: BufferOp, scope: FrameSlots) -> Step:
    run, types = function_of(op), [value.type for value in op.operands]
    slots = scope.slots(op.operands)
    assert isinstance(scope.compiler, _Compiler)
    device = next((space for value in reversed(op.operands) if (space := space_of(value.type))), "cpu")
    called = ral_name(scope.compiler.names[op], device, [CONTEXT, *types], [])

    def step(call: HostCall, frame: Frame) -> None:
        values = [frame[slot] for slot in slots]
        call.said(called, _shown(values))
        call.memory.changes += 1
        run(*map(array_of, values, types))

    return step  # type: ignore[return-value]


@HOST_RULES.control(lmhlo.FusionOp)
def fusion(op: lmhlo.FusionOp, scope: FrameSlots) -> Step:
    """The loops of a fusion are a launch; without loops it is its ops, one after the other."""
    if not loops_of(op):
        return scope.body(op.body.block).run_steps
    captured, loops = captured_by(op), compile_loops(op)
    slots, types = scope.slots(captured), [value.type for value in captured]

    def step(machine: Machine, frame: Frame) -> None:
        machine.memory.changes += 1
        loops(*(python_value(frame[slot], ir_type) for slot, ir_type in zip(slots, types, strict=True)))

    return step


@HOST_RULES.kernel(gpu.LaunchFuncOp)
def launch(op: gpu.LaunchFuncOp, call: HostCall, *values: Value) -> None:
    name = op.kernel.string_value().split(".")[-1]
    assert op.asyncToken is None
    assert op.clusterSizeX is None
    types = [value.type for value in op.kernelOperands]
    has_shared = op.dynamicSharedMemorySize is not None
    numbers = [int(python_value(value, IndexType())) for value in values[: 6 + has_shared]]
    launched(call, name, numbers[:6], numbers[6] if has_shared else 0, values[6 + has_shared :], types)


def launched(
    call: HostCall,
    name: str,
    sizes: Sequence[int],
    shared_bytes: int,
    values: Sequence[Value],
    types: Sequence[Attribute],
) -> None:
    """Launches a kernel, unless its grid has no blocks. `sizes` are of the grid and of a block, in x, y, z"""
    if (kernels := call.program.kernels) is None:
        raise InternalError(f"no kernel '{name}': the program was loaded without kernels", stage=STAGE)
    x, y, z, *block = sizes
    call.memory.changes += 1
    if x and y and z:
        kernels.launch(
            name, (x, y, z), (block[0], block[1], block[2]), shared_bytes, [*map(python_value, values, types)]
        )


# ---------------------------------------------------------------------------------------------------- calls of the runtime


@HOST_RULES.control(func.CallOp)
def called(op: func.CallOp, scope: FrameSlots) -> Step:
    """A call that marks a buffer does nothing."""
    return (lambda machine, frame: None) if is_marker(op) else func_rules.call(op, scope)


@HOST_RULES.kernel(StreamOp)
def stream(op: StreamOp, call: HostCall, context: Value) -> Value:
    return NOTHING


@HOST_RULES.op(RecvInputOp)
def receive(op: RecvInputOp) -> Kernel:
    number, ir_type = op.number.value.data, op.buffer.type
    name = ral_name(RECEIVE, space_of(ir_type) or "cpu", [CONTEXT, op.number.type], [ir_type])

    def run(call: HostCall, context: Value) -> Tensor:
        call.said(name, [number])
        return call.receive(number, op.buffer)

    return run


@HOST_RULES.op(SendOutputOp)
def send(op: SendOutputOp) -> Kernel:
    number, ir_type = op.number.value.data, op.buffer.type
    name = ral_name(SEND, space_of(ir_type) or "cpu", [CONTEXT, op.number.type, ir_type], [])

    def run(call: HostCall, context: Value, value: Tensor) -> None:
        call.said(name, [number, *_shown([value])])
        call.send(number, value, ir_type)

    return run


@HOST_RULES.control(DispatchOp)
def dispatch(op: DispatchOp, scope: FrameSlots) -> Step:
    """A call by name."""
    make = OF_THE_PROGRAM.get(op.call.data)
    run = _on_arrays(op) if make is None else partial(make, op)
    slots, results = scope.slots(op.arguments), scope.slots(op.res)
    name, config = op.full_name, _config_shown(op)

    def step(call: HostCall, frame: Frame) -> None:
        values = [frame[slot] for slot in slots]
        call.said(name, [*_shown(values), *config])
        call.memory.changes += 1
        found = run(call, *values)
        if results:
            frame[results[0]] = found

    return step  # type: ignore[return-value]


def _config_shown(op: DispatchOp) -> list[str]:
    if op.config is None:
        return []
    return [op.config.data if isinstance(op.config, StringAttr) else str(list(integers(op.config)))]


def _on_arrays(op: DispatchOp) -> Callable[..., None]:
    """A function of the library, which takes the buffers of the call."""
    function, types = function_of_call(op), [value.type for value in op.arguments]

    def run(call: HostCall, *values: Value) -> None:
        function(
            *[array_of(value, held) for value, held in zip(values, types, strict=True) if isinstance(value, Tensor)]
        )

    return run


def _alloc(op: DispatchOp, call: HostCall, context: Value, *sizes: Array) -> Tensor:
    ir_type, name = op.res[0].type, op.res[0].name_hint or "buffer"
    return call.allocate(ir_type, tuple([int(size.item()) for size in sizes]), name)


def _dealloc(op: DispatchOp, call: HostCall, context: Value, value: Tensor) -> None:
    call.free(value)


def _inc_ref(op: DispatchOp, call: HostCall, context: Value, value: Tensor, *sizes: Array) -> Tensor:
    return call.share(value, tuple([int(size.item()) for size in sizes]))


def _constant(op: DispatchOp, call: HostCall, context: Value, stream: Value, number: Array) -> Value:
    """A constant is memory that nothing may write."""
    assert isinstance(op.config, StringAttr)
    text, ir_type = op.config.data, op.res[0].type
    kind = dtype_of(tensor_of(ir_type).element_type).numpy
    if op not in call.constants:
        found = call.program.constants.get(text, kind)
        call.constants[op] = bind(call, found, ir_type, op.res[0].name_hint or "constant")
    return call.constants[op]


def _kernel_launch(op: DispatchOp, call: HostCall, context: Value, stream: Value, *values: Value) -> None:
    assert isinstance(op.config, StringAttr)
    name, types = op.config.data, [value.type for value in op.arguments[9:]]
    numbers = [int(python_value(value, IndexType())) for value in values[:7]]
    launched(call, name, numbers[:6], numbers[6], values[7:], types)


OF_THE_PROGRAM: Mapping[str, Kernel] = {
    "alloc": _alloc,
    "dealloc": _dealloc,
    "inc_ref": _inc_ref,
    "ral_const": _constant,
    "ral_kernel_launch": _kernel_launch,
}
"""Name of a call that concerns the program's own memory or kernels -> its function, which takes the op in front."""
