"""Views of a compilation: checks against the reference, comparison with the real XLA."""
