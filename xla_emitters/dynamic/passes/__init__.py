"""Passes on HLO that only programs with unknown sizes need. One pass per file; the map orders them."""
