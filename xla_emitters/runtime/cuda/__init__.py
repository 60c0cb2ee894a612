"""Programs on NVIDIA GPUs, through CuPy."""
