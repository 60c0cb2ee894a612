"""A kernel's LLVM IR as IR that the executor runs: with the launch and the arguments that the program knows and the text does not say.

    module = module_of_llvm_ir(trace["llvm"].ir, kernel)      llvm and nvvm dialects; locations are lines of the text

Source: docs/ptx.md.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.program import Kernel
from xla_emitters.runtime.simt.ptx_kernels import attributes_of, launch_attributes
from xla_emitters.text.llvm_ir import raise_kernel, read_llvm_ir
from xla_emitters.text.llvm_ir.module import LlvmModule
from xla_emitters.text.ptx import entry_named


@lru_cache(4)
def _read(text: str, file: str) -> LlvmModule:
    """Kernels of one program share a text."""
    return read_llvm_ir(text, file)


def module_of_llvm_ir(text: str, kernel: Kernel) -> ModuleOp:
    """The IR of a kernel in a text of LLVM IR. raises ParseError, VerifyError and Unsupported, each with its place"""
    module = _read(text, f"{kernel.name}.ll")
    return raise_kernel(
        module,
        entry_named(module, kernel.name),
        arguments=[attributes_of(argument) for argument in kernel.arguments],
        attributes=launch_attributes(kernel.launch),
    )
