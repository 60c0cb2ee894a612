"""Functions that return a thread or block id with a known range: declared in the IR, defined in LLVM IR.

    llvm.func @sreg.tid.x.0.128() -> i32 attributes {xla.register = "tid.x", xla.register_range = #llvm.constant_range<i32, 0, 128>}

The attributes of the declaration define the function: the register that it reads and the bounds of its value. xla-convert-ids-to-calls
writes it; the executor runs `definition`; PTX is made from `llvm_ir`, with the range as metadata, which MLIR cannot write.
"""

from __future__ import annotations

from xdsl.dialects.builtin import LocationAttr, StringAttr, i32
from xdsl.ir import Block, Operation

from xla_emitters.dialects.mlir import llvm, nvvm
from xla_emitters.support.late_dataclass import dataclass

REGISTERS: dict[str, type[nvvm.SpecialRegisterOp]] = {
    **{f"tid.{dimension}": op for dimension, op in nvvm.THREAD_ID.items()},
    **{f"ctaid.{dimension}": op for dimension, op in nvvm.BLOCK_ID.items()},
}
"""The registers that hold ids -> the op that reads each."""

_NAMES = {op: name for name, op in REGISTERS.items()}
_READS_AN_ID = llvm.LLVMFunctionType([], i32)
_REGISTER = "xla.register"
_RANGE = "xla.register_range"
_BLOCK_IDS = 2**24


@dataclass(frozen=True)
class IdFunction:
    """Reads `register`, whose value is at least `low` and below `high`."""

    register: str
    low: int
    high: int

    @property
    def name(self) -> str:
        return f"sreg.{self.register}.{self.low}.{self.high}"

    def declaration(self) -> llvm.FuncOp:
        """A function without a body, from which `declared_by` reads this value."""
        attributes = {
            _REGISTER: StringAttr(self.register),
            _RANGE: llvm.ConstantRangeAttr.of(32, self.low, self.high),
        }
        return llvm.FuncOp(self.name, _READS_AN_ID, extra_attrs=attributes)

    def definition(self, location: LocationAttr) -> llvm.FuncOp:
        """The function with its body: the value of the register, in its range. `location` is its declaration's."""
        id_op = REGISTERS[self.register]((self.low, self.high))
        defined = self.declaration()
        id_op.location = defined.location = location
        defined.body.add_block(Block([id_op, llvm.ReturnOp(id_op.res)]))
        return defined

    def llvm_ir(self, linkage: str, bounds: str) -> str:
        """The function in LLVM IR; `bounds` is the name of a node with the text `bounds_text`.

        Attributes also say that block ids are below 2^24, or below the launch's number if that is larger: with blocks of 128 threads the
        number of a thread is then nonnegative and does not wrap.
        """
        wide = f"range(i32 0, {max(self.high, _BLOCK_IDS)}) " if self.register.startswith("cta") else ""
        lines = (
            f"define {linkage} i32 @{self.name}() alwaysinline nounwind willreturn memory(none) {{",
            f"  %id = call {wide}i32 @llvm.nvvm.read.ptx.sreg.{self.register}(), !range {bounds}",
            "  ret i32 %id",
            "}",
        )
        return "\n".join(lines)

    @property
    def bounds_text(self) -> str:
        return f"!{{i32 {self.low}, i32 {self.high}}}"


def read_by(op: Operation) -> IdFunction | None:
    """The function that can replace `op`, which reads an id with a range. None for any other op."""
    if not isinstance(op, nvvm.SpecialRegisterOp) or op.range is None or type(op) not in _NAMES:
        return None
    return IdFunction(_NAMES[type(op)], op.range.lower.value.data, op.range.upper.value.data)


def declared_by(op: Operation) -> IdFunction | None:
    """The function that `op` declares; None for any other op."""
    if not isinstance(op, llvm.FuncOp) or op.body.blocks:
        return None
    register, bounds = op.attributes.get(_REGISTER), op.attributes.get(_RANGE)
    if not isinstance(register, StringAttr) or not isinstance(bounds, llvm.ConstantRangeAttr):
        return None
    if register.data not in REGISTERS:
        return None
    function = IdFunction(register.data, bounds.lower.value.data, bounds.upper.value.data)
    return function if function.name == op.sym_name.data else None
