"""Passes on tensors: tensors in, tensors out. One pass per file; `pipeline.py` knows their order."""
