"""Passes on tensors: tensors in, tensors out. One pass per file; `pipelines/passes.py` knows their order."""
