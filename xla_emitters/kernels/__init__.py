"""Facts that the IR of a kernel states at any stage: its launch, its arguments, the elements it accesses, its in-place updates.

They read a kernel's IR and know no HLO; what a fusion says before it is emitted is in `fusions`.
"""
