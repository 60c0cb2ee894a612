"""Passes from tensor IR to tensor IR, one per file. `pipeline.py` defines their order."""
