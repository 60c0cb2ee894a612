"""The last stages: tensors become pointers, maps become arithmetic, everything becomes the LLVM dialect, and tools compile it to PTX."""
