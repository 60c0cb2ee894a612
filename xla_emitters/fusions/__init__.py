"""Analyses of fusions for emission: the fusion as a view, heroes, kinds of reductions and transposes, launch dimensions, buffers."""
