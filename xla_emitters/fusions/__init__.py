"""What emission decides from: the fusion as a view, heroes, kinds of reductions and transposes, launch dimensions, buffers."""
