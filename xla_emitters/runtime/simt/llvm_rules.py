"""`llvm`: addresses, constants, elements, loads and stores, calls; what computes is in the files of `arith` and `math`.

    llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16        address + 2 * i
    llvm.load %q {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>                8 bytes at once; misaligned is an error, as on the GPU
    llvm.call @__nv_tanhf(%x)                                                       as `math.tanh`
    llvm.cond_br %c, ^bb1, ^bb2                                                     lanes may take different branches: `code.Graph`

A pointer is a number (see `memory`), whatever its address space: casts between spaces change nothing. Types lie in memory as
`dialects/mlir/data_layout` says; of elements that share bytes in vectors the first one is in the lowest bits.
Source: LLVM language reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import getitem
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import field_offsets, size_and_alignment, stride_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import InternalError, Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith_rules import constant_kernel, dense_values, integer_conversion
from xla_emitters.runtime.simt.cf_rules import all_lanes, by_case, by_condition
from xla_emitters.runtime.simt.code import (
    BranchRuleResult,
    Compiler,
    FrameSlots,
    FunctionCode,
    Kernel,
    Parts,
    Rules,
    Step,
    Unary,
    first,
    lifted,
    merged,
    write,
)
from xla_emitters.runtime.simt.func_rules import call_step
from xla_emitters.runtime.simt.machine import Frame, Machine, Value
from xla_emitters.runtime.simt.memory import (
    SHARED_START,
    Buffer,
    Space,
    bounds,
    has_no_short_address,
    long_address,
    short_address,
)
from xla_emitters.runtime.simt.scalars import INDEX, Form, form_of, unsigned
from xla_emitters.runtime.simt.vector_rules import (
    Elements,
    columns,
    count_of,
    element_at,
    position_of,
    rows_of,
    shape_of,
    shuffled,
    vector_bits,
    with_elements,
)

RULES = Rules()


RULES.kernel(llvm.FreezeOp, llvm.AddrSpaceCastOp)(first)


@RULES.op(llvm.PtrToIntOp)
def ptrtoint(op: llvm.PtrToIntOp) -> Kernel:
    """An address of shared or private memory also fits into 32 bits: see `memory.short_address`."""
    is_short, convert = form_of(op.output.type).bits == 32, integer_conversion(op, unsigned)

    def run(machine: Machine, addresses: Value) -> Value:
        def short(each: Array) -> Array:
            machine.refuse(op, has_no_short_address(each), "has an address beyond 32 bits: calls nest too deeply")
            return short_address(each)

        return lifted(op, short if is_short else convert)(addresses)

    return run


@RULES.elementwise(llvm.IntToPtrOp)
def inttoptr(op: llvm.IntToPtrOp) -> Unary:
    return long_address if form_of(op.input.type).bits == 32 else integer_conversion(op, unsigned)


@RULES.op(llvm.BitcastOp)
def bitcast(op: llvm.BitcastOp) -> Kernel:
    return vector_bits(op.arg.type, op.result.type)


# ---------------------------------------------------------------------------------------------- constants, elements


@RULES.op(llvm.ConstantOp)
def constant(op: llvm.ConstantOp) -> Callable[[Machine], Value]:
    return _constant(op, op.value, op.result.type)


def _constant(op: llvm.ConstantOp, value: Attribute, ir_type: Attribute) -> Callable[[Machine], Value]:
    """As `constant_kernel`, also for a struct or an array of constants. raises Unsupported for other values."""
    match value, ir_type:
        case llvm.ZeroAttr() | llvm.UndefAttr() | llvm.PoisonAttr(), _:
            whole = filled(ir_type, _zero if isinstance(value, llvm.ZeroAttr) else scalars.poison)
            return lambda machine: whole
        case ArrayAttr(), llvm.LLVMStructType() | llvm.LLVMArrayType():
            is_struct = isinstance(ir_type, llvm.LLVMStructType)
            types = tuple(ir_type.types) if is_struct else (ir_type.type,) * ir_type.size.data
            parts = [_constant(op, part, of) for part, of in zip(value.data, types, strict=True)]
            return lambda machine: tuple(part(machine) for part in parts)
        case _:
            return constant_kernel(op, value, ir_type)


def filled(ir_type: Attribute, fill: Callable[[Form], Array]) -> Value:
    """A value of any type, each scalar in it given by `fill`."""
    match ir_type:
        case VectorType():
            return (fill(form_of(ir_type)),) * count_of(ir_type)
        case llvm.LLVMStructType():
            return tuple(filled(field, fill) for field in ir_type.types)
        case llvm.LLVMArrayType():
            return (filled(ir_type.type, fill),) * ir_type.size.data
        case _:
            return fill(form_of(ir_type))


def _zero(form: Form) -> Array:
    return scalars.constant(form, 0)


def constantly(op: Operation, fill: Callable[[Form], Array]) -> Callable[[Machine], Value]:
    """A kernel that returns a value of the result's type, each scalar in it given by `fill`."""
    value = filled(op.results[0].type, fill)
    return lambda machine: value


