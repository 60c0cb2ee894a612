"""Counts the work of a launch: instructions executed by its threads, bytes that they load from and store to global memory.

    work = count_work(module, Launch((5, 1, 1), (256, 1, 1)), [x, y])        module: a kernel at the stage "llvm-dialect"
    work.instructions, work.bytes

An instruction is an op of the LLVM dialect other than a constant, counted once for each thread that executes it, in called functions too. A
division of integers counts as the instructions that a GPU needs (`DIVISION`), a call of libdevice as one. An access counts the bytes of
each thread: savings by caches are not modelled.
Source: CUDA C++ Programming Guide, "Arithmetic Instructions" (division of 32-bit integers: up to 20 instructions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import ConstantLike
from xdsl.utils.hints import isa

from xla_emitters.dialects.mlir import llvm
from xla_emitters.kernels.kernel_entry import entry_of_kernel
from xla_emitters.program import Launch
from xla_emitters.runtime.simt.code import Body, Compiler, Function, Scope
from xla_emitters.runtime.simt.execute import RULES
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.memory import Access, Memory, Space, Watcher
from xla_emitters.runtime.simt.sized_kernels import SizedKernel

CONSTANTS = frozenset(
    ("llvm.mlir.constant", "llvm.mlir.undef", "llvm.mlir.poison", "llvm.mlir.zero", "llvm.mlir.addressof")
)


DIVISIONS = frozenset(("llvm.udiv", "llvm.sdiv", "llvm.urem", "llvm.srem"))


class Division(NamedTuple):
    """Instructions of a division of integers: by a power of two, by another constant, by a number of 32 bits, of more bits."""

    power: int = 1
    constant: int = 4
    narrow: int = 20
    wide: int = 60


DIVISION = Division()


def _instructions(op: Operation) -> int:
    """How many instructions an op counts as."""
    if op.name in CONSTANTS or op.has_trait(ConstantLike):
        return 0
    if op.name not in DIVISIONS:
        return 1
    divisor = op.operands[1].owner
    if isinstance(divisor, llvm.ConstantOp) and isinstance(divisor.value, IntegerAttr):
        number = divisor.value.value.data
        return DIVISION.power if number & (number - 1) == 0 else DIVISION.constant
    ir_type = op.results[0].type
    is_wide = isa(ir_type, IntegerType) and ir_type.width.data > 32
    return DIVISION.wide if is_wide else DIVISION.narrow


@dataclass
class Work:
    """Instructions and bytes of all threads."""

    instructions: int = 0
    bytes: int = 0


def count_work(module: ModuleOp, launch: Launch, values: Sequence[Any], shared_bytes: int = 0) -> Work:
    """Runs one launch, which writes into the arrays, and returns its work.

    values  the kernel's arguments: arrays, and numbers
    raises  what the executor raises
    """
    work = Work()
    entry = entry_of_kernel(module)
    scope = _CountedScope(_CountedCompiler.counting(module, work), work)
    code = scope.region(entry.body)
    kernel = SizedKernel(entry.sym_name.data, tuple(entry.function_type.inputs.data), (), code, scope.count)
    kernel(launch, values, shared_bytes, [_Bytes(work)])
    return work


class _Bytes(Watcher):
    def __init__(self, work: Work) -> None:
        self.work = work

    def access(self, memory: Memory, access: Access) -> None:
        if access.buffer.space is Space.GLOBAL:
            all_lanes = len(memory.blocks) * memory.launch.threads
            self.work.bytes += access.size * _lanes(all_lanes, access.active, memory.launch.threads, len(memory.blocks))


def _lanes(all_lanes: int, active: Any, threads: int, blocks: int) -> int:
    """How many lanes a mask selects."""
    if active is None:
        return all_lanes
    rows, columns = active.shape
    return int(np.count_nonzero(active)) * (blocks // rows) * (threads // columns)


class _CountedScope(Scope):
    """Inserts a step that counts before the steps of each block."""

    def __init__(self, compiler: Compiler, work: Work) -> None:
        super().__init__(compiler)
        self.work = work

    def body(self, block: Block, kept: frozenset[SSAValue] = frozenset()) -> Body:
        made = super().body(block, kept)
        count = sum(map(_instructions, block.ops))

        def step(machine: Machine, frame: Any) -> None:
            blocks, threads = machine.shape
            self.work.instructions += count * _lanes(blocks * threads, machine.active, threads, blocks)

        made.steps.insert(0, (step, ()))
        return made


@dataclass
class _CountedCompiler(Compiler):
    """Counts in called functions too, and runs equal calls again."""

    work: Work | None = None

    @staticmethod
    def counting(module: ModuleOp, work: Work) -> _CountedCompiler:
        plain = Compiler.of(module, RULES)
        return _CountedCompiler(plain.rules, plain.symbols, plain.shared, work=work)

    def function(self, name: str) -> Function:
        if name not in self.functions:
            assert self.work is not None
            op = self.symbols.get(name)
            body = getattr(op, "body", None)
            if body is not None and body.blocks:
                function = self.functions[name] = Function(name)
                scope = _CountedScope(self, self.work)
                function.code, function.slots = scope.region(body), scope.count
        found = super().function(name)
        found.is_shared = False
        return found
