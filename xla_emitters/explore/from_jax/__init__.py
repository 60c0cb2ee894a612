"""JAX functions as input."""
