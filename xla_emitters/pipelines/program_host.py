"""A program with unknown sizes on the CPU: fusions as machine code of this machine.

    road = HostRoad(fused, options)              buffers and fusions, as the stage `fused` leaves them
    road.run(arrays)                             host program in Python, kernels by LLVM

The passes are those of the road of kernels; a block is one thread, and a kernel runs a range of its blocks. All kernels are one module.
"""

from __future__ import annotations

from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.mlir import gpu, llvm
from xla_emitters.host.disc_convert_const_to_ral import constants_of
from xla_emitters.host.python_program import python_program
from xla_emitters.lowering.host_code import HostCode, host_ir
from xla_emitters.lowering.llvm_ir.values import type_text
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import CPU_KERNEL, CPU_LOOPS, PROGRAM_HOST
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.rewrite.recorder import Recorder
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.host_kernels import C_TYPES, HostKernels
from xla_emitters.runtime.ral.program import LoadedProgram

ADDED = 3
"""Parameters behind those of a kernel: the range of blocks, and memory of a block."""


class HostRoad:
    """See the file's head.

    fused   the module at the stage `fused`, which is left as it was
    raises  Unsupported for what no kernel computes, or is not on a CPU
    """

    def __init__(self, name: str, fused: ModuleOp, options: CompileOptions) -> None:
        recorder = Recorder(name, "none", options.verify, None)
        context, self.host = make_context(), fused.clone()
        for row in (*CPU_LOOPS, *PROGRAM_HOST):
            recorder.run(row.make(options), row.stage, context, self.host)
        modules = list[ModuleOp]()
        for found in [op for op in self.host.walk() if isinstance(op, gpu.ModuleOp)]:
            module = ModuleOp([found.clone()])
            for row in CPU_KERNEL:
                recorder.run(row.make(options), row.stage, context, module)
            modules.append(module)
        self.module = merge_modules(modules)[0] if modules else ModuleOp([])
        self.parameters = dict[str, list[str]]()
        for function in self.module.ops:
            if isinstance(function, llvm.FuncOp) and function.body.blocks:
                types = list(map(type_text, function.function_type.inputs))
                self.parameters[function.sym_name.data] = types[:-ADDED]
                if unknown := set(types) - set(C_TYPES):
                    raise refusal("cpu", function, f"a parameter of type {min(unknown)}")

    @cached_property
    def ir(self) -> str:
        """All kernels as LLVM IR, before LLVM's own passes."""
        return host_ir(self.module)

    @cached_property
    def loaded(self) -> LoadedProgram:
        """The host program with its context and kernels. raises ToolError as `HostCode`"""
        made = python_program(self.host)
        kernels = HostKernels(self.parameters, HostCode(self.ir).address) if self.parameters else None
        return LoadedProgram(made.source, made.functions, made.dtypes, Constants(constants_of(self.host)), kernels)
