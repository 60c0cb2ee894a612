"""Programs on the CPU: kernels as machine code, products and convolutions by BLAS."""
