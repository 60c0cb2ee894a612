"""Running what was compiled: kernels as values, arrays at the boundary, CuPy, and the CPU executor in `simt`."""
