"""PTX to IR: the llvm and nvvm dialects, one kernel a module.

    .visible .entry scale(.param .u64 .ptr .align 16 x)      llvm.func @scale(%0: !llvm.ptr {llvm.align = 16}) attributes {nvvm.kernel}
    mul.rn.f32 %r2, %r1, 0f40000000;                          %r2 = llvm.fmul %r1, %c : f32              loc("scale.ptx":9:2)

Registers become SSA values (`flow`), instructions the ops of their rows (`rows`). A kernel's functions are raised with it; variables
that it uses become globals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import gcd, prod
from typing import Protocol, TypeVar

from xdsl.dialects import builtin
from xdsl.dialects.builtin import i1, i8, i32, i64
from xdsl.ir import Attribute, Block, Region

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.errors import DataError, ParseError, Unsupported
from xla_emitters.support.source import Source
from xla_emitters.text.ptx import (
    arithmetic,
    asynchronous,
    bodies,
    conversions,
    matrices,
    memory_rows,
    tensor_memory,
    threads,
)
from xla_emitters.text.ptx.flow import Flow, PtxBlock
from xla_emitters.text.ptx.op_builder import (
    POINTER,
    SPACES,
    TYPES,
    OpBuilder,
    aggregate,
    bits_of_float,
    float_of,
    hint_of,
    pointer_type,
)
from xla_emitters.text.ptx.products_in_flight import LOAD, unwaited_registers
from xla_emitters.text.ptx.rows import BITS, CARRY, EXITED, emit, row_of
from xla_emitters.text.ptx.syntax import (
    BUILT_IN,
    RESERVED_SHARED,
    SIZES,
    STAGE,
    Address,
    Instruction,
    PtxFunction,
    PtxLiteral,
    PtxModule,
    PtxVariable,
    Register,
    SymbolAddress,
    call_parts,
    fault,
    registers_in,
)

TABLES = (arithmetic, asynchronous, bodies, conversions, matrices, memory_rows, tensor_memory, threads)
"""The modules that fill the table of rows when they are imported."""
MOST_SHARED = 48 << 10
"""Limit of static shared memory of a block, in bytes."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


E = TypeVar("E", bound=_Named, covariant=True)
F = TypeVar("F", bound=_Named)
T = TypeVar("T")


class Entries(Protocol[E]):
    """A module's kernels."""

    @property
    def source(self) -> Source: ...

    @property
    def entries(self) -> Sequence[E]: ...


def entry_named(module: Entries[E], name: str | None) -> E:
    """The kernel of that name, or the only one. raises DataError where there is no such one"""
    if name is None and len(module.entries) == 1:
        return module.entries[0]
    found = next((entry for entry in module.entries if entry.name == name), None)
    if found is None:
        names = ", ".join(entry.name for entry in module.entries) or "none"
        wanted = "one kernel" if name is None else f"a kernel '{name}'"
        raise DataError(
            f"{module.source.file} must have {wanted}; it has: {names}", stage=STAGE, help="name it by --entry"
        )
    return found


def kernel_module(
    entry: F,
    raised: Callable[[F], tuple[llvm.FuncOp, Mapping[str, T], Iterable[F]]],
    global_of: Callable[[str, T], llvm.GlobalOp],
    arguments: Iterable[Mapping[str, Attribute]],
    attributes: Mapping[str, Attribute] | None,
) -> builtin.ModuleOp:
    """A kernel with all that it uses.

    raised      (function) -> its IR, the names of the globals that it uses, and the functions that it calls
    arguments   attributes of each argument of the kernel; attributes: of the kernel
    """
    functions, used, pending, seen = list[llvm.FuncOp](), dict[str, T](), [entry], {entry.name}
    while pending:
        op, names, callees = raised(pending.pop())
        functions.append(op)
        used.update(names)
        for callee in callees:
            if callee.name not in seen:
                seen.add(callee.name)
                pending.append(callee)
    kernel = functions[0]
    kernel.properties["arg_attrs"] = builtin.ArrayAttr([builtin.DictionaryAttr(dict(each)) for each in arguments])
    kernel.attributes |= {"nvvm.kernel": builtin.UnitAttr(), **(attributes or {})}
    return builtin.ModuleOp([*(global_of(name, at) for name, at in used.items()), *functions])


