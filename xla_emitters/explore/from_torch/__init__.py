"""PyTorch modules as input."""
