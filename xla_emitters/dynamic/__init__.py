"""Programs with unknown sizes: all that only they need.

sizes      every dimension as a value, before a run        buffers   values become buffers, ops become fusions
passes     HLO to HLO                                      loops     fusions become kernels
host       what runs on the host: steps, and its form in IR for C
"""
