"""Reads LLVM IR, as LLVM 22 prints it after optimisation, and raises it to IR that runs on any CPU.

llvm_ir_lexer, llvm_types, llvm_constants   text to types and values of the llvm dialect
function_reader                             one function: blocks, values, phis as arguments of blocks
instruction_reader, call_reader             the rows of instructions
ptx_bodies                                  what LLVM IR says in PTX's words: inline assembly, `llvm.nvvm.*`
module                                      functions, globals, metadata; the kernel with what it uses

module = read_llvm_ir(text, "kernel.ll")
ir = raise_kernel(module, entry_named(module, None))
"""

from xla_emitters.text.llvm_ir.module import raise_kernel, read_llvm_ir

__all__ = ["raise_kernel", "read_llvm_ir"]
