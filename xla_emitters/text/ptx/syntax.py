"""What PTX text says, as plain values: the parser makes them, `raising` reads them.

    @!%p1 ld.global.v2.b32 {%r1, %r2}, [%rd1+8];
    Instruction(("ld", "global", "v2", "b32"), (OperandGroup((%r1, %r2)), Address(%rd1, 8)), guard=(%p1, False))

Registers are resolved by the parser: two scopes may have registers of one name, which are two `Register`s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar

from xdsl.dialects.builtin import IntegerType, VectorType, bf16, f16, f32, f64, i1, i8, i16, i64
from xdsl.ir import Attribute

from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.errors import ParseError, Unsupported
from xla_emitters.support.source import Source

STAGE = "ptx"
SPACES = ("global", "const", "shared", "local", "param")
"""The state spaces of variables."""
E = TypeVar("E", ParseError, Unsupported)


@dataclass(frozen=True, eq=False)
class Register:
    """A register of the function, or a scalar in `.param`. type: `pred`, `b32`, `f64` ... as declared."""

    name: str
    type: str
    is_param: bool = False


@dataclass(frozen=True)
class Special:
    """A register that the hardware provides: `tid.x`, without its `%`."""

    name: str


@dataclass(frozen=True)
class PtxLiteral:
    """A literal. kind: "int" (value: Python's, maybe negative), "f32" or "f64" (value: its bits)."""

    value: int
    kind: str = "int"


@dataclass(frozen=True)
class SymbolAddress:
    """The address of a variable, or the name of a function or label, plus `offset` bytes. generic: inside `generic(...)`."""

    name: str
    offset: int = 0
    generic: bool = False


@dataclass(frozen=True)
class Negated:
    """`!%p`"""

    register: Register


@dataclass(frozen=True)
class Selected:
    """`%r1.b3`: some bytes or halves of a register, of video instructions. parts: `b3`, `h10` ..."""

    register: Register
    parts: str


@dataclass(frozen=True)
class Pair:
    """`%r1|%p1`: two results. A part is None where it is `_`."""

    first: Register | None
    second: Register | None


@dataclass(frozen=True)
class OperandGroup:
    """`{%r1, %r2}` or `(%r1, %r2)`; an element is None where it is `_`."""

    elements: tuple[Operand | None, ...]


@dataclass(frozen=True)
class Address:
    """`[%rd1+8]`, `[symbol]`, `[16]`. coordinates: of `[%rd1, {%r1, %r2}]`."""

    base: Register | SymbolAddress | None
    offset: int = 0
    coordinates: OperandGroup | None = None


Operand: TypeAlias = (
    Register | Special | PtxLiteral | SymbolAddress | Negated | Selected | Pair | OperandGroup | Address
)


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction.

    parts     the mnemonic at its dots
    operands  None for `_`
    guard     predicate, and the value of it for which the instruction runs
    start     offset of the mnemonic; `end`: of its end
    loc       (file, line, column) of the `.loc` before it
    used      of a load: a bit for each byte whose value is used, of the pragma `used_bytes_mask` before it; None: all are
    """

    parts: tuple[str, ...]
    operands: tuple[Operand | None, ...]
    guard: tuple[Register, bool] | None
    start: int
    end: int
    loc: tuple[int, int, int] | None = None
    used: int | None = None

    @property
    def name(self) -> str:
        return ".".join(self.parts)

    @property
    def stem(self) -> str:
        return self.parts[0]

    @property
    def types(self) -> list[str]:
        """The types that the mnemonic names, in order."""
        return [part for part in self.parts[1:] if part in SIZES]

    @property
    def space(self) -> str:
        """The space that the mnemonic names; `generic` if none."""
        named = (part.partition("::")[0] for part in self.parts[1:])
        return next((part for part in named if part in SPACES), "generic")

    def among(self, words: str, *otherwise: str) -> str:
        """The first part of the mnemonic that is one of these words."""
        return next((part for part in self.parts if part in words.split()), *otherwise)


@dataclass(frozen=True)
class Label:
    name: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.name)


@dataclass(frozen=True, eq=False)
class PtxVariable:
    """A variable, a parameter, or a result.

    space     `global`, `const`, `shared`, `local`, `param`; `reg` for a parameter of old texts
    type      of an element
    count     elements; None: one, not an array; 0: as many as the launch gives (dynamic shared memory)
    align     bytes; 0: the type's own
    values    initial values, flat; numbers or symbols
    register  of a scalar in `.param` or `.reg`, which is a register in all but name
    """

    name: str
    space: str
    type: str
    count: int | None
    align: int
    start: int
    values: tuple[PtxLiteral | SymbolAddress, ...] | None = None
    is_extern: bool = False
    is_pointer: bool = False
    pointee_align: int = 0
    register: Register | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.name)

    @property
    def size(self) -> int:
        """Bytes."""
        return SIZES[self.type] * (1 if self.count is None else self.count)

    @property
    def alignment(self) -> int:
        return self.align or SIZES[self.type]


@dataclass(eq=False)
class PtxFunction:
    """`.entry` or `.func`.

    body     None for a declaration
    tables   name of a `.branchtargets` list -> labels; of `.calltargets` -> functions
    prototypes  name of a `.callprototype` -> its parameters and results
    bounds   `.reqntid`, `.maxntid` ... -> numbers
    """

    name: str
    is_entry: bool
    parameters: tuple[PtxVariable, ...]
    results: tuple[PtxVariable, ...]
    start: int
    end: int
    body: list[Instruction | Label] | None = None
    variables: list[PtxVariable] = field(default_factory=list[PtxVariable])
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    prototypes: dict[str, PtxFunction] = field(default_factory=dict[str, "PtxFunction"])
    bounds: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])


@dataclass(eq=False)
class PtxModule:
    """A PTX text.

    version  of the ISA, such as (8, 6)
    files    number -> name, of `.file`
    """

    source: Source
    version: tuple[int, int] = (0, 0)
    target: str = ""
    address_size: int = 64
    variables: dict[str, PtxVariable] = field(default_factory=dict[str, PtxVariable])
    functions: dict[str, PtxFunction] = field(default_factory=dict[str, PtxFunction])
    files: dict[int, str] = field(default_factory=dict[int, str])
    remarks: list[str] = field(default_factory=list[str])

    @property
    def entries(self) -> list[PtxFunction]:
        return [function for function in self.functions.values() if function.is_entry and function.body is not None]

    @cached_property
    def exiting(self) -> frozenset[str]:
        """The names of functions that may end a thread, themselves or by a call."""
        callers: dict[str, list[str]] = {}
        found = dict[str, None]()
        for name, function in self.functions.items():
            before = None
            for item in function.body or () if not function.is_entry else ():
                if isinstance(item, Instruction):
                    if item.stem == "exit" and not is_trap(before):
                        found[name] = None
                    elif item.stem == "call" and isinstance(callee := call_parts(item)[1], SymbolAddress):
                        callers.setdefault(callee.name, []).append(name)
                before = item
        pending = list(found)
        while pending:
            more = [name for name in callers.get(pending.pop(), ()) if name not in found]
            found |= dict.fromkeys(more)
            pending += more
        return frozenset(found)


RESERVED = "%reserved_smem"
RESERVED_SHARED = PtxVariable(RESERVED, "shared", "b8", 1024, 16, 0, (PtxLiteral(0),))
"""Shared memory that CUDA keeps for itself before that of a kernel, in every block zero at first: its cooperative groups meet there."""
WORKSPACE = "%grid_workspace"
BUILT_IN = {RESERVED: RESERVED_SHARED, WORKSPACE: PtxVariable(WORKSPACE, "global", "b8", 64, 16, 0)}
"""Also the memory, zero at first, whose address a cooperative launch has in %envreg1 and 2: the blocks of its grid meet there."""
Operands: TypeAlias = tuple[Operand | None, ...]


def call_parts(i: Instruction) -> tuple[Operands, Operand | None, Operands]:
    """Results, callee and arguments of `call (r), f, (a, b)`."""
    given = list(i.operands)

    def group() -> Operands:
        if given and isinstance(first := given[0], OperandGroup):
            del given[0]
            return first.elements
        return ()

    results = group()
    callee = given.pop(0) if given else None
    return results, callee, group()


def is_trap(item: Instruction | Label | None) -> bool:
    """Whether nothing behind it is reached: LLVM writes `exit` there."""
    return isinstance(item, Instruction) and item.parts == ("trap",) and item.guard is None


TYPES: dict[str, Attribute] = {
    "pred": i1,
    **{f"{kind}{bits}": IntegerType(bits) for kind in "bsu" for bits in (8, 16, 32, 64)},
    **{"f16": f16, "bf16": bf16, "f32": f32, "f64": f64, "tf32": f32, "b128": VectorType(i64, [2])},
    **dict.fromkeys(("s16x2", "u16x2"), VectorType(i16, [2])),
    **{"f16x2": VectorType(f16, [2]), "bf16x2": VectorType(bf16, [2]), "f32x2": VectorType(f32, [2])},
    **dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2"), i16),
    **dict.fromkeys(("e2m1x2", "e4m3", "e5m2"), i8),
}
"""PTX's type -> IR's."""
SIZES = {word: -(-bits_of(ir_type) // 8) for word, ir_type in TYPES.items()}
"""Type -> bytes."""
DECLARED = frozenset(SIZES) & {f"{kind}{bits}" for kind in "busf" for bits in (8, 16, 32, 64, 128)} | {"f16x2", "pred"}
"""Types of registers and variables; the others are of instructions alone. Source: PTX ISA 8.8, 5.2 "Types"."""


class Placed(Protocol):
    """Something in a text: an instruction, a label, a function."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


def fault(kind: type[E], source: Source, at: Placed, message: str) -> E:
    """An error at something in the text."""
    return kind(message, stage=STAGE, place=source.place(at.start, at.end))


def registers_in(operand: Operand | None) -> list[Register]:
    """The registers that an operand mentions."""
    match operand:
        case Register():
            return [operand]
        case Negated() | Selected():
            return [operand.register]
        case Pair():
            return [part for part in (operand.first, operand.second) if part is not None]
        case OperandGroup():
            return [register for element in operand.elements for register in registers_in(element)]
        case Address():
            base = [operand.base] if isinstance(operand.base, Register) else []
            return base + registers_in(operand.coordinates)
        case _:
            return []
