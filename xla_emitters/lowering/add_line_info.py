"""Locations in the form of LLVM's tools, so that every PTX instruction names its op and its HLO instruction.

    llvm.func @fusion(...) {                                llvm.func @fusion(...) {
      ...                                               ->    ...
      %5 = llvm.fmul %4, %4 loc("square"("gelu.hlo":13:3))    %5 = llvm.fmul %4, %4 loc("gelu.hlo":13:20)
    }                                                       } loc(fused<#llvm.di_subprogram<...>>["gelu.hlo":1:1])

    .loc 1 13 20                                            in PTX: line 13 of the HLO text, line 20 of the stage `llvm-dialect`
    mul.rn.bf16 %rs5, %rs3, %rs3;

The line is that of the HLO instruction, which debuggers and profilers show. The column is the line, from 1, on which the op starts when
its module is printed: it distinguishes ops of one HLO instruction, and finds all HLO instructions of an op that has several (a vector
access, or ops that CSE merged): the trace records them for each line of that text. An op without a location gets the line of the op
whose result it reads, or of the op before it.

The machine code is the same with and without lines: the subprograms have the kind `DebugDirectivesOnly`, which emits `.loc` and `.file`
but no DWARF (with DWARF, ptxas would not optimise), and no variables are described. The pass runs only if lines are requested.
Ops beyond line 65535, LLVM's largest column, have no column, only the line of HLO.
Source: MLIR 22, DIScopeForLLVMFuncOp.cpp; LLVM 22, NVPTXAsmPrinter.cpp (emission kinds); PTX ISA 8.6, ".loc".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, OpResult

from xla_emitters.dialects.attributes import int_attr, string, unchecked
from xla_emitters.dialects.locations import first_position
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir_parser import DistinctAttr
from xla_emitters.dialects.mlir_printer import print_ir_with_lines
from xla_emitters.rewrite.kernel_pass import KernelPass

_LARGEST_COLUMN = 2**16 - 1
_MOST_FUNCTIONS = 2**16
_NO_FILE = "<hlo>"
_PRODUCER = "xla-emitters"


@dataclass(frozen=True)
class AddLineInfoPass(KernelPass):
    """kernel: its number in its program, which makes the subprograms of different kernels differ"""

    name = "xla-add-line-info"

    kernel: int = 0

    def apply_to(self, op: ModuleOp) -> None:
        numbers = {found: line + 1 for line, found in print_ir_with_lines(op)[1]}
        functions = [found for found in op.body.ops if isinstance(found, llvm.FuncOp) and found.body.blocks]
        file = next(
            (at[0] for function in functions for inner in function.walk() if (at := first_position(inner))), None
        )
        for number, function in enumerate(functions):
            for inner, line in _lines(function):
                column = numbers[inner] if numbers[inner] <= _LARGEST_COLUMN else 0
                inner.location = unchecked(
                    FileLineColLoc, filename=string(file or _NO_FILE), line=int_attr(line), column=int_attr(column)
                )
            function.location = _with_subprogram(function, file or _NO_FILE, (self.kernel, number))


def _lines(function: llvm.FuncOp) -> list[tuple[Operation, int]]:
    """Each op of the function with the line of its HLO instruction."""
    lines: dict[Operation, int] = {}
    for block in function.body.blocks:
        before = 1
        for op in block.ops:
            at = first_position(op)
            known = at[1] if at else next((lines[maker] for maker in _makers(op) if maker in lines), before)
            before = lines[op] = known
    return list(lines.items())


def _makers(op: Operation) -> Iterator[Operation]:
    return (operand.owner for operand in op.operands if isinstance(operand, OpResult))


def _with_subprogram(function: llvm.FuncOp, file: str, number: tuple[int, int]) -> FusedLoc:
    """The function's location with the subprogram that LLVM needs for lines; `number`: of the kernel, and of the function in the kernel."""
    kernel, place_in_kernel = number
    first = 2 * (kernel * _MOST_FUNCTIONS + place_in_kernel)
    source = llvm.DIFileAttr(StringAttr(file), StringAttr(""))
    unit = llvm.DICompileUnitAttr.of(
        id=_distinct(first),
        sourceLanguage=StringAttr("DW_LANG_C"),
        file=source,
        producer=StringAttr(_PRODUCER),
        isOptimized=IntegerAttr(1, i1),
        emissionKind=StringAttr("DebugDirectivesOnly"),
    )
    subprogram = llvm.DISubprogramAttr.of(
        id=_distinct(first + 1),
        compileUnit=unit,
        scope=source,
        name=StringAttr(function.sym_name.data),
        file=source,
        line=IntegerAttr(1, i64),
        subprogramFlags=StringAttr("Definition|Optimized"),
    )
    place = FileLineColLoc(StringAttr(file), IntAttr(1), IntAttr(1))
    return FusedLoc(ArrayAttr[Attribute]([place]), subprogram)


def _distinct(number: int) -> DistinctAttr:
    return DistinctAttr(IntAttr(number), ArrayAttr[Attribute]([]))
