"""Builds the ops of one function from its instructions: registers as SSA values, constants, addresses, types.

A register holds bits. Its value here has the type that it was computed in; an instruction that reads it as another type gets a bitcast.
A literal stays a number until it is read as some type. Addresses in registers are integers:

    global, generic    64 bits: the executor's address
    shared, local, const    an offset in the space's own window, 32 bits (extended in a 64-bit register): `llvm.ptrtoint ... to i32`

Source: PTX ISA 8.8, 5.1 "State spaces", 6.4 "Operands", 9.4 "Generic addressing".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import isnan, prod
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import AnyFloat, IntegerType, VectorType, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from xla_emitters.dialects.float_bits import float_attr, pack, unpack
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import fuse_locations, location_at
from xla_emitters.dialects.mlir import llvm, nvvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.errors import ParseError, Unsupported
from xla_emitters.text.ptx.syntax import (
    BUILT_IN,
    RESERVED,
    SIZES,
    TYPES,
    WORKSPACE,
    Address,
    Instruction,
    Negated,
    Operand,
    OperandGroup,
    Pair,
    PtxFunction,
    PtxLiteral,
    PtxModule,
    PtxVariable,
    Register,
    Special,
    SymbolAddress,
    fault,
)

SPACES = {"generic": 0, "global": 1, "shared": 3, "const": 4, "local": 5}
"""Space -> LLVM's number of it."""
_READ_SPECIAL = ("mov", "cvt", "st")
WINDOWED = ("shared", "local", "const", "param")
_FAMILIES = {"tid": nvvm.THREAD_ID, "ntid": nvvm.BLOCK_DIM, "ctaid": nvvm.BLOCK_ID, "nctaid": nvvm.GRID_DIM}
_ALONE = {"laneid": nvvm.LaneIdOp, "warpid": nvvm.WarpIdOp}
_CLOCKS = {
    **{"clock": ("clock", i32), "clock_hi": ("clock", i32), "clock64": ("clock64", i64)},
    **{"globaltimer": ("globaltimer", i64), "globaltimer_lo": ("globaltimer.lo", i32)},
}
_FIXED = {"globaltimer_hi": 0, "smid": 0, "nsmid": 1, "gridid": 0, "current_graph_exec": 0}
_RESERVED_OFFSETS = {"begin": 0, "0": 0, "1": 512, "end": 1024}
"""Where the halves of the reserved shared memory begin; the ISA leaves their sizes open."""
_ENVIRONMENT = re.compile(r"envreg\d+|pm\d+(_64)?")
"""Registers that a driver or a profiler sets, read as 0."""
_OF_CLUSTERS = {
    **{"cluster_ctaid": (llvm.URemOp, "ctaid"), "clusterid": (llvm.UDivOp, "ctaid")},
    "nclusterid": (llvm.UDivOp, "nctaid"),
}
"""Family -> how it follows from another one and the blocks of a cluster."""
POINTER = llvm.LLVMPointerType()


def is_float(ir_type: Attribute) -> bool:
    """Whether it is a float, or a vector of them."""
    return isinstance(ir_type.element_type if isa(ir_type, VectorType) else ir_type, AnyFloat)


def kind_of(word: str) -> str:
    """`pred`, `float`, `integer`, or `bits`, which agree with all but `pred`; packed types are bits."""
    if word == "pred":
        return word
    if (word[0] == "b" and word != "bf16") or "x" in word or word[0] == "e":
        return "bits"
    return "integer" if word[0] in "su" else "float"


def agree(one: str, other: str) -> bool:
    """Whether a register of one type may be an operand of the other type, widths aside."""
    kinds = {kind_of(one), kind_of(other)}
    return len(kinds) == 1 or ("bits" in kinds and "pred" not in kinds)


def word_of(ir_type: Attribute) -> str:
    """PTX's word for a float, or for the elements of a vector of them."""
    return str(ir_type.element_type if isa(ir_type, VectorType) else ir_type)


