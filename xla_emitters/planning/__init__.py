"""From HLO in which each fusion is one kernel to the steps of a program: their order, their arrays, and the memory of these.

The steps themselves are plain values in `program`, which knows no IR.
"""
