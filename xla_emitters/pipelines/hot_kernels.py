"""Kernels of one fusion at fixed sizes: what the background process compiles.

    answer = compile_hot({"platform": "cpu", "fusion": TEXT, "shapes": [[4, 32], [4, 32]], "numbers": [], "target": "h200"})
    answer["launches"]    [{"kernel": "main_kLoop_add_0", "grid": [4, 1, 1], ..., "arguments": [0, 1]}]
    answer["code"]        machine code of this CPU, or IR, or PTX

The fusion's host program runs once on arrays of these sizes that nobody fills: what it launches is the plan. Numbers that it passes to a
kernel become constants in it, so that all loops have known ends. An argument is the number of an array, those of temporaries behind the
fusion's own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
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

from xla_emitters.buffers.fusion_alone import at_sizes
from xla_emitters.buffers.fusion_as_hlo import fusion_as_hlo
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dialects.mlir import gpu, llvm
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dtypes import Array, dtype, dtype_of
from xla_emitters.emitters.partitioner import sanitize
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.host.python_program import python_program
from xla_emitters.kernels.index_bounds import IndexBounds
from xla_emitters.kernels.kernel_entry import entry_of_kernel
from xla_emitters.lowering.host_code import host_ir, object_code
from xla_emitters.lowering.llvm_ir.values import type_text
from xla_emitters.lowering.toolchain import compile_to_ptx
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.passes import FOR_TOOLS, Row
from xla_emitters.pipelines.program_kernels import NARROW
from xla_emitters.pipelines.program_passes import CPU_KERNEL, CPU_LOOPS
from xla_emitters.planning.host_steps import PlannedKernel
from xla_emitters.program import Allocation, Argument, Kernel, Launch, Release
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.rewrite.recorder import Observer, Recorder
from xla_emitters.runtime.arrays import element_name
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import Kernels
from xla_emitters.runtime.ral.program import LoadedProgram
from xla_emitters.runtime.simt.work_counts import Work, count_work


def compile_hot(request: Mapping[str, Any]) -> dict[str, Any]:
    """What runs a fusion at fixed sizes, as plain data. raises Unsupported, ToolError"""
    options = CompileOptions(target=request["target"], record="none")
    module = at_sizes(parse_ir(request["fusion"], "<fusion>"), request["shapes"], request["numbers"])
    return PLATFORMS[request["platform"]](module, options, request)


def _for_cpu(module: ModuleOp, options: CompileOptions, request: Mapping[str, Any]) -> dict[str, Any]:
    """The program's own loops with these sizes."""
    plan = plan_of(module, CPU_LOOPS, options)
    lowered = [_lowered(kernel, CPU_KERNEL, options) for kernel in plan.kernels]
    merged = merge_modules(lowered)[0] if lowered else ModuleOp([])
    parameters = {
        function.sym_name.data: list(map(type_text, function.function_type.inputs))[:-3]
        for function in merged.ops
        if isinstance(function, llvm.FuncOp) and function.body.blocks
    }
    return {
        "what": "loops of these sizes",
        **plan.to_json(),
        "code": {"object": b64encode(object_code(host_ir(merged))).decode(), "parameters": parameters},
    }


def _for_simt(module: ModuleOp, options: CompileOptions, request: Mapping[str, Any]) -> dict[str, Any]:
    """By the emitters, or the program's own loops with these sizes: what is cheaper, if it is cheaper than loops for all sizes."""
    found, reasons = list[dict[str, Any]](), list[str]()
    for make in (_by_emitters, _by_loops):
        try:
            found.append(make(module.clone(), options))
        except Unsupported as error:
            reasons.append(error.message)
    if not found:
        raise Unsupported("; ".join(reasons), stage="heat")
    if (before := _work(request["now"], request["modules"])) is None:
        return found[0]
    types = [argument.type for argument in _main(module).args] + list(_main(module).function_type.outputs)
    best, cost = found[0], None
    for answer in found:
        work = _work(_on_arrays(answer, types), answer["code"]["modules"])
        if work is None:
            continue
        answer["gain"] = {
            "instructions": (before.instructions, work.instructions),
            "bytes": (before.bytes, work.bytes),
        }
        if cost is None or _cost(work) < cost:
            best, cost = answer, _cost(work)
    if cost is not None and cost >= _cost(before):
        gains = ", ".join(f"{name} {a} -> {b}" for name, (a, b) in best["gain"].items())
        raise Unsupported(f"no kernel for these sizes is cheaper: {gains}", stage="heat")
    return best


def _cost(work: Work) -> float:
    """What kernels are compared by: an H200 executes about six instructions of a thread in the time of a byte from memory."""
    return work.instructions / INSTRUCTIONS_PER_BYTE + work.bytes


INSTRUCTIONS_PER_BYTE = 6
"""132 multiprocessors x 128 lanes x 1.8 GHz over 4.8 TB/s."""
MOST_THREADS = 1 << 18
"""Of all launches of a fusion that are counted: larger ones are taken on trust."""


def _on_arrays(answer: Mapping[str, Any], types: Sequence[Attribute]) -> list[dict[str, Any]]:
    """An answer's launches, on types and shapes."""
    arrays = [(dtype_of(tensor_of(each).element_type).name, tensor_of(each).get_shape()) for each in types]
    arrays += answer["temporaries"]
    return [{**launch, "arguments": [arrays[n] for n in launch["arguments"]]} for launch in answer["launches"]]


