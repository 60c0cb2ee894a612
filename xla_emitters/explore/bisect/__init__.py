"""The pass that made the numbers wrong."""
