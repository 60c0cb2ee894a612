"""Analyses of fusions for emission: the fusion as a view, heroes, kinds of reductions and transposes, launch dimensions, buffers.

They read HLO, before there is a kernel; what the IR of a kernel says is in `kernels`.
"""