def hint_of(name: str) -> str | None:
    """The name of a value in print, for a name of the text; None if it has none."""
    hint = re.sub(r"\W", "_", name.lstrip("%$"))
    return hint if hint and not hint[0].isdigit() else None


def pointer_type(space: str) -> llvm.LLVMPointerType:
    """`!llvm.ptr<3>` for shared memory ...; `!llvm.ptr` for global and generic addresses, and for a kernel's parameters."""
    return llvm.LLVMPointerType(builtin.IntAttr(SPACES[space])) if SPACES.get(space, 0) > SPACES["global"] else POINTER


class OpBuilder:
    """The state while one function is built.

    cluster    blocks of a cluster along each dimension
    block      where ops are inserted
    current    the value of each register here
    undo       what the current node and those that dominate it have set: (dictionary, key, value before)
    parameters  name -> the address of an array
    variables  name -> the variable, of the function and the module
    natural    the type in which a register is mostly computed and read; by default its bits
    """

    def __init__(
        self, module: PtxModule, function: PtxFunction, entry: Block, cluster: tuple[int, int, int] = (1, 1, 1)
    ) -> None:
        self.cluster = cluster
        self.module, self.function, self.entry, self.block = module, function, entry, entry
        self.current: dict[Register, SSAValue | PtxLiteral] = {}
        self.undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self.variables = {
            **BUILT_IN,
            **module.variables,
            **{each.name: each for each in function.variables},
        }
        self.parameters: dict[str, SSAValue] = {}
        self.natural: dict[Register, Attribute] = {}
        self.globals: dict[str, None] = {}
        self.callees: dict[str, None] = {}
        self.guard: SSAValue | None = None
        self.location: builtin.LocationAttr = builtin.UnknownLoc()
        self.instruction = Instruction((function.name,), (), None, function.start, function.end)
        self._last_of_entry: Operation | None = None
        self._constants: dict[tuple[Attribute, int], SSAValue] = {}
        self._addresses: dict[str, SSAValue] = {}
        self._made: dict[tuple[SSAValue, Attribute, int], SSAValue] = {}

    # ------------------------------------------------------------------------------------------ messages

    def error(self, message: str) -> ParseError:
        """An error at the current instruction."""
        return fault(ParseError, self.module.source, self.instruction, message)

    def unsupported(self, message: str) -> Unsupported:
        return fault(Unsupported, self.module.source, self.instruction, f"{message} is not supported")

    def at(self, instruction: Instruction) -> None:
        """Ops that are made from here on belong to this instruction."""
        self.instruction = instruction
        source = self.module.source
        self.location = location_at(source.file, *source.line_and_column(instruction.start))
        if instruction.loc is not None:
            number, line, column = instruction.loc
            name = self.module.files.get(number, f"file {number}")
            self.location = fuse_locations(self.location, location_at(name, line, column))

    # ------------------------------------------------------------------------------------------ building

    def add(self, op: Operation) -> SSAValue:
        """Inserts the op; returns its first result."""
        op.location = self.location
        self.block.add_op(op)
        return op.results[0]

    def do(self, op: Operation) -> None:
        """Inserts the op."""
        op.location = self.location
        self.block.add_op(op)

    def intrinsic(self, name: str, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
        """The value of an instruction that the llvm dialect has no op for: `llvm.nvvm.<name>`."""
        return self.add(llvm.CallIntrinsicOp(f"llvm.nvvm.{name}", operands, [result]))

    def tell(self, name: str, *operands: SSAValue) -> None:
        """As `intrinsic`, without a value."""
        self.do(llvm.CallIntrinsicOp(f"llvm.nvvm.{name}", operands, []))

    def intr(self, name: str, *values: SSAValue, **flags: bool) -> SSAValue:
        """`llvm.intr.<name>` of values of one type."""
        properties: dict[str, Attribute] = {word: builtin.BoolAttr.from_bool(flag) for word, flag in flags.items()}
        if is_float(values[0].type):
            properties["fastmathFlags"] = llvm.FastMathAttr(None)
        op = llvm.INTRINSICS[name].create(operands=values, result_types=[values[0].type], properties=properties)
        return self.add(op)

    def compare(self, predicate: str, one: SSAValue, other: SSAValue) -> SSAValue:
        """Of integers."""
        return self.add(llvm.ICmpOp(one, other, predicate))

    def inverted(self, truth: SSAValue) -> SSAValue:
        return self.add(llvm.XOrOp(truth, self.constant(i1, 1)))

    def vector(self, parts: Sequence[SSAValue]) -> SSAValue:
        """A vector of values of one type."""
        ir_type = VectorType(parts[0].type, [len(parts)])
        return vector_of(self.add, ir_type, parts, lambda number: self.constant(i32, number))

    def element(self, vector: SSAValue, number: int) -> SSAValue:
        """An element of a vector."""
        return self.add(llvm.ExtractElementOp(vector, self.constant(i32, number)))

    def struct(self, fields: Sequence[SSAValue]) -> SSAValue:
        """A struct of these values."""
        return aggregate(self.add, llvm.LLVMStructType.from_type_list([each.type for each in fields]), fields)

    def field(self, struct: SSAValue, number: int) -> SSAValue:
        """A field of a struct."""
        assert isinstance(struct.type, llvm.LLVMStructType)
        field_type = struct.type.types.data[number]
        return self.add(llvm.ExtractValueOp(builtin.DenseArrayBase.from_list(i64, [number]), struct, field_type))

    def at_entry(self, op: Operation) -> SSAValue:
        """Inserts the op at the start of the function, after those inserted so before."""
        if self._last_of_entry is None:
            if self.entry.first_op is None:
                self.entry.add_op(op)
            else:
                self.entry.insert_op_before(op, self.entry.first_op)
        else:
            self.entry.insert_op_after(op, self._last_of_entry)
        self._last_of_entry = op
        return op.results[0]

    def constant(self, ir_type: Attribute, value: int) -> SSAValue:
        """The value of `ir_type` with these bits."""
        bits = bits_of(ir_type)
        value &= (1 << bits) - 1
        if (found := self._constants.get((ir_type, value))) is not None:
            return found
        if (plain := constant_op(ir_type, value)) is None:
            plain = llvm.BitcastOp(self.constant(IntegerType(bits), value), ir_type)
        made = self.at_entry(plain)
        self._constants[ir_type, value] = made
        return made

    def cast(self, value: SSAValue, ir_type: Attribute) -> SSAValue:
        """The lowest bits of a value as `ir_type`. raises ParseError for a value that is too narrow"""
        if value.type == ir_type:
            return value
        have, want = bits_of(value.type), bits_of(ir_type)
        if have < want or i1 in (value.type, ir_type):
            raise self.error(f"an operand of {have} bits is read as {want} bits")
        key = value, ir_type, 0
        if (found := self._made.get(key)) is not None:
            return found
        if have > want:
            narrow = self.add(llvm.TruncOp(self.cast(value, IntegerType(have)), IntegerType(want)))
            made = self.cast(narrow, ir_type)
        elif isinstance(ir_type, llvm.LLVMPointerType):
            made = self.add(llvm.IntToPtrOp.create(operands=[self.cast(value, i64)], result_types=[ir_type]))
        elif isinstance(value.type, llvm.LLVMPointerType):
            made = self.cast(self.add(llvm.PtrToIntOp(value, i64)), ir_type)
        elif isinstance(value.owner, llvm.BitcastOp) and value.owner.arg.type == ir_type:
            made = value.owner.arg
        else:
            made = self.add(llvm.BitcastOp(value, ir_type))
        self._keep(self._made, key, made)
        return made

    def extend(self, value: SSAValue, bits: int, is_signed: bool = False) -> SSAValue:
        """The value as an integer of at least as many bits."""
        have = bits_of(value.type)
        value = self.cast(value, IntegerType(have))
        if have >= bits:
            return value
        return self.add((llvm.SExtOp if is_signed else llvm.ZExtOp)(value, IntegerType(bits)))

    def resize(self, value: SSAValue, bits: int, is_signed: bool = False) -> SSAValue:
        """The value as an integer of `bits` bits: extended or truncated."""
        return self.cast(self.extend(value, bits, is_signed), IntegerType(bits))

    # ------------------------------------------------------------------------------------------ operands

    def held(self, register: Register) -> SSAValue | PtxLiteral:
        """What a register holds; poison if nothing was written to it."""
        if (found := self.current.get(register)) is None:
            found = self.at_entry(llvm.PoisonOp(TYPES[register.type]))
            self.set(register, found)
        return found

    def read(self, operand: Operand | None, ir_type: Attribute) -> SSAValue:
        """An operand's lowest bits as `ir_type`. raises ParseError for an operand that has no such value"""
        match operand:
            case Register():
                value = self.held(operand)
                return (
                    self.constant(ir_type, value.value) if isinstance(value, PtxLiteral) else self.cast(value, ir_type)
                )
            case PtxLiteral():
                return self.constant(ir_type, self.number(operand, ir_type))
            case Special():
                return self.resize_to(self.special(operand.name), ir_type)
            case SymbolAddress():
                return self.resize_to(self.address_of(operand), ir_type)
            case Negated():
                return self.inverted(self.read(operand.register, i1))
            case _:
                raise self.error("an operand is a register, a number or the address of a variable")

    def special(self, name: str) -> SSAValue:
        """A special register's value. Each block has a multiprocessor to itself."""
        family, _, dimension = name.partition(".")
        dimension = dimension or "x"
        if family in _FAMILIES and dimension in "xyz":
            return self.add(_FAMILIES[family][dimension]())
        if name in _ALONE:
            return self.add(_ALONE[name]())
        if name.startswith("lanemask_"):
            return self.add(nvvm.LANE_MASKS[name.removeprefix("lanemask_")]())
        if name in _CLOCKS:
            word, ir_type = _CLOCKS[name]
            return self.intrinsic(f"read.{word}", [], ir_type)
        if name == "is_explicit_cluster":
            return self.constant(i1, int(prod(self.cluster) > 1))
        if name in ("envreg1", "envreg2"):
            address = self.address_of(SymbolAddress(WORKSPACE))
            high = llvm.LShrOp(address, self.constant(i64, 32))
            return self.resize(self.add(high) if name == "envreg1" else address, 32)
        if name in _FIXED or _ENVIRONMENT.fullmatch(name):
            return self.constant(i32, _FIXED.get(name, 0))
        if name == "reserved_smem_offset_cap":
            return self.constant(i32, _RESERVED_OFFSETS["end"])
        if (offset := _RESERVED_OFFSETS.get(name.removeprefix("reserved_smem_offset_"))) is not None:
            return self.address_of(SymbolAddress(RESERVED, offset))
        if name == "dynamic_smem_size":
            return self.intrinsic("read.ptx.sreg.dynamic_smem_size", [], i32)
        if family == "cluster_nctaid" and dimension in "xyz":
            return self.constant(i32, self.cluster["xyz".index(dimension)])
        if family in _OF_CLUSTERS and dimension in "xyz":
            make, other = _OF_CLUSTERS[family]
            return self.add(make(self.special(f"{other}.{dimension}"), self.special(f"cluster_nctaid.{dimension}")))
        if name == "cluster_nctarank":
            return self.constant(i32, prod(self.cluster))
        if name == "cluster_ctarank":
            total = self.special("cluster_ctaid.z")
            for axis in "yx":
                scaled = self.add(llvm.MulOp(total, self.special(f"cluster_nctaid.{axis}")))
                total = self.add(llvm.AddOp(scaled, self.special(f"cluster_ctaid.{axis}")))
            return total
        if name == "nwarpid":
            counts = [self.add(nvvm.BLOCK_DIM[axis]()) for axis in "xyz"]
            threads = self.add(llvm.MulOp(self.add(llvm.MulOp(counts[0], counts[1])), counts[2]))
            return self.add(llvm.LShrOp(self.add(llvm.AddOp(threads, self.constant(i32, 31))), self.constant(i32, 5)))
        raise self.unsupported(f"special register '%{name}'")

    def resize_to(self, value: SSAValue, ir_type: Attribute) -> SSAValue:
        if value.type == ir_type:
            return value
        return self.cast(self.resize(value, bits_of(ir_type)), ir_type)

    def number(self, number: PtxLiteral, ir_type: Attribute) -> int:
        """The bits of a literal in that type."""
        scalar = ir_type.element_type if isa(ir_type, VectorType) else ir_type
        if (given := {"f32": f32, "f64": f64}.get(number.kind)) is None:
            return number.value
        if scalar in (f32, f64) and scalar != given:
            return bits_of_float(scalar, float_of(given, number.value))
        if bits_of(given) != bits_of(ir_type):
            raise self.error(f"a literal of {number.kind} is read as {bits_of(ir_type)} bits")
        return number.value

    def write(self, operand: Operand | None, value: SSAValue | PtxLiteral, is_signed: bool = False) -> None:
        """Writes a register; a narrower value is extended. Where the current guard does not hold the register keeps its value."""
        if operand is None:
            return
        if not isinstance(operand, Register):
            raise self.error("the result must be a register")
        wanted = TYPES[operand.type]
        if isinstance(value, PtxLiteral):
            value = PtxLiteral(self.number(value, wanted) & ((1 << bits_of(wanted)) - 1))
        elif bits_of(value.type) != bits_of(wanted):
            if bits_of(value.type) > bits_of(wanted) or wanted == i1:
                raise self.error(f"a result of {bits_of(value.type)} bits does not fit into {operand.name}")
            value = self.extend(value, bits_of(wanted), is_signed)
        if self.guard is not None and (old := self.current.get(operand)) is not None:
            if isinstance(value, PtxLiteral):
                value = self.constant(wanted, value.value)
            old = self.constant(value.type, old.value) if isinstance(old, PtxLiteral) else self.cast(old, value.type)
            value = self.add(llvm.SelectOp(self.guard, value, old))
        if not isinstance(value, PtxLiteral) and value.name_hint is None:
            value.name_hint = hint_of(operand.name)
        self.set(operand, value)

    def set(self, register: Register, value: SSAValue | PtxLiteral) -> None:
        self._keep(self.current, register, value)

    def _keep(self, where: dict[Any, Any], key: Any, value: object) -> None:
        """Sets an entry until the nodes that this one dominates are done."""
        self.undo.append((where, key, where.get(key)))
        where[key] = value

    def back_to(self, mark: int) -> None:
        """Undoes all writes since there were `mark` of them."""
        while len(self.undo) > mark:
            where, key, before = self.undo.pop()
            if before is None:
                where.pop(key, None)
            else:
                where[key] = before

    def type_for(self, operand: Operand | None, ir_type: Attribute) -> Attribute:
        """The natural type of a register if it has the width of `ir_type`, else `ir_type`."""
        natural = self.natural.get(operand) if isinstance(operand, Register) else None
        return natural if natural is not None and bits_of(natural) == bits_of(ir_type) else ir_type

    # ------------------------------------------------------------------------------------------ operands of the instruction

    def one_type(self) -> str:
        """The type of an instruction that has one. raises ParseError"""
        if len(types := self.instruction.types) != 1:
            raise self.error(f"'{self.instruction.name}' needs one type")
        return types[0]

    def flushed(self, value: SSAValue) -> SSAValue:
        """A float with `.ftz`: zero of its sign instead of a denormal number."""
        i = self.instruction
        if "ftz" not in i.parts or i.stem == "slct" or word_of(value.type) not in ("f32", "f16"):
            return value
        return self.intrinsic(f"ftz.{word_of(value.type)}", [value], value.type)

    def read_as(self, operand: Operand | None, word: str) -> SSAValue:
        """An operand as a type. raises ParseError for one that cannot be read so"""
        self.check(operand, word)
        return self.read(operand, TYPES[word])

    def check_all(self, operands: Iterable[Operand | None], word: str, **how: bool) -> None:
        """As `check`, for each of several."""
        for operand in operands:
            self.check(operand, word, **how)

    def check(self, operand: Operand | None, word: str, *, is_result: bool = False, may_be_wider: bool = False) -> None:
        """raises ParseError for an operand that cannot be read, or written, as the type `word`"""
        what = f"'{self.instruction.name}' {'writes' if is_result else 'reads'}"
        match operand:
            case Register(is_param=True) if not is_result:
                raise self.unsupported(f"the address of the parameter '{operand.name}'")
            case Register() if not operand.is_param:
                have, want = SIZES[operand.type], SIZES[word]
                is_wide = have >= want if may_be_wider else have == want
                if not (is_wide or word == "pred") or not agree(operand.type, word):
                    raise self.error(f"{what} '{operand.name}', a register of .{operand.type}, as .{word}")
            case PtxLiteral() if not is_result:
                if kind_of(word) == "float" and (operand.kind == "int" or word not in ("f32", "f64")):
                    raise self.error(f"'{self.instruction.name}' needs a float such as 0f3F800000")
                if kind_of(word) == "integer" and operand.kind != "int":
                    raise self.error(f"'{self.instruction.name}' needs an integer")
            case Negated() if not is_result and word == "pred":
                pass
            case SymbolAddress() if not is_result and word != "pred":
                pass
            case Special() if not is_result and self.instruction.stem in _READ_SPECIAL:
                pass
            case Special():
                raise self.error(f"'%{operand.name}' is read by 'mov' alone")
            case None | OperandGroup() | Address() | Pair() | _:
                raise self.error(f"{what} a register here")

    # ------------------------------------------------------------------------------------------ addresses

    def variable(self, name: str) -> PtxVariable:
        if (found := self.variables.get(name)) is None:
            raise self.error(f"'{name}' is not declared")
        return found

    def base(self, name: str) -> SSAValue:
        """The pointer to a variable, of its space's window, or to a function."""
        if (found := self._addresses.get(name) or self.parameters.get(name)) is not None:
            return found
        if self._is_function(name):
            self.callees[name] = None
            made = self._addresses[name] = self.at_entry(llvm.AddressOfOp(name, POINTER))
            return made
        variable = self.variable(name)
        if variable.space in ("local", "param") and variable.name in {v.name for v in self.function.variables}:
            array = llvm.LLVMArrayType(max(1, variable.size), i8)
            one = self.constant(i32, 1)
            made = self.at_entry(llvm.AllocaOp(one, array, variable.alignment, pointer_type("local")))
        else:
            if variable.space not in ("global", "const", "shared"):
                raise self.unsupported(f"a variable in .{variable.space} outside functions")
            self.globals[name] = None
            made = self.at_entry(llvm.AddressOfOp(name, pointer_type(variable.space)))
        self._addresses[name] = made
        return made

    def _is_function(self, name: str) -> bool:
        """Whether a name is that of a function, whose address is meant. raises Unsupported for one that cannot be called by it"""
        function = self.module.functions.get(name) if name not in self.variables else None
        if function is None:
            return False
        if function.is_entry:
            raise self.unsupported(f"the address of the kernel '{name}'")
        if function.body is None:
            raise self.unsupported(f"the address of '{name}', which is defined elsewhere,")
        if name in self.module.exiting:
            raise self.unsupported(f"the address of '{name}', which may end the thread,")
        return True

    def space_of(self, name: str) -> str:
        """Where a variable is. The address of a function's parameter is in its stack frame, so in .local."""
        if name in self.parameters:
            return "param" if self.function.is_entry else "local"
        if self._is_function(name):
            return "generic"
        space = self.variable(name).space
        return "local" if space == "param" else space

    def address_of(self, symbol: SymbolAddress) -> SSAValue:
        """The address of a variable as an integer: of 32 bits in a window, else of 64."""
        pointer = self.base(symbol.name)
        is_windowed = self.space_of(symbol.name) in WINDOWED and not symbol.generic
        value = self.add(llvm.PtrToIntOp(pointer, i32 if is_windowed else i64))
        if symbol.offset:
            value = self.add(llvm.AddOp(value, self.constant(value.type, symbol.offset)))
        return value

    def to_window(self, value: SSAValue, space: str) -> SSAValue:
        """The pointer for an integer address in a space's window."""
        key = value, pointer_type(space), 0
        if (found := self._made.get(key)) is None:
            op = llvm.IntToPtrOp.create(operands=[self.resize(value, 32)], result_types=[pointer_type(space)])
            found = self.add(op)
            self._keep(self._made, key, found)
        return found

    def pointer(self, operand: Operand | None, space: str) -> SSAValue:
        """The pointer that `[...]` means in a space (`generic` where the mnemonic names none)."""
        if not isinstance(operand, Address):
            raise self.error("expected an address in brackets")
        if isinstance(operand.base, SymbolAddress):
            pointer = self.base(operand.base.name)
            own = self.space_of(operand.base.name)
            if space not in ("generic", "param", own):
                raise self.error(f"'{operand.base.name}' is in .{own}, not in .{space}")
        elif operand.base is None:
            pointer = self.cast(self.constant(i64, 0), POINTER)
        elif operand.base.is_param:
            raise self.unsupported(f"the address of the parameter '{operand.base.name}'")
        elif space in WINDOWED:
            wide = TYPES[operand.base.type]
            pointer = self.to_window(self.read(operand.base, wide), space)
        else:
            pointer = self.cast(self.read(operand.base, i64), POINTER)
        if operand.offset:
            if not -(1 << 31) < operand.offset < 1 << 31:
                raise self.error(f"the offset {operand.offset} does not fit into 32 bits")
            key = pointer, pointer.type, operand.offset
            if (found := self._made.get(key)) is None:
                found = self.add(llvm.GEPOp(pointer, [operand.offset], i8, result_type=pointer.type))
                self._keep(self._made, key, found)
            pointer = found
        return pointer


def vector_of(
    add: Callable[[Operation], SSAValue],
    ir_type: Attribute,
    elements: Sequence[SSAValue],
    constant: Callable[[int], SSAValue],
) -> SSAValue:
    """A vector of these elements. constant: makes the number of a place"""
    found = add(llvm.PoisonOp(ir_type))
    for number, element in enumerate(elements):
        found = add(llvm.InsertElementOp(found, element, constant(number)))
    return found


def aggregate(add: Callable[[Operation], SSAValue], ir_type: Attribute, parts: Iterable[SSAValue]) -> SSAValue:
    """A struct or an array of these parts."""
    whole = add(llvm.PoisonOp(ir_type))
    for number, part in enumerate(parts):
        whole = add(llvm.InsertValueOp(builtin.DenseArrayBase.from_list(i64, [number]), whole, part))
    return whole


def constant_op(ir_type: Attribute, bits: int) -> llvm.ConstantOp | None:
    """The number with these bits; None for NaN, whose bits an attribute does not keep, and for a vector."""
    if isa(ir_type, IntegerType):
        return llvm.ConstantOp(builtin.IntegerAttr(signed(ir_type, bits), ir_type), ir_type)
    if isinstance(ir_type, AnyFloat) and not isnan(number := float_of(ir_type, bits)):
        return llvm.ConstantOp(builtin.FloatAttr(number, ir_type), ir_type)
    return None


def signed(ir_type: IntegerType, bits: int) -> int:
    """The signed integer with these bits; of i1 the unsigned one."""
    return bits - (1 << ir_type.bitwidth) if ir_type.bitwidth > 1 and bits >> (ir_type.bitwidth - 1) else bits


def float_of(ir_type: Attribute, bits: int) -> float:
    """The number with these bits."""
    return unpack(ir_type, bits.to_bytes(bits_of(ir_type) // 8, "little"))[0]


def bits_of_float(ir_type: Attribute, value: float) -> int:
    """The bits of the nearest number of a type."""
    return int.from_bytes(pack(ir_type, [float_attr(value, ir_type).value.data]), "little")
