"""A program with unknown sizes on the CPU: fusions as machine code of this machine.

    lowering = CpuLowering(fused, options)              buffers and fusions, the module at the stage `fused`
    lowering.run(arrays)                         host program in Python, kernels by LLVM

The passes are like those of `GpuLowering`; a block is one thread, and a call of a kernel runs a range of its blocks. All kernels are one
module.

`XLA_EMITTERS_CPU` chooses how a program is computed: `llvm`, `numpy`, or `auto`, which is LLVM if llvmlite is installed and every fusion
of the program can be compiled for a CPU. Kernels do not check sizes; a program with sizes that are not proved equal is computed by NumPy,
which checks them.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.mlir import gpu, llvm
from xla_emitters.errors import ToolError, Unsupported, UsageError
from xla_emitters.host.disc_convert_const_to_ral import constants_of
from xla_emitters.host.loop_blocks import has_plain_loop
from xla_emitters.host.python_program import python_program
from xla_emitters.kernels.buffer_accesses import buffer_accesses
from xla_emitters.lowering.host_code import STAGE, HostCode, host_ir, is_installed, vector_bytes
from xla_emitters.lowering.host_convolutions import convolution_step, scratch_bytes, tile_of
from xla_emitters.lowering.host_integers import integer_step
from xla_emitters.lowering.host_products import WIDE, product_step
from xla_emitters.lowering.host_row_convolutions import row_convolution_step
from xla_emitters.lowering.host_steps import ADDED_TYPES, ENTRY, STEPS, step_entries
from xla_emitters.lowering.llvm_ir.values import type_text
from xla_emitters.lowering.tools import LLVMLITE_HELP
from xla_emitters.pipelines.hot_fusions import HotFusions, load_for_cpu
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.program_llvm import LlvmHost
from xla_emitters.pipelines.program_passes import CPU_KERNEL, CPU_LOOPS, PROGRAM_HEAT
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.rewrite.recorder import Recorder
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.heat import HeatLimits
from xla_emitters.runtime.ral.host_kernels import C_TYPES, ConvolutionCode, HostKernels, ProductCode
from xla_emitters.runtime.ral.kernels import Accesses
from xla_emitters.runtime.ral.native_program import NativeProgram
from xla_emitters.runtime.ral.program import LoadedProgram
from xla_emitters.runtime.ral.segment_code import Steps
from xla_emitters.sizes import Sizes

CPU = "XLA_EMITTERS_CPU"
AUTO, LLVM, NUMPY = BACKENDS = ("auto", "llvm", "numpy")
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


def requested_backend() -> str:
    """The value of `XLA_EMITTERS_CPU`. raises UsageError for an unknown one"""
    asked = os.environ.get(CPU) or AUTO
    if asked not in BACKENDS:
        raise UsageError(f"{CPU} is '{asked}'", stage=STAGE, help=f"one of: {', '.join(BACKENDS)}")
    return asked


def choose_backend(name: str, fused: ModuleOp, options: CompileOptions, sizes: Sizes) -> CpuBackend:
    """How the program is computed, decided from its module at the stage `fused`.

    raises  UsageError like `requested_backend`; if `llvm` is set, Unsupported or ToolError with the reason why LLVM cannot compute it
    """
    asked = requested_backend()
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

    fused   the module at the stage `fused`, which is not changed
    raises  Unsupported for what no kernel computes, or no kernel for a CPU
    """

    @collector_at_rest()
    def __init__(self, name: str, fused: ModuleOp, options: CompileOptions) -> None:
        self._name, self._options = name, options
        recorder = Recorder(name, "none", options.verify, None)
        context, self.host = make_context(), fused.clone()
        self._limits = HeatLimits.asked(options.heat)
        self._hot = HotFusions(fused, "cpu", options, load_for_cpu) if self._limits else None
        for row in (*(PROGRAM_HEAT if self._hot else ()), *CPU_LOOPS, *rows_of("program-host")):
            recorder.run(row.make(options), row.stage, context, self.host)
        modules, self.accesses = list[ModuleOp](), dict[str, Accesses]()
        for found in [op for op in self.host.walk() if isinstance(op, gpu.ModuleOp)]:
            module = ModuleOp([found.clone()])
            self.accesses |= {
                kernel.sym_name.data: buffer_accesses(kernel)
                for kernel in found.walk()
                if isinstance(kernel, gpu.FuncOp)
            }
            for row in CPU_KERNEL:
                recorder.run(row.make(options), row.stage, context, module)
            modules.append(module)
        self.module = merge_modules(modules)[0] if modules else ModuleOp([])
        self.parameters = dict[str, list[str]]()
        for function in self.module.ops:
            if isinstance(function, llvm.FuncOp) and function.body.blocks:
                types = list(map(type_text, function.function_type.inputs))
                self.parameters[function.sym_name.data] = types[: -len(ADDED_TYPES)]
                if unknown := set(types) - set(C_TYPES):
                    raise refusal("cpu", function, f"a parameter of type {min(unknown)}")

    @cached_property
    def ir(self) -> str:
        """All kernels as LLVM IR, before LLVM's own passes."""
        return host_ir(self.module) + step_entries(self.parameters)

    @cached_property
    def loaded(self) -> LoadedProgram:
        """The host program with its context and kernels. raises ToolError as `HostCode`"""
        made = python_program(self.host)
        address = HostCode(self.ir).address
        shared = HostCode(STEPS).address
        kernels = HostKernels(
            self.parameters,
            self.accesses,
            address,
            product_code,
            convolution_code,
            step_of=lambda name: address(f"{name}{ENTRY}"),
        )
        replay = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(shared("replay"))
        constants = Constants(constants_of(self.host))
        return LoadedProgram(
            made.source,
            made.functions,
            made.dtypes,
            constants,
            kernels,
            made.donated,
            Steps(replay, shared("copy"), integer_code),
            by_code=partial(self._by_code, kernels) if has_plain_loop(self.host) else None,
            heat=self._hot.heat(self._limits) if self._hot is not None and self._limits is not None else None,
        )

    def _by_code(self, kernels: HostKernels) -> NativeProgram | None:
        """The host program as machine code; None where it cannot be compiled."""
        try:
            return LlvmHost(self._name, self.host, self.module, kernels, self._options).program
        except (ToolError, Unsupported):
            return None


def integer_code(opcode: str, types: Sequence[str], direction: str) -> int:
    """Address of the machine code of an op on scalar integers."""
    name, text = integer_step(opcode, types, direction)
    return HostCode(text).address(name)


def product_code(element: str) -> ProductCode:
    """Machine code of products of f32 or f64."""
    width = vector_bytes()
    address, lanes = HostCode(product_step(element, width)).address(f"product.{element}"), tile_of(width, element)[1]
    return ProductCode(address, lanes, WIDE * lanes)


def convolution_code(element: str) -> ConvolutionCode:
    """Machine code of convolutions of f32 or f64."""
    width = vector_bytes()

    @cache
    def address_of(by_rows: bool) -> int:
        if by_rows:
            return HostCode(row_convolution_step(element, width)).address(f"row_convolution.{element}")
        return HostCode(convolution_step(element, width)).address(f"convolution.{element}")

    return ConvolutionCode(address_of, tile_of(width, element)[1], scratch_bytes)
