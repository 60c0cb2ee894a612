"""What users do with a compilation: `check`, `bisect`, `reduce`, `cost`, `compare`, `list`, `from_jax`; proofs and pictures of maps."""