def _work(launches: Sequence[Mapping[str, Any]], modules: Mapping[str, str]) -> Work | None:
    """What launches do together, on arrays of zeros; None where they have too many threads to be executed here, or need other data."""
    if sum(prod(launch["grid"]) * prod(launch["block"]) for launch in launches) > MOST_THREADS:
        return None
    work = Work()
    parsed = {name: parse_ir(text, f"<{name}>") for name, text in modules.items()}
    for launch in launches:
        (x, y, z), (a, b, c) = launch["grid"], launch["block"]
        values = list(map(_zeros, launch["arguments"]))
        try:
            done = count_work(parsed[launch["kernel"]], Launch((x, y, z), (a, b, c)), values, launch["shared_bytes"])
        except ExecutionError:
            return None
        work.instructions += done.instructions
        work.bytes += done.bytes
    return work


def _zeros(value: Any) -> Any:
    """An array for a type and a shape; a number as it is."""
    if isinstance(value, int | float):
        return value
    element, shape = value
    return np.zeros(shape, dtype(element).numpy)


def _main(module: ModuleOp) -> func.FuncOp:
    (main,) = (op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == "main")
    return main


def _by_emitters(module: ModuleOp, options: CompileOptions) -> dict[str, Any]:
    """What the emitters make of the fusion as HLO."""
    kept = dict[str, ModuleOp]()

    def keep(planned: PlannedKernel) -> Observer:
        def observe(name: str, stage: str | None, kernel: ModuleOp) -> None:
            if stage == "llvm-dialect":
                kept[sanitize(planned.name)] = kernel.clone()

        return observe

    hlo = fusion_as_hlo(module)
    program = compile_module(hlo, replace(options, stage="llvm-dialect"), observers=keep)
    reads = len(program.parameters)
    launches = list[dict[str, Any]]()
    for step in program.steps:
        match step:
            case Kernel():
                assert isinstance(step.launch, Launch)
                arguments = [_place(argument, reads, len(program.results)) for argument in step.arguments]
                launches.append(_launch(step.name, step.launch.grid, step.launch.block, 0, arguments))
            case Allocation() | Release():
                continue
            case _:
                raise Unsupported("the emitters need more than kernels for it", stage="heat")
    return {
        "what": "emitters",
        "launches": launches,
        "temporaries": [(spec.dtype, spec.shape) for spec in program.temporaries],
        "code": {"modules": {name: print_ir(kernel) for name, kernel in kept.items()}},
    }


def _place(argument: Argument, reads: int, results: int) -> int:
    starts = {"parameter": 0, "result": reads, "temporary": reads + results}
    return starts[argument.kind] + argument.index


def _by_loops(module: ModuleOp, options: CompileOptions) -> dict[str, Any]:
    """The program's own loops with these sizes."""
    plan = plan_of(module, rows_of("program-loops"), options, is_for_gpu=True)
    kernels = [_lowered(kernel, rows_of("program-kernel"), options) for kernel in plan.kernels]
    names = [launch["kernel"] for launch in plan.launches]
    return {
        "what": "loops of these sizes",
        **plan.to_json(),
        "code": {"modules": {name: print_ir(kernel) for name, kernel in zip(names, kernels, strict=True)}},
    }


def _for_gpu(module: ModuleOp, options: CompileOptions, request: Mapping[str, Any]) -> dict[str, Any]:
    """What the CPU executor would run, as one PTX module."""
    answer = _for_simt(module, options, request)
    modules = {name: parse_ir(text, f"<{name}>") for name, text in answer["code"]["modules"].items()}
    entries = {name: entry_of_kernel(made).sym_name.data for name, made in modules.items()}
    merged, renamed = merge_modules(list(modules.values()))
    for row in FOR_TOOLS:
        row.make(options).apply(make_context(), merged)
    return answer | {
        "code": {
            "ptx": compile_to_ptx(merged, options.device.architecture),
            "entries": {
                name: new.get(entries[name], entries[name]) for name, new in zip(modules, renamed, strict=True)
            },
        }
    }


PLATFORMS = {"cpu": _for_cpu, "simt": _for_simt, "gpu": _for_gpu}


@dataclass
class Plan(Kernels):
    """What a fusion launches.

    kernels  a module for each launch
    """

    launches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    temporaries: list[tuple[str, tuple[int, ...]]] = field(default_factory=list[tuple[str, tuple[int, ...]]])
    kernels: list[ModuleOp] = field(default_factory=list[ModuleOp])
    seen: list[tuple[str, Any, Any, int, Sequence[Any]]] = field(default_factory=list[Any])

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> None:
        self.seen.append((name, grid, block, shared_bytes, arguments))

    def to_json(self) -> dict[str, Any]:
        return {"launches": self.launches, "temporaries": self.temporaries}


def plan_of(module: ModuleOp, rows: Sequence[Row], options: CompileOptions, *, is_for_gpu: bool = False) -> Plan:
    """The launches of a fusion at fixed sizes, and a kernel for each: of a GPU, with indices of 32 bits where that is enough."""
    recorder = Recorder("fusion", "none", options.verify, None)
    context = make_context()
    for row in rows:
        recorder.run(row.make(options), row.stage, context, module)
    arrays = [_array(ir_type) for ir_type in _main(module).function_type.inputs]
    made, plan = python_program(module), Plan()
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
        plan.launches.append(_launch(new_name, grid, block, shared_bytes, arguments))
    return plan


def _launch(
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
    """A copy of a kernel's module under a name of its own, in which the numbers that it is launched with are constants."""
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


def _lowered(module: ModuleOp, rows: Sequence[Row], options: CompileOptions) -> ModuleOp:
    recorder = Recorder("fusion", "none", options.verify, None)
    context = make_context()
    for row in rows:
        recorder.run(row.make(options), row.stage, context, module)
    return module
