"""Small inputs with the same fault."""
