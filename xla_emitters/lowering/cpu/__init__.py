"""For CPUs: passes on kernels, and machine code of kernels in this process."""
