"""The dialects, by owner: `hlo`, `xla_gpu` and its maps, and MLIR's own (`mlir`), which are xDSL's, completed.

`context.make_context()` registers all of them, `context.parse_ir` reads them, `mlir_printer.print_ir` writes them.
"""