def raise_kernel(
    module: PtxModule,
    entry: PtxFunction,
    *,
    numbers: Collection[int] = (),
    arguments: Sequence[Mapping[str, Attribute]] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    shared_bytes: int = 0,
    more_pointers: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> builtin.ModuleOp:
    """The IR of one kernel.

    numbers     which parameters of 64 bits are numbers; others without `.ptr` are pointers
    arguments   attributes of each argument, in place of those that the text says
    attributes  attributes of the function, such as its launch
    shared_bytes  of dynamic shared memory; 0: as many as the launch gives
    more_pointers  arguments after the parameters: arrays that tensor maps refer to
    cluster     blocks of a cluster along each dimension
    raises      ParseError for names and types that do not fit, Unsupported for instructions without a row, each with its place
    """
    if prod(entry.bounds.get("reqnctapercluster", cluster)) != prod(cluster):
        raise fault(Unsupported, module.source, entry, "a cluster of several blocks beside kernels without")
    owned = {variable.name: variable for function in module.functions.values() for variable in function.variables}
    shared, placed = dict[PtxVariable, None](), placed_by_ptxas(entry)

    def raised(function: PtxFunction) -> tuple[llvm.FuncOp, Mapping[str, None], Iterable[PtxFunction]]:
        shared.update((variable, None) for variable in function.variables if variable.space == "shared")
        is_entry = function is entry
        body = Raised(module, function, numbers if is_entry else (), more_pointers if is_entry else 0, cluster)
        callees, used = body.emitter.callees, body.emitter.globals
        pending = list(used)
        while pending:
            for address in addresses_in(module.variables.get(pending.pop())):
                if address.name in module.functions:
                    callees[address.name] = None
                elif address.name not in used:
                    used[address.name] = None
                    pending.append(address.name)
        return body.op, used, [module.functions[name] for name in callees]

    def global_named(name: str, _: None) -> llvm.GlobalOp:
        variable = BUILT_IN.get(name) or module.variables.get(name) or owned[name]
        shared.update({variable: None} if variable.space == "shared" and name not in BUILT_IN else {})
        return global_of(module, name, variable, shared_bytes, placed.get(variable, variable.alignment))

    given = arguments or [
        {"llvm.align": builtin.IntegerAttr(variable.pointee_align, i64)} if variable.pointee_align >= 16 else {}
        for variable in entry.parameters
    ]
    said = dict[str, Attribute]()
    if "reqntid" in entry.bounds:
        said["nvvm.reqntid"] = builtin.DenseArrayBase.from_list(i32, (*entry.bounds["reqntid"], 1, 1)[:3])
    whole = kernel_module(entry, raised, global_named, given, said | dict(attributes or {}))
    if sum(variable.size for variable in shared) > MOST_SHARED:
        message = f"a block with more than {MOST_SHARED} bytes of static shared memory"
        raise fault(Unsupported, module.source, next(iter(shared)), message)
    return whole


def parameter_type(variable: PtxVariable, is_entry: bool, is_number: bool) -> Attribute:
    """A pointer for an array and for what a kernel takes as 64 bits, else the number's type."""
    if variable.count is not None:
        return POINTER
    if is_entry and not is_number and variable.type in ("u64", "b64", "s64"):
        return POINTER
    return TYPES[variable.type]


class Raised:
    """One function as IR."""

    def __init__(
        self,
        module: PtxModule,
        function: PtxFunction,
        numbers: Collection[int],
        more_pointers: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        self.module, self.function = module, function
        arrays = [variable for variable in function.results if variable.register is None]
        scalars = [variable.register for variable in function.results if variable.register is not None]
        self.results, self.may_exit = scalars, function.name in module.exiting
        types = [
            parameter_type(variable, function.is_entry, number in numbers)
            for number, variable in enumerate(function.parameters)
        ]
        entry = Block(arg_types=[*[POINTER] * len(arrays), *types, *[POINTER] * more_pointers])
        self.emitter = e = OpBuilder(module, function, entry, cluster)
        for variable, value in zip((*arrays, *function.parameters), entry.args, strict=False):
            value.name_hint = hint_of(variable.name)
            if variable.register is None:
                # A function's parameters are in its stack frame.
                local = value if function.is_entry else e.at_entry(llvm.AddrSpaceCastOp(value, pointer_type("local")))
                e.parameters[variable.name] = local
            else:
                e.set(variable.register, value)
        e.natural = natural_types(module, function)
        flow = Flow(module.source, function, self.touched, scalars, module.exiting)
        self.unwaited = unwaited_registers(flow)
        self.blocks = {node: Block(arg_types=self._types(node)) for node in flow.nodes} | {flow.nodes[0]: entry}
        self._emit(flow)
        output = threads.result_type([*(TYPES[register.type] for register in scalars), *[i1] * self.may_exit])
        region = Region([self.blocks[node] for node in flow.nodes])
        self.op = llvm.FuncOp(function.name, llvm.LLVMFunctionType(entry.arg_types, output), body=region)

    def _types(self, node: PtxBlock) -> list[Attribute]:
        return [self.emitter.natural.get(register, TYPES[register.type]) for register in node.arguments]

    def touched(self, instruction: Instruction) -> tuple[list[Register], list[Register]]:
        """The registers that an instruction writes, and those that it reads; scalars in `.param` among them."""
        row = row_of(self.module.source, instruction)
        written, read = list[Register](), list[Register]()
        if row.name == "call":
            results, callee, arguments = call_parts(instruction)
            written += [register for operand in results for register in registers_in(operand)]
            if isinstance(callee, SymbolAddress) and callee.name in self.module.exiting:
                written.append(EXITED)
            read += [register for operand in (callee, *arguments) for register in registers_in(operand)]
        else:
            for number, operand in enumerate(instruction.operands):
                is_result = number < row.results
                if isinstance(operand, Address):
                    is_result = row.name == "st" and memory_rows.scalar_at(operand) is not None
                (written if is_result else read).extend(registers_in(operand))
        if row.updates:
            read += written
        if instruction.guard is not None and row.is_pure:
            read += [instruction.guard[0], *written]
        if "cc" in instruction.parts:
            written.append(CARRY)
        if row.carries:
            read.append(CARRY)
        return written, read

    def _emit(self, flow: Flow) -> None:
        """Emits all nodes, each after the one that dominates it."""
        e = self.emitter
        if self.function.body is None:
            return
        stack = [(flow.nodes[0], len(e.undo))]
        while stack:
            node, mark = stack.pop()
            e.back_to(mark)
            e.block = block = self.blocks[node]
            for register, value in zip(node.arguments, block.args if node.arguments else (), strict=True):
                value.name_hint = hint_of(register.name)
                e.set(register, value)
            for instruction in node.instructions:
                e.at(instruction)
                if (early := self.unwaited.get(id(instruction))) is not None:
                    writer, register = early
                    e.tell("tcgen05.loaded" if writer == LOAD else f"wgmma.unwaited.{register.name}")
                emit(e, instruction)
            if node.end is not None:
                e.at(node.end)
            self._end(node)
            mark = len(e.undo)
            stack += [(child, mark) for child in node.children]

    def _end(self, node: PtxBlock) -> None:
        e = self.emitter
        condition = e.read(node.guard[0], i1) if node.guard is not None else None
        ways = [
            (self.blocks[way], [e.read(*each) for each in zip(way.arguments, self._types(way), strict=True)])
            for way in node.ways
        ]
        if node.selector is not None:
            first, *others = ways
            e.do(llvm.SwitchOp(e.read(node.selector, i32), first, list(enumerate(others, start=1))))
        elif node.guard is not None and condition is not None:
            then, otherwise = ways if node.guard[1] else reversed(ways)
            e.do(llvm.CondBrOp(condition, *then, *otherwise))
        elif ways:
            ((way, values),) = ways
            e.do(llvm.BrOp(way, *values))
        else:
            values = [e.read(register, TYPES[register.type]) for register in self.results]
            if self.may_exit:
                values.append(e.constant(i1, int(node.exits)))
            e.do(llvm.ReturnOp(*([e.struct(values)] if len(values) > 1 else values)))


def natural_types(module: PtxModule, function: PtxFunction) -> dict[Register, Attribute]:
    """For each register that mostly holds floats, their type. Moves, loads and selections say nothing."""
    votes = dict[Register, Counter[Attribute]]()
    for item in function.body or ():
        if not isinstance(item, Instruction) or not (types := item.types):
            continue
        count = row_of(module.source, item).results
        for number, operand in enumerate(item.operands):
            if isinstance(operand, Address):
                continue
            word = types[0] if number < count else types[-1]
            for register in () if word in BITS else registers_in(operand):
                votes.setdefault(register, Counter())[TYPES[word]] += 1
    best = {register: counts.most_common(1)[0][0] for register, counts in votes.items()}
    return {
        register: ir_type
        for register, ir_type in best.items()
        if isinstance(ir_type, builtin.AnyFloat) and bits_of(TYPES[register.type]) == bits_of(ir_type)
    }


def placed_by_ptxas(entry: PtxFunction) -> dict[PtxVariable, int]:
    """The alignments, up to the 16 bytes of an access, of the kernel's own variables in shared memory: decision 34."""
    found, end = dict[PtxVariable, int](), 0
    for variable in entry.variables:
        if variable.space == "shared" and variable.size:
            place = -(-end // variable.alignment) * variable.alignment
            found[variable], end = max(variable.alignment, gcd(place, 16)), place + variable.size
    return found


def global_of(module: PtxModule, name: str, variable: PtxVariable, shared_bytes: int, alignment: int) -> llvm.GlobalOp:
    """A variable of the module, or a shared one of a function; one without size has `shared_bytes`. raises as `_of_addresses`"""
    element, values = TYPES[variable.type], variable.values
    count = 1 if variable.count is None else variable.count or shared_bytes * 8 // bits_of(element)
    array = llvm.LLVMArrayType(count, element)
    value = None if variable.space == "shared" and values is None else llvm.ZeroAttr()
    body: Region | None = None
    if addresses_in(variable) and value is not None:
        array, value, body = llvm.LLVMArrayType(count, i64), None, _of_addresses(module, variable, count)
    elif values and variable is not RESERVED_SHARED:
        size = bits_of(element) // 8
        data = b"".join(_bytes_of(module, variable, each, size) for each in values if isinstance(each, PtxLiteral))
        value = bytes_attribute(data + bytes(variable.size - len(data)))
        array = llvm.LLVMArrayType(variable.size, i8)
    return llvm.GlobalOp(
        array,
        builtin.StringAttr(name),
        "internal",
        addr_space=SPACES[variable.space],
        constant=variable.space == "const",
        value=value,
        alignment=alignment,
        body=body,
    )


def addresses_in(variable: PtxVariable | None) -> list[SymbolAddress]:
    """Those among the initial values."""
    values = variable.values if variable is not None else None
    return [each for each in values or () if isinstance(each, SymbolAddress)]


def _of_addresses(module: PtxModule, variable: PtxVariable, count: int) -> Region:
    """Computes the initial value of a variable with addresses in it: an array of 64 bits each.

    raises   ParseError for names that are not declared, Unsupported for other types, and for functions that cannot be called by address
    """
    if SIZES[variable.type] != 8 or variable.type == "f64":
        message = f"'{variable.name}' of .{variable.type} is initialised with an address; .u64 and .b64 are supported"
        raise fault(Unsupported, module.source, variable, message)
    block = Block()
    e = OpBuilder(module, PtxFunction(variable.name, False, (), (), variable.start, variable.end), block)
    values = (*(variable.values or ()), *[PtxLiteral(0)] * (count - len(variable.values or ())))
    whole = aggregate(e.add, llvm.LLVMArrayType(count, i64), (e.read(value, i64) for value in values))
    e.do(llvm.ReturnOp(whole))
    return Region(block)


def bytes_attribute(data: bytes) -> Attribute:
    """Bytes as the value of a global."""
    return builtin.DenseIntOrFPElementsAttr(builtin.VectorType(i8, [len(data)]), builtin.BytesAttr(data))


def _bytes_of(module: PtxModule, variable: PtxVariable, number: PtxLiteral, size: int) -> bytes:
    """An initial value in memory; a literal such as 1.5 is rounded to an f32. raises ParseError for a float as integer, or the reverse"""
    is_float, value = number.kind != "int", number.value
    if variable.type[0] != "b" and is_float != (variable.type[0] == "f"):
        kind = "a float" if is_float else "an integer"
        message = f"'{variable.name}' of .{variable.type} is initialised with {kind}"
        raise fault(ParseError, module.source, variable, message)
    if number.kind == "f64" and variable.type == "f32":
        value = bits_of_float(builtin.f32, float_of(builtin.f64, value))
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
