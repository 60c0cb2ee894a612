"""The LLVM dialect written as LLVM IR text: modules by `llvm_ir_printer`, ops by the rows of `instruction_printer`."""
