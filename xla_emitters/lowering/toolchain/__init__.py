"""From the LLVM dialect to PTX and machine code of GPUs: which tools there are, and what they answer."""
