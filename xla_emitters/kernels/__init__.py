"""What the IR of a kernel says, at any stage: its launch, its arguments, which elements it accesses, what may be updated in place."""
