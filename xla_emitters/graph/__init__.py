"""Passes on HLO: `hlo` modules in, `hlo` modules out, before kernels are planned. One pass per file; the map orders them."""
