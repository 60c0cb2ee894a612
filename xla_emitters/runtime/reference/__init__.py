"""The NumPy reference of HLO, and the bounds of what a correct kernel may return."""
