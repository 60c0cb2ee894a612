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

from collections import defaultdict
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.mlir import gpu
from xla_emitters.dialects.mlir.gpu import FuncOp
from xla_emitters.dialects.mlir.gpu import ModuleOp as GpuModuleOp
from xla_emitters.rewrite.equal_code import Code, code_of
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscMergeEqualKernelsPass(KernelPass):
    name = "disc-merge-equal-kernels"

    def apply_to(self, op: ModuleOp) -> None:
        alike, merged = defaultdict[Outline, list[GpuModuleOp]](list), dict[SymbolRefAttr, SymbolRefAttr]()
        for module in [found for found in op.ops if isinstance(found, GpuModuleOp)]:
            function = module.body.block.first_op
            if not isinstance(function, FuncOp) or function is not module.body.block.last_op:
                self.skip(module, "it is not one kernel alone")
                continue
            alike[_outline(function)].append(module)
        for modules in alike.values():
            first = dict[Code, SymbolRefAttr]()
            for module in modules if len(modules) > 1 else ():
                function = _kernel(module)
                symbol = SymbolRefAttr(module.sym_name.data, [function.sym_name.data])
                kept = first.setdefault(code_of(function), symbol)
                if kept != symbol:
                    merged[symbol] = kept
                    Rewriter.erase_op(module)
        for launch in op.walk():
            if isinstance(launch, gpu.LaunchFuncOp) and launch.kernel in merged:
                launch.kernel = merged[launch.kernel]


Outline: TypeAlias = tuple[object, ...]


def _outline(function: FuncOp) -> Outline:
    """A part of a kernel's code that takes little time: few kernels have another with the same."""
    return function.function_type, *[op.name for op in function.walk()]


def _kernel(module: GpuModuleOp) -> FuncOp:
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    return function
