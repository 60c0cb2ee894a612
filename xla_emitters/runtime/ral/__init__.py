"""The runtime of programs with unknown sizes: contexts, buffers, constants, and the functions that a host program calls by name.

context      what a loaded program keeps (constants, resources, counters), and what one call of it keeps (buffers)
memory       what lives when, in one call
buffer_ops   every op of `lmhlo` by NumPy
program      the generated Python of a host program, loaded
"""
