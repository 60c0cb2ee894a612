"""What `--tune price` needs: candidates for kernels, reductions in parts, ways to read rows; each priced, and compared with XLA's choice.

Only the map and the verbs import this room: a compilation without prices does not load it.
"""
