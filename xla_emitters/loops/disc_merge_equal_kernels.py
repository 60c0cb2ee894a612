"""Merges kernels with equal code: the layers of a model launch the same few kernels.

    gpu.launch_func @add_0::@add_0 ... args(%x, %y, %n)                gpu.launch_func @add_0::@add_0 ... args(%x, %y, %n)
    gpu.launch_func @add_7::@add_7 ... args(%u, %v, %m)           ->   gpu.launch_func @add_0::@add_0 ... args(%u, %v, %m)
    gpu.module @add_0 { gpu.func @add_0 ... }                          gpu.module @add_0 { gpu.func @add_0 ... }
    gpu.module @add_7 { gpu.func @add_7 ... }

Two kernels are equal if they have the same ops with the same attributes on the same values, in the same order, and parameters of the same
types and attributes; names and locations are ignored. The first stays, with its name and its own locations. The same ops in
another order are different code, and parameters in another order are not matched.

A program of 12 layers compiles as fast as one of one layer, since later passes see each kernel once.
Correctness: a kernel is a function of its arguments, and each launch still passes its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.mlir import gpu
from xla_emitters.dialects.mlir.gpu import FuncOp
from xla_emitters.dialects.mlir.gpu import ModuleOp as GpuModuleOp
from xla_emitters.rewrite.kernel_pass import KernelPass

Code: TypeAlias = tuple[object, ...]
_NAME = "sym_name"


@dataclass(frozen=True)
class DiscMergeEqualKernelsPass(KernelPass):
    """See the file's head."""

    name = "disc-merge-equal-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        first, merged = dict[Code, SymbolRefAttr](), dict[SymbolRefAttr, SymbolRefAttr]()
        for module in [found for found in op.ops if isinstance(found, GpuModuleOp)]:
            function = module.body.block.first_op
            if not isinstance(function, FuncOp) or function is not module.body.block.last_op:
                self.skip(module, "it is not one kernel alone")
                continue
            symbol = SymbolRefAttr(module.sym_name.data, [function.sym_name.data])
            kept = first.setdefault(tuple(_code(function, dict[SSAValue | Block, int]())), symbol)
            if kept != symbol:
                merged[symbol] = kept
                Rewriter.erase_op(module)
        for launch in op.walk():
            if isinstance(launch, gpu.LaunchFuncOp) and launch.kernel in merged:
                launch.kernel = merged[launch.kernel]


def _code(op: Operation, numbers: dict[SSAValue | Block, int]) -> Iterator[object]:
    """An op without its name and location, comparable: values and blocks are numbered in the order in which they occur."""

    def number(part: SSAValue | Block) -> int:
        return numbers.setdefault(part, len(numbers))

    yield op.name
    yield _sorted(op.properties)
    yield _sorted(op.attributes)
    yield tuple(map(number, op.operands))
    yield tuple(map(number, op.successors))
    yield tuple((number(result), result.type) for result in op.results)
    for region in op.regions:
        yield from _region_code(region, numbers)


def _region_code(region: Region, numbers: dict[SSAValue | Block, int]) -> Iterator[object]:
    yield len(region.blocks)
    for block in region.blocks:
        yield numbers.setdefault(block, len(numbers))
        yield tuple((numbers.setdefault(argument, len(numbers)), argument.type) for argument in block.args)
        for op in block.ops:
            yield from _code(op, numbers)
        yield "end"


def _sorted(attributes: dict[str, Attribute]) -> tuple[tuple[str, Attribute], ...]:
    return tuple(sorted((name, value) for name, value in attributes.items() if name != _NAME))
