"""Anybody's LLVM IR on a CPU: one kernel, given arrays and a launch; as `any_ptx`.

    kernel = LlvmIrKernel.read(text, "scale.ll")
    after = kernel.run([x, y, np.int32(4096)], LaunchDimensions((32, 1, 1), (128, 1, 1)))

A kernel is a function of the convention `ptx_kernel`; where there is none, any function with a body. Source: docs/ptx.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.dtypes import Array
from xla_emitters.explore.check.any_ptx import Cluster, GivenKernel, Raising
from xla_emitters.text.llvm_ir import raise_kernel, read_llvm_ir
from xla_emitters.text.llvm_ir.module import LlvmFunction, LlvmModule
from xla_emitters.text.ptx import entry_named


class LlvmIrKernel(GivenKernel):
    """One kernel of a text of LLVM IR."""

    def __init__(self, module: LlvmModule, entry: LlvmFunction) -> None:
        self.module, self.entry, self.source = module, entry, module.source
        self.name, self.start, self.end, self.bounds = entry.name, entry.start, entry.end, module.bounds(entry)
        self.parameters = [(parameter.name, str(parameter.type)) for parameter in entry.parameters]

    @staticmethod
    def read(text: str, file: str, entry: str = "") -> LlvmIrKernel:
        """The kernel of that name, or the only one. raises ParseError, Unsupported, DataError"""
        module = read_llvm_ir(text, file)
        if not module.entries:
            functions = {name: replace(function, is_entry=True) for name, function in module.functions.items()}
            module.functions = functions
        return LlvmIrKernel(module, entry_named(module, entry or None))

    def is_pointer(self, number: int, array: Array) -> bool:
        """A pointer's array has dimensions; a number's has none, and the number's size."""
        ir_type = self.entry.parameters[number].type
        if self.entry.parameters[number].is_pointer:
            if not array.ndim:
                raise self.refused(number, "a pointer: give an array with dimensions", array)
            return True
        if array.ndim or 8 * array.itemsize != max(8, bits_of(ir_type)):
            raise self.refused(number, f"a number of {bits_of(ir_type)} bits", array)
        return False

    def raised(self, numbers: Sequence[int], cluster: Cluster, **how: Unpack[Raising]) -> ModuleOp:
        """Without tensor maps: LLVM IR has copies by them as assembly alone."""
        return raise_kernel(self.module, self.entry, **how)
