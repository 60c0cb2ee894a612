"""The runtime of programs with unknown sizes: contexts, buffers, constants, and the functions that a host program calls by name.

context      the state of a loaded program (constants, resources, counters), and of one call of it (buffers)
memory       which buffers are live when, in one call
buffer_ops   executes every op of `lmhlo` by NumPy
program      loads the generated Python of a host program
"""
