"""PTX to IR: the llvm and nvvm dialects, one kernel a module.

    .visible .entry scale(.param .u64 .ptr .align 16 x)      llvm.func @scale(%0: !llvm.ptr {llvm.align = 16}) attributes {nvvm.kernel}
    mul.rn.f32 %r2, %r1, 0f40000000;                          %r2 = llvm.fmul %r1, %c : f32              loc("scale.ptx":9:2)

Registers become SSA values (`flow`), instructions the ops of their rows (`rows`). A kernel's functions are raised with it; variables
that it uses become globals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Protocol, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    VectorType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.errors import DataError, ParseError, Unsupported
from xla_emitters.support.source import Source
from xla_emitters.text.ptx import arithmetic, asynchronous, conversions, matrices, memory, threads
from xla_emitters.text.ptx.emitter import POINTER, SPACES, TYPES, Emitter, narrowed, natural_types
from xla_emitters.text.ptx.flow import Flow, Node
from xla_emitters.text.ptx.forms import emit
from xla_emitters.text.ptx.products_in_flight import unwaited_registers
from xla_emitters.text.ptx.rows import CARRY, STAGE, registers_in, row_of
from xla_emitters.text.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Number,
    PtxModule,
    Register,
    Symbol,
    Variable,
)

TABLES = (arithmetic, asynchronous, conversions, matrices, memory, threads)
"""The modules that fill the table of rows when they are imported."""
MOST_SHARED = 48 << 10
"""Limit of static shared memory of a block, in bytes."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


E = TypeVar("E", bound=_Named, covariant=True)


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


