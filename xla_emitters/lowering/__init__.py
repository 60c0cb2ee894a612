"""The end of the road: tensors leave, maps become arithmetic, everything becomes the LLVM dialect, and tools make PTX of it."""
