"""Passes from tensor IR to tensor IR, one per file. `pipelines/passes.py` defines their order."""
