"""Kernels beside those of the real XLA, and beside anybody's PTX."""
