"""Whether every stage computes what the text says."""
