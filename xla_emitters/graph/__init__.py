"""HLO: passes from `hlo` to `hlo`, one per file, ordered by the map; analyses of fusions; the steps of a program of fusions.

The analyses say what a fusion is before there is a kernel: views, heroes, kinds of reductions and transposes, launches, buffers. What the
IR of a kernel says is in `rewrite`. `plan` makes steps of HLO in which each fusion is one kernel: their order, arrays and memory.
"""
