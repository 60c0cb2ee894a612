"""The dialects: `xla_gpu` and its maps, `nvvm`, and xDSL's `llvm`, `gpu`, `vector`, `arith` with what they lack.

`context.make_context()` knows all of them, `context.parse_ir` reads them, `printer.print_ir` writes them.
"""
