"""Reads PTX, as LLVM, nvcc and people write it, and raises it to IR that runs on any CPU.

ptx_lexer, ptx_parser, syntax      text to plain values
rows                               the table of instructions; arithmetic, memory_rows, threads fill it
flow, op_builder, raising          control flow, SSA values, functions: the llvm and nvvm dialects

module = read_ptx(text, "kernel.ptx")
ir = raise_kernel(module, entry_named(module, None))
"""

from xla_emitters.text.ptx.ptx_parser import read_ptx
from xla_emitters.text.ptx.raising import entry_named, raise_kernel

__all__ = ["entry_named", "raise_kernel", "read_ptx"]
