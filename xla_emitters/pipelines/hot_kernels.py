"""Compiles one fusion for fixed sizes; this is the work of the background process.

    answer = compile_hot({"platform": "cpu", "fusion": TEXT, "shapes": [[4, 32], [4, 32]], "numbers": [], "target": "h200"})
    answer["launches"]    [{"kernel": "main_kLoop_add_0", "grid": [4, 1, 1], ..., "arguments": [0, 1]}]
    answer["code"]        machine code of this CPU, or IR, or PTX

The fusion's host program runs once on uninitialized arrays of these sizes: its launches are the plan. Numbers that it passes to a kernel
become constants in the kernel, so that all loops have known bounds. An argument is the index of an array; temporaries come after the
fusion's own arrays.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from xla_emitters.buffers.fusion_alone import at_sizes
from xla_emitters.buffers.fusion_as_hlo import fusion_as_hlo
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dialects.mlir import gpu, llvm
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dtypes import dtype, dtype_of
from xla_emitters.emitters.partitioner import sanitize
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.kernels.buffer_accesses import buffer_accesses
from xla_emitters.kernels.kernel_entry import entry_of_kernel
from xla_emitters.lowering.host_code import host_ir, object_code
from xla_emitters.lowering.host_cpu import host_cpu
from xla_emitters.lowering.host_steps import ADDED_TYPES, step_entries
from xla_emitters.lowering.llvm_ir.values import type_text
from xla_emitters.lowering.toolchain import compile_to_ptx
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.launch_plan import launch_record, main_of, plan_of
from xla_emitters.pipelines.options import TUNE, CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.passes import FOR_TOOLS, Row
from xla_emitters.pipelines.program_passes import CPU_KERNEL, CPU_LOOPS
from xla_emitters.planning.host_steps import PlannedKernel
from xla_emitters.program import Allocation, Argument, Kernel, Launch, Release
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.rewrite.recorder import Observer, Recorder
from xla_emitters.runtime.simt.work_counts import Work, count_work
from xla_emitters.transforms.optimize_loops import OptimizeLoopsPass


def compile_hot(request: Mapping[str, Any]) -> dict[str, Any]:
    """The kernels and launches of a fusion at fixed sizes, as plain data. raises Unsupported, ToolError"""
    options = CompileOptions(target=request["target"], record="none", cpu_features=request["cpu_features"])
    module = at_sizes(parse_ir(request["fusion"], "<fusion>"), request["shapes"], request["numbers"])
    return PLATFORMS[request["platform"]](module, options, request)


def _for_cpu(module: ModuleOp, options: CompileOptions, request: Mapping[str, Any]) -> dict[str, Any]:
    """The program's own loops, specialized to these sizes."""
    plan = plan_of(module, CPU_LOOPS, options)
    accesses = {
        kernel.sym_name.data: buffer_accesses(kernel)
        for module in plan.kernels
        for kernel in module.walk()
        if isinstance(kernel, gpu.FuncOp)
    }
    lowered = [_lowered(kernel, CPU_KERNEL, options) for kernel in plan.kernels]
    merged = merge_modules(lowered)[0] if lowered else ModuleOp([])
    parameters = {
        function.sym_name.data: list(map(type_text, function.function_type.inputs))[: -len(ADDED_TYPES)]
        for function in merged.ops
        if isinstance(function, llvm.FuncOp) and function.body.blocks
    }
    text, cpu = host_ir(merged) + step_entries(parameters), host_cpu(options.cpu_features)
    return {
        "what": "loops of these sizes",
        **plan.to_json(),
        "code": {
            "object": b64encode(object_code(text, cpu)).decode(),
            "parameters": parameters,
            "accesses": accesses,
        },
    }


def _for_simt(module: ModuleOp, options: CompileOptions, request: Mapping[str, Any]) -> dict[str, Any]:
    """The emitters' kernels or the program's own loops at these sizes, whichever costs less, if that is less than loops for all sizes."""
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
    types = [argument.type for argument in main_of(module).args] + list(main_of(module).function_type.outputs)
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
    """The figure by which kernels are compared: an H200 executes about six instructions of a thread in the time of a byte from memory."""
    return work.instructions / INSTRUCTIONS_PER_BYTE + work.bytes


INSTRUCTIONS_PER_BYTE = 6
"""132 multiprocessors x 128 lanes x 1.8 GHz over 4.8 TB/s."""
MOST_THREADS = 1 << 18
"""Limit on the threads of all launches of a fusion whose work is counted here; larger fusions are accepted without counting."""


def _on_arrays(answer: Mapping[str, Any], types: Sequence[Attribute]) -> list[dict[str, Any]]:
    """The launches of an answer, with types and shapes for arguments."""
    arrays = [(dtype_of(tensor_of(each).element_type).name, tensor_of(each).get_shape()) for each in types]
    arrays += answer["temporaries"]
    return [{**launch, "arguments": [arrays[n] for n in launch["arguments"]]} for launch in answer["launches"]]


def _work(launches: Sequence[Mapping[str, Any]], modules: Mapping[str, str]) -> Work | None:
    """The total work of launches on arrays of zeros; None where they have too many threads to be executed here, or need other data."""
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
    """An array of zeros for a type and a shape; a number is returned unchanged."""
    if isinstance(value, int | float):
        return value
    element, shape = value
    return np.zeros(shape, dtype(element).numpy)


def _by_emitters(module: ModuleOp, options: CompileOptions) -> dict[str, Any]:
    """The emitters' kernels for the fusion as HLO."""
    kept = dict[str, ModuleOp]()

    def keep(planned: PlannedKernel) -> Observer:
        def observe(name: str, stage: str | None, kernel: ModuleOp) -> None:
            if stage == "llvm-dialect":
                kept[sanitize(planned.name)] = kernel.clone()

        return observe

    hlo = fusion_as_hlo(module)
    # Loops that LLVM would unroll are unrolled here: with loops, the executor would count more instructions than a GPU executes.
    made = (row.make(options) for row in rows_of("kernel"))
    passes = tuple(
        replace(each, unroll_in_llvm=False) if isinstance(each, OptimizeLoopsPass) else each for each in made
    )
    asked = replace(options, stage="llvm-dialect", pipeline=passes, tune=TUNE[0])
    program = compile_module(hlo, asked, observers=keep)
    reads = len(program.parameters)
    launches = list[dict[str, Any]]()
    for step in program.steps:
        match step:
            case Kernel():
                assert isinstance(step.launch, Launch)
                arguments = [_place(argument, reads, len(program.results)) for argument in step.arguments]
                launches.append(launch_record(step.name, step.launch.grid, step.launch.block, 0, arguments))
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
    """The program's own loops, specialized to these sizes."""
    plan = plan_of(module, rows_of("program-loops"), options, is_for_gpu=True)
    kernels = [_lowered(kernel, rows_of("program-kernel"), options) for kernel in plan.kernels]
    names = [launch["kernel"] for launch in plan.launches]
    return {
        "what": "loops of these sizes",
        **plan.to_json(),
        "code": {"modules": {name: print_ir(kernel) for name, kernel in zip(names, kernels, strict=True)}},
    }


def _for_gpu(module: ModuleOp, options: CompileOptions, request: Mapping[str, Any]) -> dict[str, Any]:
    """The kernels of `_for_simt`, compiled to one PTX module."""
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


def _lowered(module: ModuleOp, rows: Sequence[Row], options: CompileOptions) -> ModuleOp:
    recorder = Recorder("fusion", "none", options.verify, None)
    context = make_context()
    for row in rows:
        recorder.run(row.make(options), row.stage, context, module)
    return module