def raise_kernel(
    module: PtxModule,
    entry: Function,
    *,
    numbers: Collection[int] = (),
    arguments: Sequence[Mapping[str, Attribute]] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    shared_bytes: int = 0,
    more_pointers: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> ModuleOp:
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
        place = module.source.place(entry.start, entry.end)
        raise Unsupported("a cluster of several blocks beside kernels without", stage=STAGE, place=place)
    functions, variables = list[llvm.FuncOp](), dict[str, None]()
    pending, seen = [entry], {entry.name}
    while pending:
        function = pending.pop()
        is_entry = function is entry
        raised = Raised(module, function, numbers if is_entry else (), more_pointers if is_entry else 0, cluster)
        if is_entry:
            raised.finish(arguments, attributes or {})
        functions.append(raised.op)
        variables |= raised.emitter.globals
        for name in raised.emitter.callees:
            if name not in seen:
                seen.add(name)
                pending.append(module.functions[name])
    owned = {variable.name: variable for function in module.functions.values() for variable in function.variables}
    used = {name: module.variables.get(name) or owned[name] for name in variables}
    declared = [variable for name in seen for variable in module.functions[name].variables]
    shared = [variable for variable in {*used.values(), *declared} if variable.space == "shared"]
    if sum(variable.size for variable in shared) > MOST_SHARED:
        place = module.source.place(shared[0].start, shared[0].start + len(shared[0].name))
        raise Unsupported(
            f"a block with more than {MOST_SHARED} bytes of static shared memory", stage=STAGE, place=place
        )
    globals_ = [global_of(module, name, variable, shared_bytes) for name, variable in used.items()]
    return ModuleOp([*globals_, *functions])


def parameter_type(variable: Variable, is_entry: bool, is_number: bool) -> Attribute:
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
        function: Function,
        numbers: Collection[int],
        more_pointers: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        self.module, self.function = module, function
        pointers = [POINTER for variable in function.results if variable.count is not None]
        scalars = [variable for variable in function.results if variable.count is None]
        if len(scalars) > 1:
            raise self.unsupported("a function of several results", function.start)
        types = [
            parameter_type(variable, function.is_entry, number in numbers)
            for number, variable in enumerate(function.parameters)
        ]
        entry = Block(arg_types=[*pointers, *types, *[POINTER] * more_pointers])
        self.emitter = e = Emitter(module, function, entry, cluster)
        by_array = [variable for variable in function.results if variable.count is not None]
        named = (*by_array, *function.parameters)
        for variable, value in zip(named, entry.args[: len(named)], strict=True):
            value.name_hint = "".join(char for char in variable.name if char.isalnum() or char == "_")
            e.parameters[variable.name] = variable, value
        for variable in function.variables:
            if variable.space == "param" and variable.count is None:
                e.slots[variable.name] = Register(variable.name, variable.type)
        self.result = Register(scalars[0].name, scalars[0].type) if scalars else None
        if self.result is not None:
            e.slots[self.result.name] = self.result
        e.natural = natural_types(module, function)
        flow = Flow(module.source, function, self.touched, [self.result] if self.result else [])
        self.unwaited = unwaited_registers(flow, self.touched)
        self.blocks = {node: entry if not node.number else Block(arg_types=self._types(node)) for node in flow.nodes}
        self._emit(flow)
        output = TYPES[self.result.type] if self.result else None
        region = Region([self.blocks[node] for node in flow.nodes])
        self.op = llvm.FuncOp(function.name, llvm.LLVMFunctionType(entry.arg_types, output), body=region)
        e.instruction = None

    def unsupported(self, message: str, start: int) -> Unsupported:
        return Unsupported(message, stage=STAGE, place=self.module.source.place(start, start + 1))

    def _types(self, node: Node) -> list[Attribute]:
        return [self.emitter.natural.get(register, TYPES[register.type]) for register in node.arguments]

    def touched(self, instruction: Instruction) -> tuple[list[Register], list[Register]]:
        """The registers that an instruction writes, and those that it reads; scalar `.param` variables among them."""
        row = row_of(self.module.source, instruction)
        slots = self.emitter.slots
        written, read = list[Register](), list[Register]()
        if row.name == "call":
            results, _, arguments = threads.call_parts(instruction)
            for operands, found in ((results, written), (arguments, read)):
                for operand in operands:
                    if isinstance(operand, Symbol) and operand.name in slots:
                        found.append(slots[operand.name])
                    found += registers_in(operand)
        else:
            for number, operand in enumerate(instruction.operands):
                is_result = number < row.results and not isinstance(operand, Address)
                (written if is_result else read).extend(registers_in(operand))
                if isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in slots:
                    (written if row.name == "st" else read).append(slots[operand.base.name])
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
        stack: list[tuple[Node, int]] = [(flow.nodes[0], 0)]
        while stack:
            node, mark = stack.pop()
            e.back_to(mark)
            e.block = block = self.blocks[node]
            for register, value in zip(node.arguments, block.args if node.number else (), strict=True):
                value.name_hint = "".join(char for char in register.name if char.isalnum() or char == "_")
                e.set(register, value)
            for instruction in node.instructions:
                self._instruction(instruction)
            if node.end is not None:
                e.at(node.end)
            self._end(node)
            mark = len(e.undo)
            stack += [(child, mark) for child in node.children]

    def _instruction(self, instruction: Instruction) -> None:
        e = self.emitter
        e.at(instruction)
        if (register := self.unwaited.get(id(instruction))) is not None:
            e.tell(f"wgmma.unwaited.{register.name}")
        emit(e, instruction)

    def _values(self, way: Node) -> list[SSAValue]:
        return [
            self.emitter.read(register, ir_type)
            for register, ir_type in zip(way.arguments, self._types(way), strict=True)
        ]

    def _end(self, node: Node) -> None:
        e = self.emitter
        blocks = self.blocks
        match node.kind:
            case "branch":
                (way,) = node.ways
                e.do(llvm.BrOp(blocks[way], *self._values(way)))
            case "choose":
                assert node.guard is not None
                register, wanted = node.guard
                condition = e.read(register, i1)
                then, otherwise = node.ways if wanted else reversed(node.ways)
                e.do(
                    llvm.CondBrOp(
                        condition, blocks[then], self._values(then), blocks[otherwise], self._values(otherwise)
                    )
                )
            case "switch":
                first, *others = node.ways
                cases = [(number, (blocks[way], self._values(way))) for number, way in enumerate(others, start=1)]
                e.do(llvm.SwitchOp(e.read(node.selector, i32), (blocks[first], self._values(first)), cases))
            case _:
                value = e.read(self.result, TYPES[self.result.type]) if self.result else None
                e.do(llvm.ReturnOp(value))

    def finish(self, arguments: Sequence[Mapping[str, Attribute]] | None, attributes: Mapping[str, Attribute]) -> None:
        """Marks the function as the kernel."""
        given = arguments or [
            {"llvm.align": IntegerAttr(variable.pointee_align, i64)} if variable.pointee_align >= 16 else {}
            for variable in self.function.parameters
        ]
        self.op.properties["arg_attrs"] = ArrayAttr([DictionaryAttr(dict(each)) for each in given])
        self.op.attributes["nvvm.kernel"] = UnitAttr()
        if "reqntid" in self.function.bounds:
            x, y, z = (*self.function.bounds["reqntid"], 1, 1)[:3]
            self.op.attributes["nvvm.reqntid"] = DenseArrayBase.from_list(i32, [x, y, z])
        self.op.attributes |= attributes


def global_of(module: PtxModule, name: str, variable: Variable, shared_bytes: int) -> llvm.GlobalOp:
    """A variable of the module, or a shared one of a function; one without size has `shared_bytes`.

    raises  Unsupported for initial values that are addresses
    """
    element, values = TYPES[variable.type], variable.values
    count = 1 if variable.count is None else variable.count or shared_bytes * 8 // bits_of(element)
    array = llvm.LLVMArrayType(count, element)
    value: Attribute | None = None
    if variable.space != "shared":
        value = llvm.ZeroAttr()
    if values and variable.space != "shared":
        if any(isinstance(each, Symbol) for each in values):
            place = module.source.place(variable.start, variable.start + len(name))
            raise Unsupported(f"'{name}' is initialised with an address", stage=STAGE, place=place)
        size = bits_of(element) // 8
        data = b"".join(_bytes_of(module, variable, each, size) for each in values if isinstance(each, Number))
        data += bytes(variable.size - len(data))
        value = bytes_attribute(data)
        array = llvm.LLVMArrayType(len(data), i8)
    return llvm.GlobalOp(
        array,
        StringAttr(name),
        "internal",
        addr_space=SPACES[variable.space],
        constant=variable.space == "const",
        value=value,
        alignment=variable.alignment,
    )


def bytes_attribute(data: bytes) -> Attribute:
    """Bytes as the value of a global."""
    return DenseIntOrFPElementsAttr(VectorType(i8, [len(data)]), BytesAttr(data))


def _bytes_of(module: PtxModule, variable: Variable, number: Number, size: int) -> bytes:
    """An initial value in memory; a literal such as 1.5 is rounded to an f32. raises ParseError for a float as integer, or the reverse"""
    is_float, value = number.kind != "int", number.value
    if variable.type[0] != "b" and is_float != (variable.type[0] == "f"):
        message = f"'{variable.name}' of .{variable.type} is initialised with {'a float' if is_float else 'an integer'}"
        place = module.source.place(variable.start, variable.start + len(variable.name))
        raise ParseError(message, stage=STAGE, place=place)
    if number.kind == "f64" and variable.type == "f32":
        value = narrowed(value)
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
