"""Runs the loops that a schedule writes for one fusion: the control computations in Python, the loops on the CPU executor.

    run(text, ROW_SCHEDULES["row1"], x=..., zero=..., y=...)

`text` has a function @main with one `lmhlo.fusion`; its arguments are passed by name, and those that are written are results.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, tensor_of
from xla_emitters.dialects.mlir import arith, func, memref, scf
from xla_emitters.dialects.verification import verify_ir
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.runtime.simt.fusion_loops import compile_loops
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sanitizer import SanitizerOfLaunches

Schedule = Callable[[FusionLoops], None]
# Of the modules that tests run at several sizes.
_code_of = lru_cache(maxsize=64)(compile_loops)


def scheduled(text: str, schedule: Schedule) -> ModuleOp:
    """The module after the schedule wrote the loops of its fusion; roots are the ops that write arguments."""
    module = parse_ir(text)
    (fusion,) = [op for op in module.walk() if isinstance(op, FusionOp)]
    roots = [op for op in fusion.body.block.ops if isinstance(op, BufferOp)]
    schedule(FusionLoops(fusion, [op for op in roots if isinstance(op.outputs[0].owner, Block)]))
    for op in [inner for inner in module.walk(reverse=True) if isinstance(inner, BufferOp)]:
        Rewriter.erase_op(op)
    verify_ir(module)
    return module


def run(module: ModuleOp, watchers: Sequence[Watcher] | None = None, **given: Array) -> None:
    """Runs @main; by default under the sanitizer."""
    (main,) = [op for op in module.ops if isinstance(op, func.FuncOp)]
    host = Host([SanitizerOfLaunches()] if watchers is None else watchers)
    for argument in main.body.block.args:
        host.values[argument] = given[argument.name_hint or ""]
    host.run(main.body.block)


class Host:
    """Executes the ops around loops.

    allocated   all bytes of temporary buffers
    """

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.values: dict[SSAValue, Any] = {}
        self.watchers = watchers
        self.allocated = 0

    def run(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case FusionOp():
                    loops = _code_of(op)
                    loops(*[self.values[value] for value in loops.captured], watchers=self.watchers)
                case scf.IfOp():
                    taken = op.true_region if self.values[op.cond] else op.false_region
                    if taken.blocks:
                        self.run(taken.block)
                case memref.AllocOp():
                    made = self.allocate(op)
                    self.allocated += made.nbytes
                    self.values[op.memref] = made
                case memref.DeallocOp() | scf.YieldOp() | func.ReturnOp():
                    pass
                case _:
                    self.values[op.results[0]] = self.number(op)

    def allocate(self, op: memref.AllocOp) -> Array:
        sizes = iter([self.values[size] for size in op.dynamic_sizes])
        shape = [size if size >= 0 else next(sizes) for size in op.memref.type.get_shape()]
        made = np.empty(shape, element_of(tensor_of(op.memref.type)).numpy)
        made.reshape(-1).view(np.uint8)[:] = 0xA5
        return made

    def number(self, op: Operation) -> Any:
        values = [self.values[operand] for operand in op.operands]
        match op:
            case arith.ConstantOp(value=IntegerAttr() as number):
                return number.value.data
            case memref.DimOp():
                return values[0].shape[values[1]]
            case memref.LoadOp():
                return values[0][tuple(values[1:])]
            case arith.AddiOp():
                return values[0] + values[1]
            case arith.SubiOp():
                return values[0] - values[1]
            case arith.MuliOp():
                return values[0] * values[1]
            case arith.FloorDivSIOp():
                return values[0] // values[1]
            case arith.MaxSIOp():
                return max(values)
            case arith.CmpiOp():
                holds = {1: values[0] != values[1], 3: values[0] <= values[1], 7: values[0] <= values[1]}
                return holds[op.predicate.value.data]
            case arith.SelectOp():
                return values[1] if values[0] else values[2]
            case _:
                raise AssertionError(f"the host does not run {op.name}")