RULES.op(llvm.ZeroOp)(partial(constantly, fill=_zero))
RULES.op(llvm.PoisonOp, llvm.UndefOp)(partial(constantly, fill=scalars.poison))


def _place(machine: Machine, op: Operation, number: Array) -> Array | int:
    """The number of an element of a vector, from the last operand."""
    number = unsigned(form_of(op.operands[-1].type), number)
    return position_of(machine, op, shape_of(op.operands[0].type), [scalars.wrap(INDEX, number)])


@RULES.kernel(llvm.ExtractElementOp)
def extractelement(op: Operation, machine: Machine, source: Elements, position: Array) -> Array:
    return element_at(source, _place(machine, op, position), 1)[0]


@RULES.kernel(llvm.InsertElementOp)
def insertelement(op: Operation, machine: Machine, target: Elements, value: Array, position: Array) -> Value:
    return with_elements(target, _place(machine, op, position), (value,))


@RULES.op(llvm.ShuffleVectorOp)
def shufflevector(op: llvm.ShuffleVectorOp) -> Callable[[Machine, Elements, Elements], Value]:
    form, picks = form_of(op.v1.type), [int(pick) for pick in op.mask.get_values()]
    return lambda machine, one, other: shuffled(form, one + other, picks)


@RULES.op(llvm.ExtractValueOp)
def extractvalue(op: llvm.ExtractValueOp) -> Callable[[Machine, Any], Value]:
    position = [int(number) for number in op.position.get_values()]
    return lambda machine, container: reduce(getitem, position, container)


@RULES.kernel(llvm.InsertValueOp)
def insertvalue(op: llvm.InsertValueOp, machine: Machine, container: Value, value: Value) -> Value:
    return _replaced(container, value, [int(number) for number in op.position.get_values()])


def _replaced(container: Any, value: Value, path: Sequence[int]) -> Value:
    if not path:
        return value
    first, *rest = path
    return (*container[:first], _replaced(container[first], value, rest), *container[first + 1 :])


# ---------------------------------------------------------------------------------------------- addresses


@RULES.elementwise(llvm.GEPOp)
def getelementptr(op: llvm.GEPOp) -> Kernel:
    # Each index, a number or an operand, is multiplied by its step in bytes; a field of a struct adds a constant.
    start, steps = 0, list[int]()
    pointee: Attribute = op.elem_type
    for depth, index in enumerate(op.rawConstantIndices.iter_values()):
        if depth == 0:
            stride = stride_of(pointee)
        elif isinstance(pointee, llvm.LLVMStructType):
            start += field_offsets(pointee)[index]
            pointee = pointee.types.data[index]
            continue
        else:
            assert isinstance(pointee, llvm.LLVMArrayType)
            pointee = pointee.type
            stride = stride_of(pointee)
        if index == llvm.DYNAMIC_INDEX:
            steps.append(stride)
        else:
            start += index * stride

    def run(address: Array, *indices: Array) -> Array:
        for index, step in zip(indices, steps, strict=True):
            address = address + index * np.int64(step)
        return address + start if start else address

    return run


# ---------------------------------------------------------------------------------------------- loads and stores


@RULES.op(llvm.LoadOp)
def load(op: llvm.LoadOp) -> Kernel:
    alignment = op.alignment.value.data if op.alignment else size_and_alignment(op.dereferenced_value.type)[1]
    return partial(load_value, op, op.dereferenced_value.type, alignment)


