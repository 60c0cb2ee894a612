"""What emission decides from: the fusion as a view, launch dimensions, unrolling, buffers."""
