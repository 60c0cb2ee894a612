"""A program with unknown sizes on the CPU: fusions as machine code of this machine.

    lowering = CpuLowering(name, fused, options)        buffers and fusions, the module at the stage `fused`
    lowering.loaded.run(arrays)                         its steps, kernels by LLVM

The passes are like those of `GpuLowering`; a block is one thread, and a call of a kernel runs a range of its blocks. All kernels are one
module.

`Settings.cpu` chooses how a program is computed: `llvm`, `numpy`, or `auto`, which is LLVM if llvmlite is installed and every fusion
of the program can be compiled for a CPU. Kernels do not check sizes; a program with sizes that are not proved equal is computed by NumPy,
which checks them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.contractions import ContractingOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp, WhileOp, tensor_of
from xla_emitters.dialects.mlir import gpu, llvm
from xla_emitters.dynamic.host.steps_of_buffers import steps_of_buffers
from xla_emitters.dynamic.sizes import Sizes
from xla_emitters.errors import ToolError, Unsupported, UsageError
from xla_emitters.library.arguments import LETTERS
from xla_emitters.lowering.cpu.cpu_code import CpuCode, cpu_ir
from xla_emitters.lowering.cpu.cpu_steps import ADDED_TYPES, CHAIN_IR, ENTRY, WORDS, step_entries
from xla_emitters.lowering.cpu.cpu_target import STAGE, cpu_target, is_installed
from xla_emitters.lowering.llvm_ir.spelling import type_text
from xla_emitters.lowering.toolchain.tools import LLVMLITE_HELP
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.program_passes import CPU_KERNEL, CPU_LOOPS
from xla_emitters.pipelines.recorder import Recorder
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.runtime.cpu.cpu_platform import CpuPlatform
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.ral.constants_file import constants_in
from xla_emitters.settings import AUTO, CPU, Settings

LLVM, NUMPY = "llvm", "numpy"
BACKENDS = (AUTO, LLVM, NUMPY)
_SLOW = "llvmlite is not installed: NumPy computes programs on the CPU, op by op, which can take 100 times as long as machine code"


@dataclass(frozen=True)
class CpuBackend:
    """How a program is computed on the CPU.

    name      "llvm" or "numpy"
    reason    why
    lowering  for "llvm"
    """

    name: str
    reason: str
    lowering: CpuLowering | None = field(default=None, repr=False, compare=False)


def requested_backend(settings: Settings) -> str:
    """One of BACKENDS. raises UsageError for an unknown one"""
    asked = settings.cpu
    if asked not in BACKENDS:
        raise UsageError(f"{CPU} is '{asked}'", stage=STAGE, help=f"one of: {', '.join(BACKENDS)}")
    return asked


def choose_backend(name: str, fused: ModuleOp, options: CompileOptions, sizes: Sizes) -> CpuBackend:
    """How the program is computed, decided from its module at the stage `fused`.

    raises  UsageError like `requested_backend`, `cpu_target` and `CpuCode`; if `llvm` is set, Unsupported or ToolError with the reason
            why LLVM cannot compute it
    """
    asked = requested_backend(options.settings)
    if asked == NUMPY:
        return CpuBackend(NUMPY, f"{CPU} says so")
    if asked == AUTO and not is_installed():
        warnings.warn(f"{_SLOW} ({LLVMLITE_HELP}; {CPU}={NUMPY} hides this)", stacklevel=1)  # Python shows it once
        return CpuBackend(NUMPY, "llvmlite is not installed")
    try:
        if sizes.unresolved:
            why = "nothing proves that some of its sizes are equal, and kernels do not check it"
            raise Unsupported(f"{name} cannot be computed by LLVM: {why}", stage=STAGE, help=f"{CPU}=numpy")
        lowering = CpuLowering(name, fused, options)
        if asked == AUTO:
            _ = lowering.loaded  # NumPy computes what LLVM cannot compile for this machine
    except (ToolError, Unsupported) as error:
        if asked == LLVM:
            raise
        return CpuBackend(NUMPY, error.message)
    return CpuBackend(LLVM, f"{CPU} says so" if asked == LLVM else "llvmlite is installed", lowering)


class CpuLowering:
    """A program on the CPU, compiled by LLVM; see the file's head.

    launching  the module with launches, and the kernels on buffers
    module     the kernels in the LLVM dialect
    cpu        that the machine code is for
    fused      the module at the stage `fused`, which is not changed
    raises  Unsupported for what no kernel computes, or no kernel for a CPU; as `cpu_target`
    """

    @collector_at_rest()
    def __init__(self, name: str, fused: ModuleOp, options: CompileOptions) -> None:
        self._options = options
        self.cpu = cpu_target(options.asked_cpu)
        self._recorder = Recorder(name, "none", options.verify, None)
        context, self.launching = make_context(), fused.clone()
        for row in CPU_LOOPS:
            row.run(options, self._recorder, context, self.launching)
        modules = list[ModuleOp]()
        for found in [op for op in self.launching.walk() if isinstance(op, gpu.ModuleOp)]:
            module = ModuleOp([found.clone()])
            for row in CPU_KERNEL:
                row.run(options, self._recorder, context, module)
            modules.append(module)
        self.module = merge_modules(modules)[0] if modules else ModuleOp([])
        self.parameters = dict[str, list[str]]()
        for function in self.module.ops:
            if isinstance(function, llvm.FuncOp) and function.body.blocks:
                types = list(map(type_text, function.function_type.inputs))
                self.parameters[function.sym_name.data] = types[: -len(ADDED_TYPES)]
                if unknown := set(types) - WORDS:
                    raise refusal("cpu", function, f"a parameter of type {min(unknown)}")

    @cached_property
    def host(self) -> ModuleOp:
        """The host program in IR that launches the kernels: what the ahead-of-time form is made of."""
        context, module = make_context(), self.launching.clone()
        for row in rows_of("program-host"):
            self._recorder.run(row.make(self._options), row.stage, context, module)
        return module

    @cached_property
    def ir(self) -> str:
        """All kernels as LLVM IR, before LLVM's own passes, the loops that call BLAS, and what calls both."""
        text = cpu_ir(self.module) + step_entries(self.parameters) + CHAIN_IR
        if any(isinstance(op, WhileOp) for op in self.launching.walk()):
            # Imported here, as below: many programs have no loop.
            from xla_emitters.lowering.cpu.loop_interpreter import INTERPRETER_IR

            text += INTERPRETER_IR
        dots = [op for op in self.launching.walk() if isinstance(op, BufferOp) and issubclass(op.HLO, ContractingOp)]
        if not dots:
            return text
        from xla_emitters.lowering.cpu.blas_calls import blas_calls  # imported here: many programs have no product

        elements = dict.fromkeys(element_of(tensor_of(op.outputs[0].type)).name for op in dots)
        return "\n".join((text, *(blas_calls(LETTERS[element]) for element in elements if element in LETTERS)))

    @cached_property
    def loaded(self) -> LoadedProgram:
        """The program's steps, with kernels as machine code. raises as `CpuCode`"""
        made, code = (
            steps_of_buffers(self.launching, constants_in(self._options.constants)),
            CpuCode(self.ir, self.cpu),
        )
        return LoadedProgram(made, CpuPlatform(made.ops, lambda name: code.address(f"{name}{ENTRY}")))
