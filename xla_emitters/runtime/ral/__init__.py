"""The runtime of programs with unknown sizes: contexts, buffers, constants, and the functions that a host program calls by name.

buffer_ops     executes every op of `lmhlo` by NumPy
host_program   runs a host program in IR by the executor, with the functions of `ral_calls`
c              the runtime of bundles for C
"""
