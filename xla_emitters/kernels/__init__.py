"""Facts that the IR of a kernel states at any stage: its launch, its arguments, the elements it accesses, its in-place updates."""