def _fields(ir_type: Attribute, alignment: int) -> list[tuple[Attribute, int, int]] | None:
    """Of a struct or an array at a multiple of `alignment` bytes: type, offset and alignment of each part. None for other types"""
    if isinstance(ir_type, llvm.LLVMStructType):
        parts = list(zip(ir_type.types, field_offsets(ir_type), strict=True))
    elif isinstance(ir_type, llvm.LLVMArrayType):
        stride = stride_of(ir_type.type)
        parts = [(ir_type.type, number * stride) for number in range(ir_type.size.data)]
    else:
        return None
    return [(part, offset, min(alignment, offset & -offset or alignment)) for part, offset in parts]


def load_value(op: Operation, ir_type: Attribute, alignment: int, machine: Machine, address: Array) -> Value:
    """The value of `ir_type` at `address`. raises ExecutionError for an address outside all buffers or misaligned."""
    if (fields := _fields(ir_type, alignment)) is not None:
        return tuple(load_value(op, part, own, machine, address + offset) for part, offset, own in fields)
    form, count = form_of(ir_type), count_of(ir_type)
    check_alignment(machine, op, address, alignment)
    shares_bytes = isinstance(ir_type, VectorType) and form.bits < 8
    unit, units = (np.dtype(np.uint8), -(-count * form.bits // 8)) if shares_bytes else (form.storage, count)
    rows: Array | None = None
    for buffer, lanes in machine.memory.buffers_at(op, address, machine.active):
        part = gather_rows(machine, op, buffer, address - buffer.base, unit, units, alignment, lanes)
        rows = part if rows is None or lanes is None else np.where(lanes[..., None], part, rows)
    assert rows is not None
    if shares_bytes:
        return unpacked(form, count, rows)
    elements = columns(form, rows)
    return elements if isinstance(ir_type, VectorType) else elements[0]


def check_alignment(machine: Machine, op: Operation, address: Array, alignment: int) -> None:
    """raises ExecutionError naming the first active lane whose address is not a multiple of `alignment` bytes."""
    if alignment > 1 and np.bitwise_or.reduce(address, axis=None) & (alignment - 1):
        machine.refuse(op, address & (alignment - 1) != 0, f"uses an address that is not aligned to {alignment} bytes")


def gather_rows(
    machine: Machine,
    op: Operation,
    buffer: Buffer,
    offset: Array,
    element: np.dtype[Any],
    count: int,
    alignment: int,
    lanes: Array | None,
) -> Array:
    """`count` consecutive elements from a byte offset on: (blocks or 1, threads or 1, count)."""
    size = element.itemsize * count
    if _rows_start_at_multiples(buffer, offset, size, lanes):
        return machine.memory.gather(op, buffer, offset // size, element, lanes, count)
    # The alignment is less than the element's size: gather pieces of the alignment's size.
    unit = _piece(buffer, min(alignment, element.itemsize))
    first = offset // unit.itemsize
    parts = [machine.memory.gather(op, buffer, first + k, unit, lanes) for k in range(size // unit.itemsize)]
    return np.ascontiguousarray(np.stack(parts, axis=-1)).view(element)


def _piece(buffer: Buffer, size: int) -> np.dtype[Any]:
    """The type of the pieces that move an access of that alignment; they divide an instance of the buffer."""
    while buffer.origin is not None and buffer.stride % size:
        size //= 2
    return np.dtype(f"u{size}")


def _rows_start_at_multiples(buffer: Buffer, offset: Array, size: int, lanes: Array | None) -> bool:
    if buffer.origin is not None and buffer.stride % size:
        return False
    if size & (size - 1) == 0 and not np.bitwise_or.reduce(offset, axis=None) & (size - 1):
        return True
    inside = offset % size != 0
    return not (inside if lanes is None else inside & lanes).any()


def unpacked(form: Form, count: int, rows: Array) -> Elements:
    """Elements of fewer than 8 bits from rows of bytes, the first in the lowest bits."""
    places = [divmod(number * form.bits, 8) for number in range(count)]
    mask = np.uint8((1 << form.bits) - 1)
    return tuple(scalars.from_bits(form, rows[..., byte] >> np.uint8(shift) & mask) for byte, shift in places)


def packed(form: Form, elements: Elements) -> Array:
    """The inverse of `unpacked`."""
    shape = np.broadcast_shapes(*(element.shape for element in elements))
    rows = np.zeros((*shape, -(-len(elements) * form.bits // 8)), np.uint8)
    for number, element in enumerate(elements):
        byte, shift = divmod(number * form.bits, 8)
        rows[..., byte] |= scalars.to_bits(form, element) << np.uint8(shift)
    return rows


@RULES.op(llvm.StoreOp)
def store(op: llvm.StoreOp) -> Kernel:
    alignment = op.alignment.value.data if op.alignment else size_and_alignment(op.value.type)[1]
    return partial(store_value, op, op.value.type, alignment)


def store_value(
    op: Operation, ir_type: Attribute, alignment: int, machine: Machine, value: Any, address: Array
) -> None:
    """Writes a value of `ir_type` at `address`; the failures are those of `load_value`."""
    if (fields := _fields(ir_type, alignment)) is not None:
        for (part, offset, own), held in zip(fields, value, strict=True):
            store_value(op, part, own, machine, held, address + offset)
        return
    form = form_of(ir_type)
    check_alignment(machine, op, address, alignment)
    if isinstance(ir_type, VectorType):
        rows = packed(form, value) if form.bits < 8 else rows_of(form, value)
    else:
        rows = rows_of(form, (value,))
    for buffer, lanes in machine.memory.buffers_at(op, address, machine.active):
        scatter_rows(machine, op, buffer, address - buffer.base, rows, alignment, lanes)


def scatter_rows(
    machine: Machine, op: Operation, buffer: Buffer, offset: Array, rows: Array, alignment: int, lanes: Array | None
) -> None:
    """The inverse of `gather_rows`."""
    size = rows.itemsize * rows.shape[-1]
    if _rows_start_at_multiples(buffer, offset, size, lanes):
        machine.memory.scatter(op, buffer, offset // size, rows, lanes)
        return
    unit = _piece(buffer, min(alignment, rows.itemsize))
    first, parts = offset // unit.itemsize, rows.view(unit)
    for k in range(parts.shape[-1]):
        machine.memory.scatter(op, buffer, first + k, parts[..., k], lanes)


@RULES.kernel(llvm.AllocaOp)
def alloca(op: llvm.AllocaOp, machine: Machine, count: Array) -> Array:
    """Where threads want different sizes, each has the largest of them: an access beyond its own is not found."""
    stride = stride_of(op.elem_type)
    alignment = max(size_and_alignment(op.elem_type)[1], op.alignment.value.data if op.alignment else 1)
    machine.refuse(op, count < 0, "allocates a negative number of elements")
    _, elements = bounds(count, machine.active)
    buffer = machine.memory.allocate_in_call("an alloca", elements * stride, alignment)
    return scalars.constant(INDEX, buffer.base)


@RULES.control(llvm.AddressOfOp)
def addressof(op: llvm.AddressOfOp, scope: FrameSlots) -> Step:
    name, result = op.global_name.string_value(), scope.slot(op.result)
    global_op = scope.compiler.symbols.get(name)
    if scope.compiler.has_body(name):
        address = scalars.constant(INDEX, scope.compiler.address_of(name))

        def of_function(machine: Machine, frame: Frame) -> None:
            frame[result] = address

        return of_function
    if not isinstance(global_op, llvm.GlobalOp):
        raise Unsupported(f"address of @{name}, which is not a global of the module", stage="simt")

    def run(machine: Machine, frame: Frame) -> None:
        frame[result] = machine.memory.start_of(_buffer_of(machine, name, global_op, scope.compiler))

    return run


_SHARED_ADDRESS_SPACE = 3


def _buffer_of(machine: Machine, name: str, op: llvm.GlobalOp, compiler: Compiler) -> Buffer:
    """The buffer of a global. A region that computes its value runs after that: it may name this global, or those that name this one."""
    is_new = op not in machine.memory.of_op
    buffer = machine.memory.once(op, lambda: _global_buffer(machine, name, op))
    if is_new and op.body.blocks:
        scope = FrameSlots(compiler)
        code = scope.body(op.body.block)
        with machine.only(None):
            (words,) = code.run(machine, [None] * scope.count, ())
        array = op.global_type
        if not (isinstance(array, llvm.LLVMArrayType) and isinstance(words, tuple)):
            raise Unsupported(f"global @{name}, whose value is computed and no array", stage="simt")
        form = form_of(array.type)
        bits = [scalars.to_bits(form, word).reshape(-1) for word in words if isinstance(word, np.ndarray)]
        buffer.data[:] = np.concatenate(bits).view(np.uint8)
    return buffer


def _global_buffer(machine: Machine, name: str, op: llvm.GlobalOp) -> Buffer:
    """Shared memory for a global in address space 3, else memory with the global's value, read-only when it is constant."""
    size, alignment = size_and_alignment(op.global_type)
    if op.alignment:
        alignment = op.alignment.value.data
    if op.addr_space.value.data == _SHARED_ADDRESS_SPACE:
        if not size:
            # Hardware begins it where descriptors of matrices with any swizzle may.
            size, alignment = machine.memory.launch_shared_bytes, max(alignment, SHARED_START)
        buffer = machine.memory.allocate(f"@{name}", Space.SHARED, size, alignment)
        if isinstance(op.value, llvm.ZeroAttr):
            buffer.data.fill(0)
            buffer.is_written = True
        return buffer
    value = op.value
    if isinstance(value, llvm.ZeroAttr) or op.body.blocks:
        data = np.zeros(size, np.uint8)
    elif isinstance(value, StringAttr):
        data = np.frombuffer(value.data.encode(), np.uint8).copy()
    elif isinstance(value, IntegerAttr | FloatAttr):
        form = form_of(op.global_type)
        data = scalars.to_bits(form, scalars.constant(form, value.value.data)).reshape(-1).view(np.uint8)
    elif isa(value, DenseIntOrFPElementsAttr):
        form = form_of(value.get_type())
        data = scalars.to_bits(form, dense_values(form, value)).reshape(-1).view(np.uint8)
    else:
        raise Unsupported(f"global @{name}, whose value is neither numbers nor text", stage="simt")
    return machine.memory.add(f"@{name}", data, alignment, writable=op.constant is None)


# ---------------------------------------------------------------------------------------------- calls, branches


@RULES.control(llvm.CallOp)
def call(op: llvm.CallOp, scope: FrameSlots) -> Step:
    if op.callee is None:
        return _call_of_address(op, scope)
    return call_step(scope, op.callee.string_value(), op.args, op.results)


def _call_of_address(op: llvm.CallOp, scope: FrameSlots) -> Step:
    """A call of the function that begins at an address: lanes with different addresses take turns."""
    (pointer, *inputs), outputs, compiler = scope.slots(op.args), scope.slots(op.results), scope.compiler
    result = op.results[0].type if op.results else llvm.LLVMVoidType()
    called = llvm.LLVMFunctionType([value.type for value in op.args[1:]], result)

    def function_at(machine: Machine, addresses: Array, address: int) -> FunctionCode:
        function = compiler.function_at(address)
        if function is None:
            machine.refuse(op, addresses == address, f"calls address {address:#x}, where no function begins")
            raise InternalError("an address without a function is no lane's", stage="simt")
        wanted = compiler.symbols[function.name]
        if isinstance(wanted, llvm.FuncOp) and wanted.function_type != called:
            what = f"calls @{function.name}, which is {wanted.function_type}, as {called}"
            machine.refuse(op, addresses == address, what)
        return function

    def run(machine: Machine, frame: Frame) -> None:
        addresses, arguments = frame[pointer], [frame[slot] for slot in inputs]
        entered = machine.active
        results: list[Value] | None = None
        try:
            while True:
                address, _ = bounds(addresses, machine.active)
                function, parts = function_at(machine, addresses, address), machine.split(addresses == address)
                lanes, left = (machine.active, None) if isinstance(parts, bool) else parts
                machine.active = lanes
                returned = function.call(machine, arguments)
                results = returned if lanes is None else merged(lanes, returned, results)
                if left is None:
                    break
                machine.active = left
        finally:
            machine.active = entered
        write(frame, outputs, results)

    return run


@RULES.branch(llvm.BrOp)
def branch(op: llvm.BrOp) -> BranchRuleResult:
    return (), all_lanes, [op.arguments]


@RULES.branch(llvm.CondBrOp)
def conditional_branch(op: llvm.CondBrOp) -> BranchRuleResult:
    return (op.cond,), by_condition, [op.then_arguments, op.else_arguments]


@RULES.branch(llvm.SwitchOp)
def switch(op: llvm.SwitchOp) -> BranchRuleResult:
    form = form_of(op.value.type)
    wanted = [scalars.constant(form, number) for number in op.numbers]
    return (op.value,), partial(by_case, wanted), [op.default_operands, *(values for _, values in op.ways)]


@RULES.branch(llvm.UnreachableOp)
def unreachable(op: llvm.UnreachableOp) -> BranchRuleResult:
    def decide(machine: Machine) -> Parts:
        machine.refuse(op, np.ones((1, 1), bool), "is reached")
        return []

    return (), decide, []
