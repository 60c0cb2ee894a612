"""The launches of a module on buffers at fixed sizes: its host program runs once, on arrays that are never filled.

    func @main(%x: memref<4096x2048xf32>) { ... gpu.launch_func @k blocks in (%rows, 1, 1) ... args(%x, %y, %cols) }
->
    launches   [{"kernel": "k", "grid": [4096, 1, 1], "block": [256, 1, 1], "shared_bytes": 0, "arguments": [0, 1]}]
    kernels    [gpu.module @k { gpu.func @k(%x, %y) ... }]           a copy for each launch, in which %cols is constant

An argument is the index of an array: first the program's own arrays, then its results, then temporaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.errors import Unsupported
from xla_emitters.host.python_program import python_program
from xla_emitters.kernels.index_bounds import IndexBounds
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import Row
from xla_emitters.program import Extents, Launch
from xla_emitters.rewrite.data_layout import NARROW
from xla_emitters.rewrite.recorder import Recorder
from xla_emitters.runtime.arrays import element_name
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.kernels import Kernels
from xla_emitters.runtime.ral.program import LoadedProgram


@dataclass
class LaunchPlan(Kernels):
    """The launches of a fusion.

    kernels  a module for each launch
    """

    launches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    temporaries: list[tuple[str, tuple[int, ...]]] = field(default_factory=list[tuple[str, tuple[int, ...]]])
    kernels: list[ModuleOp] = field(default_factory=list[ModuleOp])
    seen: list[tuple[str, Any, Any, int, Sequence[Any]]] = field(default_factory=list[Any])

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        self.seen.append((name, grid, block, shared_bytes, arguments))

    def to_json(self) -> dict[str, Any]:
        return {"launches": self.launches, "temporaries": self.temporaries}


def main_of(module: ModuleOp) -> func.FuncOp:
    """The program's function."""
    (main,) = (op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == "main")
    return main


def plan_of(module: ModuleOp, rows: Sequence[Row], options: CompileOptions, *, is_for_gpu: bool = False) -> LaunchPlan:
    """The launches of a fusion at fixed sizes, and a kernel for each; for a GPU, with indices of 32 bits where that is enough."""
    recorder = Recorder("fusion", "none", options.verify, None)
    context = make_context()
    for row in rows:
        recorder.run(row.make(options), row.stage, context, module)
    arrays = [_array(ir_type) for ir_type in main_of(module).function_type.inputs]
    made, plan = python_program(module), LaunchPlan()
    results = LoadedProgram(made.source, made.functions, made.dtypes, Constants({}), plan).run(arrays)
    places = {id(array): number for number, array in enumerate((*arrays, *results))}
    functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, gpu.FuncOp)}
    for number, (name, grid, block, shared_bytes, values) in enumerate(plan.seen):
        new_name = f"{name}_{number}" if number else name
        arguments = list[int]()
        for value in values:
            if isinstance(value, np.ndarray):
                base = _base(cast(Array, value))
                if id(base) not in places:
                    places[id(base)] = len(arrays) + len(results) + len(plan.temporaries)
                    plan.temporaries.append((element_name(base.dtype), base.shape))
                arguments.append(places[id(base)])
        kernel = ModuleOp([_with_constants(functions[name], values, new_name)])
        if is_for_gpu and not IndexBounds(functions[name]).exceed_32_bits(Launch(grid, block), values):
            kernel.attributes["dlti.dl_spec"] = NARROW
        plan.kernels.append(kernel)
        plan.launches.append(launch_record(new_name, grid, block, shared_bytes, arguments))
    return plan


def launch_record(
    name: str, grid: Sequence[int], block: Sequence[int], shared_bytes: int, arguments: Sequence[int]
) -> dict[str, Any]:
    return {
        "kernel": name,
        "grid": list(grid),
        "block": list(block),
        "shared_bytes": shared_bytes,
        "arguments": list(arguments),
    }


def _array(ir_type: Attribute) -> Array:
    tensor = tensor_of(ir_type)
    return np.empty(tensor.get_shape(), dtype_of(tensor.element_type).numpy)


def _base(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _with_constants(function: gpu.FuncOp, values: Sequence[Any], name: str) -> gpu.ModuleOp:
    """A copy of a kernel's module under a name of its own, in which the scalar arguments of the launch are constants."""
    holder = function.parent_op()
    assert isinstance(holder, gpu.ModuleOp)
    copy = holder.clone()
    (kernel,) = (op for op in copy.walk() if isinstance(op, gpu.FuncOp))
    copy.sym_name = kernel.sym_name = StringAttr(name)
    block = kernel.body.blocks[0]
    kept = list[int]()
    for number, (argument, value) in enumerate(zip(list(block.args), values, strict=False)):
        if isinstance(argument.type, MemRefType):
            kept.append(number)
            continue
        if not (isa(argument.type, IntegerType) or isa(argument.type, IndexType)):
            raise Unsupported(f"a kernel takes a number of type {argument.type}", stage="heat")
        made = arith.ConstantOp(IntegerAttr(int(value), argument.type))
        Rewriter.insert_op(made, InsertPoint.at_start(block))
        argument.replace_all_uses_with(made.result)
        block.erase_arg(argument)
    types = [kernel.function_type.inputs.data[number] for number in kept]
    if kernel.arg_attrs is not None:
        kernel.arg_attrs = ArrayAttr([kernel.arg_attrs.data[number] for number in kept])
    kernel.function_type = FunctionType.from_lists(types, [])
    return copy
